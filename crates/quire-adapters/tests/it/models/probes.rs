//! What a probe finds at servers that can much and little.

use expect_test::{Expect, expect};
use quire_adapters::providers::probe::{ProbeReport, probe};
use quire_adapters::providers::profile::{KeySource, Kind, Profile, preset};
use quire_core::message::Finish;
use quire_core::message::{Reply, ToolCall, Usage};
use quire_testkit::fake_model::{FakeModel, FakeReply, Wire};
use serde_json::{Value, json};

fn profile(kind: Kind, server: &FakeModel) -> Profile {
    let preset = preset(match kind {
        Kind::OpenAi | Kind::Scripted => "openai",
        Kind::Anthropic => "anthropic",
        Kind::Gemini => "gemini",
    });
    Profile {
        base_url: server.url().to_owned(),
        key: KeySource::None,
        ..Profile::from_preset("p", preset.expect("a preset"), "model-1")
    }
}

async fn check(kind: Kind, server: &FakeModel, expected: Expect) {
    let report = probe(&profile(kind, server), None).await.expect("a report");
    expected.assert_eq(&table(&report).replace(server.url(), "http://server"));
}

fn table(report: &ProbeReport) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let (ability, verdict) = (format!("{:?}", finding.ability), format!("{:?}", finding.verdict));
        out += &format!("{ability:<14}{verdict:<9}{}\n", finding.words);
    }
    out + &format!("mode {}, context {:?}, refused {:?}\n", report.tool_mode.as_str(), report.context_tokens, report.refused)
}

/// Does all it is told, as a capable model would.
fn capable(request: &Value) -> FakeReply {
    let body = request.to_string();
    let notes = match (body.contains("twice in this one reply"), body.contains("\"note\"")) {
        (true, _) => vec!["lamp", "sea"],
        (false, true) => vec!["lamp"],
        (false, false) => vec![],
    };
    if !notes.is_empty() {
        let call =
            |word| ToolCall { id: format!("c_{word}"), name: "note".into(), arguments: json!({"word": word}).to_string().into() };
        let calls = notes.into_iter().map(call).collect();
        return FakeReply::reply(&Reply {
            text: "".into(),
            reasoning: "".into(),
            calls,
            finish: Finish::ToolCalls,
            usage: Usage::default(),
        });
    }
    let wants_json = body.contains("json_schema") || body.contains("json_object") || body.contains("responseMimeType");
    match wants_json {
        true => FakeReply::text(r#"{"kf7":"q9","word":"lamp"}"#),
        false => FakeReply::text("lighthouse, 灯塔, one two three").with_reasoning("想"),
    }
}

#[tokio::test]
async fn a_capable_model_is_asked_natively() {
    let server = FakeModel::start().await;
    server.document(
        "/v1/models",
        json!({"data": [{"id": "other", "context_length": 1}, {"id": "model-1", "context_length": 65_536}]}),
    );
    server.script(capable);
    check(
        Kind::OpenAi,
        &server,
        expect![[r#"
        Chat          Yes      “lighthouse, 灯塔, one two three”
        Streaming     Yes      “lighthouse, 灯塔, one two three”
        NativeTools   Yes      note({"word":"lamp"})
        ForcedTool    Yes      note({"word":"lamp"})
        ParallelCalls Yes      note({"word":"lamp"}), note({"word":"sea"})
        JsonSchema    Yes      “{"kf7":"q9","word":"lamp"}”
        JsonObject    Yes      “{"kf7":"q9","word":"lamp"}”
        Reasoning     Yes      it came beside the text
        Usage         Yes      10 in, 30 out
        CachedTokens  No       0 of 10 the second time
        ContextSize   Yes      65536 tokens, says its list of models
        mode native, context Some(65536), refused {}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn the_other_wires_are_probed_too() {
    let server = FakeModel::speaking(Wire::Anthropic).await;
    server.document("/v1/models/model-1", json!({"id": "model-1", "max_input_tokens": 200_000}));
    server.script(capable);
    check(
        Kind::Anthropic,
        &server,
        expect![[r#"
        Chat          Yes      “lighthouse, 灯塔, one two three”
        Streaming     Yes      “lighthouse, 灯塔, one two three”
        NativeTools   Yes      note({"word":"lamp"})
        ForcedTool    Yes      note({"word":"lamp"})
        ParallelCalls Yes      note({"word":"lamp"}), note({"word":"sea"})
        JsonSchema    Yes      “{"kf7":"q9","word":"lamp"}”
        JsonObject    Unclear  this wire has no such mode
        Reasoning     Yes      it came beside the text
        Usage         Yes      10 in, 30 out
        CachedTokens  No       0 of 10 the second time
        ContextSize   Yes      200000 tokens, says its list of models
        mode native, context Some(200000), refused {}
    "#]],
    )
    .await;
    let server = FakeModel::speaking(Wire::Gemini).await;
    server.document("/v1beta/models/model-1", json!({"inputTokenLimit": 1_048_576}));
    server.script(capable);
    check(
        Kind::Gemini,
        &server,
        expect![[r#"
        Chat          Yes      “lighthouse, 灯塔, one two three”
        Streaming     Yes      “lighthouse, 灯塔, one two three”
        NativeTools   Yes      note({"word":"lamp"})
        ForcedTool    Yes      note({"word":"lamp"})
        ParallelCalls Yes      note({"word":"lamp"}), note({"word":"sea"})
        JsonSchema    Yes      “{"kf7":"q9","word":"lamp"}”
        JsonObject    Yes      “{"kf7":"q9","word":"lamp"}”
        Reasoning     Yes      it came beside the text
        Usage         Yes      10 in, 30 out
        CachedTokens  No       0 of 10 the second time
        ContextSize   Yes      1048576 tokens, says its list of models
        mode native, context Some(1048576), refused {}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_small_local_model_is_held_to_a_schema() {
    let server = FakeModel::start().await;
    server.document("/props", json!({"default_generation_settings": {"n_ctx": 4096}}));
    server.script(|request| {
        let format = &request["response_format"]["type"];
        if request.get("stream_options").is_some() {
            FakeReply::refused_parameter("stream_options", "unknown field `stream_options`")
        } else if request.get("tools").is_some() {
            FakeReply::status(400, &json!({"error": {"message": "this template does not support tools"}}))
        } else if format == "json_object" {
            FakeReply::refused_parameter("response_format", "json_object is not supported")
        } else if format == "json_schema" {
            FakeReply::text(r#"{"kf7":"x4"}"#)
        } else {
            FakeReply::text("lighthouse, and more words")
        }
    });
    check(Kind::OpenAi, &server, expect![[r#"
        Chat          Yes      “lighthouse, and more words”
        Streaming     Yes      “lighthouse, and more words”
        NativeTools   No       this template does not support tools
        ForcedTool    Unclear  not asked
        ParallelCalls Unclear  not asked
        JsonSchema    Yes      “{"kf7":"x4"}”
        JsonObject    No       json_object is not supported
        Reasoning     No       none was shown
        Usage         Yes      10 in, 27 out
        CachedTokens  No       0 of 10 the second time
        ContextSize   Yes      4096 tokens, says its /props
        mode json_schema, context Some(4096), refused {"stream_options": "unknown field `stream_options`", "tools": "this template does not support tools"}
    "#]]).await;
}

#[tokio::test]
async fn a_model_that_only_talks_is_told_in_words() {
    let server = FakeModel::start().await;
    server.script(|_| FakeReply::text("Once upon a time there was a lighthouse."));
    server.document("/api/show", json!({"model_info": {"llama.context_length": 8192}}));
    check(
        Kind::OpenAi,
        &server,
        expect![[r#"
        Chat          Yes      “Once upon a time there was a lighthouse.”
        Streaming     Yes      “Once upon a time there was a lighthouse.”
        NativeTools   No       “Once upon a time there was a lighthouse.”
        ForcedTool    Unclear  not asked
        ParallelCalls Unclear  not asked
        JsonSchema    No       “Once upon a time there was a lighthouse.”
        JsonObject    No       “Once upon a time there was a lighthouse.”
        Reasoning     No       none was shown
        Usage         Yes      10 in, 41 out
        CachedTokens  No       0 of 10 the second time
        ContextSize   Yes      8192 tokens, says its /api/show
        mode text, context Some(8192), refused {}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_does_not_answer_is_asked_no_further() {
    let server = FakeModel::start().await;
    server.script(|_| FakeReply::status(401, &json!({"error": {"message": "No such key"}})));
    check(Kind::OpenAi, &server, expect![[r#"
        Chat          No       http://server/v1/chat/completions answered 401: No such key. Check the profile's key, or give it one.
        Streaming     Unclear  not asked
        NativeTools   Unclear  not asked
        ForcedTool    Unclear  not asked
        ParallelCalls Unclear  not asked
        JsonSchema    Unclear  not asked
        JsonObject    Unclear  not asked
        Reasoning     Unclear  not asked
        Usage         Unclear  not asked
        CachedTokens  Unclear  not asked
        ContextSize   Unclear  not asked
        mode native, context None, refused {}
    "#]]).await;
    assert_eq!(server.requests().len(), 1);
}
