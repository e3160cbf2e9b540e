//! Question cards: what is asked of the user, and what came back.
//!
//! What a model asks is read leniently: no question it meant is lost, and a card always has something to answer. What a
//! user answers is read strictly: it names a question and an option that are there.
//!
//! When a card opens and closes is the session's.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

/// The option id of an answer in the user's own words.
pub const OTHER: &str = "other";

/// Asked where a model asks, and nobody can tell what.
const UNREADABLE_PROMPT: &str = "The question could not be read. What should be known before the work goes on?";

/// Asked where a model gives options and no question.
const CHOICE_PROMPT: &str = "Which one?";

/// Why answers are not heard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No such question.
    #[error("there is no question `{question}` on this card; it asks {asked}")]
    UnknownQuestion {
        /// What was named.
        question: String,
        /// The card's questions, by id.
        asked: String,
    },
    /// No such option, or an answer in own words where none is welcome.
    #[error("`{option}` is not on offer for question `{question}`; choose one of {offered}")]
    NotOffered {
        /// The question.
        question: String,
        /// What was chosen.
        option: String,
        /// The options, by id.
        offered: String,
    },
    /// Another text than the option's, which is fixed.
    #[error("option {option} of question `{question}` cannot be rewritten; send it as it is: `{label}`")]
    Rewritten {
        /// The question.
        question: String,
        /// The option.
        option: String,
        /// The option's text.
        label: String,
    },
    /// White space.
    #[error("the answer to question `{question}` is empty; write one, or leave the question out")]
    Empty {
        /// The question.
        question: String,
    },
    /// The same question answered again.
    #[error("question `{question}` is answered twice; send one answer")]
    Twice {
        /// The question.
        question: String,
    },
    /// Work cannot go on without these.
    #[error("these questions need an answer before work goes on: {questions}")]
    RequiredOpen {
        /// The questions, by id, with their prompts.
        questions: String,
    },
}

impl Card {
    /// Says whether these answers close the card.
    ///
    /// # Errors
    /// The first answer that does not fit, else the required questions that stay open.
    pub fn check(&self, answers: &[Answer]) -> Result<(), AnswerError> {
        let mut answered: BTreeSet<&str> = BTreeSet::new();
        for answer in answers {
            let question = self.question(&answer.question_id)?;
            question.check(answer)?;
            if !answered.insert(&question.id) {
                return Err(AnswerError::Twice { question: question.id.clone() });
            }
        }
        let open = self.questions.iter().filter(|question| question.required && !answered.contains(question.id.as_str()));
        let open: Vec<String> = open.map(|question| format!("`{}` ({})", question.id, question.prompt)).collect();
        if open.is_empty() { Ok(()) } else { Err(AnswerError::RequiredOpen { questions: open.join(", ") }) }
    }

    /// Tells the model each question with its final answer, a line each, unanswered ones marked.
    pub fn told(&self, answers: &[Answer]) -> String {
        let lines: Vec<String> = (self.questions.iter())
            .map(|question| match answers.iter().find(|answer| answer.question_id == question.id) {
                Some(answer) => format!("{} — {}", question.prompt, answer.text),
                None => format!("{} — (not answered)", question.prompt),
            })
            .collect();
        lines.join("\n")
    }

    /// Makes an answer of what a person typed: an option's id in either case, an option's exact text, else own words.
    ///
    /// # Errors
    /// [`AnswerError`] where there is no such question, nothing was typed, or own words are not welcome.
    pub fn answer(&self, question: &str, value: &str) -> Result<Answer, AnswerError> {
        let question = self.question(question)?;
        let typed = value.trim();
        let by_id = question.options.iter().find(|option| same_id(&option.id, typed));
        let chosen = by_id.or_else(|| question.options.iter().find(|option| option.label.trim() == typed));
        let (option_id, text) = match chosen {
            Some(option) => (option.id.as_str(), option.label.as_str()),
            None => (OTHER, value),
        };
        let answer = Answer { question_id: question.id.clone(), option_id: option_id.to_owned(), text: text.to_owned() };
        question.check(&answer).map_err(|error| match error {
            AnswerError::NotOffered { question, offered, .. } => {
                AnswerError::NotOffered { question, option: typed.to_owned(), offered }
            }
            other => other,
        })?;
        Ok(answer)
    }

    fn question(&self, id: &str) -> Result<&Question, AnswerError> {
        self.questions.iter().find(|question| question.id == id).ok_or_else(|| {
            let asked: Vec<String> = self.questions.iter().map(|question| format!("`{}`", question.id)).collect();
            AnswerError::UnknownQuestion { question: id.to_owned(), asked: asked.join(", ") }
        })
    }
}

impl Question {
    fn check(&self, answer: &Answer) -> Result<(), AnswerError> {
        let question = self.id.clone();
        if answer.text.trim().is_empty() {
            return Err(AnswerError::Empty { question });
        }
        let takes_other = self.allow_other || self.options.is_empty();
        if answer.option_id == OTHER && takes_other {
            return Ok(());
        }
        let Some(option) = self.options.iter().find(|option| option.id == answer.option_id) else {
            let offered = self.options.iter().map(|option| option.id.as_str()).chain(takes_other.then_some(OTHER));
            let offered = offered.collect::<Vec<_>>().join(", ");
            return Err(AnswerError::NotOffered { question, option: answer.option_id.clone(), offered });
        };
        if !option.editable && answer.text != option.label {
            return Err(AnswerError::Rewritten { question, option: option.id.clone(), label: option.label.clone() });
        }
        Ok(())
    }
}

fn same_id(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Reads the questions that a model wrote: a string, a question, a list of either, or `{questions: …}`.
///
/// Strings become open questions and blanks go; ids are made unique, options get letters where theirs are missing or used
/// twice. What was meant as a question and holds none becomes one open question. Nothing, an empty list, an empty object or
/// a blank string asks nothing.
pub fn read_questions(asked: &Value) -> Vec<Question> {
    let entries: Vec<&Value> = match asked {
        Value::Null | Value::Bool(false) => return vec![],
        Value::String(text) if text.trim().is_empty() => return vec![],
        Value::Object(fields) if fields.is_empty() => return vec![],
        Value::Object(fields) => match fields.get("questions") {
            Some(inner) => return read_questions(inner),
            None => vec![asked],
        },
        Value::Array(entries) if entries.is_empty() => return vec![],
        Value::Array(entries) => entries.iter().collect(),
        Value::String(_) | Value::Bool(true) | Value::Number(_) => vec![asked],
    };
    let mut questions: Vec<Question> = entries.into_iter().filter_map(read_question).collect();
    if questions.is_empty() {
        questions.push(open_question(UNREADABLE_PROMPT.to_owned()));
    }
    give_ids(&mut questions);
    questions
}

fn read_question(entry: &Value) -> Option<Question> {
    let fields = match entry {
        Value::String(text) => return (!text.trim().is_empty()).then(|| open_question(text.trim().to_owned())),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let options = read_options(fields.get("options").or_else(|| fields.get("choices")));
    let prompt = match words(fields, &["prompt", "question", "text", "title"]) {
        Some(prompt) => prompt,
        None if options.is_empty() => return None,
        None => CHOICE_PROMPT.to_owned(),
    };
    let flag = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).and_then(Value::as_bool);
    let allow_other = options.is_empty() || flag(&["allowOther", "allow_other"]).unwrap_or(true);
    let required = flag(&["required"]).unwrap_or(false);
    Some(Question { id: words(fields, &["id"]).unwrap_or_default(), prompt, options, allow_other, required })
}

fn open_question(prompt: String) -> Question {
    Question { id: String::new(), prompt, options: vec![], allow_other: true, required: false }
}

fn read_options(options: Option<&Value>) -> Vec<QuestionOption> {
    let entries = options.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut options: Vec<QuestionOption> = entries.iter().filter_map(read_option).collect();
    let ids: BTreeSet<String> = options.iter().map(|option| option.id.to_lowercase()).collect();
    let ids_serve = ids.len() == options.len() && !ids.contains("") && !ids.contains(OTHER);
    if !ids_serve {
        for (index, option) in options.iter_mut().enumerate() {
            option.id = letter(index);
        }
    }
    options
}

fn read_option(entry: &Value) -> Option<QuestionOption> {
    let (id, label, editable) = match entry {
        Value::String(text) => (None, text.trim().to_owned(), true),
        Value::Number(number) => (None, number.to_string(), true),
        Value::Object(fields) => {
            let editable = fields.get("editable").and_then(Value::as_bool).unwrap_or(true);
            (words(fields, &["id"]), words(fields, &["label", "text", "value"])?, editable)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => return None,
    };
    (!label.is_empty()).then(|| QuestionOption { id: id.unwrap_or_default(), label, editable })
}

/// The first of these fields that says something.
fn words(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let text = |name: &&str| match fields.get(*name)? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    names.iter().find_map(text)
}

/// `A` to `Z`, then `AA`, `AB`…
fn letter(index: usize) -> String {
    let last = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => last.to_string(),
        before => format!("{}{last}", letter(before - 1)),
    }
}

/// Keeps the ids that are there, the first of each; the others get the next free `q1`, `q2`…
fn give_ids(questions: &mut [Question]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for question in &mut *questions {
        if !taken.insert(question.id.clone()) {
            question.id.clear();
        }
    }
    let mut next = 1;
    for question in questions.iter_mut().filter(|question| question.id.is_empty()) {
        while !taken.insert(format!("q{next}")) {
            next += 1;
        }
        question.id = format!("q{next}");
    }
}
