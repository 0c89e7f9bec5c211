//! The shared objects that processes map: each looked at once, however many map it.

use std::collections::HashMap;
use std::ops::Range;

use planish_host::Host;
use planish_sys::Errno;
use planish_sys::peek::SharedObject;
use rustix::process::Pid;

use super::eyes::Eyes;
use super::object::ObjectPages;
use crate::maps::{Area, Kind};
use crate::rows::{Part, add_part};

/// A piece of memory that processes share.
#[derive(Clone, Debug)]
pub struct Object {
    /// Device and inode, which name it.
    pub id: ((u32, u32), u64),
    /// Name of its mappings.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where its pages lie.
    pub pages: ObjectPages,
    /// The parts of it that are mapped, in rising order and without overlap.
    pub mapped: Vec<Range<u64>>,
}

impl Object {
    /// What of the mapped parts is in memory.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let ranges = self.mapped.iter().flat_map(|range| self.pages.parts(range));
        ranges.for_each(|part| add_part(&mut parts, part));
        parts
    }

    /// Adds a mapped part.
    pub(crate) fn map(&mut self, range: Range<u64>) {
        self.mapped.push(range);
        self.mapped.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(self.mapped.len());
        for range in self.mapped.drain(..) {
            match joined.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        self.mapped = joined;
    }
}

/// All objects that were met.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub list: Vec<Object>,
    /// Index in `list`; `None` for one that is of neither kind, or could not be looked at.
    known: HashMap<((u32, u32), u64), Option<usize>>,
}

impl Objects {
    /// The object behind a shared mapping; looked at when it is met first.
    pub(crate) fn find(&mut self, host: &Host, pid: u32, area: &Area, eyes: &mut Eyes) -> Option<usize> {
        if !area.is_shared() || area.inode == 0 || !host.is_live() || eyes.peek.is_none() {
            return None;
        }
        let id = (area.device, area.inode);
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        if let Some(why) = eyes.leases.forbid(host, &id) {
            eyes.blind_leased(&area.name, &why);
            self.known.insert(id, None);
            return None;
        }
        match self.look(pid, area, eyes) {
            Ok(object) => {
                self.known.insert(id, object);
                object
            }
            // It was unmapped meanwhile: another mapping of it may still be there.
            Err(error) if error.errno() == Some(Errno::NOENT) => None,
            Err(error) => {
                eyes.blind_shared(&error);
                self.known.insert(id, None);
                None
            }
        }
    }

    fn look(&mut self, pid: u32, area: &Area, eyes: &mut Eyes) -> planish_sys::Result<Option<usize>> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let Some(object) = SharedObject::of_mapping(pid, &area.range)? else { return Ok(None) };
        let Some(peek) = eyes.peek.take() else { return Ok(None) };
        let pages = ObjectPages::look(&peek, &object, eyes);
        eyes.peek = Some(peek);
        self.list.push(Object {
            id: (area.device, area.inode),
            name: area.name.clone(),
            // A file on tmpfs or hugetlbfs is memory, whatever its name.
            kind: Kind::Shared,
            bytes: object.bytes,
            pages: pages?,
            mapped: Vec::new(),
        });
        Ok(Some(self.list.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_parts_join() {
        let mut object = Object {
            id: ((0, 1), 2),
            name: String::new(),
            kind: Kind::Shared,
            bytes: 100,
            pages: ObjectPages::default(),
            mapped: Vec::new(),
        };
        for range in [10..20, 40..50, 15..30, 30..31] {
            object.map(range);
        }
        assert_eq!(object.mapped, [10..31, 40..50]);
    }
}
