//! One place against its wish, against the files that a boot will read, and against what our own steps
//! caused.

use planish_model::{
    Access, Catalogue, DriftState, Entry, EntryId, FactValue, Knob, KnobCheck, Observation, Persisted,
    Reading, Undo, VerdictKind, When,
};

use crate::wish::{Wish, of_this_boot};

/// What all comparisons share.
pub(crate) struct Bench<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) observation: &'a Observation,
    pub(crate) open: &'a [Entry],
}

/// A state and why it is so.
type Judgement = (DriftState, Option<String>);

impl Bench<'_> {
    /// Compares one place.
    pub(crate) fn check(&self, knob: &Knob, reading: &Reading, wish: Option<&Wish>) -> KnobCheck {
        let persisted = self.observation.persisted.get(&reading.place);
        let (state, because) = self.judge(knob, reading, wish, persisted);
        KnobCheck {
            knob: knob.id.clone(),
            place: reading.place.clone(),
            running: reading.value.as_deref().map(|value| knob.r#type.normal(value)),
            persisted: persisted.map(|found| format!("{} ({})", found.value, found.source)),
            next_boot: persisted.map(|found| knob.r#type.normal(&found.value)),
            wanted: wish.and_then(|wish| wanted(knob, wish)),
            state,
            because,
        }
    }

    fn judge(
        &self,
        knob: &Knob,
        reading: &Reading,
        wish: Option<&Wish>,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        if reading.access == Access::Absent {
            let why = match wish {
                Some(Wish::Skipped { verdict, .. }) => verdict.reason.clone(),
                _ => "not on this host".to_owned(),
            };
            return (DriftState::NotHere, Some(why));
        }
        let Some(running) = reading.value.as_deref() else {
            return (DriftState::Unknown, reading.unread.clone());
        };
        match wish {
            None => self.against_files(knob, reading, running, persisted),
            Some(Wish::Pages(pages)) => pages_against(*pages, running),
            Some(Wish::Value { text, by }) => {
                self.against_value(knob, reading, running, text, by.as_ref(), persisted)
            }
            Some(Wish::Skipped { verdict, text }) => {
                // What the next boot brings by itself is pending; what somebody has yet to give it is missing.
                let comes =
                    |wanted: &String| persisted.is_some_and(|found| knob.r#type.same(&found.value, wanted));
                let state = match (verdict.verdict, text) {
                    (VerdictKind::Reboot, Some(text)) if !comes(text) => DriftState::Drift,
                    (VerdictKind::Reboot, _) => DriftState::PendingReboot,
                    _ if self.came_short(reading) => DriftState::Drift,
                    _ => DriftState::NotHere,
                };
                (state, Some(verdict.reason.clone()))
            }
        }
    }

    /// Nothing was asked of it: the files of the host say what it should be, if they do.
    fn against_files(
        &self,
        knob: &Knob,
        reading: &Reading,
        running: &str,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        if let Some(why) = self.own_doing(knob, reading, running) {
            return (DriftState::Ok, Some(why));
        }
        let Some(found) = persisted else { return (DriftState::Ok, None) };
        let enough = knob.undo == Undo::Subtract && number(running) >= number(&found.value);
        if enough || knob.r#type.same(running, &found.value) {
            return (DriftState::Ok, None);
        }
        (DriftState::Drift, Some(format!("{} says {}{}", found.source, found.value, self.suspects())))
    }

    fn against_value(
        &self,
        knob: &Knob,
        reading: &Reading,
        running: &str,
        wanted: &str,
        by: Option<&(EntryId, Option<String>)>,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        let same = |a: &str, b: &str| knob.r#type.same(a, b);
        if same(running, wanted) {
            return self.next_boot(knob, reading, wanted, persisted);
        }
        if knob.when == When::Boot && persisted.is_some_and(|found| same(&found.value, wanted)) {
            return (DriftState::PendingReboot, Some("takes effect at the next boot".to_owned()));
        }
        if let Some(why) = self.own_doing(knob, reading, running) {
            return (DriftState::Drift, Some(why));
        }
        let why = match (persisted, by) {
            (Some(found), _) if same(&found.value, running) => format!("as {} says", found.source),
            (_, Some((entry, Some(before)))) if same(before, running) => {
                format!("back to the value from before entry {entry}{}", self.suspects())
            }
            (_, Some((entry, _))) => format!("changed since entry {entry}{}", self.suspects()),
            (_, None) => return (DriftState::Drift, None),
        };
        (DriftState::Drift, Some(why))
    }

    /// It runs as wanted: what will the next boot make of it?
    fn next_boot(
        &self,
        knob: &Knob,
        reading: &Reading,
        wanted: &str,
        persisted: Option<&Persisted>,
    ) -> Judgement {
        match persisted {
            Some(found) if knob.r#type.same(&found.value, wanted) => {
                (DriftState::Ok, Some(format!("persisted in {}", found.source)))
            }
            Some(found) => {
                (DriftState::LostAtBoot, Some(format!("{} will set {}", found.source, found.value)))
            }
            None => match self.twin_persisted(knob, reading) {
                Some(why) => (DriftState::LostAtBoot, Some(why)),
                None => (DriftState::Ok, None),
            },
        }
    }

    /// A file that sets the twin clears this one at the next boot.
    fn twin_persisted(&self, knob: &Knob, reading: &Reading) -> Option<String> {
        let twin = self.catalogue.knob(knob.twin.as_ref()?).ok()?;
        let holes = planish_model::place::captures(&knob.path, &reading.place)?;
        let found = self.observation.persisted.get(&planish_model::place::fill(&twin.path, &holes))?;
        let live = number(&found.value) != Some(0);
        live.then(|| format!("{} will set its twin {} to {}", found.source, twin.id, found.value))
    }

    /// Whether a step of ours changed this place besides its own, to what it shows now.
    fn own_doing(&self, knob: &Knob, reading: &Reading, running: &str) -> Option<String> {
        of_this_boot(self.open, self.observation).into_iter().rev().find_map(|entry| {
            entry.steps.iter().filter(|step| !step.is_undone()).find_map(|step| {
                let caused = step.outcome.iter().flat_map(|outcome| &outcome.caused);
                let own = caused.filter(|caused| caused.place == reading.place);
                own.into_iter()
                    .any(|caused| knob.r#type.same(&caused.value, running))
                    .then(|| format!("changed by {} of entry {}", step.knob, entry.id))
            })
        })
    }

    /// Whether a pool was granted fewer pages than an entry that is still open asked for.
    fn came_short(&self, reading: &Reading) -> bool {
        of_this_boot(self.open, self.observation).into_iter().any(|entry| {
            let mut here = entry.steps.iter().filter(|step| step.place == reading.place && !step.is_undone());
            here.any(|step| step.outcome.as_ref().is_some_and(|outcome| outcome.short.is_some()))
        })
    }

    /// Other programs that set knobs here, as a remark.
    fn suspects(&self) -> String {
        match self.observation.facts.get("tuners.names") {
            Some(FactValue::Text(names)) => format!("; {names} sets knobs here too"),
            _ => String::new(),
        }
    }
}

fn pages_against(wanted: u64, running: &str) -> Judgement {
    match number(running) {
        Some(pages) if pages >= wanted => (DriftState::Ok, None),
        Some(pages) => (DriftState::Drift, Some(format!("{pages} of {wanted} pages are there"))),
        None => (DriftState::Unknown, Some("shows no number".to_owned())),
    }
}

fn wanted(knob: &Knob, wish: &Wish) -> Option<String> {
    match wish {
        Wish::Value { text, .. } => Some(knob.r#type.normal(text)),
        Wish::Pages(pages) => Some(pages.to_string()),
        Wish::Skipped { text, .. } => text.as_deref().map(|text| knob.r#type.normal(text)),
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
