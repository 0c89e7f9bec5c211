//! Buckets of local time: days that begin at midnight where somebody lives, and weeks, and hours.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone};
use datafusion::arrow::array::timezone::Tz;

const DAY_SECONDS: i64 = 86_400;

/// Buckets of a width of local time in one zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalBuckets {
    zone: Tz,
    width: i64,
    per_second: i64,
}

impl LocalBuckets {
    /// Buckets of `width`, which is above 0; `per_second` says how many of its unit a second has.
    pub(crate) fn new(zone: Tz, width: i64, per_second: i64) -> Self {
        Self { zone, width, per_second }
    }

    /// Start of the bucket that a moment lies in; `None` beyond the years that calendars have.
    ///
    /// A bucket begins when the clock shows its first moment. Where the clock shows that twice, a bucket of less than a
    /// day begins anew the second time, so that the hour that comes twice is two hours; a day begins the first time.
    /// Where the clock leaves it out, the bucket begins when the clock goes forward.
    pub(crate) fn start(&self, time: i64) -> Option<i64> {
        let local = time.checked_add(self.offset(time)?)?;
        let wall = local.checked_sub(local.rem_euclid(self.width))?;
        let naive = self.naive(wall)?;
        let moment = |offset: i32| wall.checked_sub(i64::from(offset).checked_mul(self.per_second)?);
        match self.zone.offset_from_local_datetime(&naive) {
            LocalResult::Single(offset) => moment(offset.fix().local_minus_utc()),
            LocalResult::Ambiguous(first, second) => {
                let [first, second] = [first, second].map(|offset| moment(offset.fix().local_minus_utc()));
                let (first, second) = (first?.min(second?), first?.max(second?));
                let is_day = self.width >= DAY_SECONDS * self.per_second;
                Some(if is_day || second > time { first } else { second })
            }
            LocalResult::None => self.last_change(time),
        }
    }

    /// Seconds of a moment and what is left of it, as a calendar has it.
    fn naive(&self, time: i64) -> Option<NaiveDateTime> {
        let (seconds, rest) = (time.div_euclid(self.per_second), time.rem_euclid(self.per_second));
        let nanos = u32::try_from(rest * (1_000_000_000 / self.per_second)).ok()?;
        DateTime::from_timestamp(seconds, nanos).map(|moment| moment.naive_utc())
    }

    /// How far local time is ahead, in the unit of time.
    fn offset(&self, time: i64) -> Option<i64> {
        let naive = self.naive(time)?;
        Some(i64::from(self.zone.offset_from_utc_datetime(&naive).fix().local_minus_utc()) * self.per_second)
    }

    /// When the offset last changed before a moment that lies less than two of the longest buckets after it.
    fn last_change(&self, time: i64) -> Option<i64> {
        let now = self.offset(time)?;
        let reach = self.width.checked_add(2 * DAY_SECONDS * self.per_second)?;
        let (mut before, mut after) = (time.checked_sub(reach)?, time);
        if self.offset(before)? == now {
            return None;
        }
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if self.offset(middle)? == now { after = middle } else { before = middle }
        }
        Some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(zone: &str, hours: i64, moment: &str) -> String {
        let moment = DateTime::parse_from_rfc3339(moment).unwrap();
        let buckets = LocalBuckets::new(zone.parse().unwrap(), hours * 3600, 1);
        let start = buckets.start(moment.timestamp()).unwrap();
        DateTime::from_timestamp(start, 0).unwrap().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    }

    #[test]
    fn days_begin_at_local_midnight_also_when_the_clock_is_changed() {
        // 25 hours long, and 23.
        assert_eq!(start("Europe/Berlin", 24, "2026-10-25T22:59:59Z"), "2026-10-24T22:00:00Z");
        assert_eq!(start("Europe/Berlin", 24, "2026-10-25T23:00:00Z"), "2026-10-25T23:00:00Z");
        assert_eq!(start("Europe/Berlin", 24, "2026-03-29T21:59:59Z"), "2026-03-28T23:00:00Z");
        assert_eq!(start("Europe/Berlin", 24, "2026-03-29T22:00:00Z"), "2026-03-29T22:00:00Z");
        assert_eq!(start("Asia/Kolkata", 24, "1969-12-31T18:29:59Z"), "1969-12-30T18:30:00Z");
    }

    #[test]
    fn an_hour_that_comes_twice_is_two_and_one_that_does_not_come_is_none() {
        assert_eq!(start("Europe/Berlin", 1, "2026-10-25T00:30:00Z"), "2026-10-25T00:00:00Z");
        assert_eq!(start("Europe/Berlin", 1, "2026-10-25T01:30:00Z"), "2026-10-25T01:00:00Z");
        assert_eq!(start("Europe/Berlin", 1, "2026-03-29T00:59:00Z"), "2026-03-29T00:00:00Z");
        assert_eq!(start("Europe/Berlin", 1, "2026-03-29T01:00:00Z"), "2026-03-29T01:00:00Z");
        // Two hours from 02:00 on, of which the first is left out.
        assert_eq!(start("Europe/Berlin", 2, "2026-03-29T01:30:00Z"), "2026-03-29T01:00:00Z");
    }

    #[test]
    fn a_day_whose_midnight_is_left_out_or_comes_twice_is_one_bucket() {
        // Beirut goes forward at midnight; Havana goes back at 01:00.
        assert_eq!(start("Asia/Beirut", 24, "2026-03-29T12:00:00Z"), "2026-03-28T22:00:00Z");
        assert_eq!(start("America/Havana", 24, "2026-11-01T04:10:00Z"), "2026-11-01T04:00:00Z");
        assert_eq!(start("America/Havana", 24, "2026-11-01T05:10:00Z"), "2026-11-01T04:00:00Z");
    }
}
