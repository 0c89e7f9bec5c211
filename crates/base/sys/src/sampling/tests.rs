use std::process::{Command, Stdio};
use std::time::Instant;

use super::*;
use crate::affinity;

/// Kinds of records, by their numbers in the header.
const COMM: u32 = 3;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;

fn cpus() -> CpuSet {
    affinity::get(None).unwrap()
}

/// A sampler of the clock on the calling thread, or the reason said aloud.
fn sampler(test: &str) -> Option<Sampler> {
    let me = [rustix::thread::gettid()];
    let opened = Sampler::open(Target::Threads(&me), &[Source::CpuClock], 2000, &cpus());
    opened.map_err(|error| planish_skip::skip(test, error)).ok()
}

/// Kind and process of each record. All that we look at begin with the process, samples after their address.
fn records(bytes: &[u8]) -> Vec<(u32, u32)> {
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = usize::from(u16::from_le_bytes(*bytes[at + 6..].first_chunk().unwrap()));
        assert!(length >= 8 && at + length <= bytes.len(), "whole records only");
        found.push((word(at), word(at + if word(at) == SAMPLE { 16 } else { 8 })));
        at += length;
    }
    found
}

fn count(records: &[(u32, u32)], kind: u32) -> usize {
    records.iter().filter(|record| record.0 == kind).count()
}

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::black_box((0..10_000_u64).map(std::hint::black_box).sum::<u64>());
    }
}

#[test]
fn samples_come_while_it_is_on_and_mappings_always() {
    let name = "samples_come_while_it_is_on_and_mappings_always";
    let Some(mut sampler) = sampler(name) else { return };
    let shell = || Command::new("sh").args(["-c", "exit 0"]).stdin(Stdio::null()).status().unwrap();
    let mut bytes = Vec::new();
    work(Duration::from_millis(50));
    assert!(shell().success());
    sampler.drain(&mut bytes);
    let off = records(&bytes);
    assert_eq!(count(&off, SAMPLE), 0, "off is off");
    let me = std::process::id();
    let child = off.iter().find(|(kind, pid)| *kind == FORK && *pid != me).expect("the shell was forked").1;
    assert!(off.contains(&(COMM, child)) && off.contains(&(MMAP2, child)), "{off:?}");

    sampler.set_on(true).unwrap();
    work(Duration::from_millis(200));
    sampler.set_on(false).unwrap();
    bytes.clear();
    sampler.drain(&mut bytes);
    let on = count(&records(&bytes), SAMPLE);
    assert!(on > 20, "200 ms at 2 kHz, on a machine that others use: {on}");
    work(Duration::from_millis(50));
    bytes.clear();
    sampler.drain(&mut bytes);
    assert_eq!(count(&records(&bytes), SAMPLE), 0, "off again");
}

#[test]
fn threads_and_children_made_later_are_sampled() {
    let Some(mut sampler) = sampler("threads_and_children_made_later_are_sampled") else { return };
    sampler.set_on(true).unwrap();
    std::thread::spawn(|| work(Duration::from_millis(100))).join().unwrap();
    let script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    assert!(Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status().unwrap().success());
    sampler.set_on(false).unwrap();
    let mut bytes = Vec::new();
    sampler.drain(&mut bytes);
    let (found, me) = (records(&bytes), std::process::id());
    assert!(found.contains(&(SAMPLE, me)));
    let others = found.iter().filter(|(kind, pid)| *kind == SAMPLE && *pid != me).count();
    assert!(others > 5, "the shell ran: {others}");
}

#[test]
fn a_ring_that_fills_wakes_and_an_end_is_told() {
    let Some(mut sampler) = sampler("a_ring_that_fills_wakes_and_an_end_is_told") else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    assert!(!sampler.wait(Some(reader.as_fd()), Duration::from_millis(5)).unwrap());
    drop(writer);
    assert!(sampler.wait(Some(reader.as_fd()), Duration::from_secs(20)).unwrap());
}

#[test]
fn a_thread_that_is_gone_is_told_and_wakes_nobody() {
    let (to_main, tid) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        to_main.send(rustix::thread::gettid()).unwrap();
        let _ = wait.recv();
    });
    let tid = [tid.recv().unwrap()];
    let opened = Sampler::open(Target::Threads(&tid), &[Source::CpuClock], 500, &cpus());
    drop(go);
    thread.join().unwrap();
    let mut sampler = match opened {
        Ok(sampler) => sampler,
        Err(error) => return planish_skip::skip("a_thread_that_is_gone_is_told_and_wakes_nobody", error),
    };
    // The kernel may need a moment; from then on a wait lasts as long as it was asked to.
    let patient = (0..50).any(|_| {
        let start = Instant::now();
        sampler.wait(None, Duration::from_millis(20)).unwrap();
        start.elapsed() >= Duration::from_millis(20)
    });
    assert!(patient);
    let again = Sampler::open(Target::Threads(&tid), &[Source::CpuClock], 500, &cpus());
    assert!(matches!(again, Err(SamplingError::Gone)), "{again:?}");
}

#[test]
fn better_sources_are_had_or_refused_with_a_reason() {
    let me = [rustix::thread::gettid()];
    let sampler = match Sampler::open(Target::Threads(&me), &Source::ALL, 500, &cpus()) {
        Ok(sampler) => sampler,
        Err(error) => {
            return planish_skip::skip("better_sources_are_had_or_refused_with_a_reason", error);
        }
    };
    let better = Source::ALL.into_iter().take_while(|source| *source != sampler.source());
    assert!(better.eq(sampler.refused().iter().map(|(source, _)| *source)));
    if !has_pmu() {
        assert_eq!(sampler.source(), Source::CpuClock);
        assert!(sampler.refused().iter().all(|(_, why)| *why == Refusal::NoPmu), "{:?}", sampler.refused());
    }
    assert_eq!(sampler.events(), 2 * cpus().count());
}

#[test]
fn refusals_name_their_reason() {
    assert_eq!(refusal(Source::CpuClock, Errno::NOSYS), Refusal::NoKernel);
    assert_eq!(refusal(Source::CpuClock, Errno::INVAL), Refusal::Failed { errno: Errno::INVAL });
    let branches = refusal(Source::Branches, Errno::OPNOTSUPP);
    assert_eq!(branches, if has_pmu() { Refusal::NoBranchStacks } else { Refusal::NoPmu });
    let text = SamplingError::Refused(vec![(Source::CpuClock, Refusal::Paranoid { level: 4 })]).to_string();
    assert!(text.contains("cpu-clock: kernel.perf_event_paranoid is 4"), "{text}");
}
