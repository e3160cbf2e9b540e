use std::sync::Mutex;

use expect_test::{Expect, expect};
use quire_adapters::providers::scripted::Scripted;
use quire_core::ids::{CallId, SessionId, SkillId};
use quire_runtime::ports::{Asker, Delta, ModelProvider, ModelRequest};
use quire_scenario::Scenario;

const SCENARIO: &str = "
    agent   text: I think.
     and    run_worker draft
    worker  fails unavailable: 503, says the script.
    worker  submit story.draft: 灯塔👨‍👩‍👧。
";

fn request(asker: Asker, answered_before: u64) -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s"),
        call: CallId(1),
        asker,
        answered_before,
        messages: vec![],
        tools: vec![],
        output_tags: vec![],
    }
}

fn draft() -> Asker {
    Asker::Worker { skill: SkillId::new("draft"), role: None }
}

async fn check(request: ModelRequest, expected: Expect) {
    let scripted = Scripted::new(Scenario::parse("test.scenario", SCENARIO).expect("the scenario has no faults"));
    let shown = Mutex::new(String::new());
    let note = |line: String| {
        let mut shown = shown.lock().expect("no test thread panics while it notes");
        *shown += &line;
        *shown += "\n";
    };
    let answer = scripted
        .ask(&request, &|delta| match delta {
            Delta::Text(text) => note(format!("text {text:?}")),
            Delta::Reasoning(text) => note(format!("reasoning {text:?}")),
            Delta::Arguments { tool, text } => note(format!("{tool} {text:?}")),
        })
        .await;
    match answer {
        Ok(reply) => note(format!("{:?}: {:?} and {} calls", reply.finish, reply.text, reply.calls.len())),
        Err(error) => note(format!("may_retry={} {}", error.may_retry, error.failure.message)),
    }
    expected.assert_eq(&shown.into_inner().expect("no test thread panics while it notes"));
}

#[tokio::test]
async fn a_reply_comes_in_small_pieces_and_then_whole() {
    check(
        request(Asker::Agent, 0),
        expect![[r#"
        text "I th"
        text "ink."
        run_worker "{\"wo"
        run_worker "rker"
        run_worker "Id\":"
        run_worker "\"dra"
        run_worker "ft\","
        run_worker "\"rea"
        run_worker "son\""
        run_worker ":\"dr"
        run_worker "aft "
        run_worker "come"
        run_worker "s ne"
        run_worker "xt\","
        run_worker "\"req"
        run_worker "uire"
        run_worker "sApp"
        run_worker "rova"
        run_worker "l\":f"
        run_worker "alse"
        run_worker "}"
        ToolCalls: "I think." and 1 calls
    "#]],
    )
    .await;
}

#[tokio::test]
async fn pieces_never_split_what_a_reader_sees_as_one_letter() {
    check(
        request(draft(), 1),
        expect![[r#"
        submit "{\"ou"
        submit "tput"
        submit "s\":{"
        submit "\"sto"
        submit "ry.d"
        submit "raft"
        submit "\":\"灯"
        submit "塔👨\u{200d}👩\u{200d}👧。\""
        submit "}}"
        ToolCalls: "" and 1 calls
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_scripted_failure_comes_once() {
    check(
        request(draft(), 0),
        expect![[r#"
        may_retry=false 503, says the script.
    "#]],
    )
    .await;
}
