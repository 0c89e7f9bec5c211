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

    /// A column whose owner keeps it in order, unread. Kernels give wrong results, and may panic, where it is not.
    #[must_use]
    pub fn of_sorted(times: &'a [i64]) -> Self {
        debug_assert!(times.is_sorted(), "the owner keeps the order");
        Self(times)
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

    /// First row at or after `from` whose time is above `time`, searched in doubling steps to both sides of
    /// the row that is `distance` after `from`: cheap when it is near.
    #[inline]
    pub(crate) fn first_above_near(self, from: usize, distance: usize, time: i64) -> usize {
        const FIRST_STEP: usize = 16;
        let rows = self.0;
        let guess = from.saturating_add(distance).min(rows.len());
        let (mut low, mut high) = (from, rows.len());
        let mut step = FIRST_STEP;
        if guess < rows.len() && rows[guess] <= time {
            low = guess + 1;
            while low + step < rows.len() && rows[low + step] <= time {
                low += step + 1;
                step *= 2;
            }
            high = high.min(low.saturating_add(step));
        } else {
            high = guess;
            while high - low > step && rows[high - step] > time {
                high -= step;
                step *= 2;
            }
            low = low.max(high.saturating_sub(step));
        }
        low + rows[low..high].partition_point(|&t| t <= time)
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

/// A validity bitmap: bit `offset + row`, counted from the lowest bit of the first byte, is set where the row
/// is known. The form of Arrow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Validity<'a> {
    bits: &'a [u8],
    offset: usize,
    rows: usize,
}

impl<'a> Validity<'a> {
    /// A bitmap of `rows` rows that begins at bit `offset`.
    ///
    /// # Errors
    /// [`KernelError::Length`] when there are fewer bits.
    pub fn new(bits: &'a [u8], offset: usize, rows: usize) -> Result<Self, KernelError> {
        let got = (bits.len() * 8).saturating_sub(offset);
        if got < rows {
            return Err(KernelError::Length { column: "validity", want: rows, got });
        }
        Ok(Self { bits, offset, rows })
    }

    /// Whether a row is known.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn is_known(self, row: usize) -> bool {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let bit = self.offset + row;
        self.bits[bit / 8] >> (bit % 8) & 1 == 1
    }

    /// Copies a column to `out` with NaN where a row is null: the form that kernels read. What lies under a
    /// null is not looked at.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ.
    pub fn mask(self, values: &[f64], out: &mut [f64]) -> Result<(), KernelError> {
        KernelError::check_length("value", self.rows, values.len())?;
        KernelError::check_length("out", self.rows, out.len())?;
        for (row, (&value, out)) in values.iter().zip(out).enumerate() {
            *out = if self.is_known(row) { value } else { f64::NAN };
        }
        Ok(())
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
    fn bits_count_from_the_lowest_and_from_the_offset() {
        let validity = Validity::new(&[0b1010_0000, 0b0000_0101], 4, 7).unwrap();
        let known: Vec<bool> = (0..7).map(|row| validity.is_known(row)).collect();
        assert_eq!(known, [false, true, false, true, true, false, true]);
        let mut out = [0.0; 7];
        validity.mask(&[5.0; 7], &mut out).unwrap();
        assert_eq!(out.map(f64::is_nan), [true, false, true, false, false, true, false]);
        let short = Validity::new(&[0xff], 4, 5);
        assert_eq!(short, Err(KernelError::Length { column: "validity", want: 5, got: 4 }));
        assert!(validity.mask(&[5.0; 6], &mut out).is_err());
    }

    #[test]
    fn key_out_of_range_is_named_with_its_row() {
        assert_eq!(Keys::new(&[0, 2, 1], 2), Err(KernelError::KeyRange { row: 1, key: 2, count: 2 }));
        assert!(Keys::new(&[], 0).is_ok());
    }

    proptest! {
        #[test]
        fn first_above_equals_linear_search(
            mut times in prop::collection::vec(-90i64..90, 0..140), time in -95i64..95, from in 0usize..140,
            distance in prop_oneof![0usize..150, Just(usize::MAX)],
        ) {
            times.sort_unstable();
            let from = from.min(times.len());
            let wanted = (from..times.len()).find(|&row| times[row] > time).unwrap_or(times.len());
            prop_assert_eq!(Times::new(&times).unwrap().first_above_near(from, distance, time), wanted);
        }
    }
}
