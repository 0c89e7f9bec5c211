//! What an undo took from entries that are still there: pages that a size in all had counted, and what one of them has
//! in its files for each boot and does not hold, were of the entry that went, and are again what they were before that.

use std::collections::BTreeSet;

use planish_model::{Catalogue, Entry, EntryId, EntryStep, KnobId, Outcome, OutcomeKind, Undo};

use crate::transition;

/// Most knobs that one sentence names.
const NAMED_MAX: usize = 6;

/// A sentence for each open entry that lacks something of its files now, and was not taken back itself.
pub(crate) fn told(
    entries: &[Entry],
    back: &[(EntryId, Vec<Outcome>)],
    catalogue: &Catalogue,
) -> Vec<String> {
    let is_back = |outcome: &&Outcome| outcome.outcome == OutcomeKind::Done && !outcome.knob.is_persistence();
    let mut told = Vec::new();
    for entry in staying(entries, back) {
        let values = back.iter().flat_map(|(_, outcomes)| outcomes.iter().filter(is_back));
        let lacked: Vec<&Outcome> = values.filter(|outcome| is_lacked(outcome, entry, catalogue)).collect();
        let knobs: BTreeSet<&KnobId> = lacked.iter().map(|outcome| &outcome.knob).collect();
        if knobs.is_empty() {
            continue;
        }
        let (id, profile, named) = (entry.id, &entry.profile, named(&knobs));
        let again = match lacked.iter().all(|outcome| has_line(entry, &outcome.place)) {
            true => format!(
                "its files bring that at each boot, and until then: planish apply {profile} --persist"
            ),
            false => format!("again: planish apply {profile}"),
        };
        told.push(format!(
            "entry {id} ({profile}) is open, and had found as wanted what went back now: {named}; {again}"
        ));
    }
    told
}

/// The open entries of which nothing was taken back.
fn staying<'a>(entries: &'a [Entry], back: &'a [(EntryId, Vec<Outcome>)]) -> impl Iterator<Item = &'a Entry> {
    entries.iter().filter(move |entry| entry.is_open() && !is_back(entry, back))
}

fn is_back(entry: &Entry, back: &[(EntryId, Vec<Outcome>)]) -> bool {
    back.iter().any(|(id, _)| *id == entry.id)
}

/// The files for the next boot that an entry has lines in.
fn files(entry: &Entry) -> impl Iterator<Item = &EntryStep> {
    entry.steps.iter().filter(|step| step.knob.is_persistence() && step.is_in_file() && !step.is_undone())
}

/// Whether a file for the next boot has a line of an entry for a place. A drop-in of a unit is none.
fn has_line(entry: &Entry, place: &str) -> bool {
    files(entry).any(|step| {
        let mut pools = step.pools.iter();
        step.lines().any(|(other, _)| other == place) || pools.any(|line| line.place == place)
    })
}

/// A sentence for each open entry of a profile of which an older one went with pages or boot parameters: those are
/// their first owner's, and nobody else holds them.
pub(crate) fn of_older(
    entries: &[Entry],
    back: &[(EntryId, Vec<Outcome>)],
    catalogue: &Catalogue,
) -> Vec<String> {
    // Of a profile that the catalogue has not, nobody knows what it wants by now.
    let wants = |profile: &str, knob: &KnobId| {
        let profile = catalogue.profile(profile).ok();
        profile.is_none_or(|profile| profile.placement.is_some() || profile.want.contains_key(knob))
    };
    let told = |entry: &Entry| {
        let older = entries.iter().filter(|older| {
            older.id < entry.id
                && older.profile == entry.profile
                && is_back(older, back)
                && entry.instead_of != Some(older.id)
        });
        let went = |older: &Entry, step: &EntryStep| {
            let outcomes = back.iter().filter(|(id, _)| *id == older.id).flat_map(|(_, outcomes)| outcomes);
            let is_gone = |kind| matches!(kind, OutcomeKind::Done | OutcomeKind::HandedOver);
            let mut outcomes = outcomes.filter(|outcome| is_gone(outcome.outcome));
            outcomes.any(|outcome| outcome.place == step.place)
        };
        let mut gone: BTreeSet<String> = BTreeSet::new();
        for step in older.flat_map(|older| older.steps.iter().filter(|step| went(older, step))) {
            let arguments = transition::arguments(step);
            let granted = step.outcome.as_ref().and_then(|outcome| outcome.granted_pages);
            let is_pool = step.undo == Undo::Subtract && granted.unwrap_or(0) > 0;
            if !arguments.is_empty() {
                gone.extend(arguments);
            } else if is_pool && wants(&entry.profile, &step.knob) {
                gone.insert(step.knob.to_string());
            }
        }
        let gone: Vec<String> = gone.into_iter().collect();
        (!gone.is_empty()).then(|| {
            format!(
                "entry {} ({profile}) is open, and may count on what its older one had, which nobody else holds: {}; \
                 again: planish apply {profile}",
                entry.id,
                gone.join(", "),
                profile = entry.profile
            )
        })
    };
    staying(entries, back).filter_map(told).collect()
}

/// A sentence for each open entry of which the kernel has not kept what it set, beside what went back: where a governor
/// `performance` is back, it refuses the hint of another entry. `read` gives the text of a place.
pub(crate) fn overruled(
    entries: &[Entry],
    back: &[(EntryId, Vec<Outcome>)],
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let steps = entries.iter().filter(|entry| is_back(entry, back)).flat_map(|entry| &entry.steps);
    let beside: BTreeSet<&str> =
        steps.flat_map(EntryStep::coupled).map(|other| other.place.as_str()).collect();
    let is_overruled = |step: &&EntryStep| {
        let kind = step.original().map(|original| &original.r#type);
        let now = || read(&step.place);
        step.undo == Undo::Restore
            && !step.is_undone()
            && beside.contains(step.place.as_str())
            && kind.zip(now()).is_some_and(|(kind, now)| !kind.same(&now, step.ours()))
    };
    let told = |entry: &Entry| {
        let knobs: BTreeSet<&KnobId> =
            entry.steps.iter().filter(is_overruled).map(|step| &step.knob).collect();
        let (id, profile, named) = (entry.id, &entry.profile, named(&knobs));
        (!knobs.is_empty()).then(|| {
            format!(
                "entry {id} ({profile}) is open, and what it set is overruled by what went back now: {named}; planish \
                 undo {id} takes the rest of it back"
            )
        })
    };
    staying(entries, back).filter_map(told).collect()
}

/// Some of these knobs by name, and how many more.
fn named(knobs: &BTreeSet<&KnobId>) -> String {
    let named: Vec<&str> = knobs.iter().take(NAMED_MAX).map(|knob| knob.as_str()).collect();
    let more = match knobs.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// Whether a value that went back is another one now than a line of an entry has for its place, or a pool lacks pages
/// that a size in all had counted.
fn is_lacked(outcome: &Outcome, entry: &Entry, catalogue: &Catalogue) -> bool {
    let Some(now) = outcome.read_back.as_deref() else { return false };
    let pages: Option<u64> = now.trim().parse().ok();
    let is_short = |step: &EntryStep| {
        let counted = step.in_all.filter(|_| step.place == outcome.place && !step.is_undone());
        counted.zip(pages).is_some_and(|(counted, pages)| pages < counted)
    };
    if entry.steps.iter().any(is_short) {
        return true;
    }
    let Ok(knob) = catalogue.knob(&outcome.knob) else { return false };
    let mut lines = files(entry).flat_map(EntryStep::lines);
    lines.any(|(place, wanted)| place == outcome.place && !knob.r#type.same(&wanted, now))
}
