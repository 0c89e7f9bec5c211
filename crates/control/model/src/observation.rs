//! What was seen on a host, at one moment, without writing anything.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BootLoader, BootValue, CacheControl, Cpus, Demand, KnobId, Machine, SeenWriter, Vendor};

/// Who may read and write a place, found by asking and never by writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "access", content = "reason")]
pub enum Access {
    /// This user may write it.
    Writable,
    /// The file is there, but this user may not write it; root may.
    NeedsRoot,
    /// Nobody may: mode bits, a read-only mount, or a container. The text says which.
    ReadOnly(String),
    /// Not there.
    Absent,
}

impl Access {
    /// Why nobody may write a place whose file system is mounted read-only, as in many containers.
    pub const READ_ONLY_MOUNT: &'static str = "on a file system that is mounted read-only";
}

/// One place of a knob as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// The concrete path.
    pub place: String,
    /// The kernel's text, without the last line break; `None` when it could not be read.
    pub value: Option<String>,
    /// Why it could not be read.
    pub unread: Option<String>,
    /// The words that this host offers for it, where it says so; empty where it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// The largest number that the device takes, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// Who may write it.
    #[serde(flatten)]
    pub access: Access,
}

/// The word of a [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// Can be set here (by root, where the reason says so).
    Settable,
    /// Can be set, but means nothing here: a guest, or too few CPUs.
    Moot,
    /// The hypervisor's host must set it.
    Host,
    /// The firmware must set it.
    Firmware,
    /// Takes effect at the next boot only.
    Reboot,
    /// Something forbids it: a read-only mount, a lock-down, a managed interrupt.
    Blocked,
    /// This kernel or this machine does not have it.
    Absent,
    /// Who recorded this machine did not look for it: nobody can tell whether the machine has it.
    NotRecorded,
}

/// What the evidence says about setting a knob on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The word.
    pub verdict: VerdictKind,
    /// The evidence, in a few words; empty for a plain `settable`.
    pub reason: String,
}

impl Verdict {
    /// A verdict with its evidence.
    pub fn new(verdict: VerdictKind, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into() }
    }
}

/// Facts of the host that conditions, findings and reports ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Stable identity of the machine, hashed.
    pub host_id: String,
    /// Identity of this boot.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Model name of the CPU.
    pub cpu_model: String,
    /// Who made the CPU, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Vendor>,
    /// The distribution: `ID` of /etc/os-release, and what it is like; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os: Vec<String>,
    /// Its release, such as `15.5`; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os_version: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// NUMA nodes that have memory, by number.
    pub nodes: Vec<u32>,
    /// Those of them that have CPUs too: a pool is spread over these.
    pub cpu_nodes: Vec<u32>,
    /// The hypervisor, by evidence and not by name alone; `None` on bare metal.
    pub guest: Option<String>,
    /// The evidence for a container around the observer; `None` where there is none.
    pub container: Option<String>,
    /// Whether the observer has mounts of its own, and sees none of those that process 1 sees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mounts_apart: bool,
    /// Base page size in bytes.
    pub page_bytes: u64,
    /// Bytes of a transparent huge page; `None` for a kernel without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thp_bytes: Option<u64>,
    /// Whether the kernel has transparent huge pages; unknown where nothing tells of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_thp: Option<bool>,
    /// Whether it has pools of huge pages, and lists their sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_hugetlb: Option<bool>,
    /// Huge-page sizes that the kernel offers, in bytes, ascending.
    pub huge_page_bytes: Vec<u64>,
    /// `MemTotal` in bytes.
    pub memory_bytes: u64,
    /// `MemAvailable` in bytes.
    pub available_bytes: u64,
    /// Whether the observer is root with `CAP_SYS_ADMIN`.
    pub root: bool,
    /// Network cards through which the machine is reached: of the default routes, and of the sessions of users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_nics: Vec<String>,
}

/// The pool of one huge-page size on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolReading {
    /// The node; `None` for a kernel without NUMA.
    pub node: Option<u32>,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// The file that sizes the pool.
    pub place: String,
    /// Pages in the pool.
    pub pages: u64,
    /// Pages of it that nobody uses.
    pub free: u64,
    /// Pages above the pool, from overcommit.
    pub surplus: u64,
}

impl PoolReading {
    /// Pages that stay in the pool when nobody uses them: what its file is set to.
    #[must_use]
    pub fn persistent(&self) -> u64 {
        self.pages.saturating_sub(self.surplus)
    }
}

/// One row of `/proc/buddyinfo`: free blocks by order, which tells why a huge page was not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuddyRow {
    /// The node.
    pub node: u32,
    /// The zone: `DMA`, `DMA32`, `Normal`, `Movable`.
    pub zone: String,
    /// Free blocks of order 0, 1, 2, ...
    pub free: Vec<u64>,
}

impl BuddyRow {
    /// The rows of `/proc/buddyinfo`: `Node 0, zone   Normal     12     7     3 ...`. A line that is no such row is
    /// passed over.
    #[must_use]
    pub fn parse_all(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let (node, rest) = line.strip_prefix("Node")?.split_once(',')?;
        let mut words = rest.trim().strip_prefix("zone")?.split_whitespace();
        let zone = words.next()?.to_owned();
        let free = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { node: node.trim().parse().ok()?, zone, free })
    }

    /// Pages of a size that lie whole in free blocks; `None` when such a page is larger than the largest block,
    /// and free blocks tell nothing about it.
    #[must_use]
    pub fn fitting(&self, page_bytes: u64, base_bytes: u64) -> Option<u64> {
        let order = (page_bytes / base_bytes.max(1)).checked_ilog2()? as usize;
        let blocks = self.free.get(order..).filter(|blocks| !blocks.is_empty())?;
        Some(blocks.iter().enumerate().fold(0, |sum: u64, (above, blocks)| {
            sum.saturating_add(blocks.checked_shl(u32::try_from(above).unwrap_or(64)).unwrap_or(u64::MAX))
        }))
    }
}

/// The memory of one NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeMemory {
    /// The node.
    pub node: u32,
    /// All of it.
    pub memory_bytes: u64,
    /// What is free, and what files only lie in for speed: `MemAvailable` is told of the whole host alone.
    pub available_bytes: u64,
}

/// Pages of a size that lie whole in the free blocks of a node, or of the whole host; `None` where free blocks
/// cannot tell, as for pages larger than any block.
#[must_use]
pub fn fitting(zones: &[BuddyRow], node: Option<u32>, page_bytes: u64, base_bytes: u64) -> Option<u64> {
    let here = zones.iter().filter(|zone| node.is_none_or(|node| node == zone.node));
    let each: Vec<u64> = here.map(|zone| zone.fitting(page_bytes, base_bytes)).collect::<Option<_>>()?;
    (!each.is_empty()).then(|| each.iter().fold(0, |sum: u64, pages| sum.saturating_add(*pages)))
}

/// What a boot will set a place to, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persisted {
    /// The winning value.
    pub value: String,
    /// Who sets it: `/etc/sysctl.d/90-x.conf:3`, or `kernel command line: nmi_watchdog=0`.
    pub source: String,
    /// What the boot will really take, where that is another value: a menu that was not made anew since, or a drop-in
    /// of a unit that is gone with this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_boot: Option<String>,
    /// The sources that lose against it, in the order in which they would have been applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<BootValue>,
}

impl Persisted {
    /// That a drop-in of others is read behind one of ours, and what is to be done: no other name of ours would help
    /// for long. When that comes to be is told by whoever tells of it: at the next start of the service, a boot or not.
    #[must_use]
    pub fn read_later(source: &str, value: &str) -> String {
        let until = if Self::is_gone_with_this_boot(source) { " until a boot" } else { "" };
        format!("{source} is read after it and will set {value}{until}: {}", Self::take_out(source))
    }

    /// Whether no boot leaves a file: it lies in /run, and no generator of systemd makes it again.
    #[must_use]
    pub fn is_gone_with_this_boot(source: &str) -> bool {
        source.starts_with("/run/") && !source.starts_with(Self::GENERATED)
    }

    /// Whether a file wins that no boot leaves, and another value comes then.
    #[must_use]
    pub fn is_until_a_boot(&self) -> bool {
        self.at_boot.is_some() && Self::is_gone_with_this_boot(&self.source)
    }

    /// What a boot takes, and who says so.
    #[must_use]
    pub fn taken_at_boot(&self) -> BootValue {
        let left = self.overridden.last().filter(|_| self.is_until_a_boot());
        let source = left.map_or(&self.source, |left| &left.source);
        BootValue::new(self.at_boot.as_ref().unwrap_or(&self.value), source)
    }

    /// What rids a host of a line of others, `/etc/sysctl.d/99-x.conf:2`. A file of a package comes back with the next
    /// one: of files with one name systemd and its kin read the one in /etc (systemd.unit(5), sysctl.d(5)).
    #[must_use]
    pub fn take_out(source: &str) -> String {
        let path = source.rsplit_once(':').map_or(source, |(path, _)| path);
        if path.starts_with(Self::GENERATED) {
            return format!(
                "a generator makes {path} at each boot and each daemon-reload (systemd.generator(7)): change what it \
                 reads"
            );
        }
        let below = path.strip_prefix("/usr/lib/").or_else(|| path.strip_prefix("/lib/"));
        let is_masked = |below: &&str| Self::MASKED_BELOW.iter().any(|folder| below.starts_with(folder));
        below.filter(is_masked).map_or_else(
            || format!("take out {source}"),
            |below| {
                format!(
                    "{path} is of a package, and the next one brings it back: a file without that line as \
                     /etc/{below}, or a link to /dev/null there, is read instead"
                )
            },
        )
    }

    /// How the folders begin into which generators of systemd write.
    const GENERATED: &'static str = "/run/systemd/generator";

    /// The folders below /usr/lib of which a file gives way to one of its name in /etc.
    const MASKED_BELOW: [&str; 4] = ["systemd/system/", "sysctl.d/", "tmpfiles.d/", "udev/rules.d/"];

    /// What `apply --persist` calls its files, in sysctl.d and in tmpfiles.d.
    pub const OWN_FILE: &'static str = "90-planish.conf";
    /// What it calls its file among those that GRUB's menu is made from.
    pub const OWN_BOOT_FILE: &'static str = "90-planish.cfg";

    /// What it calls its file among the rules of udev.
    pub const OWN_RULES: &'static str = "90-planish.rules";

    /// What its drop-ins of units are called. It sorts behind the names of others, so that what it says counts.
    pub const OWN_DROP_IN: &'static str = "zz-planish.conf";
    /// How the names of its drop-ins with one setting begin.
    pub const OWN_SETTING: &'static str = "zz-planish-";

    /// The slice of services whose CPUs are isolated: the unit, its file, and its control group.
    pub const OWN_SLICE: &'static str = "planish.slice";

    /// The unit of the process that holds a limit from the boot on.
    pub const OWN_HOLDER: &'static str = "planish-hold.service";

    /// The winning value with its file and line.
    #[must_use]
    pub fn told(&self) -> BootValue {
        BootValue::new(&self.value, &self.source)
    }

    /// Pages that the next boot may give a pool: of a menu and the files that it is made of the larger one counts,
    /// since it may be made anew before that.
    #[must_use]
    pub fn pages(&self) -> Option<u64> {
        let texts = [Some(&self.value), self.at_boot.as_ref()].into_iter().flatten();
        texts.filter_map(|text| text.trim().parse().ok()).max()
    }

    /// Whether a file that planish wrote says so.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        Self::own_file(&self.source).is_some()
    }

    /// Whether it is an argument of the kernel that planish wrote into a file of its own.
    #[must_use]
    pub fn is_of_our_boot(&self) -> bool {
        Self::own_file(&self.source).is_some_and(|path| path.ends_with(Self::OWN_BOOT_FILE))
    }

    /// Whether it is applied behind another one: by the names of their files, whatever their folders, then by their
    /// lines (`sysctl.d(5)`, `tmpfiles.d(5)`). What has no line is in no such order.
    #[must_use]
    pub fn is_behind(&self, other: &Self) -> bool {
        fn order(source: &str) -> Option<(&str, u64)> {
            let (path, line) = source.rsplit_once(':')?;
            Some((path.rsplit('/').next()?, line.parse().ok()?))
        }
        order(&self.source).zip(order(&other.source)).is_some_and(|(own, other)| own > other)
    }

    /// The file of planish that a source is a line of.
    #[must_use]
    pub fn own_file(source: &str) -> Option<&str> {
        let path = source.rsplit_once(':').map_or(source, |(path, _)| path);
        let name = path.rsplit('/').next()?;
        let is_setting = name.starts_with(Self::OWN_SETTING) && name.ends_with(".conf");
        let own = [
            Self::OWN_FILE,
            Self::OWN_BOOT_FILE,
            Self::OWN_RULES,
            Self::OWN_DROP_IN,
            Self::OWN_SLICE,
            Self::OWN_HOLDER,
        ];
        (own.contains(&name) || is_setting).then_some(path)
    }
}

/// What a unit has of a setting, without the file of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitSetting {
    /// What its files give, and the file and line; `None` where the default of systemd counts.
    pub given: Option<(String, String)>,
    /// What its first process runs with, where the kernel tells, and the number of that process.
    pub running: Option<(String, u32)>,
    /// What systemd is told to give every unit that says nothing (`DefaultLimitNOFILE=`), and the file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<(String, String)>,
    /// What its control group has, where that group is there and has the setting itself, and the file; an empty text
    /// where it has no limit. systemd sets it when it reads its files anew, and not at the start of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<(String, String)>,
    /// All CPUs, where the group has a limit that was of planish once, and that no file gives any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_over: Option<String>,
    /// Why systemd sets nothing of it on this host, whatever a file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindered: Option<String>,
}

/// The value of a named fact, for finding rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FactValue {
    /// A number in the unit that the fact's name ends with.
    Number(f64),
    /// A word.
    Text(String),
}

/// A host as it was seen: the only input of decide and verify besides the catalogue and a profile or plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Facts of the host.
    pub host: HostFacts,
    /// CPUs that the machine has, online or not; none where it does not tell.
    #[serde(default, skip_serializing_if = "Cpus::is_empty")]
    pub cpus_present: Cpus,
    /// Every place of every knob that exists here or should.
    pub knobs: BTreeMap<KnobId, Vec<Reading>>,
    /// Knobs of which nothing is in a recording because who made it did not look for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub not_recorded: BTreeSet<KnobId>,
    /// What the machine has at a place of a number, lowest and highest, where it tells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<String, [u64; 2]>,
    /// What is asked of the host now.
    #[serde(default)]
    pub demand: Demand,
    /// Huge-page pools by size and node.
    pub pools: Vec<PoolReading>,
    /// Pages of all pools of a size, by its bytes, that somebody has claimed and not touched yet: they count as free,
    /// and the kernel does not tell on which node. Nothing of a size where it was not seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages_claimed: BTreeMap<u64, u64>,
    /// Free blocks by node and zone.
    pub buddy: Vec<BuddyRow>,
    /// Memory of each node that has some, as far as the kernel tells it by node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_memory: Vec<NodeMemory>,
    /// Named facts that finding rules compare, such as `memory.page_tables_bytes`.
    pub facts: BTreeMap<String, FactValue>,
    /// What files and the kernel command line set at boot, by place.
    pub persisted: BTreeMap<String, Persisted>,
    /// What may be set at boot besides, by place: nobody can tell by the files of the host whether it is, or whether it
    /// comes before what is persisted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undecided: BTreeMap<String, Vec<BootValue>>,
    /// Places that no file sets, since a line of sysctl.d takes back what is said before it (`-key`): that line, with
    /// the lines that it takes back. One that `--persist` writes before it goes the same way.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taken_back: BTreeMap<String, Persisted>,
    /// Places of run-time knobs whose value at the next boot is given by the command line of that boot, each with what
    /// that of the running kernel gives it. What nobody gave this kernel waits for the boot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_boot_line: BTreeMap<String, Option<String>>,
    /// What brings arguments to the kernel.
    pub boot: BootLoader,
    /// Names of the trial boots that the running command line is marked with.
    #[serde(skip)]
    pub trial_marks: Vec<String>,
    /// Other programs that set knobs here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<SeenWriter>,
    /// Files that start more than anybody follows: what stands there, and behind it, may set knobs, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<String>,
    /// What units have of their own, by the place of the file that would give them something else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, UnitSetting>,
    /// Services that there are, by name without their kind, where a profile wants settings of some, or places one that
    /// is not there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub services: BTreeSet<String>,
    /// What the machine is made of, where a placement asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// How its caches can be shared out, where a profile asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<CacheControl>,
}

impl Observation {
    /// That not all was looked at which may set knobs, with the file at which that ended.
    #[must_use]
    pub fn not_followed(&self) -> Option<String> {
        let (first, more) = self.unfollowed.split_first()?;
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        Some(format!(
            "following scripts ended at {first}{more}, which starts more than is looked at: what else is set there, or \
             by scripts behind it, is not known"
        ))
    }

    /// The reading of one place of a knob.
    #[must_use]
    pub fn reading(&self, knob: &KnobId, place: &str) -> Option<&Reading> {
        self.knobs.get(knob)?.iter().find(|reading| reading.place == place)
    }
}

#[cfg(test)]
mod tests {
    use super::BuddyRow;

    #[test]
    fn free_blocks_are_counted_in_pages_of_a_size() {
        let rows = BuddyRow::parse_all(
            "Node 0, zone      DMA      1      0      2\nodd line\nNode 1, zone   Normal  4 5 6 0 0 0 0 0 0 3 7\n",
        );
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].node, rows[0].zone.as_str(), rows[0].free.as_slice()),
            (0, "DMA", &[1, 0, 2][..])
        );
        assert_eq!(rows[1].fitting(2 << 20, 4096), Some(17), "three of 2 MiB and seven of 4 MiB");
        assert_eq!(rows[1].fitting(1 << 30, 4096), None);
        assert_eq!(rows[0].fitting(2 << 20, 4096), None, "an odd kernel with small blocks");
    }
}
