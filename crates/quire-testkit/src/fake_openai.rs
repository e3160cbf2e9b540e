//! A server on loopback that speaks chat completions as its test tells it to, faults and all.
//!
//! It is strict: a body that the real servers would refuse ([`complaint`]) is answered by 400 with the reason, so a test
//! fails where a user's session would. What it answers comes from [`FakeOpenAi::reply`], one after another, then from
//! [`FakeOpenAi::script`]; with neither it says `ok`.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use axum::routing::post;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

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
    Completion { text: String, reasoning: String, calls: Vec<(String, String)> },
    /// Bytes as they are, cut as they are.
    Chunks(Vec<Vec<u8>>),
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
        Self::completion(text.into(), Vec::new())
    }

    /// Calls one tool.
    pub fn call(name: impl Into<String>, arguments: &Value) -> Self {
        Self::calls([(name.into(), arguments.to_string())])
    }

    /// Calls tools, each by its name and its arguments as the model would write them.
    pub fn calls(calls: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        Self::completion(String::new(), calls.into_iter().map(|(name, arguments)| (name.into(), arguments.into())).collect())
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
        if let FakeBody::Completion { reasoning, .. } = &mut self.body {
            *reasoning = thought.into();
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

    fn completion(text: String, calls: Vec<(String, String)>) -> Self {
        let body = FakeBody::Completion { text, reasoning: String::new(), calls };
        Self { status: 200, headers: Vec::new(), body, end: FakeEnd::Clean }
    }
}

/// The server; it ends when dropped.
#[derive(Debug)]
pub struct FakeOpenAi {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

type Script = Box<dyn Fn(&Value) -> FakeReply + Send>;

struct Shared {
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
    authorizations: Vec<Option<String>>,
    queue: VecDeque<FakeReply>,
    script: Option<Script>,
}

impl FakeOpenAi {
    /// Starts a server on a free port of this machine.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), hang_ups: watch::Sender::new(0) });
        let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(shared.clone());
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

    /// Returns the `Authorization` header of each request.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.shared.lock().authorizations.clone()
    }

    /// Waits until `count` answers have been broken off by the one who asked.
    pub async fn hang_ups(&self, count: usize) {
        let mut seen = self.shared.hang_ups.subscribe();
        seen.wait_for(|seen| *seen >= count).await.expect("the server lives as long as this");
    }
}

impl Drop for FakeOpenAi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reply = {
        let mut inner = shared.lock();
        inner.requests.push(request.clone());
        inner.authorizations.push(headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned));
        match complaint(&request) {
            Some(complaint) => FakeReply::refused_parameter("messages", &complaint),
            None => match (inner.queue.pop_front(), &inner.script) {
                (Some(reply), _) => reply,
                (None, Some(script)) => script(&request),
                (None, None) => FakeReply::text("ok"),
            },
        }
    };
    let is_stream = request["stream"] == true;
    let (chunks, content_type) = match &reply.body {
        FakeBody::Chunks(chunks) => (chunks.clone(), None),
        FakeBody::Completion { text, reasoning, calls } if is_stream => {
            (streamed(text, reasoning, calls).map(String::into_bytes).collect(), Some("text/event-stream"))
        }
        FakeBody::Completion { text, reasoning, calls } => {
            (vec![whole(text, reasoning, calls).to_string().into_bytes()], Some("application/json"))
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

fn streamed(text: &str, reasoning: &str, calls: &[(String, String)]) -> impl Iterator<Item = String> + use<> {
    let chunk = |delta: Value, finish: Value| json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(pieces(reasoning).map(|piece| chunk(json!({"reasoning_content": piece}), Value::Null)));
    events.extend(pieces(text).map(|piece| chunk(json!({"content": piece}), Value::Null)));
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let head = json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [head]}), Value::Null));
        events.extend(
            pieces(arguments)
                .map(|piece| chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), Value::Null)),
        );
    }
    events.push(chunk(json!({}), finish(calls)));
    events.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage(text)}));
    events.into_iter().map(|event| format!("data: {event}\n\n")).chain(["data: [DONE]\n\n".to_owned()])
}

fn whole(text: &str, reasoning: &str, calls: &[(String, String)]) -> Value {
    let calls_sent: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            json!({"id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !reasoning.is_empty() {
        message["reasoning_content"] = reasoning.into();
    }
    if !calls_sent.is_empty() {
        message["tool_calls"] = calls_sent.into();
    }
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish(calls)}],
        "usage": usage(text),
    })
}

fn finish(calls: &[(String, String)]) -> Value {
    if calls.is_empty() { "stop".into() } else { "tool_calls".into() }
}

fn usage(text: &str) -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": text.chars().count() + 1, "total_tokens": text.chars().count() + 11})
}

/// A few characters at a time, as models write.
fn pieces(text: &str) -> impl Iterator<Item = String> + use<> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(7).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}

/// Says what the real servers would refuse in a request's body; `None` where nothing.
pub fn complaint(request: &Value) -> Option<String> {
    check_request(request).err()
}

fn check_request(request: &Value) -> Result<(), String> {
    require(request["model"].as_str().is_some_and(|model| !model.is_empty()), || "you must provide a model".to_owned())?;
    let messages = request["messages"]
        .as_array()
        .filter(|messages| !messages.is_empty())
        .ok_or("messages must be a list with at least one entry")?;
    check_messages(messages)?;
    check_tools(request)
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    let mut ids_seen = BTreeSet::new();
    let mut ids_open: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let place = || format!("messages[{at}]");
        let role = message["role"].as_str().unwrap_or_default();
        require(ids_open.is_empty() || role == "tool", || {
            format!(
                "{}: an assistant message with tool_calls must be followed by tool messages; unanswered: {ids_open:?}",
                place()
            )
        })?;
        let is_said = message["content"].as_str().is_some_and(|content| !content.is_empty());
        match role {
            "system" | "developer" | "user" => require(is_said, || format!("{}: content must not be empty", place()))?,
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                require(calls.is_none_or(|calls| !calls.is_empty()), || format!("{}: tool_calls must not be empty", place()))?;
                require(is_said || (calls.is_some() && message["content"].is_null()), || {
                    format!("{}: content must not be empty", place())
                })?;
                for call in calls.into_iter().flatten() {
                    let id = check_call(call).map_err(|wrong| format!("{}: {wrong}", place()))?;
                    require(ids_seen.insert(id), || format!("{}: the call id {id:?} was used before", place()))?;
                    ids_open.insert(id);
                }
            }
            "tool" => {
                require(is_said, || format!("{}: content must not be empty", place()))?;
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                require(ids_open.remove(id), || {
                    format!(
                        "{}: a tool message must answer a call of the message before; {id:?} is none, or has its answer",
                        place()
                    )
                })?;
            }
            other => return Err(format!("{}: unknown role {other:?}", place())),
        }
    }
    require(ids_open.is_empty(), || format!("the last tool_calls have no answer: {ids_open:?}"))
}

fn check_call(call: &Value) -> Result<&str, String> {
    require(call["type"] == "function", || "a call's type must be `function`".to_owned())?;
    require(is_name(&call["function"]["name"]), || format!("a call names the function {}", call["function"]["name"]))?;
    let arguments = call["function"]["arguments"].as_str().ok_or("a call's arguments must be a string")?;
    require(serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()), || {
        format!("a call's arguments must be a JSON object, not {arguments:?}")
    })?;
    call["id"].as_str().filter(|id| !id.is_empty()).ok_or_else(|| "a call must have an id".to_owned())
}

fn check_tools(request: &Value) -> Result<(), String> {
    let Some(tools) = request.get("tools") else {
        return require(request.get("tool_choice").is_none(), || {
            "tool_choice is only allowed when tools are specified".to_owned()
        });
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty()).ok_or("tools must be a list with at least one entry")?;
    let mut names = BTreeSet::new();
    for tool in tools {
        let function = &tool["function"];
        require(tool["type"] == "function" && is_name(&function["name"]), || format!("this is no function tool: {tool}"))?;
        require(names.insert(function["name"].as_str()), || format!("the tool {} is there twice", function["name"]))?;
        require(function["parameters"]["type"] == "object", || {
            format!("the parameters of {} must be a schema of type object", function["name"])
        })?;
    }
    Ok(())
}

fn is_name(name: &Value) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.as_str().is_some_and(|name| (1..=64).contains(&name.len()) && name.chars().all(is_letter))
}

fn require(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::complaint;

    fn complaint_on(messages: &Value) -> String {
        complaint(&json!({"model": "m", "messages": messages})).unwrap_or_default()
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "submit", "arguments": "{}"}})
    }

    #[test]
    fn a_valid_transcript_is_taken() {
        let messages = json!([
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "begin"},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "b", "content": "done"},
            {"role": "tool", "tool_call_id": "a", "content": "done"},
            {"role": "assistant", "content": "well"},
        ]);
        assert_eq!(complaint_on(&messages), "");
    }

    #[test]
    fn what_a_real_server_refuses_is_refused() {
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [call("a")]});
        let answer = json!({"role": "tool", "tool_call_id": "a", "content": "done"});
        let user = json!({"role": "user", "content": "begin"});
        let cases = [
            json!([]),
            json!([{"role": "user", "content": ""}]),
            json!([{"role": "narrator", "content": "x"}]),
            json!([{"role": "assistant", "content": ""}]),
            json!([answer]),
            json!([calls]),
            json!([calls, user]),
            json!([calls, answer, answer]),
            json!([calls, answer, calls, answer]),
            json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "submit", "arguments": "{\"a"}}]}]),
        ];
        let said: String = cases.iter().map(|case| complaint_on(case) + "\n").collect();
        expect_test::expect![[r#"
            messages must be a list with at least one entry
            messages[0]: content must not be empty
            messages[0]: unknown role "narrator"
            messages[0]: content must not be empty
            messages[0]: a tool message must answer a call of the message before; "a" is none, or has its answer
            the last tool_calls have no answer: {"a"}
            messages[1]: an assistant message with tool_calls must be followed by tool messages; unanswered: {"a"}
            messages[2]: a tool message must answer a call of the message before; "a" is none, or has its answer
            messages[2]: the call id "a" was used before
            messages[0]: a call's arguments must be a JSON object, not "{\"a"
        "#]]
        .assert_eq(&said);
        let tools = json!([{"type": "function", "function": {"name": "submit", "parameters": {"type": "string"}}}]);
        let request = json!({"model": "m", "messages": [user], "tools": tools});
        assert_eq!(complaint(&request).unwrap_or_default(), "the parameters of \"submit\" must be a schema of type object");
    }
}
