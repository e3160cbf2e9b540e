//! The commands. Each file is one kind of them; what they share is the [`Desk`] and the exit.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use quire_adapters::stores::sqlite::SqliteStore;
use quire_adapters::tools::mcp::McpTools;
use quire_adapters::tools::mcp::config::ToolsConfig;
use quire_core::chance::Seed;
use quire_core::ids::{SessionId, Timestamp};
use quire_runtime::driver::Ports;
use quire_runtime::fleet::Fleet;
use quire_runtime::ports::{Chance, Clock, Store};
use quire_runtime::retry::RetryPolicy;

use crate::models::{self, KnownModels};
use crate::options::{Command, Options};
use crate::packs::Packs;
use crate::words::Lang;

mod act;
mod chat;
mod demo;
mod look;
mod mcp;
mod model;
mod pack;
mod paint;
mod prefix;
mod progress;
mod screen;
mod task;
mod tool;
mod watch;

/// Runs one command.
pub async fn run(options: Options, lang: Lang) -> Result<ExitCode> {
    let folder = match options.data {
        Some(folder) => folder,
        None => models::default_data_folder().ok_or_else(|| anyhow!(lang.no_data_folder()))?,
    };
    let is_json = options.json;
    match options.command {
        Command::Demo(demo) => demo::demo(&folder, lang, demo).await,
        Command::Model(model) => model::run(&folder, lang, model.command, is_json).await,
        Command::Pack(pack) => pack::run(&folder, lang, pack.command, is_json),
        Command::Tool(tool) => tool::tool(&folder, tool.command, is_json).await,
        command => {
            let desk = Desk::open(&folder, lang, is_json).await?;
            let done = match command {
                Command::Show(on) => look::show(&desk, &on.session).await,
                Command::Journal(on) => look::journal(&desk, &on.session).await,
                Command::Context(context) => look::context(&desk, &context).await,
                Command::List => look::list(&desk).await,
                Command::Watch(on) => watch::watch(&desk, &on.session).await,
                Command::Chat(chat) => chat::chat(&desk, chat).await,
                Command::New(new) => act::new(&desk, new).await,
                Command::Task(task) => task::task(&desk, task.command).await,
                Command::Mcp(mcp) => mcp::serve(desk.clone(), mcp).await,
                command => act::act(&desk, command).await,
            };
            desk.tools.close().await;
            done
        }
    }
}

/// What a command works with: the data folder and its sessions.
#[derive(Clone)]
pub struct Desk {
    /// The sessions.
    pub fleet: Fleet,
    /// Where they lie.
    pub store: Arc<dyn Store>,
    /// Where packs are found.
    pub packs: Packs,
    /// Where models are found.
    pub models: Arc<KnownModels>,
    /// The data folder.
    pub folder: PathBuf,
    /// The language in which a person is spoken to.
    pub lang: Lang,
    /// The tool servers.
    pub tools: Arc<McpTools>,
    /// Whether one JSON object is wanted instead of words.
    pub is_json: bool,
}

impl Desk {
    /// Opens a data folder, and makes it where there is none.
    pub async fn open(folder: &Path, lang: Lang, is_json: bool) -> Result<Self> {
        let folder: PathBuf = std::path::absolute(folder).context("the data folder has no path")?;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder).await?);
        let models = Arc::new(KnownModels::of(&folder));
        let tools = ToolsConfig::load(&folder);
        let task_caps = tools.as_ref().map(|config| config.deep_task).unwrap_or_default();
        let tools = Arc::new(match tools {
            Ok(config) => McpTools::new(config.servers),
            // A deep task says so; nothing else needs them.
            Err(error) => McpTools::broken(error.to_string()),
        });
        let ports = Ports {
            store: store.clone(),
            models: models.clone(),
            clock: Arc::new(SystemClock),
            chance: Arc::new(SystemChance),
            retry: RetryPolicy::default(),
            tools: tools.clone(),
            task_caps,
        };
        let packs = Packs::of(&folder);
        Ok(Self { fleet: Fleet::new(ports), store, packs, models, tools, folder, lang, is_json })
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }
}

/// The machine's randomness.
#[derive(Debug, Clone, Copy)]
struct SystemChance;

impl Chance for SystemChance {
    fn seed(&self) -> Seed {
        Seed(uuid::Uuid::new_v4().as_u64_pair().1 ^ uuid::Uuid::new_v4().as_u64_pair().0.rotate_left(32))
    }
}

/// Makes a session's id: short enough to be typed, long enough to be the only one.
fn new_session_id() -> SessionId {
    const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut random = uuid::Uuid::new_v4().as_u128();
    let letters = std::iter::repeat_with(|| {
        let letter = LETTERS[(random % LETTERS.len() as u128) as usize];
        random /= LETTERS.len() as u128;
        char::from(letter)
    });
    SessionId::new(letters.take(8).collect::<String>())
}
