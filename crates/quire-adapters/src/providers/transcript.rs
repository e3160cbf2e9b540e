//! What every wire does with a transcript before it is sent.

use quire_core::message::{Message, ToolCall};
use serde_json::{Map, Value, json};

/// All messages for a server without tools: calls as the JSON that the core reads from a text, answers as the user's words.
///
/// Such servers often want user and assistant to take turns, so what one says in a row is one message. `instructions` are
/// the end of the rules.
pub(super) fn as_text(messages: &[Message], instructions: Option<String>) -> Vec<Value> {
    let mut turns: Vec<(&str, String)> = Vec::new();
    let mut instructions = instructions;
    if !messages.iter().any(|message| matches!(message, Message::System { .. })) {
        turns.extend(instructions.take().map(|text| ("system", text)));
    }
    for message in messages {
        let (role, text) = match message {
            Message::System { text } => match instructions.take() {
                Some(instructions) => ("system", format!("{text}\n\n{instructions}")),
                None => ("system", text.to_string()),
            },
            Message::User { text, stable_bytes: _ } => ("user", text.to_string()),
            Message::Tool { call_id: _, text } => ("user", format!("Result of your call: {text}")),
            Message::Assistant { text, reasoning: _, calls } => {
                let said = Some(text.to_string()).filter(|text| !text.is_empty());
                ("assistant", said.into_iter().chain(calls.iter().map(call_as_text)).collect::<Vec<_>>().join("\n"))
            }
        };
        match turns.last_mut() {
            _ if text.is_empty() => {}
            Some((last, turn)) if *last == role => *turn = format!("{turn}\n\n{text}"),
            Some(_) | None => turns.push((role, text)),
        }
    }
    turns.into_iter().map(|(role, text)| json!({"role": role, "content": text})).collect()
}

fn call_as_text(call: &ToolCall) -> String {
    let mut action = Map::from_iter([("action".to_owned(), call.name.clone().into())]);
    let arguments: Map<String, Value> = serde_json::from_str(&sendable_arguments(&call.arguments)).unwrap_or_default();
    action.extend(arguments);
    Value::Object(action).to_string()
}

/// The arguments of a call as an object, for wires that send no strings.
///
/// Broken ones become an object that holds what was written.
pub(super) fn arguments_object(arguments: &str) -> Map<String, Value> {
    serde_json::from_str(&sendable_arguments(arguments)).unwrap_or_default()
}

/// Gives arguments back as the model wrote them, unless they are broken.
///
/// Servers parse the arguments of old messages for their templates and fail on broken ones: a session would never get
/// another reply. So those go back as an object that holds what was written.
pub(super) fn sendable_arguments(arguments: &str) -> String {
    if arguments.trim().is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) => json!({"unreadable_arguments": arguments}).to_string(),
    }
}
