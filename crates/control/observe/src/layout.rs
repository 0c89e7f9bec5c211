//! What a machine is made of, for a placement: asked for by itself, since most commands place nothing.

use planish_host::{Access, Host};
use planish_model::{
    Cpus, DeviceKind, Machine, MachineCpu, MachineDevice, MachineIrq, MachineNode, PartitionCpus, Partitions,
    Persisted,
};
use planish_sorted::CollectMap as _;
use planish_sys::CpuSet;
use planish_topo::{Device, Irq, Topology};

use crate::parts::{self, ROOT};
use crate::placed;
use crate::writers;

/// CPUs, nodes, devices and interrupts, and those of the units that are there.
#[must_use]
pub fn machine(host: &Host, units: &[&str]) -> Machine {
    let topology = Topology::read(host);
    let cpus = topology.cpus.iter().map(|cpu| MachineCpu {
        id: cpu.id,
        node: cpu.node,
        online: cpu.online,
        threads: cpus(&cpu.threads),
    });
    let nodes =
        topology.nodes.iter().map(|node| MachineNode { id: node.id, memory_bytes: node.memory_bytes });
    let disks = topology.disks.iter().map(|disk| (DeviceKind::Disk, disk));
    let devices = disks.chain(topology.nics.iter().map(|nic| (DeviceKind::Nic, nic)));
    let devices = devices.filter(|(_, device)| !device.is_virtual);
    let there = units.iter().filter(|unit| writers::has_unit(host, unit));
    Machine {
        cpus: cpus.collect(),
        nodes: nodes.collect(),
        devices: devices.map(|(kind, found)| device(host, kind, found)).collect(),
        irqs: topology
            .irqs
            .iter()
            .filter(|irq| !irq.users.is_empty())
            .map(|found| irq(host, found))
            .collect(),
        unit_files: units
            .iter()
            .map(|unit| ((*unit).to_owned(), placed::unit_files(host, unit)))
            .collect_map(),
        units: there.map(|unit| (*unit).to_owned()).collect(),
        systemd: writers::is_systemd(host),
        partitions: partitions(host),
        pinned: parts::pinned(host),
        parts: parts::limits(host),
        has_cpusets: parts::has_cpusets(host),
        session: parts::session(host),
    }
}

/// What the control groups of a host can do for isolation (Documentation/admin-guide/cgroup-v2.rst). Whether this
/// kernel takes the word `isolated` only a write would tell.
fn partitions(host: &Host) -> Partitions {
    // Every group has a type but the root of the tree, which a container does not see.
    let below_root = || {
        let is_below = host.exists(&format!("{ROOT}/cgroup.type"));
        is_below.then_some("a group below the root of the tree is mounted here, as in a container")
    };
    let hindered = parts::without_cpuset(host).or_else(below_root);
    let list = |path: String| Cpus::parse(host.read(&path).ok()?.trim());
    let group = format!("{ROOT}/{}", Persisted::OWN_SLICE);
    let has_boot_cpu =
        |group: &String| list(format!("{ROOT}/{group}/cpuset.cpus")).is_some_and(|cpus| cpus.contains(0));
    let groups = if hindered.is_none() { host.list(ROOT) } else { Vec::new() };
    Partitions {
        made: made(host),
        with_boot_cpu: groups.into_iter().filter(has_boot_cpu).collect(),
        hindered: hindered.map(str::to_owned),
        slice: list(format!("{group}/cpuset.cpus")),
        isolated: list("/sys/devices/system/cpu/isolated".to_owned()).unwrap_or_default(),
    }
}

/// The groups right below the root that are partitions: nobody else may use their CPUs.
fn made(host: &Host) -> Vec<PartitionCpus> {
    let text = |group: &str, file: &str| host.read(&format!("{ROOT}/{group}/{file}")).ok();
    let of = |group: String| {
        let kind = text(&group, "cpuset.cpus.partition")?;
        let cpus = text(&group, "cpuset.cpus.effective").or_else(|| text(&group, "cpuset.cpus"))?;
        let is_made = matches!(kind.trim(), "root" | "isolated");
        let cpus = Cpus::parse(cpus.trim()).filter(|cpus| is_made && !cpus.is_empty())?;
        Some(PartitionCpus { group, cpus })
    };
    host.list(ROOT).into_iter().filter_map(of).collect()
}

fn cpus(set: &CpuSet) -> Cpus {
    set.iter().collect()
}

fn device(host: &Host, kind: DeviceKind, device: &Device) -> MachineDevice {
    let folder = device.pci.as_ref().map(|address| format!("/sys/bus/pci/devices/{address}/msi_irqs"));
    let irqs = folder.map(|folder| host.list(&folder)).unwrap_or_default();
    MachineDevice {
        name: device.name.clone(),
        kind,
        node: device.node,
        pci: device.pci.clone(),
        irqs: irqs.iter().filter_map(|number| number.parse().ok()).collect(),
    }
}

fn irq(host: &Host, irq: &Irq) -> MachineIrq {
    let place = format!("/proc/irq/{}/smp_affinity_list", irq.id);
    // Recent kernels take the right to write away from those that cannot be moved (kernel/irq/proc.c).
    let locked =
        matches!(host.access(&place), Access::ReadOnly).then(|| "the kernel lets nobody move it".to_owned());
    let by_kernel = || "the kernel places it by itself (managed)".to_owned();
    let managed = irq.managed.unwrap_or_else(|| irq.users.iter().any(|user| is_managed_by_name(user)));
    let tied = || is_tied(host, irq).then(|| "it belongs to one CPU, or to the clock".to_owned());
    MachineIrq {
        id: irq.id,
        users: irq.users.clone(),
        cpus: cpus(&irq.cpus),
        node: irq.node,
        fixed: if managed { Some(by_kernel()) } else { tied().or(locked) },
    }
}

/// Whether an interrupt is of one CPU, or of a clock that must not wander: older kernels let its file be opened for
/// writing and refuse the write (`kernel/irq/manage.c`, `irq_can_set_affinity_usr`). debugfs tells; without it the
/// names of chips and of those who ask for such interrupts do.
fn is_tied(host: &Host, irq: &Irq) -> bool {
    let text = |path: String| host.read(&path).unwrap_or_default();
    let state = text(format!("/sys/kernel/debug/irq/irqs/{}", irq.id));
    let flagged = ["IRQD_PER_CPU", "IRQD_NO_BALANCING"].into_iter().any(|flag| state.contains(flag));
    flagged
        || text(format!("/sys/kernel/irq/{}/chip_name", irq.id)).contains("percpu")
        || irq.users.iter().any(|user| is_tied_by_name(user))
}

/// The timer of the machine, and those of single CPUs.
fn is_tied_by_name(user: &str) -> bool {
    let number = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
    let per_cpu = ["arch_timer", "arm-pmu", "arm_pmu", "arch_mem_timer", "kvm guest vtimer"];
    user == "timer" || per_cpu.contains(&user) || user.strip_prefix("hpet").is_some_and(number)
}

/// Whether an interrupt is one that its driver hands to the kernel to place, where debugfs cannot be asked: the queues
/// of NVMe disks but the first (`drivers/nvme/host/pci.c`), and those of virtio disks (`drivers/block/virtio_blk.c`).
fn is_managed_by_name(user: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().ok();
    let nvme = user.strip_prefix("nvme").and_then(|rest| rest.split_once('q'));
    let queue = nvme.and_then(|(disk, queue)| number(disk).and(number(queue)));
    let virtio = user.strip_prefix("virtio").and_then(|rest| rest.split_once("-req."));
    queue.is_some_and(|queue| queue > 0) || virtio.is_some_and(|(device, _)| number(device).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_stay_where_they_are() {
        for name in ["timer", "arch_timer", "hpet2", "arm-pmu"] {
            assert!(is_tied_by_name(name), "{name}");
        }
        for name in ["rtc0", "hpet", "acpi", "timer-eth0", "eno1-TxRx-1", ""] {
            assert!(!is_tied_by_name(name), "{name}");
        }
    }

    #[test]
    fn queues_that_the_kernel_places_are_known_by_name() {
        for name in ["nvme0q1", "nvme10q64", "virtio1-req.0"] {
            assert!(is_managed_by_name(name), "{name}");
        }
        for name in ["nvme0q0", "eno1-TxRx-1", "virtio0-input.0", "nvmeq1", "ahci[0000:00:17.0]", ""] {
            assert!(!is_managed_by_name(name), "{name}");
        }
    }
}
