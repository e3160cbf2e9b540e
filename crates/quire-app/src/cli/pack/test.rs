//! `quire pack test`: plays a pack's own scenarios and compares what comes with what is kept beside them.
//!
//! No model, no network, no clock: the scenarios play all parts. What is kept is renewed on request, and only where no
//! expectation could make the play right.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use quire_core::pack::{self, Pack, PackFiles, Skill};
use quire_scenario::suite::{self, Played};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::{counted, refuse_unreadable};
use crate::out;
use crate::packs::{Packs, Suite};
use crate::report::{self, Usage};
use crate::words::Lang;

/// Lines of one difference that are shown.
const DIFF_LINES_MAX: usize = 80;
/// New files that are named one by one.
const NEW_FILES_MAX: usize = 3;
/// Unchanged lines around a change.
const DIFF_CONTEXT: usize = 2;

/// What came of one scenario.
struct Tried {
    /// Its file's path.
    file: String,
    /// What no expectation can make right.
    faults: Vec<String>,
    /// Kept files that are not what came.
    changes: Vec<Change>,
    /// How many prompts were compared.
    prompt_count: usize,
    /// Every kept file that belongs to it.
    kept: BTreeSet<String>,
}

/// A kept file and what came in its place.
struct Change {
    file: String,
    /// What is kept; none where nothing is.
    kept: Option<String>,
    came: String,
}

/// Plays all scenarios of a pack; 1 where one goes otherwise than it should, or there is none.
pub fn test(lang: Lang, packs: &Packs, name_or_folder: &str, update: bool, is_json: bool) -> Result<ExitCode> {
    let suite = packs.locate(name_or_folder)?.suite()?;
    refuse_unreadable(lang, &suite.found)?;
    if update && suite.folder.is_none() {
        let words = format!("`{name_or_folder}` is built in, so nothing can be kept beside it; give a folder");
        return Err(Usage(words).into());
    }
    let tried = try_all(&suite);
    let stale = stale(&suite, &tried);
    if let (true, Some(folder)) = (update, &suite.folder) {
        renew(folder, &tried, &stale)?;
    }
    let is_right = |tried: &Tried| tried.faults.is_empty() && (update || tried.changes.is_empty());
    let is_fine = !tried.is_empty() && tried.iter().all(is_right) && (update || stale.is_empty());
    if is_json {
        let scenarios: Vec<Value> = tried.iter().map(|tried| tried.json(is_right(tried))).collect();
        println!("{}", json!({ "ok": is_fine, "updated": update, "scenarios": scenarios, "stale": stale }));
    } else {
        let diff = Diff { is_coloured: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() };
        tried.iter().for_each(|tried| out::styled(&tried.words(update, diff)));
        print!("{}", ending(&suite, name_or_folder, &tried, &stale, update));
    }
    Ok(ExitCode::from(if is_fine { report::FINE } else { report::FAILED }))
}

fn try_all(suite: &Suite) -> Vec<Tried> {
    let mut tried: Vec<Tried> = vec![];
    for (file, text) in suite.files.0.iter().filter(|(file, _)| file.ends_with(".scenario")) {
        let mut played = try_one(suite, file, text);
        let is_taken = tried.iter().find(|known| stem(&known.file) == stem(file));
        if let Some(known) = is_taken {
            let fault = format!("`{}` has the same name, and both would be kept in one file; rename one of the two", known.file);
            played = Tried { faults: vec![fault], changes: vec![], ..played };
        }
        tried.push(played);
    }
    tried
}

fn try_one(suite: &Suite, file: &str, text: &str) -> Tried {
    let name = stem(file);
    let expected = format!("tests/{name}.expected");
    let kept = BTreeSet::from([expected.clone()]);
    let mut tried = Tried { file: file.to_owned(), faults: vec![], changes: vec![], prompt_count: 0, kept };
    match suite::play(&suite.found.files, file, text) {
        Err(diagnostics) => {
            tried.faults = diagnostics.iter().map(|found| report::diagnostic(Lang::En, &suite.files, found)).collect();
            tried.kept.extend(suite.files.0.keys().filter(|path| path.starts_with(&format!("tests/prompts/{name}/"))).cloned());
        }
        Ok(Played { told, prompts, faults }) => {
            tried.faults = faults;
            tried.changes.extend(change(suite, expected, told));
            if suite.prompted.contains(name) {
                tried.prompt_count = prompts.len();
                for prompt in prompts {
                    let path = format!("tests/prompts/{name}/{}", prompt.file);
                    tried.kept.insert(path.clone());
                    tried.changes.extend(change(suite, path, prompt.text));
                }
            }
        }
    }
    tried
}

/// Returns a scenario's name: its file without folder and ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".scenario").unwrap_or(name)
}

fn change(suite: &Suite, file: String, came: String) -> Option<Change> {
    let kept = suite.files.0.get(&file).map(|text| text.replace("\r\n", "\n"));
    (kept.as_ref() != Some(&came)).then_some(Change { file, kept, came })
}

/// Lists kept files that belong to no scenario, or to a prompt that is not asked any more.
fn stale(suite: &Suite, tried: &[Tried]) -> Vec<String> {
    let is_kept = |file: &str| tried.iter().any(|tried| tried.kept.contains(file));
    suite.files.0.keys().filter(|file| !file.ends_with(".scenario") && !is_kept(file)).cloned().collect()
}

fn renew(folder: &Path, tried: &[Tried], stale: &[String]) -> Result<()> {
    let right = tried.iter().filter(|tried| tried.faults.is_empty());
    for Change { file, came, .. } in right.flat_map(|tried| &tried.changes) {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).with_context(|| format!("no folder for {}", path.display()))?;
        std::fs::write(&path, came).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    for file in stale {
        let path = folder.join(file);
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    Ok(())
}

impl Tried {
    fn words(&self, update: bool, diff: Diff) -> String {
        let Self { file, faults, changes, prompt_count, kept: _ } = self;
        let prompts = if *prompt_count == 0 { String::new() } else { format!(", with {}", counted(*prompt_count, "prompt")) };
        if faults.is_empty() && changes.is_empty() {
            return format!("{file}: as expected{prompts}\n");
        }
        if !faults.is_empty() {
            let faults = faults.iter().map(|fault| format!("  {}\n", fault.trim_end().replace('\n', "\n  ")));
            return out::printable(&format!("{file}: wrong, whatever is expected\n{}", faults.collect::<String>()));
        }
        let verdict = if update { "renewed" } else { "not as expected" };
        let is = if update { "new" } else { "not there yet" };
        let new: Vec<&str> = changes.iter().filter(|change| change.kept.is_none()).map(|change| change.file.as_str()).collect();
        let new = match new.as_slice() {
            [first, .., last] if new.len() > NEW_FILES_MAX => format!("  {first} to {last}: {} files are {is}\n", new.len()),
            few => few.iter().map(|file| format!("  {file} is {is}\n")).collect(),
        };
        let mut text = out::printable(&format!("{file}: {verdict}\n{new}"));
        for Change { file, kept, came } in changes {
            if let Some(kept) = kept {
                text += &format!("  {}\n{}", out::printable(file), diff.of(kept, came));
            }
        }
        text
    }

    fn json(&self, is_right: bool) -> Value {
        let plain = Diff { is_coloured: false };
        let changes: Vec<Value> = self
            .changes
            .iter()
            .map(|change| json!({ "file": change.file, "isNew": change.kept.is_none(), "diff": plain.of(change.kept.as_deref().unwrap_or_default(), &change.came) }))
            .collect();
        json!({ "file": self.file, "ok": is_right, "faults": self.faults, "changes": changes, "prompts": self.prompt_count })
    }
}

fn ending(suite: &Suite, pack: &str, tried: &[Tried], stale: &[String], update: bool) -> String {
    let mut text = String::new();
    for file in stale {
        let verb = if update { "removed" } else { "stale" };
        text += &format!("{file}: {verb}, it belongs to nothing that is played\n");
    }
    if tried.is_empty() {
        let (read, _) = pack::read(&suite.found.files);
        return text + &read.map(|read| first_scenario(&read, pack)).unwrap_or_default();
    }
    let faulty = tried.iter().filter(|tried| !tried.faults.is_empty()).count();
    let changed = tried.iter().filter(|tried| tried.faults.is_empty() && !tried.changes.is_empty()).count();
    let mut parts = vec![counted(tried.len(), "scenario")];
    if changed > 0 {
        parts.push(format!("{changed} {}", if update { "renewed" } else { "not as expected" }));
    }
    if faulty > 0 {
        parts.push(format!("{faulty} wrong"));
    }
    if !stale.is_empty() && !update {
        parts.push(format!("{} stale", counted(stale.len(), "file")));
    }
    text += &format!("{}\n", parts.join(", "));
    if !update && (changed > 0 || !stale.is_empty()) && suite.folder.is_some() {
        text += &format!("If it is meant so: quire pack test {pack} --update\n");
    }
    text
}

/// Tells how a first scenario looks for this very pack.
fn first_scenario(pack: &Pack, folder: &str) -> String {
    let confirm = if pack.startup.asks_first { "user    confirm\n" } else { "" };
    let skill = pack.skills.first();
    let id = skill.map_or("write", |skill| skill.id.as_str());
    let role = if skill.is_some_and(Skill::needs_role) { " role=A" } else { "" };
    let tag = skill.and_then(|skill| skill.output_tags.first()).map_or_else(String::new, |tag| tag.as_str().replace('*', "A"));
    format!(
        "The pack has no scenario yet. Write the first as {folder}/tests/first.scenario:\n\n\
         pack    {}\n\n\
         user    What the writer says first.\n{confirm}\
         agent   run_worker {id}{role}: Why this skill is next.\n\
         worker  submit {tag}: What the worker hands in.\n\
         user    finish\n\n\
         Then `quire pack test {folder} --update` keeps what is seen after each line; read it before you trust it.\n",
        pack.name
    )
}

/// Shows how one text differs from another.
#[derive(Debug, Clone, Copy)]
struct Diff {
    is_coloured: bool,
}

impl Diff {
    /// Lists changed lines with their neighbours: `-` is kept, `+` came.
    fn of(self, kept: &str, came: &str) -> String {
        let diff = TextDiff::from_lines(kept, came);
        let mut lines = vec![];
        for (index, group) in diff.grouped_ops(DIFF_CONTEXT).iter().enumerate() {
            if index > 0 {
                lines.push("    …\n".to_owned());
            }
            for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
                lines.push(self.line(change.tag(), change.value().trim_end_matches('\n')));
            }
        }
        let hidden = lines.len().saturating_sub(DIFF_LINES_MAX);
        lines.truncate(DIFF_LINES_MAX);
        if hidden > 0 {
            lines.push(format!("    … and {} more\n", counted(hidden, "line")));
        }
        lines.concat()
    }

    fn line(self, tag: ChangeTag, text: &str) -> String {
        let (mark, colour) = match tag {
            ChangeTag::Delete => ('-', "\x1b[31m"),
            ChangeTag::Insert => ('+', "\x1b[32m"),
            ChangeTag::Equal => (' ', ""),
        };
        // A prompt may hold what a terminal would obey.
        let text = out::printable(text);
        if self.is_coloured && !colour.is_empty() {
            format!("    {colour}{mark} {text}\x1b[0m\n")
        } else {
            format!("    {mark} {text}\n").trim_end().to_owned() + "\n"
        }
    }
}

/// Plays a fresh pack's scenarios for the first time, and returns what is to be kept beside them.
pub(super) fn first_kept(files: &PackFiles, scenario: &str, text: &str) -> (String, String) {
    let played = suite::play(files, scenario, text).expect("a new pack's scenario has no faults");
    assert!(played.faults.is_empty(), "a new pack's scenario is played to its end: {:?}", played.faults);
    (format!("tests/{}.expected", stem(scenario)), played.told)
}
