//! CPUs that are isolated on the running kernel: a partition of control groups.
//!
//! ```text
//!   /sys/fs/cgroup                 root: all CPUs but those of the partition, for everybody else
//!   ├── system.slice, user.slice, init.scope, machine.slice
//!   └── planish.slice              AllowedCPUs=, cpuset.cpus.partition = isolated
//!       ├── realtime.service       CPUAffinity= of its own
//!       └── ...
//! ```
//!
//! One slice right below the root holds all services whose CPUs are isolated: a group of the second level can be a
//! partition only where every group above it is one too, or on kernels since 6.7 that hand CPUs down. The kernel takes
//! the CPUs away from every other group by itself, so that those need no limit of their own.
//!
//! systemd makes the group when the first service of the slice starts: before that there is nothing to write to, and a
//! service that still runs outside of it would lose its CPUs. So files come first, and the partition with the
//! apply after the restart. systemd since 261 makes it by itself (`CPUSetPartition=`), at every start.

use planish_model::{
    Isolation, Observation, Persisted, PlacedPartition, PlacedService, Placement, PlacementRequest,
};

use super::{Ask, PlacementError, What, ask};
use crate::verdict::is_older;

/// Isolated partitions are in Linux since 6.1. Before 6.2 (`sched: Always preserve the user requested cpumask`) a new
/// one sets every task of the groups it changes to the CPUs of its group: what was pinned anywhere loses its pins, and
/// the end of the partition does not bring them back.
const KERNEL_MIN: &str = "6.2";

/// What isolates the CPUs of the services that ask for it before the next boot.
pub(super) fn partition(
    observation: &Observation,
    request: &PlacementRequest,
    placement: &Placement,
) -> Result<Option<PlacedPartition>, PlacementError> {
    let cpus = placement.isolated();
    if cpus.is_empty() || request.isolation == Isolation::Boot {
        return Ok(None);
    }
    let kernel = &observation.host.kernel;
    let old = is_older(kernel, KERNEL_MIN)
        .then(|| format!("a kernel isolates control groups since {KERNEL_MIN}, this is {kernel}"));
    let seen = observation.machine.as_ref().map(|machine| machine.partitions.clone()).unwrap_or_default();
    let hindered = seen.hindered.or(old);
    if let (Isolation::Now, Some(reason)) = (request.isolation, &hindered) {
        return Err(PlacementError::NoPartition { cpus, reason: reason.clone() });
    }
    let slice = Persisted::OWN_SLICE.to_owned();
    let waits = match &seen.slice {
        _ if hindered.is_some() => None,
        // The scheduler leaves them alone already, and the kernel need not be asked again.
        _ if request.isolation == Isolation::Both && cpus.is_within(&seen.isolated) => {
            Some("the boot has isolated them already".to_owned())
        }
        Some(given) if *given == cpus => None,
        Some(given) => {
            Some(format!("{slice} has CPU {given} until systemd reads its file and it starts anew"))
        }
        None => {
            Some(format!("{slice} starts with the first of its services: restart them, then apply again"))
        }
    };
    Ok(Some(PlacedPartition { slice, cpus, waits, hindered }))
}

/// The partition that is to be, where there can be one.
fn made(placement: &Placement) -> Option<&PlacedPartition> {
    placement.partition.as_ref().filter(|partition| partition.hindered.is_none())
}

/// What puts a service into the slice, behind its other settings.
pub(super) fn slice_of(service: &PlacedService, placement: &Placement) -> String {
    let slice = made(placement).filter(|_| service.isolated);
    slice.map(|partition| format!(" Slice={}", partition.slice)).unwrap_or_default()
}

/// The slice and its partition.
pub(super) fn asks(isolation: Isolation, placement: &Placement) -> Vec<Ask> {
    let Some(PlacedPartition { slice, cpus, waits, .. }) = made(placement) else { return Vec::new() };
    let because = format!("CPU {cpus} for services that pin their threads");
    let settings = format!("AllowedCPUs={cpus} CPUSetPartition=isolated");
    let file = format!("/etc/systemd/system/{slice}");
    let place = format!("/sys/fs/cgroup/{slice}/cpuset.cpus.partition");
    let value = "isolated".to_owned();
    // Where boot parameters isolate too, a partition that cannot be written is no reason to place nothing.
    let required = isolation == Isolation::Now;
    let partition = match waits {
        None => What::Value { place, value, required },
        Some(reason) => What::Later { place, value, reason: reason.clone() },
    };
    let partition = Ask {
        knob: planish_model::KnobId::new("cpuset.partition"),
        what: partition,
        because: because.clone(),
    };
    vec![ask("unit.slice", &file, settings, true, because), partition]
}
