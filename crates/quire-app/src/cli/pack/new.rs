//! `quire pack new`: makes a pack that passes its check and its own test, to be changed from there.
//!
//! Nothing is overwritten: the folder is new, or there is none.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use quire_core::pack::PackFiles;
use rust_embed::RustEmbed;
use serde_json::json;

use super::test::first_kept;
use crate::options::{PackKind, PackLanguage, PackNew};
use crate::packs::belongs_to_pack;
use crate::report::{self, Usage};

/// The packs that new ones are made from, a folder for each kind and language.
#[derive(RustEmbed)]
#[folder = "templates"]
struct Templates;

/// The folder where none is named.
const DEFAULT_NAME: &str = "my-pack";

/// Makes a new pack, after at most three questions.
pub fn new(new: PackNew, is_json: bool) -> Result<ExitCode> {
    let PackNew { folder, purpose, kind, language } = new;
    let asks = Questions { is_silent: is_json, language: language.unwrap_or_else(own_language) };
    let folder = folder.unwrap_or_else(unused_folder);
    let name = name_of(&folder)?;
    if folder.exists() {
        return Err(Usage(format!("{} is there already; give another name", folder.display())).into());
    }
    let purpose = match purpose {
        Some(purpose) => purpose,
        None => asks.purpose()?,
    };
    let kind = match kind {
        Some(kind) => kind,
        None => asks.kind()?,
    };
    let language = match language {
        Some(language) => language,
        None => asks.language()?,
    };
    let files = filled(kind, language, &name, purpose.trim());
    write(&folder, &files)?;
    if is_json {
        println!("{}", json!({ "pack": name, "folder": folder, "files": files.keys().collect::<Vec<_>>() }));
    } else {
        tell(&folder, &files);
    }
    Ok(ExitCode::from(report::FINE))
}

fn name_of(folder: &Path) -> Result<String> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_usable = name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'));
    if name.is_empty() || !is_usable {
        let words = format!("`{}` cannot be a pack's name; use letters, digits, `-` and `_`", folder.display());
        return Err(Usage(words).into());
    }
    Ok(name.to_owned())
}

fn unused_folder() -> PathBuf {
    let numbered = (2..).map(|number| format!("{DEFAULT_NAME}-{number}"));
    let names = std::iter::once(DEFAULT_NAME.to_owned()).chain(numbered);
    names.map(PathBuf::from).find(|folder| !folder.exists()).expect("some number is free")
}

/// Returns the language that the environment speaks.
fn own_language() -> PackLanguage {
    let locale =
        ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    if locale.is_some_and(|locale| locale.starts_with("zh")) { PackLanguage::Zh } else { PackLanguage::En }
}

/// The three questions. Where nobody answers, the first answer is taken.
struct Questions {
    is_silent: bool,
    /// What is proposed first.
    language: PackLanguage,
}

impl Questions {
    fn purpose(&self) -> Result<String> {
        const EXAMPLE: &str = "Writes what I ask for, with my word at every turn.";
        let answer = self.ask(&format!("What comes of it, in a sentence? [{EXAMPLE}] "))?;
        Ok(if answer.is_empty() { EXAMPLE.to_owned() } else { answer })
    }

    fn kind(&self) -> Result<PackKind> {
        loop {
            match self.ask("Is it a novel, to be read, or a dialogue, played in turns? [novel] ")?.to_lowercase().as_str() {
                "" | "n" | "novel" | "小说" => return Ok(PackKind::Novel),
                "d" | "dialogue" | "dialog" | "对话" => return Ok(PackKind::Dialogue),
                _ => eprintln!("Please answer `novel` or `dialogue`."),
            }
        }
    }

    fn language(&self) -> Result<PackLanguage> {
        let first = match self.language {
            PackLanguage::En => "en",
            PackLanguage::Zh => "zh",
        };
        loop {
            match self.ask(&format!("In which language are its prompts, en or zh? [{first}] "))?.to_lowercase().as_str() {
                "" => return Ok(self.language),
                "en" | "english" => return Ok(PackLanguage::En),
                "zh" | "chinese" | "中文" => return Ok(PackLanguage::Zh),
                _ => eprintln!("Please answer `en` or `zh`."),
            }
        }
    }

    fn ask(&self, question: &str) -> Result<String> {
        if self.is_silent {
            return Ok(String::new());
        }
        eprint!("{question}");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("the answer cannot be read; give flags instead")?;
        if !std::io::stdin().is_terminal() {
            // The question's line ends as if somebody had typed.
            eprintln!();
        }
        Ok(answer.trim().to_owned())
    }
}

/// Fills a template, and plays its scenario once, so that what is expected is kept beside it.
fn filled(kind: PackKind, language: PackLanguage, name: &str, purpose: &str) -> BTreeMap<String, Arc<str>> {
    let template = match (kind, language) {
        (PackKind::Novel, PackLanguage::En) => "novel.en/",
        (PackKind::Novel, PackLanguage::Zh) => "novel.zh/",
        (PackKind::Dialogue, PackLanguage::En) => "dialogue.en/",
        (PackKind::Dialogue, PackLanguage::Zh) => "dialogue.zh/",
    };
    // In YAML a text in JSON's quotes means itself, whatever is in it.
    let purpose = json!(purpose).to_string();
    let mut files: BTreeMap<String, Arc<str>> = BTreeMap::new();
    for path in Templates::iter() {
        let Some(short) = path.strip_prefix(template) else { continue };
        let data = Templates::get(&path).expect("it is listed").data;
        let text = String::from_utf8(data.into_owned()).expect("templates are text");
        files.insert(short.to_owned(), text.replace("{{name}}", name).replace("{{description}}", &purpose).into());
    }
    let pack = PackFiles(
        files.iter().filter(|(path, _)| belongs_to_pack(path)).map(|(path, text)| (path.clone(), text.clone())).collect(),
    );
    let scenarios: Vec<(String, Arc<str>)> =
        files.iter().filter(|(path, _)| path.ends_with(".scenario")).map(|(path, text)| (path.clone(), text.clone())).collect();
    for (path, text) in scenarios {
        let (expected, told) = first_kept(&pack, &path, &text);
        files.insert(expected, told.into());
    }
    files
}

/// Writes all files below a folder that is made for them.
fn write(folder: &Path, files: &BTreeMap<String, Arc<str>>) -> Result<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    // Fails where somebody made it meanwhile: nothing is overwritten.
    std::fs::create_dir(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(&path, text.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

fn tell(folder: &Path, files: &BTreeMap<String, Arc<str>>) {
    let folder = folder.display();
    println!("{folder} is there:");
    for path in files.keys() {
        println!("  {path}");
    }
    println!(
        "\nNext:\n  quire pack check {folder}    says what is wrong with it\n  quire pack test {folder}     plays its scenario\n  \
         quire new {folder}           starts a session with it"
    );
}
