//! Who may use whom: between our crates, between adapters, and what the core may stand on.
//!
//! Calls that would leak the outside into the core are banned in `crates/quire-core/clippy.toml`, by the lints.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::shell::{cargo, read, root};

/// What each crate may use of ours: in its product, then besides that in its tests.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    ("quire-core", &[], &["quire-testkit"]),
    ("quire-scenario", &["quire-core"], &["quire-testkit"]),
    ("quire-runtime", &["quire-core"], &["quire-scenario", "quire-testkit"]),
    ("quire-adapters", &["quire-core", "quire-runtime", "quire-scenario"], &["quire-testkit"]),
    ("quire-testkit", &["quire-core", "quire-runtime", "quire-scenario"], &[]),
    ("quire-app", &["quire-core", "quire-runtime", "quire-scenario", "quire-adapters"], &["quire-testkit"]),
    ("quire-bench", &["quire-core", "quire-runtime", "quire-scenario", "quire-adapters"], &[]),
    ("xtask", &[], &[]),
];

/// All the core stands on.
const CORE_USES: &[&str] =
    &["jsonschema", "serde", "serde-saphyr", "serde_json", "sha2", "thiserror", "unicode-normalization", "unicode-segmentation"];

/// What may stand nowhere below the core: clocks, sockets, threads, chance. The hash tables that `jsonschema` keeps inside
/// seed themselves (`getrandom`); nothing it says depends on their order.
const CORE_NEVER_USES: &[&str] = &[
    "async-std",
    "axum",
    "chrono",
    "fastrand",
    "hyper",
    "jiff",
    "mio",
    "rand",
    "rayon",
    "reqwest",
    "rusqlite",
    "smol",
    "socket2",
    "sqlx",
    "tempfile",
    "time",
    "tokio",
    "uuid",
    "walkdir",
];

/// The adapters: each reaches one thing of the outside.
const STRANGERS: &[(&str, &str)] = &[
    ("providers", "anthropic"),
    ("providers", "gemini"),
    ("providers", "openai"),
    ("providers", "scripted"),
    ("stores", "sqlite"),
];

/// Holds the workspace against the tables above.
///
/// # Errors
/// Names the first crate that uses what it may not, and the table to change where that is meant.
pub fn check() -> Result<()> {
    check_arrows()?;
    check_core()?;
    check_strangers()
}

fn check_arrows() -> Result<()> {
    let metadata = read(&mut cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo describes the workspace in JSON")?;
    let packages = metadata["packages"].as_array().context("cargo lists the packages")?;
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().context("a package has a name")?;
        let Some((_, product, tests)) = ARROWS.iter().find(|(from, ..)| *from == name) else {
            bail!("the crate `{name}` is new: say in xtask/src/ci/walls.rs which of our crates it may use");
        };
        for dependency in package["dependencies"].as_array().context("a package lists what it uses")? {
            let used = dependency["name"].as_str().context("a dependency has a name")?;
            let is_for_tests = dependency["kind"] == "dev";
            let is_allowed = product.contains(&used) || (is_for_tests && tests.contains(&used));
            let place = if is_for_tests { "in its tests" } else { "in its product" };
            ensure!(
                !ours.contains(used) || is_allowed,
                "`{name}` may not use `{used}` {place}: move what is shared to where both may look, or change the arrow in \
                 xtask/src/ci/walls.rs and in ARCHITECTURE.md"
            );
        }
    }
    Ok(())
}

fn check_core() -> Result<()> {
    let direct = core_tree(&["--depth", "1"])?;
    if let Some(new) = direct.iter().find(|name| !CORE_USES.contains(&name.as_str())) {
        bail!("quire-core uses `{new}`, which is not among what it may stand on (xtask/src/ci/walls.rs)");
    }
    let all = core_tree(&[])?;
    if let Some(banned) = all.iter().find(|name| CORE_NEVER_USES.contains(&name.as_str())) {
        bail!(
            "quire-core has `{banned}` below it: no IO, clock, thread or chance belongs there; `cargo tree -p quire-core -e \
             normal -i {banned}` says who brought it in"
        );
    }
    Ok(())
}

/// Returns the names of what stands below the core, itself left out.
fn core_tree(more: &[&str]) -> Result<BTreeSet<String>> {
    let mut tree = cargo(&["tree", "--package", "quire-core", "--edges", "normal", "--prefix", "none", "--locked"]);
    let lines = read(tree.args(more))?;
    let names = lines.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| *name != "quire-core").map(str::to_owned).collect())
}

/// Makes sure that no adapter names another: each can be taken away alone. What several of them stand on (how a server is
/// reached, how a stream is read) and what chooses among them lies beside them and is no adapter.
fn check_strangers() -> Result<()> {
    let source = root().join("crates/quire-adapters/src");
    for (kind, adapter) in STRANGERS {
        let others: Vec<&str> = STRANGERS.iter().map(|(_, other)| *other).filter(|other| other != adapter).collect();
        let files = files_of(&source.join(kind), adapter)?;
        ensure!(!files.is_empty(), "there is no adapter `{kind}/{adapter}`; mend the list in xtask/src/ci/walls.rs");
        for (path, text) in files {
            let uses = text.lines().map(str::trim).filter(|line| line.starts_with("use ") || line.starts_with("pub use "));
            let foreign = uses.filter(|line| line.contains("crate::") || line.contains("super::"));
            for line in foreign {
                let names: Vec<&str> = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
                if let Some(other) = others.iter().find(|other| names.contains(other)) {
                    bail!("{path}: the adapter `{adapter}` knows `{other}`: `{line}`; adapters are strangers");
                }
            }
        }
    }
    Ok(())
}

fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Returns a module's file and those in its folder, each with its path.
fn files_of(folder: &Path, module: &str) -> Result<Vec<(String, String)>> {
    let below = folder.join(module);
    let mut paths = vec![folder.join(format!("{module}.rs"))];
    if below.is_dir() {
        paths.extend(names_in(&below)?.into_iter().map(|name| below.join(name)).filter(|path| path.is_file()));
    }
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    paths.iter().map(|path| Ok((path.display().to_string(), read(path)?))).collect()
}
