//! Scans as their caller sees them. One node is enough: where there are two, the guests of `./x vm` look.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::num::NonZeroUsize;
use std::time::Duration;

use planish_arena::{Fallback, Page};
use planish_skip::skip;
use planish_sys::CpuSet;
use planish_workload::{
    CHECKED_ROUNDS, Limit, Mode, Place, SCHEMA, ScanOptions, WorkloadError, run_scans_with,
};
use serde_json::Value;

const BYTES: usize = 4 << 20;

fn options(place: Place) -> ScanOptions {
    ScanOptions {
        bytes: BYTES,
        place,
        page: Page::Base,
        fallback: Fallback::Refuse,
        cpus: None,
        threads: NonZeroUsize::new(3),
        seed: 1,
        mode: Mode::Once { warm_up: Duration::ZERO, limit: Limit::Rounds(CHECKED_ROUNDS) },
    }
}

/// The lines that a run prints; `None` where this machine cannot have it, which is told.
fn lines(test: &str, options: &ScanOptions, input: &str) -> Option<Vec<Value>> {
    lines_of(test, options, input.as_bytes())
}

/// The same with other input.
fn lines_of(test: &str, options: &ScanOptions, input: impl BufRead) -> Option<Vec<Value>> {
    let mut out = Vec::new();
    match run_scans_with(options, input, &mut out) {
        Ok(()) => {}
        // A container forbids policies, or to ask where pages are.
        Err(error @ (WorkloadError::Memory { .. } | WorkloadError::Process { .. })) => {
            skip(test, error);
            return None;
        }
        Err(WorkloadError::Misplaced { first, .. }) if first.contains("does not tell") => {
            skip(test, first);
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let text = String::from_utf8(out).expect("JSON is text");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect())
}

fn sum(by_node: &Value) -> u64 {
    by_node.as_object().expect("bytes by node").values().filter_map(Value::as_u64).sum()
}

#[test]
fn every_place_does_the_same_work_and_has_its_memory() {
    let mut checksums = Vec::new();
    for place in Place::ALL {
        let test = "every_place_does_the_same_work_and_has_its_memory";
        let Some(lines) = lines(test, &options(place), "") else { continue };
        let [result] = lines.as_slice() else { panic!("a single run prints one object: {lines:?}") };
        let achieved = &result["achieved"];
        assert_eq!((&result["schema"], &result["event"]), (&Value::from(SCHEMA), &Value::from("result")));
        assert_eq!((&achieved["place"], &achieved["backing"]), (&place.name().into(), &"base".into()));
        assert!(sum(&achieved["table_bytes"]) >= BYTES as u64 - 3 * 64, "{result}");
        assert!(sum(&achieved["heap_bytes"]) >= 3 * (256 << 10), "{result}");
        assert_eq!(achieved["table_shared_bytes"], sum(&achieved["table_bytes"]), "tables are segments");
        assert_eq!(achieved["heap_shared_bytes"], 0, "and heaps are private");
        assert_eq!(achieved["threads"].as_array().map(Vec::len), Some(3));
        // Two scans of all rows in each round.
        let rows = (BYTES / 3 / 64 * 3) as u64;
        assert_eq!(result["ops"], CHECKED_ROUNDS * 2 * rows);
        assert_eq!(result["latency_ns"]["count"], CHECKED_ROUNDS * 3);
        assert_eq!(result["latencies_ns"]["parallel"]["count"], CHECKED_ROUNDS);
        for figure in ["mean", "stddev"] {
            assert!(result["latency_ns"][figure].as_f64() >= Some(0.0), "{figure}: {result}");
        }
        assert!(result["cpu_ns"].as_u64() > Some(0), "{result}");
        checksums.push(result["checksum"].clone());
    }
    checksums.dedup();
    assert!(checksums.len() <= 1, "the same rows were read: {checksums:?}");
}

/// Input that looks at the mappings of this process when it is read first, while the workload waits for it.
struct Look<'a> {
    maps: &'a mut String,
    rest: &'a [u8],
}

impl Read for Look<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.maps.is_empty() {
            File::open("/proc/self/maps")?.read_to_string(self.maps)?;
        }
        self.rest.read(bytes)
    }
}

#[test]
fn tables_are_segments_and_heaps_are_not() {
    let test = "tables_are_segments_and_heaps_are_not";
    // No other test has pieces of these sizes: of 5 MiB, 1 MiB is the largest power of two below a quarter.
    let (table_bytes, heap_bytes) = (5 << 20, 1 << 20);
    for place in Place::ALL {
        let serve = ScanOptions {
            bytes: 2 * table_bytes,
            threads: NonZeroUsize::new(2),
            mode: Mode::Serve { warm_up: Duration::ZERO },
            ..options(place)
        };
        let mut maps = String::new();
        let look = Look { maps: &mut maps, rest: b"quit\n" };
        if lines_of(test, &serve, BufReader::new(look)).is_none() {
            continue;
        }
        let of =
            |access: &str, bytes: usize| maps.lines().filter(|line| is_mapping(line, access, bytes)).count();
        assert_eq!((of("rw-s", table_bytes), of("rw-p", table_bytes)), (2, 0), "{place}: {maps}");
        assert_eq!(of("rw-s", heap_bytes), 0, "{place}: {maps}");
        assert!(of("rw-p", heap_bytes) >= 2, "{place}: {maps}");
    }
}

/// Whether a line of maps is of a mapping of these rights and this length.
fn is_mapping(line: &str, access: &str, bytes: usize) -> bool {
    let mut words = line.split_ascii_whitespace();
    let ends = words.next().and_then(|range| range.split_once('-'));
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    let length = ends.and_then(|(start, end)| Some(address(end)? - address(start)?));
    length == Some(bytes) && words.next() == Some(access)
}

#[test]
fn the_checksum_follows_the_seed() {
    let test = "the_checksum_follows_the_seed";
    let of = |seed| {
        lines(test, &ScanOptions { seed, ..options(Place::Default) }, "").map(|mut lines| lines.remove(0))
    };
    let (Some(one), Some(again), Some(other)) = (of(1), of(1), of(2)) else { return };
    assert_eq!(one["checksum"], again["checksum"]);
    assert_ne!(one["checksum"], other["checksum"]);
}

#[test]
fn a_server_answers_slices_and_says_what_it_does_not_understand() {
    let test = "a_server_answers_slices_and_says_what_it_does_not_understand";
    let serve =
        ScanOptions { mode: Mode::Serve { warm_up: Duration::ZERO }, ..options(Place::InterleaveShared) };
    let Some(lines) = lines(test, &serve, "slice 20 7\nslice 0 7\nslize\nquit\nslice 1 1\n") else { return };
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["ready", "slice", "slice", "error"]);
    let (slice, empty) = (&lines[1], &lines[2]);
    assert!(slice["wall_ns"].as_u64() >= Some(20_000_000), "{slice}");
    assert_eq!(empty["rounds"], CHECKED_ROUNDS, "fewer than the checksum covers are none");
    assert_eq!(slice["checksum"], empty["checksum"], "who reads what decides the seed of the slice");
    assert_eq!(lines[0]["achieved"]["heap_local_share"], 1.0);
}

#[test]
fn what_cannot_be_had_is_refused_by_its_name() {
    let refused = |change: &dyn Fn(&mut ScanOptions)| {
        let mut options = options(Place::Default);
        change(&mut options);
        let mut out = Vec::new();
        let error = run_scans_with(&options, "".as_bytes(), &mut out).expect_err("it cannot be had");
        assert!(out.is_empty(), "nothing was printed");
        error
    };
    let error = refused(&|options| options.bytes = 600 << 10);
    assert!(
        matches!(error, WorkloadError::TooSmall { least_bytes, .. } if least_bytes == 768 << 10),
        "{error}"
    );
    let absent: CpuSet = "9000".parse().expect("a list");
    let error = refused(&|options| options.cpus = Some(absent.clone()));
    assert_eq!(error.to_string(), "CPU 9000 is offline or not allowed here");
    let error = refused(&|options| options.threads = NonZeroUsize::new(5000));
    assert!(matches!(error, WorkloadError::Threads { threads: 5000, .. }), "{error}");
}
