//! Where things are: the checkout, the cache outside it, and how cargo is called.

use crate::shell;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The checkout; `./x` changes into it first.
pub fn root() -> Result<PathBuf> {
    let root = std::env::current_dir().context("current folder")?;
    anyhow::ensure!(root.join("xtask/Cargo.toml").exists(), "start this by ./x from the checkout");
    Ok(root)
}

/// Build results; outside the checkout, so that a clone stays as it was cloned.
pub fn target_dir() -> Result<PathBuf> {
    std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).context("CARGO_TARGET_DIR: ./x sets it")
}

/// Kernels, guests and other things that cost time to get and are safe to delete.
pub fn cache_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set")?;
    let folder = base.join("planish");
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// cargo, the one that runs us.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The version of all that is ours.
pub fn version() -> Result<String> {
    let ours = metadata()?.packages.into_iter().find(|package| package.name == "planish-cli");
    Ok(ours.context("no package planish-cli")?.version)
}

/// Whether a crate exists already: the tasks serve a tree that grows.
pub fn has_package(name: &str) -> Result<bool> {
    Ok(metadata()?.packages.iter().any(|package| package.name == name))
}

/// One package of `cargo metadata`, as far as the checks look at it.
pub struct Package {
    /// Name in the manifest.
    pub name: String,
    /// Version in the manifest.
    pub version: String,
    /// Folder of the manifest, relative to the checkout; `None` for other people's.
    pub folder: Option<PathBuf>,
    /// The folder above that of the manifest.
    pub source: Option<PathBuf>,
    /// SPDX expression.
    pub license: Option<String>,
    /// Names of what it links: normal and build dependencies, without those of its tests.
    pub links: Vec<String>,
}

/// The folders in which cargo keeps the sources of other people's packages.
pub fn foreign_sources() -> Result<BTreeSet<PathBuf>> {
    let packages = metadata()?.packages.into_iter();
    Ok(packages.filter(|package| package.folder.is_none()).filter_map(|package| package.source).collect())
}

/// What `cargo metadata` says.
pub struct Metadata {
    /// Ours and all others of the lock file.
    pub packages: Vec<Package>,
}

/// Reads the whole graph, others' packages included.
pub fn metadata() -> Result<Metadata> {
    let root = root()?;
    let text = shell::output(cargo().args(["metadata", "--format-version=1"]))?;
    let value: serde_json::Value = serde_json::from_str(&text).context("output of cargo metadata")?;
    let packages = value["packages"].as_array().context("cargo metadata without packages")?;
    let packages = packages.iter().map(|package| Package::from_json(package, &root)).collect();
    Ok(Metadata { packages })
}

impl Package {
    fn from_json(value: &serde_json::Value, root: &std::path::Path) -> Self {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let manifest = text("manifest_path").map(PathBuf::from);
        let source = manifest.as_ref().and_then(|path| path.parent()?.parent()).map(PathBuf::from);
        let folder = manifest
            .filter(|_| value["source"].is_null())
            .and_then(|path| path.parent()?.strip_prefix(root).ok().map(PathBuf::from));
        let links = value["dependencies"].as_array().into_iter().flatten();
        let links = links.filter(|link| link["kind"].as_str() != Some("dev"));
        Self {
            name: text("name").unwrap_or_default(),
            version: text("version").unwrap_or_default(),
            folder,
            source,
            license: text("license"),
            links: links.filter_map(|link| link["name"].as_str()).map(str::to_owned).collect(),
        }
    }
}
