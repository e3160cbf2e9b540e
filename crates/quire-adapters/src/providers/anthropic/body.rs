//! The body of one request for messages.
//!
//! The rules stand apart from the messages, user and assistant take turns, and the answers to calls are the beginning of
//! the user's turn. The rules and the stable part of a user's text end in a mark for the cache: they come again.

use quire_core::message::{Message, OfferedTool, ToolCall};
use quire_runtime::ports::ModelRequest;
use serde_json::{Map, Value, json};

use super::{AnthropicConfig, WIRE};
use crate::providers::refusals::Refusals;
use crate::providers::transcript::arguments_object;
use crate::providers::want::Want;
use crate::providers::{output_tokens, reasoning};

/// Marks for the cache in one request: the wire takes four, and the rules have the first.
const USER_MARKS_MAX: usize = 3;

/// Builds the body: same arguments, same bytes.
pub(super) fn body(config: &AnthropicConfig, refusals: &Refusals, request: &ModelRequest, want: &Want) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), config.model.clone().into());
    body.insert("max_tokens".into(), output_tokens(config.context_tokens, config.output_tokens_max).into());
    if let Some(system) = system(&request.messages) {
        body.insert("system".into(), system);
    }
    body.insert("messages".into(), turns(config, &request.messages).into());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(offered).collect());
        let choice = match want {
            Want::Tool(name) => json!({"type": "tool", "name": name}),
            Want::Reply | Want::Whole | Want::Schema(_) | Want::JsonObject => json!({"type": "auto"}),
        };
        if refusals.takes("tool_choice") {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let (Want::Schema(schema), true) = (want, refusals.takes("output_config")) {
        body.insert("output_config".into(), json!({"format": {"type": "json_schema", "schema": schema}}));
    }
    if *want != Want::Whole {
        body.insert("stream".into(), true.into());
    }
    for (name, value) in &config.parameters {
        if refusals.takes(name) && !body.contains_key(name) {
            body.insert(name.clone(), value.clone());
        }
    }
    Value::Object(body)
}

fn system(messages: &[Message]) -> Option<Value> {
    let mut blocks: Vec<Value> = messages
        .iter()
        .filter_map(|message| match message {
            Message::System { text } => text_block(text),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
        })
        .collect();
    mark(blocks.last_mut()?);
    Some(blocks.into())
}

fn turns(config: &AnthropicConfig, messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut marks_left = USER_MARKS_MAX;
    for message in messages {
        let (role, blocks) = match message {
            Message::System { .. } => continue,
            Message::User { text, stable_bytes } => ("user", said_by_user(text, *stable_bytes, &mut marks_left)),
            Message::Tool { call_id, text } => {
                ("user", vec![json!({"type": "tool_result", "tool_use_id": sendable_id(call_id), "content": &**text})])
            }
            Message::Assistant { text, reasoning, calls } => ("assistant", said_by_model(config, text, reasoning, calls)),
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, turn)) if *last == role => turn.extend(blocks),
            Some(_) | None => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn said_by_user(text: &str, stable_bytes: usize, marks_left: &mut usize) -> Vec<Value> {
    let (stable, rest) = text.split_at_checked(stable_bytes).unwrap_or(("", text));
    let (Some(mut stable), true) = (text_block(stable), *marks_left > 0) else { return text_block(text).into_iter().collect() };
    *marks_left -= 1;
    mark(&mut stable);
    [stable].into_iter().chain(text_block(rest)).collect()
}

fn said_by_model(config: &AnthropicConfig, text: &str, stored_reasoning: &str, calls: &[ToolCall]) -> Vec<Value> {
    // Signed thinking is asked for again only with the calls it led to.
    let thinking = if calls.is_empty() { vec![] } else { reasoning::parts(stored_reasoning, WIRE, &config.model) };
    let calls = calls.iter().map(
        |call| json!({"type": "tool_use", "id": sendable_id(&call.id), "name": call.name, "input": arguments_object(&call.arguments)}),
    );
    thinking.into_iter().chain(text_block(text)).chain(calls).collect()
}

/// A block of text; blank ones are refused.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

/// A call's id in the letters this wire takes; another provider's may have others.
fn sendable_id(id: &str) -> String {
    let is_sendable = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if is_sendable(c) { c.to_string() } else { format!("_{:x}_", u32::from(c)) }).collect()
}

fn offered(tool: &OfferedTool) -> Value {
    let parameters: Value = serde_json::from_str(&tool.parameters)
        .unwrap_or_else(|error| unreachable!("the schema of the tool `{}` is not JSON: {error}", tool.name));
    json!({"name": tool.name, "description": tool.description, "input_schema": parameters})
}
