//! `planish import`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use planish_exchange::{
    Asked, ExchangeError, ImportFormat, Imported, ImportedLine, import_files, import_with, recognise,
    recognise_file, text_of,
};
use planish_model::{Exit, Profile, quoted};
use planish_pipeline::{Judging, Session};
use planish_report::{ImportReport, ImportRow};

use crate::answer::Answer;
use crate::commands::plan::file_argument;
use crate::commands::{read_file, write_new_file};
use crate::context::Context;
use crate::failure::Failure;

mod folder;

/// Read the settings of another tool as a profile
///
/// Each line is accepted, overridden by another one, or refused with its reason; nothing of the file is run. A file
/// that is none of its format is refused whole. What a profile of tuned includes is read too: from the folder beside
/// its own, else from where tuned keeps profiles on this host. The profile is printed, or saved with --output.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A tuned profile, a saptune note, a file of sysctl.d or tmpfiles.d, rules of udev, a unit of systemd or a
    /// drop-in, tasks of Ansible, an object of the Node Tuning operator, kernel arguments, or a script of `sysctl -w`
    /// and `echo > file` lines; - for standard input. A folder with what `export sysctl --output` wrote: one of
    /// sysctl.d, of tmpfiles.d and of udev, units and drop-ins, read together
    #[arg(value_name = "F")]
    file: PathBuf,
    /// The format, where the text does not tell
    #[arg(long, value_name = "FORMAT")]
    from: Option<From>,
    /// The name of the profile; without it that of the --output file, or of F, without its ending, or that of the
    /// folder of a tuned.conf
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Save the profile to F, which must not be there yet
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
}

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// A shell script
    Script,
    /// A file of sysctl.d
    Sysctl,
    /// A file of tmpfiles.d
    Tmpfiles,
    /// A profile of tuned
    Tuned,
    /// A note of saptune
    Saptune,
    /// Arguments of the kernel command line
    KernelArgs,
    /// Tasks of Ansible
    Ansible,
    /// An object of the Node Tuning operator
    NodeTuning,
    /// Rules of udev
    Udev,
    /// A unit of systemd, or a drop-in of one
    Unit,
}

impl From {
    fn format(self) -> ImportFormat {
        match self {
            Self::Script => ImportFormat::Script,
            Self::Sysctl => ImportFormat::Sysctl,
            Self::Tmpfiles => ImportFormat::Tmpfiles,
            Self::Tuned => ImportFormat::Tuned,
            Self::Saptune => ImportFormat::Saptune,
            Self::KernelArgs => ImportFormat::KernelArgs,
            Self::Ansible => ImportFormat::Ansible,
            Self::NodeTuning => ImportFormat::NodeTuning,
            Self::Udev => ImportFormat::Udev,
            Self::Unit => ImportFormat::Unit,
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let catalogue = session.sound_catalogue()?;
    let together = folder::files_of(&args.file, args.from.is_some())?;
    let name = args.name.clone().unwrap_or_else(|| name_of(&args.file, args.output.as_deref()));
    Profile::check_name(&name).map_err(|error| Failure::usage(error.to_string()).hint(error.cure()))?;
    refuse_other_ending(args.output.as_deref())?;
    let judging = Judging::on(&session);
    let imported = match &together {
        Some(files) => import_files(catalogue, &name, files, Some(&judging)),
        None => one_file(args, &name, &session, &judging)?,
    };
    let imported = imported.map_err(|error| refused(&args.file, &error))?;
    let overridden = imported.lines.iter().filter(|line| line.overridden_by.is_some()).count();
    let refused = imported.lines.iter().filter(|line| !line.is_accepted()).count() - overridden;
    let report = ImportReport {
        format: together.map_or(imported.format.name(), |_| "files").to_owned(),
        profile: imported.profile.name.clone(),
        text: imported.to_toml(),
        lines: imported.lines.into_iter().map(row).collect(),
    };
    let mut answer = context.answer(&report, catalogue);
    if refused > 0 {
        let count = report.lines.len();
        answer = answer
            .warning(format!("{refused} of {count} settings were refused: the profile says which and why"));
    }
    if overridden > 0 {
        let count = report.lines.len();
        answer = answer
            .note(format!("{overridden} of {count} settings are overridden: the profile says by which"));
    }
    // Also where a later line takes back all that an earlier one sets.
    let has_none = imported.profile.want.is_empty();
    if has_none {
        answer = answer.exit(Exit::Findings);
    }
    // A profile without a setting would pass for one that is applied already.
    if let Some(path) = args.output.as_ref().filter(|_| has_none) {
        answer = answer.note(format!("{} is not written: nothing of it would be set", path.display()));
    }
    if let Some(path) = args.output.as_ref().filter(|_| !has_none) {
        write_new_file(path, &report.text)?;
        answer = answer.saved().note(format!("written: {}", path.display()));
        return Ok(answer.next(context.line(&format!("plan {}", quoted(&file_argument(path, "json"))))));
    }
    if has_none {
        return Ok(answer.next(context.line("knobs")));
    }
    let output = quoted(&format!("./{}.toml", report.profile));
    Ok(answer.next(context.again(&format!("--output {output}"))))
}

/// A file of one format, and what that includes.
fn one_file(
    args: &Args,
    name: &str,
    session: &Session,
    judging: &Judging<'_>,
) -> Result<Result<Imported, ExchangeError>, Failure> {
    let text = text_of(&read_file(&args.file)?);
    // A drop-in does not say of which unit it is; where it lies does, wherever that is looked at from.
    let path = std::path::absolute(&args.file).unwrap_or_else(|_| args.file.clone());
    let path = path.to_string_lossy();
    let format = match args.from.map(From::format) {
        Some(format) => recognise(&text, format).map(|()| format),
        None => recognise_file(&text, &path),
    };
    let catalogue = session.sound_catalogue()?;
    let files = |asked: Asked<'_>| included(&args.file, asked, session);
    Ok(format
        .map(|format| import_with(catalogue, name, &text, format, Some(&files), Some(&path), Some(judging))))
}

fn refused(file: &Path, error: &ExchangeError) -> Failure {
    Failure::refused(format!("{} is not imported: {error}", file.display())).hint(error.cure())
}

/// Refuses a name by which no command takes the file for a profile.
fn refuse_other_ending(output: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = output.filter(|path| path.extension().is_none_or(|ending| ending != "toml")) else {
        return Ok(());
    };
    let told = format!("{}: a file is taken for a profile where its name ends in .toml", path.display());
    Err(Failure::usage(told).hint(format!("--output {}", quoted(&format!("{}.toml", path.display())))))
}

/// Where tuned looks for profiles, those of an administrator first; older releases have no folder of their own for
/// them.
const TUNED: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

/// The text of a file that a profile of tuned asks for.
fn included(file: &Path, asked: Asked<'_>, session: &Session) -> Option<String> {
    let on_host = |path: &str| session.host().read_lossy(path).ok();
    match asked {
        Asked::Profile(name) => {
            let beside = file.parent().map(|folder| folder.join("..").join(name).join("tuned.conf"));
            let beside = beside.and_then(|path| read_file(&path).ok());
            let text = beside.map(|bytes| text_of(&bytes));
            text.or_else(|| TUNED.iter().find_map(|folder| on_host(&format!("{folder}/{name}/tuned.conf"))))
        }
        // Its lines come back in what is refused: a file of anybody else's is not tuned's to show.
        Asked::Variables(path) => {
            let is_tuned = TUNED
                .iter()
                .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
            (is_tuned && path.split('/').all(|part| part != "..")).then(|| on_host(path))?
        }
    }
}

fn row(line: ImportedLine) -> ImportRow {
    let ImportedLine { line, text, knob, overridden_by, reason } = line;
    ImportRow { line, text, knob, overridden_by, reason }
}

/// The name of a profile that was not given one: that of its own file, by which it will be looked for, else that of the
/// file that it is made of. All profiles of tuned are a `tuned.conf` in a folder of their name.
fn name_of(file: &Path, output: Option<&Path>) -> String {
    let of_output = output.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    if let Some(name) = of_output.filter(|name| Profile::check_name(name).is_ok()) {
        return name;
    }
    let folder = || file.parent().and_then(Path::file_name);
    let named = match file.file_name() {
        Some(name) if name == "tuned.conf" => folder().or_else(|| file.file_stem()),
        _ => file.file_stem(),
    };
    let named = named.and_then(|named| Profile::name_from(&named.to_string_lossy()));
    named.unwrap_or_else(|| "imported".to_owned())
}
