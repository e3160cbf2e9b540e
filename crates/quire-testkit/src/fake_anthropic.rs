//! Messages of Anthropic: what a server says, and what it would refuse.

use std::collections::BTreeSet;

use quire_core::message::ToolCall;
use serde_json::{Value, json};

use crate::fake_model::{Completion, INPUT_TOKENS, is_name, output_tokens, pieces, require};

/// Marks for the cache that one request may hold.
const CACHE_MARKS_MAX: usize = 4;

pub(crate) fn streamed(completion: &Completion) -> Vec<String> {
    let Completion { text, reasoning, signature, calls, is_cut: _ } = completion;
    let usage = json!({"input_tokens": INPUT_TOKENS, "output_tokens": 1});
    let message =
        json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let mut index = 0;
    let mut block = |begun: Value, deltas: Vec<Value>| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.extend(deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if !reasoning.is_empty() {
        let mut deltas: Vec<Value> =
            pieces(reasoning).map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        deltas.extend((!signature.is_empty()).then(|| json!({"type": "signature_delta", "signature": signature})));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !text.is_empty() {
        let deltas = pieces(text).map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        block(json!({"type": "text", "text": ""}), deltas);
    }
    for ToolCall { id, name, arguments } in calls {
        let deltas = pieces(arguments).map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect();
        block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas);
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(completion)}, "usage": {"output_tokens": output_tokens(completion)}}));
    events.push(json!({"type": "message_stop"}));
    events.into_iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())).collect()
}

pub(crate) fn whole(completion: &Completion) -> Value {
    let Completion { text, reasoning, signature, calls, is_cut: _ } = completion;
    let mut content = vec![];
    content.extend((!reasoning.is_empty()).then(|| json!({"type": "thinking", "thinking": reasoning, "signature": signature})));
    content.extend((!text.is_empty()).then(|| json!({"type": "text", "text": text})));
    content.extend(calls.iter().map(|ToolCall { id, name, arguments }| {
        let input: Value = serde_json::from_str(arguments).unwrap_or_default();
        json!({"type": "tool_use", "id": id, "name": name, "input": input})
    }));
    let usage = json!({"input_tokens": INPUT_TOKENS, "output_tokens": output_tokens(completion)});
    json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason(completion), "usage": usage})
}

fn stop_reason(completion: &Completion) -> &'static str {
    match (completion.is_cut, completion.calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, true) => "end_turn",
        (false, false) => "tool_use",
    }
}

pub(crate) fn complaint(request: &Value) -> Option<String> {
    check_request(request).err()
}

fn check_request(request: &Value) -> Result<(), String> {
    require(request["model"].as_str().is_some_and(|model| !model.is_empty()), || "model: Field required".to_owned())?;
    require(request["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0), || "max_tokens: Field required".to_owned())?;
    for block in request["system"].as_array().into_iter().flatten() {
        check_text(block).map_err(|wrong| format!("system: {wrong}"))?;
    }
    let messages = request["messages"]
        .as_array()
        .filter(|messages| !messages.is_empty())
        .ok_or("messages: at least one message is required")?;
    check_messages(messages)?;
    let marks = request.to_string().matches("\"cache_control\"").count();
    require(marks <= CACHE_MARKS_MAX, || format!("a maximum of 4 blocks with cache_control may be provided, found {marks}"))?;
    check_tools(request)
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    let mut ids_seen = BTreeSet::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let place = |wrong: String| format!("messages.{at}: {wrong}");
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        require(message["role"] == expected, || place(format!("role must be {expected}: roles must alternate, user first")))?;
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or_else(|| place("content must be a list with at least one block".to_owned()))?;
        let mut is_after_results = false;
        for block in blocks {
            match (block["type"].as_str().unwrap_or_default(), expected) {
                ("text", _) => check_text(block).map_err(place)?,
                ("tool_result", "user") => {
                    require(!is_after_results, || place("tool_result blocks must come first".to_owned()))?;
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    require(open.remove(id), || place(format!("unexpected tool_use_id: {id}")))?;
                    require(block["content"].as_str().is_some_and(|text| !text.is_empty()), || {
                        place("a tool_result must have content".to_owned())
                    })?;
                }
                ("thinking", "assistant") => require(block["signature"].as_str().is_some_and(|text| !text.is_empty()), || {
                    place("thinking.signature: Field required".to_owned())
                })?,
                ("redacted_thinking", "assistant") => {
                    require(block["data"].is_string(), || place("redacted_thinking.data: Field required".to_owned()))?;
                }
                ("tool_use", "assistant") => {
                    let id = block["id"].as_str().unwrap_or_default();
                    require(is_id(id), || place(format!("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {id:?}")))?;
                    require(ids_seen.insert(id), || place(format!("tool_use ids must be unique: {id}")))?;
                    require(is_name(&block["name"]) && block["input"].is_object(), || {
                        place("tool_use must have a name and an input object".to_owned())
                    })?;
                    open.insert(id);
                }
                (other, _) => return Err(place(format!("unexpected block {other:?}"))),
            }
            is_after_results |= block["type"] != "tool_result";
        }
        require(expected == "assistant" || open.is_empty(), || {
            place(format!("tool_use ids were found without tool_result blocks immediately after: {open:?}"))
        })?;
    }
    require(open.is_empty(), || format!("the last tool_use blocks have no result: {open:?}"))
}

fn check_text(block: &Value) -> Result<(), String> {
    let is_said = block["text"].as_str().is_some_and(|text| !text.trim().is_empty());
    require(is_said, || "text content blocks must contain non-whitespace text".to_owned())
}

fn check_tools(request: &Value) -> Result<(), String> {
    let Some(tools) = request.get("tools") else {
        return require(request.get("tool_choice").is_none(), || "tool_choice may only be specified with tools".to_owned());
    };
    for tool in tools.as_array().into_iter().flatten() {
        require(is_name(&tool["name"]) && tool["input_schema"]["type"] == "object", || format!("this is no tool: {tool}"))?;
    }
    Ok(())
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
