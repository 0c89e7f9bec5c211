//! An object file that marks where the ordered functions begin and end, for linkers that no script tells it.
//!
//! ```text
//! .text.__hot_start   empty, the first of the order        __hot_start = where the first ordered function lies
//! .text.__hot_end     one instruction, the last of it      __hot_end   = behind the last one that is there
//! ```
//! `--defsym` would need a function of the order, and fail once that is gone; functions of our own are always there.
//! The marks are weak, so that those of a program that has its own stay; and hidden, so that those of a library and
//! of its program do not become one. The end is no empty section: folding of identical code (`--icf=all`) would make
//! one mark of the two. The notes are those of a file that asks for nothing: without them a linker would take the
//! program's own protections away (an executable stack, no IBT, no BTI).

/// Names of the two marks.
pub(super) const MARKS: [&str; 2] = ["__hot_start", "__hot_end"];

/// What an output is for, as far as marks are known for it: 64 bits, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// aarch64.
    Aarch64,
}

impl Machine {
    /// That of an object file.
    #[must_use]
    pub fn of_object(bytes: &[u8]) -> Option<Self> {
        // ELF, 64 bits, little-endian; then the type, and the machine behind it.
        let known = bytes.starts_with(b"\x7fELF\x02\x01");
        let machine = known.then(|| bytes.get(18..20)).flatten()?;
        [Self::X86_64, Self::Aarch64].into_iter().find(|known| known.number().to_le_bytes() == *machine)
    }

    /// That of what a compiler makes code for (`x86_64-linux-gnu`), with the words that it is given.
    #[must_use]
    pub fn of_target<'a>(target: &str, words: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        const OTHER: [&str; 5] = ["-m32", "-mx32", "-m16", "-mabi=ilp32", "-mbig-endian"];
        if target.ends_with("x32") || words.into_iter().any(|word| OTHER.contains(&word)) {
            return None;
        }
        match target.split('-').next() {
            Some("x86_64" | "amd64") => Some(Self::X86_64),
            Some("aarch64" | "arm64") => Some(Self::Aarch64),
            _ => None,
        }
    }

    fn number(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }

    /// A breakpoint: nothing jumps to it.
    fn trap(self) -> [u8; 4] {
        match self {
            Self::X86_64 => [0xcc; 4],
            Self::Aarch64 => [0, 0, 0x20, 0xd4],
        }
    }

    /// Protections are those that every file of a link has: all of them.
    fn property(self) -> (u32, u32) {
        match self {
            // GNU_PROPERTY_X86_FEATURE_1_AND: IBT, SHSTK, LAM.
            Self::X86_64 => (0xc000_0002, 0b1111),
            // GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI, PAC, GCS.
            Self::Aarch64 => (0xc000_0000, 0b111),
        }
    }
}

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOTE: u32 = 7;
const ALLOC: u64 = 2;
const EXECUTED: u64 = 4;
const HEADER_BYTES: usize = 64;

/// A section before it has a place.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    content: Vec<u8>,
    align: u64,
}

/// The object file.
#[must_use]
pub fn marks(machine: Machine) -> Vec<u8> {
    let sections = sections(machine);
    let (mut body, mut table) = (Vec::new(), vec![0_u8; HEADER_BYTES]);
    let names = &sections.last().expect("the names are the last").content;
    let last = u32::try_from(sections.len()).expect("a handful");
    for section in &sections {
        body.resize(body.len().next_multiple_of(8), 0);
        let name = at_name(names, section.name);
        // Symbols: their names are in the last section, and all but the first are no local ones.
        let (link, info, entry_bytes) = if section.kind == SYMTAB { (last, 1, 24) } else { (0, 0, 0) };
        table.extend(words32(&[name, section.kind]));
        table.extend(words64(&[
            section.flags,
            0,
            wide(HEADER_BYTES + body.len()),
            wide(section.content.len()),
        ]));
        table.extend(words32(&[link, info]));
        table.extend(words64(&[section.align, entry_bytes]));
        body.extend(&section.content);
    }
    body.resize(body.len().next_multiple_of(8), 0);
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    // A relocatable file of that machine; version; no entry and no segments; where the table of sections is.
    bytes.extend([1_u16.to_le_bytes(), machine.number().to_le_bytes()].concat());
    bytes.extend(words32(&[1]));
    bytes.extend(words64(&[0, 0, wide(HEADER_BYTES + body.len())]));
    bytes.extend(words32(&[0]));
    let count = u16::try_from(last + 1).expect("a handful");
    let names_at = u16::try_from(last).expect("a handful");
    bytes.extend([64_u16, 0, 0, 64, count, names_at].iter().flat_map(|word| word.to_le_bytes()));
    [bytes, body, table].concat()
}

fn sections(machine: Machine) -> [Section; 6] {
    let section = |name, kind, flags, content, align| Section { name, kind, flags, content, align };
    let code = ALLOC | EXECUTED;
    let mut names = vec![0];
    for name in [".text.__hot_start", ".text.__hot_end", ".note.GNU-stack", ".note.gnu.property"]
        .into_iter()
        .chain([".symtab", ".strtab"])
        .chain(MARKS)
    {
        names.extend(name.as_bytes());
        names.push(0);
    }
    const WEAK_WITHOUT_TYPE: u8 = 0x20;
    const HIDDEN: u8 = 2;
    let mut symbols = vec![0_u8; 24];
    for (name, at) in MARKS.into_iter().zip(1_u16..) {
        symbols.extend(words32(&[at_name(&names, name)]));
        symbols.extend([WEAK_WITHOUT_TYPE, HIDDEN]);
        symbols.extend(at.to_le_bytes());
        symbols.extend(words64(&[0, 0]));
    }
    let (property, bits) = machine.property();
    let note = [&words32(&[4, 16, 5])[..], b"GNU\0", &words32(&[property, 4, bits, 0])].concat();
    [
        section(".text.__hot_start", PROGBITS, code, Vec::new(), 4),
        section(".text.__hot_end", PROGBITS, code, machine.trap().to_vec(), 4),
        section(".note.GNU-stack", PROGBITS, 0, Vec::new(), 1),
        section(".note.gnu.property", NOTE, ALLOC, note, 8),
        section(".symtab", SYMTAB, 0, symbols, 8),
        section(".strtab", STRTAB, 0, names, 1),
    ]
}

/// Where a name stands in a table of names.
fn at_name(names: &[u8], name: &str) -> u32 {
    let whole = [&[0], name.as_bytes(), &[0]].concat();
    let found = names.windows(whole.len()).position(|window| window == whole);
    u32::try_from(found.expect("every name is in it") + 1).expect("a short table")
}

fn words32(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words64(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("an address is 64 bits at most")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_that_of_the_link() {
        let target = |target: &str, words: &[&str]| Machine::of_target(target, words.iter().copied());
        assert_eq!(target("x86_64-linux-gnu", &["-O2"]), Some(Machine::X86_64));
        assert_eq!(target("aarch64-unknown-linux-gnu", &[]), Some(Machine::Aarch64));
        assert_eq!(target("x86_64-linux-gnu", &["-m32"]), None);
        assert_eq!(target("aarch64_be-linux-gnu", &[]), None);
        assert_eq!(target("x86_64-linux-gnux32", &[]), None);
        for machine in [Machine::X86_64, Machine::Aarch64] {
            assert_eq!(Machine::of_object(&marks(machine)), Some(machine));
        }
        assert_eq!(Machine::of_object(b"!<arch>\n"), None);
    }
}
