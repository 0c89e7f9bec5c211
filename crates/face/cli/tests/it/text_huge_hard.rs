//! `planish text huge` where it is hard: under probes, on file systems that are full or read-only, beside another of
//! itself, and for programs of every kind of link.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use planish_skip::skip;
use planish_skip::uprobe::Uprobe;

use crate::planish::{Run, command};
use crate::text_huge::{Here, content};

/// On the instruction of the fifth MiB of code, which every run of it meets, on a huge page that the text fills.
fn probe(test: &str, here: &Here) -> Option<Uprobe> {
    Uprobe::arm(test, &here.program(), "big", 4 << 20)
}

/// Runs a line of the shell in mounts of its own, where `$planish` is the binary with a state of its own.
fn in_own_mounts(here: &Here, line: &str) -> Option<Run> {
    let binary = env!("CARGO_BIN_EXE_planish");
    let state = here.at("state");
    let planish = format!("{binary} --json --state {}", state.display());
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-ec", line]);
    unshare.env("planish", planish).env("folder", here.at(""));
    let run: Run = unshare.output().ok()?.into();
    (run.exit != 99).then_some(run)
}

/// Of a run that fell short: why no copy took the place of the program.
fn why_no_copy(run: &Run) -> String {
    let result = run.envelope()["result"].clone();
    assert_eq!((run.exit, &result["entry"]), (1, &serde_json::Value::Null), "{}", run.stdout);
    let routes = result["routes"].as_array().expect("a list").clone();
    let copy = routes.iter().find(|row| row["route"] == "copy").expect("it was tried");
    copy["why"].as_str().expect("it failed").to_owned()
}

/// What a dry run in mounts of its own has written.
fn dry_run(here: &Here) -> Run {
    let stdout = String::from_utf8(content(&here.at("dry"))).expect("text");
    let mut run = Run { exit: 0, stdout, stderr: String::new() };
    run.exit = run.envelope()["exit"].as_i64().and_then(|exit| exit.try_into().ok()).expect("a code");
    run
}

#[test]
fn a_probe_that_was_armed_before_is_seen_and_the_program_lives() {
    let test = "a_probe_that_was_armed_before_is_seen_and_the_program_lives";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = content(&here.program());
    let Some(probe) = probe(test, &here) else { return };
    let runs = here.waits(&["wait"]);
    let refused = here.planish("text huge engine");
    let message = refused.envelope()["messages"][0].to_string();
    assert!(refused.exit == 3 && message.contains("is not what its file says"), "{}", refused.stdout);
    assert_eq!(content(&here.program()), before);
    assert!(runs.is_alive(), "whoever ran it goes on");
    drop(runs);
    assert_eq!(probe.hits(), 1, "and the probe was met by the one that ran");
    // Without it nothing stands in the way.
    here.put_on_huge_pages(test, "engine");
}

/// The kernel puts a breakpoint into each process that maps the file; where nobody does, none is to be found.
#[test]
fn a_probe_on_a_program_that_nobody_runs_is_seen_and_goes_on_counting() {
    let test = "a_probe_on_a_program_that_nobody_runs_is_seen_and_goes_on_counting";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let Some(probe) = probe(test, &here) else { return };
    let offset = format!("has a uprobe at offset {:#x}", probe.offset());
    assert_eq!(here.planish("text huge engine --dry-run").exit, 3);
    let refused = here.planish("text huge engine");
    let status = Command::new(here.program()).status().expect("it starts");
    assert!(status.success(), "{status}");
    assert_eq!((refused.exit, probe.hits()), (3, 1), "{}", refused.stdout);
    let message = refused.envelope()["messages"][0].to_string();
    assert!(message.contains(&offset), "{message}");
    assert!(!here.at(".engine.planish").exists());
    here.put_on_huge_pages(test, "engine");
}

#[test]
fn a_probe_that_is_armed_afterwards_counts_and_the_program_lives() {
    let test = "a_probe_that_is_armed_afterwards_counts_and_the_program_lives";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    if here.put_on_huge_pages(test, "engine").is_none() {
        return;
    }
    let runs = here.waits(&["wait"]);
    let Some(probe) = probe(test, &here) else { return };
    for _ in 0..3 {
        let status = Command::new(here.program()).status().expect("it starts");
        assert!(status.success(), "{status}");
    }
    assert!(runs.is_alive(), "a probe takes its page out of the huge one, of this process alone");
    assert_eq!(probe.hits(), 3);
    drop(runs);
    let verified = here.planish("check").envelope()["result"]["texts"][0].clone();
    assert_eq!(verified["cache"]["huge_bytes"], 4 << 20, "the file's pages stay as they are: {verified}");
}

/// An undo is kept from nobody; that the probe goes with the file is told.
#[test]
fn a_probe_that_goes_with_the_copy_is_told_by_undo() {
    let test = "a_probe_that_goes_with_the_copy_is_told_by_undo";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    if here.put_on_huge_pages(test, "engine").is_none() {
        return;
    }
    let Some(probe) = probe(test, &here) else { return };
    let at = probe.offset();
    let undone = here.planish("undo");
    let told = format!("its uprobe at offset {at:#x} went with the other file");
    assert!(undone.exit == 0 && undone.stdout.contains(&told), "{}", undone.stdout);
    assert!(Command::new(here.program()).status().expect("it starts").success());
    assert_eq!(probe.hits(), 0);
}

#[test]
fn a_program_with_a_probe_is_not_started_as_a_copy() {
    let test = "a_program_with_a_probe_is_not_started_as_a_copy";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let Some(probe) = probe(test, &here) else { return };
    let run = {
        let (state, line) = (here.at("state"), "run --huge text=copy -- ./engine sleeps");
        let words = ["--state", state.to_str().expect("text")].into_iter().chain(line.split(' '));
        Run::from(command(&here.at(""), words).output().expect("it starts"))
    };
    assert_eq!((run.exit, probe.hits()), (7, 1), "{}", run.stderr);
    assert!(run.stderr.contains("somebody has set a uprobe on it"), "{}", run.stderr);
}

#[test]
fn a_read_only_file_system_is_told_and_left_alone() {
    let test = "a_read_only_file_system_is_told_and_left_alone";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = content(&here.program());
    std::fs::create_dir(here.at("state")).expect("ours");
    let line =
        "mkdir $folder/ro; cp -p $folder/engine $folder/ro/; mount --bind $folder/ro $folder/ro || exit 99
                mount -o remount,bind,ro $folder/ro || exit 99
                $planish text huge $folder/ro/engine --dry-run > $folder/dry || true
                exec $planish text huge $folder/ro/engine";
    let Some(run) = in_own_mounts(&here, line) else { return skip(test, "no mounts of our own") };
    let why = why_no_copy(&run);
    assert!(why.starts_with("cannot replace") && why.contains("the mount is read-only"), "{why}");
    assert_eq!(why.matches("read-only").count(), 1, "told once: {why}");
    assert_eq!(why_no_copy(&dry_run(&here)), why);
    assert_eq!(content(&here.at("ro/engine")), before);
    assert_eq!(std::fs::read_dir(here.at("ro")).expect("ours").count(), 1, "nothing is left there");
    let undone = here.planish("undo");
    assert_eq!((undone.exit, undone.stdout.contains("nothing to undo")), (0, true), "{}", undone.stdout);
}

#[test]
fn a_file_system_without_room_is_told_and_left_as_it_was() {
    let test = "a_file_system_without_room_is_told_and_left_as_it_was";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = content(&here.program());
    std::fs::create_dir(here.at("state")).expect("ours");
    // Room for the program, and not for its copy.
    let line = "truncate -s 13M $folder/disk; mkfs.ext4 -q $folder/disk || exit 99; mkdir $folder/full
                mount -o loop $folder/disk $folder/full || exit 99
                cp -p $folder/engine $folder/full/
                $planish text huge $folder/full/engine --dry-run > $folder/dry || true
                code=0; $planish text huge $folder/full/engine || code=$?
                cmp $folder/engine $folder/full/engine 1>&2; ls -A $folder/full 1>&2; exit $code";
    let Some(run) = in_own_mounts(&here, line) else { return skip(test, "no mkfs.ext4 or loop device") };
    let why = why_no_copy(&run);
    assert!(why.contains("cannot replace") && why.contains("there is no room"), "{why}");
    assert_eq!(why_no_copy(&dry_run(&here)), why);
    let left: Vec<&str> = run.stderr.lines().filter(|line| !line.contains("lost+found")).collect();
    assert_eq!(left, ["engine"], "the program is what it was, and nothing lies beside it");
    assert_eq!(content(&here.program()), before);
}

#[test]
fn of_two_at_once_one_does_it_and_undo_takes_it_back() {
    let test = "of_two_at_once_one_does_it_and_undo_takes_it_back";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = content(&here.program());
    if here.put_on_huge_pages(test, "engine").is_none() {
        return;
    }
    assert_eq!(here.planish("undo").exit, 0);
    let state = here.at("state");
    let once = || {
        let words = ["--json", "--state", state.to_str().expect("text"), "text", "huge", "engine"];
        let run: Run = command(&here.at(""), words).output().expect("it starts").into();
        (run.exit, run.envelope())
    };
    let mut won = 0;
    for _ in 0..3 {
        let ended = thread::scope(|scope| {
            [scope.spawn(once), scope.spawn(once)].map(|one| one.join().expect("no panic"))
        });
        for (exit, envelope) in &ended {
            let told = envelope["messages"][0].to_string();
            let is_told = *exit == 3 && (told.contains("at work") || told.contains("has replaced"));
            // Who comes when the other one is done finds it done. Memory may have no huge pieces for a moment.
            assert!(*exit == 0 || is_told || *exit == 1, "{envelope}");
        }
        let replaced = ended.iter().filter(|(_, envelope)| envelope["result"]["entry"].is_u64()).count();
        assert!(replaced <= 1, "{ended:?}");
        let status = Command::new(here.program()).status().expect("there is always a whole file");
        assert!(status.success(), "{status}");
        if replaced == 1 {
            won += 1;
            assert_eq!(here.planish("undo").exit, 0);
        }
        assert_eq!(content(&here.program()), before);
        assert!(!here.at(".engine.planish").exists());
    }
    if won == 0 {
        skip(test, "memory had no huge pieces in any of three rounds");
    }
}

#[test]
fn programs_of_every_kind_of_link_are_put_on_huge_pages_or_told() {
    let test = "programs_of_every_kind_of_link_are_put_on_huge_pages_or_told";
    let kinds: [&[&str]; 6] = [
        &["-O1", "-pie", "-fPIE"],
        &["-O1", "-no-pie"],
        &["-O1", "-s"],
        &["-O1", "-static"],
        &["-O1", "-static-pie", "-fPIE"],
        &["-O1", "-static", "-s"],
    ];
    for flags in kinds {
        let Some(here) = Here::new(test, flags) else { continue };
        put_and_take_back(test, &here, &flags.join(" "));
    }
    let Some(here) = Here::empty(test) else { return };
    match here.build("musl-gcc", &["-O1", "-static"]) {
        true => put_and_take_back(test, &here, "musl-gcc -static"),
        false => skip(test, "no musl-gcc: apt-get install musl-tools brings one"),
    }
}

fn put_and_take_back(test: &str, here: &Here, kind: &str) {
    let before = content(&here.program());
    if here.put_on_huge_pages(test, "engine").is_none() {
        return;
    }
    let runs = here.waits(&["wait"]);
    let verified = here.planish(&format!("text verify {} --huge 90", runs.id()));
    assert_eq!(verified.exit, 0, "{kind}: {}", verified.stdout);
    drop(runs);
    assert!(Command::new(here.program()).status().expect("it starts").success(), "{kind}");
    let undone = here.planish("undo");
    assert_eq!((undone.exit, content(&here.program()) == before), (0, true), "{kind}: {}", undone.stdout);
}

/// A program that was replaced while it runs, as an upgrade does, and a process that executes the file afterwards.
#[test]
fn who_ran_the_old_file_goes_on_and_executes_the_new_one() {
    let test = "who_ran_the_old_file_goes_on_and_executes_the_new_one";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", "./engine & read go; wait $!; exec ./engine sleeps"]).current_dir(here.at(""));
    let mut waits = shell.stdin(Stdio::piped()).spawn().expect("it starts");
    let old = here.waits(&["wait"]);
    let Some(_) = here.put_on_huge_pages(test, "engine") else {
        let _ = waits.kill();
        let _ = waits.wait();
        return;
    };
    assert!(old.is_alive());
    waits.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    assert_eq!(
        waits.wait().expect("it ends").code(),
        Some(7),
        "the new file was executed, and ran to its end"
    );
    assert!(old.is_alive(), "and who runs the old one still does");
}
