//! What an undo cannot take back before the next boot, and says so: values that a file of ours brought at this boot and
//! whose originals no open entry has, and arguments that the running kernel was started with.

use std::collections::BTreeMap;

use planish_model::{
    Entry, EntryStep, Outcome, OutcomeKind, PoolLine, Undo, marked, page_pool, pages_at_boot, pages_of_nobody,
};

use crate::copied::run_of;
use crate::pools;
use crate::session::Session;

/// Whether an undo has just taken the file of this step out, or put it back.
fn is_out(step: &EntryStep, back: &[Outcome]) -> bool {
    let done = |outcome: &Outcome| outcome.place == step.place && outcome.outcome == OutcomeKind::Done;
    step.undo.outlives_boot() && back.iter().any(done)
}

/// What an undo has put back from before an entry of an earlier boot: nobody can tell what this boot would have begun
/// with, had no file of ours set the place.
pub(crate) fn of_earlier_boot(session: &Session, entry: &Entry, back: &[Outcome]) -> Option<String> {
    if entry.boot_id == session.host().boot_id() {
        return None;
    }
    let is_value = |outcome: &&Outcome| {
        let is_it = |step: &EntryStep| step.place == outcome.place && step.undo == Undo::Restore;
        outcome.outcome == OutcomeKind::Done && entry.steps.iter().any(is_it)
    };
    let mut knobs: Vec<&str> = back.iter().filter(is_value).map(|outcome| outcome.knob.as_str()).collect();
    knobs.sort_unstable();
    knobs.dedup();
    let id = entry.id;
    (!knobs.is_empty()).then(|| {
        format!("{}: back to what was there before entry {id}, in an earlier boot", knobs.join(", "))
    })
}

/// Places that still show what lines of the entry brought at this boot, where no step has an original to put back: the
/// step was closed as gone with a reboot by an older planish, or the value was there before the file was written.
pub(crate) fn values(session: &Session, entries: &[Entry], entry: &Entry, back: &[Outcome]) -> Vec<String> {
    let boot_id = session.host().boot_id();
    if entry.boot_id == boot_id {
        return Vec::new();
    }
    let seen = session.in_boot(entries);
    let entry = seen.iter().find(|other| other.id == entry.id).unwrap_or(entry);
    // A step that holds the place in this boot, or was taken back from it by now, has the last word: of an entry that
    // was made before this boot no more than its files brought.
    let is_brought = |other: &Entry, place: &str| {
        let made = entries.iter().find(|made| made.id == other.id);
        made.is_some_and(|made| made.boot_id == boot_id)
            || other.steps.iter().flat_map(EntryStep::lines).any(|(line, _)| line == place)
    };
    let is_of_a_step = |place: &str| {
        let others = seen.iter().filter(|other| other.boot_id == boot_id && is_brought(other, place));
        let mut steps = others.flat_map(|other| &other.steps).filter(|step| !step.undo.outlives_boot());
        steps.any(|step| step.place == *place)
    };
    let files = entry.steps.iter().filter(|step| step.undo == Undo::File && is_out(step, back));
    let lines = files.flat_map(EntryStep::lines).filter(|(place, _)| !is_of_a_step(place));
    let mut hints = Vec::new();
    for (place, value) in lines {
        let shown = session.host().read(&place).unwrap_or_default();
        let is_there = shown.trim() == value || shown.contains(&format!("[{value}]"));
        if is_there {
            let before = original(entries, &place).map_or_else(
                || "it was so before that entry, too".to_owned(),
                |original| format!("its original is `{original}`"),
            );
            hints.push(format!("{place} is `{value}` until the next reboot, from the file: {before}"));
        }
    }
    hints.extend(pages(session, entries, entry, back));
    hints
}

/// The same of pools: pages that its lines brought, and that no step has: its own, and those that it had for others.
fn pages(session: &Session, entries: &[Entry], entry: &Entry, back: &[Outcome]) -> Vec<String> {
    let boot_id = session.host().boot_id();
    let files = entry.steps.iter().filter(|step| step.undo == Undo::File && is_out(step, back));
    let mut hints = Vec::new();
    let lines: Vec<&PoolLine> = files.flat_map(|file| &file.pools).collect();
    for PoolLine { place, pages, .. } in &lines {
        let shown = session.host().read(place).unwrap_or_default();
        let there = shown.trim().parse().unwrap_or(0);
        let left = pages_of_nobody(entries, &boot_id, place).min(*pages).min(there);
        if left > 0 {
            hints.push(format!(
                "{place} is `{there}` until the next reboot: {left} of these pages are from the file, and the entry \
                 that had raised the pool is taken back"
            ));
        }
    }
    hints.extend(pages_of_others(session, &lines));
    hints
}

/// Pages that lines had for others, where nothing gives them those any more.
fn pages_of_others(session: &Session, lines: &[&PoolLine]) -> Vec<String> {
    let whole = |line: &PoolLine| page_pool::whole_of(&line.place).unwrap_or_else(|| line.place.clone());
    let mut had: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        let in_all = line.in_all.unwrap_or(0).saturating_sub(line.pages);
        let sum = had.entry(whole(line)).or_default();
        *sum = sum.saturating_add(line.others.max(in_all));
    }
    had.retain(|_, pages| *pages > 0);
    if had.is_empty() {
        return Vec::new();
    }
    let given = session.given_pools();
    // What the kernel was started with is there whatever else gives it; for pages of which size is not asked.
    let running = session.host().read_lossy("/proc/cmdline").unwrap_or_default();
    let pools = running.split_whitespace().filter_map(|word| word.strip_prefix("hugepages="));
    let at_boot: u64 = pools.filter_map(pages_at_boot).sum();
    let left = had.into_iter().filter_map(|(whole, had)| {
        let now = given.to_all_nodes(&whole).map_or(0, |(pages, _)| pages);
        let there = pools::pages_in(&whole, &|place| session.host().read(place).ok())?;
        let left = had.saturating_sub(now.max(at_boot)).min(there);
        (left > 0).then(|| {
            format!(
                "{whole} is `{there}` until the next reboot: {left} of these pages the file had for others, and no \
                 line gives them that many any more"
            )
        })
    });
    left.collect()
}

/// The oldest original of a place that the journal knows.
fn original(entries: &[Entry], place: &str) -> Option<String> {
    let originals = entries.iter().flat_map(|entry| &entry.steps).filter_map(EntryStep::original);
    originals.into_iter().find(|original| original.place == place).map(|found| found.value.trim().to_owned())
}

/// Arguments that the boot loader no longer gives, and that the running kernel was given.
pub(crate) fn arguments(session: &Session, entry: &Entry, back: &[Outcome]) -> Option<String> {
    let running = session.host().read_lossy("/proc/cmdline").unwrap_or_default();
    let is_given = |argument: &&str| running.split_whitespace().any(|given| given == *argument);
    let mut given: Vec<&str> = Vec::new();
    for step in entry.steps.iter().filter(|step| is_out(step, back)) {
        given.extend(run_of(step).into_iter().flat_map(str::split_whitespace).filter(is_given));
    }
    given.sort_unstable();
    given.dedup();
    if entry.trial_boot().is_some_and(|name| marked(&running).any(|marked| marked == name)) {
        return Some(
            "reboot pending: this boot is the trial boot, and the next one is as before it".to_owned(),
        );
    }
    if !given.is_empty() {
        // A reboot takes none that another entry gives, or a copy that somebody made.
        let next = planish_observe::next_words(session.host(), &session.boot_loader()).unwrap_or_default();
        given.retain(|argument| next.split_whitespace().all(|word| word != *argument));
    }
    let given = given.join(" ");
    (!given.is_empty()).then(|| format!("reboot pending: this kernel was started with {given}"))
}
