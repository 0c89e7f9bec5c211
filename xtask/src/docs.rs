//! `./x docs`: the references that are generated from the product, and whether they are fresh; and the list of fuzz
//! targets, whose freshness their own stage checks.

use crate::{fuzz, ground, shell};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to do with them.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing; fail when a committed reference is stale
    #[arg(long)]
    check: bool,
}

/// Where they are committed.
const COMMITTED: &str = "docs";
/// Folders that hold generated files only: what is in them and no longer generated is stale too.
const WHOLE: &[&str] = &["man", "completions", "schema"];

/// Writes or checks.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.check {
        check()?;
    } else {
        for folder in WHOLE {
            let _ = fs::remove_dir_all(Path::new(COMMITTED).join(folder));
        }
        generate(Path::new(COMMITTED))?;
        fuzz::refresh()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails when a committed reference differs from what the product generates.
pub fn check() -> Result<()> {
    let fresh_dir = ground::target_dir()?.join("docs-fresh");
    let _ = fs::remove_dir_all(&fresh_dir);
    fs::create_dir_all(&fresh_dir).with_context(|| format!("make {}", fresh_dir.display()))?;
    generate(&fresh_dir)?;
    let fresh = read_all(&fresh_dir, Path::new(""))?;
    let mut stale: Vec<String> = Vec::new();
    for (name, bytes) in &fresh {
        let committed = Path::new(COMMITTED).join(name);
        if fs::read(&committed).ok().as_ref() != Some(bytes) {
            stale.push(committed.display().to_string());
        }
    }
    for folder in WHOLE {
        let committed = read_all(Path::new(COMMITTED), Path::new(folder))?;
        let gone = committed.keys().filter(|name| !fresh.contains_key(*name));
        stale.extend(gone.map(|name| format!("{COMMITTED}/{} (no longer generated)", name.display())));
    }
    if !stale.is_empty() {
        bail!("stale, type ./x docs: {}", stale.join(", "));
    }
    Ok(())
}

fn generate(into: &Path) -> Result<()> {
    let mut docgen = ground::cargo();
    docgen.args(["run", "--quiet", "--profile", "ci", "--package", "planish-docgen", "--"]).arg(into);
    shell::run(&mut docgen)
}

/// Every file below `base/folder`, by its path from `base`.
fn read_all(base: &Path, folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = fs::read_dir(base.join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.with_context(|| format!("list {}", folder.display()))?;
            let name = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                pending.push(name);
            } else {
                let bytes = fs::read(entry.path()).with_context(|| format!("read {}", name.display()))?;
                files.insert(name, bytes);
            }
        }
    }
    Ok(files)
}
