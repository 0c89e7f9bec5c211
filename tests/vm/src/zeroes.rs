//! Memory that was only ever read is on the huge page of zeroes, which is nobody's: `planish map` counts none of it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::check::Outcome;
use crate::planish;

/// The word that has this program stand still with such memory.
pub const WORD: &str = "read-only";
const MIB: usize = 1 << 20;
const MAPPED_MIB: usize = 64;

/// Maps memory, reads all of it, says how much of it is on huge pages, and waits to be ended.
pub fn stand() {
    let bytes = MAPPED_MIB * MIB;
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place of a new mapping, which is advised whole and only read.
    unsafe {
        let place = mmap_anonymous(std::ptr::null_mut(), bytes, rights, MapFlags::PRIVATE).expect("memory");
        madvise(place, bytes, Advice::LinuxHugepage).expect("huge pages are built in");
        for offset in (0..bytes).step_by(MIB) {
            std::hint::black_box(place.cast::<u8>().add(offset).read_volatile());
        }
    }
    println!("ready");
    std::io::stdout().flush().expect("standard output");
    sleep(Duration::from_secs(600));
}

/// What `map` says of it.
pub fn map() -> Result<Outcome> {
    let mut command = Command::new("/proc/self/exe");
    let mut child = command.arg(WORD).stdout(Stdio::piped()).spawn().context("start the reader")?;
    let mut ready = String::new();
    let read = BufReader::new(child.stdout.take().context("its output")?).read_line(&mut ready);
    let mapped = read.context("wait for the reader").and_then(|_| {
        ensure!(ready.contains("ready"), "the reader said {ready:?}");
        planish::json(&["map", &child.id().to_string()], &[0])
    });
    child.kill().context("end the reader")?;
    child.wait().context("end the reader")?;
    let envelope = mapped?;
    let rows = envelope["result"]["rows"].as_array().context("no result.rows")?;
    let bytes = |row: &serde_json::Value| row["resident_bytes"].as_u64();
    let resident: u64 = rows.iter().filter_map(bytes).sum();
    ensure!(
        resident < 8 << 20,
        "{resident} bytes are resident, of {MAPPED_MIB} MiB that were only read: {rows:?}"
    );
    Ok(Outcome::Ok(format!("{} KiB resident of {MAPPED_MIB} MiB read", resident >> 10)))
}
