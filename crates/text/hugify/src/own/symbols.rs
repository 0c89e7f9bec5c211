//! What the symbols of the own program are asked for: the hot range, and names for perf.
//!
//! Their two sections are read as a whole: a program has a hundred thousand of them, and waits for this to start.

use std::ffi::CStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::elf::{FileHeader64, SHN_UNDEF, SHT_SYMTAB, STT_FUNC, SectionHeader64, Sym64};
use object::pod::slice_from_all_bytes;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, ReadCache};

const LITTLE: LittleEndian = LittleEndian;

/// The table of symbols and their names, as they lie in the file.
pub(super) struct Symbols {
    table: Vec<u8>,
    names: Vec<u8>,
}

impl Symbols {
    /// Reads them; `None` where the program was stripped of them, or is none that can be read.
    pub fn read(program: &File, cache: &ReadCache<File>) -> Option<Self> {
        let header = FileHeader64::<LittleEndian>::parse(cache).ok()?;
        let sections = header.section_headers(LITTLE, cache).ok()?;
        let table = sections.iter().find(|section| section.sh_type(LITTLE) == SHT_SYMTAB)?;
        let names = sections.get(table.sh_link(LITTLE) as usize)?;
        Some(Self { table: content(program, table)?, names: content(program, names)? })
    }

    fn all(&self) -> impl Iterator<Item = &Sym64<LittleEndian>> {
        let entries = slice_from_all_bytes::<Sym64<LittleEndian>>(&self.table);
        entries.unwrap_or_default().iter().filter(|symbol| symbol.st_shndx(LITTLE) != SHN_UNDEF)
    }

    /// The name of a symbol.
    fn name(&self, symbol: &Sym64<LittleEndian>) -> &[u8] {
        let rest = self.names.get(symbol.st_name(LITTLE) as usize..).unwrap_or_default();
        CStr::from_bytes_until_nul(rest).map_or(&[], CStr::to_bytes)
    }

    /// From `__hot_start` to `__hot_end`, where the program has both.
    pub fn marks(&self) -> Option<Range<u64>> {
        let (mut start, mut end) = (None, None);
        for symbol in self.all() {
            let rest = self.names.get(symbol.st_name(LITTLE) as usize..).unwrap_or_default();
            if rest.starts_with(b"__hot_start\0") {
                start = Some(symbol.st_value(LITTLE));
            } else if rest.starts_with(b"__hot_end\0") {
                // As an anchor it is the start of the last function, which the page that holds it covers.
                end = Some(symbol.st_value(LITTLE).saturating_add(symbol.st_size(LITTLE)));
            }
        }
        let (start, end) = (start?, end?);
        (start < end).then_some(start..end)
    }

    /// The functions that reach into one of these ranges: address, bytes, name.
    pub fn functions<'a>(&'a self, ranges: &'a [Range<u64>]) -> impl Iterator<Item = (u64, u64, &'a [u8])> {
        let functions = self.all().filter(|symbol| symbol.st_type() == STT_FUNC);
        functions.filter_map(|symbol| {
            let (at, bytes) = (symbol.st_value(LITTLE), symbol.st_size(LITTLE));
            let end = at.saturating_add(bytes);
            let is_in = ranges.iter().any(|range| at < range.end && range.start < end);
            is_in.then(|| (at, bytes, self.name(symbol)))
        })
    }
}

fn content(program: &File, section: &SectionHeader64<LittleEndian>) -> Option<Vec<u8>> {
    let (at, bytes) = section.file_range(LITTLE)?;
    let length = program.metadata().ok()?.len();
    let bytes = at.checked_add(bytes).filter(|end| *end <= length).map(|end| end - at)?;
    let mut content = vec![0; usize::try_from(bytes).ok()?];
    program.read_exact_at(&mut content, at).ok().map(|()| content)
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
                Symbols::read(&file, &cache).map(|symbols| symbols.marks())
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
