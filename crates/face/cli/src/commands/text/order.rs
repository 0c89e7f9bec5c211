//! `planish text order`

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use planish_model::Catalogue;
use planish_order::emit::{self, Form};
use planish_order::{ChooseOptions, Kind, Subject, choose};
use planish_profile::{CallProfile, Program};
use planish_report::{TextAutoFdo, TextOrderReport};
use planish_sys::pages;

use crate::answer::Answer;
use crate::commands::{read_file, write_file};
use crate::context::Context;
use crate::failure::Failure;

/// Below this share of matched weight the profile is of another program, or too old.
pub(super) const MATCHED_MIN: f64 = 0.70;
/// Below this share a person should look.
const MATCHED_LOW: f64 = 0.95;
/// Fewer samples than this name the hottest functions and little else.
pub(super) const SAMPLES_LOW: u64 = 10_000;
/// From this share on, calls through linkage tables are worth another flag.
const LINKAGE_HIGH: f64 = 0.05;

/// What has clang keep the lines that a profile for AutoFDO is of.
const LINES: &str = "-gline-tables-only -fdebug-info-for-profiling";

/// Order a program's functions by what runs: tries every order, keeps the best that is worth a change
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program, or shared library, as it is linked now
    #[arg(value_name = "BIN")]
    program: PathBuf,
    /// A call profile of it, of this build or an earlier one
    #[arg(long, value_name = "F")]
    profile: PathBuf,
    /// The order that it was linked by last, one symbol a line: near ties keep it
    #[arg(long, value_name = "F")]
    previous: Option<PathBuf>,
    /// Take this order and no other
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::NAMED.map(|(word, _)| word)))]
    algorithm: Option<String>,
    /// What to write: for lld and rustc symbols or call-graph, for gold and GNU ld sections, for BOLT functions
    #[arg(long, default_value = "symbols", value_parser = PossibleValuesParser::new(Form::ALL.map(|(word, _)| word)))]
    form: String,
    /// An order must save this much of the cycles of fetching to replace the one that is there, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    margin: f64,
    /// Write to F instead of stdout
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
    /// Also write the samples by source line to F: clang's -fprofile-sample-use=F compiles by it
    #[arg(long, value_name = "F")]
    autofdo: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let program = super::program(&args.program)?;
    let profile = super::profile(&args.profile, Some(&program))?;
    let again = format!("text import FILE --program {}", args.program.display());
    let subject = Subject::new(&profile, &program)
        .map_err(|error| Failure::refused(error).hint(context.line(&again)))?;
    if subject.matched < MATCHED_MIN {
        let share = subject.matched * 100.0;
        let error = format!("the program has only {share:.0} % of the profile's weight");
        return Err(Failure::refused(error).hint(context.line(&again)));
    }
    let previous = args.previous.as_deref().map(read_file).transpose()?;
    let previous = previous.map(|bytes| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        subject.previous(text.lines().map(str::trim).filter(|line| !line.is_empty()), &program)
    });
    let page_bytes = u64::try_from(pages::base_bytes()).expect("an address is 64 bits");
    let options = ChooseOptions { margin: args.margin / 100.0, ..ChooseOptions::on_pages(page_bytes) };
    let wanted = args.algorithm.as_deref();
    let wanted = Kind::NAMED.into_iter().find(|(word, _)| Some(*word) == wanted).map(|(_, kind)| kind);
    let choice = choose(&subject, previous, wanted, &options);
    let order = &choice.chosen().order;
    let form = Form::ALL.into_iter().find(|(word, _)| *word == args.form).expect("clap lets in no other").1;
    let text = emit::write(form, order, &subject, &program);
    let autofdo = args.autofdo.as_deref().map(|path| autofdo(path, args, &profile, &subject, &program));
    let autofdo = autofdo.transpose()?;
    if let Some(path) = &args.output {
        write_file(path, &text)?;
    }
    let mut report = TextOrderReport::new(&program.name, &subject, &choice, page_bytes);
    report.form.clone_from(&args.form);
    report.file = args.output.as_ref().map(|path| path.display().to_string());
    report.text = args.output.is_none().then_some(text);
    if let Some((start, end)) = emit::hot_range(order, &subject, &program) {
        (report.hot_start, report.hot_end) = (Some(start.to_owned()), Some(end.to_owned()));
    }
    let lines_low = autofdo.as_ref().is_some_and(|autofdo| autofdo.placed < MATCHED_LOW);
    report.autofdo = autofdo;
    let mut answer = context.answer(&report, &Catalogue::default());
    if lines_low {
        answer = answer.warning(format!("not all samples have a line: compile with {LINES}"));
    }
    if subject.matched < MATCHED_LOW {
        answer =
            answer.warning("the profile is getting old: less than 95 % of its weight is in this program");
    }
    if profile.total < SAMPLES_LOW {
        answer = answer.warning(few_samples(profile.total));
    }
    if subject.linkage > LINKAGE_HIGH {
        let share = subject.linkage * 100.0;
        answer =
            answer.note(format!("{share:.0} % of the calls go through linkage tables: link with -fno-plt"));
    }
    if report.near_tie {
        answer = answer.note("the best order is a near tie with the one that is there, which is kept");
    }
    Ok(match &args.output {
        Some(path) => answer.next(format!("cc ... -ffunction-sections {}", flag(form, path))),
        None => answer.next(context.again("-o order.txt")),
    })
}

/// Writes the profile for AutoFDO; an empty one would have a compiler take all code for cold.
fn autofdo(
    path: &Path,
    args: &Args,
    profile: &CallProfile,
    subject: &Subject,
    program: &Program,
) -> Result<TextAutoFdo, Failure> {
    let made = emit::autofdo(profile, subject, program, &read_file(&args.program)?)
        .map_err(|source| super::in_file(&args.program, source))?;
    if subject.hits.iter().all(Vec::is_empty) {
        let error = "the profile has no addresses of this build, so that no line of it is known";
        return Err(Failure::refused(error).hint("planish text record, or text import of perf.data"));
    }
    if made.functions == 0 {
        let error = "the program does not tell from which lines its code is";
        return Err(Failure::refused(error).hint(format!("cc ... {LINES}")));
    }
    write_file(path, &made.text)?;
    Ok(TextAutoFdo { file: path.display().to_string(), functions: made.functions, placed: made.placed })
}

/// What to say of fewer than [`SAMPLES_LOW`].
pub(super) fn few_samples(total: u64) -> String {
    format!("{total} samples are few: record 10000 or more")
}

/// What a compiler's command line takes to use the file.
fn flag(form: Form, path: &Path) -> String {
    let path = path.display();
    match form {
        Form::Symbols => format!("-fuse-ld=lld -Wl,--symbol-ordering-file={path}"),
        Form::CallGraph => format!("-fuse-ld=lld -Wl,--call-graph-ordering-file={path}"),
        Form::Gold => format!("-fuse-ld=gold -Wl,--section-ordering-file={path}"),
        Form::GnuLd => format!("-Wl,--section-ordering-file={path}"),
        Form::LinkerScript => format!("with {path} included first in .text of the linker script"),
        Form::Bolt => format!("-Wl,-q; llvm-bolt --reorder-functions=user --function-order={path}"),
    }
}
