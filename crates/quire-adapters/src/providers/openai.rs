//! Any server that speaks the chat completions of OpenAI: the clouds, and those on the user's own machine.
//!
//! One request is one attempt: what happens after a failure is the driver's to decide. The one exception is a server that
//! refuses a parameter by name before it has begun: it is asked once more without that parameter, and so from then on. The
//! key is in no message, log or debug output.
//!
//! Not here: retries, prices, and the reading of what the model meant (the core does that).

mod assembly;
mod body;
mod endpoint;
mod stream;
mod words;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::StreamExt;
use quire_core::message::{FailureKind, Reply};
use quire_runtime::ports::{Delta, ModelError, ModelProvider, ModelRequest};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

pub use endpoint::SetupError;
pub use stream::{Interruption, read_reply};

use body::Dialect;
use endpoint::Endpoint;
use stream::{failed, humane};
use words::Words;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// The least length of a key worth looking for in messages; a shorter one is a placeholder and may be a common word.
const KEY_BYTES_MIN: usize = 8;
/// What is kept free for the reply where the profile does not say.
const RESERVED_TOKENS_MAX: u32 = 8192;

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
    /// Further parameters, sent as they are: `temperature`, `reasoning_effort`.
    pub parameters: Map<String, Value>,
}

impl OpenAiConfig {
    /// Makes a profile with no key, no limit of the reply's length, and 120 s of patience.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, context_tokens: u32) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            context_tokens,
            output_tokens_max: None,
            echo_reasoning: false,
            silence_max: Duration::from_secs(120),
            parameters: Map::new(),
        }
    }
}

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAi {
    config: OpenAiConfig,
    endpoint: Endpoint,
    authorization: Option<HeaderValue>,
    client: Client,
    /// What the server has refused so far.
    dialect: Mutex<Dialect>,
}

impl OpenAi {
    /// Prepares the connection; sends nothing.
    ///
    /// # Errors
    /// [`SetupError`] when the base URL or the key cannot be used.
    pub fn new(config: OpenAiConfig) -> Result<Self, SetupError> {
        let endpoint = Endpoint::parse(&config.base_url)?;
        let authorization = config.key.as_ref().map(|key| endpoint.authorization(key)).transpose()?.flatten();
        let client = client(&endpoint, config.silence_max)?;
        let dialect = Mutex::new(Dialect::new(&config));
        Ok(Self { config, endpoint, authorization, client, dialect })
    }

    async fn exchange(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let mut dialect = self.dialect().clone();
        let mut body = body::body(&self.config, &dialect, request);
        let mut refused = Vec::new();
        loop {
            let response = self.send(&body).await?;
            if response.status().is_success() {
                *self.dialect() = dialect;
                return self.read(response, deltas).await;
            }
            let answer = BadAnswer::read(response).await;
            let next = dialect.after(&answer.words, &body).filter(|_| answer.is_about_the_body());
            refused.push(body);
            // Each body is tried once: what changes nothing, or leads back, is not tried again.
            let other = next.map(|next| (body::body(&self.config, &next, request), next));
            let Some((next_body, next)) = other.filter(|(next_body, _)| !refused.contains(next_body)) else {
                return Err(answer.failure(&self.endpoint.shown()));
            };
            let said = self.without_key(&answer.words.text);
            tracing::warn!(server = %self.endpoint.shown(), %said, "a parameter was refused; asking once more without it");
            (body, dialect) = (next_body, next);
        }
    }

    async fn send(&self, body: &Value) -> Result<Response, ModelError> {
        let request = self.client.post(self.endpoint.url().clone()).json(body);
        let request = request.header(ACCEPT, "text/event-stream, application/json");
        let request = match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        };
        request.send().await.map_err(|error| self.unreached(&error.without_url()))
    }

    async fn read(&self, response: Response, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let silence_max = self.config.silence_max;
        let bytes = response.bytes_stream().map(move |chunk| {
            chunk.map_err(|error| match error.is_timeout() {
                true => Interruption::Stalled(silence_max),
                false => Interruption::Broken { cause: cause(&error.without_url()) },
            })
        });
        read_reply(&self.endpoint.shown(), bytes, deltas).await
    }

    fn unreached(&self, error: &reqwest::Error) -> ModelError {
        let url = self.endpoint.shown();
        let happened = match (error.is_connect(), error.is_timeout()) {
            (true, true) => format!("{url} cannot be reached: no connection within {}", humane(CONNECT_TIMEOUT)),
            (true, false) => format!("{url} cannot be reached: {}", cause(error)),
            (false, true) => {
                let silence = humane(self.config.silence_max);
                let message =
                    format!("{url} took the request and sent nothing for {silence}. Try again, or give the profile more time.");
                return failed(FailureKind::Network, message, true);
            }
            (false, false) => format!("the connection to {url} broke before the answer: {}", cause(error)),
        };
        failed(FailureKind::Network, format!("{happened}. Start the server, or check the profile's base URL."), true)
    }

    /// What a provider says may repeat the key it did not like.
    fn without_key(&self, text: &str) -> String {
        match &self.config.key {
            Some(key) if key.expose_secret().trim().len() >= KEY_BYTES_MIN => text.replace(key.expose_secret().trim(), "<key>"),
            Some(_) | None => text.to_owned(),
        }
    }

    fn dialect(&self) -> std::sync::MutexGuard<'_, Dialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelProvider for OpenAi {
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        self.exchange(request, deltas).await.map_err(|mut error| {
            error.failure.message = self.without_key(&error.failure.message);
            error
        })
    }

    fn model(&self) -> &str {
        &self.config.model
    }

    fn prompt_tokens_max(&self) -> u32 {
        let context_tokens = self.config.context_tokens;
        let reserved = self.config.output_tokens_max.unwrap_or(context_tokens / 4).min(RESERVED_TOKENS_MAX);
        context_tokens.saturating_sub(reserved)
    }
}

/// An answer whose status is no success.
struct BadAnswer {
    status: u16,
    retry_after: Option<Duration>,
    request_id: Option<String>,
    location: Option<String>,
    words: Words,
}

impl BadAnswer {
    async fn read(mut response: Response) -> Self {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let request_id = header("x-request-id").or_else(|| header("request-id"));
        let location = header("location");
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let mut body = Vec::new();
        // A body that breaks off still says something.
        while body.len() < ERROR_BODY_BYTES_MAX
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
        Self { status, retry_after, request_id, location, words: Words::of_body(&String::from_utf8_lossy(&body)) }
    }

    /// Whether another body may be taken where this one was not. A server in front of others says 404 when none of them
    /// knows a parameter.
    fn is_about_the_body(&self) -> bool {
        matches!(self.status, 400 | 404 | 422)
    }

    fn failure(&self, url: &str) -> ModelError {
        let mut happened = format!("{url} answered {}", self.status);
        if let Some(id) = &self.request_id {
            happened = format!("{happened} (request {id})");
        }
        if let Some(location) = &self.location {
            happened = format!("{happened} and points to {location}");
        }
        self.words.failure(&happened, Some(self.status), self.retry_after)
    }
}

/// Reads how long a server asks us to wait: in milliseconds, in seconds, or until a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let number = |value: &HeaderValue| value.to_str().ok()?.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    if let Some(millis) = headers.get("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = headers.get(RETRY_AFTER)?;
    match number(value) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let date = httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        }
    }
}

fn client(endpoint: &Endpoint, silence_max: Duration) -> Result<Client, SetupError> {
    static CRYPTO: OnceLock<()> = OnceLock::new();
    CRYPTO.get_or_init(|| {
        // Fails where the program has installed one already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
    let failed = |error: reqwest::Error| SetupError::Client { url: endpoint.shown(), cause: cause(&error) };
    // The system's certificates and the usual ones besides: a small container has none of its own, a company has more.
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|certificate| Certificate::from_der(certificate));
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(silence_max)
        .retry(reqwest::retry::never())
        // A redirected POST becomes a GET; and the key is for this server alone.
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_merge(roots.collect::<Result<Vec<_>, _>>().map_err(failed)?);
    let builder = if endpoint.is_loopback() { builder.no_proxy() } else { builder };
    builder.build().map_err(failed)
}

/// The innermost cause: the outer ones say only that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use reqwest::header::HeaderMap;

    use super::{OpenAi, OpenAiConfig, retry_after};
    use quire_runtime::ports::ModelProvider;

    #[test]
    fn retry_after_is_read_in_each_of_its_forms() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let read = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            retry_after(&headers, now)
        };
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after", "soon"), None);
        assert_eq!(read("retry-after", "-1"), None);
    }

    #[test]
    fn the_prompt_leaves_room_for_the_reply() {
        let room = |context_tokens, output_tokens_max| {
            let config = OpenAiConfig { output_tokens_max, ..OpenAiConfig::new("http://localhost", "m", context_tokens) };
            OpenAi::new(config).expect("a provider").prompt_tokens_max()
        };
        assert_eq!(room(8_000, None), 6_000);
        assert_eq!(room(128_000, None), 119_808);
        assert_eq!(room(8_000, Some(1_000)), 7_000);
        assert_eq!(room(1_000, Some(4_000)), 0);
    }
}
