//! Huge pages that are brought back: what is dropped from the page cache, as a reboot and memory that runs short do,
//! and read again by the very line that `planish install warm` writes into a unit.

use crate::laid_out::COVERED;
use crate::recorded::Copied;
use crate::row::Figure;
use anyhow::{Context, Result, ensure};
use planish_hugify::{Cached, Probe};
use planish_sys::pages;
use rustix::fs::Advice;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A record that answers writes, into which the unit is installed: that of this machine are left alone.
const HOST: &str = "hosts/metal-2s";

/// What the page cache has of a file's text. Not by `text verify`: for its symbols that reads all of the file, so that
/// what was dropped is there again before the line of the unit is typed.
pub fn cached(file: &Path) -> Result<Cached> {
    let huge_bytes = pages::thp_bytes().context("this kernel has no transparent huge pages")?;
    Ok(Probe::look(file, huge_bytes as u64)?.cached()?)
}

/// The share of whole huge pages that lie on some.
pub fn share(cached: Cached) -> f64 {
    cached.huge_bytes as f64 / cached.whole_bytes.max(1) as f64
}

/// The share of whole huge pages of a file's text that lie on some, after all of it was dropped and the line of the
/// unit was typed. Of the file that is on huge pages.
pub fn restored(planish: &Path, file: &Path) -> Result<(Figure, String)> {
    ensure!(share(cached(file)?) >= COVERED, "its text is not on huge pages before");
    let line = warm_line(planish, file)?;
    drop_pages(file)?;
    let before = cached(file)?;
    let (whole, cold) = (before.whole_bytes >> 20, before.cold_bytes >> 20);
    ensure!(
        before.huge_bytes == 0 && cold == whole,
        "somebody uses it: {} of {whole} MiB stay",
        whole - cold
    );
    let mut words = line.split(' ');
    let mut warm = Command::new(words.next().context("the line of the unit is empty")?);
    let warmed = warm.args(words).stdin(Stdio::null()).output().context("start the line of the unit")?;
    let after = cached(file)?;
    // 1 is less than was wanted, which the figure tells.
    let is_told = matches!(warmed.status.code(), Some(0 | 1));
    ensure!(is_told, "{line}: {}", String::from_utf8_lossy(&warmed.stderr).trim());
    let [before, now] = [before, after].map(|cached| cached.huge_bytes >> 20);
    let note = format!("{before} of {whole} MiB when they were dropped, {now} after the line of the unit");
    Ok((Figure::exact(share(after)), note))
}

/// What the service of `install warm` is to start: read from the file that it writes.
fn warm_line(planish: &Path, file: &Path) -> Result<String> {
    let copied = Copied::of(HOST, planish)?.with_program(file)?;
    let own = fs::canonicalize(planish).context("the binary has a path")?;
    let (own, name) = (own.to_str().context("a path is text")?, file.to_str().context("a path is text")?);
    let installed = copied.output(&["install", "warm", name, "--program", own, "--yes", "--json"])?;
    let told: Value =
        serde_json::from_slice(&installed.stdout).context("planish install warm told no JSON")?;
    let files = told["result"]["files"].as_array().context("it wrote no files")?;
    let mut lines = files.iter().filter_map(|file| file["text"].as_str()).flat_map(str::lines);
    let line = lines.find_map(|line| line.strip_prefix("ExecStart="));
    Ok(line.context("none of its files starts something")?.to_owned())
}

/// Drops what the page cache has of one file that nobody uses. What is not written yet would stay.
fn drop_pages(file: &Path) -> Result<()> {
    let opened = fs::File::open(file).with_context(|| format!("open {}", file.display()))?;
    opened.sync_all().with_context(|| format!("sync {}", file.display()))?;
    rustix::fs::fadvise(&opened, 0, None, Advice::DontNeed).context("fadvise")
}
