//! The project's own chores: `cargo xtask ci`, `bench`, `codegen`.
//!
//! Each command is one file. Whatever a command needs beyond a Rust toolchain it fetches by name into `target/xtask/`;
//! nothing is installed outside the checkout, nothing is read from the terminal.
//!
//! Nothing of the product is linked in here: it is run as its users run it.

use std::process::ExitCode;

mod bench;
mod ci;
mod codegen;
mod shell;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci         everything a change must pass: format, walls, lints, tests, docs, packs, a foreign model server, a real small model
  codegen    writes the generated pages of docs/ anew
  bench      measures, and writes docs/benchmarks.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ci"] => ci::run(),
        ["codegen"] => codegen::run(),
        ["bench"] => bench::run(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => {
            eprintln!("there is no command `{}`\n\n{USAGE}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nfailed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
