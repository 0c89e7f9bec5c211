//! The entries that a plan lies over, or leaves something of.

use std::collections::BTreeSet;

use planish_model::{Entry, EntryStep, KnobId, Overlay, Plan, Step, Undo};

/// The entries of this boot that a plan covers with other values, or leaves something of. Pools are raised beside each
/// other and cover nothing; files are the next boot's.
pub(crate) fn overlays(open: &[Entry], boot_id: &str, plan: &Plan) -> Vec<Overlay> {
    let steps = &plan.steps;
    let is_step = |place: &str| steps.iter().any(|step| step.place == place);
    // A size in all counts the pages of older entries.
    let counts = |place: &str| steps.iter().any(|step| step.place == place && step.in_all.is_some());
    let is_so = |place: &str| plan.skipped.iter().any(|row| row.satisfied && row.place == place);
    let of = |entry: &Entry| {
        let own = || {
            let is_open =
                |own: &&EntryStep| !own.is_undone() && matches!(own.undo, Undo::Restore | Undo::Subtract);
            entry.steps.iter().filter(is_open)
        };
        let knobs_of = |is_meant: &dyn Fn(&str) -> bool| -> BTreeSet<KnobId> {
            own().filter(|own| is_meant(&own.place)).map(|own| own.knob.clone()).collect()
        };
        // By a newer entry, or by one that this profile has there already.
        let is_held_besides = |place: &str| {
            let besides = |other: &&Entry| other.id > entry.id || other.profile == plan.profile;
            let besides = open.iter().filter(|other| other.is_open()).filter(besides);
            besides.flat_map(|other| &other.steps).any(|step| step.place == place && !step.is_undone())
        };
        let [stays, shared] = match entry.profile == plan.profile {
            true => [BTreeSet::new(), BTreeSet::new()],
            false => [
                knobs_of(&|place| !is_step(place) && !is_so(place)),
                knobs_of(&|place| {
                    counts(place) || (!is_step(place) && is_so(place) && !is_held_besides(place))
                }),
            ],
        };
        let sets = |own: &EntryStep, step: &Step| own.place == step.place && !own.is_undone();
        let is_covered = |step: &&Step| {
            step.undo != Undo::Subtract
                && step.part.is_none()
                && entry.steps.iter().any(|own| sets(own, step))
        };
        let knobs: BTreeSet<KnobId> = steps.iter().filter(is_covered).map(|step| step.knob.clone()).collect();
        let [knobs, stays, shared] =
            [knobs, stays, shared].map(|knobs| knobs.into_iter().collect::<Vec<_>>());
        let (entry, profile) = (entry.id, entry.profile.clone());
        let is_told = !knobs.is_empty() || !stays.is_empty() || !shared.is_empty();
        is_told.then_some(Overlay { entry, profile, knobs, stays, shared })
    };
    open.iter().filter(|entry| entry.is_open() && entry.boot_id == boot_id).filter_map(of).collect()
}
