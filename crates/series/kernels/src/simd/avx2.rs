//! AVX2: four lanes.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Exists only inside [`run`].
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Whether the CPU has what [`run`] needs.
pub(super) fn is_here() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
}

/// Runs a kernel with the features on.
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// The first `4 - n` or `8 - n` lanes of what is read `n` elements into these are chosen.
const FIRST_OF_4: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
const FIRST_OF_8: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

impl Simd for Avx2 {
    const LANES: usize = 4;
    type Vector = __m256d;
    type Mask = __m256d;

    methods! {
        splat(value: f64) -> __m256d { _mm256_set1_pd(value) }
        load(from: &[f64]) -> __m256d { _mm256_loadu_pd(from[..4].as_ptr()) }
        load_i64(from: &[i64]) -> __m256d {
            // Both halves go into the fraction of a float of fixed exponent, whose bias is then taken off:
            // 2^52 in the low half; 2^84 and, for the sign, 2^63 in the high one.
            let whole = _mm256_loadu_si256(from[..4].as_ptr().cast());
            let low = _mm256_blend_epi32::<0b0101_0101>(_mm256_set1_epi64x(0x4330_0000_0000_0000), whole);
            let high = _mm256_srli_epi64::<32>(whole);
            let high = _mm256_xor_si256(high, _mm256_set1_epi64x(0x4530_0000_8000_0000));
            let bias = _mm256_castsi256_pd(_mm256_set1_epi64x(0x4530_0000_8010_0000));
            _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), bias), _mm256_castsi256_pd(low))
        }
        load_part(from: &[f64]) -> __m256d {
            let mask = _mm256_loadu_si256(FIRST_OF_4[4 - from.len().min(4)..][..4].as_ptr().cast());
            let values = _mm256_maskload_pd(from.as_ptr(), mask);
            _mm256_blendv_pd(_mm256_set1_pd(f64::NAN), values, _mm256_castsi256_pd(mask))
        }
        store(vector: __m256d, to: &mut [f64]) -> () { _mm256_storeu_pd(to[..4].as_mut_ptr(), vector) }
        add(left: __m256d, right: __m256d) -> __m256d { _mm256_add_pd(left, right) }
        mul(left: __m256d, right: __m256d) -> __m256d { _mm256_mul_pd(left, right) }
        mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d { _mm256_fmadd_pd(a, b, c) }
        lower(best: __m256d, value: __m256d) -> __m256d { _mm256_min_pd(value, best) }
        higher(best: __m256d, value: __m256d) -> __m256d { _mm256_max_pd(value, best) }
        known(vector: __m256d) -> __m256d { _mm256_cmp_pd::<_CMP_ORD_Q>(vector, vector) }
        both(left: __m256d, right: __m256d) -> __m256d { _mm256_and_pd(left, right) }
        keep(mask: __m256d, vector: __m256d) -> __m256d { _mm256_and_pd(mask, vector) }
        bits(mask: __m256d) -> u32 { _mm256_movemask_pd(mask).cast_unsigned() }
        sum(vector: __m256d) -> f64 {
            let two = _mm_add_pd(_mm256_castpd256_pd128(vector), _mm256_extractf128_pd::<1>(vector));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
        lowest(vector: __m256d) -> f64 {
            let two = _mm_min_pd(_mm256_castpd256_pd128(vector), _mm256_extractf128_pd::<1>(vector));
            _mm_cvtsd_f64(_mm_min_sd(two, _mm_unpackhi_pd(two, two)))
        }
        highest(vector: __m256d) -> f64 {
            let two = _mm_max_pd(_mm256_castpd256_pd128(vector), _mm256_extractf128_pd::<1>(vector));
            _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)))
        }
        last(vector: __m256d) -> f64 {
            let high = _mm256_extractf128_pd::<1>(vector);
            _mm_cvtsd_f64(_mm_unpackhi_pd(high, high))
        }
        scan(vector: __m256d, powers: &[__m256d; 3]) -> __m256d {
            let zero = _mm256_setzero_pd();
            let one = _mm256_blend_pd::<0b0001>(_mm256_permute4x64_pd::<0b10_01_00_00>(vector), zero);
            let vector = _mm256_fmadd_pd(powers[0], one, vector);
            let two = _mm256_permute2f128_pd::<0x08>(vector, vector);
            _mm256_fmadd_pd(powers[1], two, vector)
        }
        count_below(times: &[i64], time: i64) -> usize {
            let times = _mm256_loadu_si256(times[..4].as_ptr().cast());
            let below = _mm256_cmpgt_epi64(_mm256_set1_epi64x(time), times);
            _mm256_movemask_pd(_mm256_castsi256_pd(below)).count_ones() as usize
        }
        equal_keys(keys: &[u32], key: u32) -> u32 {
            let wanted = _mm256_set1_epi32(key.cast_signed());
            let (low, high) = keys.split_at(keys.len().min(8));
            let mut bits = 0;
            for (part, shift) in [(low, 0), (high, 8)] {
                let mask = FIRST_OF_8[8 - part.len().min(8)..][..8].as_ptr();
                let mask = _mm256_loadu_si256(mask.cast());
                let keys = _mm256_maskload_epi32(part.as_ptr().cast(), mask);
                let equal = _mm256_and_si256(_mm256_cmpeq_epi32(keys, wanted), mask);
                bits |= _mm256_movemask_ps(_mm256_castsi256_ps(equal)).cast_unsigned() << shift;
            }
            bits
        }
    }

    pairs!();
}
