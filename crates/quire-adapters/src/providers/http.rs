//! How a provider's server is reached: its address, its key, one attempt at a time, and what its refusals teach us.
//!
//! One request is one attempt: what happens after a failure is the driver's to decide. The one exception is a server that
//! refuses a part of the body before it has begun: it is asked once more without that part, and so from then on
//! ([`Learns`]). The key is in no message, log or debug output.
//!
//! Not here: what the bodies hold and what the answers mean.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use futures::{Stream, StreamExt};
use quire_core::message::FailureKind;
use quire_runtime::ports::ModelError;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::stream::{Interruption, failed, humane};
use super::words::Words;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// The most that is read of an answer which is no reply of a model: lists of models are long.
const DOCUMENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The least length of a key worth looking for in messages; a shorter one is a placeholder and may be a common word.
const KEY_BYTES_MIN: usize = 8;

/// Why a provider cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// `localhost:1234` instead of `http://localhost:1234`.
    #[error("the base URL `{given}` has no scheme; write `http://{given}` for a server nearby, `https://{given}` for any other")]
    NoScheme {
        /// What was written.
        given: String,
    },
    /// Another protocol.
    #[error("the base URL `{given}` begins with `{scheme}:`; it must begin with `http:` or `https:`")]
    OtherScheme {
        /// What was written.
        given: String,
        /// Its scheme.
        scheme: String,
    },
    /// Not a URL.
    #[error("the base URL `{given}` cannot be read ({cause}); it should look like `https://api.example.com/v1`")]
    Unreadable {
        /// What was written.
        given: String,
        /// What the reader of URLs says.
        cause: String,
    },
    /// A key with line breaks or other control characters in it.
    #[error("the key for `{url}` holds characters that cannot be sent; copy it again")]
    Key {
        /// The server it is for.
        url: String,
    },
    /// The client for HTTPS could not be made.
    #[error("the connection to `{url}` cannot be prepared: {cause}")]
    Client {
        /// The server it is for.
        url: String,
        /// What the client says.
        cause: String,
    },
}

/// Where a provider's routes begin, version included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseUrl(Url);

impl BaseUrl {
    /// Reads a base URL: with or without version, with or without the `route` that is asked for, with or without a slash at
    /// its end. `version` is added where there is none.
    pub(super) fn parse(given: &str, version: &str, route: &str) -> Result<Self, SetupError> {
        let given = given.trim();
        if given.is_empty() {
            return Err(SetupError::Unreadable { given: String::new(), cause: "it is empty".to_owned() });
        }
        if !given.contains("://") {
            return Err(SetupError::NoScheme { given: given.to_owned() });
        }
        let mut url =
            Url::parse(given).map_err(|error| SetupError::Unreadable { given: given.to_owned(), cause: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SetupError::OtherScheme { given: given.to_owned(), scheme: url.scheme().to_owned() });
        }
        let path = url.path().trim_end_matches('/');
        let path = match path.strip_suffix(route) {
            Some(base) => base.trim_end_matches('/').to_owned(),
            None if path.split('/').any(is_version) => path.to_owned(),
            None => format!("{path}/{version}"),
        };
        url.set_path(&path);
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The URL of a route below it.
    pub(super) fn route(&self, route: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{route}", self.0.path().trim_end_matches('/')));
        url
    }

    /// The URL of a path beside the version: `/api/show` of a server whose base ends in `/v1`.
    pub(super) fn beside(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let parts: Vec<&str> = self.0.path().trim_end_matches('/').split('/').take_while(|part| !is_version(part)).collect();
        url.set_path(&format!("{}{path}", parts.join("/")));
        url.set_query(None);
        url
    }

    /// Whether the server is on this machine, so that no proxy can stand in between.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let is_local_name = host == "localhost" || host.ends_with(".localhost");
        is_local_name || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    }
}

/// A URL as it may be shown: no user, password or query, each of which may be a secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Fails only for URLs without a host, which `http` and `https` never are.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.into()
}

/// `v1`, `v4`, `v1beta`: not every provider's is the first.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The header in which a wire carries its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHeader {
    /// `Authorization: Bearer …`.
    Bearer,
    /// The key alone, under this name.
    Named(&'static str),
}

impl KeyHeader {
    /// The header; none for an empty key.
    fn carrying(self, key: &SecretString, url: &Url) -> Result<Option<(HeaderName, HeaderValue)>, SetupError> {
        let key = key.expose_secret().trim();
        if key.is_empty() {
            return Ok(None);
        }
        let (name, value) = match self {
            Self::Bearer => (reqwest::header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}"))),
            Self::Named(name) => (HeaderName::from_static(name), HeaderValue::from_str(key)),
        };
        let mut value = value.map_err(|_| SetupError::Key { url: shown(url) })?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

/// What a wire learns from a refusal.
pub(super) trait Learns: Clone {
    /// Takes a refusal of `body` and returns how to ask instead; `None` where it is about nothing that could be left out.
    fn after(&self, words: &Words, body: &Value) -> Option<Self>;
}

/// What a [`Server`] is made of.
pub(super) struct ServerConfig<'a> {
    pub(super) base_url: &'a BaseUrl,
    /// The URL that is asked for replies.
    pub(super) target: Url,
    pub(super) key: Option<&'a SecretString>,
    pub(super) key_header: KeyHeader,
    /// Further headers, the same for each request.
    pub(super) headers: &'a [(&'static str, &'static str)],
    pub(super) silence_max: Duration,
}

/// A provider's server, with the key to it.
#[derive(Debug)]
pub(super) struct Server {
    target: Url,
    key: Option<SecretString>,
    headers: HeaderMap,
    client: Client,
    silence_max: Duration,
}

impl Server {
    /// Prepares the connection; sends nothing.
    pub(super) fn new(config: ServerConfig<'_>) -> Result<Self, SetupError> {
        let ServerConfig { base_url, target, key, key_header, headers, silence_max } = config;
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some((name, value)) = key.map(|key| key_header.carrying(key, &target)).transpose()?.flatten() {
            all.insert(name, value);
        }
        let client = client(&target, base_url.is_loopback(), silence_max)?;
        Ok(Self { target, key: key.cloned(), headers: all, client, silence_max })
    }

    /// Its name in messages.
    pub(super) fn shown(&self) -> String {
        shown(&self.target)
    }

    /// Asks with the body that `build` makes, until one is taken that the server did not refuse for a part of it.
    pub(super) async fn exchange<D: Learns>(
        &self,
        learnt: &Mutex<D>,
        build: impl Fn(&D) -> Value,
    ) -> Result<Response, ModelError> {
        let mut dialect = lock(learnt).clone();
        let mut body = build(&dialect);
        let mut refused = Vec::new();
        loop {
            let request = self.client.post(self.target.clone()).json(&body);
            let response = self.send(request, &self.target).await?;
            if response.status().is_success() {
                *lock(learnt) = dialect;
                return Ok(response);
            }
            let answer = BadAnswer::read(response).await;
            let next = dialect.after(&answer.words, &body).filter(|_| answer.is_about_the_body());
            refused.push(body);
            // Each body is tried once: what changes nothing, or leads back, is not tried again.
            let other = next.map(|next| (build(&next), next));
            let Some((next_body, next)) = other.filter(|(next_body, _)| !refused.contains(next_body)) else {
                return Err(self.safe(answer.failure(&self.shown())));
            };
            let said = self.without_key(&answer.words.text);
            tracing::warn!(server = %self.shown(), %said, "a parameter was refused; asking once more without it");
            (body, dialect) = (next_body, next);
        }
    }

    /// Reads one JSON document from a route that is not the model's: a list of models, a server's settings.
    pub(super) async fn document(&self, url: &Url, body: Option<&Value>) -> Result<Value, ModelError> {
        let request = match body {
            Some(body) => self.client.post(url.clone()).json(body),
            None => self.client.get(url.clone()),
        };
        let mut response = self.send(request, url).await?;
        if !response.status().is_success() {
            return Err(self.safe(BadAnswer::read(response).await.failure(&shown(url))));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreached(&error.without_url(), url))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > DOCUMENT_BYTES_MAX {
                break;
            }
        }
        serde_json::from_slice(&bytes).map_err(|_| {
            let said = super::words::readable(&String::from_utf8_lossy(&bytes));
            let message =
                format!("{} answered with something that is no JSON: {said}. Check the profile's base URL.", shown(url));
            self.safe(failed(FailureKind::Setup, message, false))
        })
    }

    /// The bytes of an answer as they come.
    pub(super) fn bytes(&self, response: Response) -> impl Stream<Item = Result<impl AsRef<[u8]> + use<>, Interruption>> + use<> {
        let silence_max = self.silence_max;
        response.bytes_stream().map(move |chunk| {
            chunk.map_err(|error| match error.is_timeout() {
                true => Interruption::Stalled(silence_max),
                false => Interruption::Broken { cause: cause(&error.without_url()) },
            })
        })
    }

    async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Response, ModelError> {
        let request = request.headers(self.headers.clone()).header(ACCEPT, "text/event-stream, application/json");
        request.send().await.map_err(|error| self.unreached(&error.without_url(), url))
    }

    fn unreached(&self, error: &reqwest::Error, url: &Url) -> ModelError {
        let url = shown(url);
        let happened = match (error.is_connect(), error.is_timeout()) {
            (true, true) => format!("{url} cannot be reached: no connection within {}", humane(CONNECT_TIMEOUT)),
            (true, false) => format!("{url} cannot be reached: {}", cause(error)),
            (false, true) => {
                let silence = humane(self.silence_max);
                let message =
                    format!("{url} took the request and sent nothing for {silence}. Try again, or give the profile more time.");
                return failed(FailureKind::Network, message, true);
            }
            (false, false) => format!("the connection to {url} broke before the answer: {}", cause(error)),
        };
        failed(FailureKind::Network, format!("{happened}. Start the server, or check the profile's base URL."), true)
    }

    /// A failure whose words do not hold the key: what a provider says may repeat the one it did not like.
    pub(super) fn safe(&self, mut error: ModelError) -> ModelError {
        error.failure.message = self.without_key(&error.failure.message);
        error
    }

    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) if key.expose_secret().trim().len() >= KEY_BYTES_MIN => text.replace(key.expose_secret().trim(), "<key>"),
            Some(_) | None => text.to_owned(),
        }
    }
}

/// What was learnt stays right, even if a thread that read it died.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

fn client(url: &Url, is_loopback: bool, silence_max: Duration) -> Result<Client, SetupError> {
    static CRYPTO: OnceLock<()> = OnceLock::new();
    CRYPTO.get_or_init(|| {
        // Fails where the program has installed one already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
    let failed = |error: reqwest::Error| SetupError::Client { url: shown(url), cause: cause(&error) };
    // The system's certificates and the usual ones besides: a small container has none of its own, a company has more.
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|certificate| Certificate::from_der(certificate));
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(silence_max)
        .retry(reqwest::retry::never())
        // A redirected POST becomes a GET; and the key is for this server alone.
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_merge(roots.collect::<Result<Vec<_>, _>>().map_err(failed)?);
    let builder = if is_loopback { builder.no_proxy() } else { builder };
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
    use expect_test::expect;

    use super::{BaseUrl, retry_after, shown};
    use reqwest::header::HeaderMap;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_base_url_may_be_written_in_many_ways() {
        let given = [
            "http://localhost:11434",
            "http://localhost:11434/",
            " https://api.example.com/v1 ",
            "https://api.example.com/v1/",
            "https://api.example.com/v1/chat/completions",
            "https://api.example.com/v1/chat/completions/",
            "https://api.example.com/openai",
            "https://api.example.com/v1beta/openai/",
            "https://api.example.com/api/paas/v4",
            "https://name:secret@api.example.com/deployments/m/chat/completions?api-version=1&key=secret",
            "http://[::1]:8080",
            "localhost:1234/v1",
            "ftp://localhost",
            "http://",
            "",
        ];
        let shown: String = given
            .into_iter()
            .map(|given| match BaseUrl::parse(given, "v1", "/chat/completions") {
                Ok(base) => {
                    format!("{}{}\n", shown(&base.route("chat/completions")), if base.is_loopback() { " (here)" } else { "" })
                }
                Err(error) => format!("{error}\n"),
            })
            .collect();
        expect![[r#"
            http://localhost:11434/v1/chat/completions (here)
            http://localhost:11434/v1/chat/completions (here)
            https://api.example.com/v1/chat/completions
            https://api.example.com/v1/chat/completions
            https://api.example.com/v1/chat/completions
            https://api.example.com/v1/chat/completions
            https://api.example.com/openai/v1/chat/completions
            https://api.example.com/v1beta/openai/chat/completions
            https://api.example.com/api/paas/v4/chat/completions
            https://api.example.com/deployments/m/chat/completions
            http://[::1]:8080/v1/chat/completions (here)
            the base URL `localhost:1234/v1` has no scheme; write `http://localhost:1234/v1` for a server nearby, `https://localhost:1234/v1` for any other
            the base URL `ftp://localhost` begins with `ftp:`; it must begin with `http:` or `https:`
            the base URL `http://` cannot be read (empty host); it should look like `https://api.example.com/v1`
            the base URL `` cannot be read (it is empty); it should look like `https://api.example.com/v1`
        "#]].assert_eq(&shown);
    }

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
}
