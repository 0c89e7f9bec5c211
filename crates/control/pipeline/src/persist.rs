//! `--persist`: files of ours that bring the values back at the next boot.
//!
//! `/proc/sys` values go into `sysctl.d`, `/sys` values into `tmpfiles.d`; both are read at boot by systemd and by
//! others. Each file holds the lines of every entry that persists something, so that its content follows from
//! the journal alone: an apply adds its lines, an undo takes them out, and the file goes with the last line.
//! A file of that name that planish did not write is refused.

use planish_act::{Sink, files};
use planish_model::{Class, Entry, EntryId, EntryStep, KnobId, Outcome, OutcomeKind, Plan, Undo};

use crate::error::PipelineError;

/// Where lines for `/proc/sys` go.
pub(crate) const SYSCTL_FILE: &str = "/etc/sysctl.d/90-planish.conf";
/// Where lines for `/sys` go.
pub(crate) const TMPFILES_FILE: &str = "/etc/tmpfiles.d/90-planish.conf";

const HEAD: &str =
    "# Written by planish: `planish log` tells when and why, `planish undo` takes the lines out again.\n";

/// The file steps of a plan: one for each file that gets lines.
pub(crate) fn steps(plan: &Plan) -> Vec<EntryStep> {
    let planned = plan.steps.iter().map(|step| (step.place.as_str(), step.wanted.as_str()));
    let there = plan.skipped.iter().filter(|skipped| skipped.satisfied);
    let there = there.filter_map(|skipped| Some((skipped.place.as_str(), skipped.wanted.as_deref()?)));
    let (mut sysctl, mut tmpfiles) = (String::new(), String::new());
    for (place, value) in planned.chain(there) {
        if let Some(name) = place.strip_prefix("/proc/sys/") {
            // Both readers take slashes; dots would be ambiguous in names such as eth0.100.
            let name = if name.contains('.') { name.to_owned() } else { name.replace('/', ".") };
            sysctl += &format!("{name} = {value}\n");
        } else if place.starts_with("/sys/") {
            tmpfiles += &format!("w {place} - - - - {value}\n");
        }
    }
    [("persist.sysctl", SYSCTL_FILE, sysctl), ("persist.tmpfiles", TMPFILES_FILE, tmpfiles)]
        .into_iter()
        .filter(|(_, _, lines)| !lines.is_empty())
        .map(|(knob, path, lines)| file_step(knob, path, lines))
        .collect()
}

fn file_step(knob: &str, path: &str, lines: String) -> EntryStep {
    EntryStep {
        knob: KnobId::new(knob),
        place: path.to_owned(),
        wanted: lines,
        class: Class::Safe,
        undo: Undo::File,
        raise_pages: None,
        service: None,
        originals: Vec::new(),
        outcome: None,
        begun: None,
        undone: None,
    }
}

/// The content of a file of ours with the lines of these steps, oldest first; `None` for no file.
fn content<'a>(steps: impl Iterator<Item = &'a EntryStep>) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    for line in steps.flat_map(|step| step.wanted.lines()) {
        // Of two lines for one place only the newer one counts: tmpfiles.d would take the first.
        lines.retain(|older| key(older) != key(line));
        lines.push(line);
    }
    (!lines.is_empty()).then(|| lines.iter().fold(HEAD.to_owned(), |text, line| text + line + "\n"))
}

/// What a line sets: everything before its value.
fn key(line: &str) -> &str {
    let end = line.find(" = ").or_else(|| line.find(" - - - - ")).unwrap_or(line.len());
    &line[..end]
}

/// Contents of a file of ours, as the journal knows them.
pub(crate) struct Contents {
    /// With the lines of an entry.
    with: Option<String>,
    /// Without them.
    without: Option<String>,
    /// What planish wrote there at any time.
    written: Vec<String>,
}

impl Contents {
    /// Of the file that `step` of entry `id` has lines in.
    pub fn of(id: EntryId, step: &EntryStep, entries: &[Entry]) -> Self {
        let same_file = |other: &&EntryStep| other.undo == Undo::File && other.place == step.place;
        let all = entries
            .iter()
            .flat_map(|entry| entry.steps.iter().filter(same_file).map(move |step| (entry.id, step)));
        let in_file = |step: &EntryStep| {
            let done =
                |outcome: &Outcome| matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied);
            !step.is_undone() && step.outcome.as_ref().is_some_and(done)
        };
        let others =
            || all.clone().filter(|(other, step)| *other != id && in_file(step)).map(|(_, step)| step);
        // A kill may have come between the write of the file and its outcome.
        let unsure = |step: &EntryStep| !step.is_undone() && step.outcome.is_none();
        let maybe = all.clone().filter(|(other, step)| *other != id && unsure(step)).map(|(_, step)| step);
        let texts = all.clone().flat_map(|(_, step)| [&step.outcome, &step.undone]);
        let written = texts.filter_map(|outcome| outcome.as_ref()?.read_back.clone());
        Self {
            with: content(others().chain(std::iter::once(step))),
            without: content(others()),
            written: written.chain(content(others().chain(maybe))).collect(),
        }
    }

    fn known(&self) -> Vec<Option<&str>> {
        let written = self.written.iter().map(|text| Some(text.as_str()));
        written.chain([self.with.as_deref(), self.without.as_deref()]).collect()
    }

    /// Whether the file has every line of the entry already.
    pub fn has(&self, step: &EntryStep) -> bool {
        let there = self.without.as_deref().unwrap_or_default();
        step.wanted.lines().all(|line| there.lines().any(|other| other == line))
    }

    /// Puts the lines of the entry into its file.
    pub fn add(&self, step: &EntryStep, sink: &dyn Sink) -> Outcome {
        let (known, content) = (self.known(), self.with.as_deref());
        let wanted = files::Replacement { knob: &step.knob, path: &step.place, known: &known, content };
        files::replace(&wanted, false, sink)
    }

    /// Takes the lines of the entry out of its file.
    pub fn remove(&self, step: &EntryStep, force: bool, sink: &dyn Sink) -> Outcome {
        let (known, content) = (self.known(), self.without.as_deref());
        let wanted = files::Replacement { knob: &step.knob, path: &step.place, known: &known, content };
        files::replace(&wanted, force, sink)
    }

    /// Refuses a file that someone else wrote.
    pub fn refuse_foreign(&self, path: &str, sink: &dyn Sink) -> Result<(), PipelineError> {
        let now = sink.read_file(path).map_err(PipelineError::Before)?;
        if self.known().contains(&now.as_deref()) {
            return Ok(());
        }
        Err(PipelineError::ForeignFile { path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Option<String> {
        let steps: Vec<EntryStep> =
            texts.iter().map(|text| file_step("persist.sysctl", SYSCTL_FILE, (*text).to_owned())).collect();
        content(steps.iter())
    }

    #[test]
    fn the_newest_line_of_a_place_wins() {
        let text = lines(&["vm.a = 1\nvm.b = 2\n", "vm.a = 3\n"]).expect("lines");
        assert_eq!(text, format!("{HEAD}vm.b = 2\nvm.a = 3\n"));
        assert_eq!(lines(&[]), None);
    }

    #[test]
    fn a_line_is_known_by_what_it_sets() {
        assert_eq!(key("vm.swappiness = 10"), "vm.swappiness");
        assert_eq!(key("w /sys/kernel/mm/x - - - - always"), "w /sys/kernel/mm/x");
    }
}
