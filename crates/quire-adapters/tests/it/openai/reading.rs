//! What is read from bytes, wherever they are cut.

use std::sync::LazyLock;

use expect_test::expect_file;
use proptest::prelude::*;
use quire_adapters::providers::Interruption;
use quire_adapters::providers::openai::read_reply;
use serde_json::{Value, json};

use crate::fixture::{self, Fixture, Outcome, run};

/// One event with one choice.
fn event(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn said(text: &str) -> String {
    event(&json!({"content": text}))
}

fn finished(word: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {}, "finish_reason": word}]}))
}

/// Events with one piece of a call each, and a proper end.
fn calls(pieces: &[Value]) -> String {
    let pieces: String = pieces.iter().map(|piece| event(&json!({"tool_calls": [piece]}))).collect();
    pieces + &finished("tool_calls") + DONE
}

const DONE: &str = "data: [DONE]\n\n";

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
    let mut fixtures = Vec::new();
    let mut add = |name, body: String| fixtures.push(Fixture { name, body: body.into_bytes(), interruption: None });

    // Text and ends
    add("a plain reply in any script", said("灯塔") + &said("熄了。👩‍👩‍👧‍👦 e\u{301}") + &finished("stop") + DONE);
    add("no finish_reason and no end mark", said("灯塔"));
    add("an end mark without finish_reason", said("灯塔") + DONE);
    add("an end mark and nothing else", DONE.to_owned());
    add("a finish_reason and no end mark", said("灯塔") + &finished("stop"));
    add("an empty body", String::new());
    add("cut at the length limit", said("灯") + &finished("length") + DONE);
    add("stopped by the filter", said("灯") + &finished("content_filter") + DONE);
    add("a word of the provider's own", said("灯") + &finished("insufficient_system_resource") + DONE);
    add("an empty finish_reason in each piece", finished("") + &said("灯") + &finished("stop"));
    add("what comes behind the end mark is not read", said("灯") + &finished("stop") + DONE + &said("塔"));
    add("cut in the middle of an event", said("灯塔") + "data: {\"choices\":[{\"delta\":{\"content\":\"熄");
    add("cut in the last event, which only counts tokens", said("灯塔") + &finished("stop") + "data: {\"choices\":[],\"us");
    add("nobody says why", said("灯") + "data: out of memory\n\n");
    add("a refusal", event(&json!({"refusal": "I can't help with that."})) + &finished("stop") + DONE);

    // The shape of events
    add(
        "comments, ids and retry lines",
        format!(": ping\n\nid: 7\nretry: 10\n{}: ping\n{}{DONE}", said("灯塔"), finished("stop")),
    );
    add("CRLF", (said("灯塔") + &finished("stop") + DONE).replace('\n', "\r\n"));
    add("CR alone", (said("灯塔") + &finished("stop") + DONE).replace('\n', "\r"));
    add(
        "no space behind the colon, and a byte order mark",
        "\u{feff}".to_owned() + &(said("灯塔") + &finished("stop")).replace("data: ", "data:"),
    );
    add("no line break at the end", (said("灯塔") + &finished("stop")).trim_end().to_owned());
    add(
        "one document on several data lines",
        "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"灯塔\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n".to_owned(),
    );
    add("no blank lines between events", (said("灯") + &said("塔") + &finished("stop") + DONE).replace("\n\n", "\n"));
    add(
        "empty choices, no choices, other documents",
        format!("data: {{\"choices\":[]}}\n\ndata: {{\"id\":\"x\"}}\n\ndata: ping\n\n{}{}", said("灯塔"), finished("stop")),
    );
    add(
        "message instead of delta",
        format!("data: {}\n\n", json!({"choices": [{"message": {"content": "灯塔"}, "finish_reason": "stop"}]})),
    );
    add(
        "the whole message once more at the end",
        said("灯")
            + &said("塔")
            + &format!("data: {}\n\n", json!({"choices": [{"message": {"content": "灯塔"}, "finish_reason": "stop"}]})),
    );
    add(
        "content in parts",
        event(
            &json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "想"}]}, {"type": "text", "text": "灯塔"}]}),
        ) + &finished("stop"),
    );

    // Whole documents
    let whole = |message: Value, finish: Value| json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    add("a whole document", whole(json!({"content": "灯塔"}), "stop".into()).to_string());
    add(
        "a whole document with calls",
        serde_json::to_string_pretty(&whole(json!({"content": null, "tool_calls": [{"id": "a", "function": {"name": "submit", "arguments": "{\"题\":1}"}}, {"id": "b", "function": {"name": "ask_user", "arguments": "{}"}}]}), "tool_calls".into())).expect("JSON"),
    );
    add("a whole document without finish_reason", whole(json!({"content": "灯塔"}), Value::Null).to_string());
    add("a whole document, cut", whole(json!({"content": "灯塔"}), "stop".into()).to_string().trim_end_matches('}').to_owned());
    add("a document that is no completion", json!({"status": "ok"}).to_string());
    add("a web page", "\n<!DOCTYPE html><html><head><title>欢迎 to nginx</title></head><body>…</body></html>".to_owned());
    add("plain words", "Not Found: 没有".to_owned());

    // Reasoning
    for field in ["reasoning_content", "reasoning", "thinking"] {
        add(field, event(&json!({field: "先想"})) + &event(&json!({field: "想。"})) + &said("灯塔") + &finished("stop"));
    }
    add(
        "the same reasoning under two names",
        event(&json!({"reasoning_content": "想", "reasoning": "想"})) + &said("灯塔") + &finished("stop"),
    );
    add(
        "reasoning at the beginning of the text",
        said("\n<thi")
            + &said("nk>先想 </")
            + &said("b> 想</thin")
            + &said("k>\n\n")
            + &said("灯塔 <think>不是</think>")
            + &finished("stop"),
    );
    add("reasoning that is never closed", said("<think>先想") + &said("</thi") + &finished("length"));
    add("a text that only looks like reasoning", said("<th") + &said("ing>灯塔</thing>") + &finished("stop"));
    add("a text of one sign", said("<") + &finished("stop"));

    // Calls
    add(
        "a call in fragments, text before",
        said("我来写。")
            + &calls(&[
                json!({"index": 0, "id": "a", "type": "function", "function": {"name": "submit", "arguments": ""}}),
                json!({"index": 0, "function": {"arguments": "{\"正文\":\"灯"}}),
                json!({"index": 0, "function": {"arguments": "塔👩‍🚀\"}"}}),
            ]),
    );
    let whole_call =
        |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
    let at = |index: u64, mut piece: Value| {
        piece["index"] = index.into();
        piece
    };
    let tail = |arguments: &str| json!({"function": {"arguments": arguments}});
    add(
        "whole calls in one piece, no index",
        event(&json!({"tool_calls": [whole_call("a", "f", "{\"x\":1}"), whole_call("b", "g", "{}")]})) + &finished("tool_calls"),
    );
    add(
        "whole calls in one piece, neither index nor id",
        event(&json!({"tool_calls": [whole_call("", "f", "{\"x\":1}"), whole_call("", "f", "{\"x\":2}")]}))
            + &finished("tool_calls"),
    );
    add(
        "two calls interleaved",
        calls(&[
            at(0, whole_call("a", "f", "")),
            at(1, whole_call("b", "g", "")),
            at(0, tail("{\"x\"")),
            at(1, tail("{\"y\"")),
            at(0, tail(":1}")),
            at(1, tail(":2}")),
        ]),
    );
    add(
        "index 1 before index 0",
        calls(&[
            at(1, whole_call("b", "g", "")),
            at(0, whole_call("a", "f", "")),
            at(1, tail("{\"y\":2}")),
            at(0, tail("{\"x\":1}")),
        ]),
    );
    add(
        "indexes that begin at 1",
        calls(&[at(1, whole_call("a", "f", "{\"x\"")), at(1, tail(":1}")), at(2, whole_call("b", "g", "{}"))]),
    );
    add(
        "all calls at index 0, by id",
        calls(&[
            at(0, whole_call("a", "f", "{\"x\"")),
            at(0, tail(":1}")),
            at(0, whole_call("b", "f", "{\"x\"")),
            at(0, tail(":2}")),
        ]),
    );
    add(
        "all calls at index 0, no ids",
        calls(&[
            at(0, whole_call("", "f", "{\"x\":1}")),
            at(0, whole_call("", "f", "{\"x\":2}")),
            at(0, whole_call("", "g", "{}")),
        ]),
    );
    add(
        "head at index 0, tail at 1 by id",
        calls(&[
            at(0, whole_call("a", "f", "")),
            at(1, json!({"id": "a", "function": {"arguments": "{\"x\""}})),
            at(1, tail(":1}")),
        ]),
    );
    add("head at index 0, tail at 1 without id", calls(&[at(0, whole_call("a", "f", "{\"x\"")), at(1, tail(":1}"))]));
    add(
        "index only on the first piece",
        calls(&[at(0, whole_call("a", "f", "")), tail("{\"x\""), tail(":1}"), at(1, whole_call("b", "g", "")), tail("{}")]),
    );
    add(
        "no index, id on each piece",
        calls(&[
            whole_call("a", "f", "{\"x\""),
            whole_call("b", "g", "{\"y\""),
            whole_call("a", "", ":1}"),
            whole_call("b", "", ":2}"),
        ]),
    );
    add(
        "index as a string",
        calls(&[
            json!({"index": "0", "id": "a", "function": {"name": "f", "arguments": "{}"}}),
            json!({"index": "1", "id": "b", "function": {"name": "g", "arguments": "{}"}}),
        ]),
    );
    add(
        "id and name late",
        calls(&[
            at(0, tail("{\"x\"")),
            at(0, json!({"function": {"name": "f"}})),
            at(0, json!({"id": "a", "function": {"arguments": ":1}"}})),
        ]),
    );
    add("id never, name never", calls(&[at(0, tail("{\"x\":1}")), at(1, tail("{}"))]));
    add(
        "the same id for two calls",
        calls(&[at(0, whole_call("a", "f", "{\"x\":1}")), at(1, whole_call("a", "f", "")), at(1, tail("{\"x\":2}"))]),
    );
    add(
        "name and id on each piece",
        calls(&[at(0, whole_call("a", "f", "{\"x\"")), at(0, whole_call("a", "f", ":1}")), at(0, whole_call("a", "f", ""))]),
    );
    add(
        "a name in fragments",
        calls(&[at(0, whole_call("a", "run_", "")), at(0, json!({"function": {"name": "worker"}})), at(0, tail("{}"))]),
    );
    add(
        "arguments as an object",
        calls(&[json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"正文": "灯塔", "n": 1}}})]),
    );
    add("arguments that are broken", calls(&[at(0, whole_call("a", "f", "{\"x\": 灯"))]));
    add(
        "arguments that are missing",
        calls(&[json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": null}}), json!({"index": 1})]),
    );
    add(
        "a call cut at the length limit",
        event(&json!({"tool_calls": [at(0, whole_call("a", "f", "{\"正文\":\"灯"))]})) + &finished("length"),
    );
    add("a call cut without an end", event(&json!({"tool_calls": [at(0, whole_call("a", "f", "{\"正文\":\"灯"))]})));
    add(
        "the old function_call",
        event(&json!({"function_call": {"name": "f", "arguments": ""}}))
            + &event(&json!({"function_call": {"arguments": "{\"x\":1}"}}))
            + &finished("function_call"),
    );

    // Tokens
    let counted =
        |usage: Value| said("灯塔") + &finished("stop") + &format!("data: {}\n\n", json!({"choices": [], "usage": usage})) + DONE;
    add(
        "tokens: cached, reasoning counted in",
        counted(
            json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 5}}),
        ),
    );
    add(
        "tokens: reasoning counted apart",
        counted(
            json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 125, "completion_tokens_details": {"reasoning_tokens": 5}}),
        ),
    );
    add(
        "tokens: cache hits by another name",
        counted(
            json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}),
        ),
    );
    add(
        "tokens: null until the last piece",
        format!("data: {}\n\n", json!({"choices": [{"delta": {"content": ""}}], "usage": null}))
            + &counted(json!({"input_tokens": 7, "output_tokens": 2})),
    );
    add(
        "tokens: in the choice",
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": "灯塔"}, "finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 4}}]})
        ),
    );

    // Errors behind a good status
    let error = |error: Value| format!("data: {error}\n\n");
    add(
        "an error object in the stream",
        said("灯") + &error(json!({"error": {"message": "The server is 过载.", "type": "server_error", "code": null}})) + DONE,
    );
    add(
        "an error with the code of a status",
        error(
            json!({"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "slow down"}}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
        ),
    );
    add("an error as a string", error(json!({"error": "model 'x' is not loaded"})));
    add("an error event", "event: error\ndata: {\"message\":\"boom\"}\n\n".to_owned());
    add(
        "a marked error",
        error(json!({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400})),
    );
    add(
        "error: null in each piece",
        format!("data: {}\n\n", json!({"error": null, "choices": [{"delta": {"content": "灯塔"}, "finish_reason": "stop"}]})),
    );
    add("an error in a list", json!([{"error": {"code": 404, "message": "models/x is not found"}}]).to_string());

    // The connection
    let broken = |name, body: String, interruption| Fixture { name, body: body.into_bytes(), interruption: Some(interruption) };
    let reset = || Interruption::Broken { cause: "connection reset".to_owned() };
    fixtures.push(broken("the connection breaks in an event", said("灯塔") + "data: {\"choi", reset()));
    fixtures.push(broken("the connection breaks when all was said", said("灯塔") + &finished("stop"), reset()));
    fixtures.push(broken("silence", said("灯塔"), Interruption::Stalled(std::time::Duration::from_secs(120))));
    let mut invalid = said("灯#塔").into_bytes();
    invalid.iter_mut().filter(|byte| **byte == b'#').for_each(|byte| *byte = 0xFF);
    invalid.extend(finished("stop").into_bytes());
    fixtures.push(Fixture { name: "a byte that is no character", body: invalid, interruption: None });
    fixtures
});

fn read(fixture: &Fixture, cuts: &[usize]) -> Outcome {
    run(fixture, cuts, async |bytes, deltas| read_reply("the server", bytes, deltas).await)
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
