//! `quire mcp`: packs, sessions and the user's actions for other programs, by the Model Context Protocol.
//!
//! One tool for each action of a user, with the same refusals; a session is shown as `--json` shows it, with what is hidden
//! masked. Off unless it is started, on standard input and output or on a loopback address, so that nobody else reaches it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use quire_core::event::Action;
use quire_core::ids::SessionId;
use quire_core::session::Verb;
use quire_runtime::ports::Answered;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig,
    Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt as _};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};

use super::{Desk, act};
use crate::options::{Mcp, New};
use crate::report::{self, Usage};
use crate::wire;

const INSTRUCTIONS: &str = "Quire runs skill packs as durable writing sessions that a user governs. You act for the user: start \
                            a session, see what it waits for (`phase`, `waiting`) and which actions it hears (`heard`), and call \
                            the tool of that name. An action that is not heard is refused and changes nothing.";
/// How long an action's answer waits for the session's models, where the client does not say: most clients give up after a
/// minute.
const WAIT_MS: u64 = 45_000;
/// Sessions that are listed as resources.
const SESSIONS_LISTED_MAX: usize = 100;
const PACKS_URI: &str = "quire://packs";
const SESSIONS_URI: &str = "quire://sessions";

/// Serves until the other side hangs up, or the program is interrupted.
pub async fn serve(desk: Desk, mcp: Mcp) -> Result<std::process::ExitCode> {
    match mcp.http {
        None => {
            let service =
                Desks(Arc::new(desk)).serve(rmcp::transport::io::stdio()).await.context("the other side does not speak MCP")?;
            service.waiting().await?;
        }
        Some(address) => {
            if !address.ip().is_loopback() {
                return Err(
                    Usage(format!("{address} can be reached from outside; give a loopback address like 127.0.0.1:4100")).into()
                );
            }
            let desk = Arc::new(desk);
            let make = move || Ok(Desks(desk.clone()));
            let service =
                StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), StreamableHttpServerConfig::default());
            let router = axum::Router::new().nest_service("/mcp", service);
            let listener =
                tokio::net::TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))?;
            let address = listener.local_addr().context("the address is gone")?;
            eprintln!("quire: serving MCP on http://{address}/mcp; Ctrl-C ends it");
            let interrupted = async {
                // Without the signal it serves until it is killed.
                tokio::signal::ctrl_c().await.ok();
            };
            axum::serve(listener, router).with_graceful_shutdown(interrupted).await?;
        }
    }
    Ok(std::process::ExitCode::from(report::FINE))
}

/// The data folder as a server.
#[derive(Clone)]
struct Desks(Arc<Desk>);

impl ServerHandler for Desks {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("quire", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let called = match request.name.as_ref() {
            "list_packs" => Ok(self.packs()),
            "list_sessions" => self.sessions().await,
            "start_session" => self.start_session(arguments).await,
            "show_session" => self.show_session(arguments).await,
            name => match Verb::ALL.iter().find(|verb| verb.as_str() == name) {
                Some(verb) => self.act(*verb, arguments).await,
                None => return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None)),
            },
        };
        let (view, is_error) = match called {
            Ok(view) => {
                let is_refused = view.get("refusal").is_some();
                (view, is_refused)
            }
            Err(error) => (json!({ "error": format!("{error:#}") }), true),
        };
        let content = vec![ContentBlock::text(view.to_string())];
        let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(view);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |uri: &str, name: String, description: &str| {
            Resource::new(uri, name).with_description(description).with_mime_type("application/json")
        };
        let mut resources = vec![
            resource(PACKS_URI, "packs".to_owned(), "The packs there are."),
            resource(SESSIONS_URI, "sessions".to_owned(), "All sessions, the latest changed first."),
        ];
        let sessions = self.0.store.list().await.map_err(internal)?;
        for line in sessions.into_iter().take(SESSIONS_LISTED_MAX) {
            let name = if line.title.is_empty() { line.session.to_string() } else { line.title };
            let uri = format!("{SESSIONS_URI}/{}", line.session);
            resources.push(resource(&uri, name, "A session as it stands."));
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let session = ResourceTemplate::new(format!("{SESSIONS_URI}/{{session}}"), "session")
            .with_description("A session as it stands.")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![session]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let view = match uri.strip_prefix(SESSIONS_URI) {
            None if uri == PACKS_URI => Ok(self.packs()),
            Some("") => self.sessions().await,
            Some(session) if session.starts_with('/') => self.session(session.trim_start_matches('/')).await,
            Some(_) | None => return Err(ErrorData::resource_not_found(format!("there is nothing at {uri}"), None)),
        };
        let view = view.map_err(|error| ErrorData::resource_not_found(format!("{error:#}"), None))?;
        let contents = ResourceContents::text(view.to_string(), uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl Desks {
    fn packs(&self) -> Value {
        json!({ "packs": self.0.packs.list() })
    }

    async fn sessions(&self) -> Result<Value> {
        Ok(json!({ "sessions": self.0.store.list().await? }))
    }

    async fn session(&self, id: &str) -> Result<Value> {
        Ok(wire::session(&self.0.fleet.look(&SessionId::new(id)).await?))
    }

    async fn show_session(&self, mut arguments: JsonObject) -> Result<Value> {
        let session = take_text(&mut arguments, "session")?;
        nothing_else(&arguments)?;
        self.session(&session).await
    }

    async fn start_session(&self, mut arguments: JsonObject) -> Result<Value> {
        let desk = &self.0;
        let new = New {
            pack: Some(take_text(&mut arguments, "pack")?),
            title: take_text(&mut arguments, "title").ok(),
            model: take_text(&mut arguments, "model").ok(),
            burst: None,
        };
        nothing_else(&arguments)?;
        let id = act::start(desk, new).await?;
        self.session(id.as_str()).await
    }

    /// Does what the tool of a verb means, and waits a while for what follows.
    async fn act(&self, verb: Verb, mut arguments: JsonObject) -> Result<Value> {
        let desk = &self.0;
        let id = SessionId::new(take_text(&mut arguments, "session")?);
        let wait_ms = arguments.remove("wait_ms").and_then(|wait| wait.as_u64()).unwrap_or(WAIT_MS);
        if let Verb::SelectPack | Verb::UpgradePack = verb {
            let files = act::readable(desk, &take_text(&mut arguments, "pack")?)?;
            act::check_bindings(desk, &files)?;
            arguments.insert("pack".to_owned(), json!(files));
        }
        let schema = schema_of(verb);
        let known = schema["properties"].as_object().cloned().unwrap_or_default();
        if let Some(unknown) = arguments.keys().find(|name| !known.contains_key(*name)) {
            return Err(Usage(format!("`{}` takes no `{unknown}`", verb.as_str())).into());
        }
        arguments.insert("action".to_owned(), verb.as_str().into());
        let action: Action = serde_json::from_value(Value::Object(arguments))
            .map_err(|error| Usage(format!("the arguments of `{}` do not fit: {error}", verb.as_str())))?;
        if let Answered::Refused { refusal } = desk.fleet.act(&id, &action).await? {
            let mut view = self.session(id.as_str()).await?;
            view["refusal"] = report::refusal_json(&refusal);
            return Ok(view);
        }
        // Past the time the models go on, and `show_session` tells.
        if let Ok(settled) = tokio::time::timeout(Duration::from_millis(wait_ms), desk.fleet.settled(&id)).await {
            settled?;
        }
        self.session(id.as_str()).await
    }
}

fn take_text(arguments: &mut JsonObject, name: &str) -> Result<String> {
    match arguments.remove(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(_) | None => Err(Usage(format!("`{name}` is missing: give it as a text")).into()),
    }
}

fn nothing_else(arguments: &JsonObject) -> Result<()> {
    match arguments.keys().next() {
        Some(unknown) => Err(Usage(format!("there is no argument `{unknown}` here")).into()),
        None => Ok(()),
    }
}

fn tools() -> Vec<Tool> {
    let reading = |name: &'static str, description: &'static str, properties: Value, required: &[&str]| {
        tool(name, description, schema(properties, required)).with_annotations(ToolAnnotations::new().read_only(true))
    };
    let mut tools = vec![
        reading("list_packs", "Lists the packs there are.", json!({}), &[]),
        reading("list_sessions", "Lists all sessions, the latest changed first.", json!({}), &[]),
        reading(
            "show_session",
            "Shows a session: what it waits for, which actions it hears, its texts.",
            json!({ "session": text() }),
            &["session"],
        ),
        tool(
            "start_session",
            "Starts a session with a pack.",
            schema(json!({ "pack": text(), "title": text(), "model": text() }), &["pack"]),
        )
        .with_annotations(ToolAnnotations::new().destructive(false)),
    ];
    tools.extend(Verb::ALL.iter().map(|verb| {
        let Value::Object(schema) = schema_of(*verb) else { unreachable!("a schema is an object") };
        tool(verb.as_str(), description_of(*verb), schema)
    }));
    tools
}

fn tool(name: &'static str, description: &'static str, schema: JsonObject) -> Tool {
    Tool::new(name, description, Arc::new(schema))
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn schema(properties: Value, required: &[&str]) -> JsonObject {
    let Value::Object(schema) =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    else {
        unreachable!("it is an object")
    };
    schema
}

/// Describes the arguments of an action: those of the journal's own form, a session, and how long to wait.
fn schema_of(verb: Verb) -> Value {
    let limit = || json!({ "type": ["integer", "null"], "minimum": 0 });
    let number = || json!({ "type": "integer", "minimum": 0 });
    let (own, required): (Value, &[&str]) = match verb {
        Verb::SelectPack | Verb::UpgradePack => (json!({ "pack": text() }), &["pack"]),
        Verb::SubmitInput => (json!({ "text": text(), "values": { "type": "object", "additionalProperties": text() } }), &[]),
        Verb::ConfirmIntake | Verb::Retry | Verb::Stop | Verb::Finish | Verb::Reveal => (json!({}), &[]),
        Verb::Approve => (json!({ "decision": text() }), &[]),
        Verb::RejectStep => (json!({ "decision": text(), "reason": text() }), &[]),
        Verb::Accept | Verb::Discard => (json!({ "artifact": text() }), &[]),
        Verb::Reject => (json!({ "artifact": text(), "reason": text() }), &[]),
        Verb::Answer => {
            let answer =
                schema(json!({ "questionId": text(), "optionId": text(), "text": text() }), &["questionId", "optionId", "text"]);
            (json!({ "card": text(), "answers": { "type": "array", "items": answer } }), &["answers"])
        }
        Verb::Skip => (json!({ "card": text() }), &[]),
        Verb::SetBudget => {
            let budget =
                schema(json!({ "rounds": limit(), "tokens": limit(), "money_micros": limit(), "time_ms": limit() }), &[]);
            (json!({ "budget": budget }), &["budget"])
        }
        Verb::EditItem => (json!({ "tag": text(), "base": number(), "text": text() }), &["tag", "text"]),
        Verb::EditCell => {
            (json!({ "tag": text(), "key": text(), "value": {}, "rev": number() }), &["tag", "key", "value", "rev"])
        }
        Verb::ReleaseCell => (json!({ "tag": text(), "key": text(), "rev": number() }), &["tag", "key", "rev"]),
        Verb::StartTask => {
            (json!({ "task": text(), "title": text(), "grants": { "type": "array", "items": text() } }), &["task"])
        }
        Verb::CancelTask => (json!({ "task": number() }), &["task"]),
    };
    let mut properties = Map::from_iter([("session".to_owned(), text())]);
    if let Value::Object(own) = own {
        properties.extend(own);
    }
    properties.insert(
        "wait_ms".to_owned(),
        json!({ "type": "integer", "minimum": 0, "description": "How long to wait for what follows." }),
    );
    let required: Vec<&str> = std::iter::once("session").chain(required.iter().copied()).collect();
    Value::Object(schema(Value::Object(properties), &required))
}

fn description_of(verb: Verb) -> &'static str {
    match verb {
        Verb::SelectPack => "Chooses the pack of a session that has none.",
        Verb::SubmitInput => "Says something to a session, or fills in its intake by `values`.",
        Verb::ConfirmIntake => "Closes the intake, and the main agent begins.",
        Verb::Approve => "Lets the worker run that the agent chose.",
        Verb::RejectStep => "Does not let it run.",
        Verb::Accept => "Makes an artifact a fact.",
        Verb::Reject => "Sends an artifact back to be mended.",
        Verb::Discard => "Throws an artifact away, or a run that asks.",
        Verb::Answer => "Answers the questions of a card; `optionId` is an option's id or `other`, `text` the final words.",
        Verb::Skip => "Closes a card without answers.",
        Verb::Retry => "Does again what failed or was stopped.",
        Verb::SetBudget => "Sets what a session may spend.",
        Verb::Stop => "Stops what runs; what has come is kept.",
        Verb::Finish => "Ends a session for good.",
        Verb::EditItem => "Writes a tag's text.",
        Verb::EditCell => "Writes one cell of a table.",
        Verb::ReleaseCell => "Hands a cell back to the workers.",
        Verb::UpgradePack => "Moves a session to another version of its pack.",
        Verb::Reveal => "Shows what the pack hides from the user.",
        Verb::StartTask => {
            "Has a sub-agent dig into a question beside the session; `grants` are tags of the book that it may read."
        }
        Verb::CancelTask => "Ends a deep task; what it has found is kept.",
    }
}
