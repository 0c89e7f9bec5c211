//! Facts of the machine: what it is, and whether something stands between us and the metal.
//!
//! A guest and a container are told by evidence that the hypervisor or runtime cannot help leaving, not by
//! names: an image that carries `/.dockerenv` may well run as a virtual machine of its own.

use planish_host::devices::{ETHTOOL_FOLDER, SESSION_NICS};
use planish_host::{Access, Host, mounts};
use planish_model::{HostFacts, NodeMemory, Vendor};
use planish_sys::NodeSet;

use crate::observe::Shared;
use crate::tables;

/// Facts of the host.
pub(crate) fn facts(host: &Host, shared: &Shared) -> HostFacts {
    let memory = tables::meminfo(&shared.meminfo);
    let bytes = |name| memory.get(name).copied().unwrap_or(0);
    let cpuinfo = shared.cpuinfo.as_str();
    let (nodes, cpu_nodes) = nodes(host);
    let (os, os_version) = os(&host.read_lossy("/etc/os-release").unwrap_or_default());
    HostFacts {
        host_id: host.host_id(),
        boot_id: host.boot_id(),
        kernel: host.kernel(),
        arch: host.arch(),
        cpu_model: field(cpuinfo, &["model name", "CPU part", "cpu"]).unwrap_or_default().to_owned(),
        vendor: vendor(cpuinfo),
        os,
        os_version,
        cpus_online: cpus_online(host, cpuinfo),
        nodes,
        cpu_nodes,
        guest: guest(host, cpuinfo),
        container: container(host),
        mounts_apart: host.exists(mounts::APART),
        page_bytes: host.page_bytes(),
        thp_bytes: thp_bytes(host),
        has_thp: has(host, "transparent_hugepage"),
        has_hugetlb: has(host, "hugepages"),
        huge_page_bytes: huge_page_bytes(host, memory.get("Hugepagesize").copied()),
        memory_bytes: bytes("MemTotal"),
        available_bytes: bytes("MemAvailable"),
        root: is_root(host),
        session_nics: session_nics(host),
    }
}

/// What each node has. Node by node the kernel says nothing of what could be had: the pages of files are, but for those
/// that are shared memory.
pub(crate) fn node_memory(host: &Host, nodes: &[u32]) -> Vec<NodeMemory> {
    let of = |node: &u32| {
        let text = host.read(&format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
        let table = tables::meminfo(&text);
        let bytes = |name: &str| table.get(name).copied();
        let memory_bytes = bytes("MemTotal").filter(|bytes| *bytes > 0)?;
        let in_lists = bytes("Active(file)").zip(bytes("Inactive(file)")).map(|(a, b)| a.saturating_add(b));
        let shared = bytes("Shmem").unwrap_or(0);
        let of_files =
            in_lists.or_else(|| Some(bytes("FilePages")?.saturating_sub(shared))).unwrap_or_default();
        let available = bytes("MemFree")?.saturating_add(of_files);
        let available = available.saturating_add(bytes("SReclaimable").unwrap_or(0));
        Some(NodeMemory { node: *node, memory_bytes, available_bytes: available.min(memory_bytes) })
    };
    nodes.iter().filter_map(of).collect()
}

/// The cards through which the machine is reached; all that it has where nobody tells, as an older recording.
fn session_nics(host: &Host) -> Vec<String> {
    let told = host.read(SESSION_NICS).map(|text| text.lines().map(str::to_owned).collect());
    told.unwrap_or_else(|_| host.list(ETHTOOL_FOLDER))
}

/// The first field of `/proc/cpuinfo` that has one of the names.
fn field<'a>(cpuinfo: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == *name).then(|| value.trim())
        })
    })
}

/// Who made the CPU: x86 says it in a word, Arm by the number of who designed the core.
fn vendor(cpuinfo: &str) -> Option<Vendor> {
    match field(cpuinfo, &["vendor_id", "CPU implementer"])? {
        "GenuineIntel" => Some(Vendor::Intel),
        "AuthenticAMD" | "HygonGenuine" => Some(Vendor::Amd),
        number if number.starts_with("0x") => Some(Vendor::Arm),
        _ => None,
    }
}

/// The distribution, with what it is like, and its release (`os-release(5)`).
fn os(text: &str) -> (Vec<String>, String) {
    let value = |wanted: &str| {
        let mut lines = text.lines().filter_map(|line| line.trim().split_once('='));
        let value = lines.find_map(|(name, value)| (name == wanted).then_some(value))?;
        Some(value.trim_matches(['"', '\'']))
    };
    let ids = [value("ID"), value("ID_LIKE")].into_iter().flatten();
    let ids = ids.flat_map(str::split_whitespace).map(str::to_owned).collect();
    (ids, value("VERSION_ID").unwrap_or_default().to_owned())
}

fn set(host: &Host, path: &str) -> Option<NodeSet> {
    NodeSet::parse_list(host.read(path).ok()?.trim()).ok()
}

fn cpus_online(host: &Host, cpuinfo: &str) -> u32 {
    let online = set(host, "/sys/devices/system/cpu/online").map(|online| online.count());
    let count =
        online.unwrap_or_else(|| cpuinfo.lines().filter(|line| line.starts_with("processor")).count());
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Nodes with memory, and those of them with CPUs. A kernel without NUMA is one node.
fn nodes(host: &Host) -> (Vec<u32>, Vec<u32>) {
    const FOLDER: &str = "/sys/devices/system/node";
    let memory =
        set(host, &format!("{FOLDER}/has_memory")).or_else(|| set(host, &format!("{FOLDER}/online")));
    let Some(memory) = memory.filter(|memory| !memory.is_empty()) else { return (vec![0], vec![0]) };
    let cpus = set(host, &format!("{FOLDER}/has_cpu")).unwrap_or_else(|| memory.clone());
    (memory.iter().collect(), memory.intersection(&cpus).iter().collect())
}

/// Whether a kernel has a folder of what it can do with memory; unknown where /sys is not seen. A kernel without either
/// shows none (`hugetlb_sysfs_init` of `mm/hugetlb.c`, `hugepage_init` of `mm/huge_memory.c`).
fn has(host: &Host, what: &str) -> Option<bool> {
    host.exists("/sys/kernel").then(|| host.exists(&format!("/sys/kernel/mm/{what}")))
}

/// The sizes that /sys lists; where it does not, the default one, which /proc/meminfo tells of a kernel with pools.
fn huge_page_bytes(host: &Host, default: Option<u64>) -> Vec<u64> {
    let mut sizes: Vec<u64> = host
        .list("/sys/kernel/mm/hugepages")
        .iter()
        .filter_map(|name| planish_sys::pages::parse_pool_name(name))
        .map(|bytes| bytes as u64)
        .collect();
    if sizes.is_empty() {
        sizes.extend(default);
    }
    sizes.sort_unstable();
    sizes
}

/// Bytes of a transparent huge page: 2 MiB as a rule, and 512 MiB with base pages of 64 KiB.
pub(crate) fn thp_bytes(host: &Host) -> Option<u64> {
    host.read("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?.trim().parse().ok()
}

/// Root with `CAP_SYS_ADMIN`. A recorded machine is observed with the rights that it was recorded with.
fn is_root(host: &Host) -> bool {
    if !host.is_live() {
        return host.meta().is_none_or(|meta| meta.root);
    }
    planish_sys::process::rights().is_ok_and(|rights| rights.user == 0 && rights.admin)
}

/// Evidence of a hypervisor below us.
fn guest(host: &Host, cpuinfo: &str) -> Option<String> {
    let mut evidence = Vec::new();
    // x86: CPUID leaf 1, ECX bit 31, which every hypervisor sets for its guests; dom0 of Xen is one of them.
    if field(cpuinfo, &["flags"]).is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        evidence.push("hypervisor flag of the CPU".to_owned());
    }
    if let Ok(kind) = host.read("/sys/hypervisor/type") {
        evidence.push(format!("/sys/hypervisor: {}", kind.trim()));
    }
    if host.exists("/proc/device-tree/hypervisor/compatible") {
        evidence.push("a hypervisor in the device tree".to_owned());
    }
    // On x86 the flag decides: a bare-metal cloud machine carries the same vendor as its virtual sisters.
    let x86 = field(cpuinfo, &["flags"]).is_some();
    if let Some(name) = virtual_product(host).filter(|_| !x86 || !evidence.is_empty()) {
        evidence.push(name);
    }
    (!evidence.is_empty()).then(|| evidence.join(", "))
}

/// Vendor or product of the firmware tables, when it is one of a hypervisor.
fn virtual_product(host: &Host) -> Option<String> {
    const VIRTUAL: [&str; 10] = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Virtual Machine",
        "HVM domU",
        "Bochs",
        "OpenStack",
        "Google Compute",
        "Firecracker",
    ];
    ["sys_vendor", "product_name"].iter().find_map(|file| {
        let text = host.read(&format!("/sys/class/dmi/id/{file}")).ok()?;
        let text = text.trim();
        VIRTUAL.iter().any(|name| text.contains(name)).then(|| format!("{file} {text}"))
    })
}

/// Evidence of a container around us.
fn container(host: &Host) -> Option<String> {
    if host.access("/proc/sys/vm/swappiness") == Access::ReadOnlyMount {
        return Some("/proc/sys is mounted read-only".to_owned());
    }
    // Kernel threads are seen in the first PID namespace only: whoever sees them is not in a container,
    // whatever files the image left behind.
    if host.read("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        return None;
    }
    let marker = ["/run/.containerenv", "/.dockerenv", "/run/systemd/container"];
    if let Some(file) = marker.into_iter().find(|file| host.exists(file)) {
        return Some(format!("{file} is there"));
    }
    let groups = host.read_lossy("/proc/1/cgroup").unwrap_or_default();
    let runtime =
        ["docker", "kubepods", "libpod", "lxc", "containerd"].into_iter().find(|name| groups.contains(name));
    runtime.map(|name| format!("process 1 is in a cgroup of {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_tells_its_name_what_it_is_like_and_its_release() {
        let text = "NAME=\"SLES\"\nVERSION_ID=\"15.5\"\nID=\"sles_sap\"\nID_LIKE=\"sles suse\"\n";
        let (ids, version) = os(text);
        assert_eq!((ids.join(" ").as_str(), version.as_str()), ("sles_sap sles suse", "15.5"));
        assert_eq!(os(""), (Vec::new(), String::new()));
    }

    #[test]
    fn makers_are_known_by_their_words_and_numbers() {
        assert_eq!(vendor("processor : 0\nvendor_id : AuthenticAMD\n"), Some(Vendor::Amd));
        assert_eq!(vendor("vendor_id\t: GenuineIntel\n"), Some(Vendor::Intel));
        assert_eq!(vendor("CPU implementer\t: 0x41\n"), Some(Vendor::Arm));
        assert_eq!(vendor("vendor_id : IBM/S390\n"), None);
    }
}
