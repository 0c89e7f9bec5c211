//! pprof: a protocol buffer of locations, functions and samples, often gzipped.
//!
//! The format has twenty fields, of which thirteen matter here, so they are read by hand: no code generator, and no
//! length that is believed. Source: proto/profile.proto of github.com/google/pprof.

use std::collections::HashMap;
use std::io::Read as _;

use super::{ImportOptions, Read};
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "pprof";
/// What a gzipped profile may unpack to: above that it is no profile but a trap.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;

/// Without gzip a profile starts with field 1, `sample_type`, whose message is short.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x0a)
        && bytes.get(1).is_some_and(|length| *length < 16)
        && bytes.get(2) == Some(&0x08)
}

pub(super) fn read(
    bytes: &[u8],
    options: &ImportOptions<'_>,
    collector: &mut Collector<'_>,
) -> Result<Read, ProfileError> {
    let mut unpacked = Vec::new();
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut packed = flate2::read::MultiGzDecoder::new(bytes).take(UNPACKED_BYTES_MAX);
        let broken = |error: std::io::Error| ProfileError::byte(FORMAT, 0, error.to_string());
        packed.read_to_end(&mut unpacked).map_err(broken)?;
        unpacked.as_slice()
    } else {
        bytes
    };
    let profile = Profile::parse(bytes)?;
    let (value, event) = profile.value(options.event.as_deref())?;
    let places: HashMap<u64, Vec<Place>> =
        profile.locations.iter().map(|(id, location)| (*id, profile.places(location, collector))).collect();
    for sample in &profile.samples {
        let weight = sample.values.get(value).copied().unwrap_or(0);
        let stack: Vec<Place> = sample
            .locations
            .iter()
            .flat_map(|id| places.get(id).map_or(&[][..], Vec::as_slice))
            .copied()
            .collect();
        if weight > 0 {
            collector.stack(None, &stack, weight);
        }
    }
    let is_deep = profile.samples.iter().any(|sample| sample.locations.len() > 1);
    Ok(Read::new(event, Weights::Samples, if is_deep { Edges::Stacks } else { Edges::None }))
}

#[derive(Default)]
struct Profile<'a> {
    strings: Vec<&'a str>,
    /// Index of the name of each value.
    kinds: Vec<usize>,
    samples: Vec<Sample>,
    mappings: HashMap<u64, Mapping>,
    locations: HashMap<u64, Location>,
    /// Linker's name and the source's name, as indices.
    functions: HashMap<u64, (usize, usize)>,
}

#[derive(Default)]
struct Sample {
    locations: Vec<u64>,
    values: Vec<u64>,
}

#[derive(Default)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: usize,
}

#[derive(Default)]
struct Location {
    mapping: u64,
    address: u64,
    /// Functions of the lines, the innermost first: more than one where callees were inlined.
    functions: Vec<u64>,
}

impl<'a> Profile<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ProfileError> {
        let mut profile = Self::default();
        for field in Fields::new(bytes) {
            let (number, value) = field?;
            match (number, value) {
                (1, Value::Bytes(kind)) => profile.kinds.push(first_number(kind, 1)? as usize),
                (2, Value::Bytes(sample)) => profile.samples.push(parse_sample(sample)?),
                (3, Value::Bytes(mapping)) => {
                    let mut parsed = Mapping::default();
                    let id = each_number(mapping, |field, number| match field {
                        2 => parsed.start = number,
                        3 => parsed.end = number,
                        4 => parsed.offset = number,
                        5 => parsed.file = number as usize,
                        _ => {}
                    })?;
                    profile.mappings.insert(id, parsed);
                }
                (4, Value::Bytes(location)) => {
                    let (id, location) = parse_location(location)?;
                    profile.locations.insert(id, location);
                }
                (5, Value::Bytes(function)) => {
                    let mut names = (0, 0);
                    let id = each_number(function, |field, number| match field {
                        2 => names.1 = number as usize,
                        3 => names.0 = number as usize,
                        _ => {}
                    })?;
                    profile.functions.insert(id, names);
                }
                (6, Value::Bytes(text)) => {
                    profile.strings.push(std::str::from_utf8(text).unwrap_or_default())
                }
                _ => {}
            }
        }
        Ok(profile)
    }

    fn string(&self, index: usize) -> &'a str {
        self.strings.get(index).copied().unwrap_or_default()
    }

    /// Which value of a sample counts, and its name: what was asked for, else `cpu`, else `samples`, else the last.
    fn value(&self, wanted: Option<&str>) -> Result<(usize, String), ProfileError> {
        let names: Vec<&str> = self.kinds.iter().map(|kind| self.string(*kind)).collect();
        let position = |name: &str| names.iter().position(|kind| *kind == name);
        let found = match wanted {
            Some(name) => position(name).ok_or_else(|| ProfileError::NoEvent {
                wanted: name.to_owned(),
                present: names.join(", "),
            })?,
            None => position("cpu").or_else(|| position("samples")).unwrap_or(names.len().saturating_sub(1)),
        };
        Ok((found, names.get(found).map_or("samples", |name| name).to_owned()))
    }

    /// The places of a location. With the program at hand its address counts, since inlined callees have no code of
    /// their own; else the names of its outermost function.
    fn places(&self, location: &Location, collector: &mut Collector<'_>) -> Vec<Place> {
        let mapping = self.mappings.get(&location.mapping);
        let file = mapping.map_or("", |mapping| self.string(mapping.file));
        if !file.is_empty() && !collector.is_ours(file) {
            return vec![Place::Outside];
        }
        if let (Some(mapping), true) = (mapping, location.address > 0) {
            let in_file =
                location.address.checked_sub(mapping.start).filter(|_| location.address < mapping.end);
            let in_file = in_file.and_then(|inside| inside.checked_add(mapping.offset));
            let place = in_file.map_or(Place::Outside, |offset| collector.at_file_offset(offset));
            if place.function().is_some() {
                return vec![place];
            }
        }
        let Some((linker, source)) = location.functions.last().and_then(|id| self.functions.get(id)) else {
            return vec![Place::Unnamed];
        };
        let name =
            [*linker, *source].map(|index| self.string(index)).into_iter().find(|name| !name.is_empty());
        vec![name.map_or(Place::Unnamed, |name| collector.named(name, None))]
    }
}

fn parse_sample(bytes: &[u8]) -> Result<Sample, ProfileError> {
    let mut sample = Sample::default();
    for field in Fields::new(bytes) {
        match field? {
            (1, value) => value.numbers(&mut sample.locations)?,
            (2, value) => value.numbers(&mut sample.values)?,
            _ => {}
        }
    }
    Ok(sample)
}

fn parse_location(bytes: &[u8]) -> Result<(u64, Location), ProfileError> {
    let mut location = Location::default();
    let mut id = 0;
    for field in Fields::new(bytes) {
        match field? {
            (1, Value::Number(number)) => id = number,
            (2, Value::Number(number)) => location.mapping = number,
            (3, Value::Number(number)) => location.address = number,
            (4, Value::Bytes(line)) => location.functions.push(first_number(line, 1)?),
            _ => {}
        }
    }
    Ok((id, location))
}

/// Gives every number of a message to `take` and returns field 1, the id of every message of the format.
fn each_number(bytes: &[u8], mut take: impl FnMut(u32, u64)) -> Result<u64, ProfileError> {
    let mut id = 0;
    for field in Fields::new(bytes) {
        match field? {
            (1, Value::Number(number)) => id = number,
            (field, Value::Number(number)) => take(field, number),
            _ => {}
        }
    }
    Ok(id)
}

fn first_number(bytes: &[u8], wanted: u32) -> Result<u64, ProfileError> {
    for field in Fields::new(bytes) {
        if let (number, Value::Number(value)) = field?
            && number == wanted
        {
            return Ok(value);
        }
    }
    Ok(0)
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// Repeated numbers, packed into one field or one a field.
    fn numbers(&self, into: &mut Vec<u64>) -> Result<(), ProfileError> {
        match self {
            Self::Number(number) => into.push(*number),
            Self::Bytes(bytes) => {
                let mut fields = Fields::new(bytes);
                while fields.at < bytes.len() {
                    into.push(fields.varint()?);
                }
            }
        }
        Ok(())
    }
}

/// The fields of a message.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    is_broken: bool,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, is_broken: false }
    }

    fn varint(&mut self) -> Result<u64, ProfileError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.broken("a number that ends too soon"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.broken("a number that does not end"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ProfileError> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let taken = end
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or_else(|| self.broken("a field that is cut"))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), ProfileError> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| self.broken("a field number that is too large"))?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return Err(self.broken("a field of an unknown kind")),
        };
        Ok((number, value))
    }

    fn broken(&self, what: &str) -> ProfileError {
        ProfileError::byte(FORMAT, self.at, what)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), ProfileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken || self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        self.is_broken = field.is_err();
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn message(field: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![field << 3 | 2, u8::try_from(body.len()).unwrap()];
        bytes.extend(body);
        bytes
    }

    /// Two samples: `scan <- main`, weight 30 by number, and `main`, weight 4.
    fn sample_file() -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(message(1, &[0x08, 1, 0x10, 2]));
        file.extend(message(1, &[0x08, 3, 0x10, 4]));
        file.extend(message(2, &[0x0a, 2, 1, 2, 0x12, 2, 1, 30]));
        file.extend(message(2, &[0x08, 2, 0x10, 1, 0x10, 4]));
        for (id, function) in [(1, 1), (2, 2)] {
            file.extend(message(4, &[0x08, id, 0x22, 2, 0x08, function]));
        }
        file.extend(message(5, &[0x08, 1, 0x10, 5]));
        file.extend(message(5, &[0x08, 2, 0x10, 6]));
        for text in ["", "samples", "count", "cpu", "nanoseconds", "scan", "main"] {
            file.extend(message(6, text.as_bytes()));
        }
        file
    }

    #[test]
    fn packed_and_plain_numbers_gzipped_or_not() {
        let plain = sample_file();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        for bytes in [plain, gzip.finish().unwrap()] {
            let imported = crate::import(&bytes, &ImportOptions::default()).unwrap();
            assert_eq!(imported.format, crate::Format::Pprof);
            let profile = imported.profile;
            assert_eq!(profile.event, "cpu");
            let weights: Vec<_> = profile.functions.iter().map(|f| (f.name.as_str(), f.weight)).collect();
            assert_eq!(weights, [("scan", 30), ("main", 4)]);
            assert_eq!(profile.edges.len(), 1);
        }
        let event = Some("wall".to_owned());
        let error = crate::import(&sample_file(), &ImportOptions { event, ..ImportOptions::default() });
        assert!(error.unwrap_err().to_string().contains("there is samples, cpu"));
    }
}
