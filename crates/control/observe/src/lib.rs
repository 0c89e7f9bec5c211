//! A host as one value: [`observe`] reads everything that decide and verify will ask for, once.
//!
//! Invariants: nothing is opened for writing, nothing is started, and no file that is missing, odd or
//! forbidden is an error. What could not be read is said to be so
//! ([`Reading::unread`](planish_model::Reading)), since "I may not look" and "it is not there" lead to
//! different verdicts.
//!
//! Everything is read through a [`Host`](planish_host::Host), live or recorded, and the host remembers what
//! was asked for: recording a machine copies exactly the files that this crate reads.
//!
//! | module | reads |
//! |---|---|
//! | [`facts`] | the named facts of finding rules; the list is there |
//! | `knobs` | every place of every knob: value, offered words, who may write |
//! | `caches` | how the caches can be shared out, when a profile asks for it by [`caches()`] |
//! | `layout` | CPUs, devices, interrupts and units, when a placement asks for them by [`machine()`] |
//! | `placed` | the files of units that a placement names, by [`machine()`]; what is read behind ours, by [`later()`] |
//! | `pools` | huge-page pools and free blocks |
//! | `machine` | kernel, CPUs, nodes, memory; guest and container by evidence |
//! | `boot` | which boot loader starts this machine, and what it gives the next kernel |
//! | `persisted` | sysctl.d, tmpfiles.d, kernel command line: what the next boot sets |
//! | `service` | one service through its own eyes, when it is asked for by [`service()`] |
//! | `file_limits` | the open files that units and log-ins are given, by [`file_limits()`] |
//! | `units` | settings of the units that a profile means, by [`unit_settings()`] |
//! | `versions` | which version of a program runs or is installed, for profiles that are made for some |
//! | `writers` | other programs that set knobs: their processes, files, units and profiles |

#![forbid(unsafe_code)]

mod boot;
mod caches;
mod demand;
pub mod facts;
mod file_limits;
mod knobs;
mod layout;
mod machine;
mod observe;
mod parts;
mod persisted;
mod placed;
mod pools;
mod service;
mod tables;
#[cfg(test)]
mod testing;
mod units;
mod versions;
mod writers;

pub use boot::RUNNING;
pub use boot::alone::{menu_alone, names_of};
pub use boot::around::{Around, around_variable};
pub use boot::before::{Word, default_words, lines_before, with_variables};
pub use boot::grub::{WithOurs, with_ours};
pub use boot::lines::{BootLine, boot_lines, next_words};
pub use boot::once::{carried_over, default_entry, look as once, seen as once_seen};
pub use caches::caches;
pub use file_limits::{file_limits, log_in_limits};
pub use layout::machine;
pub use observe::{glance, kernel, observe, observe_some};
pub use parts::limits_left;
pub use persisted::given::GivenPools;
pub use persisted::line_sets;
pub use placed::masked;
pub use service::{ServiceName, service};
pub use units::{cpus_by_others, given_to_units, later, overruled, services, unit_settings};
pub use versions::{installed, look_at_programs, program, running};
pub use writers::{has_unit, is_systemd};
