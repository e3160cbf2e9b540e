//! What is sent to a model and what comes back, in no provider's dialect.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::deep_task::HostTool;
use crate::ids::Hash;

/// A request as the core builds it: the same session state gives the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// In order: one system message, then user, assistant and tool messages. Every call is answered once.
    pub messages: Vec<Message>,
    /// What the model may call, in a fixed order.
    pub tools: Vec<&'static ToolSpec>,
    /// The hash of everything up to the end of the static part.
    pub prefix: Hash,
    /// The engine's own texts in it, in the order of the assembly: recorded with the call, so that a newer program can
    /// build this prompt again.
    pub fixed: Vec<Arc<str>>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Rules.
    System {
        /// The text; never empty.
        text: Arc<str>,
    },
    /// What the runtime or the user says.
    User {
        /// The text; never empty.
        text: Arc<str>,
        /// How many bytes from the start stay the same from call to call; its end may be marked for the provider's cache.
        #[serde(default, skip_serializing_if = "is_zero")]
        stable_bytes: usize,
    },
    /// What the model said.
    Assistant {
        /// Its text; empty where it only called tools.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        text: Arc<str>,
        /// Its reasoning, word for word; empty where there was none.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        reasoning: Arc<str>,
        /// Its calls, in order, each with an id of its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// The answer to one call.
    Tool {
        /// The call's id.
        call_id: String,
        /// The answer; never empty.
        text: Arc<str>,
    },
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Message {
    /// Makes a user message without a stable part.
    pub fn user(text: impl AsRef<str>) -> Self {
        Self::User { text: text.as_ref().into(), stable_bytes: 0 }
    }

    /// Returns who speaks: `system`, `user`, `assistant` or `tool`.
    pub fn role(&self) -> &'static str {
        match self {
            Self::System { .. } => "system",
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::Tool { .. } => "tool",
        }
    }

    /// Returns its text; empty where an assistant only calls tools.
    pub fn text(&self) -> &str {
        match self {
            Self::System { text } | Self::User { text, .. } | Self::Assistant { text, .. } | Self::Tool { text, .. } => text,
        }
    }

    /// Returns the calls of an assistant message; none of any other.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant { calls, .. } => calls,
            Self::System { .. } | Self::User { .. } | Self::Tool { .. } => &[],
        }
    }
}

/// One call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id; may be empty or used twice until the core has read the reply.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as they came: usually JSON, perhaps broken. Never run unless they parse.
    pub arguments: Arc<str>,
}

/// A tool as the model is told of it.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub parameters: &'static str,
}

/// A tool's words as they go to a provider, whoever carries it out: a tool of the session, or one of the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does.
    pub description: Cow<'static, str>,
    /// JSON Schema of its arguments.
    pub parameters: Cow<'static, str>,
}

impl From<&'static ToolSpec> for OfferedTool {
    fn from(tool: &'static ToolSpec) -> Self {
        Self { name: tool.name.into(), description: tool.description.into(), parameters: tool.parameters.into() }
    }
}

impl From<&HostTool> for OfferedTool {
    fn from(tool: &HostTool) -> Self {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        Self { name: owned(&tool.name), description: owned(&tool.description), parameters: owned(&tool.parameters) }
    }
}

/// A finished reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub text: Arc<str>,
    /// Its reasoning, word for word.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reasoning: Arc<str>,
    /// Its calls, in the order of their slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish: Finish,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// Why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// It wants its calls answered.
    ToolCalls,
    /// It hit a limit of length: what it wrote last may be cut.
    Length,
    /// The provider's filter stepped in.
    ContentFilter,
    /// Another word of the provider.
    Other(String),
}

/// Tokens and money of one attempt; zero where the provider did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, cached ones too.
    pub input_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens of the reply, reasoning too.
    pub output_tokens: u64,
    /// Price in millionths of the price table's currency.
    pub money_micros: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.money_micros += other.money_micros;
    }
}

/// Why a call gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// What happened, with the provider's own words, and what to do.
    pub message: String,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection, or it broke.
    Network,
    /// The provider is busy or broken (429, 5xx).
    Unavailable,
    /// The provider does not take the request (other 4xx).
    Rejected,
    /// The stream ended without its end mark.
    Cut,
    /// The provider's filter, or a refusal.
    Refused,
    /// The prompt has no room in the model's context.
    NoRoom,
    /// No profile, no key, or no such model.
    Setup,
    /// The rounds of the run are used up, or its reply cannot be used.
    Unusable,
}
