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

/// The control group of the process, and what is reclaimed of it between the two looks: what is in the swap cache as
/// well goes first.
const GROUPS: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/planish-swapped";
const RECLAIMED: u64 = 6 * MIB;

/// Writes a segment, has some of it paged out, says so, and waits to be ended.
pub fn stand() {
    if Path::new(GROUP).exists() {
        fs::write(format!("{GROUP}/cgroup.procs"), std::process::id().to_string()).expect("a group");
    }
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

/// Compares what `map` tells to be in swap with what smaps says of the same mapping, before and after: where nearly all
/// of it is in the swap cache as well, and where a part of it is in swap alone.
pub fn stays() -> Result<Outcome> {
    let Some(disk) = Disk::make()? else {
        return Ok(Outcome::Skip("no null_blk with memory of its own".to_owned()));
    };
    let compared = make_group().and_then(|()| {
        let compared = beside(WORD, |pid| {
            let first = compare(pid)?;
            // It tells EAGAIN where it found less.
            let _ = fs::write(format!("{GROUP}/memory.reclaim"), RECLAIMED.to_string());
            let second = compare(pid)?;
            let [[told, cached], [told_then, cached_then]] = [first, second];
            ensure!(cached > told / 2 && cached_then < cached, "{first:?}, then {second:?}");
            let mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB as f64);
            let [told, cached, told_then, cached_then] = [told, cached, told_then, cached_then].map(mib);
            let figures = format!("{told} MiB, {cached} in the swap cache; {told_then} and {cached_then}");
            Ok(Outcome::Ok(format!("in swap before and after a look: {figures}")))
        });
        fs::remove_dir(GROUP).with_context(|| format!("remove {GROUP}"))?;
        compared
    });
    let given_back = disk.give_back();
    let outcome = compared?;
    given_back?;
    Ok(outcome)
}

fn make_group() -> Result<()> {
    let write = |path: String, text: &str| fs::write(&path, text).with_context(|| format!("write {path}"));
    write(format!("{GROUPS}/cgroup.subtree_control"), "+memory")?;
    fs::create_dir(GROUP).with_context(|| format!("make {GROUP}"))
}

/// Bytes that are in swap, before and after a look and by it, with what the process has of its own; and those of them
/// that are in the swap cache as well.
fn compare(pid: u32) -> Result<[u64; 2]> {
    let ([before, before_shared], cached) = (swapped(pid)?, cached()?);
    let map = planish::json(&["map", &pid.to_string()], &[0])?;
    let [after, _] = swapped(pid)?;
    ensure!(before >= SWAPPED_LEAST, "{before} bytes are in swap");
    ensure!(after == before, "{before} bytes were in swap, and {after} after the look");
    let result = &map["result"];
    let rows = result["rows"].as_array().context("no result.rows")?;
    let shared = rows.iter().filter(|row| row["kind"] == "shared");
    let resident: u64 = shared.filter_map(|row| row["resident_bytes"].as_u64()).sum();
    let told = result["totals"]["swapped_bytes"].as_u64().context("no totals.swapped_bytes")?;
    let wanted = (before, SEGMENT - before_shared);
    ensure!((told, resident) == wanted, "{told} in swap, {resident} resident for {wanted:?}: {map}");
    Ok([told, cached])
}

/// Bytes that smaps of a process has in swap: of all of its mappings, and of shared ones.
fn swapped(pid: u32) -> Result<[u64; 2]> {
    let text = settings::read(&format!("/proc/{pid}/smaps"))?;
    let (mut swapped, mut is_shared) = ([0; 2], false);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("Swap:"), Some(count)) => {
                let bytes = count.parse::<u64>()? << 10;
                swapped[0] += bytes;
                swapped[1] += if is_shared { bytes } else { 0 };
            }
            (Some(name), Some(rights)) if !name.ends_with(':') => is_shared = rights.ends_with('s'),
            _ => {}
        }
    }
    Ok(swapped)
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
