//! `planish text record`

pub(crate) mod before;
pub(crate) mod capture;
mod child;
pub(crate) mod refusal;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use planish_host::Host;
use planish_model::{Catalogue, Exit};
use planish_profile::perf_data::{self, Stream};
use planish_profile::{CallProfile, Format, ImportOptions, Imported, Window, file};
use planish_report::{Envelope, Level, Message, TextRecordReport, TextRecordSource};
use planish_sys::sampling::{Sampler, Source};

use super::{import, in_file};
use crate::answer::Answer;
use crate::commands::{check_writable, write_bytes, write_file};
use crate::context::Context;
use crate::failure::Failure;
use crate::{output, signals};
use capture::Captured;
pub(crate) use capture::Pace;
use child::{Ended, Waiting};
pub(crate) use target::Who;

/// Record samples of running code and turn them into a call profile of one program
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("who").required(true))]
pub(crate) struct Args {
    /// Record this process: all its threads, and the children that it starts from now on
    #[arg(long, value_name = "PID", group = "who", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Record the processes of this control group: its folder, or its path below the mount
    #[arg(long, value_name = "PATH", group = "who")]
    cgroup: Option<PathBuf>,
    /// Record the processes of this systemd unit
    #[arg(long, value_name = "NAME", group = "who")]
    unit: Option<String>,
    /// Record everything that runs on this machine
    #[arg(long, short, group = "who")]
    all: bool,
    /// Run this command and record it; its output and its exit code stay its own
    #[arg(last = true, value_name = "CMD", group = "who")]
    command: Vec<std::ffi::OsString>,
    /// The program to make a profile of; without it, the one with most samples
    #[arg(long, value_name = "BIN")]
    program: Option<PathBuf>,
    /// Record for so long, at most a year; without it, until the command or process ends, or Ctrl-C
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    seconds: Option<u64>,
    /// Samples a second on each CPU, from 1 to 100000
    #[arg(long, value_name = "HZ", default_value_t = 293, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: u64,
    /// Sample this share of the time, in turns of about a second; mappings are followed all the time
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = import::duty)]
    duty: f64,
    /// What to sample by; without it, the best that this machine has
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Source::ALL.map(Source::word)))]
    event: Option<String>,
    /// Also keep the samples in F, for `perf script -i F` and `planish text import F`
    #[arg(long, value_name = "F")]
    raw: Option<PathBuf>,
    /// Write the profile to F
    #[arg(long, short, value_name = "F", default_value = "profile.planish")]
    output: PathBuf,
    /// Also write the JSON object of --json to F: with a command, stdout is the command's
    #[arg(long, value_name = "F")]
    report: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.root.is_some() {
        return Err(Failure::usage("nothing runs on a recorded host").hint("leave --root out"));
    }
    let runs_command = !args.command.is_empty();
    if runs_command && context.globals.json && args.report.is_none() {
        let failed = Failure::usage("stdout belongs to the command, so the JSON object has no place there");
        return Err(failed.hint("name a file for it: --report F"));
    }
    for path in [Some(&args.output), args.raw.as_ref(), args.report.as_ref()].into_iter().flatten() {
        check_writable(path)?;
    }
    let named = args.program.as_deref().map(super::program).transpose()?;
    let host = Host::live();
    let (rate_hz, rate_note) = rate(args.rate, &host);
    let stop = signals::stop_flag().map_err(Failure::refused)?;
    let who = target::resolve(args, &host)?;
    let wanted: Vec<Source> = match &args.event {
        Some(word) => Source::ALL.into_iter().filter(|source| source.word() == word).collect(),
        None => Source::ALL.to_vec(),
    };
    let sampler = who.open(&wanted, rate_hz, &host).map_err(|error| refusal::failure(error, &who))?;
    let name = host.read("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let mut stream = Stream::new(&sampler.attribute(), &name);
    before::tell(&who, &host, &mut stream);

    // From here on the target is being recorded.
    let pace = Pace { duty: args.duty, limit: args.seconds.map(Duration::from_secs) };
    let (captured, child) = match who {
        Who::Command(waiting) => {
            let (captured, child) = record_command(waiting, args, sampler, stream, pace, &stop)?;
            (captured, Some(child))
        }
        other => (capture::run(sampler, stream, pace, other.end(), &stop).map_err(Failure::refused)?, None),
    };
    let written = write(args, &captured, named);

    // The recording is safe on disk: now the command may take the time that it needs.
    let ended = child.map(|child| child.end(&stop)).transpose()?;
    let (profile, notes) = match (written, &ended) {
        (Ok(written), _) => written,
        (Err(failure), None) => return Err(failure),
        (Err(failure), Some(ended)) => return Ok(without_profile(&failure, ended)),
    };
    let report = report(args, &captured, &profile, rate_hz, ended.as_ref());
    let notes = rate_note.into_iter().chain(notes).collect();
    answer(args, context, report, notes, ended)
}

/// No profile is written, which is told; the exit code stays the command's.
fn without_profile(failure: &Failure, ended: &Ended) -> Answer {
    let failure = failure.message("planish text record ...", "planish text record --help");
    let note = Message::new(Level::Note, format!("the command ended with {}", ended.describe()));
    Answer::printed("text-record").code(ended.code()).message(failure).message(note)
}

/// Starts the command once its events are open, and records it.
fn record_command(
    waiting: Waiting,
    args: &Args,
    sampler: Sampler,
    stream: Stream,
    pace: Pace,
    stop: &std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> Result<(Captured, child::Running), Failure> {
    sampler.set_on(true).map_err(Failure::refused)?;
    let running = waiting.go().map_err(|source| {
        let command = args.command[0].to_string_lossy().into_owned();
        Failure::usage(NotStarted { command, source }).hint("name a program that is there and may be run")
    })?;
    match capture::run(sampler, stream, pace, Some(running.end_fd()), stop) {
        Ok(captured) => Ok((captured, running)),
        Err(error) => {
            // Nobody would be left who waits for it.
            let _ = running.end(stop);
            Err(Failure::refused(error))
        }
    }
}

/// A command that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {command}")]
struct NotStarted {
    command: String,
    source: std::io::Error,
}

/// The rate that this kernel allows, and what to say where it is lower.
fn rate(asked: u64, host: &Host) -> (u64, Option<String>) {
    let setting = "/proc/sys/kernel/perf_event_max_sample_rate";
    let most =
        host.read(setting).ok().and_then(|text| text.trim().parse::<u64>().ok()).filter(|most| *most > 0);
    match most {
        Some(most) if most < asked => {
            (most, Some(format!("{most} samples a second instead of {asked}: {setting} allows no more")))
        }
        _ => (asked, None),
    }
}

/// Writes what was recorded, and the profile made of it.
fn write(
    args: &Args,
    captured: &Captured,
    named: Option<planish_profile::Program>,
) -> Result<(CallProfile, Vec<String>), Failure> {
    let bytes = captured.stream.bytes();
    if let Some(path) = &args.raw {
        write_bytes(path, bytes)?;
    }
    let place = args.raw.as_ref().unwrap_or(&args.output);
    let mut notes = Vec::new();
    let mut program = named;
    if program.is_none() {
        let seen = perf_data::overview(bytes).map_err(|source| in_file(place, source))?;
        let (found, note) = import::most_sampled(&seen).ok_or_else(|| nothing_seen(seen.samples))?;
        program = Some(found);
        notes.push(note);
    }
    let options = ImportOptions {
        format: Some(Format::PerfData),
        program: program.as_ref(),
        ..ImportOptions::default()
    };
    let Imported { mut profile, .. } =
        planish_profile::import(bytes, &options).map_err(|source| in_file(place, source))?;
    profile.window = Some(Window { start: captured.start, end: captured.end });
    profile.duty = captured.duty();
    write_file(&args.output, &file::write(&profile))?;
    Ok((profile, notes))
}

fn nothing_seen(samples: u64) -> Failure {
    let text = format!("no program has samples, of {samples} in all, and is still where it was");
    Failure::new(Exit::Usage, text)
        .hint("record for longer, or at a higher --rate, or name it: --program BIN")
}

fn report(
    args: &Args,
    captured: &Captured,
    profile: &CallProfile,
    rate_hz: u64,
    ended: Option<&Ended>,
) -> TextRecordReport {
    let seconds = captured.elapsed.as_secs_f64();
    TextRecordReport {
        file: args.output.display().to_string(),
        raw: args.raw.as_ref().map(|path| path.display().to_string()),
        source: captured.source.word().to_owned(),
        better: captured
            .refused
            .iter()
            .map(|(source, why)| TextRecordSource { source: source.word().to_owned(), why: why.to_string() })
            .collect(),
        user_only: captured.user_only,
        rate_hz,
        seconds,
        duty: captured.duty(),
        ended: captured.ended.word().to_owned(),
        samples: captured.taken.samples,
        own_samples: captured.taken.own,
        lost: captured.taken.lost,
        recorder_cpu_seconds: captured.own_cpu.as_secs_f64(),
        command_exit: ended.and_then(|ended| ended.status.code()),
        command_signal: ended.and_then(Ended::signal),
        profile: profile.into(),
    }
}

fn answer(
    args: &Args,
    context: &Context,
    report: TextRecordReport,
    notes: Vec<String>,
    ended: Option<Ended>,
) -> Result<Answer, Failure> {
    let catalogue = Catalogue::default();
    let mut answer = context.answer(&report, &catalogue);
    if ended.is_some() {
        // Stdout is the command's: the report is talk.
        answer.body = crate::answer::Body::Text(String::new());
        if !context.globals.quiet && !context.globals.json {
            output::print_talk(&context.text(&report, &catalogue));
        }
    }
    for note in notes {
        answer = answer.note(note);
    }
    if report.lost * 20 > report.samples {
        answer = answer.warning("the kernel dropped more than 5 % of the records: record at a lower --rate");
    }
    if report.ended == capture::End::Full.word() {
        answer = answer
            .warning("the recording was ended because it is full: a lower --rate or --duty goes further");
    }
    if let Some(ended) = &ended {
        if !ended.status.success() {
            answer = answer.warning(format!("the command ended with {}", ended.describe()));
        }
        answer = answer.code(ended.code());
    }
    answer = answer.next(context.line(&format!("text show {}", args.output.display())));
    if let Some(path) = &args.report {
        let mut envelope = Envelope::new(answer.command, answer.exit, Some(&report), answer.messages.clone());
        envelope.exit = answer.code.unwrap_or(envelope.exit);
        let text = serde_json::to_string_pretty(&envelope).expect("an envelope is plain data");
        write_file(path, &format!("{text}\n"))?;
    }
    Ok(answer)
}
