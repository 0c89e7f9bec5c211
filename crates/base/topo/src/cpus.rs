//! Logical CPUs: where each sits and whether it can be used.

use planish_host::Host;
use planish_sys::CpuSet;
use serde::Serialize;

use crate::allowed;
use crate::reader::{Reader, as_list};

const CPU: &str = "/sys/devices/system/cpu";

/// A logical CPU (a hardware thread).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Number that the kernel gave it.
    pub id: u32,
    /// Number of its core, unique within its package and die only; `None` while it is offline.
    pub core: Option<u32>,
    /// Number of its package (socket); `None` while it is offline, or where the firmware tells none.
    pub package: Option<u32>,
    /// Number of its die within the package, where the kernel tells (Linux 5.2).
    pub die: Option<u32>,
    /// Number of its cluster (cores that share a cache below the package's), where the kernel tells (Linux
    /// 5.16).
    pub cluster: Option<u32>,
    /// NUMA node that it belongs to.
    pub node: Option<u32>,
    /// Whether the kernel uses it.
    pub online: bool,
    /// Whether the observing process may run on it, by its affinity and its cgroup.
    pub allowed: bool,
    /// The hardware threads of its core, itself included; empty while it is offline.
    #[serde(serialize_with = "as_list")]
    pub threads: CpuSet,
}

/// All CPUs, by number; their nodes are not known yet.
pub(crate) fn read(reader: &mut Reader) -> Vec<Cpu> {
    let present = present(reader);
    let online = online(reader, &present);
    let allowed =
        allowed::read(reader).map_or_else(|| online.clone(), |allowed| allowed.intersection(&online));
    let mut cpus = Vec::with_capacity(present.count());
    for id in present.iter() {
        let topology = format!("{CPU}/cpu{id}/topology");
        let is_online = online.contains(id);
        let mut number = |name: &str| {
            let told = is_online.then(|| reader.number::<u32>(&format!("{topology}/{name}"))).flatten();
            // 65535 and u32::MAX stand for "unknown" on some Arm and virtual machines.
            told.filter(|number| *number != u32::MAX && *number != u32::from(u16::MAX))
        };
        let (core, package) = (number("core_id"), number("physical_package_id"));
        let (die, cluster) = (number("die_id"), number("cluster_id"));
        let threads = if is_online { threads(reader, &topology, id) } else { CpuSet::new() };
        cpus.push(Cpu {
            id,
            core,
            package,
            die,
            cluster,
            node: None,
            online: is_online,
            allowed: allowed.contains(id),
            threads,
        });
    }
    cpus
}

/// The CPUs that the machine has, whether in use or not; none where it tells of none.
pub fn present_cpus(host: &Host) -> CpuSet {
    present(&mut Reader::new(host))
}

fn present(reader: &mut Reader) -> CpuSet {
    let folders: CpuSet = reader.numbered(CPU, "cpu").into_iter().collect();
    let told = reader.list(&format!("{CPU}/present")).unwrap_or_default();
    let present = folders.union(&told);
    if present.is_empty() { from_stat(reader) } else { present }
}

/// The CPUs that have a line in /proc/stat: all that is left where /sys is hidden.
fn from_stat(reader: &Reader) -> CpuSet {
    let text = reader.text("/proc/stat").unwrap_or_default();
    let number = |line: &str| line.split_whitespace().next()?.strip_prefix("cpu")?.parse().ok();
    let in_range = |number: &u32| *number <= planish_sys::set::ID_MAX;
    text.lines().filter_map(number).filter(in_range).collect()
}

fn online(reader: &mut Reader, present: &CpuSet) -> CpuSet {
    if let Some(online) = reader.list::<planish_sys::set::Cpu>(&format!("{CPU}/online")) {
        return online.intersection(present);
    }
    // Kernels that cannot take a CPU offline have no such file: then it is online.
    let is_online = |id: &u32| reader.text(&format!("{CPU}/cpu{id}/online")).is_none_or(|text| text != "0");
    present.iter().filter(is_online).collect()
}

/// The hardware threads of a CPU's core that are online, itself included; `None` where the kernel does not tell.
pub fn core_threads(host: &Host, id: u32) -> Option<CpuSet> {
    told_threads(&mut Reader::new(host), &format!("{CPU}/cpu{id}/topology"), id)
}

fn threads(reader: &mut Reader, topology: &str, id: u32) -> CpuSet {
    told_threads(reader, topology, id).unwrap_or_else(|| [id].into_iter().collect())
}

/// `core_cpus` is the newer name of `thread_siblings` (Linux 5.3). A CPU is one of its own core whatever the file says:
/// a core without it would have no first thread.
fn told_threads(reader: &mut Reader, topology: &str, id: u32) -> Option<CpuSet> {
    let told: CpuSet = ["core_cpus", "thread_siblings"].into_iter().find_map(|name| {
        reader.list_or_mask(&format!("{topology}/{name}_list"), &format!("{topology}/{name}"))
    })?;
    Some(told.union(&[id].into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes a host of its own")]
    fn a_cpu_is_one_of_its_own_core_whatever_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, list) in [(1, "5\n"), (5, "1\n")] {
            let topology = folder.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("core_cpus_list"), list).unwrap();
        }
        let host = Host::open(folder.path()).unwrap();
        let told = |cpu| core_threads(&host, cpu).map(|threads| threads.to_string());
        assert_eq!([told(1), told(5), told(7)], [Some("1,5".to_owned()), Some("1,5".to_owned()), None]);
    }
}
