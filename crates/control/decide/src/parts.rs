//! The CPUs that a part of the system may use, held against what else is set of them: a group can have no CPU that the
//! group above it has not, and a limit that leaves nobody a CPU, or takes a service the CPUs that it is pinned to, is
//! refused before anything is written.

use std::collections::BTreeMap;

use planish_model::{
    Catalogue, Cpus, Knob, KnobId, Machine, Observation, PARTS, PinnedService, Plan, Want, part_at, place,
};
use planish_sorted::CollectMap as _;
use thiserror::Error;

use crate::names;
use crate::verdict::is_older;

/// Before it a group that gets a cpuset sets every thread in it to the CPUs of the group, whatever it was pinned to
/// (`sched: Always preserve the user requested cpumask`).
const PINS_KEPT_SINCE: &str = "6.2";

/// Why the CPUs of the parts of a system cannot be as asked.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PartError {
    /// A unit that is no part of this system.
    #[error("`{only}` is no part of the system with CPUs of its own; here they are {}", here.join(", "))]
    NoPart {
        /// As it is wanted.
        only: String,
        /// Those that there are.
        here: Vec<String>,
    },
    /// No CPU is left that the scheduler uses for everything.
    #[error("{part} would have CPU {cpus} alone, and none of them is left to everything else: {taken}")]
    NoHousekeeping {
        /// The unit.
        part: String,
        /// The CPUs that it would have.
        cpus: Cpus,
        /// What is wrong with them.
        taken: String,
    },
    /// A service that is pinned to CPUs which its slice would not have.
    #[error(
        "{service} is pinned to CPU {cpus}, and {part}, which it runs in, would have CPU {allowed} alone"
    )]
    Outside {
        /// The service.
        service: String,
        /// Its CPUs.
        cpus: Cpus,
        /// The unit that its group lies in.
        part: String,
        /// The CPUs of that.
        allowed: Cpus,
    },
    /// A service that would lose its pins at once.
    #[error(
        "{service} is pinned to {}: before Linux {PINS_KEPT_SINCE} a limit of {} takes the pins of all that runs in \
         {}, this is {kernel}",
        pins(cpus), parts.join(" and "), if *everywhere { "any of the groups" } else { "it" }
    )]
    PinsLost {
        /// The service.
        service: String,
        /// Its CPUs.
        cpus: Cpus,
        /// The units that would be limited.
        parts: Vec<String>,
        /// Whether no group has CPUs of its own yet, so that all of them get them.
        everywhere: bool,
        /// The kernel of this host.
        kernel: String,
    },
    /// The session that asks for it has no CPU in common with it.
    #[error("this session runs in {part} on CPU {cpus} and no other, and {part} would have CPU {allowed}")]
    Session {
        /// The unit.
        part: String,
        /// The CPUs of the session.
        cpus: Cpus,
        /// Those that it would have.
        allowed: Cpus,
    },
}

/// CPUs of a service in words.
fn pins(cpus: &Cpus) -> String {
    if cpus.is_empty() { "the CPUs of its memory nodes".to_owned() } else { format!("CPU {cpus}") }
}

impl PartError {
    /// What to do about it.
    pub(crate) fn cure(&self) -> String {
        match self {
            Self::NoPart { .. } => "mend `only` in the profile: it means units by name".to_owned(),
            Self::NoHousekeeping { .. } => {
                "leave it a CPU that is online and not isolated: planish topo shows them".to_owned()
            }
            Self::Outside { service, cpus, part, .. } => format!(
                "leave {part} CPU {cpus} too, or put {service} into a slice of its own (`isolate = true` in the table \
                 [placement] does so)"
            ),
            Self::PinsLost { service, .. } => format!(
                "isolate at boot instead (`isolation = \"boot\"` in the table [placement]), or take CPUAffinity= from \
                 {service} first: the planish undo of a placement does so"
            ),
            Self::Session { .. } => {
                "leave it a CPU of this session, or start it without pins (taskset, a cpuset of a container)"
                    .to_owned()
            }
        }
    }
}

/// Refuses a pattern that means no part of this system.
///
/// # Errors
/// The pattern, with the parts that there are.
pub(crate) fn refuse(knob: &Knob, want: &Want, observation: &Observation) -> Result<(), PartError> {
    if !knob.r#type.is_cpus_of_a_unit() {
        return Ok(());
    }
    let units = observation.units.keys().filter_map(|place| part_at(place));
    let mut here: Vec<String> = units.map(str::to_owned).collect();
    if here.is_empty() {
        // Where process 1 is no systemd none is here, and a name may be wrong all the same.
        here = PARTS.map(str::to_owned).to_vec();
    }
    let only = names::patterns(want).into_iter().find(|only| {
        let is_meant =
            |name: &String| place::is_meant(&knob.path, &place::fill(&knob.path, &[("unit", name)]), only);
        !here.iter().any(is_meant)
    });
    only.map_or(Ok(()), |only| Err(PartError::NoPart { only: only.to_owned(), here }))
}

/// Refuses a plan after which a part of the system has no CPU for everybody, or a service is pinned to CPUs that the
/// part which it runs in has not.
///
/// # Errors
/// The first of them.
pub(crate) fn refuse_plan(
    plan: &Plan,
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), PartError> {
    let Some(machine) = &observation.machine else { return Ok(()) };
    let asked = asked(plan, catalogue);
    let pinned = pinned(plan, machine);
    let mut parts: BTreeMap<&str, &Cpus> =
        machine.parts.iter().map(|(name, cpus)| (name.as_str(), cpus)).collect_map();
    parts.extend(asked.iter().map(|(name, cpus)| (*name, cpus)));
    for (part, cpus) in &asked {
        housekeeping(part, cpus, plan, machine)?;
        let session = machine.session.as_ref().filter(|session| session.part == *part);
        if let Some(session) = session.filter(|session| session.cpus.intersection(cpus).is_empty()) {
            let (part, cpus, allowed) = ((*part).to_owned(), session.cpus.clone(), cpus.clone());
            return Err(PartError::Session { part, cpus, allowed });
        }
    }
    let kernel = &observation.host.kernel;
    for service in pinned {
        // To all CPUs is to none.
        let online = machine.online();
        if !online.is_empty() && online.is_within(&service.cpus) {
            continue;
        }
        let (part, placed, service, cpus) = (service.part(), service.placed, service.unit, service.cpus);
        // Where no group has CPUs of its own, the first limit gives them to all: each thread gets those of its group.
        let everywhere = !machine.has_cpusets;
        let is_hit = !asked.is_empty() && (everywhere || asked.iter().any(|(asked, _)| *asked == part));
        if is_hit && is_older(kernel, PINS_KEPT_SINCE) {
            let parts = asked.iter().map(|(part, _)| (*part).to_owned()).collect();
            return Err(PartError::PinsLost { service, cpus, parts, everywhere, kernel: kernel.clone() });
        }
        // The kernel gives a thread what its group has of its CPUs, and refuses it where that is none.
        let is_outside = |allowed: &Cpus| {
            if placed { !cpus.is_within(allowed) } else { cpus.intersection(allowed).is_empty() }
        };
        let allowed = parts.get(part.as_str()).filter(|_| !cpus.is_empty());
        if let Some(allowed) = allowed.filter(|allowed| is_outside(allowed)) {
            return Err(PartError::Outside { service, cpus, part, allowed: (*allowed).clone() });
        }
    }
    Ok(())
}

/// The parts that a plan limits.
fn asked<'a>(plan: &'a Plan, catalogue: &'a Catalogue) -> Vec<(&'a str, Cpus)> {
    let limit = |step: &'a planish_model::Step| {
        let knob = catalogue.knob(&step.knob).ok().filter(|knob| knob.r#type.is_cpus_of_a_unit())?;
        Some((part_at(&step.place)?, Cpus::parse(&knob.r#type.normal(&step.wanted))?))
    };
    plan.steps.iter().filter_map(limit).collect()
}

/// The services that are pinned after a plan: by files that are there, and by its steps.
fn pinned(plan: &Plan, machine: &Machine) -> Vec<PinnedService> {
    let placement = KnobId::new("unit.placement");
    let mut all: BTreeMap<String, PinnedService> =
        machine.pinned.iter().map(|service| (service.unit.clone(), service.clone())).collect_map();
    for step in plan.steps.iter().filter(|step| step.knob == placement) {
        let unit = step.place.strip_prefix("/etc/systemd/system/").and_then(|rest| rest.split_once(".d/"));
        let Some((unit, _)) = unit else { continue };
        let of = |name: &str| step.wanted.split(' ').find_map(|word| word.strip_prefix(name));
        let Some(cpus) = of("CPUAffinity=").and_then(Cpus::parse) else { continue };
        let before = all.get(unit).map(|service| service.slice.clone());
        let slice = of("Slice=").map(str::to_owned).or(before).unwrap_or_else(|| "system.slice".to_owned());
        let (name, source) = (unit.to_owned(), step.place.clone());
        all.insert(unit.to_owned(), PinnedService { unit: name, cpus, slice, placed: true, source });
    }
    all.into_values().collect()
}

/// Whether a part keeps a CPU that is online and that the scheduler gives to everybody.
fn housekeeping(part: &str, cpus: &Cpus, plan: &Plan, machine: &Machine) -> Result<(), PartError> {
    let refuse =
        |taken: String| Err(PartError::NoHousekeeping { part: part.to_owned(), cpus: cpus.clone(), taken });
    let online = cpus.intersection(&machine.online());
    if online.is_empty() && !machine.cpus.is_empty() {
        return refuse("they are offline".to_owned());
    }
    let slice = plan.steps.iter().find(|step| step.knob.as_str() == "unit.slice");
    let slice = slice.and_then(|step| {
        let allowed = step.wanted.split(' ').find_map(|word| word.strip_prefix("AllowedCPUs="))?;
        Cpus::parse(allowed)
    });
    let slice = slice.or_else(|| machine.partitions.slice.clone()).unwrap_or_default();
    let isolated = machine.partitions.isolated.union(&slice);
    if online.without(&isolated).is_empty() && !online.is_empty() {
        return refuse(format!("CPU {isolated} are isolated for services"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use planish_model::{Case, Conditions, MachineCpu, NOT_GIVEN, Session, UnitSetting};

    use super::*;
    use crate::testing::{observation, reading};
    use crate::{DecideError, Options, plan};

    const ID: &str = "unit.allowed_cpus";

    fn at(unit: &str) -> String {
        format!("/etc/systemd/system/{unit}.d/zz-planish-allowed-cpus.conf")
    }

    /// A machine of eight CPUs, of which CPU 7 is offline.
    fn host() -> Observation {
        let mut observation = observation();
        observation.host.kernel = "6.12.0".to_owned();
        observation.host.cpus_online = 7;
        observation.cpus_present = Cpus::parse("0-7").expect("a list");
        let cpu = |id| MachineCpu { id, node: None, online: id != 7, threads: Cpus::default() };
        observation.machine = Some(Machine { cpus: (0..8).map(cpu).collect(), ..Machine::default() });
        for unit in ["system.slice", "user.slice"] {
            observation.units.insert(at(unit), UnitSetting::default());
            let readings = observation.knobs.entry(KnobId::new(ID)).or_default();
            readings.push(reading(&at(unit), NOT_GIVEN));
        }
        observation
    }

    fn planned(observation: &Observation, only: &str, value: &str) -> Result<Plan, DecideError> {
        let (value, only, needs) = (value.to_owned(), Some(only.to_owned()), Conditions::default());
        let want = Want::Case(Box::new(Case { value, only, needs }));
        let profile = crate::testing::profile(&[(ID, want)]);
        let options = Options { allow_knobs: vec![KnobId::new(ID)], ..Options::default() };
        plan(&Catalogue::embedded().expect("sound"), observation, &profile, &[], &options)
    }

    fn told(observation: &Observation, only: &str, value: &str) -> String {
        match planned(observation, only, value) {
            Ok(plan) => plan.steps.iter().map(|step| format!("{}={} ", step.place, step.wanted)).collect(),
            Err(error) => {
                assert!(!error.cure().is_empty());
                match error {
                    DecideError::Part(error) => error.to_string(),
                    other => other.to_string(),
                }
            }
        }
    }

    fn with(change: impl Fn(&mut Machine)) -> Observation {
        let mut observation = host();
        change(observation.machine.as_mut().expect("a machine"));
        observation
    }

    fn pin(slice: &str, cpus: &str) -> Observation {
        let service = PinnedService {
            unit: "redis.service".to_owned(),
            cpus: Cpus::parse(cpus).expect("a list"),
            slice: slice.to_owned(),
            placed: true,
            source: String::new(),
        };
        with(|machine| machine.pinned = vec![service.clone()])
    }

    #[test]
    fn a_part_gets_its_cpus() {
        assert_eq!(told(&host(), "system.slice", "3,0-2"), format!("{}=0-3 ", at("system.slice")));
        let both = planned(&host(), "*.slice", "0-3").expect("a plan");
        assert_eq!(both.steps.len(), 2);
    }

    #[test]
    fn a_cpu_or_a_part_that_is_not_there_is_refused() {
        assert_eq!(
            told(&host(), "system.slice", "0-9"),
            "unit.allowed_cpus names CPU 8-9, and this host has CPU 0-7 and no other"
        );
        let none = "is no part of the system with CPUs of its own; here they are";
        for (name, observation, here) in [
            ("redis.service", host(), "system.slice, user.slice"),
            ("init.scope", host(), "system.slice, user.slice"),
            // Where process 1 is no systemd.
            ("sytem.slice", observation(), "machine.slice, system.slice, user.slice"),
        ] {
            assert_eq!(told(&observation, name, "0-3"), format!("`{name}` {none} {here}"));
        }
    }

    #[test]
    fn nobody_is_left_without_a_cpu() {
        assert_eq!(
            told(&host(), "user.slice", "7"),
            "user.slice would have CPU 7 alone, and none of them is left to everything else: they are offline"
        );
        let isolated = with(|machine| machine.partitions.isolated = Cpus::parse("4-6").expect("a list"));
        assert!(told(&isolated, "user.slice", "4-5,7").ends_with("CPU 4-6 are isolated for services"));
        let slice = with(|machine| machine.partitions.slice = Cpus::parse("1-3"));
        assert!(told(&slice, "user.slice", "1-3").ends_with("CPU 1-3 are isolated for services"));
        assert_eq!(told(&slice, "user.slice", "0-3"), format!("{}=0-3 ", at("user.slice")));
    }

    #[test]
    fn a_service_that_is_pinned_elsewhere_is_named() {
        assert_eq!(
            told(&pin("system.slice", "4-5"), "system.slice", "0-3"),
            "redis.service is pinned to CPU 4-5, and system.slice, which it runs in, would have CPU 0-3 alone"
        );
        // It is as much below a slice of a slice.
        assert!(
            told(&pin("system-db.slice", "4-5"), "system.slice", "0-3").contains("redis.service is pinned")
        );
        // Who is pinned by somebody else has what is left of it.
        let by_others = |cpus: &str| {
            let mut observation = pin("system.slice", cpus);
            observation.machine.as_mut().expect("a machine").pinned[0].placed = false;
            observation
        };
        assert!(told(&by_others("4-5"), "system.slice", "0-3").contains("redis.service is pinned"));
        let all = [pin("system.slice", "0-7"), by_others("3-5")];
        let apart = [pin("planish.slice", "4-5"), pin("system.slice", "1,3"), pin("user.slice", "4")];
        for fine in all.into_iter().chain(apart) {
            assert_eq!(told(&fine, "system.slice", "0-3"), format!("{}=0-3 ", at("system.slice")));
        }
    }

    #[test]
    fn before_linux_6_2_the_first_limit_takes_the_pins_of_every_group() {
        let mut old = pin("system.slice", "1");
        old.host.kernel = "6.1.0-13-amd64".to_owned();
        assert_eq!(
            told(&old, "user.slice", "0-3"),
            "redis.service is pinned to CPU 1: before Linux 6.2 a limit of user.slice takes the pins of all that runs \
             in any of the groups, this is 6.1.0-13-amd64"
        );
        assert!(told(&old, "system.slice", "0-3").contains("any of the groups"));
        // Who is pinned apart from all of them is hit as well, and so are those that systemd pins.
        for unit in ["redis.service", PinnedService::MANAGER] {
            let service = PinnedService {
                unit: unit.to_owned(),
                cpus: Cpus::default(),
                slice: "-.slice".to_owned(),
                placed: false,
                source: String::new(),
            };
            old.machine.as_mut().expect("a machine").pinned = vec![service];
            assert!(
                told(&old, "user.slice", "0-3").starts_with(&format!("{unit} is pinned to the CPUs of its"))
            );
        }
        // The groups have CPUs of their own already: one more list changes one group.
        let mut on = pin("system.slice", "1");
        on.host.kernel = "6.1.0-13-amd64".to_owned();
        on.machine.as_mut().expect("a machine").has_cpusets = true;
        assert!(told(&on, "user.slice", "0-3").starts_with("/etc/"));
        assert!(
            told(&on, "system.slice", "0-3").contains("takes the pins of all that runs in it, this is 6.1")
        );
        for kernel in ["6.2.0", "6.12.0"] {
            let mut new = pin("system.slice", "1");
            new.host.kernel = kernel.to_owned();
            assert!(told(&new, "user.slice", "0-3").starts_with("/etc/"), "{kernel}");
        }
    }

    #[test]
    fn our_own_session_keeps_a_cpu() {
        let cpus = Cpus::parse("4-5").expect("a list");
        let pinned = with(|machine| {
            machine.session = Some(Session { part: "user.slice".to_owned(), cpus: cpus.clone() });
        });
        assert_eq!(
            told(&pinned, "user.slice", "0-3"),
            "this session runs in user.slice on CPU 4-5 and no other, and user.slice would have CPU 0-3"
        );
        assert!(told(&pinned, "user.slice", "0-4").starts_with("/etc/"));
        assert!(told(&pinned, "system.slice", "0-3").starts_with("/etc/"));
    }

    #[test]
    fn where_groups_have_no_cpus_nothing_is_written() {
        let mut observation = host();
        for setting in observation.units.values_mut() {
            setting.hindered = Some("its control groups are of version 1".to_owned());
        }
        let plan = planned(&observation, "system.slice", "0-3").expect("a plan");
        assert_eq!(plan.steps, []);
        assert_eq!(plan.skipped[0].verdict.reason, "its control groups are of version 1");
    }
}
