//! Runs other programs from the root of the checkout, without a terminal to ask at.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// Returns the root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Returns the folder where builds lie.
pub fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    root().join(target)
}

/// Makes a command that runs in the root and finds its standard input empty.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Makes a command of the cargo that runs us.
pub fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(cargo);
    command.args(arguments);
    command
}

/// Runs it to its end; what it prints is seen.
///
/// # Errors
/// When it cannot be started or says that it failed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
    ensure!(status.success(), "`{}` ended with {status}", line(command));
    Ok(())
}

/// Runs it to its end and returns what it printed.
///
/// # Errors
/// As [`run`]; with its own words.
pub fn read(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}:\n{}", line(command), output.status, words.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed something that is not UTF-8", line(command)))
}

/// Runs it to its end, shows each line it prints, and hands the line on as well.
///
/// # Errors
/// As [`run`].
pub fn run_and_hear(command: &mut Command, mut hear: impl FnMut(&str)) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{}`", line(command)))?;
    let printed = child.stdout.take().expect("it is piped");
    for printed in BufReader::new(printed).lines() {
        let printed = printed.with_context(|| format!("cannot read what `{}` prints", line(command)))?;
        println!("{printed}");
        hear(&printed);
    }
    let status = child.wait()?;
    ensure!(status.success(), "`{}` ended with {status}", line(command));
    Ok(())
}

/// Shows a command as a person would type it.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
