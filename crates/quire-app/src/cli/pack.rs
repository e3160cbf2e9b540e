//! Commands that look after packs. No code of a pack runs, and no model is asked.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quire_core::diagnostic::{Diagnostic, Severity};
use quire_core::pack::{self, Pack};

use crate::options::PackCommand;
use crate::packs::{Found, Packs};
use crate::report::{self, Unknown};
use crate::words::Lang;

mod check;
mod install;
mod list;
mod new;
mod skills;
mod test;

/// Runs one of them.
pub fn run(data: &Path, lang: Lang, command: PackCommand, is_json: bool) -> Result<ExitCode> {
    let packs = Packs::of(data);
    match command {
        PackCommand::New(new) => new::new(new, is_json),
        PackCommand::Check { pack } => check::check(lang, &packs, &pack, is_json),
        PackCommand::Test { pack, update } => test::test(lang, &packs, &pack, update, is_json),
        PackCommand::List => list::list(&packs, is_json),
        PackCommand::Install(install) => install::install(lang, data, &packs, install, is_json),
    }
}

/// Refuses a pack that does not start, with every error and its place.
pub fn refuse_unreadable(lang: Lang, found: &Found) -> Result<()> {
    let (_, diagnostics) = diagnose(found);
    let errors: Vec<String> =
        errors_of(&diagnostics).map(|diagnostic| report::diagnostic(lang, &found.files, diagnostic)).collect();
    if errors.is_empty() { Ok(()) } else { Err(Unknown(lang.pack_unusable(errors.join("\n"))).into()) }
}

/// Reads a pack with what its files told before they were texts, in the order of files and lines.
fn diagnose(found: &Found) -> (Option<Pack>, Vec<Diagnostic>) {
    let (pack, mut diagnostics) = pack::read(&found.files);
    diagnostics.extend(found.diagnostics.iter().cloned());
    diagnostics.sort_by(|one, other| (&one.file, one.span.start).cmp(&(&other.file, other.span.start)));
    let pack = pack.filter(|_| errors_of(&diagnostics).next().is_none());
    (pack, diagnostics)
}

fn errors_of(diagnostics: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Counts as people say it: `1 error`, `2 errors`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
