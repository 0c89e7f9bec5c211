//! `host`, `topo` and `workload`: commands that need no journal.

use std::collections::BTreeMap;
use std::path::Path;

use crate::planish::{command, run};
use crate::recorded::texts;

#[test]
fn a_recording_never_mixes_with_another() {
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(home.path().join("mine"), "kept").expect("a file");
    let folder = home.path().to_str().expect("a path");
    let recorded = run(["--json", "host", "record", folder]);
    assert_eq!(recorded.exit, 2);
    assert_eq!(recorded.envelope()["messages"][0]["hint"], "name a folder that does not exist yet");
}

/// What a newcomer would try first: apply and undo, and not on the machine itself.
#[test]
fn a_recording_of_this_machine_can_be_applied_to_and_comes_back() {
    const TEST: &str = "machine::a_recording_of_this_machine_can_be_applied_to_and_comes_back";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(TEST, "what only root may write, a recording of another user keeps");
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    let (copy, state) = (home.path().join("copy"), home.path().join("state"));
    let (copy, state) = (copy.to_str().expect("a path"), state.to_str().expect("a path"));
    let recorded = run(["host", "record", copy, "--writable"]);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr);
    assert!(
        recorded.stderr.contains(&format!("next: planish --root {copy} plan series")),
        "{}",
        recorded.stderr
    );
    let planish = |args: &[&str]| {
        let run = run([&["--root", copy, "--state", state][..], args].concat());
        (run.exit, run.stdout + &run.stderr)
    };
    let start = texts(Path::new(copy), "");
    assert!(start.len() > 100, "{} files", start.len());
    for profile in ["series", "throughput", "low-latency", "postgres"] {
        let (exit, told) = planish(&["apply", profile, "--yes"]);
        assert_eq!(exit, 0, "{profile}: {told}");
        let (exit, told) = planish(&["undo", "--all"]);
        assert_eq!(exit, 0, "{profile}: {told}");
        let mut end = texts(Path::new(copy), "");
        // The lock of the host lies on the host.
        end.retain(|place, text| start.get(place) != Some(text) && place != "/var/lib/planish/lock");
        assert_eq!(end, BTreeMap::new(), "{profile}");
    }
}

#[test]
fn a_folder_that_is_no_host_is_a_usage_error_with_its_cure() {
    let run = run(["--root", "/nosuch", "topo"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("/nosuch holds neither meta.toml nor both proc and sys"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: planish host record DIR"), "{}", run.stderr);
}

#[test]
fn the_workload_owns_its_output() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let args = ["workload", "series", "--bytes", "8M", "--pages", "4k", "--rounds", "2", "--warm-up", "0"];
    let output = command(home.path(), args).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(told["achieved"]["backing"], "base");
    assert!(told["checksum"].is_string());
    let envelope = run([&["--json"][..], &args].concat()).envelope();
    assert_eq!((&envelope["exit"], &envelope["result"]["checksum"]), (&0.into(), &told["checksum"]));
}

#[test]
fn a_wrong_query_names_the_right_ones() {
    let run = run(["--json", "workload", "series", "--queries", "xbars"]);
    assert_eq!(run.exit, 2);
    let envelope = run.envelope();
    let text = envelope["messages"][0]["text"].as_str().expect("a text");
    assert!(text.contains("xbar, ema, window"), "{text}");
}
