//! CPUs that a wanted value names, and those of them that this host does not have.
//!
//! A value that was written for a larger machine is no value of this one: the kernel drops what it does not have from
//! some lists in silence, refuses others at the write, and takes no notice at all of a boot parameter that it cannot
//! read (`kernel/sched/isolation.c`). So it is refused before anything is written. A CPU that is only offline can come
//! back, and is there.

use std::collections::BTreeSet;

use planish_model::{Access, Case, Conditions, CpuForm, Cpus, Knob, Observation, ValueType, Want, place};

use crate::error::DecideError;
use crate::verdict::unmet;

/// Boot parameters whose value is a CPU list with words of the kernel's beside it, so that their type is text.
const LISTS: [&str; 2] = ["isolcpus", "rcu_nocbs"];

/// Most CPUs that one part of a list is followed for: more than Linux can be built for.
const PART_MAX: u32 = 65_536;

/// Refuses a value for a place of this host that names a CPU which the host does not have.
///
/// # Errors
/// The CPUs, with those that there are.
pub(crate) fn refuse(knob: &Knob, want: &Want, observation: &Observation) -> Result<(), DecideError> {
    let here = &observation.cpus_present;
    let cases = match want {
        Want::Int(_) | Want::Text(_) => {
            let (value, needs) = (want.literal().unwrap_or_default(), Conditions::default());
            vec![Case { value, only: None, needs }]
        }
        Want::Case(case) => vec![case.as_ref().clone()],
        Want::Cases(cases) => cases.clone(),
        Want::Need { .. } | Want::Needs { .. } | Want::From { .. } => Vec::new(),
    };
    // A kernel that does not tell which CPUs there are leaves nothing to compare with.
    for case in cases.iter().filter(|case| !here.is_empty() && is_for(knob, case, observation)) {
        let absent = named_by(knob, &case.value, here).without(here);
        if !absent.is_empty() {
            return Err(DecideError::NoCpu { knob: knob.id.clone(), cpus: absent, here: here.clone() });
        }
    }
    Ok(())
}

/// Whether a case is for this host and means a place that it has.
fn is_for(knob: &Knob, case: &Case, observation: &Observation) -> bool {
    let mut readings = observation.knobs.get(&knob.id).into_iter().flatten();
    unmet(&case.needs, &observation.host).is_none()
        && readings.any(|reading| {
            let only = case.only.as_deref();
            let is_meant = only.is_none_or(|only| place::is_meant(&knob.path, &reading.place, only));
            reading.access != Access::Absent && is_meant
        })
}

/// The CPUs that a value of a knob names; none where it is of another kind, or in words that are not understood.
fn named_by(knob: &Knob, value: &str, here: &Cpus) -> Cpus {
    let list = || named(value, here.iter().last().unwrap_or(0)).unwrap_or_default().into_iter().collect();
    match (&knob.r#type, knob.boot_parameter()) {
        (ValueType::Cpus { cpus: CpuForm::Mask, .. }, _) => Cpus::parse_mask(value).unwrap_or_default(),
        (ValueType::Cpus { cpus: CpuForm::List, .. }, _) => list(),
        (_, Some((name, _))) if LISTS.contains(&name) => list(),
        _ => Cpus::default(),
    }
}

/// The CPUs of a list as the kernel takes it at boot (`lib/bitmap-str.c`, `bitmap_parselist`), where `last` is the
/// highest that there is: `all`, `N` for the last, and `0-15:2/4` for the first two of each four. Words before the list
/// are flags (`isolcpus=domain,managed_irq,1-3`). `None` for what is no such list.
pub(crate) fn named(text: &str, last: u32) -> Option<BTreeSet<u32>> {
    let number = |text: &str| if text == "N" { Some(last) } else { text.parse::<u32>().ok() };
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',') {
        if part == "all" {
            cpus.extend(0..=last);
            continue;
        }
        if !part.starts_with(|c: char| c.is_ascii_digit() || c == 'N') {
            continue;
        }
        let (range, (used, group)) = match part.split_once(':') {
            Some((range, each)) => {
                let (used, group) = each.split_once('/')?;
                (range, (used.parse::<u32>().ok()?, group.parse::<u32>().ok()?))
            }
            None => (part, (1, 1)),
        };
        let (first, end) = range.split_once('-').unwrap_or((range, range));
        let (first, end) = (number(first)?, number(end)?);
        if group == 0 {
            return None;
        }
        let ahead = first..=end.min(first.saturating_add(PART_MAX));
        cpus.extend(ahead.filter(|cpu| (cpu - first) % group < used));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, KnobId};

    use super::*;
    use crate::testing::{observation, reading};

    fn catalogue() -> Catalogue {
        Catalogue::embedded().expect("sound")
    }

    fn told(id: &str, want: Want) -> Option<String> {
        let (catalogue, mut observation) = (catalogue(), observation());
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        let place = knob.path.replace("{irq}", "41");
        observation.knobs.insert(knob.id.clone(), vec![reading(&place, "0")]);
        observation.cpus_present = Cpus::parse("0-7").expect("a list");
        refuse(knob, &want, &observation).err().map(|error| error.to_string())
    }

    fn text(id: &str, value: &str) -> Option<String> {
        told(id, Want::Text(value.to_owned()))
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_in_every_list() {
        let absent = |id: &str, cpus: &str| {
            Some(format!("{id} names CPU {cpus}, and this host has CPU 0-7 and no other"))
        };
        for (id, value, cpus) in [
            ("boot.isolcpus", "domain,managed_irq,2-9", "8-9"),
            ("boot.isolcpus", "900", "900"),
            ("boot.isolcpus", "0-15:2/4", "8-9,12-13"),
            ("boot.nohz_full", "1,8", "8"),
            ("boot.rcu_nocbs", "2-8", "8"),
            ("boot.irqaffinity", "0,31", "31"),
            ("boot.systemd_cpu_affinity", "8", "8"),
            ("irq.affinity", "6-9", "8-9"),
            ("irq.default_affinity", "1ff", "8"),
            ("kernel.watchdog_cpumask", "8", "8"),
        ] {
            assert_eq!(text(id, value), absent(id, cpus), "{id}={value}");
        }
        let case = |only: &str| {
            let (value, only, needs) = ("9".to_owned(), Some(only.to_owned()), Conditions::default());
            Want::Case(Box::new(Case { value, only, needs }))
        };
        assert_eq!(told("irq.affinity", case("irq=41")), absent("irq.affinity", "9"));
        assert_eq!(told("irq.affinity", case("42")), None, "no place of this host");
    }

    #[test]
    fn what_this_host_has_is_not_refused() {
        for (id, value) in [
            ("boot.isolcpus", "nohz,domain,1-7"),
            ("boot.isolcpus", "0-7:1/2"),
            ("boot.rcu_nocbs", "all"),
            ("boot.rcu_nocbs", "1-N"),
            ("boot.isolcpus", "domain,odd-words:1"),
            ("irq.affinity", "0,7"),
            ("irq.default_affinity", "000000ff"),
            ("vm.swappiness", "100"),
        ] {
            assert_eq!(text(id, value), None, "{id}={value}");
        }
        let catalogue = catalogue();
        let knob = catalogue.knob(&KnobId::new("boot.isolcpus")).expect("a row");
        let unknown = refuse(knob, &Want::Text("900".to_owned()), &observation());
        assert!(unknown.is_ok(), "a host that does not tell its CPUs");
    }

    #[test]
    fn a_list_is_read_as_the_kernel_reads_it() {
        let of = |text: &str| named(text, 7).map(|cpus| cpus.into_iter().collect::<Cpus>().to_string());
        assert_eq!(of("domain,0-7:2/4,N").as_deref(), Some("0-1,4-5,7"));
        assert_eq!(of("all").as_deref(), Some("0-7"));
        assert_eq!(of("3-1").as_deref(), Some(""), "the kernel refuses it, and takes none");
        for odd in ["1-x", "0-7:2", "0-7:2/0", "0-7:a/4"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
