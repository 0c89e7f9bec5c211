//! `./x vm --disk`: a Debian that its own loader starts from a disk and systemd runs, that is rebooted for real, and
//! whose power is cut.
//!
//! The guest's side is `tests/vm/src/disk`: it does one stage at each boot and names the next. Every boot is a QEMU of
//! its own, started afresh, on a copy of the disk as the boot before left it. After a reboot the copy is the disk;
//! after a power cut the disk gets what the guest had flushed. It begins as a copy of a cached image and is thrown away
//! at the end.

mod flushed;
mod form;
mod image;
mod stage;

use super::Programs;
use super::guest::count;
use crate::shell;
use crate::tally::Tally;
use anyhow::{Context, Result};
use form::Form;
use stage::{End, Machine};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Name of this guest in results.
pub const NAME: &str = "guest-disk";
const FIRST: &str = "persist";

/// Boots stage after stage, from the first one or from this one to the last one or to the one before this, and counts
/// the results.
pub fn run(folder: &Path, programs: &Programs, from: Option<&str>, until: Option<&str>) -> Result<Tally> {
    let begin = Instant::now();
    let form = Form::of(from.unwrap_or(FIRST));
    let base = image::base(folder, form)?;
    let at = |name: &str| folder.join(name);
    let (disk, live, writes) = (at("disk.img"), at("disk-live.img"), at("disk-live.writes"));
    let tools = at("disk-programs.img");
    copy(&base, &disk)?;
    // What the firmware keeps has no cache that a power cut could empty.
    let variables = form.variables(folder)?;
    image::of_programs(programs, folder, &tools)?;
    let mut tally = Tally::default();
    let mut next = Some(from.unwrap_or(FIRST).to_owned());
    let mut boot_count = 0;
    while let Some(name) = next.take_if(|name| until != Some(name.as_str())) {
        boot_count += 1;
        copy(&disk, &live)?;
        let log = at(&format!("{NAME}-{boot_count:02}-{name}.log"));
        let machine = Machine {
            disk: &live,
            writes: Some(&writes),
            tools: Some(&tools),
            variables: variables.as_deref(),
            log: &log,
        };
        match machine.run(&name, &mut tally)? {
            End::Next(name) => {
                fs::rename(&live, &disk).with_context(|| format!("name {}", disk.display()))?;
                next = Some(name);
            }
            End::Cut(name) => {
                let (count, lost_count) = flushed::carry_out(&writes, &disk)?;
                eprintln!("{NAME}: power cut, {lost_count} of {count} writes to the disk are lost");
                next = Some(name);
            }
            End::Last => {}
            End::Lost(why) => {
                count(NAME, &format!("{name} fail {why}; see {}", log.display()), &mut tally);
            }
        }
    }
    if let Some(until) = until.filter(|_| next.is_none()) {
        count(
            NAME,
            &format!("{until} fail it never came to the stage that it was to end before"),
            &mut tally,
        );
    }
    for path in [&disk, &live, &writes].into_iter().chain(&variables) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("remove {}", path.display()));
            }
            _ => {}
        }
    }
    eprintln!("{NAME}: {boot_count} boots took {:.0} s", begin.elapsed().as_secs_f64());
    Ok(tally)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    shell::run(Command::new("cp").args(["--sparse=always", "--reflink=auto"]).arg(from).arg(to))
}
