//! A recording as perf's pipe format: what `perf record -o -` writes, and what `perf script -i F` reads.
//!
//! ```text
//!   PERFILE2, 16      HEADER_ATTR     HEADER_FEATURE     COMM, MMAP2 ...          the kernel's own records
//!   magic, length     the event       the host's name    what ran before, time 0  as they came out of the rings
//! ```
//!
//! One attribute stands for all records: the events of a recording must give them one layout, and no ids.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt, "pipe-mode data"; `perf_event__synthesize_mmap_events`
//! in tools/perf/util/synthetic-events.c for what is told of processes that ran before.

use super::MAGIC;
use super::bytes::{u32_at, u64_at};
use super::container::{Record, fields, kinds, records_in};
use super::lost_by;

/// An attribute's length in the stream: PERF_ATTR_SIZE_VER7. perf before 6.2 finds the ids behind the attribute by the
/// length that it was itself built with, and takes what is missing for a huge number of ids.
const ATTRIBUTE_BYTES: usize = 128;
const FEATURE_HOSTNAME: u64 = 3;
const MISC_USER: u16 = 2;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// Longest build id that fits a record.
const BUILD_ID_BYTES: usize = 20;
/// What perf cuts names of threads at, with the zero.
const COMM_BYTES: usize = 16;
/// A record's length is told in 16 bits; a path of the kernel's longest is far below.
const PATH_BYTES_MAX: usize = 4096;

/// Code that a process had mapped before the recording began.
#[derive(Clone, Copy, Debug)]
pub struct MappedCode<'a> {
    /// The process.
    pub pid: u32,
    /// Its first address.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode.
    pub inode: u64,
    /// Path, as the process sees it.
    pub path: &'a str,
    /// Its build id, where it has one and could be read.
    pub build_id: Option<&'a [u8]>,
}

/// What a part of the kernel's records held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Samples that were kept.
    pub samples: u64,
    /// Samples of the recorder itself, which were left out.
    pub own: u64,
    /// Records that the kernel says it dropped, because a ring was full.
    pub lost: u64,
}

/// A stream that grows.
#[derive(Debug)]
pub struct Stream {
    bytes: Vec<u8>,
    /// Where in a sample's body its process stands.
    pid_at: usize,
    /// Bytes that end every record that is no sample: who, when, where.
    tail: Vec<Tail>,
}

/// A field of the end of a record.
#[derive(Clone, Copy, Debug)]
enum Tail {
    Who,
    Zero,
}

impl Stream {
    /// Begins a stream of records of one layout: the attribute of `struct perf_event_attr` as the kernel was given it,
    /// little-endian.
    ///
    /// # Panics
    /// Where the attribute is shorter than the first form of Linux (64 bytes) or longer than 128: a constant of the
    /// caller.
    #[must_use]
    pub fn new(attribute: &[u8], host: &str) -> Self {
        assert!((64..=ATTRIBUTE_BYTES).contains(&attribute.len()), "{} bytes", attribute.len());
        let sample_type = u64_at(attribute, 24).unwrap_or(0);
        let words = |bits: &[u64]| bits.iter().filter(|bit| sample_type & **bit != 0).count();
        let zeros = [fields::TIME, fields::ID, fields::STREAM_ID, fields::CPU, fields::IDENTIFIER];
        let who = (sample_type & fields::TID != 0).then_some(Tail::Who);
        let tail = who.into_iter().chain(std::iter::repeat_n(Tail::Zero, words(&zeros))).collect();
        let pid_at = 8 * words(&[fields::IDENTIFIER, fields::IP]);
        let mut stream = Self { bytes: MAGIC.to_vec(), pid_at, tail };
        stream.bytes.extend(16_u64.to_le_bytes());
        let mut padded = attribute.to_vec();
        padded.resize(ATTRIBUTE_BYTES, 0);
        padded[4..8].copy_from_slice(&(ATTRIBUTE_BYTES as u32).to_le_bytes());
        stream.record(kinds::HEADER_ATTR, 0, &padded);
        let mut name = FEATURE_HOSTNAME.to_le_bytes().to_vec();
        let text = host.as_bytes();
        let length = (text.len() + 1).next_multiple_of(64);
        name.extend((length as u32).to_le_bytes());
        name.extend(text);
        name.resize(12 + length, 0);
        stream.record(kinds::HEADER_FEATURE, 0, &name);
        stream
    }

    /// Tells the name of a thread that ran before.
    pub fn thread(&mut self, pid: u32, tid: u32, name: &str) {
        let mut body = Vec::with_capacity(64);
        body.extend(pid.to_le_bytes());
        body.extend(tid.to_le_bytes());
        padded_text(&mut body, name, COMM_BYTES - 1);
        self.add_tail(&mut body, pid, tid);
        self.record(kinds::COMM, 0, &body);
    }

    /// Tells of code that was mapped before.
    pub fn code(&mut self, code: &MappedCode<'_>) {
        let mut body = Vec::with_capacity(160);
        body.extend(code.pid.to_le_bytes());
        body.extend(code.pid.to_le_bytes());
        for word in [code.start, code.bytes, code.offset] {
            body.extend(word.to_le_bytes());
        }
        let build_id = code.build_id.filter(|id| (1..=BUILD_ID_BYTES).contains(&id.len()));
        let misc = match build_id {
            Some(id) => {
                body.extend([id.len() as u8, 0, 0, 0]);
                body.extend(id);
                body.resize(56, 0);
                MISC_USER | MISC_MMAP_BUILD_ID
            }
            None => {
                body.extend(code.device.0.to_le_bytes());
                body.extend(code.device.1.to_le_bytes());
                body.extend(code.inode.to_le_bytes());
                body.extend(0_u64.to_le_bytes());
                MISC_USER
            }
        };
        // PROT_READ | PROT_EXEC and MAP_PRIVATE, as the loader maps code.
        body.extend(5_u32.to_le_bytes());
        body.extend(2_u32.to_le_bytes());
        padded_text(&mut body, code.path, PATH_BYTES_MAX);
        self.add_tail(&mut body, code.pid, code.pid);
        self.record(kinds::MMAP2, misc, &body);
    }

    /// Adds records as the kernel wrote them, without the samples of the process `own`.
    pub fn records(&mut self, raw: &[u8], own: Option<u32>) -> Taken {
        let mut taken = Taken::default();
        for record in records_in(raw) {
            if record.kind == kinds::SAMPLE {
                if own.is_some() && u32_at(record.body, self.pid_at) == own {
                    taken.own += 1;
                    continue;
                }
                taken.samples += 1;
            }
            taken.lost += lost_by(&record);
            let Record { kind, misc, body } = record;
            self.record(kind, misc, body);
        }
        taken
    }

    /// The stream so far. It has no end of its own: every length of it can be read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let length =
            u16::try_from(8 + body.len()).expect("a record is below 64 KiB: the kernel's, or a path");
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(misc.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(body);
    }

    fn add_tail(&self, body: &mut Vec<u8>, pid: u32, tid: u32) {
        for field in &self.tail {
            match field {
                Tail::Who => {
                    body.extend(pid.to_le_bytes());
                    body.extend(tid.to_le_bytes());
                }
                Tail::Zero => body.extend(0_u64.to_le_bytes()),
            }
        }
    }
}

/// A text with its zero, filled up to whole words.
fn padded_text(body: &mut Vec<u8>, text: &str, bytes_max: usize) {
    let text = &text.as_bytes()[..text.len().min(bytes_max)];
    body.extend(text);
    let length = body.len() + 1;
    body.resize(length.next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::overview;

    const TYPE: u64 = fields::IP | fields::TID | fields::TIME | fields::CPU | fields::PERIOD;

    fn attribute(sample_type: u64) -> Vec<u8> {
        let mut attribute = vec![0; 112];
        attribute[0] = 1;
        attribute[4] = 112;
        attribute[24..32].copy_from_slice(&sample_type.to_le_bytes());
        // exclude_kernel and sample_id_all.
        attribute[40..48].copy_from_slice(&(1_u64 << 5 | 1 << 18).to_le_bytes());
        attribute
    }

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes());
        bytes.extend((8 + 8 * words.len() as u16).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    fn sample(pid: u64, ip: u64, time: u64) -> Vec<u8> {
        record(kinds::SAMPLE, MISC_USER, &[ip, pid | pid << 32, time, 0, 1])
    }

    fn code<'a>(path: &'a str, build_id: Option<&'a [u8]>) -> MappedCode<'a> {
        let (device, inode) = ((8, 1), 77);
        MappedCode { pid: 40, start: 0x1000, bytes: 0x2000, offset: 0x400, device, inode, path, build_id }
    }

    #[test]
    fn what_is_built_is_read_back() {
        let mut stream = Stream::new(&attribute(TYPE), "web-1");
        stream.thread(40, 41, "a name that is longer than the kernel's");
        stream.code(&code("/bin/one", Some(&[0xab; 20])));
        stream.code(&MappedCode { start: 0x8000, ..code("/lib/two", None) });
        let raw = [sample(40, 0x1010, 5), sample(40, 0x8010, 7), sample(40, 0x2000, 6), sample(9, 0x1010, 8)];
        let lost = record(kinds::LOST, 0, &[0, 12, 40 | 40 << 32, 9, 0]);
        let taken = stream.records(&[raw.concat(), lost].concat(), Some(9));
        assert_eq!(taken, Taken { samples: 3, own: 1, lost: 12 });
        let seen = overview(stream.bytes()).expect("a stream");
        assert_eq!((seen.events, seen.samples), (vec!["cpu-clock:u".to_owned()], 3));
        let objects: Vec<_> = seen
            .objects
            .iter()
            .map(|(file, count)| (file.path.as_str(), file.build_id.clone(), *count))
            .collect();
        assert_eq!(objects, [("/bin/one", Some("ab".repeat(20)), 2), ("/lib/two", None, 1)]);
    }

    /// What was mapped before has time 0, whatever was written first.
    #[test]
    fn a_process_that_ran_before_is_known_to_its_first_sample() {
        let mut stream = Stream::new(&attribute(TYPE), "h");
        assert_eq!(stream.records(&sample(40, 0x1010, 1), None).samples, 1);
        stream.code(&code("/bin/one", None));
        assert_eq!(overview(stream.bytes()).expect("a stream").objects.len(), 1);
    }

    #[test]
    fn the_kernels_own_fork_and_exec_follow() {
        let mut stream = Stream::new(&attribute(TYPE), "h");
        stream.code(&code("/bin/one", None));
        let tail = [50 | 50 << 32, 3, 0];
        let fork = record(kinds::FORK, 0, &[&[50 | 40 << 32, 50 | 40 << 32, 3][..], &tail].concat());
        stream.records(&[sample(50, 0x1010, 9), fork].concat(), None);
        assert_eq!(
            overview(stream.bytes()).expect("a stream").objects.len(),
            1,
            "the child has its parent's code"
        );
    }

    #[test]
    fn every_layout_finds_the_process_of_a_sample() {
        let mut stream = Stream::new(&attribute(TYPE | fields::IDENTIFIER), "h");
        let raw = record(kinds::SAMPLE, 2, &[1, 0x1010, 9 | 9 << 32, 5, 0, 1]);
        assert_eq!(stream.records(&raw, Some(9)).own, 1);
        assert_eq!(stream.records(&raw[..20], Some(9)), Taken::default(), "half a record is none");
    }
}
