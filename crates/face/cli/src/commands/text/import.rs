//! `planish text import`

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::builder::PossibleValuesParser;
use planish_model::Catalogue;
use planish_profile::perf_data::Cut;
use planish_profile::{Format, ImportOptions, Program, Window, file, perf_data};
use planish_report::TextImportReport;

use super::in_file;
use crate::answer::Answer;
use crate::commands::{read_file, write_file};
use crate::context::Context;
use crate::failure::Failure;

/// Turn samples of any source into a call profile of one program
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What was recorded: perf.data, perf script, folded stacks, pprof, BOLT fdata, AutoFDO text, callgrind, hfsort
    #[arg(value_name = "FILE")]
    samples: PathBuf,
    /// The program that was sampled; without it, the one that perf.data has most samples of
    #[arg(long, value_name = "BIN")]
    program: Option<PathBuf>,
    /// The format; found by looking without this
    #[arg(long, value_parser = PossibleValuesParser::new(Format::ALL.map(|(word, _)| word)))]
    format: Option<String>,
    /// The event to take, where there are several
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// The host that it was recorded on, where the file does not say
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The share of time that was recorded, where the recorder ran now and then
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = duty)]
    duty: f64,
    /// Take what is there of a perf.data of which a part is missing: profiles of a part are of that part of the run
    #[arg(long)]
    cut: bool,
    /// Write to F instead of stdout
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
}

/// A share as `--duty` takes it.
pub(super) fn duty(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a share is above 0 and at most 1".to_owned())
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let mut bytes = read_file(&args.samples)?;
    let cut = what_is_there(args, &mut bytes)?;
    let named = args.format.as_deref();
    let format = Format::ALL.into_iter().find(|(word, _)| Some(*word) == named).map(|(_, format)| format);
    let (mut program, mut notes) = (None, Vec::new());
    if let Some(path) = &args.program {
        program = Some(super::program(path)?);
    }
    if program.is_none() && format.or_else(|| Format::of(&bytes)) == Some(Format::PerfData) {
        let seen = perf_data::overview(&bytes).map_err(|source| in_file(&args.samples, source))?;
        let (found, note) = most_sampled(&seen).ok_or_else(|| {
            Failure::usage("no program with samples is still where it was").hint("planish ... --program BIN")
        })?;
        program = Some(found);
        notes.push(note);
    }
    let options =
        ImportOptions { format, program: program.as_ref(), event: args.event.clone(), stacks: false };
    let imported =
        planish_profile::import(&bytes, &options).map_err(|source| in_file(&args.samples, source))?;
    let mut profile = imported.profile;
    profile.hosts = args.host.clone().map_or(profile.hosts, |host| vec![host]);
    profile.window = profile.window.or_else(|| window(&args.samples, imported.span_ns));
    profile.duty *= args.duty;
    let text = file::write(&profile);
    if let Some(path) = &args.output {
        write_file(path, &text)?;
    }
    let report = TextImportReport {
        format: imported.format.to_string(),
        file: args.output.as_ref().map(|path| path.display().to_string()),
        profile: (&profile).into(),
        lost: imported.lost,
        text: args.output.is_none().then_some(text),
    };
    let mut answer = context.answer(&report, &Catalogue::default());
    if let Some(cut) = cut {
        answer = answer.warning(format!(
            "{}: {cut}: the profile is of what is there, without build ids and names of events that stood behind it",
            args.samples.display()
        ));
    }
    for note in notes {
        answer = answer.note(note);
    }
    if imported.lost * 20 > profile.total {
        answer = answer.warning("the recorder lost more than 5 % of the samples: record at a lower rate");
    }
    if program.is_none() {
        answer = answer.note("sizes are unknown without --program: orders by density need them");
    }
    Ok(match &args.output {
        Some(path) => answer.next(context.line(&format!("text show {}", path.display()))),
        None => answer.next(context.again("-o profile.planish")),
    })
}

/// Leaves the whole records of a recording that is cut, where that was asked for. Also where the recorder was killed:
/// nothing that it wrote is missing then.
fn what_is_there(args: &Args, bytes: &mut Vec<u8>) -> Result<Option<Cut>, Failure> {
    let cut = perf_data::cut(bytes).filter(|cut| args.cut || matches!(cut, Cut::Killed { .. }));
    if cut.is_some() {
        perf_data::without_rest(bytes).map_err(|source| in_file(&args.samples, source))?;
    }
    Ok(cut)
}

/// The file with most samples that can be read and is the build that was sampled.
pub(super) fn most_sampled(seen: &perf_data::Overview) -> Option<(Program, String)> {
    seen.objects.iter().find_map(|(object, samples)| {
        let program = super::program(Path::new(&object.path)).ok()?;
        let other_build = object.build_id.is_some() && object.build_id != program.build_id;
        let note = format!("{}: {samples} of {} samples are in it", object.path, seen.samples);
        (!other_build).then_some((program, note))
    })
}

/// A recording ends when its file was last written.
fn window(path: &Path, span_ns: u64) -> Option<Window> {
    let written = std::fs::metadata(path).ok()?.modified().ok()?;
    let end = written.duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(Window { start: end.saturating_sub(span_ns / 1_000_000_000), end })
}
