//! The shared objects that processes map: each looked at once, however many map it.
//!
//! A file that somebody maps shared may be mapped privately as well, there or elsewhere. Of such a mapping, the pages
//! that nobody wrote through it are those of the object, and what was written is the process's own.

use std::collections::HashMap;
use std::ops::Range;

use planish_host::Host;
use planish_sys::Errno;
use planish_sys::peek::{self, SharedObject};
use rustix::process::Pid;

use super::eyes::Eyes;
use super::leases;
use super::object::ObjectPages;
use crate::maps::{Area, FileId, Kind, parse_line};
use crate::rows::{Part, add_part};

/// A piece of memory that processes share.
#[derive(Clone, Debug)]
pub struct Object {
    /// The file that it is.
    pub id: Option<FileId>,
    /// Name of its mappings.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where its pages lie.
    pub pages: ObjectPages,
    /// Whether it was looked at itself; else its pages are those that the processes of the map have mapped.
    pub looked: bool,
    /// The parts of it that are mapped, in rising order and without overlap.
    pub mapped: Vec<Range<u64>>,
}

impl Object {
    /// Whether pages of it may be in memory that nobody told us of: of shared memory that could not be looked at, those
    /// that no process of the map has mapped. The page cache of files is told by what is mapped of it anyway.
    pub fn is_seen_in_part(&self) -> bool {
        !self.looked && self.kind == Kind::Shared
    }

    /// What of the mapped parts is in memory.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let ranges = self.mapped.iter().flat_map(|range| self.pages.parts(range));
        ranges.for_each(|part| add_part(&mut parts, part));
        parts
    }
}

/// All objects that were met.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub list: Vec<Object>,
    /// Index in `list`; `None` for a file whose pages are told apart by their frames.
    known: HashMap<FileId, Option<usize>>,
    /// Files that are mapped shared somewhere, and what for.
    shared: HashMap<FileId, Kind>,
}

fn of_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

impl Objects {
    /// Takes note of what is mapped shared: before the first process is looked at, of all of them.
    pub(crate) fn note<'a>(&mut self, areas: impl IntoIterator<Item = &'a Area>) {
        let shared = areas.into_iter().filter(|area| area.is_shared());
        self.shared.extend(shared.filter_map(|area| Some((area.file()?, area.kind))));
    }

    /// The same of the text of maps; a line that is none is left to who reads all of them.
    pub(crate) fn note_maps(&mut self, text: &str) {
        let is_shared = |line: &&str| line.split(' ').nth(1).is_some_and(|word| word.ends_with('s'));
        let areas: Vec<Area> = text.lines().filter(is_shared).filter_map(parse_line).collect();
        self.note(&areas);
    }

    /// The object behind a mapping, of a private one that which keeps what nobody wrote; `None` where nobody maps its
    /// file shared. It is looked at when it is met first. One that cannot be looked at is made of the pages that
    /// processes have mapped of it.
    pub(crate) fn find(&mut self, host: &Host, pid: u32, area: &Area, eyes: &mut Eyes) -> Option<usize> {
        let id = area.file()?;
        let kind = *self.shared.get(&id)?;
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let writes = || of_pid(pid).is_some_and(|pid| peek::opens_for_writing(pid, &area.range));
        let is_seen = eyes.peek.is_some() && eyes.devices.has(host, pid, area.device);
        let looked = match is_seen.then(|| leases::forbid(host, &id, writes())) {
            None => None,
            Some(Some(lease)) => {
                eyes.blind_leased(&area.name, &lease);
                None
            }
            Some(None) => match self.look(pid, area, eyes) {
                Ok(object) => object,
                // Another mapping of it may still be there.
                Err(error) if is_gone(&error) => return None,
                Err(error) => {
                    eyes.blind_shared(&error);
                    None
                }
            },
        };
        // A page of a file of a disk is also mapped privately: its frame, where it is told, knows of both.
        let by_frame = kind != Kind::Shared && eyes.counts_frames();
        let found = looked.or_else(|| (!by_frame).then(|| self.add(area, kind)));
        self.known.insert(id, found);
        found
    }

    /// Adds an object of which nothing is known yet.
    fn add(&mut self, area: &Area, kind: Kind) -> usize {
        self.list.push(Object {
            id: area.file(),
            name: area.name.clone(),
            kind,
            bytes: area.extent().map_or(0, |extent| extent.end),
            pages: ObjectPages::default(),
            looked: false,
            mapped: Vec::new(),
        });
        self.list.len() - 1
    }

    /// Whether the pages of the object `index` are those that processes have mapped of it.
    pub(crate) fn is_of_tables(&self, index: usize) -> bool {
        !self.list[index].looked
    }

    /// Ends the count of one process.
    pub(crate) fn settle(&mut self) {
        self.list.iter_mut().filter(|object| !object.looked).for_each(|object| object.pages.settle());
    }

    fn look(&mut self, pid: u32, area: &Area, eyes: &mut Eyes) -> planish_sys::Result<Option<usize>> {
        let Some(pid) = of_pid(pid) else { return Ok(None) };
        let Some(object) = SharedObject::of_mapping(pid, &area.range)? else { return Ok(None) };
        let Some(peek) = eyes.peek.take() else { return Ok(None) };
        let pages = ObjectPages::look(&peek, &object, eyes);
        eyes.peek = Some(peek);
        let pages = pages?;
        // A file on tmpfs or hugetlbfs is memory, whatever its name.
        let index = self.add(area, Kind::Shared);
        let found = &mut self.list[index];
        (found.bytes, found.pages, found.looked) = (object.bytes, pages, true);
        Ok(Some(index))
    }
}

/// Whether what was to be looked at was unmapped meanwhile (ENOENT), or its process has ended or executed another
/// program (ESRCH): no right helps there.
fn is_gone(error: &planish_sys::Error) -> bool {
    matches!(error.errno(), Some(Errno::NOENT | Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_gone_meanwhile_is_no_lack_of_rights() {
        let error = |errno| planish_sys::Error::of_call("open of map_files", errno);
        assert!(is_gone(&error(Errno::NOENT)) && is_gone(&error(Errno::SRCH)));
        assert!(!is_gone(&error(Errno::PERM)));
    }
}
