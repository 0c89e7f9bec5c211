//! `planish plan`: what would be written, and why. Any user may ask; nothing is written.

use planish_act::stack;
use planish_model::{
    Allowed, Class, Entry, EntryId, KnobId, Observation, Part, Plan, Profile, Skipped, ValueType,
};
use planish_residency::processes_named;
use tracing::info_span;

use crate::apply::ApplyOptions;
use crate::error::PipelineError;
use crate::session::Session;
use crate::size::{Service, SizeRequest, size_on};
use crate::source::{Named, Source};
use crate::{intent, persist, prepare, transition};

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
    /// The open entry whose place the plan takes.
    pub instead_of: Option<EntryId>,
    /// Whether it is to be applied with files for the next boot: some lines of others count no more then.
    pub persist: bool,
}

/// The plan of a profile for this host as it is now, or the plan in a file as it was made.
///
/// # Errors
/// Names that do not exist, a file that is no plan, a journal that cannot be read.
pub fn plan(session: &Session, source: &Source, options: &PlanOptions) -> Result<Plan, PipelineError> {
    match source.load(session)? {
        Named::Plan(plan) => {
            let entries = session.ledger()?.entries;
            Ok(with_second_writers(session, *plan, &entries, options.persist).0)
        }
        Named::Profile(profile) => {
            let plan = of_profile(session, &profile, options, &session.ledger()?.entries)?.0;
            refuse_overridden(session, &plan)?;
            Ok(plan)
        }
    }
}

/// Refuses a plan of which a file for a unit would count in part only: systemd reads lines of others behind it. `check`
/// tells such a line as what the next start brings.
///
/// # Errors
/// The file and line that wins.
pub(crate) fn refuse_overridden(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let steps = plan.steps.iter().filter(|step| step.part != Some(Part::Back));
    let steps = steps.map(|step| (&step.knob, step.place.as_str(), step.wanted.as_str()));
    let rows = plan.skipped.iter().filter(|row| row.satisfied);
    let rows = rows.filter_map(|row| Some((&row.knob, row.place.as_str(), row.wanted.as_deref()?)));
    for (knob, place, wanted) in steps.chain(rows) {
        let kind = session.catalogue().knob(knob).map(|knob| &knob.r#type);
        let Ok(kind @ ValueType::Directives { directives }) = kind else { continue };
        let later = planish_observe::later(session.host(), place, directives);
        let refused = planish_decide::refuse_overridden(place, &kind.normal(wanted), &later);
        refused.map_err(planish_decide::DecideError::from)?;
    }
    Ok(())
}

/// The same, of entries of the journal that are known already, with what was seen of the host for it: every place that
/// the plan names.
pub(crate) fn plan_and_look(
    session: &Session,
    named: Named,
    options: &PlanOptions,
    entries: &[Entry],
) -> Result<(Plan, Observation), PipelineError> {
    match named {
        Named::Plan(plan) => Ok(with_second_writers(session, *plan, entries, options.persist)),
        Named::Profile(profile) => of_profile(session, &profile, options, entries),
    }
}

fn of_profile(
    session: &Session,
    profile: &Profile,
    options: &PlanOptions,
    entries: &[Entry],
) -> Result<(Plan, Observation), PipelineError> {
    let observation = session.observe_to_plan(profile);
    let service = options.service.clone();
    let request = service.clone().map(SizeRequest::Service);
    let sizing = request.map(|request| size_on(session, &observation, &request, None)).transpose()?;
    let options = planish_decide::Options {
        allow_classes: options.allow_classes.clone(),
        allow_knobs: options.allow_knobs.clone(),
        sizing,
        exclude: options.exclude.clone(),
        instead_of: options.instead_of,
        persist: options.persist,
        files: false,
    };
    let mut open = session.holding(entries);
    // What goes back with an entry is what its undo would write.
    for entry in open.iter_mut().filter(|entry| Some(entry.id) == options.instead_of) {
        let steps = entry.steps.iter().map(|step| stack::with_originals(step, entries));
        entry.steps = steps.collect();
    }
    let _stage = info_span!("decide").entered();
    let plan = planish_decide::plan(session.catalogue(), &observation, profile, &open, &options)?;
    // All of it is in force, and comes into files: who tries a profile and then keeps it.
    let plan = match plan.steps.is_empty() && options.persist && writes_files(session, &plan, entries) {
        true => {
            let options = planish_decide::Options { files: true, ..options.clone() };
            planish_decide::plan(session.catalogue(), &observation, profile, &open, &options)?
        }
        false => plan,
    };
    let plan = match options.instead_of {
        Some(old) => {
            let (catalogue, exclude) = (session.catalogue(), &options.exclude);
            let is_excluded = |row: &Skipped| {
                planish_decide::left_out(catalogue, &observation, exclude, &row.knob, &row.place).is_some()
            };
            let plan = transition::take_place(session, entries, old, plan, &is_excluded)?;
            // The plan was judged beside the entry, and not yet without it.
            intent::refuse_ruinous(catalogue, &observation, &plan)?;
            plan
        }
        None => plan,
    };
    let mut plan =
        if options.persist { named_beside(session, plan, entries, &observation, true) } else { plan };
    if options.persist {
        plan.remarks.extend(transition::given_by_others(session.catalogue(), &open, &plan));
    }
    let unsuited = service.and_then(|service| of_others(session, profile, &service));
    let unsuited = unsuited.or_else(|| of_other_version(session, profile));
    let allowed = Allowed { classes: options.allow_classes, knobs: options.allow_knobs };
    let plan = Plan { unsuited, allowed, ..plan };
    Ok((with_unfollowed(plan, &observation), observation))
}

/// Whether an apply of a plan would write files for the next boot.
fn writes_files(session: &Session, plan: &Plan, entries: &[Entry]) -> bool {
    let sink = session.looking_sink();
    let prepared = prepare::prepare(session, plan, &ApplyOptions::to_files(), entries, &sink);
    prepared.is_ok_and(|prepared| !prepared.files.is_empty())
}

/// Why a profile is for other programs than the service that was named: none of its processes is one of those.
fn of_others(session: &Session, profile: &Profile, service: &Service) -> Option<String> {
    let host = session.host();
    let pids = match service {
        Service::Pid(pid) => vec![*pid],
        Service::Name(name) => processes_named(host, name),
    };
    let program = |pid: u32| {
        let name = host.read(&format!("/proc/{pid}/comm")).ok()?;
        Some(planish_observe::program(host, pid, name.trim()))
    };
    let programs: Vec<String> = pids.into_iter().filter_map(program).collect();
    if profile.programs.is_empty() || programs.iter().any(|program| profile.is_for(program)) {
        return None;
    }
    let program = programs.first()?;
    let instead = session.catalogue().profile_for(program, None);
    let cure = instead.map(|name| format!(": take {name}")).unwrap_or_default();
    let made_for = profile.programs.join(", ");
    Some(format!("{} is for {made_for}, and this service is {program}{cure}", profile.name))
}

/// Why a profile is for another version of its program than this host has: by every package that is installed, or else
/// by what runs. What cannot be told suits.
fn of_other_version(session: &Session, profile: &Profile) -> Option<String> {
    if profile.service_min.is_none() && profile.service_max.is_none() {
        return None;
    }
    let mut found = planish_observe::installed(session.host(), &profile.packages);
    found.extend(planish_observe::running(session.host(), &|program| profile.is_for(program)));
    // Beside another one it may be meant for that.
    let odd = found.iter().find(|found| !profile.suits(&found.version))?;
    if found.iter().any(|found| profile.suits(&found.version)) {
        return None;
    }
    let instead = session.catalogue().profile_instead(profile, &odd.version);
    let cure = instead.map(|name| format!(": take {name}")).unwrap_or_default();
    let (name, versions) = (&profile.name, profile.versions());
    Some(format!("{name} is for version {versions}, and this host has {} ({}){cure}", odd.version, odd.by))
}

/// A plan of a file with the programs that write its places too, as this host shows them now: what the file says of
/// them no hash covers. Those of another host are not here to be seen.
fn with_second_writers(
    session: &Session,
    plan: Plan,
    entries: &[Entry],
    persist: bool,
) -> (Plan, Observation) {
    let observation = session.observe_planned(&plan);
    if plan.host_id != observation.host.host_id {
        return (plan, observation);
    }
    let plan = named_beside(session, plan, entries, &observation, persist);
    (with_unfollowed(plan, &observation), observation)
}

/// A plan with the remark that others may write its places whom nobody looked for.
fn with_unfollowed(mut plan: Plan, observation: &Observation) -> Plan {
    let told = observation.not_followed().filter(|told| !plan.remarks.contains(told));
    plan.remarks.extend(told);
    plan
}

/// A plan with those who write its places, and those of the files that come with it.
fn named_beside(
    session: &Session,
    plan: Plan,
    entries: &[Entry],
    observation: &Observation,
    persist: bool,
) -> Plan {
    let keep = persist.then(|| persist::kept(session, &plan, entries, observation));
    let second_writers =
        planish_decide::second_writers(session.catalogue(), observation, &plan, keep.as_deref());
    Plan { second_writers, ..plan }
}
