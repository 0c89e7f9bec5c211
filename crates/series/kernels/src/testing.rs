//! What the property tests of all kernels share: hostile columns, the tolerance, every split.

use crate::{Bar, Crew, Isa};
use proptest::prelude::*;
use std::cell::RefCell;
use std::num::NonZeroUsize;

/// A value, a tie (small whole numbers repeat), a large one, or a null.
pub(crate) fn null_or_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-5i32..5).prop_map(f64::from),
        3 => -1e3f64..1e3,
        1 => prop_oneof![Just(1e12), Just(-1e12), Just(1e-9)],
        2 => Just(f64::NAN),
    ]
}

/// A column of up to `rows` values, in half of the cases without a null: kernels have a path for that.
pub(crate) fn column(rows: usize) -> impl Strategy<Value = Vec<f64>> {
    let known = null_or_value().prop_map(|value| if value.is_nan() { 0.5 } else { value });
    prop_oneof![prop::collection::vec(null_or_value(), 0..=rows), prop::collection::vec(known, 0..=rows)]
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

/// A bar against the loop over its rows.
#[track_caller]
pub(crate) fn check_bar(bar: &Bar, rows: &[usize], prices: &[f64], sizes: &[f64]) {
    let nan = f64::NAN;
    let known: Vec<f64> = rows.iter().map(|&row| prices[row]).filter(|price| !price.is_nan()).collect();
    let volume: Vec<f64> = rows.iter().map(|&row| sizes[row]).filter(|size| !size.is_nan()).collect();
    let both = || rows.iter().filter(|&&row| !prices[row].is_nan() && !sizes[row].is_nan());
    let value: f64 = both().map(|&row| prices[row] * sizes[row]).sum();
    let weight: f64 = both().map(|&row| sizes[row]).sum();
    assert_eq!(bar.count, known.len() as u64);
    assert_close(bar.open, known.first().copied().unwrap_or(nan), 0.0);
    assert_close(bar.close, known.last().copied().unwrap_or(nan), 0.0);
    assert_close(bar.high, known.iter().copied().reduce(f64::max).unwrap_or(nan), 0.0);
    assert_close(bar.low, known.iter().copied().reduce(f64::min).unwrap_or(nan), 0.0);
    assert_close(bar.volume, volume.iter().sum(), magnitude(&volume));
    let wanted = if weight == 0.0 { nan } else { value / weight };
    assert_close(bar.vwap, wanted, magnitude(&known));
}

/// Runs a check under every instruction set of this CPU.
pub(crate) fn each_isa(mut check: impl FnMut(Isa)) {
    Isa::all().for_each(&mut check);
}

thread_local! {
    static CREWS: RefCell<Vec<Crew>> = const { RefCell::new(Vec::new()) };
}

/// Crews of one to three threads, lent for one case: starting threads for each would be most of the test.
pub(crate) fn crews() -> Lent {
    let mut crews = CREWS.with(RefCell::take);
    if crews.is_empty() {
        let crew = |threads| Crew::new(NonZeroUsize::new(threads).expect("not none")).expect("threads start");
        crews = (1..=3).map(crew).collect();
    }
    Lent(crews)
}

/// Gives the crews back.
pub(crate) struct Lent(Vec<Crew>);

impl<'a> IntoIterator for &'a mut Lent {
    type Item = &'a mut Crew;
    type IntoIter = std::slice::IterMut<'a, Crew>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        CREWS.with(|crews| crews.replace(std::mem::take(&mut self.0)));
    }
}
