//! `planish top --c2c`: samples of memory accesses, taken here or read from a recording.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use planish_host::Host;
use planish_model::Catalogue;
use planish_profile::perf_data::{Cut, ObjectFile, Stream, contention};
use planish_profile::{Program, names, perf_data};
use planish_report::C2cReport;
use planish_sys::sampling::{SamplingError, Source};

use super::Args;
use crate::answer::Answer;
use crate::commands::text::record::{Pace, Who, before, capture, refusal};
use crate::commands::{check_writable, is_there, write_bytes};
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// Samples a second on each CPU. What a load costs is not changed by who looks at one of some thousands.
const RATE_HZ: u64 = 4000;
/// How long, where nobody says.
const SECONDS: u64 = 10;

pub(super) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.root.is_some() {
        return Err(Failure::usage("nothing runs on a recorded host").hint("leave --root or --c2c out"));
    }
    if let Some(path) = &args.replay {
        let mut bytes = planish_sys::file::read(path).map_err(|source| unreadable(path, source))?;
        // Nothing that its recorder wrote is missing.
        let killed = perf_data::cut(&bytes).filter(|cut| matches!(cut, Cut::Killed { .. }));
        if killed.is_some() {
            perf_data::without_rest(&mut bytes)
                .map_err(|source| crate::commands::text::in_file(path, source))?;
        }
        let answer = answer(&bytes, None, path, context)?;
        let warning = killed.map(|cut| format!("{}: {cut}: what is there is told", path.display()));
        return Ok(warning.into_iter().fold(answer, Answer::warning));
    }
    if let Some(path) = &args.record {
        if path.exists() {
            return Err(is_there(path));
        }
        check_writable(path)?;
    }
    let host = Host::live();
    let stop = signals::stop_flag().map_err(Failure::refused)?;
    let who = Who::Host;
    let most = host.read("/proc/sys/kernel/perf_event_max_sample_rate").ok();
    let most = most.and_then(|text| text.trim().parse::<u64>().ok()).filter(|most| *most > 0);
    let rate_hz = most.map_or(RATE_HZ, |most| most.min(RATE_HZ));
    let sampler = who.open(&[Source::Accesses], rate_hz, &host).map_err(|error| refused(error, &who))?;
    let name = host.read("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let mut stream = Stream::new(&sampler.attribute(), &name);
    before::tell(&who, &host, &mut stream);
    let pace = Pace { duty: 1.0, limit: Some(Duration::from_secs(args.seconds.unwrap_or(SECONDS))) };
    let captured = capture::run(sampler, stream, pace, None, &stop).map_err(Failure::refused)?;
    if let Some(path) = &args.record {
        write_bytes(path, captured.stream.bytes())?;
    }
    let seconds = captured.elapsed.as_secs_f64();
    answer(captured.stream.bytes(), Some(seconds), Path::new("what was sampled"), context)
}

/// Why nothing can be sampled here, and what can be done all the same.
fn refused(error: SamplingError, who: &Who) -> Failure {
    match error {
        SamplingError::Refused(reasons) if !reasons.iter().any(|(_, why)| refusal::is_of_rights(why)) => {
            let why = reasons.first().map_or_else(String::new, |(_, why)| format!(": {why}"));
            Failure::refused(format!("accesses to memory cannot be sampled{why}")).hint(
                "on the bare machine: perf c2c record -o F -- sleep 10; and here: planish top --c2c --replay F",
            )
        }
        error => refusal::failure(error, who),
    }
}

fn answer(bytes: &[u8], seconds: Option<f64>, place: &Path, context: &Context) -> Result<Answer, Failure> {
    let mut symbols = Symbols::default();
    let told = contention(bytes, &mut |file, offset| symbols.name(file, offset))
        .map_err(|source| crate::commands::text::in_file(place, source))?;
    let answer = context.answer(&C2cReport::of(told, seconds), &Catalogue::default());
    Ok(answer.next(context.line("top")))
}

fn unreadable(path: &Path, source: std::io::Error) -> Failure {
    Failure::usage(Unreadable { path: path.to_owned(), source })
        .hint("name a file of perf c2c record, perf mem record, or planish top --c2c --record")
}

/// A recording that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
struct Unreadable {
    path: std::path::PathBuf,
    source: std::io::Error,
}

/// Programs that were sampled, as far as they are still what they were.
#[derive(Default)]
struct Symbols {
    programs: HashMap<ObjectFile, Option<Program>>,
}

impl Symbols {
    fn name(&mut self, file: &ObjectFile, offset: u64) -> Option<String> {
        let program = self.programs.entry(file.clone()).or_insert_with(|| {
            let program = crate::commands::text::program(Path::new(&file.path)).ok()?;
            let is_other = file.build_id.is_some() && file.build_id != program.build_id;
            (!is_other).then_some(program)
        });
        let program = program.as_ref()?;
        let (function, _) = program.at(program.address_of(offset)?)?;
        Some(names::readable(&program.functions()[function as usize].name))
    }
}
