//! Models by profile: added, listed, tested, used by sessions and by a pack's bindings, removed. No key is ever shown.

use expect_test::expect;
use quire_testkit::fake_model::{FakeModel, FakeReply, Wire};
use serde_json::{Value, json};

use crate::desk::{Desk, lamp};
use crate::story::{self, play};

/// Adds a profile of a server, with a key on standard input.
fn add(desk: &Desk, name: &str, server: &FakeModel, more: &[&str]) {
    let url = format!("{}/v1", server.url());
    let arguments = [&["model", "add", name, "--url", &url, "--model", "lamp-1", "--key-stdin"], more].concat();
    desk.quire_given(&arguments, "secret-key-1\n").expect(0);
}

/// Puts a word in place of an address that differs from run to run.
fn without_port(text: &str, server: &FakeModel) -> String {
    text.replace(server.url(), "http://SERVER")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_serves_a_session_and_its_key_is_nowhere_to_be_read() {
    let server = FakeModel::start().await;
    server.script(story::reply);
    let desk = Desk::new();
    add(&desk, "mine", &server, &["--context", "16000", "--price-in", "2.50", "--price-out", "10"]);
    let new = desk.quire(&["new", &lamp(), "--json", "--model", "mine"]).expect(0);
    assert_eq!(new.err, "");
    let session = new.json()["session"].as_str().expect("an id").to_owned();
    let end = play(&desk, &session);
    assert_eq!((&end["phase"], &end["profile"]), (&json!("done"), &json!("mine")));
    assert!(server.authorizations().iter().all(|sent| sent.as_deref() == Some("Bearer secret-key-1")));

    let listed = desk.quire(&["model", "list"]).expect(0);
    expect![[r#"
        mine: lamp-1 at http://SERVER/v1
          context 16000 tokens, acts by `native`, not tested yet
          its key is in a file that only you may read
          a million tokens cost 2.5 in, 2.5 cached, 10 out
    "#]]
    .assert_eq(&without_port(&listed.out, &server));
    let shown = [
        listed.out,
        desk.quire(&["model", "list", "--json"]).expect(0).out,
        desk.quire(&["journal", &session, "--json"]).expect(0).out,
        desk.quire(&["show", &session, "--json"]).expect(0).out,
        desk.quire(&["model", "remove", "mine", "--json"]).expect(0).out,
    ];
    assert!(!shown.concat().contains("secret-key"), "{shown:?}");
    let database = std::fs::read(desk.database()).expect("the database");
    assert!(!database.windows(10).any(|bytes| bytes == b"secret-key"));
    let keys = std::fs::read_to_string(desk.path().join("data/keys.json")).unwrap_or_default();
    assert!(!keys.contains("secret-key"), "a removed profile's key goes with it");
    let gone = desk.quire(&["new", &lamp(), "--model", "mine"]).expect(3);
    assert!(gone.err.contains("there is no model profile `mine`; there are: none"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_called_default_serves_where_nothing_else_is_said() {
    let (server, other) = (FakeModel::start().await, FakeModel::start().await);
    for server in [&server, &other] {
        server.script(story::reply);
    }
    let desk = Desk::new();
    // Begun before there was any model: it is served once there is one.
    let early = desk.quire(&["new", &lamp(), "--json"]).expect(0);
    assert!(early.err.contains("quire model add"), "{early:?}");
    desk.quire(&["model", "add", "--url", &format!("{}/v1", server.url()), "--model", "lamp-1"]).expect(0);
    let early = early.json()["session"].as_str().expect("an id").to_owned();
    assert_eq!(play(&desk, &early)["phase"], "done");

    let session = desk.start();
    assert_eq!(desk.show(&session)["profile"], "default");
    let asked = server.requests().len();
    assert_eq!(play(&desk, &session)["phase"], "done");
    assert!(server.requests().len() > asked);

    // Who sets variables means them.
    let desk = desk.with_server(other.url());
    let session = desk.start();
    assert_eq!(desk.show(&session)["profile"], "environment");
    assert_eq!(play(&desk, &session)["phase"], "done");
    assert!(!other.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_packs_bindings_name_profiles_and_unknown_ones_refuse_the_start() {
    let (server, writer) = (FakeModel::start().await, FakeModel::start().await);
    for server in [&server, &writer] {
        server.script(story::reply);
    }
    let desk = Desk::new();
    let pack = desk.path().join("bound");
    for file in ["orchestrator.md", "workers/write/SKILL.md", "workers/polish/SKILL.md"] {
        let copy = pack.join(file);
        std::fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        std::fs::copy(format!("{}/{file}", lamp()), copy).expect("a copy");
    }
    std::fs::write(pack.join("llm-bindings.yaml"), "workers:\n  write: quill\n").expect("a file");
    let pack = pack.to_str().expect("a path that is text");
    add(&desk, "default", &server, &[]);
    let refused = desk.quire(&["new", pack]).expect(3);
    assert!(refused.err.contains("the pack binds the profile `quill`"), "{refused:?}");
    assert!(refused.err.contains("there are: default"), "{refused:?}");

    add(&desk, "quill", &writer, &[]);
    let session = desk.quire(&["new", pack, "--json"]).expect(0).json();
    assert_eq!(play(&desk, session["session"].as_str().expect("an id"))["phase"], "done");
    assert!(writer.requests().iter().all(|request| !story::is_agent(request)));
    assert_eq!(writer.requests().len(), 2, "the writer writes, and mends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_tells_the_providers_own_words_and_keeps_what_it_learnt() {
    let server = FakeModel::start().await;
    server.document("/v1/models", json!({"object": "list", "data": [{"id": "lamp-1", "max_model_len": 4096}]}));
    server.script(|request: &Value| match (request.get("tools"), request.get("response_format")) {
        (Some(_), _) => FakeReply::refused_parameter("tools", "lamp-1 has no hands"),
        (None, Some(_)) => FakeReply::text(r#"{"kf7": "q9"}"#),
        (None, None) => FakeReply::text("one two three four five six seven eight nine ten"),
    });
    let desk = Desk::new();
    add(&desk, "small", &server, &[]);
    let tested = desk.quire(&["model", "test", "small"]).expect(0);
    expect![[r#"
          chat            yes      “one two three four five six seven eight nine ten”
          streaming       yes      “one two three four five six seven eight nine ten”
          native tools    no       lamp-1 has no hands
          forced tool     unclear  not asked
          parallel calls  unclear  not asked
          JSON schema     yes      “{"kf7": "q9"}”
          JSON object     yes      “{"kf7": "q9"}”
          reasoning       no       none was shown
          token counts    yes      10 in, 49 out
          cached tokens   no       0 of 10 the second time
          context size    yes      4096 tokens, says its list of models
          refuses `tools`: lamp-1 has no hands
        Kept in small: it is told to act by `json_schema`.
    "#]]
    .assert_eq(&without_port(&tested.out, &server));
    let profile = &desk.quire(&["model", "list", "--json"]).expect(0).json()["profiles"][0];
    assert_eq!((&profile["tool_mode"], &profile["context_tokens"]), (&json!("json_schema"), &json!(4096)));

    let dead = Desk::new();
    dead.quire(&["model", "add", "--url", "http://127.0.0.1:1/v1", "--model", "lamp-1"]).expect(0);
    let tested = dead.quire(&["model", "test", "--json"]).expect(1).json();
    assert_eq!(tested["report"]["findings"][0]["verdict"], "unclear");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_wires_are_used_as_their_profiles_say() {
    let server = FakeModel::speaking(Wire::Anthropic).await;
    let desk = Desk::new();
    let url = format!("{}/v1", server.url());
    let added =
        desk.quire_given(&["model", "add", "--kind", "anthropic", "--url", &url, "--model", "m", "--key-stdin"], "secret-key");
    added.expect(0);
    server.reply(FakeReply::call("ask_user", &json!({"assessment": "What about it?"})).with_reasoning("想").with_signature("s1"));
    let session = desk.start();
    let view = desk.quire(&["say", &session, "A lamp.", "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["message"], "What about it?");
    let replied = desk.journal(&session).into_iter().find(|record| record["event"] == "model_replied").expect("a reply");
    assert_eq!(replied["reply"]["reasoning"], "想", "a person reads it without its signature");
}

#[test]
fn what_cannot_be_a_profile_is_told_and_changes_nothing() {
    let desk = Desk::new();
    desk.quire(&["model", "add", "mine", "--preset", "ollama", "--model", "small"]).expect(0);
    let cases: [(i32, &[&str]); 9] = [
        (2, &["model", "add", "mine"]),
        (2, &["model", "add", "mine", "--preset", "nobody", "--model", "m"]),
        (2, &["model", "add", "other", "--preset", "ollama"]),
        (3, &["model", "add", "mine", "--preset", "ollama", "--model", "m"]),
        (3, &["model", "add", "demo", "--preset", "ollama", "--model", "m"]),
        (2, &["model", "add", "a b", "--preset", "ollama", "--model", "m"]),
        (1, &["model", "add", "other", "--url", "not an address", "--model", "m"]),
        (2, &["model", "add", "other", "--preset", "openai", "--model", "m", "--key-stdin"]),
        (3, &["model", "test", "nobody"]),
    ];
    let mut told = String::new();
    for (code, arguments) in cases {
        let ran = desk.quire(arguments).expect(code);
        let first = ran.err.lines().next().unwrap_or_default();
        told.push_str(&format!("{} [{code}]\n    {first}\n", arguments.join(" ")));
    }
    expect![[r#"
        model add mine [2]
            error: the following required arguments were not provided:
        model add mine --preset nobody --model m [2]
            error: invalid value 'nobody' for '--preset <PRESET>'
        model add other --preset ollama [2]
            quire: name the model as its server does: `--model NAME`; `quire model find` lists local ones
        model add mine --preset ollama --model m [3]
            quire: there is a model profile `mine` already; remove it first, or choose another name
        model add demo --preset ollama --model m [3]
            quire: `demo` is always there; choose another name
        model add a b --preset ollama --model m [2]
            quire: `a b` cannot be the name of a model profile; use letters, digits, `-`, `_` and `.`, at most 64 of them
        model add other --url not an address --model m [1]
            quire: the model profile `other` cannot be used: the base URL `not an address` has no scheme; write `http://not an address` for a server nearby, `https://not an address` for any other
        model add other --preset openai --model m --key-stdin [2]
            quire: there is no key on stdin; pipe it in, or name a variable with --key-env
        model test nobody [3]
            quire: there is no model profile `nobody`; there are: mine; `quire model add` makes one
    "#]]
    .assert_eq(&told);
    let left = desk.quire(&["model", "list", "--json"]).expect(0).json();
    assert_eq!(left["profiles"].as_array().map(Vec::len), Some(1));
    let changed = desk.quire(&["model", "set", "mine", "--reply", "500", "--param", "temperature=0", "--json"]).expect(0).json();
    assert_eq!(changed["profile"]["parameters"], json!({"temperature": 0}));
    let warned =
        desk.quire(&["model", "add", "cloud", "--preset", "openai", "--model", "m", "--key-env", "QUIRE_NO_SUCH"]).expect(0);
    assert!(warned.out.contains("the variable QUIRE_NO_SUCH is not set"), "{warned:?}");
}
