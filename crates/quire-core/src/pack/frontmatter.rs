//! Splits a file into its front matter and its body.
//!
//! Editors' leftovers do no harm: a byte order mark, empty lines above, spaces after `---`, line ends of any kind.

use super::fields::Fields;
use super::findings::{Findings, Place};
use super::reference::FieldMap;
use super::yaml;
use crate::diagnostic::BYTE_ORDER_MARK;

/// A file with front matter.
pub(super) struct Document<'a> {
    pub fields: Fields<'a>,
    /// The first byte after the front matter.
    pub body_start: usize,
}

/// Reads the front matter of a file, and finds its body. What is wrong is reported; then there is no document.
pub(super) fn read<'a>(
    map: &'static FieldMap,
    file: &'a str,
    text: &'a str,
    findings: &mut Findings<'a>,
) -> Option<Document<'a>> {
    let mut lines = lines(text).skip_while(|line| line.words().is_empty());
    let Some(opening) = lines.next().filter(|line| line.words() == "---") else {
        let help = "begin the file with a line `---`, the fields (`name: …`), and another line `---`";
        findings.error(Place::top(file), "no-front-matter", "the file has no front matter", help);
        return None;
    };
    let fence = Place::new(file, opening.fence_start()..opening.fence_start() + "---".len());
    let yaml_start = opening.end;
    let Some(closing) = lines.find(|line| !line.text.starts_with([' ', '\t']) && matches!(line.text.trim_end(), "---" | "..."))
    else {
        let help = "write a line `---` after the last field";
        findings.error(fence, "open-front-matter", "the front matter is never closed", help);
        return None;
    };
    let root = yaml::parse(file, text, yaml_start, closing.start, findings)?;
    let root = if root.value == yaml::Value::Null { yaml::Node { at: fence, value: yaml::Value::Map(Vec::new()) } } else { root };
    let fields = Fields::of(map, root, findings)?.at(fence);
    Some(Document { fields, body_start: closing.end })
}

/// Returns the text from `start` on as it is given to a model: one kind of line end, no blank edges.
pub(super) fn body(text: &str, start: usize) -> String {
    let body = text.get(start..).unwrap_or_default();
    body.trim_start_matches(BYTE_ORDER_MARK).replace("\r\n", "\n").trim().to_owned()
}

/// A line with its place in the text it is of; `end` is after its line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub start: usize,
    pub end: usize,
    pub text: &'a str,
}

impl<'a> Line<'a> {
    fn words(&self) -> &'a str {
        self.text.trim_start_matches(BYTE_ORDER_MARK).trim_end()
    }

    fn fence_start(&self) -> usize {
        self.start + self.text.len() - self.text.trim_start_matches(BYTE_ORDER_MARK).len()
    }
}

/// Cuts a text into lines.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |whole| {
        let line = Line { start, end: start + whole.len(), text: whole.trim_end_matches(['\n', '\r']) };
        start = line.end;
        line
    })
}
