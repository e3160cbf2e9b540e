//! Models without calls of their own: held to a schema, or told in words.

use expect_test::{Expect, expect};
use quire_adapters::providers::ToolMode;
use quire_adapters::providers::openai::{OpenAi, OpenAiConfig};
use quire_runtime::ports::ModelProvider;
use quire_testkit::fake_model::{FakeModel, FakeReply};
use serde_json::json;

use super::request;
use crate::heard::shown;

async fn reply_to(mode: ToolMode, said: FakeReply) -> (String, serde_json::Value) {
    let server = FakeModel::start().await;
    server.reply(said);
    let config = OpenAiConfig { tool_mode: mode, ..OpenAiConfig::new(server.url(), "small", 8_000) };
    let reply = OpenAi::new(config).expect("a provider").ask(&request("开始"), &|_| {}).await;
    (shown(&reply), server.requests()[0].clone())
}

async fn check(mode: ToolMode, said: &str, expected: Expect) {
    expected.assert_eq(&reply_to(mode, FakeReply::text(said)).await.0);
}

#[tokio::test]
async fn a_schema_bounds_every_string_and_names_the_tags() {
    let (_, asked) = reply_to(ToolMode::JsonSchema, FakeReply::text("{}")).await;
    assert_eq!(asked.get("tools"), None);
    expect![[r#"
        {
          "type": "json_schema",
          "json_schema": {
            "name": "reply",
            "schema": {
              "anyOf": [
                {
                  "type": "object",
                  "properties": {
                    "action": {
                      "type": "string",
                      "enum": [
                        "submit"
                      ]
                    },
                    "outputs": {
                      "type": "object",
                      "properties": {
                        "章.草稿": {
                          "type": "string",
                          "maxLength": 1900
                        }
                      },
                      "required": [
                        "章.草稿"
                      ],
                      "additionalProperties": false
                    },
                    "summary": {
                      "type": "string",
                      "maxLength": 1900
                    }
                  },
                  "required": [
                    "action",
                    "outputs"
                  ],
                  "additionalProperties": false
                },
                {
                  "type": "object",
                  "properties": {
                    "action": {
                      "type": "string",
                      "enum": [
                        "ask_user"
                      ]
                    },
                    "questions": {
                      "type": "array",
                      "items": {
                        "type": "object",
                        "properties": {
                          "prompt": {
                            "type": "string",
                            "maxLength": 1900
                          }
                        }
                      },
                      "maxItems": 12
                    }
                  },
                  "required": [
                    "action",
                    "questions"
                  ],
                  "additionalProperties": false
                }
              ]
            }
          }
        }"#]]
    .assert_eq(&format!("{:#}", asked["response_format"]));
}

#[tokio::test]
async fn the_rules_say_how_to_write_a_call() {
    let (_, asked) = reply_to(ToolMode::Text, FakeReply::text("{}")).await;
    assert_eq!((asked.get("tools"), asked.get("response_format")), (None, None));
    expect![[r#"
        规则

        # How to act

        You have no other way to act than to write: answer with exactly one JSON object and nothing around it. Its field `action` names one of the actions below; its other fields are that action's arguments.

        - `submit`: Hands in texts. Arguments as JSON Schema: {"type":"object","properties":{"outputs":{"type":"object","additionalProperties":{"type":"string"}},"summary":{"type":"string","description":"What it is."}},"required":["outputs"],"additionalProperties":false}
        - `ask_user`: Asks. Arguments as JSON Schema: {"type":"object","properties":{"questions":{"type":"array","items":{"type":"object","properties":{"prompt":{"type":"string"}}}}},"required":["questions"],"additionalProperties":false}

        For example: {"action": "submit", …}"#]].assert_eq(asked["messages"][0]["content"].as_str().expect("the rules"));
}

#[tokio::test]
async fn json_becomes_the_call_it_stands_for() {
    let said = r#"{"action":"submit","outputs":{"章.草稿":"灯塔熄了。👩‍🚀"},"summary":"短"}"#;
    check(
        ToolMode::JsonSchema,
        said,
        expect![[r#"
        call      [] submit {"outputs":{"章.草稿":"灯塔熄了。👩‍🚀"},"summary":"短"}
        finish    ToolCalls
        tokens    10 in, 0 of them cached, 64 out
    "#]],
    )
    .await;
    let fenced = format!("<think>先想</think>Here you are:\n```json\n{said}\n```");
    check(
        ToolMode::Text,
        &fenced,
        expect![[r#"
        reasoning "先想"
        call      [] submit {"outputs":{"章.草稿":"灯塔熄了。👩‍🚀"},"summary":"短"}
        finish    ToolCalls
        tokens    10 in, 0 of them cached, 107 out
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_no_call_stays_the_text_it_is() {
    check(
        ToolMode::Text,
        "灯塔熄了。",
        expect![[r#"
        text      "灯塔熄了。"
        finish    Stop
        tokens    10 in, 0 of them cached, 6 out
    "#]],
    )
    .await;
    check(
        ToolMode::JsonSchema,
        r#"{"action":"dance","to":"灯"}"#,
        expect![[r#"
        text      "{\"action\":\"dance\",\"to\":\"灯\"}"
        finish    Stop
        tokens    10 in, 0 of them cached, 28 out
    "#]],
    )
    .await;
    check(
        ToolMode::Native,
        r#"{"action":"submit","outputs":{}}"#,
        expect![[r#"
        text      "{\"action\":\"submit\",\"outputs\":{}}"
        finish    Stop
        tokens    10 in, 0 of them cached, 33 out
    "#]],
    )
    .await;
    check(
        ToolMode::Text,
        r#"{"action":"submit","outputs":{"章.草稿":"灯塔"#,
        expect![[r#"
        text      "{\"action\":\"submit\",\"outputs\":{\"章.草稿\":\"灯塔"
        finish    Stop
        tokens    10 in, 0 of them cached, 41 out
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_text_that_filled_its_room_counts_as_cut() {
    let long = "灯".repeat(1_900);
    let said = json!({"action": "submit", "outputs": {"章.草稿": long}}).to_string();
    let (shown, _) = reply_to(ToolMode::JsonSchema, FakeReply::text(said)).await;
    assert!(shown.contains("finish    Length") && !shown.contains("call "), "{shown}");
}

#[tokio::test]
async fn a_server_that_knows_no_schema_is_told_in_words_alone() {
    let server = FakeModel::start().await;
    server.script(|request| match request.get("response_format") {
        Some(_) => FakeReply::refused_parameter("response_format", "response_format json_schema is not supported"),
        None => FakeReply::text(r#"{"action":"ask_user","questions":[{"prompt":"谁?"}]}"#),
    });
    let config = OpenAiConfig { tool_mode: ToolMode::JsonSchema, ..OpenAiConfig::new(server.url(), "small", 8_000) };
    let reply = OpenAi::new(config).expect("a provider").ask(&request("开始"), &|_| {}).await.expect("a reply");
    assert_eq!(reply.calls[0].name, "ask_user");
    assert_eq!(server.requests().len(), 2);
}
