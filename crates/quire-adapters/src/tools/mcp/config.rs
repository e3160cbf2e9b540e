//! Which tool servers there are: the file `tools.json` in the data folder.
//!
//! People may edit it by hand; it is written whole, by a second file that takes its place, and read by nobody else but its
//! owner, since an environment may hold keys. What cannot be read is never written over.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quire_core::deep_task::Caps;
use quire_runtime::ports::RuntimeContext;
use serde::{Deserialize, Serialize};

/// The file's name.
pub const FILE: &str = "tools.json";

/// How long a call may take where nobody says.
const TIMEOUT_MS: u64 = 60_000;
const NAME_CHARS_MAX: usize = 32;

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// What each deep task may use.
    pub deep_task: Caps,
    /// The servers, in the order in which their tools are listed.
    pub servers: Vec<ServerConfig>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Its name: lower-case ASCII letters, digits, `-` and `_`, at most 32.
    pub name: String,
    /// The program that is started; none for one that is reached by `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// What is added to the program's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where a server that runs already is reached, by streamable HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where its tools are used.
    #[serde(default = "background")]
    pub contexts: BTreeSet<RuntimeContext>,
    /// Its tools that the user wants although the server does not mark them as only reading.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ticked: BTreeSet<String>,
    /// How long a call may take, in milliseconds.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
}

fn background() -> BTreeSet<RuntimeContext> {
    BTreeSet::from([RuntimeContext::Background])
}

fn timeout_ms() -> u64 {
    TIMEOUT_MS
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// A program of its own, by its standard input and output.
    Program(&'a str),
    /// By streamable HTTP.
    Url(&'a str),
}

/// Why the file, or a server in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read or written.
    #[error("{file}: {source}", file = file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{file} cannot be read: {message}; mend it, or move it away and add the servers again with `quire tool add`", file = file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A server's name cannot be used.
    #[error("`{0}` is no name for a tool server; use lower-case letters, digits, `-` and `_`, at most 32, and each name once")]
    Name(String),
    /// A server has neither program nor URL, or both.
    #[error("the tool server `{0}` needs either a command or a url")]
    Reach(String),
    /// The URL is none.
    #[error("the tool server `{name}`: `{url}` is no URL; write http://… or https://…")]
    Url {
        /// The server.
        name: String,
        /// The URL.
        url: String,
    },
}

impl ServerConfig {
    /// Makes a server that is started as a program.
    pub fn program(name: &str, command: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { command: Some(command.to_owned()), args, ..Self::named(name) }
    }

    /// Makes a server that is reached by streamable HTTP.
    pub fn url(name: &str, url: &str) -> Self {
        Self { url: Some(url.to_owned()), ..Self::named(name) }
    }

    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: None,
            args: vec![],
            env: BTreeMap::new(),
            url: None,
            contexts: background(),
            ticked: BTreeSet::new(),
            timeout_ms: TIMEOUT_MS,
        }
    }

    /// Returns how it is reached.
    ///
    /// # Errors
    /// [`ConfigError::Reach`], [`ConfigError::Url`].
    pub fn reach(&self) -> Result<Reach<'_>, ConfigError> {
        match (&self.command, &self.url) {
            (Some(command), None) if !command.trim().is_empty() => Ok(Reach::Program(command)),
            (None, Some(url)) => match reqwest::Url::parse(url) {
                Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => Ok(Reach::Url(url)),
                Ok(_) | Err(_) => Err(ConfigError::Url { name: self.name.clone(), url: url.clone() }),
            },
            _ => Err(ConfigError::Reach(self.name.clone())),
        }
    }

    /// Returns how long a call may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

impl ToolsConfig {
    /// Reads the file of a data folder; none there is an empty one.
    ///
    /// # Errors
    /// [`ConfigError::File`], [`ConfigError::Content`], and what [`check`](Self::check) says.
    pub fn load(folder: &Path) -> Result<Self, ConfigError> {
        let file = folder.join(FILE);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::File { file, source }),
        };
        let config: Self =
            serde_json::from_str(&text).map_err(|error| ConfigError::Content { file, message: error.to_string() })?;
        config.check()?;
        Ok(config)
    }

    /// Says what is wrong with the servers, if something is.
    ///
    /// # Errors
    /// [`ConfigError::Name`], [`ConfigError::Reach`], [`ConfigError::Url`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for server in &self.servers {
            let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '_');
            let is_name = !server.name.is_empty() && server.name.len() <= NAME_CHARS_MAX && server.name.chars().all(is_plain);
            if !is_name || !seen.insert(&server.name) {
                return Err(ConfigError::Name(server.name.clone()));
            }
            server.reach()?;
        }
        Ok(())
    }

    /// Writes the file of a data folder, whole or not at all.
    ///
    /// # Errors
    /// [`ConfigError::File`], and what [`check`](Self::check) says.
    pub fn save(&self, folder: &Path) -> Result<(), ConfigError> {
        self.check()?;
        let file = folder.join(FILE);
        let text = serde_json::to_string_pretty(self).expect("the configuration is plain data") + "\n";
        let write = || {
            std::fs::create_dir_all(folder)?;
            let beside = folder.join(format!("{FILE}.{}", uuid::Uuid::new_v4()));
            let written = write_private(&beside, &text).and_then(|()| std::fs::rename(&beside, &file));
            if written.is_err() {
                // The half-written one is of no use to anybody.
                std::fs::remove_file(&beside).ok();
            }
            written
        };
        write().map_err(|source| ConfigError::File { file: file.clone(), source })
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
