//! Every field that a pack's files may hold, with a sentence on each.
//!
//! The readers take the fields of these tables and no others, and leave none of them out; so this is all that a pack can say.
//! The authors' reference is printed from here, and what is written into a pack by mistake is held against it.

use serde::Serialize;

/// A map that an author may write, and its fields.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FieldMap {
    /// What it is in a message: `a segment`.
    pub what: &'static str,
    /// Where it stands.
    pub place: &'static str,
    /// Its fields, the usual ones first.
    pub fields: &'static [Field],
}

/// One field of a map.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What may stand there, with all words that are allowed.
    pub value: &'static str,
    /// Whether the pack is refused without it.
    pub required: bool,
    /// Whether it keeps something from somebody: then a misspelt one is an error, as a slip of the pen must not lift it.
    pub restricts: bool,
    /// What it does, and what holds without it.
    pub about: &'static str,
}

impl FieldMap {
    /// Finds a field.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Every map, in the order of the files they stand in.
pub const MAPS: [&FieldMap; 10] = [&MANIFEST, &WORKER, &HIDDEN, &CHANCE, &SKILL, &SEGMENT, &VARIANT, &CHECK, &BINDINGS, &BINDING];

const fn may(name: &'static str, value: &'static str, about: &'static str) -> Field {
    Field { name, value, required: false, restricts: false, about }
}

const fn must(name: &'static str, value: &'static str, about: &'static str) -> Field {
    Field { name, value, required: true, restricts: false, about }
}

const fn limit(name: &'static str, value: &'static str, about: &'static str) -> Field {
    Field { name, value, required: false, restricts: true, about }
}

const WHO_ACCEPTS: &str = "`user_confirmed`, `no_confirmation` or `programmatic_review`";

/// The front matter of `orchestrator.md`.
pub const MANIFEST: FieldMap = FieldMap {
    what: "the front matter",
    place: "`orchestrator.md`, front matter",
    fields: &[
        must("name", "text", "The pack's name for people."),
        must("description", "text", "One sentence on what comes of it."),
        must("workers", "list of folders, or of maps (below)", "The skills of the pack: the folders under `workers/`."),
        may("category", "`novel` or `dialogue`", "The older name of `bookKind`."),
        may("bookKind", "`novel` or `dialogue`", "A text to be read, or a play in turns. `novel` where it is not said."),
        may("version", "text or number", "Told to people. Sessions know a pack by the hash of its files."),
        may("tags", "list of texts", "Words to find the pack by."),
        may(
            "sharedContext",
            "path in the pack",
            "The text that stands at the top of every worker's prompt; `shared-context.md` is found by itself.",
        ),
        may(
            "startupMode",
            "`intake` or `agent-first`",
            "Whether the fields of the section `## Intake` or `## 启动询问` are asked for first. `intake` where there are fields.",
        ),
        may(
            "maxBurst",
            "whole number from 1",
            "The main agent's rounds between two actions of the user; 12 where it is not said.",
        ),
        limit(
            "acceptance",
            "map from skill to `user_confirmed`, `no_confirmation` or `programmatic_review`",
            "Who accepts what a skill hands in. Wins over the table `## 验收策略` or `## Acceptance`, and that over `acceptanceMode`.",
        ),
        limit("requiresApproval", "map from skill to `true` or `false`", "Whether the user is asked before a skill runs."),
        limit(
            "stages",
            "map from skill to `design`, `play` or `both`",
            "In which stage a skill runs. A pack that marks a skill as design starts in design.",
        ),
        may("instanceReady", "list of tags", "What must be accepted before play, in a pack without a run-skill list."),
        may(
            "runSkillList",
            "tag",
            "Where the list of the skills for play is written; `设计.run_skill清单` where it is not said.",
        ),
        may("tables", "list of tags", "Tags that hold a table: workers hand in changes of cells, and the user may own a cell."),
        may("chance", "list of maps (below)", "What is drawn at the start of each turn of play."),
        limit(
            "hiddenFromUser",
            "list of patterns, or a map (below)",
            "What the user may not read, in any view, until it is revealed. Workers read it as they declare.",
        ),
        may(
            "revealAt",
            "`done` or `never`",
            "Whether hidden texts show by themselves when the session is done. `never` where it is not said.",
        ),
        may("snapshot", "map", "Which tags a saved setting keeps."),
    ],
};

/// An entry of `workers` that is a map.
pub const WORKER: FieldMap = FieldMap {
    what: "an entry of `workers`",
    place: "`orchestrator.md`, an entry of `workers` written as a map",
    fields: &[
        may("id", "text", "The folder under `workers/`. This or `path` must be there."),
        may("path", "text", "The same as a path: `workers/draft/SKILL.md`."),
    ],
};

/// `hiddenFromUser` as a map.
pub const HIDDEN: FieldMap = FieldMap {
    what: "`hiddenFromUser`",
    place: "`orchestrator.md`, `hiddenFromUser` written as a map",
    fields: &[
        may("patterns", "list of patterns", "What is hidden. This or `tags` must be there."),
        may("tags", "list of patterns", "The same."),
        may("revealAt", "`done` or `never`", "As the field beside `hiddenFromUser`, which wins."),
    ],
};

/// An entry of `chance`.
pub const CHANCE: FieldMap = FieldMap {
    what: "an entry of `chance`",
    place: "`orchestrator.md`, an entry of `chance`",
    fields: &[
        must("tag", "tag", "Where the outcome is written. A tag of its own, and no table."),
        may("draw", "dice as `4d20`, or `percent`", "What is thrown. Either this or `pick`."),
        may("pick", "list of texts", "What one is picked from, each as likely."),
    ],
};

/// The front matter of a `SKILL.md`.
pub const SKILL: FieldMap = FieldMap {
    what: "the front matter",
    place: "`workers/<id>/SKILL.md`, front matter",
    fields: &[
        may("id", "text", "The folder's name, once more."),
        may("skill", "text", "An older place for the name."),
        may("name", "text", "Its name for people; else the folder's."),
        must("description", "text", "What it does and when to use it: the main agent picks by this sentence."),
        must("outputTags", "list of patterns", "What it may write. Whole tags; one `*` between parts stands for the run's role."),
        may("inputTags", "list of patterns", "What it may read, in this order. What is not listed it never sees."),
        limit("requiredTags", "list of patterns", "What must be readable before it can run."),
        may(
            "contextSegments",
            "list of segments (below)",
            "The blocks of its prompt; without them one block for each of `inputTags`.",
        ),
        may(
            "inputMerge",
            "`latest` or `concat`",
            "Without segments: the newest item of a tag, or all of them. `latest` where it is not said.",
        ),
        may("readsAll", "`true` or `false`", "Says that `**` in `inputTags` is meant."),
        limit(
            "contextIsolation",
            "`role_pov`, `blind_review` or `none`",
            "`role_pov`: of the tags `角色.*` and `role.*` only those of the run's own role, without 思考, 推理 and thought. `blind_review`: nothing that `blind` names.",
        ),
        limit("blind", "list of patterns", "Under `blind_review`: what it never sees, nor its drafts and confirmed versions."),
        may(
            "variants",
            "map from name to segments, or to a map (below)",
            "Other sets of segments, one of which a session may choose.",
        ),
        limit(
            "acceptanceMode",
            WHO_ACCEPTS,
            "Who makes what it hands in a fact: the user, nobody, or `checks`. `user_confirmed` where it is not said.",
        ),
        limit("requiresApproval", "`true` or `false`", "Whether the user is asked before it runs."),
        limit("stage", "`design`, `play` or `both`", "In which stage it runs. `both` where it is not said."),
        limit("reviews", "skill", "The skill whose work it judges, with a verdict of pass or fail."),
        limit(
            "checks",
            "list of `nonEmpty`, `verdictLine` and maps (below), or one map",
            "What must hold of every text it hands in.",
        ),
        may("llmProfileId", "name of a model profile", "Which model works for it. Names only: keys never stand in a pack."),
        may("version", "text or number", "Told to people."),
        may(
            "metadata",
            "map",
            "In an Agent Skill: our fields stand here, as `quire-inputTags` and so on; lists as JSON, or with commas.",
        ),
        may("license", "text", "Of an Agent Skill; says nothing to us."),
        may("compatibility", "text", "Of an Agent Skill; says nothing to us."),
        may("allowed-tools", "text", "Of an Agent Skill; says nothing to us: a worker has `submit` and `ask_user`."),
    ],
};

/// A segment.
pub const SEGMENT: FieldMap = FieldMap {
    what: "a segment",
    place: "`SKILL.md`, an entry of `contextSegments`",
    fields: &[
        must("id", "text", "A short name, each once in its list."),
        must("tags", "list of patterns", "What it shows: patterns of `inputTags`, or narrower ones."),
        may(
            "tier",
            "`static` or `dynamic`",
            "Whether it stays the same from run to run; static ones stand first. `dynamic` where it is not said.",
        ),
        may("label", "text", "Its heading in the prompt; else its id."),
        limit(
            "policy",
            "`latest`, `concat`, `tail_lines_N`, `tail_tokens_N` or `last_turns_N`",
            "How much of each tag. `latest` where it is not said.",
        ),
        may(
            "keep",
            "`always` or `optional`",
            "Whether it may be left out when room is short. `always` for static ones, else `optional`.",
        ),
    ],
};

/// A variant that is a map.
pub const VARIANT: FieldMap = FieldMap {
    what: "a variant",
    place: "`SKILL.md`, an entry of `variants` written as a map",
    fields: &[must("contextSegments", "list of segments", "The segments in the place of the skill's own.")],
};

/// A check that is a map.
pub const CHECK: FieldMap = FieldMap {
    what: "a check",
    place: "`SKILL.md`, an entry of `checks` written as a map; at least one rule",
    fields: &[
        may("tag", "pattern", "Which of its texts are looked at; else all."),
        limit("nonEmpty", "`true` or `false`", "More than white space."),
        limit("maxChars", "whole number from 1", "At most so many characters, as a reader counts them."),
        limit("contains", "text, or list of texts", "These words stand in it."),
        limit("jsonSchema", "JSON Schema", "It is JSON that fits."),
        limit(
            "verdictLine",
            "`true` or `false`",
            "Its first line is `verdict: pass` or `verdict: fail`, or it is JSON with that field.",
        ),
    ],
};

/// `llm-bindings.yaml`.
pub const BINDINGS: FieldMap = FieldMap {
    what: "the file",
    place: "`llm-bindings.yaml`",
    fields: &[
        may("default", "name of a model profile, or a map (below)", "For everybody who is not named."),
        may("workers", "map from skill to the same", "By skill."),
        may("skills", "map from skill to the same", "The same."),
        may("roles", "map from role to the same", "By role; wins over the skill's line."),
    ],
};

/// A binding that is a map.
pub const BINDING: FieldMap = FieldMap {
    what: "a binding",
    place: "`llm-bindings.yaml`, an entry written as a map",
    fields: &[
        may("profile", "name of a model profile", "Which model works."),
        may("llmProfileId", "name of a model profile", "The same."),
    ],
};
