//! Volume-weighted average price.

use crate::bars::Sums;
use crate::crew::parts_of;
use crate::number::sealed::Lanes;
use crate::simd::{Isa, Kernel, Simd};
use crate::{Crew, KernelError, Keys, Number};

/// Rows that are looked over for nulls at once; they stay in the first cache for the loop after it.
const BLOCK_ROWS: usize = 1024;
/// Rows that are fetched ahead: the look for nulls then finds the next block in the cache.
const AHEAD_ROWS: usize = BLOCK_ROWS;

/// Tables that neighbouring rows take turns with, so that a row need not wait for the store of the one before
/// it when both have one key.
const TABLES: usize = 4;

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
    pub fn of<N: Number>(isa: Isa, prices: &[f64], sizes: &[N]) -> Result<Self, KernelError> {
        KernelError::check_length("size", prices.len(), sizes.len())?;
        Ok(isa.run(Whole { prices, sizes }))
    }

    /// Adds the rows of another part.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        self.value += other.value;
        self.weight += other.weight;
    }

    /// The mean price.
    #[must_use]
    pub fn mean(self) -> f64 {
        if self.weight == 0.0 { f64::NAN } else { self.value / self.weight }
    }
}

struct Whole<'a, N> {
    prices: &'a [f64],
    sizes: &'a [N],
}

impl<N: Number> Kernel for Whole<'_, N> {
    type Output = Vwap;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vwap {
        Sums::of(simd, self.prices, self.sizes).vwap
    }
}

/// The VWAP of each key; chunks may come in any order.
#[derive(Debug, Clone)]
pub struct KeyedVwap {
    isa: Isa,
    /// `[value, weight]` of key `k` in table `t` at `k * TABLES + t`.
    sums: Vec<[f64; 2]>,
}

impl KeyedVwap {
    /// Of `key_count` keys, without rows.
    #[must_use]
    pub fn new(key_count: usize) -> Self {
        Self { isa: Isa::best(), sums: vec![[0.0; 2]; key_count * TABLES] }
    }

    /// Uses these instructions.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.sums.fill([0.0; 2]);
    }

    /// Adds each row to its key.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ or the keys are not counted as in [`new`](Self::new).
    pub fn feed<N: Number>(
        &mut self,
        keys: Keys<'_>,
        prices: &[f64],
        sizes: &[N],
    ) -> Result<(), KernelError> {
        let rows = keys.as_slice();
        KernelError::check_length("price", rows.len(), prices.len())?;
        KernelError::check_length("size", rows.len(), sizes.len())?;
        KernelError::check_length("key table", self.sums.len() / TABLES, keys.count())?;
        self.isa.run(Feed { sums: &mut self.sums, keys: rows, prices, sizes });
        Ok(())
    }

    /// Adds the rows of another part.
    ///
    /// # Errors
    /// [`KernelError::Length`] when it has another number of keys.
    pub fn merge(&mut self, other: &Self) -> Result<(), KernelError> {
        KernelError::check_length("key table", self.sums.len(), other.sums.len())?;
        for (mine, theirs) in self.sums.iter_mut().zip(&other.sums) {
            *mine = [mine[0] + theirs[0], mine[1] + theirs[1]];
        }
        Ok(())
    }

    /// Adds all rows of a table, shared out among a crew.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn run<N: Number>(
        &mut self,
        crew: &mut Crew,
        keys: Keys<'_>,
        prices: &[f64],
        sizes: &[N],
    ) -> Result<(), KernelError> {
        let rows = keys.as_slice().len();
        KernelError::check_length("price", rows, prices.len())?;
        KernelError::check_length("size", rows, sizes.len())?;
        let empty = Self { sums: vec![[0.0; 2]; self.sums.len()], ..*self };
        let parts = crew.map(parts_of(rows, crew.threads()).collect(), |range| {
            let mut part = empty.clone();
            part.feed(keys.slice(range.clone()), &prices[range.clone()], &sizes[range])?;
            Ok(part)
        });
        parts.into_iter().try_for_each(|part: Result<Self, KernelError>| self.merge(&part?))
    }

    /// The VWAP of each key, in key order.
    pub fn groups(&self) -> impl Iterator<Item = Vwap> {
        let (groups, _) = self.sums.as_chunks::<TABLES>();
        groups.iter().map(|[a, b, c, d]| Vwap {
            value: (a[0] + b[0]) + (c[0] + d[0]),
            weight: (a[1] + b[1]) + (c[1] + d[1]),
        })
    }
}

struct Feed<'a, N> {
    sums: &'a mut [[f64; 2]],
    keys: &'a [u32],
    prices: &'a [f64],
    sizes: &'a [N],
}

impl<N: Number> Kernel for Feed<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (groups, _) = self.sums.as_chunks_mut::<TABLES>();
        let blocks = self.keys.chunks(BLOCK_ROWS).zip(self.prices.chunks(BLOCK_ROWS));
        for ((keys, prices), sizes) in blocks.zip(self.sizes.chunks(BLOCK_ROWS)) {
            if f64::any_null(simd, prices) || N::any_null(simd, sizes) {
                for ((&key, &price), &size) in keys.iter().zip(prices).zip(sizes) {
                    if !price.is_nan() && !Lanes::is_null(size) {
                        add(simd, &mut groups[key as usize][0], price, size.as_f64());
                    }
                }
                continue;
            }
            let (keys, last_keys) = keys.as_chunks::<TABLES>();
            let (prices, last_prices) = prices.as_chunks::<TABLES>();
            let (sizes, last_sizes) = sizes.as_chunks::<TABLES>();
            for (step, ((keys_of, prices_of), sizes_of)) in keys.iter().zip(prices).zip(sizes).enumerate() {
                simd.prefetch(prices, step + AHEAD_ROWS / TABLES);
                simd.prefetch(sizes, step + AHEAD_ROWS / TABLES);
                simd.prefetch(keys, step + AHEAD_ROWS / TABLES);
                for turn in 0..TABLES {
                    debug_assert!((keys_of[turn] as usize) < groups.len());
                    // SAFETY: `Keys` found every key below its count, and `feed` found as many groups.
                    let group = unsafe { groups.get_unchecked_mut(keys_of[turn] as usize) };
                    add(simd, &mut group[turn], prices_of[turn], sizes_of[turn].as_f64());
                }
            }
            for ((&key, &price), &size) in last_keys.iter().zip(last_prices).zip(last_sizes) {
                add(simd, &mut groups[key as usize][0], price, size.as_f64());
            }
        }
    }
}

#[inline(always)]
fn add<S: Simd>(simd: S, sums: &mut [f64; 2], price: f64, size: f64) {
    let sum = simd.pair_add(simd.pair_load(sums), simd.pair(price * size, size));
    simd.pair_store(sum, sums);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, crews, magnitude, null_or_value};
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
        fn equals_the_row_loop(
            cells in prop::collection::vec((0u32..3, null_or_value(), 0u8..9), 0..70), nulls in any::<bool>(),
            cut in 0usize..70,
        ) {
            let keys: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
            let price = |value: f64| if value.is_nan() && !nulls { 2.5 } else { value };
            let prices: Vec<f64> = cells.iter().map(|cell| price(cell.1)).collect();
            let size = |code| if code == 8 && nulls { f64::NAN } else { f64::from(code) };
            let sizes: Vec<f64> = cells.iter().map(|cell| size(cell.2)).collect();
            let rows = || prices.iter().copied().zip(sizes.iter().copied());
            let scale = magnitude(&prices);
            let wanted = |key: usize| {
                naive(rows().zip(&keys).filter(|row| *row.1 as usize == key).map(|row| row.0))
            };
            let all = Keys::new(&keys, 3).unwrap();
            for isa in Isa::all() {
                assert_close(Vwap::of(isa, &prices, &sizes).unwrap().mean(), naive(rows()), scale);
                let mut keyed = KeyedVwap::new(3).with_isa(isa);
                for _again in 0..2 {
                    keyed.clear();
                    let cut = cut.min(keys.len());
                    for range in [cut..keys.len(), 0..cut] {
                        keyed.feed(all.slice(range.clone()), &prices[range.clone()], &sizes[range]).unwrap();
                    }
                    for (key, group) in keyed.groups().enumerate() {
                        assert_close(group.mean(), wanted(key), scale);
                    }
                }
            }
            for crew in &mut crews() {
                let mut keyed = KeyedVwap::new(3);
                keyed.run(crew, all, &prices, &sizes).unwrap();
                for (key, group) in keyed.groups().enumerate() {
                    assert_close(group.mean(), wanted(key), scale);
                }
            }
        }
    }

    #[test]
    fn no_row_and_no_weight_are_null() {
        let vwap = |prices: &[f64], sizes: &[f64]| Vwap::of(Isa::best(), prices, sizes);
        assert!(vwap(&[], &[]).unwrap().mean().is_nan());
        assert!(vwap(&[3.0], &[0.0]).unwrap().mean().is_nan());
        assert_eq!(vwap(&[3.0, f64::NAN], &[2.0, 5.0]).unwrap().mean(), 3.0);
        assert_eq!(vwap(&[3.0], &[]), Err(KernelError::Length { column: "size", want: 1, got: 0 }));
    }
}
