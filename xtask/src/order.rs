//! `./x order`: the order of planish's own functions anew, of samples of its commands.
//!
//! What is committed is the order and not the samples, so that the same sources give the same bytes wherever they are
//! built ([`crate::target::ORDER`]). It is due again after a new compiler, whose names have other hashes, and whenever
//! what the commands run has moved: an old one costs nothing but what it no longer gains.

use crate::target::{self, ORDER};
use crate::{ground, shell};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Commands over each recorded host: what users wait for, and what timers start.
const RECORDED: &[&str] = &["doctor", "check", "plan postgres", "plan low-latency", "plan redis", "topo"];
/// Commands that need no recorded host.
const ANYWHERE: &[&str] =
    &["doctor", "knobs", "profiles", "knobs vm.swappiness", "--help", "version", "map $$"];
/// How often all of them run: a command takes milliseconds, and a sample is taken every twentieth of one.
const ROUNDS: usize = 12;

/// Builds planish with its symbols, records it, and writes the order.
pub fn run() -> Result<ExitCode> {
    let root = ground::root()?;
    let named = ["--package", "planish-cli", "--bin", "planish", "--", "-Cstrip=none"];
    let planish = target::pick()?.compile("rustc", "release", &named)?.join("planish");
    let work = ground::target_dir()?.join("order");
    fs::create_dir_all(&work).with_context(|| format!("make {}", work.display()))?;
    let script = work.join("commands.sh");
    fs::write(&script, commands(&planish, &root)?).context("write the commands")?;
    let profile = work.join("profile");
    let mut record = Command::new(&planish);
    record.args(["text", "record", "--rate", "19997", "--program"]).arg(&planish);
    record.arg("--output").arg(&profile).args(["--", "sh"]).arg(&script);
    shell::run(&mut record)?;
    let mut order = Command::new(&planish);
    order.args(["text", "order"]).arg(&planish).arg("--profile").arg(&profile);
    shell::run(order.arg("--output").arg(root.join(ORDER)))?;
    println!("{ORDER}");
    Ok(ExitCode::SUCCESS)
}

/// All commands, a line each. What they print and how they end is nobody's business here.
fn commands(planish: &Path, root: &Path) -> Result<String> {
    let mut hosts = Vec::new();
    for entry in fs::read_dir(root.join("hosts")).context("list the recorded hosts")? {
        let path = entry.context("list the recorded hosts")?.path();
        hosts.extend(path.join("meta.toml").is_file().then_some(path));
    }
    hosts.sort();
    let line = |words: &str| format!("'{}' {words} > /dev/null 2>&1\n", planish.display());
    let of_host = |host: &PathBuf| {
        RECORDED.iter().map(|words| line(&format!("--root '{}' {words}", host.display()))).collect::<String>()
    };
    let once = hosts.iter().map(of_host).chain(ANYWHERE.iter().map(|words| line(words))).collect::<String>();
    Ok(format!("{}exit 0\n", once.repeat(ROUNDS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_host_is_asked_every_command() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let script = commands(Path::new("/a b/planish"), root).unwrap();
        let hosts = fs::read_dir(root.join("hosts")).unwrap().flatten();
        let hosts = hosts.filter(|entry| entry.path().join("meta.toml").is_file()).count();
        assert!(hosts > 5);
        let lines = ROUNDS * (hosts * RECORDED.len() + ANYWHERE.len());
        assert_eq!(script.lines().count(), lines + 1);
        assert!(script.starts_with("'/a b/planish' --root '"), "{script}");
    }
}
