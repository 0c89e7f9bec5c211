//! One service through its own eyes: the part of `planish doctor --service` that is no finding.

use planish_model::{ServiceDevice, ServiceLimit, ServiceMemory, ServiceView};

use crate::page::Page;
use crate::units;

/// Groups that are told before the others are only counted.
const GROUPS_MAX: usize = 6;

/// Writes what was seen of a service.
pub(super) fn text(view: &ServiceView, page: &mut Page<'_>) {
    let others = if view.processes > 1 {
        format!(", the largest of {} of that name", units::count(view.processes as usize, "process"))
    } else {
        String::new()
    };
    let threads = units::count(view.threads as usize, "thread");
    page.heading(&format!("service {}: process {}{others}, {threads}", view.name, view.pid));
    if let Some(version) = &view.version {
        page.fact("version", &format!("{} ({})", version.version, version.by));
    }
    page.fact("cpus", &cpus(view));
    if let Some(waited) = view.cpus.wait_percent {
        let waited =
            format!("{waited:.1} % of the time in which its threads could have run they waited for a CPU");
        page.fact("waits", &waited);
    }
    let shown = if page.is_detailed() { view.groups.len() } else { GROUPS_MAX };
    for (number, group) in view.groups.iter().take(shown).enumerate() {
        let used = if group.used.is_empty() { String::new() } else { format!(", {}", group.used) };
        let name = if number == 0 { "groups" } else { "" };
        page.fact(name, &format!("{}{used} ({})", group.limit, group.file));
    }
    if view.groups.len() > shown {
        page.fact("", &format!("and {} more: --verbose", view.groups.len() - shown));
    }
    if let Some(memory) = &view.memory {
        page.fact("memory", &self::memory(memory));
        page.fact("nodes", &nodes(view, memory));
    }
    let faults = format!("{} without a disk, {} with one", view.faults.minor, view.faults.major);
    page.fact("faults", &faults);
    page.fact("limits", &view.limits.iter().map(limit).collect::<Vec<_>>().join(", "));
    let none = if view.allocator_unread {
        "not known: its mappings could not be read"
    } else {
        "none that is known: a static program, or its own"
    };
    page.fact("malloc", view.allocator.as_deref().unwrap_or(none));
    let thp =
        view.thp_allowed.map(|allowed| if allowed { "not forbidden by prctl" } else { "forbidden by prctl" });
    page.fact("thp", thp.unwrap_or_default());
    for (number, device) in view.devices.iter().enumerate() {
        page.fact(if number == 0 { "devices" } else { "" }, &self::device(device));
    }
    page.fact("clock", view.clock.as_deref().unwrap_or_default());
    page.fact("unread", &view.unread.join("; "));
}

fn cpus(view: &ServiceView) -> String {
    let cpus = &view.cpus;
    let list = |nodes: &[u32]| nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let nodes =
        if cpus.nodes.is_empty() { String::new() } else { format!(", of node {}", list(&cpus.nodes)) };
    let isolated = match cpus.isolated.as_str() {
        "" => "none of them isolated".to_owned(),
        all if all == cpus.allowed => "all isolated".to_owned(),
        some => format!("{some} isolated"),
    };
    if cpus.allowed.is_empty() {
        return "which it may use cannot be told here".to_owned();
    }
    format!("{} ({}{nodes}), {isolated}", cpus.allowed, cpus.count)
}

fn memory(memory: &ServiceMemory) -> String {
    let bytes = units::bytes;
    format!(
        "{} on base pages, {} on transparent huge pages, {} on pages of a pool, {} of page tables, \
         {} in swap, {} locked",
        bytes(memory.base_bytes),
        bytes(memory.thp_bytes),
        bytes(memory.hugetlb_bytes),
        bytes(memory.page_table_bytes),
        bytes(memory.swap_bytes),
        bytes(memory.locked_bytes)
    )
}

fn nodes(view: &ServiceView, memory: &ServiceMemory) -> String {
    let mut told: Vec<String> = memory
        .nodes
        .iter()
        .map(|node| {
            let remote =
                if node.local || view.cpus.nodes.is_empty() { "" } else { " (no CPU of its own there)" };
            format!("{} on node {}{remote}", units::bytes(node.bytes), node.node)
        })
        .collect();
    if !view.cpus.allowed_nodes.is_empty() && !told.is_empty() {
        told.push(format!("allowed on {}", view.cpus.allowed_nodes));
    }
    told.join(", ")
}

fn device(device: &ServiceDevice) -> String {
    let node = match (device.node, device.near) {
        (None, _) => "no node told".to_owned(),
        (Some(node), Some(false)) => format!("node {node}, where it has no CPU"),
        (Some(node), _) => format!("node {node}"),
    };
    format!("{} on {node}: {}", device.name, device.by)
}

fn limit(limit: &ServiceLimit) -> String {
    let told = |value: Option<u64>| match value {
        None => "no limit".to_owned(),
        Some(value) if ["memlock", "core", "stack"].contains(&limit.name.as_str()) => units::bytes(value),
        Some(value) => value.to_string(),
    };
    if limit.soft == limit.hard {
        return format!("{} {}", limit.name, told(limit.soft));
    }
    format!("{} {} (up to {})", limit.name, told(limit.soft), told(limit.hard))
}
