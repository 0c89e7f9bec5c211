//! Reductions of a column slice in eight independent lanes.
//!
//! A float sum in row order is one chain of additions that no compiler may break up; eight chains are eight
//! times less waiting and one vector register. The order of additions therefore differs from a row loop, by
//! rounding only.

/// Width of the lanes: one AVX-512 register, two AVX, four SSE or NEON ones.
pub(crate) const LANES: usize = 8;

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
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += or_zero(value);
        }
    }
    fold(lanes) + rest.iter().map(|&value| or_zero(value)).sum::<f64>()
}

/// Adds the lanes pairwise.
pub(crate) fn fold(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Lowest, highest and number of the values that are not null; `(inf, -inf, 0)` when there is none.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64, u64) {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut low = [f64::INFINITY; LANES];
    let mut high = [f64::NEG_INFINITY; LANES];
    let mut count = [0u64; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            let value = chunk[lane];
            low[lane] = lower(low[lane], value);
            high[lane] = higher(high[lane], value);
            count[lane] += u64::from(!value.is_nan());
        }
    }
    for &value in rest {
        low[0] = lower(low[0], value);
        high[0] = higher(high[0], value);
        count[0] += u64::from(!value.is_nan());
    }
    (
        low.into_iter().fold(f64::INFINITY, lower),
        high.into_iter().fold(f64::NEG_INFINITY, higher),
        count.iter().sum(),
    )
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
