//! `quire demo`: the main job with a model that plays from a script, and says so. No key, no network.
//!
//! With a person at the terminal it is a chat whose next line the script suggests; else it plays itself to the end.

use std::collections::VecDeque;
use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use quire_core::event::{Event, Start};
use quire_core::ids::{RecordId, SessionId};
use quire_core::session::Phase;
use quire_runtime::driver::Opened;
use quire_runtime::ports::Answered;
use quire_scenario::{LineKind, Scenario, UserLine};

use super::paint::printable;
use super::{Desk, chat, new_session_id, screen};
use crate::options::Demo;
use crate::packs;
use crate::words::Lang;
use crate::{models, report};

/// Plays the demo, by itself or with the user.
pub async fn demo(folder: &Path, lang: Lang, demo: Demo) -> Result<ExitCode> {
    let desk = Desk::open(folder, lang, false).await?;
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
    println!("{}", lang.chat_demo());
    println!("{}\n", lang.chat_demo_real(&id, folder.display()));
    let script: VecDeque<(String, UserLine)> = (scenario.lines.into_iter())
        .filter_map(|line| match line.kind {
            LineKind::User(user) => Some((words(&line.text).to_owned(), user)),
            LineKind::Agent(_) | LineKind::Worker { .. } | LineKind::Task { .. } | LineKind::Tool { .. } => None,
        })
        .collect();
    if demo.auto || !stdin().is_terminal() { play(&desk, &id, script).await } else { chat::talk(&desk, id, script).await }
}

/// Plays the script's user too, and puts the whole play on stdout.
async fn play(desk: &Desk, id: &SessionId, script: VecDeque<(String, UserLine)>) -> Result<ExitCode> {
    let mut opened = desk.fleet.look(id).await?;
    let mut told = tell_play(desk, &opened, RecordId(0)).await?;
    for (line, user) in script {
        println!("\n▌ {line}\n");
        let action = chat::scripted(&opened.session, user).map_err(|fault| anyhow!(fault))?;
        if let Answered::Refused { refusal } = desk.fleet.act(id, &action).await? {
            return Err(refusal.into());
        }
        desk.fleet.settled(id).await?;
        opened = desk.fleet.look(id).await?;
        told = tell_play(desk, &opened, told).await?;
    }
    let is_done = matches!(opened.session.phase(), Phase::Done);
    println!("{}", desk.lang.demo_footer(id));
    Ok(ExitCode::from(if is_done { report::FINE } else { report::FAILED }))
}

/// Tells the records after `told`, and what the session waits for.
async fn tell_play(desk: &Desk, opened: &Opened, told: RecordId) -> Result<RecordId> {
    let (records, _) = desk.fleet.history(opened.session.id()).await?;
    for record in records.iter().filter(|record| record.id > told) {
        if let Event::ModelReplied { reply, .. } = &record.event {
            for call in &reply.calls {
                println!("  · {}", printable(&short_call(&call.name, &call.arguments)));
            }
        }
    }
    print!("{}", printable(&screen::waits(desk.lang, &opened.session)));
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

fn words(line: &str) -> &str {
    line.strip_prefix("user").map_or(line, str::trim_start)
}
