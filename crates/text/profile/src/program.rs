//! A program's functions and segments, read from its ELF file.
//!
//! One function is one range of code. Names that share an address (aliases, and what identical code folding joined)
//! are one function under its most public name; an entry inside another function belongs to that function. Local
//! functions of one name are told apart as BOLT does: `name/file.c/2` is the second of that name in that file. The
//! procedure linkage tables have no symbols and are one function each, `[.plt.sec]`: on hot paths they matter.

use std::collections::HashMap;
use std::sync::OnceLock;

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use planish_sorted::SortSmall as _;

use crate::error::ProfileError;
use crate::names;

/// A loaded part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_bytes: u64,
    /// Virtual address, before the base of a position-independent program is added.
    pub address: u64,
    /// `p_align`.
    pub align: u64,
    /// Whether it holds code.
    pub executable: bool,
}

/// One function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFunction {
    /// The name that stands for it everywhere.
    pub name: String,
    /// Its other names, in the order of the alphabet.
    pub aliases: Vec<String>,
    /// Virtual address of its first byte.
    pub address: u64,
    /// Size of its code.
    pub bytes: u64,
    /// Whether its name can be used from other files: linkers can anchor `__hot_start` to it.
    pub global: bool,
}

/// What a profile must know of a program.
#[derive(Debug)]
pub struct Program {
    /// Path or name, as the caller gave it.
    pub name: String,
    /// Build id in lower-case hexadecimal.
    pub build_id: Option<String>,
    /// The loaded segments.
    pub segments: Vec<Segment>,
    /// By address.
    functions: Vec<ProgramFunction>,
    /// Their addresses again, close together: samples are looked up by the million.
    starts: Vec<u64>,
    by_name: HashMap<String, u32>,
    /// Local functions of one name, in the order of the symbol table.
    locals: HashMap<String, Vec<u32>>,
    by_stable: OnceLock<HashMap<String, Option<u32>>>,
    by_readable: OnceLock<HashMap<String, Option<u32>>>,
}

/// The build id of an ELF file, without reading the rest of it; `None` where it has none or is none.
#[must_use]
pub fn build_id(file: impl std::io::Read + std::io::Seek) -> Option<Vec<u8>> {
    let cache = object::ReadCache::new(file);
    object::File::parse(&cache).ok()?.build_id().ok()?.map(<[u8]>::to_vec)
}

/// A symbol on its way to a function. Lower ranks give the better name.
struct Candidate<'a> {
    address: u64,
    bytes: u64,
    end_max: u64,
    rank: u8,
    name: &'a str,
    file: &'a str,
}

const RANK_GLOBAL: u8 = 0;
const RANK_WEAK: u8 = 1;
const RANK_LOCAL: u8 = 2;
/// A label in assembly that says neither what it is nor how long.
const RANK_LABEL: u8 = 3;

impl Program {
    /// Reads the functions and segments of an ELF file.
    ///
    /// # Errors
    /// [`ProfileError::Elf`] for bytes that are no ELF file or whose headers are broken.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ProfileError> {
        let file = object::File::parse(bytes).map_err(ProfileError::Elf)?;
        let build_id = file.build_id().map_err(ProfileError::Elf)?.map(hex);
        let segments = file.segments().map(|segment| {
            let (offset, file_bytes) = segment.file_range();
            let executable = segment.permissions().executable();
            Segment { offset, file_bytes, address: segment.address(), align: segment.align(), executable }
        });
        let mut program = Self {
            name: name.to_owned(),
            build_id,
            segments: segments.collect(),
            functions: Vec::new(),
            starts: Vec::new(),
            by_name: HashMap::new(),
            locals: HashMap::new(),
            by_stable: OnceLock::new(),
            by_readable: OnceLock::new(),
        };
        let mut found = candidates(&file, file.symbols());
        if !found.iter().any(|candidate| candidate.rank < RANK_LABEL) {
            found.extend(candidates(&file, file.dynamic_symbols()));
        }
        let locals = program.add_functions(found);
        program.add_linkage_tables(&file);
        program.index(&locals);
        Ok(program)
    }

    /// All functions, by address.
    #[must_use]
    pub fn functions(&self) -> &[ProgramFunction] {
        &self.functions
    }

    /// The function that a name means: a symbol, an alias, BOLT's spelling, or a name of another build.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<u32> {
        if let Some(found) = self.by_name.get(name) {
            return Some(*found);
        }
        let (symbol, place) = names::split_file(name);
        if let Some(number) = place.rsplit('/').next().and_then(|digits| digits.parse::<usize>().ok()) {
            // `name/2` counts all local functions of the name; `name/file.c/2` was looked up above.
            let numbered = self.locals.get(symbol).and_then(|all| all.get(number.checked_sub(1)?));
            if let Some(found) = numbered.or_else(|| self.by_name.get(symbol)) {
                return Some(*found);
            }
        }
        if let Some(found) = self.stable().get(&names::stable(symbol)) {
            return *found;
        }
        self.readable().get(name).copied().flatten()
    }

    /// The one of the local functions of a name whose byte at `offset` can be at the run-time address `address`.
    #[must_use]
    pub(crate) fn local_at(&self, name: &str, offset: u64, address: u64) -> Option<u32> {
        /// The smallest page of any Linux: bases are multiples of it.
        const PAGE_BYTES: u64 = 4096;
        let fits = |index: &&u32| {
            let start = self.functions[**index as usize].address;
            start.wrapping_add(offset) % PAGE_BYTES == address % PAGE_BYTES
        };
        let mut fitting = self.locals.get(name)?.iter().filter(fits);
        let found = *fitting.next()?;
        fitting.next().is_none().then_some(found)
    }

    /// The function at a virtual address, and the offset in it.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<(u32, u64)> {
        let after = self.starts.partition_point(|start| *start <= address);
        let index = after.checked_sub(1)?;
        let function = &self.functions[index];
        let offset = address - function.address;
        (offset < function.bytes).then(|| (u32::try_from(index).expect("functions fit 32 bits"), offset))
    }

    /// The virtual address of a byte of the file.
    #[must_use]
    pub fn address_of(&self, file_offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            file_offset.checked_sub(segment.offset).is_some_and(|inside| inside < segment.file_bytes)
        };
        let segment = self.segments.iter().find(holds)?;
        segment.address.checked_add(file_offset - segment.offset)
    }

    /// Whether an address lies in code of the program.
    #[must_use]
    pub fn holds_code(&self, address: u64) -> bool {
        self.segments.iter().any(|segment| {
            let inside = address.checked_sub(segment.address);
            segment.executable && inside.is_some_and(|inside| inside < segment.file_bytes)
        })
    }

    /// Makes functions of symbols; returns the local ones in the order of the symbol table: name, file, address.
    fn add_functions(&mut self, mut found: Vec<Candidate<'_>>) -> Vec<(String, String, u64)> {
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_small_by_key(|&index| {
            let candidate = &found[index];
            (candidate.address, candidate.rank, candidate.name.len(), candidate.name, index)
        });
        let mut owner = vec![None; found.len()];
        let mut covered = 0;
        for &index in &order {
            let candidate = &mut found[index];
            let inside_last = candidate.address < covered;
            let Some(last) =
                self.functions.last_mut().filter(|last| inside_last || last.address == candidate.address)
            else {
                self.functions.push(ProgramFunction {
                    name: candidate.name.to_owned(),
                    aliases: Vec::new(),
                    address: candidate.address,
                    bytes: candidate.bytes,
                    global: candidate.rank <= RANK_WEAK,
                });
                covered = candidate.address.saturating_add(candidate.bytes);
                owner[index] = u32::try_from(self.functions.len() - 1).ok();
                continue;
            };
            if last.address == candidate.address {
                last.bytes = last.bytes.max(candidate.bytes);
                covered = covered.max(last.address.saturating_add(last.bytes));
            }
            if candidate.rank < RANK_LABEL && last.name != candidate.name {
                last.aliases.push(candidate.name.to_owned());
            }
            owner[index] = u32::try_from(self.functions.len() - 1).ok();
        }
        self.close_gaps(&found, &owner);
        let locals = found.iter().filter(|candidate| candidate.rank == RANK_LOCAL);
        locals.map(|local| (local.name.to_owned(), local.file.to_owned(), local.address)).collect()
    }

    /// Symbols without a size reach to the next function or to the end of their section.
    fn close_gaps(&mut self, found: &[Candidate<'_>], owner: &[Option<u32>]) {
        let mut section_end = vec![0_u64; self.functions.len()];
        for (candidate, owner) in found.iter().zip(owner) {
            if let Some(owner) = owner {
                section_end[*owner as usize] = candidate.end_max;
            }
        }
        let next_starts: Vec<u64> =
            self.functions.iter().skip(1).map(|next| next.address).chain([u64::MAX]).collect();
        for ((function, next), end) in self.functions.iter_mut().zip(next_starts).zip(section_end) {
            if function.bytes == 0 {
                function.bytes = next.min(end).saturating_sub(function.address);
            }
            function.aliases.sort();
            function.aliases.dedup();
        }
    }

    /// Adds `.plt` and its like where no symbol covers them.
    fn add_linkage_tables(&mut self, file: &object::File<'_>) {
        self.starts = self.functions.iter().map(|function| function.address).collect();
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            let is_table = matches!(name, ".plt" | ".plt.sec" | ".plt.got" | ".iplt");
            if is_table && section.size() > 0 && self.at(section.address()).is_none() {
                let (address, bytes) = (section.address(), section.size());
                let name = format!("[{name}]");
                self.functions.push(ProgramFunction {
                    name,
                    aliases: Vec::new(),
                    address,
                    bytes,
                    global: false,
                });
            }
        }
        self.functions.sort_small_by_key(|function| function.address);
        self.starts = self.functions.iter().map(|function| function.address).collect();
    }

    /// Gives equal local names their spelling and builds the look-up by name.
    fn index(&mut self, locals: &[(String, String, u64)]) {
        let mut named: HashMap<&str, Vec<u32>> = HashMap::new();
        for (index, function) in (0_u32..).zip(&self.functions) {
            for name in std::iter::once(&function.name).chain(&function.aliases) {
                named.entry(name).or_default().push(index);
            }
        }
        let shared: Vec<String> =
            named.iter().filter(|(_, owners)| owners.len() > 1).map(|(name, _)| (*name).to_owned()).collect();
        drop(named);
        let mut renamed: HashMap<&str, Vec<(String, u32)>> = HashMap::new();
        let shared: std::collections::HashSet<&str> = shared.iter().map(String::as_str).collect();
        let mut counted: HashMap<(&str, &str), u32> = HashMap::new();
        for (name, file, address) in locals.iter().filter(|(name, ..)| shared.contains(name.as_str())) {
            let Some((owner, _)) = self.at(*address) else { continue };
            let number = counted.entry((name, file)).or_default();
            *number += 1;
            let middle = if file.is_empty() { String::new() } else { format!("{file}/") };
            renamed.entry(name).or_default().push((format!("{name}/{middle}{number}"), owner));
        }
        for (name, spellings) in renamed {
            for (spelling, owner) in &spellings {
                let function = &mut self.functions[*owner as usize];
                if function.name == name {
                    function.name.clone_from(spelling);
                } else if let Some(alias) = function.aliases.iter_mut().find(|alias| *alias == name) {
                    alias.clone_from(spelling);
                }
            }
            self.locals.insert(name.to_owned(), spellings.into_iter().map(|(_, owner)| owner).collect());
        }
        for (index, function) in (0_u32..).zip(&self.functions) {
            for name in std::iter::once(&function.name).chain(&function.aliases) {
                self.by_name.entry(name.clone()).or_insert(index);
            }
        }
    }

    /// Functions by the part of their name that outlives a build; `None` where several share it.
    fn stable(&self) -> &HashMap<String, Option<u32>> {
        self.by_stable.get_or_init(|| self.unique(|name| Some(names::stable(names::split_file(name).0))))
    }

    /// Functions by demangled names: with parameters, and without where that is unique.
    fn readable(&self) -> &HashMap<String, Option<u32>> {
        self.by_readable.get_or_init(|| {
            let mut all = self.unique(|name| names::demangled_cpp(name, false));
            all.extend(self.unique(|name| Some(names::readable(name)).filter(|readable| readable != name)));
            all
        })
    }

    fn unique(&self, key: impl Fn(&str) -> Option<String>) -> HashMap<String, Option<u32>> {
        let mut found: HashMap<String, Option<u32>> = HashMap::new();
        for (index, function) in (0_u32..).zip(&self.functions) {
            for name in std::iter::once(&function.name).chain(&function.aliases) {
                let Some(key) = key(name) else { continue };
                let kept = found.entry(key).or_insert(Some(index));
                if *kept != Some(index) {
                    *kept = None;
                }
            }
        }
        found
    }
}

/// The symbols of code in one table, in its order. Local symbols follow the name of their file.
fn candidates<'a>(
    file: &object::File<'a>,
    symbols: impl Iterator<Item = object::Symbol<'a, 'a>>,
) -> Vec<Candidate<'a>> {
    let code: HashMap<usize, u64> = file
        .sections()
        .filter(|section| section.kind() == object::SectionKind::Text)
        .map(|section| (section.index().0, section.address().saturating_add(section.size())))
        .collect();
    let mut source = "";
    let mut found = Vec::new();
    for symbol in symbols {
        let name = symbol.name().unwrap_or_default();
        if symbol.kind() == SymbolKind::File {
            source = name;
            continue;
        }
        let Some(&end_max) = symbol.section_index().and_then(|index| code.get(&index.0)) else { continue };
        // `$x` and `$d` mark code and data for Arm's tools.
        if name.is_empty() || name.starts_with('$') {
            continue;
        }
        let rank = match symbol.kind() {
            SymbolKind::Text if symbol.is_local() => RANK_LOCAL,
            SymbolKind::Text if symbol.is_weak() => RANK_WEAK,
            SymbolKind::Text => RANK_GLOBAL,
            SymbolKind::Unknown | SymbolKind::Label => RANK_LABEL,
            _ => continue,
        };
        let file = if symbol.is_local() { source } else { "" };
        found.push(Candidate { address: symbol.address(), bytes: symbol.size(), end_max, rank, name, file });
    }
    found
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
