//! What can be typed: the commands and their options.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use quire_adapters::providers::profile::PRESETS;

use crate::words::Lang;

/// Writing with many agents, governed by you.
#[derive(Debug, Parser)]
#[command(name = "quire", version, max_term_width = 100)]
pub struct Options {
    /// Print one JSON object on stdout instead of words.
    #[arg(long, global = true)]
    pub json: bool,
    /// The folder where everything lies.
    #[arg(long, global = true, value_name = "FOLDER", env = "QUIRE_DATA")]
    pub data: Option<PathBuf>,
    /// The language to speak; else the locale's.
    #[arg(long, global = true, value_name = "LANG")]
    pub lang: Option<Lang>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play the built-in demo: a short story, without a key and without a network.
    Demo(Demo),
    /// Talk with a session: a new one with a pack, or one that is there.
    Chat(Chat),
    /// Start a session with a pack.
    New(New),
    /// Say something to a session.
    Say(Say),
    /// Confirm the intake.
    Confirm(OnSession),
    /// Let the worker run that the agent chose.
    Approve(OnDecision),
    /// Send an artifact back, or do not let a worker run.
    Reject(Reject),
    /// Make an artifact a fact.
    Accept(OnArtifact),
    /// Throw an artifact away, or a run that asks.
    Discard(OnArtifact),
    /// Answer the questions of a card.
    Answer(Answer),
    /// Close a card without answers.
    Skip(OnCard),
    /// Do again what failed or was stopped.
    Retry(OnSession),
    /// Stop what runs; what has come is kept.
    Stop(OnSession),
    /// End a session for good.
    Finish(OnSession),
    /// Write a tag's text.
    Edit(Edit),
    /// Write one cell of a table; it is yours until you release it.
    EditCell(EditCell),
    /// Hand a cell back to the workers.
    ReleaseCell(ReleaseCell),
    /// Choose the pack of a session that has none.
    Select(Select),
    /// Set what a session may spend.
    SetBudget(SetBudget),
    /// Move a session to another version of its pack.
    UpgradePack(UpgradePack),
    /// Show what the pack hides from you.
    Reveal(OnSession),
    /// Show where a session stands.
    Show(OnSession),
    /// Show what has happened, record by record.
    Journal(OnSession),
    /// Show what a worker got to see, and what was kept from it.
    Context(Context),
    /// Go on with what a stopped program left: first the inbox, then what is owed.
    Resume(OnSession),
    /// List all sessions.
    List,
    /// Watch a session while it works, also from another terminal.
    Watch(OnSession),
    /// Look after models.
    Model(Model),
    /// Look after packs.
    Pack(Pack),
    /// Have sub-agents dig into questions beside a session.
    Task(Task),
    /// Look after the tool servers that deep tasks work with.
    Tool(Tool),
    /// Serve packs, sessions and your actions to other programs by the Model Context Protocol.
    Mcp(Mcp),
}

/// A session.
#[derive(Debug, Args)]
pub struct OnSession {
    /// The session.
    pub session: String,
}

/// A decision of a session.
#[derive(Debug, Args)]
pub struct OnDecision {
    /// The session.
    pub session: String,
    /// The decision; else the pending one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub decision: Option<String>,
}

/// An artifact of a session.
#[derive(Debug, Args)]
pub struct OnArtifact {
    /// The session.
    pub session: String,
    /// The artifact; else the pending one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub artifact: Option<String>,
}

/// A card of a session.
#[derive(Debug, Args)]
pub struct OnCard {
    /// The session.
    pub session: String,
    /// The card; else the open one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub card: Option<String>,
}

/// `quire demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Let the demo play itself to the end.
    #[arg(long)]
    pub auto: bool,
}

/// `quire chat`.
#[derive(Debug, Args)]
pub struct Chat {
    /// A session to go on with, or a pack (its name, or its folder) for a new one.
    pub pack_or_session: String,
    /// A title, for a new session.
    #[arg(long)]
    pub title: Option<String>,
    /// A model profile, or `scripted:FILE`, for a new session.
    #[arg(long, value_name = "PROFILE")]
    pub model: Option<String>,
    /// The agent's rounds between two of your actions, for a new session.
    #[arg(long, value_name = "ROUNDS")]
    pub burst: Option<u32>,
}

/// `quire new`.
#[derive(Debug, Args)]
pub struct New {
    /// The pack: its name, or its folder. Without one the session asks for it.
    pub pack: Option<String>,
    /// A title.
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// A model profile, or `scripted:FILE` for a scenario that plays the model.
    #[arg(long, value_name = "PROFILE")]
    pub model: Option<String>,
    /// The agent's rounds between two of your actions.
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub burst: Option<u32>,
}

/// `quire say`.
#[derive(Debug, Args)]
pub struct Say {
    /// The session.
    pub session: String,
    /// Your words; several are joined by spaces. Without any, they are read from stdin.
    pub text: Vec<String>,
    /// A value of an intake field.
    #[arg(long = "set", value_name = "FIELD=VALUE", allow_hyphen_values = true)]
    pub values: Vec<String>,
}

/// `quire reject`.
#[derive(Debug, Args)]
pub struct Reject {
    /// The session.
    pub session: String,
    /// What to mend, or why not.
    #[arg(long, allow_hyphen_values = true)]
    pub reason: Option<String>,
    /// The artifact; else the pending one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true, conflicts_with = "decision")]
    pub artifact: Option<String>,
    /// The decision; else the pending one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub decision: Option<String>,
}

/// `quire answer`.
#[derive(Debug, Args)]
pub struct Answer {
    /// The session.
    pub session: String,
    /// A question and its answer: an option's letter, or your own words.
    #[arg(required = true, value_name = "QUESTION=ANSWER")]
    pub answers: Vec<String>,
    /// The card; else the open one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub card: Option<String>,
}

/// `quire edit`.
#[derive(Debug, Args)]
pub struct Edit {
    /// The session.
    pub session: String,
    /// The tag.
    pub tag: String,
    /// The item you edited; else the newest.
    #[arg(long, value_name = "ITEM", allow_hyphen_values = true)]
    pub base: Option<String>,
    /// The whole new text; else it is read from stdin.
    #[arg(long, allow_hyphen_values = true)]
    pub text: Option<String>,
}

/// `quire edit-cell`.
#[derive(Debug, Args)]
pub struct EditCell {
    /// The session.
    pub session: String,
    /// The table's tag.
    pub tag: String,
    /// The cell.
    pub key: String,
    /// The new value: JSON, or words.
    #[arg(allow_negative_numbers = true)]
    pub value: String,
    /// The revision you saw; else the present one.
    #[arg(long, value_name = "REV")]
    pub rev: Option<u64>,
}

/// `quire release-cell`.
#[derive(Debug, Args)]
pub struct ReleaseCell {
    /// The session.
    pub session: String,
    /// The table's tag.
    pub tag: String,
    /// The cell.
    pub key: String,
    /// The revision you saw; else the present one.
    #[arg(long, value_name = "REV")]
    pub rev: Option<u64>,
}

/// `quire select`.
#[derive(Debug, Args)]
pub struct Select {
    /// The session.
    pub session: String,
    /// The pack: its name, or its folder.
    pub pack: String,
}

/// `quire set-budget`. What is not given stays.
#[derive(Debug, Args)]
pub struct SetBudget {
    /// The session.
    pub session: String,
    /// Model rounds in all, or `none`.
    #[arg(long, value_name = "N")]
    pub rounds: Option<String>,
    /// Tokens in all, or `none`.
    #[arg(long, value_name = "N")]
    pub tokens: Option<String>,
    /// Money in all, in the price table's currency, or `none`.
    #[arg(long, value_name = "AMOUNT")]
    pub money: Option<String>,
    /// Time that models work in all: `90s`, `15m`, `2h`, or `none`.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
}

/// `quire upgrade-pack`.
#[derive(Debug, Args)]
pub struct UpgradePack {
    /// The session.
    pub session: String,
    /// The pack: its name, or its folder; else the present version of the session's own.
    pub pack: Option<String>,
}

/// `quire context`.
#[derive(Debug, Args)]
pub struct Context {
    /// The session.
    pub session: String,
    /// The run; else the latest.
    #[arg(allow_negative_numbers = true)]
    pub run: Option<String>,
    /// Print the whole prompt.
    #[arg(long)]
    pub prompt: bool,
}

/// `quire model …`.
#[derive(Debug, Args)]
pub struct Model {
    /// What to do.
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// One command on models.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Add a model under a name of yours.
    Add(ModelAdd),
    /// Change what is known of a model; what is not given stays.
    Set(ModelSet),
    /// List the models there are.
    List,
    /// Ask a model what it can do, and keep what is found out.
    Test(OnModel),
    /// Remove a model, and its key where it is kept here.
    Remove(OnModel),
    /// Look for model servers on this machine.
    Find,
}

/// A model.
#[derive(Debug, Args)]
pub struct OnModel {
    /// Its name; `environment` is the one that the environment's variables name.
    #[arg(default_value = "default")]
    pub name: String,
}

/// `quire model add`.
#[derive(Debug, Args)]
pub struct ModelAdd {
    /// Its name; the one called `default` is used where nothing else is said.
    #[arg(default_value = "default")]
    pub name: String,
    /// A provider or a server that is known.
    #[arg(long, required_unless_present = "url", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)))]
    pub preset: Option<String>,
    /// What the server speaks; else what the preset does, or `openai`.
    #[arg(long, value_enum, conflicts_with = "preset")]
    pub kind: Option<ModelKind>,
    /// The variable that holds its key.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_stdin")]
    pub key_env: Option<String>,
    /// Read its key from stdin, and keep it in a file that only you may read.
    #[arg(long)]
    pub key_stdin: bool,
    /// Keep that key in the system's keyring instead.
    #[arg(long, requires = "key_stdin")]
    pub keyring: bool,
    /// It wants no key.
    #[arg(long, conflicts_with_all = ["key_env", "key_stdin"])]
    pub no_key: bool,
    /// All else.
    #[command(flatten)]
    pub settings: ModelSettings,
}

/// `quire model set`.
#[derive(Debug, Args)]
pub struct ModelSet {
    /// Its name.
    #[arg(default_value = "default")]
    pub name: String,
    /// What changes.
    #[command(flatten)]
    pub settings: ModelSettings,
}

/// What can be said of a model when it is added, and later.
#[derive(Debug, Args)]
pub struct ModelSettings {
    /// The server's address, up to the version: http://localhost:11434/v1.
    #[arg(long)]
    pub url: Option<String>,
    /// The model's name there.
    #[arg(long)]
    pub model: Option<String>,
    /// Its context in tokens, prompt and reply together.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// The most tokens of a reply.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub reply: Option<u32>,
    /// How it is told to act; `quire model test` finds out what it can.
    #[arg(long, value_enum)]
    pub tool_mode: Option<ModelToolMode>,
    /// Whether plain reasoning goes back to it with the calls it led to.
    #[arg(long, value_name = "BOOL")]
    pub echo_reasoning: Option<bool>,
    /// Seconds the server may be silent.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub silence: Option<u32>,
    /// A further parameter: its value is JSON, or words; `NAME=` takes it away.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// The price of a million tokens of the prompt.
    #[arg(long, value_name = "AMOUNT")]
    pub price_in: Option<String>,
    /// The price of a million tokens of the prompt that come from the provider's cache; else that of all others.
    #[arg(long, value_name = "AMOUNT")]
    pub price_cached: Option<String>,
    /// The price of a million tokens of the reply.
    #[arg(long, value_name = "AMOUNT")]
    pub price_out: Option<String>,
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModelKind {
    /// Chat completions of OpenAI, as most do.
    Openai,
    /// Messages of Anthropic.
    Anthropic,
    /// Contents of Gemini.
    Gemini,
}

/// How a model is told to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ModelToolMode {
    /// Tools are offered, calls come as calls.
    Native,
    /// The server holds its reply to a schema.
    JsonSchema,
    /// It is told in words, and its text is read.
    Text,
}

/// `quire pack …`.
#[derive(Debug, Args)]
pub struct Pack {
    /// What to do.
    #[command(subcommand)]
    pub command: PackCommand,
}

/// One command on packs.
#[derive(Debug, Subcommand)]
pub enum PackCommand {
    /// Make a new pack that passes its own test, ready to be changed.
    New(PackNew),
    /// Read a pack to the end and say what is wrong with it; also a folder of Agent Skills.
    Check {
        /// The pack: its folder, or its name.
        pack: String,
    },
    /// Play a pack's own scenarios, and compare what comes with what is kept beside them.
    Test {
        /// The pack: its folder, or its name.
        pack: String,
        /// Keep what comes now; `UPDATE=1` does the same.
        #[arg(long, env = "UPDATE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
        update: bool,
    },
    /// List the packs there are.
    List,
    /// Copy a pack into the data folder, from a folder, a .zip or a .tar.gz. No code runs.
    Install(PackInstall),
}

/// `quire pack new`. What is not given is asked.
#[derive(Debug, Args)]
pub struct PackNew {
    /// The new folder; its last name is the pack's name.
    pub folder: Option<PathBuf>,
    /// What comes of it, in a sentence.
    #[arg(long, value_name = "SENTENCE")]
    pub purpose: Option<String>,
    /// A text to be read, or a play in turns.
    #[arg(long, value_enum)]
    pub kind: Option<PackKind>,
    /// The language of its prompts.
    #[arg(long, value_enum)]
    pub language: Option<PackLanguage>,
}

/// What a new pack is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PackKind {
    /// A text to be read.
    Novel,
    /// A play in turns.
    Dialogue,
}

/// The language of a new pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PackLanguage {
    /// English.
    En,
    /// Chinese.
    Zh,
}

/// `quire pack install`.
#[derive(Debug, Args)]
pub struct PackInstall {
    /// A pack's folder, or an archive of it: .zip, .tar.gz, .tgz.
    pub source: PathBuf,
    /// The name to install it under; else its own.
    #[arg(long)]
    pub name: Option<String>,
    /// Replace another version of the same name; else both are kept.
    #[arg(long)]
    pub replace: bool,
}

/// `quire task …`.
#[derive(Debug, Args)]
pub struct Task {
    /// What to do.
    #[command(subcommand)]
    pub command: TaskCommand,
}

/// One command on deep tasks.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Start a deep task, and stay until it is over.
    Start(StartTask),
    /// List a session's deep tasks.
    List(OnSession),
    /// Show a deep task and its result.
    Show(OnTask),
    /// End a deep task; what it has found is kept.
    Cancel(OnTask),
    /// Stay until a deep task is over, or all are; goes on with what a stopped program left.
    Watch {
        /// The session.
        session: String,
        /// The task; else all of them.
        task: Option<u64>,
    },
}

/// `quire task start`.
#[derive(Debug, Args)]
pub struct StartTask {
    /// The session.
    pub session: String,
    /// What to find out: all that the sub-agent is told. Without any, it is read from stdin.
    pub task: Vec<String>,
    /// A name for it.
    #[arg(long)]
    pub title: Option<String>,
    /// A tag or pattern of the book that it may search and read; else it sees nothing of the book.
    #[arg(long = "grant", value_name = "PATTERN")]
    pub grants: Vec<String>,
    /// Do not wait; `quire task watch` goes on.
    #[arg(long)]
    pub detach: bool,
}

/// A deep task of a session.
#[derive(Debug, Args)]
pub struct OnTask {
    /// The session.
    pub session: String,
    /// The task.
    pub task: u64,
}

/// `quire tool …`.
#[derive(Debug, Args)]
pub struct Tool {
    /// What to do.
    #[command(subcommand)]
    pub command: ToolCommand,
}

/// One command on tool servers.
#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// Add a server, or change one: a command after `--`, or a URL.
    Add(AddTool),
    /// List the servers.
    List,
    /// Start a server, and list its tools and what deep tasks get of them.
    Test {
        /// The server.
        name: String,
    },
    /// Remove a server.
    Remove {
        /// The server.
        name: String,
    },
}

/// `quire tool add`. What is not given stays, where the server is there.
#[derive(Debug, Args)]
pub struct AddTool {
    /// A name: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Where a running server is reached, by streamable HTTP.
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// A variable of the program's environment.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// A tool that deep tasks may use although the server does not mark it as only reading.
    #[arg(long = "tick", value_name = "TOOL")]
    pub ticked: Vec<String>,
    /// Where its tools are used.
    #[arg(long = "context", value_enum, value_name = "CONTEXT")]
    pub contexts: Vec<ToolContext>,
    /// How long a call may take: `90s`, `2m`.
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// The program and its arguments.
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// Where tools are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ToolContext {
    /// Beside the user.
    Foreground,
    /// In deep tasks.
    Background,
}

/// `quire mcp`.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Serve by streamable HTTP on this loopback address instead of stdin and stdout.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<std::net::SocketAddr>,
}
