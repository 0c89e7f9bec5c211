//! Arguments of entries that are undone, in files of the boot loader where no entry has put them: who installs a
//! kernel, or makes `/etc/kernel/cmdline`, may copy them from an entry or from the command line that runs.
//!
//! What is told as ours: the arguments of an entry that the journal still knows, word for word and in one run, in a
//! line from which a boot gets its arguments, and not those of an entry that is open. A file that the entry had edited
//! is known as it was before; one that it had not is made since, or the apply would have edited it.
//!
//! Where the undo found its own insertion changed and left it, each argument of it counts by itself, in that file
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use planish_act::boot::{DIFFERS, resolved};
use planish_boot::{Tag, count_besides, is_tag, tags};
use planish_model::{
    BootLoader, CarriedOver, Entry, EntryId, EntryStep, OnceFormat, Outcome, OutcomeKind, Undo,
};
use planish_observe::{BootLine, boot_lines};
use planish_sorted::SortSmall as _;

use crate::devices;
use crate::session::Session;

/// The arguments that a step gives every boot.
pub(crate) fn run_of(step: &EntryStep) -> Option<&str> {
    if OnceFormat::of_knob(step.knob.as_str()).is_some() || !step.knob.is_persistence() {
        return None;
    }
    step.boot_arguments()
}

/// The lines that still give what these entries gave, which were undone just now.
pub(crate) fn after_undo(session: &Session, entries: &[Entry], undone: &[EntryId]) -> Vec<CarriedOver> {
    let is_meant = |entry: &Entry| undone.contains(&entry.id);
    look(session, None, entries, &is_meant, &|_, _| false)
}

/// What an undo cannot tell of arguments that it took out: of a loader that is not known, files may give them that are
/// not among those which are read.
pub(crate) fn untold(session: &Session, entries: &[Entry], undone: &[EntryId]) -> Option<String> {
    let meant = entries.iter().filter(|entry| undone.contains(&entry.id));
    let runs = meant.flat_map(|entry| entry.steps.iter().filter_map(run_of));
    let runs: BTreeSet<&str> = runs.collect();
    if runs.is_empty() {
        return None;
    }
    let BootLoader::Unknown { reason, cure } = session.boot_loader() else { return None };
    let runs: Vec<&str> = runs.into_iter().collect();
    Some(format!(
        "whether a boot to come still gives `{}` cannot be told: {reason}; {cure}; then: planish check",
        runs.join("`, `")
    ))
}

/// The same of every entry that is closed. Where somebody has given the arguments anew, in a file that the undo had
/// left without them, they are theirs by now, wherever else they stand.
pub(crate) fn in_check(session: &Session, loader: &BootLoader, entries: &[Entry]) -> Vec<CarriedOver> {
    let was_rid = |step: &EntryStep, is_more: bool| {
        let is_rid = |undone: &Outcome| match undone.outcome {
            OutcomeKind::Done => undone.detail.as_deref().is_none_or(|detail| !detail.contains(DIFFERS)),
            kind => kind == OutcomeKind::Satisfied,
        };
        is_more && step.undone.as_ref().is_some_and(is_rid)
    };
    look(session, Some(loader), entries, &|_| true, &was_rid)
}

fn look(
    session: &Session,
    loader: Option<&BootLoader>,
    entries: &[Entry],
    is_meant: &dyn Fn(&Entry) -> bool,
    is_theirs: &dyn Fn(&EntryStep, bool) -> bool,
) -> Vec<CarriedOver> {
    let mut entries = entries.to_vec();
    entries.retain(|entry| entry.steps.iter().any(|step| run_of(step).is_some()));
    if !entries.iter().any(|entry| !entry.is_open() && is_meant(entry)) {
        return Vec::new();
    }
    devices::follow(session.host(), &mut entries);
    let steps = |is_open: bool| {
        let of = entries.iter().filter(move |entry| entry.is_open() == is_open);
        of.flat_map(|entry| entry.steps.iter().filter_map(move |step| Some((entry, step, run_of(step)?))))
    };
    let mut held: Vec<&str> =
        steps(true).filter(|(_, step, _)| !step.is_undone()).map(|(.., run)| run).collect();
    held.sort_small_by_key(|run| std::cmp::Reverse(run.len()));
    // Of entries that gave the same the newest knows best.
    let mut given: BTreeMap<&str, &Entry> = BTreeMap::new();
    given.extend(steps(false).filter(|(entry, ..)| is_meant(entry)).map(|(entry, _, run)| (run, entry)));
    let lines = match loader {
        Some(loader) => boot_lines(session.host(), loader),
        None => boot_lines(session.host(), &session.boot_loader()),
    };
    let mut found = Vec::new();
    for (run, entry) in given {
        // No program copies into what a menu is made from, and the journal has no text of those files: what they give
        // is the host's own, and every entry of the menu has it from there. But for our own file: what it still gives
        // is a line of ours that somebody had changed.
        let own = entry.steps.iter().find(|step| step.undo == Undo::File && run_of(step).is_some());
        let is_of_own = |line: &BootLine| own.is_some_and(|step| step.place == line.path);
        let given = |line: &BootLine, arguments: &str| count_besides(&line.text, arguments, &held);
        let is_source = |line: &BootLine| line.path.starts_with("/etc/default/grub") && given(line, run) > 0;
        let of_own_alone = own.is_some_and(EntryStep::left_theirs) || lines.iter().any(is_source);
        let of_own_alone = own.is_some() && of_own_alone;
        let mut left = Vec::new();
        let mut is_given_anew = false;
        for line in lines.iter().filter(|line| !of_own_alone || is_of_own(line)) {
            let edited = entry.steps.iter().find(|step| step.place == line.path && step.undo == Undo::Edit);
            let before = edited.map(|step| resolved(step, entry.id, &entries));
            let before = before.as_ref().and_then(EntryStep::original).map_or("", |text| text.value.as_str());
            let is_more = |arguments: &str| {
                let count = |line: &str| count_besides(&line.replace(['"', '\''], " "), arguments, &held);
                let lines = before.lines().filter(|line| !line.starts_with('#'));
                given(line, arguments) > lines.map(count).max().unwrap_or(0)
            };
            let is_whole = is_more(run);
            is_given_anew |= edited.is_some_and(|step| is_theirs(step, is_whole));
            let words = || run.split_ascii_whitespace().filter(|word| is_more(word));
            let told: Vec<String> = match (is_whole, has_left(entry, &line.path)) {
                (true, _) => vec![run.to_owned()],
                (false, true) => words().map(|word| with_its_number(word, &line.text)).collect(),
                (false, false) => Vec::new(),
            };
            left.extend(told.into_iter().map(|arguments| CarriedOver {
                source: format!("{}:{}", line.path, line.line),
                name: String::new(),
                entry: Some(entry.id),
                arguments,
                tag: tag_of(session, entry.id, &line.path, line.line),
            }));
        }
        found.extend(left.into_iter().filter(|_| !is_given_anew));
    }
    found
}

/// An argument with the one behind it that it gives its meaning: without the size of huge pages in front of it, a
/// number of them is one of another size.
fn with_its_number(argument: &str, line: &str) -> String {
    let mut words =
        line.split(|c: char| c.is_whitespace() || c == '"' || c == '\'').filter(|word| !word.is_empty());
    let behind = words.find(|word| *word == argument).and_then(|_| words.next());
    let number = behind.filter(|word| argument.starts_with("hugepagesz=") && word.starts_with("hugepages="));
    number.map_or_else(|| argument.to_owned(), |number| format!("{argument} {number}"))
}

/// Whether an undo found the insertion of an entry into a file changed, and left it.
fn has_left(entry: &Entry, path: &str) -> bool {
    let mut steps = entry.steps.iter().filter(|step| step.place == path && run_of(step).is_some());
    steps.any(EntryStep::left_theirs)
}

/// What says in a file that an entry gave the arguments of a line: in the line, or in a comment anywhere.
fn tag_of(session: &Session, entry: EntryId, path: &str, line: usize) -> Option<String> {
    let text = session.host().read_lossy(path).ok()?;
    let is_of_line = |tag: &Tag<'_>| tag.line == line || is_tag(tag.text);
    let tag = tags(&text).find(|tag| tag.entry == entry.0 && is_of_line(tag));
    tag.map(|tag| tag.text.to_owned())
}

/// The files of a loader that arguments are put into; of one that is not known, all that have any.
fn edited(session: &Session, loader: &BootLoader) -> BTreeSet<String> {
    match loader {
        BootLoader::Known(files) => files.edited.iter().map(|file| file.path.clone()).collect(),
        _ => boot_lines(session.host(), loader).into_iter().map(|line| line.path).collect(),
    }
}

/// The entries that files of the boot loader name beside arguments, and that this journal does not have, with the lines
/// that name them.
pub(crate) fn strange_tags(
    session: &Session,
    loader: &BootLoader,
    entries: &[Entry],
) -> BTreeMap<EntryId, Vec<String>> {
    if matches!(loader, BootLoader::Outside { .. }) {
        return BTreeMap::new();
    }
    let gave_any = |entry: &&Entry| entry.steps.iter().any(|step| step.undo == Undo::Edit);
    let is_known = |id: EntryId| entries.iter().filter(gave_any).any(|entry| entry.id == id);
    let mut strange: BTreeMap<EntryId, Vec<String>> = BTreeMap::new();
    for path in &edited(session, loader) {
        let text = session.host().read_lossy(path).unwrap_or_default();
        for tag in tags(&text).filter(|tag| !is_known(EntryId(tag.entry))) {
            strange.entry(EntryId(tag.entry)).or_default().push(format!("{path}:{}", tag.line));
        }
    }
    strange
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_huge_pages_is_told_with_the_number_behind_it() {
        let line = "GRUB_CMDLINE_LINUX_DEFAULT=\"$X hugepagesz=1G hugepages=8 nohz_full=2 hugepagesz=2M\"";
        for (word, told) in [
            ("hugepagesz=1G", "hugepagesz=1G hugepages=8"),
            ("hugepagesz=2M", "hugepagesz=2M"),
            ("nohz_full=2", "nohz_full=2"),
            ("hugepagesz=16G", "hugepagesz=16G"),
        ] {
            assert_eq!(with_its_number(word, line), told);
        }
    }
}
