//! `planish map` beside shared memory that is in swap: it is told as such, and a look brings none of it back.
//!
//! Swap is a block device of null_blk that keeps what is written to it.

use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::mount::{MountFlags, mount};

use crate::check::Outcome;
use crate::mapped::beside;
use crate::{planish, settings};

/// The word that has this program stand still with shared memory of which a part is in swap.
pub const WORD: &str = "in-swap";
const MIB: u64 = 1 << 20;
const SEGMENT: u64 = 24 * MIB;
/// What the kernel is told to page out: all of the first part, and every third page of the one behind it. And what has
/// to be in swap for the check to say something.
const PAGED_OUT: u64 = 8 * MIB;
const PAGED_OUT_HERE_AND_THERE: u64 = 8 * MIB;
const SWAPPED_LEAST: u64 = PAGED_OUT + PAGED_OUT_HERE_AND_THERE / 4;
const CONFIGS: &str = "/sys/kernel/config";
const NAME: &str = "planish-swap";
const DISK_MIB: u64 = 64;

/// Writes a segment, has some of it paged out, says so, and waits to be ended.
pub fn stand() {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place of a new mapping; it lives as long as this process.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), SEGMENT as usize, rights, MapFlags::SHARED) };
    let start = start.expect("memory");
    for offset in (0..SEGMENT as usize).step_by(4096) {
        // SAFETY: inside the mapping. No page is like another, nor all zeroes, which some swaps keep as such.
        unsafe { start.cast::<u8>().add(offset).cast::<u64>().write_volatile(offset as u64 + 1) };
    }
    let page_out = |offset: u64, bytes: u64| {
        // SAFETY: a part of the mapping, whose content stays.
        unsafe {
            madvise(start.cast::<u8>().add(offset as usize).cast(), bytes as usize, Advice::LinuxPageOut)
        }
        .expect("advice");
    };
    page_out(0, PAGED_OUT);
    let behind = PAGED_OUT..PAGED_OUT + PAGED_OUT_HERE_AND_THERE;
    behind.step_by(3 * 4096).for_each(|offset| page_out(offset, 4096));
    println!("ready");
    std::io::stdout().flush().expect("standard output");
    sleep(Duration::from_secs(600));
}

/// Compares what `map` tells to be in swap with what smaps says of the same mapping, before and after.
pub fn stays() -> Result<Outcome> {
    let Some(disk) = Disk::make()? else {
        return Ok(Outcome::Skip("no null_blk with memory of its own".to_owned()));
    };
    let compared = beside(WORD, |pid| {
        let before = swapped(pid)?;
        let cached = cached()?;
        let map = planish::json(&["map", &pid.to_string()], &[0])?;
        let after = swapped(pid)?;
        ensure!(before >= SWAPPED_LEAST, "{before} bytes are in swap");
        ensure!(after == before, "{before} bytes were in swap, and {after} after the look");
        let result = &map["result"];
        let rows = result["rows"].as_array().context("no result.rows")?;
        let shared = rows.iter().filter(|row| row["kind"] == "shared");
        let resident: u64 = shared.filter_map(|row| row["resident_bytes"].as_u64()).sum();
        let told = result["totals"]["swapped_bytes"].as_u64().context("no totals.swapped_bytes")?;
        ensure!((told, resident) == (before, SEGMENT - before), "{told} in swap, {resident} resident: {map}");
        let [told, cached] = [told, cached].map(|bytes| bytes as f64 / MIB as f64);
        let before_and_after =
            format!("{told:.1} of {} MiB in swap, before and after the look", SEGMENT / MIB);
        Ok(Outcome::Ok(format!("{before_and_after}; {cached:.1} MiB of it in the swap cache as well")))
    });
    let given_back = disk.give_back();
    let outcome = compared?;
    given_back?;
    Ok(outcome)
}

/// Bytes that smaps of a process has in swap, of all of its mappings.
fn swapped(pid: u32) -> Result<u64> {
    let text = settings::read(&format!("/proc/{pid}/smaps"))?;
    let counts = text.lines().filter_map(|line| line.strip_prefix("Swap:")?.trim().strip_suffix(" kB"));
    counts.map(|count| Ok(count.parse::<u64>()? << 10)).sum()
}

/// Bytes in the swap cache of this guest.
fn cached() -> Result<u64> {
    let text = settings::read("/proc/meminfo")?;
    let count = text.lines().find_map(|line| line.strip_prefix("SwapCached:")?.trim().strip_suffix(" kB"));
    Ok(count.context("no SwapCached")?.parse::<u64>()? << 10)
}

/// A block device that is swap.
struct Disk {
    config: String,
    node: CString,
}

impl Disk {
    /// `None` where the kernel can make none.
    fn make() -> Result<Option<Self>> {
        let configs = format!("{CONFIGS}/nullb");
        if !Path::new(&configs).exists() {
            // It may be mounted already, and the module may not be there.
            let _ = mount("configfs", CONFIGS, "configfs", MountFlags::empty(), None);
        }
        if !Path::new(&configs).exists() {
            return Ok(None);
        }
        let config = format!("{configs}/{NAME}");
        fs::create_dir(&config).with_context(|| format!("make {config}"))?;
        let set = |name: &str, value: &str| {
            fs::write(format!("{config}/{name}"), value).with_context(|| format!("write {name} of {config}"))
        };
        set("memory_backed", "1")?;
        set("size", &DISK_MIB.to_string())?;
        set("blocksize", "4096")?;
        set("power", "1")?;
        // Named as its configuration since Linux 6.0, and before that by its number.
        let names = [NAME.to_owned(), format!("nullb{}", settings::read(&format!("{config}/index"))?)];
        let is_there = |name: &&String| Path::new("/sys/block").join(name).exists();
        let node = format!("/dev/{}", names.iter().find(is_there).context("no disk was made")?);
        // The head of a swap area: union swap_header in include/linux/swap.h, of machines that are little-endian.
        let mut head = [0u8; 4096];
        head[1024..1028].copy_from_slice(&1u32.to_le_bytes());
        let last_page = (DISK_MIB * MIB / 4096 - 1) as u32;
        head[1028..1032].copy_from_slice(&last_page.to_le_bytes());
        head[4086..].copy_from_slice(b"SWAPSPACE2");
        let file = fs::File::options().write(true).open(&node).with_context(|| format!("open {node}"))?;
        file.write_all_at(&head, 0).with_context(|| format!("write {node}"))?;
        file.sync_all()?;
        drop(file);
        let disk = Self { config, node: CString::new(node)? };
        // SAFETY: the path of a device of this guest's own.
        if unsafe { libc::swapon(disk.node.as_ptr(), 0) } != 0 {
            let error = std::io::Error::last_os_error();
            disk.remove()?;
            bail!("swapon: {error}");
        }
        Ok(Some(disk))
    }

    fn give_back(self) -> Result<()> {
        // SAFETY: see above.
        let is_off = unsafe { libc::swapoff(self.node.as_ptr()) } == 0;
        ensure!(is_off, "swapoff: {}", std::io::Error::last_os_error());
        self.remove()
    }

    fn remove(&self) -> Result<()> {
        fs::write(format!("{}/power", self.config), "0").context("switch the disk off")?;
        fs::remove_dir(&self.config).with_context(|| format!("remove {}", self.config))
    }
}
