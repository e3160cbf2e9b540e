//! What is wrong with a file that a person wrote: where, what, and a way out.

use serde::Serialize;

/// One finding in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Whether the pack can still be used.
    pub severity: Severity,
    /// A short name of the kind of finding, `kebab-case`.
    pub code: &'static str,
    /// The file's path in the pack, with `/`.
    pub file: String,
    /// Where in the file.
    pub span: Span,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Whether a pack with this finding starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does not.
    Error,
    /// It does.
    Warning,
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Span {
    /// First byte, from 0.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Line of `start`, from 1.
    pub line: u32,
    /// Column of `start` in characters, from 1.
    pub column: u32,
}

impl Span {
    /// Makes a span of bytes `start..end` of `text`, which must be character borders.
    pub fn of(text: &str, start: usize, end: usize) -> Self {
        let before = text.get(..start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.get(line_start..).unwrap_or_default().chars().count() as u32 + 1;
        Self { start, end, line, column }
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}:{}: {severity}: {}", self.file, self.span.line, self.span.column, self.message)
    }
}
