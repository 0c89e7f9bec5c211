//! What a linked program allows: to be ordered, to be profiled, to lie on huge pages.

use std::ops::Range;

use object::{Architecture, Object, ObjectKind, ObjectSection, ObjectSymbol};

use crate::error::ProfileError;
use crate::program::{Program, Segment};

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Linked to fixed addresses.
    Executable,
    /// A program that can be loaded anywhere.
    Pie,
    /// A shared library.
    Library,
    /// An object file, not linked yet.
    Object,
}

/// What a file shows of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Allows {
    /// What kind of file it is.
    pub kind: FileKind,
    /// Bytes of its executable segments.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages: what can ever lie on them without a new link.
    pub whole_bytes: u64,
    /// Whether offset and address of every executable segment are the same modulo a huge page.
    pub congruent: bool,
    /// Whether the loader will put it on a boundary of a huge page: fixed addresses, or an alignment that large.
    pub aligned: bool,
    /// Whether relocations were kept for a rewriter (`--emit-relocs`).
    pub relocations: bool,
    /// Whether the loader writes into the text (`DT_TEXTREL`).
    pub text_relocations: bool,
    /// Functions with a name, in the full symbol table.
    pub symbols: usize,
    /// Whether there is a build id.
    pub build_id: bool,
    /// The share of larger functions that set up a frame pointer; `None` where that cannot be told.
    pub frame_pointers: Option<f64>,
    /// Whether every function has a section of its own; can be told of object files only.
    pub function_sections: Option<bool>,
    /// Bytes of procedure linkage tables.
    pub linkage_bytes: u64,
}

impl Allows {
    /// Looks at a file, for huge pages of a size.
    ///
    /// # Errors
    /// [`ProfileError::Elf`] for bytes that are no ELF file.
    pub fn parse(bytes: &[u8], huge_bytes: u64) -> Result<Self, ProfileError> {
        let file = object::File::parse(bytes).map_err(ProfileError::Elf)?;
        let program = Program::parse("", bytes)?;
        let text: Vec<&Segment> = program.segments.iter().filter(|segment| segment.executable).collect();
        let kind = match file.kind() {
            ObjectKind::Relocatable => FileKind::Object,
            ObjectKind::Executable => FileKind::Executable,
            _ if file.section_by_name(".interp").is_some() || file.entry() != 0 => FileKind::Pie,
            _ => FileKind::Library,
        };
        let congruent = |segment: &&Segment| segment.address % huge_bytes == segment.offset % huge_bytes;
        // A program that can be loaded anywhere is put on a multiple of its largest alignment.
        let aligned = |segment: &&Segment| kind == FileKind::Executable || segment.align >= huge_bytes;
        let is_linkage = |name: &str| matches!(name, ".plt" | ".plt.sec" | ".plt.got" | ".iplt");
        let sections = || file.sections();
        let name = |section: &object::Section<'_, '_>| section.name().unwrap_or_default().to_owned();
        let linkage = sections().filter(|section| is_linkage(&name(section))).map(|section| section.size());
        Ok(Self {
            kind,
            text_bytes: text.iter().map(|segment| segment.file_bytes).fold(0, u64::saturating_add),
            whole_bytes: text.iter().map(|segment| whole(segment, huge_bytes)).fold(0, u64::saturating_add),
            congruent: text.iter().all(congruent),
            aligned: text.iter().all(aligned),
            relocations: sections().any(|section| name(&section).starts_with(".rela.text")),
            text_relocations: writes_text(&file),
            symbols: file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text).count(),
            build_id: program.build_id.is_some(),
            frame_pointers: frame_pointers(&file, &program, bytes),
            function_sections: (kind == FileKind::Object)
                .then(|| sections().any(|section| name(&section).starts_with(".text."))),
            linkage_bytes: linkage.fold(0, u64::saturating_add),
        })
    }
}

/// Bytes of whole huge pages inside of a segment.
fn whole(segment: &Segment, huge_bytes: u64) -> u64 {
    let end = segment.address.saturating_add(segment.file_bytes) / huge_bytes * huge_bytes;
    let start = segment.address.checked_next_multiple_of(huge_bytes).unwrap_or(u64::MAX);
    end.saturating_sub(start)
}

/// Whether the dynamic section asks for the text to be written: `DT_TEXTREL`, or `DF_TEXTREL` of `DT_FLAGS`.
fn writes_text(file: &object::File<'_>) -> bool {
    const DT_TEXTREL: u64 = 22;
    const DT_FLAGS: u64 = 30;
    const DF_TEXTREL: u64 = 4;
    let data = file.section_by_name(".dynamic").and_then(|section| section.data().ok()).unwrap_or_default();
    let (entries, _) = data.as_chunks::<16>();
    entries.iter().any(|entry| {
        let word =
            |at: usize| u64::from_le_bytes(*entry[at..].first_chunk().expect("16 bytes are two words"));
        word(0) == DT_TEXTREL || (word(0) == DT_FLAGS && word(8) & DF_TEXTREL != 0)
    })
}

/// The share of functions of 64 bytes and more whose prologue sets up a frame pointer.
fn frame_pointers(file: &object::File<'_>, program: &Program, bytes: &[u8]) -> Option<f64> {
    /// Leaves are often without a frame either way.
    const FUNCTION_BYTES_MIN: u64 = 64;
    /// Fewer say nothing.
    const FUNCTIONS_MIN: usize = 8;
    let sets_up = match file.architecture() {
        Architecture::X86_64 => sets_up_x86 as fn(&[u8]) -> bool,
        Architecture::Aarch64 => sets_up_arm,
        _ => return None,
    };
    let code = |address: u64| {
        let segment = program.segments.iter().find(|segment| {
            segment.executable
                && address.checked_sub(segment.address).is_some_and(|at| at < segment.file_bytes)
        })?;
        let at = segment.offset.checked_add(address - segment.address)?;
        bytes.get(usize::try_from(at).ok()?..)
    };
    let large = program.functions().iter().filter(|function| function.bytes >= FUNCTION_BYTES_MIN);
    let answers: Vec<bool> = large.filter_map(|function| Some(sets_up(code(function.address)?))).collect();
    let with = answers.iter().filter(|answer| **answer).count();
    (answers.len() >= FUNCTIONS_MIN).then(|| with as f64 / answers.len() as f64)
}

/// `push %rbp` first, and `mov %rsp,%rbp` soon; the landing pad of IBT may stand in front.
fn sets_up_x86(code: &[u8]) -> bool {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const MOV: &[u8] = &[0x48, 0x89, 0xe5];
    const PROLOGUE_BYTES: usize = 20;
    let code = code.strip_prefix(ENDBR64).unwrap_or(code);
    let head = &code[..code.len().min(PROLOGUE_BYTES)];
    head.first() == Some(&0x55) && head.windows(MOV.len()).any(|window| window == MOV)
}

/// `stp x29, x30, [sp, ...]` among the first instructions.
fn sets_up_arm(code: &[u8]) -> bool {
    const INSTRUCTIONS: usize = 6;
    const MASK: u32 = 0xfc00_7fff;
    const STORE_PAIR: u32 = 0xa800_7bfd;
    let (words, _) = code.as_chunks::<4>();
    words.iter().take(INSTRUCTIONS).any(|word| u32::from_le_bytes(*word) & MASK == STORE_PAIR)
}

/// From `__hot_start` to `__hot_end`, where a program has both. An end that is the start of a function, as
/// `--defsym` sets it, reaches to that function's end.
///
/// # Errors
/// [`ProfileError::Elf`] for bytes that are no ELF file.
pub fn marked_range(program: &Program, bytes: &[u8]) -> Result<Option<Range<u64>>, ProfileError> {
    let file = object::File::parse(bytes).map_err(ProfileError::Elf)?;
    let address = |name: &str| {
        let symbol = file.symbols().chain(file.dynamic_symbols()).find(|symbol| symbol.name() == Ok(name));
        symbol.map(|symbol| symbol.address())
    };
    let (Some(start), Some(mut end)) = (address("__hot_start"), address("__hot_end")) else {
        return Ok(None);
    };
    if let Some((function, 0)) = program.at(end) {
        let last = &program.functions()[function as usize];
        // A script's `__hot_end = .;` stands where the first cold function begins: that one is not hot.
        let is_anchor = file
            .symbols()
            .any(|symbol| symbol.name() == Ok("__hot_end") && symbol.kind() == object::SymbolKind::Text);
        if is_anchor {
            end = last.address.saturating_add(last.bytes);
        }
    }
    Ok((start < end).then_some(start..end))
}
