//! Which file a process had mapped where, followed through mmap, fork and exec.

use std::collections::HashMap;
use std::rc::Rc;

use planish_sorted::SortSmall as _;

use super::bytes::{section, text, u32_at, u64_at};
use super::container::{Container, Record, build_id_record, kinds};
use crate::error::ProfileError;
use crate::program::hex;

/// A file that code was run from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectFile {
    /// Path, as the recorded process saw it.
    pub path: String,
    /// Build id in lower-case hexadecimal, where perf wrote it down.
    pub build_id: Option<String>,
}

impl ObjectFile {
    /// Whether it is the program: the same build id; or the same name, where one of the two has no build id.
    ///
    /// # Errors
    /// [`ProfileError::BuildId`] for the same name and another build.
    pub(super) fn is(&self, program: &str, build_id: Option<&str>) -> Result<bool, ProfileError> {
        let last = |path: &str| path.trim_end_matches(" (deleted)").rsplit('/').next().map(str::to_owned);
        let same_name = last(&self.path) == last(program);
        match (&self.build_id, build_id) {
            (Some(sampled), Some(wanted)) if sampled == wanted => Ok(true),
            (Some(sampled), Some(wanted)) if same_name => {
                Err(ProfileError::BuildId { sampled: sampled.clone(), program: wanted.to_owned() })
            }
            (Some(_), Some(_)) => Ok(false),
            _ => Ok(same_name),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    object: u32,
}

/// All processes of a recording.
pub(super) struct Processes {
    maps: HashMap<u32, Rc<Vec<Mapping>>>,
    objects: Vec<ObjectFile>,
    index: HashMap<ObjectFile, u32>,
    /// Build ids by path, for mappings that carry none.
    build_ids: HashMap<String, String>,
}

/// In a record's `misc`: this COMM is an exec.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// In a record's `misc`: an MMAP2 carries a build id where device and inode stood.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

impl Processes {
    pub fn new(container: &Container<'_>) -> Self {
        let build_ids = container.build_ids.iter().filter_map(build_id_record).collect();
        Self { maps: HashMap::new(), objects: Vec::new(), index: HashMap::new(), build_ids }
    }

    pub fn object(&self, index: u32) -> &ObjectFile {
        &self.objects[index as usize]
    }

    /// The file at an address of a process, and the offset in it.
    pub fn find(&self, pid: u32, address: u64) -> Option<(u32, u64)> {
        let maps = self.maps.get(&pid)?;
        let after = maps.partition_point(|mapping| mapping.start <= address);
        let mapping = maps.get(after.checked_sub(1)?)?;
        let inside = address < mapping.end;
        inside.then(|| (mapping.object, (address - mapping.start).saturating_add(mapping.offset)))
    }

    /// Takes note of a record that is no sample.
    pub fn follow(&mut self, record: &Record<'_>) {
        // A record that is cut changes nothing.
        let _ = match record.kind {
            kinds::MMAP => self.map(record, 32, true),
            kinds::MMAP2 => {
                let is_code = u32_at(record.body, 56).is_some_and(|protection| protection & PROT_EXEC != 0);
                self.map(record, 64, is_code)
            }
            kinds::COMM if record.misc & MISC_COMM_EXEC != 0 => {
                u32_at(record.body, 0).map(|pid| drop(self.maps.remove(&pid)))
            }
            kinds::FORK => self.fork(record.body),
            _ => None,
        };
    }

    fn fork(&mut self, body: &[u8]) -> Option<()> {
        let (child, parent) = (u32_at(body, 0)?, u32_at(body, 4)?);
        // A new thread of the same process has its maps already.
        if child != parent {
            let maps = Rc::clone(self.maps.get(&parent)?);
            self.maps.insert(child, maps);
        }
        Some(())
    }

    /// `pid tid address length offset ... path`, with the path at `name_at`.
    fn map(&mut self, record: &Record<'_>, name_at: usize, is_code: bool) -> Option<()> {
        let body = record.body;
        let (pid, start, length) = (u32_at(body, 0)?, u64_at(body, 8)?, u64_at(body, 16)?);
        let offset = u64_at(body, 24)?;
        let path = text(body.get(name_at..)?);
        let end = start.checked_add(length)?;
        let build_id = self.build_id(record, name_at, &path);
        let object = self.intern(ObjectFile { path, build_id });
        let maps = Rc::make_mut(self.maps.entry(pid).or_default());
        // What it covers is gone: whole mappings, or the ends of some.
        let mut kept = Vec::with_capacity(maps.len() + 2);
        for mapping in maps.drain(..) {
            if mapping.end <= start || mapping.start >= end {
                kept.push(mapping);
                continue;
            }
            if mapping.start < start {
                kept.push(Mapping { end: start, ..mapping });
            }
            if mapping.end > end {
                let offset = mapping.offset.saturating_add(end - mapping.start);
                kept.push(Mapping { start: end, offset, ..mapping });
            }
        }
        if is_code && length > 0 {
            kept.push(Mapping { start, end, offset, object });
        }
        kept.sort_small_by_key(|mapping| mapping.start);
        *maps = kept;
        Some(())
    }

    fn build_id(&self, record: &Record<'_>, name_at: usize, path: &str) -> Option<String> {
        if name_at == 64 && record.misc & MISC_MMAP_BUILD_ID != 0 {
            let length = u64::from(*record.body.get(32)?).min(20);
            return section(record.body, 36, length).map(hex);
        }
        self.build_ids.get(path).cloned()
    }

    fn intern(&mut self, object: ObjectFile) -> u32 {
        let next = u32::try_from(self.objects.len()).expect("mapped files fit 32 bits");
        let index = *self.index.entry(object.clone()).or_insert(next);
        if index == next {
            self.objects.push(object);
        }
        index
    }
}
