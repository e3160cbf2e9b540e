//! Reads `orchestrator.md`: what the pack is, which skills it has, and what holds for them.
//!
//! The tables of the body say less than the front matter and more than a `SKILL.md`; which word wins is decided in `read`.

use serde_json::Value as Json;

use super::fields::{self, Fields};
use super::findings::{Findings, Place, Placed};
use super::frontmatter::{self, Document};
use super::intake::{self, Intake};
use super::markdown::{self, Body, Table};
use super::reference;
use super::yaml::{Node, Value};
use super::{Acceptance, BookKind, SkillStage};
use crate::chance::{Chance, Draw};
use crate::tag::{Pattern, Tag};

/// The manifest's path in a pack.
pub(super) const MANIFEST: &str = "orchestrator.md";

/// What a manifest says, and where.
pub(super) struct Manifest<'a> {
    pub name: String,
    pub description: String,
    pub book_kind: BookKind,
    pub version: String,
    pub keywords: Vec<String>,
    pub body: String,
    /// The listed skills; none where the list cannot be read.
    pub workers: Option<Vec<Listed<'a>>>,
    /// Where the list stands, for what is missing in it.
    pub workers_at: Place<'a>,
    pub shared_context: Option<Placed<'a, String>>,
    pub asks_first: Option<Placed<'a, bool>>,
    pub intake: Intake<'a>,
    pub burst_max: Option<u32>,
    pub acceptance: Vec<Rule<'a, Acceptance>>,
    pub approval: Vec<Rule<'a, bool>>,
    pub stages: Vec<Rule<'a, Option<SkillStage>>>,
    pub instance_ready: Vec<Placed<'a, Tag>>,
    pub run_skill_list: Option<Tag>,
    pub tables: Vec<Tag>,
    pub chance: Vec<Placed<'a, Chance>>,
    pub hidden: Vec<Pattern>,
    pub reveal_when_done: bool,
    pub snapshot: Json,
}

/// One entry of `workers`.
pub(super) struct Listed<'a> {
    pub id: Placed<'a, String>,
    /// The folder, where the entry names one itself.
    pub folder: Option<String>,
}

/// What the manifest says of one skill.
pub(super) struct Rule<'a, T> {
    pub skill: Placed<'a, String>,
    pub value: T,
    pub from: Origin,
}

/// Where a rule stands; the front matter wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    FrontMatter,
    /// A table of acceptance, whose rows name skills.
    Table,
    /// A table that may list more than the pack has.
    Registry,
}

/// The words for who accepts.
pub(super) const ACCEPTANCE: [(&str, Acceptance); 3] = [
    ("user_confirmed", Acceptance::UserConfirmed),
    ("no_confirmation", Acceptance::NoConfirmation),
    ("programmatic_review", Acceptance::ProgrammaticReview),
];

/// Reads the manifest, to the end.
pub(super) fn read<'a>(text: &'a str, findings: &mut Findings<'a>) -> Option<Manifest<'a>> {
    let Document { mut fields, body_start } = frontmatter::read(&reference::MANIFEST, MANIFEST, text, findings)?;
    let body = Body::of(MANIFEST, text, body_start);
    let top = fields.place();

    let mut acceptance = skill_rules(fields.map("acceptance", findings), |node| {
        fields::word("acceptance", node, &ACCEPTANCE, findings).map(|word| word.value)
    });
    let mut approval =
        skill_rules(fields.map("requiresApproval", findings), |node| fields::flag("requiresApproval", node, findings));
    let mut stages = skill_rules(fields.map("stages", findings), |node| stage("stages", node, findings));
    read_tables(&body, &mut acceptance, &mut approval, &mut stages, findings);
    let (hidden, reveal_when_done) = hidden(&mut fields, findings);
    let tables: Vec<Tag> = fields.tags("tables", findings).into_iter().map(|tag| tag.value).collect();
    let chance = chance(&mut fields, &tables, findings);

    let manifest = Manifest {
        name: fields.required_text("name", "add `name: …`, the pack's name for people", findings).value,
        description: fields
            .required_text("description", "add `description: …`, one sentence on what comes of it", findings)
            .value,
        book_kind: book_kind(&mut fields, findings),
        version: fields.as_written("version", findings).unwrap_or_default(),
        keywords: fields.texts("tags", findings).into_iter().map(|word| word.value).collect(),
        body: frontmatter::body(text, body_start),
        workers_at: fields.place_of("workers").unwrap_or(top),
        workers: workers(&mut fields, findings),
        shared_context: fields.text("sharedContext", findings),
        asks_first: startup_mode(&mut fields, findings),
        intake: intake::read(&body, findings),
        burst_max: fields.count("maxBurst", findings).map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        acceptance,
        approval,
        stages,
        instance_ready: fields.tags("instanceReady", findings),
        run_skill_list: fields.tag("runSkillList", findings).map(|tag| tag.value),
        tables,
        chance,
        hidden,
        reveal_when_done,
        snapshot: fields.take("snapshot").map_or(Json::Null, |node| node.to_json()),
    };
    fields.finish(findings);
    Some(manifest)
}

/// Reads the word for a stage; the inner none is both stages.
pub(super) fn stage<'a>(name: &'static str, node: &Node<'a>, findings: &mut Findings<'a>) -> Option<Option<SkillStage>> {
    const STAGES: [(&str, Option<SkillStage>); 3] =
        [("design", Some(SkillStage::Design)), ("play", Some(SkillStage::Play)), ("both", None)];
    let (new_word, stage) = match node.as_written() {
        Some("instantiate") => ("design", SkillStage::Design),
        Some("run") => ("play", SkillStage::Play),
        Some(_) | None => return fields::word(name, node, &STAGES, findings).map(|word| word.value),
    };
    let message = format!("`{}` is an old word for a stage", node.as_written().unwrap_or_default());
    findings.warning(node.at, "retired-word", message, format!("write `{new_word}`"));
    Some(Some(stage))
}

fn skill_rules<'a, T>(
    entries: Vec<(Placed<'a, String>, Node<'a>)>,
    mut read: impl FnMut(&Node<'a>) -> Option<T>,
) -> Vec<Rule<'a, T>> {
    let rule =
        |(skill, node): (Placed<'a, String>, Node<'a>)| read(&node).map(|value| Rule { skill, value, from: Origin::FrontMatter });
    entries.into_iter().filter_map(rule).collect()
}

fn book_kind<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> BookKind {
    const KINDS: [(&str, BookKind); 2] = [("novel", BookKind::Novel), ("dialogue", BookKind::Dialogue)];
    let category = fields.word("category", &KINDS, findings);
    let book_kind = fields.word("bookKind", &KINDS, findings);
    book_kind.or(category).map(|kind| kind.value).unwrap_or_default()
}

fn startup_mode<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> Option<Placed<'a, bool>> {
    let node = fields.take("startupMode")?;
    let is_old_spelling = node.as_written() == Some("agent_first");
    let node = if is_old_spelling { Node { value: Value::Text("agent-first".to_owned()), ..node } } else { node };
    fields::word("startupMode", &node, &[("intake", true), ("agent-first", false)], findings)
}

fn workers<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> Option<Vec<Listed<'a>>> {
    const HINT: &str = "list the folders under `workers/`, each on its own line after `- `";
    let Some(node) = fields.take("workers") else {
        fields.missing("workers", HINT, findings);
        return None;
    };
    let at = node.at;
    if !matches!(node.value, Value::List(_)) {
        fields::list("workers", node, findings);
        return None;
    }
    let mut listed: Vec<Listed<'a>> = Vec::new();
    for node in fields::list("workers", node, findings) {
        let Some(entry) = listed_worker(node, findings) else { continue };
        if listed.iter().any(|known| known.id.value == entry.id.value) {
            let message = format!("`{}` is listed twice", entry.id.value);
            findings.error(entry.id.at, "duplicate-id", message, "keep one of the two; a skill has one folder and one id");
        } else {
            listed.push(entry);
        }
    }
    if listed.is_empty() {
        findings.error(at, "missing-field", "`workers` lists no skill", HINT);
    }
    Some(listed)
}

fn listed_worker<'a>(node: Node<'a>, findings: &mut Findings<'a>) -> Option<Listed<'a>> {
    let (id, path) = match node.value {
        Value::Map(_) => {
            let mut entry = Fields::of(&reference::WORKER, node, findings)?;
            let path = entry.text("path", findings);
            let id = entry.text("id", findings);
            if id.is_none() && path.is_none() {
                entry.missing("id", "write the folder's name: `- id: draft`", findings);
            }
            entry.finish(findings);
            (id, path)
        }
        Value::Text(ref text) if text.contains('/') => (None, fields::text("workers", node, findings)),
        Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) | Value::List(_) => {
            (fields::text("workers", node, findings), None)
        }
    };
    let folder = path.as_ref().map(|path| folder_of(&path.value));
    let id = id.or_else(|| path.map(|path| path.map(|path| folder_of(&path))))?;
    Some(Listed { id, folder })
}

/// Returns the folder's name in `./workers/draft/SKILL.md` and its like.
fn folder_of(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let path = path.strip_suffix("/SKILL.md").unwrap_or(path);
    path.strip_prefix("workers/").unwrap_or(path).to_owned()
}

fn hidden<'a>(fields: &mut Fields<'a>, findings: &mut Findings<'a>) -> (Vec<Pattern>, bool) {
    const REVEAL: [(&str, bool); 2] = [("done", true), ("never", false)];
    let mut patterns = Vec::new();
    let mut reveal = None;
    if let Some(node) = fields.take("hiddenFromUser") {
        if matches!(node.value, Value::Map(_)) {
            if let Some(mut hidden) = Fields::of(&reference::HIDDEN, node, findings) {
                patterns.extend(hidden.patterns("patterns", findings));
                patterns.extend(hidden.patterns("tags", findings));
                reveal = hidden.word("revealAt", &REVEAL, findings);
                if patterns.is_empty() {
                    hidden.missing("patterns", "write the patterns to hide, or drop `hiddenFromUser`", findings);
                }
                hidden.finish(findings);
            }
        } else {
            patterns = fields::patterns("hiddenFromUser", node, findings);
        }
    }
    let reveal = fields.word("revealAt", &REVEAL, findings).or(reveal);
    (patterns.into_iter().map(|pattern| pattern.value).collect(), reveal.is_some_and(|reveal| reveal.value))
}

fn chance<'a>(fields: &mut Fields<'a>, tables: &[Tag], findings: &mut Findings<'a>) -> Vec<Placed<'a, Chance>> {
    let mut chances: Vec<Placed<'a, Chance>> = Vec::new();
    let nodes = fields.take("chance").map_or_else(Vec::new, |node| fields::list("chance", node, findings));
    for node in nodes {
        let Some(Placed { at, value }) = one_chance(node, findings) else { continue };
        let tag = &value.tag;
        if chances.iter().any(|known| known.value.tag == *tag) {
            findings.error(at, "duplicate-id", format!("`{tag}` is drawn twice"), "give each draw a tag of its own");
        } else if tables.contains(tag) {
            let help = "draw into a tag of its own; a worker puts what it means into the table";
            findings.error(at, "chance-in-table", format!("`{tag}` is a table, and a draw writes a text"), help);
        } else {
            chances.push(Placed { at, value });
        }
    }
    chances
}

fn one_chance<'a>(node: Node<'a>, findings: &mut Findings<'a>) -> Option<Placed<'a, Chance>> {
    const HINT: &str = "write `draw: 4d20`, `draw: percent` or `pick: [sun, rain, fog]`";
    let mut fields = Fields::of(&reference::CHANCE, node, findings)?;
    let top = fields.place();
    let has_tag = fields.has("tag");
    let tag = fields.tag("tag", findings);
    if !has_tag {
        fields.missing("tag", "write `tag: play.dice.current`: where the outcome goes", findings);
    }
    let (has_draw, has_pick) = (fields.has("draw"), fields.has("pick"));
    let draw = fields.text("draw", findings);
    let options = fields.texts("pick", findings);
    let draw = match (has_draw, has_pick) {
        (true, false) => draw.and_then(|draw| match Draw::parse(&draw.value) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                let words = error.to_string();
                let (message, help) = words.split_once("; ").unwrap_or((&words, HINT));
                findings.error(draw.at, "bad-draw", message, help);
                None
            }
        }),
        (false, true) if options.is_empty() => {
            findings.error(top, "bad-draw", "`pick` has nothing to pick from", HINT);
            None
        }
        (false, true) => Some(Draw::Pick(options.into_iter().map(|option| option.value).collect())),
        (true, true) => {
            findings.error(top, "bad-draw", "an entry of `chance` has both `draw` and `pick`", "keep one of the two");
            None
        }
        (false, false) => {
            fields.missing("draw", HINT, findings);
            None
        }
    };
    fields.finish(findings);
    let tag = tag?;
    Some(Placed { at: tag.at, value: Chance { tag: tag.value, draw: draw? } })
}

fn read_tables<'a>(
    body: &Body<'a>,
    acceptance: &mut Vec<Rule<'a, Acceptance>>,
    approval: &mut Vec<Rule<'a, bool>>,
    stages: &mut Vec<Rule<'a, Option<SkillStage>>>,
    findings: &mut Findings<'a>,
) {
    let is_registry = |words: &str| {
        let first = intake::first_word(words).to_lowercase();
        words.contains("注册表") || first == "skills" || (first == "skill" && words.to_lowercase().contains("registry"))
    };
    let is_acceptance = |words: &str| words.contains("验收策略") || intake::first_word(words).eq_ignore_ascii_case("acceptance");
    let registries = body.sections(is_registry).into_iter().map(|section| (section, Origin::Registry));
    let policies = body.sections(is_acceptance).into_iter().map(|section| (section, Origin::Table));
    for (section, from) in policies.chain(registries) {
        for table in markdown::tables(body.file, section) {
            let skill = table.column(SKILL_COLUMN).unwrap_or(0);
            let columns = [table.column(ACCEPTANCE_COLUMN), table.column(APPROVAL_COLUMN), table.column(STAGE_COLUMN)];
            for row in &table.rows {
                let Some(skill) = row.get(skill).map(|cell| cell.clone().map(|words| markdown::plain(words).to_owned())) else {
                    continue;
                };
                let [mode, asks, stage] = columns.map(|column| column.and_then(|column| row.get(column)).and_then(value_of));
                if let Some(value) = mode.and_then(|cell| mode_of(cell, findings)) {
                    acceptance.push(Rule { skill: skill.clone(), value, from });
                }
                if let Some(value) = asks.and_then(|cell| approval_of(cell, findings)) {
                    approval.push(Rule { skill: skill.clone(), value, from });
                }
                if let Some(value) = stage.and_then(|cell| stage_of(cell, findings)) {
                    stages.push(Rule { skill, value, from });
                }
            }
        }
    }
}

// The words columns are known by, in lower case without spaces and marks.
const SKILL_COLUMN: &[&str] = &["skill", "skillid", "worker", "workerid", "id", "技能", "技能id", "执行单元"];
const ACCEPTANCE_COLUMN: &[&str] = &["acceptancemode", "acceptance", "mode", "验收模式", "验收策略", "验收方式", "验收"];
const APPROVAL_COLUMN: &[&str] =
    &["requiresapproval", "approval", "需要批准", "需批准", "需要审批", "执行前批准", "批准", "审批"];
const STAGE_COLUMN: &[&str] = &["stage", "阶段", "业务阶段", "所属阶段"];

impl Table<'_> {
    fn column(&self, names: &[&str]) -> Option<usize> {
        let plain = |words: &str| words.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
        self.header.iter().position(|cell| names.contains(&plain(cell.value).as_str()))
    }
}

type Cell<'a> = Placed<'a, &'a str>;

/// Returns a cell's own word, without marks and remarks; none where the cell is left open.
fn value_of<'a>(cell: &Cell<'a>) -> Option<Cell<'a>> {
    let words = cell.value.split(['(', '（', ',', '，', ';', '；', '。']).next().unwrap_or_default();
    let word = markdown::plain(words);
    let is_open = word.chars().all(|letter| matches!(letter, '-' | '—' | '–' | '/'));
    (!is_open).then_some(Placed { at: cell.at, value: word })
}

fn mode_of<'a>(cell: Cell<'a>, findings: &mut Findings<'a>) -> Option<Acceptance> {
    let node = Node { at: cell.at, value: Value::Text(cell.value.to_owned()) };
    fields::word("acceptanceMode", &node, &ACCEPTANCE, findings).map(|word| word.value)
}

fn approval_of<'a>(cell: Cell<'a>, findings: &mut Findings<'a>) -> Option<bool> {
    match cell.value.to_lowercase().as_str() {
        "是" | "需要" | "必须" | "yes" | "true" | "✅" | "✓" | "✔" | "✔️" => Some(true),
        "否" | "不需要" | "不" | "无" | "no" | "false" | "❌" | "✗" | "✘" | "✖" => Some(false),
        other => {
            findings.error(
                cell.at,
                "unknown-value",
                format!("`requiresApproval` cannot be `{other}`"),
                "write 是 or 否, yes or no",
            );
            None
        }
    }
}

/// Reads a stage from a table. Registries hold prose of all kinds, so a word that is no stage is told of and passed over.
fn stage_of<'a>(cell: Cell<'a>, findings: &mut Findings<'a>) -> Option<Option<SkillStage>> {
    match cell.value.to_lowercase().as_str() {
        "design" | "instantiate" | "设计" | "实例化" => Some(Some(SkillStage::Design)),
        "play" | "run" | "运行" | "游玩" => Some(Some(SkillStage::Play)),
        "both" | "两者" | "全部" | "通用" => Some(None),
        other => {
            let help = "write `design`, `play` or `both`; until then it runs in both";
            findings.warning(cell.at, "unknown-value", format!("`{other}` is no stage"), help);
            None
        }
    }
}
