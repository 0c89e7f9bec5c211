//! The verdict on a knob at a place: what the evidence says about setting it on this host.
//!
//! Verdicts come from probing (does the file exist, who may write it) and never from a product's name. A
//! thing that cannot exist here is not a failure; a thing that can be set but means nothing here is told
//! apart from both.

use planish_model::{Access, HostFacts, Knob, Observation, Reading, Verdict, VerdictKind, When};

/// What the evidence says about setting `knob` at the place of `reading`.
#[must_use]
pub fn verdict(knob: &Knob, observation: &Observation, reading: &Reading) -> Verdict {
    let host = &observation.host;
    match &reading.access {
        Access::Absent => absent(knob, host),
        Access::ReadOnly(reason) => Verdict::new(VerdictKind::Blocked, reason.clone()),
        Access::Writable | Access::NeedsRoot => {
            if let Some(reason) = &reading.unread {
                return Verdict::new(VerdictKind::Blocked, format!("cannot be read: {reason}"));
            }
            if let Some(reason) = moot(knob, host) {
                return Verdict::new(VerdictKind::Moot, reason);
            }
            if knob.when == When::Boot {
                return Verdict::new(VerdictKind::Reboot, "takes effect at the next boot");
            }
            Verdict::new(VerdictKind::Settable, settable(reading, host))
        }
    }
}

/// Remarks on a knob that can be set.
fn settable(reading: &Reading, host: &HostFacts) -> String {
    let mut remarks = Vec::new();
    if reading.access == Access::NeedsRoot {
        remarks.push("by root".to_owned());
    }
    if let Some(container) = &host.container {
        remarks.push(format!("for the whole machine, not only this container ({container})"));
    }
    remarks.join("; ")
}

/// Why setting it means nothing here.
fn moot(knob: &Knob, host: &HostFacts) -> Option<String> {
    let needs = &knob.needs;
    if let (true, Some(guest)) = (needs.bare_metal, &host.guest) {
        return Some(format!("a guest ({guest}): the machine below decides"));
    }
    if let Some(cpus) = needs.cpus_min.filter(|cpus| host.cpus_online < *cpus) {
        return Some(format!("{} here, needs {cpus}", counted(host.cpus_online, "CPU")));
    }
    let nodes = u32::try_from(host.nodes.len()).unwrap_or(u32::MAX);
    if let Some(wanted) = needs.nodes_min.filter(|wanted| nodes < *wanted) {
        return Some(format!("{} here, needs {wanted}", counted(nodes, "NUMA node")));
    }
    None
}

/// Who would have to bring what is not there.
fn absent(knob: &Knob, host: &HostFacts) -> Verdict {
    let needs = &knob.needs;
    if let (true, Some(guest)) = (needs.bare_metal, &host.guest) {
        return Verdict::new(VerdictKind::Host, format!("a guest ({guest}): set it on the machine below"));
    }
    if let Some(first) = needs.kernel_min.as_deref().filter(|first| is_older(&host.kernel, first)) {
        return Verdict::new(VerdictKind::Absent, format!("since Linux {first}, this is {}", host.kernel));
    }
    if let Some(gone) = needs.kernel_gone.as_deref().filter(|gone| !is_older(&host.kernel, gone)) {
        return Verdict::new(
            VerdictKind::Absent,
            format!("gone since Linux {gone}, this is {}", host.kernel),
        );
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
fn is_older(release: &str, version: &str) -> bool {
    match (numbers(release), numbers(version)) {
        (Some(release), Some(version)) => release < version,
        _ => false,
    }
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
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
