//! Reads a pack's files, to the end, whatever is wrong with them.

use unicode_normalization::UnicodeNormalization;

use super::findings::{Findings, Place, Placed};
use super::manifest::{self, Listed, MANIFEST, Manifest, Origin, Rule};
use super::skill::{self, ReadSkill};
use super::{Pack, PackFiles, Startup, bindings, check, fields, frontmatter};
use crate::diagnostic::{Diagnostic, Severity};
use crate::ids::SkillId;
use crate::tag::{RoleId, Tag};

/// Where the run-skill list is looked for when the manifest does not say.
const RUN_SKILL_LIST: &str = "设计.run_skill清单";
/// The shared context's file when the manifest does not say.
const SHARED_CONTEXT: &str = "shared-context.md";

/// Reads a pack. The pack is there exactly when no diagnostic is an error; diagnostics stand in the order of files and lines.
pub fn read(files: &PackFiles) -> (Option<Pack>, Vec<Diagnostic>) {
    let mut findings = Findings::default();
    let pack = pack(files, &mut findings);
    let diagnostics = findings.into_diagnostics(files);
    let is_usable = diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning);
    assert!(pack.is_some() || !is_usable, "a pack that cannot be read has an error that says why");
    (pack.filter(|_| is_usable), diagnostics)
}

fn pack<'a>(files: &'a PackFiles, findings: &mut Findings<'a>) -> Option<Pack> {
    let manifest = match files.0.get(MANIFEST) {
        Some(text) => manifest::read(text, findings),
        None => {
            no_manifest(files, findings);
            None
        }
    };
    let Some(mut manifest) = manifest else {
        // Without a list every folder is read: its author wants to hear of all faults at once.
        for (folder, path, text) in skill_files(files) {
            if let Some(skill) = skill::read(&folder, path, text, findings) {
                check::skill(&skill, findings);
            }
        }
        return None;
    };
    let skills = skills(files, &mut manifest, findings);
    let run_skill_list = manifest.run_skill_list.take().unwrap_or_else(default_run_skill_list);
    let is_complete = manifest.workers.as_ref().is_some_and(|listed| listed.len() == skills.len());
    if is_complete && skills.iter().all(|skill| !skill.outputs.is_empty()) {
        check::tags_are_written(&manifest, &skills, &run_skill_list, findings);
    }
    let ids: Vec<&str> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let bindings = files.0.get(bindings::BINDINGS).map(|text| bindings::read(text, &ids, findings)).unwrap_or_default();
    let shared_context = shared_context(files, manifest.shared_context.as_ref(), findings);
    Some(Pack {
        hash: files.hash(),
        startup: startup(&mut manifest, findings),
        name: manifest.name,
        description: manifest.description,
        book_kind: manifest.book_kind,
        version: manifest.version,
        keywords: manifest.keywords,
        manifest: manifest.body,
        shared_context,
        burst_max: manifest.burst_max,
        skills: skills.into_iter().map(ReadSkill::into_skill).collect(),
        instance_ready: manifest.instance_ready.into_iter().map(|tag| tag.value).collect(),
        run_skill_list,
        tables: manifest.tables,
        chance: manifest.chance.into_iter().map(|chance| chance.value).collect(),
        hidden: manifest.hidden,
        reveal_when_done: manifest.reveal_when_done,
        snapshot: manifest.snapshot,
        bindings,
    })
}

fn no_manifest<'a>(files: &'a PackFiles, findings: &mut Findings<'a>) {
    let elsewhere = files.0.keys().find_map(|path| path.strip_suffix("/orchestrator.md"));
    let help = match elsewhere {
        Some(folder) => format!("open the folder `{folder}`: the pack lies there"),
        None if files.0.contains_key("SKILL.md") => {
            "this is a single skill: put its folder under `workers/`, and write an `orchestrator.md` that lists it (`quire pack new` makes one)".to_owned()
        }
        None => "a pack is a folder with `orchestrator.md`; `quire pack new` makes one".to_owned(),
    };
    findings.error(Place::top(MANIFEST), "no-manifest", "there is no `orchestrator.md`", help);
}

/// Reads every listed skill and puts in what the manifest says of it.
fn skills<'a>(files: &'a PackFiles, manifest: &mut Manifest<'a>, findings: &mut Findings<'a>) -> Vec<ReadSkill<'a>> {
    let is_listed = |folder: &str| {
        let listed = manifest.workers.as_ref().map(|listed| listed.iter().any(|entry| folder_name(entry) == folder));
        listed.unwrap_or(true)
    };
    let mut folders: Vec<(String, &'a str, &'a str)> = Vec::new();
    for (folder, path, text) in skill_files(files) {
        if is_listed(&folder) {
            folders.push((folder, path, text));
        } else {
            let message = format!("the folder `workers/{folder}` is not listed, so its skill does not exist here");
            findings.warning(
                manifest.workers_at,
                "unlisted-worker",
                message,
                format!("add `- {folder}` to `workers`, or remove the folder"),
            );
        }
    }
    let order: Vec<(String, Option<Place<'a>>)> = match &manifest.workers {
        Some(listed) => listed.iter().map(|entry| (folder_name(entry).to_owned(), Some(entry.id.at))).collect(),
        None => folders.iter().map(|(folder, ..)| (folder.clone(), None)).collect(),
    };
    for entry in manifest.workers.iter().flatten() {
        if entry.id.value != folder_name(entry) {
            let message = format!("the id `{}` is not the folder's name `{}`", entry.id.value, folder_name(entry));
            findings.error(entry.id.at, "id-not-folder", message, "a skill is known by its folder: rename one of the two");
        }
    }

    let mut skills = Vec::new();
    for (name, at) in order {
        check_skill_id(&name, at, findings);
        match folders.iter().find(|(folder, ..)| *folder == name) {
            Some((_, path, text)) => skills.extend(skill::read(&name, path, text, findings)),
            None => missing_worker(&name, at, files, findings),
        }
    }
    apply_rules(manifest, &mut skills, findings);
    skills.iter().for_each(|skill| check::skill(skill, findings));
    skills
}

/// Lists `workers/<folder>/SKILL.md` as folder, path, text. Some file systems take accented letters apart, so names are put
/// together again.
fn skill_files(files: &PackFiles) -> impl Iterator<Item = (String, &str, &str)> {
    files.0.iter().filter_map(|(path, text)| {
        let folder = path.strip_prefix("workers/")?.strip_suffix("/SKILL.md")?;
        (!folder.contains('/')).then(|| (folder.nfc().collect(), path.as_str(), &**text))
    })
}

fn folder_name<'s>(entry: &'s Listed<'_>) -> &'s str {
    entry.folder.as_deref().unwrap_or(&entry.id.value)
}

fn check_skill_id<'a>(name: &str, at: Option<Place<'a>>, findings: &mut Findings<'a>) {
    if RoleId::parse(name).is_err() {
        let message = format!("`{name}` cannot be a skill's id");
        let help = "name the folder in one word of letters, digits, `-` and `_`: the id becomes a part of a tag";
        findings.error(at.unwrap_or(Place::top(MANIFEST)), "bad-skill-id", message, help);
    }
}

fn missing_worker<'a>(name: &str, at: Option<Place<'a>>, files: &PackFiles, findings: &mut Findings<'a>) {
    let near = skill_files(files).map(|(folder, ..)| folder).find(|folder| folder.eq_ignore_ascii_case(name));
    let help = match near {
        Some(folder) => format!("the folder is named `{folder}`; write it the same"),
        None => format!("add `workers/{name}/SKILL.md`, or take `{name}` off the list"),
    };
    findings.error(at.unwrap_or(Place::top(MANIFEST)), "missing-worker", format!("there is no `workers/{name}/SKILL.md`"), help);
}

/// Front matter wins over table, table over `SKILL.md`.
fn apply_rules<'a>(manifest: &mut Manifest<'a>, skills: &mut [ReadSkill<'a>], findings: &mut Findings<'a>) {
    let listed: Vec<&str> = manifest.workers.iter().flatten().map(folder_name).collect();
    let names: Vec<(String, SkillId)> = skills.iter().map(|skill| (skill.name.clone(), skill.id.clone())).collect();
    let known = KnownSkills { listed, names };
    for rule in known.resolved("acceptance", &manifest.acceptance, skills, findings) {
        skills[rule.0].acceptance = Some(*rule.1);
    }
    for rule in known.resolved("requiresApproval", &manifest.approval, skills, findings) {
        skills[rule.0].requires_approval = Some(*rule.1);
    }
    for rule in known.resolved("stages", &manifest.stages, skills, findings) {
        skills[rule.0].stage = *rule.1;
    }
    for skill in &*skills {
        let Some(Placed { at, value: reviewed }) = &skill.reviews else { continue };
        if reviewed == skill.id.as_str() {
            findings.error(*at, "unknown-skill", format!("`{reviewed}` reviews itself"), "name the skill whose work it judges");
        } else if !known.has(reviewed) {
            known.report("reviews", reviewed, *at, findings);
        }
    }
}

/// The skills a rule may name: by id, in tables also by the name for people.
struct KnownSkills<'s> {
    listed: Vec<&'s str>,
    names: Vec<(String, SkillId)>,
}

impl KnownSkills<'_> {
    fn has(&self, id: &str) -> bool {
        self.listed.contains(&id) || self.names.iter().any(|(_, known)| known.as_str() == id)
    }

    /// Returns for each skill the rule that wins, as its index and the value; reports rules for nobody.
    fn resolved<'r, 'a, T>(
        &self,
        field: &str,
        rules: &'r [Rule<'a, T>],
        skills: &[ReadSkill<'a>],
        findings: &mut Findings<'a>,
    ) -> Vec<(usize, &'r T)> {
        let mut winners: Vec<(usize, Origin, &'r T)> = Vec::new();
        for Rule { skill: Placed { at, value: word }, value, from } in rules {
            let by_name = self.names.iter().find(|(name, _)| *from != Origin::FrontMatter && name == word);
            let id = by_name.map_or(word.as_str(), |(_, id)| id.as_str());
            if let Some(index) = skills.iter().position(|skill| skill.id.as_str() == id) {
                match winners.iter_mut().find(|(known, ..)| *known == index) {
                    Some(winner) if winner.1 <= *from => {}
                    Some(winner) => *winner = (index, *from, value),
                    None => winners.push((index, *from, value)),
                }
            } else if !self.has(id) {
                match from {
                    Origin::FrontMatter | Origin::Table => self.report(field, word, *at, findings),
                    Origin::Registry => {
                        let message = format!("the table lists `{word}`, and the pack has no such skill");
                        findings.warning(*at, "unknown-skill", message, "add it to `workers`, or drop the row");
                    }
                }
            }
        }
        winners.into_iter().map(|(index, _, value)| (index, value)).collect()
    }

    fn report<'a>(&self, field: &str, word: &str, at: Place<'a>, findings: &mut Findings<'a>) {
        let message = format!("`{field}` names `{word}`, and the pack has no such skill");
        let help = match fields::nearest(word, &self.listed) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write {}", fields::one_of(&self.listed.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>())),
        };
        findings.error(at, "unknown-skill", message, help);
    }
}

fn shared_context<'a>(files: &PackFiles, named: Option<&Placed<'a, String>>, findings: &mut Findings<'a>) -> String {
    let path = named.map_or(SHARED_CONTEXT, |named| named.value.trim_start_matches("./"));
    match (files.0.get(path), named) {
        (Some(text), _) => frontmatter::body(text, 0),
        (None, Some(named)) => {
            let help =
                format!("add the file to the pack's folder, or drop `sharedContext` (`{SHARED_CONTEXT}` is found by itself)");
            findings.error(named.at, "missing-shared-context", format!("there is no file `{path}`"), help);
            String::new()
        }
        (None, None) => String::new(),
    }
}

fn startup<'a>(manifest: &mut Manifest<'a>, findings: &mut Findings<'a>) -> Startup {
    let intake = std::mem::take(&mut manifest.intake);
    let has_fields = !intake.fields.is_empty();
    if let Some(Placed { at, value: true }) = manifest.asks_first
        && !has_fields
    {
        let help = "list fields under `必须收集` or `Required` in the section `## 启动询问` or `## Intake`, or write `startupMode: agent-first`";
        findings.warning(at, "intake-without-fields", "`startupMode: intake` asks for nothing, as the pack has no fields", help);
    }
    let asks_first = has_fields && manifest.asks_first.as_ref().is_none_or(|mode| mode.value);
    Startup { asks_first, prompt: intake.prompt, fields: intake.fields, target: intake.target.map(|target| target.value) }
}

fn default_run_skill_list() -> Tag {
    Tag::parse(RUN_SKILL_LIST).unwrap_or_else(|error| unreachable!("{error}"))
}
