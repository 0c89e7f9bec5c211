//! Bytes of a program's text -> a huge-page-ready file or mapping.
//!
//! ```text
//! bytes ──> Image ──> Remake ──> new bytes          pure: where segments lie, and how the file is made to fit
//!             │
//! file  ──> Probe: cached, warm, collapse           what the page cache has in huge pages, and how it comes to that
//! file  ──> Trial: loaded, and not run              what the kernel makes of it: base, huge entries
//! process ──> Coverage                              what of its text lies on huge pages, and whether it is its file's
//! own process ──> hugify_self                       the one line for programs that link this
//! ```
//!
//! A page of the page cache is mapped by one entry for 2 MiB when the file is cached in pieces of that size and lies at
//! offsets that fit its addresses. It stays what it was: shared by all processes, backed by the file, with symbols,
//! uprobes and profilers as ever. `docs/text-huge.md` tells the mechanism, and where it works.
//!
//! Nothing here writes a file of the host: what replaces a program is handed to the control plane as bytes.

mod coverage;
mod error;
mod image;
mod own;
mod probe;
mod remake;
#[cfg(test)]
mod testing;
mod trial;

pub use coverage::{Coverage, coverage, refuse_patched, runners};
pub use error::HugifyError;
pub use image::{Image, Kind, Segment};
pub use own::{Own, OwnRoute, Symbols, hugify_self};
pub use probe::{Cached, Probe};
pub use remake::{Insertion, Remake};
pub use trial::try_program;
