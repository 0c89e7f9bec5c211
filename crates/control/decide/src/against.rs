//! Values of one plan that speak against each other: a lowest above its highest, the same thing wanted as two, and what
//! takes away what the plan's own placement gives.
//!
//! The kernel takes each of them, one by one, and makes of both what neither asked for; or a service cannot be started
//! any more. Only what the plan has is looked at: what a host is set to besides is its owner's.

use planish_model::{
    BootCpus, Catalogue, Cpus, Knob, KnobId, MemoryPolicy, Observation, Placement, Plan, Profile, ValueType,
    VerdictKind, bootline, place,
};

use crate::cpus;
use crate::error::DecideError;
use crate::placement::{BEGIN, ISOLATES, PlacementError, is_placed};

/// What must hold between two rows that are both wanted.
#[derive(Clone, Copy, Debug)]
enum Relation {
    /// The first is the lowest of something and the second its highest.
    NotAbove,
    /// Both set the same: the first at once, the second at a boot.
    Same,
    /// The first gives work to CPUs and the second keeps work away from them.
    Apart,
    /// Both are lists of CPUs of which some kernels take one alone.
    OneList,
    /// The first with its word turns on what the second with its own turns off.
    NotBoth(&'static str, &'static str),
}

/// All relations between rows.
const RELATIONS: [(&str, Relation, &str); 22] = [
    ("boot.irqaffinity", Relation::Apart, "boot.isolcpus"),
    ("boot.systemd_cpu_affinity", Relation::Apart, "boot.isolcpus"),
    ("boot.isolcpus", Relation::OneList, "boot.nohz_full"),
    ("clock.source", Relation::Same, "boot.clocksource"),
    ("cpu.governor", Relation::Same, "boot.cpufreq_default_governor"),
    ("cpu.min_freq_khz", Relation::NotAbove, "cpu.max_freq_khz"),
    ("cpu.min_perf_pct", Relation::NotAbove, "cpu.max_perf_pct"),
    ("cpu.smt", Relation::NotBoth("on", "auto,nosmt"), "boot.mitigations"),
    ("cpu.smt", Relation::NotBoth("on", "1"), "boot.nosmt"),
    ("cpu.uncore_min_khz", Relation::NotAbove, "cpu.uncore_max_khz"),
    ("irq.default_affinity", Relation::Apart, "boot.isolcpus"),
    ("kernel.nmi_watchdog", Relation::NotBoth("1", "1"), "boot.nowatchdog"),
    ("kernel.soft_watchdog", Relation::NotBoth("1", "1"), "boot.nosoftlockup"),
    ("kernel.soft_watchdog", Relation::NotBoth("1", "1"), "boot.nowatchdog"),
    ("kernel.watchdog", Relation::NotBoth("1", "1"), "boot.nowatchdog"),
    ("thp.enabled", Relation::Same, "boot.transparent_hugepage"),
    ("vm.dirty_background_bytes", Relation::NotAbove, "vm.dirty_bytes"),
    ("vm.dirty_background_bytes", Relation::NotAbove, "vm.dirty_ratio"),
    ("vm.dirty_background_ratio", Relation::NotAbove, "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", Relation::NotAbove, "vm.dirty_ratio"),
    ("workqueue.cpumask", Relation::Apart, "boot.isolcpus"),
    ("workqueue.writeback_cpumask", Relation::Apart, "boot.isolcpus"),
];

/// Rows of which the first is the lowest of something and the second its highest.
pub(crate) fn lowest_and_highest() -> impl Iterator<Item = [&'static str; 2]> {
    let pairs = RELATIONS.iter().filter(|(_, relation, _)| matches!(relation, Relation::NotAbove));
    pairs.map(|(low, _, high)| [*low, *high])
}

/// Boot parameters with these words leave each core one thread.
const ONE_THREAD: [(&str, &str); 3] =
    [("cpu.smt", "off"), ("boot.nosmt", "1"), ("boot.mitigations", "auto,nosmt")];

/// Whether a plan of a profile needs to know which CPUs are threads of one core: it takes one of each, or isolates
/// some.
#[must_use]
pub fn asks_of_threads(profile: &Profile) -> bool {
    let takes = |id: &KnobId| ONE_THREAD.iter().any(|(knob, _)| *knob == id.as_str());
    profile.want.keys().any(|id| takes(id) || id.as_str() == "boot.isolcpus")
}

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
/// Both of them, what they say of each other, and which of them the profile wants by itself.
pub(crate) fn refuse_each_other(
    catalogue: &Catalogue,
    observation: &Observation,
    profile: &Profile,
    plan: &Plan,
) -> Result<(), DecideError> {
    let values = values(plan);
    let of = |id: &'static str| values.iter().filter(move |value| value.knob.as_str() == id);
    let refused = |a: &Value<'_>, b: &Value<'_>, why: String| {
        let told = [a, b].map(|value| (value.knob.clone(), value.wanted.trim().to_owned()));
        // What its own table [placement] sets goes with that, and can be left by nobody.
        let is_own = |knob: &&KnobId| profile.want.contains_key(*knob);
        let own = [a.knob, b.knob].into_iter().filter(is_own).cloned().collect();
        Err(DecideError::Against { values: Box::new(told), own, why })
    };
    for (first, relation, second) in RELATIONS {
        for (a, b) in of(first).flat_map(|a| of(second).map(move |b| (a, b))) {
            // What a boot gives every place is a default for those that nobody wants otherwise.
            let agrees = |a: &Value<'_>| contradiction(catalogue, observation, relation, a, b).is_none();
            if matches!(relation, Relation::Same) && of(first).any(agrees) {
                continue;
            }
            if let Some(why) = contradiction(catalogue, observation, relation, a, b) {
                return refused(a, b, why);
            }
        }
    }
    for value in &values {
        let gone = taken(observation, value);
        for other in values.iter().filter(|other| !gone.is_empty() && other.knob != value.knob) {
            let met = named(catalogue.knob(other.knob)?, other, observation).intersection(&gone);
            if !met.is_empty() {
                let why = format!("the first takes CPU {met} away, and the second names it");
                return refused(value, other, why);
            }
        }
    }
    Ok(())
}

/// The CPUs that a value names one by one; none of a value that means all, or all up to the last one there is: that is
/// so however many there are.
fn named(knob: &Knob, value: &Value<'_>, observation: &Observation) -> Cpus {
    let named = cpus::named_by(knob, value.wanted, &observation.cpus_present);
    let is_boot = matches!(knob.r#type, ValueType::BootCpus { .. });
    let goes_to_the_last =
        is_boot && BootCpus::parse(value.wanted).is_some_and(|list| list.goes_to_the_last());
    let is_all = observation.cpus_present.is_within(&named);
    if is_all || goes_to_the_last { Cpus::default() } else { named }
}

/// How many requests a queue has, and what orders them.
const REQUESTS: &str = "block.nr_requests";
pub(crate) const SCHEDULER: &str = "block.scheduler";

/// The unit of a share.
const PERCENT: &str = "percent";

/// The lowest of a highest, and the highest of a lowest: whoever sets some of them asks what the others are. And the
/// scheduler of a queue, which its requests are held against, and what isolates CPUs, beside where interrupts begin.
#[must_use]
pub fn beside<'a>(ids: impl Iterator<Item = &'a KnobId>) -> Vec<KnobId> {
    let of = |id: &'a KnobId| {
        let pairs = lowest_and_highest().filter(|pair| pair.contains(&id.as_str()));
        let others = pairs.flatten().filter(|other| *other != id.as_str());
        let begins = BEGIN.contains(&id.as_str());
        let isolates = ISOLATES.into_iter().filter(move |_| begins);
        others.chain((id.as_str() == REQUESTS).then_some(SCHEDULER)).chain(isolates).map(KnobId::new)
    };
    ids.flat_map(of).collect()
}

/// Whether two rows count in the same unit.
pub(crate) fn is_one_unit(first: &Knob, second: &Knob) -> bool {
    unit(first) == unit(second)
}

fn unit(knob: &Knob) -> Option<&str> {
    match &knob.r#type {
        ValueType::Int { int, .. } => Some(int),
        _ => None,
    }
}

/// A value as an amount: of a share of memory so much of `whole`.
fn amount(knob: &Knob, value: &Value<'_>, whole: Option<u64>) -> Option<u64> {
    let number: u64 = value.wanted.trim().parse().ok()?;
    let of_share = |whole: u64| (whole / 100).saturating_mul(number);
    Some(whole.filter(|_| unit(knob) == Some(PERCENT)).map_or(number, of_share))
}

/// Whether two lists for the command line are of different CPUs.
fn are_two_lists(observation: &Observation, a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    let [own, list] = [a, b].map(|value| BootCpus::parse(value.wanted.trim()));
    let last = observation.cpus_present.iter().last().unwrap_or_default();
    Some(own?.cpus(last) != list?.cpus(last))
}

/// Lists for the command line of which it is not known whether this kernel takes both: who is told before the reboot
/// need not look for it behind it.
pub(crate) fn doubtful_lists(observation: &Observation, plan: &Plan) -> Vec<String> {
    let (values, kernel) = (values(plan), &observation.host.kernel);
    let of = |id: &'static str| values.iter().filter(move |value| value.knob.as_str() == id);
    let lists = RELATIONS.iter().filter(|(_, relation, _)| matches!(relation, Relation::OneList));
    let pairs =
        lists.flat_map(|(first, _, second)| of(first).flat_map(move |a| of(second).map(move |b| (a, b))));
    let doubtful = pairs.filter(|(a, b)| {
        are_two_lists(observation, a, b) == Some(true) && bootline::may_take_one_list(kernel)
    });
    let told = |(a, b): (&Value<'_>, &Value<'_>)| {
        format!(
            "{} = {} and {} = {} are of different CPUs: Linux before 5.18 drops the second, and whether {kernel} \
             does is not known; after the reboot `planish check` tells, and one list for both is sure",
            a.knob,
            a.wanted.trim(),
            b.knob,
            b.wanted.trim()
        )
    };
    doubtful.map(told).collect()
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
            // A share is of the memory that can be dirty: of what is available about, and never more than all.
            let host = &observation.host;
            let is_mixed = unit(first) != unit(second);
            let [least, most] =
                [host.available_bytes, host.memory_bytes].map(|whole| is_mixed.then_some(whole));
            let is_above = here && amount(first, a, least)? > amount(second, b, most)?;
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
        Relation::OneList => {
            let kernel = &observation.host.kernel;
            (are_two_lists(observation, a, b)? && bootline::takes_one_list(kernel)).then(|| {
                format!("Linux {kernel} takes one list for both, and drops the second that is for other CPUs")
            })
        }
        Relation::NotBoth(on, off) => {
            let is_both = first.r#type.normal(a.wanted) == on && second.r#type.normal(b.wanted) == off;
            is_both.then(|| "the first turns on what the second turns off".to_owned())
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
    refuse_away(observation, placement, plan)
}

/// Refuses what takes CPUs away that a placement has keep house: interrupts, masks and drop-ins would name them.
fn refuse_away(observation: &Observation, placement: &Placement, plan: &Plan) -> Result<(), DecideError> {
    let values = values(plan);
    for value in &values {
        // Of a row with a place for each CPU all are told at once.
        let of_row = values.iter().filter(|other| other.knob == value.knob);
        let gone = of_row.fold(Cpus::default(), |all, other| all.union(&taken(observation, other)));
        let cpus = gone.intersection(&placement.housekeeping);
        if !cpus.is_empty() {
            let (knob, wanted) = (value.knob.clone(), value.wanted.trim().to_owned());
            return Err(PlacementError::Away { knob, wanted, cpus }.into());
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
    use planish_model::{Skipped, Verdict, Want};

    use super::*;

    /// What is said of values that are there already, in a plan of nothing else, and the cure. `boot.irqaffinity` is of
    /// a placement.
    fn refused(values: &[(&str, &str, &str)]) -> Option<(String, String)> {
        let catalogue = Catalogue::embedded().expect("sound");
        let row = |(id, place, wanted): &(&str, &str, &str)| {
            let verdict = Verdict::new(VerdictKind::Settable, String::new());
            Skipped::satisfied(KnobId::new(*id), (*place).to_owned(), (*wanted).to_owned(), verdict)
        };
        let rows = values.iter().map(row).collect();
        let plan = Plan::new(String::new(), String::new(), String::new(), Vec::new(), rows);
        let cpus_present = Cpus::parse("0-7").expect("a list");
        let seen = Observation { cpus_present, ..crate::testing::observation() };
        let want = values.iter().filter(|(id, ..)| *id != "boot.irqaffinity");
        let want: Vec<_> = want.map(|(id, _, value)| (*id, Want::Text((*value).to_owned()))).collect();
        let refused = refuse_each_other(&catalogue, &seen, &crate::testing::profile(&want), &plan).err()?;
        Some((refused.to_string(), refused.cure()))
    }

    fn told(values: &[(&str, &str, &str)]) -> Option<String> {
        refused(values).map(|(told, _)| told)
    }

    #[test]
    fn every_relation_is_between_rows_of_the_catalogue() {
        let catalogue = Catalogue::embedded().expect("sound");
        for (first, relation, second) in RELATIONS {
            let [first, second] = [first, second].map(|id| catalogue.knob(&KnobId::new(id)).expect("a row"));
            if let Relation::NotBoth(on, off) = relation {
                assert!(
                    first.r#type.validate(on).is_ok() && second.r#type.validate(off).is_ok(),
                    "{}",
                    first.id
                );
            }
        }
        for (id, word) in ONE_THREAD {
            let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
            assert_eq!(knob.r#type.normal(word), word, "{id}");
        }
        assert!(catalogue.knob(&KnobId::new(OWN_WORK)).is_ok());
    }

    /// A plan of two lists for the command line, on a kernel.
    fn of_lists(kernel: &str, isolated: &str, quiet: &str) -> Result<Plan, DecideError> {
        let catalogue = Catalogue::embedded().expect("sound");
        let mut seen = crate::testing::observation();
        seen.cpus_present = Cpus::parse("0-7").expect("a list");
        seen.host.cpus_online = 8;
        seen.host.kernel = kernel.to_owned();
        for name in ["isolcpus", "nohz_full"] {
            let reading = crate::testing::reading(&format!("cmdline:{name}"), planish_model::NOT_GIVEN);
            seen.knobs.insert(KnobId::new(format!("boot.{name}")), vec![reading]);
        }
        let text = |value: &str| Want::Text(value.to_owned());
        let want = [("boot.isolcpus", text(isolated)), ("boot.nohz_full", text(quiet))];
        let allow_classes = vec![planish_model::Class::Availability];
        let options = crate::Options { allow_classes, ..crate::Options::default() };
        crate::plan(&catalogue, &seen, &crate::testing::profile(&want), &[], &options)
    }

    #[test]
    fn a_kernel_that_takes_one_list_of_cpus_is_given_no_two() {
        let refused = |kernel: &str, isolated: &str, quiet: &str| {
            let plan = of_lists(kernel, isolated, quiet);
            plan.map(|plan| assert_eq!(plan.boot.len(), 2))
                .err()
                .map(|error| (error.to_string(), error.cure()))
        };
        let (told, cure) = refused("5.14.21-150500-default", "1-2", "2-3").expect("refused");
        assert!(told.contains("takes one list for both, and drops the second"), "{told}");
        assert!(told.contains("boot.isolcpus = 1-2 and boot.nohz_full = 2-3"), "{told}");
        assert!(cure.contains("--exclude boot.isolcpus"), "{cure}");
        for (kernel, isolated, quiet) in [
            ("5.14.21-150500-default", "domain,managed_irq,1-2", "1,2"),
            ("5.14.21-150500-default", "1-7", "1-N"),
            ("5.18.0", "1-2", "2-3"),
            ("4.14.0", "1-2", "2-3"),
            ("5.14.0-427.el9.x86_64", "1-2", "2-3"),
        ] {
            assert_eq!(refused(kernel, isolated, quiet), None, "{kernel}: {isolated} and {quiet}");
        }
    }

    #[test]
    fn two_lists_of_cpus_on_a_kernel_that_may_take_one_are_told() {
        let remarks = |kernel: &str, isolated: &str, quiet: &str| {
            of_lists(kernel, isolated, quiet).expect("a plan").remarks
        };
        let told = remarks("5.14.0-427.el9.x86_64", "1-2", "2-3");
        let part =
            "boot.isolcpus = 1-2 and boot.nohz_full = 2-3 are of different CPUs: Linux before 5.18 drops";
        assert!(told.iter().any(|remark| remark.contains(part)), "{told:?}");
        for (kernel, isolated, quiet) in [
            ("5.14.0-427.el9.x86_64", "1-2", "1,2"),
            ("6.12.0-55.el10.x86_64", "1-2", "2-3"),
            ("5.18.0", "1-2", "2-3"),
        ] {
            let told = remarks(kernel, isolated, quiet);
            assert!(!told.iter().any(|remark| remark.contains("different CPUs")), "{kernel}: {told:?}");
        }
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
    fn a_lowest_in_bytes_is_compared_with_a_highest_in_percent() {
        // 16 GiB, of which 12 are available.
        let bytes = |low: u64, percent: &str| {
            let low = (low << 20).to_string();
            let background =
                ("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes", low.as_str());
            told(&[background, ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio", percent)]).is_some()
        };
        assert_eq!((bytes(160, "1"), bytes(170, "1"), bytes(170, "2")), (false, true, false));
        let percent = |low: &str, high: u64| {
            let high = (high << 20).to_string();
            let background = ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio", low);
            told(&[background, ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes", high.as_str())]).is_some()
        };
        assert_eq!((percent("1", 120), percent("1", 125), percent("5", 125)), (true, false, true));
        let both = |low: &str| {
            let background = ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio", low);
            told(&[background, ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio", "10")]).is_some()
        };
        assert_eq!((both("10"), both("11")), (false, true));
    }

    #[test]
    fn what_one_turns_on_and_the_other_off_is_told() {
        for (on, at, value, off, parameter, word) in [
            ("cpu.smt", "/sys/devices/system/cpu/smt/control", "on", "boot.nosmt", "cmdline:nosmt", "1"),
            (
                "cpu.smt",
                "/sys/devices/system/cpu/smt/control",
                "on",
                "boot.mitigations",
                "cmdline:m",
                "auto,nosmt",
            ),
            (
                "kernel.nmi_watchdog",
                "/proc/sys/kernel/nmi_watchdog",
                "1",
                "boot.nowatchdog",
                "cmdline:n",
                "1",
            ),
            ("kernel.watchdog", "/proc/sys/kernel/watchdog", "1", "boot.nowatchdog", "cmdline:n", "1"),
            (
                "kernel.soft_watchdog",
                "/proc/sys/kernel/soft_watchdog",
                "1",
                "boot.nosoftlockup",
                "cmdline:n",
                "1",
            ),
        ] {
            let why = told(&[(on, at, value), (off, parameter, word)]).expect(off);
            assert!(
                why.ends_with("speak against each other: the first turns on what the second turns off"),
                "{why}"
            );
            let other = if value == "on" { "off" } else { "0" };
            assert_eq!(told(&[(on, at, other), (off, parameter, word)]), None, "{on}");
        }
    }

    #[test]
    fn a_default_of_the_boot_is_for_those_that_nobody_wants_otherwise() {
        let governor = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let [one, two] = [governor(1), governor(2)];
        let boot = ("boot.cpufreq_default_governor", "cmdline:cpufreq.default_governor", "powersave");
        let fast = ("cpu.governor", one.as_str(), "performance");
        assert!(told(&[fast, boot]).is_some());
        assert_eq!(
            told(&[fast, ("cpu.governor", two.as_str(), "powersave"), boot]),
            None,
            "one of them only"
        );
    }

    #[test]
    fn cpus_that_a_value_takes_are_named_by_no_other() {
        let offline = ("cpu.online", "/sys/devices/system/cpu/cpu5/online", "0");
        for (id, place, value) in [
            ("boot.isolcpus", "cmdline:isolcpus", "domain,1,5"),
            ("boot.nohz_full", "cmdline:nohz_full", "1,5"),
            ("boot.rcu_nocbs", "cmdline:rcu_nocbs", "1-6:1/4"),
            ("irq.affinity", "/proc/irq/4/smp_affinity_list", "0,5"),
            ("irq.default_affinity", "/proc/irq/default_smp_affinity", "22"),
            ("workqueue.cpumask", "/sys/devices/virtual/workqueue/cpumask", "22"),
        ] {
            let why = told(&[offline, (id, place, value)]).expect(id);
            assert!(why.ends_with("the first takes CPU 5 away, and the second names it"), "{why}");
        }
        for (id, place, value) in [
            ("boot.isolcpus", "cmdline:isolcpus", "1,4"),
            ("boot.nohz_full", "cmdline:nohz_full", "1-N"),
            ("boot.rcu_nocbs", "cmdline:rcu_nocbs", "all"),
            ("irq.default_affinity", "/proc/irq/default_smp_affinity", "ff"),
        ] {
            assert_eq!(told(&[offline, (id, place, value)]), None, "{id} = {value}");
        }
    }

    #[test]
    fn a_profile_that_takes_or_isolates_threads_asks_for_them() {
        let asks = |id| asks_of_threads(&crate::testing::profile(&[(id, Want::Int(1))]));
        for id in ["boot.isolcpus", "boot.nosmt", "boot.mitigations", "cpu.smt"] {
            assert!(asks(id), "{id}");
        }
        assert!(!asks("vm.swappiness"));
    }

    #[test]
    fn the_cure_names_what_can_be_left_and_nothing_of_the_placement() {
        let cure = |values: &[(&str, &str, &str)]| refused(values).expect("told").1;
        let dirty = cure(&[
            ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio", "20"),
            ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio", "10"),
        ]);
        assert_eq!(
            dirty,
            "change one of the two in the profile, or leave it as it is: --exclude vm.dirty_background_ratio or \
             --exclude vm.dirty_ratio"
        );
        let placed = cure(&[
            ("boot.irqaffinity", "cmdline:irqaffinity", "0-2"),
            ("boot.isolcpus", "cmdline:isolcpus", "2-7"),
        ]);
        assert_eq!(
            placed,
            "change boot.isolcpus in the profile, or leave it as it is: --exclude boot.isolcpus"
        );
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
