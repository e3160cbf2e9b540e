//! Pages of `docs/schema/` that are made from what the code holds; `cargo xtask codegen` writes them anew.

use expect_test::expect_file;
use quire_core::context::TokenCount;
use quire_core::message::ToolSpec;
use quire_testkit::play::play;
use serde_json::{Value, json};

#[test]
fn tools_are_documented_as_models_are_told_of_them() {
    // A pack with a design stage: only there all tools are told.
    let agent = tools_after("pack staged\nuser A world.\n");
    let worker = tools_after("pack staged\nuser A world.\nagent run_worker world\n");
    let page = serde_json::to_string_pretty(&json!({ "main agent": agent, "worker": worker })).expect("a value is JSON");
    expect_file!["../../../../docs/schema/tools.json"].assert_eq(&(page + "\n"));
}

fn tools_after(scenario: &str) -> Value {
    let (prompt, _) = play(scenario).session.prompt(100_000, &Free).expect("there is room");
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
