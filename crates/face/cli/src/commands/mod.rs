//! One file per command: its arguments and what it does.

pub(crate) mod apply;
mod boots;
pub(crate) mod check;
pub(crate) mod confirm;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod hold;
pub(crate) mod host;
pub(crate) mod import;
pub(crate) mod install;
pub(crate) mod knobs;
pub(crate) mod latency;
pub(crate) mod log;
pub(crate) mod map;
mod monitor;
mod once;
pub(crate) mod plan;
pub(crate) mod profiles;
pub(crate) mod prove;
pub(crate) mod relocate;
pub(crate) mod run;
pub(crate) mod size;
pub(crate) mod text;
pub(crate) mod top;
pub(crate) mod topo;
pub(crate) mod trial;
pub(crate) mod undo;
pub(crate) mod version;
pub(crate) mod watch;
pub(crate) mod workload;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use planish_pipeline::{Service, Session};
use planish_sys::{CpuSet, NodeSet};

use crate::answer::Answer;
use crate::args::Command;
use crate::context::Context;
use crate::failure::Failure;
use crate::user_file;

/// Says so where the journal may not be read: what only looks at the machine goes on without it.
pub(crate) fn without_journal(answer: Answer, session: &Session) -> Answer {
    match session.unread_state() {
        Some(folder) => {
            let folder = folder.display();
            answer.note(format!(
                "this user may not read the journal in {folder}: nothing is known of what was applied"
            ))
        }
        None => answer,
    }
}

impl Command {
    /// The name that stands in the envelope and names the schema.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Doctor(_) => "doctor",
            Self::Plan(_) => "plan",
            Self::Apply(_) => "apply",
            Self::Confirm(_) => "confirm",
            Self::Check(_) => "check",
            Self::Undo(_) | Self::WatchConfirm(_) => "undo",
            Self::Log(_) => "log",
            Self::Knobs(_) => "knobs",
            Self::Profiles(_) => "profiles",
            Self::Import(_) => "import",
            Self::Export(_) => "export",
            Self::Size(_) => "size",
            Self::Map(_) => "map",
            Self::Move(_) => "move",
            Self::Top(args) => args.name(),
            Self::Topo(_) => "topo",
            Self::Latency(args) => args.name(),
            Self::Run(_) => "run",
            Self::Host(args) => args.name(),
            Self::Diff(_) => "host-diff",
            Self::Install(args) => args.name(),
            Self::Text(args) => args.name(),
            Self::Trial(args) => args.name(),
            Self::Prove(args) => args.name(),
            Self::Workload(_) => "workload",
            Self::Hold(_) => "hold",
            Self::Version(_) => "version",
        }
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, context: &Context) -> Result<Answer, Failure> {
        match self {
            Self::Doctor(args) => doctor::run(args, context),
            Self::Plan(args) => plan::run(args, context),
            Self::Apply(args) => apply::run(args, context),
            Self::Confirm(_) => confirm::run(context),
            Self::Check(args) => check::run(args, context),
            Self::Undo(args) => undo::run(args, context),
            Self::WatchConfirm(args) => watch::run(args, context),
            Self::Hold(args) => hold::run(args),
            Self::Log(_) => log::run(context),
            Self::Knobs(args) => knobs::run(args, context),
            Self::Profiles(args) => profiles::run(args, context),
            Self::Import(args) => import::run(args, context),
            Self::Export(args) => export::run(args, context),
            Self::Size(args) => size::run(args, context),
            Self::Map(args) => map::run(args, context),
            Self::Move(args) => relocate::run(args, context),
            Self::Top(args) => top::run(args, context),
            Self::Topo(_) => topo::run(context),
            Self::Latency(args) => latency::run(args, context),
            Self::Run(args) => run::run(args, context),
            Self::Host(args) => host::run(args, context),
            Self::Diff(args) => host::run_diff(args, context),
            Self::Install(args) => install::run(args, context),
            Self::Text(args) => text::run(args, context),
            Self::Trial(args) => trial::run(args, context),
            Self::Prove(args) => prove::run(args, context),
            Self::Workload(args) => workload::run(args, context),
            Self::Version(_) => Ok(version::run(context)),
        }
    }
}

/// A service as the command line names it: digits are a process id.
fn service(named: &str) -> Service {
    named.parse().map_or_else(|_| Service::Name(named.to_owned()), Service::Pid)
}

/// Writes a file that the user named.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// Writes a page of HTML into a file that the user named: over another page, and over nothing else.
pub(crate) fn write_page(path: &Path, page: &str) -> Result<(), Failure> {
    check_page(path)?;
    write_file(path, page)
}

/// Fails where [`write_page`] would.
pub(crate) fn check_page(path: &Path) -> Result<(), Failure> {
    const BEGIN: &[u8] = b"<!doctype html";
    check_writable(path)?;
    // A pipe is read by nobody here.
    if !path.metadata().is_ok_and(|facts| facts.is_file()) {
        return Ok(());
    }
    let mut begin = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    match read {
        Ok(_) if begin.is_empty() || begin.eq_ignore_ascii_case(BEGIN) => Ok(()),
        Ok(_) => {
            let failed = Failure::usage(format!("{} is there and is no page of HTML", path.display()));
            Err(failed.hint("name another file, or move that one away"))
        }
        // It may be written, and nobody knows over what.
        Err(source) => Err(not_writable(path, source)),
    }
}

/// Writes a file that the user named and that is no text.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    user_file::replace(path, bytes).map_err(|source| not_writable(path, source))
}

/// Writes a file that the user named and will edit: one that is there stays as it is.
pub(crate) fn write_new_file(path: &Path, text: &str) -> Result<(), Failure> {
    let opened = std::fs::File::options().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => is_there(path),
        _ => not_writable(path, source),
    })?;
    file.write_all(text.as_bytes()).map_err(|source| {
        // Half a file would be in the way of the next try.
        let _ = std::fs::remove_file(path);
        not_writable(path, source)
    })
}

/// A file is in the way, and nobody knows what it is worth.
pub(crate) fn is_there(path: &Path) -> Failure {
    let failed = Failure::refused(format!("{} is there already", path.display()));
    failed.hint("name another one, or move that one away")
}

/// Fails where [`write_file`] would, before the work that the file is to tell of. A file that is there stays as it is.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let failed = |source| not_writable(path, source);
    let end = user_file::end_of(path).map_err(failed)?;
    let was_there = end.exists();
    // What comes to lie there meanwhile may be a link of somebody else: nothing is made through one.
    let opened = std::fs::File::options().append(true).create_new(!was_there).open(&end);
    opened.map_err(failed)?;
    // An empty file would look like a page; where it cannot be taken away again, it is written soon.
    let _ = if was_there { Ok(()) } else { std::fs::remove_file(&end) };
    Ok(())
}

pub(crate) fn not_writable(path: &Path, source: std::io::Error) -> Failure {
    let cure = match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "make room there, or name a file on another disk"
        }
        _ => "name a file in a folder that is there and that you may write",
    };
    Failure::usage(UserFile { path: path.to_owned(), source }).hint(cure)
}

/// CPUs of an option.
pub(crate) fn cpus(text: &str) -> Result<CpuSet, String> {
    let cpus = CpuSet::parse_list(text).map_err(|error| error.to_string())?;
    if cpus.is_empty() { Err("no CPU is named".to_owned()) } else { Ok(cpus) }
}

/// Nodes of an option.
pub(crate) fn nodes(text: &str) -> Result<NodeSet, String> {
    let nodes = NodeSet::parse_list(text).map_err(|error| error.to_string())?;
    if nodes.is_empty() { Err("no node is named".to_owned()) } else { Ok(nodes) }
}

/// Bytes that a program or a recording of samples has at most.
const SAMPLES_MAX: u64 = 4 << 30;

/// Reads a file that the user named, or a pipe that is open already: a program, samples, settings.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    planish_sys::file::read_handed(path, SAMPLES_MAX)
        .map_err(|source| Failure::usage(UnreadFile { path: path.to_owned(), source }))
        .map_err(|failure| {
            failure.hint(of_folder(path).unwrap_or_else(|| "name a file that you may read".to_owned()))
        })
}

/// Which file of a folder was meant: tuned has each profile in a folder of its own.
fn of_folder(path: &Path) -> Option<String> {
    let inner = path.join("tuned.conf");
    let named = || format!("name the file in it: {}", inner.display());
    path.is_dir().then(|| if inner.is_file() { named() } else { "name a file of it".to_owned() })
}

/// Why it was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
struct UserFile {
    path: PathBuf,
    source: std::io::Error,
}

/// Why it was not read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
struct UnreadFile {
    path: PathBuf,
    source: std::io::Error,
}
