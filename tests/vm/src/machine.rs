//! What a userland expects to find, and what this guest was told about itself.

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount};
use std::fs;

/// What QEMU was asked to build, from `planish.*` words of the kernel command line.
///
/// The checks compare planish with this, never with the kernel files that planish itself reads.
pub struct Shape {
    /// NUMA nodes, memory-only ones included.
    pub node_count: usize,
    /// Nodes without a CPU.
    pub node_cpuless_count: usize,
    /// CPUs over all nodes.
    pub cpu_count: usize,
    /// Whether the tree of this guest is to be sent out on the second serial port.
    pub record: bool,
    /// Whether real servers are packed, and nothing else is to be looked at.
    pub servers: bool,
    /// Whether nothing but text on huge pages is to be looked at.
    pub text: bool,
}

impl Shape {
    fn from_command_line(line: &str) -> Result<Self> {
        let word = |key: &str| {
            let prefix = format!("planish.{key}=");
            line.split_whitespace().find_map(|word| word.strip_prefix(&prefix))
        };
        let count = |key: &str| -> Result<usize> {
            let text = word(key).with_context(|| format!("no planish.{key} on the kernel command line"))?;
            text.parse().with_context(|| format!("planish.{key}={text} is no count"))
        };
        Ok(Self {
            node_count: count("nodes")?,
            node_cpuless_count: count("cpuless")?,
            cpu_count: count("cpus")?,
            record: word("record") == Some("1"),
            servers: word("only") == Some("servers"),
            text: word("only") == Some("text"),
        })
    }
}

/// Mounts the pseudo file systems and reads the shape.
pub fn prepare() -> Result<Shape> {
    let none = MountFlags::empty();
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tmpfs", "/var"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        // sysfs and cgroupfs bring their own mount points; everything else is made here.
        let _ = fs::create_dir_all(target);
        match mount(kind, target, kind, none, None) {
            Ok(()) => {}
            // devtmpfs may have been mounted by the kernel; the last two are a convenience only.
            Err(error) if matches!(kind, "devtmpfs" | "debugfs" | "tracefs") => {
                println!("init: mount {kind}: {error}");
            }
            Err(error) => return Err(error).with_context(|| format!("mount {kind} on {target}")),
        }
    }
    load_modules("/modules")?;
    Shape::from_command_line(&fs::read_to_string("/proc/cmdline").context("read /proc/cmdline")?)
}

/// Loads what the host side packed into a folder, in the order of its names: a disk without storage, whose queue has
/// real settings; file systems.
pub fn load_modules(folder: &str) -> Result<()> {
    /// `MODULE_INIT_COMPRESSED_FILE` (`include/uapi/linux/module.h`): the kernel unpacks it itself.
    const COMPRESSED: i32 = 4;
    let entries = fs::read_dir(folder).with_context(|| format!("list {folder}"))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let flags = if path.extension().is_some_and(|extension| extension == "xz") { COMPRESSED } else { 0 };
        let file = fs::File::open(&path).with_context(|| format!("open {}", path.display()))?;
        rustix::system::finit_module(&file, c"", flags)
            .with_context(|| format!("load {}", path.display()))?;
    }
    Ok(())
}

/// Stops the machine in the ordinary way; never returns.
pub fn power_off() -> ! {
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    loop {
        std::thread::park();
    }
}
