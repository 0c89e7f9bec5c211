//! What nobody can tell of the next boot, and what no argument would reach the kernel by: said, and refused.

use planish_model::{DriftState, Exit, Want};
use planish_pipeline::{Checked, PipelineError, Source, Target, Undone, check, undo};

use crate::boot::{DEFAULTS, ENTRY, ENV, KERNEL_CMDLINE, debian, persist, refused, rocky, suse, wants};
use crate::loader::{FOLDER, started_by};
use crate::tree::*;

const STRAY: &str = "/boot/loader/entries/stray.conf";
const MENU: &str = "/boot/grub/grub.cfg";

fn thp() -> Source {
    profile("thp", &[("boot.transparent_hugepage", Want::Text("never".to_owned()))])
}

fn checked(tree: &Tree) -> Checked {
    check(&tree.session(), None).expect("checked")
}

fn undo_all(tree: &Tree) -> Undone {
    undo(&tree.session(), Target::All, false).expect("undone")
}

/// What a check says of the parameter that [`wants`] has.
fn skew_tick(checked: &Checked) -> (DriftState, String, Option<String>) {
    let row = checked.drift.knobs.iter().find(|row| row.place == "cmdline:skew_tick").expect("a row");
    let next = row.next_boot.as_ref().map(|next| next.value.clone());
    (row.state, row.because.clone().unwrap_or_default(), next)
}

#[test]
fn what_runs_is_not_ok_where_the_loader_cannot_be_read_any_more() {
    // Each file, and what it was cut down to.
    for file in [STRAY, ENTRY, MENU] {
        let tree = if file == MENU { debian() } else { rocky() };
        let start = tree.snapshot();
        persist(&tree, &wants());
        let mut given = tree.get(ENTRY);
        given = given.replace(" skew_tick=1", "");
        if file == STRAY {
            tree.put(ENTRY, &given);
        }
        let put = || tree.put(file, "");
        put();
        for is_running in [false, true] {
            if is_running {
                tree.reboot(&start);
                tree.put(CMDLINE, "quiet skew_tick=1\n");
                put();
            }
            let found = checked(&tree);
            let (state, why, next) = skew_tick(&found);
            assert_eq!(
                (state, next, found.exit),
                (DriftState::Unknown, None, Exit::Findings),
                "{file}: {why}"
            );
            assert!(why.contains(file) && why.starts_with("entry 1 had the boot loader give it"), "{why}");
            let row = found.drift.knobs.iter().find(|row| row.place == "cmdline:skew_tick").expect("a row");
            assert!(row.is_untold_at_boot());
            assert_eq!(
                check(&tree.session(), Some(&wants())).expect("checked").exit,
                Exit::Findings,
                "{file}"
            );
        }
    }
}

#[test]
fn what_nobody_had_the_loader_give_is_no_finding_where_that_is_not_known() {
    let tree = rocky();
    tree.put(STRAY, "");
    tree.put(CMDLINE, "quiet skew_tick=1\n");
    let found = checked(&tree);
    assert_eq!((skew_tick(&found), found.exit), ((DriftState::Ok, String::new(), None), Exit::Done));
}

#[test]
fn an_undo_names_what_is_left_also_where_the_loader_is_not_known_any_more() {
    let new = "/boot/loader/entries/m-6.14.conf";
    let block = rocky().get(ENV);
    for (file, text) in [(STRAY, ""), (ENV, &block[..500])] {
        let tree = rocky();
        persist(&tree, &wants());
        tree.put(new, &tree.get(ENTRY).replace("6.12", "6.14"));
        let before = tree.get(file);
        tree.put(file, text);
        let undone = undo_all(&tree);
        assert_ne!(undone.exit, Exit::Done, "{file}: {:?}", undone.hints);
        assert!(undone.hints.iter().any(|hint| hint.starts_with(&format!("{new}:5"))), "{:?}", undone.hints);
        let untold = |hint: &String| hint.starts_with("whether a boot to come") && hint.contains(file);
        assert!(undone.hints.iter().any(untold), "{file}: {:?}", undone.hints);
        let found = checked(&tree);
        assert!(found.carried_over.iter().any(|line| line.source == format!("{new}:5")), "{file}");
        assert_eq!(found.exit, Exit::Findings, "{file}");
        // The cure, as it was told.
        if before.is_empty() {
            tree.remove(file);
        }
        tree.remove(new);
        assert_eq!(checked(&tree).carried_over, [], "{file}");
    }
}

/// GRUB with a menu that boots something else by default than its normal entries.
fn astray() -> Tree {
    let tree = debian();
    let custom = "### BEGIN /etc/grub.d/40_custom ###\nmenuentry 'mine' {\n\tlinux /v ro\n}\n\
                  ### END /etc/grub.d/40_custom ###\n";
    tree.put(MENU, &format!("set default=\"mine\"\n{}{custom}", tree.get(MENU)));
    tree
}

#[test]
fn what_is_booted_by_default_and_gets_nothing_is_named() {
    let error = refused(&astray(), &wants());
    let told = "GRUB boots `mine` next (/boot/grub/grub.cfg:9)";
    assert!(error.to_string().contains(told), "{error}");
    let tree = debian();
    persist(&tree, &wants());
    let menu = astray().get(MENU).replace("ro quiet", "ro quiet skew_tick=1");
    tree.put(MENU, &menu);
    for (running, state) in [("quiet\n", DriftState::Drift), ("quiet skew_tick=1\n", DriftState::LostAtBoot)]
    {
        tree.put(CMDLINE, running);
        let found = checked(&tree);
        let (seen, why, _) = skew_tick(&found);
        assert_eq!((seen, found.exit), (state, Exit::Findings), "{why}");
        assert!(why.starts_with("/boot/grub/grub.cfg:9 leaves /etc/default/grub.d/90-planish.cfg:"), "{why}");
    }
    tree.put(MENU, &menu.replace("\"mine\"", "\"0\""));
    assert_eq!(checked(&tree).exit, Exit::Done);
    // An entry for repairs is left as it is.
    let tree = rocky();
    let block = tree.get(ENV).replace("saved_entry=m-6.12", "saved_entry=m-0-rescue");
    tree.put(ENV, &block[..1024]);
    assert!(refused(&tree, &wants()).to_string().contains("m-0-rescue.conf is booted next"));
}

#[test]
fn two_folders_of_entries_are_refused_before_a_write() {
    let tree = started_by("old");
    let other = "/boot/loader/entries/zdeb-6.12.conf";
    tree.put(other, "title N\nversion 6.12\nlinux /v6\noptions ro\n");
    let error = refused(&tree, &wants()).to_string();
    assert!(error.contains(FOLDER) && error.contains("/boot/loader/entries both have"), "{error}");
    tree.remove(other);
    persist(&tree, &wants());
    tree.put(other, "title N\nversion 6.12\nlinux /v6\noptions ro\n");
    assert_eq!(skew_tick(&checked(&tree)).0, DriftState::Unknown);
}

#[test]
fn nothing_is_written_where_it_would_not_reach_the_kernel() {
    for (arguments, told) in [("quiet -- nosplash", "have `--`"), ("quiet x=\\\"a b", "has no end")] {
        let defaults = format!("GRUB_CMDLINE_LINUX_DEFAULT=\"{arguments}\"\n");
        for make in [debian, suse] {
            let tree = make();
            tree.put(DEFAULTS, &defaults);
            let error = refused(&tree, &wants());
            let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            let error = format!("{error}: {why}");
            assert!(error.contains(told) && error.contains(DEFAULTS), "{error}");
        }
        let arguments = arguments.replace('\\', "");
        for (file, text) in [
            (ENTRY, format!("title R\nlinux /v\noptions {arguments}\n")),
            (KERNEL_CMDLINE, arguments.clone()),
            (ENV, rocky().get(ENV).replace("root=UUID=1 ro\n###################", &format!("{arguments}\n"))),
        ] {
            let tree = rocky();
            tree.put(file, &text.chars().take(1024).collect::<String>());
            if file == ENV {
                let body = text.trim_end_matches('#');
                tree.put(file, &format!("{body}{}", "#".repeat(1024 - body.len())));
            }
            let error = refused(&tree, &wants());
            let told =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            assert!(told.contains("--") || told.contains("no end"), "{file}: {error} {told}");
        }
    }
    // Behind ours it is nobody's loss.
    let tree = debian();
    tree.put(
        "/etc/default/grub.d/95-x.cfg",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT -- x\"\n",
    );
    assert_eq!(persist(&tree, &wants()).exit, Exit::Done);
}

#[test]
fn what_an_entry_gives_behind_the_variable_is_refused_and_not_told_as_pending() {
    let entry = |options: &str| format!("title R\nversion 6.12\nlinux /v\noptions {options}\n");
    let refused_with = |options: &str| {
        let tree = rocky();
        tree.put(ENTRY, &entry(options));
        refused(&tree, &thp()).to_string()
    };
    let told = refused_with("$kernelopts transparent_hugepage=always");
    assert!(told.contains("m-6.12.conf:4 gives `transparent_hugepage=always` behind $kernelopts"), "{told}");
    assert!(refused_with("quiet -- $kernelopts").contains("m-6.12.conf:4: its arguments have `--`"));
    for options in ["$kernelopts transparent_hugepage=never", "transparent_hugepage=always $kernelopts"] {
        let tree = rocky();
        tree.put(ENTRY, &entry(options));
        assert_eq!(persist(&tree, &thp()).exit, Exit::Done, "{options}");
    }
}

#[test]
fn where_the_next_entry_is_not_told_an_apply_and_a_check_say_the_same() {
    let tree = rocky();
    tree.put(ENV, &tree.get(ENV).replace("saved_entry=m-6.12", "saved_entry=m-9.99"));
    let applied = persist(&tree, &wants());
    assert_eq!(applied.exit, Exit::Done, "{:?}", applied.hints);
    for source in [None, Some(&wants())] {
        let found = check(&tree.session(), source).expect("checked");
        assert_eq!((skew_tick(&found).0, found.exit), (DriftState::PendingReboot, Exit::Done));
    }
}

#[test]
fn zeroes_of_a_power_cut_are_refused_wherever_they_are() {
    let zeroes = "\0".repeat(40);
    let entry = rocky().get(ENTRY);
    for (make, file, text) in [
        (rocky as fn() -> Tree, KERNEL_CMDLINE, zeroes.clone()),
        (rocky, KERNEL_CMDLINE, format!("root=UUID=1 ro{zeroes}\n")),
        (rocky, ENTRY, format!("{entry}{zeroes}")),
        (rocky, ENTRY, entry.replace("quiet", &format!("{zeroes}quiet"))),
        (rocky, DEFAULTS, format!("GRUB_CMDLINE_LINUX=quiet\n{zeroes}")),
        (rocky, "/boot/grub2/grub.cfg", format!("blscfg\n{zeroes}")),
        (debian, DEFAULTS, format!("GRUB_CMDLINE_LINUX=quiet\n{zeroes}")),
        (debian, "/etc/default/grub.d/50-x.cfg", zeroes.clone()),
    ] {
        let tree = make();
        tree.put(file, &text);
        let error = refused(&tree, &wants());
        let is_named = matches!(&error, PipelineError::BootFile { path, .. } if path == file);
        assert!(is_named || error.to_string().contains(file), "{file}: {error}");
    }
}
