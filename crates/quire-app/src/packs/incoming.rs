//! Reads a pack that comes from elsewhere: a folder, a `.zip`, a `.tar.gz`. Everything stays in memory, nothing runs.
//!
//! What may be an attack or an accident is refused whole, with a word on what it is: paths that lead out of the folder, links,
//! names that are not text, files too many or too large, also when they say that they are small. Names that one file system
//! takes for two and another for one are refused as well.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use unicode_normalization::UnicodeNormalization as _;

use super::{FILE_BYTES_MAX, FILES_MAX};

/// A pack is text, and text is short.
const ALL_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// A larger archive is not even opened.
const ARCHIVE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Folders in folders.
const DEPTH_MAX: usize = 8;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 240;

/// A pack's files, as bytes, by their path with `/`.
#[derive(Debug, Default)]
pub struct Incoming {
    /// The files.
    pub files: BTreeMap<String, Vec<u8>>,
    folded: BTreeMap<String, String>,
    byte_count: u64,
}

impl Incoming {
    /// Reads a folder or an archive.
    ///
    /// # Errors
    /// When it cannot be read, or holds what no pack may hold.
    pub fn read(source: &Path) -> Result<Self> {
        let mut incoming = Self::default();
        if source.is_dir() {
            incoming.folder(source, source)?;
        } else {
            let name = source.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
            let file = File::open(source).with_context(|| format!("{} cannot be opened", source.display()))?;
            let bytes = file.metadata()?.len();
            ensure!(
                bytes <= ARCHIVE_BYTES_MAX,
                "{} has {bytes} bytes; an archive of a pack has at most {ARCHIVE_BYTES_MAX}",
                source.display()
            );
            if name.ends_with(".zip") {
                incoming.zip(file)?;
            } else if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
                incoming.tar(file)?;
            } else {
                bail!("{} is neither a folder nor a .zip, .tar.gz or .tgz", source.display());
            }
        }
        incoming.without_outer_folder()
    }

    fn folder(&mut self, root: &Path, folder: &Path) -> Result<()> {
        let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name =
                path.strip_prefix(root)?.to_str().with_context(|| format!("{} has a name that is not text", path.display()))?;
            let name = if cfg!(windows) { name.replace('\\', "/") } else { name.to_owned() };
            let kind = std::fs::symlink_metadata(&path)?;
            ensure!(!kind.is_symlink(), "`{name}` is a link; a pack holds files only: put the file itself in its place");
            if is_left_out(&name) {
                continue;
            }
            if kind.is_dir() {
                ensure!(name.split('/').count() <= DEPTH_MAX, "`{name}` lies more than {DEPTH_MAX} folders deep");
                self.folder(root, &path)?;
            } else {
                ensure!(kind.is_file(), "`{name}` is neither a file nor a folder");
                let file = File::open(&path).with_context(|| format!("{} cannot be opened", path.display()))?;
                self.add(&name, kind.len(), file)?;
            }
        }
        Ok(())
    }

    fn zip(&mut self, file: File) -> Result<()> {
        let mut archive = zip::ZipArchive::new(BufReader::new(file)).context("this is no zip archive that can be read")?;
        ensure!(
            archive.len() <= 4 * FILES_MAX,
            "the archive has {} entries; a pack has at most {FILES_MAX} files",
            archive.len()
        );
        for index in 0..archive.len() {
            let entry = archive.by_index(index).with_context(|| format!("entry {} of the archive cannot be read", index + 1))?;
            let Ok(name) = str::from_utf8(entry.name_raw()).map(str::to_owned) else {
                bail!(
                    "the archive has a name that is not UTF-8 (`{}`); pack it again with UTF-8 names",
                    String::from_utf8_lossy(entry.name_raw())
                );
            };
            ensure!(!entry.is_symlink(), "`{name}` is a link; a pack holds files only: put the file itself in its place");
            ensure!(!entry.encrypted(), "`{name}` is encrypted; pack it again without a password");
            let path = checked(name.trim_end_matches('/'))?;
            if !entry.is_dir() && !is_left_out(path) {
                let path = path.to_owned();
                self.add(&path, entry.size(), entry)?;
            }
        }
        Ok(())
    }

    fn tar(&mut self, file: File) -> Result<()> {
        // Headers, names and padding are bytes too, so the whole stream has an end.
        let unpacked = flate2::read::GzDecoder::new(BufReader::new(file)).take(2 * ALL_BYTES_MAX);
        let mut archive = tar::Archive::new(unpacked);
        let mut entry_count = 0;
        for entry in archive.entries().context("this is no tar archive that can be read")? {
            let entry = entry.context("the archive ends before its time, or is larger than a pack can be")?;
            entry_count += 1;
            ensure!(entry_count <= 4 * FILES_MAX, "the archive has too many entries; a pack has at most {FILES_MAX} files");
            let raw = entry.path_bytes();
            let Ok(name) = str::from_utf8(&raw).map(|name| name.trim_start_matches("./").to_owned()) else {
                bail!(
                    "the archive has a name that is not UTF-8 (`{}`); pack it again with UTF-8 names",
                    String::from_utf8_lossy(&raw)
                );
            };
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() || (kind.is_dir() && name.is_empty()) {
                continue;
            }
            ensure!(
                !kind.is_symlink() && !kind.is_hard_link(),
                "`{name}` is a link; a pack holds files only: put the file itself in its place"
            );
            let path = checked(name.trim_end_matches('/'))?;
            if !kind.is_dir() && !is_left_out(path) {
                ensure!(kind.is_file(), "`{name}` is neither a file nor a folder");
                let path = path.to_owned();
                self.add(&path, entry.size(), entry)?;
            }
        }
        Ok(())
    }

    /// Takes one file; what it says of its size is believed only where it says too much.
    fn add(&mut self, path: &str, byte_count: u64, reader: impl Read) -> Result<()> {
        let path = checked(path)?;
        ensure!(self.files.len() < FILES_MAX, "there are more than {FILES_MAX} files; this is no pack");
        let folded: String = path.nfc().flat_map(char::to_lowercase).collect();
        if let Some(other) = self.folded.insert(folded, path.to_owned()) {
            bail!("`{path}` and `{other}` are one name to some file systems; rename one of the two");
        }
        let too_large = || format!("`{path}` is larger than {FILE_BYTES_MAX} bytes; this is no text of a pack");
        ensure!(byte_count <= FILE_BYTES_MAX, too_large());
        let mut bytes = vec![];
        reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("`{path}` cannot be read"))?;
        let byte_count = bytes.len() as u64;
        ensure!(byte_count <= FILE_BYTES_MAX, too_large());
        self.byte_count += byte_count;
        ensure!(self.byte_count <= ALL_BYTES_MAX, "the files have more than {ALL_BYTES_MAX} bytes in all; this is no pack");
        self.files.insert(path.to_owned(), bytes);
        Ok(())
    }

    /// Takes the pack out of the one folder that archives often have around everything.
    fn without_outer_folder(mut self) -> Result<Self> {
        if self.files.contains_key("orchestrator.md") {
            return Ok(self);
        }
        let manifests = self.files.keys().filter_map(|path| path.strip_suffix("/orchestrator.md"));
        let outer: Vec<String> = manifests.filter(|folder| !folder.contains('/')).map(|folder| format!("{folder}/")).collect();
        match outer.as_slice() {
            [] => bail!("there is no `orchestrator.md` in it, so it is no pack; `quire pack check` says what a folder is"),
            [outer] => {
                let files = std::mem::take(&mut self.files).into_iter();
                let inner = files.filter_map(|(path, bytes)| Some((path.strip_prefix(outer.as_str())?.to_owned(), bytes)));
                self.files = inner.collect();
                Ok(self)
            }
            [_, ..] => bail!("there are several packs in it ({}); install them one by one", outer.join(", ")),
        }
    }
}

/// Says whether a file is left out: what systems and tools leave in folders.
fn is_left_out(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.') || name == "__MACOSX" || name == "Thumbs.db" || name == "desktop.ini")
}

/// Refuses a path that leads elsewhere, or that another system would not take.
fn checked(path: &str) -> Result<&str> {
    let shown = path.escape_debug();
    ensure!(path.len() <= PATH_BYTES_MAX, "`{shown}` is too long a name");
    ensure!(!path.starts_with('/') && !path.contains(':'), "`{shown}` leads out of the pack's folder");
    ensure!(!path.contains('\\'), "`{shown}` has a backslash in its name; pack it again with `/` between folders");
    ensure!(path.split('/').count() <= DEPTH_MAX + 1, "`{shown}` lies more than {DEPTH_MAX} folders deep");
    for name in path.split('/') {
        ensure!(name != "..", "`{shown}` leads out of the pack's folder");
        let is_usable = !name.is_empty() && name != "." && !name.ends_with(['.', ' ']);
        let has_mark = name.chars().any(|letter| letter.is_control() || matches!(letter, '<' | '>' | '"' | '|' | '?' | '*'));
        ensure!(is_usable && !has_mark, "`{shown}` is a name that not every system can keep; rename it");
    }
    Ok(path)
}
