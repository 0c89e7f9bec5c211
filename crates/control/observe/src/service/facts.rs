//! The facts of a service that finding rules compare. They are listed with all others in [`crate::facts`].

use planish_model::{DeviceKind, FactValue, Observation, ServiceView};

use super::groups::Group;

/// Facts by name. One whose files are missing is missing too.
pub(super) fn of(
    view: &ServiceView,
    groups: &[Group],
    observation: &Observation,
) -> Vec<(&'static str, FactValue)> {
    let mut facts = Facts(Vec::new());
    facts.text("service.name", Some(view.name.clone()));
    facts.number("service.pid", Some(f64::from(view.pid)));
    facts.number("service.threads_count", Some(f64::from(view.threads)));
    facts.text("service.allocator", view.allocator.clone());
    facts.number("service.thp_disabled", view.thp_allowed.map(|allowed| f64::from(u8::from(!allowed))));
    facts.number("service.wait_percent", view.cpus.wait_percent);
    facts.number("service.major_faults", Some(view.faults.major as f64));
    cpus(&mut facts, view, observation);
    devices(&mut facts, view);
    group_limits(&mut facts, groups);
    huge_limits(&mut facts, groups, observation);
    memory(&mut facts, view);
    let soft = |name: &str| {
        let limit = view.limits.iter().find(|limit| limit.name == name)?;
        // No limit is more than any number.
        Some(limit.soft.map_or(f64::MAX, |soft| soft as f64))
    };
    facts.number("service.nofile_count", soft("nofile"));
    facts.number("service.memlock_bytes", soft("memlock"));
    facts.0
}

struct Facts(Vec<(&'static str, FactValue)>);

impl Facts {
    fn number(&mut self, name: &'static str, value: Option<f64>) {
        self.0.extend(value.filter(|value| value.is_finite()).map(|value| (name, FactValue::Number(value))));
    }

    fn text(&mut self, name: &'static str, value: Option<String>) {
        self.0.extend(value.filter(|value| !value.is_empty()).map(|value| (name, FactValue::Text(value))));
    }
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn cpus(facts: &mut Facts, view: &ServiceView, observation: &Observation) {
    let count = |list: &str| planish_sys::CpuSet::parse_list(list).map(|cpus| cpus.count()).unwrap_or(0);
    let isolated = count(&view.cpus.isolated);
    facts.number("service.cpus_count", Some(f64::from(view.cpus.count)));
    facts
        .number("service.cpus_percent", percent(view.cpus.count.into(), observation.host.cpus_online.into()));
    facts.number("service.isolated_count", Some(isolated as f64));
    facts.number("service.shared_count", Some((view.cpus.count as usize).saturating_sub(isolated) as f64));
}

/// Devices on nodes on none of whose CPUs the service may run. Where the firmware tells no node nothing is known.
fn devices(facts: &mut Facts, view: &ServiceView) {
    for (kind, names, count) in [
        (DeviceKind::Disk, "service.far_disks", "service.far_disks_count"),
        (DeviceKind::Nic, "service.far_cards", "service.far_cards_count"),
    ] {
        let known: Vec<_> =
            view.devices.iter().filter(|device| device.kind == kind && device.near.is_some()).collect();
        let far = known.iter().filter(|device| device.near == Some(false));
        let told: Vec<String> = far
            .map(|device| {
                let node = device.node.map_or_else(String::new, |node| node.to_string());
                format!("{} ({}) is on node {node}", device.name, device.by)
            })
            .collect();
        facts.number(count, (!known.is_empty()).then_some(told.len() as f64));
        facts.text(names, Some(told.join(", ")));
    }
    let nodes: Vec<String> = view.cpus.nodes.iter().map(u32::to_string).collect();
    facts.text("service.nodes", Some(nodes.join(", ")));
}

/// The tightest limits: of all groups above a process the least one holds.
fn group_limits(facts: &mut Facts, groups: &[Group]) {
    let quotas = groups.iter().filter_map(|group| Some((group, group.quota.as_ref()?)));
    if let Some((_, (cpus, file))) = quotas.clone().min_by(|a, b| a.1.0.total_cmp(&b.1.0)) {
        facts.number("service.quota_cpus", Some(*cpus));
        facts.text("service.quota_file", Some(file.clone()));
    }
    let throttled = quotas.filter_map(|(group, _)| {
        let (periods, throttled) = group.periods?;
        percent(throttled, periods)
    });
    facts.number("service.throttled_percent", throttled.reduce(f64::max));
    let memory = groups.iter().flat_map(|group| &group.memory);
    let used = memory.filter_map(|(limit, file, used)| Some((percent((*used)?, *limit)?, file)));
    if let Some((used, file)) = used.max_by(|a, b| a.0.total_cmp(&b.0)) {
        facts.number("service.memory_group_percent", Some(used));
        facts.text("service.memory_group_file", Some(file.clone()));
    }
    let kills = groups.iter().filter_map(|group| group.oom_kills).max();
    facts.number("service.oom_kills", kills.map(|kills| kills as f64));
}

/// The limit on huge pages that leaves least of the pools of its size: of all groups above a process the least holds.
fn huge_limits(facts: &mut Facts, groups: &[Group], observation: &Observation) {
    let in_pools = |page_bytes: u64| {
        let pools = observation.pools.iter().filter(|pool| pool.page_bytes == page_bytes);
        pools.fold(0, |sum: u64, pool| sum.saturating_add(pool.pages.saturating_mul(page_bytes)))
    };
    let limits = groups.iter().flat_map(|group| &group.hugetlb);
    let shares =
        limits.filter_map(|(size, limit, file)| Some((percent(*limit, in_pools(*size))?, limit, file)));
    if let Some((share, limit, file)) = shares.min_by(|a, b| a.0.total_cmp(&b.0)) {
        facts.number("service.huge_group_percent", Some(share));
        facts.number("service.huge_group_bytes", Some(*limit as f64));
        facts.text("service.huge_group_file", Some(file.clone()));
    }
}

fn memory(facts: &mut Facts, view: &ServiceView) {
    let Some(memory) = &view.memory else { return };
    let huge = memory.thp_bytes.saturating_add(memory.hugetlb_bytes);
    let resident = memory.base_bytes.saturating_add(huge);
    facts.number("service.resident_bytes", Some(resident as f64));
    facts.number("service.huge_percent", percent(huge, resident));
    facts.number("service.page_tables_percent", percent(memory.page_table_bytes, resident));
    facts.number("service.swap_bytes", Some(memory.swap_bytes as f64));
    let on_nodes = memory.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(node.bytes));
    let remote = memory.nodes.iter().filter(|node| !node.local);
    let remote = remote.fold(0, |sum: u64, node| sum.saturating_add(node.bytes));
    facts.number("service.remote_percent", percent(remote, on_nodes).filter(|_| !view.cpus.nodes.is_empty()));
}
