//! Entries, folded from events. Pure.

use std::collections::BTreeSet;

use planish_model::{
    Closure, Entry, EntryId, EntryState, EntryStep, Outcome, OutcomeKind, Part, PoolLine, WaitEnd,
};

use crate::line::{Line, Torn};
use crate::{Event, Handed, Intent, NOT_CONFIRMED};

/// Everything that a journal says, as entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// All entries, oldest first.
    pub entries: Vec<Entry>,
    /// What a kill or a power cut tore at the end; never part of an entry.
    pub torn: Option<Torn>,
    /// Length of the journal in bytes when it was opened.
    pub(crate) bytes: u64,
    /// Number of lines.
    pub(crate) lines: u64,
    /// The last entry of the archived journal that this one continues.
    pub(crate) last_archived: u64,
}

impl Ledger {
    /// An entry by its number.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Whether an entry is in an archived journal, and was closed by then.
    #[must_use]
    pub fn is_archived(&self, id: EntryId) -> bool {
        (1..=self.last_archived).contains(&id.0) && self.entry(id).is_none()
    }

    /// The entries that a journal must go on with in a boot: the open ones, those that left a value to somebody else,
    /// which `undo ENTRY --force` still writes, and closed ones that undoing these asks for. An original may be that of
    /// an undone entry below it, and a file of ours is known by what others left there.
    pub(crate) fn needed(&self, boot_id: &str) -> Vec<Entry> {
        let open = self.entries.iter().filter(|entry| entry.is_open()).map(|entry| entry.id);
        let mut needed: BTreeSet<EntryId> = open.chain(self.to_be_forced(boot_id)).collect();
        // Newest first: what an entry was applied over is always older.
        for entry in self.entries.iter().rev() {
            if needed.contains(&entry.id) {
                let originals = entry.steps.iter().flat_map(|step| &step.originals);
                needed.extend(originals.filter_map(|original| original.over));
            }
        }
        let files = |entry: &Entry| entry.steps.iter().any(|step| step.undo.outlives_boot());
        let any_file = self.entries.iter().any(|entry| needed.contains(&entry.id) && files(entry));
        // A file that was taken out in this boot brought its values all the same.
        let brought = |entry: &Entry| {
            entry.steps.iter().any(|step| step.undo.outlives_boot() && step.was_seen_in(boot_id))
        };
        let is_needed = |entry: &&Entry| {
            needed.contains(&entry.id) || (any_file && files(entry)) || (!needed.is_empty() && brought(entry))
        };
        self.entries.iter().filter(is_needed).cloned().collect()
    }

    /// Closed entries that left something to somebody else which is still there in this boot. Of several that left the
    /// same place only the newest: a journal in which thousands did would never become shorter.
    fn to_be_forced(&self, boot_id: &str) -> Vec<EntryId> {
        let mut places = BTreeSet::new();
        let mut forced = Vec::new();
        for entry in self.entries.iter().rev() {
            let of_now = |step: &&EntryStep| {
                entry.boot_id == boot_id || step.was_seen_in(boot_id) || step.undo.outlives_boot()
            };
            let left = entry.steps.iter().filter(|step| step.left_theirs()).filter(of_now);
            let new = left.filter(|step| places.insert(&step.place)).count();
            forced.extend((new > 0).then_some(entry.id));
        }
        forced
    }

    /// The number of the next entry.
    pub(crate) fn next_id(&self) -> EntryId {
        EntryId(self.entries.last().map_or(0, |entry| entry.id.0).max(self.last_archived) + 1)
    }

    /// Takes in the next line. The text of an error says why it cannot follow what is there.
    pub(crate) fn take(&mut self, line: Line) -> Result<(), String> {
        self.lines = line.seq;
        match line.event {
            Event::Continued { last, .. } if line.seq == 1 => self.last_archived = last.0,
            Event::Continued { .. } => return Err("a journal is continued by its first line only".to_owned()),
            Event::Carried { whole } => {
                let after = self.entries.last().is_none_or(|last| last.id < whole.id);
                if !after || whole.id.0 > self.last_archived {
                    return Err(format!("it carries entry {}, which does not follow", whole.id));
                }
                let mut whole = *whole;
                as_of_now(&mut whole.steps);
                self.entries.push(whole);
            }
            Event::Intent { entry, intent } => {
                if entry != self.next_id() {
                    return Err(format!("it begins entry {entry} where {} is due", self.next_id()));
                }
                self.entries.push(begin(entry, (line.at, line.boot, line.who, line.host), intent));
            }
            Event::Pool { entry, step, write } => self.step(entry, step, &line.boot)?.begun = Some(write),
            Event::Outcome { entry, step, outcome } => {
                let newest = self.entries.last().map(|entry| entry.id);
                let step = self.step(entry, step, &line.boot)?;
                if outcome.outcome == OutcomeKind::Lowered {
                    step.lowered_behind = newest;
                }
                step.begun = None;
                step.outcome = Some(outcome);
                // Also said of a pool that a kill left in the middle of an undo: then this is newer.
                step.undone = None;
                let seen = if step.is_in_file() { step.pools.clone() } else { Vec::new() };
                self.see_others(&seen, &line.boot);
            }
            Event::Undone { entry, step, outcome, handed } => {
                let step = self.step(entry, step, &line.boot)?;
                step.begun = None;
                step.undone = Some(outcome);
                handed.map_or(Ok(()), |handed| self.hand(handed, &line.boot))?;
            }
            Event::Applied { entry } => {
                let entry = self.find(entry)?;
                entry.state =
                    if entry.confirm_by.is_some() { EntryState::Unconfirmed } else { EntryState::Open };
            }
            Event::Confirmed { entry } => {
                self.settle(entry, EntryState::Open)?;
                self.find(entry)?.wait_end = Some(WaitEnd::Confirmed);
            }
            // Until the undo has said how it ended, it may have been killed: a dead-man timer goes on waiting.
            Event::Undo { entry, command, .. } => {
                let entry = self.find(entry)?;
                // The timer says so itself, since clocks are set back; and whoever comes before its turn, but after the
                // deadline, undoes what nobody confirmed in time.
                let is_waiting = entry.is_open() && !entry.undo_begun;
                let is_over = is_waiting && entry.confirm_by.is_some_and(|deadline| deadline <= line.at);
                if is_over || command.ends_with(NOT_CONFIRMED) {
                    entry.wait_end = Some(WaitEnd::Lapsed(line.at));
                }
                (entry.state, entry.undo_begun) = (EntryState::Interrupted, true);
            }
            Event::LeftOpen { entry } => self.settle(entry, EntryState::Open)?,
            Event::Closed { entry, closure, by } => {
                self.settle(entry, EntryState::Closed(closure))?;
                by.map_or(Ok(()), |by| self.replace(entry, by))?;
            }
        }
        Ok(())
    }

    /// Has what files of others give pools, as the newest line of ours saw it, be what all lines of ours know: once
    /// that line is undone, the older ones would give the pools what was so before. What this boot has loaded stays
    /// what it was.
    fn see_others(&mut self, seen: &[PoolLine], boot: &str) {
        // Nearly every outcome: a journal of thousands of entries is not gone through once for each.
        if seen.is_empty() {
            return;
        }
        for entry in &mut self.entries {
            for step in &mut entry.steps {
                let is_older = step.written_in(&entry.boot_id) != boot;
                for line in &mut step.pools {
                    if let Some(newest) = seen.iter().find(|newest| newest.place == line.place) {
                        line.see_others(newest.others, boot, is_older);
                    }
                }
            }
        }
    }

    /// Gives pages of a pool to the step of another entry, with the line of others that was there before them.
    fn hand(&mut self, handed: Handed, boot_id: &str) -> Result<(), String> {
        self.step(handed.to, handed.step, boot_id)?.take_over(handed.pages, handed.line);
        Ok(())
    }

    /// Notes that an entry took the place of another one. What it had put back for that is back: nobody wants anything
    /// there any more, and a value that is set there from now on is somebody else's.
    fn replace(&mut self, old: EntryId, by: EntryId) -> Result<(), String> {
        self.find(old)?.replaced_by = Some(by);
        for step in self.find(by)?.steps.iter_mut().filter(|step| step.part == Some(Part::Back)) {
            let (knob, place) = (step.knob.clone(), step.place.clone());
            step.undone.get_or_insert_with(|| Outcome::new(knob, place, OutcomeKind::Satisfied));
        }
        Ok(())
    }

    /// Sets the state of an entry that no dead-man timer waits for any more, nor the end of an undo.
    fn settle(&mut self, id: EntryId, state: EntryState) -> Result<(), String> {
        let entry = self.find(id)?;
        entry.state = state;
        entry.confirm_by = None;
        entry.on_confirm = None;
        entry.undo_begun = false;
        Ok(())
    }

    fn find(&mut self, id: EntryId) -> Result<&mut Entry, String> {
        self.entries
            .iter_mut()
            .find(|entry| entry.id == id)
            .ok_or_else(|| format!("it speaks of entry {id}, which was never begun"))
    }

    /// A step of which something is told in a boot.
    fn step(&mut self, id: EntryId, step: usize, boot_id: &str) -> Result<&mut EntryStep, String> {
        let newest = self.entries.last().map(|entry| entry.id);
        let entry = self.find(id)?;
        let (count, later) = (entry.steps.len(), entry.boot_id != boot_id);
        let step = entry
            .steps
            .get_mut(step)
            .ok_or_else(|| format!("entry {id} has {count} steps, and no step {step}"))?;
        step.last_boot = later.then(|| boot_id.to_owned());
        step.last_entry = newest.filter(|newest| *newest > id);
        Ok(step)
    }
}

/// Reads the steps of an older planish as those of this one: see [`EntryStep::split_pools`] and
/// [`EntryStep::link_twins`].
fn as_of_now(steps: &mut [EntryStep]) {
    let raised: Vec<(String, u64)> =
        steps.iter().filter_map(|step| Some((step.place.clone(), step.raise_pages?))).collect();
    for step in steps {
        step.split_pools(&raised);
        step.link_twins();
    }
}

/// An entry that has been announced: interrupted, unless a later line says more.
fn begin(
    id: EntryId,
    (at, boot_id, who, host): (u64, String, String, Option<String>),
    intent: Intent,
) -> Entry {
    let Intent { command, reason, profile, plan, confirm_by, on_confirm, allowed, instead_of, mut steps } =
        intent;
    as_of_now(&mut steps);
    let state = if steps.is_empty() { EntryState::Closed(Closure::Empty) } else { EntryState::Interrupted };
    let undo_begun = false;
    Entry {
        id,
        at,
        boot_id,
        host,
        who,
        command,
        reason,
        profile,
        plan,
        steps,
        confirm_by,
        wait_end: None,
        on_confirm,
        state,
        undo_begun,
        allowed,
        instead_of,
        replaced_by: None,
    }
}
