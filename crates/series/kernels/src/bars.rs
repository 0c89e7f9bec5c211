//! What a bar is made of, and how two parts of one become whole.

use crate::number::sealed::Lanes;
use crate::simd::Simd;
use crate::{Number, Vwap};

/// Rows that are fetched ahead of those that are added up.
const AHEAD_ROWS: usize = 512;
/// Numbers in a cache line.
const LINE_ROWS: usize = 8;

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

/// What some rows of a bar add up to: the partial result that is merged over chunks, threads and partitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarState {
    /// First price that is not null, else NaN.
    pub open: f64,
    /// Highest price; minus infinity for none.
    pub high: f64,
    /// Lowest price; infinity for none.
    pub low: f64,
    /// Last price that is not null, else NaN.
    pub close: f64,
    /// Sum of the sizes that are not null.
    pub volume: f64,
    /// Rows whose price is not null.
    pub count: u64,
    /// Sums over the rows where neither price nor size is null.
    pub vwap: Vwap,
}

impl BarState {
    /// Of no rows.
    pub const EMPTY: Self = Self {
        open: f64::NAN,
        high: f64::NEG_INFINITY,
        low: f64::INFINITY,
        close: f64::NAN,
        volume: 0.0,
        count: 0,
        vwap: Vwap { value: 0.0, weight: 0.0 },
    };

    /// Adds the rows of a part that comes later in time, or later in row order at the same time.
    pub fn merge_later(&mut self, later: &Self) {
        if self.count == 0 {
            self.open = later.open;
        }
        if later.count > 0 {
            self.close = later.close;
        }
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.volume += later.volume;
        self.count += later.count;
        self.vwap.merge(later.vwap);
    }

    /// The bar that begins at `start`.
    #[must_use]
    pub fn bar(&self, start: i64) -> Bar {
        let known = |value| if self.count == 0 { f64::NAN } else { value };
        Bar {
            start,
            open: self.open,
            high: known(self.high),
            low: known(self.low),
            close: self.close,
            volume: self.volume,
            count: self.count,
            vwap: self.vwap.mean(),
        }
    }

    /// Adds rows that come later; the columns are of one length. Returns the first and the last of them whose
    /// price is not null.
    #[inline(always)]
    pub(crate) fn absorb<S: Simd, N: Number>(
        &mut self,
        simd: S,
        prices: &[f64],
        sizes: &[N],
    ) -> Option<(usize, usize)> {
        let sums = Sums::of(simd, prices, sizes);
        self.volume += sums.volume;
        self.vwap.merge(sums.vwap);
        if sums.count == 0 {
            return None;
        }
        let first = prices.iter().position(|price| !price.is_nan()).expect("a price is known");
        let last = prices.iter().rposition(|price| !price.is_nan()).expect("a price is known");
        if self.count == 0 {
            self.open = prices[first];
        }
        self.close = prices[last];
        self.high = self.high.max(sums.high);
        self.low = self.low.min(sums.low);
        self.count += sums.count;
        Some((first, last))
    }
}

/// Everything of a bar that does not depend on the order of rows.
pub(crate) struct Sums {
    low: f64,
    high: f64,
    count: u64,
    volume: f64,
    pub(crate) vwap: Vwap,
}

/// The same in lanes.
struct Wide<S: Simd> {
    low: S::Vector,
    high: S::Vector,
    volume: S::Vector,
    value: S::Vector,
    weight: S::Vector,
}

impl<S: Simd> Wide<S> {
    #[inline(always)]
    fn empty(simd: S) -> Self {
        let zero = simd.splat(0.0);
        let (low, high) = (simd.splat(f64::INFINITY), simd.splat(f64::NEG_INFINITY));
        Self { low, high, volume: zero, value: zero, weight: zero }
    }

    /// Adds one vector of rows; returns how many prices are known.
    #[inline(always)]
    fn add(&mut self, simd: S, price: S::Vector, size: S::Vector) -> u64 {
        let (is_priced, is_sized) = (simd.known(price), simd.known(size));
        let is_both = simd.both(is_priced, is_sized);
        self.low = simd.lower(self.low, price);
        self.high = simd.higher(self.high, price);
        self.volume = simd.add(self.volume, simd.keep(is_sized, size));
        self.value = simd.add(self.value, simd.keep(is_both, simd.mul(price, size)));
        self.weight = simd.add(self.weight, simd.keep(is_both, size));
        u64::from(simd.bits(is_priced).count_ones())
    }

    #[inline(always)]
    fn merge(self, simd: S, other: Self) -> Self {
        Self {
            low: simd.lower(self.low, other.low),
            high: simd.higher(self.high, other.high),
            volume: simd.add(self.volume, other.volume),
            value: simd.add(self.value, other.value),
            weight: simd.add(self.weight, other.weight),
        }
    }
}

impl Sums {
    #[inline(always)]
    pub(crate) fn of<S: Simd, N: Number>(simd: S, prices: &[f64], sizes: &[N]) -> Self {
        let mut sums = Self::wide(simd, prices, sizes);
        let tail = prices.len() - prices.len() % S::LANES;
        for (&price, &size) in prices[tail..].iter().zip(&sizes[tail..]) {
            let is_priced = !price.is_nan();
            if is_priced {
                sums.low = sums.low.min(price);
                sums.high = sums.high.max(price);
                sums.count += 1;
            }
            if !Lanes::is_null(size) {
                let size = size.as_f64();
                sums.volume += size;
                if is_priced {
                    sums.vwap.merge(Vwap { value: price * size, weight: size });
                }
            }
        }
        sums
    }

    /// The whole vectors, in two sets of accumulators so that additions do not wait for each other.
    #[inline(always)]
    fn wide<S: Simd, N: Number>(simd: S, prices: &[f64], sizes: &[N]) -> Self {
        if prices.len() < S::LANES {
            let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
            return Self { low, high, count: 0, volume: 0.0, vwap: Vwap::default() };
        }
        let lanes = S::LANES;
        let (mut even, mut odd) = (Wide::empty(simd), Wide::empty(simd));
        let (mut count, mut odd_count) = (0, 0);
        let mut price_chunks = prices.chunks_exact(2 * lanes);
        let mut size_chunks = sizes.chunks_exact(2 * lanes);
        for (price, size) in (&mut price_chunks).zip(&mut size_chunks) {
            for line in (0..2 * lanes).step_by(LINE_ROWS) {
                simd.prefetch(price, line + AHEAD_ROWS);
                simd.prefetch(size, line + AHEAD_ROWS);
            }
            count += even.add(simd, simd.load(price), N::load(simd, size));
            odd_count += odd.add(simd, simd.load(&price[lanes..]), N::load(simd, &size[lanes..]));
        }
        let (price, size) = (price_chunks.remainder(), size_chunks.remainder());
        if price.len() >= lanes {
            count += even.add(simd, simd.load(price), N::load(simd, size));
        }
        let all = even.merge(simd, odd);
        Self {
            low: simd.lowest(all.low),
            high: simd.highest(all.high),
            count: count + odd_count,
            volume: simd.sum(all.volume),
            vwap: Vwap { value: simd.sum(all.value), weight: simd.sum(all.weight) },
        }
    }
}

/// A bar with its key, by whichever kernel made it: what seams between parts are merged by.
pub trait Partial {
    /// Start of the bucket, then the key.
    fn place(&self) -> (i64, u32);
    /// Adds the same bar of a later part.
    fn merge_later(&mut self, later: &Self);
}

/// Bars of several parts of one table, in order; equal places at the seams are already one.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts<T>(Vec<Part<T>>);

#[derive(Debug, Clone, PartialEq)]
struct Part<T> {
    rows: Vec<T>,
    /// Rows before this were merged into the part before.
    begin: usize,
}

impl<T> Parts<T> {
    /// Room for the bars of `parts` parts; used again, it allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// All bars, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|part| &part.rows[part.begin..])
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|part| part.rows.len() - part.begin).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties as many parts as there will be and hands them out.
    pub(crate) fn begin(&mut self, parts: usize) -> Vec<&mut Vec<T>> {
        self.0.resize_with(parts, || Part { rows: Vec::new(), begin: 0 });
        let empty = |part: &mut Part<T>| {
            part.rows.clear();
            part.begin = 0;
        };
        self.0.iter_mut().for_each(empty);
        self.0.iter_mut().map(|part| &mut part.rows).collect()
    }
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Partial + Copy> Parts<T> {
    /// Makes one bar of those that a cut divided. Bars of a part are ordered by place; a part begins where the
    /// one before it ends, so only the last bucket of what lies before can go on.
    pub(crate) fn merge_seams(&mut self) {
        for later in 1..self.0.len() {
            let (before, after) = self.0.split_at_mut(later);
            let Some(left) = before.iter_mut().rev().find(|part| part.rows.len() > part.begin) else {
                continue;
            };
            let right = &mut after[0];
            let Some(start) = right.rows.first().map(|row| row.place().0) else { continue };
            let from = left.rows.partition_point(|row| row.place().0 < start).max(left.begin);
            let to = right.rows.partition_point(|row| row.place().0 == start);
            if from == left.rows.len() {
                continue;
            }
            let mut earlier = left.rows.split_off(from);
            for row in &right.rows[..to] {
                match earlier.binary_search_by_key(&row.place(), Partial::place) {
                    Ok(found) => earlier[found].merge_later(row),
                    Err(place) => earlier.insert(place, *row),
                }
            }
            left.rows.append(&mut earlier);
            right.begin = to;
        }
    }
}
