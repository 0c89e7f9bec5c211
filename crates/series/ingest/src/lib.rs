//! What clients send, as batches of a table: line protocol, CSV, JSON and streams of Arrow.
//!
//! ```text
//!   bytes ──> Decoder: LineDecoder, CsvDecoder, JsonDecoder, ArrowDecoder ──> Batch ──> Sink: Commit ──> Durable
//!   (pieces that end anywhere)    │                                      (whole rows)   (a few in flight)
//!                                 └──> Outcome: rows, and the faults of others by line and column
//! ```
//!
//! Bytes in, batches out: this crate opens no socket, reads no file and asks no clock.
//!
//! Invariants:
//!
//! - **A row is taken in exactly or not at all.** A decimal never goes by way of a float, a whole number is one, a
//!   value for a column that is not there is a fault unless it is to be left out. A fault tells line, column and cure.
//! - **Pieces do not matter.** The same bytes give the same batches and the same faults, wherever they are cut.
//! - **Memory is bounded**: one batch of each table, one row, and for Arrow one message and the dictionaries.
//! - **No bytes end the program**, whoever sends them.
//!
//! What each format takes is told in `docs/series-ingest.md`.
#![forbid(unsafe_code)]

mod arrow;
mod cell;
mod csv;
mod error;
mod intake;
mod json;
mod line;
mod moment;
mod number;
mod place;
mod rows;
mod sink;
mod target;

pub use arrow::ArrowDecoder;
pub use csv::{CsvDecoder, Header};
pub use error::{Fault, IngestError, What};
pub use intake::{Faults, Options, Outcome, Unknown};
pub use json::JsonDecoder;
pub use line::LineDecoder;
pub use moment::Unit;
pub use rows::Batch;
pub use sink::{Commit, Sink, Taken};
pub use target::Target;

/// What makes rows of the bytes of one format.
pub trait Decoder {
    /// Says when rows arrive that come without a time: nanoseconds since 1970. Without it they are faults.
    fn arrived(&mut self, ns: Option<i64>);

    /// Takes in the next piece of an input, which may end anywhere. Batches go to the sink as they get full.
    ///
    /// # Errors
    /// [`IngestError`], behind which nothing more of the input is taken in.
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError>;

    /// Hands on the rows that are whole, though their batch is not full: for a client that sends seldom. An input
    /// that is taken in as a whole or not at all waits for its end.
    ///
    /// # Errors
    /// Those of the sink.
    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError>;

    /// Ends the input, hands on the rest, and says what became of it. Another input may begin then.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Outcome, IngestError>;
}
