//! Trial files, run with programs whose cost is known and a host that only remembers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use planish_model::{EntryId, Exit, HostFacts, KnobId, Profile};
use planish_trial::{
    Action, Applied, ArmError, Ground, HostControl, Kept, Proofs, RunOptions, RungVerdict, SelfCheckVerdict,
    Setup, Silent, Stop, Tick, TrialError, TrialFile, TrialOutcome, UnitKind, run_on, selfcheck_on,
};

use crate::recompute::recompute;

/// A host that remembers what it was asked for. While anything is applied, the file `fast` is there.
#[derive(Default)]
pub struct Memory {
    folder: std::path::PathBuf,
    pub open: Vec<EntryId>,
    pub applied: usize,
    rehearsed: usize,
    /// Whether somebody else sets the host, so that each read-back is another one.
    is_restless: bool,
    /// After how many applies somebody sets the host to what the rung wants.
    set_after: Option<usize>,
    persisted: Vec<(Profile, String)>,
    pub no_right: bool,
    /// Whether several entries may be open at once, as the pools of resident arms are.
    has_room: bool,
    undo_fails: bool,
    /// Whether a file of somebody else takes back at the next boot what is persisted.
    is_lost_at_boot: bool,
    pub acted: Vec<Action>,
}

impl Memory {
    /// Whether somebody has set the host, after which all arms are alike.
    fn is_set(&self) -> bool {
        self.set_after.is_some_and(|applies| self.applied >= applies)
    }
}

impl HostControl for Memory {
    fn facts(&self) -> HostFacts {
        HostFacts { kernel: "6.1".to_owned(), ..HostFacts::default() }
    }

    fn can_have(&self, _profile: &Profile) -> Result<(), ArmError> {
        if self.no_right {
            let cure = "sudo planish trial run".to_owned();
            return Err(ArmError::Unavailable { reason: "needs root".to_owned(), cure });
        }
        Ok(())
    }

    fn can_differ(&self, _profile: &Profile) -> Result<(), ArmError> {
        Ok(())
    }

    fn apply(&mut self, profile: &Profile) -> Result<Applied, ArmError> {
        assert!(self.open.is_empty() || self.has_room, "the arm before was taken back first");
        self.applied += 1;
        let entry = EntryId(self.applied as u64);
        self.open.push(entry);
        if !self.is_set() {
            std::fs::File::create(self.folder.join("fast")).expect("a temporary folder");
        }
        let values = profile.want.keys().map(|id| (id.to_string(), "1".into())).collect();
        Ok(Applied { entry: Some(entry), values, short: Vec::new() })
    }

    fn rehearse(&mut self, profile: &Profile) -> Result<Applied, ArmError> {
        assert!(self.open.is_empty(), "the arm before was taken back first");
        self.rehearsed += 1;
        let value = if self.is_restless { self.rehearsed } else { 60 };
        let place = |id: &KnobId| format!("/proc/sys/{}", id.to_string().replace('.', "/"));
        let values = profile.want.keys().map(|id| (place(id), value.to_string().into())).collect();
        Ok(Applied { entry: None, values, short: Vec::new() })
    }

    fn places(&self, profile: &Profile) -> Vec<(KnobId, String)> {
        let place = |id: &KnobId| format!("/proc/sys/{}", id.to_string().replace('.', "/"));
        profile.want.keys().map(|id| (id.clone(), place(id))).collect()
    }

    fn value(&self, _place: &str) -> Option<String> {
        assert!(self.open.is_empty(), "nothing of the trial is there when it looks");
        Some(if self.is_set() { "1" } else { "60" }.to_owned())
    }

    fn same(&self, _knob: &KnobId, one: &str, other: &str) -> bool {
        one == other
    }

    fn undo(&mut self, entry: EntryId) -> Result<(), ArmError> {
        assert_eq!(self.open.pop(), Some(entry));
        if self.undo_fails {
            return Err(ArmError::Host { detail: "EIO".to_owned(), restored: false });
        }
        let gone = std::fs::remove_file(self.folder.join("fast"));
        assert!(gone.is_ok() || self.has_room || self.is_set(), "it was made");
        Ok(())
    }

    fn undo_all(&mut self) -> Result<(), ArmError> {
        while let Some(entry) = self.open.last().copied() {
            self.undo(entry)?;
        }
        Ok(())
    }

    fn can_do(&self, action: Action) -> Result<(), ArmError> {
        let (knob, _) = action.knob();
        if self.no_right {
            let cure = "sudo planish trial run".to_owned();
            return Err(ArmError::Unavailable { reason: format!("only root may write {knob}"), cure });
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), ArmError> {
        assert!(self.open.is_empty(), "between units nothing is applied");
        self.acted.push(action);
        Ok(())
    }

    fn can_persist(&self, _profile: &Profile) -> Result<(), TrialError> {
        Ok(())
    }

    fn persist(&mut self, profile: &Profile, reason: &str) -> Result<Kept, TrialError> {
        self.persisted.push((profile.clone(), reason.to_owned()));
        let notes = vec!["persisted as entry 9: planish undo 9".to_owned()];
        Ok(Kept { notes, lasts: !self.is_lost_at_boot })
    }
}

/// A load that says what it cost: 100 units and a little noise, 20 % less on a fast host, 10 % less with LEAN
/// set, and a crash from the start on that LAST says. The noise goes by the number of the start: by PID it would be
/// another experiment at every run, and one in a hundred of those rightly ends in an alarm of the self-check.
const LOAD: &str = "starts=0; [ -e STARTS ] && read -r starts < STARTS; \
    echo $((starts + 1)) > STARTS; \
    cost=$((100000 + (starts * starts + 3) * 7919 % 701)); \
    [ -e fast ] && cost=$((cost * 8 / 10)); \
    [ -n \"$LEAN\" ] && cost=$((cost * 9 / 10)); \
    [ -n \"$LAST\" ] && [ $starts -ge $LAST ] && exit 9; \
    [ -n \"$CRASH\" ] && { echo boom >&2; kill -SEGV $$; }; \
    echo \"cost: $cost\"";

/// A rung that sets the host.
pub const SWAP: &str = "[[rung]]\nname = \"swap\"\nwant = { \"vm.swappiness\" = 1 }\n";
/// A rung that sets the environment.
pub const LEAN: &str = "[[rung]]\nname = \"lean\"\nenv = { LEAN = \"1\" }\n";

pub struct Bench {
    pub folder: tempfile::TempDir,
    pub host: Memory,
    pub options: RunOptions,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let host = Memory { folder: folder.path().to_owned(), ..Memory::default() };
        let options = RunOptions {
            quick: false,
            keep: false,
            duet: false,
            seed: Some(7),
            budget: None,
            program: "planish".into(),
            command: "planish trial run t.toml".to_owned(),
            stop: Stop::default(),
        };
        Self { folder, host, options }
    }

    pub fn run(&mut self, trial: &TrialFile) -> Result<TrialOutcome, TrialError> {
        self.run_watched(trial, &mut Silent)
    }

    fn run_watched(
        &mut self,
        trial: &TrialFile,
        progress: &mut dyn planish_trial::Progress,
    ) -> Result<TrialOutcome, TrialError> {
        let proofs = Proofs::of_state(self.folder.path());
        let mut ground = Ground { options: &self.options, host: &mut self.host, proofs: &proofs, progress };
        let outcome = run_on(trial, &mut ground)?;
        recompute(&outcome);
        Ok(outcome)
    }
}

pub fn number_trial(folder: &Path, head: &str, rungs: &str) -> TrialFile {
    let file = |name: &str| folder.join(name).display().to_string();
    let script = LOAD.replace("-e fast", &format!("-e {}", file("fast"))).replace("STARTS", &file("starts"));
    let script = toml_string(&script);
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nprimary = \"cost\"\nguards = []\n{head}\n\
         [workload]\nadapter = \"number\"\ncommand = [\"sh\", \"-c\", {script}]\ntimeout_seconds = 20\n\
         [[workload.metric]]\nname = \"cost\"\nunit = \"units\"\nbetter = \"lower\"\n\
         regex = \"cost: ([0-9]+)\"\n{rungs}"
    );
    TrialFile::parse("t.toml", &text).expect("a good file")
}

fn toml_string(text: &str) -> String {
    format!("'''{text}'''")
}

pub fn verdicts(outcome: &TrialOutcome) -> BTreeMap<&str, RungVerdict> {
    outcome.rungs.iter().map(|rung| (rung.name.as_str(), rung.verdict)).collect()
}

#[test]
fn host_arms_are_applied_for_their_units_only_and_the_winner_is_persisted() {
    let mut bench = Bench::new();
    bench.options.keep = true;
    let rungs = format!("{SWAP}[[rung]]\nname = \"idle\"\nenv = {{ X = \"1\" }}\n");
    let trial = number_trial(bench.folder.path(), "", &rungs);
    let outcome = bench.run(&trial).expect("it runs");
    assert_eq!(verdicts(&outcome)["swap"], RungVerdict::Keep, "{outcome:#?}");
    assert_ne!(verdicts(&outcome)["idle"], RungVerdict::Keep);
    assert_eq!((outcome.unit, outcome.exit), (UnitKind::Start, Exit::Done.code()));
    let swap = &outcome.rungs[0];
    assert!((swap.effect.expect("pairs") - 0.2).abs() < 0.01);
    let confirmed = swap.confirmed.as_ref().expect("run again");
    // Once for each unit of the arm and no other; disturbed blocks are run again, some of them with it.
    let units = swap.pairs + confirmed.pairs;
    let applied = units..=units + outcome.discarded.len();
    assert!(applied.contains(&bench.host.applied), "{} of {applied:?}", bench.host.applied);
    let achieved = swap.achieved.as_ref().expect("read back");
    assert!(achieved.verified == Some(true) && achieved.facts["vm.swappiness"] == "1");
    assert!(bench.host.open.is_empty());

    let (profile, reason) = &bench.host.persisted[0];
    assert!(profile.want.contains_key(&KnobId::new("vm.swappiness")));
    let proof = outcome.proof_id.as_deref().expect("stored");
    assert_eq!(reason, &format!("trial t, proof {proof}"));
    assert!(outcome.notes.iter().any(|note| note.ends_with("planish undo 9")));
    let stored = Proofs::of_state(bench.folder.path()).load(proof).expect("it was stored");
    assert_eq!(stored.rungs, outcome.rungs);
    assert_eq!(stored.host.kernel, "6.1");
}

#[test]
fn what_is_kept_and_lost_at_the_next_boot_is_a_finding_and_its_proof_stays_as_it_was() {
    let mut bench = Bench::new();
    bench.options.keep = true;
    bench.host.is_lost_at_boot = true;
    let trial = number_trial(bench.folder.path(), "", SWAP);
    let outcome = bench.run(&trial).expect("it runs");
    assert_eq!(verdicts(&outcome)["swap"], RungVerdict::Keep, "{outcome:#?}");
    assert_eq!(outcome.exit, Exit::Findings.code());
    let last = outcome.notes.last().map(String::as_str);
    assert_eq!(last, Some("exit code 1: not all that was kept is in force, now and after the next boot"));
    let proof = outcome.proof_id.as_deref().expect("stored");
    let stored = Proofs::of_state(bench.folder.path()).load(proof).expect("it was stored");
    assert_eq!(stored.exit, Exit::Done.code());
}

/// To what the rung wants, the hardest to see: no unit of it sets that any more, and all arms are alike.
#[test]
fn a_host_that_somebody_sets_in_the_middle_keeps_nothing_whatever_ran_then() {
    for head in ["", "mode = \"step\"\n"] {
        let run = |set_after: Option<usize>| {
            let mut bench = Bench::new();
            bench.options.keep = true;
            bench.host.set_after = set_after;
            let outcome = bench.run(&number_trial(bench.folder.path(), head, SWAP)).expect("it runs");
            let told =
                "/proc/sys/vm/swappiness was `60` and is `1` between two units: something else set the host";
            let notes = outcome.notes.iter().filter(|note| note.starts_with(told)).count();
            let rung = &outcome.rungs[0];
            (
                (rung.verdict, notes, bench.host.persisted.len(), outcome.exit),
                rung.pairs,
                rung.confirmed.is_some(),
            )
        };
        let (as_one_host, pairs, confirmed) = run(None);
        assert_eq!((as_one_host, confirmed), ((RungVerdict::Keep, 0, 1, Exit::Done.code()), true), "{head}");
        // In the ladder, after which nothing is confirmed, and in the confirmation, unless blocks were run again.
        for set_after in [1, 5, pairs + 1] {
            let (of_two, _, confirmed) = run(Some(set_after));
            let nothing = (RungVerdict::Inconclusive, 1, 0, Exit::Inconclusive.code());
            assert_eq!(of_two, nothing, "{head}after {set_after} applies");
            assert!(set_after > pairs || !confirmed, "{head}after {set_after} applies");
        }
    }
}

#[test]
fn an_outcome_holds_the_line_and_the_file_that_make_it_again() {
    let mut bench = Bench::new();
    let head = "budget_seconds = 20\nmin_gain = 0.03\n";
    let trial = number_trial(bench.folder.path(), head, &format!("{SWAP}{LEAN}min_gain = 0.05\n"));
    bench.options.seed = None;
    let outcome = bench.run(&trial).expect("it runs");
    assert_eq!(outcome.command, format!("planish trial run t.toml --seed {}", outcome.seed));
    assert_eq!(outcome.version, env!("CARGO_PKG_VERSION"));
    let Some(Setup::File(text)) = &outcome.setup else { panic!("{:?}", outcome.setup) };
    let stored = TrialFile::parse("stored", text).expect("what was run can be run");
    assert_eq!(stored.to_text(), *text);
    assert_eq!(stored.rung_gains(), [0.03, 0.05], "each rung has its own");

    // The same line again: nothing is added where the seed was typed.
    bench.options.seed = Some(outcome.seed);
    bench.options.command.clone_from(&outcome.command);
    let again = bench.run(&stored).expect("it runs again");
    assert_eq!((&again.command, &again.setup), (&outcome.command, &outcome.setup));
    assert_eq!(again.seed, outcome.seed);
}

#[test]
fn what_is_kept_is_confirmed_together() {
    let mut bench = Bench::new();
    let rungs = format!("{SWAP}{LEAN}");
    let trial = number_trial(bench.folder.path(), "", &rungs);
    let outcome = bench.run(&trial).expect("it runs");
    let names: Vec<&str> = outcome.rungs.iter().map(|rung| rung.name.as_str()).collect();
    assert_eq!(names, ["swap", "lean", TrialOutcome::STACK, TrialOutcome::PLACEBO]);
    let stack = &outcome.rungs[2];
    assert_eq!(stack.verdict, RungVerdict::Keep, "{}", stack.reason);
    let together = stack.confirmed.as_ref().expect("it has no other pairs").gain;
    assert!((together.effect - 0.28).abs() < 0.01, "{together:?}");
    assert!(outcome.rungs[0].reason.ends_with("confirmed as a part of the stack"));
    assert!(outcome.rungs[0].confirmed.is_none());
}

#[test]
fn of_two_kept_twins_one_is_confirmed_and_persisted() {
    let mut bench = Bench::new();
    bench.options.keep = true;
    let rungs = "[[rung]]\nname = \"bytes\"\nwant = { \"vm.dirty_bytes\" = 536870912 }\n\
                 [[rung]]\nname = \"ratio\"\nwant = { \"vm.dirty_ratio\" = 10 }\n";
    let trial = number_trial(bench.folder.path(), "", rungs);
    let outcome = bench.run(&trial).expect("it runs");
    // Both make the host fast, and which of them was measured as the faster one is a matter of noise.
    let (kept, left): (Vec<_>, Vec<_>) =
        outcome.rungs[..2].iter().partition(|rung| rung.verdict == RungVerdict::Keep);
    let ([kept], [left]) = (&kept[..], &left[..]) else { panic!("{:#?}", outcome.rungs) };
    assert_eq!(left.verdict, RungVerdict::Inconclusive);
    let pairs = left.pairs;
    let told = format!("pays alone, by {pairs} pairs, and contradicts a better rung of the stack");
    assert_eq!(left.reason, told);
    assert!(kept.reason.ends_with("confirmed as a part of the stack"), "{}", kept.reason);
    let [(profile, _)] = &bench.host.persisted[..] else { panic!("{:?}", bench.host.persisted) };
    let ids: Vec<&str> = profile.want.keys().map(KnobId::as_str).collect();
    assert_eq!(ids, [format!("vm.dirty_{}", kept.name)]);
}

#[test]
fn the_short_form_confirms_and_persists_nothing() {
    let mut bench = Bench::new();
    (bench.options.quick, bench.options.keep) = (true, true);
    let trial = number_trial(bench.folder.path(), "", LEAN);
    let outcome = bench.run(&trial).expect("it runs");
    assert_eq!(verdicts(&outcome)["lean"], RungVerdict::Keep);
    assert!(outcome.quick && outcome.rungs[0].confirmed.is_none());
    assert!(bench.host.persisted.is_empty());
    assert!(outcome.refused.iter().any(|refusal| refusal.what == "--keep"));
    assert!(outcome.notes.iter().any(|note| note.contains("not run again")));
}

#[test]
fn what_is_never_confirmed_cannot_be_persisted_and_that_is_known_before_the_first_unit() {
    let mut bench = Bench::new();
    bench.options.keep = true;
    let trial = number_trial(bench.folder.path(), "confirm = false\n", LEAN);
    let error = bench.run(&trial).expect_err("--keep and `confirm = false`");
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    assert!(error.to_string().contains("confirm = false"), "{error}");
    assert_eq!(error.hints(), ["take `confirm = false` out of the file, or leave --keep out"]);
    assert!(!bench.folder.path().join("starts").exists(), "a unit ran");
}

#[test]
fn an_ordinary_user_is_told_what_root_would_add() {
    let mut bench = Bench::new();
    bench.host.no_right = true;
    let rungs = format!("{SWAP}{LEAN}");
    let outcome = bench.run(&number_trial(bench.folder.path(), "", &rungs)).expect("the others run");
    assert_eq!(verdicts(&outcome)["swap"], RungVerdict::Unavailable);
    assert_eq!(verdicts(&outcome)["lean"], RungVerdict::Keep);
    assert_eq!(outcome.refused[0].cure, "sudo planish trial run");
}

#[test]
fn crashes_and_missing_programs_and_failed_builds_are_told_apart() {
    let mut bench = Bench::new();
    let rungs = "[[rung]]\nname = \"crash\"\nenv = { CRASH = \"1\" }\n\
                 [[rung]]\nname = \"gone\"\nprogram = \"/no/such/program\"\n\
                 [[rung]]\nname = \"unbuilt\"\nbuild = [\"false\"]\n";
    let outcome = bench.run(&number_trial(bench.folder.path(), "", rungs)).expect("the baseline runs");
    let verdicts = verdicts(&outcome);
    assert_eq!(verdicts["crash"], RungVerdict::Drop);
    assert_eq!(verdicts["gone"], RungVerdict::Unavailable);
    assert_eq!(verdicts["unbuilt"], RungVerdict::Unavailable);
    assert!(outcome.rungs[0].reason.contains("signal: 11") && outcome.rungs[0].reason.ends_with("boom"));
}

#[test]
fn a_host_that_cannot_be_put_back_ends_the_trial() {
    let mut bench = Bench::new();
    bench.host.undo_fails = true;
    let error = bench.run(&number_trial(bench.folder.path(), "", SWAP)).expect_err("nothing can be believed");
    assert_eq!(error.exit(), Exit::FailedNotRestored);
    assert_eq!(bench.host.applied, 1, "no further arm was started on it");
    assert!(error.hints().iter().any(|hint| hint.starts_with("planish undo")));
}

#[test]
fn a_late_arm_is_dropped_and_a_late_baseline_ends_the_trial() {
    let mut bench = Bench::new();
    let text = "name = \"t\"\nsummary = \"s\"\n[workload]\nadapter = \"command\"\ntimeout_seconds = 0.2\n\
                command = [\"sh\", \"-c\", \"[ -z \\\"$LATE\\\" ] || sleep 30; :\"]\n";
    let rung = "[[rung]]\nname = \"late\"\nenv = { LATE = \"1\" }\n";
    let trial = TrialFile::parse("t.toml", &format!("{text}{rung}")).expect("a good file");
    let mut trial = trial;
    trial.hope = 0.999;
    let begun = Instant::now();
    match bench.run(&trial) {
        Ok(outcome) => {
            assert_eq!(verdicts(&outcome)["late"], RungVerdict::Drop, "{}", outcome.rungs[0].reason);
            assert!(outcome.rungs[0].reason.contains("0.2 s"));
        }
        // On a machine that is this busy, the baseline itself may be late.
        Err(error) => {
            assert!(matches!(error, TrialError::Baseline { .. } | TrialError::Design(_)), "{error}")
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    let baseline = "[baseline]\nenv = { LATE = \"1\" }\n";
    let trial = TrialFile::parse("t.toml", &format!("{text}{baseline}")).expect("a good file");
    let error = bench.run(&trial).expect_err("there is nothing to compare with");
    assert!(error.to_string().starts_with("the baseline `baseline` does not run"), "{error}");
}

#[test]
fn a_stop_in_the_middle_leaves_the_host_as_it_was() {
    let mut bench = Bench::new();
    let stop = bench.options.stop.clone();
    let trial = number_trial(bench.folder.path(), "", SWAP);
    let mut count = 0;
    let mut watcher = |tick: &Tick| {
        count += usize::from(tick.phase == planish_trial::Phase::Ladder);
        if count == 4 {
            stop.set();
        }
    };
    let outcome = bench.run_watched(&trial, &mut watcher).expect("a stop is no error");
    assert_eq!(outcome.exit, Exit::Inconclusive.code());
    assert_eq!(outcome.rungs[0].pairs + outcome.discarded.len(), 3);
    assert!(bench.host.open.is_empty() && !bench.folder.path().join("fast").exists());
    assert!(outcome.proof_id.is_some(), "what is known is stored");
}

#[test]
fn a_server_is_started_for_each_unit_and_its_cpu_time_is_measured() {
    let mut bench = Bench::new();
    let folder = bench.folder.path().to_owned();
    let server = format!(
        "trap 'rm -f {0}/ready; exit 0' TERM; echo start >> {0}/starts; touch {0}/ready; \
         while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.01; done",
        folder.display()
    );
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nprimary = \"wall_s\"\nhope = 0.999\npairs = 12\n\
         budget_seconds = 60\nconfirm = false\n\
         [workload]\nadapter = \"command\"\ncommand = [\"sleep\", \"0.03\"]\n\
         [service]\ncommand = [\"sh\", \"-c\", {}]\nready_path = \"{}/ready\"\n\
         [[rung]]\nname = \"env\"\nenv = {{ X = \"1\" }}\n",
        toml_string(&server),
        folder.display()
    );
    let outcome = bench.run(&TrialFile::parse("t.toml", &text).expect("a good file")).expect("it runs");
    // An alarm of the self-check, which comes once in a hundred, doubles its pairs.
    let units = 2 * outcome.selfcheck.as_ref().expect("it was made").pairs
        + outcome.blocks.iter().map(Vec::len).sum::<usize>()
        + outcome.discarded.len() * outcome.blocks.first().map_or(0, Vec::len);
    let mut starts = String::new();
    std::io::Read::read_to_string(
        &mut std::fs::File::open(folder.join("starts")).expect("it started"),
        &mut starts,
    )
    .expect("text");
    assert_eq!(starts.lines().count(), units);
    assert!(!folder.join("ready").exists(), "the last server was asked to end");
    let metrics = &outcome.rungs[0].metrics;
    assert!(metrics.contains_key("service_cpu_s") && metrics.contains_key("rss_bytes"));
    assert!(outcome.rungs[0].collectors.contains_key("vmpte_kb"));
}

/// A trial whose service is to answer at this address, and whose load leaves a mark when it runs.
fn with_service_at(address: &str, mark: &Path) -> TrialFile {
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nprimary = \"wall_s\"\nhope = 0.999\npairs = 12\n\
         budget_seconds = 60\nconfirm = false\n\
         [workload]\nadapter = \"command\"\ncommand = [\"touch\", \"{}\"]\n\
         [service]\ncommand = [\"sleep\", \"600\"]\nready_tcp = \"{address}\"\nready_seconds = 5\n\
         [[rung]]\nname = \"env\"\nenv = {{ X = \"1\" }}\n",
        mark.display()
    );
    TrialFile::parse("t.toml", &text).expect("a good file")
}

#[test]
fn a_stranger_on_the_port_of_a_service_is_not_measured() {
    let mut bench = Bench::new();
    let mark = bench.folder.path().join("mark");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let error = bench.run(&with_service_at(&address, &mark)).expect_err("the port is taken");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains(&format!("(pid {})", std::process::id())), "{error}");
    assert!(error.hints()[0].contains("another place"), "{:?}", error.hints());
    assert!(!mark.exists(), "no load ran");
    assert_eq!(bench.host.applied, 0, "nothing was applied");

    // Gone again, the same trial fails only by its own service, which never listens.
    drop(listener);
    let error = bench.run(&with_service_at(&address, &mark)).expect_err("it is never ready");
    assert!(error.to_string().contains("no answer within 5.0 s"), "{error}");
}

#[test]
fn a_stranger_who_comes_in_the_middle_ends_the_trial() {
    let mut bench = Bench::new();
    let socket = bench.folder.path().join("s");
    // The service is ready as soon as it has made the path, and takes it away when it ends; what then takes its place
    // is a listener.
    let server = format!("trap 'rm -f {0}; exit 0' TERM; touch {0}; sleep 600 & wait", socket.display());
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nprimary = \"wall_s\"\nhope = 0.999\npairs = 12\n\
         budget_seconds = 60\nconfirm = false\n\
         [workload]\nadapter = \"command\"\ncommand = [\"sleep\", \"0.01\"]\n\
         [service]\ncommand = [\"sh\", \"-c\", {}]\nready_path = \"{}\"\n\
         [[rung]]\nname = \"env\"\nenv = {{ X = \"1\" }}\n",
        toml_string(&server),
        socket.display()
    );
    let trial = TrialFile::parse("t.toml", &text).expect("a good file");
    let mut listener = None;
    let mut watcher = |tick: &Tick| {
        if tick.phase == planish_trial::Phase::SelfCheck && tick.done == 3 && listener.is_none() {
            listener = Some(std::os::unix::net::UnixListener::bind(&socket).expect("the server is gone"));
        }
    };
    let error = bench.run_watched(&trial, &mut watcher).expect_err("another one answers");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains("answers before the service is started"), "{error}");
}

/// A resident program in `sh` that answers each slice with `$cost` times 1000 ns of user time, and a trifle.
const ANSWERING: &str = "while read -r word millis seed; do
  [ \"$word\" = slice ] || exit 0
  user=$((cost * 1000 + seed % 100)); system=$((seed % 7))
  echo \"{\\\"ops\\\":1000,\\\"wall_ns\\\":30000,\\\"user_ns\\\":$user,\\\"system_ns\\\":$system}\"
done";

#[test]
fn resident_programs_of_a_file_answer_in_slices() {
    let mut bench = Bench::new();
    let begin = "case \"$PAGES\" in none) echo 'no 1 GB pages are free' >&2; exit 3;; esac
cost=20; [ \"$PAGES\" = thp ] && cost=15
echo \"{\\\"achieved\\\":{\\\"backing\\\":\\\"${PAGES:-base}\\\"}}\"
";
    let server = begin.to_owned() + ANSWERING;
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nhope = 0.9\n[workload]\nadapter = \"slices\"\nslice_ms = 1\n\
         command = [\"sh\", \"-c\", {}]\n[baseline]\nbacking = \"base\"\n\
         [[rung]]\nname = \"thp\"\nenv = {{ PAGES = \"thp\" }}\nbacking = \"thp\"\n\
         [[rung]]\nname = \"1g\"\nenv = {{ PAGES = \"none\" }}\nbacking = \"hugetlb-1g\"\n\
         want = {{ \"hugepages.1g\" = {{ need_bytes = 1 }} }}\n",
        toml_string(&server)
    );
    bench.host.no_right = true;
    let outcome = bench.run(&TrialFile::parse("t.toml", &text).expect("a good file")).expect("it runs");
    let verdicts = verdicts(&outcome);
    assert_eq!(verdicts["thp"], RungVerdict::Keep);
    assert_eq!(outcome.rungs[0].achieved.as_ref().and_then(|it| it.backing.as_deref()), Some("thp"));
    assert_eq!(outcome.baseline_achieved.as_ref().and_then(|it| it.verified), Some(true));
    assert_eq!(verdicts["1g"], RungVerdict::Unavailable);
    assert_eq!(outcome.rungs[1].reason, "needs root (no 1 GB pages are free)");
    assert_eq!(outcome.refused[0].cure, "sudo planish trial run");
    assert_eq!(outcome.unit, UnitKind::Slice);
}

/// Arms that exclude each other by nature are confirmed one by one, and so is what is persisted of them.
#[test]
fn of_what_was_not_measured_together_the_best_one_is_persisted_alone() {
    let mut bench = Bench::new();
    bench.options.keep = true;
    let begin = "cost=20; [ -n \"$HALF\" ] && cost=10; [ -n \"$LESS\" ] && cost=15\n\
echo \"{\\\"achieved\\\":{\\\"backing\\\":\\\"base\\\"}}\"
";
    let server = begin.to_owned() + ANSWERING;
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nhope = 0.9\n[workload]\nadapter = \"slices\"\nslice_ms = 1\n\
         command = [\"sh\", \"-c\", {}]\n\
         [[rung]]\nname = \"less\"\nenv = {{ LESS = \"1\" }}\nwant = {{ \"hugepages.1g\" = {{ need_bytes = 1 }} }}\n\
         [[rung]]\nname = \"half\"\nenv = {{ HALF = \"1\" }}\nwant = {{ \"hugepages.2m\" = {{ need_bytes = 1 }} }}\n",
        toml_string(&server)
    );
    bench.host.has_room = true;
    let outcome = bench.run(&TrialFile::parse("t.toml", &text).expect("a good file")).expect("it runs");
    let verdicts = verdicts(&outcome);
    assert_eq!((verdicts["less"], verdicts["half"]), (RungVerdict::Keep, RungVerdict::Keep));
    let persisted: Vec<Vec<&str>> = bench
        .host
        .persisted
        .iter()
        .map(|(profile, _)| profile.want.keys().map(KnobId::as_str).collect())
        .collect();
    assert_eq!(persisted, [["hugepages.2m"]]);
    let alone =
        "only the best, `half`, is persisted: `less` paid alone too, and nobody has measured them together";
    assert!(outcome.notes.iter().any(|note| note == alone), "{:?}", outcome.notes);
    assert!(outcome.notes.iter().any(|note| note.contains("HALF=1") && !note.contains("LESS=1")));
}

#[test]
fn a_self_check_alone_runs_no_rung() {
    let mut bench = Bench::new();
    let trial = number_trial(bench.folder.path(), "", SWAP);
    let proofs = Proofs::of_state(bench.folder.path());
    let mut ground =
        Ground { options: &bench.options, host: &mut bench.host, proofs: &proofs, progress: &mut Silent };
    let check = selfcheck_on(&trial, &mut ground).expect("it runs").expect("it was not stopped");
    assert_eq!(check.pairs, 8);
    assert!(check.sigma_d < 0.02 && check.advice.contains("pairs"), "{check:?}");
    assert_eq!(
        (bench.host.applied, bench.host.rehearsed),
        (0, 8),
        "one arm of each pair, and without a write"
    );
    assert_eq!(Proofs::of_state(bench.folder.path()).honesty().expect("readable").placebos, 0);
}

#[test]
fn a_host_that_reads_back_differently_under_equal_arms_is_broken() {
    let mut bench = Bench::new();
    bench.host.is_restless = true;
    let outcome = bench.run(&number_trial(bench.folder.path(), "", SWAP)).expect("it runs");
    let check = outcome.selfcheck.as_ref().expect("it was made");
    assert_eq!(check.verdict, SelfCheckVerdict::Broken);
    let differs = check.read_back.as_deref().expect("it says what");
    assert!(differs.starts_with("/proc/sys/vm/swappiness was read back as"), "{differs}");
    assert_eq!((outcome.exit, outcome.rungs[0].pairs), (Exit::Inconclusive.code(), 0));
    assert_eq!(bench.host.applied, 0, "no rung is run on a host that somebody else sets");
}
