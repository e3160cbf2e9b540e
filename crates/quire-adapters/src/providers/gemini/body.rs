//! The body of one request for contents.
//!
//! The rules stand apart from the contents, user and model take turns, and every call is answered by its name: ids are
//! sent only where the provider gave them. Schemas are cut down to the words the wire knows.

use std::collections::BTreeMap;

use quire_core::message::{Message, OfferedTool, ToolCall};
use quire_runtime::ports::ModelRequest;
use serde_json::{Map, Value, json};

use super::{GeminiConfig, WIRE};
use crate::providers::reasoning;
use crate::providers::refusals::Refusals;
use crate::providers::transcript::arguments_object;
use crate::providers::want::Want;

/// Parameters that do not belong into `generationConfig`.
const TOP_LEVEL: [&str; 4] = ["safetySettings", "cachedContent", "labels", "serviceTier"];
/// What a schema may say; other words are an error for the wire or mean nothing to it.
const SCHEMA_WORDS: [&str; 16] = [
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
];
/// What stands in for the signature of a call that another model made; models of the third generation demand one.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Builds the body: same arguments, same bytes.
pub(super) fn body(config: &GeminiConfig, refusals: &Refusals, request: &ModelRequest, want: &Want) -> Value {
    let mut body = Map::new();
    let rules: Vec<Value> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::System { text } => Some(json!({"text": &**text})),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
        })
        .collect();
    if !rules.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": rules}));
    }
    body.insert("contents".into(), turns(config, &request.messages).into());
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(offered).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": tools}]));
        if let Want::Tool(name) = want {
            let only = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}});
            body.insert("toolConfig".into(), only);
        }
    }
    let mut generation = Map::new();
    if let Some(tokens) = config.output_tokens_max.filter(|_| refusals.takes("maxOutputTokens")) {
        generation.insert("maxOutputTokens".into(), tokens.into());
    }
    match want {
        Want::Schema(schema) => {
            generation.insert("responseMimeType".into(), "application/json".into());
            generation.insert("responseJsonSchema".into(), cut_down(schema));
        }
        Want::JsonObject => {
            generation.insert("responseMimeType".into(), "application/json".into());
        }
        Want::Reply | Want::Whole | Want::Tool(_) => {}
    }
    for (name, value) in config.parameters.iter().filter(|(name, _)| refusals.takes(name)) {
        let place = if TOP_LEVEL.contains(&name.as_str()) { &mut body } else { &mut generation };
        if !place.contains_key(name) {
            place.insert(name.clone(), value.clone());
        }
    }
    if !generation.is_empty() {
        body.insert("generationConfig".into(), generation.into());
    }
    Value::Object(body)
}

fn turns(config: &GeminiConfig, messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut asked: BTreeMap<&str, Asked> = BTreeMap::new();
    for message in messages {
        let (role, parts) = match message {
            Message::System { .. } => continue,
            Message::User { text, stable_bytes: _ } => ("user", text_part(text).into_iter().collect()),
            Message::Tool { call_id, text } => ("user", vec![answered(call_id, text, asked.get(call_id.as_str()))]),
            Message::Assistant { text, reasoning, calls } => {
                let calls = called(config, reasoning::parts(reasoning, WIRE, &config.model), calls);
                asked.extend(calls.iter().map(|(call, part)| {
                    let is_known_by_id = part["functionCall"].get("id").is_some();
                    (call.id.as_str(), Asked { name: call.name.as_str(), is_known_by_id })
                }));
                let calls = calls.into_iter().map(|(_, part)| part);
                ("model", text_part(text).into_iter().chain(calls).collect())
            }
        };
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, turn)) if *last == role => turn.extend(parts),
            Some(_) | None => turns.push((role, parts)),
        }
    }
    turns.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

/// A call that waits for its answer.
struct Asked<'a> {
    name: &'a str,
    is_known_by_id: bool,
}

/// Calls as parts, each with what was kept of it: found by its id, else by its name in the order they came.
fn called<'c>(config: &GeminiConfig, mut kept: Vec<Value>, calls: &'c [ToolCall]) -> Vec<(&'c ToolCall, Value)> {
    let is_third_generation = config.model.contains("gemini-3");
    let mut parts = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        let by_id = kept.iter().position(|kept| kept["id"] == *call.id && kept["name"] == *call.name);
        let at = by_id.or_else(|| kept.iter().position(|kept| kept["name"] == *call.name));
        let kept = at.map(|at| kept.remove(at)).unwrap_or_default();
        let mut part = json!({"functionCall": {"name": call.name, "args": arguments_object(&call.arguments)}});
        if by_id.is_some() {
            part["functionCall"]["id"] = call.id.clone().into();
        }
        match kept.get("signature") {
            Some(signature) => part["thoughtSignature"] = signature.clone(),
            None if is_third_generation && index == 0 => part["thoughtSignature"] = FOREIGN_SIGNATURE.into(),
            None => {}
        }
        parts.push((call, part));
    }
    parts
}

fn answered(call_id: &str, text: &str, asked: Option<&Asked<'_>>) -> Value {
    let name = asked.map_or("unknown", |asked| asked.name);
    let mut response = json!({"name": name, "response": {"result": text}});
    if asked.is_some_and(|asked| asked.is_known_by_id) {
        response["id"] = call_id.into();
    }
    json!({"functionResponse": response})
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"text": text}))
}

fn offered(tool: &OfferedTool) -> Value {
    let parameters: Value = serde_json::from_str(&tool.parameters)
        .unwrap_or_else(|error| unreachable!("the schema of the tool `{}` is not JSON: {error}", tool.name));
    let mut declaration = json!({"name": tool.name, "description": tool.description});
    // An object without properties is refused: a tool without arguments has no schema.
    if parameters["properties"].as_object().is_some_and(|properties| !properties.is_empty()) {
        declaration["parametersJsonSchema"] = cut_down(&parameters);
    }
    declaration
}

fn cut_down(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let kept = fields.iter().filter(|(word, _)| SCHEMA_WORDS.contains(&word.as_str())).map(|(word, value)| {
        let value = match (word.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), cut_down(schema))).collect::<Map<_, _>>().into()
            }
            ("items" | "additionalProperties", schema) => cut_down(schema),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => schemas.iter().map(cut_down).collect(),
            (_, other) => other.clone(),
        };
        (word.clone(), value)
    });
    Value::Object(kept.collect())
}
