//! `apply B --instead-of A`: no value goes through what it was before A, A is whole until B is, and what is undone then
//! is what was before both.

use planish_journal::HostLock;
use planish_model::{
    Class, Closure, DriftState, EntryId, EntryState, Exit, KnobId, Nodes, OutcomeKind, Part, Plan, PoolGoing,
    Undo, Want,
};
use planish_pipeline::{
    Applied, ApplyOptions, Half, PipelineError, PlanOptions, Session, Source, Target, apply, check, confirm,
    outgoing, plan, take_unconfirmed, undo,
};

use crate::boot;
use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;
use crate::watch::without_watcher;

pub const NOW: ApplyOptions = ApplyOptions { confirm_seconds: None, persist: false, reason: None };

pub fn word(text: &str) -> Want {
    Want::Text(text.to_owned())
}

fn pages(count: u64, node: u32) -> Want {
    Want::Need { need_bytes: count << 21, nodes: Nodes::Each(vec![node]) }
}

fn first() -> Source {
    profile(
        "first",
        &[
            ("vm.swappiness", Want::Int(10)),
            ("vm.stat_interval", Want::Int(10)),
            ("vm.dirty_bytes", Want::Int(1 << 29)),
            ("thp.enabled", word("madvise")),
        ],
    )
}

/// Wants one value of the first as it is, another one otherwise, one that the first does not have, and not the rest.
fn second() -> Source {
    profile(
        "second",
        &[
            ("vm.swappiness", Want::Int(10)),
            ("vm.stat_interval", Want::Int(20)),
            ("vm.zone_reclaim_mode", Want::Int(0)),
        ],
    )
}

pub fn instead(session: &Session, source: &Source, old: u64) -> Result<Plan, PipelineError> {
    plan(session, source, &PlanOptions { instead_of: Some(EntryId(old)), ..PlanOptions::default() })
}

fn apply_first(tree: &Tree, options: &ApplyOptions) {
    let session = tree.session();
    apply(&session, &plan_of(&session, &first()), options).expect("applied");
}

pub fn apply_instead(tree: &Tree, source: &Source, options: &ApplyOptions) -> Applied {
    let session = without_watcher(tree);
    let plan = instead(&session, source, 1).expect("a plan");
    apply(&session, &plan, options).expect("applied")
}

pub fn undo_entry(tree: &Tree, id: u64) -> planish_pipeline::Undone {
    undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone")
}

fn state(tree: &Tree, id: u64) -> EntryState {
    tree.entries().into_iter().find(|entry| entry.id == EntryId(id)).expect("an entry").state
}

pub fn refused(error: Result<Plan, PipelineError>) -> String {
    let error = error.expect_err("refused");
    assert!(matches!(error, PipelineError::InsteadOf { .. }), "{error:?}");
    assert_eq!(error.exit(), Exit::Refused);
    format!("{error}; {}", error.hints().join("; "))
}

#[test]
fn what_both_want_is_not_written_and_the_rest_goes_back_or_on() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &NOW);
    let writes = Fuse::counting();
    let session = fused(tree.options(), &writes);
    let plan = instead(&session, &second(), 1).expect("a plan");
    let parts: Vec<(&str, Option<Part>, &str)> =
        plan.steps.iter().map(|step| (step.place.as_str(), step.part, step.wanted.trim())).collect();
    let (back, taken) = (Some(Part::Back), Some(Part::TakenOver));
    let expected = [
        (THP, back, "always"),
        (DIRTY_RATIO, back, "20"),
        (MIN_FREE, back, "67584"),
        (STAT_INTERVAL, None, "20"),
        (SWAPPINESS, taken, "10"),
        (ZONE_RECLAIM, None, "0"),
    ];
    let mut sorted = parts.clone();
    sorted.sort_by_key(|(place, ..)| *place);
    let mut wanted = expected;
    wanted.sort_by_key(|(place, ..)| *place);
    assert_eq!(sorted, wanted);
    assert!(parts[..3].iter().all(|(_, part, _)| *part == back), "they come first: {parts:?}");
    assert_eq!(parts[2].0, MIN_FREE, "what the kernel derives comes last: {parts:?}");

    let applied = apply(&session, &plan, &NOW).expect("applied");
    assert_eq!((applied.entry, applied.exit), (Some(EntryId(2)), Exit::Done), "{:#?}", applied.hints);
    let taken = applied.outcomes.iter().find(|outcome| outcome.place == SWAPPINESS).expect("a step");
    assert_eq!(taken.outcome, OutcomeKind::TakenOver);
    let times = |place: &str| writes.places().iter().filter(|written| *written == place).count();
    let of = [SWAPPINESS, STAT_INTERVAL, ZONE_RECLAIM, DIRTY_RATIO, DIRTY_BYTES];
    assert_eq!(of.map(times), [0, 1, 1, 1, 0], "no dip: {:?}", writes.places());
    let values = [SWAPPINESS, STAT_INTERVAL, ZONE_RECLAIM, DIRTY_BYTES, DIRTY_RATIO, MIN_FREE];
    assert_eq!(values.map(|place| tree.get(place)), ["10\n", "20\n", "0\n", "0\n", "20\n", "67584\n"]);

    assert_eq!(state(&tree, 1), EntryState::Closed(Closure::Replaced));
    let old = tree.entries().remove(0);
    assert_eq!((old.replaced_by, old.steps.iter().all(|step| step.is_undone())), (Some(EntryId(2)), true));
    assert_eq!(check(&tree.session(), None).expect("a look").exit, Exit::Done);
    assert!(undo_entry(&tree, 1).entries.is_empty(), "nothing is left of it");
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.hints);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "what was before both");
}

#[test]
fn a_plan_of_it_can_be_saved_and_is_refused_where_the_host_moved() {
    let tree = Tree::new();
    apply_first(&tree, &NOW);
    let session = tree.session();
    let plan = instead(&session, &second(), 1).expect("a plan");
    let saved = serde_json::to_string(&plan).expect("plain data");
    let read: Plan = serde_json::from_str(&saved).expect("a plan");
    assert!(read.is_intact());
    let mut forged = read.clone();
    forged.steps.iter_mut().find(|step| step.place == DIRTY_RATIO).expect("a step").wanted = "99".to_owned();
    let forged =
        forged.clone().in_place_of(forged.instead_of.clone().expect("an entry"), forged.steps.clone());
    let error = apply(&session, &forged, &NOW).expect_err("its original is another one");
    assert!(matches!(error, PipelineError::Moved { .. }), "{error:?}");
    tree.edit(DIRTY_RATIO, "33");
    let error = apply(&session, &read, &NOW).expect_err("it moved");
    assert!(matches!(error, PipelineError::Moved { .. }), "{error:?}");
    assert_eq!((tree.get(DIRTY_RATIO).as_str(), state(&tree, 1)), ("33\n", EntryState::Open));
}

/// Nothing is looked at for what is said to be there: a file that says so must not write it.
#[test]
fn a_plan_file_writes_nothing_that_it_calls_taken_over() {
    let tree = Tree::new();
    let of = |name: &str| {
        let values = [
            ("hugepages.2m", pages(4, 1)),
            ("vm.swappiness", Want::Int(10)),
            ("vm.stat_interval", Want::Int(3)),
        ];
        profile(name, &values)
    };
    let session = tree.session();
    apply(&session, &plan_of(&session, &of("first")), &NOW).expect("applied");
    let before = tree.snapshot();
    let plan = instead(&session, &of("second"), 1).expect("a plan");
    let forge = |place: &str, change: &dyn Fn(&mut planish_model::Step)| {
        let mut steps = plan.steps.clone();
        let step = steps.iter_mut().find(|step| step.place == place).expect("a step");
        assert_eq!(step.part, Some(Part::TakenOver));
        change(step);
        let forged = plan.clone().in_place_of(plan.instead_of.clone().expect("an entry"), steps);
        assert!(forged.is_intact(), "a hash proves nothing about who made it");
        let error = apply(&session, &forged, &NOW).expect_err("it is not there as wanted");
        assert!(matches!(&error, PipelineError::Forged { place: told, .. } if told == place), "{error:?}");
        assert_eq!(error.exit(), Exit::Refused);
        assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{place}");
    };
    forge(SWAPPINESS, &|step| step.wanted = "90".to_owned());
    forge(&pool(1), &|step| (step.raise_pages, step.wanted) = (Some(3), "7".to_owned()));
    assert_eq!(apply(&session, &plan, &NOW).expect("it is what it says").exit, Exit::Done);
}

/// What goes back is of this host and this hour: nobody wants it once it is back.
#[test]
fn what_goes_back_is_neither_exported_nor_kept_nor_asked_for() {
    let tree = Tree::new();
    apply_first(&tree, &PERSIST);
    let session = without_watcher(&tree);
    let plan = instead(&session, &second(), 1).expect("a plan");
    tree.put("/plan.json", &serde_json::to_string(&plan).expect("plain data"));
    let file = Source::named(tree.root().join("plan.json").to_str().expect("text"));
    let out = outgoing(&session, &file, &PlanOptions::default()).expect("it goes out");
    let mut items: Vec<&str> = out.items.iter().map(|item| item.knob.as_str()).collect();
    items.sort_unstable();
    assert_eq!(items, ["vm.stat_interval", "vm.swappiness", "vm.zone_reclaim_mode"], "{:?}", out.left_out);
    apply(&session, &plan, &ApplyOptions { confirm_seconds: Some(600), ..PERSIST }).expect("applied");
    let kept = tree.entries().remove(1).on_confirm.expect("files wait");
    let kept: Vec<&str> = kept.skipped.iter().map(|row| row.place.as_str()).collect();
    assert!(
        kept.contains(&SWAPPINESS) && ![DIRTY_RATIO, MIN_FREE, THP].iter().any(|back| kept.contains(back))
    );
    let done = confirm(&tree.session()).expect("confirmed");
    assert_eq!((done.exit, done.unpersisted.len()), (Exit::Done, 0), "{:#?}", done.hints);
    tree.edit(DIRTY_RATIO, "33");
    let checked = check(&tree.session(), Some(&file)).expect("a look");
    assert_eq!(checked.exit, Exit::Done, "{:#?}", checked.drift);
}

#[test]
fn what_somebody_else_set_since_is_told_and_kept() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &NOW);
    tree.edit(DIRTY_RATIO, "33");
    tree.edit(MIN_FREE, "77777");
    let session = tree.session();
    let plan = instead(&session, &second(), 1).expect("a plan");
    let told = plan.instead_of.as_ref().expect("an entry");
    let theirs: Vec<(&str, &str)> =
        told.theirs.iter().map(|theirs| (theirs.place.as_str(), theirs.now.as_str())).collect();
    assert_eq!(theirs, [(DIRTY_RATIO, "33"), (MIN_FREE, "77777")], "a twin, and a derived place");
    let applied = apply(&session, &plan, &NOW).expect("applied");
    assert_eq!(applied.exit, Exit::Findings, "{:#?}", applied.hints);
    assert_eq!([DIRTY_RATIO, MIN_FREE].map(|place| tree.get(place)), ["33\n", "77777\n"]);
    assert_eq!(state(&tree, 1), EntryState::Closed(Closure::Replaced));
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [DIRTY_RATIO, MIN_FREE]);
}

#[test]
fn unconfirmed_it_goes_back_to_the_old_entry_and_not_to_stock() {
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..PERSIST };
    for confirmed in [false, true] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_first(&tree, &PERSIST);
        let before = tree.snapshot();
        let applied = apply_instead(&tree, &second(), &on_trial);
        assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.hints);
        assert_eq!(state(&tree, 1), EntryState::Open, "it stays until the confirm");
        assert_eq!(tree.get(STAT_INTERVAL), "20\n");
        assert_eq!(tree.get(SYSCTL_FILE), before[SYSCTL_FILE], "files wait for it too");
        if confirmed {
            let done = confirm(&tree.session()).expect("confirmed");
            assert_eq!(done.exit, Exit::Done, "{:#?}", done.hints);
            assert_eq!(state(&tree, 1), EntryState::Closed(Closure::Replaced));
            let lines = tree.get(SYSCTL_FILE);
            assert!(lines.contains("vm.stat_interval = 20") && !lines.contains("dirty"), "{lines}");
            undo(&tree.session(), Target::Newest, false).expect("undone");
        } else {
            let entry = tree.entries().remove(1);
            take_unconfirmed(&tree.session(), &entry).expect("undone").expect("it was due");
            assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "as the old entry left it");
            assert_eq!(state(&tree, 1), EntryState::Open);
            undo(&tree.session(), Target::Newest, false).expect("undone");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "confirmed: {confirmed}");
    }
}

#[test]
fn a_step_that_fails_leaves_the_old_entry_whole() {
    let tree = Tree::answering(&format!("[[answer]]\nplace = \"{ZONE_RECLAIM}\"\nerrno = \"EIO\"\n"));
    let start = tree.snapshot();
    apply_first(&tree, &PERSIST);
    let before = tree.snapshot();
    let applied = apply_instead(&tree, &second(), &PERSIST);
    assert_eq!(applied.exit, Exit::FailedRestored);
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    assert_eq!(state(&tree, 1), EntryState::Open);
    undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn files_have_the_lines_of_the_new_one_alone_and_go_with_it() {
    for (options, kept) in [(NOW, false), (PERSIST, true)] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_first(&tree, &PERSIST);
        let plan = instead(&tree.session(), &second(), 1).expect("a plan");
        let files = &plan.instead_of.as_ref().expect("an entry").files;
        assert_eq!(files, &[SYSCTL_FILE.to_owned(), TMPFILES_FILE.to_owned()]);
        assert_eq!(apply_instead(&tree, &second(), &options).exit, Exit::Done);
        let lines = tree.get(SYSCTL_FILE);
        assert_eq!(lines.contains("vm.swappiness = 10"), kept, "{lines}");
        assert!(!lines.contains("dirty") && tree.get(TMPFILES_FILE).is_empty(), "{lines}");
        tree.reboot(&start);
        assert_eq!(tree.get(SWAPPINESS), if kept { "10\n" } else { "60\n" });
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "kept: {kept}");
    }
}

#[test]
fn an_old_entry_that_a_file_brought_back_is_taken_over_too() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &PERSIST);
    tree.reboot(&start);
    assert_eq!(apply_instead(&tree, &second(), &NOW).exit, Exit::Done);
    let values = [SWAPPINESS, STAT_INTERVAL, DIRTY_RATIO].map(|place| tree.get(place));
    assert_eq!(values, ["10\n", "20\n", "20\n"]);
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn pages_change_hands_and_only_the_rest_is_raised_or_given_back() {
    for (had, wanted, options) in [(8, 5, NOW), (5, 8, NOW), (6, 6, NOW), (8, 5, PERSIST), (5, 8, PERSIST)] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let of = |name: &str, count: u64| {
            profile(name, &[("hugepages.2m", pages(count, 1)), ("vm.swappiness", Want::Int(10))])
        };
        let session = tree.session();
        apply(&session, &plan_of(&session, &of("first", had)), &options).expect("applied");
        assert_eq!(tree.get(&pool(1)), format!("{had}\n"));
        let plan = instead(&session, &of("second", wanted), 1).expect("a plan");
        let step = plan.steps.iter().find(|step| step.undo == Undo::Subtract).expect("a pool");
        assert_eq!(
            (step.raise_pages, step.takes_pages),
            (Some(wanted.saturating_sub(had)), Some(had.min(wanted)))
        );
        let pools = &plan.instead_of.as_ref().expect("an entry").pools;
        let [going] = pools.as_slice() else { panic!("{pools:?}") };
        assert_eq!((going.pool.asked, going.pool.granted), (had, had));
        assert_eq!((going.taken_over, going.handed_back), (had.min(wanted), had.saturating_sub(wanted)));
        let applied = apply(&session, &plan, &options).expect("applied");
        assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.hints);
        assert_eq!(tree.get(&pool(1)), format!("{wanted}\n"), "{had} -> {wanted}");
        let held: Vec<u64> = tree.entries().iter().map(|entry| entry.steps[0].pages_held()).collect();
        assert_eq!(held, [0, wanted], "{had} -> {wanted}");
        if options.persist {
            assert!(tree.get(TMPFILES_FILE).contains(&format!(" {wanted}\n")), "{}", tree.get(TMPFILES_FILE));
            tree.reboot(&start);
            assert_eq!(tree.get(&pool(1)), format!("{wanted}\n"));
        }
        tree.edit(&pool(1), &(wanted + 2).to_string());
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(tree.get(&pool(1)), "2\n", "somebody else's stay");
        tree.edit(&pool(1), "0");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{had} -> {wanted}");
    }
}

/// A service that runs keeps its pages: what was planned while all of them were idle is not what comes.
#[test]
fn pages_in_use_stay_with_the_old_entry_and_are_told_by_what_happened() {
    let tree = Tree::new();
    let session = tree.session();
    let free = |pages: u64| {
        let whole = "/sys/kernel/mm/hugepages/hugepages-2048kB";
        tree.put(&pool(1).replace("nr_hugepages", "free_hugepages"), &format!("{pages}\n"));
        tree.put(&format!("{whole}/free_hugepages"), &format!("{}\n", pages + 3));
        tree.put(&format!("{whole}/resv_hugepages"), "0\n");
    };
    let of = |name: &str, count: u64| profile(name, &[("hugepages.2m", pages(count, 1))]);
    let told = |pools: &[PoolGoing]| -> Vec<(Option<u64>, u64, u64, Option<u64>)> {
        let of = |going: &PoolGoing| (going.pool.used, going.taken_over, going.handed_back, going.in_use);
        pools.iter().map(of).collect()
    };
    let planned = |plan: &Plan| told(&plan.instead_of.as_ref().expect("an entry").pools);
    apply(&session, &plan_of(&session, &of("first", 8)), &NOW).expect("applied");
    free(8);
    let idle = instead(&session, &of("second", 3), 1).expect("a plan");
    assert_eq!(planned(&idle), [(Some(0), 3, 5, Some(0))]);
    free(2);
    let busy = instead(&session, &of("second", 3), 1).expect("a plan");
    assert_eq!(planned(&busy), [(Some(6), 3, 2, Some(3))]);
    let applied = apply(&session, &idle, &NOW).expect("applied");
    assert_eq!(told(&applied.pools), [(Some(6), 3, 2, Some(3))]);
    assert_eq!((applied.exit, tree.get(&pool(1)).as_str()), (Exit::Findings, "6\n"), "{:#?}", applied.hints);
    assert_eq!(state(&tree, 1), EntryState::Open);
    let held: Vec<u64> = tree.entries().iter().map(|entry| entry.steps[0].pages_held()).collect();
    assert_eq!(held, [3, 3]);
    free(6);
    assert_eq!(undo_entry(&tree, 1).exit, Exit::Done);
    assert_eq!(
        (state(&tree, 1), tree.get(&pool(1)).as_str()),
        (EntryState::Closed(Closure::Replaced), "3\n")
    );
}

/// An undo brings back what was there before both entries, and its table says so.
#[test]
fn what_was_before_in_a_pool_is_not_what_the_old_entry_had_there() {
    let tree = Tree::new();
    let session = tree.session();
    let of = |name: &str, count: u64| profile(name, &[("hugepages.2m", pages(count, 1))]);
    apply(&session, &plan_of(&session, &of("first", 5)), &NOW).expect("applied");
    for (name, count, old) in [("second", 3, 1), ("third", 4, 2)] {
        let plan = instead(&session, &of(name, count), old).expect("a plan");
        apply(&session, &plan, &NOW).expect("applied");
    }
    let undone = undo_entry(&tree, 3);
    let before = undone.before[0].steps[0].original().map(|original| original.value.trim());
    assert_eq!((before, tree.get(&pool(1)).as_str()), (Some("0"), "0\n"));
}

/// What was asked for, granted, is used and lies idle, of each entry: what is idle is the newest one's.
#[test]
fn each_entry_is_told_what_it_has_of_a_pool_and_whether_anybody_uses_it() {
    let tree = Tree::new();
    let whole = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let session = tree.session();
    for (name, count) in [("first", 8), ("second", 5)] {
        let source = profile(name, &[("hugepages.2m", pages(count, 1))]);
        apply(&session, &plan_of(&session, &source), &NOW).expect("applied");
    }
    let told = |free: &str, reserved: &str| {
        tree.put(&format!("{whole}/free_hugepages"), free);
        tree.put(&format!("{whole}/resv_hugepages"), reserved);
        let pools = check(&tree.session(), None).expect("checked").pools;
        pools.iter().map(|pool| (pool.asked, pool.granted, pool.used, pool.idle)).collect::<Vec<_>>()
    };
    let (all, some) = (told("13\n", "0\n"), told("9\n", "2\n"));
    assert_eq!(all.iter().map(|pool| pool.3).collect::<Vec<_>>(), [Some(8), Some(5)]);
    assert_eq!(some, [(8, 8, Some(6), Some(2)), (5, 5, Some(0), Some(5))]);
}

#[test]
fn a_value_that_a_third_entry_covers_stays_with_that_one() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &NOW);
    let session = tree.session();
    let third = profile("third", &[("vm.dirty_bytes", Want::Int(1 << 28)), ("vm.swappiness", Want::Int(5))]);
    apply(&session, &plan_of(&session, &third), &NOW).expect("applied");
    assert_eq!(apply_instead(&tree, &second(), &NOW).exit, Exit::Done);
    assert_eq!([DIRTY_BYTES, SWAPPINESS].map(|place| tree.get(place)), ["268435456\n", "10\n"]);
    for id in [2, 3] {
        undo_entry(&tree, id);
    }
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().iter().all(|entry| !entry.is_open()));
}

#[test]
fn an_entry_whose_place_cannot_be_taken_is_named_with_the_reason() {
    let tree = Tree::new();
    let session = tree.session();
    assert!(matches!(instead(&session, &second(), 7), Err(PipelineError::Journal(_))), "no such entry");
    apply_first(&tree, &NOW);
    let nothing = profile("nothing", &[("vm.zone_reclaim_mode", Want::Int(1))]);
    let why = refused(instead(&session, &nothing, 1));
    assert!(why.contains("writes nothing besides; planish undo 1"), "{why}");
    undo_entry(&tree, 1);
    let why = refused(instead(&session, &second(), 1));
    assert!(why.contains("it holds nothing any more"), "{why}");
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..NOW };
    let watched = without_watcher(&tree);
    apply(&watched, &plan_of(&watched, &first()), &on_trial).expect("applied");
    let why = refused(instead(&session, &second(), 2));
    assert!(why.contains("waits for a confirm; planish confirm, or planish undo 2"), "{why}");
    confirm(&session).expect("confirmed");
    apply(&session, &instead(&session, &second(), 2).expect("a plan"), &NOW).expect("applied");
    let why = refused(instead(&session, &second(), 2));
    assert!(why.contains("entry 3 took its place already"), "{why}");
}

/// Neither what the old entry had set nor what the new one wants: that nobody asked for.
#[test]
fn a_value_that_the_new_one_wants_and_may_not_set_is_refused() {
    const OVERCOMMIT: &str = "/proc/sys/vm/overcommit_memory";
    let tree = Tree::new();
    tree.put(OVERCOMMIT, "0\n");
    let (session, id) = (tree.session(), "vm.overcommit_memory");
    let wants = |name, value| profile(name, &[(id, Want::Int(value)), ("vm.swappiness", Want::Int(10))]);
    let allowed = PlanOptions { allow_knobs: vec![KnobId::new(id)], ..PlanOptions::default() };
    let old = plan(&session, &wants("first", 1), &allowed).expect("a plan");
    apply(&session, &old, &NOW).expect("applied");
    let instead_of = Some(EntryId(1));
    let with =
        |options: PlanOptions| plan(&session, &wants("second", 1), &PlanOptions { instead_of, ..options });
    let why = refused(with(PlanOptions::default()));
    assert!(why.contains("second wants `1` there, which it does not set"), "{why}");
    assert!(why.ends_with("--exclude vm.overcommit_memory"), "{why}");
    let parts = |plan: Plan| {
        let step = plan.steps.iter().find(|step| step.place == OVERCOMMIT);
        step.and_then(|step| step.part)
    };
    assert_eq!(parts(with(allowed).expect("allowed")), Some(Part::TakenOver));
    let given_up = PlanOptions { exclude: vec![id.to_owned()], ..PlanOptions::default() };
    assert_eq!(parts(with(given_up).expect("given up")), Some(Part::Back));
}

/// Those of the old entry are one run of arguments, which goes as a whole: what both want is in the new one's by then.
#[test]
fn boot_parameters_go_with_the_old_entry_and_those_that_both_want_stay() {
    const SKEW: &str = "boot.skew_tick";
    const RCU: &str = "boot.rcupdate_rcu_normal_after_boot";
    let parameters = |name: &str, ids: &[&str]| {
        let ids = ids.iter().map(|id| (*id, Want::Int(1)));
        profile(name, &ids.chain([("vm.swappiness", Want::Int(10))]).collect::<Vec<_>>())
    };
    for (name, make) in boot::all() {
        for (new, reboots) in
            [(&[RCU][..], false), (&[SKEW], false), (&[SKEW, RCU], false), (&[SKEW, RCU], true)]
        {
            let told = format!("{name} {new:?} {reboots}");
            let tree = make();
            tree.reboot(&tree.snapshot());
            let start = tree.snapshot();
            let old = plan_of(&tree.session(), &parameters("first", &[SKEW]));
            apply(&tree.session(), &old, &PERSIST).expect("applied");
            if reboots {
                // An entry of an earlier boot holds no value of the running host.
                let cmdline = tree.get("/proc/cmdline");
                tree.put("/proc/cmdline", &format!("{} skew_tick=1\n", cmdline.trim_end()));
            }
            let plan = instead(&tree.session(), &parameters("second", new), 1).expect("a plan");
            let applied = apply(&tree.session(), &plan, &PERSIST).expect("applied");
            // A recorded host makes no menu anew.
            assert!(applied.exit == Exit::Done || reboots, "{told}: {:#?}", applied);
            let strange = applied.hints.iter().find(|hint| hint.contains("differs otherwise"));
            assert_eq!(strange, None, "{told}: what differs is its own");
            let texts = tree.snapshot();
            let lines = || {
                let files = texts.iter().filter(|(path, _)| !path.starts_with("/proc"));
                files.flat_map(|(_, text)| text.lines()).filter(|line| !line.trim_start().starts_with('#'))
            };
            for (id, word) in [(SKEW, "skew_tick=1"), (RCU, "rcupdate.rcu_normal_after_boot=1")] {
                let most = lines().map(|line| line.matches(word).count()).max();
                assert_eq!(most, Some(usize::from(new.contains(&id))), "{told}: {word}");
            }
            let again = plan_of(&tree.session(), &parameters("second", new));
            assert_eq!((again.steps.len(), again.boot.len()), (0, 0), "{told}");
            undo(&tree.session(), Target::All, false).expect("undone");
            if !reboots {
                assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{told}");
            }
        }
    }
}

/// A kill after all is written, and before the old entry has gone: to undo that one by its number is to end it.
#[test]
fn an_undo_of_the_old_entry_ends_what_a_kill_left() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &NOW);
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..NOW };
    apply_instead(&tree, &second(), &on_trial);
    let why = refused(instead(&tree.session(), &second(), 1));
    assert!(why.contains("entry 2 is about to take its place; planish confirm, or planish undo 2"), "{why}");
    undo_entry(&tree, 1);
    assert_eq!(state(&tree, 1), EntryState::Closed(Closure::Replaced));
    assert_eq!(tree.get(STAT_INTERVAL), "20\n", "it is the new one's");
    confirm(&tree.session()).expect("confirmed");
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A kill after the last write, and before the old entry has gone: whoever types the same once more ends it.
#[test]
fn the_same_apply_and_a_confirm_end_what_a_kill_left() {
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..PERSIST };
    for options in [PERSIST, on_trial] {
        let waits = options.confirm_seconds.is_some();
        let prepared = || {
            let tree = Tree::new();
            let start = tree.snapshot();
            apply_first(&tree, &PERSIST);
            let plan = instead(&tree.session(), &second(), 1).expect("a plan");
            if waits {
                apply(&without_watcher(&tree), &plan, &options).expect("applied");
            }
            (tree, start, plan)
        };
        let run = |session: &Session, plan: &Plan| match waits {
            true => confirm(session).map(|done| done.exit),
            false => apply(session, plan, &options).map(|done| done.exit),
        };
        let counter = Fuse::counting();
        let (tree, _, plan) = prepared();
        run(&fused(tree.options(), &counter), &plan).expect("it ends");
        let mut left = 0;
        for operation in 0..counter.operations() {
            let (tree, start, plan) = prepared();
            let session = fused(tree.options(), &Fuse::at(operation, Moment::Before));
            assert!(until_killed(|| run(&session, &plan).expect("killed")).is_none());
            let [old, new] =
                [1, 2].map(|id| tree.entries().into_iter().find(|entry| entry.id == EntryId(id)));
            if new.is_none_or(|new| new.state != EntryState::Open) || !old.expect("an entry").is_open() {
                continue;
            }
            left += 1;
            let when = format!("waits: {waits}, killed before operation {operation}");
            assert_eq!(check(&tree.session(), None).expect("a look").exit, Exit::Findings, "{when}");
            assert_eq!(run(&tree.session(), &plan).expect("once more"), Exit::Done, "{when}");
            assert_eq!(state(&tree, 1), EntryState::Closed(Closure::Replaced), "{when}");
            assert_eq!(check(&tree.session(), None).expect("a look").exit, Exit::Done, "{when}");
            let lines = tree.get(SYSCTL_FILE);
            assert!(lines.contains("vm.stat_interval = 20") && !lines.contains("dirty"), "{when}: {lines}");
            undo(&tree.session(), Target::All, false).expect("undone");
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{when}");
        }
        assert!(left > 3, "{left}");
    }
}

/// Nobody looks into the log of a machine that goes on running: check tells it, and that the old entry stays.
#[test]
fn an_apply_or_an_undo_that_a_kill_cut_is_named_by_check() {
    let named = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("a look");
        let told = checked
            .interrupted
            .first()
            .map(|cut| (cut.entry.0, cut.how == Half::Undone, cut.old.map(|id| id.0)));
        (told, checked.exit)
    };
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &NOW);
    assert_eq!(named(&tree), (None, Exit::Done));
    let plan = instead(&tree.session(), &second(), 1).expect("a plan");
    let killed = fused(tree.options(), &Fuse::at(6, Moment::After));
    assert!(until_killed(|| apply(&killed, &plan, &NOW)).is_none());
    drop(killed);
    assert_eq!(named(&tree), (Some((2, false, Some(1))), Exit::Findings));
    let killed = fused(tree.options(), &Fuse::at(3, Moment::After));
    assert!(until_killed(|| undo(&killed, Target::Newest, false)).is_none());
    drop(killed);
    assert_eq!(named(&tree), (Some((2, true, None)), Exit::Findings));
    let lock = HostLock::acquire(&tree.root().join("var/lib/planish/lock"), std::time::Duration::ZERO);
    assert_eq!(named(&tree), (None, Exit::Done), "who has the lock is at work on it");
    drop(lock.expect("free"));
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(named(&tree), (None, Exit::Done));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// An older planish must not read it as an entry beside another: it would put the wrong originals back.
#[test]
fn a_journal_with_it_is_of_a_newer_format() {
    let tree = Tree::new();
    apply_first(&tree, &NOW);
    let old = tree.get("/var/lib/planish/journal.jsonl");
    assert!(!old.contains("\"v\":2"), "what an older one understands stays as it was");
    apply_instead(&tree, &second(), &NOW);
    let text = tree.get("/var/lib/planish/journal.jsonl");
    let intents: Vec<&str> = text.lines().filter(|line| line.contains("\"instead_of\":1")).collect();
    assert!(intents.len() == 1 && intents[0].contains("\"v\":2"), "{intents:?}");
}

/// Its original is what the entry before it had left; what the host brings by itself is what was before both.
#[test]
fn what_was_taken_over_is_lost_at_the_next_boot_like_what_was_written() {
    for options in [NOW, PERSIST] {
        let tree = Tree::new();
        apply_first(&tree, &options);
        assert_eq!(apply_instead(&tree, &second(), &NOW).exit, Exit::Done);
        let checked = check(&tree.session(), None).expect("a look");
        let lost = checked.drift.knobs.iter().filter(|row| row.state == DriftState::LostAtBoot);
        let lost: Vec<&str> = lost.map(|row| row.place.as_str()).collect();
        assert_eq!(lost, [STAT_INTERVAL, SWAPPINESS, ZONE_RECLAIM], "persisted before: {}", options.persist);
    }
}

#[test]
fn an_entry_that_took_a_place_can_be_replaced_as_any_other() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_first(&tree, &NOW);
    assert_eq!(apply_instead(&tree, &second(), &NOW).exit, Exit::Done);
    assert!(
        tree.entries()[1].steps.iter().any(|step| step.part == Some(Part::Back) && step.undone.is_some())
    );
    let third = profile("third", &[("vm.swappiness", Want::Int(10)), ("vm.dirty_bytes", Want::Int(1 << 28))]);
    let session = tree.session();
    let plan = instead(&session, &third, 2).expect("a plan");
    assert_eq!(apply(&session, &plan, &NOW).expect("applied").exit, Exit::Done);
    assert_eq!(state(&tree, 2), EntryState::Closed(Closure::Replaced));
    assert_eq!([STAT_INTERVAL, DIRTY_BYTES].map(|place| tree.get(place)), ["1\n", "268435456\n"]);
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    let before = undone.before[0].steps.iter().find(|step| step.place == SWAPPINESS).expect("a step");
    assert_eq!(before.original().expect("one").value.trim(), "60", "what it goes back to is told so");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

const WATCHDOG: &str = "/proc/sys/kernel/watchdog";
const NMI_WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";

/// The step of its own wrote nothing, since a step before it had the kernel set it: it goes back with that one.
#[test]
fn a_value_of_its_own_that_another_step_had_caused_goes_back_with_that_one() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    let wants = [("kernel.watchdog", Want::Int(0)), ("kernel.nmi_watchdog", Want::Int(0))];
    let session = tree.session();
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let first = plan(&session, &profile("first", &wants), &allowed).expect("a plan");
    apply(&session, &first, &NOW).expect("applied");
    assert_eq!([WATCHDOG, NMI_WATCHDOG].map(|place| tree.get(place)), ["0\n", "0\n"]);
    let other = profile("second", &[("vm.swappiness", Want::Int(10))]);
    assert_eq!(apply_instead(&tree, &other, &NOW).exit, Exit::Done);
    assert_eq!([WATCHDOG, NMI_WATCHDOG].map(|place| tree.get(place)), ["1\n", "1\n"]);
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// What the kernel derived from the old entry goes with it: the new one writes it behind that.
#[test]
fn what_the_kernel_derived_from_the_old_entry_is_written_by_the_new_one() {
    for newest_first in [true, false] {
        let tree = Tree::copy_of("metal-2s");
        let start = tree.snapshot();
        let session = tree.session();
        let first = plan_of(&session, &profile("first", &[("thp.enabled", word("never"))]));
        apply(&session, &first, &NOW).expect("applied");
        let derived = tree.get(MIN_FREE);
        let wanted = Want::Int(derived.trim().parse().expect("a number"));
        let second =
            profile("second", &[("vm.min_free_kbytes", wanted), ("vm.stat_interval", Want::Int(10))]);
        let options = PlanOptions {
            instead_of: Some(EntryId(1)),
            allow_classes: vec![Class::Availability],
            ..PlanOptions::default()
        };
        let session = tree.session();
        let planned = plan(&session, &second, &options).expect("a plan");
        let done = apply(&session, &planned, &NOW).expect("applied");
        assert_eq!(done.exit, Exit::Done, "{:#?}", done.hints);
        assert_eq!((tree.get(MIN_FREE), tree.get(THP)), (derived, start[THP].clone()));
        if !newest_first {
            let above = profile("above", &[("vm.stat_interval", Want::Int(20))]);
            let session = tree.session();
            apply(&session, &plan_of(&session, &above), &NOW).expect("applied");
            assert_eq!(undo_entry(&tree, 2).exit, Exit::Done);
        }
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// Knobs that were applied under an allowance are judged so afterwards.
#[test]
fn check_asks_for_what_was_allowed_then() {
    let tree = Tree::new();
    let session = tree.session();
    let source =
        profile("allowed", &[("vm.overcommit_memory", Want::Int(1)), ("vm.swappiness", Want::Int(10))]);
    tree.put("/proc/sys/vm/overcommit_memory", "0\n");
    let allow_knobs = vec![KnobId::new("vm.overcommit_memory")];
    let options = PlanOptions { allow_knobs: allow_knobs.clone(), ..PlanOptions::default() };
    let plan = plan(&session, &source, &options).expect("a plan");
    assert_eq!((plan.steps.len(), &plan.allowed.knobs), (2, &allow_knobs), "{:#?}", plan.skipped);
    let rows = |when: &str| {
        let checked = check(&tree.session(), Some(&source)).expect("a look");
        let found = checked.drift.knobs.iter().find(|row| row.knob.as_str() == "vm.overcommit_memory");
        found.unwrap_or_else(|| panic!("{when}: {:#?}", checked.drift)).clone()
    };
    apply(&session, &plan, &NOW).expect("applied");
    assert_eq!(tree.entries()[0].allowed.knobs, allow_knobs);
    assert_eq!(rows("applied").running.as_deref(), Some("1"));
    tree.edit("/proc/sys/vm/overcommit_memory", "0");
    let row = rows("drifted");
    assert_eq!((row.state, row.wanted.as_deref()), (DriftState::Drift, Some("1")), "{row:#?}");
}

/// A row of one's own is gone from the catalogue: that is no typing error of who checks.
#[test]
fn check_goes_on_where_a_knob_that_was_allowed_is_known_no_more() {
    let tree = Tree::new();
    let session = tree.session();
    let mut plan = plan_of(&session, &first());
    plan.allowed.knobs.push(KnobId::new("my.laptop"));
    apply(&session, &plan, &NOW).expect("applied");
    let checked = check(&tree.session(), Some(&first())).expect("a look");
    assert!(checked.drift.knobs.iter().all(|row| row.state != DriftState::Drift));
}
