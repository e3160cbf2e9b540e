//! Which model stands behind a profile's name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quire_adapters::providers::openai::{OpenAi, OpenAiConfig};
use quire_adapters::providers::scripted::Scripted;
use quire_core::message::{Failure, FailureKind};
use quire_runtime::ports::{ModelProvider, Models};
use quire_scenario::Scenario;

use crate::packs;

/// The profile made from environment variables.
pub const ENVIRONMENT: &str = "environment";
/// The profile that plays the built-in demo.
pub const DEMO: &str = "demo";

const SCRIPTED: &str = "scripted:";

/// Where a key of OpenAI goes when no other server is named.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// A model's context, where nobody says: small enough for local servers.
const CONTEXT_TOKENS: u32 = 32_768;

/// Finds models by profile name.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownModels;

impl Models for KnownModels {
    fn provider(&self, profile: &str) -> Result<Arc<dyn ModelProvider>, Failure> {
        match profile {
            DEMO => {
                let scenario = Scenario::parse("demo.scenario", &packs::demo_scenario()).expect("the demo is tested");
                Ok(Arc::new(Scripted::new(scenario).with_delay(demo_delay())))
            }
            ENVIRONMENT => from_environment(),
            name => match name.strip_prefix(SCRIPTED) {
                Some(file) => scripted(Path::new(file)),
                None => Err(setup(format!("there is no model profile `{name}`"))),
            },
        }
    }
}

/// Says whether a profile exists, before a session is bound to it. A scenario's path becomes absolute.
pub fn check_profile(profile: &str) -> Result<String, Failure> {
    match profile.strip_prefix(SCRIPTED) {
        Some(file) => {
            let path = std::path::absolute(file).map_err(|error| setup(format!("{file}: {error}")))?;
            scripted(&path)?;
            Ok(format!("{SCRIPTED}{}", path.display()))
        }
        None if profile == ENVIRONMENT || profile == DEMO => Ok(profile.to_owned()),
        None => Err(setup(format!(
            "there is no model profile `{profile}`; leave `--model` out to use QUIRE_MODEL_URL, or give `scripted:FILE`"
        ))),
    }
}

fn scripted(path: &Path) -> Result<Arc<dyn ModelProvider>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| setup(format!("the scenario {} cannot be read: {error}; name a file of UTF-8 text", path.display())))?;
    let scenario = Scenario::parse(&path.display().to_string(), &text).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(|fault| format!("{fault}\n  help: {}", fault.help)).collect();
        setup(format!("the scenario has faults:\n{}", faults.join("\n")))
    })?;
    Ok(Arc::new(Scripted::new(scenario)))
}

fn from_environment() -> Result<Arc<dyn ModelProvider>, Failure> {
    // A key belongs to its server: another family's is never sent there.
    let (url, key) = match read("QUIRE_MODEL_URL") {
        Some(url) => (Some(url), read("QUIRE_MODEL_KEY")),
        None => {
            let key = read("OPENAI_API_KEY");
            let url = read("OPENAI_BASE_URL").or_else(|| key.is_some().then(|| OPENAI_URL.to_owned()));
            (url, key)
        }
    };
    let Some(url) = url else {
        return Err(setup(
            "no model is set: export QUIRE_MODEL_URL (like http://localhost:11434/v1) and QUIRE_MODEL_NAME, and QUIRE_MODEL_KEY \
             where the server wants a key; or OPENAI_API_KEY and OPENAI_MODEL"
                .to_owned(),
        ));
    };
    let Some(model) = read("QUIRE_MODEL_NAME").or_else(|| read("OPENAI_MODEL")) else {
        return Err(setup(format!("no model is named for {url}: export QUIRE_MODEL_NAME, or OPENAI_MODEL")));
    };
    let context_tokens = match read("QUIRE_MODEL_CONTEXT") {
        None => CONTEXT_TOKENS,
        Some(tokens) => tokens
            .trim()
            .parse()
            .map_err(|_| setup(format!("QUIRE_MODEL_CONTEXT is `{tokens}`: write the model's context in tokens, like 32768")))?,
    };
    let mut config = OpenAiConfig::new(url, model, context_tokens);
    config.key = key.map(Into::into);
    match OpenAi::new(config) {
        Ok(provider) => Ok(Arc::new(provider)),
        Err(error) => Err(setup(error.to_string())),
    }
}

fn read(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}

fn demo_delay() -> Duration {
    // A reader, not a clock, is waited for; pipes are not readers.
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) { Duration::from_millis(6) } else { Duration::ZERO }
}

fn setup(message: String) -> Failure {
    Failure { kind: FailureKind::Setup, message }
}

/// Where the platform keeps a program's data.
pub fn default_data_folder() -> Option<PathBuf> {
    dirs::data_dir().map(|folder| folder.join("quire"))
}
