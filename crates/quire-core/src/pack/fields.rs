//! Reads the fields of a map strictly: a value of another type is an error, and a name nobody knows is told of.
//!
//! What restricts a skill must never be lost to a slip of the pen, so a misspelt restriction is an error, not a warning.

use unicode_normalization::UnicodeNormalization;

use super::findings::{Findings, Place, Placed};
use super::reference::{self, FieldMap};
use super::yaml::{Node, Value};
use crate::tag::{Pattern, Tag, TagError};

/// A map whose fields are taken one after the other.
pub(super) struct Fields<'a> {
    /// What may stand in it.
    map: &'static FieldMap,
    at: Place<'a>,
    entries: Vec<Field<'a>>,
    taken: Vec<&'static str>,
    /// Fields that were there without a value.
    empty: Vec<&'static str>,
}

struct Field<'a> {
    name: String,
    at: Place<'a>,
    node: Node<'a>,
}

/// Fields of former versions, and what to write now.
const RETIRED: [(&str, &str); 4] = [
    ("inputKeys", "write `inputTags`: the patterns of the tags it reads"),
    ("outputKeys", "write `outputTags`: the tags it may write"),
    ("steps", "drop it: the main agent decides which skill works next; say in the body what it should mind"),
    ("pipeline", "drop it: the main agent decides which skill works next; say in the body what it should mind"),
];

impl<'a> Fields<'a> {
    /// Takes a map apart. Anything else is an error; fields written twice are, too.
    pub fn of(map: &'static FieldMap, node: Node<'a>, findings: &mut Findings<'a>) -> Option<Self> {
        let at = node.at;
        let kind = node.kind();
        let Value::Map(pairs) = node.value else {
            let help = "write `field: value` lines";
            findings.error(at, "wrong-type", format!("{} is a map of fields, not {kind}", map.what), help);
            return None;
        };
        let mut fields = Self { map, at, entries: Vec::with_capacity(pairs.len()), taken: Vec::new(), empty: Vec::new() };
        for (key, node) in pairs {
            fields.add(key.as_written().unwrap_or_default().to_owned(), key.at, node, findings);
        }
        Some(fields)
    }

    /// Says where a missing field is to be reported, where that is not the first field.
    pub fn at(mut self, at: Place<'a>) -> Self {
        self.at = at;
        self
    }

    /// Adds a field that stands elsewhere.
    pub fn add(&mut self, name: String, at: Place<'a>, node: Node<'a>, findings: &mut Findings<'a>) {
        if self.entries.iter().any(|field| field.name == name) {
            let message = format!("`{name}` is written twice in {}", self.map.what);
            findings.error(at, "duplicate-key", message, "keep one of the two");
            return;
        }
        self.entries.push(Field { name, at, node });
    }

    /// Returns where a missing field is reported.
    pub fn place(&self) -> Place<'a> {
        self.at
    }

    /// Says whether a field is there and still untaken.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|field| field.name == name)
    }

    /// Returns the place of a field's name.
    pub fn place_of(&self, name: &str) -> Option<Place<'a>> {
        self.entries.iter().find(|field| field.name == name).map(|field| field.at)
    }

    /// Takes a field as it stands. One without a value is as good as not there.
    pub fn take(&mut self, name: &'static str) -> Option<Node<'a>> {
        assert!(self.map.field(name).is_some(), "`{name}` is read and not in the reference of {}", self.map.place);
        self.taken.push(name);
        let index = self.entries.iter().position(|field| field.name == name)?;
        let field = self.entries.remove(index);
        if field.node.value == Value::Null {
            self.empty.push(name);
            return None;
        }
        Some(field.node)
    }

    /// Says whether a taken field was there without a value.
    pub fn was_empty(&self, name: &str) -> bool {
        self.empty.contains(&name)
    }

    /// Takes a text that is not blank.
    pub fn text(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Option<Placed<'a, String>> {
        self.take(name).and_then(|node| text(name, node, findings))
    }

    /// Takes a text that must be there; reports where it is not, and goes on with an empty one.
    pub fn required_text(&mut self, name: &'static str, hint: &str, findings: &mut Findings<'a>) -> Placed<'a, String> {
        let is_there = self.has(name);
        let read = self.text(name, findings);
        if !is_there || self.was_empty(name) {
            self.missing(name, hint, findings);
        }
        read.unwrap_or(Placed { at: self.at, value: String::new() })
    }

    /// Reports a field that must be there.
    pub fn missing(&self, name: &str, hint: &str, findings: &mut Findings<'a>) {
        findings.error(self.at, "missing-field", format!("{} has no `{name}`", self.map.what), hint);
    }

    /// Takes a text or a number, as written.
    pub fn as_written(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Option<String> {
        let node = self.take(name)?;
        match node.value {
            Value::Text(text) | Value::Number(_, text) => Some(text),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
                wrong_type(name, &node, "a text or a number", "write one value on the line", findings);
                None
            }
        }
    }

    /// Takes one of a few words.
    pub fn word<T: Clone>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        findings: &mut Findings<'a>,
    ) -> Option<Placed<'a, T>> {
        let node = self.take(name)?;
        let value = self.map.field(name).map_or("", |field| field.value);
        assert!(words.iter().all(|(word, _)| value.contains(word)), "the reference of `{name}` lacks a word that is read");
        word(name, &node, words, findings)
    }

    /// Takes `true` or `false`.
    pub fn flag(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Option<bool> {
        let node = self.take(name)?;
        flag(name, &node, findings)
    }

    /// Takes a whole number from 1.
    pub fn count(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Option<u64> {
        let node = self.take(name)?;
        count(name, &node, findings)
    }

    /// Takes a list of texts.
    pub fn texts(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Vec<Placed<'a, String>> {
        self.take(name).map_or_else(Vec::new, |node| texts(name, node, findings))
    }

    /// Takes a list of patterns.
    pub fn patterns(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Vec<Placed<'a, Pattern>> {
        self.take(name).map_or_else(Vec::new, |node| patterns(name, node, findings))
    }

    /// Takes a list of tags.
    pub fn tags(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Vec<Placed<'a, Tag>> {
        let texts = self.texts(name, findings);
        texts.into_iter().filter_map(|text| parsed(Tag::parse, text, findings)).collect()
    }

    /// Takes one tag.
    pub fn tag(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Option<Placed<'a, Tag>> {
        let text = self.text(name, findings)?;
        parsed(Tag::parse, text, findings)
    }

    /// Takes a map from names to values.
    pub fn map(&mut self, name: &'static str, findings: &mut Findings<'a>) -> Vec<(Placed<'a, String>, Node<'a>)> {
        self.take(name).map_or_else(Vec::new, |node| map(name, node, findings))
    }

    /// Tells of every field that nobody took.
    pub fn finish(self, findings: &mut Findings<'a>) {
        let is_taken = |field: &reference::Field| self.taken.contains(&field.name);
        assert!(self.map.fields.iter().all(is_taken), "the reference of {} has a field that nobody reads", self.map.place);
        for Field { name, at, .. } in self.entries {
            unknown(self.map, &name, at, findings);
        }
    }
}

/// Reads a node as a text that is not blank.
pub(super) fn text<'a>(name: &str, node: Node<'a>, findings: &mut Findings<'a>) -> Option<Placed<'a, String>> {
    match node.value {
        Value::Text(text) if !text.trim().is_empty() => Some(Placed { at: node.at, value: text.trim().nfc().collect() }),
        Value::Text(_) => {
            findings.error(node.at, "wrong-type", format!("`{name}` is blank"), "write a text");
            None
        }
        Value::Bool(_) | Value::Number(..) => {
            let quoted = format!("put it in quotes: \"{}\"", node.as_written().unwrap_or_default());
            wrong_type(name, &node, "a text", &quoted, findings);
            None
        }
        Value::Null | Value::List(_) | Value::Map(_) => {
            wrong_type(
                name,
                &node,
                "a text",
                "write one text; put it in quotes where it holds `: ` or begins with a mark",
                findings,
            );
            None
        }
    }
}

/// Reads a node as one of a few words.
pub(super) fn word<'a, T: Clone>(
    name: &str,
    node: &Node<'a>,
    words: &[(&'static str, T)],
    findings: &mut Findings<'a>,
) -> Option<Placed<'a, T>> {
    let written = node.as_written().map(str::trim);
    let found = words.iter().find(|(word, _)| written == Some(word));
    if found.is_none() {
        let allowed: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let value = written.map_or_else(|| node.kind().to_owned(), |written| format!("`{written}`"));
        let help = format!("write {}", one_of(&allowed));
        findings.error(node.at, "unknown-value", format!("`{name}` cannot be {value}"), help);
    }
    found.map(|(_, value)| Placed { at: node.at, value: value.clone() })
}

/// Reads a node as true or false.
pub(super) fn flag<'a>(name: &str, node: &Node<'a>, findings: &mut Findings<'a>) -> Option<bool> {
    match node.as_written().map(str::trim) {
        Some("true" | "yes") => Some(true),
        Some("false" | "no") => Some(false),
        Some(_) | None => {
            wrong_type(name, node, "`true` or `false`", "write one of the two", findings);
            None
        }
    }
}

/// Reads a node as a whole number from 1.
pub(super) fn count<'a>(name: &str, node: &Node<'a>, findings: &mut Findings<'a>) -> Option<u64> {
    let number = match &node.value {
        Value::Number(number, _) => number.as_u64().filter(|number| *number > 0),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    };
    if number.is_none() {
        wrong_type(name, node, "a whole number from 1", "write digits, without quotes", findings);
    }
    number
}

/// Reads a node as a list of texts.
pub(super) fn texts<'a>(name: &str, node: Node<'a>, findings: &mut Findings<'a>) -> Vec<Placed<'a, String>> {
    list(name, node, findings).into_iter().filter_map(|node| text(name, node, findings)).collect()
}

/// Reads a node as a list of patterns.
pub(super) fn patterns<'a>(name: &str, node: Node<'a>, findings: &mut Findings<'a>) -> Vec<Placed<'a, Pattern>> {
    let texts = texts(name, node, findings);
    texts.into_iter().filter_map(|text| parsed(Pattern::parse, text, findings)).collect()
}

/// Reads a node as a list.
pub(super) fn list<'a>(name: &str, node: Node<'a>, findings: &mut Findings<'a>) -> Vec<Node<'a>> {
    match node.value {
        Value::List(nodes) => nodes,
        Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) | Value::Map(_) => {
            wrong_type(name, &node, "a list", "write each entry on its own line after `- `, or all of them as [a, b]", findings);
            Vec::new()
        }
    }
}

/// Reads a node as a map from names to values, each name once.
pub(super) fn map<'a>(name: &'static str, node: Node<'a>, findings: &mut Findings<'a>) -> Vec<(Placed<'a, String>, Node<'a>)> {
    let Value::Map(pairs) = node.value else {
        wrong_type(name, &node, "a map", "write `name: value` lines below it", findings);
        return Vec::new();
    };
    let mut entries: Vec<(Placed<'a, String>, Node<'a>)> = Vec::with_capacity(pairs.len());
    for (key, node) in pairs {
        let word: String = key.as_written().unwrap_or_default().trim().nfc().collect();
        if entries.iter().any(|(known, _)| known.value == word) {
            findings.error(key.at, "duplicate-key", format!("`{word}` is written twice in `{name}`"), "keep one of the two");
        } else {
            entries.push((Placed { at: key.at, value: word }, node));
        }
    }
    entries
}

/// Parses a placed text as a tag or a pattern.
pub(super) fn parsed<'a, T>(
    parse: impl Fn(&str) -> Result<T, TagError>,
    text: Placed<'a, String>,
    findings: &mut Findings<'a>,
) -> Option<Placed<'a, T>> {
    match parse(&text.value) {
        Ok(value) => Some(Placed { at: text.at, value }),
        Err(error) => {
            let words = error.to_string();
            let (message, help) = words.split_once("; ").unwrap_or((&words, "write parts joined by dots, like `chapter.draft`"));
            findings.error(text.at, "bad-tag", message, help);
            None
        }
    }
}

/// Reports a value of the wrong type.
pub(super) fn wrong_type<'a>(name: &str, node: &Node<'a>, wanted: &str, help: &str, findings: &mut Findings<'a>) {
    let value = node.as_written().map_or_else(|| node.kind().to_owned(), |written| format!("`{}`", shortened(written)));
    findings.error(node.at, "wrong-type", format!("`{name}` is {wanted}, not {value}"), help);
}

/// Reports a field that has no meaning.
pub(super) fn unknown<'a>(map: &'static FieldMap, name: &str, at: Place<'a>, findings: &mut Findings<'a>) {
    let what = map.what;
    let known: Vec<&str> = map.fields.iter().map(|field| field.name).collect();
    if looks_like_a_key(name) {
        let help =
            "take it out; keys belong to the model profile on your machine (`quire model add`), a pack names profiles only";
        findings.error(at, "key-in-pack", format!("`{name}` looks like a secret, and packs hold none"), help);
    } else if let Some((_, help)) = RETIRED.iter().find(|(retired, _)| *retired == name) {
        findings.warning(at, "retired-field", format!("`{name}` is no longer read"), *help);
    } else if let Some(meant) = nearest(name, &known) {
        let (message, help) = (format!("{what} has no field `{name}`"), format!("did you mean `{meant}`?"));
        if map.field(meant).is_some_and(|field| field.restricts) {
            findings.error(at, "unknown-field", message, help);
        } else {
            findings.warning(at, "unknown-field", message, help);
        }
    } else {
        let mut words: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
        words.sort_unstable();
        let help = format!("drop it; known here: {}", words.join(", "));
        findings.warning(at, "unknown-field", format!("{what} has no field `{name}`"), help);
    }
}

/// Says whether a field's name promises a secret.
pub(super) fn looks_like_a_key(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(plain.as_str(), "key" | "token" | "secret" | "password" | "authorization" | "bearer")
        || ["apikey", "apitoken", "accesstoken", "accesskey", "authtoken", "secretkey", "apisecret"]
            .iter()
            .any(|secret| plain.contains(secret))
}

/// Finds the word that was probably meant.
pub(super) fn nearest<'w>(written: &str, words: &[&'w str]) -> Option<&'w str> {
    let plain = |word: &str| -> Vec<char> {
        word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let written = plain(written);
    let nearest = words.iter().map(|word| (distance(&written, &plain(word)), *word)).min()?;
    let is_near = nearest.0 <= written.len().min(8) / 4;
    // `isolation` for `contextIsolation`: half of a name is meant as the whole.
    let holds = |word: &&&str| written.len() >= 5 && plain(word).windows(written.len()).any(|part| part == written);
    if is_near { Some(nearest.1) } else { words.iter().find(holds).copied() }
}

/// Returns how many letters must be put in, taken out, changed, or changed about with their neighbour.
fn distance(from: &[char], to: &[char]) -> usize {
    // Words too unlike in length need no table, however long somebody made one.
    if from.len().abs_diff(to.len()) > 2 {
        return usize::MAX;
    }
    let mut before_last = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let change = last[column] + usize::from(letter != other);
            let mut best = change.min(last[column + 1] + 1).min(current[column] + 1);
            let crossed = row > 0 && column > 0 && *letter == to[column - 1] && from[row - 1] == *other;
            if crossed {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[to.len()]
}

/// Joins words as `a, b or c`.
pub(super) fn one_of(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
    }
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line.to_owned(),
    }
}
