//! Reductions of a column slice in independent lanes.
//!
//! A float sum in row order is one chain of additions that no compiler may break up; lanes are chains that do
//! not wait for each other, and vector registers. The order of additions therefore differs from a row loop,
//! by rounding only.

/// Number of lanes: enough to hide the latency of an addition on two-wide vectors (SSE2, NEON), few enough
/// that three accumulators stay in their 16 registers.
pub(crate) const LANES: usize = 4;

/// Rows that are reduced at once when several passes are made: two columns of them stay in the first cache.
pub(crate) const BLOCK_ROWS: usize = 1024;

/// `value`, or 0 for a null.
#[inline]
pub(crate) fn or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Sum of the values that are not null.
pub(crate) fn sum(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += or_zero(chunk[lane]);
        }
    }
    fold(lanes) + rest.iter().map(|&value| or_zero(value)).sum::<f64>()
}

/// Sum of `term` over the rows of two columns of one length in which neither is null. One sum a pass: two in
/// one loop make the compiler pair them up in a vector instead of the rows.
#[inline]
pub(crate) fn sum_of_known(left: &[f64], right: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let (left_chunks, left_rest) = left.as_chunks::<LANES>();
    let (right_chunks, right_rest) = right.as_chunks::<LANES>();
    let known = |left: f64, right: f64| if left.is_nan() | right.is_nan() { 0.0 } else { term(left, right) };
    let mut lanes = [0.0; LANES];
    for (left, right) in left_chunks.iter().zip(right_chunks) {
        for lane in 0..LANES {
            lanes[lane] += known(left[lane], right[lane]);
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(&left, &right)| known(left, right));
    fold(lanes) + rest.sum::<f64>()
}

/// Adds the lanes pairwise.
pub(crate) fn fold(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d] = lanes;
    (a + c) + (b + d)
}

/// Number of values that are not null.
pub(crate) fn count(values: &[f64]) -> u64 {
    values.iter().map(|value| u64::from(!value.is_nan())).sum()
}

/// Lowest and highest of the values that are not null; `(inf, -inf)` when there is none.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64) {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut low = [f64::INFINITY; LANES];
    let mut high = [f64::NEG_INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            low[lane] = lower(low[lane], chunk[lane]);
            high[lane] = higher(high[lane], chunk[lane]);
        }
    }
    let low = low.iter().chain(rest).copied().fold(f64::INFINITY, lower);
    let high = high.iter().chain(rest).copied().fold(f64::NEG_INFINITY, higher);
    (low, high)
}

/// The lower one, `best` when `value` is null: a comparison with NaN is false. One `minsd`, unlike
/// [`f64::min`].
#[inline]
pub(crate) fn lower(best: f64, value: f64) -> f64 {
    if value < best { value } else { best }
}

/// The higher one, `best` when `value` is null.
#[inline]
pub(crate) fn higher(best: f64, value: f64) -> f64 {
    if value > best { value } else { best }
}
