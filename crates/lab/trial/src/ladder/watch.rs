//! What the machine did while a block ran: the only ground on which a block may be thrown away.
//!
//! Steal, heat and a clock that jumped come from outside of the arms; all arms of a block are run again together.
//! Stalls for a processor and time that a quota took do not: an arm of more threads than CPUs makes both by itself, and
//! leaving out its blocks would leave out its own doing. They are told and excuse nothing. Limits come from the
//! self-check; a share of blocks at most is redone, since a machine that is always busy is the machine that the answer
//! is for, and an arm may still add to steal and heat by what it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_sorted::CollectMap as _;

use super::weather::{Frequencies, Reading, STALLS, Station, Weather, weather};
use crate::outcome::{Frequency, Pressure};

/// A block with more steal than this share is never believed, however noisy the self-check was.
const STEAL_FLOOR: f64 = 0.05;
/// Where the self-check saw no CPU slow down for heat, one in ten seconds is news.
const THERMAL_FLOOR: f64 = 0.1;
/// A clock that moved by more than this against the other was set by someone.
const CLOCK_JUMP: Duration = Duration::from_millis(250);

/// A covariate that a block may be redone for.
struct Covariate {
    /// Its name, as the outcome lists it.
    name: &'static str,
    /// Its name in a sentence.
    words: &'static str,
    floor: f64,
    /// Whether it is told in percent; else per second.
    is_share: bool,
    of: fn(&Weather) -> Option<f64>,
}

const COVARIATES: [Covariate; 2] = [
    Covariate { name: "steal", words: "steal", floor: STEAL_FLOOR, is_share: true, of: |it| it.steal },
    Covariate {
        name: "thermal",
        words: "slowed down for heat",
        floor: THERMAL_FLOOR,
        is_share: false,
        of: |it| it.thermal,
    },
];

/// Why a block must be run again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Objection {
    /// The covariate.
    pub(crate) covariate: &'static str,
    /// With its value and its limit.
    pub(crate) reason: String,
}

/// Reads the weather and judges it.
#[derive(Debug)]
pub(crate) struct Watch {
    station: Station,
    /// While the limits are being learned; later nobody asks.
    frequencies: Option<Frequencies>,
    frequency: Frequency,
    limits: [f64; COVARIATES.len()],
    seen: Vec<Weather>,
}

/// A span that is being watched.
#[derive(Debug)]
pub(crate) struct Span(Reading);

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            station: Station::find(),
            frequencies: Some(Frequencies::find()),
            frequency: Frequency::default(),
            limits: [f64::INFINITY; COVARIATES.len()],
            seen: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self) -> Span {
        if let Some(frequencies) = &mut self.frequencies {
            frequencies.look();
        }
        Span(self.station.read())
    }

    pub(crate) fn end(&mut self, span: &Span) -> Weather {
        let weather = weather(&span.0, &self.station.read());
        if let Some(frequencies) = &mut self.frequencies {
            frequencies.look();
        }
        self.seen.push(weather);
        weather
    }

    /// Sets the limits by what has been seen so far: the self-check's own weather.
    pub(crate) fn learn(&mut self) {
        self.limits = COVARIATES.map(|covariate| {
            let values: Vec<f64> = self.seen.iter().filter_map(covariate.of).collect();
            let spread = planish_stats::summary::robust_sigma(&values);
            let centre = planish_stats::summary::median(&values);
            // A share beyond the whole is no limit that anything could exceed, and reads like one.
            let most = if covariate.is_share { 1.0 } else { f64::INFINITY };
            if values.is_empty() {
                f64::INFINITY
            } else {
                covariate.floor.max(centre + 6.0 * spread).min(most)
            }
        });
        self.frequency = self.frequency();
        self.frequencies = None;
    }

    /// The limits, by name; none for what cannot be counted here.
    pub(crate) fn limits(&self) -> BTreeMap<String, f64> {
        let named = COVARIATES.iter().zip(self.limits).filter(|(_, limit)| limit.is_finite());
        named.map(|(covariate, limit)| (covariate.name.to_owned(), limit)).collect_map()
    }

    /// Mean of something over all spans so far.
    pub(crate) fn mean(&self, of: impl Fn(&Weather) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.seen.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| planish_stats::summary::mean(&values))
    }

    /// Mean shares of time in which tasks waited, by resource.
    pub(crate) fn pressure(&self) -> BTreeMap<String, Pressure> {
        let mut rows: BTreeMap<String, Pressure> = BTreeMap::new();
        for (index, (resource, share)) in STALLS.into_iter().enumerate() {
            let Some(mean) = self.mean(|seen| seen.stalls[index]) else { continue };
            let row = rows.entry(resource.to_owned()).or_default();
            *(if share == "some" { &mut row.some } else { &mut row.full }) = Some(mean);
        }
        rows
    }

    /// How fast the CPUs ran while the limits were learned.
    pub(crate) fn frequency(&self) -> Frequency {
        let Some(frequencies) = &self.frequencies else { return self.frequency.clone() };
        let none = || "it was never looked at".to_owned();
        Frequency {
            available: frequencies.mhz.is_some(),
            reason: frequencies.mhz.is_none().then(|| frequencies.reason.clone().unwrap_or_else(none)),
            min_mhz: frequencies.mhz.map(|(low, _)| low),
            max_mhz: frequencies.mhz.map(|(_, high)| high),
        }
    }

    /// Why a block of this weather must be run again, if it must.
    pub(crate) fn objection(&self, weather: &Weather) -> Option<Objection> {
        if weather.jump > CLOCK_JUMP {
            let reason = format!("the clock was set by {:.1} s meanwhile", weather.jump.as_secs_f64());
            return Some(Objection { covariate: "clock", reason });
        }
        COVARIATES.iter().zip(self.limits).find_map(|(covariate, limit)| {
            let value = (covariate.of)(weather).filter(|&value| value > limit)?;
            let told = |value: f64| match covariate.is_share {
                true => format!("{:.0} %", 100.0 * value),
                false => format!("{value:.1} times a second"),
            };
            let reason = format!("{} {}, limit {}", covariate.words, told(value), told(limit));
            Some(Objection { covariate: covariate.name, reason })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(watch: &Watch, weather: Weather) -> Option<String> {
        watch.objection(&weather).map(|objection| objection.reason)
    }

    #[test]
    fn a_block_is_redone_for_weather_beyond_what_the_self_check_saw() {
        let mut watch = Watch::new();
        let mut calm = Weather { steal: Some(0.01), thermal: Some(0.0), ..Weather::default() };
        (calm.stalls[0], calm.stalls[3], calm.throttled) = (Some(0.1), Some(0.02), Some(0.0));
        assert_eq!(reason(&watch, Weather { steal: Some(0.9), ..calm }), None, "nothing is learned yet");
        watch.seen = vec![calm; 8];
        watch.learn();
        assert_eq!(reason(&watch, calm), None);
        let over = |weather: Weather| reason(&watch, weather).expect("too much");
        assert_eq!(over(Weather { steal: Some(0.2), ..calm }), "steal 20 %, limit 5 %");
        let hot = over(Weather { thermal: Some(2.0), ..calm });
        assert_eq!(hot, "slowed down for heat 2.0 times a second, limit 0.1 times a second");
        assert!(over(Weather { jump: Duration::from_secs(2), ..calm }).starts_with("the clock"));
        let mut starved = calm;
        starved.stalls[3] = Some(0.9);
        assert_eq!(reason(&watch, starved), None, "an arm makes its own stalls for memory");
        let names: Vec<String> = watch.limits().into_keys().collect();
        assert_eq!(names, ["steal", "thermal"]);
    }

    #[test]
    fn an_arm_of_more_threads_than_cpus_excuses_nothing_by_its_own_stalls() {
        let mut watch = Watch::new();
        let mut calm = Weather { steal: Some(0.01), throttled: Some(0.0), ..Weather::default() };
        calm.stalls[0] = Some(0.02);
        watch.seen = vec![calm; 8];
        watch.learn();
        let mut pinned = Weather { throttled: Some(0.9), ..calm };
        pinned.stalls[0] = Some(0.95);
        assert_eq!(reason(&watch, pinned), None, "its blocks count like any other");
    }

    #[test]
    fn a_machine_that_is_always_held_back_has_limits_of_its_own() {
        let mut watch = Watch::new();
        let steal = |index: u32| Some(0.5 + 0.01 * f64::from(index % 3));
        watch.seen = (0..9).map(|index| Weather { steal: steal(index), ..Weather::default() }).collect();
        watch.learn();
        assert_eq!(reason(&watch, Weather { steal: Some(0.53), ..Weather::default() }), None);
        assert!(reason(&watch, Weather { steal: Some(0.9), ..Weather::default() }).is_some());
        assert!(!watch.limits().contains_key("thermal"), "it was never counted");
        assert!((watch.mean(|seen| seen.steal).expect("counted") - 0.51).abs() < 1e-9);
    }
}
