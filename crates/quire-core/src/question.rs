//! Question cards: what is asked of the user, and what came back.

use serde::{Deserialize, Serialize};

use crate::ids::CardId;

/// Questions asked together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// What an answer names.
    pub id: CardId,
    /// At least one, with ids of their own.
    pub questions: Vec<Question>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Unique in its card.
    pub id: String,
    /// What is asked.
    pub prompt: String,
    /// Answers on offer; empty: an open question.
    pub options: Vec<QuestionOption>,
    /// Whether another answer than the options is welcome. An open question always takes one.
    pub allow_other: bool,
    /// Whether work can go on without an answer.
    pub required: bool,
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    /// `A`, `B`, `C`…
    pub id: String,
    /// The text.
    pub label: String,
    /// Whether the user may rewrite it before sending.
    pub editable: bool,
}

/// The user's answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The question.
    pub question_id: String,
    /// The option's id, or `other`.
    pub option_id: String,
    /// The final text: the option's, perhaps rewritten, or the user's own.
    pub text: String,
}
