//! `quire`: writing sessions from the command line.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};

#[macro_use]
mod out;

mod cli;
mod models;
mod options;
mod packs;
mod report;
mod spending;
mod wire;
mod words;

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        return report::commands(options::Options::command());
    }
    let options = match options::Options::try_parse() {
        Ok(options) => options,
        Err(error) => return report::usage(&error),
    };
    // What goes wrong with a tool server is said where it is used, in our words.
    // Logs go to stderr: stdout belongs to what was asked for.
    let filter = tracing_subscriber::EnvFilter::try_from_env("QUIRE_LOG").unwrap_or_else(|_| "warn,rmcp=off".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    // Before any connection: without it the first request would panic.
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    // A script reads the same words whoever runs it.
    let lang = if options.json { words::Lang::En } else { options.lang.unwrap_or_else(words::Lang::of_locale) };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return report::failure(lang, &anyhow::Error::new(error), false),
    };
    let is_json = options.json;
    match runtime.block_on(cli::run(options, lang)) {
        Ok(exit) => exit,
        Err(error) => report::failure(lang, &error, is_json),
    }
}
