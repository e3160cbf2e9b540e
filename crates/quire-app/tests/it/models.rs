//! Sessions against a server, by the environment's variables, and what becomes of a server's faults and a model's nonsense.

use quire_testkit::fake_openai::{FakeOpenAi, FakeReply};
use serde_json::{Value, json};

use crate::desk::{Desk, lamp};
use crate::story::{self, CALLS, play};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_family_of_variables_names_the_server() {
    let families = [
        (vec![("QUIRE_MODEL_NAME", "mine"), ("QUIRE_MODEL_KEY", "secret-1")], Some("Bearer secret-1"), "mine"),
        (vec![("OPENAI_MODEL", "theirs"), ("OPENAI_API_KEY", "secret-2")], Some("Bearer secret-2"), "theirs"),
        // A server of one's own gets no key of OpenAI's.
        (vec![("QUIRE_MODEL_NAME", "mine"), ("OPENAI_API_KEY", "secret-3"), ("OPENAI_MODEL", "theirs")], None, "mine"),
    ];
    for (variables, authorization, model) in families {
        let server = FakeOpenAi::start().await;
        server.script(story::reply);
        let is_own = variables.iter().any(|(name, _)| *name == "QUIRE_MODEL_NAME");
        let url = if is_own { "QUIRE_MODEL_URL" } else { "OPENAI_BASE_URL" };
        let desk = Desk::new().with(url, format!("{}/v1/", server.url()));
        let desk = variables.iter().fold(desk, |desk, (name, value)| desk.with(name, *value));
        let session = desk.start();
        let end = play(&desk, &session);
        assert_eq!(end["phase"], "done");
        assert_eq!(server.requests().len(), CALLS);
        assert!(server.requests().iter().all(|request| request["stream"] == true && request["model"] == model));
        assert!(server.authorizations().iter().all(|sent| sent.as_deref() == authorization));
        assert_eq!(end["spent"]["rounds"], CALLS);
        assert!(end["spent"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
        let everything = [desk.quire(&["journal", &session, "--json"]).out, end.to_string()].concat();
        assert!(!everything.contains("secret-"), "no key is journaled");
        let database = std::fs::read(desk.database()).expect("the database");
        assert!(!database.windows(7).any(|bytes| bytes == b"secret-"));
    }
}

#[test]
fn without_a_model_the_session_waits_and_says_what_to_set() {
    let desk = Desk::new();
    let begun = desk.quire(&["new", &lamp(), "--json"]).expect(0);
    assert!(begun.err.contains("export QUIRE_MODEL_URL"), "{begun:?}");
    let session = begun.json()["session"].as_str().expect("an id").to_owned();
    let failed = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(1).json();
    assert_eq!(failed["waiting"]["cause"], "failed");
    assert!(failed["waiting"]["causeMessage"].as_str().is_some_and(|message| message.contains("export QUIRE_MODEL_URL")));

    let desk = desk.with("QUIRE_MODEL_URL", "http://127.0.0.1:1/v1");
    let failed = desk.quire(&["retry", &session]).expect(1);
    assert!(failed.out.contains("export QUIRE_MODEL_NAME"), "{failed:?}");
    let desk = desk.with("QUIRE_MODEL_NAME", "m").with("QUIRE_MODEL_CONTEXT", "much");
    let failed = desk.quire(&["retry", &session]).expect(1);
    assert!(failed.out.contains("QUIRE_MODEL_CONTEXT is `much`"), "{failed:?}");
}

/// Faults that no second attempt mends: the user sees why, and `retry` goes on once they are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_is_quoted_and_retry_goes_on() {
    let error = |message: &str| json!({"error": {"message": message, "type": "x", "code": null}});
    let html = FakeReply::chunks(["<html><body><h1>Welcome to nginx!</h1></body></html>"]).header("content-type", "text/html");
    let faults = [
        (FakeReply::status(401, &error("Incorrect API key provided")), "Incorrect API key provided"),
        (FakeReply::status(404, &error("model lamp-1 does not exist")), "model lamp-1 does not exist"),
        (FakeReply::status(402, &error("insufficient balance")), "insufficient balance"),
        (html, "http"),
    ];
    for (fault, words) in faults {
        let server = FakeOpenAi::start().await;
        server.script(story::reply);
        let desk = Desk::new().with_server(server.url());
        let session = desk.start();
        server.reply(fault);
        let failed = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(1).json();
        assert_eq!(failed["waiting"]["cause"], "failed");
        let message = failed["waiting"]["causeMessage"].as_str().expect("a reason");
        assert!(message.contains(words), "{message}");
        assert_eq!(server.requests().len(), 1, "{words}: no second attempt");
        assert!(desk.quire(&["show", &session]).expect(0).out.contains(&format!("quire retry {session}")));
        let view = desk.quire(&["retry", &session, "--json"]).expect(0).json();
        assert_eq!(view["waiting"]["reason"], "review_artifact");
    }
}

/// Faults that pass: the call is made again, by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_passes_is_asked_again_by_itself() {
    let busy = || FakeReply::status(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "2");
    let down = || FakeReply::chunks(["<html>502 Bad Gateway</html>"]).with_status(502).header("content-type", "text/html");
    let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"It was a dark and"}}]}"#;
    let cut = || FakeReply::chunks([format!("{piece}\n\n")]).then_drop();
    let ended = || FakeReply::chunks([format!("{piece}\n\n")]);
    for (fault, pause_ms) in [(busy(), 2000), (down(), 500), (cut(), 500), (ended(), 500)] {
        let server = FakeOpenAi::start().await;
        server.script(story::reply);
        server.reply(fault);
        let desk = Desk::new().with_server(server.url());
        let session = desk.start();
        let begun = std::time::Instant::now();
        let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
        assert_eq!(view["waiting"]["reason"], "review_artifact");
        assert!(begun.elapsed().as_millis() >= pause_ms, "the pause is kept: {:?}", begun.elapsed());
        assert_eq!(server.requests().len(), 3, "the agent twice, the worker once");
        assert_eq!(view["burst"]["used"], 1, "a repeat costs no round");
        assert_eq!(view["spent"]["rounds"], 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_named() {
    let desk = Desk::new().with_server("http://127.0.0.1:1");
    let session = desk.start();
    let failed = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(1).json();
    let message = failed["waiting"]["causeMessage"].as_str().expect("a reason");
    assert!(message.contains("http://127.0.0.1:1"), "{message}");
    let server = FakeOpenAi::start().await;
    server.script(story::reply);
    let desk = desk.with_server(server.url());
    assert_eq!(play_on(&desk, &session)["phase"], "done");
}

/// Plays on from a failed call.
fn play_on(desk: &Desk, session: &str) -> Value {
    desk.quire(&["retry", session]).expect(0);
    play(desk, session)
}

/// Nonsense is answered so that the model can mend it, within the burst, and the user need not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_models_nonsense_is_answered_and_mended() {
    let run = r#"{"workerId":"write","reason":"go","requiresApproval":false}"#;
    let agent = [
        (FakeReply::call("write_story", &json!({"text": "It was a dark night."})), "write_story"),
        (FakeReply::calls([("run_worker", r#"{"workerId": "write", "reas"#)]), "cut off"),
        (FakeReply::call("run_worker", &json!({"workerId": "poet", "reason": "go", "requiresApproval": false})), "poet"),
        (FakeReply::calls([("run_worker", run), ("ask_user", r#"{"assessment":"Or shall I?"}"#)]), "call just one"),
    ];
    let worker = [
        (story::submit("chapter.draft", "Not mine."), "chapter.draft"),
        (FakeReply::calls([("submit", "{\"outputs\": [1, 2")]), "cut off"),
        (
            FakeReply::calls([("submit", r#"{"outputs":{"text.draft":"1"}}"#), ("submit", r#"{"outputs":{"text.draft":"2"}}"#)]),
            "submit",
        ),
    ];
    let cases = agent.map(|(nonsense, told)| (true, nonsense, told)).into_iter();
    for (is_agents, nonsense, told) in cases.chain(worker.map(|(nonsense, told)| (false, nonsense, told))) {
        let server = FakeOpenAi::start().await;
        let (once, asked) = (std::sync::Mutex::new(Some(nonsense)), told.to_owned());
        server.script(move |request| {
            let nonsense = (story::is_agent(request) == is_agents).then(|| once.lock().expect("a lock").take()).flatten();
            nonsense.unwrap_or_else(|| story::reply(request))
        });
        let desk = Desk::new().with_server(server.url());
        let session = desk.start();
        let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
        assert_eq!(view["waiting"]["reason"], "review_artifact", "{asked}: {view}");
        assert_eq!(server.requests().len(), 3, "{asked}");
        let answer = (server.requests().iter())
            .flat_map(|request| request["messages"].as_array().expect("messages").clone())
            .find(|message| message["role"] == "tool")
            .expect("the nonsense was answered");
        assert!(answer["content"].as_str().is_some_and(|words| words.contains(told)), "{told}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_only_talks_is_heard_by_the_user() {
    let server = FakeOpenAi::start().await;
    server.reply(FakeReply::text("I think that a lamp is a fine thing."));
    server.script(story::reply);
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["message"], "I think that a lamp is a fine thing.");
    assert_eq!(view["waiting"]["reason"], "input");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_never_submits_fails_with_its_reason_and_can_be_retried() {
    let server = FakeOpenAi::start().await;
    server.script(|request| match story::is_agent(request) {
        true => story::reply(request),
        false => FakeReply::call("submit", &json!({"outputs": {}})),
    });
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let failed = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(1).json();
    assert_eq!(failed["waiting"]["cause"], "failed");
    let message = failed["waiting"]["causeMessage"].as_str().expect("a reason");
    assert!(message.contains("write"), "{message}");
    assert!(server.requests().len() <= 9, "the worker's rounds are capped");
    server.script(story::reply);
    let view = desk.quire(&["retry", &session, "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["reason"], "review_artifact");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_replies_cost_their_burst_and_no_more() {
    let server = FakeOpenAi::start().await;
    server.script(|_| FakeReply::text(""));
    let desk = Desk::new().with_server(server.url());
    let session = desk.start();
    let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["cause"], "burst_spent");
    assert_eq!(server.requests().len(), 12);
    server.script(story::reply);
    assert_eq!(play_on(&desk, &session)["phase"], "done");
}
