//! What the symbols of the own program are asked for: the hot range, and names for perf.
//!
//! A program has a hundred thousand of them, and waits for this to start: so their two sections are mapped and not
//! copied, and names, which linkers store in no order of use, are asked for before they are needed.

use std::fs::File;
use std::hint::black_box;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};

use memchr::memchr;
use memchr::memmem::find_iter;
use object::elf::{FileHeader64, SHN_UNDEF, SHT_SYMTAB, STT_FUNC, SectionHeader64, Sym64};
use object::pod::slice_from_all_bytes;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, ReadCache, ReadRef};
use planish_sys::pages;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::names::HEAD_BYTES;

const LITTLE: LittleEndian = LittleEndian;

/// The table of symbols of a program and their names, as they lie in its file.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    table: &'a [Sym64<LittleEndian>],
    names: &'a [u8],
}

impl<'a> Symbols<'a> {
    /// Reads those of a program in memory; `None` where it was stripped of them, or is none that can be read.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let [table, names] = sections(bytes)?;
        Some(Self::of(bytes.get(within(&table)?)?, bytes.get(within(&names)?)?))
    }

    /// Takes a table whose entries are cut, or lie at odd addresses, for one of none.
    fn of(table: &'a [u8], names: &'a [u8]) -> Self {
        Self { table: slice_from_all_bytes(table).unwrap_or_default(), names }
    }

    fn all(self) -> impl Iterator<Item = &'a Sym64<LittleEndian>> {
        /// Symbols whose names are asked for together: their lines fit the first cache.
        const TOGETHER: usize = 64;
        let near = self.table.chunks(TOGETHER).flat_map(move |chunk| {
            self.ask_for_names(chunk);
            chunk
        });
        near.filter(|symbol| symbol.st_shndx(LITTLE) != SHN_UNDEF)
    }

    /// Loads the starts of names, none of which has to wait for another one.
    fn ask_for_names(self, symbols: &[Sym64<LittleEndian>]) {
        let first = |symbol: &Sym64<LittleEndian>| self.names.get(symbol.st_name(LITTLE) as usize).copied();
        black_box(symbols.iter().filter_map(first).fold(0, |all, byte| all ^ byte));
    }

    /// What the table of names has from the name of a symbol on.
    fn name_onwards(self, symbol: &Sym64<LittleEndian>) -> &'a [u8] {
        self.names.get(symbol.st_name(LITTLE) as usize..).unwrap_or_default()
    }

    /// Bytes of the lines that name all of them to perf, about: ends of names are stored once.
    #[must_use]
    pub fn names_bytes(self) -> u64 {
        (self.table.len() * HEAD_BYTES + self.names.len()) as u64
    }

    /// The name of a symbol.
    fn name(self, symbol: &Sym64<LittleEndian>) -> &'a [u8] {
        let rest = self.name_onwards(symbol);
        memchr(0, rest).map_or(&[], |end| &rest[..end])
    }

    /// From `__hot_start` to `__hot_end`, where the program has both.
    #[must_use]
    pub fn marks(self) -> Option<Range<u64>> {
        // First of all whether there are such names: most programs have none, and to look at the name of each symbol
        // is to wait for memory a hundred thousand times.
        let places = |name| find_iter(self.names, name).collect::<Vec<usize>>();
        let (starts, ends) = (places(&b"__hot_start\0"[..]), places(&b"__hot_end\0"[..]));
        if starts.is_empty() || ends.is_empty() {
            return None;
        }
        let (mut start, mut end) = (None, None);
        for symbol in self.table.iter().filter(|symbol| symbol.st_shndx(LITTLE) != SHN_UNDEF) {
            let name = symbol.st_name(LITTLE) as usize;
            if starts.binary_search(&name).is_ok() {
                start = Some(symbol.st_value(LITTLE));
            } else if ends.binary_search(&name).is_ok() {
                // As an anchor it is the start of the last function, which the page that holds it covers.
                end = Some(symbol.st_value(LITTLE).saturating_add(symbol.st_size(LITTLE)));
            }
        }
        let (start, end) = (start?, end?);
        (start < end).then_some(start..end)
    }

    /// The functions that reach into one of these ranges: address, bytes, name.
    pub fn functions<'b>(
        self,
        ranges: &'b [Range<u64>],
    ) -> impl Iterator<Item = (u64, u64, &'a [u8])> + use<'a, 'b> {
        let functions = self.all().filter(|symbol| symbol.st_type() == STT_FUNC);
        functions.filter_map(move |symbol| {
            let (at, bytes) = (symbol.st_value(LITTLE), symbol.st_size(LITTLE));
            let end = at.saturating_add(bytes);
            let is_in = ranges.iter().any(|range| at < range.end && range.start < end);
            is_in.then(|| (at, bytes, self.name(symbol)))
        })
    }
}

/// Where the table of symbols lies in a file, and where their names do: both in the file, and not empty.
fn sections<'data, R: ReadRef<'data>>(data: R) -> Option<[Range<u64>; 2]> {
    let header = FileHeader64::<LittleEndian>::parse(data).ok()?;
    let sections = header.section_headers(LITTLE, data).ok()?;
    let table = sections.iter().find(|section| section.sh_type(LITTLE) == SHT_SYMTAB)?;
    let names = sections.get(table.sh_link(LITTLE) as usize)?;
    let length = data.len().ok()?;
    let place = |section: &SectionHeader64<LittleEndian>| {
        let (at, bytes) = section.file_range(LITTLE)?;
        let end = at.checked_add(bytes).filter(|end| bytes > 0 && *end <= length)?;
        Some(at..end)
    };
    Some([place(table)?, place(names)?])
}

fn within(place: &Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(place.start).ok()?..usize::try_from(place.end).ok()?)
}

/// Both sections of the program's own file, mapped.
pub(super) struct OwnSymbols {
    table: Part,
    names: Part,
}

impl OwnSymbols {
    /// Maps them; `None` where the program was stripped of them, or is none that can be read.
    pub fn map(program: &File, cache: &ReadCache<File>) -> Option<Self> {
        let [table, names] = sections(cache)?;
        Some(Self { table: Part::map(program, &table)?, names: Part::map(program, &names)? })
    }

    pub fn symbols(&self) -> Symbols<'_> {
        Symbols::of(self.table.bytes(), self.names.bytes())
    }
}

/// A section of the program's file, mapped to be read.
struct Part {
    start: NonNull<u8>,
    /// Bytes that are mapped.
    mapped: usize,
    /// Where the section lies in them.
    within: Range<usize>,
}

impl Part {
    /// A part that the file has.
    fn map(program: &File, &Range { start: at, end }: &Range<u64>) -> Option<Self> {
        let lead = at % pages::base_bytes() as u64;
        let mapped = usize::try_from(end - (at - lead)).ok()?;
        let lead = usize::try_from(lead).ok()?;
        // SAFETY: a new mapping, at a place that the kernel chooses, of a part that the file has.
        let start = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
            mmap(null_mut(), mapped, ProtFlags::READ, flags, program, at - lead as u64)
        };
        Some(Self { start: NonNull::new(start.ok()?.cast())?, mapped, within: lead..mapped })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped as long as `self`. The kernel lets nobody write to or cut the file of a program that runs
        // (ETXTBSY), and where a server does all the same (NFS), this program's code is gone as well.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.mapped) };
        &all[self.within.clone()]
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: our own mapping; slices of it have ended, as they borrow `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files and processes of this test")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn marks_are_found_in_a_program_that_has_both_and_was_not_stripped() {
        let test = "marks_are_found_in_a_program_that_has_both_and_was_not_stripped";
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("main.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let build = |flags: &[&str]| {
            let program = folder.path().join("program");
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-static-pie", "-nostartfiles", "-Wl,-e,main"]).args(flags);
            let built = cc.arg(&source).arg("-o").arg(&program).status().is_ok_and(|status| status.success());
            built.then(|| {
                let file = File::open(&program).unwrap();
                let cache = ReadCache::new(file.try_clone().unwrap());
                let mapped = OwnSymbols::map(&file, &cache).map(|own| own.symbols().marks());
                let bytes = std::fs::read(&program).unwrap();
                assert_eq!(Symbols::parse(&bytes).map(Symbols::marks), mapped, "mapped or in memory");
                mapped
            })
        };
        let (start, end) = ("-Wl,--defsym=__hot_start=main", "-Wl,--defsym=__hot_end=main+64");
        let Some(both) = build(&[start, end]) else { return planish_skip::skip(test, "no cc that links so") };
        let range = both.expect("it has symbols").expect("it has both");
        assert_eq!(range.end - range.start, 64);
        assert_eq!(build(&[start]).unwrap(), Some(None), "one is none");
        assert_eq!(build(&["-Wl,--defsym=x__hot_start=main", end]).unwrap(), Some(None), "another name");
        assert_eq!(build(&[start, end, "-s"]).unwrap(), None, "stripped");
    }
}
