//! The play that the tests of models and of kills go through: the user's side by what is pending, the models' by what
//! they are asked.

use quire_testkit::fake_openai::FakeReply;
use serde_json::{Value, json};

use crate::desk::Desk;

/// The same play for a scripted model.
pub const SCENARIO: &str = "
agent   run_worker write: Nothing is written yet.
worker  submit text.draft: The lamp was dark.
worker  submit text.draft: The lamp was darker.
agent   run_worker polish: The text stands.
worker  submit final.draft: The lamp was darkest.
agent   ask_user: All is done.
";

/// Model calls of the whole play.
pub const CALLS: usize = 6;

/// Answers a request as a model that goes by the blackboard.
pub fn reply(request: &Value) -> FakeReply {
    let text = said(request);
    let writes = |tag: &str| text.contains(&format!("`{tag}`"));
    if is_agent(request) {
        match () {
            () if text.contains("final.confirmed: accepted") => {
                FakeReply::call("ask_user", &json!({"assessment": "All is done."}))
            }
            () if text.contains("text.confirmed: accepted") => run("polish", "The text stands."),
            () => run("write", "Nothing is written yet."),
        }
    } else if writes("final.draft") {
        submit("final.draft", "The lamp was darkest.")
    } else if text.contains("Darker.") {
        submit("text.draft", "The lamp was darker.")
    } else {
        submit("text.draft", "The lamp was dark.")
    }
}

/// Says whether the main agent asks.
pub fn is_agent(request: &Value) -> bool {
    request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["function"]["name"] == "run_worker"))
}

/// Calls `run_worker`.
pub fn run(worker: &str, reason: &str) -> FakeReply {
    FakeReply::call("run_worker", &json!({"workerId": worker, "reason": reason, "requiresApproval": false}))
}

/// Calls `submit`.
pub fn submit(tag: &str, text: &str) -> FakeReply {
    FakeReply::call("submit", &json!({"outputs": {tag: text}}))
}

/// Returns what stands in a request's user messages.
fn said(request: &Value) -> String {
    let messages = request["messages"].as_array().expect("messages");
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Says what the user does next; nothing when the session is done.
pub fn next(view: &Value) -> Option<Vec<&'static str>> {
    let artifacts = view["artifacts"].as_array().expect("artifacts").len();
    match (view["phase"].as_str(), view["waiting"]["reason"].as_str(), artifacts) {
        (Some("done"), _, _) => None,
        (_, Some("input"), 0) => Some(vec!["say", "A lamp."]),
        (_, Some("review_artifact"), 1) => Some(vec!["reject", "--reason", "Darker."]),
        (_, Some("review_artifact"), _) => Some(vec!["accept"]),
        (_, Some("approve_step"), _) => Some(vec!["approve"]),
        (_, Some("input"), _) => Some(vec!["finish"]),
        _ => panic!("the play does not come here: {view}"),
    }
}

/// Puts a session behind what the user does.
pub fn on<'a>(session: &'a str, mut words: Vec<&'a str>) -> Vec<&'a str> {
    words.insert(1, session);
    words.push("--json");
    words
}

/// Plays to the end without a stop.
pub fn play(desk: &Desk, session: &str) -> Value {
    let mut view = desk.show(session);
    while let Some(words) = next(&view) {
        view = desk.quire(&on(session, words)).expect(0).json();
    }
    view
}

/// Takes out what differs from play to play: names, times, and what a repeated call costs.
pub fn comparable(mut view: Value) -> Value {
    for field in ["session", "seq", "profile", "spent", "calls"] {
        view.as_object_mut().expect("an object").remove(field);
    }
    view
}
