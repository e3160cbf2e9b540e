//! What is broken is named and left as it is: records, the database, the folder, the disk.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::desk::{Desk, Ran, ran};
use crate::kills::Records;
use crate::story::{SCENARIO, on, play};

const LONG: &str = "Long enough to be kept beside the records, each text once, and named there by its hash. So it goes on for a \
while, about a lamp, and a sea, and a night without a wind, until it is longer than two hundred and fifty-six bytes, which is \
where a text begins to be long. Here.";

/// A session under review, whose words were long.
fn session(desk: &Desk) -> String {
    let session = desk.start_scripted(SCENARIO);
    desk.quire(&["say", &session, LONG]).expect(0);
    session
}

/// Every command that acts is refused, and says what is wrong.
fn only_reads(desk: &Desk, session: &str, what: &str) {
    let shown = desk.quire(&["show", session, "--json"]).expect(0).json();
    assert_eq!(shown["phase"], "error", "{shown}");
    assert!(shown["error"].as_str().is_some_and(|error| error.contains(what)), "{shown}");
    assert!(desk.quire(&["show", session]).expect(0).out.contains(what));
    desk.quire(&["journal", session, "--json"]).expect(0);
    let commands: [&[&str]; 11] = [
        &["accept"],
        &["say", "On."],
        &["retry"],
        &["stop"],
        &["finish"],
        &["resume"],
        &["confirm"],
        &["answer", "q1=A"],
        &["skip"],
        &["edit", "text.draft", "--text", "Mine."],
        &["set-budget", "--rounds", "5"],
    ];
    for words in commands {
        let refused = desk.quire(&on(session, words.to_vec())).expect(3);
        assert!(refused.out.contains(what) && refused.err.contains(what), "{words:?}: {refused:?}");
    }
    let after = desk.quire(&["show", session, "--json"]).expect(0).json();
    assert_eq!(after, shown, "nothing changed");
}

#[tokio::test]
async fn a_changed_record_is_named_and_the_session_only_read() {
    let desk = Desk::new();
    let session = session(&desk);
    let records = Records::of(&desk).await;
    records.spoil("UPDATE records SET body = replace(body, '\"attempt\":1', '\"attempt\":7') WHERE id = 5").await;
    only_reads(&desk, &session, "record 5 is damaged");
    assert_eq!(desk.journal(&session).len(), 4, "what stands before it can be read");
}

#[tokio::test]
async fn a_missing_record_is_named() {
    let desk = Desk::new();
    let session = session(&desk);
    Records::of(&desk).await.spoil("DELETE FROM records WHERE id = 4").await;
    only_reads(&desk, &session, "4) is missing");
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_named() {
    let desk = Desk::new();
    let session = session(&desk);
    Records::of(&desk).await.spoil("UPDATE records SET format = 99 WHERE id = 6").await;
    only_reads(&desk, &session, "record 6 has format 99");
}

#[tokio::test]
async fn a_changed_or_missing_text_is_named() {
    let desk = Desk::new();
    let session = session(&desk);
    let records = Records::of(&desk).await;
    records.spoil("UPDATE texts SET body = body || '!' WHERE body LIKE 'Long enough%'").await;
    only_reads(&desk, &session, "record 2 is damaged: its text");
    records.spoil("DELETE FROM text_uses WHERE hash IN (SELECT hash FROM texts WHERE body LIKE 'Long enough%')").await;
    only_reads(&desk, &session, "record 2 is damaged: its text");
}

#[tokio::test]
async fn a_session_damaged_while_it_ran_is_not_waited_for() {
    let desk = Desk::new();
    let session = session(&desk);
    let records = Records::of(&desk).await;
    records.spoil("UPDATE sessions SET summary = replace(summary, 'waiting_user', 'running')").await;
    records.spoil("UPDATE records SET body = '{}' WHERE id = 3").await;
    only_reads(&desk, &session, "record 3 is damaged");
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_whole() {
    let desk = Desk::new();
    let session = session(&desk);
    Records::of(&desk).await.spoil("UPDATE meta SET value = 99 WHERE key = 'format'").await;
    let failed = desk.quire(&["show", &session, "--json"]).expect(1);
    assert!(failed.err.contains("a newer quire wrote this folder"), "{failed:?}");
    assert_eq!(failed.json()["code"], 1);
}

#[test]
fn a_file_in_the_place_of_the_folder_or_of_the_database() {
    let desk = Desk::new();
    let file = desk.path().join("file");
    std::fs::write(&file, "mine").expect("a file");
    let failed = desk.quire(&["list", "--data", file.to_str().expect("text")]).expect(1);
    assert!(failed.err.contains("cannot use the data folder"), "{failed:?}");

    std::fs::create_dir_all(desk.path().join("data")).expect("a folder");
    std::fs::write(desk.database(), "a shopping list, longer than the head of a database is: milk, bread, lamp oil, and a wick")
        .expect("a file");
    let failed = desk.quire(&["list"]).expect(1);
    assert!(failed.err.contains("quire.db"), "{failed:?}");
    assert_eq!(std::fs::read(desk.database()).expect("it is still there")[..10], *b"a shopping");
}

#[test]
fn a_folder_that_cannot_be_written() {
    let desk = Desk::new();
    let session = session(&desk);
    let data = desk.path().join("data");
    let before = play_state(&desk, &session);
    let set = |mode: u32, file_mode: u32| {
        std::fs::set_permissions(desk.path(), std::fs::Permissions::from_mode(0o755)).expect("permissions");
        for entry in std::fs::read_dir(&data).expect("the folder").flatten().filter(|entry| entry.path().is_file()) {
            std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(file_mode)).expect("permissions");
        }
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    set(0o555, 0o444);
    for words in [vec!["show", &session], vec!["accept", &session], vec!["new", "short-story"], vec!["list"]] {
        let failed = as_nobody(desk.command(&words)).expect(1);
        assert!(failed.err.contains("cannot use"), "{words:?}: {failed:?}");
    }
    set(0o755, 0o644);
    assert_eq!(play_state(&desk, &session), before);
}

fn play_state(desk: &Desk, session: &str) -> serde_json::Value {
    desk.show(session)
}

/// Runs as somebody whom permissions bind: root they do not.
fn as_nobody(mut command: Command) -> Ran {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if is_root {
        let program = std::env::temp_dir().join(format!("quire-for-nobody-{}", std::process::id()));
        // Copied by another process: a file this one has open for writing would be busy in every child it starts meanwhile.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_quire")).arg(&program).status().expect("cp starts");
        assert!(copied.success(), "a copy that everybody may run");
        let mut other = Command::new(&program);
        other.args(command.get_args()).uid(65534).gid(65534);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => other.env(name, value),
                None => other.env_remove(name),
            };
        }
        let result = ran(other.output().expect("it starts"));
        std::fs::remove_file(program).expect("the copy goes");
        return result;
    }
    ran(command.output().expect("it starts"))
}

#[test]
fn a_folder_taken_away_is_not_made_anew_behind_the_users_back() {
    let desk = Desk::new();
    let session = session(&desk);
    std::fs::rename(desk.path().join("data"), desk.path().join("elsewhere")).expect("it moves");
    let refused = desk.quire(&["accept", &session]).expect(3);
    assert!(refused.err.contains("there is no session"), "{refused:?}");
    std::fs::remove_dir_all(desk.path().join("data")).expect("the new empty one goes");
    std::fs::rename(desk.path().join("elsewhere"), desk.path().join("data")).expect("it comes back");
    assert_eq!(play(&desk, &session)["phase"], "done");
}

#[test]
fn a_full_disk_is_named_and_the_session_goes_on_when_there_is_room() {
    let desk = Desk::new();
    let data = desk.path().join("data");
    std::fs::create_dir_all(&data).expect("a folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "quire-test"]).arg(&data).output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        std::eprintln!("skipped: a disk of one megabyte cannot be mounted here");
        return;
    }
    let played = std::panic::catch_unwind(|| {
        let session = session(&desk);
        let filler = data.join("filler");
        // All that is left, and a page less.
        let _full = std::fs::write(&filler, vec![0_u8; 1 << 20]);
        let long: String = (0..20_000).map(|number| format!("{number} ")).collect();
        let failed = desk.quire_given(&["edit", &session, "text.draft"], &long).expect(1);
        assert!(failed.err.contains("disk is full"), "{failed:?}");
        std::fs::remove_file(filler).expect("the filler goes");
        assert_eq!(desk.quire(&["resume", &session, "--json"]).expect(0).json()["phase"], "waiting_user");
        assert_eq!(play(&desk, &session)["phase"], "done");
    });
    let unmounted = Command::new("umount").arg(&data).status();
    assert!(unmounted.is_ok_and(|status| status.success()), "the small disk stays mounted");
    if let Err(fault) = played {
        std::panic::resume_unwind(fault);
    }
}
