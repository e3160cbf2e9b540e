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
    check("== notes.txt\nhello\n", expect![[""]]);
    check("== SKILL.md\n---\nname: x\ndescription: y\n---\n", expect![[""]]);
    check("== inner/orchestrator.md\n---\nname: x\n---\n", expect![[""]]);
}

#[test]
fn a_manifest_without_front_matter() {
    check("== orchestrator.md\n# A pack\n", expect![[""]]);
    check("== orchestrator.md\n\n--- \nname: p\n", expect![[""]]);
    check("== orchestrator.md\n---\n---\n", expect![[""]]);
    check("== orchestrator.md\n---\n- a\n---\n", expect![[""]]);
}

#[test]
fn every_file_is_read_although_the_manifest_is_broken() {
    check("== orchestrator.md\n---\nname: [\n---\n== workers/a/SKILL.md\n---\nid: b\n---\n", expect![[""]]);
}

#[test]
fn yaml_that_is_none() {
    check_manifest("tags: a: b", expect![[""]]);
    check_manifest("# 说明：这里\ncategory: '小说", expect![[""]]);
    check_manifest("tables: [*.表]", expect![[""]]);
    check_manifest("maxBurst: 3\nmaxBurst: 4", expect![[""]]);
    check_skill("description: Writes. Note: unquoted", expect![[""]]);
}

#[test]
fn a_bomb_of_aliases_is_stopped() {
    let bomb = (1..12).fold("snapshot:\n  a0: &a0 [x, x]".to_owned(), |text, level| {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("{text}\n  a{level}: &a{level} [{below}]")
    });
    check_manifest(&bomb, expect![[""]]);
}

#[test]
fn fields_that_are_missing() {
    check("== orchestrator.md\n---\nversion: 1\n---\n", expect![[""]]);
    check("== orchestrator.md\n---\nname: p\ndescription:\nworkers: []\n---\n", expect![[""]]);
    check(&format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n---\nid: draft\n---\n"), expect![[""]]);
    check_skill("contextSegments:\n  - label: L", expect![[""]]);
}

#[test]
fn values_of_a_wrong_type() {
    check_manifest("tables: 设定.表\nmaxBurst: '12'\nstages: design\nsharedContext: 3", expect![[""]]);
    check_manifest("maxBurst: 0\nacceptance: {draft: never}\nrequiresApproval: {draft: perhaps}\ncategory: 诗", expect![[""]]);
    check_skill("readsAll: maybe\ninputTags: 用户.需求\nllmProfileId: [a]\ncontextIsolation: role", expect![[""]]);
    check_skill("contextIsolation:\ninputMerge: newest\nacceptanceMode: me", expect![[""]]);
}

#[test]
fn workers_and_their_folders() {
    let manifest = "---\nname: p\ndescription: d\nworkers: [draft, Review, draft, a.b, 12]\n---\n";
    let review = DRAFT.replace("draft", "review");
    check(
        &format!(
            "== orchestrator.md\n{manifest}== workers/draft/SKILL.md\n{DRAFT}== workers/spare/SKILL.md\n{DRAFT}== workers/review/SKILL.md\n{review}"
        ),
        expect![[""]],
    );
    let manifest = "---\nname: p\ndescription: d\nworkers: [draft]\n---\n";
    check(
        &format!("== orchestrator.md\n{manifest}== workers/draft/SKILL.md\n{}", DRAFT.replace("id: draft", "id: drafts")),
        expect![[""]],
    );
    check(&format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\nWrite.\n"), expect![[""]]);
}

#[test]
fn tags_and_patterns_that_are_none() {
    check_manifest(
        "tables: [设定..表, '设定.*']\nhiddenFromUser: ['a*', '*']\ninstanceReady: [' a. b']\nrunSkillList: a.",
        expect![[""]],
    );
}

#[test]
fn output_tags_with_wrong_stars() {
    let skill = "---\ndescription: d\noutputTags: ['**', 'a.*', 'a.*.b.*.c', 'a.*.b']\n---\n";
    check(&format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{skill}"), expect![[""]]);
}

#[test]
fn segments_keep_to_the_inputs() {
    check_skill(
        "inputTags: [用户.*, 用户.需求]\ncontextSegments:\n  - {id: a, tags: [用户.需求, 大纲.草稿]}\n  - {id: a, tags: ['用户.*'], policy: tail_lines_0}",
        expect![[""]],
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
        expect![[""]],
    );
    check_skill(
        "inputTags: ['chapter.*']\ncontextIsolation: blind_review\nblind: [chapter.draft]\ncontextSegments: [{id: a, tags: [chapter.confirmed, 'chapter.*']}]",
        expect![[""]],
    );
    check_skill("inputTags: [chapter.confirmed]\ncontextIsolation: blind_review\nblind: [chapter.draft]", expect![[""]]);
}

#[test]
fn an_isolation_without_effect() {
    check_skill("blind: [chapter.draft]", expect![[""]]);
    check_skill("contextIsolation: blind_review", expect![[""]]);
}

#[test]
fn a_variant_must_change_the_prompt() {
    check_skill(
        "inputTags: [用户.需求]\nvariants:\n  same:\n    - {id: other, tags: [用户.需求], label: 用户.需求}\n  empty: []\n  short: {contextSegments: [{id: a, tags: [用户.需求], policy: tail_tokens_20}]}",
        expect![[""]],
    );
}

#[test]
fn checks_that_cannot_be_made() {
    check_skill(
        "checks:\n  - nonempty\n  - {maxChars: -1}\n  - {jsonSchema: {type: 3}}\n  - {jsonSchema: {$ref: 'https://example.org/s.json'}}\n  - {tag: outline.draft, nonEmpty: true}\n  - {maxChar: 5}",
        expect![[""]],
    );
}

#[test]
fn skills_that_are_named_and_not_there() {
    check_manifest("acceptance: {drafts: no_confirmation}\nstages: {x: play}\nrequiresApproval: {Draft: true}", expect![[""]]);
    check_skill("reviews: outline", expect![[""]]);
    check_skill("reviews: draft", expect![[""]]);
    check_body(
        "## 验收策略\n| Skill | acceptanceMode |\n|---|---|\n| `darft` | `no_confirmation` |\n| draft | 随意 |\n",
        expect![[""]],
    );
}

#[test]
fn a_shared_context_that_is_not_there() {
    check_manifest("sharedContext: world.md", expect![[""]]);
}

#[test]
fn no_keys_in_packs() {
    check_skill("apiKey: sk-1", expect![[""]]);
    check(
        &format!(
            "== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{DRAFT}== llm-bindings.yaml\ndefault: {{profile: big, api_key: sk-1}}\nworkers: {{outline: small, token: x}}\n"
        ),
        expect![[""]],
    );
}

#[test]
fn a_misspelt_restriction_is_an_error() {
    check_skill("context_isolation: role_pov\nisolation: role_pov\ncontextIsolatoin: role_pov", expect![[""]]);
    check_manifest("requireApproval: {draft: true}", expect![[""]]);
}

// What a pack is warned of.

#[test]
fn fields_that_mean_nothing() {
    check_manifest("descripton: x\nmood: dark\nhiddenFromUser: [a]\nrevealAt: done", expect![[""]]);
    check_skill("inputKeys: [a]\noutputKeys: [b]\ncolour: red", expect![[""]]);
    check_manifest("stages: {draft: run}", expect![[""]]);
}

#[test]
fn tags_that_are_read_and_never_written() {
    check_skill(
        "inputTags: [用户.最新输入, chapter.confirmed, chapter.draft, 委托.1.结果, 设计.run_skill清单, 设计.跳过.x, 设定.词条.当前, outline.confirmed]\nrequiredTags: [世界.*]",
        expect![[""]],
    );
    check_manifest("instanceReady: [chapter.confirmed, 世界.设定]", expect![[""]]);
}

#[test]
fn reading_everything_is_said_twice() {
    check_skill("inputTags: ['**']", expect![[""]]);
    check_skill("inputTags: ['**']\nreadsAll: true", expect![[""]]);
}

#[test]
fn static_segments_stand_first() {
    check_skill(
        "inputTags: ['用户.*']\ncontextSegments:\n  - {id: now, tags: [用户.最新输入]}\n  - {id: world, tier: static, tags: [用户.需求]}",
        expect![[""]],
    );
}

#[test]
fn an_intake_with_gaps() {
    check_body("## Intake\n### Required\n- Genre\n", expect![[""]]);
    check_body("## Intake\n### Required\n- Genre\n\nTarget: `a..b`\n", expect![[""]]);
    check_manifest("startupMode: intake", expect![[""]]);
    check_manifest("startupMode: fast", expect![[""]]);
}

#[test]
fn a_registry_may_list_more_than_there_is() {
    check_body("## Skill 注册表\n| Skill | 阶段 |\n|---|---|\n| later | 设计 |\n| draft | 第一步 |\n", expect![[""]]);
}

#[test]
fn an_agent_skill_without_outputs() {
    let skill =
        "---\nname: drafter\ndescription: Writes.\nmetadata:\n  quire-inputTags: 用户.需求, a..b\n  quire-mood: dark\n---\n";
    check(&format!("== orchestrator.md\n{MANIFEST}== workers/draft/SKILL.md\n{skill}"), expect![[""]]);
}

#[test]
fn a_file_that_is_not_utf8() {
    let diagnostic = Diagnostic::not_utf8("orchestrator.md", "---\nname: 灯".as_bytes().split_last().expect("some bytes").1);
    expect![[""]].assert_eq(&format!("{diagnostic}\n{}\n", diagnostic.help));
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
        expect![[""]],
    );
}

#[test]
fn an_intake_in_english_with_bold_lines() {
    intake(
        "## Intake\n\n~~~\nTell me.\n~~~\n\n**Required**\n- Main character: who\n- Main character - again\n- `genre`: which\n\nOptional:\n* Length\n* 长度\n\n**Target:** `user.brief`\n",
        expect![[""]],
    );
}

#[test]
fn an_intake_in_nested_lists_or_in_prose() {
    intake("## Intake\n- **必须收集**：\n  - 题材\n- **可选收集**：\n  - 篇幅\n- **写入目标**：`用户.需求`\n", expect![[""]]);
    intake("## 启动询问\n和用户聊聊，再开始。收集完成后写入目标 `用户.需求`。\n", expect![[""]]);
}

#[test]
fn what_the_front_matter_says_wins_over_the_table_and_the_table_over_the_skill() {
    let manifest = "---\nname: p\ndescription: d\nworkers: [a, b, c]\nacceptance: {a: programmatic_review}\n---\n## 验收策略\n\n| 技能 | 验收模式 | 需要批准 |\n|:--|:-:|---|\n| `a` | no_confirmation | ✅ |\n| [b](workers/b/SKILL.md) | **no_confirmation**（自动） | 否 |\n";
    let skill = |id: &str| {
        format!(
            "== workers/{id}/SKILL.md\n---\ndescription: d\noutputTags: [{id}]\nacceptanceMode: user_confirmed\nrequiresApproval: true\n---\n"
        )
    };
    let pack = read(&format!("== orchestrator.md\n{manifest}{}{}{}", skill("a"), skill("b"), skill("c")));
    let lines: Vec<String> =
        pack.skills.iter().map(|skill| format!("{} {:?} {}", skill.id, skill.acceptance, skill.requires_approval)).collect();
    expect![[""]].assert_eq(&lines.join("\n"));
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
