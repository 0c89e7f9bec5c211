//! AVX-512: eight lanes, masks in registers of their own.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Exists only inside [`run`].
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// Whether the CPU has what [`run`] needs.
pub(super) fn is_here() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
}

/// Runs a kernel with the features on.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

/// The low `count` bits of a mask of eight lanes.
#[inline(always)]
fn low_bits(count: usize) -> __mmask8 {
    if count >= 8 { 0xff } else { (1 << count) - 1 }
}

/// The first 24 numbers of a slice; `other` where there is none.
///
/// # Safety
/// As of [`run`].
#[inline(always)]
unsafe fn few(other: __m512d, values: &[f64]) -> [__m512d; 3] {
    let from = values.as_ptr();
    // SAFETY: the caller's promise; lanes beyond the end of the slice are behind the mask, and not read.
    unsafe {
        let lanes = _bzhi_u32(0xff_ffff, values.len().min(24) as u32);
        [
            _mm512_mask_loadu_pd(other, lanes as u8, from),
            _mm512_mask_loadu_pd(other, (lanes >> 8) as u8, from.wrapping_add(8)),
            _mm512_mask_loadu_pd(other, (lanes >> 16) as u8, from.wrapping_add(16)),
        ]
    }
}

impl Simd for Avx512 {
    const LANES: usize = 8;
    type Vector = __m512d;
    type Mask = __mmask8;

    methods! {
        splat(value: f64) -> __m512d { _mm512_set1_pd(value) }
        load(from: &[f64]) -> __m512d { _mm512_loadu_pd(from[..8].as_ptr()) }
        load_i64(from: &[i64]) -> __m512d {
            _mm512_cvtepi64_pd(_mm512_loadu_epi64(from[..8].as_ptr()))
        }
        load_part(from: &[f64]) -> __m512d {
            _mm512_mask_loadu_pd(_mm512_set1_pd(f64::NAN), low_bits(from.len()), from.as_ptr())
        }
        store(vector: __m512d, to: &mut [f64]) -> () { _mm512_storeu_pd(to[..8].as_mut_ptr(), vector) }
        add(left: __m512d, right: __m512d) -> __m512d { _mm512_add_pd(left, right) }
        mul(left: __m512d, right: __m512d) -> __m512d { _mm512_mul_pd(left, right) }
        mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d { _mm512_fmadd_pd(a, b, c) }
        lower(best: __m512d, value: __m512d) -> __m512d { _mm512_min_pd(value, best) }
        higher(best: __m512d, value: __m512d) -> __m512d { _mm512_max_pd(value, best) }
        known(vector: __m512d) -> __mmask8 { _mm512_cmp_pd_mask::<_CMP_ORD_Q>(vector, vector) }
        keep(mask: __mmask8, vector: __m512d) -> __m512d { _mm512_maskz_mov_pd(mask, vector) }
        sum(vector: __m512d) -> f64 { _mm512_reduce_add_pd(vector) }
        lowest(vector: __m512d) -> f64 { _mm512_reduce_min_pd(vector) }
        highest(vector: __m512d) -> f64 { _mm512_reduce_max_pd(vector) }
        last(vector: __m512d) -> f64 {
            let high = _mm512_extractf64x2_pd::<3>(vector);
            _mm_cvtsd_f64(_mm_unpackhi_pd(high, high))
        }
        scan(vector: __m512d, powers: &[__m512d; 3]) -> __m512d {
            let zero = _mm512_setzero_si512();
            let one = _mm512_alignr_epi64::<7>(_mm512_castpd_si512(vector), zero);
            let vector = _mm512_fmadd_pd(powers[0], _mm512_castsi512_pd(one), vector);
            let two = _mm512_alignr_epi64::<6>(_mm512_castpd_si512(vector), zero);
            let vector = _mm512_fmadd_pd(powers[1], _mm512_castsi512_pd(two), vector);
            let four = _mm512_alignr_epi64::<4>(_mm512_castpd_si512(vector), zero);
            _mm512_fmadd_pd(powers[2], _mm512_castsi512_pd(four), vector)
        }
        count_below(times: &[i64], time: i64) -> usize {
            let times = _mm512_loadu_epi64(times[..8].as_ptr());
            _mm512_cmplt_epi64_mask(times, _mm512_set1_epi64(time)).count_ones() as usize
        }
        equal_keys(keys: &[u32], key: u32) -> u32 {
            let all = if keys.len() >= 16 { 0xffff } else { (1u16 << keys.len()) - 1 };
            let keys = _mm512_maskz_loadu_epi32(all, keys.as_ptr().cast());
            u32::from(_mm512_mask_cmpeq_epi32_mask(all, keys, _mm512_set1_epi32(key.cast_signed())))
        }
    }

    #[inline(always)]
    fn both(self, left: __mmask8, right: __mmask8) -> __mmask8 {
        left & right
    }

    #[inline(always)]
    fn bits(self, mask: __mmask8) -> u32 {
        u32::from(mask)
    }

    methods! {
        // Three vectors, however many there are: nobody can foresee how many, and a branch costs more than a load.
        sum_of_few(values: &[f64]) -> f64 {
            let [first, second, third] = few(_mm512_setzero_pd(), values);
            _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(first, second), third))
        }
        lowest_of_few(values: &[f64]) -> f64 {
            let [first, second, third] = few(_mm512_set1_pd(f64::INFINITY), values);
            _mm512_reduce_min_pd(_mm512_min_pd(_mm512_min_pd(first, second), third))
        }
        highest_of_few(values: &[f64]) -> f64 {
            let [first, second, third] = few(_mm512_set1_pd(f64::NEG_INFINITY), values);
            _mm512_reduce_max_pd(_mm512_max_pd(_mm512_max_pd(first, second), third))
        }
    }

    pairs!();
}
