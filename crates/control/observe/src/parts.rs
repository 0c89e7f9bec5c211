//! The parts of the system that systemd puts everything into (system.slice, user.slice, ...), and the CPUs of each.
//!
//! A file says what a part is to have, and its control group what it has: systemd carries the one to the other when it
//! reads its files anew (`systemctl daemon-reload`), and `systemctl set-property` sets a group at once. So both are
//! read, and told apart.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_model::{
    Catalogue, Cpus, KnobId, NOT_GIVEN, Observation, PARTS, PinnedService, Session, UnitSetting, ValueType,
    part_at,
};
use planish_sorted::CollectMap as _;

use crate::units;
use crate::writers::{has_unit, is_systemd};

/// The CPUs that a part may use.
const ALLOWED: &str = "unit.allowed_cpus";
/// Where control groups of version 2 are mounted.
pub(crate) const ROOT: &str = "/sys/fs/cgroup";

/// The parts of a host: all but the slice of machines are there without a file. None where process 1 is no systemd.
pub(crate) fn names(host: &Host) -> Vec<String> {
    let is_there =
        |name: &&&str| **name != "machine.slice" || has_unit(host, name) || host.exists(&group(name));
    if !is_systemd(host) {
        return Vec::new();
    }
    PARTS.iter().filter(is_there).map(|name| (*name).to_owned()).collect()
}

fn group(name: &str) -> String {
    format!("{ROOT}/{name}")
}

/// Why groups of this host have no CPUs of their own (Documentation/admin-guide/cgroup-v2.rst). A container has those
/// controllers that it was handed.
pub(crate) fn without_cpuset(host: &Host) -> Option<&'static str> {
    match host.read(&format!("{ROOT}/cgroup.controllers")) {
        Err(_) => Some("its control groups are of version 1, or not at /sys/fs/cgroup"),
        Ok(names) if !names.split_whitespace().any(|name| name == "cpuset") => {
            Some("control groups of version 2 have no cpuset here")
        }
        Ok(_) => None,
    }
}

/// What the group of a part has, and the file; an empty text where it has no limit of its own. `None` where there is no
/// such group: a slice has one while something runs in it.
pub(crate) fn in_force(host: &Host, name: &str) -> Option<(String, String)> {
    let file = format!("{}/cpuset.cpus", group(name));
    if !host.exists(&group(name)) {
        return None;
    }
    // Without the controller turned on for it, a group has no such file, and all CPUs.
    let given = host.read(&file).ok().and_then(|text| Cpus::parse(text.trim()));
    Some((given.unwrap_or_default().to_string(), file))
}

/// Adds what the groups have of those parts that a file of ours limits.
pub(crate) fn add_in_force(host: &Host, catalogue: &Catalogue, observation: &mut Observation) {
    for knob in catalogue.knobs().filter(|knob| knob.r#type.is_cpus_of_a_unit()) {
        for reading in observation.knobs.get(&knob.id).into_iter().flatten() {
            let is_given = reading.value.as_deref().is_some_and(|value| value != NOT_GIVEN);
            let Some(name) = part_at(&reading.place).filter(|_| is_given) else { continue };
            let setting = UnitSetting { in_force: in_force(host, name), ..UnitSetting::default() };
            observation.units.entry(reading.place.clone()).or_insert(setting);
        }
    }
}

/// The CPUs of the parts that have a limit: what a file of ours gives comes at the next reload, if it is not there yet.
pub(crate) fn limits(host: &Host) -> BTreeMap<String, Cpus> {
    let limit = |name: String| {
        let ours =
            host.read_lossy(&format!("/etc/systemd/system/{name}.d/zz-planish-allowed-cpus.conf")).ok();
        let ours = ours.and_then(|text| Cpus::parse(&ValueType::cpus_of_a_unit().normal(&text)));
        let cpus = ours.or_else(|| Cpus::parse(&in_force(host, &name)?.0)).filter(|cpus| !cpus.is_empty())?;
        Some((name, cpus))
    };
    names(host).into_iter().filter_map(limit).collect_map()
}

/// Services that their files pin, each with the slice that it runs in, and systemd itself, where it pins all of them.
pub(crate) fn pinned(host: &Host) -> Vec<PinnedService> {
    let service = |name: String| {
        let unit = format!("{name}.service");
        let (cpus, source) = units::pins(host, &unit)?;
        let ours =
            host.read_lossy(&format!("/etc/systemd/system/{unit}.d/zz-planish.conf")).unwrap_or_default();
        let placed = ours.contains("CPUAffinity");
        Some(PinnedService { cpus, slice: units::slice(host, &unit), unit, placed, source })
    };
    let all = units::pins_of_all(host).map(|(cpus, source)| PinnedService {
        unit: PinnedService::MANAGER.to_owned(),
        cpus,
        slice: "-.slice".to_owned(),
        placed: false,
        source,
    });
    let instances = units::instances(host);
    units::services(host).into_iter().chain(instances).filter_map(service).chain(all).collect()
}

/// Whether the groups right below the root have the controller already: then a list of one of them changes nothing of
/// the others.
pub(crate) fn has_cpusets(host: &Host) -> bool {
    let given = host.read(&format!("{ROOT}/cgroup.subtree_control")).unwrap_or_default();
    given.split_whitespace().any(|name| name == "cpuset")
}

/// Adds the parts of the system that a file of ours limited once, and whose groups still have a limit that no file
/// gives.
pub fn limits_left<'a>(host: &Host, places: impl Iterator<Item = &'a str>, observation: &mut Observation) {
    let whole = host.read(&format!("{ROOT}/cpuset.cpus.effective")).ok();
    let Some(whole) = whole.and_then(|text| Cpus::parse(text.trim())) else { return };
    let id = KnobId::new(ALLOWED);
    for place in places {
        let Some(name) = part_at(place) else { continue };
        let reading = observation.reading(&id, place);
        let is_ours =
            reading.and_then(|reading| reading.value.as_deref()).is_some_and(|value| value != NOT_GIVEN);
        let is_read = reading.is_some();
        let found = in_force(host, name).filter(|(cpus, _)| {
            Cpus::parse(cpus).is_some_and(|cpus| !cpus.is_empty() && !whole.is_within(&cpus))
        });
        let Some(found) = found.filter(|_| !is_ours && units::cpus_by_others(host, place).is_none()) else {
            continue;
        };
        let readings = observation.knobs.entry(id.clone()).or_default();
        if !is_read {
            readings.push(units::not_given(place.to_owned(), observation.host.root));
        }
        let unit = observation.units.entry(place.to_owned()).or_default();
        unit.in_force = Some(found);
        unit.left_over = Some(whole.to_string());
    }
}

/// Where we run ourselves: the part, and the CPUs that the kernel lets us run on. Nobody runs on a recording.
pub(crate) fn session(host: &Host) -> Option<Session> {
    let groups = host.read_lossy("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let part = path.split('/').next().filter(|part| PARTS.contains(part))?;
    let status = host.read_lossy("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Session { part: part.to_owned(), cpus: Cpus::parse(allowed.trim())? })
}
