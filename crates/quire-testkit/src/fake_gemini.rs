//! Contents of Gemini: what a server says, and what it would refuse.

use quire_core::message::ToolCall;
use serde_json::{Map, Value, json};

use crate::fake_model::{Completion, INPUT_TOKENS, is_name, output_tokens, pieces, require};

pub(crate) fn streamed(completion: &Completion) -> Vec<String> {
    let Completion { text, reasoning, signature, calls, is_cut } = completion;
    let mut parts: Vec<Value> = pieces(reasoning).map(|piece| json!({"text": piece, "thought": true})).collect();
    parts.extend(pieces(text).map(|piece| json!({"text": piece})));
    for (index, ToolCall { id, name, arguments }) in calls.iter().enumerate() {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| (**arguments).into());
        let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
        if index == 0 && !signature.is_empty() {
            part["thoughtSignature"] = signature.clone().into();
        }
        parts.push(part);
    }
    let usage = json!({"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": output_tokens(completion)});
    let chunk = |parts: Vec<Value>| json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "m"});
    let mut chunks: Vec<Value> = parts.into_iter().map(|part| chunk(vec![part])).collect();
    let mut last = chunk(vec![json!({"text": ""})]);
    last["candidates"][0]["finishReason"] = if *is_cut { "MAX_TOKENS" } else { "STOP" }.into();
    last["usageMetadata"] = usage;
    chunks.push(last);
    chunks.into_iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

pub(crate) fn complaint(request: &Value) -> Option<String> {
    check_request(request).err()
}

fn check_request(request: &Value) -> Result<(), String> {
    let known = [
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
        "labels",
        "serviceTier",
    ];
    for name in request.as_object().into_iter().flat_map(Map::keys) {
        require(known.contains(&name.as_str()), || {
            format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.")
        })?;
    }
    let contents = request["contents"].as_array().filter(|contents| !contents.is_empty()).ok_or("contents is not specified")?;
    check_contents(contents)?;
    for declaration in request["tools"].as_array().into_iter().flatten().flat_map(|tool| tool["functionDeclarations"].as_array())
    {
        declaration.iter().try_for_each(check_declaration)?;
    }
    Ok(())
}

fn check_contents(contents: &[Value]) -> Result<(), String> {
    let mut called: Vec<&Value> = vec![];
    for (at, content) in contents.iter().enumerate() {
        let place = |wrong: &str| format!("contents[{at}]: {wrong}");
        let expected = if at % 2 == 0 { "user" } else { "model" };
        require(content["role"] == expected, || place("user and model must take turns, user first"))?;
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| place("contents.parts must not be empty"))?;
        let of_kind = |kind: &str| parts.iter().filter_map(|part| part.get(kind)).collect::<Vec<_>>();
        for part in parts {
            let kinds = ["text", "functionCall", "functionResponse"].iter().filter(|kind| part.get(**kind).is_some()).count();
            require(kinds == 1, || place("a part must hold one of text, functionCall and functionResponse"))?;
            require(part.get("text").is_none_or(|text| text.as_str().is_some_and(|text| !text.is_empty())), || {
                place("a part must not be empty")
            })?;
        }
        let responses = of_kind("functionResponse");
        require(responses.len() == called.len(), || {
            place("the number of function response parts must equal the number of function call parts of the turn before")
        })?;
        for (call, response) in called.iter().zip(&responses) {
            require(call["name"] == response["name"] && call.get("id") == response.get("id"), || {
                place("a function response must answer the call in its place")
            })?;
            require(response["response"].is_object(), || place("a function response must be an object"))?;
        }
        called = if expected == "model" { of_kind("functionCall") } else { vec![] };
        for call in &called {
            require(is_name(&call["name"]) && call["args"].is_object(), || place("a call must have a name and args"))?;
        }
    }
    require(called.is_empty(), || "the last function calls have no response".to_owned())
}

fn check_declaration(declaration: &Value) -> Result<(), String> {
    require(is_name(&declaration["name"]), || format!("this is no function declaration: {declaration}"))?;
    match declaration.get("parametersJsonSchema") {
        Some(schema) => check_schema(schema),
        None => Ok(()),
    }
}

fn check_schema(schema: &Value) -> Result<(), String> {
    for word in ["maxLength", "minLength", "pattern", "const", "default", "$schema"] {
        require(schema.get(word).is_none(), || format!("Unknown name \"{word}\" at 'tools': Cannot find field."))?;
    }
    let is_open = schema.get("additionalProperties").is_some_and(Value::is_object);
    let is_empty = schema["properties"].as_object().is_none_or(Map::is_empty);
    require(schema["type"] != "object" || is_open || !is_empty, || {
        "parameters.properties: should be non-empty for OBJECT type".to_owned()
    })?;
    let properties = schema["properties"].as_object().into_iter().flat_map(Map::values);
    properties.chain(schema.get("items")).try_for_each(check_schema)
}
