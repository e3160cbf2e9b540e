//! Which parameter a provider refuses, from its own words.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::http::Learns;
use super::words::Words;

/// The parameters that a server has refused, each with its words; enough to know of a wire without other dialects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusals(BTreeMap<String, String>);

impl Refusals {
    pub(super) fn known(refused: &BTreeMap<String, String>) -> Self {
        Self(refused.clone())
    }

    pub(super) fn refused(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    pub(super) fn takes(&self, parameter: &str) -> bool {
        !self.0.contains_key(parameter)
    }
}

impl Learns for Refusals {
    fn after(&self, words: &Words, body: &Value) -> Option<Self> {
        // A wire may keep its parameters in an object of their own.
        let parameters = body.get("generationConfig").unwrap_or(body);
        let name = refused_parameter(words, parameters).or_else(|| refused_parameter(words, body))?;
        // Without these the wire has no request, or the session no calls.
        if matches!(name, "tools" | "stream" | "max_tokens") {
            return None;
        }
        let mut refused = self.0.clone();
        refused.insert(name.to_owned(), words.text.clone());
        Some(Self(refused))
    }
}

/// Finds the parameter of `body` that the words refuse.
pub(super) fn refused_parameter<'a>(words: &Words, body: &'a Value) -> Option<&'a str> {
    let sent = || {
        let rank = |name: &str| ["stream_options", "tool_choice", "tools", "stream"].iter().position(|known| *known == name);
        let mut sent: Vec<&str> = body.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        sent.retain(|name| !matches!(*name, "model" | "messages" | "system" | "contents" | "systemInstruction"));
        // The particular before the general: `tools` and `stream` are words of many messages.
        sent.sort_by_key(|name| rank(name).map_or(1, |rank| if rank < 2 { 0 } else { rank }));
        sent
    };
    if let Some(param) = &words.param {
        // `tools[0].function.parameters` is about one tool, not about tools.
        let is_about_one_tool = param.starts_with("tools") && param != "tools";
        if is_about_one_tool {
            return None;
        }
        let name = param.split(['.', '[']).next().unwrap_or(param);
        if let Some(found) = sent().into_iter().find(|sent| *sent == name) {
            return Some(found);
        }
    }
    let text = words.text.to_lowercase();
    let is_refusal =
        ["support", "allow", "permit", "unknown", "unrecognized", "unexpected", "require"].iter().any(|word| text.contains(word));
    sent().into_iter().find(|name| match *name {
        "tools" => is_refusal && (names(&text, "tools") || names(&text, "tool")),
        "tool_choice" => names(&text, "tool_choice") || text.contains("tool choice"),
        "stream" => is_refusal && (names(&text, "stream") || names(&text, "streaming")),
        "stream_options" | "max_tokens" | "max_completion_tokens" => names(&text, name),
        configured => is_refusal && names(&text, configured),
    })
}

/// Whether the text holds the name as a word of its own.
pub(super) fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}
