//! Trials as who types them meets them: what they end with, what is refused before anything is measured, and what an
//! end in the middle leaves.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::exits::{message, sandbox};
use crate::planish::{Run, command, for_anybody};

/// A trial that can only find noise: an environment variable that nobody reads.
const TRIAL: &str = r#"
name = "nothing"
summary = "Does a variable that nobody reads change anything?"
primary = "wall_s"
budget_seconds = BUDGET
[workload]
adapter = "command"
command = ["sh", "-c", "sleep 0.0$(( ($$ % 7) + 1 ))"]
[baseline]
name = "as-it-is"
[[rung]]
name = "with-x"
env = { X = "1" }
"#;

#[test]
fn exit_6_is_inconclusive() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("t.toml"), TRIAL.replace("BUDGET", "5")).expect("a trial");
    let args = ["--json", "--state", "state", "trial", "run", "t.toml", "--seed", "7", "--html", "page.html"];
    let run: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
    assert_eq!(run.exit, 6, "{} {}", run.stdout, run.stderr);
    let rungs = run.envelope()["result"]["rungs"].clone();
    let names: Vec<_> = rungs.as_array().expect("rungs").iter().map(|rung| rung["name"].clone()).collect();
    assert_eq!(names, ["with-x", "placebo"]);
    let page = std::fs::read_to_string(sandbox.path().join("page.html")).expect("a page");
    assert!(page.contains("with-x"));
    let honesty: Run = command(sandbox.path(), ["--json", "--state", "state", "trial", "honesty"])
        .output()
        .expect("the binary starts")
        .into();
    assert_eq!(honesty.exit, 0);
    assert_eq!(honesty.envelope()["result"]["kept"], 0);
}

#[test]
fn a_page_that_cannot_be_written_takes_neither_the_result_nor_the_exit_code() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("t.toml"), TRIAL.replace("BUDGET", "0.1")).expect("a trial");
    // It can be opened, as a disk can that fills up while a trial runs.
    let args = ["--json", "--state", "state", "trial", "run", "t.toml", "--seed", "7", "--html", "/dev/full"];
    let told: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
    assert_eq!(told.exit, 6, "{} {}", told.stdout, told.stderr);
    assert_eq!(told.envelope()["result"]["rungs"][0]["name"], "with-x");
    let error = message(&told, "error");
    assert!(error.starts_with("cannot write /dev/full: No space left"), "{error}");
    assert!(told.stderr.contains(&error), "{}", told.stderr);
    let shown: Run = command(sandbox.path(), &args[1..]).output().expect("the binary starts").into();
    assert_eq!(shown.exit, 6, "{} {}", shown.stdout, shown.stderr);
    assert!(shown.stdout.contains("with-x"), "{}", shown.stdout);
    assert!(shown.stderr.contains(&error) && !shown.stderr.contains("the page is"), "{}", shown.stderr);
}

#[test]
fn a_file_that_does_not_fit_leaves_the_older_one_whole() {
    let sandbox = sandbox();
    let plan = sandbox.path().join("plan.json");
    std::fs::write(&plan, "yesterday").expect("an older plan");
    let binary = env!("CARGO_BIN_EXE_planish");
    let line =
        format!("trap '' XFSZ; ulimit -f 1; exec '{binary}' --json --root host plan series -o plan.json");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(sandbox.path()).env_clear().env("HOME", sandbox.path());
    let run = Run::from(shell.output().expect("sh starts"));
    assert_eq!(run.exit, 2, "{} {}", run.stdout, run.stderr);
    assert!(message(&run, "error").starts_with("cannot write plan.json: File too large"), "{}", run.stdout);
    assert_eq!(std::fs::read_to_string(&plan).expect("the older plan"), "yesterday");
}

#[test]
fn a_trial_that_names_what_is_not_there_runs_nothing() {
    let sandbox = sandbox();
    let tried = |name: &str, text: &str, more: &[&str]| {
        std::fs::write(sandbox.path().join(name), text.replace("BUDGET", "600")).expect("a trial");
        let args = [&["--json", "--state", "state", "trial", "run", name][..], more].concat();
        let run: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
        assert_eq!(run.exit, 2, "{} {}", run.stdout, run.stderr);
        assert!(!sandbox.path().join("state/var/proofs").exists(), "{name}: a proof of nothing");
        message(&run, "error")
    };
    let wrong = tried("profile.toml", &TRIAL.replace("env = { X = \"1\" }", "profile = \"tow\""), &[]);
    assert!(wrong.starts_with("profile.toml:13:11: no profile `tow`"), "{wrong}");
    assert!(wrong.contains("did you mean `two`?"), "{wrong}");
    let (nothing, _) = TRIAL.split_once("[[rung]]").expect("it has a rung");
    assert!(tried("empty.toml", nothing, &[]).contains("it compares nothing"));
    let lost = tried("good.toml", TRIAL, &["--html", "no/such/folder/page.html"]);
    assert!(lost.starts_with("cannot write no/such/folder/page.html"), "{lost}");
}

/// Waits until a process catches Ctrl-C: before that it just ends, as every program does.
fn until_it_listens(pid: i32) {
    const INTERRUPT: u64 = 1 << 1; // signal 2 is bit 1
    let start = Instant::now();
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    };
    while catches() & INTERRUPT == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "it never listens");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_proof_that_could_not_be_stored_is_known_before_anything_is_measured() {
    let sandbox = sandbox();
    // Were it run all the same, its program would be missed first.
    let trial = TRIAL.replace("BUDGET", "600").replace("\"sh\"", "\"no-such-program\"");
    std::fs::write(sandbox.path().join("t.toml"), trial).expect("a trial");
    std::fs::create_dir(sandbox.path().join("own")).expect("a folder");
    std::fs::write(sandbox.path().join("own/var"), "no folder").expect("a file");
    let args = ["--json", "--state", "own", "trial", "run", "t.toml"];
    let run: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
    assert_eq!(run.exit, 3, "{} {}", run.stdout, run.stderr);
    let error = message(&run, "error");
    assert!(error.starts_with("no proof can be stored in ") && error.contains("(os error"), "{error}");
}

#[test]
fn a_trial_without_time_for_a_verdict_names_the_time_it_takes() {
    let sandbox = sandbox();
    // However noisy this machine is, it is the time that is missing and not the hope.
    let trial =
        TRIAL.replace("BUDGET", "0.1\nhope = 0.999999").replace("sleep 0.0$(( ($$ % 7) + 1 ))", "sleep 0.05");
    std::fs::write(sandbox.path().join("t.toml"), trial).expect("a trial");
    let args = ["--json", "--state", "state", "trial", "run", "t.toml"];
    let short: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
    assert_eq!(short.exit, 6, "{} {}", short.stdout, short.stderr);
    let seconds = &short.envelope()["result"]["budget_needed_seconds"];
    let again = format!("planish --json --state state trial run t.toml --budget {seconds}");
    assert_eq!(message(&short, "next"), again);
}

#[test]
fn a_budget_that_no_clock_has_is_a_typing_error() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("t.toml"), TRIAL.replace("BUDGET", "5")).expect("a trial");
    for what in [&["trial", "run", "t.toml"][..], &["prove", "series", "--quick"], &["prove", "postgres"]] {
        let args = [what, &["--budget", "18446744073709551615", "--state", "state", "--json"]].concat();
        let run: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
        assert_eq!(run.exit, 2, "{} {}", run.stdout, run.stderr);
    }
    let state = |below: &str| sandbox.path().join("state/var").join(below).exists();
    assert!(!state("proofs") && !state("journal.jsonl"), "nothing was begun");
}

#[test]
fn what_a_look_at_a_cluster_would_not_read_is_refused_by_its_name() {
    let sandbox = sandbox();
    let told = |words: &[&str]| -> Run {
        command(sandbox.path(), [&["--json", "--state", "state"], words].concat())
            .output()
            .expect("the binary starts")
            .into()
    };
    let conn = ["--conn", "host=/nonexistent"];
    for option in [
        &["--html", "p.html"][..],
        &["--quick"],
        &["--seed", "1"],
        &["--budget", "9"],
        &["--clients", "2"],
        &["--clients", "1"],
        &["--scale", "1"],
        &["--root", "host"],
    ] {
        let after = told(&[&["prove", "postgres"], &conn[..], option].concat());
        assert_eq!(after.exit, 2, "{option:?}: {} {}", after.stdout, after.stderr);
        assert!(after.stdout.contains(option[0]), "{option:?}: {}", after.stdout);
    }
    // Before the subcommand they are options of `prove`.
    let before = told(&["prove", "--quick", "--html", "p.html", "postgres", "--conn", "host=/nonexistent"]);
    assert_eq!(before.exit, 2, "{} {}", before.stdout, before.stderr);
    assert_eq!(
        message(&before, "error"),
        "--quick, --html cannot be used with --conn, which only reads a cluster and measures nothing"
    );
    assert!(!sandbox.path().join("p.html").exists());
    assert_eq!(told(&["prove", "postgres", "--conn", "host=/run port=many"]).exit, 2);
    assert_eq!(told(&["prove", "postgres", "--conn", "host=/nonexistent"]).exit, 3, "alone it is read");
}

#[test]
fn no_proof_has_no_rate() {
    let sandbox = sandbox();
    let honesty = |json: &[&str]| -> Run {
        let args = [json, &["--state", "state", "trial", "honesty"]].concat();
        command(sandbox.path(), args).output().expect("the binary starts").into()
    };
    let text = honesty(&[]);
    assert_eq!(text.exit, 0, "{}", text.stderr);
    assert!(text.stdout.contains("0 so far") && !text.stdout.contains('%'), "{}", text.stdout);
    let envelope = honesty(&["--json"]).envelope();
    // By the first schema the rate was a number.
    assert_eq!(envelope["schema"], "planish.trial-honesty/2");
    let result = &envelope["result"];
    assert!(result["placebos"] == 0 && result["rate"].is_null() && result["high"].is_null(), "{result}");
}

#[test]
fn trial_new_writes_over_no_file() {
    let sandbox = sandbox();
    let new = || -> Run {
        let args = ["--json", "--state", "state", "trial", "new", "--cmd", "true", "-o", "mine.toml"];
        command(sandbox.path(), args).output().expect("the binary starts").into()
    };
    assert_eq!(new().exit, 0);
    let file = sandbox.path().join("mine.toml");
    std::fs::write(&file, "edited").expect("it is there");
    let again = new();
    assert_eq!(again.exit, 3, "{} {}", again.stdout, again.stderr);
    assert_eq!(message(&again, "error"), "mine.toml is there already");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "edited");
}

#[test]
fn ctrl_c_ends_a_trial_and_tells_what_is_known() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("t.toml"), TRIAL.replace("BUDGET", "600")).expect("a trial");
    let args = ["--json", "--state", "state", "trial", "run", "t.toml"];
    let child = command(sandbox.path(), args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let pid = rustix::process::Pid::from_child(&child);
    until_it_listens(pid.as_raw_nonzero().get());
    // Into the trial itself, as far as a loaded machine goes.
    std::thread::sleep(Duration::from_millis(700));
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let start = Instant::now();
    let run: Run = child.wait_with_output().expect("it ends").into();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(run.exit, 6, "{} {}", run.stdout, run.stderr);
    assert!(run.envelope()["result"]["rungs"].is_array());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let sandbox = sandbox();
    let workload = ["workload", "series", "--bytes", "8M", "--rounds", "1"];
    for args in [&["knobs"][..], &workload] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        // Nobody will ever read it: every write fails as behind `| head` that has ended.
        drop(reader);
        let child =
            command(sandbox.path(), args.iter().copied()).stdout(writer).stderr(Stdio::piped()).spawn();
        let run: Run = child.expect("the binary starts").wait_with_output().expect("it ends").into();
        assert_eq!((run.exit, run.stderr.contains("error")), (0, false), "{args:?}: {}", run.stderr);
    }
}

/// A folder of root's own over the one of this machine, for nobody but us to see, and an ordinary user in it.
const BESIDE_ROOT: &str = r#"mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/planish \
    && : > /var/lib/planish/journal.jsonl && command -v setpriv > /dev/null || exit 77
    exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@""#;

#[test]
fn an_ordinary_user_runs_trials_on_a_host_where_root_applied_something() {
    let test = "an_ordinary_user_runs_trials_on_a_host_where_root_applied_something";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(test, "only root can become somebody else");
    }
    let home = tempfile::tempdir().expect("a folder");
    let binary = for_anybody(home.path());
    let trial = "name = \"t\"\nsummary = \"s\"\nprimary = \"wall_s\"\n[workload]\nadapter = \"command\"\n\
                 command = [\"true\"]\n[[rung]]\nname = \"swap\"\nwant = { \"vm.swappiness\" = 1 }\n";
    std::fs::write(home.path().join("t.toml"), trial).expect("room");
    let words = ["trial", "run", "./t.toml", "--budget", "3", "--json"].map(std::ffi::OsStr::new);
    let words = [&[binary.as_os_str()], &words[..]].concat();
    let Some(output) = crate::apart::run(test, &["-m"], BESIDE_ROOT, &words, home.path()) else { return };
    let run = Run::from(output);
    let rung = &run.envelope()["result"]["rungs"][0];
    assert_eq!((&rung["name"], &rung["verdict"]), (&"swap".into(), &"unavailable".into()), "{}", run.stdout);
}

/// Under nohup a trial outlives its terminal, and so does what it starts; SIGTERM ends it.
#[test]
fn a_trial_under_nohup_goes_on_when_its_terminal_is_gone() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let trial = "name = \"nohup\"\nsummary = \"Lives on.\"\nprimary = \"cpu_s\"\nbudget_seconds = 600\n\
                 [workload]\nadapter = \"command\"\n\
                 command = [\"sh\", \"-c\", \"grep SigIgn /proc/self/status >> ignored; sleep 0.4\"]\n\
                 [baseline]\nname = \"as-it-is\"\n\
                 [[rung]]\nname = \"other\"\nenv = { OTHER = \"1\" }\n";
    std::fs::write(home.path().join("nohup.toml"), trial).expect("room");
    let line = "trap '' HUP; exec \"$0\" --state state trial selfcheck ./nohup.toml";
    let mut shell = Command::new("sh");
    shell.args(["-c", line, env!("CARGO_BIN_EXE_planish")]).current_dir(home.path()).env("HOME", home.path());
    let mut planish = shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a shell");
    let ignored = || std::fs::read_to_string(home.path().join("ignored")).unwrap_or_default();
    let more_than = |before: usize| {
        let begun = Instant::now();
        while ignored().len() <= before && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        ignored().len() > before
    };
    assert!(more_than(0), "it measures");
    let pid = rustix::process::Pid::from_child(&planish);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("it runs");
    // If it heeds the signal, it ends after the units that are under way.
    std::thread::sleep(Duration::from_secs(1));
    let ended = planish.try_wait().expect("our child");
    assert!(ended.is_none(), "{ended:?}");
    let goes_on = more_than(ignored().len());
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("nobody has waited for it");
    let ended = planish.wait().expect("it ends").code();
    assert!(goes_on, "{ended:?}");
    assert_eq!(ended, Some(6), "stopped before it was complete");
    let of_children = ignored();
    let masks = of_children.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
    let ignores = |mask: &str| u64::from_str_radix(mask.trim(), 16).expect("a mask") & 1 == 1;
    assert!(masks.into_iter().all(ignores), "{of_children}");
}
