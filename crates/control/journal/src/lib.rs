//! The journal: what was done to a host, and what it takes to undo it.
//!
//! One append-only file, `journal.jsonl`, one event a line. It brackets act: the intent, with every original,
//! is on disk (file and folder) before the first write to the host, and an outcome follows each write.
//!
//! ```text
//! {"crc":"9f0c53a1","v":1,"seq":7,"at":1763600000,"boot":"4c1e...","who":"root (sudo ann)","kind":"outcome",...}
//!   |               |     |
//!   |               |     +-- counted from 1 without a gap: a line that was cut out is noticed
//!   |               +-------- version of the format; an older planish refuses a newer one
//!   +------------------------ crc32 of the line without this member
//!
//! [continued -> carried*]
//! intent -> (pool | outcome)* -> applied -> [confirmed] -> undo -> (pool | undone)* -> left-open | closed
//! ```
//!
//! Invariants:
//! - A line is appended by one write, so a kill leaves whole lines and at most one torn tail, which the next
//!   writer cuts off, keeps beside it and tells. Any other damage is refused, with the line and the cure: planish
//!   does not guess what it did.
//! - Only intents and ends are synced. A kill loses nothing that was appended; a power cut may lose outcomes,
//!   but it loses the run-time values of the host with them, and files are compared by content.
//! - With the intent, room for the rest of the entry is reserved, so that a disk that fills up during an apply
//!   cannot keep it from being undone.
//! - A journal that has become long is kept as `journal-NNNNNN.jsonl`, and a new one begins with its open
//!   entries. There is a whole journal at every moment, and [`history`] reads them all.
//! - The writer owns the host-wide lock. Readers need none: they ignore a torn tail.
//!
//! Non-goals: it takes no decision and never reads or writes the host.

#![forbid(unsafe_code)]

mod error;
mod event;
mod journal;
mod ledger;
mod line;
mod lock;
mod orphans;
mod records;
mod salvage;
mod storage;

pub use error::JournalError;
pub use event::{Event, Handed, Intent, NOT_CONFIRMED};
pub use journal::{Author, Journal, history, read, sound_entries};
pub use ledger::Ledger;
pub use line::{FORMAT_VERSION, Torn};
pub use lock::{HostLock, LockError};
pub use records::RecordFault;
pub use storage::{FileStorage, Storage};
