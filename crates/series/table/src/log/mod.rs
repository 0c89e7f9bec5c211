//! The log: what was acknowledged, in the order in which it was, until files hold it.
//!
//! ```text
//!   writers ── batches ──> committer (one thread) ── frame ──> log file ── sync ──> acknowledged
//!                          all that wait, as one frame         one write, one sync for all of them
//!
//!   00000000000000000001.log   00000000000000000417.log       named by the number of their first batch
//!   head │ frame │ frame │     head │ frame │ frame ...
//! ```
//!
//! Invariants:
//!
//! - **Batches are numbered** from 1 without a gap, in the order of the log; the table takes them in in this order.
//! - **A later file proves the earlier ones**: it is made only after they were synced whole.
//! - **Each frame says what was synced before it.** So damage can be told from a torn tail: bytes that a later frame
//!   knows to have been synced cannot have been torn by a loss of power.
//! - **After a failed sync nothing is acknowledged any more**: nobody knows what the disk holds. After a failed write
//!   the frame is cut off again, and the log goes on.

pub(crate) mod batch;
pub(crate) mod committer;
pub(crate) mod frame;
pub(crate) mod reader;
pub(crate) mod tail;
pub(crate) mod writer;

pub use batch::{Batch, Change, Origin};
pub use committer::{Ack, SyncPolicy};
pub use frame::{Bad, Frame, HEAD_BYTES, Head, LOG_VERSION, Scan, scan, search};
pub use reader::Tail;
