//! Pools of huge pages: what is there against what entries raised, and what our file gives them at the next boot
//! against what others give.

use std::cmp::Ordering;

use planish_model::{DriftState, EntryStep, Knob, Persisted, PoolLine, Reading, pages_in_file};

use super::{Bench, Judgement, number};

impl Bench<'_> {
    /// A pool that holds at least so many pages is as wanted; then the next boot counts, as for any value.
    pub(super) fn pages_against(
        &self,
        knob: &Knob,
        wanted: u64,
        reading: &Reading,
        running: &str,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        let pages = match number(running) {
            None => return (DriftState::Unknown, Some("shows no number".to_owned())),
            Some(pages) if pages < wanted => {
                let why = self.why_lacking(reading).map(|why| format!(": {why}")).unwrap_or_default();
                return (DriftState::Drift, Some(format!("{pages} of {wanted} pages are there{why}")));
            }
            Some(pages) => pages,
        };
        let held: u64 = self.own_steps(reading).map(|(_, step)| step.pages_in_force()).sum();
        let ours = held > 0;
        if ours && let Some(judged) = self.overwritten(knob, reading, &wanted.to_string(), persisted) {
            return judged;
        }
        let due = pages_in_file(self.open, &reading.place);
        if let (Some(found), Some(due)) = (persisted.filter(|found| found.is_ours()), due) {
            return self.pages_of_our_file(found, due, held, reading);
        }
        // What a line of others gives is theirs: ours are in it where it is more than they have, and no line of ours
        // loses against it.
        match persisted {
            Some(found) if !(ours && due.is_some()) && number(&found.value) >= Some(wanted) => {
                (DriftState::Ok, None)
            }
            Some(found) if ours => {
                let instead = due.map(|due| format!(" instead of {due} by our line")).unwrap_or_default();
                (DriftState::LostAtBoot, Some(format!("{} will set {}{instead}", found.source, found.value)))
            }
            None if ours && let Some((share, line)) = self.share_at_boot(reading, persisted) => {
                match share >= pages {
                    true => (DriftState::Ok, None),
                    false => {
                        let (source, value) = (&line.source, &line.value);
                        let why = format!("{source} will set {value} over all nodes, {share} of them here");
                        (DriftState::LostAtBoot, Some(why))
                    }
                }
            }
            None if ours => self.unpersisted(reading),
            _ => (DriftState::Ok, None),
        }
    }

    /// Why a pool has fewer pages than entries raised it to, where that is not that a raise of this boot came short.
    fn why_lacking(&self, reading: &Reading) -> Option<String> {
        let mut steps: Vec<&EntryStep> = self.own_steps(reading).map(|(_, step)| step).collect();
        // What somebody did is told before what may have been.
        steps.sort_by_key(|step| !step.is_lowered());
        steps.into_iter().find_map(EntryStep::why_lost)
    }

    /// What a file gives the pool of a node, of which no line tells: its share of what it gives to all of them.
    pub(super) fn share_at_boot(
        &self,
        reading: &Reading,
        own: Option<&Persisted>,
    ) -> Option<(u64, &Persisted)> {
        self.observation.pool_share_of_files(&reading.place).filter(|_| own.is_none())
    }

    /// A pool that has what it should, and a file of ours with a line for it: the line must be what the entries in the
    /// file add up to, and they must be all that hold pages. Pages that others reserved by hand are not in it.
    fn pages_of_our_file(&self, found: &Persisted, due: u64, held: u64, reading: &Reading) -> Judgement {
        let source = &found.source;
        if number(&found.value) > Some(due) {
            let value = &found.value;
            let why =
                format!("{source} will set {value}, and {due} are wanted: apply it again with --persist");
            return (DriftState::Drift, Some(why));
        }
        let lines = self.in_files().flat_map(|(_, step)| &step.pools);
        let lines: Vec<&PoolLine> = lines.filter(|line| line.place == reading.place).collect();
        let persisted: u64 = lines.iter().map(|line| line.pages).sum();
        // What a profile wants in all stays in the line when others give less.
        let in_all = lines.iter().filter_map(|line| line.in_all).max().unwrap_or(0);
        if number(&found.value) < Some(due) || persisted < held {
            return (DriftState::LostAtBoot, Some(format!("{source} will set {}", found.value)));
        }
        // The line of ours is read behind that of others, and sets the whole pool.
        let of_others = self.observation.pool_by_others(&reading.place);
        let given = of_others.map_or(0, |(pages, _)| pages);
        let value = &found.value;
        match (due.cmp(&given.saturating_add(persisted)), of_others) {
            (Ordering::Less, Some((_, theirs))) => {
                let why = format!("{source} will set {value}, where {theirs} gives {given} besides ours");
                (DriftState::LostAtBoot, Some(why))
            }
            (Ordering::Greater, _) if due > in_all => {
                let gone = due - given - persisted;
                let why = format!(
                    "{source} will set {value}, and {gone} of them were for others, whose line gives them no more: \
                     apply it again with --persist"
                );
                (DriftState::Drift, Some(why))
            }
            _ => (DriftState::Ok, None),
        }
    }
}
