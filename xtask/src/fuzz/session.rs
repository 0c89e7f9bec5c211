//! One run of a fuzz target under libFuzzer, as long as its own CPU time says, and what came of it.

use crate::shell;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the CPU time of a target is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A machine that gives a target less than one part in this many is not waited for: the run ends short, and says so.
const WALL_PER_CPU: u32 = 20;
/// What one input may take. Wall time, since libFuzzer has no other: on a machine with a load of 20 a target waited for
/// more than five seconds in the middle of an input of 20 ms.
const INPUT_WALL_S: u32 = 60;

/// What one run of a target came to.
#[derive(Debug, PartialEq)]
pub struct Session {
    /// CPU time of the target, its own and the kernel's for it.
    pub cpu_s: f64,
    pub wall_s: f64,
    /// Inputs that the target was given.
    pub executions: u64,
    /// Edges of its control flow that any of them went over.
    pub edges: u64,
    /// Inputs that are worth keeping, each for something that no other does.
    pub corpus: u64,
    /// What libFuzzer says of its end; `None` when it was we who ended it.
    pub found: Option<String>,
}

impl Session {
    /// This run and the one before it, whose corpus it went on with, as one.
    pub fn after(self, before: &Self) -> Self {
        Self {
            cpu_s: before.cpu_s + self.cpu_s,
            wall_s: before.wall_s + self.wall_s,
            executions: before.executions + self.executions,
            ..self
        }
    }
}

/// Runs `program` over a corpus, which grows, until it has used as much CPU time as asked, or has found something.
///
/// By CPU time, because ten minutes of a loaded machine may be two of work. What libFuzzer says goes to `talk`.
pub fn run(program: &Path, corpus: &Path, seeds: &Path, talk: &Path, cpu_s: u32) -> Result<Session> {
    fs::create_dir_all(corpus).with_context(|| format!("make {}", corpus.display()))?;
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={}", cpu_s.saturating_mul(WALL_PER_CPU)));
    command.arg(format!("-timeout={INPUT_WALL_S}")).args(["-rss_limit_mb=1024", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/", corpus.display())).arg(corpus);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    shell::say(&command);
    let output = File::create(talk).with_context(|| format!("make {}", talk.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("start {}", program.display()))?;
    let pid = Pid::from_child(&child);
    let mut asked = false;
    let used_s = loop {
        // A process that has ended keeps its times until it is waited for.
        let stat = format!("/proc/{}/stat", child.id());
        let stat = fs::read_to_string(&stat).with_context(|| format!("read {stat}"))?;
        let times = Times::parse(&stat).with_context(|| format!("times of process {stat:?}"))?;
        if times.ended {
            break times.cpu_s;
        }
        if times.cpu_s >= f64::from(cpu_s) && !asked {
            // libFuzzer ends at this signal by itself, between two inputs, and as a success.
            kill_process(pid, Signal::USR1).context("end a target")?;
            asked = true;
        }
        sleep(LOOK_EVERY);
    };
    let wall_s = start.elapsed().as_secs_f64();
    let status = child.wait().context("wait for a target")?;
    let talk = fs::read(talk).with_context(|| format!("read {}", talk.display()))?;
    let told = Told::parse(&String::from_utf8_lossy(&talk));
    let found = (!status.success()).then(|| told.summary.unwrap_or_else(|| status.to_string()));
    let Told { executions, edges, corpus, .. } = told;
    Ok(Session { cpu_s: used_s, wall_s, executions, edges, corpus, found })
}

/// What `/proc/PID/stat` tells of a process.
#[derive(Debug, PartialEq)]
struct Times {
    cpu_s: f64,
    ended: bool,
}

impl Times {
    /// `None` for a line that is none of this file.
    fn parse(stat: &str) -> Option<Self> {
        // The name stands in brackets and may hold some itself. Fields are counted as in proc_pid_stat(5).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let ticks = field(14)?.parse::<u32>().ok()?.checked_add(field(15)?.parse().ok()?)?;
        let ticks_per_s = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
        Some(Self { cpu_s: f64::from(ticks) / f64::from(ticks_per_s), ended: matches!(field(3)?, "Z" | "X") })
    }
}

/// What libFuzzer says while it runs, as far as it is kept.
#[derive(Debug, Default, PartialEq)]
struct Told {
    executions: u64,
    edges: u64,
    corpus: u64,
    summary: Option<String>,
}

impl Told {
    fn parse(text: &str) -> Self {
        let mut told = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("stat::number_of_executed_units:") => told.executions = number(words.next()),
                Some("SUMMARY:") => told.summary = Some(words.collect::<Vec<_>>().join(" ")),
                Some(first) if first.starts_with('#') => {
                    let words: Vec<&str> = words.collect();
                    let after =
                        |name: &str| words.iter().position(|word| *word == name).map(|at| words.get(at + 1));
                    if let Some(edges) = after("cov:") {
                        told.edges = number(edges.copied());
                    }
                    if let Some(corpus) = after("corp:") {
                        told.corpus = number(corpus.copied());
                    }
                    // A crash leaves no statistics; then this is the last that is known.
                    told.executions = told.executions.max(number(first.strip_prefix('#')));
                }
                _ => {}
            }
        }
        told
    }
}

/// The digits that a word begins with: `12/345b` are 12 inputs.
fn number(word: Option<&str>) -> u64 {
    let word = word.unwrap_or_default();
    let end = word.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(word.len());
    word[..end].parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Session, Times, Told, run};
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn times_are_read_behind_the_last_bracket() {
        let line = "7 (a) R 1) Z 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 3 0 0";
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(Times::parse(line), Some(Times { cpu_s: 300.0 / ticks_per_s, ended: true }));
        assert_eq!(Times::parse("7 (a) R 1"), None);
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(!Times::parse(&own).unwrap().ended);
    }

    #[test]
    fn the_last_that_libfuzzer_says_counts() {
        let text = "INFO: Seed: 1\n\
            #2\tINITED cov: 20 ft: 30 corp: 1/1b exec/s: 0 rss: 40Mb\n\
            #512\tREDUCE cov: 45 ft: 60 corp: 12/345b lim: 4 exec/s: 0 rss: 41Mb L: 3/4 MS: 1 EraseBytes-\n\
            #600\tRELOAD cov: 46\n\
            ==7== INFO: libFuzzer: exiting as requested\n\
            stat::number_of_executed_units: 700\n\
            stat::average_exec_per_sec:     350\n";
        let told = Told { executions: 700, edges: 46, corpus: 12, summary: None };
        assert_eq!(Told::parse(text), told);
        let crash = "#8\tNEW    cov: 5 ft: 6 corp: 2/9b\nSUMMARY: libFuzzer: deadly signal\n";
        let summary = Some("libFuzzer: deadly signal".to_owned());
        assert_eq!(Told::parse(crash), Told { executions: 8, edges: 5, corpus: 2, summary });
    }

    /// A program in the place of a target: takes libFuzzer's options, and does what it is told.
    fn target(folder: &Path, script: &str) -> Session {
        let program = folder.join("target");
        let file = folder.join("text");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        // By another program: what this one has open for writing, a child of another test may have for a moment too,
        // and such a file cannot be started.
        assert!(
            Command::new("install").args(["-m", "755"]).arg(&file).arg(&program).status().unwrap().success()
        );
        run(&program, &folder.join("corpus"), &folder.join("none"), &folder.join("talk"), 1).unwrap()
    }

    #[test]
    fn a_target_ends_by_its_own_cpu_time() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap 'echo stat::number_of_executed_units: 5 >&2; exit 0' USR1\nwhile :; do :; done";
        let session = target(folder.path(), script);
        assert!(session.cpu_s >= 1.0 && session.wall_s >= session.cpu_s * 0.9, "{session:?}");
        assert_eq!((session.executions, session.found), (5, None));
    }

    #[test]
    fn what_a_target_finds_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let session = target(folder.path(), "echo 'SUMMARY: libFuzzer: timeout' >&2; exit 70");
        assert_eq!(session.found.as_deref(), Some("libFuzzer: timeout"));
        let session = target(folder.path(), "exit 3");
        assert_eq!(session.found.as_deref(), Some("exit status: 3"));
    }
}
