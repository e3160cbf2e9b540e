//! Long sessions, long texts, and texts that mean ill.

use crate::desk::{Desk, lamp};
use crate::story::SCENARIO;

/// Turns of the long session: enough to see whether a record holds more the later it comes.
const TURNS: usize = 40;

#[test]
fn records_do_not_grow_with_the_session() {
    let desk = Desk::new();
    let session = desk.start_scripted("agent text: And then?\n");
    for turn in 0..TURNS {
        desk.quire(&["say", &session, &format!("Turn {turn}.")]).expect(0);
    }
    let journal = desk.quire(&["journal", &session, "--json"]).expect(0).out;
    let lengths: Vec<usize> = journal.lines().skip(1).map(str::len).collect();
    let (early, late) = (lengths[..30].iter().max(), lengths[lengths.len() - 30..].iter().max());
    let (early, late) = (early.expect("records"), late.expect("records"));
    assert!(*late < early + 100, "a record of the first turns has at most {early} bytes, one of the last {late}");
}

#[test]
fn a_megabyte_goes_through_words_and_edits_whole() {
    let desk = Desk::new();
    let session = desk.start_scripted(SCENARIO);
    let text = "灯塔, lamp, 🏮\n".repeat(60_000);
    assert!(text.len() > 1_000_000);
    let view = desk.quire_given(&["say", &session, "--json"], &text).json();
    let said = view["blackboard"].as_array().expect("items").iter().find(|item| item["tag"] == "user.brief").expect("the brief");
    assert_eq!(said["content"].as_str().map(str::len), Some(text.len()));
    let view = desk.quire_given(&["edit", &session, "notes.mine", "--json"], &text).expect(0).json();
    let edited =
        view["blackboard"].as_array().expect("items").iter().find(|item| item["tag"] == "notes.mine").expect("the notes");
    assert_eq!(edited["content"], text);
}

#[test]
fn nothing_a_model_writes_steers_the_terminal() {
    let desk = Desk::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31mred";
    let scenario = format!(
        "agent run_worker write: {evil}\nworker submit text.draft: {evil}\n        summary: {evil}\nagent ask_user: {evil}\n"
    );
    let session = desk.start_scripted(&scenario);
    desk.quire(&["say", &session, evil]).expect(0);
    let (session, title) = (session.as_str(), desk.quire(&["new", &lamp(), "--title", evil, "--model", "demo"]).expect(0));
    let looks: [&[&str]; 6] = [
        &["show", session],
        &["journal", session],
        &["context", session],
        &["context", session, "--prompt"],
        &["list"],
        &["accept", session],
    ];
    let mut told = vec![title.out];
    for words in looks {
        let ran = desk.quire(words).expect(0);
        told.extend([ran.out, ran.err]);
    }
    told.push(desk.quire(&["accept", session, "--artifact", evil]).expect(3).err);
    told.push(desk.quire(&["show", evil]).expect(3).err);
    let view = desk.quire(&["show", session, "--json"]).expect(0);
    assert!(view.json().to_string().contains("owned"), "scripts get the text as it is");
    told.push(view.out);
    for told in told {
        let steering = told.chars().find(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'));
        assert_eq!(steering, None, "{told:?}");
    }
}

#[test]
fn a_pack_with_links_strange_names_and_huge_files() {
    let desk = Desk::new();
    let pack = desk.path().join("lamp");
    let copied = std::process::Command::new("cp").args(["-r", &lamp()]).arg(&pack).status().expect("cp runs");
    assert!(copied.success());
    let folder = pack.to_str().expect("text").to_owned();
    let check = || desk.quire(&["pack", "check", &folder]);
    check().expect(0);

    // A link out of the folder, and one to itself: neither is followed.
    std::os::unix::fs::symlink("/etc/passwd", pack.join("workers/write/secret.md")).expect("a link");
    std::os::unix::fs::symlink(&pack, pack.join("workers/again")).expect("a link");
    check().expect(0);
    let session = desk.quire(&["new", &folder, "--json", "--model", "demo"]).expect(0).json();
    let session = session["session"].as_str().expect("an id");
    assert!(!desk.quire(&["journal", session, "--json"]).expect(0).out.contains("root:"));

    // A picture with a name in Latin-1 is none of the pack's files.
    let strange = std::ffi::OsStr::new("pack");
    let strange = [std::os::unix::ffi::OsStrExt::as_bytes(strange), b"\xe9.png"].concat();
    let strange: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&strange);
    std::fs::write(pack.join(strange), "no text").expect("a file");
    check().expect(0);

    std::fs::write(pack.join("workers/write/huge.md"), "x".repeat(5 << 20)).expect("a file");
    let failed = check().expect(1);
    assert!(failed.err.contains("workers/write/huge.md"), "{failed:?}");
}
