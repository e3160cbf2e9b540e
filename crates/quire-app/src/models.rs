//! Which model stands behind a profile's name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quire_adapters::providers::profile::{KeySource, Kind, Profile, ProfileModels, Profiles};
use quire_adapters::providers::scripted::Scripted;
use quire_core::message::{Failure, FailureKind};
use quire_runtime::ports::{ModelProvider, Models};
use quire_scenario::Scenario;
use secrecy::SecretString;

use crate::packs;

/// The profile made from environment variables.
pub const ENVIRONMENT: &str = "environment";
/// The profile that plays the built-in demo.
pub const DEMO: &str = "demo";
/// The profile of the data folder that is used where nobody says.
pub const DEFAULT: &str = "default";

const SCRIPTED: &str = "scripted:";

/// Where a key of OpenAI goes when no other server is named.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// Finds models by profile name: those of the data folder, and three that are always there.
#[derive(Debug)]
pub struct KnownModels {
    profiles: Profiles,
    made: ProfileModels,
    /// Made once: the environment does not change while the program runs.
    environment: OnceLock<Result<Environment, Failure>>,
}

struct Environment(Arc<dyn ModelProvider>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Environment").field(&self.0.model()).finish()
    }
}

impl KnownModels {
    /// Takes the profiles of a data folder; reads nothing yet.
    pub fn of(folder: &Path) -> Self {
        let profiles = Profiles::of(folder);
        Self { made: ProfileModels::new(profiles.clone()), profiles, environment: OnceLock::new() }
    }

    /// Returns the profile of a session whose user names none: the environment's where it says anything, else the one
    /// called `default`, else the environment's, which then says what to set.
    pub fn chosen(&self) -> String {
        if is_environment_set() || self.profiles.get(DEFAULT).is_err() { ENVIRONMENT.to_owned() } else { DEFAULT.to_owned() }
    }

    /// Says whether a profile exists, before a session is bound to it. A scenario's path becomes absolute.
    pub fn check(&self, profile: &str) -> Result<String, Failure> {
        match (profile, profile.strip_prefix(SCRIPTED)) {
            (ENVIRONMENT | DEMO, _) => Ok(profile.to_owned()),
            (_, Some(file)) => {
                let path = std::path::absolute(file).map_err(|error| setup(format!("{file}: {error}")))?;
                scripted(&path)?;
                Ok(format!("{SCRIPTED}{}", path.display()))
            }
            (_, None) => match self.profiles.get(profile) {
                Ok(profile) => Ok(profile.name),
                Err(error) => Err(setup(error.to_string())),
            },
        }
    }

    fn environment(&self) -> Result<Arc<dyn ModelProvider>, Failure> {
        if !is_environment_set() && self.profiles.get(DEFAULT).is_ok() {
            return self.made.provider(DEFAULT);
        }
        let made = self.environment.get_or_init(|| {
            let (profile, key) = from_environment()?;
            profile.provider(key).map(Environment).map_err(|error| setup(error.to_string()))
        });
        made.as_ref().map(|made| made.0.clone()).map_err(Clone::clone)
    }
}

impl Models for KnownModels {
    fn provider(&self, profile: &str) -> Result<Arc<dyn ModelProvider>, Failure> {
        match (profile, profile.strip_prefix(SCRIPTED)) {
            (DEMO, _) => {
                let scenario = Scenario::parse("demo.scenario", &packs::demo_scenario()).expect("the demo is tested");
                Ok(Arc::new(Scripted::new(scenario).with_delay(demo_delay())))
            }
            (ENVIRONMENT, _) => self.environment(),
            (_, Some(file)) => scripted(Path::new(file)),
            (name, None) => self.made.provider(name),
        }
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

/// Says whether the environment names a model, or begins to: then its faults are told, and nothing else is used.
fn is_environment_set() -> bool {
    ["QUIRE_MODEL_URL", "QUIRE_MODEL_NAME", "OPENAI_BASE_URL", "OPENAI_API_KEY"].iter().any(|variable| read(variable).is_some())
}

/// Makes a profile, and finds its key, from the environment's variables.
///
/// # Errors
/// What is not set, or not to be read.
pub fn from_environment() -> Result<(Profile, Option<SecretString>), Failure> {
    // A key belongs to its server: another family's is never sent there.
    let (url, var) = match read("QUIRE_MODEL_URL") {
        Some(url) => (Some(url), "QUIRE_MODEL_KEY"),
        None => {
            let url = read("OPENAI_BASE_URL").or_else(|| read("OPENAI_API_KEY").map(|_| OPENAI_URL.to_owned()));
            (url, "OPENAI_API_KEY")
        }
    };
    let Some(url) = url else {
        return Err(setup(
            "no model is set: `quire model add` makes a profile (`quire model find` looks for servers on this machine); or \
             export QUIRE_MODEL_URL (like http://localhost:11434/v1) and QUIRE_MODEL_NAME, and QUIRE_MODEL_KEY where the \
             server wants a key; or OPENAI_API_KEY and OPENAI_MODEL"
                .to_owned(),
        ));
    };
    let Some(model) = read("QUIRE_MODEL_NAME").or_else(|| read("OPENAI_MODEL")) else {
        return Err(setup(format!("no model is named for {url}: export QUIRE_MODEL_NAME, or OPENAI_MODEL")));
    };
    let mut profile = Profile::new(ENVIRONMENT, Kind::OpenAi, url, model);
    if let Some(tokens) = read("QUIRE_MODEL_CONTEXT") {
        profile.context_tokens = tokens
            .trim()
            .parse()
            .map_err(|_| setup(format!("QUIRE_MODEL_CONTEXT is `{tokens}`: write the model's context in tokens, like 32768")))?;
    }
    let key = read(var);
    if key.is_some() {
        profile.key = KeySource::Env { var: var.to_owned() };
    }
    Ok((profile, key.map(Into::into)))
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
