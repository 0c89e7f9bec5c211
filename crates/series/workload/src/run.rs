//! One run from load to output; or a server of slices.
//!
//! The server's protocol is lines of text in and lines of JSON out:
//!
//! ```text
//!   out  {"schema":"planish.workload/1","event":"ready","achieved":{...},...}
//!   in   slice 350 17            run for 350 ms the queries of seed 17
//!   out  {"event":"slice","seed":17,"ops":...,"checksum":"..."}
//!   in   something else
//!   out  {"event":"error","message":"..."}       and it goes on
//!   in   quit, or the end of input               it ends
//! ```

use std::io::{self, BufRead, Read, Write};
use std::thread::Scope;
use std::time::Duration;

use planish_arena::{Arena, NodeChoice, Page, Preference};
use planish_sys::process::{Usage, set_thp_disabled, usage_self};
use planish_sys::set::ID_MAX;
use planish_sys::{CpuSet, affinity};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;

use crate::data::{Data, Layout};
use crate::error::WorkloadError;
use crate::options::{Limit, Mode, Options};
use crate::outcome::{Achieved, Latency, Measured, Ready};
use crate::query::Session;
use crate::worker::{Job, Tally, Worker};

/// Name and version of the form of the output.
pub const SCHEMA: &str = "planish.workload/1";

/// Longest slice that is run: longer is a mistake in the units.
const SLICE_MILLIS_MAX: u64 = 600_000;

/// Longest command that is read whole.
const LINE_BYTES_MAX: u64 = 256;

/// Runs the workload as this whole process: standard input and output are its own.
///
/// A server ends with its parent. On base pages the whole process lives without transparent huge pages, so
/// that its heap and stacks are on base pages too.
///
/// # Errors
/// See [`WorkloadError`]; nothing stays behind but this process.
pub fn run(options: &Options) -> Result<(), WorkloadError> {
    run_to(options, io::stdout().lock())
}

/// The same with the output somewhere else.
///
/// # Errors
/// See [`WorkloadError`].
pub fn run_to(options: &Options, out: impl Write) -> Result<(), WorkloadError> {
    if matches!(options.mode, Mode::Serve { .. }) {
        end_with_parent()?;
    }
    if options.page == Page::Base {
        let attempt = "do without transparent huge pages";
        set_thp_disabled(true).map_err(|source| WorkloadError::Process { attempt, source })?;
    }
    run_with(options, io::stdin().lock(), out)
}

/// Runs the workload with the given input and output, changing nothing of the process but the CPUs of the
/// calling thread, where [`Options::cpus`] says so.
///
/// # Errors
/// See [`WorkloadError`].
pub fn run_with(options: &Options, input: impl BufRead, mut out: impl Write) -> Result<(), WorkloadError> {
    let layout = Layout::of(options)?;
    if let Some(node) = options.node.filter(|node| *node > ID_MAX) {
        return Err(WorkloadError::NoNode { node });
    }
    // Before the first touch: where no node is named, memory lies where the thread runs that faults it in.
    if let Some(cpus) = &options.cpus {
        pin_to(cpus)?;
    }
    let arena = Arena::builder()
        .page(Preference::From(options.page))
        .fallback(options.fallback)
        .node(options.node.map_or(NodeChoice::Inherit, NodeChoice::only))
        .capacity(options.bytes)
        .build()?;
    let data = Data::generate(&arena, layout, options.seed)?;
    std::thread::scope(|scope| {
        let crew = Crew::start(scope, &arena, data, options)?;
        match options.mode {
            Mode::Once { warm_up, limit } => {
                crew.measure(Job { seed: options.seed, limit: Limit::Time(warm_up) })?;
                let measured = crew.measure(Job { seed: options.seed, limit })?;
                print(&mut out, &measured.once(Achieved::of(&arena)?))
            }
            Mode::Serve { warm_up } => {
                crew.measure(Job { seed: options.seed, limit: Limit::Time(warm_up) })?;
                print(&mut out, &Ready::of(options, Achieved::of(&arena)?))?;
                let slice = |seed, limit| crew.measure(Job { seed, limit }).map(Measured::slice);
                serve(slice, input, &mut out)
            }
        }
    })
}

/// Lets the calling thread, and those that it starts, run on `cpus` only; each of them must be there.
fn pin_to(cpus: &CpuSet) -> Result<(), WorkloadError> {
    let pin_error = |source| WorkloadError::Pin { cpus: cpus.to_string(), source };
    affinity::set(None, cpus).map_err(pin_error)?;
    let absent = cpus.difference(&affinity::get(None).map_err(pin_error)?);
    if absent.is_empty() { Ok(()) } else { Err(WorkloadError::CpuAbsent { cpus: absent.to_string() }) }
}

/// Has the kernel end this process with its parent. A parent that has ended already is seen too: it has closed standard
/// input.
pub(crate) fn end_with_parent() -> Result<(), WorkloadError> {
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    asked.map_err(|errno| WorkloadError::Parent { source: errno.into() })
}

/// Answers commands with slices, which `slice` runs, until it is told to quit.
pub(crate) fn serve<T: Serialize>(
    slice: impl Fn(u64, Limit) -> Result<T, WorkloadError>,
    mut input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), WorkloadError> {
    #[derive(Serialize)]
    struct Refusal {
        event: &'static str,
        message: String,
    }
    let read_error = |source| WorkloadError::Stream { attempt: "read a command", source };
    while let Some(line) = read_line(&mut input).map_err(read_error)? {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [] => {}
            ["quit"] => return Ok(()),
            ["slice", millis, seed] => match (millis.parse(), seed.parse()) {
                (Ok(millis), Ok(seed)) if millis <= SLICE_MILLIS_MAX => {
                    let limit = Limit::Time(Duration::from_millis(millis));
                    print(out, &slice(seed, limit)?)?;
                }
                _ => {
                    let message = format!(
                        "wanted `slice MILLIS SEED` with at most {SLICE_MILLIS_MAX} ms, got {line:?}"
                    );
                    print(out, &Refusal { event: "error", message })?;
                }
            },
            _ => {
                let message = format!("wanted `slice MILLIS SEED` or `quit`, got {line:?}");
                print(out, &Refusal { event: "error", message })?;
            }
        }
    }
    Ok(())
}

/// The next line, `None` at the end of input. Bytes that are no text, and the end of a line that is longer than any
/// command, are shown as such: they make a wrong command, which is answered, and neither end the server nor fill
/// its memory.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let is_cut = bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n');
    if is_cut {
        input.skip_until(b'\n')?;
        bytes.extend_from_slice(" ...".as_bytes());
    }
    Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()))
}

/// Prints one line and sends it off.
pub(crate) fn print(out: &mut impl Write, value: &impl Serialize) -> Result<(), WorkloadError> {
    let attempt = "write a result";
    let line = serde_json::to_string(value).expect("the forms of output have string keys only");
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|source| WorkloadError::Stream { attempt, source })
}

/// All threads of a run.
struct Crew {
    workers: Vec<Worker>,
    options: Options,
}

impl Crew {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        arena: &'scope Arena,
        data: Data<'scope>,
        options: &Options,
    ) -> Result<Self, WorkloadError> {
        let cpus: Vec<u32> = options.cpus.iter().flat_map(|cpus| cpus.iter().collect::<Vec<_>>()).collect();
        let worker = |index: usize| {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            Worker::start(scope, index, cpu, options.queries.clone(), Session::new(arena, data)?)
        };
        let workers = (0..options.threads.get()).map(worker).collect::<Result<_, _>>()?;
        Ok(Self { workers, options: options.clone() })
    }

    /// Runs one job on every thread at once.
    fn measure(&self, job: Job) -> Result<Measured, WorkloadError> {
        let before = usage()?;
        self.workers.iter().for_each(|worker| worker.begin(job));
        let tallies: Result<Vec<Tally>, _> = self.workers.iter().map(Worker::finish).collect();
        let after = usage()?;
        let tally = tallies?.iter().fold(Tally::default(), Tally::merge);
        let latencies =
            || self.workers.iter().map(|worker| worker.latency.lock().expect("no worker panicked"));
        let mut latency = latencies().next().expect("there is at least one thread").clone();
        for other in latencies().skip(1) {
            latency.add(&*other).expect("all histograms have the same bounds");
        }
        Ok(Measured {
            seed: job.seed,
            tally,
            used: used_between(&before, &after),
            latency: Latency::of(&latency),
            queries: self.options.queries.clone(),
            checked_rounds: Measured::checked_rounds(job.limit),
        })
    }
}

fn usage() -> Result<Usage, WorkloadError> {
    let attempt = "read what this process has used";
    usage_self().map_err(|source| WorkloadError::Process { attempt, source })
}

/// What was used between two readings; only the fields that a slice tells.
pub(crate) fn used_between(before: &Usage, after: &Usage) -> Usage {
    Usage {
        user: after.user.saturating_sub(before.user),
        system: after.system.saturating_sub(before.system),
        faults_minor: after.faults_minor - before.faults_minor,
        faults_major: after.faults_major - before.faults_major,
        ..Usage::default()
    }
}
