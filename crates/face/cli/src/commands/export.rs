//! `planish export`

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use planish_exchange::{ExchangeError, ExportFormat, Item, beyond, export_by};
use planish_model::{Exit, KnobId, quoted};
use planish_pipeline::{LeftOut, Source, outgoing};
use planish_report::{ExportReport, ExportRow, LeftOutRow};

use crate::answer::Answer;
use crate::commands::plan::Contents;
use crate::commands::{is_there, read_file, write_new_file};
use crate::context::Context;
use crate::failure::Failure;

/// Write a profile or a plan for another tool
///
/// Conditions and computed values are settled by this host. What is written sets values and saves none: only
/// `planish apply` can undo what it sets. Of a profile with nothing for a format there is no file, and exit code 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to write
    #[arg(value_name = "FORMAT")]
    format: To,
    /// A profile by its name, or its file with a slash and the ending .toml; a plan file with the ending .json
    #[arg(value_name = "PROFILE|F")]
    source: String,
    /// Save the files below DIR, where none of them may be yet, unless it says the same
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    contents: Contents,
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// A shell script
    Script,
    /// sysctl.d, tmpfiles.d, rules of udev, a unit and drop-ins of units
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
    args.contents.refuse_beside_file(&args.source, context)?;
    // What a plan would refuse is told with the profile that was named.
    if !Source::named(&args.source).is_plan_file() {
        context.plans(format!("{}{}", quoted(&args.source), args.contents.words()));
    }
    let out = outgoing(&session, &Source::named(&args.source), &args.contents.options())?;
    let format = args.format.format();
    let by = &out.arguments_by;
    let why_not = |item: &Item| beyond(format, item).map(Cow::Borrowed).or_else(|| by.beyond(format, item));
    let (items, odd): (Vec<_>, Vec<_>) = out.items.into_iter().partition(|item| why_not(item).is_none());
    // A script tells what it leaves to the command line of the kernel, in a comment.
    let in_comment = odd.iter().filter(|item| format == ExportFormat::Script && item.is_boot());
    let told: Vec<Item> = items.iter().chain(in_comment).cloned().collect();
    let odd = odd.iter().filter_map(|item| {
        let reason = why_not(item)?.into_owned();
        Some(LeftOutRow { knob: item.knob.clone(), reason })
    });
    // Without a value a script is a comment and an exit, which would pass for one that sets something.
    let files = if items.is_empty() {
        Vec::new()
    } else {
        export_by(format, by, &out.name, &out.summary, &told).map_err(|error| args.refused(error))?
    };
    let is_carried = |knob: &KnobId| items.iter().any(|item| item.knob == *knob);
    let row = |row: LeftOut| LeftOutRow { knob: row.knob, reason: row.reason };
    let left_out = out.left_out.into_iter().map(row);
    let report = ExportReport {
        format: format.name().to_owned(),
        files: files.into_iter().map(|file| ExportRow { path: file.path, text: file.text }).collect(),
        left_out: left_out.chain(odd).collect(),
        not_here: out.not_here.into_iter().filter(|row| is_carried(&row.knob)).map(row).collect(),
    };
    let mut answer = context.answer(&report, session.catalogue());
    // A command that can be typed: of this profile, with what was allowed.
    let apply = format!("planish apply {}{}", quoted(&args.source), args.contents.words());
    let left_out = notes(&report.left_out, "left out: ").into_iter();
    let left_out = left_out.map(|note| note.replace("planish apply", &apply));
    let not_here = notes(&report.not_here, "for other hosts, where a plan for this one sets nothing: ");
    for note in left_out.chain(not_here) {
        answer = answer.note(note);
    }
    if out.is_of_another_host {
        answer = answer.warning("the plan is for another host: the places and sizes are those of that one");
    }
    if report.files.is_empty() {
        let source = quoted(&args.source);
        let nothing = format!("of {source} there is nothing for {} on this host: no file", report.format);
        let words = args.contents.words();
        let answer = answer.warning(nothing).exit(Exit::Findings);
        return Ok(answer.next(context.root_line(&format!("apply {source}{words}"))));
    }
    let Some(folder) = &args.output else {
        return Ok(answer.next(context.again("--output DIR")));
    };
    for path in save_all(&report, folder)? {
        answer = answer.note(format!("written: {}", path.display()));
    }
    for note in installed(format, &out.name, folder, &report) {
        answer = answer.note(note);
    }
    answer = answer.saved();
    // What was computed for a service or allowed by hand, a check of the profile alone does not want.
    let words = args.contents.words();
    let command = if words.is_empty() { "check" } else { "plan" };
    Ok(answer.next(context.line(&format!("{command} {}{words}", quoted(&args.source)))))
}

impl Args {
    /// Why there is no file. That a format has no order is nothing that is wrong with what was typed.
    fn refused(&self, error: ExchangeError) -> Failure {
        let own = format!("{}{}", quoted(&self.source), self.contents.words());
        let cure = error.cure().replace("PROFILE", &own);
        let failure = match error {
            ExchangeError::Overlap { .. } => Failure::refused(error),
            _ => Failure::usage(error),
        };
        failure.hint(cure)
    }
}

/// Writes all files or none: half an export would mix two. Tells where they lie.
fn save_all(report: &ExportReport, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if folder.exists() && !folder.is_dir() {
        let told = format!("{} is a file, and the files of an export go below a folder", folder.display());
        return Err(Failure::usage(told).hint("name a folder, one that is not there yet, too: --output DIR"));
    }
    let places = report.files.iter().map(|file| {
        let path = place(folder, file);
        is_new(&path, &file.text).map(|is_new| (path, is_new))
    });
    let places: Vec<(PathBuf, bool)> = places.collect::<Result<_, _>>()?;
    for (file, (path, _)) in report.files.iter().zip(&places).filter(|(_, (_, is_new))| *is_new) {
        save(path, &file.text)?;
    }
    Ok(places.into_iter().map(|(path, _)| path).collect())
}

/// How what was written is put to work, each step as it is typed by root.
fn installed(format: ExportFormat, name: &str, folder: &Path, report: &ExportReport) -> Vec<String> {
    let below = |path: &str| quoted(&folder.join(path.trim_start_matches('/')).to_string_lossy());
    let Some(first) = report.files.first() else { return Vec::new() };
    let own = below(&first.path);
    let has = |folder: &str| report.files.iter().any(|file| file.path.starts_with(folder));
    let say = |steps: &str| vec![format!("to install it: {steps}")];
    match format {
        ExportFormat::Script => {
            say(&format!("sudo sh {own} sets it until the next boot; a unit or rc.local runs it at each"))
        }
        ExportFormat::Sysctl => {
            let mut steps = format!("sudo cp -r {}/. /etc/", below("etc"));
            if has("/etc/udev/") {
                steps += " && sudo udevadm control --reload";
            }
            if has_more_rules(report) {
                steps += " && sudo udevadm trigger --action=change --subsystem-match=block";
            }
            if has("/etc/systemd/") {
                steps += " && sudo systemctl daemon-reload";
            }
            if has(&format!("/etc/systemd/system/{name}-settings.service")) {
                steps += &format!(" && sudo systemctl enable --now {name}-settings.service");
            }
            say(&steps)
        }
        ExportFormat::Tuned => say(&format!(
            "sudo cp -r {}/. /etc/tuned/ && sudo tuned-adm profile {name}; newer releases of tuned look in \
             /etc/tuned/profiles/",
            below("etc/tuned")
        )),
        ExportFormat::Ansible => say(&format!(
            "these are tasks: name {own} in a play with ansible.builtin.import_tasks; ansible.posix must be installed"
        )),
        ExportFormat::KernelArgs => say(&format!(
            "sudo grubby --update-kernel=ALL --args=\"$(cat {own})\", or into GRUB_CMDLINE_LINUX of /etc/default/grub \
             and sudo update-grub; they count from the next boot on"
        )),
        ExportFormat::NodeTuning => say(&format!(
            "oc apply -f {own}, and for each node that is meant: oc label node NODE planish.dev/profile={name}"
        )),
    }
}

/// Whether disks are set by rules that no line of another file says, too: those count when a disk comes or changes.
fn has_more_rules(report: &ExportReport) -> bool {
    let lines = report.files.iter().flat_map(|file| file.text.lines());
    let (ruled, written): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| line.contains("ATTR{") || line.starts_with("w /sys/block/"))
        .partition(|line| line.contains("ATTR{"));
    ruled.len() > written.len()
}

/// What is left out, or goes out for others, in one sentence for each reason.
fn notes(rows: &[LeftOutRow], what: &str) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let known = by_reason.iter_mut().find(|(reason, _)| *reason == row.reason);
        match known {
            // A knob of many places has a row for each.
            Some((_, knobs)) if knobs.contains(&row.knob.as_str()) => {}
            Some((_, knobs)) => knobs.push(row.knob.as_str()),
            None => by_reason.push((&row.reason, vec![row.knob.as_str()])),
        }
    }
    let note = |(reason, knobs): &(&str, Vec<&str>)| {
        let verb = if knobs.len() == 1 { "is" } else { "are" };
        format!("{} {verb} {what}{reason}", knobs.join(", "))
    };
    by_reason.iter().map(note).collect()
}

/// Where a file of an export goes: below a folder, under the path where its tool looks for it.
fn place(folder: &Path, file: &ExportRow) -> PathBuf {
    folder.join(file.path.trim_start_matches('/'))
}

/// Whether a file is still to be written. One that says something else is not lost: it may have been edited by hand.
fn is_new(path: &Path, text: &str) -> Result<bool, Failure> {
    let is_same = || path.is_file() && read_file(path).is_ok_and(|bytes| bytes == text.as_bytes());
    match path.symlink_metadata() {
        Err(_) => Ok(true),
        Ok(_) if is_same() => Ok(false),
        Ok(_) => Err(is_there(path)),
    }
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(Err(source)) = path.parent().map(std::fs::create_dir_all) {
        let told = format!("cannot make the folder of {}: {source}", path.display());
        return Err(Failure::usage(told).hint("name a folder that you may write in: --output DIR"));
    }
    write_new_file(path, text)
}
