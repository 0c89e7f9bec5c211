//! The target of binaries that must start on any machine: static, so musl where it can be had.

use crate::ground;
use crate::shell;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// How a static binary is built here.
pub struct Static {
    /// Target triple.
    pub triple: String,
    /// Extra flags for rustc; empty for musl, which is static by itself.
    pub flags: &'static str,
}

/// Picks musl, adding it by rustup when missing; else static glibc of this machine, said aloud.
pub fn pick() -> Result<Static> {
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if installed(&musl)? {
        return Ok(Static { triple: musl, flags: "" });
    }
    if shell::which("rustup").is_some()
        && shell::run(Command::new("rustup").args(["target", "add", &musl])).is_ok()
    {
        return Ok(Static { triple: musl, flags: "" });
    }
    let host = shell::output(Command::new("rustc").arg("--print=host-tuple"))?.trim().to_owned();
    eprintln!("x: no target {musl} and no rustup that could add it: a static {host} binary instead");
    Ok(Static { triple: host, flags: "-C target-feature=+crt-static" })
}

fn installed(triple: &str) -> Result<bool> {
    let folder = shell::output(Command::new("rustc").args(["--print=target-libdir", "--target", triple]))?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

impl Static {
    /// Builds binaries of one profile and returns the folder that holds them.
    pub fn build(&self, profile: &str, args: &[&str]) -> Result<PathBuf> {
        let mut command = ground::cargo();
        command.args(["build", "--profile", profile, "--target", &self.triple]).args(args);
        if !self.flags.is_empty() {
            command.env("RUSTFLAGS", self.flags);
        }
        shell::run(&mut command).context("build a static binary")?;
        Ok(ground::target_dir()?.join(&self.triple).join(profile))
    }
}
