//! What happens between units: the same for every arm.

use std::io::Read;

use planish_model::Exit;
use planish_trial::{Action, RungVerdict, TrialFile};

use crate::files::{Bench, LEAN, SWAP, number_trial};

fn with_hooks(bench: &Bench, settle: &str, reset: &str) -> TrialFile {
    let log = bench.folder.path().join("log").display().to_string();
    let rungs = format!(
        "{LEAN}reset = {{ command = [\"sh\", \"-c\", \"echo reset >> {log}\"]{reset} }}\n{SWAP}\
         [workload.settle]\ncommand = [\"sh\", \"-c\", \"echo settle >> {log}\"]\n{settle}\n\
         [reset.\"vm.swappiness\"]\ncompact_memory = true\n"
    );
    number_trial(bench.folder.path(), "confirm = false", &rungs)
}

fn read(bench: &Bench, name: &str) -> String {
    let mut text = String::new();
    std::fs::File::open(bench.folder.path().join(name))
        .expect("it ran")
        .read_to_string(&mut text)
        .expect("text");
    text
}

#[test]
fn every_unit_of_every_arm_gets_the_same() {
    let mut bench = Bench::new();
    // Always below 100 %, where the kernel tells it.
    let calm = if std::path::Path::new("/proc/pressure/io").exists() { "psi_below = 100.0" } else { "" };
    let trial = with_hooks(&bench, &format!("drop_caches = true\nseconds = 0.001\n{calm}"), "");
    let outcome = bench.run(&trial).expect("it runs");
    assert_eq!(outcome.rungs[0].verdict, RungVerdict::Keep, "{}", outcome.rungs[0].reason);
    let starts: usize = read(&bench, "starts").trim().parse().expect("a count of starts");
    let log = read(&bench, "log");
    let words: Vec<&str> = log.lines().collect();
    assert_eq!(words, ["settle", "reset"].repeat(starts), "also where the arm has no reset of its own");
    let of_unit = [Action::DropCaches, Action::CompactMemory];
    assert_eq!(bench.host.acted, of_unit.repeat(starts));
}

#[test]
fn an_action_that_this_user_may_not_do_is_refused_before_anything_runs() {
    let mut bench = Bench::new();
    bench.host.no_right = true;
    let trial = with_hooks(&bench, "", "");
    let error = bench.run(&trial).expect_err("compact_memory is root's");
    assert_eq!(error.exit(), Exit::Refused);
    assert_eq!(error.to_string(), "between the units: only root may write vm.compact_memory");
    assert_eq!(error.hints(), ["sudo planish trial run"]);
    assert!(!bench.folder.path().join("starts").exists());
}

#[test]
fn a_hook_that_fails_is_no_arm_s_fault_and_ends_the_trial() {
    let mut bench = Bench::new();
    let settle = "[workload.settle]\ncommand = [\"sh\", \"-c\", \"echo no such disk >&2; exit 2\"]\n";
    let error =
        bench.run(&number_trial(bench.folder.path(), "", &format!("{LEAN}{settle}"))).expect_err("it fails");
    assert_eq!(error.exit(), Exit::FailedRestored);
    assert!(error.to_string().starts_with("the command of `settle` fails: "), "{error}");
    assert!(error.to_string().ends_with("no such disk"), "{error}");
}

#[test]
fn a_reset_that_could_never_run_is_refused_with_its_place() {
    let head = "name = \"t\"\nsummary = \"s\"\n";
    let command = "[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n";
    let error = |rest: &str| {
        TrialFile::parse("t.toml", &format!("{head}{command}{rest}")).expect_err("refused").to_string()
    };
    let rung = "[[rung]]\nname = \"a\"\nenv = { A = \"1\" }\n";
    let wrong = error(&format!("{rung}[reset.\"vm.swappiness\"]\ncompact_memory = true\n"));
    assert_eq!(wrong, "t.toml:9:8: no arm sets `vm.swappiness`, so nothing of it is to be reset");
    let wrong = error("settle = { psi_below = 0.0 }\n");
    assert!(wrong.contains("psi_below"), "{wrong}");
    let wrong = error("settle = { pause = 1 }\n");
    assert!(wrong.starts_with("t.toml:6:"), "{wrong}");
}
