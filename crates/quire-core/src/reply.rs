//! From what a model wrote to what it meant: arguments of calls, JSON in text, outputs without a call.
//!
//! A model's worst reply is an ordinary day. What is written verbatim is taken first; small faults are mended outside of
//! strings only, a mended value is marked, and what was cut off is marked and never run.
//!
//! Whether a tool of that name exists and its arguments are right is the session's; reasoning between `<think>` marks is
//! the adapters'.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::question::{Question, read_questions};
use crate::tag::Tag;

mod json;

/// JSON found in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// An object or a list. Of one that was cut off: what is there.
    pub value: Value,
    /// Whether faults were mended in it.
    pub repaired: bool,
    /// Whether the text ends before it does.
    pub cut: bool,
}

/// Finds the JSON in a text: the whole text, or the longest object or list in it, fenced or with prose around.
///
/// Mended are trailing commas, raw line breaks and tabs in strings, curly quotes around strings, full-width commas and
/// colons between them. Nothing in a string changes. None where there is no JSON, where its faults are others, and where
/// it is nested deeper than 128.
pub fn find_json(text: &str) -> Option<Found> {
    json::longest(text)
}

/// A call's arguments, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// By name.
    pub value: Map<String, Value>,
    /// Whether faults were mended.
    pub repaired: bool,
}

/// Reads the arguments of a call; nothing at all counts as `{}`, unless the reply hit its limit of length.
///
/// # Errors
/// A sentence for the model: the arguments were cut off, or are not one JSON object. Such a call is never run.
pub fn arguments(raw: &str, cut_by_length: bool) -> Result<Arguments, String> {
    let text = unfenced(raw.trim());
    if text.is_empty() || text == "null" {
        return match cut_by_length {
            false => Ok(Arguments { value: Map::new(), repaired: false }),
            true => Err(cut_off(raw)),
        };
    }
    // Some models write the object as a string of JSON.
    let quoted = serde_json::from_str::<String>(text).ok();
    let was_quoted = quoted.is_some();
    match json::whole(quoted.as_deref().unwrap_or(text)) {
        Some(found) if found.cut => Err(cut_off(raw)),
        Some(Found { value: Value::Object(value), repaired, .. }) => Ok(Arguments { value, repaired: repaired || was_quoted }),
        Some(_) | None if cut_by_length => Err(cut_off(raw)),
        Some(_) | None => Err(format!(
            "the arguments are not one JSON object, so nothing was run: `{}`; call the tool again with one JSON object as its arguments",
            beginning(raw)
        )),
    }
}

fn cut_off(raw: &str) -> String {
    format!(
        "the arguments were cut off after {} characters, so nothing was run; call the tool again with complete arguments, shorter ones if they do not fit",
        raw.chars().count()
    )
}

fn beginning(raw: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut chars = raw.trim().chars();
    let start: String = chars.by_ref().take(CHARS_MAX).collect();
    if chars.next().is_some() { start + "…" } else { start }
}

/// The text within a code fence around all of it, or the text.
fn unfenced(text: &str) -> &str {
    let within = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let without_language = within.and_then(|rest| rest.split_once('\n')).map(|(_, body)| body.trim());
    without_language.unwrap_or(text)
}

/// What a worker handed in or asked without a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Texts by tag, as written: the tags are still to be checked.
    pub outputs: BTreeMap<String, String>,
    /// What it says of them; empty where it says nothing.
    pub summary: String,
    /// What it asks.
    pub questions: Vec<Question>,
    /// Whether faults were mended.
    pub repaired: bool,
    /// Whether the reply was cut off: then the last text is a part.
    pub cut: bool,
}

/// Reads a worker's reply that calls nothing: a JSON object `{outputs, summary, askUser}`, else the text itself for a skill
/// whose one output tag is `only_output`.
///
/// Outputs that are no strings become their JSON; `null` is no output. The text itself is taken verbatim, without the blank
/// lines around it. None where nothing of this is there.
pub fn worker_outputs(text: &str, only_output: Option<&Tag>) -> Option<Submission> {
    let found = find_json(text);
    let submitted = found.as_ref().and_then(|found| submission(found, only_output));
    submitted.or_else(|| {
        let product = without_blank_lines(text);
        let tag = only_output.filter(|_| !product.is_empty())?;
        // Cut before it said what it is: a part of a text, or a part of the object above.
        let cut = json::whole(unfenced(text.trim())).is_some_and(|found| found.cut);
        let outputs = BTreeMap::from([(tag.as_str().to_owned(), product.to_owned())]);
        Some(Submission { outputs, summary: String::new(), questions: vec![], repaired: false, cut })
    })
}

fn submission(found: &Found, only_output: Option<&Tag>) -> Option<Submission> {
    let fields = found.value.as_object()?;
    let asked = fields.get("askUser").or_else(|| fields.get("ask_user"));
    let outputs: BTreeMap<String, String> = match (fields.get("outputs"), only_output) {
        (Some(Value::Object(outputs)), _) => {
            (outputs.iter()).filter(|(_, text)| !text.is_null()).map(|(tag, text)| (tag.clone(), as_text(text))).collect()
        }
        (Some(Value::String(text)), Some(tag)) => BTreeMap::from([(tag.as_str().to_owned(), text.clone())]),
        (Some(Value::Null) | None, _) if asked.is_some() => BTreeMap::new(),
        (Some(_) | None, _) => return None,
    };
    let questions = asked.or_else(|| fields.get("questions")).map(read_questions).unwrap_or_default();
    let summary = fields.get("summary").filter(|summary| !summary.is_null()).map(as_text).unwrap_or_default();
    Some(Submission { outputs, summary, questions, repaired: found.repaired, cut: found.cut })
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn without_blank_lines(text: &str) -> &str {
    let lines_before = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
    let start: usize = lines_before.map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    let blank_after: usize = rest.split_inclusive('\n').rev().take_while(|line| line.trim().is_empty()).map(str::len).sum();
    let kept = rest.get(..rest.len() - blank_after).unwrap_or_default();
    kept.strip_suffix("\r\n").or_else(|| kept.strip_suffix('\n')).unwrap_or(kept)
}

/// Reads a decision that the main agent wrote as JSON instead of a call: the tool's name and its arguments.
///
/// `{"action": "run_worker", …}` with the other fields as arguments; also `tool` for `action`, `{"action": {"type": …}}`,
/// and the arguments under `arguments` or `args`. None where there is no such object, and where it was cut off.
pub fn agent_decision(text: &str) -> Option<(String, Map<String, Value>)> {
    let Found { value: Value::Object(mut fields), cut: false, .. } = find_json(text)? else { return None };
    let action = fields.shift_remove("action").or_else(|| fields.shift_remove("tool"))?;
    let name = match action {
        Value::String(name) => name,
        Value::Object(inner) => {
            fields = inner;
            fields.shift_remove("type").or_else(|| fields.shift_remove("name"))?.as_str()?.to_owned()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let bundled =
        ["arguments", "args"].into_iter().find(|key| fields.len() == 1 && fields.get(*key).is_some_and(Value::is_object));
    if let Some(Value::Object(bundle)) = bundled.and_then(|key| fields.shift_remove(key)) {
        fields = bundle;
    }
    let name = name.trim().to_owned();
    (!name.is_empty()).then_some((name, fields))
}
