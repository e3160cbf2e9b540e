//! Which tags a pattern means.

use expect_test::expect;
use proptest::prelude::*;
use quire_core::tag::{Pattern, RoleId, Tag, TagError};

fn tag(raw: &str) -> Tag {
    Tag::parse(raw).expect("a tag")
}

fn pattern(raw: &str) -> Pattern {
    Pattern::parse(raw).expect("a pattern")
}

#[test]
fn a_pattern_means_these_tags_and_no_others() {
    let tags = ["角色", "角色.A", "角色.A.设定", "角色.A.设定.当前", "角色.B.设定", "大纲.设定"];
    let lines: Vec<String> = ["角色.A.设定", "角色.*.设定", "*.设定", "角色.*", "角色.A.*", "角色.*.*", "**"]
        .iter()
        .map(|raw| {
            let meant: Vec<&str> = tags.into_iter().filter(|name| pattern(raw).matches(&tag(name))).collect();
            format!("{raw}: {}", meant.join(" "))
        })
        .collect();
    expect![[r#"
        角色.A.设定: 角色.A.设定
        角色.*.设定: 角色.A.设定 角色.B.设定
        *.设定: 大纲.设定
        角色.*: 角色 角色.A 角色.A.设定 角色.A.设定.当前 角色.B.设定
        角色.A.*: 角色.A 角色.A.设定 角色.A.设定.当前
        角色.*.*: 角色.A 角色.A.设定 角色.A.设定.当前 角色.B.设定
        **: 角色 角色.A 角色.A.设定 角色.A.设定.当前 角色.B.设定 大纲.设定"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn names_that_are_none_are_refused() {
    let tags = ["", "a.", ".a", "a..b", "a.*", " a", "a. b", "a\nb", "a\u{200b}", "\u{feff}a", "\u{3000}a"];
    let patterns = ["*", "a*", "a.**", "**.a", "a.*b.c", "a..*", ""];
    let lines: Vec<String> = (tags.iter().filter_map(|raw| Tag::parse(raw).err()))
        .chain(patterns.iter().filter_map(|raw| Pattern::parse(raw).err()))
        .chain(["a.b", "*"].iter().filter_map(|raw| RoleId::parse(raw).err()))
        .map(|error: TagError| format!("{:?}", error.to_string()))
        .collect();
    assert_eq!(lines.len(), tags.len() + patterns.len() + 2, "each of them is refused");
    expect![[r#"
        "`` has an empty part; write parts joined by single dots, like `chapter.draft`"
        "`a.` has an empty part; write parts joined by single dots, like `chapter.draft`"
        "`.a` has an empty part; write parts joined by single dots, like `chapter.draft`"
        "`a..b` has an empty part; write parts joined by single dots, like `chapter.draft`"
        "`a.*` holds `*`; a tag names one text, only patterns have stars"
        "` a` holds a line break, an invisible character or a space at the edge of a part; take it out"
        "`a. b` holds a line break, an invisible character or a space at the edge of a part; take it out"
        "`a\nb` holds a line break, an invisible character or a space at the edge of a part; take it out"
        "`a\u{200b}` holds a line break, an invisible character or a space at the edge of a part; take it out"
        "`\u{feff}a` holds a line break, an invisible character or a space at the edge of a part; take it out"
        "`\u{3000}a` holds a line break, an invisible character or a space at the edge of a part; take it out"
        "`*` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags"
        "`a*` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags"
        "`a.**` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags"
        "`**.a` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags"
        "`a.*b.c` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags"
        "`a..*` has an empty part; write parts joined by single dots, like `chapter.draft`"
        "`` has an empty part; write parts joined by single dots, like `chapter.draft`"
        "`a.b` is not one part of a tag; a role's name has no dot and no star"
        "`*` is not one part of a tag; a role's name has no dot and no star""#]].assert_eq(&lines.join("\n"));
}

#[test]
fn the_same_letters_are_the_same_tag() {
    assert_eq!(tag("cafe\u{301}.draft"), tag("caf\u{e9}.draft"));
    assert!(pattern("cafe\u{301}.*").matches(&tag("caf\u{e9}.draft")));
    assert_eq!(RoleId::parse("Zoe\u{308}"), RoleId::parse("Zo\u{eb}"));
}

#[test]
fn only_the_middle_star_is_bound_to_a_role() {
    let role = RoleId::parse("A").expect("a role");
    let bound = ["角色.*.行动", "*.行动", "角色.*", "**", "角色.行动"].map(|raw| pattern(raw).bind(&role).to_string());
    expect!["角色.A.行动 A.行动 角色.* ** 角色.行动"].assert_eq(&bound.join(" "));
    assert!(!pattern("角色.*.行动").bind(&role).matches(&tag("角色.B.行动")));
}

#[test]
fn drafts_are_promoted_by_their_last_part() {
    let promoted = ["章节.草稿", "chapter.draft", "草稿", "draft.chapter", "章节.候选"]
        .map(|raw| tag(raw).promotion().map_or_else(|| "-".to_owned(), |tag| tag.to_string()));
    expect!["章节.确认稿 chapter.confirmed - - -"].assert_eq(&promoted.join(" "));
    assert_eq!(pattern("章.*.草稿").promotion(), Some(pattern("章.*.确认稿")));
}

fn some_part() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "角色", "设定"]).prop_map(str::to_owned)
}

fn some_tag() -> impl Strategy<Value = Tag> {
    prop::collection::vec(some_part(), 1..5).prop_map(|parts| tag(&parts.join(".")))
}

fn some_pattern() -> impl Strategy<Value = Pattern> {
    let part = prop_oneof![3 => some_part(), 2 => Just("*".to_owned())];
    let parts =
        prop::collection::vec(part, 1..5).prop_filter_map("a star alone is none", |parts| Pattern::parse(&parts.join(".")).ok());
    prop_oneof![1 => Just(pattern("**")), 12 => parts]
}

/// All tags of up to five parts out of two letters and one that stands in no pattern.
fn all_tags() -> Vec<Tag> {
    let mut tags: Vec<String> = Vec::new();
    let mut last: Vec<String> = vec![String::new()];
    for _ in 0..5 {
        last = last.iter().flat_map(|before| ["a", "b", "x"].map(|part| format!("{before}.{part}"))).collect();
        tags.extend(last.iter().map(|tag| tag.trim_start_matches('.').to_owned()));
    }
    tags.iter().map(|name| tag(name)).collect()
}

fn small_pattern() -> impl Strategy<Value = Pattern> {
    let part = prop::sample::select(vec!["a", "b", "*"]);
    let parts =
        prop::collection::vec(part, 1..4).prop_filter_map("a star alone is none", |parts| Pattern::parse(&parts.join(".")).ok());
    prop_oneof![1 => Just(pattern("**")), 12 => parts]
}

proptest! {
    #[test]
    fn a_pattern_without_stars_means_its_own_tag(tag in some_tag(), other in some_tag()) {
        let pattern = Pattern::from(&tag);
        prop_assert_eq!(pattern.as_tag(), Some(tag.clone()));
        prop_assert_eq!(pattern.matches(&other), tag == other);
    }

    #[test]
    fn two_patterns_that_mean_one_tag_overlap(one in some_pattern(), other in some_pattern(), tag in some_tag()) {
        if one.matches(&tag) && other.matches(&tag) {
            prop_assert!(one.overlaps(&other) && other.overlaps(&one));
        }
        if one.covers(&other) && other.matches(&tag) {
            prop_assert!(one.matches(&tag));
        }
    }

    #[test]
    fn overlapping_and_covering_are_what_they_say_of_all_small_tags(one in small_pattern(), other in small_pattern()) {
        let tags = all_tags();
        let both = tags.iter().any(|tag| one.matches(tag) && other.matches(tag));
        prop_assert_eq!(one.overlaps(&other), both);
        let all = tags.iter().filter(|tag| other.matches(tag)).all(|tag| one.matches(tag));
        prop_assert_eq!(one.covers(&other), all);
    }

    #[test]
    fn any_text_is_a_name_or_is_refused(raw in any::<String>()) {
        if let Ok(tag) = Tag::parse(&raw) {
            prop_assert_eq!(Tag::parse(tag.as_str()), Ok(tag.clone()));
            prop_assert!(Pattern::parse(tag.as_str()).is_ok_and(|pattern| pattern.matches(&tag)));
        }
        if let Ok(pattern) = Pattern::parse(&raw) {
            prop_assert_eq!(Pattern::parse(pattern.as_str()), Ok(pattern));
        }
    }
}
