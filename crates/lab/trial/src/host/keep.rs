//! What `--keep` persists of a profile, and how that is told.
//!
//! Only what units can have had is persisted. A trial gives the kernel no boot parameter: each was the same in every
//! unit, or in none, and no pair tells what it is worth. So `--keep` writes no file of the boot loader, which nobody
//! would have seen before, and names the command that does.

use std::collections::BTreeMap;

use planish_model::{DriftState, Exit, KnobId, Plan, Profile, gone_at_boot, quoted};
use planish_pipeline::{Applied, Session};
use planish_sorted::CollectMap as _;

use super::Kept;
use super::pipeline::is_missed;

/// What of a plan is persisted, and what is not.
pub(super) struct Measured {
    /// The plan without boot parameters, and without what it could not set, which no unit had.
    pub(super) plan: Plan,
    /// Boot parameters of it that the next boot does not bring by itself, with their values.
    left_out: BTreeMap<KnobId, String>,
}

impl Measured {
    /// Of the plan of a profile.
    pub(super) fn of(session: &Session, profile: &Profile, plan: Plan) -> Self {
        let knob = |id: &KnobId| session.catalogue().knob(id).ok();
        let given = |place: &String| plan.boot.iter().any(|step| step.place == *place);
        let (at_boot, mut skipped): (Vec<_>, Vec<_>) = plan.skipped.iter().cloned().partition(|row| {
            given(&row.place) || knob(&row.knob).is_some_and(|knob| knob.boot_parameter().is_some())
        });
        // A pool that memory cannot give, and what is impossible here, is for the apply to refuse. What the trial
        // names itself was in its units: where it cannot be set any more, that is a finding, and no matter of course as
        // for the rest of a profile.
        skipped
            .retain(|row| row.satisfied || row.short_of_memory || row.impossible || is_missed(row, profile));
        let mut left_out: BTreeMap<KnobId, String> =
            plan.boot.iter().map(|step| (step.knob.clone(), step.wanted.clone())).collect_map();
        let mut running = at_boot.into_iter().filter(|row| row.satisfied).peekable();
        if running.peek().is_some() {
            let observation = session.observe();
            for row in running {
                let (Some(knob), Some(wanted)) = (knob(&row.knob), row.wanted) else { continue };
                let found = observation.persisted.get(&row.place);
                if !found.is_some_and(|found| knob.r#type.same(&found.value, &wanted)) {
                    left_out.insert(row.knob, wanted);
                }
            }
        }
        Self { plan: Plan { skipped, ..plan }.with_boot(Vec::new()), left_out }
    }

    /// What an apply of the plan that persists has come to.
    pub(super) fn told(&self, session: &Session, profile: &Profile, done: &Applied) -> Kept {
        let adrift = done.drift.knobs.iter().filter(|row| row.state == DriftState::Drift);
        let mut first = match done.entry {
            Some(entry) => format!("persisted as entry {entry}: planish undo {entry}; {}", files(done)),
            None if adrift.clone().next().is_some() => {
                "nothing was written: this was applied already".to_owned()
            }
            None => "everything kept is on the host already".to_owned(),
        };
        for hint in &done.hints {
            first = format!("{first}; {hint}");
        }
        let mut notes = vec![first];
        notes.extend(adrift.map(|row| {
            let because = row.because.as_deref().unwrap_or("it shows another value");
            format!("{} is not as it was kept ({}): {because}", row.knob, row.place)
        }));
        notes.extend(gone_at_boot(&done.unpersisted));
        notes.extend(self.not_measured(session, profile));
        Kept { notes, lasts: done.exit == Exit::Done }
    }

    /// The boot parameters that are not persisted, and what would persist them.
    fn not_measured(&self, session: &Session, profile: &Profile) -> Option<String> {
        let ids: Vec<&str> = self.left_out.keys().map(KnobId::as_str).collect();
        if ids.is_empty() {
            return None;
        }
        let of_profile = |name: &&String| {
            let profile = session.catalogue().profile(name);
            profile.is_ok_and(|profile| self.left_out.keys().any(|id| profile.want.contains_key(id)))
        };
        let profiles = profile.inherits.iter().filter(of_profile);
        let line = |name: &String| format!("planish apply {} --persist", quoted(name));
        let mut cures: Vec<String> =
            profiles.map(|name| format!("with the rest of its profile: {}", line(name))).collect();
        let own = self.left_out.iter().filter(|(id, _)| profile.want.contains_key(id));
        cures.extend(own.filter_map(|(id, wanted)| {
            let argument = session.catalogue().knob(id).ok()?.argument(wanted)?;
            Some(format!("give `{argument}` to the boot loader"))
        }));
        let (ids, cures) = (ids.join(", "), cures.join("; "));
        Some(format!("not persisted, since a trial measures no boot parameter: {ids}; {cures}"))
    }
}

/// The files that were written for the next boot.
fn files(done: &Applied) -> String {
    let files: Vec<&str> = done.files.iter().map(|file| file.path.as_str()).collect();
    if files.is_empty() {
        return "no file for the next boot was due".to_owned();
    }
    format!("written for the next boot: {}", files.join(", "))
}
