//! Values of one plan that speak against each other: a lowest above its highest, the same thing wanted as two, and what
//! takes away what the plan's own placement gives.
//!
//! The kernel takes each of them, one by one, and makes of both what neither asked for; or a service cannot be started
//! any more. Only what the plan has is looked at: what a host is set to besides is its owner's.

use planish_model::{
    Catalogue, Cpus, KnobId, MemoryPolicy, Observation, Placement, Plan, VerdictKind, place,
};

use crate::cpus;
use crate::error::DecideError;
use crate::placement::{PlacementError, is_placed};

/// What must hold between two rows that are both wanted.
#[derive(Clone, Copy, Debug)]
enum Relation {
    /// The first is the lowest of something and the second its highest.
    NotAbove,
    /// Both set the same: the first at once, the second at a boot.
    Same,
    /// The first gives work to CPUs and the second keeps work away from them.
    Apart,
}

/// All relations between rows.
const RELATIONS: [(&str, Relation, &str); 9] = [
    ("boot.irqaffinity", Relation::Apart, "boot.isolcpus"),
    ("boot.systemd_cpu_affinity", Relation::Apart, "boot.isolcpus"),
    ("clock.source", Relation::Same, "boot.clocksource"),
    ("cpu.min_freq_khz", Relation::NotAbove, "cpu.max_freq_khz"),
    ("cpu.min_perf_pct", Relation::NotAbove, "cpu.max_perf_pct"),
    ("cpu.uncore_min_khz", Relation::NotAbove, "cpu.uncore_max_khz"),
    ("thp.enabled", Relation::Same, "boot.transparent_hugepage"),
    ("vm.dirty_background_bytes", Relation::NotAbove, "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", Relation::NotAbove, "vm.dirty_ratio"),
];

/// Boot parameters with these words leave each core one thread.
const ONE_THREAD: [(&str, &str); 3] =
    [("cpu.smt", "off"), ("boot.nosmt", "1"), ("boot.mitigations", "auto,nosmt")];

/// CPUs of these work for whoever sends, and nobody else is brought there.
const OWN_WORK: &str = "net.xps_cpus";

/// A value as it will be: written, given at a boot, or there already.
struct Value<'a> {
    knob: &'a KnobId,
    place: &'a str,
    wanted: &'a str,
}

fn values(plan: &Plan) -> Vec<Value<'_>> {
    let steps = plan.steps.iter().chain(&plan.boot);
    let of_step = steps.map(|step| Value { knob: &step.knob, place: &step.place, wanted: &step.wanted });
    let will_be =
        plan.skipped.iter().filter(|row| row.satisfied || row.verdict.verdict == VerdictKind::Reboot);
    let of_row = will_be
        .filter_map(|row| Some(Value { knob: &row.knob, place: &row.place, wanted: row.wanted.as_deref()? }));
    of_step.chain(of_row).collect()
}

/// Refuses a plan of which one value speaks against another.
///
/// # Errors
/// Both of them, and what they say of each other.
pub(crate) fn refuse_each_other(
    catalogue: &Catalogue,
    observation: &Observation,
    plan: &Plan,
) -> Result<(), DecideError> {
    let values = values(plan);
    let of = |id: &'static str| values.iter().filter(move |value| value.knob.as_str() == id);
    for (first, relation, second) in RELATIONS {
        for (a, b) in of(first).flat_map(|a| of(second).map(move |b| (a, b))) {
            if let Some(why) = contradiction(catalogue, observation, relation, a, b) {
                let told = [a, b].map(|value| (value.knob.clone(), value.wanted.trim().to_owned()));
                return Err(DecideError::Against { values: Box::new(told), why });
            }
        }
    }
    Ok(())
}

fn contradiction(
    catalogue: &Catalogue,
    observation: &Observation,
    relation: Relation,
    a: &Value<'_>,
    b: &Value<'_>,
) -> Option<String> {
    let [first, second] = [a, b].map(|value| catalogue.knob(value.knob).ok());
    let (first, second) = (first?, second?);
    match relation {
        Relation::NotAbove => {
            let here = place::captures(&first.path, a.place) == place::captures(&second.path, b.place);
            let [low, high] = [a, b].map(|value| value.wanted.trim().parse::<u64>().ok());
            let is_above = here && low? > high?;
            is_above.then(|| "the first is the lowest and may not be above the second".to_owned())
        }
        Relation::Same => {
            let differs = first.r#type.normal(a.wanted) != second.r#type.normal(b.wanted);
            differs.then(|| "both set the same, the first now and the second at each boot".to_owned())
        }
        Relation::Apart => {
            let present = &observation.cpus_present;
            let [worked, kept] =
                [(first, a), (second, b)].map(|(knob, value)| cpus::named_by(knob, value.wanted, present));
            let both = worked.intersection(&kept);
            (!both.is_empty())
                .then(|| format!("the first gives work to CPU {both}, and the second keeps it away"))
        }
    }
}

/// Refuses a plan that takes CPUs or nodes away which its own placement gives, or that brings others to CPUs which a
/// service has to itself.
///
/// # Errors
/// The knob and the service.
pub(crate) fn refuse_against(
    catalogue: &Catalogue,
    observation: &Observation,
    placement: &Placement,
    plan: &Plan,
) -> Result<(), DecideError> {
    for value in values(plan) {
        let knob = catalogue.knob(value.knob)?;
        let against = |unit: &str, what: String| {
            let (knob, unit, wanted) = (knob.id.clone(), unit.to_owned(), value.wanted.trim().to_owned());
            Err(PlacementError::Against { knob, wanted, unit, what }.into())
        };
        for service in &placement.services {
            let gone = taken(observation, &value).intersection(&service.cpus);
            if !gone.is_empty() {
                return against(&service.unit, format!("takes CPU {gone} away, on which it is placed"));
            }
            let is_bound = service.memory != MemoryPolicy::Any && observation.host.nodes.len() > 1;
            if is_bound && value.knob.as_str() == "boot.numa" && value.wanted.trim() == "off" {
                return against(&service.unit, "leaves no nodes, and it is placed on one".to_owned());
            }
            let named = cpus::named_by(knob, value.wanted, &observation.cpus_present);
            let met = named.intersection(&service.cpus);
            let is_others = !is_placed(knob) && value.knob.as_str() != OWN_WORK;
            if service.isolated && is_others && !met.is_empty() {
                return against(&service.unit, format!("brings others to CPU {met}, which it has to itself"));
            }
        }
    }
    Ok(())
}

/// The CPUs that a value takes away from everybody.
fn taken(observation: &Observation, value: &Value<'_>) -> Cpus {
    let (id, wanted) = (value.knob.as_str(), value.wanted.trim());
    if id == "cpu.online" && wanted == "0" {
        let name = value.place.strip_prefix("/sys/devices/system/cpu/cpu").unwrap_or_default();
        let number = name.split('/').next().unwrap_or_default();
        return Cpus::parse(number).unwrap_or_default();
    }
    if !ONE_THREAD.contains(&(id, wanted)) {
        return Cpus::default();
    }
    let cpus = observation.machine.iter().flat_map(|machine| &machine.cpus);
    cpus.filter(|cpu| cpu.threads.first().is_some_and(|first| first != cpu.id)).map(|cpu| cpu.id).collect()
}

#[cfg(test)]
mod tests {
    use planish_model::{Skipped, Verdict};

    use super::*;

    /// What is said of values that are there already, in a plan of nothing else.
    fn told(values: &[(&str, &str, &str)]) -> Option<String> {
        let catalogue = Catalogue::embedded().expect("sound");
        let row = |(id, place, wanted): &(&str, &str, &str)| {
            let verdict = Verdict::new(VerdictKind::Settable, String::new());
            Skipped::satisfied(KnobId::new(*id), (*place).to_owned(), (*wanted).to_owned(), verdict)
        };
        let rows = values.iter().map(row).collect();
        let plan = Plan::new(String::new(), String::new(), String::new(), Vec::new(), rows);
        let cpus_present = Cpus::parse("0-7").expect("a list");
        let seen = Observation { cpus_present, ..crate::testing::observation() };
        refuse_each_other(&catalogue, &seen, &plan).err().map(|error| error.to_string())
    }

    #[test]
    fn every_relation_is_between_rows_of_the_catalogue() {
        let catalogue = Catalogue::embedded().expect("sound");
        for (first, _, second) in RELATIONS {
            for id in [first, second] {
                assert!(catalogue.knob(&KnobId::new(id)).is_ok(), "{id}");
            }
        }
        for (id, word) in ONE_THREAD {
            let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
            assert_eq!(knob.r#type.normal(word), word, "{id}");
        }
        assert!(catalogue.knob(&KnobId::new(OWN_WORK)).is_ok());
    }

    #[test]
    fn a_lowest_above_its_highest_is_told_with_both() {
        let freq =
            |cpu: u32, what: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{what}_freq");
        let [low, high, other] = [freq(1, "min"), freq(1, "max"), freq(2, "max")];
        let low = ("cpu.min_freq_khz", low.as_str(), "3000000");
        let why = told(&[low, ("cpu.max_freq_khz", high.as_str(), "1000000")]).expect("told");
        assert_eq!(
            why,
            "cpu.min_freq_khz = 3000000 and cpu.max_freq_khz = 1000000 speak against each other: the first is the \
             lowest and may not be above the second"
        );
        assert_eq!(told(&[low, ("cpu.max_freq_khz", high.as_str(), "3000000")]), None);
        assert_eq!(told(&[low, ("cpu.max_freq_khz", other.as_str(), "1000000")]), None, "another CPU");
        let dirty = |low| {
            let background = ("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes", low);
            told(&[background, ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes", "2097152")])
        };
        assert_eq!((dirty("2097152"), dirty("2097153").is_some()), (None, true));
    }

    #[test]
    fn the_same_thing_wanted_as_two_and_work_for_cpus_without_it_are_told() {
        let thp = |boot| {
            let now = ("thp.enabled", "/sys/kernel/mm/transparent_hugepage/enabled", "always");
            told(&[now, ("boot.transparent_hugepage", "cmdline:transparent_hugepage", boot)])
        };
        assert_eq!(thp("always"), None);
        assert!(thp("never").expect("told").ends_with("the first now and the second at each boot"));
        let irqs = |list| {
            let affinity = ("boot.irqaffinity", "cmdline:irqaffinity", "0-2");
            told(&[affinity, ("boot.isolcpus", "cmdline:isolcpus", list)])
        };
        assert_eq!(irqs("domain,3-7"), None);
        assert!(irqs("domain,2-7").expect("told").contains("gives work to CPU 2, and the second keeps"));
    }
}
