//! A reader of JSON as models write it: one pass, small faults mended outside of strings, the end of the text tolerated.
//!
//! JSON without faults is read as serde_json reads it, which also reads every number and every string here. What cannot
//! be mended without guessing (a quote too many inside a string, a key without quotes) is not mended.

use serde_json::{Map, Number, Value};

use super::Found;

/// Deeper nesting is given up; serde_json's own limit.
const DEPTH_MAX: usize = 128;

/// Reads a text that is one object or list from its first to its last character.
pub(super) fn whole(text: &str) -> Option<Found> {
    let mut reader = Reader { text, at: 0, repaired: false };
    let start = reader.peek()?;
    let (value, cut) = opens(start).then(|| reader.value(0))?.ok()?.parts();
    reader.skip_space();
    reader.peek().is_none().then_some(Found { value, repaired: reader.repaired, cut })
}

/// Finds the longest object or list in a text.
pub(super) fn longest(text: &str) -> Option<Found> {
    let strict = serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
    if let Some(value) = strict {
        return Some(Found { value, repaired: false, cut: false });
    }
    // Each start that leads nowhere is paid for: a text of nothing but starts takes no more than a few passes.
    let mut work = text.len() * 16 + 4096;
    let mut best: Option<(usize, Found)> = None;
    let mut at = 0;
    while let Some(found) = text.get(at..).unwrap_or_default().find(['{', '[']) {
        let start = at + found;
        let mut reader = Reader { text, at: start, repaired: false };
        let outcome = reader.value(0);
        let length = reader.at - start;
        match outcome {
            Ok(read) => {
                let (value, cut) = read.parts();
                if best.as_ref().is_none_or(|(longest, _)| length > *longest) {
                    best = Some((length, Found { value, repaired: reader.repaired, cut }));
                }
                at = reader.at;
            }
            // What lies inside of something too deep is not what was meant.
            Err(Fault::TooDeep) => return None,
            Err(Fault::NotJson) => {
                at = start + 1;
                let Some(left) = work.checked_sub(length) else { break };
                work = left;
            }
        }
    }
    best.map(|best| best.1)
}

fn opens(character: char) -> bool {
    matches!(character, '{' | '[')
}

/// A value, or what is there of it before the text ends.
enum Read<T> {
    Whole(T),
    Cut(T),
}

impl<T> Read<T> {
    fn parts(self) -> (T, bool) {
        match self {
            Self::Whole(value) => (value, false),
            Self::Cut(value) => (value, true),
        }
    }
}

enum Fault {
    NotJson,
    TooDeep,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    repaired: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).expect("the reader stands between characters")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, character: char) {
        self.at += character.len_utf8();
    }

    fn skip_space(&mut self) {
        while let Some(character) = self.peek() {
            match character {
                ' ' | '\t' | '\n' | '\r' => {}
                '\u{feff}' => self.repaired = true,
                other if other.is_whitespace() => self.repaired = true,
                _ => return,
            }
            self.skip(character);
        }
    }

    /// Takes a separator, also in its full-width form.
    fn takes(&mut self, separator: char, full_width: char) -> bool {
        let Some(found) = self.peek().filter(|next| *next == separator || *next == full_width) else { return false };
        self.repaired |= found != separator;
        self.skip(found);
        true
    }

    /// Reads any value. Cut before anything of it can be told: `Cut(Null)`, which the caller drops.
    fn value(&mut self, depth: usize) -> Result<Read<Value>, Fault> {
        if depth >= DEPTH_MAX {
            return Err(Fault::TooDeep);
        }
        match self.peek() {
            None => Ok(Read::Cut(Value::Null)),
            Some('{') => self.object(depth),
            Some('[') => self.list(depth),
            Some('"' | '“' | '”') => Ok(match self.string()? {
                Read::Whole(text) => Read::Whole(Value::String(text)),
                Read::Cut(text) => Read::Cut(Value::String(text)),
            }),
            Some(_) => self.literal(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Read<Value>, Fault> {
        let mut fields = Map::new();
        self.skip('{');
        loop {
            self.skip_space();
            match self.peek() {
                None => return Ok(Read::Cut(Value::Object(fields))),
                Some('}') => {
                    self.repaired |= !fields.is_empty();
                    self.skip('}');
                    return Ok(Read::Whole(Value::Object(fields)));
                }
                Some('"' | '“' | '”') => {}
                Some(_) => return Err(Fault::NotJson),
            }
            let Read::Whole(key) = self.string()? else { return Ok(Read::Cut(Value::Object(fields))) };
            self.skip_space();
            if !self.takes(':', '：') {
                return self.cut_or_fault(Value::Object(fields));
            }
            self.skip_space();
            match self.value(depth + 1)? {
                Read::Whole(value) => fields.insert(key, value),
                Read::Cut(Value::Null) => return Ok(Read::Cut(Value::Object(fields))),
                Read::Cut(value) => {
                    fields.insert(key, value);
                    return Ok(Read::Cut(Value::Object(fields)));
                }
            };
            self.skip_space();
            if self.takes('}', '}') {
                return Ok(Read::Whole(Value::Object(fields)));
            }
            if !self.takes(',', '，') {
                return self.cut_or_fault(Value::Object(fields));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Read<Value>, Fault> {
        let mut values = vec![];
        self.skip('[');
        loop {
            self.skip_space();
            match self.peek() {
                None => return Ok(Read::Cut(Value::Array(values))),
                Some(']') => {
                    self.repaired |= !values.is_empty();
                    self.skip(']');
                    return Ok(Read::Whole(Value::Array(values)));
                }
                Some(_) => {}
            }
            match self.value(depth + 1)? {
                Read::Whole(value) => values.push(value),
                Read::Cut(Value::Null) => return Ok(Read::Cut(Value::Array(values))),
                Read::Cut(value) => {
                    values.push(value);
                    return Ok(Read::Cut(Value::Array(values)));
                }
            }
            self.skip_space();
            if self.takes(']', ']') {
                return Ok(Read::Whole(Value::Array(values)));
            }
            if !self.takes(',', '，') {
                return self.cut_or_fault(Value::Array(values));
            }
        }
    }

    fn cut_or_fault(&self, value: Value) -> Result<Read<Value>, Fault> {
        if self.peek().is_none() { Ok(Read::Cut(value)) } else { Err(Fault::NotJson) }
    }

    /// Reads a number, `true`, `false` or `null`. One that touches the text's end may go on: it is cut.
    fn literal(&mut self) -> Result<Read<Value>, Fault> {
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.');
        let rest = self.rest();
        let length = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        let touches_end = length == rest.len();
        let may_be_number = word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let may_be_word = !word.is_empty() && ["true", "false", "null"].iter().any(|whole| whole.starts_with(word));
        if touches_end && (may_be_number || may_be_word) {
            self.at += length;
            return Ok(Read::Cut(Value::Null));
        }
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ if may_be_number => Value::Number(serde_json::from_str::<Number>(word).map_err(|_| Fault::NotJson)?),
            _ => return Err(Fault::NotJson),
        };
        self.at += length;
        Ok(Read::Whole(value))
    }

    /// Reads a string between straight quotes, or between curly ones, within which curly ones pair up.
    fn string(&mut self) -> Result<Read<String>, Fault> {
        let open = self.peek().expect("a string begins with its quote");
        self.skip(open);
        self.repaired |= open != '"';
        let mut json = String::from('"');
        let mut inner_quotes = 0_usize;
        // Where the last escape began: one that the text's end cuts is dropped.
        let mut escape_start = None;
        while let Some(character) = self.peek() {
            let closes = match (open, character) {
                ('"', '"') | ('”', '”') => true,
                ('“', '”') => inner_quotes == 0,
                _ => false,
            };
            self.skip(character);
            if closes {
                json.push('"');
                return serde_json::from_str(&json).map(Read::Whole).map_err(|_| Fault::NotJson);
            }
            match character {
                '\\' => {
                    escape_start = Some(json.len());
                    json.push('\\');
                    if let Some(escaped) = self.peek() {
                        self.skip(escaped);
                        json.push(escaped);
                    }
                    continue;
                }
                '“' => inner_quotes += 1,
                '”' => inner_quotes = inner_quotes.saturating_sub(1),
                _ => {}
            }
            match character {
                '"' => json.push_str("\\\""),
                control if control < ' ' => {
                    self.repaired = true;
                    json.push_str(&format!("\\u{:04x}", u32::from(control)));
                }
                other => json.push(other),
            }
        }
        Ok(Read::Cut(cut_string(json, escape_start)?))
    }
}

/// What is there of a string that the text's end cuts: all of it, but for half an escape.
fn cut_string(mut json: String, escape_start: Option<usize>) -> Result<String, Fault> {
    let whole = |json: &str| serde_json::from_str::<String>(&format!("{json}\"")).ok();
    if let Some(text) = whole(&json) {
        return Ok(text);
    }
    // `\ud83d\u` is half an escape too: its first half begins six bytes earlier.
    let starts = escape_start.into_iter().flat_map(|start| [Some(start), start.checked_sub(6)]).flatten();
    for start in starts {
        if json.is_char_boundary(start) && start > 0 {
            json.truncate(start);
            if let Some(text) = whole(&json) {
                return Ok(text);
            }
        }
    }
    Err(Fault::NotJson)
}
