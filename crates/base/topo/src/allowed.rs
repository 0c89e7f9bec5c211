//! Which CPUs the observing process may use.
//!
//! Affinity and cpuset both restrict it. `/proc/self/status` shows their intersection on a live machine; a
//! recording may have the cgroup's files only, so both are read.

use planish_sys::CpuSet;

use crate::reader::Reader;

/// The allowed CPUs; `None` where nothing restricts them or nothing tells.
pub(crate) fn read(reader: &mut Reader) -> Option<CpuSet> {
    let by_status = by_status(reader);
    let by_cgroup = by_cgroup(reader);
    match (by_status, by_cgroup) {
        (Some(status), Some(cgroup)) => Some(status.intersection(&cgroup)),
        (status, cgroup) => status.or(cgroup),
    }
}

fn by_status(reader: &mut Reader) -> Option<CpuSet> {
    let path = "/proc/self/status";
    let text = reader.text(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    reader.parse(path, line, |list| CpuSet::parse_list(list).ok())
}

/// The CPUs of the nearest group that has a cpuset.
fn by_cgroup(reader: &mut Reader) -> Option<CpuSet> {
    let mounts = reader.text("/proc/mounts")?;
    let groups = reader.text("/proc/self/cgroup");
    let group = |controller: &str| groups.as_deref().and_then(|text| group_of(text, controller));
    // The name that the cpuset controller itself has for our group, of whichever version.
    let own = reader.text("/proc/self/cpuset");
    for mount in mounts.lines().filter_map(Mount::parse) {
        let (group, file) = match mount.kind {
            MountKind::Version2 => (group("").or_else(|| own.clone()), "cpuset.cpus.effective"),
            MountKind::Cpuset => (group("cpuset").or_else(|| own.clone()), "cpuset.cpus"),
            MountKind::CpusetFs => (group("cpuset").or_else(|| own.clone()), "cpus"),
        };
        let found = group.and_then(|group| nearest(reader, mount.folder, &group, file));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The set in the file of `group` or, where the controller is not enabled so far down, of the next group
/// above.
fn nearest(reader: &mut Reader, mount: &str, group: &str, file: &str) -> Option<CpuSet> {
    let mut group = group.trim_end_matches('/');
    loop {
        // An empty file means the parent's set (version 1: a group that nobody has set up).
        let set = reader.list::<planish_sys::set::Cpu>(&format!("{mount}{group}/{file}"));
        if let Some(set) = set.filter(|set| !set.is_empty()) {
            return Some(set);
        }
        group = group.rsplit_once('/')?.0;
    }
}

/// The group of a controller in /proc/self/cgroup; the empty name is the one of version 2.
fn group_of(text: &str, controller: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then(|| group.to_owned())
    })
}

enum MountKind {
    Version2,
    /// Version 1 with the cpuset controller.
    Cpuset,
    /// The cpuset file system of before there were cgroups.
    CpusetFs,
}

struct Mount<'a> {
    folder: &'a str,
    kind: MountKind,
}

impl<'a> Mount<'a> {
    /// A line of /proc/mounts, when it is of a file system that can have cpusets.
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        let kind = match kind {
            "cgroup2" => MountKind::Version2,
            "cgroup" if options.split(',').any(|option| option == "cpuset") => {
                // Mounted with `noprefix` the files have the names of the cpuset file system.
                if options.split(',').any(|option| option == "noprefix") {
                    MountKind::CpusetFs
                } else {
                    MountKind::Cpuset
                }
            }
            "cpuset" => MountKind::CpusetFs,
            _ => return None,
        };
        Some(Self { folder, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_by_controller() {
        let text = "9:name=systemd:/user\n4:cpu,cpuacct:/a\n3:cpuset:/b/c\n0::/d\n";
        assert_eq!(group_of(text, "cpuset").as_deref(), Some("/b/c"));
        assert_eq!(group_of(text, "cpuacct").as_deref(), Some("/a"));
        assert_eq!(group_of(text, "").as_deref(), Some("/d"));
        assert_eq!(group_of(text, "memory"), None);
    }

    #[test]
    fn only_mounts_with_cpusets_count() {
        let folder = |line| Mount::parse(line).map(|mount| mount.folder.to_owned());
        assert_eq!(folder("none /cg cgroup rw,cpuset 0 0").as_deref(), Some("/cg"));
        assert_eq!(folder("none /cg cgroup rw,memory 0 0"), None);
        assert_eq!(folder("none /sys/fs/cgroup cgroup2 rw 0 0").as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(folder("broken"), None);
    }
}
