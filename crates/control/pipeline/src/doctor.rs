//! `planish doctor`: what this machine loses, why, and the cure. Any user may ask; nothing is written.

use planish_model::{
    Class, Finding, HostFacts, KnobId, Measured, Observation, Reading, ServiceView, Severity, Verdict,
    VerdictKind,
};
use planish_observe::ServiceName;
use serde::Serialize;
use tracing::info_span;

use crate::error::PipelineError;
use crate::meant::no_service;
use crate::session::Session;
use crate::size::{Service, SizeRequest, size_on};
use crate::source::Source;

/// What was found on a host.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// The host.
    pub host: HostFacts,
    /// The profile that it was held against: as named, or the one that is made for the service.
    pub profile: Option<String>,
    /// What it loses: dangers and risks, then the dearest, then the gravest.
    pub findings: Vec<Finding>,
    /// What can be set here.
    pub knobs: Vec<KnobStatus>,
    /// The service that was named, through its own eyes.
    pub service: Option<ServiceView>,
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

/// Looks at the host once and says what it loses; with a profile, also where it differs from that. A service is looked
/// at with its own eyes; named without a profile, it is held against the one that is made for it, if there is one.
/// What trials measured on this host says what a finding may cost, before any general figure.
///
/// # Errors
/// A name that does not exist, maps of the service that a named profile needs and we may not read, a journal that
/// cannot be read.
pub fn doctor(
    session: &Session,
    profile: Option<&str>,
    service: Option<&Service>,
    measured: &[Measured],
) -> Result<Doctor, PipelineError> {
    let catalogue = session.sound_catalogue()?;
    let mut observation = session.observe();
    let mut view = service.map(|service| look(session, &mut observation, service)).transpose()?;
    if let Some(view) = view.as_mut().filter(|view| view.version.is_none()) {
        let packages = catalogue.packages_of(&view.program);
        view.version = planish_observe::installed(session.host(), &packages).into_iter().next();
    }
    let request = service.cloned().map(SizeRequest::Service);
    let sizing = request.map(|request| size_on(session, &observation, &request, None)).transpose();
    let sizing = match sizing {
        // Nobody asked for its pools: what may be seen of it is worth telling.
        Err(PipelineError::ServiceMaps { .. }) if profile.is_none() => None,
        other => other?,
    };
    // Of a service whose maps nobody may read no pool can be planned.
    let made_for = || {
        let view = view.as_ref().filter(|_| sizing.is_some())?;
        catalogue.profile_for(&view.program, view.version.as_ref().map(|found| found.version.as_str()))
    };
    let profile = profile.or_else(made_for).map(str::to_owned);
    let open = if profile.is_some() { session.open_entries()? } else { Vec::new() };
    let _stage = info_span!("decide").entered();
    let plan = match &profile {
        None => None,
        Some(name) => {
            let profile = Source::named(name).profile(session)?;
            session.observe_more(&profile, &mut observation);
            let options = planish_decide::Options { sizing, ..planish_decide::Options::default() };
            Some(planish_decide::plan(catalogue, &observation, &profile, &open, &options)?)
        }
    };
    // Most cures are for root to type.
    let typed = profile.as_deref().map(|profile| session.named_for_root(profile));
    let against = plan.as_ref().zip(typed.as_deref());
    let named = service.map(|service| match service {
        Service::Pid(pid) => pid.to_string(),
        Service::Name(name) => name.clone(),
    });
    let service = named.as_deref();
    let against = against.map(|(plan, source)| planish_decide::Against { plan, source, service });
    let findings = planish_decide::findings(catalogue, &observation, against);
    let mut findings = planish_decide::weigh(catalogue, findings, plan.as_ref(), measured);
    findings.splice(0..0, without_journal(session));
    let knobs = session.verdicts(&observation);
    Ok(Doctor { host: observation.host, profile, findings, knobs, service: view })
}

/// A journal that cannot be used, as a danger: nothing that was applied can be looked at or taken back, and every
/// command that sets something refuses.
fn without_journal(session: &Session) -> Option<Finding> {
    let error = session.ledger().err()?;
    Some(Finding {
        id: "planish.journal".to_owned(),
        knob: None,
        severity: Severity::Danger,
        may_cost: None,
        costs: None,
        risk: Some("what planish set on this host cannot be taken back".to_owned()),
        class: Class::Safe,
        evidence: error.in_full(),
        why: "The originals of all that was applied are in the journal, and nowhere else.".to_owned(),
        cure: error.hints().join("; "),
        source: "docs/journal.md".to_owned(),
    })
}

/// The service through its own eyes; its facts join those of the host, for the rules that ask for both.
fn look(
    session: &Session,
    observation: &mut Observation,
    service: &Service,
) -> Result<ServiceView, PipelineError> {
    let _stage = info_span!("service").entered();
    let name = match service {
        Service::Pid(pid) => ServiceName::Pid(*pid),
        Service::Name(name) => ServiceName::Name(name),
    };
    let seen = planish_observe::service(session.host(), observation, name).ok_or_else(|| {
        let service = match service {
            Service::Pid(pid) => pid.to_string(),
            Service::Name(name) => name.clone(),
        };
        no_service(session, service)
    })?;
    let facts = seen.facts.into_iter().map(|(name, value)| (name.to_owned(), value));
    observation.facts.extend(facts);
    Ok(seen.view)
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
