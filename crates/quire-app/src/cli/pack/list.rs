//! `quire pack list`: which packs there are, where they lie, and which of them cannot be used.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::counted;
use crate::packs::{Listed, Packs};
use crate::report;

/// Lists the packs there are.
pub fn list(packs: &Packs, is_json: bool) -> Result<ExitCode> {
    let listed = packs.survey();
    if is_json {
        println!("{}", json!({ "packs": listed, "folders": packs.folders() }));
        return Ok(ExitCode::from(report::FINE));
    }
    let width = |text: fn(&Listed) -> &str| listed.iter().map(|pack| text(pack).width()).max().unwrap_or_default();
    let (names, versions) = (width(|pack| &pack.name), width(|pack| &pack.version));
    for pack in &listed {
        let remark = match (&pack.shadowed_by, pack.errors) {
            (Some(place), _) => format!("not found by its name, as {place} comes first"),
            (None, 0) => pack.description.clone(),
            (None, errors) => {
                format!("cannot be used: {}; `quire pack check {}` shows them", counted(errors, "error"), pack.place)
            }
        };
        println!("{}  {}  {}\n    {}", padded(&pack.name, names), padded(&pack.version, versions), remark, pack.place);
    }
    println!("\nPacks are looked for in {}.", packs.folders().join(", "));
    Ok(ExitCode::from(report::FINE))
}

/// Fills a text with spaces, counting a wide character as two.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
