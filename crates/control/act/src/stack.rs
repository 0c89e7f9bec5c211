//! Entries over entries: when B was applied over A, and one of them goes. Pure.
//!
//! ```text
//!   original 60 --A--> 10 --B--> 1        undo B, then A:  1 -> 10 -> 60
//!                                         undo A, then B:  1 stays (A hands its original over), then -> 60
//!   original 60 --A--> 10, someone sets 33, --B--> 10
//!                                         undo A, then B:  10 stays (it is B's, and 33 was theirs), then -> 33
//! ```
//!
//! B's intent notes that its original is what A had left (`over: A`). That link counts only once A is undone:
//! a value that an administrator set between A and B is an original of its own. Whatever the originals are: a place
//! that a newer open entry has set shows that one's value, and the undo of an older one leaves it so, also where the
//! kernel had derived it from what the older one wrote.

use planish_model::{Caused, Coupling, Entry, EntryId, EntryStep, Original, Undo};

/// Notes in the new originals of one step which open entry had left each of them.
///
/// Two twins are one setting: only an entry that left both as they are counts. Otherwise the live one of them is an
/// administrator's, and the zero of the other is what that did.
pub fn link(originals: &mut [Original], open: &[Entry]) {
    let (twins, others): (Vec<_>, Vec<_>) =
        originals.iter_mut().partition(|original| original.is_of_setting());
    link_together(twins, open);
    others.into_iter().for_each(|original| link_together(vec![original], open));
}

/// Notes the newest entry that left all of these places as they are, at those that it knows of.
fn link_together(mut originals: Vec<&mut Original>, open: &[Entry]) {
    for entry in open.iter().rev() {
        let left: Vec<Option<String>> =
            originals.iter().map(|original| left_at(entry, &original.place)).collect();
        let is_as_left = |(original, left): (&&mut Original, &Option<String>)| {
            left.as_ref().is_none_or(|left| original.r#type.same(left, &original.value))
        };
        if left.iter().all(Option::is_none) || !originals.iter().zip(&left).all(is_as_left) {
            continue;
        }
        let known = originals.iter_mut().zip(left).filter(|(_, left)| left.is_some());
        known.for_each(|(original, _)| original.over = Some(entry.id));
        return;
    }
}

/// What an entry left at a place, if it has not taken it back: what it made of it, and where no step made anything of a
/// coupled place also what it had found. Of a derived place or an alias the original of an older entry may have been
/// handed over to it; and a twin that was cleared already is part of what it set.
fn left_at(entry: &Entry, place: &str) -> Option<String> {
    let live = || entry.steps.iter().rev().filter(|step| step.undo == Undo::Restore && !step.is_undone());
    let found = |step: &EntryStep| {
        let mut found = step.coupled().filter(|other| other.place == place);
        found.next().filter(|_| step.outcome.is_some()).map(|found| found.value.clone())
    };
    live().find_map(|step| made_at(step, place)).or_else(|| live().find_map(found))
}

/// What a step made of a place. A kill before the outcome kept it from telling that setting a place cleared its twin.
fn made_at(step: &EntryStep, place: &str) -> Option<String> {
    if step.place == place {
        return Some(step.ours().to_owned());
    }
    let Some(outcome) = &step.outcome else {
        let is_twin = |other: &Original| other.place == place && other.coupling == Some(Coupling::Twin);
        return step.coupled().any(is_twin).then(|| "0".to_owned());
    };
    outcome.caused.iter().find(|caused| caused.place == place).map(|caused| caused.value.clone())
}

/// The newer open entry that set the place of a step, or its twin, after the step did: undoing that one
/// brings the step's original back, and the step itself must write nothing. One that set what the place is another face
/// of is such an entry, too: as long as the governor is `performance` the kernel refuses any other energy hint.
///
/// That is one which was applied over it, and one which set the same place anew after somebody had put these originals
/// back. `step` has the originals that count now: see [`resolved`].
#[must_use]
pub fn covering(id: EntryId, step: &EntryStep, entries: &[Entry]) -> Option<EntryId> {
    let covers = |other: &EntryStep| {
        let mut found = of_one_setting(step, other).chain(other_face(step, other));
        found.any(|found| is_over(found, id, entries)) || is_found_again(step, other, entries)
    };
    newer(id, entries).find(|(_, other)| covers(other)).map(|(newer, _)| newer)
}

/// Whether another step set the same place anew after somebody had put the originals of a step back.
fn is_found_again(step: &EntryStep, other: &EntryStep, entries: &[Entry]) -> bool {
    let (found, _) = current(other, entries);
    let is_found = |original: &Original| {
        let mut found = found.iter().filter(|found| found.place == original.place);
        found.any(|found| found.over == original.over && original.r#type.same(&found.value, &original.value))
    };
    other.place == step.place
        && step.originals.iter().filter(|original| original.is_of_setting()).all(is_found)
}

/// The steps of open entries that were made after one, as far as they set a place and still do, each with its entry.
fn newer(id: EntryId, entries: &[Entry]) -> impl Iterator<Item = (EntryId, &EntryStep)> {
    let newer = entries.iter().filter(move |entry| entry.id > id && entry.is_open());
    let steps = newer.flat_map(|entry| entry.steps.iter().map(move |step| (entry.id, step)));
    steps.filter(|(_, step)| step.undo == Undo::Restore && !step.is_undone())
}

/// Those originals of another step that are of a place which both steps set, or of its twin.
fn of_one_setting<'a>(step: &EntryStep, other: &'a EntryStep) -> impl Iterator<Item = &'a Original> {
    let is_own = move |place: &str| {
        step.originals.iter().any(|original| original.is_of_setting() && original.place == place)
    };
    other.originals.iter().filter(move |original| original.is_of_setting() && is_own(&original.place))
}

/// The original that another step has of the place of a step as another face of its own.
fn other_face<'a>(step: &EntryStep, other: &'a EntryStep) -> impl Iterator<Item = &'a Original> {
    let is_alias = |found: &&Original| found.coupling == Some(Coupling::Alias) && found.place == step.place;
    other.originals.iter().filter(is_alias)
}

/// The newer open entry that set the place of a step, or its twin, over whatever it found there. Where it covers
/// nothing (see [`covering`]) that was somebody else's value, so that ours was gone before, also where both wrote the
/// same.
fn set_since(id: EntryId, step: &EntryStep, entries: &[Entry]) -> Option<EntryId> {
    let sets = |other: &EntryStep| of_one_setting(step, other).next().is_some();
    newer(id, entries).find(|(_, other)| sets(other)).map(|(newer, _)| newer)
}

/// The values that the kernel derived at the place of a step, from what newer open entries wrote elsewhere over it.
fn derived_since(id: EntryId, step: &EntryStep, entries: &[Entry]) -> Vec<(EntryId, String)> {
    let is_above = |found: &Original| found.place == step.place && is_over(found, id, entries);
    let above = newer(id, entries).filter(|(_, other)| other.originals.iter().any(is_above));
    let caused = above.flat_map(|(newer, other)| {
        let caused = other.outcome.iter().flat_map(|outcome| &outcome.caused);
        caused.map(move |caused| (newer, caused))
    });
    let here = caused.filter(|(_, caused)| caused.place == step.place);
    here.map(|(newer, caused)| (newer, caused.value.clone())).collect()
}

/// A step as it is to be taken back now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The step, with the originals that count now: those of undone entries that it was applied over.
    pub step: EntryStep,
    /// What those entries, and earlier steps of its own, had left at its places: not someone else's.
    pub inherited: Vec<Caused>,
    /// Coupled places that a newer open entry set, or found as this one had left them: they go back with that one.
    pub handed_over: Vec<String>,
    /// The newer open entry whose value the place shows, if it is not ours any more.
    pub set_since: Option<EntryId>,
    /// What newer open entries had the kernel make of ours at the place: it goes back with them.
    pub derived_since: Vec<(EntryId, String)>,
    /// Why the host would not bear the originals now; whoever looked at it says so.
    pub unborne: Option<String>,
    /// Of a pool the line of others that pages of ours may be left to; whoever looked at it says so.
    pub claim: Option<Claim>,
}

/// A line of others that gives the pools of all nodes together so many pages: who loads it means those of ours, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Pages that are there beside those that it gives: no more of ours go back.
    pub beside: u64,
    /// How many it gives.
    pub given: u64,
    /// The line: file and number.
    pub source: String,
}

/// A step of an entry with the originals that count now.
///
/// An apply that ended early may have caused a value at the place of a step that it never came to: a scheduler that was
/// set, and sized the queue whose own step was the next one.
#[must_use]
pub fn resolved(entry: &Entry, index: usize, entries: &[Entry]) -> Resolved {
    let earlier = entry.steps[..index].iter().filter_map(|step| step.outcome.as_ref());
    let mut inherited: Vec<Caused> = earlier.flat_map(|outcome| outcome.caused.iter().cloned()).collect();
    let (originals, left) = current(&entry.steps[index], entries);
    inherited.extend(left);
    let step = EntryStep { originals, ..entry.steps[index].clone() };
    let handed_over = handed_over(entry.id, &step, entries);
    let set_since = set_since(entry.id, &step, entries);
    let derived_since = derived_since(entry.id, &step, entries);
    Resolved { step, inherited, handed_over, set_since, derived_since, unborne: None, claim: None }
}

/// A step with the originals that count now, and nothing else of what [`resolved`] tells: what was at its places before
/// it and before the undone entries that it was applied over.
#[must_use]
pub fn with_originals(step: &EntryStep, entries: &[Entry]) -> EntryStep {
    EntryStep { originals: current(step, entries).0, ..step.clone() }
}

/// The originals of a step that count now, those of undone entries that it was applied over, and what those had left.
fn current(step: &EntryStep, entries: &[Entry]) -> (Vec<Original>, Vec<Caused>) {
    let (mut originals, mut inherited) = (step.originals.clone(), Vec::new());
    for original in &mut originals {
        while let Some(older) = original.over.and_then(|id| undone_original(id, &original.place, entries)) {
            let left = std::mem::replace(&mut original.value, older.value.clone());
            inherited.push(Caused { place: original.place.clone(), value: left });
            original.over = older.over;
        }
    }
    (originals, inherited)
}

/// The coupled places of a step, other than its twin, that a newer open entry set, or found as the step had left them.
fn handed_over(id: EntryId, step: &EntryStep, entries: &[Entry]) -> Vec<String> {
    let is_taken = |place: &str| {
        let mut found = newer(id, entries).flat_map(|(_, other)| &other.originals);
        found.any(|found| found.place == place && (found.is_of_setting() || is_over(found, id, entries)))
    };
    let coupled = step.coupled().filter(|original| !original.is_of_setting() && is_taken(&original.place));
    coupled.map(|original| original.place.clone()).collect()
}

/// Whether an original is what an entry had left, or what entries above that one made of it. Those may be open: what
/// one of them had the kernel derive is no doing of somebody else.
fn is_over(original: &Original, id: EntryId, entries: &[Entry]) -> bool {
    let place = &original.place;
    let below = |over: &EntryId| originals_at(*over, place, entries).find_map(|(_, below)| below.over);
    std::iter::successors(original.over, below).any(|over| over == id)
}

/// The original that an undone step of an entry had at a place.
fn undone_original<'a>(id: EntryId, place: &str, entries: &'a [Entry]) -> Option<&'a Original> {
    originals_at(id, place, entries).find(|(step, _)| step.is_undone()).map(|(_, original)| original)
}

/// The originals that steps of an entry had at a place.
fn originals_at<'a>(
    id: EntryId,
    place: &str,
    entries: &'a [Entry],
) -> impl Iterator<Item = (&'a EntryStep, &'a Original)> {
    let steps = entries.iter().filter(move |entry| entry.id == id).flat_map(|entry| &entry.steps);
    let originals = steps.flat_map(|step| step.originals.iter().map(move |original| (step, original)));
    originals.filter(move |(_, original)| original.place == place)
}

#[cfg(test)]
mod tests {
    use planish_model::{Class, Closure, EntryState, KnobId, Outcome, OutcomeKind, Plan, ValueType};

    use super::*;

    const PLACE: &str = "/proc/sys/vm/swappiness";

    fn original(value: &str) -> Original {
        Original {
            knob: KnobId::new("vm.swappiness"),
            place: PLACE.to_owned(),
            r#type: ValueType::Int { int: "weight".to_owned(), min: None, max: None, words: Vec::new() },
            value: value.to_owned(),
            coupling: None,
            over: None,
        }
    }

    fn entry(id: u64, from: &str, to: &str, open: &[Entry]) -> Entry {
        let mut originals = vec![original(from)];
        link(&mut originals, open);
        let mut outcome = Outcome::new(KnobId::new("vm.swappiness"), PLACE, OutcomeKind::Done);
        outcome.read_back = Some(to.to_owned());
        Entry {
            id: EntryId(id),
            at: 0,
            boot_id: "boot".to_owned(),
            who: "root".to_owned(),
            command: "test".to_owned(),
            reason: None,
            profile: "series".to_owned(),
            plan: Plan::new(String::new(), String::new(), String::new(), vec![], vec![]).hash,
            steps: vec![EntryStep {
                knob: KnobId::new("vm.swappiness"),
                place: PLACE.to_owned(),
                wanted: to.to_owned(),
                class: Class::Safe,
                undo: Undo::Restore,
                raise_pages: None,
                takes_pages: None,
                in_all: None,
                others: Default::default(),
                line: None,
                there: None,
                lowered_behind: None,
                part: None,
                service: None,
                originals,
                folders: Vec::new(),
                pools: Vec::new(),
                rules: Vec::new(),
                device: None,
                generator: None,
                outcome: Some(outcome),
                begun: None,
                last_boot: None,
                last_entry: None,
                undone: None,
            }],
            confirm_by: None,
            wait_end: None,
            on_confirm: None,
            state: EntryState::Open,
            undo_begun: false,
            instead_of: None,
            replaced_by: None,
            host: None,
            allowed: planish_model::Allowed::default(),
        }
    }

    fn undo(entry: &mut Entry, kind: OutcomeKind) {
        entry.steps[0].undone = Some(Outcome::new(KnobId::new("vm.swappiness"), PLACE, kind));
        entry.state = EntryState::Closed(Closure::Undone);
    }

    fn resolved_original(entries: &[Entry], index: usize) -> String {
        resolved(&entries[index], 0, entries).step.originals[0].value.clone()
    }

    #[test]
    fn the_newest_goes_first_to_what_the_older_one_left() {
        let first = entry(1, "60", "10", &[]);
        let second = entry(2, "10", "1", std::slice::from_ref(&first));
        let entries = [first, second];
        assert_eq!(covering(EntryId(2), &entries[1].steps[0], &entries), None);
        assert_eq!(resolved_original(&entries, 1), "10");
    }

    #[test]
    fn the_older_one_hands_its_original_over() {
        let first = entry(1, "60", "10", &[]);
        let second = entry(2, "10", "1", std::slice::from_ref(&first));
        let third = entry(3, "1", "5", &[first.clone(), second.clone()]);
        let mut entries = [first, second, third];
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), Some(EntryId(2)));
        undo(&mut entries[0], OutcomeKind::HandedOver);
        assert_eq!(resolved_original(&entries, 1), "60");
        assert_eq!(resolved_original(&entries, 2), "1", "the second one is still there");
        undo(&mut entries[1], OutcomeKind::HandedOver);
        assert_eq!(resolved_original(&entries, 2), "60");
    }

    #[test]
    fn what_an_earlier_step_caused_at_the_place_of_one_that_never_ran_is_ours() {
        let mut entry = entry(1, "64", "63", &[]);
        let mut scheduler = entry.steps[0].clone();
        scheduler.place = "/sys/block/sda/queue/scheduler".to_owned();
        let caused = Caused { place: PLACE.to_owned(), value: "128".to_owned() };
        scheduler.outcome.as_mut().expect("it ran").caused.push(caused);
        entry.steps[0].outcome = None;
        entry.steps.insert(0, scheduler);
        let Resolved { step, inherited, .. } = resolved(&entry, 1, std::slice::from_ref(&entry));
        let whose = |now| crate::three_way::own(&step, &inherited, &step.originals[0], now);
        assert_eq!(whose("128"), crate::three_way::Whose::Ours);
        assert_eq!(whose("129"), crate::three_way::Whose::Theirs);
    }

    const BYTES: &str = "/proc/sys/vm/dirty_bytes";
    const RATIO: &str = "/proc/sys/vm/dirty_ratio";

    /// The originals of a step that sets one of two twins: own place first.
    fn pair(own: (&str, &str), twin: (&str, &str)) -> Vec<Original> {
        let at = |(place, value): (&str, &str), coupling| {
            let place = place.to_owned();
            Original { place, coupling, ..original(value) }
        };
        vec![at(own, None), at(twin, Some(Coupling::Twin))]
    }

    /// An entry that set `dirty_bytes` over a ratio of 20.
    fn setter_of_bytes(to: &str) -> Entry {
        let mut entry = entry(1, "0", to, &[]);
        entry.steps[0].place = BYTES.to_owned();
        entry.steps[0].originals = pair((BYTES, "0"), (RATIO, "20"));
        let cleared = Caused { place: RATIO.to_owned(), value: "0".to_owned() };
        entry.steps[0].outcome.as_mut().expect("it ran").caused.push(cleared);
        entry
    }

    fn links(mut originals: Vec<Original>, open: &[Entry]) -> Vec<Option<u64>> {
        link(&mut originals, open);
        originals.iter().map(|original| original.over.map(|id| id.0)).collect()
    }

    #[test]
    fn a_twin_that_was_cleared_is_what_the_older_one_left_also_after_a_kill() {
        let mut first = setter_of_bytes("4096");
        let seen = pair((RATIO, "0"), (BYTES, "4096"));
        assert_eq!(links(seen.clone(), std::slice::from_ref(&first)), [Some(1), Some(1)]);
        first.steps[0].outcome = None;
        assert_eq!(links(seen, std::slice::from_ref(&first)), [Some(1), Some(1)]);
        // Killed before the write: the ratio is still there.
        assert_eq!(links(pair((RATIO, "20"), (BYTES, "0")), &[first]), [None, None]);
    }

    #[test]
    fn a_twin_that_someone_set_between_two_entries_is_an_original_with_the_zero_of_the_other() {
        let mut first = setter_of_bytes("4096");
        let seen = pair((RATIO, "0"), (BYTES, "8192"));
        assert_eq!(links(seen.clone(), std::slice::from_ref(&first)), [None, None]);
        first.steps[0].outcome = None;
        assert_eq!(links(seen, &[first]), [None, None]);
    }

    /// The second finds the ratio cleared, so that its write changes nothing there.
    #[test]
    fn a_twin_that_was_cleared_already_is_what_an_entry_in_the_middle_left() {
        let first = setter_of_bytes("4096");
        let over = |id: u64, from: &str, to: &str, open: &[Entry]| {
            let mut entry = Entry { id: EntryId(id), ..setter_of_bytes(to) };
            entry.steps[0].originals = pair((BYTES, from), (RATIO, "0"));
            link(&mut entry.steps[0].originals, open);
            entry.steps[0].outcome.as_mut().expect("it ran").caused.clear();
            entry
        };
        let second = over(2, "4096", "8192", std::slice::from_ref(&first));
        let third = over(3, "8192", "16384", &[first.clone(), second.clone()]);
        let overs = |step: &EntryStep| step.originals.iter().map(|own| own.over).collect::<Vec<_>>();
        assert_eq!(overs(&third.steps[0]), [Some(EntryId(2)); 2]);
        let mut entries = [first, second, third];
        undo(&mut entries[0], OutcomeKind::HandedOver);
        undo(&mut entries[1], OutcomeKind::HandedOver);
        let below = resolved(&entries[2], 0, &entries).step.originals;
        assert_eq!([&below[0].value, &below[1].value], ["0", "20"]);
        // Taken over and not written, it has left both, too.
        entries[1].steps[0].outcome.as_mut().expect("it ran").outcome = OutcomeKind::TakenOver;
        assert_eq!(links(pair((RATIO, "0"), (BYTES, "8192")), &entries[..2]), [None, None], "it is undone");
        entries[1].steps[0].undone = None;
        assert_eq!(links(pair((RATIO, "0"), (BYTES, "8192")), &entries[..2]), [Some(2), Some(2)]);
    }

    /// The hint is refused as long as the governor of the newer one stays: it goes back with that.
    #[test]
    fn another_face_of_what_a_newer_entry_set_goes_back_with_that_one() {
        let first = entry(1, "balance", "performance", &[]);
        let governor = |found: &str, open: &[Entry]| {
            let mut entry = entry(2, "powersave", "performance", &[]);
            let step = &mut entry.steps[0];
            step.place = "/sys/governor".to_owned();
            step.originals[0].place = step.place.clone();
            step.originals.push(Original { coupling: Some(Coupling::Alias), ..original(found) });
            link(&mut step.originals, open);
            entry
        };
        let mut entries = [first.clone(), governor("performance", std::slice::from_ref(&first))];
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), Some(EntryId(2)));
        undo(&mut entries[0], OutcomeKind::HandedOver);
        assert_eq!(resolved(&entries[1], 0, &entries).step.originals[1].value, "balance");
        // Over what somebody had set, it is no doing of the first.
        let entries = [first.clone(), governor("power", std::slice::from_ref(&first))];
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), None);
    }

    #[test]
    fn a_value_set_between_two_entries_is_an_original_of_its_own() {
        let first = entry(1, "60", "10", &[]);
        let second = entry(2, "33", "1", std::slice::from_ref(&first));
        let mut entries = [first, second];
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), None);
        undo(&mut entries[0], OutcomeKind::Theirs);
        assert_eq!(resolved_original(&entries, 1), "33");
    }

    #[test]
    fn the_same_value_over_somebody_elses_is_that_of_the_newer_entry() {
        let first = entry(1, "60", "10", &[]);
        let second = entry(2, "33", "10", std::slice::from_ref(&first));
        let mut entries = [first, second];
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), None, "33 is not what it had found");
        assert_eq!(resolved(&entries[0], 0, &entries).set_since, Some(EntryId(2)));
        assert_eq!(resolved(&entries[1], 0, &entries).set_since, None);
        undo(&mut entries[1], OutcomeKind::Done);
        assert_eq!(resolved(&entries[0], 0, &entries).set_since, None, "it is gone again");
    }

    #[test]
    fn one_that_was_handed_over_to_the_newest_hands_on_what_is_below_it() {
        let first = entry(1, "60", "10", &[]);
        let second = entry(2, "10", "1", std::slice::from_ref(&first));
        let third = entry(3, "1", "10", &[first.clone(), second.clone()]);
        let mut entries = [first, second, third];
        undo(&mut entries[1], OutcomeKind::HandedOver);
        let below = resolved(&entries[0], 0, &entries).step;
        assert_eq!(
            covering(EntryId(1), &below, &entries),
            Some(EntryId(3)),
            "what shows is the third one's 10"
        );
    }

    /// An entry that sets another place, from which the kernel derives this one.
    fn deriving(id: u64, from: &str, derived: &str, open: &[Entry]) -> Entry {
        let mut entry = entry(id, "always", "never", &[]);
        let step = &mut entry.steps[0];
        step.place = "/sys/kernel/mm/transparent_hugepage/enabled".to_owned();
        step.originals[0].place = step.place.clone();
        step.originals.push(Original { coupling: Some(Coupling::Derived), ..original(from) });
        link(&mut step.originals, open);
        let caused = Caused { place: PLACE.to_owned(), value: derived.to_owned() };
        step.outcome.as_mut().expect("it ran").caused.push(caused);
        entry
    }

    #[test]
    fn a_derived_place_is_the_newest_ones_also_where_one_between_was_handed_over() {
        let first = deriving(1, "45000", "67584", &[]);
        let second = entry(2, "67584", "100", std::slice::from_ref(&first));
        let third = entry(3, "100", "200", &[first.clone(), second.clone()]);
        let mut entries = [first, second, third];
        undo(&mut entries[1], OutcomeKind::HandedOver);
        assert_eq!(resolved(&entries[0], 0, &entries).handed_over, [PLACE]);
    }

    #[test]
    fn one_over_what_an_open_entry_derived_is_over_those_below_that_too() {
        let first = entry(1, "45000", "20000", &[]);
        let second = deriving(2, "20000", "67584", std::slice::from_ref(&first));
        let third = entry(3, "67584", "20000", &[first.clone(), second.clone()]);
        let mut entries = [first, second, third];
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), Some(EntryId(3)));
        undo(&mut entries[0], OutcomeKind::HandedOver);
        assert_eq!(resolved_original(&entries, 2), "67584", "the second one is still there");
        undo(&mut entries[1], OutcomeKind::Done);
        assert_eq!(resolved_original(&entries, 2), "45000");
        // What somebody set below the second is no doing of the first.
        let second = deriving(2, "777", "67584", std::slice::from_ref(&entries[0]));
        entries[1] = second;
        assert_eq!(covering(EntryId(1), &entries[0].steps[0], &entries), None);
    }

    #[test]
    fn what_the_kernel_derived_over_an_entry_is_known_by_its_value() {
        let first = entry(1, "45000", "20000", &[]);
        let second = deriving(2, "20000", "67584", std::slice::from_ref(&first));
        let mut entries = [first, second];
        let derived = |entries: &[Entry]| resolved(&entries[0], 0, entries).derived_since;
        assert_eq!(derived(&entries), [(EntryId(2), "67584".to_owned())]);
        // Over what somebody had set it is nothing that was made of ours.
        entries[1] = deriving(2, "777", "67584", std::slice::from_ref(&entries[0]));
        assert!(derived(&entries).is_empty());
    }

    #[test]
    fn a_derived_place_is_that_of_a_newer_entry_also_over_somebody_elses_value() {
        let first = deriving(1, "45000", "67584", &[]);
        let second = entry(2, "777", "67584", std::slice::from_ref(&first));
        assert_eq!(second.steps[0].originals[0].over, None, "777 is no doing of the first");
        let mut entries = [first, second];
        assert_eq!(resolved(&entries[0], 0, &entries).handed_over, [PLACE]);
        // A kill before the outcome: its value may be there already.
        entries[1].steps[0].outcome = None;
        assert_eq!(resolved(&entries[0], 0, &entries).handed_over, [PLACE]);
        undo(&mut entries[1], OutcomeKind::Done);
        assert_eq!(resolved(&entries[0], 0, &entries).handed_over, [""; 0], "it is gone again");
    }

    #[test]
    fn an_entry_that_was_killed_before_its_write_leaves_the_place_to_the_next() {
        let first = entry(1, "60", "1", &[]);
        let mut killed = entry(2, "1", "10", std::slice::from_ref(&first));
        killed.steps[0].outcome = None;
        let third = entry(3, "1", "10", &[first.clone(), killed.clone()]);
        assert_eq!(third.steps[0].originals[0].over, Some(EntryId(1)));
        let entries = [first, killed, third];
        assert_eq!(covering(EntryId(2), &entries[1].steps[0], &entries), Some(EntryId(3)));
    }
}
