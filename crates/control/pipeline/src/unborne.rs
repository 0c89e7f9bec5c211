//! An undo that would take away a limit which another entry needs, the ratio below the mode that it has set, the
//! highest below its lowest; or that would bring back a value of an older entry which has lost its limit since.
//! Whatever a plan is refused for is no way to leave a host. What nobody has built upon goes back however tight the
//! host was before: that is how it was.

use std::fmt;

use planish_act::stack;
use planish_model::{
    Catalogue, Entry, EntryId, EntryStep, KnobId, Original, Plan, Step, Undo, Verdict, VerdictKind,
};

use crate::error::PipelineError;
use crate::session::Session;
use crate::unconfirmed;

/// Places of a knob that are named before the others are only counted.
const PLACES_NAMED_MAX: usize = 3;

/// What stands against an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unborne {
    /// What was to be taken back.
    pub entries: Vec<EntryId>,
    /// The entry that stays and with which the host would not be borne: the newest that was built upon them, else one
    /// below them.
    pub other: EntryId,
    /// The value of the other entry that would come back, as `knob = value`.
    pub back: Option<String>,
    /// Each knob that would go back, with its places and what stands against it.
    pub why: String,
}

impl Unborne {
    /// What to do instead.
    #[must_use]
    pub fn cure(&self) -> String {
        let other = self.other;
        let first = if self.is_below() { "that one" } else { "what was set since" };
        format!(
            "take back first {first}: planish undo {other}; or all of it: planish undo --all; to have it so all the \
             same: --force"
        )
    }

    /// Whether what stands against it was there before all that was to be taken back.
    fn is_below(&self) -> bool {
        self.entries.iter().all(|entry| self.other < *entry)
    }
}

impl std::error::Error for Unborne {}

impl fmt::Display for Unborne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, other, back, why } = self;
        let undo = undo_of(entries);
        match back {
            Some(back) => {
                write!(f, "{undo} would bring back {back} of entry {other}, which is not borne now: {why}")
            }
            None if self.is_below() => {
                write!(f, "{undo} would leave entry {other} without what is needed: {why}")
            }
            None => write!(f, "{undo} would take away what is needed: {why}"),
        }
    }
}

fn undo_of(entries: &[EntryId]) -> String {
    let named: Vec<String> = entries.iter().map(ToString::to_string).collect();
    let entry = if named.len() == 1 { "entry" } else { "entries" };
    format!("an undo of {entry} {}", named.join(", "))
}

/// Refuses to take entries back where what is left then is what a plan is refused for, and would not be without the
/// others, or would be once the timer of one that waits for its confirm is over.
pub(crate) fn refuse(
    session: &Session,
    entries: &[Entry],
    selected: &[EntryId],
) -> Result<(), PipelineError> {
    // A catalogue that is not sound holds no undo up.
    let Ok(catalogue) = session.sound_catalogue() else { return Ok(()) };
    let known = session.in_boot(entries);
    match found(session, catalogue, &known, selected) {
        Some(unborne) => Err(unborne.into()),
        None => refuse_below_timers(session, catalogue, &known, selected),
    }
}

/// The same as a finding, of the entries as they are in this boot.
fn found(session: &Session, catalogue: &Catalogue, known: &[Entry], selected: &[EntryId]) -> Option<Unborne> {
    let others = staying(known, selected);
    let back = going_back(session, catalogue, known, selected);
    if others.is_empty() || back.is_empty() {
        return None;
    }
    let with = |ids: &[EntryId]| {
        refused(session, catalogue, &going_back(session, catalogue, known, &[selected, ids].concat()))
    };
    let mut unborne = refused(session, catalogue, &back);
    if unborne.is_empty() {
        return None;
    }
    // However tight the host was before anybody came, it may be so again.
    let without = with(&others);
    unborne.retain(|refusal| !refusal.is_among(&without));
    if unborne.is_empty() {
        return None;
    }
    let is_it = |id: &EntryId| {
        let left = with(&[*id]);
        unborne.iter().any(|refusal| !refusal.is_among(&left))
    };
    let oldest = selected.iter().min();
    let (newer, older): (Vec<EntryId>, Vec<EntryId>) = others.iter().partition(|id| Some(*id) > oldest);
    let of_other = |id: EntryId| back.iter().find_map(|step| brought_back(catalogue, known, id, step));
    let is_back = |id: &EntryId| of_other(*id).is_some() && is_it(id);
    let find =
        |ids: &[EntryId], is_it: &dyn Fn(&EntryId) -> bool| ids.iter().rev().copied().find(|id| is_it(id));
    let other = find(&newer, &is_it).or_else(|| find(&older, &is_back)).or_else(|| find(&older, &is_it));
    let other = other.or(others.last().copied())?;
    let back = of_other(other).filter(|_| older.contains(&other));
    Some(Unborne { entries: selected.to_vec(), other, back, why: told(&unborne) })
}

/// The open entries that are not among these.
fn staying(known: &[Entry], selected: &[EntryId]) -> Vec<EntryId> {
    let open = known.iter().filter(|entry| entry.is_open() && !selected.contains(&entry.id));
    open.map(|entry| entry.id).collect()
}

/// What goes back to the value that an entry had left there.
fn brought_back(catalogue: &Catalogue, known: &[Entry], id: EntryId, back: &Step) -> Option<String> {
    let mut own = known.iter().filter(|entry| entry.id == id).flat_map(|entry| &entry.steps);
    let knob = catalogue.knob(&back.knob).ok()?;
    let is_its = own
        .any(|own| own.place == back.place && !own.is_undone() && knob.r#type.same(own.ours(), &back.wanted));
    is_its.then(|| format!("{} = {}", back.knob, back.wanted.trim()))
}

/// Refuses to take entries back without which the timer of another one would bring back what a plan is refused for: it
/// asks nobody.
fn refuse_below_timers(
    session: &Session,
    catalogue: &Catalogue,
    known: &[Entry],
    selected: &[EntryId],
) -> Result<(), PipelineError> {
    let waiting = unconfirmed::in_turn(session, known).into_iter();
    let mut gone = Vec::new();
    for waiting in waiting.filter(|waiting| !waiting.is_abandoned && !selected.contains(&waiting.entry)) {
        gone.push(waiting.entry);
        let after =
            |ids: &[EntryId]| refused(session, catalogue, &going_back(session, catalogue, known, ids));
        let both = [selected, &gone[..]].concat();
        let mut unborne = after(&both);
        if unborne.is_empty() {
            continue;
        }
        // What the timer leaves anyway is not of this undo, and what was there before anybody came may be there again.
        let (anyway, before) = (after(&gone), after(&[both, staying(known, selected)].concat()));
        unborne.retain(|refusal| !refusal.is_among(&anyway) && !refusal.is_among(&before));
        if !unborne.is_empty() {
            let what = format!("what {} needs (without it, {})", undo_of(selected), told(&unborne));
            return Err(PipelineError::Unconfirmed { what, unconfirmed: waiting });
        }
    }
    Ok(())
}

/// What a plan would be refused for once entries are gone, and not without it: each knob with its places.
pub(crate) fn built_upon(
    session: &Session,
    known: &[Entry],
    gone: &[EntryId],
    steps: &[Step],
) -> Option<String> {
    let catalogue = session.sound_catalogue().ok()?;
    let bound = steps.iter().filter(|step| planish_decide::is_bound(step, catalogue));
    let planned: Vec<Step> = bound.cloned().collect();
    let mut back = going_back(session, catalogue, known, gone);
    back.retain(|own| !steps.iter().any(|step| step.place == own.place));
    if planned.is_empty() || back.is_empty() {
        return None;
    }
    let mut upon = refused(session, catalogue, &[planned.clone(), back.clone()].concat());
    if upon.is_empty() {
        return None;
    }
    let unwritten = planned.iter().map(|step| {
        let wanted = step.now.clone();
        Step { wanted, raise_pages: step.raise_pages.map(|_| 0), ..step.clone() }
    });
    // How it is without the plan, and what it is refused for anyway, is told elsewhere.
    let before = refused(session, catalogue, &unwritten.chain(back).collect::<Vec<_>>());
    let alone = refused(session, catalogue, &planned);
    upon.retain(|refusal| !refusal.is_among(&before) && !refusal.is_among(&alone));
    let is_own = |refusal: &Refusal| planned.iter().any(|step| step.place == refusal.place);
    if upon.iter().any(is_own) {
        upon.retain(is_own);
    }
    (!upon.is_empty()).then(|| told(&upon))
}

/// Whether `undo` of an entry is refused, since what was set above it needs what it set: the steps of a plan, written
/// or not, or another entry, or what the timer of one brings back.
#[must_use]
pub fn is_undo_refused(session: &Session, id: EntryId, plan: &Plan) -> bool {
    let (Ok(catalogue), Ok(ledger)) = (session.sound_catalogue(), session.ledger()) else { return false };
    let known = session.in_boot(&ledger.entries);
    found(session, catalogue, &known, &[id]).is_some()
        || refuse_below_timers(session, catalogue, &known, &[id]).is_err()
        || built_upon(session, &known, &[id], &plan.steps).is_some()
}

/// Why a value of an entry may not go back now, whoever asks for it. [`refuse`] looks ahead, and cannot see what is
/// promised meanwhile, what somebody sets by hand, or a timer that did not come; this is asked at each write.
pub(crate) fn at_write(session: &Session, step: &EntryStep) -> Option<String> {
    starves(session, step).or_else(|| shuts_out(session, step))
}

/// Users who could log in no more: they were given more open files since than the value of before lets any process
/// have.
fn shuts_out(session: &Session, step: &EntryStep) -> Option<String> {
    if step.undo != Undo::Restore || !planish_decide::asks_of_file_limits(&step.knob) {
        return None;
    }
    let now = |original: &Original| session.host().read(&original.place).ok();
    let back = planish_decide::going_back(session.catalogue(), [step], &now);
    planish_decide::shuts_out(&planish_observe::log_in_limits(session.host()), &back)
}

/// Programs would be held to less than they were promised, and none could be started, nor one that would set it right.
fn starves(session: &Session, step: &EntryStep) -> Option<String> {
    let catalogue = session.catalogue();
    let (_, limits) =
        (step.undo == Undo::Restore).then(|| planish_decide::holds(catalogue, &step.knob)).flatten()?;
    let read = |place: &str| session.host().read(place).ok();
    let mut steps = planish_decide::going_back(catalogue, [step], &|original| read(&original.place));
    if !steps.iter().any(|back| limits.contains(&back.knob)) {
        // The limit in force: of the two the other one is 0.
        let in_force = limits.iter().filter_map(|limit| {
            let limit = catalogue.knob(limit).ok()?;
            let now = read(&limit.path).filter(|now| now.trim() != "0")?;
            let settable = Verdict::new(VerdictKind::Settable, "stays");
            Some(Step::of(limit, &limit.path, now.clone(), now, settable))
        });
        steps.extend(in_force);
    }
    planish_decide::starves(&session.observe_steps(&steps), &steps)
}

/// A place of which a plan would be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refusal {
    knob: KnobId,
    place: String,
    why: String,
}

impl Refusal {
    /// Whether the same place is refused there, for whatever reason.
    fn is_among(&self, others: &[Self]) -> bool {
        others.iter().any(|other| other.place == self.place)
    }
}

/// What a plan of these steps would be refused for on the host of this moment.
fn refused(session: &Session, catalogue: &Catalogue, steps: &[Step]) -> Vec<Refusal> {
    let refusals = planish_decide::refusals(catalogue, &session.observe_steps(steps), steps);
    let refused = steps.iter().zip(refusals).filter_map(|(step, why)| {
        Some(Refusal { knob: step.knob.clone(), place: step.place.clone(), why: why? })
    });
    refused.collect()
}

/// Each knob with its places and what stands against it: what is the same of many places is told once.
fn told(refusals: &[Refusal]) -> String {
    let mut told: Vec<(&KnobId, &str, Vec<&str>)> = Vec::new();
    for Refusal { knob, place, why } in refusals {
        // That is for whoever asks for one of two; here they have been asked for.
        let why = why.trim_end_matches(": want both");
        match told.iter_mut().find(|(other, reason, _)| *other == knob && *reason == why) {
            Some((.., places)) => places.push(place),
            None => told.push((knob, why, vec![place])),
        }
    }
    let named = |(knob, why, places): (&KnobId, &str, Vec<&str>)| {
        let named = places.iter().take(PLACES_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = match places.len().saturating_sub(PLACES_NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{knob} ({named}{more}): {why}")
    };
    told.into_iter().map(named).collect::<Vec<_>>().join("; ")
}

/// The values that would go back of those that bound each other, with their twins: of a place that several entries set
/// the oldest original, and nothing where an entry that stays has it.
fn going_back(session: &Session, catalogue: &Catalogue, known: &[Entry], selected: &[EntryId]) -> Vec<Step> {
    let goes = |entry: &&Entry| selected.contains(&entry.id);
    let above = |own: &Entry, place: &str| -> Vec<&Entry> {
        known.iter().filter(|other| other.id > own.id && sets(other, place)).collect()
    };
    let mut going: Vec<EntryStep> = Vec::new();
    for entry in known.iter().filter(goes) {
        for own in entry.steps.iter().filter(|own| own.undo == Undo::Restore && !own.is_undone()) {
            let above = above(entry, &own.place);
            let is_covered = above.iter().any(|other| other.is_open() && !goes(other));
            let is_ours = |now: &str| {
                let kind = catalogue.knob(&own.knob).map(|knob| &knob.r#type);
                above.iter().any(goes) || kind.is_ok_and(|kind| kind.same(now, own.ours()))
            };
            // What somebody else has set since stays.
            if !is_covered && session.host().read(&own.place).is_ok_and(|now| is_ours(&now)) {
                going.push(stack::with_originals(own, known));
            }
        }
    }
    let now = |original: &Original| session.host().read(&original.place).ok();
    let mut back = planish_decide::going_back(catalogue, &going, &now);
    back.retain(|step| planish_decide::is_bound(step, catalogue));
    back
}

fn sets(entry: &Entry, place: &str) -> bool {
    entry.steps.iter().any(|step| step.place == place && step.undo == Undo::Restore && !step.is_undone())
}
