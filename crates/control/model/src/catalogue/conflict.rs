//! Two parents of a profile that do not agree.
//!
//! Which of them is right nobody can know: that one stands behind the other in a list is no reason. So the profile that
//! inherits both says it, or is refused with what each of them wants, and the line where that is in a file of the user.

use std::collections::BTreeMap;

use super::position::{located, of_want};
use super::{Catalogue, CatalogueError, ProfileFile};
use crate::{KnobId, PlacementRequest, Profile, Want, toml_value};

/// What the parents before one have laid down.
pub(super) struct Laid<'a> {
    pub want: &'a BTreeMap<KnobId, Want>,
    pub placement: Option<&'a PlacementRequest>,
}

impl Catalogue {
    /// Refuses a parent that wants otherwise than those before it, where the profile itself does not say what it is.
    pub(super) fn refuse_conflict(
        &self,
        at: &dyn Fn() -> String,
        profile: &Profile,
        laid: &Laid<'_>,
        parent: &str,
        inherited: &Profile,
    ) -> Result<(), CatalogueError> {
        let before = profile.inherits.iter().take_while(|name| *name != parent);
        let before: Vec<&str> = before.map(String::as_str).collect();
        let conflict = |knob: &str, parents: [String; 2]| CatalogueError::Conflict {
            file: at(),
            knob: knob.to_string(),
            parents: Box::new(parents),
        };
        for (id, want) in &inherited.want {
            let twin = self.knobs.get(id).and_then(|knob| knob.twin.as_ref());
            let settled =
                profile.want.contains_key(id) || twin.is_some_and(|id| profile.want.contains_key(id));
            let other = [Some(id), twin].into_iter().flatten().find_map(|id| laid.want.get_key_value(id));
            let Some((other, theirs)) = other.filter(|other| !settled && *other != (id, want)) else {
                continue;
            };
            let first = before.iter().rev().find_map(|name| self.says(name, other, theirs));
            let first = first.unwrap_or_else(|| format!("{other} = {}", toml_value(theirs)));
            let second = self.says(parent, id, want).unwrap_or_else(|| format!("`{parent}`"));
            return Err(conflict(id.as_str(), [first, second]));
        }
        let unsettled = profile.placement.is_none();
        match (laid.placement, &inherited.placement) {
            (Some(first), Some(second)) if unsettled && first != second => {
                let parents = [format!("`{}`", before.join("`, `")), format!("`{parent}`")];
                Err(conflict("placement", parents))
            }
            _ => Ok(()),
        }
    }

    /// The line with which a profile, or the one it has that from, wants a value.
    fn says(&self, name: &str, id: &KnobId, want: &Want) -> Option<String> {
        let ProfileFile { file, text, profile } =
            self.profiles.get(name).or_else(|| self.shipped.get(name))?;
        if profile.want.get(id) == Some(want) {
            let place = located(file, text, of_want(text, id.as_str()));
            return Some(format!("`{name}` wants {id} = {} ({place})", toml_value(want)));
        }
        // No cycle: the profile was laid out whole before.
        profile.inherits.iter().rev().find_map(|parent| self.says(parent, id, want))
    }
}
