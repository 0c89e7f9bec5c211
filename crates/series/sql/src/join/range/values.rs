//! What is added up, as the kernel reads it.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};

use crate::join::range::Of;
use crate::scan::arrays::{has_nan, values_of};

/// Whole numbers up to here are floats exactly.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// Values as floats in which NaN is null. `None` where the kernel would not give the answer of SQL. Each value is added
/// to a group `times` times at most.
pub(super) fn floats_of(array: &ArrayRef, wanted: &[Of], times: usize) -> Option<ScalarBuffer<f64>> {
    if wanted.iter().all(|of| *of == Of::Count) {
        return Some(match array.logical_nulls() {
            None => vec![0.0; array.len()].into(),
            Some(nulls) => nulls.iter().map(|is_known| if is_known { 0.0 } else { f64::NAN }).collect(),
        });
    }
    if *array.data_type() != DataType::Int64 {
        let nan = |value: Option<f64>| value.is_some_and(f64::is_nan);
        let floats = array.as_primitive::<Float64Type>();
        let has_nan = match floats.null_count() {
            0 => has_nan(floats.values()),
            _ => floats.iter().any(nan),
        };
        return (!has_nan).then(|| values_of(array));
    }
    let whole = array.as_primitive::<Int64Type>();
    let magnitudes = || whole.iter().flatten().map(i64::unsigned_abs);
    let most = match wanted.contains(&Of::Sum) {
        true => magnitudes().try_fold(0, u64::checked_add).and_then(|sum| sum.checked_mul(times as u64)),
        false => Some(magnitudes().max().unwrap_or(0)),
    };
    let float = |value: Option<i64>| value.map_or(f64::NAN, |value| value as f64);
    most.is_some_and(|most| most <= EXACT).then(|| whole.iter().map(float).collect())
}
