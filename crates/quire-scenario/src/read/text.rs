//! Pieces of the file that know where they stand, and what is made of them: words, settings, texts.

/// A part of the file; never more than one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    /// Its first byte in the file.
    pub(super) at: usize,
}

/// What is wrong with a statement, and where.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) message: String,
    pub(super) help: String,
}

/// One word of a statement's head.
#[derive(Debug)]
pub(super) enum Token<'a> {
    /// A bare word.
    Word(Piece<'a>),
    /// `key=value` or `key="a value"`.
    Setting { key: Piece<'a>, value: String },
}

impl<'a> Piece<'a> {
    /// Splits at a byte, which is a character's border.
    pub(super) fn split(self, index: usize) -> (Self, Self) {
        let (left, right) = self.text.split_at_checked(index).unwrap_or((self.text, ""));
        (Self { text: left, at: self.at }, Self { text: right, at: self.at + left.len() })
    }

    pub(super) fn trim(self) -> Self {
        let text = self.text.trim_start();
        Self { text: text.trim_end(), at: self.at + self.text.len() - text.len() }
    }

    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    /// Counts the spaces it begins with.
    pub(super) fn indent(self) -> usize {
        self.text.chars().take_while(|char| *char == ' ').count()
    }

    /// Drops its first `mark.len()` bytes, where it begins with `mark`.
    pub(super) fn after(self, mark: &str) -> Option<Self> {
        self.text.starts_with(mark).then(|| self.split(mark.len()).1)
    }

    /// Splits off the name it begins with: lower-case ASCII letters and `_`. Empty where there is none.
    pub(super) fn name(self) -> (Self, Self) {
        let is_name = |char: char| char.is_ascii_lowercase() || char == '_';
        self.split(self.text.find(|char| !is_name(char)).unwrap_or(self.text.len()))
    }

    /// Splits a head from its text at the first colon outside of quotes that white space or the line's end follows, or `：`.
    pub(super) fn split_text(self) -> (Self, Option<Self>) {
        let mut is_quoted = false;
        let mut chars = self.text.char_indices().peekable();
        while let Some((index, char)) = chars.next() {
            let ends_word = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
            match char {
                '\\' if is_quoted => drop(chars.next()),
                '"' => is_quoted = !is_quoted,
                '：' if !is_quoted => return self.cut_at(index, char),
                ':' if !is_quoted && ends_word => return self.cut_at(index, char),
                _ => {}
            }
        }
        (self.trim(), None)
    }

    fn cut_at(self, index: usize, colon: char) -> (Self, Option<Self>) {
        let (head, rest) = self.split(index);
        (head.trim(), Some(rest.split(colon.len_utf8()).1.trim()))
    }

    /// Reads words and settings up to the end.
    pub(super) fn tokens(self) -> Result<Vec<Token<'a>>, Problem> {
        let mut tokens = Vec::new();
        let mut rest = self.trim();
        while !rest.is_empty() {
            let end = rest.text.find(|char: char| char.is_whitespace() || char == '=').unwrap_or(rest.text.len());
            let (word, after) = rest.split(end);
            let Some(value) = after.after("=") else {
                tokens.push(Token::Word(word));
                rest = after.trim();
                continue;
            };
            if word.is_empty() {
                return Err(after.problem(
                    "setting",
                    "`=` stands without a name before it",
                    "write `name=value`, without spaces",
                ));
            }
            let (value, after) = value.value()?;
            tokens.push(Token::Setting { key: word, value });
            rest = after.trim();
        }
        Ok(tokens)
    }

    fn value(self) -> Result<(String, Self), Problem> {
        let Some(quoted) = self.after("\"") else {
            let (value, rest) = self.split(self.text.find(char::is_whitespace).unwrap_or(self.text.len()));
            return match value.is_empty() {
                true => Err(self.problem("setting", "a value is missing", "write `name=value`, or `name=\"\"` for an empty one")),
                false => Ok((value.text.to_owned(), rest)),
            };
        };
        let mut value = String::new();
        let mut chars = quoted.text.char_indices();
        while let Some((index, char)) = chars.next() {
            match char {
                '"' => return Ok((value, quoted.split(index + 1).1)),
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other)) => value.push(other),
                    None => break,
                },
                other => value.push(other),
            }
        }
        Err(self.problem("setting", "a quote is not closed", "end the value with `\"`; a quote inside it is written `\\\"`"))
    }

    /// Says what is wrong with it.
    pub(super) fn problem(self, code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem { code, start: self.at, end: self.at + self.text.len(), message: message.into(), help: help.into() }
    }
}

impl<'a> Token<'a> {
    /// Returns the word or the setting's name.
    pub(super) fn piece(&self) -> Piece<'a> {
        match self {
            Token::Word(word) => *word,
            Token::Setting { key, .. } => *key,
        }
    }
}

/// Joins the rest of a line with the rows below it: their common indentation goes, blank rows at either end too.
pub(super) fn joined(first: Piece<'_>, rows: &[Piece<'_>]) -> String {
    let indent = common_indent(rows);
    let rows = rows.iter().map(|row| row.text.get(indent..).unwrap_or_default());
    let lines: Vec<&str> = std::iter::once(first.text).chain(rows).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Returns the least indentation of rows that are not blank.
pub(super) fn common_indent(rows: &[Piece<'_>]) -> usize {
    rows.iter().filter(|row| !row.is_empty()).map(|row| row.indent()).min().unwrap_or(0)
}
