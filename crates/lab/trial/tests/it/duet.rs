//! Both arms of a pair at the same time.

use planish_model::Exit;
use planish_skip::skip;
use planish_sys::affinity;
use planish_trial::{RungVerdict, TrialFile};

use crate::files::{Bench, SWAP, number_trial, verdicts};

fn has_two_cpus() -> bool {
    affinity::get(None).expect("our own mask").count() >= 2
}

#[test]
fn a_planted_effect_is_found_by_programs_that_run_beside_each_other() {
    if !has_two_cpus() {
        return skip(
            "a_planted_effect_is_found_by_programs_that_run_beside_each_other",
            "a duet needs two CPUs",
        );
    }
    // Noise goes by the number of the start. Both look for the other one: a file of each side is there while it runs.
    let mut bench = Bench::new();
    let folder = bench.folder.path().display().to_string();
    let script = format!(
        "mine={folder}/side$PLANISH_DUET_SIDE; other={folder}/side$((1 - PLANISH_DUET_SIDE)); touch $mine; \
         cpus=$(grep Cpus_allowed_list /proc/self/status | tr -dc '0-9,-'); echo $cpus >> {folder}/cpus; \
         seen=0; for i in 1 2 3 4 5 6 7 8 9 10; do [ -e $other ] && seen=1; sleep 0.004; done; rm -f $mine; \
         s=0; [ -e $mine.s ] && read -r s < $mine.s; echo $((s + 1)) > $mine.s; \
         cost=$((100000 + (s * s + 3 + 5 * PLANISH_DUET_SIDE) * 7919 % 701)); \
         [ -n \"$LEAN\" ] && cost=$((cost * 9 / 10)); \
         echo \"cost: $cost seen: $seen\""
    );
    let text = format!(
        "name = \"t\"\nsummary = \"s\"\nprimary = \"cost\"\nguards = []\nduet = true\n\
         [workload]\nadapter = \"number\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
         [[workload.metric]]\nname = \"cost\"\nbetter = \"lower\"\nregex = \"cost: ([0-9]+)\"\n\
         [[workload.metric]]\nname = \"seen\"\nbetter = \"higher\"\nregex = \"seen: ([0-9]+)\"\n\
         [[rung]]\nname = \"lean\"\nenv = {{ LEAN = \"1\" }}\n\
         [[rung]]\nname = \"idle\"\nenv = {{ X = \"1\" }}\n"
    );
    let outcome = bench.run(&TrialFile::parse("t.toml", &text).expect("a good file")).expect("it runs");
    assert!(outcome.duet && outcome.blocks.iter().all(|block| block.len() == 2));
    let lean = &outcome.rungs[0];
    assert_eq!(lean.verdict, RungVerdict::Keep, "{}", lean.reason);
    assert!((lean.effect.expect("pairs") - 0.1).abs() < 0.01);
    assert!((lean.confirmed.as_ref().expect("run again").gain.effect - 0.1).abs() < 0.01);
    assert_ne!(verdicts(&outcome)["idle"], RungVerdict::Keep);
    assert!(outcome.rungs.iter().all(|rung| rung.against == ["baseline"]), "mode `block` stacks nothing");
    // Nearly always each saw the other; and the share of the time is told.
    assert!(lean.metrics["seen"].value.expect("told") > 0.5);
    assert!(lean.collectors["duet_overlap_share"].value.expect("told") > 0.5);
    let mut cpus = String::new();
    std::io::Read::read_to_string(
        &mut std::fs::File::open(bench.folder.path().join("cpus")).expect("it ran"),
        &mut cpus,
    )
    .expect("text");
    let sides: std::collections::BTreeSet<&str> = cpus.lines().collect();
    assert_eq!(sides.len(), 2, "{sides:?}");
}

#[test]
fn a_duet_of_host_arms_is_refused_before_anything_runs() {
    let mut bench = Bench::new();
    bench.options.duet = true;
    let error = bench.run(&number_trial(bench.folder.path(), "", SWAP)).expect_err("both would be set");
    assert_eq!((error.exit(), error.hints()), (Exit::Refused, vec!["leave --duet out".to_owned()]));
    assert!(error.to_string().starts_with("arm `swap` sets the host for both"), "{error}");
}
