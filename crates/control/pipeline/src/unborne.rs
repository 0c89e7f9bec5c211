//! An undo that would take away a limit which a newer entry needs: the ratio below the mode that it has set, the
//! highest below its lowest. Whatever a plan is refused for is no way to leave a host. What nobody has built upon goes
//! back however tight the host was before: that is how it was.

use std::fmt;

use planish_model::{Catalogue, Entry, EntryId, Step, Undo, Verdict, VerdictKind};

use crate::error::PipelineError;
use crate::session::Session;

/// What stands against an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unborne {
    /// What was to be taken back.
    pub entries: Vec<EntryId>,
    /// The newest open entry that was built upon them.
    pub newer: EntryId,
    /// Each knob that would go back, with what stands against it.
    pub why: String,
}

impl Unborne {
    /// What to do instead.
    #[must_use]
    pub fn cure(&self) -> String {
        let newer = self.newer;
        format!(
            "take back first what was set since: planish undo {newer}; or all of it: planish undo --all; to have it so \
             all the same: --force"
        )
    }
}

impl std::error::Error for Unborne {}

impl fmt::Display for Unborne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.entries.iter().map(ToString::to_string).collect();
        let entry = if entries.len() == 1 { "entry" } else { "entries" };
        write!(f, "an undo of {entry} {} would take away what is needed: {}", entries.join(", "), self.why)
    }
}

/// Refuses to take entries back where what is left then is what a plan is refused for.
pub(crate) fn refuse(
    session: &Session,
    entries: &[Entry],
    selected: &[EntryId],
) -> Result<(), PipelineError> {
    // A catalogue that is not sound holds no undo up.
    let Ok(catalogue) = session.sound_catalogue() else { return Ok(()) };
    let known = session.in_boot(entries);
    let oldest = selected.iter().min();
    let is_newer =
        |entry: &&Entry| entry.is_open() && Some(&entry.id) > oldest && !selected.contains(&entry.id);
    let Some(newer) = known.iter().rev().filter(is_newer).find(|entry| is_built(entry, catalogue)) else {
        return Ok(());
    };
    let newer = newer.id;
    let back = going_back(session, catalogue, &known, selected);
    if back.is_empty() {
        return Ok(());
    }
    let unborne = planish_decide::ruinous(catalogue, &session.observe_steps(&back), &back);
    if unborne.is_empty() {
        return Ok(());
    }
    let why = unborne.iter().map(|(knob, why)| format!("{knob}: {why}")).collect::<Vec<_>>().join("; ");
    Err(Unborne { entries: selected.to_vec(), newer, why }.into())
}

/// Whether an entry holds a value that another one bounds, or that bounds another.
fn is_built(entry: &Entry, catalogue: &Catalogue) -> bool {
    let mut held = entry.steps.iter().filter(|step| step.undo == Undo::Restore && !step.is_undone());
    held.any(|step| {
        let verdict = Verdict::new(VerdictKind::Settable, "is held");
        let knob = catalogue.knob(&step.knob).ok();
        let step = knob.map(|knob| Step::of(knob, &step.place, String::new(), step.wanted.clone(), verdict));
        step.is_some_and(|step| planish_decide::is_bound(&step, catalogue))
    })
}

/// The values that would go back of those that bound each other: of a place that several entries set the oldest
/// original, and nothing where an entry that stays has it.
fn going_back(session: &Session, catalogue: &Catalogue, known: &[Entry], selected: &[EntryId]) -> Vec<Step> {
    let goes = |entry: &&Entry| selected.contains(&entry.id);
    let is_covered = |own: &Entry, place: &str| {
        let stays = known.iter().filter(|other| other.id > own.id && other.is_open() && !goes(other));
        let mut steps = stays.flat_map(|other| &other.steps);
        steps.any(|step| step.place == place && step.undo == Undo::Restore && !step.is_undone())
    };
    let mut back: Vec<Step> = Vec::new();
    for entry in known.iter().filter(goes) {
        for own in entry.steps.iter().filter(|own| own.undo == Undo::Restore && !own.is_undone()) {
            let (Ok(knob), Some(original)) = (catalogue.knob(&own.knob), own.original()) else { continue };
            let Ok(now) = session.host().read(&own.place) else { continue };
            // What somebody else has set since stays.
            let is_ours = knob.r#type.same(&now, own.ours());
            let step = Step::of(
                knob,
                &own.place,
                now,
                original.value.clone(),
                Verdict::new(VerdictKind::Settable, "goes back"),
            );
            let is_known = back.iter().any(|other| other.place == own.place);
            if is_ours
                && !is_known
                && !is_covered(entry, &own.place)
                && planish_decide::is_bound(&step, catalogue)
            {
                back.push(step);
            }
        }
    }
    back
}
