//! Sessions: whose they are, and their lines in the list.

use std::cmp::Reverse;

use quire_core::ids::{RecordId, SessionId};
use quire_runtime::ports::{Lease, StoreError, Summary};
use sqlx::SqliteConnection;

use super::fault::Fault;
use super::owner::{self, Owner};
use super::place::Place;
use super::{signed, unsigned};

/// Makes room for a new session, owned by `me`; its line and its head come with its first record.
pub async fn begin(connection: &mut SqliteConnection, me: &Owner, session: &SessionId) -> Result<Lease, Fault> {
    let lease = Lease { session: session.clone(), fence: 1 };
    let inserted =
        sqlx::query("INSERT INTO sessions (id, summary, head, fence, owner) VALUES (?, '', 0, ?, ?) ON CONFLICT (id) DO NOTHING")
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
    session: &SessionId,
) -> Result<Option<Lease>, Fault> {
    let (owner, fence) = owner_and_fence(connection, session).await?;
    if let Some(owner) = owner
        && *owner != **me
        && owner::is_alive(place, &owner)?
    {
        return Ok(None);
    }
    let lease = Lease { session: session.clone(), fence: fence + 1 };
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

/// Makes sure, inside the transaction that relies on it, that the lease is the newest and not given back; returns the newest
/// record.
pub async fn hold(connection: &mut SqliteConnection, me: &Owner, lease: &Lease) -> Result<Option<RecordId>, Fault> {
    let row: Option<(Option<String>, i64, Option<i64>)> = sqlx::query_as(
        "SELECT owner, fence, (SELECT max(records.id) FROM records WHERE session = sessions.id) FROM sessions WHERE id = ?",
    )
    .bind(lease.session.as_str())
    .fetch_optional(connection)
    .await?;
    let (owner, fence, newest) = row.ok_or_else(|| StoreError::NoSession(lease.session.clone()))?;
    let is_held = owner.as_deref() == Some(me) && unsigned(fence)? == lease.fence;
    if !is_held {
        return Err(StoreError::Fenced(lease.session.clone()).into());
    }
    Ok(newest.map(unsigned).transpose()?.map(RecordId))
}

async fn owner_and_fence(connection: &mut SqliteConnection, session: &SessionId) -> Result<(Option<String>, u64), Fault> {
    let row: Option<(Option<String>, i64)> = sqlx::query_as("SELECT owner, fence FROM sessions WHERE id = ?")
        .bind(session.as_str())
        .fetch_optional(connection)
        .await?;
    let (owner, fence) = row.ok_or_else(|| StoreError::NoSession(session.clone()))?;
    Ok((owner, unsigned(fence)?))
}

/// Returns one session's line.
pub async fn summary(connection: &mut SqliteConnection, session: &SessionId) -> Result<Summary, Fault> {
    let line: Option<String> =
        sqlx::query_scalar("SELECT summary FROM sessions WHERE id = ?").bind(session.as_str()).fetch_optional(connection).await?;
    let line = line.ok_or_else(|| StoreError::NoSession(session.clone()))?;
    serde_json::from_str(&line)
        .map_err(|error| Fault::Unreadable(format!("the line of session `{session}` cannot be read ({error})")))
}

/// Lists all sessions, the latest changed first. Inside a transaction: it reads in parts.
pub async fn list(connection: &mut SqliteConnection) -> Result<Vec<Summary>, Fault> {
    let mut summaries: Vec<Summary> = vec![];
    let mut last = 0;
    // A row for each session took several times as long to come over, and one text of all of them much memory at once.
    loop {
        let (number, lines): (Option<i64>, String) = sqlx::query_as(
            "SELECT max(number), '[' || coalesce(group_concat(summary), '') || ']'
             FROM (SELECT rowid AS number, summary FROM sessions WHERE rowid > ? ORDER BY rowid LIMIT 1000)",
        )
        .bind(last)
        .fetch_one(&mut *connection)
        .await?;
        let Some(number) = number else { break };
        last = number;
        let lines: Vec<Summary> = serde_json::from_str(&lines)
            .map_err(|error| Fault::Unreadable(format!("the list of sessions cannot be read ({error})")))?;
        summaries.extend(lines);
    }
    summaries.sort_unstable_by(|a, b| (Reverse(a.changed), &a.session).cmp(&(Reverse(b.changed), &b.session)));
    Ok(summaries)
}
