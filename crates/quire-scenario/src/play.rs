//! Which line a model speaks next, told from what it has said before and from nothing else.
//!
//! Each reply and each failure that a session has recorded uses up one line of its asker, in the file's order.

use quire_core::ids::{SkillId, TaskId};
use quire_core::message::{Failure, FailureKind, Finish, Reply, ToolCall, Usage};
use serde_json::json;

use crate::{Line, LineKind, ModelLine, Scenario};

impl Scenario {
    /// Returns what the main agent's model does next; past its last line, it asks the user what to do and says why.
    /// `answered` counts the agent's calls that a reply or a failure answered.
    pub fn agent_line(&self, answered: u64) -> ModelLine {
        let lines = self.lines.iter().filter_map(|line| match &line.kind {
            LineKind::Agent(reply) => Some(reply),
            LineKind::User(_) | LineKind::Worker { .. } | LineKind::Task { .. } | LineKind::Tool { .. } => None,
        });
        match nth(lines, answered) {
            Some(line) => line.clone(),
            None => ModelLine::Reply(the_script_has_ended(self.lines.last())),
        }
    }

    /// Returns what a worker's model does next; past its last line, it gives its last reply again.
    ///
    /// A line of which no skill is known is spoken by any worker.
    pub fn worker_line(&self, skill: &SkillId, role: Option<&str>, answered: u64) -> ModelLine {
        let lines = self.lines.iter().filter_map(|line| match &line.kind {
            LineKind::Worker { skill: None, reply, .. } => Some(reply),
            LineKind::Worker { skill: Some(own), role: own_role, reply } if own == skill && own_role.as_deref() == role => {
                Some(reply)
            }
            LineKind::Worker { .. } | LineKind::User(_) | LineKind::Agent(_) | LineKind::Task { .. } | LineKind::Tool { .. } => {
                None
            }
        });
        let last_reply = lines.clone().rfind(|line| matches!(line, ModelLine::Reply(_)));
        match nth(lines, answered).or(last_reply) {
            Some(line) => line.clone(),
            None => ModelLine::Failure(no_line_for(skill, role)),
        }
    }

    /// Returns what a deep task's model does next; past its last line, it says that there is no more.
    ///
    /// A line that names no task is spoken by every task; `answered` counts the task's own calls.
    pub fn task_line(&self, task: TaskId, answered: u64) -> ModelLine {
        let lines = self.lines.iter().filter_map(|line| match &line.kind {
            LineKind::Task { task: own, reply } => own.is_none_or(|own| own == task).then_some(reply),
            LineKind::User(_) | LineKind::Agent(_) | LineKind::Worker { .. } | LineKind::Tool { .. } => None,
        });
        match nth(lines, answered) {
            Some(line) => line.clone(),
            None => ModelLine::Failure(Failure {
                kind: FailureKind::Setup,
                message:
                    "the scenario has no further line for a deep task; add one (`task text: …`), or choose a profile with a \
                          real model"
                        .to_owned(),
            }),
        }
    }
}

fn nth<'a>(mut lines: impl Iterator<Item = &'a ModelLine>, answered: u64) -> Option<&'a ModelLine> {
    usize::try_from(answered).ok().and_then(|answered| lines.nth(answered))
}

fn the_script_has_ended(last: Option<&Line>) -> Reply {
    let place = last.map_or("it has no lines at all".to_owned(), |line| format!("its last line is line {}", line.number));
    let assessment = format!(
        "The script that plays the agent has ended ({place}). Nothing more will happen here by itself: finish the session, or \
         start another one with a real model."
    );
    let call = ToolCall {
        id: "call-1".to_owned(),
        name: "ask_user".to_owned(),
        arguments: json!({ "assessment": assessment }).to_string().into(),
    };
    Reply { text: "".into(), reasoning: "".into(), calls: vec![call], finish: Finish::ToolCalls, usage: Usage::default() }
}

fn no_line_for(skill: &SkillId, role: Option<&str>) -> Failure {
    let heading = match role {
        Some(role) => format!("worker({skill} role={role})"),
        None => format!("worker({skill})"),
    };
    let message = format!(
        "the scenario has no line for the worker `{skill}`; add one (`{heading} submit …`), or choose a profile with a real model"
    );
    Failure { kind: FailureKind::Setup, message }
}
