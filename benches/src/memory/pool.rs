//! Pages that a row adds to a pool, and that go back whatever becomes of this program.
//!
//! ```text
//!  we ──starts──> keeper (in a group of its own, which Ctrl-C does not reach)
//!  │                │  raises the pool, says how many pages it was granted
//!  │─── pipe ───────│  waits for the end of the pipe: that is when we let go of it, or are ended
//!  X                └─ lowers the pool by what was granted: others raise and lower it too
//! ```
//!
//! Pages that somebody still has when the pool is lowered are surplus, and gone from it when they are let go of.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Child;

use anyhow::{Context, Result, ensure};

use super::{first_line, start};

/// Pages added to the pool of one size; given back when dropped.
pub struct Pool(Child);

impl Pool {
    /// At least `bytes` more on pages of `page_bytes`.
    pub fn raise(page_bytes: usize, bytes: usize) -> Result<Self> {
        let pages = bytes.div_ceil(page_bytes);
        let mut command = start(&format!("pool {} {pages}", page_bytes >> 10));
        let mut keeper = command.process_group(0).spawn().context("start the keeper of the pool")?;
        let told = first_line(&mut keeper);
        let pool = Self(keeper);
        let told = told?;
        ensure!(told == "ready", "no {pages} pages of {} KiB: {told}", page_bytes >> 10);
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The keeper's side.
pub fn keep(kilobytes: u64, pages: u64) -> Result<()> {
    let file = format!("/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB/nr_hugepages");
    let raised = raise(&file, pages);
    let told = match &raised {
        Ok(granted) if *granted >= pages => "ready".to_owned(),
        Ok(granted) => format!("the kernel granted {granted}"),
        Err(error) => format!("{error:#}"),
    };
    // Whoever asked may be gone; the pages go back all the same.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{told}").and_then(|()| out.flush());
    if told == "ready" {
        let _ = std::io::stdin().read(&mut [0]);
    }
    let granted = raised.unwrap_or(0);
    if granted > 0 {
        lower(&file, granted).with_context(|| format!("{file} keeps {granted} pages of ours"))?;
    }
    Ok(())
}

/// A process that has pages, and is there to be ended in the middle of that.
pub fn borrow(kilobytes: u64, pages: u64) -> Result<()> {
    let bytes = usize::try_from(kilobytes << 10)?;
    let _pool = Pool::raise(bytes, bytes * usize::try_from(pages)?)?;
    println!("borrowed");
    std::io::stdout().flush()?;
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

fn size(file: &str) -> Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {file}"))?;
    text.trim().parse().with_context(|| format!("{file} is no number"))
}

/// How many pages more there are.
fn raise(file: &str, pages: u64) -> Result<u64> {
    let before = size(file)?;
    std::fs::write(file, (before + pages).to_string()).with_context(|| format!("write {file}"))?;
    Ok(size(file)?.saturating_sub(before))
}

fn lower(file: &str, pages: u64) -> Result<()> {
    let left = size(file)?.saturating_sub(pages);
    std::fs::write(file, left.to_string()).with_context(|| format!("write {file}"))
}
