//! `quire pack install`: copies a pack into the data folder, whole or not at all.
//!
//! Nothing of it is run. Sessions keep the files that they started with, so nothing here changes one that is under way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use quire_core::diagnostic::Diagnostic;
use quire_core::ids::Hash;
use quire_core::pack::{Pack, PackFiles};
use serde_json::json;

use super::{check, diagnose, errors_of, refuse_unreadable};
use crate::options::PackInstall;
use crate::packs::incoming::Incoming;
use crate::packs::{Found, Packs, Spot, belongs_to_pack, read_folder};
use crate::report::{self, Unknown};
use crate::words::Lang;

/// How much of a hash tells versions apart for a person.
const SHORT_HASH_CHARS: usize = 8;

/// Installs a pack.
pub fn install(lang: Lang, data: &Path, packs: &Packs, install: PackInstall, is_json: bool) -> Result<ExitCode> {
    let PackInstall { source, name, replace } = install;
    let incoming = Incoming::read(&source).map_err(|error| Unknown(format!("nothing is installed: {error:#}")))?;
    let found = texts(&incoming);
    refuse_unreadable(lang, &found).context("nothing is installed")?;
    let (pack, diagnostics) = diagnose(&found);
    let pack = pack.expect("a pack without errors is there");
    let hash = pack.hash.clone();
    if !is_json {
        println!("{} {} from {}\n  hash {hash}", pack.name, pack.version, source.display());
        tell_warnings(lang, &found, &diagnostics);
    }
    let own_name = name.unwrap_or_else(|| folder_name(&pack.name));
    ensure_name(&own_name)?;
    let home = data.join("packs");
    std::fs::create_dir_all(&home).with_context(|| format!("{} cannot be made", home.display()))?;
    let place = match choose(packs, &home, &own_name, &pack, replace)? {
        Choice::Known(folder) => {
            tell(is_json, &folder, &hash, "is installed already, exactly so");
            return Ok(ExitCode::from(report::FINE));
        }
        Choice::New(place) | Choice::Over(place) => place,
    };
    put(&incoming, &home, &place)?;
    let installed = read_folder(&place)?.files.hash();
    ensure!(installed == hash, "{} reads otherwise than what was to be installed ({installed}): remove it", place.display());
    tell(is_json, &place, &installed, "is installed");
    Ok(ExitCode::from(report::FINE))
}

/// Where the pack goes.
enum Choice {
    /// It is there already.
    Known(PathBuf),
    /// A new folder.
    New(PathBuf),
    /// A folder that is replaced.
    Over(PathBuf),
}

fn choose(packs: &Packs, home: &Path, name: &str, pack: &Pack, replace: bool) -> Result<Choice> {
    let own = home.join(name);
    let known = packs.locate_by_name(name);
    let hash_of = |spot: &Spot| spot.read().map(|found| found.files.hash()).ok();
    match &known {
        None if !own.exists() => return Ok(Choice::New(own)),
        Some(spot) if hash_of(spot).as_ref() == Some(&pack.hash) => {
            let folder = match spot {
                Spot::Folder(folder) => folder.clone(),
                Spot::BuiltIn(name) => PathBuf::from(name),
            };
            return Ok(Choice::Known(folder));
        }
        Some(Spot::BuiltIn(_)) if replace => {
            let words = format!("`{name}` is built in and cannot be replaced; leave `--replace` out, or give another `--name`");
            return Err(Unknown(words).into());
        }
        None | Some(_) if replace && own.exists() => return Ok(Choice::Over(own)),
        None | Some(_) => {}
    }
    let short: String = pack.hash.to_string().chars().filter(char::is_ascii_alphanumeric).take(SHORT_HASH_CHARS).collect();
    // Two versions that call themselves the same are told apart by their hashes.
    let is_named_alike = known.as_ref().and_then(|spot| quire_core::pack::read(&spot.read().ok()?.files).0);
    let is_named_alike = is_named_alike.is_none_or(|known| known.version == pack.version);
    let version = if is_named_alike { String::new() } else { folder_name(&pack.version) };
    for beside in [version.as_str(), short.as_str()].iter().filter(|word| !word.is_empty()) {
        let folder = home.join(format!("{name}@{beside}"));
        if !folder.exists() {
            return Ok(Choice::New(folder));
        }
        if read_folder(&folder).is_ok_and(|found| found.files.hash() == pack.hash) {
            return Ok(Choice::Known(folder));
        }
    }
    Err(Unknown(format!("`{name}` is there in other versions; replace it with `--replace`, or give another `--name`")).into())
}

/// Writes all files into a folder of its own, and gives it its name at the end.
fn put(incoming: &Incoming, home: &Path, place: &Path) -> Result<()> {
    let written = tempfile::Builder::new().prefix(".incoming-").tempdir_in(home).context("no place to write to")?;
    for (path, bytes) in &incoming.files {
        let path = written.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(home))?;
        std::fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    // The folder is the owner's alone while it is written; a pack may be read like any other folder.
    open_to_readers(written.path())?;
    let former = tempfile::Builder::new().prefix(".former-").tempdir_in(home).context("no place to write to")?;
    let kept = former.path().join("pack");
    if place.exists() {
        std::fs::rename(place, &kept).with_context(|| format!("{} cannot be replaced", place.display()))?;
    }
    if let Err(error) = std::fs::rename(written.path(), place) {
        if kept.exists() {
            std::fs::rename(&kept, place).with_context(|| format!("{} is left in {}", place.display(), kept.display()))?;
        }
        return Err(error).with_context(|| format!("{} cannot be written", place.display()));
    }
    // It has its name now, and must not be swept away with the value.
    drop(written.keep());
    Ok(())
}

#[cfg(unix)]
fn open_to_readers(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn open_to_readers(_folder: &Path) -> Result<()> {
    Ok(())
}

/// Returns what a session would read of the files.
fn texts(incoming: &Incoming) -> Found {
    let mut files: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut diagnostics = vec![];
    for (path, bytes) in incoming.files.iter().filter(|(path, _)| belongs_to_pack(path)) {
        if std::str::from_utf8(bytes).is_err() {
            diagnostics.push(Diagnostic::not_utf8(path.clone(), bytes));
        }
        files.insert(path.clone(), String::from_utf8_lossy(bytes).into());
    }
    Found { files: PackFiles(files), diagnostics }
}

/// Makes a folder's name of a pack's.
fn folder_name(name: &str) -> String {
    let usable = |letter: char| if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.') { letter } else { '-' };
    let name: String = name.trim().chars().map(usable).collect();
    name.trim_matches(['-', '.']).to_owned()
}

fn ensure_name(name: &str) -> Result<()> {
    if name.is_empty() || folder_name(name) != name {
        let words = format!("`{name}` cannot be a folder's name; give one of letters, digits, `-`, `_` with `--name`");
        return Err(Unknown(words).into());
    }
    Ok(())
}

fn tell_warnings(lang: Lang, found: &Found, diagnostics: &[Diagnostic]) {
    if !diagnostics.is_empty() && errors_of(diagnostics).next().is_none() {
        check::tell(lang, found, diagnostics);
    }
}

fn tell(is_json: bool, place: &Path, hash: &Hash, what: &str) {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if is_json {
        println!("{}", json!({ "name": name, "place": place, "hash": hash }));
    } else {
        println!("  hash {hash} in {}\n`{name}` {what}: quire new {name}", place.display());
    }
}
