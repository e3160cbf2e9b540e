//! What is asked, what goes back to the model that said it, and what a person reads when it fails.

use std::time::Duration;

use expect_test::expect;
use quire_adapters::providers::gemini::{Gemini, GeminiConfig};
use quire_core::ids::{CallId, SessionId};
use quire_core::message::{Message, Reply, ToolCall, ToolSpec};
use quire_runtime::ports::{Asker, ModelError, ModelProvider, ModelRequest};
use quire_testkit::fake_model::{FakeModel, FakeReply, Wire};
use serde_json::json;

use crate::heard::{Heard, shown};

const KEY: &str = "sk-very-secret-key";

static SUBMIT: ToolSpec = ToolSpec {
    name: "submit",
    description: "Hands in texts.",
    parameters: r#"{"type":"object","properties":{"outputs":{"type":"object","additionalProperties":{"type":"string","maxLength":9}}},"additionalProperties":false}"#,
};
static LIST: ToolSpec =
    ToolSpec { name: "list_workers", description: "Lists.", parameters: r#"{"type":"object","properties":{}}"# };

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s"),
        call: CallId(1),
        asker: Asker::Agent,
        answered_before: 0,
        messages,
        tools: vec![(&SUBMIT).into(), (&LIST).into()],
        output_tags: vec![],
    }
}

fn rules() -> Message {
    Message::System { text: "规则".into() }
}

fn begin() -> ModelRequest {
    request(vec![rules(), Message::User { text: "不变的。\n开始".into(), stable_bytes: "不变的。\n".len() }])
}

/// A second round, after what was replied.
fn after(reply: &Reply) -> ModelRequest {
    let said = Message::Assistant { text: reply.text.clone(), reasoning: reply.reasoning.clone(), calls: reply.calls.clone() };
    let answers = reply.calls.iter().map(|call| Message::Tool { call_id: call.id.clone(), text: "好".into() });
    let mut messages = begin().messages;
    messages.push(said);
    messages.extend(answers);
    messages.push(Message::user("继续"));
    request(messages)
}

fn provider(server: &FakeModel) -> Gemini {
    Gemini::new(GeminiConfig { key: Some(KEY.into()), ..GeminiConfig::new(server.url(), "model-1", 32_000) }).expect("a provider")
}

async fn ask(provider: &Gemini, request: &ModelRequest) -> Result<Reply, ModelError> {
    provider.ask(request, &|_| {}).await
}

#[tokio::test]
async fn a_request_holds_what_is_needed_and_no_more() {
    let server = FakeModel::speaking(Wire::Gemini).await;
    server.reply(
        FakeReply::calls([("submit", r#"{"outputs":{"章.草稿":"灯塔 👩‍🚀"}}"#), ("list_workers", "{}")])
            .with_reasoning("先想")
            .with_signature("c2ln"),
    );
    let provider = provider(&server);
    let reply = ask(&provider, &begin()).await;
    expect![[r#"
        reasoning "先想"
        kept      {"quire_reasoning":"先想","wire":"gemini","model":"model-1","parts":[{"id":"call_0","name":"submit","signature":"c2ln"},{"id":"call_1","name":"list_workers"}]}
        call      [call_0] submit {"outputs":{"章.草稿":"灯塔 👩‍🚀"}}
        call      [call_1] list_workers {}
        finish    ToolCalls
        tokens    10 in, 0 of them cached, 1 out
    "#]].assert_eq(&shown(&reply));
    ask(&provider, &after(&reply.expect("a reply"))).await.expect("a reply");
    expect![[r#"
        {
          "systemInstruction": {
            "parts": [
              {
                "text": "规则"
              }
            ]
          },
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "不变的。\n开始"
                }
              ]
            },
            {
              "role": "model",
              "parts": [
                {
                  "functionCall": {
                    "name": "submit",
                    "args": {
                      "outputs": {
                        "章.草稿": "灯塔 👩‍🚀"
                      }
                    },
                    "id": "call_0"
                  },
                  "thoughtSignature": "c2ln"
                },
                {
                  "functionCall": {
                    "name": "list_workers",
                    "args": {},
                    "id": "call_1"
                  }
                }
              ]
            },
            {
              "role": "user",
              "parts": [
                {
                  "functionResponse": {
                    "name": "submit",
                    "response": {
                      "result": "好"
                    },
                    "id": "call_0"
                  }
                },
                {
                  "functionResponse": {
                    "name": "list_workers",
                    "response": {
                      "result": "好"
                    },
                    "id": "call_1"
                  }
                },
                {
                  "text": "继续"
                }
              ]
            }
          ],
          "tools": [
            {
              "functionDeclarations": [
                {
                  "name": "submit",
                  "description": "Hands in texts.",
                  "parametersJsonSchema": {
                    "type": "object",
                    "properties": {
                      "outputs": {
                        "type": "object",
                        "additionalProperties": {
                          "type": "string"
                        }
                      }
                    },
                    "additionalProperties": false
                  }
                },
                {
                  "name": "list_workers",
                  "description": "Lists."
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&format!("{:#}", server.requests()[1]));
    assert_eq!(server.headers("x-goog-api-key"), [Some(KEY.to_owned()), Some(KEY.to_owned())]);
}

#[tokio::test]
async fn what_another_model_said_goes_along_without_its_marks() {
    let server = FakeModel::speaking(Wire::Gemini).await;
    let calls = vec![
        ToolCall { id: "functions.submit:0".into(), name: "submit".into(), arguments: "{\"outputs\": {\"正".into() },
        ToolCall { id: "b".into(), name: "list_workers".into(), arguments: "".into() },
    ];
    let reply = Reply {
        text: "".into(),
        reasoning: r#"{"quire_reasoning":"想","wire":"gemini","model":"other","parts":[{"type":"thinking","thinking":"想","signature":"s","name":"submit"}]}"#.into(),
        calls,
        finish: quire_core::message::Finish::ToolCalls,
        usage: quire_core::message::Usage::default(),
    };
    ask(&provider(&server), &after(&reply)).await.expect("a reply");
    expect![[r#"
        [
          {
            "role": "user",
            "parts": [
              {
                "text": "不变的。\n开始"
              }
            ]
          },
          {
            "role": "model",
            "parts": [
              {
                "functionCall": {
                  "name": "submit",
                  "args": {
                    "unreadable_arguments": "{\"outputs\": {\"正"
                  }
                }
              },
              {
                "functionCall": {
                  "name": "list_workers",
                  "args": {}
                }
              }
            ]
          },
          {
            "role": "user",
            "parts": [
              {
                "functionResponse": {
                  "name": "submit",
                  "response": {
                    "result": "好"
                  }
                }
              },
              {
                "functionResponse": {
                  "name": "list_workers",
                  "response": {
                    "result": "好"
                  }
                }
              },
              {
                "text": "继续"
              }
            ]
          }
        ]"#]]
    .assert_eq(&format!("{:#}", server.requests()[0]["contents"]));
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_from_then_on() {
    let server = FakeModel::speaking(Wire::Gemini).await;
    server.script(|request| match request.to_string().contains("temperature") {
        true => FakeReply::status(
            400,
            &json!({"error": {"type": "invalid_request_error", "message": "`temperature` is not supported with this model"}}),
        ),
        false => FakeReply::text("好"),
    });
    let mut config = GeminiConfig::new(server.url(), "model-1", 32_000);
    config.parameters.insert("temperature".into(), json!(0.7));
    let provider = Gemini::new(config).expect("a provider");
    ask(&provider, &begin()).await.expect("a reply");
    ask(&provider, &begin()).await.expect("a reply");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(provider.refused()["temperature"], "`temperature` is not supported with this model");
}

#[tokio::test]
async fn a_bad_status_says_whose_words_they_are_and_what_to_do() {
    let server = FakeModel::speaking(Wire::Gemini).await;
    let provider = provider(&server);
    let mut out = String::new();
    for (status, kind, message) in [
        (401, "authentication_error", format!("invalid key: {KEY}")),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum".to_owned()),
        (400, "invalid_request_error", "Your credit balance is too low.".to_owned()),
        (429, "rate_limit_error", "Slow down".to_owned()),
        (529, "overloaded_error", "Overloaded".to_owned()),
    ] {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        server.reply(FakeReply::status(status, &body).header("retry-after", "7").header("request-id", "req-7"));
        out += &shown(&ask(&provider, &begin()).await);
    }
    assert!(!out.contains(KEY), "the key is shown: {out}");
    assert!(!format!("{provider:?}").contains(KEY));
    expect![[r#"
        failure   Setup
                  http://server/v1beta/models/model-1:streamGenerateContent answered 401 (request req-7): invalid key: <key>. Check the profile's key, or give it one.
        failure   NoRoom
                  http://server/v1beta/models/model-1:streamGenerateContent answered 400 (request req-7): prompt is too long: 210000 tokens > 200000 maximum. Use a model with a larger context, or correct the profile's context size.
        failure   Rejected
                  http://server/v1beta/models/model-1:streamGenerateContent answered 400 (request req-7): Your credit balance is too low. Check the account's balance at the provider.
        failure   Unavailable, may retry after 7s
                  http://server/v1beta/models/model-1:streamGenerateContent answered 429 (request req-7): Slow down. Try again later, or use another profile.
        failure   Unavailable, may retry after 7s
                  http://server/v1beta/models/model-1:streamGenerateContent answered 529 (request req-7): Overloaded. Try again later, or use another profile.
    "#]].assert_eq(&out.replace(server.url(), "http://server"));
}

#[tokio::test]
async fn silence_has_an_end_and_a_dropped_question_is_broken_off() {
    let server = FakeModel::speaking(Wire::Gemini).await;
    server.reply(FakeReply::chunks(["data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"灯塔\"}]}}]}\n\n"]).then_hang());
    let config = GeminiConfig { silence_max: Duration::from_millis(200), ..GeminiConfig::new(server.url(), "model-1", 32_000) };
    let heard = Heard::default();
    let outcome = Gemini::new(config).expect("a provider").ask(&begin(), &|delta| heard.take(delta)).await;
    assert!(outcome.expect_err("a failure").may_retry);
    assert_eq!(heard.whole().0, "灯塔");
    server.hang_ups(1).await;
}
