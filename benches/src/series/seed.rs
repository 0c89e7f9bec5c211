//! The three benchmarks that engines of this kind publish, on their data, against fixed limits: 1M rows of one
//! symbol a second apart grouped into 3334 bars; an average over 1M values; a window join of 100,000 by
//! 100,000 rows with 11 matches each.

use super::milliseconds;
use crate::row::{Limit, Rows};
use anyhow::{Result, ensure};
use planish_kernels::{Crew, Ema, Isa, Keys, Parts, TimeBar, Times, WindowColumns, WindowJoin, Xbar};
use std::num::NonZeroUsize;

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// Adds the three rows, one thread each.
pub fn measure(isa: Isa, rows: &mut Rows) -> Result<()> {
    let prices: Vec<f64> = (0..1_000_000).map(|row| f64::from(10_000 + row % 1000)).collect();
    let mut crew = Crew::new(NonZeroUsize::MIN)?;
    rows.add("seed: xbar 1M", "ms", (Limit::AtMost, 0.3), || {
        let times: Vec<i64> = (0..1_000_000).map(|row| row * SECOND).collect();
        let sizes = vec![100i64; times.len()];
        let (xbar, times) = (Xbar::new(300 * SECOND)?.with_isa(isa), Times::new(&times)?);
        let mut bars: Parts<TimeBar> = Parts::new();
        let figure = milliseconds(|| Ok(xbar.run(&mut crew, times, &prices, &sizes, &mut bars)?))?;
        let sum = |of: fn(&TimeBar) -> f64| bars.iter().map(of).sum::<f64>();
        ensure!(bars.len() == 3334, "{} bars", bars.len());
        ensure!(
            sum(|bar| bar.state.count as f64) == 1e6 && sum(|bar| bar.state.volume) == 1e8,
            "rows are lost"
        );
        Ok(figure)
    });
    rows.add("seed: EMA 1M", "ms", (Limit::AtMost, 0.3), || {
        let mut out = vec![0.0; prices.len()];
        let kind = Ema::with_alpha(0.1)?.with_isa(isa);
        let figure = milliseconds(|| Ok(kind.clone().feed(&prices, &mut out)?))?;
        let mut one = kind;
        let wanted = prices.iter().map(|&price| one.push(price)).last();
        ensure!(wanted.is_some_and(|wanted| (out[out.len() - 1] - wanted).abs() < 1e-6), "averages differ");
        Ok(figure)
    });
    rows.add("seed: window join 100K x 100K", "ms", (Limit::AtMost, 1.0), || {
        let times: Vec<i64> = (0..100_000).map(|row| row * MILLISECOND).collect();
        let (keys, values) = (vec![0; times.len()], vec![1000.0; times.len()]);
        let side = (Times::new(&times)?, Keys::new(&keys, 1)?);
        let (mut avg, mut count) = (vec![0.0; times.len()], vec![0; times.len()]);
        let mut join = WindowJoin::new(-5 * MILLISECOND, 5 * MILLISECOND)?.with_isa(isa);
        let figure = milliseconds(|| {
            let out =
                WindowColumns { avg: Some(&mut avg), count: Some(&mut count), ..WindowColumns::default() };
            Ok(join.run_by_key(&mut crew, side, side, &values, out)?)
        })?;
        ensure!(
            count.iter().sum::<u64>() == 1_099_970 && avg.iter().all(|&avg| avg == 1000.0),
            "matches differ"
        );
        Ok(figure)
    });
    Ok(())
}
