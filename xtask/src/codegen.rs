//! Writes the generated pages of `docs/` anew.
//!
//! Each page is held by a test of the crate whose types it shows, so that it cannot drift; here those tests are told to
//! write what they would compare.

use anyhow::Result;

use crate::shell::{self, cargo};

/// Runs the tests that hold pages, and lets them write.
///
/// # Errors
/// When a test fails for another reason than an old page.
pub fn run() -> Result<()> {
    renew("quire-core", "schema")?;
    renew("quire-app", "guide")
}

fn renew(package: &str, tests: &str) -> Result<()> {
    shell::run(cargo(&["test", "--package", package, "--test", "it", "--locked", tests]).env("UPDATE_EXPECT", "1"))
}
