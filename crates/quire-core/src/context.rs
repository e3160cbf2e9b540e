//! Builds the prompt of one worker from the blackboard.
//!
//! Same arguments, same prompt, byte for byte; the [`Trace`] tells what each segment took and what was left out, and why.
//! Order: system (shared context, the skill's prompt, the output protocol) · static segments · dynamic segments · the final block.
//! Nothing above the first dynamic segment holds time, ids or counters.
//!
//! Nothing here knows a provider; token counts come in through [`TokenCount`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blackboard::View;
use crate::ids::{Hash, ItemNumber, SkillId};
use crate::message::Message;
use crate::pack::{Pack, Skill, Tier};
use crate::tag::{RoleId, Tag};

/// The version of the order and the fixed texts below; a record of a call names it.
pub const ASSEMBLY: u32 = 1;

/// Counts tokens as some model would, or nearly.
pub trait TokenCount {
    /// Returns the number of tokens in `text`.
    fn count(&self, text: &str) -> u32;
}

/// What a run brings to its prompt besides the blackboard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunInput {
    /// Its role, where it has one.
    pub role: Option<RoleId>,
    /// What it has to mend: all notes so far, oldest first.
    pub notes: Vec<Note>,
    /// Its own earlier text, where this is a rerun: by tag.
    pub draft: BTreeMap<Tag, Arc<str>>,
    /// What the user answered, as `question — answer` lines.
    pub answers: Vec<String>,
}

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Who says so.
    pub from: NoteSource,
    /// What.
    pub text: Arc<str>,
}

/// Whose note it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteSource {
    /// The user's.
    User,
    /// A check of the skill's own that failed.
    Check,
    /// A review that failed.
    Review(SkillId),
}

/// A worker's first messages, and how they came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// A system and a user message.
    pub messages: Vec<Message>,
    /// How they came about.
    pub trace: Trace,
}

/// How a prompt came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// [`ASSEMBLY`] at the time.
    pub assembly: u32,
    /// The skill.
    pub skill: SkillId,
    /// The role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleId>,
    /// The variant of segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The most tokens it could take.
    pub budget_tokens: u32,
    /// The tokens it took.
    pub tokens: u32,
    /// The hash of everything above the first dynamic segment.
    pub prefix: Hash,
    /// Tokens above the first dynamic segment.
    pub prefix_tokens: u32,
    /// Each segment that stands in the prompt, in order; the last is the final block.
    pub segments: Vec<SegmentTrace>,
    /// What does not stand in the prompt although the skill declares it.
    pub omitted: Vec<Omission>,
}

/// One segment of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentTrace {
    /// The segment's id; `system` and `final` are the engine's own.
    pub id: String,
    /// Its tier.
    pub tier: Tier,
    /// Its tokens.
    pub tokens: u32,
    /// The items it shows, by tag, in order.
    pub items: Vec<(Tag, Vec<ItemNumber>)>,
    /// Whether something was cut from it.
    pub cut: bool,
}

/// Something left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// The segment it belongs to.
    pub segment: String,
    /// The tag, or the pattern where no tag matched.
    pub tag: String,
    /// Why.
    pub why: OmissionReason,
}

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmissionReason {
    /// The skill's isolation keeps it from the worker.
    Isolation,
    /// The segment's policy shows less than there is.
    Policy,
    /// No room in the budget.
    Budget,
    /// The text is not a fact (yet).
    NotAccepted,
    /// Nothing on the blackboard has such a tag.
    NoMatch,
    /// A segment above shows it.
    ShownAbove,
}

/// Why no prompt can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// What must stay does not fit.
    #[error(
        "the prompt of `{skill}` needs {needed_tokens} tokens for what it must hold ({sizes}), and the model has room for {budget_tokens}; shorten these texts, mark a segment `keep: optional`, or take a model with a larger context"
    )]
    NoRoom {
        /// The skill.
        skill: SkillId,
        /// What must stay, in tokens.
        needed_tokens: u32,
        /// What is allowed, in tokens.
        budget_tokens: u32,
        /// The sizes, by segment.
        sizes: String,
    },
}

/// Builds the first messages of one run.
///
/// `variant` names a set of the skill's segments; `budget_tokens` is the whole prompt's.
///
/// # Errors
/// [`ContextError::NoRoom`] when what must stay does not fit alone.
pub fn assemble(
    pack: &Pack,
    skill: &Skill,
    run: &RunInput,
    board: View<'_>,
    variant: Option<&str>,
    turn: u32,
    budget_tokens: u32,
    count: &dyn TokenCount,
) -> Result<Context, ContextError> {
    let _ = (pack, skill, run, board, variant, turn, budget_tokens, count);
    unreachable!()
}
