//! Everything a change must pass, cheapest first. Stops at the first stage that fails.

use std::time::Instant;

use anyhow::Result;

use crate::shell::{self, cargo, run_and_hear};

mod aimock;
mod mcp;
mod packs;
mod small_model;
mod walls;

/// Runs every stage.
///
/// # Errors
/// When a stage fails; the message says which, and what to do.
fn run_stages(tests: &mut Tests) -> Result<()> {
    stage("format", || shell::run(&mut cargo(&["fmt", "--all", "--check"])))?;
    stage("walls between crates, purity of the core", walls::check)?;
    stage("lints", || {
        shell::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"]))
    })?;
    stage("tests", || {
        let mut test = cargo(&["test", "--workspace", "--locked", "--quiet", "--no-fail-fast"]);
        run_and_hear(&mut test, |line| tests.count(line))
    })?;
    stage("documentation", || {
        shell::run(cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    stage("built-in packs", packs::check)?;
    stage("a session against a foreign model server", aimock::check)?;
    stage("a session with a real, very small model", small_model::check)?;
    stage("foreign tool servers, and a foreign client", mcp::check)
}

/// Runs every stage, and ends with the number of tests.
///
/// # Errors
/// As [`run_stages`].
pub fn run() -> Result<()> {
    let mut tests = Tests::default();
    let done = run_stages(&mut tests);
    println!("{} passed, {} failed", tests.passed, tests.failed);
    done
}

fn stage(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("── {name}");
    let start = Instant::now();
    let done = work();
    let seconds = start.elapsed().as_secs_f64();
    match &done {
        Ok(()) => println!("── {name}: fine, {seconds:.1} s\n"),
        Err(_) => println!("── {name}: failed after {seconds:.1} s\n"),
    }
    done.map_err(|error| error.context(format!("the stage `{name}`")))
}

/// How many tests ran, as their harnesses say.
#[derive(Debug, Default)]
struct Tests {
    passed: u64,
    failed: u64,
}

impl Tests {
    fn count(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let count_of = |what: &str| {
            let before = counts.split(';').find_map(|count| count.trim().strip_suffix(what));
            before.and_then(|count| count.split_whitespace().next_back()?.parse::<u64>().ok()).unwrap_or_default()
        };
        self.passed += count_of("passed");
        self.failed += count_of("failed");
    }
}
