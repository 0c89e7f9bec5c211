//! `planish plan`: what would be written, and why. Any user may ask; nothing is written.

use planish_model::{Class, KnobId, Plan};
use tracing::info_span;

use crate::error::PipelineError;
use crate::session::Session;
use crate::size::{Service, SizeRequest, size_on};
use crate::source::{Named, Source};

/// What the user allows and names besides the profile.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Classes that may be set besides `safe`.
    pub allow_classes: Vec<Class>,
    /// Knobs that may be set whatever their class.
    pub allow_knobs: Vec<KnobId>,
    /// The service that pools are sized for.
    pub service: Option<Service>,
    /// Knobs that are left as they are, and second writers whose places are left to them.
    pub exclude: Vec<String>,
}

/// The plan of a profile for this host as it is now, or the plan in a file as it was made.
///
/// # Errors
/// Names that do not exist, a file that is no plan, a journal that cannot be read.
pub fn plan(session: &Session, source: &Source, options: &PlanOptions) -> Result<Plan, PipelineError> {
    let profile = match source.load(session)? {
        Named::Plan(plan) => return Ok(with_second_writers(session, plan)),
        Named::Profile(profile) => profile,
    };
    let observation = session.observe_for(&profile);
    let request = options.service.clone().map(SizeRequest::Service);
    let sizing = request.map(|request| size_on(session, &observation, &request, None)).transpose()?;
    let options = planish_decide::Options {
        allow_classes: options.allow_classes.clone(),
        allow_knobs: options.allow_knobs.clone(),
        sizing,
        exclude: options.exclude.clone(),
    };
    let open = session.open_entries()?;
    let _stage = info_span!("decide").entered();
    Ok(planish_decide::plan(session.catalogue(), &observation, &profile, &open, &options)?)
}

/// A plan of a file with the programs that write its places too, as this host shows them now: what the file says of
/// them no hash covers. Those of another host are not here to be seen.
fn with_second_writers(session: &Session, plan: Plan) -> Plan {
    let observation = session.observe();
    if plan.host_id != observation.host.host_id {
        return plan;
    }
    let second_writers = planish_decide::second_writers(session.catalogue(), &observation, &plan);
    Plan { second_writers, ..plan }
}
