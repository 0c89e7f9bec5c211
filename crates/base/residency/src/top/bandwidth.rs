//! What the controllers of memory read and wrote: by counters of theirs, which the kernel names in sysfs.
//!
//! ```text
//! find    host, nodes              -> counters to open      reads names and files; any root, so that a test has one
//! open    each on the CPU that its PMU names for a socket (cpumask), for everybody
//! told    meters, readings         -> bytes by node         pure
//! ```
//!
//! | machine | PMU | events |
//! |---|---|---|
//! | Intel servers | `uncore_imc_N` | `cas_count_read`, `cas_count_write`; of two channels `..._sch0`, `..._sch1` |
//! | Intel clients | `uncore_imc` | `data_reads`, `data_writes` |
//! | newer ones | `uncore_imc_free_running_N` | `data_read`, `data_write` |
//! | Intel with the above unnamed | `uncore_imc_free_running_N` | `read`, `write` |
//! | AMD | `amd_umc_N`, `amd_df` | the kernel exports none: told, and not guessed |
//!
//! A count is as many bytes as the files `.scale` and `.unit` beside the event say. Of one kind of PMU all must name
//! both events: a sum without one of the controllers would look like less traffic. Source: uncore_snbep.c and
//! uncore_snb.c in arch/x86/events/intel, arch/x86/events/amd/uncore.c,
//! Documentation/ABI/testing/sysfs-bus-event_source-devices-events.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_sys::CpuSet;
use planish_sys::perf::{Count, Unavailable};
use planish_sys::pmu;
use planish_sys::uncore::{Uncore, UncoreEvent};

use super::{Bandwidth, NodeBandwidthSample};

const DEVICES: &str = "/sys/bus/event_source/devices";

/// Names of events that together tell all reads, and all writes.
type Events = (&'static [&'static str], &'static [&'static str]);

/// Kinds of PMUs and what theirs is called, the best first: the second counts the same again.
const KINDS: [(&str, &[Events]); 2] = [
    (
        "uncore_imc",
        &[
            (&["cas_count_read"], &["cas_count_write"]),
            (
                &["cas_count_read_sch0", "cas_count_read_sch1"],
                &["cas_count_write_sch0", "cas_count_write_sch1"],
            ),
            (&["data_reads"], &["data_writes"]),
        ],
    ),
    ("uncore_imc_free_running", &[(&["read"], &["write"]), (&["data_read"], &["data_write"])]),
];

/// PMUs of memory controllers, whether or not the kernel names events of theirs.
const KNOWN: [&str; 4] = ["uncore_imc", "uncore_imc_free_running", "amd_umc", "amd_df"];

/// One counter, as it was read last.
#[derive(Clone, Debug, PartialEq)]
struct Meter {
    node: Option<u32>,
    is_write: bool,
    bytes_per_count: f64,
    last: Option<Count>,
    /// Since the first reading.
    bytes: f64,
}

/// The counters of all memory controllers.
#[derive(Debug)]
pub(super) struct Controllers {
    uncore: Uncore,
    meters: Vec<Meter>,
    /// Why some nodes have none.
    missing: Option<String>,
}

impl Controllers {
    /// Opens the counters of this machine, or says why there are none. `nodes` have these CPUs.
    pub fn open(host: &Host, nodes: &[(u32, CpuSet)]) -> Result<Self, String> {
        let (events, meters): (Vec<UncoreEvent>, Vec<Meter>) = find(host, nodes)?.into_iter().unzip();
        let uncore = Uncore::open(&events).map_err(|reason| reason.to_string())?;
        let missing = uncounted(host, nodes, &meters);
        Ok(Self { uncore, meters, missing })
    }

    /// What they have come to since the first time.
    pub fn read(&mut self) -> Bandwidth {
        let counts = self.uncore.read();
        told(&mut self.meters, &counts, self.missing.as_deref())
    }
}

/// The counters of a machine, each with its meter.
fn find(host: &Host, nodes: &[(u32, CpuSet)]) -> Result<Vec<(UncoreEvent, Meter)>, String> {
    let pmus = host.list(DEVICES);
    for (kind, names) in &KINDS {
        let of_kind: Vec<&String> = pmus.iter().filter(|pmu| is_of(pmu, kind)).collect();
        let found: Vec<Option<Pmu>> = of_kind.iter().map(|pmu| Pmu::read(host, pmu, names)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let mut counters = Vec::new();
        for (name, pmu) in of_kind.iter().zip(found) {
            let blind = || format!("the kernel exports no events of reads and writes in bytes for {name}");
            pmu.ok_or_else(blind)?.counters(nodes, &mut counters)?;
        }
        return Ok(counters);
    }
    let known: Vec<&String> = pmus.iter().filter(|pmu| KNOWN.iter().any(|kind| is_of(pmu, kind))).collect();
    Err(match known.as_slice() {
        [] if !pmus.iter().any(|pmu| pmu.starts_with("cpu") || pmu.starts_with("armv")) => {
            Unavailable::NoPmu.to_string()
        }
        [] => "the kernel names no counters of memory controllers here that tell bytes".to_owned(),
        [one] => format!("the kernel exports no events of reads and writes in bytes for {one}"),
        [first, .., last] => {
            format!("the kernel exports no events of reads and writes in bytes for any of {first} to {last}")
        }
    })
}

/// Whether a PMU is of a kind: `uncore_imc`, `uncore_imc_3`, and not `uncore_imc_free_running_0`.
fn is_of(pmu: &str, kind: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    pmu.strip_prefix(kind)
        .is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(is_number))
}

/// A PMU that names its reads and writes.
struct Pmu {
    kind: u32,
    /// The CPUs by which it is asked, one a socket.
    cpus: CpuSet,
    /// Configurations, bytes of a count, and whether it counts writes.
    events: Vec<([u64; 3], f64, bool)>,
}

impl Pmu {
    fn read(host: &Host, name: &str, names: &[Events]) -> Option<Self> {
        let read = |file: &str| host.read(&format!("{DEVICES}/{name}/{file}")).ok();
        let kind = read("type")?.trim().parse().ok()?;
        let cpus = CpuSet::parse_list(read("cpumask")?.trim()).ok().filter(|cpus| !cpus.is_empty())?;
        let event = |event: &str, is_write: bool| {
            let text = read(&format!("events/{event}"))?;
            let config = pmu::encode(&text, &|term| read(&format!("format/{term}")))?;
            let (scale, unit) =
                (read(&format!("events/{event}.scale"))?, read(&format!("events/{event}.unit"))?);
            Some((config, pmu::bytes_per_count(&scale, &unit)?, is_write))
        };
        let all = |(reads, writes): &Events| -> Option<Vec<_>> {
            let reads = reads.iter().map(|name| event(name, false));
            reads.chain(writes.iter().map(|name| event(name, true))).collect()
        };
        Some(Self { kind, cpus, events: names.iter().find_map(all)? })
    }

    /// Its counters on every socket.
    fn counters(
        &self,
        nodes: &[(u32, CpuSet)],
        counters: &mut Vec<(UncoreEvent, Meter)>,
    ) -> Result<(), String> {
        for cpu in self.cpus.iter() {
            let node = nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(node, _)| *node);
            if node.is_none() && !nodes.is_empty() {
                return Err(format!("CPU {cpu}, by which memory controllers are counted, is of no node"));
            }
            for (config, bytes_per_count, is_write) in &self.events {
                let (bytes_per_count, is_write) = (*bytes_per_count, *is_write);
                let meter = Meter { node, is_write, bytes_per_count, last: None, bytes: 0.0 };
                counters.push((UncoreEvent { kind: self.kind, config: *config, cpu }, meter));
            }
        }
        Ok(())
    }
}

/// What is not counted: nodes with CPUs and without a counter, since a socket has one set and may be cut into several
/// nodes; and memory on the processor, whose events have other names.
fn uncounted(host: &Host, nodes: &[(u32, CpuSet)], meters: &[Meter]) -> Option<String> {
    if host.list(DEVICES).iter().any(|pmu| is_of(pmu, "uncore_hbm")) {
        return Some("memory on the processor (uncore_hbm) has controllers that are not counted".to_owned());
    }
    let is_counted = |node: u32| meters.iter().any(|meter| meter.node == Some(node));
    let without = nodes.iter().filter(|(node, cpus)| !cpus.is_empty() && !is_counted(*node));
    let without: Vec<String> = without.map(|(node, _)| node.to_string()).collect();
    (!without.is_empty()).then(|| {
        format!(
            "controllers are counted by socket: those of node {} with another node of its socket",
            without.join(", ")
        )
    })
}

impl Meter {
    /// Adds what a reading has beyond the one before, and gives all; `None` where that is not known. The first reading
    /// is where it begins. A time in which it was not read, or did not run, is told by the next reading that has more:
    /// else the sum would lack it for good.
    fn advance(&mut self, now: Option<Count>) -> Option<f64> {
        let now = now?;
        let before = self.last.unwrap_or(now);
        let grown = if self.last.is_some() { now.since(&before) } else { Some(0.0) };
        if self.last.is_none() || now.running_ns != before.running_ns {
            self.last = Some(now);
        }
        self.bytes += grown? * self.bytes_per_count;
        Some(self.bytes)
    }
}

/// Readings by node. A node one of whose counters cannot be told has no figure: less than all would look like less.
fn told(meters: &mut [Meter], counts: &[Option<Count>], missing: Option<&str>) -> Bandwidth {
    let mut nodes: BTreeMap<Option<u32>, Option<(f64, f64)>> = BTreeMap::new();
    for (meter, count) in meters.iter_mut().zip(counts) {
        let bytes = meter.advance(*count);
        let sums = nodes.entry(meter.node).or_insert(Some((0.0, 0.0)));
        *sums = sums.zip(bytes).map(|((read, written), bytes)| {
            if meter.is_write { (read, written + bytes) } else { (read + bytes, written) }
        });
    }
    let stopped = nodes.values().any(Option::is_none);
    let stopped = stopped.then_some("a counter of the memory controllers did not run since the look before");
    let of = |(node, sums): (Option<u32>, Option<(f64, f64)>)| {
        let (read_bytes, written_bytes) = sums?;
        Some(NodeBandwidthSample { node, read_bytes, written_bytes })
    };
    Bandwidth {
        reason: stopped.or(missing).map(str::to_owned),
        nodes: nodes.into_iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests;
