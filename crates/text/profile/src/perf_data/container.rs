//! The container: attributes, features, and records in the order of time.

use super::bytes::{section, string, text, u16_at, u32_at, u64_at};
use super::{FORMAT, MAGIC, cut};
use crate::error::ProfileError;

/// Kinds of records that matter here.
pub(super) mod kinds {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const BUILD_ID: u32 = 67;
    pub const AUXTRACE: u32 = 71;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
    /// Kinds from here on are perf's own and carry no time.
    pub const USER_START: u32 = 64;
}

/// Bits of `sample_type`.
pub(super) mod fields {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Bit 18 of an attribute's flags: records that are no samples end with who and when.
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// Bits 4 and 5: what was not sampled. perf writes `:u` behind the name of an event of user code alone.
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const FEATURE_BUILD_ID: usize = 2;
const FEATURE_HOSTNAME: usize = 3;
const FEATURE_EVENT_DESC: usize = 12;
const FEATURES_MAX: usize = 256;
/// Nothing that was sampled has more events; a table of more is damage.
const EVENTS_MAX: usize = 4096;

/// One sampled event.
#[derive(Debug)]
pub(super) struct Event {
    pub name: String,
    pub sample_type: u64,
    pub read_format: u64,
    pub branch_type: u64,
    flags: u64,
    ids: Vec<u64>,
}

/// One record, without its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
}

/// A parsed file.
#[derive(Debug)]
pub(super) struct Container<'a> {
    events: Vec<Event>,
    host: Option<String>,
    /// Records of build ids, as perf wrote them.
    pub build_ids: Vec<Record<'a>>,
    records: Vec<(u64, Record<'a>)>,
}

impl<'a> Container<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ProfileError> {
        let reversed: Vec<u8> = MAGIC.iter().rev().copied().collect();
        if !bytes.starts_with(MAGIC) && !bytes.starts_with(&reversed) {
            return Err(ProfileError::byte(FORMAT, 0, "it is no recording of perf: another file begins so"));
        }
        if !bytes.starts_with(MAGIC) {
            let what = "a file of a big-endian machine".to_owned();
            return Err(ProfileError::Unsupported { format: FORMAT, what });
        }
        let mut container =
            Self { events: Vec::new(), host: None, build_ids: Vec::new(), records: Vec::new() };
        let damaged = |what: &str| ProfileError::byte(FORMAT, 8, what);
        let data = cut::data(bytes).ok_or_else(|| damaged("a header that is cut"))?;
        if let Some(cut) = data.cut {
            return Err(ProfileError::Cut { format: FORMAT, cut });
        }
        if data.is_file {
            container.add_attributes(bytes).ok_or_else(|| damaged("attributes outside of the file"))?;
            container.add_features(bytes, (data.start + data.records.len()) as u64);
        }
        container.add_records(data.records, data.start)?;
        if container.events.is_empty() {
            return Err(ProfileError::byte(FORMAT, 0, "no event is described"));
        }
        let times: Vec<u64> = container.records.iter().map(|(_, record)| container.time(record)).collect();
        for ((slot, _), time) in container.records.iter_mut().zip(times) {
            *slot = time;
        }
        container.records.sort_by_key(|(time, _)| *time);
        Ok(container)
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub fn host(&self) -> Option<String> {
        self.host.clone()
    }

    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + '_ {
        self.records.iter().map(|(_, record)| *record)
    }

    /// From the first sample to the last.
    pub fn span_ns(&self) -> u64 {
        let mut times =
            self.records.iter().filter(|(time, record)| *time > 0 && record.kind == kinds::SAMPLE);
        let first = times.next().map_or(0, |(time, _)| *time);
        times.next_back().map_or(0, |(last, _)| last.saturating_sub(first))
    }

    /// The event that a sample is of.
    pub fn event_of(&self, record: &Record<'_>) -> Option<usize> {
        if let [_] = self.events.as_slice() {
            return Some(0);
        }
        let first = &self.events[0];
        let at = if first.sample_type & fields::IDENTIFIER != 0 {
            0
        } else if first.sample_type & fields::ID != 0 {
            let before = [fields::IP, fields::TID, fields::TIME, fields::ADDR];
            8 * before.iter().filter(|bit| first.sample_type & **bit != 0).count()
        } else {
            return Some(0);
        };
        let id = u64_at(record.body, at)?;
        self.events.iter().position(|event| event.ids.contains(&id))
    }

    /// The attributes of a file, each followed by where its ids are.
    fn add_attributes(&mut self, bytes: &[u8]) -> Option<()> {
        let entry_bytes = usize::try_from(u64_at(bytes, 16)?).ok()?;
        let table = section(bytes, u64_at(bytes, 24)?, u64_at(bytes, 32)?)?;
        let attribute_bytes = entry_bytes.checked_sub(16).filter(|length| *length >= 64)?;
        for entry in table.chunks_exact(entry_bytes).take(EVENTS_MAX) {
            let (offset, length) = (u64_at(entry, attribute_bytes)?, u64_at(entry, attribute_bytes + 8)?);
            let ids = section(bytes, offset, length)?;
            self.events.push(event(&entry[..attribute_bytes], ids)?);
        }
        Some(())
    }

    /// The features that a file ends with. They only add names, so damage here costs names and nothing else.
    fn add_features(&mut self, bytes: &'a [u8], table: u64) {
        let mut entry = table;
        for feature in 0..FEATURES_MAX {
            let word = u64_at(bytes, 72 + feature / 64 * 8).unwrap_or(0);
            if word >> (feature % 64) & 1 == 0 {
                continue;
            }
            let place = section(bytes, entry, 16).and_then(|at| Some((u64_at(at, 0)?, u64_at(at, 8)?)));
            entry = entry.saturating_add(16);
            if let Some(data) = place.and_then(|(offset, length)| section(bytes, offset, length)) {
                self.add_feature(feature, data);
            }
        }
    }

    fn add_feature(&mut self, feature: usize, data: &'a [u8]) {
        match feature {
            FEATURE_BUILD_ID => self.build_ids.extend(records_in(data)),
            FEATURE_HOSTNAME => self.host = string(data).map(|(name, _)| name),
            FEATURE_EVENT_DESC => {
                let _ = self.name_events(data);
            }
            _ => {}
        }
    }

    /// `u32 events, u32 attribute bytes`, then for each its attribute, `u32 ids`, its name, its ids.
    fn name_events(&mut self, data: &[u8]) -> Option<()> {
        let (count, attribute_bytes) = (u32_at(data, 0)?, usize::try_from(u32_at(data, 4)?).ok()?);
        let mut at = 8_usize;
        for _ in 0..count {
            at = at.checked_add(attribute_bytes)?;
            let id_count = usize::try_from(u32_at(data, at)?).ok()?;
            let (name, length) = string(data.get(at + 4..)?)?;
            let ids_at = at + 4 + length;
            let first_id = u64_at(data, ids_at).filter(|_| id_count > 0);
            let single = self.events.len() == 1;
            let mut named = self.events.iter_mut();
            if let Some(event) =
                named.find(|event| single || first_id.is_some_and(|id| event.ids.contains(&id)))
            {
                event.name = name;
            }
            at = ids_at.checked_add(id_count.checked_mul(8)?)?;
        }
        Some(())
    }

    fn add_records(&mut self, data: &'a [u8], start: usize) -> Result<(), ProfileError> {
        let mut at = 0_usize;
        while let Some(record) = record_at(data, at) {
            let next = (at + 8 + record.body.len()).saturating_add(cut::follows(&record));
            match record.kind {
                kinds::HEADER_ATTR => {
                    let length = u32_at(record.body, 4).unwrap_or(0) as usize;
                    let parts = record.body.split_at_checked(length);
                    let parsed = parts.and_then(|(attribute, ids)| event(attribute, ids));
                    let broken =
                        || ProfileError::byte(FORMAT, start.saturating_add(at), "an attribute that is cut");
                    self.events.push(parsed.ok_or_else(broken)?);
                }
                kinds::HEADER_FEATURE => {
                    let feature = u64_at(record.body, 0).and_then(|feature| usize::try_from(feature).ok());
                    self.add_feature(
                        feature.unwrap_or(FEATURES_MAX),
                        record.body.get(8..).unwrap_or_default(),
                    );
                }
                kinds::BUILD_ID => self.build_ids.push(record),
                kinds::COMPRESSED | kinds::COMPRESSED2 => {
                    let what =
                        "compression (perf record -z; `perf inject -i perf.data -o F` unpacks it)".to_owned();
                    return Err(ProfileError::Unsupported { format: FORMAT, what });
                }
                kind if kind < kinds::USER_START => self.records.push((0, record)),
                _ => {}
            }
            at = next;
        }
        Ok(())
    }

    /// When a record was written. What has no time of its own comes first.
    fn time(&self, record: &Record<'_>) -> u64 {
        let first = &self.events[0];
        if first.sample_type & fields::TIME == 0 {
            return 0;
        }
        let has = |bits: &[u64]| bits.iter().filter(|bit| first.sample_type & **bit != 0).count();
        if record.kind == kinds::SAMPLE {
            let before = 8 * has(&[fields::IDENTIFIER, fields::IP, fields::TID]);
            return u64_at(record.body, before).unwrap_or(0);
        }
        if first.flags & SAMPLE_ID_ALL == 0 {
            return 0;
        }
        let after = [fields::TIME, fields::ID, fields::STREAM_ID, fields::CPU, fields::IDENTIFIER];
        let from_end = 8 * has(&after);
        record.body.len().checked_sub(from_end).and_then(|at| u64_at(record.body, at)).unwrap_or(0)
    }
}

fn event(attribute: &[u8], ids: &[u8]) -> Option<Event> {
    let (kind, config) = (u32_at(attribute, 0)?, u64_at(attribute, 8)?);
    let (words, _) = ids.as_chunks::<8>();
    let flags = u64_at(attribute, 40)?;
    let user_only = flags & (EXCLUDE_USER | EXCLUDE_KERNEL) == EXCLUDE_KERNEL;
    Some(Event {
        name: event_name(kind, config) + if user_only { ":u" } else { "" },
        sample_type: u64_at(attribute, 24)?,
        read_format: u64_at(attribute, 32)?,
        branch_type: u64_at(attribute, 72).unwrap_or(0),
        flags,
        ids: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
    })
}

/// perf's name for the commonest events, where the file does not say.
fn event_name(kind: u32, config: u64) -> String {
    match (kind, config) {
        (0, 0) => "cycles".to_owned(),
        (0, 1) => "instructions".to_owned(),
        (1, 0) => "cpu-clock".to_owned(),
        (1, 1) => "task-clock".to_owned(),
        (1, 2) => "page-faults".to_owned(),
        _ => format!("type {kind} config {config:#x}"),
    }
}

/// The record at an offset; `None` at the end, and where the rest is no record.
pub(super) fn record_at(data: &[u8], at: usize) -> Option<Record<'_>> {
    let header = data.get(at..)?;
    let (kind, misc, size) = (u32_at(header, 0)?, u16_at(header, 4)?, usize::from(u16_at(header, 6)?));
    Some(Record { kind, misc, body: header.get(8..size)? })
}

pub(super) fn records_in(data: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let record = record_at(data, at)?;
        at += 8 + record.body.len();
        Some(record)
    })
}

/// Process, build id and path of a build-id record.
pub(super) fn build_id_record(record: &Record<'_>) -> Option<(String, String)> {
    /// The length of the id stands behind it.
    const HAS_SIZE: u16 = 1 << 15;
    const ID_BYTES: usize = 20;
    let id = record.body.get(4..4 + ID_BYTES)?;
    let stated = usize::from(*record.body.get(4 + ID_BYTES)?);
    let length =
        if record.misc & HAS_SIZE != 0 && (1..=ID_BYTES).contains(&stated) { stated } else { ID_BYTES };
    // The id's field is 24 bytes with its padding.
    Some((text(record.body.get(28..)?), crate::program::hex(&id[..length])))
}
