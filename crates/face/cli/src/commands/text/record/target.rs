//! Who is recorded: a command, a process, a control group, the host.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use planish_host::Host;
use planish_sys::cgroup::perf_event_folder;
use planish_sys::process::pidfd;
use planish_sys::sampling::{Sampler, SamplingError, Source, Target};
use planish_sys::{CpuSet, Errno};
use rustix::process::Pid;

use super::Args;
use super::child::Waiting;
use crate::failure::Failure;

/// Who is recorded.
pub(crate) enum Who {
    /// A command that will be started.
    Command(Waiting),
    /// A process, by a descriptor that tells its end.
    Process { pid: i32, end: OwnedFd },
    /// A control group.
    Group { folder: PathBuf, opened: File },
    /// Everything.
    Host,
}

/// Finds who is meant.
pub(crate) fn resolve(args: &Args, host: &Host) -> Result<Who, Failure> {
    if let Some(pid) = args.pid {
        return process(pid);
    }
    if let Some(path) = &args.cgroup {
        return group(path);
    }
    if let Some(unit) = &args.unit {
        return self::unit(unit, host);
    }
    if args.all {
        return Ok(Who::Host);
    }
    Waiting::new(&args.command).map(Who::Command).map_err(Failure::refused)
}

fn process(pid: i32) -> Result<Who, Failure> {
    let gone = || no_process(pid);
    match pidfd(Pid::from_raw(pid).ok_or_else(gone)?) {
        Ok(end) => Ok(Who::Process { pid, end }),
        // EINVAL: the number of a thread that leads no process.
        Err(error) if matches!(error.errno(), Some(Errno::SRCH | Errno::INVAL)) => Err(gone()),
        Err(error) => Err(Failure::refused(error)),
    }
}

pub(crate) fn no_process(pid: i32) -> Failure {
    Failure::usage(format!("there is no process {pid}")).hint("find its number: pgrep -a NAME")
}

/// A group by its folder, or by its path as /proc/PID/cgroup tells it.
fn group(path: &Path) -> Result<Who, Failure> {
    let top = hierarchy()?;
    let below = path.strip_prefix("/").unwrap_or(path);
    let folder = if path.starts_with(&top) { path.to_owned() } else { top.join(below) };
    let opened = File::open(&folder).map_err(|source| {
        let failed = Failure::usage(NoGroup { folder: folder.clone(), source });
        failed.hint(format!(
            "its groups are the folders of {}; a process tells its own in /proc/PID/cgroup",
            top.display()
        ))
    })?;
    // A folder outside of the hierarchy is none, as `../..` is: the kernel would only say EBADF.
    if !folder.join("cgroup.procs").exists() {
        let failed = Failure::usage(format!("{} is no control group", folder.display()));
        return Err(failed.hint(format!("its groups are the folders of {}", top.display())));
    }
    Ok(Who::Group { folder, opened })
}

fn hierarchy() -> Result<PathBuf, Failure> {
    perf_event_folder().ok_or_else(|| {
        let text = "no control groups are mounted that perf_event_open takes: version 2, or perf_event of 1";
        Failure::refused(text).hint("record the process: --pid PID")
    })
}

/// No such group.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the control group {}", folder.display())]
struct NoGroup {
    folder: PathBuf,
    source: std::io::Error,
}

/// The group that systemd keeps a unit in: the folder of its name that lies least deep.
fn unit(name: &str, host: &Host) -> Result<Who, Failure> {
    let top = hierarchy()?;
    let full = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let found = find_folder(&top.to_string_lossy(), &full, host).ok_or_else(|| {
        let text = format!("no control group of the unit {full} below {}: it does not run", top.display());
        let failed = Failure::usage(text).hint(format!("systemctl status {full}"));
        failed.hint("on a host with version 1 of control groups: --pid PID of its main process")
    })?;
    group(Path::new(&found))
}

/// Breadth first; groups lie a few folders deep.
fn find_folder(top: &str, name: &str, host: &Host) -> Option<String> {
    const DEPTH_MAX: usize = 8;
    let mut level = vec![top.to_owned()];
    for _ in 0..DEPTH_MAX {
        let below = level.iter().flat_map(|folder| {
            // Only a group has this file, and only groups have groups below them.
            let names = host.list(folder).into_iter().map(move |entry| format!("{folder}/{entry}"));
            names.filter(|path| host.exists(&format!("{path}/cgroup.procs"))).collect::<Vec<_>>()
        });
        let below: Vec<String> = below.collect();
        if let Some(found) = below.iter().find(|path| path.rsplit('/').next() == Some(name)) {
            return Some(found.clone());
        }
        level = below;
    }
    None
}

impl Who {
    /// Opens the events.
    pub fn open(&self, wanted: &[Source], rate_hz: u64, host: &Host) -> Result<Sampler, SamplingError> {
        let online = host.read("/sys/devices/system/cpu/online").unwrap_or_default();
        let cpus = match CpuSet::parse_list(online.trim()) {
            Ok(cpus) if !cpus.is_empty() => cpus,
            // A container may hide the file; what we may run on is online at least.
            _ => planish_sys::affinity::get(None)?,
        };
        match self {
            Self::Command(waiting) => Sampler::open(Target::Threads(&[waiting.tid]), wanted, rate_hz, &cpus),
            Self::Process { pid, .. } => {
                Sampler::open(Target::Threads(&threads(*pid, host)), wanted, rate_hz, &cpus)
            }
            Self::Group { opened, .. } => {
                Sampler::open(Target::Cgroup(opened.as_fd()), wanted, rate_hz, &cpus)
            }
            Self::Host => Sampler::open(Target::All, wanted, rate_hz, &cpus),
        }
    }

    /// Readable when there is nothing more to record.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Process { end, .. } => Some(end.as_fd()),
            Self::Command(_) | Self::Group { .. } | Self::Host => None,
        }
    }

    /// Processes that run before the recording begins.
    pub fn processes(&self, host: &Host) -> Vec<u32> {
        match self {
            Self::Command(_) => Vec::new(),
            Self::Process { pid, .. } => u32::try_from(*pid).into_iter().collect(),
            Self::Group { folder, .. } => group_processes(&folder.to_string_lossy(), host),
            Self::Host => host.list("/proc").iter().filter_map(|name| name.parse().ok()).collect(),
        }
    }
}

fn threads(pid: i32, host: &Host) -> Vec<Pid> {
    let names = host.list(&format!("/proc/{pid}/task"));
    names.iter().filter_map(|name| Pid::from_raw(name.parse().ok()?)).collect()
}

/// Of a group and of all below it, which are sampled with it.
fn group_processes(folder: &str, host: &Host) -> Vec<u32> {
    let own = host.read(&format!("{folder}/cgroup.procs")).unwrap_or_default();
    let mut all: Vec<u32> = own.lines().filter_map(|line| line.parse().ok()).collect();
    for name in host.list(folder) {
        let below = format!("{folder}/{name}");
        if host.exists(&format!("{below}/cgroup.procs")) {
            all.extend(group_processes(&below, host));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_found_where_it_lies_least_deep() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a.slice/b/db.service", "system.slice/db.service/inner", "system.slice/web.service"] {
            let mut path = root.path().join("cg").join(folder);
            std::fs::create_dir_all(&path).unwrap();
            while path != root.path() {
                File::create(path.join("cgroup.procs")).unwrap();
                path.pop();
            }
        }
        let top = root.path().join("cg");
        let found = |name| find_folder(&top.to_string_lossy(), name, &Host::live());
        let expected = top.join("system.slice/db.service").to_string_lossy().into_owned();
        assert_eq!(found("db.service"), Some(expected));
        assert_eq!(found("no.service"), None);
    }
}
