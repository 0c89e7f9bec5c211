//! Boot parameters: given to the boot loader of the machine, and taken back to the byte.

use planish_boot::Format;
use planish_model::{DriftState, EntryId, EntryState, Exit, KnobId, Outcome, Undo, Want};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, confirm, plan,
    undo,
};

use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::refusals::told_by_a_look;
use crate::tree::*;

pub const OWN: &str = "/etc/default/grub.d/90-planish.cfg";
pub const DEFAULTS: &str = "/etc/default/grub";
pub const ENTRY: &str = "/boot/loader/entries/m-6.12.conf";
const RESCUE: &str = "/boot/loader/entries/m-0-rescue.conf";
pub const KERNEL_CMDLINE: &str = "/etc/kernel/cmdline";
pub const ENV: &str = "/boot/grub2/grubenv";

/// The small host, started by GRUB with a menu that a program makes and that reads drop-ins.
pub fn debian() -> Tree {
    let tree = Tree::new();
    let menu = "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian' {\n\tlinux /vmlinuz root=UUID=1 ro quiet\n}\n\
                ### END /etc/grub.d/10_linux ###\n";
    tree.put("/boot/grub/grub.cfg", menu);
    tree.put(DEFAULTS, "# comment\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"");
    tree.put("/usr/sbin/update-grub", "");
    tree.put("/usr/sbin/grub-mkconfig", "for x in /etc/default/grub.d/*.cfg; do . $x; done\n");
    tree.put(CMDLINE, &tree.line_of_loader(tree.get(CMDLINE).trim()));
    tree
}

/// The same without drop-ins.
pub fn suse() -> Tree {
    let tree = debian();
    tree.put("/usr/sbin/grub-mkconfig", ". /etc/default/grub\n");
    tree
}

/// GRUB that reads entries, one of which asks it for its arguments.
pub fn rocky() -> Tree {
    let tree = Tree::new();
    tree.put("/boot/grub2/grub.cfg", "insmod blscfg\nblscfg\n");
    // Longer than a sector, so that a power cut can come in the middle of it.
    let body = format!(
        "# GRUB Environment Block\nsaved_entry=m-6.12\nboot_note={}\nkernelopts=root=UUID=1 ro\n",
        "x".repeat(430)
    );
    tree.put(ENV, &format!("{body}{}", "#".repeat(1024 - body.len())));
    tree.put(
        ENTRY,
        "title R\nversion 6.12\nlinux /vmlinuz-6.12\noptions root=UUID=1 ro quiet\t\r\ngrub_class r\n",
    );
    let asks = "title R\nversion 6.1\nlinux /vmlinuz-6.1\noptions $kernelopts\n";
    tree.put("/boot/loader/entries/m-6.1.conf", asks);
    tree.put(RESCUE, "title R (0-rescue)\nversion 0-rescue\nlinux /vmlinuz-0\noptions root=UUID=1 ro");
    tree.put(KERNEL_CMDLINE, "root=UUID=1 ro quiet");
    tree.put(DEFAULTS, "GRUB_CMDLINE_LINUX=\"quiet\"\nGRUB_ENABLE_BLSCFG=true\n");
    tree.put(CMDLINE, &tree.line_of_loader(tree.get(CMDLINE).trim()));
    tree
}

pub fn systemd() -> Tree {
    let tree = Tree::new();
    tree.put("/efi/EFI/systemd/systemd-bootx64.efi", "");
    tree.put("/efi/loader/entries/arch.conf", "title A\nlinux /vmlinuz\noptions   root=UUID=1 ro\n");
    tree
}

pub fn wants() -> Source {
    profile("boot", &[("boot.skew_tick", Want::Int(1)), ("vm.swappiness", Want::Int(10))])
}

pub fn more() -> Source {
    profile("more", &[("boot.rcupdate_rcu_normal_after_boot", Want::Int(1))])
}

fn third() -> Source {
    profile("third", &[("boot.processor_max_cstate", Want::Int(1))])
}

pub fn persist(tree: &Tree, source: &Source) -> Applied {
    let session = tree.session();
    apply(&session, &plan_of(&session, source), &PERSIST).expect("applied")
}

/// Applies what waits to be confirmed, with a timer that never comes.
pub fn try_out(tree: &Tree, source: &Source) -> Applied {
    let session = crate::watch::without_watcher(tree);
    let options = ApplyOptions { confirm_seconds: Some(3600), ..PERSIST };
    apply(&session, &plan_of(&session, source), &options).expect("applied")
}

fn state(tree: &Tree, source: &Source, id: &str) -> (DriftState, String) {
    let drift = check(&tree.session(), Some(source)).expect("checked").drift;
    let row = drift.knobs.into_iter().find(|row| row.knob.as_str() == id).expect("a row");
    (row.state, row.because.unwrap_or_default())
}

/// A boot loader's name, and a host that it starts.
pub type Named = (&'static str, fn() -> Tree);

pub fn all() -> [Named; 4] {
    [("debian", debian), ("suse", suse), ("rocky", rocky), ("systemd", systemd)]
}

#[test]
fn parameters_come_and_go_under_every_boot_loader() {
    for (name, make) in all() {
        let tree = make();
        let start = tree.snapshot();
        let applied = persist(&tree, &wants());
        assert_eq!(applied.exit, Exit::Done, "{name}: {:#?}", applied.outcomes);
        let pending = applied.hints.iter().any(|hint| hint == "reboot pending: skew_tick=1");
        assert!(pending, "{name}: {:?}", applied.hints);
        let (state, because) = state(&tree, &wants(), "boot.skew_tick");
        assert_eq!(state, DriftState::PendingReboot, "{name}: {because}");
        let again = persist(&tree, &wants());
        if name == "debian" || name == "suse" {
            // No program ran: the menu is still the old one, and says so.
            assert!(because.contains("menu was not made anew"), "{because}");
        }
        assert_eq!((again.entry, again.exit), (None, Exit::Done), "{name}: {:#?}", again.outcomes);
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{name}: {:#?}", undone.entries);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
    }
}

/// The row of a check of all that is applied, and how that check ends.
fn applied_row(tree: &Tree, id: &str) -> (DriftState, Option<String>, Exit) {
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.knob.as_str() == id).expect("a row");
    (row.state, row.wanted.clone(), checked.exit)
}

/// Takes the argument out of every file of the boot loader, as an administrator or a package does.
fn take_out(tree: &Tree) {
    for (path, text) in tree.snapshot() {
        let is_of_loader = ["/boot/", "/efi/", "/etc/"].iter().any(|root| path.starts_with(root));
        if path == OWN {
            tree.remove(OWN);
        } else if is_of_loader && text.contains(" skew_tick=1") {
            tree.put(&path, &text.replace(" skew_tick=1", ""));
        }
    }
}

/// What a boot gives the kernel, with a menu that has it too.
fn boot_with(tree: &Tree, id: &str, arguments: &str) {
    tree.put(BOOT_ID, id);
    tree.put(CMDLINE, &tree.line_of_loader(&format!("root=UUID=1 ro quiet{arguments}")));
    let menu = tree.get("/boot/grub/grub.cfg").replace(" skew_tick=1", "");
    if !menu.is_empty() {
        tree.put("/boot/grub/grub.cfg", &menu.replace("ro quiet\n", &format!("ro quiet{arguments}\n")));
    }
}

/// Whoever takes the arguments of an open entry out, before the boot that was to bring them or after it, is told
/// without a profile, too.
#[test]
fn arguments_that_were_taken_out_behind_our_back_are_never_green() {
    const ID: &str = "boot.skew_tick";
    let wanted = Some("1".to_owned());
    for (name, make) in all() {
        let tree = make();
        persist(&tree, &wants());
        assert_eq!(applied_row(&tree, ID), (DriftState::PendingReboot, wanted.clone(), Exit::Done), "{name}");
        let written = tree.snapshot();
        take_out(&tree);
        assert_eq!(applied_row(&tree, ID), (DriftState::Drift, wanted.clone(), Exit::Findings), "{name}");
        for (path, text) in written.iter().filter(|(path, text)| tree.get(path) != **text) {
            tree.put(path, text);
        }
        boot_with(&tree, "99999999-2222-3333-4444-555555555555\n", " skew_tick=1");
        assert_eq!(applied_row(&tree, ID), (DriftState::Ok, wanted.clone(), Exit::Done), "{name}");
        take_out(&tree);
        assert_eq!(
            applied_row(&tree, ID),
            (DriftState::LostAtBoot, wanted.clone(), Exit::Findings),
            "{name}"
        );
        boot_with(&tree, "99999999-3333-3333-4444-555555555555\n", "");
        assert_eq!(applied_row(&tree, ID), (DriftState::Drift, wanted.clone(), Exit::Findings), "{name}");
        undo(&tree.session(), Target::All, false).expect("undone");
        let (state, wanted, exit) = applied_row(&tree, ID);
        assert_eq!((state, wanted, exit), (DriftState::Ok, None, Exit::Done), "{name}");
    }
}

/// What the next boot gives is not all that comes of these files: each that lacks the arguments is named, whichever
/// entry of the menu it is.
#[test]
fn a_file_of_the_loader_that_lacks_what_an_entry_gave_it_is_a_finding() {
    for (name, make) in all() {
        let tree = make();
        let start = tree.snapshot();
        let mut id = persist(&tree, &wants()).entry.expect("an entry");
        let entry = tree.entries().remove(0);
        let edited = entry.steps.iter().filter(|step| step.undo == Undo::Edit);
        let edited: Vec<String> = edited.map(|step| step.place.clone()).collect();
        let lost = |tree: &Tree| {
            let checked = check(&tree.session(), None).expect("checked");
            let paths: Vec<String> = checked.lost_runs.iter().map(|lost| lost.path.clone()).collect();
            (paths, checked.exit)
        };
        assert_eq!(lost(&tree), (Vec::new(), Exit::Done), "{name}");
        for path in &edited {
            tree.put(path, &start[path]);
            assert_eq!(lost(&tree), (vec![path.clone()], Exit::Findings), "{name}");
            // As the finding says.
            let undone = undo(&tree.session(), Target::Entry(id), true).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{name}: {path}: {:?}", undone.hints);
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}: {path}");
            assert_eq!(lost(&tree), (Vec::new(), Exit::Done), "{name}: {path}");
            let again = persist(&tree, &wants());
            assert_eq!(again.exit, Exit::Done, "{name}: {path}");
            id = again.entry.expect("an entry");
        }
        // What every kernel gets its arguments from goes with none.
        for path in edited.iter().filter(|path| !path.contains("/loader/entries/")) {
            let text = tree.get(path);
            tree.remove(path);
            assert_eq!(lost(&tree), (vec![path.clone()], Exit::Findings), "{name}: {path}");
            tree.put(path, &text);
        }
        // A kernel goes with its entry, and a comment or another argument beside ours is no loss.
        for path in edited.iter().filter(|path| path.ends_with("m-6.1.conf")) {
            tree.remove(path);
            assert_eq!(lost(&tree), (Vec::new(), Exit::Done), "{name}: {path}");
        }
        for path in edited.iter().filter(|path| path.starts_with("/boot/loader/entries/m-6.12")) {
            give(&tree, path, Format::Entry, "quiet");
            assert_eq!(lost(&tree), (Vec::new(), Exit::Done), "{name}: {path}");
        }
    }
}

/// Whatever starts the machine past what was written does so again: that is no reboot to wait for.
#[test]
fn what_a_start_of_the_machine_did_not_bring_is_no_pending_reboot() {
    for (name, make) in all() {
        let tree = make();
        persist(&tree, &wants());
        // The menu was made, and something else than its default started the kernel, twice.
        for id in ["99999999-2222-3333-4444-555555555555\n", "99999999-3333-3333-4444-555555555555\n"] {
            boot_with(&tree, id, " skew_tick=1");
            tree.put(CMDLINE, &tree.line_of_loader("root=UUID=1 ro quiet"));
            let named = wants();
            for source in [None, Some(&named)] {
                let checked = check(&tree.session(), source).expect("checked");
                let row = checked.drift.knobs.iter().find(|row| row.knob.as_str() == "boot.skew_tick");
                let row = row.expect("a row");
                assert_eq!((row.state, checked.exit), (DriftState::Drift, Exit::Findings), "{name}: {row:?}");
                let told = "the machine was started since entry 1, and this kernel was not given it: another";
                assert!(row.because.as_ref().is_some_and(|why| why.contains(told)), "{name}: {row:?}");
            }
        }
        // What is given in this boot is for the next one.
        persist(&tree, &more());
        let id = "boot.rcupdate_rcu_normal_after_boot";
        assert_eq!(applied_row(&tree, id).0, DriftState::PendingReboot, "{name}");
    }
}

/// The firmware, or somebody outside, starts the kernel, and what was installed of GRUB is left over.
#[test]
fn a_menu_that_nothing_tells_to_be_read_is_refused() {
    for (name, make) in all().into_iter().filter(|(name, _)| *name != "systemd") {
        let tree = make();
        tree.put(CMDLINE, "root=UUID=1 ro initrd=\\initrd.img quiet\n");
        let error = refused(&tree, &wants());
        assert!(matches!(error, PipelineError::BootLoader { .. }), "{name}: {error}");
        assert!(
            error.to_string().contains("without the BOOT_IMAGE= that GRUB puts there"),
            "{name}: {error}"
        );
        assert!(error.hints().concat().contains("have it do so once more"), "{name}: {:?}", error.hints());
        let applied = apply(&tree.session(), &plan_of(&tree.session(), &wants()), &ApplyOptions::default());
        assert!(applied.expect("what can be set now").entry.is_some(), "{name}");
    }
}

/// A kernel that was installed before the reboot has an entry without them, and is the next one.
#[test]
fn a_new_default_kernel_without_the_arguments_is_never_green() {
    let tree = rocky();
    persist(&tree, &wants());
    let new = "title R\nversion 6.13\nlinux /vmlinuz-6.13\noptions root=UUID=1 ro quiet\n";
    tree.put("/boot/loader/entries/m-6.13.conf", new);
    tree.put(ENV, &tree.get(ENV).replace("saved_entry=m-6.12", "saved_entry=m-6.13"));
    let wanted = Some("1".to_owned());
    assert_eq!(applied_row(&tree, "boot.skew_tick"), (DriftState::Drift, wanted, Exit::Findings));
}

#[test]
fn what_is_said_of_several_sizes_comes_without_what_ends_a_command() {
    let word = Want::Text("64K:always;2M:inherit".to_owned());
    let sizes = profile("sizes", &[("boot.thp_anon", word)]);
    for (name, make) in all() {
        let tree = make();
        let start = tree.snapshot();
        let applied = persist(&tree, &sizes);
        assert_eq!(applied.exit, Exit::Done, "{name}: {:#?}", applied.outcomes);
        tree.reboot(&start);
        let given = "thp_anon=64K:always thp_anon=2M:inherit";
        assert!(tree.get(CMDLINE).contains(given), "{name}: {}", tree.get(CMDLINE));
        // Where a program makes the menu none ran, and the next boot is by the old one.
        let is_made = name == "debian" || name == "suse";
        let ends = if is_made { DriftState::LostAtBoot } else { DriftState::Ok };
        assert_eq!(state(&tree, &sizes, "boot.thp_anon").0, ends, "{name}");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        tree.reboot(&start);
        assert!(!tree.get(CMDLINE).contains("thp_anon"), "{name}: {}", tree.get(CMDLINE));
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(|path| path == CMDLINE), "{name}: {left:?}");
    }
}

#[test]
fn each_loader_gets_them_where_it_looks() {
    let tree = debian();
    let applied = persist(&tree, &wants());
    let line = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT skew_tick=1\"\n";
    assert!(tree.get(OWN).ends_with(line), "{}", tree.get(OWN));
    assert!(
        applied.hints.iter().any(|hint| hint.contains("update-grub makes the menu")),
        "{:?}",
        applied.hints
    );
    let tree = suse();
    persist(&tree, &wants());
    let block = format!("{line}# END planish\n# planish entry 1: skew_tick=1\n");
    assert!(tree.get(DEFAULTS).ends_with(&block) && tree.get(OWN).is_empty());
    let tree = rocky();
    let rescue = tree.get(RESCUE);
    persist(&tree, &wants());
    let edited = "# planish entry 1: skew_tick=1\noptions root=UUID=1 ro quiet skew_tick=1\t\r\n";
    assert!(tree.get(ENTRY).contains(edited), "{}", tree.get(ENTRY));
    assert_eq!(tree.get(KERNEL_CMDLINE), "root=UUID=1 ro quiet skew_tick=1 planish.entry=1");
    let edited = "\nkernelopts=root=UUID=1 ro skew_tick=1 planish.entry=1\n";
    assert!(tree.get(ENV).contains(edited) && tree.get(ENV).len() == 1024, "{}", tree.get(ENV));
    assert!(tree.get(DEFAULTS).contains(line));
    assert_eq!(tree.get(RESCUE), rescue, "there is a way to boot without them");
    let tree = systemd();
    persist(&tree, &wants());
    assert!(tree.get("/efi/loader/entries/arch.conf").ends_with("ro skew_tick=1\n"));
}

#[test]
fn what_somebody_keeps_beside_an_edited_file_stays() {
    for (name, make) in all() {
        let tree = make();
        for path in
            ["/etc/default/.grub.new", "/etc/kernel/.cmdline.new", "/boot/loader/entries/.m-6.12.conf.new"]
        {
            tree.put(path, "theirs");
        }
        let start = tree.snapshot();
        persist(&tree, &wants());
        undo_everything(&tree.session());
        assert_eq!(tree.snapshot(), start, "{name}");
    }
}

#[test]
fn a_kill_anywhere_leaves_what_undo_takes_back() {
    for (_, make) in all() {
        let scene = |session: &Session| {
            apply(session, &plan_of(session, &wants()), &PERSIST).expect("applied");
        };
        assert_clean(&kill_everywhere(&make, &|_| {}, &scene));
        assert_clean(&kill_everywhere(&make, &scene, &undo_everything));
    }
}

/// As [`rocky`], with arguments that end a few bytes before the end of the block's first sector: what is put in behind
/// them lies across it.
fn on_the_edge() -> Tree {
    let tree = rocky();
    let (head, arguments) = ("# GRUB Environment Block\nboot_note=", "\nkernelopts=root=UUID=1 ro");
    let note = "x".repeat(506 - head.len() - arguments.len());
    let behind = "\nsaved_entry=m-6.12\nboot_success=1\nboot_indeterminate=0\n";
    let body = [head, &note, arguments, behind].concat();
    tree.put(ENV, &format!("{body}{}", "#".repeat(1024 - body.len())));
    tree
}

/// Cuts the power in the middle of every write of the block, lets GRUB boot with either half of it, as the menus of
/// Fedora do, and undoes everything. How often that was.
fn tear_everywhere(prepare: &dyn Fn(&Tree), scene: &dyn Fn(&Session)) -> usize {
    let booted = |block: &str| block.replace("boot_success=1", "boot_success=0");
    let mut start = on_the_edge().snapshot();
    start.values_mut().for_each(|text| *text = booted(text));
    let mut torn = 0;
    for operation in 0.. {
        let killed = |moment| {
            let tree = on_the_edge();
            prepare(&tree);
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            until_killed(|| scene(&session)).is_none().then_some(tree)
        };
        let [Some(tree), Some(after)] = [Moment::Before, Moment::After].map(killed) else { break };
        let (old, new) = (tree.get(ENV), after.get(ENV));
        for (first, second) in [(&old, &new), (&new, &old)] {
            let half = [&first[..512], &second[512..]].concat();
            if old == new || half == old || half == new {
                continue;
            }
            torn += 1;
            let tree = killed(Moment::Before).expect("as before");
            tree.put(ENV, &booted(&half));
            undo_everything(&tree.session());
            let left = differences(&start, &tree.snapshot());
            assert_eq!(left, [""; 0], "operation {operation}: {half}\n{}", tree.get(ENV));
        }
    }
    torn
}

#[test]
fn a_block_that_was_torn_is_put_together_also_behind_a_boot() {
    let first = |tree: &Tree| drop(persist(tree, &wants()));
    let on = |session: &Session, source: &Source, old: Option<u64>| {
        let options = PlanOptions { instead_of: old.map(EntryId), ..PlanOptions::default() };
        let plan = plan(session, source, &options).expect("a plan");
        apply(session, &plan, &PERSIST).expect("applied");
    };
    let take_back = |id: u64| move |session: &Session| drop(undo(session, Target::Entry(EntryId(id)), false));
    assert_eq!(tear_everywhere(&|_| (), &|session| on(session, &wants(), None)), 2);
    assert_eq!(tear_everywhere(&first, &take_back(1)), 2);
    // Below a newer entry, and of that one where the older one has gone before.
    let both = [("boot.rcupdate_rcu_normal_after_boot", Want::Int(1)), ("vm.swappiness", Want::Int(10))];
    let instead = profile("instead", &both);
    assert_eq!(tear_everywhere(&first, &|session| on(session, &instead, Some(1))), 2);
    let second = |tree: &Tree| {
        first(tree);
        drop(persist(tree, &more()));
    };
    assert_eq!(tear_everywhere(&second, &take_back(1)), 2);
    let third = |tree: &Tree| {
        second(tree);
        take_back(1)(&tree.session());
    };
    assert_eq!(tear_everywhere(&third, &take_back(2)), 2);
}

#[test]
fn two_entries_go_in_any_order_also_after_a_reboot() {
    for (name, make) in all() {
        for first in [1, 2] {
            let tree = make();
            let start = tree.snapshot();
            persist(&tree, &wants());
            let applied = persist(&tree, &more());
            assert_eq!(applied.exit, Exit::Done, "{name}: {:#?}", applied.outcomes);
            tree.reboot(&start);
            assert_eq!(tree.get(SWAPPINESS), "10\n", "its line took effect");
            assert!(tree.get(CMDLINE).contains("skew_tick=1"), "{name}: {}", tree.get(CMDLINE));
            let undone = undo(&tree.session(), Target::Entry(EntryId(first)), false).expect("undone");
            assert_eq!(undone.exit, Exit::Done);
            let gone = if first == 1 { "skew_tick=1" } else { "rcupdate.rcu_normal_after_boot=1" };
            let pending = format!("reboot pending: this kernel was started with {gone}");
            assert!(undone.hints.contains(&pending), "{name}: {:?}", undone.hints);
            let rest = if first == 1 { "rcupdate.rcu_normal_after_boot=1" } else { "skew_tick=1" };
            assert!(tree.snapshot().values().any(|text| text.contains(rest)), "{name}: {rest}");
            assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
            assert_eq!(differences(&start, &tree.snapshot()), [CMDLINE], "{name} {first} first");
            tree.reboot(&start);
            let given = tree.get(CMDLINE);
            assert!(!given.contains("skew_tick") && !given.contains("rcupdate"), "{name}: {given}");
            assert!(tree.entries().iter().all(|entry| matches!(entry.state, EntryState::Closed(_))));
        }
    }
}

#[test]
fn what_others_change_in_the_same_file_stays_and_is_told() {
    let tree = rocky();
    persist(&tree, &wants());
    let theirs = tree
        .get(ENTRY)
        .replace("title R", "title Renamed")
        .replace("skew_tick=1", "skew_tick=1 crashkernel=1G");
    tree.put(ENTRY, &theirs);
    tree.put(KERNEL_CMDLINE, &tree.get(KERNEL_CMDLINE).replace("skew_tick=1", "skew_tick=0"));
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings, "{:#?}", undone.entries);
    // The word was put in wherever it was found, also behind ours in the comment.
    let edited_comment = "# planish entry 1: skew_tick=1 crashkernel=1G\n";
    assert!(theirs.contains(edited_comment));
    assert_eq!(tree.get(ENTRY), theirs.replace(edited_comment, "").replace(" skew_tick=1", ""));
    assert_eq!(tree.get(KERNEL_CMDLINE), "root=UUID=1 ro quiet skew_tick=0");
    let told =
        |path: &str, words: &str| undone.hints.iter().any(|hint| hint.contains(path) && hint.contains(words));
    assert!(told(ENTRY, "that was kept") && told(KERNEL_CMDLINE, "theirs was kept"), "{:?}", undone.hints);
    let forced = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("forced");
    assert_eq!((forced.exit, tree.get(KERNEL_CMDLINE).as_str()), (Exit::Done, "root=UUID=1 ro quiet"));
}

#[test]
fn a_kernel_that_went_takes_its_entry_with_it() {
    let tree = rocky();
    persist(&tree, &wants());
    tree.remove(ENTRY);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
    assert_eq!(tree.get(ENTRY), "", "it is not made again");
    assert_eq!(tree.get(KERNEL_CMDLINE), "root=UUID=1 ro quiet");
}

/// What refuses an apply, with nothing written.
pub fn refused(tree: &Tree, source: &Source) -> PipelineError {
    let start = tree.snapshot();
    let session = tree.session();
    let plan = plan_of(&session, source);
    let told = told_by_a_look(tree, &plan);
    let error = apply(&session, &plan, &PERSIST).expect_err("refused");
    assert_eq!(told, Some((error.to_string(), Exit::Refused)));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().is_empty());
    error
}

#[test]
fn a_file_that_is_cut_off_refuses_everything() {
    assert!(matches!(refused(&rocky_without(ENTRY, "options "), &wants()), PipelineError::BootFile { .. }));
    let tree = suse();
    tree.put(DEFAULTS, "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet");
    assert!(matches!(refused(&tree, &wants()), PipelineError::BootFile { .. }));
    // The menu still has what the file has lost: it is no argument of the menu alone, and made anew it would lose it.
    tree.put(DEFAULTS, "GRUB_CMDLINE_LINUX_DEFAULT=\"qui");
    let error = refused(&tree, &wants());
    assert!(matches!(error, PipelineError::BootFile { .. }), "{error}");
    let tree = rocky();
    tree.put(ENV, &tree.get(ENV)[..1000]);
    let error = refused(&tree, &wants());
    assert!(error.to_string().contains("/boot/grub2/grubenv: it is cut off: its size"), "{error}");
    let tree = debian();
    tree.put("/boot/grub/grub.cfg", "set timeout=5\n");
    assert!(matches!(refused(&tree, &wants()), PipelineError::BootLoader { .. }));
    // Nor is anything added beside a file that is cut off, though only our own is written.
    let menu = debian().get("/boot/grub/grub.cfg");
    for (path, text, told) in [
        (DEFAULTS, "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet", "a quote has no end"),
        ("/etc/default/grub.d/50-cloud.cfg", "GRUB_CMDLINE_LINUX=\"a \\", "a quote has no end"),
        ("/boot/grub/grub.cfg", &menu[..menu.len() - 40], "10_linux wrote has no end"),
    ] {
        let tree = debian();
        tree.put(path, text);
        let error = refused(&tree, &wants());
        assert!(matches!(error, PipelineError::BootLoader { .. }), "{path}: {error}");
        assert!(error.to_string().contains(told), "{path}: {error}");
    }
}

/// A host whose file lost everything from some text on.
fn rocky_without(path: &str, from: &str) -> Tree {
    let tree = rocky();
    let text = tree.get(path);
    tree.put(path, &text[..text.find(from).expect("it is there")]);
    tree
}

#[test]
fn an_unknown_loader_refuses_and_a_host_without_one_is_told() {
    let tree = Tree::new();
    tree.put("/boot/extlinux.conf", "LABEL a\n");
    let error = refused(&tree, &wants());
    assert!(error.to_string().contains("`skew_tick=1`") && error.to_string().contains("extlinux"), "{error}");
    let session = tree.session();
    let applied = apply(&session, &plan_of(&session, &wants()), &ApplyOptions::default()).expect("applied");
    assert_eq!(applied.exit, Exit::Findings, "the parameter is still missing");
    let tree = Tree::new();
    let applied = persist(&tree, &wants());
    let left = &applied.unpersisted;
    assert_eq!((left.len(), left[0].knob.as_str()), (1, "boot.skew_tick"));
    assert!(left[0].cure.contains("`skew_tick=1`") && !left[0].reason.is_empty(), "{left:?}");
}

#[test]
fn a_machine_without_the_files_of_its_loader_is_refused_whole() {
    let without_menu = |file: Option<&str>| {
        let tree = Tree::copy_of("metal-2s");
        tree.remove("/boot/grub/grub.cfg");
        file.into_iter().for_each(|path| tree.put(path, "# somebody's\n"));
        tree
    };
    let error = refused(&without_menu(None), &wants());
    assert!(error.to_string().contains("GRUB started this machine"), "{error}");
    assert!(error.hints().iter().any(|hint| hint.contains("mount /boot")), "{:?}", error.hints());
    for (path, name) in [
        ("/etc/lilo.conf", "LILO"),
        ("/boot/limine.conf", "Limine"),
        ("/boot/efi/EFI/refind/refind.conf", "rEFInd"),
        ("/boot/efi/EFI/Linux/linux.efi", "a unified kernel image"),
        ("/boot/syslinux/syslinux.cfg", "Syslinux"),
        ("/boot/boot.scr", "U-Boot"),
    ] {
        let error = refused(&without_menu(Some(path)), &wants());
        assert!(error.to_string().contains(&format!("{name} starts this machine ({path})")), "{error}");
    }
    // A menu that lies below the place of a mount is an old one.
    let tree = Tree::copy_of("metal-2s");
    tree.put("/etc/fstab", "UUID=1 / ext4 defaults 0 1\nUUID=2 /boot ext4 defaults 0 2\n");
    let error = refused(&tree, &wants());
    assert!(error.to_string().contains("/boot is in /etc/fstab:2 and not mounted"), "{error}");
}

/// The files of a host that hold arguments of the kernel in a line, and where the line is.
pub fn lines_of(tree: &Tree) -> Vec<(String, Format)> {
    let format = |path: &str, text: &str| match path {
        ENV => Some(Format::GrubEnv),
        KERNEL_CMDLINE => Some(Format::KernelCmdline),
        RESCUE => None,
        _ if text.contains("options $") => None,
        _ => (path.contains("/loader/entries/") && path.ends_with(".conf")).then_some(Format::Entry),
    };
    let files = tree.snapshot().into_iter();
    files.filter_map(|(path, text)| format(&path, &text).map(|format| (path, format))).collect()
}

/// What an administrator does with `grubby --args`.
pub fn give(tree: &Tree, path: &str, format: Format, arguments: &str) {
    tree.put(path, &planish_boot::insert(format, &tree.get(path), arguments).expect("a sound file"));
}

/// What happens before a confirm, and the entries that it confirms.
type Story = (&'static str, fn(&Tree) -> Vec<EntryId>);

const STORIES: [Story; 5] = [
    ("undone and applied anew, before the trial", |tree| {
        persist(tree, &wants());
        undo(&tree.session(), Target::All, false).expect("undone");
        persist(tree, &wants());
        persist(tree, &more());
        try_out(tree, &third());
        vec![EntryId(4)]
    }),
    ("taken out by somebody, before the trial", |tree| {
        persist(tree, &wants());
        for (path, format) in lines_of(tree) {
            let text = planish_boot::remove(format, &tree.get(&path), "skew_tick=1");
            tree.put(&path, &text.expect("it was given"));
        }
        // The natural cure is a trial like any other.
        try_out(tree, &wants());
        try_out(tree, &more());
        vec![EntryId(2), EntryId(3)]
    }),
    ("undone and given by somebody, before the trial", |tree| {
        persist(tree, &wants());
        undo(&tree.session(), Target::All, false).expect("undone");
        lines_of(tree).iter().for_each(|(path, format)| give(tree, path, *format, "skew_tick=1"));
        try_out(tree, &more());
        vec![EntryId(2)]
    }),
    ("two on trial, and one that came in between", |tree| {
        try_out(tree, &wants());
        try_out(tree, &more());
        persist(tree, &third());
        vec![EntryId(1), EntryId(2)]
    }),
    ("a confirm that was killed, and one that came in between", |tree| {
        try_out(tree, &wants());
        try_out(tree, &more());
        lines_of(tree).iter().for_each(|(path, format)| give(tree, path, *format, "skew_tick=1"));
        persist(tree, &third());
        vec![EntryId(1), EntryId(2)]
    }),
];

#[test]
fn what_other_entries_did_to_a_file_is_no_edit_of_somebodys() {
    for (name, make) in all().into_iter().filter(|(name, _)| *name != "debian") {
        for (story, tell) in STORIES {
            let (tree, when) = (make(), format!("{name}, {story}"));
            if lines_of(&tree).is_empty() && story.contains("somebody") {
                continue;
            }
            let ids = tell(&tree);
            let before = tree.snapshot();
            for (path, format) in lines_of(&tree) {
                let shown = tree.get(&path);
                give(&tree, &path, format, "panic=7");
                let error = confirm(&tree.session()).expect_err(&when);
                assert!(
                    matches!(&error, PipelineError::NotAsShown { path: told, .. } if *told == path),
                    "{when}"
                );
                tree.put(&path, &shown);
            }
            assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{when}");
            let confirmed = confirm(&tree.session()).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_eq!(confirmed.entries, ids, "{when}");
            for (path, _) in lines_of(&tree) {
                let text = tree.get(&path);
                let lines: Vec<&str> = text.lines().filter(|line| !planish_boot::is_tag(line)).collect();
                let once = |arguments: &str| lines.concat().matches(arguments).count() == 1;
                let given = ["rcupdate.rcu_normal_after_boot=1", "skew_tick=1"].into_iter().all(once);
                assert!(given, "{when}: {}", tree.get(&path));
            }
            for id in ids.into_iter().rev() {
                assert_eq!(undo(&tree.session(), Target::Entry(id), false).expect("undone").exit, Exit::Done);
            }
            if !story.contains("killed") {
                let files = differences(&before, &tree.snapshot());
                assert_eq!(files.iter().find(|path| !path.starts_with("/proc/")), None, "{when}");
            }
        }
    }
}

#[test]
fn boot_parameters_of_a_forged_plan_are_refused() {
    let tree = rocky();
    let session = tree.session();
    let plan = plan_of(&session, &wants());
    assert_eq!(plan.boot.len(), 1);
    let start = tree.snapshot();
    let mut edited = plan.clone();
    edited.boot[0].wanted = "0".to_owned();
    assert!(matches!(apply(&session, &edited, &PERSIST), Err(PipelineError::Edited { .. })));
    let forge = |change: &dyn Fn(&mut planish_model::Step)| {
        let mut boot = plan.boot.clone();
        change(&mut boot[0]);
        let forged = plan.clone().with_boot(boot);
        let error = apply(&session, &forged, &PERSIST).expect_err("forged");
        assert_eq!(error.exit(), Exit::Refused, "{error}");
    };
    forge(&|step| step.place = "cmdline:init".to_owned());
    forge(&|step| step.wanted = "1 init=/bin/sh".to_owned());
    forge(&|step| step.knob = KnobId::new("vm.swappiness"));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn what_was_applied_on_recorded_machines_goes_to_the_byte() {
    for name in ["metal-2s", "metal-1s-amd", "metal-256c", "rhel9-guest", "arm64-64k", "debian-virtio"] {
        let tree = Tree::writable_copy_of(name);
        let start = tree.snapshot();
        let wants = profile("boot", &[("boot.rcupdate_rcu_normal_after_boot", Want::Int(1))]);
        let applied = persist(&tree, &wants);
        let done: Vec<&Outcome> = applied.outcomes.iter().collect();
        assert_eq!(applied.exit, Exit::Done, "{name}: {done:#?}");
        assert!(!done.is_empty(), "{name}: nothing was written");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done, "{name}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
    }
}

/// A power cut in any write of the block, from the first `apply` of the second to the last undo: of either half.
#[test]
fn a_block_that_a_power_cut_tore_is_put_together_whichever_entry_was_at_work() {
    let instead = |session: &Session| {
        let options = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
        let wanted = profile(
            "more",
            &[("boot.rcupdate_rcu_normal_after_boot", Want::Int(1)), ("vm.swappiness", Want::Int(10))],
        );
        let plan = plan(session, &wanted, &options).expect("a plan");
        apply(session, &plan, &PERSIST).expect("applied");
    };
    let scenes: [&dyn Fn(&Session); 2] = [&instead, &undo_everything];
    for (at, scene) in scenes.into_iter().enumerate() {
        let prepared = || {
            let tree = rocky();
            let start = tree.snapshot();
            persist(&tree, &wants());
            scenes[..at].iter().for_each(|earlier| earlier(&tree.session()));
            (tree, start)
        };
        let counter = Fuse::counting();
        scene(&fused(prepared().0.options(), &counter));
        let mut torn = 0;
        for operation in 0..counter.operations() {
            let killed = |moment| {
                let (tree, start) = prepared();
                let session = fused(tree.options(), &Fuse::at(operation, moment));
                assert!(until_killed(|| scene(&session)).is_none());
                (tree, start)
            };
            let (old, new) = (killed(Moment::Before).0.get(ENV), killed(Moment::After).0.get(ENV));
            for (first, second) in [(&old, &new), (&new, &old)] {
                let mixed = format!("{}{}", &first[..512], &second[512..]);
                for newest_last in [false, true].into_iter().filter(|_| mixed != old && mixed != new) {
                    torn += 1;
                    let (tree, start) = killed(Moment::Before);
                    tree.put(ENV, &mixed);
                    let when = format!("scene {at}, operation {operation}, {mixed}");
                    if newest_last && tree.entries()[0].is_open() {
                        let undone = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone");
                        assert_eq!(undone.exit, Exit::Done, "{when}: {:#?}", undone.hints);
                    }
                    let undone = undo(&tree.session(), Target::All, false).expect("undone");
                    assert_eq!(undone.exit, Exit::Done, "{when}: {:#?}", undone.hints);
                    assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{when}");
                }
            }
        }
        assert!(torn >= 4, "scene {at}: {torn}");
    }
}

/// What the distributor gives kernels that are installed later, where nobody has written a file of his own.
#[test]
fn a_command_line_of_the_distributor_is_edited_where_no_other_is_read() {
    let tree = systemd();
    let path = "/usr/lib/kernel/cmdline";
    tree.put(path, "root=UUID=1 ro\n");
    let start = tree.snapshot();
    persist(&tree, &wants());
    assert_eq!(tree.get(path), "root=UUID=1 ro skew_tick=1 planish.entry=1\n");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    // A /usr that nobody can write is no reason to write nothing.
    let meta = tree.get("/meta.toml");
    let meta = meta.replacen("writable = true", "writable = true\nread_only = [\"/usr\"]", 1);
    let its_mode = format!("\"{path}\", \"/proc/sys/vm/*\"");
    tree.put("/meta.toml", &meta.replacen("\"/proc/sys/vm/*\"", &its_mode, 1));
    persist(&tree, &wants());
    assert_eq!(tree.get(path), "root=UUID=1 ro\n");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
}

#[test]
fn a_drop_in_behind_ours_that_takes_the_arguments_away_is_named_and_refused() {
    let (own, site) = ("/etc/default/grub.d/90-planish.cfg", "/etc/default/grub.d/99-site.cfg");
    let told = |text: &str| {
        let tree = debian();
        tree.put(site, text);
        let error = refused(&tree, &wants());
        format!("{error}; {}", error.hints().join("; "))
    };
    let cure = "or give its file a name that sorts before 90-planish.cfg; apply without --persist sets what can be \
                set now";
    assert_eq!(
        told("# of the site\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"),
        format!(
            "nobody can give `skew_tick=1` to the next boot: {site}:2 assigns GRUB_CMDLINE_LINUX_DEFAULT anew behind \
             {own}, and takes them away; have {site}:2 add to what is there, \
             GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ...\", {cure}"
        )
    );
    assert_eq!(
        told("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT skew_tick=0\"\n"),
        format!(
            "nobody can give `skew_tick=1` to the next boot: {site}:1 gives `skew_tick=0` behind {own}, and of two the \
             kernel takes the last; take `skew_tick=0` out of {site}:1, {cure}"
        )
    );
    // What adds to it, or comes before it, is no hindrance.
    for (path, text) in [
        (site, "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=1G\"\n"),
        (
            "/etc/default/grub.d/50-cloudimg-settings.cfg",
            "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet skew_tick=0\"\n",
        ),
    ] {
        let tree = debian();
        tree.put(path, text);
        persist(&tree, &wants());
        assert!(tree.get(own).contains("skew_tick=1"), "{path}");
    }
    // One that comes afterwards is the winner that check names.
    let tree = debian();
    persist(&tree, &wants());
    tree.put(site, "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
    for source in [Some(wants()), None] {
        let checked = check(&tree.session(), source.as_ref()).expect("checked");
        let row =
            checked.drift.knobs.into_iter().find(|row| row.place == "cmdline:skew_tick").expect("a row");
        assert_eq!((row.state, checked.exit), (DriftState::Drift, Exit::Findings));
        let why = row.because.unwrap_or_default();
        assert!(why.contains(&format!("{site}:1 leaves {own}:2 without effect")), "{why}");
        assert_eq!(row.persisted.map(|found| found.source), Some(format!("{site}:1")));
    }
}
