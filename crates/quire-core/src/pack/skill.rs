//! Reads a `SKILL.md`: what a worker may read and write, and its prompt.
//!
//! Our own fields stand at the top, or, in an Agent Skills folder, under `metadata` as `quire-*`; both are read by one path.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::fields::{self, Fields};
use super::findings::{Findings, Place, Placed};
use super::frontmatter::{self, Document};
use super::manifest;
use super::reference;
use super::segments::{self, ReadSegment, Variant};
use super::yaml::{Node, Value};
use super::{Acceptance, Check, Isolation, Merge, Rule, Skill, SkillStage};
use crate::ids::SkillId;
use crate::tag::Pattern;

/// What one `SKILL.md` says, and where.
pub(super) struct ReadSkill<'a> {
    pub file: &'a str,
    /// The folder's name.
    pub id: SkillId,
    pub name: String,
    pub description: String,
    pub version: String,
    pub body: String,
    pub inputs: Vec<Placed<'a, Pattern>>,
    pub required: Vec<Placed<'a, Pattern>>,
    pub outputs: Vec<Placed<'a, Pattern>>,
    pub input_merge: Merge,
    pub reads_all: bool,
    pub segments: Vec<ReadSegment<'a>>,
    pub variants: Vec<Variant<'a>>,
    pub isolation: Option<Isolation>,
    pub blind: Vec<Placed<'a, Pattern>>,
    pub acceptance: Option<Acceptance>,
    pub requires_approval: Option<bool>,
    pub stage: Option<SkillStage>,
    pub reviews: Option<Placed<'a, String>>,
    pub checks: Vec<(Place<'a>, Check)>,
    pub profile: Option<String>,
}

/// The rules that a check may hold.
const RULES: [&str; 5] = ["nonEmpty", "maxChars", "contains", "jsonSchema", "verdictLine"];
/// Our fields at the top of a `SKILL.md`; a file with none of them is an Agent Skill.
const OWN: [&str; 6] = ["id", "skill", "inputTags", "outputTags", "contextSegments", "acceptanceMode"];
/// Fields whose value in Agent Skills metadata may be one text with commas.
const LISTS: [&str; 4] = ["inputTags", "requiredTags", "outputTags", "blind"];
/// The fields of an Agent Skill that say nothing to us.
const FOREIGN: [&str; 3] = ["license", "compatibility", "allowed-tools"];

/// Reads the skill in `workers/<folder>/`, to the end.
pub(super) fn read<'a>(folder: &str, file: &'a str, text: &'a str, findings: &mut Findings<'a>) -> Option<ReadSkill<'a>> {
    let Document { mut fields, body_start } = frontmatter::read(&reference::SKILL, file, text, findings)?;
    let is_agent_skill = !OWN.iter().any(|name| fields.has(name));
    let version = lift_metadata(&mut fields, findings);
    FOREIGN.into_iter().for_each(|name| drop(fields.take(name)));

    let id = fields.text("id", findings);
    let skill = fields.text("skill", findings);
    let name = fields.text("name", findings);
    check_id(folder, id.as_ref(), name.as_ref().filter(|_| is_agent_skill), findings);
    let (isolation, blind) = isolation(&mut fields, findings);
    let read = ReadSkill {
        file,
        id: SkillId::new(folder),
        name: name.or(skill).map_or_else(|| folder.to_owned(), |name| name.value),
        description: fields
            .required_text("description", "add `description: …`: what it does, for the agent that picks the next skill", findings)
            .value,
        version: fields.as_written("version", findings).or(version).unwrap_or_default(),
        body: frontmatter::body(text, body_start),
        inputs: fields.patterns("inputTags", findings),
        required: fields.patterns("requiredTags", findings),
        outputs: outputs(&mut fields, is_agent_skill, findings),
        input_merge: merge(&mut fields, findings),
        reads_all: fields.flag("readsAll", findings).unwrap_or_default(),
        segments: fields.take("contextSegments").map_or_else(Vec::new, |node| segments::read("contextSegments", node, findings)),
        variants: segments::variants(fields.map("variants", findings), findings),
        isolation,
        blind,
        acceptance: fields.word("acceptanceMode", &manifest::ACCEPTANCE, findings).map(|mode| mode.value),
        requires_approval: fields.flag("requiresApproval", findings),
        stage: fields.take("stage").and_then(|node| manifest::stage("stage", &node, findings)).flatten(),
        reviews: fields.text("reviews", findings),
        checks: fields.take("checks").map_or_else(Vec::new, |node| checks(node, findings)),
        profile: fields.text("llmProfileId", findings).map(|profile| profile.value),
    };
    fields.finish(findings);
    Some(read)
}

impl ReadSkill<'_> {
    /// Returns what it shows where it declares no segments: one for each input pattern.
    pub fn implied_segments(&self) -> Vec<super::Segment> {
        self.inputs.iter().map(|pattern| super::Segment::of_input(&pattern.value, self.input_merge)).collect()
    }

    /// Makes the skill of it; what the manifest says of it has been put in before.
    pub fn into_skill(self) -> Skill {
        let values = |patterns: Vec<Placed<'_, Pattern>>| patterns.into_iter().map(|pattern| pattern.value).collect();
        let plain = |segments: Vec<ReadSegment<'_>>| segments.into_iter().map(|segment| segment.segment).collect();
        let variants = self.variants.into_iter().map(|variant| (variant.name.value, plain(variant.segments)));
        Skill {
            id: self.id,
            name: self.name,
            description: self.description,
            version: self.version,
            body: self.body,
            input_tags: values(self.inputs),
            required_tags: values(self.required),
            output_tags: values(self.outputs),
            input_merge: self.input_merge,
            reads_all: self.reads_all,
            variants: variants.collect::<BTreeMap<_, _>>(),
            segments: plain(self.segments),
            isolation: self.isolation,
            blind: values(self.blind),
            acceptance: self.acceptance.unwrap_or_default(),
            requires_approval: self.requires_approval.unwrap_or_default(),
            stage: self.stage,
            reviews: self.reviews.map(|reviewed| SkillId::new(reviewed.value)),
            checks: self.checks.into_iter().map(|(_, check)| check).collect(),
            profile: self.profile,
        }
    }
}

/// Moves `quire-*` from `metadata` to the top, and returns the version that stands there.
fn lift_metadata<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> Option<String> {
    let mut version = None;
    for (key, node) in fields.map("metadata", findings) {
        if let Some(name) = key.value.strip_prefix("quire-") {
            let node = unpacked(name, node);
            fields.add(name.to_owned(), key.at, node, findings);
        } else if key.value == "version" {
            version = node.as_written().map(str::to_owned);
        }
    }
    version
}

/// Agent Skills metadata maps words to texts, so a list or a map stands there as JSON, or a list with commas.
fn unpacked<'a>(name: &str, node: Node<'a>) -> Node<'a> {
    let Value::Text(text) = &node.value else { return node };
    let is_json = text.trim_start().starts_with(['[', '{']);
    if let (true, Ok(json)) = (is_json, serde_json::from_str::<Json>(text)) {
        return Node::of_json(node.at, json);
    }
    if LISTS.contains(&name) {
        let words = text.split([',', '，', '\n']).map(str::trim).filter(|word| !word.is_empty());
        let texts = words.map(|word| Node { at: node.at, value: Value::Text(word.to_owned()) }).collect();
        return Node { at: node.at, value: Value::List(texts) };
    }
    node
}

fn check_id<'a>(
    folder: &str,
    id: Option<&Placed<'a, String>>,
    agent_name: Option<&Placed<'a, String>>,
    findings: &mut Findings<'a>,
) {
    if let Some(id) = id.filter(|id| id.value != folder) {
        let message = format!("the id `{}` is not the folder's name `{folder}`", id.value);
        findings.error(id.at, "id-not-folder", message, format!("write `id: {folder}`, or rename the folder"));
    }
    if let (None, Some(name)) = (id, agent_name.filter(|name| name.value != folder)) {
        let message = format!("the name `{}` of an Agent Skill is not its folder's name `{folder}`", name.value);
        findings.warning(
            name.at,
            "name-not-folder",
            message,
            format!("write `name: {folder}`; until then it is known by its folder"),
        );
    }
}

fn outputs<'a>(fields: &mut Fields<'a>, is_agent_skill: bool, findings: &mut Findings<'a>) -> Vec<Placed<'a, Pattern>> {
    let is_there = fields.has("outputTags");
    let outputs = fields.patterns("outputTags", findings);
    if !is_there {
        let hint = if is_agent_skill {
            "add `quire-outputTags: \"chapter.draft\"` under `metadata`: the tags it may write"
        } else {
            "add `outputTags: [chapter.draft]`: the tags it may write"
        };
        fields.missing("outputTags", hint, findings);
    }
    for output in &outputs {
        let pattern = &output.value;
        let problem = if pattern.is_all() {
            "may not mean every tag: a worker writes what it names"
        } else if pattern.parts().next_back() == Some("*") {
            "may not end in a star: a worker writes what it names"
        } else if pattern.middle_stars() > 1 {
            "may have one star, which stands for the run's role"
        } else {
            continue;
        };
        let help = "write whole tags, with at most one `*` between parts, like `role.*.plan`";
        findings.error(output.at, "bad-output-tag", format!("the output tag `{pattern}` {problem}"), help);
    }
    outputs
}

fn merge<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> Merge {
    let merge = fields.word("inputMerge", &[("latest", Merge::Latest), ("concat", Merge::Concat)], findings);
    merge.map(|merge| merge.value).unwrap_or_default()
}

/// Reads the isolation and what it hides. A restriction without effect would look like one with, so it is an error.
fn isolation<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> (Option<Isolation>, Vec<Placed<'a, Pattern>>) {
    const ISOLATIONS: [(&str, Option<Isolation>); 3] =
        [("role_pov", Some(Isolation::RolePov)), ("blind_review", Some(Isolation::BlindReview)), ("none", None)];
    let isolation_at = fields.place_of("contextIsolation");
    let blind_at = fields.place_of("blind");
    let written = fields.word("contextIsolation", &ISOLATIONS, findings);
    if let (Some(at), None, true) = (isolation_at, &written, fields.was_empty("contextIsolation")) {
        let help = "write `role_pov`, `blind_review` or `none`";
        findings.error(at, "unknown-value", "`contextIsolation` is empty", help);
    }
    let isolation = written.and_then(|isolation| isolation.value);
    let blind = fields.patterns("blind", findings);
    match (isolation, blind_at) {
        (Some(Isolation::BlindReview), Some(_)) | (None | Some(Isolation::RolePov), None) => {}
        (Some(Isolation::BlindReview), None) => {
            let at = isolation_at.unwrap_or(fields.place());
            let help = "add `blind: [pattern]`: what the reviewer may never see";
            findings.warning(at, "blind-to-nothing", "`blind_review` hides no tag without `blind`", help);
        }
        (None | Some(Isolation::RolePov), Some(at)) => {
            let help = "add `contextIsolation: blind_review`, or drop `blind`";
            findings.error(at, "blind-without-isolation", "`blind` hides nothing without `contextIsolation: blind_review`", help);
        }
    }
    (isolation, blind)
}

/// Reads `checks`: a list of words and maps, or one map.
fn checks<'a>(node: Node<'a>, findings: &mut Findings<'a>) -> Vec<(Place<'a>, Check)> {
    match node.value {
        Value::List(entries) => entries.into_iter().flat_map(|entry| check(entry, findings)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) | Value::Map(_) => check(node, findings),
    }
}

fn check<'a>(node: Node<'a>, findings: &mut Findings<'a>) -> Vec<(Place<'a>, Check)> {
    const WORDS: [(&str, Rule); 2] = [("nonEmpty", Rule::NonEmpty), ("verdictLine", Rule::VerdictLine)];
    let at = node.at;
    if !matches!(node.value, Value::Map(_)) {
        let word = fields::word("checks", &node, &WORDS, findings);
        return word.map(|word| (at, Check { tag: None, rule: word.value })).into_iter().collect();
    }
    let Some(mut fields) = Fields::of(&reference::CHECK, node, findings) else { return Vec::new() };
    let tag = fields.text("tag", findings).and_then(|tag| fields::parsed(Pattern::parse, tag, findings));
    if !RULES.iter().any(|rule| fields.has(rule)) {
        fields.missing("rule", "write one of `nonEmpty`, `maxChars`, `contains`, `jsonSchema`, `verdictLine`", findings);
    }
    let mut rules = Vec::new();
    if fields.flag("nonEmpty", findings) == Some(true) {
        rules.push(Rule::NonEmpty);
    }
    if fields.flag("verdictLine", findings) == Some(true) {
        rules.push(Rule::VerdictLine);
    }
    rules.extend(fields.count("maxChars", findings).map(Rule::MaxChars));
    if let Some(node) = fields.take("contains") {
        let words = match node.value {
            Value::List(_) => fields::texts("contains", node, findings),
            Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) | Value::Map(_) => {
                fields::text("contains", node, findings).into_iter().collect()
            }
        };
        rules.extend(words.into_iter().map(|words| Rule::Contains(words.value)));
    }
    rules.extend(fields.take("jsonSchema").and_then(|node| schema(node, findings)).map(Rule::JsonSchema));
    fields.finish(findings);
    rules
        .into_iter()
        .map(|rule| (tag.as_ref().map_or(at, |tag| tag.at), Check { tag: tag.as_ref().map(|tag| tag.value.clone()), rule }))
        .collect()
}

fn schema<'a>(node: Node<'a>, findings: &mut Findings<'a>) -> Option<Json> {
    let json = match &node.value {
        Value::Text(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(..) | Value::List(_) | Value::Map(_) => Ok(node.to_json()),
    };
    let valid = json.and_then(|json| jsonschema::validator_for(&json).map(|_| json).map_err(|error| error.to_string()));
    match valid {
        Ok(json) => Some(json),
        Err(why) => {
            let help = "write a JSON Schema without references to other files, like `{type: object, required: [title]}`";
            findings.error(node.at, "bad-schema", format!("this is no JSON Schema: {why}"), help);
            None
        }
    }
}
