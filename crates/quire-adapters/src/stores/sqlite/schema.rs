//! The tables, and how a database of old becomes one of today. Formats only ever rise.

use sqlx::SqliteConnection;

use super::fault::Fault;

/// The format this program writes: one more with each step.
pub const FORMAT: i64 = STEPS.len() as i64;

/// Step `n` lifts a database of format `n` to the next. What stands here has been on users' disks and is never changed.
const STEPS: [&str; 1] = ["
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        summary TEXT NOT NULL,
        head INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        owner TEXT
    ) STRICT;

    CREATE TABLE records (
        session TEXT NOT NULL REFERENCES sessions (id),
        id INTEGER NOT NULL,
        parent INTEGER,
        time INTEGER NOT NULL,
        format INTEGER NOT NULL,
        body TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (session, id),
        FOREIGN KEY (session, parent) REFERENCES records (session, id)
    ) STRICT;

    CREATE TABLE texts (
        hash TEXT PRIMARY KEY,
        body TEXT NOT NULL
    ) STRICT;

    CREATE TABLE text_uses (
        session TEXT NOT NULL REFERENCES sessions (id),
        hash TEXT NOT NULL REFERENCES texts (hash),
        PRIMARY KEY (session, hash)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE inbox (
        ticket INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL REFERENCES sessions (id),
        action TEXT NOT NULL,
        answer TEXT,
        posted INTEGER NOT NULL
    ) STRICT;

    CREATE INDEX inbox_unanswered ON inbox (session, ticket) WHERE answer IS NULL;
"];

/// Lifts the database to today's format. Only under [`super::owner::lock_opening`].
pub async fn lift(connection: &mut SqliteConnection) -> Result<(), Fault> {
    let format = format_of(connection).await?;
    if format > FORMAT {
        return Err(Fault::Newer { format });
    }
    if format == FORMAT {
        return Ok(());
    }
    let done = usize::try_from(format).map_err(|_| Fault::Foreign)?;
    // A step that fails takes the connection with it, and the open transaction is rolled back.
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    for step in STEPS.into_iter().skip(done) {
        sqlx::raw_sql(step).execute(&mut *connection).await?;
    }
    sqlx::query("INSERT OR REPLACE INTO meta (key, value) VALUES ('format', ?)").bind(FORMAT).execute(&mut *connection).await?;
    sqlx::query("COMMIT").execute(&mut *connection).await?;
    Ok(())
}

/// Returns the database's format: 0 for one without tables.
async fn format_of(connection: &mut SqliteConnection) -> Result<i64, Fault> {
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema").fetch_all(&mut *connection).await?;
    if tables.is_empty() {
        return Ok(0);
    }
    if !tables.iter().any(|table| table == "meta") {
        return Err(Fault::Foreign);
    }
    let format = sqlx::query_scalar("SELECT value FROM meta WHERE key = 'format'").fetch_optional(connection).await;
    match format {
        Ok(Some(format)) => Ok(format),
        Ok(None) | Err(sqlx::Error::ColumnDecode { .. }) => Err(Fault::Foreign),
        Err(error) => Err(error.into()),
    }
}
