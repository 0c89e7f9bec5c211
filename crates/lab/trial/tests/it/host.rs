//! Host arms on a writable recorded machine: from a trial file through plan, journal, write and read-back to undo.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use planish_model::{Closure, EntryId, EntryState, KnobId, Nodes, Profile, Want};
use planish_pipeline::{
    ApplyOptions, PlanOptions, Session, SessionOptions, Source, Target, apply, plan, undo,
};
use planish_trial::{
    Action, ArmError, HostControl, Phase, PipelineHost, Progress, Proofs, RunOptions, RungVerdict, Silent,
    Stop, Tick, TrialFile, run,
};

/// A copy of the recorded server, which may be written.
struct Machine {
    _folder: tempfile::TempDir,
    root: PathBuf,
    session: Session,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().join("metal");
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts/metal-2s");
        let copied = std::process::Command::new("cp").arg("-r").args([&recorded, &root]).status();
        assert!(copied.expect("there is cp").success());
        let options = SessionOptions {
            root: Some(root.clone()),
            state: Some(folder.path().join("state")),
            command: "planish trial run t.toml".to_owned(),
            ..SessionOptions::default()
        };
        let session = Session::open(options).expect("a recorded host");
        Self { _folder: folder, root, session }
    }

    /// Somebody else's session of the same machine, with a state folder of its own.
    fn another(&self) -> Session {
        let options = SessionOptions {
            root: Some(self.root.clone()),
            state: Some(self.root.with_file_name("other")),
            ..SessionOptions::default()
        };
        Session::open(options).expect("a recorded host")
    }

    fn read(&self, path: &str) -> String {
        self.session.host().read(path).expect("it is recorded").trim().to_owned()
    }

    /// A load that is 20 % cheaper while swappiness is 1.
    fn trial(&self) -> TrialFile {
        TrialFile::parse("t.toml", &self.trial_text()).expect("a good file")
    }

    fn trial_text(&self) -> String {
        let script = format!(
            "cost=$((100000 + $$ * 7919 % 700)); \
             [ $(cat {}/proc/sys/vm/swappiness) = 1 ] && cost=$((cost * 8 / 10)); echo $cost",
            self.root.display()
        );
        format!(
            "name = \"t\"\nsummary = \"s\"\nprimary = \"cost\"\nguards = []\n\
             [workload]\nadapter = \"number\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
             [[workload.metric]]\nname = \"cost\"\nbetter = \"lower\"\nregex = \"[0-9]+\"\n\
             [[rung]]\nname = \"swap\"\nwant = {{ \"vm.swappiness\" = 1 }}\n"
        )
    }
}

fn options(keep: bool, stop: Stop) -> RunOptions {
    RunOptions {
        quick: false,
        keep,
        duet: false,
        seed: Some(5),
        budget: None,
        program: "planish".into(),
        command: "planish trial run t.toml".to_owned(),
        stop,
    }
}

fn lone(id: &str, want: Want) -> Profile {
    let want = [(KnobId::new(id), want)].into();
    Profile {
        name: format!("trial-{id}"),
        summary: "an arm".to_owned(),
        inherits: Vec::new(),
        want,
        placement: None,
        ..Profile::default()
    }
}

#[test]
fn an_arm_is_on_the_host_for_its_units_only_and_the_winner_for_good() {
    let machine = Machine::new();
    let before = machine.read("/proc/sys/vm/swappiness");
    let trial = machine.trial();
    let outcome =
        run(&trial, &machine.session, &options(false, Stop::default()), &mut Silent).expect("it runs");
    let swap = &outcome.rungs[0];
    assert_eq!(swap.verdict, RungVerdict::Keep, "{}", swap.reason);
    assert!((swap.effect.expect("pairs") - 0.2).abs() < 0.01);
    let facts = &swap.achieved.as_ref().expect("read back").facts;
    assert_eq!(facts["/proc/sys/vm/swappiness"], "1");
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), before, "everything was taken back");
    let entries = planish_pipeline::log(&machine.session).expect("a journal");
    assert!(entries.len() >= swap.pairs && entries.iter().all(|entry| !entry.is_open()));
    assert_eq!(outcome.host.kernel, machine.session.observe().host.kernel);

    let outcome =
        run(&trial, &machine.session, &options(true, Stop::default()), &mut Silent).expect("it runs");
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), "1", "{:?}", outcome.notes);
    assert!(machine.read("/etc/sysctl.d/90-planish.conf").contains("vm.swappiness"));
    let entries = planish_pipeline::log(&machine.session).expect("a journal");
    let open: Vec<_> = entries.iter().filter(|entry| entry.is_open()).collect();
    assert_eq!((open.len(), open[0].state), (1, EntryState::Open));
    let proof = outcome.proof_id.expect("stored");
    assert_eq!(open[0].reason.as_deref(), Some(format!("trial t, proof {proof}").as_str()));
    let stored = Proofs::of_state(machine.session.state_folder()).load(&proof).expect("stored");
    // What it says of `--keep` comes after its proof: a file that is read later takes the value back.
    assert_eq!((outcome.exit, stored.exit), (1, 0), "{:?}", outcome.notes);
    let told = |what: &str| outcome.notes.iter().any(|note| note.contains(what));
    let lost = "written for the next boot: /etc/sysctl.d/90-planish.conf; \
                vm.swappiness: /etc/sysctl.d/99-local.conf:2 will set 60";
    assert!(told(lost) && told("exit code 1: "), "{:?}", outcome.notes);
}

/// Runs a line of shell in the folder of a machine.
fn shell(machine: &Machine, line: &str) {
    let done = std::process::Command::new("sh").args(["-c", line]).current_dir(&machine.root).status();
    assert!(done.expect("there is a shell").success(), "{line}");
}

/// A profile of the catalogue, as a rung tries it.
fn whole(profile: &str) -> Profile {
    Profile { inherits: vec![profile.to_owned()], want: [].into(), ..lone("vm.swappiness", Want::Int(1)) }
}

/// All files of a boot loader, with their contents.
fn boot_files(machine: &Machine) -> String {
    let line = "find boot etc/default etc/kernel -type f 2>/dev/null | sort | xargs sha256sum";
    let listed = std::process::Command::new("sh").args(["-c", line]).current_dir(&machine.root).output();
    String::from_utf8(listed.expect("there is a shell").stdout).expect("text")
}

#[test]
fn boot_parameters_that_no_unit_had_are_not_persisted_and_named() {
    let machine = Machine::new();
    let before = boot_files(&machine);
    assert!(before.contains("etc/default/grub"), "{before}");
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let realtime = whole("realtime");
    assert_eq!(host.can_have(&realtime), Ok(()));
    host.can_persist(&realtime).expect("it may");
    let kept = host.persist(&realtime, "trial t").expect("persisted");
    assert_eq!(boot_files(&machine), before, "the boot loader is as it was");
    let entries = planish_pipeline::log(&machine.session).expect("a journal");
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    let ids: Vec<&str> = entry.steps.iter().map(|step| step.knob.as_str()).collect();
    assert!(ids.contains(&"persist.sysctl") && !ids.iter().any(|id| id.starts_with("boot.")), "{ids:?}");
    assert!(!ids.contains(&"persist.grub"), "{ids:?}");
    let files = "persisted as entry 1: planish undo 1; written for the next boot: \
                 /etc/sysctl.d/90-planish.conf, /etc/tmpfiles.d/90-planish.conf";
    assert!(kept.notes[0].starts_with(files), "{:?}", kept.notes);
    let left = "not persisted, since a trial measures no boot parameter: \
                boot.rcupdate_rcu_normal_after_boot, boot.skew_tick; \
                with the rest of its profile: planish apply realtime --persist";
    assert!(kept.notes.iter().any(|note| note == left), "{:?}", kept.notes);
    // It is undone as any entry, and nothing of it stays.
    undo(&machine.session, Target::All, false).expect("undone");
    assert_eq!(boot_files(&machine), before);
}

#[test]
fn a_boot_loader_that_is_not_known_is_in_nobody_s_way() {
    let machine = Machine::new();
    shell(&machine, "rm -r boot/grub && mkdir boot/extlinux && echo 'LABEL a' > boot/extlinux/extlinux.conf");
    let refused =
        plan(&machine.session, &Source::Inline(Box::new(whole("realtime"))), &PlanOptions::default())
            .and_then(|plan| planish_pipeline::can_persist(&machine.session, &plan));
    assert!(refused.is_err(), "else it is known, and this shows nothing");
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    host.can_persist(&whole("realtime")).expect("no file of it is due");
    let kept = host.persist(&whole("realtime"), "trial t").expect("persisted");
    assert!(kept.notes.iter().any(|note| note.ends_with("planish apply realtime --persist")), "{kept:?}");
}

#[test]
fn a_boot_parameter_that_runs_and_that_the_next_boot_does_not_give_is_named_alike() {
    let machine = Machine::new();
    shell(&machine, "sed -i 's/$/ skew_tick=1/' proc/cmdline");
    let before = boot_files(&machine);
    let both = Profile {
        want: [
            (KnobId::new("boot.skew_tick"), Want::Int(1)),
            (KnobId::new("vm.vfs_cache_pressure"), Want::Int(50)),
        ]
        .into(),
        ..lone("vm.vfs_cache_pressure", Want::Int(50))
    };
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    assert_eq!(host.can_have(&both), Ok(()));
    let kept = host.persist(&both, "trial t").expect("persisted");
    assert_eq!(boot_files(&machine), before, "somebody may have taken it out of there since");
    let left = "not persisted, since a trial measures no boot parameter: boot.skew_tick; \
                give `skew_tick=1` to the boot loader";
    assert!(kept.notes.iter().any(|note| note == left), "{:?}", kept.notes);
    assert!(kept.lasts, "it is no part of what was kept: {:?}", kept.notes);
    // What the next boot gives anyway is nobody's concern.
    let machine = Machine::new();
    let line = "sed -i 's/$/ skew_tick=1/' proc/cmdline && sed -i 's/ ro quiet/& skew_tick=1/' boot/grub/grub.cfg \
                && sed -i 's/=\"quiet\"/=\"quiet skew_tick=1\"/' etc/default/grub";
    shell(&machine, line);
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let kept = host.persist(&both, "trial t").expect("persisted");
    assert!(!kept.notes.iter().any(|note| note.contains("skew_tick")), "{:?}", kept.notes);
}

#[test]
fn what_a_later_file_takes_back_is_told_also_where_nothing_is_written() {
    let machine = Machine::new();
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let swap = lone("vm.swappiness", Want::Int(1));
    let will = "; vm.swappiness: /etc/sysctl.d/99-local.conf:2 will set 60";
    let kept = host.persist(&swap, "trial t").expect("persisted");
    assert!(kept.notes[0].ends_with(will) && !kept.lasts, "{kept:?}");
    let again = host.persist(&swap, "trial t").expect("nothing to write");
    assert_eq!(again.notes, [format!("everything kept is on the host already{will}")]);
    assert!(!again.lasts);
    shell(&machine, "rm etc/sysctl.d/99-local.conf");
    let again = host.persist(&swap, "trial t").expect("nothing to write");
    assert_eq!((again.notes, again.lasts), (vec!["everything kept is on the host already".to_owned()], true));
}

#[test]
fn what_no_file_brings_back_is_told_where_it_is_kept() {
    let machine = Machine::new();
    // No line of tmpfiles.d takes a place whose name is a pattern.
    shell(&machine, "mv sys/block/sda 'sys/block/s*a'");
    let ahead = lone("block.read_ahead_kb", Want::Int(64));
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    assert_eq!(host.can_have(&ahead), Ok(()));
    for first in
        ["persisted as entry 1: planish undo 1; written for", "everything kept is on the host already"]
    {
        let kept = host.persist(&ahead, "trial t").expect("persisted");
        assert!(kept.notes[0].starts_with(first), "{kept:?}");
        let left = |note: &String| note.starts_with("block.read_ahead_kb is not persisted (/sys/block/s*a");
        assert!(kept.notes.iter().any(left) && kept.lasts, "as an apply that persists: {kept:?}");
    }
}

#[test]
fn where_its_lines_are_there_already_no_file_is_named() {
    let machine = Machine::new();
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let cache = lone("vm.vfs_cache_pressure", Want::Int(50));
    host.persist(&cache, "trial t").expect("persisted");
    shell(&machine, "echo 70 > proc/sys/vm/vfs_cache_pressure");
    let again = host.persist(&cache, "trial t").expect("persisted");
    let told = "persisted as entry 2: planish undo 2; no file for the next boot was due";
    assert_eq!((again.notes, again.lasts), (vec![told.to_owned()], true), "its line is there");
}

/// A trial that leaves the host alone.
fn plain() -> TrialFile {
    let text = "name = \"p\"\nsummary = \"s\"\nprimary = \"wall_s\"\n\
                [workload]\nadapter = \"command\"\ncommand = [\"true\"]\n\
                [[rung]]\nname = \"x\"\nenv = { X = \"1\" }\n";
    TrialFile::parse("p.toml", text).expect("a good file")
}

fn assert_refused<T: std::fmt::Debug>(tried: Result<T, planish_trial::TrialError>) {
    let error = tried.expect_err("another trial is at work");
    assert!(error.to_string().contains(&format!("(pid {})", std::process::id())), "{error}");
    assert_eq!(error.exit(), planish_model::Exit::Refused);
    assert_eq!(error.hints(), ["wait until it has finished, then try again"]);
}

/// Somebody who sets the host to what the rung wants when its confirmation begins.
struct Impatient(PathBuf);

impl Progress for Impatient {
    #[expect(clippy::disallowed_methods, reason = "somebody else's write")]
    fn tick(&mut self, tick: &Tick) {
        if tick.phase == Phase::Confirm {
            std::fs::write(&self.0, "1\n").expect("a copy of ours");
        }
    }
}

#[test]
fn what_somebody_sets_between_two_units_is_in_the_notes() {
    let machine = Machine::new();
    let before = machine.read("/proc/sys/vm/swappiness");
    let place = machine.root.join("proc/sys/vm/swappiness");
    let told = format!("/proc/sys/vm/swappiness was `{before}` and is `1` between two units");
    let notes = |progress: &mut dyn Progress| {
        let outcome = run(&machine.trial(), &machine.session, &options(false, Stop::default()), progress);
        let notes = outcome.expect("it runs").notes;
        notes.iter().filter(|note| note.starts_with(&told)).count()
    };
    assert_eq!(notes(&mut Silent), 0);
    assert_eq!(notes(&mut Impatient(place)), 1);
}

/// Sets what the rung of the trial wants, for this reason.
fn set_beforehand(machine: &Machine, reason: &str) {
    let source = Source::Inline(Box::new(lone("vm.swappiness", Want::Int(1))));
    let plan = plan(&machine.session, &source, &PlanOptions::default()).expect("it can be planned");
    let options = ApplyOptions { reason: Some(reason.to_owned()), ..ApplyOptions::default() };
    let entry = apply(&machine.session, &plan, &options).expect("it may be written").entry;
    assert_eq!(entry.expect("it was another value").0, 1);
}

#[test]
fn a_rung_that_the_host_has_already_is_no_rung() {
    let machine = Machine::new();
    set_beforehand(&machine, "mine");
    let outcome = run(&machine.trial(), &machine.session, &options(false, Stop::default()), &mut Silent);
    let outcome = outcome.expect("the baseline can be measured");
    let swap = &outcome.rungs[0];
    assert_eq!((swap.verdict, swap.pairs), (RungVerdict::Unavailable, 0), "{}", swap.reason);
    assert!(swap.reason.contains("the host has already all of it"), "{}", swap.reason);
    let cures: Vec<&str> = outcome.refused.iter().map(|refusal| refusal.cure.as_str()).collect();
    let cure = "give the baseline the value to compare with, in its own `want`; \
                or take back all that set it: planish undo 1";
    assert!(cures.contains(&cure), "{cures:?}");

    // It is the baseline's, too, unless that has a value of its own.
    let with_baseline = "[baseline]\nname = \"as before\"\nwant = { \"vm.swappiness\" = 60 }\n[[rung]]";
    let text = machine.trial_text().replace("[[rung]]", with_baseline);
    let trial = TrialFile::parse("t.toml", &text).expect("a good file");
    let outcome = run(&trial, &machine.session, &options(false, Stop::default()), &mut Silent);
    let outcome = outcome.expect("it runs");
    assert_eq!(outcome.rungs[0].verdict, RungVerdict::Keep, "{}", outcome.rungs[0].reason);
}

#[test]
fn what_a_killed_trial_has_left_is_no_baseline() {
    let machine = Machine::new();
    set_beforehand(&machine, "arm `swap` of trial `t`");
    let options = options(false, Stop::default());
    let refused = |error: planish_trial::TrialError| {
        assert_eq!(error.exit(), planish_model::Exit::Refused);
        assert!(
            error.to_string().contains("has left entry 1 on the host (arm `swap` of trial `t`)"),
            "{error}"
        );
        assert_eq!(error.hints(), ["take it back first: planish undo 1"]);
    };
    refused(run(&machine.trial(), &machine.session, &options, &mut Silent).expect_err("it is no baseline"));
    refused(
        planish_trial::selfcheck(&machine.trial(), &machine.session, &options, &mut Silent)
            .expect_err("as a run"),
    );
    undo(&machine.session, Target::Newest, false).expect("nobody is at work");
    let quick = RunOptions { quick: true, budget: Some(Duration::from_secs(2)), ..options };
    run(&machine.trial(), &machine.session, &quick, &mut Silent).expect("the host is as it was");
}

#[test]
fn no_trial_sets_the_host_beside_another_one_that_does() {
    let machine = Machine::new();
    let other = machine.another();
    let stop = Stop::default();
    let short = options(false, stop.clone());
    let mut tried = false;
    let mut beside = |tick: &Tick| {
        if tick.phase != Phase::Ladder || std::mem::replace(&mut tried, true) {
            return;
        }
        assert_refused(run(&machine.trial(), &other, &short, &mut Silent));
        assert_refused(planish_trial::selfcheck(&machine.trial(), &other, &short, &mut Silent));
        assert_refused(planish_trial::prove::series(&other, &short, &mut Silent));
        assert!(!other.state_folder().exists(), "neither journal nor proofs");
        // One that leaves the host alone has noise of it, and says so.
        let quick = RunOptions { quick: true, budget: Some(Duration::from_secs(2)), ..short.clone() };
        let plain = run(&plain(), &other, &quick, &mut Silent).expect("it runs");
        let us = format!("another trial (pid {}) was setting this host", std::process::id());
        assert!(plain.notes.iter().any(|note| note.starts_with(&us)), "{:?}", plain.notes);
        stop.set();
    };
    run(&machine.trial(), &machine.session, &options(false, stop.clone()), &mut beside).expect("it is first");
    assert!(tried, "the ladder was reached");
}

/// Puts a file of somebody else where values for the next boot go.
fn put_foreign(machine: &Machine) -> PathBuf {
    let file = machine.root.join("etc/sysctl.d/90-planish.conf");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::File::create(&file).expect("a file").write_all(b"vm.x = 1\n").expect("room");
    file
}

#[test]
fn what_could_not_be_persisted_is_known_before_anything_is_measured() {
    let machine = Machine::new();
    let before = machine.read("/proc/sys/vm/swappiness");
    put_foreign(&machine);
    let error = run(&machine.trial(), &machine.session, &options(true, Stop::default()), &mut Silent)
        .expect_err("somebody else's file");
    assert!(
        error.to_string().contains("90-planish.conf exists, and no open entry of this journal wrote it"),
        "{error}"
    );
    assert!(error.hints()[0].starts_with("move it away first: mv "), "{:?}", error.hints());
    assert_eq!(error.exit(), planish_model::Exit::Refused);
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), before);
    assert!(planish_pipeline::log(&machine.session).expect("a journal").is_empty(), "no unit was run");
    // Who keeps nothing is in nobody's way.
    let short = RunOptions { quick: true, ..options(false, Stop::default()) };
    run(&machine.trial(), &machine.session, &short, &mut Silent).expect("it runs");
}

#[test]
fn a_result_that_cannot_be_persisted_is_told_all_the_same() {
    let machine = Machine::new();
    let mut file = None;
    let mut meanwhile = |tick: &Tick| {
        if tick.phase == Phase::Confirm && file.is_none() {
            file = Some(put_foreign(&machine));
        }
    };
    let outcome = run(&machine.trial(), &machine.session, &options(true, Stop::default()), &mut meanwhile)
        .expect("the trial itself went well");
    let file = file.expect("it was confirmed");
    assert_eq!((outcome.rungs[0].verdict, outcome.exit), (RungVerdict::Keep, 0));
    let refusal = outcome.refused.iter().find(|refusal| refusal.what == "--keep").expect("it says so");
    assert!(refusal.why.contains("no open entry of this journal wrote it"), "{}", refusal.why);
    assert!(refusal.cure.starts_with("move it away first: mv "), "{}", refusal.cure);
    let proof = outcome.proof_id.expect("stored");
    assert!(Proofs::of_state(machine.session.state_folder()).load(&proof).is_ok());
    assert_ne!(machine.read("/proc/sys/vm/swappiness"), "1", "nothing of it is left");
    let mut text = String::new();
    std::fs::File::open(file).expect("still there").read_to_string(&mut text).expect("text");
    assert_eq!(text, "vm.x = 1\n");
}

#[test]
fn a_stop_gives_the_host_back() {
    let machine = Machine::new();
    let before = machine.read("/proc/sys/vm/swappiness");
    let stop = Stop::default();
    let mut blocks = 0;
    let watched = stop.clone();
    let mut watcher = |tick: &Tick| {
        blocks += usize::from(tick.phase == Phase::Ladder);
        // A slow machine has told of three before the first of them wrote anything.
        let has_written = || planish_pipeline::log(&machine.session).is_ok_and(|entries| !entries.is_empty());
        if blocks >= 3 && has_written() {
            watched.set();
        }
    };
    run(&machine.trial(), &machine.session, &options(true, stop), &mut watcher).expect("a stop is no error");
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), before);
    let entries = planish_pipeline::log(&machine.session).expect("a journal");
    let open: Vec<EntryId> = entries.iter().filter(|entry| entry.is_open()).map(|entry| entry.id).collect();
    assert_eq!((entries.is_empty(), open), (false, Vec::new()));
}

#[test]
fn what_the_machine_cannot_have_is_told_before_anything_is_written() {
    let machine = Machine::new();
    let host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    assert_eq!(host.can_have(&lone("vm.swappiness", Want::Int(1))), Ok(()));
    let unknown = host.can_have(&lone("vm.swapines", Want::Int(1))).expect_err("no such knob");
    assert!(matches!(&unknown, ArmError::Unavailable { reason, .. } if reason.contains("vm.swappiness")));
    let need = Want::Need { need_bytes: 1 << 50, nodes: Nodes::Spread };
    let huge = host.can_have(&lone("hugepages.2m", need)).expect_err("a pool of a pebibyte");
    assert!(matches!(huge, ArmError::Unavailable { .. }), "{huge:?}");
    assert!(planish_pipeline::log(&machine.session).expect("no journal yet").is_empty());
}

#[test]
fn a_profile_is_tried_as_apply_takes_it_without_what_this_machine_does_not_have() {
    let machine = Machine::new();
    let governors = "rm -r \"$0\"/sys/devices/system/cpu/cpu[0-9]*/cpufreq";
    let gone = std::process::Command::new("sh").args(["-c", governors]).arg(&machine.root).status();
    assert!(gone.expect("there is a shell").success());
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    // Named by the trial itself, it is what the arm is about.
    let named =
        host.can_have(&lone("cpu.governor", Want::Text("performance".to_owned()))).expect_err("absent");
    assert!(matches!(&named, ArmError::Unavailable { reason, .. } if reason.starts_with("cpu.governor: ")));
    let of = |profile: &str| Profile {
        inherits: vec![profile.to_owned()],
        want: [].into(),
        ..lone("vm.swappiness", Want::Int(1))
    };
    // Its pool follows from a service, and none is named: `apply series` sets the rest as well.
    assert_eq!(host.can_have(&of("series")), Ok(()));
    let whole = of("low-latency");
    assert_eq!(host.can_have(&whole), Ok(()));
    let applied = host.apply(&whole).expect("the rest can be set");
    let left = applied.values["not_set"].to_string();
    assert!(left.contains("cpu.governor: ") && !left.contains("vm.swappiness"), "{left}");
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), "1");
    host.undo_all().expect("it comes back");
}

/// What a rung got, of a short trial of these rungs.
fn got(machine: &Machine, rungs: &str) -> Vec<planish_trial::Rung> {
    let text = format!("{}{rungs}", machine.trial_text().split("[[rung]]").next().expect("a head"));
    let trial = TrialFile::parse("t.toml", &text).expect("a good file");
    let short =
        RunOptions { quick: true, budget: Some(Duration::from_secs(20)), ..options(false, Stop::default()) };
    run(&trial, &machine.session, &short, &mut Silent).expect("it runs").rungs
}

#[test]
fn a_profile_of_which_a_part_cannot_be_set_is_not_called_verified() {
    let machine = Machine::new();
    let governors = "rm -r \"$0\"/sys/devices/system/cpu/cpu[0-9]*/cpufreq";
    let gone = std::process::Command::new("sh").args(["-c", governors]).arg(&machine.root).status();
    assert!(gone.expect("there is a shell").success());
    let rungs = "[[rung]]\nname = \"some\"\nprofile = \"low-latency\"\n\
                 [[rung]]\nname = \"all\"\nwant = { \"vm.swappiness\" = 1 }\n";
    let rungs = got(&machine, rungs);
    let [some, all] = [0, 1].map(|index| rungs[index].achieved.as_ref().expect("read back"));
    let part = some.in_part.expect("there is no governor");
    let left = some.facts["not_set"].as_array().expect("a list").len();
    assert!(left > 0 && part.set > 0 && part.of == part.set + left, "{part:?}, {left} left");
    assert_eq!((some.verified, all.verified, all.in_part), (Some(false), Some(true), None));
}

#[test]
fn what_a_program_was_started_with_is_verified_only_where_it_is_read_back() {
    let machine = Machine::new();
    let cpu = planish_sys::affinity::get(None).expect("our own mask").last().expect("we run somewhere");
    let rungs = format!(
        "[[rung]]\nname = \"env\"\nenv = {{ X = \"1\" }}\n[[rung]]\nname = \"pinned\"\ncpus = \"{cpu}\"\n\
         [[rung]]\nname = \"no-cpu\"\ncpus = \"{cpu},9000\"\n[[rung]]\nname = \"no-node\"\nnode = 1077\n"
    );
    let rungs = got(&machine, &rungs);
    let verified = |index: usize| rungs[index].achieved.as_ref().expect("it ran").verified;
    assert_eq!((verified(0), verified(1), verified(4)), (None, Some(true), None));
    assert_eq!(rungs[1].achieved.as_ref().expect("it ran").facts["cpus"], cpu.to_string());
    let reason = |index: usize| {
        assert_eq!(rungs[index].verdict, RungVerdict::Unavailable, "{}", rungs[index].reason);
        rungs[index].reason.as_str()
    };
    assert!(reason(2).starts_with("CPU 9000 is not online: this machine has "), "{}", reason(2));
    assert!(reason(3).contains("node 1077"), "{}", reason(3));
}

#[test]
fn a_control_plane_that_is_dropped_takes_back_what_it_applied() {
    let machine = Machine::new();
    let before = machine.read("/proc/sys/vm/swappiness");
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let applied = host.apply(&lone("vm.swappiness", Want::Int(1))).expect("it may be written");
    assert!(applied.entry.is_some() && applied.short.is_empty());
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), "1");
    let other = undo(&machine.session, Target::Newest, false).expect_err("a trial runs");
    let us = format!("a trial is at work (pid {})", std::process::id());
    assert!(other.to_string().starts_with(&us), "{other}");
    assert_eq!(other.exit(), planish_model::Exit::Refused);
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), "1");
    drop(host);
    undo(&machine.session, Target::Newest, false).expect("no trial any more");
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), before);
}

#[test]
fn an_arm_that_somebody_takes_back_ends_the_trial() {
    let machine = Machine::new();
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let entry = host.apply(&lone("vm.swappiness", Want::Int(1))).expect("it may be written").entry;
    let entry = entry.expect("it was another value");
    undo(&machine.session, Target::Entry(entry), false).expect("it is named");
    match host.undo(entry).expect_err("its unit ran without it") {
        ArmError::Host { detail, restored: true } => assert!(detail.contains("someone else"), "{detail}"),
        other => panic!("{other:?}"),
    }
    assert!(host.undo_all().is_ok(), "nothing of it is left to undo");
}

#[test]
fn a_choice_is_the_same_whatever_else_could_be_chosen() {
    let machine = Machine::new();
    let host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let same = |one, other| host.same(&KnobId::new("block.scheduler"), one, other);
    assert!(same("[none] mq-deadline\n", "[none] mq-deadline kyber\n"));
    assert!(!same("[none] mq-deadline\n", "none [mq-deadline]\n"));
}

#[test]
fn an_action_is_in_the_journal_and_leaves_nothing_to_undo() {
    let machine = Machine::new();
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    for action in [Action::CompactMemory, Action::DropCaches] {
        assert_eq!(host.can_do(action), Ok(()));
        host.act(action).expect("the model takes it");
    }
    drop(host);
    let entries = planish_pipeline::log(&machine.session).expect("a journal");
    let steps: Vec<(&str, &str)> =
        entries.iter().map(|entry| (entry.steps[0].knob.as_str(), entry.steps[0].wanted.as_str())).collect();
    assert_eq!(steps.len(), 2);
    assert!(
        steps.contains(&("vm.compact_memory", "1")) && steps.contains(&("vm.drop_caches", "3")),
        "{steps:?}"
    );
    for entry in &entries {
        assert_eq!(entry.state, EntryState::Closed(Closure::Acted));
        assert_eq!(entry.reason.as_deref(), Some("between the units of a trial"));
    }
    let undone = undo(&machine.session, Target::All, false).expect("a journal");
    assert!(undone.entries.is_empty());
}

#[test]
fn a_short_grant_is_told_with_the_kernel_s_reason_and_can_be_given_back() {
    let machine = Machine::new();
    let pool = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
    let before = machine.read(pool);
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let need = Want::Need { need_bytes: 1 << 30, nodes: Nodes::Spread };
    let applied = host.apply(&lone("hugepages.2m", need)).expect("a short grant is no error");
    assert!(applied.short.iter().any(|reason| reason.contains("pages were granted")), "{:?}", applied.short);
    assert_ne!(machine.read(pool), before);
    host.undo(applied.entry.expect("it was written")).expect("nobody holds the pages");
    assert_eq!(machine.read(pool), before);
}

#[test]
fn a_rehearsal_reads_the_host_and_writes_nothing() {
    let machine = Machine::new();
    let before = machine.read("/proc/sys/vm/swappiness");
    assert_ne!(before, "1");
    let mut host = PipelineHost::new(&machine.session, "planish trial run t.toml");
    let rehearsed = host.rehearse(&lone("vm.swappiness", Want::Int(1))).expect("it could be written");
    assert_eq!(
        (rehearsed.entry, rehearsed.values["/proc/sys/vm/swappiness"].as_str()),
        (None, Some(before.as_str()))
    );
    assert_eq!(machine.read("/proc/sys/vm/swappiness"), before);
    let entries = planish_pipeline::log(&machine.session).expect("a journal");
    assert!(entries.is_empty(), "{entries:?}");
}
