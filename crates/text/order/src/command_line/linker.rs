//! Command lines of linkers: GNU ld's, which the others took over.

use super::{Link, Work, has_unread, is_tried_out};
use crate::flags::Linker;

/// A linker by what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkerFound {
    /// Which one.
    pub linker: Linker,
    /// Its version.
    pub version: (u32, u32),
    /// The name and version that it told.
    pub told: String,
}

impl LinkerFound {
    /// Reads what `--version` printed, a driver's words around it included.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.lines().find_map(Self::of_line)
    }

    fn of_line(line: &str) -> Option<Self> {
        let named = |linker, name: &str, version: &str| {
            let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().ok());
            let version_found = (numbers.next()??, numbers.next().flatten().unwrap_or(0));
            let version = version.split_whitespace().next().unwrap_or_default();
            Some(Self { linker, version: version_found, told: format!("{name} {version}") })
        };
        // The packager stands in brackets, the version behind them.
        let last = line.rsplit(' ').next().unwrap_or_default();
        if line.starts_with("GNU ld ") {
            return named(Linker::Bfd, "GNU ld", last);
        }
        if line.starts_with("GNU gold ") {
            return named(Linker::Gold, "GNU gold", last);
        }
        if let Some(version) = line.strip_prefix("mold ") {
            return named(Linker::Mold, "mold", version);
        }
        // Packagers put their name before it: `Debian LLD 14.0.6`.
        let at = line.find("LLD ").filter(|at| *at == 0 || line[..*at].ends_with(' '))?;
        named(Linker::Lld, "LLD", &line[at + "LLD ".len()..])
    }

    /// Whether it is a GNU ld with `--section-ordering-file`.
    #[must_use]
    pub fn takes_section_order(&self) -> bool {
        self.linker == Linker::Bfd && self.version >= (2, 43)
    }
}

/// What words for a linker say.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub output: Option<String>,
    pub inputs: usize,
    /// It prints something and ends, whatever else is there.
    pub answers: bool,
    /// What it writes is no program for Linux: objects joined, bare bytes, another system's.
    pub is_other: bool,
    pub has_order: bool,
    pub has_alignment: bool,
    pub has_layout: bool,
}

/// Options whose value is the next word, where it is not joined by an equals sign: no value is an input.
const VALUED: &[&str] = &[
    "A",
    "F",
    "G",
    "I",
    "L",
    "Map",
    "P",
    "R",
    "Tbss",
    "Tdata",
    "Y",
    "a",
    "assert",
    "audit",
    "b",
    "c",
    "defsym",
    "depaudit",
    "dynamic-linker",
    "dynamic-list",
    "e",
    "entry",
    "exclude-libs",
    "export-dynamic-symbol",
    "f",
    "fini",
    "format",
    "h",
    "init",
    "l",
    "library",
    "library-path",
    "mri-script",
    "plugin",
    "plugin-opt",
    "retain-symbols-file",
    "rpath",
    "rpath-link",
    "soname",
    "sort-section",
    "sysroot",
    "u",
    "undefined",
    "version-script",
    "wrap",
    "y",
];
/// Options that name an order.
const ORDERS: &[&str] =
    &["symbol-ordering-file", "section-ordering-file", "call-graph-ordering-file", "bp-startup-sort"];
/// Options that print something and end.
const ANSWERS: &[&str] =
    &["version", "help", "target-help", "print-output-format", "print-sysroot", "print-supported-emulations"];
/// Options that settle where segments lie.
const ALIGNS: &[&str] = &["N", "omagic", "n", "nmagic"];
/// The same with an address in the next word, where it is not joined by an equals sign.
const ALIGNS_VALUED: &[&str] = &["image-base"];
/// Options that say where sections lie, by a script or by an address, with the value in the next word likewise.
const LAYS: &[&str] = &["T", "script", "dT", "default-script", "Ttext", "Ttext-segment", "section-start"];
/// Keywords of `-z` that do.
const ALIGNS_Z: &[&str] = &["max-page-size", "common-page-size", "noseparate-code"];

/// Reads words for a linker.
pub(super) fn read<'a>(words: impl Iterator<Item = &'a str>) -> Said {
    let mut said = Said::default();
    let mut words = words;
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            said.inputs += 1;
            continue;
        };
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let is = |known: &[&str]| known.contains(&name);
        if is(ANSWERS) {
            said.answers = true;
        } else if is(ORDERS) {
            said.has_order = true;
            let _ = value.or_else(|| words.next());
        } else if is(ALIGNS) {
            said.has_alignment = true;
        } else if is(ALIGNS_VALUED) {
            said.has_alignment = true;
            let _ = value.or_else(|| words.next());
        } else if matches!(name, "o" | "output") {
            said.output = value.or_else(|| words.next()).map(str::to_owned);
        } else if matches!(name, "r" | "relocatable" | "i" | "Ur") {
            said.is_other = true;
        } else if name == "oformat" {
            said.is_other |= !value.or_else(|| words.next()).unwrap_or_default().starts_with("elf");
        } else if name == "m" {
            // `elf_x86_64`, `aarch64linux`; `i386pep` is Windows.
            let emulation = words.next().unwrap_or_default();
            said.is_other |= !["elf", "linux"].iter().any(|part| emulation.contains(part));
        } else if is(LAYS) {
            said.has_layout = true;
            let _ = value.or_else(|| words.next());
        } else if name == "z" {
            said.keyword(words.next().unwrap_or_default());
        } else if is(VALUED) {
            let _ = value.or_else(|| words.next());
        } else if !word.starts_with("--") {
            said.joined(option);
        }
    }
    said
}

impl Said {
    /// A keyword of `-z`.
    fn keyword(&mut self, keyword: &str) {
        let name = keyword.split('=').next().unwrap_or_default();
        self.has_alignment |= ALIGNS_Z.contains(&name);
    }

    /// One letter with its value behind it: `-zmax-page-size=4096`, `-oprog`, `-Tscript`.
    fn joined(&mut self, option: &str) {
        if let Some(keyword) = option.strip_prefix('z') {
            self.keyword(keyword);
        } else if let Some(output) = option.strip_prefix('o') {
            self.output = Some(output.to_owned());
        } else if option.starts_with('T') {
            self.has_layout = true;
        } else if option.starts_with('l') {
            self.inputs += 1;
        }
    }

    /// The link that these words ask for.
    pub fn into_link(self) -> Link {
        Link {
            output: self.output.unwrap_or_else(|| "a.out".to_owned()),
            has_order: self.has_order,
            has_alignment: self.has_alignment,
            has_layout: self.has_layout,
            ..Link::default()
        }
    }
}

/// What a command line of a linker does, its response files expanded.
#[must_use]
pub fn work_of_linker(words: &[String]) -> Work {
    let said = read(words.iter().map(String::as_str));
    if has_unread(words) || said.answers || said.is_other || said.inputs == 0 {
        return Work::Other;
    }
    let link = said.into_link();
    if is_tried_out(&[&link.output]) { Work::Other } else { Work::Link(link) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::split;

    #[test]
    fn linkers_are_known_by_their_own_words() {
        let known =
            |text: &str| LinkerFound::parse(text).map(|found| (found.linker, found.version, found.told));
        let told = |linker, version, told: &str| Some((linker, version, told.to_owned()));
        assert_eq!(
            known("collect2 version 12\nGNU ld (GNU Binutils for Debian) 2.40\nCopyright"),
            told(Linker::Bfd, (2, 40), "GNU ld 2.40")
        );
        assert_eq!(known("GNU ld version 2.35.2-63.el9"), told(Linker::Bfd, (2, 35), "GNU ld 2.35.2-63.el9"));
        assert_eq!(
            known("GNU gold (GNU Binutils for Debian 2.40) 1.16"),
            told(Linker::Gold, (1, 16), "GNU gold 1.16")
        );
        assert_eq!(known("Debian LLD 14.0.6 (compatible)"), told(Linker::Lld, (14, 0), "LLD 14.0.6"));
        assert_eq!(known("LLD 22.1.0 (/src abc) (compatible)"), told(Linker::Lld, (22, 1), "LLD 22.1.0"));
        assert_eq!(known("mold 2.30.0 (compatible)"), told(Linker::Mold, (2, 30), "mold 2.30.0"));
        assert_eq!(known("Wild 0.5.0 (compatible with GNU linkers)"), None);
        assert_eq!(known(""), None);
    }

    #[test]
    fn an_order_by_sections_begins_with_2_43() {
        let takes = |version: &str| {
            LinkerFound::parse(&format!("GNU ld (x) {version}")).expect("a version").takes_section_order()
        };
        assert_eq!(["2.40", "2.42.50", "2.43", "2.44.1", "3.0"].map(takes), [false, false, true, true, true]);
    }

    #[test]
    fn what_a_linker_does_is_told_by_its_words() {
        let work = |line: &str| work_of_linker(&split(line));
        for line in
            ["--version", "-v", "-V", "a.o --help", "-r -o b.o a.o", "--verbose", "a.o -o conftest", "@a.rsp"]
        {
            assert_eq!(work(line), Work::Other, "{line}");
        }
        for line in ["-m i386pep a.o -o a.exe", "-m avr5 a.o", "a.o --oformat binary", "--oformat=srec a.o"] {
            assert_eq!(work(line), Work::Other, "{line} is for no Linux");
        }
        let link = |line: &str| match work(line) {
            Work::Link(link) => link,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(link("-m elf_x86_64 -soname x -shared a.o -o libx.so -lc").output, "libx.so");
        assert_eq!(link("a.o").output, "a.out");
        assert!(
            link("a.o -z max-page-size=4096").has_alignment && link("a.o -zmax-page-size=1").has_alignment
        );
        assert!(link("a.o --image-base 0x1000").has_alignment && !link("a.o -z now").has_alignment);
        for line in [
            "a.o -T x.ld",
            "a.o --script=x.ld",
            "a.o -Tx.ld",
            "a.o -Ttext 0x1000",
            "a.o -Ttext=0x1000",
            "a.o -Ttext-segment=0x1000",
            "-melf_x86_64 --oformat=elf64-x86-64 a.o --section-start=.text=0x1000",
            "a.o --section-start .text=0x1000",
        ] {
            assert!(link(line).has_layout, "{line}");
        }
        for line in ["a.o --symbol-ordering-file x", "a.o --section-ordering-file=x"] {
            assert!(link(line).has_order, "{line}");
        }
        let plain = link("-z relro -z now --gc-sections a.o -rpath x --no-omagic --orphan-handling=place");
        assert_eq!(plain.output, "a.out");
        assert_eq!((plain.has_order, plain.has_alignment, plain.has_layout), (false, false, false));
    }
}
