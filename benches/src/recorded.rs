//! A copy of a recorded host that answers writes as its kernel would, with a state and profiles of its own.

use crate::process::milliseconds;
use crate::row::Figure;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The copy; gone when dropped.
pub struct Copied {
    planish: PathBuf,
    folder: TempDir,
}

impl Copied {
    /// Copies `host` beside the binary, which lies on a real disk, where an fsync costs what it costs.
    pub fn of(host: &str, planish: &Path) -> Result<Self> {
        let beside = planish.parent().context("the binary lies in no folder")?;
        let folder = tempfile::Builder::new().prefix("planish-bench").tempdir_in(beside)?;
        let copied = Self { planish: planish.to_path_buf(), folder };
        let status = Command::new("cp").args(["-a", host]).arg(copied.root()).status().context("start cp")?;
        ensure!(status.success(), "cp of {host} left with {status}");
        Ok(copied)
    }

    /// Gives the copy of the large record as many files as a real machine of that size has.
    pub fn with_all_files(self, template: &str) -> Result<Self> {
        crate::large::fill(&self.root(), Path::new(template))?;
        Ok(self)
    }

    /// A profile of that name, which wants each knob to have its value, as TOML says both.
    pub fn with_profile(self, name: &str, wanted: &[(&str, &str)]) -> Result<Self> {
        let profiles = self.folder.path().join("state/etc/profiles");
        fs::create_dir_all(&profiles).with_context(|| format!("make {}", profiles.display()))?;
        let lines: String = wanted.iter().map(|(knob, value)| format!("\"{knob}\" = {value}\n")).collect();
        let summary = format!("{} knobs.", wanted.len());
        let text = format!("name = \"{name}\"\nsummary = \"{summary}\"\n\n[want]\n{lines}");
        fs::write(profiles.join(format!("{name}.toml")), text).context("write the profile")?;
        Ok(self)
    }

    /// Adds files of the kernel to the copy, which root may write there: the path below the root, and what it shows.
    pub fn with_files<'a>(self, files: impl Iterator<Item = (String, &'a str)>) -> Result<Self> {
        let mut places = String::new();
        for (path, value) in files {
            let file = self.root().join(&path);
            let folder = file.parent().context("a file of the kernel lies in a folder")?;
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
            fs::write(&file, format!("{value}\n")).with_context(|| format!("write {}", file.display()))?;
            places += &format!("\n  \"/{path}\",");
        }
        // Which of its files can be written is said by the record alone: here they are all ours.
        let meta = self.root().join("meta.toml");
        let text = fs::read_to_string(&meta).with_context(|| format!("read {}", meta.display()))?;
        let modes = "\"0644\" = [";
        ensure!(text.contains(modes), "{} names no files that root may write", meta.display());
        let text = text.replacen(modes, &format!("{modes}{places}"), 1);
        fs::write(&meta, text).with_context(|| format!("write {}", meta.display()))?;
        Ok(self)
    }

    /// Puts a program of this machine into the copy, by the same path.
    pub fn with_program(self, program: &Path) -> Result<Self> {
        let path = program.strip_prefix("/").context("a program of a record has an absolute path")?;
        let file = self.root().join(path);
        let folder = file.parent().context("a program lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        fs::copy(program, &file).with_context(|| format!("copy {}", program.display()))?;
        Ok(self)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("host")
    }

    /// A command of planish on the copy.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.planish);
        command
            .args(args)
            .arg("--root")
            .arg(self.root())
            .arg("--state")
            .arg(self.folder.path().join("state"));
        command
    }

    /// What a command prints that has to succeed.
    pub fn output(&self, args: &[&str]) -> Result<Output> {
        let done = self.command(args).stdin(Stdio::null()).output().context("start planish")?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "planish {}: {}: {}", args.join(" "), done.status, said.trim());
        Ok(done)
    }

    /// Milliseconds of applying a profile with its fsyncs; the undo between two runs is not timed.
    pub fn apply_ms(&self, profile: &str, runs: usize) -> Result<Figure> {
        let undo = || self.output(&["undo", "--all"]).map(drop);
        milliseconds(runs, &[0], undo, || self.command(&["apply", profile, "--yes"]))
    }
}
