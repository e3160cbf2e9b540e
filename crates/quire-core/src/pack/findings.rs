//! Where things stand in a pack's files, and what was found wrong there.
//!
//! A [`Place`] is two byte offsets in a file; lines and columns are counted once, at the end, for what was found.

use std::ops::Range;

use super::PackFiles;
use crate::diagnostic::{BYTE_ORDER_MARK, Diagnostic, Severity, Span};

/// A range of bytes in a file of the pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    pub file: &'a str,
    pub start: usize,
    pub end: usize,
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed<'a, T> {
    pub at: Place<'a>,
    pub value: T,
}

impl<'a> Place<'a> {
    pub fn new(file: &'a str, range: Range<usize>) -> Self {
        Self { file, start: range.start, end: range.end }
    }

    /// The very beginning of a file, also of one that is not there.
    pub fn top(file: &'a str) -> Self {
        Self { file, start: 0, end: 0 }
    }
}

impl<'a, T> Placed<'a, T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Placed<'a, U> {
        Placed { at: self.at, value: change(self.value) }
    }
}

/// Everything found wrong so far, in the order of finding.
#[derive(Debug, Default)]
pub(super) struct Findings<'a> {
    found: Vec<Finding<'a>>,
}

#[derive(Debug)]
struct Finding<'a> {
    at: Place<'a>,
    severity: Severity,
    code: &'static str,
    message: String,
    help: String,
}

impl<'a> Findings<'a> {
    pub fn error(&mut self, at: Place<'a>, code: &'static str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), help.into());
        self.found.push(Finding { at, severity: Severity::Error, code, message, help });
    }

    pub fn warning(&mut self, at: Place<'a>, code: &'static str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), help.into());
        self.found.push(Finding { at, severity: Severity::Warning, code, message, help });
    }

    /// Counts lines and columns, and sorts by file and place.
    pub fn into_diagnostics(mut self, files: &PackFiles) -> Vec<Diagnostic> {
        self.found.sort_by_key(|finding| finding.at);
        let mut counter = LineCounter::of("", "");
        let mut diagnostics = Vec::with_capacity(self.found.len());
        for Finding { at, severity, code, message, help } in self.found {
            if counter.file != at.file {
                counter = LineCounter::of(at.file, files.0.get(at.file).map_or("", |text| text));
            }
            let span = counter.span(at.start, at.end);
            diagnostics.push(Diagnostic { severity, code, file: at.file.to_owned(), span, message, help });
        }
        diagnostics
    }
}

/// Turns offsets of one file into spans, rising ones in one pass: a file of a thousand faults is still read once.
struct LineCounter<'a> {
    file: &'a str,
    text: &'a str,
    reached: Span,
}

impl<'a> LineCounter<'a> {
    fn of(file: &'a str, text: &'a str) -> Self {
        Self { file, text, reached: Span { start: 0, end: 0, line: 1, column: 1 } }
    }

    fn span(&mut self, start: usize, end: usize) -> Span {
        let start = self.text.floor_char_boundary(start);
        let end = self.text.ceil_char_boundary(end).max(start);
        let between = self.text.get(self.reached.start..start).unwrap_or_default();
        for letter in between.chars() {
            match letter {
                '\n' => (self.reached.line, self.reached.column) = (self.reached.line + 1, 1),
                BYTE_ORDER_MARK => {}
                _ => self.reached.column += 1,
            }
        }
        self.reached = Span { start, end, ..self.reached };
        self.reached
    }
}
