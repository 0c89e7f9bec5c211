//! `planish host`

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Subcommand;
use planish_host::{Host, Meta, OpenError, RecordError, Redactions, record};
use planish_model::{Access, BootLoader, Catalogue, Exit, Observation, Persisted, Reading, bootline, quoted};
use planish_report::{Difference, HostDiffReport, HostRecordReport, units};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Record this machine in a folder, or compare two recorded ones
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Record),
    Diff(Diff),
}

/// Copy exactly the files that planish reads, without serial numbers, addresses and names
///
/// Every read-only command then answers on the copy as on the machine: planish --root DIR doctor.
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// A new or empty folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// What the machine is, in a sentence
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Let apply and undo write the copy: a rehearsal that leaves this machine alone
    ///
    /// The copy then answers writes as any kernel does (twins, words in brackets, sums of pools). What only this
    /// machine could tell, such as how many huge pages it still grants, a rehearsal does not show.
    #[arg(long)]
    writable: bool,
}

/// Tell in which facts, knobs, settings of the next boot and of units two machines differ
///
/// `planish diff` and `planish host diff` are one. `live` is this machine, a folder is a recorded one.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// A recorded machine; `live`, or `/`, is this one
    #[arg(value_name = "HOST")]
    left: PathBuf,
    /// The machine to compare it with
    #[arg(value_name = "HOST")]
    right: PathBuf,
}

impl Args {
    pub fn name(&self) -> &'static str {
        match self.command {
            Command::Record(_) => "host-record",
            Command::Diff(_) => "host-diff",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match &args.command {
        Command::Record(args) => run_record(args, context),
        Command::Diff(args) => run_diff(args, context),
    }
}

fn run_record(args: &Record, context: &Context) -> Result<Answer, Failure> {
    let host = context.host()?;
    let catalogue = Catalogue::embedded()?;
    // Reading is what makes the list of files: the same stages run as for every read-only command.
    let seen = planish_observe::observe(&host, &catalogue);
    planish_topo::Topology::read(&host);
    // What shares of the caches are held against: some thousand small files, and so not a part of every look.
    let _ = planish_observe::caches(&host);
    planish_observe::look_at_programs(&host, &catalogue);
    // Of units those that a shipped profile means by name: what else a host serves is told to nobody.
    for name in catalogue.profile_names() {
        let profile = catalogue.profile(name)?;
        planish_observe::unit_settings(&host, &catalogue, &profile.want, &mut seen.clone());
    }
    let name = args.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let meta = Meta {
        name: name.unwrap_or_default(),
        note: args.note.clone(),
        writable: args.writable,
        date: Some(today()),
        absent: Some(looked_for_in_vain(&seen)),
        virtualisation: Some(seen.host.guest.unwrap_or_else(|| "none".to_owned())),
        ..Meta::default()
    };
    let recorded =
        record(&host, &host.reads(), &args.folder, Redactions::default(), &catalogue.packages(), meta)?;
    let report = HostRecordReport {
        folder: args.folder.display().to_string(),
        files: recorded.files,
        unreadable: recorded.unreadable,
        bytes: recorded.bytes,
    };
    let answer = context.answer(&report, &catalogue);
    let answer = answer.warning("look through the copy before it leaves the machine");
    let root = format!("planish --root {}", quoted(&args.folder.to_string_lossy()));
    let rehearsal = if args.writable { "plan series" } else { "doctor" };
    Ok(answer.next(format!("{root} {rehearsal}")))
}

/// The rows of the catalogue of which there is nothing: what else is not in the recording, nobody looked for.
fn looked_for_in_vain(seen: &Observation) -> Vec<String> {
    let is_absent = |reading: &Reading| reading.access == Access::Absent;
    let nothing = seen.knobs.iter().filter(|(_, readings)| readings.iter().all(is_absent));
    nothing.map(|(id, _)| id).filter(|id| !seen.not_recorded.contains(*id)).map(ToString::to_string).collect()
}

fn today() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    units::moment(now)[..10].to_owned()
}

/// `planish host diff`, and `planish diff`, which is the same.
pub(crate) fn run_diff(args: &Diff, context: &Context) -> Result<Answer, Failure> {
    let catalogue = Catalogue::embedded()?;
    let observe = |folder: &Path| {
        // The root folder is no recording: what only this machine can be asked would be missing of it.
        let is_root = || folder.canonicalize().is_ok_and(|real| real == Path::new("/"));
        let live = folder == Path::new("live") || is_root();
        let open = || {
            Host::open_whole(folder).map_err(|error| Failure::from(error).hint("this machine is called live"))
        };
        let host = if live { Host::live() } else { open()? };
        let mut values = values(&planish_observe::observe(&host, &catalogue), &catalogue);
        values.extend(arguments(&host.read_lossy("/proc/cmdline").unwrap_or_default(), &catalogue));
        Ok::<_, Failure>((values, planish_observe::given_to_units(&host, &catalogue)))
    };
    let ((mut left, left_units), (mut right, right_units)) = (observe(&args.left)?, observe(&args.right)?);
    // A unit that one of them has not has no settings there either.
    for (values, own, other) in
        [(&mut left, &left_units, &right_units), (&mut right, &right_units, &left_units)]
    {
        for (unit, given) in own.iter().filter(|(unit, _)| other.contains_key(*unit)) {
            let given = given
                .iter()
                .map(|(name, value)| ((HostDiffReport::given(name), unit.clone()), value.clone()));
            values.extend(given);
        }
    }
    let report = HostDiffReport {
        left: args.left.display().to_string(),
        right: args.right.display().to_string(),
        differences: differences(&left, &right),
    };
    let answer = context.answer(&report, &catalogue);
    if report.differences.is_empty() {
        // A recording has the units that were looked at.
        let has_units = left_units.keys().any(|unit| right_units.contains_key(unit));
        return Ok(answer.note(match has_units {
            true => "no fact, no knob, no setting of the next boot and none of a unit that both have differs",
            false => "no fact, no knob and no setting of the next boot differs",
        }));
    }
    Ok(answer.exit(Exit::Findings))
}

/// What is compared of a machine, by what it is and where.
type Values = BTreeMap<(String, String), String>;

/// By what they are in, place by place.
fn differences(left: &Values, right: &Values) -> Vec<Difference> {
    let names: BTreeSet<&(String, String)> = left.keys().chain(right.keys()).collect();
    let differing = names.into_iter().filter(|name| match (left.get(name), right.get(name)) {
        (Some(left), Some(right)) => !is_same(left, right),
        (left, right) => left != right,
    });
    differing
        .map(|name| Difference {
            what: name.0.clone(),
            place: (!name.1.is_empty()).then(|| name.1.clone()),
            left: left.get(name).cloned(),
            right: right.get(name).cloned(),
        })
        .collect()
}

/// Whether two values are one as far as a recording tells: of what it left out nothing is known to differ.
fn is_same(left: &str, right: &str) -> bool {
    let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
    let same = |(left, right): (&&str, &&str)| left == right || [*left, *right].contains(&REDACTED);
    left.len() == right.len() && left.iter().zip(&right).all(same)
}

/// What a recording has in the place of a word that could tell which machine it is.
const REDACTED: &str = "redacted";

/// Everything that is compared, by what it is and where. Identities differ always and say nothing.
fn values(seen: &Observation, catalogue: &Catalogue) -> Values {
    let mut values = Values::new();
    let facts = serde_json::to_value(&seen.host).expect("facts are plain data");
    for (name, fact) in facts.as_object().into_iter().flatten() {
        if !fact.is_null() && !["host_id", "boot_id", "available_bytes", "root"].contains(&name.as_str()) {
            let text = fact.as_str().map_or_else(|| fact.to_string(), str::to_owned);
            values.insert((format!("host.{name}"), String::new()), text);
        }
    }
    for (knob, readings) in &seen.knobs {
        for reading in readings {
            // What is not there has no value, and is no empty one.
            if let Some(value) = reading.value.clone().or_else(|| reading.unread.clone()) {
                // Of a file of ours what it says.
                let own = catalogue.knob(knob).ok().filter(|knob| knob.is_own_file());
                let value = own.map_or(value.clone(), |knob| knob.r#type.normal(&value));
                values.insert((knob.to_string(), reading.place.clone()), value);
            }
            if let Some(next) = seen.persisted.get(&reading.place) {
                values.insert((HostDiffReport::persisted(knob), reading.place.clone()), persisted(next));
            }
        }
    }
    let loader = match &seen.boot {
        BootLoader::Known(files) => files.name.clone(),
        BootLoader::Outside { reason } | BootLoader::Unknown { reason, .. } => reason.clone(),
    };
    values.insert(("boot.loader".to_owned(), String::new()), loader);
    for writer in &seen.writers {
        let when = if writer.running { "at work" } else { "at work after the next boot" };
        let profile = writer.profile.as_ref().map(|profile| format!(", profile {profile}"));
        let text = format!("{when}{}", profile.unwrap_or_default());
        values.insert((format!("writer.{}", writer.id), String::new()), text);
    }
    values
}

/// Arguments of the kernel that say which machine it is, and nothing of how it runs.
const OF_ONE_MACHINE: [&str; 8] =
    ["BOOT_IMAGE", "initrd", "planish.entry", "planish.trial", "resume", "root", "rd.luks.uuid", "rd.lvm.lv"];

/// The arguments of a kernel that no knob of the catalogue is: of several of one name all.
fn arguments(cmdline: &str, catalogue: &Catalogue) -> Values {
    let known: Vec<&str> = catalogue.knobs().filter_map(|knob| Some(knob.boot_parameter()?.0)).collect();
    let mut values = Values::new();
    for argument in bootline::arguments(cmdline) {
        let (name, value) = bootline::parts(argument);
        let is_known = known.iter().any(|known| bootline::same_name(known, name));
        // The size that the next number of huge pages counts in: that number is compared.
        if is_known || name == "hugepagesz" || OF_ONE_MACHINE.contains(&name) {
            continue;
        }
        let text = values.entry((format!("argument.{name}"), String::new())).or_default();
        *text = format!("{text} {}", value.unwrap_or("given")).trim_start().to_owned();
    }
    values
}

/// What the next boot brings, and the file or the argument that says so. The number of a line is no difference.
fn persisted(next: &Persisted) -> String {
    let is_line = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    let file = next.source.rsplit_once(':').filter(|(path, line)| path.starts_with('/') && is_line(line));
    let why =
        if next.is_until_a_boot() { "no boot leaves it, and it" } else { "the menu was not made anew, and" };
    let other = next.at_boot.as_ref().map(|value| format!("; {why} gives {value}"));
    let source = file.map_or(next.source.as_str(), |(path, _)| path);
    format!("{} ({source}{})", next.value, other.unwrap_or_default())
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::usage(error).hint("planish host record DIR makes a folder that can be read")
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let in_the_way = |source: &io::Error| {
            matches!(source.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory)
        };
        let occupied = match &error {
            RecordError::Occupied { .. } => true,
            RecordError::Io { source, .. } => in_the_way(source),
            RecordError::Meta { .. } => false,
        };
        let failure = Self::usage(error);
        if occupied { failure.hint("name a folder that does not exist yet") } else { failure }
    }
}
