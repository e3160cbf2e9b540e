//! The built-in packs: nothing is wrong with them, and their scenarios play as it is kept beside them.
//!
//! `UPDATE_EXPECT=1` renews what is kept. A scenario's prompts are kept where `tests/prompts/<scenario>` is a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use expect_test::expect_file;
use quire_core::pack::{self, PackFiles};
use quire_scenario::suite::{self, Played};

#[test]
fn the_built_in_packs_play_as_they_should() {
    let faults: Vec<String> = packs().iter().flat_map(|folder| play_pack(folder)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nothing_is_wrong_with_the_built_in_packs() {
    for folder in packs() {
        let (_, diagnostics) = pack::read(&pack_files(&folder));
        let found: Vec<String> =
            diagnostics.iter().map(|found| format!("{}: {found}: {}", folder.display(), found.help)).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

fn play_pack(folder: &Path) -> Vec<String> {
    let pack = pack_files(folder);
    let tests = folder.join("tests");
    let mut faults = vec![];
    for path in files_in(folder).into_iter().chain(files_in(&tests)).filter(|path| has_end(path, "scenario")) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let played = play(&pack, &path);
        faults.extend(played.faults.iter().map(|fault| format!("{}: {fault}", path.display())));
        expect_file![tests.join(format!("{name}.expected"))].assert_eq(&played.told);
        let prompts = tests.join("prompts").join(&name);
        if prompts.is_dir() {
            compare_prompts(&prompts, &played);
        }
    }
    faults
}

fn compare_prompts(folder: &Path, played: &Played) {
    for prompt in &played.prompts {
        expect_file![folder.join(&prompt.file)].assert_eq(&prompt.text);
    }
    let wanted: BTreeSet<&str> = played.prompts.iter().map(|prompt| prompt.file.as_str()).collect();
    let is_old = |path: &PathBuf| !wanted.contains(&*path.file_name().expect("a name").to_string_lossy());
    for old in files_in(folder).into_iter().filter(is_old) {
        assert!(std::env::var_os("UPDATE_EXPECT").is_some(), "{} belongs to no prompt of the scenario", old.display());
        std::fs::remove_file(&old).expect("an old prompt can be removed");
    }
}

fn play(pack: &PackFiles, path: &Path) -> Played {
    let text = std::fs::read_to_string(path).expect("a scenario can be read");
    suite::play(pack, &path.display().to_string(), &text).unwrap_or_else(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{}", faults.join("\n"))
    })
}

fn packs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs");
    let packs: Vec<PathBuf> = entries(&root).into_iter().filter(|path| path.is_dir()).collect();
    assert!(!packs.is_empty(), "there are built-in packs");
    packs
}

fn pack_files(folder: &Path) -> PackFiles {
    let mut files = BTreeMap::new();
    read_texts(folder, folder, &mut files);
    PackFiles(files)
}

fn read_texts(root: &Path, folder: &Path, files: &mut BTreeMap<String, Arc<str>>) {
    for path in entries(folder) {
        if path.is_dir() {
            read_texts(root, &path, files);
        } else if has_end(&path, "md") || has_end(&path, "yaml") {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            files.insert(name, std::fs::read_to_string(&path).expect("a text").into());
        }
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_file()).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn has_end(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|extension| extension == end)
}
