//! What is read from bytes, wherever they are cut.

use std::sync::LazyLock;
use std::time::Duration;

use expect_test::expect_file;
use proptest::prelude::*;
use quire_adapters::providers::Interruption;
use quire_adapters::providers::anthropic::read_reply;
use serde_json::{Value, json};

use crate::fixture::{self, Fixture, Outcome, run};

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
}

fn started() -> String {
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 1});
    event(&json!({"type": "message_start", "message": {"id": "m", "type": "message", "content": [], "usage": usage}}))
}

fn begun(index: u64, block: Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn piece(index: u64, delta: Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn ended(index: u64) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

fn text(index: u64, pieces: &[&str]) -> String {
    let pieces: String = pieces.iter().map(|text| piece(index, json!({"type": "text_delta", "text": text}))).collect();
    begun(index, json!({"type": "text", "text": ""})) + &pieces + &ended(index)
}

fn thinking(index: u64, thought: &str, signature: &str) -> String {
    begun(index, json!({"type": "thinking", "thinking": "", "signature": ""}))
        + &piece(index, json!({"type": "thinking_delta", "thinking": thought}))
        + &piece(index, json!({"type": "signature_delta", "signature": signature}))
        + &ended(index)
}

fn call(index: u64, id: &str, name: &str, pieces: &[&str]) -> String {
    let pieces: String = pieces.iter().map(|json| arguments(index, json)).collect();
    begun(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}})) + &pieces + &ended(index)
}

fn arguments(index: u64, partial: &str) -> String {
    piece(index, json!({"type": "input_json_delta", "partial_json": partial}))
}

fn finished(word: &str) -> String {
    event(&json!({"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 5}})) + &stop()
}

fn stop() -> String {
    event(&json!({"type": "message_stop"}))
}

fn whole(content: Value, stop_reason: Value) -> String {
    json!({"id": "m", "type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason, "usage": {"input_tokens": 3, "output_tokens": 2}}).to_string()
}

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
    let mut fixtures = Vec::new();
    let mut add = |name, body: String| fixtures.push(Fixture::whole(name, body));
    let said = || started() + &text(0, &["灯塔"]);

    // Text and ends
    add("a plain reply in any script", started() + &text(0, &["灯塔", "熄了。👩‍👩‍👧‍👦 e\u{301}"]) + &finished("end_turn"));
    add("no reason and no end mark", said());
    add("an end mark without a reason", said() + &stop());
    add("an end mark and nothing else", started() + &stop());
    add("a reason and no end mark", said() + &finished("end_turn").replace(&stop(), ""));
    add("nothing said, and a reason", started() + &finished("end_turn"));
    add("an empty body", String::new());
    add("cut at the length limit", said() + &finished("max_tokens"));
    add("cut at the end of the context", said() + &finished("model_context_window_exceeded"));
    add("stopped at a word", said() + &finished("stop_sequence"));
    add("a refusal", said() + &finished("refusal"));
    add("a word of the provider's own", said() + &finished("pause_turn"));
    add("what comes behind the end mark is not read", said() + &finished("end_turn") + &text(1, &["熄"]));
    add("cut in the middle of an event", said() + "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"del");
    add("nobody says why", said() + "upstream: out of memory\n\n");

    // The shape of events
    let proper = || said() + &finished("end_turn");
    add(
        "pings and comments",
        proper().replace("event: content_block_stop", ": ping\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: x"),
    );
    add("CRLF", proper().replace('\n', "\r\n"));
    add("CR alone", proper().replace('\n', "\r"));
    add("no event lines", proper().lines().filter(|line| !line.starts_with("event:")).collect::<Vec<_>>().join("\n"));
    add("no space behind the colon, and a byte order mark", "\u{feff}".to_owned() + &proper().replace("data: ", "data:"));
    add("no line break at the end", proper().trim_end().to_owned());
    add("no blank lines between events", proper().replace("\n\n", "\n"));
    add("an end mark of another wire", proper().replace(&stop(), "data: [DONE]\n\n"));
    add("no message_start", text(0, &["灯塔"]) + &finished("end_turn"));

    // Blocks
    add("no block was begun", started() + &piece(0, json!({"type": "text_delta", "text": "灯塔"})) + &finished("end_turn"));
    add(
        "text in the block's beginning",
        started()
            + &begun(0, json!({"type": "text", "text": "灯"}))
            + &piece(0, json!({"type": "text_delta", "text": "塔"}))
            + &finished("end_turn"),
    );
    add("two texts", started() + &text(0, &["灯"]) + &text(1, &["塔"]) + &finished("end_turn"));
    add("no indexes", (said() + &finished("end_turn")).replace("\"index\":0,", ""));
    add(
        "the same index for each block",
        started()
            + &text(0, &["灯塔"])
            + &call(0, "a", "f", &["{\"x\":", "1}"])
            + &call(0, "b", "g", &["{\"y\":2}"])
            + &finished("tool_use"),
    );
    add(
        "blocks of other kinds",
        started()
            + &begun(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}))
            + &arguments(0, "{}")
            + &ended(0)
            + &text(1, &["灯塔"])
            + &finished("end_turn"),
    );

    // Reasoning
    add("thinking with a signature", started() + &thinking(0, "先想想。", "c2ln") + &text(1, &["灯塔"]) + &finished("end_turn"));
    add("thinking without a signature", started() + &thinking(0, "先想想。", "") + &text(1, &["灯塔"]) + &finished("end_turn"));
    add(
        "thinking twice, once unreadable",
        started()
            + &thinking(0, "先想。", "a")
            + &begun(1, json!({"type": "redacted_thinking", "data": "x7"}))
            + &ended(1)
            + &thinking(2, "再想。", "b")
            + &call(3, "a", "f", &["{}"])
            + &finished("tool_use"),
    );
    add(
        "reasoning at the beginning of the text",
        started() + &text(0, &["<thi", "nk>先想</think>", "\n\n灯塔 <think>不是</think>"]) + &finished("end_turn"),
    );
    add("reasoning in the text that is never closed", started() + &text(0, &["<think>先想"]) + &finished("max_tokens"));

    // Calls
    add(
        "a call in fragments, text before",
        started()
            + &text(0, &["我来写。"])
            + &call(1, "a", "submit", &["", "{\"正", "文\":\"灯塔👩‍🚀\"", "}"])
            + &finished("tool_use"),
    );
    add("two calls", started() + &call(0, "a", "f", &["{\"x\":1}"]) + &call(1, "b", "g", &[]) + &finished("tool_use"));
    add(
        "two calls interleaved",
        started()
            + &begun(0, json!({"type": "tool_use", "id": "a", "name": "f"}))
            + &begun(1, json!({"type": "tool_use", "id": "b", "name": "g"}))
            + &arguments(0, "{\"x\":")
            + &arguments(1, "{\"y\":")
            + &arguments(0, "1}")
            + &arguments(1, "2}")
            + &finished("tool_use"),
    );
    add(
        "the input whole in the beginning",
        started()
            + &begun(0, json!({"type": "tool_use", "id": "a", "name": "f", "input": {"正": 1}}))
            + &ended(0)
            + &finished("tool_use"),
    );
    add(
        "the same id for two calls",
        started() + &call(0, "a", "f", &["{\"x\":1}"]) + &call(1, "a", "f", &["{\"x\":2}"]) + &finished("tool_use"),
    );
    add("neither id nor name", started() + &arguments(0, "{\"x\":1}") + &finished("tool_use"));
    add("arguments that are broken", started() + &call(0, "a", "f", &["{\"x\": 灯"]) + &finished("tool_use"));
    add("a call cut at the length limit", started() + &call(0, "a", "f", &["{\"正文\":\"灯"]) + &finished("max_tokens"));
    add("a call cut before its first letter", started() + &call(0, "a", "f", &[]) + &finished("max_tokens"));
    add(
        "a call cut without an end",
        started() + &begun(0, json!({"type": "tool_use", "id": "a", "name": "f"})) + &arguments(0, "{\"正文\":\"灯"),
    );
    add("a call and a wrong reason", started() + &call(0, "a", "f", &["{}"]) + &finished("end_turn"));
    let sixteen: String = (0..16).map(|index| call(index, &format!("c{index}"), "f", &[&format!("{{\"n\":{index}}}")])).collect();
    add("sixteen calls", started() + &sixteen + &finished("tool_use"));

    // Whole documents
    let content = json!([{"type": "thinking", "thinking": "想", "signature": "s"}, {"type": "text", "text": "灯塔"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]);
    add("a whole message", whole(content, "tool_use".into()));
    add("a whole message without a reason", whole(json!([{"type": "text", "text": "灯塔"}]), Value::Null));
    add(
        "a whole message, cut",
        whole(json!([{"type": "text", "text": "灯塔"}]), "end_turn".into()).trim_end_matches('}').to_owned(),
    );
    add("a document that is no message", json!({"status": "ok"}).to_string());
    add("a web page", "\n<!DOCTYPE html><html><head><title>欢迎 to nginx</title></head></html>".to_owned());

    // Errors and the connection
    let error = |kind: &str, message: &str| event(&json!({"type": "error", "error": {"type": kind, "message": message}}));
    add("overloaded in the middle", said() + &error("overloaded_error", "Overloaded"));
    add("a limit in the middle", said() + &error("rate_limit_error", "Too many tokens"));
    add("a wrong key after all", error("authentication_error", "invalid x-api-key"));
    add("a wrong request after all", error("invalid_request_error", "messages: 角色 is wrong"));
    add("too long a prompt", error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"));
    add("an error without a kind", said() + "event: error\ndata: {\"message\":\"boom\"}\n\n");
    let broken = |name, body: String, interruption| Fixture { name, body: body.into_bytes(), interruption: Some(interruption) };
    let reset = || Interruption::Broken { cause: "connection reset".to_owned() };
    fixtures.push(broken(
        "the connection breaks in a call",
        started() + &begun(0, json!({"type": "tool_use", "id": "a", "name": "f"})) + &arguments(0, "{\"x"),
        reset(),
    ));
    fixtures.push(broken(
        "the connection breaks when all was said",
        said() + &finished("end_turn").replace(&stop(), ""),
        reset(),
    ));
    fixtures.push(broken("silence", said(), Interruption::Stalled(Duration::from_secs(120))));
    let invalid: Vec<u8> = (started() + &text(0, &["灯#塔"]) + &finished("end_turn"))
        .bytes()
        .map(|byte| if byte == b'#' { 0xFF } else { byte })
        .collect();
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

#[test]
fn a_reply_may_be_long() {
    let long = "灯塔熄了。".repeat(40_000);
    let fixture = Fixture::whole("a long reply", started() + &text(0, &[&long]) + &finished("end_turn"));
    assert_eq!(read(&fixture, &[1_000, 100_001]).0.expect("a reply").text.chars().count(), 200_000);
}
