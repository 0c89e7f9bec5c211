//! What `prove` and `trial` share: how they run, how they are stopped, and what follows from an outcome.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planish_model::{Catalogue, Exit, quoted};
use planish_report::{Level, Message, Report, trial_html, units};
use planish_trial::{
    Progress, RunOptions, RungVerdict, SECONDS_MAX, SEED_LIMIT, Stop, Tick, TrialFile, TrialOutcome,
};

use crate::answer::Answer;
use crate::commands::{check_page, write_page};
use crate::context::{Context, OpenSession};
use crate::failure::Failure;
use crate::{output, signals};

/// How a trial runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Running {
    /// The short form: 90 seconds or what the trial says, nothing confirmed; that it cannot tell is a normal answer
    #[arg(long, global = true)]
    quick: bool,
    /// Draw everything from this seed, to run the same again
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u64).range(..SEED_LIMIT))]
    seed: Option<u64>,
    /// Time for everything
    #[arg(long, global = true, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    budget: Option<u64>,
    /// Also write the report as one HTML page
    #[arg(long, global = true, value_name = "F")]
    html: Option<PathBuf>,
}

impl Running {
    /// The live machine: nothing can be measured on a recorded one.
    pub fn session(&self, context: &Context) -> Result<OpenSession, Failure> {
        refuse_recorded(context)?;
        context.session()
    }

    /// For an option with which nothing is run: refuses a recorded host, and each of these options by its name, since
    /// nobody would read it. They may stand before the word of the subcommand, which no rule of its own sees.
    pub fn refuse_beside(&self, option: &str, why: &str, context: &Context) -> Result<(), Failure> {
        refuse_recorded(context)?;
        let given = [
            ("--quick", self.quick),
            ("--seed", self.seed.is_some()),
            ("--budget", self.budget.is_some()),
            ("--html", self.html.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
        if given.is_empty() {
            return Ok(());
        }
        let given = given.join(", ");
        Err(Failure::usage(format!("{given} cannot be used with {option}, {why}"))
            .hint(format!("leave {given} out")))
    }

    /// The live machine and a trial of it. What is wrong with the file is told first, on a recorded host too: so it can
    /// be looked over where nothing can be measured.
    pub fn trial(&self, named: &str, context: &Context) -> Result<(OpenSession, TrialFile), Failure> {
        let session = context.session()?;
        let trial = TrialFile::open(named, session.catalogue())?;
        refuse_recorded(context)?;
        Ok((session, trial))
    }

    /// The options of a run, and who listens to it. From here on Ctrl-C stops the trial and not the program.
    pub fn start(&self, context: &Context) -> Result<(RunOptions, Line), Failure> {
        self.html.as_deref().map_or(Ok(()), check_page)?;
        let flag = signals::stop_flag().map_err(Failure::refused)?;
        let program = std::env::current_exe().map_err(Failure::refused)?;
        let stop = Stop::watching(flag);
        let options = RunOptions {
            quick: self.quick,
            keep: false,
            duet: false,
            seed: self.seed,
            budget: self.budget.map(Duration::from_secs),
            program,
            command: context.again(""),
            stop: stop.clone(),
        };
        let shown = !context.globals.quiet && std::io::stderr().is_terminal();
        Ok((options, Line { shown, stop, stopping: false }))
    }

    /// The options of a command that goes on with what another one has begun, and who listens to it.
    pub fn of_begun(context: &Context) -> Result<(RunOptions, Line), Failure> {
        Self { quick: false, seed: None, budget: None, html: None }.start(context)
    }

    /// Refuses what has no meaning for a trial whose arms are boots, which goes on without this command.
    pub fn refuse_beside_boots(&self, duet: bool) -> Result<(), Failure> {
        let given = [("--quick", self.quick), ("--html", self.html.is_some()), ("--duet", duet)];
        let given: Vec<&str> = given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
        if given.is_empty() {
            return Ok(());
        }
        let given = given.join(", ");
        let what = format!("{given} cannot be used where arms are boots, which go on without this command");
        Err(Failure::usage(what).hint(format!("leave {given} out")))
    }

    /// Writes the HTML page that was asked for, and says where it is. By now the host is as the answer tells: a page
    /// that cannot be written is an error in that answer, and takes neither its result nor its exit code.
    fn page(&self, outcome: &TrialOutcome, answer: Answer) -> Answer {
        let Some(path) = &self.html else { return answer };
        match write_page(path, &trial_html(outcome)) {
            Ok(()) => answer.note(format!("the page is {}", path.display())),
            Err(failure) => answer.message(failure.message("", "").hint("the answer is complete without it")),
        }
    }
}

pub(crate) fn refuse_recorded(context: &Context) -> Result<(), Failure> {
    if context.globals.root.is_none() {
        return Ok(());
    }
    Err(Failure::usage("a recorded host cannot be measured").hint("leave --root out"))
}

/// One line on a terminal that says how far a trial is; nothing anywhere else.
pub(crate) struct Line {
    shown: bool,
    stop: Stop,
    stopping: bool,
}

/// Back to the start of the line, and clear it.
const CLEAR: &str = "\r\u{1b}[K";

impl Progress for Line {
    fn tick(&mut self, tick: &Tick) {
        if self.stop.is_set() && !self.stopping {
            self.stopping = true;
            let clear = if self.shown { CLEAR } else { "" };
            output::print_talk(&format!("{clear}stopping: programs are ended and the host is put back\n"));
        }
        if self.shown {
            let (phase, left) = (tick.phase.describe(), units::seconds(tick.left_seconds.max(0.0)));
            output::print_talk(&format!("{CLEAR}{phase} {}/{}, at most {left} left", tick.done, tick.of));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown {
            output::print_talk(CLEAR);
        }
    }
}

/// An outcome that names commands as they are typed here. What an outcome says is part of its report, as of the proof,
/// and no message that would be told so anyway.
pub(crate) fn told_here(mut outcome: TrialOutcome, context: &Context) -> TrialOutcome {
    outcome.notes.iter_mut().for_each(|note| *note = context.here(note));
    for refusal in &mut outcome.refused {
        refusal.why = context.here(&refusal.why);
        refusal.cure = context.here(&refusal.cure);
    }
    outcome
}

/// The report of an outcome, with the exit code, the talk and the next command that follow from it.
pub(crate) fn outcome_answer<R: Report>(
    outcome: TrialOutcome,
    report: impl FnOnce(TrialOutcome) -> R,
    running: &Running,
    context: &Context,
) -> Answer {
    let outcome = &told_here(outcome, context);
    let answer = context.answer(&report(outcome.clone()), &Catalogue::default());
    let exit = exit_of(outcome);
    let mut answer = answer.exit(exit);
    for refusal in &outcome.refused {
        let text = format!("{}: {}", refusal.what, refusal.why);
        answer = answer.message(Message::new(Level::Warning, text).hint(&refusal.cure));
    }
    answer = running.page(outcome, answer);
    // By the name under which it starts this program.
    let by_x = std::env::args_os().next().is_some_and(|name| name == "./x");
    // It names the page of each proof itself, and takes the folder.
    let reports = std::env::current_dir().unwrap_or_default().join("reports");
    let out = running.html.as_deref().filter(|_| by_x).and_then(|page| out_of_x(page, &reports));
    let page: &[&str] = if out.is_some() { &["--html"] } else { &[] };
    let without = [&["--budget"], page].concat();
    let out = out.unwrap_or_default();
    let pays = outcome.real_rungs().any(|rung| rung.verdict == RungVerdict::Keep);
    let next = match (exit, outcome.budget_needed_seconds) {
        (Exit::FailedRestored | Exit::FailedNotRestored, _) => context.line("log --verbose"),
        // What was kept is not in force, or is lost at the next boot: the one who takes it back is named there.
        (Exit::Findings, _) => context.line("check"),
        (_, Some(seconds)) => {
            context.again_without(&[], &without, format!("--budget {seconds} {out}").trim_end())
        }
        // Nothing was compared here, and longer would change nothing.
        (Exit::Done, _) if is_bare(outcome) => context.line("topo"),
        _ if running.quick => context.again_without(&["--quick"], &without, &out),
        _ if pays => context.line("doctor"),
        _ => context.line("trial honesty"),
    };
    answer.next(if by_x { in_a_checkout(&next, &own_path()) } else { next })
}

/// Whether no pair was run and nothing stored.
fn is_bare(outcome: &TrialOutcome) -> bool {
    outcome.proof_id.is_none() && outcome.rungs.iter().all(|rung| rung.pairs == 0)
}

/// The words of `./x prove` for the folder of a page that it named: none for its own. `None` for a page that has its
/// name from the user.
fn out_of_x(page: &Path, reports: &Path) -> Option<String> {
    let name = page.file_name()?.to_str()?;
    let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_named_by_x = name.starts_with("prove-") && name.ends_with(".html");
    let words = || format!("--out {}", quoted(&folder.to_string_lossy()));
    is_named_by_x.then(|| if folder == reports { String::new() } else { words() })
}

/// Where this program lies, as a word of a command line.
fn own_path() -> String {
    let path = std::env::current_exe().ok();
    path.map_or_else(|| "planish".to_owned(), |path| quoted(&path.to_string_lossy()))
}

/// A line as it can be typed in a checkout, where `./x prove` has become this program and no `planish` is on the path.
fn in_a_checkout(line: &str, program: &str) -> String {
    match line.strip_prefix("planish prove") {
        Some(rest) => format!("./x prove{rest}"),
        None => line.replacen("planish", program, 1),
    }
}

pub(crate) fn exit_of(outcome: &TrialOutcome) -> Exit {
    let all = [
        Exit::Done,
        Exit::Findings,
        Exit::Usage,
        Exit::Refused,
        Exit::FailedRestored,
        Exit::FailedNotRestored,
        Exit::Inconclusive,
    ];
    all.into_iter().find(|exit| exit.code() == outcome.exit).unwrap_or(Exit::Bug)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use planish_model::Exit;
    use planish_report::{Level, TrialRunReport};
    use planish_trial::{Refusal, TrialOutcome};

    use super::{Running, in_a_checkout, out_of_x, outcome_answer};
    use crate::answer::{Answer, Body};
    use crate::args::Cli;
    use crate::context::Context;

    /// What is said of an outcome where the user typed `--state s`.
    fn answered(change: impl FnOnce(&mut TrialOutcome)) -> Answer {
        let proof = include_str!("../../../../docs/proofs/series.json");
        let mut outcome: TrialOutcome = serde_json::from_str(proof).expect("a proof");
        change(&mut outcome);
        let running = Running { quick: false, seed: None, budget: None, html: None };
        let cli = Cli::try_parse_from(["planish", "--state", "s", "doctor"]).expect("a sound line");
        outcome_answer(outcome, TrialRunReport, &running, &Context::new(cli.globals, Vec::new()))
    }

    #[test]
    fn what_was_kept_and_does_not_last_ends_with_a_finding_and_leads_to_check() {
        for (exit, next) in [(Exit::Findings, "check"), (Exit::Done, "doctor")] {
            let answer = answered(|outcome| outcome.exit = exit.code());
            let last = answer.messages.last().expect("what to type next");
            assert_eq!((answer.exit, last.level), (exit, Level::Next));
            assert_eq!(last.text, format!("planish --state s {next}"));
        }
    }

    #[test]
    fn a_report_of_a_trial_names_commands_of_the_journal_that_it_wrote() {
        let answer = answered(|outcome| {
            outcome.notes = vec!["persisted as entry 9: planish undo 9; written".to_owned()];
            let cure = "keep what is there: planish confirm; or take it back: planish undo 3".to_owned();
            outcome.refused = vec![Refusal { what: "--keep".to_owned(), why: "entry 3".to_owned(), cure }];
        });
        let Body::Text(text) = &answer.body else { panic!("JSON was not asked for") };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in ["planish --state s undo 9;", "planish --state s confirm;", "planish --state s undo 3"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("planish undo"), "{text}");
    }

    #[test]
    fn the_folder_of_a_page_that_x_named_is_told_again() {
        let told = |page: &str| out_of_x(Path::new(page), Path::new("/checkout/reports"));
        assert_eq!(told("/checkout/reports/prove-series.html").as_deref(), Some(""));
        assert_eq!(told("/tmp/a b/prove-postgres-quick.html").as_deref(), Some("--out '/tmp/a b'"));
        assert_eq!(told("out/prove-series.html").as_deref(), Some("--out out"));
        assert_eq!(told("/tmp/mine.html"), None, "the user's own page stays as it was typed");
    }

    #[test]
    fn what_a_checkout_is_told_to_type_runs_there() {
        let told = |line| in_a_checkout(line, "'/a b/planish'");
        assert_eq!(told("planish prove postgres --scale 1"), "./x prove postgres --scale 1");
        assert_eq!(told("planish prove"), "./x prove");
        assert_eq!(told("planish --state s doctor"), "'/a b/planish' --state s doctor");
    }
}
