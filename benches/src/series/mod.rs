//! The time-series kernels beside hand-tuned C, on the same columns in the same process.
//!
//! A pair is one sample of each side, in an order that a coin chose; a sample is the fastest of a few calls in
//! a row, because what others on the machine take away is not the kernel's. The figure of a row is the ratio
//! of the two, from the pairs. Before anything is timed, both sides must have given the same results.
//!
//! What is expected of the C side is told in [`reference`].

mod data;
mod ingest;
mod reference;
mod rows;
mod seed;
mod table;

use crate::rounds::figure;
use crate::row::{Figure, Rows};
use anyhow::Result;
use planish_kernels::Isa;
use planish_stats::{Rng, summary};
use std::path::Path;
use std::time::{Duration, Instant};

/// Pairs of a row.
const PAIRS: usize = 15;
/// Calls of a sample, after one that is not timed; fewer when they take longer than this together.
const CALLS: usize = 5;
const SAMPLE: Duration = Duration::from_millis(60);
/// Threads of the other side may watch for work for a while: let them go to sleep.
const SETTLE: Duration = Duration::from_millis(30);

/// Adds the rows: those of the seed engine, of durable tables and of ingest always, those beside C where there is a
/// reference.
pub fn measure(reference: Option<&Path>, isa: Isa, rows: &mut Rows) -> Result<()> {
    eprintln!("instructions: {isa}");
    seed::measure(isa, rows)?;
    table::measure(rows)?;
    ingest::measure(rows)?;
    let Some(folder) = reference else {
        eprintln!("no --reference FOLDER with kernels.c: no ratios");
        return Ok(());
    };
    let reference = reference::Reference::build(folder)?;
    rows::measure(&reference, isa, rows)
}

/// Fastest of some calls, in milliseconds, after one to warm up.
fn sample(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    let (begin, mut fastest) = (Instant::now(), f64::INFINITY);
    for _ in 0..CALLS {
        if fastest.is_finite() && begin.elapsed() > SAMPLE {
            break;
        }
        let start = Instant::now();
        call()?;
        fastest = fastest.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(fastest)
}

/// Milliseconds of one side: median of samples, with its interval.
fn milliseconds(mut call: impl FnMut() -> Result<()>) -> Result<Figure> {
    let mut logs = Vec::new();
    for _ in 0..PAIRS {
        logs.push(sample(&mut call)?.ln());
    }
    figure(&logs)
}

/// Time of ours over theirs, and a note of both in milliseconds.
fn ratio(
    threads: usize,
    mut ours: impl FnMut() -> Result<()>,
    mut theirs: impl FnMut() -> Result<()>,
) -> Result<(Figure, String)> {
    let mut rng = Rng::new(PAIRS as u64);
    let (mut mine, mut other, mut logs) = (Vec::new(), Vec::new(), Vec::new());
    let settle = || std::thread::sleep(if threads > 1 { SETTLE } else { Duration::ZERO });
    for _ in 0..PAIRS {
        let ours_first = rng.coin();
        for turn in [ours_first, !ours_first] {
            settle();
            if turn {
                mine.push(sample(&mut ours)?);
            } else {
                other.push(sample(&mut theirs)?);
            }
        }
        logs.push((mine[mine.len() - 1] / other[other.len() - 1]).ln());
    }
    let note = format!("{:.3} ms, C {:.3} ms", summary::median(&mine), summary::median(&other));
    Ok((figure(&logs)?, note))
}
