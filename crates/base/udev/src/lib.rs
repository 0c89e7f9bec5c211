//! Rules of udev as text: what they are made of, what they set of a device that appears, and those that planish writes.
//!
//! Pure: text in, text out. Which files a machine has, and what its devices are, is found elsewhere and handed in as a
//! [`Device`].
//!
//! Invariant: what a rule asks and nobody here can tell is [`Holds::Maybe`], and what it sets then is no fact. A rule
//! that udev itself would refuse sets nothing.
//!
//! Non-goals: names and links of devices, programs whose result a rule asks for (`PROGRAM`, `IMPORT`), tags.
//!
//! Source: udev(7) of systemd 252, and `udev-rules.c` for what the page leaves open.
#![forbid(unsafe_code)]

mod command;
mod follow;
mod glob;
mod parse;
mod write;

pub use command::{Command, commands, words};
pub use follow::{Action, Device, Effect, File, Holds, Known, Parent, Target, assigns_to, follow};
pub use glob::{matches, means};
pub use parse::{Operator, Part, Rule, rules};
pub use write::{DISK_KEYS, DiskKey, Nic, card_rule, disk_rule, is_own, key};
