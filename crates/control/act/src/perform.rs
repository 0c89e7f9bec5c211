//! One step of a plan: read, compare, write, read back, compare in normal form.

use planish_model::{Caused, Coupling, EntryId, EntryStep, Original, Outcome, OutcomeKind, Part, Undo};

use crate::error::{Refusal, SinkError};
use crate::pool::{self, Recorder};
use crate::sink::Sink;
use crate::stack::Resolved;
use crate::three_way::{self, Whose};

/// Why nobody can say whose a value is.
const UNSEEN: &str = "a kill kept planish from seeing who changed it";

/// Writes a step of an entry whose intent is on disk.
///
/// `earlier` is what the steps before it caused: a place may show that instead of its original, and nothing
/// else. `record` is called before a pool is written. A host that refuses is an outcome, never a panic.
pub fn perform(step: &EntryStep, earlier: &[Caused], sink: &dyn Sink, record: &mut Recorder<'_>) -> Outcome {
    match step.undo {
        Undo::Subtract => pool::raise(step, sink, record),
        Undo::Restore | Undo::None => set(step, earlier, sink),
        Undo::File => panic!("{}: files of ours are written by files::replace", step.place),
        Undo::Edit => panic!("{}: files of others are edited by boot::add", step.place),
        Undo::Moved => panic!("{}: processes are moved by relocate::carry", step.place),
        Undo::Exchanged => panic!("{}: programs are replaced by program::replace", step.place),
    }
}

/// Takes a step back. `force` overwrites theirs, too.
pub fn take_back(resolved: &Resolved, force: bool, sink: &dyn Sink, record: &mut Recorder<'_>) -> Outcome {
    let step = &resolved.step;
    let wrote_nothing = |kind| step.outcome.as_ref().is_some_and(|outcome| outcome.outcome == kind);
    let outcome = |kind| Outcome::new(step.knob.clone(), step.place.clone(), kind);
    match step.undo {
        Undo::Subtract => hand_pages(resolved, 0, force, sink, record).0,
        Undo::None => outcome(OutcomeKind::Satisfied),
        Undo::Restore if wrote_nothing(OutcomeKind::Satisfied) => outcome(OutcomeKind::Satisfied),
        Undo::Restore => restore(resolved, force, sink),
        Undo::File => panic!("{}: files of ours are written by files::replace", step.place),
        Undo::Edit => panic!("{}: files of others are edited by boot::remove", step.place),
        Undo::Moved => panic!("{}: processes are moved by relocate::take_back", step.place),
        Undo::Exchanged => panic!("{}: programs are put back by program::take_back", step.place),
    }
}

/// Takes a step of a pool back for an entry that takes the place of its own and wants so many of its pages: those stay
/// in the pool. Tells how many they are; the others are given back as ever, and are all that the outcome tells.
pub fn hand_pages(
    resolved: &Resolved,
    wanted: u64,
    force: bool,
    sink: &dyn Sink,
    record: &mut Recorder<'_>,
) -> (Outcome, u64) {
    let line = resolved.claim.as_ref().filter(|_| !force);
    pool::lower(&resolved.step, &pool::Claims { kept: wanted, line }, sink, force, record)
}

/// How an error of the host counts.
pub(crate) fn kind_of(error: &SinkError) -> OutcomeKind {
    match error.refusal {
        Refusal::Vanished => OutcomeKind::Vanished,
        _ => OutcomeKind::Failed,
    }
}

fn set(step: &EntryStep, earlier: &[Caused], sink: &dyn Sink) -> Outcome {
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Done);
    let Some(original) = step.original() else {
        outcome.outcome = OutcomeKind::Failed;
        outcome.detail = Some("its original is not in the journal, so it was not written".to_owned());
        return outcome;
    };
    let same = |a: &str, b: &str| original.r#type.same(a, b);
    let now = match sink.read(&step.place) {
        Ok(now) => now,
        Err(error) => return refused(outcome, &error),
    };
    let expected = expected(original, earlier);
    if same(&now, &step.wanted) {
        let is_taken = step.part == Some(Part::TakenOver);
        outcome.outcome = if is_taken { OutcomeKind::TakenOver } else { OutcomeKind::Satisfied };
        outcome.read_back = Some(now);
        return outcome;
    }
    if !same(&original.r#type.as_original(now.clone()), expected) {
        outcome.outcome = OutcomeKind::Failed;
        outcome.detail = Some(format!("someone set it to `{now}` while planish was at work: not written"));
        outcome.read_back = Some(now);
        return outcome;
    }
    let before = coupled_texts(step, sink);
    if let Err(error) = sink.write(&step.place, &step.wanted) {
        outcome.read_back = sink.read(&step.place).ok();
        return refused(outcome, &error);
    }
    match sink.read(&step.place) {
        Ok(read_back) => {
            if let Some(why) = original.r#type.unkept(&step.wanted, &read_back) {
                outcome.outcome = OutcomeKind::Failed;
                outcome.detail =
                    Some(format!("the kernel took `{}` and calls it invalid: {why}", step.wanted));
            } else if !same(&read_back, &step.wanted) {
                outcome.outcome = OutcomeKind::ReadsBack;
                outcome.detail = Some(format!("`{}` was written", step.wanted));
            }
            outcome.read_back = Some(read_back);
        }
        Err(error) => outcome = refused(outcome, &error),
    }
    outcome.caused = caused(&before, sink);
    outcome
}

/// What a place must show before a step writes it: its original, or what an earlier step made of it.
fn expected<'a>(original: &'a Original, earlier: &'a [Caused]) -> &'a str {
    let changed = earlier.iter().rev().find(|caused| caused.place == original.place);
    changed.map_or(original.value.as_str(), |caused| caused.value.as_str())
}

/// The texts of the coupled places that can be read.
fn coupled_texts<'a>(step: &'a EntryStep, sink: &dyn Sink) -> Vec<(&'a Original, String)> {
    step.coupled().filter_map(|other| Some((other, sink.read(&other.place).ok()?))).collect()
}

/// The coupled places that no longer show the same.
fn caused(before: &[(&Original, String)], sink: &dyn Sink) -> Vec<Caused> {
    let changed = |(other, before): &(&Original, String)| {
        let value = sink.read(&other.place).ok()?;
        let same = other.r#type.same(&value, before);
        (!same).then(|| Caused { place: other.place.clone(), value })
    };
    before.iter().filter_map(changed).collect()
}

fn refused(mut outcome: Outcome, error: &SinkError) -> Outcome {
    outcome.outcome = kind_of(error);
    outcome.detail = Some(error.in_full());
    outcome
}

/// Leaves a step to the newer open entry that covers it (see [`crate::stack::covering`]): nothing is written.
///
/// A coupled place goes with it where that entry took it over. Where a kill kept us from seeing what our write had made
/// of one, nobody knows: it is told, and `force` puts it back once the newer entry is gone.
pub fn hand_over(resolved: &Resolved, newer: EntryId, sink: &dyn Sink) -> Outcome {
    let Resolved { step, inherited, handed_over, .. } = resolved;
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::HandedOver);
    outcome.detail = Some(format!("entry {newer} set it since: undoing that one brings the original back"));
    for (other, text) in coupled_texts(step, sink) {
        let is_left = !handed_over.contains(&other.place);
        if is_left && three_way::coupled(step, inherited, other, &text) == Whose::Unclear {
            tell(&mut outcome, other, &text, UNSEEN);
        }
    }
    outcome
}

/// The coupled places of a step, each with what it shows and whose that is.
fn others_of<'a>(resolved: &'a Resolved, sink: &dyn Sink) -> Vec<(&'a Original, String, Whose)> {
    let Resolved { step, inherited, handed_over, .. } = resolved;
    let whose_of = |other: &Original, text: &str| match handed_over.contains(&other.place) {
        true => Whose::Newer,
        false => three_way::coupled(step, inherited, other, text),
    };
    let others = coupled_texts(step, sink).into_iter().map(|(other, text)| {
        let whose = whose_of(other, &text);
        (other, text, whose)
    });
    others.collect()
}

/// Puts the original back, if the place still shows what is ours.
fn restore(resolved: &Resolved, force: bool, sink: &dyn Sink) -> Outcome {
    let Resolved { step, inherited, handed_over, set_since, derived_since, unborne, claim: _ } = resolved;
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Done);
    let Some(original) = step.original() else {
        outcome.outcome = OutcomeKind::Satisfied;
        return outcome;
    };
    let now = match sink.read(&step.place) {
        Ok(now) => now,
        Err(error) => return refused(outcome, &error),
    };
    let others = others_of(resolved, sink);
    let derived = derived_since.iter().find(|(_, value)| original.r#type.same(&now, value));
    let whose = match three_way::own(step, inherited, original, &now) {
        Whose::Ours if set_since.is_some() => Whose::Theirs,
        Whose::Theirs if derived.is_some() => Whose::Newer,
        whose => whose,
    };
    if whose == Whose::Theirs && !force {
        outcome.outcome = OutcomeKind::Theirs;
        let before = format!("ours was `{}`, before it `{}`", step.ours(), original.value);
        outcome.detail = Some(match set_since {
            Some(newer) => format!("someone set it since, and entry {newer} set it over that: {before}"),
            None => format!("someone set it since: {before}"),
        });
        outcome.read_back = Some(now);
        return outcome;
    }
    if let Some((newer, _)) = derived.filter(|_| whose == Whose::Newer) {
        outcome.outcome = OutcomeKind::HandedOver;
        outcome.detail = Some(format!(
            "the kernel derived it from what entry {newer} set since: undoing that one brings the original back"
        ));
    }
    let due =
        |whose: Whose| whose == Whose::Ours || (force && !matches!(whose, Whose::Original | Whose::Newer));
    let is_twin = |other: &Original| other.coupling == Some(Coupling::Twin);
    outcome.read_back = Some(now);
    let is_due = due(whose) || others.iter().any(|(_, _, whose)| due(*whose));
    if let Some(why) = unborne.as_ref().filter(|_| is_due && !force) {
        outcome.outcome = OutcomeKind::InUse;
        outcome.detail = Some(format!("`{}` was not written back: {why}", original.value.trim()));
        return outcome;
    }
    if due(whose) || others.iter().any(|(other, _, whose)| is_twin(other) && due(*whose)) {
        if !write_back(step, original, sink, &mut outcome) {
            return outcome;
        }
    } else if !others.iter().any(|(_, _, whose)| due(*whose)) {
        if whose != Whose::Newer {
            outcome.outcome = OutcomeKind::Satisfied;
        }
        keep_theirs(&mut outcome, step, &others);
        return outcome;
    }
    settle_others(&mut outcome, step, &others, force, sink);
    let came_back = |original: &&Original| {
        original.coupling == Some(Coupling::Derived)
            && !handed_over.contains(&original.place)
            && !others.iter().any(|(other, ..)| other.place == original.place)
    };
    step.coupled().filter(came_back).for_each(|original| settle_new(&mut outcome, original, sink));
    outcome
}

/// Sets a derived place that our write had taken away, and that is there again with the value of a new one: a queue of
/// a card. Nobody can have set it meanwhile.
fn settle_new(outcome: &mut Outcome, original: &Original, sink: &dyn Sink) {
    let Ok(now) = sink.read(&original.place) else { return };
    if original.r#type.same(&now, &original.value) {
        return;
    }
    if let Err(error) = sink.write(&original.place, &original.r#type.written(&original.value)) {
        tell(outcome, original, &now, &error.in_full());
    }
}

/// Writes the original, or its live twin, and reads it back; false when it did not come back.
fn write_back(step: &EntryStep, original: &Original, sink: &dyn Sink, outcome: &mut Outcome) -> bool {
    let live = three_way::live_one(step, original);
    let written = sink.write(&live.place, &live.r#type.written(&live.value));
    outcome.read_back = sink.read(&step.place).ok();
    let is_back = |text: &String| original.r#type.same(text, &original.value);
    if let Err(error) = written {
        outcome.outcome = kind_of(&error);
        outcome.detail = Some(error.in_full());
    } else if !outcome.read_back.as_ref().is_some_and(is_back) {
        outcome.outcome = OutcomeKind::Failed;
        outcome.detail = Some(format!("`{}` was written back and did not stay", original.value));
    } else {
        return true;
    }
    false
}

/// After a step is back: sets back what its write had changed elsewhere, and what going back changed again.
fn settle_others(
    outcome: &mut Outcome,
    step: &EntryStep,
    others: &[(&Original, String, Whose)],
    force: bool,
    sink: &dyn Sink,
) {
    let mut refused = Vec::new();
    for (other, before, whose) in others {
        let Ok(after) = sink.read(&other.place) else { continue };
        let target = match whose {
            Whose::Newer => before.as_str(),
            Whose::Theirs if !force => before.as_str(),
            _ => other.value.as_str(),
        };
        if other.r#type.same(&after, target) {
            continue;
        }
        if *whose == Whose::Unclear && !force {
            tell(outcome, other, &after, UNSEEN);
        } else if other.coupling == Some(Coupling::Twin) {
            tell(outcome, other, &after, "its twin is set");
        } else if let Err(error) = sink.write(&other.place, &other.r#type.written(target)) {
            let why = match whose {
                Whose::Newer | Whose::Theirs => format!(
                    "`{}`, which was set there since, is refused beside what went back: {}",
                    target.trim(),
                    error.in_full()
                ),
                _ => error.in_full(),
            };
            match whose {
                // What went back is back: it is the newer one's that is lost, which is told with that.
                Whose::Newer => note(outcome, format!("{} is `{}`: {why}", other.place, after.trim())),
                _ => tell(outcome, other, &after, &why),
            }
            refused.push(&other.place);
        }
    }
    if !force {
        keep_theirs(outcome, step, others.iter().filter(|(other, ..)| !refused.contains(&&other.place)));
    }
}

/// Tells places that our write had changed and that someone else has set since.
fn keep_theirs<'a>(
    outcome: &mut Outcome,
    step: &EntryStep,
    others: impl IntoIterator<Item = &'a (&'a Original, String, Whose)>,
) {
    let ours_once = |place: &str| {
        step.outcome.as_ref().is_some_and(|outcome| outcome.caused.iter().any(|caused| caused.place == place))
    };
    for (other, text, whose) in others {
        if *whose == Whose::Theirs && ours_once(&other.place) {
            tell(outcome, other, text, "someone set it since, theirs was kept");
        }
    }
}

/// A coupled place that is not as it was: the outcome is no longer clean.
fn tell(outcome: &mut Outcome, other: &Original, now: &str, why: &str) {
    outcome.outcome = OutcomeKind::Theirs;
    note(outcome, format!("{} is `{now}` and was `{}`: {why}", other.place, other.value));
}

fn note(outcome: &mut Outcome, remark: String) {
    outcome.detail = Some(match outcome.detail.take() {
        Some(detail) => format!("{detail}; {remark}"),
        None => remark,
    });
}

#[cfg(test)]
mod tests {
    use planish_model::Undo;
    use rustix::io::Errno;

    use super::*;
    use crate::testing::{Kernel, original, pool_step, step};

    const BYTES: &str = "/proc/sys/vm/dirty_bytes";
    const RATIO: &str = "/proc/sys/vm/dirty_ratio";
    const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const MIN_FREE: &str = "/proc/sys/vm/min_free_kbytes";

    fn apply(step: &EntryStep, kernel: &Kernel) -> EntryStep {
        let outcome = perform(step, &[], kernel, &mut |_| Ok(()));
        EntryStep { outcome: Some(outcome), ..step.clone() }
    }

    fn undo(step: &EntryStep, kernel: &Kernel) -> Outcome {
        undo_with(step, false, kernel)
    }

    fn undo_with(step: &EntryStep, force: bool, kernel: &Kernel) -> Outcome {
        let resolved = Resolved {
            step: step.clone(),
            inherited: Vec::new(),
            handed_over: Vec::new(),
            set_since: None,
            derived_since: Vec::new(),
            unborne: None,
            claim: None,
        };
        take_back(&resolved, force, kernel, &mut |_| Ok(()))
    }

    fn kind(step: &EntryStep) -> OutcomeKind {
        step.outcome.as_ref().expect("it ran").outcome
    }

    /// `dirty_bytes` and `dirty_ratio`: setting one clears the other.
    fn twins() -> (Kernel, EntryStep) {
        let mut kernel = Kernel::new(&[(BYTES, "0"), (RATIO, "20")]);
        kernel.also = vec![(BYTES, RATIO, "0"), (RATIO, BYTES, "0")];
        let mut twins = step(BYTES, "0", "4096");
        twins.originals.push(original(RATIO, "20", Some(Coupling::Twin)));
        (kernel, twins)
    }

    /// Writing THP makes the kernel compute `min_free_kbytes` anew.
    fn derived() -> (Kernel, EntryStep) {
        let mut kernel = Kernel::new(&[(THP, "0"), (MIN_FREE, "100")]);
        kernel.also = vec![(THP, MIN_FREE, "300")];
        let mut derived = step(THP, "0", "1");
        derived.originals.push(original(MIN_FREE, "100", Some(Coupling::Derived)));
        (kernel, derived)
    }

    #[test]
    fn a_step_is_done_and_taken_back() {
        let kernel = Kernel::new(&[(MIN_FREE, "100")]);
        let done = apply(&step(MIN_FREE, "100", "200"), &kernel);
        assert_eq!((kind(&done), kernel.get(MIN_FREE).as_str()), (OutcomeKind::Done, "200"));
        assert_eq!(undo(&done, &kernel).outcome, OutcomeKind::Done);
        assert_eq!(kernel.get(MIN_FREE), "100");
        assert_eq!(undo(&done, &kernel).outcome, OutcomeKind::Satisfied);
        assert_eq!(kernel.writes.borrow().len(), 2);
    }

    #[test]
    fn a_value_that_moved_since_the_intent_is_not_written() {
        let kernel = Kernel::new(&[(MIN_FREE, "150")]);
        let outcome = perform(&step(MIN_FREE, "100", "200"), &[], &kernel, &mut |_| Ok(()));
        assert_eq!(outcome.outcome, OutcomeKind::Failed);
        assert!(outcome.detail.expect("why").contains("someone set it to `150`"));
        assert!(kernel.writes.borrow().is_empty());
    }

    #[test]
    fn what_an_earlier_step_caused_is_no_stranger() {
        let kernel = Kernel::new(&[(MIN_FREE, "300")]);
        let earlier = [Caused { place: MIN_FREE.to_owned(), value: "300".to_owned() }];
        let outcome = perform(&step(MIN_FREE, "100", "200"), &earlier, &kernel, &mut |_| Ok(()));
        assert_eq!(outcome.outcome, OutcomeKind::Done);
    }

    #[test]
    fn an_outside_edit_is_kept_and_told() {
        let kernel = Kernel::new(&[(MIN_FREE, "100")]);
        let done = apply(&step(MIN_FREE, "100", "200"), &kernel);
        kernel.put(MIN_FREE, "999");
        let outcome = undo(&done, &kernel);
        assert_eq!((outcome.outcome, kernel.get(MIN_FREE).as_str()), (OutcomeKind::Theirs, "999"));
        let forced = undo_with(&done, true, &kernel);
        assert_eq!((forced.outcome, kernel.get(MIN_FREE).as_str()), (OutcomeKind::Done, "100"));
    }

    #[test]
    fn a_value_that_was_there_already_is_not_taken_back() {
        let kernel = Kernel::new(&[(MIN_FREE, "200")]);
        let satisfied = apply(&step(MIN_FREE, "100", "200"), &kernel);
        assert_eq!(kind(&satisfied), OutcomeKind::Satisfied);
        assert_eq!(undo(&satisfied, &kernel).outcome, OutcomeKind::Satisfied);
        assert_eq!(kernel.get(MIN_FREE), "200");
    }

    #[test]
    fn the_live_twin_is_written_back() {
        let (kernel, twins) = twins();
        let done = apply(&twins, &kernel);
        assert_eq!(done.outcome.as_ref().expect("it ran").caused[0].value, "0");
        assert_eq!(undo(&done, &kernel).outcome, OutcomeKind::Done);
        assert_eq!((kernel.get(BYTES).as_str(), kernel.get(RATIO).as_str()), ("0", "20"));
        assert_eq!(*kernel.writes.borrow().last().expect("two"), (RATIO.to_owned(), "20".to_owned()));
    }

    #[test]
    fn a_twin_that_someone_set_since_is_theirs() {
        let (kernel, twins) = twins();
        let done = apply(&twins, &kernel);
        kernel.write(RATIO, "15").expect("an administrator may");
        let outcome = undo(&done, &kernel);
        assert_eq!((outcome.outcome, kernel.get(RATIO).as_str()), (OutcomeKind::Theirs, "15"));
    }

    #[test]
    fn the_live_twin_comes_back_after_a_kill_as_well() {
        let (kernel, twins) = twins();
        kernel.write(BYTES, "4096").expect("the write that was killed after");
        assert_eq!(undo(&twins, &kernel).outcome, OutcomeKind::Done);
        assert_eq!((kernel.get(BYTES).as_str(), kernel.get(RATIO).as_str()), ("0", "20"));
    }

    #[test]
    fn a_derived_value_goes_back_last() {
        let (kernel, derived) = derived();
        let done = apply(&derived, &kernel);
        assert_eq!(kernel.get(MIN_FREE), "300");
        assert_eq!(undo(&done, &kernel).outcome, OutcomeKind::Done);
        assert_eq!(kernel.get(MIN_FREE), "100", "although going back derived it once more");
    }

    #[test]
    fn a_derived_value_that_someone_set_since_survives_the_kernel_too() {
        let (kernel, derived) = derived();
        let done = apply(&derived, &kernel);
        kernel.put(MIN_FREE, "777");
        let outcome = undo(&done, &kernel);
        assert_eq!((kernel.get(THP).as_str(), kernel.get(MIN_FREE).as_str()), ("0", "777"));
        assert_eq!(outcome.outcome, OutcomeKind::Theirs);
        assert!(outcome.detail.expect("why").contains("is `777` and was `100`"));
    }

    #[test]
    fn a_derived_value_that_a_newer_entry_set_stays_and_is_nobodys_fault() {
        for force in [false, true] {
            let (kernel, derived) = derived();
            let done = apply(&derived, &kernel);
            kernel.put(MIN_FREE, "777");
            let handed_over = vec![MIN_FREE.to_owned()];
            let (inherited, derived_since) = (Vec::new(), Vec::new());
            let (set_since, unborne) = (None, None);
            let resolved = Resolved {
                step: done,
                inherited,
                handed_over,
                set_since,
                derived_since,
                unborne,
                claim: None,
            };
            let outcome = take_back(&resolved, force, &kernel, &mut |_| Ok(()));
            assert_eq!((kernel.get(THP).as_str(), kernel.get(MIN_FREE).as_str()), ("0", "777"));
            assert_eq!((outcome.outcome, outcome.detail), (OutcomeKind::Done, None));
        }
    }

    #[test]
    fn what_the_host_would_not_bear_is_left_unless_somebody_else_has_it_or_it_is_forced() {
        let begun = || {
            let (kernel, twins) = twins();
            let step = apply(&twins, &kernel);
            let unborne = Some("too little".to_owned());
            let resolved = Resolved {
                step,
                inherited: Vec::new(),
                handed_over: Vec::new(),
                set_since: None,
                derived_since: Vec::new(),
                unborne,
                claim: None,
            };
            (kernel, resolved)
        };
        let back = |kernel: &Kernel, resolved: &Resolved, force| {
            take_back(resolved, force, kernel, &mut |_| Ok(())).outcome
        };
        let (kernel, resolved) = begun();
        let ours = kernel.get(BYTES);
        assert_eq!(back(&kernel, &resolved, false), OutcomeKind::InUse);
        assert_eq!((kernel.get(BYTES), kernel.get(RATIO)), (ours, "0".to_owned()));
        assert_eq!(back(&kernel, &resolved, true), OutcomeKind::Done);
        assert_eq!(kernel.get(RATIO), "20");
        assert_eq!(back(&kernel, &resolved, false), OutcomeKind::Satisfied, "it is back already");
        let (kernel, resolved) = begun();
        kernel.put(BYTES, "4711");
        assert_eq!(back(&kernel, &resolved, false), OutcomeKind::Theirs);
    }

    #[test]
    fn a_queue_that_went_and_comes_back_gets_what_was_set_for_it() {
        let (channels, rps) =
            ("/planish/ethtool/eth1/channels_rx", "/sys/class/net/eth1/queues/rx-1/rps_cpus");
        let mut kernel = Kernel::new(&[(channels, "2"), (rps, "f")]);
        let mut fewer = step(channels, "2", "1");
        fewer.originals.push(original(rps, "f", Some(Coupling::Derived)));
        let done = apply(&fewer, &kernel);
        kernel.places.borrow_mut().remove(rps);
        kernel.also = vec![(channels, rps, "0")];
        let outcome = undo(&done, &kernel);
        assert_eq!((kernel.get(channels).as_str(), kernel.get(rps).as_str()), ("2", "f"));
        assert_eq!((outcome.outcome, outcome.detail), (OutcomeKind::Done, None));
    }

    #[test]
    fn a_derived_value_after_a_kill_is_named() {
        let (kernel, derived) = derived();
        kernel.write(THP, "1").expect("the write that was killed after");
        let outcome = undo(&derived, &kernel);
        assert_eq!(kernel.get(THP), "0");
        assert_eq!(outcome.outcome, OutcomeKind::Theirs);
        assert!(outcome.detail.expect("why").contains("min_free_kbytes is `300` and was `100`"));
    }

    #[test]
    fn a_refusal_is_an_outcome_with_its_reason() {
        let mut kernel = Kernel::new(&[(MIN_FREE, "100")]);
        kernel.refuses.insert(MIN_FREE, Errno::IO);
        let failed = apply(&step(MIN_FREE, "100", "200"), &kernel);
        assert_eq!(kind(&failed), OutcomeKind::Failed);
        let outcome = failed.outcome.as_ref().expect("it ran");
        assert!(outcome.detail.as_deref().expect("why").contains("the device refuses"), "{outcome:?}");
        assert_eq!(undo(&failed, &kernel).outcome, OutcomeKind::Satisfied);
        let gone = apply(&step("/proc/sys/vm/gone", "1", "2"), &kernel);
        assert_eq!(kind(&gone), OutcomeKind::Vanished);
    }

    #[test]
    fn a_pool_that_needs_nothing_is_left_alone() {
        let place = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        let kernel = Kernel::new(&[(place, "3")]);
        let step = EntryStep { undo: Undo::Subtract, ..pool_step(place, 3, 2) };
        assert_eq!(undo(&step, &kernel).outcome, OutcomeKind::Satisfied);
        assert!(kernel.writes.borrow().is_empty());
    }
}
