//! What an undo of a move must know: where pages lay and what threads were given, as a file beside the journal.
//!
//! Runs of pages of one node, told by their distance from the one before: two or three bytes each, so that 100 GiB that
//! lie well need some hundred bytes, and 100 GiB of which every page lies on another node than its neighbour some
//! 70 MB, which is more than is taken. Numbers are LEB128. What reads a record takes nothing for granted: it may be a
//! file that a disk has damaged, though the journal compares its checksum first.

use std::ops::Range;

use planish_sys::CpuSet;

use super::{Identity, Spaces, Thread};

/// Bytes of a record at most.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// The first bytes of every record, with the version of its form.
const MAGIC: &[u8] = b"planish moved 2\n";

/// Why bytes are no record, or what was seen fits into none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Too many runs.
    #[error("its pages lie in too many pieces to be remembered ({runs} of them)")]
    TooLong {
        /// How many.
        runs: usize,
    },
    /// It is of a newer planish, or none at all.
    #[error("it does not begin as a record of this planish does")]
    Strange,
    /// It ends too early, or says what cannot be.
    #[error("byte {at} makes no sense")]
    Damaged {
        /// Where.
        at: usize,
    },
}

/// Pages side by side that lay on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Address of the first one.
    pub start: u64,
    /// How many base pages.
    pub pages: u64,
    /// Where they lay.
    pub node: u32,
}

impl Extent {
    /// Its addresses.
    #[must_use]
    pub fn range(&self, base_bytes: u64) -> Range<u64> {
        self.start..self.start + self.pages * base_bytes
    }
}

/// Where pages of a process lay, and where they were to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The nodes that they were to go to.
    pub targets: Vec<u32>,
    /// Bytes that went to one node together.
    pub chunk_bytes: u64,
    /// Bytes of a base page.
    pub base_bytes: u64,
    /// Bytes a second at most, there and back.
    pub bytes_per_second: u64,
    /// The mappings in which they lay, by address, each with its name.
    pub areas: Vec<(Range<u64>, String)>,
    /// The pages, by address and without overlap, each run within one mapping.
    pub extents: Vec<Extent>,
}

impl Pages {
    /// How many bytes are meant.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.pages * self.base_bytes).sum()
    }
}

/// What threads were given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// What they were to be given.
    pub cpus: CpuSet,
    /// As they were.
    pub threads: Vec<Thread>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Of memory.
    Pages(Identity, Pages),
    /// Of threads.
    Threads(Identity, Threads),
}

impl Record {
    /// Whose it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        match self {
            Self::Pages(identity, _) | Self::Threads(identity, _) => identity,
        }
    }

    /// The record as bytes.
    ///
    /// # Errors
    /// It would be too long.
    pub fn encode(&self) -> Result<Vec<u8>, RecordError> {
        let mut bytes = MAGIC.to_vec();
        let identity = self.identity();
        let kind = u64::from(matches!(self, Self::Threads(..)));
        let mark = identity.mark.map_or(0, |mark| u64::from(mark) + 1);
        let (layout, spaces) = (identity.layout, identity.spaces);
        let own = [kind, identity.pid.into(), identity.start_ticks, layout.0, layout.1, mark];
        own.into_iter().chain([spaces.pids, spaces.time]).for_each(|number| put(&mut bytes, number));
        match self {
            Self::Pages(_, pages) => pages.encode(&mut bytes)?,
            Self::Threads(_, threads) => {
                put_set(&mut bytes, &threads.cpus);
                put(&mut bytes, threads.threads.len() as u64);
                for thread in &threads.threads {
                    put(&mut bytes, thread.tid.into());
                    put(&mut bytes, thread.start_ticks);
                    put_set(&mut bytes, &thread.cpus);
                }
            }
        }
        Ok(bytes)
    }

    /// The record of these bytes.
    ///
    /// # Errors
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        if !bytes.starts_with(MAGIC) {
            return Err(RecordError::Strange);
        }
        let mut reader = Reader { bytes, at: MAGIC.len() };
        let kind = reader.number()?;
        let identity = Identity {
            pid: reader.small()?,
            start_ticks: reader.number()?,
            layout: (reader.number()?, reader.number()?),
            mark: match reader.number()? {
                0 => None,
                mark => Some(u32::try_from(mark - 1).map_err(|_| reader.damaged())?),
            },
            spaces: Spaces { pids: reader.number()?, time: reader.number()? },
        };
        let record = match kind {
            0 => Self::Pages(identity, Pages::decode(&mut reader)?),
            1 => {
                let cpus = reader.set()?;
                let count = reader.count(3)?;
                let mut threads = Vec::with_capacity(count);
                for _ in 0..count {
                    let (tid, start_ticks) = (reader.small()?, reader.number()?);
                    threads.push(Thread { tid, start_ticks, cpus: reader.set()? });
                }
                Self::Threads(identity, Threads { cpus, threads })
            }
            _ => return Err(reader.damaged()),
        };
        if reader.at == bytes.len() { Ok(record) } else { Err(reader.damaged()) }
    }
}

impl Pages {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), RecordError> {
        put(bytes, self.targets.len() as u64);
        self.targets.iter().for_each(|node| put(bytes, (*node).into()));
        put(bytes, self.chunk_bytes);
        put(bytes, self.base_bytes);
        put(bytes, self.bytes_per_second);
        put(bytes, self.areas.len() as u64);
        for (range, name) in &self.areas {
            put(bytes, range.start);
            put(bytes, range.end - range.start);
            put(bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
        }
        put(bytes, self.extents.len() as u64);
        let mut reached = 0;
        for extent in &self.extents {
            put(bytes, (extent.start - reached) / self.base_bytes);
            put(bytes, extent.pages);
            put(bytes, extent.node.into());
            reached = extent.range(self.base_bytes).end;
            if bytes.len() > RECORD_BYTES_MAX {
                return Err(RecordError::TooLong { runs: self.extents.len() });
            }
        }
        Ok(())
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let count = reader.count(1)?;
        let targets = (0..count).map(|_| reader.small()).collect::<Result<Vec<_>, _>>()?;
        let (chunk_bytes, base_bytes) = (reader.number()?, reader.number()?);
        let bytes_per_second = reader.number()?;
        let is_sound = base_bytes.is_power_of_two() && chunk_bytes >= base_bytes && !targets.is_empty();
        if !is_sound {
            return Err(reader.damaged());
        }
        let count = reader.count(3)?;
        let mut areas = Vec::with_capacity(count);
        for _ in 0..count {
            let (start, bytes) = (reader.number()?, reader.number()?);
            let end = start.checked_add(bytes).ok_or_else(|| reader.damaged())?;
            areas.push((start..end, reader.text()?));
        }
        let count = reader.count(3)?;
        let (mut extents, mut reached) = (Vec::with_capacity(count), 0u64);
        for _ in 0..count {
            let (gap, pages, node) = (reader.number()?, reader.number()?, reader.small()?);
            let start = gap.checked_mul(base_bytes).and_then(|gap| reached.checked_add(gap));
            let start = start.ok_or_else(|| reader.damaged())?;
            let end = pages.checked_mul(base_bytes).and_then(|bytes| start.checked_add(bytes));
            reached = end.filter(|_| pages > 0).ok_or_else(|| reader.damaged())?;
            extents.push(Extent { start, pages, node });
        }
        Ok(Self { targets, chunk_bytes, base_bytes, bytes_per_second, areas, extents })
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

fn put_set(bytes: &mut Vec<u8>, set: &CpuSet) {
    let text = set.to_string();
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn damaged(&self) -> RecordError {
        RecordError::Damaged { at: self.at }
    }

    fn number(&mut self) -> Result<u64, RecordError> {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.damaged())?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return Err(self.damaged());
            }
            number |= bits << shift;
            self.at += 1;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn small(&mut self) -> Result<u32, RecordError> {
        u32::try_from(self.number()?).map_err(|_| self.damaged())
    }

    /// A count of things that take so many bytes at least: never more than what is left can hold.
    fn count(&mut self, bytes_each: usize) -> Result<usize, RecordError> {
        let count = usize::try_from(self.number()?).map_err(|_| self.damaged())?;
        let room = (self.bytes.len() - self.at) / bytes_each;
        if count <= room { Ok(count) } else { Err(self.damaged()) }
    }

    fn text(&mut self) -> Result<String, RecordError> {
        let length = self.count(1)?;
        let text = std::str::from_utf8(&self.bytes[self.at..self.at + length]);
        let text = text.map_err(|_| self.damaged())?.to_owned();
        self.at += length;
        Ok(text)
    }

    fn set(&mut self) -> Result<CpuSet, RecordError> {
        let text = self.text()?;
        CpuSet::parse_list(&text).map_err(|_| self.damaged())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity(mark: Option<u32>) -> Identity {
        let spaces = Spaces { pids: 4_026_531_836, time: 4_026_531_834 };
        Identity { pid: 77, start_ticks: 1 << 40, layout: (0x5555_0000_0000, 0x7fff_ffff_f000), mark, spaces }
    }

    fn pages(gaps: &[(u64, u64, u32)]) -> Pages {
        let mut reached = 0x7f00_0000_0000;
        let mut extents = Vec::new();
        for (gap, pages, node) in gaps {
            let start = reached + gap * 4096;
            extents.push(Extent { start, pages: *pages, node: *node });
            reached = start + pages * 4096;
        }
        let areas = vec![(0x7f00_0000_0000..0x7f10_0000_0000, String::new())];
        let (chunk_bytes, base_bytes) = (2 << 20, 4096);
        Pages { targets: vec![1, 3], chunk_bytes, base_bytes, bytes_per_second: 1 << 30, areas, extents }
    }

    #[test]
    fn a_well_laid_gigabyte_needs_a_few_bytes() {
        let record = Record::Pages(identity(Some(9)), pages(&[(0, 25 << 20, 0)]));
        assert!(record.encode().unwrap().len() < 100, "100 GiB in one run");
    }

    #[test]
    fn what_lies_in_too_many_pieces_is_refused() {
        let mut long = pages(&[]);
        // Far apart, so that each takes six bytes.
        long.extents =
            (0..12_000_000).map(|n| Extent { start: n << 34 >> 8 << 12, pages: 1, node: 0 }).collect();
        let error = Record::Pages(identity(None), long).encode();
        assert!(matches!(error, Err(RecordError::TooLong { runs: 12_000_000 })));
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            gaps in proptest::collection::vec((0u64..1 << 20, 1u64..1 << 20, 0u32..1024), 0..40),
            mark in proptest::option::of(0u32..),
        ) {
            let record = Record::Pages(identity(mark), pages(&gaps));
            prop_assert_eq!(Record::decode(&record.encode().unwrap()), Ok(record));
        }

        #[test]
        fn threads_are_read_as_they_were_written(
            cpus in proptest::collection::vec(0u32..4096, 1..40),
            tids in proptest::collection::vec((1u32.., 0u64..), 0..40),
        ) {
            let cpus: CpuSet = cpus.into_iter().collect();
            let thread = |(tid, start_ticks)| Thread { tid, start_ticks, cpus: cpus.clone() };
            let threads = Threads { cpus: cpus.clone(), threads: tids.into_iter().map(thread).collect() };
            let record = Record::Threads(identity(None), threads);
            prop_assert_eq!(Record::decode(&record.encode().unwrap()), Ok(record));
        }

        #[test]
        fn no_bytes_panic(tail in proptest::collection::vec(any::<u8>(), 0..200), flip in 0usize..60, bit in 0u8..8) {
            let _ = Record::decode(&tail);
            let mut bytes = MAGIC.to_vec();
            bytes.extend(&tail);
            let _ = Record::decode(&bytes);
            let mut sound = Record::Pages(identity(Some(1)), pages(&[(1, 2, 3), (4, 5, 6)])).encode().unwrap();
            let at = flip % sound.len();
            sound[at] ^= 1 << bit;
            let _ = Record::decode(&sound);
        }
    }
}
