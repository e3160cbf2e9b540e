//! How text looks on a terminal: colours, wrapping, Markdown, and what changed between two versions.
//!
//! Where there is no terminal, or `NO_COLOR` is set, nothing is coloured; where there is no terminal, nothing is wrapped
//! either, and texts stay as they were written. Text of models may hold anything: what would steer the terminal is taken
//! out first.

use std::io::IsTerminal;

use similar::{ChangeTag, TextDiff};
use unicode_width::UnicodeWidthStr;

use crate::out;

/// Longer lines are hard to read.
const TEXT_COLUMNS_MAX: usize = 96;
/// A terminal that does not say how wide it is.
const COLUMNS_DEFAULT: usize = 80;
/// Two versions less alike than that are shown one after the other.
const LIKENESS_MIN: f32 = 0.4;
/// What stayed between two changes and is narrower goes with them: a sentence is read in phrases.
const STAYED_COLUMNS_MIN: usize = 12;

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// A terminal reads it: lines are wrapped to its width.
    pub is_terminal: bool,
    /// Colours are welcome.
    pub has_colours: bool,
}

/// One way to set a piece of text apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Bold,
    Dim,
    Italic,
    Removed,
    Added,
    Code,
    Accent,
}

impl Style {
    /// A terminal's numbers to begin and to end it.
    fn numbers(self) -> (&'static str, &'static str) {
        match self {
            Self::Bold => ("1", "22"),
            Self::Dim => ("2", "22"),
            Self::Italic => ("3", "23"),
            // Struck through as well: not everybody tells red from green.
            Self::Removed => ("9;31", "29;39"),
            Self::Added => ("32", "39"),
            Self::Code => ("36", "39"),
            Self::Accent => ("35", "39"),
        }
    }
}

impl Paint {
    /// Text as it is.
    pub const PLAIN: Self = Self { is_terminal: false, has_colours: false };

    /// Looks at what stands behind stdout.
    pub fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// Looks at what stands behind stderr.
    pub fn of_stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { is_terminal, has_colours: is_terminal && !wants_none && !is_dumb }
    }

    /// Returns the terminal's width in columns.
    pub fn columns(self) -> usize {
        let size = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        size.filter(|columns| *columns > 0).unwrap_or(COLUMNS_DEFAULT)
    }

    /// Returns the terminal's height in rows.
    pub fn rows(self) -> usize {
        let size = terminal_size::terminal_size().map(|(_, height)| usize::from(height.0));
        size.filter(|rows| *rows > 0).unwrap_or(24)
    }

    /// Sets text apart as a heading.
    pub fn bold(self, text: &str) -> String {
        self.set(Style::Bold, text)
    }

    /// Lets text step back.
    pub fn dim(self, text: &str) -> String {
        self.set(Style::Dim, text)
    }

    /// Marks what the person can choose, or has chosen.
    pub fn accent(self, text: &str) -> String {
        self.set(Style::Accent, text)
    }

    fn set(self, style: Style, text: &str) -> String {
        if !self.has_colours || text.is_empty() {
            return text.to_owned();
        }
        let (begin, end) = style.numbers();
        format!("\x1b[{begin}m{text}\x1b[{end}m")
    }

    /// Wraps a paragraph to the terminal; the second line and those after it begin with `hang`.
    pub fn wrap(self, text: &str, first: &str, hang: &str) -> String {
        if !self.is_terminal {
            return format!("{first}{}", text.replace('\n', &format!("\n{hang}")));
        }
        let columns = self.columns().clamp(8, TEXT_COLUMNS_MAX);
        let options = textwrap::Options::new(columns)
            .initial_indent(first)
            .subsequent_indent(hang)
            .word_separator(textwrap::WordSeparator::UnicodeBreakProperties)
            .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
        textwrap::fill(text, options)
    }

    /// Shows Markdown. Off a terminal it stays as it was written.
    pub fn markdown(self, text: &str) -> String {
        let text = printable(text);
        if !self.is_terminal {
            return text;
        }
        let mut shown = vec![];
        let mut is_code = false;
        let mut table: Vec<&str> = vec![];
        for line in text.lines() {
            let is_row = !is_code && line.trim_start().starts_with('|');
            if !is_row && !table.is_empty() {
                shown.push(self.table(&std::mem::take(&mut table)));
            }
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                shown.push(self.dim(line));
            } else if is_code {
                shown.push(self.set(Style::Code, line));
            } else if is_row {
                table.push(line);
            } else {
                shown.push(self.block(line));
            }
        }
        if !table.is_empty() {
            shown.push(self.table(&table));
        }
        shown.join("\n")
    }

    fn block(self, line: &str) -> String {
        let trimmed = line.trim_start();
        let indent: String = line.chars().take_while(|letter| letter.is_whitespace()).collect();
        let indent_columns = indent.width();
        if let Some(heading) = heading(trimmed) {
            return self.wrap(&self.bold(heading), "", "");
        }
        if is_rule(trimmed) {
            return self.dim(&"─".repeat(self.columns().min(TEXT_COLUMNS_MAX).min(40)));
        }
        if let Some(quoted) = trimmed.strip_prefix('>') {
            let bar = self.dim("│ ");
            return self.wrap(&self.spans(quoted.trim_start()), &bar, &bar);
        }
        if let Some((mark, rest)) = list_mark(trimmed) {
            let hang = " ".repeat(indent_columns + mark.width() + 1);
            return self.wrap(&self.spans(rest), &format!("{indent}{mark} "), &hang);
        }
        self.wrap(&self.spans(trimmed), &indent, &indent)
    }

    /// Shows `**bold**`, `*italic*` and `` `code` `` inside a line; a mark without its partner stays.
    fn spans(self, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let mut shown = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['*', '`', '_']) {
            let (before, from) = rest.split_at(at);
            shown.push_str(before);
            let may_open = |mark: &str| {
                // Inside a word, `_` is a letter: file_name_like_this.
                !mark.starts_with('_') || !before.ends_with(char::is_alphanumeric)
            };
            let found =
                [("**", Style::Bold), ("__", Style::Bold), ("`", Style::Code), ("*", Style::Italic), ("_", Style::Italic)]
                    .into_iter()
                    .filter(|(mark, _)| from.starts_with(mark) && may_open(mark))
                    .find_map(|(mark, style)| {
                        let inner = from.strip_prefix(mark)?;
                        let (inside, after) = inner.split_once(mark)?;
                        let is_span = !inside.is_empty() && !inside.starts_with(' ') && !inside.ends_with(' ');
                        is_span.then_some((style, inside, after))
                    });
            match found {
                Some((style, inside, after)) => {
                    let inside = if style == Style::Code { inside.to_owned() } else { self.spans(inside) };
                    shown.push_str(&self.set(style, &inside));
                    rest = after;
                }
                None => {
                    let mark: String = from.chars().take(1).collect();
                    shown.push_str(&mark);
                    rest = from.strip_prefix(&mark).unwrap_or_default();
                }
            }
        }
        shown.push_str(rest);
        shown
    }

    /// Shows a table with its columns aligned; one that is too wide for the terminal becomes a list of its rows.
    fn table(self, lines: &[&str]) -> String {
        let cells = |line: &&str| -> Vec<String> {
            line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let is_divider = |row: &Vec<String>| row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-:".contains(c)));
        let rows: Vec<Vec<String>> = lines.iter().map(cells).filter(|row| !is_divider(row)).collect();
        let column_count = rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..column_count)
            .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or_default())
            .collect();
        let fits = widths.iter().sum::<usize>() + 3 * column_count.saturating_sub(1) <= self.columns();
        let line = |(index, row): (usize, &Vec<String>)| {
            if !fits {
                let cells = row.iter().filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join(" · ");
                return self.wrap(&self.spans(&cells), "- ", "  ");
            }
            let cells: Vec<String> = (row.iter().zip(&widths))
                .map(|(cell, width)| {
                    let shown = if index == 0 { self.bold(cell) } else { self.spans(cell) };
                    format!("{shown}{}", " ".repeat(width - cell.width()))
                })
                .collect();
            cells.join(&self.dim(" │ ")).trim_end().to_owned()
        };
        rows.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Shows what changed from one text to another: changed paragraphs with their old and new words, and `skipped` for
    /// how many lines stand unchanged between them. None where nothing did.
    pub fn changes(self, old: &str, new: &str, skipped: impl Fn(usize) -> String) -> Option<String> {
        let (old, new) = (printable(old), printable(new));
        let lines = TextDiff::from_lines(old.as_str(), new.as_str());
        let (mut removed, mut added, mut unchanged) = (String::new(), String::new(), 0);
        let mut shown = vec![];
        let mut has_changed = false;
        let changes: Vec<_> = lines.iter_all_changes().map(|change| (change.tag(), change.value())).collect();
        for (tag, line) in changes.into_iter().chain([(ChangeTag::Equal, "")]) {
            match tag {
                ChangeTag::Delete => removed.push_str(line),
                ChangeTag::Insert => added.push_str(line),
                ChangeTag::Equal => {
                    let is_change = !(removed.is_empty() && added.is_empty());
                    if is_change {
                        if unchanged > 0 {
                            shown.push(self.dim(&skipped(unchanged)));
                        }
                        shown.push(self.words_changed(removed.trim_end_matches('\n'), added.trim_end_matches('\n')));
                        (removed, added, unchanged, has_changed) = (String::new(), String::new(), 0, true);
                    }
                    unchanged += usize::from(!line.trim().is_empty());
                }
            }
        }
        if unchanged > 0 {
            shown.push(self.dim(&skipped(unchanged)));
        }
        has_changed.then(|| shown.join("\n"))
    }

    fn words_changed(self, old: &str, new: &str) -> String {
        let diff = TextDiff::from_unicode_words(old, new);
        let mut shown = String::new();
        if diff.ratio() < LIKENESS_MIN {
            shown =
                [self.removed(old), self.added(new)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        } else {
            for piece in pieces(diff.iter_all_changes().map(|change| (change.tag(), change.value()))) {
                match piece {
                    Piece::Stayed(text) => shown.push_str(&text),
                    Piece::Changed { old, new } => {
                        shown.push_str(&self.removed(&old));
                        shown.push_str(&self.added(&new));
                    }
                }
            }
        }
        shown.lines().map(|line| self.wrap(line, "", "")).collect::<Vec<_>>().join("\n")
    }

    fn removed(self, text: &str) -> String {
        self.marked(Style::Removed, "[-", text, "-]")
    }

    fn added(self, text: &str) -> String {
        self.marked(Style::Added, "{+", text, "+}")
    }

    /// Colours each line by itself, so that wrapping cannot tear a mark from its line; without colours, by brackets.
    fn marked(self, style: Style, open: &str, text: &str, close: &str) -> String {
        let one = |line: &str| match (line.trim().is_empty(), self.has_colours) {
            (true, _) => line.to_owned(),
            (false, true) => self.set(style, line),
            (false, false) => format!("{open}{line}{close}"),
        };
        text.split('\n').map(one).collect::<Vec<_>>().join("\n")
    }
}

/// A stretch of a text that was compared word by word.
enum Piece {
    Stayed(String),
    Changed { old: String, new: String },
}

/// Draws words together to phrases: neighbours of one kind, and what little stayed between two changes.
fn pieces<'a>(words: impl Iterator<Item = (ChangeTag, &'a str)>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![];
    for (tag, word) in words {
        match (tag, pieces.last_mut()) {
            (ChangeTag::Equal, Some(Piece::Stayed(text))) => text.push_str(word),
            (ChangeTag::Equal, _) => pieces.push(Piece::Stayed(word.to_owned())),
            (ChangeTag::Delete, Some(Piece::Changed { old, .. })) => old.push_str(word),
            (ChangeTag::Insert, Some(Piece::Changed { new, .. })) => new.push_str(word),
            (ChangeTag::Delete, _) => pieces.push(Piece::Changed { old: word.to_owned(), new: String::new() }),
            (ChangeTag::Insert, _) => pieces.push(Piece::Changed { old: String::new(), new: word.to_owned() }),
        }
    }
    let mut phrases: Vec<Piece> = vec![];
    for piece in pieces {
        let Piece::Changed { old, new } = piece else {
            phrases.push(piece);
            continue;
        };
        let stayed = phrases.pop_if(|piece| match piece {
            Piece::Stayed(text) => text.width() < STAYED_COLUMNS_MIN && !text.contains('\n'),
            Piece::Changed { .. } => false,
        });
        match (stayed, phrases.last_mut()) {
            (Some(Piece::Stayed(between)), Some(Piece::Changed { old: old_before, new: new_before })) => {
                old_before.push_str(&format!("{between}{old}"));
                new_before.push_str(&format!("{between}{new}"));
            }
            (stayed, _) => {
                phrases.extend(stayed);
                phrases.push(Piece::Changed { old, new });
            }
        }
    }
    phrases
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    ((1..=6).contains(&level) && rest.starts_with(' ')).then(|| rest.trim())
}

fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && ["-", "*", "_"].iter().any(|mark| line.replace(mark, "").is_empty())
}

/// Reads `- `, `* `, `+ ` as a bullet, and `1. ` as itself.
fn list_mark(line: &str) -> Option<(&str, &str)> {
    let (mark, rest) = line.split_once(' ')?;
    if matches!(mark, "-" | "*" | "+") {
        return Some(("•", rest.trim_start()));
    }
    let digits = mark.strip_suffix(['.', ')', '、'])?;
    let is_number = !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit());
    is_number.then(|| (mark, rest.trim_start()))
}

/// Makes text of others harmless for a terminal, also where colours of our own stand beside it: control characters
/// become escapes, and marks that turn the direction of what follows go.
pub fn printable(text: &str) -> String {
    let turns = |letter: &char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    out::printable(text).chars().filter(|letter| !turns(letter)).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{Paint, printable};

    const COLOURED: Paint = Paint { is_terminal: true, has_colours: true };

    fn seen(text: &str) -> String {
        text.replace('\x1b', "␛")
    }

    #[test]
    fn markdown_is_shown_and_wide_characters_stay_aligned() {
        let text = "# 灯塔\n\n她**擦**了透镜，*并不*需要。`tag_name_x` 照旧。\n- 一\n  1. 二\n> 引\n\n| 名 | 值 |\n|---|---|\n| 体力 | 7 |\n| hp | 十二 |\n\n---\n2 * 3 * 4";
        expect![[r#"
            ␛[1m灯塔␛[22m

            她␛[1m擦␛[22m了透镜，␛[3m并不␛[23m需要。␛[36mtag_name_x␛[39m 照旧。
            • 一
              1. 二
            ␛[2m│ ␛[22m引

            ␛[1m名␛[22m  ␛[2m │ ␛[22m␛[1m值␛[22m
            体力␛[2m │ ␛[22m7
            hp  ␛[2m │ ␛[22m十二

            ␛[2m────────────────────────────────────────␛[22m
            2 * 3 * 4"#]]
        .assert_eq(&seen(&COLOURED.markdown(text)));
    }

    #[test]
    fn changes_show_the_words_and_skip_what_stayed() {
        let old = "One.\nTwo.\nThe lamp was dark.\nEnd.\n";
        let new = "One.\nTwo.\nThe lamp was never lit.\nEnd.\n";
        let skipped = |count: usize| format!("({count} lines)");
        expect![[r#"
            (2 lines)
            The lamp was [-dark-]{+never lit+}.
            (1 lines)"#]]
        .assert_eq(&Paint::PLAIN.changes(old, new, skipped).unwrap_or_default());
        assert_eq!(Paint::PLAIN.changes(old, old, skipped), None);
    }

    #[test]
    fn what_little_stayed_between_two_changes_goes_with_them() {
        let changes = |old: &str, new: &str| Paint::PLAIN.changes(old, new, |_| String::new()).unwrap_or_default();
        expect!["She wiped the lens, [-which did not-]{+as she always did+}, until the oil ran low."].assert_eq(&changes(
            "She wiped the lens, which did not, until the oil ran low.",
            "She wiped the lens, as she always did, until the oil ran low.",
        ));
        expect!["她[-仔细地擦了透镜，虽然-]{+擦了透镜，其实+}并不需要。"]
            .assert_eq(&changes("她仔细地擦了透镜，虽然并不需要。", "她擦了透镜，其实并不需要。"));
    }

    #[test]
    fn what_would_steer_the_terminal_does_not_reach_it() {
        assert_eq!(printable("a\x1b[2Jb\r\u{202e}c\n\td"), "a\\u001b[2Jbc\n\td");
    }
}
