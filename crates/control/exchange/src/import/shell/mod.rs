//! A shell, as far as it can be known what one does without running anything.
//!
//! A script is read to a tree of commands ([`planish_formats::shell`]) and walked from top to bottom (`walk`) as a
//! shell would run it once, as root and without arguments. At each command it is known whether a shell is *sure* to
//! come by, comes by
//! *under conditions* (`guard`), or *never* does; and of each variable the value, or that only a shell can tell.
//!
//! ```text
//! sysctl -w vm.swappiness=1                    sure
//! [ -e P ] && echo 1 > P                       under a condition that asks for no more than the write itself
//! [ "$(nproc)" -gt 64 ] && echo 1 > P          under one that only a host can tell: refused
//! exit 0; echo 1 > P                           never: refused
//! ```
//!
//! What sets or does something is taken to succeed: a script is written for that. What asks something is taken for
//! neither. Not read are `eval`, other files, and what runs beside (`&`) or at the end (`trap`): they are refused, and
//! what variables they may change is not known from there on.

mod assigned;
mod expand;
mod guard;
mod simple;
mod trap;
mod walk;

pub(super) use expand::Field;
pub(super) use guard::{Place, bare as bare_path};
pub(super) use walk::{Plain, walk};
