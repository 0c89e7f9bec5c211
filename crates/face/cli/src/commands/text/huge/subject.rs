//! The file that is meant, what it takes to make it fit, and who runs it.

use std::path::{Path, PathBuf};

use planish_host::Host;
use planish_hugify::{Cached, HugifyError, Probe, Remake, coverage, refuse_patched, runners};
use planish_model::Exit;

use super::Args;
use crate::commands::read_file;
use crate::commands::text::huge_bytes;
use crate::failure::Failure;

/// What all routes are about.
pub(super) struct Subject {
    pub host: Host,
    /// As the host calls it, once all links are followed.
    pub path: String,
    pub bytes: Vec<u8>,
    pub remake: Remake,
    pub probe: Probe,
    /// What the page cache had of it.
    pub before: Cached,
    pub huge_bytes: u64,
    /// Processes that run it.
    pub running: Vec<u32>,
}

impl Subject {
    pub fn look(args: &Args) -> Result<Self, Failure> {
        let host = Host::live();
        let huge_bytes = huge_bytes(None)?;
        let path = path_of(&host, &args.subject)?;
        let length = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if length > args.max as u64 {
            let why = format!("{path} has {} MiB, more than --max allows", length >> 20);
            return Err(
                Failure::refused(why).hint(format!("planish ... --max {}M", length.div_ceil(1 << 20)))
            );
        }
        // Before all of it is read, which brings it into the page cache, and partly in huge pieces.
        let before = Probe::look(Path::new(&path), huge_bytes).and_then(|probe| probe.cached());
        let bytes = read_file(Path::new(&path))?;
        let remake = Remake::plan(&bytes, huge_bytes).map_err(|error| refused(&path, error))?;
        let image = remake.image().clone();
        let running = runners(&host, &path);
        for pid in &running {
            // What we may not look at is another user's: its text is the file's as far as anybody can tell.
            let compared = refuse_patched(&host, *pid, &path, &image, &bytes);
            if let Err(error @ HugifyError::Patched { .. }) = compared {
                return Err(refused(&path, error));
            }
        }
        let probe =
            Probe::open(Path::new(&path), image, huge_bytes).map_err(|error| refused(&path, error))?;
        let before = before.map_err(|error| refused(&path, error))?;
        Ok(Self { host, path, bytes, remake, probe, before, huge_bytes, running })
    }

    /// Bytes of the text of a process on huge pages.
    pub fn on_huge(&self, pid: u32) -> Option<u64> {
        let seen = coverage(&self.host, pid, &self.path, self.remake.image(), self.huge_bytes);
        seen.ok().flatten().map(|seen| seen.huge_bytes)
    }
}

/// The file that is meant, by the name that it has once all links are followed.
fn path_of(host: &Host, subject: &str) -> Result<String, Failure> {
    let Ok(pid) = subject.parse::<u32>() else {
        let path = std::fs::canonicalize(PathBuf::from(subject));
        let path = path.map_err(|source| unread(subject, source))?;
        let text = path.into_os_string().into_string();
        return text.map_err(|_| Failure::usage(format!("{subject} has a name that is no text")));
    };
    let exe = host.read_link(&format!("/proc/{pid}/exe"));
    let Some(exe) = exe else {
        let failed = Failure::usage(format!("the program of process {pid} cannot be found out"));
        return Err(failed.hint("name a process that runs and is yours, or its file"));
    };
    // An original that a copy of ours has the name of goes on under the name beside it.
    let is_original = |name: &str| name.starts_with('.') && name.ends_with(".planish");
    if exe.ends_with(" (deleted)") || exe.rsplit('/').next().is_some_and(is_original) {
        let why = format!("process {pid} runs a file that was replaced since: {exe}");
        return Err(Failure::refused(why).hint("name the file, or restart the process"));
    }
    Ok(exe)
}

#[derive(Debug, thiserror::Error)]
#[error("cannot find {path}")]
struct Unfound {
    path: String,
    source: std::io::Error,
}

fn unread(path: &str, source: std::io::Error) -> Failure {
    Failure::usage(Unfound { path: path.to_owned(), source }).hint("name a program that you may read")
}

#[derive(Debug, thiserror::Error)]
#[error("{path}")]
struct OfFile {
    path: String,
    source: HugifyError,
}

pub(super) fn refused(path: &str, source: HugifyError) -> Failure {
    let exit = match source {
        HugifyError::Elf(_) | HugifyError::Foreign | HugifyError::NotLoaded => Exit::Usage,
        _ => Exit::Refused,
    };
    let cure = source.cure();
    Failure::new(exit, OfFile { path: path.to_owned(), source }).hint(cure)
}
