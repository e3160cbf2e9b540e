//! `quire task`: deep tasks of a session.
//!
//! A task is worked on while some process drives its session: `start` and `watch` do so until it is over, and so does every
//! command as long as it stays. What a stopped program left goes on with the next `watch` or `resume`.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use quire_core::deep_task::{DeepTask, Ending, TaskState};
use quire_core::event::Action;
use quire_core::ids::{SessionId, TaskId};
use quire_core::session::Session;
use quire_core::tag::Pattern;
use quire_runtime::driver::Opened;
use quire_runtime::ports::Answered;
use serde_json::json;

use super::progress::{How, Progress};
use super::{Desk, act};
use crate::options::{StartTask, TaskCommand};
use crate::report::{self, Unknown, Usage};
use crate::wire;

/// Runs one of the commands.
pub async fn task(desk: &Desk, command: TaskCommand) -> Result<ExitCode> {
    match command {
        TaskCommand::Start(start_task) => start(desk, start_task).await,
        TaskCommand::List(on) => list(desk, &on.session).await,
        TaskCommand::Show(on) => show(desk, &on.session, TaskId(on.task)).await,
        TaskCommand::Cancel(on) => cancel(desk, &on.session, TaskId(on.task)).await,
        TaskCommand::Watch { session, task } => watch(desk, &SessionId::new(session), task.map(TaskId)).await,
    }
}

async fn start(desk: &Desk, start: StartTask) -> Result<ExitCode> {
    let id = SessionId::new(&start.session);
    let grants = start.grants.iter().map(|raw| Pattern::parse(raw).map_err(|error| Usage(error.to_string())));
    let grants = grants.collect::<Result<Vec<_>, _>>()?;
    let words = if start.task.is_empty() { act::read_stdin(desk.lang)? } else { start.task.join(" ") };
    let before = desk.fleet.look(&id).await?.session.tasks().len();
    let action = Action::StartTask { task: words.as_str().into(), title: start.title.unwrap_or_default(), grants };
    if let Answered::Refused { refusal } = desk.fleet.act(&id, &action).await? {
        return act::refused(desk, &id, Some(&action), &refusal).await;
    }
    let opened = desk.fleet.look(&id).await?;
    // Another program may have started one at the same moment.
    let is_ours = |task: &&DeepTask| *task.task == *words;
    let task =
        opened.session.tasks().iter().skip(before).find(is_ours).ok_or_else(|| anyhow!("the task was heard and is not there"))?;
    if start.detach {
        tell(desk, &opened.session, task);
        return Ok(ExitCode::from(report::FINE));
    }
    watch(desk, &id, Some(task.id)).await
}

async fn list(desk: &Desk, session: &str) -> Result<ExitCode> {
    let opened = desk.fleet.look(&SessionId::new(session)).await?;
    let session = &opened.session;
    if desk.is_json {
        let tasks: Vec<_> = session.tasks().iter().map(|task| wire::task_view(session, task)).collect();
        println!("{}", json!({ "tasks": tasks }));
        return Ok(ExitCode::from(report::FINE));
    }
    if session.tasks().is_empty() {
        println!("No deep task has been started; `quire task start {} \"…\"` starts one.", session.id());
    }
    for task in session.tasks() {
        println!("{}", line(task));
    }
    Ok(ExitCode::from(report::FINE))
}

async fn show(desk: &Desk, session: &str, task: TaskId) -> Result<ExitCode> {
    let opened = desk.fleet.look(&SessionId::new(session)).await?;
    let found = find(&opened, task)?;
    if !desk.is_json {
        println!("{}\n\nTask: {}", line(found), found.task);
        let grants: Vec<&str> = found.grants.iter().map(Pattern::as_str).collect();
        if !grants.is_empty() {
            println!("May read of the book: {}", grants.join(", "));
        }
        println!("Used: {}", found.used());
    }
    tell(desk, &opened.session, found);
    Ok(ExitCode::from(report::FINE))
}

async fn cancel(desk: &Desk, session: &str, task: TaskId) -> Result<ExitCode> {
    let id = SessionId::new(session);
    let action = Action::CancelTask { task };
    if let Answered::Refused { refusal } = desk.fleet.act(&id, &action).await? {
        return act::refused(desk, &id, Some(&action), &refusal).await;
    }
    let opened = desk.fleet.look(&id).await?;
    tell(desk, &opened.session, find(&opened, task)?);
    Ok(ExitCode::from(report::FINE))
}

async fn watch(desk: &Desk, id: &SessionId, task: Option<TaskId>) -> Result<ExitCode> {
    let opened = desk.fleet.look(id).await?;
    if let Some(task) = task {
        find(&opened, task)?;
    }
    let progress = Progress::begin(desk, &opened, How::of(desk));
    let opened = tokio::select! {
        settled = desk.fleet.tasks_settled(id, task) => settled?,
        _ = tokio::signal::ctrl_c() => {
            progress.end().await;
            eprintln!("quire: what was found is kept; `quire task watch {id}` goes on");
            return Ok(ExitCode::from(report::FINE));
        }
    };
    progress.end().await;
    let is_meant = |other: &&DeepTask| task.is_none_or(|task| task == other.id);
    let meant: Vec<&DeepTask> = opened.session.tasks().iter().filter(is_meant).collect();
    match (task, meant.as_slice()) {
        (Some(_), [only]) => tell(desk, &opened.session, only),
        _ if desk.is_json => {
            let tasks: Vec<_> = meant.iter().map(|task| wire::task_view(&opened.session, task)).collect();
            println!("{}", json!({ "tasks": tasks }));
        }
        _ => meant.iter().for_each(|task| println!("{}", line(task))),
    }
    let has_failed = task.is_some() && meant.iter().any(|task| matches!(task.ending(), Some(Ending::Failed { .. })));
    Ok(ExitCode::from(if has_failed { report::FAILED } else { report::FINE }))
}

fn find(opened: &Opened, task: TaskId) -> Result<&DeepTask> {
    let session = &opened.session;
    session.task(task).ok_or_else(|| {
        Unknown(format!("there is no deep task {task}; `quire task list {}` shows those there are", session.id())).into()
    })
}

/// Prints a task: one JSON object, or where it stands and its result.
fn tell(desk: &Desk, session: &Session, task: &DeepTask) {
    if desk.is_json {
        println!("{}", wire::task_view(session, task));
        return;
    }
    match task.result.map(|number| session.board().item(number)) {
        Some(item) => println!("\n── {} ──\n{}", item.tag, wire::content(session, item).trim_end()),
        None => println!("{}", line(task)),
    }
    if task.is_running() {
        println!(
            "  quire task watch {id} {task}    goes on with it\n  quire task cancel {id} {task}",
            id = session.id(),
            task = task.id
        );
    }
}

fn line(task: &DeepTask) -> String {
    let state = match &task.state {
        TaskState::Equipping => "running, looks up its tools".to_owned(),
        TaskState::Asking(_) => "running, thinks".to_owned(),
        TaskState::Calling(calling) => format!("running, calls {}", calling.tool.name),
        TaskState::Over(Ending::CutOff(cap)) => format!("cut_off by {}", cap.as_str()),
        TaskState::Over(Ending::Failed { message }) => format!("failed: {message}"),
        TaskState::Over(Ending::Done) => "done".to_owned(),
        TaskState::Over(Ending::Cancelled) => "cancelled".to_owned(),
    };
    format!("{:>3}  {}: {state} ({})", task.id, task.title, task.used())
}
