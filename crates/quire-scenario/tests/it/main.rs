//! Tests of the scenario language: what a file is read as, what is said of a broken one, who speaks when.

mod files;
mod packs;
mod parse;
mod play;
mod suite;

use quire_scenario::{LineKind, ModelLine, Scenario, UserLine};

/// Reads a scenario that has no faults.
fn parse(text: &str) -> Scenario {
    Scenario::parse("test.scenario", text).unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}"))
}

fn who(kind: &LineKind) -> String {
    match kind {
        LineKind::User(_) => "user".to_owned(),
        LineKind::Agent(_) => "agent".to_owned(),
        LineKind::Worker { skill, role, .. } => {
            let skill = skill.as_ref().map_or("?", |skill| skill.as_str());
            let role = role.as_ref().map(|role| format!(" as {role}")).unwrap_or_default();
            format!("worker {skill}{role}")
        }
        LineKind::Task { task, .. } => task.map_or("task".to_owned(), |task| format!("task {task}")),
        LineKind::Tool { tool, .. } => format!("tool {tool}"),
    }
}

fn what(kind: &LineKind) -> String {
    match kind {
        LineKind::User(UserLine::Act(action)) => serde_json::to_string(action).expect("actions are JSON"),
        LineKind::User(UserLine::Answer { card, answers }) => format!("answers to {card:?}: {answers:?}"),
        LineKind::Agent(reply) | LineKind::Worker { reply, .. } | LineKind::Task { reply, .. } => said(reply),
        LineKind::Tool { result, .. } => format!("{result:?}"),
    }
}

fn said(line: &ModelLine) -> String {
    match line {
        ModelLine::Failure(failure) => format!("fails, {:?}: {}", failure.kind, failure.message),
        ModelLine::Reply(reply) => {
            let text = (!reply.text.is_empty()).then(|| format!("{:?}", reply.text));
            let calls = reply.calls.iter().map(|call| format!("{}: {} {}", call.id, call.name, call.arguments));
            let parts: Vec<String> = text.into_iter().chain(calls).chain([format!("({:?})", reply.finish)]).collect();
            parts.join("\n    ")
        }
    }
}
