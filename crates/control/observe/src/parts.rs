//! The parts of the system that systemd puts everything into (system.slice, user.slice, ...), and the CPUs of each.
//!
//! A file says what a part is to have, and its control group what it has: systemd carries the one to the other when it
//! reads its files anew (`systemctl daemon-reload`), and `systemctl set-property` sets a group at once. So both are
//! read, and told apart.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_model::{
    Catalogue, Cpus, Knob, NOT_GIVEN, Observation, PARTS, PinnedService, Session, UnitSetting, ValueType,
    place,
};

use crate::units;
use crate::writers::{has_unit, is_systemd};

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
            let Some(name) = unit_at(knob, &reading.place).filter(|_| is_given) else { continue };
            let setting = UnitSetting { in_force: in_force(host, name), ..UnitSetting::default() };
            observation.units.entry(reading.place.clone()).or_insert(setting);
        }
    }
}

/// The unit that a place is of.
pub(crate) fn unit_at<'a>(knob: &'a Knob, at: &'a str) -> Option<&'a str> {
    let mut holes = place::captures(&knob.path, at)?.into_iter();
    holes.find(|(name, _)| *name == "unit").map(|(_, unit)| unit)
}

/// The CPUs of the parts that have a limit: what a file of ours gives comes at the next reload, if it is not there yet.
pub(crate) fn limits(host: &Host) -> BTreeMap<String, Cpus> {
    let limit = |name: String| {
        let ours = host.read(&format!("/etc/systemd/system/{name}.d/zz-planish-allowed-cpus.conf")).ok();
        let ours = ours.and_then(|text| Cpus::parse(&allowed().normal(&text)));
        let cpus = ours.or_else(|| Cpus::parse(&in_force(host, &name)?.0)).filter(|cpus| !cpus.is_empty())?;
        Some((name, cpus))
    };
    names(host).into_iter().filter_map(limit).collect()
}

/// The type of the CPUs that a unit may use.
fn allowed() -> ValueType {
    let (directive, unit) = ("AllowedCPUs".to_owned(), "CPUs".to_owned());
    ValueType::Setting { directive, unit, min: None, max: None, words: Vec::new(), at_least: false }
}

/// Services that a drop-in of ours pins, each with the slice that it runs in.
pub(crate) fn pinned(host: &Host) -> Vec<PinnedService> {
    const FOLDER: &str = "/etc/systemd/system";
    let service = |folder: String| {
        let unit = folder.strip_suffix(".d").filter(|unit| unit.ends_with(".service"))?.to_owned();
        let text = host.read(&format!("{FOLDER}/{folder}/zz-planish.conf")).ok()?;
        let kind = ValueType::Directives { directives: Vec::new() };
        let settings = kind.normal(&text);
        let cpus = settings.split(' ').find_map(|word| word.strip_prefix("CPUAffinity="))?;
        Some(PinnedService { cpus: Cpus::parse(cpus)?, slice: units::slice(host, &unit), unit })
    };
    if !is_systemd(host) {
        return Vec::new();
    }
    host.list(FOLDER).into_iter().filter_map(service).collect()
}

/// Where we run ourselves: the part, and the CPUs that the kernel lets us run on. Nobody runs on a recording.
pub(crate) fn session(host: &Host) -> Option<Session> {
    let groups = host.read("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let part = path.split('/').next().filter(|part| PARTS.contains(part))?;
    let status = host.read("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Session { part: part.to_owned(), cpus: Cpus::parse(allowed.trim())? })
}
