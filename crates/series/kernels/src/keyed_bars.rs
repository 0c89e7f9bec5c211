//! Bars by symbol, and by symbol and time.
//!
//! Each key has one cache line that its trades add to; when a bucket of time ends, the lines of the keys that
//! traded are emptied in key order. A block without nulls takes a loop in which a row costs three stores; the
//! others take one that looks at every cell.

use crate::bars::Partial;
use crate::crew::parts_of;
use crate::number::sealed::Lanes;
use crate::simd::{Isa, Kernel, Simd};
use crate::xbar::{bucket, check_width};
use crate::{Bar, BarState, Crew, KernelError, Keys, Number, Parts, Times, Vwap};

/// Rows that are looked over for nulls at once; they stay in the first cache for the loop after it.
const BLOCK_ROWS: usize = 1024;
/// Rows that are fetched ahead: the look for nulls then finds the next block in the cache.
const AHEAD_ROWS: usize = BLOCK_ROWS;
/// Numbers in a cache line.
const LINE_ROWS: usize = 8;

/// A bar by symbol, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeyBar {
    /// Start of the bucket; `i64::MIN` where bars are by symbol alone.
    pub start: i64,
    /// The symbol.
    pub key: u32,
    /// What the rows add up to.
    pub state: BarState,
}

impl KeyBar {
    /// The finished bar.
    #[must_use]
    pub fn bar(&self) -> Bar {
        self.state.bar(self.start)
    }
}

impl Partial for KeyBar {
    fn place(&self) -> (i64, u32) {
        (self.start, self.key)
    }

    fn merge_later(&mut self, later: &Self) {
        self.state.merge_later(&later.state);
    }
}

/// What the rows of one key add up to, in pairs that are added at once.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    /// Highest price, and highest price with its sign turned.
    extremes: [f64; 2],
    /// Sizes of rows whose price is known, and how many those rows are.
    sums: [f64; 2],
    /// Price times size, and the last price.
    value_close: [f64; 2],
    open: f64,
    /// Sizes of rows whose price is null.
    unpriced: f64,
}

impl Line {
    const EMPTY: Self = Self {
        extremes: [f64::NEG_INFINITY; 2],
        sums: [0.0; 2],
        value_close: [0.0, f64::NAN],
        open: f64::NAN,
        unpriced: 0.0,
    };

    fn state(&self) -> BarState {
        let [high, low] = self.extremes;
        let [weight, count] = self.sums;
        let [value, close] = self.value_close;
        let vwap = Vwap { value, weight };
        let volume = weight + self.unpriced;
        BarState { open: self.open, high, low: -low, close, volume, count: count as u64, vwap }
    }
}

/// Groups trades into bars by key, and by time too where a width is given. Feed chunks in time order, then
/// [`finish`](Self::finish). Bars come in time order and, within a bucket, in key order. A key that has rows in
/// a bucket has a bar, even when all its prices are null.
#[derive(Debug, Clone)]
pub struct KeyedBars {
    isa: Isa,
    width: Option<i64>,
    lines: Vec<Line>,
    /// Keys that have rows in this bucket, in the order in which they came.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// First and last time of the bucket that is being filled.
    bucket: Option<(i64, i64)>,
    last_time: i64,
}

impl KeyedBars {
    /// Bars of `key_count` keys; by time too where there is a width, in the unit of the time column.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless the width is above 0.
    pub fn new(key_count: usize, width: Option<i64>) -> Result<Self, KernelError> {
        width.map_or(Ok(()), check_width)?;
        Ok(Self {
            isa: Isa::best(),
            width,
            lines: vec![Line::EMPTY; key_count],
            touched: Vec::with_capacity(key_count),
            is_touched: vec![false; key_count],
            bucket: None,
            last_time: i64::MIN,
        })
    }

    /// Uses these instructions.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// Takes one chunk and hands every bar that is complete to `emit`.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ or the keys are not counted as in [`new`](Self::new),
    /// [`KernelError::ChunkOrder`] when the chunk begins before the last one ended; nothing is taken then.
    pub fn feed<N: Number>(
        &mut self,
        times: Times<'_>,
        keys: Keys<'_>,
        prices: &[f64],
        sizes: &[N],
        emit: impl FnMut(KeyBar),
    ) -> Result<(), KernelError> {
        let rows = times.as_slice();
        KernelError::check_length("key", rows.len(), keys.as_slice().len())?;
        KernelError::check_length("price", rows.len(), prices.len())?;
        KernelError::check_length("size", rows.len(), sizes.len())?;
        KernelError::check_length("key table", self.lines.len(), keys.count())?;
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(()) };
        if first < self.last_time {
            return Err(KernelError::ChunkOrder { before: self.last_time, time: first });
        }
        self.last_time = last;
        self.isa.run(Feed { bars: self, times, keys: keys.as_slice(), prices, sizes, emit });
        Ok(())
    }

    /// Hands out the bars of the last bucket; the next chunk begins anew.
    pub fn finish(&mut self, mut emit: impl FnMut(KeyBar)) {
        self.flush(&mut emit);
        self.last_time = i64::MIN;
    }

    /// All bars of a table, its rows shared out among as many of these as the crew has threads; each of them
    /// must be of one kind and empty.
    ///
    /// # Errors
    /// As [`feed`](Self::feed); [`KernelError::Length`] too unless there is one table a thread.
    pub fn run<N: Number>(
        tables: &mut [Self],
        crew: &mut Crew,
        (times, keys): (Times<'_>, Keys<'_>),
        prices: &[f64],
        sizes: &[N],
        out: &mut Parts<KeyBar>,
    ) -> Result<(), KernelError> {
        let rows = times.as_slice().len();
        KernelError::check_length("key", rows, keys.as_slice().len())?;
        KernelError::check_length("price", rows, prices.len())?;
        KernelError::check_length("size", rows, sizes.len())?;
        let threads = crew.threads();
        KernelError::check_length("tables", threads, tables.len())?;
        let parts = parts_of(rows, threads).zip(out.begin(threads)).zip(tables).collect();
        let done = crew.map(parts, |((range, bars), table): ((std::ops::Range<usize>, _), &mut Self)| {
            let bars: &mut Vec<KeyBar> = bars;
            let (prices, sizes) = (&prices[range.clone()], &sizes[range.clone()]);
            table.feed(times.slice(range.clone()), keys.slice(range), prices, sizes, |bar| bars.push(bar))?;
            table.finish(|bar| bars.push(bar));
            Ok(())
        });
        done.into_iter().collect::<Result<(), KernelError>>()?;
        out.merge_seams();
        Ok(())
    }

    fn flush(&mut self, emit: &mut impl FnMut(KeyBar)) {
        let Some((start, _)) = self.bucket.take() else { return };
        let Self { lines, touched, is_touched, .. } = self;
        if touched.len() * 8 > is_touched.len() {
            // So many that a look at every key is cheaper than a sort.
            touched.clear();
            touched.extend((0..).zip(&*is_touched).filter(|key| *key.1).map(|key| key.0));
        } else {
            touched.sort_unstable();
        }
        for key in touched.drain(..) {
            let line = &mut lines[key as usize];
            emit(KeyBar { start, key, state: line.state() });
            *line = Line::EMPTY;
            is_touched[key as usize] = false;
        }
    }

    /// Rows of one bucket without a null. Keys are below the number of lines, which [`feed`](Self::feed) checks.
    #[inline(always)]
    fn add_known<S: Simd, N: Number>(&mut self, simd: S, keys: &[u32], prices: &[f64], sizes: &[N]) {
        // As slices, so that a store to a line does not make the processor read the table's place again.
        let Self { lines, touched, is_touched, .. } = self;
        let (lines, is_touched) = (lines.as_mut_slice(), is_touched.as_mut_slice());
        for (row, ((&key, &price), &size)) in keys.iter().zip(prices).zip(sizes).enumerate() {
            if row % LINE_ROWS == 0 {
                simd.prefetch(prices, row + AHEAD_ROWS);
                simd.prefetch(sizes, row + AHEAD_ROWS);
                simd.prefetch(keys, row + AHEAD_ROWS);
            }
            let size = size.as_f64();
            debug_assert!((key as usize) < lines.len());
            // SAFETY: `Keys` found every key below its count, and `feed` found as many lines.
            let line = unsafe { lines.get_unchecked_mut(key as usize) };
            // As bits: a count is never -0, and floats take two comparisons.
            if line.sums[1].to_bits() == 0 {
                line.open = price;
                if !std::mem::replace(&mut is_touched[key as usize], true) {
                    touched.push(key);
                }
            }
            let extremes = simd.pair_higher(simd.pair_load(&line.extremes), simd.pair(price, -price));
            simd.pair_store(extremes, &mut line.extremes);
            let sums = simd.pair_add(simd.pair_load(&line.sums), simd.pair(size, 1.0));
            simd.pair_store(sums, &mut line.sums);
            let value = line.value_close[0] + price * size;
            simd.pair_store(simd.pair(value, price), &mut line.value_close);
        }
    }

    /// Rows of one bucket, any of which may be null.
    fn add_any<N: Number>(&mut self, keys: &[u32], prices: &[f64], sizes: &[N]) {
        for ((&key, &price), &size) in keys.iter().zip(prices).zip(sizes) {
            let line = &mut self.lines[key as usize];
            if !std::mem::replace(&mut self.is_touched[key as usize], true) {
                self.touched.push(key);
            }
            let known_size = if Lanes::is_null(size) { 0.0 } else { size.as_f64() };
            if price.is_nan() {
                line.unpriced += known_size;
                continue;
            }
            if line.sums[1] == 0.0 {
                line.open = price;
            }
            line.extremes = [line.extremes[0].max(price), line.extremes[1].max(-price)];
            line.sums = [line.sums[0] + known_size, line.sums[1] + 1.0];
            let value = if Lanes::is_null(size) { 0.0 } else { price * known_size };
            line.value_close = [line.value_close[0] + value, price];
        }
    }
}

struct Feed<'a, N, F> {
    bars: &'a mut KeyedBars,
    times: Times<'a>,
    keys: &'a [u32],
    prices: &'a [f64],
    sizes: &'a [N],
    emit: F,
}

impl<N: Number, F: FnMut(KeyBar)> Kernel for Feed<'_, N, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let rows = self.times.as_slice();
        let (mut row, mut expected) = (0, 1);
        while row < rows.len() {
            let end = match self.bars.bucket {
                Some((_, end)) if rows[row] <= end => end,
                _ => {
                    self.bars.flush(&mut self.emit);
                    let bucket =
                        self.bars.width.map_or((i64::MIN, i64::MAX), |width| bucket(rows[row], width));
                    self.bars.bucket = Some(bucket);
                    bucket.1
                }
            };
            let next =
                if end == i64::MAX { rows.len() } else { self.times.first_above_near(row, expected, end) };
            expected = next - row;
            let mut block = row;
            while block < next {
                let stop = next.min(block + BLOCK_ROWS);
                let (keys, prices, sizes) =
                    (&self.keys[block..stop], &self.prices[block..stop], &self.sizes[block..stop]);
                if f64::any_null(simd, prices) || N::any_null(simd, sizes) {
                    self.bars.add_any(keys, prices, sizes);
                } else {
                    self.bars.add_known(simd, keys, prices, sizes);
                }
                block = stop;
            }
            row = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_bar, crews, null_or_value, sorted_times};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check_against_naive(
        times: &[i64],
        keys: &[u32],
        prices: &[f64],
        sizes: &[f64],
        width: Option<i64>,
        got: &[KeyBar],
    ) {
        let mut buckets: BTreeMap<(i64, u32), Vec<usize>> = BTreeMap::new();
        for (row, time) in times.iter().enumerate() {
            let start = width.map_or(i64::MIN, |width| time.div_euclid(width) * width);
            buckets.entry((start, keys[row])).or_default().push(row);
        }
        assert_eq!(
            got.iter().map(Partial::place).collect::<Vec<_>>(),
            Vec::from_iter(buckets.keys().copied())
        );
        for (bar, rows) in got.iter().zip(buckets.values()) {
            check_bar(&bar.bar(), rows, prices, sizes);
        }
    }

    /// Rows of a table: key, price, size code.
    fn columns(cells: &[(u32, f64, u8)]) -> (Vec<u32>, Vec<f64>, Vec<f64>) {
        let size = |code| if code == 7 { f64::NAN } else { f64::from(code) };
        let keys = cells.iter().map(|cell| cell.0).collect();
        (keys, cells.iter().map(|cell| cell.1).collect(), cells.iter().map(|cell| size(cell.2)).collect())
    }

    proptest! {
        #[test]
        fn equals_the_naive_grouping_cut_anywhere(
            times in sorted_times(80),
            cells in prop::collection::vec((0u32..40, null_or_value(), 0u8..8), 80),
            key_count in prop_oneof![Just(40usize), Just(3000)],
            width in prop::option::of(prop_oneof![1i64..12, 30i64..9000]), cut in 0usize..80,
        ) {
            let (keys, prices, sizes) = columns(&cells[..times.len()]);
            let cut = cut.min(times.len());
            let (all_times, all_keys) = (Times::new(&times).unwrap(), Keys::new(&keys, key_count).unwrap());
            for isa in Isa::all() {
                let mut bars = KeyedBars::new(key_count, width).unwrap().with_isa(isa);
                for _again in 0..2 {
                    let mut got = Vec::new();
                    for range in [0..cut, cut..times.len()] {
                        let (times, keys) = (all_times.slice(range.clone()), all_keys.slice(range.clone()));
                        let (prices, sizes) = (&prices[range.clone()], &sizes[range]);
                        bars.feed(times, keys, prices, sizes, |bar| got.push(bar)).unwrap();
                    }
                    bars.finish(|bar| got.push(bar));
                    check_against_naive(&times, &keys, &prices, &sizes, width, &got);
                }
            }
            for crew in &mut crews() {
                let mut tables = vec![KeyedBars::new(key_count, width).unwrap(); crew.threads()];
                let mut out = Parts::new();
                KeyedBars::run(&mut tables, crew, (all_times, all_keys), &prices, &sizes, &mut out).unwrap();
                let got: Vec<KeyBar> = out.iter().copied().collect();
                check_against_naive(&times, &keys, &prices, &sizes, width, &got);
            }
        }
    }

    #[test]
    fn a_null_in_one_block_does_not_touch_the_others() {
        let rows = 3 * BLOCK_ROWS + 17;
        let times: Vec<i64> = (0..rows as i64).map(|row| row / 3 - 500).collect();
        let keys: Vec<u32> = (0..rows as u32).map(|row| row * 7 % 5).collect();
        let price = |row: usize| {
            if row / BLOCK_ROWS == 1 && row.is_multiple_of(9) { f64::NAN } else { (row % 101) as f64 }
        };
        let prices: Vec<f64> = (0..rows).map(price).collect();
        let sizes: Vec<f64> = (0..rows).map(|row| (row % 13) as f64).collect();
        for isa in Isa::all() {
            let mut bars = KeyedBars::new(5, Some(250)).unwrap().with_isa(isa);
            let mut got = Vec::new();
            let (column, table) = (Times::new(&times).unwrap(), Keys::new(&keys, 5).unwrap());
            bars.feed(column, table, &prices, &sizes, |bar| got.push(bar)).unwrap();
            bars.finish(|bar| got.push(bar));
            check_against_naive(&times, &keys, &prices, &sizes, Some(250), &got);
        }
    }

    #[test]
    fn refuses_keys_of_another_table() {
        let mut bars = KeyedBars::new(3, None).unwrap();
        let wrong = bars.feed(Times::new(&[1]).unwrap(), Keys::new(&[0], 2).unwrap(), &[1.0], &[1.0], |_| ());
        assert_eq!(wrong, Err(KernelError::Length { column: "key table", want: 3, got: 2 }));
        assert!(matches!(KeyedBars::new(3, Some(-5)), Err(KernelError::Parameter { name: "width", .. })));
    }
}
