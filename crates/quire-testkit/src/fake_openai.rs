//! Chat completions of OpenAI: what a server says, and what it would refuse.

use std::collections::BTreeSet;

use quire_core::message::ToolCall;
use serde_json::{Value, json};

use crate::fake_model::{Completion, INPUT_TOKENS, is_name, output_tokens, pieces, require};
pub use crate::fake_model::{FakeModel as FakeOpenAi, FakeReply};

pub(crate) fn streamed(completion: &Completion) -> impl Iterator<Item = String> + use<> {
    let Completion { text, reasoning, signature: _, calls, is_cut: _ } = completion;
    let chunk = |delta: Value, finish: Value| json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(pieces(reasoning).map(|piece| chunk(json!({"reasoning_content": piece}), Value::Null)));
    events.extend(pieces(text).map(|piece| chunk(json!({"content": piece}), Value::Null)));
    for (index, ToolCall { id, name, arguments }) in calls.iter().enumerate() {
        let head = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [head]}), Value::Null));
        events.extend(
            pieces(arguments)
                .map(|piece| chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), Value::Null)),
        );
    }
    events.push(chunk(json!({}), finish(completion).into()));
    events.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage(completion)}));
    events.into_iter().map(|event| format!("data: {event}\n\n")).chain(["data: [DONE]\n\n".to_owned()])
}

pub(crate) fn whole(completion: &Completion) -> Value {
    let Completion { text, reasoning, signature: _, calls, is_cut: _ } = completion;
    let calls_sent: Vec<Value> = calls
        .iter()
        .map(|ToolCall { id, name, arguments }| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": &**arguments}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !reasoning.is_empty() {
        message["reasoning_content"] = reasoning.as_str().into();
    }
    if !calls_sent.is_empty() {
        message["tool_calls"] = calls_sent.into();
    }
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish(completion)}],
        "usage": usage(completion),
    })
}

fn finish(completion: &Completion) -> &'static str {
    match (completion.is_cut, completion.calls.is_empty()) {
        (true, _) => "length",
        (false, true) => "stop",
        (false, false) => "tool_calls",
    }
}

fn usage(completion: &Completion) -> Value {
    let output = output_tokens(completion);
    json!({"prompt_tokens": INPUT_TOKENS, "completion_tokens": output, "total_tokens": INPUT_TOKENS + output})
}

/// Says what the real servers would refuse in a request's body; `None` where nothing.
pub fn complaint(request: &Value) -> Option<String> {
    check_request(request).err()
}

fn check_request(request: &Value) -> Result<(), String> {
    require(request["model"].as_str().is_some_and(|model| !model.is_empty()), || "you must provide a model".to_owned())?;
    let messages = request["messages"]
        .as_array()
        .filter(|messages| !messages.is_empty())
        .ok_or("messages must be a list with at least one entry")?;
    check_messages(messages)?;
    check_tools(request)
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    let mut ids_seen = BTreeSet::new();
    let mut ids_open: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let place = || format!("messages[{at}]");
        let role = message["role"].as_str().unwrap_or_default();
        require(ids_open.is_empty() || role == "tool", || {
            format!(
                "{}: an assistant message with tool_calls must be followed by tool messages; unanswered: {ids_open:?}",
                place()
            )
        })?;
        let is_said = message["content"].as_str().is_some_and(|content| !content.is_empty());
        match role {
            "system" | "developer" | "user" => require(is_said, || format!("{}: content must not be empty", place()))?,
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                require(calls.is_none_or(|calls| !calls.is_empty()), || format!("{}: tool_calls must not be empty", place()))?;
                require(is_said || (calls.is_some() && message["content"].is_null()), || {
                    format!("{}: content must not be empty", place())
                })?;
                for call in calls.into_iter().flatten() {
                    let id = check_call(call).map_err(|wrong| format!("{}: {wrong}", place()))?;
                    require(ids_seen.insert(id), || format!("{}: the call id {id:?} was used before", place()))?;
                    ids_open.insert(id);
                }
            }
            "tool" => {
                require(is_said, || format!("{}: content must not be empty", place()))?;
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                require(ids_open.remove(id), || {
                    format!(
                        "{}: a tool message must answer a call of the message before; {id:?} is none, or has its answer",
                        place()
                    )
                })?;
            }
            other => return Err(format!("{}: unknown role {other:?}", place())),
        }
    }
    require(ids_open.is_empty(), || format!("the last tool_calls have no answer: {ids_open:?}"))
}

fn check_call(call: &Value) -> Result<&str, String> {
    require(call["type"] == "function", || "a call's type must be `function`".to_owned())?;
    require(is_name(&call["function"]["name"]), || format!("a call names the function {}", call["function"]["name"]))?;
    let arguments = call["function"]["arguments"].as_str().ok_or("a call's arguments must be a string")?;
    require(serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()), || {
        format!("a call's arguments must be a JSON object, not {arguments:?}")
    })?;
    call["id"].as_str().filter(|id| !id.is_empty()).ok_or_else(|| "a call must have an id".to_owned())
}

fn check_tools(request: &Value) -> Result<(), String> {
    let Some(tools) = request.get("tools") else {
        return require(request.get("tool_choice").is_none(), || {
            "tool_choice is only allowed when tools are specified".to_owned()
        });
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty()).ok_or("tools must be a list with at least one entry")?;
    let mut names = BTreeSet::new();
    for tool in tools {
        let function = &tool["function"];
        require(tool["type"] == "function" && is_name(&function["name"]), || format!("this is no function tool: {tool}"))?;
        require(names.insert(function["name"].as_str()), || format!("the tool {} is there twice", function["name"]))?;
        require(function["parameters"]["type"] == "object", || {
            format!("the parameters of {} must be a schema of type object", function["name"])
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::complaint;

    fn complaint_on(messages: &Value) -> String {
        complaint(&json!({"model": "m", "messages": messages})).unwrap_or_default()
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "submit", "arguments": "{}"}})
    }

    #[test]
    fn a_valid_transcript_is_taken() {
        let messages = json!([
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "begin"},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "b", "content": "done"},
            {"role": "tool", "tool_call_id": "a", "content": "done"},
            {"role": "assistant", "content": "well"},
        ]);
        assert_eq!(complaint_on(&messages), "");
    }

    #[test]
    fn what_a_real_server_refuses_is_refused() {
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [call("a")]});
        let answer = json!({"role": "tool", "tool_call_id": "a", "content": "done"});
        let user = json!({"role": "user", "content": "begin"});
        let cases = [
            json!([]),
            json!([{"role": "user", "content": ""}]),
            json!([{"role": "narrator", "content": "x"}]),
            json!([{"role": "assistant", "content": ""}]),
            json!([answer]),
            json!([calls]),
            json!([calls, user]),
            json!([calls, answer, answer]),
            json!([calls, answer, calls, answer]),
            json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "submit", "arguments": "{\"a"}}]}]),
        ];
        let said: String = cases.iter().map(|case| complaint_on(case) + "\n").collect();
        expect_test::expect![[r#"
            messages must be a list with at least one entry
            messages[0]: content must not be empty
            messages[0]: unknown role "narrator"
            messages[0]: content must not be empty
            messages[0]: a tool message must answer a call of the message before; "a" is none, or has its answer
            the last tool_calls have no answer: {"a"}
            messages[1]: an assistant message with tool_calls must be followed by tool messages; unanswered: {"a"}
            messages[2]: a tool message must answer a call of the message before; "a" is none, or has its answer
            messages[2]: the call id "a" was used before
            messages[0]: a call's arguments must be a JSON object, not "{\"a"
        "#]]
        .assert_eq(&said);
        let tools = json!([{"type": "function", "function": {"name": "submit", "parameters": {"type": "string"}}}]);
        let request = json!({"model": "m", "messages": [user], "tools": tools});
        assert_eq!(complaint(&request).unwrap_or_default(), "the parameters of \"submit\" must be a schema of type object");
    }
}
