//! `planish install publish`: the service and the timer that `planish text publish --timer` wrote for its user, as
//! files of systemd that `undo` takes out.
//!
//! What they say is the user's who publishes: the folder of the repository, the keys, the words of the command line.
//! The files lay in a user's folder, and must start nothing else as root: so they are read, and written anew.

mod units;

use std::time::Duration;

pub(crate) use units::OF_THE_SYSTEM;
pub use units::Weekly;

use crate::error::PipelineError;
use crate::install::{Installed, UnitFile, install, is_plain, refuse_unless};
use crate::session::Session;

/// What the entry is called in the log.
pub(crate) const NAME: &str = "install-publish";

/// What the name of every file of ours begins with.
pub(crate) const OWN: &str = "planish-text-publish-";

/// A name of a file has 255 bytes at most, and ours has a beginning and an end.
const NAME_BYTES_MAX: usize = 200;

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallPublish {
    /// What both units are called, without what stands behind the dot.
    pub name: String,
    /// What they say.
    pub units: Weekly,
}

/// The files of an installation, without writing anything.
///
/// # Errors
/// A name that `text publish` does not give, and a word that cannot stand in a unit.
pub fn publish_units(wanted: &InstallPublish) -> Result<Vec<UnitFile>, PipelineError> {
    Ok(files(wanted)?.into_iter().map(|(_, file)| file).collect())
}

/// Writes the files, each with its beginning and its end in the journal. What is there already is not written again.
///
/// # Errors
/// As [`publish_units`]; another installation of this name that is to be undone first; files of somebody else; a
/// journal that cannot be used.
pub fn install_publish(session: &Session, wanted: &InstallPublish) -> Result<Installed, PipelineError> {
    install(session, Duration::ZERO, NAME, None, files(wanted)?)
}

/// The files, each with its knob.
fn files(wanted: &InstallPublish) -> Result<Vec<(&'static str, UnitFile)>, PipelineError> {
    let InstallPublish { name, units } = wanted;
    let is_name = |c: char| is_plain(c) && !"/@+".contains(c);
    let is_sound = name.strip_prefix(OWN).is_some_and(|stem| !stem.is_empty() && stem.chars().all(is_name));
    refuse_unless(is_sound && name.len() <= NAME_BYTES_MAX, "name", name)?;
    let folder = "/etc/systemd/system";
    let file = |path: String, text: String| UnitFile { path, text };
    let pulled_in = format!("[Unit]\nWants={name}.timer\n");
    Ok(vec![
        ("install.publish-service", file(format!("{folder}/{name}.service"), units.service()?)),
        ("install.publish-timer", file(format!("{folder}/{name}.timer"), units.timer())),
        ("install.publish-target", file(format!("{folder}/timers.target.d/90-{name}.conf"), pulled_in)),
    ])
}
