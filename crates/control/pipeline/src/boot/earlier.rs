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

/// What stands before ours in one line, so that it counts.
struct Before {
    /// Where it stands.
    source: String,
    /// What is said of it, behind its place; all that is said, where `cure` is.
    says: String,
    argument: String,
    knob: KnobId,
    /// What helps, where it is not to be taken out of its place.
    cure: Option<String>,
}

/// Refuses what would stand behind another value in lines of files that are edited: all of them are named at once.
pub(super) fn in_lines(
    session: &Session,
    loader: &planish_model::BootLoader,
    asked: &Asked<'_>,
) -> Result<(), PipelineError> {
    let mut before = Vec::new();
    for mut line in planish_observe::lines_before(session.host(), loader) {
        asked.take_out(&mut line);
        before.extend(in_one(session, &with_ours(line, asked), asked, true)?);
    }
    refuse(&before, asked)
}

/// The same of a line that has ours among the others.
pub(super) fn in_words(session: &Session, line: &[Word], asked: &Asked<'_>) -> Result<(), PipelineError> {
    refuse(&in_one(session, line, asked, true)?, asked)
}

fn refuse(before: &[Before], asked: &Asked<'_>) -> Result<(), PipelineError> {
    let Some((reason, cure)) = told(before) else { return Ok(()) };
    Err(PipelineError::BootLoader { arguments: asked.arguments.to_owned(), reason, cure })
}

/// The same of the entry that a trial boot is a copy of: reason and cure.
pub(crate) fn in_default(
    session: &Session,
    asked: &Asked<'_>,
) -> Result<Option<(String, String)>, PipelineError> {
    let line = planish_observe::default_words(session.host(), &session.boot_loader());
    Ok(told(&in_one(session, &with_ours(line, asked), asked, false)?))
}

fn with_ours(mut line: Vec<Word>, asked: &Asked<'_>) -> Vec<Word> {
    let ours = bootline::arguments(asked.arguments);
    line.extend(ours.map(|word| Word { argument: word.to_owned(), source: String::new() }));
    line
}

/// Why lines would not bring what is asked for, and what helps.
fn told(before: &[Before]) -> Option<(String, String)> {
    let (mut reasons, mut cures, mut excluded) = (Vec::<String>::new(), Vec::<String>::new(), Vec::new());
    // What an entry gave is in every file, and to take it back takes it out of all: one of them is named.
    for (says, cure) in before.iter().filter_map(|one| Some((&one.says, one.cure.as_ref()?))) {
        if !cures.contains(cure) {
            reasons.push(says.clone());
            cures.push(cure.clone());
        }
    }
    let in_files: Vec<&Before> = before.iter().filter(|one| one.cure.is_none()).collect();
    let all_said = once(in_files.iter().map(|one| one.says.as_str()));
    for said in all_said {
        let same: Vec<&Before> = in_files.iter().copied().filter(|one| one.says == said).collect();
        let places = once(same.iter().map(|one| one.source.as_str()));
        let others = places[1..].join(", ");
        let others = if others.is_empty() { others } else { format!("; so do {others}") };
        reasons.push(format!("{} {said}{others}", places[0]));
        let owner = |place| if is_of_tuned(place) { "the cmdline of tuned's profile" } else { place };
        let owners = once(places.into_iter().map(owner)).join(", ");
        cures.push(format!("take `{}` out of {owners}", same[0].argument));
        excluded.push(format!("--exclude {}", same[0].knob));
    }
    let excluded = once(excluded.iter().map(String::as_str)).join(" ");
    if !excluded.is_empty() {
        cures.push(format!("or leave it as it is: {excluded}"));
    }
    (!reasons.is_empty()).then(|| (reasons.join("; "), cures.join("; ")))
}

/// Each text once, where it came first.
fn once<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// What stands before ours in a line. `is_of_file` where its sources are the files that our entries have written.
fn in_one(
    session: &Session,
    line: &[Word],
    asked: &Asked<'_>,
    is_of_file: bool,
) -> Result<Vec<Before>, PipelineError> {
    let kernel = planish_observe::kernel(session.host());
    let words: Vec<&str> = line.iter().map(|word| word.argument.as_str()).collect();
    let mut before = Vec::new();
    for (id, wanted) in asked.wanted {
        let knob = session.sound_catalogue()?.knob(id)?;
        if knob.several() != Several::First {
            continue;
        }
        let knob_id = (*id).clone();
        let Some((value, index)) = bootline::found(&words, knob, kernel) else {
            // Others have taken what room there is, or leave no size to count in.
            let argument = knob.argument(wanted).unwrap_or_default();
            let says = format!(
                "the kernel would not take `{argument}` behind the arguments of huge pages before it"
            );
            let cure =
                Some("see to it that each size stands there once, with its pages behind it".to_owned());
            before.push(Before { source: String::new(), says, argument, knob: knob_id, cure });
            continue;
        };
        if knob.r#type.same(&value, wanted) {
            continue;
        }
        let (name, _) = knob.boot_parameter().unwrap_or_default();
        let (source, argument) = (line[index].source.clone(), knob.argument(&value).unwrap_or_default());
        let says = format!("gives `{argument}` first, and of several {name}= the kernel takes the first");
        let Some(entry) = giver(knob, &value, &source, asked, is_of_file) else {
            before.push(Before { source, says, argument, knob: knob_id, cure: None });
            continue;
        };
        let undo = format!("planish undo {entry}, then once more");
        // One that holds nothing of the running host cannot go that way.
        let goes = asked.going.is_none() && transition::can_go(session, asked.entries, entry);
        let cure = match goes {
            true => format!("{undo}; or have this take its place: --instead-of {entry}"),
            false => undo,
        };
        let says = format!("entry {entry} {says} ({source})");
        before.push(Before { source, says, argument, knob: knob_id, cure: Some(cure) });
    }
    Ok(before)
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
