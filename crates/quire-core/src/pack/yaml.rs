//! YAML as a tree in which each node knows its place in the file.
//!
//! A key written twice stays there twice, for the reader of the fields to complain of; aliases are followed within a budget.
//! What the values mean is not known here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value as Json};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned};

use super::findings::{Findings, Place};
use crate::diagnostic::BYTE_ORDER_MARK;

/// A YAML node and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node<'a> {
    pub at: Place<'a>,
    pub value: Value<'a>,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// A number, and how it was written.
    Number(Number, String),
    Text(String),
    List(Vec<Node<'a>>),
    Map(Vec<(Node<'a>, Node<'a>)>),
}

/// Reads the YAML that stands at `start..end` of a file; a fault in it becomes a finding.
pub(super) fn parse<'a>(file: &'a str, text: &'a str, start: usize, end: usize, findings: &mut Findings<'a>) -> Option<Node<'a>> {
    let marked = text.get(start..end).unwrap_or_default();
    let start = start + marked.len() - marked.trim_start_matches(BYTE_ORDER_MARK).len();
    let source = Source { file, yaml: text.get(start..end).unwrap_or_default(), start };
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        budget: serde_saphyr::budget! { max_nodes: 20_000, max_aliases: 200, max_depth: 48 },
    };
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(source.yaml, options) {
        Ok(root) => Some(source.node(root)),
        Err(error) => {
            let at = error.location().map_or(Place::new(file, start..start), |location| source.place(location));
            let words = error.to_string();
            let message = words.split_once(" at line ").map_or(words.as_str(), |(message, _)| message);
            if message.contains("budget") {
                let help = "write out what is meant, without aliases of aliases";
                findings.error(at, "bad-yaml", "this YAML is larger, deeper or more repeated than a pack needs", help);
                return None;
            }
            findings.error(at, "bad-yaml", format!("this is not YAML: {message}"), help_for(message));
            None
        }
    }
}

fn help_for(message: &str) -> &'static str {
    if message.contains("mapping values") {
        "put a text that holds `: ` in quotes, or write it under `>`; check that keys of one level begin in one column"
    } else if message.contains("alias") {
        "put a text that begins with `*` in quotes, like \"*.plan\""
    } else if message.contains("quote") {
        "close the quote, or drop it"
    } else {
        "mend the line; put a text that begins with one of * & ! % @ ` [ { in quotes"
    }
}

impl<'a> Node<'a> {
    /// Returns the text of a scalar as it was written; none for lists, maps and nothing.
    pub fn as_written(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Number(_, text) => Some(text),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Says what it is, for a message.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(..) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Turns it into JSON; where a key stands twice, the last one counts.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Number(number, _) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                let pairs = entries.iter().map(|(key, node)| (key.as_written().unwrap_or_default().to_owned(), node.to_json()));
                Json::Object(pairs.collect())
            }
        }
    }

    /// Makes a tree of JSON that was written as one text; all of it stands at that text's place.
    pub fn of_json(at: Place<'a>, json: Json) -> Self {
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(flag),
            Json::Number(number) => Value::Number(number.clone(), number.to_string()),
            Json::String(text) => Value::Text(text),
            Json::Array(values) => Value::List(values.into_iter().map(|value| Self::of_json(at, value)).collect()),
            Json::Object(pairs) => {
                let entry = |(key, value)| (Self { at, value: Value::Text(key) }, Self::of_json(at, value));
                Value::Map(pairs.into_iter().map(entry).collect())
            }
        };
        Self { at, value }
    }
}

/// The YAML of a file, and where in the file it begins.
struct Source<'a> {
    file: &'a str,
    yaml: &'a str,
    start: usize,
}

impl<'a> Source<'a> {
    fn node(&self, Spanned { value, referenced, defined }: Spanned<Raw>) -> Node<'a> {
        let value = match value {
            Raw::Null => Value::Null,
            Raw::Bool(flag) => Value::Bool(flag),
            Raw::Number(number) => {
                let written = self.written(defined).map_or_else(|| number.to_string(), str::to_owned);
                Value::Number(number, written)
            }
            Raw::Text(text) => Value::Text(text),
            Raw::List(nodes) => Value::List(nodes.into_iter().map(|node| self.node(node)).collect()),
            Raw::Map(entries) => Value::Map(entries.into_iter().map(|(key, node)| (self.node(key), self.node(node))).collect()),
        };
        let mut at = self.place(referenced);
        // Containers come with the place of their opening mark; a block map has none, and begins with its first key.
        if let Value::Map(entries) = &value
            && let Some((key, _)) = entries.first()
            && at.start == at.end
        {
            at = key.at;
        }
        Node { at, value }
    }

    fn place(&self, location: Location) -> Place<'a> {
        let span = location.span();
        let (start, end) = match (span.byte_offset(), span.byte_len()) {
            (Some(offset), Some(length)) => (offset as usize, (offset + length) as usize),
            // Faults of syntax are placed by characters alone.
            _ => (self.bytes_of(span.offset()), self.bytes_of(span.offset() + span.len())),
        };
        let written = self.yaml.get(start..end).unwrap_or_default();
        let end = start + written.trim_end().len();
        Place::new(self.file, self.start + start..self.start + end)
    }

    fn bytes_of(&self, char_count: u64) -> usize {
        self.yaml.chars().take(char_count as usize).map(char::len_utf8).sum()
    }

    fn written(&self, location: Location) -> Option<&'a str> {
        let place = self.place(location);
        self.yaml.get(place.start - self.start..place.end - self.start).filter(|written| !written.is_empty())
    }
}

/// A node before its places are moved from the YAML to the file.
enum Raw {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Raw, E> {
        Number::from_f64(number).map(Raw::Number).ok_or_else(|| E::custom("a number without a value"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = access.next_element()? {
            nodes.push(node);
        }
        Ok(Raw::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = access.next_entry::<Spanned<Raw>, Spanned<Raw>>()? {
            if matches!(key.value, Raw::List(_) | Raw::Map(_)) {
                return Err(A::Error::custom("a key is a word, not a list or a map"));
            }
            entries.push((key, node));
        }
        Ok(Raw::Map(entries))
    }
}
