//! A machine to read: the live one, or one recorded in a folder.
//!
//! Everything that planish knows of a machine comes through a [`Host`], so that each read-only command works
//! the same on the live root and on `hosts/<name>`, and so that [`record()`] can copy exactly the files that
//! were asked for. Reading never changes the machine: no file is opened for writing, not even to find out
//! whether that would be allowed (see [`Access`]). What is written to a host is written by `planish-act`.
//!
//! ```text
//! hosts/metal-2s/
//! ├── meta.toml     what the files cannot say: modes, origin, how writes are answered (Meta, Answers)
//! ├── proc/ sys/    trees as the kernel shows them, symbolic links kept
//! ├── etc/ boot/ usr/
//! └── planish/      what the kernel tells through no file: settings of network cards, of mounts (devices)
//! ```
//!
//! A folder without `meta.toml` that holds `proc` or `sys` is accepted as well (other projects' recordings).
#![forbid(unsafe_code)]

mod access;
pub mod activity;
pub mod answers;
mod arguments;
pub mod bytes;
pub mod devices;
mod error;
mod host;
mod identity;
mod kept;
mod meta;
pub mod mounts;
mod natural;
mod near;
mod pattern;
mod properties;
mod record;
mod redact;
pub mod resctrl;
mod resolve;
mod routes;
mod shell;
mod storage;
pub mod threads;
mod walk;

pub use access::Access;
pub use answers::{Answer, Answers};
pub use error::{OpenError, ReadError, RecordError};
pub use host::Host;
pub use kept::is_unit_directive;
pub use meta::{Meta, Origin};
pub use natural::natural_order;
pub use near::Near;
pub use pattern::{Captures, Pattern, PatternError, WILD_MAX};
pub use record::{Recorded, record};
pub use redact::{Redactions, Redactor};
pub use resolve::in_root;
pub use walk::{Match, Walk};
