//! `planish plan`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use planish_model::{Class, EntryId, Exit, KnobId, Overlay, Plan, quoted};
use planish_pipeline::{self as pipeline, PipelineError, PlanOptions, Session, Source};
use planish_report::{Level, Message};

use crate::answer::Answer;
use crate::commands::apply::boot_parameters_wait;
use crate::commands::undo::entry_number;
use crate::commands::{service, without_journal, write_file};
use crate::context::Context;
use crate::failure::Failure;

/// Knobs of an open entry that are named before the others are only counted.
const COVERED_NAMED_MAX: usize = 4;

/// Show before and after of every step, and what it may cost
///
/// Nothing is written to the host. The plan can be saved, reviewed, and applied exactly as it was shown. A profile of
/// your own with a table [placement] puts services, interrupts and memory where they belong: docs/placement.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile; with a slash or the ending .json, a plan file, or a profile in a file that ends in .toml
    #[arg(value_name = "PROFILE")]
    source: String,
    /// Save the plan to F, for `planish apply F`
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
    /// Show the files too that `apply --persist` writes for the next boot, with their lines
    #[arg(long)]
    persist: bool,
    #[command(flatten)]
    choice: Choice,
}

/// What a plan may contain, and whose place it takes: shared with `apply`.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    #[command(flatten)]
    pub(crate) contents: Contents,
    /// Take the place of this open entry of `planish log`: what both want stays, what it alone wanted goes back, and
    /// undo brings back what was before both
    #[arg(long, value_name = "ENTRY", value_parser = entry_number)]
    pub(crate) instead_of: Option<u64>,
}

/// What a plan may contain: shared with `export`, too, which takes the place of nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Contents {
    /// Allow steps of these classes besides safe ones: availability, durability
    #[arg(long, value_name = "CLASS", value_delimiter = ',', value_parser = class)]
    allow: Vec<Class>,
    /// Allow the steps of this knob, whatever its class
    #[arg(long, value_name = "KNOB", value_delimiter = ',')]
    allow_knob: Vec<String>,
    /// Size pools for this service: a process id or a name
    #[arg(long, value_name = "NAME|PID")]
    service: Option<String>,
    /// Leave this knob as it is; or leave its places to another program that writes them, such as tuned
    #[arg(long, value_name = "KNOB|WRITER", value_delimiter = ',')]
    exclude: Vec<String>,
}

impl Contents {
    /// The same for the pipeline.
    pub fn options(&self) -> PlanOptions {
        PlanOptions {
            allow_classes: self.allow.clone(),
            allow_knobs: self.allow_knob.iter().map(KnobId::new).collect(),
            service: self.service.as_deref().map(service),
            exclude: self.exclude.clone(),
            instead_of: None,
            persist: false,
        }
    }

    /// Whether something is to be left as it is.
    pub(crate) fn leaves_out(&self) -> bool {
        !self.exclude.is_empty()
    }

    /// Refuses choices beside a plan file: what it holds was chosen when it was made, and nothing else is written.
    pub(crate) fn refuse_beside_file(&self, source: &str, context: &Context) -> Result<(), Failure> {
        let words = self.words();
        if words.is_empty() || !Source::named(source).is_plan_file() {
            return Ok(());
        }
        let told =
            format!("{source} is a plan: what it allows and leaves out, and for which service, is in it");
        Err(Failure::usage(told).hint(context.line(&format!("plan PROFILE{words} -o {}", quoted(source)))))
    }

    /// The options as they are typed after `plan`, `apply` or `export`.
    pub(crate) fn words(&self) -> String {
        let Self { allow, allow_knob, service, exclude } = self;
        let mut words = allowing(allow, allow_knob.iter().map(String::as_str));
        if let Some(service) = service {
            words.push_str(&format!(" --service {}", quoted(service)));
        }
        words + &excluding(exclude)
    }
}

impl Args {
    /// The same plan without a knob: one that a file holds is made anew.
    fn without(&self, knob: &str) -> String {
        let (choice, left) = (self.choice.words(), excluding([knob]));
        match Source::named(&self.source).is_plan_file() {
            true => format!("plan PROFILE{choice}{left} -o {}", quoted(&self.source)),
            false => format!("plan {}{choice}{left}", quoted(&self.source)),
        }
    }
}

impl Choice {
    /// The options as they are typed after `plan` or `apply`.
    pub(crate) fn words(&self) -> String {
        let mut words = self.contents.words();
        if let Some(entry) = self.instead_of {
            words.push_str(&format!(" --instead-of {entry}"));
        }
        words
    }

    /// The check that sees what was applied and no more: what was computed for a service is known to the journal alone.
    pub fn check(&self, source: &str) -> String {
        if self.contents.service.is_some() {
            return "check".to_owned();
        }
        format!("check {}{}", quoted(source), excluding(&self.contents.exclude))
    }

    /// The plan of a profile, or the one in a file.
    pub fn plan(
        &self,
        source: &str,
        persist: bool,
        session: &Session,
        context: &Context,
    ) -> Result<Plan, Failure> {
        let named = Source::named(source);
        if !named.is_plan_file() {
            context.plans(format!("{}{}", quoted(source), self.words()));
        }
        if let Some(entry) = self.instead_of.filter(|_| named.is_plan_file()) {
            let told = format!("{source} is a plan: whether it takes the place of an entry is in it");
            let again = context.line(&format!("plan PROFILE --instead-of {entry} -o {}", quoted(source)));
            return Err(Failure::usage(told).hint(again));
        }
        self.contents.refuse_beside_file(source, context)?;
        let mut plan = pipeline::plan(session, &named, &PlanOptions { persist, ..self.options() })?;
        // What a file holds is planned: to leave a place to somebody, it is made anew from its profile.
        let source = match session.catalogue().profile_names().find(|name| **name == plan.profile) {
            _ if !named.is_plan_file() => source,
            Some(name) => name,
            None => "PROFILE",
        };
        let files = if persist { " --persist" } else { "" };
        for writer in &mut plan.second_writers {
            let exclude = quoted(&writer.id);
            let words = format!("plan {}{} --exclude {exclude}{files}", quoted(source), self.words());
            writer.leave = context.line(&words);
        }
        Ok(plan)
    }

    /// What the user allows and names.
    pub fn options(&self) -> PlanOptions {
        PlanOptions { instead_of: self.instead_of.map(EntryId), ..self.contents.options() }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let mut plan = args.choice.plan(&args.source, args.persist, &session, context)?;
    // What a file tells of files is looked at anew, or not told at all.
    let had_files = plan.persist.as_ref().is_some_and(|persist| !persist.files.is_empty());
    let (persist, refusals) = match args.persist.then(|| pipeline::preview(&session, &plan)).transpose()? {
        Some(preview) => (Some(preview.persist), preview.refusals),
        None => (None, Vec::new()),
    };
    plan.persist = persist;
    let mut answer = context.answer(&plan, session.catalogue());
    // It can be read anywhere, and is of use on its host alone.
    match pipeline::refuse_elsewhere(&session, &plan) {
        Err(error) if args.output.is_none() => {
            return Ok(answer.message(refused("apply", error, context)));
        }
        here => here?,
    }
    // What no plan of this catalogue holds is no plan to review.
    if Source::named(&args.source).is_plan_file() {
        pipeline::refuse_forged(&session, &plan)?;
    }
    let outright =
        pipeline::refuse_impossible(&plan).and_then(|()| pipeline::refuse_short_of_memory(&plan)).err();
    let refusals = Refusals::of(refusals, outright.is_some(), args.output.is_some());
    let Refusals { is_refused_anyway, may_persist, is_unshown, exit, told } = refusals;
    answer = told.into_iter().fold(answer.exit(exit.unwrap_or(Exit::Done)), |answer, refusal| {
        let message = not_persisted(refusal, context);
        let is_error = exit.is_some() && message.level == Level::Warning;
        answer.message(if is_error { Message { level: Level::Error, ..message } } else { message })
    });
    answer = without_journal(with_notes(answer, &plan, &session, args.persist), &session);
    answer = huge_pages_of_postgres(&plan, context).into_iter().fold(answer, Answer::note);
    // What apply refuses is no plan to go on from: it is shown, row by row, and saved nowhere.
    if let Some((refusal, next)) = no_plan(args, &plan, &session, context)? {
        let answer = answer.exit(Exit::Refused).message(refusal);
        return Ok(next.into_iter().fold(answer, Answer::next));
    }
    // A plan that was saved with its files is applied with them.
    let is_with_files = (args.persist && may_persist) || (had_files && !args.persist);
    let persist = if is_with_files { " --persist" } else { "" };
    if let Some(path) = args.output.as_ref().filter(|_| exit.is_none()) {
        let json = serde_json::to_string_pretty(&plan).expect("a plan is plain data");
        write_file(path, &(json + "\n"))?;
        let file = file_argument(path, "json");
        return Ok(answer.next(context.root_line(&format!("apply {}{persist}", quoted(&file)))));
    }
    if plan.steps.is_empty() && plan.persist.as_ref().is_none_or(|persist| persist.files.is_empty()) {
        return Ok(if exit.is_some() { answer } else { nothing_now(answer, &plan, args, context) });
    }
    if is_refused_anyway {
        return Ok(answer);
    }
    if is_unshown {
        // The file still tells of what was shown then. Planned as a file it keeps its steps: what it was made with is
        // not among the words of this line.
        let (file, words) = (quoted(&args.source), args.choice.words());
        return Ok(answer.next(context.line(&format!("plan {file}{words} --persist -o {file}"))));
    }
    let words = args.choice.words() + persist;
    let source = session.named_for_root(&args.source);
    if let Some(allow) = unplaced(&plan).filter(|_| !Source::named(&args.source).is_plan_file()) {
        answer =
            answer.note("the placement needs more than is allowed: an apply as it is typed places nothing");
        return Ok(answer.next(context.line(&format!("plan {}{words}{allow}", quoted(&source)))));
    }
    Ok(answer.next(context.root_line(&format!("apply {}{words}", quoted(&source)))))
}

/// Why a plan is none to go on from, and what makes another one.
fn no_plan(
    args: &Args,
    plan: &Plan,
    session: &Session,
    context: &Context,
) -> Result<Option<(Message, Option<String>)>, Failure> {
    let told = |refusal| Failure::from(refusal).message(&context.again(""), "planish plan --help");
    if let Err(refusal) = pipeline::refuse_impossible(plan) {
        return Ok(Some((told(refusal), None)));
    }
    if let Err(refusal) = pipeline::refuse_short_of_memory(plan) {
        return Ok(Some((told(refusal), Some(context.line(&args.without(&short_pools(plan)))))));
    }
    let stale = stale(args, plan, session, context)?;
    Ok(stale.map(|(refusal, next)| (refusal, Some(next))))
}

/// Why a plan file is no plan any more of this host, which shows other values than it saw, and what makes it anew.
/// A look at its files tells that by itself.
fn stale(
    args: &Args,
    plan: &Plan,
    session: &Session,
    context: &Context,
) -> Result<Option<(Message, String)>, Failure> {
    if args.persist || !Source::named(&args.source).is_plan_file() {
        return Ok(None);
    }
    let moved = match pipeline::refuse_moved(session, plan) {
        Ok(()) => return Ok(None),
        Err(error @ PipelineError::Moved { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let is_known = session.catalogue().profile_names().any(|name| *name == plan.profile);
    let profile = if is_known { session.named_for_root(&plan.profile) } else { "PROFILE".to_owned() };
    let words = allowing(&plan.allowed.classes, plan.allowed.knobs.iter().map(KnobId::as_str));
    // What was computed for a service is no part of the profile.
    let service = plan.steps.iter().find_map(|step| step.service.as_deref());
    let service = service.map(|service| format!(" --service {}", quoted(service))).unwrap_or_default();
    let words = words + &args.choice.words() + &service;
    let next = format!("plan {}{words} -o {}", quoted(&profile), quoted(&args.source));
    let told = refused("apply", moved, context);
    Ok(Some((Message { level: Level::Error, ..told }, context.line(&next))))
}

/// A plan that writes nothing now: what is for the next boot comes with `--persist`.
fn nothing_now(answer: Answer, plan: &Plan, args: &Args, context: &Context) -> Answer {
    if plan.boot.is_empty() || args.persist {
        return answer.note("there is nothing to write").next(context.line(&args.choice.check(&args.source)));
    }
    let words = args.choice.words();
    // What would be written for the next boot was not looked at, and may be refused.
    let next = context.line(&format!("plan {}{words} --persist", quoted(&args.source)));
    answer.note("there is nothing to write now").next(next)
}

/// What is to be known of the open entries that a plan lies over: what it covers of each, and what it leaves.
pub(crate) fn overlays_told(plan: &Plan, session: &Session) -> Vec<String> {
    let named = |knobs: &[KnobId]| {
        let named: Vec<&str> = knobs.iter().take(COVERED_NAMED_MAX).map(KnobId::as_str).collect();
        match knobs.len() - named.len() {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    };
    let mut told = Vec::new();
    for Overlay { entry, profile, knobs, stays, shared } in &plan.overlays {
        if !knobs.is_empty() {
            let named = named(knobs);
            told.push(format!(
                "entry {entry} ({profile}) is open and has set {named}: what it set there is covered until an undo; to \
                 take its place: --instead-of {entry}"
            ));
        }
        let again = format!("({}): after it apply {} again", named(shared), plan.profile);
        if stays.is_empty() && !shared.is_empty() {
            told.push(format!(
                "entry {entry} ({profile}) is open, and an undo of it takes back what this plan finds as wanted \
                 {again}; to take its place: --instead-of {entry}"
            ));
        }
        if !stays.is_empty() {
            let too = match shared.is_empty() {
                true => String::new(),
                false => format!(", and with them what this plan wants too {again}"),
            };
            let way = match pipeline::is_undo_refused(session, *entry, plan) {
                true => format!(
                    "what is set above it needs them, and planish undo {entry} is refused until that is taken back, as \
                     by planish undo --all"
                ),
                false => format!("planish undo {entry} takes them back"),
            };
            let named = named(stays);
            told.push(format!(
                "left from entry {entry} ({profile}), and wanted by nothing of this plan: {named}; {way}{too}"
            ));
        }
    }
    told
}

/// What is to be known of a plan beside its steps.
fn with_notes(mut answer: Answer, plan: &Plan, session: &Session, persists: bool) -> Answer {
    if let Some(unsuited) = &plan.unsuited {
        answer = answer.warning(unsuited.clone());
    }
    answer = plan.remarks.iter().fold(answer, |answer, remark| answer.warning(remark.clone()));
    answer = overlays_told(plan, session).into_iter().fold(answer, Answer::note);
    if plan.needs_reboot() {
        answer = answer.note("some steps take effect at the next boot");
    }
    if !plan.boot.is_empty() && !persists {
        answer = answer.note(boot_parameters_wait(plan, session));
    }
    if plan.steps.iter().any(|step| step.raise_pages.is_some_and(|pages| pages > 0)) {
        // It is no step: whether it is needed shows at the write only. But no write may come as a surprise.
        answer = answer.note(
            "where a node grants fewer pages, apply compacts the memory of that node and asks again, up to 4 times; \
             programs on it may wait meanwhile",
        );
    }
    answer
}

/// What to allow so that a placement is planned at all, where that is what keeps it out: to apply the rest would leave
/// the service where it is.
fn unplaced(plan: &Plan) -> Option<String> {
    plan.placement.as_ref()?;
    let reason = plan
        .skipped
        .iter()
        .find_map(|row| row.verdict.reason.strip_prefix("placed whole or not at all: "))?;
    reason.find("--allow").map(|at| format!(" {}", &reason[at..]))
}

/// What PostgreSQL itself has to say before it takes a pool, next to a plan that has one or leaves one out.
fn huge_pages_of_postgres(plan: &Plan, context: &Context) -> Option<String> {
    let is_pool = |knob: &KnobId| knob.as_str().starts_with("hugepages.");
    let has_pool =
        plan.steps.iter().map(|step| &step.knob).chain(plan.skipped.iter().map(|row| &row.knob)).any(is_pool);
    (has_pool && plan.profile.starts_with("postgres")).then(|| asks_for_huge_pages(context))
}

/// The same, of any server of PostgreSQL.
pub(crate) fn asks_for_huge_pages(context: &Context) -> String {
    // A server of a recorded host runs elsewhere.
    let told = match context.globals.root {
        Some(_) => String::new(),
        None => format!("; what yours says: {}", context.line("prove postgres --conn CONNECTION")),
    };
    format!(
        "PostgreSQL takes a pool at its start, with huge_pages = try or on in postgresql.conf, and needs as many \
         pages as SHOW shared_memory_size_in_huge_pages tells (from 15 on){told}"
    )
}

/// What a look at the files of an apply found against it.
struct Refusals {
    /// Whether it is refused without files as well, most likely.
    is_refused_anyway: bool,
    /// Whether `--persist` is to be proposed.
    may_persist: bool,
    /// Whether files would become something else than the saved plan shows.
    is_unshown: bool,
    /// How the apply ends that is refused.
    exit: Option<Exit>,
    /// What is told of it.
    told: Vec<PipelineError>,
}

impl Refusals {
    /// `is_told`: that the plan itself is refused is said by its own words. Who saves a plan saves it with its files as
    /// they would become now.
    fn of(mut told: Vec<PipelineError>, is_told: bool, saves: bool) -> Self {
        told.retain(|refusal| {
            let of_plan =
                matches!(refusal, PipelineError::Impossible { .. } | PipelineError::NoMemory { .. });
            !(of_plan && is_told)
        });
        let is_of_file = |refusal: &PipelineError| matches!(refusal, PipelineError::Unshown { .. });
        // Whose a file is, only root can tell.
        let is_hidden = |refusal: &PipelineError| matches!(refusal, PipelineError::RootsJournal { .. });
        let counts = |refusal: &&PipelineError| !(is_hidden(refusal) || (saves && is_of_file(refusal)));
        let is_refused_anyway = told.iter().any(has_own_cure);
        Self {
            is_refused_anyway,
            may_persist: is_refused_anyway || told.iter().all(is_of_file),
            is_unshown: told.iter().any(is_of_file),
            exit: told.iter().find(counts).map(PipelineError::exit),
            told,
        }
    }
}

/// Whether the cure of a refusal is no smaller apply: without files it is refused as well, or nearly always.
fn has_own_cure(refusal: &PipelineError) -> bool {
    use PipelineError::{BootFile, BootLoader, ForeignFile, RootsJournal, Unshown};
    !matches!(
        refusal,
        BootFile { .. } | BootLoader { .. } | ForeignFile { .. } | RootsJournal { .. } | Unshown { .. }
    )
}

/// Why an apply with `--persist` would be refused, which a look only tells.
fn not_persisted(refusal: PipelineError, context: &Context) -> Message {
    let shown = match &refusal {
        PipelineError::Unshown { paths } => Some(paths.join(", ")),
        _ => None,
    };
    let refused = refused("apply --persist", refusal, context);
    let Some(paths) = shown else { return refused };
    let now = "is told as it would become now, and not as the plan showed it";
    let text = format!("{paths} {now}: apply --persist refuses the plan that was saved");
    Message { level: Level::Note, text, ..refused }
}

/// Why a command that writes what was planned would be refused.
fn refused(command: &str, refusal: PipelineError, context: &Context) -> Message {
    let refused = Failure::from(refusal).message(&context.again(""), "planish plan --help");
    let text = format!("{command} refuses this plan: {}", refused.text);
    Message { level: Level::Warning, text, ..refused }
}

/// The pools that keep a plan from being applied, as `--exclude` takes them.
fn short_pools(plan: &Plan) -> String {
    let short = plan.skipped.iter().filter(|row| row.short_of_memory).map(|row| row.knob.as_str());
    let knobs: Vec<&str> = short.collect::<BTreeSet<_>>().into_iter().collect();
    knobs.join(",")
}

/// A path as a command takes it for a file: with a slash, or of the ending that makes it one.
pub(crate) fn file_argument(path: &Path, ending: &str) -> String {
    let text = path.display().to_string();
    let ends = text.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.'));
    if text.contains('/') || ends { text } else { format!("./{text}") }
}

/// What is allowed, as it is typed after `plan` or `apply`.
pub(crate) fn allowing<'a>(
    classes: impl IntoIterator<Item = &'a Class>,
    knobs: impl IntoIterator<Item = &'a str>,
) -> String {
    let classes =
        classes.into_iter().map(|class| format!(" --allow {}", format!("{class:?}").to_lowercase()));
    classes.chain(knobs.into_iter().map(|knob| format!(" --allow-knob {}", quoted(knob)))).collect()
}

/// What is left out, as it is typed after `plan`, `apply` or `check`.
pub(crate) fn excluding<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    names.into_iter().map(|name| format!(" --exclude {}", quoted(name.as_ref()))).collect()
}

/// A class that may be allowed as a whole.
pub(crate) fn class(word: &str) -> Result<Class, String> {
    match word {
        "safe" => Ok(Class::Safe),
        "availability" => Ok(Class::Availability),
        "durability" => Ok(Class::Durability),
        "security" => Err("security knobs are allowed one by one, with --allow-knob".to_owned()),
        "oneway" | "action" => Err(format!("steps of class {word} cannot be undone and are refused")),
        _ => Err("the classes are availability and durability".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sized_for_a_service_is_checked_against_the_journal() {
        let choice = |service: Option<&str>, exclude: &[&str]| Choice {
            contents: Contents {
                allow: Vec::new(),
                allow_knob: Vec::new(),
                service: service.map(str::to_owned),
                exclude: exclude.iter().map(|name| (*name).to_owned()).collect(),
            },
            instead_of: None,
        };
        assert_eq!(choice(None, &[]).check("postgres"), "check postgres");
        assert_eq!(choice(Some("postgres"), &[]).check("postgres"), "check");
        let without = choice(None, &["tuned"]);
        assert_eq!(
            (without.check("postgres").as_str(), without.words().as_str()),
            ("check postgres --exclude tuned", " --exclude tuned")
        );
        assert_eq!(choice(Some("x;id"), &[]).words(), " --service 'x;id'");
        assert_eq!(Choice { instead_of: Some(7), ..without }.words(), " --exclude tuned --instead-of 7");
        assert_eq!(choice(None, &[]).check("/a b/p.json"), "check '/a b/p.json'");
    }
}
