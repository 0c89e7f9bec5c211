//! Pairs and prefetch on x86-64, with instructions that every such CPU has.

/// The pair operations of [`Simd`](super::Simd).
macro_rules! pairs {
    () => {
        type Pair = std::arch::x86_64::__m128d;

        methods! {
            pair(low: f64, high: f64) -> __m128d { _mm_set_pd(high, low) }
            pair_load(from: &[f64; 2]) -> __m128d { _mm_loadu_pd(from.as_ptr()) }
            pair_store(pair: __m128d, to: &mut [f64; 2]) -> () { _mm_storeu_pd(to.as_mut_ptr(), pair) }
            pair_add(left: __m128d, right: __m128d) -> __m128d { _mm_add_pd(left, right) }
            // `maxpd` returns its second operand when either is NaN.
            pair_higher(best: __m128d, value: __m128d) -> __m128d { _mm_max_pd(value, best) }
        }

        #[inline(always)]
        fn prefetch<T>(self, slice: &[T], index: usize) {
            let place = slice.as_ptr().wrapping_add(index).cast();
            // SAFETY: a prefetch reads nothing that the program can see and never faults, wherever it points.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place) }
        }
    };
}
