//! Where keys are: never in a profile, always in a [`SecretString`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{Profile, ProfileError, file};

/// Where a profile's key is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum KeySource {
    /// It needs none.
    #[default]
    None,
    /// In a variable of the environment.
    Env {
        /// Its name.
        var: String,
    },
    /// In `keys.json` of the data folder, which only its owner may read.
    File,
    /// In the operating system's keyring, where this program was built with it (`--features keyring`).
    Keyring,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    keys: BTreeMap<String, String>,
}

impl file::Versioned for Stored {
    fn version(&self) -> u32 {
        self.version
    }
}

pub(super) fn find(folder: &Path, profile: &Profile) -> Result<Option<SecretString>, ProfileError> {
    let missing = |message: String| ProfileError::NoKey { name: profile.name.clone(), message };
    match &profile.key {
        KeySource::None => Ok(None),
        KeySource::Env { var } => match std::env::var(var) {
            Ok(key) if !key.trim().is_empty() => Ok(Some(key.into())),
            Ok(_) | Err(_) => Err(missing(format!("the variable {var} is not set; set it to the key"))),
        },
        KeySource::File => {
            let stored: Stored = file::read(&path(folder))?;
            let key = stored.keys.get(&profile.name).map(|key| SecretString::from(key.clone()));
            key.map(Some).ok_or_else(|| {
                missing(format!("`{}` holds none; remove the profile and add it with its key", path(folder).display()))
            })
        }
        KeySource::Keyring => keyring::find(&profile.name).map(Some).map_err(missing),
    }
}

/// Keeps a key where the profile says.
pub(super) fn keep(folder: &Path, profile: &Profile, key: &SecretString) -> Result<(), ProfileError> {
    let refused = |message: String| ProfileError::Unusable { name: profile.name.clone(), message };
    match &profile.key {
        KeySource::None => {
            Err(refused("it was given a key, and has no place for one; keep it in the file or in a variable".to_owned()))
        }
        KeySource::Env { var } => {
            Err(refused(format!("it was given a key, and its place is the variable {var}; set that instead")))
        }
        KeySource::File => change(folder, |keys| drop(keys.insert(profile.name.clone(), key.expose_secret().trim().to_owned()))),
        KeySource::Keyring => keyring::keep(&profile.name, key).map_err(refused),
    }
}

/// Removes a key that we keep.
pub(super) fn forget(folder: &Path, profile: &Profile) -> Result<(), ProfileError> {
    match &profile.key {
        KeySource::None | KeySource::Env { .. } => Ok(()),
        KeySource::File => change(folder, |keys| drop(keys.remove(&profile.name))),
        KeySource::Keyring => {
            keyring::forget(&profile.name).map_err(|message| ProfileError::Unusable { name: profile.name.clone(), message })
        }
    }
}

fn change(folder: &Path, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<(), ProfileError> {
    let mut stored: Stored = file::read(&path(folder))?;
    change(&mut stored.keys);
    file::write(&path(folder), &Stored { version: file::VERSION, ..stored })
}

fn path(folder: &Path) -> PathBuf {
    folder.join("keys.json")
}

#[cfg(not(feature = "keyring"))]
mod keyring {
    use secrecy::SecretString;

    const NOT_BUILT: &str = "this program was built without the system's keyring; keep the key in a variable or in the file, or build with `--features keyring`";

    pub(super) fn find(_profile: &str) -> Result<SecretString, String> {
        Err(NOT_BUILT.to_owned())
    }

    pub(super) fn keep(_profile: &str, _key: &SecretString) -> Result<(), String> {
        Err(NOT_BUILT.to_owned())
    }

    pub(super) fn forget(_profile: &str) -> Result<(), String> {
        Err(NOT_BUILT.to_owned())
    }
}

#[cfg(feature = "keyring")]
mod keyring {
    use ::keyring::Entry;
    use secrecy::{ExposeSecret, SecretString};

    const SERVICE: &str = "quire";

    pub(super) fn find(profile: &str) -> Result<SecretString, String> {
        entry(profile)?.get_password().map(SecretString::from).map_err(|error| format!("the system's keyring says: {error}"))
    }

    pub(super) fn keep(profile: &str, key: &SecretString) -> Result<(), String> {
        let key = key.expose_secret().trim();
        entry(profile)?.set_password(key).map_err(|error| format!("the system's keyring says: {error}"))
    }

    pub(super) fn forget(profile: &str) -> Result<(), String> {
        match entry(profile)?.delete_credential() {
            Ok(()) | Err(::keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(format!("the system's keyring says: {error}")),
        }
    }

    fn entry(profile: &str) -> Result<Entry, String> {
        Entry::new(SERVICE, profile).map_err(|error| format!("the system's keyring says: {error}"))
    }
}
