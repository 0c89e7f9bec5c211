//! `planish run` on real nodes: the shared segment is spread, the heap stays, and the kernel's own words say so.
//!
//! The program prints its numa_maps. What planish reports is compared with that, never with itself.

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::{planish, settings, zeroes};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Length of a segment: 24 pages of a pool, so that two nodes can have the same.
const SEGMENT_MIB: u64 = 48;
const REPORT: &str = "/tmp/run.json";
/// Most that the share of a node may differ from what was wanted.
const TOLERANCE: f64 = 0.02;

/// Runs every check that the programs of this guest allow.
pub fn run_all(shape: &Shape, report: &mut Report) {
    if !planish::knows("run") {
        return;
    }
    report.check("run.static", refuses_static);
    report.check("run.signals", passes_signals_on);
    for libc in ["glibc", "musl"] {
        let name = |what: &str| format!("run.{libc}.{what}");
        let program = format!("/bin/place-{libc}");
        if !Path::new(&program).exists() {
            report.check(&name("any"), || Ok(Outcome::Skip(format!("no {program} was packed"))));
            continue;
        }
        if shape.node_count - shape.node_cpuless_count < 2 {
            report.check(&name("any"), || Ok(Outcome::Skip("one node with CPUs".to_owned())));
            continue;
        }
        // A boot has its limit, so what does not depend on the libc is asked of one.
        let is_first = libc == "glibc";
        let kinds: &[&str] = if is_first { &["anonymous", "sysv"] } else { &["anonymous"] };
        for kind in kinds {
            report.check(&name(&format!("{kind}.4k")), || spread(&program, kind, &[], "base"));
            report.check(&name(&format!("{kind}.thp")), || spread(&program, kind, &["--huge", "shm"], "thp"));
            report.check(&name(&format!("{kind}.hugetlb")), || {
                pooled("16", || spread(&program, kind, &["--huge", "shm=2m"], "hugetlb"))
            });
        }
        if is_first {
            report.check(&name("plain"), || plain(&program));
            report.check(&name("memfd.4k"), || spread(&program, "memfd", &[], "base"));
            report.check(&name("allocated.4k"), || spread(&program, "allocated", &[], "base"));
            report.check(&name("pinned.4k"), || spread(&program, "pinned", &[], "base"));
            report.check(&name("weighted"), || weighted(&program));
            report.check(&name("bound"), || bound(&program));
            report.check(&name("pool-short"), || short(&program));
        }
    }
}

/// Those of a guest with servers, which is not booted as often.
pub fn run_slow(report: &mut Report) {
    const PROGRAM: &str = "/bin/place-glibc";
    let packed = |check: fn(&str) -> Result<Outcome>| match Path::new(PROGRAM).exists() {
        true => check(PROGRAM),
        false => Ok(Outcome::Skip(format!("no {PROGRAM} was packed"))),
    };
    report.check("run.glibc.locked.4k", || packed(|program| spread(program, "locked", &[], "base")));
    report.check("run.glibc.pool-replaced", || packed(replaced));
    report.check("run.glibc.again", || packed(again));
}

/// What the kernel said of the program's memory.
struct Seen {
    /// Pages of the segment by node, all of one size.
    segment: BTreeMap<u32, u64>,
    /// The policy of the segment.
    policy: String,
    /// Private pages by node.
    private: BTreeMap<u32, u64>,
    /// What planish reported; null without it.
    report: Value,
}

impl Seen {
    /// The share of a node in pages.
    fn share(pages: &BTreeMap<u32, u64>, node: u32) -> f64 {
        let total: u64 = pages.values().sum();
        pages.get(&node).copied().unwrap_or(0) as f64 / total.max(1) as f64
    }

    fn told(&self) -> String {
        let share = |node| Self::share(&self.segment, node) * 100.0;
        let local = Self::share(&self.private, 0) * 100.0;
        format!("shared {:.1} / {:.1} %, {}, heap {local:.1} % on node 0", share(0), share(1), self.policy)
    }
}

/// Starts the program on CPU 0 with the options and reads what it prints.
fn seen(program: &str, kind: &str, options: &[&str]) -> Result<Seen> {
    let _ = fs::remove_file(REPORT);
    let size = SEGMENT_MIB.to_string();
    let words = [
        &["run", "--cpus", "0", "--prefault-threads", "2", "--report", REPORT][..],
        options,
        &["--", program, kind, &size],
    ];
    let mut child = planish::command(&words.concat());
    let mut child = child.stdout(Stdio::piped()).spawn().context("start planish")?;
    let looked = look(&mut child, !options.is_empty());
    // planish passes it on, and ends as its program does.
    rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).context("end the program")?;
    let status = child.wait().context("wait for planish")?;
    let seen = looked?;
    ensure!(status.code() == Some(143), "planish left with {status}");
    Ok(seen)
}

/// Reads what the program prints, and waits for the report of its memory.
fn look(child: &mut Child, is_placed: bool) -> Result<Seen> {
    const PATIENCE: Duration = Duration::from_secs(40);
    let mut text = String::new();
    let mut output = BufReader::new(child.stdout.take().context("its output")?);
    while !text.ends_with("\nend\n") {
        ensure!(output.read_line(&mut text).context("read its output")? > 0, "it ended early: {text}");
    }
    let mut seen = parse(&text)?;
    let begun = Instant::now();
    loop {
        let report = fs::read_to_string(REPORT).unwrap_or_default();
        if let Ok(report) = serde_json::from_str::<Value>(&report) {
            let instance = &report["result"]["instances"][0];
            let placed = instance["segments"].as_array().is_some_and(|segments| !segments.is_empty());
            if instance["seen"] == true && (placed || !is_placed) {
                seen.report = report;
                return Ok(seen);
            }
        }
        ensure!(begun.elapsed() < PATIENCE, "no report of its memory: {report}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `segment ADDRESS`, then numa_maps: `ADDRESS POLICY [file=NAME] [heap] ... N0=PAGES N1=PAGES ...`
fn parse(text: &str) -> Result<Seen> {
    let (first, maps) = text.split_once('\n').context("the program printed nothing")?;
    let address = first.strip_prefix("segment ").with_context(|| format!("odd: {first}"))?;
    let mut seen = Seen {
        segment: BTreeMap::new(),
        policy: String::new(),
        private: BTreeMap::new(),
        report: Value::Null,
    };
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (at, policy) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_segment = at.trim_start_matches('0') == address;
        let is_private = !line.contains(" file=") && !line.contains(" stack");
        let pages = match () {
            () if is_segment => &mut seen.segment,
            () if is_private => &mut seen.private,
            () => continue,
        };
        for word in words {
            let Some((node, count)) = word.strip_prefix('N').and_then(|word| word.split_once('=')) else {
                continue;
            };
            *pages.entry(node.parse()?).or_insert(0) += count.parse::<u64>()?;
        }
        if is_segment {
            seen.policy = policy.to_owned();
        }
    }
    ensure!(!seen.segment.is_empty(), "the segment at {address} has no pages: {maps}");
    Ok(seen)
}

/// The ground: without planish all of the segment is on the node of its first user.
fn plain(program: &str) -> Result<Outcome> {
    let seen = seen(program, "anonymous", &[])?;
    ensure!(Seen::share(&seen.segment, 0) > 0.9, "{}", seen.told());
    Ok(Outcome::Ok(seen.told()))
}

/// Half of the segment on each of two nodes, the heap where the program runs, and a report that says the same.
fn spread(program: &str, kind: &str, options: &[&str], backing: &str) -> Result<Outcome> {
    let seen = seen(program, kind, &[&["--numa", "shm=interleave:0-1"], options].concat())?;
    ensure!((Seen::share(&seen.segment, 0) - 0.5).abs() <= TOLERANCE / 2.0, "{}", seen.told());
    ensure!((Seen::share(&seen.segment, 1) - 0.5).abs() <= TOLERANCE / 2.0, "{}", seen.told());
    ensure!(Seen::share(&seen.private, 0) > 0.98, "{}", seen.told());
    ensure!(seen.policy.starts_with("interleave"), "{}", seen.told());
    reported(&seen.report, backing)?;
    Ok(Outcome::Ok(seen.told()))
}

/// What planish reports of the same segment: all of it, half and half, on the pages that were wanted, nothing short.
fn reported(report: &Value, backing: &str) -> Result<()> {
    let instance = &report["result"]["instances"][0];
    let segments = instance["segments"].as_array().context("no segments")?;
    let [segment] = segments.as_slice() else { anyhow::bail!("{} segments: {report}", segments.len()) };
    let shares = segment["shares"].as_array().context("no shares")?;
    let bytes = |wanted: &dyn Fn(&Value) -> bool| -> u64 {
        shares.iter().filter(|share| wanted(share)).filter_map(|share| share["resident_bytes"].as_u64()).sum()
    };
    let (all, half) = (bytes(&|_| true), bytes(&|share| share["node"] == 0));
    ensure!(all == SEGMENT_MIB * MIB, "{all} bytes: {report}");
    ensure!((half as f64 / all as f64 - 0.5).abs() <= TOLERANCE / 2.0, "{half} of {all} bytes: {report}");
    ensure!(bytes(&|share| share["backing"] == backing) == all, "not all on {backing}: {report}");
    ensure!(segment["short"] == Value::Array(Vec::new()), "short: {report}");
    ensure!(segment["threads"] == 2 || segment["threads"] == 1, "not filled by threads: {report}");
    Ok(())
}

/// With so many pages in the pool of each of both nodes.
pub fn pooled(pages: &str, check: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    let pool =
        |node: u32| format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    let before = [settings::read(&pool(0))?, settings::read(&pool(1))?];
    for node in [0, 1] {
        fs::write(pool(node), pages).with_context(|| format!("write {}", pool(node)))?;
    }
    let outcome = check();
    for (node, before) in [0, 1].into_iter().zip(before) {
        fs::write(pool(node), before).with_context(|| format!("restore {}", pool(node)))?;
    }
    outcome
}

/// A pool that has fewer pages than the segment takes: that gets ordinary ones, spread all the same, and the reason.
fn short(program: &str) -> Result<Outcome> {
    pooled("4", || {
        let seen = seen(program, "anonymous", &["--numa", "shm=interleave:0-1", "--huge", "shm=2m"])?;
        ensure!((Seen::share(&seen.segment, 0) - 0.5).abs() <= TOLERANCE / 2.0, "{}", seen.told());
        let segment = &seen.report["result"]["instances"][0]["segments"][0];
        let shares = segment["shares"].as_array().context("no shares")?;
        ensure!(shares.iter().all(|share| share["backing"] == "base"), "{segment}");
        let why = segment["short"].to_string();
        ensure!(why.contains("pool"), "nothing of a pool that is short: {segment}");
        Ok(Outcome::Ok(why))
    })
}

/// Mappings from a pool that are longer than the program knows: it unmaps them, and maps others in their place.
fn replaced(program: &str) -> Result<Outcome> {
    pooled("16", || {
        let seen =
            seen(program, "replaced", &["--min", "2M", "--numa", "shm=interleave:0-1", "--huge", "shm=2m"])?;
        ensure!((Seen::share(&seen.segment, 0) - 0.5).abs() <= TOLERANCE / 2.0, "{}", seen.told());
        Ok(Outcome::Ok(seen.told()))
    })
}

/// A segment that outlives its program: the next starts have other nodes for it. Its pages stay, and they say so.
fn again(program: &str) -> Result<Outcome> {
    for (kind, node) in [("kept", 1), ("kept", 0), ("last", 0)] {
        let seen = seen(program, kind, &["--numa", &format!("shm=bind:{node}")])?;
        ensure!(seen.policy == format!("bind:{node}"), "{}", seen.told());
        ensure!(Seen::share(&seen.segment, 1) > 0.999, "{}", seen.told());
        let segments = &seen.report["result"]["instances"][0]["segments"];
        ensure!(segments.as_array().is_some_and(|all| all.len() == 1), "{segments}");
        let short = segments[0]["short"].to_string();
        ensure!(short.contains("lies 100.0 % on node 1") == (node == 0), "{segments}");
    }
    Ok(Outcome::Ok("bound to node 0 anew, it is said to lie on node 1, twice".to_owned()))
}

/// Three quarters on the node of weight three.
fn weighted(program: &str) -> Result<Outcome> {
    let file = "/sys/kernel/mm/mempolicy/weighted_interleave/node0";
    if !Path::new(file).exists() {
        return Ok(Outcome::Skip(format!("no {file}: Linux before 6.9")));
    }
    let other = "/sys/kernel/mm/mempolicy/weighted_interleave/node1";
    let before = [settings::read(file)?, settings::read(other)?];
    fs::write(file, "3")?;
    fs::write(other, "1")?;
    let outcomes = [&[][..], &["--huge", "shm"]].map(|options| -> Result<Seen> {
        let seen = seen(program, "anonymous", &[&["--numa", "shm=weighted:0-1"], options].concat())?;
        ensure!((Seen::share(&seen.segment, 0) - 0.75).abs() <= TOLERANCE / 2.0, "{}", seen.told());
        let short = &seen.report["result"]["instances"][0]["segments"][0]["short"];
        ensure!(*short == Value::Array(Vec::new()), "short: {}", seen.report);
        Ok(seen)
    });
    fs::write(file, &before[0])?;
    fs::write(other, &before[1])?;
    let [small, huge] = outcomes;
    let huge = huge?.told();
    Ok(Outcome::Ok(format!("{}; on huge pages {huge}", small?.told())))
}

/// All of the segment on the other node, the heap at home.
fn bound(program: &str) -> Result<Outcome> {
    let seen = seen(program, "sysv", &["--numa", "shm=bind:1"])?;
    ensure!(Seen::share(&seen.segment, 1) > 0.999, "{}", seen.told());
    ensure!(Seen::share(&seen.private, 0) > 0.98, "{}", seen.told());
    Ok(Outcome::Ok(seen.told()))
}

/// planish itself is static, of musl where that can be had: it is refused with what works instead, and that works.
fn refuses_static() -> Result<Outcome> {
    let program = ["--", "/bin/planish", "--version"];
    let run = planish::run(&[&["run", "--numa", "interleave"][..], &program].concat())?;
    ensure!(run.exit == 125 && run.stdout.is_empty(), "left with {}: {}", run.exit, run.stderr);
    ensure!(run.stderr.contains("linked statically"), "no reason: {}", run.stderr);
    ensure!(run.stderr.contains("--numa heap=interleave"), "no alternative: {}", run.stderr);
    let instead = planish::run(&[&["run", "--numa", "heap=interleave"][..], &program].concat())?;
    ensure!(instead.exit == 0 && instead.stdout.starts_with("planish "), "{}", instead.stderr);
    Ok(Outcome::Ok("refused with the alternative, which works".to_owned()))
}

/// Signals end the program and not planish: 34 is SIGRTMIN of glibc, and musl, of which the planish of a guest
/// is, has a use of its own for it.
fn passes_signals_on() -> Result<Outcome> {
    const SENT: [i32; 13] = [1, 2, 3, 6, 10, 12, 14, 15, 16, 34, 35, 40, 64];
    let own = std::env::current_exe().context("the path of this program")?;
    let own = own.to_str().context("the path of this program is no text")?;
    for number in SENT {
        let words = ["run", "--quiet", "--cpus", "0", "--", own, zeroes::WORD];
        let mut child = planish::command(&words);
        let mut child = child.stdout(Stdio::piped()).spawn().context("start planish")?;
        let mut ready = String::new();
        BufReader::new(child.stdout.take().context("its output")?).read_line(&mut ready)?;
        // SAFETY: of a signal that the C library has a use for no handler of this process runs: it is sent to another.
        let signal = unsafe { Signal::from_raw_unchecked(number) };
        rustix::process::kill_process(Pid::from_child(&child), signal).context("send a signal")?;
        let status = child.wait().context("wait for planish")?;
        ensure!(ready == "ready\n", "the program said {ready:?}");
        ensure!(status.code() == Some(128 + number), "of signal {number} planish left with {status}");
    }
    Ok(Outcome::Ok(format!("{} signals ended the program, and planish told so", SENT.len())))
}
