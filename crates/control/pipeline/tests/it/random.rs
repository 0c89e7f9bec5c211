//! Random lives: applies, confirms, undos, kills and strangers in any order.

use std::collections::BTreeMap;

use planish_model::{EntryId, Exit, Nodes, Want};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, confirm, plan, undo,
};
use proptest::prelude::*;

use crate::boot;
use crate::faults::{Fuse, MOMENTS, Moment, fused, until_killed};
use crate::loader;
use crate::tree::*;
use crate::watch::without_watcher;

/// One thing that happens to a host.
#[derive(Clone, Debug)]
enum Event {
    Apply(usize),
    /// An apply in the place of an entry; with files or without.
    Instead(usize, u64, bool),
    /// One that is killed at an operation.
    KilledInstead(usize, u64, usize, Moment),
    /// An apply that also writes the files of every later boot.
    Persist(usize),
    /// One whose files wait for a confirm.
    Try(usize),
    Confirm,
    /// A confirm that is killed at an operation.
    KilledConfirm(usize, Moment),
    /// An apply that is killed at an operation.
    KilledApply(usize, usize, Moment),
    /// One with files.
    KilledPersist(usize, usize, Moment),
    /// An undo of the newest entry, or of one by number.
    Undo(Option<u64>),
    /// An undo of everything that is killed at an operation.
    KilledUndo(usize, Moment),
    /// Someone else sets a value that no profile wants.
    Edit(usize, u32),
    /// Someone else raises the pool of a node.
    Raise(u32, u64),
    /// The machine goes down and comes up again.
    Reboot,
    /// A package installs a kernel, and copies the arguments of an entry into one of its own.
    Kernel,
    /// The loader counts the tries of its entries, or a boot was good.
    Count,
}

/// Places that strangers edit, with a base that keeps their values apart from ours.
const EDITED: [(&str, u32); 3] = [(SWAPPINESS, 100), (STAT_INTERVAL, 200), (DIRTY_RATIO, 40)];

fn source(number: usize) -> Source {
    let pool = |need_bytes, nodes| Want::Need { need_bytes, nodes };
    let word = |text: &str| Want::Text(text.to_owned());
    let wants: [&[(&str, Want)]; 8] = [
        &[
            ("vm.swappiness", Want::Int(10)),
            ("vm.dirty_bytes", Want::Int(1 << 29)),
            ("thp.enabled", word("madvise")),
            ("mount.atime", word("noatime")),
        ],
        &[
            ("vm.swappiness", Want::Int(1)),
            ("vm.dirty_ratio", Want::Int(15)),
            ("vm.stat_interval", Want::Int(10)),
            ("mount.atime", word("relatime")),
        ],
        // Larger than anything that strangers add: a pool at exactly the size of a killed write proves the write.
        &[("hugepages.2m", pool(400 << 20, Nodes::Spread)), ("vm.stat_interval", Want::Int(60))],
        &[
            ("hugepages.2m", pool(200 << 20, Nodes::Each(vec![0]))),
            ("thp.enabled", word("never")),
            // A third value of one twin, and a fourth: an entry in the middle finds the other one cleared.
            ("vm.dirty_bytes", Want::Int(1 << 28)),
        ],
        // Two steps from which the kernel derives one place.
        &[
            ("thp.enabled", word("never")),
            ("thp.shmem_enabled", word("advise")),
            ("vm.dirty_bytes", Want::Int(1 << 27)),
        ],
        // Boot parameters, for hosts with a boot loader.
        &[("boot.skew_tick", Want::Int(1)), ("vm.swappiness", Want::Int(10))],
        &[("boot.rcupdate_rcu_normal_after_boot", Want::Int(1))],
        &[
            ("boot.rcupdate_rcu_normal_after_boot", Want::Int(1)),
            ("boot.skew_tick", Want::Int(1)),
            ("vm.stat_interval", Want::Int(10)),
        ],
    ];
    profile(&format!("profile-{number}"), wants[number])
}

fn moment() -> impl Strategy<Value = Moment> {
    proptest::sample::select(&MOMENTS[..])
}

fn ours() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0usize..5).prop_map(Event::Apply),
        1 => (0usize..5, 0usize..20, moment()).prop_map(|(number, at, when)| Event::KilledApply(number, at, when)),
        2 => (0usize..5, 1u64..5).prop_map(|(number, old)| Event::Instead(number, old, false)),
        1 => (0usize..5, 1u64..5, 0usize..30, moment())
            .prop_map(|(number, old, at, when)| Event::KilledInstead(number, old, at, when)),
        2 => proptest::option::of(1u64..4).prop_map(Event::Undo),
        1 => (0usize..20, moment()).prop_map(|(at, when)| Event::KilledUndo(at, when)),
    ]
}

fn over_reboots() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => ours(),
        2 => (0usize..5).prop_map(Event::Persist),
        1 => (0usize..5, 1u64..5).prop_map(|(number, old)| Event::Instead(number, old, true)),
        1 => (0usize..5, 0usize..40, moment()).prop_map(|(number, at, when)| Event::KilledPersist(number, at, when)),
        2 => Just(Event::Reboot),
    ]
}

/// What happens to the files of a boot loader.
fn over_boots() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (5usize..8).prop_map(Event::Persist),
        3 => (5usize..8).prop_map(Event::Try),
        3 => Just(Event::Confirm),
        1 => (0usize..20, moment()).prop_map(|(at, when)| Event::KilledConfirm(at, when)),
        1 => (5usize..8, 0usize..40, moment()).prop_map(|(number, at, when)| Event::KilledPersist(number, at, when)),
        2 => proptest::option::of(1u64..5).prop_map(Event::Undo),
        1 => Just(Event::Reboot),
    ]
}

/// The same beside what a loader and packages do.
fn beside_packages() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (5usize..8).prop_map(Event::Persist),
        1 => (5usize..8).prop_map(Event::Try),
        1 => Just(Event::Confirm),
        1 => (5usize..8, 0usize..40, moment()).prop_map(|(number, at, when)| Event::KilledPersist(number, at, when)),
        2 => proptest::option::of(1u64..5).prop_map(Event::Undo),
        1 => (0usize..20, moment()).prop_map(|(at, when)| Event::KilledUndo(at, when)),
        1 => Just(Event::Reboot),
        1 => Just(Event::Kernel),
        2 => Just(Event::Count),
    ]
}

fn anybodys() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => ours(),
        1 => (0usize..3, 1u32..9).prop_map(|(place, value)| Event::Edit(place, value)),
        1 => (0u32..2, 1u64..3).prop_map(|(node, pages)| Event::Raise(node, pages)),
    ]
}

fn apply_in(session: &Session, number: usize, options: &ApplyOptions) {
    // A host that moved since the plan was made is refused; here nothing happens in between.
    let plan = plan(session, &source(number), &PlanOptions::default()).expect("a plan");
    match apply(session, &plan, options) {
        // What is on trial is left alone.
        Ok(_) | Err(PipelineError::Unconfirmed { .. }) => {}
        Err(error) => panic!("the host takes it: {error:?}"),
    }
}

/// Puts a profile in the place of an entry, where that can be taken.
fn take_place(session: &Session, number: usize, old: u64, options: &ApplyOptions) {
    let wanted = PlanOptions { instead_of: Some(EntryId(old)), ..PlanOptions::default() };
    let plan = match plan(session, &source(number), &wanted) {
        Ok(plan) => plan,
        Err(PipelineError::InsteadOf { .. } | PipelineError::Journal(_)) => return,
        Err(error) => panic!("a plan or a reason: {error:?}"),
    };
    match apply(session, &plan, options) {
        Ok(_) | Err(PipelineError::Unconfirmed { .. }) => {}
        Err(error) => panic!("the host takes it: {error:?}"),
    }
}

/// Does it; what an undo said besides.
fn run(tree: &Tree, start: &BTreeMap<String, String>, event: &Event) -> Vec<String> {
    let killed_at = |at: usize, when| fused(tree.options(), &Fuse::at(at, when));
    let now = ApplyOptions::default();
    let at_boot = ApplyOptions { persist: true, ..now.clone() };
    match event {
        Event::Apply(number) => apply_in(&tree.session(), *number, &now),
        Event::Instead(number, old, keep) => {
            take_place(&tree.session(), *number, *old, if *keep { &at_boot } else { &now });
        }
        Event::KilledInstead(number, old, at, when) => {
            let session = killed_at(*at, *when);
            until_killed(|| take_place(&session, *number, *old, &now));
        }
        Event::Persist(number) => apply_in(&tree.session(), *number, &at_boot),
        Event::Try(number) => {
            let on_trial = ApplyOptions { confirm_seconds: Some(600), ..at_boot };
            apply_in(&without_watcher(tree), *number, &on_trial);
        }
        // Nobody else writes files here: there is nothing to refuse.
        Event::Confirm => drop(confirm(&tree.session()).expect("confirmed")),
        Event::KilledConfirm(at, when) => {
            let session = killed_at(*at, *when);
            until_killed(|| drop(confirm(&session).expect("confirmed")));
        }
        Event::KilledApply(number, at, when) => {
            let session = killed_at(*at, *when);
            until_killed(|| apply_in(&session, *number, &now));
        }
        Event::KilledPersist(number, at, when) => {
            let session = killed_at(*at, *when);
            until_killed(|| apply_in(&session, *number, &at_boot));
        }
        Event::Reboot => tree.reboot(start),
        Event::Kernel => loader::install_another(tree),
        Event::Count => loader::count(tree),
        Event::Undo(None) => return undo(&tree.session(), Target::Newest, false).expect("undone").hints,
        Event::Undo(Some(id)) => {
            // An entry that was never made is an error, and changes nothing.
            let undone = undo(&tree.session(), Target::Entry(EntryId(*id)), false);
            return undone.map(|undone| undone.hints).unwrap_or_default();
        }
        Event::KilledUndo(at, when) => {
            let session = killed_at(*at, *when);
            until_killed(|| drop(undo(&session, Target::All, false).expect("undone")));
        }
        Event::Edit(place, value) => {
            let (place, base) = EDITED[*place];
            tree.edit(place, &(base + value).to_string());
        }
        Event::Raise(node, pages) => {
            let now: u64 = tree.get(&pool(*node)).trim().parse().expect("pages");
            tree.edit(&pool(*node), &(now + pages).to_string());
        }
    }
    Vec::new()
}

fn is_kill(event: &Event) -> bool {
    use Event::{KilledApply, KilledConfirm, KilledInstead, KilledPersist, KilledUndo};
    matches!(
        event,
        KilledApply(..) | KilledConfirm(..) | KilledInstead(..) | KilledPersist(..) | KilledUndo(..)
    )
}

/// The places whose value makes that of another: its twin, or what the kernel derives it from.
fn causes_of(place: &str) -> Vec<String> {
    let causes: &[&str] = match place {
        DIRTY_BYTES => &[DIRTY_RATIO],
        DIRTY_RATIO => &[DIRTY_BYTES],
        MIN_FREE => &[THP, SHMEM],
        _ => &[],
    };
    let mut causes: Vec<String> = causes.iter().map(|cause| (*cause).to_owned()).collect();
    if place.starts_with("/sys/kernel/mm/hugepages/") {
        causes.extend([pool(0), pool(1)]);
    }
    causes.extend(place.strip_suffix("free_hugepages").map(|folder| format!("{folder}nr_hugepages")));
    causes
}

/// A whole life, and an undo of all of it: no entry stays open. Only a kill may leave a derived value, or a pool that
/// was granted in part. A value that a file brought, where an undone entry had its original, is told to stay until the
/// next reboot; with it stay its twin's zero and what the kernel derives from it.
fn live_and_undo(
    tree: &Tree,
    start: &BTreeMap<String, String>,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let mut said = Vec::new();
    for event in events {
        if matches!(event, Event::Reboot) {
            said.clear();
        }
        said.extend(run(tree, start, event));
    }
    said.extend(undo(&tree.session(), Target::All, false).expect("undone").hints);
    let until_reboot = |place: &str| {
        let of_it = |hint: &&String| hint.starts_with(&format!("{place} is `"));
        said.iter().filter(of_it).any(|hint| hint.contains("until the next reboot"))
    };
    let mut left = differences(start, &tree.snapshot());
    // The kernel has the arguments that it was started with.
    left.retain(|place| place != CMDLINE);
    left.retain(|place| !until_reboot(place) && !causes_of(place).iter().any(|cause| until_reboot(cause)));
    let known = |place: &String| place == MIN_FREE || place.contains("/hugepages-");
    let allowed = events.iter().any(is_kill) && left.iter().all(known);
    prop_assert!(left.is_empty() || allowed, "{:?}", left);
    for entry in tree.entries() {
        prop_assert!(!entry.is_open(), "{:?}", entry);
    }
    Ok(())
}

/// The places that strangers edit and a profile sets, itself or by a twin.
fn sets(number: usize) -> &'static [&'static str] {
    let bytes = &[DIRTY_RATIO];
    [
        &[SWAPPINESS, DIRTY_RATIO][..],
        &[SWAPPINESS, STAT_INTERVAL, DIRTY_RATIO],
        &[STAT_INTERVAL],
        bytes,
        bytes,
    ][number]
}

fn is_undo(event: &Event) -> bool {
    matches!(event, Event::Undo(_) | Event::KilledUndo(..))
}

/// An entry that was killed before it could tell that its write cleared a twin, and that goes from between two others.
#[test]
fn a_killed_entry_in_the_middle_hands_the_live_twin_over() {
    for at in 0..20 {
        for when in MOMENTS {
            let tree = Tree::new();
            let start = tree.snapshot();
            let killed = Event::KilledApply(0, at, when);
            [
                Event::Apply(1),
                killed,
                Event::Apply(1),
                Event::Undo(Some(2)),
                Event::Undo(None),
                Event::Undo(None),
            ]
            .iter()
            .for_each(|event| drop(run(&tree, &start, event)));
            undo(&tree.session(), Target::All, false).expect("undone");
            let left = differences(&start, &tree.snapshot());
            // Writing THP derives it, and a kill may keep us from seeing that it did.
            assert!(left.iter().all(|place| place == MIN_FREE), "killed {when:?} {at}: {left:?}");
        }
    }
}

/// What the kernel derived for an entry went to the one above it, which had caused nothing itself. The next one found
/// it.
#[test]
fn a_derived_value_that_was_handed_over_is_no_original_of_the_next_entry() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let life = [
        Event::Apply(0),
        Event::Apply(3),
        Event::Persist(0),
        Event::Undo(None),
        Event::Undo(Some(1)),
        Event::Persist(0),
        Event::Reboot,
    ];
    live_and_undo(&tree, &start, &life).expect("the start");
}

/// An entry that was killed while files were given its arguments goes from under one that gives the same ones: it took
/// a part of the other one's, which were left to somebody then.
#[test]
fn arguments_of_a_killed_entry_go_from_under_another_one() {
    let orders = [(5, 7, 1), (5, 7, 2), (7, 5, 1), (7, 5, 2), (6, 7, 1), (5, 5, 1)];
    for (name, make) in boot::all() {
        for (number, (killed, whole, first)) in orders.into_iter().enumerate() {
            for at in 0..12 {
                let when = MOMENTS[(at + number) % MOMENTS.len()];
                let tree = make();
                tree.reboot(&tree.snapshot());
                let start = tree.snapshot();
                let life =
                    [Event::KilledPersist(killed, at, when), Event::Persist(whole), Event::Undo(Some(first))];
                if let Err(error) = live_and_undo(&tree, &start, &life) {
                    panic!("{name}, {killed} killed {when:?} operation {at}, {whole}, undo {first}: {error}");
                }
            }
        }
    }
}

/// Nobody saw what the kernel derived for an entry that was killed and goes from under another: force brings it back.
#[test]
fn a_derived_value_of_a_killed_entry_that_was_handed_over_is_told_and_forced() {
    for at in 0..20 {
        let tree = Tree::new();
        let start = tree.snapshot();
        let life = [
            Event::Apply(1),
            Event::KilledApply(3, at, Moment::After),
            Event::Apply(0),
            Event::Undo(Some(2)),
        ];
        live_and_undo(&tree, &start, &life).expect("all but what a kill left");
        for entry in tree.entries().iter().rev() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "killed at {at}");
    }
}

/// The file of a younger entry brings a value at a boot whose original an undone one of that profile had, too.
#[test]
fn a_value_that_a_file_brought_and_an_undone_entry_knew_goes_back() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let life = [Event::Apply(1), Event::Apply(0), Event::Persist(1), Event::Undo(Some(1)), Event::Reboot];
    live_and_undo(&tree, &start, &life).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// Somebody sets one of two twins after us; the entry on top of that takes it as its original, whatever goes first.
#[test]
fn a_twin_that_someone_set_between_two_entries_comes_back() {
    for first_out in [1, 2] {
        let tree = Tree::new();
        let start = tree.snapshot();
        run(&tree, &start, &Event::Apply(0));
        tree.edit(DIRTY_BYTES, "268435456");
        run(&tree, &start, &Event::Apply(1));
        run(&tree, &start, &Event::Undo(Some(first_out)));
        run(&tree, &start, &Event::Undo(Some(3 - first_out)));
        assert_eq!([DIRTY_BYTES, DIRTY_RATIO].map(|place| tree.get(place)), ["268435456\n", "0\n"]);
    }
}

/// The second and the third find the ratio cleared, and change nothing there.
#[test]
fn three_values_of_one_twin_hand_the_other_one_down() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let applied = [Event::Apply(0), Event::Apply(3), Event::Apply(4)];
        let life: Vec<Event> = applied.into_iter().chain(order.map(|id| Event::Undo(Some(id)))).collect();
        live_and_undo(&tree, &start, &life).unwrap_or_else(|error| panic!("{order:?}: {error}"));
    }
    let tree = Tree::new();
    let start = tree.snapshot();
    let chain = [Event::Apply(0), Event::Instead(3, 1, false), Event::Instead(4, 2, false)];
    live_and_undo(&tree, &start, &chain).expect("the start");
}

/// The value of the second is that of the first by chance: what somebody had set between them is below it.
#[test]
fn an_older_entry_writes_nothing_under_a_newer_one_that_set_the_same_value() {
    let ten = profile("ten", &[("vm.swappiness", Want::Int(10))]);
    let apply_to = |tree: &Tree| {
        let session = tree.session();
        apply(&session, &plan_of(&session, &ten), &ApplyOptions::default()).expect("applied");
    };
    for order in [[1, 2], [2, 1]] {
        let tree = Tree::new();
        apply_to(&tree);
        tree.edit(SWAPPINESS, "33");
        apply_to(&tree);
        for id in order {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            let (exit, left) = if id == 1 { (Exit::Findings, "10\n") } else { (Exit::Done, "33\n") };
            assert_eq!(undone.exit, exit, "{order:?} {:?}", undone.hints);
            let is_last = id == order[1];
            assert_eq!(tree.get(SWAPPINESS), if is_last { "33\n" } else { left }, "{order:?} after {id}");
        }
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
        let forced = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("forced");
        assert_eq!((forced.exit, tree.get(SWAPPINESS).as_str()), (Exit::Done, "60\n"));
    }
}

/// How many cases a property draws: `./x soak` asks for more than the suite of every day has time for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Nobody interferes: whatever planish did, and wherever it was killed, everything goes again. Only a kill may
    /// leave a derived value or a pool that was granted in part, and force brings those back.
    #[test]
    fn undoing_all_is_the_start(events in proptest::collection::vec(ours(), 1..9)) {
        let tree = Tree::new();
        let start = tree.snapshot();
        live_and_undo(&tree, &start, &events)?;
        for entry in tree.entries().iter().rev() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        prop_assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }

    /// The same over reboots, which bring back what our files say and take everything else.
    #[test]
    fn undoing_all_is_the_start_over_reboots(events in proptest::collection::vec(over_reboots(), 1..9)) {
        let tree = Tree::new();
        let start = tree.snapshot();
        live_and_undo(&tree, &start, &events)?;
        tree.reboot(&start);
        prop_assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "after one more boot");
    }

    /// The same with a boot loader and with what is on trial: no confirm is refused, and no argument stays.
    #[test]
    fn arguments_come_by_a_confirm_and_go(
        (_, make) in proptest::sample::select(boot::all().to_vec()),
        events in proptest::collection::vec(over_boots(), 1..10),
    ) {
        let tree = make();
        // Started by its own boot loader.
        tree.reboot(&tree.snapshot());
        let start = tree.snapshot();
        live_and_undo(&tree, &start, &events)?;
        tree.reboot(&start);
        prop_assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "after one more boot");
    }

    /// Kernels are installed, and the loader renames its entries: what planish wrote goes again under whatever name,
    /// and every copy that somebody made of it is named.
    #[test]
    fn no_argument_stays_that_nobody_names(events in proptest::collection::vec(beside_packages(), 1..10)) {
        let tree = loader::started_by("f-6.12+3");
        tree.reboot(&tree.snapshot());
        let start = tree.snapshot();
        for event in &events {
            run(&tree, &start, event);
        }
        undo(&tree.session(), Target::All, false).expect("undone");
        let found = check(&tree.session(), None).expect("checked").carried_over;
        let files = tree.snapshot();
        let entries = files.iter().filter(|(path, _)| path.starts_with(loader::FOLDER) && path.ends_with(".conf"));
        for (path, text) in entries {
            let is_named = found.iter().any(|line| line.source.starts_with(path));
            let has_some = ["skew_tick", "rcu_normal"].iter().any(|name| text.contains(name));
            let is_own = path.contains("/f-6.12");
            prop_assert_eq!(has_some, is_named && !is_own, "{} {}: {:?}", path, text, found);
        }
        for entry in tree.entries() {
            prop_assert!(!entry.is_open(), "{:?}", entry);
        }
    }

    /// Whatever went before: what is applied twice is applied once.
    #[test]
    fn applied_twice_is_applied_once(
        (_, make) in proptest::sample::select(boot::all().to_vec()),
        events in proptest::collection::vec(over_boots(), 0..6),
        number in 0usize..8,
    ) {
        let tree = make();
        tree.reboot(&tree.snapshot());
        let start = tree.snapshot();
        for event in events.iter().chain([&Event::Persist(number)]) {
            run(&tree, &start, event);
        }
        let (once, entries) = (tree.snapshot(), tree.entries().len());
        run(&tree, &start, &Event::Persist(number));
        prop_assert_eq!(differences(&once, &tree.snapshot()), [""; 0]);
        prop_assert_eq!(tree.entries().len(), entries);
    }

    /// Someone else interferes: no undo writes over a value of theirs, and no page of theirs is taken.
    #[test]
    fn theirs_is_never_written_over(events in proptest::collection::vec(anybodys(), 1..12)) {
        let tree = Tree::new();
        let start = tree.snapshot();
        let mut theirs = BTreeMap::new();
        let mut raised = [0, 0];
        for event in events.iter().chain([&Event::Undo(None); 6]) {
            match event {
                Event::Edit(place, value) => {
                    theirs.insert(EDITED[*place].0, (EDITED[*place].1 + value).to_string());
                }
                Event::Raise(node, pages) => raised[*node as usize] += pages,
                _ => {}
            }
            run(&tree, &start, event);
            if is_undo(event) {
                for (place, value) in &theirs {
                    let now = tree.get(place);
                    prop_assert_eq!(now.trim(), value, "{} after {:?}", place, event);
                }
            } else {
                if let Event::Instead(number, ..) | Event::KilledInstead(number, ..) = event {
                    for (place, value) in theirs.iter().filter(|(place, _)| !sets(*number).contains(place)) {
                        let now = tree.get(place);
                        prop_assert_eq!(now.trim(), value, "{} after {:?}", place, event);
                    }
                }
                // An apply is asked to set them; setting dirty_bytes clears dirty_ratio.
                theirs.retain(|place, value| tree.get(place).trim() == value);
            }
        }
        undo(&tree.session(), Target::All, false).expect("undone");
        for node in [0, 1] {
            let pages = |text: &str| text.trim().parse::<u64>().expect("pages");
            let before = pages(&start[&pool(node)]);
            let after = pages(&tree.get(&pool(node)));
            prop_assert!(after >= before + raised[node as usize], "node {}: {} of {:?}", node, after, raised);
        }
    }
}

/// A killed entry put its arguments into some files of the loader, so that a newer one with the same words put its own
/// in again. When the older one is taken back, what it had put there is no original of the newer one any more.
#[test]
fn what_an_older_entry_has_taken_out_since_is_no_original() {
    let (_, make) = boot::all().into_iter().find(|(name, _)| *name == "rocky").expect("a host with entries");
    for at in 9..13 {
        let tree = make();
        tree.reboot(&tree.snapshot());
        let start = tree.snapshot();
        let events = [Event::KilledPersist(7, at, Moment::After), Event::Persist(5), Event::Undo(Some(1))];
        live_and_undo(&tree, &start, &events).unwrap_or_else(|error| panic!("killed after {at}: {error}"));
    }
}

/// An entry that was killed in its files brings a value at a boot, whose step was closed before that with an entry
/// whose place another had taken.
#[test]
fn a_value_of_a_killed_entrys_file_is_told_behind_a_replaced_one() {
    for when in MOMENTS {
        for at in 0..12 {
            let tree = Tree::new();
            let start = tree.snapshot();
            let killed = Event::KilledPersist(2, at, when);
            let events = [Event::Apply(2), killed, Event::Instead(4, 1, true), Event::Reboot];
            live_and_undo(&tree, &start, &events).expect("nothing stays that nobody names");
        }
    }
}

/// Of two entries that were killed in their files one had written its lines, and the other had not: both are known.
#[test]
fn files_of_two_killed_entries_are_known_whichever_was_written() {
    let tree = boot::debian();
    tree.reboot(&tree.snapshot());
    let start = tree.snapshot();
    let killed = [Event::KilledPersist(5, 6, MOMENTS[0]), Event::KilledPersist(7, 2, MOMENTS[0])];
    for event in killed.iter().chain(&[Event::Try(6), Event::Persist(0)]) {
        run(&tree, &start, event);
    }
    assert!(tree.get("/etc/sysctl.d/90-planish.conf").contains("vm.swappiness = 1"));
}

/// The file of an entry brings a pool whose original went with another entry that was replaced since.
#[test]
fn a_pool_that_a_file_brought_is_told_behind_a_replaced_entry() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let events =
        [Event::Apply(2), Event::Persist(2), Event::Instead(4, 1, false), Event::Reboot, Event::Apply(0)];
    live_and_undo(&tree, &start, &events).expect("nothing stays that nobody names");
}

/// A pool that the kernel granted in part, and that the file of the next entry brings whole.
#[test]
fn a_short_pool_that_another_file_brings_whole_goes_whole() {
    let tree = Tree::new();
    let start = tree.snapshot();
    live_and_undo(&tree, &start, &[Event::Apply(2), Event::Persist(2), Event::Reboot]).expect("the start");
}
