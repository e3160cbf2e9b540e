//! Plays a scenario against the rulebook and shows what a person would see, a line for each line.
//!
//! `pack NAME` names a small pack under `packs/` of this crate, else one of the built-in packs. Besides what is expected,
//! every play proves two things: the journal read again from any record on gives the same session, and each prompt on the
//! way is a transcript that a provider takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use expect_test::Expect;
use quire_core::event::Event;
use quire_core::ids::{RecordId, SessionId, Timestamp};
use quire_core::journal::{self, Record, Texts};
use quire_core::pack::PackFiles;
use quire_core::session::Session;
use quire_scenario::Scenario;
use quire_scenario::perform::{Estimate, Performance, perform, prompt_text};

use crate::transcript;

/// So many prefixes of a journal are gone on from; of a longer one, evenly spread ones.
const CUTS_MAX: usize = 24;

/// Plays a scenario and compares what is told.
pub fn check(scenario: &str, expected: Expect) {
    expected.assert_eq(&play(scenario).text());
}

/// Plays a scenario, and shows every prompt of one asker: `agent`, or a worker's skill and role.
///
/// What a prompt repeats of the one before is shown once: its whole beginning where it only goes on, else its system message.
pub fn check_prompts(scenario: &str, asker: &str, expected: Expect) {
    let prompts = play(scenario).prompts;
    let mut seen = String::new();
    let mut before: Option<&str> = None;
    for text in prompts.iter().filter(|prompt| prompt.asker == asker).map(|prompt| prompt.text.as_str()) {
        let rest = before.and_then(|before| text.strip_prefix(up_to(before, "=== tools")));
        let below_system = before.and_then(|before| text.strip_prefix(up_to(before, "=== user ===")));
        match (rest, below_system) {
            (Some(rest), _) => seen.push_str(&format!("=== all as before, and ===\n{rest}\n")),
            (None, Some(rest)) => seen.push_str(&format!("=== system, as before ===\n{rest}\n")),
            (None, None) => seen.push_str(&format!("{text}\n")),
        }
        before = Some(text);
    }
    expected.assert_eq(&seen);
}

fn up_to<'a>(text: &'a str, mark: &str) -> &'a str {
    text.split(mark).next().unwrap_or(text)
}

/// Plays a scenario.
pub fn play(scenario: &str) -> Performance {
    let scenario = Scenario::parse("test.scenario", scenario).unwrap_or_else(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{}", faults.join("\n"))
    });
    let pack = scenario.pack.as_deref().map(pack_files);
    let performance = perform(&scenario, pack);
    assert_replays(&performance.events, &performance.session);
    performance
}

/// Reads a pack by its name.
pub fn pack_files(name: &str) -> PackFiles {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [crate_folder.join("packs").join(name), crate_folder.join("../../packs").join(name)];
    let folder = folders.iter().find(|folder| folder.is_dir()).unwrap_or_else(|| panic!("there is no pack `{name}`"));
    let mut files = BTreeMap::new();
    read_folder(folder, folder, &mut files);
    PackFiles(files)
}

fn read_folder(root: &Path, folder: &Path, files: &mut BTreeMap<String, std::sync::Arc<str>>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            read_folder(root, &path, files);
        } else if matches!(path.extension().and_then(|end| end.to_str()), Some("md" | "yaml")) {
            files.insert(name, std::fs::read_to_string(&path).expect("a text").into());
        }
    }
}

/// Writes the events as records, reads them again, and goes on from every prefix: the end is always the same session.
pub fn assert_replays(events: &[(Timestamp, Event)], session: &Session) {
    let id = SessionId::new("play");
    let records = records(events);
    assert!(Session::replay(id.clone(), &records) == *session, "the journal read again gives another session");
    for cut in (0..records.len()).step_by(records.len().div_ceil(CUTS_MAX).max(1)) {
        let mut resumed = Session::replay(id.clone(), &records[..cut]);
        let tasks_running = resumed.tasks().iter().filter(|task| task.is_running()).count();
        assert_eq!(resumed.open_effects().len(), usize::from(resumed.phase().running().is_some()) + tasks_running);
        if resumed.phase().asking().is_some() {
            let (prompt, _) = resumed.prompt(u32::MAX, &Estimate).expect("there is room");
            transcript::check(&prompt).unwrap_or_else(|fault| panic!("after record {cut}: {fault}\n{}", prompt_text(&prompt)));
        }
        for record in &records[cut..] {
            resumed.handle(record.time, record.event.clone()).expect("what was heard once is heard again");
        }
        assert!(resumed == *session, "stopped after record {cut} and gone on, the session is another");
    }
}

/// Writes events as the records of a session named `play`, and reads them again.
pub fn records(events: &[(Timestamp, Event)]) -> Vec<Record> {
    let id = SessionId::new("play");
    let mut stored = vec![];
    let mut texts = Texts::new();
    for (index, (time, event)) in events.iter().enumerate() {
        let parent = stored.last().map(|record: &journal::StoredRecord| (record.id, record.hash.clone()));
        let parent = parent.as_ref().map(|(id, hash)| (*id, hash));
        let (record, named) = journal::encode(&id, parent, RecordId(index as u64 + 1), *time, event);
        texts.extend(named);
        stored.push(record);
    }
    let (records, damage) = journal::read_path(&id, &stored, &texts, RecordId(events.len() as u64));
    assert_eq!(damage, None);
    records
}
