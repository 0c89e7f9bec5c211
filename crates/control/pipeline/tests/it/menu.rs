//! A menu of GRUB that differs from what it is made from.

use planish_model::{Class, DriftState, EntryId, Exit, Unpersisted, Want};
use planish_pipeline::{PlanOptions, apply, check, plan};

use crate::boot::{DEFAULTS, debian, more, persist, refused, suse, wants};
use crate::crash::undo_everything;
use crate::tree::*;

/// A source gives what is wanted, and its editor did not have the menu made: no reboot brings it, and nothing is green.
#[test]
fn what_a_source_gives_and_the_menu_lacks_is_told_with_what_makes_the_menu() {
    let tree = debian();
    let defaults = tree.get(DEFAULTS) + "\nGRUB_CMDLINE_LINUX=\"transparent_hugepage=never skew_tick=1\"\n";
    tree.put(DEFAULTS, &defaults);
    let thp = profile("thp", &[("boot.transparent_hugepage", Want::Text("never".to_owned()))]);
    let applied = persist(&tree, &thp);
    assert_eq!((applied.entry, applied.exit), (None, Exit::Findings), "{:?}", applied.hints);
    let [Unpersisted { reason, cure, .. }] = applied.unpersisted.as_slice() else {
        panic!("{:?}", applied.unpersisted)
    };
    // It is told behind "is not persisted": that a file gives it is no reason by itself.
    let older = "the boot loader's menu is older than /etc/default/grub:3, which gives it";
    assert_eq!((reason.as_str(), cure.as_str()), (older, "type `update-grub`"));
    for id in ["boot.transparent_hugepage", "thp.enabled"] {
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.knob.as_str() == id).expect("a row");
        assert_eq!(row.state, DriftState::Drift, "{row:?}");
        assert!(row.because.as_ref().is_some_and(|why| why.contains("type `update-grub`")), "{row:?}");
        assert!(row.next_boot.as_ref().is_none_or(|next| next.value != "never"), "{row:?}");
    }
    // It runs so already, by a line that somebody typed in the menu for once.
    tree.put(CMDLINE, &tree.line_of_loader("quiet transparent_hugepage=never"));
    let applied = persist(&tree, &thp);
    assert_eq!((applied.entry, applied.exit), (None, Exit::Findings), "{:?}", applied.hints);
    assert!(applied.hints.iter().any(|hint| hint.contains("type `update-grub`")), "{:?}", applied.hints);
    // Where the menu is made for another argument, it gives this one, too.
    let applied = persist(&tree, &more());
    assert_eq!((applied.entry, applied.unpersisted.len()), (Some(EntryId(1)), 0));
}

/// A menu that somebody edited by hand would lose that edit: nothing is written before the sources have it.
#[test]
fn what_only_the_menu_gives_refuses_to_have_it_made_anew() {
    for make in [debian, suse] {
        let tree = make();
        let menu = tree.get("/boot/grub/grub.cfg").replace("ro quiet", "ro rd.lvm.lv=x/root quiet");
        tree.put("/boot/grub/grub.cfg", &menu);
        let error = refused(&tree, &wants());
        let told = error.to_string() + &error.hints().concat();
        assert!(told.contains("/boot/grub/grub.cfg:3 gives `rd.lvm.lv=x/root`"), "{told}");
        assert!(told.contains("GRUB_CMDLINE_LINUX of /etc/default/grub"), "{told}");
        // Nor by an empty file of sources, which has lost all of them.
        let defaults = tree.get(DEFAULTS);
        tree.put(DEFAULTS, "");
        assert!(refused(&tree, &wants()).to_string().contains("`rd.lvm.lv=x/root quiet`"));
        // Where the sources have it, by whatever variable, or a script of GRUB's, or where only a shell can tell.
        let given = [
            "GRUB_CMDLINE_LINUX=\"rd.lvm.lv=x/root\"",
            "GRUB_OWN='rd.lvm.lv=x/root'",
            "GRUB_CMDLINE_LINUX=$(cat /etc/own)",
        ];
        for line in given {
            tree.put(DEFAULTS, &format!("{line}\n{defaults}"));
            assert_eq!(persist(&tree, &wants()).exit, Exit::Done, "{line}");
            undo_everything(&tree.session());
        }
        tree.put(DEFAULTS, &defaults);
        tree.put("/etc/grub.d/10_linux", "linux_entry ... rd.lvm.lv=$root\n");
        assert_eq!(persist(&tree, &wants()).exit, Exit::Done);
        undo_everything(&tree.session());
        assert_eq!(tree.get(DEFAULTS), defaults);
    }
}

/// Two sizes of pages share the names of their arguments: what an entry gave of one is nothing that it gave of the
/// other.
#[test]
fn a_pool_of_another_size_than_an_entry_gave_is_not_to_come_by_it() {
    let tree = suse();
    let pool =
        |size: &str, pages: i64| profile("pool", &[(&format!("boot.hugepages.{size}"), Want::Int(pages))]);
    let session = tree.session();
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let planned = plan(&session, &pool("2m", 40), &options).expect("planned");
    assert_eq!(apply(&session, &planned, &PERSIST).expect("applied").exit, Exit::Done);
    let defaults = tree.get(DEFAULTS);
    assert!(defaults.contains("hugepagesz=2M hugepages=40"), "{defaults}");
    let state = |id: &str| {
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.knob.as_str() == id);
        row.map(|row| (row.state, row.because.unwrap_or_default()))
    };
    let (ours, because) = state("boot.hugepages.2m").expect("a row");
    assert_eq!(ours, DriftState::PendingReboot, "{because}");
    // Somebody else's line, of which no menu was made, either.
    tree.put(DEFAULTS, &(defaults + "\nGRUB_CMDLINE_LINUX=\"hugepagesz=1G hugepages=2\"\n"));
    let (other, because) = state("boot.hugepages.1g").expect("a row");
    assert_eq!(other, DriftState::Drift, "{because}");
    assert_eq!(state("boot.hugepages.2m").expect("a row").0, DriftState::PendingReboot);
}
