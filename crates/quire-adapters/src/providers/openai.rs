//! Any server that speaks the chat completions of OpenAI: the clouds, and those on the user's own machine.
//!
//! The key is in no message, log or debug output. Not here: retries, prices, and the reading of what the model meant (the
//! core does that).

mod assembly;
mod body;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::Stream;
use quire_core::message::Reply;
use quire_runtime::ports::{Delta, ModelError, ModelProvider, ModelRequest};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::http::{BaseUrl, KeyHeader, Server, ServerConfig, SetupError, lock};
use super::stream::{self, Interruption};
use super::tool_mode::{self, ToolMode};
use super::want::Want;
use super::{SILENCE_MAX, prompt_tokens_max};

use assembly::Assembly;
use body::Dialect;

const ROUTE: &str = "chat/completions";

/// What a profile says about a model behind such a server.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// Where the server is: `https://api.example.com/v1`, `http://localhost:11434`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The key, for servers that want one.
    pub key: Option<SecretString>,
    /// The size of the model's context in tokens: prompt and reply.
    pub context_tokens: u32,
    /// The most tokens a reply may have; not sent where `None`.
    pub output_tokens_max: Option<u32>,
    /// Whether reasoning goes back to the server on messages with calls, as `reasoning_content`.
    pub echo_reasoning: bool,
    /// How long the server may be silent: before it begins, and between any two pieces.
    pub silence_max: Duration,
    /// How calls are asked for and read.
    pub tool_mode: ToolMode,
    /// Parameters that the server is known to refuse, each with the server's words.
    pub refused: BTreeMap<String, String>,
    /// Further parameters, sent as they are: `temperature`, `reasoning_effort`.
    pub parameters: Map<String, Value>,
}

impl OpenAiConfig {
    /// Makes a profile with no key, native calls, no limit of the reply's length, and 120 s of patience.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, context_tokens: u32) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            context_tokens,
            output_tokens_max: None,
            echo_reasoning: false,
            silence_max: SILENCE_MAX,
            tool_mode: ToolMode::Native,
            refused: BTreeMap::new(),
            parameters: Map::new(),
        }
    }
}

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAi {
    config: OpenAiConfig,
    base_url: BaseUrl,
    server: Server,
    /// What the server has refused so far.
    dialect: Mutex<Dialect>,
}

impl OpenAi {
    /// Prepares the connection; sends nothing.
    ///
    /// # Errors
    /// [`SetupError`] when the base URL or the key cannot be used.
    pub fn new(config: OpenAiConfig) -> Result<Self, SetupError> {
        let base_url = BaseUrl::parse(&config.base_url, "v1", ROUTE)?;
        let server = Server::new(ServerConfig {
            base_url: &base_url,
            target: base_url.route(ROUTE),
            key: config.key.as_ref(),
            key_header: KeyHeader::Bearer,
            headers: &[],
            silence_max: config.silence_max,
        })?;
        let dialect = Mutex::new(Dialect::new(&config));
        Ok(Self { config, base_url, server, dialect })
    }

    /// Returns the parameters that the server has refused so far, those that were known before too, each with its words.
    pub fn refused(&self) -> BTreeMap<String, String> {
        lock(&self.dialect).refused().clone()
    }

    /// Asks for more than a session does.
    pub(super) async fn ask_for(
        &self,
        request: &ModelRequest,
        want: &Want,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let build = |dialect: &Dialect| body::body(&self.config, dialect, request, want);
        let response = self.server.exchange(&self.dialect, build).await?;
        let reply = read_reply(&self.server.shown(), self.server.bytes(response), deltas).await;
        reply.map_err(|error| self.server.safe(error))
    }

    pub(super) fn server(&self) -> (&Server, &BaseUrl) {
        (&self.server, &self.base_url)
    }
}

#[async_trait]
impl ModelProvider for OpenAi {
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let reply = self.ask_for(request, &Want::Reply, deltas).await?;
        Ok(tool_mode::read(self.config.tool_mode, request, reply))
    }

    fn model(&self) -> &str {
        &self.config.model
    }

    fn prompt_tokens_max(&self) -> u32 {
        prompt_tokens_max(self.config.context_tokens, self.config.output_tokens_max)
    }
}

/// Reads an answer with a good status to its end and passes on what comes.
///
/// `server` is its name in messages.
///
/// # Errors
/// [`FailureKind::Network`](quire_core::message::FailureKind::Network) when bytes stop coming,
/// [`FailureKind::Cut`](quire_core::message::FailureKind::Cut) when they end too early, and what the provider's own words
/// mean when an error comes instead of a reply.
pub async fn read_reply<B: AsRef<[u8]>>(
    server: &str,
    bytes: impl Stream<Item = Result<B, Interruption>>,
    deltas: &(dyn Fn(Delta) + Send + Sync),
) -> Result<Reply, ModelError> {
    stream::read_reply(server, bytes, Assembly::new(deltas)).await
}
