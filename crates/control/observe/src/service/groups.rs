//! The control groups of a process, of both versions: limits, what is used of them, and how often they held it back.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, Documentation/scheduler/sched-bwc.rst. Groups
//! above the mount cannot be seen from inside a container.

use planish_host::Host;
use planish_model::{GroupLimit, units};

/// Version 1 says "no limit" with the largest number of pages.
const UNLIMITED: u64 = 1 << 62;

/// One group of the service in one hierarchy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Group {
    /// Its folder.
    pub(super) folder: String,
    /// CPUs that its quota comes to, and the file that says so.
    pub(super) quota: Option<(f64, String)>,
    /// Periods in which it ran, and those in which its quota was used up.
    pub(super) periods: Option<(u64, u64)>,
    /// Time that it was held back, in microseconds.
    pub(super) throttled_us: u64,
    /// Bytes that it may use, the file, and what it uses.
    pub(super) memory: Vec<(u64, String, Option<u64>)>,
    /// Sizes of huge pages, how many bytes of each it may use, and the file.
    pub(super) hugetlb: Vec<(u64, u64, String)>,
    /// Processes of it that were killed for want of memory.
    pub(super) oom_kills: Option<u64>,
    /// The CPUs that it leaves, and the file.
    pub(super) cpus: Option<(String, String)>,
    /// Its kind of partition, where it is one.
    pub(super) partition: Option<String>,
}

/// The groups of a process in each hierarchy, from its own up to the mount.
pub(super) fn of(host: &Host, pid: u32) -> Vec<Group> {
    let groups = host.read_lossy(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mounts = host.read_lossy("/proc/mounts").unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let Some(mount) = mount_of(&mounts, controllers) else { continue };
        let mut path = path.trim_end_matches('/');
        loop {
            let group = read(host, &format!("{mount}{path}"));
            if group != (Group { folder: group.folder.clone(), ..Group::default() }) {
                found.push(group);
            }
            let Some((above, _)) = path.rsplit_once('/') else { break };
            path = above;
        }
    }
    found
}

/// Where a hierarchy is mounted: that of version 2 has no controllers in its line of a process.
fn mount_of(mounts: &str, controllers: &str) -> Option<String> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (folder, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = match kind {
            "cgroup2" => controllers.is_empty(),
            // Named hierarchies have no limits.
            "cgroup" => {
                controllers.split(',').any(|name| !name.is_empty() && options.split(',').any(|o| o == name))
            }
            _ => false,
        };
        fits.then(|| folder.trim_end_matches('/').to_owned())
    })
}

fn read(host: &Host, folder: &str) -> Group {
    let text = |name: &str| host.read(&format!("{folder}/{name}")).ok().map(|text| text.trim().to_owned());
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let file = |name: &str| format!("{folder}/{name}");
    let mut group = Group { folder: folder.to_owned(), ..Group::default() };
    group.quota =
        text("cpu.max").and_then(|max| quota_v2(&max)).map(|cpus| (cpus, file("cpu.max"))).or_else(|| {
            let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
            (period > 0).then(|| (quota as f64 / period as f64, file("cpu.cfs_quota_us")))
        });
    if let Some(stat) = text("cpu.stat") {
        let get =
            |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        group.periods = get("nr_periods ").zip(get("nr_throttled ")).filter(|(periods, _)| *periods > 0);
        group.throttled_us =
            get("throttled_usec ").or_else(|| Some(get("throttled_time ")? / 1000)).unwrap_or(0);
    }
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
    for name in ["memory.max", "memory.high", "memory.limit_in_bytes"] {
        if let Some(bytes) = number(name).filter(|bytes| *bytes < UNLIMITED) {
            group.memory.push((bytes, file(name), used));
        }
    }
    for page_bytes in page_sizes(host) {
        let size = planish_sys::cgroup::size_name(usize::try_from(page_bytes).unwrap_or(usize::MAX));
        for name in ["max", "rsvd.max", "limit_in_bytes", "rsvd.limit_in_bytes"] {
            let name = format!("hugetlb.{size}.{name}");
            if let Some(bytes) = number(&name).filter(|bytes| *bytes < UNLIMITED) {
                group.hugetlb.push((page_bytes, bytes, file(&name)));
            }
        }
    }
    let kills =
        |events: &str| events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    let events = text("memory.events").or_else(|| text("memory.oom_control"));
    group.oom_kills = events.as_deref().and_then(kills).filter(|kills: &u64| *kills > 0);
    let cpus = ["cpuset.cpus", "cpuset.effective_cpus"]
        .into_iter()
        .find_map(|name| Some((text(name).filter(|cpus| !cpus.is_empty())?, file(name))));
    group.cpus = cpus;
    group.partition = text("cpuset.cpus.partition").filter(|kind| kind != "member");
    group
}

/// The sizes of huge pages that this kernel has pools for.
fn page_sizes(host: &Host) -> Vec<u64> {
    let names = host.list("/sys/kernel/mm/hugepages");
    let kib = |name: &String| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok();
    names.iter().filter_map(kib).map(|kib| kib.saturating_mul(1024)).collect()
}

/// `max 100000` or `250000 100000`.
fn quota_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

impl Group {
    /// The limits of the group as they are told.
    pub(super) fn told(&self) -> Vec<GroupLimit> {
        let mut told = Vec::new();
        if let Some((cpus, file)) = &self.quota {
            let used = self.periods.map_or_else(String::new, |(periods, throttled)| {
                format!(
                    "throttled in {throttled} of {periods} periods, {} ms in all",
                    self.throttled_us / 1000
                )
            });
            told.push(GroupLimit { file: file.clone(), limit: format!("{cpus:.1} CPUs"), used });
        }
        for (bytes, file, used) in &self.memory {
            let used = used.map_or_else(String::new, |used| format!("{} used", units::bytes(used)));
            told.push(GroupLimit { file: file.clone(), limit: units::bytes(*bytes), used });
        }
        for (page_bytes, bytes, file) in &self.hugetlb {
            let limit = format!("{} of {} pages", units::bytes(*bytes), units::bytes(*page_bytes));
            told.push(GroupLimit { file: file.clone(), limit, used: String::new() });
        }
        if let Some((cpus, file)) = &self.cpus {
            let used = self.partition.as_ref().map(|kind| format!("partition {kind}")).unwrap_or_default();
            told.push(GroupLimit { file: file.clone(), limit: format!("CPUs {cpus}"), used });
        }
        if let Some(kills) = self.oom_kills {
            let (file, limit) = (format!("{}/memory.events", self.folder), "out of memory".to_owned());
            told.push(GroupLimit { file, limit, used: format!("{kills} processes killed") });
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotas_and_mounts_of_both_versions() {
        assert_eq!(quota_v2("250000 100000"), Some(2.5));
        assert_eq!(quota_v2("max 100000"), None);
        let mounts = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n";
        assert_eq!(mount_of(mounts, "").as_deref(), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount_of(mounts, "cpu,cpuacct").as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(mount_of(mounts, "name=systemd").as_deref(), Some("/sys/fs/cgroup/systemd"));
        assert_eq!(mount_of(mounts, "memory"), None);
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "\\PC{0,100}") {
            let _ = (quota_v2(&text), mount_of(&text, "cpu"));
        }
    }
}
