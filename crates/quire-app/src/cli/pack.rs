//! Commands that look after packs.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quire_core::diagnostic::{Diagnostic, Severity};
use quire_core::pack;
use serde_json::json;

use crate::packs::{Found, Packs, read_folder};
use crate::report::{self, Unknown};

/// Reads a pack to the end and tells what is wrong with it.
pub fn check(folder: &Path, is_json: bool) -> Result<ExitCode> {
    let found = read_folder(folder)?;
    let (pack, diagnostics) = diagnose(&found);
    let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
    let warnings = diagnostics.len() - errors;
    if is_json {
        let hash = found.files.hash();
        println!(
            "{}",
            json!({ "pack": pack.map(|pack| pack.name), "hash": hash, "errors": errors, "warnings": warnings, "diagnostics": diagnostics })
        );
    } else {
        for diagnostic in &diagnostics {
            println!("{}", report::diagnostic(&found.files, diagnostic));
        }
        println!("{errors} errors, {warnings} warnings");
    }
    Ok(ExitCode::from(if errors == 0 { report::FINE } else { report::FAILED }))
}

/// Lists the packs there are.
pub fn list(packs: &Packs, is_json: bool) -> Result<ExitCode> {
    let listed = packs.list();
    if is_json {
        println!("{}", json!({ "packs": listed }));
    } else {
        for pack in listed {
            println!("{:<20} {:<10} {}", pack.name, pack.place, pack.description);
        }
    }
    Ok(ExitCode::from(report::FINE))
}

/// Refuses a pack that does not start, with every error and its place.
pub fn refuse_unreadable(found: &Found) -> Result<()> {
    let (_, diagnostics) = diagnose(found);
    let errors: Vec<String> = (diagnostics.iter())
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| report::diagnostic(&found.files, diagnostic))
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Unknown(format!("the pack cannot be used:\n{}", errors.join("\n"))).into()) }
}

fn diagnose(found: &Found) -> (Option<pack::Pack>, Vec<Diagnostic>) {
    let (pack, mut diagnostics) = pack::read(&found.files);
    diagnostics.extend(found.diagnostics.iter().cloned());
    let pack = pack.filter(|_| !diagnostics.iter().any(|found| found.severity == Severity::Error));
    (pack, diagnostics)
}
