//! `planish check`

use std::collections::{BTreeMap, BTreeSet};

use planish_model::{
    Allowed, BootValue, Catalogue, Class, DriftState, Entry, EntryId, EntryStep, Exit, KnobCheck, KnobId,
    LineClaim, Persisted, TrialBootState, Unpersisted, gone_at_boot, quoted,
};
use planish_pipeline::{
    self as pipeline, Checked, Half, HeldText, Session, Source, Stranger, TextFile, Unconfirmed,
};
use planish_report::{CheckReport, CheckTextRow, units};

use crate::answer::{Answer, Body};
use crate::commands::apply::named as knobs_named;
use crate::commands::plan::{allowing, excluding};
use crate::commands::{monitor, once, text};
use crate::context::Context;
use crate::failure::Failure;

/// Compare the host with a profile, a plan, or what was applied
///
/// Every place is named: what runs, what is persisted, what the next boot brings, and who causes a difference. What was
/// wanted and is not so, or will be set otherwise at the next boot by a file, a unit or another program, ends in exit
/// code 1; also where this host keeps it from being set: a mount that is read-only, a kernel that made another value of
/// it. What planish never set and files of the host want otherwise is told, and makes no 1; neither does what merely
/// nobody persisted, what cannot be here or means nothing here, nor a class that nobody allowed. What is applied is not
/// compared where only root may read the journal: without PROFILE that ends in exit code 3.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile or a plan file; without it, everything that is applied, and what the host's own files say
    #[arg(value_name = "PROFILE|F")]
    source: Option<String>,
    /// Of PROFILE, do not compare this knob, or the places of another program that writes them: what an apply with the
    /// same left
    #[arg(long, value_name = "KNOB|WRITER", value_delimiter = ',')]
    exclude: Vec<String>,
    /// Print one line and end as monitoring expects: 0 ok, 1 warning, 2 critical, 3 unknown
    #[arg(long)]
    monitor: bool,
}

impl Args {
    /// The host as it is, held against what was named.
    fn checked(&self, session: &Session) -> Result<Checked, Failure> {
        let source = self.source.as_deref().map(Source::named);
        match (&self.source, &source) {
            (Some(file), Some(source)) if source.is_plan_file() && !self.exclude.is_empty() => {
                let failure = Failure::usage(format!("{file} is a plan: what it leaves out is in it"));
                Err(failure.hint("leave out --exclude, or name the profile"))
            }
            (None, _) if !self.exclude.is_empty() => Err(without_profile("check", &self.exclude)),
            _ => Ok(pipeline::check_without(session, source.as_ref(), &self.exclude)?),
        }
    }
}

/// That `--exclude` says of what something is left out, and nothing is named.
pub(crate) fn without_profile(command: &str, exclude: &[String]) -> Failure {
    let left = exclude.join(",");
    let told = format!("--exclude {left} leaves something out of a profile, and no profile is named");
    let hint = format!(
        "planish {command} PROFILE --exclude {left}; without a profile all that is applied is compared"
    );
    Failure::usage(told).hint(hint)
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if args.monitor { monitored(args, context) } else { told(args, context) }
}

/// One line, whatever happens: what keeps planish from looking is an answer, too.
fn monitored(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.json {
        let failure = Failure::usage("--monitor prints one line of its own");
        return Err(failure.hint("leave out --json, or leave out --monitor"));
    }
    let looked = || {
        let session = context.session()?;
        let checked = args.checked(&session)?;
        let Checked {
            drift,
            trial_boots,
            carried_over,
            pools,
            unfinished,
            changed_files,
            unread_drop_ins,
            lost_runs,
            interrupted,
            unconfirmed,
            texts,
            strange_files,
            not_followed,
            ..
        } = checked;
        let against = args.source.clone();
        let texts = on_huge_pages(texts, &session);
        let report = CheckReport { against, knobs: drift.knobs, trial_boots, carried_over, pools, texts };
        // Of a named profile, too: what its entry was granted, and what is on trial, is in the journal.
        let hidden = session.hidden_state().is_some();
        let waiting = unconfirmed.iter().find(|waiting| !waiting.is_abandoned);
        let waiting = waiting.map(|waiting| on_trial(waiting, context));
        let line = monitor::line(&report, session.catalogue(), hidden, interrupted.first(), waiting);
        let is_ok = line.1 == monitor::Level::Ok;
        // What nothing takes back by itself any more, and an undo has left.
        let abandoned = unconfirmed.iter().find(|waiting| waiting.is_abandoned);
        let abandoned = abandoned.map(|waiting| format!("{waiting}: planish undo {}", waiting.entry));
        let left = || interrupted.iter().find(|cut| cut.how == Half::Left);
        let stuck = abandoned.or_else(|| left().map(|cut| format!("{cut}: planish {}", cut.cure())));
        let stuck = stuck.map(|told| monitor::critical(&told));
        let left = unfinished.first().map(monitor::unfinished);
        let changed = || changed_files.first().map(|unit| monitor::warning(&unit.to_string()));
        let unread = || unread_drop_ins.first().map(|unread| monitor::warning(&unread.to_string()));
        let lost = || lost_runs.first().map(|lost| monitor::warning(&lost.to_string()));
        let strange = || Some(monitor::warning(&of_no_entry(&strange_files).filter(|_| !hidden)?));
        let short = || report.texts.iter().find_map(|text| Some(monitor::warning(&text.finding()?)));
        let line = left
            .or_else(changed)
            .or_else(unread)
            .or_else(lost)
            .or_else(short)
            .or_else(strange)
            .filter(|_| is_ok)
            .unwrap_or(line);
        let line = stuck.unwrap_or(line);
        Ok::<_, Failure>(not_followed.iter().fold(line, |line, told| monitor::beside(line, told)))
    };
    let (text, code) = match looked() {
        // Of a recorded host the line to type names it, as everywhere.
        Ok((text, level)) => (context.here(&text), level as u8),
        Err(failure) => (monitor::unknown(&failure.message("", "").text), monitor::Level::Unknown as u8),
    };
    Ok(Answer { body: Body::Text(text), ..Answer::printed("check") }
        .code(code)
        .unprinted(monitor::Level::Unknown as u8))
}

/// Files of planish that nobody knows of: what was applied by a journal that is gone.
fn of_no_entry(strange_files: &[(String, Stranger)]) -> Option<String> {
    let unknown = strange_files.iter().filter(|(_, whose)| *whose == Stranger::Elsewhere);
    let files: Vec<&str> = unknown.map(|(file, _)| file.as_str()).collect();
    let is = if files.len() == 1 { "is" } else { "are" };
    (!files.is_empty()).then(|| format!("{} {is} of planish and {OF_NO_ENTRY}", files.join(" and ")))
}

fn told(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let mut checked = args.checked(&session)?;
    let reasons = checked.drift.knobs.iter_mut().filter_map(|knob| knob.because.as_mut());
    reasons.for_each(|because| *because = context.here(because));
    let report = CheckReport {
        against: args.source.clone(),
        knobs: std::mem::take(&mut checked.drift.knobs),
        trial_boots: std::mem::take(&mut checked.trial_boots),
        carried_over: std::mem::take(&mut checked.carried_over),
        pools: std::mem::take(&mut checked.pools),
        texts: on_huge_pages(std::mem::take(&mut checked.texts), &session),
    };
    let short: Vec<String> = report.texts.iter().filter_map(CheckTextRow::finding).collect();
    if checked.exit == Exit::Done && !short.is_empty() {
        checked.exit = Exit::Findings;
    }
    // Without a name what is compared is in the journal: unseen, nothing of it can be called fine.
    let is_unseen = args.source.is_none() && session.hidden_state().is_some() && checked.exit == Exit::Done;
    let exit = if is_unseen { Exit::Refused } else { checked.exit };
    let mut answer = context.answer(&report, session.catalogue()).exit(exit);
    answer = short.into_iter().fold(answer, Answer::note);
    if report.knobs.is_empty() && !args.exclude.is_empty() {
        answer = answer.note("the options leave out all that is wanted: nothing was compared");
    }
    if report.knobs.iter().any(|knob| knob.state == DriftState::PendingReboot) {
        answer = answer.note("a reboot is pending");
    }
    answer = checked.not_followed.take().into_iter().fold(answer, Answer::warning);
    if checked.is_of_another_host {
        answer =
            answer.warning("the plan is for another host: its places and sizes are held against this one");
    }
    answer = unsettled(answer, &checked, context);
    answer = once::notes(answer, &report.trial_boots, context);
    for line in &report.carried_over {
        answer = answer.note(format!("{line}: {}", line.cure()));
    }
    // Of what is half way nobody can say what is to be kept.
    let is_on_trial = !checked.unconfirmed.is_empty()
        || !checked.interrupted.is_empty()
        || report.trial_boots.iter().any(|boot| boot.state == TrialBootState::Running);
    let cure = keeping(args.source.as_deref(), &checked, &session).map(|line| context.root_line(&line));
    let told = cure.clone().unwrap_or_else(|| {
        let profile = named_for_root(args, &checked, &session);
        context.root_line(&format!("apply {profile} --persist"))
    });
    // What is on trial is persisted by no apply.
    let is_going = |knob: &KnobCheck| args.source.is_none() && is_left_in_use(knob, &checked.open);
    let lost = lost(&report, &checked.unkept, &is_going, &told).filter(|_| !is_on_trial);
    let unkept = if is_on_trial { Vec::new() } else { gone_at_boot(&checked.unkept) };
    let (is_lost, overwritten) = (lost.is_some(), overwritten(&report, &told, !is_on_trial));
    let is_cured =
        is_lost || report.knobs.iter().any(|knob| is_overwritten(knob) && !is_read_after_ours(knob));
    let by_others = by_others(&report, session.catalogue());
    for note in lost.into_iter().chain(unkept).chain(overwritten).chain(by_others).chain(foreign(&report)) {
        answer = answer.note(note);
    }
    if args.source.is_none() {
        answer =
            pages_left(&checked, context).into_iter().fold(answer, |answer, (_, told)| answer.note(told));
    }
    answer = left_out_then(args, &checked, context).into_iter().fold(answer, Answer::note);
    answer = not_of_this_journal(answer, &checked, &session, is_unseen);
    let cure = cure.filter(|_| is_cured && !is_on_trial && !has_drift(&report));
    let next = cure.unwrap_or_else(|| next(args, &checked, &report, &session, context));
    Ok(answer.next(next))
}

/// What to type next where nothing cures it at once.
fn next(
    args: &Args,
    checked: &Checked,
    report: &CheckReport,
    session: &Session,
    context: &Context,
) -> String {
    let left = pages_left(checked, context);
    match (checked.exit, &args.source) {
        (_, _) if !checked.interrupted.is_empty() => context.root_line(&checked.interrupted[0].cure()),
        (Exit::Done, _) if session.hidden_state().is_some() => context.root_line("check"),
        (Exit::Done, None) if !left.is_empty() => context.root_line(&format!("undo {}", left[0].0)),
        (Exit::Done, _) => context.line("log"),
        (_, _) if !checked.unfinished.is_empty() && !has_drift(report) => {
            context.root_line(&format!("undo {}", checked.unfinished[0].old))
        }
        (_, Some(source)) => {
            let words = was_allowed(checked) + &excluding(&args.exclude);
            context.line(&format!("plan {}{words}", quoted(source)))
        }
        (_, None) if context.globals.verbose => {
            let plan = sets_again(checked, report, session).map(|plan| context.line(&plan));
            plan.unwrap_or_else(|| context.line("log"))
        }
        (_, None) => context.line("check --verbose"),
    }
}

/// What shows how that is set again which somebody has changed since: a plan of the profile that all open entries have.
fn sets_again(checked: &Checked, report: &CheckReport, session: &Session) -> Option<String> {
    let first = checked.open.first().filter(|_| has_drift(report))?;
    let is_known = session.catalogue().profile_names().any(|name| *name == first.profile);
    let is_one = checked.open.iter().all(|entry| entry.profile == first.profile);
    let allowed: Vec<Allowed> = checked.open.iter().map(Entry::was_allowed).collect();
    (is_known && is_one).then(|| format!("plan {}{}", quoted(&first.profile), as_typed(&allowed)))
}

/// What names the profile that was compared with in a line for root.
fn named_for_root(args: &Args, checked: &Checked, session: &Session) -> String {
    let named = args.source.as_deref().filter(|source| source.ends_with(".toml"));
    let own = || checked.profile.as_deref().map(|profile| session.named_for_root(profile));
    named.map(str::to_owned).or_else(own).map_or("PROFILE".to_owned(), |name| quoted(&name))
}

/// What the page cache has of the programs whose text open entries see to. Nothing is read for that, and a recorded
/// host has none.
fn on_huge_pages(texts: Vec<HeldText>, session: &Session) -> Vec<CheckTextRow> {
    let row = |text: HeldText| {
        let cache = || text::cached(std::path::Path::new(&text.program));
        let file = text.replaced.map(|(_, file)| match file {
            TextFile::Ours => "ours",
            TextFile::Overtaken => "overtaken",
            TextFile::Removed => "removed",
            TextFile::Unknown => "unknown",
        });
        CheckTextRow {
            cache: session.host().is_live().then(cache).flatten(),
            entry: text.replaced.map(|(entry, _)| entry),
            file: file.map(str::to_owned),
            warmed_by: text.warmed,
            program: text.program,
        }
    };
    texts.into_iter().map(row).collect()
}

/// What the open entries of the profile were allowed, as it is typed: without it a plan would leave out what they set.
fn was_allowed(checked: &Checked) -> String {
    let own = checked.open.iter().filter(|entry| checked.profile.as_ref() == Some(&entry.profile));
    as_typed(&own.map(Entry::was_allowed).collect::<Vec<_>>())
}

fn as_typed(allowed: &[Allowed]) -> String {
    let classes: BTreeSet<Class> = allowed.iter().flat_map(|allowed| &allowed.classes).copied().collect();
    let knobs: BTreeSet<&str> =
        allowed.iter().flat_map(|allowed| &allowed.knobs).map(KnobId::as_str).collect();
    allowing(&classes, knobs)
}

/// What entries of the profile left to others, where it is compared all the same and something was found.
fn left_out_then(args: &Args, checked: &Checked, context: &Context) -> Option<String> {
    let source = args.source.as_deref().filter(|_| checked.exit == Exit::Findings)?;
    let own = checked.open.iter().filter(|entry| checked.profile.as_ref() == Some(&entry.profile));
    let left: BTreeSet<&str> = own.flat_map(|entry| excluded(&entry.command)).collect();
    let left = left.into_iter().filter(|name| !args.exclude.iter().any(|own| own == name));
    let left: Vec<String> = left.map(str::to_owned).collect();
    if left.is_empty() || Source::named(source).is_plan_file() {
        return None;
    }
    let words = excluding([&args.exclude[..], &left].concat());
    let check = context.line(&format!("check {}{words}", quoted(source)));
    Some(format!(
        "it was applied without {}, which this check holds against the host: {check}",
        left.join(", ")
    ))
}

/// Tells of entries that are neither whole and there to stay nor gone.
fn unsettled(mut answer: Answer, checked: &Checked, context: &Context) -> Answer {
    for waiting in &checked.unconfirmed {
        answer = answer.note(on_trial(waiting, context));
    }
    for left in &checked.unfinished {
        answer = answer.note(format!("{left}: {}", context.root_line(&format!("undo {}", left.old))));
    }
    // One that a timer waits for is told above.
    let is_waited_for = |id| checked.unconfirmed.iter().any(|waiting| waiting.entry == id);
    for cut in checked.interrupted.iter().filter(|cut| !is_waited_for(cut.entry)) {
        answer = answer.note(format!("{cut}: {}", context.root_line(&cut.cure())));
    }
    for unit in &checked.changed_files {
        answer = answer.note(unit.to_string());
    }
    for unread in &checked.unread_drop_ins {
        answer = answer.note(unread.to_string());
    }
    for lost in &checked.lost_runs {
        answer = answer.note(lost.to_string());
    }
    answer
}

/// Tells of what is of planish here and of no entry that can be seen; where the exit code is for that alone, too.
fn not_of_this_journal(mut answer: Answer, checked: &Checked, session: &Session, is_unseen: bool) -> Answer {
    // Without the journal nobody can say whose a file is.
    if let Some(folder) = session.hidden_state() {
        let told = format!("what root applied is in {}, which only root may read", folder.display());
        return answer.warning(match is_unseen {
            true => format!("exit code 3: {told}: nothing of it was compared"),
            false => told,
        });
    }
    for (file, whose) in &checked.strange_files {
        let host = session.host();
        let is_there = |path: &str| host.read_link(path).is_some() || host.exists(path);
        answer = answer.note(strange_file(file, *whose, &is_there));
    }
    for (entry, lines) in &checked.strange_tags {
        answer = answer.note(strange_tag(*entry, lines));
    }
    answer
}

/// What is said of a file of planish that the journal knows nothing of.
const OF_NO_ENTRY: &str =
    "of no entry of this journal: an apply with another --state wrote it, or with a journal that is gone";

/// Whose a file of planish is that no open entry has lines in, and what takes it away.
fn strange_file(file: &str, whose: Stranger, is_there: &dyn Fn(&str) -> bool) -> String {
    match whose {
        Stranger::Rest(entry) => format!(
            "what others put into {file} is read at each boot: the undo of entry {entry} took out what was planish's \
             and left it; before the next apply: {}",
            pipeline::move_aside(file, is_there)
        ),
        // Force would take what they wrote along.
        Stranger::Changed(entry) => format!(
            "someone had changed {file}, and the undo of entry {entry} left it, so that it is read at each boot; to \
             take it out and keep what they wrote: mv {file} {file}.mine"
        ),
        Stranger::Elsewhere => format!(
            "{file} is of planish and {OF_NO_ENTRY}; `log` and `undo` with that --state tell of it and take it back; \
             where there is none, to take it out: mv {file} {file}.mine"
        ),
    }
}

/// Whose boot parameters are that name an entry which is not in the journal, and what takes them out.
fn strange_tag(entry: EntryId, lines: &[String]) -> String {
    format!(
        "{} has boot parameters of planish's entry {entry}, which this journal does not have: an apply with another \
         --state gave them, or with a journal that is gone; `log` and `undo` with that --state tell of them and take \
         them back; without it, take them out by hand, and what names the entry with them",
        lines.join(", ")
    )
}

/// Whether a confirm is what to type. Whoever did not come to it before the timer died may have been cut off by the
/// very values that it would keep.
pub(crate) fn keeps(waiting: &Unconfirmed) -> bool {
    waiting.is_whole && !waiting.is_abandoned
}

/// What goes by itself, when, and what keeps it.
pub(crate) fn on_trial(waiting: &Unconfirmed, context: &Context) -> String {
    let entry = waiting.entry;
    let cure = if keeps(waiting) { "confirm".to_owned() } else { format!("undo {entry}") };
    format!("{waiting}: {}", context.root_line(&cure))
}

/// The apply that keeps what runs: as it was allowed, and with files for the next boot. `None` where nobody can say
/// which, or where the files are there already.
///
/// A profile in a file of its own goes by that file; a plan file is for the host as it was before its apply, and its
/// profile is named.
fn keeping(source: Option<&str>, checked: &Checked, session: &Session) -> Option<String> {
    let is_of = |entry: &&Entry| {
        // Nobody wants to keep what was taken back, and is there since it is in use.
        let is_going = |step: &EntryStep| source.is_none() && step.is_left_in_use();
        let is_set = |step: &EntryStep| !step.knob.is_persistence() && !step.is_undone() && !is_going(step);
        let sets = entry.steps.iter().any(is_set);
        sets && checked.profile.as_ref().is_none_or(|profile| *profile == entry.profile)
    };
    let entries: Vec<&Entry> = checked.open.iter().filter(is_of).collect();
    let profile = match (&checked.profile, entries.as_slice()) {
        (Some(profile), _) => profile,
        (None, [first, rest @ ..]) if rest.iter().all(|entry| entry.profile == first.profile) => {
            &first.profile
        }
        _ => return None,
    };
    let of_profile = checked.open.iter().filter(|entry| entry.profile == *profile);
    let mut of_profile = of_profile.flat_map(|entry| &entry.steps).filter(|step| !step.is_undone());
    let own = [Persisted::OWN_FILE, Persisted::OWN_RULES, Persisted::OWN_HOLDER];
    if of_profile.any(|step| own.iter().any(|name| step.place.ends_with(name))) {
        return None;
    }
    let steps = || entries.iter().flat_map(|entry| &entry.steps).filter(|step| !step.is_undone());
    let of_entry = || entries.last().and_then(|entry| file_of(&entry.command));
    let file = source.filter(|source| source.ends_with(".toml")).or_else(of_entry);
    let named = file.map_or_else(|| session.named_for_root(profile), str::to_owned);
    let mut line = format!("apply {} --persist", quoted(&named));
    // As it was allowed then, and not by the names of what was set: of a placement also what waits for a reboot must be
    // allowed, or none of it is, and to name a knob allows more than its class.
    let allowed: Vec<Allowed> = entries.iter().map(|entry| entry.was_allowed()).collect();
    let classes: BTreeSet<Class> = allowed.iter().flat_map(|allowed| &allowed.classes).copied().collect();
    let knobs: BTreeSet<&str> =
        allowed.iter().flat_map(|allowed| &allowed.knobs).map(KnobId::as_str).collect();
    line += &allowing(&classes, knobs);
    if let Some(service) = steps().find_map(|step| step.service.as_ref()) {
        line += &format!(" --service {}", quoted(service));
    }
    let left: BTreeSet<&str> = entries.iter().flat_map(|entry| excluded(&entry.command)).collect();
    line += &excluding(left);
    Some(line)
}

/// The file of a profile that a command line names, as far as it can be told from its words.
fn file_of(command: &str) -> Option<&str> {
    command.split(' ').find(|word| word.contains('/') && word.ends_with(".toml") && !word.starts_with('-'))
}

/// What a command line left out.
fn excluded(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split(' ').zip(command.split(' ').skip(1));
    let named = words.filter(|(option, _)| *option == "--exclude").map(|(_, name)| name);
    named.chain(command.split(' ').filter_map(|word| word.strip_prefix("--exclude=")))
}

/// Whether something that was wanted is not so now.
fn has_drift(report: &CheckReport) -> bool {
    report.knobs.iter().any(|knob| knob.state == DriftState::Drift && knob.wanted.is_some())
}

/// Whether pages that were in use when they were taken back are all that open entries hold of a place.
fn is_left_in_use(knob: &KnobCheck, open: &[Entry]) -> bool {
    let own = open.iter().flat_map(|entry| &entry.steps).filter(|step| step.place == knob.place);
    let mut own = own.filter(|step| !step.is_undone()).peekable();
    own.peek().is_some() && own.all(EntryStep::is_left_in_use)
}

/// Entries that are undone but for huge pages which were in use then, or which a line of others gave, each with what it
/// takes to be rid of it. One whose place another one is to take is told as that.
fn pages_left(checked: &Checked, context: &Context) -> Vec<(EntryId, String)> {
    let told = |entry: &Entry| {
        let steps = entry.steps.iter().filter(|step| step.is_left_in_use());
        let left = steps.filter_map(|step| Some((step, step.undone.as_ref()?)));
        // By knob, those that were in use; and by line, those that it gave.
        let (mut used, mut given) =
            (BTreeMap::<&KnobId, u64>::new(), BTreeMap::<(&str, &KnobId), LineClaim>::new());
        for (step, undone) in left {
            let in_use = step.pages_in_force();
            if in_use > 0 {
                *used.entry(&step.knob).or_default() += in_use;
            }
            if let Some(claim) = &undone.claim {
                let sum = given.entry((&claim.source, &step.knob));
                sum.and_modify(|sum| sum.pages += claim.pages).or_insert_with(|| claim.clone());
            }
        }
        let (id, undo) = (entry.id, context.root_line(&format!("undo {}", entry.id)));
        let in_use =
            used.iter().map(|(knob, pages)| format!("{pages} of {knob}")).collect::<Vec<_>>().join(", ");
        let in_use = (!used.is_empty()).then(|| {
            format!(
                "entry {id} is undone but for huge pages that were in use ({in_use}): once nobody uses them: {undo}"
            )
        });
        let given = given.iter().map(|((_, knob), claim)| {
            format!(
                "entry {id} is undone but for {} of {knob}, since {}: {}: {undo}; to have them back all the same: \
                 {undo} --force",
                claim.pages,
                claim.line(),
                claim.until()
            )
        });
        in_use.into_iter().chain(given).map(|text| (id, text)).collect::<Vec<_>>()
    };
    let is_replaced = |entry: &&Entry| checked.unfinished.iter().any(|left| left.old == entry.id);
    checked.open.iter().filter(|entry| !is_replaced(entry)).flat_map(told).collect()
}

/// What runs as wanted, and only until the next boot, although a file of ours would keep it.
fn lost(
    report: &CheckReport,
    unkept: &[Unpersisted],
    is_going: &dyn Fn(&KnobCheck) -> bool,
    cure: &str,
) -> Option<String> {
    let is_unkept = |knob: &KnobCheck| unkept.iter().any(|left| left.place == knob.place);
    let lost = report.knobs.iter().filter(|knob| knob.state == DriftState::LostAtBoot);
    // The cure would be told again after it was typed.
    let lost = lost.filter(|knob| !is_unkept(knob) && !is_read_after_ours(knob) && !is_going(knob));
    let count = lost.clone().count();
    // Where files say otherwise, their rows name them.
    lost.into_iter()
        .any(|knob| knob.next_boot.is_none())
        .then(|| format!("{} will not outlast a reboot: {cure}", units::count(count, "place")))
}

fn is_overwritten(knob: &KnobCheck) -> bool {
    knob.state == DriftState::LostAtBoot && knob.next_boot.is_some()
}

/// Whether the line is in a file that comes after ours by its name, so that no file of ours helps. Of a drop-in of a
/// unit nothing else is told.
fn is_read_after_ours(knob: &KnobCheck) -> bool {
    let file_of = |line: &Option<BootValue>| line.as_ref().and_then(|line| line.file.clone());
    let file = file_of(&knob.next_boot).unwrap_or_default();
    if Persisted::own_file(&knob.place).is_some() {
        // What wins at the next start may be gone at the next boot.
        return file_of(&knob.persisted).unwrap_or(file) != knob.place;
    }
    let name = file.rsplit('/').next().unwrap_or_default();
    file.contains("/sysctl.d/") && name > Persisted::OWN_FILE
}

/// Whether the line is one that planish wrote: an older entry has it there, and the journal holds it.
pub(crate) fn is_brought_back(knob: &KnobCheck) -> bool {
    let is_ours = |found: &BootValue| Persisted::own_file(&found.source).is_some();
    let is_back = is_overwritten(knob) && knob.next_boot.as_ref().is_some_and(is_ours);
    is_back && !is_of_older_menu(knob) && !is_read_after_ours(knob)
}

/// Whether the line is right, and the menu of the boot loader was made before it was written.
fn is_of_older_menu(knob: &KnobCheck) -> bool {
    let Some((line, boot)) = knob.persisted.as_ref().zip(knob.next_boot.as_ref()) else { return false };
    line.source == boot.source && line.value != boot.value
}

/// Places that are named before the others are only counted.
const NAMED_MAX: usize = 3;

/// What runs as wanted, and a file of the host will set otherwise: the reason for an exit code that no row shows red.
fn overwritten(report: &CheckReport, apply: &str, is_to_stay: bool) -> Option<String> {
    let found: Vec<&KnobCheck> = report.knobs.iter().filter(|knob| is_overwritten(knob)).collect();
    let why = |knob: &&KnobCheck| {
        format!("{} ({})", knob.knob, knob.because.as_deref().unwrap_or("by another file"))
    };
    let mut named: Vec<String> = found.iter().take(NAMED_MAX).map(why).collect();
    if found.len() > NAMED_MAX {
        named.push(format!("and {} more", found.len() - NAMED_MAX));
    }
    let cure = if is_to_stay { cures(&found, apply) } else { String::new() };
    (!found.is_empty()).then(|| {
        let places = units::count(found.len(), "place");
        let named = named.join(", ");
        let is_drift = |knob: &&KnobCheck| {
            knob.state == DriftState::Drift && knob.wanted.is_some() && !monitor::runs_as_wanted(knob)
        };
        let drift: Vec<&KnobId> = report.knobs.iter().filter(is_drift).map(|knob| &knob.knob).collect();
        let drift = match drift.len() {
            0 => String::new(),
            count => format!("{} not as wanted: {}; ", units::count(count, "place"), knobs_named(&drift)),
        };
        format!(
            "exit code 1: {drift}{places} as wanted now will be set otherwise at the next {}: {named}{cure}",
            monitor::when(&found)
        )
    })
}

/// What helps against the lines, each by whose it is: a line of ours is in the journal, and goes by it alone.
fn cures(found: &[&KnobCheck], apply: &str) -> String {
    let mut cures = String::new();
    if found.iter().any(|knob| is_brought_back(knob)) {
        cures += &format!("; lines of older entries are taken over by: {apply}");
    }
    // The reason of a drop-in says so by itself.
    let behind = found.iter().filter(|knob| is_read_after_ours(knob));
    let behind = behind.filter(|knob| Persisted::own_file(&knob.place).is_none());
    let behind: BTreeSet<&str> =
        behind.filter_map(|knob| Some(knob.next_boot.as_ref()?.source.as_str())).collect();
    if !behind.is_empty() {
        let lines = behind.into_iter().map(Persisted::take_out).collect::<Vec<_>>().join(", ");
        cures += &format!("; {lines}: it is read after {}, which --persist writes", Persisted::OWN_FILE);
    }
    cures
}

/// What runs as wanted, and another program will write over at the boot whatever files say: who, by which of its files,
/// and what to type so that it lets go.
fn by_others(report: &CheckReport, catalogue: &Catalogue) -> Vec<String> {
    let mut of_writer: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for by in report.knobs.iter().filter_map(|knob| knob.overwritten_by.as_ref()) {
        let (count, files) = of_writer.entry(&by.writer).or_default();
        *count += 1;
        files.extend(by.files.iter().map(String::as_str));
    }
    let told = |(writer, (count, files)): (&str, (usize, BTreeSet<&str>))| {
        let places = units::count(count, "place");
        let files: Vec<&str> = files.into_iter().collect();
        let named = if files.is_empty() { String::new() } else { format!(" ({})", files.join(", ")) };
        let row = catalogue.writer(writer);
        let cures = row.iter().flat_map(|row| &row.hand_over).filter(|text| !text.contains('{'));
        // A drop-in names no unit of its own: for a line of it nobody has to do without the whole unit.
        let (drop_ins, others): (Vec<&str>, Vec<&str>) =
            files.iter().copied().partition(|file| file.contains(".d/") && file.contains("/systemd/system/"));
        let (of_packages, own): (Vec<&str>, Vec<&str>) =
            drop_ins.into_iter().partition(|file| !Persisted::take_out(file).starts_with("take out"));
        let mut of_file: Vec<String> = of_packages.into_iter().map(Persisted::take_out).collect();
        if !own.is_empty() {
            of_file.push(format!("take the line that sets it out of {}", own.join(", ")));
        }
        let of_file =
            (!of_file.is_empty()).then(|| format!("{}, and: systemctl daemon-reload", of_file.join("; ")));
        let of_row = cures.filter(|_| of_file.is_none() || !others.is_empty()).cloned();
        let cure = of_file.iter().cloned().chain(of_row).collect::<Vec<_>>().join(", or ");
        format!(
            "exit code 1: {places} as wanted now will be written over at the boot by {writer}{named}: {cure}"
        )
    };
    of_writer.into_iter().map(told).collect()
}

/// What other files of the host want otherwise, and planish never set.
fn foreign(report: &CheckReport) -> Option<String> {
    let foreign = |knob: &&KnobCheck| knob.state == DriftState::Drift && knob.wanted.is_none();
    let count = report.knobs.iter().filter(foreign).count();
    (count > 0).then(|| {
        let places = units::count(count, "place");
        format!(
            "{places} that planish never set: the host's own files say otherwise, which is no drift of ours"
        )
    })
}
