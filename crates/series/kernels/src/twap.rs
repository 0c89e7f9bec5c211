//! Time-weighted average price.

use crate::{KernelError, Times};

/// A TWAP in the making: each price holds until the next one that is not null. Parts merge in time order.
///
/// Of several prices at one time the last one holds. A price holds at least until the last row, a null one
/// included; how much longer is told to [`mean`](Self::mean). Spans longer than 2^53 units of time are rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Twap {
    /// Sum of price times the time it held.
    value: f64,
    /// Time that prices held.
    span: f64,
    /// First time with a price, and that price.
    first: Option<(i64, f64)>,
    /// Time of the last row, and the price that holds there.
    last: Option<(i64, f64)>,
}

impl Twap {
    /// Of no rows.
    pub const EMPTY: Self = Self { value: 0.0, span: 0.0, first: None, last: None };

    /// The prices of two columns.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ.
    pub fn of(times: Times<'_>, prices: &[f64]) -> Result<Self, KernelError> {
        KernelError::check_length("price", times.as_slice().len(), prices.len())?;
        let mut twap = Self::EMPTY;
        for (&time, &price) in times.as_slice().iter().zip(prices) {
            twap.hold_until(time);
            if !price.is_nan() {
                twap.first = twap.first.or(Some((time, price)));
                twap.last = Some((time, price));
            }
        }
        Ok(twap)
    }

    /// Adds a part that does not begin before this one ends.
    ///
    /// # Errors
    /// [`KernelError::ChunkOrder`] when it does; nothing is added then.
    pub fn merge_later(&mut self, later: &Self) -> Result<(), KernelError> {
        let (Some((first, _)), Some(last)) = (later.first, later.last) else { return Ok(()) };
        if let Some((before, _)) = self.last.filter(|&(before, _)| before > first) {
            return Err(KernelError::ChunkOrder { before, time: first });
        }
        self.hold_until(first);
        self.value += later.value;
        self.span += later.span;
        self.first = self.first.or(later.first);
        self.last = Some(last);
        Ok(())
    }

    /// The mean price until `end`, or until the last row where that is later. NaN without a price; the last
    /// price where none held for any time.
    #[must_use]
    pub fn mean(&self, end: i64) -> f64 {
        let mut whole = *self;
        whole.hold_until(end);
        match whole.last {
            Some((_, price)) if whole.span == 0.0 => price,
            Some(_) => whole.value / whole.span,
            None => f64::NAN,
        }
    }

    fn hold_until(&mut self, time: i64) {
        if let Some((since, price)) = &mut self.last
            && *since < time
        {
            let held = time.abs_diff(*since) as f64;
            self.value += *price * held;
            self.span += held;
            *since = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, magnitude, null_or_value, sorted_times};
    use proptest::prelude::*;

    /// Looks up the price that holds at each unit of time.
    fn naive(times: &[i64], prices: &[f64], end: i64) -> f64 {
        let known: Vec<(i64, f64)> =
            times.iter().copied().zip(prices.iter().copied()).filter(|row| !row.1.is_nan()).collect();
        let (Some(&(begin, _)), Some(&(_, last))) = (known.first(), known.last()) else { return f64::NAN };
        let end = end.max(times[times.len() - 1]);
        let at = |time: i64| known.iter().rfind(|row| row.0 <= time).map_or(0.0, |row| row.1);
        if end == begin { last } else { (begin..end).map(at).sum::<f64>() / (end - begin) as f64 }
    }

    proptest! {
        #[test]
        fn equals_the_price_of_every_moment_cut_anywhere(
            times in sorted_times(30).prop_filter("few moments", |times| times.iter().all(|time| time.abs() < 300)),
            prices in prop::collection::vec(null_or_value(), 30), end in -20i64..60, cut in 0usize..30,
        ) {
            let (prices, cut) = (&prices[..times.len()], cut.min(times.len()));
            let part = |range: std::ops::Range<usize>| {
                Twap::of(Times::new(&times[range.clone()]).unwrap(), &prices[range]).unwrap()
            };
            let whole = part(0..times.len());
            let mut merged = part(0..cut);
            merged.merge_later(&part(cut..times.len())).unwrap();
            let wanted = naive(&times, prices, end);
            assert_close(whole.mean(end), wanted, magnitude(prices));
            // The last rows of a part may be null: what holds until them is known from the rows after.
            let end = times.last().map_or(end, |&last| end.max(last));
            assert_close(merged.mean(end), wanted, magnitude(prices));
        }
    }

    #[test]
    fn a_part_that_is_too_early_is_refused() {
        let part = |time| Twap::of(Times::new(&[time]).unwrap(), &[1.0]).unwrap();
        let mut twap = part(5);
        assert_eq!(twap.merge_later(&part(4)), Err(KernelError::ChunkOrder { before: 5, time: 4 }));
        twap.merge_later(&part(5)).unwrap();
        assert_eq!(twap.mean(0), 1.0);
    }
}
