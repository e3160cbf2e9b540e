//! The data folder and the database in it: made once, known again, named in every error.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use quire_runtime::ports::StoreError;

use super::fault::{self, Fault};

/// A data folder.
#[derive(Debug)]
pub struct Place {
    folder: PathBuf,
    database: PathBuf,
    /// Which file the database is; none until it is open.
    identity: Option<Identity>,
}

impl Place {
    /// Makes the folder where there is none.
    pub fn make(folder: &Path) -> Result<Self, StoreError> {
        // Absolute, so that a change of the working directory does not move it.
        let absolute = std::path::absolute(folder).map_err(|error| folder_error(folder, &error))?;
        let place = Self { database: absolute.join("quire.db"), folder: absolute, identity: None };
        std::fs::create_dir_all(place.owners()).map_err(|error| place.folder_error(&error))?;
        Ok(place)
    }

    /// Remembers which file the database is, now that it is there.
    pub fn opened(self) -> Result<Self, StoreError> {
        let metadata = std::fs::metadata(&self.database).map_err(|error| self.folder_error(&error))?;
        Ok(Self { identity: Some(Identity::of(&metadata)), ..self })
    }

    /// Returns the database's path.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Returns the folder of the owners' lock files.
    pub fn owners(&self) -> PathBuf {
        self.folder.join("owners")
    }

    /// Returns the path of the lock that is held while a store opens.
    pub fn opening(&self) -> PathBuf {
        self.folder.join("opening.lock")
    }

    /// Makes sure that the path still leads to the database that was opened.
    ///
    /// A folder on a drive that was unplugged, or one that a backup was laid over, must get no writes: they would go to a
    /// file nobody sees any more. One look at the file is all it costs.
    pub fn check_unchanged(&self) -> Result<(), StoreError> {
        let found = std::fs::metadata(&self.database).ok().map(|metadata| Identity::of(&metadata));
        if found.is_some() && found == self.identity {
            return Ok(());
        }
        let folder = self.folder.display();
        let message = format!(
            "the data folder {folder} was removed or replaced while quire was using it; nothing was written and nothing made \
             anew; put the folder back, or start quire again to use what is there now"
        );
        Err(StoreError::Unusable { message })
    }

    /// Says what is wrong with the folder and what to do.
    pub fn folder_error(&self, error: &io::Error) -> StoreError {
        folder_error(&self.folder, error)
    }

    /// Says that the folder is being opened by somebody who does not come to an end.
    pub fn opening_error(&self) -> StoreError {
        let message = format!(
            "another quire has been opening the data folder {} for too long; end that process and try again",
            self.folder.display()
        );
        StoreError::Unusable { message }
    }

    /// Says what happened to the database and what to do.
    pub fn error(&self, fault: Fault) -> StoreError {
        let cause = match fault {
            Fault::Store(error) => return error,
            Fault::Database(error) => database_cause(&error),
            Fault::Unreadable(what) => format!("{what}; it was left as it is; use the newest quire, or restore a backup"),
            Fault::Bug(what) => format!("{what}; nothing was written; this is a bug in quire: please report it"),
            Fault::Foreign => "it is not a database of quire; move it away, or name another data folder".to_owned(),
            Fault::Newer { format } => {
                let known = super::schema::FORMAT;
                format!(
                    "its format is {format}, and this program knows up to {known}: a newer quire wrote this folder; use that one"
                )
            }
        };
        StoreError::Unusable { message: format!("cannot use {}: {cause}", self.database.display()) }
    }
}

fn folder_error(folder: &Path, error: &io::Error) -> StoreError {
    let message = format!(
        "cannot use the data folder {}: {error}; name a folder that can be made and written, or change its permissions",
        folder.display()
    );
    StoreError::Unusable { message }
}

const DISK_FULL: &str = "the disk is full; nothing was written; free some space and try again";

fn database_cause(error: &sqlx::Error) -> String {
    let cause = match fault::primary_code(error) {
        Some(fault::FULL) => DISK_FULL,
        Some(fault::IOERR) if fault::is_index_without_room(error) => DISK_FULL,
        Some(fault::READONLY) => "it or its folder is read-only; nothing was written; make both writable and try again",
        Some(fault::CANTOPEN) => "it cannot be opened; make it and its folder readable and writable, and try again",
        Some(fault::CORRUPT | fault::NOTADB) => "it is damaged; it was left as it is; restore a backup, or move it away",
        Some(fault::BUSY | fault::LOCKED | fault::PROTOCOL) => {
            "another program has locked it for too long; nothing was written; close that program and try again"
        }
        Some(fault::IOERR) => "the disk failed to read or write; nothing was promised; check the disk, then start quire again",
        Some(fault::CONSTRAINT) => {
            "a write does not go with what is stored; nothing was written; this is a bug in quire: please report it"
        }
        Some(_) | None => "the database did not do as told; nothing was written; start quire again",
    };
    format!("{cause} ({error})")
}

/// Which file a path leads to, whatever its name.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    // Elsewhere an open database cannot be replaced, only its drive can go.
    #[cfg(not(unix))]
    is_file: bool,
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { device_and_inode: (metadata.dev(), metadata.ino()) }
    }

    #[cfg(not(unix))]
    fn of(metadata: &Metadata) -> Self {
        Self { is_file: metadata.is_file() }
    }
}
