//! Boot parameters of which the kernel takes the first of several: what stands before ours is what counts, and ours
//! would be written for nothing. Two entries of planish can be such a pair, and so can a variable of GRUB that tuned
//! fills.

use planish_model::{BootFormat, Entry, EntryId, EntryStep, Knob, KnobId, Several, bootline};
use planish_observe::Word;

use crate::copied::run_of;
use crate::error::PipelineError;
use crate::session::Session;
use crate::transition;

/// What is to be given.
pub(crate) struct Asked<'a> {
    /// Knobs of boot parameters, with their values.
    pub wanted: &'a [(&'a KnobId, &'a str)],
    /// All of them in one line.
    pub arguments: &'a str,
    pub entries: &'a [Entry],
    /// The entry whose place is taken: what it gave goes.
    pub going: Option<EntryId>,
}

impl<'a> Asked<'a> {
    /// Arguments that go with an entry, by step.
    fn going(&self) -> impl Iterator<Item = (&'a EntryStep, &'a str)> {
        let going = self.going;
        let entries = self.entries.iter().filter(move |entry| Some(entry.id) == going);
        let steps = entries.flat_map(|entry| &entry.steps).filter(|step| !step.is_undone());
        steps.filter_map(|step| Some((step, run_of(step)?)))
    }

    /// The text of our own file without the lines that go.
    pub fn without_lines(&self, text: &str) -> String {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (_, run) in self.going() {
            let gone = planish_boot::drop_in_line(run);
            if let Some(at) = lines.iter().rposition(|line| *line == gone) {
                lines.remove(at);
            }
        }
        lines.concat()
    }

    /// Takes out of a line of arguments what goes: the run of an entry is the same in every file.
    fn take_out(&self, line: &mut Vec<Word>) {
        let is_run_of_files =
            |(step, _): &(&EntryStep, &str)| BootFormat::of_knob(step.knob.as_str()).is_some();
        let Some((_, run)) = self.going().find(is_run_of_files) else { return };
        let run: Vec<&str> = run.split(' ').collect();
        let is_it = |words: &[Word]| words.iter().map(|word| word.argument.as_str()).eq(run.iter().copied());
        if let Some(at) = line.windows(run.len()).position(is_it) {
            line.drain(at..at + run.len());
        }
    }
}

/// Refuses what would stand behind another value in a line of a file that is edited.
pub(super) fn in_lines(
    session: &Session,
    loader: &planish_model::BootLoader,
    asked: &Asked<'_>,
) -> Result<(), PipelineError> {
    for mut line in planish_observe::lines_before(session.host(), loader) {
        asked.take_out(&mut line);
        in_words(session, with_ours(line, asked), asked)?;
    }
    Ok(())
}

/// The same of a line that has ours among the others.
pub(super) fn in_words(session: &Session, line: Vec<Word>, asked: &Asked<'_>) -> Result<(), PipelineError> {
    let Some((reason, cure)) = told(session, &line, asked, true)? else { return Ok(()) };
    Err(PipelineError::BootLoader { arguments: asked.arguments.to_owned(), reason, cure })
}

/// The same of the entry that a trial boot is a copy of: reason and cure.
pub(crate) fn in_default(
    session: &Session,
    asked: &Asked<'_>,
) -> Result<Option<(String, String)>, PipelineError> {
    let line = planish_observe::default_words(session.host(), &session.boot_loader());
    told(session, &with_ours(line, asked), asked, false)
}

fn with_ours(mut line: Vec<Word>, asked: &Asked<'_>) -> Vec<Word> {
    let ours = bootline::arguments(asked.arguments);
    line.extend(ours.map(|word| Word { argument: word.to_owned(), source: String::new() }));
    line
}

/// Why a line would not bring what is asked for, and what helps. `is_of_file` where its sources are the files that our
/// entries have written.
fn told(
    session: &Session,
    line: &[Word],
    asked: &Asked<'_>,
    is_of_file: bool,
) -> Result<Option<(String, String)>, PipelineError> {
    let kernel = planish_observe::kernel(session.host());
    let words: Vec<&str> = line.iter().map(|word| word.argument.as_str()).collect();
    for (id, wanted) in asked.wanted {
        let knob = session.sound_catalogue()?.knob(id)?;
        if knob.several() != Several::First {
            continue;
        }
        let Some((value, index)) = bootline::found(&words, knob, kernel) else {
            // Others have taken what room there is, or leave no size to count in.
            let argument = knob.argument(wanted).unwrap_or_default();
            let reason = format!(
                "the kernel would not take `{argument}` behind the arguments of huge pages before it"
            );
            let cure = "see to it that each size stands there once, with its pages behind it".to_owned();
            return Ok(Some((reason, cure)));
        };
        if knob.r#type.same(&value, wanted) {
            continue;
        }
        let (name, _) = knob.boot_parameter().unwrap_or_default();
        let (source, argument) = (&line[index].source, knob.argument(&value).unwrap_or_default());
        let told = format!("gives `{argument}` first, and of several {name}= the kernel takes the first");
        if let Some(entry) = giver(knob, &value, source, asked, is_of_file) {
            let undo = format!("planish undo {entry}, then once more");
            // One that holds nothing of the running host, or shares another argument with this, cannot go that way.
            let goes =
                asked.going.is_none() && transition::can_go(session, asked.entries, entry, asked.wanted)?;
            let cure = match goes {
                true => format!("{undo}; or have this take its place: --instead-of {entry}"),
                false => undo,
            };
            return Ok(Some((format!("entry {entry} {told} ({source})"), cure)));
        }
        let whose = if is_of_tuned(source) { "the cmdline of tuned's profile" } else { source };
        let cure = format!("take `{argument}` out of {whose}; or leave it as it is: --exclude {id}");
        return Ok(Some((format!("{source} {told}"), cure)));
    }
    Ok(None)
}

fn is_of_tuned(source: &str) -> bool {
    source.starts_with("/etc/tuned/") || source.ends_with("(tuned_params)")
}

/// The newest open entry that gave a value.
fn giver(knob: &Knob, value: &str, source: &str, asked: &Asked<'_>, is_of_file: bool) -> Option<EntryId> {
    let path = source.rsplit_once(':').map_or(source, |(path, _)| path);
    let gives = |step: &EntryStep| {
        let words: Vec<&str> = run_of(step).map(bootline::arguments).into_iter().flatten().collect();
        let given = bootline::found(&words, knob, bootline::Kernel::default());
        let is_there = !step.is_undone() && (step.place == path || !is_of_file);
        is_there && given.is_some_and(|(given, _)| knob.r#type.same(&given, value))
    };
    let mut open =
        asked.entries.iter().rev().filter(|entry| entry.is_open() && Some(entry.id) != asked.going);
    open.find(|entry| entry.steps.iter().any(gives)).map(|entry| entry.id)
}
