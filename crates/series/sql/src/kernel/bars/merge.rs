//! Parts of a table, shared out among threads, and their bars as one.

use std::borrow::Cow;

use planish_kernels::{
    BarState, Crew, KernelError, KeyBar, KeyedBars, KeyedVwap, Keys, Number, TimeBar, Times, Vwap, Xbar,
};

use crate::SqlError;
use crate::kernel::shape::Width;
use crate::scan::source::{Cells, Rows};

/// Columns of rows that follow one another: times, keys, prices and sizes.
pub(super) struct Part<'t, N> {
    times: Cow<'t, [i64]>,
    keys: &'t [u32],
    prices: &'t [f64],
    sizes: &'t [N],
}

/// A bar: where it begins, its symbol, and what its rows add up to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) start: i64,
    pub(super) key: u32,
    pub(super) state: BarState,
}

/// All bars of a table.
pub(super) struct Found {
    pub(super) sums: Vec<Sums>,
    /// Whether a price is null.
    pub(super) has_nulls: bool,
}

/// Rows whose prices are looked over for nulls at once, so that they stay in the cache for the sums.
const BLOCK_ROWS: usize = 4096;

/// The rows of a scan in parts, one list of parts a job. A job is fed in order.
///
/// Numbers of buckets that are cut toward zero are floored ones of times that are moved up by a width less one, where
/// times are below 0; those rows are jobs of their own, since they end beyond where the others begin.
pub(super) fn jobs<'t, N>(
    rows: &Rows<'t>,
    by_time: Option<Width>,
    threads: usize,
    columns: impl Fn(&[Cells<'t>]) -> (&'t [u32], &'t [f64], &'t [N]),
) -> Vec<Vec<Part<'t, N>>> {
    let rows_per_job = rows.count().div_ceil(threads).max(1);
    let mut jobs: Vec<Vec<Part<'t, N>>> = Vec::new();
    let (mut room, mut was_moved) = (0, false);
    for slice in &rows.slices {
        let (keys, prices, sizes) = columns(&slice.columns);
        let below = match by_time {
            Some(Width::Number(_)) => slice.times.partition_point(|&time| time < 0),
            _ => 0,
        };
        for (range, is_moved) in [(0..below, true), (below..slice.times.len(), false)] {
            let mut from = range.start;
            while from < range.end {
                if room == 0 || is_moved != was_moved {
                    jobs.push(Vec::new());
                    (room, was_moved) = (rows_per_job, is_moved);
                }
                let to = range.end.min(from + room);
                let times = match by_time {
                    Some(width) if is_moved => {
                        let moved = slice.times[from..to].iter().map(|time| time + (width.width() - 1));
                        Cow::Owned(moved.collect())
                    }
                    _ => Cow::Borrowed(&slice.times[from..to]),
                };
                let keys = keys.get(from..to).unwrap_or_default();
                let part = Part { times, keys, prices: &prices[from..to], sizes: &sizes[from..to] };
                jobs.last_mut().expect("one was pushed").push(part);
                room -= to - from;
                from = to;
            }
        }
    }
    jobs
}

/// Bars by time.
pub(super) fn by_time<N: Number>(
    crew: &mut Crew,
    jobs: Vec<Vec<Part<'_, N>>>,
    width: i64,
) -> Result<Found, SqlError> {
    let rows = rows_of(&jobs);
    let done = crew.map(jobs, |parts| {
        let mut bars = Vec::new();
        let mut xbar = Xbar::new(width)?;
        let sums = |bar: TimeBar| Sums { start: bar.start, key: 0, state: bar.state };
        for part in &parts {
            xbar.feed(Times::of_sorted(&part.times), part.prices, part.sizes, |bar| bars.push(sums(bar)))?;
        }
        bars.extend(xbar.finish().map(sums));
        Ok(bars)
    });
    joined(done, rows)
}

/// Bars by symbol, and by time where there is a width.
pub(super) fn by_symbol<N: Number>(
    crew: &mut Crew,
    jobs: Vec<Vec<Part<'_, N>>>,
    width: Option<i64>,
    key_count: usize,
) -> Result<Found, SqlError> {
    let rows = rows_of(&jobs);
    let done = crew.map(jobs, |parts| {
        let mut bars = Vec::new();
        let mut keyed = KeyedBars::new(key_count, width)?;
        let sums = |bar: KeyBar| Sums { start: bar.start, key: bar.key, state: bar.state };
        for part in &parts {
            let (times, keys) = (Times::of_sorted(&part.times), Keys::new(part.keys, key_count)?);
            keyed.feed(times, keys, part.prices, part.sizes, |bar| bars.push(sums(bar)))?;
        }
        keyed.finish(|bar| bars.push(sums(bar)));
        Ok(bars)
    });
    joined(done, rows)
}

/// Sums by symbol alone; a symbol without a row has none.
pub(super) fn vwap_by_symbol<N: Number>(
    crew: &mut Crew,
    jobs: Vec<Vec<Part<'_, N>>>,
    key_count: usize,
) -> Result<Found, SqlError> {
    let done = crew.map(jobs, |parts| {
        let (mut sums, mut is_there, mut has_nulls) =
            (KeyedVwap::new(key_count), vec![false; key_count], false);
        for part in &parts {
            let blocks = part.keys.chunks(BLOCK_ROWS).zip(part.prices.chunks(BLOCK_ROWS));
            for ((keys, prices), sizes) in blocks.zip(part.sizes.chunks(BLOCK_ROWS)) {
                has_nulls |= prices.iter().fold(false, |any, price| any | price.is_nan());
                sums.feed(Keys::new(keys, key_count)?, prices, sizes)?;
            }
            // Until all have come, which is soon.
            if is_there.contains(&false) {
                part.keys.iter().for_each(|&key| is_there[key as usize] = true);
            }
        }
        Ok::<_, KernelError>((sums, is_there, has_nulls))
    });
    let (mut all, mut is_there, mut has_nulls) = (KeyedVwap::new(key_count), vec![false; key_count], false);
    for part in done {
        let (sums, there, nulls) = part?;
        all.merge(&sums)?;
        is_there.iter_mut().zip(there).for_each(|(all, one)| *all |= one);
        has_nulls |= nulls;
    }
    let sums = (0..).zip(all.groups()).zip(is_there).filter(|(_, is_there)| *is_there);
    let state = |vwap: Vwap| BarState { vwap, volume: vwap.weight, ..BarState::EMPTY };
    let sums = sums.map(|((key, vwap), _)| Sums { start: i64::MIN, key, state: state(vwap) }).collect();
    Ok(Found { sums, has_nulls })
}

fn rows_of<N>(jobs: &[Vec<Part<'_, N>>]) -> u64 {
    jobs.iter().flatten().map(|part| part.times.len() as u64).sum()
}

/// Bars of jobs as one list: where a bucket goes on in the next job, its bars are merged by symbol.
fn joined(jobs: Vec<Result<Vec<Sums>, KernelError>>, rows: u64) -> Result<Found, SqlError> {
    let mut all: Vec<Sums> = Vec::new();
    for bars in jobs {
        let bars = bars?;
        let seam = all.last().map(|bar| bar.start);
        let split = bars.partition_point(|bar| Some(bar.start) == seam);
        let (same, later) = bars.split_at(split);
        if !same.is_empty() {
            let from = all.partition_point(|bar| Some(bar.start) < seam);
            let earlier = all.split_off(from);
            merge_into(&mut all, &earlier, same);
        }
        all.extend_from_slice(later);
    }
    let priced: u64 = all.iter().map(|bar| bar.state.count).sum();
    Ok(Found { sums: all, has_nulls: priced != rows })
}

/// Adds two lists of one bucket, both in order of symbols; the second has the later rows.
fn merge_into(all: &mut Vec<Sums>, earlier: &[Sums], later: &[Sums]) {
    let (mut left, mut right) = (earlier.iter().peekable(), later.iter().peekable());
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        let mut sums = if one.key <= other.key { **one } else { **other };
        let (is_one, is_other) = (one.key <= other.key, other.key <= one.key);
        if is_one && is_other {
            sums.state.merge_later(&other.state);
        }
        if is_one {
            left.next();
        }
        if is_other {
            right.next();
        }
        all.push(sums);
    }
    all.extend(left.chain(right));
}
