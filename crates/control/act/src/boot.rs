//! Files of a boot loader: arguments of the kernel are put in, and taken out again whatever else changed in the file.
//!
//! The insertion is found again by what was inserted and not by where: a kernel that was installed since, or an
//! administrator's line, stays. Where the insertion is no longer there as it was made, the file is theirs.

use planish_boot::{Format, generated};
use planish_model::{
    BootFormat, Entry, EntryId, EntryStep, Generator, OnceFormat, Outcome, OutcomeKind, Undo, bootline,
};

use crate::error::SinkError;
use crate::in_chars::{InChars, step_in_chars, told_of_chars};
use crate::once;
use crate::perform::kind_of;
use crate::sink::Sink;

/// What is told of a file that has something else in it, too, than what was taken out.
pub const DIFFERS: &str = "it differs otherwise from what it was before: that was kept";

/// What is told of a menu that was made anew, before the arguments that it has lost.
const NO_LONGER: &str = "its new menu no longer gives ";

/// Whether a menu was made anew that has lost arguments of others.
#[must_use]
pub fn has_lost(outcome: &Outcome) -> bool {
    outcome.detail.as_deref().is_some_and(|detail| detail.contains(NO_LONGER))
}

/// How the text of a file is changed.
#[must_use]
pub fn format_of(format: BootFormat) -> Format {
    match format {
        BootFormat::GrubDefaults => Format::GrubDefaults,
        BootFormat::GrubEnv => Format::GrubEnv,
        BootFormat::Entry => Format::Entry,
        BootFormat::KernelCmdline => Format::KernelCmdline,
    }
}

/// The format of a step of the journal.
fn format(step: &EntryStep) -> Option<Format> {
    BootFormat::of_knob(step.knob.as_str()).map(format_of)
}

/// Puts the arguments of a step into its file, with a tag that names its entry, and has the menu made anew.
pub fn add(step: &EntryStep, id: EntryId, sink: &dyn Sink) -> Outcome {
    if let Some(format) = OnceFormat::of_knob(step.knob.as_str()) {
        return once::add(format, step, sink);
    }
    let mut outcome = Outcome::new(step.knob.clone(), &step.place, OutcomeKind::Done);
    let Some(format) = format(step) else {
        return failed(outcome, "its format is not known to this planish");
    };
    let text = match sink.read_file(&step.place) {
        Ok(Some(text)) => text,
        Ok(None) => {
            outcome.outcome = OutcomeKind::Vanished;
            return outcome;
        }
        Err(error) => return refused(outcome, &error),
    };
    // A confirm that was killed, or whose menu could not be made, has put them in already.
    if !is_there(format, &text, step) {
        let edited = match planish_boot::insert_tagged(format, &text, &step.wanted, id.0) {
            Ok(edited) => edited,
            Err(odd) => return failed(outcome, &odd.to_string()),
        };
        if let Some(unwritten) = write(&outcome, &edited, sink) {
            return unwritten;
        }
    }
    generate(outcome, step.generator, Some(&step.wanted), &[&step.wanted], sink)
}

/// More texts than so many open entries can make of one file are not looked for.
const TEXTS_MAX: usize = 64;

/// Puts GRUB's environment block together where a power cut came in the middle of a write of it: half of it is the
/// text before and half the one behind, of a step or of the undo of one, also of one that lies below newer ones. What
/// was put in without a word in the journal goes; what was about to go stays, and its undo goes on. What GRUB has
/// noted in a boot since stays, too. Whatever else the block is, it is left alone. Whether it was so.
///
/// # Errors
/// The file and what the kernel says.
pub fn mend(place: &str, entries: &[Entry], sink: &dyn Sink) -> Result<bool, SinkError> {
    let open = entries.iter().filter(|entry| entry.is_open());
    let all = open.flat_map(|entry| entry.steps.iter().map(|step| (entry.id, step)));
    let is_in_it = |step: &EntryStep| step.undo == Undo::Edit && step.place == place && is_of_block(step);
    let steps: Vec<(EntryId, &EntryStep)> = all.filter(|(_, step)| is_in_it(step)).collect();
    let Some((id, newest)) = steps.last() else { return Ok(false) };
    let Some(now) = sink.read_file(place)? else { return Ok(false) };
    let newest = resolved(newest, *id, entries);
    let before = newest.original().map(|original| planish_boot::as_grub_noted(&original.value, &now));
    let Some(before) = before else { return Ok(false) };
    // Entries go in any order: every text that a write of planish can have begun or ended with.
    let mut texts = put_in(&newest, *id, &before);
    let mut writes = Vec::new();
    let mut at = 0;
    while at < texts.len().min(TEXTS_MAX) {
        for (id, step) in &steps {
            let Some(without) = taken_out(step, *id, &texts[at]) else { continue };
            writes.push((texts[at].clone(), without.clone(), *step));
            if !texts.contains(&without) {
                texts.push(without);
            }
        }
        at += 1;
    }
    if texts.contains(&now) {
        return Ok(false);
    }
    let torn = writes.iter().find(|(with, without, _)| planish_boot::is_env_torn(&now, with, without));
    let Some((with, without, step)) = torn else { return Ok(false) };
    let text = if step.outcome.is_some() { with } else { without };
    sink.edit_file(place, text.as_bytes())?;
    Ok(true)
}

/// Whether a step is one of GRUB's environment block.
fn is_of_block(step: &EntryStep) -> bool {
    let once = OnceFormat::of_knob(step.knob.as_str());
    once == Some(OnceFormat::Block) || format(step) == Some(Format::GrubEnv)
}

/// The environment block with what a step puts in: with its tag, and as versions wrote it that had none.
fn put_in(step: &EntryStep, id: EntryId, text: &str) -> Vec<String> {
    let put_in = match format(step) {
        Some(format) => [
            planish_boot::insert_tagged(format, text, &step.wanted, id.0).ok(),
            planish_boot::insert(format, text, &step.wanted).ok(),
        ],
        None => [planish_boot::once::arm(Some(text)).ok(), None],
    };
    put_in.into_iter().flatten().collect()
}

/// The environment block without it.
fn taken_out(step: &EntryStep, id: EntryId, text: &str) -> Option<String> {
    let before = step.original().map(|original| original.value.as_str());
    match format(step) {
        Some(format) => planish_boot::remove_tagged(format, text, &step.wanted, id.0),
        None => planish_boot::once::disarm(text, before),
    }
}

/// Whether a text has the arguments of a step in it already, put there by this step.
#[must_use]
pub fn is_in(step: &EntryStep, text: &str) -> bool {
    format(step).is_some_and(|format| is_there(format, text, step))
}

/// Whether a text holds the insertion of a step. Somebody may have had the same arguments there before: only one more
/// than they had is ours.
fn is_there(format: Format, text: &str, step: &EntryStep) -> bool {
    let original = step.original().map(|original| original.value.as_str());
    count(format, text, &step.wanted) > original.map_or(0, |original| count(format, original, &step.wanted))
}

/// A step with the original that counts now: without what older entries had put in there and have taken out since. Of
/// two that put in the same words the newer one would take its own for those that it had found.
#[must_use]
pub fn resolved(step: &EntryStep, id: EntryId, entries: &[Entry]) -> EntryStep {
    let mut step = step.clone();
    let Some(format) = format(&step) else { return step };
    let older = entries.iter().filter(|entry| entry.id < id);
    let older = older.flat_map(|entry| entry.steps.iter().map(|step| (entry.id, step)));
    let taken_out = older.filter(|(_, other)| {
        let undone = other.undone.as_ref().map(|undone| undone.outcome);
        other.undo == Undo::Edit && other.place == step.place && undone == Some(OutcomeKind::Done)
    });
    let taken_out: Vec<(EntryId, &EntryStep)> = taken_out.collect();
    let own = step.originals.iter_mut().filter(|original| original.place == step.place);
    for original in own {
        for (id, other) in taken_out.iter().filter(|(_, other)| other.knob == step.knob) {
            if is_there(format, &original.value, other)
                && let Some(without) =
                    planish_boot::remove_tagged(format, &original.value, &other.wanted, id.0)
            {
                original.value = without;
            }
        }
    }
    step
}

/// Takes the arguments of a step out of its file, and its tag with them, and has the menu made anew.
/// What other entries of `known` gave the file is no difference.
pub fn remove(step: &EntryStep, id: EntryId, known: &[Entry], force: bool, sink: &dyn Sink) -> Outcome {
    if let Some(format) = OnceFormat::of_knob(step.knob.as_str()) {
        return once::remove(format, step, force, sink);
    }
    match InChars::of(&step.place, sink) {
        Some(sink) => told_of_chars(take_out(&step_in_chars(step), id, known, force, &sink)),
        None => take_out(step, id, known, force, sink),
    }
}

/// The same of a file in either form.
fn take_out(step: &EntryStep, id: EntryId, known: &[Entry], force: bool, sink: &dyn Sink) -> Outcome {
    let mut outcome = Outcome::new(step.knob.clone(), &step.place, OutcomeKind::Done);
    if step.outcome.as_ref().is_some_and(|done| done.outcome == OutcomeKind::Satisfied) {
        return Outcome { outcome: OutcomeKind::Satisfied, ..outcome };
    }
    let Some(format) = format(step) else {
        return failed(outcome, "its format is not known to this planish");
    };
    let original = step.original().map(|original| original.value.as_str());
    let now = match sink.read_file(&step.place) {
        Ok(Some(text)) => text,
        Ok(None) => {
            outcome.outcome = OutcomeKind::Vanished;
            return outcome;
        }
        Err(error) => return refused(outcome, &error),
    };
    // Who changed the arguments, or took them out, may have left the tag, or changed it too: it names nothing of ours.
    let without_tag = |text: String| without_tag(format, &text, original, (&step.wanted, id)).unwrap_or(text);
    let bare = without_tag(now.clone());
    let as_before = original == Some(bare.as_str());
    // Behind a kill nobody knows whether they were put in: what others put in since may be the same words.
    let beside_others = || without_others(format, &now, (&step.place, id), known);
    let ours =
        is_there(format, &now, step) && (step.outcome.is_some() || is_there(format, &beside_others(), step));
    let without = ours.then(|| without_own(format, &now, (step, id), known)).flatten();
    let mut makes_menu = true;
    let target = match without.map(without_tag) {
        Some(without) => {
            let bare = |text: &str| without_others(format, text, (&step.place, id), known);
            if original.map(bare) != Some(bare(&without)) {
                outcome.detail = Some(DIFFERS.to_owned());
            }
            without
        }
        None if as_before => {
            outcome.outcome = OutcomeKind::Satisfied;
            bare
        }
        None if force && original.is_some() => original.unwrap_or_default().to_owned(),
        // Taken out by an undo that could not have the menu made.
        None if step.undone.as_ref().is_some_and(|undone| undone.outcome == OutcomeKind::Failed) => bare,
        // The file is as this undo would leave it: by an undo that a kill cut short, or by somebody. The menu may still
        // be the old one.
        None if !force && original.is_some_and(|original| holds_nothing(&bare, original, &step.wanted)) => {
            outcome.outcome = OutcomeKind::Satisfied;
            outcome.detail = Some(DIFFERS.to_owned());
            bare
        }
        // A kill before the write, and somebody else's edit since: nothing of ours is there.
        None if step.outcome.is_none() => {
            outcome.outcome = OutcomeKind::Satisfied;
            makes_menu = false;
            bare
        }
        None => {
            outcome.outcome = OutcomeKind::Theirs;
            outcome.detail =
                Some(format!("someone changed or removed `{}` here: theirs was kept", step.wanted));
            makes_menu = false;
            bare
        }
    };
    if target != now
        && let Some(unwritten) = write(&outcome, &target, sink)
    {
        return unwritten;
    }
    if makes_menu { generate(outcome, step.generator, None, &[&step.wanted], sink) } else { outcome }
}

/// A text without what a step put in, beside what others did.
fn without_own(
    format: Format,
    text: &str,
    (step, id): (&EntryStep, EntryId),
    known: &[Entry],
) -> Option<String> {
    let others = runs_of_others((&step.place, id), known).map(|(_, other)| other.wanted.as_str());
    let others: Vec<&str> = others.collect();
    planish_boot::remove_tagged_beside(format, text, (&step.wanted, id.0), &others)
}

/// What other entries that are open gave a file, the newest first.
fn runs_of_others<'e>(
    (place, id): (&'e str, EntryId),
    known: &'e [Entry],
) -> impl Iterator<Item = (EntryId, &'e EntryStep)> {
    let others = known.iter().rev().filter(move |entry| entry.id != id && entry.is_open());
    let steps = others.flat_map(|entry| entry.steps.iter().map(|step| (entry.id, step)));
    steps.filter(move |(_, step)| step.undo == Undo::Edit && step.place == place && !step.is_undone())
}

/// A text without what other entries that are open gave the file.
fn without_others(format: Format, text: &str, own: (&str, EntryId), known: &[Entry]) -> String {
    runs_of_others(own, known).fold(text.to_owned(), |text, (id, step)| {
        let is_there = is_there(format, &text, step);
        let without = is_there.then(|| planish_boot::remove_tagged(format, &text, &step.wanted, id.0));
        without.flatten().unwrap_or(text)
    })
}

/// Writes the file of an outcome, and looks at it; what comes of that where the text is not there.
fn write(outcome: &Outcome, text: &str, sink: &dyn Sink) -> Option<Outcome> {
    if let Err(error) = sink.edit_file(&outcome.place, text.as_bytes()) {
        return Some(refused(outcome.clone(), &error));
    }
    match sink.read_file(&outcome.place) {
        Ok(Some(now)) if now == text => None,
        Ok(_) => Some(failed(outcome.clone(), "it does not read back as it was written")),
        Err(error) => Some(refused(outcome.clone(), &error)),
    }
}

/// A text without the tag of an entry, where it has one more than it had before.
fn without_tag(
    format: Format,
    now: &str,
    original: Option<&str>,
    (arguments, id): (&str, EntryId),
) -> Option<String> {
    let without = |text: &str| planish_boot::remove_tag(format, text, arguments, id.0);
    let count = |text: &str| std::iter::successors(without(text), |text| without(text)).count();
    if count(now) > original.map_or(0, count) { without(now) } else { None }
}

/// Has the menu made anew where a program makes it, and looks at what came of it: after an edit, that every normal
/// entry gives `given`. The entries for recovery never do, so that there is a way to boot without it. What the old menu
/// gave, and neither the new one nor `ours`, is told: somebody had typed it there, and no source had it.
#[must_use]
pub fn generate(
    mut outcome: Outcome,
    generator: Option<Generator>,
    given: Option<&str>,
    ours: &[&str],
    sink: &dyn Sink,
) -> Outcome {
    let Some(generator) = generator else { return outcome };
    let old = sink.read_file(generator.output()).ok().flatten().unwrap_or_default();
    match sink.generate(generator) {
        Ok(true) => {}
        Ok(false) => {
            let told = format!("a recorded host runs no programs: {} makes the menu of it", generator.line());
            outcome.detail = Some(join(outcome.detail.take(), told));
            return outcome;
        }
        Err(error) => return refused(outcome, &error),
    }
    let menu = generator.output();
    let new = sink.read_file(menu);
    if let Ok(Some(new)) = &new
        && let Some(told) = lost(&old, new, ours, generator)
    {
        outcome.detail = Some(join(outcome.detail.take(), told));
    }
    let Some(given) = given else { return outcome };
    match new {
        Ok(Some(text)) => match generated::given(&text, given) {
            (_, 0) => failed(
                outcome,
                &format!(
                    "{menu} has no entry of this system after {}: type it and read what it says; /etc/default/grub and \
                     /etc/grub.d are what it reads",
                    generator.line()
                ),
            ),
            (some, all) if some == all => outcome,
            (some, all) => failed(outcome, &untaken(menu, &text, (some, all), given, generator)),
        },
        Ok(None) => failed(outcome, &format!("{} made no {menu}", generator.line())),
        Err(error) => refused(outcome, &error),
    }
}

/// What is told of arguments that a new menu has lost.
fn lost(old: &str, new: &str, ours: &[&str], generator: Generator) -> Option<String> {
    let mut lost = generated::lost(old, new);
    lost.retain(|word| !ours.iter().any(|ours| ours.split_whitespace().any(|own| own == word)));
    let lost = lost.join(" ");
    (!lost.is_empty()).then(|| {
        format!(
            "{NO_LONGER}`{lost}`, which the old one gave and no file gives that it is made from: where that is to \
             stay, put it into GRUB_CMDLINE_LINUX of /etc/default/grub, then type `{}`",
            generator.line()
        )
    })
}

/// What a menu has in the place of what its sources say, and what to look at.
fn untaken(menu: &str, text: &str, (some, all): (usize, usize), given: &str, generator: Generator) -> String {
    let holds =
        |entry: &generated::MenuEntry| format!(" {} ", entry.arguments).contains(&format!(" {given} "));
    let lacks = |entry: &generated::MenuEntry| !entry.recovery && !holds(entry);
    let first = generated::entries(text).into_iter().find(lacks);
    let first = first.map(|entry| format!(": {menu}:{} gives `{}`", entry.line, entry.arguments.trim()));
    format!(
        "{some} of {all} entries of {menu} give `{given}` after {}{}; look at what sets GRUB_CMDLINE_LINUX_DEFAULT \
         after ours, /etc/default/grub.d/*.cfg and the scripts of /etc/grub.d, and type `{}` to see what it says",
        generator.line(),
        first.unwrap_or_default(),
        generator.line()
    )
}

/// Whether a text names no parameter of some arguments more often than it did before they were put in.
fn holds_nothing(now: &str, original: &str, arguments: &str) -> bool {
    let count = |text: &str, name: &str| {
        // What a tag names is given by the line below it, and by nothing else.
        let lines = text.lines().filter(|line| !planish_boot::is_tag(line));
        let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "\"'".contains(c)));
        words.filter(|word| bootline::same_name(bootline::parts(word).0, name)).count()
    };
    bootline::arguments(arguments)
        .map(|argument| bootline::parts(argument).0)
        .all(|name| count(now, name) <= count(original, name))
}

/// How often a text holds an insertion.
fn count(format: Format, text: &str, arguments: &str) -> usize {
    let mut rest = text.to_owned();
    let mut count = 0;
    while let Some(without) = planish_boot::remove(format, &rest, arguments) {
        rest = without;
        count += 1;
    }
    count
}

fn join(before: Option<String>, more: String) -> String {
    match before {
        Some(before) => format!("{before}; {more}"),
        None => more,
    }
}

fn failed(mut outcome: Outcome, why: &str) -> Outcome {
    outcome.outcome = OutcomeKind::Failed;
    outcome.detail = Some(why.to_owned());
    outcome
}

fn refused(mut outcome: Outcome, error: &SinkError) -> Outcome {
    outcome.outcome = kind_of(error);
    outcome.detail = Some(error.in_full());
    outcome
}

#[cfg(test)]
mod tests;
