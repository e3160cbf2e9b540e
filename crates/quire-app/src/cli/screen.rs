//! A session as a person reads it on a terminal: what it waits for, and what can be typed now.

use quire_core::artifact::{Artifact, ArtifactState};
use quire_core::blackboard::Item;
use quire_core::context::{Note, NoteSource};
use quire_core::event::Event;
use quire_core::ids::{ArtifactId, ItemNumber};
use quire_core::journal::Record;
use quire_core::question::Card;
use quire_core::session::{Phase, Session, Waiting};
use quire_core::tag::{Pattern, Tag};
use quire_runtime::driver::Opened;

use super::Desk;
use super::paint::{Paint, printable};
use crate::words::session::name;
use crate::words::{self, Lang};
use crate::{spending, wire};

/// Prints a session: one JSON object, or what it waits for and what can be typed.
pub fn tell(desk: &Desk, opened: &Opened) {
    if desk.is_json {
        println!("{}", wire::session(opened));
    } else {
        print!("{}{}", printable(&waits(desk.lang, &opened.session)), printable(&tasks_under_way(desk.lang, &opened.session)));
    }
}

/// Says which deep tasks are under way, and how to go on with them.
fn tasks_under_way(lang: Lang, session: &Session) -> String {
    let running: Vec<String> =
        session.tasks().iter().filter(|task| task.is_running()).map(|task| format!("{} ({})", task.id, task.title)).collect();
    if running.is_empty() {
        return String::new();
    }
    format!("{}\n", lang.tasks_under_way(running.join(", "), session.id()))
}

/// Prints what stands above: the session, its texts, what was spent.
pub fn head(lang: Lang, opened: &Opened) {
    let session = &opened.session;
    let title = if session.title().is_empty() { String::new() } else { format!(" {}", lang.in_quotes(session.title())) };
    let pack = session.pack().map(|pack| pack.name.clone()).unwrap_or_default();
    let stage = words::session::stage(lang, session.stage());
    let mut text = lang.session_head(session.id(), title, pack, stage);
    for tag in session.board().tags() {
        if let Some(item) = session.board().newest(tag) {
            let hidden = if session.is_hidden(tag) { lang.item_hidden() } else { String::new() };
            let state = words::session::state(lang, session.board().state(item.number));
            let characters = item.content.chars().count();
            text.push_str(&format!("\n{}", lang.item_line(tag, state, item.number, characters, hidden)));
        }
    }
    let spent = lang.spent(session.spent().rounds, spending::words(lang, session.spent().usage));
    println!("{}\n{spent}", printable(&text));
}

/// Says what a session waits for, and which commands can be typed now.
pub fn waits(lang: Lang, session: &Session) -> String {
    let id = session.id();
    let mut text = situation(lang, Paint::PLAIN, session);
    match session.phase() {
        Phase::Idle | Phase::Done | Phase::Error { .. } => {}
        Phase::Running(_) => {
            let (goes_on, stops_it) = (lang.goes_on(), lang.stops_it());
            text.push_str(&format!("  quire resume {id}   {goes_on}\n  quire stop {id}     {stops_it}\n"));
        }
        Phase::WaitingUser(waiting) => text.push_str(&commands(lang, session, waiting)),
    }
    text
}

/// Shows what a session is at: what went wrong, what is said or handed in, what is asked.
pub fn situation(lang: Lang, paint: Paint, session: &Session) -> String {
    match session.phase() {
        Phase::Idle => lang.not_begun() + "\n",
        Phase::Running(_) => lang.running(words::session::pending(lang, session)) + "\n",
        Phase::WaitingUser(waiting) => waiting_text(lang, paint, session, waiting),
        Phase::Done => format!("{}{}\n", final_texts(lang, paint, session), lang.done()),
        Phase::Error { reason } => lang.only_readable(printable(reason)) + "\n",
    }
}

fn waiting_text(lang: Lang, paint: Paint, session: &Session, waiting: &Waiting) -> String {
    let mut text = String::new();
    if let Some(cause) = waiting.cause() {
        let cause = printable(&words::session::cause(lang, session, cause));
        text.push_str(&format!("{}\n", paint.wrap(&paint.bold(&cause), "", "")));
    }
    match waiting {
        Waiting::SkillSelection => {
            for pack in session.offer() {
                text.push_str(&printable(&format!("  {}: {}\n", pack.name, pack.description)));
            }
            text.push_str(&format!("{}\n", lang.choose_pack()));
        }
        Waiting::Intake => {
            let intake = session.intake();
            // Said once: what is filled in shows that it was read.
            let is_blank = intake.values.is_empty() && intake.notes.is_empty();
            if let Some(pack) = session.pack().filter(|_| is_blank) {
                text.push_str(&format!("{}\n\n", paint.markdown(pack.startup.prompt.trim())));
            }
            for field in &intake.fields {
                let value = intake.values.get(&field.id).map_or("", String::as_str);
                let mark = if field.required { lang.required_mark() } else { String::new() };
                let line = printable(&lang.field_line(&field.label, mark, value));
                text.push_str(&format!("{}\n", paint.wrap(line.trim_start(), "  ", "    ")));
            }
            for note in &intake.notes {
                text.push_str(&format!("{}\n", paint.wrap(&printable(note), "  · ", "    ")));
            }
        }
        Waiting::Input { message, .. } => {
            if let Some(message) = message {
                text.push_str(&format!("{}\n\n", paint.markdown(message.trim())));
            }
        }
        Waiting::ApproveStep(decision) => {
            let wants = lang.agent_wants(name(session, &decision.skill, decision.role.as_ref()), &decision.reason);
            text.push_str(&format!("{}\n", paint.wrap(&printable(&wants), "", "")));
            let skill = session.pack().and_then(|pack| pack.skill(decision.skill.as_str()));
            let list = |patterns: &[Pattern]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(&lang.comma());
            if let Some(skill) = skill {
                text.push_str(&format!("{}\n", paint.dim(&printable(&lang.it_reads(list(&skill.input_tags))))));
                text.push_str(&format!("{}\n", paint.dim(&lang.it_writes(list(&skill.outputs_for(decision.role.as_ref()))))));
            }
        }
        Waiting::ReviewArtifact { artifact, .. } => text.push_str(&artifact_text(lang, paint, session, *artifact)),
        Waiting::WorkerQuestions { run, .. } => {
            let run = session.run(*run);
            text.push_str(&format!("{}\n", lang.worker_asks(name(session, &run.skill, run.role.as_ref()))));
        }
        Waiting::Revision { artifact, .. } => {
            text.push_str(&artifact_text(lang, paint, session, *artifact));
            text.push_str(&notes_text(lang, paint, session, *artifact));
            text.push_str(&format!("{}\n", lang.say_what_to_mend()));
        }
    }
    text
}

/// The commands of a shell that answer what is waited for.
fn commands(lang: Lang, session: &Session, waiting: &Waiting) -> String {
    let id = session.id();
    let mut text = String::new();
    let say = format!("  quire say {id} \"…\"\n");
    match waiting {
        Waiting::SkillSelection => text.push_str(&format!("  quire select {id} PACK\n")),
        Waiting::Intake => {
            text.push_str(&format!("\n  quire say {id} \"{}\"\n", lang.label_value_example()));
            if session.intake().missing().is_empty() {
                text.push_str(&format!("  quire confirm {id}\n"));
            }
        }
        Waiting::Input { card, .. } => {
            text.push_str(&card_commands(session, card.as_ref()));
            text.push_str(&say);
        }
        Waiting::ApproveStep(_) => {
            text.push_str(&format!("  quire approve {id}\n  quire reject {id} --reason \"…\"\n"));
        }
        Waiting::ReviewArtifact { card, .. } => {
            text.push_str(&card_commands(session, card.as_ref()));
            text.push_str(&format!("  quire accept {id}\n  quire reject {id} --reason \"…\"\n  quire discard {id}\n"));
        }
        Waiting::WorkerQuestions { card, .. } => {
            text.push_str(&card_commands(session, Some(card)));
            text.push_str(&format!("  quire discard {id}\n"));
        }
        Waiting::Revision { .. } => text.push_str(&format!("{say}  quire accept {id}\n  quire discard {id}\n")),
    }
    if waiting.cause().is_some() {
        text.push_str(&format!("  quire retry {id}\n"));
    }
    text
}

fn artifact_text(lang: Lang, paint: Paint, session: &Session, id: ArtifactId) -> String {
    let artifact = session.artifact(id);
    let name = name(session, &artifact.skill, artifact.role.as_ref());
    let mut text = texts(lang, paint, session, artifact);
    // What a worker or a check says of a hidden text may tell what stands in it.
    let holds_hidden = artifact.items.keys().any(|tag| session.is_hidden(tag));
    let said = |words: &str| if holds_hidden { lang.hidden_text() } else { words.to_owned() };
    if !artifact.summary.is_empty() {
        let says = printable(&lang.worker_says(&name, said(&artifact.summary)));
        text.push_str(&format!("{}\n", paint.wrap(&says, "", "")));
    }
    for check in &artifact.failed_checks {
        text.push_str(&format!("{}\n", printable(&lang.check_fails(said(check)))));
    }
    text.push_str(&format!("{}\n", paint.bold(&lang.artifact_line(id, name))));
    text
}

/// An artifact's texts, each under its tag.
pub fn texts(lang: Lang, paint: Paint, session: &Session, artifact: &Artifact) -> String {
    let text = |(tag, number): (&Tag, &ItemNumber)| {
        let shown = shown(lang, session, session.board().item(*number));
        let content =
            if session.pack().is_some_and(|pack| pack.is_table(tag)) { printable(&shown) } else { paint.markdown(&shown) };
        format!("{}\n{}\n\n", paint.bold(&printable(&format!("── {tag} ──"))), content.trim_end())
    };
    artifact.items.iter().map(text).collect()
}

/// An item's text, or a word in its place where it is hidden.
pub fn shown(lang: Lang, session: &Session, item: &Item) -> String {
    if session.is_hidden(&item.tag) { lang.hidden_text() } else { item.content.to_string() }
}

fn notes_text(lang: Lang, paint: Paint, session: &Session, id: ArtifactId) -> String {
    let artifact = session.artifact(id);
    let notes = session.work(&artifact.skill, artifact.role.as_ref()).map(|work| work.notes.as_slice()).unwrap_or_default();
    let line = |note: &Note| {
        let words = match &note.from {
            NoteSource::User => note.text.to_string(),
            NoteSource::Check => lang.note_by_check(&note.text),
            NoteSource::Review(skill) => lang.note_by_review(name(session, skill, None), &note.text),
        };
        format!("{}\n", paint.wrap(&printable(&words), "  · ", "    "))
    };
    if notes.is_empty() {
        return String::new();
    }
    format!("{}\n{}", lang.notes_so_far(), notes.iter().map(line).collect::<String>())
}

/// A card's questions with their options, one below the other.
pub fn card_text(card: &Card) -> String {
    let mut text = String::new();
    for question in &card.questions {
        let mark = if question.required { " *" } else { "" };
        text.push_str(&format!("  {}: {}{mark}\n", question.id, question.prompt));
        for option in &question.options {
            text.push_str(&format!("      {}  {}\n", option.id, option.label));
        }
    }
    printable(&text)
}

fn card_commands(session: &Session, card: Option<&Card>) -> String {
    let Some(card) = card else { return String::new() };
    let example = card.questions.first().map_or("q1", |question| question.id.as_str());
    let id = session.id();
    format!("{}  quire answer {id} {example}=…\n  quire skip {id}\n", card_text(card))
}

/// The texts that a finished session has come to: what the last accepted artifact holds, else nothing.
fn final_texts(lang: Lang, paint: Paint, session: &Session) -> String {
    let accepted = session.artifacts().iter().rev().find(|artifact| artifact.state == ArtifactState::Accepted);
    accepted.map(|artifact| texts(lang, paint, session, artifact)).unwrap_or_default()
}

/// One record on a line.
pub fn record(lang: Lang, record: &Record) -> String {
    let what = match &record.event {
        Event::Started(start) => lang.record_started(&start.title),
        Event::User(action) => lang.record_user(action.verb().as_str()),
        Event::Drawn { seed } => lang.record_drew(seed),
        Event::ModelAsked(asked) => {
            let who = match (asked.task, &asked.trace) {
                (Some(task), _) => lang.deep_task(task),
                (None, Some(trace)) => trace.skill.to_string(),
                (None, None) => lang.record_agent(),
            };
            lang.record_asked(&asked.model, who, asked.call, asked.attempt)
        }
        Event::ModelReplied { call, reply } => {
            let calls: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
            let said = if calls.is_empty() { lang.record_text() } else { calls.join(", ") };
            lang.record_replied(call, said, spending::words(lang, reply.usage))
        }
        Event::ModelFailed { call, failure, .. } => lang.record_failed(call, &failure.message),
        Event::ModelIgnored { call, cause, .. } => lang.record_over(call, cause),
        Event::TaskEquipped(equipped) => {
            let names: Vec<&str> = equipped.tools.iter().map(|tool| tool.name.as_str()).collect();
            let names = if names.is_empty() { lang.none() } else { names.join(", ") };
            lang.record_equipped(equipped.task, names)
        }
        Event::ToolAsked { task, call, attempt } => lang.record_tool_asked(task, call, attempt),
        Event::ToolAnswered { task, call, result } => match result.is_error {
            true => lang.record_tool_failed(task, call),
            false => lang.record_tool_answered(task, call, result.text.chars().count()),
        },
        Event::ToolLost { task, call } => lang.record_tool_lost(task, call),
        Event::TaskOverdue { task } => lang.record_overdue(task),
    };
    let time = jiff::Timestamp::from_millisecond(record.time.0).map(|time| time.to_string()).unwrap_or_default();
    printable(&format!("{:>5}  {time}  {what}", record.id))
}
