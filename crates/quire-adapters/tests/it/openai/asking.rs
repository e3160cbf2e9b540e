//! What is asked, what is taught by a refusal, and what a person reads when it fails.

use std::time::Duration;

use expect_test::{Expect, expect};
use quire_adapters::providers::openai::{OpenAi, OpenAiConfig};
use quire_core::ids::{CallId, SessionId};
use quire_core::message::{Message, Reply, ToolCall, ToolSpec};
use quire_runtime::ports::{Asker, ModelError, ModelProvider, ModelRequest};
use quire_testkit::fake_openai::{FakeOpenAi, FakeReply};
use serde_json::{Value, json};

use crate::heard::{Heard, shown};

/// The system's number for a refused connection.
const REFUSED: i32 = if cfg!(target_os = "linux") { 111 } else { 61 };

const KEY: &str = "sk-very-secret-key";

static SUBMIT: ToolSpec = ToolSpec {
    name: "submit",
    description: "Hands in texts.",
    parameters: r#"{"type":"object","properties":{"outputs":{"type":"object"}}}"#,
};

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s"),
        call: CallId(1),
        asker: Asker::Agent,
        answered_before: 0,
        messages,
        tools: vec![(&SUBMIT).into()],
        output_tags: vec![],
    }
}

fn begin() -> ModelRequest {
    request(vec![Message::System { text: "规则".into() }, Message::user("开始")])
}

/// A second round, after a call with reasoning.
fn go_on() -> ModelRequest {
    let call = |id: &str, arguments: &str| ToolCall { id: id.into(), name: "submit".into(), arguments: arguments.into() };
    request(vec![
        Message::System { text: "规则".into() },
        Message::user("开始"),
        Message::Assistant {
            text: "".into(),
            reasoning: "先想".into(),
            calls: vec![call("a", "{\"outputs\": {}}"), call("b", "{\"outputs\": {\"正")],
        },
        Message::Tool { call_id: "a".into(), text: "nothing handed in".into() },
        Message::Tool { call_id: "b".into(), text: "the arguments were cut off".into() },
        Message::user("继续"),
    ])
}

fn config(server: &FakeOpenAi) -> OpenAiConfig {
    OpenAiConfig { key: Some(KEY.into()), ..OpenAiConfig::new(server.url(), "model-1", 32_000) }
}

async fn ask(provider: &OpenAi, request: &ModelRequest) -> Result<Reply, ModelError> {
    provider.ask(request, &|_| {}).await
}

/// An outcome without the port, which is another one each time.
fn check(server: &FakeOpenAi, outcome: &Result<Reply, ModelError>, expected: &Expect) {
    let shown = shown(outcome).replace(server.url(), "http://server");
    assert!(!shown.contains(KEY), "the key is shown: {shown}");
    expected.assert_eq(&shown);
}

/// All parameters but the messages.
fn parameters(request: &Value) -> String {
    let fields = request.as_object().into_iter().flatten().filter(|(name, _)| *name != "messages" && *name != "tools");
    fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_request_holds_what_is_needed_and_no_more() {
    let server = FakeOpenAi::start().await;
    server.reply(FakeReply::call("submit", &json!({"outputs": {"章.草稿": "灯塔 👩‍🚀"}})).with_reasoning("先想"));
    let provider = OpenAi::new(config(&server)).expect("a provider");
    let outcome = ask(&provider, &go_on()).await;
    check(
        &server,
        &outcome,
        &expect![[r#"
              reasoning "先想"
              call      [call_0] submit {"outputs":{"章.草稿":"灯塔 👩‍🚀"}}
              finish    ToolCalls
              tokens    10 in, 0 of them cached, 1 out
        "#]],
    );
    expect![[r#"
        {
          "model": "model-1",
          "messages": [
            {
              "role": "system",
              "content": "规则"
            },
            {
              "role": "user",
              "content": "开始"
            },
            {
              "role": "assistant",
              "content": null,
              "tool_calls": [
                {
                  "id": "a",
                  "type": "function",
                  "function": {
                    "name": "submit",
                    "arguments": "{\"outputs\": {}}"
                  }
                },
                {
                  "id": "b",
                  "type": "function",
                  "function": {
                    "name": "submit",
                    "arguments": "{\"unreadable_arguments\":\"{\\\"outputs\\\": {\\\"正\"}"
                  }
                }
              ]
            },
            {
              "role": "tool",
              "tool_call_id": "a",
              "content": "nothing handed in"
            },
            {
              "role": "tool",
              "tool_call_id": "b",
              "content": "the arguments were cut off"
            },
            {
              "role": "user",
              "content": "继续"
            }
          ],
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "submit",
                "description": "Hands in texts.",
                "parameters": {
                  "type": "object",
                  "properties": {
                    "outputs": {
                      "type": "object"
                    }
                  }
                }
              }
            }
          ],
          "tool_choice": "auto",
          "stream": true,
          "stream_options": {
            "include_usage": true
          }
        }"#]]
    .assert_eq(&format!("{:#}", server.requests()[0]));
    assert_eq!(server.authorizations(), [Some(format!("Bearer {KEY}"))]);
}

#[tokio::test]
async fn configured_parameters_go_along_and_replace_none_of_ours() {
    let server = FakeOpenAi::start().await;
    let mut config = OpenAiConfig { output_tokens_max: Some(500), key: None, ..config(&server) };
    config.parameters.insert("temperature".into(), json!(0.7));
    config.parameters.insert("model".into(), json!("another"));
    let provider = OpenAi::new(config).expect("a provider");
    ask(&provider, &ModelRequest { tools: vec![], ..begin() }).await.expect("a reply");
    expect![[r#"model="model-1" max_tokens=500 stream=true stream_options={"include_usage":true} temperature=0.7"#]]
        .assert_eq(&parameters(&server.requests()[0]));
    assert_eq!(server.authorizations(), [None]);
}

#[tokio::test]
async fn a_streamed_and_a_whole_answer_give_the_same_reply() {
    let server = FakeOpenAi::start().await;
    let answer = || FakeReply::text("灯塔熄了。").with_reasoning("先想");
    let provider = OpenAi::new(config(&server)).expect("a provider");
    server.reply(answer());
    let streamed = ask(&provider, &begin()).await.expect("a reply");
    server.reply(FakeReply::refused_parameter("stream", "stream is not supported"));
    server.reply(answer());
    let whole = ask(&provider, &begin()).await.expect("a reply");
    assert_eq!(streamed, whole);
    assert_eq!(server.requests()[2].get("stream"), None);
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_at_once_and_from_then_on() {
    let server = FakeOpenAi::start().await;
    server.script(|request| {
        let has = |name: &str| request.get(name).is_some();
        if has("stream_options") {
            let detail = json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted", "input": {"tools": 1}}]});
            FakeReply::status(422, &detail)
        } else if has("max_tokens") {
            FakeReply::refused_parameter("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
        } else if has("tool_choice") {
            FakeReply::status(400, &json!({"error": "property 'tool_choice' is unsupported"}))
        } else {
            FakeReply::text("好")
        }
    });
    let provider = OpenAi::new(OpenAiConfig { output_tokens_max: Some(500), ..config(&server) }).expect("a provider");
    ask(&provider, &begin()).await.expect("a reply");
    ask(&provider, &begin()).await.expect("a reply");
    let asked: Vec<String> = server.requests().iter().map(parameters).collect();
    expect![[r#"
        model="model-1" tool_choice="auto" max_tokens=500 stream=true stream_options={"include_usage":true}
        model="model-1" tool_choice="auto" max_tokens=500 stream=true
        model="model-1" tool_choice="auto" max_completion_tokens=500 stream=true
        model="model-1" max_completion_tokens=500 stream=true
        model="model-1" max_completion_tokens=500 stream=true"#]]
    .assert_eq(&asked.join("\n"));
}

#[tokio::test]
async fn a_server_without_tools_gets_calls_as_text() {
    let server = FakeOpenAi::start().await;
    server.script(|request| match request.get("tools") {
        Some(_) => FakeReply::status(400, &json!({"error": {"message": "registry/model-1 does not support tools"}})),
        None => FakeReply::text("{\"outputs\": {}}"),
    });
    let provider = OpenAi::new(config(&server)).expect("a provider");
    ask(&provider, &go_on()).await.expect("a reply");
    expect![[r#"
        [
          {
            "role": "system",
            "content": "规则\n\n# How to act\n\nYou have no other way to act than to write: answer with exactly one JSON object and nothing around it. Its field `action` names one of the actions below; its other fields are that action's arguments.\n\n- `submit`: Hands in texts. Arguments as JSON Schema: {\"type\":\"object\",\"properties\":{\"outputs\":{\"type\":\"object\"}}}\n\nFor example: {\"action\": \"submit\", …}"
          },
          {
            "role": "user",
            "content": "开始"
          },
          {
            "role": "assistant",
            "content": "{\"action\":\"submit\",\"outputs\":{}}\n{\"action\":\"submit\",\"unreadable_arguments\":\"{\\\"outputs\\\": {\\\"正\"}"
          },
          {
            "role": "user",
            "content": "Result of your call: nothing handed in\n\nResult of your call: the arguments were cut off\n\n继续"
          }
        ]"#]]
    .assert_eq(&format!("{:#}", server.requests()[1]["messages"]));
}

#[tokio::test]
async fn reasoning_goes_back_where_the_server_demands_it() {
    let server = FakeOpenAi::start().await;
    server.script(|request| match request["messages"][2].get("reasoning_content") {
        Some(_) => FakeReply::text("好"),
        None => FakeReply::status(
            400,
            &json!({"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}),
        ),
    });
    let provider = OpenAi::new(config(&server)).expect("a provider");
    ask(&provider, &go_on()).await.expect("a reply");
    ask(&provider, &go_on()).await.expect("a reply");
    assert_eq!(server.requests().len(), 3);
    let begun = ask(&OpenAi::new(OpenAiConfig { echo_reasoning: true, ..config(&server) }).expect("a provider"), &go_on()).await;
    begun.expect("a reply");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_refusal_that_no_other_request_would_mend_is_not_tried_twice() {
    let server = FakeOpenAi::start().await;
    let provider = OpenAi::new(config(&server)).expect("a provider");
    let refusals = [
        FakeReply::refused_parameter(
            "tools[0].function.parameters",
            "Invalid schema for function 'submit': tools are not supported this way",
        ),
        FakeReply::status(400, &json!({"error": {"message": "`reasoning_content` is missing"}})),
        FakeReply::refused_parameter(
            "messages",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        ),
    ];
    for refusal in refusals {
        server.reply(refusal);
        ask(&provider, &begin()).await.expect_err("a failure");
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_bad_status_says_whose_words_they_are_and_what_to_do() {
    let openai = |message: &str, code: &str| json!({"error": {"message": message, "type": "x", "param": null, "code": code}});
    let page = |status: u16, page: &str| FakeReply::chunks([page]).header("content-type", "text/html").with_status(status);
    let cases = [
        FakeReply::status(401, &openai(&format!("Incorrect API key provided: {KEY}."), "invalid_api_key")),
        FakeReply::status(402, &openai("Insufficient Balance", "invalid_request_error")),
        FakeReply::status(404, &openai("The model `model-1` does not exist", "model_not_found")).header("x-request-id", "req-7"),
        FakeReply::status(400, &openai("maximum context length is 8192 tokens", "context_length_exceeded")),
        FakeReply::status(400, &openai("The response was filtered", "content_filter")),
        FakeReply::status(400, &json!({"message": "messages: 角色 is wrong"})),
        FakeReply::status(429, &openai("Rate limit reached", "rate_limit_exceeded")).header("retry-after", "7"),
        FakeReply::status(429, &openai("Slow down", "rate_limit_exceeded")).header("retry-after-ms", "1500"),
        FakeReply::status(429, &openai("You exceeded your current quota", "insufficient_quota")),
        page(502, "<html>\r\n<head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"),
        page(503, "<html><body><h1>过载</h1>\n<p>try later</p></body></html>"),
        page(500, ""),
        FakeReply::status(307, &json!({})).header("location", "https://elsewhere.example/v1"),
    ];
    let server = FakeOpenAi::start().await;
    let provider = OpenAi::new(config(&server)).expect("a provider");
    let mut out = String::new();
    for case in cases {
        server.reply(case);
        out += &shown(&ask(&provider, &begin()).await);
    }
    assert!(!out.contains(KEY), "the key is shown: {out}");
    expect![[r#"
          failure   Setup
                    http://server/v1/chat/completions answered 401: Incorrect API key provided: <key>. Check the profile's key, or give it one.
          failure   Rejected
                    http://server/v1/chat/completions answered 402: Insufficient Balance. Check the account's balance at the provider.
          failure   Setup
                    http://server/v1/chat/completions answered 404 (request req-7): The model `model-1` does not exist. Check the profile's model name and base URL.
          failure   NoRoom
                    http://server/v1/chat/completions answered 400: maximum context length is 8192 tokens. Use a model with a larger context, or correct the profile's context size.
          failure   Refused
                    http://server/v1/chat/completions answered 400: The response was filtered. Reword what is asked, or use another model.
          failure   Rejected
                    http://server/v1/chat/completions answered 400: messages: 角色 is wrong. Check the profile, or use another one.
          failure   Unavailable, may retry after 7s
                    http://server/v1/chat/completions answered 429: Rate limit reached. Try again later, or use another profile.
          failure   Unavailable, may retry after 1.5s
                    http://server/v1/chat/completions answered 429: Slow down. Try again later, or use another profile.
          failure   Rejected
                    http://server/v1/chat/completions answered 429: You exceeded your current quota. Check the account's balance at the provider.
          failure   Unavailable, may retry
                    http://server/v1/chat/completions answered 502: a web page, “502 Bad Gateway”. Try again later, or use another profile.
          failure   Unavailable, may retry
                    http://server/v1/chat/completions answered 503: a web page, “过载 try later”. Try again later, or use another profile.
          failure   Unavailable, may retry
                    http://server/v1/chat/completions answered 500: without a word. Try again later, or use another profile.
          failure   Setup
                    http://server/v1/chat/completions answered 307 and points to https://elsewhere.example/v1: without a word. Check the profile's model name and base URL.
    "#]].assert_eq(&out.replace(server.url(), "http://server"));
}

#[tokio::test]
async fn a_connection_that_breaks_keeps_what_was_passed_on() {
    let server = FakeOpenAi::start().await;
    server.reply(FakeReply::chunks(["data: {\"choices\":[{\"delta\":{\"content\":\"灯塔\"}}]}\n\n", "data: {\"cho"]).then_drop());
    let provider = OpenAi::new(config(&server)).expect("a provider");
    let heard = Heard::default();
    let outcome = provider.ask(&begin(), &|delta| heard.take(delta)).await;
    check(
        &server,
        &outcome,
        &expect![[r#"
              failure   Network, may retry
                        the connection to http://server/v1/chat/completions broke before the reply was complete: unexpected EOF during chunk size line. Try again.
        "#]],
    );
    assert_eq!(heard.whole().0, "灯塔");
}

#[tokio::test]
async fn silence_has_an_end() {
    let server = FakeOpenAi::start().await;
    let silent = || FakeReply::chunks(["data: {\"choices\":[{\"delta\":{\"content\":\"灯塔\"}}]}\n\n"]).then_hang();
    server.reply(silent());
    let provider = OpenAi::new(OpenAiConfig { silence_max: Duration::from_millis(200), ..config(&server) }).expect("a provider");
    let outcome = ask(&provider, &begin()).await;
    check(
        &server,
        &outcome,
        &expect![[r#"
              failure   Network, may retry
                        http://server/v1/chat/completions sent nothing for 200 ms and the reply is not complete. Try again, or give the profile more time.
        "#]],
    );
}

#[tokio::test]
async fn a_server_that_never_hangs_up_has_still_finished() {
    let server = FakeOpenAi::start().await;
    let finished = "data: {\"choices\":[{\"delta\":{\"content\":\"灯塔\"},\"finish_reason\":\"stop\"}]}\n\n";
    server.reply(FakeReply::chunks([finished]).then_hang());
    server.reply(FakeReply::chunks([finished, "data: [DONE]\n\n"]).then_hang());
    let provider = OpenAi::new(OpenAiConfig { silence_max: Duration::from_millis(200), ..config(&server) }).expect("a provider");
    let without_mark = ask(&provider, &begin()).await.expect("a reply");
    let with_mark = ask(&OpenAi::new(config(&server)).expect("a provider"), &begin()).await.expect("a reply");
    assert_eq!(without_mark, with_mark);
}

#[tokio::test]
async fn a_dropped_question_is_broken_off_at_the_server() {
    let server = FakeOpenAi::start().await;
    server.reply(FakeReply::chunks(["data: {\"choices\":[{\"delta\":{\"content\":\"灯塔\"}}]}\n\n"]).then_hang());
    let provider = OpenAi::new(config(&server)).expect("a provider");
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let begun = std::sync::Mutex::new(Some(begun));
    let request = begin();
    let say = |_| {
        let begun = begun.lock().expect("one listener").take();
        begun.into_iter().for_each(|begun| begun.send(()).expect("someone waits"));
    };
    tokio::select! {
        outcome = provider.ask(&request, &say) => panic!("the server never ends: {outcome:?}"),
        begun = has_begun => begun.expect("the first piece"),
    }
    server.hang_ups(1).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = FakeOpenAi::start().await;
    let port = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port").local_addr().expect("its address");
    let provider = OpenAi::new(OpenAiConfig { base_url: format!("http://{port}"), ..config(&server) }).expect("a provider");
    let outcome = ask(&provider, &begin()).await;
    expect![[r#"
          failure   Network, may retry
                    http://server/v1/chat/completions cannot be reached: Connection refused. Start the server, or check the profile's base URL.
    "#]].assert_eq(&shown(&outcome).replace(&port.to_string(), "server").replace(&format!(" (os error {REFUSED})"), ""));
}

#[tokio::test]
async fn the_key_is_in_no_debug_output_and_a_broken_one_is_refused() {
    let server = FakeOpenAi::start().await;
    let provider = OpenAi::new(config(&server)).expect("a provider");
    let debug = format!("{provider:?}");
    assert!(!debug.contains(KEY), "{debug}");
    let broken = OpenAi::new(OpenAiConfig { key: Some("sk-1\nsk-2".into()), ..config(&server) }).expect_err("a refusal");
    expect!["the key for `http://server/v1/chat/completions` holds characters that cannot be sent; copy it again"]
        .assert_eq(&broken.to_string().replace(server.url(), "http://server"));
}
