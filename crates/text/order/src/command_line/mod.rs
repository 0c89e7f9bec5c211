//! What a command line of a compiler driver or a linker is about to do, and which words make it follow an order.
//!
//! A wrapper must change the link of a program and nothing else: questions (`--version`, `-print-search-dirs`),
//! compilations, links that only join object files (`-r`) and what configure scripts try out go by as they are. So
//! a command line is read as far as that takes, in doubt for "something else". No word of it is ever changed or moved:
//! there are only additions, before its first word: the user's own go over them.

mod compiler;
mod linker;
mod marks;
mod response;

pub use compiler::{
    FUNCTION_SECTIONS, is_for_bare_machine, is_known_compiler, launchers, tool_word, work_of_compiler,
};
pub use linker::{LinkerFound, work_of_linker};
pub use marks::{Machine, marks};
pub use response::{expand, split};

use crate::emit;
use crate::flags::{Linker, huge_words, order_words};
use marks::MARKS;

/// What a command line does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing that an order is about.
    Other,
    /// It compiles functions, which are to have sections of their own.
    Compile,
    /// It links a program or a shared library.
    Link(Link),
}

/// A link, as far as an order is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The file that it writes.
    pub output: String,
    /// Whether code is made on the way (sources among the inputs, or at link time) whose functions have no sections
    /// of their own yet.
    pub compiles: bool,
    /// Words of the command line by which the driver finds its linker: a question to that linker needs them too.
    pub selects: Vec<String>,
    /// Whether the command line names an order already.
    pub has_order: bool,
    /// Whether it settles the alignment of segments itself.
    pub has_alignment: bool,
    /// Whether it says where sections lie, by a linker script or by their addresses.
    pub has_layout: bool,
}

/// Why an order cannot be used for a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The command line has one.
    #[error("the command line names an order of its own")]
    OwnOrder,
    /// The command line lays sections out. Linkers that take an order beside a script order within it, where what
    /// stands first, such as a header or an entry, may have to.
    #[error("the command line lays sections out by itself, by a linker script or by addresses")]
    OwnScript,
    /// The linker has no such option.
    #[error("{linker} takes no order")]
    TakesNone {
        /// What the linker calls itself.
        linker: String,
    },
}

/// What a link is to follow.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Symbols, the first one first; none leaves the order alone.
    pub symbols: Option<&'a [String]>,
    /// Size of the huge pages that the text is to fit.
    pub huge_bytes: Option<u64>,
    /// What it is for, where [`marks`] can be linked in.
    pub machine: Option<Machine>,
}

/// What a link needs besides its own command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The order as this linker reads it.
    pub file: Option<OrderFile>,
    /// Words for the linker, in groups that belong together.
    words: Vec<Vec<String>>,
}

/// A file with an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFile {
    /// Its content.
    pub text: String,
    /// Whether that is one symbol a line and nothing else than was wanted: a file that the user has may serve as it
    /// is.
    pub is_symbols: bool,
    /// What is linked in besides: an object file that marks the range, where no script does.
    pub marks: Option<Vec<u8>>,
    linker: Linker,
    is_script: bool,
}

impl Needs {
    /// What a linker needs for a link that is to follow an order.
    ///
    /// # Errors
    /// [`Unusable`] where it cannot.
    pub fn of(link: &Link, found: &LinkerFound, wanted: Wanted<'_>) -> Result<Self, Unusable> {
        let mut needs = Self::default();
        if let Some(symbols) = wanted.symbols {
            needs.file = Some(order_file(link, found, symbols, wanted.machine)?);
        }
        // Firmware and kernels depend on every byte of a layout of their own.
        if let Some(bytes) = wanted.huge_bytes.filter(|_| !link.has_alignment && !link.has_layout) {
            needs.words = huge_words(found.linker, bytes);
        }
        Ok(needs)
    }

    /// The words for the linker, with the order and the marks in the files of these paths.
    #[must_use]
    pub fn words(&self, path: &str, marks: Option<&str>) -> Vec<String> {
        let of_file = |file: &OrderFile| {
            let script = || vec![vec!["-T".to_owned(), path.to_owned()]];
            if file.is_script { script() } else { order_words(file.linker, path) }
        };
        let order = self.file.as_ref().map(of_file);
        // Nothing refers to them: sections that are not referred to may be left out.
        let kept = |marks: &str| {
            MARKS.map(|mark| format!("--undefined={mark}")).into_iter().chain([marks.to_owned()])
        };
        let marks = marks.into_iter().flat_map(kept);
        order.into_iter().flatten().chain(self.words.clone()).flatten().chain(marks).collect()
    }
}

fn order_file(
    link: &Link,
    found: &LinkerFound,
    symbols: &[String],
    machine: Option<Machine>,
) -> Result<OrderFile, Unusable> {
    if link.has_order {
        return Err(Unusable::OwnOrder);
    }
    if link.has_layout {
        return Err(Unusable::OwnScript);
    }
    let is_script = found.linker == Linker::Bfd && !found.takes_section_order();
    let marks = machine.filter(|_| !is_script).map(marks);
    let marked;
    let laid = if marks.is_some() {
        let [start, end] = MARKS.map(str::to_owned);
        let inner = symbols.iter().filter(|symbol| !MARKS.contains(&symbol.as_str())).cloned();
        marked = std::iter::once(start).chain(inner).chain([end]).collect::<Vec<_>>();
        &marked
    } else {
        symbols
    };
    let is_symbols = found.linker == Linker::Lld && laid == symbols;
    let text = match found.linker {
        Linker::Lld => emit::symbol_lines(laid),
        Linker::Gold => emit::gold_of_symbols(laid),
        Linker::Bfd if is_script => emit::script_of_symbols(symbols),
        Linker::Bfd => emit::gnu_ld_of_symbols(laid),
        Linker::Mold => return Err(Unusable::TakesNone { linker: found.told.clone() }),
    };
    Ok(OrderFile { text, is_symbols, marks, linker: found.linker, is_script })
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether something is only tried out: its files are named by autoconf, CMake or Meson, or are devices and pipes.
///
/// Such a link is asked whether it works and what it says, not how its functions lie; and what comes through a pipe
/// can be read once.
fn is_tried_out(paths: &[&str]) -> bool {
    const NAMES: [&str; 3] = ["conftest", "cmTC_", "sanitycheck"];
    const FOLDERS: [&str; 3] = ["/meson-private/", "/CMakeScratch/", "/CMakeTmp/"];
    const NO_FILES: [&str; 4] = ["/dev/null", "/dev/std", "/dev/fd/", "/proc/self/fd/"];
    paths.iter().any(|path| {
        let name = file_name(path);
        NAMES.iter().any(|start| name.starts_with(start))
            || (name.starts_with("CMake") && name.contains("CompilerId"))
            || FOLDERS.iter().any(|folder| path.contains(folder))
            || NO_FILES.iter().any(|start| path.starts_with(start))
    })
}

/// Whether there are words that are not known: those of a response file that could not be read.
fn has_unread(words: &[String]) -> bool {
    words.iter().any(|word| word.starts_with('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> LinkerFound {
        LinkerFound::parse(text).expect("a linker that is known")
    }

    fn needs(link: &Link, text: &str) -> Result<Vec<String>, Unusable> {
        let symbols = ["hot".to_owned()];
        let wanted = Wanted { symbols: Some(&symbols), huge_bytes: Some(2 << 20), machine: None };
        Needs::of(link, &found(text), wanted).map(|needs| needs.words("F", None))
    }

    const LLD: &str = "LLD 19.1.7 (compatible with GNU linkers)\n";
    const GOLD: &str = "GNU gold (GNU Binutils for Debian 2.40) 1.16\n";
    const OLD: &str = "GNU ld (GNU Binutils for Debian) 2.40\n";
    const NEW: &str = "GNU ld (GNU Binutils) 2.43.1\n";
    const MOLD: &str = "mold 2.30.0 (compatible with GNU ld)\n";

    #[test]
    fn every_linker_gets_the_file_that_it_takes() {
        let link = Link::default();
        for (linker, first) in [
            (LLD, "--symbol-ordering-file=F"),
            (GOLD, "--section-ordering-file=F"),
            (NEW, "--section-ordering-file=F"),
            (OLD, "-T"),
        ] {
            let words = needs(&link, linker).unwrap();
            assert_eq!(words[0], first, "{linker}");
            assert!(words.contains(&"max-page-size=2097152".to_owned()), "{linker}: {words:?}");
        }
        assert!(matches!(needs(&link, MOLD), Err(Unusable::TakesNone { linker }) if linker == "mold 2.30.0"));
    }

    #[test]
    fn the_range_is_marked_where_no_script_does() {
        let symbols = ["hot", "gone"].map(str::to_owned);
        let machine = Some(Machine::X86_64);
        let wanted = Wanted { symbols: Some(&symbols), huge_bytes: None, machine };
        for linker in [LLD, GOLD, NEW, OLD] {
            let needs = Needs::of(&Link::default(), &found(linker), wanted).unwrap();
            let file = needs.file.as_ref().unwrap();
            assert_eq!(file.marks.is_none(), linker == OLD, "{linker}");
            assert!(!file.is_symbols, "the user's own file has no marks");
            let at = |word: &str| file.text.find(word).unwrap_or_else(|| panic!("{linker}: no {word}"));
            assert!(linker == OLD || at("__hot_start") < at("gone"), "{linker}: {}", file.text);
            assert!(at("gone") < at("__hot_end"), "{linker}: {}", file.text);
            let words = needs.words("F", file.marks.as_ref().map(|_| "M"));
            assert_eq!(words.last().map(String::as_str) == Some("M"), linker != OLD, "{words:?}");
        }
        // An order that was written for them serves as it is.
        let marked = ["__hot_start", "hot", "__hot_end"].map(str::to_owned);
        let wanted = Wanted { symbols: Some(&marked), ..wanted };
        let needs = Needs::of(&Link::default(), &found(LLD), wanted).unwrap();
        assert!(needs.file.is_some_and(|file| file.is_symbols));
    }

    #[test]
    fn what_the_command_line_settles_stays_settled() {
        let link = |order, alignment, layout| Link {
            has_order: order,
            has_alignment: alignment,
            has_layout: layout,
            ..Link::default()
        };
        assert_eq!(needs(&link(true, false, false), LLD), Err(Unusable::OwnOrder));
        for linker in [LLD, GOLD, NEW, OLD, MOLD] {
            assert_eq!(needs(&link(false, false, true), linker), Err(Unusable::OwnScript), "{linker}");
        }
        let aligned = needs(&link(false, true, false), LLD).unwrap();
        assert_eq!(aligned, ["--symbol-ordering-file=F", "--no-warn-symbol-ordering"]);
    }

    #[test]
    fn segments_of_an_own_layout_keep_their_alignment() {
        let wanted = Wanted { symbols: None, huge_bytes: Some(2 << 20), machine: None };
        let link = Link { has_layout: true, ..Link::default() };
        let needs = Needs::of(&link, &found(LLD), wanted).unwrap();
        assert_eq!(needs.words("", None), [""; 0]);
    }

    #[test]
    fn alignment_alone_is_every_linkers() {
        for linker in [LLD, GOLD, NEW, OLD, MOLD] {
            let wanted = Wanted { symbols: None, huge_bytes: Some(2 << 20), machine: None };
            let needs =
                Needs::of(&Link { has_order: true, ..Link::default() }, &found(linker), wanted).unwrap();
            assert!(needs.file.is_none(), "{linker}");
            assert_eq!(needs.words("", None)[..2], ["-z", "max-page-size=2097152"], "{linker}");
        }
    }
}
