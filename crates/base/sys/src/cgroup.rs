//! How much memory the control groups of this process still allow it, and how often they hold its CPUs back.
//!
//! A fault beyond the limit of a memory group kills a process of the group, however much memory the machine has;
//! one beyond the limit of a hugetlb group raises SIGBUS. So whoever faults much in at once asks first.
//!
//! ```text
//!   /proc/self/cgroup      our group in each hierarchy:  0::/system.slice/db     4:memory:/docker/7f..
//!   /proc/self/mountinfo   where a hierarchy is mounted, and which group the mount begins at
//!   from our group up to that one:  room = limit - usage + clean file cache; the smallest counts
//! ```
//!
//! Groups above the mount cannot be seen from inside a container; nor can they be asked for.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, cgroup-v1/hugetlb.rst,
//! Documentation/scheduler/sched-bwc.rst; mountinfo in proc(5).

#![expect(
    clippy::disallowed_methods,
    reason = "what we may map is a fact of the running process, never of a recorded machine"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// What a limit leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that can still be had.
    pub bytes: u64,
    /// The file of the limit.
    pub file: PathBuf,
    /// The limit itself.
    pub limit_bytes: u64,
    /// The file that tells how much is used, clean file cache with it.
    pub usage: PathBuf,
}

/// The tightest limit on memory; `None` where no group of ours has one. A `memory.high` counts as one: beyond it the
/// kernel slows the group down until it stands still.
pub fn memory_room() -> Option<Room> {
    room(Path::new("/"), "memory", &MEMORY)
}

/// The tightest limit on hugetlb pages of this size; `None` where no group of ours has one.
pub fn hugetlb_room(page_bytes: usize) -> Option<Room> {
    let name = format!("hugetlb.{}", size_name(page_bytes));
    let file = |end: &str| format!("{name}.{end}");
    let (current, max) = (file("current"), file("max"));
    let (usage, limit) = (file("usage_in_bytes"), file("limit_in_bytes"));
    let (reserved, reserved_max) = (file("rsvd.current"), file("rsvd.max"));
    let (reserved_usage, reserved_limit) = (file("rsvd.usage_in_bytes"), file("rsvd.limit_in_bytes"));
    let limits = [
        Limit { limit: &max, usage: &current, cache: &[] },
        Limit { limit: &reserved_max, usage: &reserved, cache: &[] },
        Limit { limit: &limit, usage: &usage, cache: &[] },
        Limit { limit: &reserved_limit, usage: &reserved_usage, cache: &[] },
    ];
    room(Path::new("/"), "hugetlb", &limits)
}

/// Where the hierarchy is mounted whose groups `perf_event_open` takes: that of `perf_event` in version 1, else version
/// 2, which always has it; `None` without either.
pub fn perf_event_folder() -> Option<PathBuf> {
    perf_event_folder_in(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

fn perf_event_folder_in(mounts: &str) -> Option<PathBuf> {
    let found = mounts.lines().filter_map(|line| Mount::parse(line, "perf_event"));
    found.min_by_key(|mount| mount.is_v2).map(|mount| mount.folder.to_owned())
}

/// Names of the files of one limit, and the lines of `memory.stat` that can be given back at once: what is
/// counted, then what of it cannot (dirty pages, and pages on their way to disk).
struct Limit<'a> {
    limit: &'a str,
    usage: &'a str,
    cache: &'a [[&'a str; 2]],
}

const CACHE_V2: [[&str; 2]; 2] = [["inactive_file", "active_file"], ["file_dirty", "file_writeback"]];
const CACHE_V1: [[&str; 2]; 2] =
    [["total_inactive_file", "total_active_file"], ["total_dirty", "total_writeback"]];

const MEMORY: [Limit<'static>; 3] = [
    Limit { limit: "memory.max", usage: "memory.current", cache: &CACHE_V2 },
    Limit { limit: "memory.high", usage: "memory.current", cache: &CACHE_V2 },
    Limit { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", cache: &CACHE_V1 },
];

/// No machine has so much: version 1 says "no limit" with the largest number of pages.
const UNLIMITED: u64 = 1 << 62;

/// The tightest of these limits over all groups of ours that `controller` has; `root` is `/` but in tests.
fn room(root: &Path, controller: &str, limits: &[Limit<'_>]) -> Option<Room> {
    let rooms = folders(root, controller).into_iter().flat_map(|folder| {
        limits.iter().filter_map(move |limit| {
            let file = folder.join(limit.limit);
            let (bytes, limit_bytes) = limit.left(&root.join(folder.strip_prefix("/").ok()?))?;
            Some(Room { bytes, file, limit_bytes, usage: folder.join(limit.usage) })
        })
    });
    rooms.min_by_key(|room| room.bytes)
}

/// Folders of our group and of those above it, as the process sees them, in each hierarchy that may have the
/// controller.
fn folders(root: &Path, controller: &str) -> Vec<PathBuf> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let of_mount = |line| {
        let mount = Mount::parse(line, controller)?;
        let group = group_of(&groups, if mount.is_v2 { "" } else { controller })?;
        Some(mount.folders(group))
    };
    mounts.lines().filter_map(of_mount).flatten().collect()
}

/// What CPU quotas (`cpu.max`, `cpu.cfs_quota_us`) have held back so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which a group had used up its quota.
    pub count: u64,
    /// Time of all CPUs together that it had to wait for the next one, in microseconds.
    pub time_us: u64,
}

/// The sum over our group and those above it; `None` where the CPU controller counts for none of them.
pub fn cpu_throttling() -> Option<Throttling> {
    throttling(Path::new("/"))
}

fn throttling(root: &Path) -> Option<Throttling> {
    let of_folder = |folder: PathBuf| {
        let stat = fs::read_to_string(root.join(folder.strip_prefix("/").ok()?).join("cpu.stat")).ok()?;
        // Version 2 counts microseconds, version 1 nanoseconds.
        let time_us =
            line(&stat, "throttled_usec").or_else(|| Some(line(&stat, "throttled_time")? / 1000))?;
        Some(Throttling { count: line(&stat, "nr_throttled")?, time_us })
    };
    folders(root, "cpu")
        .into_iter()
        .filter_map(of_folder)
        .reduce(|sum, one| Throttling { count: sum.count + one.count, time_us: sum.time_us + one.time_us })
}

impl Limit<'_> {
    /// What the limit leaves in the group of `folder`, and the limit; `None` without one.
    fn left(&self, folder: &Path) -> Option<(u64, u64)> {
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        // `max` is no number.
        let limit = number(self.limit).filter(|&limit| limit < UNLIMITED)?;
        let used = number(self.usage)?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let sum = |names: &[&str]| names.iter().filter_map(|name| line(&stat, name)).sum::<u64>();
        let cache = match self.cache {
            [clean, dirty] => sum(clean).saturating_sub(sum(dirty)),
            _ => 0,
        };
        Some((limit.saturating_sub(used.saturating_sub(cache)), limit))
    }
}

/// A line of `memory.stat` or `cpu.stat`: `active_file 4096`.
fn line(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Our group in the hierarchy of a controller, from a line `4:cpu,memory:/docker/7f`; that of version 2 has no
/// controllers.
fn group_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then_some(group)
    })
}

/// A mounted hierarchy.
struct Mount<'a> {
    /// The group that the mount shows as its top.
    top: &'a str,
    folder: &'a Path,
    is_v2: bool,
}

impl<'a> Mount<'a> {
    /// A line of mountinfo, where it is a hierarchy that may have the controller:
    /// `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`.
    fn parse(line: &'a str, controller: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (top, folder) = (words.next()?, Path::new(words.next()?));
        let mut words = system.split(' ');
        let (kind, options) = (words.next()?, words.nth(1)?);
        let is_v2 = match kind {
            "cgroup2" => true,
            "cgroup" if options.split(',').any(|option| option == controller) => false,
            _ => return None,
        };
        Some(Self { top, folder, is_v2 })
    }

    /// The folders from `group` up to the top of the mount. A group that lies outside of it, as one of another
    /// namespace does, is bound by the top at least.
    fn folders(&self, group: &str) -> Vec<PathBuf> {
        let below = Path::new(group).strip_prefix(self.top).unwrap_or(Path::new(""));
        let is_outside = below.components().any(|part| part == std::path::Component::ParentDir);
        let below = if is_outside { Path::new("") } else { below };
        below.ancestors().map(|part| self.folder.join(part)).collect()
    }
}

/// A size as the hugetlb controller names it: `2MB`, `1GB`, `64KB` (`mem_fmt` in mm/hugetlb_cgroup.c).
#[must_use]
pub fn size_name(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{}GB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{}MB", bytes >> 20),
        _ => format!("{}KB", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
    const V2: &str = "35 31 0:32 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";

    /// A tree of files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn memory(files: &[(&str, &str)]) -> Option<Room> {
        room(tree(files).path(), "memory", &MEMORY)
    }

    #[test]
    fn the_tightest_group_above_us_counts() {
        let files = [
            ("proc/self/cgroup", "0::/a.slice/b.service\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/a.slice/memory.max", "5000\n"),
            ("sys/fs/cgroup/a.slice/memory.current", "4600\n"),
            ("sys/fs/cgroup/a.slice/memory.stat", "active_file 200\ninactive_file 100\nfile_dirty 50\n"),
            ("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n"),
            ("sys/fs/cgroup/a.slice/b.service/memory.high", "3000\n"),
            ("sys/fs/cgroup/a.slice/b.service/memory.current", "100\n"),
        ];
        let of = |bytes, limit_bytes, folder: &str, limit: &str| {
            let folder = Path::new("/sys/fs/cgroup").join(folder);
            let (file, usage) = (folder.join(limit), folder.join("memory.current"));
            Some(Room { bytes, file, limit_bytes, usage })
        };
        assert_eq!(memory(&files), of(650, 5000, "a.slice", "memory.max"));
        assert_eq!(memory(&files[..2]), None, "no limit anywhere");
        let without_max = [&files[..2], &files[5..]].concat();
        assert_eq!(memory(&without_max), of(2900, 3000, "a.slice/b.service", "memory.high"));
    }

    #[test]
    fn version_1_is_read_too_and_its_largest_number_is_no_limit() {
        let file = |name: &str| format!("sys/fs/cgroup/memory/docker/7f/memory.{name}");
        let (limit, usage) = (file("limit_in_bytes"), file("usage_in_bytes"));
        let mut files = vec![
            ("proc/self/cgroup", "4:cpu,memory:/docker/7f\n0::/\n"),
            ("proc/self/mountinfo", V1),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"),
            (&limit, "1000\n"),
            (&usage, "1200\n"),
        ];
        let place = |file: &str| PathBuf::from("/").join(file);
        let room = Room { bytes: 0, file: place(&limit), limit_bytes: 1000, usage: place(&usage) };
        assert_eq!(memory(&files), Some(room), "usage is counted in batches");
        files.truncate(4);
        assert_eq!(memory(&files), None);
    }

    /// A container without a namespace of its own for groups sees the path of its host, mounted at its own group.
    #[test]
    fn a_mount_that_begins_at_our_group_is_that_group() {
        let mount = "35 31 0:32 /docker/7f /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let limit = [("sys/fs/cgroup/memory.max", "700\n"), ("sys/fs/cgroup/memory.current", "0\n")];
        for group in ["0::/docker/7f\n", "0::/../other\n", "0::/\n"] {
            let files = [&[("proc/self/cgroup", group), ("proc/self/mountinfo", mount)], &limit[..]].concat();
            assert_eq!(memory(&files).map(|room| room.bytes), Some(700), "{group}");
        }
    }

    #[test]
    fn a_hierarchy_of_perf_event_goes_before_version_2() {
        assert_eq!(perf_event_folder_in(V1), None);
        assert_eq!(perf_event_folder_in(V2), Some(PathBuf::from("/sys/fs/cgroup")));
        let both = format!("{V2}36 31 0:33 / /sys/fs/cgroup/pe rw - cgroup cgroup rw,perf_event\n");
        assert_eq!(perf_event_folder_in(&both), Some(PathBuf::from("/sys/fs/cgroup/pe")));
    }

    #[test]
    fn quotas_of_all_groups_above_us_are_counted() {
        let files = [
            ("proc/self/cgroup", "0::/a.slice/b.service\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 9\nuser_usec 9\n"),
            (
                "sys/fs/cgroup/a.slice/cpu.stat",
                "usage_usec 9\nnr_periods 7\nnr_throttled 2\nthrottled_usec 500\n",
            ),
            ("sys/fs/cgroup/a.slice/b.service/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_usec 40\n"),
        ];
        assert_eq!(throttling(tree(&files).path()), Some(Throttling { count: 5, time_us: 540 }));
        assert_eq!(throttling(tree(&files[..3]).path()), None, "the root has no quota");
        let files = [
            ("proc/self/cgroup", "2:cpuacct:/x\n1:cpu:/docker/7f\n0::/\n"),
            ("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            (
                "sys/fs/cgroup/cpu/docker/7f/cpu.stat",
                "nr_periods 9\nnr_throttled 4\nthrottled_time 7000999\n",
            ),
        ];
        assert_eq!(throttling(tree(&files).path()), Some(Throttling { count: 4, time_us: 7000 }));
    }

    #[test]
    fn sizes_are_named_as_the_controller_names_them() {
        assert_eq!([64 << 10, 2 << 20, 16 << 30].map(size_name), ["64KB", "2MB", "16GB"]);
    }

    #[test]
    fn rubbish_limits_nothing() {
        let odd = "x\n1 2 3\n35 31 0:32 / - cgroup2\n35 31 0:32 / /a rw - cgroup2 cgroup2\n - \n";
        assert_eq!(memory(&[("proc/self/cgroup", "::\n0:\n0::/\n"), ("proc/self/mountinfo", odd)]), None);
        assert_eq!(memory(&[]), None);
    }

    #[test]
    fn the_running_process_is_asked_without_harm() {
        assert!(cpu_throttling().is_none_or(|held| held.time_us < u64::MAX / 2));
        for room in [memory_room(), hugetlb_room(2 << 20)].into_iter().flatten() {
            assert!(room.file.is_absolute() && room.bytes < UNLIMITED, "{room:?}");
        }
    }
}
