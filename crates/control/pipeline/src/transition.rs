//! `apply B --instead-of A`: from what one entry set to what another plan wants, without a dip through the defaults.
//!
//! ```text
//!               before A      A        B wants      from A to B                          undo B
//!   swappiness     60         10          10        taken over: not written              -> 60
//!   stat_interval   1         10          20        10 -> 20                             -> 1
//!   dirty_bytes     0       4096          -         4096 -> 0 (goes back)                stays
//!   thp         always         -        never       always -> never                      -> always
//! ```
//!
//! All of it is one plan and one entry, which lies over A as any entry lies over an older one: its originals are what A
//! left. So a kill, a step that fails, or a dead-man timer that nobody stops takes B back to what A had; A is whole.
//! Once every step is written (and confirmed, where that was asked for), A is taken back as any entry is: what B set,
//! took over or put back is B's by then, and A hands its originals over. Pages of pools change hands in one line of the
//! journal. The files of A go last. Then A is closed, and says by whom its place was taken.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use planish_act::stack::{self, Resolved};
use planish_act::three_way::{self, Whose};
use planish_act::{Sink, boot};
use planish_journal::{Journal, JournalError};
use planish_model::{
    Catalogue, Caused, Closure, Entry, EntryId, EntryState, EntryStep, Exit, Instead, Knob, KnobId, Original,
    Outcome, OutcomeKind, Part, Plan, PoolGoing, Skipped, Step, Theirs, Undo, Verdict, VerdictKind, place,
};
use planish_sorted::CollectMap as _;

use crate::error::PipelineError;
use crate::gone::is_gone;
use crate::session::Session;
use crate::{bereft, devices, pools, undo, units, until_reboot};

/// What becomes of the values of an entry whose place a plan takes, as far as the plan does not set them.
struct Going {
    profile: String,
    /// Steps that put values back, in their order.
    back: Vec<Step>,
    /// Those that come behind what the plan writes, since the kernel refuses them before that.
    behind: Vec<Step>,
    theirs: Vec<Theirs>,
    files: Vec<String>,
}

/// The text that a place shows.
type Read<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A plan that was made beside an entry, as the one that takes its place: with the steps that put back what it leaves.
///
/// # Errors
/// Why the place of that entry cannot be taken.
pub(crate) fn take_place(
    session: &Session,
    entries: &[Entry],
    id: EntryId,
    plan: Plan,
    is_excluded: &dyn Fn(&Skipped) -> bool,
) -> Result<Plan, PipelineError> {
    let read = |place: &str| session.host().read(place).ok();
    let going = look(session, entries, id, &plan, &read)?;
    refuse_unset(id, &plan, &session.in_boot(entries), is_excluded)?;
    if plan.steps.iter().all(|step| step.beside.is_some()) {
        let reason = format!("{} takes nothing over from it and writes nothing besides", plan.profile);
        return Err(refused(id, reason, format!("planish undo {id} puts back what it set")));
    }
    let Going { profile, back, behind, theirs, files } = going;
    let steps = within_bounds(session, &[back, plan.steps.clone(), behind].concat())?;
    let takes = |place: &str| {
        let step = plan.steps.iter().find(|step| step.undo == Undo::Subtract && step.place == place);
        step.and_then(|step| step.takes_pages).unwrap_or(0)
    };
    // One that holds nothing in this boot was refused.
    let known = session.in_boot(entries);
    let old = known.iter().find(|entry| entry.id == id);
    let pools = old.map_or_else(Vec::new, |old| pools::going(session, old, &takes, &known));
    Ok(plan.in_place_of(Instead { entry: id, profile, theirs, files, pools }, steps))
}

/// What goes back and what the plan writes, in an order in which no state on the way is one that is refused.
fn within_bounds(session: &Session, steps: &[Step]) -> Result<Vec<Step>, PipelineError> {
    let observation = session.observe_steps(steps);
    Ok(planish_decide::within_bounds(steps, session.sound_catalogue()?, &observation))
}

/// Refuses a plan that takes the place of an entry where that is not as the plan saw it: what would go back, and whose
/// value a place shows, follows from the journal and the host of this moment, and not from a file.
pub(crate) fn refuse_moved(
    session: &Session,
    entries: &[Entry],
    plan: &Plan,
    sink: &dyn Sink,
) -> Result<(), PipelineError> {
    let Some(instead) = &plan.instead_of else { return Ok(()) };
    let id = instead.entry;
    let read = |place: &str| sink.read(place).ok();
    let going = look(session, entries, id, plan, &read)?;
    let mut moved = Vec::new();
    let planned: Vec<&Step> = plan.steps.iter().filter(|step| step.part == Some(Part::Back)).collect();
    let told = |steps: &[&Step], step: &Step| {
        let other = steps.iter().find(|other| other.place == step.place);
        other.map_or_else(|| "nothing".to_owned(), |other| format!("`{}`", other.wanted.trim()))
    };
    let due: Vec<&Step> = going.back.iter().chain(&going.behind).collect();
    for step in planned.iter().chain(&due) {
        let (planned, due) = (told(&planned, step), told(&due, step));
        let text = format!("{} goes back to {due} with entry {id}, and to {planned} in the plan", step.place);
        if planned != due && !moved.contains(&text) {
            moved.push(text);
        }
    }
    // What bounds each other has an order of its own, beside what the plan writes.
    let catalogue = session.sound_catalogue()?;
    let unbound = |steps: &[&Step]| -> Vec<String> {
        let unbound = steps.iter().filter(|step| !planish_decide::is_bound(step, catalogue));
        unbound.map(|step| step.place.clone()).collect()
    };
    let is_in_order = unbound(&planned) == unbound(&due)
        && within_bounds(session, &plan.steps)?.iter().zip(&plan.steps).all(|(a, b)| a.place == b.place);
    if moved.is_empty() && !is_in_order {
        moved.push(format!("entry {id} goes back in another order"));
    }
    let known = session.in_boot(entries);
    let is_taken = |step: &&Step| step.part == Some(Part::TakenOver) && step.beside.is_none();
    for step in plan.steps.iter().filter(is_taken) {
        if step.undo != Undo::Subtract && holder(&step.place, &known) != Some(id) {
            moved.push(format!("{} is not what entry {id} set any more", step.place));
        }
    }
    for (step, pages) in plan.steps.iter().filter_map(|step| Some((step, step.takes_pages?))) {
        let held = pages_held(id, &step.place, &known);
        if held < pages {
            moved.push(format!("{}: entry {id} holds {held} pages, the plan takes {pages}", step.place));
        }
    }
    if moved.is_empty() { Ok(()) } else { Err(PipelineError::Moved { moved }) }
}

/// The pages of a pool that an entry holds.
pub(crate) fn pages_held(id: EntryId, place: &str, known: &[Entry]) -> u64 {
    let steps = known.iter().filter(|entry| entry.id == id).flat_map(|entry| &entry.steps);
    let own = steps.filter(|step| step.undo == Undo::Subtract && step.place == place && !step.is_undone());
    own.map(EntryStep::pages_held).sum()
}

/// The newest entry that set a place, and still does.
fn holder(place: &str, known: &[Entry]) -> Option<EntryId> {
    let mut open = known.iter().rev().filter(|entry| entry.is_open());
    open.find(|entry| entry.steps.iter().any(|step| step.sets(place))).map(|entry| entry.id)
}

fn refused(entry: EntryId, reason: impl Into<String>, cure: impl Into<String>) -> PipelineError {
    PipelineError::InsteadOf { entry, reason: reason.into(), cure: cure.into() }
}

/// Looks what becomes of an entry whose place a plan takes. Refuses one whose place cannot be taken by this plan.
fn look(
    session: &Session,
    entries: &[Entry],
    id: EntryId,
    plan: &Plan,
    read: &Read<'_>,
) -> Result<Going, PipelineError> {
    let known = session.in_boot(entries);
    let entry = known.iter().find(|entry| entry.id == id).ok_or(JournalError::NoEntry { id })?;
    refuse_entry(session, entry, &known)?;
    let catalogue = session.sound_catalogue()?;
    refuse_unnamed(entry, plan, &known)?;
    let steps = plan.steps.iter().filter(|step| step.part != Some(Part::Back));
    let set = steps.map(|step| (step.place.as_str(), step.wanted.as_str())).collect_map();
    let mut draft = Draft {
        catalogue,
        entry,
        known: &known,
        set,
        own: Vec::new(),
        behind: Vec::new(),
        after: Vec::new(),
        theirs: Vec::new(),
    };
    for index in undo::way_back(session, entry, &known, false) {
        draft.add(index, read)?;
    }
    let Draft { set, mut own, behind, after, theirs, .. } = draft;
    refuse_pinned(catalogue, id, plan, (&own, &after))?;
    own.extend(after);
    // A drop-in that the plan wants, too, stays as it is.
    let stays = |step: &EntryStep| step.undo == Undo::File && set.contains_key(step.place.as_str());
    let left = |step: &&EntryStep| step.undo.outlives_boot() && !step.is_undone() && !stays(step);
    let files = entry.steps.iter().filter(left);
    let files = files.map(|step| step.place.clone()).collect();
    Ok(Going { profile: entry.profile.clone(), back: own, behind, theirs, files })
}

/// Refuses an entry of which it is not known what it holds, or which holds nothing that a plan could take over.
fn refuse_entry(session: &Session, entry: &Entry, known: &[Entry]) -> Result<(), PipelineError> {
    let id = entry.id;
    let log = "planish log names the open ones";
    match entry.state {
        EntryState::Open => {}
        EntryState::Closed(Closure::Replaced) => {
            let by = entry.replaced_by.map_or_else(|| "another one".to_owned(), |by| format!("entry {by}"));
            return Err(refused(id, format!("{by} took its place already"), log));
        }
        EntryState::Closed(_) => return Err(refused(id, "it holds nothing any more", log)),
        EntryState::Unconfirmed => {
            let cure = format!("planish confirm, or planish undo {id}");
            return Err(refused(id, "it waits for a confirm", cure));
        }
        EntryState::Interrupted => {
            return Err(refused(id, "it is half way on the host", format!("planish undo {id}")));
        }
    }
    if let Some(heir) = known.iter().find(|other| other.is_open() && other.instead_of == Some(id)) {
        let cure = match heir.state {
            EntryState::Open => format!("end that: planish undo {id}"),
            EntryState::Unconfirmed => format!("planish confirm, or planish undo {}", heir.id),
            _ => format!("planish undo {}", heir.id),
        };
        return Err(refused(id, format!("entry {} is about to take its place", heir.id), cure));
    }
    if entry.trial_boot().is_some() {
        let cure = format!("planish confirm in that boot, or planish undo {id}");
        return Err(refused(id, "it is a trial boot", cure));
    }
    // What it put back for an entry whose place it took is no part of it any more.
    let is_taken_back =
        |step: &EntryStep| step.undone.is_some() && !is_gone(step) && step.part != Some(Part::Back);
    if entry.steps.iter().any(is_taken_back) {
        let reason = "an undo has taken something of it back already";
        return Err(refused(id, reason, format!("planish undo {id} takes back the rest")));
    }
    // Files for the next boot, and those of `planish install`, are of no row.
    let is_value = |step: &EntryStep| session.catalogue().knob(&step.knob).is_ok();
    let holds = |step: &EntryStep| step.undo != Undo::None && is_value(step) && !step.is_undone();
    if entry.boot_id != session.host().boot_id() || !entry.steps.iter().any(holds) {
        let cure = format!("planish undo {id} takes back what there is of it");
        return Err(refused(id, "it holds no value of the running host", cure));
    }
    Ok(())
}

/// The wanted boot parameters that an entry has the boot loader give, too.
fn shared<'c, 'w>(
    catalogue: &'c Catalogue,
    entry: &Entry,
    wanted: impl Iterator<Item = (&'w KnobId, &'w str)>,
) -> impl Iterator<Item = (&'c Knob, String)> {
    let given: Vec<String> =
        entry.steps.iter().filter(|step| !step.is_undone()).flat_map(EntryStep::boot_parameters).collect();
    wanted.filter_map(move |(id, value)| {
        let knob = catalogue.knob(id).ok()?;
        let argument = knob.argument(value)?;
        given.contains(&argument).then_some((knob, argument))
    })
}

/// The boot parameters of a plan that entries have the boot loader give, which stay: they are one run of arguments of
/// each, and no other entry holds them beside it.
pub(crate) fn given_by_others(catalogue: &Catalogue, open: &[Entry], plan: &Plan) -> Vec<String> {
    // Who applies the same once more, and nothing else, has an entry of it.
    let is_same =
        |entry: &Entry| entry.profile == plan.profile && plan.steps.is_empty() && plan.boot.is_empty();
    let stays = |entry: &&Entry| {
        let is_gone = plan.instead_of.as_ref().is_some_and(|old| old.entry == entry.id);
        entry.is_open() && !is_gone && !is_same(entry)
    };
    let told = |entry: &Entry| {
        let wanted = plan.skipped.iter().filter_map(|row| Some((&row.knob, row.wanted.as_deref()?)));
        let arguments: Vec<String> = shared(catalogue, entry, wanted).map(|(_, argument)| argument).collect();
        (!arguments.is_empty()).then(|| {
            format!(
                "entry {} ({}) alone has the boot loader give {}: an undo of it takes that from {}, too",
                entry.id,
                entry.profile,
                arguments.join(" "),
                plan.profile
            )
        })
    };
    open.iter().filter(stays).filter_map(told).collect()
}

/// Whether a plan may take the place of an entry, as far as that shows before it is made: who is told of a way out is
/// not to be refused there.
pub(crate) fn can_go(session: &Session, entries: &[Entry], id: EntryId) -> bool {
    let known = session.in_boot(entries);
    known
        .iter()
        .find(|entry| entry.id == id)
        .is_some_and(|entry| refuse_entry(session, entry, &known).is_ok())
}

/// Refuses a value of the entry that is as wanted, and that the plan would not hold since nobody named its knob.
fn refuse_unnamed(entry: &Entry, plan: &Plan, known: &[Entry]) -> Result<(), PipelineError> {
    let id = entry.id;
    let is_own = |place: &str| {
        let own = |step: &EntryStep| step.place == place && step.undo == Undo::Restore && !step.is_undone();
        entry.steps.iter().any(own) && holder(place, known) == Some(id)
    };
    let mut rows = plan.skipped.iter().filter(|row| row.satisfied && is_own(&row.place));
    let Some(row) = rows.next() else { return Ok(()) };
    let why = row.not_to_keep.as_deref().unwrap_or("the plan does not hold it");
    let reason = format!("{} would go back with it: {why}", row.place);
    Err(refused(id, reason, format!("name it: --allow-knob {}", row.knob)))
}

/// Refuses a value that the kernel would keep at one word beside what goes back, be it the plan's, another entry's or
/// somebody's: at a governor `performance` it refuses any other hint, and the hint would be the governor's, whoever had
/// set it. `after` is what comes behind that since it is another face of it.
fn refuse_pinned(
    catalogue: &Catalogue,
    id: EntryId,
    plan: &Plan,
    (back, after): (&[Step], &[Step]),
) -> Result<(), PipelineError> {
    let planned = plan.steps.iter().filter(|step| step.part != Some(Part::Back)).map(|step| (step, true));
    for (step, is_planned) in planned.chain(after.iter().map(|step| (step, false))) {
        let knob = catalogue.knob(&step.knob)?;
        let Some((pin, by, place)) = catalogue.pinning(knob, &step.place) else { continue };
        let is_pinned = back.iter().any(|back| back.place == place && back.wanted.trim() == pin.at);
        if is_pinned && (is_planned || step.wanted.trim() != pin.to) {
            let theirs = format!(" and not at `{}`, which was set there since", step.wanted.trim());
            let reason = format!(
                "{} would go back with it to `{}`, beside which the kernel keeps {} at `{}`{}",
                by.id,
                pin.at,
                knob.id,
                pin.to,
                if is_planned { "" } else { &theirs }
            );
            let have = format!("have {} want {}, too", plan.profile, by.id);
            let or = format!("; or give that up: --exclude {}", knob.id);
            let cure = if is_planned { have + &or } else { have };
            return Err(refused(id, reason, cure));
        }
    }
    Ok(())
}

/// Refuses a value that the plan wants where the entry has set one, and does not set itself: it would go back to what
/// was before the entry, which is neither. What nobody wants set there goes back as anything else does.
fn refuse_unset(
    id: EntryId,
    plan: &Plan,
    known: &[Entry],
    is_excluded: &dyn Fn(&Skipped) -> bool,
) -> Result<(), PipelineError> {
    let set: BTreeSet<&str> = plan.steps.iter().map(|step| step.place.as_str()).collect();
    let own = known.iter().filter(|entry| entry.id == id).flat_map(|entry| &entry.steps);
    let goes = |step: &&EntryStep| {
        let is_held = match step.undo {
            Undo::Subtract => !step.is_undone() && step.pages_held() > 0,
            _ => holder(&step.place, known) == Some(id),
        };
        is_held && !set.contains(step.place.as_str())
    };
    let going: Vec<&EntryStep> = own.filter(goes).collect();
    for row in plan.skipped.iter().filter(|row| !row.satisfied) {
        let is_given_up =
            |step: &EntryStep| is_excluded(&Skipped { place: step.place.clone(), ..row.clone() });
        let mut unset = going.iter().filter(|step| is_wanted_at(row, step) && !is_given_up(step));
        let Some(step) = unset.next() else { continue };
        let wanted = row.wanted.as_ref().map_or("a value".to_owned(), |wanted| format!("`{wanted}`"));
        let reason = format!(
            "{} would go back with it, and {} wants {wanted} there, which it does not set: {}",
            step.place, plan.profile, row.verdict.reason
        );
        return Err(refused(id, reason, format!("see to that first; or give it up: --exclude {}", row.knob)));
    }
    Ok(())
}

/// Whether a row that a plan leaves out wants a value at the place of a step. What was not allowed is of all places of
/// its knob: such a row has their pattern, and often no value, since none was computed.
fn is_wanted_at(row: &Skipped, step: &EntryStep) -> bool {
    let is_blocked = row.verdict.verdict == VerdictKind::Blocked;
    let is_meant = || is_blocked && place::captures(&row.place, &step.place).is_some();
    let is_place = row.place == step.place && (row.wanted.is_some() || is_blocked);
    row.knob == step.knob && (is_place || is_meant())
}

/// The values of an entry that are to go back, while they are collected.
struct Draft<'a> {
    catalogue: &'a Catalogue,
    entry: &'a Entry,
    known: &'a [Entry],
    /// Places that the plan sets, with what it wants there.
    set: BTreeMap<&'a str, &'a str>,
    own: Vec<Step>,
    /// Other faces of what the plan sets.
    behind: Vec<Step>,
    /// What the kernel derives from those, and the other faces of theirs: they come last.
    after: Vec<Step>,
    theirs: Vec<Theirs>,
}

impl Draft<'_> {
    /// Adds what becomes of a step of the entry. The texts of three moments decide, as they do in an undo.
    fn add(&mut self, index: usize, read: &Read<'_>) -> Result<(), PipelineError> {
        let raw = &self.entry.steps[index];
        if !goes_back(raw) {
            return Ok(());
        }
        let id = self.entry.id;
        let resolved = stack::resolved(self.entry, index, self.known);
        let step = &resolved.step;
        let of_setting = || step.originals.iter().filter(|other| other.is_of_setting());
        let is_set = of_setting().any(|other| self.set.contains_key(other.place.as_str()));
        let face = self.face(step);
        if is_set || face == Some(Face::Pinned) || stack::covering(id, step, self.known).is_some() {
            return Ok(());
        }
        let Some(original) = step.original() else { return Ok(()) };
        let Some(now) = read(&step.place) else {
            let cure = format!("when it is there again; or planish undo {id}");
            return Err(refused(id, format!("{} is not there now, or cannot be read", step.place), cure));
        };
        self.keep_coupled(&resolved, read);
        match whose(&resolved, original, &now) {
            Whose::Ours => {}
            Whose::Theirs => {
                self.keep(original, step.ours(), &now);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let live = three_way::live_one(step, original);
        let of_live = read(&live.place).unwrap_or_default();
        let target = live.value.clone();
        if !self.own.iter().chain(&self.behind).any(|other| other.place == live.place) {
            let back = self.step(&live.knob, live, of_live, &target)?;
            let list = if face.is_some() { &mut self.behind } else { &mut self.own };
            list.push(back);
        }
        for other in step.coupled().filter(|other| !other.is_of_setting()) {
            let is_own = self.entry.steps.iter().any(|own| own.place == other.place && goes_back(own));
            let is_known = self.after.iter().any(|after| after.place == other.place);
            if is_own || is_known || self.set.contains_key(other.place.as_str()) {
                continue;
            }
            let Some(now) = read(&other.place) else { continue };
            let is_ours = !resolved.handed_over.contains(&other.place)
                && three_way::coupled(step, &resolved.inherited, other, &now) == Whose::Ours;
            // What is somebody else's stays, also where going back has the kernel derive it once more.
            let target = if is_ours { other.value.clone() } else { now.clone() };
            let back = self.step(&other.knob, other, now, &target)?;
            self.after.push(back);
        }
        Ok(())
    }

    /// What the place of a step is beside those that the plan sets: the energy hint is another face of the governor,
    /// and as long as that is `performance` the kernel refuses any other hint.
    fn face(&self, step: &EntryStep) -> Option<Face> {
        let knob = self.catalogue.knob(&step.knob).ok()?;
        let holes = place::captures(&knob.path, &step.place)?;
        let wanted = |other: &Knob| self.set.get(place::fill(&other.path, &holes).as_str()).copied();
        let by = knob.pinned.as_ref().and_then(|pin| wanted(self.catalogue.knob(&pin.by).ok()?));
        if knob.pinned.as_ref().is_some_and(|pin| by.map(str::trim) == Some(pin.at.as_str())) {
            return Some(Face::Pinned);
        }
        let mut others = self.catalogue.knobs().filter(|other| other.alias.contains(&knob.id));
        others.any(|other| wanted(other).is_some()).then_some(Face::Free)
    }

    /// Notes coupled places of a step that it had changed, and somebody else has set since.
    fn keep_coupled(&mut self, resolved: &Resolved, read: &Read<'_>) {
        let step = &resolved.step;
        let caused: Vec<&Caused> = step.outcome.iter().flat_map(|done| &done.caused).collect();
        for other in step.coupled().filter(|other| !resolved.handed_over.contains(&other.place)) {
            let Some(ours) = caused.iter().find(|caused| caused.place == other.place) else { continue };
            let Some(now) = read(&other.place) else { continue };
            let is_theirs = three_way::coupled(step, &resolved.inherited, other, &now) == Whose::Theirs;
            if is_theirs && !self.set.contains_key(other.place.as_str()) {
                self.keep(other, &ours.value, &now);
            }
        }
    }

    /// Notes what somebody else has set since the entry.
    fn keep(&mut self, original: &Original, ours: &str, now: &str) {
        let [now, ours, before] = [now, ours, &original.value].map(|text| text.trim().to_owned());
        let (knob, place) = (original.knob.clone(), original.place.clone());
        if !self.theirs.iter().any(|known| known.place == place) {
            self.theirs.push(Theirs { knob, place, now, ours, original: before });
        }
    }

    /// A step that puts a place back.
    fn step(
        &self,
        knob: &KnobId,
        original: &Original,
        now: String,
        target: &str,
    ) -> Result<Step, PipelineError> {
        let id = self.entry.id;
        let knob = self.catalogue.knob(knob).map_err(|_| {
            let reason = format!("it has set {knob}, which no catalogue knows any more");
            refused(id, reason, format!("planish undo {id} needs none; then apply"))
        })?;
        let wanted = original.r#type.written(target);
        let settable = Verdict::new(VerdictKind::Settable, "");
        Ok(Step {
            part: Some(Part::Back),
            because: Some(format!("back to what was there before entry {id}")),
            ..Step::of(knob, &original.place, now, wanted, settable)
        })
    }
}

/// Whether a step goes back by itself: it is there, and wrote its place. One that found there what it wanted, since a
/// step before it had the kernel make that, goes back with that one.
fn goes_back(step: &EntryStep) -> bool {
    let wrote = step.outcome.as_ref().is_none_or(|done| done.outcome != OutcomeKind::Satisfied);
    step.undo == Undo::Restore && !step.is_undone() && wrote
}

/// A place that is another face of one that a plan sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    /// The kernel keeps it at one word beside what the plan wants: it is that one's, which has its original, too.
    Pinned,
    /// It can be written once that one is.
    Free,
}

/// Whose value a place shows, as an undo of the entry would find it.
fn whose(resolved: &Resolved, original: &Original, now: &str) -> Whose {
    let derived = || resolved.derived_since.iter().any(|(_, value)| original.r#type.same(now, value));
    match three_way::own(&resolved.step, &resolved.inherited, original, now) {
        Whose::Ours if resolved.set_since.is_some() => Whose::Theirs,
        Whose::Theirs if derived() => Whose::Newer,
        whose => whose,
    }
}

/// An entry that is to take the place of another one, and that one is still there: a kill came before it was taken
/// back, or something of it could not be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The one that holds all that it is to hold.
    pub entry: EntryId,
    /// The one whose files, boot parameters or pages are still there.
    pub old: EntryId,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, old } = self;
        write!(f, "entry {entry} is to take the place of entry {old}, of which something is left")
    }
}

/// All of them, oldest first.
pub(crate) fn unfinished(entries: &[Entry]) -> Vec<Unfinished> {
    let is_left = |old: &EntryId| entries.iter().any(|entry| entry.id == *old && entry.is_open());
    let whole = entries.iter().filter(|entry| entry.state == EntryState::Open);
    let of = |entry: &Entry| Some(Unfinished { entry: entry.id, old: entry.instead_of.filter(is_left)? });
    whole.filter_map(of).collect()
}

/// The entry whose place a plan that is in force already is still to take.
pub(crate) fn left_by(plan: &Plan, entries: &[Entry]) -> Option<EntryId> {
    let is_its = |entry: EntryId| entries.iter().any(|other| other.id == entry && other.plan == plan.hash);
    unfinished(entries).into_iter().rfind(|left| is_its(left.entry)).map(|left| left.old)
}

/// The entry that takes the place of one, where it holds all that it is to hold.
pub(crate) fn heir(id: EntryId, entries: &[Entry]) -> Option<&Entry> {
    let is_whole = |entry: &Entry| matches!(entry.state, EntryState::Open | EntryState::Unconfirmed);
    entries.iter().rev().find(|entry| entry.instead_of == Some(id) && is_whole(entry))
}

/// What stood in the pool of a step before both an entry and the one whose place that took, which is gone: the step
/// itself found the pages of that one. `None` where it took nobody's place, or that one is there still.
pub(crate) fn pool_before(entry: &Entry, step: &EntryStep, known: &[Entry]) -> Option<String> {
    let id = entry.instead_of.filter(|_| step.undo == Undo::Subtract)?;
    let old = known.iter().find(|other| other.id == id && !other.is_open())?;
    let own = old.steps.iter().find(|other| other.undo == step.undo && other.place == step.place)?;
    pool_before(old, own, known).or_else(|| own.original().map(|original| original.value.clone()))
}

/// The step of an heir that is to have pages of a pool, and how many.
pub(crate) fn inherits(heir: Option<&Entry>, step: &EntryStep) -> Option<(EntryId, usize, u64)> {
    let heir = heir.filter(|_| step.undo == Undo::Subtract)?;
    let own =
        |other: &EntryStep| other.undo == Undo::Subtract && other.place == step.place && !other.is_undone();
    let mut steps = heir.steps.iter().enumerate().filter(|(_, other)| own(other));
    steps.find_map(|(at, other)| Some((heir.id, at, other.takes_pages?)))
}

/// Outcomes of an entry that goes, as they are told: what differs in a file of a boot loader is no news where it is
/// what its heir has put there.
fn beside(heir: Option<&Entry>, outcomes: &[Outcome]) -> Vec<Outcome> {
    let is_edited = |outcome: &Outcome| {
        let steps = heir.iter().flat_map(|heir| &heir.steps);
        steps.filter(|step| step.undo == Undo::Edit).any(|step| step.place == outcome.place)
    };
    let mut told = outcomes.to_vec();
    for outcome in told.iter_mut().filter(|outcome| is_edited(outcome)) {
        let detail = outcome.detail.take();
        let rest = detail.as_deref().map(|detail| detail.strip_prefix(boot::DIFFERS).unwrap_or(detail));
        let rest = rest.map(|rest| rest.trim_start_matches("; ")).filter(|rest| !rest.is_empty());
        outcome.detail = rest.map(str::to_owned);
    }
    told
}

/// What became of an entry whose place another one has taken.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    pub exit: Exit,
    /// What is to be told of it.
    pub hints: Vec<String>,
    /// What became of its pages.
    pub pools: Vec<PoolGoing>,
}

/// The pools of an entry that is about to go, each with the pages that it shows.
fn pools_before(
    session: &Session,
    entries: &[Entry],
    old: EntryId,
    sink: &dyn Sink,
) -> Vec<(PoolGoing, Option<u64>)> {
    let holding = session.holding(entries);
    let Some(entry) = holding.iter().find(|entry| entry.id == old) else { return Vec::new() };
    let heir = heir(old, entries);
    let takes = |place: &str| {
        let own = entry.steps.iter().find(|step| step.undo == Undo::Subtract && step.place == place);
        own.and_then(|step| inherits(heir, step)).map_or(0, |(_, _, pages)| pages)
    };
    let going = pools::going(session, entry, &takes, &session.in_boot(entries)).into_iter();
    let with_pages = |going: PoolGoing| {
        let pages = sink.read(&going.pool.place).ok().and_then(|text| number(&text));
        (going, pages)
    };
    going.map(with_pages).collect()
}

/// What became of those pools, by the outcomes of the steps and the entries before and after.
fn pools_after(
    before: Vec<(PoolGoing, Option<u64>)>,
    outcomes: &[Outcome],
    (entries, now): (&[Entry], &[Entry]),
) -> Vec<PoolGoing> {
    let after = |(going, pages): (PoolGoing, Option<u64>)| {
        let (old, place) = (going.pool.entry, &going.pool.place);
        let outcome = outcomes.iter().find(|outcome| outcome.place == *place);
        let heir = heir(old, entries).map(|heir| heir.id);
        let held = |entries: &[Entry]| heir.map_or(0, |heir| pages_held(heir, place, entries));
        let taken_over = held(now).saturating_sub(held(entries));
        let left = outcome.and_then(|outcome| number(outcome.read_back.as_deref()?));
        let shrank = pages.zip(left).map(|(pages, left)| pages.saturating_sub(left));
        pools::gone(going, outcome, taken_over, shrank)
    };
    before.into_iter().map(after).collect()
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Lets the entry go whose place another one has taken: nothing of it is left but what somebody else has changed, and
/// what could not be given back.
pub(crate) fn complete(
    session: &Session,
    journal: &mut Journal,
    old: EntryId,
    sink: &dyn Sink,
) -> Result<Completed, PipelineError> {
    let Some(mut entry) = journal.ledger().entry(old).filter(|entry| entry.is_open()).cloned() else {
        return Ok(Completed::default());
    };
    devices::follow(session.host(), std::slice::from_mut(&mut entry));
    let before = journal.ledger().entries.clone();
    let pools = pools_before(session, &before, old, sink);
    let back = undo::undo_entry(session, journal, &entry, &session.options.command, false, sink);
    let restored = back.is_restored(&entry);
    if let Some(source) = back.journal_failure {
        return Err(PipelineError::JournalHalfWay { entry: old, restored, source });
    }
    let heir = heir(old, &journal.ledger().entries);
    let mut hints = undo::hints(&entry, &beside(heir, &back.outcomes), false);
    hints.extend(until_reboot::values(session, &journal.ledger().entries, &entry, &back.outcomes));
    hints.extend(until_reboot::arguments(session, &entry, &back.outcomes));
    hints.extend(units::to_restart(&back.outcomes));
    hints.extend(units::to_reload(&back.outcomes));
    hints.extend(units::to_reexec(&back.outcomes));
    let now = journal.ledger().entry(old);
    match now.and_then(|entry| entry.replaced_by) {
        Some(by) => hints.push(format!(
            "entry {by} took the place of entry {old}: planish undo {by} brings back what was there before both"
        )),
        None => hints.push(format!("entry {old} is not rid of everything: again: planish undo {old}")),
    }
    let pools = pools_after(pools, &back.outcomes, (&before, &journal.ledger().entries));
    let mut exit = undo::exit_of(&entry, &back);
    let bereft = bereft::of_older(&journal.ledger().entries, &[(old, back.outcomes)], session.catalogue());
    if !bereft.is_empty() {
        exit = undo::worse(exit, Exit::Findings);
        hints.extend(bereft);
    }
    Ok(Completed { exit, hints, pools })
}
