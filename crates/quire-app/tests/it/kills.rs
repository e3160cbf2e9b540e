//! The program is killed, at every place there is, and loses nothing.

use std::process::Child;

use quire_testkit::fake_openai::{FakeOpenAi, FakeReply};
use serde_json::Value;

use crate::desk::{Desk, ran, until};
use crate::story::{self, CALLS, SCENARIO, comparable, next, on, play};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_a_model_writes_it_asks_that_model_once_more() {
    let expected = {
        let server = FakeOpenAi::start().await;
        server.script(story::reply);
        let desk = Desk::new().with_server(server.url());
        let expected = comparable(play(&desk, &desk.start()));
        assert_eq!(server.requests().len(), CALLS);
        expected
    };
    for fatal in 1..=CALLS {
        let server = FakeOpenAi::start().await;
        let (asked, seen) = (std::sync::atomic::AtomicUsize::new(0), server.url().to_owned());
        server.script(move |request| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 {
            number if number == fatal => FakeReply::chunks([Vec::<u8>::new()]).then_hang(),
            _ => story::reply(request),
        });
        let desk = Desk::new().with_server(&seen);
        let session = desk.start();
        let mut view = desk.show(&session);
        while let Some(words) = next(&view) {
            let mut child = desk.spawn(&on(&session, words));
            let hangs = || server.requests().len() == fatal && asked_times(&desk, &session) == fatal;
            if ends_unless(&mut child, hangs) {
                view = ran(child.wait_with_output().expect("it ends")).expect(0).json();
            } else {
                child.kill().expect("it can be killed");
                child.wait().expect("it is gone");
                assert_eq!(desk.show(&session)["phase"], "running", "what was owed is still owed");
                view = desk.quire(&["resume", &session, "--json"]).expect(0).json();
            }
        }
        assert_eq!(comparable(view), expected, "killed at request {fatal}");
        assert_eq!(server.requests().len(), CALLS + 1);
        let attempts: Vec<u64> = attempts(&desk, &session);
        assert_eq!(attempts.len(), CALLS + 1);
        assert_eq!(attempts.iter().filter(|attempt| **attempt == 2).count(), 1, "the repeat is journaled as one: {attempts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_single_record_it_comes_to_the_same_end() {
    let expected = {
        let desk = Desk::new();
        comparable(play(&desk, &desk.start_scripted(SCENARIO)))
    };
    let desk = Desk::new();
    let session = desk.start_scripted(SCENARIO);
    let records = Records::of(&desk).await;
    let mut killed_at = vec![records.news().await];
    let end = loop {
        let view = desk.show(&session);
        let words = match next_or_resume(&view) {
            Some(words) => on(&session, words),
            None => break view,
        };
        let mut child = desk.spawn(&words);
        let mut news = 0;
        while news <= *killed_at.last().expect("one at least") && child.try_wait().expect("a child of ours").is_none() {
            news = records.news().await;
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
        killed_at.push(records.news().await);
    };
    assert_eq!(comparable(end), expected, "killed at {killed_at:?}");
    // How often it is caught between two records is the machine's to decide; that it was caught is ours.
    let kills = killed_at.len() as u64 - 1;
    assert!(kills > 0, "it was never killed at work");
    let replies = desk.journal(&session).iter().filter(|record| record["event"] == "model_replied").count();
    assert_eq!(replies, CALLS, "no answer was asked for again once it was there");
    let attempts = attempts(&desk, &session);
    let repeated = attempts.iter().filter(|attempt| **attempt > 1).count() as u64;
    assert!(repeated <= kills, "a call is repeated only where it was cut off: {attempts:?} and {kills} kills");
}

fn next_or_resume(view: &Value) -> Option<Vec<&'static str>> {
    if view["phase"] == "running" { Some(vec!["resume"]) } else { next(view) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_terminal_stops_what_runs_and_what_had_come_is_kept() {
    let server = FakeOpenAi::start().await;
    let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"It was a dark and"}}]}"#;
    server.reply(FakeReply::chunks([format!("{piece}\n\n")]).then_hang());
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let working = desk.spawn(&["say", &session, "A lamp.", "--json"]);
    until("the model is asked", || (server.requests().len() == 1).then_some(()));
    let stopped = desk.quire(&["stop", &session, "--json"]).expect(0).json();
    assert_eq!(stopped["waiting"]["cause"], "stopped");
    let worked = ran(working.wait_with_output().expect("it ends")).expect(0).json();
    assert_eq!(worked["waiting"]["cause"], "stopped");
    server.hang_ups(1).await;

    server.script(story::reply);
    let view = desk.quire(&["retry", &session, "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["reason"], "review_artifact");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_posted_while_nobody_lived_is_heard_first() {
    let server = FakeOpenAi::start().await;
    server.reply(FakeReply::chunks([Vec::<u8>::new()]).then_hang());
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let mut owner = desk.spawn(&["say", &session, "A lamp."]);
    until("the model is asked", || (server.requests().len() == 1).then_some(()));
    owner.kill().expect("it can be killed");
    owner.wait().expect("it is gone");

    // A `stop` whose own process died before it could drive the session.
    let records = Records::of(&desk).await;
    records.post(&session, r#"{"action":"stop"}"#).await;
    let view = desk.quire(&["resume", &session, "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["cause"], "stopped");
    assert_eq!(server.requests().len(), 1, "the stop came before the call was made again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_action_on_a_killed_session_asks_no_model() {
    let server = FakeOpenAi::start().await;
    server.script(|_| FakeReply::chunks([Vec::<u8>::new()]).then_hang());
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let mut owner = desk.spawn(&["say", &session, "A lamp."]);
    until("the model is asked", || (server.requests().len() == 1).then_some(()));
    owner.kill().expect("it can be killed");
    owner.wait().expect("it is gone");

    let before = desk.show(&session);
    let refused = desk.quire(&["accept", &session, "--json"]).expect(3);
    assert_eq!(refused.json()["phase"], "running");
    assert_eq!(desk.show(&session), before, "refused: nothing changed");
    assert_eq!(server.requests().len(), 1);
}

/// Waits until the child has ended (true), or what is looked for is there (false).
fn ends_unless(child: &mut Child, mut look: impl FnMut() -> bool) -> bool {
    until("the program ends or hangs", || match child.try_wait().expect("a child of ours") {
        Some(_) => Some(true),
        None => look().then_some(false),
    })
}

fn asked_times(desk: &Desk, session: &str) -> usize {
    attempts(desk, session).len()
}

/// Returns the attempt of each request in the journal.
fn attempts(desk: &Desk, session: &str) -> Vec<u64> {
    let asked = |record: &Value| (record["event"] == "model_asked").then(|| record["attempt"].as_u64().expect("a number"));
    desk.journal(session).iter().filter_map(asked).collect()
}

/// The database, as one who looks over the program's shoulder sees it.
pub struct Records(sqlx::SqlitePool);

impl Records {
    /// Opens a desk's database.
    pub async fn of(desk: &Desk) -> Self {
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(desk.database())
            .foreign_keys(false)
            .busy_timeout(std::time::Duration::from_secs(10));
        Self(sqlx::SqlitePool::connect_with(options).await.expect("the database opens"))
    }

    /// Counts the records that are no second attempt at something.
    pub async fn news(&self) -> i64 {
        let count = "SELECT count(*) FROM records WHERE (body NOT LIKE '%\"model_asked\"%' AND body NOT LIKE '%\"tool_asked\"%')
                     OR body LIKE '%\"attempt\":1,%' OR body LIKE '%\"attempt\":1}%'";
        sqlx::query_scalar(count).fetch_one(&self.0).await.expect("records can be counted")
    }

    /// Puts an action into a session's inbox.
    pub async fn post(&self, session: &str, action: &str) {
        sqlx::query("INSERT INTO inbox (session, action, posted) VALUES (?, ?, 0)")
            .bind(session)
            .bind(action)
            .execute(&self.0)
            .await
            .expect("the action can be posted");
    }

    /// Changes the database behind the program's back.
    pub async fn spoil(&self, statement: &'static str) {
        let spoiled = sqlx::query(statement).execute(&self.0).await.expect("the statement runs");
        assert!(spoiled.rows_affected() > 0, "nothing was spoiled by {statement}");
    }
}
