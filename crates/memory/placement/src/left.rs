//! Processes of a start that have left it: daemons, whose first process has ended, and so may the one have that placed
//! their segments. They are below nobody of ours any more, and are known by the name of the answer, which no other
//! start has, in the environment that they have inherited.

use planish_host::Host;

use crate::achieved::is_wanted;
use crate::preload::is_preload;
use crate::running::{ancestors, areas};
use crate::wish::Wish;

/// A process that has left its start with a segment that was to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its PID.
    pub pid: u32,
    /// Whether it has the preload: without, nobody has placed what it maps, unless another process did.
    pub is_reached: bool,
}

/// The processes that map a segment to be placed, of the start whose preload answers to `answer`, and are not below one
/// of `programs`. Of those that are below each other the uppermost. What we may not read is none.
#[must_use]
pub fn left(host: &Host, answer: &str, programs: &[u32], wish: &Wish) -> Vec<Left> {
    let answer = format!("answer={answer}");
    let pids = host.list("/proc");
    let pids = pids.iter().filter_map(|name| name.parse().ok()).filter(|pid| {
        let is_below = || ancestors(host, *pid).any(|above| programs.contains(&above));
        is_of(host, *pid, answer.as_bytes()) && !is_below()
    });
    let mut found: Vec<Left> = pids.filter_map(|pid| holding(host, pid, wish)).collect();
    let all: Vec<u32> = found.iter().map(|left| left.pid).collect();
    found.retain(|left| !ancestors(host, left.pid).skip(1).any(|above| all.contains(&above)));
    found
}

/// Whether a process maps a segment to be placed, as far as we may know.
#[must_use]
pub fn may_hold(host: &Host, pid: u32, wish: &Wish) -> bool {
    areas(host, pid).is_none_or(|areas| areas.iter().any(|area| is_wanted(area, wish)))
}

/// Whether a process has inherited this answer: in the settings of the preload it is ended by a colon or by the end.
fn is_of(host: &Host, pid: u32, answer: &[u8]) -> bool {
    let environment = host.read_bytes(&format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut rest = environment.windows(answer.len()).enumerate().filter(|(_, part)| *part == answer);
    rest.any(|(at, _)| matches!(environment.get(at + answer.len()), None | Some(0 | b':')))
}

/// A process that maps a segment that was to be placed; `None` for one that does not.
fn holding(host: &Host, pid: u32, wish: &Wish) -> Option<Left> {
    let areas = areas(host, pid)?;
    let is_reached = areas.iter().any(is_preload);
    areas.iter().any(|area| is_wanted(area, wish)).then_some(Left { pid, is_reached })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_of_the_start_whose_answer_it_has_inherited() {
        let mut child = std::process::Command::new("sleep");
        child.env("PLANISH_SHM", "bytes=1:answer=/x/answers-12:zzz=1").arg("60");
        let mut child = child.spawn().unwrap();
        let host = Host::live();
        let is_of = |answer: &str| is_of(&host, child.id(), answer.as_bytes());
        let begun = std::time::Instant::now();
        while !is_of("answer=/x/answers-12") {
            assert!(begun.elapsed().as_secs() < 60, "it has executed the program");
        }
        assert!(!is_of("answer=/x/answers-1"), "the begin of another's name");
        let left = left(&host, "/x/answers-12", &[], &Wish::default());
        assert!(left.is_empty(), "it has no segment: {left:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
