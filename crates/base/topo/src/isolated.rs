//! Which CPUs the scheduler leaves to the threads that are pinned to them.

use planish_host::Host;
use planish_sys::CpuSet;

use crate::reader::Reader;

/// The CPUs that no task is balanced to, nor away from: those of `isolcpus`, and those of isolated partitions of
/// cpusets (cgroup v2; Linux 6.7 tells them). `None` where the kernel does not tell.
///
/// Source: Documentation/admin-guide/kernel-parameters.txt (isolcpus) and cgroup-v2.rst (cpuset.cpus.isolated).
pub fn isolated(host: &Host) -> Option<CpuSet> {
    let mut reader = Reader::new(host);
    let boot = reader.list("/sys/devices/system/cpu/isolated")?;
    let partitions: CpuSet = reader.list("/sys/fs/cgroup/cpuset.cpus.isolated").unwrap_or_default();
    Some(boot.union(&partitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes a host of its own")]
    fn both_lists_count_and_without_the_first_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
            isolated(&Host::open(folder.path()).unwrap()).map(|cpus| cpus.to_string())
        };
        assert_eq!(write("sys/fs/cgroup/cpuset.cpus.isolated", "6\n"), None);
        assert_eq!(write("sys/devices/system/cpu/isolated", "\n").as_deref(), Some("6"));
        // The byte zero is what Linux 5.15 put there.
        assert_eq!(write("sys/devices/system/cpu/isolated", "2-3\n\0").as_deref(), Some("2-3,6"));
        assert_eq!(write("sys/fs/cgroup/cpuset.cpus.isolated", "").as_deref(), Some("2-3"));
    }
}
