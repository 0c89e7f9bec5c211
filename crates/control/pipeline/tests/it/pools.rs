//! Pools of huge pages, which belong to everybody: pages in use, pools that others lower, their lines for all nodes.

use planish_model::{Closure, DriftState, EntryId, EntryState, Exit, Nodes, OutcomeKind, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Session, Source, Target, apply, check, plan, undo};

use crate::faults::{Fuse, MOMENTS, fused, until_killed};
use crate::life::{apply_here, undo_all};
use crate::tree::*;

#[test]
fn pages_in_use_keep_the_entry_open() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_here(&tree, &everything());
    let free = pool(1).replace("nr_", "free_");
    tree.put(&free, "2\n");
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Findings);
    assert_eq!((tree.get(&pool(0)).as_str(), tree.get(&pool(1)).as_str()), ("3\n", "6\n"));
    assert!(undone.hints.iter().any(|hint| hint.contains("6 of 8 pages are in use")), "{:?}", undone.hints);
    assert!(tree.entries()[0].is_open());
    tree.put(&free, "6\n");
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// As a line `vm.nr_hugepages = 3` does that is loaded again.
#[test]
fn a_pool_that_somebody_lowered_keeps_the_pages_of_others() {
    for again in [false, true] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_here(&tree, &everything());
        tree.edit(&pool(0), "3");
        let checked = check(&tree.session(), Some(&everything())).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.place == pool(0)).expect("a row");
        let because = "3 of 11 pages are there: someone lowered the pool to 3 pages since";
        assert_eq!((row.state, row.because.as_deref()), (DriftState::Drift, Some(because)));
        if again {
            let applied = apply_here(&tree, &everything());
            assert_eq!((applied.exit, tree.get(&pool(0)).as_str()), (Exit::Done, "11\n"), "{applied:#?}");
            let undone = undo(&tree.session(), Target::Entry(EntryId(2)), false).expect("undone");
            assert_eq!((undone.exit, tree.get(&pool(0)).as_str()), (Exit::Done, "3\n"), "{undone:#?}");
        }
        let undone = undo_all(&tree);
        assert_eq!(undone.exit, Exit::Findings, "{:#?}", undone.entries);
        let told = "others had 3 when it was raised, so that 0 of 8 pages are ours still";
        assert!(undone.hints.iter().any(|hint| hint.contains(told)), "{:?}", undone.hints);
        let of_pool = undone.entries.iter().flat_map(|(_, outcomes)| outcomes);
        let left =
            of_pool.filter(|outcome| outcome.place == pool(0) && outcome.outcome == OutcomeKind::Theirs);
        let left: Vec<Option<&str>> =
            left.map(|outcome| outcome.read_back.as_deref().map(str::trim)).collect();
        assert_eq!(left, [Some("3")]);
        assert_eq!(undone.kept, None, "there is nothing to force");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

/// A pool of one node, and nothing else.
pub fn of_pool(name: &str, node: u32, pages: u64) -> Source {
    let need_bytes = pages << 21;
    profile(name, &[("hugepages.2m", Want::Need { need_bytes, nodes: Nodes::Each(vec![node]) })])
}

/// The plan of a pool that was lowered is the one that raised it, to the number of its hash.
#[test]
fn the_same_plan_raises_a_pool_again_that_somebody_lowered() {
    let tree = Tree::new();
    let source = of_pool("a", 0, 16);
    apply_here(&tree, &source);
    for there in ["11", "3"] {
        tree.edit(&pool(0), there);
        let applied = apply_here(&tree, &source);
        assert_eq!(
            (applied.exit, tree.get(&pool(0)).as_str()),
            (Exit::Done, "19\n"),
            "{there}: {applied:#?}"
        );
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.place == pool(0)).expect("a row");
        assert_ne!(row.state, DriftState::Drift, "{there}: {row:#?}");
    }
    undo_all(&tree);
    assert_eq!(tree.get(&pool(0)), "3\n");
}

/// What older entries held when a newer one raised the pool is not what they had asked for.
#[test]
fn an_undo_takes_no_pages_of_others_beside_an_entry_that_came_short() {
    let tree = Tree::answering(&format!("[[answer]]\nplace = \"{}\"\nclamp = {{ max = 4 }}\n", pool(1)));
    tree.edit(&pool(1), "1");
    let applied = apply_here(&tree, &of_pool("big", 1, 16));
    assert_eq!(applied.exit, Exit::Findings, "{applied:#?}");
    tree.put("/meta.toml", &tree.get("/meta.toml").replace("max = 4 ", "max = 29 "));
    let applied = apply_here(&tree, &of_pool("b", 1, 8));
    assert_eq!(tree.get(&pool(1)), "12\n", "{applied:#?}");
    tree.edit(&pool(1), "1");
    undo_all(&tree);
    assert_eq!(tree.get(&pool(1)), "1\n");
}

pub const LINE: &str = "/etc/sysctl.d/99-db.conf";

/// What a line says that somebody writes.
pub fn write_line(tree: &Tree, pages: u64) {
    tree.put(LINE, &format!("vm.nr_hugepages = {pages}\n"));
}

/// An entry that has raised node 0 by 16 beside others, before somebody wrote a line for all nodes, which may have made
/// these sizes of the pools.
fn before_a_line(others: [u64; 2], line: u64, loaded: Option<[u64; 2]>) -> Tree {
    let tree = Tree::new();
    set(&tree, others);
    apply_here(&tree, &of_pool("a", 0, 16));
    write_line(&tree, line);
    loaded.into_iter().for_each(|pages| set(&tree, pages));
    tree
}

/// What somebody else makes of the pools, however many pages their kernel gives at once.
pub fn set(tree: &Tree, pages: [u64; 2]) {
    while sizes(tree) != pages {
        (0..).zip(pages).for_each(|(node, pages)| tree.edit(&pool(node), &pages.to_string()));
    }
}

pub fn sizes(tree: &Tree) -> [u64; 2] {
    [0, 1].map(|node| tree.get(&pool(node)).trim().parse().expect("pages"))
}

/// What a line had not got when we raised the pools, it lacks without us, too: a boot did not give it, or it waits for
/// the next one.
#[test]
fn an_undo_beside_a_line_that_was_there_before_takes_what_the_apply_raised() {
    for (others, line) in [([5, 5], 10), ([5, 5], 20), ([5, 5], 4096), ([0, 0], 8)] {
        let tree = Tree::new();
        set(&tree, others);
        write_line(&tree, line);
        apply_here(&tree, &of_pool("a", 0, 16));
        apply_here(&tree, &of_pool("b", 1, 16));
        assert_eq!(sizes(&tree), [others[0] + 16, others[1] + 16]);
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, others), "{line}: {undone:#?}");
    }
}

/// The same line is loaded behind the raise, or the pools are as if it had been: page for page what it gives.
#[test]
fn an_undo_leaves_what_a_line_that_was_there_before_gives_once_it_was_loaded() {
    for (others, line, loaded, left) in [
        ([5, 5], 20, Some([14, 6]), [14, 6]),
        ([5, 5], 12, Some([9, 3]), [9, 3]),
        // Others had all of theirs, and the kernel takes from where they had them.
        ([10, 10], 20, Some([17, 3]), [17, 3]),
        // Not all that it gave was there.
        ([5, 5], 40, Some([26, 9]), [26, 9]),
        ([5, 11], 32, None, [21, 11]),
        // Somebody else raised a pool, and may have loaded it.
        ([5, 5], 40, Some([21, 6]), [21, 6]),
    ] {
        let tree = Tree::new();
        set(&tree, others);
        write_line(&tree, line);
        apply_here(&tree, &of_pool("a", 0, 16));
        loaded.into_iter().for_each(|pages| set(&tree, pages));
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, left), "{others:?} {line}: {undone:#?}");
        // Of a pool that has no more than others had nothing is ours any more.
        let is_left = left.iter().sum::<u64>() > others.iter().sum();
        assert_eq!(tree.entries()[0].is_open(), is_left, "{others:?} {line}");
        undo(&tree.session(), Target::All, true).expect("forced");
        assert!(!tree.entries()[0].is_open(), "{others:?} {line}");
    }
}

#[test]
fn a_pool_that_was_lowered_before_the_raise_is_no_sign_of_a_load() {
    let tree = Tree::new();
    set(&tree, [0, 0]);
    apply_here(&tree, &of_pool("a", 0, 16));
    set(&tree, [10, 0]);
    write_line(&tree, 4096);
    apply_here(&tree, &of_pool("b", 1, 16));
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [10, 0]), "{undone:#?}");
}

/// Of two readers of the same files the one counts that gives more.
#[test]
fn a_line_counts_also_where_only_one_of_two_readers_has_it_last() {
    for (file, text) in [
        ("/etc/sysctl.conf", "vm.nr_hugepages = 0\n"),
        ("/etc/sysctl.d/98-a.conf", "vm.nr_hugepages = 0x1a\nvm.nr_huge* = 3\n"),
        ("/etc/sysctl.d/90-planish.conf", "vm.nr_hugepages = 032\n"),
    ] {
        let tree = before_a_line([5, 5], 26, Some([20, 6]));
        tree.put(file, text);
        if !file.ends_with("/sysctl.conf") {
            tree.remove(LINE);
        }
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, [20, 6]), "{file}: {undone:#?}");
    }
}

/// A line gave others 10 pages on each node, an entry raised node 0 by 16 for good, and the host was started anew: its
/// pools have these sizes since.
fn after_a_boot_beside_a_line(now: [u64; 2]) -> Tree {
    let tree = Tree::new();
    let start = tree.snapshot();
    set(&tree, [10, 10]);
    write_line(&tree, 20);
    apply(&tree.session(), &plan_of(&tree.session(), &of_pool("a", 0, 16)), &PERSIST).expect("applied");
    tree.reboot(&start);
    write_line(&tree, 20);
    set(&tree, now);
    tree
}

/// Every boot loads what lines there are, and ours behind them.
#[test]
fn in_a_later_boot_a_line_that_was_there_before_was_loaded() {
    for (now, exit, left) in [([26, 10], Exit::Done, [10, 10]), ([17, 3], Exit::Findings, [17, 3])] {
        let tree = after_a_boot_beside_a_line(now);
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (exit, left), "{now:?}: {undone:#?}");
    }
}

const OF_LINE: &str = "/etc/sysctl.d/99-db.conf:1 gives all nodes together";

/// Whoever loads a line for all nodes means all pages that are there. What he is left he has until the line is gone, or
/// until it is forced.
#[test]
fn an_undo_leaves_what_a_line_of_others_gives_all_nodes_since() {
    for (line, loaded, left, held) in [
        // More than there was, all of it and as far as memory went, and not yet loaded.
        (40, Some([28, 12]), [28, 12], 16),
        (40, Some([24, 9]), [24, 9], 16),
        (40, None, [21, 5], 16),
        // Somebody raised them further; as many as there were; fewer.
        (40, Some([34, 12]), [28, 12], 10),
        (26, None, [21, 5], 16),
        (12, None, [7, 5], 2),
        // Who lowered them by it has what is left.
        (20, Some([15, 5]), [15, 5], 10),
    ] {
        for force in [true, false] {
            let tree = before_a_line([5, 5], line, loaded);
            for _ in 0..2 {
                let undone = undo_all(&tree);
                assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, left), "{undone:#?}");
                let told = format!("{held} pages stay, since {OF_LINE} {line} pages; ");
                assert!(undone.hints.iter().any(|hint| hint.contains(&told)), "{told}: {:?}", undone.hints);
                assert!(tree.entries()[0].is_open());
            }
            if !force {
                tree.remove(LINE);
            }
            let undone = undo(&tree.session(), Target::Entry(EntryId(1)), force).expect("undone");
            let end = [left[0] - held, left[1]];
            assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, end), "{undone:#?}");
            assert!(!tree.entries()[0].is_open());
        }
    }
}

/// Whoever has it loaded: `systemd-tmpfiles --create`, `tuned-adm profile`.
#[test]
fn an_undo_leaves_what_others_give_by_whatever_way_they_do() {
    const TMPFILES: &str = "/etc/tmpfiles.d/hugepages.conf";
    let whole = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let tmpfiles = |lines: &[(&str, u64)]| {
        let line = |(place, pages): &(&str, u64)| format!("w {place} - - - - {pages}\n");
        vec![(TMPFILES.to_owned(), lines.iter().map(line).collect::<String>())]
    };
    let tuned = |profile: &str| {
        let files = [
            ("/proc/812/comm", "tuned\n"),
            ("/etc/tuned/active_profile", "mine\n"),
            ("/etc/tuned/mine/tuned.conf", profile),
        ];
        files.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec()
    };
    for (by, files) in [
        (TMPFILES, tmpfiles(&[(whole, 40)])),
        (TMPFILES, tmpfiles(&[(&pool(0), 28), (&pool(1), 12)])),
        (TMPFILES, tmpfiles(&[("/proc/sys/vm/nr_hugepages", 40)])),
        ("tuned", tuned("[sysctl]\nvm.nr_hugepages=40\n")),
        ("tuned", tuned("[vm]\ntransparent_hugepages=never\n[sysctl]\nvm.nr_hugepages = 0x28\n")),
    ] {
        let tree = Tree::new();
        set(&tree, [5, 5]);
        apply_here(&tree, &of_pool("a", 0, 16));
        files.iter().for_each(|(path, text)| tree.put(path, text));
        set(&tree, [28, 12]);
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, [28, 12]), "{files:?}: {undone:#?}");
        let told = |hint: &String| hint.contains(by) && hint.contains("gives all nodes together 40 pages");
        assert!(undone.hints.iter().any(told), "{:?}", undone.hints);
        // Without them the pages are ours to take.
        files.iter().for_each(|(path, _)| tree.remove(path));
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [12, 12]), "{files:?}: {undone:#?}");
    }
}

/// What others gave before the raise, and nobody has had written since, means none of ours.
#[test]
fn an_undo_beside_a_profile_that_was_active_before_takes_what_the_apply_raised() {
    let tree = Tree::new();
    tree.put("/proc/812/comm", "tuned\n");
    tree.put("/etc/tuned/active_profile", "mine\n");
    tree.put("/etc/tuned/mine/tuned.conf", "[sysctl]\nvm.nr_hugepages=40\n");
    set(&tree, [20, 20]);
    apply_here(&tree, &of_pool("a", 0, 16));
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [20, 20]), "{undone:#?}");
}

#[test]
fn a_line_that_gives_less_than_others_have_keeps_nothing_of_ours() {
    let tree = before_a_line([5, 5], 10, None);
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [5, 5]), "{undone:#?}");
}

/// What an undo left to a line is there for no apply.
#[test]
fn a_profile_that_a_line_has_the_pages_of_raises_its_own() {
    let tree = before_a_line([5, 5], 40, Some([28, 12]));
    undo_all(&tree);
    let applied = apply_here(&tree, &of_pool("a", 0, 16));
    assert_eq!((applied.exit, sizes(&tree)), (Exit::Done, [44, 12]), "{applied:#?}");
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [28, 12]), "{undone:#?}");
}

/// Others count first, also in a pool that was left to them.
#[test]
fn what_was_left_to_a_line_is_lowered_with_the_pool() {
    let tree = before_a_line([5, 5], 40, Some([28, 12]));
    undo_all(&tree);
    tree.remove(LINE);
    set(&tree, [8, 5]);
    let forced = undo(&tree.session(), Target::All, true).expect("undone");
    assert_eq!((forced.exit, sizes(&tree)), (Exit::Done, [5, 5]), "{forced:#?}");
}

#[test]
fn pages_in_use_are_told_beside_those_that_a_line_gives() {
    let tree = before_a_line([5, 5], 40, Some([34, 12]));
    let free = pool(0).replace("nr_", "free_");
    tree.put(&free, "2\n");
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, [32, 12]), "{undone:#?}");
    for told in [
        "4 of 6 pages are in use or reserved, 2 handed back, ",
        "10 pages stay, since /etc/sysctl.d/99-db.conf:1 ",
    ] {
        assert!(undone.hints.iter().any(|hint| hint.contains(told)), "{:?}", undone.hints);
    }
    tree.put(&free, "32\n");
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, [28, 12]), "{undone:#?}");
}

/// What changes hands between entries is no matter of a line, and is as old as it was.
#[test]
fn pages_that_another_entry_takes_over_are_its_own_before_a_line() {
    for (line, loaded, wanted, left, handed_back, to_line) in [
        (10, None, 8, [13, 5], 8, 0),
        (20, None, 8, [15, 5], 6, 2),
        (40, Some([28, 12]), 8, [28, 12], 0, 8),
        (40, Some([34, 12]), 8, [28, 12], 6, 2),
        // It raises the rest.
        (40, Some([28, 12]), 20, [32, 12], 0, 0),
    ] {
        let tree = before_a_line([5, 5], line, loaded);
        let session = tree.session();
        let options = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
        let plan = plan(&session, &of_pool("b", 0, wanted), &options).expect("a plan");
        let applied = apply(&session, &plan, &ApplyOptions::default()).expect("applied");
        let exit = if to_line > 0 { Exit::Findings } else { Exit::Done };
        assert_eq!((applied.exit, sizes(&tree)), (exit, left), "{line}: {applied:#?}");
        for pools in [&plan.instead_of.as_ref().expect("an entry").pools, &applied.pools] {
            let [going] = pools.as_slice() else { panic!("{pools:?}") };
            let told = (going.taken_over, going.handed_back, going.in_use.unwrap_or(0), going.claimed);
            assert_eq!(told, (wanted.min(16), handed_back, 0, to_line), "{line}");
        }
        let checked = check(&tree.session(), Some(&of_pool("b", 0, wanted))).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.place == pool(0)).expect("a row");
        assert_ne!(row.state, DriftState::Drift, "{line}: {row:?}");
        let named = applied.hints.iter().any(|hint| hint.contains(OF_LINE));
        assert_eq!(named, to_line > 0, "{line}: {:?}", applied.hints);
        undo_all(&tree);
        assert_eq!(sizes(&tree).iter().sum::<u64>(), line.max(10), "what the line gives, or others had");
        let forced = undo(&tree.session(), Target::All, true).expect("undone");
        let others = loaded.map_or([5, 5], |[first, second]| [first - 16, second]);
        assert_eq!((forced.exit, sizes(&tree)), (Exit::Done, others), "{line}: {forced:#?}");
    }
}

/// Pages that were raised a moment ago are none of a line that was there, whoever has those that are to be taken over.
#[test]
fn what_an_apply_raised_that_failed_goes_back_whole_beside_a_line() {
    let tree = before_a_line([5, 5], 40, Some([28, 12]));
    let meta = tree.get("/meta.toml");
    tree.put("/meta.toml", &format!("{meta}\n[[answer]]\nplace = \"{SWAPPINESS}\"\nerrno = \"EIO\"\n"));
    let need = Want::Need { need_bytes: 24 << 21, nodes: Nodes::Each(vec![0]) };
    let source = profile("b", &[("hugepages.2m", need), ("vm.swappiness", Want::Int(7))]);
    let session = tree.session();
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
    let plan = plan(&session, &source, &options).expect("a plan");
    let applied = apply(&session, &plan, &ApplyOptions::default()).expect("taken back");
    assert_eq!((applied.exit, sizes(&tree)), (Exit::FailedRestored, [28, 12]), "{applied:#?}");
}

/// Pages of an entry that was applied beside the line are beside what it gives.
#[test]
fn entries_on_both_sides_of_a_line_leave_what_it_gives() {
    for order in [[2, 1], [1, 2]] {
        let tree = before_a_line([5, 5], 40, Some([28, 12]));
        apply_here(&tree, &of_pool("b", 0, 8));
        assert_eq!(sizes(&tree), [36, 12]);
        for id in order {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            let exit = if id == 1 { Exit::Findings } else { Exit::Done };
            assert_eq!(undone.exit, exit, "{undone:#?}");
        }
        assert_eq!(sizes(&tree), [28, 12], "{order:?}");
    }
}

/// One that lowered two entries keeps what it left of both, however often they are undone.
#[test]
fn a_line_that_lowered_two_entries_has_its_pages_still_after_each_undo() {
    let tree = Tree::new();
    set(&tree, [5, 5]);
    apply_here(&tree, &of_pool("a", 0, 16));
    apply_here(&tree, &of_pool("b", 0, 8));
    write_line(&tree, 15);
    set(&tree, [10, 5]);
    for _ in 0..3 {
        undo_all(&tree);
        assert_eq!(sizes(&tree), [10, 5]);
    }
    undo(&tree.session(), Target::All, true).expect("undone");
    assert_eq!(sizes(&tree), [5, 5]);
}

/// Lowers a pool below what others and a new entry have in it: its undo takes what is left of ours, and no page of
/// others.
fn lose_some(tree: &Tree, [first, second]: [u64; 2], when: &str) {
    apply_here(tree, &of_pool("later", 0, 8));
    assert_eq!(sizes(tree), [first + 8, second], "{when}");
    set(tree, [first + 3, second]);
    let undone = undo_all(tree);
    assert_eq!((undone.exit, sizes(tree)), (Exit::Done, [first, second]), "{when}: {undone:#?}");
}

#[test]
fn a_kill_in_a_forced_undo_hides_no_later_loss() {
    let left = || {
        let tree = before_a_line([5, 5], 40, Some([28, 12]));
        undo_all(&tree);
        tree.remove(LINE);
        tree
    };
    let force = |session: &Session| undo(session, Target::Entry(EntryId(1)), true).expect("undone");
    let counter = Fuse::counting();
    force(&fused(left().options(), &counter));
    for operation in 0..counter.operations() {
        for moment in MOMENTS {
            let when = format!("killed {moment:?} operation {operation}");
            let tree = left();
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            assert!(until_killed(|| force(&session)).is_none(), "{when}");
            drop(session);
            assert_ne!(tree.entries()[0].state, EntryState::Closed(Closure::GoneWithReboot), "{when}");
            force(&tree.session());
            assert_eq!(sizes(&tree), [12, 12], "{when}");
            lose_some(&tree, [12, 12], &when);
        }
    }
}

#[test]
fn a_kill_before_a_reboot_hides_no_later_loss() {
    let apply_all = |session: &Session| {
        let plan = plan_of(session, &of_pool("a", 0, 16));
        apply(session, &plan, &ApplyOptions::default()).expect("applied")
    };
    let counter = Fuse::counting();
    apply_all(&fused(Tree::new().options(), &counter));
    for operation in 0..counter.operations() {
        for moment in MOMENTS {
            let when = format!("killed {moment:?} operation {operation}");
            let tree = Tree::new();
            let start = tree.snapshot();
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            assert!(until_killed(|| apply_all(&session)).is_none(), "{when}");
            drop(session);
            tree.reboot(&start);
            lose_some(&tree, [3, 0], &when);
        }
    }
}

/// What is left of an entry is given back by its own undo, whatever was written between the loss and that.
#[test]
fn what_is_left_of_a_lowered_pool_is_given_back() {
    let tree = Tree::new();
    tree.edit(&pool(0), "0");
    apply_here(&tree, &of_pool("a", 0, 16));
    apply_here(&tree, &of_pool("b", 0, 8));
    tree.edit(&pool(0), "12");
    apply_here(&tree, &profile("c", &[("vm.swappiness", Want::Int(7))]));
    for (entry, left) in [(2, "4\n"), (1, "0\n")] {
        let undone = undo(&tree.session(), Target::Entry(EntryId(entry)), false).expect("undone");
        assert_eq!((undone.exit, tree.get(&pool(0)).as_str()), (Exit::Done, left), "{undone:#?}");
    }
}

/// A plan tells as taken over what the apply takes over.
#[test]
fn what_is_left_of_a_lowered_pool_changes_hands() {
    let tree = Tree::new();
    tree.edit(&pool(0), "0");
    apply_here(&tree, &of_pool("a", 0, 16));
    tree.edit(&pool(0), "6");
    let session = tree.session();
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
    let plan = plan(&session, &of_pool("b", 0, 8), &options).expect("a plan");
    let applied = apply(&session, &plan, &ApplyOptions::default()).expect("applied");
    assert_eq!((applied.exit, tree.get(&pool(0)).as_str()), (Exit::Done, "8\n"), "{applied:#?}");
    undo_all(&tree);
    assert_eq!(tree.get(&pool(0)), "0\n");
}

#[test]
fn what_an_undo_left_to_a_line_is_wanted_by_nobody() {
    let tree = before_a_line([5, 5], 40, Some([28, 12]));
    assert_eq!(undo_all(&tree).exit, Exit::Findings);
    let state = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.place == pool(0));
        (checked.exit, row.map(|row| row.state))
    };
    set(&tree, [20, 8]);
    assert_eq!(state(&tree).0, Exit::Done, "{:?}", state(&tree));
    let source = of_pool("a", 0, 16);
    apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    assert_eq!(state(&tree), (Exit::Done, Some(DriftState::Ok)));
}

/// Applies a source with another entry going for it.
fn instead_of(tree: &Tree, source: &Source, id: u64, options: &ApplyOptions) {
    let session = tree.session();
    let asked = PlanOptions { instead_of: Some(EntryId(id)), ..PlanOptions::default() };
    let plan = plan(&session, source, &asked).expect("a plan");
    apply(&session, &plan, options).expect("applied");
}

/// A pool that the other one does not want has what others have there.
#[test]
fn a_pool_that_goes_whole_is_as_wanted() {
    let tree = Tree::new();
    set(&tree, [5, 5]);
    apply_here(&tree, &of_pool("a", 0, 16));
    let (need_bytes, nodes) = (vec![0, 8 << 21], vec![0, 1]);
    let other = profile("b", &[("hugepages.2m", Want::Needs { need_bytes, nodes })]);
    let asked = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
    let plan = plan(&tree.session(), &other, &asked).expect("a plan");
    let applied = apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    assert_eq!((applied.exit, sizes(&tree)), (Exit::Done, [5, 13]), "{applied:#?}");
}

/// Who takes pages over takes them with what they were raised beside, and with a load that came before.
#[test]
fn pages_that_change_hands_are_left_to_a_line_that_was_loaded_before() {
    for (pages, left) in [(24, [17, 3]), (16, [17, 3])] {
        let tree = Tree::new();
        set(&tree, [5, 5]);
        write_line(&tree, 20);
        apply_here(&tree, &of_pool("a", 0, 16));
        set(&tree, [17, 3]);
        instead_of(&tree, &of_pool("b", 0, pages), 1, &ApplyOptions::default());
        let undone = undo_all(&tree);
        assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, left), "{pages}: {undone:#?}");
    }
    // Every boot loads it.
    let tree = after_a_boot_beside_a_line([17, 3]);
    instead_of(&tree, &of_pool("b", 0, 16), 1, &PERSIST);
    undo_all(&tree);
    assert!(sizes(&tree).iter().sum::<u64>() >= 20, "{:?}", sizes(&tree));
    // Nobody has loaded it.
    let tree = Tree::new();
    set(&tree, [5, 5]);
    write_line(&tree, 20);
    apply_here(&tree, &of_pool("a", 0, 16));
    instead_of(&tree, &of_pool("b", 0, 24), 1, &ApplyOptions::default());
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [5, 5]), "{undone:#?}");
}

/// Two entries beside a line that the first of them had come to, page for page: whoever loaded it then changed nothing,
/// and has what it gives, in whatever order the entries go.
#[test]
fn a_line_that_one_entry_came_to_keeps_what_it_gives_behind_another_one() {
    let come_to_it = || {
        let tree = Tree::new();
        set(&tree, [5, 5]);
        write_line(&tree, 26);
        apply_here(&tree, &of_pool("a", 0, 16));
        tree
    };
    for order in [vec![1, 2], vec![2, 1], vec![1, 2, 1, 2]] {
        let tree = come_to_it();
        apply_here(&tree, &of_pool("b", 0, 8));
        assert_eq!(sizes(&tree), [29, 5]);
        for id in &order {
            undo(&tree.session(), Target::Entry(EntryId(*id)), false).expect("undone");
        }
        assert_eq!(sizes(&tree), [21, 5], "{order:?}");
        assert!(tree.entries().iter().any(planish_model::Entry::is_open), "{order:?}: what is left is told");
    }
    // The raise comes before the way back of the one that goes.
    for (node, left) in [(0, [21, 5]), (1, [21, 5])] {
        let tree = come_to_it();
        let before = sizes(&tree).iter().sum::<u64>();
        instead_of(&tree, &of_pool("b", node, 20), 1, &ApplyOptions::default());
        assert!(sizes(&tree).iter().sum::<u64>() >= before, "{:?}", sizes(&tree));
        let undone = undo_all(&tree);
        assert_eq!(undone.exit, Exit::Findings, "{undone:#?}");
        assert_eq!(sizes(&tree).iter().sum::<u64>(), left.iter().sum::<u64>(), "{undone:#?}");
    }
}

/// An heir that raises no pool of the size comes to no number on its way, nor does one that was taken back; and one
/// that waits for a confirm rests where its raise came to.
#[test]
fn an_heir_hides_no_number_that_pools_have_come_to() {
    let calm = profile("b", &[("vm.swappiness", Want::Int(7))]);
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..ApplyOptions::default() };
    let come_to_it = |others: [u64; 2], line: u64| {
        let tree = Tree::new();
        set(&tree, others);
        write_line(&tree, line);
        apply_here(&tree, &of_pool("a", 0, 16));
        tree
    };
    // It has no pool.
    let tree = come_to_it([5, 5], 26);
    instead_of(&tree, &calm, 1, &ApplyOptions::default());
    assert_eq!(sizes(&tree), [21, 5]);
    // It was taken back before its confirm.
    let tree = come_to_it([5, 5], 26);
    let session = crate::watch::without_watcher(&tree);
    let asked = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
    apply(&session, &plan(&session, &calm, &asked).expect("a plan"), &on_trial).expect("applied");
    undo(&session, Target::Entry(EntryId(2)), false).expect("undone");
    let undone = undo(&session, Target::Entry(EntryId(1)), false).expect("undone");
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Findings, [21, 5]), "{undone:#?}");
    // The line gives what its raise rests at until the confirm.
    let tree = come_to_it([5, 5], 34);
    let session = crate::watch::without_watcher(&tree);
    let plan = plan(&session, &of_pool("b", 0, 24), &asked).expect("a plan");
    apply(&session, &plan, &on_trial).expect("applied");
    assert_eq!(sizes(&tree).iter().sum::<u64>(), 34);
    planish_pipeline::confirm(&session).expect("confirmed");
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree).iter().sum::<u64>()), (Exit::Findings, 34), "{undone:#?}");
}

/// As an update of a package takes the file of a line away for a moment.
#[test]
fn pages_that_change_hands_while_a_line_is_away_are_left_to_it() {
    let tree = Tree::new();
    set(&tree, [5, 5]);
    write_line(&tree, 20);
    apply_here(&tree, &of_pool("a", 0, 16));
    set(&tree, [10, 10]);
    tree.remove(LINE);
    instead_of(&tree, &of_pool("b", 0, 24), 1, &ApplyOptions::default());
    write_line(&tree, 20);
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Findings, "{undone:#?}");
    assert!(sizes(&tree).iter().sum::<u64>() >= 20, "{:?}", sizes(&tree));
}

/// On its way an undo may come to what a line gives: by itself, and by no load.
#[test]
fn an_undo_of_two_pools_passes_the_number_of_a_line() {
    let tree = Tree::new();
    set(&tree, [0, 0]);
    write_line(&tree, 16);
    let need = Want::Need { need_bytes: 16 << 21, nodes: Nodes::Each(vec![0, 1]) };
    apply_here(&tree, &profile("a", &[("hugepages.2m", need)]));
    assert_eq!(sizes(&tree), [16, 16]);
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [0, 0]), "{undone:#?}");
}

#[test]
fn what_was_lowered_before_a_raise_counts_for_older_entries_alone_in_either_order() {
    for order in [[1, 2], [2, 1]] {
        let tree = Tree::new();
        set(&tree, [5, 5]);
        write_line(&tree, 14);
        apply_here(&tree, &of_pool("a", 0, 16));
        set(&tree, [11, 3]);
        apply_here(&tree, &of_pool("b", 1, 8));
        assert_eq!(sizes(&tree), [11, 11]);
        for id in order {
            undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
        }
        assert_eq!(sizes(&tree), [11, 3], "{order:?}");
        assert_eq!(tree.entries()[1].state, EntryState::Closed(Closure::Undone), "{order:?}");
    }
}
