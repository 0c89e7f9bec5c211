//! `planish prove numa`: what placement is worth on the nodes of this machine.
//!
//! The experiment is the shipped trial file `numa`, whose arms are `planish workload scan`. Two things are added here:
//! the size, by CPUs and by the memory that every node has to spare, and what happens on a machine of one node. There
//! every arm is started once and its memory read back, which proves the placement and nothing about time: nothing is
//! measured, every rung is unavailable, and the outcome says so.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use planish_model::{Exit, HostFacts};
use planish_pipeline::Session;
use planish_sys::affinity;
use serde_json::Value;

use crate::arm::Recipe;
use crate::control::{Phase, Progress, Tick};
use crate::error::TrialError;
use crate::file::TrialFile;
use crate::kernel;
use crate::outcome::{Achieved, LadderMode, Refusal, Rung, RungVerdict, Setup, TrialOutcome, UnitKind};
use crate::prove::floor;
use crate::resident::ResidentArm;
use crate::run::{Ground, RunOptions, on_session, recipes, run_on, slice_arm};
use crate::sample::ArmError;

const MIB: u64 = 1 << 20;

/// Bytes of the tables for each CPU that are tried, the largest first.
const TABLES: [u64; 5] = [64 * MIB, 32 * MIB, 16 * MIB, 8 * MIB, 4 * MIB];

/// The largest of them in the short form: each unit is a fresh start, and most of a start is filling the tables.
const QUICK_TABLE: u64 = 16 * MIB;

/// Bytes of all tables at most, however many CPUs there are.
const TABLES_MAX: u64 = 16 << 30;

/// What an arm takes beyond its tables: heaps (a quarter), page tables, the program itself.
const OVERHEAD: f64 = 1.35;

/// Arms beside each other: the baseline, three rungs, and the placebo.
const ARMS: u64 = 5;

/// `planish prove numa` on the host of a session.
///
/// # Errors
/// As [`numa_on`].
pub fn numa(
    session: &Session,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<TrialOutcome, TrialError> {
    on_session(session, options, false, progress, numa_on)
}

/// Runs the trial `numa` at a size that this machine has to spare; on one node, checks its placement.
///
/// # Errors
/// As [`run_on`], and when not even the smallest size fits.
pub fn numa_on(ground: &mut Ground<'_>) -> Result<TrialOutcome, TrialError> {
    let mut trial = TrialFile::shipped("numa")?;
    let facts = ground.host.facts();
    let available = kernel::memory_available_bytes().unwrap_or(facts.available_bytes);
    let cpus = affinity::get(None).map_or(1, |cpus| cpus.count().max(1)) as u64;
    // The size of a look is that of the smallest; it asks on how many nodes the workload runs.
    size(&mut trial, TABLES[TABLES.len() - 1] * cpus);
    let begun = Instant::now();
    let looked = look(&trial, &recipes(&trial)[..1], ground)?;
    let baseline = of_baseline(&trial, &looked)?;
    let nodes = nodes_of(baseline).max(1);
    if nodes > 1 {
        size(&mut trial, tables(&facts, available, cpus, nodes, ground.options.quick)?);
        return run_on(&trial, ground);
    }
    let looked = look(&trial, &recipes(&trial), ground)?;
    one_node(&trial, &looked, facts, begun, ground.options)
}

/// Bytes of all tables: as many for each CPU as the fullest node can hold. Beside each other are one arm whose tables
/// are all on one node, and four that are spread.
fn tables(
    facts: &HostFacts,
    available: u64,
    cpus: u64,
    nodes: u64,
    is_quick: bool,
) -> Result<u64, TrialError> {
    let spare = available.saturating_sub(floor(facts));
    let needed = |bytes: u64| {
        let bytes = (bytes as f64 * OVERHEAD) as u64;
        nodes * (bytes + (ARMS - 1) * bytes.div_ceil(nodes))
    };
    let most = if is_quick { QUICK_TABLE } else { TABLES[0] };
    let sizes = TABLES.into_iter().filter(|table| *table <= most).map(|table| (table * cpus).min(TABLES_MAX));
    let least = TABLES[TABLES.len() - 1] * cpus;
    sizes.into_iter().find(|bytes| needed(*bytes) <= spare).ok_or_else(|| TrialError::Refused {
        what: format!(
            "the arms need {} MiB together and {} MiB can be spared",
            needed(least) / MIB,
            spare / MIB
        ),
        cure: kernel::memory_cure(),
    })
}

/// Sets the size of all tables.
fn size(trial: &mut TrialFile, bytes: u64) {
    let command = &mut trial.workload.command;
    let place = command.iter().position(|word| word == "--bytes");
    let place = place.expect("the shipped file names its size, which a test looks at");
    command[place + 1] = bytes.to_string();
}

/// Starts arms one after the other, each once, and tells where the memory of each came to lie.
fn look(
    trial: &TrialFile,
    recipes: &[Recipe],
    ground: &mut Ground<'_>,
) -> Result<Vec<Result<Achieved, ArmError>>, TrialError> {
    let mut looked = Vec::new();
    for (done, recipe) in recipes.iter().enumerate() {
        if ground.options.stop.is_set() {
            return Err(TrialError::Stopped);
        }
        let of = recipes.len();
        ground.progress.tick(&Tick { phase: Phase::Prepare, done, of, left_seconds: 1.0 });
        let mut arm = slice_arm(trial, recipe, ground.options);
        let achieved = arm.start();
        arm.stop();
        looked.push(achieved);
    }
    Ok(looked)
}

/// What the first arm got, without which nothing can be said.
fn of_baseline<'l>(
    trial: &TrialFile,
    looked: &'l [Result<Achieved, ArmError>],
) -> Result<&'l Achieved, TrialError> {
    let name = trial.baseline.name();
    looked[0].as_ref().map_err(|error| TrialError::of_baseline(name, error))
}

/// Nodes that the workload runs on, as it tells them itself.
fn nodes_of(achieved: &Achieved) -> u64 {
    achieved.facts.get("nodes").and_then(Value::as_array).map_or(0, |nodes| nodes.len() as u64)
}

/// Where memory came to lie, in words: `tables 8 MiB on node 0, heaps 100.0 % with their threads`.
fn placed(achieved: &Achieved) -> String {
    let of = |name: &str| achieved.facts.get(name).and_then(Value::as_object);
    let on_nodes = |name: &str| {
        let nodes = of(name).into_iter().flatten();
        let told = nodes.map(|(node, bytes)| {
            format!("{:.1} MiB on node {node}", bytes.as_f64().unwrap_or(0.0) / MIB as f64)
        });
        told.collect::<Vec<_>>().join(", ")
    };
    let local = achieved.facts.get("heap_local_share").and_then(Value::as_f64).unwrap_or(0.0);
    let (tables, heaps) = (on_nodes("table_bytes"), on_nodes("heap_bytes"));
    format!("tables {tables}; heaps {heaps}, {:.1} % with their threads", 100.0 * local)
}

/// The outcome of a machine of one node.
fn one_node(
    trial: &TrialFile,
    looked: &[Result<Achieved, ArmError>],
    host: HostFacts,
    begun: Instant,
    options: &RunOptions,
) -> Result<TrialOutcome, TrialError> {
    let baseline = of_baseline(trial, looked)?;
    let seed = options.checked_seed(trial.seed)?;
    let rungs: Vec<Rung> =
        trial.rung.iter().zip(&looked[1..]).map(|(spec, got)| rung(spec.name(), got)).collect();
    let crashed = |got: &Result<Achieved, ArmError>| {
        got.as_ref().is_err_and(|error| !matches!(error, ArmError::Unavailable { .. }))
    };
    let exit = if looked.iter().any(crashed) { Exit::Findings } else { Exit::Done };
    let took = begun.elapsed().max(Duration::from_millis(1));
    let notes = vec![
        "one node: only the placement was checked. Nothing was timed, every rung is unavailable, and no proof was \
         stored; on a machine of several nodes the same command compares them"
            .to_owned(),
        format!("{}: {}", trial.baseline.name(), placed(baseline)),
    ];
    let refused = Refusal {
        what: "comparing the arms".to_owned(),
        why: "this process has CPUs and memory on one node alone, where every place is the same".to_owned(),
        cure: "run it on a machine of several nodes, or outside of a cpuset of one".to_owned(),
    };
    Ok(TrialOutcome {
        trial: trial.name.get_ref().clone(),
        summary: trial.summary.clone(),
        command: options.repeated(seed),
        setup: Some(Setup::File(trial.to_text())),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        unit: UnitKind::Start,
        primary: trial.primary_spec(),
        mode: LadderMode::Block,
        duet: false,
        baseline: trial.baseline.name().to_owned(),
        baseline_achieved: Some(baseline.clone()),
        min_gain: trial.least_gain(),
        alpha: 0.0,
        seed,
        started_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs()),
        seconds: took.as_secs_f64(),
        overhead: 0.0,
        quick: options.quick,
        host,
        selfcheck: None,
        rungs,
        blocks: Vec::new(),
        refused: vec![refused],
        discarded: Vec::new(),
        notes,
        budget_needed_seconds: None,
        boots: None,
        exit: exit.code(),
        proof_id: None,
    })
}

/// A rung of which nothing but the placement is known.
fn rung(name: &str, got: &Result<Achieved, ArmError>) -> Rung {
    let reason = match got {
        Ok(achieved) => format!("one node; placed as wanted: {}", placed(achieved)),
        Err(error) => format!("not placed as wanted: {error}"),
    };
    Rung {
        achieved: got.as_ref().ok().cloned(),
        ..Rung::without_pairs(name, RungVerdict::Unavailable, reason)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::control::Stop;

    const GIB: u64 = 1 << 30;

    fn facts(memory_bytes: u64) -> HostFacts {
        HostFacts { memory_bytes, ..HostFacts::default() }
    }

    fn options() -> RunOptions {
        RunOptions {
            quick: false,
            keep: false,
            duet: false,
            seed: Some(7),
            budget: None,
            program: PathBuf::from("planish"),
            command: "planish prove numa".to_owned(),
            stop: Stop::default(),
        }
    }

    fn achieved() -> Achieved {
        let facts = serde_json::json!({
            "nodes": [0], "table_bytes": {"0": 8 * MIB}, "heap_bytes": {"0": 2 * MIB}, "heap_local_share": 1.0,
        });
        let facts = facts.as_object().expect("an object").clone().into_iter().collect();
        Achieved { verified: Some(true), backing: Some("base".to_owned()), facts, ..Achieved::default() }
    }

    fn outcome(looked: &[Result<Achieved, ArmError>]) -> Result<TrialOutcome, TrialError> {
        let trial = TrialFile::shipped("numa").expect("shipped");
        one_node(&trial, looked, facts(GIB), Instant::now(), &options())
    }

    #[test]
    fn tables_shrink_with_the_memory_that_a_node_can_spare() {
        let bytes = |memory: u64, cpus, nodes, quick| tables(&facts(memory), memory, cpus, nodes, quick);
        assert_eq!(bytes(256 * GIB, 16, 2, false).expect("they fit"), 16 * 64 * MIB);
        assert_eq!(bytes(256 * GIB, 16, 2, true).expect("they fit"), 16 * QUICK_TABLE);
        assert_eq!(bytes(2048 * GIB, 512, 8, false).expect("they fit"), TABLES_MAX);
        // One arm is whole on one node: with more nodes of the same memory less fits.
        let of_four = bytes(12 * GIB, 16, 4, false).expect("they fit");
        assert!(of_four < bytes(12 * GIB, 16, 1, false).expect("they fit"), "{of_four}");
        let error = bytes(GIB / 4, 64, 2, false).expect_err("nothing fits");
        assert_eq!(error.exit(), Exit::Refused);
        assert!(error.to_string().contains("can be spared"), "{error}");
    }

    #[test]
    fn the_shipped_file_is_sized_and_has_the_four_places() {
        let mut trial = TrialFile::shipped("numa").expect("shipped");
        size(&mut trial, 8 * MIB);
        assert!(trial.workload.command.windows(2).any(|pair| pair[0] == "--bytes" && pair[1] == "8388608"));
        let places: Vec<String> = recipes(&trial).iter().map(|recipe| recipe.args.join(" ")).collect();
        let wanted = ["default", "interleave-all", "interleave-shared", "by-one"];
        assert_eq!(places, wanted.map(|place| format!("--place {place}")));
        assert_eq!(ARMS as usize, places.len() + 1);
    }

    #[test]
    fn the_page_tells_the_sizes_of_tables() {
        let page = include_str!("../../../../docs/numa.md").replace('\n', " ");
        let [most, .., least] = TABLES.map(|bytes| format!("{} MiB for each CPU", bytes / MIB));
        let in_all = format!("{} GiB in all", TABLES_MAX >> 30);
        for told in [most, least, in_all, format!("`--quick` {} MiB", QUICK_TABLE / MIB)] {
            assert!(page.contains(&told), "{told}");
        }
    }

    #[test]
    fn one_node_has_placement_and_no_verdict() {
        let outcome = outcome(&vec![Ok(achieved()); 4]).expect("every arm was placed");
        assert_eq!((outcome.exit, outcome.proof_id.as_ref()), (0, None));
        for rung in &outcome.rungs {
            assert_eq!((rung.verdict, rung.effect, rung.pairs), (RungVerdict::Unavailable, None, 0));
            assert!(rung.reason.contains("tables 8.0 MiB on node 0; heaps 2.0 MiB on node 0, 100.0 %"));
            assert_eq!(rung.achieved.as_ref().and_then(|achieved| achieved.verified), Some(true));
        }
        assert!(outcome.notes[0].starts_with("one node: only the placement was checked"));
        assert!(outcome.notes[0].contains("every rung is unavailable"));
        assert!(outcome.command.ends_with("--seed 7") || outcome.command == "planish prove numa");
    }

    #[test]
    fn an_arm_that_breaks_is_a_finding_and_one_that_cannot_be_had_is_none() {
        let (had, lacks) = (Ok(achieved()), Err(ArmError::unavailable("EPERM")));
        let exit = |third: &Result<Achieved, ArmError>| {
            outcome(&[had.clone(), had.clone(), third.clone(), had.clone()])
                .expect("the baseline is there")
                .exit
        };
        assert_eq!(exit(&lacks), 0);
        assert_eq!(exit(&Err(ArmError::crashed("it ended"))), 1);
        let error = outcome(&[lacks, had.clone(), had.clone(), had]).expect_err("nothing to compare with");
        assert_eq!(error.exit(), Exit::Refused);
    }
}
