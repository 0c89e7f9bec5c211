//! The CPUs of a control group of systemd, given back when the file that limited it is gone.
//!
//! Without a file systemd writes an empty list to the group at its next reload. The kernel takes none for a group in
//! which something runs (ENOSPC, `validate_change` in kernel/cgroup/cpuset.c), and systemd logs that and goes on: the
//! old list stays in force for as long as another group keeps the controller on. A list of all CPUs is taken, and is no
//! limit. systemd does not touch it: it tries the empty one at each reload, in vain, until nobody needs the controller,
//! whose files then go as a whole.
//!
//! The list never has a CPU of a partition beside the group: a kernel that is given one takes the partition its
//! exclusive right (`update_cpumask`).

use planish_model::{Caused, Cpus, Outcome, OutcomeKind};

use crate::error::{Refusal, SinkError};
use crate::sink::Sink;

/// Where control groups of version 2 are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The file with the CPUs of a group right below the root.
#[must_use]
pub fn file(unit: &str) -> String {
    format!("{ROOT}/{unit}/cpuset.cpus")
}

/// A group that a file of ours limited.
#[derive(Clone, Copy, Debug)]
pub struct Limited<'a> {
    /// The unit right below the root.
    pub unit: &'a str,
    /// The lists that files of ours gave it, and those that an undo wrote: the outcome tells them as caused.
    pub ours: &'a [Cpus],
    /// The file of somebody else that gives it CPUs: systemd sets those at its next reload.
    pub theirs: Option<&'a str>,
}

/// What there is to give, and who has the rest.
struct Whole {
    /// The list to write.
    list: Cpus,
    /// What the group has then.
    effective: Cpus,
    /// CPUs that a partition has.
    elsewhere: Cpus,
}

/// The line that gives a part of the system CPUs, to be typed by hand.
#[must_use]
pub fn line(unit: &str, cpus: &Cpus) -> String {
    format!("systemctl set-property --runtime {unit} AllowedCPUs={cpus}")
}

/// Gives the group all CPUs after its file was removed, and tells what came of it. What somebody else has set since is
/// kept, unless forced. Done twice it does nothing more.
pub fn give_back(mut outcome: Outcome, limited: &Limited<'_>, force: bool, sink: &dyn Sink) -> Outcome {
    let is_gone = matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied);
    if !is_gone || outcome.read_back.is_some() {
        return outcome;
    }
    let file = file(limited.unit);
    let now = match list(&file, sink) {
        Ok(Some(now)) if !now.is_empty() => now,
        Ok(_) => return outcome,
        Err(error) => return failed(outcome, limited, None, &error.in_full()),
    };
    if let Some(theirs) = limited.theirs {
        tell(&mut outcome, format!("{theirs} gives {} CPUs at the next reload", limited.unit));
        return outcome;
    }
    let whole = match whole(sink) {
        Ok(whole) => whole,
        Err(why) => return failed(outcome, limited, Some(&now), &why),
    };
    let is_whole = whole.effective.is_within(&now);
    if !is_whole && !force && !limited.ours.contains(&now) {
        outcome.outcome = OutcomeKind::Theirs;
        let why = "which no file gives and planish did not set: it was kept; all of them has it by";
        tell(&mut outcome, format!("{file} has {now}, {why}: {}", line(limited.unit, &whole.list)));
        return outcome;
    }
    if !is_whole {
        let value = whole.list.to_string();
        if let Err(error) = sink.write(&file, &value) {
            return failed(outcome, limited, Some(&now), &error.in_full());
        }
        outcome.caused.push(Caused { place: file, value });
    }
    told(outcome, limited, &whole, force, sink)
}

/// What the group has now, by what the kernel says of it.
fn told(mut outcome: Outcome, limited: &Limited<'_>, whole: &Whole, force: bool, sink: &dyn Sink) -> Outcome {
    let unit = limited.unit;
    let now = match list(&format!("{ROOT}/{unit}/cpuset.cpus.effective"), sink) {
        Ok(now) => now.unwrap_or_default(),
        Err(error) => return failed(outcome, limited, None, &error.in_full()),
    };
    if !whole.effective.is_within(&now) {
        return failed(outcome, limited, Some(&now), "the kernel gives it no more");
    }
    if whole.elsewhere.is_empty() {
        tell(&mut outcome, format!("{unit} has CPU {now} again"));
        return outcome;
    }
    if !force {
        outcome.outcome = OutcomeKind::InUse;
    }
    let all = line(unit, &now.union(&whole.elsewhere));
    let elsewhere = &whole.elsewhere;
    tell(
        &mut outcome,
        format!("{unit} has CPU {now}: a partition has {elsewhere}, and without it they come by: {all}"),
    );
    outcome
}

/// What the root has to give: all CPUs that are possible, or those that no partition has.
fn whole(sink: &dyn Sink) -> Result<Whole, String> {
    let read = |place: &str| match list(place, sink) {
        Ok(Some(cpus)) if !cpus.is_empty() => Ok(cpus),
        Ok(_) => Err(format!("{place} tells no CPUs")),
        Err(error) => Err(error.in_full()),
    };
    let effective = read(&format!("{ROOT}/cpuset.cpus.effective"))?;
    // Every group has a type but the root of the tree. A container has what it was given, and has it whole.
    if sink.read(&format!("{ROOT}/cgroup.type")).is_ok() {
        return Ok(Whole { list: effective.clone(), effective, elsewhere: Cpus::default() });
    }
    let elsewhere = read("/sys/devices/system/cpu/online")?.without(&effective);
    // A CPU that comes later is its as well, unless it may be one of a partition.
    let list = match elsewhere.is_empty() {
        true => read("/sys/devices/system/cpu/possible").unwrap_or_default().union(&effective),
        false => effective.clone(),
    };
    Ok(Whole { list, effective, elsewhere })
}

/// The CPUs that a file lists; `None` where it is not there.
fn list(place: &str, sink: &dyn Sink) -> Result<Option<Cpus>, SinkError> {
    match sink.read(place) {
        Ok(text) => Ok(Some(Cpus::parse(text.trim()).unwrap_or_default())),
        Err(error) if error.refusal == Refusal::Vanished => Ok(None),
        Err(error) => Err(error),
    }
}

/// The group is not as it was: what it has, and what to type.
fn failed(mut outcome: Outcome, limited: &Limited<'_>, now: Option<&Cpus>, why: &str) -> Outcome {
    let unit = limited.unit;
    let now = now.map_or_else(|| "is still limited".to_owned(), |now| format!("still has CPU {now}"));
    outcome.outcome = OutcomeKind::Failed;
    let all = format!("systemctl set-property --runtime {unit} AllowedCPUs=<all of them>");
    tell(&mut outcome, format!("its file is gone, and {unit} {now}: {why}; by hand: {all}"));
    outcome
}

fn tell(outcome: &mut Outcome, more: String) {
    outcome.detail = Some(outcome.detail.take().map_or(more.clone(), |before| format!("{before}; {more}")));
}

#[cfg(test)]
mod tests {
    use planish_model::KnobId;
    use rustix::io::Errno;

    use super::*;
    use crate::testing::Kernel;

    const CPUS: &str = "/sys/fs/cgroup/user.slice/cpuset.cpus";
    const EFFECTIVE: &str = "/sys/fs/cgroup/user.slice/cpuset.cpus.effective";
    const OF_ROOT: &str = "/sys/fs/cgroup/cpuset.cpus.effective";

    /// Eight CPUs, of which the group has four; more may come.
    fn kernel() -> Kernel {
        let mut kernel = Kernel::new(&[
            (CPUS, "0-3"),
            (EFFECTIVE, "0-3"),
            (OF_ROOT, "0-7"),
            ("/sys/devices/system/cpu/online", "0-7"),
            ("/sys/devices/system/cpu/possible", "0-15"),
        ]);
        kernel.also = vec![(CPUS, EFFECTIVE, "0-7")];
        kernel
    }

    fn cpus(list: &str) -> Cpus {
        Cpus::parse(list).expect("a list")
    }

    fn given_back(kernel: &Kernel, theirs: Option<&str>, force: bool) -> (OutcomeKind, String) {
        let removed = Outcome::new(KnobId::new("unit.allowed_cpus"), "/etc/x", OutcomeKind::Satisfied);
        let ours = [cpus("0-1"), cpus("0-3"), cpus("0-5")];
        let limited = Limited { unit: "user.slice", ours: &ours, theirs };
        let outcome = give_back(removed, &limited, force, kernel);
        (outcome.outcome, outcome.detail.unwrap_or_default())
    }

    #[test]
    fn a_group_without_its_file_gets_all_cpus_also_those_to_come() {
        let kernel = kernel();
        let again = (OutcomeKind::Satisfied, "user.slice has CPU 0-7 again".to_owned());
        assert_eq!(given_back(&kernel, None, false), again);
        assert_eq!(kernel.get(CPUS), "0-15");
        // A kill came before the outcome was in the journal.
        assert_eq!(given_back(&kernel, None, false), again);
        assert_eq!(kernel.writes.borrow().len(), 1, "written once");
    }

    #[test]
    fn a_group_without_a_limit_is_left_alone() {
        for text in [None, Some("")] {
            let mut kernel = Kernel::new(&[(OF_ROOT, "0-7")]);
            text.into_iter().for_each(|text| kernel.put(CPUS, text));
            kernel.refuses = [(CPUS, Errno::INVAL)].into();
            assert_eq!(given_back(&kernel, None, false), (OutcomeKind::Satisfied, String::new()));
        }
        // The file still gives CPUs: another entry has lines in it.
        let kernel = kernel();
        let kept = Outcome {
            read_back: Some("[Slice]\n".to_owned()),
            ..Outcome::new(KnobId::new("unit.allowed_cpus"), "/etc/x", OutcomeKind::Done)
        };
        let limited = Limited { unit: "user.slice", ours: &[cpus("0-3")], theirs: None };
        assert_eq!(give_back(kept.clone(), &limited, true, &kernel), kept);
        assert_eq!(kernel.get(CPUS), "0-3");
    }

    #[test]
    fn what_somebody_else_gave_the_group_is_theirs() {
        let kernel = kernel();
        kernel.put(CPUS, "5");
        let (kind, told) = given_back(&kernel, None, false);
        assert_eq!((kind, kernel.get(CPUS).as_str()), (OutcomeKind::Theirs, "5"));
        assert!(told.contains("has 5, which no file gives and planish did not set"), "{told}");
        assert!(told.ends_with("systemctl set-property --runtime user.slice AllowedCPUs=0-15"), "{told}");
        // A file of theirs: systemd sets what it says.
        kernel.put(CPUS, "0-3");
        let (kind, told) = given_back(&kernel, Some("/run/x.conf:2"), false);
        assert_eq!((kind, kernel.get(CPUS).as_str()), (OutcomeKind::Satisfied, "0-3"));
        assert_eq!(told, "/run/x.conf:2 gives user.slice CPUs at the next reload");
        kernel.put(CPUS, "5");
        assert_eq!(given_back(&kernel, None, true).0, OutcomeKind::Satisfied, "forced");
        assert_eq!(kernel.get(CPUS), "0-15");
    }

    #[test]
    fn cpus_of_a_partition_are_never_in_the_list() {
        let mut kernel = kernel();
        kernel.put(OF_ROOT, "0-5");
        kernel.also = vec![(CPUS, EFFECTIVE, "0-5")];
        let (kind, told) = given_back(&kernel, None, false);
        assert_eq!((kind, kernel.get(CPUS).as_str()), (OutcomeKind::InUse, "0-5"));
        assert!(told.starts_with("user.slice has CPU 0-5: a partition has 6-7"), "{told}");
        assert_eq!(given_back(&kernel, None, true).0, OutcomeKind::Satisfied, "given up by force");
        assert_eq!(kernel.get(CPUS), "0-5", "not even by force");
        // The partition is gone: the list is ours by now, and the rest comes.
        kernel.put(OF_ROOT, "0-7");
        kernel.also = vec![(CPUS, EFFECTIVE, "0-7")];
        assert_eq!(given_back(&kernel, None, false).0, OutcomeKind::Satisfied);
        assert_eq!(kernel.get(CPUS), "0-15");
        // A container has what it was given, and no more is kept from it.
        kernel.put(CPUS, "0-3");
        kernel.put(OF_ROOT, "0-5");
        kernel.put("/sys/fs/cgroup/cgroup.type", "domain");
        kernel.also = vec![(CPUS, EFFECTIVE, "0-5")];
        assert_eq!(given_back(&kernel, None, false).0, OutcomeKind::Satisfied);
        assert_eq!(kernel.get(CPUS), "0-5");
    }

    #[test]
    fn a_group_that_stays_limited_is_no_undo() {
        let mut refused = kernel();
        refused.refuses = [(CPUS, Errno::ROFS)].into();
        let mut silent = kernel();
        silent.also = Vec::new();
        let blind = kernel();
        blind.places.borrow_mut().remove(OF_ROOT);
        for (kernel, why) in [(refused, "read-only"), (silent, "gives it no more"), (blind, "tells no CPUs")]
        {
            let (kind, told) = given_back(&kernel, None, false);
            assert_eq!(kind, OutcomeKind::Failed, "{told}");
            assert!(told.contains("user.slice still has CPU 0-3") && told.contains(why), "{told}");
            assert!(told.contains("systemctl set-property --runtime user.slice AllowedCPUs="), "{told}");
        }
    }
}
