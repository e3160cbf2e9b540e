//! What calls cost, what stops when the budget is spent, and how fast a stop reaches the provider.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quire_testkit::fake_model::{FakeModel, FakeReply};
use serde_json::{Value, json};

use crate::desk::{Desk, ran, until};
use crate::story::{self, play};

/// A server that counts ten tokens in and one out for each call, and a profile that prices them: a call costs 0.012.
async fn priced() -> (FakeModel, Desk) {
    let server = FakeModel::start().await;
    server.script(story::reply);
    let desk = Desk::new();
    let url = format!("{}/v1", server.url());
    let prices = ["--price-in", "1000", "--price-out", "2000"];
    desk.quire(&[&["model", "add", "--url", &url, "--model", "lamp-1"], prices.as_slice()].concat()).expect(0);
    (server, desk)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_limit_stops_before_the_next_call_and_a_higher_one_goes_on() {
    for (limit, low, high) in [("--money", "0.02", "1"), ("--tokens", "20", "none"), ("--rounds", "2", "100")] {
        let (server, desk) = priced().await;
        let session = desk.start();
        desk.quire(&["set-budget", &session, limit, low]).expect(0);
        let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
        assert_eq!(view["waiting"]["reason"], "review_artifact", "two calls are within it");
        let view = desk.quire(&["accept", &session, "--json"]).expect(0).json();
        assert_eq!(view["waiting"]["cause"], "budget_spent", "{limit}: {view}");
        assert_eq!(server.requests().len(), 2, "{limit}: nothing is asked once it is spent");
        assert_eq!(view["spent"]["money_micros"], 24_000);
        desk.quire(&["retry", &session]).expect(3);
        desk.quire(&["set-budget", &session, limit, high]).expect(0);
        let view = desk.quire(&["retry", &session, "--json"]).expect(0).json();
        assert_eq!(view["waiting"]["reason"], "approve_step", "{limit}: {view}");
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_and_money_are_told_by_call_and_in_sum() {
    let (server, desk) = priced().await;
    let arguments = r#"{\"workerId\":\"write\",\"reason\":\"go\",\"requiresApproval\":false}"#;
    let cached = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\"function\":{{\"name\":\
         \"run_worker\",\"arguments\":\"{arguments}\"}}}}]}},\"finish_reason\":\"tool_calls\"}}],\"usage\":{{\"prompt_tokens\":\
         200,\"completion_tokens\":10,\"prompt_tokens_details\":{{\"cached_tokens\":150}}}}}}\n\ndata: [DONE]\n\n"
    );
    server.reply(FakeReply::chunks([cached]));
    desk.quire(&["model", "set", "--price-cached", "100"]).expect(0);
    let session = desk.start();
    let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["reason"], "review_artifact", "{view}");
    let told = desk.quire(&["journal", &session]).expect(0).out;
    assert!(told.contains("run_worker, 200 tokens in (75% cached), 10 out, 0.0850 money"), "{told}");
    assert!(told.ends_with("Spent in all: 210 tokens in (71% cached), 11 out, 0.0970 money\n"), "{told}");
    let shown = desk.quire(&["show", &session]).expect(0).out;
    assert!(shown.contains("Spent: 2 rounds, 210 tokens in (71% cached), 11 out, 0.0970 money"), "{shown}");
    assert!(shown.contains("by write, 10 tokens in (0% cached), 1 out, 0.0120 money"), "{shown}");
    let calls = &desk.show(&session)["calls"];
    assert_eq!((&calls[0]["skill"], &calls[0]["cached_tokens"]), (&Value::Null, &json!(150)));
    assert_eq!((&calls[1]["skill"], &calls[1]["money_micros"]), (&json!("write"), &json!(12_000)));
    let sums: Vec<Value> = desk.journal(&session).iter().filter_map(|record| record.get("spent").cloned()).collect();
    assert_eq!((&sums[0]["input_tokens"], &sums[1]["input_tokens"]), (&json!(200), &json!(210)));
}

#[test]
fn the_first_segment_that_broke_the_prefix_is_named() {
    let desk = Desk::new();
    let session = desk.start_scripted(story::SCENARIO);
    play(&desk, &session);
    let context = |run: &str| desk.quire(&["context", &session, run, "--json"]).expect(0).json();
    assert_eq!(context("1")["firstDifference"], Value::Null, "the first run has none before it");
    let difference = &context("2")["firstDifference"];
    assert_eq!((&difference["run"], &difference["segment"]), (&json!(1), &json!("final")));
    assert!(difference["sameTokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let told = desk.quire(&["context", &session, "2"]).expect(0).out;
    assert!(told.contains("Differs from run 1 first in final"), "{told}");
}

/// A stop from another process breaks the request off, and what had come is kept.
///
/// The time from the stop's record to the provider's end of the line is the machine's as well as ours, and a stop may come
/// before the first piece: of ten stops, one has to keep its piece and be within 100 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_from_another_process_reaches_the_provider_at_once() {
    let server = FakeModel::start().await;
    let desk = Desk::new().with_server(server.url());
    let mut times = vec![];
    for round in 1..=10 {
        let piece = r#"{"choices":[{"index":0,"delta":{"content":"It was a dark and 🌧 "}}]}"#;
        server.reply(FakeReply::chunks([format!("data: {piece}\n\n")]).then_hang());
        let session = desk.start();
        let saying = desk.spawn(&["say", &session, "A lamp.", "--json"]);
        until("the model is asked", || (server.requests().len() == round).then_some(()));
        let (hung_up, stopped) = tokio::join!(
            hung_up(&server, round),
            tokio::task::spawn_blocking({
                let mut stop = desk.command(&["stop", &session, "--json"]);
                move || ran(stop.output().expect("the program starts"))
            })
        );
        assert_eq!(stopped.expect("it ends").expect(0).json()["waiting"]["cause"], "stopped");
        ran(saying.wait_with_output().expect("it ends")).expect(0);
        // The one who drives has written all of it by now.
        let view = desk.show(&session);
        if view["incomplete"] == json!([]) {
            continue;
        }
        assert_eq!(view["incomplete"][0]["text"], "It was a dark and 🌧 ");
        assert_eq!(view["incomplete"][0]["cause"], "stopped by you");
        let stop = desk.journal(&session).into_iter().find(|record| record["action"] == "stop").expect("a stop");
        let heard = Duration::from_millis(stop["time"].as_u64().expect("a time"));
        times.push(hung_up.saturating_sub(heard));
        if times.last().is_some_and(|time| *time <= Duration::from_millis(100)) {
            return;
        }
    }
    panic!("no stop reached the provider within 100 ms: {times:?}");
}

/// Waits until the provider has lost its listener, and says when that was.
async fn hung_up(server: &FakeModel, count: usize) -> Duration {
    server.hang_ups(count).await;
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970")
}
