//! What the entries of a journal hold in one boot of the host. Pure, and the only place where that is decided.
//!
//! A reboot takes run-time values with it, save those that a file of `--persist` brings back: their places show *ours*
//! again, nobody but planish set them, and the originals are in the journal as ever. So such a step is in force as if
//! it had been written in this boot, and plan, check, apply and undo treat it so. Of a pool the entry holds the pages
//! that its line asks for, as far as they are there.

use std::collections::BTreeMap;

use crate::{Coupling, Entry, EntryId, EntryStep, Original, Outcome, OutcomeKind, PoolLine, Undo};

/// The entries as they are in this boot. Steps keep their numbers.
///
/// - A step of an earlier boot that a file brought back is as if it had been written in this one, and so is its entry.
/// - One that went with a reboot is taken back: [`OutcomeKind::GoneWithReboot`].
/// - What an undo did to a step in this boot counts as it says.
/// - Of a pool that somebody lowered since, a step holds what is left beside the pages of others.
///
/// `pool_pages` tells how many pages a pool has, without those that are only lent; `None` where that is not known.
#[must_use]
pub fn in_boot(entries: &[Entry], boot_id: &str, pool_pages: &dyn Fn(&str) -> Option<u64>) -> Vec<Entry> {
    let mut seen = entries.to_vec();
    let lines = lines_of_boot(entries, boot_id);
    for (entry, raw) in seen.iter_mut().zip(entries).filter(|(_, raw)| raw.boot_id != boot_id) {
        for step in entry.steps.iter_mut().filter(|step| !step.undo.outlives_boot()) {
            if carry_over(step, raw, &lines, boot_id) {
                boot_id.clone_into(&mut entry.boot_id);
            }
        }
        // A file is of the boot that wrote it, and not of the one that read it.
        if entry.boot_id != raw.boot_id {
            let files = entry.steps.iter_mut().filter(|step| step.undo.outlives_boot());
            files.for_each(|step| step.last_boot = Some(step.written_in(&raw.boot_id).to_owned()));
        }
    }
    let mut places: Vec<&str> = Vec::new();
    let files = files_of_boot(entries, boot_id);
    places.extend(files.flat_map(|(_, file)| &file.pools).map(|line| line.place.as_str()));
    places.sort_unstable();
    places.dedup();
    for place in places {
        count_pages(&mut seen, entries, boot_id, place, pool_pages(place));
    }
    count_lowered(&mut seen, entries, boot_id, pool_pages);
    seen
}

/// Takes note of pools that somebody lowered since entries of this boot raised them: such a pool has fewer pages than
/// others had then and than are held in it. Whose pages are gone cannot be seen. Those of others count first, since
/// nothing of theirs may be given back for ours; of ours those of the newest entry are there first, which may have
/// asked for them anew.
///
/// Whoever sets the pools of all nodes together has the kernel take pages from any of them: where a pool of ours was
/// lowered, no more of ours is left than all of this size have beside what others had in them. That is looked at behind
/// the pools themselves, or one of them would be left pages that another one has lost.
///
/// Such a step is [`OutcomeKind::Lowered`]. A pool in whose write a kill came is left as it is: nobody knows yet what
/// is held of it.
fn count_lowered(
    seen: &mut [Entry],
    entries: &[Entry],
    boot_id: &str,
    pool_pages: &dyn Fn(&str) -> Option<u64>,
) {
    let of_boot = entries.iter().rev().filter(|raw| raw.boot_id == boot_id);
    // By place, what the newest entry that raised the pool saw of others; the newest one first.
    let mut raised: Vec<(&str, &BTreeMap<String, u64>)> = Vec::new();
    for step in of_boot.flat_map(|raw| &raw.steps).filter(|step| !step.others.is_empty()) {
        if raised.iter().all(|(place, _)| *place != step.place) {
            raised.push((&step.place, &step.others));
        }
    }
    let mut sizes: Vec<&BTreeMap<String, u64>> = Vec::new();
    for (place, others) in &raised {
        let in_place = |step: &EntryStep| step.undo == Undo::Subtract && step.place == *place;
        let (Some(&own), Some(there)) = (others.get(*place), pool_pages(place)) else { continue };
        let is_lowered = held_in(seen, &in_place).is_some_and(|held| there < own.saturating_add(held));
        if is_lowered {
            leave(seen, &in_place, there.saturating_sub(own), (&format!("the pool to {there}"), own));
            let of_size = raised.iter().map(|(_, others)| *others).find(|others| others.contains_key(*place));
            sizes.extend(of_size.filter(|others| !sizes.contains(others)));
        }
    }
    for others in sizes {
        let in_size = |step: &EntryStep| step.undo == Undo::Subtract && others.contains_key(&step.place);
        let all_there = others.keys().map(|place| pool_pages(place)).sum::<Option<u64>>();
        let all: u64 = others.values().sum();
        if let Some(there) = all_there.filter(|_| held_in(seen, &in_size).is_some()) {
            let lowered = format!("the pools of all nodes to {there}");
            leave(seen, &in_size, there.saturating_sub(all), (&lowered, all));
        }
    }
}

/// The pages that steps hold; `None` where a kill came in a write of one of them.
fn held_in(seen: &[Entry], is_one: &dyn Fn(&EntryStep) -> bool) -> Option<u64> {
    let mut steps = seen.iter().flat_map(|entry| &entry.steps).filter(|step| is_one(step));
    // What was taken back holds nothing, however a kill came into taking it back once more.
    let is_known = |step: &EntryStep| step.begun.is_none() || step.is_undone();
    steps.try_fold(0_u64, |held, step| is_known(step).then(|| held.saturating_add(step.still_held())))
}

/// Leaves steps so many pages, newest first: somebody lowered something, of which others had so many.
fn leave(
    seen: &mut [Entry],
    is_one: &dyn Fn(&EntryStep) -> bool,
    mut left: u64,
    (lowered, others): (&str, u64),
) {
    let newest = seen.iter().map(|entry| entry.id).max();
    for step in seen.iter_mut().rev().flat_map(|entry| entry.steps.iter_mut().rev()) {
        let held = if is_one(step) { step.still_held() } else { 0 };
        let still = held.min(left);
        left -= still;
        if still == held {
            continue;
        }
        let reason = format!("someone lowered {lowered} pages since");
        step.lower_to(still, reason, &format!("others had {others} when it was raised"));
        step.lowered_behind = newest;
    }
}

/// What our file gives a pool at boot: the pages of files of others and those of each entry that is in it, or the size
/// in all that an entry wants, where that is more. `None` for a pool of which it has no line, as where none of the
/// pages would be ours.
#[must_use]
pub fn pages_in_file(entries: &[Entry], place: &str) -> Option<u64> {
    let files = entries.iter().flat_map(|entry| &entry.steps);
    let files = files.filter(|step| step.is_in_file() && !step.is_undone());
    size_of_line(files.flat_map(|file| &file.pools).filter(|line| line.place == place))
}

/// The same of what entries have in one line, oldest first.
pub fn size_of_line<'a>(lines: impl Iterator<Item = &'a PoolLine>) -> Option<u64> {
    let lines: Vec<&PoolLine> = lines.collect();
    let others = lines.last()?.others;
    let is_ours = lines.iter().any(|line| line.pages > 0);
    is_ours.then(|| size_beside(lines.iter().copied(), others))
}

/// The size that a pool is to have by the lines of entries, oldest first, where others give it so many pages: as if the
/// entries were applied to it one behind the other. A size in all counts what is there by then, and is no sum with it.
pub fn size_beside<'a>(lines: impl Iterator<Item = &'a PoolLine>, others: u64) -> u64 {
    lines.fold(others, |size, line| match line.in_all {
        Some(in_all) => size.max(in_all),
        None => size.saturating_add(line.pages),
    })
}

/// Pages that lines of our files brought a pool when this boot began, and that no step has to take back: the entry that
/// had raised the pool by them was taken back before.
#[must_use]
pub fn pages_of_nobody(entries: &[Entry], boot_id: &str, place: &str) -> u64 {
    let files = files_of_boot(entries, boot_id);
    let lines = files.flat_map(|(_, file)| &file.pools).filter(|line| line.place == place);
    let brought: u64 = lines.map(|line| line.pages).sum();
    let older = entries.iter().filter(|entry| entry.boot_id != boot_id);
    let raised = older.flat_map(|entry| &entry.steps).filter(|step| {
        let is_in_force = !step.is_undone() || step.was_seen_in(boot_id);
        step.undo == Undo::Subtract && step.place == place && is_in_force
    });
    brought.saturating_sub(raised.map(EntryStep::pages_asked).sum())
}

/// The knob that the kernel computes at a boot, of its memory and of the mode of huge pages (`mm/khugepaged.c`).
const OF_MEMORY: &str = "vm.min_free_kbytes";

/// Makes a run-time step of an earlier boot what it is in this one; whether it is in force, or was until an undo.
///
/// What the kernel computes at each boot anew, of the memory that there is, has no original in an earlier one: the
/// number follows by itself from what goes back. Others that a write changes besides may be of the host's own files.
fn carry_over(step: &mut EntryStep, entry: &Entry, lines: &Lines, boot_id: &str) -> bool {
    let drop_derived = |step: &mut EntryStep| {
        let is_computed = |original: &Original| {
            original.coupling == Some(Coupling::Derived) && original.knob.as_str() == OF_MEMORY
        };
        step.originals.retain(|original| !is_computed(original));
    };
    if step.was_seen_in(boot_id) {
        drop_derived(step);
        step.line = None;
        return true;
    }
    if entry.is_open() && is_brought(step, entry, lines) {
        drop_derived(step);
        // This boot has loaded whatever line there is.
        step.line = None;
        step.undone = None;
        step.begun = None;
        if let Some(outcome) = &mut step.outcome {
            outcome.short = None;
            // What was lost in another boot the file has brought back in this one.
            if outcome.outcome == OutcomeKind::Lowered {
                outcome.outcome = OutcomeKind::Done;
            }
        }
        return true;
    }
    // A write that a kill interrupted in another boot is over, and says nothing of this one.
    step.begun = None;
    if !step.is_undone() || step.left_theirs() {
        let (knob, place) = (step.knob.clone(), step.place.clone());
        step.undone = Some(Outcome::new(knob, place, OutcomeKind::GoneWithReboot));
    }
    false
}

/// What the files said when this boot began, by place: the entry, and the value.
type Lines = BTreeMap<String, Vec<(EntryId, String)>>;

/// The lines of a boot. Of a pool the value tells the pages that the line keeps besides what its entry raised.
fn lines_of_boot(entries: &[Entry], boot_id: &str) -> Lines {
    let mut lines = Lines::new();
    for (entry, file) in files_of_boot(entries, boot_id) {
        for (place, value) in file.lines() {
            lines.entry(place).or_default().push((entry.id, value));
        }
        for PoolLine { place, pages, .. } in file.pools.iter().filter(|line| line.pages > 0) {
            let more = pages.saturating_sub(pages_raised(entry, place));
            lines.entry(place.clone()).or_default().push((entry.id, more.to_string()));
        }
    }
    lines
}

/// Whether this boot had the value of a step from a file: one of its own entry, or, where it was not taken back, one of
/// an entry that wanted the same.
fn is_brought(step: &EntryStep, entry: &Entry, lines: &Lines) -> bool {
    let same = |value: &str| value == step.wanted.trim() || value == step.ours().trim();
    lines.get(&step.place).into_iter().flatten().any(|(id, value)| match step.undo {
        _ if *id == entry.id => true,
        _ if step.is_undone() => false,
        Undo::Restore => same(value),
        Undo::Subtract => value != "0",
        Undo::None | Undo::File | Undo::Edit | Undo::Moved | Undo::Exchanged => false,
    })
}

/// Pages that an entry raised a pool by itself. A line of it that is for more keeps those of an older entry, too.
fn pages_raised(entry: &Entry, place: &str) -> u64 {
    let raised = entry.steps.iter().filter(|step| step.undo == Undo::Subtract && step.place == place);
    raised.map(EntryStep::pages_asked).sum()
}

/// The files that were there when this boot began, each with its entry: written in an earlier one, and not taken out
/// before this one.
fn files_of_boot<'a>(
    entries: &'a [Entry],
    boot_id: &'a str,
) -> impl Iterator<Item = (&'a Entry, &'a EntryStep)> {
    entries.iter().filter(move |entry| entry.boot_id != boot_id).flat_map(move |entry| {
        let there = |step: &&EntryStep| !step.is_undone() || step.was_seen_in(boot_id);
        entry.steps.iter().filter(|step| step.is_in_file()).filter(there).map(move |step| (entry, step))
    })
}

/// Gives each step what the line of a pool brought it: as many pages as the line has for it, as far as they are there
/// beside those of other files and of steps that know theirs. Entries with a line of their own come first.
fn count_pages(seen: &mut [Entry], entries: &[Entry], boot_id: &str, place: &str, there: Option<u64>) {
    let here = |raw: &Entry, step: &EntryStep| raw.boot_id == boot_id || step.was_seen_in(boot_id);
    let holds = |step: &EntryStep| step.undo == Undo::Subtract && step.place == place && !step.is_undone();
    let mut elsewhere: u64 = 0;
    for (entry, raw) in seen.iter().zip(entries) {
        let known = entry.steps.iter().filter(|step| holds(step) && here(raw, step));
        elsewhere = elsewhere.saturating_add(known.map(EntryStep::pages_held).sum());
    }
    let lines = |id: Option<EntryId>| {
        let files =
            files_of_boot(entries, boot_id).filter(move |(entry, _)| id.is_none_or(|id| entry.id == id));
        files.flat_map(|(_, file)| &file.pools).filter(|line| line.place == place)
    };
    let others = lines(None).last().map_or(0, |line| line.others_at(boot_id));
    let (in_pool, mut size) = (there.unwrap_or(u64::MAX), others);
    let mut there = there.map_or(u64::MAX, |pages| pages.saturating_sub(others).saturating_sub(elsewhere));
    let mut spare: u64 = lines(None).map(|line| line.pages).sum();
    for with_line in [true, false] {
        for (entry, raw) in seen.iter_mut().zip(entries) {
            let own: u64 = lines(Some(raw.id)).map(|line| line.pages).sum();
            // Pages of which it is not known whose they are become nobody's by a reboot.
            let clear = |step: &EntryStep| {
                step.outcome.as_ref().is_none_or(|outcome| outcome.outcome != OutcomeKind::Theirs)
            };
            let of_line = |step: &&mut EntryStep| {
                holds(step) && clear(step) && !here(raw, step) && with_line == (own > 0)
            };
            for step in entry.steps.iter_mut().filter(of_line) {
                // A line for pages that the kernel had granted in part asked for all of them once more.
                let asked = if step.undone.is_some() { step.pages_held() } else { step.pages_asked() };
                let mut due = if with_line { own.min(step.pages_asked()) } else { asked };
                // As the size of the line came about: a size in all is for what was missing of it then.
                if with_line && let Some(in_all) = step.in_all {
                    due = due.min(in_all.saturating_sub(size));
                }
                size = size.saturating_add(due);
                let pages = due.min(spare).min(there);
                spare -= pages;
                there -= pages;
                // Of a size in all the line was to give what others leave missing of it, be that more or less than was
                // missing when the pool was raised.
                if let Some(in_all) = step.in_all {
                    step.raise_pages = Some(pages.saturating_add(in_all.saturating_sub(in_pool)));
                    step.takes_pages = None;
                }
                give(step, pages);
            }
        }
    }
}

fn give(step: &mut EntryStep, pages: u64) {
    let (knob, place) = (step.knob.clone(), step.place.clone());
    let outcome = step.outcome.get_or_insert_with(|| Outcome::new(knob, place, OutcomeKind::Done));
    outcome.outcome = OutcomeKind::Done;
    outcome.granted_pages = Some(pages);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, EntryState, KnobId, Plan};

    const POOL: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    const PLACE: &str = "/proc/sys/vm/swappiness";

    fn done(mut step: EntryStep, pages: Option<u64>) -> EntryStep {
        let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Done);
        outcome.granted_pages = pages;
        step.outcome = Some(outcome);
        step
    }

    fn step(place: &str, wanted: &str, undo: Undo) -> EntryStep {
        EntryStep::new(KnobId::new("x"), place.to_owned(), wanted.to_owned(), Class::Safe, undo)
    }

    fn value(wanted: &str) -> EntryStep {
        done(step(PLACE, wanted, Undo::Restore), None)
    }

    fn raise(pages: u64) -> EntryStep {
        EntryStep { raise_pages: Some(pages), ..done(step(POOL, "", Undo::Subtract), Some(pages)) }
    }

    /// A file with a line for the value, where there is one, and one for the pool.
    fn file(value: &str, pages: u64, others: u64) -> EntryStep {
        let wanted = if value.is_empty() { String::new() } else { format!("vm.swappiness = {value}\n") };
        let pools = vec![PoolLine { place: POOL.to_owned(), pages, others, ..PoolLine::default() }];
        EntryStep { pools, ..done(step("/etc/x.conf", &wanted, Undo::File), None) }
    }

    fn entry(id: u64, steps: Vec<EntryStep>) -> Entry {
        let plan = Plan::new(String::new(), String::new(), String::new(), Vec::new(), Vec::new());
        Entry {
            id: EntryId(id),
            at: 0,
            boot_id: "first".to_owned(),
            who: String::new(),
            command: String::new(),
            reason: None,
            profile: String::new(),
            plan: plan.hash,
            steps,
            confirm_by: None,
            wait_end: None,
            on_confirm: None,
            state: EntryState::Open,
            undo_begun: false,
            instead_of: None,
            replaced_by: None,
            host: None,
            allowed: crate::Allowed::default(),
        }
    }

    fn in_second(entries: &[Entry], pages: u64) -> Vec<Entry> {
        in_boot(entries, "second", &|_| Some(pages))
    }

    #[test]
    fn only_what_a_file_brought_is_in_force_after_a_reboot() {
        let kept = entry(1, vec![value("10"), file("10", 0, 0)]);
        let gone = entry(2, vec![value("5")]);
        let seen = in_second(&[kept, gone], 0);
        assert_eq!((seen[0].boot_id.as_str(), seen[0].steps[0].is_undone()), ("second", false));
        let undone = seen[1].steps[0].undone.as_ref().map(|undone| undone.outcome);
        assert_eq!((seen[1].boot_id.as_str(), undone), ("first", Some(OutcomeKind::GoneWithReboot)));
    }

    #[test]
    fn a_file_stays_of_the_boot_that_wrote_it_though_its_entry_is_in_force_in_another() {
        let confirmed = EntryStep { last_boot: Some("second".to_owned()), ..file("10", 0, 0) };
        for (file, boot) in [(file("10", 0, 0), "first"), (confirmed, "second")] {
            let seen = in_boot(&[entry(1, vec![value("10"), file])], "third", &|_| None);
            let of_file = seen[0].steps[1].written_in(&seen[0].boot_id);
            assert_eq!((seen[0].boot_id.as_str(), of_file), ("third", boot));
        }
    }

    #[test]
    fn a_file_of_another_entry_counts_where_it_has_the_same_value() {
        for (line, is_brought) in [("10", true), ("11", false)] {
            let seen = in_second(&[entry(1, vec![value("10")]), entry(2, vec![file(line, 0, 0)])], 0);
            assert_eq!(!seen[0].steps[0].is_undone(), is_brought, "{line}");
        }
    }

    #[test]
    fn a_file_that_was_taken_out_counts_in_the_boot_that_read_it() {
        for (boot, is_brought) in [(None, false), (Some("second".to_owned()), true)] {
            let undone = value("").outcome;
            let out = EntryStep { undone, last_boot: boot, ..file("10", 0, 0) };
            let seen = in_second(&[entry(1, vec![value("10"), out])], 0);
            assert_eq!(!seen[0].steps[0].is_undone(), is_brought);
        }
    }

    #[test]
    fn what_never_reached_the_file_was_not_brought() {
        let unwritten = EntryStep { outcome: None, ..file("10", 4, 0) };
        let seen = in_second(&[entry(1, vec![value("10"), raise(4), unwritten])], 9);
        assert!(seen[0].steps[..2].iter().all(EntryStep::is_undone));
    }

    #[test]
    fn pages_are_held_as_far_as_the_pool_has_them_besides_those_of_others() {
        let entries = [entry(1, vec![raise(4), file("", 4, 3)]), entry(2, vec![raise(5), file("", 5, 3)])];
        let held = |pages| -> Vec<u64> {
            in_second(&entries, pages).iter().map(|entry| entry.steps[0].pages_held()).collect()
        };
        assert_eq!(held(12), [4, 5]);
        assert_eq!(held(20), [4, 5]);
        assert_eq!(held(9), [4, 2]);
        assert_eq!(held(3), [0, 0]);
        assert_eq!(pages_in_file(&entries, POOL), Some(12));
        assert_eq!(pages_in_file(&entries[1..], POOL), Some(8));
        assert_eq!(pages_in_file(&[], POOL), None);
    }

    /// A step that raised a pool of which others had so many pages.
    fn raised(others: u64, pages: u64) -> EntryStep {
        EntryStep { others: BTreeMap::from([(POOL.to_owned(), others)]), ..raise(pages) }
    }

    #[test]
    fn pages_that_somebody_took_from_a_pool_are_not_held() {
        let seen_with = |entries: &[Entry], there| in_boot(entries, "first", &|_| Some(there));
        let held =
            |seen: &[Entry]| -> Vec<u64> { seen.iter().map(|entry| entry.steps[0].pages_held()).collect() };
        let two = [entry(1, vec![raised(1024, 512)]), entry(2, vec![raised(1024, 8)])];
        for (there, left) in [
            (1544, [512, 8]),
            (2000, [512, 8]),
            (1540, [508, 8]),
            (1030, [0, 6]),
            (1024, [0, 0]),
            (9, [0, 0]),
        ] {
            let seen = seen_with(&two, there);
            assert_eq!(held(&seen), left, "{there}");
            assert_eq!(seen[0].steps[0].is_lowered(), left[0] < 512, "{there}");
        }
        // Not known, and in the middle of a write.
        assert_eq!(held(&in_boot(&two, "first", &|_| None)), [512, 8]);
        let mut begun = two.clone();
        begun[0].steps[0].begun = Some(crate::PoolWrite { held: 0, from: 1024, to: 1536 });
        assert_eq!(held(&seen_with(&begun, 9)), [512, 8]);
    }

    /// What others had is what the newest intent says, whatever became of the older ones since.
    #[test]
    fn others_have_what_the_newest_entry_saw() {
        let back = |kind: OutcomeKind| {
            let mut step = raised(3, 4);
            step.undone = Some(Outcome::new(step.knob.clone(), POOL, kind));
            step
        };
        let mut short = raised(3, 4096);
        short.outcome.as_mut().expect("an outcome").granted_pages = Some(4);
        for (older, held) in [(back(OutcomeKind::Done), 0), (back(OutcomeKind::HandedOver), 0), (short, 4)] {
            let entries = [entry(1, vec![older]), entry(2, vec![raised(10, 3)])];
            for (there, left) in
                [(13 + held, [held, 3]), (12 + held, [held.max(1) - 1, 2 + held / 4]), (10, [0, 0])]
            {
                let seen = in_boot(&entries, "first", &|_| Some(there));
                let pages: Vec<u64> = seen.iter().map(|entry| entry.steps[0].still_held()).collect();
                assert_eq!(pages, left, "{there} beside {held}");
            }
        }
    }

    #[test]
    fn what_was_lost_is_told_once_and_counts_in_its_boot_alone() {
        let lost = in_boot(&[entry(1, vec![raised(10, 8)])], "first", &|_| Some(15));
        assert_eq!((lost[0].steps[0].is_lowered(), lost[0].steps[0].still_held()), (true, 5));
        assert_eq!(in_boot(&lost, "first", &|_| Some(15)), lost);
        // And once more, of the same.
        let more = in_boot(&lost, "first", &|_| Some(12));
        let short = more[0].steps[0].outcome.as_ref().and_then(|outcome| outcome.short.as_ref());
        assert_eq!(short.map(|short| (short.asked, short.granted)), Some((8, 2)));
        // A line that brings the pages back in another boot.
        let mut kept = lost;
        kept[0].steps.push(file("", 8, 10));
        let seen = in_second(&kept, 18);
        assert_eq!((seen[0].steps[0].is_lowered(), seen[0].steps[0].still_held()), (false, 8));
    }

    /// The kernel takes what is too much in all pools together from any of them (`set_max_huge_pages`).
    #[test]
    fn who_sets_all_nodes_together_leaves_nothing_of_ours_in_any() {
        let pool = |node: u32| POOL.replace("node0", &format!("node{node}"));
        let others: BTreeMap<String, u64> =
            [34, 33, 33].into_iter().zip(0..).map(|(pages, node)| (pool(node), pages)).collect();
        let on = |node: u32| EntryStep { place: pool(node), others: others.clone(), ..raise(32) };
        let entries = [entry(1, vec![on(0), on(1)])];
        let held = |sizes: [u64; 3]| {
            let pages =
                |place: &str| (0..3).find(|node| pool(*node) == place).map(|node| sizes[node as usize]);
            let seen = in_boot(&entries, "first", &pages);
            [0, 1].map(|step: usize| seen[0].steps[step].still_held())
        };
        assert_eq!(held([66, 65, 33]), [32, 32]);
        assert_eq!(held([45, 44, 11]), [0, 0], "100 in all, as before");
        assert_eq!(held([45, 65, 33]), [11, 32], "one pool");
        assert_eq!(held([45, 54, 21]), [0, 20], "120 in all");
        // Who gives up his own elsewhere takes nothing of ours.
        assert_eq!(held([66, 65, 0]), [32, 32]);
        // More than others had: both pools are as large as theirs and what is left of ours.
        assert_eq!(held([50, 49, 33]), [16, 16], "132 in all");
    }

    #[test]
    fn who_lowers_all_nodes_to_more_than_others_had_leaves_ours_in_each() {
        let pool = |node: u32| POOL.replace("node0", &format!("node{node}"));
        let others: BTreeMap<String, u64> = [0, 1].map(|node| (pool(node), 64)).into();
        let on = |node: u32| EntryStep { place: pool(node), others: others.clone(), ..raise(192) };
        for entries in
            [vec![entry(1, vec![on(0), on(1)])], vec![entry(1, vec![on(0)]), entry(2, vec![on(1)])]]
        {
            let seen = in_boot(&entries, "first", &|_| Some(128));
            let steps = seen.iter().flat_map(|entry| &entry.steps);
            let held: Vec<u64> = steps.map(EntryStep::still_held).collect();
            assert_eq!(held, [64, 64], "{} entries", entries.len());
        }
    }

    #[test]
    fn a_line_for_pages_of_an_older_entry_brings_those() {
        let entries = [entry(1, vec![raise(4)]), entry(2, vec![raise(2), file("", 6, 0)])];
        let seen = in_second(&entries, 6);
        let held: Vec<u64> = seen.iter().map(|entry| entry.steps[0].pages_held()).collect();
        assert_eq!(held, [4, 2]);
        // Without them in the line they went with the reboot.
        let seen = in_second(&[entry(1, vec![raise(4)]), entry(2, vec![raise(2), file("", 2, 0)])], 2);
        assert!(seen[0].steps[0].is_undone() && seen[1].steps[0].pages_held() == 2);
    }

    #[test]
    fn pages_that_were_granted_in_part_are_the_steps_where_a_line_of_another_brings_them_all() {
        let mut short = raise(100);
        short.outcome.as_mut().expect("an outcome").granted_pages = Some(25);
        let entries = [entry(1, vec![short]), entry(2, vec![file("", 100, 3)])];
        for (there, held) in [(103, 100), (63, 60), (3, 0)] {
            assert_eq!(in_second(&entries, there)[0].steps[0].pages_held(), held);
        }
    }

    #[test]
    fn pages_whose_step_was_taken_back_before_the_boot_are_nobodys() {
        let undone_in = |boot: Option<&str>| {
            let undone = value("").outcome;
            EntryStep { undone, last_boot: boot.map(str::to_owned), ..raise(4) }
        };
        for (step, pages) in [(raise(4), 0), (undone_in(None), 4), (undone_in(Some("second")), 0)] {
            let entries = [entry(1, vec![step]), entry(2, vec![file("", 4, 3)])];
            assert_eq!(pages_of_nobody(&entries, "second", POOL), pages);
        }
    }

    #[test]
    fn a_size_in_all_counts_what_is_there_and_is_there_for_what_comes_behind() {
        let need = |pages| PoolLine { pages, ..PoolLine::default() };
        let all = |in_all| PoolLine { pages: 1, in_all: Some(in_all), ..PoolLine::default() };
        for (lines, others, size) in [
            (vec![need(16), need(4)], 8, 28),
            (vec![all(20)], 8, 20),
            (vec![all(20)], 24, 24),
            (vec![all(20), all(40), all(30)], 8, 40),
            (vec![need(10), all(20)], 8, 20),
            (vec![all(20), need(10)], 8, 30),
        ] {
            assert_eq!(size_beside(lines.iter(), others), size, "{lines:?} beside {others}");
        }
    }

    #[test]
    fn a_line_keeps_what_a_boot_had_loaded_beside_what_is_seen_since() {
        let mut line = PoolLine { pages: 16, others: 4, ..PoolLine::default() };
        line.see_others(8, "one", false);
        assert_eq!((line.others, line.others_at("one")), (8, 8), "it was written in that boot");
        for others in [10, 12] {
            line.see_others(others, "two", true);
            assert_eq!((line.others, line.others_at("two"), line.others_at("three")), (others, 8, others));
        }
        line.see_others(0, "three", true);
        assert_eq!((line.others, line.others_at("three")), (0, 12));
    }
}
