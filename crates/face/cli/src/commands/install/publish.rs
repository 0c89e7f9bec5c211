//! `planish install publish`

use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use planish_model::quoted;
use planish_pipeline::{self as pipeline, InstallPublish, Weekly};
use planish_report::InstallPublishReport;
use rustix::fs::OFlags;

use super::{agreed, listed, told};
use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Put a publish of every week on a timer of systemd
///
/// The service and the timer that `planish text publish --timer DIR` wrote, and a drop-in that has each boot start
/// the timer: three files below /etc/systemd/system, written as an entry of the journal, so that `planish undo` takes
/// them out again. Both are written anew from what they say: a line that `planish text publish` does not write is
/// refused, and so is a service of another user that would not run as that user. The program is this one. Nothing is
/// started: the last line says what to type for now.
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
    agreed(&files, args.yes, context)?;
    let installed = pipeline::install_publish(&session, &wanted)?;
    let start = format!("systemctl daemon-reload && systemctl start {}.timer", wanted.name);
    let (files, outcomes) = (listed(files), installed.outcomes.clone());
    let report = InstallPublishReport { entry: installed.entry, files, outcomes };
    Ok(told(context.answer(&report, session.catalogue()), &installed, &start, context))
}

/// Both units, as they are to be written: by this program, and as who wrote the service.
fn wanted(timer: &Path) -> Result<InstallPublish, Failure> {
    let name = timer.file_stem().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|_| timer.extension().is_some_and(|ending| ending == "timer"));
    let name = name.ok_or_else(|| {
        Failure::usage(format!("{} is no timer", timer.display()))
            .hint("planish text publish PROFILE --timer DIR writes DIR/planish-text-publish-NAME.timer")
    })?;
    let path = timer.with_extension("service");
    let (service, writer) = written(&path)?;
    let (timer, _) = written(timer)?;
    let mut units = Weekly::read(&service, &timer)?;
    // What somebody else wrote runs as who wrote it, and not as root.
    if let Some(owner) = writer.filter(|owner| units.user != Some(*owner)) {
        let failed = format!("{} belongs to user {owner}, and has no line User={owner}", path.display());
        return Err(Failure::refused(failed).hint(ANEW));
    }
    // Git runs what lies in its repository: as root only what is root's.
    let owner = std::fs::metadata(&units.folder).map_or(0, |folder| folder.uid());
    if units.user.is_none() && owner != 0 {
        let failed =
            format!("{} belongs to user {owner}, and the service would run as root there", units.folder);
        return Err(Failure::refused(failed).hint(ANEW));
    }
    // A program of that user would get the right to record.
    units.program = std::env::current_exe().map_err(Failure::refused)?.to_string_lossy().into_owned();
    Ok(InstallPublish { name, units })
}

const ANEW: &str = "have that user write it anew: planish text publish PROFILE --timer DIR";

/// The text of a file, and the user who wrote it where that is not root.
fn written(path: &Path) -> Result<(String, Option<u32>), Failure> {
    let not_read = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    // Text and owner are of one file, whatever its name leads to meanwhile.
    let waits_for_nobody = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file =
        std::fs::OpenOptions::new().read(true).custom_flags(waits_for_nobody).open(path).map_err(not_read)?;
    let metadata = file.metadata().map_err(not_read)?;
    if !metadata.is_file() {
        return Err(Failure::usage(format!("{} is no file", path.display())));
    }
    if metadata.mode() & 0o022 != 0 {
        let failed = format!("{} may be written by others than its owner", path.display());
        return Err(Failure::refused(failed).hint(format!("chmod go-w {}", quoted(&path.to_string_lossy()))));
    }
    let mut text = String::new();
    file.by_ref().take(TEXT_BYTES_MAX).read_to_string(&mut text).map_err(not_read)?;
    Ok((text, Some(metadata.uid()).filter(|owner| *owner != 0)))
}

/// More than any command line: a longer file is cut off, and then no unit.
const TEXT_BYTES_MAX: u64 = 256 << 10;
