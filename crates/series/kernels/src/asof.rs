//! ASOF join: for each left row the newest right row of the same key that is not younger.

use crate::{KernelError, Keys, Times};

/// Stands where a left row has no partner.
pub const NO_ROW: u32 = u32::MAX;

/// Backward ASOF join by key, as one merge of both tables over a table of the newest row of each key.
///
/// The partner of left row `(k, t)` is the last right row with key `k` and time `<= t`; of several with the
/// same time, the last in row order. Whether the values of that row are null does not matter: the join is on
/// rows. The struct owns the table of keys and may be used again without allocating.
#[derive(Debug)]
pub struct AsofJoin {
    newest: Vec<u32>,
}

impl AsofJoin {
    /// A join over `key_count` dense keys.
    pub fn new(key_count: usize) -> Self {
        Self { newest: vec![NO_ROW; key_count] }
    }

    /// Writes the partner row of each left row to `out`, or [`NO_ROW`].
    ///
    /// # Errors
    /// [`KernelError::Length`] when a key column does not fit its time column, `out` does not fit the left
    /// table, or the keys are not counted as in [`new`](Self::new); [`KernelError::Parameter`] when the right
    /// table has [`NO_ROW`] rows or more.
    pub fn run(
        &mut self,
        (left_times, left_keys): (Times<'_>, Keys<'_>),
        (right_times, right_keys): (Times<'_>, Keys<'_>),
        out: &mut [u32],
    ) -> Result<(), KernelError> {
        let (left, right) = (left_times.as_slice(), right_times.as_slice());
        KernelError::check_length("left key", left.len(), left_keys.as_slice().len())?;
        KernelError::check_length("right key", right.len(), right_keys.as_slice().len())?;
        KernelError::check_length("out", left.len(), out.len())?;
        KernelError::check_length("left key table", self.newest.len(), left_keys.count())?;
        KernelError::check_length("right key table", self.newest.len(), right_keys.count())?;
        if right.len() >= NO_ROW as usize {
            let (name, wanted) = ("rows of the right table", "below 4294967295");
            return Err(KernelError::Parameter { name, value: right.len().to_string(), wanted });
        }
        self.newest.fill(NO_ROW);
        let right_keys = right_keys.as_slice();
        let mut next = 0;
        for ((&time, &key), out) in left.iter().zip(left_keys.as_slice()).zip(out) {
            while next < right.len() && right[next] <= time {
                self.newest[right_keys[next] as usize] = next as u32;
                next += 1;
            }
            *out = self.newest[key as usize];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sorted_times;
    use proptest::prelude::*;

    fn join(left: (&[i64], &[u32]), right: (&[i64], &[u32]), count: usize) -> Vec<u32> {
        let mut out = vec![0; left.0.len()];
        let side = |(times, keys)| (Times::new(times).unwrap(), Keys::new(keys, count).unwrap());
        AsofJoin::new(count).run(side(left), side(right), &mut out).unwrap();
        out
    }

    proptest! {
        #[test]
        fn equals_the_search_of_every_row(
            left in sorted_times(60), right in sorted_times(60), keys in prop::collection::vec(0u32..4, 120),
        ) {
            let (left_keys, right_keys) = (&keys[..left.len()], &keys[60..60 + right.len()]);
            let got = join((&left, left_keys), (&right, right_keys), 4);
            for (row, got) in got.into_iter().enumerate() {
                let fits = |other: &usize| right_keys[*other] == left_keys[row] && right[*other] <= left[row];
                let wanted = (0..right.len()).rev().find(fits);
                prop_assert_eq!(got, wanted.map_or(NO_ROW, |row| row as u32));
            }
        }
    }

    #[test]
    fn a_tie_takes_the_last_row_and_a_younger_row_is_no_partner() {
        let got = join((&[-3, 5, 5], &[0, 0, 1]), (&[-2, 5, 5, 6], &[0, 0, 0, 1]), 2);
        assert_eq!(got, [NO_ROW, 2, NO_ROW]);
    }

    #[test]
    fn reuse_does_not_remember_and_nothing_joins_nothing() {
        let mut join = AsofJoin::new(1);
        let side = || (Times::new(&[1]).unwrap(), Keys::new(&[0], 1).unwrap());
        let none = || (Times::new(&[]).unwrap(), Keys::new(&[], 1).unwrap());
        let mut out = [7];
        join.run(side(), side(), &mut out).unwrap();
        assert_eq!(out, [0]);
        join.run(side(), none(), &mut out).unwrap();
        assert_eq!(out, [NO_ROW]);
        join.run(none(), side(), &mut []).unwrap();
    }
}
