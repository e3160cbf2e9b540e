//! What a person sees while models work: who is at it, and the text as it comes.
//!
//! On a terminal the last lines of what is being written stand above a line that says who writes, in which round and since
//! when; both go when the reply is there, and what it came to is shown whole elsewhere. Without a terminal it is a line
//! for each round. Thinking is counted and not shown; what the pack hides is not shown at all.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write, stderr, stdout};
use std::time::{Duration, Instant};

use quire_core::event::Event;
use quire_core::ids::{CallId, SessionId};
use quire_core::reply;
use quire_core::session::Session;
use quire_runtime::driver::Opened;
use quire_runtime::ports::{Asker, Delta};
use quire_runtime::watch::Watched;
use serde_json::Value;
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::Desk;
use super::paint::{Paint, printable};
use crate::wire;
use crate::words::Lang;
use crate::words::session::name;

/// How often the clock of what runs moves.
const TICK: Duration = Duration::from_millis(100);
/// Rows of text shown while it is written.
const TAIL_ROWS: usize = 8;

/// Where progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Nowhere.
    Silent,
    /// On stdout, a line for each round.
    Lines,
    /// On stderr, a terminal, as it comes.
    Live,
}

impl How {
    /// Shows a single command's progress to a person, and to nobody else.
    pub fn of(desk: &Desk) -> Self {
        if desk.is_json || !stderr().is_terminal() { Self::Silent } else { Self::Live }
    }
}

/// Shows progress until it is ended.
pub struct Progress {
    shown: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to show what happens to a session.
    pub fn begin(desk: &Desk, opened: &Opened, how: How) -> Self {
        if how == How::Silent {
            return Self { shown: None };
        }
        let watch = desk.fleet.watch();
        let printer = Printer::new(desk.lang, &opened.session, how);
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
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            biased;
            watched = watch.recv() => match watched {
                Ok(watched) => printer.take(&watched),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return printer.clear(),
            },
            _ = &mut ended => return printer.clear(),
            _ = tick.tick() => printer.draw(),
        }
    }
}

/// Shows what is watched, as a person reads it.
struct Printer {
    lang: Lang,
    paint: Paint,
    how: How,
    session: SessionId,
    /// What a skill is called, and whether its text is kept from the user.
    skills: BTreeMap<String, (String, bool)>,
    work: Option<Work>,
    /// Widths of the lines that stand on the terminal and go before the next drawing.
    drawn: Vec<usize>,
}

/// One round as far as it has come.
struct Work {
    call: CallId,
    line: String,
    is_masked: bool,
    began: Instant,
    said: String,
    arguments: String,
    thought_characters: usize,
}

impl Printer {
    fn new(lang: Lang, session: &Session, how: How) -> Self {
        let skills = session.pack().into_iter().flat_map(|pack| &pack.skills).map(|skill| {
            let is_masked = wire::writes_hidden(session, &skill.id);
            (skill.id.to_string(), (name(session, &skill.id, None), is_masked))
        });
        let skills = skills.collect();
        Self { lang, paint: Paint::of_stderr(), how, session: session.id().clone(), skills, work: None, drawn: vec![] }
    }

    fn take(&mut self, watched: &Watched) {
        if *watched.session() != self.session {
            return;
        }
        match watched {
            // Tasks work beside the session: of them there is only a line, so that two texts do not run into each other.
            Watched::Asked { asker: Asker::Task { task }, round, .. } => self.line(&self.lang.works_task(task, round)),
            Watched::Asked { call, attempt, asker, round, .. } => self.begin(*call, asker, *round, *attempt),
            Watched::Streamed { call, delta, .. } => {
                if let Some(work) = self.work.as_mut().filter(|work| work.call == *call) {
                    match delta {
                        Delta::Text(text) => work.said.push_str(text),
                        Delta::Arguments { text, .. } => work.arguments.push_str(text),
                        Delta::Reasoning(text) => work.thought_characters += text.chars().count(),
                    }
                }
            }
            Watched::Retrying { message, pause_ms, .. } => {
                let seconds = format!("{:.1}", *pause_ms as f64 / 1000.0);
                self.line(&self.lang.works_retry(message, seconds));
            }
            Watched::Recorded { event, .. } => {
                if let Event::ModelReplied { call, .. } | Event::ModelFailed { call, .. } = **event
                    && self.work.as_ref().is_some_and(|work| work.call == call)
                {
                    self.finish();
                }
            }
            Watched::Refused { .. } | Watched::Left { .. } | Watched::Failed { .. } => {}
        }
    }

    fn begin(&mut self, call: CallId, asker: &Asker, round: u32, attempt: u32) {
        let (who, is_masked) = match asker {
            Asker::Agent => (self.lang.agent(), false),
            Asker::Task { task } => (self.lang.deep_task(task), false),
            Asker::Worker { skill, role } => {
                let (name, is_masked) = self.skills.get(skill.as_str()).cloned().unwrap_or((skill.to_string(), false));
                (role.as_ref().map_or(name.clone(), |role| format!("{name} ({role})")), is_masked)
            }
        };
        let mut line = self.lang.works(who, round);
        if attempt > 1 {
            line.push_str(&self.lang.works_again(attempt));
        }
        if is_masked {
            line.push_str(&self.lang.works_hidden());
        }
        if self.how == How::Lines {
            self.line(&line);
        }
        let (said, arguments) = (String::new(), String::new());
        self.work = Some(Work { call, line, is_masked, began: Instant::now(), said, arguments, thought_characters: 0 });
    }

    /// A reply is there: its round becomes a line, with the time it took where a person watches it.
    fn finish(&mut self) {
        let Some(work) = self.work.take() else { return };
        if self.how == How::Live {
            let seconds = format!("{:.1}", work.began.elapsed().as_secs_f32());
            self.line(&format!("{} · {}", work.line, self.lang.works_done(seconds)));
        }
    }

    fn line(&mut self, text: &str) {
        let line = printable(&format!("· {text}"));
        match self.how {
            How::Silent => {}
            How::Lines => println!("{line}"),
            How::Live => {
                self.clear();
                writeln!(stderr(), "{}", self.paint.dim(&line)).ok();
            }
        }
        stdout().flush().ok();
    }

    /// Draws the tail of the text and the line of who is at work, in place of what was drawn before.
    fn draw(&mut self) {
        let Some(work) = self.work.as_ref().filter(|_| self.how == How::Live) else { return };
        let columns = self.paint.columns().saturating_sub(1).max(8);
        let text = if work.is_masked { String::new() } else { printable(&work.text()) };
        let rows = TAIL_ROWS.min(self.paint.rows().saturating_sub(3));
        let mut lines: Vec<String> = tail(&text, columns, rows);
        let mut status = format!("● {} · {}", work.line, self.lang.works_elapsed(work.began.elapsed().as_secs()));
        if text.is_empty() && work.thought_characters > 0 {
            status.push_str(&format!(" · {}", self.lang.works_thinking(work.thought_characters)));
        }
        status.push_str(&format!(" · {}", self.lang.works_stop_key()));
        let status = tail(&printable(&status), columns, 2);
        let text_lines = lines.len();
        lines.extend(status);
        let mut drawing = self.erasing();
        for (index, line) in lines.iter().enumerate() {
            let line = if index >= text_lines { self.paint.dim(line) } else { line.clone() };
            drawing.push_str(&format!("{line}\r\n"));
        }
        self.drawn = lines.iter().map(|line| line.width()).collect();
        let mut out = stderr();
        write!(out, "{drawing}").and_then(|()| out.flush()).ok();
    }

    /// Takes what was drawn off the terminal.
    fn clear(&mut self) {
        let erasing = self.erasing();
        self.drawn.clear();
        let mut out = stderr();
        write!(out, "{erasing}").and_then(|()| out.flush()).ok();
    }

    /// The terminal may have become narrower since, and have wrapped what stands on it.
    fn erasing(&self) -> String {
        let columns = self.paint.columns().max(1);
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        if rows == 0 { String::new() } else { format!("\r\x1b[{rows}A\x1b[J") }
    }
}

impl Work {
    fn text(&self) -> String {
        let arguments = reply::find_json(&self.arguments).map(|found| texts(&found.value)).unwrap_or_default();
        [self.said.as_str(), arguments.as_str()].iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join("\n")
    }
}

/// Wraps text into rows of at most `columns` and keeps the last of them.
fn tail(text: &str, columns: usize, rows: usize) -> Vec<String> {
    // Enough of the end to fill the rows, whatever its letters' widths: the whole of a long text is not wrapped each time.
    let letters: Vec<&str> = text.graphemes(true).collect();
    let end = letters.get(letters.len().saturating_sub(columns * rows)..).unwrap_or_default().concat();
    let options = textwrap::Options::new(columns).wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    let wrapped = end.lines().flat_map(|line| textwrap::wrap(line, &options));
    let mut wrapped: Vec<String> = wrapped.map(|row| row.replace('\t', " ")).collect();
    wrapped.split_off(wrapped.len().saturating_sub(rows))
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

#[cfg(test)]
mod tests {
    use super::tail;

    #[test]
    fn the_tail_is_cut_by_columns_and_not_by_letters() {
        assert_eq!(tail("灯塔守夜人，", 4, 9), ["灯塔", "守夜", "人，"]);
        assert_eq!(tail("one\n\ntwo threes", 5, 3), ["two", "three", "s"]);
        assert_eq!(tail("", 5, 3), Vec::<String>::new());
    }
}
