//! A kill before, in and after every operation of the journal and every write to the host; then undo.
//!
//! After each kill the host must come back byte for byte, or undo must name each place where it did not; what it
//! names must come back with `--force`. Nothing of the pipeline runs after a kill: see [`crate::faults`].

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;

use planish_model::{Entry, EntryId, EntryState, EntryStep, Exit, KnobId, Nodes, Outcome, Want};
use planish_pipeline::{
    ApplyOptions, PlanOptions, Session, Source, Target, apply, confirm, do_once, plan, take_unconfirmed, undo,
};

use crate::faults::{Fuse, MOMENTS, Moment, fused, until_killed};
use crate::tree::*;

/// What is killed.
pub type Scene = dyn Fn(&Session);

fn apply_everything(session: &Session) {
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let plan = plan_of(session, &everything());
    apply(session, &plan, &options).expect("the host takes it");
}

fn second() -> Source {
    profile(
        "second",
        &[
            ("vm.swappiness", Want::Int(1)),
            ("vm.dirty_ratio", Want::Int(5)),
            ("thp.enabled", Want::Text("never".to_owned())),
            ("hugepages.2m", Want::Need { need_bytes: 8 << 20, nodes: Nodes::Each(vec![1]) }),
        ],
    )
}

pub fn undo_everything(session: &Session) {
    undo(session, Target::All, false).expect("undone");
}

/// What came of many kills.
#[derive(Debug, Default)]
pub struct Tally {
    kills: usize,
    /// Left a derived value that nobody had time to look at: `min_free_kbytes` after THP.
    derived: usize,
    /// Left a pool whose grant was cut short.
    pools: usize,
}

impl Tally {
    fn count(&mut self, left: &[String]) {
        self.kills += 1;
        self.derived += usize::from(left.iter().any(|place| place == MIN_FREE));
        self.pools += usize::from(left.iter().any(|place| place.contains("/hugepages-")));
    }
}

/// Kills a scene at every operation, each time on a fresh host that `prepare` was run on.
pub fn kill_everywhere(make: &dyn Fn() -> Tree, prepare: &Scene, scene: &Scene) -> Tally {
    let prepared = || {
        let tree = make();
        let start = tree.snapshot();
        prepare(&tree.session());
        (tree, start)
    };
    kill_the_first(usize::MAX, &prepared, scene)
}

/// A host that something was done to, and its files before that.
type Prepared<'a> = dyn Fn() -> (Tree, BTreeMap<String, String>) + 'a;

/// Kills a scene at each of its first operations, each time on a fresh host.
fn kill_the_first(operations: usize, prepared: &Prepared<'_>, scene: &Scene) -> Tally {
    let counter = Fuse::counting();
    let (tree, _) = prepared();
    scene(&fused(tree.options(), &counter));
    let mut tally = Tally::default();
    for (operation, moment) in counter.kills().into_iter().filter(|(at, _)| *at < operations) {
        let (tree, start) = prepared();
        let session = fused(tree.options(), &Fuse::at(operation, moment));
        let ended = until_killed(|| scene(&session));
        assert!(ended.is_none(), "operation {operation} of {} was never reached", counter.operations());
        drop(session);
        let left = come_back(&tree, &start, &format!("killed {moment:?} operation {operation}"));
        tally.count(&left);
    }
    tally
}

/// Undoes everything and compares with the start; returns the differences that undo named.
fn come_back(tree: &Tree, start: &BTreeMap<String, String>, when: &str) -> Vec<String> {
    let undone = undo(&tree.session(), Target::All, false).unwrap_or_else(|error| panic!("{when}: {error}"));
    let left = differences(start, &tree.snapshot());
    let outcomes: Vec<Outcome> = tree
        .entries()
        .into_iter()
        .flat_map(|entry| entry.steps.into_iter().filter_map(|step| step.undone))
        .collect();
    for place in &left {
        let same_pool = |outcome: &Outcome| is_same_pool(place, &outcome.place);
        let names = |outcome: &&Outcome| {
            outcome.place == *place
                || same_pool(outcome)
                || outcome.detail.as_ref().is_some_and(|detail| detail.contains(place))
        };
        let named = outcomes.iter().any(|outcome| outcome.detail.is_some() && names(&outcome));
        assert!(named, "{when}: {place} is `{}` and nobody says so: {outcomes:#?}", tree.get(place));
        assert_eq!(undone.exit, Exit::Findings, "{when}: a difference is a finding");
    }
    for entry in tree.entries().iter().rev() {
        assert!(!entry.is_open(), "{when}: entry {} is still open", entry.id);
        if !left.is_empty() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
    }
    assert_eq!(differences(start, &tree.snapshot()), [""; 0], "{when}: what was named comes back by force");
    left
}

/// Whether a file shows the pool that an outcome is of: the files of a pool show one state, and those of the whole host
/// are the sums of its nodes.
fn is_same_pool(file: &str, pool: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default();
    let size = |path: &str| folder(path).rsplit_once("/hugepages-").map(|(_, size)| size.to_owned());
    let of_host = file.starts_with("/sys/kernel/mm/hugepages/");
    size(file).is_some() && size(file) == size(pool) && (of_host || folder(file) == folder(pool))
}

/// A kill of an apply leaves a difference in two places only: after a write that derives a value and before the
/// look at it, and in a pool that is granted in pieces (5 pages a write, for 8).
fn assert_rare(tally: &Tally) {
    assert!(tally.kills >= 20 && tally.derived <= 2 && tally.pools <= 12, "{tally:?}");
}

/// A kill of an undo leaves none.
fn assert_none(tally: &Tally) {
    assert!(tally.kills >= 20 && tally.derived == 0 && tally.pools == 0, "{tally:?}");
}

/// A kill of what writes no derived value and no pool leaves nothing.
pub fn assert_clean(tally: &Tally) {
    assert!(tally.kills >= 12 && tally.derived == 0 && tally.pools == 0, "{tally:?}");
}

#[test]
fn an_apply_that_is_killed_anywhere_comes_back() {
    let tally = kill_everywhere(&Tree::new, &|_| {}, &apply_everything);
    assert_rare(&tally);
}

#[test]
fn an_undo_that_is_killed_anywhere_comes_back() {
    let tally = kill_everywhere(&Tree::new, &apply_everything, &undo_everything);
    assert_none(&tally);
}

/// Files that somebody else has changed, too, since arguments were put in: what a kill leaves of an undo is ours still.
#[test]
fn an_undo_of_files_that_others_edited_too_is_finished_wherever_the_kill_comes() {
    const ENTRY: &str = crate::boot::ENTRY;
    const DEFAULTS: &str = crate::boot::DEFAULTS;
    const OWN: &str = "/etc/default/grub.d/90-planish.cfg";
    let edited = [
        (crate::boot::rocky as fn() -> Tree, ENTRY, "title R", "title Renamed"),
        (crate::boot::suse, DEFAULTS, "GRUB_", "# theirs\nGRUB_"),
        (crate::boot::debian, OWN, "GRUB_", "# theirs\nGRUB_"),
    ];
    for (make, path, from, to) in edited {
        let prepared = || {
            let tree = make();
            let start = tree.snapshot();
            crate::boot::persist(&tree, &crate::boot::wants());
            tree.put(path, &tree.get(path).replacen(from, to, 1));
            (tree, start)
        };
        let counter = Fuse::counting();
        let (tree, start) = prepared();
        undo_everything(&fused(tree.options(), &counter));
        let after = tree.snapshot();
        assert!(differences(&start, &after).contains(&path.to_owned()), "their line stays in {path}");
        for (operation, moment) in counter.kills() {
            let (tree, _) = prepared();
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            assert!(until_killed(|| undo_everything(&session)).is_none());
            drop(session);
            let when = format!("{path}, killed {moment:?} operation {operation}");
            let undone = undo(&tree.session(), Target::All, false).expect("undone");
            assert_eq!(differences(&after, &tree.snapshot()), [""; 0], "{when}");
            let theirs = |step: &EntryStep| step.place == path && step.left_theirs();
            let entries = tree.entries();
            let left = entries.iter().flat_map(|entry| &entry.steps).find(|step| theirs(step));
            assert!(left.is_none() || path == OWN, "{when}: {left:?} {:?}", undone.hints);
        }
    }
}

#[test]
fn folders_that_were_made_go_too_wherever_the_kill_comes() {
    let tally = kill_everywhere(&Tree::without_folders, &|_| {}, &apply_everything);
    assert_rare(&tally);
    let tally = kill_everywhere(&Tree::without_folders, &apply_everything, &undo_everything);
    assert_none(&tally);
}

/// An open entry, and a journal so long that the next writer archives it.
fn apply_everything_and_talk(session: &Session) {
    apply_everything(session);
    let long = ApplyOptions { reason: Some("x".repeat(300 << 10)), ..ApplyOptions::default() };
    apply(session, &plan_of(session, &second()), &long).expect("the host takes it");
    undo(session, Target::Newest, false).expect("undone");
}

#[test]
fn an_undo_that_is_killed_around_its_archiving_comes_back() {
    let tree = Tree::new();
    apply_everything_and_talk(&tree.session());
    let kept = tree.root().join("var/lib/planish/journal-000002.jsonl");
    assert!(!kept.exists());
    undo_everything(&tree.session());
    assert!(kept.exists(), "the undo began with the archive");
    // The archive is the first thing that a writer does; what follows is as with any other journal.
    let prepared = || {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_everything_and_talk(&tree.session());
        (tree, start)
    };
    let tally = kill_the_first(ARCHIVING + 1, &prepared, &undo_everything);
    // Its first operation has a half, and so has the line behind it.
    assert!(tally.kills == ARCHIVING + 4 && tally.derived + tally.pools == 0, "{tally:?}");
}

/// Operations of an archiving: see [`crate::faults`].
const ARCHIVING: usize = 3;

/// The first operation of whoever comes after a kill is to cut what that kill tore.
#[test]
fn an_undo_that_is_killed_around_the_cut_of_a_torn_tail_comes_back() {
    let torn = b"{\"crc\":\"0123".as_slice();
    let journal = |tree: &Tree| tree.root().join("var/lib/planish/journal.jsonl");
    let prepared = || {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_everything(&tree.session());
        let mut file = std::fs::OpenOptions::new().append(true).open(journal(&tree)).expect("ours");
        file.write_all(torn).expect("room");
        (tree, start)
    };
    let tally = kill_the_first(2, &prepared, &undo_everything);
    assert!(tally.kills == 5 && tally.derived + tally.pools == 0, "{tally:?}");
    // Whatever the kill did to the cut, the torn bytes are kept.
    for moment in MOMENTS {
        let (tree, _) = prepared();
        let at = std::fs::metadata(journal(&tree)).expect("there").len() - torn.len() as u64;
        let session = fused(tree.options(), &Fuse::at(0, moment));
        assert!(until_killed(|| undo_everything(&session)).is_none());
        drop(session);
        undo_everything(&tree.session());
        let kept = tree.get(&format!("/var/lib/planish/journal.torn-{at}"));
        assert_eq!(kept.as_bytes(), torn, "killed {moment:?} it");
    }
}

/// A kill in the middle of a pool's write, and another one of whoever counts its pages.
#[test]
fn pages_that_are_being_counted_after_a_kill_are_counted_after_the_next_one() {
    let counter = Fuse::counting();
    apply_everything(&fused(Tree::new().options(), &counter));
    let second = |session: &Session| {
        let plan = plan_of(session, &second());
        apply(session, &plan, &ApplyOptions::default()).expect("the host takes it");
    };
    let scenes: [&Scene; 2] = [&undo_everything, &second];
    let mut begun = 0;
    for operation in 0..counter.operations() {
        let prepared = || {
            let tree = Tree::new();
            let start = tree.snapshot();
            let session = fused(tree.options(), &Fuse::at(operation, Moment::After));
            assert!(until_killed(|| apply_everything(&session)).is_none());
            drop(session);
            (tree, start)
        };
        let entries = prepared().0.entries();
        if !entries.iter().flat_map(|entry| &entry.steps).any(|step| step.begun.is_some()) {
            continue;
        }
        begun += 1;
        // The line of the count, and what comes after it.
        for scene in scenes {
            let kills = kill_the_first(2, &prepared, scene).kills;
            assert!((4..=5).contains(&kills), "{kills} after operation {operation}");
        }
    }
    assert!(begun >= 4, "only {begun} kills came while a pool was being written");
}

#[test]
fn a_second_apply_over_a_first_that_is_killed_anywhere_comes_back() {
    let over = |session: &Session| {
        let plan = plan_of(session, &second());
        apply(session, &plan, &ApplyOptions::default()).expect("the host takes it");
    };
    let tally = kill_everywhere(&Tree::new, &apply_everything, &over);
    assert_rare(&tally);
}

/// The second in the place of the first: of a pool it takes some pages over, and the others go.
fn take_place(session: &Session, options: &ApplyOptions) {
    let wanted = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
    let plan = plan(session, &second(), &wanted).expect("a plan");
    apply(session, &plan, options).expect("the host takes it");
}

#[test]
fn a_transition_that_is_killed_anywhere_comes_back() {
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    for options in [ApplyOptions::default(), persist] {
        let scene = move |session: &Session| take_place(session, &options);
        let tally = kill_everywhere(&Tree::new, &apply_everything, &scene);
        assert!(tally.kills >= 40 && tally.derived <= 4 && tally.pools <= 12, "{tally:?}");
    }
}

#[test]
fn a_confirm_of_a_transition_that_is_killed_anywhere_comes_back() {
    let prepared = || {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_everything(&tree.session());
        let on_trial = ApplyOptions { confirm_seconds: Some(3600), persist: true, ..ApplyOptions::default() };
        take_place(&crate::watch::without_watcher(&tree), &on_trial);
        (tree, start)
    };
    let scene = |session: &Session| drop(confirm(session).expect("confirmed"));
    let tally = kill_the_first(usize::MAX, &prepared, &scene);
    assert!(tally.kills >= 20 && tally.derived == 0 && tally.pools <= 3, "{tally:?}");
}

#[test]
fn an_undo_after_a_transition_that_is_killed_anywhere_comes_back() {
    let both = |session: &Session| {
        apply_everything(session);
        take_place(session, &ApplyOptions { persist: true, ..ApplyOptions::default() });
    };
    assert_none(&kill_everywhere(&Tree::new, &both, &undo_everything));
}

#[test]
fn an_undo_of_two_that_is_killed_anywhere_comes_back() {
    let both = |session: &Session| {
        apply_everything(session);
        let plan = plan_of(session, &second());
        apply(session, &plan, &ApplyOptions::default()).expect("the host takes it");
    };
    for first in [None, Some(1)] {
        let undo_both = move |session: &Session| {
            if let Some(id) = first {
                undo(session, Target::Entry(EntryId(id)), false).expect("undone");
            }
            undo_everything(session);
        };
        let tally = kill_everywhere(&Tree::new, &both, &undo_both);
        assert_none(&tally);
    }
}

#[test]
fn a_put_back_that_is_killed_anywhere_comes_back() {
    let failing = || Tree::answering(&format!("[[answer]]\nplace = \"{ZONE_RECLAIM}\"\nerrno = \"EIO\"\n"));
    let scene = |session: &Session| {
        let plan = plan_of(session, &everything());
        let applied = apply(session, &plan, &ApplyOptions::default()).expect("a failed step is no error");
        assert_eq!(applied.exit, Exit::FailedRestored);
    };
    let tally = kill_everywhere(&failing, &|_| {}, &scene);
    assert_rare(&tally);
}

#[test]
fn an_action_that_is_killed_anywhere_leaves_an_entry_that_closes() {
    let act = |session: &Session| {
        do_once(session, &KnobId::new("vm.compact_memory"), "1", None).expect("the model takes it");
    };
    let tally = kill_everywhere(&Tree::new, &apply_everything, &act);
    assert!(tally.kills >= 5 && tally.derived == 0 && tally.pools == 0, "{tally:?}");
}

#[test]
fn a_confirm_that_is_killed_anywhere_comes_back() {
    let counter = Fuse::counting();
    let tree = waiting();
    confirm(&fused(tree.options(), &counter)).expect("confirmed");
    for (operation, moment) in counter.kills() {
        let tree = waiting();
        let session = fused(tree.options(), &Fuse::at(operation, moment));
        assert!(until_killed(|| confirm(&session)).is_none());
        come_back(&tree, &Tree::new().snapshot(), &format!("killed {moment:?} operation {operation}"));
    }
    assert!(counter.operations() >= 6, "{}", counter.operations());
}

/// A state folder that was thrown away and begun anew has another entry by the number that a timer waits for.
#[test]
fn a_timer_leaves_an_entry_alone_that_has_its_number_and_is_another_one() {
    let tree = waiting();
    let watched = tree.entries().remove(0);
    assert!(watched.confirm_by.is_some());
    let earlier = Entry { at: watched.at - 8, ..watched.clone() };
    let before = tree.snapshot();
    assert_eq!(
        take_unconfirmed(&tree.session(), &earlier).expect("nothing to do").map(|undone| undone.exit),
        None
    );
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    assert!(take_unconfirmed(&tree.session(), &watched).expect("it is due").is_some());
}

/// The cut-off operator: the connection breaks, and the undo that was typed into it dies with it. The timer of the
/// entry must bring the host back, whatever the undo came to.
#[test]
fn an_undo_that_is_killed_anywhere_leaves_the_rest_to_the_timer() {
    let start = Tree::new().snapshot();
    let counter = Fuse::counting();
    undo_everything(&fused(waiting().options(), &counter));
    assert!(counter.operations() >= 20, "{}", counter.operations());
    let mut idle = Vec::new();
    for (operation, moment) in counter.kills() {
        let when = format!("killed {moment:?} operation {operation}");
        let tree = waiting();
        let watched = tree.entries().remove(0);
        let session = fused(tree.options(), &Fuse::at(operation, moment));
        assert!(until_killed(|| undo_everything(&session)).is_none(), "{when}");
        drop(session);
        let undone = take_unconfirmed(&tree.session(), &watched).expect("the host is ours");
        if undone.is_none() {
            idle.push((operation, moment));
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{when}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{when}");
        let again = take_unconfirmed(&tree.session(), &watched).expect("nothing to do");
        assert!(again.is_none(), "{when}: the timer goes off once");
    }
    // Only a kill after the last line leaves the timer nothing to do.
    assert!(idle.len() < 8, "{idle:?}");
}

/// A host with an entry that waits to be confirmed.
pub fn waiting() -> Tree {
    let tree = Tree::new();
    let session = crate::watch::without_watcher(&tree);
    let options = ApplyOptions { confirm_seconds: Some(3600), persist: true, ..ApplyOptions::default() };
    apply(&session, &plan_of(&session, &everything()), &options).expect("applied");
    tree
}

#[test]
fn an_apply_that_was_killed_can_be_applied_again_and_undone() {
    let counter = Fuse::counting();
    apply_everything(&fused(Tree::new().options(), &counter));
    let mut tally = Tally::default();
    for operation in 0..counter.operations() {
        for moment in [Moment::Before, Moment::After] {
            let tree = Tree::new();
            let start = tree.snapshot();
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            until_killed(|| apply_everything(&session));
            drop(session);
            apply_everything(&tree.session());
            let left =
                come_back(&tree, &start, &format!("killed {moment:?} operation {operation}, applied again"));
            tally.count(&left);
        }
    }
    assert_rare(&tally);
}

/// The file that an undo had written, and could not tell of, is known to the next who puts lines there.
#[test]
fn an_undo_that_was_killed_leaves_files_that_the_next_apply_knows() {
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let both = |session: &Session| {
        apply_everything(session);
        apply(session, &plan_of(session, &second()), &persist).expect("the host takes it");
    };
    let third = profile("third", &[("vm.swappiness", Want::Int(33))]);
    let counter = Fuse::counting();
    let counted = Tree::new();
    both(&counted.session());
    undo_everything(&fused(counted.options(), &counter));
    let mut tally = Tally::default();
    for (operation, moment) in counter.kills() {
        let tree = Tree::new();
        let start = tree.snapshot();
        both(&tree.session());
        let session = fused(tree.options(), &Fuse::at(operation, moment));
        assert!(until_killed(|| undo_everything(&session)).is_none());
        drop(session);
        let when = format!("undo killed {moment:?} operation {operation}, another apply");
        apply(&tree.session(), &plan_of(&tree.session(), &third), &persist)
            .unwrap_or_else(|error| panic!("{when}: {error}"));
        tally.count(&come_back(&tree, &start, &when));
    }
    assert_none(&tally);
}

/// An apply that was killed has taken nothing out of a file: where the file is gone, somebody removed it.
#[test]
fn a_file_that_someone_removed_after_a_kill_of_its_apply_is_not_made_again() {
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let third = profile("third", &[("vm.swappiness", Want::Int(33))]);
    let counter = Fuse::counting();
    apply_everything(&fused(Tree::new().options(), &counter));
    let mut refused = 0;
    for operation in 0..counter.operations() {
        let tree = Tree::new();
        let session = fused(tree.options(), &Fuse::at(operation, Moment::After));
        assert!(until_killed(|| apply_everything(&session)).is_none());
        drop(session);
        let is_told = |step: &EntryStep| step.place == SYSCTL_FILE && step.is_in_file();
        let Some(entry) = tree.entries().pop().filter(|entry| entry.steps.iter().any(is_told)) else {
            continue;
        };
        let is_half_way = entry.state == EntryState::Interrupted;
        tree.remove(SYSCTL_FILE);
        let applied = apply(&tree.session(), &plan_of(&tree.session(), &third), &persist);
        let error = applied.expect_err("it is as somebody left it");
        let way_out = "it holds lines of entry 1: take them back first: planish undo 1 (with --force, what was written \
                       into it since goes, too)";
        assert_eq!(error.hints(), [way_out], "killed after operation {operation}: {error}");
        assert_eq!(tree.get(SYSCTL_FILE), "", "killed after operation {operation}");
        refused += usize::from(is_half_way);
    }
    assert!(refused > 0);
}

/// The machine loses power: of the journal only what was synced is on the disk, and run-time values are those of
/// the next boot, in which the files that are there take effect. Files are whole or not there.
#[test]
fn a_power_cut_anywhere_leaves_nothing_but_files_that_go() {
    let counter = Fuse::counting();
    apply_everything(&fused(Tree::new().options(), &counter));
    let mut states = Vec::new();
    for operation in 0..counter.operations() {
        let tree = Tree::new();
        let start = tree.snapshot();
        let synced = Rc::new(crate::faults::Synced::default());
        let fuse = Fuse::at(operation, Moment::After);
        let session = crate::faults::losing(tree.options(), &fuse, &synced);
        assert!(until_killed(|| apply_everything(&session)).is_none());
        drop(session);
        cut_to(&tree.root().join("var/lib/planish/journal.jsonl"), synced.bytes());
        tree.reboot(&start);
        let left = come_back(&tree, &start, &format!("cut after operation {operation}"));
        // With the outcome of the step that derives it, what was seen of it is lost too.
        assert!(left.iter().all(|place| place == MIN_FREE), "cut after operation {operation}: {left:?}");
        states.extend(tree.entries().first().map(|entry| entry.state));
    }
    assert!(states.iter().all(|state| matches!(state, EntryState::Closed(_))), "{states:?}");
    assert!(!states.is_empty());
}

fn cut_to(journal: &Path, bytes: u64) {
    if let Ok(file) = std::fs::OpenOptions::new().write(true).open(journal) {
        file.set_len(bytes).expect("ours");
    }
}
