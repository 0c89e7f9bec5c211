//! Bars by time: open, high, low, close, volume, count and VWAP of each bucket.

use crate::bars::Partial;
use crate::crew::parts_of;
use crate::simd::{Isa, Kernel, Simd};
use crate::{BarState, Crew, KernelError, Number, Parts, Times};

/// How far around the expected end of a bar its times are fetched beforehand, in cache lines.
const AHEAD_LINES: usize = 12;
/// Times in a cache line.
const LINE_ROWS: usize = 8;

/// A bar by time, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeBar {
    /// Start of the bucket.
    pub start: i64,
    /// Time of the first price that is not null; `i64::MAX` for none.
    pub open_time: i64,
    /// Time of the last price that is not null; `i64::MIN` for none.
    pub close_time: i64,
    /// What the rows add up to.
    pub state: BarState,
}

impl TimeBar {
    /// Adds another part of the same bucket, whichever comes first in time: for partitions that lie side by
    /// side, such as groups of symbols. Of two opens or closes at the same time, `self` counts as the earlier.
    pub fn merge(&mut self, other: &Self) {
        let (open, close) = (self.state.open, self.state.close);
        self.state.merge_later(&other.state);
        let opens_here = self.open_time <= other.open_time;
        self.state.open = if opens_here { open } else { other.state.open };
        let closes_here = self.close_time > other.close_time;
        self.state.close = if closes_here { close } else { other.state.close };
        self.open_time = self.open_time.min(other.open_time);
        self.close_time = self.close_time.max(other.close_time);
    }

    /// The finished bar.
    #[must_use]
    pub fn bar(&self) -> crate::Bar {
        self.state.bar(self.start)
    }
}

impl Partial for TimeBar {
    fn place(&self) -> (i64, u32) {
        (self.start, 0)
    }

    fn merge_later(&mut self, later: &Self) {
        self.merge(later);
    }
}

/// Checks the width of a bucket.
pub(crate) fn check_width(width: i64) -> Result<(), KernelError> {
    KernelError::check_parameter("width", width, width > 0, "more than 0")
}

/// First and last time of the bucket that `time` lies in. The first is floored; both stop at the ends of
/// `i64`.
pub(crate) fn bucket(time: i64, width: i64) -> (i64, i64) {
    let offset = time.rem_euclid(width);
    (time.saturating_sub(offset), time.saturating_add(width - 1 - offset))
}

/// Groups trades into bars of one width. Feed chunks in time order, then [`finish`](Self::finish).
///
/// A bucket that has rows has a bar, even when all its prices are null (count 0); a bucket without rows has
/// none: gaps stay gaps, until [`fill_bars`](crate::fill_bars).
#[derive(Debug, Clone)]
pub struct Xbar {
    isa: Isa,
    width: i64,
    /// The bar that may go on in the next chunk, and its last time.
    filling: Option<(TimeBar, i64)>,
    last_time: i64,
}

impl Xbar {
    /// Bars of `width`, in the unit of the time column.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] unless the width is above 0.
    pub fn new(width: i64) -> Result<Self, KernelError> {
        check_width(width)?;
        Ok(Self { isa: Isa::best(), width, filling: None, last_time: i64::MIN })
    }

    /// Uses these instructions.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// Takes one chunk and hands every bar that is complete to `emit`, in time order.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ, [`KernelError::ChunkOrder`] when the chunk begins
    /// before the last one ended; nothing is taken then.
    pub fn feed<N: Number>(
        &mut self,
        times: Times<'_>,
        prices: &[f64],
        sizes: &[N],
        emit: impl FnMut(TimeBar),
    ) -> Result<(), KernelError> {
        let rows = times.as_slice();
        KernelError::check_length("price", rows.len(), prices.len())?;
        KernelError::check_length("size", rows.len(), sizes.len())?;
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(()) };
        if first < self.last_time {
            return Err(KernelError::ChunkOrder { before: self.last_time, time: first });
        }
        self.last_time = last;
        self.isa.run(Feed { bars: self, times, prices, sizes, emit });
        Ok(())
    }

    /// The last bar, if there was any row.
    #[must_use]
    pub fn finish(self) -> Option<TimeBar> {
        self.filling.map(|(bar, _)| bar)
    }

    /// All bars of a table, its rows shared out among a crew.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn run<N: Number>(
        &self,
        crew: &mut Crew,
        times: Times<'_>,
        prices: &[f64],
        sizes: &[N],
        out: &mut Parts<TimeBar>,
    ) -> Result<(), KernelError> {
        let rows = times.as_slice().len();
        KernelError::check_length("price", rows, prices.len())?;
        KernelError::check_length("size", rows, sizes.len())?;
        let threads = crew.threads();
        let parts: Vec<_> = parts_of(rows, threads).zip(out.begin(threads)).collect();
        let done = crew.map(parts, |(range, bars)| {
            let mut part = Self { filling: None, last_time: i64::MIN, ..self.clone() };
            let (prices, sizes) = (&prices[range.clone()], &sizes[range.clone()]);
            part.feed(times.slice(range), prices, sizes, |bar| bars.push(bar))?;
            bars.extend(part.finish());
            Ok(())
        });
        done.into_iter().collect::<Result<(), KernelError>>()?;
        out.merge_seams();
        Ok(())
    }
}

struct Feed<'a, N, F> {
    bars: &'a mut Xbar,
    times: Times<'a>,
    prices: &'a [f64],
    sizes: &'a [N],
    emit: F,
}

impl<N: Number, F: FnMut(TimeBar)> Kernel for Feed<'_, N, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let rows = self.times.as_slice();
        let (mut row, mut expected) = (0, 1);
        while row < rows.len() {
            let (mut bar, end) = match self.bars.filling.take() {
                Some((bar, end)) if rows[row] <= end => (bar, end),
                done => {
                    if let Some((bar, _)) = done {
                        (self.emit)(bar);
                    }
                    let (start, end) = bucket(rows[row], self.bars.width);
                    let (open_time, close_time) = (i64::MAX, i64::MIN);
                    (TimeBar { start, open_time, close_time, state: BarState::EMPTY }, end)
                }
            };
            let next = self.times.first_above_near(row, expected, end);
            expected = next - row;
            fetch_ahead(simd, rows, next + expected);
            let known = bar.state.absorb(simd, &self.prices[row..next], &self.sizes[row..next]);
            if let Some((first, last)) = known {
                bar.open_time = bar.open_time.min(rows[row + first]);
                bar.close_time = rows[row + last];
            }
            self.bars.filling = Some((bar, end));
            row = next;
        }
    }
}

/// Fetches the times where the next bar will probably end, while this one is added up: the search there would
/// otherwise wait for memory at every step.
#[inline(always)]
fn fetch_ahead<S: Simd>(simd: S, times: &[i64], row: usize) {
    if row < times.len() {
        for line in 0..2 * AHEAD_LINES {
            simd.prefetch(times, (row + line * LINE_ROWS).saturating_sub(AHEAD_LINES * LINE_ROWS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bar;
    use crate::testing::{assert_close, crews, each_isa, magnitude, null_or_value, sorted_times};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn bars(isa: Isa, times: &[i64], prices: &[f64], sizes: &[f64], width: i64, cut: usize) -> Vec<Bar> {
        let mut bars = Vec::new();
        let mut xbar = Xbar::new(width).unwrap().with_isa(isa);
        for range in [0..cut, cut..times.len()] {
            let chunk = Times::new(&times[range.clone()]).unwrap();
            xbar.feed(chunk, &prices[range.clone()], &sizes[range], |bar| bars.push(bar.bar())).unwrap();
        }
        bars.extend(xbar.finish().map(|bar| bar.bar()));
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
            crate::testing::check_bar(bar, rows, prices, sizes);
        }
    }

    proptest! {
        #[test]
        fn equals_the_naive_grouping_cut_anywhere(
            times in sorted_times(60), cells in prop::collection::vec((null_or_value(), 0u8..4), 60),
            width in prop_oneof![1i64..12, 30i64..200], cut in 0usize..60,
        ) {
            let prices: Vec<f64> = cells.iter().take(times.len()).map(|cell| cell.0).collect();
            let size = |code| if code == 3 { f64::NAN } else { f64::from(code) };
            let sizes: Vec<f64> = cells.iter().take(times.len()).map(|cell| size(cell.1)).collect();
            for isa in Isa::all() {
                let got = bars(isa, &times, &prices, &sizes, width, cut.min(times.len()));
                check_against_naive(&times, &prices, &sizes, width, &got);
            }
            for crew in &mut crews() {
                let mut out = Parts::new();
                let xbar = Xbar::new(width).unwrap();
                xbar.run(crew, Times::new(&times).unwrap(), &prices, &sizes, &mut out).unwrap();
                let got: Vec<Bar> = out.iter().map(TimeBar::bar).collect();
                check_against_naive(&times, &prices, &sizes, width, &got);
            }
        }

        /// Partitions that lie side by side in time, as those of groups of symbols do.
        #[test]
        fn partitions_of_symbols_merge_in_any_order(
            cells in prop::collection::vec((0usize..3, null_or_value(), 0i64..5), 1..50), width in 2i64..40,
        ) {
            // Times differ, so that which price came first is known.
            let mut parts = vec![(Vec::new(), Vec::new(), Vec::<i64>::new()); 3];
            for (row, &(part, price, size)) in cells.iter().enumerate() {
                parts[part].0.push(row as i64 - 20);
                parts[part].1.push(price);
                parts[part].2.push(size);
            }
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                let mut merged: BTreeMap<i64, TimeBar> = BTreeMap::new();
                for part in order {
                    let (times, prices, sizes) = &parts[part];
                    let mut xbar = Xbar::new(width).unwrap();
                    let mut bars = Vec::new();
                    xbar.feed(Times::new(times).unwrap(), prices, sizes, |bar| bars.push(bar)).unwrap();
                    for bar in bars.into_iter().chain(xbar.finish()) {
                        merged.entry(bar.start).and_modify(|whole| whole.merge(&bar)).or_insert(bar);
                    }
                }
                let times: Vec<i64> = (0..cells.len()).map(|row| row as i64 - 20).collect();
                let prices: Vec<f64> = cells.iter().map(|cell| cell.1).collect();
                let sizes: Vec<f64> = cells.iter().map(|cell| cell.2 as f64).collect();
                let got: Vec<Bar> = merged.values().map(TimeBar::bar).collect();
                check_against_naive(&times, &prices, &sizes, width, &got);
            }
        }
    }

    #[test]
    fn a_bar_of_many_blocks_equals_the_row_loop() {
        let times: Vec<i64> = (-2000..7000).collect();
        let cell =
            |time: &i64, every: i64| if time % every == 0 { f64::NAN } else { (time * 37 % 1009) as f64 };
        let prices: Vec<f64> = times.iter().map(|time| cell(time, 11)).collect();
        let sizes: Vec<f64> = times.iter().map(|time| cell(time, 7).abs()).collect();
        each_isa(|isa| {
            for cut in [0, 1, 3333] {
                let got = bars(isa, &times, &prices, &sizes, 5000, cut);
                check_against_naive(&times, &prices, &sizes, 5000, &got);
            }
        });
    }

    #[test]
    fn whole_sizes_equal_floats() {
        let times: Vec<i64> = (0..1000).collect();
        let prices: Vec<f64> = times.iter().map(|&time| (time % 17) as f64).collect();
        let whole: Vec<i64> = times.iter().map(|&time| time * 1_000_003 - 7).collect();
        let floats: Vec<f64> = whole.iter().map(|&size| size as f64).collect();
        each_isa(|isa| {
            let mut got = Xbar::new(90).unwrap().with_isa(isa);
            let mut bars_of_whole = Vec::new();
            got.feed(Times::new(&times).unwrap(), &prices, &whole, |bar| bars_of_whole.push(bar.bar()))
                .unwrap();
            bars_of_whole.extend(got.finish().map(|bar| bar.bar()));
            assert_eq!(bars_of_whole, bars(isa, &times, &prices, &floats, 90, 0));
        });
    }

    #[test]
    fn minus_one_and_one_do_not_share_a_bar() {
        let got = bars(Isa::best(), &[-1, 1], &[5.0, 6.0], &[1.0, 1.0], 10, 0);
        assert_eq!(got.iter().map(|bar| bar.start).collect::<Vec<_>>(), [-10, 0]);
    }

    #[test]
    fn nothing_gives_no_bar_and_one_row_gives_one() {
        assert!(bars(Isa::best(), &[], &[], &[], 10, 0).is_empty());
        let [bar] = bars(Isa::best(), &[7], &[5.0], &[3.0], 10, 1)[..] else { panic!("one bar") };
        assert_eq!((bar.open, bar.high, bar.low, bar.close, bar.vwap), (5.0, 5.0, 5.0, 5.0, 5.0));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let got = bars(Isa::best(), &[i64::MIN, i64::MIN + 1, i64::MAX], &[1.0; 3], &[1.0; 3], 1000, 0);
        assert_eq!(got.iter().map(|bar| bar.count).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(got[0].start, i64::MIN);
    }

    #[test]
    fn infinities_are_values_and_only_zero_times_infinity_is_none() {
        let got = bars(Isa::best(), &[0, 1], &[f64::INFINITY, 2.0], &[3.0, 1.0], 10, 0);
        assert_eq!((got[0].high, got[0].vwap), (f64::INFINITY, f64::INFINITY));
        let got = bars(Isa::best(), &[0, 1], &[f64::INFINITY, 2.0], &[0.0, 1.0], 10, 0);
        assert!(got[0].vwap.is_nan());
        assert_close(got[0].volume, 1.0, magnitude(&[1.0]));
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
