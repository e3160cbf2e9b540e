//! Where a server takes chat completions, from what a person wrote as its base URL.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

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

/// The URL that takes chat completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint(Url);

impl Endpoint {
    /// Reads a base URL: with or without version, with or without `/chat/completions`, with or without a slash at its end.
    pub(super) fn parse(given: &str) -> Result<Self, SetupError> {
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
        let path = match path.strip_suffix("/chat/completions") {
            Some(base) => format!("{base}/chat/completions"),
            None if path.split('/').any(is_version) => format!("{path}/chat/completions"),
            None => format!("{path}/v1/chat/completions"),
        };
        url.set_path(&path);
        url.set_fragment(None);
        Ok(Self(url))
    }

    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    /// The URL as it may be shown: no user, password or query, each of which may be a secret.
    pub(super) fn shown(&self) -> String {
        let mut url = self.0.clone();
        url.set_query(None);
        // Fails only for URLs without a host, which `http` and `https` never are.
        url.set_username("").ok();
        url.set_password(None).ok();
        url.into()
    }

    /// Whether the server is on this machine, so that no proxy can stand in between.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let is_local_name = host == "localhost" || host.ends_with(".localhost");
        is_local_name || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    }

    /// The header that carries the key; none for an empty key.
    pub(super) fn authorization(&self, key: &SecretString) -> Result<Option<HeaderValue>, SetupError> {
        let key = key.expose_secret().trim();
        if key.is_empty() {
            return Ok(None);
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| SetupError::Key { url: self.shown() })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// `v1`, `v4`, `v1beta`: not every provider's is the first.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::Endpoint;

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
            .map(|given| match Endpoint::parse(given) {
                Ok(endpoint) => format!("{}{}\n", endpoint.shown(), if endpoint.is_loopback() { " (here)" } else { "" }),
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
}
