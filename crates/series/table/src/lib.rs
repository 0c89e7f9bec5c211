//! Time-series tables on arenas, in memory alone ([`Table`]) or with a log and files ([`Durable`]).
//!
//! ```text
//!   Durable ── log, manifest, Parquet files: see `durable`, `log`, `files`
//!     │
//!   Table ── partition (group of symbols, span of time) ── segment ── segment ...    rows in time order
//!     │                                                     │
//!     ├─ Dictionary: symbol text <-> dense number           ├─ one slice of the arena a column
//!     └─ segments that retention has freed, for reuse         └─ zones: lowest and highest of each column
//! ```
//!
//! Invariants:
//!
//! - **Rows of a partition are in time order**, rows of one time in the order in which they came or, in a table with a
//!   key, in that of the key. A batch may come in any order; late rows are merged when they come, so no scan ever waits
//!   for them or misses them.
//! - **With a key there is one row of each**: what comes replaces what was there, and rows are deleted by it.
//! - **An append is whole or nothing**: all memory is taken before the first row is written.
//! - **Segments are right-sized**: the first of a partition holds [`ROWS_FIRST`] rows, each next one twice as many, up
//!   to [`ROWS_LAST`]. A partition of a thousand rows costs a thousand rows.
//! - **Scans copy nothing**: they hand the columns of segments to the kernels, cut to the rows that are asked for.
//!   Segments outside of what is asked for are left out by their zones, unread.
//!
//! A table in memory is owned by one writer; readers borrow it. A durable one may be shared by threads. How it keeps
//! what was acknowledged is told in `docs/series-table.md`.
#![deny(unsafe_code)]

mod dictionary;
mod durable;
mod error;
mod files;
mod key;
pub mod log;
mod partition;
mod scan;
mod schema;
mod segment;
mod storage;
mod table;

pub use dictionary::Dictionary;
pub use durable::{
    Backup, Changes, Compaction, Dropped, Durable, FORMAT_VERSION, Flush, Follower, LostBatches, LostFile,
    MissingSequences, Options, Reading, Recovery, Salvage, Ticket, TimeUnit, salvage,
};
pub use error::TableError;
pub use files::{Codec, Compression, Encoding, FileColumn, FileRows, FileZone, Runs, TableFile};
pub use log::{Ack, Origin, SyncPolicy};
pub use scan::{Filter, Piece};
pub use schema::{Column, Kind, Partitioning, Schema};
pub use segment::{ROWS_FIRST, ROWS_LAST, Zone};
pub use storage::{Disk, Output, Stamp, Storage, View, WriteError};
pub use table::{Cells, Table};
