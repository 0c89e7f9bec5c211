//! Whose memory is looked at, and whose is left alone.

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_sorted::{CollectMap as _, SortSmall as _};

use crate::process::{ResidencyError, failed, has_ended, status};
use crate::stat::{Stat, parse_stat};

/// A service as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A process.
    Pid(u32),
    /// The name of a program, as the kernel shows it: at most 15 bytes. Of processes that started each other, the
    /// first is meant.
    Name(String),
}

/// The processes of a program, by its name in the kernel, that with most resident memory first, and of equals the one
/// with the lowest number. The first stands for a service whose processes are not looked at one by one: what starts the
/// others has touched next to none of the memory that they share. A [`Map`](super::Map) begins at that one
/// ([`Who::Name`]), since the others are found below it.
pub fn processes_named(host: &Host, name: &str) -> Vec<u32> {
    let named = all(host).into_iter().filter(|(_, stat)| is_named(&stat.name, name)).map(|(pid, _)| pid);
    let mut pids: Vec<u32> = named.collect();
    pids.sort_small_by_cached_key(|pid| {
        let status = status(host, *pid).unwrap_or_default();
        std::cmp::Reverse(status.resident_bytes.saturating_add(status.hugetlb_bytes))
    });
    pids
}

/// Whether the kernel calls a program of this name so: it keeps 15 bytes of it.
#[must_use]
pub fn is_named(in_kernel: &str, name: &str) -> bool {
    // Which may end within a character.
    let kept = name.len().min(15);
    in_kernel == String::from_utf8_lossy(&name.as_bytes()[..kept])
}

/// The names of all programs that run, as the kernel tells them; its own threads are none.
#[must_use]
pub fn names(host: &Host) -> BTreeSet<String> {
    all(host).into_values().filter(|stat| !stat.is_kernel_thread).map(|stat| stat.name).collect()
}

/// The process that is meant, and with `tree` all that descend from it, the oldest first; without those that have
/// ended, and that nobody has asked how.
///
/// # Errors
/// There is none or /proc is not mounted, there are several of that name, it is a thread or has ended, or it is one
/// that is left alone: process 1, a thread of the kernel, a process above ourselves.
pub fn members(host: &Host, who: &Who, tree: bool) -> Result<Vec<(u32, Stat)>, ResidencyError> {
    if host.is_live() && !host.exists("/proc/self") {
        return Err(ResidencyError::NoProc);
    }
    // The whole list only where it is needed: a machine may have thousands of processes.
    let (pid, everybody) = match who {
        Who::Pid(pid) if !tree => (*pid, None),
        Who::Pid(pid) => (*pid, Some(all(host))),
        Who::Name(name) => {
            let everybody = all(host);
            (first_of(name, &everybody)?, Some(everybody))
        }
    };
    let stat = stat_of(host, pid)?;
    refuse_other_kinds(host, pid)?;
    if let Some((reason, cure)) = left_alone(host, pid, &stat) {
        return Err(ResidencyError::LeftAlone { pid, reason, cure });
    }
    let mut members = vec![(pid, stat)];
    if let Some(everybody) = everybody.filter(|_| tree) {
        let me = if host.is_live() { std::process::id() } else { 0 };
        let is_meant = |pid: u32, stat: &Stat| pid != me && !(stat.has_ended && is_alone(host, pid));
        add_below(&mut members, everybody.into_iter().filter(|(pid, stat)| is_meant(*pid, stat)));
    }
    Ok(members)
}

/// Adds those of `everybody` that descend from the first of `members`, the oldest first. Each parent's children are
/// looked for once: a service may have thousands.
fn add_below(members: &mut Vec<(u32, Stat)>, everybody: impl Iterator<Item = (u32, Stat)>) {
    let mut children: BTreeMap<u32, Vec<(u32, Stat)>> = BTreeMap::new();
    everybody.for_each(|(pid, stat)| children.entry(stat.parent).or_default().push((pid, stat)));
    let mut at = 0;
    while let Some(parent) = members.get(at).map(|(pid, _)| *pid) {
        members.extend(children.remove(&parent).unwrap_or_default());
        at += 1;
    }
}

/// Refuses the id of a thread, which /proc shows as it does a process, and a process that has ended.
fn refuse_other_kinds(host: &Host, pid: u32) -> Result<(), ResidencyError> {
    let text = host.read_lossy(&format!("/proc/{pid}/status")).unwrap_or_default();
    let told = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if let Some(process) = told("Tgid:").and_then(|id| id.parse().ok()).filter(|process| *process != pid) {
        return Err(ResidencyError::Thread { id: pid, process });
    }
    match has_ended(&text) && is_alone(host, pid) {
        true => Err(ResidencyError::Ended { pid }),
        false => Ok(()),
    }
}

/// Whether a process has no thread but the first: that one may have ended, and the others go on.
fn is_alone(host: &Host, pid: u32) -> bool {
    host.list(&format!("/proc/{pid}/task")).len() <= 1
}

/// The process of that name which no other of the name started.
fn first_of(name: &str, everybody: &BTreeMap<u32, Stat>) -> Result<u32, ResidencyError> {
    let named = |pid: &u32| everybody.get(pid).is_some_and(|stat| is_named(&stat.name, name));
    let firsts: Vec<u32> = everybody
        .iter()
        .filter(|(pid, stat)| named(pid) && !named(&stat.parent) && **pid != std::process::id())
        .map(|(pid, _)| *pid)
        .collect();
    match firsts.as_slice() {
        [] => Err(ResidencyError::NoProcess { process: format!("`{name}`") }),
        [pid] => Ok(*pid),
        _ => Err(ResidencyError::Several { name: name.to_owned(), pids: firsts }),
    }
}

/// Why a process is none of our business, and what to do instead; `None` for one that may be looked at.
fn left_alone(host: &Host, pid: u32, stat: &Stat) -> Option<(&'static str, &'static str)> {
    if stat.is_kernel_thread {
        let reason = "it is a thread of the kernel, which has no memory of its own";
        return Some((reason, "name a process of a program"));
    }
    if !host.is_live() {
        return None;
    }
    if pid == 1 {
        let reason =
            "it is process 1, which every other depends on, and to look holds the lock of its memory";
        let cure = "name a process that it started; of a container, look from outside, by the number that it has there";
        return Some((reason, cure));
    }
    if above_us(host).contains(&pid) {
        let reason = "it started this very command, and to look holds the lock of its memory";
        return Some((
            reason,
            "look at it from another session, which it did not start, or name another process",
        ));
    }
    None
}

/// Process 1 and those that started this command; none of a recorded host.
pub(crate) fn above_us(host: &Host) -> Vec<u32> {
    let mut above = if host.is_live() { vec![1] } else { Vec::new() };
    let mut below = std::process::id();
    while host.is_live() && below > 1 {
        let Ok(stat) = stat_of(host, below) else { break };
        below = stat.parent;
        above.push(below);
    }
    above
}

/// Every process, by PID.
fn all(host: &Host) -> BTreeMap<u32, Stat> {
    let pids = host.list("/proc").into_iter().filter_map(|name| name.parse().ok());
    pids.filter_map(|pid| Some((pid, stat_of(host, pid).ok()?))).collect_map()
}

/// What stat says of a process now.
///
/// # Errors
/// There is no such process.
pub fn stat_of(host: &Host, pid: u32) -> Result<Stat, ResidencyError> {
    let path = format!("/proc/{pid}/stat");
    let text = host.read_lossy(&path).map_err(|error| failed(&pid.to_string(), error))?;
    parse_stat(&text).ok_or(ResidencyError::Odd { path, line: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everybody(processes: &[(u32, u32, &str)]) -> BTreeMap<u32, Stat> {
        let stat = |parent, name: &str| Stat { parent, name: name.to_owned(), ..Stat::default() };
        processes.iter().map(|(pid, parent, name)| (*pid, stat(*parent, name))).collect()
    }

    #[test]
    fn a_name_is_cut_where_the_kernel_cuts_it() {
        for (name, in_kernel) in [
            ("postgres", "postgres"),
            ("a-program-of-a-long-name", "a-program-of-a-"),
            // 15 bytes are seven characters and a half.
            ("éééééééééé", "ééééééé\u{fffd}"),
            ("ééééééé\u{fffd}", "ééééééé\u{fffd}"),
            ("ééééééé", "ééééééé"),
            ("abcdefghijklm€", "abcdefghijklm\u{fffd}"),
        ] {
            assert!(is_named(in_kernel, name), "{name}");
        }
        assert!(!is_named("postgres", "postgre") && !is_named("éééééé", "ééééééé"));
    }

    #[test]
    fn the_first_of_a_family_speaks_for_it() {
        let one = everybody(&[(7, 1, "postgres"), (8, 7, "postgres"), (9, 7, "postgres")]);
        assert_eq!(first_of("postgres", &one).unwrap(), 7);
        let two = everybody(&[(7, 1, "postgres"), (8, 7, "postgres"), (20, 1, "postgres")]);
        let error = first_of("postgres", &two).unwrap_err();
        assert!(matches!(&error, ResidencyError::Several { pids, .. } if pids == &[7, 20]), "{error}");
        assert!(matches!(first_of("redis", &two), Err(ResidencyError::NoProcess { .. })));
    }

    #[test]
    fn a_service_of_many_processes_is_found_at_once() {
        let stat = |parent| Stat { parent, ..Stat::default() };
        let count = 30_000;
        // A chain of them, and as many of others beside it.
        let chain = (2..=count).map(|pid| (pid, stat(pid - 1)));
        let others = (count + 1..=2 * count).map(|pid| (pid, stat(0)));
        let (mut members, begun) = (vec![(1, stat(0))], std::time::Instant::now());
        add_below(&mut members, chain.chain(others));
        assert!(members.iter().map(|(pid, _)| *pid).eq(1..=count));
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        let mut circle = vec![(7, stat(8))];
        add_below(&mut circle, [(8, stat(7)), (9, stat(9))].into_iter());
        assert_eq!(circle.len(), 2, "a recording may tell of anything");
    }

    /// What has ended before the look began did not end while it was looked at.
    #[test]
    fn a_child_that_has_ended_and_was_not_waited_for_is_no_member() {
        let host = Host::live();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let begun = std::time::Instant::now();
        while !stat_of(&host, child.id()).unwrap().has_ended {
            assert!(begun.elapsed().as_secs() < 60);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let ended = all(&host).remove(&child.id()).unwrap();
        assert!(ended.parent == std::process::id() && is_alone(&host, child.id()));
        let tree = members(&host, &Who::Pid(std::process::id()), true).unwrap();
        child.wait().unwrap();
        assert!(tree.iter().all(|(pid, _)| *pid != child.id()), "{tree:?}");
    }

    #[test]
    fn those_above_us_are_left_alone() {
        let host = Host::live();
        for pid in [1, std::os::unix::process::parent_id()] {
            let error = members(&host, &Who::Pid(pid), false).unwrap_err();
            assert!(matches!(error, ResidencyError::LeftAlone { .. }), "{pid}: {error}");
            assert!(error.cure().is_some_and(|cure| cure.contains("look at it from") || pid == 1), "{pid}");
        }
        assert_eq!(members(&host, &Who::Pid(std::process::id()), false).unwrap().len(), 1);
        assert!(matches!(members(&host, &Who::Pid(u32::MAX), false), Err(ResidencyError::NoProcess { .. })));
    }

    #[test]
    fn a_thread_and_a_process_that_has_ended_are_told_as_that() {
        let host = Host::live();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid()).unwrap();
            let _ = stopped.recv();
        });
        let id = receiver.recv().unwrap().as_raw_nonzero().get().unsigned_abs();
        let error = members(&host, &Who::Pid(id), false).unwrap_err();
        let own = std::process::id();
        assert!(matches!(error, ResidencyError::Thread { process, .. } if process == own), "{error}");
        assert_eq!(error.cure(), Some(format!("name that process: {own}")));
        drop(stop);
        thread.join().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = || members(&host, &Who::Pid(child.id()), false);
        let begun = std::time::Instant::now();
        while !matches!(ended(), Err(ResidencyError::Ended { .. })) {
            assert!(begun.elapsed().as_secs() < 60, "{:?}", ended());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.wait().unwrap();
    }
}
