//! `./x vm --disk`: a Debian that GRUB starts from a disk and systemd runs, and that is rebooted for real.
//!
//! The guest's side is `tests/vm/src/disk`: it does one stage at each boot and names the next. Every boot is a QEMU of
//! its own on the same disk, started afresh; the disk is a copy of a cached image, thrown away at the end.

mod image;
mod stage;

use super::Programs;
use crate::shell;
use crate::tally::Tally;
use anyhow::{Context, Result};
use stage::{End, Machine};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Name of this guest in results.
pub const NAME: &str = "guest-disk";
const FIRST: &str = "persist";

/// Boots stage after stage, and counts the results.
pub fn run(folder: &Path, programs: &Programs) -> Result<Tally> {
    let begin = Instant::now();
    let base = image::base(folder)?;
    let (disk, tools) = (folder.join("disk.img"), folder.join("disk-programs.img"));
    shell::run(Command::new("cp").args(["--sparse=always", "--reflink=auto"]).arg(&base).arg(&disk))?;
    image::of_programs(programs, folder, &tools)?;
    let mut tally = Tally::default();
    let mut next = Some(FIRST.to_owned());
    let mut boot_count = 0;
    while let Some(name) = next.take() {
        boot_count += 1;
        let log = folder.join(format!("{NAME}-{boot_count:02}-{name}.log"));
        let machine = Machine { disk: &disk, tools: Some(&tools), log: &log };
        match machine.run(&name, &mut tally)? {
            End::Next(name) => next = Some(name),
            End::Last => {}
            End::Lost(why) => {
                tally.failed_count += 1;
                println!("{NAME} {name} fail {why}; see {}", log.display());
            }
        }
    }
    fs::remove_file(&disk).with_context(|| format!("remove {}", disk.display()))?;
    eprintln!("{NAME}: {boot_count} boots took {:.0} s", begin.elapsed().as_secs_f64());
    Ok(tally)
}
