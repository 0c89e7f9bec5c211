//! Columns in an arena on the largest pages that need no reservation.

use anyhow::{Context, Result};
use planish_arena::{Arena, Page, Preference};
use planish_stats::Rng;

/// Symbols of the tables that have many.
pub const SYMBOLS: usize = 100;
/// 2026-01-01T00:00:00Z, in nanoseconds.
const BEGIN: i64 = 1_767_225_600_000_000_000;
/// A day in nanoseconds.
pub const DAY: i64 = 86_400_000_000_000;

/// A table of ticks: times ascend and differ.
pub struct Table<'a> {
    pub times: &'a [i64],
    pub symbols: &'a [u32],
    pub prices: &'a [f64],
    pub sizes: &'a [i64],
    pub symbol_count: usize,
}

/// An arena with room for `bytes`, on transparent huge pages where there are any.
pub fn arena(bytes: usize) -> Result<Arena> {
    let arena = Arena::builder().page(Preference::From(Page::Thp)).capacity(bytes).build();
    arena.context("memory for the columns")
}

impl<'a> Table<'a> {
    /// `rows` ticks over `span` nanoseconds: times uniform, sizes from 1 to 999, prices a walk about a level
    /// of the symbol, in cents.
    pub fn generate(
        arena: &'a Arena,
        seed: u64,
        rows: usize,
        symbol_count: usize,
        span: i64,
    ) -> Result<Self> {
        let mut rng = Rng::new(seed);
        let times = arena.alloc_slice::<i64>(rows)?;
        let symbols = arena.alloc_slice::<u32>(rows)?;
        let prices = arena.alloc_slice::<f64>(rows)?;
        let sizes = arena.alloc_slice::<i64>(rows)?;
        let (mut left, mut time, mut walk) = (rows, BEGIN, 0.0);
        let step = 0.05 / (rows as f64).sqrt();
        for row in 0..rows {
            // The smallest of the times that are still to come.
            let share = 1.0 - (1.0 - rng.uniform()).powf(1.0 / left as f64);
            time += 1 + (share * (BEGIN + span - time) as f64) as i64;
            left -= 1;
            let symbol = rng.below(symbol_count);
            walk += rng.normal() * step;
            times[row] = time;
            symbols[row] = symbol as u32;
            prices[row] = ((50.0 + symbol as f64) * f64::exp(walk) * 100.0).round() / 100.0;
            sizes[row] = 1 + rng.below(999) as i64;
        }
        Ok(Self { times, symbols, prices, sizes, symbol_count })
    }
}

/// Bytes of a table, alignment included.
pub fn table_bytes(rows: usize) -> usize {
    rows * (8 + 4 + 8 + 8) + 4096
}
