//! NEON, which every 64-bit ARM has: two lanes.

use std::arch::aarch64::*;

use super::Simd;

/// Needs nothing that the target does not have.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

impl Simd for Neon {
    const LANES: usize = 2;
    type Vector = float64x2_t;
    type Mask = uint64x2_t;
    type Pair = float64x2_t;

    methods! {
        splat(value: f64) -> float64x2_t { vdupq_n_f64(value) }
        load(from: &[f64]) -> float64x2_t { vld1q_f64(from[..2].as_ptr()) }
        load_i64(from: &[i64]) -> float64x2_t { vcvtq_f64_s64(vld1q_s64(from[..2].as_ptr())) }
        load_part(from: &[f64]) -> float64x2_t {
            let mut lanes = [f64::NAN; 2];
            let count = from.len().min(2);
            lanes[..count].copy_from_slice(&from[..count]);
            vld1q_f64(lanes.as_ptr())
        }
        store(vector: float64x2_t, to: &mut [f64]) -> () { vst1q_f64(to[..2].as_mut_ptr(), vector) }
        add(left: float64x2_t, right: float64x2_t) -> float64x2_t { vaddq_f64(left, right) }
        mul(left: float64x2_t, right: float64x2_t) -> float64x2_t { vmulq_f64(left, right) }
        mul_add(a: float64x2_t, b: float64x2_t, c: float64x2_t) -> float64x2_t { vfmaq_f64(c, a, b) }
        // The `nm` forms return the number where the other operand is NaN.
        lower(best: float64x2_t, value: float64x2_t) -> float64x2_t { vminnmq_f64(best, value) }
        higher(best: float64x2_t, value: float64x2_t) -> float64x2_t { vmaxnmq_f64(best, value) }
        known(vector: float64x2_t) -> uint64x2_t { vceqq_f64(vector, vector) }
        both(left: uint64x2_t, right: uint64x2_t) -> uint64x2_t { vandq_u64(left, right) }
        keep(mask: uint64x2_t, vector: float64x2_t) -> float64x2_t {
            vreinterpretq_f64_u64(vandq_u64(mask, vreinterpretq_u64_f64(vector)))
        }
        bits(mask: uint64x2_t) -> u32 {
            (vgetq_lane_u64::<0>(mask) & 1) as u32 | (vgetq_lane_u64::<1>(mask) & 2) as u32
        }
        sum(vector: float64x2_t) -> f64 { vaddvq_f64(vector) }
        lowest(vector: float64x2_t) -> f64 { vminnmvq_f64(vector) }
        highest(vector: float64x2_t) -> f64 { vmaxnmvq_f64(vector) }
        last(vector: float64x2_t) -> f64 { vgetq_lane_f64::<1>(vector) }
        scan(vector: float64x2_t, powers: &[float64x2_t; 3]) -> float64x2_t {
            vfmaq_f64(vector, powers[0], vextq_f64::<1>(vdupq_n_f64(0.0), vector))
        }
        count_below(times: &[i64], time: i64) -> usize {
            let below = vcltq_s64(vld1q_s64(times[..2].as_ptr()), vdupq_n_s64(time));
            vaddvq_u64(vshrq_n_u64::<63>(below)) as usize
        }
        equal_keys(keys: &[u32], key: u32) -> u32 {
            const BITS: [u32; 4] = [1, 2, 4, 8];
            let (wanted, bits) = (vdupq_n_u32(key), vld1q_u32(BITS.as_ptr()));
            let (fours, rest) = keys[..keys.len().min(16)].as_chunks::<4>();
            let mut found = 0;
            for (index, four) in fours.iter().enumerate() {
                let equal = vandq_u32(vceqq_u32(vld1q_u32(four.as_ptr()), wanted), bits);
                found |= vaddvq_u32(equal) << (4 * index);
            }
            let rest_begin = 4 * fours.len();
            rest.iter().zip(rest_begin..).fold(found, |bits, (&other, row)| bits | u32::from(other == key) << row)
        }
        pair(low: f64, high: f64) -> float64x2_t { vsetq_lane_f64::<1>(high, vdupq_n_f64(low)) }
        pair_load(from: &[f64; 2]) -> float64x2_t { vld1q_f64(from.as_ptr()) }
        pair_store(pair: float64x2_t, to: &mut [f64; 2]) -> () { vst1q_f64(to.as_mut_ptr(), pair) }
        pair_add(left: float64x2_t, right: float64x2_t) -> float64x2_t { vaddq_f64(left, right) }
        pair_higher(best: float64x2_t, value: float64x2_t) -> float64x2_t { vmaxnmq_f64(best, value) }
    }

    #[inline(always)]
    fn prefetch<T>(self, _: &[T], _: usize) {}
}
