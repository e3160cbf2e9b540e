//! The one connection that writes, and the group commit of all who wait for it.
//!
//! What is queued becomes one transaction and one wait for the disk. Each write stands in a savepoint of its own, so that
//! one that fails leaves the others whole. Nobody is told of success before the commit.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use quire_runtime::ports::StoreError;
use sqlx::SqliteConnection;
use tokio::sync::{mpsc, oneshot};

use super::fault::{self, Fault};
use super::place::Place;

/// More would only make the first in the queue wait for the last.
const BATCH_MAX: usize = 256;

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

    /// Does `work` in a transaction, and returns once it is on disk.
    pub async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let stopped = || StoreError::Unusable {
            message: "the store has been shut down and this write may not have happened; start quire again".to_owned(),
        };
        self.jobs.send(Box::new(Asked { work: Some(work), result: None, caller })).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

async fn write_batches(mut connection: SqliteConnection, place: Arc<Place>, mut queue: mpsc::UnboundedReceiver<Box<dyn Job>>) {
    let mut batch = vec![];
    while queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let committed = write_batch(&mut connection, &place, &mut batch).await;
        if committed.is_err() {
            // Fails where SQLite has rolled back by itself or nothing was begun; then there is nothing left to do.
            let _ = sqlx::query("ROLLBACK").execute(&mut connection).await;
        }
        for job in batch.drain(..) {
            job.tell(committed.clone());
        }
    }
}

async fn write_batch(connection: &mut SqliteConnection, place: &Place, batch: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    place.check_unchanged()?;
    let database_error = |error: sqlx::Error| place.error(error.into());
    begin(connection).await.map_err(database_error)?;
    for job in batch {
        sqlx::query("SAVEPOINT job").execute(&mut *connection).await.map_err(database_error)?;
        if let Err(error) = job.run(connection, place).await {
            // Some failures, as a full disk, roll back the whole transaction: then all of the batch fail by this one's cause.
            sqlx::query("ROLLBACK TO job").execute(&mut *connection).await.map_err(|_| error)?;
        }
        sqlx::query("RELEASE job").execute(&mut *connection).await.map_err(database_error)?;
    }
    sqlx::query("COMMIT").execute(&mut *connection).await.map_err(database_error)?;
    Ok(())
}

async fn begin(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
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
    fn tell(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Asked<T, W> {
    work: Option<W>,
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

#[async_trait]
impl<T, W> Job for Asked<T, W>
where
    T: Send,
    W: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, Fault>> + Send,
{
    async fn run(&mut self, connection: &mut SqliteConnection, place: &Place) -> Result<(), StoreError> {
        let work = self.work.take().expect("a job is run once");
        let result = work(connection).await.map_err(|fault| place.error(fault));
        let outcome = result.as_ref().map(|_| ()).map_err(StoreError::clone);
        self.result = Some(result);
        outcome
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.result, committed) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => unreachable!("a batch is committed when all its jobs have run"),
        };
        // A caller who no longer waits changes nothing: the write stands.
        let _ = self.caller.send(answer);
    }
}
