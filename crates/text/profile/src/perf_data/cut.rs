//! Where the records of a recording end, and whether that is where the recorder ended them.
//!
//! ```text
//! file: header says |start, length|  data ...........| table of features | features     all of it must be there
//! pipe: record record record re                                                         the last one must be whole
//! ```
//! A copy that broke off, or a full disk, leaves a file of which half the samples are as good a profile as any, of
//! another run. So nothing reads one as if it were whole. A recorder that was killed never wrote the length: all that
//! it had written is there. Of a stream that ends between two records nobody can tell.

use std::fmt;

use super::bytes::{section, u16_at, u32_at, u64_at};
use super::container::{Record, kinds, record_at};
use super::{FORMAT, MAGIC};
use crate::error::ProfileError;

/// Bytes of the header before the data of a stream, and of a file's header.
const STREAM_HEADER_BYTES: usize = 16;
const FILE_HEADER_BYTES: u64 = 104;
/// Where a file's header says how long the data is, and which features follow.
const LENGTH_AT: usize = 48;
const FEATURES_AT: usize = 72;
const FEATURES_BYTES: usize = 32;

/// How a recording is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Bytes that its header or its last record counts on are not there.
    Short {
        /// Bytes that are there.
        there: u64,
        /// Bytes that it has at least where it is whole.
        whole: u64,
    },
    /// What stands at a byte is no record, so that none behind it can be found.
    Damaged {
        /// The byte.
        at: u64,
        /// Bytes that are there.
        there: u64,
    },
    /// The recorder was killed before it wrote how long the data is; all that is there can be read.
    Killed {
        /// Bytes that are there.
        there: u64,
    },
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { there, whole } => write!(f, "only {there} of {whole} bytes are there"),
            Self::Damaged { at, there } => write!(f, "it is damaged from byte {at} of {there} on"),
            Self::Killed { there } => {
                write!(
                    f,
                    "its recorder was killed: it does not say how many records it has, in {there} bytes"
                )
            }
        }
    }
}

/// Where the whole records of a recording are.
#[derive(Debug)]
pub(super) struct Data<'a> {
    pub records: &'a [u8],
    pub start: usize,
    pub is_file: bool,
    pub cut: Option<Cut>,
}

/// Finds them. `None` where not even the header is there.
pub(super) fn data(bytes: &[u8]) -> Option<Data<'_>> {
    let header_bytes = u64_at(bytes, 8)?;
    let there = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if header_bytes < FILE_HEADER_BYTES {
        let start = STREAM_HEADER_BYTES;
        let (end, torn) = whole_records(bytes, start, bytes.len());
        let cut = torn.map(|torn| torn.cut(there));
        return Some(Data { records: &bytes[start..end], start, is_file: false, cut });
    }
    let (stated, length) = (u64_at(bytes, 40)?, u64_at(bytes, LENGTH_AT)?);
    let (start, wanted) = (stated, stated.saturating_add(length));
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    let limit = usize::try_from(wanted).ok().filter(|end| length > 0 && *end <= bytes.len());
    let (end, torn) = whole_records(bytes, start, limit.unwrap_or(bytes.len()));
    let cut = if length == 0 {
        Some(Cut::Killed { there })
    } else {
        let whole = whole_bytes(bytes, wanted);
        // A record that is longer than the data that it stands in is damage, where all of the file is there.
        let torn = || torn.map(|_| Cut::Damaged { at: u64::try_from(end).unwrap_or(u64::MAX), there });
        if whole > there { Some(Cut::Short { there, whole }) } else { torn() }
    };
    Some(Data { records: &bytes[start..end], start, is_file: true, cut })
}

/// How a recording is not whole, if so.
#[must_use]
pub fn cut(bytes: &[u8]) -> Option<Cut> {
    bytes.starts_with(MAGIC).then(|| data(bytes)?.cut)?
}

/// Makes a recording that is cut one of the whole records that are there. What stood behind them is left out: the
/// names of events and of the host, and build ids.
///
/// # Errors
/// [`ProfileError::Cut`] where no record is there.
pub fn without_rest(bytes: &mut Vec<u8>) -> Result<(), ProfileError> {
    let Some(Data { records, start, is_file, cut: Some(cut) }) = data(bytes) else { return Ok(()) };
    let length = records.len();
    if length == 0 {
        return Err(ProfileError::Cut { format: FORMAT, cut });
    }
    bytes.truncate(start + length);
    if is_file {
        let length = u64::try_from(length).expect("an address is 64 bits at most");
        bytes[LENGTH_AT..LENGTH_AT + 8].copy_from_slice(&length.to_le_bytes());
        bytes[FEATURES_AT..FEATURES_AT + FEATURES_BYTES].fill(0);
    }
    Ok(())
}

/// How the last record is none.
#[derive(Clone, Copy, Debug)]
enum Torn {
    /// It ends there, which is behind the end.
    EndsAt(usize),
    /// It is shorter than its own header.
    NoRecord(usize),
}

impl Torn {
    fn cut(self, there: u64) -> Cut {
        let wide = |at| u64::try_from(at).unwrap_or(u64::MAX);
        match self {
            Self::EndsAt(end) => Cut::Short { there, whole: wide(end) },
            Self::NoRecord(at) => Cut::Damaged { at: wide(at), there },
        }
    }
}

/// Where the last whole record before `limit` ends, and what follows there if that is not the limit.
fn whole_records(bytes: &[u8], start: usize, limit: usize) -> (usize, Option<Torn>) {
    const HEADER_BYTES: usize = 8;
    let data = &bytes[..limit.max(start)];
    let mut at = start;
    while at < data.len() {
        let Some(record) = record_at(data, at) else {
            let stated = u16_at(data, at + 6).map_or(HEADER_BYTES, usize::from);
            let is_record = stated >= HEADER_BYTES;
            return (at, Some(if is_record { Torn::EndsAt(at + stated) } else { Torn::NoRecord(at) }));
        };
        let next = (at + HEADER_BYTES + record.body.len()).saturating_add(follows(&record));
        if next > data.len() {
            return (at, Some(Torn::EndsAt(next)));
        }
        at = next;
    }
    (at, None)
}

/// Data that follows a record and that its own length leaves out.
pub(super) fn follows(record: &Record<'_>) -> usize {
    match record.kind {
        kinds::AUXTRACE => {
            let length = u64_at(record.body, 0).and_then(|length| usize::try_from(length).ok());
            length.unwrap_or(usize::MAX)
        }
        kinds::TRACING_DATA => u32_at(record.body, 0).unwrap_or(0) as usize,
        _ => 0,
    }
}

/// Where the last feature of a file ends: each has its place in the table right behind the data.
fn whole_bytes(bytes: &[u8], data_end: u64) -> u64 {
    const ENTRY_BYTES: u64 = 16;
    let words = (0..FEATURES_BYTES / 8).filter_map(|word| u64_at(bytes, FEATURES_AT + 8 * word));
    let count: u64 = words.map(|word| u64::from(word.count_ones())).sum();
    let table_end = data_end.saturating_add(count * ENTRY_BYTES);
    let ends = section(bytes, data_end, count * ENTRY_BYTES).into_iter().flat_map(|table| {
        let entries = table.chunks_exact(16);
        entries.filter_map(|entry| Some(u64_at(entry, 0)?.saturating_add(u64_at(entry, 8)?)))
    });
    ends.fold(table_end, u64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::overview;

    /// A file of `perf record`, with its features.
    const RECORDED: &[u8] = include_bytes!("../../tests/faults.perf.data");

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + body.len()).unwrap();
        [&kind.to_le_bytes()[..], &[0, 0], &length.to_le_bytes(), body].concat()
    }

    fn stream() -> Vec<u8> {
        let mut attribute = [&1_u32.to_le_bytes()[..], &128_u32.to_le_bytes()].concat();
        attribute.resize(128, 0);
        // Address and thread.
        attribute[24] = 3;
        let sample = record(kinds::SAMPLE, &[1; 16]);
        let head = [&MAGIC[..], &16_u64.to_le_bytes()].concat();
        [head, record(kinds::HEADER_ATTR, &attribute), sample.repeat(4)].concat()
    }

    #[test]
    fn half_a_file_is_refused_and_read_where_that_is_asked_for() {
        assert_eq!(cut(RECORDED), None);
        let all = overview(RECORDED).unwrap().samples;
        for there in [RECORDED.len() - 1, RECORDED.len() / 2, 2000] {
            let mut half = RECORDED[..there].to_vec();
            let told = overview(&half).unwrap_err().to_string();
            assert_eq!(told, format!("perf.data: only {there} of {} bytes are there", whole(there)));
            without_rest(&mut half).unwrap();
            assert_eq!(cut(&half), None);
            let samples = overview(&half).unwrap().samples;
            assert!(samples > 0 && (samples == all) == (there == RECORDED.len() - 1), "{samples} of {all}");
        }
        let mut header = RECORDED[..200].to_vec();
        assert!(without_rest(&mut header).is_err(), "nothing is there");
    }

    /// Where the features would end is known where their table is there.
    fn whole(there: usize) -> usize {
        let end = |at| usize::try_from(u64_at(RECORDED, at).unwrap()).unwrap();
        let data_end = end(40) + end(LENGTH_AT);
        let features = u64_at(RECORDED, FEATURES_AT).unwrap().count_ones() as usize;
        let table_end = data_end + 16 * features;
        if there >= table_end { RECORDED.len() } else { table_end }
    }

    #[test]
    fn a_recorder_that_was_killed_left_all_that_it_had_written() {
        let end = usize::try_from(u64_at(RECORDED, 40).unwrap() + u64_at(RECORDED, LENGTH_AT).unwrap());
        let mut killed = RECORDED[..end.unwrap()].to_vec();
        killed[LENGTH_AT..LENGTH_AT + 8].fill(0);
        // In the midst of a record.
        killed.extend([9, 0, 0, 0, 2, 0, 40, 0, 1]);
        assert_eq!(cut(&killed), Some(Cut::Killed { there: killed.len() as u64 }));
        assert!(matches!(overview(&killed), Err(ProfileError::Cut { .. })), "nobody reads it unawares");
        without_rest(&mut killed).unwrap();
        assert_eq!(overview(&killed).unwrap().samples, overview(RECORDED).unwrap().samples);
    }

    #[test]
    fn a_stream_ends_with_a_whole_record() {
        let whole = stream();
        assert_eq!(overview(&whole).unwrap().samples, 4);
        for missing in [1, 8, 20, 23] {
            let mut torn = whole[..whole.len() - missing].to_vec();
            let told = overview(&torn).unwrap_err().to_string();
            assert!(told.contains(&format!("only {} of", torn.len())), "{told}");
            without_rest(&mut torn).unwrap();
            assert_eq!(overview(&torn).unwrap().samples, 3);
        }
        // Pages that were never written to the disk.
        let mut zeros = [&whole[..], &[0; 64]].concat();
        assert_eq!(cut(&zeros), Some(Cut::Damaged { at: whole.len() as u64, there: zeros.len() as u64 }));
        without_rest(&mut zeros).unwrap();
        assert_eq!(zeros, whole);
    }
}
