//! Change from row to row.

use crate::{KernelError, Keys};

/// Differences of successive values of each key: this one less the one before. A null has no difference and is
/// skipped by the next row; so the first value of a key and every null give NaN, as do equal infinities.
#[derive(Debug, Clone)]
pub struct Deltas {
    /// Last value of each key; NaN before the first.
    last: Vec<f64>,
}

impl Deltas {
    /// For `key_count` keys; 1 where there are none.
    #[must_use]
    pub fn new(key_count: usize) -> Self {
        Self { last: vec![f64::NAN; key_count] }
    }

    /// Takes one chunk; rows without keys are all of key 0.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ or the keys are not counted as in [`new`](Self::new).
    pub fn feed(
        &mut self,
        keys: Option<Keys<'_>>,
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        let keys = check(keys, self.last.len(), values, out)?;
        let mut step = |key: usize, value: f64, out: &mut f64| {
            *out = value - self.last[key];
            self.last[key] = if value.is_nan() { self.last[key] } else { value };
        };
        match keys {
            Some(keys) => {
                let rows = keys.iter().zip(values).zip(out);
                rows.for_each(|((&key, &value), out)| step(key as usize, value, out));
            }
            None => values.iter().zip(out).for_each(|(&value, out)| step(0, value, out)),
        }
        Ok(())
    }
}

/// The keys of a chunk that fits a table of `key_count` keys; none where all rows are of key 0.
fn check<'a>(
    keys: Option<Keys<'a>>,
    key_count: usize,
    values: &[f64],
    out: &[f64],
) -> Result<Option<&'a [u32]>, KernelError> {
    KernelError::check_length("out", values.len(), out.len())?;
    KernelError::check_length("key table", key_count, keys.map_or(1, Keys::count))?;
    let keys = keys.map(Keys::as_slice);
    KernelError::check_length("key", values.len(), keys.map_or(values.len(), <[u32]>::len))?;
    Ok(keys)
}

/// Puts the last known value of a key into the nulls after it, at most `limit` of them in a row. What comes
/// before the first value stays null.
#[derive(Debug, Clone)]
pub struct FillForward {
    limit: u64,
    /// Last value of each key, and how many nulls it has filled.
    last: Vec<(f64, u64)>,
}

impl FillForward {
    /// For `key_count` keys, 1 where there are none; `None` fills any number of nulls.
    #[must_use]
    pub fn new(key_count: usize, limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(u64::MAX), last: vec![(f64::NAN, 0); key_count] }
    }

    /// Takes one chunk; rows without keys are all of key 0.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ or the keys are not counted as in [`new`](Self::new).
    pub fn feed(
        &mut self,
        keys: Option<Keys<'_>>,
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        let keys = check(keys, self.last.len(), values, out)?;
        for (row, (&value, out)) in values.iter().zip(out).enumerate() {
            let (last, filled) = &mut self.last[keys.map_or(0, |keys| keys[row] as usize)];
            if !value.is_nan() {
                (*last, *filled) = (value, 0);
            }
            *out = value;
            if value.is_nan() && *filled < self.limit {
                *out = *last;
                *filled += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, null_or_value};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_equal_a_look_back_cut_anywhere(
            cells in prop::collection::vec((0u32..3, null_or_value()), 0..50), has_keys in any::<bool>(),
            limit in prop::option::of(0u64..3), cut in 0usize..50,
        ) {
            let (keys, values): (Vec<u32>, Vec<f64>) = cells.into_iter().unzip();
            let key = |row: usize| if has_keys { keys[row] } else { 0 };
            let cut = cut.min(keys.len());
            let key_count = if has_keys { 3 } else { 1 };
            let all = Keys::new(&keys, 3).unwrap();
            let (mut deltas, mut fill) = (Deltas::new(key_count), FillForward::new(key_count, limit));
            let (mut changed, mut filled) = (vec![7.0; keys.len()], vec![7.0; keys.len()]);
            for range in [0..cut, cut..keys.len()] {
                let keys = has_keys.then(|| all.slice(range.clone()));
                deltas.feed(keys, &values[range.clone()], &mut changed[range.clone()]).unwrap();
                fill.feed(keys, &values[range.clone()], &mut filled[range]).unwrap();
            }
            for row in 0..keys.len() {
                let before = || (0..row).rev().filter(|&other| key(other) == key(row));
                let last = before().find(|&other| !values[other].is_nan());
                let nulls = before().take_while(|&other| values[other].is_nan()).count() as u64;
                let last = last.map_or(f64::NAN, |row| values[row]);
                assert_close(changed[row], values[row] - last, 0.0);
                let may_fill = nulls < limit.unwrap_or(u64::MAX);
                let wanted = if values[row].is_nan() && may_fill { last } else { values[row] };
                assert_close(filled[row], wanted, 0.0);
            }
        }
    }

    #[test]
    fn refuses_keys_where_there_are_none() {
        let keys = Keys::new(&[0, 1], 2).unwrap();
        let wrong = Deltas::new(1).feed(Some(keys), &[1.0, 2.0], &mut [0.0; 2]);
        assert_eq!(wrong, Err(KernelError::Length { column: "key table", want: 1, got: 2 }));
        assert!(FillForward::new(2, None).feed(None, &[1.0], &mut [0.0]).is_err());
    }
}
