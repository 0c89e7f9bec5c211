//! ELF files made by hand, as small as they can be.

use object::elf;

pub(crate) const R: u32 = 4;
pub(crate) const RX: u32 = 5;
pub(crate) const RW: u32 = 6;

/// A segment to be laid out.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub bytes: u64,
    pub align: u64,
}

impl Load {
    pub fn new(flags: u32, offset: u64, address: u64, bytes: u64) -> Self {
        Self { flags, offset, address, bytes, align: 0x1000 }
    }
}

/// A file of segments, each filled with bytes of its own, a section for each, and the table of sections at its end.
pub(crate) fn program(kind: elf::FileType, loads: &[Load]) -> Vec<u8> {
    let end = loads.iter().map(|load| load.offset + load.bytes).max().unwrap_or(0).max(0x400);
    let mut bytes = vec![0; usize::try_from(end).unwrap()];
    for (number, load) in loads.iter().enumerate() {
        for at in load.offset..load.offset + load.bytes {
            bytes[usize::try_from(at).unwrap()] = (at % 251) as u8 ^ number as u8;
        }
    }
    let names = b"\0.a\0.b\0.c\0.d\0.names\0";
    let names_at = bytes.len() as u64;
    bytes.extend_from_slice(names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let sections_at = bytes.len() as u64;
    let section = |name: u32, kind: u32, address: u64, offset: u64, size: u64| {
        let mut section = Vec::new();
        section.extend([name, kind].iter().flat_map(|word| word.to_le_bytes()));
        section.extend([2, address, offset, size, 0, 1, 0].iter().flat_map(|word: &u64| word.to_le_bytes()));
        section.truncate(64);
        section
    };
    bytes.extend([0_u8; 64]);
    for (number, load) in loads.iter().enumerate() {
        let name = 1 + 3 * number as u32;
        bytes.extend(section(name, 1, load.address, load.offset, load.bytes));
    }
    bytes.extend(section(13, 3, 0, names_at, names.len() as u64));
    let header = header(kind, loads.len() as u16, sections_at);
    bytes[..header.len()].copy_from_slice(&header);
    for (number, load) in loads.iter().enumerate() {
        let words = [load.offset, load.address, load.address, load.bytes, load.bytes, load.align];
        let mut program: Vec<u8> = [1, load.flags].iter().flat_map(|word| word.to_le_bytes()).collect();
        program.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes[64 + 56 * number..][..56].copy_from_slice(&program);
    }
    bytes
}

fn header(kind: elf::FileType, programs: u16, sections_at: u64) -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend(kind.0.to_le_bytes());
    header.extend(62_u16.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend([0x1000, 64, sections_at].iter().flat_map(|word: &u64| word.to_le_bytes()));
    header.extend(0_u32.to_le_bytes());
    let sections = programs + 2;
    let halves = [64, 56, programs, 64, sections, sections - 1];
    header.extend(halves.iter().flat_map(|half: &u16| half.to_le_bytes()));
    header
}

/// As lld lays a program out: no padding between segments in the file, one page between them in memory.
pub(crate) fn lld() -> Vec<u8> {
    let text = 5 << 20;
    program(
        elf::ET_DYN,
        &[
            Load::new(R, 0, 0, 0x1a40),
            Load::new(RX, 0x1a40, 0x2a40, text),
            Load::new(RW, 0x1a40 + text, 0x3a40 + text, 0x300),
        ],
    )
}

/// As BOLT leaves what lld has laid out: a new segment of code on its own huge page, which begins with the table of
/// program headers; behind the ELF header lies what nobody reads any more.
pub(crate) fn bolted() -> Vec<u8> {
    let (text, new) = (5 << 20, 6 << 20);
    let loads = [
        Load::new(R, new, new, 5 * 56),
        Load::new(R, 0, 0, 0x1a40),
        Load::new(RX, 0x1a40, 0x2a40, text),
        Load::new(RW, 0x1a40 + text, 0x3a40 + text, 0x300),
        Load { align: 2 << 20, ..Load::new(RX, new, new, (2 << 20) + 0x123) },
    ];
    let mut bytes = program(elf::ET_DYN, &loads);
    let at = usize::try_from(new).unwrap();
    bytes.copy_within(64..64 + loads.len() * 56, at);
    let bytes = with(&bytes, new, u64::from(elf::PT_PHDR.0) | u64::from(R) << 32);
    with(&bytes, 32, new)
}

/// The same file with another word.
pub(crate) fn with(bytes: &[u8], at: u64, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[usize::try_from(at).unwrap()..][..8].copy_from_slice(&value.to_le_bytes());
    bytes
}
