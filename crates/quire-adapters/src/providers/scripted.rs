//! A model that speaks from a scenario: for the built-in demo, and for tests of packs.
//!
//! What it says follows from the scenario and from what the session has recorded, not from what this value has been asked:
//! after a crash the play goes on where it was. It reads no prompt, counts no tokens and costs nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quire_core::message::Reply;
use quire_runtime::ports::{Asker, Delta, ModelError, ModelProvider, ModelRequest};
use quire_scenario::{ModelLine, Scenario};
use unicode_segmentation::UnicodeSegmentation;

/// How many grapheme clusters come at once.
const PIECE_GRAPHEMES: usize = 4;

/// No prompt of a scripted session comes near it.
const PROMPT_TOKENS_MAX: u32 = 128_000;

/// A scenario as a model.
#[derive(Debug, Clone)]
pub struct Scripted {
    scenario: Arc<Scenario>,
    delay: Duration,
}

impl Scripted {
    /// Plays a scenario as fast as it can.
    pub fn new(scenario: Scenario) -> Self {
        Self { scenario: Arc::new(scenario), delay: Duration::ZERO }
    }

    /// Waits before each piece of a reply, a few letters long, so that a person can watch it being written.
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    fn line(&self, request: &ModelRequest) -> ModelLine {
        match &request.asker {
            Asker::Agent => self.scenario.agent_line(request.answered_before),
            Asker::Task { task } => self.scenario.task_line(*task, request.answered_before),
            Asker::Worker { skill, role } => self.scenario.worker_line(skill, role.as_deref(), request.answered_before),
        }
    }
}

#[async_trait]
impl ModelProvider for Scripted {
    /// A failure of the script is the end of the call: no further attempt would help.
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let reply = match self.line(request) {
            ModelLine::Reply(reply) => reply,
            ModelLine::Failure(failure) => return Err(ModelError { failure, may_retry: false, retry_after: None }),
        };
        for delta in pieces(&reply) {
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            deltas(delta);
        }
        Ok(reply)
    }

    fn model(&self) -> &str {
        "scripted"
    }

    fn prompt_tokens_max(&self) -> u32 {
        PROMPT_TOKENS_MAX
    }
}

/// Cuts a reply into what a stream would bring: the text, then the arguments of each call.
fn pieces(reply: &Reply) -> impl Iterator<Item = Delta> {
    let text = cut(&reply.text).map(Delta::Text);
    let arguments =
        reply.calls.iter().flat_map(|call| cut(&call.arguments).map(|text| Delta::Arguments { tool: call.name.clone(), text }));
    text.chain(arguments)
}

fn cut(text: &str) -> impl Iterator<Item = String> {
    let mut graphemes = text.graphemes(true).peekable();
    std::iter::from_fn(move || graphemes.peek().is_some().then(|| graphemes.by_ref().take(PIECE_GRAPHEMES).collect()))
}
