//! Reads a pack's files, to the end, whatever is wrong with them.

use super::{Pack, PackFiles};
use crate::diagnostic::Diagnostic;

/// Reads a pack. The pack is there exactly when no diagnostic is an error; diagnostics stand in the order of files and lines.
pub fn read(files: &PackFiles) -> (Option<Pack>, Vec<Diagnostic>) {
    let _ = files;
    unreachable!()
}
