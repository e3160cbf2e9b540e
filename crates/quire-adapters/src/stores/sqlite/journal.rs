//! Records and the long texts they name.

use quire_core::ids::{Hash, RecordId, SessionId, Timestamp};
use quire_core::journal::StoredRecord;
use quire_runtime::ports::{Append, Lease, StoreError, StoredJournal};
use sqlx::SqliteConnection;

use super::fault::Fault;
use super::owner::Owner;
use super::{inbox, sessions, signed, unsigned};

/// Begins a session, owned by `me`.
pub async fn create(connection: &mut SqliteConnection, me: &Owner, session: &SessionId, first: &Append) -> Result<Lease, Fault> {
    let lease = sessions::begin(connection, me, session).await?;
    append(connection, me, &lease, first).await?;
    Ok(lease)
}

/// Writes a record, all that belongs to it, and the session's line after it.
pub async fn append(connection: &mut SqliteConnection, me: &Owner, lease: &Lease, append: &Append) -> Result<(), Fault> {
    let Append { record, texts, summary, answers } = append;
    let session = &lease.session;
    let newest = sessions::hold(connection, me, lease).await?;
    if let Some(newest) = newest
        && record.id <= newest
    {
        return Err(Fault::Bug(format!(
            "record {} of session `{session}` is not newer than record {newest}, which is stored already",
            record.id
        )));
    }
    for (hash, body) in texts {
        sqlx::query(
            "INSERT INTO texts (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING;
             INSERT INTO text_uses (session, hash) VALUES (?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(hash.as_str())
        .bind(body.as_ref())
        .bind(session.as_str())
        .bind(hash.as_str())
        .execute(&mut *connection)
        .await?;
    }
    let StoredRecord { id, parent, time, format, body, hash } = record;
    sqlx::query(
        "INSERT INTO records (session, id, parent, time, format, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?);
         UPDATE sessions SET summary = ?, head = ? WHERE id = ?",
    )
    .bind(session.as_str())
    .bind(signed(id.0))
    .bind(parent.map(|parent| signed(parent.0)))
    .bind(time.0)
    .bind(format)
    .bind(body)
    .bind(hash.as_str())
    .bind(serde_json::to_string(summary).expect("a line is plain data"))
    .bind(signed(id.0))
    .bind(session.as_str())
    .execute(&mut *connection)
    .await?;
    if let Some((ticket, answer)) = answers {
        inbox::set_answer(connection, session, *ticket, answer).await?;
    }
    Ok(())
}

/// Reads a whole journal.
pub async fn load(connection: &mut SqliteConnection, session: &SessionId) -> Result<StoredJournal, Fault> {
    let head: Option<i64> = sqlx::query_scalar("SELECT head FROM sessions WHERE id = ?")
        .bind(session.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let head = head.ok_or_else(|| StoreError::NoSession(session.clone()))?;

    type Row = (i64, Option<i64>, i64, u32, String, String);
    let rows: Vec<Row> = sqlx::query_as("SELECT id, parent, time, format, body, hash FROM records WHERE session = ? ORDER BY id")
        .bind(session.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let mut records = Vec::with_capacity(rows.len());
    for (id, parent, time, format, body, hash) in rows {
        let (id, parent) = (RecordId(unsigned(id)?), parent.map(unsigned).transpose()?.map(RecordId));
        records.push(StoredRecord { id, parent, time: Timestamp(time), format, body, hash: Hash::new(hash) });
    }

    let texts: Vec<(String, String)> = sqlx::query_as(
        "SELECT texts.hash, texts.body FROM text_uses JOIN texts ON texts.hash = text_uses.hash WHERE text_uses.session = ?",
    )
    .bind(session.as_str())
    .fetch_all(connection)
    .await?;
    let texts = texts.into_iter().map(|(hash, body)| (Hash::new(hash), body.into())).collect();
    Ok(StoredJournal { records, texts, head: RecordId(unsigned(head)?) })
}

/// Returns the id of the newest record.
pub async fn newest(connection: &mut SqliteConnection, session: &SessionId) -> Result<RecordId, Fault> {
    newest_or_none(connection, session).await?.ok_or_else(|| StoreError::NoSession(session.clone()).into())
}

async fn newest_or_none(connection: &mut SqliteConnection, session: &SessionId) -> Result<Option<RecordId>, Fault> {
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT max(id) FROM records WHERE session = ?").bind(session.as_str()).fetch_one(connection).await?;
    Ok(newest.map(unsigned).transpose()?.map(RecordId))
}
