//! `planish doctor`: what this machine loses, why, and the cure. Any user may ask; nothing is written.

use planish_model::{Finding, HostFacts, KnobId, Observation, Reading, Verdict, VerdictKind};
use serde::Serialize;

use crate::error::PipelineError;
use crate::session::Session;
use crate::size::{Service, SizeRequest, size};

/// What was found on a host.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// The host.
    pub host: HostFacts,
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

/// Looks at the host once and says what it loses; with a profile, also where it differs from that.
///
/// # Errors
/// A name that does not exist, a journal that cannot be read.
pub fn doctor(
    session: &Session,
    profile: Option<&str>,
    service: Option<&Service>,
) -> Result<Doctor, PipelineError> {
    let catalogue = session.sound_catalogue()?;
    let observation = session.observe();
    let plan = match profile {
        None => None,
        Some(name) => {
            let profile = catalogue.profile(name)?;
            let request = service.cloned().map(SizeRequest::Service);
            let sizing = request.map(|request| size(session, &request, None)).transpose()?;
            let options = planish_decide::Options { sizing, ..planish_decide::Options::default() };
            let open = session.open_entries()?;
            Some(planish_decide::plan(catalogue, &observation, &profile, &open, &options)?)
        }
    };
    let findings = planish_decide::findings(catalogue, &observation, plan.as_ref());
    let knobs = session.verdicts(&observation);
    Ok(Doctor { host: observation.host, findings, knobs })
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
