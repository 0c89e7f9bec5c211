//! Columns that were checked once, so that kernels need not check them again.

use crate::KernelError;

/// An ascending time column; ties are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times<'a>(&'a [i64]);

impl<'a> Times<'a> {
    /// Checks the order, reading the column once.
    ///
    /// # Errors
    /// [`KernelError::Unsorted`] names the first row that is earlier than its predecessor.
    pub fn new(times: &'a [i64]) -> Result<Self, KernelError> {
        if times.is_sorted() {
            return Ok(Self(times));
        }
        let descent = times.windows(2).position(|pair| pair[0] > pair[1]);
        let row = descent.expect("a column that is not sorted descends somewhere") + 1;
        Err(KernelError::Unsorted { row, before: times[row - 1], time: times[row] })
    }

    /// The column itself.
    pub fn as_slice(self) -> &'a [i64] {
        self.0
    }

    /// The rows of `range`, which are still ascending.
    ///
    /// # Panics
    /// When the range does not lie in the column.
    pub fn slice(self, range: std::ops::Range<usize>) -> Self {
        Self(&self.0[range])
    }

    /// First row at or after `from` whose time is above `time`, searched in doubling steps: cheap when it is
    /// near.
    pub(crate) fn first_above(self, from: usize, time: i64) -> usize {
        let rows = &self.0[from..];
        let mut step = 1;
        while step < rows.len() && rows[step] <= time {
            step *= 2;
        }
        let low = step / 2;
        let high = rows.len().min(step);
        from + low + rows[low..high].partition_point(|&t| t <= time)
    }
}

/// A column of dense keys, each below a known count: symbol numbers of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keys<'a> {
    keys: &'a [u32],
    count: usize,
}

impl<'a> Keys<'a> {
    /// Checks that every key is below `count`, reading the column once.
    ///
    /// # Errors
    /// [`KernelError::KeyRange`] names the first row that is not.
    pub fn new(keys: &'a [u32], count: usize) -> Result<Self, KernelError> {
        if keys.iter().copied().max().is_none_or(|highest| (highest as usize) < count) {
            return Ok(Self { keys, count });
        }
        let row = keys.iter().position(|&key| key as usize >= count);
        let row = row.expect("the highest key stands somewhere");
        Err(KernelError::KeyRange { row, key: keys[row], count })
    }

    /// The column itself.
    pub fn as_slice(self) -> &'a [u32] {
        self.keys
    }

    /// Number of keys there can be; tables indexed by key have this length.
    pub fn count(self) -> usize {
        self.count
    }

    /// The rows of `range`, under the same count.
    ///
    /// # Panics
    /// When the range does not lie in the column.
    pub fn slice(self, range: std::ops::Range<usize>) -> Self {
        Self { keys: &self.keys[range], count: self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn descent_is_named_with_its_row() {
        let wrong = Times::new(&[-5, -5, 3, 2]);
        assert_eq!(wrong, Err(KernelError::Unsorted { row: 3, before: 3, time: 2 }));
        assert!(Times::new(&[]).is_ok());
        assert!(Times::new(&[i64::MIN, 0, 0, i64::MAX]).is_ok());
    }

    #[test]
    fn key_out_of_range_is_named_with_its_row() {
        assert_eq!(Keys::new(&[0, 2, 1], 2), Err(KernelError::KeyRange { row: 1, key: 2, count: 2 }));
        assert!(Keys::new(&[], 0).is_ok());
    }

    proptest! {
        #[test]
        fn first_above_equals_linear_search(
            mut times in prop::collection::vec(-20i64..20, 0..40), time in -25i64..25, from in 0usize..40,
        ) {
            times.sort_unstable();
            let from = from.min(times.len());
            let wanted = (from..times.len()).find(|&row| times[row] > time).unwrap_or(times.len());
            prop_assert_eq!(Times::new(&times).unwrap().first_above(from, time), wanted);
        }
    }
}
