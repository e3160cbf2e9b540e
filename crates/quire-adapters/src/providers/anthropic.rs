//! Models that speak the messages of Anthropic: Claude, and the servers of others with that wire.
//!
//! An adapter of our own: thinking goes back with its signatures word for word, cached tokens are counted, and a stream
//! that ends without its end mark is a failure. The key is in no message, log or debug output.

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
use super::refusals::Refusals;
use super::stream::{self, Interruption};
use super::want::Want;
use super::{SILENCE_MAX, prompt_tokens_max};

use assembly::Assembly;

/// The name of this wire in stored reasoning.
const WIRE: &str = "anthropic";
const ROUTE: &str = "messages";
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// What a profile says about a model behind such a server.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Where the server is: `https://api.anthropic.com`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The key, for servers that want one.
    pub key: Option<SecretString>,
    /// The size of the model's context in tokens: prompt and reply.
    pub context_tokens: u32,
    /// The most tokens a reply may have. The wire needs a number: where `None`, a quarter of the context, at most 8,192.
    pub output_tokens_max: Option<u32>,
    /// How long the server may be silent: before it begins, and between any two pieces.
    pub silence_max: Duration,
    /// Parameters that the server is known to refuse, each with the server's words.
    pub refused: BTreeMap<String, String>,
    /// Further parameters, sent as they are: `temperature`, `thinking`.
    pub parameters: Map<String, Value>,
}

impl AnthropicConfig {
    /// Makes a profile with no key and 120 s of patience.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, context_tokens: u32) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            context_tokens,
            output_tokens_max: None,
            silence_max: SILENCE_MAX,
            refused: BTreeMap::new(),
            parameters: Map::new(),
        }
    }
}

/// A model behind a server with Anthropic's wire.
#[derive(Debug)]
pub struct Anthropic {
    config: AnthropicConfig,
    base_url: BaseUrl,
    server: Server,
    /// What the server has refused so far.
    refusals: Mutex<Refusals>,
}

impl Anthropic {
    /// Prepares the connection; sends nothing.
    ///
    /// # Errors
    /// [`SetupError`] when the base URL or the key cannot be used.
    pub fn new(config: AnthropicConfig) -> Result<Self, SetupError> {
        let base_url = BaseUrl::parse(&config.base_url, "v1", ROUTE)?;
        let server = Server::new(ServerConfig {
            base_url: &base_url,
            target: base_url.route(ROUTE),
            key: config.key.as_ref(),
            key_header: KeyHeader::Named("x-api-key"),
            headers: &[VERSION],
            silence_max: config.silence_max,
        })?;
        let refusals = Mutex::new(Refusals::known(&config.refused));
        Ok(Self { config, base_url, server, refusals })
    }

    /// Returns the parameters that the server has refused so far, those that were known before too, each with its words.
    pub fn refused(&self) -> BTreeMap<String, String> {
        lock(&self.refusals).refused().clone()
    }

    /// Asks for more than a session does.
    pub(super) async fn ask_for(
        &self,
        request: &ModelRequest,
        want: &Want,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let build = |refusals: &Refusals| body::body(&self.config, refusals, request, want);
        let response = self.server.exchange(&self.refusals, build).await?;
        let reply = read_reply(&self.server.shown(), &self.config.model, self.server.bytes(response), deltas).await;
        reply.map_err(|error| self.server.safe(error))
    }

    pub(super) fn server(&self) -> (&Server, &BaseUrl) {
        (&self.server, &self.base_url)
    }
}

#[async_trait]
impl ModelProvider for Anthropic {
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        self.ask_for(request, &Want::Reply, deltas).await
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
/// `server` is its name in messages, `model` the one that signed reasoning goes back to.
///
/// # Errors
/// As [`openai::read_reply`](super::openai::read_reply).
pub async fn read_reply<B: AsRef<[u8]>>(
    server: &str,
    model: &str,
    bytes: impl Stream<Item = Result<B, Interruption>>,
    deltas: &(dyn Fn(Delta) + Send + Sync),
) -> Result<Reply, ModelError> {
    stream::read_reply(server, bytes, Assembly::new(model, deltas)).await
}
