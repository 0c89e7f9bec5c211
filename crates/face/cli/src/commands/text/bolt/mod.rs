//! `planish text bolt`: BOLT as one more rung.
//!
//! Reads top to bottom: look at the program, find out what its profile allows, find an `llvm-bolt`, run it into a
//! draft, look at the draft, give it its name. Until the last step nothing of the user's has changed.

mod checks;
mod draft;
mod make;
mod source;
mod subject;
mod tool;

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use planish_model::Catalogue;
use planish_order::Kind;
use planish_order::bolt::Version;
use planish_report::{TextBoltCheckRow, TextBoltFile, TextBoltReport, TextBoltSkipRow};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::signals::Forward;
use draft::{Draft, Place};
use make::{Made, Making};
use source::Source;
use subject::Subject;
use tool::Tool;

/// Below this share of functions with a profile, most of the program is laid out for a part of its work.
const COVERED_LOW: f64 = 0.05;
const UNFIT: &str = "text huge cannot use it as it was linked: what BOLT has left in place has offsets that do not fit \
                     addresses; the flags are those of: planish text link-flags --huge";
/// Less hot code than this gains nothing by huge pages: any TLB holds it.
const HOT_MIN: u64 = 64 << 10;
/// From this share of functions with a profile of other code on, a person should look.
const STALE_LOW: f64 = 0.05;

/// Lay out a linked program by BOLT: blocks by counted branches, functions by any profile
///
/// Needs llvm-bolt (LLVM 16 or later), and a program that was linked with -Wl,--emit-relocs and is not stripped.
/// Counted branches are in a perf.data of `perf record -b`, and in BOLT's own fdata, which an instrumented program
/// writes on any machine: --instrument makes one. Other profiles order the functions and leave blocks as they are. The
/// new program gets its name when it is whole, is the same from outside, and is loaded by the kernel.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The program or shared library, as it was linked
    #[arg(value_name = "BIN")]
    program: PathBuf,
    /// Lay it out by this profile: fdata of BOLT, perf.data, a call profile, or what `text import` reads
    #[arg(long, value_name = "F", required_unless_present = "instrument")]
    profile: Option<PathBuf>,
    /// Make a program that counts its branches, and tell where it writes them
    #[arg(long, conflicts_with_all = ["profile", "layout", "algorithm", "event"])]
    instrument: bool,
    /// The new program; without it BIN.bolt, or BIN.instrumented
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Give the new program the name of BIN; `planish undo` brings BIN back
    #[arg(long, conflicts_with_all = ["output", "instrument"])]
    replace: bool,
    /// Also replace a file that belongs to a package
    #[arg(long, requires = "replace")]
    packaged: bool,
    /// What to lay out: blocks needs counted branches, and lays out functions too
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    layout: Layout,
    /// Order functions so, where BOLT does not do it; without it, as the simulator finds best
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::NAMED.map(|(word, _)| word)))]
    algorithm: Option<String>,
    /// The event of perf.data to take, where there are several
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Leave these functions alone
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skip_funcs: Vec<String>,
    /// Where the instrumented program writes its profile; without it OUT.fdata
    #[arg(long, value_name = "F", requires = "instrument")]
    fdata: Option<PathBuf>,
    /// It also writes it every so many seconds: for programs that never end, or end by a signal
    #[arg(long, value_name = "SECONDS", requires = "instrument", value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,
    /// Each process writes a file of its own, F.PID; else all count into one
    #[arg(long, requires = "instrument", conflicts_with = "every")]
    each_process: bool,
    /// Run CMD by the shell, once with BIN and once with the new program for {}, and compare the exit codes
    #[arg(long, value_name = "CMD")]
    r#try: Option<String>,
    /// Compare what CMD writes to stdout, too
    #[arg(long, requires = "try")]
    same_output: bool,
    /// The llvm-bolt to run; without it that of PATH, or the newest llvm-bolt-NN
    #[arg(long, value_name = "PATH")]
    llvm_bolt: Option<PathBuf>,
    /// One more word for llvm-bolt, as in --bolt-option=--icf=safe
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    bolt_option: Vec<String>,
    /// Write all that llvm-bolt prints to F
    #[arg(long, value_name = "F")]
    log: Option<PathBuf>,
    /// Tell what would be run, and run nothing but `llvm-bolt --version`
    #[arg(long)]
    dry_run: bool,
}

const AFTER_HELP: &str = "\
On a machine without branch stacks, as most guests are:
  planish text bolt server --instrument          # server.instrumented; run it as server is run, to its end
  planish text bolt server --profile server.instrumented.fdata --try '{} --version' --same-output
What is known to fail, and what is done about it: docs/text-bolt.md";

/// What is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// What the profile allows
    Auto,
    /// Blocks and functions
    Blocks,
    /// Functions alone
    Functions,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.root.is_some() {
        return Err(Failure::usage("nothing runs on a recorded host").hint("leave --root out"));
    }
    let subject = Subject::look(args, context)?;
    let source = Source::of(args, &subject, context)?;
    let place = Place::of(args, &subject, context)?;
    let tool = Tool::find(args.llvm_bolt.as_deref())?.for_static(subject.found.is_static);
    let mut making = Making::new(args, &subject, &source, &tool);
    if args.dry_run {
        place.look(&subject)?;
        let words = making.words(&place);
        let mut report = report(args, &subject, &source, &place, &tool);
        (report.arguments, report.skipped, report.dry_run) = (words, rows(&making, &subject), true);
        let answer = context.answer(&report, &Catalogue::default());
        return Ok(answer.next(context.again_without(&["--dry-run"], &[], "")));
    }
    let signals = Forward::catch().map_err(Failure::refused)?;
    let draft = Draft::beside(&place)?;
    let made = making.make(&draft, &signals)?;
    // After this point the draft is whole, and nothing of the user's has changed.
    let notes = draft.resemble(&place, &subject)?;
    let looked = checks::look(args, &subject, &draft, &signals)?;
    let named = draft.take_name(&place, args, &subject, context)?;

    let mut report = report(args, &subject, &source, &place, &tool);
    (report.entry, report.original) = (named.entry, named.original);
    let is_ready = looked.is_ready;
    tell(&mut report, &made, looked);
    report.skipped = rows(&making, &subject);
    let answer = context.answer(&report, &Catalogue::default());
    let answer = notes.into_iter().chain(subject.notes()).fold(answer, Answer::note);
    let answer = if is_ready || args.instrument { answer } else { answer.note(UNFIT) };
    Ok(advice(args, &report, &tool, is_ready, answer, context))
}

fn rows(making: &Making<'_>, subject: &Subject) -> Vec<TextBoltSkipRow> {
    let row = |(function, why): (&str, &planish_order::bolt::Skipped)| TextBoltSkipRow {
        function: function.to_owned(),
        why: why.to_string(),
    };
    making.skip.rows(&subject.program).map(row).collect()
}

/// The report as far as it is known before anything runs.
fn report(args: &Args, subject: &Subject, source: &Source, place: &Place, tool: &Tool) -> TextBoltReport {
    TextBoltReport {
        program: args.program.display().to_string(),
        output: place.output.display().to_string(),
        layout: source.layout().to_owned(),
        why: source.why.clone(),
        llvm_bolt: tool.path.display().to_string(),
        version: tool.version.to_string(),
        arguments: Vec::new(),
        runs: 0,
        skipped: Vec::new(),
        order: source.order().map(str::to_owned),
        profiled: None,
        functions: None,
        stale: 0,
        taken_before: None,
        taken_after: None,
        hot_start: None,
        hot_end: None,
        before: subject.file(),
        after: None,
        checks: Vec::new(),
        fdata: args.instrument.then(|| source.fdata().unwrap_or_default()),
        original: place.kept_as_typed(),
        entry: None,
        dry_run: false,
    }
}

/// Adds what came of it.
fn tell(report: &mut TextBoltReport, made: &Made, looked: checks::Looked) {
    report.arguments.clone_from(&made.words);
    report.runs = made.runs;
    (report.profiled, report.functions) = made.covered.unzip();
    report.stale = made.told.stale;
    (report.taken_before, report.taken_after) = made.told.taken_branches.unzip();
    if report.fdata.is_none() {
        (report.hot_start, report.hot_end) = looked.hot.map(|hot| (hot.start, hot.end)).unzip();
    }
    let (after, checks): (TextBoltFile, Vec<TextBoltCheckRow>) = (looked.file, looked.rows);
    (report.after, report.checks) = (Some(after), checks);
}

/// What to know of it, and what to type next.
fn advice(
    args: &Args,
    report: &TextBoltReport,
    tool: &Tool,
    is_ready: bool,
    answer: Answer,
    context: &Context,
) -> Answer {
    let mut answer = answer;
    if !Version::TRIED.contains(&tool.version.major) {
        let tried = Version::TRIED.map(|major| major.to_string()).join(", ");
        answer =
            answer.note(format!("planish was tried with llvm-bolt {tried}, and not with {}", tool.version));
    }
    let quoted = |path: &str| planish_model::quoted(path);
    if let Some(fdata) = &report.fdata {
        let when = match args.every {
            Some(seconds) => format!("every {seconds} s, and at its end"),
            None if tool.writes_by_time(args) => "every second: let it run longer".to_owned(),
            None => "at its end; one that never ends, or is killed, needs --every SECONDS".to_owned(),
        };
        answer =
            answer.note(format!("run {} as the program is run: it writes {fdata} {when}", report.output));
        let next = format!("text bolt {} --profile {}", quoted(&report.program), quoted(fdata));
        return answer.next(context.line(&next));
    }
    let covered = report.profiled.zip(report.functions);
    let covered = covered.map_or(1.0, |(profiled, functions)| profiled as f64 / functions.max(1) as f64);
    if covered < COVERED_LOW && report.layout == "blocks" {
        let share = covered * 100.0;
        answer = answer.warning(format!(
            "the profile has {share:.1} % of the functions: programs with less than 2 % became slower, so measure it"
        ));
    }
    if report.stale > 0 {
        let share = report.stale as f64 / (report.profiled.unwrap_or(0) + report.stale).max(1) as f64;
        let text = format!("{} functions have a profile of other code, and stay as they were", report.stale);
        answer = if share > STALE_LOW { answer.warning(text) } else { answer.note(text) };
    }
    if let Some(entry) = report.entry {
        answer = answer.note(format!("planish undo {entry} puts the original back"));
    } else if let Some(original) = &report.original {
        let (original, program) = (quoted(original), quoted(&report.program));
        answer = answer.note(format!("mv {original} {program} puts the original back"));
    }
    let fits = report.after.as_ref().and_then(|after| after.whole_bytes).is_some_and(|bytes| bytes > 0);
    let hot_bytes = report.hot_start.zip(report.hot_end).map_or(0, |(start, end)| end.saturating_sub(start));
    let next = if fits && is_ready && hot_bytes >= HOT_MIN { "huge" } else { "verify" };
    answer.next(context.line(&format!("text {next} {}", quoted(&report.output))))
}
