//! The bytes of a file whose text fits huge pages, from those of one whose text does not. No address of it changes.
//!
//! ```text
//!  before    |..R..|.....text.....|..RW..|sections|           offset + 0x1000 = address: no huge page ever fits
//!
//!  after     |..R..|0000000|.....text.....|..RW..|sections|   offset + 2 MiB * n = address
//!                   ^ less than a huge page, of zeroes; what lay behind moves by as much
//! ```
//!
//! Only where things lie in the file changes: `p_offset`, `sh_offset`, `e_phoff`, `e_shoff`; and `p_align`, by which
//! loaders choose a base. Symbols, relocations, debug information and unwind tables speak of addresses, and stay.
//! The table of program headers may lie in a segment behind the text (BOLT puts it there: it needs more room than there
//! is behind the ELF header). It moves with that segment, and is found at the address at which it was.
//! Before anything is handed out it is compared with its origin, segment by segment ([`HugifyError::Differs`]).
//!
//! Pure: bytes in, bytes out.

use std::ops::Range;

use crate::error::HugifyError;
use crate::image::{Image, Kind, Segment};

/// Sizes and members of the 64-bit ELF structures: System V ABI, chapters 4 and 5.
const HEADER_BYTES: u64 = 64;
const E_PHOFF: u64 = 32;
const E_SHOFF: u64 = 40;
const PROGRAM_BYTES: u64 = 56;
const P_OFFSET: u64 = 8;
const P_ALIGN: u64 = 48;
const SECTION_BYTES: u64 = 64;
const SH_OFFSET: u64 = 24;

/// The smallest page on which the segments of a file lie.
const PAGE_BYTES: u64 = 4096;

/// Zeroes that are put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// Before this offset of the old file: where a segment begins.
    pub at: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// How a file is made to fit huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remake {
    image: Image,
    huge_bytes: u64,
    /// In the order of the file.
    pub insertions: Vec<Insertion>,
    /// Program headers whose `p_align` becomes a huge page.
    pub aligned: Vec<usize>,
}

impl Remake {
    /// Finds out what it takes.
    ///
    /// # Errors
    /// No ELF file; too little text; headers that do not allow it.
    pub fn plan(bytes: &[u8], huge_bytes: u64) -> Result<Self, HugifyError> {
        let image = Image::parse(bytes)?;
        let (text_bytes, whole_bytes) = image.text_bytes(huge_bytes);
        if whole_bytes == 0 {
            return Err(HugifyError::TooLittle { text_bytes, huge_bytes });
        }
        let fits = |segment: &Segment| segment.executable && segment.whole(huge_bytes).is_some();
        let mut insertions: Vec<Insertion> = Vec::new();
        let mut moved: u64 = 0;
        for segment in &image.segments {
            let unit =
                if fits(segment) { huge_bytes.max(segment.align) } else { segment.align.max(PAGE_BYTES) };
            let (due, lies) = (segment.address % unit, (segment.offset + moved) % unit);
            let bytes = (due + unit - lies) % unit;
            if bytes > 0 {
                if bytes > huge_bytes {
                    return Err(HugifyError::Unmovable {
                        why: "a segment is aligned to more than a huge page",
                    });
                }
                // What was no multiple of its own alignment before is nobody's to mend.
                if !segment.is_congruent(segment.align) {
                    return Err(HugifyError::Unmovable { why: "a segment does not lie as its p_align says" });
                }
                insertions.push(Insertion { at: segment.offset, bytes });
                moved += bytes;
            }
        }
        let is_short = |segment: &&Segment| fits(segment) && segment.align < huge_bytes;
        let may_align = image.kind != Kind::Fixed;
        let aligned = image.segments.iter().filter(|segment| may_align && is_short(segment));
        let aligned = aligned.map(|segment| segment.index).collect();
        let remake = Self { image, huge_bytes, insertions, aligned };
        remake.refuse_odd(bytes.len() as u64)?;
        Ok(remake)
    }

    /// Refuses files in which more than headers says where things lie.
    fn refuse_odd(&self, bytes: u64) -> Result<(), HugifyError> {
        if self.insertions.is_empty() {
            return Ok(());
        }
        let refused = |why| Err(HugifyError::Unmovable { why });
        // Archives and the programs of some runtimes hang behind the end, and are found by offsets of their own.
        if self.image.named_bytes < bytes {
            return refused("bytes follow that no header names, and may be looked for where they are");
        }
        // Each offset in one table is changed, and must be no word of another one.
        let sections = self.image.sections_at..self.image.sections_at + self.image.sections * SECTION_BYTES;
        let overlaps = |table: &Range<u64>| table.start < sections.end && sections.start < table.end;
        let [header, programs] = self.headers();
        if !sections.is_empty() && [&header, &programs].into_iter().any(overlaps) {
            return refused("its section headers share bytes with other headers");
        }
        if programs.start < header.end {
            return refused("its program headers share bytes with the header of the file");
        }
        let is_cut = |piece: &Range<u64>| {
            self.insertions.iter().any(|insertion| piece.start < insertion.at && insertion.at < piece.end)
        };
        if is_cut(&header) || is_cut(&programs) {
            return refused("a segment begins inside of its headers");
        }
        if self.image.pieces.iter().any(is_cut) {
            return refused("a section reaches over the end of its segment");
        }
        if self.image.segments.windows(2).any(|pair| pair[0].end() > pair[1].offset) {
            return refused("segments share bytes of the file");
        }
        Ok(())
    }

    /// Whether the bytes stay as they are: then all it takes is the page cache.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.insertions.is_empty() && self.aligned.is_empty()
    }

    /// By how many bytes the file becomes longer.
    #[must_use]
    pub fn added_bytes(&self) -> u64 {
        self.insertions.iter().map(|insertion| insertion.bytes).sum()
    }

    /// The file that it is made from.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Where a byte of the old file lies in the new one. What has no bytes (`.bss`) may be said to lie at any offset,
    /// and stays where no file reaches.
    fn place(&self, offset: u64) -> u64 {
        let before = self.insertions.iter().filter(|insertion| insertion.at <= offset);
        offset.checked_add(before.map(|insertion| insertion.bytes).sum()).unwrap_or(offset)
    }

    /// The new file.
    ///
    /// # Errors
    /// `bytes` are not those of the plan, or what was made would not be the same program.
    pub fn make(&self, bytes: &[u8]) -> Result<Vec<u8>, HugifyError> {
        if Image::parse(bytes)? != self.image {
            return Err(HugifyError::Unmovable { why: "it is another file than the one that was looked at" });
        }
        let mut new = Vec::with_capacity(bytes.len() + usize_of(self.added_bytes()));
        let mut from = 0;
        for insertion in &self.insertions {
            let at = usize_of(insertion.at);
            new.extend_from_slice(&bytes[from..at]);
            new.resize(new.len() + usize_of(insertion.bytes), 0);
            // The first page of the segment also shows what lies before it in the file: it stays the same page.
            let lead = usize_of(insertion.at % PAGE_BYTES);
            let end = new.len();
            new[end - lead..].copy_from_slice(&bytes[at - lead..at]);
            from = at;
        }
        new.extend_from_slice(&bytes[from..]);
        self.patch(&mut new);
        self.compare(bytes, &new)?;
        Ok(new)
    }

    fn patch(&self, new: &mut [u8]) {
        // Where the table lies now, which may have moved as well.
        let programs = self.place(self.image.programs_at);
        if !self.insertions.is_empty() {
            if self.image.sections > 0 {
                self.move_word(new, E_SHOFF);
            }
            for index in 0..self.image.programs {
                self.move_word(new, programs + index * PROGRAM_BYTES + P_OFFSET);
            }
            let sections = self.place(self.image.sections_at);
            for index in 0..self.image.sections {
                self.move_word(new, sections + index * SECTION_BYTES + SH_OFFSET);
            }
            self.move_word(new, E_PHOFF);
        }
        for index in &self.aligned {
            put(new, programs + *index as u64 * PROGRAM_BYTES + P_ALIGN, self.huge_bytes);
        }
    }

    /// Replaces an offset by where its byte lies now.
    fn move_word(&self, new: &mut [u8], at: u64) {
        let old = word(new, at);
        put(new, at, self.place(old));
    }

    /// Where the headers lie that say how the file is loaded, in the old file.
    fn headers(&self) -> [Range<u64>; 2] {
        let programs = self.image.programs_at..self.image.programs_at + self.image.programs * PROGRAM_BYTES;
        [0..HEADER_BYTES, programs]
    }

    /// Compares the segments of two files, but for the headers that were to change.
    fn compare(&self, old: &[u8], new: &[u8]) -> Result<(), HugifyError> {
        let made = Image::parse(new)?;
        let count = self.image.segments.len();
        if made.kind != self.image.kind || made.segments.len() != count || !made.is_ready(self.huge_bytes) {
            return Err(HugifyError::Differs { address: 0 });
        }
        // Loaders, and unwinders by dl_iterate_phdr, read the table at its address, whatever the file says of offsets.
        if made.programs_address() != self.image.programs_address() {
            return Err(HugifyError::Differs { address: self.image.programs_address().unwrap_or(0) });
        }
        let headers = self.headers();
        for (before, after) in self.image.segments.iter().zip(&made.segments) {
            let as_before = Segment { offset: before.offset, align: before.align, ..*after };
            let at = |segment: &Segment| usize_of(segment.offset)..usize_of(segment.end());
            let differs = |address| HugifyError::Differs { address };
            if as_before != *before || !after.is_congruent(after.align) {
                return Err(differs(before.address));
            }
            let parts = without(before.offset..before.end(), &headers);
            for part in parts {
                let (from, bytes) = (part.start - before.offset, usize_of(part.end - part.start));
                let old = &old[at(before)][usize_of(from)..][..bytes];
                let new = &new[at(after)][usize_of(from)..][..bytes];
                if old != new {
                    let first = old.iter().zip(new).position(|(old, new)| old != new).unwrap_or(0);
                    return Err(differs(before.address + from + first as u64));
                }
            }
        }
        Ok(())
    }
}

/// A range without others.
fn without(range: Range<u64>, holes: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = vec![range];
    for hole in holes {
        let cut = |part: Range<u64>| {
            let before = part.start..part.end.min(hole.start);
            let after = part.start.max(hole.end)..part.end;
            [before, after].into_iter().filter(|part| part.start < part.end)
        };
        left = left.into_iter().flat_map(cut).collect();
    }
    left
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("an offset of bytes in memory fits an address")
}

fn word(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(*bytes[usize_of(at)..].first_chunk().expect("a header lies inside the file"))
}

fn put(bytes: &mut [u8], at: u64, value: u64) {
    bytes[usize_of(at)..][..8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use object::elf;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Load, R, RW, RX, bolted, lld, program, with};

    const HUGE: u64 = 2 << 20;

    fn made(bytes: &[u8]) -> (Remake, Vec<u8>, Image) {
        let remake = Remake::plan(bytes, HUGE).unwrap();
        let new = remake.make(bytes).unwrap();
        let image = Image::parse(&new).unwrap();
        (remake, new, image)
    }

    #[test]
    fn text_that_fits_already_gets_its_alignment_and_nothing_else() {
        let bytes =
            program(elf::ET_DYN, &[Load::new(R, 0, 0, 0x1000), Load::new(RX, 0x1000, 0x1000, 5 << 20)]);
        let (remake, new, image) = made(&bytes);
        assert_eq!((remake.added_bytes(), remake.aligned.as_slice()), (0, [1].as_slice()));
        assert_eq!((new.len(), image.is_ready(HUGE)), (bytes.len(), true));
        assert_eq!(image.segments[1].align, HUGE);
        // At fixed addresses no loader chooses a base.
        let fixed = program(elf::ET_EXEC, &[Load::new(RX, 0, 0x40_0000, 5 << 20)]);
        let (remake, new, _) = made(&fixed);
        assert!(remake.is_same() && new == fixed);
    }

    #[test]
    fn text_at_other_remainders_moves_and_no_address_does() {
        let bytes = lld();
        let (remake, new, image) = made(&bytes);
        assert_eq!(remake.insertions.len(), 1);
        assert!(remake.added_bytes() < HUGE && new.len() as u64 == bytes.len() as u64 + remake.added_bytes());
        let before = Image::parse(&bytes).unwrap();
        for (before, after) in before.segments.iter().zip(&image.segments) {
            assert_eq!((before.address, before.file_bytes), (after.address, after.file_bytes));
            let at = |segment: &Segment| usize_of(segment.offset)..usize_of(segment.end());
            // The first segment holds the headers, which do change.
            if before.offset > 0 {
                assert_eq!(bytes[at(before)], new[at(after)], "segment {}", before.index);
            }
        }
        // Sections, and what they hold, are found where they lie now.
        let (old, now) = (object::File::parse(&*bytes).unwrap(), object::File::parse(&*new).unwrap());
        use object::{Object, ObjectSection};
        let content = |file: &object::File<'_>| -> Vec<(String, u64, Vec<u8>)> {
            let of = |section: object::Section<'_, '_>| {
                let data = section.data().unwrap().to_vec();
                (section.name().unwrap().to_owned(), section.address(), data)
            };
            // The first one holds the headers.
            file.sections().skip(1).map(of).collect()
        };
        assert_eq!(content(&old), content(&now));
        assert!(content(&old).len() > 2);
    }

    #[test]
    fn what_shares_the_first_page_of_text_stays_in_it() {
        let bytes = lld();
        let (_, new, image) = made(&bytes);
        let lead = |bytes: &[u8], segment: &Segment| {
            let at = usize_of(segment.offset);
            bytes[at - at % 4096..at].to_vec()
        };
        let text = |image: &Image| *image.text().next().unwrap();
        let old = lead(&bytes, &text(&Image::parse(&bytes).unwrap()));
        assert_eq!(old, lead(&new, &text(&image)));
        assert!(!old.is_empty());
    }

    #[test]
    fn program_headers_behind_the_text_move_and_keep_their_address() {
        let bytes = bolted();
        let before = Image::parse(&bytes).unwrap();
        let text = *before.text().next().unwrap();
        assert!(before.programs_at > text.end(), "as BOLT lays it out");
        let (remake, new, image) = made(&bytes);
        // One before the text, and one that brings the new segment to its own alignment again.
        assert_eq!(remake.insertions.len(), 2);
        assert_eq!(image.programs_at, before.programs_at + remake.added_bytes());
        assert_eq!(image.programs_address(), Some(before.segments[3].address));
        assert_eq!(image.programs_address(), before.programs_address());
        // PT_PHDR says the same as the header.
        let phdr = image.programs_at;
        assert_eq!(word(&new, phdr) as u32, elf::PT_PHDR.0);
        assert_eq!(word(&new, phdr + P_OFFSET), image.programs_at);
        // What lies around the table, and where it was, is what it was.
        let behind = |bytes: &[u8], image: &Image| {
            let at = usize_of(image.programs_at + image.programs * PROGRAM_BYTES);
            bytes[at..usize_of(image.segments[3].end())].to_vec()
        };
        assert!(!behind(&bytes, &before).is_empty());
        assert_eq!(behind(&bytes, &before), behind(&new, &image));
        assert_eq!(bytes[64..400], new[64..400]);
        assert!(image.is_ready(HUGE) && Remake::plan(&new, HUGE).unwrap().is_same());
    }

    #[test]
    fn headers_that_text_would_be_put_into_are_refused() {
        // The table ends inside of the text, which is to move and to stay.
        let sound = lld();
        let text = Image::parse(&sound).unwrap().text().next().unwrap().offset;
        let table = &sound[64..64 + 3 * usize_of(PROGRAM_BYTES)];
        let mut cut = with(&sound, E_PHOFF, text - 56);
        cut[usize_of(text - 56)..][..table.len()].copy_from_slice(table);
        assert!(matches!(Remake::plan(&cut, HUGE), Err(HugifyError::Unmovable { .. })));
    }

    #[test]
    fn a_second_time_there_is_nothing_to_do() {
        let (_, new, _) = made(&lld());
        assert!(Remake::plan(&new, HUGE).unwrap().is_same());
    }

    #[test]
    fn what_cannot_be_done_is_told() {
        let small = program(elf::ET_DYN, &[Load::new(RX, 0, 0, 1 << 20)]);
        assert!(matches!(Remake::plan(&small, HUGE), Err(HugifyError::TooLittle { .. })));
        // A program that finds its data behind its end.
        let mut hung = lld();
        hung.extend_from_slice(b"PK\x03\x04");
        assert!(matches!(Remake::plan(&hung, HUGE), Err(HugifyError::Unmovable { .. })));
        let fits = program(elf::ET_DYN, &[Load::new(RX, 0, 0, 5 << 20)]);
        let hung = [fits.as_slice(), b"PK"].concat();
        assert_eq!(Remake::plan(&hung, HUGE).unwrap().added_bytes(), 0, "nothing of it moves");
        let (remake, _, _) = made(&lld());
        assert!(remake.make(&fits).is_err(), "it is another file");
        for odd in [&b""[..], b"\x7fELF", &[0; 64], b"#!/bin/sh\n"] {
            assert!(Remake::plan(odd, HUGE).is_err());
        }
        assert!(matches!(Remake::plan(&program(elf::ET_REL, &[]), HUGE), Err(HugifyError::NotLoaded)));
    }

    #[test]
    fn segments_aligned_to_huge_pages_stay_so_behind_text_that_moves() {
        let loads = [
            Load::new(R, 0, 0, 0x1000),
            Load::new(RX, 0x1000, 0x2000, 5 << 20),
            Load { align: HUGE, ..Load::new(RW, 6 << 20, 6 << 20, 0x1000) },
        ];
        let (_, _, image) = made(&program(elf::ET_DYN, &loads));
        assert!(image.segments.iter().all(|segment| segment.is_congruent(segment.align)));
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let sound = lld();
        for (at, value) in [(P_OFFSET, u64::MAX), (P_ALIGN, 3), (P_ALIGN, 1 << 62), (P_OFFSET + 8, 12345)] {
            let bytes = with(&sound, HEADER_BYTES + PROGRAM_BYTES + at, value);
            if let Ok(remake) = Remake::plan(&bytes, HUGE) {
                let _ = remake.make(&bytes);
            }
        }
    }

    #[test]
    fn tables_that_share_bytes_are_refused() {
        let sound = lld();
        for at in [HEADER_BYTES - 8, HEADER_BYTES + PROGRAM_BYTES] {
            let refused = Remake::plan(&with(&sound, E_SHOFF, at), HUGE);
            assert!(matches!(refused, Err(HugifyError::Unmovable { .. })), "{at}: {refused:?}");
        }
    }

    #[test]
    fn a_section_without_bytes_may_lie_anywhere() {
        let sound = lld();
        let (at, count) = (Image::parse(&sound).unwrap().sections_at, Image::parse(&sound).unwrap().sections);
        let header = at + (count - 1) * SECTION_BYTES;
        let mut bytes = with(&sound, header + SH_OFFSET, u64::MAX);
        let kind = usize_of(header) + 4;
        bytes[kind..kind + 4].copy_from_slice(&elf::SHT_NOBITS.0.to_le_bytes());
        let (_, new, image) = made(&bytes);
        let last = image.sections_at + (count - 1) * SECTION_BYTES;
        assert_eq!(word(&new, last + SH_OFFSET), u64::MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever the headers say, what comes out is the same program, or nothing.
        #[test]
        fn no_header_panics(at in 0_usize..400, value in any::<u8>(), more in 0_usize..400, other in any::<u8>()) {
            static SOUND: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [lld(), bolted()]);
            for sound in &*SOUND {
                let mut bytes = sound.clone();
                let table = usize_of(word(sound, E_PHOFF));
                let place = |at: usize| if at < 64 { at } else { table + at - 64 };
                bytes[place(at)] = value;
                bytes[place(more)] = other;
                if let Ok(remake) = Remake::plan(&bytes, HUGE)
                    && let Ok(new) = remake.make(&bytes)
                {
                    prop_assert!(Image::parse(&new).unwrap().is_ready(HUGE));
                }
            }
        }
    }
}
