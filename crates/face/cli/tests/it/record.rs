//! `planish text record` from outside: real programs, sampled for real, and what is said where that cannot be.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::planish::{Run, command, command_of, for_anybody};

/// A home with the program `hot`; `None`, said aloud, where it cannot be made or nothing may be sampled.
fn home(test: &str) -> Option<tempfile::TempDir> {
    let home = tempfile::tempdir().expect("a temporary folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/record.c");
    let built = Command::new("cc")
        .args(["-O1", "-g0", "-fno-omit-frame-pointer", "-pthread", "-Wl,--build-id", "-o"])
        .arg(home.path().join("hot"))
        .arg(source)
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        planish_skip::skip(test, "no C compiler");
        return None;
    }
    let probe = on(home.path(), "text record -o probe --json --report probe.json -- ./hot shares 200");
    if probe.exit == 3 {
        planish_skip::skip(test, probe.stderr.trim());
        return None;
    }
    Some(home)
}

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

/// The envelope that `--report` wrote, held against its schema.
fn reported(home: &Path, file: &str) -> Value {
    let stdout = std::fs::read_to_string(home.join(file)).expect("a report");
    Run { exit: 0, stdout, stderr: String::new() }.envelope()
}

/// The share of a function among those of the program.
fn share(home: &Path, profile: &str, function: &str) -> f64 {
    let shown = on(home, &format!("text show {profile} --json")).envelope()["result"].clone();
    let weight = |row: &Value| row["weight"].as_f64().expect("a weight");
    let rows = shown["top"].as_array().expect("functions").clone();
    let all: f64 = rows.iter().map(weight).sum();
    rows.iter().filter(|row| row["name"] == function).map(weight).sum::<f64>() / all
}

/// The CPU time that the program `hot` measured of `three` and of `one` until now.
fn measured(home: &Path) -> (f64, f64) {
    let read = || {
        let text = std::fs::read_to_string(home.join("measured")).ok()?;
        let mut times = text.split_whitespace().map(str::parse);
        Some((times.next()?.ok()?, times.next()?.ok()?))
    };
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match read() {
            Some(times) => return times,
            None if Instant::now() > until => panic!("the program measures nothing"),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The share of `three` in what was measured between two moments.
fn share_between(before: (f64, f64), after: (f64, f64)) -> f64 {
    let (three, one) = (after.0 - before.0, after.1 - before.1);
    three / (three + one)
}

/// The shares that a profile has of `three` and of `one`, and that of `three` which the program has measured.
fn shares(home: &Path) -> [f64; 3] {
    let of = |function| share(home, "profile.planish", function);
    [of("three"), of("one"), share_between((0.0, 0.0), measured(home))]
}

fn is_as_measured([three, one, measured]: &[f64; 3]) -> bool {
    (three - measured).abs() < 0.06 && (three + one - 1.0).abs() < 0.05
}

/// A running `hot`, ended when the test is.
struct Hot(Child);

impl Hot {
    fn start(home: &Path) -> Self {
        let mut program = Command::new(home.join("hot"));
        program.args(["shares", "100000000"]).current_dir(home).stdin(Stdio::null()).stdout(Stdio::null());
        Self(program.spawn().expect("the program starts"))
    }
}

impl Drop for Hot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_command_keeps_its_output_and_code_and_its_shares_come_back() {
    let Some(home) = home("a_command_keeps_its_output_and_code_and_its_shares_come_back") else { return };
    let run = on(home.path(), "text record --rate 997 --raw raw.data --report r.json -- ./hot shares 4000 7");
    assert_eq!((run.exit, run.stdout.as_str()), (7, "the program's own words\n"), "{}", run.stderr);
    assert!(run.stderr.contains("exit code 7") && run.stderr.contains("sampled by"), "{}", run.stderr);
    let envelope = reported(home.path(), "r.json");
    let result = &envelope["result"];
    assert_eq!((&envelope["exit"], &result["command_exit"]), (&7.into(), &7.into()));
    assert_eq!((&result["ended"], &result["lost"]), (&"target".into(), &0.into()));
    assert!(result["profile"]["build_ids"][0].is_string() && result["profile"]["hosts"][0].is_string());
    let mut seen = vec![shares(home.path())];
    // Where others have the CPU, the timer of the samples comes late, and more often in one of the two functions.
    while !seen.last().is_some_and(is_as_measured) && seen.len() < 3 {
        let again =
            on(home.path(), "text record --rate 997 --raw raw.data --report r.json -- ./hot shares 4000 7");
        assert_eq!(again.exit, 7, "{}", again.stderr);
        seen.push(shares(home.path()));
    }
    assert!(seen.last().is_some_and(is_as_measured), "{seen:?}");
    let envelope = reported(home.path(), "r.json");
    let result = &envelope["result"];

    // The kept samples are a recording like any other, and perf counts as many.
    let imported = on(home.path(), "text import raw.data -o again.planish --json").envelope();
    assert_eq!(imported["result"]["profile"]["total"], result["samples"]);
    let name = "perf script counts the samples of a recording";
    match Command::new("perf")
        .args(["script", "-F", "pid,ip,sym", "-i"])
        .arg(home.path().join("raw.data"))
        .output()
    {
        Ok(script) if script.status.success() => {
            let text = String::from_utf8_lossy(&script.stdout).into_owned();
            let samples = text.split("\n\n").filter(|part| !part.trim().is_empty()).count() as u64;
            assert_eq!(Some(samples), result["samples"].as_u64(), "{text}");
            assert!(text.contains("three"), "{text}");
        }
        Ok(script) => planish_skip::skip(name, String::from_utf8_lossy(&script.stderr)),
        Err(error) => planish_skip::skip(name, format!("no perf: {error}")),
    }
}

#[test]
fn threads_forks_and_programs_that_it_starts_are_followed() {
    let Some(home) = home("threads_forks_and_programs_that_it_starts_are_followed") else { return };
    let run = on(home.path(), "text record --rate 997 -o all.planish -- ./hot all");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    for function in ["in_thread", "in_fork", "in_exec"] {
        let share = share(home.path(), "all.planish", function);
        // Equal work; the time that it takes is the CPU's to say: beside other load one took two thirds of it. What is
        // not followed has none at all.
        assert!(share > 0.03, "{function}: {share}");
    }
}

/// Programs begin while the samples pause; those that still run when they are on again must be known.
#[test]
fn a_duty_cycle_loses_no_mappings() {
    let Some(home) = home("a_duty_cycle_loses_no_mappings") else { return };
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ./hot shares 900 > /dev/null; done";
    let args =
        ["text", "record", "--duty", "0.3", "--report", "r.json", "--rate", "2000", "--", "sh", "-c", script];
    let run: Run = command(home.path(), args).output().expect("the binary starts").into();
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let result = reported(home.path(), "r.json")["result"].clone();
    let duty = result["duty"].as_f64().expect("a share");
    assert!((0.15..0.6).contains(&duty), "{result}");
    let profile = &result["profile"];
    let (named, total) =
        (profile["named"].as_f64().expect("a weight"), profile["total"].as_f64().expect("a weight"));
    assert!(total > 50.0 && named / total > 0.8, "{result}");
    let text = std::fs::read_to_string(home.path().join("profile.planish")).expect("a profile");
    assert!(text.lines().any(|line| line == format!("duty {duty}")), "the profile says so too: {duty}");
}

#[test]
fn a_process_that_runs_already_is_recorded_with_its_build_id() {
    let Some(home) = home("a_process_that_runs_already_is_recorded_with_its_build_id") else { return };
    // Of an earlier run.
    std::fs::remove_file(home.path().join("measured")).expect("it was there");
    let mut hot = Hot::start(home.path());
    let line = format!("text record --pid {} --seconds 2 --json", hot.0.id());
    let before = measured(home.path());
    let run = on(home.path(), &line);
    let measured = share_between(before, measured(home.path()));
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let result = run.envelope()["result"].clone();
    assert_eq!((&result["ended"], &result["command_exit"]), (&"time".into(), &Value::Null));
    assert!(result["profile"]["build_ids"][0].is_string(), "{result}");
    let three = share(home.path(), "profile.planish", "three");
    assert!((three - measured).abs() < 0.1, "{three}, {measured}");

    let mut recorder = command(home.path(), line.replace(" --seconds 2", "").split(' '));
    let recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    std::thread::sleep(Duration::from_secs(2));
    hot.0.kill().expect("it runs");
    hot.0.wait().expect("it ended");
    let run: Run = recorder.wait_with_output().expect("it ends by itself").into();
    assert_eq!((run.exit, &run.envelope()["result"]["ended"]), (0, &"target".into()), "{}", run.stderr);
}

#[test]
fn a_signal_ends_a_recording_and_the_profile_is_written() {
    let Some(home) = home("a_signal_ends_a_recording_and_the_profile_is_written") else { return };
    let start = |line: &str| {
        let mut recorder = command(home.path(), line.split(' '));
        recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    };
    let hot = Hot::start(home.path());
    let recorder = start(&format!("text record -o a.planish --json --pid {}", hot.0.id()));
    std::thread::sleep(Duration::from_secs(2));
    kill_process(Pid::from_child(&recorder), Signal::INT).expect("it runs");
    let run: Run = recorder.wait_with_output().expect("it ends").into();
    assert_eq!((run.exit, &run.envelope()["result"]["ended"]), (0, &"asked".into()), "{}", run.stderr);

    let recorder = start("text record -o b.planish -- ./hot shares 100000000");
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    kill_process(Pid::from_child(&recorder), Signal::TERM).expect("it runs");
    let run: Run = recorder.wait_with_output().expect("it ends").into();
    assert_eq!(run.exit, 128 + 15, "the command was asked to end too: {}", run.stderr);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(home.path().join("b.planish").exists());
}

/// A group of our own, taken away with the test.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_secs(10);
        // A process that was killed leaves its group a moment later.
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_control_group_is_recorded_by_its_folder_and_by_its_unit() {
    let test = "a_control_group_is_recorded_by_its_folder_and_by_its_unit";
    let Some(home) = home(test) else { return };
    let Some(top) = planish_sys::cgroup::perf_event_folder() else {
        return planish_skip::skip(test, "no hierarchy of groups that perf_event_open takes");
    };
    let unit = format!("planish-test-{}", std::process::id());
    let group = Group(top.join(format!("{unit}.service")));
    if let Err(error) = std::fs::create_dir(&group.0) {
        return planish_skip::skip(test, format!("no group can be made: {error}"));
    }
    let hot = Hot::start(home.path());
    if let Err(error) = std::fs::write(group.0.join("cgroup.procs"), hot.0.id().to_string()) {
        return planish_skip::skip(test, format!("no process can be moved: {error}"));
    }
    let other = Hot::start(home.path());
    for target in [format!("--cgroup {}", group.0.display()), format!("--unit {unit}")] {
        let run =
            on(home.path(), &format!("text record {target} --rate 997 --seconds 1 --json --raw raw.data"));
        assert_eq!(run.exit, 0, "{target}: {}", run.stderr);
        let raw = std::fs::read(home.path().join("raw.data")).expect("samples");
        let seen = planish_profile::perf_data::overview(&raw).expect("a stream");
        assert!(seen.samples > 20 && seen.objects[0].0.path.ends_with("/hot"), "{seen:?}");
        // Samples begin with their address and their process.
        let pid = other.0.id().to_le_bytes();
        assert!(!raw.windows(8).any(|at| at == [pid, pid].concat()), "nobody outside of the group");
    }
    drop((hot, other));
    let run = on(home.path(), "text record --cgroup /no/such/group --seconds 1 --json");
    assert!(run.exit == 2 && run.stdout.contains("/proc/PID/cgroup"), "{}", run.stdout);
    let run = on(home.path(), "text record --unit no-such-unit --seconds 1 --json");
    assert!(run.exit == 2 && run.stdout.contains("systemctl status"), "{}", run.stdout);
}

#[test]
fn the_whole_host_is_recorded_without_the_recorder() {
    let test = "the_whole_host_is_recorded_without_the_recorder";
    let Some(home) = home(test) else { return };
    let _hot = Hot::start(home.path());
    let run = on(home.path(), "text record --all --rate 997 --seconds 1 --program hot --json");
    if run.exit == 3 {
        return planish_skip::skip(test, run.stderr.trim());
    }
    let result = run.envelope()["result"].clone();
    assert!(run.exit == 0 && result["profile"]["named"].as_u64().is_some_and(|named| named > 20), "{result}");
}

#[test]
fn wrong_targets_are_told_with_their_cure() {
    let home = tempfile::tempdir().expect("a temporary folder");
    for (line, cure) in [
        ("text record --json", "--help"),
        ("text record --json --pid 999999999", "pgrep"),
        ("text record --json -- true", "--report F"),
        ("text record --json --root . --pid 1", "leave --root out"),
        ("text record --json --pid 1 --all", "--help"),
        ("text record --json --all --duty 0", "--help"),
        ("text record --json --all -o no/such/folder", "folder"),
    ] {
        let run = on(home.path(), line);
        assert_eq!(run.exit, 2, "{line}: {}", run.stdout);
        assert!(run.stdout.contains(cure), "{line}: {}", run.stdout);
        run.envelope();
    }
    let run = on(home.path(), "text record -- ./no-such-program");
    if run.exit == 3 {
        return planish_skip::skip("wrong_targets_are_told_with_their_cure", run.stderr.trim());
    }
    assert!(run.exit == 2 && run.stderr.contains("cannot run ./no-such-program"), "{}", run.stderr);
    assert!(!home.path().join("profile.planish").exists());
}

#[test]
fn an_ordinary_user_records_its_own_and_is_refused_the_host() {
    let test = "an_ordinary_user_records_its_own_and_is_refused_the_host";
    let Some(home) = home(test) else { return };
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(test, "only root can become somebody else");
    }
    let setting = "/proc/sys/kernel/perf_event_paranoid";
    let level: i32 = std::fs::read_to_string(setting).expect("perf events").trim().parse().expect("a number");
    let binary = for_anybody(home.path());
    let nobody = |line: &str| -> Run {
        let mut command = command_of(&binary, home.path(), line.split(' '));
        command.uid(65534).gid(65534).output().expect("the binary starts").into()
    };
    if level > 0 {
        let run = nobody("text record --all --seconds 1 --json");
        assert_eq!(run.exit, 3, "{}", run.stdout);
        let text = run.envelope()["messages"][0].to_string();
        assert!(
            text.contains(&format!("perf_event_paranoid is {level}")) && text.contains("CAP_PERFMON"),
            "{text}"
        );
        assert!(text.contains("sudo ") && text.contains("perf_event_paranoid=0"), "{text}");
    } else {
        planish_skip::skip(test, format!("{setting} is {level}: nobody is refused"));
    }
    let run = nobody("text record -o own.planish --report r.json -- ./hot shares 1500");
    if level > 2 {
        assert_eq!(run.exit, 3, "{}", run.stderr);
        return;
    }
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let result = reported(home.path(), "r.json")["result"].clone();
    assert_eq!(result["user_only"], level > 1, "{result}");
    assert_eq!(result["profile"]["event"], if level > 1 { "cpu-clock:u" } else { "cpu-clock" });
}

#[test]
fn the_exit_code_is_the_commands_where_nothing_of_it_was_recorded() {
    let home = tempfile::tempdir().expect("a folder");
    for (script, code) in [("exit 42", 42), ("kill -KILL $$", 137)] {
        let words = ["text", "record", "-o", "none", "--program", "/bin/true", "--", "sh", "-c", script];
        let run: Run = command(home.path(), words).output().expect("the binary starts").into();
        if run.exit == 3 {
            return planish_skip::skip("the_exit_code_is_the_commands", run.stderr.trim());
        }
        assert_eq!(run.exit, code, "{script}: {}", run.stderr);
        assert!(
            run.stderr.contains("error: ") && run.stderr.contains("the command ended with"),
            "{}",
            run.stderr
        );
        assert!(!home.path().join("none").exists());
    }
}
