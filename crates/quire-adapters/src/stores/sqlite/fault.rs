//! Why a statement did not do as told, before anybody has named the database.

use quire_runtime::ports::StoreError;

/// What went wrong inside one read or write; [`super::place::Place::error`] puts it into words.
#[derive(Debug)]
pub enum Fault {
    /// Said in the caller's own terms already.
    Store(StoreError),
    /// SQLite, the disk or the connection.
    Database(sqlx::Error),
    /// What was read makes no sense to this program.
    Unreadable(String),
    /// The caller broke a promise: a bug of ours.
    Bug(String),
    /// The database belongs to another program.
    Foreign,
    /// A newer program wrote it.
    Newer {
        /// The database's format.
        format: i64,
    },
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Returns SQLite's own number for an error (<https://sqlite.org/rescode.html>), without the extension in its upper bits.
pub fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Whether SQLite could not make its shared index larger: on a full disk that fails before any write does.
pub fn is_index_without_room(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == IOERR_SHMSIZE)
}

/// Whether another try may succeed: somebody else held a lock for too long.
pub fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(BUSY | LOCKED | PROTOCOL))
}

// SQLite's primary codes, as far as we have something of our own to say about them.
pub const BUSY: i32 = 5;
pub const LOCKED: i32 = 6;
pub const READONLY: i32 = 8;
pub const IOERR: i32 = 10;
const IOERR_SHMSIZE: &str = "4874";
pub const CORRUPT: i32 = 11;
pub const FULL: i32 = 13;
pub const CANTOPEN: i32 = 14;
pub const PROTOCOL: i32 = 15;
pub const CONSTRAINT: i32 = 19;
pub const NOTADB: i32 = 26;
