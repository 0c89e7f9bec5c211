//! Sends a folder, or the kernel's own trees, to the host side as a tar on the second serial port.
//!
//! A guest has no disk and no network; a serial port in raw mode is a pipe that every kernel has.

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const PORT: &str = "/dev/ttyS1";

/// Larger files than this say nothing about a machine (symbol tables, traces).
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The kernel files that describe a machine; folders are taken whole.
const TREES: &[&str] = &[
    "/proc/buddyinfo",
    "/proc/cgroups",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/mounts",
    "/proc/pagetypeinfo",
    "/proc/pressure",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/stat",
    "/proc/swaps",
    "/proc/sys/fs",
    "/proc/sys/kernel",
    "/proc/sys/net/core",
    "/proc/sys/net/ipv4",
    "/proc/sys/vm",
    "/proc/version",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/sys/block",
    "/sys/bus/cpu/devices",
    "/sys/bus/event_source/devices",
    "/sys/bus/node/devices",
    "/sys/class/net",
    "/sys/devices/system/clocksource",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/devices/virtual/workqueue",
    "/sys/firmware/acpi/pm_profile",
    "/sys/kernel/mm",
    "/sys/module/kernel/parameters",
    "/sys/module/rcutree/parameters",
    "/sys/module/workqueue/parameters",
];

/// Sends [`TREES`]; returns how many files went out.
pub fn send_kernel_trees() -> Result<usize> {
    send(Path::new("/"), TREES.iter().map(PathBuf::from).collect())
}

/// Sends everything below `folder`, named from there; returns how many files went out.
pub fn send_folder(folder: &Path) -> Result<usize> {
    send(folder, vec![folder.to_path_buf()])
}

fn send(base: &Path, roots: Vec<PathBuf>) -> Result<usize> {
    let port = File::options().write(true).open(PORT).with_context(|| format!("open {PORT}"))?;
    // A cooked terminal would turn every 0x0a of the archive into two bytes.
    let mut mode = tcgetattr(&port).with_context(|| format!("mode of {PORT}"))?;
    mode.make_raw();
    tcsetattr(&port, OptionalActions::Now, &mode).with_context(|| format!("raw mode of {PORT}"))?;

    let mut archive = tar::Builder::new(BufWriter::with_capacity(4096, port));
    let mut file_count = 0;
    let mut pending = roots;
    while let Some(path) = pending.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let name = path.strip_prefix(base).unwrap_or(&path);
        if meta.is_dir() {
            pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if meta.is_symlink() {
            let target = fs::read_link(&path).with_context(|| format!("follow {}", path.display()))?;
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            header.set_mode(0o777);
            archive.append_link(&mut header, name, target)?;
            file_count += 1;
        } else if let Some(bytes) = content(&path) {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777);
            archive.append_data(&mut header, name, bytes.as_slice())?;
            file_count += 1;
        }
    }
    let mut out = archive.into_inner()?;
    out.flush().with_context(|| format!("write {PORT}"))?;
    tcdrain(out.get_ref()).with_context(|| format!("drain {PORT}"))?;
    Ok(file_count)
}

/// The text of a kernel file; `None` for one that may not be read, is write-only, or is too large.
/// Such a file is left out of the record, which then says the truth: it could not be read here.
fn content(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_BYTES_MAX).then_some(bytes)
}
