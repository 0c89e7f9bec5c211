//! The workload as its caller sees it: options in, lines of JSON out.

mod scan;

use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use planish_arena::{Fallback, Page};
use planish_skip::{Turn, skip};
use planish_workload::{CHECKED_ROUNDS, Limit, Mode, Options, Query, SCHEMA, WorkloadError, run_with};
use serde_json::Value;

fn options(page: Page) -> Options {
    Options {
        bytes: 12 << 20,
        page,
        fallback: Fallback::Refuse,
        mode: Mode::Once { warm_up: Duration::ZERO, limit: Limit::Rounds(CHECKED_ROUNDS) },
        ..Options::default()
    }
}

/// The lines that a run prints.
fn lines(options: &Options, input: impl AsRef<[u8]>) -> Result<Vec<Value>, WorkloadError> {
    let mut out = Vec::new();
    run_with(options, input.as_ref(), &mut out)?;
    let text = String::from_utf8(out).expect("JSON is text");
    Ok(text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect())
}

fn once(options: &Options) -> Result<Value, WorkloadError> {
    let mut lines = lines(options, "")?;
    assert_eq!(lines.len(), 1, "a single run prints one object");
    Ok(lines.remove(0))
}

fn bytes(result: &Value, kind: &str) -> u64 {
    result["achieved"][kind].as_u64().expect("bytes are whole")
}

#[test]
fn every_page_size_gives_the_same_answers() {
    let test = "every_page_size_gives_the_same_answers";
    // It may take pages from a pool that another test counts.
    let _turn = match Turn::wait() {
        Ok(turn) => turn,
        Err(reason) => return skip(test, reason),
    };
    let base = once(&options(Page::Base)).unwrap();
    assert_eq!(base["achieved"]["backing"], "base");
    assert_eq!(base["achieved"]["as_requested"], true);
    assert_eq!((bytes(&base, "thp_bytes"), bytes(&base, "hugetlb_bytes")), (0, 0));
    for (page, backing) in [(Page::Thp, "thp"), (Page::HugeTlb(2 << 20), "hugetlb-2m")] {
        match once(&options(page)) {
            Ok(huge) => {
                assert_eq!(huge["achieved"]["backing"], backing);
                assert_eq!(bytes(&huge, "base_bytes"), 0);
                assert_eq!(huge["checksum"], base["checksum"]);
                assert_eq!((&huge["ops"], &huge["rounds"]), (&base["ops"], &base["rounds"]));
            }
            Err(WorkloadError::Memory { source }) => skip(test, source),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_checksum_follows_seed_and_mix_and_nothing_else() {
    let plain = once(&options(Page::Base)).unwrap();
    let longer = Options {
        mode: Mode::Once { warm_up: Duration::from_millis(1), limit: Limit::Time(Duration::from_millis(50)) },
        ..options(Page::Base)
    };
    assert_eq!(once(&longer).unwrap()["checksum"], plain["checksum"]);
    let other_seed = Options { seed: 2, ..options(Page::Base) };
    assert_ne!(once(&other_seed).unwrap()["checksum"], plain["checksum"]);
    for query in Query::ALL {
        let single = Options { queries: vec![query], ..options(Page::Base) };
        let result = once(&single).unwrap();
        assert_ne!(result["checksum"], plain["checksum"]);
        assert_eq!(result["queries"].as_object().map(serde_json::Map::len), Some(1));
        assert!(result["queries"][query.name()]["cpu_ns_per_op"].as_f64() > Some(0.0));
    }
}

#[test]
fn a_single_run_tells_every_figure() {
    let result = once(&options(Page::Base)).unwrap();
    assert_eq!((&result["schema"], &result["event"]), (&Value::from(SCHEMA), &Value::from("result")));
    let metrics = &result["metrics"];
    for name in ["cpu_ns_per_op", "wall_ns_per_op", "ops_per_s"] {
        assert!(metrics[name].as_f64() > Some(0.0), "{name} in {result}");
    }
    for name in ["user_ns_per_op", "system_ns_per_op"] {
        assert!(metrics[name].as_f64() >= Some(0.0), "{name} in {result}");
    }
    let latency = |name: &str| metrics["latency_ns"][name].as_u64().expect("a latency is whole");
    let rising = ["p50", "p90", "p99", "p99_9", "max"].map(latency);
    assert!(rising.is_sorted() && rising[0] > 0, "{rising:?}");
    assert_eq!(latency("count"), CHECKED_ROUNDS * Query::ALL.len() as u64);
    assert_eq!(result["rounds"], CHECKED_ROUNDS);
    assert!(result["achieved"]["vmpte_kb"].as_u64() > Some(0));
    let base = bytes(&result, "base_bytes");
    assert!((12 << 20..13 << 20).contains(&base), "{result}");
}

/// Runs `script` in a shell, with this test program as `$0`, made to run [`child_server`] alone.
fn shell(script: &str) -> Command {
    let program = std::env::current_exe().expect("a test knows its own path");
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program).env("PLANISH_WORKLOAD_CHILD", "1");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    shell
}

const SERVER: &str = r#""$0" --exact child_server --nocapture --test-threads=1"#;

/// Not a test of its own: the process of the next two.
#[test]
fn child_server() {
    if std::env::var_os("PLANISH_WORKLOAD_CHILD").is_some() {
        let serve =
            Options { mode: Mode::Serve { warm_up: Duration::from_millis(50) }, ..options(Page::Base) };
        planish_workload::run(&serve).unwrap();
    }
}

/// Whether the kernel unmaps pages on its own to see who touches them, which looks like our faults.
fn balances_nodes() -> bool {
    let mut text = String::new();
    let file = std::fs::File::open("/proc/sys/kernel/numa_balancing");
    file.and_then(|mut file| file.read_to_string(&mut text)).is_ok() && text.trim() != "0"
}

#[test]
fn the_timed_part_neither_allocates_nor_faults() {
    let test = "the_timed_part_neither_allocates_nor_faults";
    if balances_nodes() {
        return skip(test, "kernel.numa_balancing makes faults of its own");
    }
    let mut server = shell(&format!("exec {SERVER}")).spawn().expect("there is a shell");
    let mut input = server.stdin.take().expect("it is piped");
    input.write_all(b"slice 50 1\nslice 100 2\nquit\n").expect("the server listens");
    let output = server.wait_with_output().expect("the server ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let slices: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let faults = slices.last().and_then(|slice| slice["faults"].as_u64()).expect("two slices were answered");
    // Tens of megabytes were read and written; a handful of faults is the kernel's and the channel's own.
    assert!(faults <= 8, "{faults} faults");
}

#[test]
fn a_server_ends_with_its_parent() {
    // A shell takes standard input away from what it starts behind its back, hence the detour over 3.
    let script = format!("exec 3<&0; {SERVER} <&3 & wait");
    let mut parent = shell(&script).spawn().expect("there is a shell");
    let open_input = parent.stdin.take();
    let mut output = BufReader::new(parent.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("\"ready\"") {
        line.clear();
        assert!(output.read_line(&mut line).expect("text") > 0, "the server ended before it was ready");
    }
    parent.kill().expect("it runs");
    parent.wait().expect("it is our child");
    // The pipe ends when the last process that could write to it has ended.
    let (ended, end) = channel();
    std::thread::spawn(move || ended.send(output.read_to_string(&mut String::new()).is_ok()));
    assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(true), "the server outlived its parent");
    drop(open_input);
}

#[test]
fn a_server_answers_each_slice_and_survives_nonsense() {
    let serve = Options { mode: Mode::Serve { warm_up: Duration::ZERO }, ..options(Page::Base) };
    let nonsense = "slice seven 7\nslice 999999999 1\ndance\nslice 1\n";
    let input = &format!("slice 1 7\n\nslice 20 7\nslice 1 8\n{nonsense}quit\nslice 1 1\n");
    let lines = lines(&serve, input).unwrap();
    let events: Vec<_> =
        lines.iter().map(|line| line["event"].as_str().expect("every line has one")).collect();
    assert_eq!(events, ["ready", "slice", "slice", "slice", "error", "error", "error", "error"]);
    let [ready, first, longer, other] = &lines[..4] else { panic!("four lines") };
    assert_eq!((&ready["schema"], &ready["pid"]), (&Value::from(SCHEMA), &Value::from(std::process::id())));
    assert_eq!(first["checksum"], longer["checksum"]);
    assert_ne!(first["checksum"], other["checksum"]);
    assert!(longer["wall_ns"].as_u64() >= Some(20_000_000));
    assert!(first["cpu_ns"].as_u64() > Some(0) && first["cpu_ns"].as_u64() <= first["wall_ns"].as_u64());
    assert!(lines[4]["message"].as_str().is_some_and(|message| message.contains("slice seven 7")));
}

#[test]
fn a_server_survives_bytes_that_are_no_text_and_lines_without_end() {
    let serve = Options { mode: Mode::Serve { warm_up: Duration::ZERO }, ..options(Page::Base) };
    let mut input = b"\xff\xfe\n".to_vec();
    // The words of a good command, and then so many blanks that the rest is not read.
    input.extend_from_slice(format!("slice 1 7{}dance\n", " ".repeat(1 << 20)).as_bytes());
    input.extend_from_slice(b"slice 1 7");
    let lines = lines(&serve, input).unwrap();
    let events: Vec<_> =
        lines.iter().map(|line| line["event"].as_str().expect("every line has one")).collect();
    assert_eq!(events, ["ready", "error", "error", "slice"]);
    assert!(lines[2]["message"].as_str().is_some_and(|message| message.len() < 1000));
}

#[test]
fn threads_do_their_rounds_apart() {
    let two = Options { threads: NonZeroUsize::new(2).unwrap(), ..options(Page::Base) };
    let one = once(&options(Page::Base)).unwrap();
    let both = once(&two).unwrap();
    assert_eq!(both["rounds"], 2 * CHECKED_ROUNDS);
    assert_eq!(
        both["metrics"]["latency_ns"]["count"].as_u64(),
        one["metrics"]["latency_ns"]["count"].as_u64().map(|n| 2 * n)
    );
    assert_eq!(both["checksum"], once(&two).unwrap()["checksum"]);
    assert_ne!(both["checksum"], one["checksum"]);
}

#[test]
fn what_cannot_be_had_is_an_error_with_its_reason() {
    let absent = Options { cpus: Some([0, 4000].into_iter().collect()), ..options(Page::Base) };
    // On a thread of its own: being pinned, even in part, stays with the caller.
    let pinned = std::thread::spawn(move || once(&absent)).join().expect("no panic");
    match pinned.unwrap_err() {
        WorkloadError::CpuAbsent { cpus } => assert!(cpus.contains("4000")),
        WorkloadError::Pin { .. } => {}
        other => panic!("{other}"),
    }
    let nowhere = Options { node: Some(1000), ..options(Page::Base) };
    assert!(matches!(once(&nowhere).unwrap_err(), WorkloadError::Memory { .. }));
    let beyond = Options { node: Some(u32::MAX), ..options(Page::Base) };
    assert!(matches!(once(&beyond).unwrap_err(), WorkloadError::NoNode { node: u32::MAX }));
    let crowd = Options { threads: NonZeroUsize::MAX, ..options(Page::Base) };
    assert!(matches!(once(&crowd).unwrap_err(), WorkloadError::Threads { .. }));
    let huge = Options { page: Page::HugeTlb(2 << 20), bytes: 1 << 46, ..options(Page::Base) };
    assert!(matches!(once(&huge).unwrap_err(), WorkloadError::Memory { .. }));
    let tiny = Options { bytes: 4096, ..options(Page::Base) };
    assert!(matches!(once(&tiny).unwrap_err(), WorkloadError::TooSmall { .. }));
}

#[test]
fn a_fallback_that_is_allowed_is_told() {
    let page = Page::HugeTlb(128 << 30);
    let allowed = Options { page, fallback: Fallback::Allow, ..options(page) };
    let result = once(&allowed).unwrap();
    assert_eq!(result["achieved"]["as_requested"], false);
    assert!(result["achieved"]["why_not"][0].as_str().is_some_and(|why| why.contains("128 GB")));
    assert_eq!(result["checksum"], once(&options(Page::Base)).unwrap()["checksum"]);
}
