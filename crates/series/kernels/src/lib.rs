//! Time-series kernels over plain column slices.
//!
//! A kernel is a pure function of its columns: no file, no lock, and no allocation on the hot path once its
//! scratch memory has grown. Whoever calls it owns the columns, which is the point: the same kernel runs over
//! 4 KB pages, huge pages or a file map, and a trial can tell what the pages alone are worth.
//!
//! Every kernel keeps these rules, so that a query means the same whichever kernel answers it; all of it is
//! told in `docs/series-kernels.md`:
//!
//! - **Null is NaN.** A null takes no part in an aggregate; an aggregate of nothing is NaN, a count or sum of
//!   nothing is 0. Infinities are values and follow IEEE 754. A bitmap becomes NaNs by [`Validity::mask`].
//! - **Time is a signed 64-bit count** of any one unit, ascending; ties are allowed and keep their order. A
//!   column is checked once, when it becomes [`Times`]; what is out of order is an error there, not a wrong
//!   answer later.
//! - **Buckets are floored**, so that -1 and +1 never share one.
//! - **Chunks carry.** What has a memory may be fed in pieces cut anywhere, and partial results merge: the rows
//!   of a table are shared out among the threads of a [`Crew`] with the same result.
//! - **No cancellation.** Sums are only ever added to, never subtracted from: one large outlier cannot spoil
//!   the windows after it. Any two ways to the same sum differ by at most 1e-9 of the sum of magnitudes.
//! - **Linear time** in the rows of all inputs together.
//! - **One source for every CPU.** The instructions are chosen at run time, or by an [`Isa`] that is given.
//!
//! `unsafe` is two fences: the intrinsics in `simd`, and the job of a crew, which borrows from its caller.

mod asof;
mod bars;
mod column;
mod crew;
mod deltas;
mod ema;
mod error;
mod fill;
mod keyed_bars;
mod lookup;
mod moving;
mod number;
mod ranges;
mod sessions;
mod simd;
#[cfg(test)]
mod testing;
mod time_ema;
mod top;
mod twap;
mod vwap;
mod window;
mod xbar;

pub use asof::{AsofJoin, Direction, NO_ROW};
pub use bars::{Bar, BarState, Parts};
pub use column::{Keys, Times, Validity};
pub use crew::{Crew, part_of};
pub use deltas::{Deltas, FillForward};
pub use ema::{Ema, KeyedEma};
pub use error::KernelError;
pub use fill::{Fill, fill_bars};
pub use keyed_bars::{KeyBar, KeyedBars};
pub use lookup::{Bucket, LookupTable};
pub use moving::MovingRows;
pub use number::Number;
pub use sessions::{Session, Sessions};
pub use simd::Isa;
pub use time_ema::TimeEma;
pub use top::{TopN, TopRow};
pub use twap::Twap;
pub use vwap::{KeyedVwap, Vwap};
pub use window::{WindowColumns, WindowJoin};
pub use xbar::{TimeBar, Xbar};
