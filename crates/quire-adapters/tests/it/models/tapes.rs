//! Traffic recorded and replayed.

use std::sync::Arc;

use expect_test::expect;
use quire_adapters::providers::openai::{OpenAi, OpenAiConfig};
use quire_adapters::providers::tape::{Recorder, Replay};
use quire_runtime::ports::ModelProvider;
use quire_testkit::fake_model::{FakeModel, FakeReply};
use serde_json::json;

use super::request;
use crate::heard::{Heard, shown};

const KEY: &str = "sk-very-secret-key";

#[tokio::test]
async fn a_recording_answers_as_the_model_did_and_holds_no_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.tape");
    let server = FakeModel::start().await;
    server.reply(FakeReply::text("灯塔熄了。👩‍🚀").with_reasoning("先想"));
    server.reply(FakeReply::status(503, &json!({"error": {"message": format!("busy, {KEY}")}})));
    server.reply(FakeReply::call("submit", &json!({"outputs": {"章.草稿": "灯"}})));
    let config = OpenAiConfig { key: Some(KEY.into()), ..OpenAiConfig::new(server.url(), "model-1", 8_000) };
    let real = Arc::new(OpenAi::new(config).expect("a provider"));
    let recorder = Recorder::new(real, &path).expect("a file");
    let questions = [request("一"), request("二"), request("三")];
    let mut recorded = vec![];
    for question in &questions {
        let heard = Heard::default();
        recorded.push((recorder.ask(question, &|delta| heard.take(delta)).await, heard.whole()));
    }
    let tape = std::fs::read_to_string(&path).expect("a recording");
    assert!(!tape.contains(KEY), "{tape}");

    let replay = Replay::open(&path, recorder.prompt_tokens_max()).expect("a recording");
    assert_eq!(replay.model(), "model-1");
    // By what is asked, in whatever order.
    for at in [2, 0, 1] {
        let heard = Heard::default();
        let answer = replay.ask(&questions[at], &|delta| heard.take(delta)).await;
        assert_eq!((answer, heard.whole()), recorded[at]);
    }
    let end = replay.ask(&questions[0], &|_| {}).await;
    expect![[r#"
        failure   Setup
                  the recording is at its end and holds no answer to this; record again
    "#]]
    .assert_eq(&shown(&end));

    // What was never asked gets what is next.
    let replay = Replay::open(&path, 1).expect("a recording");
    assert_eq!(replay.ask(&request("四"), &|_| {}).await, recorded[0].0);

    std::fs::write(&path, "{\"request\":").expect("a file");
    let broken = Replay::open(&path, 1).err().expect("a refusal").to_string();
    assert!(broken.contains("line 1 of the recording") && broken.ends_with("record it again"), "{broken}");
}
