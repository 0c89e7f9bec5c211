//! Loads that no cache served, by CPU: how many of them the memory of its own node answered, and how many another
//! node's.
//!
//! They are the generic events `node-loads` and `node-load-misses` of perf(1), counted for everybody on each CPU. On
//! Intel they are demand reads of any memory, and of memory of another node; many AMD and Arm processors have none,
//! which is told and never read as zero. Source: perf_event_open(2), arch/x86/events/intel/core.c.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::perf::{FORMAT_TIMES, Unavailable, has_pmu, read_count, refused_for_all};
use crate::perf_event::{self, Attr, Place};

const TYPE_HW_CACHE: u32 = 3;
/// PERF_COUNT_HW_CACHE_NODE, operation read, result access.
const NODE_LOADS: u64 = 6;
/// The same with the result miss: another node answered.
const NODE_LOAD_MISSES: u64 = 6 | 1 << 16;

/// Open counters, two a CPU.
#[derive(Debug)]
pub struct NodeLoads {
    cpus: Vec<(u32, OwnedFd, OwnedFd)>,
}

/// What the loads of one CPU have come to since the counters were opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuLoads {
    /// The CPU.
    pub cpu: u32,
    /// Answered by memory of any node, extrapolated where the counter had to take turns.
    pub all: f64,
    /// Of these, by memory of another node.
    pub remote: f64,
}

impl NodeLoads {
    /// Begins to count on these CPUs.
    ///
    /// # Errors
    /// There is no PMU, it does not count this, or we may not count for everybody.
    pub fn open(cpus: impl IntoIterator<Item = u32>) -> Result<Self, Unavailable> {
        let open = |cpu: u32, config| {
            let cpu = i32::try_from(cpu).map_err(|_| Unavailable::Failed { errno: Errno::INVAL })?;
            let attr = Attr { read_format: FORMAT_TIMES, ..Attr::new(TYPE_HW_CACHE, config) };
            perf_event::open(&attr, Place { pid: -1, cpu, group: -1 }, 0).map_err(refusal)
        };
        let opened =
            cpus.into_iter().map(|cpu| Ok((cpu, open(cpu, NODE_LOADS)?, open(cpu, NODE_LOAD_MISSES)?)));
        Ok(Self { cpus: opened.collect::<Result<_, Unavailable>>()? })
    }

    /// What they have come to; a CPU that went offline meanwhile is left out.
    pub fn read(&self) -> Vec<CpuLoads> {
        let of = |(cpu, all, remote): &(u32, OwnedFd, OwnedFd)| {
            Some(CpuLoads { cpu: *cpu, all: count(all)?, remote: count(remote)? })
        };
        self.cpus.iter().filter_map(of).collect()
    }
}

fn count(counter: &OwnedFd) -> Option<f64> {
    read_count(counter, false).map(|count| count.scaled())
}

fn refusal(errno: Errno) -> Unavailable {
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP if !has_pmu() => Unavailable::NoPmu,
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL => Unavailable::NoNodeLoads,
        Errno::ACCESS | Errno::PERM => refused_for_all(errno),
        errno => Unavailable::Failed { errno },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{may_always, paranoid_level, parse_count};

    #[test]
    fn a_count_that_took_turns_is_extrapolated() {
        let told = |words: [u64; 3]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            parse_count(bytes.as_slice().try_into().unwrap(), false).scaled()
        };
        assert_eq!(told([10, 100, 25]), 40.0);
        assert_eq!(told([10, 100, 100]), 10.0);
        assert_eq!(told([0, 100, 0]), 0.0);
    }

    #[test]
    fn the_events_are_those_of_perf() {
        // cache | operation << 8 | result << 16 (include/uapi/linux/perf_event.h).
        assert_eq!((NODE_LOADS, NODE_LOAD_MISSES), (0x6, 0x1_0006));
    }

    /// The setting does not bind who has the right: then a filter has refused.
    #[test]
    fn who_is_above_the_setting_is_not_told_to_change_it() {
        let told = refusal(Errno::PERM);
        let level = paranoid_level().filter(|level| *level > 0 && !may_always());
        assert_eq!(
            told,
            level
                .map_or(Unavailable::Blocked { errno: Errno::PERM }, |level| Unavailable::Paranoid { level })
        );
        if rustix::process::geteuid().is_root() && may_always() {
            assert_eq!(told, Unavailable::Blocked { errno: Errno::PERM });
        }
    }

    #[test]
    fn a_machine_without_counters_says_so() {
        match NodeLoads::open([0]) {
            Ok(loads) => assert!(loads.read().iter().all(|cpu| cpu.all >= 0.0 && cpu.remote >= 0.0)),
            Err(reason) => {
                assert_eq!(reason == Unavailable::NoPmu, !has_pmu(), "{reason}");
                planish_skip::skip("a_machine_without_counters_says_so", reason);
            }
        }
    }
}
