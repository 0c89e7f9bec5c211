//! No vector instructions at all: lanes are variables, which still keeps chains of additions apart.

use super::Simd;

/// Needs nothing of the CPU.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

const LANES: usize = 4;

/// Applies a function of one lane to each.
#[inline(always)]
fn each<T>(lane: impl Fn(usize) -> T) -> [T; LANES] {
    [lane(0), lane(1), lane(2), lane(3)]
}

/// `value` where it is less or greater, by `is_better`; `best` where `value` is NaN.
#[inline(always)]
fn higher(best: f64, value: f64) -> f64 {
    if value > best { value } else { best }
}

impl Simd for Scalar {
    const LANES: usize = LANES;
    type Vector = [f64; LANES];
    type Mask = [bool; LANES];
    type Pair = [f64; 2];

    #[inline(always)]
    fn splat(self, value: f64) -> [f64; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f64]) -> [f64; LANES] {
        let from = &from[..LANES];
        each(|lane| from[lane])
    }

    #[inline(always)]
    fn load_i64(self, from: &[i64]) -> [f64; LANES] {
        let from = &from[..LANES];
        each(|lane| from[lane] as f64)
    }

    #[inline(always)]
    fn load_part(self, from: &[f64]) -> [f64; LANES] {
        each(|lane| from.get(lane).copied().unwrap_or(f64::NAN))
    }

    #[inline(always)]
    fn store(self, vector: [f64; LANES], to: &mut [f64]) {
        to[..LANES].copy_from_slice(&vector);
    }

    #[inline(always)]
    fn add(self, left: [f64; LANES], right: [f64; LANES]) -> [f64; LANES] {
        each(|lane| left[lane] + right[lane])
    }

    #[inline(always)]
    fn mul(self, left: [f64; LANES], right: [f64; LANES]) -> [f64; LANES] {
        each(|lane| left[lane] * right[lane])
    }

    #[inline(always)]
    fn mul_add(self, a: [f64; LANES], b: [f64; LANES], c: [f64; LANES]) -> [f64; LANES] {
        // Not `f64::mul_add`, which is a call into the C library where the CPU has no such instruction.
        each(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    fn lower(self, best: [f64; LANES], value: [f64; LANES]) -> [f64; LANES] {
        each(|lane| if value[lane] < best[lane] { value[lane] } else { best[lane] })
    }

    #[inline(always)]
    fn higher(self, best: [f64; LANES], value: [f64; LANES]) -> [f64; LANES] {
        each(|lane| higher(best[lane], value[lane]))
    }

    #[inline(always)]
    fn known(self, vector: [f64; LANES]) -> [bool; LANES] {
        each(|lane| !vector[lane].is_nan())
    }

    #[inline(always)]
    fn both(self, left: [bool; LANES], right: [bool; LANES]) -> [bool; LANES] {
        each(|lane| left[lane] & right[lane])
    }

    #[inline(always)]
    fn keep(self, mask: [bool; LANES], vector: [f64; LANES]) -> [f64; LANES] {
        each(|lane| if mask[lane] { vector[lane] } else { 0.0 })
    }

    #[inline(always)]
    fn bits(self, mask: [bool; LANES]) -> u32 {
        (0..LANES).fold(0, |bits, lane| bits | u32::from(mask[lane]) << lane)
    }

    #[inline(always)]
    fn sum(self, [a, b, c, d]: [f64; LANES]) -> f64 {
        (a + c) + (b + d)
    }

    #[inline(always)]
    fn lowest(self, vector: [f64; LANES]) -> f64 {
        vector.into_iter().fold(f64::INFINITY, f64::min)
    }

    #[inline(always)]
    fn highest(self, vector: [f64; LANES]) -> f64 {
        vector.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    #[inline(always)]
    fn last(self, vector: [f64; LANES]) -> f64 {
        vector[LANES - 1]
    }

    #[inline(always)]
    fn scan(self, [a, b, c, d]: [f64; LANES], powers: &[[f64; LANES]; 3]) -> [f64; LANES] {
        let (one, two) = (powers[0][0], powers[1][0]);
        let (b, c, d) = (one * a + b, one * b + c, one * c + d);
        [a, b, two * a + c, two * b + d]
    }

    #[inline(always)]
    fn count_below(self, times: &[i64], time: i64) -> usize {
        let times = &times[..LANES];
        (0..LANES).map(|lane| usize::from(times[lane] < time)).sum()
    }

    #[inline(always)]
    fn equal_keys(self, keys: &[u32], key: u32) -> u32 {
        keys.iter()
            .take(16)
            .enumerate()
            .fold(0, |bits, (index, &other)| bits | u32::from(other == key) << index)
    }

    #[inline(always)]
    fn prefetch<T>(self, _: &[T], _: usize) {}

    #[inline(always)]
    fn pair(self, low: f64, high: f64) -> [f64; 2] {
        [low, high]
    }

    #[inline(always)]
    fn pair_load(self, from: &[f64; 2]) -> [f64; 2] {
        *from
    }

    #[inline(always)]
    fn pair_store(self, pair: [f64; 2], to: &mut [f64; 2]) {
        *to = pair;
    }

    #[inline(always)]
    fn pair_add(self, left: [f64; 2], right: [f64; 2]) -> [f64; 2] {
        [left[0] + right[0], left[1] + right[1]]
    }

    #[inline(always)]
    fn pair_higher(self, best: [f64; 2], value: [f64; 2]) -> [f64; 2] {
        [higher(best[0], value[0]), higher(best[1], value[1])]
    }
}
