//! The one connection that writes, and the group commit of all who wait for it.
//!
//! What is queued becomes one transaction and one wait for the disk; a write that fails leaves the others whole. Nobody is
//! told of success before the commit.
//!
//! Statements are few and large: each is a message to the connection's thread and back, which takes longer than its work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::BoxFuture;
use quire_runtime::ports::StoreError;
use sqlx::SqliteConnection;
use tokio::sync::{mpsc, oneshot};

use super::fault::{self, Fault};
use super::place::Place;

/// More would only make the first in the queue wait for the last.
const BATCH_MAX: usize = 256;

/// How long a batch waits to be filled: a small part of what the disk takes.
const GATHER_MAX: Duration = Duration::from_micros(200);

/// How often a transaction is begun anew after the busy timeout has passed. The wait for a lock is not fair: among many
/// processes one may be unlucky for long.
const BEGIN_TRIES: u32 = 3;

/// Takes writes and carries them out in a task of its own; whoever waits may be dropped at any time.
#[derive(Debug)]
pub struct Writer {
    // Without bound: whoever queues a job waits for it, so there are never more jobs than callers.
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
}

impl Writer {
    /// Starts the task. It ends when the writer is dropped and the queue is empty.
    pub fn start(connection: SqliteConnection, place: Arc<Place>) -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        tokio::spawn(write_batches(connection, place, queue));
        Self { jobs }
    }

    /// Does `work` with `given` in a transaction, and returns once it is on disk. Work may be rolled back and done again.
    pub async fn write<G, T>(&self, given: G, work: Work<G, T>) -> Result<T, StoreError>
    where
        G: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let stopped = || StoreError::Unusable {
            message: "the store has been shut down and this write may not have happened; start quire again".to_owned(),
        };
        self.jobs.send(Box::new(Asked { given, work, result: None, caller })).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

/// What one write does to the database, inside a transaction.
type Work<G, T> = for<'c> fn(&'c mut SqliteConnection, &'c G) -> BoxFuture<'c, Result<T, Fault>>;

async fn write_batches(mut connection: SqliteConnection, place: Arc<Place>, mut queue: mpsc::UnboundedReceiver<Box<dyn Job>>) {
    let mut batch = vec![];
    let mut answered = 0;
    while queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
        gather(&mut queue, &mut batch, answered).await;
        answered = batch.len();
        let written = write_together(&mut connection, &place, &mut batch).await;
        let may_go_alone = batch.len() > 1 && matches!(written, Err(NotWritten::RolledBack(_)));
        for mut job in batch.drain(..) {
            // One write too big for the disk takes all of its batch down: alone, the others may fit.
            if may_go_alone {
                let written = write_together(&mut connection, &place, std::slice::from_mut(&mut job)).await;
                job.tell(written);
            } else {
                job.tell(written.clone());
            }
        }
    }
}

/// Waits for those who were answered with the last batch, as far as they ask again at once.
///
/// Without it the first of them makes a batch alone and the others wait for its disk: twice the time for all.
async fn gather(queue: &mut mpsc::UnboundedReceiver<Box<dyn Job>>, batch: &mut Vec<Box<dyn Job>>, answered: usize) {
    let begun = Instant::now();
    while batch.len() < answered && begun.elapsed() < GATHER_MAX {
        tokio::task::yield_now().await;
        while batch.len() < BATCH_MAX
            && let Ok(job) = queue.try_recv()
        {
            batch.push(job);
        }
    }
}

/// Why a batch is not on disk.
#[derive(Debug, Clone)]
enum NotWritten {
    /// No transaction could be begun.
    NotBegun(StoreError),
    /// One was begun and has been rolled back.
    RolledBack(StoreError),
}

async fn write_together(connection: &mut SqliteConnection, place: &Place, batch: &mut [Box<dyn Job>]) -> Result<(), NotWritten> {
    place.check_unchanged().map_err(NotWritten::NotBegun)?;
    begin(connection, place).await?;
    // Failures are rare, and a savepoint costs two statements: only a batch in which one fails is done again with them.
    if run_all(connection, place, batch).await {
        return commit(connection, place).await;
    }
    roll_back(connection).await;
    if batch.len() == 1 {
        return Ok(());
    }
    begin(connection, place).await?;
    match run_each(connection, place, batch).await {
        Ok(()) => commit(connection, place).await,
        Err(error) => {
            roll_back(connection).await;
            Err(NotWritten::RolledBack(error))
        }
    }
}

/// Runs the jobs up to the first that fails; says whether all went well.
async fn run_all(connection: &mut SqliteConnection, place: &Place, batch: &mut [Box<dyn Job>]) -> bool {
    for job in batch {
        if job.run(connection, place).await.is_err() {
            return false;
        }
    }
    true
}

/// Runs each job, and undoes those that fail.
async fn run_each(connection: &mut SqliteConnection, place: &Place, batch: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let database_error = |error: sqlx::Error| place.error(error.into());
    for job in batch {
        sqlx::query("SAVEPOINT job").execute(&mut *connection).await.map_err(database_error)?;
        if let Err(error) = job.run(connection, place).await {
            // There is no savepoint any more where the failure, as that of a full disk, has rolled back everything.
            sqlx::query("ROLLBACK TO job").execute(&mut *connection).await.map_err(|_| error)?;
        }
        sqlx::query("RELEASE job").execute(&mut *connection).await.map_err(database_error)?;
    }
    Ok(())
}

async fn begin(connection: &mut SqliteConnection, place: &Place) -> Result<(), NotWritten> {
    let begun = begin_immediate(connection).await;
    begun.map_err(|error| NotWritten::NotBegun(place.error(error.into())))
}

async fn commit(connection: &mut SqliteConnection, place: &Place) -> Result<(), NotWritten> {
    let committed = sqlx::query("COMMIT").execute(&mut *connection).await;
    if let Err(error) = committed {
        roll_back(connection).await;
        return Err(NotWritten::RolledBack(place.error(error.into())));
    }
    Ok(())
}

async fn roll_back(connection: &mut SqliteConnection) {
    // Fails where SQLite has rolled back by itself; then there is nothing left to do.
    let _ = sqlx::query("ROLLBACK").execute(connection).await;
}

async fn begin_immediate(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        match sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await {
            Err(error) if fault::is_busy(&error) && tries < BEGIN_TRIES => {}
            begun => return begun.map(|_| ()),
        }
    }
}

/// A write and the one who waits for it.
#[async_trait]
trait Job: Send {
    /// Does the work and keeps its result.
    async fn run(&mut self, connection: &mut SqliteConnection, place: &Place) -> Result<(), StoreError>;

    /// Tells the caller: the work's own failure, else that of the batch, else its result.
    fn tell(self: Box<Self>, written: Result<(), NotWritten>);
}

struct Asked<G, T> {
    given: G,
    work: Work<G, T>,
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

#[async_trait]
impl<G: Send + Sync, T: Send> Job for Asked<G, T> {
    async fn run(&mut self, connection: &mut SqliteConnection, place: &Place) -> Result<(), StoreError> {
        let result = (self.work)(connection, &self.given).await.map_err(|fault| place.error(fault));
        let outcome = result.as_ref().map(|_| ()).map_err(StoreError::clone);
        self.result = Some(result);
        outcome
    }

    fn tell(self: Box<Self>, written: Result<(), NotWritten>) {
        let answer = match (self.result, written) {
            (Some(Err(error)), _) | (_, Err(NotWritten::NotBegun(error) | NotWritten::RolledBack(error))) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => unreachable!("a batch is committed when all its jobs have run"),
        };
        // A caller who no longer waits changes nothing: the write stands.
        let _ = self.caller.send(answer);
    }
}
