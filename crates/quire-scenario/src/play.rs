//! Which line a model speaks next, told from what it has said before and from nothing else.
//!
//! Each reply and each failure that a session has recorded uses up one line of its asker, in the file's order. A failure
//! that is not in the script uses up nothing, and a failure that nobody counted is passed over once a later reply stands.

use quire_core::ids::SkillId;
use quire_core::message::{Failure, FailureKind, Finish, Reply, ToolCall, Usage};
use serde_json::json;

use crate::{Line, LineKind, ModelLine, Scenario};

/// What a session has recorded of one asker, along its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Had {
    /// Finished replies.
    pub replies: u64,
    /// Calls that failed after all attempts.
    pub failures: u64,
}

impl Scenario {
    /// Returns what the main agent's model does next; past its last line, it asks the user what to do and says why.
    pub fn agent_line(&self, had: Had) -> ModelLine {
        let lines = self.lines.iter().filter_map(|line| match &line.kind {
            LineKind::Agent(reply) => Some(reply),
            LineKind::User(_) | LineKind::Worker { .. } => None,
        });
        match next(lines, had) {
            Some(line) => line.clone(),
            None => ModelLine::Reply(the_script_has_ended(self.lines.last())),
        }
    }

    /// Returns what a worker's model does next; past its last line, it gives its last reply again.
    ///
    /// A line of which no skill is known is spoken by any worker.
    pub fn worker_line(&self, skill: &SkillId, role: Option<&str>, had: Had) -> ModelLine {
        let lines = self.lines.iter().filter_map(|line| match &line.kind {
            LineKind::Worker { skill: None, reply, .. } => Some(reply),
            LineKind::Worker { skill: Some(own), role: own_role, reply } if own == skill && own_role.as_deref() == role => {
                Some(reply)
            }
            LineKind::Worker { .. } | LineKind::User(_) | LineKind::Agent(_) => None,
        });
        let last_reply = lines.clone().rfind(|line| matches!(line, ModelLine::Reply(_)));
        match next(lines, had).or(last_reply) {
            Some(line) => line.clone(),
            None => ModelLine::Failure(no_line_for(skill, role)),
        }
    }
}

fn next<'a>(lines: impl Iterator<Item = &'a ModelLine>, mut had: Had) -> Option<&'a ModelLine> {
    for line in lines {
        match line {
            ModelLine::Reply(_) if had.replies == 0 => return Some(line),
            ModelLine::Reply(_) => had.replies -= 1,
            ModelLine::Failure(_) if had.failures == 0 && had.replies == 0 => return Some(line),
            ModelLine::Failure(_) => had.failures = had.failures.saturating_sub(1),
        }
    }
    None
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
