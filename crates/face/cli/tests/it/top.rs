//! `planish top`: tables, recordings and replays, and the screen on a terminal of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::planish::{command, copy_program, run};
use crate::recorded::repository;

#[test]
fn this_machine_is_told_in_text_and_json() {
    let answer = run(["--json", "top", "--interval", "0.2"]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    let result = answer.envelope()["result"].clone();
    let rows = result["rows"].as_array().expect("rows");
    let me = rows.iter().find(|row| row["pid"] == std::process::id()).expect("the test runs");
    assert!(me["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{me}");
    assert!(me["faults_per_s"].is_number() && me["cpus"].is_number(), "two looks make a rate: {me}");
    assert!(me["page_table_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{me}");
    assert!(me["huge_share"].is_null(), "those that started the command are left alone: {me}");
    let sizes: Vec<u64> = rows.iter().filter_map(|row| row["resident_bytes"].as_u64()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "the largest first");
    assert!(result["nodes"][0]["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0));

    let text = run(["top", "--once", "--interval", "0.1", "--sort", "pid", "--filter", "planish"]);
    assert_eq!(text.exit, 0, "{}", text.stderr);
    assert!(text.stdout.contains("page tables") && text.stdout.contains(" planish\n"), "{}", text.stdout);
    assert!(!text.stdout.contains("\u{1b}"), "no terminal, no sequences");
    if !Path::new("/sys/bus/event_source/devices/cpu").exists() {
        assert!(text.stdout.contains("local and remote loads, bandwidth: n/a, no PMU"), "{}", text.stdout);
    }
    for odd in [
        &["top", "--sort", "names"][..],
        &["top", "--interval", "0"],
        &["top", "--count", "0"],
        &["top", "--once", "--count", "2"],
        &["top", "--replay", "/nosuch"],
        &["top", "--replay", "/nosuch", "--record", "f"],
        &["top", "--record", "/no/such/folder"],
    ] {
        assert_eq!(run(odd).exit, 2, "{odd:?}");
    }
}

/// A recording in perf's pipe format: one load that another node's cache answered, by code that no file holds.
fn accesses() -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let record = |kind: u32, body: &[u8]| {
        let size = u16::try_from(8 + body.len()).expect("a short record");
        [&kind.to_le_bytes()[..], &2_u16.to_le_bytes(), &size.to_le_bytes(), body].concat()
    };
    // ip, tid, time, address, cpu, weight, source.
    let mut attribute = [&4_u32.to_le_bytes()[..], &128_u32.to_le_bytes()].concat();
    attribute.extend(words(&[0x1cd, 1, 0b1111 | 1 << 7 | 3 << 14, 0, 1 << 18]));
    attribute.resize(128, 0);
    let load = words(&[0x1000, 7 << 32 | 7, 1, 0x7f00_0000_1008, 3, 250, 2 | 0x10 << 19 | 1 << 37]);
    [b"PERFILE2".to_vec(), words(&[16]), record(64, &attribute), record(9, &load)].concat()
}

#[test]
fn contended_lines_are_told_of_a_recording_and_refused_without_a_pmu() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    File::create(&file).and_then(|mut file| file.write_all(&accesses())).expect("written");
    let file = file.to_string_lossy().into_owned();
    let answer = run(["--json", "top", "--c2c", "--replay", &file]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    assert_eq!(answer.envelope()["schema"], "planish.top-c2c/1");
    let result = answer.envelope()["result"].clone();
    assert_eq!(
        (&result["taken"], &result["taken_remote"], &result["by_physical"]),
        (&1.into(), &1.into(), &false.into())
    );
    let line = &result["lines"][0];
    assert_eq!((&line["address"], &line["taken_cycles"]), (&"0x7f0000001000".into(), &250.0.into()));
    assert_eq!(line["sites"][0]["offset"], 8);
    let text = run(["top", "--c2c", "--replay", &file]);
    assert!(text.stdout.contains("0x7f0000001000") && text.stdout.contains("+8"), "{}", text.stdout);

    if !Path::new("/sys/bus/event_source/devices/cpu").exists() {
        let live = run(["top", "--c2c", "--seconds", "1"]);
        assert_eq!(live.exit, 3, "{}", live.stderr);
        assert!(live.stderr.contains("no PMU in this machine") && live.stderr.contains("perf c2c record"));
    }
    let empty = folder.path().join("empty");
    File::create(&empty).expect("made");
    for odd in [
        &["top", "--c2c", "--replay", "/nosuch"][..],
        &["top", "--c2c", "--replay", &empty.to_string_lossy()],
        &["top", "--c2c", "--once"],
        &["top", "--seconds", "3"],
        &["top", "--c2c", "--replay", &file, "--seconds", "3"],
    ] {
        assert_eq!(run(odd).exit, 2, "{odd:?}");
    }
}

#[test]
fn a_recorded_host_tells_the_same_each_time_and_what_it_cannot() {
    let root = repository().join("hosts/metal-2s");
    let answer = run(["--json", "--root", &root.to_string_lossy(), "top"]);
    let result = answer.envelope()["result"].clone();
    let rows = result["rows"].as_array().expect("rows");
    let postgres = rows.iter().find(|row| row["pid"] == 2201).expect("it was recorded");
    assert!(postgres["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 30), "{postgres}");
    assert_eq!(postgres["huge_share"], 0.0, "base pages only");
    // Its stat ends before the CPU that it ran on: its nodes are told, and who uses them is not.
    assert!(postgres["remote_share"].is_null(), "{postgres}");
    assert!(result["unix_seconds"].is_null() && result["reads"]["took_us"].is_null(), "nothing that varies");
    assert!(postgres["cpus"].is_null(), "one moment has no rate");
}

/// Two nodes with a CPU each, and more processes than a table has rows, all on the first node: the smallest alone has
/// its memory on the other one.
fn with_one_remote(root: &Path) {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own");
        std::fs::write(path, text).expect("our own");
    };
    write("sys/devices/system/node/has_memory", "0-1\n");
    write("sys/devices/system/node/node0/cpulist", "0\n");
    write("sys/devices/system/node/node1/cpulist", "1\n");
    for pid in 100..160 {
        let pages = 1000 - pid;
        let stat = format!(
            "{pid} (w{pid}) S 4 7 7 0 -1 64 1 0 9 0 50 7 0 0 20 0 1 0 9000 1 {pages} 3 111 4 222 0 0 0 0 0 0 0 0 \
             0 17 0\n"
        );
        write(&format!("proc/{pid}/stat"), &stat);
        let node = u32::from(pid == 159);
        let places = format!("100000 default anon={pages} N{node}={pages} kernelpagesize_kB=4\n");
        write(&format!("proc/{pid}/numa_maps"), &places);
    }
}

#[test]
fn by_remote_share_the_smallest_process_is_found_as_well() {
    let root = tempfile::tempdir().expect("a temporary folder");
    with_one_remote(root.path());
    let answer = run(["--json", "--root", &root.path().to_string_lossy(), "top", "--sort", "remote"]);
    let result = answer.envelope()["result"].clone();
    let first = &result["rows"][0];
    assert_eq!((&first["name"], &first["remote_share"]), (&"w159".into(), &1.0.into()), "{first}");
    let rows = result["rows"].as_array().expect("rows");
    assert!(rows.len() == 60 && rows.iter().all(|row| row["remote_share"].is_number()), "{result}");
    let text = run(["--root", &root.path().to_string_lossy(), "top", "--sort", "remote"]);
    assert!(text.stdout.contains(" w159\n"), "{}", text.stdout);
}

#[test]
fn what_is_recorded_is_replayed() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let top =
        |args: &[&str]| command(home.path(), [&["top"], args].concat()).output().expect("the binary starts");
    let recorded = top(&["--record", "f", "--count", "2", "--interval", "0.2"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", String::from_utf8_lossy(&recorded.stderr));
    let tables = String::from_utf8_lossy(&recorded.stdout).matches("page tables").count();
    assert_eq!(tables, 2, "one a look");
    assert!(String::from_utf8_lossy(&recorded.stderr).contains("next: planish top --replay f"));
    let file = std::fs::read_to_string(home.path().join("f")).expect("it was written");
    assert_eq!(file.lines().count(), 3, "a first look and two");
    let schemas = planish_report::schemas();
    let (_, schema) = schemas.iter().find(|(name, _)| *name == "top-sample").expect("it is in docs/schema");
    let validator = jsonschema::validator_for(schema.as_value()).expect("a sound schema");
    for line in file.lines() {
        let sample: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        assert!(validator.is_valid(&sample), "{:?}", validator.validate(&sample).err());
        assert_eq!(sample["schema"], "planish.top-sample/1");
    }
    // Played elsewhere, it comes to the last table.
    let replayed = String::from_utf8(top(&["--replay", "f", "--once"]).stdout).expect("text");
    let all = String::from_utf8_lossy(&recorded.stdout).into_owned();
    assert!(all.ends_with(&replayed), "{replayed}\n--- is not the end of\n{all}");

    assert_eq!(top(&["--record", "f"]).status.code(), Some(3), "what is there stays");
    std::fs::write(home.path().join("torn"), format!("{file}{{\"sch")).expect("our own folder");
    let torn = top(&["--replay", "torn"]);
    assert_eq!(torn.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&torn.stderr).contains("in the middle of a sample"));
    std::fs::write(home.path().join("odd"), file.replacen("top-sample/1", "top-sample/9", 1)).expect("ours");
    let odd = top(&["--replay", "odd"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&odd.stderr).contains("odd:1: a sample of the schema"), "{odd:?}");
}

/// A recording of so many samples, of which the one at `odd` is damaged.
fn damaged(home: &Path, samples: usize, odd: usize) {
    let count = samples - 1;
    let line = ["top", "--record", "whole", "--interval", "0.1", "--count", &count.to_string()];
    assert!(command(home, line).output().expect("the binary starts").status.success());
    let whole = std::fs::read_to_string(home.join("whole")).expect("it was written");
    let mut lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), samples);
    lines[odd] = "{\"schema\":\"planish.top-sam\u{fffd}";
    std::fs::write(home.join("damaged"), lines.join("\n") + "\n").expect("our own folder");
}

/// Of nohup, cron or a unit: nobody looks on, and nobody says how many samples there are to be.
#[test]
fn without_a_terminal_it_records_until_it_is_ended() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut top = command(home.path(), ["top", "--record", "f", "--interval", "0.1"]);
    let mut recorder = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let file = home.path().join("f");
    let lines = || std::fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    let begun = Instant::now();
    while lines() < 5 && recorder.try_wait().expect("it is ours").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} samples", lines());
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&recorder);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it records still");
    let ended = recorder.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &[][..]), "{told}");
    assert!(told.contains(&format!("{} samples in f", lines())) && lines() >= 5, "{told}");
}

#[test]
fn a_damaged_sample_in_the_middle_is_stepped_over_with_a_word() {
    let test = "a_damaged_sample_in_the_middle_is_stepped_over_with_a_word";
    let home = tempfile::tempdir().expect("a temporary folder");
    damaged(home.path(), 4, 2);
    let once = command(home.path(), ["top", "--replay", "damaged", "--once"]).output().expect("it starts");
    let talk = String::from_utf8_lossy(&once.stderr).into_owned();
    assert_eq!(once.status.code(), Some(0), "{talk}");
    assert!(talk.contains("1 of 4 samples cannot be read; the first: damaged:3: not a sample"), "{talk}");
    assert!(String::from_utf8_lossy(&once.stdout).contains("rates over 0."), "since the one before it");

    let Some(mut session) = Session::start(home.path(), &watched("--replay damaged")) else {
        return planish_skip::skip(test, "no script(1)");
    };
    session.wait_for("sample 1 of 4");
    session.press(" ..");
    session.wait_for("sample 4 of 4, the last");
    session.wait_for("1 cannot be read");
    session.press(",");
    session.wait_for("sample 2 of 4");
    session.press("q");
    session.wait_for("1 of 4 samples cannot be read");
    session.wait_for("code=0");
    session.wait_for("as-before");
}

#[test]
fn an_odd_moment_in_a_recording_is_no_bug_on_a_screen() {
    let test = "an_odd_moment_in_a_recording_is_no_bug_on_a_screen";
    let home = tempfile::tempdir().expect("a temporary folder");
    damaged(home.path(), 2, 1);
    let line = std::fs::read_to_string(home.path().join("whole")).expect("it was written");
    let mut sample: serde_json::Value =
        serde_json::from_str(line.lines().next().expect("a line")).expect("an object a line");
    for (number, seconds) in [u64::MAX, 253_402_300_800].into_iter().enumerate() {
        sample["unix_seconds"] = seconds.into();
        let file = format!("odd{number}");
        std::fs::write(home.path().join(&file), format!("{sample}\n")).expect("our own folder");
        let Some(mut session) = Session::start(home.path(), &watched(&format!("--replay {file}"))) else {
            return planish_skip::skip(test, "no script(1)");
        };
        session.wait_for("after the year 9999");
        session.press("q");
        session.wait_for("code=0");
    }
}

/// A command line of the shell on a terminal of its own.
struct Session {
    script: Child,
    shown: std::sync::mpsc::Receiver<Vec<u8>>,
    all: String,
}

impl Session {
    /// `None` without script(1).
    fn start(home: &Path, line: &str) -> Option<Self> {
        let mut script = Command::new("script")
            .args(["-qec", &format!("stty rows 24 cols 110; {line}"), "/dev/null"])
            .current_dir(home)
            .env("TERM", "xterm")
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (sender, shown) = std::sync::mpsc::channel();
        let mut stdout = script.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length) = stdout.read(&mut bytes) {
                if length == 0 || sender.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Some(Self { script, shown, all: String::new() })
    }

    /// Waits until the terminal was sent this, behind what was waited for before.
    fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.all.find(text) {
                self.all.drain(..at + text.len());
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no {text:?} in {:?}", self.all);
            if let Ok(bytes) = self.shown.recv_timeout(Duration::from_millis(100)) {
                self.all += &String::from_utf8_lossy(&bytes);
            }
        }
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.script.stdin.as_mut().expect("it is piped");
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).expect("it takes keys");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// The command as the shell runs it: with the state of the terminal before and after, and its exit code.
fn watched(args: &str) -> String {
    let planish = env!("CARGO_BIN_EXE_planish");
    format!(
        "before=$(stty -g); sh -c 'echo $$ > pid; exec {planish} top {args}'; echo code=$?; \
         test \"$before\" = \"$(stty -g)\" && echo as-before"
    )
}

#[test]
fn the_screen_takes_keys_and_leaves_the_terminal_as_it_was() {
    let test = "the_screen_takes_keys_and_leaves_the_terminal_as_it_was";
    let home = tempfile::tempdir().expect("a temporary folder");
    // A process with a name of its own: others start and end `sleep` meanwhile.
    copy_program("/bin/sh".as_ref(), &home.path().join("shtop"));
    let mut shell = Command::new(home.path().join("shtop"));
    let shell = Ended(shell.args(["-c", "read line"]).stdin(Stdio::piped()).spawn().expect("it starts"));
    let Some(mut session) = Session::start(home.path(), &watched("--interval 0.3 --record f")) else {
        return planish_skip::skip(test, "no script(1)");
    };
    session.wait_for("\u{1b}[?1049h");
    session.wait_for("*resident");
    session.press("p");
    session.wait_for("*pid");
    session.press("/shtop");
    session.wait_for("name holds: shtop_");
    session.press("\r");
    session.wait_for("names with `shtop`");
    session.press("\r");
    session.wait_for("process ");
    session.wait_for("Threads, where they ran last");
    session.press("\u{1b}");
    session.wait_for("names with");
    session.press("?");
    session.wait_for("any key goes back");
    session.press("x");
    session.wait_for("3 samples recorded");
    session.press("q");
    session.wait_for("\u{1b}[?1049l");
    session.wait_for(" in f");
    session.wait_for("code=0");
    session.wait_for("as-before");
    drop(session);
    drop(shell);

    // The same screen shows what was recorded: it stands, goes a sample on, and plays faster.
    let Some(mut session) = Session::start(home.path(), &watched("--replay f")) else { return };
    session.wait_for("sample 1 of");
    session.press(" .");
    session.wait_for("paused");
    session.press("+");
    session.wait_for("2x");
    session.press("\r");
    session.wait_for("A recording holds");
    session.press("\u{3}");
    session.wait_for("code=0");
    session.wait_for("as-before");
}

/// A child that is ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let test = "a_signal_leaves_the_terminal_as_it_was";
    let home = tempfile::tempdir().expect("a temporary folder");
    let Some(mut session) = Session::start(home.path(), &watched("")) else {
        return planish_skip::skip(test, "no script(1)");
    };
    session.wait_for("*resident");
    let pid = std::fs::read_to_string(home.path().join("pid")).expect("the shell wrote it");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().expect("a PID")).expect("no zero");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    session.wait_for("\u{1b}[?1049l");
    session.wait_for("code=0");
    session.wait_for("as-before");
}
