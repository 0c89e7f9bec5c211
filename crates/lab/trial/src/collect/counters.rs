//! Counters of the CPU over a program.

use planish_sys::perf::{Count, Event, Unavailable};

use crate::sample::Sample;

/// Adds cycles, instructions, instructions per cycle and TLB misses per million instructions.
pub(crate) fn add_counts(sample: &mut Sample, counts: &[(Event, Result<Count, Unavailable>)]) {
    let count = |event: Event| -> Result<f64, String> {
        let found = counts.iter().find(|(counted, _)| *counted == event);
        let (_, count) = found.ok_or_else(|| format!("{event} is not counted for this arm"))?;
        count.as_ref().map(Count::scaled).map_err(ToString::to_string)
    };
    let ratio = |over: Event, under: Event, scale: f64| {
        let (over, under) = (count(over)?, count(under)?);
        if under > 0.0 { Ok(scale * over / under) } else { Err("nothing was counted".to_owned()) }
    };
    sample.collect("cycles", "", count(Event::Cycles));
    sample.collect("instructions", "", count(Event::Instructions));
    sample.collect("instructions_per_cycle", "", ratio(Event::Instructions, Event::Cycles, 1.0));
    let misses = |event| ratio(event, Event::Instructions, 1e6);
    sample.collect("dtlb_misses_per_million", "per million instructions", misses(Event::DtlbLoadMisses));
    sample.collect("itlb_misses_per_million", "per million instructions", misses(Event::ItlbLoadMisses));
}

#[cfg(test)]
mod tests {
    use super::*;

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
