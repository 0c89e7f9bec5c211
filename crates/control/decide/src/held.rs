//! Values that are as a plan wants them by an open entry. What becomes of the plan has to hold them, too: an undo of
//! that entry would take them from it.

use planish_model::{Entry, EntryId, EntryStep, Knob, OutcomeKind, Profile, Reading, Undo};

/// The newest open entry that holds a place in this boot.
pub(crate) fn newest(open: &[Entry], boot_id: &str, place: &str) -> Option<EntryId> {
    let sets = |entry: &&Entry| entry.steps.iter().any(|step| step.sets(place));
    of_boot(open, boot_id).find(sets).map(|entry| entry.id)
}

/// By whom a place is as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The entry that the plan takes the place of, or one of another profile: what becomes of the plan holds it, too.
    Other(EntryId),
    /// An entry of this profile. What becomes of the plan holds it where it holds anything besides: a plan that finds
    /// all of its own in force has nothing to do.
    Own(EntryId),
    /// The kernel derived it from what the entry has set whose place the plan takes: it goes with that, and is written
    /// behind it.
    Derived,
}

/// The entry by which a place is as wanted, where what becomes of a plan may have to hold it as well.
pub(crate) fn by(
    (open, boot_id): (&[Entry], &str),
    profile: &Profile,
    instead_of: Option<EntryId>,
    (knob, reading): (&Knob, &Reading),
) -> Option<By> {
    let place = &reading.place;
    if let Some(old) = instead_of.filter(|old| newest(open, boot_id, place) == Some(*old)) {
        return Some(By::Other(old));
    }
    let now = reading.value.as_deref().unwrap_or_default();
    let mut newest = None;
    for entry in of_boot(open, boot_id) {
        let Some(left) = entry.steps.iter().rev().find_map(|step| left_at(step, place)) else { continue };
        // What somebody else has set since, just as the plan wants it, goes with no entry. Below an entry that set
        // another value nobody has this one.
        let is_another = left.is_some_and(|left| !knob.r#type.same(left, now));
        if is_another {
            break;
        }
        if instead_of == Some(entry.id) {
            return Some(newest.map_or(By::Derived, By::Other));
        }
        if entry.profile == profile.name {
            return Some(By::Own(entry.id));
        }
        newest = newest.or(Some(entry.id));
    }
    newest.map(By::Other)
}

/// The open entries of this boot, newest first.
fn of_boot<'a>(open: &'a [Entry], boot_id: &'a str) -> impl Iterator<Item = &'a Entry> {
    open.iter().rev().filter(move |entry| entry.is_open() && entry.boot_id == boot_id)
}

/// What a step left at a place, its own or one that the kernel derives from it; `Some(None)` of a file, which is there
/// or not. `None` where it has nothing to do with the place. Who holds a value that was there wrote nothing, and has
/// the kernel's as it found them.
fn left_at<'a>(step: &'a EntryStep, place: &str) -> Option<Option<&'a str>> {
    if step.sets(place) {
        return Some((step.undo == Undo::Restore).then(|| step.ours()));
    }
    if step.undo != Undo::Restore || step.is_undone() {
        return None;
    }
    let outcome = step.outcome.as_ref()?;
    let caused = outcome.caused.iter().find(|caused| caused.place == place).map(|caused| &caused.value);
    let is_held = outcome.outcome == OutcomeKind::TakenOver;
    let found = step.coupled().find(|found| is_held && found.place == place).map(|found| &found.value);
    caused.or(found).map(|left| Some(left.as_str()))
}
