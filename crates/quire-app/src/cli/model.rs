//! Commands that look after models: profiles of the data folder, what their models can do, servers on this machine.
//!
//! A key is read from standard input or from a variable, never from the command line, which others on the machine can see;
//! and it is printed nowhere.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use quire_adapters::providers::ToolMode;
use quire_adapters::providers::price::Price;
use quire_adapters::providers::probe::{self, Ability, ProbeReport, Verdict};
use quire_adapters::providers::profile::{self, KeySource, Kind, Profile, ProfileError, Profiles};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::act::micros;
use crate::models::{self, DEFAULT, DEMO, ENVIRONMENT};
use crate::options::{ModelAdd, ModelCommand, ModelKind, ModelSet, ModelSettings, ModelToolMode};
use crate::report::{self, Unknown, Usage};

/// Runs one command on models.
pub async fn run(folder: &Path, command: ModelCommand, is_json: bool) -> Result<ExitCode> {
    let profiles = Profiles::of(folder);
    match command {
        ModelCommand::Add(add) => added(&profiles, add, is_json),
        ModelCommand::Set(set) => changed(&profiles, set, is_json),
        ModelCommand::List => list(&profiles, is_json),
        ModelCommand::Test(on) => test(&profiles, &on.name, is_json).await,
        ModelCommand::Remove(on) => removed(&profiles, &on.name, is_json),
        ModelCommand::Find => find(is_json).await,
    }
}

fn added(profiles: &Profiles, add: ModelAdd, is_json: bool) -> Result<ExitCode> {
    if [ENVIRONMENT, DEMO].contains(&add.name.as_str()) {
        return Err(Unknown(format!("`{}` is always there; choose another name", add.name)).into());
    }
    let Some(model) = add.settings.model.clone() else {
        return Err(
            Usage("name the model as its server does: `--model NAME`; `quire model find` lists local ones".to_owned()).into()
        );
    };
    let mut profile = match add.preset.as_deref() {
        Some(name) => {
            let preset = profile::preset(name).ok_or_else(|| Usage(format!("there is no preset `{name}`")))?;
            Profile::from_preset(&add.name, preset, model)
        }
        None => {
            let url = add.settings.url.clone().unwrap_or_default();
            Profile::new(&add.name, add.kind.map_or(Kind::OpenAi, kind), url, model)
        }
    };
    if add.no_key {
        profile.key = KeySource::None;
    }
    if let Some(var) = add.key_env {
        profile.key = KeySource::Env { var };
    }
    let mut key = None;
    if add.key_stdin {
        profile.key = if add.keyring { KeySource::Keyring } else { KeySource::File };
        key = Some(read_key()?);
    }
    settle(&mut profile, add.settings)?;
    // An address that cannot be one is told now, and not by the first session. Where its key is to come from a variable,
    // that may be set later.
    profile.provider(key.clone()).map_err(refused)?;
    profiles.add(profile.clone(), key).map_err(refused)?;
    tell(profiles, &profile, is_json)?;
    if !is_json {
        println!("  quire model test {}   finds out what it can do", profile.name);
    }
    Ok(ExitCode::from(report::FINE))
}

fn changed(profiles: &Profiles, set: ModelSet, is_json: bool) -> Result<ExitCode> {
    let mut profile = profiles.get(&set.name).map_err(refused)?;
    settle(&mut profile, set.settings)?;
    profile.provider(None).map_err(refused)?;
    profiles.replace(profile.clone()).map_err(refused)?;
    tell(profiles, &profile, is_json)?;
    Ok(ExitCode::from(report::FINE))
}

/// Takes over what was given; what was not stays.
fn settle(profile: &mut Profile, settings: ModelSettings) -> Result<()> {
    let amount = |text: &Option<String>| {
        let read = |text: &String| micros(text).ok_or_else(|| Usage(format!("`{text}` is no price; write it like 2.50")));
        text.as_ref().map(read).transpose()
    };
    let prices = [amount(&settings.price_in)?, amount(&settings.price_cached)?, amount(&settings.price_out)?];
    if prices.iter().any(Option::is_some) {
        let present = profile.price.unwrap_or_default();
        let [input, cached, output] = prices;
        profile.price = Some(Price {
            input_micros: input.unwrap_or(present.input_micros),
            cached_micros: cached.or(input).unwrap_or(present.cached_micros),
            output_micros: output.unwrap_or(present.output_micros),
        });
    }
    for parameter in settings.parameters {
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(Usage(format!("`--param {parameter}`: write NAME=VALUE")).into());
        };
        if value.is_empty() {
            profile.parameters.remove(name);
        } else {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            profile.parameters.insert(name.to_owned(), value);
        }
    }
    profile.base_url = settings.url.unwrap_or_else(|| std::mem::take(&mut profile.base_url));
    profile.model = settings.model.unwrap_or_else(|| std::mem::take(&mut profile.model));
    profile.context_tokens = settings.context.unwrap_or(profile.context_tokens);
    profile.output_tokens_max = settings.reply.or(profile.output_tokens_max);
    profile.tool_mode = settings.tool_mode.map_or(profile.tool_mode, tool_mode);
    profile.echo_reasoning = settings.echo_reasoning.unwrap_or(profile.echo_reasoning);
    profile.silence_max_s = settings.silence.or(profile.silence_max_s);
    Ok(())
}

fn read_key() -> Result<SecretString> {
    if std::io::stdin().is_terminal() {
        eprintln!("Type or paste the key, and end the line.");
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("the key on stdin cannot be read")?;
    match line.trim() {
        "" => Err(Usage("there is no key on stdin; pipe it in, or name a variable with --key-env".to_owned()).into()),
        key => Ok(key.into()),
    }
}

fn list(profiles: &Profiles, is_json: bool) -> Result<ExitCode> {
    let listed = profiles.list()?;
    if is_json {
        println!("{}", json!({ "profiles": listed.iter().map(|profile| view(profiles, profile)).collect::<Vec<_>>() }));
        return Ok(ExitCode::from(report::FINE));
    }
    if listed.is_empty() {
        println!(
            "There is no model yet.\n  quire model find   looks for servers on this machine\n  quire model add    adds a model"
        );
    }
    for profile in listed {
        print!("{}", shown(profiles, &profile));
    }
    if let Ok((environment, _)) = models::from_environment() {
        println!("{ENVIRONMENT}: {} at {}, by the environment's variables", environment.model, environment.shown_url());
    }
    Ok(ExitCode::from(report::FINE))
}

fn removed(profiles: &Profiles, name: &str, is_json: bool) -> Result<ExitCode> {
    let profile = profiles.remove(name).map_err(refused)?;
    if is_json {
        println!("{}", json!({ "removed": profile.name }));
    } else {
        println!("Removed {name}. Sessions that are bound to it wait until there is one of that name again.");
    }
    Ok(ExitCode::from(report::FINE))
}

async fn test(profiles: &Profiles, name: &str, is_json: bool) -> Result<ExitCode> {
    let is_stored = name != ENVIRONMENT;
    let (profile, key) = if is_stored {
        let profile = profiles.get(name).map_err(refused)?;
        let key = profiles.key(&profile).map_err(refused)?;
        (profile, key)
    } else {
        models::from_environment().map_err(|failure| Unknown(failure.message))?
    };
    eprintln!("Asking {} at {}, some fifteen times.", profile.model, profile.shown_url());
    let found = probe::probe(&profile, key).await?;
    let answers = found.verdict(Ability::Chat) == Verdict::Yes;
    if is_stored {
        // What was changed meanwhile stays.
        let mut profile = profiles.get(name).map_err(refused)?;
        profile.learn(found.clone());
        profiles.replace(profile).map_err(refused)?;
    }
    if is_json {
        println!("{}", json!({ "profile": name, "stored": is_stored, "report": found }));
    } else {
        print!("{}", table(&found));
        let kept = if is_stored { format!("Kept in {name}") } else { "Not kept: the environment is no profile".to_owned() };
        match answers {
            true => println!("{kept}: it is told to act by `{}`.", found.tool_mode.as_str()),
            false => println!("It does not answer, so nothing else was asked."),
        }
    }
    Ok(ExitCode::from(if answers { report::FINE } else { report::FAILED }))
}

/// Shows what was found, an ability a line, with the provider's own words.
fn table(found: &ProbeReport) -> String {
    let one_line = |words: &str| words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for finding in &found.findings {
        let verdict = match finding.verdict {
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::Unclear => "unclear",
        };
        text.push_str(&format!("  {:<15} {verdict:<8} {}\n", ability(finding.ability), one_line(&finding.words)));
    }
    for (parameter, words) in &found.refused {
        text.push_str(&format!("  refuses `{parameter}`: {}\n", one_line(words)));
    }
    text
}

fn ability(ability: Ability) -> &'static str {
    match ability {
        Ability::Chat => "chat",
        Ability::Streaming => "streaming",
        Ability::NativeTools => "native tools",
        Ability::ForcedTool => "forced tool",
        Ability::ParallelCalls => "parallel calls",
        Ability::JsonSchema => "JSON schema",
        Ability::JsonObject => "JSON object",
        Ability::Reasoning => "reasoning",
        Ability::Usage => "token counts",
        Ability::CachedTokens => "cached tokens",
        Ability::ContextSize => "context size",
    }
}

async fn find(is_json: bool) -> Result<ExitCode> {
    let servers = profile::find_local().await;
    if is_json {
        let servers: Vec<Value> = (servers.iter())
            .map(|server| json!({ "preset": server.preset.name, "url": server.base_url, "models": server.models }))
            .collect();
        println!("{}", json!({ "servers": servers }));
        return Ok(ExitCode::from(report::FINE));
    }
    if servers.is_empty() {
        println!("No model server answers at the usual ports of this machine; name one with `quire model add --url`.");
    }
    for server in servers {
        println!("{} ({}):", server.base_url, server.preset.name);
        for model in server.models {
            println!("  quire model add --preset {} --model {model:?}", server.preset.name);
        }
    }
    Ok(ExitCode::from(report::FINE))
}

fn tell(profiles: &Profiles, profile: &Profile, is_json: bool) -> Result<()> {
    if is_json {
        println!("{}", json!({ "profile": view(profiles, profile) }));
    } else {
        print!("{}", shown(profiles, profile));
    }
    Ok(())
}

/// Shows a profile as JSON: all of it, but for what in its address may be a secret.
fn view(profiles: &Profiles, profile: &Profile) -> Value {
    let mut view = json!(profile);
    view["base_url"] = json!(profile.shown_url());
    view["has_key"] = json!(profiles.key(profile).is_ok());
    view
}

/// Shows a profile in a few lines.
fn shown(profiles: &Profiles, profile: &Profile) -> String {
    let default = if profile.name == DEFAULT { " (used where nothing else is said)" } else { "" };
    let mut text = format!("{}: {} at {}{default}\n", profile.name, profile.model, profile.shown_url());
    let probed = if profile.probed.is_some() { "tested" } else { "not tested yet" };
    text.push_str(&format!("  context {} tokens, acts by `{}`, {probed}\n", profile.context_tokens, profile.tool_mode.as_str()));
    let place = match &profile.key {
        KeySource::None => "no key".to_owned(),
        KeySource::Env { var } => format!("its key is in the variable {var}"),
        KeySource::File => "its key is in a file that only you may read".to_owned(),
        KeySource::Keyring => "its key is in the system's keyring".to_owned(),
    };
    match profiles.key(profile) {
        Ok(_) => text.push_str(&format!("  {place}\n")),
        Err(error) => text.push_str(&format!("  {error}\n")),
    }
    if let Some(price) = profile.price {
        let amount = |micros: u64| micros as f64 / 1e6;
        text.push_str(&format!(
            "  a million tokens cost {} in, {} cached, {} out\n",
            amount(price.input_micros),
            amount(price.cached_micros),
            amount(price.output_micros)
        ));
    }
    text
}

fn kind(kind: ModelKind) -> Kind {
    match kind {
        ModelKind::Openai => Kind::OpenAi,
        ModelKind::Anthropic => Kind::Anthropic,
        ModelKind::Gemini => Kind::Gemini,
    }
}

fn tool_mode(mode: ModelToolMode) -> ToolMode {
    match mode {
        ModelToolMode::Native => ToolMode::Native,
        ModelToolMode::JsonSchema => ToolMode::JsonSchema,
        ModelToolMode::Text => ToolMode::Text,
    }
}

/// What names something that is not there, or is there already, is refused; the rest has failed.
fn refused(error: ProfileError) -> anyhow::Error {
    match error {
        ProfileError::NoProfile { .. } | ProfileError::Exists(_) => Unknown(error.to_string()).into(),
        ProfileError::BadName(_) => Usage(error.to_string()).into(),
        ProfileError::Unusable { .. } | ProfileError::NoKey { .. } | ProfileError::Broken { .. } | ProfileError::Io { .. } => {
            error.into()
        }
    }
}
