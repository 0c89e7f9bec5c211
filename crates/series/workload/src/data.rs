//! The generated data: trades, quotes and an order table, all in one arena.
//!
//! ```text
//!   arena   | trades: time symbol price size | quotes: time symbol bid | orders: hash table | buffers |
//! ```
//!
//! Trades and quotes of 100 symbols come in time order with ties, half of them at negative times; few symbols
//! trade much and many little; prices walk at random; one price in 1024 is null.

use planish_arena::{Arena, ArenaError, LINE_BYTES};
use planish_kernels::{Bucket, Keys, LookupTable, Times};

use crate::error::WorkloadError;
use crate::options::{Options, Query};
use crate::rng::{Rng, mix};

/// Symbols that are traded.
pub(crate) const SYMBOLS: usize = 100;
/// Ops of one query: rows of the driving table. Large enough to hide a clock call, small enough that a slice
/// of a third of a second holds hundreds of rounds.
const QUERY_ROWS_MAX: usize = 16 << 10;
/// Fewer rows than this say nothing about memory.
const ROWS_MIN: usize = 4096;
/// More threads than Linux has CPUs for measure nothing; and the standard library aborts the process when memory
/// for a thread's stack cannot be mapped, which begins at some 16,000 (vm.max_map_count).
const THREADS_MAX: usize = 8192;
/// Mean distance of two trades, and of two quotes, in nanoseconds.
pub(crate) const GAP_NS: i64 = 1000;
/// Reach of the window join to both sides: about 64 quotes in all.
pub(crate) const WINDOW_NS: i64 = 32 * GAP_NS;

/// Bytes of one trade and one quote together.
const TICK_BYTES: usize = 8 + 4 + 8 + 8 + 8 + 4 + 8;
/// Bytes of one row of the buffers that each thread has; see [`Buffers`].
const BUFFER_ROW_BYTES: usize = 8 + 8 + 4 + 4 * 8;
/// Orders in each bucket of their table on average: half load.
const ORDERS_PER_BUCKET: usize = Bucket::ROWS / 2;

/// How a working set is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Rows of the trades, and of the quotes.
    pub(crate) ticks: usize,
    /// Buckets of the order table; 0 when it is not asked.
    pub(crate) buckets: usize,
    /// Ops of each query.
    pub(crate) query_rows: usize,
}

impl Layout {
    /// Divides the working set: half to the order table where the lookup is asked along with others.
    pub(crate) fn of(options: &Options) -> Result<Self, WorkloadError> {
        if options.queries.is_empty() {
            return Err(WorkloadError::NoQuery);
        }
        let threads = options.threads.get();
        if threads > THREADS_MAX {
            return Err(WorkloadError::Threads { threads, most: THREADS_MAX });
        }
        let has_lookup = options.queries.contains(&Query::Lookup);
        let has_ticks = options.queries.iter().any(|&query| query != Query::Lookup);
        let buffers = |rows: usize| threads * rows * BUFFER_ROW_BYTES;
        let slices = 8 + 7 * threads;
        let query_rows =
            if options.bytes / 8 > buffers(QUERY_ROWS_MAX) { QUERY_ROWS_MAX } else { ROWS_MIN / 4 };
        let overhead_bytes = buffers(query_rows) + slices * LINE_BYTES;
        let shares = usize::from(has_lookup) + usize::from(has_ticks);
        let share_bytes = options.bytes.saturating_sub(overhead_bytes) / shares;
        let ticks = if has_ticks { share_bytes / TICK_BYTES } else { 0 };
        let buckets = if has_lookup { share_bytes / size_of::<Bucket>() } else { 0 };
        let is_enough = |rows: usize, wanted: bool| !wanted || rows >= ROWS_MIN;
        if is_enough(ticks, has_ticks) && is_enough(buckets, has_lookup) {
            return Ok(Self { ticks, buckets, query_rows });
        }
        let least_bytes = overhead_bytes + shares * ROWS_MIN * TICK_BYTES.max(size_of::<Bucket>());
        Err(WorkloadError::TooSmall { bytes: options.bytes, least_bytes })
    }

    /// Orders in the table.
    pub(crate) fn orders(&self) -> usize {
        self.buckets * ORDERS_PER_BUCKET
    }
}

/// Trades, in time order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trades<'a> {
    pub(crate) times: Times<'a>,
    pub(crate) symbols: Keys<'a>,
    pub(crate) prices: &'a [f64],
    pub(crate) sizes: &'a [f64],
}

/// Quotes, in time order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quotes<'a> {
    pub(crate) times: Times<'a>,
    pub(crate) symbols: Keys<'a>,
    pub(crate) bids: &'a [f64],
}

/// All data of a run; read only once generated, and shared by the threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) layout: Layout,
    pub(crate) trades: Trades<'a>,
    pub(crate) quotes: Quotes<'a>,
    pub(crate) orders: LookupTable<'a>,
    /// Most quotes in the window of any trade: the scratch that a window join needs.
    pub(crate) window_rows_max: usize,
}

impl<'a> Data<'a> {
    /// Fills the arena from the seed.
    pub(crate) fn generate(arena: &'a Arena, layout: Layout, seed: u64) -> Result<Self, WorkloadError> {
        let trades = generate_trades(arena, layout.ticks, Rng::split(seed, 1))?;
        let quotes = generate_quotes(arena, layout.ticks, Rng::split(seed, 2))?;
        let buckets = arena.alloc_filled(layout.buckets.max(1), Bucket::EMPTY)?;
        let rows = (0..layout.orders() as u64).map(|order| (order_key(order), order_price(order)));
        let orders = LookupTable::build(buckets, rows)?;
        let window_rows_max = window_rows_max(trades.times.as_slice(), quotes.times.as_slice());
        Ok(Self { layout, trades, quotes, orders, window_rows_max })
    }
}

/// The number of an order, which says nothing about when it came. Never the reserved key: `mix` is a
/// bijection, and what it turns into `u64::MAX` is far above any count of orders.
#[inline]
pub(crate) fn order_key(order: u64) -> u64 {
    mix(order + 1)
}

fn order_price(order: u64) -> f64 {
    (mix(order ^ 0x5bd1) >> 44) as f64 / 64.0
}

/// Times that never descend: one in 16 ties with the one before, the others are half to one and a half gaps
/// later. Half of them are negative.
fn next_time(time: i64, rng: &mut Rng) -> i64 {
    let draw = rng.next();
    let is_tie = draw >> 60 == 0;
    let step = GAP_NS / 2 + (((draw & 0xffff_ffff) as i64 * GAP_NS) >> 32);
    if is_tie { time } else { time + step }
}

fn first_time(rows: usize) -> i64 {
    -(rows as i64 / 2) * GAP_NS
}

/// A symbol; the square of an even draw makes low ones frequent.
fn next_symbol(rng: &mut Rng) -> u32 {
    let draw = rng.next() >> 32;
    ((((draw * draw) >> 32) * SYMBOLS as u64) >> 32) as u32
}

/// A random walk of each symbol, in cents.
struct Walks {
    cents: [i64; SYMBOLS],
}

impl Walks {
    fn new() -> Self {
        Self { cents: std::array::from_fn(|symbol| 5_000 + 731 * symbol as i64) }
    }

    /// The next price of `symbol`: at most 3 cents away, never below 1 dollar; one in 1024 is null.
    fn next(&mut self, symbol: u32, rng: &mut Rng) -> f64 {
        let draw = rng.next();
        let cents = &mut self.cents[symbol as usize];
        *cents = (*cents + (draw % 7) as i64 - 3).max(100);
        if draw >> 54 == 0 { f64::NAN } else { *cents as f64 / 100.0 }
    }
}

fn generate_trades(arena: &Arena, rows: usize, mut rng: Rng) -> Result<Trades<'_>, WorkloadError> {
    let times = arena.alloc_slice::<i64>(rows)?;
    let symbols = arena.alloc_slice::<u32>(rows)?;
    let prices = arena.alloc_slice::<f64>(rows)?;
    let sizes = arena.alloc_slice::<f64>(rows)?;
    let mut walks = Walks::new();
    let mut time = first_time(rows);
    for row in 0..rows {
        time = next_time(time, &mut rng);
        times[row] = time;
        symbols[row] = next_symbol(&mut rng);
        prices[row] = walks.next(symbols[row], &mut rng);
        sizes[row] = (1 + rng.below(100)) as f64;
    }
    Ok(Trades { times: Times::new(times)?, symbols: Keys::new(symbols, SYMBOLS)?, prices, sizes })
}

fn generate_quotes(arena: &Arena, rows: usize, mut rng: Rng) -> Result<Quotes<'_>, WorkloadError> {
    let times = arena.alloc_slice::<i64>(rows)?;
    let symbols = arena.alloc_slice::<u32>(rows)?;
    let bids = arena.alloc_slice::<f64>(rows)?;
    let mut walks = Walks::new();
    let mut time = first_time(rows);
    for row in 0..rows {
        time = next_time(time, &mut rng);
        times[row] = time;
        symbols[row] = next_symbol(&mut rng);
        bids[row] = walks.next(symbols[row], &mut rng) - 0.01;
    }
    Ok(Quotes { times: Times::new(times)?, symbols: Keys::new(symbols, SYMBOLS)?, bids })
}

/// Most rows of `right` within [`WINDOW_NS`] of any time of `left`.
fn window_rows_max(left: &[i64], right: &[i64]) -> usize {
    let (mut low, mut high, mut most) = (0, 0, 0);
    for &time in left {
        while low < right.len() && right[low] < time - WINDOW_NS {
            low += 1;
        }
        while high < right.len() && right[high] <= time + WINDOW_NS {
            high += 1;
        }
        most = most.max(high.saturating_sub(low));
    }
    most
}

/// What a thread writes results to, in the arena as well: results are part of the working set.
#[derive(Debug)]
pub(crate) struct Buffers<'a> {
    /// Averages and looked-up prices.
    pub(crate) values: &'a mut [f64],
    /// Keys to look up.
    pub(crate) keys: &'a mut [u64],
    /// Partner rows.
    pub(crate) rows: &'a mut [u32],
    /// Of each window: sum, lowest and highest value, and how many.
    pub(crate) sums: &'a mut [f64],
    pub(crate) lows: &'a mut [f64],
    pub(crate) highs: &'a mut [f64],
    pub(crate) counts: &'a mut [u64],
}

impl<'a> Buffers<'a> {
    pub(crate) fn new(arena: &'a Arena, query_rows: usize) -> Result<Self, ArenaError> {
        Ok(Self {
            values: arena.alloc_slice(query_rows)?,
            keys: arena.alloc_slice(query_rows)?,
            rows: arena.alloc_slice(query_rows)?,
            sums: arena.alloc_slice(query_rows)?,
            lows: arena.alloc_slice(query_rows)?,
            highs: arena.alloc_slice(query_rows)?,
            counts: arena.alloc_slice(query_rows)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planish_arena::{Page, Preference};
    use std::num::NonZeroUsize;

    fn options(bytes: usize, queries: &[Query], threads: usize) -> Options {
        let threads = NonZeroUsize::new(threads).unwrap();
        Options { bytes, queries: queries.to_vec(), threads, ..Options::default() }
    }

    #[test]
    fn a_working_set_holds_what_it_is_divided_into() {
        let cases: [&[Query]; 3] = [&Query::ALL, &[Query::Lookup], &[Query::Xbar, Query::Asof]];
        for queries in cases {
            for (bytes, threads) in [(2 << 20, 1), (64 << 20, 3), (100_000_001, 2)] {
                let options = options(bytes, queries, threads);
                let layout = Layout::of(&options).unwrap();
                let arena =
                    Arena::builder().page(Preference::From(Page::Base)).capacity(bytes).build().unwrap();
                Data::generate(&arena, layout, 1).unwrap();
                for _ in 0..threads {
                    Buffers::new(&arena, layout.query_rows).unwrap();
                }
                let used = arena.used_bytes();
                assert!(used <= bytes && used > bytes - bytes / 50, "{used} of {bytes}, {layout:?}");
            }
        }
    }

    #[test]
    fn too_small_a_set_names_what_is_enough() {
        let error = Layout::of(&options(1000, &Query::ALL, 2)).unwrap_err();
        let WorkloadError::TooSmall { bytes: 1000, least_bytes } = error else { panic!("{error}") };
        assert!(Layout::of(&options(least_bytes, &Query::ALL, 2)).is_ok());
        assert!(matches!(Layout::of(&options(1 << 30, &[], 1)), Err(WorkloadError::NoQuery)));
        for threads in [THREADS_MAX + 1, usize::MAX] {
            let error = Layout::of(&options(usize::MAX, &Query::ALL, threads)).unwrap_err();
            assert!(matches!(error, WorkloadError::Threads { most: THREADS_MAX, .. }), "{error}");
        }
    }

    #[test]
    fn one_seed_gives_one_set_of_data() {
        let layout = Layout { ticks: 20_000, buckets: 1_250, query_rows: 1024 };
        let arena = Arena::builder().page(Preference::From(Page::Base)).build().unwrap();
        let [a, b, c] = [7, 7, 8].map(|seed| Data::generate(&arena, layout, seed).unwrap());
        let bits = |data: &Data| data.trades.prices.iter().map(|price| price.to_bits()).collect::<Vec<_>>();
        assert_eq!(
            (bits(&a), a.trades.times, a.quotes.symbols),
            (bits(&b), b.trades.times, b.quotes.symbols)
        );
        assert_ne!(a.trades.times, c.trades.times);
    }

    #[test]
    fn data_have_ties_nulls_negative_times_and_every_symbol() {
        let layout = Layout { ticks: 100_000, buckets: 1_250, query_rows: 1024 };
        let arena = Arena::builder().page(Preference::From(Page::Base)).build().unwrap();
        let data = Data::generate(&arena, layout, 1).unwrap();
        let times = data.trades.times.as_slice();
        assert!(times.windows(2).any(|pair| pair[0] == pair[1]));
        assert!(times[0] < 0 && times[99_999] > 0);
        let nulls = data.trades.prices.iter().filter(|price| price.is_nan()).count();
        assert!((50..200).contains(&nulls), "{nulls}");
        let mut symbols = data.trades.symbols.as_slice().to_vec();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), SYMBOLS);
        assert!((32..256).contains(&data.window_rows_max), "{}", data.window_rows_max);
        assert_eq!(data.orders.get(order_key(7)), Some(order_price(7)));
        assert_eq!(data.orders.get(order_key(2_500)), None);
    }
}
