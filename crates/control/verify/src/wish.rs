//! What a place should show, and who said so.

use std::collections::BTreeMap;

use planish_model::{
    Catalogue, Entry, EntryId, EntryStep, Knob, KnobId, Observation, OutcomeKind, Part, Plan, Undo, Verdict,
    bootline, place,
};
use planish_sorted::SortSmall as _;

/// What one place should show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// This value.
    Value {
        /// In the kernel's or the profile's words.
        text: String,
        /// The entry that set it, where one did, and the value before it.
        by: Option<(EntryId, Option<String>)>,
    },
    /// A pool with at least so many pages.
    Pages(u64),
    /// Wanted, and skipped by the plan.
    Skipped {
        /// The wanted value, where it could be computed.
        text: Option<String>,
        /// Why.
        verdict: Verdict,
        /// A pool that memory cannot give.
        short_of_memory: bool,
        /// It can be here and is allowed, and something of this host keeps it from being set.
        hindered: bool,
        /// The machine cannot have it, or it would ruin this host.
        impossible: bool,
        /// Nobody allowed it.
        not_allowed: bool,
        /// Whoever asked left it out.
        left_out: bool,
    },
}

impl Wish {
    /// Whether whoever asked left it out: an older entry may hold it all the same, which is for a check of that one.
    pub(crate) fn is_left_out(&self) -> bool {
        matches!(self, Self::Skipped { left_out: true, .. })
    }
}

/// Wishes by knob and place, in the order of the ids.
pub(crate) type Wishes = BTreeMap<(KnobId, String), Wish>;

/// What a plan wants: its steps, what is so already, and what it leaves alone. What it puts back nobody wants: once it
/// is back, whatever is set there is somebody else's.
pub(crate) fn of_plan(plan: &Plan, catalogue: &Catalogue) -> Wishes {
    let is_pool = |id| catalogue.knob(id).is_ok_and(|knob| knob.undo == Undo::Subtract);
    let mut wishes = Wishes::new();
    for step in plan.steps.iter().filter(|step| step.part != Some(Part::Back)) {
        let wish = match step.raise_pages.and_then(|_| step.wanted.trim().parse().ok()) {
            Some(pages) => Wish::Pages(pages),
            None => Wish::Value { text: step.wanted.clone(), by: None },
        };
        wishes.insert((step.knob.clone(), step.place.clone()), wish);
    }
    for skipped in &plan.skipped {
        let wish = match &skipped.wanted {
            Some(text) if skipped.satisfied => match text.trim().parse() {
                // Others may raise a pool further.
                Ok(pages) if is_pool(&skipped.knob) => Wish::Pages(pages),
                _ => Wish::Value { text: text.clone(), by: None },
            },
            text => Wish::Skipped {
                text: text.clone(),
                verdict: skipped.verdict.clone(),
                short_of_memory: skipped.short_of_memory,
                hindered: skipped.hindered,
                impossible: skipped.impossible,
                not_allowed: skipped.not_allowed,
                left_out: skipped.left_out,
            },
        };
        wishes.insert((skipped.knob.clone(), skipped.place.clone()), wish);
    }
    wishes
}

/// The same wishes, and for what a plan cannot compute by itself (a pool for a service that was named to the apply, and
/// is named to no check) what the open entries of its profile `asked` for. Pools add up, also with those of others.
pub(crate) fn with_asked(mut wishes: Wishes, asked: &Wishes, applied: &Wishes) -> Wishes {
    let is_open = |wish: &Wish| matches!(wish, Wish::Skipped { text: None, .. });
    let left_open = |id: &KnobId, wishes: &Wishes| {
        let mut own = wishes.iter().filter(|((knob, _), _)| knob == id).map(|(_, wish)| wish).peekable();
        own.peek().is_some() && own.all(is_open)
    };
    let known: Vec<&(KnobId, String)> = asked.keys().filter(|(id, _)| left_open(id, &wishes)).collect();
    wishes.retain(|(id, _), _| !known.iter().any(|(knob, _)| knob == id));
    for key in known {
        wishes.extend(applied.get(key).map(|wish| (key.clone(), wish.clone())));
    }
    wishes
}

/// The same wishes, each value with the entry that had set it: where the place shows another one, it was changed since.
pub(crate) fn set_by(mut wishes: Wishes, applied: &Wishes, catalogue: &Catalogue) -> Wishes {
    for (key, wish) in &mut wishes {
        if let Wish::Value { text, by } = wish
            && let Some(Wish::Value { text: left, by: entry }) = applied.get(key)
            && catalogue.knob(&key.0).is_ok_and(|knob| knob.r#type.same(text, left))
        {
            by.clone_from(entry);
        }
    }
    wishes
}

/// What the open entries of this boot left on the host, and what those of any boot gave the boot loader and keep in
/// files for each boot: the newest counts, and pools add up. Who sets a place clears its twin, so that nothing is left
/// there of an older entry.
pub(crate) fn of_entries(open: &[Entry], observation: &Observation, catalogue: &Catalogue) -> Wishes {
    let mut wishes = of_boot_files(open, catalogue);
    let mut own: Vec<&Entry> = open.iter().filter(|entry| entry.is_open()).collect();
    own.sort_small_by_key(|entry| entry.id);
    // By pool: what is held of it, and the size that a step asked for in vain. A newer step may hold what an older one
    // lacks, so that the one is no part of the other.
    let mut pools: BTreeMap<(KnobId, String), (u64, u64)> = BTreeMap::new();
    for entry in &own {
        add_lines(&mut wishes, entry, observation, catalogue);
        let is_of_now = entry.boot_id == observation.host.boot_id;
        for step in entry.steps.iter().filter(|step| is_of_now && !step.is_undone()) {
            let key = (step.knob.clone(), step.place.clone());
            match step.undo {
                // Places that their lines set are read anew from the files; boot parameters are above.
                Undo::File | Undo::Edit | Undo::Moved | Undo::Exchanged | Undo::None => {}
                // What an undo left to a line of others is wanted by nobody of ours.
                Undo::Subtract if step.is_left_in_use() && step.pages_in_force() == 0 => {}
                Undo::Subtract => {
                    let (held, asked) = pools.entry(key.clone()).or_default();
                    *held = held.saturating_add(step.pages_in_force());
                    // A size in all counts the pages of older entries, which may be gone since.
                    let in_all = step.in_all.filter(|_| !step.is_left_in_use());
                    *asked = (*asked).max(pages_short_of(step).unwrap_or(0)).max(in_all.unwrap_or(0));
                    let at_boot = size_of_boot(&own, &step.place, observation).unwrap_or(0);
                    wishes.insert(key, Wish::Pages((*held).max(*asked).max(at_boot)));
                }
                Undo::Restore if step.outcome.is_some() => {
                    let before = step.original().map(|original| original.value.clone());
                    let twin = catalogue
                        .knob(&step.knob)
                        .ok()
                        .and_then(|knob| twin_of(knob, &step.place, catalogue));
                    if let Some((twin, place)) = twin {
                        wishes.remove(&(twin.id.clone(), place));
                    }
                    let text =
                        if step.made_otherwise() { step.wanted.clone() } else { step.ours().to_owned() };
                    wishes.insert(key, Wish::Value { text, by: Some((entry.id, before)) });
                }
                Undo::Restore => {}
            }
        }
    }
    wishes
}

/// The size of a pool with all pages that this boot was to give it by lines of ours, beside what it has now; `None`
/// where none of them is missing. What an entry of an earlier boot lacks, one of this boot may have raised since.
fn size_of_boot(own: &[&Entry], place: &str, observation: &Observation) -> Option<u64> {
    let boot = &observation.host.boot_id;
    let has_line = |entry: &&&Entry| {
        let of_earlier = |step: &&EntryStep| step.is_in_file() && step.written_in(&entry.boot_id) != boot;
        let mut lines = entry.steps.iter().filter(of_earlier).flat_map(|file| &file.pools);
        lines.any(|line| line.place == place)
    };
    // Entries are in force as if they were of this boot; those before one whose file is older are older, too.
    let last = own.iter().filter(has_line).map(|entry| entry.id).max()?;
    let steps = own.iter().filter(|entry| &entry.boot_id == boot).flat_map(|entry| {
        let steps = entry.steps.iter().filter(|step| step.undo == Undo::Subtract && step.place == place);
        steps.map(|step| (entry.id, step))
    });
    let lacking = steps.fold(0_u64, |lacking, (id, step)| match id <= last {
        true => lacking.saturating_add(step.pages_lacking()),
        false => lacking.saturating_sub(step.still_held()),
    });
    let pool = observation.pools.iter().find(|pool| pool.place == place)?;
    (lacking > 0).then(|| pool.persistent().saturating_add(lacking))
}

/// Adds what the lines of an entry's files bring at each boot. A value that was there as it is wanted is in no step,
/// and is the entry's all the same from the line on: whoever sets another one now, or has a later file or program do so
/// at the next boot, takes from the entry what it was asked to keep.
fn add_lines(wishes: &mut Wishes, entry: &Entry, observation: &Observation, catalogue: &Catalogue) {
    let is_there = |step: &&EntryStep| step.is_in_file() && !step.is_undone();
    // A file of ours that is the place of a knob is there until an undo, in whichever boot.
    for step in entry.steps.iter().filter(is_there).filter(|step| !step.knob.is_persistence()) {
        let (text, by) = (step.wanted.clone(), Some((entry.id, None)));
        wishes.insert((step.knob.clone(), step.place.clone()), Wish::Value { text, by });
    }
    let is_kept = |step: &&EntryStep| step.knob.is_persistence() && is_there(step);
    for (place, text) in entry.steps.iter().filter(is_kept).flat_map(EntryStep::lines) {
        let mut seen = observation.knobs.iter();
        let of_place = seen.find(|(_, readings)| readings.iter().any(|reading| reading.place == place));
        let knob = of_place.and_then(|(id, _)| catalogue.knob(id).ok());
        // Pages of a pool are told by its steps.
        let Some(knob) = knob.filter(|knob| knob.undo == Undo::Restore) else { continue };
        if text.trim() != "0"
            && let Some((twin, place)) = twin_of(knob, &place, catalogue)
        {
            wishes.remove(&(twin.id.clone(), place));
        }
        wishes.insert((knob.id.clone(), place), Wish::Value { text, by: Some((entry.id, None)) });
    }
}

/// The boot parameters that open entries of any boot had the boot loader give: the newest counts. Somebody may have
/// taken them out since, and a kernel that was installed later may have an entry without them.
pub(crate) fn of_boot_files(open: &[Entry], catalogue: &Catalogue) -> Wishes {
    let mut entries: Vec<&Entry> = open.iter().filter(|entry| entry.is_open()).collect();
    entries.sort_small_by_key(|entry| entry.id);
    let mut wishes = Wishes::new();
    let knobs: Vec<&Knob> = catalogue.knobs().filter(|knob| knob.boot_parameter().is_some()).collect();
    for entry in entries {
        for step in entry.steps.iter().filter(|step| is_in_boot_file(step)) {
            let arguments = step.boot_arguments().unwrap_or_default();
            for knob in &knobs {
                let Some(text) = bootline::value(arguments, knob, bootline::Kernel::default()) else {
                    continue;
                };
                let by = Some((entry.id, None));
                wishes.insert((knob.id.clone(), knob.path.clone()), Wish::Value { text, by });
            }
        }
    }
    wishes
}

/// Whether a file of the boot loader has what a step gives it.
pub(crate) fn is_in_boot_file(step: &EntryStep) -> bool {
    let outcome = step.outcome.as_ref().map(|outcome| outcome.outcome);
    let is_written =
        matches!(outcome, Some(OutcomeKind::Done | OutcomeKind::Satisfied | OutcomeKind::TakenOver));
    is_written && !step.is_undone()
}

/// The twin of a knob, and its place beside one of the knob's.
pub(crate) fn twin_of<'a>(knob: &Knob, place: &str, catalogue: &'a Catalogue) -> Option<(&'a Knob, String)> {
    let twin = catalogue.knob(knob.twin.as_ref()?).ok()?;
    let holes = place::captures(&knob.path, place)?;
    Some((twin, place::fill(&twin.path, &holes)))
}

/// The size of a pool that a step asked for in vain; `None` where it got what it asked for.
pub(crate) fn pages_short_of(step: &EntryStep) -> Option<u64> {
    let short = step.undone.is_none() && step.outcome.as_ref().is_some_and(|done| done.short.is_some());
    if short { step.wanted.trim().parse().ok() } else { None }
}

/// Open entries of this boot, oldest first.
pub(crate) fn of_this_boot<'a>(open: &'a [Entry], observation: &Observation) -> Vec<&'a Entry> {
    let boot = &observation.host.boot_id;
    let mut own: Vec<&Entry> =
        open.iter().filter(|entry| entry.is_open() && &entry.boot_id == boot).collect();
    own.sort_small_by_key(|entry| entry.id);
    own
}
