//! What a pack may say, and what is found wrong in one.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use quire_core::diagnostic::{Diagnostic, Severity, Span};
use quire_core::pack::{self, Pack, PackFiles};

/// Reads a pack written as `== path` lines with each file's text below, and shows what was found in it.
#[track_caller]
fn check(files: &str, expected: Expect) {
    let files = pack_files(files);
    let (pack, diagnostics) = pack::read(&files);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    assert_eq!(pack.is_some(), errors == 0, "a pack is there exactly when there is no error");
    expected.assert_eq(&diagnostics.iter().map(|diagnostic| rendered(&files, diagnostic)).collect::<String>());
}

/// A pack with one skill, and these lines at the end of the manifest's front matter (from line 5).
#[track_caller]
fn check_manifest(lines: &str, expected: Expect) {
    let manifest = format!("---\nname: p\ndescription: d\nworkers: [draft]\n{lines}\n---\n");
    check(&format!("== orchestrator.md\n{manifest}== workers/draft/SKILL.md\n{DRAFT}"), expected);
}

/// A pack with one skill, and these lines at the end of the skill's front matter (from line 5).
#[track_caller]
fn check_skill(lines: &str, expected: Expect) {
    let skill = format!("---\nid: draft\ndescription: Writes.\noutputTags: [chapter.draft]\n{lines}\n---\nWrite.\n");
    check(&format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{skill}"), expected);
}

/// A pack with one skill, and this text after the manifest's front matter (from line 6).
#[track_caller]
fn check_body(body: &str, expected: Expect) {
    check(&format!("== orchestrator.md\n{MANIFEST}{body}\n== workers/draft/SKILL.md\n{DRAFT}"), expected);
}

const MANIFEST: &str = "---\nname: p\ndescription: d\nworkers: [draft]\n---\n";
const DRAFT: &str = "---\nid: draft\ndescription: Writes.\noutputTags: [chapter.draft]\n---\nWrite.\n";

fn pack_files(text: &str) -> PackFiles {
    let files = text.split("== ").skip(1).filter_map(|file| file.split_once('\n'));
    PackFiles(files.map(|(path, text)| (path.trim().to_owned(), Arc::from(text))).collect())
}

fn rendered(files: &PackFiles, diagnostic: &Diagnostic) -> String {
    let text = files.0.get(&diagnostic.file).map_or("", |text| text);
    let Span { start, end, .. } = diagnostic.span;
    let marked = text.get(start..end).expect("a span stands on character borders of its file");
    format!("{diagnostic} [{}]\n  at: {marked:?}\n  help: {}\n", diagnostic.code, diagnostic.help)
}

fn read(files: &str) -> Pack {
    let files = pack_files(files);
    let (pack, diagnostics) = pack::read(&files);
    assert_eq!(diagnostics, [], "nothing is wrong with it");
    pack.expect("without errors there is a pack")
}

#[test]
fn a_whole_pack_is_read() {
    let pack = read(include_str!("packs/whole.txt"));
    expect_test::expect_file!["packs/whole.expected.txt"].assert_eq(&summary(&pack));
}

#[test]
fn a_pack_of_the_first_format_is_read() {
    let files =
        include_str!("packs/old.txt").replace('\n', "\r\n").replace("== orchestrator.md\r\n", "== orchestrator.md\r\n\u{feff}");
    let files = pack_files(&files);
    let (pack, diagnostics) = pack::read(&files);
    let found: String = diagnostics.iter().map(|diagnostic| rendered(&files, diagnostic)).collect();
    expect![[r#""#]].assert_eq(&found);
    let pack = pack.expect("warnings do not stop a pack");
    expect_test::expect_file!["packs/old.expected.txt"].assert_eq(&summary(&pack));
}

#[test]
fn agent_skills_folders_are_skills() {
    let pack = read(include_str!("packs/agent-skills.txt"));
    expect_test::expect_file!["packs/agent-skills.expected.txt"].assert_eq(&summary(&pack));
}

fn summary(pack: &Pack) -> String {
    let mut text = String::new();
    let pack = Pack { hash: quire_core::ids::Hash::new("(hash)"), ..pack.clone() };
    let skills = pack.skills.clone();
    writeln!(text, "{:#?}", Pack { skills: Vec::new(), ..pack }).expect("strings take everything");
    for skill in skills {
        writeln!(text, "{skill:#?}").expect("strings take everything");
    }
    text
}

// What stops a pack.

#[test]
fn a_folder_without_a_manifest() {
    check(
        "== notes.txt\nhello\n",
        expect![[r#"
        orchestrator.md:1:1: error: there is no `orchestrator.md` [no-manifest]
          at: ""
          help: a pack is a folder with `orchestrator.md`; `quire pack new` makes one
    "#]],
    );
    check(
        "== SKILL.md\n---\nname: x\ndescription: y\n---\n",
        expect![[r#"
        orchestrator.md:1:1: error: there is no `orchestrator.md` [no-manifest]
          at: ""
          help: this is a single skill: put its folder under `workers/`, and write an `orchestrator.md` that lists it (`quire pack new` makes one)
    "#]],
    );
    check(
        "== inner/orchestrator.md\n---\nname: x\n---\n",
        expect![[r#"
        orchestrator.md:1:1: error: there is no `orchestrator.md` [no-manifest]
          at: ""
          help: open the folder `inner`: the pack lies there
    "#]],
    );
}

#[test]
fn a_manifest_without_front_matter() {
    check(
        "== orchestrator.md\n# A pack\n",
        expect![[r#"
        orchestrator.md:1:1: error: the file has no front matter [no-front-matter]
          at: ""
          help: begin the file with a line `---`, the fields (`name: …`), and another line `---`
    "#]],
    );
    check(
        "== orchestrator.md\n\n--- \nname: p\n",
        expect![[r#"
        orchestrator.md:2:1: error: the front matter is never closed [open-front-matter]
          at: "---"
          help: write a line `---` after the last field
    "#]],
    );
    check(
        "== orchestrator.md\n---\n---\n",
        expect![[r#"
        orchestrator.md:1:1: error: the front matter has no `name` [missing-field]
          at: "---"
          help: add `name: …`, the pack's name for people
        orchestrator.md:1:1: error: the front matter has no `description` [missing-field]
          at: "---"
          help: add `description: …`, one sentence on what comes of it
        orchestrator.md:1:1: error: the front matter has no `workers` [missing-field]
          at: "---"
          help: list the folders under `workers/`, each on its own line after `- `
    "#]],
    );
    check(
        "== orchestrator.md\n---\n- a\n---\n",
        expect![[r#"
        orchestrator.md:2:1: error: the front matter is a map of fields, not a list [wrong-type]
          at: ""
          help: write `field: value` lines
    "#]],
    );
}

#[test]
fn every_file_is_read_although_the_manifest_is_broken() {
    check(
        "== orchestrator.md\n---\nname: [\n---\n== workers/a/SKILL.md\n---\nid: b\n---\n",
        expect![[r#"
        orchestrator.md:2:7: error: this is not YAML: unclosed bracket '[' [bad-yaml]
          at: "["
          help: mend the line; put a text that begins with one of * & ! % @ ` [ { in quotes
        workers/a/SKILL.md:1:1: error: the front matter has no `description` [missing-field]
          at: "---"
          help: add `description: …`: what it does, for the agent that picks the next skill
        workers/a/SKILL.md:1:1: error: the front matter has no `outputTags` [missing-field]
          at: "---"
          help: add `outputTags: [chapter.draft]`: the tags it may write
        workers/a/SKILL.md:2:5: error: the id `b` is not the folder's name `a` [id-not-folder]
          at: "b"
          help: write `id: a`, or rename the folder
    "#]],
    );
}

#[test]
fn yaml_that_is_none() {
    check_manifest(
        "tags: a: b",
        expect![[r#"
        orchestrator.md:5:8: error: this is not YAML: mapping values are not allowed in this context [bad-yaml]
          at: ":"
          help: put a text that holds `: ` in quotes, or write it under `>`; check that keys of one level begin in one column
    "#]],
    );
    check_manifest(
        "# 说明：这里\ncategory: '小说",
        expect![[r#"
        orchestrator.md:6:11: error: this is not YAML: unclosed quote [bad-yaml]
          at: "'"
          help: close the quote, or drop it
    "#]],
    );
    check_manifest(
        "tables: [*.表]",
        expect![[r#"
        orchestrator.md:5:10: error: this is not YAML: alias references unknown anchor [bad-yaml]
          at: "*"
          help: put a text that begins with `*` in quotes, like "*.plan"
    "#]],
    );
    check_manifest(
        "maxBurst: 3\nmaxBurst: 4",
        expect![[r#"
        orchestrator.md:6:1: error: `maxBurst` is written twice in the front matter [duplicate-key]
          at: "maxBurst"
          help: keep one of the two
    "#]],
    );
    check_skill(
        "description: Writes. Note: unquoted",
        expect![[r#"
        workers/draft/SKILL.md:5:26: error: this is not YAML: mapping values are not allowed in this context [bad-yaml]
          at: ":"
          help: put a text that holds `: ` in quotes, or write it under `>`; check that keys of one level begin in one column
    "#]],
    );
}

#[test]
fn a_bomb_of_aliases_is_stopped() {
    let bomb = (1..12).fold("snapshot:\n  a0: &a0 [x, x]".to_owned(), |text, level| {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("{text}\n  a{level}: &a{level} [{below}]")
    });
    check_manifest(
        &bomb,
        expect![[r#"
            orchestrator.md:10:47: error: this YAML is larger, deeper or more repeated than a pack needs [bad-yaml]
              at: "*a3"
              help: write out what is meant, without aliases of aliases
        "#]],
    );
}

#[test]
fn fields_that_are_missing() {
    check(
        "== orchestrator.md\n---\nversion: 1\n---\n",
        expect![[r#"
        orchestrator.md:1:1: error: the front matter has no `name` [missing-field]
          at: "---"
          help: add `name: …`, the pack's name for people
        orchestrator.md:1:1: error: the front matter has no `description` [missing-field]
          at: "---"
          help: add `description: …`, one sentence on what comes of it
        orchestrator.md:1:1: error: the front matter has no `workers` [missing-field]
          at: "---"
          help: list the folders under `workers/`, each on its own line after `- `
    "#]],
    );
    check(
        "== orchestrator.md\n---\nname: p\ndescription:\nworkers: []\n---\n",
        expect![[r#"
        orchestrator.md:1:1: error: the front matter has no `description` [missing-field]
          at: "---"
          help: add `description: …`, one sentence on what comes of it
        orchestrator.md:4:10: error: `workers` lists no skill [missing-field]
          at: "["
          help: list the folders under `workers/`, each on its own line after `- `
    "#]],
    );
    check(
        &format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n---\nid: draft\n---\n"),
        expect![[r#"
        workers/draft/SKILL.md:1:1: error: the front matter has no `description` [missing-field]
          at: "---"
          help: add `description: …`: what it does, for the agent that picks the next skill
        workers/draft/SKILL.md:1:1: error: the front matter has no `outputTags` [missing-field]
          at: "---"
          help: add `outputTags: [chapter.draft]`: the tags it may write
    "#]],
    );
    check_skill(
        "contextSegments:\n  - label: L",
        expect![[r#"
        workers/draft/SKILL.md:6:5: error: a segment has no `id` [missing-field]
          at: "label"
          help: add `id: …`, a short name of its own
        workers/draft/SKILL.md:6:5: error: a segment has no `tags` [missing-field]
          at: "label"
          help: add `tags: [pattern]`: what it shows, out of the skill's inputTags
    "#]],
    );
}

#[test]
fn values_of_a_wrong_type() {
    check_manifest(
        "tables: 设定.表\nmaxBurst: '12'\nstages: design\nsharedContext: 3",
        expect![[r#"
        orchestrator.md:5:9: error: `tables` is a list, not `设定.表` [wrong-type]
          at: "设定.表"
          help: write each entry on its own line after `- `, or all of them as [a, b]
        orchestrator.md:6:11: error: `maxBurst` is a whole number from 1, not `12` [wrong-type]
          at: "'12'"
          help: write digits, without quotes
        orchestrator.md:7:9: error: `stages` is a map, not `design` [wrong-type]
          at: "design"
          help: write `name: value` lines below it
        orchestrator.md:8:16: error: `sharedContext` is a text, not `3` [wrong-type]
          at: "3"
          help: put it in quotes: "3"
    "#]],
    );
    check_manifest(
        "maxBurst: 0\nacceptance: {draft: never}\nrequiresApproval: {draft: perhaps}\ncategory: 诗",
        expect![[r#"
        orchestrator.md:5:11: error: `maxBurst` is a whole number from 1, not `0` [wrong-type]
          at: "0"
          help: write digits, without quotes
        orchestrator.md:6:21: error: `acceptance` cannot be `never` [unknown-value]
          at: "never"
          help: write `user_confirmed`, `no_confirmation` or `programmatic_review`
        orchestrator.md:7:27: error: `requiresApproval` is `true` or `false`, not `perhaps` [wrong-type]
          at: "perhaps"
          help: write one of the two
        orchestrator.md:8:11: error: `category` cannot be `诗` [unknown-value]
          at: "诗"
          help: write `novel` or `dialogue`
    "#]],
    );
    check_skill(
        "readsAll: maybe\ninputTags: 用户.需求\nllmProfileId: [a]\ncontextIsolation: role",
        expect![[r#"
        workers/draft/SKILL.md:5:11: error: `readsAll` is `true` or `false`, not `maybe` [wrong-type]
          at: "maybe"
          help: write one of the two
        workers/draft/SKILL.md:6:12: error: `inputTags` is a list, not `用户.需求` [wrong-type]
          at: "用户.需求"
          help: write each entry on its own line after `- `, or all of them as [a, b]
        workers/draft/SKILL.md:7:15: error: `llmProfileId` is a text, not a list [wrong-type]
          at: "["
          help: write one text; put it in quotes where it holds `: ` or begins with a mark
        workers/draft/SKILL.md:8:19: error: `contextIsolation` cannot be `role` [unknown-value]
          at: "role"
          help: write `role_pov`, `blind_review` or `none`
    "#]],
    );
    check_skill(
        "contextIsolation:\ninputMerge: newest\nacceptanceMode: me",
        expect![[r#"
        workers/draft/SKILL.md:5:1: error: `contextIsolation` is empty [unknown-value]
          at: "contextIsolation"
          help: write `role_pov`, `blind_review` or `none`
        workers/draft/SKILL.md:6:13: error: `inputMerge` cannot be `newest` [unknown-value]
          at: "newest"
          help: write `latest` or `concat`
        workers/draft/SKILL.md:7:17: error: `acceptanceMode` cannot be `me` [unknown-value]
          at: "me"
          help: write `user_confirmed`, `no_confirmation` or `programmatic_review`
    "#]],
    );
}

#[test]
fn workers_and_their_folders() {
    let manifest = "---\nname: p\ndescription: d\nworkers: [draft, Review, draft, a.b, 12]\n---\n";
    let review = DRAFT.replace("draft", "review");
    check(
        &format!(
            "== orchestrator.md\n{manifest}== workers/draft/SKILL.md\n{DRAFT}== workers/spare/SKILL.md\n{DRAFT}== workers/review/SKILL.md\n{review}"
        ),
        expect![[r#"
            orchestrator.md:4:1: warning: the folder `workers/review` is not listed, so its skill does not exist here [unlisted-worker]
              at: "workers"
              help: add `- review` to `workers`, or remove the folder
            orchestrator.md:4:1: warning: the folder `workers/spare` is not listed, so its skill does not exist here [unlisted-worker]
              at: "workers"
              help: add `- spare` to `workers`, or remove the folder
            orchestrator.md:4:18: error: there is no `workers/Review/SKILL.md` [missing-worker]
              at: "Review"
              help: the folder is named `review`; write it the same
            orchestrator.md:4:26: error: `draft` is listed twice [duplicate-id]
              at: "draft"
              help: keep one of the two; a skill has one folder and one id
            orchestrator.md:4:33: error: `a.b` cannot be a skill's id [bad-skill-id]
              at: "a.b"
              help: name the folder in one word of letters, digits, `-` and `_`: the id becomes a part of a tag
            orchestrator.md:4:33: error: there is no `workers/a.b/SKILL.md` [missing-worker]
              at: "a.b"
              help: add `workers/a.b/SKILL.md`, or take `a.b` off the list
            orchestrator.md:4:38: error: `workers` is a text, not `12` [wrong-type]
              at: "12"
              help: put it in quotes: "12"
        "#]],
    );
    let manifest = "---\nname: p\ndescription: d\nworkers: [draft]\n---\n";
    check(
        &format!("== orchestrator.md\n{manifest}== workers/draft/SKILL.md\n{}", DRAFT.replace("id: draft", "id: drafts")),
        expect![[r#"
            workers/draft/SKILL.md:2:5: error: the id `drafts` is not the folder's name `draft` [id-not-folder]
              at: "drafts"
              help: write `id: draft`, or rename the folder
        "#]],
    );
    check(
        &format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\nWrite.\n"),
        expect![[r#"
        workers/draft/SKILL.md:1:1: error: the file has no front matter [no-front-matter]
          at: ""
          help: begin the file with a line `---`, the fields (`name: …`), and another line `---`
    "#]],
    );
}

#[test]
fn tags_and_patterns_that_are_none() {
    check_manifest(
        "tables: [设定..表, '设定.*']\nhiddenFromUser: ['a*', '*']\ninstanceReady: [' a. b']\nrunSkillList: a.",
        expect![[r#"
            orchestrator.md:5:10: error: `设定..表` has an empty part [bad-tag]
              at: "设定..表"
              help: write parts joined by single dots, like `chapter.draft`
            orchestrator.md:5:17: error: `设定.*` holds `*` [bad-tag]
              at: "'设定.*'"
              help: a tag names one text, only patterns have stars
            orchestrator.md:6:18: error: `a*` has a star that is not a whole part among others [bad-tag]
              at: "'a*'"
              help: write `role.*.plan` or `outline.*`, or `**` alone for all tags
            orchestrator.md:6:24: error: `*` has a star that is not a whole part among others [bad-tag]
              at: "'*'"
              help: write `role.*.plan` or `outline.*`, or `**` alone for all tags
            orchestrator.md:7:17: error: `a. b` holds a line break, an invisible character or a space at the edge of a part [bad-tag]
              at: "' a. b'"
              help: take it out
            orchestrator.md:8:15: error: `a.` has an empty part [bad-tag]
              at: "a."
              help: write parts joined by single dots, like `chapter.draft`
        "#]],
    );
}

#[test]
fn output_tags_with_wrong_stars() {
    let skill = "---\ndescription: d\noutputTags: ['**', 'a.*', 'a.*.b.*.c', 'a.*.b']\n---\n";
    check(
        &format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{skill}"),
        expect![[r#"
            workers/draft/SKILL.md:3:14: error: the output tag `**` may not mean every tag: a worker writes what it names [bad-output-tag]
              at: "'**'"
              help: write whole tags, with at most one `*` between parts, like `role.*.plan`
            workers/draft/SKILL.md:3:20: error: the output tag `a.*` may not end in a star: a worker writes what it names [bad-output-tag]
              at: "'a.*'"
              help: write whole tags, with at most one `*` between parts, like `role.*.plan`
            workers/draft/SKILL.md:3:27: error: the output tag `a.*.b.*.c` may have one star, which stands for the run's role [bad-output-tag]
              at: "'a.*.b.*.c'"
              help: write whole tags, with at most one `*` between parts, like `role.*.plan`
        "#]],
    );
}

#[test]
fn segments_keep_to_the_inputs() {
    check_skill(
        "inputTags: [用户.*, 用户.需求]\ncontextSegments:\n  - {id: a, tags: [用户.需求, 大纲.草稿]}\n  - {id: a, tags: ['用户.*'], policy: tail_lines_0}",
        expect![[r#"
            workers/draft/SKILL.md:7:27: error: the segment `a` shows `大纲.草稿`, which is not within inputTags [segment-not-input]
              at: "大纲.草稿"
              help: add `大纲.草稿` to inputTags, or show only what stands there
            workers/draft/SKILL.md:8:10: error: two segments have the id `a` [duplicate-id]
              at: "a"
              help: give each segment of a list its own id
            workers/draft/SKILL.md:8:37: error: `policy` cannot be `tail_lines_0` [unknown-value]
              at: "tail_lines_0"
              help: write `latest`, `concat`, `tail_lines_40`, `tail_tokens_2000` or `last_turns_3`
        "#]],
    );
}

#[test]
fn segments_may_not_name_what_is_isolated() {
    check_skill(
        "inputTags: ['用户.*']\ncontextIsolation: role_pov\ncontextSegments: [{id: a, tags: ['用户.思考']}]",
        expect![[""]],
    );
    check_skill(
        "inputTags: ['角色.*.思考', '角色.*']\ncontextIsolation: role_pov\ncontextSegments: [{id: a, tags: ['角色.*.思考', '角色.*']}]",
        expect![[r#"
            workers/draft/SKILL.md:5:13: warning: `draft` reads `角色.*.思考`, which no skill writes [never-written]
              at: "'角色.*.思考'"
              help: add it to the outputTags of the skill that makes it, or drop it
            workers/draft/SKILL.md:5:24: warning: `draft` reads `角色.*`, which no skill writes [never-written]
              at: "'角色.*'"
              help: add it to the outputTags of the skill that makes it, or drop it
            workers/draft/SKILL.md:7:34: error: the segment `a` shows `角色.*.思考`, but `role_pov` keeps `思考` from every worker [segment-isolated]
              at: "'角色.*.思考'"
              help: drop the tag from the segment, or change the isolation
        "#]],
    );
    check_skill(
        "inputTags: ['chapter.*']\ncontextIsolation: blind_review\nblind: [chapter.draft]\ncontextSegments: [{id: a, tags: [chapter.confirmed, 'chapter.*']}]",
        expect![[r#"
            workers/draft/SKILL.md:8:34: error: the segment `a` shows `chapter.confirmed`, but `blind` hides `chapter.draft` and its life-cycle siblings [segment-isolated]
              at: "chapter.confirmed"
              help: drop the tag from the segment, or change the isolation
        "#]],
    );
    check_skill(
        "inputTags: [chapter.confirmed]\ncontextIsolation: blind_review\nblind: [chapter.draft]",
        expect![[r#"
        workers/draft/SKILL.md:5:13: warning: `chapter.confirmed` can never be read here: `blind` hides `chapter.draft` and its life-cycle siblings [input-isolated]
          at: "chapter.confirmed"
          help: drop it, or change the isolation
    "#]],
    );
}

#[test]
fn an_isolation_without_effect() {
    check_skill(
        "blind: [chapter.draft]",
        expect![[r#"
        workers/draft/SKILL.md:5:1: error: `blind` hides nothing without `contextIsolation: blind_review` [blind-without-isolation]
          at: "blind"
          help: add `contextIsolation: blind_review`, or drop `blind`
    "#]],
    );
    check_skill(
        "contextIsolation: blind_review",
        expect![[r#"
        workers/draft/SKILL.md:5:1: warning: `blind_review` hides no tag without `blind` [blind-to-nothing]
          at: "contextIsolation"
          help: add `blind: [pattern]`: what the reviewer may never see
    "#]],
    );
}

#[test]
fn a_variant_must_change_the_prompt() {
    check_skill(
        "inputTags: [用户.需求]\nvariants:\n  same:\n    - {id: other, tags: [用户.需求], label: 用户.需求}\n  empty: []\n  short: {contextSegments: [{id: a, tags: [用户.需求], policy: tail_tokens_20}]}",
        expect![[r#"
            workers/draft/SKILL.md:7:3: error: the variant `same` shows the same as the skill itself [variant-same]
              at: "same"
              help: change a segment's tags, label, policy or place, or drop the variant
            workers/draft/SKILL.md:9:3: error: the variant `empty` shows the same as the skill itself [variant-same]
              at: "empty"
              help: change a segment's tags, label, policy or place, or drop the variant
        "#]],
    );
}

#[test]
fn checks_that_cannot_be_made() {
    check_skill(
        "checks:\n  - nonempty\n  - {maxChars: -1}\n  - {jsonSchema: {type: 3}}\n  - {jsonSchema: {$ref: 'https://example.org/s.json'}}\n  - {tag: outline.draft, nonEmpty: true}\n  - {maxChar: 5}\n  - {tag: chapter.draft}",
        expect![[r#"
            workers/draft/SKILL.md:6:5: error: `checks` cannot be `nonempty` [unknown-value]
              at: "nonempty"
              help: write `nonEmpty` or `verdictLine`
            workers/draft/SKILL.md:7:16: error: `maxChars` is a whole number from 1, not `-1` [wrong-type]
              at: "-1"
              help: write digits, without quotes
            workers/draft/SKILL.md:8:18: error: this is no JSON Schema: 3 is not valid under any of the schemas listed in the 'anyOf' keyword [bad-schema]
              at: "{"
              help: write a JSON Schema without references to other files, like `{type: object, required: [title]}`
            workers/draft/SKILL.md:9:18: error: this is no JSON Schema: Resource 'https://example.org/s.json' is not present in a registry and retrieving it failed: `resolve-http` feature or a custom resolver is required to resolve external schemas via HTTP [bad-schema]
              at: "{"
              help: write a JSON Schema without references to other files, like `{type: object, required: [title]}`
            workers/draft/SKILL.md:10:11: error: a check looks at `outline.draft`, which `draft` never writes [idle-check]
              at: "outline.draft"
              help: name one of its outputTags, or drop `tag` to check them all
            workers/draft/SKILL.md:11:5: error: a check has no `rule` [missing-field]
              at: "{"
              help: write one of `nonEmpty`, `maxChars`, `contains`, `jsonSchema`, `verdictLine`
            workers/draft/SKILL.md:11:6: error: a check has no field `maxChar` [unknown-field]
              at: "maxChar"
              help: did you mean `maxChars`?
            workers/draft/SKILL.md:12:5: error: a check has no `rule` [missing-field]
              at: "{"
              help: write one of `nonEmpty`, `maxChars`, `contains`, `jsonSchema`, `verdictLine`
        "#]],
    );
}

#[test]
fn skills_that_are_named_and_not_there() {
    check_manifest(
        "acceptance: {drafts: no_confirmation}\nstages: {x: play}\nrequiresApproval: {Draft: true}",
        expect![[r#"
            orchestrator.md:5:14: error: `acceptance` names `drafts`, and the pack has no such skill [unknown-skill]
              at: "drafts"
              help: did you mean `draft`?
            orchestrator.md:6:10: error: `stages` names `x`, and the pack has no such skill [unknown-skill]
              at: "x"
              help: write `draft`
            orchestrator.md:7:20: error: `requiresApproval` names `Draft`, and the pack has no such skill [unknown-skill]
              at: "Draft"
              help: did you mean `draft`?
        "#]],
    );
    check_skill(
        "reviews: outline",
        expect![[r#"
            workers/draft/SKILL.md:5:10: error: `reviews` names `outline`, and the pack has no such skill [unknown-skill]
              at: "outline"
              help: write `draft`
        "#]],
    );
    check_skill(
        "reviews: draft",
        expect![[r#"
        workers/draft/SKILL.md:5:10: error: `draft` reviews itself [unknown-skill]
          at: "draft"
          help: name the skill whose work it judges
    "#]],
    );
    check_body(
        "## 验收策略\n| Skill | acceptanceMode |\n|---|---|\n| `darft` | `no_confirmation` |\n| draft | 随意 |\n",
        expect![[r#"
            orchestrator.md:9:3: error: `acceptance` names `darft`, and the pack has no such skill [unknown-skill]
              at: "`darft`"
              help: did you mean `draft`?
            orchestrator.md:10:11: error: `acceptanceMode` cannot be `随意` [unknown-value]
              at: "随意"
              help: write `user_confirmed`, `no_confirmation` or `programmatic_review`
        "#]],
    );
}

#[test]
fn a_shared_context_that_is_not_there() {
    check_manifest(
        "sharedContext: world.md",
        expect![[r#"
        orchestrator.md:5:16: error: there is no file `world.md` [missing-shared-context]
          at: "world.md"
          help: add the file to the pack's folder, or drop `sharedContext` (`shared-context.md` is found by itself)
    "#]],
    );
}

#[test]
fn no_keys_in_packs() {
    check_skill(
        "apiKey: sk-1",
        expect![[r#"
        workers/draft/SKILL.md:5:1: error: `apiKey` looks like a secret, and packs hold none [key-in-pack]
          at: "apiKey"
          help: take it out; keys belong to the model profile on your machine (`quire model add`), a pack names profiles only
    "#]],
    );
    check(
        &format!(
            "== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{DRAFT}== llm-bindings.yaml\ndefault: {{profile: big, api_key: sk-1}}\nworkers: {{outline: small, token: x}}\n"
        ),
        expect![[r#"
            llm-bindings.yaml:1:25: error: `api_key` looks like a secret, and packs hold none [key-in-pack]
              at: "api_key"
              help: take it out; keys belong to the model profile on your machine (`quire model add`), a pack names profiles only
            llm-bindings.yaml:2:11: warning: the pack has no skill `outline` [unknown-skill]
              at: "outline"
              help: write a skill's id, or drop the line
            llm-bindings.yaml:2:27: error: `token` looks like a secret, and packs hold none [key-in-pack]
              at: "token"
              help: take it out; keys belong to the model profile on your machine (`quire model add`), a pack names profiles only
        "#]],
    );
}

#[test]
fn a_misspelt_restriction_is_an_error() {
    check_skill(
        "context_isolation: role_pov\nisolation: role_pov\ncontextIsolatoin: role_pov",
        expect![[r#"
        workers/draft/SKILL.md:5:1: error: the front matter has no field `context_isolation` [unknown-field]
          at: "context_isolation"
          help: did you mean `contextIsolation`?
        workers/draft/SKILL.md:6:1: error: the front matter has no field `isolation` [unknown-field]
          at: "isolation"
          help: did you mean `contextIsolation`?
        workers/draft/SKILL.md:7:1: error: the front matter has no field `contextIsolatoin` [unknown-field]
          at: "contextIsolatoin"
          help: did you mean `contextIsolation`?
    "#]],
    );
    check_manifest(
        "requireApproval: {draft: true}",
        expect![[r#"
        orchestrator.md:5:1: error: the front matter has no field `requireApproval` [unknown-field]
          at: "requireApproval"
          help: did you mean `requiresApproval`?
    "#]],
    );
}

// What a pack is warned of.

#[test]
fn fields_that_mean_nothing() {
    check_manifest(
        "descripton: x\nmood: dark\nhiddenFromUser: [a]\nrevealAt: done",
        expect![[r#"
            orchestrator.md:5:1: warning: the front matter has no field `descripton` [unknown-field]
              at: "descripton"
              help: did you mean `description`?
            orchestrator.md:6:1: warning: the front matter has no field `mood` [unknown-field]
              at: "mood"
              help: drop it; known here: `acceptance`, `bookKind`, `category`, `chance`, `description`, `hiddenFromUser`, `instanceReady`, `maxBurst`, `name`, `requiresApproval`, `revealAt`, `runSkillList`, `sharedContext`, `snapshot`, `stages`, `startupMode`, `tables`, `tags`, `version`, `workers`
        "#]],
    );
    check_skill(
        "inputKeys: [a]\noutputKeys: [b]\ncolour: red",
        expect![[r#"
        workers/draft/SKILL.md:5:1: warning: `inputKeys` is no longer read [retired-field]
          at: "inputKeys"
          help: write `inputTags`: the patterns of the tags it reads
        workers/draft/SKILL.md:6:1: warning: `outputKeys` is no longer read [retired-field]
          at: "outputKeys"
          help: write `outputTags`: the tags it may write
        workers/draft/SKILL.md:7:1: warning: the front matter has no field `colour` [unknown-field]
          at: "colour"
          help: drop it; known here: `acceptanceMode`, `allowed-tools`, `blind`, `checks`, `compatibility`, `contextIsolation`, `contextSegments`, `description`, `id`, `inputMerge`, `inputTags`, `license`, `llmProfileId`, `metadata`, `name`, `outputTags`, `readsAll`, `requiredTags`, `requiresApproval`, `reviews`, `skill`, `stage`, `variants`, `version`
    "#]],
    );
    check_manifest(
        "stages: {draft: run}",
        expect![[r#"
        orchestrator.md:5:17: warning: `run` is an old word for a stage [retired-word]
          at: "run"
          help: write `play`
    "#]],
    );
}

#[test]
fn tags_that_are_read_and_never_written() {
    check_skill(
        "inputTags: [用户.最新输入, chapter.confirmed, chapter.draft, 委托.1.结果, 设计.run_skill清单, 设计.跳过.x, 设定.词条.当前, outline.confirmed]\nrequiredTags: [世界.*]",
        expect![[r#"
            workers/draft/SKILL.md:5:100: warning: `draft` reads `outline.confirmed`, which no skill writes [never-written]
              at: "outline.confirmed"
              help: add it to the outputTags of the skill that makes it, or drop it
            workers/draft/SKILL.md:6:16: warning: `draft` waits for `世界.*`, which no skill writes, so it can never run [never-written]
              at: "世界.*"
              help: add it to the outputTags of the skill that makes it, or drop it
        "#]],
    );
    check_manifest(
        "instanceReady: [chapter.confirmed, 世界.设定]",
        expect![[r#"
        orchestrator.md:5:36: warning: play waits for `世界.设定`, which no skill writes, so it can never begin [never-written]
          at: "世界.设定"
          help: add it to the outputTags of the skill that makes it, or drop it
    "#]],
    );
}

#[test]
fn reading_everything_is_said_twice() {
    check_skill(
        "inputTags: ['**', '*.*']",
        expect![[r#"
            workers/draft/SKILL.md:5:13: warning: `draft` reads every tag [reads-all]
              at: "'**'"
              help: name what it needs, or add `readsAll: true` where all is meant
            workers/draft/SKILL.md:5:19: warning: `draft` reads every tag [reads-all]
              at: "'*.*'"
              help: name what it needs, or add `readsAll: true` where all is meant
        "#]],
    );
    check_skill("inputTags: ['**']\nreadsAll: true", expect![[""]]);
}

#[test]
fn accepted_by_checks_that_are_not_there() {
    check_skill(
        "acceptanceMode: programmatic_review",
        expect![[r#"
        workers/draft/SKILL.md:1:1: warning: `draft` is accepted by its checks, and has none, so everything passes [no-checks]
          at: ""
          help: add `checks: [nonEmpty]` or stricter ones to its front matter
    "#]],
    );
}

#[test]
fn static_segments_stand_first() {
    check_skill(
        "inputTags: ['用户.*']\ncontextSegments:\n  - {id: now, tags: [用户.最新输入]}\n  - {id: world, tier: static, tags: [用户.需求]}",
        expect![[r#"
            workers/draft/SKILL.md:7:10: warning: the dynamic segment `now` is listed above the static `world` [segment-order]
              at: "now"
              help: list static segments first: the prompt holds them in that order anyway
        "#]],
    );
}

#[test]
fn an_intake_with_gaps() {
    check_body(
        "## Intake\n### Required\n- Genre\n",
        expect![[r#"
        orchestrator.md:8:3: warning: the intake does not say where its answers go, so they go to `用户.需求` [no-target]
          at: "Genre"
          help: add a line `写入目标：` or `Target:` with the tag in back-quotes: `用户.需求`
    "#]],
    );
    check_body(
        "## Intake\n### Required\n- Genre\n\nTarget: `a..b`\n",
        expect![[r#"
            orchestrator.md:10:10: error: `a..b` has an empty part [bad-tag]
              at: "a..b"
              help: write parts joined by single dots, like `chapter.draft`
        "#]],
    );
    check_manifest(
        "startupMode: intake",
        expect![[r#"
        orchestrator.md:5:14: warning: `startupMode: intake` asks for nothing, as the pack has no fields [intake-without-fields]
          at: "intake"
          help: list fields under `必须收集` or `Required` in the section `## 启动询问` or `## Intake`, or write `startupMode: agent-first`
    "#]],
    );
    check_manifest(
        "startupMode: fast",
        expect![[r#"
            orchestrator.md:5:14: error: `startupMode` cannot be `fast` [unknown-value]
              at: "fast"
              help: write `intake` or `agent-first`
        "#]],
    );
}

#[test]
fn a_registry_may_list_more_than_there_is() {
    check_body(
        "## Skill 注册表\n| Skill | 阶段 |\n|---|---|\n| later | 设计 |\n| draft | 第一步 |\n",
        expect![[r#"
        orchestrator.md:9:3: warning: the table lists `later`, and the pack has no such skill [unknown-skill]
          at: "later"
          help: add it to `workers`, or drop the row
        orchestrator.md:10:11: warning: `第一步` is no stage [unknown-value]
          at: "第一步"
          help: write `design`, `play` or `both`; until then it runs in both
    "#]],
    );
}

#[test]
fn an_agent_skill_without_outputs() {
    let skill =
        "---\nname: drafter\ndescription: Writes.\nmetadata:\n  quire-inputTags: 用户.需求, a..b\n  quire-mood: dark\n---\n";
    check(
        &format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{skill}"),
        expect![[r#"
        workers/draft/SKILL.md:1:1: error: the front matter has no `outputTags` [missing-field]
          at: "---"
          help: add `quire-outputTags: "chapter.draft"` under `metadata`: the tags it may write
        workers/draft/SKILL.md:2:7: warning: the name `drafter` of an Agent Skill is not its folder's name `draft` [name-not-folder]
          at: "drafter"
          help: write `name: draft`; until then it is known by its folder
        workers/draft/SKILL.md:5:20: error: `a..b` has an empty part [bad-tag]
          at: "用户.需求, a..b"
          help: write parts joined by single dots, like `chapter.draft`
        workers/draft/SKILL.md:6:3: warning: the front matter has no field `mood` [unknown-field]
          at: "quire-mood"
          help: drop it; known here: `acceptanceMode`, `allowed-tools`, `blind`, `checks`, `compatibility`, `contextIsolation`, `contextSegments`, `description`, `id`, `inputMerge`, `inputTags`, `license`, `llmProfileId`, `metadata`, `name`, `outputTags`, `readsAll`, `requiredTags`, `requiresApproval`, `reviews`, `skill`, `stage`, `variants`, `version`
    "#]],
    );
}

#[test]
fn a_file_that_is_not_utf8() {
    let diagnostic = Diagnostic::not_utf8("orchestrator.md", "---\nname: 灯".as_bytes().split_last().expect("some bytes").1);
    expect![[r#"
        orchestrator.md:2:7: error: this is not UTF-8 text
        save the file as UTF-8; other encodings of Chinese (GBK, Big5, UTF-16) cannot be told apart safely
    "#]]
    .assert_eq(&format!("{diagnostic}\n{}\n", diagnostic.help));
}

// Ways to write an intake.

fn intake(body: &str, expected: Expect) {
    let pack = read(&format!("== orchestrator.md\n{MANIFEST}{body}\n== workers/draft/SKILL.md\n{DRAFT}"));
    let mut text =
        format!("asks first: {}; target: {:?}\n", pack.startup.asks_first, pack.startup.target.map(|tag| tag.to_string()));
    for field in &pack.startup.fields {
        let must = if field.required { "required" } else { "optional" };
        writeln!(text, "{must} {} = {}", field.id, field.label).expect("strings take everything");
    }
    write!(text, "{}", pack.startup.prompt).expect("strings take everything");
    expected.assert_eq(&text);
}

#[test]
fn an_intake_in_chinese() {
    intake(
        "## 2. 启动询问（必读）\n\n```text\n你想写什么？\n## 不是标题\n```\n\n### 必须收集\n请逐项询问：\n- 题材：悬疑、科幻……\n  - 可多选\n- **主角**—名字与处境\n- `pov` 视角\n\n### 可选收集\n1. 篇幅\n2. Main character (name)\n\n### 写入目标\n- `用户.需求.当前`\n\n## 其他\n- 不是字段\n",
        expect![[r#"
            asks first: true; target: Some("用户.需求.当前")
            required field-1 = 题材
            required field-2 = 主角
            required pov = 视角
            optional field-4 = 篇幅
            optional main-character-name = Main character (name)
            你想写什么？
            ## 不是标题"#]],
    );
}

#[test]
fn an_intake_in_english_with_bold_lines() {
    intake(
        "## Intake\n\n~~~\nTell me.\n~~~\n\n**Required**\n- Main character: who\n- Main character - again\n- `genre`: which\n\nOptional:\n* Length\n* 长度\n\n**Target:** `user.brief`\n",
        expect![[r#"
            asks first: true; target: Some("user.brief")
            required main-character = Main character
            required main-character-2 = Main character
            required genre = genre
            optional length = Length
            optional field-5 = 长度
            Tell me."#]],
    );
}

#[test]
fn an_intake_in_nested_lists_or_in_prose() {
    intake(
        "## Intake\n- **必须收集**：\n  - 题材\n- **可选收集**：\n  - 篇幅\n- **写入目标**：`用户.需求`\n",
        expect![[r#"
        asks first: true; target: Some("用户.需求")
        required field-1 = 题材
        optional field-2 = 篇幅
    "#]],
    );
    intake(
        "## 启动询问\n和用户聊聊，再开始。收集完成后写入目标 `用户.需求`。\n",
        expect![[r#"
        asks first: false; target: Some("用户.需求")
    "#]],
    );
}

#[test]
fn what_the_front_matter_says_wins_over_the_table_and_the_table_over_the_skill() {
    let manifest = "---\nname: p\ndescription: d\nworkers: [a, b, c]\nacceptance: {a: programmatic_review}\n---\n## 验收策略\n\n| 技能 | 验收模式 | 需要批准 |\n|:--|:-:|---|\n| `a` | no_confirmation | ✅ |\n| [b](workers/b/SKILL.md) | **no_confirmation**（自动） | 否 |\n";
    let skill = |id: &str| {
        format!(
            "== workers/{id}/SKILL.md\n---\ndescription: d\noutputTags: [{id}]\nacceptanceMode: user_confirmed\nrequiresApproval: true\nchecks: [nonEmpty]\n---\n"
        )
    };
    let pack = read(&format!("== orchestrator.md\n{manifest}{}{}{}", skill("a"), skill("b"), skill("c")));
    let lines: Vec<String> =
        pack.skills.iter().map(|skill| format!("{} {:?} {}", skill.id, skill.acceptance, skill.requires_approval)).collect();
    expect![[r#"
        a ProgrammaticReview true
        b NoConfirmation false
        c UserConfirmed true"#]]
    .assert_eq(&lines.join("\n"));
}

// What holds for any text.

proptest! {
    #[test]
    fn reading_never_panics_and_spans_lie_in_the_file(files in any_pack()) {
        let (pack, diagnostics) = pack::read(&files);
        let is_usable = diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning);
        prop_assert_eq!(pack.is_some(), is_usable);
        for diagnostic in &diagnostics {
            let text = files.0.get(&diagnostic.file).map_or("", |text| text);
            let Span { start, end, .. } = diagnostic.span;
            prop_assert!(text.get(start..end).is_some(), "{:?} in {:?}", diagnostic, text);
            prop_assert_eq!(diagnostic.span, Span::of(text, start, end));
            prop_assert!(!diagnostic.message.is_empty() && !diagnostic.help.is_empty());
        }
    }
}

/// Whole packs with a piece cut out and something else put in, and files of nothing but noise.
fn any_pack() -> impl Strategy<Value = PackFiles> {
    let samples = [include_str!("packs/whole.txt"), include_str!("packs/old.txt"), include_str!("packs/agent-skills.txt")];
    let pieces = prop_oneof![
        any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        prop::sample::select(vec![
            "---\n",
            "\t",
            ": ",
            "- ",
            "*x",
            "&x ",
            "'",
            "\"",
            "[",
            "{",
            "|",
            ">",
            "```",
            "\r\n",
            "\u{feff}",
            "灯",
            "\u{301}",
            "<<: ",
            "? ",
            "#",
            "!!int ",
            ".",
            "**",
            "null",
            "\0",
            "| a |\n|--|\n| b |\n"
        ])
        .prop_map(str::to_owned),
    ];
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..30, pieces);
    (prop::sample::select(samples.to_vec()), prop::collection::vec(edit, 0..4)).prop_map(|(sample, edits)| {
        let mut files: Vec<(String, Vec<char>)> =
            pack_files(sample).0.into_iter().map(|(path, text)| (path, text.chars().collect())).collect();
        for (file, at, length, piece) in edits {
            let (_, text) = file.get_mut(&mut files);
            let start = if text.is_empty() { 0 } else { at.index(text.len()) };
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        PackFiles(files.into_iter().map(|(path, text)| (path, Arc::from(text.into_iter().collect::<String>()))).collect())
    })
}

#[test]
fn draws_are_read_and_count_as_written() {
    check(
        "== orchestrator.md\n---\nname: p\ndescription: d\nworkers: [draft]\nchance:\n  - {tag: dice.current, draw: 4d20}\n  - {tag: weather, pick: [sun, rain]}\n  - {tag: fate, draw: percent}\n---\n\
         == workers/draft/SKILL.md\n---\nid: draft\ndescription: Writes.\ninputTags: [dice.current, weather, fate]\noutputTags: [chapter.draft]\n---\nWrite.\n",
        expect![[r#""#]],
    );
}

#[test]
fn draws_that_cannot_be_made() {
    check_manifest(
        "tables: [vars.table]\nchance:\n  - {tag: a, draw: 0d20}\n  - {tag: b, draw: dice}\n  - {tag: c}\n  - {draw: d6}\n  - {tag: d, pick: []}\n  - {tag: e, pick: [x], draw: d6}\n  - {tag: f, draw: d6}\n  - {tag: f, draw: d6}\n  - {tag: vars.table, draw: d6}\n  - d6",
        expect![[r#"
            orchestrator.md:7:20: error: `0d20` is no draw [bad-draw]
              at: "0d20"
              help: write dice as `4d20` (1 to 100 dice of 2 to 1000 sides), or `percent`
            orchestrator.md:8:20: error: `dice` is no draw [bad-draw]
              at: "dice"
              help: write dice as `4d20` (1 to 100 dice of 2 to 1000 sides), or `percent`
            orchestrator.md:9:5: error: an entry of `chance` has no `draw` [missing-field]
              at: "{"
              help: write `draw: 4d20`, `draw: percent` or `pick: [sun, rain, fog]`
            orchestrator.md:10:5: error: an entry of `chance` has no `tag` [missing-field]
              at: "{"
              help: write `tag: play.dice.current`: where the outcome goes
            orchestrator.md:11:5: error: `pick` has nothing to pick from [bad-draw]
              at: "{"
              help: write `draw: 4d20`, `draw: percent` or `pick: [sun, rain, fog]`
            orchestrator.md:12:5: error: an entry of `chance` has both `draw` and `pick` [bad-draw]
              at: "{"
              help: keep one of the two
            orchestrator.md:14:11: error: `f` is drawn twice [duplicate-id]
              at: "f"
              help: give each draw a tag of its own
            orchestrator.md:15:11: error: `vars.table` is a table, and a draw writes a text [chance-in-table]
              at: "vars.table"
              help: draw into a tag of its own; a worker puts what it means into the table
            orchestrator.md:16:5: error: an entry of `chance` is a map of fields, not a text [wrong-type]
              at: "d6"
              help: write `field: value` lines
        "#]],
    );
}
