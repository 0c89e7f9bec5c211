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

/// The preload cannot know the heap of ZGC from a shared segment: both who starts one and who finds one is told.
#[test]
fn a_heap_of_zgc_that_is_placed_as_a_shared_segment_is_a_warning() {
    const TEST: &str = "a_heap_of_zgc_that_is_placed_as_a_shared_segment_is_a_warning";
    let home = tempfile::tempdir().expect("a temporary folder");
    let quiet = script(home.path(), "#!/bin/sh\nexit 0\n");
    let java = home.path().join("java");
    std::fs::rename(quiet, &java).expect("ours");
    let java = java.to_str().expect("text");
    let ran = run(["run", "--numa", "interleave", "--no-prefault", "--", java, "-XX:+UseZGC"]);
    assert!(
        ran.stderr.contains("warning: ZGC has the heap") && ran.stderr.contains("UseG1GC"),
        "{}",
        ran.stderr
    );
    let ran = run(["run", "--numa", "interleave", "--no-prefault", "--", java, "-XX:+UseG1GC"]);
    assert!(!ran.stderr.contains("ZGC has"), "{}", ran.stderr);

    if !crate::run::python_or_skip(TEST) {
        return;
    }
    let lines = [
        "import mmap, os, time",
        "heap = os.memfd_create('java_heap')",
        "os.ftruncate(heap, 32 << 20)",
        "mapped = mmap.mmap(heap, 32 << 20)",
        "time.sleep(3)",
    ];
    let (ended, report) = reported(&["--numa", "interleave"], &["python3", "-c", &lines.join("\n")]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let segment = &report["result"]["instances"][0]["segments"][0];
    assert!(segment["short"].to_string().contains("the heap of a JVM (ZGC)"), "{report}");
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
