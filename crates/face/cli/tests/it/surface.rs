//! What every command shares: usage errors, the envelope, streams, start time.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::planish::{command, run};

#[test]
fn a_usage_error_says_what_is_near_and_exits_with_2() {
    let run = run(["versoin"]);
    assert_eq!(run.exit, 2);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("version"), "{}", run.stderr);
}

#[test]
fn a_usage_error_under_json_is_an_envelope() {
    let run = run(["--json", "version", "--clr"]);
    assert_eq!(run.exit, 2);
    let envelope = run.envelope();
    assert_eq!(envelope["schema"], "planish.version/1");
    assert_eq!(envelope["exit"], 2);
    assert!(envelope["result"].is_null());
    assert_eq!(envelope["messages"][0]["level"], "error");
    assert_eq!(envelope["messages"][0]["hint"], "planish version --help");
}

#[test]
fn a_usage_error_without_a_command_is_an_envelope_too() {
    let envelope = run(["--json", "dotcor"]).envelope();
    assert_eq!(envelope["schema"], "planish.usage/1");
    assert_eq!(envelope["messages"][0]["text"], "unrecognized subcommand 'dotcor'; did you mean `doctor`?");
}

#[test]
fn no_command_is_a_usage_error_that_shows_the_commands() {
    let run = run::<&str>([]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("Commands:"), "{}", run.stderr);
}

#[test]
fn the_version_is_one_line_and_one_envelope() {
    let line = format!("planish {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(["--version"]).stdout, line);
    assert_eq!(run(["--version", "--json"]).envelope()["result"]["planish"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn global_options_stand_anywhere() {
    let before = run(["--json", "version"]);
    let after = run(["version", "--json"]);
    assert_eq!(before.stdout, after.stdout);
    assert_eq!(before.exit, 0);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut child = command(home.path(), ["--help"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_full_disk_behind_stdout_is_told() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        planish_skip::skip("a_full_disk_behind_stdout_is_told", "no /dev/full");
        return;
    };
    let home = tempfile::tempdir().expect("a temporary folder");
    let output = command(home.path(), ["version"]).stdout(full).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
}

/// A line that nobody got says nothing, least of all OK; and what comes after a plan goes by a plan that was shown.
#[test]
fn an_answer_that_could_not_be_printed_is_none() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    if full().is_err() {
        planish_skip::skip("an_answer_that_could_not_be_printed_is_none", "no /dev/full");
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let host = crate::recorded::repository().join("hosts/metal-2s");
    let root = ["--root", host.to_str().expect("a path")];
    for (words, code) in [(&["check", "--monitor"][..], 3), (&["plan", "series"], 7)] {
        let output =
            command(home.path(), [&root, words].concat()).stdout(full().expect("it is there")).output();
        let output = output.expect("the binary starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert!(told.contains("cannot write to stdout") && !told.contains("next:"), "{words:?}: {told}");
    }
}

/// It is done and nobody has the answer: 0 would tell a program to read it, and 2 would be "nothing was begun".
#[test]
fn a_full_disk_behind_stdout_does_not_change_what_became_of_the_host() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    if full().is_err() {
        planish_skip::skip(
            "a_full_disk_behind_stdout_does_not_change_what_became_of_the_host",
            "no /dev/full",
        );
        return;
    }
    let (home, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    crate::recorded::copy_tree(&crate::recorded::repository().join("hosts/metal-2s"), copy.path());
    let root = copy.path().to_str().expect("a path");
    let swappiness = || std::fs::read_to_string(copy.path().join("proc/sys/vm/swappiness")).expect("ours");
    let before = swappiness();
    for form in [&[][..], &["--json"]] {
        for words in [&["apply", "elasticsearch", "--yes"][..], &["undo"]] {
            let args = [&["--root", root], words, form].concat();
            let output = command(home.path(), args).stdout(full().expect("it is there")).output();
            let output = output.expect("the binary starts");
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(7), "{words:?}: {told}");
            assert!(told.contains("cannot write to stdout"), "{told}");
            assert_eq!(swappiness() == before, words == ["undo"], "{words:?}");
        }
    }
    // What went wrong before it goes before it.
    let refused = ["--json", "--root", root, "apply", "elasticsearch"];
    let refused = command(home.path(), refused).stdout(full().expect("it is there")).output();
    assert_eq!(refused.expect("the binary starts").status.code(), Some(3));
}

/// The target is 5 ms for the release binary on an idle machine; this limit is for a debug binary on a busy one.
#[test]
fn it_starts_at_once() {
    let best = (0..20).map(|_| {
        let start = Instant::now();
        assert_eq!(run(["--version"]).exit, 0);
        start.elapsed()
    });
    let best = best.min().expect("twenty runs");
    assert!(best < Duration::from_millis(100), "{best:?}");
}

#[test]
fn timings_name_the_stages_in_their_order_and_only_when_asked() {
    let host = crate::recorded::repository().join("hosts/metal-2s");
    let root = host.to_str().expect("a path");
    let stages = |args: &[&str]| -> Vec<String> {
        let told = run([&["--root", root], args].concat()).stderr;
        let stage = |line: &str| Some(line.split_once(" ms  ")?.1.trim().to_owned());
        told.lines().filter_map(stage).collect()
    };
    assert_eq!(stages(&["plan", "series", "--timings"]), ["open", "journal", "observe", "decide", "command"]);
    assert_eq!(
        stages(&["check", "--timings", "--json"]),
        ["open", "journal", "observe", "verify", "command"]
    );
    assert_eq!(stages(&["plan", "series"]), [""; 0]);
}
