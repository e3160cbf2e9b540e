//! `quire tool`: the servers whose tools deep tasks work with.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use quire_adapters::tools::mcp::config::{Reach, ServerConfig, ToolsConfig};
use quire_adapters::tools::mcp::{McpTools, Offered};
use quire_core::deep_task::{BackgroundTools, ToolEffect};
use quire_runtime::ports::{RuntimeContext, ToolHost as _};
use serde_json::{Value, json};

use super::act;
use crate::options::{AddTool, ToolCommand, ToolContext};
use crate::report::{self, Unknown, Usage};

/// Runs one of the commands.
pub async fn tool(folder: &Path, command: ToolCommand, is_json: bool) -> Result<ExitCode> {
    match command {
        ToolCommand::Add(server) => add(folder, server, is_json),
        ToolCommand::List => list(folder, is_json),
        ToolCommand::Test { name } => test(folder, &name, is_json).await,
        ToolCommand::Remove { name } => remove(folder, &name, is_json),
    }
}

fn add(folder: &Path, given: AddTool, is_json: bool) -> Result<ExitCode> {
    let mut config = ToolsConfig::load(folder)?;
    let known = config.servers.iter().position(|server| server.name == given.name);
    let mut server = match (known, given.command.split_first(), &given.url) {
        (Some(index), None, None) => config.servers[index].clone(),
        (_, Some((command, arguments)), None) => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            ServerConfig::program(&given.name, command, &arguments)
        }
        (_, None, Some(url)) => ServerConfig::url(&given.name, url),
        (None, None, None) | (_, Some(_), Some(_)) => {
            return Err(Usage(format!("give a command, `quire tool add {} -- PROGRAM …`, or a url", given.name)).into());
        }
    };
    if let Some(index) = known {
        // A new command for a known name keeps what the user has settled about it.
        let before = &config.servers[index];
        (server.env, server.ticked) = (before.env.clone(), before.ticked.clone());
        (server.contexts, server.timeout_ms) = (before.contexts.clone(), before.timeout_ms);
    }
    for variable in &given.variables {
        let (name, value) = variable.split_once('=').ok_or_else(|| Usage(format!("`--env {variable}`: write NAME=VALUE")))?;
        server.env.insert(name.to_owned(), value.to_owned());
    }
    server.ticked.extend(given.ticked);
    if !given.contexts.is_empty() {
        server.contexts = given.contexts.into_iter().map(context).collect();
    }
    if let Some(timeout) = &given.timeout {
        let timeout_ms = act::milliseconds(timeout).filter(|timeout_ms| *timeout_ms > 0);
        server.timeout_ms = timeout_ms.ok_or_else(|| Usage(format!("`--timeout {timeout}`: write a time like `90s` or `2m`")))?;
    }
    let view = view(&server);
    match known {
        Some(index) => config.servers[index] = server,
        None => config.servers.push(server),
    }
    config.check().map_err(|error| Usage(error.to_string()))?;
    config.save(folder)?;
    if is_json {
        println!("{view}");
    } else {
        println!("{} is in place; `quire tool test {}` starts it and shows its tools.", given.name, given.name);
    }
    Ok(ExitCode::from(report::FINE))
}

fn context(given: ToolContext) -> RuntimeContext {
    match given {
        ToolContext::Foreground => RuntimeContext::Foreground,
        ToolContext::Background => RuntimeContext::Background,
    }
}

fn list(folder: &Path, is_json: bool) -> Result<ExitCode> {
    let config = ToolsConfig::load(folder)?;
    if is_json {
        let servers: Vec<Value> = config.servers.iter().map(view).collect();
        println!("{}", json!({ "deepTask": config.deep_task, "servers": servers }));
        return Ok(ExitCode::from(report::FINE));
    }
    if config.servers.is_empty() {
        println!("There is no tool server; `quire tool add NAME -- PROGRAM …` adds one.");
    }
    for server in &config.servers {
        let ticked: Vec<&str> = server.ticked.iter().map(String::as_str).collect();
        let ticked = if ticked.is_empty() { String::new() } else { format!("; ticked: {}", ticked.join(", ")) };
        println!("{}: {}{ticked}", server.name, reached(server));
    }
    Ok(ExitCode::from(report::FINE))
}

async fn test(folder: &Path, name: &str, is_json: bool) -> Result<ExitCode> {
    let config = ToolsConfig::load(folder)?;
    let server = config.servers.iter().find(|server| server.name == name).cloned().ok_or_else(|| unknown(&config, name))?;
    let ticked = server.ticked.clone();
    let host = McpTools::new(vec![server]);
    let offered = host.offered(name).await;
    let toolbox = match offered {
        Ok(_) => host.tools(RuntimeContext::Background).await,
        Err(_) => Default::default(),
    };
    host.close().await;
    let offered = offered.map_err(anyhow::Error::msg)?;
    let (in_tasks, faults) = BackgroundTools::of(toolbox.tools);
    let is_in_tasks = |offered: &Offered| in_tasks.iter().any(|tool| tool.own_name == offered.tool.own_name);
    if is_json {
        let tools: Vec<Value> = (offered.iter())
            .map(|offered| {
                json!({
                    "name": offered.tool.own_name,
                    "description": offered.tool.description,
                    "readOnly": offered.is_read_only,
                    "ticked": ticked.contains(&offered.tool.own_name),
                    "inTasks": is_in_tasks(offered),
                })
            })
            .collect();
        println!("{}", json!({ "name": name, "tools": tools, "faults": faults }));
        return Ok(ExitCode::from(report::FINE));
    }
    println!("{name} answers; it has {} tools. In deep tasks (●):", offered.len());
    for offered in &offered {
        let mark = if is_in_tasks(offered) { "●" } else { "○" };
        let effect = match offered.tool.effect {
            ToolEffect::Reads => "only reads",
            ToolEffect::Idempotent => "may act, twice as once",
            ToolEffect::Acts => "may act",
        };
        let first_line = beginning(&offered.tool.description);
        println!("  {mark} {} ({effect}): {first_line}", offered.tool.own_name);
    }
    for fault in faults {
        println!("  {fault}");
    }
    if offered.iter().any(|offered| !is_in_tasks(offered)) {
        println!("`quire tool add {name} --tick TOOL` lets deep tasks use one that may act.");
    }
    Ok(ExitCode::from(report::FINE))
}

/// Returns the first sentence of a description, or the beginning of a long one.
fn beginning(description: &str) -> String {
    const LETTERS_MAX: usize = 100;
    let line = description.lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(sentence, _)| sentence);
    let mut short: String = sentence.chars().take(LETTERS_MAX).collect();
    if short.len() < sentence.len() {
        short.push('…');
    }
    short
}

fn remove(folder: &Path, name: &str, is_json: bool) -> Result<ExitCode> {
    let mut config = ToolsConfig::load(folder)?;
    let index = config.servers.iter().position(|server| server.name == name).ok_or_else(|| unknown(&config, name))?;
    let removed = config.servers.remove(index);
    config.save(folder)?;
    if is_json {
        println!("{}", view(&removed));
    } else {
        println!("{name} is removed.");
    }
    Ok(ExitCode::from(report::FINE))
}

fn unknown(config: &ToolsConfig, name: &str) -> Unknown {
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    let there_are = if names.is_empty() { "there is none yet".to_owned() } else { format!("there are: {}", names.join(", ")) };
    Unknown(format!("there is no tool server `{name}`; {there_are}"))
}

/// Shows a server without the values of its environment: they may be keys.
fn view(server: &ServerConfig) -> Value {
    json!({
        "name": server.name,
        "command": server.command,
        "args": server.args,
        "env": server.env.keys().collect::<Vec<_>>(),
        "url": server.url,
        "contexts": server.contexts,
        "ticked": server.ticked,
        "timeoutMs": server.timeout_ms,
    })
}

fn reached(server: &ServerConfig) -> String {
    match server.reach() {
        Ok(Reach::Program(command)) => {
            std::iter::once(command).chain(server.args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
        }
        Ok(Reach::Url(url)) => url.to_owned(),
        Err(error) => error.to_string(),
    }
}
