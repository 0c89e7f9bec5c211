//! `host`, `topo` and `workload`: commands that need no journal.

use crate::planish::{command, run};

#[test]
fn a_recording_never_mixes_with_another() {
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(home.path().join("mine"), "kept").expect("a file");
    let folder = home.path().to_str().expect("a path");
    let recorded = run(["--json", "host", "record", folder]);
    assert_eq!(recorded.exit, 2);
    assert_eq!(recorded.envelope()["messages"][0]["hint"], "name a folder that does not exist yet");
}

#[test]
fn a_folder_that_is_no_host_is_a_usage_error_with_its_cure() {
    let run = run(["--root", "/nosuch", "topo"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("/nosuch holds no meta.toml, proc or sys"), "{}", run.stderr);
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
