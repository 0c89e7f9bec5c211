//! The verdict on a knob at a place: what the evidence says about setting it on this host.
//!
//! Verdicts come from probing (does the file exist, who may write it) and never from a product's name. A
//! thing that cannot exist here is not a failure; a thing that can be set but means nothing here is told
//! apart from both.
//!
//! A boot parameter is given to any kernel, known or not: there is nothing to probe, so its conditions decide.

use planish_model::{
    Access, Class, Conditions, HostFacts, Knob, Observation, Reading, Vendor, Verdict, VerdictKind, When,
    place, units::bytes,
};

use crate::{mounts, pages};

/// Why a row of a recording has no other verdict.
const NOT_LOOKED_FOR: &str = "who recorded this machine did not look for it";

/// What the evidence says about setting `knob` at the place of `reading`.
#[must_use]
pub fn verdict(knob: &Knob, observation: &Observation, reading: &Reading) -> Verdict {
    let host = &observation.host;
    if let Some(reason) = beyond_undo(knob.class) {
        let gone = reading.access == Access::Absent;
        return if gone { absent(knob, observation) } else { Verdict::new(VerdictKind::Blocked, reason) };
    }
    if knob.boot_parameter().is_some()
        && let Some(reason) = unknown_to(&knob.needs, host)
    {
        return Verdict::new(VerdictKind::Absent, reason);
    }
    if let Some(reason) = pages::unknown_to_kernel(knob, host) {
        return Verdict::new(VerdictKind::Absent, reason);
    }
    match &reading.access {
        Access::Absent => absent(knob, observation),
        Access::ReadOnly(reason) => Verdict::new(VerdictKind::Blocked, reason.clone()),
        Access::Writable | Access::NeedsRoot => {
            if let Some(verdict) = mounts::of_others(knob, host) {
                return verdict;
            }
            if let Some(reason) = &reading.unread {
                return Verdict::new(VerdictKind::Blocked, format!("cannot be read: {reason}"));
            }
            if let Some(reason) = moot(&knob.needs, host) {
                return Verdict::new(VerdictKind::Moot, reason);
            }
            if let Some(reason) = mounts::overruled(knob, observation) {
                return Verdict::new(VerdictKind::Moot, reason);
            }
            if knob.when == When::Boot {
                return Verdict::new(VerdictKind::Reboot, "takes effect at the next boot");
            }
            Verdict::new(VerdictKind::Settable, settable(knob, reading, host))
        }
    }
}

/// Why a class of knobs is never set, whatever is allowed.
pub(crate) fn beyond_undo(class: Class) -> Option<&'static str> {
    match class {
        Class::Oneway => Some("cannot be set back before a reboot: planish does not set it"),
        Class::Action => Some("has no old value to put back: planish does not set it"),
        Class::Safe | Class::Availability | Class::Durability | Class::Security => None,
    }
}

/// Remarks on a knob that can be set.
fn settable(knob: &Knob, reading: &Reading, host: &HostFacts) -> String {
    let mut remarks = Vec::new();
    if reading.access == Access::NeedsRoot {
        remarks.push("by root".to_owned());
    }
    match &host.container {
        Some(container) if is_namespaced(&knob.path, &host.kernel) => {
            remarks.push(format!("for this container's namespace only ({container})"));
        }
        Some(container) => {
            remarks.push(format!("for the whole machine, not only this container ({container})"));
        }
        None => {}
    }
    remarks.join("; ")
}

/// Whether every network or IPC namespace has a value of its own (`net/*/sysctl*.c`, `ipc/ipc_sysctl.c`). Of
/// `net/core/sysctl_net_core.c` few are: `somaxconn`, and `optmem_max` since Linux 6.8.
fn is_namespaced(path: &str, kernel: &str) -> bool {
    const IPC: [&str; 7] = ["shmmax", "shmall", "shmmni", "msgmax", "msgmnb", "msgmni", "sem"];
    let ipc = path.strip_prefix("/proc/sys/kernel/").is_some_and(|name| IPC.contains(&name));
    let core = path == "/proc/sys/net/core/somaxconn"
        || path == "/proc/sys/net/core/optmem_max" && !is_older(kernel, "6.8");
    let net = ["/proc/sys/net/ipv4/", "/sys/class/net/", place::CARDS];
    ipc || core || net.iter().any(|folder| path.starts_with(folder))
}

/// Why advice does not hold on this host: all its conditions, since there is nothing to probe.
#[must_use]
pub fn unmet(needs: &Conditions, host: &HostFacts) -> Option<String> {
    let outdated = || {
        let gone = too_new(needs, host)?;
        Some(format!("for Linux before {gone}, this is {}", host.kernel))
    };
    moot(needs, host).or_else(outdated).or_else(|| unknown_to(needs, host)).or_else(|| other_os(needs, host))
}

/// Why setting a thing that is there means nothing here. Its kernel is not asked: distributions bring things back
/// to older ones.
pub(crate) fn moot(needs: &Conditions, host: &HostFacts) -> Option<String> {
    if let (true, Some(guest)) = (needs.bare_metal, &host.guest) {
        return Some(format!("a guest ({guest}): the machine below decides"));
    }
    if needs.guest && host.guest.is_none() {
        return Some("bare metal: it is for guests".to_owned());
    }
    if let Some(cpus) = needs.cpus_min.filter(|cpus| host.cpus_online < *cpus) {
        return Some(format!("{} here, needs {cpus}", counted(host.cpus_online, "CPU")));
    }
    let nodes = u32::try_from(host.nodes.len()).unwrap_or(u32::MAX);
    if let Some(wanted) = needs.nodes_min.filter(|wanted| nodes < *wanted) {
        return Some(format!("{} here, needs {wanted}", counted(nodes, "NUMA node")));
    }
    if let Some(most) = needs.base_page_max.filter(|most| host.page_bytes > *most) {
        let (here, most) = (bytes(host.page_bytes), bytes(most));
        return Some(format!("for base pages of {most} at most, here they have {here}"));
    }
    if let (Some(most), Some(here)) = (needs.thp_max, host.thp_bytes)
        && here > most
    {
        return Some(format!(
            "for transparent huge pages of {} at most, here they have {}",
            bytes(most),
            bytes(here)
        ));
    }
    if let Some(dead) = needs.dead_since.as_deref().filter(|dead| !is_older(&host.kernel, dead)) {
        return Some(format!("the kernel ignores it since Linux {dead}, this is {}", host.kernel));
    }
    None
}

/// Why this kernel or this CPU does not know it.
fn unknown_to(needs: &Conditions, host: &HostFacts) -> Option<String> {
    if !needs.arch.is_empty() && !needs.arch.contains(&host.arch) {
        return Some(format!("for {} only, this is {}", needs.arch.join(" and "), host.arch));
    }
    if !needs.vendor.is_empty() && host.vendor.is_none_or(|vendor| !needs.vendor.contains(&vendor)) {
        let wanted: Vec<&str> = needs.vendor.iter().map(|vendor| maker(*vendor)).collect();
        let here = host.vendor.map_or("another maker's", maker);
        return Some(format!("for CPUs of {} only, this is {here}", wanted.join(" and ")));
    }
    by_kernel(needs, host)
}

/// Why this kernel is too old or too new for it.
fn by_kernel(needs: &Conditions, host: &HostFacts) -> Option<String> {
    if let Some(first) = needs.kernel_min.as_deref().filter(|first| is_older(&host.kernel, first)) {
        return Some(format!("since Linux {first}, this is {}", host.kernel));
    }
    let gone = too_new(needs, host)?;
    Some(format!("gone since Linux {gone}, this is {}", host.kernel))
}

/// The first kernel without it, where this is that one or a later one.
fn too_new<'a>(needs: &'a Conditions, host: &HostFacts) -> Option<&'a str> {
    needs.kernel_gone.as_deref().filter(|gone| !is_older(&host.kernel, gone))
}

/// Why the advice is not for this distribution. One that does not say what it is, is none of them.
fn other_os(needs: &Conditions, host: &HostFacts) -> Option<String> {
    let here = match host.os.first() {
        Some(id) => format!("{id} {}", host.os_version).trim_end().to_owned(),
        None => "a system that does not say its name".to_owned(),
    };
    if !needs.os.is_empty() && !needs.os.iter().any(|wanted| host.os.contains(wanted)) {
        return Some(format!("for {} only, this is {here}", needs.os.join(" and ")));
    }
    let older = |version: &String| host.os.is_empty() || is_older(&host.os_version, version);
    if let Some(first) = needs.os_min.as_ref().filter(|first| older(first)) {
        return Some(format!("since release {first}, this is {here}"));
    }
    let gone =
        needs.os_gone.as_ref().filter(|gone| host.os.is_empty() || !is_older(&host.os_version, gone))?;
    Some(format!("until release {gone}, this is {here}"))
}

fn maker(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Intel => "Intel",
        Vendor::Amd => "AMD",
        Vendor::Arm => "Arm",
    }
}

/// Who would have to bring what is not there.
fn absent(knob: &Knob, observation: &Observation) -> Verdict {
    let (needs, host) = (&knob.needs, &observation.host);
    if let (true, Some(guest)) = (needs.bare_metal, &host.guest) {
        return Verdict::new(VerdictKind::Host, format!("a guest ({guest}): set it on the machine below"));
    }
    if let Some(reason) = unknown_to(needs, host) {
        return Verdict::new(VerdictKind::Absent, reason);
    }
    if needs.guest && host.guest.is_none() {
        return Verdict::new(VerdictKind::Absent, "bare metal: it is for guests");
    }
    let is_without_systemd = || observation.machine.as_ref().is_some_and(|machine| !machine.systemd);
    if knob.r#type.is_cpus_of_a_unit() && is_without_systemd() {
        return Verdict::new(VerdictKind::Absent, "process 1 is no systemd");
    }
    if knob.is_own_file() {
        return Verdict::new(
            VerdictKind::Absent,
            "no unit of this host has it, and a profile says which ones are meant",
        );
    }
    if observation.not_recorded.contains(&knob.id) {
        return Verdict::new(VerdictKind::NotRecorded, NOT_LOOKED_FOR);
    }
    if knob.path.starts_with(place::RESCTRL) {
        let nothing = match knob.has_holes() {
            true => "planish has made no group, and without resctrl it can make none: see docs/cache.md",
            false => "no resctrl that shares out caches is mounted: mount -t resctrl resctrl /sys/fs/resctrl",
        };
        return Verdict::new(VerdictKind::Absent, nothing);
    }
    if knob.path.starts_with(place::MOUNTS) {
        let nothing = "no mount that can be written has it, beside those that programs keep for themselves: see \
                       docs/mounts.md";
        return Verdict::new(VerdictKind::Absent, nothing);
    }
    if knob.path.starts_with(place::THREADS) {
        let nothing = match &host.container {
            Some(container) => {
                format!("a container ({container}) sees no thread of the kernel: not to be set here")
            }
            None if knob.path.contains("/ktimers/") => {
                "no such thread is here: only kernels with PREEMPT_RT have one".to_owned()
            }
            None => "no such thread of the kernel is seen here".to_owned(),
        };
        return Verdict::new(VerdictKind::Absent, nothing);
    }
    if knob.path.starts_with("/sys/fs/cgroup/") {
        let nothing = "no group of version 2 below the root of /sys/fs/cgroup has the cpuset controller";
        return Verdict::new(VerdictKind::Absent, nothing);
    }
    if knob.boot_parameter().is_some() {
        return Verdict::new(VerdictKind::Absent, "there is no /proc/cmdline to read it from");
    }
    if needs.firmware {
        return Verdict::new(
            VerdictKind::Firmware,
            "no driver offers it: look for it in the firmware set-up",
        );
    }
    let nothing =
        if knob.has_holes() { "nothing on this machine has it" } else { "this kernel does not have it" };
    Verdict::new(VerdictKind::Absent, nothing)
}

/// Whether a kernel release is older than a `major.minor` version. Odd text is never older.
pub(crate) fn is_older(release: &str, version: &str) -> bool {
    match (numbers(release), numbers(version)) {
        (Some(release), Some(version)) => release < version,
        _ => false,
    }
}

/// The first two numbers of a version; a version of one number is its `.0`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next().unwrap_or("0").parse().ok()?))
}

fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use planish_model::Conditions;

    use super::*;
    use crate::testing::{knob, observation, reading};

    fn kind(needs: Conditions, access: Access, change: impl Fn(&mut HostFacts)) -> (VerdictKind, String) {
        let knob = Knob { needs, ..knob("cpu.governor", "/sys/x") };
        let mut observation = observation();
        change(&mut observation.host);
        let reading = Reading { access, ..reading("/sys/x", "powersave") };
        let verdict = verdict(&knob, &observation, &reading);
        (verdict.verdict, verdict.reason)
    }

    #[test]
    fn advice_that_a_later_kernel_needs_no_more_is_not_called_gone() {
        let until =
            |version: &str| Conditions { kernel_gone: Some(version.to_owned()), ..Conditions::default() };
        let host = observation().host;
        assert_eq!(unmet(&until("6.16"), &host), None);
        assert_eq!(
            unmet(&until("6.12"), &host).as_deref(),
            Some("for Linux before 6.12, this is 6.12.1-test")
        );
    }

    #[test]
    fn probing_decides_and_conditions_explain() {
        let metal = || Conditions { bare_metal: true, firmware: true, ..Conditions::default() };
        let guest = |host: &mut HostFacts| host.guest = Some("hypervisor flag".to_owned());
        assert_eq!(kind(metal(), Access::Writable, |_| ()).0, VerdictKind::Settable);
        assert_eq!(kind(metal(), Access::Writable, guest).0, VerdictKind::Moot);
        assert_eq!(kind(metal(), Access::Absent, guest).0, VerdictKind::Host);
        assert_eq!(kind(metal(), Access::Absent, |_| ()).0, VerdictKind::Firmware);
        assert_eq!(kind(Conditions::default(), Access::Absent, |_| ()).0, VerdictKind::Absent);
        assert_eq!(
            kind(metal(), Access::ReadOnly("mounted read-only".to_owned()), guest),
            (VerdictKind::Blocked, "mounted read-only".to_owned())
        );
        assert_eq!(kind(metal(), Access::NeedsRoot, |_| ()), (VerdictKind::Settable, "by root".to_owned()));
    }

    #[test]
    fn a_container_is_told_what_is_its_own() {
        let mut observation = observation();
        observation.host.container = Some("a marker".to_owned());
        let mut own = |path: &str, kernel: &str| {
            kernel.clone_into(&mut observation.host.kernel);
            let verdict = verdict(&knob("a.b", path), &observation, &reading(path, "1"));
            verdict.reason.starts_with("for this container's namespace only")
        };
        assert!(own("/proc/sys/net/core/somaxconn", "5.14.0") && own("/proc/sys/kernel/shmmax", "5.14.0"));
        assert!(own("/proc/sys/net/core/optmem_max", "6.8.0"));
        assert!(!own("/proc/sys/net/core/optmem_max", "6.7.0"), "one for the machine until then");
        assert!(!own("/proc/sys/net/core/netdev_max_backlog", "6.8.0"));
    }

    #[test]
    fn what_nobody_looked_for_is_not_absent() {
        let mut observation = observation();
        let gone = Reading { access: Access::Absent, ..reading("/sys/x", "") };
        let plain = knob("cpu.governor", "/sys/x");
        let newer = Conditions { kernel_min: Some("6.16".to_owned()), ..Conditions::default() };
        let newer = Knob { needs: newer, ..plain.clone() };
        let kind = |knob: &Knob, observation: &Observation| verdict(knob, observation, &gone).verdict;
        assert_eq!(kind(&plain, &observation), VerdictKind::Absent);
        observation.not_recorded.insert(plain.id.clone());
        assert_eq!(kind(&plain, &observation), VerdictKind::NotRecorded);
        // The version of the kernel tells it without a look.
        assert_eq!(kind(&newer, &observation), VerdictKind::Absent);
    }

    #[test]
    fn too_few_cpus_or_nodes_make_it_moot() {
        let needs = Conditions { nodes_min: Some(2), ..Conditions::default() };
        assert_eq!(kind(needs.clone(), Access::Writable, |_| ()).0, VerdictKind::Settable);
        let (verdict, reason) = kind(needs, Access::Writable, |host| host.nodes = vec![0]);
        assert_eq!((verdict, reason.as_str()), (VerdictKind::Moot, "1 NUMA node here, needs 2"));
        let needs = Conditions { cpus_min: Some(64), ..Conditions::default() };
        assert_eq!(kind(needs, Access::Writable, |_| ()).0, VerdictKind::Moot);
    }

    #[test]
    fn an_absent_file_names_the_kernel_that_has_it() {
        let huge = Conditions { thp_max: Some(2 << 20), ..Conditions::default() };
        let with = |thp_bytes| HostFacts { thp_bytes, ..HostFacts::default() };
        assert_eq!([None, Some(2 << 20)].map(|size| unmet(&huge, &with(size))), [None, None]);
        let reason = unmet(&huge, &with(Some(512 << 20))).expect("too large");
        assert_eq!(reason, "for transparent huge pages of 2 MiB at most, here they have 512 MiB");
        let small = Conditions { base_page_max: Some(4096), ..Conditions::default() };
        assert_eq!(unmet(&small, &HostFacts { page_bytes: 4096, ..HostFacts::default() }), None);
        let large = HostFacts { page_bytes: 65536, ..HostFacts::default() };
        let told = "for base pages of 4 KiB at most, here they have 64 KiB";
        assert_eq!(unmet(&small, &large).as_deref(), Some(told));
        let since = Conditions { kernel_min: Some("6.16".to_owned()), ..Conditions::default() };
        let (verdict, reason) = kind(since, Access::Absent, |_| ());
        assert_eq!(
            (verdict, reason.as_str()),
            (VerdictKind::Absent, "since Linux 6.16, this is 6.12.1-test")
        );
        let gone = Conditions { kernel_gone: Some("5.13".to_owned()), ..Conditions::default() };
        let (_, reason) = kind(gone, Access::Absent, |_| ());
        assert_eq!(reason, "gone since Linux 5.13, this is 6.12.1-test");
    }

    #[test]
    fn a_maker_an_architecture_and_a_dead_file_are_told() {
        let amd = |host: &mut HostFacts| host.vendor = Some(Vendor::Amd);
        let intel = || Conditions { vendor: vec![Vendor::Intel], ..Conditions::default() };
        assert_eq!(
            kind(intel(), Access::Absent, amd),
            (VerdictKind::Absent, "for CPUs of Intel only, this is AMD".to_owned())
        );
        assert_eq!(
            kind(intel(), Access::Writable, |host| host.vendor = Some(Vendor::Intel)).0,
            VerdictKind::Settable
        );
        let arm = Conditions { arch: vec!["aarch64".to_owned()], ..Conditions::default() };
        assert_eq!(
            kind(arm, Access::Absent, |host| host.arch = "x86_64".to_owned()).1,
            "for aarch64 only, this is x86_64"
        );
        let dead = || Conditions { dead_since: Some("4.14".to_owned()), ..Conditions::default() };
        assert_eq!(
            kind(dead(), Access::Writable, |_| ()),
            (VerdictKind::Moot, "the kernel ignores it since Linux 4.14, this is 6.12.1-test".to_owned())
        );
        assert_eq!(
            kind(dead(), Access::Writable, |host| host.kernel = "4.9.0".to_owned()).0,
            VerdictKind::Settable
        );
        let guest = Conditions { guest: true, ..Conditions::default() };
        assert_eq!(kind(guest.clone(), Access::Writable, |_| ()).0, VerdictKind::Moot);
        assert_eq!(kind(guest, Access::Absent, |_| ()).0, VerdictKind::Absent);
    }

    #[test]
    fn advice_is_for_releases_of_a_distribution() {
        let needs = |min: Option<&str>, gone: Option<&str>| Conditions {
            os: vec!["sles".to_owned()],
            os_min: min.map(str::to_owned),
            os_gone: gone.map(str::to_owned),
            ..Conditions::default()
        };
        let host = |os: &[&str], version: &str| HostFacts {
            os: os.iter().map(|id| (*id).to_owned()).collect(),
            os_version: version.to_owned(),
            ..observation().host
        };
        let sles = host(&["sles", "suse"], "15.5");
        assert_eq!(unmet(&needs(Some("15.5"), None), &sles), None);
        assert_eq!(
            unmet(&needs(Some("15.6"), None), &sles).as_deref(),
            Some("since release 15.6, this is sles 15.5")
        );
        assert_eq!(
            unmet(&needs(None, Some("15.5")), &sles).as_deref(),
            Some("until release 15.5, this is sles 15.5")
        );
        assert_eq!(unmet(&needs(None, Some("16")), &sles), None);
        let debian = unmet(&needs(None, None), &host(&["debian"], "13"));
        assert_eq!(debian.as_deref(), Some("for sles only, this is debian 13"));
        let unnamed = unmet(&needs(None, None), &host(&[], ""));
        assert_eq!(unnamed.as_deref(), Some("for sles only, this is a system that does not say its name"));
    }

    #[test]
    fn a_boot_parameter_is_judged_by_its_conditions() {
        let knob = |needs| Knob { needs, when: When::Boot, ..knob("boot.amd_pstate", "cmdline:amd_pstate") };
        let (mut observation, reading) = (observation(), reading("cmdline:amd_pstate", "(not given)"));
        let needs = Conditions {
            vendor: vec![Vendor::Amd],
            kernel_min: Some("5.17".to_owned()),
            ..Conditions::default()
        };
        let kind = |observation: &Observation, needs| verdict(&knob(needs), observation, &reading).verdict;
        assert_eq!(kind(&observation, needs.clone()), VerdictKind::Absent);
        observation.host.vendor = Some(Vendor::Amd);
        assert_eq!(kind(&observation, needs.clone()), VerdictKind::Reboot);
        observation.host.kernel = "5.4.0".to_owned();
        assert_eq!(kind(&observation, needs), VerdictKind::Absent);
    }

    #[test]
    fn actions_and_one_way_knobs_are_never_settable() {
        let reading = reading("/proc/sys/vm/drop_caches", "0");
        for class in [Class::Action, Class::Oneway] {
            let knob = Knob { class, ..knob("vm.drop_caches", "/proc/sys/vm/drop_caches") };
            assert_eq!(verdict(&knob, &observation(), &reading).verdict, VerdictKind::Blocked);
        }
    }

    #[test]
    fn an_unreadable_place_is_never_written() {
        let observation = observation();
        let reading =
            Reading { value: None, unread: Some("permission denied".to_owned()), ..reading("/sys/x", "") };
        let verdict = verdict(&knob("a.b", "/sys/x"), &observation, &reading);
        assert_eq!(verdict.verdict, VerdictKind::Blocked);
    }

    #[test]
    fn releases_compare_as_numbers() {
        assert!(is_older("5.4.0-generic", "5.14"));
        assert!(!is_older("6.10", "6.9"));
        assert!(!is_older("odd", "6.9"));
    }
}
