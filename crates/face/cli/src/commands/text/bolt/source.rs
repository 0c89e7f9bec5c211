//! What a profile allows to be laid out: blocks by branches that were counted, functions by anything.

use std::path::{Path, PathBuf};

use planish_order::bolt::{SkipList, Work, selection};
use planish_order::emit::{self, Form};
use planish_order::{Choice, ChooseOptions, Kind, Subject as Ordered, choose};
use planish_profile::perf_data::Traces;
use planish_profile::{CallProfile, Edges, Format, ImportOptions, Weights};
use planish_sys::pages;

use super::draft::Draft;
use super::subject::Subject;
use super::{Args, Layout};
use crate::commands::read_file;
use crate::commands::text::in_file;
use crate::commands::text::order::MATCHED_MIN;
use crate::context::Context;
use crate::failure::Failure;

/// What BOLT will work by.
pub(super) struct Source {
    by: By,
    /// Why it is this one, for a person.
    pub why: String,
}

enum By {
    /// Counters, and the file that they are written to.
    Counters { fdata: PathBuf, every: Option<u32>, each_process: bool },
    /// An order of ours.
    Order { ordered: Box<Ordered>, order: Vec<u32>, kind: Kind },
    /// BOLT's own profile, as it was read.
    Fdata(Vec<u8>),
    /// Branch stacks, summed up.
    Stacks(Traces),
}

impl Source {
    pub fn of(args: &Args, subject: &Subject, context: &Context) -> Result<Self, Failure> {
        let Some(path) = &args.profile else { return Ok(Self::counters(args, subject)) };
        let bytes = read_file(path)?;
        let options = ImportOptions {
            program: Some(&subject.program),
            event: args.event.clone(),
            ..ImportOptions::default()
        };
        let imported = planish_profile::import(&bytes, &options).map_err(|source| in_file(path, source))?;
        let (profile, format) = (imported.profile, imported.format);
        // A call profile has what left each function, and no longer where it went.
        let has_branches =
            matches!(format, Format::Fdata | Format::PerfData) && profile.weights == Weights::Branches;
        let held = held(&profile, format);
        if args.layout == Layout::Blocks && !has_branches {
            let why = format!(
                "{} holds {held}: blocks are laid out by counted branches and by nothing less, since a layout by \
                 samples sets apart as cold what runs",
                path.display()
            );
            return Err(counted(Failure::refused(why), args, context).hint(context.again_without(
                &[],
                &["--layout"],
                "--layout functions",
            )));
        }
        // What names build ids was compared by them. BOLT's own form has names alone, and no others than the program's.
        let share = profile.named() as f64 / profile.total.max(1) as f64;
        if format == Format::Fdata && share < MATCHED_MIN {
            return Err(unmatched(share, args, context));
        }
        if args.layout != Layout::Functions && has_branches {
            if args.algorithm.is_some() {
                let failed = Failure::usage("BOLT orders the functions where it lays out blocks");
                return Err(failed.hint("leave --algorithm out, or add --layout functions"));
            }
            let by = if format == Format::Fdata {
                By::Fdata(bytes)
            } else {
                let event = args.event.as_deref();
                let traces = Traces::read(&bytes, &subject.program, event);
                By::Stacks(traces.map_err(|source| in_file(path, source))?)
            };
            return Ok(Self { by, why: held });
        }
        let ordered = Ordered::new(&profile, &subject.program)
            .map_err(|error| counted(Failure::refused(error), args, context))?;
        if ordered.matched < MATCHED_MIN {
            return Err(unmatched(ordered.matched, args, context));
        }
        let (kind, order) = order(&ordered, args.algorithm.as_deref());
        let why = if has_branches { held } else { format!("{held}, which blocks are not laid out by") };
        Ok(Self { by: By::Order { ordered: Box::new(ordered), order, kind }, why })
    }

    fn counters(args: &Args, subject: &Subject) -> Self {
        let beside = || {
            let output =
                args.output.clone().unwrap_or_else(|| super::draft::beside(&subject.path, "instrumented"));
            super::draft::beside(&output, "fdata")
        };
        let fdata = args.fdata.clone().unwrap_or_else(beside);
        // The program may run in any folder.
        let fdata = std::path::absolute(&fdata).unwrap_or(fdata);
        let by = By::Counters { fdata, every: args.every, each_process: args.each_process };
        Self { by, why: "branches will be counted".to_owned() }
    }

    /// What is done to the program.
    pub fn layout(&self) -> &'static str {
        match self.by {
            By::Counters { .. } => "instrument",
            By::Order { .. } => "functions",
            By::Fdata(_) | By::Stacks(_) => "blocks",
        }
    }

    /// How the functions are ordered, where that is ours to say.
    pub fn order(&self) -> Option<&'static str> {
        if let By::Order { kind, .. } = self.by { Some(kind.word()) } else { None }
    }

    /// Functions that are laid out by an order, those left out that BOLT must not touch.
    pub fn ordered(&self, skip: &SkipList) -> Option<u64> {
        let By::Order { ordered, order, .. } = &self.by else { return None };
        Some(left(ordered, order, skip).count() as u64)
    }

    /// Where counters are written to.
    pub fn fdata(&self) -> Option<String> {
        let By::Counters { fdata, .. } = &self.by else { return None };
        Some(fdata.display().to_string())
    }

    /// The sums that BOLT must make a profile of first.
    pub fn traces(&self) -> Option<&Traces> {
        if let By::Stacks(traces) = &self.by { Some(traces) } else { None }
    }

    /// Whether functions are left alone by leaving them out of a list, since BOLT takes no second list then.
    pub fn selects(&self) -> bool {
        matches!(self.by, By::Order { .. })
    }

    /// Writes the files that BOLT will read.
    pub fn write(&self, draft: &Draft, subject: &Subject, skip: &SkipList) -> Result<(), Failure> {
        match &self.by {
            By::Counters { .. } | By::Stacks(_) => Ok(()),
            By::Fdata(bytes) => draft.write(FDATA, bytes),
            By::Order { ordered, order, .. } => {
                let order: Vec<u32> = left(ordered, order, skip).collect();
                let text = emit::write(Form::Bolt, &order, ordered, &subject.program);
                draft.write(ORDER, text.as_bytes())?;
                let functions = order.iter().map(|index| ordered.functions[*index as usize]);
                draft.write(SELECTED, selection(functions, &subject.program).as_bytes())
            }
        }
    }

    /// What BOLT is asked for, with its files in a folder.
    pub fn work<'a>(&'a self, files: &'a Files) -> Work<'a> {
        match &self.by {
            By::Counters { every, each_process, .. } => {
                Work::Instrument { fdata: &files.counters, seconds: *every, each_process: *each_process }
            }
            By::Order { .. } => Work::Functions { order: &files.order, selected: &files.selected },
            By::Fdata(_) | By::Stacks(_) => Work::Blocks { fdata: &files.fdata },
        }
    }
}

pub(super) const FDATA: &str = "fdata";
pub(super) const TRACES: &str = "traces";
pub(super) const SKIP: &str = "skip";
const ORDER: &str = "order";
const SELECTED: &str = "selected";

/// The files that pass between us and BOLT, as it opens them.
pub(super) struct Files {
    pub fdata: String,
    pub traces: String,
    pub skip: String,
    order: String,
    selected: String,
    counters: String,
}

impl Files {
    pub fn within(folder: &Path, source: &Source) -> Self {
        let file = |name: &str| folder.join(name).display().to_string();
        Self {
            fdata: file(FDATA),
            traces: file(TRACES),
            skip: file(SKIP),
            order: file(ORDER),
            selected: file(SELECTED),
            counters: source.fdata().unwrap_or_default(),
        }
    }
}

fn left<'a>(ordered: &'a Ordered, order: &'a [u32], skip: &'a SkipList) -> impl Iterator<Item = u32> + 'a {
    order.iter().copied().filter(|index| !skip.holds(ordered.functions[*index as usize]))
}

/// What a profile holds, for a person.
fn held(profile: &CallProfile, format: Format) -> String {
    let event = if profile.event.is_empty() { String::new() } else { format!(" of {}", profile.event) };
    match (profile.weights, profile.edges_are) {
        (Weights::Branches, _) if matches!(format, Format::Fdata | Format::PerfData) => {
            "counted branches".to_owned()
        }
        (Weights::Branches, _) => format!("branches by function ({format})"),
        (Weights::Cost, _) => format!("exact costs by function ({format})"),
        (Weights::Samples, Edges::Stacks) => format!("stacks{event}"),
        (Weights::Samples, _) => format!("flat samples{event}"),
    }
}

/// Adds the ways to counted branches.
fn counted(failure: Failure, args: &Args, context: &Context) -> Failure {
    let instrument = format!("text bolt {} --instrument", args.program.display());
    failure
        .hint(format!("count them: {}", context.line(&instrument)))
        .hint("or record them, on a CPU with branch stacks: perf record -e cycles:u -j any,u -- CMD")
}

fn unmatched(share: f64, args: &Args, context: &Context) -> Failure {
    let why = format!("the program has only {:.0} % of the profile's weight", share * 100.0);
    counted(Failure::refused(why), args, context)
}

/// The best order by the simulator, or the one that was asked for. That the program's own order is as good on paper
/// counts for nothing: who asks for a layout wants the hot part together.
fn order(ordered: &Ordered, wanted: Option<&str>) -> (Kind, Vec<u32>) {
    let wanted = Kind::NAMED.into_iter().find(|(word, _)| Some(*word) == wanted).map(|(_, kind)| kind);
    let page_bytes = u64::try_from(pages::base_bytes()).expect("an address is 64 bits");
    let choice: Choice = choose(ordered, None, wanted, &ChooseOptions::on_pages(page_bytes));
    let cycles = |candidate: &&planish_order::Candidate| candidate.misses.cycles();
    let made = choice.candidates.iter().skip(1).min_by(|one, other| cycles(one).total_cmp(&cycles(other)));
    let best = made.filter(|_| wanted != Some(Kind::Current)).unwrap_or_else(|| choice.chosen());
    (best.kind, best.order.clone())
}
