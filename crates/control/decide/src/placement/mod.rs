//! Placement as one plan: CPUs, siblings, interrupts, nodes, pools, boot parameters and units, decided together.
//!
//! ```text
//!   [placement] ──> solve ──> Placement ──> asks ──> steps, in the order of their dependencies:
//!   Machine     ──>  (sets, interrupts)              pools, units, then masks and interrupts; boot parameters
//! ```
//!
//! The parts hold each other up. Interrupts that leave the CPUs of a service that is not pinned make it several times
//! slower, and a service that is pinned among the interrupts of others gains nothing: so all of it is planned, or none.
//!
//! Non-goals: threads of a service among themselves, and processes that no unit starts (`planish run --cpus` does).

mod cache;
mod error;
mod held;
mod irqs;
mod partition;
mod solve;
#[cfg(test)]
mod tests;
mod units;

use std::collections::BTreeMap;

use planish_model::{
    Catalogue, Cpus, Entry, EntryId, Isolation, Knob, KnobId, MOVED_WITH_A_SERVICE, Machine, MemoryPolicy,
    NOT_GIVEN, Observation, Others, Persisted, PlacedService, Placement, PlacementRequest, Plan, Skipped,
    Undo, UnitLine, VerdictKind, overridden, place,
};

pub use error::PlacementError;
use held::Held;

use crate::cpus;

/// One value that a placement wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The knob.
    pub(crate) knob: KnobId,
    /// Where, and what.
    pub(crate) what: What,
    /// What it follows from, for people.
    pub(crate) because: String,
}

/// Where a value is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A value at a place.
    Value {
        /// The place.
        place: String,
        /// The value.
        value: String,
        /// Whether the rest makes no sense without it. Else it is left as it is where this kernel does not have it or
        /// lets nobody write it, and told; who leaves it out himself is refused all the same.
        required: bool,
    },
    /// A value at a place that is not there yet.
    Later {
        /// The place.
        place: String,
        /// The value.
        value: String,
        /// What it waits for.
        reason: String,
    },
    /// Bytes of a pool on a node.
    Pool {
        /// The node.
        node: u32,
        /// The bytes.
        bytes: u64,
    },
}

/// The knobs that a placement sets, besides the pools of its services.
const SETS: [&str; 13] = [
    "boot.irqaffinity",
    "boot.isolcpus",
    "boot.nohz_full",
    "boot.rcu_nocbs",
    "cpuset.partition",
    "irq.affinity",
    "irq.default_affinity",
    "resctrl.default",
    "resctrl.group",
    "systemd.cpu_affinity",
    "unit.placement",
    "unit.slice",
    "workqueue.cpumask",
];

/// Whether a knob of a plan with a placement is a part of that placement.
#[must_use]
pub fn is_placed(knob: &Knob) -> bool {
    SETS.contains(&knob.id.as_str()) || knob.undo == Undo::Subtract
}

/// What a placement comes to: where everything is to be, what has to be set for that, and what is to be known of it.
pub(crate) type Placed = (Placement, Vec<Ask>, Vec<String>);

/// Where everything is to be, beside what the open entries have placed already.
pub(crate) fn place(
    observation: &Observation,
    request: &PlacementRequest,
    open: &[Entry],
    instead_of: Option<EntryId>,
) -> Result<Placed, PlacementError> {
    let machine = observation.machine.as_ref().ok_or(PlacementError::Unseen)?;
    let held = Held::of(observation, machine, request, open, instead_of);
    units::refuse_names(machine, request)?;
    let placement = solve::solve(machine, request, &held)?;
    if !machine.systemd {
        return Err(PlacementError::NoSystemd);
    }
    let missing = placement.services.iter().find(|service| !machine.units.contains(&service.unit));
    if let Some(service) = missing {
        return Err(PlacementError::NoUnit {
            unit: service.unit.clone(),
            nearest: units::meant(service, machine, &observation.services),
        });
    }
    held.refuse_second(&placement)?;
    let partition = partition::partition(observation, request, &placement)?;
    let (cache, shares) = cache::shares(observation, request, &placement)?;
    let placement = Placement { partition, cache, ..placement };
    units::refuse_limits(machine, request, &placement)?;
    let mut asks = asks(machine, request, &placement);
    asks.extend(shares);
    let remarks = held.remarks(&placement);
    Ok((placement, asks, remarks))
}

/// Refuses settings of a file of ours of which lines of others, read behind it, leave less.
///
/// # Errors
/// The file and line that wins, and what is left.
pub fn refuse_overridden(place: &str, ours: &str, later: &[UnitLine]) -> Result<(), PlacementError> {
    overridden(ours, later).map_or(Ok(()), |(left, line)| {
        let (place, ours, by) = (place.to_owned(), ours.to_owned(), line.source.clone());
        Err(PlacementError::Overridden { place, ours, left, by })
    })
}

/// What systemd adds to its own configuration.
const MANAGER: &str = "/etc/systemd/system.conf.d/zz-planish.conf";

/// Everything that has to be set. Their order is that of the plan's steps, which follows from the rows.
fn asks(machine: &Machine, request: &PlacementRequest, placement: &Placement) -> Vec<Ask> {
    let mut asks = pools(request, placement);
    let kept = &placement.housekeeping;
    let keeps = format!("CPU {kept} keeps house");
    for service in &placement.services {
        let because = format!("{}; {keeps}", whereabouts(service));
        let slice = partition::slice_of(service, placement);
        let value = settings(machine, service) + &slice;
        asks.push(ask("unit.placement", &drop_in(&service.unit), value, true, because));
    }
    asks.extend(partition::asks(request.isolation, placement));
    if request.others == Others::Housekeeping {
        let value = format!("CPUAffinity={kept}");
        asks.push(ask("systemd.cpu_affinity", MANAGER, value, true, keeps.clone()));
    }
    asks.push(ask(
        "irq.default_affinity",
        "/proc/irq/default_smp_affinity",
        kept.mask(),
        false,
        keeps.clone(),
    ));
    for irq in placement.interrupts.iter().filter(|irq| irq.left.is_none()) {
        let place = format!("/proc/irq/{}/smp_affinity_list", irq.id);
        asks.push(ask("irq.affinity", &place, irq.cpus.to_string(), true, irq.users.join(", ")));
    }
    asks.extend(at_boot(placement, request.isolation, &keeps));
    asks
}

/// Boot parameters, and the mask of work that is bound to no CPU, which the kernel derives from them at boot.
fn at_boot(placement: &Placement, isolation: Isolation, keeps: &str) -> Vec<Ask> {
    let (isolated, kept) = (placement.isolated(), &placement.housekeeping);
    let boot = |name: &str, value: String, because: &str| {
        ask(&format!("boot.{name}"), &format!("cmdline:{name}"), value, true, because.to_owned())
    };
    let mut asks = vec![boot("irqaffinity", kept.to_string(), keeps)];
    if !isolated.is_empty() {
        let work = "/sys/devices/virtual/workqueue/cpumask";
        asks.push(ask("workqueue.cpumask", work, kept.mask(), false, keeps.to_owned()));
    }
    if !isolated.is_empty() && isolation != Isolation::Now {
        let because = format!("CPUs of services that pin their threads; {keeps}");
        asks.push(boot("isolcpus", format!("domain,managed_irq,{isolated}"), &because));
        asks.push(boot("nohz_full", isolated.to_string(), &because));
        asks.push(boot("rcu_nocbs", isolated.to_string(), &because));
    }
    asks
}

fn ask(knob: &str, place: &str, value: String, required: bool, because: String) -> Ask {
    debug_assert!(SETS.contains(&knob), "{knob} is in the list of what a placement sets");
    let what = What::Value { place: place.to_owned(), value, required };
    Ask { knob: KnobId::new(knob), what, because }
}

/// Pools of the services, those of one node together: a pool is raised once.
fn pools(request: &PlacementRequest, placement: &Placement) -> Vec<Ask> {
    let mut sums: BTreeMap<(KnobId, u32), (u64, Vec<&str>)> = BTreeMap::new();
    for (asked, placed) in request.service.iter().zip(&placement.services) {
        for (knob, bytes) in &asked.pools {
            for node in &placed.nodes {
                let (sum, units) = sums.entry((knob.clone(), *node)).or_default();
                *sum = sum.saturating_add(*bytes);
                units.push(&placed.unit);
            }
        }
    }
    let ask = |((knob, node), (bytes, units)): ((KnobId, u32), (u64, Vec<&str>))| Ask {
        knob,
        what: What::Pool { node, bytes },
        because: units.join(", "),
    };
    sums.into_iter().map(ask).collect()
}

/// The drop-in of a unit. Its name sorts behind those of others, `systemctl edit` among them: the last one counts.
fn drop_in(unit: &str) -> String {
    format!("/etc/systemd/system/{unit}.d/{}", Persisted::OWN_DROP_IN)
}

/// What a unit is given, in the words of systemd.exec(5).
fn settings(machine: &Machine, service: &PlacedService) -> String {
    let nodes: Cpus = service.nodes.iter().copied().collect();
    let memory = match service.memory {
        // On a machine of one node there is nothing to choose, and some kernels know no policy then.
        _ if machine.nodes.len() < 2 => "NUMAPolicy=default".to_owned(),
        MemoryPolicy::Any => "NUMAPolicy=default".to_owned(),
        MemoryPolicy::Bind => format!("NUMAPolicy=bind NUMAMask={nodes}"),
        MemoryPolicy::Preferred => format!("NUMAPolicy=preferred NUMAMask={nodes}"),
    };
    format!("CPUAffinity={} {memory}", service.cpus)
}

fn whereabouts(service: &PlacedService) -> String {
    let nodes: Cpus = service.nodes.iter().copied().collect();
    format!("{} on node {nodes}", service.unit)
}

/// Knobs of where all interrupts begin.
pub(crate) const BEGIN: [&str; 2] = ["irq.default_affinity", "boot.irqaffinity"];

/// Knobs that isolate CPUs.
pub(crate) const ISOLATES: [&str; 5] = [
    "boot.isolcpus",
    "boot.nohz_full",
    "boot.systemd_cpu_affinity",
    "systemd.cpu_affinity",
    "cpuset.partition",
];

/// Refuses a plan that moves interrupts and pins no service: half of a placement. Leave to set them makes no whole of
/// it, so that nobody is sent to give it. Where all of them begin is part of an isolation at boot, too, be it another
/// one's, whose services place themselves.
pub(crate) fn refuse_unpinned(
    plan: &Plan,
    catalogue: &Catalogue,
    observation: &Observation,
) -> Result<(), PlacementError> {
    let written = || plan.steps.iter().chain(&plan.boot).map(|step| (&step.knob, Some(step.wanted.as_str())));
    let rows = plan.skipped.iter().map(|row| (row, (&row.knob, row.wanted.as_deref())));
    let waiting = rows.clone().filter(|(row, _)| row.not_allowed).map(|(_, wanted)| wanted);
    // Leave that nobody gave is no reason to call it half.
    let there = rows.filter(|(row, _)| row.satisfied || row.not_allowed).map(|(_, wanted)| wanted);
    let isolates = written().chain(there).any(|(knob, _)| ISOLATES.contains(&knob.as_str()));
    let is_isolated = || {
        let readings = ISOLATES.iter().filter_map(|id| observation.knobs.get(&KnobId::new(*id))).flatten();
        // What the next boot brings, too.
        let next = |place: &str| observation.persisted.get(place).map(|found| found.value.as_str());
        let values = readings.flat_map(|reading| [reading.value.as_deref(), next(&reading.place)]);
        values.flatten().any(|value| !["", NOT_GIVEN, "member"].contains(&value.trim()))
    };
    let isolates = isolates || is_isolated();
    let leaves_some = |knob: &KnobId, wanted: Option<&str>| {
        let here = &observation.cpus_present;
        let named = catalogue.knob(knob).ok().zip(wanted);
        named.is_none_or(|(knob, wanted)| !here.is_within(&cpus::named_by(knob, wanted, here)))
    };
    let is_half = |(knob, wanted): &(&KnobId, Option<&str>)| {
        let begins = BEGIN.contains(&knob.as_str()) && !isolates && leaves_some(knob, *wanted);
        knob.as_str() == MOVED_WITH_A_SERVICE || begins
    };
    let half = written().chain(waiting).find(is_half);
    half.map_or(Ok(()), |(knob, _)| Err(PlacementError::Unpinned { knob: knob.clone() }))
}

/// Why an interrupt stays where it is, whatever is wanted: the kernel places it, or it belongs to one CPU.
pub(crate) fn fixed<'a>(observation: &'a Observation, knob: &Knob, place: &str) -> Option<&'a str> {
    let of_irq = |knob: &&Knob| knob.id.as_str() == "irq.affinity";
    let knob = Some(knob).filter(of_irq)?;
    let holes = place::captures(&knob.path, place)?;
    let number: u32 = holes.first()?.1.parse().ok()?;
    let irqs = &observation.machine.as_ref()?.irqs;
    irqs.iter().find(|irq| irq.id == number)?.fixed.as_deref()
}

/// What of a placement this host does not let be set, and what it comes to: each of it the next boot brings by the boot
/// parameters of the same placement, so that it is no reason to place nothing.
pub(crate) fn left(asks: &[Ask], plan: &Plan) -> Vec<String> {
    let told = |ask: &Ask| {
        let What::Value { place, required: false, .. } = &ask.what else { return None };
        let (until, then) = match ask.knob.as_str() {
            "irq.default_affinity" => ("devices that come later may interrupt any CPU", "boot.irqaffinity"),
            "workqueue.cpumask" => ("unbound work of the kernel runs on isolated CPUs, too", "boot.isolcpus"),
            _ => return None,
        };
        let row = plan.skipped.iter().find(|row| row.knob == ask.knob && row.place == *place)?;
        let is_left = !row.satisfied && row.verdict.verdict != VerdictKind::Reboot;
        let comes = asks.iter().any(|ask| ask.knob.as_str() == then);
        let end = if comes { format!(", until a boot with {then}") } else { String::new() };
        is_left.then(|| {
            format!("{} of the placement stays as it is ({}): {until}{end}", ask.knob, row.verdict.reason)
        })
    };
    asks.iter().filter_map(told).collect()
}

/// Refuses a plan that holds only a part of what a placement needs.
pub(crate) fn refuse_half(asks: &[Ask], plan: &Plan) -> Result<(), PlacementError> {
    for ask in asks {
        let What::Value { place, required, .. } = &ask.what else { continue };
        let planned = plan.steps.iter().chain(&plan.boot);
        if planned.into_iter().any(|step| step.knob == ask.knob && step.place == *place) {
            continue;
        }
        let skipped = plan.skipped.iter().find(|row| row.knob == ask.knob && row.place == *place);
        if skipped.is_some_and(|row| row.satisfied || row.verdict.verdict == VerdictKind::Reboot) {
            continue;
        }
        let is_of_host = |row: &Skipped| row.hindered || row.verdict.verdict != VerdictKind::Blocked;
        if !required && skipped.is_none_or(is_of_host) {
            continue;
        }
        let reason = skipped.map_or("it is not on this host", |row| row.verdict.reason.as_str()).to_owned();
        return Err(PlacementError::Half { knob: ask.knob.clone(), place: place.clone(), reason });
    }
    Ok(())
}
