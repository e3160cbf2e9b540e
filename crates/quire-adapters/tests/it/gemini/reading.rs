//! What is read from bytes, wherever they are cut.

use std::sync::LazyLock;
use std::time::Duration;

use expect_test::expect_file;
use proptest::prelude::*;
use quire_adapters::providers::Interruption;
use quire_adapters::providers::gemini::read_reply;
use serde_json::{Value, json};

use crate::fixture::{self, Fixture, Outcome, run};

fn document(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}})
}

fn event(document: &Value) -> String {
    format!("data: {document}\r\n\r\n")
}

fn parts(parts: Value) -> String {
    event(&document(parts))
}

fn text(text: &str) -> String {
    parts(json!([{"text": text}]))
}

fn call(id: Option<&str>, name: &str, arguments: Value, signature: Option<&str>) -> Value {
    let mut part = json!({"functionCall": {"name": name, "args": arguments}});
    if let Some(id) = id {
        part["functionCall"]["id"] = id.into();
    }
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

fn last(parts: Value, word: &str) -> Value {
    let mut last = document(parts);
    last["candidates"][0]["finishReason"] = word.into();
    last["usageMetadata"] = json!({"promptTokenCount": 100, "cachedContentTokenCount": 64, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "totalTokenCount": 125});
    last
}

fn finished(word: &str) -> String {
    event(&last(json!([{"text": ""}]), word))
}

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
    let mut fixtures = Vec::new();
    let mut add = |name, body: String| fixtures.push(Fixture::whole(name, body));

    // Text and ends
    add("a plain reply in any script", text("灯塔") + &text("熄了。👩‍👩‍👧‍👦 e\u{301}") + &finished("STOP"));
    add("no reason of the end", text("灯塔"));
    add("a reason that is none yet", text("灯塔") + &finished("FINISH_REASON_UNSPECIFIED"));
    add("an end mark of another wire", text("灯塔") + "data: [DONE]\n\n");
    add("nothing said, and a reason", finished("STOP"));
    add("an empty body", String::new());
    add("cut at the length limit", text("灯") + &finished("MAX_TOKENS"));
    for word in ["SAFETY", "RECITATION", "PROHIBITED_CONTENT"] {
        add("stopped by a filter", text("灯") + &finished(word));
    }
    add("a call that the provider could not read", finished("MALFORMED_FUNCTION_CALL"));
    add("a reason without content", event(&json!({"candidates": [{"finishReason": "STOP", "index": 0}]})));
    add("the prompt is blocked", event(&json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})));
    add(
        "the prompt is blocked, with words",
        event(&json!({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "不可以。"}})),
    );
    add("cut in the middle of an event", text("灯塔") + "data: {\"candidates\": [{\"conte");
    add("cut in an event behind the reason", text("灯塔") + &finished("STOP") + "data: {\"usageMetad");
    add("nobody says why", text("灯塔") + "upstream: out of memory\n\n");

    // The shape of events
    let proper = || text("灯塔") + &finished("STOP");
    add("LF", proper().replace('\r', ""));
    add("CR alone", proper().replace('\n', ""));
    add("comments", proper().replace("data: ", ": ping\n\ndata: "));
    add("no space behind the colon, and a byte order mark", "\u{feff}".to_owned() + &proper().replace("data: ", "data:"));
    add("no line break at the end", proper().trim_end().to_owned());
    add("no blank lines between events", proper().replace("\r\n\r\n", "\r\n"));
    add(
        "one document on several data lines",
        format!(
            "data: {}\n\n",
            serde_json::to_string_pretty(&last(json!([{"text": "灯塔"}]), "STOP")).expect("JSON").replace('\n', "\ndata: ")
        ),
    );
    add("documents in a wrapper", event(&json!({"response": last(json!([{"text": "灯塔"}]), "STOP")})));
    add(
        "no candidates, empty candidates, empty parts",
        event(&json!({"usageMetadata": {}})) + &event(&json!({"candidates": []})) + &parts(json!([])) + &proper(),
    );

    // Reasoning
    add(
        "thoughts",
        parts(json!([{"text": "先想", "thought": true}])) + &parts(json!([{"text": "想。", "thought": true}])) + &proper(),
    );
    add("only thoughts", parts(json!([{"text": "先想", "thought": true}])) + &finished("MAX_TOKENS"));
    add(
        "reasoning at the beginning of the text",
        text("<thi") + &text("nk>先想</think>") + &text("\n\n灯塔 <think>不是</think>") + &finished("STOP"),
    );
    add("a signature without a call", parts(json!([{"text": "灯塔", "thoughtSignature": "s"}])) + &finished("STOP"));

    // Calls
    add(
        "a call, text before",
        text("我来写。") + &parts(json!([call(None, "submit", json!({"正文": "灯塔👩‍🚀"}), None)])) + &finished("STOP"),
    );
    add(
        "signed calls with ids",
        parts(json!([call(Some("a"), "f", json!({"x": 1}), Some("c2ln")), call(Some("b"), "g", json!({}), None)]))
            + &finished("STOP"),
    );
    add("a signed call without an id", parts(json!([call(None, "f", json!({"x": 1}), Some("c2ln"))])) + &finished("STOP"));
    add(
        "a signature in front of its call",
        parts(json!([{"text": "", "thoughtSignature": "s"}]))
            + &parts(json!([call(None, "f", json!({"x": 1}), None)]))
            + &finished("STOP"),
    );
    add(
        "the old names of the fields",
        parts(json!([{"function_call": {"name": "f", "args": {"x": 1}}, "thought_signature": "s"}])) + &finished("STOP"),
    );
    add(
        "a call once more at the end",
        parts(json!([call(Some("a"), "f", json!({"x": 1}), None)]))
            + &event(&last(json!([call(Some("a"), "f", json!({"x": 1}), None)]), "STOP")),
    );
    add(
        "two equal calls without ids",
        parts(json!([call(None, "f", json!({"x": 1}), None), call(None, "f", json!({"x": 1}), None)])) + &finished("STOP"),
    );
    add(
        "the same id for two calls",
        parts(json!([call(Some("a"), "f", json!({"x": 1}), None), call(Some("a"), "f", json!({"x": 2}), None)]))
            + &finished("STOP"),
    );
    add(
        "no arguments, no name",
        parts(json!([{"functionCall": {"name": "f"}}, {"functionCall": {"args": null}}])) + &finished("STOP"),
    );
    add("arguments as a string", parts(json!([call(None, "f", "{\"x\": 灯".into(), None)])) + &finished("STOP"));
    add("a call and no reason", parts(json!([call(None, "f", json!({"x": 1}), None)])));
    add("a call and the length limit", parts(json!([call(None, "f", json!({"x": 1}), None)])) + &finished("MAX_TOKENS"));
    add("a call whose arguments were cut away", parts(json!([call(None, "f", json!({}), None)])) + &finished("MAX_TOKENS"));
    let sixteen: Vec<Value> = (0..16).map(|n| call(Some(&format!("c{n}")), "f", json!({"n": n}), None)).collect();
    add("sixteen calls", parts(sixteen.into()) + &finished("STOP"));

    // Whole documents
    add("a whole document", last(json!([{"text": "灯塔"}]), "STOP").to_string());
    add(
        "a list of documents",
        format!("[{}\n,\r\n{}]", document(json!([{"text": "灯"}])), last(json!([{"text": "塔"}]), "STOP")),
    );
    add("a list of documents, cut", format!("[{}\n,\r\n{{\"candi", document(json!([{"text": "灯"}]))));
    add("a document that is no reply", json!({"status": "ok"}).to_string());
    add("a web page", "\n<!DOCTYPE html><html><head><title>欢迎 to nginx</title></head></html>".to_owned());

    // Errors and the connection
    let error = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status}});
    add("overloaded in the middle", text("灯") + &event(&error(503, "UNAVAILABLE", "The model is overloaded.")));
    let mut limit = error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota");
    limit["error"]["details"] = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}]);
    add("a limit with the time to wait", event(&limit));
    add("a wrong key", event(&error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")));
    add(
        "too long a prompt",
        event(&error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        )),
    );
    add("an error in a list", format!("[{}]", error(404, "NOT_FOUND", "models/x is not found")));
    let broken = |name, body: String, interruption| Fixture { name, body: body.into_bytes(), interruption: Some(interruption) };
    let reset = || Interruption::Broken { cause: "connection reset".to_owned() };
    fixtures.push(broken("the connection breaks in an event", text("灯塔") + "data: {\"candi", reset()));
    fixtures.push(broken("the connection breaks when all was said", proper(), reset()));
    fixtures.push(broken("silence", text("灯塔"), Interruption::Stalled(Duration::from_secs(120))));
    let invalid: Vec<u8> =
        (text("灯#塔") + &finished("STOP")).bytes().map(|byte| if byte == b'#' { 0xFF } else { byte }).collect();
    fixtures.push(Fixture::whole("a byte that is no character", invalid));
    fixtures
});

fn read(fixture: &Fixture, cuts: &[usize]) -> Outcome {
    run(fixture, cuts, async |bytes, deltas| read_reply("the server", "model-1", bytes, deltas).await)
}

#[test]
fn each_fault_is_read_as_it_was_meant() {
    expect_file!["reading.txt"].assert_eq(&fixture::told(&FIXTURES, read));
}

#[test]
fn what_was_passed_on_is_what_the_reply_holds() {
    fixture::assert_passed_on(&FIXTURES, read);
}

#[test]
fn a_cut_at_any_one_byte_changes_nothing() {
    fixture::assert_any_one_cut(&FIXTURES, read);
}

proptest! {
    #[test]
    fn cuts_anywhere_change_nothing(which in 0..FIXTURES.len(), cuts in prop::collection::btree_set(0_usize..2_000, 0..40)) {
        fixture::assert_cuts(&FIXTURES[which], &cuts, read);
    }
}
