//! Trial boots: an entry that the loader takes once, under every boot loader, and what comes of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use planish_journal::HostLock;
use planish_model::{Class, DriftState, EntryId, EntryState, Exit, TrialBootState, Want, marker};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, ResumeUnit, Session, Source, Target, apply,
    apply_once, boot_alone, boots_on_trial, check, confirm, install_resume, once_preview, plan, undo,
};

use crate::boot::{Named, all, more, persist, wants};
use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

const CUSTOM: [&str; 2] = ["/boot/grub/custom.cfg", "/boot/grub2/custom.cfg"];
const ENVS: [&str; 2] = ["/boot/grub/grubenv", "/boot/grub2/grubenv"];
const FILE: &str = "/efi/loader/entries/AAA-planish-trial.conf";
const VARIABLE: &str = "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
const FEATURES: &str = "/sys/firmware/efi/efivars/LoaderFeatures-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
const MOUNTS: &str = "/proc/self/mountinfo";

/// The head of a menu, and the part that reads `custom.cfg`, as GRUB's own scripts write them.
const HEAD: &str = "### BEGIN /etc/grub.d/00_header ###\nload_env\nif [ \"${next_entry}\" ] ; then\n   \
    set default=\"${next_entry}\"\n   set next_entry=\n   save_env next_entry\n   set boot_once=true\nelse\n   \
    set default=\"${saved_entry}\"\nfi\n### END /etc/grub.d/00_header ###\n";
const TAIL: &str = "### BEGIN /etc/grub.d/41_custom ###\nif [ -f  ${config_directory}/custom.cfg ]; then\n  \
    source ${config_directory}/custom.cfg\nfi\n### END /etc/grub.d/41_custom ###\n";

/// A host whose loader can boot an entry once.
pub fn able((_, make): Named) -> Tree {
    let tree = make();
    tree.put(MOUNTS, "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n");
    for menu in ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"] {
        let text = tree.get(menu);
        if !text.is_empty() {
            tree.put(menu, &format!("{HEAD}{text}{TAIL}"));
        }
    }
    if !tree.get("/efi/loader/entries/arch.conf").is_empty() {
        tree.put(FEATURES, "\u{7}\0\0\0\u{8}\u{1}\0\0\0\0\0\0");
    }
    tree
}

fn once(tree: &Tree, source: &Source) -> Applied {
    let session = tree.session();
    apply_once(&session, &boot_alone(&plan_of(&session, source)), None).expect("applied")
}

/// Whether the loader takes the entry at the next boot, and takes its name away, as it does before it starts it.
fn take(tree: &Tree) -> Option<String> {
    let variable = tree.get(VARIABLE);
    if !variable.is_empty() {
        tree.remove(VARIABLE);
        return Some(tree.get(FILE));
    }
    let (env, custom) =
        ENVS.into_iter().zip(CUSTOM).find(|(env, _)| tree.get(env).contains("next_entry=planish"))?;
    let text = tree.get(env);
    let body = text.trim_end_matches('#').replace("next_entry=planish-trial\n", "next_entry=\n");
    tree.put(env, &format!("{body}{}", "#".repeat(text.len() - body.len())));
    Some(tree.get(custom))
}

/// The kernel's arguments of an entry for once.
fn arguments(entry: &str) -> String {
    let line = entry.lines().map(str::trim).find(|line| line.starts_with("linux") && line.contains(" ro"));
    let line =
        line.or_else(|| entry.lines().find(|line| line.starts_with("options"))).expect("a kernel is started");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

/// The machine goes down and comes up again: by the entry for once where the loader is told so, and where it `comes_up`
/// with it; else somebody switches it off and on, and it boots its default.
pub fn reboot(tree: &Tree, start: &BTreeMap<String, String>, comes_up: bool) {
    // What a start finds in the firmware is not what was there when the test began.
    let mut start = start.clone();
    let taken = take(tree);
    start.retain(|path, _| path != VARIABLE);
    tree.reboot(&start);
    if let Some(entry) = taken.filter(|_| comes_up) {
        tree.put(CMDLINE, &tree.line_of_loader(&arguments(&entry)));
    }
}

fn state(tree: &Tree) -> Option<TrialBootState> {
    let boots = boots_on_trial(&tree.session()).expect("a sound journal");
    assert!(boots.len() < 2, "{boots:?}");
    boots.first().map(|boot| boot.state)
}

fn undone(tree: &Tree) -> Exit {
    undo(&tree.session(), Target::All, false).expect("undone").exit
}

#[test]
fn the_next_boot_and_no_other_has_the_arguments() {
    for named in all() {
        let (name, tree) = (named.0, able(named));
        let start = tree.snapshot();
        let applied = once(&tree, &wants());
        assert_eq!(applied.exit, Exit::Done, "{name}: {:#?}", applied.outcomes);
        let told = applied.hints.iter().any(|hint| hint.contains("no other, gives skew_tick=1"));
        assert!(told, "{name}: {:?}", applied.hints);
        // Nothing that the default reads has changed: two files for once, and what runs is as it was.
        let changed = differences(&start, &tree.snapshot());
        let is_for_once = |path: &String| {
            CUSTOM.contains(&path.as_str())
                || ENVS.contains(&path.as_str())
                || [FILE, VARIABLE].contains(&path.as_str())
        };
        assert!(changed.len() == 2 && changed.iter().all(is_for_once), "{name}: {changed:?}");
        assert_eq!(state(&tree), Some(TrialBootState::Armed), "{name}");
        let early = confirm(&tree.session()).expect("there is nothing to confirm yet");
        assert_eq!((early.exit, early.trials.len(), early.entries), (Exit::Findings, 1, vec![]), "{name}");
        assert_eq!(state(&tree), Some(TrialBootState::Armed), "{name}");

        reboot(&tree, &start, true);
        let given = tree.get(CMDLINE);
        assert!(given.contains(" skew_tick=1 ") && given.contains("planish.trial="), "{name}: {given}");
        assert!(given.contains("root=UUID=1 ro"), "{name}: {given}");
        assert_eq!(state(&tree), Some(TrialBootState::Running), "{name}");
        let checked = check(&tree.session(), None).expect("checked");
        assert_eq!(
            (checked.trial_boots.len(), checked.trial_boots[0].arguments.as_str()),
            (1, "skew_tick=1")
        );
        // No file ever gave it, and no reboot is pending that would bring it.
        for source in [None, Some(&wants())] {
            let checked = check(&tree.session(), source).expect("checked");
            let row = checked.drift.knobs.iter().find(|row| row.place == "cmdline:skew_tick").expect("a row");
            let told = "given to this boot alone, the trial boot of entry 1";
            assert_eq!((row.state, row.because.as_deref()), (DriftState::Ok, Some(told)), "{name}: {row:?}");
        }

        // Nobody confirms it, and the boot behind it is by the default entry.
        reboot(&tree, &start, true);
        assert!(!tree.get(CMDLINE).contains("skew_tick"), "{name}: {}", tree.get(CMDLINE));
        assert_eq!(state(&tree), Some(TrialBootState::Over), "{name}");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Findings, "{name}");
        assert_eq!(undone(&tree), Exit::Done, "{name}");
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(|path| path == CMDLINE), "{name}: {left:?}");
        assert_eq!(state(&tree), None, "{name}");
    }
}

#[test]
fn a_machine_that_does_not_come_up_is_back_and_says_so() {
    for named in all() {
        let (name, tree) = (named.0, able(named));
        let start = tree.snapshot();
        once(&tree, &wants());
        reboot(&tree, &start, false);
        assert!(!tree.get(CMDLINE).contains("skew_tick"), "{name}");
        assert_eq!(state(&tree), Some(TrialBootState::Over), "{name}");
        let confirmed = confirm(&tree.session()).expect("there is nothing to confirm");
        assert_eq!(confirmed.entries, [], "{name}: what did not come up is not kept");
        // A script that goes on behind it would believe that it was.
        let trials: Vec<TrialBootState> = confirmed.trials.iter().map(|trial| trial.state).collect();
        assert_eq!((confirmed.exit, trials), (Exit::Findings, vec![TrialBootState::Over]), "{name}");
        assert_eq!(undone(&tree), Exit::Done, "{name}");
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(|path| path == CMDLINE), "{name}: {left:?}");
    }
}

#[test]
fn an_undo_before_the_boot_leaves_no_byte() {
    for named in all() {
        let (name, tree) = (named.0, able(named));
        let start = tree.snapshot();
        once(&tree, &wants());
        assert_eq!(undone(&tree), Exit::Done, "{name}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
        reboot(&tree, &start, true);
        assert!(!tree.get(CMDLINE).contains("skew_tick"), "{name}");
    }
}

#[test]
fn a_confirm_in_the_trial_boot_gives_it_to_every_boot() {
    for named in all() {
        let (name, tree) = (named.0, able(named));
        let start = tree.snapshot();
        once(&tree, &wants());
        reboot(&tree, &start, true);
        let confirmed = confirm(&tree.session()).expect("confirmed");
        assert_eq!(confirmed.entries, [EntryId(2)], "{name}");
        let told = "entry 1 was the trial boot, and is closed: entry 2 gives every boot the same";
        assert!(confirmed.hints.iter().any(|hint| hint == told), "{name}: {:?}", confirmed.hints);
        assert!(confirmed.unpersisted.is_empty(), "{name}: {:?}", confirmed.unpersisted);
        assert_eq!(state(&tree), None, "{name}");
        let states: Vec<EntryState> = tree.entries().iter().map(|entry| entry.state).collect();
        assert!(matches!(states[..], [EntryState::Closed(_), EntryState::Open]), "{name}: {states:?}");
        for _ in 0..2 {
            reboot(&tree, &start, true);
            let given = tree.get(CMDLINE);
            assert!(given.contains("skew_tick=1") && !given.contains("planish.trial"), "{name}: {given}");
        }
        assert_eq!(undone(&tree), Exit::Done, "{name}");
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(|path| path == CMDLINE), "{name}: {left:?}");
    }
}

#[test]
fn what_the_loader_was_made_to_forget_or_not_asked_is_told() {
    for named in all() {
        let (name, tree) = (named.0, able(named));
        let start = tree.snapshot();
        once(&tree, &wants());
        // As kexec does: a start without the loader.
        tree.reboot(
            &start
                .iter()
                .filter(|(path, _)| *path != VARIABLE)
                .map(|(a, b)| (a.clone(), b.clone()))
                .collect(),
        );
        assert_eq!(state(&tree), Some(TrialBootState::PassedOver), "{name}");
        let tree = able(named);
        once(&tree, &wants());
        take(&tree).expect("it was named");
        assert_eq!(state(&tree), Some(TrialBootState::Disarmed), "{name}");
        assert_eq!(undone(&tree), Exit::Done, "{name}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
    }
}

#[test]
fn one_boot_is_on_trial_at_a_time_and_others_are_persisted_beside_it() {
    for named in all() {
        let (name, tree) = (named.0, able(named));
        let start = tree.snapshot();
        once(&tree, &wants());
        let error = refused(&tree, &more());
        assert!(error.to_string().contains("entry 1 is a trial boot already"), "{name}: {error}");
        assert!(error.hints().concat().contains("planish undo 1"), "{name}");
        // The arguments of all boots are another matter, and so is their undo.
        assert_eq!(persist(&tree, &more()).exit, Exit::Done, "{name}");
        assert!(!tree.get(FILE).contains("rcupdate"), "{name}: the entry for once is no entry to be changed");
        reboot(&tree, &start, true);
        assert_eq!(state(&tree), Some(TrialBootState::Running), "{name}");
        assert_eq!(undone(&tree), Exit::Done, "{name}");
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(|path| path == CMDLINE), "{name}: {left:?}");
    }
}

/// What refuses a trial boot, with nothing written.
fn refused(tree: &Tree, source: &Source) -> PipelineError {
    let (start, entries) = (tree.snapshot(), tree.entries().len());
    let session = tree.session();
    let plan = boot_alone(&plan_of(&session, source));
    let shown = once_preview(&session, &plan).expect_err("it is refused when it is shown, too");
    let error = apply_once(&session, &plan, None).expect_err("refused");
    assert_eq!((error.exit(), shown.to_string()), (Exit::Refused, error.to_string()));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert_eq!(tree.entries().len(), entries);
    error
}

#[test]
fn where_it_might_be_booted_for_ever_nothing_is_written() {
    for named in all() {
        // As these hosts are recorded, nothing says that the name would be taken away.
        let error = refused(&(named.1)(), &wants());
        assert!(matches!(error, PipelineError::Once { .. }), "{}: {error}", named.0);
        assert!(!error.hints().concat().is_empty());
    }
    let tree = able(all()[2]);
    tree.put(MOUNTS, "22 1 253:0 / / rw - xfs /dev/mapper/rl-root rw\n");
    assert!(refused(&tree, &wants()).to_string().contains("/dev/mapper/rl-root"));
    // A kernel that GRUB did not start, for all that can be told: who takes the name away?
    for named in &all()[..3] {
        let tree = able(*named);
        tree.put(CMDLINE, "root=UUID=1 ro quiet\n");
        assert!(refused(&tree, &wants()).to_string().contains("BOOT_IMAGE="), "{}", named.0);
    }
    let tree = Tree::new();
    tree.put("/boot/extlinux.conf", "LABEL a\n");
    assert!(refused(&tree, &wants()).to_string().contains("extlinux"));
    assert!(refused(&Tree::new(), &wants()).to_string().contains("come from outside"));
    let values = profile("values", &[("vm.swappiness", Want::Int(10))]);
    assert!(refused(&able(all()[0]), &values).to_string().contains("no boot parameter"));
}

#[test]
fn a_saved_plan_that_the_host_of_now_would_not_come_up_with_is_refused() {
    let tree = able(all()[2]);
    let session = tree.session();
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let source = profile("pages", &[("boot.hugepages.2m", Want::Int(8))]);
    let made = plan(&session, &source, &options).expect("a plan");
    let start = tree.snapshot();
    for ruinous in ["99999", "1000000000000"] {
        let mut boot = made.boot.clone();
        boot[0].wanted = ruinous.to_owned();
        let forged = made.clone().with_boot(boot);
        let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
        for error in [
            apply(&session, &forged, &persist).expect_err("refused"),
            apply_once(&session, &boot_alone(&forged), None).expect_err("refused"),
            once_preview(&session, &boot_alone(&forged)).expect_err("refused"),
        ] {
            assert!(matches!(error, PipelineError::Impossible { .. }), "{ruinous}: {error}");
            assert_eq!(error.exit(), Exit::Refused);
        }
    }
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn what_was_shown_is_written_or_nothing() {
    let tree = able(all()[0]);
    let session = tree.session();
    let mut plan = boot_alone(&plan_of(&session, &wants()));
    plan.persist = Some(once_preview(&session, &plan).expect("it can be made"));
    let files = &plan.persist.as_ref().expect("shown").files;
    assert!(
        files[0].added.iter().any(|line| line.contains(&marker(&format!("{:.12}", plan.hash)))),
        "{files:?}"
    );
    assert_eq!(files[1].added, ["next_entry=planish-trial"]);
    tree.put(
        "/boot/grub/grub.cfg",
        &tree.get("/boot/grub/grub.cfg").replace(" quiet", " quiet crashkernel=1G"),
    );
    let before = tree.snapshot();
    let error = apply_once(&session, &plan, None).expect_err("the default entry is another one by now");
    assert!(matches!(error, PipelineError::Unshown { .. }), "{error}");
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_kill_anywhere_leaves_what_undo_takes_back() {
    for named in all() {
        let make = move || able(named);
        let apply = |session: &Session| {
            apply_once(session, &boot_alone(&plan_of(session, &wants())), None).expect("applied");
        };
        assert_clean(&kill_everywhere(&make, &|_| {}, &apply));
        assert_clean(&kill_everywhere(&make, &apply, &undo_everything));
    }
}

/// A machine in its trial boot, and its files before it.
fn in_trial_boot(named: Named) -> (Tree, BTreeMap<String, String>) {
    let tree = able(named);
    let start = tree.snapshot();
    once(&tree, &wants());
    reboot(&tree, &start, true);
    (tree, start)
}

/// A confirm is an apply and an undo: after a kill in it the next confirm ends it, and an undo takes all of it back.
#[test]
fn a_confirm_that_was_killed_anywhere_is_ended_by_the_next_one_or_taken_back() {
    for (number, named) in all().into_iter().enumerate() {
        let name = named.0;
        let counter = Fuse::counting();
        confirm(&fused(in_trial_boot(named).0.options(), &counter)).expect("confirmed");
        for (operation, moment) in counter.kills() {
            let when = format!("{name}: killed {moment:?} operation {operation}");
            let (tree, start) = in_trial_boot(named);
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            assert!(until_killed(|| confirm(&session)).is_none(), "{when}: never reached");
            drop(session);
            // Each way comes to each kind of kill, and to each operation at half of the loaders.
            let is_ended = (operation + number + usize::from(moment == Moment::Torn)) % 2 == 0;
            if is_ended {
                confirm(&tree.session()).unwrap_or_else(|error| panic!("{when}: {error}"));
                assert_eq!(state(&tree), None, "{when}");
                reboot(&tree, &start, true);
                let given = tree.get(CMDLINE);
                assert!(given.contains("skew_tick=1") && !given.contains("planish.trial"), "{when}: {given}");
            }
            assert_eq!(undone(&tree), Exit::Done, "{when}");
            let left = differences(&start, &tree.snapshot());
            assert!(left.iter().all(|path| path == CMDLINE), "{when}: {left:?}");
        }
    }
}

/// At a boot others are started beside a trial, and nobody is there to type it again.
#[test]
fn another_planish_at_work_is_waited_for() {
    let tree = able(all()[0]);
    let unit = ResumeUnit {
        program: "/usr/bin/planish".to_owned(),
        state: None,
        folder: "/".to_owned(),
        path: "/usr/bin".to_owned(),
        seconds_max: 60,
    };
    let boots: [&dyn Fn(); 2] = [&|| drop(once(&tree, &wants())), &|| {
        drop(install_resume(&tree.session(), &unit).expect("installed"))
    }];
    for begins in boots {
        let path = tree.root().join("var/lib/planish/lock");
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        let lock = HostLock::acquire(&path, Duration::ZERO).expect("free");
        let held = Duration::from_millis(700);
        let (began, other) = (
            Instant::now(),
            std::thread::spawn(move || {
                std::thread::sleep(held);
                drop(lock);
            }),
        );
        begins();
        assert!(began.elapsed() >= held, "it had to wait");
        other.join().expect("it ended");
    }
}
