//! What the property tests of all kernels share: hostile columns, and the tolerance.

use proptest::prelude::*;

/// A value, a tie (small whole numbers repeat), a large one, or a null.
pub(crate) fn null_or_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-5i32..5).prop_map(f64::from),
        3 => -1e3f64..1e3,
        1 => prop_oneof![Just(1e12), Just(-1e12), Just(1e-9)],
        2 => Just(f64::NAN),
    ]
}

/// Up to `rows` ascending times, with ties, gaps and negative ones; often none or one row.
pub(crate) fn sorted_times(rows: usize) -> impl Strategy<Value = Vec<i64>> {
    let time = prop_oneof![5 => -15i64..15, 1 => -10_000i64..10_000];
    let many = prop::collection::vec(time.clone(), 0..rows);
    let few = prop::collection::vec(time, 0..2);
    prop_oneof![4 => many, 1 => few].prop_map(|mut times| {
        times.sort_unstable();
        times
    })
}

/// Sum of the magnitudes of what is not null: the scale of rounding.
pub(crate) fn magnitude(values: &[f64]) -> f64 {
    values.iter().filter(|value| !value.is_nan()).map(|value| value.abs()).sum()
}

/// Fails unless both are null, or they differ by at most 1e-9 of `scale`.
#[track_caller]
pub(crate) fn assert_close(got: f64, wanted: f64, scale: f64) {
    let equal = got == wanted || (got.is_nan() && wanted.is_nan());
    assert!(equal || (got - wanted).abs() <= 1e-9 * scale, "{got} is not {wanted}, scale {scale}");
}
