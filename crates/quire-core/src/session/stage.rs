//! From design to play: what must stand before the first turn, and what is pinned then.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::tools::{DeclareReady, Skipped};
use super::{Effect, Session, Stage, Waiting};
use crate::blackboard::{ItemState, Source};
use crate::context;
use crate::ids::{SkillId, Timestamp};
use crate::pack::{Pack, Skill, SkillStage};
use crate::reply;
use crate::tag::{Pattern, RoleId, Tag};

/// What was pinned when play began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Instance {
    /// The skills that run in play; none: all play skills.
    skills: Option<Vec<SkillId>>,
    variants: BTreeMap<SkillId, String>,
}

impl Instance {
    pub(super) fn lists(&self, skill: &SkillId) -> bool {
        self.skills.as_ref().is_none_or(|skills| skills.contains(skill))
    }

    pub(super) fn variant(&self, skill: &SkillId) -> Option<String> {
        self.variants.get(skill).cloned()
    }
}

/// A declaration that holds.
pub(super) struct Ready {
    instance: Instance,
    reason: String,
    skipped: Vec<(Tag, String)>,
}

/// The text of a run-skill list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunSkillList {
    run_skills: Vec<String>,
    #[serde(default)]
    context_profile: BTreeMap<String, Value>,
}

impl Session {
    /// Says whether play can begin, or what is missing.
    pub(super) fn check_ready(&self, declared: DeclareReady) -> Result<Ready, String> {
        if self.stage != Stage::Design {
            return Err("the session is in play already".to_owned());
        }
        let pack = self.pack.as_ref().expect("an agent has a pack");
        let mut missing = vec![];
        let skipped = read_skipped(pack, &declared.skipped, &mut missing);
        let instance = self.read_list(pack, &mut missing);
        let listed = |skill: &&Skill| skill.runs_in(SkillStage::Play) && instance.lists(&skill.id);
        for skill in pack.skills.iter().filter(listed) {
            for required in &skill.required_tags {
                let is_there = self.board.tags().any(|tag| required.matches(tag) && self.board.accepted(tag).is_some());
                let is_skipped = |writer: &Skill| declared.skipped.iter().any(|other| other.skill_id == writer.id.as_str());
                let mut writers = design_writers(pack, required);
                let Some(writer) = writers.next().filter(|writer| !is_there && !is_skipped(writer) && !writers.any(is_skipped))
                else {
                    continue;
                };
                missing.push(format!(
                    "`{}` needs `{required}`: accept it from `{1}`, or skip `{1}` with a reason",
                    skill.id, writer.id
                ));
            }
        }
        if missing.is_empty() {
            return Ok(Ready { instance, reason: declared.reason, skipped });
        }
        Err(format!("not ready yet: {}", missing.join("; ")))
    }

    /// Returns what a run needs and cannot read yet. What a skipped design skill would have made is not waited for.
    pub(super) fn required_missing(&self, skill: &Skill, role: Option<&RoleId>) -> Vec<Pattern> {
        let pack = self.pack.as_ref().expect("a skill has a pack");
        let mut missing = context::required_missing(skill, role, self.board.at(self.revision));
        let is_skipped = |skill: &Skill| skipped_tag(&skill.id).is_some_and(|tag| self.board.accepted(&tag).is_some());
        missing.retain(|required| !design_writers(pack, required).any(is_skipped));
        missing
    }

    fn read_list(&self, pack: &Pack, missing: &mut Vec<String>) -> Instance {
        let tag = &pack.run_skill_list;
        let with = |last: &str| Tag::parse(&format!("{tag}.{last}")).ok();
        let facts: Vec<Tag> = [Some(tag.clone()), with("确认稿"), with("confirmed")].into_iter().flatten().collect();
        let Some(item) = facts.iter().find_map(|tag| self.board.accepted(tag)) else {
            let drafts = [with("草稿"), with("draft")].into_iter().flatten();
            let names: Vec<Tag> = facts.iter().cloned().chain(drafts).collect();
            self.without_list(pack, &names, missing);
            return Instance::default();
        };
        let list = reply::find_json(&item.content).ok_or("it holds no JSON".to_owned());
        let list = list.and_then(|found| serde_json::from_value::<RunSkillList>(found.value).map_err(|error| error.to_string()));
        match list {
            Ok(list) => pin(pack, list, missing),
            Err(error) => {
                missing.push(format!("`{tag}` cannot be read: {error}; it holds {{\"runSkills\": [id], \"contextProfile\": {{id: {{\"variant\": name}}}}}}"));
                Instance::default()
            }
        }
    }

    /// Says what is missing where there is no list: the list, or the tags that stand for it in a pack without one.
    fn without_list(&self, pack: &Pack, names: &[Tag], missing: &mut Vec<String>) {
        let writes = |skill: &&Skill| skill.output_tags.iter().any(|output| names.iter().any(|name| output.matches(name)));
        match pack.skills.iter().find(writes) {
            Some(writer) => missing.push(format!("`{}` is not accepted; `{}` makes it", pack.run_skill_list, writer.id)),
            None => {
                let open = pack.instance_ready.iter().filter(|tag| self.board.accepted(tag).is_none());
                missing.extend(open.map(|tag| format!("`{tag}` is not accepted")));
            }
        }
    }

    /// Begins play.
    pub(super) fn instance_is_ready(&mut self, now: Timestamp, ready: Ready) -> Vec<Effect> {
        for (tag, reason) in ready.skipped {
            self.write(now, tag, reason.into(), Source::Runtime, ItemState::Accepted, &[]);
        }
        self.log(format!("agent: play begins: {}", super::agent::one_line(&ready.reason, 160)));
        self.instance = Some(ready.instance);
        self.stage = Stage::Play;
        self.wait(Waiting::Input { message: Some(ready.reason.into()), cause: None, card: None });
        vec![]
    }
}

/// The design skills that can write something of `required`, themselves or by promotion.
fn design_writers<'a>(pack: &'a Pack, required: &'a Pattern) -> impl Iterator<Item = &'a Skill> {
    let writes =
        |output: &Pattern| output.overlaps(required) || output.promotion().is_some_and(|promotion| promotion.overlaps(required));
    pack.skills.iter().filter(move |skill| skill.stage == Some(SkillStage::Design) && skill.output_tags.iter().any(writes))
}

/// The tag that says a design skill was skipped, and why.
fn skipped_tag(skill: &SkillId) -> Option<Tag> {
    Tag::parse(&format!("设计.跳过.{skill}")).ok()
}

fn read_skipped(pack: &Pack, skipped: &[Skipped], missing: &mut Vec<String>) -> Vec<(Tag, String)> {
    let mut tags = vec![];
    for Skipped { skill_id, reason } in skipped {
        match pack.skill(skill_id).and_then(|skill| skipped_tag(&skill.id)) {
            Some(tag) => tags.push((tag, reason.clone())),
            None => missing.push(format!("there is no skill `{skill_id}` to skip")),
        }
    }
    tags
}

fn pin(pack: &Pack, list: RunSkillList, missing: &mut Vec<String>) -> Instance {
    let mut instance = Instance { skills: Some(vec![]), variants: BTreeMap::new() };
    for id in &list.run_skills {
        match pack.skill(id) {
            Some(skill) if skill.runs_in(SkillStage::Play) => instance.skills.get_or_insert_default().push(skill.id.clone()),
            Some(skill) => missing.push(format!("`{}` is listed and does not run in play", skill.id)),
            None => missing.push(format!("`{id}` is listed and does not exist")),
        }
    }
    for (id, profile) in list.context_profile {
        let variant = profile.as_str().or_else(|| profile.get("variant").and_then(Value::as_str));
        match (pack.skill(&id), variant) {
            (Some(skill), Some(variant)) if skill.variants.contains_key(variant) => {
                instance.variants.insert(skill.id.clone(), variant.to_owned());
            }
            (Some(skill), Some(variant)) => {
                let names: Vec<&str> = skill.variants.keys().map(String::as_str).collect();
                missing.push(format!("`{id}` has no variant `{variant}`; it has: {}", names.join(", ")));
            }
            (Some(_), None) => missing.push(format!("the context profile of `{id}` names no variant")),
            (None, _) => missing.push(format!("the context profile names `{id}`, which does not exist")),
        }
    }
    instance
}
