//! An undo that would take away a limit which a newer entry needs: the ratio below the mode that it has set, the
//! highest below its lowest. Whatever a plan is refused for is no way to leave a host. What nobody has built upon goes
//! back however tight the host was before: that is how it was.

use std::collections::BTreeMap;
use std::fmt;

use planish_act::stack;
use planish_model::{Catalogue, Entry, EntryId, KnobId, Part, Step, Undo, Verdict, VerdictKind};

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

/// Refuses to take entries back where what is left then is what a plan is refused for, and would not be without a newer
/// entry.
pub(crate) fn refuse(
    session: &Session,
    entries: &[Entry],
    selected: &[EntryId],
) -> Result<(), PipelineError> {
    // A catalogue that is not sound holds no undo up.
    let Ok(catalogue) = session.sound_catalogue() else { return Ok(()) };
    let known = session.in_boot(entries);
    let oldest = selected.iter().min();
    let newer: Vec<EntryId> = known
        .iter()
        .filter(|entry| entry.is_open() && Some(&entry.id) > oldest && !selected.contains(&entry.id))
        .map(|entry| entry.id)
        .collect();
    let back = going_back(session, catalogue, &known, selected);
    if newer.is_empty() || back.is_empty() {
        return Ok(());
    }
    let refused = |steps: &[Step]| -> BTreeMap<KnobId, String> {
        planish_decide::ruinous(catalogue, &session.observe_steps(steps), steps).into_iter().collect()
    };
    let with = |ids: &[EntryId]| refused(&going_back(session, catalogue, &known, &[selected, ids].concat()));
    let mut unborne = refused(&back);
    if unborne.is_empty() {
        return Ok(());
    }
    // However tight the host was before anybody came, it may be so again.
    let without = with(&newer);
    unborne.retain(|knob, _| !without.contains_key(knob));
    if unborne.is_empty() {
        return Ok(());
    }
    let is_it = |id: &&EntryId| {
        let left = with(&[**id]);
        unborne.keys().any(|knob| !left.contains_key(knob))
    };
    let Some(newest) = newer.iter().rev().find(is_it).or(newer.last()) else { return Ok(()) };
    let told = |(knob, why): (&KnobId, &String)| format!("{knob}: {}", why.trim_end_matches(": want both"));
    let why = unborne.iter().map(told).collect::<Vec<_>>().join("; ");
    Err(Unborne { entries: selected.to_vec(), newer: *newest, why }.into())
}

/// The values that would go back of those that bound each other, with their twins: of a place that several entries set
/// the oldest original, and nothing where an entry that stays has it.
fn going_back(session: &Session, catalogue: &Catalogue, known: &[Entry], selected: &[EntryId]) -> Vec<Step> {
    let goes = |entry: &&Entry| selected.contains(&entry.id);
    let above = |own: &Entry, place: &str| -> Vec<&Entry> {
        known.iter().filter(|other| other.id > own.id && sets(other, place)).collect()
    };
    let mut back: Vec<Step> = Vec::new();
    for entry in known.iter().filter(goes) {
        for own in entry.steps.iter().filter(|own| own.undo == Undo::Restore && !own.is_undone()) {
            let above = above(entry, &own.place);
            let is_covered = above.iter().any(|other| other.is_open() && !goes(other));
            let is_ours = |now: &str| {
                let kind = catalogue.knob(&own.knob).map(|knob| &knob.r#type);
                above.iter().any(goes) || kind.is_ok_and(|kind| kind.same(now, own.ours()))
            };
            // What somebody else has set since stays.
            if is_covered || !session.host().read(&own.place).is_ok_and(|now| is_ours(&now)) {
                continue;
            }
            let originals = stack::with_originals(own, known).originals;
            for original in originals.iter().filter(|original| original.is_of_setting()) {
                let Ok(knob) = catalogue.knob(&original.knob) else { continue };
                let Ok(now) = session.host().read(&original.place) else { continue };
                let settable = Verdict::new(VerdictKind::Settable, "goes back");
                let step = Step::of(knob, &original.place, now, original.value.clone(), settable);
                let is_known = back.iter().any(|other| other.place == original.place);
                if !is_known && planish_decide::is_bound(&step, catalogue) {
                    back.push(Step { part: Some(Part::Back), ..step });
                }
            }
        }
    }
    back
}

fn sets(entry: &Entry, place: &str) -> bool {
    entry.steps.iter().any(|step| step.place == place && step.undo == Undo::Restore && !step.is_undone())
}
