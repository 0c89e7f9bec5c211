//! Which devices are memory: by them a mapped file is told from one on a disk, on a network or of a program before
//! anything is asked of it. Whoever asks a FUSE or NFS server that has gone away waits for good, and no signal ends
//! that.
//!
//! Memory are the mounts that the kernel keeps for itself, and those of tmpfs and hugetlbfs in the mount namespace of
//! the process. What is in no list, as a mount that was taken away while its files are mapped, is left alone.
//!
//! Source: `show_mountinfo` in fs/proc_namespace.c, which asks no server; proc_pid_mountinfo(5).

use std::collections::{HashMap, HashSet};

use planish_host::Host;
use planish_sys::peek;

/// Major and minor number, as maps and mountinfo have them.
type Device = (u32, u32);

/// The devices that are memory, as far as they were asked for.
#[derive(Debug, Default)]
pub(crate) struct MemoryDevices {
    kernel: HashSet<Device>,
    /// By mount namespace.
    mounted: HashMap<String, HashSet<Device>>,
}

impl MemoryDevices {
    pub(crate) fn of_kernel() -> Self {
        Self { kernel: peek::kernel_mounts().into_iter().collect(), mounted: HashMap::new() }
    }

    /// Whether the device of a file that process `pid` has mapped is memory.
    pub(crate) fn has(&mut self, host: &Host, pid: u32, device: Device) -> bool {
        // All others have a device of their own.
        if device.0 != 0 {
            return false;
        }
        if self.kernel.contains(&device) {
            return true;
        }
        let namespace = host.read_link(&format!("/proc/{pid}/ns/mnt")).unwrap_or_else(|| pid.to_string());
        let read = || {
            let text = host.read_lossy(&format!("/proc/{pid}/mountinfo")).unwrap_or_default();
            text.lines().filter_map(memory).collect()
        };
        self.mounted.entry(namespace).or_insert_with(read).contains(&device)
    }
}

/// The device of a line of mountinfo, where its file system is memory:
/// `36 25 0:32 / /dev/shm rw,nosuid - tmpfs tmpfs rw`.
fn memory(line: &str) -> Option<Device> {
    let (mount, system) = line.split_once(" - ")?;
    let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
    matches!(system.split(' ').next()?, "tmpfs" | "devtmpfs" | "hugetlbfs").then_some(())?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_memory_by_its_file_system() {
        let line = |system: &str| format!("36 25 0:32 / /mnt/a rw,nosuid shared:7 - {system} x rw");
        for system in ["tmpfs", "devtmpfs", "hugetlbfs"] {
            assert_eq!(memory(&line(system)), Some((0, 32)), "{system}");
        }
        for system in ["fuse.sshfs", "nfs4", "ext4", "overlay", "tmpfs2"] {
            assert_eq!(memory(&line(system)), None, "{system}");
        }
        assert_eq!(memory("36 25 0:32 / /mnt/a rw"), None);
    }

    #[test]
    fn what_the_kernel_keeps_is_memory_without_a_mount() {
        let mut devices = MemoryDevices::of_kernel();
        let kernel = devices.kernel.clone();
        assert!(!kernel.is_empty());
        let own = std::process::id();
        assert!(kernel.iter().all(|device| devices.has(&Host::live(), own, *device)));
        assert!(!devices.has(&Host::live(), own, (8, 1)));
        assert!(!devices.has(&Host::live(), own, (0, u32::MAX)));
    }
}
