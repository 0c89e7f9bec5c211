//! Settings of other tools, read as profiles; profiles, written for other tools.
//!
//! Everything here is pure: text in, values out. A line of a foreign file is *accepted*, and then it is a wanted
//! value of one knob, or *refused* with the reason; nothing is passed over in silence. What is written is what a
//! plan would write, so that a file that was exported and imported again gives the same plan.
//!
//! | format | read | written |
//! |---|---|---|
//! | shell script of `sysctl -w` and `echo > file` lines | yes | yes |
//! | `sysctl.d`, `tmpfiles.d` | yes | yes, with a unit |
//! | tuned profile | yes | yes |
//! | kernel arguments | yes | yes |
//! | rules of udev | yes | for disks, beside `tmpfiles.d` |
//! | units of systemd, drop-ins | limits of services, and what a shell sets | drop-ins, in all that are no tuned |
//! | saptune note | yes | |
//! | Ansible tasks, Node Tuning object | yes | yes |
//!
//! Non-goals: conditions and programs of the foreign file. A line that needs them is refused, since what it would do is
//! not in the text. A file that is none of its format is refused whole: of a unit that was read as lines of tmpfiles.d,
//! six of them might fit, and a profile of six lines would be left.

#![forbid(unsafe_code)]

mod address;
mod error;
mod export;
mod import;
mod item;
mod pattern;
mod threads;

pub use error::ExchangeError;
pub use export::{ArgumentsBy, ExportFormat, ExportedFile, beyond, export, export_by};
pub use import::{
    Asked, Files, ImportFormat, Imported, ImportedLine, Judge, Mistaken, NamedFile, TOGETHER, import,
    import_files, import_with, recognise, recognise_file, text_of,
};
pub use item::Item;
