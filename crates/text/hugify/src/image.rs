//! What of an ELF file matters for its text on huge pages: where each segment lies in the file and in memory.
//!
//! ```text
//!  file      |..R..|.......text.......|..RW..|        offset
//!                   \                  \
//!  memory   |..R..|  |.......text.......|  |..RW..|   address, from the base on which the loader puts the whole
//!                  ^ whole huge pages:  H===H===H
//! ```
//!
//! The kernel maps a huge page of the page cache by one entry where offset and address have the same remainder by its
//! size: `thp_vma_suitable_order` in include/linux/huge_mm.h. So three things decide: that remainder of each segment,
//! the base that the loader chooses (by `p_align`: `maximum_alignment` in fs/binfmt_elf.c, and the loader of the libc),
//! and whether the page cache has the file in pieces of that size at all, which is no business of the file's bytes.

use std::ops::Range;

use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, ReadRef};
use planish_sorted::SortSmall as _;

use crate::error::HugifyError;

/// How a file is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At the addresses that it says.
    Fixed,
    /// Anywhere: a program that the kernel puts on a multiple of its largest `p_align`.
    Anywhere,
    /// A shared library, which the loader of the libc maps.
    Library,
}

/// A loaded segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its program header.
    pub index: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_bytes: u64,
    /// Address, before the base is added.
    pub address: u64,
    /// `p_align`, at least 1.
    pub align: u64,
    /// Whether it holds code.
    pub executable: bool,
    /// Whether it can be written.
    pub writable: bool,
}

impl Segment {
    /// Addresses of its whole huge pages; `None` where it holds none.
    #[must_use]
    pub fn whole(&self, huge_bytes: u64) -> Option<Range<u64>> {
        let start = self.address.checked_next_multiple_of(huge_bytes)?;
        let end = self.address.checked_add(self.file_bytes)? / huge_bytes * huge_bytes;
        (start < end).then_some(start..end)
    }

    /// Whether offset and address have the same remainder.
    #[must_use]
    pub fn is_congruent(&self, bytes: u64) -> bool {
        self.offset % bytes == self.address % bytes
    }

    /// The offset in the file of an address in it.
    #[must_use]
    pub fn offset_of(&self, address: u64) -> u64 {
        self.offset + (address - self.address)
    }
}

/// An ELF file, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// How it is loaded.
    pub kind: Kind,
    /// The loaded segments that have bytes in the file, in their order there.
    pub segments: Vec<Segment>,
    /// Where the table of program headers begins.
    pub(crate) programs_at: u64,
    /// Their number.
    pub(crate) programs: u64,
    /// Where the table of sections begins; 0 without one.
    pub(crate) sections_at: u64,
    /// Their number.
    pub(crate) sections: u64,
    /// Where the last thing ends that a header names.
    pub(crate) named_bytes: u64,
    /// What lies in the file as one piece: what sections hold, and their table.
    pub(crate) pieces: Vec<Range<u64>>,
}

/// No file has a larger `p_align`: the largest huge page of any Linux has 16 GiB.
const ALIGN_MAX: u64 = 16 << 30;

const LITTLE: LittleEndian = LittleEndian;
type Header = FileHeader64<LittleEndian>;

impl Image {
    /// Reads the headers of an ELF file.
    ///
    /// # Errors
    /// No ELF file, one of another word, or one that nobody loads.
    pub fn parse(bytes: &[u8]) -> Result<Self, HugifyError> {
        Self::read(bytes)
    }

    /// The same of what is not in memory as a whole.
    pub(crate) fn read<'data>(bytes: impl ReadRef<'data>) -> Result<Self, HugifyError> {
        let length = bytes.len().map_err(|()| HugifyError::NotLoaded)?;
        let header = Header::parse(bytes).map_err(HugifyError::Elf)?;
        if !header.is_class_64() || header.e_ident().data != elf::ELFDATA2LSB {
            return Err(HugifyError::Foreign);
        }
        let programs = header.program_headers(LITTLE, bytes).map_err(HugifyError::Elf)?;
        let sections = header.section_headers(LITTLE, bytes).map_err(HugifyError::Elf)?;
        let has = |kind| programs.iter().any(|program| program.p_type(LITTLE) == kind);
        let kind = match header.e_type(LITTLE) {
            elf::ET_EXEC => Kind::Fixed,
            // A program that is linked statically has no interpreter. An entry says nothing: libraries have one, too.
            elf::ET_DYN if has(elf::PT_INTERP) || is_pie(programs, bytes) => Kind::Anywhere,
            elf::ET_DYN => Kind::Library,
            _ => return Err(HugifyError::NotLoaded),
        };
        let mut segments: Vec<Segment> = programs.iter().enumerate().filter_map(segment).collect();
        segments.sort_small_by_key(|segment| segment.offset);
        let (programs_at, sections_at) = (header.e_phoff(LITTLE), header.e_shoff(LITTLE));
        let (program_count, section_count) = (programs.len() as u64, sections.len() as u64);
        let table = |at: u64, count: u64, size: usize| {
            if count == 0 { 0 } else { at.saturating_add(count * size as u64) }
        };
        let of_programs =
            programs.iter().map(|program| program.p_offset(LITTLE).saturating_add(program.p_filesz(LITTLE)));
        let filled = sections.iter().filter(|section| section.sh_type(LITTLE) != elf::SHT_NOBITS);
        let mut pieces: Vec<Range<u64>> = filled
            .map(|section| (section.sh_offset(LITTLE), section.sh_size(LITTLE)))
            .map(|(offset, size)| offset..offset.saturating_add(size))
            .collect();
        let tables = [
            table(programs_at, program_count, size_of::<ProgramHeader64<LittleEndian>>()),
            table(sections_at, section_count, size_of::<elf::SectionHeader64<LittleEndian>>()),
        ];
        pieces.push(sections_at..tables[1]);
        let of_sections = pieces.iter().map(|piece| piece.end);
        let named_bytes = of_programs.chain(of_sections).chain(tables).max().unwrap_or(0);
        let is_odd = |segment: &Segment| !segment.align.is_power_of_two() || segment.align > ALIGN_MAX;
        if segments.iter().any(|segment| segment.end() > length || is_odd(segment)) {
            return Err(HugifyError::Unmovable { why: "a segment that no loader would take" });
        }
        Ok(Self {
            kind,
            segments,
            programs_at,
            programs: program_count,
            sections_at: if section_count == 0 { 0 } else { sections_at },
            sections: section_count,
            named_bytes,
            pieces,
        })
    }

    /// The executable segments.
    pub fn text(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.executable)
    }

    /// Bytes of text, and of those the bytes of whole huge pages.
    #[must_use]
    pub fn text_bytes(&self, huge_bytes: u64) -> (u64, u64) {
        let whole = |segment: &Segment| segment.whole(huge_bytes).map_or(0, |range| range.end - range.start);
        self.text().fold((0, 0), |(all, pages), segment| (all + segment.file_bytes, pages + whole(segment)))
    }

    /// The address of the program headers, before the base is added; `None` where no segment holds them.
    #[must_use]
    pub(crate) fn programs_address(&self) -> Option<u64> {
        let end = self.programs_at + self.programs * size_of::<ProgramHeader64<LittleEndian>>() as u64;
        let holds = |segment: &&Segment| segment.offset <= self.programs_at && end <= segment.end();
        let segment = self.segments.iter().find(holds)?;
        Some(segment.address.wrapping_add(self.programs_at - segment.offset))
    }

    /// Whether every executable segment with a whole huge page can be mapped by entries of that size as it is.
    #[must_use]
    pub fn is_ready(&self, huge_bytes: u64) -> bool {
        let is_aligned =
            |segment: &Segment| self.kind == Kind::Fixed || segment.align.is_multiple_of(huge_bytes);
        let mut text = self.text().filter(|segment| segment.whole(huge_bytes).is_some());
        text.all(|segment| segment.is_congruent(huge_bytes) && is_aligned(segment))
    }
}

impl Segment {
    /// The offset behind its last byte in the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.file_bytes)
    }
}

/// Whether the linker says that it made a program (`DF_1_PIE`).
fn is_pie<'data>(programs: &[ProgramHeader64<LittleEndian>], bytes: impl ReadRef<'data>) -> bool {
    let mut entries = programs.iter().filter_map(|program| program.dynamic(LITTLE, bytes).ok()?).flatten();
    entries.any(|entry| entry.tag(LITTLE) == elf::DT_FLAGS_1 && entry.val(LITTLE) & elf::DF_1_PIE.0 != 0)
}

fn segment((index, program): (usize, &ProgramHeader64<LittleEndian>)) -> Option<Segment> {
    let is_loaded = program.p_type(LITTLE) == elf::PT_LOAD && program.p_filesz(LITTLE) > 0;
    let flags = program.p_flags(LITTLE).0;
    is_loaded.then(|| Segment {
        index,
        offset: program.p_offset(LITTLE),
        file_bytes: program.p_filesz(LITTLE),
        address: program.p_vaddr(LITTLE),
        align: program.p_align(LITTLE).max(1),
        executable: flags & elf::PF_X.0 != 0,
        writable: flags & elf::PF_W.0 != 0,
    })
}
