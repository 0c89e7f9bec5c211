//! Counters of the CPU over a program, or over processes that run already.

use planish_sys::perf::{Count, Counters, Event, Start, Target, Unavailable};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::kernel;
use crate::sample::Sample;

/// Events that are counted.
pub(crate) const EVENTS: [Event; 4] =
    [Event::Cycles, Event::Instructions, Event::DtlbLoadMisses, Event::ItlbLoadMisses];

/// What each event came to, or why it was not counted.
pub(crate) type Counts = Vec<(Event, Result<Count, Unavailable>)>;

/// Counters over every thread of some processes, and over what these make meanwhile.
#[derive(Debug)]
pub(crate) struct Attached(Vec<Counters>);

impl Attached {
    /// Begins to count. Where the first thread shows that nothing can be counted here, no other is asked.
    pub(crate) fn to(pids: &[u32]) -> Self {
        let mut attached = Vec::new();
        for tid in pids
            .iter()
            .flat_map(|&pid| kernel::threads(pid))
            .filter_map(|tid| Pid::from_raw(tid.cast_signed()))
        {
            let counters = Counters::open(&EVENTS, Target::Thread(tid), Start::Explicit);
            let is_blind = counters.available().next().is_none() && !has_ended(&counters);
            // A counter that cannot be started says so when it is read: it has counted nothing in no time.
            let _ = counters.enable();
            attached.push(counters);
            if is_blind {
                break;
            }
        }
        Self(attached)
    }

    /// The sums so far. An event that some thread could not have is told as missing: its sum would be too small.
    pub(crate) fn counts(&self) -> Counts {
        let read: Vec<Counts> =
            self.0.iter().filter(|counters| !has_ended(counters)).map(Counters::read).collect();
        let sum = |event: Event| {
            let of_event = read.iter().flatten().filter(|(counted, _)| *counted == event);
            of_event.map(|(_, count)| count.clone()).reduce(|sum, count| Ok(plus(sum?, count?)))
        };
        EVENTS.into_iter().filter_map(|event| Some((event, sum(event)?))).collect()
    }
}

/// A thread that ended before it could be counted has done nothing of the unit.
fn has_ended(counters: &Counters) -> bool {
    let gone = |count: &Result<Count, Unavailable>| *count == Err(Unavailable::Failed { errno: Errno::SRCH });
    counters.read().iter().all(|(_, count)| gone(count))
}

/// The sum of two counts, each scaled by its own share of the time.
fn plus(one: Count, other: Count) -> Count {
    let whole = |count: &Count| count.scaled().round() as u64;
    Count {
        counted: whole(&one) + whole(&other),
        enabled_ns: 1,
        running_ns: 1,
        user_only: one.user_only || other.user_only,
    }
}

/// Adds cycles, instructions, instructions per cycle and TLB misses per million instructions.
pub(crate) fn add_counts(sample: &mut Sample, counts: &[(Event, Result<Count, Unavailable>)]) {
    let found = |event: Event| counts.iter().find(|(counted, _)| *counted == event);
    let count = |event: Event| -> Result<f64, String> {
        let (_, count) = found(event).ok_or_else(|| format!("there was no thread to count {event} of"))?;
        count.as_ref().map(Count::scaled).map_err(ToString::to_string)
    };
    // An ordinary user may count what its programs do themselves, and not what the kernel does for them.
    let unit = |event: Event| match found(event) {
        Some((_, Ok(count))) if count.user_only => "in user mode",
        _ => "",
    };
    let ratio = |over: Event, under: Event, scale: f64| {
        let (over, under) = (count(over)?, count(under)?);
        if under > 0.0 { Ok(scale * over / under) } else { Err("nothing was counted".to_owned()) }
    };
    sample.collect("cycles", unit(Event::Cycles), count(Event::Cycles));
    sample.collect("instructions", unit(Event::Instructions), count(Event::Instructions));
    sample.collect("instructions_per_cycle", "", ratio(Event::Instructions, Event::Cycles, 1.0));
    let misses = |event| ratio(event, Event::Instructions, 1e6);
    sample.collect("dtlb_misses_per_million", "per million instructions", misses(Event::DtlbLoadMisses));
    sample.collect("itlb_misses_per_million", "per million instructions", misses(Event::ItlbLoadMisses));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_processes_are_counted_or_the_reason_is_told() {
        let attached = Attached::to(&[std::process::id()]);
        let mut work = 0u64;
        for step in 0..2_000_000u64 {
            work = std::hint::black_box(work.wrapping_add(step));
        }
        let counts = attached.counts();
        assert_eq!(counts.len(), EVENTS.len());
        let mut sample = Sample::default();
        add_counts(&mut sample, &counts);
        match &sample.collectors["instructions"].value {
            Ok(count) => assert!(*count > 2e6, "{count} for {work}"),
            Err(reason) => planish_skip::skip("running_processes_are_counted", reason),
        }
        // A process that is not there has done nothing, and that is no zero.
        assert!(Attached::to(&[u32::MAX >> 1]).counts().is_empty());
    }

    #[test]
    fn threads_that_took_turns_are_scaled_before_they_are_added() {
        let count = |counted, running_ns, user_only| Count { counted, enabled_ns: 10, running_ns, user_only };
        let sum = plus(count(100, 5, false), count(30, 10, true));
        assert_eq!((sum.scaled(), sum.user_only), (230.0, true));
    }

    #[test]
    fn ratios_come_from_scaled_counts_and_reasons_travel() {
        let whole = |counted| Ok(Count { counted, enabled_ns: 10, running_ns: 10, user_only: false });
        let half = Ok(Count { counted: 500, enabled_ns: 10, running_ns: 5, user_only: false });
        let counts = [
            (Event::Cycles, whole(2000)),
            (Event::Instructions, whole(4000)),
            (Event::DtlbLoadMisses, half),
            (Event::ItlbLoadMisses, Err(Unavailable::NoPmu)),
        ];
        let mut sample = Sample::default();
        add_counts(&mut sample, &counts);
        let value = |name: &str| sample.collectors[name].value.clone();
        assert_eq!(value("instructions_per_cycle"), Ok(2.0));
        assert_eq!(value("dtlb_misses_per_million"), Ok(250_000.0));
        assert_eq!(value("itlb_misses_per_million"), Err("no PMU in this machine".to_owned()));
    }
}
