//! What users ask of sessions, from any process, and what became of it.

use quire_core::event::Action;
use quire_core::ids::SessionId;
use quire_runtime::ports::{Answered, Lease, StoreError, Ticket};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::SqliteConnection;

use super::fault::Fault;
use super::owner::Owner;
use super::{sessions, signed, unsigned};

/// Puts an action into a session's inbox.
pub async fn post(connection: &mut SqliteConnection, session: &SessionId, action: &Action) -> Result<Ticket, Fault> {
    let posted = sqlx::query(
        "INSERT INTO inbox (session, action, posted)
         SELECT id, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM sessions WHERE id = ?",
    )
    .bind(write_json(action))
    .bind(session.as_str())
    .execute(connection)
    .await?;
    if posted.rows_affected() == 0 {
        return Err(StoreError::NoSession(session.clone()).into());
    }
    Ok(Ticket(unsigned(posted.last_insert_rowid())?))
}

/// Returns the actions without an answer, oldest first.
pub async fn unanswered(connection: &mut SqliteConnection, session: &SessionId) -> Result<Vec<(Ticket, Action)>, Fault> {
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT ticket, action FROM inbox WHERE session = ? AND answer IS NULL ORDER BY ticket")
            .bind(session.as_str())
            .fetch_all(connection)
            .await?;
    let read = |(ticket, action): (i64, String)| Ok((Ticket(unsigned(ticket)?), read_json(ticket, &action)?));
    rows.into_iter().map(read).collect()
}

/// Answers an action that was refused.
pub async fn refuse(
    connection: &mut SqliteConnection,
    me: &Owner,
    lease: &Lease,
    ticket: Ticket,
    answer: &Answered,
) -> Result<(), Fault> {
    sessions::hold(connection, me, lease).await?;
    set_answer(connection, &lease.session, ticket, answer).await
}

/// Writes an answer; a second one to the same action is a bug.
pub async fn set_answer(
    connection: &mut SqliteConnection,
    session: &SessionId,
    ticket: Ticket,
    answer: &Answered,
) -> Result<(), Fault> {
    let answered = sqlx::query("UPDATE inbox SET answer = ? WHERE ticket = ? AND session = ? AND answer IS NULL")
        .bind(write_json(answer))
        .bind(signed(ticket.0))
        .bind(session.as_str())
        .execute(connection)
        .await?;
    if answered.rows_affected() == 1 {
        return Ok(());
    }
    Err(Fault::Bug(format!("nothing in the inbox of session `{session}` waits for an answer under number {}", ticket.0)))
}

/// Returns an action's answer, once there is one.
pub async fn answer(connection: &mut SqliteConnection, ticket: Ticket) -> Result<Option<Answered>, Fault> {
    let row: Option<Option<String>> =
        sqlx::query_scalar("SELECT answer FROM inbox WHERE ticket = ?").bind(signed(ticket.0)).fetch_optional(connection).await?;
    // Whoever asks for a number that was never given out would wait for ever.
    let answer = row.ok_or_else(|| Fault::Bug(format!("no action was ever posted under number {}", ticket.0)))?;
    answer.map(|answer| read_json(signed(ticket.0), &answer)).transpose()
}

fn write_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("actions and answers are plain data")
}

fn read_json<T: DeserializeOwned>(ticket: i64, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text)
        .map_err(|error| Fault::Unreadable(format!("number {ticket} in the inbox cannot be read ({error})")))
}
