//! A knob: one row of the catalogue, one setting of a host.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bound, ValueError, ValueType};

/// The stable dotted name of a knob, such as `vm.swappiness`: the same in commands, JSON, journal and docs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KnobId(String);

impl KnobId {
    /// A knob id from its text. The catalogue checks that ids are dotted and lower case.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for no knob but for a file that brings values back at the next boot (`persist.sysctl`).
    #[must_use]
    pub fn is_persistence(&self) -> bool {
        self.0.starts_with("persist.")
    }
}

impl fmt::Display for KnobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// When a new value takes effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// At the write.
    #[default]
    Now,
    /// At the next boot.
    Boot,
    /// For processes that start, or memory that is mapped, after the write.
    Process,
    /// When systemd reads its files anew, for all that runs: by whoever reloads it, a package as well.
    Reload,
}

/// What may be lost by setting a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Nothing but speed.
    Safe,
    /// The host may stall or run out of memory.
    Availability,
    /// Data may be lost at a crash.
    Durability,
    /// A protection becomes weaker. Never set unless the knob is named on the command line.
    Security,
    /// Cannot be set back before a reboot. Refused.
    Oneway,
    /// Has no old value and so no undo (dropping caches, compacting memory). Always listed.
    Action,
}

/// How an applied step is taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Undo {
    /// The original is written back, if the value is still ours.
    #[default]
    Restore,
    /// What we were granted is subtracted from what is there then: pools, which others raise and lower too.
    Subtract,
    /// A file of ours: its earlier content is put back byte for byte, or it is removed when there was none.
    File,
    /// A file of others that arguments of the kernel were put into: they are taken out again, and what others have
    /// changed in it since stays.
    Edit,
    /// Pages and threads of a process that ran: each goes back to where a record beside the journal saw it.
    Moved,
    /// A program's file that changed names with its copy: they change back, if the copy still has the name.
    Exchanged,
    /// There is nothing to take back.
    None,
}

impl Undo {
    /// Whether it is a file of ours, or lines of ours in one of others.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Edit)
    }

    /// Whether what was written is there after a reboot: files are.
    #[must_use]
    pub fn outlives_boot(self) -> bool {
        matches!(self, Self::File | Self::Edit | Self::Exchanged)
    }
}

/// What a host must be for a knob to make sense. An empty condition always holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conditions {
    /// Moot in a guest: the hypervisor decides.
    #[serde(skip_serializing_if = "is_false")]
    pub bare_metal: bool,
    /// Moot on bare metal: it spares the hypervisor work.
    #[serde(skip_serializing_if = "is_false")]
    pub guest: bool,
    /// Architectures that have it, as `uname -m` says them; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arch: Vec<String>,
    /// Makers whose CPUs have it, or for which the advice holds; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vendor: Vec<Vendor>,
    /// Distributions, by `ID` or `ID_LIKE` of /etc/os-release; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub os: Vec<String>,
    /// First release of the distribution for which it holds, such as `15.5`.
    pub os_min: Option<String>,
    /// First release of the distribution for which it no longer holds.
    pub os_gone: Option<String>,
    /// Moot with fewer CPUs online.
    pub cpus_min: Option<u32>,
    /// Moot with fewer NUMA nodes.
    pub nodes_min: Option<u32>,
    /// Moot with larger base pages, in bytes: a transparent huge page has 2 MiB with 4 KiB ones, and 512 MiB with
    /// 64 KiB.
    pub base_page_max: Option<u64>,
    /// Moot with larger transparent huge pages, in bytes (`hpage_pmd_size`): advice that was measured with 2 MiB says
    /// nothing of 32 MiB or 512 MiB, which is what base pages of 16 and 64 KiB come to.
    pub thp_max: Option<u64>,
    /// First kernel that has it, such as `5.14`. Whether a file is there is probed: then this only explains.
    pub kernel_min: Option<String>,
    /// First kernel that no longer has it.
    pub kernel_gone: Option<String>,
    /// First kernel that still shows the file and ignores what is written there.
    pub dead_since: Option<String>,
    /// On bare metal, a place that is missing is most likely hidden by the firmware.
    #[serde(skip_serializing_if = "is_false")]
    pub firmware: bool,
}

/// What is not said of a host is not written, as nobody would write it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(condition: &bool) -> bool {
    !condition
}

/// A knob that the kernel keeps at one word while another has some value: the energy hint under the governor
/// `performance` (`drivers/cpufreq/intel_pstate.c`, `store_energy_performance_preference`). It refuses others then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The other knob.
    pub by: KnobId,
    /// Its value.
    pub at: String,
    /// The word that this one has then.
    pub to: String,
}

/// One value of a knob at which the kernel holds its host to what others say: at 2 of `vm.overcommit_memory` to the
/// limit of `vm.overcommit_ratio` (`mm/util.c`, `__vm_enough_memory`). Whoever goes there has set the limits before,
/// and whoever leaves it leaves it before the limits move: in between programs would be refused by a limit that nobody
/// asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enforces {
    /// The value.
    pub at: String,
    /// The limits.
    pub limits: Vec<KnobId>,
}

/// A maker of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// Intel.
    Intel,
    /// AMD, and Hygon, which builds on its cores.
    Amd,
    /// Any maker of Arm cores.
    Arm,
}

/// What the place of a boot parameter starts with, before its name: `cmdline:isolcpus`.
const CMDLINE: &str = "cmdline:";

/// What the place of a boot parameter shows when the kernel was booted without it.
pub const NOT_GIVEN: &str = "(not given)";

/// What stands around a boot parameter that the kernel was given and did not take, where it tells so.
const IN_VAIN: [&str; 2] = ["(given as ", ", and not taken by the kernel)"];

/// What the place of a boot parameter shows that the kernel was given and did not take.
#[must_use]
pub fn not_taken(given: &str) -> String {
    let [before, behind] = IN_VAIN;
    format!("{before}{given}{behind}")
}

/// What the kernel was given and did not take, by what the place shows.
#[must_use]
pub fn given_in_vain(shown: &str) -> Option<&str> {
    let [before, behind] = IN_VAIN;
    shown.strip_prefix(before)?.strip_suffix(behind)
}

/// One setting: a row of `catalogue/knobs/*.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Stable name.
    pub id: KnobId,
    /// The file, with `{holes}` where one row addresses many places; `cmdline:NAME` for a boot parameter, and
    /// `cmdline:hugepages@1G` for the one that counts in a page size.
    pub path: String,
    /// What values are legal and how two of them compare.
    pub r#type: ValueType,
    /// The file beside it that lists the words which this host offers, with the same `{holes}`.
    pub offered: Option<String>,
    /// The file beside it with the largest number that the device takes, with the same `{holes}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Of a number: the two files beside it that tell the lowest and the highest value which this machine has, with the
    /// same `{holes}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    /// Of a value that the kernel takes and its host may not bear: what it is held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Words that it has on some host, where its type lists none: one that is none of them and is not offered is a
    /// typing error where it is near one, or where the host lists what it offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Modules one of which the kernel loads when somebody writes a word that it does not offer yet: files below
    /// `kernel/` of the running kernel's, without their ending, with `{word}` where the word stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// The knob that loses its value when this one is set (`vm.dirty_bytes` and `vm.dirty_ratio`).
    pub twin: Option<KnobId>,
    /// Knobs that show the same state through another place (the global pool and the pools of the nodes).
    #[serde(default)]
    pub alias: Vec<KnobId>,
    /// The alias that keeps it at one word while it has a value of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pin>,
    /// Knobs that the kernel recomputes when this one is set (THP changes `vm.min_free_kbytes`).
    #[serde(default)]
    pub derives: Vec<KnobId>,
    /// Knobs that are set before this one, where a plan sets both: an interrupt is moved once its service is pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<KnobId>,
    /// Limits that count at one value of it alone: they are set before it gets there, and after it has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforces: Option<Enforces>,
    /// When a new value takes effect.
    #[serde(default)]
    pub when: When,
    /// What may be lost.
    pub class: Class,
    /// How a step is taken back.
    #[serde(default)]
    pub undo: Undo,
    /// What the host must be.
    #[serde(default)]
    pub needs: Conditions,
    /// The argument of the kernel command line that sets it at boot, such as `transparent_hugepage`.
    pub boot_arg: Option<String>,
    /// What setting it gains.
    pub why: String,
    /// What setting it costs.
    pub cost: String,
    /// Where the kernel documents it; `(unread)` at the end when the source was not read.
    pub source: String,
    /// The trial that measured it, or `none yet`.
    pub proof: String,
}

/// Whether a boot parameter says something of each size, and is added to where it is given more than once: what
/// `thp_anon=64K:always;2M:inherit` says is said by `thp_anon=64K:always thp_anon=2M:inherit` as well (`setup_thp_anon`
/// of `mm/huge_memory.c` and `setup_thp_shmem` of `mm/shmem.c` begin with what was said before).
#[must_use]
pub fn is_by_size(parameter: &str) -> bool {
    ["thp_anon", "thp_shmem"].contains(&parameter)
}

/// Which of several arguments of one boot parameter the kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// The last, as for nearly all.
    Last,
    /// The first; others are passed over, and the kernel log alone says so.
    First,
    /// All of them: each says something of another size.
    Together,
}

impl Knob {
    /// Which of several arguments of this boot parameter counts.
    ///
    /// The first: of `isolcpus=` and `nohz_full=` a second list with other CPUs is thrown away (`housekeeping_setup` of
    /// `kernel/sched/isolation.c`); a size of huge pages, and their default size, are taken once (`hugepagesz_setup`
    /// and `default_hugepagesz_setup` of `mm/hugetlb.c`). `rcu_nocbs=` and `irqaffinity=` begin anew with each list.
    #[must_use]
    pub fn several(&self) -> Several {
        match self.boot_parameter() {
            Some(("isolcpus" | "nohz_full" | "default_hugepagesz" | "hugepages", _)) => Several::First,
            Some((name, _)) if is_by_size(name) => Several::Together,
            _ => Several::Last,
        }
    }

    /// Whether one row addresses many places.
    #[must_use]
    pub fn has_holes(&self) -> bool {
        self.path.contains('{')
    }

    /// Checks a wanted value: by its type, and where it may come to the kernel's command line as one word of that.
    ///
    /// # Errors
    /// Names the value and what would be legal.
    pub fn validate(&self, wanted: &str) -> Result<(), ValueError> {
        self.r#type.validate(wanted)?;
        if self.bound == Some(Bound::Ports)
            && matches!(self.r#type, ValueType::Text { .. })
            && !is_ports(wanted)
        {
            return Err(ValueError::NotPorts { value: wanted.to_owned() });
        }
        if self.boot_parameter().is_none() && self.boot_arg.is_none() {
            return Ok(());
        }
        let value = self.r#type.normal(wanted);
        // Files of boot loaders are read by a shell (/etc/default/grub) or by GRUB's own one, each with its quotes.
        match value.chars().find(|c| c.is_whitespace() || c.is_control() || "\"'`\\$#".contains(*c)) {
            None => Ok(()),
            Some(' ') => Err(ValueError::NotOneWord { what: "a blank".to_owned(), value }),
            Some(c) => Err(ValueError::NotOneWord { what: format!("{c:?}"), value }),
        }
    }

    /// The word of this knob that a text is but for the size of its letters: of `BBR` the kernel finds no module.
    #[must_use]
    pub fn word_in_other_case(&self, text: &str) -> Option<&str> {
        if self.words.iter().any(|word| word == text) {
            return None;
        }
        self.words.iter().find(|word| word.eq_ignore_ascii_case(text)).map(String::as_str)
    }

    /// The name of the boot parameter that this knob is, with the page size that it counts in:
    /// `("isolcpus", None)`, `("hugepages", Some("1G"))`.
    #[must_use]
    pub fn boot_parameter(&self) -> Option<(&str, Option<&str>)> {
        let name = self.path.strip_prefix(CMDLINE)?;
        Some(name.split_once('@').map_or((name, None), |(name, size)| (name, Some(size))))
    }

    /// What to give the kernel at boot for a value: `isolcpus=2-7`, `hugepagesz=1G hugepages=4`, `nosmt`. `None`
    /// where nothing is to be given, and for what is no boot parameter.
    #[must_use]
    pub fn boot_argument(&self, value: &str) -> Option<String> {
        let (name, size) = self.boot_parameter()?;
        let value = self.r#type.normal(value);
        match (&self.r#type, size) {
            (ValueType::Flag { .. }, _) => (value == "1").then(|| name.to_owned()),
            (_, Some(size)) => Some(format!("hugepagesz={size} {name}={value}")),
            // No loader can be given a `;`: its shell, or GRUB's own, ends a command there.
            (_, None) if is_by_size(name) => {
                let each = value.split(';').map(|part| format!("{name}={part}"));
                Some(each.collect::<Vec<_>>().join(" "))
            }
            (_, None) => Some(format!("{name}={value}")),
        }
    }

    /// Whether the kernel's command line alone gives it what counts: a boot parameter, and a module's parameter that is
    /// read while devices are set up. A write of the latter's file changes what it shows, and no device.
    #[must_use]
    pub fn is_given_at_boot(&self) -> bool {
        self.boot_parameter().is_some() || self.when == When::Boot && self.boot_arg.is_some()
    }

    /// What the kernel must be given at boot for a value: that of a boot parameter, or the argument that sets a
    /// run-time knob. `None` where an argument would have to be taken away, and where none sets it.
    #[must_use]
    pub fn argument(&self, value: &str) -> Option<String> {
        let by_row = || Some(format!("{}={}", self.boot_arg.as_ref()?, self.r#type.normal(value)));
        if self.boot_parameter().is_some() { self.boot_argument(value) } else { by_row() }
    }

    /// Whether its places are files of ours, which are there only once they were written.
    #[must_use]
    pub fn is_own_file(&self) -> bool {
        self.undo == Undo::File
    }

    /// Whether values of it may need leave although its row needs none: those that are held against the host.
    #[must_use]
    pub fn may_need_leave(&self) -> bool {
        self.class == Class::Safe && (self.bound.is_some() || self.is_own_file())
    }

    /// Knobs whose originals must be kept before this one is written: twin, aliases and derived ones.
    pub fn coupled(&self) -> impl Iterator<Item = &KnobId> {
        self.twin.iter().chain(&self.alias).chain(&self.derives)
    }
}

/// Whether a text is ports and ranges of them, as `proc_do_large_bitmap` of kernel/sysctl.c reads them.
fn is_ports(text: &str) -> bool {
    let port = |text: &str| text.parse::<u16>().ok();
    let is_one = |part: &str| match part.split_once('-') {
        Some((first, last)) => port(first).zip(port(last)).is_some_and(|(first, last)| first <= last),
        None => port(part).is_some(),
    };
    text.is_empty() || text.split(',').all(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    #[test]
    fn a_boot_parameter_is_one_word_that_no_shell_reads() {
        let catalogue = Catalogue::embedded().expect("sound");
        let told = |id: &str, value: &str| {
            let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
            knob.validate(value).err().map(|error| error.to_string())
        };
        let reason = "which ends a boot parameter or is read by the shell of a boot loader's file";
        assert_eq!(
            told("boot.iommu", "pt init=/bin/sh"),
            Some(format!("`pt init=/bin/sh` has a blank, {reason}"))
        );
        assert_eq!(told("boot.iommu", "pt$(id)"), Some(format!("`pt$(id)` has '$', {reason}")));
        for odd in ["a\"b", "a'b", "a`b", "a\\b", "a#b", "a\tb"] {
            assert!(told("boot.iommu", odd).is_some(), "{odd}");
        }
        assert_eq!(told("boot.mitigations", "auto,nosmt"), None);
        assert_eq!(told("boot.thp_anon", "16K-64K:always;2M:inherit"), None);
        let argument =
            |id: &str| catalogue.knob(&KnobId::new(id)).expect("a row").argument("64K:always;2M:inherit");
        for name in ["thp_anon", "thp_shmem"] {
            let told = format!("{name}=64K:always {name}=2M:inherit");
            assert_eq!(argument(&format!("boot.{name}")), Some(told), "no loader takes a `;`");
        }
        for (ports, legal) in
            [("8080,9148-9150", true), ("80,443 8080", false), ("9-8", false), ("8080 # web", false)]
        {
            assert_eq!(told("net.ipv4.ip_local_reserved_ports", ports).is_none(), legal, "{ports}");
        }
        assert!(told("boot.isolcpus", "5-1,x").is_some() && told("boot.isolcpus", "domain,1-N").is_none());
        assert!(told("net.ipv4.tcp_rmem", "9000 200 100").is_some());
    }
}
