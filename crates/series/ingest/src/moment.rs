//! Times: whole numbers of a unit, numbers with a point, RFC 3339.

use chrono::DateTime;
use planish_table::TimeUnit;

use crate::number::Number;

/// What times count, since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Hours.
    Hours,
    /// Minutes.
    Minutes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds: what line protocol means unless something else is said.
    Nanoseconds,
}

impl Unit {
    /// The unit by the word that clients use: `h`, `m`, `s`, `ms`, `us`, `u`, `µs`, `ns`, `n`, or in full.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "h" | "hour" | "hours" => Self::Hours,
            "m" | "minute" | "minutes" => Self::Minutes,
            "s" | "second" | "seconds" => Self::Seconds,
            "ms" | "millisecond" | "milliseconds" => Self::Milliseconds,
            "us" | "u" | "µs" | "microsecond" | "microseconds" => Self::Microseconds,
            "ns" | "n" | "nanosecond" | "nanoseconds" => Self::Nanoseconds,
            _ => return None,
        })
    }

    /// How many nanoseconds one is.
    #[must_use]
    pub fn nanoseconds(self) -> i64 {
        match self {
            Self::Hours => 3_600_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1000,
            Self::Nanoseconds => 1,
        }
    }
}

impl From<TimeUnit> for Unit {
    fn from(unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::Milliseconds => Self::Milliseconds,
            TimeUnit::Microseconds => Self::Microseconds,
            TimeUnit::Nanoseconds => Self::Nanoseconds,
        }
    }
}

/// From the unit of an input to that of a table. What a table's unit is too coarse for is rounded down, as buckets of
/// time are; what does not fit into it is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    from_ns: i64,
    to_ns: i64,
}

impl Clock {
    pub(crate) fn new(from: Unit, to: Unit) -> Self {
        Self { from_ns: from.nanoseconds(), to_ns: to.nanoseconds() }
    }

    /// The same for an input that says its unit.
    pub(crate) fn with(self, from: Unit) -> Self {
        Self { from_ns: from.nanoseconds(), ..self }
    }

    /// Of a whole number of the input's unit.
    pub(crate) fn of_whole(self, time: i64) -> Option<i64> {
        if self.from_ns == self.to_ns {
            Some(time)
        } else if self.from_ns > self.to_ns {
            // Each unit is a multiple of every finer one.
            time.checked_mul(self.from_ns / self.to_ns)
        } else {
            Some(time.div_euclid(self.to_ns / self.from_ns))
        }
    }

    /// Of nanoseconds.
    pub(crate) fn of_ns(self, ns: i128) -> Option<i64> {
        i64::try_from(ns.div_euclid(i128::from(self.to_ns))).ok()
    }

    /// Of a number of the input's unit, or of a date and time.
    pub(crate) fn of_text(self, text: &[u8]) -> Option<i64> {
        match Number::read(text) {
            Some(number) => match number.whole() {
                Some(whole) => self.of_whole(whole),
                None => self.of_ns(number.floor_of_product(self.from_ns)?),
            },
            None => self.of_ns(date(text)?),
        }
    }
}

/// Longest text of a date and time that is looked at.
const DATE_BYTES_MAX: usize = 64;

/// Nanoseconds of `2026-11-29T16:03:28.5+01:00`. A blank may stand for the T; without an offset it is UTC, which is how
/// ClickHouse and QuestDB write it.
fn date(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= DATE_BYTES_MAX)?;
    let moment = match DateTime::parse_from_rfc3339(text) {
        Ok(moment) => moment,
        Err(_) => DateTime::parse_from_rfc3339(&format!("{text}Z")).ok()?,
    };
    Some(i128::from(moment.timestamp()) * 1_000_000_000 + i128::from(moment.timestamp_subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNITS: [Unit; 6] = [
        Unit::Hours,
        Unit::Minutes,
        Unit::Seconds,
        Unit::Milliseconds,
        Unit::Microseconds,
        Unit::Nanoseconds,
    ];

    #[test]
    fn dates_are_read_as_clients_write_them() {
        let clock = Clock::new(Unit::Nanoseconds, Unit::Milliseconds);
        for (text, wanted) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-01T00:00:00.0019Z", Some(1)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("1970-01-01 00:00:01.5", Some(1500)),
            ("1970-01-01T00:00:01", Some(1000)),
            ("1969-12-31T23:59:59.9995Z", Some(-1)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799_000)),
            ("2026-02-30T00:00:00Z", None),
            ("2026-11-29", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(clock.of_text(text.as_bytes()), wanted, "{text:?}");
        }
        let fine = Clock::new(Unit::Seconds, Unit::Nanoseconds);
        assert_eq!(fine.of_text(b"1764432208.000000001"), Some(1_764_432_208_000_000_001));
        assert_eq!(fine.of_text(b"-0.5"), Some(-500_000_000));
        // Beyond what 64 bits of nanoseconds hold.
        assert_eq!(fine.of_text(b"9999-12-31T23:59:59Z"), None);
        assert_eq!(fine.of_text(b"9223372037"), None);
    }

    #[test]
    fn units_have_the_words_of_clients() {
        let words = ["h", "m", "s", "ms", "us", "ns"];
        assert_eq!(words.map(|word| Unit::named(word).unwrap()), UNITS);
        assert_eq!((Unit::named("u"), Unit::named("d")), (Some(Unit::Microseconds), None));
    }

    proptest! {
        #[test]
        fn a_unit_is_rounded_down_or_refused(time in any::<i64>(), from in 0..6_usize, to in 0..6_usize) {
            let clock = Clock::new(UNITS[from], UNITS[to]);
            let ns = i128::from(time) * i128::from(UNITS[from].nanoseconds());
            let wanted = i64::try_from(ns.div_euclid(UNITS[to].nanoseconds().into())).ok();
            prop_assert_eq!(clock.of_whole(time), wanted);
            prop_assert_eq!(clock.of_text(time.to_string().as_bytes()), wanted);
            prop_assert_eq!(clock.of_ns(ns), wanted);
        }

        #[test]
        fn a_date_that_was_printed_comes_back(ns in any::<i64>()) {
            let text = DateTime::from_timestamp_nanos(ns).to_rfc3339();
            let clock = Clock::new(Unit::Seconds, Unit::Nanoseconds);
            prop_assert_eq!(clock.of_text(text.as_bytes()), Some(ns), "{}", text);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            let _ = Clock::new(Unit::Hours, Unit::Nanoseconds).of_text(&bytes);
        }
    }
}
