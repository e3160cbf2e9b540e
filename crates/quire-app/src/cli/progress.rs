//! What a person sees while models work: who is at it, and the text as it comes. On a terminal only, and on stderr.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

use quire_core::ids::{SessionId, SkillId};
use quire_core::reply;
use quire_runtime::driver::Opened;
use quire_runtime::ports::{Asker, Delta};
use quire_runtime::watch::Watched;
use serde_json::Value;
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle;

use super::Desk;
use crate::out::printable;
use crate::wire;

/// Shows progress until it is ended.
pub struct Progress {
    shown: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to show what happens to a session.
    pub fn begin(desk: &Desk, opened: &Opened) -> Self {
        if desk.is_json || !stderr().is_terminal() {
            return Self { shown: None };
        }
        let watch = desk.fleet.watch();
        let pack = opened.session.pack();
        let skills = pack.iter().flat_map(|pack| &pack.skills).map(|skill| skill.id.clone());
        let masked = skills.filter(|skill| wire::writes_hidden(&opened.session, skill)).collect();
        let printer = Printer::new(opened.session.id().clone(), masked);
        let (end, ended) = oneshot::channel();
        Self { shown: Some((end, tokio::spawn(show(watch, printer, ended)))) }
    }

    /// Shows what has come until now, and no more.
    pub async fn end(self) {
        if let Some((end, shown)) = self.shown {
            end.send(()).ok();
            shown.await.ok();
        }
    }
}

async fn show(mut watch: broadcast::Receiver<Watched>, mut printer: Printer, mut ended: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            watched = watch.recv() => match watched {
                Ok(watched) => printer.print(&watched),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = &mut ended => return printer.close_line(),
        }
    }
}

/// Prints what is watched, as a person reads it.
pub struct Printer {
    session: SessionId,
    masked: BTreeSet<SkillId>,
    is_masked: bool,
    arguments: String,
    next_look: usize,
    printed: usize,
    began: Instant,
    line_is_open: bool,
}

impl Printer {
    /// Prints one session; of the skills in `masked`, no text.
    pub fn new(session: SessionId, masked: BTreeSet<SkillId>) -> Self {
        Self {
            session,
            masked,
            is_masked: false,
            arguments: String::new(),
            next_look: 0,
            printed: 0,
            began: Instant::now(),
            line_is_open: false,
        }
    }

    /// Prints one thing that happened.
    pub fn print(&mut self, watched: &Watched) {
        if *watched.session() != self.session {
            return;
        }
        match watched {
            Watched::Asked { attempt, asker, round, .. } => {
                let who = match asker {
                    Asker::Agent => "the main agent".to_owned(),
                    Asker::Worker { skill, role: None } => skill.to_string(),
                    Asker::Worker { skill, role: Some(role) } => format!("{skill} ({role})"),
                };
                self.is_masked = matches!(asker, Asker::Worker { skill, .. } if self.masked.contains(skill));
                self.arguments.clear();
                self.next_look = 0;
                self.printed = 0;
                self.began = Instant::now();
                let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let hidden = if self.is_masked { " (its text is hidden from you)" } else { "" };
                self.line(&format!("· {who}, round {round}{again}{hidden}"));
            }
            Watched::Streamed { delta: Delta::Text(text), .. } => self.text(text),
            Watched::Streamed { delta: Delta::Arguments { text, .. }, .. } => {
                self.arguments.push_str(text);
                // Each look reads all there is: rarer looks as it grows keep a long text from being read a thousand times.
                if self.arguments.len() >= self.next_look {
                    self.next_look = self.arguments.len() + self.arguments.len() / 50;
                    self.arguments_so_far();
                }
            }
            Watched::Streamed { delta: Delta::Reasoning(_), .. } => {}
            Watched::Retrying { message, pause_ms, .. } => {
                self.line(&format!("· {message}; again in {:.1} s", *pause_ms as f64 / 1000.0));
            }
            Watched::Recorded { event, .. } => {
                if matches!(**event, quire_core::event::Event::ModelReplied { .. }) {
                    self.arguments_so_far();
                    self.line(&format!("· done in {:.1} s", self.began.elapsed().as_secs_f32()));
                }
            }
            Watched::Refused { .. } | Watched::Left { .. } | Watched::Failed { .. } => {}
        }
    }

    /// Prints what is new of the texts in a call's arguments.
    fn arguments_so_far(&mut self) {
        let Some(found) = reply::find_json(&self.arguments) else { return };
        let text = texts(&found.value);
        if let Some(new) = text.get(self.printed..).map(str::to_owned) {
            self.printed = text.len();
            self.text(&new);
        }
    }

    fn text(&mut self, text: &str) {
        if self.is_masked || text.is_empty() {
            return;
        }
        self.line_is_open = !text.ends_with('\n');
        let mut out = stderr();
        write!(out, "{}", printable(text)).and_then(|()| out.flush()).ok();
    }

    fn line(&mut self, text: &str) {
        self.close_line();
        writeln!(stderr(), "{}", printable(text)).ok();
    }

    fn close_line(&mut self) {
        if std::mem::take(&mut self.line_is_open) {
            writeln!(stderr()).ok();
        }
    }
}

/// Draws the texts of a call's arguments together: those of `outputs`, else what it says.
fn texts(arguments: &Value) -> String {
    let of = |value: &Value| match value {
        Value::Object(fields) => fields.values().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n"),
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
    };
    ["outputs", "assessment", "summary", "reason"].iter().find_map(|name| arguments.get(name)).map(of).unwrap_or_default()
}
