//! Volume-weighted average price.

use crate::lanes::{self, BLOCK_ROWS};
use crate::{KernelError, Keys};

/// A VWAP in the making: two sums, which may be merged in any order.
///
/// A row counts when neither its price nor its size is null. Without weight, or with weights that add up to
/// 0, the mean is NaN.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Vwap {
    /// Sum of price times size.
    pub value: f64,
    /// Sum of sizes.
    pub weight: f64,
}

impl Vwap {
    /// The VWAP of two columns.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ.
    pub fn of(prices: &[f64], sizes: &[f64]) -> Result<Self, KernelError> {
        KernelError::check_length("size", prices.len(), sizes.len())?;
        let mut vwap = Self::default();
        vwap.absorb(prices, sizes);
        Ok(vwap)
    }

    /// Adds the rows of two columns, which are of one length.
    pub(crate) fn absorb(&mut self, prices: &[f64], sizes: &[f64]) {
        for (prices, sizes) in prices.chunks(BLOCK_ROWS).zip(sizes.chunks(BLOCK_ROWS)) {
            self.value += lanes::sum_of_known(prices, sizes, |price, size| price * size);
            self.weight += lanes::sum_of_known(prices, sizes, |_, size| size);
        }
    }

    /// Adds one row.
    #[inline]
    pub fn add(&mut self, price: f64, size: f64) {
        let is_known = !price.is_nan() & !size.is_nan();
        self.value += if is_known { price * size } else { 0.0 };
        self.weight += if is_known { size } else { 0.0 };
    }

    /// Adds the rows of another part.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        self.value += other.value;
        self.weight += other.weight;
    }

    /// The mean price.
    pub fn mean(self) -> f64 {
        if self.weight == 0.0 { f64::NAN } else { self.value / self.weight }
    }
}

/// Adds each row to the VWAP of its key.
///
/// `groups` is indexed by key and carried from chunk to chunk; start it with [`Vwap::default`].
///
/// # Errors
/// [`KernelError::Length`] when the columns differ or `groups` does not have one entry a key.
pub fn vwap_by_key(
    keys: Keys<'_>,
    prices: &[f64],
    sizes: &[f64],
    groups: &mut [Vwap],
) -> Result<(), KernelError> {
    let rows = keys.as_slice();
    KernelError::check_length("price", rows.len(), prices.len())?;
    KernelError::check_length("size", rows.len(), sizes.len())?;
    KernelError::check_length("groups", keys.count(), groups.len())?;
    for ((&key, &price), &size) in rows.iter().zip(prices).zip(sizes) {
        groups[key as usize].add(price, size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, magnitude, null_or_value};
    use proptest::prelude::*;

    fn naive(rows: impl Iterator<Item = (f64, f64)>) -> f64 {
        let (mut value, mut weight) = (0.0, 0.0);
        for (price, size) in rows.filter(|(price, size)| !price.is_nan() && !size.is_nan()) {
            value += price * size;
            weight += size;
        }
        if weight == 0.0 { f64::NAN } else { value / weight }
    }

    proptest! {
        #[test]
        fn equals_the_row_loop(cells in prop::collection::vec((0u32..3, null_or_value(), 0u8..9), 0..50)) {
            let keys: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
            let prices: Vec<f64> = cells.iter().map(|cell| cell.1).collect();
            let size = |code| if code == 8 { f64::NAN } else { f64::from(code) };
            let sizes: Vec<f64> = cells.iter().map(|cell| size(cell.2)).collect();
            let rows = || prices.iter().copied().zip(sizes.iter().copied());
            let scale = magnitude(&prices);
            assert_close(Vwap::of(&prices, &sizes).unwrap().mean(), naive(rows()), scale);
            let mut groups = [Vwap::default(); 3];
            vwap_by_key(Keys::new(&keys, 3).unwrap(), &prices, &sizes, &mut groups).unwrap();
            for (key, group) in groups.iter().enumerate() {
                let mine = rows().zip(&keys).filter(|row| *row.1 as usize == key).map(|row| row.0);
                assert_close(group.mean(), naive(mine), scale);
            }
        }
    }

    #[test]
    fn no_row_and_no_weight_are_null() {
        assert!(Vwap::of(&[], &[]).unwrap().mean().is_nan());
        assert!(Vwap::of(&[3.0], &[0.0]).unwrap().mean().is_nan());
        assert_eq!(Vwap::of(&[3.0, f64::NAN], &[2.0, 5.0]).unwrap().mean(), 3.0);
        let wrong = Vwap::of(&[3.0], &[]);
        assert_eq!(wrong, Err(KernelError::Length { column: "size", want: 1, got: 0 }));
    }
}
