//! The workload as its caller sees it: options in, lines of JSON out.

use std::num::NonZeroUsize;
use std::time::Duration;

use planish_arena::{Fallback, Page};
use planish_skip::skip;
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
fn lines(options: &Options, input: &str) -> Result<Vec<Value>, WorkloadError> {
    let mut out = Vec::new();
    run_with(options, input.as_bytes(), &mut out)?;
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

#[test]
fn the_timed_part_neither_allocates_nor_faults() {
    // Other tests of this process fault meanwhile, so only a child of its own can be judged.
    let child = std::process::Command::new(std::env::current_exe().expect("a test knows its own path"))
        .args(["--exact", "child_of_the_fault_test", "--nocapture", "--test-threads=1"])
        .env("PLANISH_WORKLOAD_CHILD", "1")
        .output()
        .expect("the test program runs");
    let text = String::from_utf8_lossy(&child.stdout);
    let faults = text.lines().find_map(|line| line.split_once("slice faults ")).expect("the child tells");
    let faults: u64 = faults.1.trim().parse().expect("a number");
    // Tens of megabytes were read and written; a handful of faults is the kernel's and the channel's own.
    assert!(faults <= 8, "{faults} faults");
}

#[test]
fn child_of_the_fault_test() {
    if std::env::var_os("PLANISH_WORKLOAD_CHILD").is_none() {
        return;
    }
    let serve = Options { mode: Mode::Serve { warm_up: Duration::from_millis(50) }, ..options(Page::Base) };
    let lines = lines(&serve, "slice 50 1\nslice 100 2\n").unwrap();
    println!("\nslice faults {}", lines[2]["faults"]);
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
