//! Checks of what was handed in, and verdicts.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use quire_core::check::{failed, verdict};
use quire_core::pack::{Check, Rule};
use quire_core::tag::{Pattern, Tag};
use serde_json::json;

fn check(rules: &[(Option<&str>, Rule)], outputs: &[(&str, &str)], expected: Expect) {
    let pattern = |raw: &str| Pattern::parse(raw).expect("a pattern");
    let checks: Vec<Check> = rules.iter().map(|(tag, rule)| Check { tag: tag.map(pattern), rule: rule.clone() }).collect();
    let outputs: BTreeMap<Tag, _> = outputs.iter().map(|(tag, text)| (Tag::parse(tag).expect("a tag"), (*text).into())).collect();
    expected.assert_eq(&failed(&checks, &outputs).join("\n"));
}

#[test]
fn each_fault_names_tag_rule_and_finding() {
    let rules = [
        (None, Rule::NonEmpty),
        (Some("章.*"), Rule::MaxChars(3)),
        (Some("章.一"), Rule::Contains("灯塔".to_owned())),
        (Some("没有"), Rule::NonEmpty),
    ];
    check(
        &rules,
        &[("章.一", "👨‍👩‍👧a̐好多"), ("章.二", " \n"), ("题", "x")],
        expect![[r#"
            `章.二` is empty (nonEmpty): hand in a text
            `章.一` has 4 characters, and 3 are allowed (maxChars): shorten it by 1
            `章.一` does not hold the words `灯塔` (contains): put them in"#]],
    );
}

#[test]
fn schema_faults_come_in_a_fixed_order_and_not_in_a_flood() {
    let schema = json!({"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}});
    let rules = [(None, Rule::JsonSchema(schema))];
    check(
        &rules,
        &[("x", r#"{"z":"1","y":"2","w":"3","v":"4","u":"5"}"#), ("y", "[not json"), ("z", r#"{"a":1}"#)],
        expect![[r#"
            `x` does not fit its schema (jsonSchema): "a" is a required property
            `x` does not fit its schema at `/u` (jsonSchema): "5" is not of type "integer"
            `x` does not fit its schema at `/v` (jsonSchema): "4" is not of type "integer"
            `x` does not fit its schema at `/w` (jsonSchema): "3" is not of type "integer"
            `x` does not fit its schema at `/y` (jsonSchema): "2" is not of type "integer"
            `x` does not fit its schema in 1 more places (jsonSchema)
            `y` is not JSON (jsonSchema): expected ident at line 1 column 3; hand in the JSON alone"#]],
    );
}

#[test]
fn a_review_without_a_verdict_fails_its_check() {
    check(
        &[(None, Rule::VerdictLine)],
        &[("审校.意见", "看着不错。\nverdict: pass")],
        expect![
            "`审校.意见` gives no verdict (verdictLine): begin with a line `verdict: pass` or `verdict: fail`, or give JSON with the field `verdict`"
        ],
    );
    check(&[(None, Rule::VerdictLine)], &[("a", "verdict: fail\n…"), ("b", "details")], expect![""]);
}

#[test]
fn verdicts_are_read_as_people_write_them() {
    let table: String = [
        "verdict: pass",
        "\n\n**Verdict：** `FAIL`\nbecause",
        "# 结论：通过。",
        "裁决: 不通过",
        "verdict: pass|fail",
        "verdict: passable",
        "The verdict: pass",
        r#"{"verdict": "Fail", "notes": []}"#,
        "Here:\n```json\n{\"verdict\": \"pass\"}\n```",
        r#"{"verdict": "pass","#,
        "",
    ]
    .iter()
    .map(|text| format!("{text:?} → {:?}\n", verdict([*text])))
    .collect();
    expect![[r##"
        "verdict: pass" → Some(Pass)
        "\n\n**Verdict：** `FAIL`\nbecause" → Some(Fail)
        "# 结论：通过。" → Some(Pass)
        "裁决: 不通过" → Some(Fail)
        "verdict: pass|fail" → None
        "verdict: passable" → None
        "The verdict: pass" → None
        "{\"verdict\": \"Fail\", \"notes\": []}" → Some(Fail)
        "Here:\n```json\n{\"verdict\": \"pass\"}\n```" → Some(Pass)
        "{\"verdict\": \"pass\"," → None
        "" → None
    "##]]
    .assert_eq(&table);
    assert_eq!(verdict(["verdict: pass", "verdict: fail"]), verdict(["verdict: fail"]));
}
