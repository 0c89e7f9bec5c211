//! The catalogue: every row of `catalogue/`, embedded in the binary, and the rows of the user.
//!
//! A user's own profiles and knobs are held to the same rules as ours. Errors name file, line and column, and the
//! nearest valid name.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use crate::{Computation, FindingRule, Knob, KnobId, Profile, Undo, ValueError, Want, nearest};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// Why a catalogue file, or a name in it, is wrong.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// Not TOML, or not the shape of a row.
    #[error("{file}:{line}:{column}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// No such knob.
    #[error("{file}: no knob `{id}`{}", hint(nearest.as_ref()))]
    UnknownKnob {
        /// Where it was named.
        file: String,
        /// The name.
        id: String,
        /// The nearest valid name.
        nearest: Option<String>,
    },
    /// No such profile.
    #[error("no profile `{name}`{}", hint(nearest.as_ref()))]
    UnknownProfile {
        /// The name.
        name: String,
        /// The nearest valid name.
        nearest: Option<String>,
    },
    /// A profile inherits itself.
    #[error("profile `{name}` inherits itself")]
    Cycle {
        /// The profile.
        name: String,
    },
    /// A wanted value that the knob cannot have.
    #[error("{file}: {knob}")]
    BadValue {
        /// The profile's file.
        file: String,
        /// The knob.
        knob: KnobId,
        /// What is wrong.
        #[source]
        source: ValueError,
    },
    /// Two rows of one name.
    #[error("{file}: `{id}` is defined twice")]
    Twice {
        /// The second file.
        file: String,
        /// The name.
        id: String,
    },
    /// A row breaks a rule of the catalogue.
    #[error("{file}: {id}: {rule}")]
    Rule {
        /// The file.
        file: String,
        /// The row.
        id: String,
        /// The rule.
        rule: &'static str,
    },
}

fn hint(nearest: Option<&String>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnobFile {
    knob: Vec<Knob>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindingFile {
    finding: Vec<FindingRule>,
}

/// What we know, as data: knobs, profiles and finding rules by name.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    knobs: BTreeMap<KnobId, Knob>,
    profiles: BTreeMap<String, (String, Profile)>,
    findings: Vec<FindingRule>,
}

impl Catalogue {
    /// The embedded catalogue.
    ///
    /// # Errors
    /// Never in a released binary: a test loads it.
    pub fn embedded() -> Result<Self, CatalogueError> {
        let mut catalogue = Self::default();
        for (file, text) in embedded::KNOBS {
            catalogue.add_knobs(file, text)?;
        }
        for (file, text) in embedded::FINDINGS {
            catalogue.add_findings(file, text)?;
        }
        for (file, text) in embedded::PROFILES {
            catalogue.add_profile(file, text)?;
        }
        catalogue.check()?;
        Ok(catalogue)
    }

    /// Adds the rows of a knob file.
    ///
    /// # Errors
    /// Malformed text, a name that is taken, a row that breaks a rule.
    pub fn add_knobs(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        for knob in parse::<KnobFile>(file, text)?.knob {
            if let Some(rule) = broken_rule(&knob) {
                return Err(CatalogueError::Rule { file: file.to_owned(), id: knob.id.to_string(), rule });
            }
            if self.knobs.contains_key(&knob.id) {
                return Err(CatalogueError::Twice { file: file.to_owned(), id: knob.id.to_string() });
            }
            self.knobs.insert(knob.id.clone(), knob);
        }
        Ok(())
    }

    /// Adds the rules of a findings file.
    ///
    /// # Errors
    /// Malformed text, a name that is taken.
    pub fn add_findings(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        for rule in parse::<FindingFile>(file, text)?.finding {
            if self.findings.iter().any(|other| other.id == rule.id) {
                return Err(CatalogueError::Twice { file: file.to_owned(), id: rule.id });
            }
            self.findings.push(rule);
        }
        Ok(())
    }

    /// Adds a profile; one of the same name is replaced, so that a user's own wins over ours.
    ///
    /// # Errors
    /// Malformed text. Names and values are checked by [`Self::check`].
    pub fn add_profile(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        let profile = parse::<Profile>(file, text)?;
        self.profiles.insert(profile.name.clone(), (file.to_owned(), profile));
        Ok(())
    }

    /// Checks every reference and every literal value of all rows.
    ///
    /// # Errors
    /// The first name that does not exist, or value that a knob cannot have.
    pub fn check(&self) -> Result<(), CatalogueError> {
        for knob in self.knobs.values() {
            for other in knob.coupled() {
                self.knob_in(&format!("knob {}", knob.id), other)?;
            }
        }
        for name in self.profiles.keys() {
            self.profile(name)?;
        }
        Ok(())
    }

    /// A knob by its id.
    ///
    /// # Errors
    /// Names the nearest valid id.
    pub fn knob(&self, id: &KnobId) -> Result<&Knob, CatalogueError> {
        self.knob_in("command line", id)
    }

    fn knob_in(&self, file: &str, id: &KnobId) -> Result<&Knob, CatalogueError> {
        self.knobs.get(id).ok_or_else(|| CatalogueError::UnknownKnob {
            file: file.to_owned(),
            id: id.to_string(),
            nearest: nearest(id.as_str(), self.knobs.keys().map(KnobId::as_str)).map(str::to_owned),
        })
    }

    /// All knobs, by id.
    pub fn knobs(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.values()
    }

    /// All finding rules, in the order of the files.
    #[must_use]
    pub fn findings(&self) -> &[FindingRule] {
        &self.findings
    }

    /// Names of all profiles.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// A profile with everything that it inherits, checked.
    ///
    /// # Errors
    /// No such profile, a cycle, a knob that does not exist, a value that a knob cannot have.
    pub fn profile(&self, name: &str) -> Result<Profile, CatalogueError> {
        self.flatten(name, &mut Vec::new())
    }

    /// A profile from the text of a file that is not in the catalogue, with everything that it inherits, checked.
    ///
    /// # Errors
    /// Malformed text, and as [`Self::profile`].
    pub fn parse_profile(&self, file: &str, text: &str) -> Result<Profile, CatalogueError> {
        self.resolve(file, &parse(file, text)?)
    }

    /// Checks a profile that is not in the catalogue (a trial's, a file of the user) and flattens it.
    ///
    /// # Errors
    /// As [`Self::profile`].
    pub fn resolve(&self, file: &str, profile: &Profile) -> Result<Profile, CatalogueError> {
        self.merge(file, profile, &mut vec![profile.name.clone()])
    }

    fn flatten(&self, name: &str, path: &mut Vec<String>) -> Result<Profile, CatalogueError> {
        if path.iter().any(|seen| seen == name) {
            return Err(CatalogueError::Cycle { name: name.to_owned() });
        }
        let Some((file, profile)) = self.profiles.get(name) else {
            return Err(CatalogueError::UnknownProfile {
                name: name.to_owned(),
                nearest: nearest(name, self.profile_names()).map(str::to_owned),
            });
        };
        path.push(name.to_owned());
        let merged = self.merge(file, profile, path);
        path.pop();
        merged
    }

    fn merge(
        &self,
        file: &str,
        profile: &Profile,
        path: &mut Vec<String>,
    ) -> Result<Profile, CatalogueError> {
        let mut want = BTreeMap::new();
        for parent in &profile.inherits {
            self.lay_over(&mut want, self.flatten(parent, path)?.want);
        }
        for (id, wanted) in &profile.want {
            self.check_want(file, id, wanted, profile)?;
        }
        self.lay_over(&mut want, profile.want.clone());
        Ok(Profile { inherits: Vec::new(), want, ..profile.clone() })
    }

    /// Lays wanted values over others: a value takes the place of its own knob's and of its twin's.
    fn lay_over(&self, want: &mut BTreeMap<KnobId, Want>, own: BTreeMap<KnobId, Want>) {
        for id in own.keys() {
            if let Some(twin) = self.knobs.get(id).and_then(|knob| knob.twin.as_ref()) {
                want.remove(twin);
            }
        }
        want.extend(own);
    }

    fn check_want(
        &self,
        file: &str,
        id: &KnobId,
        want: &Want,
        profile: &Profile,
    ) -> Result<(), CatalogueError> {
        let knob = self.knob_in(file, id)?;
        if let Some(rule) = broken_want(knob, want, profile) {
            return Err(CatalogueError::Rule { file: file.to_owned(), id: id.to_string(), rule });
        }
        if let Some(value) = want.literal() {
            knob.r#type.validate(&value).map_err(|source| CatalogueError::BadValue {
                file: file.to_owned(),
                knob: id.clone(),
                source,
            })?;
        }
        Ok(())
    }
}

/// The rules that a type cannot express.
fn broken_rule(knob: &Knob) -> Option<&'static str> {
    let id = knob.id.as_str();
    let dotted = id.contains('.')
        && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c));
    if !dotted {
        return Some("an id is dotted and lower case");
    }
    if !knob.path.starts_with('/') {
        return Some("a path starts at the root");
    }
    if [&knob.why, &knob.cost, &knob.source, &knob.proof].into_iter().any(|text| text.trim().is_empty()) {
        return Some("why, cost, source and proof are said");
    }
    None
}

/// The rules that a wanted value must keep besides its type.
fn broken_want(knob: &Knob, want: &Want, profile: &Profile) -> Option<&'static str> {
    let pool = knob.undo == Undo::Subtract;
    match want {
        Want::Need { .. } | Want::From { from: Computation::ServicePool } if !pool => {
            Some("is no pool: only pools are wanted by need_bytes or service_pool")
        }
        Want::Int(_) | Want::Text(_) | Want::Some { .. } if pool => {
            Some("is a pool, which others raise and lower too: say { need_bytes = N }")
        }
        Want::From { from: Computation::MinFreeHalfPercent } if knob.id.as_str() != "vm.min_free_kbytes" => {
            Some("min_free_half_percent is for vm.min_free_kbytes alone")
        }
        _ if knob.twin.as_ref().is_some_and(|twin| profile.want.contains_key(twin)) => {
            Some("is wanted together with its twin, and setting one clears the other")
        }
        _ => None,
    }
}

fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, CatalogueError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = &text[..at];
        CatalogueError::Malformed {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1,
            message: error.message().to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOB: &str = r#"
[[knob]]
id = "vm.swappiness"
path = "/proc/sys/vm/swappiness"
type = { int = "weight", min = 0, max = 200 }
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"
"#;

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        catalogue.add_knobs("own.toml", KNOB).expect("a good row");
        catalogue
    }

    #[test]
    fn the_embedded_catalogue_is_sound() {
        let catalogue = Catalogue::embedded().expect("sound");
        for name in catalogue.profile_names() {
            assert!(!catalogue.profile(name).expect("resolves").summary.is_empty(), "{name}");
        }
    }

    #[test]
    fn malformed_text_names_line_and_column() {
        let error = catalogue().add_profile("own.toml", "name = \"x\"\nsummary = \n").expect_err("no value");
        assert!(error.to_string().starts_with("own.toml:2:11: "), "{error}");
    }

    #[test]
    fn an_unknown_knob_names_the_nearest() {
        let mut catalogue = catalogue();
        let text = "name = \"x\"\nsummary = \"s\"\n[want]\n\"vm.swapiness\" = 1\n";
        catalogue.add_profile("own.toml", text).expect("well formed");
        let error = catalogue.check().expect_err("no such knob");
        assert_eq!(error.to_string(), "own.toml: no knob `vm.swapiness`; did you mean `vm.swappiness`?");
    }

    #[test]
    fn own_values_win_over_inherited_ones() {
        let mut catalogue = catalogue();
        let base = "name = \"base\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 1\n";
        let own = "name = \"own\"\nsummary = \"s\"\ninherits = [\"base\"]\n[want]\n\"vm.swappiness\" = 5\n";
        catalogue.add_profile("base.toml", base).expect("well formed");
        catalogue.add_profile("own.toml", own).expect("well formed");
        let profile = catalogue.profile("own").expect("resolves");
        assert_eq!(profile.want[&KnobId::new("vm.swappiness")], Want::Int(5));
    }

    /// Two twins and a pool.
    const COUPLED: &str = r#"
[[knob]]
id = "vm.dirty_bytes"
path = "/proc/sys/vm/dirty_bytes"
type = { int = "bytes", min = 8192 }
twin = "vm.dirty_ratio"
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"

[[knob]]
id = "vm.dirty_ratio"
path = "/proc/sys/vm/dirty_ratio"
type = { int = "percent", min = 0, max = 100 }
twin = "vm.dirty_bytes"
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"

[[knob]]
id = "hugepages.2m"
path = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"
type = { int = "pages", min = 0 }
undo = "subtract"
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"
"#;

    fn profile_error(want: &str) -> String {
        let mut catalogue = catalogue();
        catalogue.add_knobs("coupled.toml", COUPLED).expect("good rows");
        let text = format!("name = \"x\"\nsummary = \"s\"\n[want]\n{want}");
        catalogue.add_profile("own.toml", &text).expect("well formed");
        catalogue.check().expect_err("breaks a rule").to_string()
    }

    #[test]
    fn a_pool_is_never_wanted_as_an_absolute_number() {
        let error = profile_error("\"hugepages.2m\" = 512\n");
        assert!(error.contains("say { need_bytes = N }"), "{error}");
        let error = profile_error("\"vm.swappiness\" = { need_bytes = 512 }\n");
        assert!(error.contains("is no pool"), "{error}");
    }

    #[test]
    fn twins_are_never_wanted_together_but_a_heir_may_choose_the_other() {
        let error = profile_error("\"vm.dirty_bytes\" = 8192\n\"vm.dirty_ratio\" = 10\n");
        assert!(error.contains("its twin"), "{error}");
        let mut catalogue = catalogue();
        catalogue.add_knobs("coupled.toml", COUPLED).expect("good rows");
        let base = "name = \"base\"\nsummary = \"s\"\n[want]\n\"vm.dirty_ratio\" = 10\n";
        let own =
            "name = \"own\"\nsummary = \"s\"\ninherits = [\"base\"]\n[want]\n\"vm.dirty_bytes\" = 8192\n";
        catalogue.add_profile("base.toml", base).expect("well formed");
        catalogue.add_profile("own.toml", own).expect("well formed");
        let want = catalogue.profile("own").expect("resolves").want;
        assert_eq!(want.keys().map(KnobId::as_str).collect::<Vec<_>>(), ["vm.dirty_bytes"]);
    }

    #[test]
    fn a_cycle_is_named() {
        let mut catalogue = catalogue();
        catalogue.add_profile("a.toml", "name = \"a\"\nsummary = \"s\"\ninherits = [\"b\"]\n").expect("ok");
        catalogue.add_profile("b.toml", "name = \"b\"\nsummary = \"s\"\ninherits = [\"a\"]\n").expect("ok");
        assert_eq!(catalogue.check().expect_err("cycle").to_string(), "profile `a` inherits itself");
    }
}
