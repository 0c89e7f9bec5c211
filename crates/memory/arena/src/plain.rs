//! Types that all-zero memory is a valid value of.

/// A type for which every byte zero is a valid value and which needs no drop, so that fresh pages of the
/// kernel are a slice of it as they are.
///
/// # Safety
/// All-zero bytes must be a valid value, and the type must not be invalidated by being forgotten without
/// drop.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($kind:ty)*) => {$(
        // SAFETY: every bit pattern, all-zero included, is a value of a primitive number, which has no drop.
        unsafe impl Plain for $kind {}
    )*};
}

plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array is its items side by side without gaps, and all-zero bytes are a value of each item.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
