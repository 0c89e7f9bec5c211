//! Every setting of the guest's kernel, read straight from the files: the judge of undo.
//!
//! planish is not asked what it restored. All writable files below these folders are compared, also
//! the ones that no knob names: a write beside the plan would show here.

use anyhow::{Context, Result, bail, ensure};
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

/// The text of one setting, without its line break.
pub fn read(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("read {path}"))?;
    Ok(text.trim_end().to_owned())
}

/// Whether the running kernel is older than this version.
pub fn is_before(version: (u32, u32)) -> Result<bool> {
    let release = read("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        bail!("no version of a kernel: {release}");
    };
    Ok((major, minor) < version)
}

/// The paths that a pattern with `{holes}` stands for, in order.
pub fn expand(pattern: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in pattern.split('/').skip(1) {
        let Some((before, rest)) = part.split_once('{') else {
            paths.iter_mut().for_each(|path| *path = format!("{path}/{part}"));
            continue;
        };
        let after = rest.split_once('}').map_or("", |(_, after)| after);
        paths = paths.iter().flat_map(|folder| matching(folder, before, after)).collect();
    }
    // A card with one queue shows a file of its queues, and says that there is none when it is read.
    let is_none =
        |path: &str| fs::read(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    paths.retain(|path| Path::new(path).exists() && !is_none(path));
    paths.sort();
    paths
}

fn matching(folder: &str, before: &str, after: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let fits = |name: &String| {
        let hole = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        // A prefix means a numbered thing: `node{node}` is node0, never nodelist.
        hole.is_some_and(|hole| before.is_empty() || hole.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names.filter(fits).map(|name| format!("{folder}/{name}")).collect()
}
