//! Who is alive: each open store holds a lock on a file of its own, and the operating system lets go of it at its death.
//!
//! So a killed owner is replaced at once. Nobody's life is judged by a clock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quire_runtime::ports::StoreError;

use super::place::Place;

/// The name of one open store.
pub type Owner = Arc<str>;

/// How long somebody else may take to open the same folder.
const OPENING_WAIT: Duration = Duration::from_secs(30);

/// How often we look whether they are done.
const OPENING_LOOK: Duration = Duration::from_millis(20);

/// Waits until nobody else opens a store on the folder, and keeps others from it while the file lives.
///
/// Under it the database is made and lifted by one process alone, and no lock file is cleared away between its making and
/// its locking.
pub async fn lock_opening(place: &Place) -> Result<File, StoreError> {
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(place.opening());
    let file = open.map_err(|error| place.folder_error(&error))?;
    let locked = async {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(OPENING_LOOK).await,
                Err(TryLockError::Error(error)) => return Err(place.folder_error(&error)),
            }
        }
    };
    tokio::time::timeout(OPENING_WAIT, locked).await.map_err(|_| place.opening_error())??;
    Ok(file)
}

/// The lock of a living store.
#[derive(Debug)]
pub struct OwnerFile {
    owner: Owner,
    path: PathBuf,
    _locked: File,
}

impl OwnerFile {
    /// Makes and locks a new one, and clears away those of the dead. Only under [`lock_opening`].
    pub fn take(place: &Place) -> Result<Self, StoreError> {
        let take = || -> io::Result<Self> {
            for entry in std::fs::read_dir(place.owners())? {
                let path = entry?.path();
                if !is_locked(&path)? {
                    std::fs::remove_file(path)?;
                }
            }
            let owner: Owner = uuid::Uuid::now_v7().to_string().into();
            let path = lock_path(place, &owner);
            let file = OpenOptions::new().create_new(true).write(true).open(&path)?;
            file.try_lock()?;
            Ok(Self { owner, path, _locked: file })
        };
        take().map_err(|error| place.folder_error(&error))
    }

    /// Returns the store's name.
    pub fn owner(&self) -> Owner {
        Arc::clone(&self.owner)
    }
}

impl Drop for OwnerFile {
    fn drop(&mut self) {
        // What cannot be removed is cleared away by the next one to open the folder.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Says whether a store still lives.
pub fn is_alive(place: &Place, owner: &str) -> Result<bool, StoreError> {
    is_locked(&lock_path(place, owner)).map_err(|error| place.folder_error(&error))
}

fn lock_path(place: &Place, owner: &str) -> PathBuf {
    place.owners().join(format!("{owner}.lock"))
}

fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Shared: two who look at once must not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
