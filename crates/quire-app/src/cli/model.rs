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
use crate::words::Lang;

/// Runs one command on models.
pub async fn run(folder: &Path, lang: Lang, command: ModelCommand, is_json: bool) -> Result<ExitCode> {
    let profiles = Profiles::of(folder);
    match command {
        ModelCommand::Add(add) => added(&profiles, lang, add, is_json),
        ModelCommand::Set(set) => changed(&profiles, lang, set, is_json),
        ModelCommand::List => list(&profiles, lang, is_json),
        ModelCommand::Test(on) => test(&profiles, lang, &on.name, is_json).await,
        ModelCommand::Remove(on) => removed(&profiles, lang, &on.name, is_json),
        ModelCommand::Find => find(lang, is_json).await,
    }
}

fn added(profiles: &Profiles, lang: Lang, add: ModelAdd, is_json: bool) -> Result<ExitCode> {
    if [ENVIRONMENT, DEMO].contains(&add.name.as_str()) {
        return Err(Unknown(lang.model_reserved(add.name)).into());
    }
    let Some(model) = add.settings.model.clone() else {
        return Err(Usage(lang.model_unnamed()).into());
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
        key = Some(read_key(lang)?);
    }
    settle(lang, &mut profile, add.settings)?;
    // An address that cannot be one is told now, and not by the first session. Where its key is to come from a variable,
    // that may be set later.
    profile.provider(key.clone()).map_err(refused)?;
    profiles.add(profile.clone(), key).map_err(refused)?;
    tell(profiles, lang, &profile, is_json);
    if !is_json {
        println!("{}", lang.model_next_test(&profile.name));
    }
    Ok(ExitCode::from(report::FINE))
}

fn changed(profiles: &Profiles, lang: Lang, set: ModelSet, is_json: bool) -> Result<ExitCode> {
    let mut profile = profiles.get(&set.name).map_err(refused)?;
    settle(lang, &mut profile, set.settings)?;
    profile.provider(None).map_err(refused)?;
    profiles.replace(profile.clone()).map_err(refused)?;
    tell(profiles, lang, &profile, is_json);
    Ok(ExitCode::from(report::FINE))
}

/// Takes over what was given; what was not stays.
fn settle(lang: Lang, profile: &mut Profile, settings: ModelSettings) -> Result<()> {
    let amount = |text: &Option<String>| {
        let read = |text: &String| micros(text).ok_or_else(|| Usage(lang.model_bad_price(text)));
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
            return Err(Usage(lang.model_bad_parameter(parameter)).into());
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

fn read_key(lang: Lang) -> Result<SecretString> {
    if std::io::stdin().is_terminal() {
        eprintln!("{}", lang.model_type_key());
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("the key on stdin cannot be read")?;
    match line.trim() {
        "" => Err(Usage(lang.model_no_key()).into()),
        key => Ok(key.into()),
    }
}

fn list(profiles: &Profiles, lang: Lang, is_json: bool) -> Result<ExitCode> {
    let listed = profiles.list()?;
    if is_json {
        println!("{}", json!({ "profiles": listed.iter().map(|profile| view(profiles, profile)).collect::<Vec<_>>() }));
        return Ok(ExitCode::from(report::FINE));
    }
    if listed.is_empty() {
        println!("{}", lang.models_none());
    }
    for profile in listed {
        print!("{}", shown(profiles, lang, &profile));
    }
    if let Ok((environment, _)) = models::from_environment() {
        println!("{}", lang.model_environment(ENVIRONMENT, &environment.model, environment.shown_url()));
    }
    Ok(ExitCode::from(report::FINE))
}

fn removed(profiles: &Profiles, lang: Lang, name: &str, is_json: bool) -> Result<ExitCode> {
    let profile = profiles.remove(name).map_err(refused)?;
    if is_json {
        println!("{}", json!({ "removed": profile.name }));
    } else {
        println!("{}", lang.model_removed(name));
    }
    Ok(ExitCode::from(report::FINE))
}

async fn test(profiles: &Profiles, lang: Lang, name: &str, is_json: bool) -> Result<ExitCode> {
    let is_stored = name != ENVIRONMENT;
    let (profile, key) = if is_stored {
        let profile = profiles.get(name).map_err(refused)?;
        let key = profiles.key(&profile).map_err(refused)?;
        (profile, key)
    } else {
        models::from_environment().map_err(|failure| Unknown(failure.message))?
    };
    eprintln!("{}", lang.model_asking(&profile.model, profile.shown_url()));
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
        print!("{}", table(lang, &found));
        let mode = found.tool_mode.as_str();
        match (answers, is_stored) {
            (true, true) => println!("{}", lang.model_kept(name, mode)),
            (true, false) => println!("{}", lang.model_not_kept(mode)),
            (false, _) => println!("{}", lang.model_silent()),
        }
    }
    Ok(ExitCode::from(if answers { report::FINE } else { report::FAILED }))
}

/// Shows what was found, an ability a line, with the provider's own words.
fn table(lang: Lang, found: &ProbeReport) -> String {
    let one_line = |words: &str| words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for finding in &found.findings {
        let verdict = match finding.verdict {
            Verdict::Yes => lang.verdict_yes(),
            Verdict::No => lang.verdict_no(),
            Verdict::Unclear => lang.verdict_unclear(),
        };
        text.push_str(&format!("  {:<15} {verdict:<8} {}\n", ability(lang, finding.ability), one_line(&finding.words)));
    }
    for (parameter, words) in &found.refused {
        text.push_str(&(lang.model_refuses(parameter, one_line(words)) + "\n"));
    }
    text
}

fn ability(lang: Lang, ability: Ability) -> String {
    match ability {
        Ability::Chat => lang.ability_chat(),
        Ability::Streaming => lang.ability_streaming(),
        Ability::NativeTools => lang.ability_native_tools(),
        Ability::ForcedTool => lang.ability_forced_tool(),
        Ability::ParallelCalls => lang.ability_parallel_calls(),
        Ability::JsonSchema => lang.ability_json_schema(),
        Ability::JsonObject => lang.ability_json_object(),
        Ability::Reasoning => lang.ability_reasoning(),
        Ability::Usage => lang.ability_usage(),
        Ability::CachedTokens => lang.ability_cached_tokens(),
        Ability::ContextSize => lang.ability_context_size(),
    }
}

async fn find(lang: Lang, is_json: bool) -> Result<ExitCode> {
    let servers = profile::find_local().await;
    if is_json {
        let servers: Vec<Value> = (servers.iter())
            .map(|server| json!({ "preset": server.preset.name, "url": server.base_url, "models": server.models }))
            .collect();
        println!("{}", json!({ "servers": servers }));
        return Ok(ExitCode::from(report::FINE));
    }
    if servers.is_empty() {
        println!("{}", lang.servers_none());
    }
    for server in servers {
        println!("{} ({}):", server.base_url, server.preset.name);
        for model in server.models {
            println!("  quire model add --preset {} --model {model:?}", server.preset.name);
        }
    }
    Ok(ExitCode::from(report::FINE))
}

fn tell(profiles: &Profiles, lang: Lang, profile: &Profile, is_json: bool) {
    if is_json {
        println!("{}", json!({ "profile": view(profiles, profile) }));
    } else {
        print!("{}", shown(profiles, lang, profile));
    }
}

/// Shows a profile as JSON: all of it, but for what in its address may be a secret.
fn view(profiles: &Profiles, profile: &Profile) -> Value {
    let mut view = json!(profile);
    view["base_url"] = json!(profile.shown_url());
    view["has_key"] = json!(profiles.key(profile).is_ok());
    view
}

/// Shows a profile in a few lines.
fn shown(profiles: &Profiles, lang: Lang, profile: &Profile) -> String {
    let default = if profile.name == DEFAULT { lang.model_default() } else { String::new() };
    let tested = if profile.probed.is_some() { lang.model_tested() } else { lang.model_untested() };
    let place = match &profile.key {
        KeySource::None => lang.key_none(),
        KeySource::Env { var } => lang.key_variable(var),
        KeySource::File => lang.key_file(),
        KeySource::Keyring => lang.key_keyring(),
    };
    let key = profiles.key(profile).map_or_else(|error| error.to_string(), |_| place);
    let mut lines = vec![
        lang.model_line(&profile.name, &profile.model, profile.shown_url(), default),
        lang.model_context(profile.context_tokens, profile.tool_mode.as_str(), tested),
        format!("  {key}"),
    ];
    if let Some(price) = profile.price {
        let amount = |micros: u64| micros as f64 / 1e6;
        lines.push(lang.model_price(amount(price.input_micros), amount(price.cached_micros), amount(price.output_micros)));
    }
    lines.join("\n") + "\n"
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
