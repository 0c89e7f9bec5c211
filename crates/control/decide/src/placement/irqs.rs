//! Where each interrupt goes.
//!
//! Interrupts that the kernel places by itself (managed: the queues of NVMe disks and of some cards) refuse a write
//! and are named as left alone: they fire only on the CPU that asked the device for something.

use planish_model::{
    Cpus, Interrupts, Machine, MachineDevice, MachineIrq, PlacedIrq, Placement, PlacementRequest, place,
};

use super::error::PlacementError;

/// Every interrupt that somebody asked for, with its CPUs or with why it stays.
pub(super) fn interrupts(
    machine: &Machine,
    request: &PlacementRequest,
    placement: &Placement,
) -> Result<Vec<PlacedIrq>, PlacementError> {
    refuse_shared(request)?;
    let mut turns = vec![0; placement.services.len()];
    let cores: Vec<Vec<u32>> =
        placement.services.iter().map(|service| first_threads(machine, &service.cpus)).collect();
    let mut placed = Vec::new();
    for irq in machine.irqs.iter().filter(|irq| !irq.users.is_empty()) {
        let by_request = request.leave.iter().find(|pattern| is_named(irq, pattern));
        let left = irq.fixed.clone().or_else(|| by_request.map(|pattern| format!("leave = [\"{pattern}\"]")));
        let owner = owner(machine, request, irq).filter(|_| request.interrupts == Interrupts::Service);
        let cpus = match (&left, owner) {
            (Some(_), _) => irq.cpus.clone(),
            (None, Some(service)) => {
                let (cores, turn) = (&cores[service], turns[service]);
                turns[service] += 1;
                Cpus::from_iter([cores[turn % cores.len()]])
            }
            (None, None) => kept(machine, irq, &placement.housekeeping),
        };
        placed.push(PlacedIrq { id: irq.id, users: irq.users.clone(), cpus, left });
    }
    Ok(placed)
}

/// Refuses a device whose interrupts two services would take.
fn refuse_shared(request: &PlacementRequest) -> Result<(), PlacementError> {
    if request.interrupts != Interrupts::Service {
        return Ok(());
    }
    for (index, service) in request.service.iter().enumerate() {
        for other in &request.service[..index] {
            if let Some(device) = service.devices.iter().find(|device| other.devices.contains(device)) {
                let (a, b, device) = (other.unit.clone(), service.unit.clone(), device.clone());
                return Err(PlacementError::SharedDevice { a, b, device });
            }
        }
    }
    Ok(())
}

/// Housekeeping CPUs for an interrupt: those it has, if it has no others; else those of its node, or all.
fn kept(machine: &Machine, irq: &MachineIrq, housekeeping: &Cpus) -> Cpus {
    if !irq.cpus.is_empty() && irq.cpus.is_within(housekeeping) {
        return irq.cpus.clone();
    }
    let on_node = |cpu: &u32| machine.cpu(*cpu).is_some_and(|cpu| cpu.node.is_some() && cpu.node == irq.node);
    let near: Cpus = housekeeping.iter().filter(on_node).collect();
    if near.is_empty() { housekeeping.clone() } else { near }
}

/// One CPU of each core.
fn first_threads(machine: &Machine, cpus: &Cpus) -> Vec<u32> {
    let is_first = |cpu: &u32| {
        let threads = machine.cpu(*cpu).map(|cpu| cpu.threads.intersection(cpus)).unwrap_or_default();
        threads.is_empty() || threads.first() == Some(*cpu)
    };
    cpus.iter().filter(is_first).collect()
}

/// The service that works with the device of an interrupt.
fn owner(machine: &Machine, request: &PlacementRequest, irq: &MachineIrq) -> Option<usize> {
    let of = |name: &String| {
        let device = machine.devices.iter().find(|device| device.name == *name);
        device.is_some_and(|device| is_of(device, irq))
    };
    request.service.iter().position(|service| service.devices.iter().any(of))
}

/// Whether an interrupt is a device's: by the list in the device's folder, or by the names that drivers give
/// (`eno1-TxRx-0`, `nvme0q3` of `nvme0n1`, `mlx5_comp1@pci:0000:17:00.0`).
fn is_of(device: &MachineDevice, irq: &MachineIrq) -> bool {
    if device.irqs.contains(&irq.id) {
        return true;
    }
    let by_name = |user: &String| {
        let rest = user.strip_prefix(device.name.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    let controller = device.name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
    let by_queue = |user: &String| {
        let queue = user.strip_prefix("nvme").and_then(|rest| rest.split_once('q'));
        controller.zip(queue).is_some_and(|((disk, _), (of, _))| disk == of)
    };
    let by_address =
        |user: &String| device.pci.as_ref().is_some_and(|address| user.contains(address.as_str()));
    irq.users.iter().any(|user| by_name(user) || by_queue(user) || by_address(user))
}

/// Whether a pattern means an interrupt, by its number or by a name.
fn is_named(irq: &MachineIrq, pattern: &str) -> bool {
    pattern == irq.id.to_string() || irq.users.iter().any(|user| place::matches(pattern, user))
}
