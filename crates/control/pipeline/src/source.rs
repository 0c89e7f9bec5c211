//! Where a plan comes from: a profile by name, a file, or a profile that the caller made.

use std::path::{Path, PathBuf};

use planish_model::{Plan, Profile};
use planish_sys::file;

use crate::error::PipelineError;
use crate::session::Session;

/// Where a plan comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A profile of the catalogue.
    Profile(String),
    /// A plan file, or a profile file in TOML.
    File(PathBuf),
    /// A profile that the caller made: a trial's.
    Inline(Box<Profile>),
}

/// What a source names.
pub(crate) enum Named {
    /// A plan, to be applied exactly so or not at all.
    Plan(Box<Plan>),
    /// A profile with everything that it inherits, checked.
    Profile(Box<Profile>),
}

impl Source {
    /// A source as the command line names it: with a slash or the ending `.json` it is a file, else a profile.
    #[must_use]
    pub fn named(argument: &str) -> Self {
        if argument.contains('/') || argument.ends_with(".json") {
            Self::File(PathBuf::from(argument))
        } else {
            Self::Profile(argument.to_owned())
        }
    }

    /// Whether it is a file that is taken for a plan.
    #[must_use]
    pub fn is_plan_file(&self) -> bool {
        matches!(self, Self::File(path) if !is_profile(path))
    }

    /// Whether it names no profile, and would name a file that is there if it had a slash.
    #[must_use]
    pub fn is_file_by_name(&self, session: &Session) -> bool {
        let Self::Profile(name) = self else { return false };
        !session.catalogue().profile_names().any(|known| known == name) && Path::new(name).is_file()
    }

    /// The profile in a file as it stands there, checked: what it inherits is named and not laid under it. `None` for a
    /// source that is no file.
    ///
    /// # Errors
    /// A file that cannot be read or is a plan; a profile that is wrong, with line and column.
    pub fn own_profile(&self, session: &Session) -> Result<Option<Profile>, PipelineError> {
        let Self::File(path) = self else { return Ok(None) };
        if !is_profile(path) {
            return Err(PipelineError::NotAProfile { path: path.clone() });
        }
        let text = text_of(path)?;
        Ok(Some(session.sound_catalogue()?.read_profile(&path.display().to_string(), &text)?))
    }

    /// The profile that it names, with everything that it inherits.
    pub(crate) fn profile(&self, session: &Session) -> Result<Profile, PipelineError> {
        match (self.load(session)?, self) {
            (Named::Profile(profile), _) => Ok(*profile),
            (Named::Plan(_), Self::File(path)) => Err(PipelineError::NotAProfile { path: path.clone() }),
            (Named::Plan(_), _) => unreachable!("only a file holds a plan"),
        }
    }

    pub(crate) fn load(&self, session: &Session) -> Result<Named, PipelineError> {
        let catalogue = session.sound_catalogue()?;
        match self {
            Self::Profile(name) if self.is_file_by_name(session) => {
                Err(PipelineError::FileByName { name: name.clone() })
            }
            Self::Profile(name) => Ok(Named::Profile(Box::new(catalogue.profile(name)?))),
            Self::Inline(profile) => {
                Ok(Named::Profile(Box::new(catalogue.resolve("inline profile", profile)?)))
            }
            Self::File(path) => {
                let text = text_of(path)?;
                if is_profile(path) {
                    let profile = catalogue.parse_profile(&path.display().to_string(), &text)?;
                    return Ok(Named::Profile(Box::new(profile)));
                }
                Ok(Named::Plan(Box::new(plan_in(path, &text)?)))
            }
        }
    }
}

/// Whether a file holds a profile: what else a source names is a plan.
fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn text_of(path: &Path) -> Result<String, PipelineError> {
    file::read_text(path).map_err(|source| PipelineError::Unreadable { path: path.to_owned(), source })
}

/// The plan in a file: the result of `planish plan`, alone or in its whole JSON answer.
fn plan_in(path: &Path, text: &str) -> Result<Plan, PipelineError> {
    let wrong = |source| PipelineError::NotAPlan { path: path.to_owned(), source };
    let whole: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
    let has_envelope = whole.get("schema").is_some() && whole.get("result").is_some();
    let mut plan: Plan = if has_envelope {
        serde_json::from_value(whole["result"].clone()).map_err(wrong)?
    } else {
        serde_json::from_str(text).map_err(wrong)?
    };
    if !plan.is_intact() {
        return Err(PipelineError::Edited { hash: plan.hash.to_string() });
    }
    // No hash covers what the file says to type about other programs, or where services are to be, so none of it is
    // shown as if we had said it.
    plan.second_writers.clear();
    plan.placement = None;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use planish_model::Exit;

    use super::*;

    fn plan() -> Plan {
        Plan::new("series".to_owned(), "host".to_owned(), "boot".to_owned(), vec![], vec![])
    }

    #[test]
    fn an_argument_is_a_file_or_a_profile() {
        assert!(matches!(Source::named("series"), Source::Profile(_)));
        assert!(matches!(Source::named("./series"), Source::File(_)));
        assert!(matches!(Source::named("plan.json"), Source::File(_)));
    }

    #[test]
    fn a_plan_is_read_alone_and_in_its_answer() {
        let path = Path::new("plan.json");
        let alone = serde_json::to_string(&plan()).expect("plain data");
        assert_eq!(plan_in(path, &alone).expect("a plan"), plan());
        let answer = serde_json::json!({ "schema": "planish.plan/1", "exit": 0, "result": plan() });
        assert_eq!(plan_in(path, &answer.to_string()).expect("a plan"), plan());
    }

    #[test]
    fn a_plan_that_was_edited_is_refused() {
        let text = serde_json::to_string(&plan()).expect("plain data").replace("\"boot\"", "\"other\"");
        let error = plan_in(Path::new("plan.json"), &text).expect_err("edited");
        assert!(matches!(error, PipelineError::Edited { .. }), "{error}");
        assert_eq!(error.exit(), Exit::Refused);
    }

    #[test]
    fn what_is_no_plan_is_a_usage_error() {
        for text in ["", "[1]", "{\"steps\": 1}", "name = 1"] {
            let error = plan_in(Path::new("plan.json"), text).expect_err("no plan");
            assert_eq!(error.exit(), Exit::Usage, "{text}");
        }
    }
}
