//! Everything that can happen to a session. A closed list: what is not here cannot be journaled.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chance::Seed;
use crate::deep_task::{Caps, HostTool, ToolResult};
use crate::ids::{CallId, Hash, HostCallId, ItemNumber, TaskId};
use crate::message::{Failure, Reply};
use crate::pack::PackFiles;
use crate::question::Answer;
use crate::tag::{Pattern, Tag};

/// One thing that happened, as a past fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The session began.
    Started(Start),
    /// The user did something.
    User(Action),
    /// A request to a model is about to be sent.
    ModelAsked(ModelAsked),
    /// The model's finished reply came.
    ModelReplied {
        /// The call it answers.
        call: CallId,
        /// The reply.
        reply: Reply,
    },
    /// The call gave no reply, after all attempts.
    ModelFailed {
        /// The call.
        call: CallId,
        /// Why.
        failure: Failure,
        /// What had come until then.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        partial: Arc<str>,
    },
    /// The draws of a turn were made: the faces follow from the seed and the pack.
    Drawn {
        /// The seed.
        seed: Seed,
    },
    /// Something came for a call that nobody waits for any more: kept, and nothing else.
    ModelIgnored {
        /// The call.
        call: CallId,
        /// What came.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        text: Arc<str>,
        /// Why it is ignored.
        cause: String,
    },
    /// A deep task's tools were looked up.
    TaskEquipped(TaskEquipped),
    /// A host tool is about to be called.
    ToolAsked {
        /// The task.
        task: TaskId,
        /// The call.
        call: HostCallId,
        /// From 1; a crash makes one more, where the tool may be called again.
        attempt: u32,
    },
    /// The tool gave its result, or failed.
    ToolAnswered {
        /// The task.
        task: TaskId,
        /// The call.
        call: HostCallId,
        /// The result.
        result: ToolResult,
    },
    /// The program ended while the tool was at work, and the tool may have acted: nobody knows the outcome.
    ToolLost {
        /// The task.
        task: TaskId,
        /// The call.
        call: HostCallId,
    },
    /// A deep task's time is up while something of it is under way.
    TaskOverdue {
        /// The task.
        task: TaskId,
    },
}

/// What a deep task gets to work with: written down, so that the journal never asks the outside again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEquipped {
    /// The task.
    pub task: TaskId,
    /// What it may use.
    pub caps: Caps,
    /// The host tools it is offered.
    pub tools: Vec<HostTool>,
    /// What is wrong with servers that gave none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// How a session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Its title; empty where the user gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its pack. None: a session of old, which chooses one.
    pub pack: Option<PackFiles>,
    /// The model profile that serves it where the pack names none.
    pub profile: String,
    /// The user's own limit of rounds between two of their actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_max: Option<u32>,
    /// What the session may spend.
    #[serde(default)]
    pub budget: Budget,
    /// Names and descriptions of the packs on offer, for a session without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offer: Vec<PackOffer>,
}

/// A pack on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOffer {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
}

/// What a session may spend in all; none: as much as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Model rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Tokens in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of the price table's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
    /// Time that models worked, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// A request to a model. The prompt is not here: it is built again from the session as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAsked {
    /// The call.
    pub call: CallId,
    /// From 1; a crash or a retry makes one more.
    pub attempt: u32,
    /// The profile's name.
    pub profile: String,
    /// The model's name at the provider.
    pub model: String,
    /// The tokens the prompt could take.
    pub budget_tokens: u32,
    /// How tokens were counted.
    pub tokenizer: String,
    /// The version of the assembly that built the prompt.
    pub assembly: u32,
    /// The engine's own texts in the prompt, as [`Prompt::fixed`](crate::message::Prompt::fixed).
    #[serde(default)]
    pub fixed: Vec<Arc<str>>,
    /// The hash of the whole prompt as built.
    pub prompt: Hash,
    /// The hash of its stable beginning.
    pub prefix: Hash,
    /// How a worker's prompt came about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<crate::context::Trace>,
    /// The deep task that asks, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// What an action says it answers: a number as text, or nothing, which means what is pending.
pub type Target = Option<String>;

/// One thing a user does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Chooses the pack of a session that has none.
    SelectPack {
        /// The pack's files.
        pack: PackFiles,
    },
    /// Says something.
    SubmitInput {
        /// The words.
        #[serde(default)]
        text: Arc<str>,
        /// Values of intake fields, by id.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<String, String>,
    },
    /// Closes the intake.
    ConfirmIntake,
    /// Lets the worker run that the agent chose.
    Approve {
        /// The decision.
        #[serde(default)]
        decision: Target,
    },
    /// Does not let it run.
    RejectStep {
        /// The decision.
        #[serde(default)]
        decision: Target,
        /// Why.
        #[serde(default)]
        reason: Arc<str>,
    },
    /// Makes an artifact a fact.
    Accept {
        /// The artifact.
        #[serde(default)]
        artifact: Target,
    },
    /// Sends an artifact back.
    Reject {
        /// The artifact.
        #[serde(default)]
        artifact: Target,
        /// What to mend; empty: to be said later.
        #[serde(default)]
        reason: Arc<str>,
    },
    /// Throws an artifact, or a run that asks, away.
    Discard {
        /// The artifact.
        #[serde(default)]
        artifact: Target,
    },
    /// Answers a question card.
    Answer {
        /// The card.
        #[serde(default)]
        card: Target,
        /// The answers.
        answers: Vec<Answer>,
    },
    /// Closes a question card without answers.
    Skip {
        /// The card.
        #[serde(default)]
        card: Target,
    },
    /// Does again exactly what failed or was stopped.
    Retry,
    /// Sets what the session may spend.
    SetBudget {
        /// The budget as a whole.
        budget: Budget,
    },
    /// Stops what runs.
    Stop,
    /// Ends the session.
    Finish,
    /// Writes a tag's text.
    EditItem {
        /// The tag.
        tag: Tag,
        /// The item the edit was made from; none: whichever is the newest.
        #[serde(default)]
        base: Option<ItemNumber>,
        /// The whole new text.
        text: Arc<str>,
    },
    /// Writes one cell of a table, which is the user's from then on.
    EditCell {
        /// The table.
        tag: Tag,
        /// The cell.
        key: String,
        /// The new value.
        value: serde_json::Value,
        /// The revision the edit was made from; 0 for a new cell.
        rev: u64,
    },
    /// Hands a cell back to the workers.
    ReleaseCell {
        /// The table.
        tag: Tag,
        /// The cell.
        key: String,
        /// The revision the user saw.
        rev: u64,
    },
    /// Moves the session to another version of its pack.
    UpgradePack {
        /// The pack's files.
        pack: PackFiles,
    },
    /// Shows what the pack hides.
    Reveal,
    /// Has a sub-agent dig into something beside the session.
    StartTask {
        /// What to find out; all that the sub-agent is told.
        task: Arc<str>,
        /// A name for people; else the task's first line.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        title: String,
        /// What of the book it may search and read; nothing where there is none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<Pattern>,
    },
    /// Ends a deep task; what it has found is kept.
    CancelTask {
        /// The task.
        task: TaskId,
    },
}
