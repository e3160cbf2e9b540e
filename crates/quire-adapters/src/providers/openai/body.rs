//! The body of one request, and what a server has taught us about the body it takes.
//!
//! Sends as little as will do. A parameter that the server refuses by name is left out or renamed from then on
//! ([`Dialect::after`]); the messages themselves are never changed for that, but for a server without tools, which gets
//! calls and their answers as text.

use std::collections::BTreeSet;

use quire_core::message::{Message, ToolCall, ToolSpec};
use quire_runtime::ports::ModelRequest;
use serde_json::{Map, Value, json};

use super::OpenAiConfig;
use super::words::Words;

/// What one server takes, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Parameters it does not know or want.
    refused: BTreeSet<String>,
    /// Whether reasoning goes back with the calls it led to.
    echo_reasoning: bool,
}

impl Dialect {
    pub(super) fn new(config: &OpenAiConfig) -> Self {
        Self { refused: BTreeSet::new(), echo_reasoning: config.echo_reasoning }
    }

    /// Takes a refusal of `body` and returns how to ask instead; `None` where it is about no parameter that was sent.
    pub(super) fn after(&self, words: &Words, body: &Value) -> Option<Self> {
        if names(&words.text, "reasoning_content") || words.param.as_deref() == Some("reasoning_content") {
            return Some(Self { echo_reasoning: !self.echo_reasoning, ..self.clone() });
        }
        let mut refused = self.refused.clone();
        refused.insert(refused_parameter(words, body)?.to_owned());
        Some(Self { refused, ..self.clone() })
    }

    fn takes(&self, parameter: &str) -> bool {
        !self.refused.contains(parameter)
    }

    fn takes_tools(&self) -> bool {
        self.takes("tools")
    }

    /// The name under which the limit of the reply's length is known here; a newer one replaces a refused older one.
    fn output_limit(&self) -> Option<&'static str> {
        ["max_tokens", "max_completion_tokens"].into_iter().find(|name| self.takes(name))
    }
}

/// Builds the body: same arguments, same bytes.
pub(super) fn body(config: &OpenAiConfig, dialect: &Dialect, request: &ModelRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), config.model.clone().into());
    let messages = match dialect.takes_tools() {
        true => request.messages.iter().filter_map(|one| message(dialect, one)).collect(),
        false => messages_as_text(&request.messages),
    };
    body.insert("messages".into(), messages.into());
    if dialect.takes_tools() && !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(|tool| offered(tool)).collect());
        if dialect.takes("tool_choice") {
            body.insert("tool_choice".into(), "auto".into());
        }
    }
    if let (Some(tokens), Some(name)) = (config.output_tokens_max, dialect.output_limit()) {
        body.insert(name.into(), tokens.into());
    }
    if dialect.takes("stream") {
        body.insert("stream".into(), true.into());
        if dialect.takes("stream_options") {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
    }
    for (name, value) in &config.parameters {
        if dialect.takes(name) && !body.contains_key(name) {
            body.insert(name.clone(), value.clone());
        }
    }
    Value::Object(body)
}

/// One message; `None` for an assistant that said nothing, which servers refuse.
fn message(dialect: &Dialect, message: &Message) -> Option<Value> {
    Some(match message {
        Message::System { text } => json!({"role": "system", "content": &**text}),
        Message::User { text, stable_bytes: _ } => json!({"role": "user", "content": &**text}),
        Message::Tool { call_id, text } => json!({"role": "tool", "tool_call_id": call_id, "content": &**text}),
        Message::Assistant { text, reasoning: _, calls } if calls.is_empty() && text.is_empty() => return None,
        Message::Assistant { text, reasoning: _, calls } if calls.is_empty() => json!({"role": "assistant", "content": &**text}),
        Message::Assistant { text, reasoning, calls } => {
            let content = if text.is_empty() { Value::Null } else { (**text).into() };
            let calls: Vec<Value> = calls.iter().map(called).collect();
            let mut message = json!({"role": "assistant", "content": content, "tool_calls": calls});
            if dialect.echo_reasoning && !reasoning.is_empty() {
                message["reasoning_content"] = (**reasoning).into();
            }
            message
        }
    })
}

/// All messages for a server without tools: calls as the JSON that the core reads from a text, answers as the user's words.
///
/// Such servers often want user and assistant to take turns, so what one says in a row is one message.
fn messages_as_text(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, String)> = Vec::new();
    for message in messages {
        let (role, text) = match message {
            Message::System { text } => ("system", text.to_string()),
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

fn called(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": sendable_arguments(&call.arguments)},
    })
}

/// Gives arguments back as the model wrote them, unless they are broken.
///
/// Servers parse the arguments of old messages for their templates and fail on broken ones: a session would never get
/// another reply. So those go back as an object that holds what was written.
fn sendable_arguments(arguments: &str) -> String {
    if arguments.trim().is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) => json!({"unreadable_arguments": arguments}).to_string(),
    }
}

fn offered(tool: &ToolSpec) -> Value {
    let parameters: Value = serde_json::from_str(tool.parameters)
        .unwrap_or_else(|error| unreachable!("the schema of the tool `{}` is not JSON: {error}", tool.name));
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    })
}

/// Finds the parameter of `body` that the words refuse.
fn refused_parameter<'a>(words: &Words, body: &'a Value) -> Option<&'a str> {
    let sent = || {
        let rank = |name: &str| ["stream_options", "tool_choice", "tools", "stream"].iter().position(|known| *known == name);
        let mut sent: Vec<&str> = body.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        sent.retain(|name| !matches!(*name, "model" | "messages"));
        // The particular before the general: `tools` and `stream` are words of many messages.
        sent.sort_by_key(|name| rank(name).map_or(1, |rank| if rank < 2 { 0 } else { rank }));
        sent
    };
    if let Some(param) = &words.param {
        // `tools[0].function.parameters` is about one tool, not about tools.
        let is_about_one_tool = param.starts_with("tools") && param != "tools";
        if is_about_one_tool {
            return None;
        }
        let name = param.split(['.', '[']).next().unwrap_or(param);
        if let Some(found) = sent().into_iter().find(|sent| *sent == name) {
            return Some(found);
        }
    }
    let text = words.text.to_lowercase();
    let is_refusal =
        ["support", "allow", "permit", "unknown", "unrecognized", "unexpected", "require"].iter().any(|word| text.contains(word));
    sent().into_iter().find(|name| match *name {
        "tools" => is_refusal && (names(&text, "tools") || names(&text, "tool")),
        "tool_choice" => names(&text, "tool_choice") || text.contains("tool choice"),
        "stream" => is_refusal && (names(&text, "stream") || names(&text, "streaming")),
        "stream_options" | "max_tokens" | "max_completion_tokens" => names(&text, name),
        configured => is_refusal && names(&text, configured),
    })
}

/// Whether the text holds the name as a word of its own.
fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}
