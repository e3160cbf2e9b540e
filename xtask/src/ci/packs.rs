//! The packs we ship, through the program that ships them.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, command, root, run, target};

/// Reads each pack to the end, and plays its scenarios.
///
/// # Errors
/// When a pack has an error, or a play goes otherwise than its files say.
pub fn check() -> Result<()> {
    let quire = quire()?;
    let mut folders = vec![];
    for entry in std::fs::read_dir(root().join("packs")).context("cannot list packs/")? {
        folders.push(entry?.path());
    }
    folders.retain(|folder| folder.join("orchestrator.md").is_file());
    folders.sort();
    ensure!(!folders.is_empty(), "there is no pack in packs/: the checkout is not whole");
    for folder in folders {
        run(command(&quire).args(["pack", "check"]).arg(&folder))?;
        run(command(&quire).args(["pack", "test"]).arg(&folder))?;
    }
    Ok(())
}

/// Builds the program and returns its path.
///
/// # Errors
/// When it does not build.
pub fn quire() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--package", "quire-app", "--bin", "quire", "--locked", "--quiet"]))?;
    Ok(target().join("debug").join(format!("quire{}", std::env::consts::EXE_SUFFIX)))
}
