//! `planish text verify`

use std::ops::Range;
use std::path::{Path, PathBuf};

use planish_hugify::{Image, Probe, coverage};
use planish_model::{Catalogue, Exit};
use planish_pipeline::kept_original;
use planish_profile::{CallProfile, Program, hot_pages, marked_range, share_where};
use planish_report::{TextCacheRow, TextProcessRow, TextVerifyReport};
use planish_residency::Process;
use planish_sys::pagemap::{Filled, Pagemap};
use planish_sys::pages;

use super::in_file;
use super::pinned::percent;
use crate::answer::Answer;
use crate::commands::read_file;
use crate::context::Context;
use crate::failure::Failure;

/// Of the hot bytes of a process so much must lie on huge pages, in percent, where nobody says otherwise.
const HUGE: f64 = 90.0;
/// Of the samples so much must lie inside of the hot range, likewise.
const INSIDE: f64 = 90.0;
/// Orders of other build rules leave no marks, and neither does `-s`: it says nothing of the layout.
const UNMARKED: &str = "where the hot range of the program lies is not known (no __hot_start and __hot_end)";

/// Verify a layout: samples inside of the hot range, pages that hold them, and what lies on huge pages
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A program, or the process id of a running one
    #[arg(value_name = "BIN|PID")]
    subject: String,
    /// A call profile of it
    #[arg(long, value_name = "F")]
    profile: Option<PathBuf>,
    /// Samples that must lie inside of the hot range, in percent: 90 without it where that range is marked
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    inside: Option<f64>,
    /// Hot bytes that must lie on huge pages, in percent: of a process 90 without it, of a file not asked. Where no hot
    /// range is marked, of all that can
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    huge: Option<f64>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let pid: Option<u32> = args.subject.parse().ok();
    let path =
        pid.map_or_else(|| PathBuf::from(&args.subject), |pid| PathBuf::from(format!("/proc/{pid}/exe")));
    // First what was cached: all of the file is read for its symbols, and is in the page cache afterwards.
    let (cache, original) = (cached(&path), original(&path, context));
    let bytes = read_file(&path)?;
    let program = Program::parse(&args.subject, &bytes).map_err(|source| in_file(&path, source))?;
    let range = marked_range(&program, &bytes).map_err(|source| in_file(&path, source))?;
    let profile = args.profile.as_deref().map(|path| super::profile(path, Some(&program))).transpose()?;
    let process = pid
        .map(|pid| process(pid, (&path, &bytes), &program, range.clone(), profile.as_ref(), context))
        .transpose()?;
    let sizes = [Some(pages::base_bytes()), pages::thp_bytes()].into_iter().flatten();
    let sizes = sizes.map(|bytes| u64::try_from(bytes).expect("an address is 64 bits at most"));
    let counted = profile.iter().flat_map(|profile| {
        let program = &program;
        sizes.clone().map(move |bytes| hot_pages(profile, program, bytes).into())
    });
    let inside = range
        .as_ref()
        .zip(profile.as_ref())
        .and_then(|(range, profile)| share_where(profile, &program, |address| range.contains(&address)));
    let mut report = TextVerifyReport {
        program: args.subject.clone(),
        hot_start: range.as_ref().map(|range| range.start),
        hot_end: range.map(|range| range.end),
        inside,
        pages: counted.collect(),
        process,
        cache,
        original,
        short: Vec::new(),
    };
    report.short = short(&report, args);
    let answer = context.answer(&report, &Catalogue::default());
    let unmarked = report.hot_start.is_none() && args.inside.is_none();
    let answer = if unmarked { answer.note(format!("{UNMARKED}: nothing is asked of it")) } else { answer };
    let answer = report.short.iter().fold(answer, |answer, what| answer.warning(what.as_str()));
    Ok(match (report.short.is_empty(), &args.profile) {
        (false, _) => {
            answer.exit(Exit::Findings).next(context.line(&format!("text check {}", path.display())))
        }
        (true, Some(_)) => answer,
        (true, None) => answer.next(context.again("--profile F")),
    })
}

/// What is less than was asked for.
fn short(report: &TextVerifyReport, args: &Args) -> Vec<String> {
    let mut short = Vec::new();
    if report.hot_start.is_none() && args.inside.is_some() {
        short.push(format!("{UNMARKED}: link it by planish text cc, which marks it"));
    }
    let mut below = |what: &str, share: Option<f64>, wanted: f64| {
        if let Some(share) = share.filter(|share| share * 100.0 < wanted) {
            short.push(format!("{:.1} % of {what}, {wanted} % were asked for", share * 100.0));
        }
    };
    below("the samples lie inside of the hot range", report.inside, args.inside.unwrap_or(INSIDE));
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    if let Some(process) = &report.process {
        let hot = process.hot_huge_bytes.zip(process.hot_bytes).map(|(huge, hot)| share(huge, hot));
        let all = share(process.huge_bytes, process.whole_bytes);
        let what = if hot.is_some() {
            "the hot bytes are on huge pages"
        } else {
            "the text that can lie on huge pages does"
        };
        below(what, hot.or(Some(all)), args.huge.unwrap_or(HUGE));
    } else if let Some((cache, wanted)) = report.cache.as_ref().zip(args.huge) {
        let what = "the text that can lie on huge pages is cached so";
        below(what, Some(share(cache.huge_bytes, cache.whole_bytes)), wanted);
    }
    short
}

/// What the page cache has of a file, which is what a process gets that starts now. Headers alone are read for it.
pub(super) fn cached(path: &Path) -> Option<TextCacheRow> {
    // Who writes into a pipe would lose its reader by a look.
    if !path.is_file() {
        return None;
    }
    let huge_bytes = pages::thp_bytes()? as u64;
    let probe = Probe::look(path, huge_bytes).ok()?;
    probe.cached().ok().map(super::huge::row)
}

/// The same of the original that a copy of ours has the name of.
fn original(path: &Path, context: &Context) -> Option<TextCacheRow> {
    let session = context.session().ok()?;
    let path = std::fs::canonicalize(path).ok()?;
    let (_, original) = kept_original(&session, path.to_str()?).ok()??;
    cached(Path::new(&original))
}

/// Reads the page tables of a process for the code of its program.
fn process(
    pid: u32,
    (path, bytes): (&Path, &[u8]),
    program: &Program,
    range: Option<Range<u64>>,
    profile: Option<&CallProfile>,
    context: &Context,
) -> Result<TextProcessRow, Failure> {
    let host = context.host()?;
    let seen = Process::read(&host, pid).map_err(Failure::refused)?;
    let name = std::fs::read_link(path).unwrap_or_default().to_string_lossy().into_owned();
    let name = name.trim_end_matches(" (deleted)");
    let no_code = || Failure::usage(format!("process {pid} maps no code of its program"));
    let image = Image::parse(bytes).map_err(Failure::refused)?;
    let huge_bytes = pages::thp_bytes().unwrap_or(pages::base_bytes()) as u64;
    let covered = coverage(&host, pid, name, &image, huge_bytes).map_err(Failure::refused)?;
    let covered = covered.ok_or_else(no_code)?;
    let base = covered.base;
    // What was put over a part of the text, as by hugify_self, is a mapping of another name, or of none.
    let is_code = |area: &planish_residency::Area| {
        let touches = |segment: &planish_hugify::Segment| {
            let start = base.wrapping_add(segment.address);
            area.range.start < start.saturating_add(segment.file_bytes) && start < area.range.end
        };
        area.permissions[2] == b'x' && image.text().any(touches)
    };
    let areas: Vec<_> = seen.regions.iter().map(|region| &region.area).filter(|area| is_code(area)).collect();
    let raw = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let mut pagemap = Pagemap::open(raw).map_err(Failure::refused)?;
    let huge = huge_runs(&mut pagemap, &areas, base)?;
    let within = |huge: &[Range<u64>], range: &Range<u64>| -> u64 {
        let both = |huge: &Range<u64>| huge.end.min(range.end).saturating_sub(huge.start.max(range.start));
        huge.iter().map(both).sum()
    };
    // Without the runs it is known of each mapping how much of it is huge, and not where.
    let on_pages =
        huge.as_ref().map_or(covered.huge_bytes, |huge| huge.iter().map(|run| run.end - run.start).sum());
    let hot_huge_bytes = huge.as_deref().zip(range.as_ref()).map(|(huge, range)| within(huge, range));
    let weighed = huge.as_ref().zip(profile).and_then(|(huge, profile)| {
        share_where(profile, program, |address| huge.iter().any(|run| run.contains(&address)))
    });
    Ok(TextProcessRow {
        pid,
        text_bytes: areas.iter().map(|area| area.bytes()).sum(),
        whole_bytes: covered.whole_bytes,
        huge_bytes: on_pages,
        hot_bytes: range.map(|range| range.end - range.start),
        hot_huge_bytes,
        weight_huge: weighed,
        wasted_bytes: hot_huge_bytes.map(|hot| on_pages - hot),
    })
}

/// Which addresses of the file, of these mappings of it, huge entries map. `None` before Linux 6.7, which tells no
/// place.
fn huge_runs(
    pagemap: &mut Pagemap,
    areas: &[&planish_residency::Area],
    base: u64,
) -> Result<Option<Vec<Range<u64>>>, Failure> {
    let mut runs = Vec::new();
    for area in areas {
        match pagemap.scan(area.range.clone(), &mut runs) {
            Err(planish_sys::Error::Missing { .. }) => return Ok(None),
            scanned => scanned.map_err(Failure::refused)?,
        }
    }
    let huge = runs.into_iter().filter(|run| run.filled == Filled::Huge);
    Ok(Some(huge.map(|run| run.range.start.wrapping_sub(base)..run.range.end.wrapping_sub(base)).collect()))
}
