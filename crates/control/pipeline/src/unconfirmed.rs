//! Entries that go by themselves unless somebody confirms them.

use std::collections::BTreeSet;
use std::fmt;

use planish_model::{Coupling, Entry, EntryId, EntryState, EntryStep, Plan, Step};
use planish_sorted::SortSmall as _;

use crate::error::PipelineError;
use crate::session::Session;
use crate::{ApplyOptions, unborne, watch};

/// An entry that its timer takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// The entry.
    pub entry: EntryId,
    /// Seconds until then; 0 where that moment is over and the timer waits for its turn.
    pub seconds_left: u64,
    /// Whether `planish confirm` keeps it. What a kill left half done can only be taken back.
    pub is_whole: bool,
    /// Whether its timer is gone, so that nothing takes it back by itself.
    pub is_abandoned: bool,
}

/// Seconds after its deadline from which an entry counts as abandoned, where its timer cannot be seen.
const GRACE: u64 = 60;

impl Unconfirmed {
    /// The entry, if a timer waits for it in this boot of the host.
    fn of(session: &Session, boot_id: &str, entry: &Entry) -> Option<Self> {
        let deadline = entry.confirm_by.filter(|_| entry.is_open() && entry.boot_id == boot_id)?;
        Some(Self {
            entry: entry.id,
            seconds_left: deadline.saturating_sub(session.now()),
            is_whole: entry.state == EntryState::Unconfirmed,
            is_abandoned: watch::is_gone(session, entry.id)
                .unwrap_or_else(|| session.now().saturating_sub(deadline) > GRACE),
        })
    }

    /// What keeps it, and what takes it back before its time.
    pub(crate) fn cure(&self) -> String {
        if self.is_whole {
            format!("keep what is there: planish confirm; or take it back: planish undo {}", self.entry)
        } else {
            format!("take back what a kill left of it: planish undo {}", self.entry)
        }
    }
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, seconds_left, is_abandoned, .. } = self;
        match (is_abandoned, seconds_left) {
            (false, _) => write!(f, "entry {entry} is undone in {seconds_left} s unless it is confirmed"),
            (true, 0) => write!(f, "entry {entry} was to be undone by now, and its timer is gone"),
            (true, _) => write!(
                f,
                "entry {entry} was to be undone in {seconds_left} s unless it is confirmed, and its timer is gone"
            ),
        }
    }
}

/// All of them, in the order of the entries.
#[must_use]
pub fn all(session: &Session, entries: &[Entry]) -> Vec<Unconfirmed> {
    let boot_id = session.host().boot_id();
    entries.iter().filter_map(|entry| Unconfirmed::of(session, &boot_id, entry)).collect()
}

/// The same in the order in which they go: one by one, each when its time is over.
pub(crate) fn in_turn(session: &Session, entries: &[Entry]) -> Vec<Unconfirmed> {
    let mut waiting = all(session, entries);
    waiting.sort_small_by_key(|unconfirmed| (unconfirmed.seconds_left, unconfirmed.entry));
    waiting
}

/// Refuses a plan that names a place of such an entry, or that is built upon one. What is as wanted there is so only
/// until the timer comes: to call it done would be untrue, and to write it into files that are read at every boot would
/// keep what nobody confirmed.
///
/// Where files are asked for (`persist` of the options), that holds for what the confirm is to write into files, too:
/// of two entries with one argument of the kernel the second would find it there, and its undo would take that of the
/// first.
pub(crate) fn refuse(
    session: &Session,
    entries: &[Entry],
    plan: &Plan,
    options: &ApplyOptions,
) -> Result<(), PipelineError> {
    let satisfied = plan.skipped.iter().filter(|skipped| skipped.satisfied).map(|skipped| &skipped.place);
    let planned: BTreeSet<&String> = plan.steps.iter().map(|step| &step.place).chain(satisfied).collect();
    let in_files: BTreeSet<&String> = match options.persist {
        true => planned.iter().copied().chain(plan.boot.iter().map(|step| &step.place)).collect(),
        false => BTreeSet::new(),
    };
    let boot_id = session.host().boot_id();
    for entry in entries {
        let Some(unconfirmed) = Unconfirmed::of(session, &boot_id, entry) else { continue };
        let held = entry.steps.iter().filter(|step| !step.is_undone()).flat_map(held);
        let due = entry.on_confirm.iter().flat_map(|due| {
            let values = due.skipped.iter().filter(|row| row.satisfied).map(|row| &row.place);
            values.chain(due.boot.iter().map(|step| &step.place))
        });
        let mut held = held.filter(|place| planned.contains(place));
        if let Some(place) = held.next() {
            // However short its own is: were that timer gone, nothing would take the value back.
            let why = match options.confirm_seconds {
                None => "",
                Some(_) => {
                    ", which only one entry at a time may try (a timer leaves what a newer entry has set)"
                }
            };
            return Err(PipelineError::Unconfirmed { what: format!("{place}{why}"), unconfirmed });
        }
        if let Some(place) = due.into_iter().find(|place| in_files.contains(place)) {
            return Err(PipelineError::Unconfirmed { what: place.clone(), unconfirmed });
        }
    }
    refuse_upon(session, entries, plan, options.confirm_seconds)
}

/// Why the kernel would not keep a value of a plan once some entries are gone: another knob goes back to where it has
/// one word for it alone.
fn pinned_without(session: &Session, known: &[Entry], gone: &[EntryId], steps: &[Step]) -> Option<String> {
    let back = |place: &str| {
        let newest = known.iter().rev().find_map(|entry| {
            let step = entry.steps.iter().find(|step| step.sets(place))?;
            Some((entry.id, step))
        });
        let (id, step) = newest?;
        gone.contains(&id).then(|| step.original().map(|original| original.value.trim()))?
    };
    steps.iter().find_map(|step| {
        let knob = session.catalogue().knob(&step.knob).ok()?;
        let (pin, by, place) = session.catalogue().pinning(knob, &step.place)?;
        let is_pinned = back(&place).is_some_and(|value| by.r#type.same(value, &pin.at));
        (is_pinned && !knob.r#type.same(&step.wanted, &pin.to)).then(|| {
            format!(
                "{} goes back to `{}`, beside which the kernel keeps {} at `{}`",
                by.id, pin.at, knob.id, pin.to
            )
        })
    })
}

/// Refuses a plan that is built upon such an entry: its timer asks nobody, and would leave what a plan is refused for.
/// One that waits itself, and not as long, goes before it, and a confirm keeps both.
fn refuse_upon(
    session: &Session,
    entries: &[Entry],
    plan: &Plan,
    confirm_seconds: Option<u64>,
) -> Result<(), PipelineError> {
    let mut waiting = in_turn(session, entries);
    let is_after = |waiting: &Unconfirmed, own: u64| {
        waiting.is_whole && !waiting.is_abandoned && waiting.seconds_left >= own.saturating_add(GRACE)
    };
    waiting.retain(|waiting| !confirm_seconds.is_some_and(|own| is_after(waiting, own)));
    if waiting.is_empty() || plan.steps.is_empty() {
        return Ok(());
    }
    let known = session.in_boot(entries);
    let mut gone = Vec::new();
    for unconfirmed in waiting {
        gone.push(unconfirmed.entry);
        if let Some(why) = pinned_without(session, &known, &gone, &plan.steps) {
            let what = format!("what the plan is built upon (without it, {why})");
            return Err(PipelineError::Unconfirmed { what, unconfirmed });
        }
        if let Some(why) = unborne::built_upon(session, &known, &gone, &plan.steps) {
            let what = format!("what the plan is built upon (without it, {why})");
            return Err(PipelineError::Unconfirmed { what, unconfirmed });
        }
    }
    Ok(())
}

/// Places whose values a step brings: its own, and that of a twin, which it cleared.
fn held(step: &EntryStep) -> impl Iterator<Item = &String> {
    let twins = step.originals.iter().filter(|original| original.coupling == Some(Coupling::Twin));
    std::iter::once(&step.place).chain(twins.map(|original| &original.place))
}
