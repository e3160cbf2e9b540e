//! Tools of MCP servers: programs that are started, and servers reached by streamable HTTP.
//!
//! A server is started when it is first needed, and kept. One that dies is started again, with a pause that grows while it
//! fails; one that hangs times out. Whatever goes wrong is said with the server's name and the cause, and touches neither
//! the session nor another server. [`McpTools::close`] ends the programs; they also end when this process does, since their
//! input ends.
//!
//! Nobody can be asked in the background: a server that wants the user's input is told so. No call is made twice here.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future;
use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use quire_core::deep_task::{HostTool, ToolResult};
use quire_runtime::ports::{RuntimeContext, ToolHost, Toolbox};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorData,
    Implementation, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RequestContext, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::child_process::TokioChildProcess;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use config::{Reach, ServerConfig};

pub mod config;
mod shape;

/// How long a server may take to say what it is and has.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a first failure; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Bytes kept of what a program writes to its error stream.
const STDERR_BYTES_MAX: usize = 2_000;
/// What a program finds of this one's environment, besides what is configured.
const INHERITED: [&str; 20] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
    "USERNAME",
];
/// How long a program that has ended is listened to.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a program is given to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(8);

/// The tools of all configured servers.
pub struct McpTools {
    servers: Vec<Server>,
    /// Why there is no server, where the configuration cannot be read.
    fault: Option<String>,
}

/// What a server offers, whatever of it may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The tool.
    pub tool: HostTool,
    /// Whether the server marks it as only reading.
    pub is_read_only: bool,
}

impl McpTools {
    /// Makes a host of these servers; none is started yet.
    pub fn new(servers: Vec<ServerConfig>) -> Self {
        // Before any connection: without it the first request would panic. Fails where there is one already.
        rustls::crypto::ring::default_provider().install_default().ok();
        Self { servers: servers.into_iter().map(Server::new).collect(), fault: None }
    }

    /// Makes a host without servers, which says why there are none.
    pub fn broken(fault: String) -> Self {
        Self { servers: vec![], fault: Some(fault) }
    }

    /// Lists what one server offers, in the order of its names.
    ///
    /// # Errors
    /// A sentence with the server's name, the cause, and the program's last words.
    pub async fn offered(&self, server: &str) -> Result<Vec<Offered>, String> {
        let Some(found) = self.servers.iter().find(|found| found.config.name == server) else {
            return Err(format!("there is no tool server `{server}`; `quire tool list` shows those there are"));
        };
        found.list().await
    }

    /// Ends the programs that were started, and waits until they have ended.
    pub async fn close(&self) {
        future::join_all(self.servers.iter().map(Server::close)).await;
    }
}

#[async_trait]
impl ToolHost for McpTools {
    async fn tools(&self, context: RuntimeContext) -> Toolbox {
        let meant = || self.servers.iter().filter(|server| server.config.contexts.contains(&context));
        let lists = future::join_all(meant().map(Server::list)).await;
        let mut toolbox = Toolbox { tools: vec![], faults: self.fault.iter().cloned().collect() };
        for (server, list) in meant().zip(lists) {
            match list {
                Ok(offered) => {
                    let may = |offered: &Offered| offered.is_read_only || server.config.ticked.contains(&offered.tool.own_name);
                    toolbox.tools.extend(offered.into_iter().filter(may).map(|offered| offered.tool));
                }
                Err(fault) => toolbox.faults.push(fault),
            }
        }
        shape::name_apart(&mut toolbox.tools);
        toolbox
    }

    async fn call(&self, tool: &HostTool, arguments: &Map<String, Value>) -> ToolResult {
        match self.servers.iter().find(|server| server.config.name == tool.server) {
            Some(server) => server.call(&tool.own_name, arguments).await,
            None => ToolResult::error(format!("the tool server `{}` is not configured any more", tool.server)),
        }
    }
}

struct Server {
    config: ServerConfig,
    link: tokio::sync::Mutex<Link>,
    /// The program's process group, while there may be something of it.
    group: Mutex<Option<u32>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Ends when the program's error stream does.
    listening: Mutex<Option<JoinHandle<()>>>,
}

/// The connection to a server, and how often it could not be made.
#[derive(Default)]
struct Link {
    running: Option<RunningService<RoleClient, Background>>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Server {
    fn new(config: ServerConfig) -> Self {
        Self {
            config,
            link: tokio::sync::Mutex::default(),
            group: Mutex::default(),
            stderr: Arc::default(),
            listening: Mutex::default(),
        }
    }

    async fn list(&self) -> Result<Vec<Offered>, String> {
        let peer = self.connected().await?;
        let listed = tokio::time::timeout(START_TIMEOUT, all_tools(&peer)).await;
        let mut tools = match listed {
            Ok(Ok(tools)) => tools,
            Ok(Err(error)) => return Err(self.fault(&format!("it does not list its tools: {}", words(&error))).await),
            Err(_) => return Err(self.fault(&format!("it does not list its tools within {} s", START_TIMEOUT.as_secs())).await),
        };
        // A stable sort: of two tools with one name the first stays the first.
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tools.iter().map(|tool| shape::offered(&self.config.name, tool)).collect())
    }

    async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> ToolResult {
        let peer = match self.connected().await {
            Ok(peer) => peer,
            Err(fault) => return ToolResult::error(fault),
        };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        // Dropped, be it by the timeout or by who called, the request is cancelled at the server.
        let answer = tokio::time::timeout(self.config.timeout(), peer.call_tool_once(params)).await;
        match answer {
            Ok(Ok(CallToolResponse::Complete(result))) => shape::result(&result),
            Ok(Ok(CallToolResponse::InputRequired(_))) => ToolResult::error(format!(
                "`{tool}` of {} wants input from the user, which is not available in the background",
                self.config.name
            )),
            Ok(Ok(_)) => ToolResult::error(format!(
                "`{tool}` of {} answers by a task of its own, which is not supported",
                self.config.name
            )),
            Ok(Err(ServiceError::McpError(error))) => {
                ToolResult::error(format!("{}: {}", self.config.name, shape::clean(&error.message)))
            }
            Ok(Err(error)) => ToolResult::error(self.fault(&words(&error)).await),
            Err(_) => ToolResult::error(format!(
                "`{tool}` of {} gave no answer within {} s; it was cancelled",
                self.config.name,
                self.config.timeout().as_secs_f32()
            )),
        }
    }

    /// Returns the connection, and makes it where there is none.
    async fn connected(&self) -> Result<Peer<RoleClient>, String> {
        let mut link = self.link.lock().await;
        if let Some(running) = &link.running
            && !running.is_closed()
            && !running.peer().is_transport_closed()
        {
            return Ok(running.peer().clone());
        }
        if link.running.take().is_some() {
            link.fail();
        }
        if let Some(wait) = link.not_before.and_then(|at| at.checked_duration_since(Instant::now())) {
            tokio::time::sleep(wait.min(self.config.timeout())).await;
        }
        match self.connect().await {
            Ok(running) => {
                let peer = running.peer().clone();
                *link = Link { running: Some(running), failures: link.failures, not_before: link.not_before };
                Ok(peer)
            }
            Err(fault) => {
                link.fail();
                Err(fault)
            }
        }
    }

    /// Connects by the newest protocol both know; servers of old are met by their handshake.
    async fn connect(&self) -> Result<RunningService<RoleClient, Background>, String> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let reach = self.config.reach().map_err(|error| error.to_string())?;
        let (timeout, mode) = (START_TIMEOUT.min(self.config.timeout().max(Duration::from_secs(1))), newest);
        let connecting = async {
            match reach {
                Reach::Program(command) => {
                    let transport = self.start(command)?;
                    Background.serve_with_lifecycle(transport, mode).await.map_err(|error| init_words(&error))
                }
                Reach::Url(url) => {
                    let client = http_client().map_err(|error| error.to_string())?;
                    let config = StreamableHttpClientTransportConfig::with_uri(url);
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    Background.serve_with_lifecycle(transport, mode).await.map_err(|error| init_words(&error))
                }
            }
        };
        match tokio::time::timeout(timeout, connecting).await {
            Ok(Ok(running)) => Ok(running),
            Ok(Err(cause)) => Err(self.fault(&cause).await),
            Err(_) => Err(self.fault(&format!("it does not say what it is within {} s", timeout.as_secs_f32())).await),
        }
    }

    /// Starts the program in a process group of its own, so that what it starts ends with it.
    fn start(&self, command: &str) -> Result<TokioChildProcess, String> {
        let mut program = Command::new(command);
        // Only what a program needs to run: among the rest may be the user's keys, and some servers tell their environment.
        let inherited = INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        program.args(&self.config.args).env_clear().envs(inherited).envs(&self.config.env);
        let mut wrapped = CommandWrap::from(program);
        wrapped.wrap(KillOnDrop);
        #[cfg(unix)]
        wrapped.wrap(ProcessGroup::leader());
        let started = TokioChildProcess::builder(wrapped).stderr(Stdio::piped()).spawn();
        let (transport, stderr) = started.map_err(|error| format!("`{command}` cannot be started: {error}"))?;
        self.end_group(transport.id());
        if let Some(stderr) = stderr {
            let listening = tokio::spawn(keep_last(stderr, self.stderr.clone()));
            *self.listening.lock().unwrap_or_else(PoisonError::into_inner) = Some(listening);
        }
        Ok(transport)
    }

    /// Says what is wrong, with the server's name and the program's last words.
    async fn fault(&self, cause: &str) -> String {
        // One that has just ended may still have words on the way.
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut listening) = listening
            && tokio::time::timeout(LAST_WORDS_TIMEOUT, &mut listening).await.is_err()
        {
            *self.listening.lock().unwrap_or_else(PoisonError::into_inner) = Some(listening);
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&stderr);
        let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = said.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join(" | ");
        let said = if last.is_empty() { String::new() } else { format!("; it said: {}", shape::clean(&last)) };
        format!("the tool server `{}`: {}{said}", self.config.name, shape::clean(cause))
    }

    async fn close(&self) {
        let running = self.link.lock().await.running.take();
        if let Some(mut running) = running {
            // One that does not end is killed when it is dropped.
            running.close_with_timeout(END_TIMEOUT).await.ok();
        }
        self.end_group(None);
    }

    /// Ends what is left of the program's process group, and remembers the one that takes its place.
    fn end_group(&self, next: Option<u32>) {
        let last = std::mem::replace(&mut *self.group.lock().unwrap_or_else(PoisonError::into_inner), next);
        #[cfg(unix)]
        if let Some(group) = last.and_then(|group| i32::try_from(group).ok()) {
            use nix::sys::signal::{Signal, kill, killpg};
            let group = nix::unistd::Pid::from_raw(group);
            // The program itself has ended and was waited for. A process of its number is a stranger that got the number
            // since; while something of the group lives, nobody gets it.
            let is_reused = kill(group, None).is_ok();
            if !is_reused {
                // An empty group is gone already.
                killpg(group, Signal::SIGKILL).ok();
            }
        }
        #[cfg(not(unix))]
        let _ = last;
    }
}

impl Link {
    fn fail(&mut self) {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.failures += 1;
        self.not_before = Some(Instant::now() + pause);
    }
}

async fn all_tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ServiceError> {
    peer.list_all_tools().await
}

async fn keep_last(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[..count]);
        let surplus = kept.len().saturating_sub(STDERR_BYTES_MAX);
        kept.drain(..surplus);
    }
}

fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    // The system's certificates and the usual ones besides.
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|root| reqwest::Certificate::from_der(root));
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_merge(roots.collect::<Result<Vec<_>, _>>()?)
        .build()
}

fn words(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => format!("it cannot be reached: {}", innermost(error.error.as_ref())),
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => "it went away in the middle of a call".to_owned(),
        other => chain(other),
    }
}

fn init_words(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it said what it is".to_owned(),
        ClientInitializeError::TransportError { error, .. } => {
            let cause = innermost(error.error.as_ref());
            let has_ended = cause.contains("Broken pipe");
            if has_ended { "it ended before it said what it is".to_owned() } else { format!("it cannot be reached: {cause}") }
        }
        other => chain(other),
    }
}

/// Returns the cause of all causes: around it, transports tell their own types.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Draws an error and its causes together; outer ones often say only that something failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !text.contains(&cause_words) {
            text.push_str(": ");
            text.push_str(&cause_words);
        }
        source = cause.source();
    }
    text
}

/// This side of a connection: it has nothing to offer a server, and nobody to ask.
#[derive(Debug, Clone, Copy)]
struct Background;

impl ClientHandler for Background {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("quire", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::invalid_request("input from the user is not available in the background", None))
    }
}
