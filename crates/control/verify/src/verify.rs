//! The comparison of a whole host.

use planish_model::{Access, Catalogue, Class, Drift, Entry, NOT_GIVEN, Observation, Plan, Reading};
use planish_sorted::SortSmall as _;

use crate::compare::Bench;
use crate::wish::{of_boot_files, of_entries, of_plan, set_by, with_asked};

/// Compares a fresh observation with what it should show.
///
/// With a plan: the places that it names, whether it was applied or not; of what it could not compute, such as a pool
/// for a service that nobody named, what the open entries of its profile asked for. Without one: every place of every
/// knob, held against what the open entries of this boot left there, and where they left nothing, against
/// what the host's own files say. Entries of another boot hold nothing on this one but what they gave the boot loader,
/// and are passed over otherwise.
#[must_use]
pub fn verify(
    catalogue: &Catalogue,
    plan: Option<&Plan>,
    open: &[Entry],
    observation: &Observation,
) -> Drift {
    let applied = of_entries(open, observation, catalogue);
    let bench = Bench { catalogue, observation, open, given: of_boot_files(open, catalogue) };
    let wishes = match plan {
        Some(plan) => {
            let of_profile: Vec<Entry> =
                open.iter().filter(|entry| entry.profile == plan.profile).cloned().collect();
            let asked = of_entries(&of_profile, observation, catalogue);
            set_by(with_asked(of_plan(plan, catalogue), &asked, &applied), &applied, catalogue)
        }
        None => applied,
    };
    let mut knobs = Vec::new();
    if plan.is_none() {
        // An action holds no value that could be compared.
        for knob in catalogue.knobs().filter(|knob| knob.class != Class::Action) {
            for reading in observation.knobs.get(&knob.id).into_iter().flatten() {
                let wish = wishes.get(&(knob.id.clone(), reading.place.clone()));
                knobs.push(bench.check(knob, reading, wish));
            }
        }
    }
    for ((id, place), wish) in &wishes {
        let seen = observation.reading(id, place);
        if plan.is_none() && seen.is_some() {
            continue;
        }
        let Ok(knob) = catalogue.knob(id) else { continue };
        let seen = seen.filter(|reading| !(knob.is_own_file() && reading.access == Access::Absent));
        let reading =
            seen.cloned().unwrap_or_else(|| if knob.is_own_file() { not_made(place) } else { gone(place) });
        knobs.push(bench.check(knob, &reading, Some(wish)));
    }
    if plan.is_some() {
        // What an undo left of a limit is told whatever is asked for: nobody's file has it.
        let left = |reading: &&Reading| {
            let unit = observation.units.get(&reading.place);
            unit.is_some_and(|unit| unit.left_over.is_some())
        };
        for knob in catalogue.knobs().filter(|knob| knob.r#type.is_cpus_of_a_unit()) {
            for reading in observation.knobs.get(&knob.id).into_iter().flatten().filter(left) {
                if !wishes.contains_key(&(knob.id.clone(), reading.place.clone())) {
                    knobs.push(bench.check(knob, reading, None));
                }
            }
        }
    }
    // Stable: places of one knob stay in the order in which they were seen.
    knobs.sort_small_by(|a, b| a.knob.cmp(&b.knob));
    Drift { knobs }
}

/// A place that was named and is not there any more.
fn gone(place: &str) -> Reading {
    Reading {
        place: place.to_owned(),
        value: None,
        unread: None,
        offered: Vec::new(),
        max: None,
        access: Access::Absent,
    }
}

/// A file of ours that is not there: it can be, and gives nothing.
fn not_made(place: &str) -> Reading {
    Reading { value: Some(NOT_GIVEN.to_owned()), access: Access::Writable, ..gone(place) }
}

#[cfg(test)]
mod tests;
