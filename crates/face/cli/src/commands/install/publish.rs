//! `planish install publish`

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use planish_pipeline::{self as pipeline, InstallPublish};
use planish_report::InstallPublishReport;

use super::{agreed, listed, told};
use crate::answer::Answer;
use crate::commands::read_file;
use crate::context::Context;
use crate::failure::Failure;

/// Put a publish of every week on a timer of systemd
///
/// The service and the timer that `planish text publish --timer DIR` wrote, and a drop-in that has each boot start
/// the timer: three files below /etc/systemd/system, written as an entry of the journal, so that `planish undo` takes
/// them out again. Refused is a line that `planish text publish` does not write, and a service of another user that
/// would run as root. Nothing is started: the last line says what to type for now.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The timer, as it was written to DIR; its service lies beside it
    #[arg(value_name = "DIR/NAME.timer")]
    timer: PathBuf,
    /// Write without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let wanted = wanted(&args.timer)?;
    let files = pipeline::publish_units(&wanted)?;
    refuse_as_root(&args.timer.with_extension("service"), &wanted.service)?;
    agreed(&files, args.yes, context)?;
    let installed = pipeline::install_publish(&session, &wanted)?;
    let start = format!("systemctl daemon-reload && systemctl start {}.timer", wanted.name);
    let (files, outcomes) = (listed(files), installed.outcomes.clone());
    let report = InstallPublishReport { entry: installed.entry, files, outcomes };
    Ok(told(context.answer(&report, session.catalogue()), &installed, &start, context))
}

/// Both units, as they were written.
fn wanted(timer: &Path) -> Result<InstallPublish, Failure> {
    let name = timer.file_stem().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|_| timer.extension().is_some_and(|ending| ending == "timer"));
    let name = name.ok_or_else(|| {
        Failure::usage(format!("{} is no timer", timer.display()))
            .hint("planish text publish PROFILE --timer DIR writes DIR/planish-text-publish-NAME.timer")
    })?;
    let text = |path: &Path| read_file(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(InstallPublish { name, service: text(&timer.with_extension("service"))?, timer: text(timer)? })
}

/// Refuses what somebody else wrote, and root would run: a service runs as who publishes, and that is who wrote it.
fn refuse_as_root(service: &Path, text: &str) -> Result<(), Failure> {
    let owner = std::fs::metadata(service).map_err(Failure::usage)?.uid();
    let users: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("User=")).collect();
    if owner == 0 || users == [owner.to_string().as_str()] {
        return Ok(());
    }
    let failed =
        format!("{} belongs to user {owner}, and has no single line User={owner}", service.display());
    Err(Failure::refused(failed)
        .hint("have that user write it anew: planish text publish PROFILE --timer DIR"))
}
