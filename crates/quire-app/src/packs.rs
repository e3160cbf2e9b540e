//! Where packs are found: built into the program, in the data folder, in `QUIRE_PACKS`, or at a path.
//!
//! A folder is read as text, files that packs have and no others; no code runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use quire_core::diagnostic::Diagnostic;
use quire_core::event::PackOffer;
use quire_core::pack::{self, PackFiles};
use rust_embed::RustEmbed;
use serde::Serialize;

/// The packs that come with the program.
#[derive(RustEmbed)]
#[folder = "../../packs"]
struct BuiltIn;

/// A larger file is no text of a pack.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// More files than that are no pack.
const FILES_MAX: usize = 1000;

/// A pack's files, and what could not be read of them.
#[derive(Debug)]
pub struct Found {
    /// The texts.
    pub files: PackFiles,
    /// Files that are not text.
    pub diagnostics: Vec<Diagnostic>,
}

/// A line of the list of packs.
#[derive(Debug, Serialize)]
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
}

/// Finds packs by name, in a fixed order: built-in, the data folder's `packs/`, the folders of `QUIRE_PACKS`.
#[derive(Debug)]
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

    /// Finds a pack by its name or its folder.
    pub fn find(&self, name_or_folder: &str) -> Result<Found> {
        let path = Path::new(name_or_folder);
        if path.is_dir() {
            return read_folder(path);
        }
        if let Some(found) = built_in(name_or_folder) {
            return Ok(found);
        }
        let is_plain_name = path.components().count() == 1 && !name_or_folder.starts_with('.');
        if is_plain_name && let Some(folder) = self.places().into_iter().find(|place| place.name == name_or_folder) {
            return read_folder(&folder.folder);
        }
        let names: Vec<String> = self.list().into_iter().map(|pack| pack.name).collect();
        bail!("there is no pack `{name_or_folder}`, neither by name nor as a folder; there are: {}", names.join(", "))
    }

    /// Lists the packs there are; a folder that cannot be read as a pack is left out.
    pub fn list(&self) -> Vec<Listed> {
        let built_in = built_in_names().into_iter().filter_map(|name| Some(("built-in".to_owned(), built_in(&name)?, name)));
        let others = self.places().into_iter().filter_map(|place| {
            let found = read_folder(&place.folder).ok()?;
            Some((place.folder.display().to_string(), found, place.name))
        });
        let listed = |(place, found, name): (String, Found, String)| {
            let (pack, _) = pack::read(&found.files);
            let pack = pack?;
            Some(Listed { name, description: pack.description, version: pack.version, place, hash: pack.hash.to_string() })
        };
        built_in.chain(others).filter_map(listed).collect()
    }

    /// Returns what a session without a pack is offered.
    pub fn offer(&self) -> Vec<PackOffer> {
        self.list().into_iter().map(|pack| PackOffer { name: pack.name, description: pack.description }).collect()
    }

    fn places(&self) -> Vec<Place> {
        self.folders.iter().flat_map(|folder| registered(folder).unwrap_or_else(|| subfolders(folder))).collect()
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
    let prefix = format!("{name}/");
    let mut files = BTreeMap::new();
    for path in BuiltIn::iter().filter(|path| path.starts_with(&prefix)) {
        let short = path.strip_prefix(&prefix)?.to_owned();
        if belongs_to_pack(&short) {
            let text = String::from_utf8(BuiltIn::get(&path)?.data.into_owned()).expect("built-in packs are text");
            files.insert(short, text.into());
        }
    }
    (!files.is_empty()).then(|| Found { files: PackFiles(files), diagnostics: vec![] })
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
    let mut found = Found { files: PackFiles::default(), diagnostics: vec![] };
    read_below(folder, folder, &mut found).with_context(|| format!("the pack in {} cannot be read", folder.display()))?;
    Ok(found)
}

fn read_below(root: &Path, folder: &Path, found: &mut Found) -> Result<()> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let inside = path.strip_prefix(root)?;
        let name = inside.to_string_lossy().replace('\\', "/");
        // A link may lead out of the folder: a pack is what lies in it.
        let kind = std::fs::symlink_metadata(&path)?;
        let is_ours = kind.is_dir() || (kind.is_file() && belongs_to_pack(&name));
        if is_ours && inside.to_str().is_none() {
            bail!("{name} has a name that is not UTF-8 text; rename it");
        }
        if kind.is_dir() && !name.starts_with('.') {
            read_below(root, &path, found)?;
        } else if kind.is_file() && belongs_to_pack(&name) {
            if kind.len() > FILE_BYTES_MAX || found.files.0.len() >= FILES_MAX {
                bail!("{name} is too large, or there are too many files, for a pack");
            }
            let bytes = std::fs::read(&path)?;
            match String::from_utf8(bytes) {
                Ok(text) => drop(found.files.0.insert(name, text.into())),
                Err(error) => found.diagnostics.push(Diagnostic::not_utf8(name, error.as_bytes())),
            }
        }
    }
    Ok(())
}

/// Says whether a file is one a session needs; scenarios, pictures and notes for people stay outside.
fn belongs_to_pack(name: &str) -> bool {
    let is_text = name.ends_with(".md") || name.ends_with(".yaml") || name.ends_with(".yml");
    is_text && !name.starts_with("tests/") && name != "README.md"
}
