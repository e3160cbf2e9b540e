//! The body of one request, and what a server has taught us about the body it takes.
//!
//! Sends as little as will do. A parameter that the server refuses by name is left out or renamed from then on
//! ([`Learns::after`]); the messages themselves are never changed for that, but for a server without tools, which gets
//! calls and their answers as text, and is told in its rules how to write calls.

use std::collections::BTreeMap;

use quire_core::message::{Message, OfferedTool, ToolCall};
use quire_runtime::ports::ModelRequest;
use serde_json::{Map, Value, json};

use super::OpenAiConfig;
use crate::providers::http::Learns;
use crate::providers::reasoning;
use crate::providers::refusals::{names, refused_parameter};
use crate::providers::tool_mode::{self, ToolMode};
use crate::providers::transcript::{as_text, sendable_arguments};
use crate::providers::want::Want;
use crate::providers::words::Words;

/// What one server takes, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Parameters it does not know or want, each with its words.
    refused: BTreeMap<String, String>,
    /// Whether reasoning goes back with the calls it led to.
    echo_reasoning: bool,
}

impl Dialect {
    pub(super) fn new(config: &OpenAiConfig) -> Self {
        Self { refused: config.refused.clone(), echo_reasoning: config.echo_reasoning }
    }

    pub(super) fn refused(&self) -> &BTreeMap<String, String> {
        &self.refused
    }

    fn takes(&self, parameter: &str) -> bool {
        !self.refused.contains_key(parameter)
    }

    /// The name under which the limit of the reply's length is known here; a newer one replaces a refused older one.
    fn output_limit(&self) -> Option<&'static str> {
        ["max_tokens", "max_completion_tokens"].into_iter().find(|name| self.takes(name))
    }
}

impl Learns for Dialect {
    fn after(&self, words: &Words, body: &Value) -> Option<Self> {
        if names(&words.text, "reasoning_content") || words.param.as_deref() == Some("reasoning_content") {
            return Some(Self { echo_reasoning: !self.echo_reasoning, ..self.clone() });
        }
        let mut refused = self.refused.clone();
        refused.insert(refused_parameter(words, body)?.to_owned(), words.text.clone());
        Some(Self { refused, ..self.clone() })
    }
}

/// Builds the body: same arguments, same bytes.
pub(super) fn body(config: &OpenAiConfig, dialect: &Dialect, request: &ModelRequest, want: &Want) -> Value {
    let mode = match config.tool_mode {
        ToolMode::Native if dialect.takes("tools") => ToolMode::Native,
        ToolMode::JsonSchema => ToolMode::JsonSchema,
        ToolMode::Native | ToolMode::Text => ToolMode::Text,
    };
    let mut body = Map::new();
    body.insert("model".into(), config.model.clone().into());
    let messages = match mode {
        ToolMode::Native => request.messages.iter().filter_map(|one| message(dialect, one)).collect(),
        ToolMode::JsonSchema | ToolMode::Text => as_text(&request.messages, tool_mode::instructions(&request.tools)),
    };
    body.insert("messages".into(), messages.into());
    if mode == ToolMode::Native && !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(offered).collect());
        let choice = match want {
            Want::Tool(name) => json!({"type": "function", "function": {"name": name}}),
            Want::Reply | Want::Whole | Want::Schema(_) | Want::JsonObject => "auto".into(),
        };
        if dialect.takes("tool_choice") {
            body.insert("tool_choice".into(), choice);
        }
    }
    let format = match want {
        Want::Schema(schema) => Some(schema_bound(schema.clone())),
        Want::JsonObject => Some(json!({"type": "json_object"})),
        Want::Reply | Want::Whole | Want::Tool(_) => {
            (mode == ToolMode::JsonSchema && !request.tools.is_empty()).then(|| schema_bound(tool_mode::schema(request)))
        }
    };
    if let Some(format) = format.filter(|_| dialect.takes("response_format")) {
        body.insert("response_format".into(), format);
    }
    if let (Some(tokens), Some(name)) = (config.output_tokens_max, dialect.output_limit()) {
        body.insert(name.into(), tokens.into());
    }
    if dialect.takes("stream") && *want != Want::Whole {
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

fn schema_bound(schema: Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}})
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
                message["reasoning_content"] = (*reasoning::shown(reasoning)).into();
            }
            message
        }
    })
}

fn called(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": sendable_arguments(&call.arguments)},
    })
}

fn offered(tool: &OfferedTool) -> Value {
    let parameters: Value = serde_json::from_str(&tool.parameters)
        .unwrap_or_else(|error| unreachable!("the schema of the tool `{}` is not JSON: {error}", tool.name));
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    })
}
