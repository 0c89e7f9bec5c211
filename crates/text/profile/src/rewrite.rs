//! What a rewriter of linked programs (BOLT) must know of one before it starts, and what must be the same afterwards.

use std::collections::{BTreeSet, HashSet};

use object::read::elf::ElfFile64;
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, RelocationKind, RelocationTarget, SectionFlags,
};

use crate::allows::{Allows, FileKind};
use crate::error::ProfileError;
use crate::program::Program;

/// What was done to a program already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// BOLT has laid it out.
    LaidOut,
    /// BOLT has put counters into it.
    Instrumented,
}

/// A program as a rewriter meets it.
#[derive(Clone, Debug)]
pub struct Rewritable {
    /// What kind of file it is.
    pub kind: FileKind,
    /// The CPU that it is for, as `object` calls it.
    pub machine: Architecture,
    /// Whether no loader is asked for: such a program has no end that others can hook into.
    pub is_static: bool,
    /// Whether relocations were kept (`--emit-relocs`).
    pub relocations: bool,
    /// Functions with a name, in the full symbol table.
    pub symbols: usize,
    /// What was done to it already.
    pub rewritten: Option<Rewritten>,
    /// Whether it has debug information, whose addresses change with the code.
    pub debug_info: bool,
    /// Parts that a compiler has set apart from their functions (`f.cold`).
    pub cold_parts: usize,
    /// Functions with places inside of them whose address lies in data: tables of labels, for computed goto. By
    /// index of the program, and only where relocations show them.
    pub label_tables: Vec<u32>,
}

impl Rewritable {
    /// Looks at a program that was read already.
    ///
    /// # Errors
    /// [`ProfileError::Elf`] for bytes that are no ELF file.
    pub fn parse(bytes: &[u8], program: &Program) -> Result<Self, ProfileError> {
        /// Of no meaning here: nothing of what is taken from [`Allows`] depends on it.
        const HUGE_BYTES: u64 = 2 << 20;
        let allows = Allows::parse(bytes, HUGE_BYTES)?;
        let file = object::File::parse(bytes).map_err(ProfileError::Elf)?;
        let has = |name: &str| file.section_by_name(name).is_some();
        let rewritten = match () {
            () if has(".bolt.instr.counters") || has(".bolt.instr.tables") => Some(Rewritten::Instrumented),
            () if has(".note.bolt_info") || has(".bolt.org.text") => Some(Rewritten::LaidOut),
            () => None,
        };
        let is_part = |name: &str| name.contains(".cold");
        Ok(Self {
            kind: allows.kind,
            machine: file.architecture(),
            is_static: !matches!(allows.kind, FileKind::Library | FileKind::Object) && !has(".interp"),
            relocations: allows.relocations,
            symbols: allows.symbols,
            rewritten,
            debug_info: has(".debug_info") || has(".zdebug_info"),
            cold_parts: program.functions().iter().filter(|function| is_part(&function.name)).count(),
            label_tables: label_tables(&file, program),
        })
    }

    /// One of a kind of which nothing else is known: for who decides by it, and tests that.
    #[must_use]
    pub fn of_kind(kind: FileKind) -> Self {
        Self {
            kind,
            machine: Architecture::Unknown,
            is_static: false,
            relocations: false,
            symbols: 0,
            rewritten: None,
            debug_info: false,
            cold_parts: 0,
            label_tables: Vec::new(),
        }
    }

    /// Whether BOLT is for its CPU: x86-64 and 64-bit Arm; of others it knows a part.
    #[must_use]
    pub fn is_for_known_cpu(&self) -> bool {
        matches!(self.machine, Architecture::X86_64 | Architecture::Aarch64)
    }

    /// Whether this machine could run it.
    #[must_use]
    pub fn runs_here(&self) -> bool {
        match self.machine {
            Architecture::X86_64 => cfg!(target_arch = "x86_64"),
            Architecture::Aarch64 => cfg!(target_arch = "aarch64"),
            _ => false,
        }
    }

    /// Whether its code can be loaded anywhere, so that it holds no absolute address of itself.
    #[must_use]
    pub fn is_position_independent(&self) -> bool {
        matches!(self.kind, FileKind::Pie | FileKind::Library)
    }
}

/// Functions into whose middle data points. Tables of jumps hold distances in position-independent code, so what is
/// an address there is a label that the source has taken.
fn label_tables(file: &object::File<'_>, program: &Program) -> Vec<u32> {
    /// `SHF_ALLOC` and `SHF_EXECINSTR`.
    const LOADED_OR_CODE: u64 = 2 | 4;
    const LOADED: u64 = 2;
    let is_data = |section: &object::Section<'_, '_>| match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => {
            // Unwind tables name code by its middle, and every rewriter makes them anew.
            let name = section.name().unwrap_or_default();
            sh_flags.0 & LOADED_OR_CODE == LOADED && !name.starts_with(".eh_frame")
        }
        _ => false,
    };
    let starts: HashSet<u64> = file.symbols().map(|symbol| symbol.address()).collect();
    let mut found = BTreeSet::new();
    for (_, relocation) in file.sections().filter(is_data).flat_map(|section| section.relocations()) {
        let RelocationTarget::Symbol(index) = relocation.target() else { continue };
        if relocation.kind() != RelocationKind::Absolute || relocation.size() != 64 {
            continue;
        }
        let Ok(symbol) = file.symbol_by_index(index) else { continue };
        let address = symbol.address().wrapping_add_signed(relocation.addend());
        let is_inside = |(_, offset): &(u32, u64)| *offset > 0 && !starts.contains(&address);
        found.extend(program.at(address).filter(is_inside).map(|(function, _)| function));
    }
    found.into_iter().collect()
}

/// Why a rewritten program must not stand for the one that it was made from.
#[derive(Debug, thiserror::Error)]
pub enum Departed {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unread(#[source] ProfileError),
    /// It is for another CPU, or is another kind of file.
    #[error("it is another kind of file")]
    Kind,
    /// It starts where no code is.
    #[error("its entry {entry:#x} is not in its code")]
    Entry {
        /// The address.
        entry: u64,
    },
    /// Others who link with it would not find what they know.
    #[error("the dynamic symbol {name} is {what}")]
    Symbol {
        /// Its name.
        name: String,
        /// What became of it.
        what: &'static str,
    },
    /// It asks for other libraries, another loader, or has another name.
    #[error("its {what} changed")]
    Link {
        /// What the loader is told.
        what: &'static str,
    },
}

/// Compares what others see of a program: kind, entry, loader, libraries, dynamic symbols. Code and data may differ.
///
/// # Errors
/// [`Departed`] names the first difference.
pub fn same_outside(before: &[u8], after: &[u8]) -> Result<(), Departed> {
    let parsed = |bytes| Face::parse(bytes).map_err(Departed::Unread);
    let (before, after) = (parsed(before)?, parsed(after)?);
    if (before.kind, before.machine) != (after.kind, after.machine) {
        return Err(Departed::Kind);
    }
    if (before.entry != 0 || after.entry != 0) && !after.program.holds_code(after.entry) {
        return Err(Departed::Entry { entry: after.entry });
    }
    for (what, before, after) in [
        ("loader", &before.interpreter, &after.interpreter),
        ("list of libraries", &before.needed, &after.needed),
    ] {
        if before != after {
            return Err(Departed::Link { what });
        }
    }
    let departed = |name: &str, what| Departed::Symbol { name: name.to_owned(), what };
    if let Some((name, ..)) = before.symbols.difference(&after.symbols).next() {
        return Err(departed(name, "missing"));
    }
    if let Some((name, ..)) = after.symbols.difference(&before.symbols).next() {
        return Err(departed(name, "new"));
    }
    match after.astray {
        Some(name) => Err(departed(&name, "not in the code")),
        None => Ok(()),
    }
}

/// What others see of a program.
struct Face {
    kind: object::ObjectKind,
    machine: Architecture,
    entry: u64,
    program: Program,
    interpreter: Vec<u8>,
    /// Libraries, search paths and its own name, each behind the number of its tag.
    needed: Vec<u8>,
    /// Name, whether it is defined, whether it is weak.
    symbols: BTreeSet<(String, bool, bool)>,
    /// A function whose address is not in the code.
    astray: Option<String>,
}

impl Face {
    fn parse(bytes: &[u8]) -> Result<Self, ProfileError> {
        // Only files of this form get so far.
        let file = ElfFile64::<object::LittleEndian>::parse(bytes).map_err(ProfileError::Elf)?;
        let program = Program::parse("", bytes)?;
        let data = |name: &str| -> &[u8] {
            file.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or_default()
        };
        let (mut symbols, mut astray) = (BTreeSet::new(), None);
        for symbol in file.dynamic_symbols() {
            let name = String::from_utf8_lossy(symbol.name_bytes().unwrap_or_default()).into_owned();
            let is_code = symbol.kind() == object::SymbolKind::Text && symbol.is_definition();
            if is_code && !program.holds_code(symbol.address()) {
                astray = Some(name.clone());
            }
            symbols.insert((name, symbol.is_definition(), symbol.is_weak()));
        }
        Ok(Self {
            kind: file.kind(),
            machine: file.architecture(),
            entry: file.entry(),
            interpreter: data(".interp").to_vec(),
            needed: needed(data(".dynamic"), data(".dynstr")),
            program,
            symbols,
            astray,
        })
    }
}

/// `DT_NEEDED`, `DT_SONAME`, `DT_RPATH` and `DT_RUNPATH` with what they name.
fn needed(dynamic: &[u8], names: &[u8]) -> Vec<u8> {
    const TAGS: [u64; 4] = [1, 14, 15, 29];
    let (entries, _) = dynamic.as_chunks::<16>();
    let mut told = Vec::new();
    for entry in entries {
        let word =
            |at: usize| u64::from_le_bytes(*entry[at..].first_chunk().expect("16 bytes are two words"));
        let name = usize::try_from(word(8)).ok().and_then(|at| names.get(at..)).unwrap_or_default();
        if TAGS.contains(&word(0)) {
            told.extend(word(0).to_le_bytes());
            told.extend(name.iter().take_while(|byte| **byte != 0).chain([&0]));
        }
    }
    told
}
