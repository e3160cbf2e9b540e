use std::path::{Path, PathBuf};

use expect_test::expect;
use quire_scenario::Scenario;

use crate::parse;

/// Finds the scenarios below a folder, in order.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("the folder can be read").map(|entry| entry.expect("so can its entries").path());
    let mut found: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { scenarios(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "scenario"))
        .collect();
    found.sort();
    found
}

#[test]
fn the_scenarios_of_the_built_in_packs_have_no_faults() {
    let found = scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs"));
    assert!(!found.is_empty(), "the built-in packs come with scenarios");
    for path in found {
        let text = std::fs::read_to_string(&path).expect("a scenario can be read");
        let faults = Scenario::parse(&path.display().to_string(), &text).err().unwrap_or_default();
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

#[test]
fn the_language_can_be_read_as_it_is_described() {
    let docs = include_str!("../../src/lib.rs").lines().filter_map(|line| line.strip_prefix("//!"));
    let example = docs.skip_while(|line| line.trim() != "```text").skip(1).take_while(|line| line.trim() != "```");
    let scenario = parse(&example.collect::<Vec<_>>().join("\n"));
    expect!["33"].assert_eq(&scenario.lines.len().to_string());
}
