//! What the driver needs from the outside: models, a store, tools, a clock, chance. Adapters implement these; tests fake them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quire_core::chance::Seed;
use quire_core::deep_task::{HostTool, ToolResult};
use quire_core::event::Action;
use quire_core::ids::{CallId, RecordId, SessionId, SkillId, TaskId, Timestamp};
use quire_core::journal::{StoredRecord, Texts};
use quire_core::message::{Failure, Message, OfferedTool, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Returns now.
    fn now(&self) -> Timestamp;
}

/// Gives what draws follow from.
pub trait Chance: Send + Sync {
    /// Returns a seed that nobody could have known.
    fn seed(&self) -> Seed;
}

/// One request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The session that asks.
    pub session: SessionId,
    /// The call; with the session, the request's idempotency key.
    pub call: CallId,
    /// Who asks.
    pub asker: Asker,
    /// How many calls of this same asker were answered before in this session, by a reply or a failure; runs of one skill
    /// in one role count together.
    pub answered_before: u64,
    /// The messages, valid for any provider: every call answered once, in order, no empty text.
    pub messages: Vec<Message>,
    /// What may be called.
    pub tools: Vec<OfferedTool>,
    /// The tags a worker must hand in, where they are all known by name; for models that are held to a schema.
    pub output_tags: Vec<String>,
}

/// Who asks a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// The main agent.
    Agent,
    /// A worker.
    Worker {
        /// Its skill.
        skill: SkillId,
        /// Its role.
        role: Option<String>,
    },
    /// A deep task's sub-agent.
    Task {
        /// The task.
        task: TaskId,
    },
}

/// A piece of a reply as it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Of the text.
    Text(String),
    /// Of the reasoning.
    Reasoning(String),
    /// Of a call's arguments.
    Arguments {
        /// The tool, once it is known.
        tool: String,
        /// The piece.
        text: String,
    },
}

/// Why one attempt gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// What the session is told, if no further attempt is made.
    pub failure: Failure,
    /// Whether another attempt may help.
    pub may_retry: bool,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
}

/// A model behind a profile.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// Sends one request and passes on what comes. Makes no second attempt; being dropped breaks the request off.
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError>;

    /// Returns the model's name at its provider.
    fn model(&self) -> &str;

    /// Returns how many tokens a prompt may take.
    fn prompt_tokens_max(&self) -> u32;
}

/// Finds the provider behind a profile's name.
pub trait Models: Send + Sync {
    /// Returns it, or says what is missing and what to do.
    fn provider(&self, profile: &str) -> Result<Arc<dyn ModelProvider>, Failure>;
}

/// Where a set of tools is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeContext {
    /// Beside the user, who can be asked.
    Foreground,
    /// In a deep task: nobody can be asked.
    Background,
}

/// The tools there are, and what is wrong with servers that gave none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toolbox {
    /// The tools, in a stable order, with unique names.
    pub tools: Vec<HostTool>,
    /// A sentence for each server that cannot be used: its name, the cause, what to do.
    pub faults: Vec<String>,
}

/// Has the tools of the outside.
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Lists the tools for a context. A server that cannot be reached keeps none of the others away.
    async fn tools(&self, context: RuntimeContext) -> Toolbox;

    /// Calls a tool once; whatever goes wrong is a result that says so. Being dropped cancels the call.
    async fn call(&self, tool: &HostTool, arguments: &Map<String, Value>) -> ToolResult;
}

/// A host without tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

#[async_trait]
impl ToolHost for NoTools {
    async fn tools(&self, _context: RuntimeContext) -> Toolbox {
        Toolbox::default()
    }

    async fn call(&self, tool: &HostTool, _arguments: &Map<String, Value>) -> ToolResult {
        ToolResult::error(format!("the tool `{}` of {} is not there any more", tool.name, tool.server))
    }
}

/// Why a store did not do as told. Nothing was changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session `{0}`; `quire list` shows those there are")]
    NoSession(SessionId),
    /// There is one already.
    #[error("there is a session `{0}` already")]
    SessionExists(SessionId),
    /// Another process owns the session by now.
    #[error("another process has taken over session `{0}`")]
    Fenced(SessionId),
    /// The folder or the database cannot be used.
    #[error("{message}")]
    Unusable {
        /// What happened, where, and what to do.
        message: String,
    },
}

/// The right to write to one session, until somebody else takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// Rises with each owner.
    pub fence: u64,
}

/// A line of the list of sessions: a projection, rebuilt from journals at will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: String,
    /// Its pack's name; empty where it has none yet.
    pub pack: String,
    /// `idle`, `running`, `waiting_user`, `done`, `error`.
    pub phase: String,
    /// What it waits for; empty where it does not.
    pub reason: String,
    /// `design`, `play`, `done`.
    pub stage: String,
    /// When it was started.
    pub started: Timestamp,
    /// When its last record was written.
    pub changed: Timestamp,
}

/// What one durable write adds.
#[derive(Debug, Clone)]
pub struct Append {
    /// The record.
    pub record: StoredRecord,
    /// The long texts it names.
    pub texts: Texts,
    /// The session's line in the list after it.
    pub summary: Summary,
    /// The posted action it answers, with the answer: both become durable together, or neither.
    pub answers: Option<(Ticket, Answered)>,
}

/// A journal as stored.
#[derive(Debug, Clone, Default)]
pub struct StoredJournal {
    /// All records of all branches, ids rising.
    pub records: Vec<StoredRecord>,
    /// The long texts they name.
    pub texts: Texts,
    /// The record the session stands at.
    pub head: RecordId,
}

/// The number of a posted action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub u64);

/// What became of a posted action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answered {
    /// It was heard, and is this record.
    Heard {
        /// The record.
        record: RecordId,
    },
    /// It was refused, and changed nothing.
    Refused {
        /// Why; what is pending; what would be heard.
        refusal: quire_core::session::Refusal,
    },
}

/// Where journals lie. Every write is on disk when its future is done; two appends to one session never overlap.
#[async_trait]
pub trait Store: Send + Sync {
    /// Begins a session with its first record, and takes its lease.
    async fn create(&self, session: &SessionId, first: Append) -> Result<Lease, StoreError>;

    /// Takes over a session, unless a living process owns it. A second claim by the same store gives a new lease.
    async fn claim(&self, session: &SessionId) -> Result<Option<Lease>, StoreError>;

    /// Gives a lease back.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Writes one record and moves the head to it.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the lease is no longer the newest.
    async fn append(&self, lease: &Lease, append: Append) -> Result<(), StoreError>;

    /// Reads a whole journal.
    async fn load(&self, session: &SessionId) -> Result<StoredJournal, StoreError>;

    /// Returns the id of the newest record; cheap, for those who wait.
    async fn newest(&self, session: &SessionId) -> Result<RecordId, StoreError>;

    /// Returns one session's line of the list; cheap.
    async fn summary(&self, session: &SessionId) -> Result<Summary, StoreError>;

    /// Lists sessions, the latest changed first.
    async fn list(&self) -> Result<Vec<Summary>, StoreError>;

    /// Puts a user action into a session's inbox.
    async fn post(&self, session: &SessionId, action: &Action) -> Result<Ticket, StoreError>;

    /// Returns what lies in the inbox unanswered, oldest first.
    async fn inbox(&self, session: &SessionId) -> Result<Vec<(Ticket, Action)>, StoreError>;

    /// Answers a posted action that was refused. One that was heard is answered by its [`Append`].
    async fn refuse(&self, lease: &Lease, ticket: Ticket, answer: Answered) -> Result<(), StoreError>;

    /// Returns the answer to a posted action, once there is one.
    async fn answer(&self, ticket: Ticket) -> Result<Option<Answered>, StoreError>;
}
