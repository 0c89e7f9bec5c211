//! Which running program was meant by a name that none has.

use planish_model::nearest;
use planish_residency::names;

use crate::error::PipelineError;
use crate::session::Session;

/// The program that runs and was probably meant: one that the profile of this name is for (`redis` is
/// `redis-server`), else the one with the nearest name. A number is no name.
#[must_use]
pub fn running_like(session: &Session, name: &str) -> Option<String> {
    if name.parse::<u32>().is_ok() {
        return None;
    }
    let running = names(session.host());
    let profile = session.catalogue().profile(name).ok();
    let of_profile = profile.and_then(|profile| running.iter().find(|program| profile.is_for(program)));
    let meant = of_profile.map(String::as_str);
    meant.or_else(|| nearest(name, running.iter().map(String::as_str))).map(str::to_owned)
}

/// That no service of this name or number runs.
pub(crate) fn no_service(session: &Session, service: String) -> PipelineError {
    PipelineError::NoService { nearest: running_like(session, &service), service }
}

/// The program that was probably meant, as the end of a sentence.
pub(crate) fn hint(nearest: Option<&String>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
