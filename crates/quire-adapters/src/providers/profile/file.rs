//! A small JSON file that only its owner reads, changed by putting a new one in its place.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ProfileError;

/// The version that is written.
pub(super) const VERSION: u32 = 1;

/// A file's content that says its version.
pub(super) trait Versioned: Default + Serialize + DeserializeOwned {
    fn version(&self) -> u32;
}

/// Keeps other processes from changing the folder's files until it is dropped.
pub(super) fn lock_folder(folder: &Path) -> Result<File, ProfileError> {
    std::fs::create_dir_all(folder).map_err(|source| unusable(folder, source))?;
    let path = folder.join("models.lock");
    let open = || {
        let file = owner_only().create(true).truncate(false).write(true).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|source| unusable(&path, source))
}

/// Reads a file; one that is not there is empty.
pub(super) fn read<T: Versioned>(path: &Path) -> Result<T, ProfileError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
        Err(source) => return Err(unusable(path, source)),
    };
    let broken = |message: String| ProfileError::Broken { path: path.display().to_string(), message };
    // The words of the reader repeat what is wrong, which in a file of keys may be one: only its place is told.
    let content: T = serde_json::from_str(&text).map_err(|error| broken(fault(&error)))?;
    match content.version() {
        VERSION => Ok(content),
        newer if newer > VERSION => {
            Err(broken(format!("it has version {newer}, and this program knows {VERSION}; use a newer one")))
        }
        _ => Err(broken("it has no version".to_owned())),
    }
}

fn fault(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Syntax => "it is not JSON",
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Data => "a field is unknown, missing or of the wrong kind",
        serde_json::error::Category::Io => "it cannot be read on",
    };
    format!("{kind}, at line {}, column {}", error.line(), error.column())
}

/// Puts a new file in place of the old one, both whole at any moment.
pub(super) fn write<T: Versioned>(path: &Path, content: &T) -> Result<(), ProfileError> {
    let text = serde_json::to_string_pretty(content).expect("profiles are plain data") + "\n";
    let new = path.with_extension("json.new");
    let put = || {
        // One left by a killed process may have another mode.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = owner_only().create_new(true).write(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    put().map_err(|source| unusable(path, source))
}

fn unusable(path: &Path, source: std::io::Error) -> ProfileError {
    ProfileError::Io { path: path.display().to_string(), source }
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
