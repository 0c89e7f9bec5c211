//! The shared objects that processes map: each looked at once, however many map it.
//!
//! A file that somebody maps shared may be mapped privately as well, there or elsewhere. Of such a mapping, the pages
//! that nobody wrote through it are those of the object, and what was written is the process's own.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;

use planish_host::Host;
use planish_sys::Errno;
use planish_sys::peek::{self, SharedObject};
use rustix::process::Pid;

use super::eyes::Eyes;
use super::leases;
use super::object::ObjectPages;
use super::tables::Tables;
use crate::maps::{Area, FileId, Kind, parse_line, tell_namespace};
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
    /// Whether it was looked at itself, as far as it is mapped; else its pages are those that the processes of the map
    /// have in their page tables.
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
    /// What is mapped of each file, be it privately, as far as it was not looked at.
    mapped: HashMap<FileId, Vec<Range<u64>>>,
}

/// How a look at an object ended.
enum Tried {
    /// It was looked at: its index.
    Seen(usize),
    /// It is no memory, or may not be looked at.
    Blind,
    /// Another mapping of it may still be there.
    Gone,
}

fn of_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

impl Objects {
    /// Takes note of what is mapped of files, and which of them are mapped shared: before the first process is looked
    /// at, of all of them.
    pub(crate) fn note<'a>(&mut self, areas: impl IntoIterator<Item = &'a Area>) {
        for area in areas {
            let (Some(file), Some(extent)) = (area.file(), area.extent()) else { continue };
            if area.is_shared() {
                self.shared.insert(file, area.kind);
            }
            let mapped = self.mapped.entry(file).or_default();
            match mapped.last_mut() {
                Some(last) if last.end == extent.start => last.end = extent.end,
                _ => mapped.push(extent),
            }
        }
    }

    /// The same of the text of maps; a line that is none is left to who reads all of them.
    pub(crate) fn note_maps(&mut self, host: &Host, pid: u32, text: &str) {
        let mut areas: Vec<Area> = text.lines().filter_map(parse_line).collect();
        tell_namespace(host, pid, &mut areas);
        self.note(&areas);
    }

    /// The object behind a mapping, of a private one that which keeps what nobody wrote; `None` where nobody maps its
    /// file shared. It is looked at when it is met first, and once more where more of it is mapped than was known then.
    /// One that cannot be looked at is made of the pages that processes have mapped of it. `tables`: what of
    /// shared memory the process has in its page tables.
    pub(crate) fn find(
        &mut self,
        host: &Host,
        pid: u32,
        area: &Area,
        tables: Option<&Tables<'_>>,
        eyes: &mut Eyes,
    ) -> Option<usize> {
        let id = area.file()?;
        let kind = *self.shared.get(&id)?;
        let known = self.known.get(&id).copied();
        let looked = known.flatten().filter(|index| self.list[*index].looked);
        let is_new =
            |index: usize| area.extent().is_some_and(|extent| !self.list[index].pages.has_seen(&extent));
        if known.is_some() && !looked.is_some_and(is_new) {
            return known.flatten();
        }
        match (self.try_look(host, (pid, area), tables, looked, eyes), looked) {
            (Tried::Seen(index), _) => {
                self.known.insert(id, Some(index));
                Some(index)
            }
            (Tried::Gone, looked) => looked,
            (Tried::Blind, Some(index)) => {
                // What is mapped besides is what page tables tell of it from now on.
                self.list[index].looked = false;
                Some(index)
            }
            (Tried::Blind, None) => {
                // A page of a file of a disk is also mapped privately: its frame, where it is told, knows of both.
                let by_frame = kind != Kind::Shared && eyes.counts_frames();
                let found = (!by_frame).then(|| self.add(area, kind));
                self.known.insert(id, found);
                found
            }
        }
    }

    /// Looks at what is mapped of the object behind a mapping; `known`: one that was looked at before.
    fn try_look(
        &mut self,
        host: &Host,
        (pid, area): (u32, &Area),
        tables: Option<&Tables<'_>>,
        known: Option<usize>,
        eyes: &mut Eyes,
    ) -> Tried {
        let Some(id) = area.file() else { return Tried::Blind };
        let writes = || of_pid(pid).is_some_and(|pid| peek::opens_for_writing(pid, &area.range));
        let is_seen = eyes.peek.is_some() && eyes.devices.has(host, pid, area.device);
        match is_seen.then(|| leases::forbid(host, &id, writes())) {
            None => {
                if area.kind == Kind::Shared && eyes.peek.is_some() {
                    eyes.blind_elsewhere(&area.name);
                }
                Tried::Blind
            }
            Some(Some(lease)) => {
                eyes.blind_leased(&area.name, &lease);
                Tried::Blind
            }
            Some(None) => match self.look((pid, area), &id, tables, known, eyes) {
                Ok(object) => object.map_or(Tried::Blind, Tried::Seen),
                Err(error) if is_gone(&error) => Tried::Gone,
                Err(error) => {
                    eyes.blind_shared(&error);
                    Tried::Blind
                }
            },
        }
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

    fn look(
        &mut self,
        (pid, area): (u32, &Area),
        id: &FileId,
        tables: Option<&Tables<'_>>,
        known: Option<usize>,
        eyes: &mut Eyes,
    ) -> planish_sys::Result<Option<usize>> {
        let Some(pid) = of_pid(pid) else { return Ok(None) };
        let Some(object) = SharedObject::of_mapping(pid, &area.range)? else { return Ok(None) };
        let Some(peek) = eyes.peek.take() else { return Ok(None) };
        let mut mapped = self.mapped.remove(id).unwrap_or_default();
        mapped.extend(area.extent());
        let mut pages = known.map(|index| mem::take(&mut self.list[index].pages)).unwrap_or_default();
        let looked = pages.look(&peek, &object, mapped, tables.map(|tables| (tables, id)), eyes);
        eyes.peek = Some(peek);
        if let Some(index) = known {
            // With what was seen of it before, in any case.
            self.list[index].pages = pages;
            return looked.map(|()| known);
        }
        looked?;
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
    use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous};

    use super::*;

    /// A process may map more of an object between the look at it and its own turn.
    #[test]
    fn what_is_mapped_after_the_first_look_is_looked_at_too() {
        let test = "what_is_mapped_after_the_first_look_is_looked_at_too";
        let (host, base) = (Host::live(), planish_sys::pages::base_bytes());
        let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::Base) };
        let mapping = map_anonymous(64 * base, options).unwrap();
        mapping.advise_range(0..64 * base, Advice::PopulateWrite).unwrap();
        // What is advised otherwise is a mapping of its own.
        if let Err(error) = mapping.advise_range(32 * base..64 * base, Advice::HugePage) {
            return planish_skip::skip(test, error);
        }
        let start = mapping.as_ptr().addr() as u64;
        let maps = crate::maps::parse_maps(&host.read_lossy("/proc/self/maps").unwrap()).unwrap();
        let ours = |area: &Area| (start..start + mapping.len() as u64).contains(&area.range.start);
        let areas: Vec<Area> = maps.into_iter().filter(ours).collect();
        assert_eq!(areas.len(), 2, "{areas:?}");
        let (mut eyes, mut objects) = (Eyes::open(&host, false), Objects::default());
        let mut seen = Vec::new();
        for area in &areas {
            objects.note([area]);
            let index = objects.find(&host, std::process::id(), area, None, &mut eyes).expect("it is shared");
            if objects.is_of_tables(index) {
                return planish_skip::skip(test, "shared memory may not be looked at");
            }
            let parts = objects.list[index].pages.parts(&(0..mapping.len() as u64));
            seen.push((index, parts.iter().map(|part| part.bytes).sum::<u64>()));
        }
        let bytes = mapping.len() as u64;
        assert_eq!(seen, [(0, bytes / 2), (0, bytes)]);
    }

    #[test]
    fn what_has_gone_meanwhile_is_no_lack_of_rights() {
        let error = |errno| planish_sys::Error::of_call("open of map_files", errno);
        assert!(is_gone(&error(Errno::NOENT)) && is_gone(&error(Errno::SRCH)));
        assert!(!is_gone(&error(Errno::PERM)));
    }
}
