//! Sessions as JSON: the one shape that scripts, and later the page, see.
//!
//! What the pack hides from the user is masked here by tag, in every view.

use std::collections::BTreeSet;

use quire_adapters::providers::shown_reasoning;
use quire_core::artifact::Artifact;
use quire_core::blackboard::{Item, Source};
use quire_core::deep_task::{DeepTask, Ending, TaskState};
use quire_core::event::{Event, ModelAsked};
use quire_core::ids::{ArtifactId, CallId, SkillId, TaskId};
use quire_core::journal::Record;
use quire_core::session::{Phase, Session, Verb, Waiting, result_tag};
use quire_runtime::driver::Opened;
use serde_json::{Map, Value, json};

/// What stands in place of a hidden text.
pub const HIDDEN: &str = "(hidden)";

/// Shows a session whole.
pub fn session(opened: &Opened) -> Value {
    let session = &opened.session;
    let mut view = json!({
        "session": session.id(),
        "seq": opened.head,
        "title": session.title(),
        "pack": session.pack().map(|pack| json!({ "name": pack.name, "version": pack.version, "hash": pack.hash, "kind": pack.book_kind })),
        "profile": session.profile(),
        "phase": session.phase().as_str(),
        "waiting": session.phase().waiting().map(|waiting| waiting_view(session, waiting)),
        "stage": session.stage().as_str(),
        "turn": session.turn(),
        "burst": session.burst(),
        "budget": session.budget(),
        "spent": session.spent(),
        "pending": session.pending(),
        "heard": Verb::ALL.iter().filter(|verb| session.hears(**verb)).map(|verb| verb.as_str()).collect::<Vec<_>>(),
        "artifacts": session.artifacts().iter().map(|artifact| artifact_view(session, artifact)).collect::<Vec<_>>(),
        "blackboard": session.board().tags().filter_map(|tag| Some(item_view(session, session.board().newest(tag)?))).collect::<Vec<_>>(),
        "log": session.log_lines().iter().map(|line| line.text.as_str()).collect::<Vec<_>>(),
        "incomplete": incomplete_view(session),
        "tasks": session.tasks().iter().map(|task| task_view(session, task)).collect::<Vec<_>>(),
    });
    if let Phase::Error { reason } = session.phase() {
        view["error"] = json!(reason);
    }
    view
}

fn waiting_view(session: &Session, waiting: &Waiting) -> Value {
    let mut view = Map::from_iter([("reason".to_owned(), json!(waiting.as_str()))]);
    match waiting {
        Waiting::SkillSelection => {
            view.insert("packs".to_owned(), json!(session.offer()));
        }
        Waiting::Intake => {
            let intake = session.intake();
            view.insert("prompt".to_owned(), json!(session.pack().map(|pack| pack.startup.prompt.as_str())));
            view.insert("fields".to_owned(), json!(intake.fields));
            view.insert("values".to_owned(), json!(intake.values));
            view.insert("notes".to_owned(), json!(intake.notes));
            view.insert("missing".to_owned(), json!(intake.missing()));
        }
        Waiting::Input { message, cause, .. } => {
            let message = message.as_ref().or(cause.as_ref().map(|cause| &cause.message));
            view.insert("message".to_owned(), json!(message));
        }
        Waiting::ApproveStep(decision) => {
            let pack = session.pack().expect("a decision needs a pack");
            let skill = pack.skill(decision.skill.as_str());
            let decision = json!({
                "id": decision.id,
                "skill": decision.skill,
                "role": decision.role,
                "reason": decision.reason,
                "reads": skill.map(|skill| &skill.input_tags),
                "writes": skill.map(|skill| skill.outputs_for(decision.role.as_ref())),
            });
            view.insert("decision".to_owned(), decision);
        }
        Waiting::ReviewArtifact { artifact, .. } => {
            view.insert("artifact".to_owned(), artifact_with_texts(session, *artifact));
        }
        Waiting::WorkerQuestions { run, .. } => {
            let run = session.run(*run);
            view.insert("run".to_owned(), json!({ "id": run.id, "skill": run.skill, "role": run.role }));
        }
        Waiting::Revision { artifact, .. } => {
            view.insert("artifact".to_owned(), artifact_with_texts(session, *artifact));
            let artifact = session.artifact(*artifact);
            let notes = session.work(&artifact.skill, artifact.role.as_ref()).map(|work| &work.notes);
            view.insert("notes".to_owned(), json!(notes));
        }
    }
    if let Some(card) = waiting.card() {
        view.insert("card".to_owned(), json!(card));
    }
    if let Some(cause) = waiting.cause() {
        view.insert("cause".to_owned(), json!(cause.kind));
        view.insert("causeMessage".to_owned(), json!(cause.message));
    }
    Value::Object(view)
}

/// Shows a deep task.
pub fn task_view(session: &Session, task: &DeepTask) -> Value {
    let doing = match &task.state {
        TaskState::Equipping => "looks up its tools".to_owned(),
        TaskState::Asking(_) => "thinks".to_owned(),
        TaskState::Calling(calling) => format!("calls {}", calling.tool.name),
        TaskState::Over(_) => String::new(),
    };
    let (cap, message) = match task.ending() {
        Some(Ending::CutOff(cap)) => (Some(cap.as_str()), None),
        Some(Ending::Failed { message }) => (None, Some(message)),
        Some(Ending::Done | Ending::Cancelled) | None => (None, None),
    };
    let result = task.result.map(|number| {
        let item = session.board().item(number);
        json!({ "tag": item.tag, "item": number, "content": content(session, item) })
    });
    json!({
        "id": task.id,
        "title": task.title,
        "task": task.task,
        "origin": task.origin.as_str(),
        "grants": task.grants,
        "state": task.state_word(),
        "doing": doing,
        "cap": cap,
        "message": message,
        "rounds": task.rounds,
        "toolCalls": task.tool_calls,
        "usage": task.usage,
        "timeMs": task.time_ms,
        "caps": task.caps,
        "started": task.started,
        "ended": task.ended,
        "result": result,
    })
}

fn artifact_view(session: &Session, artifact: &Artifact) -> Value {
    // What a worker or a check says of a hidden text may tell what stands in it.
    let holds_hidden = artifact.items.keys().any(|tag| session.is_hidden(tag));
    let summary = if holds_hidden { HIDDEN } else { &artifact.summary };
    let failed_checks =
        if holds_hidden { vec![HIDDEN.to_owned(); artifact.failed_checks.len()] } else { artifact.failed_checks.clone() };
    json!({
        "id": artifact.id,
        "skill": artifact.skill,
        "role": artifact.role,
        "run": artifact.run,
        "state": artifact.state,
        "tags": artifact.items.keys().collect::<Vec<_>>(),
        "items": artifact.items,
        "summary": summary,
        "failedChecks": failed_checks,
        "verdict": artifact.verdict,
    })
}

fn artifact_with_texts(session: &Session, id: ArtifactId) -> Value {
    let artifact = session.artifact(id);
    let mut view = artifact_view(session, artifact);
    let texts: Map<String, Value> = (artifact.items.iter())
        .map(|(tag, number)| (tag.to_string(), json!(content(session, session.board().item(*number)))))
        .collect();
    view["texts"] = Value::Object(texts);
    view
}

fn item_view(session: &Session, item: &Item) -> Value {
    let skill = match item.source {
        Source::Run(run) => Some(&session.run(run).skill),
        Source::User | Source::Runtime | Source::Task(_) => None,
    };
    json!({
        "tag": item.tag,
        "state": session.board().state(item.number),
        "item": item.number,
        "source": item.source.to_string(),
        "skill": skill,
        "turn": item.turn,
        "hidden": session.is_hidden(&item.tag),
        "content": content(session, item),
    })
}

/// Returns an item's text as the user may see it.
pub fn content<'a>(session: &Session, item: &'a Item) -> &'a str {
    if session.is_hidden(&item.tag) { HIDDEN } else { &item.content }
}

/// Says whether a skill writes something the user may not read yet: then its replies are masked whole.
pub fn writes_hidden(session: &Session, skill: &SkillId) -> bool {
    let Some(pack) = session.pack() else { return false };
    let Some(skill) = pack.skill(skill.as_str()) else { return false };
    session.hides_now() && skill.output_tags.iter().any(|output| pack.hidden.iter().any(|hidden| hidden.overlaps(output)))
}

/// Says whether what did not finish is masked.
// Which worker a broken text came from is not told apart here: one that writes what is hidden masks them all.
pub fn masks_incomplete(session: &Session) -> bool {
    let skills = session.pack().into_iter().flat_map(|pack| &pack.skills);
    skills.map(|skill| &skill.id).any(|skill| writes_hidden(session, skill))
}

fn incomplete_view(session: &Session) -> Vec<Value> {
    let is_masked = masks_incomplete(session);
    let view = |incomplete: &quire_core::session::Incomplete| {
        let text = if is_masked { HIDDEN } else { &incomplete.text };
        json!({ "call": incomplete.call, "text": text, "cause": incomplete.cause })
    };
    session.incomplete().iter().map(view).collect()
}

/// The calls whose replies hold what the user may not read yet.
pub struct Masked {
    calls: BTreeSet<CallId>,
    tasks: BTreeSet<TaskId>,
}

impl Masked {
    /// Finds them among a session's records.
    pub fn of(session: &Session, records: &[Record]) -> Self {
        let asked = records.iter().filter_map(|record| match &record.event {
            Event::ModelAsked(asked) => Some(asked),
            _ => None,
        });
        let is_hidden = |task: &TaskId| session.is_hidden(&result_tag(*task));
        let is_masked = |asked: &&ModelAsked| match (&asked.task, &asked.trace) {
            (Some(task), _) => is_hidden(task),
            (None, Some(trace)) => writes_hidden(session, &trace.skill),
            (None, None) => false,
        };
        let tasks = session.tasks().iter().map(|task| task.id).filter(is_hidden).collect();
        Self { calls: asked.filter(is_masked).map(|asked| asked.call).collect(), tasks }
    }

    /// Shows a record, one line of the journal.
    pub fn record(&self, record: &Record) -> Value {
        let mut event = json!(record.event);
        if let Event::ModelReplied { reply, .. } = &record.event
            && !reply.reasoning.is_empty()
        {
            // Not what a provider signed it with.
            event["reply"]["reasoning"] = json!(shown_reasoning(&reply.reasoning));
        }
        match &record.event {
            Event::ModelReplied { call, .. } if self.calls.contains(call) => event["reply"] = json!(HIDDEN),
            Event::ModelFailed { call, .. } if self.calls.contains(call) => event["partial"] = json!(HIDDEN),
            Event::ModelIgnored { call, .. } if self.calls.contains(call) => event["text"] = json!(HIDDEN),
            Event::ToolAnswered { task, .. } if self.tasks.contains(task) => event["result"] = json!(HIDDEN),
            Event::ToolAnswered { .. }
            | Event::TaskEquipped(_)
            | Event::ToolAsked { .. }
            | Event::ToolLost { .. }
            | Event::TaskOverdue { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::ModelIgnored { .. }
            | Event::Started(_)
            | Event::User(_)
            | Event::Drawn { .. }
            | Event::ModelAsked(_) => {}
        }
        let mut view = Map::from_iter([
            ("seq".to_owned(), json!(record.id)),
            ("parent".to_owned(), json!(record.parent)),
            ("time".to_owned(), json!(record.time)),
            ("hash".to_owned(), json!(record.hash)),
        ]);
        if let Value::Object(fields) = event {
            view.extend(fields);
        }
        Value::Object(view)
    }
}
