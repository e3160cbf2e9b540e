//! Tool servers and a client that we did not write: `quire` speaks MCP with each, both ways round.
//!
//! A deep task works with two real servers over stdio and one over streamable HTTP, its model played by a scenario; the
//! public inspector lists and calls what `quire mcp` serves.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::packs;
use crate::shell::{command, read, run, target};

/// Pinned, as name and version.
const PACKAGES: &[(&str, &str)] = &[
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    ("@modelcontextprotocol/inspector", "2.12.0"),
];

/// Where the HTTP server listens: it takes no port of the system's choice.
const PORT: &str = "39127";

/// Speaks with all of them.
///
/// # Errors
/// When the packages cannot be installed, or an answer is not what it should be.
pub fn check() -> Result<()> {
    let quire = packs::quire()?;
    let modules = install()?;
    let data = target().join("xtask/mcp-data");
    if data.exists() {
        std::fs::remove_dir_all(&data).with_context(|| format!("cannot clear {}", data.display()))?;
    }
    let files = data.join("files");
    std::fs::create_dir_all(&files).with_context(|| format!("cannot make {}", files.display()))?;
    std::fs::write(files.join("lamps.txt"), "Paraffin lamps. 灯\n").context("cannot write a file to be read")?;
    let ask = |arguments: &[&str]| -> Result<Value> {
        let printed = read(command(&quire).args(arguments).arg("--json").env("QUIRE_DATA", &data))?;
        serde_json::from_str(&printed).with_context(|| format!("`quire {}` printed no JSON: {printed}", arguments.join(" ")))
    };
    let add = |name: &str, script: &Path, last: &str| -> Result<()> {
        let script = script.display().to_string();
        run(command(&quire).args(["tool", "add", name, "--", "node", &script, last]).env("QUIRE_DATA", &data))
    };
    let everything = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    let folder = files.display().to_string();
    add("everything", &everything, "stdio")?;
    add("files", &modules.join("@modelcontextprotocol/server-filesystem/dist/index.js"), &folder)?;
    let _server = HttpServer::start(&everything)?;
    let url = format!("http://127.0.0.1:{PORT}/mcp");
    run(command(&quire).args(["tool", "add", "web", "--url", &url]).env("QUIRE_DATA", &data))?;

    let scenario = data.join("dig.scenario");
    let file = files.join("lamps.txt").display().to_string().replace('\\', "/");
    std::fs::write(
        &scenario,
        format!(
            "pack short-story\n\
             task call read_text_file {{\"path\": \"{file}\"}}\n and call everything_echo {{\"message\": \"stdio\"}}\n and call web_echo {{\"message\": \"http\"}}\n \
             and call everything_get-tiny-image {{}}\n and call write_file {{\"path\": \"{file}\", \"content\": \"\"}}\n\
             task text: By paraffin.\n"
        ),
    )
    .context("cannot write the scenario")?;
    let new = ask(&["new", "short-story", "--model", &format!("scripted:{}", scenario.display())])?;
    let session = new["session"].as_str().context("`quire new --json` names the session")?;
    let task = ask(&["task", "start", session, "How were lamps lit?"])?;
    ensure!(task["state"] == "done" && task["result"]["content"] == "By paraffin.", "the task came to another end: {task}");
    let journal = read(command(&quire).args(["journal", session, "--json"]).env("QUIRE_DATA", &data))?;
    for told in ["Paraffin lamps. 灯", "Echo: stdio", "Echo: http", "(an image (image/png"] {
        ensure!(journal.contains(told), "no tool answered `{told}`: {journal}");
    }
    let kept = std::fs::read_to_string(files.join("lamps.txt")).context("the file is gone")?;
    ensure!(!kept.is_empty(), "a tool that may act was called although nobody ticked it");

    let inspector = modules.join(".bin/mcp-inspector");
    let inspect = |arguments: &[&str]| -> Result<Value> {
        let mut node = command("node");
        node.arg(&inspector).arg("--cli").arg(&quire).arg("mcp").args(["-e", &format!("QUIRE_DATA={}", data.display())]);
        let printed = read(node.args(arguments).env("QUIRE_DATA", &data))?;
        serde_json::from_str(&printed).with_context(|| format!("the inspector printed no JSON: {printed}"))
    };
    let tools = inspect(&["--method", "tools/list"])?;
    let names = tools["tools"].as_array().context("the inspector lists tools")?;
    ensure!(names.iter().any(|tool| tool["name"] == "submit_input"), "the actions are not served: {tools}");
    let shown = inspect(&["--method", "tools/call", "--tool-name", "show_session", "--tool-arg", &format!("session={session}")])?;
    ensure!(shown["structuredContent"]["phase"] == "waiting_user", "the session is not shown: {shown}");
    Ok(())
}

/// Installs the packages below `target/`, unless they lie there, and returns the folder of modules.
fn install() -> Result<PathBuf> {
    let folder = target().join("xtask/npm/mcp");
    let modules = folder.join("node_modules");
    let is_there = |(name, version): &(&str, &str)| {
        let package = std::fs::read_to_string(modules.join(name).join("package.json")).ok();
        let package = package.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        package.is_some_and(|package| package["version"] == *version)
    };
    if !PACKAGES.iter().all(is_there) {
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut npm = command("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error", "--prefix"]);
        npm.arg(&folder).args(PACKAGES.iter().map(|(name, version)| format!("{name}@{version}")));
        run(&mut npm).context("this stage needs node and npm")?;
    }
    Ok(modules)
}

/// The server over streamable HTTP, ended with this value.
struct HttpServer(Child);

impl HttpServer {
    fn start(script: &Path) -> Result<Self> {
        let mut node = command("node");
        let mut child = node
            .arg(script)
            .arg("streamableHttp")
            .env("PORT", PORT)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start node")?;
        let mut printed = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let listens = printed.any(|line| line.is_ok_and(|line| line.contains("listening on port")));
        // Its later words must not block it.
        std::thread::spawn(move || printed.for_each(drop));
        match listens {
            true => Ok(Self(child)),
            false => bail!("the server ended before it listened: {:?}", child.wait()?),
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // One that has ended by itself needs no ending.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
