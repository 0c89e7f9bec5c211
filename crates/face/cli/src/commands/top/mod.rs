//! `planish top`

mod c2c;
mod keys;
mod live;
mod recording;
mod screen;
mod terminal;
mod view;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anstream::AutoStream;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use planish_model::Catalogue;
use planish_report::{TopReport, TopSort, units};
use planish_residency::top::{Budget, Reader, Sample};
use planish_residency::{Who, members, shown_as};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use recording::{Recorder, Recording};
pub(crate) use terminal::restore as restore_terminal;

/// Show processes live: page tables, huge pages, memory remote to its threads; and the nodes
///
/// On a terminal it is a screen: ? lists its keys, enter makes the map of a process, q ends it. Elsewhere it is one
/// table, and with --record samples until a signal ends it. It reads /proc and /sys alone and writes nothing of the
/// host. What walks page tables is spread over steps: docs/top.md says what each column means and costs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one table and end
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// Print N tables, one below the other, and end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECS", default_value = "2", value_parser = interval)]
    interval: Duration,
    /// What comes first: the process with most of it
    #[arg(long, value_name = "COLUMN", default_value = "resident", value_parser = sort())]
    sort: TopSort,
    /// Show only programs whose name holds this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// Also write each sample into this new file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Play a file of --record instead of looking at this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "count", "interval"])]
    replay: Option<PathBuf>,
    /// Show instead cache lines that CPUs take from each other, by samples of memory accesses (Intel PEBS, AMD IBS);
    /// with --replay those of a file of perf c2c record, with --record they are kept for that
    #[arg(long, conflicts_with_all = ["once", "count", "interval", "sort", "filter"])]
    c2c: bool,
    /// Sample for so long, at most an hour, with --c2c [default: 10]
    #[arg(long, value_name = "SECS", conflicts_with = "replay",
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
}

impl Args {
    pub fn name(&self) -> &'static str {
        if self.c2c { "top-c2c" } else { "top" }
    }
}

/// Rows of a printed table whose nodes are asked for.
const SHOWN: usize = 40;

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if args.c2c {
        return c2c::run(args, context);
    }
    if args.seconds.is_some() {
        let told = "--seconds is how long --c2c samples, and nothing here takes samples";
        return Err(Failure::usage(told).hint("with --once rates are over --interval: planish top --once"));
    }
    let recorded_host = context.globals.root.is_some();
    let printed = args.once || args.count.is_some() || context.globals.json || recorded_host;
    let on_screen = !printed && terminal::is_one();
    if let Some(path) = &args.replay {
        if recorded_host {
            return Err(
                Failure::usage("a recording is of no recorded host").hint("leave --root or --replay out")
            );
        }
        let recording = Recording::open(path)?;
        return if on_screen {
            live::replay(args, context, recording)
        } else {
            last(args, context, recording)
        };
    }
    let recorder = args.record.as_deref().map(Recorder::create).transpose()?;
    if on_screen {
        return live::watch(args, context, recorder);
    }
    match recorder {
        recorder if recorded_host => one(args, context, recorder),
        Some(recorder) if !printed => live::record(args, context, recorder),
        recorder => tables(args, context, recorder),
    }
}

/// What may be read for a table in this order: where it is that of nodes, all are asked for theirs, in turn. Those that
/// come first are not known before.
fn budget(sort: TopSort, budget: Budget) -> Budget {
    Budget { places_of_all: sort == TopSort::Remote, ..budget }
}

/// A recorded host, which has one moment.
fn one(args: &Args, context: &Context, recorder: Option<Recorder>) -> Result<Answer, Failure> {
    let host = context.host()?;
    let mut reader = Reader::default();
    let all = reader.step(&host, &[], budget(args.sort, Budget::ONCE));
    let shown = shown(&TopReport::of(&all, None, args.sort, &args.filter));
    let sample = reader.step(&host, &shown, budget(args.sort, Budget::ONCE));
    recorder.map_or(Ok(()), |mut recorder| recorder.add(&sample))?;
    Ok(ended(args, context, &sample, None))
}

/// This machine: a first look, and one for each table.
fn tables(args: &Args, context: &Context, mut recorder: Option<Recorder>) -> Result<Answer, Failure> {
    let count = args.count.unwrap_or(1);
    let mut reader = Reader::default();
    let mut take = |shown: &[u32]| -> Result<Sample, Failure> {
        // A host of its own for each: it remembers the path of every process that ever was.
        let budget = budget(args.sort, if count == 1 { Budget::ONCE } else { Budget::STEP });
        let sample = reader.step(&context.host()?, shown, budget);
        recorder.as_mut().map_or(Ok(()), |recorder| recorder.add(&sample))?;
        Ok(sample)
    };
    let mut before = take(&[])?;
    for number in 1.. {
        std::thread::sleep(args.interval);
        let shown = shown(&TopReport::of(&before, None, args.sort, &args.filter));
        let sample = take(&shown)?;
        if number == count {
            return Ok(ended(args, context, &sample, Some(&before)));
        }
        if !context.globals.json {
            let report = TopReport::of(&sample, Some(&before), args.sort, &args.filter);
            let moment = sample.unix_seconds.map(units::moment).unwrap_or_default();
            let text = format!("{moment}\n{}\n", context.text(&report, &Catalogue::default()));
            let mut stdout = AutoStream::auto(io::stdout());
            if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                // A reader that has seen enough.
                break;
            }
        }
        before = sample;
    }
    Ok(Answer::printed("top"))
}

/// The last sample of a recording.
fn last(args: &Args, context: &Context, mut recording: Recording) -> Result<Answer, Failure> {
    let (end, sample) = recording.nearest(recording.len() - 1, true)?;
    let before = end.checked_sub(1).and_then(|index| recording.at_or_before(index));
    let answer = ended(args, context, &sample, before.as_ref().map(|(_, before)| before));
    recording.look_at_all();
    Ok(told_damage(answer, &recording))
}

/// What of a recording could not be shown.
fn told_damage(answer: Answer, recording: &Recording) -> Answer {
    let answer = match recording.stepped_over() {
        Some(told) => answer.warning(told),
        None => answer,
    };
    match recording.torn_bytes {
        0 => answer,
        _ => answer.warning("the recording ends in the middle of a sample, which is left out"),
    }
}

fn shown(report: &TopReport) -> Vec<u32> {
    report.rows.iter().take(SHOWN).map(|row| row.pid).collect()
}

fn ended(args: &Args, context: &Context, sample: &Sample, before: Option<&Sample>) -> Answer {
    let report = TopReport::of(sample, before, args.sort, &args.filter);
    let answer = context.answer(&report, &Catalogue::default());
    let next = match &args.record {
        Some(path) => format!("top --replay {}", planish_model::quoted(&path.to_string_lossy())),
        None => {
            let first = mappable(&report, context).filter(|_| args.replay.is_none());
            first.map_or_else(|| "doctor".to_owned(), |pid| format!("map {pid}"))
        }
    };
    answer.next(context.line(&next))
}

/// The first process of a table that this user can have a map of: not one of others, nor one that started this command.
/// Who may follow the link to its program may see its memory (ptrace(2): both are reads of the same class).
fn mappable(report: &TopReport, context: &Context) -> Option<u32> {
    let host = context.host().ok()?;
    let can_be = |pid: &u32| {
        let is_seen = || host.read_link(&format!("/proc/{}/exe", shown_as(&host, *pid))).is_some();
        !host.is_live() || (members(&host, &Who::Pid(*pid), false).is_ok() && is_seen())
    };
    shown(report).into_iter().find(can_be)
}

/// From a tenth of a second: each look reads a file of every process.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("not from 0.1 to 3600 seconds".to_owned())
    }
}

fn sort() -> impl TypedValueParser<Value = TopSort> {
    PossibleValuesParser::new(TopSort::ALL.map(TopSort::word)).map(|word| {
        let known = TopSort::ALL.into_iter().find(|sort| sort.word() == word);
        known.expect("clap takes no other word")
    })
}

#[cfg(test)]
mod tests;
