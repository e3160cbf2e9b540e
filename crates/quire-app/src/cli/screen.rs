//! A session as a person reads it on a terminal: what it waits for, and what can be typed now.

use quire_core::event::Event;
use quire_core::journal::Record;
use quire_core::question::Card;
use quire_core::session::{Phase, Session, Waiting};
use quire_runtime::driver::Opened;

use super::Desk;
use crate::{spending, wire};

/// Prints a session: one JSON object, or what it waits for and what can be typed.
pub fn tell(desk: &Desk, opened: &Opened) {
    if desk.is_json {
        println!("{}", wire::session(opened));
    } else {
        print!("{}", waits(&opened.session));
    }
}

/// Prints what stands above: the session, its texts, what was spent.
pub fn head(opened: &Opened) {
    let session = &opened.session;
    let title = if session.title().is_empty() { String::new() } else { format!(" “{}”", session.title()) };
    let pack = session.pack().map(|pack| pack.name.clone()).unwrap_or_default();
    println!("Session {}{title}, pack {pack}, {} stage", session.id(), session.stage().as_str());
    for tag in session.board().tags() {
        if let Some(item) = session.board().newest(tag) {
            let hidden = if session.is_hidden(tag) { ", hidden" } else { "" };
            let state = format!("{:?}", session.board().state(item.number)).to_lowercase();
            println!("  {tag}: {state}, item {}, {} characters{hidden}", item.number, item.content.chars().count());
        }
    }
    println!("Spent: {} rounds, {}", session.spent().rounds, spending::words(session.spent().usage));
}

/// Says what a session waits for, and what can be typed now.
pub fn waits(session: &Session) -> String {
    let id = session.id();
    match session.phase() {
        Phase::Idle => "The session has not begun.\n".to_owned(),
        Phase::Running(_) => {
            format!("Running: {}.\n  quire resume {id}   goes on\n  quire stop {id}     stops it\n", session.pending())
        }
        Phase::WaitingUser(waiting) => waiting_text(session, waiting),
        Phase::Done => format!("{}The session is done.\n", final_texts(session)),
        Phase::Error { reason } => format!("This session can only be read: {reason}\n"),
    }
}

fn waiting_text(session: &Session, waiting: &Waiting) -> String {
    let id = session.id();
    let mut text = String::new();
    if let Some(cause) = waiting.cause() {
        text.push_str(&format!("{}: {}\n", cause.kind.as_str(), cause.message));
    }
    match waiting {
        Waiting::SkillSelection => {
            for pack in session.offer() {
                text.push_str(&format!("  {}: {}\n", pack.name, pack.description));
            }
            text.push_str(&format!("Choose a pack:\n  quire select {id} PACK\n"));
        }
        Waiting::Intake => {
            let intake = session.intake();
            if let Some(pack) = session.pack() {
                text.push_str(&format!("{}\n\n", pack.startup.prompt.trim()));
            }
            for field in &intake.fields {
                let value = intake.values.get(&field.id).map_or("", String::as_str);
                let mark = if field.required { " *" } else { "" };
                text.push_str(&format!("  {}{mark}: {value}\n", field.label));
            }
            text.push_str(&format!("\n  quire say {id} \"Label: value\"\n"));
            if intake.missing().is_empty() {
                text.push_str(&format!("  quire confirm {id}\n"));
            }
        }
        Waiting::Input { message, .. } => {
            if let Some(message) = message {
                text.push_str(&format!("{}\n\n", message.trim()));
            }
            text.push_str(&card_text(session, waiting.card()));
            text.push_str(&format!("  quire say {id} \"…\"\n"));
        }
        Waiting::ApproveStep(decision) => {
            text.push_str(&format!("The agent wants {} to run: {}\n", decision.skill, decision.reason));
            text.push_str(&format!("  quire approve {id}\n  quire reject {id} --reason \"…\"\n"));
        }
        Waiting::ReviewArtifact { artifact, .. } => {
            text.push_str(&artifact_text(session, *artifact));
            text.push_str(&card_text(session, waiting.card()));
            text.push_str(&format!("  quire accept {id}\n  quire reject {id} --reason \"…\"\n  quire discard {id}\n"));
        }
        Waiting::WorkerQuestions { run, .. } => {
            text.push_str(&format!("{} asks:\n", session.run(*run).title()));
            text.push_str(&card_text(session, waiting.card()));
            text.push_str(&format!("  quire discard {id}\n"));
        }
        Waiting::Revision { artifact, .. } => {
            text.push_str(&artifact_text(session, *artifact));
            text.push_str(&format!(
                "Say what to mend, or decide:\n  quire say {id} \"…\"\n  quire accept {id}\n  quire discard {id}\n"
            ));
        }
    }
    if waiting.cause().is_some() {
        text.push_str(&format!("  quire retry {id}\n"));
    }
    text
}

fn artifact_text(session: &Session, id: quire_core::ids::ArtifactId) -> String {
    let artifact = session.artifact(id);
    let mut text = String::new();
    for (tag, number) in &artifact.items {
        text.push_str(&format!("── {tag} ──\n{}\n\n", wire::content(session, session.board().item(*number)).trim_end()));
    }
    if !artifact.summary.is_empty() {
        text.push_str(&format!("{} says: {}\n", artifact.skill, artifact.summary));
    }
    for check in &artifact.failed_checks {
        text.push_str(&format!("check: {check}\n"));
    }
    text.push_str(&format!("Artifact {id} of {}:\n", artifact.skill));
    text
}

fn card_text(session: &Session, card: Option<&Card>) -> String {
    let Some(card) = card else { return String::new() };
    let mut text = String::new();
    for question in &card.questions {
        let mark = if question.required { " *" } else { "" };
        text.push_str(&format!("  {}: {}{mark}\n", question.id, question.prompt));
        for option in &question.options {
            text.push_str(&format!("      {}  {}\n", option.id, option.label));
        }
    }
    let example = card.questions.first().map_or("q1", |question| question.id.as_str());
    text.push_str(&format!("  quire answer {} {example}=…\n  quire skip {}\n", session.id(), session.id()));
    text
}

/// The texts that a finished session has come to: what the last accepted artifact holds, else nothing.
fn final_texts(session: &Session) -> String {
    let accepted =
        session.artifacts().iter().rev().find(|artifact| artifact.state == quire_core::artifact::ArtifactState::Accepted);
    let Some(artifact) = accepted else { return String::new() };
    let texts = artifact
        .items
        .iter()
        .map(|(tag, number)| format!("── {tag} ──\n{}\n\n", wire::content(session, session.board().item(*number)).trim_end()));
    texts.collect()
}

/// One record on a line.
pub fn record(record: &Record) -> String {
    let what = match &record.event {
        Event::Started(start) => format!("started {}", start.title),
        Event::User(action) => format!("user {}", action.verb().as_str()),
        Event::Drawn { seed } => format!("drew by seed {seed}"),
        Event::ModelAsked(asked) => {
            let who = asked.trace.as_ref().map_or("agent", |trace| trace.skill.as_str());
            format!("asked {} for {who}, call {}, attempt {}", asked.model, asked.call, asked.attempt)
        }
        Event::ModelReplied { call, reply } => {
            let calls: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
            let said = if calls.is_empty() { "text".to_owned() } else { calls.join(", ") };
            format!("reply to call {call}: {said}, {}", spending::words(reply.usage))
        }
        Event::ModelFailed { call, failure, .. } => format!("call {call} failed: {}", failure.message),
        Event::ModelIgnored { call, cause, .. } => format!("call {call} is over: {cause}"),
    };
    let time = jiff::Timestamp::from_millisecond(record.time.0).map(|time| time.to_string()).unwrap_or_default();
    format!("{:>5}  {time}  {what}", record.id)
}
