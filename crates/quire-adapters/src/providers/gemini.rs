//! Models that speak the contents of Gemini.
//!
//! An adapter of our own: calls go back with their signatures word for word, cached tokens are counted, the reasons of an
//! end keep their words, and a stream that ends without one is a failure. The key is in a header, never in a URL, and in
//! no message, log or debug output.

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
const WIRE: &str = "gemini";

/// What a profile says about a model behind such a server.
#[derive(Debug, Clone)]
pub struct GeminiConfig {
    /// Where the server is: `https://generativelanguage.googleapis.com`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The key, for servers that want one.
    pub key: Option<SecretString>,
    /// The size of the model's context in tokens: prompt and reply.
    pub context_tokens: u32,
    /// The most tokens a reply may have; not sent where `None`.
    pub output_tokens_max: Option<u32>,
    /// How long the server may be silent: before it begins, and between any two pieces.
    pub silence_max: Duration,
    /// Parameters that the server is known to refuse, each with the server's words.
    pub refused: BTreeMap<String, String>,
    /// Further parameters: `temperature`, `thinkingConfig`, `safetySettings`; each where the wire wants it.
    pub parameters: Map<String, Value>,
}

impl GeminiConfig {
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

/// A model behind a server with Gemini's wire.
#[derive(Debug)]
pub struct Gemini {
    config: GeminiConfig,
    base_url: BaseUrl,
    server: Server,
    /// What the server has refused so far.
    refusals: Mutex<Refusals>,
}

impl Gemini {
    /// Prepares the connection; sends nothing.
    ///
    /// # Errors
    /// [`SetupError`] when the base URL or the key cannot be used.
    pub fn new(config: GeminiConfig) -> Result<Self, SetupError> {
        let base_url = BaseUrl::parse(&config.base_url, "v1beta", "/models")?;
        let model = config.model.strip_prefix("models/").unwrap_or(&config.model);
        let mut target = base_url.route(&format!("models/{model}:streamGenerateContent"));
        target.query_pairs_mut().append_pair("alt", "sse");
        let server = Server::new(ServerConfig {
            base_url: &base_url,
            target,
            key: config.key.as_ref(),
            key_header: KeyHeader::Named("x-goog-api-key"),
            headers: &[],
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
impl ModelProvider for Gemini {
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
