//! Groups of resctrl: one text for us, several files for the kernel, which are written in an order that a kill may cut.
//!
//! ```text
//!   none ──mkdir──> no CPUs ──schemata──> ──mode──> ──cpus_list──> made
//!                   └──────────── does nothing to anybody ───────┘
//!   made ──rmdir──> none                  the kernel gives its CPUs to the default group
//! ```
//!
//! The CPUs come last: until then the group has no task and no CPU, and nothing runs with its share. What a kill leaves
//! is told by that and by its name (`planish_model::ValueType::unkept`), is finished by the next write, and taken away
//! by undo. A group that is made is never changed: another share of it is a new one, after the old one was undone.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use planish_host::{Host, ReadError, resctrl};
use planish_model::{CacheGroup, Cpus, NO_GROUP, Schemata};
use rustix::io::Errno;

/// What is done to the files of resctrl, one call of the kernel each.
trait Kernel {
    fn make(&self, folder: &str) -> io::Result<()>;
    fn remove(&self, folder: &str) -> io::Result<()>;
    fn write(&self, path: &str, text: &str) -> io::Result<()>;
}

/// The kernel that we run on.
struct Live;

impl Kernel for Live {
    fn make(&self, folder: &str) -> io::Result<()> {
        fs::create_dir(folder)
    }

    fn remove(&self, folder: &str) -> io::Result<()> {
        // Not its files: the kernel takes them away with the folder, and lets nobody remove one.
        fs::remove_dir(Path::new(folder))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        // One write: the kernel takes each write as a whole.
        let written = file.write(text.as_bytes())?;
        if written == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

/// The share of the default group or of a group of ours; `None` for another place.
pub(super) fn read(place: &str) -> Option<io::Result<String>> {
    let host = Host::live();
    if place == resctrl::DEFAULT {
        return Some(resctrl::schemata(&host, resctrl::MOUNT));
    }
    resctrl::group_at(place).map(|name| resctrl::group(&host, name))
}

/// Sets it; `None` for another place.
pub(super) fn write(place: &str, value: &str) -> Option<io::Result<()>> {
    set(&Host::live(), &Live, place, value)
}

fn set(host: &Host, kernel: &dyn Kernel, place: &str, value: &str) -> Option<io::Result<()>> {
    if place == resctrl::DEFAULT {
        let Some(schemata) = Schemata::parse(value) else { return Some(Err(Errno::INVAL.into())) };
        return Some(told(host, write_schemata(kernel, resctrl::MOUNT, &schemata)));
    }
    let name = resctrl::group_at(place)?;
    let folder = format!("{}/{name}", resctrl::MOUNT);
    if value.trim() == NO_GROUP {
        let gone = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::NOENT);
        return Some(match kernel.remove(&folder) {
            Err(error) if gone(&error) => Ok(()),
            done => told(host, done),
        });
    }
    Some(match CacheGroup::parse(value) {
        Some(group) => make(host, kernel, name, &folder, &group),
        None => Err(Errno::INVAL.into()),
    })
}

/// Makes a group, or finishes one that a kill left. What cannot be finished is taken away again.
fn make(host: &Host, kernel: &dyn Kernel, name: &str, folder: &str, group: &CacheGroup) -> io::Result<()> {
    let there = resctrl::group(host, name)?;
    refuse_made(host, name, &there, group)?;
    let is_left = CacheGroup::parse(&there);
    if there == NO_GROUP {
        told(host, kernel.make(folder))?;
    }
    let filled = || -> io::Result<()> {
        // What a kill left may be exclusive, with ways that are not those of this one.
        if is_left.as_ref().is_some_and(|left| left.mode != "shareable") {
            kernel.write(&format!("{folder}/mode"), "shareable\n")?;
        }
        write_schemata(kernel, folder, &group.schemata)?;
        if group.mode != "shareable" {
            kernel.write(&format!("{folder}/mode"), &format!("{}\n", group.mode))?;
        }
        kernel.write(&format!("{folder}/cpus_list"), &format!("{}\n", group.cpus))
    };
    let filled = told(host, filled());
    if filled.is_err() {
        // The first error is the one to tell; a folder that stays has no CPUs and no tasks.
        let _ = kernel.remove(folder);
    }
    filled
}

/// Refuses to change a group that is made, and to take CPUs of others. A recorded host is held to the same.
pub(crate) fn refuse_made(host: &Host, name: &str, there: &str, group: &CacheGroup) -> io::Result<()> {
    refuse_others_cpus(host, name, &group.cpus)?;
    let is_free = there.trim() == NO_GROUP || CacheGroup::parse(there).is_some_and(|left| left.is_unused());
    if is_free {
        return Ok(());
    }
    Err(said(Errno::BUSY, "there is a group of this name, with CPUs or tasks"))
}

fn write_schemata(kernel: &dyn Kernel, folder: &str, schemata: &Schemata) -> io::Result<()> {
    // A resource a line, and no line that is empty: the kernel would call it one without a colon.
    let lines = schemata.to_string().replace(' ', "\n") + "\n";
    kernel.write(&format!("{folder}/schemata"), &lines)
}

/// The kernel takes CPUs out of any other group without a word: those of somebody else's are not taken.
fn refuse_others_cpus(host: &Host, name: &str, cpus: &Cpus) -> io::Result<()> {
    for other in resctrl::groups(host).iter().filter(|other| *other != name) {
        let list = match host.read(&format!("{}/{other}/cpus_list", resctrl::MOUNT)) {
            Ok(list) => list,
            // It went in the meantime, or has none: a recording need not have it.
            Err(ReadError::Absent { .. }) => continue,
            Err(error) => return Err(said(Errno::BUSY, &format!("the CPUs of the group {other}: {error}"))),
        };
        let shared = Cpus::parse(list.trim()).unwrap_or_default().intersection(cpus);
        if !shared.is_empty() {
            return Err(said(Errno::BUSY, &format!("CPU {shared} is in the group {other}")));
        }
    }
    Ok(())
}

/// An error with what the kernel says of it in words.
fn told(host: &Host, done: io::Result<()>) -> io::Result<()> {
    done.map_err(|error| {
        let status = host.read(&format!("{}/info/last_cmd_status", resctrl::MOUNT)).unwrap_or_default();
        match (status.trim(), Errno::from_io_error(&error)) {
            ("" | "ok", _) | (_, None) => error,
            (words, Some(errno)) => said(errno, words),
        }
    })
}

/// An error of the kernel and the words for it.
fn said(errno: Errno, words: &str) -> io::Error {
    #[derive(Debug)]
    struct Said(Errno, String);
    impl std::fmt::Display for Said {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{}: {}", self.1, io::Error::from(self.0))
        }
    }
    impl std::error::Error for Said {}
    io::Error::new(io::Error::from(errno).kind(), Said(errno, words.to_owned()))
}

#[cfg(test)]
mod tests;
