//! The little of Markdown that a manifest's body is read by: headings, fences, list items, tables.
//!
//! What stands in a fence is never taken for a heading, a list or a table.

use super::findings::{Place, Placed};
use super::frontmatter::{Line, lines};

/// A file's body as lines, each known to stand in a fence or not.
pub(super) struct Body<'a> {
    pub file: &'a str,
    pub lines: Vec<BodyLine<'a>>,
}

/// One line of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLine<'a> {
    /// First byte of the line in the file.
    pub start: usize,
    pub text: &'a str,
    pub part: Part,
}

/// What a line is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Prose,
    /// The line that opens or closes a fenced block.
    Fence,
    /// Inside a fenced block.
    Fenced,
}

impl<'a> Body<'a> {
    /// Reads a file from `start` on.
    pub fn of(file: &'a str, text: &'a str, start: usize) -> Self {
        let mut open: Option<&str> = None;
        let mut body = Self { file, lines: Vec::new() };
        for Line { start: at, text, .. } in lines(text.get(start..).unwrap_or_default()) {
            let mark = fence_mark(text);
            let part = match (open, mark) {
                (None, None) => Part::Prose,
                (None, Some(mark)) => {
                    open = Some(mark);
                    Part::Fence
                }
                (Some(opened), Some(mark)) if mark.starts_with(opened) && text.trim() == mark => {
                    open = None;
                    Part::Fence
                }
                (Some(_), _) => Part::Fenced,
            };
            body.lines.push(BodyLine { start: start + at, text, part });
        }
        body
    }

    /// Returns the lines below each heading of level 2 or deeper that `is_wanted`, to the next heading of its level or above.
    pub fn sections(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<&[BodyLine<'a>]> {
        let mut sections = Vec::new();
        let mut rest = self.lines.as_slice();
        while let Some(index) =
            rest.iter().position(|line| line.heading().is_some_and(|(level, words)| level > 1 && is_wanted(words)))
        {
            let level = rest[index].heading().map_or(0, |(level, _)| level);
            let below = &rest[index + 1..];
            let length =
                below.iter().position(|line| line.heading().is_some_and(|(other, _)| other <= level)).unwrap_or(below.len());
            let (section, after) = below.split_at(length);
            sections.push(section);
            rest = after;
        }
        sections
    }
}

impl<'a> BodyLine<'a> {
    /// Returns the level and the words of a heading.
    pub fn heading(&self) -> Option<(usize, &'a str)> {
        let text = self.prose()?.trim_start();
        let words = text.trim_start_matches('#');
        let level = text.len() - words.len();
        let is_heading = (1..=6).contains(&level) && (words.is_empty() || words.starts_with([' ', '\t', '\u{3000}']));
        is_heading.then(|| (level, words.trim().trim_end_matches('#').trim_end()))
    }

    /// Returns the indent in columns and the words of a list item.
    pub fn list_item(&self) -> Option<(usize, &'a str)> {
        let text = self.prose()?;
        let marked = text.trim_start();
        let indent = text.len() - marked.len();
        let words = match marked.strip_prefix(['-', '*', '+']) {
            Some(rest) => rest.strip_prefix([' ', '\t'])?,
            None => {
                let rest = marked.trim_start_matches(|letter: char| letter.is_ascii_digit());
                let number_length = marked.len() - rest.len();
                let words = rest.strip_prefix(['.', ')', '、', '）'])?;
                (1..=3).contains(&number_length).then_some(words)?
            }
        };
        let words = words.trim();
        let words = ["[ ]", "[x]", "[X]"].iter().find_map(|tick| words.strip_prefix(tick)).unwrap_or(words);
        Some((indent, words.trim()))
    }

    /// Returns the text of a line outside of fences.
    pub fn prose(&self) -> Option<&'a str> {
        (self.part == Part::Prose).then_some(self.text)
    }

    /// Returns the place of a piece of this line's text.
    pub fn place_of(&self, file: &'a str, piece: &str) -> Place<'a> {
        let offset = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len());
        let start = self.start + offset;
        Place::new(file, start..start + piece.len().min(self.text.len() - offset))
    }
}

/// A table's rows by the words of its header.
pub(super) struct Table<'a> {
    pub header: Vec<Placed<'a, &'a str>>,
    pub rows: Vec<Vec<Placed<'a, &'a str>>>,
}

/// Reads the tables among some lines.
pub(super) fn tables<'a>(file: &'a str, lines: &[BodyLine<'a>]) -> Vec<Table<'a>> {
    let mut tables = Vec::new();
    let mut rest = lines;
    while let [header, rule, below @ ..] = rest {
        let is_table = header.prose().is_some_and(|text| text.contains('|')) && rule.prose().is_some_and(is_rule);
        if !is_table {
            rest = &rest[1..];
            continue;
        }
        let length = below.iter().position(|line| !line.prose().is_some_and(|text| text.contains('|'))).unwrap_or(below.len());
        let (rows, after) = below.split_at(length);
        tables.push(Table { header: cells(file, header), rows: rows.iter().map(|row| cells(file, row)).collect() });
        rest = after;
    }
    tables
}

/// Takes a cell's or a heading's words out of the marks around them: `` **`draft`** `` and `[draft](a/file)` are `draft`.
pub(super) fn plain(words: &str) -> &str {
    let words = words.strip_prefix('[').and_then(|link| link.split_once(']')).map_or(words, |(words, _)| words);
    back_quoted(words).unwrap_or(words).trim_matches(|letter: char| matches!(letter, '*' | '_' | '`') || letter.is_whitespace())
}

/// Returns what stands between the first two back-quotes.
pub(super) fn back_quoted(words: &str) -> Option<&str> {
    let (_, after) = words.split_once('`')?;
    let (inside, _) = after.trim_start_matches('`').split_once('`')?;
    Some(inside.trim())
}

fn fence_mark(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let mark = text.get(..1).filter(|mark| matches!(*mark, "`" | "~"))?;
    let rest = text.trim_start_matches(mark);
    let length = text.len() - rest.len();
    let is_fence = length >= 3 && !(mark == "`" && rest.contains('`'));
    is_fence.then(|| text.get(..length)).flatten()
}

fn is_rule(text: &str) -> bool {
    text.contains('-') && text.chars().all(|letter| matches!(letter, '|' | '-' | ':') || letter.is_whitespace())
}

fn cells<'a>(file: &'a str, line: &BodyLine<'a>) -> Vec<Placed<'a, &'a str>> {
    let row = line.text.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(|cell| Placed { at: line.place_of(file, cell.trim()), value: cell.trim() }).collect()
}
