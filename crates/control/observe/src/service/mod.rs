//! One service through its own eyes, from the files of its processes and control groups.
//!
//! Nothing is attached to and nothing is asked of the service. What a user may not read of another one's process is
//! told and left out.

mod devices;
mod facts;
mod groups;
mod limits;

use std::collections::BTreeMap;

use planish_host::{Host, ReadError};
use planish_model::{
    FactValue, NodeBytes, Observation, SeenService, ServiceCpus, ServiceFaults, ServiceMemory, ServiceView,
};
use planish_residency::{Process, Status, parse_status, processes_named, shown_as, status_text};
use planish_sys::{CpuSet, NodeSet};

use crate::versions;

/// Threads whose waiting is added up. More tell no more.
const THREADS_MAX: usize = 4096;

/// Running and waiting together, in nanoseconds, before their shares tell anything.
const TELLING_NS: f64 = 1e9;

/// What of a process is seen: a name for all of them, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceName<'a> {
    /// By process id.
    Pid(u32),
    /// By the name of its program, as the kernel shows it.
    Name(&'a str),
}

/// A running service; `None` where there is none.
#[must_use]
pub fn service(host: &Host, observation: &Observation, name: ServiceName<'_>) -> Option<SeenService> {
    let pids = match name {
        ServiceName::Pid(pid) => vec![pid],
        ServiceName::Name(name) => processes_named(host, name),
    };
    let read = |pid: &u32| Some((*pid, status_text(host, &pid.to_string()).ok()?));
    let texts: Vec<(u32, String)> = pids.iter().filter_map(read).collect();
    let (pid, text) = texts.first()?;
    let status = parse_status(text);
    let mut unread = Vec::new();
    let cpus = cpus(host, &status, &texts);
    let memory = memory(host, *pid, &status, &cpus, &mut unread);
    // What a first thread that has ended has no more, the others have.
    let shown = shown_as(host, *pid);
    let (allocator, allocator_unread) = match allocator(host, shown) {
        Ok(allocator) => (allocator, false),
        Err(error) => {
            // Of a recording one file that it lacks is told.
            let (told, is_denied) = (error.to_string(), matches!(error, ReadError::Denied { .. }));
            if unread.is_empty() || (is_denied && !unread.iter().any(|known| known.contains(&told))) {
                unread.push(told);
            }
            (None, true)
        }
    };
    let exe = format!("/proc/{shown}/exe");
    let version = host.read_link(&exe).and_then(|path| versions::of_path(&path));
    // Who may not see its memory may not follow that link either (ptrace(2)).
    if allocator_unread && host.is_live() && host.read_link(&exe).is_none() {
        unread.push(format!("no permission to follow {exe}, whose path may tell the version"));
    }
    let groups = groups::of(host, shown);
    let devices = devices::of(host, shown, &cpus.nodes, &mut unread);
    let view = ServiceView {
        name: status.name.clone(),
        program: versions::program(host, shown, &status.name),
        version,
        pid: *pid,
        processes: u32::try_from(texts.len()).unwrap_or(u32::MAX),
        threads: status.threads,
        groups: groups.iter().flat_map(groups::Group::told).collect(),
        memory,
        limits: limits::of(&host.read(&format!("/proc/{shown}/limits")).unwrap_or_default()),
        allocator,
        allocator_unread,
        thp_allowed: thp_allowed(text),
        faults: faults(host, &texts),
        devices,
        clock: match observation.facts.get("clock.source") {
            Some(FactValue::Text(clock)) => Some(clock.clone()),
            _ => None,
        },
        cpus,
        unread,
    };
    let facts = facts::of(&view, &groups, observation);
    Some(SeenService { view, facts })
}

/// Whether the process lets the kernel give it transparent huge pages (`PR_SET_THP_DISABLE`); Linux 5.0 tells.
fn thp_allowed(status: &str) -> Option<bool> {
    status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).map(|value| value.trim() == "1")
}

fn cpus(host: &Host, status: &Status, texts: &[(u32, String)]) -> ServiceCpus {
    let list = |path: &str| host.read(path).ok().and_then(|text| CpuSet::parse_list(text.trim()).ok());
    let mine = CpuSet::parse_list(&status.allowed_cpus).unwrap_or_default();
    // The kernel allows CPUs that are not there: what is online counts.
    let online = list("/sys/devices/system/cpu/online");
    let mine = online.map_or_else(|| mine.clone(), |online| mine.intersection(&online));
    let isolated = planish_topo::isolated(host).unwrap_or_default().intersection(&mine);
    let nodes = host.read("/sys/devices/system/node/online").ok();
    let nodes = nodes.and_then(|text| NodeSet::parse_list(text.trim()).ok()).unwrap_or_default();
    let of_node = |node: &u32| {
        let cpus = list(&format!("/sys/devices/system/node/node{node}/cpulist"));
        cpus.is_some_and(|cpus| !cpus.intersection(&mine).is_empty())
    };
    ServiceCpus {
        count: u32::try_from(mine.count()).unwrap_or(u32::MAX),
        nodes: nodes.iter().filter(of_node).collect(),
        isolated: isolated.to_string(),
        allowed: mine.to_string(),
        allowed_nodes: status.allowed_nodes.clone(),
        wait_percent: wait_percent(host, texts),
    }
}

/// `run wait slices` of every thread, in nanoseconds (`Documentation/scheduler/sched-stats.rst`).
fn wait_percent(host: &Host, texts: &[(u32, String)]) -> Option<f64> {
    let threads = texts.iter().flat_map(|(pid, _)| {
        let folder = format!("/proc/{pid}/task");
        let names = host.list(&folder);
        // A recording may have the main thread alone.
        let names = if names.is_empty() { vec![format!("/proc/{pid}")] } else { below(&folder, &names) };
        names.into_iter()
    });
    let (mut run, mut wait, mut seen) = (0.0, 0.0, false);
    for thread in threads.take(THREADS_MAX) {
        let Ok(text) = host.read(&format!("{thread}/schedstat")) else { continue };
        let mut numbers = text.split_whitespace().map_while(|word| word.parse::<f64>().ok());
        if let (Some(ran), Some(waited)) = (numbers.next(), numbers.next()) {
            (run, wait, seen) = (run + ran, wait + waited, true);
        }
    }
    // Of a service that has hardly run, the wait before its first instruction would be half of all.
    (seen && run + wait >= TELLING_NS).then(|| 100.0 * wait / (run + wait))
}

fn below(folder: &str, names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{folder}/{name}")).collect()
}

/// Fields 10 and 12 of stat, of all processes.
fn faults(host: &Host, texts: &[(u32, String)]) -> ServiceFaults {
    let mut faults = ServiceFaults::default();
    for (pid, _) in texts {
        let Ok(text) = host.read_lossy(&format!("/proc/{pid}/stat")) else { continue };
        // The name stands in parentheses and may hold anything.
        let fields: Vec<&str> =
            text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let field =
            |number: usize| fields.get(number - 3).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        faults.minor = faults.minor.saturating_add(field(10));
        faults.major = faults.major.saturating_add(field(12));
    }
    faults
}

fn memory(
    host: &Host,
    pid: u32,
    status: &Status,
    cpus: &ServiceCpus,
    unread: &mut Vec<String>,
) -> Option<ServiceMemory> {
    let process = match Process::read(host, pid) {
        Ok(process) => process,
        Err(error) => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            unread.push(format!("{error}{cause}"));
            return None;
        }
    };
    let total = process.total();
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for row in process.rows() {
        if let Some(node) = row.node {
            let bytes = nodes.entry(node).or_default();
            *bytes = bytes.saturating_add(row.resident_bytes);
        }
    }
    let local = |node: u32| cpus.nodes.contains(&node);
    Some(ServiceMemory {
        base_bytes: total.base_bytes,
        thp_bytes: total.thp_bytes,
        hugetlb_bytes: total.hugetlb_bytes,
        nodes: nodes.into_iter().map(|(node, bytes)| NodeBytes { node, bytes, local: local(node) }).collect(),
        page_table_bytes: status.page_table_bytes,
        swap_bytes: status.swap_bytes,
        locked_bytes: status.locked_bytes,
    })
}

/// The library that answers `malloc`: one that is loaded for it goes before that of the C library.
fn allocator(host: &Host, pid: u32) -> Result<Option<String>, ReadError> {
    const KNOWN: [(&str, &str); 6] = [
        ("libjemalloc", "jemalloc"),
        ("libtcmalloc", "tcmalloc"),
        ("libmimalloc", "mimalloc"),
        ("libhoard", "hoard"),
        ("libc.so.6", "glibc"),
        ("ld-musl-", "musl"),
    ];
    // Maps that may be read are a part of smaps, which a recording has.
    let text = host.read_lossy(&format!("/proc/{pid}/maps")).or_else(|error| match error {
        ReadError::Denied { .. } => Err(error),
        _ => host.read(&format!("/proc/{pid}/smaps")),
    })?;
    let files = text.lines().filter_map(|line| line.rsplit_once('/').map(|(_, name)| name));
    let found: Vec<&str> = files
        .filter_map(|file| KNOWN.iter().find(|(start, _)| file.starts_with(start)))
        .map(|(_, name)| *name)
        .collect();
    Ok(KNOWN.iter().find(|(_, name)| found.contains(name)).map(|(_, name)| (*name).to_owned()))
}

#[cfg(test)]
mod tests;
