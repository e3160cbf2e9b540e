//! What a provider says when it does not do as asked, and what that means for us.
//!
//! Providers agree on no shape: an `error` object, an `error` string, a `detail` list, a web page of a proxy in between.
//! [`Words`] keeps what a person can read, and [`Words::failure`] says in one place which kind of failure it is.

use std::time::Duration;

use quire_core::message::{Failure, FailureKind};
use quire_runtime::ports::ModelError;
use serde_json::Value;

const EXCERPT_CHARS_MAX: usize = 300;

/// A provider's own words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Words {
    /// What a person reads; empty where nothing was said.
    pub(super) text: String,
    /// The parameter it is about, where the provider names one.
    pub(super) param: Option<String>,
    /// `code` and `type`, in lower case.
    codes: Vec<String>,
    /// An HTTP status named in the words themselves.
    status: Option<u16>,
    /// How long the provider asks us to wait, where its words say so.
    retry_after: Option<Duration>,
}

impl Words {
    /// Reads the body of an answer whose status is already bad.
    pub(super) fn of_body(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::of_error(&value).unwrap_or_else(|| Self::of_fields(&value)),
            Err(_) => Self { text: readable(body), ..Self::default() },
        }
    }

    /// Reads a document that may be an error; `None` where it is none.
    pub(super) fn of_error(value: &Value) -> Option<Self> {
        if let Value::Array(list) = value {
            return list.first().and_then(Self::of_error);
        }
        match value.get("error") {
            Some(Value::String(text)) if !text.is_empty() => return Some(Self { text: excerpt(text), ..Self::default() }),
            Some(error @ Value::Object(fields)) if !fields.is_empty() => return Some(Self::of_fields(error)),
            _ => {}
        }
        let is_marked = value.get("object").or(value.get("type")).is_some_and(|mark| mark == "error");
        let has_detail = value.get("detail").is_some() && value.get("choices").is_none();
        (is_marked || has_detail).then(|| Self::of_fields(value))
    }

    /// Reads an error's own fields.
    pub(super) fn of_fields(error: &Value) -> Self {
        let said = error.get("message").or(error.get("msg")).or(error.get("detail"));
        let mut text = match said {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(details)) => details.iter().map(detail).collect::<Vec<_>>().join("; "),
            Some(Value::Null) | None if error.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
            Some(Value::Null) | None => error.to_string(),
            Some(other) => other.to_string(),
        };
        // A provider in front of providers says only that the one behind it failed, and keeps its words here.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            text = format!("{text} ({raw})");
        }
        let code = error.get("code");
        let codes = [code, error.get("type"), error.get("status")]
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_lowercase)
            .collect();
        let status = code
            .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code));
        let param = error.get("param").and_then(Value::as_str).filter(|param| !param.is_empty()).map(str::to_owned);
        let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
        let retry_after = details.filter_map(|detail| detail.get("retryDelay")?.as_str()).find_map(seconds);
        Self { text: excerpt(&text), param, codes, status, retry_after }
    }

    /// Judges what the words and the status mean. `happened` begins the message: who did what.
    pub(super) fn failure(&self, happened: &str, status: Option<u16>, retry_after: Option<Duration>) -> ModelError {
        let (kind, may_retry, advice) = self.judge(status.or(self.status));
        let said = if self.text.is_empty() { "without a word" } else { &self.text };
        let stop = if said.ends_with(['.', '!', '?', '。', '！', '？', '…']) { "" } else { "." };
        ModelError {
            failure: Failure { kind, message: format!("{happened}: {said}{stop} {advice}") },
            may_retry,
            retry_after: retry_after.or(self.retry_after).filter(|_| may_retry),
        }
    }

    fn judge(&self, status: Option<u16>) -> (FailureKind, bool, &'static str) {
        if self.says_no_room() || status == Some(413) {
            return (FailureKind::NoRoom, false, "Use a model with a larger context, or correct the profile's context size.");
        }
        if self.codes.iter().any(|code| code.contains("content_filter") || code.contains("content_policy")) {
            return (FailureKind::Refused, false, "Reword what is asked, or use another model.");
        }
        if status == Some(402) || self.codes.iter().any(|code| code == "insufficient_quota") || self.says("credit balance") {
            return (FailureKind::Rejected, false, "Check the account's balance at the provider.");
        }
        if self.says("api key not valid") {
            return (FailureKind::Setup, false, "Check the profile's key, or give it one.");
        }
        match status.or_else(|| self.status_of_codes()) {
            Some(401 | 403) => (FailureKind::Setup, false, "Check the profile's key, or give it one."),
            Some(300..=399 | 404 | 405 | 410) => (FailureKind::Setup, false, "Check the profile's model name and base URL."),
            Some(408 | 409 | 425 | 429 | 500..) => (FailureKind::Unavailable, true, "Try again later, or use another profile."),
            Some(_) => (FailureKind::Rejected, false, "Check the profile, or use another one."),
            None if self.codes.iter().any(|code| code.contains("invalid")) => {
                (FailureKind::Rejected, false, "Check the profile, or use another one.")
            }
            None => (FailureKind::Unavailable, true, "Try again, or use another profile."),
        }
    }

    /// The status that a code stands for where an error comes without one, in the middle of a stream.
    fn status_of_codes(&self) -> Option<u16> {
        self.codes.iter().find_map(|code| match code.as_str() {
            "authentication_error" | "unauthenticated" => Some(401),
            "permission_error" | "permission_denied" => Some(403),
            "not_found_error" | "not_found" => Some(404),
            "request_too_large" => Some(413),
            "rate_limit_error" | "resource_exhausted" => Some(429),
            "overloaded_error" | "unavailable" => Some(529),
            _ => None,
        })
    }

    fn says(&self, words: &str) -> bool {
        self.text.to_lowercase().contains(words)
    }

    fn says_no_room(&self) -> bool {
        let text = self.text.to_lowercase();
        let is_coded = self.codes.iter().any(|code| code.contains("context_length") || code.contains("exceed_context_size"));
        let is_worded = [
            "context length",
            "context window",
            "context size",
            "context limit",
            "prompt is too long",
            "input is too long",
            "input token count",
        ]
        .iter()
        .any(|words| text.contains(words));
        is_coded || is_worded
    }
}

/// `38s`, `1.5s`.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().strip_suffix('s')?.parse().ok()?).ok()
}

/// A validator's finding without the input it repeats, which would name every parameter there is.
fn detail(detail: &Value) -> String {
    let said = detail.get("msg").or(detail.get("message")).unwrap_or(detail);
    let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    match detail.get("loc").and_then(Value::as_array) {
        Some(path) => {
            let path: Vec<String> =
                path.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
            format!("{}: {said}", path.join("."))
        }
        None => said,
    }
}

/// Makes a few readable words of any body: a web page gives its title.
pub(super) fn readable(body: &str) -> String {
    if !body.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        return excerpt(body);
    }
    match between(body, "<title", "</title>").and_then(|title| title.split_once('>')) {
        Some((_, title)) if !title.trim().is_empty() => format!("a web page, “{}”", excerpt(title)),
        _ => format!("a web page, “{}”", excerpt(&without_tags(body))),
    }
}

/// Finds ASCII marks in any case; lower-casing ASCII moves no byte.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase();
    let from = lower.find(start)? + start.len();
    let length = lower.get(from..)?.find(end)?;
    text.get(from..from + length)
}

fn without_tags(page: &str) -> String {
    page.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect::<Vec<_>>().join(" ")
}

/// Puts a text on one line and cuts it to a length a person reads.
pub(super) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.split_at_checked(end).map_or(line.as_str(), |(head, _)| head)),
        None => line,
    }
}
