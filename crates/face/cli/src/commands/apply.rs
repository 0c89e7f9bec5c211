//! `planish apply`

use std::io::{self, BufRead, IsTerminal};

use planish_model::{DriftState, Exit, KnobCheck, KnobId, Outcome, OutcomeKind, Plan, gone_at_boot, quoted};
use planish_pipeline::{self as pipeline, Applied, ApplyOptions, Session, Source};
use planish_report::{ApplyReport, Level, Message, counted, units};

use crate::answer::Answer;
use crate::commands::check::is_brought_back;
use crate::commands::once;
use crate::commands::plan::{Choice, excluding, overlays_told};
use crate::context::Context;
use crate::failure::Failure;
use crate::{output, signals};

/// The longest time that an apply may wait for `planish confirm`: 30 days. What is on trial for longer is no trial.
const CONFIRM_SECONDS_MAX: u64 = 30 * 24 * 3600;

/// Write a plan to the host, read every value back, and keep what it takes to undo it
///
/// Who is asked is shown the plan first, with every file that --persist writes and its lines. Without a terminal to
/// ask at, --yes is needed, which shows what was done alone: `planish plan` shows the rest. It ends in exit code 1
/// where a place that is here is not as wanted afterwards; with --persist, also where a file that is read later takes
/// it back at the next boot. With --confirm, `planish confirm` writes those files, and ends so then.
///
/// With --instead-of, the plan takes the place of an entry that is open. No value goes through what it was before that:
/// what both want is not written, and belongs to the new entry from then on. The old one is closed when all is written,
/// or at the confirm; an undo before that goes back to what it had set, and one behind it to what was before both.
///
/// With --once, nothing is written but a copy of the boot loader's default entry, with the boot parameters of the plan,
/// which the next boot takes and no other. A machine that does not come up with it is brought back by switching it off
/// and on. It is refused where the boot loader might take that entry more than once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile; with a slash or the ending .json, a plan file, or a profile in a file that ends in .toml
    #[arg(value_name = "PROFILE|F")]
    source: String,
    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Undo by itself unless `planish confirm` follows within SECS seconds, or 90s, 5m, 2h; 30 days at most
    #[arg(long, value_name = "SECS", value_parser = confirm_seconds)]
    confirm: Option<u64>,
    /// Also write the files that bring the values back after a reboot
    #[arg(long)]
    persist: bool,
    /// Only for one boot, by an entry that the boot loader takes once: its default stays, until `planish confirm` there
    #[arg(long, requires = "persist", conflicts_with_all = ["confirm", "instead_of"])]
    once: bool,
    /// Note in the journal why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    choice: Choice,
}

/// `300`, `300s` or `5m`.
fn confirm_seconds(text: &str) -> Result<u64, String> {
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let time = humantime::parse_duration(text).map_err(|_| {
                format!("`{text}` is no time: seconds, or a number with its unit, such as 90s, 5m or 2h")
            })?;
            if time.subsec_nanos() > 0 {
                return Err("whole seconds, please: the timer of an entry counts no less".to_owned());
            }
            time.as_secs()
        }
    };
    match seconds {
        1..=CONFIRM_SECONDS_MAX => Ok(seconds),
        _ => {
            Err("from 1 second to 30 days: seconds, or a number with its unit, such as 90s, 5m or 2h"
                .to_owned())
        }
    }
}

impl Args {
    fn is_plan_file(&self) -> bool {
        Source::named(&self.source).is_plan_file()
    }

    /// The same apply once it is done, so that files for the next boot are written, too.
    fn persisting(&self, context: &Context) -> String {
        // A plan file is for the host as it was before it; its profile is in it, and not in its name.
        let source = if self.is_plan_file() { "PROFILE".to_owned() } else { quoted(&self.source) };
        context.root_line(&format!("apply {source}{} --persist", self.choice.contents.words()))
    }

    /// The command for what a trial boot leaves.
    pub(crate) fn without_once(&self) -> String {
        format!("after its confirm: planish apply {}{} --persist", quoted(&self.source), self.choice.words())
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let mut plan = args.choice.plan(&args.source, args.persist, &session, context)?;
    pipeline::refuse_elsewhere(&session, &plan)?;
    if args.once {
        return once::run(args, &plan, &session, context);
    }
    let unasked = plan.persist.take_if(|_| !args.persist);
    // Nobody is asked about a plan that is refused anyway.
    if !args.yes && !plan.skipped.iter().any(|row| row.short_of_memory || row.impossible) {
        if args.persist {
            plan.persist = Some(pipeline::persisted(&session, &plan)?);
        }
        agreed(&plan, &session, context)?;
    }
    // From here on the plan leaves no choice: what was shown is what will be written, or nothing.
    // Half an apply helps nobody: a Ctrl-C that comes from here on waits for its end.
    signals::hold();
    let options =
        ApplyOptions { confirm_seconds: args.confirm, persist: args.persist, reason: args.reason.clone() };
    let applied = pipeline::apply(&session, &plan, &options)?;
    let (exit, hints) = (applied.exit, applied.hints.clone());
    let report = told_of(applied, plan);
    let mut answer = context.answer(&report, session.catalogue()).exit(exit);
    if let Some(unsuited) = &report.plan.unsuited {
        answer = answer.warning(unsuited.clone());
    }
    answer = report.plan.remarks.iter().fold(answer, |answer, remark| answer.warning(remark.clone()));
    if report.entry.is_none() {
        answer = answer.note(unwritten(&report, args.choice.contents.leaves_out()));
    } else if report.plan.needs_reboot() {
        answer = answer.note("some steps take effect at the next boot");
    }
    if !args.persist && !report.plan.boot.is_empty() {
        answer = answer.note(boot_parameters_wait(&report.plan, &session));
    }
    if let Some(files) = unasked.map(|persist| persist.files.len()).filter(|files| *files > 0) {
        let files = units::count(files, "file");
        answer = answer.note(format!("the plan has {files} for the next boot: apply --persist writes them"));
    }
    let failed = matches!(exit, Exit::FailedRestored | Exit::FailedNotRestored);
    let level = if failed { Level::Error } else { Level::Note };
    for hint in hints {
        answer = answer.message(Message::new(level, hint));
    }
    answer = without_it(args, &report, exit, context).into_iter().fold(answer, Answer::note);
    if !failed {
        answer = overlays_told(&report.plan, &session).into_iter().fold(answer, Answer::note);
    }
    for sentence in report.left_alone().into_iter().chain(gone_at_boot(&report.unpersisted)) {
        answer = answer.note(sentence);
    }
    let persisting = args.persisting(context);
    let short = short_pools(args, &report, exit, context);
    let notes = no_longer_persisted(args, &report, exit, &persisting).into_iter().chain(short.clone());
    let notes = notes.chain(brought_back(args, &report, exit, &persisting));
    answer = notes.chain(why(&report, exit, args.persist)).fold(answer, Answer::note);
    Ok(answer.next(next(args, &report, exit, persisting, short.is_some(), context)))
}

/// What to type next.
fn next(
    args: &Args,
    report: &ApplyReport,
    exit: Exit,
    persisting: String,
    is_short: bool,
    context: &Context,
) -> String {
    match (report.entry, args.confirm, exit) {
        (Some(entry), _, Exit::FailedNotRestored) => context.root_line(&format!("undo {entry}")),
        (Some(_), Some(_), Exit::Done | Exit::Findings) => context.root_line("confirm"),
        (Some(entry), _, Exit::Findings) if !args.persist && is_short => {
            context.root_line(&format!("undo {entry}"))
        }
        (_, _, Exit::Findings) if !args.persist && !args.is_plan_file() && is_for_next_boot(report) => {
            persisting
        }
        (Some(_), _, Exit::Done | Exit::Findings) | (None, ..) => {
            context.line(&args.choice.check(&args.source))
        }
        _ => context.line("log --verbose"),
    }
}

/// Files for the next boot that went with the entry whose place this one took, where nobody asked for new ones.
fn no_longer_persisted(args: &Args, report: &ApplyReport, exit: Exit, persisting: &str) -> Option<String> {
    let instead = report.plan.instead_of.as_ref()?;
    let is_done = report.entry.is_some() && matches!(exit, Exit::Done | Exit::Findings);
    let is_value = |file: &&String| report.plan.steps.iter().all(|step| step.place != **file);
    let files: Vec<&str> = instead.files.iter().filter(is_value).map(String::as_str).collect();
    if args.persist || files.is_empty() || !is_done {
        return None;
    }
    let (old, files) = (instead.entry, files.join(", "));
    let went = if args.confirm.is_some() { "go with it at the confirm" } else { "went with it" };
    Some(format!(
        "what entry {old} had in files for the next boot ({files}) {went}, and no file persists what is set now: \
         {persisting}"
    ))
}

/// What files of older entries bring back at the next boot, where this apply asked for none of its own.
fn brought_back(args: &Args, report: &ApplyReport, exit: Exit, persisting: &str) -> Option<String> {
    let back: Vec<&KnobCheck> = report.knobs.iter().filter(|knob| is_brought_back(knob)).collect();
    let is_done = matches!(exit, Exit::Done | Exit::Findings);
    if args.persist || back.is_empty() || !is_done {
        return None;
    }
    let knobs: Vec<&KnobId> = back.iter().map(|knob| &knob.knob).collect();
    let why = back[0].because.as_deref().unwrap_or("by a file of an older entry");
    Some(format!(
        "{} as wanted now, and the next boot brings back what older entries persisted: {} ({why}): {persisting}",
        units::count(knobs.len(), "place"),
        named(&knobs)
    ))
}

/// After a step that failed, so that all of it was taken back: how to have the rest. Of a placement there is no rest.
fn without_it(args: &Args, report: &ApplyReport, exit: Exit, context: &Context) -> Option<String> {
    let failed = report.outcomes.iter().find(|outcome| outcome.outcome == OutcomeKind::Failed)?;
    if exit != Exit::FailedRestored || report.plan.placement.is_some() || failed.knob.is_persistence() {
        return None;
    }
    let knob = &failed.knob;
    let persist = if args.persist { " --persist" } else { "" };
    let (words, left) = (args.choice.words(), excluding([knob.as_str()]));
    let line = if args.is_plan_file() {
        // A plan is applied whole or not at all: it is made anew.
        context.line(&format!("plan PROFILE{words}{left} -o {}", quoted(&args.source)))
    } else {
        context.root_line(&format!("apply {}{words}{left}{persist}", quoted(&args.source)))
    };
    Some(format!("a plan is applied whole or not at all; the rest of it without {knob}: {line}"))
}

/// What a pool that came short means for whoever it is for, and what can be done. Half of a pool is memory that nobody
/// else can have, and that no service takes which asks for all of it at once.
fn short_pools(args: &Args, report: &ApplyReport, exit: Exit, context: &Context) -> Option<String> {
    let is_short =
        |place: &str| report.outcomes.iter().any(|outcome| outcome.place == place && outcome.short.is_some());
    let steps = || report.plan.steps.iter().filter(|step| step.raise_pages.is_some());
    let knob = match exit {
        Exit::Findings => &steps().find(|step| is_short(&step.place))?.knob,
        _ => return None,
    };
    let (mut asked, mut granted, mut bytes) = (0, 0, 0);
    for step in steps().filter(|step| step.knob == *knob) {
        let outcome = report.outcomes.iter().find(|outcome| outcome.place == step.place);
        let pages = outcome.and_then(|outcome| outcome.granted_pages).unwrap_or(0);
        asked += step.raise_pages.unwrap_or(0);
        granted += pages;
        bytes += pages.saturating_mul(page_bytes(&step.place));
    }
    let (entry, bytes) = (report.entry?, units::bytes(bytes));
    let postgres = match report.profile.starts_with("postgres") {
        true => " (PostgreSQL does so: with huge_pages = try it starts on small pages, with on not at all)",
        false => "",
    };
    let boot = match args.persist {
        true => "the next boot reserves all of them, before anything else takes the memory".to_owned(),
        false => format!(
            "{} has the next boot reserve all of them, before anything else takes the memory",
            args.persisting(context)
        ),
    };
    let undo = context.root_line(&format!("undo {entry}"));
    Some(format!(
        "{granted} of {asked} pages of {knob} are there: a service that asks for all of them at once gets none\
         {postgres}, and nobody else has these {bytes} meanwhile; {undo} gives them back; {boot}"
    ))
}

/// The bytes of a page of a pool, by the name of its folder.
fn page_bytes(place: &str) -> u64 {
    let size = place.split_once("/hugepages-").and_then(|(_, rest)| rest.split_once("kB/"));
    size.and_then(|(kib, _)| kib.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// Whether all that is not as wanted waits for a boot, and only --persist provides for that one: what the boot loader
/// gives, and pools for which memory has no room now.
fn is_for_next_boot(report: &ApplyReport) -> bool {
    let mut drift = report.knobs.iter().filter(|knob| knob.state == DriftState::Drift).peekable();
    let is_for_boot = |knob: &KnobCheck| {
        let asked = report.plan.skipped.iter().filter(|row| row.asked_by.is_some());
        let mut asked = asked.filter(|row| page_bytes(&row.place) > 0).map(|row| &row.place);
        report.plan.boot.iter().any(|step| step.place == knob.place)
            || asked.any(|place| *place == knob.place)
    };
    drift.peek().is_some() && drift.all(is_for_boot)
}

/// Why an apply ended in exit code 1 whose steps may all be done.
fn why(report: &ApplyReport, exit: Exit, persist: bool) -> Option<String> {
    if exit != Exit::Findings {
        return None;
    }
    let of = |state: DriftState| {
        let rows = report.knobs.iter().filter(move |knob| knob.state == state);
        // What merely nobody persists makes no 1.
        rows.filter(|knob| knob.state != DriftState::LostAtBoot || knob.next_boot.is_some())
            .map(|knob| (&knob.knob, knob.place.as_str()))
    };
    let drift: Vec<_> = of(DriftState::Drift).collect();
    let is_other = |outcome: &&Outcome| {
        let is_told = drift.iter().any(|(_, place)| *place == outcome.place);
        matches!(outcome.outcome, OutcomeKind::Short | OutcomeKind::ReadsBack) && !is_told
    };
    let other = report.outcomes.iter().filter(is_other);
    let other: Vec<_> = other.map(|outcome| (&outcome.knob, outcome.place.as_str())).collect();
    // The next boot counts where it was asked for.
    let of_next_boot = of(DriftState::LostAtBoot).chain(of(DriftState::OverwrittenAtBoot));
    let lost: Vec<_> = of_next_boot.filter(|_| persist).collect();
    let told = [
        (drift, "not as wanted"),
        (other, "not what was written"),
        (lost, "as wanted now and set otherwise at the next boot"),
    ];
    let told = told.into_iter().filter(|(places, _)| !places.is_empty()).map(|(places, what)| {
        let knobs: Vec<&KnobId> = places.iter().map(|(knob, _)| *knob).collect();
        format!("{} {what}: {}", units::count(places.len(), "place"), named(&knobs))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("exit code 1: {}", told.join("; ")))
}

/// Knobs by their names, each once with the number of its places, and no more than a few.
pub(crate) fn named(knobs: &[&KnobId]) -> String {
    const NAMED_MAX: usize = 3;
    counted(knobs, NAMED_MAX)
}

/// What came of a plan, as it is told.
pub(crate) fn told_of(applied: Applied, plan: Plan) -> ApplyReport {
    ApplyReport {
        entry: applied.entry,
        hash: plan.hash.clone(),
        profile: plan.profile.clone(),
        outcomes: applied.outcomes,
        knobs: applied.drift.knobs,
        unpersisted: applied.unpersisted,
        files: applied.files,
        pools: applied.pools,
        plan,
    }
}

/// What only the boot loader can bring, and what has it do so, if anything here can.
pub(crate) fn boot_parameters_wait(plan: &Plan, session: &Session) -> String {
    let count = units::count(plan.boot.len(), "boot parameter");
    match pipeline::ungiven(session) {
        None => format!("{count} only at the next boot: apply --persist has the boot loader give them"),
        Some(why) => format!("{count} only at the next boot, and {why}"),
    }
}

/// Why there was nothing to write.
fn unwritten(report: &ApplyReport, leaves_out: bool) -> &'static str {
    let leaves_out = leaves_out && report.plan.skipped.iter().any(|skipped| !skipped.satisfied);
    let left = |knob: &KnobCheck| {
        let mut rows = report.plan.skipped.iter().filter(|row| !row.satisfied);
        rows.any(|row| row.place == knob.place)
    };
    if report.knobs.iter().any(|knob| knob.state == DriftState::Drift && !left(knob)) {
        "nothing was written: this was applied already, and the host differs from it"
    } else if leaves_out {
        "nothing was written: what the options do not leave out is as wanted, or the plan says why it is not"
    } else if report.plan.skipped.iter().any(|skipped| !skipped.satisfied) {
        "nothing was written: what can be set here is as wanted, and the plan says what cannot be"
    } else {
        "nothing was written: the host is as wanted"
    }
}

/// Shows the plan and asks for a yes where anything of it is due; refuses where nobody can be asked.
pub(crate) fn agreed(plan: &Plan, session: &Session, context: &Context) -> Result<(), Failure> {
    let files = plan.persist.as_ref().map_or(0, |persist| persist.files.len());
    let written = plan.steps.iter().filter(|step| step.is_written()).count();
    // Where all of it is only held, that is what is asked about.
    let steps = if written + files == 0 { plan.steps.len() } else { written };
    let due = [(steps, "step"), (files, "file")].into_iter().filter(|(count, _)| *count > 0);
    let due: Vec<String> = due.map(|(count, noun)| units::count(count, noun)).collect();
    if due.is_empty() {
        return Ok(());
    }
    if !context.globals.json {
        let text = context.text(plan, session.catalogue());
        output::print(&text, Exit::Done);
    }
    context.means(&plan.profile, session);
    agreed_to(&due.join(" and "), context)
}

/// Asks whether so much, which was shown, is to be written; refuses where nobody can be asked.
pub(crate) fn agreed_to(count: &str, context: &Context) -> Result<(), Failure> {
    let again = context.again_as_root("--yes");
    let asked = !context.globals.json && io::stdin().is_terminal() && io::stderr().is_terminal();
    if !asked {
        return Err(Failure::refused(format!("{count} to write, and nobody to ask")).hint(again));
    }
    output::print_talk(&format!("\nWrite {count}? [y/N] "));
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    match (read, line.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::refused("not agreed, nothing was written").hint(again)),
    }
}
