//! `planish doctor`

use std::collections::BTreeSet;

use planish_model::{Access, Exit, Reading, ServiceView, Severity, VerdictKind, quoted};
use planish_pipeline::{self as pipeline, KnobStatus, Session};
use planish_report::{DoctorReport, KnobCounts, units};
use planish_trial::Proofs;

use crate::answer::Answer;
use crate::commands::plan::asks_for_huge_pages;
use crate::commands::{once, service, without_journal};
use crate::context::Context;
use crate::failure::Failure;

/// Tell what this machine loses, why, and the cure
///
/// Any user may ask; nothing is opened for writing. What is a danger or a risk comes first, then the dearest that
/// somebody has measured. With a profile, or a service that one is made for, its wanted values are compared too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also compare with this profile; with a slash, a profile in a file that ends in .toml
    #[arg(value_name = "PROFILE")]
    profile: Option<String>,
    /// Look through the eyes of this service too, and size the pools of the profile for it: a process id or a name, of
    /// which the process with most resident memory is looked at
    #[arg(long, value_name = "NAME|PID")]
    service: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let service = args.service.as_deref().map(service);
    let found = {
        // What others may not read of the folder of proofs is not known to them.
        let proofs = Proofs::of_state(session.state_folder());
        let measured = proofs.measured(&session.host().host_id()).unwrap_or_default();
        pipeline::doctor(&session, args.profile.as_deref(), service.as_ref(), &measured)?
    };
    let mut findings = found.findings;
    findings.iter_mut().for_each(|finding| finding.cure = context.here(&finding.cure));
    let out_of_reach = on_read_only_mounts(&found.knobs);
    let report = DoctorReport {
        host: found.host,
        profile: found.profile,
        findings,
        knobs: KnobCounts::of(found.knobs.iter().map(|status| status.verdict.verdict)),
        service: found.service,
    };
    let lost = report.findings.iter().any(|finding| finding.severity > Severity::Note);
    let answer = context.answer(&report, session.catalogue());
    let unread = report.service.as_ref().filter(|service| !service.unread.is_empty());
    let seen = unread.map(|service| format!(" in what could be read (not all of {})", service.name));
    let seen = seen.unwrap_or_default();
    let mut answer = match (lost, report.findings.len()) {
        (true, _) => answer.exit(Exit::Findings),
        // No profile gains anything either, where nothing of it can be set.
        (false, 0) if out_of_reach.is_some() => answer.note(format!("no fault was seen{seen}")),
        (false, 0) => answer.note(format!(
            "no fault was seen{seen}; what a profile would gain is measured by: planish prove"
        )),
        (false, notes) => answer.note(format!("{}, and nothing graver{seen}", units::count(notes, "note"))),
    };
    if report.profile.is_none() {
        let names: Vec<&str> = session.catalogue().profile_names().collect();
        answer = answer.note(format!("profiles: {}", names.join(", ")));
    }
    let hidden = report.service.as_ref().filter(|service| service.memory.is_none());
    if let Some(profile) =
        hidden.filter(|_| report.profile.is_none()).and_then(|service| made_for(service, &session))
    {
        answer = answer.note(format!(
            "{profile}, the profile that is made for it, was not compared: its pools are sized by mappings that could \
             not be read"
        ));
    }
    let is_postgres = report.service.as_ref().is_some_and(|service| service.name == "postgres");
    let is_of_pools = |id: &str| id.starts_with("hugetlb.") || id == "service.base_pages";
    if is_postgres && report.findings.iter().any(|finding| is_of_pools(&finding.id)) {
        answer = answer.note(asks_for_huge_pages(context));
    }
    // What was applied may be hidden from this user: doctor tells of the machine all the same.
    answer = without_journal(answer, &session);
    answer = once::notes(answer, &pipeline::boots_on_trial(&session).unwrap_or_default(), context);
    if let Some(told) = out_of_reach {
        return Ok(answer.note(told).next(context.line("knobs")));
    }
    // Root sees what is hidden; of a recording nobody does.
    if let Some(profile) = &report.profile {
        context.means(profile, &session);
    }
    let as_root = context.again_as_root("");
    if hidden.is_some() && as_root.starts_with("sudo ") {
        return Ok(answer.next(as_root));
    }
    let profile = report.profile.as_deref().map_or("PROFILE".to_owned(), quoted);
    let service = args.service.as_ref().map(|service| format!(" --service {}", quoted(service)));
    Ok(answer.next(context.line(&format!("plan {profile}{}", service.unwrap_or_default()))))
}

/// The profile that is made for a service.
fn made_for<'a>(service: &ServiceView, session: &'a Session) -> Option<&'a str> {
    let version = service.version.as_ref().map(|found| found.version.as_str());
    session.catalogue().profile_for(&service.program, version)
}

/// What keeps most of what could be set here from being set by anybody: a plan would come to nothing, and say so only
/// after it was asked for.
fn on_read_only_mounts(knobs: &[KnobStatus]) -> Option<String> {
    let of = |kind: VerdictKind| knobs.iter().filter(move |status| status.verdict.verdict == kind);
    let is_held =
        |place: &&Reading| matches!(&place.access, Access::ReadOnly(why) if why == Access::READ_ONLY_MOUNT);
    let held: Vec<&KnobStatus> =
        of(VerdictKind::Blocked).filter(|status| status.places.iter().any(|place| is_held(&place))).collect();
    let settable = of(VerdictKind::Settable).count();
    if held.len() <= settable {
        return None;
    }
    let places = held.iter().flat_map(|status| &status.places).filter(is_held);
    let mounts: BTreeSet<&str> = places.map(|place| mount_of(&place.place)).collect();
    let mounts: Vec<&str> = mounts.into_iter().collect();
    let are = if mounts.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} of {} settings can be set by nobody from here: {} {are} mounted read-only, as in a container; set them on \
         the machine that runs it, or have that one mount them writable",
        held.len(),
        held.len() + settable,
        mounts.join(" and "),
    ))
}

/// The folder that stands for a mount in a sentence: `/proc/sys`, `/sys`.
fn mount_of(place: &str) -> &str {
    if place.starts_with("/proc/sys/") {
        return "/proc/sys";
    }
    let end = place.match_indices('/').nth(1).map_or(place.len(), |(end, _)| end);
    &place[..end]
}
