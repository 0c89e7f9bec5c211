//! Files of others, read where they lie: Parquet, CSV and Arrow.
//!
//! ```text
//!   FROM 'a.parquet'  ───────────────────────────┐
//!   FROM read_csv('b/*.csv', delim = ';') ─ call ─┴─> Spec ── places ──> files that may be read ──> ListingTable
//! ```
//!
//! A name that is no table's is a path if it ends as a file of a known format. Calls become such names while the text
//! is parsed, since DataFusion opens tables by name before it plans, and without waiting it could not look into a file.
//!
//! Invariants:
//!
//! - **Nothing is read that is not allowed**: by default no file at all; below a folder, what really lies there,
//!   however its path is written and whatever links lead out.
//! - **A plan of files is not kept**: it holds which files there were, and where their rows lie.

mod call;
mod places;
mod schema;
mod spec;

pub use places::Files;

pub(crate) use call::as_names;
pub(crate) use schema::FilesSchema;
