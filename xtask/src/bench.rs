//! Measures, and writes `docs/benchmarks.md`.

use anyhow::{Context as _, Result};

use crate::shell::{cargo, read, root};

/// Builds the measuring program in release, lets it measure, and keeps what it says.
///
/// # Errors
/// When it does not build, or a measurement fails.
pub fn run() -> Result<()> {
    let page = read(&mut cargo(&["run", "--package", "quire-bench", "--release", "--locked", "--quiet"]))?;
    let path = root().join("docs/benchmarks.md");
    std::fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{page}");
    Ok(())
}
