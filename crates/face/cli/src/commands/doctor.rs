//! `planish doctor`

use planish_model::{Exit, Severity, quoted};
use planish_pipeline as pipeline;
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
    /// Look through the eyes of this service too, and size the pools of the profile for it: a process id or a name
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
    let report = DoctorReport {
        host: found.host,
        profile: found.profile,
        findings,
        knobs: KnobCounts::of(found.knobs.iter().map(|status| status.verdict.verdict)),
        service: found.service,
    };
    let lost = report.findings.iter().any(|finding| finding.severity > Severity::Note);
    let answer = context.answer(&report, session.catalogue());
    let mut answer = match (lost, report.findings.len()) {
        (true, _) => answer.exit(Exit::Findings),
        (false, 0) => {
            answer.note("no fault was seen; what a profile would gain is measured by: planish prove")
        }
        (false, notes) => answer.note(format!("{}, and nothing graver", units::count(notes, "note"))),
    };
    if report.profile.is_none() {
        let names: Vec<&str> = session.catalogue().profile_names().collect();
        answer = answer.note(format!("profiles: {}", names.join(", ")));
    }
    let is_postgres = report.service.as_ref().is_some_and(|service| service.name == "postgres");
    let is_of_pools = |id: &str| id.starts_with("hugetlb.") || id == "service.base_pages";
    if is_postgres && report.findings.iter().any(|finding| is_of_pools(&finding.id)) {
        answer = answer.note(asks_for_huge_pages(context));
    }
    // What was applied may be hidden from this user: doctor tells of the machine all the same.
    answer = without_journal(answer, &session);
    answer = once::notes(answer, &pipeline::boots_on_trial(&session).unwrap_or_default(), context);
    let profile = report.profile.as_deref().map_or("PROFILE".to_owned(), quoted);
    let service = args.service.as_ref().map(|service| format!(" --service {}", quoted(service)));
    Ok(answer.next(context.line(&format!("plan {profile}{}", service.unwrap_or_default()))))
}
