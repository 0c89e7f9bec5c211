//! A real PostgreSQL, small: every arm that this machine can have is proved, and nothing stays behind.

use std::time::Duration;

use planish_model::{EntryId, Exit, HostFacts, KnobId, Profile};

use super::*;
use crate::control::{Progress, Silent};
use crate::host::{Action, Applied, HostControl, Kept};
use crate::outcome::RungVerdict;
use crate::proof::Proofs;
use crate::sample::ArmError;

use super::rehearsal::rehearse;
use super::server::Server;
use super::work::Clients;

/// A host that grants nothing, as an ordinary user sees it.
#[derive(Debug)]
struct NoRights(HostFacts);

impl HostControl for NoRights {
    fn facts(&self) -> HostFacts {
        self.0.clone()
    }

    fn can_have(&self, _profile: &Profile) -> Result<(), ArmError> {
        Err(ArmError::Unavailable { reason: "needs root".to_owned(), cure: "sudo".to_owned() })
    }

    fn can_differ(&self, _profile: &Profile) -> Result<(), ArmError> {
        unreachable!("servers are no host arms")
    }

    fn apply(&mut self, _profile: &Profile) -> Result<Applied, ArmError> {
        unreachable!("nothing may be applied that cannot be had")
    }

    fn rehearse(&mut self, _profile: &Profile) -> Result<Applied, ArmError> {
        unreachable!("servers are no host arms")
    }

    fn places(&self, _profile: &Profile) -> Vec<(KnobId, String)> {
        unreachable!("servers are no host arms")
    }

    fn value(&self, _place: &str) -> Option<String> {
        unreachable!("servers are no host arms")
    }

    fn same(&self, _knob: &KnobId, _one: &str, _other: &str) -> bool {
        unreachable!("servers are no host arms")
    }

    fn undo(&mut self, _entry: EntryId) -> Result<(), ArmError> {
        unreachable!("nothing was applied")
    }

    fn undo_all(&mut self) -> Result<(), ArmError> {
        Ok(())
    }

    fn can_do(&self, _action: Action) -> Result<(), ArmError> {
        unreachable!("servers that stay beside each other have no hooks")
    }

    fn act(&mut self, _action: Action) -> Result<(), ArmError> {
        unreachable!("nothing can be done")
    }

    fn can_persist(&self, _profile: &Profile) -> Result<(), TrialError> {
        unreachable!("nothing is kept")
    }

    fn persist(&mut self, _profile: &Profile, _reason: &str) -> Result<Kept, TrialError> {
        unreachable!("nothing is kept")
    }
}

/// Time for everything.
const BUDGET_SECONDS: f64 = 16.0;

/// The smallest run, told to end by `stop`.
fn prove(workload: Option<PathBuf>, stop: &Stop) -> Result<TrialOutcome, TrialError> {
    prove_scale(1, workload, stop)
}

fn prove_scale(scale: u64, workload: Option<PathBuf>, stop: &Stop) -> Result<TrialOutcome, TrialError> {
    prove_within(Duration::from_secs_f64(BUDGET_SECONDS), scale, workload, stop, &mut Silent)
}

fn prove_within(
    budget: Duration,
    scale: u64,
    workload: Option<PathBuf>,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<TrialOutcome, TrialError> {
    let wishes = PostgresOptions {
        scale: Some(scale),
        shared_buffers_bytes: None,
        clients: 1,
        workload,
        bin_folder: None,
    };
    let options = RunOptions {
        quick: true,
        keep: false,
        duet: false,
        seed: Some(1),
        budget: Some(budget),
        program: PathBuf::from("planish"),
        command: "planish prove postgres".to_owned(),
        stop: stop.clone(),
    };
    let available = kernel::memory_available_bytes().unwrap_or(1 << 32);
    let facts = HostFacts { memory_bytes: available, available_bytes: available, ..HostFacts::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let proofs = Proofs::of_state(folder.path());
    let mut host = NoRights(facts);
    prove_on(&wishes, &mut Ground { options: &options, host: &mut host, proofs: &proofs, progress })
}

fn installed(test: &str) -> bool {
    let found = Install::find(None).is_ok();
    if !found {
        planish_skip::skip(test, "no PostgreSQL server is installed here");
    }
    found
}

fn rooms_of_ours() -> usize {
    let prefix = format!("planish-pg-{}-", std::process::id());
    let above =
        if std::path::Path::new("/var/tmp").is_dir() { "/var/tmp".into() } else { std::env::temp_dir() };
    #[expect(clippy::disallowed_methods, reason = "our own folders")]
    let entries = std::fs::read_dir(above).expect("it is there").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

/// A stop that comes by itself, and the thread that brings it.
fn stop_in(time: Duration) -> (Stop, std::thread::JoinHandle<()>) {
    let stop = Stop::default();
    let set = stop.clone();
    let waker = std::thread::spawn(move || {
        std::thread::sleep(time);
        set.set();
    });
    (stop, waker)
}

/// The outcome, its budget and the seconds of it that went by until the data was there: on a machine that is busy with
/// other tests that may be more than all.
fn prove_in_time(stop: &Stop) -> (TrialOutcome, f64, f64) {
    let mut budget = BUDGET_SECONDS;
    loop {
        let begun = Instant::now();
        match prove_within(Duration::from_secs_f64(budget), 1, None, stop, &mut Silent) {
            Err(TrialError::TimeUp { pairs: 0, .. }) if budget < 8.0 * BUDGET_SECONDS => budget *= 2.0,
            outcome => {
                let outcome = outcome.expect("it runs");
                let made_data = begun.elapsed().as_secs_f64() - outcome.seconds;
                return (outcome, budget, made_data);
            }
        }
    }
}

/// One test for all that needs servers: two of them at once would count each other's rooms.
#[test]
fn a_real_postgresql_is_compared_and_leaves_nothing() {
    if !installed("a_real_postgresql_is_compared_and_leaves_nothing") {
        return;
    }
    let stop = Stop::default();
    let (outcome, budget, made_data) = prove_in_time(&stop);

    let baseline = outcome.baseline_achieved.as_ref().expect("the baseline was read back");
    assert_eq!((baseline.verified, baseline.backing.as_deref()), (Some(true), Some("base")));
    let is_short = outcome.refused.iter().any(|refusal| refusal.why.starts_with("the time was up"));
    // A loaded machine may have no time left to ask for them.
    for rung in outcome.real_rungs().filter(|rung| !is_short || rung.verdict != RungVerdict::Inconclusive) {
        assert_eq!(rung.verdict, RungVerdict::Unavailable, "{}: {}", rung.name, rung.reason);
        assert!(rung.effect.is_none() && rung.reason.contains("needs root"), "{}", rung.reason);
    }
    let pairs = outcome.selfcheck.as_ref().map(|check| check.pairs);
    assert!(is_short || pairs.is_some_and(|pairs| pairs >= 8), "{:?}", outcome.refused);
    assert!(outcome.notes.iter().any(|note| note.contains("PostgreSQL")), "{:?}", outcome.notes);
    let Some(Setup::Postgres(setup)) = &outcome.setup else { panic!("{:?}", outcome.setup) };
    assert_eq!((setup.scale, setup.clients, &setup.script), (1, 1, &None));
    assert!(setup.bin_folder.join("postgres").is_file() && setup.shared_buffers_bytes >= 128 << 20);
    assert_eq!(rooms_of_ours(), 0);
    // The time of the data was taken from the ladder's; a slow machine lets the last block overrun by more.
    let most = budget - made_data + (made_data / 2.0).max(2.0);
    assert!(outcome.seconds <= most, "{} s after {made_data} s", outcome.seconds);

    // Told to stop before it begins: an error, and still nothing left.
    stop.set();
    let error = prove(None, &stop).expect_err("nothing was measured");
    assert_eq!(
        (error.exit(), error.to_string().as_str()),
        (Exit::Inconclusive, "stopped before anything was measured")
    );
    assert_eq!(rooms_of_ours(), 0);

    // A time that is up while the data is made ends the making of it, which would take minutes.
    let begun = Instant::now();
    let short = Duration::from_secs(3);
    match prove_within(short, 100, None, &Stop::default(), &mut Silent).expect_err("nothing was measured") {
        TrialError::Refused { what, .. } => {
            planish_skip::skip("a_real_postgresql_is_compared_and_leaves_nothing: the time", what);
        }
        error => {
            assert!(matches!(error, TrialError::TimeUp { pairs: 0, seconds: 6 }), "{error}");
            assert_eq!(error.exit(), Exit::Inconclusive);
            assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
        }
    }
    assert_eq!(rooms_of_ours(), 0);

    // Told to stop in the middle of a statement that would take minutes.
    let (stop, waker) = stop_in(Duration::from_secs(3));
    let begun = Instant::now();
    let error = prove_scale(100, None, &stop).expect_err("nothing was measured");
    waker.join().expect("it only sets a flag");
    if error.exit() == Exit::Refused {
        return planish_skip::skip("a_real_postgresql_is_compared_and_leaves_nothing: the stop", error);
    }
    assert_eq!(error.exit(), Exit::Inconclusive, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert_eq!(rooms_of_ours(), 0);

    stopped_within_a_slice();
    scripts_that_write_are_refused_before_anything_is_measured();
}

/// A script of its own folder, which goes with the first of the two.
fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("own.sql");
    std::io::Write::write_all(&mut std::fs::File::create(&path).expect("a file"), text.as_bytes())
        .expect("room");
    (folder, path)
}

/// Told to stop within a statement of a slice, which would go on for ten minutes.
fn stopped_within_a_slice() {
    let (_folder, path) = script("SELECT pg_sleep(600);\n");
    let (stop, told) = (Stop::default(), RefCell::new(None));
    let mut at_a_slice = |tick: &Tick| {
        if tick.phase == Phase::SelfCheck && told.borrow().is_none() {
            let set = stop.clone();
            *told.borrow_mut() = Some(std::thread::spawn(move || {
                // The slice follows at once; where it has not begun by then, it does not begin.
                std::thread::sleep(Duration::from_secs(1));
                set.set();
                Instant::now()
            }));
        }
    };
    let outcome = prove_within(Duration::from_secs(600), 1, Some(path), &stop, &mut at_a_slice);
    let told = told.take().unwrap_or_else(|| panic!("the slice was never reached: {outcome:?}"));
    let told = told.join().expect("it only waits and sets a flag");
    let outcome = outcome.expect("the ladder had begun, and tells what is known");
    assert!(outcome.notes.iter().any(|note| note.starts_with("stopped")), "{:?}", outcome.notes);
    assert!(told.elapsed() < Duration::from_secs(60), "{:?} after the stop", told.elapsed());
    assert_eq!(rooms_of_ours(), 0);
}

/// Statements that write in some way, by whatever door, and what is told of each: a code of PostgreSQL, or our words.
const WRITING: &[(&str, &str)] = &[
    ("update pgbench_accounts set abalance = 1 where aid = 1;", "25006"),
    ("insert into pgbench_history values (1, 1, 1, 0, now(), '');", "25006"),
    ("select aid from pgbench_accounts where aid = 1 for update;", "25006"),
    ("create table own (a int);", "25006"),
    ("create temp table own (a int);", "25006"),
    ("begin read write; update pgbench_accounts set abalance = 1 where aid = 1; commit;", "42501"),
    ("begin;\nset transaction read write;\ndelete from pgbench_accounts;\ncommit;", "42501"),
    ("set default_transaction_read_only = off;\ntruncate pgbench_history;", "42501"),
    ("set default_transaction_read_only = off;\ncreate temp table own (a int);", "42501"),
    ("set default_transaction_read_only = off;\ncreate table own (a int);", "42501"),
    ("set default_transaction_read_only = off;\nselect 1 from pgbench_accounts for update limit 1;", "42501"),
    ("do $$ begin delete from pgbench_accounts; end $$;", "25006"),
    ("copy (select 1) to '/dev/null';", "42501"),
    ("copy (select 1) to program 'cat';", "42501"),
    ("select txid_current();", "writes to the log"),
    ("set default_transaction_read_only = off;\nselect lo_create(0);", "writes to the log"),
    (
        "set default_transaction_read_only = off;\nalter role planish_reader set work_mem = '4MB';",
        "writes to the log",
    ),
];

/// Scripts that only read, in the ways in which a script may.
const READING: &[&str] = &[
    "\\set aid random(1, 100000 * :scale)\nselect abalance from pgbench_accounts where aid = :aid;",
    "begin;\nselect count(*) from pgbench_accounts;\ncommit;",
    "set work_mem = '8MB';\nselect sum(b.bbalance) from pgbench_branches b join pgbench_tellers t using (bid);",
    "with a as materialized (select * from pgbench_accounts limit 99) select max(aid) from a order by 1;",
    "do $$ begin perform count(*) from pgbench_accounts; end $$;",
    "select pg_sleep(0), count(*) from pg_class;",
];

fn scripts_that_write_are_refused_before_anything_is_measured() {
    let (_folder, path) = script("select 1;\n\nupdate pgbench_accounts\nset abalance = 1;\n");
    let mut none = |tick: &Tick| assert_eq!(tick.phase, Phase::Prepare, "something was measured");
    let budget = Duration::from_secs(600);
    let error =
        prove_within(budget, 1, Some(path.clone()), &Stop::default(), &mut none).expect_err("it writes");
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    let told = error.to_string();
    assert!(told.starts_with(&format!("{}:3: a script may only read", path.display())), "{told}");
    assert!(
        told.contains("`update pgbench_accounts\nset abalance = 1;`") && told.contains("25006"),
        "{told}"
    );
    assert!(error.hints()[0].starts_with("leave it out"), "{:?}", error.hints());
    assert_eq!(rooms_of_ours(), 0);

    let install = Install::find(None).expect("it was found before");
    let wish = Wish { scale: Some(1), shared_buffers_bytes: None, clients: 1, quick: true };
    let budget = Budget::new(wish, 1, 1 << 34, 1 << 34).expect("it fits");
    let room = Room::make(Account::choose().expect("somebody"), &budget).expect("a room");
    let stop = Stop::default();
    let seen = make_seed(&install, &room, &budget, &stop, |server| {
        let parse = |text: &str| Script::parse(std::path::Path::new("own.sql"), text).expect("understood");
        for text in READING {
            let seen = rehearse(server, std::path::Path::new("own.sql"), &parse(text), 1, &stop);
            assert!(seen.is_ok(), "{text}: {}", seen.expect_err("refused"));
        }
        for (text, why) in WRITING {
            let seen = rehearse(server, std::path::Path::new("own.sql"), &parse(text), 1, &stop);
            let error = seen.expect_err(text);
            assert!(error.exit() == Exit::Usage && error.to_string().contains(why), "{text}: {error}");
        }
        let wrong = rehearse(server, std::path::Path::new("own.sql"), &parse("selec 1;"), 1, &stop);
        let told = wrong.expect_err("no SQL").to_string();
        assert!(told.contains("own.sql:1: PostgreSQL does not take `selec 1;`"), "{told}");
        // The sessions that are measured are those of the rehearsal: what is drawn later cannot write either.
        for (text, _) in &WRITING[..14] {
            no_slice_writes(server, parse(text), budget, &stop);
        }
        Ok(())
    });
    seen.expect("the data is made");
    drop(room);
    assert_eq!(rooms_of_ours(), 0);
}

fn no_slice_writes(server: &Server, script: Script, budget: Budget, stop: &Stop) {
    let work = Work::Script(script);
    let mut clients = Clients::open(server, 1, &work, budget, stop).expect("the server runs");
    match clients.slice(Duration::from_millis(10), 1) {
        Err(ArmError::Crashed { detail }) => {
            assert!(detail.contains("25006") || detail.contains("42501"), "{detail}");
        }
        other => panic!("{work:?}: {other:?}"),
    }
}

#[test]
fn a_script_that_cannot_be_read_is_named() {
    let error = prove(Some("/nonexistent/own.sql".into()), &Stop::default()).expect_err("no file");
    assert!(error.to_string().contains("/nonexistent/own.sql"), "{error}");
}
