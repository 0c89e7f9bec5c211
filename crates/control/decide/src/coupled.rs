//! What else a write changes: twins, aliases and what the kernel derives.

use std::collections::BTreeSet;

use planish_model::{
    Catalogue, Coupled, Coupling, Entry, EntryId, Knob, Observation, Plan, Skipped, Step, Undo, place,
};

use crate::{cards, held};

/// Places that a write of this one changes too, with the values that must be kept. Pools have none: they are taken
/// back by subtraction, and their aliases follow.
#[must_use]
pub fn coupled(catalogue: &Catalogue, observation: &Observation, knob: &Knob, place: &str) -> Vec<Coupled> {
    if knob.undo == Undo::Subtract {
        return Vec::new();
    }
    let holes = place::captures(&knob.path, place).unwrap_or_default();
    let twins = knob.twin.iter().map(|id| (id, Coupling::Twin));
    let aliases = knob.alias.iter().map(|id| (id, Coupling::Alias));
    let derived = knob.derives.iter().map(|id| (id, Coupling::Derived));
    let mut coupled = Vec::new();
    for (id, coupling) in twins.chain(aliases).chain(derived) {
        let Ok(other) = catalogue.knob(id) else { continue };
        let path = place::fill(&other.path, &holes);
        for reading in observation.knobs.get(id).into_iter().flatten() {
            let Some(now) = &reading.value else { continue };
            if place::captures(&path, &reading.place).is_some() {
                let (knob, place, now) = (id.clone(), reading.place.clone(), now.clone());
                coupled.push(Coupled { knob, place, now, coupling });
            }
        }
    }
    coupled
}

/// Why the kernel would not take a value: beside what another knob has after the plan it has one word for it alone. Of
/// `all` those behind the `own` ones go back with the entry whose place is taken, and what they pin is refused with
/// that.
pub(crate) fn pinned_away(
    catalogue: &Catalogue,
    observation: &Observation,
    step: &Step,
    (own, all): (&[Step], &[Step]),
) -> Option<String> {
    let knob = catalogue.knob(&step.knob).ok()?;
    let (pin, by, place) = catalogue.pinning(knob, &step.place)?;
    let planned = own.iter().find(|other| other.place == place).map(|other| other.wanted.as_str());
    if planned.is_none() && all.iter().any(|other| other.place == place) {
        return None;
    }
    let now =
        || observation.knobs.get(&by.id)?.iter().find(|reading| reading.place == place)?.value.as_deref();
    let is_pinned = planned.or_else(now).is_some_and(|value| by.r#type.same(value, &pin.at));
    (is_pinned && !knob.r#type.same(&step.wanted, &pin.to)).then(|| {
        format!("the kernel keeps it at `{}` while {} is at `{}`: want {}, too", pin.to, by.id, pin.at, by.id)
    })
}

/// Whether a value that is as wanted would not be behind a step: the kernel makes it anew, and does not make it that.
pub(crate) fn is_moved(catalogue: &Catalogue, row: &Skipped, step: &Step) -> bool {
    // New queues of a card are other places, and a plan of their own.
    let is_written = step.is_written() && step.undo == Undo::Restore && !cards::makes_queues(step);
    let is_beside = |other: &Coupled| {
        other.place == row.place && matches!(other.coupling, Coupling::Alias | Coupling::Derived)
    };
    if !row.satisfied || row.not_to_keep.is_some() || !is_written || !step.coupled.iter().any(is_beside) {
        return false;
    }
    let knobs = catalogue.knob(&row.knob).ok().zip(catalogue.knob(&step.knob).ok());
    let Some((knob, by)) = knobs else { return false };
    // Beside this value of the other one the kernel has one word for it, and takes none.
    let is_held = knob.pinned.as_ref().is_some_and(|pin| {
        let is_word = row.wanted.as_deref().is_some_and(|wanted| knob.r#type.same(wanted, &pin.to));
        pin.by == by.id && by.r#type.same(&step.wanted, &pin.at) && is_word
    });
    !is_held
}

/// What a plan does not set, and the kernel may make anew for one of its steps: what another entry has set, and what is
/// as the profile wants it and needs leave that nobody gave.
pub(crate) fn moved_away(
    catalogue: &Catalogue,
    observation: &Observation,
    (profile, plan): (&str, &Plan),
    (open, going): (&[Entry], Option<EntryId>),
) -> Vec<String> {
    let is_set = |place: &str| plan.steps.iter().any(|step| step.place == place);
    let boot = &observation.host.boot_id;
    let told = |step: &Step, other: &Coupled| {
        let row = plan.skipped.iter().find(|row| row.not_allowed && row.knob == other.knob);
        let kind = &catalogue.knob(&other.knob).ok()?.r#type;
        let is_as_wanted =
            row.and_then(|row| row.wanted.as_deref()).is_some_and(|word| kind.same(word, &other.now));
        let (knob, by) = (&other.knob, &step.knob);
        if is_as_wanted {
            return Some(format!(
                "the kernel may make {knob} anew for {by}, and it is as {profile} wants it: --allow-knob {knob} has it \
                 written behind that"
            ));
        }
        let id = held::newest(open, boot, &other.place).filter(|id| Some(*id) != going)?;
        let entry = open.iter().find(|entry| entry.id == id && entry.profile != profile)?;
        Some(format!(
            "the kernel may make {knob} anew for {by}, and entry {id} ({}) has set it: apply that again behind this",
            entry.profile
        ))
    };
    let written = plan.steps.iter().filter(|step| step.is_written() && step.undo == Undo::Restore);
    let beside = written.filter(|step| !cards::makes_queues(step)).flat_map(|step| {
        let derived = step.coupled.iter().filter(|other| other.coupling == Coupling::Derived);
        derived.filter(|other| !is_set(&other.place)).map(move |other| (step, other))
    });
    let told: BTreeSet<String> = beside.filter_map(|(step, other)| told(step, other)).collect();
    told.into_iter().collect()
}
