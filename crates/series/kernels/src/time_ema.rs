//! Exponential moving average, by time.

use std::ops::Range;

use crate::crew::{cut_mut, parts_of};
use crate::ema::decay_floor;
use crate::{Crew, KernelError, Keys, Times};

/// An average in which a value has lost half its weight after `half_life` of time, however many rows came
/// since: `y = x + (y - x) * 2^(-dt / half_life)`, begun with the first value that is not null.
///
/// `dt` is counted from the last row that was not null, so a null neither moves nor ages the average; of the
/// values of one time only the first moves it. Infinities stay, as in [`Ema`](crate::Ema), until a step of more
/// than 54 half lives, after which nothing is left of any value. State is carried, so chunks may be cut anywhere.
/// Steps longer than 2^53 units of time are rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeEma {
    half_life: f64,
    /// The last step, and the weight of a value after it: most series have few different steps.
    weight: (u64, f64),
    /// Time of the last value, and the average after it.
    last: Option<(i64, f64)>,
}

impl TimeEma {
    /// An average that forgets half in `half_life`, in the unit of the time column.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless it is above 0 and finite.
    pub fn new(half_life: f64) -> Result<Self, KernelError> {
        let is_allowed = half_life > 0.0 && half_life.is_finite();
        KernelError::check_parameter("half life", half_life, is_allowed, "above 0")?;
        Ok(Self { half_life, weight: (0, 0.0), last: None })
    }

    /// The average so far; NaN before the first value.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.last.map_or(f64::NAN, |last| last.1)
    }

    /// Takes one row, not earlier than the one before, and returns the average after it.
    #[inline]
    pub fn push(&mut self, time: i64, value: f64) -> f64 {
        let average = match self.last {
            _ if value.is_nan() => return self.last(),
            None => value,
            Some((before, average)) => {
                let weight = self.weight_after(time.abs_diff(before));
                // Not times 0, which is NaN where the other side is infinite.
                match weight {
                    0.0 => average,
                    1.0 => value,
                    _ => (1.0 - weight) * average + weight * value,
                }
            }
        };
        self.last = Some((time, average));
        average
    }

    /// Takes one chunk of a series and writes the average after each row.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ, [`KernelError::ChunkOrder`] when the chunk begins
    /// before the last value; nothing is taken then.
    pub fn feed(&mut self, times: Times<'_>, values: &[f64], out: &mut [f64]) -> Result<(), KernelError> {
        self.check(times, values, out)?;
        for ((&time, &value), out) in times.as_slice().iter().zip(values).zip(out) {
            *out = self.push(time, value);
        }
        Ok(())
    }

    /// Takes one chunk of many interleaved series; `states` holds one average a key.
    ///
    /// # Errors
    /// As [`feed`](Self::feed); [`KernelError::Length`] too when `states` does not have one entry a key.
    pub fn feed_by_key(
        states: &mut [Self],
        (times, keys): (Times<'_>, Keys<'_>),
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        KernelError::check_length("key", times.as_slice().len(), keys.as_slice().len())?;
        KernelError::check_length("states", keys.count(), states.len())?;
        states.iter().try_for_each(|state| state.check(times, values, out))?;
        let rows = times.as_slice().iter().zip(keys.as_slice());
        for (((&time, &key), &value), out) in rows.zip(values).zip(out) {
            *out = states[key as usize].push(time, value);
        }
        Ok(())
    }

    /// Takes one chunk of a series, its rows shared out among a crew.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn run(
        &mut self,
        crew: &mut Crew,
        times: Times<'_>,
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        self.check(times, values, out)?;
        let (times, threads, first) = (times.as_slice(), crew.threads(), *self);
        // Every part but the first begins with 0 at the time of the value before, to which what the true
        // average leaves behind is added below.
        let start = |range: &Range<usize>| {
            let before = values[..range.start].iter().rposition(|value| !value.is_nan());
            let since = before.map(|row| times[row]).or(first.last.map(|last| last.0));
            Self { last: since.map(|time| (time, 0.0)), ..first }
        };
        let parts = parts_of(values.len(), threads).zip(cut_mut(out, threads)).enumerate().collect();
        let ends = crew.map(parts, |(part, (range, out)): (usize, (Range<usize>, &mut [f64]))| {
            let mut ema = if part == 0 { first } else { start(&range) };
            for ((&time, &value), out) in times[range.clone()].iter().zip(&values[range]).zip(out) {
                *out = ema.push(time, value);
            }
            ema
        });
        let ranges = parts_of(values.len(), threads);
        for (part, ((range, out), end)) in ranges.zip(cut_mut(out, threads)).zip(ends).enumerate() {
            if part == 0 || self.last.is_none() {
                *self = end;
            } else {
                self.carry_into(&times[range.clone()], &values[range], out, end);
            }
        }
        Ok(())
    }

    /// Adds what the rows before left to a part that was averaged from 0 and ended with `end`.
    fn carry_into(&mut self, times: &[i64], values: &[f64], out: &mut [f64], end: Self) {
        let Some((since, carry)) = self.last else { return };
        let floor = decay_floor(carry);
        let (mut before, mut rest) = (since, carry);
        for ((&time, &value), out) in times.iter().zip(values).zip(out) {
            if !value.is_nan() {
                let is_forgotten = self.weight_after(time.abs_diff(before)) == 1.0;
                let left = f64::exp2(-(time.abs_diff(since) as f64) / self.half_life);
                // An infinity does not decay, not even where what is left of it rounds to 0.
                rest = if carry.is_finite() { carry * left } else { carry };
                rest = if is_forgotten || rest.abs() <= floor { 0.0 } else { rest };
                before = time;
            }
            if rest == 0.0 {
                break;
            }
            *out += rest;
        }
        self.last = end.last.map(|(time, average)| (time, average + rest));
    }

    fn check(&self, times: Times<'_>, values: &[f64], out: &[f64]) -> Result<(), KernelError> {
        let rows = times.as_slice();
        KernelError::check_length("value", rows.len(), values.len())?;
        KernelError::check_length("out", rows.len(), out.len())?;
        match (self.last, rows.first()) {
            (Some((before, _)), Some(&time)) if time < before => {
                Err(KernelError::ChunkOrder { before, time })
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn weight_after(&mut self, step: u64) -> f64 {
        if step != self.weight.0 {
            // Not `1 - exp2(..)`, which loses digits where the step is short.
            let weight = -f64::exp_m1(-std::f64::consts::LN_2 * step as f64 / self.half_life);
            self.weight = (step, weight);
        }
        self.weight.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, column, crews, magnitude, null_or_value, sorted_times};
    use proptest::prelude::*;

    /// The closed form: of each time its first value, with the weight that is left of it.
    fn naive(times: &[i64], values: &[f64], half_life: f64) -> f64 {
        let mut known: Vec<(i64, f64)> =
            times.iter().copied().zip(values.iter().copied()).filter(|row| !row.1.is_nan()).collect();
        known.dedup_by_key(|row| row.0);
        let Some(&(end, _)) = known.last() else { return f64::NAN };
        let left = |time: i64| f64::exp2(-((end - time) as f64) / half_life);
        let first = known[0].1 * left(known[0].0);
        let added = |pair: &[(i64, f64)]| pair[1].1 * (left(pair[1].0) - left(pair[0].0));
        first + known.windows(2).map(added).sum::<f64>()
    }

    proptest! {
        #[test]
        fn equals_the_closed_form_cut_anywhere(
            times in sorted_times(60), values in column(60), half_life in prop_oneof![0.5f64..50.0, Just(1e6)],
            cut in 0usize..60,
        ) {
            let rows = times.len().min(values.len());
            let (times, values, cut) = (&times[..rows], &values[..rows], cut.min(rows));
            let check = |got: &[f64], ema: &TimeEma| {
                for (row, &got) in got.iter().enumerate() {
                    let wanted = naive(&times[..=row], &values[..=row], half_life);
                    assert_close(got, wanted, magnitude(&values[..=row]));
                }
                assert_close(ema.last(), naive(times, values, half_life), magnitude(values));
            };
            let mut got = vec![7.0; rows];
            let part = |range: Range<usize>| (Times::new(&times[range.clone()]).unwrap(), &values[range]);
            let ranges = || [0..cut, cut..rows];
            let mut ema = TimeEma::new(half_life).unwrap();
            for range in ranges() {
                let (times, values) = part(range.clone());
                ema.feed(times, values, &mut got[range]).unwrap();
            }
            check(&got, &ema);
            for crew in &mut crews() {
                let mut ema = TimeEma::new(half_life).unwrap();
                for range in ranges() {
                    let (times, values) = part(range.clone());
                    ema.run(crew, times, values, &mut got[range]).unwrap();
                }
                check(&got, &ema);
            }
        }

        #[test]
        fn interleaved_series_equal_separate_ones(
            times in sorted_times(60), cells in prop::collection::vec((0u32..3, null_or_value()), 60),
        ) {
            let (keys, values): (Vec<u32>, Vec<f64>) = cells.into_iter().take(times.len()).unzip();
            let fresh = TimeEma::new(7.0).unwrap();
            let side = (Times::new(&times).unwrap(), Keys::new(&keys, 3).unwrap());
            let mut got = vec![7.0; times.len()];
            TimeEma::feed_by_key(&mut [fresh; 3], side, &values, &mut got).unwrap();
            for key in 0..3 {
                let mut one = fresh;
                for row in (0..times.len()).filter(|&row| keys[row] == key) {
                    assert_close(got[row], one.push(times[row], values[row]), 0.0);
                }
            }
        }
    }

    #[test]
    fn half_is_left_after_half_a_life_and_an_infinity_stays() {
        let mut ema = TimeEma::new(10.0).unwrap();
        ema.push(0, 1.0);
        assert_close(ema.push(10, 0.0), 0.5, 1e-6);
        assert_close(ema.push(10, 99.0), 0.5, 1e-6);
        assert_eq!(ema.push(11, f64::INFINITY), f64::INFINITY);
        assert_eq!(ema.push(500, 3.0), f64::INFINITY);
        assert_eq!(ema.push(10_000, 3.0), 3.0);
    }

    #[test]
    fn an_infinity_is_carried_over_parts_as_far_as_in_one_pass() {
        for gap in [5, 1000] {
            let times: Vec<i64> = (0..40).map(|row| row * 5 + if row > 30 { gap } else { 0 }).collect();
            let mut values = vec![2.0; 40];
            values[3] = f64::NEG_INFINITY;
            let (mut got, mut wanted) = (vec![7.0; 40], vec![7.0; 40]);
            let column = Times::new(&times).unwrap();
            TimeEma::new(10.0).unwrap().feed(column, &values, &mut wanted).unwrap();
            for crew in &mut crews() {
                TimeEma::new(10.0).unwrap().run(crew, column, &values, &mut got).unwrap();
                assert_eq!(got, wanted);
            }
            assert_eq!(wanted[39], if gap == 5 { f64::NEG_INFINITY } else { 2.0 });
        }
    }

    #[test]
    fn refuses_what_it_cannot_answer() {
        assert!(matches!(TimeEma::new(f64::NAN), Err(KernelError::Parameter { name: "half life", .. })));
        let mut ema = TimeEma::new(1.0).unwrap();
        ema.push(5, 1.0);
        let early = ema.feed(Times::new(&[4]).unwrap(), &[1.0], &mut [0.0]);
        assert_eq!(early, Err(KernelError::ChunkOrder { before: 5, time: 4 }));
    }
}
