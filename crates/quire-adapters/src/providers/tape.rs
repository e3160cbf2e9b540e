//! Traffic with a model on a file: recorded from a real one, replayed without it.
//!
//! A line for each attempt, as JSON: the hash of what was asked, what was asked, the pieces as they came, and what came of
//! it. No key is in it: requests here hold none, and providers keep theirs out of what they say. What is asked and answered
//! is: a recording is as private as its session.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use quire_core::ids::Hash;
use quire_core::message::{Failure, FailureKind, Message, Reply};
use quire_runtime::ports::{Delta, ModelError, ModelProvider, ModelRequest};
use serde::{Deserialize, Serialize};

use super::http::lock;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// The file does not let itself be read or written.
    #[error("the recording `{path}` cannot be used: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A line is no attempt.
    #[error("line {line} of the recording `{path}` cannot be read: {cause}; record it again")]
    Broken {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        cause: serde_json::Error,
    },
}

/// One attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Attempt {
    request: Hash,
    model: String,
    messages: Vec<Message>,
    tools: Vec<String>,
    pieces: Vec<Piece>,
    outcome: Outcome,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Piece {
    Text(String),
    Reasoning(String),
    Arguments { tool: String, text: String },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Reply(Reply),
    Failure { failure: Failure, may_retry: bool },
}

/// A provider whose traffic is written down.
pub struct Recorder {
    provider: Arc<dyn ModelProvider>,
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    /// Writes at the end of a file, which only its owner may read.
    ///
    /// # Errors
    /// [`TapeError::Io`] when it cannot be opened.
    pub fn new(provider: Arc<dyn ModelProvider>, path: &Path) -> Result<Self, TapeError> {
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.create(true).append(true).open(path).map_err(|source| unusable(path, source))?;
        Ok(Self { provider, path: path.to_owned(), file: Mutex::new(file) })
    }

    fn write(&self, attempt: &Attempt) -> Result<(), ModelError> {
        let line = serde_json::to_string(attempt).expect("traffic is plain data") + "\n";
        lock(&self.file).write_all(line.as_bytes()).map_err(|source| {
            let message = format!("{}; free space, or go on without recording", unusable(&self.path, source));
            setup(message)
        })
    }
}

#[async_trait]
impl ModelProvider for Recorder {
    /// What cannot be written down is a failure: a recording with gaps replays as another session.
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let pieces = Mutex::new(Vec::new());
        let note = |delta: Delta| {
            lock(&pieces).push(Piece::of(&delta));
            deltas(delta);
        };
        let answer = self.provider.ask(request, &note).await;
        let outcome = match &answer {
            Ok(reply) => Outcome::Reply(reply.clone()),
            Err(error) => Outcome::Failure { failure: error.failure.clone(), may_retry: error.may_retry },
        };
        self.write(&Attempt {
            request: hash(request),
            model: self.provider.model().to_owned(),
            messages: request.messages.clone(),
            tools: request.tools.iter().map(|tool| tool.name.to_string()).collect(),
            pieces: std::mem::take(&mut *lock(&pieces)),
            outcome,
        })?;
        answer
    }

    fn model(&self) -> &str {
        self.provider.model()
    }

    fn prompt_tokens_max(&self) -> u32 {
        self.provider.prompt_tokens_max()
    }
}

/// A recording that answers as its model did.
///
/// A request gets the first attempt left that was asked the same; where none was, since prompts change with what builds
/// them, the first attempt left.
pub struct Replay {
    model: String,
    prompt_tokens_max: u32,
    left: Mutex<Vec<Attempt>>,
}

impl Replay {
    /// Reads a recording; `prompt_tokens_max` is the room that its model gave to prompts.
    ///
    /// # Errors
    /// [`TapeError`] when the file cannot be read.
    pub fn open(path: &Path, prompt_tokens_max: u32) -> Result<Self, TapeError> {
        let text = std::fs::read_to_string(path).map_err(|source| unusable(path, source))?;
        let read = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|cause| TapeError::Broken {
                path: path.display().to_string(),
                line: index + 1,
                cause,
            })
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let left: Vec<Attempt> = lines.map(read).collect::<Result<_, _>>()?;
        let model = left.first().map_or_else(|| "replay".to_owned(), |attempt| attempt.model.clone());
        Ok(Self { model, prompt_tokens_max, left: Mutex::new(left) })
    }

    fn next(&self, request: &ModelRequest) -> Option<Attempt> {
        let asked = hash(request);
        let mut left = lock(&self.left);
        let at = left.iter().position(|attempt| attempt.request == asked).unwrap_or(0);
        (at < left.len()).then(|| left.remove(at))
    }
}

#[async_trait]
impl ModelProvider for Replay {
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let Some(attempt) = self.next(request) else {
            return Err(setup("the recording is at its end and holds no answer to this; record again".to_owned()));
        };
        attempt.pieces.into_iter().for_each(|piece| deltas(piece.into_delta()));
        match attempt.outcome {
            Outcome::Reply(reply) => Ok(reply),
            Outcome::Failure { failure, may_retry } => Err(ModelError { failure, may_retry, retry_after: None }),
        }
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn prompt_tokens_max(&self) -> u32 {
        self.prompt_tokens_max
    }
}

impl Piece {
    fn of(delta: &Delta) -> Self {
        match delta {
            Delta::Text(text) => Self::Text(text.clone()),
            Delta::Reasoning(text) => Self::Reasoning(text.clone()),
            Delta::Arguments { tool, text } => Self::Arguments { tool: tool.clone(), text: text.clone() },
        }
    }

    fn into_delta(self) -> Delta {
        match self {
            Self::Text(text) => Delta::Text(text),
            Self::Reasoning(text) => Delta::Reasoning(text),
            Self::Arguments { tool, text } => Delta::Arguments { tool, text },
        }
    }
}

/// What was asked: the messages and the names of the tools.
fn hash(request: &ModelRequest) -> Hash {
    let messages = serde_json::to_string(&request.messages).expect("messages are plain data");
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_ref()).collect();
    Hash::of(format!("{messages}\n{}", tools.join("\n")))
}

fn setup(message: String) -> ModelError {
    super::stream::failed(FailureKind::Setup, message, false)
}

fn unusable(path: &Path, source: std::io::Error) -> TapeError {
    TapeError::Io { path: path.display().to_string(), source }
}
