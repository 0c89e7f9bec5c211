//! `planish doctor`: what this machine loses, why, and the cure. Any user may ask; nothing is written.

use planish_model::{
    Catalogue, Finding, HostFacts, KnobId, Observation, Reading, Sizing, Verdict, VerdictKind,
};
use serde::Serialize;
use tracing::info_span;

use crate::error::PipelineError;
use crate::session::Session;
use crate::size::{Service, SizeRequest, size_on};

/// What was found on a host.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// The host.
    pub host: HostFacts,
    /// The profile that it was held against: as named, or the one that is made for the service.
    pub profile: Option<String>,
    /// What it loses, the gravest first.
    pub findings: Vec<Finding>,
    /// What can be set here.
    pub knobs: Vec<KnobStatus>,
}

/// Whether a knob can be set on a host, and what its places show.
#[derive(Clone, Debug, Serialize)]
pub struct KnobStatus {
    /// The knob.
    pub id: KnobId,
    /// Its place, with holes where it addresses many.
    pub place: String,
    /// Its concrete places.
    pub places: Vec<Reading>,
    /// The best verdict that any of them got.
    pub verdict: Verdict,
}

/// Looks at the host once and says what it loses; with a profile, also where it differs from that. A service that
/// is named without a profile is held against the one that is made for it.
///
/// # Errors
/// A name that does not exist, a service that no profile is made for, a journal that cannot be read.
pub fn doctor(
    session: &Session,
    profile: Option<&str>,
    service: Option<&Service>,
) -> Result<Doctor, PipelineError> {
    let catalogue = session.sound_catalogue()?;
    let observation = session.observe();
    let request = service.cloned().map(SizeRequest::Service);
    let sizing = request.map(|request| size_on(session, &observation, &request, None)).transpose()?;
    let profile = match (profile, &sizing) {
        (Some(name), _) => Some(name.to_owned()),
        (None, Some(sizing)) => Some(made_for(catalogue, sizing)?),
        (None, None) => None,
    };
    let open = if profile.is_some() { session.open_entries()? } else { Vec::new() };
    let _stage = info_span!("decide").entered();
    let plan = match &profile {
        None => None,
        Some(name) => {
            let profile = catalogue.profile(name)?;
            let options = planish_decide::Options { sizing, ..planish_decide::Options::default() };
            Some(planish_decide::plan(catalogue, &observation, &profile, &open, &options)?)
        }
    };
    let findings = planish_decide::findings(catalogue, &observation, plan.as_ref());
    let knobs = session.verdicts(&observation);
    Ok(Doctor { host: observation.host, profile, findings, knobs })
}

/// The profile that is made for a service.
fn made_for(catalogue: &Catalogue, sizing: &Sizing) -> Result<String, PipelineError> {
    let service = sizing.service.clone().unwrap_or_default();
    catalogue.profile_for(&service).map(str::to_owned).ok_or_else(|| PipelineError::NoProfileFor {
        service,
        known: catalogue.profile_names().map(str::to_owned).collect(),
    })
}

impl Session {
    /// Whether each knob of the catalogue can be set here.
    #[must_use]
    pub fn verdicts(&self, observation: &Observation) -> Vec<KnobStatus> {
        let absent = || Verdict::new(VerdictKind::Absent, "this kernel or machine does not have it");
        let status = |knob: &planish_model::Knob| {
            let places = observation.knobs.get(&knob.id).cloned().unwrap_or_default();
            let verdicts = places.iter().map(|reading| planish_decide::verdict(knob, observation, reading));
            let verdict = verdicts.min_by_key(|verdict| verdict.verdict).unwrap_or_else(absent);
            KnobStatus { id: knob.id.clone(), place: knob.path.clone(), places, verdict }
        };
        self.catalogue().knobs().map(status).collect()
    }
}
