//! Checks Agent Skills that are no pack yet: a folder with a `SKILL.md`, or a folder of such folders.
//!
//! Each is read as a worker of a pack would be. What only a whole pack can answer, such as who writes what it reads, is not
//! asked here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use quire_core::diagnostic::Diagnostic;
use quire_core::pack::{self, Pack, PackFiles, Skill};
use quire_core::tag::Pattern;
use serde_json::json;

use super::{check, counted, errors_of};
use crate::packs::{Found, read_text};
use crate::words::Lang;

/// Where folders of skills lie below a folder; an empty name is the folder itself.
const PLACES: [&str; 3] = ["", "skills", "workers"];
/// The words that a pack's manifest has and a skill has not.
const MANIFEST: &str = "orchestrator.md";

/// One skill's folder.
pub(super) struct SkillFolder {
    /// The folder's name, which is its id.
    id: String,
    /// Its `SKILL.md`, as seen from the folder that is checked.
    file: String,
    text: Arc<str>,
    not_text: Option<Diagnostic>,
    /// Other files of it: a worker sees none of them.
    others: usize,
}

/// Finds the skills in a folder that is no pack; none where it has none.
pub(super) fn in_folder(folder: &Path) -> Result<Option<Vec<SkillFolder>>> {
    if folder.join(MANIFEST).exists() {
        return Ok(None);
    }
    if folder.join("SKILL.md").is_file() {
        let whole = std::path::absolute(folder)?;
        let id = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(Some(vec![skill(folder, "SKILL.md".to_owned(), id)?]));
    }
    let mut skills = vec![];
    for place in PLACES {
        let below = folder.join(place);
        let Ok(entries) = std::fs::read_dir(&below) else { continue };
        let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.retain(|name| below.join(name).join("SKILL.md").is_file());
        for id in names {
            let file = if place.is_empty() { format!("{id}/SKILL.md") } else { format!("{place}/{id}/SKILL.md") };
            skills.push(skill(folder, file, id)?);
        }
    }
    Ok((!skills.is_empty()).then_some(skills))
}

fn skill(root: &Path, file: String, id: String) -> Result<SkillFolder> {
    let path = root.join(&file);
    let (text, not_text) = read_text(&path, &file).with_context(|| format!("{} cannot be read", path.display()))?;
    let others = path.parent().map_or(0, |folder| count_files(folder).saturating_sub(1));
    Ok(SkillFolder { id, file, text, not_text, others })
}

fn count_files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let count = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => count_files(&entry.path()),
        Ok(_) => 1,
        Err(_) => 0,
    };
    entries.flatten().map(count).sum()
}

/// Tells what would load, what is wrong, and how to make a pack of them.
pub(super) fn check(lang: Lang, folder: &Path, skills: &[SkillFolder], is_json: bool) -> Result<ExitCode> {
    let (found, diagnostics) = diagnose(skills);
    let loaded = |skill: &SkillFolder| read_alone(skill).0;
    if is_json {
        let (errors, warnings) = check::counts(&diagnostics);
        let list: Vec<_> = skills
            .iter()
            .map(|folder| {
                let pack = loaded(folder);
                let skill = pack.as_ref().and_then(|pack| pack.skills.first());
                json!({
                    "id": folder.id, "file": folder.file, "loads": skill.is_some(),
                    "reads": skill.map(|skill| words(&skill.input_tags)), "writes": skill.map(|skill| words(&skill.output_tags)),
                    "otherFiles": folder.others,
                })
            })
            .collect();
        println!(
            "{}",
            json!({ "pack": null, "skills": list, "errors": errors, "warnings": warnings, "diagnostics": diagnostics })
        );
        return Ok(check::exit(&diagnostics));
    }
    println!("{} and no `{MANIFEST}`: this is no pack yet.\n", counted(skills.len(), "skill"));
    for skill in skills {
        match loaded(skill).as_ref().and_then(|pack| pack.skills.first()) {
            Some(Skill { input_tags, output_tags, .. }) => {
                let reads = if input_tags.is_empty() { "nothing".to_owned() } else { words(input_tags).join(", ") };
                println!("  {} would load: reads {reads}; writes {}", skill.id, words(output_tags).join(", "));
            }
            None => println!("  {} would not load", skill.id),
        }
        if skill.others > 0 {
            println!(
                "    {} beside SKILL.md: a worker sees no other file, and none of them is run",
                counted(skill.others, "file")
            );
        }
    }
    println!("\nTo make a pack of {}:", if skills.len() == 1 { "it" } else { "them" });
    let copy = |skill: &SkillFolder| {
        let from = folder.join(&skill.file);
        format!("copy {} to my-pack/workers/{}", from.parent().unwrap_or(folder).display(), skill.id)
    };
    let ids: Vec<&str> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let list = format!("add {} to `workers` in my-pack/{MANIFEST}", ids.join(", "));
    let first = std::iter::once("quire pack new my-pack".to_owned());
    let acts = first.chain(skills.iter().map(copy)).chain([list, "quire pack check my-pack".to_owned()]);
    acts.enumerate().for_each(|(index, act)| println!("  {}. {act}", index + 1));
    println!();
    check::tell(lang, &found, &diagnostics);
    Ok(check::exit(&diagnostics))
}

fn words(patterns: &[Pattern]) -> Vec<&str> {
    patterns.iter().map(Pattern::as_str).collect()
}

fn diagnose(skills: &[SkillFolder]) -> (Found, Vec<Diagnostic>) {
    let files: BTreeMap<String, Arc<str>> = skills.iter().map(|skill| (skill.file.clone(), skill.text.clone())).collect();
    let diagnostics = skills.iter().flat_map(|skill| read_alone(skill).1).collect();
    (Found { files: PackFiles(files), diagnostics: vec![] }, diagnostics)
}

/// Reads a skill as the only worker of a pack, and finds what is wrong with it alone.
fn read_alone(skill: &SkillFolder) -> (Option<Pack>, Vec<Diagnostic>) {
    let SkillFolder { id, file, text, not_text, .. } = skill;
    let manifest = format!("---\nname: alone\ndescription: alone\nworkers: [{}]\n---\n", json!(id));
    let inner = format!("workers/{id}/SKILL.md");
    let files = PackFiles([(MANIFEST.to_owned(), manifest.into()), (inner.clone(), text.clone())].into());
    let (pack, mut diagnostics) = pack::read(&files);
    // Whom it reads from and whom it judges are other skills of the pack that is yet to be made.
    diagnostics.retain(|found| !matches!(found.code, "never-written" | "unknown-skill"));
    for found in &mut diagnostics {
        if found.file != inner {
            found.span = quire_core::diagnostic::Span::of("", 0, 0);
        }
        found.file.clone_from(file);
    }
    diagnostics.extend(not_text.clone());
    let pack = pack.filter(|_| errors_of(&diagnostics).next().is_none());
    (pack, diagnostics)
}
