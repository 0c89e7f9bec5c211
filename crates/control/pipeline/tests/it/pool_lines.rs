//! Lines of ours that give pools their pages at the next boot, beside those that others have for them.

use planish_model::{DriftState, EntryId, Exit, Nodes, Want};
use planish_pipeline::{ApplyOptions, Source, Target, apply, check, undo};

use crate::boot::{DEFAULTS, debian};
use crate::life::undo_all;
use crate::pools::{LINE, of_pool, set, sizes, write_line};
use crate::tree::*;

/// Our line is read behind that of others, and sets the whole pool: it has their pages, whenever and wherever they
/// came.
#[test]
fn a_line_of_ours_has_what_a_line_of_others_gives_since() {
    let into_ours = |tree: &Tree| tree.put("/etc/sysctl.d/90-planish.conf", "vm.nr_hugepages = 40\n");
    let for_the_kernel = |tree: &Tree| {
        let menu = tree.get("/boot/grub/grub.cfg");
        tree.put("/boot/grub/grub.cfg", &menu.replace("ro quiet\n", "ro quiet hugepagesz=2M hugepages=40\n"));
        tree.put(DEFAULTS, "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet hugepagesz=2M hugepages=40\"\n");
    };
    let ways: [&dyn Fn(&Tree); 3] = [&|tree| write_line(tree, 40), &into_ours, &for_the_kernel];
    for write in ways {
        for other in [of_pool("a", 0, 16), of_pool("b", 0, 8)] {
            has_what_others_give(write, &other);
        }
    }
}

/// A line of ours, then one that `write` gives 20 pages of to each of two nodes; `other` is applied behind it.
fn has_what_others_give(write: &dyn Fn(&Tree), other: &Source) {
    let line = |tree: &Tree| {
        let text = tree.get(TMPFILES_FILE);
        text.trim().rsplit(' ').next().map(str::to_owned).expect("a number")
    };
    let keep = |tree: &Tree, source: &Source| {
        apply(&tree.session(), &plan_of(&tree.session(), source), &PERSIST).expect("applied")
    };
    let state = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.place == pool(0)).expect("a row");
        (row.state, row.because.unwrap_or_default())
    };
    let tree = debian();
    set(&tree, [0, 0]);
    keep(&tree, &of_pool("a", 0, 16));
    let before: u64 = line(&tree).parse().expect("a number");
    write(&tree);
    set(&tree, [28, 12]);
    let (lost, because) = state(&tree);
    assert_eq!(lost, DriftState::LostAtBoot, "{because}");
    assert!(because.contains("gives 20 besides ours"), "{because}");
    keep(&tree, other);
    let (now, because) = state(&tree);
    assert_eq!(now, DriftState::Ok, "{because}");
    let raised: u64 = line(&tree).parse().expect("a number");
    assert!(raised >= 20 + 16 && raised > before, "{before} {raised}");
    keep(&tree, other);
    assert_eq!(line(&tree), raised.to_string());
}

/// Pages that a line of others gave go out of ours with that line.
#[test]
fn a_line_of_ours_is_as_large_as_lines_of_others_are_now() {
    let tree = Tree::new();
    set(&tree, [0, 0]);
    let source = of_pool("a", 0, 16);
    let keep = || apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    let line = || tree.get(TMPFILES_FILE).trim().rsplit(' ').next().map(str::to_owned).expect("a number");
    keep();
    let first = line();
    write_line(&tree, 400);
    keep();
    assert_eq!(line(), "216");
    tree.remove(LINE);
    keep();
    assert_eq!(line(), first);
}

/// The newest look at the files of others counts, whoever's entry it was and whether it is undone.
#[test]
fn an_undo_leaves_a_line_of_ours_what_others_give_now() {
    let tree = Tree::new();
    set(&tree, [0, 0]);
    let keep = |name: &str| {
        let source = of_pool(name, 0, 16);
        apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    };
    let line = || tree.get(TMPFILES_FILE).trim().rsplit(' ').next().map(str::to_owned).expect("a number");
    let undo_newest = || {
        let id = tree.entries().last().expect("an entry").id;
        let undone = undo(&tree.session(), Target::Entry(id), false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{undone:#?}");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{}", line());
        line()
    };
    keep("a");
    let alone = line();
    write_line(&tree, 400);
    set(&tree, [216, 200]);
    keep("b");
    assert_eq!(line(), "232");
    assert_eq!(undo_newest(), "216");
    keep("b");
    tree.remove(LINE);
    keep("c");
    undo(&tree.session(), Target::Entry(EntryId(3)), false).expect("undone");
    assert_eq!(undo_newest(), alone);
}

/// A line of ours without pages of ours would be one of others that nobody wrote.
#[test]
fn our_file_goes_with_the_last_pages_that_are_ours() {
    let tree = Tree::new();
    set(&tree, [0, 0]);
    let source = of_pool("a", 0, 16);
    let keep = || apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    keep();
    write_line(&tree, 40);
    keep();
    let undone = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone");
    assert_eq!(tree.get(TMPFILES_FILE), "", "{undone:#?}");
    let checked = check(&tree.session(), None).expect("checked");
    assert_eq!(checked.exit, Exit::Done, "{:#?}", checked.drift.knobs);
    undo_all(&tree);
    assert_eq!(tree.get(TMPFILES_FILE), "");
}

/// Nobody asks for what our line gives besides ours once the line of others is gone.
#[test]
fn a_line_of_ours_that_outlives_one_of_others_is_told() {
    let tree = Tree::new();
    set(&tree, [20, 20]);
    write_line(&tree, 40);
    let source = of_pool("a", 0, 16);
    let keep = || apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    keep();
    tree.remove(LINE);
    let state = || {
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.place == pool(0)).expect("a row");
        (row.state, row.because.unwrap_or_default())
    };
    let (drifted, because) = state();
    assert_eq!(drifted, DriftState::Drift, "{because}");
    assert!(because.contains("17 of them were for others") && because.contains("--persist"), "{because}");
    keep();
    assert_eq!(state().0, DriftState::Ok, "{}", state().1);
}

/// A profile that counts the pages of others has as many at the next boot, whoever gives them by then.
#[test]
fn a_size_in_all_stays_where_a_line_of_others_goes() {
    let tree = Tree::new();
    set(&tree, [20, 20]);
    write_line(&tree, 40);
    let (total_bytes, nodes) = (30 << 21, Nodes::Each(vec![0]));
    let source = profile("all", &[("hugepages.2m", Want::Total { total_bytes, nodes })]);
    let keep = || apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    let line = || tree.get(TMPFILES_FILE).trim().rsplit(' ').next().map(str::to_owned).expect("a number");
    let is_well = || {
        let checked = check(&tree.session(), Some(&source)).expect("checked");
        assert_eq!(checked.exit, Exit::Done, "{:#?}", checked.drift.knobs);
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    };
    keep();
    assert_eq!((line().as_str(), sizes(&tree)), ("30", [30, 20]));
    is_well();
    tree.remove(LINE);
    is_well();
    // Applied again it is as large.
    keep();
    assert_eq!(line(), "30");
    is_well();
    // An entry of another profile takes nothing of it, and has its own beside it.
    apply(&tree.session(), &plan_of(&tree.session(), &of_pool("more", 0, 4)), &PERSIST).expect("applied");
    assert_eq!((line().as_str(), sizes(&tree)), ("34", [34, 20]));
    undo(&tree.session(), Target::Entry(EntryId(2)), false).expect("undone");
    assert_eq!((line().as_str(), sizes(&tree)), ("30", [30, 20]));
    // The next boot has nothing of others, and the undo says what stays of theirs.
    let mut start = tree.snapshot();
    start.insert(pool(0), "30\n".to_owned());
    start.insert(pool(1), "0\n".to_owned());
    tree.reboot(&start);
    is_well();
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, sizes(&tree)), (Exit::Done, [20, 0]), "{undone:#?}");
    // Three are of the command line.
    let told = "17 of these pages the file had for others";
    assert!(undone.hints.iter().any(|hint| hint.contains(told)), "{:#?}", undone.hints);
}

/// Lines of other profiles are in the file already, and count as pages of others do: none of them comes twice.
#[test]
fn sizes_in_all_of_two_profiles_are_no_sum() {
    let line = |tree: &Tree| tree.get(TMPFILES_FILE).trim().rsplit(' ').next().map(str::to_owned);
    for first in [in_all("first", 20), of_pool("first", 0, 10)] {
        for is_kept in [true, false] {
            let tree = Tree::new();
            let start = tree.snapshot();
            set(&tree, [0, 0]);
            let options = if is_kept { PERSIST } else { ApplyOptions::default() };
            apply(&tree.session(), &plan_of(&tree.session(), &first), &options).expect("applied");
            let second = in_all("second", 40);
            for _ in 0..2 {
                apply(&tree.session(), &plan_of(&tree.session(), &second), &PERSIST).expect("applied");
                assert_eq!(sizes(&tree).iter().sum::<u64>(), 40);
                assert_eq!(line(&tree).as_deref(), Some(sizes(&tree)[1].to_string().as_str()), "{is_kept}");
            }
            if is_kept {
                assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
            }
            undo_all(&tree);
            assert_eq!(tree.get(TMPFILES_FILE), start.get(TMPFILES_FILE).cloned().unwrap_or_default());
            assert_eq!(sizes(&tree), [0, 0]);
        }
    }
}

fn in_all(name: &str, pages: u64) -> Source {
    let (total_bytes, nodes) = (pages << 21, Nodes::Spread);
    profile(name, &[("hugepages.2m", Want::Total { total_bytes, nodes })])
}

/// A host on which nothing gives pages at a boot.
fn bare() -> Tree {
    let tree = Tree::new();
    tree.put(CMDLINE, "quiet\n");
    set(&tree, [0, 0]);
    tree
}

fn keep(tree: &Tree, source: &Source) {
    apply(&tree.session(), &plan_of(&tree.session(), source), &PERSIST).expect("applied");
}

fn lines_of_ours(tree: &Tree) -> Vec<u64> {
    let text = tree.get(TMPFILES_FILE);
    let lines = text.lines().filter(|line| line.starts_with("w! "));
    lines.map(|line| line.rsplit(' ').next().and_then(|pages| pages.parse().ok()).expect("pages")).collect()
}

/// The lines of `others` are there, and nobody has loaded them: what they give is part of the size, and comes with the
/// next boot. Where it is more than the size, nothing comes on top of it.
#[test]
fn a_size_in_all_is_no_sum_with_a_line_that_waits_for_the_boot() {
    for (others, lines, left) in [(8, [10, 10], [4, 4]), (24, [12, 12], [12, 12])] {
        let tree = bare();
        let start = tree.snapshot();
        write_line(&tree, others);
        let source = in_all("all", 20);
        keep(&tree, &source);
        assert_eq!((sizes(&tree), lines_of_ours(&tree)), ([10, 10], lines.to_vec()), "{others}");
        let is_well = || {
            for of in [None, Some(&source)] {
                let checked = check(&tree.session(), of).expect("checked");
                assert_eq!(checked.exit, Exit::Done, "{others}: {:#?}", checked.drift.knobs);
            }
        };
        is_well();
        tree.reboot(&start);
        set(&tree, lines);
        is_well();
        keep(&tree, &source);
        assert_eq!((sizes(&tree), lines_of_ours(&tree), tree.entries().len()), (lines, lines.to_vec(), 1));
        // The pages of others are not taken back.
        undo_all(&tree);
        assert_eq!(sizes(&tree), left, "{others}");
    }
}

/// What a boot brings a size in all is what was missing of it, and the rest of the line is for whoever came behind it.
#[test]
fn a_need_behind_a_size_in_all_has_all_of_its_own_after_a_boot() {
    let tree = bare();
    let start = tree.snapshot();
    keep(&tree, &in_all("all", 41));
    write_line(&tree, 8);
    keep(&tree, &of_pool("a", 0, 16));
    assert_eq!((sizes(&tree), lines_of_ours(&tree)), ([37, 20], vec![20, 37]));
    tree.reboot(&start);
    set(&tree, [37, 20]);
    let checked = check(&tree.session(), None).expect("checked");
    let rows = checked.drift.knobs.iter().filter(|row| [pool(0), pool(1)].contains(&row.place));
    assert!(rows.clone().all(|row| row.state == DriftState::Ok), "{:#?}", rows.collect::<Vec<_>>());
}

/// What others wrote in this boot, and an apply saw, was not there when the boot loaded our line.
#[test]
fn a_line_of_others_takes_nothing_of_what_a_boot_brought_before_it() {
    let tree = bare();
    let start = tree.snapshot();
    keep(&tree, &of_pool("a", 0, 16));
    tree.reboot(&start);
    write_line(&tree, 8);
    keep(&tree, &of_pool("b", 0, 4));
    assert_eq!((sizes(&tree), lines_of_ours(&tree)), ([20, 0], vec![24]));
    let checked = check(&tree.session(), None).expect("checked");
    assert_eq!(checked.exit, Exit::Done, "{:#?}", checked.drift.knobs);
    keep(&tree, &of_pool("a", 0, 16));
    assert_eq!((sizes(&tree), tree.entries().len()), ([20, 0], 2));
}

/// Pages that were raised for this boot alone are in no line that was there before them, loaded or not. Whoever writes
/// one for all that is there has made them last; and a size in all is there, whosever pages they are.
#[test]
fn a_line_of_others_holds_ours_only_where_it_was_written_for_them() {
    const OF_NODE: &str = "/etc/tmpfiles.d/50-db.conf";
    type Way<'a> = (u64, &'a dyn Fn(&Tree, u64));
    let of_all = |tree: &Tree, pages: u64| write_line(tree, pages);
    let of_node = |tree: &Tree, pages: u64| tree.put(OF_NODE, &format!("w {} - - - - {pages}\n", pool(0)));
    let state = |before: Option<(u64, [u64; 2])>, source: &Source, now: u64, write: &dyn Fn(&Tree, u64)| {
        let tree = bare();
        if let Some((pages, loaded)) = before {
            write(&tree, pages);
            set(&tree, loaded);
        }
        let plan = plan_of(&tree.session(), source);
        apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
        write(&tree, now);
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.place == pool(0)).expect("a row");
        (row.state, row.because.unwrap_or_default())
    };
    let (ours, all) = (of_pool("a", 0, 16), in_all("all", 32));
    let ways: [Way<'_>; 2] = [(2, &of_all), (1, &of_node)];
    for (nodes, write) in ways {
        // By node 0: 20 of others, of which none or all are there; as before, for more, and for all that is there.
        let unloaded = Some((20 * nodes, [0, 0]));
        let loaded = Some((20 * nodes, [20, 20]));
        for (before, now, expected) in [
            (unloaded, 20, DriftState::LostAtBoot),
            (loaded, 20, DriftState::LostAtBoot),
            (loaded, 35, DriftState::LostAtBoot),
            (loaded, 36, DriftState::Ok),
            (None, 16, DriftState::Ok),
            (None, 15, DriftState::LostAtBoot),
        ] {
            let (seen, because) = state(before, &ours, now * nodes, write);
            assert_eq!(seen, expected, "{before:?} {now}: {because}");
            let is_told = because.contains("as it did before entry 1 raised the pool");
            assert_eq!(is_told, before == unloaded, "{because}");
        }
        for (now, expected) in [(16, DriftState::Ok), (15, DriftState::LostAtBoot)] {
            let (seen, because) = state(unloaded, &all, now * nodes, write);
            assert_eq!(seen, expected, "{now}: {because}");
        }
    }
}

/// Of one path systemd takes the first line alone, and our file is read before those whose names begin with a letter.
#[test]
fn lines_of_others_behind_ours_are_in_ours() {
    const BEHIND: &str = "/etc/tmpfiles.d/hugepages.conf";
    let of_others = |pages: u64| format!("w {} - - - - {pages}\n", pool(0));
    let source = of_pool("a", 0, 16);
    let is_well = |tree: &Tree| check(&tree.session(), Some(&source)).expect("checked").exit == Exit::Done;
    let persist = |tree: &Tree| {
        let plan = plan_of(&tree.session(), &source);
        apply(&tree.session(), &plan, &PERSIST).expect("applied").exit
    };
    let tree = Tree::new();
    set(&tree, [20, 0]);
    tree.put(BEHIND, &of_others(20));
    assert_eq!(persist(&tree), Exit::Done);
    assert!(tree.get(TMPFILES_FILE).trim_end().ends_with(" 36") && is_well(&tree));
    // One that comes later is told, and the same apply makes room for it.
    let tree = Tree::new();
    set(&tree, [0, 0]);
    assert_eq!(persist(&tree), Exit::Done);
    // The command line gives three of them.
    assert!(tree.get(TMPFILES_FILE).trim_end().ends_with(" 19"), "{}", tree.get(TMPFILES_FILE));
    tree.put(BEHIND, &of_others(20));
    assert!(!is_well(&tree));
    persist(&tree);
    assert!(tree.get(TMPFILES_FILE).trim_end().ends_with(" 36"), "{}", tree.get(TMPFILES_FILE));
}

/// A line of others for all nodes is written behind ours where its file is read behind ours; of one for the node
/// itself the first one counts.
#[test]
fn a_line_of_ours_that_loses_is_told_and_takes_nothing() {
    let whole = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let source = of_pool("a", 0, 16);
    for (file, place, pages) in [
        ("/etc/tmpfiles.d/hugepages.conf", whole, 40),
        ("/etc/tmpfiles.d/50-db.conf", &*pool(0), 20),
        ("/etc/tmpfiles.d/50-db.conf", &*pool(0), 400),
    ] {
        let tree = Tree::new();
        set(&tree, [20, 20]);
        tree.put(file, &format!("w {place} - - - - {pages}\n"));
        let plan = plan_of(&tree.session(), &source);
        apply(&tree.session(), &plan, &PERSIST).expect("applied");
        let checked = check(&tree.session(), Some(&source)).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.place == pool(0)).expect("a row");
        let because = row.because.unwrap_or_default();
        assert_eq!((checked.exit, row.state), (Exit::Findings, DriftState::LostAtBoot), "{file}: {because}");
        assert!(because.contains(file) && because.contains("by our line"), "{because}");
        undo_all(&tree);
        assert_eq!(sizes(&tree), [20, 20]);
    }
}

/// The kernel reads a number of sysctl by its first characters.
#[test]
fn a_line_of_others_counts_whatever_its_number_is_written_in() {
    for text in ["0x28", "050", "40", "40 # of the database"] {
        let tree = Tree::new();
        set(&tree, [0, 0]);
        tree.put(LINE, &format!("vm.nr_hugepages = {text}\n"));
        let source = of_pool("a", 0, 16);
        apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
        let line = tree.get(TMPFILES_FILE);
        assert!(line.trim_end().ends_with(" 36"), "{text}: {line}");
    }
}
