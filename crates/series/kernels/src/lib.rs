//! Time-series kernels over plain column slices.
//!
//! A kernel is a pure function of its columns: no file, no thread, no lock, no allocation on the hot path and
//! no unsafe code. Whoever calls it owns the memory, which is the point: the same kernel runs over 4 KB
//! pages, huge pages or a file map, and a trial can tell what the pages alone are worth.
//!
//! Every kernel keeps these rules, so that a query means the same whichever kernel answers it:
//!
//! - **Null is NaN.** A null takes no part in an aggregate; an aggregate of nothing is NaN, a count or sum of
//!   nothing is 0. Infinities are values and follow IEEE 754.
//! - **Time is a signed 64-bit count** of any one unit, ascending; ties are allowed and keep their order. A
//!   column is checked once, when it becomes [`Times`]; what is out of order is an error there, not a wrong
//!   answer later.
//! - **Buckets are floored**, so that -1 and +1 never share one.
//! - **Chunks carry.** What has a memory ([`Xbar`], [`Ema`], [`Vwap`]) may be fed in pieces cut anywhere.
//! - **No cancellation.** Sums are only ever added to, never subtracted from: one large outlier cannot spoil
//!   the windows after it.
//! - **Linear time** in the rows of all inputs together.
#![forbid(unsafe_code)]

mod asof;
mod column;
mod ema;
mod error;
mod lanes;
mod lookup;
#[cfg(test)]
mod testing;
mod vwap;
mod window;
mod xbar;

pub use asof::{AsofJoin, NO_ROW};
pub use column::{Keys, Times};
pub use ema::Ema;
pub use error::KernelError;
pub use lookup::{Bucket, LookupTable};
pub use vwap::{Vwap, vwap_by_key};
pub use window::{WindowAggregate, WindowJoin};
pub use xbar::{Bar, Xbar};
