//! A data folder and the program on it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A data folder of its own, and what the program's environment says.
pub struct Desk {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

/// What one run of the program came to.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Desk {
    /// Makes an empty folder; no model is set.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), variables: vec![] }
    }

    /// Sets a variable of the program's environment.
    pub fn with(mut self, variable: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((variable, value.into()));
        self
    }

    /// Points the program to a server.
    pub fn with_server(self, url: &str) -> Self {
        self.with("QUIRE_MODEL_URL", format!("{url}/v1")).with("QUIRE_MODEL_NAME", "lamp-1")
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Prepares the program with arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quire"));
        for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("QUIRE_") || name.starts_with("OPENAI_")) {
            command.env_remove(variable);
        }
        // What a person reads is English here, whoever runs the tests.
        command.env("LC_ALL", "C.UTF-8");
        command.env("QUIRE_DATA", self.path().join("data")).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program.
    pub fn quire(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().expect("the program starts"))
    }

    /// Runs the program with a text on its standard input.
    pub fn quire_given(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A program that needs no input may be gone already.
        stdin.write_all(input.as_ref()).ok();
        drop(stdin);
        ran(child.wait_with_output().expect("the program ends"))
    }

    /// Starts the program and does not wait for it.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("the program starts")
    }

    /// Writes a scenario file, and returns the name of the model that speaks from it.
    pub fn scenario(&self, text: &str) -> String {
        let path = self.path().join("model.scenario");
        std::fs::write(&path, text).expect("the scenario can be written");
        format!("scripted:{}", path.display())
    }

    /// Starts a session of the pack `lamp` with a model that speaks from a scenario.
    pub fn start_scripted(&self, scenario: &str) -> String {
        let model = self.scenario(scenario);
        session_of(&self.quire(&["new", &lamp(), "--json", "--model", &model]))
    }

    /// Starts a session of the pack `lamp` with the model that the environment names.
    pub fn start(&self) -> String {
        session_of(&self.quire(&["new", &lamp(), "--json"]))
    }

    /// Returns a session as JSON.
    pub fn show(&self, session: &str) -> Value {
        self.quire(&["show", session, "--json"]).expect(0).json()
    }

    /// Returns a session's records as JSON.
    pub fn journal(&self, session: &str) -> Vec<Value> {
        let ran = self.quire(&["journal", session, "--json"]).expect(0);
        ran.out.lines().map(|line| serde_json::from_str(line).expect("a record is one line of JSON")).collect()
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.path().join("data/quire.db")
    }
}

impl Ran {
    /// Reads standard output as one JSON object.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Makes sure of the exit code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        self
    }
}

/// Collects what a program left.
pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Returns the folder of the pack that most tests play with.
pub fn lamp() -> String {
    format!("{}/tests/packs/lamp", env!("CARGO_MANIFEST_DIR"))
}

fn session_of(ran: &Ran) -> String {
    ran.json()["session"].as_str().unwrap_or_else(|| panic!("a session has begun: {ran:?}")).to_owned()
}

/// Looks until something is there; fails after a time that no healthy program needs.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed().as_secs() < 30, "waited too long until {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
