//! From the bytes of an answer to a [`Reply`]: the one path for streamed and whole answers of every wire.
//!
//! Where the bytes are cut makes no difference. A reply is given only when the server said that it is complete: by the
//! reason of its end, by an end mark, or by sending one whole document. All else is a failure, though what came before it
//! has been passed on as deltas.
//!
//! What the documents mean is each wire's own, behind [`Assemble`].

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use quire_core::message::{Failure, FailureKind, Reply};
use quire_runtime::ports::ModelError;
use serde_json::{Deserializer, Value};

use super::sse::{Frame, Frames};
use super::words::{self, Words};

/// How long a server may take for what follows the reason of the end: usage and an end mark, both of which may never come.
const AFTER_FINISH: Duration = Duration::from_secs(15);

/// Why bytes stopped coming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption {
    /// The connection broke.
    Broken {
        /// What the transport says.
        cause: String,
    },
    /// The connection stands, and nothing came for this long.
    Stalled(Duration),
}

/// Puts a reply together from the documents of one wire.
pub(super) trait Assemble {
    /// Takes one document: a piece of a reply, a whole one, or something that is neither.
    fn take(&mut self, document: &Value);

    /// Gives out what was held back to see what follows.
    fn flush(&mut self);

    /// Whether something has come that this wire's replies are made of.
    fn has_begun(&self) -> bool;

    /// Whether the server has said why the reply ends.
    fn is_finished(&self) -> bool;

    /// Whether the server has said that nothing follows.
    fn is_ended(&self) -> bool;

    /// Whether a whole reply came in one document.
    fn is_whole_message(&self) -> bool;

    /// Whether there is anything to keep.
    fn has_said_something(&self) -> bool;

    /// The words in which the model or its provider refused, where one did.
    fn refusal(&self) -> Option<String>;

    /// Gives the reply as far as it came.
    fn into_reply(self) -> Reply;
}

/// Reads an answer with a good status to its end and passes on what comes.
///
/// `server` is its name in messages.
///
/// # Errors
/// [`FailureKind::Network`] when bytes stop coming, [`FailureKind::Cut`] when they end too early, and what the provider's
/// own words mean when an error comes instead of a reply.
pub(super) async fn read_reply<B: AsRef<[u8]>>(
    server: &str,
    bytes: impl Stream<Item = Result<B, Interruption>>,
    assembly: impl Assemble,
) -> Result<Reply, ModelError> {
    let mut bytes = pin!(bytes);
    let mut frames = Frames::default();
    let mut reading = Reading { server, assembly, is_marked_done: false, stray: String::new() };
    loop {
        let next = match reading.assembly.is_finished() {
            true => tokio::time::timeout(AFTER_FINISH, bytes.next()).await.unwrap_or(None),
            false => bytes.next().await,
        };
        match next {
            Some(Ok(chunk)) => {
                for frame in frames.push(chunk.as_ref()) {
                    reading.take(frame)?;
                }
                if reading.is_marked_done {
                    return reading.end(None);
                }
            }
            Some(Err(interruption)) => return reading.end(Some(interruption)),
            None => {
                if let Some(frame) = frames.rest() {
                    reading.take(frame)?;
                }
                return reading.end(None);
            }
        }
    }
}

struct Reading<'a, A> {
    server: &'a str,
    assembly: A,
    is_marked_done: bool,
    /// The last thing that was said outside the protocol: perhaps the reason of what follows.
    stray: String,
}

impl<A: Assemble> Reading<'_, A> {
    fn take(&mut self, frame: Frame) -> Result<(), ModelError> {
        match frame {
            Frame::Stray(line) => self.stray = words::excerpt(&line),
            Frame::Event { is_error, data } => self.take_documents(&data, is_error)?,
            Frame::Document(document) => {
                if document.starts_with('<') {
                    return Err(self.not_a_completion(&words::readable(&document)));
                }
                self.take_documents(&document, false)?;
                if !self.assembly.has_begun() {
                    return Err(self.not_a_completion(&words::excerpt(&document)));
                }
                // Whole is whole, `finish_reason` or not.
                self.is_marked_done |= self.assembly.is_whole_message();
            }
        }
        Ok(())
    }

    /// Takes the documents in an event's data: one, or several where a server forgets the blank lines.
    fn take_documents(&mut self, data: &str, is_error: bool) -> Result<(), ModelError> {
        let mut rest = data.trim();
        while !rest.is_empty() && !self.is_marked_done {
            if let Some(after) = rest.strip_prefix("[DONE]") {
                self.is_marked_done = true;
                rest = after;
                continue;
            }
            let mut documents = Deserializer::from_str(rest).into_iter::<Value>();
            match documents.next() {
                Some(Ok(document)) => {
                    self.take_document(&document, is_error)?;
                    rest = rest.get(documents.byte_offset()..).unwrap_or_default().trim_start();
                }
                Some(Err(_)) | None => return self.take_broken(rest),
            }
        }
        Ok(())
    }

    fn take_document(&mut self, document: &Value, is_error: bool) -> Result<(), ModelError> {
        if let Value::Array(documents) = document {
            return documents.iter().try_for_each(|document| self.take_document(document, is_error));
        }
        let error = Words::of_error(document).or_else(|| is_error.then(|| Words::of_fields(document)));
        match error {
            Some(words) => Err(words.failure(&format!("{} sent an error instead of a reply", self.server), None, None)),
            None => {
                self.assembly.take(document);
                self.is_marked_done |= self.assembly.is_ended();
                Ok(())
            }
        }
    }

    fn take_broken(&mut self, data: &str) -> Result<(), ModelError> {
        let is_cut_document = data.starts_with(['{', '[']);
        if is_cut_document && !self.assembly.is_finished() {
            return Err(cut(format!("{} broke off in the middle of the reply", self.server)));
        }
        self.stray = words::excerpt(data);
        Ok(())
    }

    fn end(mut self, interruption: Option<Interruption>) -> Result<Reply, ModelError> {
        let server = self.server;
        self.assembly.flush();
        if let Some(refusal) = self.assembly.refusal() {
            let message = format!("the model refused: {} Reword what is asked, or use another model.", words::excerpt(&refusal));
            return Err(failed(FailureKind::Refused, message, false));
        }
        let is_complete = self.assembly.is_finished() || (self.is_marked_done && self.assembly.has_said_something());
        if is_complete {
            return Ok(self.assembly.into_reply());
        }
        Err(match interruption {
            Some(Interruption::Broken { cause }) => failed(
                FailureKind::Network,
                format!("the connection to {server} broke before the reply was complete: {cause}. Try again."),
                true,
            ),
            Some(Interruption::Stalled(silence)) => {
                let silence = humane(silence);
                failed(
                    FailureKind::Network,
                    format!(
                        "{server} sent nothing for {silence} and the reply is not complete. Try again, or give the profile more time."
                    ),
                    true,
                )
            }
            None if !self.stray.is_empty() => {
                cut(format!("{server} ended the reply without its end mark, and the last it said was “{}”", self.stray))
            }
            None if self.assembly.has_said_something() => cut(format!("{server} ended the reply without its end mark")),
            None => cut(format!("{server} ended the reply without having said anything")),
        })
    }

    fn not_a_completion(&self, what: &str) -> ModelError {
        let message =
            format!("{} answered with something that is no reply of a model: {what}. Check the profile's base URL.", self.server);
        failed(FailureKind::Setup, message, false)
    }
}

fn cut(happened: String) -> ModelError {
    failed(FailureKind::Cut, format!("{happened}. Try again."), true)
}

pub(super) fn failed(kind: FailureKind, message: String, may_retry: bool) -> ModelError {
    ModelError { failure: Failure { kind, message }, may_retry, retry_after: None }
}

/// A duration as a person says it.
pub(super) fn humane(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds => format!("{seconds} s"),
    }
}
