//! Where lines come from: a terminal with history, completion and pasting, or a pipe.
//!
//! A line that ends in `\` goes on in the next one; `"""` begins a text of many lines and ends it.
//!
//! Reading blocks, so it has a thread of its own; it reads only when it is asked to, so that a pipe's lines wait for the
//! session as a person does.

use std::borrow::Cow;
use std::io::{BufRead, IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::sync::mpsc as blocking;

use anyhow::{Context, Result};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Editor, Helper};
use tokio::sync::{mpsc, watch};

use super::command::Slash;
use crate::words::Lang;

const HISTORY_FILE: &str = "chat-history";
const HISTORY_ENTRIES_MAX: usize = 1000;
const BLOCK: &str = "\"\"\"";

/// What a line is asked for with.
#[derive(Debug, Default)]
pub struct Ask {
    /// What stands before the cursor.
    pub prompt: String,
    /// What is there to be changed.
    pub initial: String,
    /// Tags, for completion.
    pub tags: Vec<String>,
}

/// What came.
#[derive(Debug)]
pub enum Line {
    /// A line, or a text of many.
    Text(String),
    /// The person leaves, or the pipe is at its end.
    End,
}

/// How often Ctrl-C was pressed while nothing was typed.
pub type Interrupts = watch::Receiver<u64>;

/// The lines a person types.
pub struct Lines {
    asks: blocking::Sender<Ask>,
    lines: mpsc::Receiver<Result<Line>>,
    is_terminal: bool,
}

impl Lines {
    /// Opens stdin; on a terminal with the history of the data folder.
    pub fn open(folder: &Path, lang: Lang) -> Self {
        let (asks, asked) = blocking::channel();
        let (answer, lines) = mpsc::channel(1);
        let is_terminal = stdin().is_terminal() && std::io::stdout().is_terminal();
        let history = folder.join(HISTORY_FILE);
        std::thread::spawn(move || {
            let failed = if is_terminal { type_lines(&asked, &answer, lang, history) } else { read_lines(&asked, &answer) };
            if let Err(error) = failed {
                // Nobody waits any more when the chat has ended.
                answer.blocking_send(Err(error)).ok();
            }
        });
        Self { asks, lines, is_terminal }
    }

    /// Waits for a line; from a pipe it is shown after its prompt, so that the transcript can be read.
    pub async fn next(&mut self, ask: Ask, interrupts: &mut Interrupts) -> Result<Line> {
        let prompt = ask.prompt.clone();
        if self.asks.send(ask).is_err() {
            return Ok(Line::End);
        }
        if self.is_terminal {
            return self.lines.recv().await.unwrap_or(Ok(Line::End));
        }
        let line = tokio::select! {
            line = self.lines.recv() => line.unwrap_or(Ok(Line::End))?,
            Ok(()) = interrupts.changed() => Line::End,
        };
        if let Line::Text(text) = &line {
            println!("{prompt}{}", text.replace('\n', "\n  "));
        }
        Ok(line)
    }
}

fn read_lines(asked: &blocking::Receiver<Ask>, answer: &mpsc::Sender<Result<Line>>) -> Result<()> {
    let mut lines = stdin().lock().lines();
    while asked.recv().is_ok() {
        let mut text = String::new();
        let mut is_end = true;
        for line in lines.by_ref() {
            is_end = false;
            text.push_str(&line?);
            if is_whole(&text) {
                break;
            }
            text.push('\n');
        }
        let line = if is_end { Line::End } else { Line::Text(joined(&text)) };
        if answer.blocking_send(Ok(line)).is_err() {
            break;
        }
    }
    Ok(())
}

fn type_lines(asked: &blocking::Receiver<Ask>, answer: &mpsc::Sender<Result<Line>>, lang: Lang, history: PathBuf) -> Result<()> {
    let config = Config::builder()
        .max_history_size(HISTORY_ENTRIES_MAX)?
        .history_ignore_dups(true)?
        .completion_type(CompletionType::List)
        .bracketed_paste(true)
        .build();
    let mut editor: Editor<Typing, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Typing { lang, tags: vec![] }));
    // The first chat has no history yet.
    editor.load_history(&history).ok();
    while let Ok(ask) = asked.recv() {
        if let Some(typing) = editor.helper_mut() {
            typing.tags = ask.tags;
        }
        let line = match editor.readline_with_initial(&ask.prompt, (&ask.initial, "")) {
            Ok(text) => {
                if !text.trim().is_empty() {
                    editor.add_history_entry(&text)?;
                    editor.save_history(&history).with_context(|| history.display().to_string())?;
                }
                Line::Text(joined(&text))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Line::End,
            Err(error) => return Err(error.into()),
        };
        if answer.blocking_send(Ok(line)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Says whether nothing more is to come of a text.
fn is_whole(text: &str) -> bool {
    match text.trim_start().strip_prefix(BLOCK) {
        Some(inside) => inside.contains(BLOCK),
        None => !text.ends_with('\\'),
    }
}

/// Takes out what only holds lines together.
fn joined(text: &str) -> String {
    let Some(inside) = text.trim_start().strip_prefix(BLOCK) else { return text.replace("\\\n", "\n") };
    let inside = inside.rsplit_once(BLOCK).map_or(inside, |(inside, _)| inside);
    inside.trim_matches('\n').to_owned()
}

/// Completion of commands and tags, and lines that go on.
struct Typing {
    lang: Lang,
    tags: Vec<String>,
}

impl Helper for Typing {}
impl Hinter for Typing {
    type Hint = String;
}
impl Highlighter for Typing {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &rustyline::Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or(line);
        if !typed.starts_with(['/', '／']) {
            return Ok((0, vec![]));
        }
        let same = |text: &str| Pair { display: text.to_owned(), replacement: text.to_owned() };
        if let Some((before, part)) = typed.rsplit_once(' ') {
            let tags = self.tags.iter().filter(|tag| tag.starts_with(part)).map(|tag| same(tag));
            return Ok((before.len() + 1, tags.collect()));
        }
        let name = typed.replacen('／', "/", 1);
        let other = match self.lang {
            Lang::En => Lang::Zh,
            Lang::Zh => Lang::En,
        };
        let named = |lang: Lang| Slash::ALL.iter().map(move |slash| slash.name(lang));
        // The person's own language first; the other's where only that fits.
        let fits = |lang: Lang| named(lang).filter(|slash| slash.starts_with(&name)).map(same).collect::<Vec<_>>();
        let own = fits(self.lang);
        Ok((0, if own.is_empty() { fits(other) } else { own }))
    }
}

/// Keeps keys that are pressed while models work off the screen, and out of the next line: an Enter pressed too early
/// would answer a question that was not read.
#[cfg(unix)]
pub struct Hush {
    before: Option<rustix::termios::Termios>,
}

#[cfg(unix)]
impl Hush {
    /// Begins, where stdin is a terminal.
    pub fn begin() -> Self {
        let before = rustix::termios::tcgetattr(stdin()).ok();
        if let Some(before) = &before {
            let mut hushed = before.clone();
            hushed.local_modes -= rustix::termios::LocalModes::ECHO;
            rustix::termios::tcsetattr(stdin(), rustix::termios::OptionalActions::Now, &hushed).ok();
        }
        Self { before }
    }
}

#[cfg(unix)]
impl Drop for Hush {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            rustix::termios::tcflush(stdin(), rustix::termios::QueueSelector::IFlush).ok();
            rustix::termios::tcsetattr(stdin(), rustix::termios::OptionalActions::Now, before).ok();
        }
    }
}

/// Elsewhere the terminal does as it likes.
#[cfg(not(unix))]
pub struct Hush;

#[cfg(not(unix))]
impl Hush {
    /// Does nothing.
    pub fn begin() -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::{is_whole, joined};

    #[test]
    fn lines_go_on_after_a_backslash_and_inside_a_block() {
        assert!(!is_whole("one\\"));
        assert!(is_whole("one\\\ntwo"));
        assert_eq!(joined("one\\\ntwo"), "one\ntwo");
        assert!(!is_whole("\"\"\"\none\n"));
        assert!(is_whole("\"\"\"\none\n\n二\n\"\"\""));
        assert_eq!(joined("\"\"\"\none\n\n二\n\"\"\""), "one\n\n二");
        assert_eq!(joined("\"\"\"one\"\"\""), "one");
    }
}
