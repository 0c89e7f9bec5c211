//! libplanish: what planish offers to engines that are not written in Rust.
//!
//! `include/planish.h` is the reference: what each function does, and what callers owe it, stands there once. This
//! crate is the other half of that promise:
//!
//! - Nothing unwinds into C: every function runs under [`guard`], and a panic is `PLANISH_ERROR_BUG`.
//! - What C can get wrong and can be seen from here is an error: null, misaligned pointers, numbers that no enumeration
//!   has, memory that is not leased. A pointer to memory that is not there cannot be seen.
//! - A failed call has left the reason and the cure with its thread.
//! - Header and crate cannot drift: a test reads both and compares names, types, values and fields.
//!
//! Not here: anything that changes the machine. Raising a pool or isolating a CPU is the business of the program
//! `planish`; this library only uses what is there, and says what is missing.
#![expect(non_camel_case_types, reason = "the names are those of the header")]

mod achieved;
mod arena;
mod bump;
mod growing;
mod guard;
mod hugify;
mod isolation;
mod numa;
mod pin;
mod pointer;
mod result;

pub use achieved::*;
pub use arena::*;
pub use bump::*;
pub use growing::*;
pub use guard::*;
pub use hugify::*;
pub use isolation::*;
pub use numa::*;
pub use pin::*;
/// The same for programs in Rust.
pub use planish_hugify::{HugifyError, Own, OwnRoute, hugify_self};
pub use result::*;
