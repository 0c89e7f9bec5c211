//! Pools of huge pages: what is there against what entries raised, and what our file gives them at the next boot
//! against what others give.

use std::cmp::Ordering;

use planish_model::{DriftState, EntryStep, Knob, Persisted, PoolLine, Reading, pages_in_file, size_beside};
use planish_sorted::SortSmall as _;

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
            return self.pages_of_our_file(found, due, reading);
        }
        // What a line of others gives is theirs: ours are in it where it is more than they have, and no line of ours
        // loses against it.
        match persisted {
            Some(found) if ours => {
                let value = number(&found.value).filter(|_| due.is_none()).unwrap_or(0);
                let told = || {
                    let instead = due.map(|due| format!(" instead of {due} by our line")).unwrap_or_default();
                    format!("{} will set {}{instead}", found.source, found.value)
                };
                self.against_line_of_others(value, pages, reading, told)
            }
            None if ours && let Some((share, line)) = self.share_at_boot(reading, persisted) => {
                let told = || {
                    format!("{} will set {} over all nodes, {share} of them here", line.source, line.value)
                };
                self.against_line_of_others(share, pages, reading, told)
            }
            None if ours => self.unpersisted(reading),
            _ => (DriftState::Ok, None),
        }
    }

    /// Pages of ours without a line, where one of others will give the pool so many at the next boot, as `told`.
    ///
    /// Whoever wrote it since, for all pages that are there, has made ours last by hand. What it gave before they were
    /// raised is for others, loaded or not. Of a size in all nothing is missing, whosever pages they are.
    fn against_line_of_others(
        &self,
        value: u64,
        pages: u64,
        reading: &Reading,
        told: impl Fn() -> String,
    ) -> Judgement {
        let holds = |step: &EntryStep| step.pages_in_force() > 0;
        let steps: Vec<_> = self.own_steps(reading).filter(|(_, step)| holds(step)).collect();
        let needs: Vec<_> = steps.iter().filter(|(_, step)| step.in_all.is_none()).collect();
        let in_all = steps.iter().filter_map(|(_, step)| step.in_all).max().unwrap_or(0);
        let given_then = |step: &EntryStep| step.line.is_some() && step.line == self.given_by_others(step);
        if needs.is_empty() && value >= in_all {
            return (DriftState::Ok, None);
        }
        if value < pages {
            return (DriftState::LostAtBoot, Some(told()));
        }
        match needs.into_iter().find(|(_, step)| given_then(step)) {
            Some((entry, _)) => {
                let why = format!(
                    "{}, as it did before entry {entry} raised the pool: none of them are ours, and no file persists \
                     those",
                    told()
                );
                (DriftState::LostAtBoot, Some(why))
            }
            None => (DriftState::Ok, None),
        }
    }

    /// What lines of others give all pools of a step's size.
    fn given_by_others(&self, step: &EntryStep) -> Option<u64> {
        let given = step.others.keys().filter_map(|place| self.observation.pool_by_others(place));
        given.map(|(pages, _)| pages).reduce(u64::saturating_add)
    }

    /// Why a pool has fewer pages than entries raised it to, where that is not that a raise of this boot came short.
    fn why_lacking(&self, reading: &Reading) -> Option<String> {
        let mut steps: Vec<&EntryStep> = self.own_steps(reading).map(|(_, step)| step).collect();
        // What somebody did is told before what may have been.
        steps.sort_small_by_key(|step| !step.is_lowered());
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
    fn pages_of_our_file(&self, found: &Persisted, due: u64, reading: &Reading) -> Judgement {
        let source = &found.source;
        if number(&found.value) > Some(due) {
            let value = &found.value;
            let why =
                format!("{source} will set {value}, and {due} are wanted: apply it again with --persist");
            return (DriftState::Drift, Some(why));
        }
        let lines = self.in_files().flat_map(|(_, step)| &step.pools);
        let lines: Vec<&PoolLine> = lines.filter(|line| line.place == reading.place).collect();
        // The line of ours is read behind that of others, and sets the whole pool.
        let of_others = self.observation.pool_by_others(&reading.place);
        let given = of_others.map_or(0, |(pages, _)| pages);
        let value = &found.value;
        let needed = size_beside(lines.into_iter(), given);
        if number(value) < Some(due) || needed < self.size_of_steps(reading, given) {
            return (DriftState::LostAtBoot, Some(format!("{source} will set {value}")));
        }
        match (due.cmp(&needed), of_others) {
            (Ordering::Less, Some((_, theirs))) => {
                let why = format!("{source} will set {value}, where {theirs} gives {given} besides ours");
                (DriftState::LostAtBoot, Some(why))
            }
            (Ordering::Greater, _) => {
                let gone = due - needed;
                let why = format!(
                    "{source} will set {value}, and {gone} of them were for others, whose line gives them no more: \
                     apply it again with --persist"
                );
                (DriftState::Drift, Some(why))
            }
            _ => (DriftState::Ok, None),
        }
    }

    /// The size that a pool would have by all that entries of this boot hold in it, with files and without, where
    /// others give it so many pages.
    fn size_of_steps(&self, reading: &Reading, given: u64) -> u64 {
        let steps = self.own_steps(reading).map(|(_, step)| (step.pages_in_force(), step.in_all));
        let held = steps.filter(|(pages, _)| *pages > 0);
        let line = |(pages, in_all)| PoolLine { pages, in_all, ..PoolLine::default() };
        let lines: Vec<PoolLine> = held.map(line).collect();
        size_beside(lines.iter(), given)
    }
}
