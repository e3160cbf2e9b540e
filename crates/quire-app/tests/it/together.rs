//! Several processes on one data folder.

use std::process::Child;

use crate::desk::{Desk, ran};
use crate::story::{SCENARIO, next, on};

/// Plays until an artifact is under review.
fn under_review(desk: &Desk) -> String {
    let session = desk.start_scripted("agent run_worker write\nworker submit text.draft: A lamp.\nagent ask_user: What now?\n");
    desk.quire(&["say", &session, "A lamp."]).expect(0);
    session
}

#[test]
fn of_twenty_accepts_at_once_one_is_heard() {
    let desk = Desk::new();
    let session = under_review(&desk);
    let accepts: Vec<Child> = (0..20).map(|_| desk.spawn(&["accept", &session, "--json"])).collect();
    let mut codes: Vec<i32> = vec![];
    for accept in accepts {
        let accepted = ran(accept.wait_with_output().expect("it ends"));
        assert!(accepted.json()["phase"].is_string(), "{accepted:?}");
        codes.push(accepted.code);
    }
    codes.sort();
    assert_eq!(codes, [vec![0], vec![3; 19]].concat());
    let accepts = desk.journal(&session).iter().filter(|record| record["action"] == "accept").count();
    assert_eq!(accepts, 1);
    assert_eq!(desk.show(&session)["waiting"]["reason"], "input");
}

#[test]
fn words_said_at_once_each_take_effect_once() {
    let desk = Desk::new();
    let model = desk.scenario("agent ask_user: Yes?\n");
    let session = desk.quire(&["new", "short-story", "--json", "--model", &model]).json();
    let session = session["session"].as_str().expect("an id");
    let words: Vec<String> = (0..10).map(|number| format!("note number {number}")).collect();
    let said: Vec<Child> = words.iter().map(|words| desk.spawn(&["say", session, words])).collect();
    for said in said {
        ran(said.wait_with_output().expect("it ends")).expect(0);
    }
    let journal = desk.quire(&["journal", session, "--json"]).expect(0).out;
    for words in words {
        assert_eq!(journal.matches(&format!("{words:?}")).count(), 1, "{words}");
    }
}

#[test]
fn an_accept_names_what_its_user_saw() {
    let desk = Desk::new();
    let session = under_review(&desk);
    desk.quire(&["accept", &session]).expect(0);
    let accept = desk.journal(&session).into_iter().find(|record| record["action"] == "accept").expect("an accept");
    assert_eq!(accept["artifact"], "1", "an accept that comes late must not hit the next artifact");
}

#[test]
fn data_folders_do_not_mix() {
    let (one, other) = (Desk::new(), Desk::new());
    let session = under_review(&one);
    other.quire(&["show", &session]).expect(3);
    assert_eq!(other.quire(&["list", "--json"]).expect(0).json()["sessions"], serde_json::json!([]));
    let data = one.path().join("data");
    let data = data.to_str().expect("a path that is text");
    other.quire(&["show", &session, "--data", data]).expect(0);
    other.quire(&["--data", data, "--json", "accept", &session]).expect(0);
    assert_eq!(one.show(&session)["waiting"]["reason"], "input");
}

#[test]
fn a_second_process_watches_to_the_end() {
    let desk = Desk::new();
    let session = desk.start_scripted(SCENARIO);
    let watch = desk.spawn(&["watch", &session, "--json"]);
    let mut view = desk.show(&session);
    while let Some(words) = next(&view) {
        view = desk.quire(&on(&session, words)).expect(0).json();
    }
    let watched = ran(watch.wait_with_output().expect("it ends with the session")).expect(0);
    let seen: Vec<u64> = watched.out.lines().map(seq_of).collect();
    let written: Vec<u64> = desk.journal(&session).iter().map(|record| record["seq"].as_u64().expect("a number")).collect();
    assert_eq!(seen, written);
}

fn seq_of(line: &str) -> u64 {
    let record: serde_json::Value = serde_json::from_str(line).expect("one record a line");
    record["seq"].as_u64().expect("a number")
}
