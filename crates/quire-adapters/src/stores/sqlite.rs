//! Journals in one SQLite database in the data folder, shared by any number of processes.
//!
//! What is promised is on disk when its future is done (WAL, `synchronous=FULL`). A write whose future is dropped is still
//! carried out, or not at all. A database of a newer format is refused, a damaged one is left as it is, and one that is
//! taken away while the program runs is never made anew.
//!
//! No record is understood here: bodies are text, and what is damaged inside them is found by the core.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use quire_core::event::Action;
use quire_core::ids::{RecordId, SessionId};
use quire_runtime::ports::{Answered, Append, Lease, Store, StoreError, StoredJournal, Summary, Ticket};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqlitePool};

use fault::Fault;
use owner::{Owner, OwnerFile};
use place::Place;
use writer::Writer;

mod fault;
mod inbox;
mod journal;
mod owner;
mod place;
mod schema;
mod sessions;
mod writer;

/// How long one statement waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Readers wait for nobody in WAL, so a few serve many sessions.
const READERS_MAX: u32 = 4;

/// The store that keeps everything in `quire.db`.
pub struct SqliteStore {
    place: Arc<Place>,
    readers: SqlitePool,
    writer: Writer,
    // Held for as long as the store lives: by it other processes see that its leases are in living hands.
    owner: OwnerFile,
}

impl SqliteStore {
    /// Opens the store in a data folder, and makes both where there are none.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] when the folder cannot be written, or the database is damaged, foreign or newer than this
    /// program.
    pub async fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_at_most(folder, u32::MAX).await
    }

    /// Opens the store, and lets its database grow to `pages_max` pages of 4 KiB: to the store a disk of that size.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_at_most(folder: &Path, pages_max: u32) -> Result<Self, StoreError> {
        let place = Place::make(folder)?;
        let opening = owner::lock_opening(&place).await?;
        let options = SqliteConnectOptions::new()
            .filename(place.database())
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("max_page_count", pages_max.to_string());
        let mut connection = options.connect().await.map_err(|error| place.error(error.into()))?;
        schema::lift(&mut connection).await.map_err(|fault| place.error(fault))?;
        let place = Arc::new(place.opened()?);
        let owner = OwnerFile::take(&place)?;
        drop(opening);

        let options = SqliteConnectOptions::new()
            .filename(place.database())
            .create_if_missing(false)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("query_only", "1");
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(options);
        let writer = Writer::start(connection, Arc::clone(&place));
        Ok(Self { place, readers, writer, owner })
    }

    fn me(&self) -> Owner {
        self.owner.owner()
    }

    async fn reader(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.place.check_unchanged()?;
        self.readers.acquire().await.map_err(|error| self.place.error(error.into()))
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, session: &SessionId, first: Append) -> Result<Lease, StoreError> {
        assert_eq!(first.summary.session, *session, "a record comes with the line of its own session");
        let given = (self.me(), session.clone(), first);
        self.writer.write(given, |writer, (me, session, first)| journal::create(writer, me, session, first).boxed()).await
    }

    async fn claim(&self, session: &SessionId) -> Result<Option<Lease>, StoreError> {
        let given = (Arc::clone(&self.place), self.me(), session.clone());
        self.writer.write(given, |writer, (place, me, session)| sessions::claim(writer, place, me, session).boxed()).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let given = (self.me(), lease.clone());
        self.writer.write(given, |writer, (me, lease)| sessions::release(writer, me, lease).boxed()).await
    }

    async fn append(&self, lease: &Lease, append: Append) -> Result<(), StoreError> {
        assert_eq!(append.summary.session, lease.session, "a record comes with the line of its own session");
        let given = (self.me(), lease.clone(), append);
        self.writer.write(given, |writer, (me, lease, append)| journal::append(writer, me, lease, append).boxed()).await
    }

    async fn load(&self, session: &SessionId) -> Result<StoredJournal, StoreError> {
        let mut reader = self.reader().await?;
        let loaded = async {
            // One transaction: records, texts and head of one and the same moment.
            let mut transaction = reader.begin().await?;
            let journal = journal::load(&mut transaction, session).await?;
            transaction.rollback().await?;
            Ok(journal)
        };
        loaded.await.map_err(|fault: Fault| self.place.error(fault))
    }

    async fn newest(&self, session: &SessionId) -> Result<RecordId, StoreError> {
        journal::newest(&mut *self.reader().await?, session).await.map_err(|fault| self.place.error(fault))
    }

    async fn summary(&self, session: &SessionId) -> Result<Summary, StoreError> {
        sessions::summary(&mut *self.reader().await?, session).await.map_err(|fault| self.place.error(fault))
    }

    async fn list(&self) -> Result<Vec<Summary>, StoreError> {
        let mut reader = self.reader().await?;
        let listed = async {
            let mut transaction = reader.begin().await?;
            let summaries = sessions::list(&mut transaction).await?;
            transaction.rollback().await?;
            Ok(summaries)
        };
        listed.await.map_err(|fault: Fault| self.place.error(fault))
    }

    async fn post(&self, session: &SessionId, action: &Action) -> Result<Ticket, StoreError> {
        let given = (session.clone(), action.clone());
        self.writer.write(given, |writer, (session, action)| inbox::post(writer, session, action).boxed()).await
    }

    async fn inbox(&self, session: &SessionId) -> Result<Vec<(Ticket, Action)>, StoreError> {
        inbox::unanswered(&mut *self.reader().await?, session).await.map_err(|fault| self.place.error(fault))
    }

    async fn refuse(&self, lease: &Lease, ticket: Ticket, answer: Answered) -> Result<(), StoreError> {
        let given = (self.me(), lease.clone(), ticket, answer);
        self.writer
            .write(given, |writer, (me, lease, ticket, answer)| inbox::refuse(writer, me, lease, *ticket, answer).boxed())
            .await
    }

    async fn answer(&self, ticket: Ticket) -> Result<Option<Answered>, StoreError> {
        inbox::answer(&mut *self.reader().await?, ticket).await.map_err(|fault| self.place.error(fault))
    }
}

/// SQLite's integers have a sign; our counters start at 0 and never come near the end.
fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("a counter fits into 63 bits")
}

fn unsigned(number: i64) -> Result<u64, Fault> {
    u64::try_from(number).map_err(|_| Fault::Unreadable(format!("it holds {number} where a counter belongs")))
}
