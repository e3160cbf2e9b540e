//! What is wrong with a file that a person wrote: where, what, and a way out.

use serde::Serialize;

/// What some editors put before a text: not a character of it, so it has no column.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

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
        let column =
            before.get(line_start..).unwrap_or_default().chars().filter(|letter| *letter != BYTE_ORDER_MARK).count() as u32 + 1;
        Self { start, end, line, column }
    }
}

impl Diagnostic {
    /// Says that a file's bytes are not UTF-8, at the first wrong one.
    ///
    /// The core sees texts only, so the one who reads the folder reports this, and leaves the file out.
    pub fn not_utf8(file: impl Into<String>, bytes: &[u8]) -> Self {
        let valid_count = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let before = bytes.get(..valid_count).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default();
        Self {
            severity: Severity::Error,
            code: "not-utf8",
            file: file.into(),
            span: Span::of(before, valid_count, valid_count),
            message: "this is not UTF-8 text".to_owned(),
            help: "save the file as UTF-8; other encodings of Chinese (GBK, Big5, UTF-16) cannot be told apart safely".to_owned(),
        }
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
