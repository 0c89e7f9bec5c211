//! `planish text` from outside: samples in, a profile out, and what a wrong file is told.

use std::path::Path;

use crate::planish::{Run, command};

const FOLDED: &str = "main;parse;scan 30\nmain;parse 10\nmain;print_[k] 2\n";

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(home.path().join("stacks"), FOLDED).expect("the folder can be written");
    home
}

#[test]
fn stacks_become_a_profile_that_can_be_shown() {
    let home = home();
    let imported = on(home.path(), "text import stacks -o a.planish --host web-1 --json");
    assert_eq!(imported.exit, 0, "{}", imported.stderr);
    let result = imported.envelope()["result"].clone();
    assert_eq!((&result["format"], &result["profile"]["total"]), (&"folded".into(), &42.into()));
    assert_eq!(result["profile"]["hosts"][0], "web-1");
    let shown = on(home.path(), "text show a.planish --json").envelope()["result"].clone();
    assert_eq!(shown["top"][0]["name"], "scan");
    assert_eq!(shown["top"][0]["callers"][0]["name"], "parse");
    let text = on(home.path(), "text show a.planish").stdout;
    assert!(text.contains("71.4 %") && text.contains("parse 100 %"), "{text}");
}

#[test]
fn a_profile_without_a_file_goes_to_stdout_and_reads_back() {
    let home = home();
    let printed = on(home.path(), "text import stacks");
    std::fs::write(home.path().join("b.planish"), &printed.stdout).expect("the folder can be written");
    assert_eq!(on(home.path(), "text show b.planish").exit, 0);
}

#[test]
fn profiles_merge_and_tell_how_alike_they_are() {
    let home = home();
    std::fs::write(home.path().join("others"), "main;draw 50\n").expect("the folder can be written");
    for (stacks, host) in [("stacks", "a"), ("others", "b")] {
        let line = format!("text import {stacks} -o {host}.planish --host {host}");
        assert_eq!(on(home.path(), &line).exit, 0);
    }
    let merged = on(home.path(), "text merge a.planish b.planish -o all.planish --json");
    let envelope = merged.envelope();
    assert_eq!(envelope["result"]["merged"], 2);
    assert_eq!(envelope["result"]["profile"]["hosts"].as_array().map(Vec::len), Some(2));
    assert_eq!(envelope["messages"][0]["level"], "warning", "they share half of their weight");
}

#[test]
fn wrong_files_are_usage_errors_with_their_cure() {
    let home = home();
    std::fs::write(home.path().join("prose"), "It was a dark night.\n").expect("the folder can be written");
    std::fs::write(home.path().join("perf.data"), b"PERFILE2").expect("the folder can be written");
    for (line, cure) in [
        ("text import prose --json", "--format"),
        ("text import missing --json", "missing"),
        ("text import perf.data --json", "perf.data"),
        ("text show stacks --program prose --json", "prose"),
    ] {
        let run = on(home.path(), line);
        assert_eq!(run.exit, 2, "{line}");
        assert!(run.stdout.contains(cure), "{line}: {}", run.stdout);
        run.envelope();
    }
    let torn = "planish text profile 1\nweights samples\nedges none\nend 00000000\n";
    std::fs::write(home.path().join("torn"), torn).expect("the folder can be written");
    let run = on(home.path(), "text show torn");
    assert!(run.exit == 2 && run.stderr.contains("checksum"), "{}", run.stderr);
}
