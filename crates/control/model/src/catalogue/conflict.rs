//! Two parents of a profile that do not agree.
//!
//! Which of them is right nobody can know: that one stands behind the other in a list is no reason. So the profile that
//! inherits both says it, or is refused with what each of them wants, and the line where that is in a file of the user.

use std::collections::BTreeMap;

use super::position::{located, of_want};
use super::{Catalogue, ProfileFile};
use crate::{KnobId, PlacementRequest, Profile, Want, toml_value};

/// What the parents before one have laid down.
pub(super) struct Laid<'a> {
    pub want: &'a BTreeMap<KnobId, Want>,
    pub placement: Option<&'a PlacementRequest>,
}

/// A setting of which two parents do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The knob, or the table that both have.
    pub knob: String,
    /// Each parent, with what it wants.
    pub parents: [String; 2],
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} and {}", self.parents[0], self.parents[1])
    }
}

impl Catalogue {
    /// What a parent wants otherwise than those before it, where the profile itself does not say what it is.
    pub(super) fn conflicts(
        &self,
        profile: &Profile,
        laid: &Laid<'_>,
        parent: &str,
        inherited: &Profile,
    ) -> Vec<Conflict> {
        let before = profile.inherits.iter().take_while(|name| *name != parent);
        let before: Vec<&str> = before.map(String::as_str).collect();
        let mut found = Vec::new();
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
            found.push(Conflict { knob: id.to_string(), parents: [first, second] });
        }
        let unsettled = profile.placement.is_none();
        if let (Some(first), Some(second)) = (laid.placement, &inherited.placement)
            && unsettled
            && first != second
        {
            let parents = [format!("`{}`", before.join("`, `")), format!("`{parent}`")];
            found.push(Conflict { knob: "placement".to_owned(), parents });
        }
        found
    }

    /// How a parent wants a value: by itself or by way of one that it inherits; of a user's own file, in which line.
    fn says(&self, name: &str, id: &KnobId, want: &Want) -> Option<String> {
        let ProfileFile { file, text, profile } = self.wanted_by(name, id, want)?;
        let by = match profile.name == name {
            true => format!("`{name}`"),
            false => format!("`{name}`, by way of `{}`,", profile.name),
        };
        // What is shipped is in no file of the host.
        let place = match text.is_empty() {
            true => String::new(),
            false => format!(" ({})", located(file, text, of_want(text, id.as_str()))),
        };
        Some(format!("{by} wants {id} = {}{place}", toml_value(want)))
    }

    /// The profile that wants a value: this one, or the one that it has that from.
    pub(super) fn wanted_by(&self, name: &str, id: &KnobId, want: &Want) -> Option<&ProfileFile> {
        let found = self.profiles.get(name).or_else(|| self.shipped.get(name))?;
        if found.profile.want.get(id) == Some(want) {
            return Some(found);
        }
        // No cycle: the profile was laid out whole before.
        found.profile.inherits.iter().rev().find_map(|parent| self.wanted_by(parent, id, want))
    }
}
