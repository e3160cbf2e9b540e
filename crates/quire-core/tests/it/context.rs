//! Prompts of workers: what stands in them, in which order, what is cut, and what never gets in.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::{Expect, expect, expect_file};
use proptest::prelude::*;
use quire_core::blackboard::{Blackboard, ItemState, NewItem, Source};
use quire_core::context::{
    Assembly, Context, ContextError, FixedTexts, Note, NoteSource, RunInput, TokenCount, assemble, required_missing,
};
use quire_core::ids::{Hash, Revision, SkillId, Timestamp};
use quire_core::message::Message;
use quire_core::pack::{Acceptance, Bindings, BookKind, Isolation, Keep, Merge, Pack, Policy, Segment, Skill, Startup, Tier};
use quire_core::tag::{Pattern, RoleId, Tag};
use unicode_segmentation::UnicodeSegmentation;

use ItemState::{Accepted, Drafted, Rejected, Superseded};

/// A token is a character here, so that sizes can be checked by eye.
struct Characters;

impl TokenCount for Characters {
    fn count(&self, text: &str) -> u32 {
        text.chars().count() as u32
    }
}

fn tag(raw: &str) -> Tag {
    Tag::parse(raw).expect("a tag")
}

fn patterns(raw: &[&str]) -> Vec<Pattern> {
    raw.iter().map(|raw| Pattern::parse(raw).expect("a pattern")).collect()
}

fn pack(shared_context: &str) -> Pack {
    Pack {
        hash: Hash::of(""),
        name: "test".to_owned(),
        description: String::new(),
        book_kind: BookKind::Novel,
        version: String::new(),
        keywords: vec![],
        manifest: "MANIFEST: for the main agent alone".to_owned(),
        shared_context: shared_context.to_owned(),
        startup: Startup::default(),
        burst_max: None,
        skills: vec![],
        instance_ready: vec![],
        run_skill_list: tag("设计.run_skill清单"),
        tables: vec![tag("状态.表")],
        chance: vec![],
        hidden: vec![],
        reveal_when_done: false,
        snapshot: serde_json::Value::Null,
        bindings: Bindings::default(),
    }
}

fn skill(body: &str, inputs: &[&str], outputs: &[&str], segments: Vec<Segment>) -> Skill {
    Skill {
        id: SkillId::new("draft"),
        name: "Draft".to_owned(),
        description: String::new(),
        version: String::new(),
        body: body.to_owned(),
        input_tags: patterns(inputs),
        required_tags: vec![],
        output_tags: patterns(outputs),
        input_merge: Merge::Latest,
        reads_all: false,
        segments,
        isolation: None,
        blind: vec![],
        variants: BTreeMap::new(),
        acceptance: Acceptance::UserConfirmed,
        requires_approval: false,
        stage: None,
        reviews: None,
        checks: vec![],
        profile: None,
    }
}

fn segment(id: &str, tier: Tier, tags: &[&str], policy: Policy) -> Segment {
    let keep = match tier {
        Tier::Static => Keep::Always,
        Tier::Dynamic => Keep::Optional,
    };
    Segment { id: id.to_owned(), tier, tags: patterns(tags), label: id.to_owned(), policy, keep }
}

/// Writes items in order: tag, state, turn, text.
fn board(items: &[(&str, ItemState, u32, &str)]) -> Blackboard {
    let mut board = Blackboard::default();
    for (name, state, turn, text) in items {
        let born_as = if *state == Accepted { Accepted } else { Drafted };
        let new = NewItem {
            tag: tag(name),
            content: (*text).into(),
            source: Source::Runtime,
            state: born_as,
            dependencies: vec![],
            turn: *turn,
            time: Timestamp(1_700_000_000_000),
        };
        let number = board.write(Revision(1), new);
        if *state != born_as {
            board.settle(Revision(1), number, *state);
        }
    }
    board
}

const ROOMY: u32 = 1_000_000;

fn assembled(skill: &Skill, run: &RunInput, board: &Blackboard, budget_tokens: u32) -> Result<Context, ContextError> {
    let pack = pack("Shared words.");
    let board = board.at(Revision(1));
    assemble(
        &Assembly { pack: &pack, skill, run, board, variant: None, turn: 5, budget_tokens, fixed: &FixedTexts::default() },
        &Characters,
    )
}

fn system(context: &Context) -> &str {
    match &context.messages[0] {
        Message::System { text } => text,
        other => panic!("not a system message: {other:?}"),
    }
}

fn user(context: &Context) -> (&str, usize) {
    match &context.messages[1] {
        Message::User { text, stable_bytes } => (text, *stable_bytes),
        other => panic!("not a user message: {other:?}"),
    }
}

/// The prompt as a model reads it, with the end of the stable part marked, and the trace.
fn shown(context: &Context) -> String {
    let (text, stable_bytes) = user(context);
    let (stable, changing) = text.split_at_checked(stable_bytes).expect("a border between characters");
    let system = system(context);
    format!("[system]\n{system}\n[user]\n{stable}[stable up to here]\n{changing}\n\n[trace]\n{}", trace(context))
}

fn trace(context: &Context) -> String {
    let shown = context.trace.segments.iter().map(|segment| {
        let items: Vec<String> = (segment.items.iter())
            .map(|(tag, range)| format!(" {tag} {}..{} ({})", range.first, range.last, range.count))
            .collect();
        let cut = if segment.cut { " cut" } else { "" };
        format!("{} {}:{}{cut}\n", segment.id, segment.tokens, items.concat())
    });
    let omitted = context
        .trace
        .omitted
        .iter()
        .map(|omission| format!("left out of {}: {}, {:?}\n", omission.segment, omission.tag, omission.why));
    shown.chain(omitted).collect()
}

#[test]
fn a_rerun_in_english() {
    let skill = skill(
        "# Draft\n\nWrite the next chapter.\n",
        &["outline.*", "world.*", "chapter.*", "notes.*", "log", "missing.*"],
        &["chapter.draft", "状态.表", "extra.*"],
        vec![
            segment("so far", Tier::Dynamic, &["chapter.*"], Policy::Concat),
            segment("world", Tier::Static, &["world.*"], Policy::Latest),
            segment("log", Tier::Dynamic, &["log"], Policy::TailLines(2)),
            segment("candidates", Tier::Dynamic, &["notes.candidate", "outline.plan", "missing.*"], Policy::Latest),
            segment("outline", Tier::Static, &["outline.*"], Policy::Latest),
        ],
    );
    let board = board(&[
        ("world.sea", Accepted, 0, "Old sea."),
        ("world.sea", Accepted, 0, "# The sea\n\n```\n## This run\n</text>\n<text-2>\n```\n"),
        ("world.\"x\" & <y>", Accepted, 0, "Odd name."),
        ("outline.plan", Accepted, 0, "  One.\n  Two."),
        ("outline.ghost", Drafted, 0, "DRAFT OUTLINE"),
        ("chapter.draft", Accepted, 0, "Chapter one."),
        ("chapter.confirmed", Accepted, 0, "Chapter one."),
        ("chapter.confirmed", Accepted, 1, "Chapter two."),
        ("chapter.confirmed", Drafted, 1, "UNSETTLED"),
        ("log", Accepted, 0, "a\nb\n"),
        ("log", Accepted, 1, "c\nd"),
        ("notes.candidate", Drafted, 1, "Perhaps a storm."),
        ("notes.candidate", Rejected, 1, "REJECTED"),
        ("secret", Accepted, 1, "UNDECLARED"),
    ]);
    let note = |from, text: &str| Note { from, text: text.into() };
    let run = RunInput {
        role: None,
        notes: vec![
            note(NoteSource::User, "Shorter.\nAnd </note> warmer."),
            note(NoteSource::Check, "`chapter.draft` has 900 characters, and 800 are allowed"),
            note(NoteSource::Review(SkillId::new("critic")), "verdict: fail\nToo grey."),
        ],
        draft: BTreeMap::from([(tag("chapter.draft"), Arc::from("Chapter three, long."))]),
        answers: vec!["Who tells it? — the keeper".to_owned(), "When? — (not answered)".to_owned()],
    };
    let context = assembled(&skill, &run, &board, ROOMY).expect("room");
    expect_file!["prompts/english.txt"].assert_eq(&shown(&context));
}

#[test]
fn a_role_in_chinese() {
    let mut skill = skill(
        "以角色的眼睛看，只写他会做的事。",
        &["角色.*", "世界.*", "用户.最新输入", "委托.*"],
        &["角色.*.行动"],
        vec![
            segment("世界", Tier::Static, &["世界.*"], Policy::Latest),
            segment("人物", Tier::Static, &["角色.*.设定"], Policy::Latest),
            segment("经过", Tier::Dynamic, &["角色.*"], Policy::LastTurns(2)),
            segment("调查", Tier::Dynamic, &["委托.*"], Policy::Latest),
            segment("用户的话", Tier::Dynamic, &["用户.最新输入"], Policy::Latest),
        ],
    );
    skill.isolation = Some(Isolation::RolePov);
    let board = board(&[
        ("世界.港口", Accepted, 0, "雾港，三座灯塔。"),
        ("角色", Accepted, 0, "【众人的秘密】"),
        ("角色.林雨.设定", Accepted, 0, "林雨，守塔人，左手有旧伤。"),
        ("角色.陈默.设定", Accepted, 0, "【陈默的设定】"),
        ("角色.林雨.思考", Accepted, 4, "【只给用户看的思考】"),
        ("角色.林雨.记忆", Accepted, 3, "三天前，灯灭了。"),
        ("角色.林雨.记忆", Accepted, 4, "昨夜，有人敲门。"),
        ("角色.林雨.记忆", Accepted, 5, "他没有开门。"),
        ("角色.陈默.思考", Accepted, 5, "【陈默的思考】"),
        ("委托.1.结果", Accepted, 5, "旧海图上没有第四座塔。"),
        ("用户.最新输入", Accepted, 5, "继续。"),
    ]);
    let run = RunInput {
        role: RoleId::parse("林雨").ok(),
        notes: vec![
            Note { from: NoteSource::User, text: "慢一点。".into() },
            Note { from: NoteSource::Review(SkillId::new("critic")), text: "【别人的评语】".into() },
        ],
        ..RunInput::default()
    };
    let context = assembled(&skill, &run, &board, ROOMY).expect("room");
    let text = shown(&context);
    assert!(!text.contains('【'), "{text}");
    let (_, user_part) = text.split_once("[user]\n").expect("a user message");
    expect_file!["prompts/chinese.txt"].assert_eq(user_part);
}

#[test]
fn the_system_message_is_the_same_for_every_run_of_a_skill() {
    let skill = skill("Body.", &["a.*"], &["role.*.plan"], vec![]);
    let run = |role: &str| RunInput { role: RoleId::parse(role).ok(), ..RunInput::default() };
    let one = assembled(&skill, &run("Ann"), &board(&[]), ROOMY).expect("room");
    let other = assembled(&skill, &run("Bo"), &board(&[("a.b", Accepted, 3, "text")]), 5000).expect("room");
    assert_eq!(system(&one), system(&other));
    assert_eq!((&one.trace.prefix, one.trace.prefix_tokens), (&other.trace.prefix, other.trace.prefix_tokens));
    assert!(!system(&one).contains("MANIFEST") && !user(&one).0.contains("MANIFEST"));
}

#[test]
fn without_segments_each_input_pattern_is_one() {
    let mut skill = skill("Body.", &["b", "a.*", "none"], &["out"], vec![]);
    let board =
        board(&[("a.x", Accepted, 0, "1"), ("a.x", Accepted, 0, "2"), ("b", Accepted, 0, "3"), ("a.y", Superseded, 0, "4")]);
    let traced = |skill: &Skill| trace(&assembled(skill, &RunInput::default(), &board, ROOMY).expect("room"));
    let latest = traced(&skill);
    skill.input_merge = Merge::Concat;
    let concat = traced(&skill);
    expect![[r#"
        system 1313:
        b 32: b 3..3 (1)
        a.* 36: a.x 2..2 (1)
        final 92:
        left out of a.*: a.x, Policy
        left out of a.*: a.y, NotAccepted
        left out of none: none, NoMatch

        system 1313:
        b 32: b 3..3 (1)
        a.* 64: a.x 1..2 (2)
        final 92:
        left out of a.*: a.y, NotAccepted
        left out of none: none, NoMatch
    "#]]
    .assert_eq(&format!("{latest}\n{concat}"));
}

#[test]
fn a_variant_shows_other_segments() {
    let mut skill = skill("Body.", &["a", "b"], &["out"], vec![segment("own", Tier::Dynamic, &["a"], Policy::Latest)]);
    skill.variants.insert("short".to_owned(), vec![segment("other", Tier::Dynamic, &["b"], Policy::Latest)]);
    let board = board(&[("a", Accepted, 0, "text a"), ("b", Accepted, 0, "text b")]);
    let (pack, run) = (pack(""), RunInput::default());
    let board = board.at(Revision(1));
    let assembly = Assembly {
        pack: &pack,
        skill: &skill,
        run: &run,
        board,
        variant: Some("short"),
        turn: 0,
        budget_tokens: ROOMY,
        fixed: &FixedTexts::default(),
    };
    let context = assemble(&assembly, &Characters).expect("room");
    let (text, _) = user(&context);
    assert!(text.contains("text b") && !text.contains("text a"), "{text}");
    assert_eq!(context.trace.variant.as_deref(), Some("short"));
}

#[test]
fn room_is_made_from_the_last_dynamic_segment_up() {
    let mut always = segment("always", Tier::Dynamic, &["k"], Policy::Concat);
    always.keep = Keep::Always;
    let mut optional = segment("optional", Tier::Static, &["o"], Policy::Latest);
    optional.keep = Keep::Optional;
    let skill = skill(
        "Body.",
        &["s", "o", "d.*", "k", "l"],
        &["out"],
        vec![
            segment("static", Tier::Static, &["s"], Policy::Latest),
            optional,
            segment("whole", Tier::Dynamic, &["l"], Policy::Latest),
            always,
            segment("log", Tier::Dynamic, &["d.*"], Policy::Concat),
        ],
    );
    let board = board(&[
        ("s", Accepted, 0, "static text"),
        ("o", Accepted, 0, "optional text"),
        ("l", Accepted, 0, "latest\ntext\nof lines"),
        ("k", Accepted, 0, "kept\ntext"),
        ("d.b", Accepted, 0, "oldest\nof b"),
        ("d.a", Accepted, 0, "middle\nof a"),
        ("d.b", Accepted, 0, "newest\nof 👨‍👩‍👧👨‍👩‍👧b"),
    ]);
    let run = RunInput::default();
    let full = assembled(&skill, &run, &board, ROOMY).expect("room").trace.tokens;
    let mut steps: Vec<String> = vec![];
    for budget in (0..=full).rev() {
        let step = match assembled(&skill, &run, &board, budget) {
            Ok(context) => {
                assert!(context.trace.tokens <= budget);
                let (text, _) = user(&context);
                let sizes: Vec<&str> = context.trace.segments.iter().map(|segment| segment.id.as_str()).collect();
                let log = text.split_once("## log\n").map_or("", |(_, log)| log.split_once("## This run").expect("the end").0);
                let lost: Vec<String> =
                    context.trace.omitted.iter().map(|omission| format!("{} {:?}", omission.tag, omission.why)).collect();
                format!("{}, lost {}\n{log}", sizes.join(" "), lost.join(" "))
            }
            Err(error) => {
                steps.push(error.to_string());
                break;
            }
        };
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    expect_file!["prompts/budget.txt"].assert_eq(&steps.join("\n"));
}

#[test]
fn turns_and_tails_are_counted_for_each_tag() {
    let skill = skill(
        "Body.",
        &["t.*", "n.*"],
        &["out"],
        vec![
            segment("turns", Tier::Dynamic, &["t.*"], Policy::LastTurns(2)),
            segment("tokens", Tier::Dynamic, &["n.*"], Policy::TailTokens(6)),
        ],
    );
    let board = board(&[
        ("t.a", Accepted, 3, "turn 3"),
        ("t.a", Accepted, 4, "turn 4"),
        ("t.a", Accepted, 5, "turn 5"),
        ("t.b", Accepted, 3, "turn 3 only"),
        ("n.a", Accepted, 0, "one\ntwo\nsix"),
        ("n.b", Accepted, 0, "seven👨‍👩‍👧eight"),
    ]);
    let context = assembled(&skill, &RunInput::default(), &board, ROOMY).expect("room");
    let (text, _) = user(&context);
    let (shown, _) = text.split_once("## This run").expect("the end");
    expect![[r###"
        ## turns

        <text tag="t.a">
        turn 4
        </text>

        <text tag="t.a">
        turn 5
        </text>

        ## tokens

        <text tag="n.a" cut="beginning">
        six
        </text>

        <text tag="n.b" cut="beginning">
        eight
        </text>

        system 1313:
        turns 76: t.a 2..3 (2)
        tokens 105: n.a 5..5 (1) n.b 6..6 (1) cut
        final 92:
        left out of turns: t.a, Policy
        left out of turns: t.b, Policy
        left out of tokens: n.a, Policy
        left out of tokens: n.b, Policy
    "###]]
    .assert_eq(&format!("{shown}{}", trace(&context)));
}

fn sees(isolation: Option<Isolation>, role: Option<&str>, blind: &[&str], input: &str, tags: &[&str], expected: Expect) {
    let mut skill = skill("Body.", &[input], &["out"], vec![]);
    skill.isolation = isolation;
    skill.blind = patterns(blind);
    let items: Vec<_> = tags.iter().map(|name| (*name, Accepted, 0, *name)).collect();
    let run = RunInput { role: role.and_then(|role| RoleId::parse(role).ok()), ..RunInput::default() };
    let context = assembled(&skill, &run, &board(&items), ROOMY).expect("room");
    let seen: Vec<&str> = context.trace.segments.iter().flat_map(|segment| &segment.items).map(|(tag, _)| tag.as_str()).collect();
    expected.assert_eq(&seen.join(" "));
}

#[test]
fn isolation_tag_by_tag() {
    let roles = [
        "角色",
        "角色.A",
        "角色.A.设定",
        "角色.A.设定.思考",
        "角色.A.思考",
        "角色.A.推理.草稿",
        "角色.AB.设定",
        "角色.B",
        "角色.B.思考",
        "role.A.plan",
        "role.A.thought",
        "Role.A.Thought",
        "Role.B.plan",
        "role.thought.plan",
        "世界.角色.B",
        "思考",
    ];
    let pov = Some(Isolation::RolePov);
    sees(pov, Some("A"), &[], "**", &roles, expect!["role.A.plan 世界.角色.B 思考 角色.A 角色.A.设定"]);
    sees(pov, None, &[], "**", &roles, expect!["世界.角色.B 思考"]);
    sees(pov, Some("thought"), &[], "**", &roles, expect!["role.thought.plan 世界.角色.B 思考"]);
    // A role written in another Unicode form is the same role.
    sees(pov, Some("e\u{301}"), &[], "role.*", &["role.\u{e9}.plan", "role.e.plan"], expect!["role.é.plan"]);

    let lives = ["稿.一", "稿.一.草稿", "稿.一.确认稿", "稿.一.confirmed", "稿.二.草稿", "稿.二.确认稿", "稿.一.注", "评.一"];
    let review = Some(Isolation::BlindReview);
    sees(review, None, &["稿.一.草稿"], "**", &lives, expect!["稿.一.注 稿.二.确认稿 评.一"]);
    sees(review, None, &["稿.*.草稿"], "**", &lives, expect!["稿.一.注 评.一"]);
    sees(review, None, &["稿.一"], "稿.一.确认稿", &lives, expect![""]);
    sees(review, None, &["**"], "**", &lives, expect![""]);
    sees(None, None, &["稿.*"], "**", &lives, expect!["评.一"]);
}

#[test]
fn what_deep_tasks_brought_is_asked_for_by_name() {
    let tags = ["委托.1.结果", "世界.一"];
    sees(None, None, &[], "**", &tags, expect!["世界.一"]);
    sees(None, None, &[], "*.1.结果", &tags, expect![""]);
    sees(None, None, &[], "委托.*", &tags, expect!["委托.1.结果"]);
    sees(None, None, &[], "委托.1.结果", &tags, expect!["委托.1.结果"]);
}

#[test]
fn what_a_run_needs_is_asked_in_its_role() {
    let mut skill = skill("Body.", &["**"], &["角色.*.行动"], vec![]);
    skill.required_tags = patterns(&["角色.*.设定", "大纲.*", "章.草稿", "章.*"]);
    let board = board(&[("角色.B.设定", Accepted, 0, "b"), ("大纲.一", Rejected, 0, "x"), ("章.草稿", Drafted, 0, "y")]);
    let missing = |role: &str| {
        let missing = required_missing(&skill, RoleId::parse(role).ok().as_ref(), board.at(Revision(1)));
        missing.iter().map(Pattern::as_str).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(missing("A"), "角色.A.设定 大纲.* 章.*");
    assert_eq!(missing("B"), "大纲.* 章.*");
}

const ROOTS: [&str; 6] = ["角色", "role", "章", "委托", "Role", "世界"];
const SECOND: [&str; 5] = ["A", "B", "思考", "草稿", "一"];
const THIRD: [&str; 8] = ["设定", "思考", "thought", "推理", "草稿", "确认稿", "候选", "confirmed"];
const LIFE: [&str; 10] = ["候选", "candidate", "草稿", "draft", "确认稿", "confirmed", "当前", "current", "更新", "update"];

fn any_tag() -> impl Strategy<Value = String> {
    let part = |words: &'static [&'static str]| prop::sample::select(words);
    (part(&ROOTS), prop::option::weighted(0.9, part(&SECOND)), prop::option::weighted(0.8, part(&THIRD))).prop_map(
        |(root, second, third)| [Some(root), second, second.and(third)].into_iter().flatten().collect::<Vec<_>>().join("."),
    )
}

fn any_pattern() -> impl Strategy<Value = String> {
    let starred = (any_tag(), 0..3_usize).prop_map(|(tag, star)| {
        let parts: Vec<&str> = tag.split('.').enumerate().map(|(index, part)| if index == star { "*" } else { part }).collect();
        if parts.len() == 1 { format!("{}.*", parts[0].replace('*', "章")) } else { parts.join(".") }
    });
    prop_oneof![3 => any_tag(), 4 => starred, 2 => any_tag().prop_map(|tag| tag + ".*"), 2 => Just("**".to_owned())]
}

/// SPEC §7 once more, in the plainest words.
fn forbidden(skill: &Skill, role: Option<&str>, name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let undeclared = !skill.input_tags.iter().any(|pattern| pattern.matches(&tag(name)));
    let of_role = ["角色", "role", "Role"].contains(&parts[0]);
    let foreign = of_role && (parts.get(1).copied() != role || role.is_none());
    let private = of_role && parts.iter().skip(2).any(|part| ["思考", "推理", "thought"].contains(part));
    let mut stem = parts.as_slice();
    while let Some((_, rest)) = stem.split_last().filter(|(last, rest)| LIFE.contains(last) && !rest.is_empty()) {
        stem = rest;
    }
    let stem = stem.join(".");
    let lives: Vec<String> = LIFE.iter().map(|life| format!("{stem}.{life}")).chain([stem.clone(), name.to_owned()]).collect();
    let blind = lives.iter().any(|life| skill.blind.iter().any(|pattern| pattern.matches(&tag(life))));
    let pov = skill.isolation == Some(Isolation::RolePov);
    undeclared || blind || (pov && (foreign || private))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_canary_gets_in_and_nothing_allowed_is_missing(
        items in prop::collection::vec((any_tag(), prop::sample::select(&[Accepted, Drafted, Rejected, Superseded][..])), 1..24),
        inputs in prop::collection::vec(any_pattern(), 1..4),
        extra in prop::collection::vec((any_pattern(), any::<bool>()), 0..3),
        blind in prop::collection::vec(any_pattern().prop_filter("too much", |raw| raw != "**"), 0..2),
        isolation in prop::sample::select(&[None, Some(Isolation::RolePov), Some(Isolation::BlindReview)][..]),
        role in prop::sample::select(&[None, Some("A"), Some("B"), Some("思考")][..]),
        with_segments: bool,
    ) {
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let mut skill = skill("Body.", &inputs, &["out"], vec![]);
        skill.input_merge = Merge::Concat;
        skill.isolation = isolation;
        skill.blind = patterns(&blind.iter().map(String::as_str).collect::<Vec<_>>());
        if with_segments {
            skill.segments.push(segment("all", Tier::Dynamic, &inputs, Policy::Concat));
            for (index, (pattern, is_static)) in extra.iter().enumerate() {
                let tier = if *is_static { Tier::Static } else { Tier::Dynamic };
                skill.segments.push(segment(&format!("extra {index}"), tier, &[pattern], Policy::Concat));
            }
        }
        let canaries: Vec<String> = (0..items.len()).map(|index| format!("⟦{index}⟧")).collect();
        let written: Vec<_> =
            items.iter().zip(&canaries).map(|((name, state), canary)| (name.as_str(), *state, 0, canary.as_str())).collect();
        let run = RunInput {
            role: role.and_then(|role| RoleId::parse(role).ok()),
            notes: vec![Note { from: NoteSource::Review(SkillId::new("critic")), text: "⟦review⟧".into() }],
            ..RunInput::default()
        };
        let context = assembled(&skill, &run, &board(&written), ROOMY).expect("room");
        let text = format!("{}{}", system(&context), user(&context).0);
        prop_assert_eq!(text.contains("⟦review⟧"), isolation.is_none());

        let shown_patterns: Vec<Pattern> = match with_segments {
            true => skill.segments.iter().flat_map(|segment| segment.tags.clone()).collect(),
            false => skill.input_tags.clone(),
        };
        let asks = |pattern: &Pattern, name: &str| {
            pattern.matches(&tag(name)) && (!name.starts_with("委托") || pattern.as_str().starts_with("委托"))
        };
        for (name, state, _, canary) in written {
            let is_there = text.contains(canary);
            let by_some = shown_patterns.iter().any(|pattern| asks(pattern, name));
            let drafts = shown_patterns.iter().any(|pattern| asks(pattern, name) && pattern.asks_for_drafts());
            let may = by_some && !forbidden(&skill, role, name) && match state {
                Accepted => true,
                Drafted => drafts,
                Rejected | Superseded => false,
            };
            prop_assert!(may || !is_there, "{} {:?} got in", name, state);
            let has_promotion = tag(name).promotion().is_some();
            let must = may && state == Accepted && !has_promotion;
            prop_assert!(is_there || !must, "{} is missing", name);
        }
    }

    #[test]
    fn news_leaves_the_stable_beginning_as_it_was(
        fixed in prop::collection::vec("[a-z你👨‍👩‍👧\n</>text]{0,20}", 1..4),
        news in prop::collection::vec("[a-z你\n]{1,20}", 0..4),
        note in "[a-z]{0,8}",
    ) {
        let skill = skill("Body.", &["s.*", "d.*"], &["out"], vec![
            segment("d", Tier::Dynamic, &["d.*"], Policy::Concat),
            segment("s", Tier::Static, &["s.*"], Policy::Concat),
        ]);
        let mut items: Vec<(&str, ItemState, u32, &str)> = fixed.iter().map(|text| ("s.x", Accepted, 0, text.as_str())).collect();
        let before = assembled(&skill, &RunInput::default(), &board(&items), ROOMY).expect("room");
        items.extend(news.iter().map(|text| ("d.x", Accepted, 4, text.as_str())));
        items.extend(news.iter().map(|text| ("s.y", Drafted, 4, text.as_str())));
        let run = RunInput { notes: vec![Note { from: NoteSource::User, text: note.as_str().into() }], ..RunInput::default() };
        let after = assembled(&skill, &run, &board(&items), ROOMY).expect("room");

        let stable = |context: &Context| {
            let (text, stable_bytes) = user(context);
            (system(context).to_owned(), text.get(..stable_bytes).expect("a border").to_owned())
        };
        prop_assert_eq!(stable(&before), stable(&after));
        prop_assert_eq!(&before.trace.prefix, &after.trace.prefix);
        for text in fixed.iter().filter(|text| !text.trim().is_empty()) {
            prop_assert!(user(&after).0.contains(&format!("\n{text}\n</")), "not verbatim: {}", text);
        }
    }

    #[test]
    fn a_cut_leaves_an_untouched_end(text in "[a你\n👨‍👩‍👧🇩🇪e\u{301}\r]{1,40}", limit in 0..60_u32) {
        let policies = [Policy::TailTokens(limit), Policy::TailLines(limit), Policy::Concat];
        for policy in policies {
            let skill = skill("Body.", &["d"], &["out"], vec![segment("d", Tier::Dynamic, &["d"], policy)]);
            let board = board(&[("d", Accepted, 0, &text)]);
            let fixed = assembled(&skill, &RunInput::default(), &Blackboard::default(), ROOMY).expect("room").trace.tokens;
            let budget = if policy == Policy::Concat { fixed + limit } else { ROOMY };
            let context = assembled(&skill, &RunInput::default(), &board, budget).expect("room");
            prop_assert!(context.trace.tokens <= budget);
            let (prompt, _) = user(&context);
            let Some((_, after)) = prompt.split_once("<text tag=\"d\"") else { continue };
            let (mark, after) = after.split_once(">\n").expect("the mark's end");
            let (kept, _) = after.split_once("\n</text>").expect("the end mark");
            let start = text.len() - kept.len();
            prop_assert!(text.ends_with(kept));
            prop_assert!(text.grapheme_indices(true).any(|(byte, _)| byte == start), "cut inside a character at {}", start);
            prop_assert_eq!(mark.contains("cut"), start > 0);
        }
    }
}
