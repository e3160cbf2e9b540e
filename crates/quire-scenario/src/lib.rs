//! The scenario language: a file that plays the user and the models of a session.
//!
//! One file serves tests of the rulebook, tests of a pack, and a model that speaks from a script. It is read once, to the
//! end: [`Scenario::parse`] gives every line ready to be played, or every fault with its place and a way out. Which line a
//! model speaks next ([`Scenario::agent_line`], [`Scenario::worker_line`]) follows from what it has said before, so that a
//! killed process goes on where it was.
//!
//! [`perform`](perform()) plays a scenario on a session without a model, a store or a clock; [`suite`] plays a pack's own
//! scenarios.
//!
//! # The language
//!
//! A statement is a line; all statements stand in one column, wherever that is. A line indented by two or more belongs to
//! the statement above it: texts go on there, with their line breaks and their inner indentation. `#` in the statements'
//! column begins a comment. A text begins after a colon and a space (or after `：`), on the same line or on the next.
//!
//! ```text
//! pack    short-story
//! option  title="The Lamp" burst_max=3 budget.rounds=5
//!
//! # A secret: words that may stand in the prompts of those who are named, and in nobody else's (`nobody` names none).
//! secret  outline draft act(A): the pilot did it
//!
//! # The user: words, or an action in its form. `say` is for words that look like an action.
//! user    A story about a lighthouse.
//! user    set genre=Horror length="very short"
//! user    confirm
//! user    reject: Too long.
//! user    answer q1=B q2="my own words"
//! user    edit chapter.draft base=4: The whole text.
//! user    edit_cell vars.table hp rev=1: 7
//! user    release_cell vars.table hp rev=2
//! user    set_budget rounds=10 tokens=5000
//! user    say: accept
//! # So are written: retry, stop, finish, reveal; approve, accept, discard, skip, reject, reject_step, where need be with
//! # the number of what they answer.
//! user    accept 1
//!
//! # The main agent: a call in short form. `and` adds a call to the same reply.
//! agent   read_blackboard outline.* 用户.*
//!  and    list_workers
//! agent   run_worker draft role=A approval: The outline stands.
//! agent   ask_user: Two things to settle.
//!         ? q1: Who is it? [A: the widow | B: the pilot] (required)
//!         ? What does it smell of?
//! agent   review_blackboard: Three beats and a draft.
//! agent   declare_instance_ready skip=persona: It plays itself.
//! agent   finish: The story is done.
//! # So are written too: list_artifacts.
//!
//! # A worker: the one that is named, else the one that the nearest run_worker above names.
//! worker  submit chapter.draft: The lamp had been dark for a week.
//! worker(draft) submit
//!         + outline.draft: Three beats.
//!           And a turn.
//!         + notes.draft: The lamp is a person.
//!         summary: An outline with notes.
//!         ? Who is it? [the widow | the pilot] (options only)
//! worker(act role=A) ask_user
//!         ? Who is it?
//!
//! # Deep tasks: what there is of host tools (`=acts` and `=idempotent` say what a tool may do; else it only reads), what the
//! # sub-agents say, and what the tools give back. `task(2)` is said by task 2 alone, `task` by every task.
//! tools   search note=acts
//! option  task.max_rounds=3
//! user    start_task title="Lamps" grants=outline.*,notes: How were lamps lit in 1900?
//! user    cancel_task 1
//! agent   call delegate_task {"task": "How were lamps lit in 1900?"}
//! task    call search {"query": "lamps 1900"}
//! tool    search: Three pages on paraffin.
//! task    call note {"text": "paraffin"}
//! tool    note fails: The disk is full.
//! task(1) text: By paraffin, mostly.
//!
//! # Agent, worker and task alike: a reply without a call; any call with any arguments; what a limit of length cut off; a call
//! # that fails (network, unavailable, rejected, cut, refused, no_room, setup, unusable).
//! agent   text: Let me think.
//! agent   call run_worker {"workerId": "draft", even broken
//! agent   cut: It was a dark and
//! agent   cut call run_worker {"workerId": "dra
//! agent   fails unavailable: The provider says 503.
//! ```

use quire_core::deep_task::{Caps, HostTool, ToolResult};
use quire_core::diagnostic::Diagnostic;
use quire_core::event::{Action, Budget, Target};
use quire_core::ids::{SkillId, TaskId};
use quire_core::message::{Failure, Reply};

pub mod perform;
mod play;
mod read;
pub mod suite;

pub use perform::perform;

/// A scenario that can be played.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The pack's name; a player finds the pack.
    pub pack: Option<String>,
    /// How the session starts.
    pub options: Options,
    /// Who may not be told what.
    pub secrets: Vec<Secret>,
    /// The host tools that deep tasks find.
    pub tools: Vec<HostTool>,
    /// The lines, in the file's order.
    pub lines: Vec<Line>,
}

/// Settings of a session's start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The session's title; empty where the file gives none.
    pub title: String,
    /// Model rounds between two actions of the user.
    pub burst_max: Option<u32>,
    /// What the session may spend.
    pub budget: Budget,
    /// What each deep task may use.
    pub task_caps: Caps,
}

/// Words that must not get about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The words.
    pub words: String,
    /// In whose prompts they may stand: `agent`, a skill, or a skill in a role as `act(A)`.
    pub readers: Vec<String>,
}

/// One thing that somebody does.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The file's line it begins on, from 1.
    pub number: u32,
    /// That line as written, without its indentation.
    pub text: String,
    /// Who does what.
    pub kind: LineKind,
}

/// Who does what.
#[derive(Debug, Clone, PartialEq)]
pub enum LineKind {
    /// The user.
    User(UserLine),
    /// The main agent's model.
    Agent(ModelLine),
    /// A worker's model.
    Worker {
        /// The skill: named by the line, else by the nearest `run_worker` above it. None: no line says.
        skill: Option<SkillId>,
        /// The role of the run, found the same way.
        role: Option<String>,
        /// What it says.
        reply: ModelLine,
    },
    /// A deep task's model.
    Task {
        /// The task; none: any.
        task: Option<TaskId>,
        /// What it says.
        reply: ModelLine,
    },
    /// A host tool that a deep task has called.
    Tool {
        /// Its name.
        tool: String,
        /// What it gives back.
        result: ToolResult,
    },
}

/// What the user does.
#[derive(Debug, Clone, PartialEq)]
pub enum UserLine {
    /// An action, whole.
    Act(Action),
    /// Answers to a card. Letters get their texts from the session's pending card, which only a player has.
    Answer {
        /// The card; none: the pending one.
        card: Target,
        /// Question and value, in order: an option's letter, or words.
        answers: Vec<(String, String)>,
    },
}

/// What a model does when it is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelLine {
    /// It answers. Calls have the ids `call-1`, `call-2`… within the reply; the usage is zero.
    Reply(Reply),
    /// The call fails, after all attempts.
    Failure(Failure),
}

impl Scenario {
    /// Reads a scenario; `file` is the name that diagnostics carry.
    ///
    /// # Errors
    /// Every fault of the file, in its order; all are of severity error.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        read::scenario(file, text)
    }
}
