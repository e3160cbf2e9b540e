//! A skill pack: what a session may do, as its author declared it.
//!
//! Everything here is already well-formed; [`read`](read()) makes it from files and says what is wrong with them.
//! A session keeps the exact pack it started with, named by the hash of its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::ids::{Hash, SkillId};
use crate::tag::{Pattern, RoleId, Tag};

mod bindings;
mod check;
mod fields;
mod findings;
mod frontmatter;
mod intake;
mod manifest;
mod markdown;
mod read;
pub mod reference;
mod segments;
mod skill;
mod yaml;

pub use read::read;

/// A pack's files by their path in the folder, with `/` between names.
///
/// Texts only: `orchestrator.md`, the shared context, `workers/<id>/SKILL.md`, `llm-bindings.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackFiles(pub BTreeMap<String, Arc<str>>);

impl PackFiles {
    /// Names the exact content: the hash of every path and text, in order.
    pub fn hash(&self) -> Hash {
        let lines: String = self.0.iter().map(|(path, text)| format!("{} {path}\n", Hash::of(text.as_bytes()))).collect();
        Hash::of(lines)
    }
}

/// A pack that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Pack {
    /// The hash of its files.
    pub hash: Hash,
    /// `name` of the manifest.
    pub name: String,
    /// `description` of the manifest.
    pub description: String,
    /// What kind of book comes of it.
    pub book_kind: BookKind,
    /// `version`, as written; empty where there is none.
    pub version: String,
    /// `tags` of the manifest: words to find the pack by.
    pub keywords: Vec<String>,
    /// The manifest's body, given to the main agent.
    pub manifest: String,
    /// The text all workers share; empty where there is none.
    pub shared_context: String,
    /// How a session starts.
    pub startup: Startup,
    /// Model rounds between two user actions, where the pack says.
    pub burst_max: Option<u32>,
    /// The skills, in the manifest's order.
    pub skills: Vec<Skill>,
    /// Tags that must be accepted before play, for a pack without a run-skill list.
    pub instance_ready: Vec<Tag>,
    /// The tag that holds the run-skill list.
    pub run_skill_list: Tag,
    /// Tags that hold tables.
    pub tables: Vec<Tag>,
    /// What is drawn at the start of each turn of play, in order.
    pub chance: Vec<Chance>,
    /// What the user may not read before it is revealed.
    pub hidden: Vec<Pattern>,
    /// Whether hidden items show by themselves when the session is done.
    pub reveal_when_done: bool,
    /// The `snapshot` rules as written, for books.
    pub snapshot: serde_json::Value,
    /// Which model profile serves whom.
    pub bindings: Bindings,
}

/// `novel` or `dialogue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BookKind {
    /// A text to be read.
    #[default]
    Novel,
    /// A play in turns.
    Dialogue,
}

/// How a session starts, and what it asks before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Startup {
    /// Whether fields are asked for first (`startupMode: intake`, and there are fields).
    pub asks_first: bool,
    /// The opening words; empty where the pack has none.
    pub prompt: String,
    /// The fields of the intake, in order.
    pub fields: Vec<IntakeField>,
    /// Where the answers go.
    pub target: Option<Tag>,
}

/// One field of the intake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntakeField {
    /// Its name on the wire: the label as a slug where that is possible, else `field-N`.
    pub id: String,
    /// Its name for a person.
    pub label: String,
    /// Whether the intake can be confirmed without it.
    pub required: bool,
}

/// One skill: a worker's declaration and its prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The folder's name.
    pub id: SkillId,
    /// Its name for a person.
    pub name: String,
    /// What it does, for the main agent.
    pub description: String,
    /// `version`, as written.
    pub version: String,
    /// The prompt.
    pub body: String,
    /// What it may read, in order.
    pub input_tags: Vec<Pattern>,
    /// What must be visible before it can run.
    pub required_tags: Vec<Pattern>,
    /// What it may write; never empty.
    pub output_tags: Vec<Pattern>,
    /// How a tag with several items is read where no segment says otherwise.
    pub input_merge: Merge,
    /// Whether `**` is meant.
    pub reads_all: bool,
    /// The blocks of its prompt; empty: one for each input pattern.
    pub segments: Vec<Segment>,
    /// What is kept from it whatever it declares.
    pub isolation: Option<Isolation>,
    /// Under blind review: what it may never see.
    pub blind: Vec<Pattern>,
    /// Named other sets of segments.
    pub variants: BTreeMap<String, Vec<Segment>>,
    /// Who accepts what it hands in.
    pub acceptance: Acceptance,
    /// Whether the user is asked before it runs.
    pub requires_approval: bool,
    /// Where it may run; none: in both.
    pub stage: Option<SkillStage>,
    /// The skill whose work it judges.
    pub reviews: Option<SkillId>,
    /// What must hold of what it hands in.
    pub checks: Vec<Check>,
    /// The model profile it asks for.
    pub profile: Option<String>,
}

/// One block of a worker's prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Unique in its skill.
    pub id: String,
    /// Whether it changes between runs.
    pub tier: Tier,
    /// What it shows; each is one of the skill's input patterns or narrower.
    pub tags: Vec<Pattern>,
    /// Its heading.
    pub label: String,
    /// How much of each tag.
    pub policy: Policy,
    /// Whether it may be left out for room.
    pub keep: Keep,
}

/// Whether a segment stands in the part of a prompt that stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The same from run to run, so it stands first.
    Static,
    /// Changes from run to run.
    Dynamic,
}

/// How much of a segment's text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The newest item of each tag, whole.
    Latest,
    /// All items of each tag, oldest first.
    Concat,
    /// The last lines.
    TailLines(u32),
    /// The last tokens.
    TailTokens(u32),
    /// The items of the last turns.
    LastTurns(u32),
}

/// Whether a segment may be left out when the budget is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Never.
    Always,
    /// Yes.
    Optional,
}

/// How several items of one tag are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// The newest.
    #[default]
    Latest,
    /// All, oldest first.
    Concat,
}

/// What is kept from a worker whatever it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Of all roles' tags only its own role's, without the user-only ones.
    RolePov,
    /// Nothing that `blind` names, nor its life-cycle siblings.
    BlindReview,
}

/// Who turns a draft into a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// The user.
    #[default]
    UserConfirmed,
    /// The pack, beforehand.
    NoConfirmation,
    /// The skill's checks.
    ProgrammaticReview,
}

/// In which stage a skill runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillStage {
    /// Makes the settings.
    Design,
    /// Runs turns.
    Play,
}

/// What must hold of each text a skill hands in, or of one tag's.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The tag it looks at; none: every text handed in.
    pub tag: Option<Pattern>,
    /// What must hold.
    pub rule: Rule,
}

/// One rule of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// More than white space.
    NonEmpty,
    /// At most so many grapheme clusters.
    MaxChars(u64),
    /// JSON that fits this schema.
    JsonSchema(serde_json::Value),
    /// Holds these words.
    Contains(String),
    /// Its first line is `verdict: pass` or `verdict: fail`, or it is JSON with that field.
    VerdictLine,
}

/// Names of model profiles: by skill and role, by skill, by role, and for the whole pack. Never keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bindings {
    /// For everybody else.
    pub default: Option<String>,
    /// By skill.
    pub workers: BTreeMap<SkillId, String>,
    /// By role.
    pub roles: BTreeMap<String, String>,
}

impl Pack {
    /// Finds a skill.
    pub fn skill(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id.as_str() == id)
    }

    /// Says whether a session with it begins in design: some skill is marked so.
    pub fn has_design(&self) -> bool {
        self.skills.iter().any(|skill| skill.stage == Some(SkillStage::Design))
    }

    /// Says whether the user may not read `tag` before it is revealed.
    pub fn hides(&self, tag: &Tag) -> bool {
        self.hidden.iter().any(|pattern| pattern.matches(tag))
    }

    /// Says whether `tag` holds a table.
    pub fn is_table(&self, tag: &Tag) -> bool {
        self.tables.contains(tag)
    }

    /// Returns the profile that serves a skill in a role: the skill's own word, then the role's, the worker's, the pack's.
    /// None: the session's.
    pub fn profile<'a>(&'a self, skill: &'a Skill, role: Option<&RoleId>) -> Option<&'a str> {
        let by_role = role.and_then(|role| self.bindings.roles.get(role.as_str()));
        (skill.profile.as_ref())
            .or(by_role)
            .or_else(|| self.bindings.workers.get(&skill.id))
            .or(self.bindings.default.as_ref())
            .map(String::as_str)
    }

    /// Returns every profile the pack names, in order, once.
    pub fn profiles(&self) -> Vec<&str> {
        let skills = self.skills.iter().filter_map(|skill| skill.profile.as_deref());
        let bindings = (self.bindings.default.iter()).chain(self.bindings.workers.values()).chain(self.bindings.roles.values());
        let names: std::collections::BTreeSet<&str> = skills.chain(bindings.map(String::as_str)).collect();
        names.into_iter().collect()
    }
}

impl Segment {
    /// Returns the segment that stands for an input pattern where a skill declares none.
    pub fn of_input(pattern: &Pattern, merge: Merge) -> Self {
        let policy = match merge {
            Merge::Latest => Policy::Latest,
            Merge::Concat => Policy::Concat,
        };
        let name = pattern.as_str().to_owned();
        Self { id: name.clone(), tier: Tier::Dynamic, tags: vec![pattern.clone()], label: name, policy, keep: Keep::Optional }
    }
}

impl Skill {
    /// Says whether a run needs a role: some output tag has a star to be bound.
    pub fn needs_role(&self) -> bool {
        self.output_tags.iter().any(|pattern| pattern.middle_stars() > 0)
    }

    /// Returns the output patterns of a run in this role.
    pub fn outputs_for(&self, role: Option<&RoleId>) -> Vec<Pattern> {
        let bind = |pattern: &Pattern| match role {
            Some(role) => pattern.bind(role),
            None => pattern.clone(),
        };
        self.output_tags.iter().map(bind).collect()
    }

    /// Returns the one tag a run in this role writes, where there is just one.
    pub fn only_output(&self, role: Option<&RoleId>) -> Option<Tag> {
        match self.outputs_for(role).as_slice() {
            [only] => only.as_tag(),
            _ => None,
        }
    }

    /// Says whether it runs in `stage`.
    pub fn runs_in(&self, stage: SkillStage) -> bool {
        self.stage.is_none_or(|own| own == stage)
    }

    /// Returns the segments of a variant, or the skill's own.
    pub fn segments_of(&self, variant: Option<&str>) -> &[Segment] {
        variant.and_then(|name| self.variants.get(name)).map_or(&self.segments, Vec::as_slice)
    }
}
