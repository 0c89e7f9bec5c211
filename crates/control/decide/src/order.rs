//! The order of a plan's steps: what another step depends on is written first.
//!
//! Pools come first, the largest pages first of all, since every other write and every second of waiting
//! leaves memory more scattered. A value that the kernel recomputes when another one is set (`derives`) comes
//! after it, or it would be overwritten at once. The other face of an alias comes before: once the governor
//! `performance` pins the energy hint, writes of the hint are refused, on the way there and, in reverse
//! order, on the way back. What a row names in `after` comes before it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use planish_model::{Catalogue, Knob, KnobId, Step, Undo};

/// Knobs in the order in which they are set: dependencies first, then by id.
#[must_use]
pub fn in_order(wanted: &BTreeSet<KnobId>, catalogue: &Catalogue) -> Vec<KnobId> {
    let mut ids: Vec<KnobId> = wanted.iter().cloned().collect();
    ids.sort_by_cached_key(|id| (depth(id, wanted, catalogue, &mut Vec::new()), id.clone()));
    ids
}

/// Sorts steps by dependency, then by id; places of one knob stay in the order in which they were seen.
pub(crate) fn sort(steps: &mut [Step], page_bytes: impl Fn(&Step) -> u64, catalogue: &Catalogue) {
    let wanted: BTreeSet<KnobId> = steps.iter().map(|step| step.knob.clone()).collect();
    let depths: BTreeMap<KnobId, usize> =
        wanted.iter().map(|id| (id.clone(), depth(id, &wanted, catalogue, &mut Vec::new()))).collect();
    steps.sort_by_cached_key(|step| {
        let pool = step.undo == Undo::Subtract;
        let size = if pool { page_bytes(step) } else { 0 };
        (Reverse(size), depths[&step.knob], step.knob.clone())
    });
}

/// How many wanted knobs must be set before this one: the longest chain of them.
fn depth(id: &KnobId, wanted: &BTreeSet<KnobId>, catalogue: &Catalogue, path: &mut Vec<KnobId>) -> usize {
    if path.contains(id) {
        // Two knobs that change each other have no order: the id decides.
        return 0;
    }
    path.push(id.clone());
    let deepest = wanted
        .iter()
        .filter(|other| *other != id)
        .filter(|other| {
            let derives = catalogue.knob(other).is_ok_and(|knob| knob.derives.contains(id));
            let own = |knob: &Knob| knob.alias.contains(other) || knob.after.contains(other);
            derives || catalogue.knob(id).is_ok_and(own)
        })
        .map(|other| depth(other, wanted, catalogue, path) + 1)
        .max();
    path.pop();
    deepest.unwrap_or(0)
}
