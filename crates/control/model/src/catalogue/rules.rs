//! Rules of rows and of wanted values that a type cannot express.
//!
//! They hold for the rows of users as well as for ours: a row is data, and data must not be able to turn
//! planish into something that writes anywhere, or that calls safe what cannot be taken back.

use std::collections::BTreeMap;

use super::Catalogue;
use crate::{
    Case, Class, Computation, Conditions, Form, Knob, KnobId, Pin, Profile, ShareOf, Undo, ValueType, Want,
    When, place, version_numbers,
};

/// The files of its own that a plan writes: what systemd adds to a unit, the slice of services whose CPUs are isolated,
/// and what systemd adds to its own configuration.
const OWN: &[&str] = &[
    "/etc/systemd/system/{unit}.service.d/zz-planish.conf",
    "/etc/systemd/system/planish.slice",
    "/etc/systemd/system.conf.d/zz-planish.conf",
];

/// Files with one setting of a unit each: `zz-planish-nofile.conf`.
const SETTING: (&str, &str) = ("/etc/systemd/system/{unit}.service.d/zz-planish-", ".conf");

/// The same for the parts of the system, which are slices and a scope: `zz-planish-allowed-cpus.conf`.
const OF_PART: (&str, &str) = ("/etc/systemd/system/{unit}.d/zz-planish-", ".conf");

fn is_own(path: &str) -> bool {
    OWN.contains(&path) || is_setting(path)
}

/// Whether a path is that of one setting of a unit.
fn is_setting(path: &str) -> bool {
    is_file_of(SETTING, path) || is_file_of(OF_PART, path)
}

fn is_file_of((before, after): (&str, &str), path: &str) -> bool {
    let name = path.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.is_some_and(|name| !name.is_empty() && name.chars().all(plain))
}

/// Files that cannot be set back before a reboot, whatever a row says of them.
const ONEWAY: &[&str] = &[
    "/proc/sys/kernel/kexec_load_disabled",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/kernel/yama/ptrace_scope",
];

/// Files that do something when they are written and have no old value.
const ACTIONS: &[&str] = &[
    "/proc/sys/vm/compact_memory",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/stat_refresh",
    "/sys/kernel/mm/hugepages/hugepages-1048576kB/demote",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/demote",
];

/// Folder of what puts a machine to sleep, and how: a write there is an order.
const POWER: &str = "/sys/power/";

/// How files below /sys are called that do something to a device when they are written, wherever they are.
const ORDERS: &[&str] = &[
    "bind",
    "cgroup.kill",
    "compact",
    "delete",
    "drivers_probe",
    "hard_offline_page",
    "hot_add",
    "hot_remove",
    "memory.reclaim",
    "new_id",
    "probe",
    "release",
    "remove",
    "remove_id",
    "rescan",
    "reset",
    "scan",
    "soft_offline_page",
    "uevent",
    "unbind",
];

/// Whether a write to a place is an order, also through a hole.
fn is_order(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    path.starts_with("/sys/")
        && (path.starts_with(POWER) || ORDERS.iter().any(|name| place::component_meets(last, name)))
}

/// Whether a row is of a setting that another one has: a place of both, or one argument of the kernel. What it says of
/// its class and its bounds would be another thing than what the other one says.
pub(super) fn is_one_setting(knob: &Knob, other: &Knob) -> bool {
    let is_one_argument = match (knob.boot_parameter(), other.boot_parameter()) {
        (Some((name, size)), Some((own, of))) => {
            name == own && (size == of || size.is_none() || of.is_none())
        }
        _ => false,
    };
    let by_sysctl = || {
        let key = knob.boot_parameter()?.0.strip_prefix("sysctl.")?;
        Some(place::meet(&place::of_sysctl(key), &other.path))
    };
    is_one_argument
        || place::meet(&knob.path, &other.path)
        || by_sysctl().unwrap_or_default()
        || gives_its_argument(knob, other)
}

/// Whether a row has the kernel given what another one says of a boot: as a row of that parameter, or beside its own
/// place and as something less.
fn gives_its_argument(knob: &Knob, other: &Knob) -> bool {
    let parameter = |knob: &Knob| knob.boot_parameter().map(|(name, _)| name.to_owned());
    let own_row = parameter(knob).filter(|name| other.boot_arg.as_ref() == Some(name));
    let of_other = || parameter(other).or_else(|| other.boot_arg.clone());
    let beside = knob.boot_arg.as_ref().filter(|name| of_other().as_ref() == Some(*name));
    own_row.is_some() || beside.is_some() && knob.class < other.class
}

/// One file of each kind that holds the size of a pool.
const POOLS: &[&str] = &[
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/nr_hugepages_mempolicy",
    "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
];

/// What is said of a version that cannot be compared: it would count as met, whatever the host is.
const VERSION: &str = "a version in `needs` is one number or two, such as 9 or 5.14";

/// Whether a version of a condition cannot be compared with that of a host.
fn has_odd_version(needs: &Conditions) -> bool {
    let Conditions { os_min, os_gone, kernel_min, kernel_gone, dead_since, .. } = needs;
    let is_number = |part: &str| part.bytes().all(|c| c.is_ascii_digit()) && part.parse::<u32>().is_ok();
    let is_read = |version: &&String| match version.split_once('.') {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(version),
    };
    let versions = [os_min, os_gone, kernel_min, kernel_gone, dead_since].into_iter().flatten();
    versions.into_iter().any(|version| !is_read(&version))
}

/// The limit of a service's version that no version can keep, with the rule.
pub(super) fn broken_versions(profile: &Profile) -> Option<(&str, &'static str)> {
    let limits = profile.service_min.iter().chain(&profile.service_max);
    if let Some(odd) = limits.into_iter().find(|limit| version_numbers(limit).is_empty()) {
        return Some((odd, "a version of a service begins with a number"));
    }
    let (least, most) = (profile.service_min.as_ref()?, profile.service_max.as_ref()?);
    let (first, last) = (version_numbers(least), version_numbers(most));
    // As many numbers as the limit has, as in `Profile::suits`.
    let is_none = first[..first.len().min(last.len())] > last[..];
    is_none.then_some((least, "no version is as new as service_min and as old as service_max"))
}

/// The rule of rows that one breaks.
pub(super) fn broken_rule(knob: &Knob) -> Option<&'static str> {
    let id = knob.id.as_str();
    let dotted = id.contains('.')
        && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c));
    if !dotted {
        return Some("an id is dotted and lower case");
    }
    if let Some((name, _)) = knob.boot_parameter() {
        let word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(word) {
            return Some("cmdline: is followed by the name of one boot parameter");
        }
        if knob.when != When::Boot {
            return Some("a boot parameter takes effect at boot, and has to say so: when = \"boot\"");
        }
    } else if is_own(&knob.path) {
        let directives = match knob.r#type {
            ValueType::Directives { .. } => !is_setting(&knob.path),
            // Which units there are depends on the kind: services by their files, and the few parts of the system.
            ValueType::Setting { .. } if knob.r#type.is_cpus_of_a_unit() => is_file_of(OF_PART, &knob.path),
            ValueType::Setting { .. } => is_file_of(SETTING, &knob.path),
            _ => false,
        };
        let when = if knob.r#type.is_cpus_of_a_unit() { When::Reload } else { When::Process };
        if !knob.is_own_file() || !directives || knob.when != when {
            return Some(
                "a drop-in of a unit is a file of ours, with its directives, for processes that start later",
            );
        }
    } else if !place::is_of_the_kernel(&knob.path) {
        return Some(
            "a place is a file below /proc/sys, /proc/irq or /sys, a setting of a card in /planish/ethtool, what a \
             process holds in /planish/held, an option of a mount in /planish/mounts, a share of the caches in \
             /planish/resctrl, or a thread of the kernel in /planish/threads",
        );
    }
    if has_odd_version(&knob.needs) {
        return Some(VERSION);
    }
    if let Some(rule) = wrongly_shared(knob) {
        return Some(rule);
    }
    if knob.path.starts_with(place::THREADS)
        != matches!(knob.r#type, ValueType::Form { form: Form::ThreadSchedule })
    {
        return Some("the schedule of a thread is of /planish/threads/NAME/{cpu}, and of no other place");
    }
    if let Some(rule) = wrongly_undone(knob) {
        return Some(rule);
    }
    for (class, paths) in [(Class::Oneway, ONEWAY), (Class::Action, ACTIONS)] {
        // Also through a hole: `/proc/sys/kernel/{any}` is every file there.
        let reaches = paths.iter().any(|path| place::captures(&knob.path, path).is_some());
        let is_order = class == Class::Action && is_order(&knob.path);
        if (reaches || is_order) && knob.class != class {
            return Some("cannot be taken back, and its class has to say so: oneway or action");
        }
    }
    if [&knob.why, &knob.cost, &knob.source, &knob.proof].into_iter().any(|text| text.trim().is_empty()) {
        return Some("why, cost, source and proof are said");
    }
    None
}

/// The rule that a place of resctrl breaks: each has one type, and no other place has it.
fn wrongly_shared(knob: &Knob) -> Option<&'static str> {
    let is_so = match knob.r#type {
        ValueType::Share { share: ShareOf::Schemata } => knob.path == place::RESCTRL_DEFAULT,
        ValueType::Share { share: ShareOf::Group } => {
            knob.path.strip_prefix(place::RESCTRL_GROUPS).is_some_and(|hole| !hole.contains('/'))
        }
        _ => !knob.path.starts_with(place::RESCTRL),
    };
    (!is_so).then_some(
        "a share of the caches is of /planish/resctrl/default or of /planish/resctrl/groups/{group}",
    )
}

/// The rule that the way back of a row breaks. What is called safe is taken back, and by the way that its file needs.
fn wrongly_undone(knob: &Knob) -> Option<&'static str> {
    let is_pool = knob.path.ends_with("/nr_hugepages");
    let reaches_pool = POOLS.iter().any(|path| place::captures(&knob.path, path).is_some());
    match knob.undo {
        Undo::None if !matches!(knob.class, Class::Oneway | Class::Action) => Some(
            "undo = \"none\" is for what cannot be taken back, and its class has to say so: oneway or action",
        ),
        Undo::Subtract if !is_pool => Some("undo = \"subtract\" is for pools alone: .../nr_hugepages"),
        // An absolute original would take the pages of others. This too through a hole.
        Undo::Restore if is_pool || reaches_pool => {
            Some("is a pool, which others raise and lower too: undo = \"subtract\"")
        }
        // The few files that a plan writes: see the rules of places above.
        Undo::File if is_own(&knob.path) => None,
        Undo::File | Undo::Edit => Some("undo = \"file\" and \"edit\" are for the files of --persist"),
        Undo::Moved => Some("undo = \"moved\" is for what planish move does, and no knob"),
        Undo::Exchanged => Some("undo = \"exchanged\" is for what planish text huge does, and no knob"),
        Undo::None | Undo::Subtract | Undo::Restore => None,
    }
}

/// A knob that is wanted at one word, and what keeps it at another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedOtherwise {
    /// The knob.
    pub knob: KnobId,
    /// What is wanted of it.
    pub wanted: String,
    /// The other knob, and the words of both.
    pub pin: Pin,
}

impl std::fmt::Display for PinnedOtherwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { knob, wanted, pin: Pin { by, at, to } } = self;
        write!(
            f,
            "{knob}: is wanted at {wanted}, and the kernel keeps it at {to} while {by} is {at}, as is wanted"
        )
    }
}

/// A knob that is wanted at a word which the kernel does not take while its alias has the value that is wanted of it.
pub(super) fn pinned_otherwise(
    catalogue: &Catalogue,
    want: &BTreeMap<KnobId, Want>,
) -> Option<PinnedOtherwise> {
    let otherwise = |(id, own): (&KnobId, &Want)| {
        let pin = catalogue.knobs.get(id)?.pinned.as_ref()?;
        let is_pinned = want.get(&pin.by).and_then(Want::literal).is_some_and(|value| value == pin.at);
        let wanted = own.literal().filter(|value| is_pinned && *value != pin.to)?;
        Some(PinnedOtherwise { knob: id.clone(), wanted, pin: pin.clone() })
    };
    want.iter().find_map(otherwise)
}

/// What is said of a setting for all units of a host.
const OF_SOME: &str = "is a setting of some units: say which, { value = \"N\", only = \"NAME*\" }";

/// What is said of a partition for all groups of a host.
const OF_SOME_GROUPS: &str =
    "takes CPUs from all other groups: say which, { value = \"isolated\", only = \"NAME.slice\" }";

/// What is said of the size and the pages of every tmpfs of a host, those of its programs among them.
const OF_SOME_MOUNTS: &str =
    "is a setting of some mounts: say which, { value = \"50%\", only = \"/dev/shm\" }";

/// What is said of a size for what is none.
const NO_POOL: &str = "is no pool: only pools are wanted by need_bytes, total_bytes or service_pool";

/// What is said of `only` for a knob that has nothing to choose from.
const ONE_PLACE: &str = "has one place, so that `only` can choose none: take it out";

/// What is said of `only` that matches nothing.
const NO_PATTERN: &str =
    "has an empty `only`, which no place matches: name what is meant, or take it out for all";

/// Whether a pattern of places is empty, behind the name of its hole too.
fn is_no_pattern(case: &Case) -> bool {
    let pattern = |only: &str| only.rsplit('=').next().is_none_or(|pattern| pattern.trim().is_empty());
    case.only.as_deref().is_some_and(pattern)
}

/// What is said of `only` for a setting of services that names one as systemd does.
const OF_A_SERVICE: &str = "is for services by their name without `.service`: leave that out of `only`";

/// What is said of a case behind one that is for all that it is for.
const IDLE_CASE: &str = "has a case that can never count: one before it, without `needs`, is for all of its places; \
                         put the narrower one first";

/// What is said of a case whose conditions no host meets together.
const NEVER: &str = "has a case that can never hold: its first version is no earlier than the one from which on it \
                     holds no longer, or it is for guests and for bare metal at once";

/// Whether no host meets conditions, whatever it is. A version of one number is its `.0`.
fn is_never(needs: &Conditions) -> bool {
    let number = |version: &str| {
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let is_empty = |first: &Option<String>, gone: &Option<String>| {
        let versions = first.as_deref().and_then(number).zip(gone.as_deref().and_then(number));
        versions.is_some_and(|(first, gone)| first >= gone)
    };
    let Conditions { os_min, os_gone, kernel_min, kernel_gone, dead_since, .. } = needs;
    (needs.bare_metal && needs.guest)
        || is_empty(os_min, os_gone)
        || is_empty(kernel_min, kernel_gone)
        || is_empty(kernel_min, dead_since)
}

/// The cases of a wanted value.
fn cases(want: &Want) -> &[Case] {
    match want {
        Want::Case(case) => std::slice::from_ref(case.as_ref()),
        Want::Cases(cases) => cases,
        _ => &[],
    }
}

/// Whether a case is for places that one before it takes on every host.
fn has_idle_case(cases: &[Case]) -> bool {
    let takes = |first: &Case, later: &Case| {
        first.needs == Conditions::default() && place::covers(first.only.as_deref(), later.only.as_deref())
    };
    (1..cases.len()).any(|at| cases[..at].iter().any(|first| takes(first, &cases[at])))
}

/// Whether a wanted value is for all places of its knob.
fn is_for_all(want: &Want) -> bool {
    match want {
        Want::Int(_) | Want::Text(_) => true,
        Want::Case(case) => case.only.is_none(),
        Want::Cases(cases) => cases.iter().any(|case| case.only.is_none()),
        _ => false,
    }
}

/// Whether a pattern ends as files of services do: what it is for stands before that.
fn names_suffix(cases: &[Case]) -> bool {
    cases.iter().filter_map(|case| case.only.as_deref()).any(|only| only.ends_with(".service"))
}

/// Whether it is a setting of a file system in memory: of each its own, where access times may well be all the same.
fn is_of_tmpfs(path: &str) -> bool {
    path.starts_with(place::MOUNTS) && !path.ends_with("/atime")
}

/// The rule of wanted values that one breaks, besides its type.
pub(super) fn broken_want(knob: &Knob, want: &Want, profile: &Profile) -> Option<&'static str> {
    let pool = knob.undo == Undo::Subtract;
    let has_odd = cases(want).iter().any(|case| has_odd_version(&case.needs));
    match want {
        _ if has_odd => Some(VERSION),
        want if cases(want).iter().any(|case| is_never(&case.needs)) => Some(NEVER),
        want if !knob.has_holes() && cases(want).iter().any(|case| case.only.is_some()) => Some(ONE_PLACE),
        want if cases(want).iter().any(is_no_pattern) => Some(NO_PATTERN),
        want if is_file_of(SETTING, &knob.path) && names_suffix(cases(want)) => Some(OF_A_SERVICE),
        want if has_idle_case(cases(want)) => Some(IDLE_CASE),
        Want::From { from: Computation::ServicePool } if !pool => Some(NO_POOL),
        want if want.is_bytes() && !pool => Some(NO_POOL),
        Want::Int(_) | Want::Text(_) | Want::Case(_) | Want::Cases(_) if pool => Some(
            "is a pool, which others raise and lower too: say { need_bytes = N }, or { total_bytes = N } with theirs",
        ),
        Want::From { from: Computation::MinFreeHalfPercent } if knob.id.as_str() != "vm.min_free_kbytes" => {
            Some("min_free_half_percent is for vm.min_free_kbytes alone")
        }
        _ if knob.is_own_file() && !is_setting(&knob.path) => {
            Some("is a file of ours: it follows from the table [placement]")
        }
        _ if knob.path.starts_with(place::RESCTRL_GROUPS) => Some(
            "is a group that has the CPUs of a service: it follows from `cache` of a service in the table [placement]",
        ),
        want if knob.is_own_file() && is_for_all(want) => Some(OF_SOME),
        want if knob.path.ends_with("/cpuset.cpus.partition") && is_for_all(want) => Some(OF_SOME_GROUPS),
        want if is_of_tmpfs(&knob.path) && is_for_all(want) => Some(OF_SOME_MOUNTS),
        _ if knob.twin.as_ref().is_some_and(|twin| profile.want.contains_key(twin)) => {
            Some("is wanted together with its twin, and setting one clears the other")
        }
        _ => None,
    }
}
