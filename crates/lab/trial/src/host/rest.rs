//! The host between two blocks, when nothing of a trial is on it.

use std::collections::BTreeMap;

use planish_model::{KnobId, Profile};

use super::HostControl;

/// Whether the places that a trial sets are at rest as they were before its first block. An `apply` that somebody types
/// gets in between two units: from then on the baseline is another one, and no pair of before can be held against one
/// of after.
#[derive(Debug, Default)]
pub(crate) struct AtRest {
    /// The places that the trial sets, each with its knob and what it showed.
    first: Option<BTreeMap<String, (KnobId, String)>>,
    changed: Option<String>,
}

impl AtRest {
    /// Looks at what these profiles set. It costs a read of each place, before and after a block, for all arms alike.
    pub(crate) fn look(&mut self, profiles: &[&Profile], host: &dyn HostControl) {
        if profiles.is_empty() || self.changed.is_some() {
            return;
        }
        let first = self.first.get_or_insert_with(|| {
            let places = profiles.iter().flat_map(|profile| host.places(profile));
            places.filter_map(|(knob, place)| Some((place.clone(), (knob, host.value(&place)?)))).collect()
        });
        let other = first.iter().find_map(|(place, (knob, first))| {
            let now = host.value(place)?;
            (!host.same(knob, first, &now))
                .then(|| format!("{place} was `{}` and is `{}`", first.trim(), now.trim()))
        });
        self.changed = other;
    }

    /// Whether any of them has changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// What has changed, for the notes of an outcome.
    pub(crate) fn note(&self) -> Option<String> {
        let changed = self.changed.as_ref()?;
        Some(format!(
            "{changed} between two units: something else set the host during the trial, and its pairs are of two \
             hosts, so nothing is kept: run it again while nothing else sets the host"
        ))
    }
}
