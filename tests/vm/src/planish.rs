//! Runs the planish binary of the guest and reads its JSON.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const BINARY: &str = "/bin/planish";

/// A finished run.
pub struct Run {
    /// Exit code of the contract; -1 when a signal ended it.
    pub exit: i32,
    /// Data.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            exit: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Whether the guest was built with planish inside.
pub fn present() -> bool {
    std::path::Path::new(BINARY).exists()
}

/// A command line that has not been started yet.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(args)
        .stdin(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/tmp");
    command
}

/// Runs planish to its end.
pub fn run(args: &[&str]) -> Result<Run> {
    let output = command(args).output().with_context(|| format!("start planish {}", args.join(" ")))?;
    Ok(output.into())
}

/// Whether this planish knows a command: one that it does not know exits with 2 (usage).
pub fn knows(command: &str) -> bool {
    run(&[command, "--help"]).is_ok_and(|run| run.exit == 0)
}

/// Runs planish with `--json`, wants one of the exit codes, and returns the whole envelope.
pub fn json(args: &[&str], exits: &[i32]) -> Result<Value> {
    let mut with_json = args.to_vec();
    with_json.push("--json");
    let run = run(&with_json)?;
    if !exits.contains(&run.exit) {
        bail!(
            "planish {} left with {}: {} {}",
            args.join(" "),
            run.exit,
            run.stdout.trim(),
            run.stderr.trim()
        );
    }
    serde_json::from_str(&run.stdout).with_context(|| format!("JSON of planish {}", args.join(" ")))
}

/// Starts planish and kills it as soon as `is_time` says so; whether it was at work until then.
pub fn killed_when(args: &[&str], is_time: impl Fn() -> Result<bool>) -> Result<bool> {
    let silent = |mut command: Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = silent(command(args)).with_context(|| format!("start planish {}", args.join(" ")))?;
    while !is_time()? && child.try_wait().context("look at planish")?.is_none() {
        sleep(Duration::from_micros(200));
    }
    child.kill().context("kill planish")?;
    Ok(child.wait().context("wait for planish")?.signal().is_some())
}
