//! `planish import`

use std::path::PathBuf;

use clap::ValueEnum;
use planish_exchange::{ImportFormat, import};
use planish_model::{Exit, quoted};
use planish_report::{ImportReport, ImportRow};

use crate::answer::Answer;
use crate::commands::plan::file_argument;
use crate::commands::{read_file, write_file};
use crate::context::Context;
use crate::failure::Failure;

/// Read the settings of another tool as a profile
///
/// Each line is accepted, or refused with its reason; nothing of the file is run. The profile is printed, or saved
/// with --output.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A tuned profile, a saptune note, a file of sysctl.d or tmpfiles.d, kernel arguments, or a script of
    /// `sysctl -w` and `echo > file` lines
    #[arg(value_name = "F")]
    file: PathBuf,
    /// The format, where the text does not tell
    #[arg(long, value_name = "FORMAT")]
    from: Option<From>,
    /// The name of the profile; the file's own without its ending
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Save the profile to F
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
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let catalogue = session.sound_catalogue()?;
    let text = String::from_utf8_lossy(&read_file(&args.file)?).into_owned();
    let format = args.from.map_or_else(|| ImportFormat::guess(&text), From::format);
    let stem = || args.file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let imported = import(catalogue, &args.name.clone().unwrap_or_else(stem), &text, format);
    let refused = imported.lines.iter().filter(|line| !line.is_accepted()).count();
    let report = ImportReport {
        format: word(imported.format),
        profile: imported.profile.name.clone(),
        text: imported.to_toml(),
        lines: imported.lines.into_iter().map(row).collect(),
    };
    let mut answer = context.answer(&report, catalogue);
    if refused > 0 {
        let count = report.lines.len();
        answer = answer
            .warning(format!("{refused} of {count} lines were refused: the profile says which and why"));
    }
    if report.lines.len() == refused {
        answer = answer.exit(Exit::Findings);
    }
    if let Some(path) = &args.output {
        write_file(path, &report.text)?;
        if path.extension().is_none_or(|ending| ending != "toml") {
            answer = answer.note("a file is taken for a profile where its name ends in .toml");
        }
        return Ok(answer.next(context.line(&format!("plan {}", quoted(&file_argument(path, "json"))))));
    }
    let output = quoted(&format!("./{}.toml", report.profile));
    Ok(answer.next(context.again(&format!("--output {output}"))))
}

fn row(line: planish_exchange::ImportedLine) -> ImportRow {
    ImportRow { line: line.line, text: line.text, knob: line.knob, reason: line.reason }
}

/// The word of a format, as it is typed.
fn word(format: ImportFormat) -> String {
    match serde_json::to_value(format) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("a format is one word: {other:?}"),
    }
}
