//! Columns of numbers: floats and whole numbers, read as floats.

use crate::simd::Simd;

/// A number that a kernel adds up: `f64`, where NaN is null, or `i64`, which has no null.
///
/// Whole numbers are read as the nearest `f64`, so sums of them are exact up to 2^53 and right to 1e-15 of
/// their magnitudes beyond.
pub trait Number: sealed::Lanes {}

impl Number for f64 {}
impl Number for i64 {}

pub(crate) mod sealed {
    use super::Simd;

    /// How a number reaches a vector.
    pub trait Lanes: Copy + Sync {
        /// As a float.
        fn as_f64(self) -> f64;
        /// Whether it is null.
        fn is_null(self) -> bool;
        /// The first numbers of a slice that has as many as a vector has lanes.
        fn load<S: Simd>(simd: S, from: &[Self]) -> S::Vector;
        /// Whether any number of a slice is null.
        fn any_null<S: Simd>(simd: S, column: &[Self]) -> bool;
    }

    impl Lanes for f64 {
        #[inline(always)]
        fn as_f64(self) -> f64 {
            self
        }

        #[inline(always)]
        fn is_null(self) -> bool {
            self.is_nan()
        }

        #[inline(always)]
        fn load<S: Simd>(simd: S, from: &[f64]) -> S::Vector {
            simd.load(from)
        }

        #[inline(always)]
        fn any_null<S: Simd>(simd: S, column: &[f64]) -> bool {
            let mut chunks = column.chunks_exact(2 * S::LANES);
            let mut known = simd.known(simd.splat(0.0));
            let all = simd.bits(known);
            for chunk in &mut chunks {
                let (left, right) = (simd.load(chunk), simd.load(&chunk[S::LANES..]));
                known = simd.both(known, simd.both(simd.known(left), simd.known(right)));
            }
            simd.bits(known) != all || chunks.remainder().iter().any(|value| value.is_nan())
        }
    }

    impl Lanes for i64 {
        #[inline(always)]
        fn as_f64(self) -> f64 {
            self as f64
        }

        #[inline(always)]
        fn is_null(self) -> bool {
            false
        }

        #[inline(always)]
        fn load<S: Simd>(simd: S, from: &[i64]) -> S::Vector {
            simd.load_i64(from)
        }

        #[inline(always)]
        fn any_null<S: Simd>(_: S, _: &[i64]) -> bool {
            false
        }
    }
}
