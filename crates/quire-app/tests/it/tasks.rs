//! Deep tasks as their users start them: with a tool server in shell, through kills, and cancelled from another terminal.

use quire_testkit::fake_openai::{FakeOpenAi, FakeReply};
use serde_json::{Value, json};

use crate::desk::{Desk, ran, until};
use crate::kills::Records;

/// Answers two tools, `look` (which only reads) and `act`, and writes a line for each call into the file it is given.
const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}\n' "$id" ;;
        *'"initialize"'*) reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}' ;;
        *'"tools/list"'*) reply '{"tools":[{"name":"act","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
        *'"tools/call"'*) echo called >> "$1"; reply '{"content":[{"type":"text","text":"Paraffin."}]}' ;;
    esac
done
"#;

const THREE_CALLS: &str = "
    pack    lamp
    task    call look {\"query\": 1}
    task    call act {\"query\": 2}
    task    call look {\"query\": 3}
    task    text: By paraffin.
";

/// A desk with the server in place, `act` ticked.
fn desk() -> Desk {
    let desk = Desk::new();
    let log = desk.path().join("calls").display().to_string();
    desk.quire(&["tool", "add", "shell", "--tick", "act", "--", "sh", "-c", SERVER, "server", &log]).expect(0);
    desk
}

fn count(desk: &Desk, session: &str, event: &str) -> usize {
    desk.journal(session).iter().filter(|record| record["event"] == event).count()
}

#[test]
fn a_task_is_started_listed_and_shown_with_its_result() {
    let desk = desk();
    let session = desk.start_scripted(THREE_CALLS);
    let before = desk.show(&session);
    let task = desk.quire(&["task", "start", &session, "--json", "How were lamps lit?"]).expect(0).json();
    assert_eq!(task["state"], "done");
    assert_eq!(task["result"]["tag"], "委托.1.结果");
    assert_eq!(task["result"]["content"], "By paraffin.");
    assert_eq!(task["toolCalls"], 3);
    let after = desk.show(&session);
    for field in ["phase", "waiting", "burst", "stage"] {
        assert_eq!(after[field], before[field], "a task changes no {field}");
    }
    assert_eq!(after["tasks"], json!([task]));
    let list = desk.quire(&["task", "list", &session]).expect(0);
    assert!(list.out.contains("How were lamps lit?: done (4 of 24 rounds, 3 tool calls"), "{list:?}");
    let show = desk.quire(&["task", "show", &session, "1"]).expect(0);
    assert!(show.out.contains("── 委托.1.结果 ──\nBy paraffin."), "{show:?}");
    desk.quire(&["task", "show", &session, "2"]).expect(3);
    desk.quire(&["task", "cancel", &session, "1"]).expect(3);
    let calls = std::fs::read_to_string(desk.path().join("calls")).expect("calls were made");
    assert_eq!(calls.lines().count(), 3);
}

#[test]
fn servers_are_kept_tested_and_removed_and_a_bad_file_is_named() {
    let desk = desk();
    let tested = desk.quire(&["tool", "test", "shell", "--json"]).expect(0).json();
    let marks: Vec<(&Value, &Value)> =
        tested["tools"].as_array().expect("tools").iter().map(|tool| (&tool["name"], &tool["inTasks"])).collect();
    assert_eq!(marks, [(&json!("act"), &json!(true)), (&json!("look"), &json!(true))]);
    desk.quire(&["tool", "add", "key", "--env", "KEY=hidden-key", "--url", "http://127.0.0.1:1/mcp"]).expect(0);
    let list = desk.quire(&["tool", "list", "--json"]).expect(0);
    assert!(list.out.contains("KEY") && !list.out.contains("hidden-key"), "keys are not shown: {list:?}");
    let gone = desk.quire(&["tool", "test", "key"]).expect(1);
    assert!(gone.err.contains("the tool server `key`: it cannot be reached: "), "{gone:?}");
    desk.quire(&["tool", "remove", "key"]).expect(0);
    desk.quire(&["tool", "remove", "key"]).expect(3);
    desk.quire(&["tool", "add", "x"]).expect(2);

    let session = desk.start_scripted("pack lamp\ntask text: Nothing to go by.\n");
    std::fs::write(desk.path().join("data/tools.json"), "{").expect("it can be spoiled");
    let task = desk.quire(&["task", "start", &session, "--json", "Dig."]).expect(0).json();
    assert_eq!(task["state"], "done", "the session goes on without tools");
    let log = desk.show(&session)["log"].to_string();
    assert!(log.contains("tools.json cannot be read"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_record_a_task_comes_to_its_end_and_repeats_no_round() {
    let desk = desk();
    let session = desk.start_scripted(THREE_CALLS);
    let records = Records::of(&desk).await;
    let mut killed_at = vec![records.news().await];
    let mut words = vec!["task", "start", &session, "How were lamps lit?"];
    while desk.show(&session)["tasks"][0]["state"] != "done" {
        let mut child = desk.spawn(&words);
        let mut news = 0;
        while news <= *killed_at.last().expect("one at least") && child.try_wait().expect("a child of ours").is_none() {
            news = records.news().await;
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
        killed_at.push(records.news().await);
        if desk.show(&session)["tasks"][0]["state"] == "running" {
            words = vec!["task", "watch", &session];
        }
    }
    let shown = desk.show(&session);
    assert_eq!(shown["tasks"][0]["result"]["content"], "By paraffin.", "killed at {killed_at:?}");
    assert!(killed_at.len() > 8, "it was killed between most records: {killed_at:?}");
    assert_eq!(count(&desk, &session, "model_replied"), 4, "no round was asked for again once it was there");
    let answers = count(&desk, &session, "tool_answered") + count(&desk, &session, "tool_lost");
    assert_eq!(answers, 3, "each call has one outcome");
    let acts = |record: &Value| record["event"] == "tool_asked" && record["call"] == 2;
    assert_eq!(desk.journal(&session).iter().filter(|record| acts(record)).count(), 1, "what may have acted is not done again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_terminal_cancels_a_task_and_its_request_is_broken_off() {
    let server = FakeOpenAi::start().await;
    let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"By paraf"}}]}"#;
    server.reply(FakeReply::chunks([format!("{piece}\n\n")]).then_hang());
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let working = desk.spawn(&["task", "start", &session, "--json", "How were lamps lit?"]);
    until("the model is asked", || (server.requests().len() == 1).then_some(()));
    let cancelled = desk.quire(&["task", "cancel", &session, "1", "--json"]).expect(0).json();
    assert_eq!(cancelled["state"], "cancelled");
    let worked = ran(working.wait_with_output().expect("it ends")).expect(0).json();
    assert_eq!(worked["state"], "cancelled", "cancelled is not failed");
    server.hang_ups(1).await;
    let request = &server.requests()[0];
    assert!(!format!("{request:?}").contains("run_worker"), "no session tool is offered to a task");
}
