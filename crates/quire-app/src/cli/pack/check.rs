//! `quire pack check`: what is wrong with a pack, each finding with its place, its line and a way out.

use std::process::ExitCode;

use anyhow::Result;
use quire_core::diagnostic::Diagnostic;
use serde_json::json;

use super::{counted, diagnose, errors_of, skills};
use crate::packs::{Found, Packs, Spot};
use crate::report;
use crate::words::Lang;

/// Reads a pack to the end and tells what is wrong with it; 1 with errors, else 0.
pub fn check(lang: Lang, packs: &Packs, name_or_folder: &str, is_json: bool) -> Result<ExitCode> {
    let spot = packs.locate(name_or_folder)?;
    if let Spot::Folder(folder) = &spot
        && let Some(skills) = skills::in_folder(folder)?
    {
        return skills::check(lang, folder, &skills, is_json);
    }
    let found = spot.read()?;
    let (pack, diagnostics) = diagnose(&found);
    if is_json {
        let (errors, warnings) = counts(&diagnostics);
        println!(
            "{}",
            json!({
                "pack": pack.map(|pack| pack.name), "hash": found.files.hash(), "errors": errors, "warnings": warnings,
                "diagnostics": diagnostics,
            })
        );
    } else {
        tell(lang, &found, &diagnostics);
    }
    Ok(exit(&diagnostics))
}

/// Prints the findings and how many they are.
pub(super) fn tell(lang: Lang, found: &Found, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        println!("{}", report::diagnostic(lang, &found.files, diagnostic));
    }
    let (errors, warnings) = counts(diagnostics);
    println!("{}", lang.pack_counts(counted(errors, "error"), counted(warnings, "warning"), errors, warnings));
}

/// Counts errors and warnings.
pub(super) fn counts(diagnostics: &[Diagnostic]) -> (usize, usize) {
    let errors = errors_of(diagnostics).count();
    (errors, diagnostics.len() - errors)
}

/// Returns the exit code that the findings call for.
pub(super) fn exit(diagnostics: &[Diagnostic]) -> ExitCode {
    let is_fine = errors_of(diagnostics).next().is_none();
    ExitCode::from(if is_fine { report::FINE } else { report::FAILED })
}
