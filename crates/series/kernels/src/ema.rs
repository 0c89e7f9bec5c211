//! Exponential moving average.

use crate::{KernelError, Keys};

/// The recurrence `y = alpha * x + (1 - alpha) * y`, begun with the first value that is not null.
///
/// A null neither moves nor ages the average: its row repeats the last one (pandas: `adjust=False,
/// ignore_na=True`). Rows before the first value are NaN. Infinities stay; two opposite ones leave NaN for
/// good, and so does one with alpha 1, for `0 * y` is NaN then (pandas, too). State is carried, so chunks may
/// be cut anywhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ema {
    alpha: f64,
    /// NaN until the first value.
    last: f64,
    has_begun: bool,
}

impl Ema {
    /// An average with smoothing factor `alpha`.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless `0 < alpha <= 1`.
    pub fn with_alpha(alpha: f64) -> Result<Self, KernelError> {
        if !(alpha > 0.0 && alpha <= 1.0) {
            let wanted = "above 0 and at most 1";
            return Err(KernelError::Parameter { name: "alpha", value: alpha.to_string(), wanted });
        }
        Ok(Self { alpha, last: f64::NAN, has_begun: false })
    }

    /// An average over about `span` rows: alpha is 2 / (span + 1).
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless `span >= 1`.
    pub fn with_span(span: f64) -> Result<Self, KernelError> {
        if !(span >= 1.0 && span.is_finite()) {
            return Err(KernelError::Parameter {
                name: "span",
                value: span.to_string(),
                wanted: "at least 1",
            });
        }
        Self::with_alpha(2.0 / (span + 1.0))
    }

    /// The average so far; NaN before the first value.
    pub fn last(&self) -> f64 {
        self.last
    }

    /// Takes one value and returns the average after it.
    #[inline]
    pub fn push(&mut self, value: f64) -> f64 {
        if !self.has_begun {
            self.has_begun = !value.is_nan();
            self.last = value;
            return value;
        }
        // Each average waits for the one before it, so nothing but one multiplication and one addition may
        // stand between them: whether the value is null decides the factors, not the result. Adding -0
        // changes nothing.
        let (kept, added) = if value.is_nan() { (1.0, -0.0) } else { (1.0 - self.alpha, self.alpha * value) };
        self.last = kept * self.last + added;
        self.last
    }

    /// Takes one chunk of a series and writes the average after each row.
    ///
    /// # Errors
    /// [`KernelError::Length`] when `out` differs in length from `values`.
    pub fn feed(&mut self, values: &[f64], out: &mut [f64]) -> Result<(), KernelError> {
        KernelError::check_length("out", values.len(), out.len())?;
        for (&value, out) in values.iter().zip(out) {
            *out = self.push(value);
        }
        Ok(())
    }

    /// Takes one chunk of many interleaved series; `states` holds one average a key.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ or `states` does not have one entry a key.
    pub fn feed_by_key(
        states: &mut [Self],
        keys: Keys<'_>,
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        let rows = keys.as_slice();
        KernelError::check_length("value", rows.len(), values.len())?;
        KernelError::check_length("out", rows.len(), out.len())?;
        KernelError::check_length("states", keys.count(), states.len())?;
        for ((&key, &value), out) in rows.iter().zip(values).zip(out) {
            *out = states[key as usize].push(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, magnitude, null_or_value};
    use proptest::prelude::*;

    /// The closed form: every earlier value with its own weight, no recurrence.
    fn naive(values: &[f64], alpha: f64) -> f64 {
        let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let Some((first, rest)) = known.split_first() else { return f64::NAN };
        let decay = |rows: usize| (1.0 - alpha).powi(rows as i32);
        let later = |(row, value): (usize, &f64)| alpha * value * decay(rest.len() - 1 - row);
        first * decay(rest.len()) + rest.iter().enumerate().map(later).sum::<f64>()
    }

    proptest! {
        #[test]
        fn equals_the_closed_form_cut_anywhere(
            values in prop::collection::vec(null_or_value(), 0..50), alpha in 0.01f64..=1.0,
            cut in 0usize..50,
        ) {
            let cut = cut.min(values.len());
            let mut ema = Ema::with_alpha(alpha).unwrap();
            let mut got = vec![0.0; values.len()];
            ema.feed(&values[..cut], &mut got[..cut]).unwrap();
            ema.feed(&values[cut..], &mut got[cut..]).unwrap();
            for (row, &average) in got.iter().enumerate() {
                assert_close(average, naive(&values[..=row], alpha), magnitude(&values[..=row]));
            }
        }

        #[test]
        fn interleaved_series_equal_separate_ones(
            cells in prop::collection::vec((0u32..4, null_or_value()), 0..60),
        ) {
            let (keys, values): (Vec<u32>, Vec<f64>) = cells.into_iter().unzip();
            let fresh = Ema::with_span(5.0).unwrap();
            let mut got = vec![0.0; keys.len()];
            Ema::feed_by_key(&mut [fresh; 4], Keys::new(&keys, 4).unwrap(), &values, &mut got).unwrap();
            for key in 0..4 {
                let mut one = fresh;
                for row in (0..keys.len()).filter(|&row| keys[row] == key) {
                    let wanted = one.push(values[row]);
                    prop_assert_eq!(got[row].to_bits(), wanted.to_bits());
                }
            }
        }
    }

    #[test]
    fn span_twenty_is_two_over_twenty_one() {
        let (span, alpha) = (Ema::with_span(20.0).unwrap(), Ema::with_alpha(2.0 / 21.0).unwrap());
        assert_eq!(span.alpha, alpha.alpha);
    }

    #[test]
    fn opposite_infinities_leave_nan_wherever_the_chunk_is_cut() {
        let values = [f64::INFINITY, f64::NEG_INFINITY, 1.0, f64::NAN, 2.0];
        for cut in 0..values.len() {
            let mut ema = Ema::with_alpha(0.5).unwrap();
            let mut got = [0.0; 5];
            ema.feed(&values[..cut], &mut got[..cut]).unwrap();
            ema.feed(&values[cut..], &mut got[cut..]).unwrap();
            assert!(got[0] == f64::INFINITY && got[1..].iter().all(|average| average.is_nan()));
        }
    }

    #[test]
    fn alpha_one_repeats_the_values_up_to_an_infinity() {
        let mut ema = Ema::with_alpha(1.0).unwrap();
        let got = [3.0, f64::NAN, -7.0, f64::INFINITY].map(|value| ema.push(value));
        assert_eq!(got, [3.0, 3.0, -7.0, f64::INFINITY]);
        assert!(ema.push(2.0).is_nan());
    }

    #[test]
    fn refuses_a_factor_outside_its_range() {
        for alpha in [0.0, -0.5, 1.5, f64::NAN] {
            assert!(matches!(Ema::with_alpha(alpha), Err(KernelError::Parameter { name: "alpha", .. })));
        }
        assert!(matches!(Ema::with_span(0.5), Err(KernelError::Parameter { name: "span", .. })));
    }
}
