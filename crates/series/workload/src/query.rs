//! One query: which rows, which kernel, and a digest of the result.
//!
//! The digest is an integer sum over the bits of all results, so that no part of the work can be left out by
//! the compiler and no order of rounding matters.

use std::ops::Range;
use std::time::{Duration, Instant};

use planish_arena::{Arena, ArenaError};
use planish_kernels::{AsofJoin, Bar, Ema, KeyedEma, KeyedVwap, TimeBar, WindowColumns, WindowJoin, Xbar};
use planish_sys::process::thread_cpu_time;

use crate::data::{Buffers, Data, GAP_NS, SYMBOLS, WINDOW_NS, order_key};
use crate::error::WorkloadError;
use crate::options::Query;
use crate::rng::Rng;

/// Width of a bar: about 1000 trades.
const BAR_NS: i64 = 1000 * GAP_NS;
/// How far back an ASOF join looks for the quotes of rare symbols.
const ASOF_REACH_NS: i64 = 2000 * GAP_NS;
/// Span of the moving average, in trades of a symbol.
const EMA_SPAN: f64 = 20.0;
/// Of this many keys, one is of an order that does not exist.
const ABSENT_EVERY: usize = 16;

/// What one query did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) digest: u64,
}

/// What one thread needs to run queries again and again without allocating.
pub(crate) struct Session<'a> {
    data: Data<'a>,
    buffers: Buffers<'a>,
    averages: KeyedEma,
    vwaps: KeyedVwap,
    window_join: WindowJoin,
    asof_join: AsofJoin,
}

impl<'a> Session<'a> {
    pub(crate) fn new(arena: &'a Arena, data: Data<'a>) -> Result<Self, WorkloadError> {
        let buffers: Result<_, ArenaError> = Buffers::new(arena, data.layout.query_rows);
        Ok(Self {
            data,
            buffers: buffers?,
            averages: KeyedEma::new(Ema::with_span(EMA_SPAN)?, SYMBOLS),
            vwaps: KeyedVwap::new(SYMBOLS),
            window_join: WindowJoin::new(-WINDOW_NS, WINDOW_NS)?.with_window_rows(data.window_rows_max),
            asof_join: AsofJoin::new(SYMBOLS),
        })
    }

    /// Ops of each query.
    pub(crate) fn query_rows(&self) -> u64 {
        self.data.layout.query_rows as u64
    }

    /// Runs one query on rows that `rng` chooses. Choosing is not timed.
    pub(crate) fn run(&mut self, query: Query, rng: &mut Rng) -> Result<Done, WorkloadError> {
        let rows = if query == Query::Lookup { self.draw_keys(rng) } else { self.draw_trades(rng) };
        let wall = Instant::now();
        let cpu = thread_cpu_time();
        let digest = match query {
            Query::Xbar => self.xbar(rows),
            Query::Ema => self.ema(rows),
            Query::Window => self.window(rows),
            Query::Asof => self.asof(rows),
            Query::Vwap => self.vwap(rows),
            Query::Lookup => self.lookup(),
        }?;
        let cpu = thread_cpu_time().saturating_sub(cpu);
        Ok(Done { wall: wall.elapsed(), cpu, digest })
    }

    fn draw_trades(&self, rng: &mut Rng) -> Range<usize> {
        let layout = self.data.layout;
        let start = rng.below(layout.ticks - layout.query_rows + 1);
        start..start + layout.query_rows
    }

    fn draw_keys(&mut self, rng: &mut Rng) -> Range<usize> {
        let orders = self.data.layout.orders();
        for (row, key) in self.buffers.keys.iter_mut().enumerate() {
            let absent = if row % ABSENT_EVERY == 0 { orders } else { 0 };
            *key = order_key((rng.below(orders) + absent) as u64);
        }
        0..self.buffers.keys.len()
    }

    /// The quotes whose time lies between `before` the first and `after` the last of the trades.
    fn quotes_near(&self, rows: &Range<usize>, before: i64, after: i64) -> Range<usize> {
        let trades = self.data.trades.times.as_slice();
        let quotes = self.data.quotes.times.as_slice();
        let first = trades[rows.start] - before;
        let last = trades[rows.end - 1] + after;
        quotes.partition_point(|&time| time < first)..quotes.partition_point(|&time| time <= last)
    }

    fn xbar(&mut self, rows: Range<usize>) -> Result<u64, WorkloadError> {
        let trades = self.data.trades;
        let mut digest = 0u64;
        let mut add = |bar: TimeBar| digest = digest.wrapping_add(digest_bar(&bar));
        let mut xbar = Xbar::new(BAR_NS)?;
        xbar.feed(
            trades.times.slice(rows.clone()),
            &trades.prices[rows.clone()],
            &trades.sizes[rows],
            &mut add,
        )?;
        xbar.finish().into_iter().for_each(&mut add);
        Ok(digest)
    }

    fn ema(&mut self, rows: Range<usize>) -> Result<u64, WorkloadError> {
        let trades = self.data.trades;
        self.averages.clear();
        let out = &mut *self.buffers.values;
        self.averages.feed(trades.symbols.slice(rows.clone()), &trades.prices[rows], out)?;
        Ok(digest_values(out))
    }

    fn window(&mut self, rows: Range<usize>) -> Result<u64, WorkloadError> {
        let near = self.quotes_near(&rows, WINDOW_NS, WINDOW_NS);
        let quotes = self.data.quotes;
        let Buffers { sums, lows, highs, counts, .. } = &mut self.buffers;
        let left = self.data.trades.times.slice(rows);
        let out = WindowColumns {
            sum: Some(sums),
            min: Some(lows),
            max: Some(highs),
            count: Some(counts),
            ..WindowColumns::default()
        };
        self.window_join.run(left, quotes.times.slice(near.clone()), &quotes.bids[near], out)?;
        let digests = [sums, lows, highs].map(|column| digest_values(column));
        Ok(digests.into_iter().chain(counts.iter().copied()).fold(0, u64::wrapping_add))
    }

    fn asof(&mut self, rows: Range<usize>) -> Result<u64, WorkloadError> {
        let near = self.quotes_near(&rows, ASOF_REACH_NS, 0);
        let (trades, quotes) = (self.data.trades, self.data.quotes);
        let left = (trades.times.slice(rows.clone()), trades.symbols.slice(rows));
        let right = (quotes.times.slice(near.clone()), quotes.symbols.slice(near));
        let out = &mut *self.buffers.rows;
        self.asof_join.run(left, right, out)?;
        Ok(out.iter().map(|&row| u64::from(row)).sum())
    }

    fn vwap(&mut self, rows: Range<usize>) -> Result<u64, WorkloadError> {
        let trades = self.data.trades;
        self.vwaps.clear();
        let keys = trades.symbols.slice(rows.clone());
        self.vwaps.feed(keys, &trades.prices[rows.clone()], &trades.sizes[rows])?;
        Ok(self.vwaps.groups().map(|vwap| vwap.mean().to_bits()).fold(0, u64::wrapping_add))
    }

    fn lookup(&mut self) -> Result<u64, WorkloadError> {
        let out = &mut *self.buffers.values;
        let found = self.data.orders.join(self.buffers.keys, out)?;
        Ok(digest_values(out).wrapping_add(found))
    }
}

fn digest_values(values: &[f64]) -> u64 {
    values.iter().map(|value| value.to_bits()).fold(0, u64::wrapping_add)
}

fn digest_bar(bar: &TimeBar) -> u64 {
    let Bar { start, open, high, low, close, volume, count, vwap } = bar.bar();
    digest_values(&[open, high, low, close, volume, vwap]).wrapping_add(count).wrapping_add(start as u64)
}
