//! What the files of a unit say against its place: it is no unit of its own, nobody can start it, or it may not use
//! what it would get. The kernel gives a thread none of the CPUs that its group has not, and systemd fails to start a
//! service that it cannot pin.

use std::collections::BTreeSet;

use planish_model::{
    Cpus, Machine, MemoryPolicy, PlacedService, Placement, PlacementRequest, UnitLimit, nearest,
};

use super::{PlacementError, error, partition};

/// The unit of the host that may be meant by one that is not there, and that is not placed itself.
pub(super) fn meant(service: &PlacedService, machine: &Machine, here: &BTreeSet<String>) -> Option<String> {
    // What all names end in would make any two of them alike.
    let stem = service.unit.strip_suffix(".service")?;
    let is_placed = |stem: &str| machine.units.iter().any(|unit| unit.strip_suffix(".service") == Some(stem));
    let others = here.iter().map(String::as_str).filter(|other| !is_placed(other));
    nearest(stem, others).map(|stem| format!("{stem}.service"))
}

/// Refuses units that are no units of their own, or that run nothing.
pub(super) fn refuse_names(machine: &Machine, request: &PlacementRequest) -> Result<(), PlacementError> {
    for service in &request.service {
        let Some(files) = machine.unit_files.get(&service.unit) else { continue };
        let unit = service.unit.clone();
        if let Some(real) = files.stands_for.clone() {
            return Err(PlacementError::Alias { unit, real });
        }
        if let Some(by) = files.masked.clone() {
            return Err(PlacementError::Masked { unit, by });
        }
        if let Some(by) = files.runs_nothing.clone() {
            return Err(PlacementError::RunsNothing { unit, by });
        }
        if let Some((program, by)) = files.pins_itself.clone() {
            return Err(PlacementError::PinsItself { unit, program, by });
        }
    }
    Ok(())
}

/// Refuses CPUs and nodes that the unit, or a slice that it lies in, may not use.
pub(super) fn refuse_limits(
    machine: &Machine,
    request: &PlacementRequest,
    placement: &Placement,
) -> Result<(), PlacementError> {
    for (asked, placed) in request.service.iter().zip(&placement.services) {
        // In the slice of planish it has left those that it lay in.
        let is_moved = !partition::slice_of(placed, placement).is_empty();
        let counts = |limit: &&UnitLimit| limit.unit == placed.unit || !is_moved;
        let limits = machine.unit_files.get(&placed.unit).map(|files| files.limits.as_slice());
        let needs_nodes = placed.memory != MemoryPolicy::Any || !asked.pools.is_empty();
        for limit in limits.unwrap_or_default().iter().filter(counts) {
            if limit.is_memory && !needs_nodes {
                continue;
            }
            let wanted = wanted(placed, limit.is_memory);
            if !wanted.is_within(&limit.list) {
                let (unit, what) = (placed.unit.clone(), error::words(limit.is_memory, &wanted));
                return Err(PlacementError::Limited { unit, what, limit: Box::new(limit.clone()) });
            }
        }
    }
    Ok(())
}

fn wanted(placed: &PlacedService, is_memory: bool) -> Cpus {
    if is_memory { placed.nodes.iter().copied().collect() } else { placed.cpus.clone() }
}
