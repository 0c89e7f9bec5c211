//! What else a write changes: twins, aliases and what the kernel derives.

use planish_model::{Catalogue, Coupled, Coupling, Knob, Observation, Undo, place};

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
