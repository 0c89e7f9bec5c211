//! Vector instructions, chosen at run time.
//!
//! A kernel is written once, generic over [`Simd`], and compiled once for each instruction set: its entry
//! point is a [`Kernel`], whose body is inlined into a function that has the features switched on. Which of
//! them runs is a value, [`Isa`], that only exists where the CPU has the instructions; so tests can force
//! each one, and no environment variable can.
//!
//! ```text
//!   Isa::best().run(kernel)  ->  avx512::run(kernel)  ->  kernel.run(Avx512)   all inlined, features on
//!                            ->  scalar::run(kernel)  ->  kernel.run(Scalar)
//! ```
//!
//! Sums differ between instruction sets by rounding only: the number of lanes decides the order of additions.

/// Methods of an implementation of [`Simd`], each a block over intrinsics.
macro_rules! methods {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty { $($body:tt)* })*) => { $(
        #[inline(always)]
        fn $name(self, $($arg: $type),*) -> $out {
            // SAFETY: a value of the type of `self` exists only where the CPU has every feature that is used
            // here. What is read or written through a pointer lies in an array, in a slice that the body has
            // just cut to size, or behind a mask that leaves out what does not.
            unsafe { $($body)* }
        }
    )* };
}

#[cfg(target_arch = "x86_64")]
#[macro_use]
mod pair_x86;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use std::fmt;

/// An instruction set that this CPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Scalar,
}

impl Isa {
    /// What every CPU has; its lanes are plain variables.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// The widest set that this CPU has.
    #[must_use]
    pub fn best() -> Self {
        Self::all().next().unwrap_or(Self::SCALAR)
    }

    /// Every set that this CPU has, widest first; the last one is [`SCALAR`](Self::SCALAR).
    pub fn all() -> impl Iterator<Item = Self> {
        let sets: &[(Set, bool)] = &[
            #[cfg(target_arch = "x86_64")]
            (Set::Avx512, avx512::is_here()),
            #[cfg(target_arch = "x86_64")]
            (Set::Avx2, avx2::is_here()),
            #[cfg(target_arch = "aarch64")]
            (Set::Neon, true),
            (Set::Scalar, true),
        ];
        let here: Vec<Self> = sets.iter().filter(|set| set.1).map(|set| Self(set.0)).collect();
        here.into_iter()
    }

    /// The set of this name (`avx512`, `avx2`, `neon`, `scalar`), where this CPU has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|isa| isa.name() == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon",
            Set::Scalar => "scalar",
        }
    }

    /// Runs a kernel with these instructions.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the field is private and set in `all` only, after `is_here` found every feature.
            Set::Avx512 => unsafe { avx512::run(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::Avx2 => unsafe { avx2::run(kernel) },
            #[cfg(target_arch = "aarch64")]
            Set::Neon => kernel.run(neon::Neon),
            Set::Scalar => kernel.run(scalar::Scalar),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A function that is generic over the instructions. Its `run` must be `#[inline(always)]`, and so must be
/// everything below it that handles vectors: what is not inlined has no features.
pub trait Kernel {
    /// What it returns.
    type Output;

    /// Does it.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Operations on vectors of `f64`. A value of an implementing type is the proof that the CPU has them.
///
/// Masks are of lanes; as bits, lane 0 is the lowest.
pub trait Simd: Copy {
    /// Lanes of a vector.
    const LANES: usize;
    /// `LANES` numbers.
    type Vector: Copy;
    /// `LANES` truth values.
    type Mask: Copy;
    /// Two numbers.
    type Pair: Copy;

    /// `value` in every lane.
    fn splat(self, value: f64) -> Self::Vector;
    /// The first `LANES` numbers of a slice that has as many.
    fn load(self, from: &[f64]) -> Self::Vector;
    /// The first `LANES` numbers of a slice that has as many, converted.
    fn load_i64(self, from: &[i64]) -> Self::Vector;
    /// The numbers of a slice, of which the first `LANES` count; NaN in the lanes beyond its end.
    fn load_part(self, from: &[f64]) -> Self::Vector;
    /// To the first `LANES` places of a slice that has as many.
    fn store(self, vector: Self::Vector, to: &mut [f64]);
    /// Sums.
    fn add(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    /// Products.
    fn mul(self, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    /// `a * b + c`, rounded once or twice.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The lower of each two; `best` where `value` is NaN.
    fn lower(self, best: Self::Vector, value: Self::Vector) -> Self::Vector;
    /// The higher of each two; `best` where `value` is NaN.
    fn higher(self, best: Self::Vector, value: Self::Vector) -> Self::Vector;
    /// Which lanes are not NaN.
    fn known(self, vector: Self::Vector) -> Self::Mask;
    /// Where both are true.
    fn both(self, left: Self::Mask, right: Self::Mask) -> Self::Mask;
    /// The lanes of the mask, 0 elsewhere.
    fn keep(self, mask: Self::Mask, vector: Self::Vector) -> Self::Vector;
    /// The mask as bits.
    fn bits(self, mask: Self::Mask) -> u32;
    /// Sum of all lanes.
    fn sum(self, vector: Self::Vector) -> f64;
    /// Lowest lane of a vector without NaN.
    fn lowest(self, vector: Self::Vector) -> f64;
    /// Highest lane of a vector without NaN.
    fn highest(self, vector: Self::Vector) -> f64;
    /// The last lane.
    fn last(self, vector: Self::Vector) -> f64;
    /// Weighted prefix sums: lane `i` becomes the sum over `j <= i` of lane `j` times `c` to the `i - j`,
    /// given `c`, `c^2` and `c^4` in every lane.
    fn scan(self, vector: Self::Vector, powers: &[Self::Vector; 3]) -> Self::Vector;
    /// How many of the first `LANES` times, which ascend, lie below `time`. The slice has as many.
    fn count_below(self, times: &[i64], time: i64) -> usize;
    /// Bit `i` is set where key `i` equals `key`; at most 16 keys.
    fn equal_keys(self, keys: &[u32], key: u32) -> u32;
    /// Asks for the cache line of an element, which need not exist.
    fn prefetch<T>(self, slice: &[T], index: usize);

    /// Two numbers.
    fn pair(self, low: f64, high: f64) -> Self::Pair;
    /// Reads two numbers.
    fn pair_load(self, from: &[f64; 2]) -> Self::Pair;
    /// Writes two numbers.
    fn pair_store(self, pair: Self::Pair, to: &mut [f64; 2]);
    /// Two sums.
    fn pair_add(self, left: Self::Pair, right: Self::Pair) -> Self::Pair;
    /// The higher of each two; `best` where `value` is NaN.
    fn pair_higher(self, best: Self::Pair, value: Self::Pair) -> Self::Pair;

    /// Sum of at most 24 numbers without NaN.
    #[inline(always)]
    fn sum_of_few(self, values: &[f64]) -> f64 {
        let add = |sum, values: &[f64]| {
            let vector = self.load_part(values);
            self.add(sum, self.keep(self.known(vector), vector))
        };
        self.sum(values.chunks(Self::LANES).fold(self.splat(0.0), add))
    }

    /// The lowest of at most 24 numbers without NaN; infinity of none.
    #[inline(always)]
    fn lowest_of_few(self, values: &[f64]) -> f64 {
        let lower = |best, values: &[f64]| self.lower(best, self.load_part(values));
        self.lowest(values.chunks(Self::LANES).fold(self.splat(f64::INFINITY), lower))
    }

    /// The highest of at most 24 numbers without NaN; minus infinity of none.
    #[inline(always)]
    fn highest_of_few(self, values: &[f64]) -> f64 {
        let higher = |best, values: &[f64]| self.higher(best, self.load_part(values));
        self.highest(values.chunks(Self::LANES).fold(self.splat(f64::NEG_INFINITY), higher))
    }
}

/// Powers 1, 2 and 4 of a factor in every lane, as [`Simd::scan`] wants them.
#[inline(always)]
pub(crate) fn scan_powers<S: Simd>(simd: S, factor: f64) -> [S::Vector; 3] {
    let square = factor * factor;
    [simd.splat(factor), simd.splat(square), simd.splat(square * square)]
}

#[cfg(test)]
mod tests;
