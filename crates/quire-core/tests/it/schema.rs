//! Pages of `docs/schema/` that are made from what the code holds; `cargo xtask codegen` writes them anew.

use std::collections::BTreeMap;

use expect_test::expect_file;
use quire_core::context::TokenCount;
use quire_core::event::{Action, Event, Start};
use quire_core::ids::{CallId, SessionId, Timestamp};
use quire_core::message::{Finish, Reply, ToolCall, ToolSpec, Usage};
use quire_core::pack::PackFiles;
use quire_core::session::Session;
use serde_json::{Value, json};

#[test]
fn tools_are_documented_as_models_are_told_of_them() {
    let mut session = Session::new(SessionId::new("tools"));
    let start = Start {
        title: String::new(),
        pack: Some(pack()),
        profile: String::new(),
        burst_max: None,
        budget: Default::default(),
        offer: vec![],
    };
    hear(&mut session, Event::Started(start));
    hear(&mut session, Event::User(Action::SubmitInput { text: "Begin.".into(), values: BTreeMap::new() }));
    let agent = tools(&session);
    let arguments = r#"{"workerId": "plan", "reason": "First.", "requiresApproval": false}"#.into();
    let call = ToolCall { id: "1".to_owned(), name: "run_worker".to_owned(), arguments };
    let reply =
        Reply { text: "".into(), reasoning: "".into(), calls: vec![call], finish: Finish::ToolCalls, usage: Usage::default() };
    hear(&mut session, Event::ModelReplied { call: CallId(1), reply });
    let page = json!({ "main agent": agent, "worker": tools(&session) });
    let page = serde_json::to_string_pretty(&page).expect("a value is JSON") + "\n";
    expect_file!["../../../../docs/schema/tools.json"].assert_eq(&page);
}

/// A pack with a design stage: only there all tools are told.
fn pack() -> PackFiles {
    let files = [
        ("orchestrator.md", "---\nname: tools\ndescription: Shows all tools.\nworkers: [plan]\nstages: {plan: design}\n---\n"),
        ("workers/plan/SKILL.md", "---\nid: plan\ndescription: Plans.\noutputTags: [plan.draft]\n---\nPlan.\n"),
    ];
    PackFiles(files.into_iter().map(|(path, text)| (path.to_owned(), text.into())).collect())
}

fn hear(session: &mut Session, event: Event) {
    session.handle(Timestamp(0), event).expect("it is heard");
}

fn tools(session: &Session) -> Value {
    let (prompt, _) = session.prompt(100_000, &Free).expect("there is room");
    prompt.tools.iter().map(|tool| tool_view(tool)).collect()
}

/// Counts nothing: the tools do not depend on it.
struct Free;

impl TokenCount for Free {
    fn count(&self, _text: &str) -> u32 {
        0
    }
}

fn tool_view(tool: &ToolSpec) -> Value {
    let parameters: Value = serde_json::from_str(tool.parameters).expect("parameters are JSON Schema");
    json!({ "name": tool.name, "description": tool.description, "parameters": parameters })
}
