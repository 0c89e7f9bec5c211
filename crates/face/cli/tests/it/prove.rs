//! `planish prove numa` and its workload, as far as this machine has them.

use crate::planish::run;

#[test]
fn on_one_node_the_placement_is_checked_and_nothing_else_is_claimed() {
    let test = "on_one_node_the_placement_is_checked_and_nothing_else_is_claimed";
    let alone = run(["--json", "workload", "scan", "--bytes", "8M", "--rounds", "4"]);
    if alone.exit == 3 {
        // A container forbids policies, or to ask where pages are.
        return planish_skip::skip(test, alone.stderr);
    }
    let achieved = alone.envelope()["result"]["achieved"].clone();
    if achieved["nodes"].as_array().map(Vec::len) != Some(1) {
        return planish_skip::skip(test, "several nodes: `planish prove numa` would measure for minutes");
    }
    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().to_string_lossy().into_owned();
    let answer = run(["--json", "--state", &folder, "prove", "numa", "--seed", "7"]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    let result = answer.envelope()["result"].clone();
    assert!(result["selfcheck"].is_null() && result["proof_id"].is_null(), "{result}");
    let note = result["notes"][0].as_str().unwrap_or_default();
    assert!(note.starts_with("one node: only the placement was checked. Nothing was timed"), "{note}");
    let rungs = result["rungs"].as_array().expect("rungs");
    assert_eq!(rungs.len(), 3, "{result}");
    for rung in rungs {
        assert_eq!((&rung["verdict"], &rung["effect"]), (&"unavailable".into(), &serde_json::Value::Null));
        assert_eq!(rung["achieved"]["verified"], true, "{rung}");
    }
    assert_eq!(state.path().read_dir().expect("it is there").count(), 0, "no proof, and no journal");
}

#[test]
fn scans_that_cannot_be_had_are_refused_before_anything_runs() {
    for (odd, exit) in [
        (&["workload", "scan", "--place", "nowhere"][..], 2),
        (&["workload", "scan", "--bytes", "1k"], 2),
        (&["workload", "scan", "--cpu", "9000"], 2),
        (&["workload", "scan", "--rounds", "1", "--serve"], 2),
        (&["--root", "/", "prove", "numa"], 2),
    ] {
        assert_eq!(run(odd).exit, exit, "{odd:?}");
    }
}
