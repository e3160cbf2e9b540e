//! Profiles: which model is reached how, in `models.json` of the data folder; keys apart from them ([`keys`](KeySource)).
//!
//! Each change reads the file, changes it and puts a new one in its place, under a lock that other processes take too. A
//! file that cannot be read is never reset: it is an error that says what is wrong with it. No key is in `models.json`, in
//! any message or in any debug output.

mod file;
mod keys;
mod local;
mod preset;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quire_core::message::{Failure, FailureKind};
use quire_runtime::ports::{ModelProvider, Models};
use quire_scenario::Scenario;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SILENCE_MAX;
use super::anthropic::{Anthropic, AnthropicConfig};
use super::gemini::{Gemini, GeminiConfig};
use super::http::{SetupError, lock, shown};
use super::openai::{OpenAi, OpenAiConfig};
use super::price::{Price, Priced};
use super::probe::{Ability, ProbeReport, Verdict};
use super::scripted::Scripted;
use super::tool_mode::ToolMode;
use super::wire::Wire;

pub use keys::KeySource;
pub use local::{LocalServer, find_local};
pub use preset::{PRESETS, Preset, preset};

/// A model's context in tokens where nobody says: small enough for local servers.
const CONTEXT_TOKENS: u32 = 32_768;

/// What a model's server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Chat completions of OpenAI, as most do.
    OpenAi,
    /// Messages of Anthropic.
    Anthropic,
    /// Contents of Gemini.
    Gemini,
    /// Nothing: it is a scenario file.
    Scripted,
}

/// One model, by the name that packs and sessions use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What its server speaks.
    pub kind: Kind,
    /// Where the server is; of a scripted model, the path of its scenario.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// Where its key is.
    #[serde(default)]
    pub key: KeySource,
    /// The size of the model's context in tokens: prompt and reply.
    pub context_tokens: u32,
    /// The most tokens a reply may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<u32>,
    /// How calls are asked for and read.
    #[serde(default)]
    pub tool_mode: ToolMode,
    /// Whether plain reasoning goes back with the calls it led to. Signed reasoning always does.
    #[serde(default)]
    pub echo_reasoning: bool,
    /// How many seconds the server may be silent; 120 where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_max_s: Option<u32>,
    /// Further parameters, sent as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Parameters that the server refuses, each with its words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// What a million tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What a probe has found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<ProbeReport>,
}

impl Profile {
    /// Makes a profile of a server that wants no key and of which nothing else is known.
    pub fn new(name: impl Into<String>, kind: Kind, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: base_url.into(),
            model: model.into(),
            key: KeySource::None,
            context_tokens: CONTEXT_TOKENS,
            output_tokens_max: None,
            tool_mode: ToolMode::Native,
            echo_reasoning: false,
            silence_max_s: None,
            parameters: Map::new(),
            refused: BTreeMap::new(),
            price: None,
            probed: None,
        }
    }

    /// Makes a profile from a preset.
    pub fn from_preset(name: impl Into<String>, preset: &Preset, model: impl Into<String>) -> Self {
        Self {
            key: preset.key_var.map_or(KeySource::None, |var| KeySource::Env { var: var.to_owned() }),
            context_tokens: preset.context_tokens,
            tool_mode: preset.tool_mode,
            echo_reasoning: preset.echo_reasoning,
            ..Self::new(name, preset.kind, preset.base_url, model)
        }
    }

    /// Takes over what a probe has found out; of a model that did not answer, only that.
    pub fn learn(&mut self, report: ProbeReport) {
        if report.verdict(Ability::Chat) != Verdict::Yes {
            self.probed = Some(report);
            return;
        }
        self.tool_mode = report.tool_mode;
        self.context_tokens = report.context_tokens.unwrap_or(self.context_tokens);
        self.refused.extend(report.refused.clone());
        self.probed = Some(report);
    }

    /// Returns the base URL without what in it may be a secret.
    pub fn shown_url(&self) -> String {
        reqwest::Url::parse(&self.base_url).map_or_else(|_| self.base_url.clone(), |url| shown(&url))
    }

    /// Prepares the wire; `None` for a scripted model.
    pub(super) fn wire(&self, key: Option<SecretString>) -> Result<Option<Wire>, SetupError> {
        let (base_url, model, context_tokens) = (self.base_url.clone(), self.model.clone(), self.context_tokens);
        let output_tokens_max = self.output_tokens_max;
        let silence_max = self.silence_max_s.map_or(SILENCE_MAX, |seconds| Duration::from_secs(seconds.into()));
        let (refused, parameters) = (self.refused.clone(), self.parameters.clone());
        Ok(Some(match self.kind {
            Kind::Scripted => return Ok(None),
            Kind::OpenAi => Wire::OpenAi(OpenAi::new(OpenAiConfig {
                base_url,
                model,
                key,
                context_tokens,
                output_tokens_max,
                echo_reasoning: self.echo_reasoning,
                silence_max,
                tool_mode: self.tool_mode,
                refused,
                parameters,
            })?),
            Kind::Anthropic => Wire::Anthropic(Anthropic::new(AnthropicConfig {
                base_url,
                model,
                key,
                context_tokens,
                output_tokens_max,
                silence_max,
                refused,
                parameters,
            })?),
            Kind::Gemini => Wire::Gemini(Gemini::new(GeminiConfig {
                base_url,
                model,
                key,
                context_tokens,
                output_tokens_max,
                silence_max,
                refused,
                parameters,
            })?),
        }))
    }

    /// Prepares the provider; sends nothing.
    ///
    /// # Errors
    /// [`ProfileError`] when the server's address, the key or the scenario cannot be used.
    pub fn provider(&self, key: Option<SecretString>) -> Result<Arc<dyn ModelProvider>, ProfileError> {
        let in_profile = |message: String| ProfileError::Unusable { name: self.name.clone(), message };
        let wire = self.wire(key).map_err(|error| in_profile(error.to_string()))?;
        let provider = match wire {
            Some(wire) => wire.into_provider(),
            None => {
                let text = std::fs::read_to_string(&self.base_url)
                    .map_err(|error| in_profile(format!("its scenario `{}` cannot be read: {error}", self.base_url)))?;
                let scenario = Scenario::parse(&self.base_url, &text).map_err(|faults| {
                    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    in_profile(format!("its scenario has faults:\n{}", faults.join("\n")))
                })?;
                Arc::new(Scripted::new(scenario))
            }
        };
        Ok(match self.price {
            Some(price) => Arc::new(Priced::new(provider, price)),
            None => provider,
        })
    }
}

/// Why a profile, or their file, cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is no such profile.
    #[error("there is no model profile `{name}`; there are: {known}; `quire model add` makes one")]
    NoProfile {
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// There is one already.
    #[error("there is a model profile `{0}` already; remove it first, or choose another name")]
    Exists(String),
    /// A name that cannot be one.
    #[error("`{0}` cannot be the name of a model profile; use letters, digits, `-`, `_` and `.`, at most 64 of them")]
    BadName(String),
    /// The profile is there and cannot be used.
    #[error("the model profile `{name}` cannot be used: {message}")]
    Unusable {
        /// Its name.
        name: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// Its key is not where it should be.
    #[error("the model profile `{name}` has no key: {message}")]
    NoKey {
        /// Its name.
        name: String,
        /// Where it was looked for and what to do.
        message: String,
    },
    /// The file has faults. It is left as it is.
    #[error("`{path}` cannot be read: {message}; mend it, or move it away and add the profiles again")]
    Broken {
        /// The file.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// The file or its folder does not let itself be read or written.
    #[error("`{path}` cannot be used: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
}

/// What `models.json` holds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    profiles: Vec<Profile>,
}

/// The profiles of a data folder. What other processes change is seen at once: nothing is kept in memory.
#[derive(Debug, Clone)]
pub struct Profiles {
    folder: PathBuf,
}

impl Profiles {
    /// Names a data folder's profiles, and reads nothing yet: what needs no model works while their file has faults.
    pub fn of(data_folder: impl AsRef<Path>) -> Self {
        Self { folder: data_folder.as_ref().to_owned() }
    }

    /// Opens a data folder's profiles; a folder without any has none.
    ///
    /// # Errors
    /// [`ProfileError::Broken`] when the file has faults.
    pub fn open(data_folder: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let profiles = Self::of(data_folder);
        profiles.list()?;
        Ok(profiles)
    }

    /// Lists them by name.
    pub fn list(&self) -> Result<Vec<Profile>, ProfileError> {
        Ok(self.read()?.profiles)
    }

    /// Returns one.
    ///
    /// # Errors
    /// [`ProfileError::NoProfile`] names those there are.
    pub fn get(&self, name: &str) -> Result<Profile, ProfileError> {
        let profiles = self.list()?;
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let found = profiles.iter().find(|profile| profile.name == name).cloned();
        found.ok_or_else(|| ProfileError::NoProfile { name: name.to_owned(), known })
    }

    /// Adds one; `key` is put where its [`KeySource`] says, for those that we keep ourselves.
    ///
    /// # Errors
    /// [`ProfileError::Exists`] when there is one of that name.
    pub fn add(&self, profile: Profile, key: Option<SecretString>) -> Result<(), ProfileError> {
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if profile.name.is_empty() || profile.name.chars().count() > 64 || !profile.name.chars().all(is_letter) {
            return Err(ProfileError::BadName(profile.name));
        }
        let _guard = file::lock_folder(&self.folder)?;
        let mut stored = self.read()?;
        if stored.profiles.iter().any(|other| other.name == profile.name) {
            return Err(ProfileError::Exists(profile.name));
        }
        if let Some(key) = key {
            keys::keep(&self.folder, &profile, &key)?;
        }
        stored.profiles.push(profile);
        self.write(stored)
    }

    /// Puts a profile in place of the one of its name: after a probe, or with another price.
    pub fn replace(&self, profile: Profile) -> Result<(), ProfileError> {
        let _guard = file::lock_folder(&self.folder)?;
        self.get(&profile.name)?;
        let mut stored = self.read()?;
        stored.profiles.iter_mut().filter(|other| other.name == profile.name).for_each(|other| *other = profile.clone());
        self.write(stored)
    }

    /// Removes one, and its key where we keep it.
    pub fn remove(&self, name: &str) -> Result<Profile, ProfileError> {
        let _guard = file::lock_folder(&self.folder)?;
        let removed = self.get(name)?;
        let mut stored = self.read()?;
        stored.profiles.retain(|profile| profile.name != name);
        self.write(stored)?;
        keys::forget(&self.folder, &removed)?;
        Ok(removed)
    }

    /// Finds a profile's key; none where it has none.
    ///
    /// # Errors
    /// [`ProfileError::NoKey`] when it is not where the profile says.
    pub fn key(&self, profile: &Profile) -> Result<Option<SecretString>, ProfileError> {
        keys::find(&self.folder, profile)
    }

    fn read(&self) -> Result<Stored, ProfileError> {
        file::read(&self.path())
    }

    fn write(&self, mut stored: Stored) -> Result<(), ProfileError> {
        stored.profiles.sort_by(|one, other| one.name.cmp(&other.name));
        file::write(&self.path(), &Stored { version: file::VERSION, ..stored })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("models.json")
    }
}

impl file::Versioned for Stored {
    fn version(&self) -> u32 {
        self.version
    }
}

/// The providers of a data folder's profiles. Each is made once and made again when its profile or key has changed.
#[derive(Debug)]
pub struct ProfileModels {
    profiles: Profiles,
    made: Mutex<BTreeMap<String, Made>>,
}

struct Made {
    profile: Profile,
    key: Option<SecretString>,
    provider: Arc<dyn ModelProvider>,
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").field("profile", &self.profile.name).finish_non_exhaustive()
    }
}

impl ProfileModels {
    /// Makes no provider yet.
    pub fn new(profiles: Profiles) -> Self {
        Self { profiles, made: Mutex::default() }
    }

    fn find(&self, name: &str) -> Result<Arc<dyn ModelProvider>, ProfileError> {
        let profile = self.profiles.get(name)?;
        let key = self.profiles.key(&profile)?;
        let mut made = lock(&self.made);
        let exposed = |key: &Option<SecretString>| key.as_ref().map(|key| key.expose_secret().to_owned());
        if let Some(made) = made.get(name).filter(|made| made.profile == profile && exposed(&made.key) == exposed(&key)) {
            return Ok(made.provider.clone());
        }
        let provider = profile.provider(key.clone())?;
        made.insert(name.to_owned(), Made { profile, key, provider: provider.clone() });
        Ok(provider)
    }
}

impl Models for ProfileModels {
    fn provider(&self, profile: &str) -> Result<Arc<dyn ModelProvider>, Failure> {
        self.find(profile).map_err(|error| Failure { kind: FailureKind::Setup, message: error.to_string() })
    }
}
