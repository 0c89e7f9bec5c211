//! What an undo took from entries that are still there: pages that a size in all had counted, and what one of them has
//! in its files for each boot and does not hold, were of the entry that went, and are again what they were before that.

use std::collections::BTreeSet;

use planish_model::{Catalogue, Entry, EntryId, EntryStep, KnobId, Outcome, OutcomeKind, Undo};

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
            true => {
                format!(
                    "its files bring that at each boot, and until then: {}",
                    again(profile, true, catalogue)
                )
            }
            false => format!("again: {}", again(profile, false, catalogue)),
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

/// A sentence for each profile with an open entry of which an older one went with pages or boot parameters: those are
/// their first owner's, and nobody else holds them. The newest entry has what the profile wants by now.
pub(crate) fn of_older(
    entries: &[Entry],
    back: &[(EntryId, Vec<Outcome>)],
    catalogue: &Catalogue,
) -> Vec<String> {
    let told = |entry: &Entry| {
        let mut others = staying(entries, back).filter(|other| other.profile == entry.profile);
        if others.any(|other| other.id > entry.id) {
            return None;
        }
        let older = entries.iter().filter(|older| {
            older.id < entry.id
                && older.profile == entry.profile
                && is_back(older, back)
                && entry.instead_of != Some(older.id)
        });
        let given: BTreeSet<String> = staying(entries, back)
            .flat_map(|other| other.steps.iter().filter(|step| !step.is_undone()))
            .flat_map(EntryStep::boot_parameters)
            .map(|argument| named_by(&argument).to_owned())
            .collect();
        let wants = Wants::of(&entry.profile, catalogue);
        let mut gone: BTreeSet<String> = BTreeSet::new();
        let mut is_kept = files(entry).next().is_some();
        for step in older.flat_map(|older| older.steps.iter().filter(|step| went(older, step, back))) {
            let granted = step.outcome.as_ref().and_then(|outcome| outcome.granted_pages);
            let is_pool = step.undo == Undo::Subtract && granted.unwrap_or(0) > 0;
            let arguments = step.boot_parameters().into_iter();
            let arguments: Vec<String> = arguments
                .filter(|argument| !given.contains(named_by(argument)) && wants.argument(argument))
                .collect();
            is_kept |= !arguments.is_empty();
            gone.extend(arguments);
            if is_pool && wants.knob(&step.knob) {
                gone.insert(step.knob.to_string());
            }
        }
        let gone: Vec<String> = gone.into_iter().collect();
        (!gone.is_empty()).then(|| {
            format!(
                "entry {} ({}) is open, and may count on what its older one had, which nobody else holds: {}; \
                 again: {}",
                entry.id,
                entry.profile,
                gone.join(", "),
                again(&entry.profile, is_kept, catalogue)
            )
        })
    };
    staying(entries, back).filter_map(told).collect()
}

/// How the steps of an entry were taken back.
fn outcomes_of<'b>(entry: &Entry, back: &'b [(EntryId, Vec<Outcome>)]) -> impl Iterator<Item = &'b Outcome> {
    let id = entry.id;
    back.iter().filter(move |(other, _)| *other == id).flat_map(|(_, outcomes)| outcomes)
}

/// Whether what a step of an entry had is gone with it.
fn went(entry: &Entry, step: &EntryStep, back: &[(EntryId, Vec<Outcome>)]) -> bool {
    let is_gone = |kind| matches!(kind, OutcomeKind::Done | OutcomeKind::HandedOver);
    let mut outcomes = outcomes_of(entry, back).filter(|outcome| is_gone(outcome.outcome));
    outcomes.any(|outcome| outcome.place == step.place)
}

/// What a boot parameter is called by: all before its value. Of pages their size belongs to it.
fn named_by(argument: &str) -> &str {
    argument.rsplit_once('=').map_or(argument, |(name, _)| name)
}

/// What applies a profile again. One that the catalogue has not was named as a file.
fn again(profile: &str, is_kept: bool, catalogue: &Catalogue) -> String {
    let persist = if is_kept { " --persist" } else { "" };
    match catalogue.profile(profile) {
        Ok(_) => format!("planish apply {profile}{persist}"),
        Err(_) => format!("planish apply FILE{persist}, the file of that profile"),
    }
}

/// What a profile wants by now. Of one that the catalogue has not nobody knows.
struct Wants {
    knobs: Option<BTreeSet<KnobId>>,
    arguments: BTreeSet<String>,
}

impl Wants {
    fn of(profile: &str, catalogue: &Catalogue) -> Self {
        let profile = catalogue.profile(profile).ok().filter(|profile| profile.placement.is_none());
        let knobs: Option<BTreeSet<KnobId>> = profile.map(|profile| profile.want.into_keys().collect());
        let name = |id: &KnobId| {
            let knob = catalogue.knob(id).ok()?;
            knob.boot_parameter().map(|(name, _)| name.to_owned()).or_else(|| knob.boot_arg.clone())
        };
        let arguments = knobs.iter().flatten().filter_map(name).collect();
        Self { knobs, arguments }
    }

    fn knob(&self, id: &KnobId) -> bool {
        self.knobs.as_ref().is_none_or(|knobs| knobs.contains(id))
    }

    fn argument(&self, argument: &str) -> bool {
        let mut names = argument.split(' ').map(|word| word.split('=').next().unwrap_or(word));
        self.knobs.is_none() || names.any(|name| self.arguments.contains(name))
    }
}

/// A sentence for each open entry of which the kernel has not kept what it set, beside what went back: where a governor
/// `performance` is back, it refuses the hint of another entry. Of several entries for one place the newest has it.
/// `read` gives the text of a place.
pub(crate) fn overruled(
    entries: &[Entry],
    back: &[(EntryId, Vec<Outcome>)],
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let written = |entry: &Entry, step: &EntryStep| {
        // Of a value that another entry has by now nothing went back.
        let stays = |kind| matches!(kind, OutcomeKind::TakenOver | OutcomeKind::HandedOver);
        let mut outcomes = outcomes_of(entry, back).filter(|outcome| !stays(outcome.outcome));
        outcomes.any(|outcome| outcome.place == step.place)
    };
    let went = entries.iter().filter(|entry| is_back(entry, back));
    let steps = went.flat_map(|entry| entry.steps.iter().filter(|step| written(entry, step)));
    let beside: BTreeSet<&str> =
        steps.flat_map(EntryStep::coupled).map(|other| other.place.as_str()).collect();
    let is_newest = |entry: &Entry, place: &str| {
        let mut newer = staying(entries, back).filter(|other| other.id > entry.id);
        !newer.any(|other| other.steps.iter().any(|step| step.sets(place)))
    };
    let is_overruled = |step: &EntryStep| {
        let kind = step.original().map(|original| &original.r#type);
        let now = || read(&step.place);
        step.undo == Undo::Restore
            && !step.is_undone()
            && beside.contains(step.place.as_str())
            && kind.zip(now()).is_some_and(|(kind, now)| !kind.same(&now, step.ours()))
    };
    let told = |entry: &Entry| {
        let steps = entry.steps.iter().filter(|step| is_overruled(step) && is_newest(entry, &step.place));
        let knobs: BTreeSet<&KnobId> = steps.map(|step| &step.knob).collect();
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
