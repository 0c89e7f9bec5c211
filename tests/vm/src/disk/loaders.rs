//! Boot parameters through loaders that read entries of files: GRUB with `blscfg`, and systemd-boot. Both are on one
//! disk; which of them starts the machine, its firmware decides.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `bls-persist`, `efi-persist` | by the default entry | `apply --persist` |
//! | `...-booted` | by the default entry, which has the arguments | it is looked at; `undo` |
//! | `...-gone` | as the first | every file and value as before; `apply --persist --once` |
//! | `...-once` | the trial boot | it is looked at, and left by an ordinary reboot |
//! | `...-over` | by the default entry again | undone, every file as before |

use super::profiles;
use super::{Next, boot, once};
use crate::check::{Outcome, Report};
use crate::settings;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MENU: &str = "/boot/grub/grub.cfg";
const ENV: &str = "/boot/grub/grubenv";
const CMDLINE: &str = "/etc/kernel/cmdline";
const VARIABLES: &str = "/sys/firmware/efi/efivars";
const VENDOR: &str = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// Who starts the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loader {
    Grub,
    Systemd,
}

impl Loader {
    fn entries(self) -> &'static str {
        match self {
            Self::Grub => "/boot/loader/entries",
            Self::Systemd => "/boot/efi/loader/entries",
        }
    }

    /// What gives the arguments of all entries that are booted in the ordinary way.
    fn sources(self) -> Result<Vec<PathBuf>> {
        let folder = self.entries();
        let entries = fs::read_dir(folder).with_context(|| format!("list {folder}"))?;
        let is_normal = |path: &PathBuf| !path.to_string_lossy().contains("rescue");
        let mut sources: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(is_normal).collect();
        sources.push(CMDLINE.into());
        if self == Self::Grub {
            // Instead of the entry that asks for what the environment block says.
            sources.retain(|path| !fs::read_to_string(path).is_ok_and(|text| text.contains("$kernelopts")));
            sources.push(ENV.into());
            sources.push("/etc/default/grub".into());
        }
        Ok(sources)
    }
}

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    let (prefix, step) = name.split_once('-')?;
    let loader = match prefix {
        "bls" => Loader::Grub,
        "efi" => Loader::Systemd,
        _ => return None,
    };
    let named = |check: &str| format!("{prefix}.{check}");
    let reboot = |step: &str| Some(Next::Reboot(format!("{prefix}-{step}")));
    match step {
        "persist" => {
            report.check(&named("system"), || started_by(loader));
            report.check(&named("before"), boot::before);
            report.check(&named("apply"), || apply(loader));
            report.check(&named("pending"), boot::pending);
            reboot("booted")
        }
        "booted" => {
            boot::in_force(report, prefix);
            reboot("gone")
        }
        "gone" => {
            report.check(&named("gone"), boot::as_before);
            report.check(&named("once"), || apply_once(loader));
            reboot("once")
        }
        "once" => {
            report.check(&named("running"), || on_trial(loader));
            reboot("over")
        }
        "over" => {
            report.check(&named("over"), once::over);
            Some(Next::End)
        }
        _ => None,
    }
}

/// This machine was started by the loader that the stage is about: by what that leaves, not by what planish thinks.
fn started_by(loader: Loader) -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    let by_grub = command_line.contains("BOOT_IMAGE=");
    let told = match loader {
        Loader::Grub => {
            ensure!(by_grub && !Path::new(VARIABLES).exists(), "GRUB did not start this: {command_line}");
            let menu = settings::read(MENU)?;
            let entries = menu.lines().filter(|line| line.trim_start().starts_with("menuentry ")).count();
            ensure!(menu.lines().any(|line| line == "blscfg"), "the menu reads no entries: {menu}");
            format!("GRUB with blscfg, and {entries} entries in its menu")
        }
        Loader::Systemd => {
            ensure!(!by_grub, "GRUB started this: {command_line}");
            variable("LoaderInfo")?.context("no word of the loader in the firmware")?
        }
    };
    Ok(Outcome::Ok(format!("{told}, {}", boot::run_by_systemd()?)))
}

/// Every source of an ordinary entry has the arguments, and nothing else has.
fn apply(loader: Loader) -> Result<Outcome> {
    let menu = settings::read(MENU)?;
    let all = boot::give()?;
    let sources = loader.sources()?;
    ensure!(sources.len() > 1, "the sources are {sources:?}");
    let mut tags = BTreeSet::new();
    for path in &sources {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let missing: Vec<_> = all.iter().filter(|arguments| !text.contains(**arguments)).collect();
        ensure!(missing.is_empty(), "{} does not give {missing:?}: {text}", path.display());
        let tag =
            tag(&text).with_context(|| format!("{} does not say whose they are: {text}", path.display()))?;
        tags.insert(tag.to_owned());
    }
    for entry in fs::read_dir(loader.entries()).context("list the entries")?.flatten() {
        let path = entry.path();
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        ensure!(
            sources.contains(&path) || !text.contains("isolcpus="),
            "{} was changed: {text}",
            path.display()
        );
    }
    ensure!(settings::read(MENU)? == menu, "{MENU} was changed");
    ensure!(tags.len() == 1, "one entry gave them, and the sources name {tags:?}");
    let names: Vec<String> = sources.iter().map(|path| path.display().to_string()).collect();
    Ok(Outcome::Ok(format!("{} in {}", all.join(" "), names.join(", "))))
}

/// The number of the entry that a text names beside its arguments.
fn tag(text: &str) -> Option<&str> {
    let begins = ["# planish entry ", " planish.entry="];
    let rest = begins.iter().find_map(|begin| Some(text.split_once(begin)?.1))?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|number| !number.is_empty())
}

fn apply_once(loader: Loader) -> Result<Outcome> {
    match loader {
        Loader::Grub => once::apply(),
        Loader::Systemd => {
            let outcome = once::armed()?;
            let told = variable("LoaderEntryOneShot")?;
            ensure!(told.as_deref() == Some("AAA-planish-trial.conf"), "systemd-boot is told {told:?}");
            Ok(outcome)
        }
    }
}

fn on_trial(loader: Loader) -> Result<Outcome> {
    match loader {
        Loader::Grub => once::running(),
        Loader::Systemd => {
            let told = variable("LoaderEntryOneShot")?;
            ensure!(told.is_none(), "systemd-boot did not take the name away: {told:?}");
            once::on_trial()
        }
    }
}

/// What a variable of the firmware says, behind its four bytes of attributes; none where it is not set.
fn variable(name: &str) -> Result<Option<String>> {
    let path = format!("{VARIABLES}/{name}-{VENDOR}");
    if !Path::new(&path).exists() {
        return Ok(None);
    }
    let bytes = fs::read(&path).with_context(|| format!("read {path}"))?;
    let units = bytes.get(4..).unwrap_or_default().chunks_exact(2);
    let units: Vec<u16> = units.map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    let text = String::from_utf16(&units).with_context(|| format!("text of {path}"))?;
    Ok(Some(text.trim_end_matches('\0').to_owned()))
}
