//! The one place where errors become words and exit codes.
//!
//! 0 fine · 1 failed · 2 wrong usage · 3 refused: the session is as it was, and it is said what is pending and what would be
//! heard.

use std::process::ExitCode;

use quire_core::diagnostic::Diagnostic;
use quire_core::pack::PackFiles;
use quire_core::session::{Refusal, Session, Verb};
use quire_runtime::driver::StartError;
use quire_runtime::ports::StoreError;
use serde_json::{Value, json};

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
pub fn failure(error: &anyhow::Error, is_json: bool) -> ExitCode {
    let code = code_of(error);
    let words = words_of(error);
    if is_json {
        println!("{}", json!({ "error": words, "code": code }));
    }
    eprintln!("quire: {words}");
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

fn words_of(error: &anyhow::Error) -> String {
    let mut words: Vec<String> = vec![];
    for cause in error.chain().map(ToString::to_string) {
        // A transparent error says what its source says.
        if words.last() != Some(&cause) {
            words.push(cause);
        }
    }
    words.join(": ")
}

/// Makes the refusal of something that the session need not be asked about.
pub fn refused(session: &Session, message: String) -> Refusal {
    let heard = Verb::ALL.iter().filter(|verb| session.hears(**verb)).map(|verb| verb.as_str().to_owned()).collect();
    Refusal { message, pending: session.pending(), heard }
}

/// Tells a refusal on stderr.
pub fn refusal(refusal: &Refusal) {
    // The session speaks of actions as the wire does; here they are commands.
    let message = match refusal.message.strip_suffix("` is not heard now").and_then(|start| start.strip_prefix('`')) {
        Some(verb) => format!("`{}` is not heard now", command_of(verb)),
        None => refusal.message.clone(),
    };
    eprintln!("quire: refused: {message}");
    eprintln!("  pending: {}", refusal.pending);
    if !refusal.heard.is_empty() {
        let mut commands: Vec<String> = refusal.heard.iter().map(|verb| command_of(verb)).collect();
        commands.dedup();
        eprintln!("  heard now: {}", commands.join(", "));
    }
}

/// Returns the command that an action is typed as.
fn command_of(verb: &str) -> String {
    match verb {
        "select_pack" => "select".to_owned(),
        "submit_input" => "say".to_owned(),
        "confirm_intake" => "confirm".to_owned(),
        "reject_step" => "reject".to_owned(),
        "edit_item" => "edit".to_owned(),
        other => other.replace('_', "-"),
    }
}

/// Shows a refusal on the wire.
pub fn refusal_json(refusal: &Refusal) -> Value {
    json!({ "message": refusal.message, "pending": refusal.pending, "heard": refusal.heard })
}

/// Shows a finding in a pack with its line, as a person reads it.
pub fn diagnostic(files: &PackFiles, found: &Diagnostic) -> String {
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
    text.push_str(&format!("  help: {}\n", found.help));
    text
}
