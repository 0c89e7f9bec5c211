//! Every setting of the guest's kernel, read straight from the files: the judge of undo.
//!
//! planish is not asked what it restored. All writable files below these folders are compared, also
//! the ones that no knob names: a write beside the plan would show here.

use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FOLDERS: &[&str] =
    &["/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/net", "/sys/kernel/mm", "/sys/devices/system"];

/// Counters and stamps that change by themselves, and files whose read draws something new.
const RESTLESS: &[&str] = &["random/", "ns_last_pid", "pty/nr", "stat_refresh", "/uevent", "netdev_rss_key"];

/// Path and text of each setting.
pub type Settings = BTreeMap<PathBuf, String>;

/// Reads all settings.
pub fn read_all() -> Settings {
    let mut settings = Settings::new();
    let mut pending: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, Ok(meta)) = (entry.path(), entry.metadata()) else { continue };
            if meta.is_dir() {
                pending.push(path);
            } else if meta.is_file() && meta.permissions().mode() & 0o200 != 0 && !is_restless(&path) {
                settings.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
            }
        }
    }
    settings
}

fn is_restless(path: &Path) -> bool {
    let path = path.to_string_lossy();
    RESTLESS.iter().any(|word| path.contains(word))
}

/// Fails with the first few settings that differ.
pub fn ensure_same(before: &Settings, after: &Settings) -> Result<()> {
    let differs = |(path, text): &(&PathBuf, &String)| after.get(*path) != Some(*text);
    let different: Vec<String> = before
        .iter()
        .filter(differs)
        .map(|(path, text)| {
            let now = after.get(path).map_or("gone", |text| text.trim());
            format!("{}: {} -> {now}", path.display(), text.trim())
        })
        .collect();
    ensure!(
        different.is_empty(),
        "{} settings differ: {}",
        different.len(),
        different[..different.len().min(8)].join("; ")
    );
    Ok(())
}
