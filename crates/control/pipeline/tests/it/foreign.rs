//! A file for the next boot that somebody else wrote, edited or removed: nothing of theirs is lost, and the cures lead
//! out.

use planish_model::{DriftState, EntryId, Exit, Want};
use planish_pipeline::{ApplyOptions, PipelineError, Target, apply, check, undo};

use crate::boot::{debian, more, persist, wants};
use crate::tree::*;

#[test]
fn a_file_of_someone_else_is_refused_or_kept() {
    let tree = Tree::new();
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    tree.put(SYSCTL_FILE, "vm.swappiness = 99\n");
    let plan = plan_of(&tree.session(), &everything());
    let error = apply(&tree.session(), &plan, &options).expect_err("theirs");
    assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error}");
    assert_eq!(tree.get(SWAPPINESS), "60\n");
    tree.remove(SYSCTL_FILE);
    apply(&tree.session(), &plan, &options).expect("applied");
    tree.put(SYSCTL_FILE, "# edited\n");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings);
    assert_eq!(tree.get(SYSCTL_FILE), "# edited\n");
}

/// A state folder that was thrown away leaves the files: who moves one away is not to learn of the next one by the next
/// apply.
#[test]
fn all_files_that_a_lost_journal_leaves_in_the_way_are_told_at_once() {
    let tree = debian();
    apply(&tree.session(), &plan_of(&tree.session(), &wants()), &PERSIST).expect("applied");
    std::fs::remove_dir_all(tree.root().join("var/lib/planish")).expect("a tree of ours");
    let other = [("boot.rcupdate_rcu_normal_after_boot", Want::Int(1)), ("vm.swappiness", Want::Int(20))];
    let plan = plan_of(&tree.session(), &profile("other", &other));
    let before = tree.snapshot();
    let error = apply(&tree.session(), &plan, &PERSIST).expect_err("whose they are nobody knows");
    let asked = planish_pipeline::persisted(&tree.session(), &plan).expect_err("the same");
    let trial = planish_pipeline::can_persist(&tree.session(), &plan).expect_err("the same");
    let told = error.to_string();
    assert_eq!(
        (error.exit(), asked.to_string(), trial.to_string()),
        (Exit::Refused, told.clone(), told.clone())
    );
    let files: Vec<&str> = told.split("; ").filter_map(|line| line.split(' ').next()).collect();
    assert!(files.len() > 1 && files.contains(&SYSCTL_FILE), "{told}");
    let hints = error.hints();
    assert_eq!(hints.len(), files.len(), "{hints:?}");
    for (file, hint) in files.iter().zip(&hints) {
        assert!(told.contains(&format!("{file} exists, and no open entry")), "{told}");
        assert!(hint.contains(&format!("mv -n {file} ")), "{hint}");
    }
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
}

/// Whoever closed a file to others has a reason: what is left of it stays so.
#[test]
fn a_file_with_a_line_of_someone_else_keeps_its_mode() {
    let tree = Tree::new();
    apply(&tree.session(), &plan_of(&tree.session(), &everything()), &PERSIST).expect("applied");
    assert_eq!(tree.mode(SYSCTL_FILE), 0o644);
    tree.set_mode(SYSCTL_FILE, 0o600);
    tree.put(SYSCTL_FILE, &format!("{}kernel.theirs = 1\n", tree.get(SYSCTL_FILE)));
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((tree.get(SYSCTL_FILE).contains("theirs"), tree.mode(SYSCTL_FILE)), (true, 0o600));
}

/// The cures are typed as they are told, and lead out.
#[test]
fn a_file_of_ours_that_someone_edited_or_removed_is_refused_with_a_way_out() {
    for theirs in [Some("# edited\n"), None] {
        let tree = Tree::new();
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        apply(&tree.session(), &plan_of(&tree.session(), &everything()), &options).expect("applied");
        match theirs {
            Some(text) => tree.put(SYSCTL_FILE, text),
            None => tree.remove(SYSCTL_FILE),
        }
        let more = plan_of(&tree.session(), &profile("more", &[("vm.swappiness", Want::Int(33))]));
        let error = apply(&tree.session(), &more, &options).expect_err("not as planish left it");
        assert_eq!(
            error.to_string(),
            format!("{SYSCTL_FILE} is not as planish left it: someone edited or removed it")
        );
        let way_out = "it holds lines of entry 1: take them back first: planish undo 1 (with --force, what was written \
                       into it since goes, too)";
        assert_eq!(error.hints(), [way_out]);
        undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("told");
        let again = plan_of(&tree.session(), &profile("more", &[("vm.swappiness", Want::Int(33))]));
        if theirs.is_some() {
            let error = apply(&tree.session(), &again, &options).expect_err("it is theirs");
            assert_eq!(
                error.hints(),
                ["move it away first: mv -n /etc/sysctl.d/90-planish.conf \
                     /etc/sysctl.d/50-was-90-planish.conf (which keeps in force what others wrote, save where a later \
                     file says otherwise; to 90-planish.conf.mine ends that)"]
            );
            tree.remove(SYSCTL_FILE);
        }
        apply(&tree.session(), &again, &options).expect("applied");
        assert!(tree.get(SYSCTL_FILE).contains("vm.swappiness = 33\n"));
    }
}

/// Moved away once, it is in the way of the next time: the name is another one, and what was written later counts.
#[test]
fn a_file_that_is_moved_aside_gets_a_name_that_is_free_and_stays_in_force() {
    let aside = |folder: &str, number: u32| format!("/etc/{folder}/{number}-was-90-planish.conf");
    let cure = |tree: &Tree| {
        let plan = plan_of(&tree.session(), &everything());
        apply(&tree.session(), &plan, &PERSIST).expect_err("theirs").hints().concat()
    };
    let moved = |tree: &Tree, file: &str| {
        let hint = cure(tree);
        let command = hint.strip_prefix("move it away first: mv -n ").unwrap_or_else(|| panic!("{hint}"));
        let (from, rest) = command.split_once(' ').expect("two names");
        let (to, rest) = rest.split_once(" (").expect("what it does");
        assert_eq!(from, file);
        assert!(tree.root().join(&to[1..]).symlink_metadata().is_err(), "{to} is free");
        tree.put(to, &tree.get(from));
        tree.remove(from);
        (to.to_owned(), rest.to_owned())
    };
    let tree = Tree::new();
    for (number, value) in [(50, "51"), (51, "52"), (52, "53")] {
        tree.put(SYSCTL_FILE, &format!("vm.stat_interval = {value}\n"));
        assert_eq!(moved(&tree, SYSCTL_FILE).0, aside("sysctl.d", number));
        let want = profile("one", &[("vm.stat_interval", Want::Int(1))]);
        let checked = check(&tree.session(), Some(&want)).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.place == STAT_INTERVAL).expect("a row");
        let next = row.next_boot.as_ref().map(|next| next.value.as_str());
        assert_eq!(next, Some(value), "the last one counts");
    }
    // A gap, a link that leads nowhere, and the other name.
    tree.remove(&aside("sysctl.d", 51));
    tree.put(SYSCTL_FILE, "# theirs\n");
    tree.put("/etc/sysctl.d/90-planish.conf.mine", "# mine\n");
    let link = tree.root().join(&aside("sysctl.d", 53)[1..]);
    std::os::unix::fs::symlink("/nowhere", link).expect("ours");
    let (to, rest) = moved(&tree, SYSCTL_FILE);
    assert_eq!(to, aside("sysctl.d", 54));
    assert!(rest.ends_with("to 90-planish.conf.mine2 ends that)"), "{rest}");
    // Of tmpfiles.d the first line counts.
    for number in [50, 49, 48] {
        tree.put(TMPFILES_FILE, &format!("# theirs, {number}\n"));
        assert_eq!(moved(&tree, TMPFILES_FILE).0, aside("tmpfiles.d", number));
    }
    // Where none is free that is read before ours, it goes out of force.
    tree.put(&aside("sysctl.d", 89), "# theirs\n");
    tree.put(SYSCTL_FILE, "# theirs\n");
    assert_eq!(cure(&tree), format!("move it away first: mv -n {SYSCTL_FILE} {SYSCTL_FILE}.mine2"));
}

const GRUB_FILE: &str = "/etc/default/grub.d/90-planish.cfg";

/// A file of ours with lines of others beside ours, above them, and behind them without an end.
fn with_note(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(1, "# note of the admin");
    format!("# above\n{}\n# behind", lines.join("\n"))
}

#[test]
fn lines_of_ours_go_out_of_a_file_that_others_wrote_into_and_theirs_stay() {
    let tree = debian();
    let start = tree.snapshot();
    persist(&tree, &wants());
    let files = [GRUB_FILE, SYSCTL_FILE];
    files.iter().for_each(|file| tree.put(file, &with_note(&tree.get(file))));
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{:?}", undone.hints);
    for file in files {
        assert_eq!(tree.get(file), "# above\n# note of the admin\n# behind", "{file}");
        let told = format!("{file}: it differs otherwise from what it was before: that was kept");
        assert!(undone.hints.iter().any(|hint| hint.starts_with(&told)), "{:?}", undone.hints);
        tree.remove(file);
    }
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.place == "cmdline:skew_tick").expect("a row");
    assert_eq!((row.state, &row.wanted), (DriftState::Ok, &None));
    assert_eq!(checked.exit, Exit::Done);
    // The folder that was made for it had a file of theirs.
    assert_eq!(differences(&start, &tree.snapshot()), ["/etc/default/grub.d/"]);
}

#[test]
fn of_two_entries_in_such_a_file_each_takes_its_own_lines_in_any_order() {
    for first in [1, 2] {
        let tree = debian();
        persist(&tree, &wants());
        persist(&tree, &more());
        tree.put(GRUB_FILE, &with_note(&tree.get(GRUB_FILE)));
        let undone = undo(&tree.session(), Target::Entry(EntryId(first)), false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{:?}", undone.hints);
        let now = tree.get(GRUB_FILE);
        assert!(now.starts_with("# above\n# Written by planish") && now.ends_with("# behind"), "{now}");
        assert_eq!((now.contains("skew_tick"), now.contains("rcupdate")), (first == 2, first == 1), "{now}");
        let undone = undo(&tree.session(), Target::Entry(EntryId(3 - first)), false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{:?}", undone.hints);
        assert_eq!(tree.get(GRUB_FILE), "# above\n# note of the admin\n# behind");
    }
}

#[test]
fn what_an_undone_entry_left_in_a_line_that_somebody_changed_is_told_until_it_is_gone() {
    let tree = debian();
    persist(&tree, &wants());
    tree.put(GRUB_FILE, &tree.get(GRUB_FILE).replace("skew_tick=1", "skew_tick=1 quiet"));
    tree.put(SYSCTL_FILE, &tree.get(SYSCTL_FILE).replace("vm.swappiness = 10", "vm.swappiness = 15"));
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings, "{:?}", undone.hints);
    let line = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT skew_tick=1 quiet\"\n";
    assert_eq!(
        (tree.get(GRUB_FILE).as_str(), tree.get(SYSCTL_FILE).as_str()),
        (line, "vm.swappiness = 15\n")
    );
    let checked = check(&tree.session(), None).expect("checked");
    assert_eq!(checked.exit, Exit::Findings);
    let told: Vec<String> =
        checked.carried_over.iter().map(|line| format!("{line}; {}", line.cure())).collect();
    assert_eq!(
        told,
        [format!(
            "{GRUB_FILE}:1 gives `skew_tick=1` to later boots: entry 1 gave it, which is undone, and somebody had \
             changed the line before; take `skew_tick=1` out of {GRUB_FILE}:1"
        )]
    );
    // Force takes what they changed, and the entry is done with.
    let forced = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone");
    assert_eq!(forced.exit, Exit::Done, "{:?}", forced.hints);
    assert_eq!((tree.get(GRUB_FILE).as_str(), tree.get(SYSCTL_FILE).as_str()), ("", ""));
    assert_eq!(check(&tree.session(), None).expect("checked").carried_over, []);
}
