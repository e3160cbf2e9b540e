//! Where packs are found: built into the program, in the data folder, in `QUIRE_PACKS`, or at a path.
//!
//! A folder is read as text, files that packs have and no others; no code runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use quire_core::diagnostic::{Diagnostic, Severity};
use quire_core::event::PackOffer;
use quire_core::pack::{self, PackFiles};
use rust_embed::RustEmbed;
use serde::Serialize;

pub mod incoming;

/// The packs that come with the program.
#[derive(RustEmbed)]
#[folder = "../../packs"]
struct BuiltIn;

/// A larger file is no text of a pack.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// More files than that are no pack.
pub const FILES_MAX: usize = 1000;

/// A pack's files, and what could not be read of them.
#[derive(Debug, Default)]
pub struct Found {
    /// The texts.
    pub files: PackFiles,
    /// Files that are not text.
    pub diagnostics: Vec<Diagnostic>,
}

/// A line of the list of packs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Its name, to start a session with.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its version.
    pub version: String,
    /// Where it lies; `built-in` for one of the program's own.
    pub place: String,
    /// The hash of its files.
    pub hash: String,
    /// How many errors keep it from starting.
    pub errors: usize,
    /// The place of a pack of the same name that is found before this one.
    pub shadowed_by: Option<String>,
}

/// Where a pack lies.
#[derive(Debug)]
pub enum Spot {
    /// In the program, under this name.
    BuiltIn(String),
    /// In this folder.
    Folder(PathBuf),
}

/// What a pack's own tests need: all its texts, scenarios and what is kept beside them as well.
#[derive(Debug)]
pub struct Suite {
    /// The pack.
    pub found: Found,
    /// Scenarios and the files under `tests/`, by their path in the folder.
    pub files: PackFiles,
    /// The scenarios whose prompts are kept, by name: those that have a folder under `tests/prompts/`.
    pub prompted: BTreeSet<String>,
    /// Where it can be written; none for a built-in pack.
    pub folder: Option<PathBuf>,
}

/// Finds packs by name, in a fixed order: built-in, the data folder's `packs/`, the folders of `QUIRE_PACKS`.
#[derive(Debug, Clone)]
pub struct Packs {
    folders: Vec<PathBuf>,
}

impl Packs {
    /// Looks into a data folder's `packs/` and `QUIRE_PACKS`.
    pub fn of(data: &Path) -> Self {
        let more = std::env::var_os("QUIRE_PACKS").unwrap_or_default();
        let more = std::env::split_paths(&more).filter(|folder| !folder.as_os_str().is_empty()).collect::<Vec<_>>();
        Self { folders: [data.join("packs")].into_iter().chain(more).collect() }
    }

    /// Returns the folders that are looked into, in order.
    pub fn folders(&self) -> Vec<String> {
        self.folders.iter().map(|folder| folder.display().to_string()).collect()
    }

    /// Says where a pack lies, by its name or its folder.
    pub fn locate(&self, name_or_folder: &str) -> Result<Spot> {
        let path = Path::new(name_or_folder);
        if path.is_dir() {
            return Ok(Spot::Folder(path.to_owned()));
        }
        let is_plain_name = path.components().count() == 1 && !name_or_folder.starts_with('.');
        if !is_plain_name {
            // Reading it says that there is none.
            return Ok(Spot::Folder(path.to_owned()));
        }
        if let Some(spot) = self.locate_by_name(name_or_folder) {
            return Ok(spot);
        }
        let names: Vec<String> = self.list().into_iter().map(|pack| pack.name).collect();
        bail!("there is no pack `{name_or_folder}`, neither by name nor as a folder; there are: {}", names.join(", "))
    }

    /// Says where the pack of this name lies.
    pub fn locate_by_name(&self, name: &str) -> Option<Spot> {
        if built_in_names().iter().any(|known| known == name) {
            return Some(Spot::BuiltIn(name.to_owned()));
        }
        let place = self.places().into_iter().find(|place| place.name == name)?;
        Some(Spot::Folder(place.folder))
    }

    /// Finds a pack by its name or its folder.
    pub fn find(&self, name_or_folder: &str) -> Result<Found> {
        self.locate(name_or_folder)?.read()
    }

    /// Lists every pack there is, in the order in which names are looked up, also those that cannot be used.
    pub fn survey(&self) -> Vec<Listed> {
        let built_in = built_in_names().into_iter().map(|name| ("built-in".to_owned(), name.clone(), Spot::BuiltIn(name)));
        let others =
            self.places().into_iter().map(|place| (place.folder.display().to_string(), place.name, Spot::Folder(place.folder)));
        let mut listed: Vec<Listed> = vec![];
        for (place, name, spot) in built_in.chain(others) {
            let shadowed_by = listed.iter().find(|known| known.name == name).map(|known| known.place.clone());
            listed.push(listing(place, name, &spot, shadowed_by));
        }
        listed
    }

    /// Lists the packs that a session can start with.
    pub fn list(&self) -> Vec<Listed> {
        self.survey().into_iter().filter(|pack| pack.errors == 0 && pack.shadowed_by.is_none()).collect()
    }

    /// Returns what a session without a pack is offered.
    pub fn offer(&self) -> Vec<PackOffer> {
        self.list().into_iter().map(|pack| PackOffer { name: pack.name, description: pack.description }).collect()
    }

    fn places(&self) -> Vec<Place> {
        self.folders.iter().flat_map(|folder| registered(folder).unwrap_or_else(|| subfolders(folder))).collect()
    }
}

/// Looks at one pack for the list; what cannot be read at all counts as one error.
fn listing(place: String, name: String, spot: &Spot, shadowed_by: Option<String>) -> Listed {
    let (pack, hash, errors) = match spot.read() {
        Ok(found) => {
            let (pack, diagnostics) = pack::read(&found.files);
            let all = diagnostics.iter().chain(&found.diagnostics);
            (pack, found.files.hash().to_string(), all.filter(|found| found.severity == Severity::Error).count())
        }
        Err(_) => (None, String::new(), 1),
    };
    let (description, version) = pack.map(|pack| (pack.description, pack.version)).unwrap_or_default();
    Listed { name, description, version, place, hash, errors, shadowed_by }
}

impl Spot {
    /// Reads the pack's files.
    pub fn read(&self) -> Result<Found> {
        match self {
            Self::BuiltIn(name) => built_in(name).ok_or_else(|| anyhow!("there is no built-in pack `{name}`")),
            Self::Folder(folder) => read_folder(folder),
        }
    }

    /// Reads the pack with its tests.
    pub fn suite(&self) -> Result<Suite> {
        let found = self.read()?;
        let (files, folders, folder) = match self {
            Self::BuiltIn(name) => (built_in_files(name, belongs_to_tests), BTreeSet::new(), None),
            Self::Folder(folder) => {
                let mut below = Below::default();
                below.read(folder, folder, &belongs_to_tests).with_context(|| format!("{} cannot be read", folder.display()))?;
                (below.found.files, below.folders, Some(folder.clone()))
            }
        };
        let kept = files.0.keys().chain(&folders).filter_map(|path| path.strip_prefix("tests/prompts/")?.split('/').next());
        let prompted = kept.map(str::to_owned).collect();
        Ok(Suite { found, files, prompted, folder })
    }
}

struct Place {
    name: String,
    folder: PathBuf,
}

/// Reads `registry.yaml`, where a folder of packs has one.
fn registered(folder: &Path) -> Option<Vec<Place>> {
    #[derive(serde::Deserialize)]
    struct Entry {
        name: String,
        path: Option<String>,
    }
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Registry {
        List(Vec<Entry>),
        Packs { packs: Vec<Entry> },
        Orchestrators { orchestrators: Vec<Entry> },
    }
    let text = std::fs::read_to_string(folder.join("registry.yaml")).ok()?;
    let entries = match serde_saphyr::from_str(&text) {
        Ok(Registry::List(entries) | Registry::Packs { packs: entries } | Registry::Orchestrators { orchestrators: entries }) => {
            entries
        }
        Err(error) => {
            eprintln!("quire: {} is passed over: {error}", folder.join("registry.yaml").display());
            return None;
        }
    };
    let place = |entry: Entry| {
        let path = entry.path.unwrap_or_else(|| entry.name.clone());
        let path = folder.join(path);
        // A registry may name the manifest instead of its folder.
        let path = if path.is_file() { path.parent().map(Path::to_path_buf)? } else { path };
        Some(Place { name: entry.name, folder: path })
    };
    Some(entries.into_iter().filter_map(place).collect())
}

fn subfolders(folder: &Path) -> Vec<Place> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let mut places: Vec<Place> = (entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.join("orchestrator.md").is_file())
        .filter_map(|path| Some(Place { name: path.file_name()?.to_str()?.to_owned(), folder: path }))
        .collect();
    places.sort_by(|one, other| one.name.cmp(&other.name));
    places
}

fn built_in_names() -> Vec<String> {
    let mut names: Vec<String> = BuiltIn::iter().filter_map(|path| Some(path.split_once('/')?.0.to_owned())).collect();
    names.dedup();
    names
}

fn built_in(name: &str) -> Option<Found> {
    let files = built_in_files(name, belongs_to_pack);
    (!files.0.is_empty()).then_some(Found { files, diagnostics: vec![] })
}

fn built_in_files(name: &str, belongs: fn(&str) -> bool) -> PackFiles {
    let prefix = format!("{name}/");
    let mut files = BTreeMap::new();
    for path in BuiltIn::iter() {
        let Some(short) = path.strip_prefix(&prefix).filter(|short| belongs(short)) else { continue };
        let data = BuiltIn::get(&path).expect("it is listed").data;
        let text = String::from_utf8(data.into_owned()).expect("built-in packs are text");
        files.insert(short.to_owned(), text.into());
    }
    PackFiles(files)
}

/// Returns the scenario behind `quire demo`.
pub fn demo_scenario() -> String {
    let file = BuiltIn::get("short-story/demo.scenario").expect("the demo is built in");
    String::from_utf8(file.data.into_owned()).expect("the demo is text")
}

/// Reads a pack's folder.
pub fn read_folder(folder: &Path) -> Result<Found> {
    if !folder.is_dir() {
        bail!("there is no folder {}; name a pack's folder, the one that holds its `orchestrator.md`", folder.display());
    }
    let mut below = Below::default();
    below.read(folder, folder, &belongs_to_pack).with_context(|| format!("the pack in {} cannot be read", folder.display()))?;
    Ok(below.found)
}

/// What was read of a folder so far.
#[derive(Debug, Default)]
struct Below {
    found: Found,
    folders: BTreeSet<String>,
}

impl Below {
    fn read(&mut self, root: &Path, folder: &Path, belongs: &dyn Fn(&str) -> bool) -> Result<()> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        paths.sort();
        for path in paths {
            let inside = path.strip_prefix(root)?;
            let name = inside.to_string_lossy().replace('\\', "/");
            let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            // A link may lead out of the folder: a pack is what lies in it.
            let kind = std::fs::symlink_metadata(&path)?;
            let is_ours = kind.is_dir() || (kind.is_file() && belongs(&name));
            if is_ours && inside.to_str().is_none() {
                bail!("{name} has a name that is not UTF-8 text; rename it");
            }
            if kind.is_dir() && !is_hidden {
                self.read(root, &path, belongs)?;
                self.folders.insert(name);
            } else if kind.is_file() && belongs(&name) {
                if kind.len() > FILE_BYTES_MAX || self.found.files.0.len() >= FILES_MAX {
                    bail!("{name} is too large, or there are too many files, for a pack");
                }
                let (text, not_text) = read_text(&path, &name)?;
                self.found.files.0.insert(name, text);
                self.found.diagnostics.extend(not_text);
            }
        }
        Ok(())
    }
}

/// Reads a file as text. One that is none is told of, and its wrong bytes are replaced, so that the rest is still read.
pub fn read_text(path: &Path, name: &str) -> Result<(Arc<str>, Option<Diagnostic>)> {
    match String::from_utf8(std::fs::read(path)?) {
        Ok(text) => Ok((text.into(), None)),
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into();
            Ok((text, Some(Diagnostic::not_utf8(name, error.as_bytes()))))
        }
    }
}

/// Says whether a file is one a session needs; scenarios, pictures and notes for people stay outside.
pub fn belongs_to_pack(name: &str) -> bool {
    let is_text = name.ends_with(".md") || name.ends_with(".yaml") || name.ends_with(".yml");
    is_text && !name.starts_with("tests/") && name != "README.md"
}

/// Says whether a file is a scenario of the pack, or what is kept beside one.
fn belongs_to_tests(name: &str) -> bool {
    let is_scenario = name.ends_with(".scenario") && !name.trim_start_matches("tests/").contains('/');
    let is_expected = name.strip_prefix("tests/").is_some_and(|rest| rest.ends_with(".expected") && !rest.contains('/'));
    let is_prompt = name.starts_with("tests/prompts/") && name.ends_with(".txt");
    is_scenario || is_expected || is_prompt
}
