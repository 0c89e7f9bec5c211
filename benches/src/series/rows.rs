//! The rows beside C: same columns, same threads, results equal.

use super::data::{self, DAY, SYMBOLS, Table};
use super::ratio;
use super::reference::{Bars, Reference};
use crate::row::{Limit, Rows};
use anyhow::{Context, Result, ensure};
use planish_kernels::{
    AsofJoin, Crew, Ema, Isa, KeyedBars, KeyedEma, KeyedVwap, Keys, Parts, Times, Vwap, WindowColumns,
    WindowJoin, Xbar,
};
use std::num::NonZeroUsize;

/// Time of ours over theirs that every row must keep.
const RATIO_MAX: f64 = 1.25;
const BAR_WIDTH: i64 = 300_000_000_000;
const REACH: i64 = 5_000_000_000;
const ALPHA: f64 = 2.0 / 21.0;
/// More bars than a day has by symbol, for each of two threads.
const ROOM: usize = 65_536;
const MILLION: usize = 1_000_000;
const JOIN_ROWS: usize = 100_000;

/// One thread and two, of which each side has its own.
struct Bench<'a> {
    reference: &'a Reference,
    isa: Isa,
    threads: usize,
    crew: Crew,
}

/// Measures every row with one thread and with two.
pub fn measure(reference: &Reference, isa: Isa, rows: &mut Rows) -> Result<()> {
    let arena = data::arena(3 * data::table_bytes(50 * MILLION) / 2)?;
    eprintln!("making the tables");
    let trades = Table::generate(&arena, 11, MILLION, SYMBOLS, DAY)?;
    let quotes = Table::generate(&arena, 12, MILLION, SYMBOLS, DAY)?;
    let many = Table::generate(&arena, 13, 50 * MILLION, SYMBOLS, DAY)?;
    let join = |seed, symbols, span| -> Result<_> {
        let left = Table::generate(&arena, seed, JOIN_ROWS, symbols, span)?;
        Ok((left, Table::generate(&arena, seed + 1, JOIN_ROWS, symbols, span)?))
    };
    let joins = [
        ("window join, one symbol", join(21, 1, DAY)?),
        ("window join, 100 symbols", join(23, SYMBOLS, DAY)?),
        ("window join, dense", join(25, 1, 1_000_000_000_000)?),
    ];
    let pages = arena.achieved()?;
    eprintln!("columns lie on {}", pages.mostly().map_or("nothing".into(), |page| page.backing()));
    let out = arena.alloc_slice::<f64>(MILLION)?;
    let other_out = arena.alloc_slice::<f64>(MILLION)?;
    for threads in [1, 2] {
        let crew = Crew::new(NonZeroUsize::new(threads).context("no thread")?)?;
        let mut bench = Bench { reference, isa, threads, crew };
        bench.bars(&trades, "1M", rows);
        bench.symbol_bars(&trades, "1M", rows);
        bench.ema(&trades, out, other_out, rows);
        bench.keyed_ema(&trades, out, other_out, rows);
        for (name, (left, right)) in &joins {
            bench.window(name, left, right, rows);
        }
        bench.asof(&trades, &quotes, out, other_out, rows);
        bench.bars(&many, "50M", rows);
        bench.symbol_bars(&many, "50M", rows);
        bench.vwap(&many, rows);
    }
    Ok(())
}

impl Bench<'_> {
    fn add(
        &mut self,
        rows: &mut Rows,
        name: &str,
        measure: impl FnOnce(&mut Self) -> Result<(crate::row::Figure, String)>,
    ) {
        let threads = if self.threads == 1 { "1 thread" } else { "2 threads" };
        rows.add_with_note(&format!("{name}, {threads}"), "x C", (Limit::AtMost, RATIO_MAX), || {
            measure(self)
        });
    }

    fn bars(&mut self, table: &Table<'_>, size: &str, rows: &mut Rows) {
        self.add(rows, &format!("bars {size}"), |bench| {
            let (mut ours, mut theirs, mut count) = (Parts::new(), Bars::with_room(ROOM), 0);
            let xbar = Xbar::new(BAR_WIDTH)?.with_isa(bench.isa);
            let times = Times::new(table.times)?;
            let mut call = || Ok(xbar.run(&mut bench.crew, times, table.prices, table.sizes, &mut ours)?);
            let threads = bench.threads;
            let mut other = || {
                count = bench.reference.bar(table, BAR_WIDTH, threads, &mut theirs);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            ensure!(ours.len() == count, "{} bars, C has {count}", ours.len());
            for (row, bar) in ours.iter().enumerate() {
                check_bar(&theirs, row, 0, &bar.bar())?;
            }
            Ok(measured)
        });
    }

    fn symbol_bars(&mut self, table: &Table<'_>, size: &str, rows: &mut Rows) {
        self.add(rows, &format!("symbol bars {size}"), |bench| {
            let (mut ours, mut theirs, mut counts) = (Parts::new(), Bars::with_room(ROOM), [0; 2]);
            let threads = bench.threads;
            let mut tables = vec![KeyedBars::new(SYMBOLS, Some(BAR_WIDTH))?.with_isa(bench.isa); threads];
            let sides = (Times::new(table.times)?, Keys::new(table.symbols, SYMBOLS)?);
            let crew = &mut bench.crew;
            let mut call =
                || Ok(KeyedBars::run(&mut tables, crew, sides, table.prices, table.sizes, &mut ours)?);
            let mut other = || {
                counts = bench.reference.symbol_bar(table, BAR_WIDTH, threads, &mut theirs);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            let count = counts[0] + counts[1];
            ensure!(ours.len() == count, "{} bars, C has {count}", ours.len());
            for (row, bar) in ours.iter().enumerate() {
                let row = if row < counts[0] { row } else { row - counts[0] + ROOM / 2 };
                check_bar(&theirs, row, bar.key, &bar.bar())?;
            }
            Ok(measured)
        });
    }

    fn ema(&mut self, table: &Table<'_>, out: &mut [f64], other_out: &mut [f64], rows: &mut Rows) {
        self.add(rows, "EMA 1M", |bench| {
            let kind = Ema::with_alpha(ALPHA)?.with_isa(bench.isa);
            let threads = bench.threads;
            let mut call = || Ok(kind.clone().run(&mut bench.crew, table.prices, out)?);
            let mut other = || {
                bench.reference.ema(table.prices, ALPHA, threads, other_out);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            check_column("average", out, other_out)?;
            Ok(measured)
        });
    }

    fn keyed_ema(&mut self, table: &Table<'_>, out: &mut [f64], other_out: &mut [f64], rows: &mut Rows) {
        self.add(rows, "EMA by symbol 1M", |bench| {
            let mut ema = KeyedEma::new(Ema::with_alpha(ALPHA)?.with_isa(bench.isa), SYMBOLS);
            let (threads, keys) = (bench.threads, Keys::new(table.symbols, SYMBOLS)?);
            let mut call = || {
                ema.clear();
                Ok(ema.run(&mut bench.crew, keys, table.prices, out)?)
            };
            let mut other = || {
                bench.reference.keyed_ema(table, ALPHA, threads, other_out);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            check_column("average", out, other_out)?;
            Ok(measured)
        });
    }

    fn window(&mut self, name: &str, left: &Table<'_>, right: &Table<'_>, rows: &mut Rows) {
        self.add(rows, name, |bench| {
            let count = left.times.len();
            let (mut avg, mut max, mut counts) = (vec![0.0; count], vec![0.0; count], vec![0u64; count]);
            let (mut mean, mut highest, mut found) = (vec![0.0; count], vec![0.0; count], vec![0i64; count]);
            let mut join = WindowJoin::new(-REACH, REACH)?.with_isa(bench.isa);
            let side =
                |table: &Table<'_>| -> Result<_> { Ok((table.times.to_vec(), table.symbols.to_vec())) };
            let ((left_times, left_keys), (right_times, right_keys)) = (side(left)?, side(right)?);
            let left_side = (Times::new(&left_times)?, Keys::new(&left_keys, left.symbol_count)?);
            let right_side = (Times::new(&right_times)?, Keys::new(&right_keys, right.symbol_count)?);
            let threads = bench.threads;
            let crew = &mut bench.crew;
            let mut call = || {
                let out = WindowColumns {
                    avg: Some(&mut avg),
                    max: Some(&mut max),
                    count: Some(&mut counts),
                    ..WindowColumns::default()
                };
                Ok(join.run_by_key(crew, left_side, right_side, right.prices, out)?)
            };
            let mut other = || {
                let out = (&mut mean[..], &mut highest[..], &mut found[..]);
                bench.reference.window((left, right), REACH, threads, out);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            check_column("mean", &avg, &mean)?;
            check_column("highest", &max, &highest)?;
            ensure!(counts.iter().zip(&found).all(|(&ours, &theirs)| ours == theirs as u64), "counts differ");
            Ok(measured)
        });
    }

    fn asof(
        &mut self,
        left: &Table<'_>,
        right: &Table<'_>,
        out: &mut [f64],
        other_out: &mut [f64],
        rows: &mut Rows,
    ) {
        self.add(rows, "ASOF join 1M", |bench| {
            let join = AsofJoin::new(SYMBOLS);
            let side = |times, keys| -> Result<_> { Ok((Times::new(times)?, Keys::new(keys, SYMBOLS)?)) };
            let (left_side, right_side) =
                (side(left.times, left.symbols)?, side(right.times, right.symbols)?);
            let threads = bench.threads;
            let crew = &mut bench.crew;
            let mut call = || Ok(join.values_on(crew, left_side, right_side, right.prices, out)?);
            let mut other = || {
                bench.reference.asof(left, right, threads, other_out);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            check_column("value", out, other_out)?;
            Ok(measured)
        });
    }

    fn vwap(&mut self, table: &Table<'_>, rows: &mut Rows) {
        self.add(rows, "VWAP 50M", |bench| {
            let mut vwap = KeyedVwap::new(SYMBOLS).with_isa(bench.isa);
            let mut theirs = vec![0.0; SYMBOLS];
            let (threads, keys) = (bench.threads, Keys::new(table.symbols, SYMBOLS)?);
            let mut call = || {
                vwap.clear();
                Ok(vwap.run(&mut bench.crew, keys, table.prices, table.sizes)?)
            };
            let mut other = || {
                bench.reference.vwap(table, threads, &mut theirs);
                Ok(())
            };
            let measured = ratio(threads, &mut call, &mut other)?;
            let ours: Vec<f64> = vwap.groups().map(Vwap::mean).collect();
            check_column("mean", &ours, &theirs)?;
            Ok(measured)
        });
    }
}

fn check_bar(theirs: &Bars, row: usize, key: u32, bar: &planish_kernels::Bar) -> Result<()> {
    let equal = theirs.symbol[row] == key as i32
        && theirs.bucket[row] * BAR_WIDTH == bar.start
        && theirs.open[row] == bar.open
        && theirs.high[row] == bar.high
        && theirs.low[row] == bar.low
        && theirs.close[row] == bar.close
        && theirs.volume[row] as f64 == bar.volume
        && theirs.count[row] as u64 == bar.count;
    ensure!(equal, "bar {row} differs: {bar:?}");
    Ok(())
}

fn check_column(name: &str, ours: &[f64], theirs: &[f64]) -> Result<()> {
    ensure!(ours.len() == theirs.len(), "{name}: {} rows, C has {}", ours.len(), theirs.len());
    for (row, (&ours, &theirs)) in ours.iter().zip(theirs).enumerate() {
        let is_equal = (ours.is_nan() && theirs.is_nan()) || (ours - theirs).abs() <= 1e-9 * theirs.abs();
        ensure!(is_equal, "{name} of row {row}: {ours}, C has {theirs}");
    }
    Ok(())
}
