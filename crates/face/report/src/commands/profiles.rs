//! `planish profiles`: which profiles there are, and what one of them wants on this host.

use planish_model::{Class, KnobId, Reading, Want, When, toml_value};
use schemars::JsonSchema;
use serde::Serialize;

use super::knobs::now;
use crate::page::{Page, Report, risk};
use crate::table::Table;

/// One profile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileRow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub summary: String,
    /// The file that it stands in, where it is one of the user's own; null for one that planish brings along.
    pub file: Option<String>,
    /// Profiles that it starts from, in order.
    pub inherits: Vec<String>,
    /// Programs that it is made for.
    pub programs: Vec<String>,
    /// Versions of them that it is made for, in words; empty for all.
    pub versions: String,
    /// Services that its table `[placement]` places.
    pub services: Vec<String>,
    /// What it wants by knob, with what it inherits.
    pub want: Vec<ProfileWant>,
}

/// What a profile wants of one knob.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileWant {
    /// The knob.
    pub id: KnobId,
    /// What is wanted, as a profile says it.
    pub wanted: Want,
    /// The profile that says so: this one, or one that it inherits.
    pub from: String,
    /// What may be lost.
    pub class: Class,
    /// When a new value takes effect.
    pub when: When,
    /// What setting it gains.
    pub why: String,
    /// Its places on this host, as they were read; none where all profiles are listed.
    pub readings: Vec<Reading>,
}

/// The profiles that were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfilesReport {
    /// By name.
    pub profiles: Vec<ProfileRow>,
    /// Whether one of them was asked for, and is told in full.
    pub is_one: bool,
}

impl Report for ProfilesReport {
    const COMMAND: &'static str = "profiles";

    fn text(&self, page: &mut Page<'_>) {
        if let ([one], true) = (self.profiles.as_slice(), self.is_one) {
            return one.details(page);
        }
        let mut table = Table::new(&["profile", "whose", "for what"]);
        for row in &self.profiles {
            let whose = if row.file.is_some() { "yours" } else { "ours" };
            table.row([row.name.as_str().into(), whose.into(), row.summary.as_str().into()]);
        }
        page.table(&table);
    }
}

impl ProfileRow {
    fn details(&self, page: &mut Page<'_>) {
        page.fact("profile", &self.name);
        page.fact("for what", &self.summary);
        page.fact("file", self.file.as_deref().unwrap_or_default());
        page.fact("inherits", &self.inherits.join(", "));
        let versions =
            if self.versions.is_empty() { String::new() } else { format!(", version {}", self.versions) };
        let programs = self.programs.join(", ");
        page.fact("programs", &if programs.is_empty() { programs } else { programs + &versions });
        page.fact("places", &self.services.join(", "));
        let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
        for row in &self.want {
            let wanted = match &row.wanted {
                Want::Int(_) | Want::Text(_) => row.wanted.literal().map(|raw| page.value(&row.id, &raw)),
                _ => None,
            };
            let wanted = wanted.unwrap_or_else(|| toml_value(&row.wanted));
            let why =
                if row.from == self.name { row.why.clone() } else { format!("{} ({})", row.why, row.from) };
            table.row([
                row.id.as_str().into(),
                now(&row.id, &row.readings, page).into(),
                wanted.into(),
                risk(row.class, row.when),
                why.into(),
            ]);
        }
        if !table.is_empty() {
            page.gap();
            page.table(&table);
        }
    }
}
