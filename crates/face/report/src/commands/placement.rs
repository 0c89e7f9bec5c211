//! Where services and interrupts are to be, beside the steps that bring them there.

use std::collections::BTreeMap;

use planish_model::{Cpus, MemoryPolicy, PlacedCache, PlacedIrq, PlacedPartition, PlacedService, Placement};

use crate::page::Page;
use crate::table::Table;
use crate::units;

/// The sets of CPUs, and what becomes of the interrupts.
pub(crate) fn text(placement: &Placement, page: &mut Page<'_>) {
    page.gap();
    let mut table = Table::new(&["placement", "CPUs", "memory", "others there"]);
    let kept = placement.housekeeping.to_string();
    table.row(["housekeeping".into(), kept.into(), "any node".into(), "everything".into()]);
    for service in &placement.services {
        let others = match &placement.partition {
            _ if !service.isolated => "whom the scheduler puts there",
            Some(partition) if partition.hindered.is_none() => "none: see below",
            _ => "none from the next boot on",
        };
        let (unit, cpus) = (service.unit.as_str(), service.cpus.to_string());
        table.row([unit.into(), cpus.into(), memory(service).into(), others.into()]);
    }
    page.table(&table);
    page.gap();
    if let Some(partition) = &placement.partition {
        page.fact("isolated", &isolated(partition));
    }
    for cache in &placement.cache {
        page.fact("cache", &share(cache));
        for group in &cache.beside {
            page.fact("remark", &format!("tasks of the group {group} keep its ways, wherever they run"));
        }
    }
    for device in placement.services.iter().flat_map(|service| &service.far) {
        page.fact("remark", &device.remark());
    }
    let (moved, left): (Vec<&PlacedIrq>, Vec<&PlacedIrq>) =
        placement.interrupts.iter().partition(|irq| irq.left.is_none());
    page.fact("interrupts", &targets(&moved));
    for (reason, irqs) in by_reason(&left) {
        page.fact("left alone", &format!("{}: {reason}", irqs.join(", ")));
    }
}

/// How CPUs are isolated before the next boot, or why not.
fn isolated(partition: &PlacedPartition) -> String {
    let PlacedPartition { slice, cpus, waits, hindered } = partition;
    match (hindered, waits) {
        (Some(reason), _) => format!("CPU {cpus} not before the next boot: {reason}"),
        (None, Some(waits)) => format!("CPU {cpus} by a partition of {slice}: {waits}"),
        (None, None) => format!("CPU {cpus} by a partition of {slice}"),
    }
}

/// The ways of a service, and whether the kernel keeps later groups off them.
fn share(cache: &PlacedCache) -> String {
    let PlacedCache { unit, group, ways, of, shareable, .. } = cache;
    let ways: Vec<String> = ways
        .iter()
        .map(|(domain, ways)| format!("{} of {of} ways of cache {domain} ({ways:x})", ways.count_ones()))
        .collect();
    let kept = match shareable {
        None => "exclusive".to_owned(),
        Some(reason) => format!("not exclusive: {reason}"),
    };
    format!("{unit} alone fills {} by the group {group}, {kept}", ways.join(", "))
}

fn memory(service: &PlacedService) -> String {
    let nodes: Cpus = service.nodes.iter().copied().collect();
    match service.memory {
        MemoryPolicy::Bind => format!("node {nodes} alone"),
        MemoryPolicy::Preferred => format!("node {nodes} first"),
        MemoryPolicy::Any => "any node".to_owned(),
    }
}

/// How many interrupts go where.
fn targets(irqs: &[&PlacedIrq]) -> String {
    let mut counts: BTreeMap<&Cpus, usize> = BTreeMap::new();
    for irq in irqs {
        *counts.entry(&irq.cpus).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(cpus, count)| format!("{count} to CPU {cpus}")).collect();
    if parts.is_empty() { "none can be placed".to_owned() } else { parts.join(", ") }
}

/// Names of interrupts that stay, by why they do. Those after the first few are counted.
fn by_reason<'a>(irqs: &[&'a PlacedIrq]) -> BTreeMap<&'a str, Vec<String>> {
    const NAMED_MAX: usize = 8;
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for irq in irqs {
        let name = format!("{} {}", irq.id, irq.users.join("+"));
        reasons.entry(irq.left.as_deref().unwrap_or_default()).or_default().push(name);
    }
    for names in reasons.values_mut().filter(|names| names.len() > NAMED_MAX) {
        let others = names.split_off(NAMED_MAX - 1).len();
        names.push(format!("and {}", units::count(others, "other")));
    }
    reasons
}
