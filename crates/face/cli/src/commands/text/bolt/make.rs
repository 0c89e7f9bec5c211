//! The runs of BOLT: once more without the functions that it fails on, as long as it names new ones.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use planish_model::Exit;
use planish_order::bolt::{Call, SkipList, Skipped, Told, Work, known_failures};

use super::Args;
use super::draft::{Draft, Place};
use super::source::{FDATA, Files, SKIP, Source, TRACES};
use super::subject::Subject;
use super::tool::Tool;
use crate::commands::write_file;
use crate::failure::Failure;
use crate::signals::Forward;

/// Each run may name one function; a program with more of them than this is not one for this version.
const RUNS_MAX: u32 = 12;
/// From this share of functions whose profile is of other code on, it is the profile of another build.
const STALE_MAX: f64 = 0.30;

/// What BOLT says where it takes a name for that of a part (`f.cold`), as those of Rust's modules `cold` and `warmup`
/// look. It says so of functions that it leaves alone, too.
const PARENTLESS: &str = "parent function not found";

/// What is needed for a run.
pub(super) struct Making<'a> {
    args: &'a Args,
    subject: &'a Subject,
    source: &'a Source,
    tool: &'a Tool,
    pub skip: SkipList,
    /// All that BOLT has printed.
    printed: String,
}

/// What the last run made.
pub(super) struct Made {
    pub words: Vec<String>,
    pub runs: u32,
    pub told: Told,
    /// Functions that are laid out, and all.
    pub covered: Option<(u64, u64)>,
}

impl<'a> Making<'a> {
    pub fn new(args: &'a Args, subject: &'a Subject, source: &'a Source, tool: &'a Tool) -> Self {
        let mut skip = SkipList::default();
        for function in &subject.skipped {
            skip.add(*function, Skipped::Asked);
        }
        for (function, why) in known_failures(tool.version, &subject.found) {
            skip.add(function, why);
        }
        Self { args, subject, source, tool, skip, printed: String::new() }
    }

    /// The words of the next run.
    pub fn words(&self, place: &Place) -> Vec<String> {
        let (draft, folder) = place.told();
        self.words_for(&Files::within(&folder, self.source), &draft.display().to_string())
    }

    fn words_for(&self, files: &Files, output: &str) -> Vec<String> {
        let input = self.subject.path.display().to_string();
        let skip = (!self.skip.is_empty() && !self.source.selects()).then_some(files.skip.as_str());
        let work = self.source.work(files);
        let call = Call { input: &input, output, work, skip, more: &self.args.bolt_option };
        call.words(self.tool.version, &self.subject.found)
    }

    /// Runs BOLT until it makes the program, or fails for good.
    pub fn make(&mut self, draft: &Draft, signals: &Forward) -> Result<Made, Failure> {
        let made = self.make_unlogged(draft, signals);
        if let Some(path) = &self.args.log {
            write_file(path, &self.printed)?;
        }
        made
    }

    fn make_unlogged(&mut self, draft: &Draft, signals: &Forward) -> Result<Made, Failure> {
        let files = Files::within(&draft.folder.path(""), self.source);
        self.sum_up(draft, &files, signals)?;
        for run in 1..=RUNS_MAX {
            self.source.write(draft, self.subject, &self.skip)?;
            draft.write(SKIP, self.skip.patterns(&self.subject.program).as_bytes())?;
            let words = self.words_for(&files, &draft.path().display().to_string());
            let (is_done, told) = self.run(draft, &words, signals)?;
            if is_done && draft.is_there() {
                self.refuse_stale(&told)?;
                let all = self.subject.program.functions().len() as u64;
                let ordered = self.source.ordered(&self.skip).map(|ordered| (ordered, all));
                let covered = if self.args.instrument { None } else { ordered.or(told.profiled) };
                let words = words.iter().map(|word| draft.told(word)).collect();
                return Ok(Made { words, runs: run, told, covered });
            }
            draft.clear();
            if !self.leave_alone(&told) {
                return Err(self.failed(&told));
            }
        }
        let why = format!("llvm-bolt failed {RUNS_MAX} times, each time on other functions");
        Err(Failure::new(Exit::FailedRestored, why).hint("try another version: --llvm-bolt PATH"))
    }

    /// Has BOLT make a profile of sums of branch stacks.
    fn sum_up(&mut self, draft: &Draft, files: &Files, signals: &Forward) -> Result<(), Failure> {
        let Some(traces) = self.source.traces() else { return Ok(()) };
        draft.write(TRACES, traces.text().as_bytes())?;
        let input = self.subject.path.display().to_string();
        let work = Work::Aggregate { traces: &files.traces };
        let call = Call { input: &input, output: &files.fdata, work, skip: None, more: &[] };
        let (is_done, told) =
            self.run(draft, &call.words(self.tool.version, &self.subject.found), signals)?;
        if is_done && draft.has(FDATA) { Ok(()) } else { Err(self.failed(&told)) }
    }

    fn run(&mut self, draft: &Draft, words: &[String], signals: &Forward) -> Result<(bool, Told), Failure> {
        let Output { status, stdout, stderr } = self.tool.run(words, signals)?;
        let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let text = draft.told(&text);
        self.printed += &text;
        if signals.is_asked_to_end() {
            let failed = Failure::new(Exit::FailedRestored, "stopped by a signal: nothing was written");
            return Err(failed.hint("planish ..."));
        }
        let mut told = Told::parse(&text);
        if let Some(signal) = status.signal() {
            told.errors.push(format!("ended by signal {signal}"));
        }
        if !status.success() && told.errors.is_empty() {
            // Words of no known form: the last ones are about the end.
            told.errors.extend(text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned));
        }
        Ok((status.success(), told))
    }

    /// Adds the functions that errors have named; tells whether there was any.
    fn leave_alone(&mut self, told: &Told) -> bool {
        let mut is_new = false;
        for (name, error) in told.named.iter().filter(|(_, error)| !error.starts_with(PARENTLESS)) {
            let known = self.subject.program.by_name(name);
            is_new |= known.is_some_and(|known| self.skip.add(known, Skipped::Named(error.clone())));
        }
        is_new
    }

    fn refuse_stale(&self, told: &Told) -> Result<(), Failure> {
        let share = told.stale_share();
        if share <= STALE_MAX {
            return Ok(());
        }
        let why = format!("{:.0} % of the functions have a profile of other code", share * 100.0);
        Err(Failure::refused(why).hint("name the profile of this build, or the build of this profile"))
    }

    fn failed(&self, told: &Told) -> Failure {
        /// Errors of one kind come by the hundred.
        const ERRORS_TOLD: usize = 3;
        let mut errors: Vec<&str> = Vec::new();
        for error in &told.errors {
            if errors.len() < ERRORS_TOLD && !errors.contains(&error.as_str()) {
                errors.push(error);
            }
        }
        let why = format!("llvm-bolt {} failed: {}", self.tool.version, errors.join("; "));
        let failure = Failure::new(Exit::FailedRestored, why);
        if told.errors.iter().any(|error| error.starts_with("library not found")) {
            let major = self.tool.version.major;
            return failure.hint(format!("its libraries are a package of their own: libbolt-{major}-dev"));
        }
        if told.errors.iter().any(|error| error.starts_with(PARENTLESS)) {
            return failure
                .hint("rustc: -Csymbol-mangling-version=v0 (behind a dot, cold and warm are taken for parts)")
                .hint("GCC: -fno-reorder-blocks-and-partition");
        }
        failure
            .hint("all of it: planish ... --log bolt.log")
            .hint("leave functions alone: --skip-funcs NAME,...")
    }
}
