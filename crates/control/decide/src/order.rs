//! The order of a plan's steps: what another step depends on is written first.
//!
//! Pools come first, the largest pages first of all, since every other write and every second of waiting
//! leaves memory more scattered. A value that the kernel recomputes when another one is set (`derives`) comes
//! after it, or it would be overwritten at once. The other face of an alias comes before: once the governor
//! `performance` pins the energy hint, writes of the hint are refused, on the way there and, in reverse
//! order, on the way back. It comes after a governor that pins nothing, since the one of before may. What a row names
//! in `after` comes before it.
//!
//! Between two writes the host lives with one of them: whatever is refused as the end of a plan must be no state on the
//! way there either. A limit stands before the mode that enforces it (`enforces`), and the mode is left before the
//! limit moves; of values that bound each other those come first that ease ([`keep_bounds`]). An undo goes the same way
//! back: by the values that it writes, since whoever wrote an entry may have gone another way
//! ([`back`](crate::back)).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use planish_model::{Bound, Catalogue, Knob, KnobId, Observation, Pin, Step, Undo, place};
use planish_sorted::{CollectMap as _, SortSmall as _};

use crate::{against, bounds};

/// Knobs, each with the values that it may be set to.
pub type Values = BTreeMap<KnobId, BTreeSet<String>>;

/// Knobs in the order in which they are set: dependencies first, then by id.
#[must_use]
pub fn in_order(wanted: &Values, catalogue: &Catalogue) -> Vec<KnobId> {
    let depths = depths(wanted, catalogue);
    let mut ids: Vec<KnobId> = wanted.keys().cloned().collect();
    ids.sort_small_by_key(|id| depths[id]);
    ids
}

/// Sorts steps by dependency, then by id; places of one knob stay in the order in which they were seen.
pub(crate) fn sort(steps: &mut [Step], page_bytes: impl Fn(&Step) -> u64, catalogue: &Catalogue) {
    let mut wanted = Values::new();
    for step in steps.iter() {
        wanted.entry(step.knob.clone()).or_default().insert(step.wanted.clone());
    }
    let depths = depths(&wanted, catalogue);
    steps.sort_small_by_cached_key(|step| {
        let pool = step.undo == Undo::Subtract;
        let size = if pool { page_bytes(step) } else { 0 };
        (Reverse(size), depths[&step.knob], step.knob.clone())
    });
}

/// How many wanted knobs must be set before each: the longest chain of them.
fn depths(wanted: &Values, catalogue: &Catalogue) -> BTreeMap<KnobId, usize> {
    let before = before(wanted, catalogue);
    wanted.keys().map(|id| (id.clone(), depth(id, &before, &mut Vec::new()))).collect_map()
}

/// How many of some places and values must be set before each; none where it does not matter. Pools have an order of
/// their own.
#[must_use]
pub fn depths_of(values: &[Option<(String, String)>], catalogue: &Catalogue) -> Vec<usize> {
    let ids = |knob: &Knob| -> Vec<KnobId> {
        let limits = knob.enforces.iter().flat_map(|enforces| &enforces.limits);
        knob.derives.iter().chain(&knob.alias).chain(&knob.after).chain(limits).cloned().collect()
    };
    let leading = catalogue.knobs().filter(|knob| knob.undo != Undo::Subtract && !ids(knob).is_empty());
    let related: BTreeSet<KnobId> =
        leading.flat_map(|knob| ids(knob).into_iter().chain([knob.id.clone()])).collect();
    let related: Vec<&Knob> = related.iter().filter_map(|id| catalogue.knob(id).ok()).collect();
    let knob_at = |place: &str| related.iter().find(|knob| place::captures(&knob.path, place).is_some());
    let knobs: Vec<Option<&KnobId>> =
        values.iter().map(|value| Some(&knob_at(&value.as_ref()?.0)?.id)).collect();
    let mut wanted = Values::new();
    for (id, value) in knobs.iter().zip(values) {
        if let (Some(id), Some((_, value))) = (id, value) {
            wanted.entry((*id).clone()).or_default().insert(value.clone());
        }
    }
    let depths = depths(&wanted, catalogue);
    knobs.into_iter().map(|id| id.map_or(0, |id| depths[id])).collect()
}

/// The wanted knobs that come right before a wanted one, by that one.
type Before<'w> = BTreeMap<&'w KnobId, BTreeSet<&'w KnobId>>;

fn before<'w>(wanted: &'w Values, catalogue: &Catalogue) -> Before<'w> {
    let mut before = Before::new();
    let mut comes = |first: &KnobId, second: &KnobId| {
        let both = wanted.get_key_value(first).zip(wanted.get_key_value(second));
        if let Some(((first, _), (second, _))) = both.filter(|_| first != second) {
            before.entry(second).or_default().insert(first);
        }
    };
    for (id, values) in wanted {
        let Ok(knob) = catalogue.knob(id) else { continue };
        knob.derives.iter().for_each(|derived| comes(id, derived));
        let pins = |pin: &Pin| pin.by == *id && values.iter().any(|value| knob.r#type.same(value, &pin.at));
        for other in &knob.alias {
            let pin = catalogue.knob(other).ok().and_then(|other| other.pinned.as_ref());
            match pin.is_none_or(pins) {
                true => comes(other, id),
                false => comes(id, other),
            }
        }
        knob.after.iter().for_each(|other| comes(other, id));
        if let Some(enforces) = &knob.enforces {
            let arrives = values.iter().any(|value| knob.r#type.same(value, &enforces.at));
            enforces.limits.iter().for_each(|limit| match arrives {
                true => comes(limit, id),
                false => comes(id, limit),
            });
        }
    }
    before
}

fn depth<'w>(id: &'w KnobId, before: &Before<'w>, path: &mut Vec<&'w KnobId>) -> usize {
    if path.contains(&id) {
        // Two knobs that change each other have no order: the id decides.
        return 0;
    }
    path.push(id);
    let others = before.get(id).into_iter().flatten();
    let deepest = others.map(|other| depth(other, before, path) + 1).max();
    path.pop();
    deepest.unwrap_or(0)
}

/// Reorders the steps that bound each other, so that no state between two of them is one for which a plan would be
/// refused. Their turns among the other steps stay those of the group. Where every next write would be refused, the
/// order is as it was: whether the end is one to have was decided before.
pub(crate) fn keep_bounds(steps: &mut [Step], catalogue: &Catalogue, observation: &Observation) {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        if let Some(group) = catalogue.knob(&step.knob).ok().and_then(|knob| group(knob, step)) {
            groups.entry(group).or_default().push(index);
        }
    }
    for turns in groups.into_values().filter(|turns| turns.len() > 1) {
        let mut rest: Vec<Step> = turns.iter().map(|index| steps[*index].clone()).collect();
        let all = rest.clone();
        let mut written: Vec<Step> = Vec::new();
        for index in turns {
            let mut is_borne = |step: &Step| {
                written.push(step.clone());
                let is_borne = bounds::refusals(catalogue, observation, &written).iter().all(Option::is_none)
                    && !is_turned(&all, &written, catalogue);
                written.pop();
                is_borne
            };
            let next = rest.iter().position(&mut is_borne).unwrap_or(0);
            let step = rest.remove(next);
            steps[index] = step.clone();
            written.push(step);
        }
    }
}

/// What steps have in common that bound each other; `None` for one that no other has to wait for.
fn group(knob: &Knob, step: &Step) -> Option<String> {
    if step.raise_pages.is_some() {
        return Some("promises".to_owned());
    }
    if let Some(bound @ (Bound::Promises | Bound::Ports | Bound::Neighbours | Bound::CpusLeft)) = knob.bound {
        return Some(format!("{bound:?}").to_lowercase());
    }
    if bounds::is_threshold(&knob.id) {
        return Some("neighbours".to_owned());
    }
    let pair = against::lowest_and_highest().find(|pair| pair.contains(&knob.id.as_str()))?;
    let holes = place::captures(&knob.path, &step.place)?;
    // The two rows of a share of the memory that waits to be written, and those of an amount, are all one.
    let name = if knob.twin.is_some() { "dirty" } else { pair[0] };
    Some(format!("{name} {holes:?}"))
}

/// Whether some of the steps turn a lowest and its highest round that were not so before.
fn is_turned(all: &[Step], written: &[Step], catalogue: &Catalogue) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    // A twin that is not in force shows zero.
    let now = |step: &Step, is_twin: bool| number(&step.now).filter(|now| *now > 0 || !is_twin);
    let find = |id: &str| all.iter().find(|step| step.knob.as_str() == id);
    against::lowest_and_highest().any(|[low, high]| {
        let (Some(low), Some(high)) = (find(low), find(high)) else { return false };
        let (Ok(first), Ok(second)) = (catalogue.knob(&low.knob), catalogue.knob(&high.knob)) else {
            return false;
        };
        let is_twin = first.twin.is_some();
        let is_written = |step: &Step| written.iter().any(|other| other.place == step.place);
        let value = |step: &Step| if is_written(step) { number(&step.wanted) } else { now(step, is_twin) };
        let is_above =
            |low: Option<u64>, high: Option<u64>| low.zip(high).is_some_and(|(low, high)| low > high);
        let was_above = is_above(now(low, is_twin), now(high, is_twin));
        against::is_one_unit(first, second) && is_above(value(low), value(high)) && !was_above
    })
}

/// Steps that were put together of several plans or entries, so that no state between two of them is one for which a
/// plan would be refused: modes beside their limits, and what bounds each other. All others stay where they are, and
/// what is in such an order stays as it is.
#[must_use]
pub fn within_bounds(steps: &[Step], catalogue: &Catalogue, observation: &Observation) -> Vec<Step> {
    let values: Vec<(&KnobId, Option<&str>)> =
        steps.iter().map(|step| (&step.knob, Some(step.wanted.as_str()))).collect();
    let mut order: Vec<usize> = (0..steps.len()).collect();
    turn_modes(&mut order, &values, catalogue);
    let mut steps: Vec<Step> = order.into_iter().map(|index| steps[index].clone()).collect();
    keep_bounds(&mut steps, catalogue, observation);
    steps
}

/// Whether the turn of a step is decided by what bounds it or is bound by it, and not by where it comes from.
#[must_use]
pub fn is_bound(step: &Step, catalogue: &Catalogue) -> bool {
    catalogue.knob(&step.knob).is_ok_and(|knob| group(knob, step).is_some())
        || bounds::holds(catalogue, &step.knob).is_some()
}

/// Has a mode come behind its limits where it comes to the value at which it enforces them, and before them where it
/// leaves that. Each step is told by its knob and the value that it writes.
fn turn_modes(order: &mut Vec<usize>, steps: &[(&KnobId, Option<&str>)], catalogue: &Catalogue) {
    for (mode, (id, wanted)) in steps.iter().enumerate() {
        let Ok(knob) = catalogue.knob(id) else { continue };
        let (Some(enforces), Some(wanted)) = (&knob.enforces, wanted) else { continue };
        let at = order.iter().position(|index| *index == mode).expect("each index is in the order");
        let is_limit = |index: &usize| enforces.limits.contains(steps[*index].0);
        let to = match knob.r#type.same(wanted, &enforces.at) {
            true => order.iter().rposition(is_limit).filter(|last| *last > at),
            false => order.iter().position(is_limit).filter(|first| *first < at),
        };
        if let Some(to) = to {
            order.remove(at);
            order.insert(to, mode);
        }
    }
}

#[cfg(test)]
mod tests;
