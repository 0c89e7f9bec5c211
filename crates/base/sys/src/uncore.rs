//! Counters of what several CPUs have together: of the memory controllers of a socket above all.
//!
//! Each is opened on one CPU that the kernel names for its socket, counts for everybody, and is read with the time that
//! it ran, since more events may be asked of a controller than it has counters. Source: perf_event_open(2),
//! arch/x86/events/intel/uncore.c, arch/x86/events/amd/uncore.c.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::perf::{Count, FORMAT_TIMES, Unavailable, read_count, refused_for_all};
use crate::perf_event::{self, Attr, Place};

/// What one counter counts, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncoreEvent {
    /// The type of its PMU.
    pub kind: u32,
    /// The three configurations.
    pub config: [u64; 3],
    /// The CPU by which its PMU is asked.
    pub cpu: u32,
}

/// Open counters.
#[derive(Debug)]
pub struct Uncore {
    counters: Vec<OwnedFd>,
}

impl Uncore {
    /// Begins to count each event.
    ///
    /// # Errors
    /// We may not count for everybody, or the kernel refuses one of them.
    pub fn open(events: &[UncoreEvent]) -> Result<Self, Unavailable> {
        let open = |event: &UncoreEvent| {
            let cpu = i32::try_from(event.cpu).map_err(|_| Unavailable::Failed { errno: Errno::INVAL })?;
            let [config, config1, config2] = event.config;
            let attr = Attr { config1, config2, read_format: FORMAT_TIMES, ..Attr::new(event.kind, config) };
            perf_event::open(&attr, Place { pid: -1, cpu, group: -1 }, 0).map_err(refusal)
        };
        Ok(Self { counters: events.iter().map(open).collect::<Result<_, Unavailable>>()? })
    }

    /// What each has come to, in the order in which they were opened; `None` for one that cannot be read.
    pub fn read(&self) -> Vec<Option<Count>> {
        self.counters.iter().map(|counter| read_count(counter, false)).collect()
    }
}

fn refusal(errno: Errno) -> Unavailable {
    match errno {
        Errno::ACCESS | Errno::PERM => refused_for_all(errno),
        errno => Unavailable::Failed { errno },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock of the kernel stands in for a controller: it is counted by CPU and for everybody, too.
    #[test]
    fn what_is_counted_for_everybody_grows_or_says_why_not() {
        let clock = UncoreEvent { kind: perf_event::TYPE_SOFTWARE, config: [0, 0, 0], cpu: 0 };
        match Uncore::open(&[clock, clock]) {
            Ok(counters) => {
                let before = counters.read();
                std::thread::sleep(std::time::Duration::from_millis(5));
                for (now, before) in counters.read().into_iter().zip(before) {
                    let grown = now.zip(before).and_then(|(now, before)| now.since(&before));
                    assert!(grown.is_some_and(|ns| ns >= 1e6), "{grown:?}");
                }
            }
            Err(reason) => planish_skip::skip("what_is_counted_for_everybody_grows_or_says_why_not", reason),
        }
        assert_eq!(Uncore::open(&[]).map(|none| none.read()), Ok(Vec::new()));
    }

    #[test]
    fn an_event_that_no_pmu_has_is_refused() {
        let nobody = UncoreEvent { kind: u32::MAX, config: [0; 3], cpu: 0 };
        assert!(Uncore::open(&[nobody]).is_err());
        assert_eq!(refusal(Errno::NOENT), Unavailable::Failed { errno: Errno::NOENT });
        assert!(matches!(refusal(Errno::ACCESS), Unavailable::Paranoid { .. } | Unavailable::Blocked { .. }));
    }
}
