//! CPUs that a wanted value names, and those of them that this host does not have.
//!
//! A value that was written for a larger machine is no value of this one: the kernel drops what it does not have from
//! some lists in silence, refuses others at the write, and takes no notice at all of a boot parameter that it cannot
//! read (`kernel/sched/isolation.c`). So it is refused before anything is written. A CPU that is only offline can come
//! back, and is there.

use planish_model::{
    Access, BootCpus, Case, Conditions, CpuForm, Cpus, Knob, MachineCpu, Observation, Plan, Reading, Step,
    ValueType, Want, place,
};

use crate::error::DecideError;
use crate::verdict::unmet;

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
        _ => Vec::new(),
    };
    let holding = cases.iter().filter(|case| unmet(&case.needs, &observation.host).is_none());
    let patterns: Vec<&str> = holding.filter_map(|case| case.only.as_deref()).collect();
    for only in patterns.iter().filter(|_| !here.is_empty()) {
        let absent: Cpus = meant(knob, "cpu", only).filter(|cpu| !here.contains(*cpu)).into_iter().collect();
        if !absent.is_empty() {
            return Err(DecideError::NoCpu { knob: knob.id.clone(), cpus: absent, here: here.clone() });
        }
    }
    let irqs: Vec<u32> = patterns.iter().filter_map(|only| meant(knob, "irq", only)).collect();
    if let Some(here) = irqs_of(knob, observation).filter(|_| !irqs.is_empty()) {
        let absent: Cpus = irqs.into_iter().filter(|irq| !here.contains(*irq)).collect();
        if !absent.is_empty() {
            return Err(DecideError::NoIrq { knob: knob.id.clone(), irqs: absent, here });
        }
    }
    // A kernel that does not tell which CPUs there are leaves nothing to compare with.
    for case in cases.iter().filter(|case| !here.is_empty() && is_for(knob, case, observation)) {
        let absent = named_by(knob, &case.value, here).without(here);
        if !absent.is_empty() {
            return Err(DecideError::NoCpu { knob: knob.id.clone(), cpus: absent, here: here.clone() });
        }
    }
    Ok(())
}

/// The one CPU, or interrupt, that a pattern without a wildcard means, of a knob whose places are those of them.
fn meant(knob: &Knob, what: &str, only: &str) -> Option<u32> {
    let is_of_them = knob.path.split_once('{')?.1.split_once('}')?.0 == what;
    let name = match only.split_once('=') {
        Some((hole, pattern)) => (hole == what).then_some(pattern)?,
        None => only,
    };
    is_of_them.then(|| name.strip_prefix(what).unwrap_or(name).parse().ok())?
}

/// The numbers of the interrupts of which this host has places; `None` where it tells of none.
fn irqs_of(knob: &Knob, observation: &Observation) -> Option<Cpus> {
    let readings = observation.knobs.get(&knob.id).into_iter().flatten();
    let here = readings.filter(|reading| reading.access != Access::Absent);
    let number = |reading: &Reading| place::captures(&knob.path, &reading.place)?.first()?.1.parse().ok();
    Some(here.filter_map(number).collect()).filter(|irqs: &Cpus| !irqs.is_empty())
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

/// The CPUs that a value of a knob names; none where it is of another kind.
pub(crate) fn named_by(knob: &Knob, value: &str, here: &Cpus) -> Cpus {
    let at_boot =
        || Some(BootCpus::parse(value)?.cpus(here.iter().last().unwrap_or(0)).into_iter().collect());
    let named = match &knob.r#type {
        ValueType::Cpus { cpus: CpuForm::Mask, .. } => Cpus::parse_mask(value),
        ValueType::Cpus { cpus: CpuForm::List, .. } => Cpus::parse(value),
        ValueType::BootCpus { .. } => at_boot(),
        kind if kind.is_cpus_of_a_unit() => Cpus::parse(&kind.normal(value)),
        _ => None,
    };
    named.unwrap_or_default()
}

/// Cores of which a list for the command line isolates one thread and leaves another: what runs on either slows the
/// other down. A placement refuses that; who writes the list by hand is told.
pub(crate) fn split_cores(observation: &Observation, plan: &Plan) -> Vec<String> {
    let Some(machine) = &observation.machine else { return Vec::new() };
    let last = observation.cpus_present.iter().last().or_else(|| machine.online().iter().last()).unwrap_or(0);
    let of = |step: &Step| {
        let list: Cpus = BootCpus::parse(&step.wanted)?.cpus(last).into_iter().collect();
        let is_split = |cpu: &&MachineCpu| {
            let within = cpu.threads.intersection(&list);
            cpu.online && !within.is_empty() && within != cpu.threads
        };
        let split = machine.cpus.iter().filter(is_split);
        let threads = Cpus::of_all(split.map(|cpu| &cpu.threads));
        (!threads.is_empty()).then(|| {
            format!(
                "{} = {} takes CPU {} and leaves {}, other threads of the same cores: each slows the other down",
                step.knob,
                step.wanted,
                threads.intersection(&list),
                threads.without(&list)
            )
        })
    };
    plan.boot.iter().filter(|step| step.knob.as_str() == "boot.isolcpus").filter_map(of).collect()
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
    }

    #[test]
    fn an_interrupt_that_is_not_there_is_refused_and_a_pattern_of_several_is_not() {
        let case = |only: &str| {
            let (value, only, needs) = ("1".to_owned(), Some(only.to_owned()), Conditions::default());
            told("irq.affinity", Want::Case(Box::new(Case { value, only, needs })))
        };
        let absent = Some("irq.affinity names interrupt 42, and this host has 41 and no other".to_owned());
        for only in ["42", "irq=42"] {
            assert_eq!(case(only), absent, "{only}");
        }
        for only in ["41", "irq=41", "4*", "5*"] {
            assert_eq!(case(only), None, "{only}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_in_a_pattern_too() {
        let case = |only: &str| {
            let (value, only, needs) = ("0".to_owned(), Some(only.to_owned()), Conditions::default());
            told("cpu.online", Want::Case(Box::new(Case { value, only, needs })))
        };
        let absent = Some("cpu.online names CPU 99, and this host has CPU 0-7 and no other".to_owned());
        for only in ["99", "cpu99", "cpu=99"] {
            assert_eq!(case(only), absent, "{only}");
        }
        for only in ["7", "cpu7", "cpu=0", "9*", "cpu*"] {
            assert_eq!(case(only), None, "{only}");
        }
    }

    #[test]
    fn what_this_host_has_is_not_refused() {
        for (id, value) in [
            ("boot.isolcpus", "nohz,domain,1-7"),
            ("boot.isolcpus", "0-7:1/2"),
            ("boot.rcu_nocbs", "all"),
            ("boot.rcu_nocbs", "1-N"),
            ("boot.nohz_full", "all"),
            ("boot.nohz_full", "1-N:1/2"),
            ("boot.irqaffinity", "0,4-N"),
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
}
