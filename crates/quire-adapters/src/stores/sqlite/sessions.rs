//! Sessions: whose they are, and their lines in the list.

use std::cmp::Reverse;

use quire_core::ids::{RecordId, SessionId, Timestamp};
use quire_runtime::ports::{Lease, StoreError, Summary};
use sqlx::SqliteConnection;

use super::fault::Fault;
use super::owner::{self, Owner};
use super::place::Place;
use super::{signed, unsigned};

/// Makes room for a new session, owned by `me`; its line and its head come with its first record.
pub async fn begin(connection: &mut SqliteConnection, me: &Owner, session: SessionId) -> Result<Lease, Fault> {
    let lease = Lease { session, fence: 1 };
    let inserted = sqlx::query(
        "INSERT INTO sessions (id, title, pack, phase, reason, stage, started, changed, head, fence, owner)
         VALUES (?, '', '', '', '', '', 0, 0, 0, ?, ?) ON CONFLICT (id) DO NOTHING",
    )
    .bind(lease.session.as_str())
    .bind(signed(lease.fence))
    .bind(me.as_ref())
    .execute(connection)
    .await?;
    if inserted.rows_affected() == 0 {
        return Err(StoreError::SessionExists(lease.session).into());
    }
    Ok(lease)
}

/// Makes `me` the owner, unless a living store is.
pub async fn claim(
    connection: &mut SqliteConnection,
    place: &Place,
    me: &Owner,
    session: SessionId,
) -> Result<Option<Lease>, Fault> {
    let (owner, fence) = owner_and_fence(connection, &session).await?;
    if let Some(owner) = owner
        && *owner != **me
        && owner::is_alive(place, &owner)?
    {
        return Ok(None);
    }
    let lease = Lease { session, fence: fence + 1 };
    sqlx::query("UPDATE sessions SET owner = ?, fence = ? WHERE id = ?")
        .bind(me.as_ref())
        .bind(signed(lease.fence))
        .bind(lease.session.as_str())
        .execute(connection)
        .await?;
    Ok(Some(lease))
}

/// Leaves the session without an owner, unless it has a newer one.
pub async fn release(connection: &mut SqliteConnection, me: &Owner, lease: &Lease) -> Result<(), Fault> {
    sqlx::query("UPDATE sessions SET owner = NULL WHERE id = ? AND owner = ? AND fence = ?")
        .bind(lease.session.as_str())
        .bind(me.as_ref())
        .bind(signed(lease.fence))
        .execute(connection)
        .await?;
    Ok(())
}

/// Makes sure, inside the transaction that relies on it, that the lease is the newest and not given back.
pub async fn hold(connection: &mut SqliteConnection, me: &Owner, lease: &Lease) -> Result<(), Fault> {
    let (owner, fence) = owner_and_fence(connection, &lease.session).await?;
    let is_held = owner.as_deref() == Some(me) && fence == lease.fence;
    if is_held { Ok(()) } else { Err(StoreError::Fenced(lease.session.clone()).into()) }
}

async fn owner_and_fence(connection: &mut SqliteConnection, session: &SessionId) -> Result<(Option<String>, u64), Fault> {
    let row: Option<(Option<String>, i64)> = sqlx::query_as("SELECT owner, fence FROM sessions WHERE id = ?")
        .bind(session.as_str())
        .fetch_optional(connection)
        .await?;
    let (owner, fence) = row.ok_or_else(|| StoreError::NoSession(session.clone()))?;
    Ok((owner, unsigned(fence)?))
}

/// Sets a session's line and moves its head.
pub async fn move_on(connection: &mut SqliteConnection, summary: &Summary, head: RecordId) -> Result<(), Fault> {
    let Summary { session, title, pack, phase, reason, stage, started, changed } = summary;
    sqlx::query(
        "UPDATE sessions SET title = ?, pack = ?, phase = ?, reason = ?, stage = ?, started = ?, changed = ?, head = ?
         WHERE id = ?",
    )
    .bind(title)
    .bind(pack)
    .bind(phase)
    .bind(reason)
    .bind(stage)
    .bind(started.0)
    .bind(changed.0)
    .bind(signed(head.0))
    .bind(session.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

type Line = (String, String, String, String, String, String, i64, i64);

/// Returns one session's line.
pub async fn summary(connection: &mut SqliteConnection, session: &SessionId) -> Result<Summary, Fault> {
    let line: Option<Line> =
        sqlx::query_as("SELECT id, title, pack, phase, reason, stage, started, changed FROM sessions WHERE id = ?")
            .bind(session.as_str())
            .fetch_optional(connection)
            .await?;
    Ok(line.map(summary_of).ok_or_else(|| StoreError::NoSession(session.clone()))?)
}

/// Lists all sessions, the latest changed first.
pub async fn list(connection: &mut SqliteConnection) -> Result<Vec<Summary>, Fault> {
    let lines: Vec<Line> = sqlx::query_as("SELECT id, title, pack, phase, reason, stage, started, changed FROM sessions")
        .fetch_all(connection)
        .await?;
    let mut summaries: Vec<Summary> = lines.into_iter().map(summary_of).collect();
    // Sorted here: through an index on the time, each line would be looked up by itself.
    summaries.sort_by(|a, b| (Reverse(a.changed), &a.session).cmp(&(Reverse(b.changed), &b.session)));
    Ok(summaries)
}

fn summary_of((session, title, pack, phase, reason, stage, started, changed): Line) -> Summary {
    let session = SessionId::new(session);
    Summary { session, title, pack, phase, reason, stage, started: Timestamp(started), changed: Timestamp(changed) }
}
