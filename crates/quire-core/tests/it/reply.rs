//! Replies as models write them: the repair ladder, arguments, outputs and decisions without a call.

use expect_test::expect;
use proptest::prelude::*;
use quire_core::reply::{agent_decision, arguments, find_json, worker_outputs};
use quire_core::tag::Tag;
use serde_json::{Value, json};

fn found(text: &str) -> String {
    match find_json(text) {
        None => "nothing".to_owned(),
        Some(found) => {
            let marks = [(found.repaired, " repaired"), (found.cut, " cut")];
            let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
            format!("{}{marks}", found.value)
        }
    }
}

#[test]
fn the_repair_ladder() {
    let texts = [
        r#"{"a": "“q”, …，：", "b": [1, -2.5e3, true, null]}"#,
        "Sure! Here it is [1]:\n```json\n{\"a\": 1}\n```\nAnything else {name}?",
        r#"{"a": [1, 2,], "b": {"c": 3,},}"#,
        "{\"a\": \"line\n\ttab\"}",
        "{“a”： “he said “go”, and \"left\"”， “b”: ”x”}",
        r#"{"a": "keep \"this\" \\ \u4f60\ud83d\ude00 // as /* it */ is,}"}"#,
        r#"{"a": 1, "b": "half a sent"#,
        r#"{"a": 1, "b": "escape \u4f6"#,
        r#"{"a": 1, "b": "pair \ud83d\ud"#,
        r#"{"a": 1, "b": "slash \"#,
        r#"{"a": 1, "half a k"#,
        r#"{"a": 1, "b": tr"#,
        r#"{"a": [1, 23"#,
        r#"{"a": "he said "go" to her"}"#,
        r#"{a: 1}"#,
        r#"{"a": 1}{"b": [2, 3]}"#,
        "no JSON at all",
        "42",
        "",
    ];
    let table: String = texts.iter().map(|text| format!("{text}\n    → {}\n", found(text))).collect();
    expect![[r#"
        {"a": "“q”, …，：", "b": [1, -2.5e3, true, null]}
            → {"a":"“q”, …，：","b":[1,-2500.0,true,null]}
        Sure! Here it is [1]:
        ```json
        {"a": 1}
        ```
        Anything else {name}?
            → {"a":1}
        {"a": [1, 2,], "b": {"c": 3,},}
            → {"a":[1,2],"b":{"c":3}} repaired
        {"a": "line
        	tab"}
            → {"a":"line\n\ttab"} repaired
        {“a”： “he said “go”, and "left"”， “b”: ”x”}
            → {"a":"he said “go”, and \"left\"","b":"x"} repaired
        {"a": "keep \"this\" \\ \u4f60\ud83d\ude00 // as /* it */ is,}"}
            → {"a":"keep \"this\" \\ 你😀 // as /* it */ is,}"}
        {"a": 1, "b": "half a sent
            → {"a":1,"b":"half a sent"} cut
        {"a": 1, "b": "escape \u4f6
            → {"a":1,"b":"escape "} cut
        {"a": 1, "b": "pair \ud83d\ud
            → {"a":1,"b":"pair "} cut
        {"a": 1, "b": "slash \
            → {"a":1,"b":"slash "} cut
        {"a": 1, "half a k
            → {"a":1} cut
        {"a": 1, "b": tr
            → {"a":1} cut
        {"a": [1, 23
            → {"a":[1]} cut
        {"a": "he said "go" to her"}
            → nothing
        {a: 1}
            → nothing
        {"a": 1}{"b": [2, 3]}
            → {"b":[2,3]}
        no JSON at all
            → nothing
        42
            → nothing

            → nothing
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_text_of_nothing_but_starts_is_given_up() {
    let starts = ["[", "{", "{\"a\":", "[\"", "{\"a\":[", "[\"\\\"", "[1,\"[\",", "{“", "[[]"];
    for start in starts {
        let text = start.repeat(1_000_000 / start.len());
        // A search that began anew at each start would not come to its end here.
        let found = find_json(&text);
        assert!(found.is_none_or(|found| found.cut), "{start}");
    }
    assert_eq!(find_json(&("[".repeat(200) + &"]".repeat(200))), None);
}

#[test]
fn arguments_that_were_cut_off_are_never_run() {
    let whole = r#"{"outputs": {"章.一": "灯\n👨‍👩‍👧 \ud83d\ude00\\", "n": [1, 2.5, null, true]}, "summary": "a \"b\""}"#;
    for (byte, _) in whole.char_indices().skip(1) {
        let raw = whole.get(..byte).expect("a border");
        let error = arguments(raw, false).expect_err(raw);
        assert!(error.contains("cut off"), "{raw}: {error}");
    }
    assert_eq!(arguments("", true).expect_err("cut"), arguments(" ", true).expect_err("cut").replace("after 1", "after 0"));
    let read = arguments(whole, true).expect("whole");
    assert_eq!((Value::Object(read.value), read.repaired), (serde_json::from_str(whole).expect("JSON"), false));
}

#[test]
fn arguments_as_models_write_them() {
    let raws = [
        "",
        "  \n",
        "null",
        "{}",
        r#"{"a": 1,}"#,
        "```json\n{\"a\": 1}\n```",
        r#""{\"a\": 1}""#,
        r#"{"a": 1}{"b": 2}"#,
        "[1]",
        "run it",
    ];
    let read = |raw: &&str| match arguments(raw, false) {
        Ok(arguments) => {
            let mark = if arguments.repaired { " repaired" } else { "" };
            format!("{raw:?} → {}{mark}\n", Value::Object(arguments.value))
        }
        Err(error) => format!("{raw:?} → {error}\n"),
    };
    expect![[r#"
        "" → {}
        "  \n" → {}
        "null" → {}
        "{}" → {}
        "{\"a\": 1,}" → {"a":1} repaired
        "```json\n{\"a\": 1}\n```" → {"a":1}
        "\"{\\\"a\\\": 1}\"" → {"a":1} repaired
        "{\"a\": 1}{\"b\": 2}" → the arguments are not one JSON object, so nothing was run: `{"a": 1}{"b": 2}`; call the tool again with one JSON object as its arguments
        "[1]" → the arguments are not one JSON object, so nothing was run: `[1]`; call the tool again with one JSON object as its arguments
        "run it" → the arguments are not one JSON object, so nothing was run: `run it`; call the tool again with one JSON object as its arguments
    "#]].assert_eq(&raws.iter().map(read).collect::<String>());
}

fn handed_in(text: &str, only: Option<&str>) -> String {
    let only = only.map(|tag| Tag::parse(tag).expect("a tag"));
    let Some(submission) = worker_outputs(text, only.as_ref()) else { return "nothing".to_owned() };
    let asked: Vec<&str> = submission.questions.iter().map(|question| question.prompt.as_str()).collect();
    let marks = [(submission.repaired, " repaired"), (submission.cut, " cut")];
    let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
    format!("{:?} summary {:?} asks {asked:?}{marks}", submission.outputs, submission.summary)
}

#[test]
fn a_worker_hands_in_without_a_call() {
    let replies = [
        (r#"{"outputs": {"章.一": "text", "表": {"patch": {}}, "无": null}, "summary": "done", "askUser": ["Go on?"]}"#, None),
        ("Here:\n```json\n{\"outputs\": {\"a\": \"x\ny\"},}\n```", None),
        (r#"{"ask_user": {"questions": ["Who?"]}}"#, Some("章.一")),
        (r#"{"outputs": "just the text"}"#, Some("章.一")),
        (r#"{"outputs": {"章.一": "cut he"#, Some("章.一")),
        (r#"{"outp"#, Some("章.一")),
        ("\n\n  她说：“走。”\n\n第二段 {注}\n \n", Some("章.一")),
        (r#"{"name": "a product that is JSON"}"#, Some("设定")),
        (r#"{"name": "a product that is JSON"}"#, None),
        ("A story.", None),
        (" \n", Some("章.一")),
    ];
    let table: String = replies.iter().map(|(text, only)| format!("{text:?}\n    → {}\n", handed_in(text, *only))).collect();
    expect![[r#"
        "{\"outputs\": {\"章.一\": \"text\", \"表\": {\"patch\": {}}, \"无\": null}, \"summary\": \"done\", \"askUser\": [\"Go on?\"]}"
            → {"章.一": "text", "表": "{\"patch\":{}}"} summary "done" asks ["Go on?"]
        "Here:\n```json\n{\"outputs\": {\"a\": \"x\ny\"},}\n```"
            → {"a": "x\ny"} summary "" asks [] repaired
        "{\"ask_user\": {\"questions\": [\"Who?\"]}}"
            → {} summary "" asks ["Who?"]
        "{\"outputs\": \"just the text\"}"
            → {"章.一": "just the text"} summary "" asks []
        "{\"outputs\": {\"章.一\": \"cut he"
            → {"章.一": "cut he"} summary "" asks [] cut
        "{\"outp"
            → {"章.一": "{\"outp"} summary "" asks [] cut
        "\n\n  她说：“走。”\n\n第二段 {注}\n \n"
            → {"章.一": "  她说：“走。”\n\n第二段 {注}"} summary "" asks []
        "{\"name\": \"a product that is JSON\"}"
            → {"设定": "{\"name\": \"a product that is JSON\"}"} summary "" asks []
        "{\"name\": \"a product that is JSON\"}"
            → nothing
        "A story."
            → nothing
        " \n"
            → nothing
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_decision_in_the_old_shape_is_a_call() {
    let replies = [
        r#"{"action": "run_worker", "workerId": "draft", "reason": "time", "requiresApproval": false}"#,
        "I think:\n```json\n{\"action\": {\"type\": \"finish\", \"reason\": \"done\"}}\n```",
        r#"{"tool": "run_worker", "arguments": {"workerId": "draft"}}"#,
        r#"{"action": "run_worker", "workerId": "dra"#,
        r#"{"action": 3}"#,
        r#"{"thought": "none"}"#,
        "Shall we?",
    ];
    let read = |text: &&str| match agent_decision(text) {
        Some((name, fields)) => format!("{name} {}\n", Value::Object(fields)),
        None => "none\n".to_owned(),
    };
    expect![[r#"
        run_worker {"workerId":"draft","reason":"time","requiresApproval":false}
        finish {"reason":"done"}
        run_worker {"workerId":"draft"}
        none
        none
        none
        none
    "#]]
    .assert_eq(&replies.iter().map(read).collect::<String>());
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![any::<String>(), "[“”\"\\\\{}\\[\\],:，：\n\t你👨‍👩‍👧e\u{301}`]{0,12}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(any::<String>(), any_json(), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(text in "[“”\"\\\\{}\\[\\],:，：\n\tnu01.eE+-你👨‍👩‍👧 `d8]{0,60}", cut_by_length: bool) {
        let _ = find_json(&text);
        let _ = arguments(&text, cut_by_length);
        let _ = worker_outputs(&text, Tag::parse("x").ok().as_ref());
        let _ = agent_decision(&text);
    }

    #[test]
    fn valid_json_comes_through_unchanged(value in any_object(), before in "[a-z你 \n]{0,8}", after in "[a-z你 \n`]{0,8}") {
        let written = [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")];
        for json in written {
            let expected: Value = serde_json::from_str(&json).expect("JSON");
            let found = find_json(&format!("{before}{json}{after}")).expect("it is there");
            prop_assert_eq!((&found.value, found.repaired, found.cut), (&expected, false, false));
            let read = arguments(&json, false).expect("an object");
            prop_assert_eq!(Value::Object(read.value), expected);
        }
    }

    #[test]
    fn a_cut_object_is_marked_or_is_the_whole(value in any_object(), pretty: bool) {
        let json = if pretty { serde_json::to_string_pretty(&value).expect("JSON") } else { value.to_string() };
        for (byte, _) in json.char_indices().skip(1) {
            let found = find_json(json.get(..byte).expect("a border")).expect("something is there");
            prop_assert!(found.cut, "cut at {} of {}", byte, json);
        }
    }
}
