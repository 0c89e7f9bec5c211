//! Where in its source code a program has its instructions: lines counted from the first of their function, and
//! through which inlined functions, as AutoFDO names them.
//!
//! A compiler that was told to keep this for a profile (clang: `-fdebug-info-for-profiling`) says of each function in
//! which line it starts. Of the others the line of their first instruction is taken, which is the same unless the
//! brace stands below the name; of an inlined one, that of the copy which is no part of another. What is inlined of a
//! function without such a copy counts at the line that calls it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use gimli::{AttributeValue, DwarfSections, EndianSlice, LittleEndian, UnitOffset, constants};
use object::{CompressionFormat, Object, ObjectSection};

use crate::error::ProfileError;
use crate::names;
use crate::program::Program;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;
type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

const FORMAT: &str = "DWARF";

/// A function on the way to an instruction, and where in it the way goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// The linker's name, as the compiler knows it.
    pub function: String,
    /// Lines below its first one: of the instruction, or of the call that was inlined.
    pub line: u16,
    /// Tells apart what is in one line.
    pub discriminator: u32,
}

/// Where an instruction is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The function whose code it is a part of, then what was inlined there, down to the one that has the line.
    pub frames: Vec<Frame>,
    /// So many copies of the line the compiler made, that each run only for their part.
    pub copies: u32,
}

/// The origins of addresses, which stand in rising order; `None` where the program does not tell.
///
/// # Errors
/// [`ProfileError::Elf`] and [`ProfileError::Dwarf`] for what cannot be read, [`ProfileError::Unsupported`] for what
/// is not read here.
pub fn origins(
    bytes: &[u8],
    program: &Program,
    addresses: &[u64],
) -> Result<Vec<Option<Origin>>, ProfileError> {
    let file = object::File::parse(bytes).map_err(ProfileError::Elf)?;
    if !file.is_little_endian() {
        return Err(ProfileError::Unsupported {
            format: FORMAT,
            what: "the other order of bytes".to_owned(),
        });
    }
    let sections = DwarfSections::load(|id| section(&file, id.name()))?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let starts = program.functions().iter().map(|function| function.address);
    let mut wanted: Vec<u64> = addresses.iter().copied().chain(starts).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut reader = Reader {
        rows: vec![None; wanted.len()],
        innermost: vec![None; wanted.len()],
        wanted,
        scopes: Vec::new(),
        named: HashMap::new(),
        units: Vec::new(),
        program,
        dwarf: &dwarf,
    };
    reader.read().map_err(ProfileError::Dwarf)?;
    Ok(addresses.iter().map(|address| reader.origin(*address)).collect())
}

/// The bytes of a section, unpacked; none where there is no such section.
fn section<'a>(file: &object::File<'a>, name: &str) -> Result<Cow<'a, [u8]>, ProfileError> {
    let Some(section) = file.section_by_name(name) else { return Ok(Cow::default()) };
    let packed = section.compressed_data().map_err(ProfileError::Elf)?;
    match packed.format {
        CompressionFormat::None => Ok(Cow::Borrowed(packed.data)),
        CompressionFormat::Zlib => {
            let mut unpacked = Vec::new();
            let mut reader = ZlibDecoder::new(packed.data).take(packed.uncompressed_size);
            match reader.read_to_end(&mut unpacked) {
                Ok(_) => Ok(Cow::Owned(unpacked)),
                Err(error) => {
                    Err(ProfileError::Unsupported { format: FORMAT, what: format!("{name}: {error}") })
                }
            }
        }
        _ => Err(ProfileError::Unsupported { format: FORMAT, what: format!("the packing of {name}") }),
    }
}

/// The line of an instruction.
#[derive(Clone, Copy)]
struct Row {
    line: u64,
    discriminator: u32,
    /// Whether the discriminator is one of LLVM's, which packs three numbers into it.
    is_packed: bool,
}

/// A function, or what was inlined of one, that has instructions which are asked for.
struct Scope {
    /// What it is inlined into.
    parent: Option<usize>,
    /// Unit and entry that name it.
    entry: (usize, UnitOffset),
    /// Where it is called, if it is inlined.
    call: Row,
}

/// What a function is called and in which line it starts, as far as is told.
#[derive(Clone, Default)]
struct Named {
    linkage: Option<String>,
    name: Option<String>,
    line: Option<u64>,
}

struct Reader<'a, 'd> {
    /// Rising.
    wanted: Vec<u64>,
    /// Beside `wanted`.
    rows: Vec<Option<Row>>,
    /// Beside `wanted`: the scope that holds it, without another one in between.
    innermost: Vec<Option<usize>>,
    scopes: Vec<Scope>,
    named: HashMap<(usize, UnitOffset), Named>,
    units: Vec<Unit<'d>>,
    program: &'a Program,
    dwarf: &'a Dwarf<'d>,
}

impl<'d> Reader<'_, 'd> {
    fn read(&mut self) -> gimli::Result<()> {
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next()? {
            self.units.push(self.dwarf.unit(header)?);
        }
        let mut units = std::mem::take(&mut self.units);
        for (index, unit) in units.iter_mut().enumerate() {
            self.read_rows(unit)?;
            self.read_scopes(index, unit)?;
        }
        self.units = units;
        for scope in 0..self.scopes.len() {
            let entry = self.scopes[scope].entry;
            if !self.named.contains_key(&entry) {
                let named = self.name(entry)?;
                self.named.insert(entry, named);
            }
        }
        Ok(())
    }

    /// The places in `wanted` of the addresses of a range.
    fn within(&self, begin: u64, end: u64) -> std::ops::Range<usize> {
        let first = self.wanted.partition_point(|address| *address < begin);
        first..self.wanted.partition_point(|address| *address < end).max(first)
    }

    fn read_rows(&mut self, unit: &mut Unit<'d>) -> gimli::Result<()> {
        let is_packed = is_of_llvm(self.dwarf, unit)?;
        let Some(program) = unit.line_program.take() else { return Ok(()) };
        let mut rows = program.rows();
        let mut last: Option<(u64, Option<Row>)> = None;
        while let Some((_, row)) = rows.next_row()? {
            if let Some((begin, held)) = last {
                let places = self.within(begin, row.address());
                self.rows[places].fill(held);
            }
            // What has no line is made by the compiler alone.
            let discriminator = u32::try_from(row.discriminator()).unwrap_or(0);
            let held = row.line().map(|line| Row { line: line.get(), discriminator, is_packed });
            last = (!row.end_sequence()).then_some((row.address(), held));
        }
        Ok(())
    }

    fn read_scopes(&mut self, index: usize, unit: &Unit<'d>) -> gimli::Result<()> {
        let is_packed = is_of_llvm(self.dwarf, unit)?;
        // The scopes that are open, each with its depth.
        let mut open: Vec<(isize, Option<usize>)> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            while open.last().is_some_and(|(depth, _)| *depth >= entry.depth) {
                open.pop();
            }
            let parent = match entry.tag {
                constants::DW_TAG_subprogram => None,
                constants::DW_TAG_inlined_subroutine => open.last().and_then(|(_, scope)| *scope),
                _ => continue,
            };
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let discriminator = number(constants::DW_AT_GNU_discriminator);
            let call = Row {
                line: number(constants::DW_AT_call_line).unwrap_or(0),
                discriminator: discriminator.and_then(|number| u32::try_from(number).ok()).unwrap_or(0),
                is_packed,
            };
            let mut scope = None;
            let mut ranges = self.dwarf.die_ranges(unit, entry)?;
            while let Some(range) = ranges.next()? {
                let places = self.within(range.begin, range.end);
                if !places.is_empty() {
                    let known = *scope.get_or_insert(self.scopes.len());
                    self.innermost[places].fill(Some(known));
                }
            }
            if scope.is_some() {
                self.scopes.push(Scope { parent, entry: (index, entry.offset), call });
            }
            open.push((entry.depth, scope));
        }
        Ok(())
    }

    /// Follows an entry to those that say what it is a copy of.
    fn name(&self, entry: (usize, UnitOffset)) -> gimli::Result<Named> {
        /// A way back to itself is no description.
        const STEPS_MAX: usize = 16;
        let (mut named, mut next) = (Named::default(), Some(entry));
        for _ in 0..STEPS_MAX {
            let Some((index, offset)) = next else { break };
            let unit = &self.units[index];
            let entry = unit.entry(offset)?;
            let text = |name| self.text(unit, &entry, name);
            named.linkage = named.linkage.or_else(|| text(constants::DW_AT_linkage_name));
            named.linkage = named.linkage.or_else(|| text(constants::DW_AT_MIPS_linkage_name));
            named.name = named.name.or_else(|| text(constants::DW_AT_name));
            let line = entry.attr_value(constants::DW_AT_decl_line);
            named.line = named.line.or_else(|| line.and_then(|line| line.udata_value()));
            let copied = entry.attr_value(constants::DW_AT_abstract_origin);
            next = match copied.or_else(|| entry.attr_value(constants::DW_AT_specification)) {
                Some(AttributeValue::UnitRef(offset)) => Some((index, offset)),
                Some(AttributeValue::DebugInfoRef(offset)) => {
                    let starts_before = |unit: &Unit<'_>| {
                        unit.header.debug_info_offset().is_some_and(|start| start.0 <= offset.0)
                    };
                    let after = self.units.partition_point(starts_before);
                    let found = after.checked_sub(1);
                    found.and_then(|index| Some((index, offset.to_unit_offset(&self.units[index].header)?)))
                }
                _ => None,
            };
        }
        Ok(named)
    }

    fn text(&self, unit: &Unit<'d>, entry: &Entry<'d>, name: constants::DwAt) -> Option<String> {
        let text = self.dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
        // A name must not end its line in a file.
        Some(text.to_string_lossy().replace(['\n', '\r'], " ")).filter(|text| !text.is_empty())
    }

    fn row(&self, address: u64) -> Option<Row> {
        self.rows[self.wanted.binary_search(&address).ok()?]
    }

    /// The line of a function's first instruction.
    fn first_line(&self, name: &str) -> Option<u64> {
        let function = self.program.by_name(name)?;
        Some(self.row(self.program.functions()[function as usize].address)?.line)
    }

    /// The symbol that an address belongs to.
    fn symbol(&self, address: u64) -> Option<&str> {
        let (function, _) = self.program.at(address)?;
        Some(uncut(names::split_file(&self.program.functions()[function as usize].name).0))
    }

    fn origin(&self, address: u64) -> Option<Origin> {
        let place = self.wanted.binary_search(&address).ok()?;
        let row = self.rows[place]?;
        let (mut frames, mut at, mut leaf, mut scope) = (Vec::new(), row, row, self.innermost[place]);
        if scope.is_none() {
            let name = self.symbol(address)?;
            frames.push(frame(name.to_owned(), self.first_line(name)?, at));
        }
        while let Some(index) = scope {
            let held = &self.scopes[index];
            let named = self.named.get(&held.entry)?;
            let symbol = || held.parent.is_none().then(|| self.symbol(address)).flatten();
            let function = named.linkage.as_deref().or_else(symbol).or(named.name.as_deref());
            let known = function.and_then(|name| Some((name, named.line.or_else(|| self.first_line(name))?)));
            match known {
                Some((name, first)) => frames.push(frame(name.to_owned(), first, at)),
                // Where nobody tells in which line a function starts, its samples are those of its call.
                None => {
                    frames.clear();
                    leaf = held.call;
                }
            }
            (at, scope) = (held.call, held.parent);
        }
        frames.reverse();
        let is_known = leaf.line > 0 && !frames.is_empty();
        is_known.then(|| Origin { copies: leaf.copies(), frames })
    }
}

impl Row {
    fn copies(self) -> u32 {
        if self.is_packed { unpacked(next_packed(self.discriminator)).max(1) } else { 1 }
    }
}

/// A name without what a compiler appends to the parts that it cuts a function into.
fn uncut(name: &str) -> &str {
    [".cold", ".part.", ".llvm."].iter().fold(name, |name, mark| match name.find(mark) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    })
}

fn frame(function: String, first: u64, at: Row) -> Frame {
    // LLVM keeps 16 bits: what is above the first line (by #line, or in a macro) wraps there as well.
    let line = u16::try_from(at.line.wrapping_sub(first) & 0xffff).expect("16 bits are left");
    // What other compilers count means nothing to the one that reads this.
    let discriminator = if at.is_packed { unpacked(at.discriminator) } else { 0 };
    Frame { function, line, discriminator }
}

/// Whether LLVM made a unit.
fn is_of_llvm(dwarf: &Dwarf<'_>, unit: &Unit<'_>) -> gimli::Result<bool> {
    let mut entries = unit.entries();
    let Some(root) = entries.next_dfs()? else { return Ok(false) };
    let Some(producer) = root.attr_value(constants::DW_AT_producer) else { return Ok(false) };
    let producer = dwarf.attr_string(unit, producer)?;
    let producer = producer.to_string_lossy();
    Ok(["clang", "LLVM", "rustc"].iter().any(|name| producer.contains(name)))
}

/// The first of the numbers in a discriminator: `DILocation::getUnsignedFromPrefixEncoding` of LLVM.
fn unpacked(packed: u32) -> u32 {
    if packed & 1 == 1 {
        return 0;
    }
    let packed = packed >> 1;
    if packed & 0x20 == 0 { packed & 0x1f } else { (packed >> 1) & 0xfe0 | packed & 0x1f }
}

/// The numbers behind the first one: `DILocation::getNextComponentInDiscriminator`.
fn next_packed(packed: u32) -> u32 {
    match packed & 1 {
        1 => packed >> 1,
        _ if packed & 0x40 == 0 => packed >> 7,
        _ => packed >> 14,
    }
}

#[cfg(test)]
mod tests {
    use super::{next_packed, uncut, unpacked};

    #[test]
    fn discriminators_hold_three_numbers() {
        // A zero is one bit, up to 31 six bits and an end, more thirteen: `getPrefixEncodingFromUnsigned`.
        assert_eq!((unpacked(0), unpacked(1), unpacked(2), unpacked(31 << 1)), (0, 0, 1, 31));
        let packed_33 = (1 | 1 << 6 | 1 << 5) << 1;
        assert_eq!(unpacked(packed_33), 33);
        // Number 2 of its line, four copies.
        let both = 2 << 1 | (4 << 1) << 7;
        assert_eq!((unpacked(both), unpacked(next_packed(both))), (2, 4));
        assert_eq!(unpacked(next_packed(1 | (3 << 1) << 1)), 3);
        assert_eq!(unpacked(next_packed(packed_33 | (5 << 1) << 14)), 5);
    }

    #[test]
    fn parts_of_a_function_are_named_as_the_whole() {
        for name in ["scan", "scan.cold", "scan.part.0", "scan.llvm.123", "scan.cold.llvm.1"] {
            assert_eq!(uncut(name), "scan");
        }
        assert_eq!(uncut(".cold"), ".cold");
    }
}
