//! A server on loopback that speaks a provider's wire as its test tells it to, faults and all.
//!
//! It is strict: a body that the real servers would refuse ([`Wire::complaint`]) is answered by 400 with the reason, so a
//! test fails where a user's session would. What it answers comes from [`FakeModel::reply`], one after another, then from
//! [`FakeModel::script`]; with neither it says `ok`.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri, header};
use futures::{Stream, StreamExt, stream};
use quire_core::message::{Finish, Reply, ToolCall};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{fake_anthropic, fake_gemini, fake_openai};

/// What the server answers to one request.
#[derive(Debug, Clone)]
pub struct FakeReply {
    status: u16,
    headers: Vec<(String, String)>,
    body: FakeBody,
    end: FakeEnd,
}

#[derive(Debug, Clone)]
enum FakeBody {
    /// A completion, streamed or whole as the request wants it.
    Completion(Completion),
    /// Bytes as they are, cut as they are.
    Chunks(Vec<Vec<u8>>),
}

/// What a model says, in no wire's words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Completion {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// What the provider wants back with the reasoning; empty where it wants nothing.
    pub(crate) signature: String,
    pub(crate) calls: Vec<ToolCall>,
    /// Whether it hit a limit of length.
    pub(crate) is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FakeEnd {
    Clean,
    Hang,
    Drop,
}

impl FakeReply {
    /// Says a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::completion(Completion { text: text.into(), ..Completion::default() })
    }

    /// Calls one tool.
    pub fn call(name: impl Into<String>, arguments: &Value) -> Self {
        Self::calls([(name.into(), arguments.to_string())])
    }

    /// Calls tools, each by its name and its arguments as the model would write them.
    pub fn calls(calls: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let calls = calls.into_iter().enumerate().map(|(index, (name, arguments))| {
            let arguments: String = arguments.into();
            ToolCall { id: format!("call_{index}"), name: name.into(), arguments: arguments.into() }
        });
        Self::completion(Completion { calls: calls.collect(), ..Completion::default() })
    }

    /// Says what a reply says, with its ids; its finish only as far as it was cut.
    pub fn reply(reply: &Reply) -> Self {
        Self::completion(Completion {
            text: reply.text.to_string(),
            reasoning: reply.reasoning.to_string(),
            signature: String::new(),
            calls: reply.calls.clone(),
            is_cut: reply.finish == Finish::Length,
        })
    }

    /// Sends chunks of a body as they are, with status 200 as `text/event-stream`.
    pub fn chunks(chunks: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let body = FakeBody::Chunks(chunks.into_iter().map(Into::into).collect());
        Self { status: 200, headers: Vec::new(), body, end: FakeEnd::Clean }.header("content-type", "text/event-stream")
    }

    /// Answers with a status and a JSON body.
    pub fn status(status: u16, body: &Value) -> Self {
        Self { status, ..Self::chunks([body.to_string()]) }.header("content-type", "application/json")
    }

    /// Answers with OpenAI's shape of an error about a parameter.
    pub fn refused_parameter(param: &str, message: &str) -> Self {
        Self::status(400, &json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": null}}))
    }

    /// Answers with another status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds reasoning in front of the text.
    pub fn with_reasoning(mut self, thought: impl Into<String>) -> Self {
        if let FakeBody::Completion(completion) = &mut self.body {
            completion.reasoning = thought.into();
        }
        self
    }

    /// Signs the reasoning, so that it is wanted back.
    pub fn with_signature(mut self, signature: impl Into<String>) -> Self {
        if let FakeBody::Completion(completion) = &mut self.body {
            completion.signature = signature.into();
        }
        self
    }

    /// Sets a header, in place of the one of that name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// After the last chunk: keeps the connection open and says no more.
    pub fn then_hang(self) -> Self {
        Self { end: FakeEnd::Hang, ..self }
    }

    /// After the last chunk: breaks the connection.
    pub fn then_drop(self) -> Self {
        Self { end: FakeEnd::Drop, ..self }
    }

    fn completion(completion: Completion) -> Self {
        Self { status: 200, headers: Vec::new(), body: FakeBody::Completion(completion), end: FakeEnd::Clean }
    }
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions of OpenAI.
    OpenAi,
    /// Messages of Anthropic.
    Anthropic,
    /// Contents of Gemini.
    Gemini,
}

impl Wire {
    fn answers(self, path: &str) -> bool {
        match self {
            Self::OpenAi => path == "/v1/chat/completions",
            Self::Anthropic => path == "/v1/messages",
            Self::Gemini => path.starts_with("/v1beta/models/") && path.ends_with(":streamGenerateContent"),
        }
    }

    /// Says what the real servers would refuse in a request's body; `None` where nothing.
    pub fn complaint(self, request: &Value) -> Option<String> {
        match self {
            Self::OpenAi => fake_openai::complaint(request),
            Self::Anthropic => fake_anthropic::complaint(request),
            Self::Gemini => fake_gemini::complaint(request),
        }
    }

    fn refusal(self, complaint: &str) -> FakeReply {
        match self {
            Self::OpenAi => FakeReply::refused_parameter("messages", complaint),
            Self::Anthropic => FakeReply::status(
                400,
                &json!({"type": "error", "error": {"type": "invalid_request_error", "message": complaint}}),
            ),
            Self::Gemini => {
                FakeReply::status(400, &json!({"error": {"code": 400, "message": complaint, "status": "INVALID_ARGUMENT"}}))
            }
        }
    }

    fn body(self, completion: &Completion, is_stream: bool) -> (Vec<String>, &'static str) {
        let events = "text/event-stream";
        match (self, is_stream) {
            (Self::OpenAi, true) => (fake_openai::streamed(completion).collect(), events),
            (Self::OpenAi, false) => (vec![fake_openai::whole(completion).to_string()], "application/json"),
            (Self::Anthropic, true) => (fake_anthropic::streamed(completion), events),
            (Self::Anthropic, false) => (vec![fake_anthropic::whole(completion).to_string()], "application/json"),
            (Self::Gemini, _) => (fake_gemini::streamed(completion), events),
        }
    }
}

/// The server; it ends when dropped.
#[derive(Debug)]
pub struct FakeModel {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

type Script = Box<dyn Fn(&Value) -> FakeReply + Send>;

struct Shared {
    wire: Wire,
    state: Mutex<Inner>,
    hang_ups: watch::Sender<usize>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("requests", &self.lock().requests.len()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Inner {
    requests: Vec<Value>,
    headers: Vec<HeaderMap>,
    documents: BTreeMap<String, Value>,
    queue: VecDeque<FakeReply>,
    script: Option<Script>,
}

impl FakeModel {
    /// Starts a server that speaks chat completions, on a free port of this machine.
    pub async fn start() -> Self {
        Self::speaking(Wire::OpenAi).await
    }

    /// Starts a server on a free port of this machine.
    pub async fn speaking(wire: Wire) -> Self {
        let shared = Arc::new(Shared { wire, state: Mutex::default(), hang_ups: watch::Sender::new(0) });
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on this machine");
        let url = format!("http://{}", listener.local_addr().expect("the port just bound"));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("a server that runs until dropped") });
        Self { url, shared, task }
    }

    /// Returns its base URL, without version or slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds an answer to the queue.
    pub fn reply(&self, reply: FakeReply) {
        self.shared.lock().queue.push_back(reply);
    }

    /// Answers what the queue leaves over, by the request's body.
    pub fn script(&self, script: impl Fn(&Value) -> FakeReply + Send + 'static) {
        self.shared.lock().script = Some(Box::new(script));
    }

    /// Returns the bodies of all requests so far, oldest first, refused ones too.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// Answers a path that is not the model's with a document: a list of models, a server's settings.
    pub fn document(&self, path: &str, document: Value) {
        self.shared.lock().documents.insert(path.to_owned(), document);
    }

    /// Returns the `Authorization` header of each request.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.headers("authorization")
    }

    /// Returns a header of each request to the model.
    pub fn headers(&self, name: &str) -> Vec<Option<String>> {
        let read = |headers: &HeaderMap| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        self.shared.lock().headers.iter().map(read).collect()
    }

    /// Waits until `count` answers have been broken off by the one who asked.
    pub async fn hang_ups(&self, count: usize) {
        let mut seen = self.shared.hang_ups.subscribe();
        seen.wait_for(|seen| *seen >= count).await.expect("the server lives as long as this");
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let wire = shared.wire;
    let reply = if method == Method::POST && wire.answers(uri.path()) {
        let mut inner = shared.lock();
        inner.requests.push(request.clone());
        inner.headers.push(headers);
        match wire.complaint(&request) {
            Some(complaint) => wire.refusal(&complaint),
            None => match (inner.queue.pop_front(), &inner.script) {
                (Some(reply), _) => reply,
                (None, Some(script)) => script(&request),
                (None, None) => FakeReply::text("ok"),
            },
        }
    } else {
        match shared.lock().documents.get(uri.path()) {
            Some(document) => FakeReply::status(200, document),
            None => FakeReply::status(404, &json!({"error": {"message": format!("there is no {}", uri.path())}})),
        }
    };
    let (chunks, content_type) = match &reply.body {
        FakeBody::Chunks(chunks) => (chunks.clone(), None),
        FakeBody::Completion(completion) => {
            let (chunks, content_type) = wire.body(completion, request["stream"] == true);
            (chunks.into_iter().map(String::into_bytes).collect(), Some(content_type))
        }
    };
    let mut response = Response::builder().status(reply.status);
    if let Some(content_type) = content_type {
        response = response.header(header::CONTENT_TYPE, content_type);
    }
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from_stream(sent(chunks, reply.end, shared))).expect("headers of a test are well-formed")
}

/// Sends chunks, then ends as told; notices when nobody listens any more.
fn sent(chunks: Vec<Vec<u8>>, end: FakeEnd, shared: Arc<Shared>) -> impl Stream<Item = Result<Vec<u8>, std::io::Error>> {
    let listener = Listener { shared, is_served: false };
    let chunks = stream::iter(chunks.into_iter().map(Ok));
    let tail = stream::once(async move {
        let mut listener = listener;
        match end {
            FakeEnd::Clean => {
                listener.is_served = true;
                None
            }
            FakeEnd::Hang => {
                let never: Infallible = std::future::pending().await;
                match never {}
            }
            FakeEnd::Drop => {
                listener.is_served = true;
                // Lets what was written before go out first.
                tokio::task::yield_now().await;
                Some(Err(std::io::Error::other("the test wants the connection broken")))
            }
        }
    });
    chunks.chain(tail.filter_map(|last| async { last }))
}

struct Listener {
    shared: Arc<Shared>,
    is_served: bool,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.is_served {
            self.shared.hang_ups.send_modify(|count| *count += 1);
        }
    }
}

/// What each prompt is said to hold.
pub(crate) const INPUT_TOKENS: usize = 10;

pub(crate) fn output_tokens(completion: &Completion) -> usize {
    completion.text.chars().count() + 1
}

/// A few characters at a time, as models write.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = String> + use<> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(7).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}

pub(crate) fn is_name(name: &Value) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.as_str().is_some_and(|name| (1..=64).contains(&name.len()) && name.chars().all(is_letter))
}

pub(crate) fn require(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}
