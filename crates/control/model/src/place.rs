//! Places of a knob: how one row of the catalogue addresses many files.
//!
//! A path such as `/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor` has *holes*. A place is that
//! path with every hole filled; what fills the holes tells which places of two coupled knobs belong together.

mod wild;

use std::borrow::Cow;

use self::wild::{Glob, Piece};
pub use self::wild::{in_braces, in_vain, includes, matches, without_brackets};

/// What fills the holes of `pattern` at `place`, by name and in order; `None` when `place` is none of its
/// places.
///
/// A hole stands for one or more characters and never for a slash.
#[must_use]
pub fn captures<'a>(pattern: &'a str, place: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let mut found = Vec::new();
    let mut parts = place.split('/');
    for part in pattern.split('/') {
        if !component(part, parts.next()?, &mut found) {
            return None;
        }
    }
    parts.next().is_none().then_some(found)
}

/// The same of one component. Of several holes the first ones take as little as they can: `package_{p}_die_{d}`.
fn component<'a>(pattern: &'a str, actual: &'a str, found: &mut Vec<(&'a str, &'a str)>) -> bool {
    let Some((before, mut holes)) = pattern.split_once('{') else { return pattern == actual };
    let Some(mut tail) = actual.strip_prefix(before) else { return false };
    loop {
        let Some((name, after)) = holes.split_once('}') else { return false };
        let Some((text, others)) = after.split_once('{') else {
            let filling = tail.strip_suffix(after).filter(|filling| !filling.is_empty());
            found.extend(filling.map(|filling| (name, filling)));
            return filling.is_some();
        };
        // What follows the first place of the text fits the other holes wherever what follows a later one does: going
        // back would find nothing more, and take a time that doubles with each hole.
        let Some(first) = tail.chars().next() else { return false };
        let Some(at) = tail[first.len_utf8()..].find(text) else { return false };
        let (filling, rest) = tail.split_at(first.len_utf8() + at);
        found.push((name, filling));
        tail = &rest[text.len()..];
        holes = others;
    }
}

/// `pattern` with those of its holes filled that `captures` names; the others stay open.
#[must_use]
pub fn fill(pattern: &str, captures: &[(&str, &str)]) -> String {
    captures
        .iter()
        .fold(pattern.to_owned(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value))
}

/// Folder of the settings of network cards, which the kernel has no files for: asked and set over netlink
/// (`planish_host::devices`).
pub const CARDS: &str = "/planish/ethtool/";

/// Folder of what counts only while a process holds a file open: asked of the processes, and set by starting one and
/// ending others (`planish_sys::hold`).
pub const HELD: &str = "/planish/held/";

/// Folder of the shares of the caches: what resctrl has as folders and several files each is one text here
/// (`planish_host::resctrl`).
pub const RESCTRL: &str = "/planish/resctrl/";

/// What the default group of resctrl has: all that no group is for.
pub const RESCTRL_DEFAULT: &str = "/planish/resctrl/default";

/// Folder of the groups of resctrl that we make.
pub const RESCTRL_GROUPS: &str = "/planish/resctrl/groups/";

/// What the name of a group of ours begins with.
pub const RESCTRL_OWN: &str = "planish-";

/// Folder of the kernel's own threads of which each CPU has one: no file has their schedule, which is asked and set by
/// a call for each (`planish_host::threads`).
pub const THREADS: &str = "/planish/threads/";

/// Whether a text is a name that a group of ours may have.
#[must_use]
pub fn is_own_group(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@:-".contains(c);
    name.strip_prefix(RESCTRL_OWN).is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain))
}

/// Folder of the options of mounted file systems, which are words of a table and set by calls: one folder a mount,
/// called as its unit of systemd is (`planish_host::mounts`).
pub const MOUNTS: &str = "/planish/mounts/";

/// What the names in the holes of a place are called for people: the mount of the root has a name of systemd (`-`),
/// which reads as nothing.
#[must_use]
pub fn shown<'n>(place: &str, names: &'n str) -> &'n str {
    if names == "-" && place.starts_with(MOUNTS) { "/" } else { names }
}

/// Where the mount of a place is: `/dev/shm` of `/planish/mounts/dev-shm/size`. `None` for another place, for a pattern
/// of many mounts, and for a name that stands for no path.
#[must_use]
pub fn mount_point(place: &str) -> Option<String> {
    let (name, _) = place.strip_prefix(MOUNTS)?.split_once('/')?;
    if name == "-" {
        return Some("/".to_owned());
    }
    let mut path = vec![b'/'];
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(digits) = rest.strip_prefix("\\x") {
            path.push(u8::from_str_radix(digits.get(..2)?, 16).ok()?);
            rest = digits.get(2..)?;
            continue;
        }
        path.push(match c {
            '-' => b'/',
            c if c.is_ascii_alphanumeric() || ":_.".contains(c) => u8::try_from(c).ok()?,
            _ => return None,
        });
        rest = &rest[c.len_utf8()..];
    }
    String::from_utf8(path).ok().filter(|_| !name.is_empty())
}

/// How the folder of a mount is called: as its unit of systemd, without the kind at the end.
#[must_use]
pub fn mount_name(path: &str) -> String {
    let inner = path.trim_matches('/');
    if inner.is_empty() {
        return "-".to_owned();
    }
    let each = inner.bytes().enumerate().map(|(index, byte)| match byte {
        b'/' => "-".to_owned(),
        b':' | b'_' => char::from(byte).to_string(),
        b'.' if index > 0 => ".".to_owned(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    });
    each.collect()
}

/// Folders below which a place is a setting of the kernel. The rest of /proc leads elsewhere: `/proc/self/root` is the
/// whole disk.
const KERNEL_FOLDERS: [&str; 8] =
    ["/proc/sys/", "/proc/irq/", "/sys/", CARDS, HELD, RESCTRL, MOUNTS, THREADS];

/// Whether a path, or the pattern of one, is a file of the kernel that a knob may be.
#[must_use]
pub fn is_of_the_kernel(path: &str) -> bool {
    KERNEL_FOLDERS.iter().any(|folder| path.starts_with(folder))
        && !path.split('/').skip(1).any(|part| ["", ".", ".."].contains(&part))
}

/// Whether two patterns have a place in common, as far as their names tell: also one that sysfs has under two names.
#[must_use]
pub fn meet(one: &str, other: &str) -> bool {
    let (one, other) = (canonical(one), canonical(other));
    let linked = |path: &str, other: &str| by_any_name(path).is_some_and(|tail| ends_in(other, tail));
    ends_in(&one, &other) && one.split('/').count() == other.split('/').count()
        || linked(&one, &other)
        || linked(&other, &one)
}

/// The name that the rows have for a place, of those that sysfs has for it: links lead to a device from its class, its
/// bus and its neighbours, and to the policy of a frequency from its CPUs. Wildcards and holes stay as they are.
///
/// A disk that is named by its numbers (`/sys/dev/block/8:0`) keeps them: whose they are only the host tells. So does a
/// policy of several CPUs, which has the number of the first one.
#[must_use]
pub fn canonical(path: &str) -> Cow<'_, str> {
    if path.starts_with('/') && (path.contains("//") || path.contains("/./")) {
        let parts = path.split('/').filter(|part| !["", "."].contains(part));
        let plain: String = parts.flat_map(|part| ["/", part]).collect();
        return Cow::Owned(in_sysfs(&plain).unwrap_or(plain));
    }
    in_sysfs(path).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// The same of a path in /sys that may have another name.
fn in_sysfs(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/sys/")?;
    if !["block/", "bus/", "class/", "dev/", "devices/"].iter().any(|folder| rest.starts_with(folder)) {
        return None;
    }
    let parts: Vec<&str> = rest.split('/').collect();
    match parts.as_slice() {
        ["bus", "workqueue", "devices", name, file] => {
            Some(format!("/sys/devices/virtual/workqueue/{name}/{file}"))
        }
        ["bus", kind @ ("clocksource" | "cpu" | "machinecheck" | "node"), "devices", rest @ ..]
        | ["devices", "system", kind, rest @ ..]
            if !rest.is_empty() =>
        {
            Some(of_system(kind, rest))
        }
        parts => of_device(parts),
    }
}

/// The name of a place of what belongs to no device of its own: `cpu` and `cpufreq/policy0/scaling_governor`.
fn of_system(mut kind: &str, mut parts: &[&str]) -> String {
    // Each CPU is in the folder of its node, and the other way round.
    loop {
        let other = match kind {
            "cpu" => "node",
            "node" => "cpu",
            _ => break,
        };
        match parts {
            [_, behind @ ..] if behind.len() > 1 && behind[0].starts_with(other) => {
                (kind, parts) = (other, behind);
            }
            _ => break,
        }
    }
    match parts {
        ["cpufreq", policy, file @ ..] if kind == "cpu" && !file.is_empty() => match cpu_of(policy) {
            Some(cpu) => format!("/sys/devices/system/cpu/{cpu}/cpufreq/{}", file.join("/")),
            None => format!("/sys/devices/system/cpu/{}", parts.join("/")),
        },
        _ => format!("/sys/devices/system/{kind}/{}", parts.join("/")),
    }
}

/// The name by its class of a place of a device: `.../net/eth0/mtu`, `.../nvme0/nvme0n1/queue/scheduler`.
fn of_device(parts: &[&str]) -> Option<String> {
    // Disks alone have a folder of that name, also those that no folder `block` leads to.
    if let Some(at) =
        parts.iter().rposition(|part| *part == "queue").filter(|at| *at > 1 && at + 1 < parts.len())
    {
        return Some(format!("/sys/block/{}", parts[at - 1..].join("/")));
    }
    let (mut found, mut at) = (None, 0);
    while at + 2 < parts.len() {
        let class = match parts[at] {
            "block" => Some("/sys/block"),
            "net" => Some("/sys/class/net"),
            "scsi_disk" => Some("/sys/class/scsi_disk"),
            _ => None,
        };
        found = class.map(|class| (class, &parts[at + 1..])).or(found);
        // What is behind the name of a class is that of a device, whatever it is called.
        at += 1 + usize::from(class.is_some());
    }
    match found? {
        ("/sys/block", [disk, "bdi", "read_ahead_kb"]) => {
            Some(format!("/sys/block/{disk}/queue/read_ahead_kb"))
        }
        (class, name) => Some(format!("{class}/{}", name.join("/"))),
    }
}

/// The folder of a CPU for that of the policy of its frequency.
fn cpu_of(policy: &str) -> Option<String> {
    const ANY: &str = "policy{cpu}";
    if let Some(number) = policy.strip_prefix("policy") {
        return Some(format!("cpu{number}"));
    }
    match policy.contains('{') {
        true => component_meets(policy, ANY).then(|| "cpu{cpu}".to_owned()),
        false => may_mean(policy, ANY).then(|| "cpu*".to_owned()),
    }
}

/// The end of a path by which every link to its device has it: `net/{nic}/mtu` is in `/sys/class`, in `/sys/devices`
/// and behind `device`, and `cpu{cpu}/online` behind `/sys/bus/cpu/devices` and each node.
fn by_any_name(path: &str) -> Option<&str> {
    let of_system = || path.strip_prefix("/sys/devices/system/")?.split_once('/').map(|(_, tail)| tail);
    let of_class = path.strip_prefix("/sys/class/");
    of_class
        .or_else(|| path.strip_prefix("/sys/").filter(|tail| tail.starts_with("block/")))
        .or_else(of_system)
}

/// Whether the last components of a pattern can be those of another one, which has no more of them.
fn ends_in(path: &str, tail: &str) -> bool {
    let mut own = path.rsplit('/');
    tail.rsplit('/').all(|part| own.next().is_some_and(|own| component_meets(own, part)))
}

/// Whether one name can be of two components.
pub(crate) fn component_meets(one: &str, other: &str) -> bool {
    pieces_meet(&pieces(one), &pieces(other))
}

/// Whether a shell pattern of one component can mean a name that a component with holes has.
#[must_use]
pub fn may_mean(pattern: &str, component: &str) -> bool {
    pieces_meet(&Glob::of(pattern).pieces(), &pieces(component))
}

/// Whether a row has a place there, both by the names that rows have; a wildcard of the path stays within its
/// component.
#[must_use]
pub fn is_of_row(row: &str, path: &str) -> bool {
    let (mut ours, mut theirs) = (row.split('/'), path.split('/'));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(ours), Some(theirs)) => {
                let fits = match (ours.contains('{'), theirs.contains(['*', '?', '['])) {
                    (false, false) => ours == theirs,
                    (false, true) => matches(theirs, ours),
                    (true, false) => captures(ours, theirs).is_some(),
                    (true, true) => may_mean(theirs, ours),
                };
                if !fits {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn pieces_meet(one: &[Piece<'_>], other: &[Piece<'_>]) -> bool {
    let skips = |pieces: &[Piece<'_>], at: usize| pieces.get(at) == Some(&Piece::Many);
    // By how much of the other one is left: whether the rests can be one text, and whether they can be with one piece
    // less of the first.
    let (mut can, mut shorter) = (Vec::new(), Vec::new());
    for left in (0..=one.len()).rev() {
        shorter = std::mem::replace(&mut can, shorter);
        can.clear();
        can.resize(other.len() + 1, false);
        for right in (0..=other.len()).rev() {
            can[right] = match (one.get(left), other.get(right)) {
                (None, None) => true,
                _ if skips(one, left) && shorter[right] => true,
                _ if skips(other, right) && can[right + 1] => true,
                (Some(Piece::Many), Some(_)) => can[right + 1],
                (Some(_), Some(Piece::Many)) => shorter[right],
                (Some(a), Some(b)) => a.meets(*b) && shorter[right + 1],
                _ => false,
            };
        }
    }
    can[0]
}

/// A hole is one character, and any number behind it.
fn pieces(component: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = component;
    while let Some((before, (_, after))) =
        rest.split_once('{').and_then(|(before, hole)| Some((before, hole.split_once('}')?)))
    {
        pieces.extend(before.chars().map(Piece::Is));
        pieces.extend([Piece::One, Piece::Many]);
        rest = after;
    }
    pieces.extend(rest.chars().map(Piece::Is));
    pieces
}

/// The longest wake-up of any CPU that a process of ours holds, in microseconds.
pub const DMA_LATENCY: &str = "/planish/held/cpu_dma_latency_us";

/// What stands before the limit on the command line of the process that holds it.
pub const HOLDS: &str = " hold cpu-dma-latency ";

/// What a line of a file of ours sets, as `--persist` writes them: a line of sysctl.d, one of tmpfiles.d, or what the
/// unit of a process that holds a limit starts. The place and the value.
#[must_use]
pub fn of_line(line: &str) -> Option<(String, String)> {
    let literal = |text: &str| text.replace("%%", "%").replace("\\\\", "\\");
    if let Some((path, value)) = line
        .strip_prefix("w! ")
        .or_else(|| line.strip_prefix("w "))
        .and_then(|rest| rest.split_once(" - - - - "))
    {
        return Some((literal(path), literal(value)));
    }
    if let Some((_, limit)) = line.strip_prefix("ExecStart=").and_then(|command| command.split_once(HOLDS)) {
        return Some((DMA_LATENCY.to_owned(), limit.to_owned()));
    }
    let (key, value) = line.split_once(" = ")?;
    Some((of_sysctl(key), value.to_owned()))
}

/// The path of a key of `sysctl`. The first separator decides: `net.ipv4.conf.eth0/1.forwarding` or
/// `net/ipv4/conf/eth0.1/forwarding`.
#[must_use]
pub fn of_sysctl(key: &str) -> String {
    let dotted = key.find(['.', '/']).is_some_and(|at| key.as_bytes()[at] == b'.');
    let path: String = if dotted {
        key.chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            })
            .collect()
    } else {
        key.to_owned()
    };
    format!("/proc/sys/{}", path.trim_start_matches('/'))
}

/// Whether `only` of a profile means every place that another one means, as far as their words tell: nothing means all.
#[must_use]
pub fn covers(only: Option<&str>, other: Option<&str>) -> bool {
    /// The hole that a pattern is for, nothing for the first one, and the pattern itself.
    fn hole_of(only: &str) -> (&str, &str) {
        only.split_once('=').unwrap_or(("", only))
    }
    let Some(only) = only else { return true };
    let Some(other) = other else { return false };
    let ((hole, pattern), (own, narrow)) = (hole_of(only), hole_of(other));
    hole == own && includes(pattern, narrow)
}

/// Whether a place is one that `only` of a profile means: a pattern for the first hole, or `hole=pattern`. `cpu1` means
/// the same as `1`, since that is how a plan shows the place. A mount is meant by its path, too: `/dev/shm`.
#[must_use]
pub fn is_meant(path: &str, place: &str, only: &str) -> bool {
    if path.starts_with(MOUNTS) && only.starts_with('/') {
        return mount_point(place).is_some_and(|point| matches(only, &point));
    }
    let Some(captures) = captures(path, place) else { return false };
    let (value, pattern) = match only.split_once('=') {
        Some((hole, pattern)) => (captures.iter().find(|(name, _)| *name == hole), pattern),
        None => (captures.first(), only),
    };
    value.is_some_and(|(hole, value)| {
        let folder = || {
            let mut parts = path.split('/').zip(place.split('/'));
            parts.find(|(part, _)| part.contains(&format!("{{{hole}}}"))).map(|(_, shown)| shown)
        };
        matches(pattern, value) || folder().is_some_and(|folder| matches(pattern, folder))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDLE: &str = "/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable";

    #[test]
    fn many_holes_take_no_time_that_doubles_with_each() {
        let (pattern, place) = ("{a}6".repeat(40), format!("{}x", "6".repeat(4000)));
        assert_eq!(captures(&pattern, &place), None);
        let fitting = captures(&pattern, &place[..4000]).expect("it has the text at its end");
        assert_eq!((fitting.len(), fitting[0], fitting[39].1.len()), (40, ("a", "6"), 4000 - 79));
    }

    #[test]
    fn patterns_that_have_a_place_in_common_meet() {
        const SCHEDULER: &str = "/sys/block/{disk}/queue/scheduler";
        const GOVERNOR: &str = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor";
        const MTU: &str = "/sys/class/net/{nic}/mtu";
        for (one, other, do_meet) in [
            ("/proc/sys/vm/swappiness", "/proc/sys/vm/swappiness", true),
            ("/proc/sys/vm/swappiness", "/proc/sys/vm/swappines", false),
            ("/proc/sys/{folder}/{file}", "/proc/sys/vm/swappiness", true),
            ("/proc/sys/vm/{file}", "/proc/sys/vm/laptop/mode", false),
            ("/sys/block/sda/queue/{file}", SCHEDULER, true),
            ("/sys/block/{disk}/queue/sched{x}", SCHEDULER, true),
            ("/sys/block/{disk}/queue/{x}ers", SCHEDULER, false),
            ("/sys/a/p{a}_d{b}/x", "/sys/a/{c}_dd/x", true),
            ("/sys/a/p{a}", "/sys/a/p", false),
            ("/sys/class/block/sda/queue/scheduler", SCHEDULER, true),
            ("/sys/dev/block/8:0/queue/scheduler", SCHEDULER, true),
            ("/sys/devices/pci0000:00/0000:00:1f.2/block/sda/queue/scheduler", SCHEDULER, true),
            ("/sys/devices/virtual/net/lo/mtu", MTU, true),
            ("/sys/devices/virtual/{kind}/{name}/mtu", MTU, true),
            ("/sys/devices/virtual/misc/lo/mtu", MTU, false),
            ("/sys/bus/cpu/devices/cpu1/online", "/sys/devices/system/cpu/cpu{cpu}/online", true),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", GOVERNOR, true),
            ("/sys/devices/system/cpu/cpufreq/boost", GOVERNOR, false),
            ("cmdline:quiet", "cmdline:quiet", true),
            ("cmdline:quiet", MTU, false),
        ] {
            assert_eq!(meet(one, other), do_meet, "{one} {other}");
            assert_eq!(meet(other, one), do_meet, "{other} {one}");
        }
    }

    #[test]
    fn of_all_names_of_a_place_the_one_of_the_rows_is_found() {
        const CPU: &str = "/sys/devices/system/cpu";
        for (path, name) in [
            ("/sys/class/block/nvme*/queue/scheduler", "/sys/block/nvme*/queue/scheduler"),
            ("/sys/class/nvme/nvme0/nvme0n1/queue/scheduler", "/sys/block/nvme0n1/queue/scheduler"),
            ("/sys/block/dm-0/slaves/sda/queue/nomerges", "/sys/block/sda/queue/nomerges"),
            ("/sys/devices/pci0/ata1/block/sda/queue/nomerges", "/sys/block/sda/queue/nomerges"),
            ("/sys/block/sda/bdi/read_ahead_kb", "/sys/block/sda/queue/read_ahead_kb"),
            ("/sys/class/block/sd[ab]/bdi/read_ahead_kb", "/sys/block/sd[ab]/queue/read_ahead_kb"),
            ("/sys/block/sda/bdi/max_ratio", "/sys/block/sda/bdi/max_ratio"),
            ("/sys/devices/pci0/net/eth0/queues/rx-0/rps_cpus", "/sys/class/net/eth0/queues/rx-0/rps_cpus"),
            ("/sys/class/net/block/queues/rx-0/rps_cpus", "/sys/class/net/block/queues/rx-0/rps_cpus"),
            ("/sys/block/sda/device/scsi_disk/0:0:0:0/cache_type", "/sys/class/scsi_disk/0:0:0:0/cache_type"),
            (
                "/sys/bus/workqueue/devices/writeback/cpumask",
                "/sys/devices/virtual/workqueue/writeback/cpumask",
            ),
            ("//sys//block/./sda/queue/nomerges", "/sys/block/sda/queue/nomerges"),
            ("/proc/sys//vm/swappiness", "/proc/sys/vm/swappiness"),
            ("/sys/class/block", "/sys/class/block"),
            ("cmdline:a//b", "cmdline:a//b"),
        ] {
            assert_eq!(canonical(path), name, "{path}");
        }
        for (path, name) in [
            ("cpufreq/policy*/scaling_governor", "cpu*/cpufreq/scaling_governor"),
            ("cpufreq/policy[0-7]/scaling_governor", "cpu[0-7]/cpufreq/scaling_governor"),
            ("cpufreq/*/scaling_governor", "cpu*/cpufreq/scaling_governor"),
            ("cpufreq/ondemand/up_threshold", "cpufreq/ondemand/up_threshold"),
            ("cpufreq/b*/x", "cpufreq/b*/x"),
            ("cpufreq/boost", "cpufreq/boost"),
            ("cpu3/node0/hugepages/x", "../node/node0/hugepages/x"),
            ("../node/node0/cpu3/online", "cpu3/online"),
            ("../node/node0/cpumap", "../node/node0/cpumap"),
        ] {
            let full = |path: &str| match path.strip_prefix("..") {
                Some(rest) => format!("/sys/devices/system{rest}"),
                None => format!("{CPU}/{path}"),
            };
            assert_eq!(canonical(&full(path)), full(name), "{path}");
        }
        assert_eq!(canonical("/sys/bus/cpu/devices/cpu1/online"), format!("{CPU}/cpu1/online"));
    }

    /// What is held against them has that name.
    #[test]
    fn the_rows_have_no_other_name_for_a_place() {
        for knob in crate::Catalogue::embedded().expect("sound").knobs() {
            assert_eq!(canonical(&knob.path), knob.path, "{}", knob.id);
        }
    }

    #[test]
    fn holes_are_captured_by_name() {
        let place = "/sys/devices/system/cpu/cpu12/cpuidle/state3/disable";
        assert_eq!(captures(IDLE, place), Some(vec![("cpu", "12"), ("state", "3")]));
        assert_eq!(captures(IDLE, "/sys/devices/system/cpu/cpu/cpuidle/state3/disable"), None);
        assert_eq!(captures(IDLE, "/sys/devices/system/cpu/cpu1/cpuidle/state3"), None);
        let die = "/uncore/package_{package}_die_{die}/max";
        let found = captures(die, "/uncore/package_01_die_00/max");
        assert_eq!(found, Some(vec![("package", "01"), ("die", "00")]));
        assert_eq!(captures(die, "/uncore/package_01_die_/max"), None);
        assert_eq!(captures(die, "/uncore/package_01/max"), None);
        assert_eq!(captures("/proc/sys/vm/swappiness", "/proc/sys/vm/swappiness"), Some(vec![]));
    }

    #[test]
    fn the_holes_of_a_coupled_knob_are_filled_with_the_same_values() {
        let path = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}";
        assert_eq!(
            fill(path, &[("cpu", "3"), ("state", "1")]),
            "/sys/devices/system/cpu/cpu3/cpufreq/{file}"
        );
    }

    #[test]
    fn only_means_the_first_hole_or_a_named_one() {
        let place = "/sys/devices/system/cpu/cpu12/cpuidle/state3/disable";
        assert!(is_meant(IDLE, place, "1*"));
        assert!(!is_meant(IDLE, place, "3"));
        assert!(is_meant(IDLE, place, "state=3"));
        assert!(!is_meant(IDLE, place, "core=3"));
        for only in ["cpu12", "cpu=cpu1*", "state=state3"] {
            assert!(is_meant(IDLE, place, only), "{only}");
        }
        assert!(!is_meant(IDLE, place, "cpu1") && !is_meant(IDLE, place, "state=state4"));
    }

    #[test]
    fn a_mount_is_meant_by_its_path_or_by_the_name_of_its_unit() {
        const SIZE: &str = "/planish/mounts/{mount}/size";
        for (place, only, is_so) in [
            ("/planish/mounts/dev-shm/size", "/dev/shm", true),
            ("/planish/mounts/dev-shm/size", "dev-shm", true),
            ("/planish/mounts/dev-shm/size", "/dev/*", true),
            ("/planish/mounts/dev-shm/size", "/dev", false),
            ("/planish/mounts/-/size", "/", true),
            ("/planish/mounts/data-a\\x3db/size", "/data/a=b", true),
            ("/planish/mounts/data-a\\x2d1/size", "/data/a-1", true),
            ("/planish/mounts/data-a\\x2d1/size", "/data/a/1", false),
        ] {
            assert_eq!(is_meant(SIZE, place, only), is_so, "{place} {only}");
        }
        for none in
            ["/planish/mounts/*/size", "/planish/mounts/a\\x/size", "/planish/mounts/\\xff/size", "/sys/a/b"]
        {
            assert_eq!(mount_point(none), None, "{none}");
        }
    }

    #[test]
    fn what_starts_a_holder_sets_its_limit() {
        let set = of_line("ExecStart=/usr/bin/planish hold cpu-dma-latency 20");
        assert_eq!(set, Some((DMA_LATENCY.to_owned(), "20".to_owned())));
        assert_eq!(of_line("ExecStart=/usr/bin/planish check --monitor"), None);
    }

    #[test]
    fn the_first_separator_of_a_key_decides() {
        let place = "/proc/sys/net/ipv4/conf/eth0.1/forwarding";
        assert_eq!(of_sysctl("net.ipv4.conf.eth0/1.forwarding"), place);
        assert_eq!(of_sysctl("net/ipv4/conf/eth0.1/forwarding"), place);
    }

    /// Tries each length of each hole between these texts, the shortest first.
    fn all_ways<'a>(texts: &[&str], place: &'a str) -> Option<Vec<&'a str>> {
        let (text, others) = texts.split_first()?;
        let rest = place.strip_prefix(text)?;
        if others.is_empty() {
            return rest.is_empty().then(Vec::new);
        }
        let behind =
            |end: usize| all_ways(others, &rest[end..]).map(|more| [vec![&rest[..end]], more].concat());
        (1..=rest.len()).find_map(behind)
    }

    proptest! {
        #[test]
        fn a_mount_is_found_again_by_its_name(path in "(/[-a.é\\\\ ]{1,4}){1,4}") {
            let place = format!("{MOUNTS}{}/atime", mount_name(&path));
            prop_assert_eq!(mount_point(&place), Some(path));
        }

        #[test]
        fn what_was_filled_is_captured_again(cpu in 0_u32..5000, state in 0_u32..10) {
            let (cpu, state) = (cpu.to_string(), state.to_string());
            let holes = [("cpu", cpu.as_str()), ("state", state.as_str())];
            let place = fill(IDLE, &holes);
            prop_assert_eq!(captures(IDLE, &place), Some(holes.to_vec()));
        }

        #[test]
        fn the_first_of_all_ways_to_fill_the_holes_is_taken(
            pattern in "([ab]{0,2}\\{h\\}){1,4}[ab]{0,2}", place in "[ab]{0,9}",
        ) {
            let found = captures(&pattern, &place).map(|holes| holes.into_iter().map(|(_, filling)| filling).collect());
            prop_assert_eq!(found, all_ways(&pattern.split("{h}").collect::<Vec<_>>(), &place));
        }

        #[test]
        fn a_name_of_both_patterns_is_seen_before_it_is_known(
            wild in "[ab*?!\\[\\]-]{0,5}", component in "([ab]|\\{h\\}){1,4}", name in "[ab]{1,5}",
        ) {
            if matches(&wild, &name) && captures(&component, &name).is_some() {
                prop_assert!(may_mean(&wild, &component), "{} {} {}", wild, component, name);
            }
        }

        #[test]
        fn a_name_that_was_found_stays(
            parts in prop::collection::vec(prop::sample::select(vec![
                "devices", "system", "cpu", "cpufreq", "cpu0", "policy0", "p*", "{x}", "*", "node", "node1", "bus",
                "class", "block", "net", "queue", "bdi", "read_ahead_kb", "", ".", "x",
            ]), 0..9),
        ) {
            let path = format!("/sys/{}", parts.join("/"));
            let once = canonical(&path).into_owned();
            prop_assert_eq!(canonical(&once), once.as_str(), "{}", path);
        }
    }
}
