//! Bytes of a log file. No file is touched here.
//!
//! ```text
//!   head   0 "PLANLOG\n"   8 version   12 0   16 table   24 first batch   32 0   36 crc32c of 0..36
//!   frame  0 marker   4 bytes of payload   8 first batch   16 synced before   24 batches   28 0   36 crc32c
//!         40 payload, filled up with zeros to a multiple of 8
//! ```
//!
//! All numbers are little-endian. The checksum of a frame covers the table's number, bytes 0 to 36 and the payload,
//! so a frame is valid in one table only: what a user writes into a cell cannot look like a frame of the table it is
//! in.

use std::ops::Range;

/// Version of the format of log files, of which each tells its own. A newer one is refused by name.
///
/// Version 2 has batches that say what they do, and frames of lost batches, which a salvage leaves: a count, and no
/// payload. Version 1 is read.
pub const LOG_VERSION: u32 = 2;
/// Bytes of the head of a file, and of a frame.
pub const HEAD_BYTES: usize = 40;
/// Longest payload.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

const MAGIC: [u8; 8] = *b"PLANLOG\n";
const MARKER: u32 = 0x9e4c_a713;
const ALIGN: usize = 8;

/// Head of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Version of the format, which says how its batches are written.
    pub version: u32,
    /// The table that it belongs to.
    pub table: u64,
    /// Number of its first batch.
    pub first: u64,
}

/// A frame: what one write brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Number of its first batch.
    pub first: u64,
    /// Batches in it; none in a mark, which only says what was synced.
    pub count: u32,
    /// Every batch below this number was synced before the frame was written.
    pub synced: u64,
    /// Where its payload lies in the file.
    pub payload: Range<usize>,
}

impl Frame {
    /// Whether it stands for batches that a salvage could not keep, in a file of a version.
    #[must_use]
    pub fn is_lost(&self, version: u32) -> bool {
        version >= 2 && self.count > 0 && self.payload.is_empty()
    }
}

/// Where a log file ceases to be readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Offset of the first byte that is not understood.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
    /// Number that the next batch should have had.
    pub expected: u64,
    /// Whole frames behind it.
    pub frames_after: usize,
    /// Highest number up to which one of those says that everything was synced.
    pub synced_after: u64,
}

impl Bad {
    /// Whether what is unreadable had been synced once: then it was damaged since, and not torn.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.synced_after > self.expected
    }
}

/// What a log file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Whole frames, in order.
    pub frames: Vec<Frame>,
    /// Number of the batch after the last of them.
    pub next: u64,
    /// Where the rest begins, if there is one.
    pub bad: Option<Bad>,
}

impl Head {
    /// Of a file that is written now.
    #[must_use]
    pub fn new(table: u64, first: u64) -> Self {
        Self { version: LOG_VERSION, table, first }
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.table.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the head of a file: the version that is not known, or `None` where there is no sound head.
    ///
    /// # Errors
    /// The version of a sound head that is newer than [`LOG_VERSION`].
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, u32> {
        let Some(head) = bytes.get(..HEAD_BYTES) else { return Ok(None) };
        if head[..8] != MAGIC || crc32c::crc32c(&head[..36]) != u32_at(head, 36) {
            return Ok(None);
        }
        match u32_at(head, 8) {
            version @ 1..=LOG_VERSION => {
                Ok(Some(Self { version, table: u64_at(head, 16), first: u64_at(head, 24) }))
            }
            version => Err(version),
        }
    }
}

/// Writes a frame behind what `out` holds: its head, then the payload that `fill` appends.
pub(crate) fn write_frame(
    out: &mut Vec<u8>,
    table: u64,
    (first, count, synced): (u64, u32, u64),
    fill: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.resize(start + HEAD_BYTES, 0);
    fill(out);
    out.resize(start + (out.len() - start).next_multiple_of(ALIGN), 0);
    let payload = u32::try_from(out.len() - start - HEAD_BYTES).expect("the committer bounds a frame");
    let head = &mut out[start..start + HEAD_BYTES];
    head[..4].copy_from_slice(&MARKER.to_le_bytes());
    head[4..8].copy_from_slice(&payload.to_le_bytes());
    head[8..16].copy_from_slice(&first.to_le_bytes());
    head[16..24].copy_from_slice(&synced.to_le_bytes());
    head[24..28].copy_from_slice(&count.to_le_bytes());
    let crc = checksum(table, &out[start..]);
    out[start + 36..start + HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// Reads the frames behind the head of a file, of which `next` is the first batch.
#[must_use]
pub fn scan(bytes: &[u8], table: u64, next: u64) -> Scan {
    let mut scan = Scan { frames: Vec::new(), next, bad: None };
    let mut offset = HEAD_BYTES;
    while offset < bytes.len() {
        let reason = match frame_at(bytes, offset, table) {
            Ok(frame) if frame.first == scan.next => {
                offset = frame.payload.end;
                scan.next = frame.first.saturating_add(u64::from(frame.count));
                scan.frames.push(frame);
                continue;
            }
            Ok(_) => "a frame of another place in the log",
            Err(reason) => reason,
        };
        scan.bad = Some(look_behind(bytes, offset, table, reason, scan.next));
        break;
    }
    scan
}

/// The whole frames at the beginning of some bytes, of which `next` is the first batch; what is behind them is not
/// there yet, or half.
///
/// # Errors
/// Where a whole frame has another place in the log, or one was synced once and is not whole any more; and what is
/// wrong.
pub(crate) fn follow(bytes: &[u8], table: u64, mut next: u64) -> Result<Vec<Frame>, (usize, &'static str)> {
    let (mut frames, mut offset) = (Vec::new(), 0);
    while offset < bytes.len() {
        match frame_at(bytes, offset, table) {
            Ok(frame) if frame.first == next => {
                offset = frame.payload.end;
                next = frame.first.saturating_add(u64::from(frame.count));
                frames.push(frame);
            }
            Ok(_) => return Err((offset, "a frame of another place in the log")),
            Err(reason) if look_behind(bytes, offset, table, reason, next).is_damage() => {
                return Err((offset, reason));
            }
            Err(_) => break,
        }
    }
    Ok(frames)
}

/// Searches for whole frames behind a bad place; the bad one itself counts if it is whole.
fn look_behind(bytes: &[u8], offset: usize, table: u64, reason: &'static str, expected: u64) -> Bad {
    let frames = search(bytes, table, offset);
    let synced_after = frames.iter().map(|frame| frame.synced).max().unwrap_or(0);
    Bad { offset, reason, expected, frames_after: frames.len(), synced_after }
}

/// Every whole frame from a place on, also behind bytes that are none.
#[must_use]
pub fn search(bytes: &[u8], table: u64, mut at: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    while at.saturating_add(HEAD_BYTES) <= bytes.len() {
        match frame_at(bytes, at, table) {
            Ok(frame) => {
                at = frame.payload.end;
                frames.push(frame);
            }
            Err(_) => at += ALIGN,
        }
    }
    frames
}

fn frame_at(bytes: &[u8], offset: usize, table: u64) -> Result<Frame, &'static str> {
    let rest = &bytes[offset..];
    let Some(head) = rest.get(..HEAD_BYTES) else { return Err("the head of a frame is cut short") };
    if u32_at(head, 0) != MARKER {
        return Err("no frame begins here");
    }
    let length = u32_at(head, 4) as usize;
    if !length.is_multiple_of(ALIGN) || length > PAYLOAD_BYTES_MAX {
        return Err("a frame of an impossible length");
    }
    let end = HEAD_BYTES + length;
    let Some(frame) = rest.get(..end) else { return Err("a frame is cut short") };
    if checksum(table, frame) != u32_at(head, 36) {
        return Err("the checksum of a frame is wrong");
    }
    Ok(Frame {
        first: u64_at(head, 8),
        synced: u64_at(head, 16),
        count: u32_at(head, 24),
        payload: offset + HEAD_BYTES..offset + end,
    })
}

/// Of a whole frame, without the place of the checksum itself.
fn checksum(table: u64, frame: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&table.to_le_bytes()), &frame[..36]);
    crc32c::crc32c_append(crc, &frame[HEAD_BYTES..])
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: u64 = 0x1234_5678_9abc_def0;

    /// A file of frames of one batch each, each written after the one before was synced.
    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Head::new(TABLE, 1).to_bytes().to_vec();
        for (first, payload) in (1..).zip(payloads) {
            write_frame(&mut bytes, TABLE, (first, 1, first), |out| out.extend_from_slice(payload));
        }
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = file(&[b"one", b"", b"three and more"]);
        assert_eq!(Head::parse(&bytes), Ok(Some(Head::new(TABLE, 1))));
        let scan = scan(&bytes, TABLE, 1);
        assert_eq!((scan.next, &scan.bad), (4, &None));
        let payloads: Vec<&[u8]> = scan.frames.iter().map(|frame| &bytes[frame.payload.clone()]).collect();
        assert!(payloads[0].starts_with(b"one\0") && payloads[1].is_empty());
        assert!(payloads[2].starts_with(b"three and more\0"));
    }

    #[test]
    fn a_flipped_bit_before_the_last_frame_is_damage_with_its_place() {
        let bytes = file(&[b"one", b"two and a half", b"three"]);
        let whole = scan(&bytes, TABLE, 1);
        let last = whole.frames[2].payload.start - HEAD_BYTES;
        for bit in 8 * HEAD_BYTES..8 * bytes.len() {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            let scan = scan(&broken, TABLE, 1);
            let bad = scan.bad.expect("a flipped bit is seen");
            let frame = whole.frames.iter().find(|frame| bit / 8 < frame.payload.end).expect("one");
            assert_eq!(bad.offset, frame.payload.start - HEAD_BYTES, "bit {bit}");
            assert_eq!(bad.is_damage(), bit / 8 < last, "bit {bit}");
            assert_eq!(scan.frames, whole.frames[..scan.frames.len()]);
        }
    }

    #[test]
    fn a_flipped_bit_of_a_head_is_no_head() {
        let bytes = file(&[]);
        for bit in 0..8 * HEAD_BYTES {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::parse(&broken), Ok(None), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_told_and_an_older_one_read() {
        for (version, wanted) in
            [(0, Err(0)), (1, Ok(Some(Head { version: 1, ..Head::new(TABLE, 1) }))), (3, Err(3))]
        {
            let mut bytes = file(&[]);
            bytes[8] = version;
            let crc = crc32c::crc32c(&bytes[..36]);
            bytes[36..40].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Head::parse(&bytes), wanted);
        }
    }

    #[test]
    fn frames_written_before_any_sync_may_tear_in_any_order() {
        let mut bytes = Head::new(TABLE, 1).to_bytes().to_vec();
        for first in 1..=3 {
            write_frame(&mut bytes, TABLE, (first, 1, 1), |out| out.extend_from_slice(b"not synced"));
        }
        let first = HEAD_BYTES;
        bytes[first + HEAD_BYTES] ^= 1;
        let bad = scan(&bytes, TABLE, 1).bad.expect("torn");
        assert_eq!((bad.offset, bad.frames_after, bad.is_damage()), (first, 2, false));
    }

    #[test]
    fn a_frame_of_another_table_inside_a_cell_is_no_frame() {
        let mut inner = Vec::new();
        write_frame(&mut inner, TABLE + 1, (9, 1, 9), |out| out.extend_from_slice(b"bait"));
        let mut bytes = file(&[&inner]);
        let length = bytes.len();
        bytes.truncate(length - 8);
        let bad = scan(&bytes, TABLE, 1).bad.expect("torn");
        assert!(!bad.is_damage() && bad.frames_after == 0, "{bad:?}");
    }

    proptest! {
        #[test]
        fn any_cut_leaves_whole_frames_and_is_no_damage(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let bytes = file(&payloads);
            let whole = scan(&bytes, TABLE, 1);
            let cut = HEAD_BYTES + cut.index(bytes.len() - HEAD_BYTES);
            let torn = scan(&bytes[..cut], TABLE, 1);
            let kept = whole.frames.iter().take_while(|frame| frame.payload.end <= cut).count();
            prop_assert_eq!(&torn.frames, &whole.frames[..kept]);
            let end = whole.frames[..kept].last().map_or(HEAD_BYTES, |frame| frame.payload.end);
            prop_assert_eq!(torn.bad.as_ref().map(|bad| bad.offset), (end < cut).then_some(end));
            prop_assert!(torn.bad.is_none_or(|bad| !bad.is_damage()));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = (Head::parse(&bytes), scan(&bytes, TABLE, 1));
        }
    }
}
