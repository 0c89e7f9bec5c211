//! `planish text huge`

mod prepare;
mod routes;
mod subject;

use clap::ValueEnum;
use planish_model::{Catalogue, Exit};
use planish_report::{TextCacheRow, TextHugeReport, TextRunnerRow};
use planish_workload::parse_bytes;

use super::pinned::percent;
use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use prepare::Prepare;
use routes::Attempt;
use subject::Subject;

/// Put a program's text on huge pages of the page cache, as the program is
///
/// The routes are tried in their order, and the first one wins by which huge pages are really mapped: warm reads the
/// file anew in huge pieces; copy replaces it by a copy of itself that is written so, and that is aligned, tried before
/// it gets the name, and undone by `planish undo`; collapse asks the kernel. What runs already goes on with what it
/// has, but by collapse.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A program or a shared library, or the process id of a running program
    #[arg(value_name = "BIN|PID")]
    subject: String,
    /// Only by these routes
    #[arg(long, value_name = "ROUTE", value_delimiter = ',')]
    route: Vec<Route>,
    /// Also replace a file that belongs to a package
    #[arg(long)]
    packaged: bool,
    /// Of what can lie on huge pages so much must, in percent, for a route to win
    #[arg(long, value_name = "PERCENT", default_value_t = 90.0, value_parser = percent)]
    least: f64,
    /// Leave files alone that are longer than this
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    max: usize,
    /// Where it is not on huge pages yet, first have the kernel move memory together, for this alone. With =drop-caches
    /// its page cache is emptied before that, everybody's. Neither can be undone, nor has to be
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "compact")]
    prepare: Option<Prepare>,
    /// Look and tell what would be tried; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Why, for the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// A way for text to come to lie on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Route {
    /// Read the file anew in huge pieces: nothing of it changes
    Warm,
    /// Replace the file by a copy that is written in huge pieces
    Copy,
    /// Have the kernel collapse what the page cache has
    Collapse,
}

impl Route {
    const ALL: [Self; 3] = [Self::Warm, Self::Copy, Self::Collapse];

    fn word(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Copy => "copy",
            Self::Collapse => "collapse",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.root.is_some() {
        let failed = Failure::usage("the page cache is that of this machine, and not of a recorded host");
        return Err(failed.hint("leave --root out"));
    }
    let subject = Subject::look(args)?;
    let before = subject.before;
    let runs = |pid: &u32| Some((*pid, subject.on_huge(*pid)?));
    let running: Vec<(u32, u64)> = subject.running.iter().filter_map(runs).collect();
    // Where a loader aligns what its file does not ask for, as file systems do for large libraries, processes show it.
    let has_it = |(_, huge): &(u32, u64)| *huge as f64 >= before.whole_bytes as f64 * args.least / 100.0;
    let ready = subject.remake.image().is_ready(subject.huge_bytes) || running.iter().any(has_it);
    let mut attempt = Attempt::new(&subject, args, context);
    let is_there = ready && before.is_at_least(args.least);
    let how = (args.reason.as_deref(), args.dry_run);
    let prepared = args.prepare.filter(|_| !is_there);
    let prepared =
        prepared.map(|wanted| prepare::prepare(wanted, subject.huge_bytes, how, context)).transpose()?;
    if is_there {
        attempt.told("already", "won", None);
    } else {
        let chosen = if args.route.is_empty() { Route::ALL.to_vec() } else { args.route.clone() };
        for route in chosen {
            attempt.try_route(route)?;
        }
        let is_end = attempt.route.is_none() && !attempt.would_try;
        if let Some(refusal) = attempt.refusal.take().filter(|_| is_end) {
            return Err(refusal);
        }
    }
    let now = |(pid, before): (u32, u64)| {
        let now = subject.on_huge(pid).unwrap_or(before);
        TextRunnerRow { pid, before_bytes: before, now_bytes: now }
    };
    let report = TextHugeReport {
        program: subject.path.clone(),
        page_bytes: subject.huge_bytes,
        before: row(before),
        after: attempt.after.map(row),
        route: attempt.route.map(str::to_owned),
        routes: attempt.rows,
        changes: changes(&subject),
        entry: attempt.entry,
        original: attempt.original,
        running: running.into_iter().map(now).collect(),
        prepared,
        dry_run: args.dry_run,
    };
    Ok(answer(&report, args, attempt.would_try, context))
}

fn answer(report: &TextHugeReport, args: &Args, would_try: bool, context: &Context) -> Answer {
    let answer = context.answer(report, &Catalogue::default());
    let verify = context.line(&format!("text verify {}", report.program));
    if args.dry_run && (would_try || report.route.is_some()) {
        return answer.next(context.again_without(&["--dry-run"], &[], ""));
    }
    let Some(route) = &report.route else {
        return answer.exit(Exit::Findings).next(context.line(&format!("text check {}", report.program)));
    };
    let behind = report.running.iter().filter(|row| row.now_bytes < report.before.whole_bytes).count();
    let mut answer = match report.entry {
        Some(entry) => answer.note(format!("planish undo {entry} puts the original back")),
        None => answer,
    };
    if behind > 0 {
        answer = answer.note(format!("{} what there was: restart to get it", processes(behind)));
    }
    if route != "already" {
        answer =
            answer.note("memory that runs short, and a reboot, take the pages away: docs/text-huge.md, warm");
    }
    answer.next(verify)
}

pub(super) fn row(cached: planish_hugify::Cached) -> TextCacheRow {
    TextCacheRow {
        text_bytes: cached.text_bytes,
        whole_bytes: cached.whole_bytes,
        huge_bytes: cached.huge_bytes,
        cold_bytes: cached.cold_bytes,
    }
}

/// What a copy would have otherwise.
fn changes(subject: &Subject) -> Vec<String> {
    let mut changes = Vec::new();
    if !subject.remake.aligned.is_empty() {
        changes.push(
            "p_align of a huge page for its text, so that it is loaded on a boundary of one".to_owned(),
        );
    }
    if !subject.remake.insertions.is_empty() {
        let kib = subject.remake.added_bytes().div_ceil(1024);
        changes.push(format!(
            "its text {kib} KiB further behind, where offsets fit addresses: no address changes"
        ));
    }
    changes
}

fn processes(count: usize) -> String {
    if count == 1 {
        "the process that runs keeps".to_owned()
    } else {
        format!("{count} processes that run keep")
    }
}
