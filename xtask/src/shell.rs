//! Starting other programs: said aloud, and a failure names the command line.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command with our own output streams; its failure is ours.
pub fn run(command: &mut Command) -> Result<()> {
    say(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("start {}", line(command)))?;
    if !status.success() {
        bail!("{} left with {status}", line(command));
    }
    Ok(())
}

/// Runs a quiet command and returns what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("start {}", line(command)))?;
    if !output.status.success() {
        let talk = String::from_utf8_lossy(&output.stderr);
        bail!("{} left with {}: {}", line(command), output.status, talk.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of {}", line(command)))
}

/// Prints the command line as a user would type it.
pub fn say(command: &Command) {
    eprintln!("$ {}", line(command));
}

/// The command line, for messages.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// A program of `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Server programs live in sbin, which an ordinary user's PATH leaves out.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
