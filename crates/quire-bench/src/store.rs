//! Appends against bare SQLite: what leases, savepoints, the queue and the answers cost.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use quire_adapters::stores::sqlite::SqliteStore;
use quire_core::event::{Action, Event};
use quire_core::ids::{Hash, RecordId, SessionId, Timestamp};
use quire_core::journal;
use quire_runtime::ports::{Append, Store as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqliteConnection};

use crate::report::{Page, median, rate};
use crate::rulebook::line;

/// Sessions that write at once, and appends of each size altogether.
const SIZES: [(usize, usize); 3] = [(1, 1_000), (16, 8_000), (256, 32_000)];
/// Pairs of a size.
const PAIRS: usize = 5;

/// Measures, and adds its section.
pub async fn measure(page: &mut Page) -> Result<()> {
    page.section(
        "Appends against bare SQLite",
        "The store: so many sessions at once, each waiting for its append before the next. Bare: one connection with the same pragmas \
         and tables does the same inserts one by one, as many in a transaction as there are sessions, and nothing else: no lease is \
         checked, nobody waits, a failure takes all down.",
    );
    for (sessions, appends) in SIZES {
        let mut ours_all = vec![];
        let mut ratios = vec![];
        for pair in 0..PAIRS {
            // In turns, so that neither always has the warmer disk.
            let (ours, bare) = if pair % 2 == 0 {
                let ours = ours(sessions, appends).await?;
                (ours, bare(sessions, appends).await?)
            } else {
                let bare = bare(sessions, appends).await?;
                (ours(sessions, appends).await?, bare)
            };
            ours_all.push(ours.as_secs_f64());
            ratios.push(bare.as_secs_f64() / ours.as_secs_f64());
        }
        let what = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
        page.line(&format!("{what}, appends"), rate(appends, Duration::from_secs_f64(median(ours_all))), "");
        page.line(&format!("{what}, against bare SQLite"), format!("{:.2}", median(ratios)), "≥ 0.9");
    }
    Ok(())
}

async fn ours(sessions: usize, appends: usize) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(folder.path()).await?;
    let mut writers = vec![];
    for mut journal in journals(sessions, appends / sessions) {
        let first = journal.appends.remove(0);
        let lease = store.create(&journal.id, first).await?;
        writers.push((lease, journal.appends));
    }
    let store = &store;
    let before = Instant::now();
    let work = writers.into_iter().map(async |(lease, appends)| {
        for append in appends {
            store.append(&lease, append).await?;
        }
        Ok::<(), anyhow::Error>(())
    });
    futures::future::try_join_all(work).await?;
    Ok(before.elapsed())
}

async fn bare(sessions: usize, appends: usize) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    // The same tables, made by the store itself.
    drop(SqliteStore::open(folder.path()).await?);
    let mut connection = connect(&folder.path().join("quire.db")).await?;
    let mut journals = journals(sessions, appends / sessions);
    sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await?;
    for journal in &mut journals {
        let begin = "INSERT INTO sessions (id, summary, head, fence, owner) VALUES (?, '', 0, 1, 'bare')";
        sqlx::query(begin).bind(journal.id.as_str()).execute(&mut connection).await?;
        let first = journal.appends.remove(0);
        insert(&mut connection, &first).await?;
    }
    sqlx::query("COMMIT").execute(&mut connection).await?;

    let rounds = journals[0].appends.len();
    let before = Instant::now();
    for round in 0..rounds {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await?;
        for journal in &journals {
            insert(&mut connection, &journal.appends[round]).await?;
        }
        sqlx::query("COMMIT").execute(&mut connection).await?;
    }
    Ok(before.elapsed())
}

async fn connect(database: &Path) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(database)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true);
    Ok(options.connect().await?)
}

async fn insert(connection: &mut SqliteConnection, append: &Append) -> Result<()> {
    let Append { record, texts, summary, .. } = append;
    let session = summary.session.as_str();
    for (hash, body) in texts {
        sqlx::query("INSERT INTO texts (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING")
            .bind(hash.as_str())
            .bind(body.as_ref())
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO text_uses (session, hash) VALUES (?, ?) ON CONFLICT DO NOTHING")
            .bind(session)
            .bind(hash.as_str())
            .execute(&mut *connection)
            .await?;
    }
    let number = |id: RecordId| i64::try_from(id.0).expect("a small number");
    sqlx::query("INSERT INTO records (session, id, parent, time, format, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .bind(session)
        .bind(number(record.id))
        .bind(record.parent.map(number))
        .bind(record.time.0)
        .bind(record.format)
        .bind(&record.body)
        .bind(record.hash.as_str())
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE sessions SET summary = ?, head = ? WHERE id = ?")
        .bind(serde_json::to_string(summary)?)
        .bind(number(record.id))
        .bind(session)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

struct Journal {
    id: SessionId,
    appends: Vec<Append>,
}

/// Makes what each session writes: a first record, then `count` more; every fourth has a long text.
fn journals(sessions: usize, count: usize) -> Vec<Journal> {
    (0..sessions).map(|number| journal(number, count)).collect()
}

fn journal(number: usize, count: usize) -> Journal {
    let id = SessionId::new(format!("session {number}"));
    let mut appends = vec![];
    let mut parent: Option<(RecordId, Hash)> = None;
    for index in 0..=count {
        let length = if index % 4 == 3 { 30 } else { 2 };
        let text = format!("{number} {index}: {}", "the lamp had been dark for a week, and then again. ".repeat(length)).into();
        let event = Event::User(Action::SubmitInput { text, values: Default::default() });
        let time = Timestamp(index as i64);
        let after = parent.as_ref().map(|(id, hash)| (*id, hash));
        let (record, texts) = journal::encode(&id, after, RecordId(index as u64 + 1), time, &event);
        parent = Some((record.id, record.hash.clone()));
        appends.push(Append { record, texts, summary: line(&id, time), answers: None });
    }
    Journal { id, appends }
}
