//! Bars for the buckets in which nothing was traded.

use crate::xbar::check_width;
use crate::{Bar, KernelError};

/// What an empty bucket shows. Its count and volume are 0 and its VWAP is NaN either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// No price.
    Null,
    /// The last known close as all four prices; none before the first.
    Previous,
    /// All four prices on the straight line from the last known close to the next known open, by the starts of
    /// their buckets; none before the first or after the last.
    Linear,
}

/// Writes bars of one width, given in time order, with the missing ones between them to `out`. A bar whose
/// prices are all null stays as it is.
///
/// # Errors
/// [`KernelError::Parameter`] unless the width is above 0 or when there would be more than `rows_max` bars: a
/// single wrong time can leave room for more than fit in memory. [`KernelError::Unsorted`] when the bars do not
/// ascend. `out` is then empty.
pub fn fill_bars(
    bars: &[Bar],
    width: i64,
    fill: Fill,
    rows_max: usize,
    out: &mut Vec<Bar>,
) -> Result<(), KernelError> {
    out.clear();
    check_width(width)?;
    let mut wanted_rows = bars.len() as u64;
    for (index, pair) in bars.windows(2).enumerate() {
        let (before, time) = (pair[0].start, pair[1].start);
        if before >= time {
            return Err(KernelError::Unsorted { row: index + 1, before, time });
        }
        wanted_rows = wanted_rows.saturating_add(missing(before, time, width));
    }
    let is_allowed = wanted_rows <= rows_max as u64;
    KernelError::check_parameter("filled bars", wanted_rows, is_allowed, "at most the limit")?;
    let next_known = next_known(if fill == Fill::Linear { bars } else { &[] });
    let mut known: Option<(i64, f64)> = None;
    for (index, bar) in bars.iter().enumerate() {
        out.push(*bar);
        if bar.count > 0 {
            known = Some((bar.start, bar.close));
        }
        let Some(after) = bars.get(index + 1) else { break };
        let next = next_known.get(index).copied().flatten();
        let mut start = next_start(bar.start, width);
        for _ in 0..missing(bar.start, after.start, width) {
            let price = match (fill, known, next) {
                (Fill::Previous, Some((_, close)), _) => close,
                (Fill::Linear, Some(from), Some(to)) => between(from, to, start),
                _ => f64::NAN,
            };
            out.push(empty(start, price));
            start = next_start(start, width);
        }
    }
    Ok(())
}

/// Start and open of the next bar behind each whose price is known. Looked for bar by bar it would take the square of
/// their number where few are.
fn next_known(bars: &[Bar]) -> Vec<Option<(i64, f64)>> {
    let mut next_known = vec![None; bars.len()];
    let mut next = None;
    for (place, bar) in next_known.iter_mut().zip(bars).rev() {
        *place = next;
        if bar.count > 0 {
            next = Some((bar.start, bar.open));
        }
    }
    next_known
}

/// Start of the bucket after one. The first of all may begin before the first time there is, and its start then
/// says so only by being no multiple.
fn next_start(start: i64, width: i64) -> i64 {
    (start.div_euclid(width) + 1).saturating_mul(width)
}

fn missing(before: i64, after: i64, width: i64) -> u64 {
    after.div_euclid(width).abs_diff(before.div_euclid(width)) - 1
}

fn between((from, close): (i64, f64), (to, open): (i64, f64), start: i64) -> f64 {
    let share = start.abs_diff(from) as f64 / to.abs_diff(from) as f64;
    close + (open - close) * share
}

fn empty(start: i64, price: f64) -> Bar {
    let (open, high, low, close) = (price, price, price, price);
    Bar { start, open, high, low, close, volume: 0.0, count: 0, vwap: f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn bar(start: i64, price: f64) -> Bar {
        Bar { count: u64::from(!price.is_nan()), volume: 1.0, ..empty(start, price) }
    }

    proptest! {
        #[test]
        fn every_bucket_has_one_bar(
            buckets in prop::collection::btree_set(-30i64..30, 0..12), width in 1i64..9,
            nulls in prop::collection::vec(any::<bool>(), 12),
        ) {
            let price = |(index, &bucket): (usize, &i64)| {
                bar(bucket * width, if nulls[index] { f64::NAN } else { bucket as f64 })
            };
            let bars: Vec<Bar> = buckets.iter().enumerate().map(price).collect();
            let all = |buckets: &BTreeSet<i64>| Some(*buckets.first()?..=*buckets.last()?);
            let wanted: Vec<i64> = all(&buckets).into_iter().flatten().map(|bucket| bucket * width).collect();
            let mut out = Vec::new();
            for fill in [Fill::Null, Fill::Previous, Fill::Linear] {
                fill_bars(&bars, width, fill, 100, &mut out).unwrap();
                prop_assert_eq!(out.iter().map(|bar| bar.start).collect::<Vec<_>>(), wanted.clone());
                for bar in out.iter().filter(|bar| bar.volume == 0.0) {
                    let before = bars.iter().rfind(|other| other.start < bar.start && other.count > 0);
                    let after = bars.iter().find(|other| other.start > bar.start && other.count > 0);
                    let wanted = match (fill, before, after) {
                        (Fill::Previous, Some(before), _) => before.close,
                        // The prices are the numbers of the buckets, so the line goes through them all.
                        (Fill::Linear, Some(_), Some(_)) => (bar.start / width) as f64,
                        _ => f64::NAN,
                    };
                    assert_close(bar.open, wanted, 100.0);
                    assert_close(bar.close, wanted, 100.0);
                }
            }
        }
    }

    #[test]
    fn refuses_what_would_not_fit() {
        let mut out = vec![bar(0, 1.0)];
        let far = fill_bars(&[bar(0, 1.0), bar(i64::MAX, 1.0)], 1, Fill::Null, 1000, &mut out);
        assert!(matches!(far, Err(KernelError::Parameter { name: "filled bars", .. })) && out.is_empty());
        let wrong = fill_bars(&[bar(5, 1.0), bar(5, 1.0)], 5, Fill::Null, 9, &mut out);
        assert_eq!(wrong, Err(KernelError::Unsorted { row: 1, before: 5, time: 5 }));
        assert!(fill_bars(&[], 0, Fill::Null, 9, &mut out).is_err());
    }
}
