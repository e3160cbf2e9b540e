//! The core alone: how fast it hears, and how fast a long journal becomes a session again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quire_adapters::stores::sqlite::SqliteStore;
use quire_core::event::Event;
use quire_core::ids::{RecordId, SessionId, Timestamp};
use quire_core::journal::{self, StoredRecord, Texts};
use quire_core::session::Session;
use quire_runtime::driver;
use quire_runtime::ports::{Append, Store as _, Summary};

use crate::play;
use crate::report::{Page, median, rate, time};

/// Records of the long journal.
const RECORDS: usize = 10_000;
/// How often each is measured.
const TIMES: usize = 5;

/// Measures, and adds its section.
pub async fn measure(page: &mut Page) -> Result<()> {
    let events = play::events(RECORDS).await?;
    let id = SessionId::new("long journal");

    page.section("The rulebook alone", "The events of a play of 10,000 records, heard one after another in memory.");
    let heard = median_of(|| {
        let mut session = Session::new(id.clone());
        let events = events.clone();
        let before = Instant::now();
        for (time, event) in events {
            session.handle(time, event)?;
        }
        Ok(before.elapsed())
    })?;
    page.line("events heard", rate(RECORDS, heard), "");

    page.section(
        "Opening a session of 10,000 records",
        "From the database to a session that hears its user; and the parts of it.",
    );
    let (stored, texts) = write(&id, &events);
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(folder.path()).await?;
    keep(&store, &id, &stored, texts).await?;
    let mut opened = vec![];
    let mut loaded = vec![];
    for _ in 0..TIMES {
        let before = Instant::now();
        let whole = driver::open(&store, &id).await?;
        opened.push(before.elapsed().as_secs_f64());
        ensure!(whole.head.0 == RECORDS as u64, "the journal is read to its end");
        let before = Instant::now();
        let journal = store.load(&id).await?;
        loaded.push(before.elapsed().as_secs_f64());
        ensure!(journal.records.len() == RECORDS, "the journal is read to its end");
    }
    let journal = store.load(&id).await?;
    let read = median_of(|| {
        let before = Instant::now();
        let (path, damage) = journal::read_path(&id, &journal.records, &journal.texts, journal.head);
        ensure!(path.len() == RECORDS && damage.is_none(), "the journal is whole");
        Ok(before.elapsed())
    })?;
    page.line("whole", time(Duration::from_secs_f64(median(opened))), "< 10 ms");
    page.line("of it, rows from the database", time(Duration::from_secs_f64(median(loaded))), "");
    page.line("of it, hashes checked and events read", time(read), "");
    page.line("of it, events heard", time(heard), "");
    Ok(())
}

fn median_of(work: impl Fn() -> Result<Duration>) -> Result<Duration> {
    let times = (0..TIMES).map(|_| Ok(work()?.as_secs_f64())).collect::<Result<_>>()?;
    Ok(Duration::from_secs_f64(median(times)))
}

fn write(id: &SessionId, events: &[(Timestamp, Event)]) -> (Vec<StoredRecord>, Vec<Texts>) {
    let mut stored: Vec<StoredRecord> = vec![];
    let mut texts = vec![];
    for (index, (time, event)) in events.iter().enumerate() {
        let parent = stored.last().map(|record| (record.id, record.hash.clone()));
        let parent = parent.as_ref().map(|(id, hash)| (*id, hash));
        let (record, named) = journal::encode(id, parent, RecordId(index as u64 + 1), *time, event);
        stored.push(record);
        texts.push(named);
    }
    (stored, texts)
}

async fn keep(store: &SqliteStore, id: &SessionId, records: &[StoredRecord], texts: Vec<Texts>) -> Result<()> {
    let append = |record: &StoredRecord, texts: Texts| Append {
        record: record.clone(),
        texts,
        summary: line(id, record.time),
        answers: None,
    };
    let mut all = records.iter().zip(texts);
    let (first, first_texts) = all.next().expect("a journal has a record");
    let lease = store.create(id, append(first, first_texts)).await?;
    // Queued together they are written together; their order is the queue's.
    let writes = all.map(|(record, texts)| store.append(&lease, append(record, texts)));
    futures::future::try_join_all(writes).await?;
    store.release(&lease).await?;
    Ok(())
}

/// Makes a session's line in the list.
pub fn line(id: &SessionId, time: Timestamp) -> Summary {
    Summary {
        session: id.clone(),
        title: "a play".to_owned(),
        pack: "turns".to_owned(),
        phase: "waiting_user".to_owned(),
        reason: "input".to_owned(),
        stage: "play".to_owned(),
        started: time,
        changed: time,
    }
}
