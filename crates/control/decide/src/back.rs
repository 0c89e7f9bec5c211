//! What goes back with entries, as steps that a plan is held against, and in which order.

use planish_model::{
    Catalogue, Entry, EntryStep, Observation, Original, Part, Step, Undo, Verdict, VerdictKind,
};

use crate::order;

/// What goes back with steps of entries, oldest first: their places and the twins of those. Of a place that several of
/// them set the oldest original counts. The steps have the originals that count now; `now` tells what a place shows,
/// and of one that shows nothing nothing goes back.
#[must_use]
pub fn going_back<'a>(
    catalogue: &Catalogue,
    own: impl IntoIterator<Item = &'a EntryStep>,
    now: &dyn Fn(&Original) -> Option<String>,
) -> Vec<Step> {
    let mut back: Vec<Step> = Vec::new();
    let originals =
        own.into_iter().filter(|step| step.undo == Undo::Restore).flat_map(|step| &step.originals);
    for original in originals.filter(|original| original.is_of_setting()) {
        if back.iter().any(|other| other.place == original.place) {
            continue;
        }
        let (Ok(knob), Some(now)) = (catalogue.knob(&original.knob), now(original)) else { continue };
        let settable = Verdict::new(VerdictKind::Settable, "goes back");
        let step = Step::of(knob, &original.place, now, original.value.clone(), settable);
        back.push(Step { part: Some(Part::Back), ..step });
    }
    back
}

/// What a place showed before open entries, oldest first, set it; what it shows `now` where that is none of theirs.
pub(crate) fn before_ours<'a>(open: &'a [Entry], place: &str, now: &'a str) -> &'a str {
    let steps = || open.iter().filter(|entry| entry.is_open()).flat_map(|entry| &entry.steps);
    let mut own =
        steps().filter(|step| step.place == place && !step.is_undone() && step.undo == Undo::Restore);
    let is_ours = own.next_back().is_some_and(|newest| newest.wanted.trim() == now.trim());
    let mut originals = steps().flat_map(|step| &step.originals);
    let oldest =
        originals.find(|original| original.place == place && original.is_of_setting()).filter(|_| is_ours);
    oldest.map_or(now, |original| &original.value)
}

/// The order in which the steps of an entry are taken back, by their indices: the last one first, save that what bounds
/// each other goes by no state that a plan is refused for, from what the host has now, in the turns that it has anyway.
/// `going` has what each step writes, as [`going_back`] tells it, and nothing for one that writes no value.
#[must_use]
pub fn back(
    going: &[Option<Step>],
    catalogue: &Catalogue,
    observe: &dyn Fn(&[Step]) -> Observation,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..going.len()).rev().collect();
    let bound = |step: &&Step| order::is_bound(step, catalogue);
    let turns: Vec<usize> =
        (0..order.len()).filter(|turn| going[order[*turn]].as_ref().filter(bound).is_some()).collect();
    if turns.len() < 2 {
        return order;
    }
    let indices: Vec<usize> = turns.iter().map(|turn| order[*turn]).collect();
    // What all of them come to was judged before: here it is no matter which of two stays.
    let steps: Vec<Step> = indices
        .iter()
        .filter_map(|index| going[*index].clone())
        .map(|step| Step { part: None, ..step })
        .collect();
    let sorted = order::within_bounds(&steps, catalogue, &observe(&steps));
    let index_of =
        |step: &Step| steps.iter().position(|other| other.place == step.place).map(|at| indices[at]);
    for (turn, index) in turns.into_iter().zip(sorted.iter().filter_map(index_of)) {
        order[turn] = index;
    }
    order
}
