//! A trial whose arms are boots, on machines that may be harmed: it is run to its end under every boot loader, its
//! power is cut at its operations, its boots do not come up, and it is stopped from within. Whatever happens, the
//! default entry is as before, and all that was written is gone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use planish_journal::HostLock;
use planish_model::{EntryState, Exit, TrialBootState};
use planish_pipeline::{PipelineError, Session, boots_on_trial, check, confirm};
use planish_trial::boots::{self, After, BootOptions, Going, Hands};
use planish_trial::{RunOptions, RungVerdict, Silent, Stop, TrialError, TrialFile, TrialOutcome};

use crate::boot::{Named, all, more, persist};
use crate::faults::{FEWER, Fuse, MOMENTS, Moment, WHOLE, fused, until_killed};
use crate::hosts::is_whole;
use crate::once::{able, reboot};
use crate::tree::*;

const STATE: &str = "/var/lib/planish/trial-boots.json";
const SERVICE: &str = "/etc/systemd/system/planish-trial.service";
const BACK: &str = "/etc/systemd/system/planish-trial-back.service";
const TIMER: &str = "/etc/systemd/system/planish-trial-back.timer";
const EARLY: &str = "/etc/systemd/system/sysinit.target.d/90-planish-trial.conf";

/// A machine that is played: `reboot` only asks, and the test does it.
struct Played(Option<Rc<Fuse>>);

impl Hands for Played {
    fn reboot(&mut self, _session: &Session) -> Result<(), PipelineError> {
        Ok(())
    }
    fn now(&self) -> Option<u64> {
        Some(1_763_600_000)
    }
    fn before(&mut self, call: &'static str) {
        if let Some(fuse) = &self.0 {
            if call == "conclude" {
                fuse.mark();
            }
            fuse.pass(|| (), WHOLE);
        }
    }
}

/// A machine that its boot loader has started by the default entry, and its files.
fn machine(named: Named) -> (Tree, BTreeMap<String, String>) {
    let tree = able(named);
    let start = tree.snapshot();
    reboot(&tree, &start, true);
    (tree, start)
}

/// A trial whose workload takes half where the kernel was given `skew_tick=1`, and a tenth less where swappiness is 10.
fn trial(tree: &Tree, blocks: usize) -> TrialFile {
    let root = tree.root().display();
    let text = format!(
        r#"
name = "t"
summary = "s"
seed = 5
guards = []
workload = {{ adapter = "number", command = ["sh", "-c", """
n=100
grep -q skew_tick=1 {root}/proc/cmdline && n=$((n / 2))
grep -q ^10 {root}/proc/sys/vm/swappiness && n=$((n * 9 / 10))
echo "cost: $n" """], metric = [{{ name = "cost", better = "lower", regex = "cost: ([0-9]+)" }}] }}
[boots]
blocks = {blocks}
units = 1
settle_seconds = 0
[[boot]]
name = "skew"
want = {{ "boot.skew_tick" = 1 }}
[[rung]]
name = "swap"
want = {{ "vm.swappiness" = 10 }}
"#
    );
    TrialFile::parse("t.toml", &text).expect("a good file")
}

fn options(keep: bool) -> RunOptions {
    RunOptions {
        quick: false,
        keep,
        duet: false,
        seed: None,
        budget: None,
        program: PathBuf::from("/usr/bin/planish"),
        command: "planish trial run t.toml --allow reboot".to_owned(),
        stop: Stop::default(),
    }
}

fn allowed() -> BootOptions {
    BootOptions { reboot: true, ..BootOptions::default() }
}

fn begin(tree: &Tree, session: &Session, hands: &mut Played, keep: bool) -> Result<Going, TrialError> {
    boots::begin(&trial(tree, 8), session, &options(keep), &allowed(), hands, &mut Silent)
}

fn resume(session: &Session, hands: &mut Played) -> Option<Going> {
    boots::resume(session, &options(false), hands, &mut Silent).expect("a state that can be read")
}

fn stop(session: &Session, hands: &mut Played) -> Option<Going> {
    boots::stop(session, &options(false), hands, &mut Silent).expect("a state that can be read")
}

/// What the default entry reads: every file of the loader but those for once.
fn default_entry(tree: &Tree) -> BTreeMap<String, String> {
    let mut files = tree.snapshot();
    let is_for_once = |path: &str| {
        ["custom.cfg", "grubenv", "AAA-planish-trial.conf"].iter().any(|name| path.ends_with(name))
    };
    files.retain(|path, _| {
        let of_loader = ["/boot/", "/efi/", "/etc/default/", "/etc/kernel/"];
        // What a kill left beside a file, no loader reads.
        let is_read = !path.contains("/.");
        of_loader.iter().any(|folder| path.starts_with(folder)) && is_read && !is_for_once(path)
    });
    files
}

/// Boots until it has ended. Each boot comes up where `comes_up` says so of its number; the default entry stays.
fn play(tree: &Tree, start: &BTreeMap<String, String>, comes_up: impl Fn(usize) -> bool) -> Going {
    let entry = default_entry(tree);
    for boot in 0..60 {
        reboot(tree, start, comes_up(boot));
        let going = resume(&tree.session(), &mut Played(None)).expect("it has a state until it ends");
        if going.after == After::Ended {
            return going;
        }
        assert_eq!(going.after, After::Reboot);
        assert_eq!(default_entry(tree), entry, "boot {boot}");
    }
    panic!("it does not end");
}

/// Nothing of it is left: neither a file of the host, nor a state, nor an open entry.
fn assert_gone(tree: &Tree, start: &BTreeMap<String, String>, when: &str) {
    let left = differences(start, &tree.snapshot());
    assert!(left.iter().all(|path| path == CMDLINE), "{when}: {left:?}");
    let state = tree.root().join("var/lib/planish/trial-boots.json");
    assert!(!state.exists(), "{when}: its state is there");
    let open: Vec<_> =
        tree.entries().into_iter().filter(planish_model::Entry::is_open).map(|it| it.id).collect();
    assert!(open.is_empty(), "{when}: {open:?}");
}

/// The boot pays by half, the rung inside of each by a tenth, and the placebo by nothing.
fn assert_found(outcome: &TrialOutcome, name: &str) {
    let rung = |name: &str| outcome.rungs.iter().find(|rung| rung.name == name).expect("planned");
    let told = |name: &str| (rung(name).verdict, rung(name).pairs, rung(name).reason.clone());
    let skew = rung("skew");
    assert_eq!((skew.verdict, skew.pairs), (RungVerdict::Keep, 8), "{name}: {}", skew.reason);
    assert!(skew.effect.is_some_and(|gain| (gain - 0.5).abs() < 0.01), "{name}: {:?}", skew.effect);
    assert_eq!(told("swap").0, RungVerdict::Keep, "{name}: {:?}", told("swap"));
    assert_eq!(told("skew + swap").0, RungVerdict::Keep, "{name}: {:?}", told("skew + swap"));
    assert_eq!(told("placebo").0, RungVerdict::Drop, "{name}: {:?}", told("placebo"));
    let boots = outcome.boots.as_ref().expect("of boots");
    assert_eq!((boots.boots.len(), boots.arguments["skew"].as_str()), (24, "skew_tick=1"), "{name}");
    assert!(boots.boots.iter().all(|boot| boot.lost.is_none()), "{name}: {:?}", boots.boots);
}

#[test]
fn a_trial_of_boots_finds_what_pays_and_leaves_nothing() {
    // The other two loaders are below.
    for named in all().into_iter().step_by(3) {
        let (name, (tree, start)) = (named.0, machine(named));
        let session = tree.session();
        let going = begin(&tree, &session, &mut Played(None), false).expect("begun");
        assert_eq!(going.after, After::Reboot, "{name}");
        let unit = tree.get(SERVICE);
        assert!(unit.contains("\nExecStart=/usr/bin/planish trial resume\n"), "{name}: {unit}");
        assert!(tree.get(BACK).contains("\nConditionKernelCommandLine=planish.trial\n"), "{name}");
        let told = boots::status(&session).expect("readable").expect("under way");
        assert_eq!(told.boots.expect("of boots").asked, 1, "{name}");
        let error = begin(&tree, &session, &mut Played(None), false).expect_err("one at a time");
        assert_eq!(error.exit(), Exit::Refused, "{name}: {error}");
        drop(session);

        let outcome = play(&tree, &start, |_| true).outcome;
        assert_gone(&tree, &start, name);
        assert_found(&outcome, name);
        // What was told last is what is told ever after.
        let last = boots::status(&tree.session()).expect("readable").expect("it has ended");
        assert_eq!(last.proof_id, outcome.proof_id, "{name}");
    }
}

#[test]
fn what_is_kept_becomes_the_default_by_the_usual_way_and_goes_by_an_undo() {
    for named in all().into_iter().skip(1).take(2) {
        let (name, (tree, start)) = (named.0, machine(named));
        begin(&tree, &tree.session(), &mut Played(None), true).expect("begun");
        let outcome = play(&tree, &start, |_| true).outcome;
        assert!(outcome.refused.is_empty(), "{name}: {:?}", outcome.refused);
        assert_eq!(outcome.exit, Exit::Done.code(), "{name}: {:?}", outcome.notes);
        assert_found(&outcome, name);
        for _ in 0..2 {
            reboot(&tree, &start, true);
            let given = tree.get(CMDLINE);
            assert!(given.contains("skew_tick=1") && !given.contains("planish.trial"), "{name}: {given}");
        }
        planish_pipeline::undo(&tree.session(), planish_pipeline::Target::All, false).expect("undone");
        reboot(&tree, &start, true);
        assert_gone(&tree, &start, name);
    }
}

/// Plays a trial that keeps what pays, the last of its boots with a fuse: what came of it.
fn kept_behind(tree: &Tree, start: &BTreeMap<String, String>, fuse: &Rc<Fuse>) -> TrialOutcome {
    begin(tree, &tree.session(), &mut Played(None), true).expect("begun");
    // Eight blocks of three boots.
    for _ in 1..24 {
        reboot(tree, start, true);
        assert_eq!(resume(&tree.session(), &mut Played(None)).expect("under way").after, After::Reboot);
    }
    loop {
        reboot(tree, start, true);
        let going = resume(&fused(tree.options(), fuse), &mut Played(None)).expect("under way");
        if going.after == After::Ended {
            return going.outcome;
        }
    }
}

/// A machine whose trial has all of its boots but the last behind it, and keeps what pays.
fn near_its_end(named: Named) -> (Tree, BTreeMap<String, String>) {
    let (tree, start) = machine(named);
    begin(&tree, &tree.session(), &mut Played(None), true).expect("begun");
    for _ in 1..24 {
        reboot(&tree, &start, true);
        assert_eq!(resume(&tree.session(), &mut Played(None)).expect("under way").after, After::Reboot);
    }
    (tree, start)
}

/// Another machine like this one, with the same trial. The workload looks at the machine by its whole path.
fn twin(tree: &Tree) -> Tree {
    let twin = tree.twin();
    let state =
        tree.get(STATE).replace(&tree.root().display().to_string(), &twin.root().display().to_string());
    twin.put(STATE, &state);
    twin
}

/// The last boots of a trial, each with a fuse, until it has ended or the fuse has blown.
fn ended(tree: &Tree, start: &BTreeMap<String, String>, fuse: &Rc<Fuse>) -> Option<TrialOutcome> {
    for _ in 0..4 {
        reboot(tree, start, true);
        let session = fused(tree.options(), fuse);
        let going = until_killed(|| resume(&session, &mut Played(Some(Rc::clone(fuse)))))?;
        let going = going.expect("it has a state until it ends");
        if going.after == After::Ended {
            return Some(going.outcome);
        }
    }
    panic!("it does not end");
}

/// The power is cut at the operations from the last boot on, and in the conclusion, in which what was found is kept, at
/// one loader or another at every one. Somebody switches the machine on, and it ends as if nothing had been: persisted
/// once and whole, gone by an undo.
#[test]
fn a_power_cut_at_the_end_of_a_trial_keeps_what_pays_once_and_leaves_nothing_else() {
    for (number, named) in all().into_iter().enumerate() {
        let (tree, start) = near_its_end(named);
        let counter = Fuse::counting();
        let whole = twin(&tree);
        let outcome = ended(&whole, &start, &counter).expect("it ends");
        assert_eq!(outcome.exit, Exit::Done.code(), "{}: {:?}", named.0, outcome.notes);
        let wanted = whole.snapshot();
        assert!(counter.operations() > 60, "{}: {} operations", named.0, counter.operations());
        let concludes = counter.marked().expect("it concludes");
        assert!(counter.operations() - concludes > 30, "{}: {concludes}", named.0);
        // What comes before is as in any other boot.
        let before = (number..concludes).step_by(all().len());
        let (first, step) = if is_whole() { (0, 1) } else { (number % FEWER, FEWER) };
        let conclusion = (concludes + first..counter.operations()).step_by(step);
        for (index, at) in before.chain(conclusion).enumerate() {
            let moment = MOMENTS[(index + number) % MOMENTS.len()];
            let when = format!("{}: cut {moment:?} operation {at} of {}", named.0, counter.operations());
            let tree = twin(&tree);
            assert!(ended(&tree, &start, &Fuse::at(at, moment)).is_none(), "{when}: never reached");
            // A cut behind the last operation leaves nothing to go on with.
            let mut told = None;
            while tree.root().join(&STATE[1..]).exists() {
                reboot(&tree, &start, true);
                told = resume(&tree.session(), &mut Played(None)).map(|going| going.outcome);
            }
            if let Some(told) = &told {
                assert!(told.refused.is_empty(), "{when}: {:?}", told.refused);
                assert!(
                    told.notes.iter().any(|note| note.contains("persisted as entry")),
                    "{when}: {told:?}"
                );
            }
            resume(&tree.session(), &mut Played(None));
            assert_kept(&tree, &start, &wanted, &when);
        }
    }
}

/// The default entry has what was kept, once, by entries that are whole; and an undo takes it out to the byte.
fn assert_kept(tree: &Tree, start: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>, when: &str) {
    let of_loader = |files: &BTreeMap<String, String>| {
        let mut files = files.clone();
        files.retain(|path, _| ["/boot/", "/efi/", "/etc/"].iter().any(|folder| path.starts_with(folder)));
        // An apply that a cut had ended may have taken the number before.
        for text in files.values_mut() {
            for number in (1..100).rev() {
                *text = text.replace(&format!("planish entry {number}:"), "planish entry N:");
                *text = text.replace(&format!("planish.entry={number}"), "planish.entry=N");
            }
        }
        files
    };
    let left = differences(&of_loader(wanted), &of_loader(&tree.snapshot()));
    assert_eq!(left, [""; 0], "{when}: {:#?}", left.iter().map(|path| tree.get(path)).collect::<Vec<_>>());
    let open: Vec<_> = tree.entries().into_iter().filter(planish_model::Entry::is_open).collect();
    assert!(open.len() <= 2 && open.iter().all(|entry| entry.state == EntryState::Open), "{when}: {open:#?}");
    reboot(tree, start, true);
    let given = tree.get(CMDLINE);
    assert!(given.contains("skew_tick=1") && !given.contains("planish.trial"), "{when}: {given}");
    let undone =
        planish_pipeline::undo(&tree.session(), planish_pipeline::Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{when}: {undone:#?}");
    reboot(tree, start, true);
    assert_gone(tree, start, when);
}

/// The exit code tells what became of `--keep`, as that of any other trial does.
#[test]
fn what_cannot_be_kept_or_does_not_last_is_told_by_the_exit_code() {
    const OWN: &str = "/etc/default/grub.d/90-planish.cfg";
    let counter = Fuse::counting();
    let (tree, start) = machine(all()[0]);
    // A file of the host that is read behind ours.
    tree.put("/etc/sysctl.d/99-zz.conf", "vm.swappiness = 60\n");
    let outcome = kept_behind(&tree, &start, &counter);
    assert_eq!(outcome.exit, Exit::Findings.code(), "{:?} {:?}", outcome.refused, outcome.notes);
    assert!(
        outcome.notes.iter().any(|note| note.contains("skew_tick=1; planish undo")),
        "{:?}",
        outcome.notes
    );

    let write = counter.places().iter().position(|place| place == OWN).expect("it was written");
    let (tree, start) = machine(all()[0]);
    let outcome = kept_behind(&tree, &start, &Fuse::refusing(write, rustix::io::Errno::IO));
    assert_eq!(outcome.exit, Exit::FailedRestored.code(), "{:?} {:?}", outcome.refused, outcome.notes);
    assert!(outcome.refused.iter().any(|refusal| refusal.what == "--keep"), "{:?}", outcome.refused);
    assert_gone(&tree, &start, "a write that was refused");

    // What nobody can persist is said before the first boot, and not after the last.
    let (tree, _) = machine(all()[0]);
    tree.put(OWN, "# somebody's\n");
    let before = tree.snapshot();
    let error = begin(&tree, &tree.session(), &mut Played(None), true).expect_err("refused");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains("--keep could not persist boot `skew`"), "{error}");
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    begin(&tree, &tree.session(), &mut Played(None), false).expect("who keeps nothing is in nobody's way");
}

/// Hands of a machine on which another planish is at work from the moment on at which the trial is concluded.
struct Crowded<'a> {
    tree: &'a Tree,
    seconds: u64,
    other: Option<std::thread::JoinHandle<()>>,
}

impl Hands for Crowded<'_> {
    fn reboot(&mut self, _session: &Session) -> Result<(), PipelineError> {
        Ok(())
    }
    fn now(&self) -> Option<u64> {
        Some(1_763_600_000)
    }
    fn before(&mut self, call: &'static str) {
        if call == "conclude" {
            let path = self.tree.root().join("var/lib/planish/lock");
            let lock = HostLock::acquire(&path, Duration::ZERO).expect("free");
            let time = Duration::from_secs(self.seconds);
            self.other = Some(std::thread::spawn(move || {
                std::thread::sleep(time);
                drop(lock);
            }));
        }
    }
}

/// At the end of a trial of boots nobody is there to type anything again: another planish is waited for, and one that
/// is at work for longer leaves the trial as it is, to be resumed.
#[test]
fn another_planish_at_the_end_of_a_trial_takes_nothing_of_what_was_kept() {
    let (tree, start) = near_its_end(all()[0]);
    for (seconds, is_kept) in [(1, true), (11, false)] {
        let tree = twin(&tree);
        let mut hands = Crowded { tree: &tree, seconds, other: None };
        let mut going = None;
        while hands.other.is_none() {
            reboot(&tree, &start, true);
            going = boots::resume(&tree.session(), &options(false), &mut hands, &mut Silent).expect("read");
        }
        let outcome = going.expect("it has a state until it ends").outcome;
        hands.other.take().expect("it was at work").join().expect("it has finished");
        assert_eq!(outcome.refused.is_empty(), is_kept, "{:?}", outcome.refused);
        if !is_kept {
            assert_eq!(outcome.exit, Exit::Refused.code());
            assert!(outcome.refused[0].why.contains("not persisted yet"), "{:?}", outcome.refused);
            let going = resume(&tree.session(), &mut Played(None)).expect("its state is there");
            assert!(going.outcome.refused.is_empty(), "{:?}", going.outcome.refused);
        }
        let told = boots::status(&tree.session()).expect("readable").expect("it has ended");
        let entries = tree.entries();
        let kept = entries.iter().rev().find(|entry| entry.is_open()).expect("it is persisted");
        let note = format!("persisted by entry {0}: planish undo {0}", kept.id);
        assert!(told.notes.iter().any(|told| told.contains(&note)), "{:?}", told.notes);
    }
}

/// What leaves a boot takes its own file away, so that it leaves each boot that the loader was told of once. The next
/// of those has it again; and that it is gone is in the way of no undo.
#[test]
fn what_left_a_boot_is_there_again_for_the_next_and_goes_with_all_else() {
    for stops in [false, true] {
        let (tree, start) = machine(all()[0]);
        begin(&tree, &tree.session(), &mut Played(None), false).expect("begun");
        for boot in 0..4 {
            reboot(&tree, &start, true);
            let told = (tree.get(BACK), tree.get(TIMER), tree.get(EARLY));
            let (service, timer, early) = &told;
            assert!(service.contains(&format!("'rm {BACK} && ")), "boot {boot}: {service}");
            assert!(timer.contains("\nOnBootSec=") && early.contains("planish-trial-back.timer"), "{told:?}");
            // It did not go on in this boot, and was left.
            tree.remove(BACK);
            reboot(&tree, &start, true);
            if stops {
                break;
            }
            let going = resume(&tree.session(), &mut Played(None)).expect("under way");
            if going.after == After::Ended {
                break;
            }
        }
        if let Some(going) = stop(&tree.session(), &mut Played(None)) {
            assert_eq!(going.after, After::Ended);
        }
        assert_gone(&tree, &start, "a boot that was left");
    }
}

#[test]
fn boots_that_never_come_up_drop_their_arm_and_end_the_trial() {
    for named in all() {
        let (name, (tree, start)) = (named.0, machine(named));
        begin(&tree, &tree.session(), &mut Played(None), true).expect("begun");
        let outcome = play(&tree, &start, |_| false).outcome;
        assert_gone(&tree, &start, name);
        let skew = outcome.rungs.iter().find(|rung| rung.name == "skew").expect("planned");
        assert_eq!(skew.verdict, RungVerdict::Drop, "{name}: {}", skew.reason);
        assert!(skew.reason.contains("it did not come up"), "{name}: {}", skew.reason);
        let boots = outcome.boots.expect("of boots");
        assert!(boots.boots.len() <= 6 && boots.asked <= 6, "{name}: it ends early: {boots:?}");
    }
}

#[test]
fn a_default_entry_that_somebody_changes_ends_the_trial_and_says_so() {
    let (tree, start) = machine(all()[2]);
    begin(&tree, &tree.session(), &mut Played(None), false).expect("begun");
    persist(&tree, &more());
    let entry = default_entry(&tree);
    let outcome = loop {
        reboot(&tree, &start, true);
        let going = resume(&tree.session(), &mut Played(None)).expect("it has a state until it ends");
        if going.after == After::Ended {
            break going.outcome;
        }
    };
    assert_eq!(default_entry(&tree), entry, "what somebody gave every boot stays");
    let boots = outcome.boots.expect("of boots");
    // The boot that was asked for already, and no other.
    assert!(boots.asked == 1 && boots.boots.len() == 1, "{boots:?}");
    let told = outcome.notes.join("\n");
    assert!(
        told.contains("the default entry was `R`") && told.contains("rcupdate.rcu_normal_after_boot=1`) now"),
        "{told}"
    );
    assert!(
        outcome.rungs.iter().all(|rung| rung.verdict == RungVerdict::Inconclusive),
        "{:?}",
        outcome.rungs
    );
}

/// What kernel-install(8) does where no `/etc/kernel/cmdline` is: the entry of a new kernel gets the command line that
/// runs. On systems of Red Hat's kind it becomes the default, too.
fn install_kernel(tree: &Tree, folder: &str, is_default: bool) -> String {
    let path = format!("{folder}/m-6.13.conf");
    let running = tree.get(CMDLINE);
    tree.put(&path, &format!("title N\nversion 6.13\nlinux /vmlinuz-6.13\noptions {running}"));
    let env = "/boot/grub2/grubenv";
    if is_default && !tree.get(env).is_empty() {
        let text = tree.get(env).replace("saved_entry=m-6.12\n", "saved_entry=m-6.13\n");
        tree.put(env, &text);
    }
    path
}

#[test]
fn a_kernel_that_is_installed_in_a_boot_on_trial_ends_the_trial_and_says_what_to_take_out() {
    // Under systemd-boot the newer name is shown first.
    for (named, folder, is_default) in [
        (all()[2], "/boot/loader/entries", false),
        (all()[2], "/boot/loader/entries", true),
        (all()[3], "/efi/loader/entries", true),
    ] {
        let (name, (tree, start)) = (named.0, machine(named));
        begin(&tree, &tree.session(), &mut Played(None), true).expect("begun");
        for _ in 0..4 {
            reboot(&tree, &start, true);
            if tree.get(CMDLINE).contains("planish.trial=") {
                break;
            }
            resume(&tree.session(), &mut Played(None)).expect("under way");
        }
        tree.remove_if_there("/etc/kernel/cmdline");
        let entry = install_kernel(&tree, folder, is_default);
        let cure = "take `skew_tick=1 planish.trial=";
        let checked = check(&tree.session(), None).expect("checked");
        assert_eq!((checked.exit, checked.carried_over.len()), (Exit::Findings, 1), "{name}");
        assert_eq!(checked.carried_over[0].source, format!("{entry}:4"), "{name}");
        assert!(checked.carried_over[0].cure().starts_with(cure), "{name}: {:?}", checked.carried_over);
        let told = boots::status(&tree.session()).expect("readable").expect("under way").notes.join("\n");
        assert!(told.contains(cure) && told.contains(&entry), "{name}: {told}");
        let error = confirm(&tree.session()).expect_err("what runs is no boot on trial any more");
        assert_eq!(error.exit(), Exit::Refused, "{name}: {error}");

        let asked =
            boots::status(&tree.session()).expect("readable").expect("it").boots.expect("of boots").asked;
        let mut going = resume(&tree.session(), &mut Played(None)).expect("under way");
        // To the default entry it goes back, unless that has become one on trial.
        assert_eq!(going.after == After::Reboot, !is_default, "{name}: {:?}", going.outcome.notes);
        let told = going.outcome.notes.join("\n");
        assert_eq!(told.contains("the next one has its arguments too"), is_default, "{name}: {told}");
        if !is_default {
            reboot(&tree, &start, true);
            assert!(!tree.get(CMDLINE).contains("skew_tick"), "{name}");
            going = resume(&tree.session(), &mut Played(None)).expect("it has a state until it ends");
        }
        assert_eq!(going.after, After::Ended, "{name}");
        assert!(going.outcome.notes.join("\n").contains(cure), "{name}: {:?}", going.outcome.notes);
        assert_eq!(going.outcome.boots.expect("of boots").asked, asked, "{name}: no boot more");
        let error = begin(&tree, &tree.session(), &mut Played(None), false).expect_err("refused");
        assert_eq!(error.exit(), Exit::Refused, "{name}: {error}");

        // The cure, as it was told.
        let copied = checked.carried_over[0].copied();
        tree.put(&entry, &tree.get(&entry).replace(&format!(" {copied}"), ""));
        assert_eq!(check(&tree.session(), None).expect("checked").carried_over, [], "{name}");
        let left = differences(&start, &tree.snapshot());
        let is_theirs = |path: &String| {
            [CMDLINE, "/boot/grub2/grubenv", "/etc/kernel/cmdline", &entry].contains(&path.as_str())
        };
        assert!(left.iter().all(is_theirs), "{name}: {left:?}");
    }
}

#[test]
fn it_is_stopped_in_a_boot_on_trial_and_in_any_other() {
    for named in all() {
        for boots in 0..4 {
            let (name, (tree, start)) = (named.0, machine(named));
            begin(&tree, &tree.session(), &mut Played(None), false).expect("begun");
            for _ in 0..boots {
                reboot(&tree, &start, true);
                resume(&tree.session(), &mut Played(None)).expect("under way");
            }
            // The next boot, in which somebody logs in before the unit has done anything.
            reboot(&tree, &start, true);
            let is_on_trial = tree.get(CMDLINE).contains("planish.trial=");
            let going = stop(&tree.session(), &mut Played(None)).expect("it was under way");
            assert_eq!(going.after, After::Ended);
            let by_default = "the next one is by the default entry, `";
            let is_told = going.outcome.notes.iter().any(|note| note.contains(by_default));
            assert_eq!(is_told, is_on_trial, "{name}: {:?}", going.outcome.notes);
            assert_gone(&tree, &start, name);
            assert!(stop(&tree.session(), &mut Played(None)).is_none(), "{name}: there is none any more");
            reboot(&tree, &start, true);
            assert!(!tree.get(CMDLINE).contains("skew_tick"), "{name}");
        }
    }
}

#[test]
fn a_state_that_nobody_can_read_goes_on_with_nothing_and_can_be_stopped() {
    let (tree, start) = machine(all()[0]);
    begin(&tree, &tree.session(), &mut Played(None), false).expect("begun");
    tree.put("/var/lib/planish/trial-boots.json", "{\"version\": 1, \"command\": ");
    reboot(&tree, &start, true);
    let session = tree.session();
    assert!(boots::resume(&session, &options(false), &mut Played(None), &mut Silent).is_err());
    assert!(boots::status(&session).is_err());
    let error =
        boots::stop(&session, &options(false), &mut Played(None), &mut Silent).expect_err("it says so");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains("nothing can be concluded"), "{error}");
    assert_gone(&tree, &start, "an unreadable state");
}

/// The disk of the state is not mounted in a boot on trial: a success would leave the machine in it.
#[test]
fn a_boot_on_trial_without_its_state_is_a_failure_and_takes_nothing_away() {
    let (tree, start) = machine(all()[0]);
    begin(&tree, &tree.session(), &mut Played(None), false).expect("begun");
    let state = "/var/lib/planish/trial-boots.json";
    for _ in 0..4 {
        reboot(&tree, &start, true);
        if tree.get(CMDLINE).contains("planish.trial=") {
            break;
        }
        resume(&tree.session(), &mut Played(None)).expect("under way");
    }
    let text = tree.get(state);
    tree.remove(state);
    let error = boots::resume(&tree.session(), &options(false), &mut Played(None), &mut Silent)
        .expect_err("there is no state");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(tree.get(BACK).contains("rm ") && tree.get(SERVICE).contains("trial resume"), "all is there");
    // The next boot has its disk again: this one is lost, and it goes on.
    tree.put(state, &text);
    reboot(&tree, &start, true);
    assert_eq!(resume(&tree.session(), &mut Played(None)).expect("under way").after, After::Reboot);
    stop(&tree.session(), &mut Played(None)).expect("under way");
    assert_gone(&tree, &start, "a boot without its state");
}

#[test]
fn without_leave_to_reboot_it_says_what_it_would_do_and_writes_nothing() {
    let tree = able(all()[0]);
    let start = tree.snapshot();
    let session = tree.session();
    let none = BootOptions::default();
    let error =
        boots::begin(&trial(&tree, 8), &session, &options(false), &none, &mut Played(None), &mut Silent)
            .expect_err("refused");
    assert_eq!(error.exit(), Exit::Refused);
    let told = error.to_string();
    for part in ["21 to 24 times", "`skew` is given skew_tick=1", "30 times at most"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(error.hints().concat().contains("--allow reboot"), "{:?}", error.hints());
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert_eq!(tree.entries().len(), 0);
    // A loader that might boot the entry for ever is refused before, with the reason.
    let tree = (all()[0].1)();
    let error = begin(&tree, &tree.session(), &mut Played(None), false).expect_err("refused");
    assert!(error.to_string().contains("boot `skew`"), "{error}");
    assert_eq!(tree.entries().len(), 0);
    // So is what cannot run at all: the machine is not started anew for it.
    let tree = able(all()[0]);
    let mut broken = trial(&tree, 8);
    broken.workload.command = vec!["false".to_owned()];
    let error =
        boots::begin(&broken, &tree.session(), &options(false), &allowed(), &mut Played(None), &mut Silent)
            .expect_err("refused");
    assert!(matches!(error, TrialError::Baseline { .. }), "{error}");
    assert_gone(&tree, &tree.snapshot(), "a workload that fails");
}

/// Begins, or goes on in the boots behind that, until the fuse blows or so many boots have gone by. Whether it blew.
fn until_cut(tree: &Tree, start: &BTreeMap<String, String>, fuse: &Rc<Fuse>, boots: usize) -> bool {
    let session = fused(tree.options(), fuse);
    let begun = until_killed(|| begin(tree, &session, &mut Played(Some(Rc::clone(fuse))), false).map(drop));
    drop(session);
    if begun.is_none() {
        return true;
    }
    for _ in 0..boots {
        reboot(tree, start, true);
        let session = fused(tree.options(), fuse);
        let gone_on = until_killed(|| resume(&session, &mut Played(Some(Rc::clone(fuse)))));
        drop(session);
        if gone_on.is_none() {
            return true;
        }
    }
    false
}

/// The power is cut at an operation of the beginning or of the boots behind it; somebody switches it on. Then it goes
/// on by itself, or somebody ends it, and nothing of it is left.
fn cut(named: Named, at: usize, moment: Moment, boots: usize) {
    let (name, (tree, start)) = (named.0, machine(named));
    let when = format!("{name}: cut {moment:?} operation {at}");
    let entry = default_entry(&tree);
    assert!(until_cut(&tree, &start, &Fuse::at(at, moment), boots), "{when}: never reached");
    assert_eq!(default_entry(&tree), entry, "{when}");
    // The loader takes the entry that it was told of; that boot comes up or it does not.
    reboot(&tree, &start, at.is_multiple_of(2));
    if let Some(going) = resume(&tree.session(), &mut Played(None)) {
        assert_eq!(going.after, After::Reboot, "{when}: {:?}", going.outcome.notes);
        let lost =
            going.outcome.boots.iter().flat_map(|boots| &boots.boots).filter(|boot| boot.lost.is_some());
        assert!(lost.count() <= 1, "{when}: {:?}", going.outcome.boots);
        reboot(&tree, &start, true);
        stop(&tree.session(), &mut Played(None)).expect("it was under way");
    }
    assert_gone(&tree, &start, &when);
    reboot(&tree, &start, true);
    assert!(!tree.get(CMDLINE).contains("skew_tick"), "{when}");
    let boots = boots_on_trial(&tree.session()).expect("a sound journal");
    assert!(boots.iter().all(|boot| boot.state != TrialBootState::Armed), "{when}: {boots:?}");
}

/// Of three moments at four loaders each operation has one a loader, another at the next.
#[test]
fn a_power_cut_at_any_operation_leaves_the_old_entry_and_a_trial_that_goes_on_or_ends() {
    for (number, named) in all().into_iter().enumerate() {
        const BOOTS: usize = 2;
        let counter = Fuse::counting();
        let (tree, start) = machine(named);
        assert!(!until_cut(&tree, &start, &counter, BOOTS));
        assert!(counter.operations() > 60, "{}: {}", named.0, counter.operations());
        let step = if is_whole() { all().len() } else { 2 * all().len() };
        for at in (number..counter.operations()).step_by(step) {
            cut(named, at, MOMENTS[(at / step) % MOMENTS.len()], BOOTS);
        }
    }
}
