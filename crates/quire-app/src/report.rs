//! The one place where errors become words and exit codes.
//!
//! 0 fine · 1 failed · 2 wrong usage · 3 refused: the session is as it was, and it is said what is pending and what would be
//! heard.

use std::process::ExitCode;

use quire_core::diagnostic::Diagnostic;
use quire_core::event::Action;
use quire_core::pack::PackFiles;
use quire_core::session::{Refusal, Session, Verb};
use quire_runtime::driver::StartError;
use quire_runtime::ports::StoreError;
use serde_json::{Value, json};

use crate::words::{self, Lang};

/// What was asked for was done.
pub const FINE: u8 = 0;
/// It failed.
pub const FAILED: u8 = 1;
/// It was not understood.
pub const USAGE: u8 = 2;
/// It was not heard, and changed nothing.
pub const REFUSED: u8 = 3;

/// A command that cannot be understood although its words fit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Something named that is not there: refused without asking the session.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unknown(pub String);

/// Lists the commands, for one who names none.
pub fn commands(mut command: clap::Command) -> ExitCode {
    eprintln!("{}", command.render_help());
    ExitCode::from(USAGE)
}

/// Tells what is wrong with the command line; help and version are no faults.
pub fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to tell when even this cannot be printed.
    error.print().ok();
    ExitCode::from(if error.use_stderr() { USAGE } else { FINE })
}

/// Tells why a command failed.
pub fn failure(lang: Lang, error: &anyhow::Error, is_json: bool) -> ExitCode {
    let code = code_of(error);
    if is_json {
        println!("{}", json!({ "error": words_of(Lang::En, error), "code": code }));
    }
    eprintln!("{}", lang.error_line(words_of(lang, error)));
    ExitCode::from(code)
}

fn code_of(error: &anyhow::Error) -> u8 {
    let store = match error.downcast_ref::<StartError>() {
        Some(StartError::Refused(_)) => return REFUSED,
        Some(StartError::Store(store)) => Some(store),
        None => error.downcast_ref::<StoreError>(),
    };
    match store {
        Some(StoreError::NoSession(_)) => REFUSED,
        Some(StoreError::SessionExists(_) | StoreError::Fenced(_) | StoreError::Unusable { .. }) => FAILED,
        None if error.is::<Usage>() => USAGE,
        None if error.is::<Unknown>() || error.is::<Refusal>() => REFUSED,
        None => FAILED,
    }
}

/// Tells an error and its causes, in the person's language where they are ours.
pub fn words_of(lang: Lang, error: &anyhow::Error) -> String {
    let mut words: Vec<String> = vec![];
    for cause in error.chain().map(|cause| told(lang, cause)) {
        // A transparent error says what its source says.
        if words.last() != Some(&cause) {
            words.push(cause);
        }
    }
    words.join(": ")
}

fn told(lang: Lang, cause: &(dyn std::error::Error + 'static)) -> String {
    match cause.downcast_ref::<StoreError>() {
        Some(StoreError::NoSession(id)) => lang.no_such_session(id),
        Some(StoreError::SessionExists(id)) => lang.session_exists(id),
        Some(StoreError::Fenced(id)) => lang.session_taken(id),
        Some(StoreError::Unusable { .. }) | None => cause.to_string(),
    }
}

/// Makes the refusal of something that the session need not be asked about.
pub fn refused(session: &Session, message: String) -> Refusal {
    let heard = Verb::ALL.iter().filter(|verb| session.hears(**verb)).map(|verb| verb.as_str().to_owned()).collect();
    Refusal { message, pending: session.pending(), heard }
}

/// Tells on stderr why something was not heard. `action`: what the session was asked, where it was asked.
pub fn refusal(lang: Lang, session: &Session, action: Option<&Action>, refusal: &Refusal) {
    let why = action.map_or_else(|| refusal.message.clone(), |action| words::session::refusal(lang, session, action, refusal));
    eprintln!("{}", lang.error_line(lang.refused(why)));
    eprintln!("{}", lang.refused_pending(words::session::pending(lang, session)));
    let heard = words::session::heard(lang, session);
    if !heard.is_empty() {
        eprintln!("{}", lang.refused_heard(heard));
    }
}

/// Shows a refusal on the wire.
pub fn refusal_json(refusal: &Refusal) -> Value {
    json!({ "message": refusal.message, "pending": refusal.pending, "heard": refusal.heard })
}

/// Shows a finding in a pack with its line, as a person reads it.
pub fn diagnostic(lang: Lang, files: &PackFiles, found: &Diagnostic) -> String {
    let mut text = format!("{found}\n");
    let source = files.0.get(&found.file).map(AsRef::as_ref).unwrap_or_default();
    if let Some(line) = usize::try_from(found.span.line).ok().and_then(|line| source.lines().nth(line.saturating_sub(1))) {
        let number = found.span.line.to_string();
        let gap = " ".repeat(number.len());
        let before: String = line.chars().take(usize::try_from(found.span.column).unwrap_or(1).saturating_sub(1)).collect();
        let indent = unicode_width::UnicodeWidthStr::width(before.as_str());
        let marked = source.get(found.span.start..found.span.end).and_then(|marked| marked.lines().next()).unwrap_or_default();
        let width = unicode_width::UnicodeWidthStr::width(marked).max(1);
        text.push_str(&format!("{gap} |\n{number} | {line}\n{gap} | {}{}\n", " ".repeat(indent), "^".repeat(width)));
    }
    text.push_str(&lang.help_line(&found.help));
    text.push('\n');
    text
}
