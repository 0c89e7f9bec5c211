//! A server: a process and all its descendants, and what they have used before and after a window.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_sorted::CollectMap as _;

use crate::kernel;

/// What a tree of processes has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Page faults of both kinds.
    pub(crate) faults: u64,
}

/// What `/proc/PID/stat` tells of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    group: u32,
    session: u32,
    user_ticks: u64,
    system_ticks: u64,
    faults: u64,
}

/// `root` and its descendants; empty when it does not run.
///
/// Descent is by parent and not by group: the backends of PostgreSQL make groups of their own.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let processes = processes();
    if !processes.contains_key(&root) {
        return Vec::new();
    }
    processes.keys().copied().filter(|&pid| descends(pid, root, &processes)).collect()
}

/// A process among its kin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kin {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
}

/// A process and its descendants; `None` when it does not run.
pub(crate) fn family(root: u32) -> Option<(Kin, Vec<Kin>)> {
    let processes = processes();
    let kin =
        |(&pid, it): (&u32, &Process)| Kin { pid, parent: it.parent, group: it.group, session: it.session };
    let below = processes.iter().filter(|(pid, _)| **pid != root && descends(**pid, root, &processes));
    Some((kin((&root, processes.get(&root)?)), below.map(kin).collect()))
}

fn processes() -> BTreeMap<u32, Process> {
    let parsed = |pid| Some((pid, parse(&kernel::read(&format!("/proc/{pid}/stat"))?)?));
    kernel::processes().into_iter().filter_map(parsed).collect_map()
}

/// The time that `root` and its descendants have used, those that have ended and were waited for included.
///
/// In steps of a clock tick, 10 ms, so a window should last a second or more.
pub(crate) fn tree_usage(root: u32) -> Option<TreeUsage> {
    let processes = processes();
    processes.get(&root)?;
    let (mut user, mut system, mut faults) = (0, 0, 0);
    for (&pid, process) in &processes {
        if descends(pid, root, &processes) {
            user += process.user_ticks;
            system += process.system_ticks;
            faults += process.faults;
        }
    }
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / per_second);
    Some(TreeUsage { user: time(user), system: time(system), faults })
}

fn descends(pid: u32, root: u32, processes: &BTreeMap<u32, Process>) -> bool {
    let mut at = pid;
    // A tree is never deeper than it has members; a loop can only come from numbers that were used again
    // meanwhile.
    for _ in 0..=processes.len() {
        if at == root {
            return true;
        }
        match processes.get(&at) {
            Some(process) => at = process.parent,
            None => return false,
        }
    }
    false
}

/// Parent, group, session, times and faults (own and of children that were waited for) out of `/proc/PID/stat`, whose
/// second field may hold any character (proc_pid_stat(5)).
fn parse(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Process {
        parent: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).ok()?,
        session: u32::try_from(number(3)?).ok()?,
        user_ticks: number(11)? + number(13)?,
        system_ticks: number(12)? + number(14)?,
        faults: number(7)? + number(8)? + number(9)? + number(10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "77 (a) b (c) S 7 78 79 0 -1 4194304 9 9 0 0 5 6 1 2 20 0 1 0 1 1 1";
        let process =
            Process { parent: 7, group: 78, session: 79, user_ticks: 6, system_ticks: 8, faults: 18 };
        assert_eq!(parse(stat), Some(process));
        assert_eq!(parse("77 (a"), None);
    }

    #[test]
    fn we_and_our_children_are_a_tree() {
        let before = tree_usage(std::process::id()).expect("we run");
        let script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
        let status =
            std::process::Command::new("sh").args(["-c", script]).status().expect("there is a shell");
        assert!(status.success());
        let after = tree_usage(std::process::id()).expect("we run");
        assert!(after.user + after.system > before.user + before.system && after.faults > before.faults);
        assert_eq!(tree_usage(u32::MAX), None);
    }

    #[test]
    fn a_child_is_of_our_tree_and_we_are_not_of_its() {
        let mut child =
            std::process::Command::new("sleep").arg("60").spawn().expect("there is a program `sleep`");
        let (ours, its) = (tree(std::process::id()), tree(child.id()));
        child.kill().and_then(|()| child.wait()).expect("our own child");
        assert!(ours.contains(&std::process::id()) && ours.contains(&child.id()));
        assert_eq!(its, [child.id()]);
        assert!(tree(u32::MAX).is_empty());
    }
}
