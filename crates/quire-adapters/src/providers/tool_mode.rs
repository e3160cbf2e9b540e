//! How a model without calls of its own is told of the tools, and how what it writes becomes calls.
//!
//! A reply without a call is an ordinary outcome in every mode: what cannot be read as a call stays the text it is, and the
//! core decides.

use quire_core::message::{Finish, OfferedTool, Reply, ToolCall};
use quire_core::reply;
use quire_runtime::ports::ModelRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Characters of a text in schema-bound JSON. Local servers build a grammar from the schema and refuse more than 2,000
/// repetitions; without a limit small models never close a string.
const TEXT_CHARS_MAX: usize = 1_900;
/// Entries of a list in schema-bound JSON, for the same reason.
const LIST_ITEMS_MAX: usize = 12;

/// How calls are asked for and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// Tools are offered, calls come as calls.
    #[default]
    Native,
    /// The server holds the reply to a JSON schema made from the tools.
    JsonSchema,
    /// The tools are described in the rules, and the reply is read as it comes.
    Text,
}

impl ToolMode {
    /// Returns its name, as in a profile's file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::JsonSchema => "json_schema",
            Self::Text => "text",
        }
    }
}

/// Says in words what may be called and how, for the end of the rules; nothing where there is nothing to call.
pub(super) fn instructions(tools: &[OfferedTool]) -> Option<String> {
    let first = tools.first()?;
    let mut text = String::from(
        "# How to act\n\nYou have no other way to act than to write: answer with exactly one JSON object and nothing around it. \
         Its field `action` names one of the actions below; its other fields are that action's arguments.\n",
    );
    for tool in tools {
        text += &format!("\n- `{}`: {} Arguments as JSON Schema: {}", tool.name, tool.description, tool.parameters);
    }
    text += &format!("\n\nFor example: {{\"action\": \"{}\", …}}", first.name);
    Some(text)
}

/// Makes the schema of a reply that is one call.
///
/// Every string and list is bounded. `output_tags` are the only tags a text may be handed in under; where they are not
/// known, any may.
pub(super) fn schema(request: &ModelRequest) -> Value {
    let mut calls: Vec<Value> = request.tools.iter().map(|tool| call_schema(tool, &request.output_tags)).collect();
    match calls.len() {
        1 => calls.remove(0),
        _ => json!({"anyOf": calls}),
    }
}

fn call_schema(tool: &OfferedTool, output_tags: &[String]) -> Value {
    let mut parameters: Value = serde_json::from_str(&tool.parameters)
        .unwrap_or_else(|error| unreachable!("the schema of the tool `{}` is not JSON: {error}", tool.name));
    if tool.name == "submit" && !output_tags.is_empty() {
        let texts: Map<String, Value> = output_tags.iter().map(|tag| (tag.clone(), json!({"type": "string"}))).collect();
        parameters["properties"]["outputs"] =
            json!({"type": "object", "properties": texts, "required": output_tags, "additionalProperties": false});
    }
    bound(&mut parameters);
    // The action first: what follows depends on it.
    let mut properties = Map::from_iter([("action".to_owned(), json!({"type": "string", "enum": [tool.name]}))]);
    properties.extend(parameters["properties"].as_object().cloned().unwrap_or_default());
    let mut required = vec![Value::from("action")];
    required.extend(parameters["required"].as_array().cloned().unwrap_or_default());
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn bound(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    // Words for people cost room in a grammar's source and steer nothing.
    if fields.get("description").is_some_and(Value::is_string) {
        fields.shift_remove("description");
    }
    match fields.get("type").and_then(Value::as_str) {
        Some("string") if !fields.contains_key("enum") => {
            fields.entry("maxLength").or_insert(TEXT_CHARS_MAX.into());
        }
        Some("array") => {
            fields.entry("maxItems").or_insert(LIST_ITEMS_MAX.into());
            fields.get_mut("items").into_iter().for_each(bound);
        }
        Some("object") => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                properties.values_mut().for_each(bound);
            }
            fields.get_mut("additionalProperties").into_iter().for_each(bound);
        }
        _ => {}
    }
}

/// Turns a text that is one call into the call.
///
/// A text that was cut, or that stopped at the schema's limit of length, stays a text with [`Finish::Length`]: nothing that
/// ends in the middle is handed in as whole.
pub(super) fn read(mode: ToolMode, request: &ModelRequest, reply: Reply) -> Reply {
    if mode == ToolMode::Native || !reply.calls.is_empty() || reply.finish == Finish::Length {
        return reply;
    }
    let Some((name, arguments)) = reply::agent_decision(&reply.text) else { return reply };
    if !request.tools.iter().any(|tool| tool.name == name) {
        return reply;
    }
    if mode == ToolMode::JsonSchema && arguments.values().any(is_full) {
        return Reply { finish: Finish::Length, ..reply };
    }
    let call = ToolCall { id: String::new(), name, arguments: Value::Object(arguments).to_string().into() };
    Reply { text: "".into(), calls: vec![call], finish: Finish::ToolCalls, ..reply }
}

fn is_full(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() >= TEXT_CHARS_MAX,
        Value::Array(values) => values.iter().any(is_full),
        Value::Object(fields) => fields.values().any(is_full),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
