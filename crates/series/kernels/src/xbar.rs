//! Bars by time: open, high, low, close, volume, count and VWAP of each bucket.

use crate::lanes::{self, BLOCK_ROWS};
use crate::vwap::Vwap;
use crate::{KernelError, Times};

/// One bar: the trades of `[start, start + width)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Start of the bucket: the time floored to a multiple of the width. Where that lies before `i64::MIN`,
    /// it is `i64::MIN`.
    pub start: i64,
    /// First price that is not null, else NaN.
    pub open: f64,
    /// Highest price, NaN when all are null.
    pub high: f64,
    /// Lowest price, NaN when all are null.
    pub low: f64,
    /// Last price that is not null, else NaN.
    pub close: f64,
    /// Sum of the sizes that are not null.
    pub volume: f64,
    /// Rows whose price is not null.
    pub count: u64,
    /// Size-weighted mean price over the rows where neither is null; NaN without weight.
    pub vwap: f64,
}

/// The bar that is being filled; it may go on in the next chunk.
#[derive(Debug, Clone, Copy)]
struct Filling {
    start: i64,
    /// Last time that still belongs here.
    end: i64,
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    volume: f64,
    count: u64,
    vwap: Vwap,
}

/// Groups trades into bars of one width. Feed chunks in time order, then [`finish`](Self::finish).
///
/// A bucket that has rows has a bar, even when all its prices are null (count 0); a bucket without rows has
/// none: gaps stay gaps.
#[derive(Debug, Clone)]
pub struct Xbar {
    width: i64,
    filling: Option<Filling>,
    last_time: i64,
}

impl Xbar {
    /// Bars of `width`, in the unit of the time column.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless the width is above 0.
    pub fn new(width: i64) -> Result<Self, KernelError> {
        if width <= 0 {
            let (name, wanted) = ("width", "more than 0");
            return Err(KernelError::Parameter { name, value: width.to_string(), wanted });
        }
        Ok(Self { width, filling: None, last_time: i64::MIN })
    }

    /// Takes one chunk and hands every bar that is complete to `emit`, in time order.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ, [`KernelError::ChunkOrder`] when the chunk begins
    /// before the last one ended; nothing is taken then.
    pub fn feed(
        &mut self,
        times: Times<'_>,
        prices: &[f64],
        sizes: &[f64],
        mut emit: impl FnMut(Bar),
    ) -> Result<(), KernelError> {
        let rows = times.as_slice();
        KernelError::check_length("price", rows.len(), prices.len())?;
        KernelError::check_length("size", rows.len(), sizes.len())?;
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(()) };
        if first < self.last_time {
            return Err(KernelError::ChunkOrder { before: self.last_time, time: first });
        }
        self.last_time = last;
        let mut row = 0;
        while row < rows.len() {
            let mut bar = match self.filling.take() {
                Some(bar) if rows[row] <= bar.end => bar,
                done => {
                    done.map(Filling::bar).into_iter().for_each(&mut emit);
                    Filling::begin(rows[row], self.width)
                }
            };
            let next = times.first_above(row, bar.end);
            bar.absorb(&prices[row..next], &sizes[row..next]);
            self.filling = Some(bar);
            row = next;
        }
        Ok(())
    }

    /// The last bar, if there was any row.
    pub fn finish(self) -> Option<Bar> {
        self.filling.map(Filling::bar)
    }
}

impl Filling {
    fn begin(time: i64, width: i64) -> Self {
        let offset = time.rem_euclid(width);
        Self {
            start: time.saturating_sub(offset),
            end: time.saturating_add(width - 1 - offset),
            open: f64::NAN,
            high: f64::NEG_INFINITY,
            low: f64::INFINITY,
            close: f64::NAN,
            volume: 0.0,
            count: 0,
            vwap: Vwap::default(),
        }
    }

    fn absorb(&mut self, prices: &[f64], sizes: &[f64]) {
        let mut known = prices.iter().copied().filter(|price| !price.is_nan());
        if self.open.is_nan() {
            self.open = known.clone().next().unwrap_or(f64::NAN);
        }
        self.close = known.next_back().unwrap_or(self.close);
        for (prices, sizes) in prices.chunks(BLOCK_ROWS).zip(sizes.chunks(BLOCK_ROWS)) {
            let (low, high) = lanes::extremes(prices);
            self.low = lanes::lower(self.low, low);
            self.high = lanes::higher(self.high, high);
            self.count += lanes::count(prices);
            self.volume += lanes::sum(sizes);
            self.vwap.absorb(prices, sizes);
        }
    }

    fn bar(self) -> Bar {
        let known = |value| if self.count == 0 { f64::NAN } else { value };
        Bar {
            start: self.start,
            open: self.open,
            high: known(self.high),
            low: known(self.low),
            close: self.close,
            volume: self.volume,
            count: self.count,
            vwap: self.vwap.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, magnitude, null_or_value, sorted_times};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn bars(times: &[i64], prices: &[f64], sizes: &[f64], width: i64, cut: usize) -> Vec<Bar> {
        let mut bars = Vec::new();
        let mut xbar = Xbar::new(width).unwrap();
        for range in [0..cut, cut..times.len()] {
            let chunk = Times::new(&times[range.clone()]).unwrap();
            xbar.feed(chunk, &prices[range.clone()], &sizes[range], |bar| bars.push(bar)).unwrap();
        }
        bars.extend(xbar.finish());
        bars
    }

    /// Row by row, through a map of buckets.
    fn check_against_naive(times: &[i64], prices: &[f64], sizes: &[f64], width: i64, got: &[Bar]) {
        let mut buckets: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (row, time) in times.iter().enumerate() {
            buckets.entry(time.div_euclid(width) * width).or_default().push(row);
        }
        assert_eq!(
            got.iter().map(|bar| bar.start).collect::<Vec<_>>(),
            Vec::from_iter(buckets.keys().copied())
        );
        for (bar, rows) in got.iter().zip(buckets.values()) {
            let known: Vec<f64> = rows.iter().map(|&row| prices[row]).filter(|p| !p.is_nan()).collect();
            let volume: Vec<f64> = rows.iter().map(|&row| sizes[row]).filter(|s| !s.is_nan()).collect();
            let both = || rows.iter().filter(|&&row| !prices[row].is_nan() && !sizes[row].is_nan());
            let value: f64 = both().map(|&row| prices[row] * sizes[row]).sum();
            let weight: f64 = both().map(|&row| sizes[row]).sum();
            assert_eq!(bar.count, known.len() as u64);
            let nan = f64::NAN;
            assert_close(bar.open, known.first().copied().unwrap_or(nan), 0.0);
            assert_close(bar.close, known.last().copied().unwrap_or(nan), 0.0);
            assert_close(bar.high, known.iter().copied().reduce(f64::max).unwrap_or(nan), 0.0);
            assert_close(bar.low, known.iter().copied().reduce(f64::min).unwrap_or(nan), 0.0);
            assert_close(bar.volume, volume.iter().sum(), magnitude(&volume));
            let wanted = if weight == 0.0 { nan } else { value / weight };
            assert_close(bar.vwap, wanted, magnitude(&known));
        }
    }

    proptest! {
        #[test]
        fn equals_the_naive_grouping_cut_anywhere(
            times in sorted_times(60), cells in prop::collection::vec((null_or_value(), 0u8..4), 60),
            width in 1i64..12, cut in 0usize..60,
        ) {
            let prices: Vec<f64> = cells.iter().take(times.len()).map(|cell| cell.0).collect();
            let size = |code| if code == 3 { f64::NAN } else { f64::from(code) };
            let sizes: Vec<f64> = cells.iter().take(times.len()).map(|cell| size(cell.1)).collect();
            let got = bars(&times, &prices, &sizes, width, cut.min(times.len()));
            check_against_naive(&times, &prices, &sizes, width, &got);
        }
    }

    #[test]
    fn a_bar_of_many_blocks_equals_the_row_loop() {
        let times: Vec<i64> = (-2000..7000).collect();
        let cell =
            |time: &i64, every: i64| if time % every == 0 { f64::NAN } else { (time * 37 % 1009) as f64 };
        let prices: Vec<f64> = times.iter().map(|time| cell(time, 11)).collect();
        let sizes: Vec<f64> = times.iter().map(|time| cell(time, 7).abs()).collect();
        for cut in [0, 1, 3333] {
            check_against_naive(&times, &prices, &sizes, 5000, &bars(&times, &prices, &sizes, 5000, cut));
        }
    }

    #[test]
    fn minus_one_and_one_do_not_share_a_bar() {
        let got = bars(&[-1, 1], &[5.0, 6.0], &[1.0, 1.0], 10, 0);
        assert_eq!(got.iter().map(|bar| bar.start).collect::<Vec<_>>(), [-10, 0]);
    }

    #[test]
    fn nothing_gives_no_bar_and_one_row_gives_one() {
        assert!(bars(&[], &[], &[], 10, 0).is_empty());
        let [bar] = bars(&[7], &[5.0], &[3.0], 10, 1)[..] else { panic!("one bar") };
        assert_eq!((bar.open, bar.high, bar.low, bar.close, bar.vwap), (5.0, 5.0, 5.0, 5.0, 5.0));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let got = bars(&[i64::MIN, i64::MIN + 1, i64::MAX], &[1.0; 3], &[1.0; 3], 1000, 0);
        assert_eq!(got.iter().map(|bar| bar.count).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(got[0].start, i64::MIN);
    }

    #[test]
    fn refuses_what_it_cannot_answer() {
        assert!(matches!(Xbar::new(0), Err(KernelError::Parameter { .. })));
        let mut xbar = Xbar::new(5).unwrap();
        let times = [10, 11];
        let short = xbar.feed(Times::new(&times).unwrap(), &[1.0], &[1.0, 1.0], |_| ());
        assert_eq!(short, Err(KernelError::Length { column: "price", want: 2, got: 1 }));
        xbar.feed(Times::new(&times).unwrap(), &[1.0; 2], &[1.0; 2], |_| ()).unwrap();
        let early = xbar.feed(Times::new(&[9]).unwrap(), &[1.0], &[1.0], |_| ());
        assert_eq!(early, Err(KernelError::ChunkOrder { before: 11, time: 9 }));
    }
}
