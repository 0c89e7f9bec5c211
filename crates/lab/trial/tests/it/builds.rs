//! Several builds of one recipe.

use planish_model::Exit;
use planish_trial::{Builds, RungVerdict, TrialFile, TrialOutcome};

use crate::files::Bench;

/// A trial whose rung is built `rebuilds` times into programs of their own; `cost` is a formula in `index` and `seed`,
/// which the build writes into the program.
fn run(rebuilds: &str, cost: &str) -> (Bench, TrialOutcome) {
    let mut bench = Bench::new();
    let text = file(&bench, rebuilds, cost);
    let trial = TrialFile::parse("t.toml", &text).expect("a good file");
    let outcome = bench.run(&trial).expect("it runs");
    (bench, outcome)
}

fn file(bench: &Bench, rebuilds: &str, cost: &str) -> String {
    let folder = bench.folder.path().display();
    // Noise goes by the number of the start, so that every run of the test is the same experiment.
    let count = format!("s=0; [ -e {folder}/s ] && read -r s < {folder}/s; echo $((s + 1)) > {folder}/s");
    let hole = if rebuilds.is_empty() { "" } else { "{build}" };
    let build = format!(
        "index=$PLANISH_BUILD_INDEX; seed=$PLANISH_BUILD_SEED; \
         printf '#!/bin/sh\\n{count}; echo \"cost: $((%d + (s * s + 3) * 7919 %% 701))\"\\n# %s\\n' $(({cost})) $seed \
         > {folder}/app{hole}; chmod +x {folder}/app{hole}"
    );
    format!(
        "name = \"t\"\nsummary = \"s\"\nprimary = \"cost\"\nguards = []\nconfirm = false\n\
         [workload]\nadapter = \"number\"\n\
         command = [\"sh\", \"-c\", '''{count}; echo \"cost: $((100000 + (s * s + 3) * 7919 % 701))\"''']\n\
         [[workload.metric]]\nname = \"cost\"\nbetter = \"lower\"\nregex = \"cost: ([0-9]+)\"\n\
         [[rung]]\nname = \"pgo\"\nprogram = \"{folder}/app{hole}\"\n{rebuilds}\n\
         build = [\"sh\", \"-c\", '''{build}''']\n"
    )
}

fn builds(outcome: &TrialOutcome) -> &Builds {
    outcome.rungs[0].builds.as_ref().expect("it has several")
}

#[test]
fn a_recipe_is_claimed_by_its_builds_and_not_by_its_starts() {
    let (_bench, outcome) = run("rebuilds = 4", "90000 + 200 * index");
    let pgo = &outcome.rungs[0];
    assert_eq!(pgo.verdict, RungVerdict::Keep, "{}", pgo.reason);
    assert!(pgo.reason.ends_with("; the recipe pays, by 4 builds"), "{}", pgo.reason);
    let found = builds(&outcome);
    let pairs: Vec<usize> = found.builds.iter().map(|build| build.pairs).collect();
    assert_eq!((found.builds.len(), found.distinct, pairs.iter().sum::<usize>()), (4, 4, pgo.pairs));
    assert!(pairs.iter().all(|count| count.abs_diff(pairs[0]) <= 1), "evenly: {pairs:?}");
    let gain = found.gain.expect("four builds");
    assert!((gain.effect - 0.097).abs() < 0.01 && gain.low > 0.0, "{gain:?}");
    let seeds: std::collections::BTreeSet<u64> = found.builds.iter().filter_map(|build| build.seed).collect();
    assert_eq!(seeds.len(), 4, "each build had its own");
    assert!(found.builds[0].effect > found.builds[3].effect, "each has its own gain");
    assert!(outcome.rungs.last().expect("the placebo").builds.is_none());
}

#[test]
fn builds_that_differ_more_than_they_gain_claim_nothing() {
    // Every one of these programs is faster than the baseline, and clearly so; nobody knows what the next build gives.
    let (_bench, outcome) = run("rebuilds = 3", "98000 - 14000 * index");
    let pgo = &outcome.rungs[0];
    assert_eq!(pgo.verdict, RungVerdict::Inconclusive, "{}", pgo.reason);
    assert!(pgo.low.expect("pairs") > 0.0, "the starts alone would have claimed it");
    assert!(pgo.reason.contains("but its 3 builds differ by"), "{}", pgo.reason);
}

#[test]
fn equal_builds_are_one_sample() {
    let mut bench = Bench::new();
    let text = file(&bench, "rebuilds = 3", "90000").replace("seed=$PLANISH_BUILD_SEED", "seed=1");
    let outcome = bench.run(&TrialFile::parse("t.toml", &text).expect("a good file")).expect("it runs");
    let pgo = &outcome.rungs[0];
    assert_eq!((builds(&outcome).distinct, builds(&outcome).gain), (1, None));
    assert_eq!(pgo.verdict, RungVerdict::Keep);
    assert!(pgo.reason.contains("3 builds gave the same program"), "{}", pgo.reason);
}

#[test]
fn one_build_is_claimed_for_its_bytes_only() {
    let (_bench, outcome) = run("", "90000");
    let pgo = &outcome.rungs[0];
    assert_eq!((pgo.verdict, pgo.builds.is_none()), (RungVerdict::Keep, true));
    let sha256 =
        pgo.achieved.as_ref().expect("told").facts["program_sha256"].as_str().expect("text").to_owned();
    assert!(
        pgo.reason.ends_with(&format!("; holds for this artefact only, sha256 {}", &sha256[..12])),
        "{}",
        pgo.reason
    );
}

#[test]
fn builds_without_places_of_their_own_are_refused() {
    let bench = Bench::new();
    let error = |text: &str| TrialFile::parse("t.toml", text).expect_err("refused");
    let two = file(&bench, "rebuilds = 2", "1");
    assert!(
        error(&two).to_string().ends_with("`rebuilds` is a number of builds from 3 to 64"),
        "{}",
        error(&two)
    );
    let one_place = file(&bench, "rebuilds = 3", "1").replace("{build}", "");
    let wrong = error(&one_place);
    assert!(wrong.to_string().contains("a `program` with {build} in its path"), "{wrong}");
    assert_eq!(wrong.exit(), Exit::Usage);
    let no_number = file(&bench, "rebuilds = 3", "1").replace("rebuilds = 3", "");
    assert!(error(&no_number).to_string().contains("only arms with `rebuilds`"), "{}", error(&no_number));
}
