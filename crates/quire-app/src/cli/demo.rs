//! `quire demo`: the main job with a model that plays from a script, and says so. No key, no network.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use quire_core::event::{Action, Event, Start};
use quire_core::ids::{RecordId, SessionId};
use quire_core::session::{Phase, Waiting};
use quire_runtime::driver::Opened;
use quire_runtime::ports::Answered;
use quire_scenario::perform::resolve;
use quire_scenario::{LineKind, Scenario, UserLine};

use super::progress::Progress;
use super::{Desk, new_session_id, screen};
use crate::options::Demo;
use crate::packs;
use crate::{models, report};

/// Plays the demo, by itself or with the user.
pub async fn demo(folder: &Path, demo: Demo) -> Result<ExitCode> {
    let desk = Desk::open(folder, false).await?;
    let scenario = Scenario::parse("demo.scenario", &packs::demo_scenario()).expect("the demo is tested");
    let pack = desk.packs.find(scenario.pack.as_deref().expect("the demo names its pack"))?.files;
    let id = new_session_id();
    let start = Start {
        title: scenario.options.title.clone(),
        pack: Some(pack),
        profile: models::DEMO.to_owned(),
        burst_max: None,
        budget: scenario.options.budget,
        offer: vec![],
    };
    desk.fleet.start(&id, start).await?;
    println!("This is the built-in demo. No model is asked: what the agent and the workers say here comes from a script.");
    println!("Everything else is real: session {id} lies in {}.\n", folder.display());
    let script: Vec<(String, UserLine)> = (scenario.lines.into_iter())
        .filter_map(|line| match line.kind {
            LineKind::User(user) => Some((line.text, user)),
            LineKind::Agent(_) | LineKind::Worker { .. } => None,
        })
        .collect();
    if demo.auto || !stdin().is_terminal() { play(&desk, &id, script).await } else { converse(&desk, &id, script).await }
}

/// Plays the script's user too, and puts the whole play on stdout.
async fn play(desk: &Desk, id: &SessionId, script: Vec<(String, UserLine)>) -> Result<ExitCode> {
    let mut opened = desk.fleet.look(id).await?;
    let mut told = tell_play(desk, &opened, RecordId(0)).await?;
    for (line, user) in script {
        println!("\n▌ {}\n", words(&line));
        let action = action(&opened, user).map_err(|fault| anyhow!(fault))?;
        if let Answered::Refused { refusal } = desk.fleet.act(id, &action).await? {
            return Err(refusal.into());
        }
        desk.fleet.settled(id).await?;
        opened = desk.fleet.look(id).await?;
        told = tell_play(desk, &opened, told).await?;
    }
    let is_done = matches!(opened.session.phase(), Phase::Done);
    println!(
        "\nquire show {id}      shows where it stands\nquire journal {id}   shows every step\nquire context {id}   shows what the last worker got to see"
    );
    Ok(ExitCode::from(if is_done { report::FINE } else { report::FAILED }))
}

/// Tells the records after `told`, and what the session waits for.
async fn tell_play(desk: &Desk, opened: &Opened, told: RecordId) -> Result<RecordId> {
    let (records, _) = desk.fleet.history(opened.session.id()).await?;
    for record in records.iter().filter(|record| record.id > told) {
        if let Event::ModelReplied { reply, .. } = &record.event {
            for call in &reply.calls {
                println!("  · {}", short_call(&call.name, &call.arguments));
            }
        }
    }
    print!("{}", screen::waits(&opened.session));
    Ok(opened.head)
}

fn short_call(name: &str, arguments: &str) -> String {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let short = match name {
        "run_worker" => format!(
            "{}: {}",
            arguments["workerId"].as_str().unwrap_or_default(),
            arguments["reason"].as_str().unwrap_or_default()
        ),
        "submit" => arguments["outputs"]
            .as_object()
            .map(|outputs| outputs.keys().cloned().collect::<Vec<_>>().join(", "))
            .unwrap_or_default(),
        "read_blackboard" => arguments["tags"].to_string(),
        _ => String::new(),
    };
    format!("{name} {short}")
}

/// Lets a person play, with the script's own lines as suggestions.
async fn converse(desk: &Desk, id: &SessionId, script: Vec<(String, UserLine)>) -> Result<ExitCode> {
    let mut script = script.into_iter().peekable();
    let mut opened = desk.fleet.look(id).await?;
    loop {
        print!("{}", screen::waits(&opened.session));
        if matches!(opened.session.phase(), Phase::Done | Phase::Error { .. }) {
            return Ok(ExitCode::from(report::FINE));
        }
        let suggestion = script.peek().filter(|(_, user)| is_heard(&opened, user)).map(|(line, _)| words(line));
        println!("\nType your words, or: confirm, approve, accept, reject: why, discard, answer q=A, skip, retry, finish, quit.");
        if let Some(suggestion) = &suggestion {
            println!("Enter alone takes the script's line: {suggestion}");
        }
        let Some(line) = read_line()? else { return Ok(ExitCode::from(report::FINE)) };
        let user = match (line.trim(), &suggestion) {
            ("quit", _) => return Ok(ExitCode::from(report::FINE)),
            ("", Some(_)) => script.next().map(|(_, user)| user),
            ("", None) => None,
            (typed, _) => typed_line(typed),
        };
        let Some(user) = user else { continue };
        let action = match action(&opened, user) {
            Ok(action) => action,
            Err(fault) => {
                println!("{fault}");
                continue;
            }
        };
        let progress = Progress::begin(desk, &opened);
        let answered = desk.fleet.act(id, &action).await?;
        if let Answered::Refused { refusal } = &answered {
            report::refusal(refusal);
        }
        desk.fleet.settled(id).await?;
        progress.end().await;
        opened = desk.fleet.look(id).await?;
    }
}

fn read_line() -> Result<Option<String>> {
    print!("▌ ");
    stdout().flush()?;
    let mut line = String::new();
    let read = stdin().read_line(&mut line).context("stdin cannot be read")?;
    Ok((read > 0).then_some(line))
}

/// Reads what a person typed, in the words of scenario files.
fn typed_line(typed: &str) -> Option<UserLine> {
    match Scenario::parse("stdin", &format!("user {typed}")) {
        Ok(scenario) => scenario.lines.into_iter().find_map(|line| match line.kind {
            LineKind::User(user) => Some(user),
            LineKind::Agent(_) | LineKind::Worker { .. } => None,
        }),
        Err(faults) => {
            for fault in faults {
                println!("{}; {}", fault.message, fault.help);
            }
            None
        }
    }
}

fn is_heard(opened: &Opened, user: &UserLine) -> bool {
    let verb = match user {
        UserLine::Act(action) => action.verb(),
        UserLine::Answer { .. } => quire_core::session::Verb::Answer,
    };
    opened.session.phase().hears(verb)
}

fn action(opened: &Opened, user: UserLine) -> Result<Action, String> {
    match user {
        UserLine::Act(action) => Ok(action),
        UserLine::Answer { card, answers } => {
            let answers = resolve(opened.session.phase().waiting().and_then(Waiting::card), &answers)?;
            Ok(Action::Answer { card, answers })
        }
    }
}

fn words(line: &str) -> &str {
    line.strip_prefix("user").map_or(line, str::trim_start)
}
