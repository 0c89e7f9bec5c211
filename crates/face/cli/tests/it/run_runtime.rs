//! `planish run` of what executes or starts a runtime: the runtime that runs is told of, and the word that was typed is
//! not all that counts.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::planish::{copy_program, run};
use crate::run::reported;

/// Advice that a JVM has of a start that places its memory.
const ADVICE: &str = "a JVM maps its heap itself: -XX:+UseNUMA";

/// A program of that name, which sleeps as long as it is told to.
fn java(folder: &Path) -> PathBuf {
    let java = folder.join("java");
    copy_program("/bin/sleep".as_ref(), &java);
    java
}

/// A script that may be executed. Made by another process, as [`copy_program`] says of programs.
fn script(folder: &Path, text: &str) -> PathBuf {
    let [written, script] = ["written", "wrapper"].map(|name| folder.join(name));
    std::fs::write(&written, text).expect("room");
    std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o755)).expect("ours");
    copy_program(&written, &script);
    script
}

/// How often talk and messages have the advice, and whose PID stands before it in the talk.
fn told(options: &[&str], program: &[&str]) -> (usize, usize, Option<u32>) {
    let (ended, report) = reported(options, program);
    assert_eq!(ended.exit, 0, "{program:?}: {}", ended.stderr);
    let messages: &Vec<Value> = report["messages"].as_array().expect("messages");
    let has_it = |message: &&Value| message["text"].as_str().expect("text").contains(ADVICE);
    let before = ended.stderr.split_once(ADVICE).map(|(before, _)| before.trim_end_matches(": "));
    let pid = before.and_then(|before| before.rsplit_once("pid ")).and_then(|(_, pid)| pid.parse().ok());
    (ended.stderr.matches(ADVICE).count(), messages.iter().filter(has_it).count(), pid)
}

#[test]
fn a_runtime_is_advised_once_whatever_starts_it() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let java = java(home.path());
    let java = java.to_str().expect("text");
    let wrapper = script(home.path(), &format!("#!/bin/sh\n# Options go here.\nexec {java} \"$@\"\n"));
    let wrapper = wrapper.to_str().expect("text");
    let options = ["--numa", "heap=local", "--verify-after", "1"];

    let (talk, messages, pid) = told(&options, &[java, "2"]);
    assert_eq!((talk, messages, pid), (1, 1, None), "named by the command: before it is looked at");
    for program in [
        &["sh", "-c", "exec \"$0\" 2", java][..],
        &[wrapper, "2"],
        &["env", "A=1", java, "2"],
        &["sh", "-c", "\"$0\" 2 & \"$0\" 2; wait", java],
    ] {
        let (talk, messages, pid) = told(&options, program);
        assert_eq!((talk, messages), (1, 1), "{program:?}");
        assert!(pid.is_some(), "{program:?}: which process it is");
    }
}

/// A script that waits for something first executes the runtime when its process was looked at already.
#[test]
fn a_runtime_that_is_executed_after_the_first_look_is_advised_at_the_next() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let java = java(home.path());
    let java = java.to_str().expect("text");
    let late = ["sh", "-c", "sleep 3; exec \"$0\" 5", java];
    let (talk, messages, pid) = told(&["--numa", "heap=local"], &late);
    assert_eq!((talk, messages), (1, 1));
    assert!(pid.is_some());
}

/// Its heap is a memfd, and no segment: it is left where it is used, and nobody says that it was missed.
#[test]
fn a_heap_of_zgc_is_no_shared_segment() {
    if !crate::run::python_or_skip("a_heap_of_zgc_is_no_shared_segment") {
        return;
    }
    let lines = [
        "import mmap, os, time",
        "heap, segment = os.memfd_create('java_heap'), os.memfd_create('segment')",
        "[os.ftruncate(file, 32 << 20) for file in (heap, segment)]",
        "mapped = [mmap.mmap(file, 32 << 20) for file in (heap, segment)]",
        "time.sleep(5)",
    ];
    let (ended, report) = reported(&["--numa", "interleave"], &["python3", "-c", &lines.join("\n")]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let segments = report["result"]["instances"][0]["segments"].as_array().expect("a list");
    let names: Vec<&str> = segments.iter().filter_map(|segment| segment["name"].as_str()).collect();
    assert_eq!(names, ["/memfd:segment (deleted)"], "{report}");
    assert!(!ended.stderr.contains("told nothing"), "{}", ended.stderr);
}

#[test]
fn who_wants_nothing_of_memory_is_not_advised() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let java = java(home.path());
    let java = java.to_str().expect("text");
    let ran = run(["run", "--verify-after", "1", "--", "sh", "-c", "exec \"$0\" 2", java]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("a JVM"), "{}", ran.stderr);
}
