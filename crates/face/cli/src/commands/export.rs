//! `planish export`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use planish_exchange::{ExportFormat, export};
use planish_model::quoted;
use planish_pipeline::{Source, outgoing};
use planish_report::{ExportReport, ExportRow, LeftOutRow};

use crate::answer::Answer;
use crate::commands::plan::Choice;
use crate::commands::{is_there, read_file, write_new_file};
use crate::context::Context;
use crate::failure::Failure;

/// Write a profile or a plan for another tool
///
/// Conditions and computed values are settled by this host. What is written sets values and saves none: only
/// `planish apply` can undo what it sets.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to write
    #[arg(value_name = "FORMAT")]
    format: To,
    /// A profile; with a slash or the ending .json, a plan file
    #[arg(value_name = "PROFILE|F")]
    source: String,
    /// Save the files below DIR, where none of them may be yet, unless it says the same
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// A shell script
    Script,
    /// sysctl.d, tmpfiles.d and a unit
    Sysctl,
    /// A profile of tuned
    Tuned,
    /// Tasks of Ansible
    Ansible,
    /// Arguments of the kernel command line
    KernelArgs,
    /// An object of the Node Tuning operator
    NodeTuning,
}

impl To {
    fn format(self) -> ExportFormat {
        match self {
            Self::Script => ExportFormat::Script,
            Self::Sysctl => ExportFormat::Sysctl,
            Self::Tuned => ExportFormat::Tuned,
            Self::Ansible => ExportFormat::Ansible,
            Self::KernelArgs => ExportFormat::KernelArgs,
            Self::NodeTuning => ExportFormat::NodeTuning,
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let out = outgoing(&session, &Source::named(&args.source), &args.choice.options())?;
    let format = args.format.format();
    let files = export(format, &out.name, &out.summary, &out.items).map_err(|error| {
        let cure = error.cure();
        Failure::usage(error).hint(cure)
    })?;
    let left_out = out.left_out.into_iter().map(|row| LeftOutRow { knob: row.knob, reason: row.reason });
    let report = ExportReport {
        format: format.name().to_owned(),
        files: files.into_iter().map(|file| ExportRow { path: file.path, text: file.text }).collect(),
        left_out: left_out.collect(),
    };
    let mut answer = context.answer(&report, session.catalogue());
    for row in &report.left_out {
        answer = answer.note(format!("{} is left out: {}", row.knob, row.reason));
    }
    if report.files.iter().all(|file| file.text.trim().is_empty()) {
        let source = quoted(&args.source);
        answer = answer.note(format!("of {source} there is nothing for {} on this host", report.format));
        return Ok(answer.next(context.root_line(&format!("apply {source}"))));
    }
    let Some(folder) = &args.output else {
        return Ok(answer.next(context.again("--output DIR")));
    };
    // All of them or none: half an export would mix two.
    report.files.iter().try_for_each(|file| refuse_older(folder, file))?;
    for file in &report.files {
        let path = save(folder, file)?;
        answer = answer.note(format!("written: {}", path.display()));
    }
    Ok(answer.next(context.line(&format!("check {}", quoted(&args.source)))))
}

/// Where a file of an export goes: below a folder, under the path where its tool looks for it.
fn place(folder: &Path, file: &ExportRow) -> PathBuf {
    folder.join(file.path.trim_start_matches('/'))
}

/// Refuses to lose a file that says something else: it may have been edited by hand.
fn refuse_older(folder: &Path, file: &ExportRow) -> Result<(), Failure> {
    let path = place(folder, file);
    let is_other = path.symlink_metadata().is_ok() && !is_same(&path, &file.text);
    if is_other { Err(is_there(&path)) } else { Ok(()) }
}

fn is_same(path: &Path, text: &str) -> bool {
    path.is_file() && read_file(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

/// Saves a file, unless it is there as it would be written.
fn save(folder: &Path, file: &ExportRow) -> Result<PathBuf, Failure> {
    let path = place(folder, file);
    if is_same(&path, &file.text) {
        return Ok(path);
    }
    if let Some(parent) = path.parent() {
        // What cannot be made is told by the write.
        let _ = std::fs::create_dir_all(parent);
    }
    write_new_file(&path, &file.text)?;
    Ok(path)
}
