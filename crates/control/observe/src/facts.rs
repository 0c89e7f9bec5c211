//! The named facts that finding rules compare: the one list of them.
//!
//! A fact whose files are missing here is missing too, and a rule over it says nothing. Names end with their
//! unit.

use std::collections::{BTreeMap, BTreeSet};

use planish_host::devices::{DMA_LATENCY, DMA_LATENCY_OTHERS};
use planish_host::{Host, Pattern};
use planish_model::{FactValue, KnobId, Observation, units};

use crate::observe::Shared;
use crate::tables;

mod console;
mod firmware;
mod mounts;

/// Every fact that [`observe`](crate::observe) and, with a service, [`service()`](crate::service()) may compute, and
/// what it means.
pub const FACTS: &[(&str, &str)] = &[
    ("clock.source", "what the clock is read from"),
    ("console.serial", "consoles on a serial line, with the speed that the command line gives them"),
    ("console.serial_count", "how many those are"),
    ("cpu.idle_exit_us", "exit latency of the deepest sleep state that CPU 0 may enter"),
    ("cpu.latency_held_by", "who else holds a limit on every CPU's wake-up that is shorter than ours"),
    ("cpu.latency_held_us", "that limit"),
    ("cpu.isolated_count", "CPUs that the scheduler leaves alone"),
    ("cpu.isolated_percent", "the same as a share of those that are online"),
    ("cpu.slow_governor", "the governors of CPUs that have another than `performance`"),
    ("cpu.slow_governor_count", "CPUs whose governor is another than `performance`"),
    ("cpu.steal_percent", "CPU time since boot that the hypervisor kept for others"),
    ("disk.untrimmed", "mounts on disks that nobody tells what is free"),
    ("disk.untrimmed_count", "how many those are"),
    ("firmware.energy_bias", "0 for speed to 15 for saving, of CPU 0"),
    (
        "firmware.frequency_lost_percent",
        "the frequency that the firmware withholds, of what the CPU could have",
    ),
    ("firmware.frequency_percent", "the frequency that the firmware allows, of what the CPU could have"),
    ("firmware.holds_frequency", "1 where the kernel may not set the frequency, else 0"),
    ("firmware.l3_as_node", "1 where each cache of the third level is a node, else 0"),
    ("firmware.name", "the machine, and the maker and version of its firmware"),
    ("firmware.nodes_offered", "what the firmware of such a CPU lets one choose"),
    ("firmware.package_l3_count", "caches of the third level in a package"),
    ("firmware.package_nodes_count", "nodes with CPUs in a package"),
    ("firmware.power_profile", "the platform profile that it is set to"),
    ("firmware.sleep_driver", "who knows the sleep states"),
    ("firmware.sleep_states_count", "sleep states deeper than a halt"),
    ("firmware.smt_off", "1 where cores have a second thread and the kernel sees none, else 0"),
    ("firmware.x2apic", "1 where the CPUs show an x2APIC, else 0"),
    ("host.bare_metal", "1 without a hypervisor below us, else 0"),
    ("hugetlb.boot_short", "pools that have fewer pages than the boot was asked for, and why"),
    ("hugetlb.boot_short_count", "how many those are"),
    ("hugetlb.idle_bytes", "pages of the pools that nobody uses or has reserved"),
    ("hugetlb.imbalance_percent", "how much smaller the smallest node's pools are than the largest's"),
    ("hugetlb.overcommit_percent", "the overcommit allowance against available memory"),
    ("hugetlb.total_bytes", "memory in pools"),
    ("hugetlb.idle_percent", "the same as a share of all memory"),
    ("hugetlb.node_short", "nodes whose pools are smaller, and the free blocks that are left there"),
    ("kernel.ksoftirqd_priority", "the realtime priority of the thread behind interrupts, 0 for none"),
    ("kernel.printk_level", "messages below this level go to the console, the first of `kernel.printk`"),
    ("kernel.realtime", "1 where the kernel has PREEMPT_RT, else 0"),
    ("memory.available_bytes", "memory that can be had without swapping"),
    ("memory.available_percent", "the same as a share of all memory"),
    ("memory.min_free_bytes", "the reserve of `vm.min_free_kbytes`"),
    ("memory.min_free_own_percent", "the same against what the kernel would choose by itself"),
    ("memory.min_free_percent", "the same as a share of all memory"),
    ("memory.page_tables_bytes", "page tables of all processes"),
    ("memory.page_tables_percent", "the same against anonymous and shared memory"),
    ("memory.stall_percent", "time in which some task waited for memory, over five minutes"),
    ("memory.total_bytes", "all memory"),
    ("mount.hugetlbfs_count", "mounts of hugetlbfs"),
    ("mount.strictatime", "mounts on which each read writes a time"),
    ("mount.strictatime_count", "how many those are"),
    ("msr.allow_writes", "whether programs may write registers of the CPUs"),
    ("numa.balancing", "the knob `kernel.numa_balancing`"),
    ("numa.free_spread_percent", "difference in free memory between the emptiest and fullest node with CPUs"),
    ("numa.hint_faults", "faults that the balancing made to sample, since boot"),
    ("numa.memory_only", "nodes with memory and no CPU, each with what the firmware rates it at"),
    ("numa.memory_only_count", "how many those are"),
    ("numa.nodes_count", "nodes with memory"),
    ("numa.zone_reclaim_mode", "the knob `vm.zone_reclaim_mode`"),
    ("service.allocator", "the allocator that the service has loaded"),
    ("service.cpus_count", "CPUs that it may run on"),
    ("service.cpus_percent", "the same as a share of those that are online"),
    ("service.far_cards", "network cards that it works with, on nodes on none of whose CPUs it may run"),
    ("service.far_cards_count", "how many those are"),
    ("service.far_disks", "disks that it works with, on nodes on none of whose CPUs it may run"),
    ("service.far_disks_count", "how many those are"),
    ("service.huge_group_bytes", "bytes of huge pages that the tightest of its control groups allows"),
    ("service.huge_group_file", "the file of that limit"),
    ("service.huge_group_percent", "that limit against the pools of its size"),
    ("service.huge_percent", "share of its resident memory that is on huge pages"),
    ("service.isolated_count", "isolated CPUs that it may run on"),
    ("service.major_faults", "faults of its processes that waited for a disk"),
    ("service.memlock_bytes", "memory that it may lock"),
    ("service.memory_group_file", "the limit of its control groups that is nearest to its end"),
    ("service.memory_group_percent", "how much of that is used"),
    ("service.name", "the name of its program"),
    ("service.nodes", "nodes of the CPUs that it may run on"),
    ("service.nofile_count", "files that it may open"),
    ("service.oom_kills", "processes of its control group that were killed for want of memory"),
    ("service.page_tables_percent", "its page tables against its resident memory"),
    ("service.pid", "its process"),
    ("service.quota_cpus", "CPUs that the tightest quota of its control groups comes to"),
    ("service.quota_file", "the file of that quota"),
    ("service.remote_percent", "share of its memory on nodes on none of whose CPUs it may run"),
    ("service.resident_bytes", "its resident memory"),
    ("service.shared_count", "CPUs that it may run on and that are not isolated"),
    ("service.swap_bytes", "its memory in swap"),
    ("service.thp_disabled", "1 where the process forbade itself transparent huge pages, else 0"),
    ("service.threads_count", "its threads"),
    (
        "service.throttled_percent",
        "scheduling periods of its control group that ended with the quota used up",
    ),
    ("service.wait_percent", "time that its threads waited for a CPU, of that in which they could have run"),
    ("shm.size_bytes", "the size of /dev/shm"),
    ("swap.devices", "the devices and files that are swapped to"),
    ("swap.in_pages", "pages read back from swap since boot"),
    ("swap.total_bytes", "swap, used or not"),
    ("swap.used_available_percent", "swap in use against the memory that is available"),
    ("swap.used_bytes", "swap in use"),
    ("swap.zram_count", "swap devices that are compressed memory"),
    ("thp.anon_bytes", "anonymous memory on transparent huge pages"),
    ("thp.defrag", "the knob's word"),
    ("thp.enabled", "the knob's word"),
    ("thp.fallback_percent", "huge-page faults that got small pages, since boot"),
    ("thp.shmem_bytes", "shared memory on transparent huge pages"),
    ("thp.page_bytes", "bytes of a transparent huge page"),
    ("thp.stalls", "times that a thread compacted memory itself, since boot"),
    ("vm.swappiness", "the knob"),
];

/// Facts by name, as they are collected.
#[derive(Default)]
struct Facts(BTreeMap<String, FactValue>);

impl Facts {
    fn number(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.0.insert(name.to_owned(), FactValue::Number(value));
        }
    }

    fn bytes(&mut self, name: &str, value: Option<u64>) {
        self.number(name, value.map(|value| value as f64));
    }

    fn text(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.insert(name.to_owned(), FactValue::Text(value));
        }
    }
}

/// All facts of a host whose knobs and pools were read already.
pub(crate) fn compute(
    host: &Host,
    shared: &Shared,
    observation: &Observation,
) -> BTreeMap<String, FactValue> {
    let mut facts = Facts::default();
    let bare_metal = observation.host.guest.is_none();
    facts.number("host.bare_metal", Some(f64::from(u8::from(bare_metal))));
    memory(&mut facts, host, shared, observation);
    counters(&mut facts, host, observation);
    pools(&mut facts, host, observation);
    numa(&mut facts, host, observation);
    cpus(&mut facts, host, observation);
    firmware::compute(&mut facts, host, shared, observation);
    console::compute(&mut facts, host, shared, observation);
    mounts::compute(&mut facts, host, observation.host.memory_bytes);
    facts.0
}

/// The first readable value of a knob.
fn value<'a>(observation: &'a Observation, id: &str) -> Option<&'a str> {
    observation.knobs.get(&KnobId::new(id))?.iter().find_map(|reading| reading.value.as_deref())
}

fn number_of(observation: &Observation, id: &str) -> Option<f64> {
    value(observation, id)?.trim().parse().ok()
}

/// The word of a knob that shows its alternatives, such as `always [madvise] never`.
fn word_of(observation: &Observation, id: &str) -> Option<String> {
    let text = value(observation, id)?;
    let bracketed = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(bracketed.unwrap_or(text.trim()).to_owned())
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn memory(facts: &mut Facts, host: &Host, shared: &Shared, observation: &Observation) {
    let table = tables::meminfo(&shared.meminfo);
    let get = |name: &str| table.get(name).copied();
    let (total, available) = (get("MemTotal"), get("MemAvailable"));
    facts.bytes("memory.total_bytes", total);
    facts.bytes("memory.available_bytes", available);
    facts.number(
        "memory.available_percent",
        available.zip(total).and_then(|(part, whole)| percent(part, whole)),
    );
    let mapped = get("AnonPages").unwrap_or(0).saturating_add(get("Shmem").unwrap_or(0));
    facts.bytes("memory.page_tables_bytes", get("PageTables"));
    facts.number("memory.page_tables_percent", get("PageTables").and_then(|tables| percent(tables, mapped)));
    let min_free = number_of(observation, "vm.min_free_kbytes").map(|kib| (kib * 1024.0) as u64);
    facts.bytes("memory.min_free_bytes", min_free);
    facts.number(
        "memory.min_free_percent",
        min_free.zip(total).and_then(|(part, whole)| percent(part, whole)),
    );
    let own = min_free_of_kernel(observation);
    facts.number("memory.min_free_own_percent", min_free.and_then(|min_free| percent(min_free, own)));
    let pressure = host.read("/proc/pressure/memory").ok();
    facts.number("memory.stall_percent", pressure.as_deref().and_then(tables::pressure_some_percent));
    let used = get("SwapTotal").zip(get("SwapFree")).map(|(total, free)| total.saturating_sub(free));
    facts.bytes("swap.used_bytes", used);
    facts.bytes("swap.total_bytes", get("SwapTotal"));
    let share = used.zip(available).and_then(|(used, available)| percent(used, available));
    facts.number("swap.used_available_percent", share);
    let swaps = host.read_lossy("/proc/swaps").unwrap_or_default();
    let zram = tables::swaps(&swaps).iter().filter(|device| device.contains("zram")).count();
    facts.number("swap.zram_count", Some(zram as f64));
    facts.bytes("thp.anon_bytes", get("AnonHugePages"));
    facts.bytes("thp.shmem_bytes", get("ShmemHugePages"));
}

/// The reserve that the kernel chooses by itself, in bytes. With transparent huge pages it is eleven page
/// blocks for each zone and at most a twentieth of memory (`mm/khugepaged.c`,
/// `set_recommended_min_free_kbytes`): megabytes with 4 KiB pages, gigabytes with 64 KiB ones. Without them
/// it grows with the square root of memory (`mm/page_alloc.c`, `calculate_min_free_kbytes`).
fn min_free_of_kernel(observation: &Observation) -> u64 {
    let memory = observation.host.memory_bytes;
    let plain = ((memory / 1024).saturating_mul(16).isqrt().clamp(128, 262_144)) * 1024;
    let block = observation.host.thp_bytes.unwrap_or(0);
    let zones = observation.buddy.len() as u64;
    plain.max(block.saturating_mul(11).saturating_mul(zones).min(memory / 20))
}

fn counters(facts: &mut Facts, host: &Host, observation: &Observation) {
    let text = host.read("/proc/vmstat").unwrap_or_default();
    let table = tables::vmstat(&text);
    let get = |name: &str| table.get(name).copied();
    facts.bytes("swap.in_pages", get("pswpin"));
    facts.bytes("thp.stalls", get("compact_stall"));
    let (given, refused) = (get("thp_fault_alloc"), get("thp_fault_fallback"));
    let tried = given.zip(refused).map(|(given, refused)| given.saturating_add(refused));
    facts.number("thp.fallback_percent", refused.zip(tried).and_then(|(part, whole)| percent(part, whole)));
    facts.bytes("numa.hint_faults", get("numa_hint_faults"));
    facts.number("vm.swappiness", number_of(observation, "vm.swappiness"));
    facts.bytes("thp.page_bytes", observation.host.thp_bytes);
    facts.text("thp.enabled", word_of(observation, "thp.enabled"));
    facts.text("thp.defrag", word_of(observation, "thp.defrag"));
}

fn pools(facts: &mut Facts, host: &Host, observation: &Observation) {
    let (mut total, mut idle, mut overcommit) = (0_u64, 0, 0);
    for page_bytes in &observation.host.huge_page_bytes {
        let folder = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", page_bytes / 1024);
        let number = |file: &str| {
            let text = host.read(&format!("{folder}/{file}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let free =
            number("free_hugepages").unwrap_or(0).saturating_sub(number("resv_hugepages").unwrap_or(0));
        idle = free.saturating_mul(*page_bytes).saturating_add(idle);
        // Not of meminfo, whose sum is of another moment, and of kernels since 4.17 alone.
        total = number("nr_hugepages").unwrap_or(0).saturating_mul(*page_bytes).saturating_add(total);
        let allowed = number("nr_overcommit_hugepages").unwrap_or(0);
        overcommit = allowed.saturating_mul(*page_bytes).saturating_add(overcommit);
    }
    facts.bytes("hugetlb.total_bytes", Some(total));
    facts.bytes("hugetlb.idle_bytes", Some(idle));
    facts.number("hugetlb.overcommit_percent", percent(overcommit, observation.host.available_bytes));
    facts.number("hugetlb.idle_percent", percent(idle, observation.host.memory_bytes));
    facts.number("hugetlb.imbalance_percent", imbalance(observation));
    facts.text("hugetlb.node_short", short_nodes(observation));
    let short: Vec<String> =
        observation.knobs.values().flatten().filter_map(|reading| observation.not_granted(reading)).collect();
    facts.number("hugetlb.boot_short_count", Some(short.len() as f64));
    facts.text("hugetlb.boot_short", Some(short.join("; ")));
}

/// Bytes in the pools of a node, over all page sizes.
fn pool_bytes(observation: &Observation, node: u32) -> u64 {
    let own = observation.pools.iter().filter(|pool| pool.node == Some(node));
    own.fold(0, |sum: u64, pool| sum.saturating_add(pool.pages.saturating_mul(pool.page_bytes)))
}

/// Why pools of nodes with CPUs are smaller than the largest: whether their free memory has room for a page of the
/// smallest size, by the free blocks of `/proc/buddyinfo`.
fn short_nodes(observation: &Observation) -> Option<String> {
    let host = &observation.host;
    let page_bytes = *host.huge_page_bytes.iter().min()?;
    let most = host.cpu_nodes.iter().map(|node| pool_bytes(observation, *node)).max()?;
    let short = host.cpu_nodes.iter().filter(|node| pool_bytes(observation, **node) < most);
    let told: Vec<String> = short
        .filter_map(|node| {
            let fits = planish_model::fitting(&observation.buddy, Some(*node), page_bytes, host.page_bytes)?;
            let lacks = most - pool_bytes(observation, *node);
            let room = fits.saturating_mul(page_bytes);
            let page = units::bytes(page_bytes);
            Some(if room >= lacks {
                format!("node {node} lacks {}, and has whole free blocks for them", units::bytes(lacks))
            } else {
                let (lacks, room) = (units::bytes(lacks), units::bytes(room));
                format!(
                    "node {node} lacks {lacks}, and of its free memory {room} are in blocks of {page} or more"
                )
            })
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// How much smaller the smallest pool of the nodes with CPUs is than the largest, over all page sizes.
fn imbalance(observation: &Observation) -> Option<f64> {
    let bytes: Vec<u64> =
        observation.host.cpu_nodes.iter().map(|node| pool_bytes(observation, *node)).collect();
    let (least, most) = (bytes.iter().min()?, bytes.iter().max()?);
    percent(most - least, *most)
}

fn numa(facts: &mut Facts, host: &Host, observation: &Observation) {
    let nodes = &observation.host.nodes;
    facts.number("numa.nodes_count", Some(nodes.len() as f64));
    facts.number("numa.zone_reclaim_mode", number_of(observation, "vm.zone_reclaim_mode"));
    facts.number("numa.balancing", number_of(observation, "kernel.numa_balancing"));
    // A node without CPUs is filled by whoever asks for it: that it is empty leaves nobody short.
    let free: Vec<f64> = observation
        .host
        .cpu_nodes
        .iter()
        .filter_map(|node| {
            let text = host.read(&format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
            let table = tables::meminfo(&text);
            percent(*table.get("MemFree")?, *table.get("MemTotal")?)
        })
        .collect();
    let remote: Vec<u32> =
        nodes.iter().copied().filter(|node| !observation.host.cpu_nodes.contains(node)).collect();
    facts.number("numa.memory_only_count", Some(remote.len() as f64));
    let told: Vec<String> = remote.iter().map(|node| rated(host, *node)).collect();
    facts.text("numa.memory_only", Some(told.join(", ")));
    let spread = free.iter().copied().reduce(f64::max).zip(free.iter().copied().reduce(f64::min));
    facts.number("numa.free_spread_percent", spread.map(|(most, least)| most - least));
}

/// A node with what the firmware rates its memory at.
fn rated(host: &Host, node: u32) -> String {
    let rating = planish_topo::rating(host, node).unwrap_or_default();
    let latency = rating.read_latency_ns.map(|ns| format!("{ns} ns"));
    let bandwidth = rating.read_bytes_per_second.map(|bytes| format!("{} a second", units::bytes(bytes)));
    let told: Vec<String> = [latency, bandwidth].into_iter().flatten().collect();
    match told.as_slice() {
        [] => format!("node {node} (the firmware rates nothing)"),
        told => format!("node {node} (rated at {})", told.join(" and ")),
    }
}

fn cpus(facts: &mut Facts, host: &Host, observation: &Observation) {
    if let Some(readings) = observation.knobs.get(&KnobId::new("cpu.governor")) {
        let known: Vec<&str> = readings.iter().filter_map(|reading| reading.value.as_deref()).collect();
        let slow = known.iter().map(|governor| governor.trim()).filter(|governor| *governor != "performance");
        facts.number("cpu.slow_governor_count", (!known.is_empty()).then(|| slow.clone().count() as f64));
        let names: Vec<&str> = slow.collect::<BTreeSet<_>>().into_iter().collect();
        facts.text("cpu.slow_governor", (!names.is_empty()).then(|| names.join(" and ")));
    }
    facts.number("cpu.idle_exit_us", idle_exit_us(host));
    let held = host.read(DMA_LATENCY_OTHERS).unwrap_or_default();
    let held: Vec<(&str, &str)> = held.lines().filter_map(|line| line.split_once(' ')).collect();
    facts.number("cpu.latency_held_us", held.first().and_then(|(limit, _)| limit.parse().ok()));
    facts.text("cpu.latency_held_by", Some(held.iter().map(|(_, who)| *who).collect::<Vec<_>>().join(", ")));
    let isolated = planish_topo::isolated(host);
    let isolated = isolated.map(|cpus| cpus.count() as f64);
    facts.number("cpu.isolated_count", isolated);
    let online = f64::from(observation.host.cpus_online);
    let share = isolated.filter(|_| online > 0.0).map(|isolated| (100.0 * isolated / online).min(100.0));
    facts.number("cpu.isolated_percent", share);
    let stat = host.read("/proc/stat").ok();
    facts.number("cpu.steal_percent", stat.as_deref().and_then(tables::steal_percent));
    let clock = host.read("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok();
    facts.text("clock.source", clock.map(|text| text.trim().to_owned()));
}

/// The longest exit latency among the states that CPU 0 may enter, within the limit that was asked for it.
fn idle_exit_us(host: &Host) -> Option<f64> {
    const CPU: &str = "/sys/devices/system/cpu/cpu0";
    let pattern = Pattern::parse(&format!("{CPU}/cpuidle/state{{state}}/latency")).ok()?;
    let number = |path: &str| host.read(path).ok().and_then(|text| text.trim().parse::<f64>().ok());
    // 0 is no limit, `n/a` is none at all tolerated, which is no number here.
    let limit = host.read(&format!("{CPU}/power/pm_qos_resume_latency_us")).unwrap_or_default();
    let limit = match limit.trim() {
        "n/a" => 0.0,
        text => text.parse().ok().filter(|limit| *limit > 0.0).unwrap_or(f64::INFINITY),
    };
    let limit = number(DMA_LATENCY).unwrap_or(f64::INFINITY).min(limit);
    host.glob(&pattern)
        .iter()
        .filter(|state| {
            let disable = state.path.replace("/latency", "/disable");
            number(&disable).is_none_or(|disabled| disabled == 0.0)
        })
        .filter_map(|state| number(&state.path))
        .filter(|latency| *latency <= limit)
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {

    use planish_host::Host;
    use planish_model::{Catalogue, RuleCost, RuleCosts, RuleFigure};

    use super::*;

    fn names() -> BTreeSet<&'static str> {
        FACTS.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn every_fact_that_a_rule_asks_for_exists() {
        let catalogue = Catalogue::embedded().expect("sound");
        for rule in catalogue.findings() {
            let limits = rule.limits.iter().filter_map(|limit| limit.fact.as_deref());
            let share = match &rule.costs {
                Some(RuleCosts::Measured(RuleCost { share: FactValue::Text(fact), .. })) => {
                    Some(fact.as_str())
                }
                _ => None,
            };
            let costs = match &rule.costs {
                Some(RuleCosts::Figure(RuleFigure { figure: text, .. }) | RuleCosts::Unknown(text)) => {
                    Some(text)
                }
                _ => None,
            };
            let texts = [&rule.evidence, &rule.cure].into_iter().chain(costs).chain(&rule.risk);
            let holes = texts.flat_map(|text| text.split('{').skip(1));
            let holes = holes.filter_map(|rest| rest.split('}').next()).filter(|name| !name.is_empty());
            for fact in limits.chain(holes).chain(share).chain([rule.fact.as_str()]) {
                assert!(names().contains(fact), "{}: no fact `{fact}`", rule.id);
            }
        }
    }

    #[test]
    fn every_fact_that_is_computed_is_listed() {
        let observation = crate::observe(&Host::live(), &Catalogue::embedded().expect("sound"));
        for name in observation.facts.keys() {
            assert!(names().contains(name.as_str()), "`{name}` is not listed");
        }
        assert!(observation.facts.contains_key("memory.total_bytes"));
    }

    #[test]
    fn a_node_without_cpus_that_nobody_fills_leaves_no_other_one_short() {
        let spread = |with_cpus: &str| {
            let meminfo = |node: u32, free: u64| {
                let kib = |what: &str, kib: u64| format!("Node {node} {what}: {kib} kB\n");
                kib("MemTotal", 1_000_000) + &kib("MemFree", free)
            };
            let [first, second, third] = [meminfo(0, 300_000), meminfo(1, 320_000), meminfo(2, 970_000)];
            let (_folder, host) = crate::testing::host(&[
                ("/sys/devices/system/node/has_memory", "0-2\n"),
                ("/sys/devices/system/node/has_cpu", with_cpus),
                ("/sys/devices/system/node/node0/meminfo", &first),
                ("/sys/devices/system/node/node1/meminfo", &second),
                ("/sys/devices/system/node/node2/meminfo", &third),
            ]);
            let facts = crate::observe(&host, &Catalogue::embedded().expect("sound")).facts;
            facts.get("numa.free_spread_percent").cloned()
        };
        let number = |percent| Some(FactValue::Number(percent));
        assert_eq!((spread("0-1\n"), spread("0-2\n")), (number(2.0), number(67.0)));
    }
}
