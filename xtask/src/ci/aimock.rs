//! A whole session of the built-in pack against a model server we did not write (`tests/peers/aimock`).
//!
//! The real program in its own processes, a command each: what one wrote, the next one reads. At the end the server is asked
//! how many requests it had: none was sent twice, none was left out.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::packs;
use crate::shell::{command, read, root, run, target};

/// Its npm name.
const PACKAGE: &str = "@copilotkit/aimock";
/// Pinned: a server that changes its mind must not fail a change of ours.
const VERSION: &str = "1.43.0";
/// Five rounds of the agent, one of each worker.
const REQUESTS: usize = 8;

/// What the writer does, and what the session then waits for.
const PLAY: &[(&[&str], &str)] = &[
    (&["say", "A lighthouse keeper's last night. 灯塔 🕯"], "waiting_user intake"),
    (&["confirm"], "waiting_user review_artifact"),
    (&["accept"], "waiting_user review_artifact"),
    (&["accept"], "waiting_user review_artifact"),
    (&["accept"], "waiting_user input"),
    (&["finish"], "done "),
];

/// Plays it.
///
/// # Errors
/// When the package cannot be installed, a command fails, or the session stands elsewhere than it should.
pub fn check() -> Result<()> {
    let quire = packs::quire()?;
    let script = install()?;
    let server = Server::start(&script)?;
    let data = target().join("xtask/aimock-data");
    if data.exists() {
        std::fs::remove_dir_all(&data).with_context(|| format!("cannot clear {}", data.display()))?;
    }
    let ask = |arguments: &[&str]| -> Result<Value> {
        let mut quire = command(&quire);
        quire.args(arguments).arg("--json").env("QUIRE_DATA", &data);
        quire.env("QUIRE_MODEL_URL", format!("{}/v1", server.url)).env("QUIRE_MODEL_NAME", "mock").env("QUIRE_MODEL_KEY", "none");
        let printed = read(&mut quire)?;
        serde_json::from_str(&printed)
            .with_context(|| format!("`quire {} --json` printed no JSON: {printed}", arguments.join(" ")))
    };
    let new = ask(&["new", "short-story", "--title", "The Empty Line"])?;
    let session = new["session"].as_str().context("`quire new --json` names the session")?;
    for (action, expected) in PLAY {
        let (verb, words) = action.split_first().expect("an action has a verb");
        let arguments = [&[*verb, session], words].concat();
        let state = ask(&arguments)?;
        let found = format!("{} {}", word(&state["phase"]), word(&state["waiting"]["reason"]));
        ensure!(
            found == *expected,
            "after `quire {}` the session stands at `{found}`, not at `{expected}`: {state}",
            arguments.join(" ")
        );
    }
    let requests = server.requests()?;
    ensure!(requests == REQUESTS, "the server was asked {requests} times, not {REQUESTS}: a call was doubled or left out");
    Ok(())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Installs the package below `target/`, unless it lies there, and returns its program.
fn install() -> Result<PathBuf> {
    let folder = target().join("xtask/npm/aimock");
    let package = folder.join("node_modules").join(PACKAGE);
    let installed = std::fs::read_to_string(package.join("package.json")).ok();
    let installed = installed.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    if installed.is_none_or(|package| package["version"] != VERSION) {
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut npm = command("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error", "--prefix"]);
        run(npm.arg(&folder).arg(format!("{PACKAGE}@{VERSION}"))).context("this stage needs node and npm")?;
    }
    Ok(package.join("dist/cli.js"))
}

/// The server, ended with this value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(script: &Path) -> Result<Self> {
        let mut node = command("node");
        node.arg(script).args(["--port", "0", "--strict", "--validate-on-load", "--chunk-size", "7", "--fixtures"]);
        node.arg(root().join("tests/peers/aimock/short-story.json")).stdout(Stdio::piped());
        let mut child = node.spawn().context("cannot start node")?;
        let mut printed = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let url = printed.find_map(|line| Some(line.ok()?.split_once("listening on ")?.1.trim().to_owned()));
        // Its later words must not block it.
        std::thread::spawn(move || printed.for_each(drop));
        match url {
            Some(url) => Ok(Self { child, url }),
            None => bail!("the server ended before it listened: {:?}", child.wait()?),
        }
    }

    /// Says how many requests for a reply it has had.
    fn requests(&self) -> Result<usize> {
        let address = self.url.strip_prefix("http://").context("the server listens on plain HTTP")?;
        let mut stream = TcpStream::connect(address).context("cannot reach the server")?;
        write!(
            stream,
            "GET /__aimock/journal?path=/v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let total = answer.lines().find_map(|line| line.strip_prefix("X-Total-Count: "));
        total.and_then(|total| total.trim().parse().ok()).context("the server does not say how many requests it had")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself needs no ending.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
