//! A batch as bytes: what stands in the payload of a frame.
//!
//! ```text
//!   4 length │ 1 change │ 1 length of producer │ producer │ 8 sequence (with a producer only) │ 4 rows │ 2 columns │
//!            columns
//!   column: 1 kind │ 8 bytes a row                                                  times, ints, decimals, floats
//!           1 kind │ 4 texts │ (4 length, text)* │ 1 bytes of a key │ keys            symbols
//! ```
//!
//! In log files of version 1 there is no byte for the change: all of them are rows.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::error::TableError;
use crate::log::committer::BATCH_BYTES_MAX;
use crate::log::frame::{u32_at, u64_at};
use crate::table::Cells;

/// Longest name of a producer.
pub(crate) const PRODUCER_BYTES_MAX: usize = 255;

/// Who sent a batch, and its number there: what makes sending it again harmless.
///
/// A producer numbers its batches 1, 2, 3 and so on. A number that was taken in before is acknowledged and adds
/// nothing; a number that skips one is refused, since what is missing may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Its name, at most 255 bytes and not empty.
    pub producer: &'a str,
    /// Number of the batch, from 1.
    pub sequence: u64,
}

/// What a batch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It brings rows, which in a table with a key replace those that have their keys.
    Rows,
    /// It takes rows out: its columns are those of the key.
    Delete,
}

const ROWS: u8 = 0;
const DELETE: u8 = 1;

/// A batch read from bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// What it does.
    pub change: Change,
    /// Who sent it, and its number there.
    pub origin: Option<(String, u64)>,
    /// Rows of each column.
    pub rows: usize,
    columns: Vec<Owned>,
}

/// A column of a batch.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Times(Vec<i64>),
    Symbols { texts: Vec<String>, keys: Vec<u32> },
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Decimals(Vec<i64>),
}

const TIMES: u8 = 0;
const SYMBOLS: u8 = 1;
const INTS: u8 = 2;
const FLOATS: u8 = 3;
const DECIMALS: u8 = 4;

/// Writes a batch whose columns are all as long as the first and whose producer is not too long.
///
/// # Errors
/// [`TableError::TooLong`] when its texts alone are longer than a batch may be.
pub(crate) fn encode(
    change: Change,
    origin: Option<Origin<'_>>,
    cells: &[Cells<'_>],
) -> Result<Vec<u8>, TableError> {
    let rows = cells.first().map_or(0, Cells::rows);
    let mut out = Vec::with_capacity(64 + cells.len() * (rows * 8 + 16));
    out.extend_from_slice(&[0; 4]);
    out.push(match change {
        Change::Rows => ROWS,
        Change::Delete => DELETE,
    });
    let producer = origin.map_or("", |origin| origin.producer);
    out.push(u8::try_from(producer.len()).expect("at most 255 bytes"));
    out.extend_from_slice(producer.as_bytes());
    if let Some(origin) = origin {
        out.extend_from_slice(&origin.sequence.to_le_bytes());
    }
    out.extend_from_slice(&count(rows).to_le_bytes());
    out.extend_from_slice(&u16::try_from(cells.len()).expect("a schema has fewer columns").to_le_bytes());
    for cells in cells {
        match *cells {
            Cells::Times(cells) => wholes(&mut out, TIMES, cells),
            Cells::Ints(cells) => wholes(&mut out, INTS, cells),
            Cells::Decimals(cells) => wholes(&mut out, DECIMALS, cells),
            Cells::Floats(cells) => {
                out.push(FLOATS);
                append(&mut out, cells, |cell| cell.to_le_bytes());
            }
            Cells::Symbols(cells) => {
                let (texts, keys) = distinct(cells);
                symbols(&mut out, &texts, &keys)?;
            }
            Cells::Keyed { texts, keys } => symbols(&mut out, texts, keys)?,
        }
    }
    let length = count(out.len() - 4);
    out[..4].copy_from_slice(&length.to_le_bytes());
    Ok(out)
}

fn count(count: usize) -> u32 {
    u32::try_from(count).expect("a batch is below 1 GiB")
}

fn wholes(out: &mut Vec<u8>, kind: u8, cells: &[i64]) {
    out.push(kind);
    append(out, cells, |cell| cell.to_le_bytes());
}

fn append<T: Copy, const N: usize>(out: &mut Vec<u8>, cells: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + cells.len() * N, 0);
    for (place, &cell) in out[start..].chunks_exact_mut(N).zip(cells) {
        place.copy_from_slice(&bytes(cell));
    }
}

fn symbols(out: &mut Vec<u8>, texts: &[&str], keys: &[u32]) -> Result<(), TableError> {
    let bytes = texts.iter().fold(out.len(), |bytes, text| bytes.saturating_add(4 + text.len()));
    if bytes > BATCH_BYTES_MAX {
        return Err(TableError::TooLong { bytes, limit: BATCH_BYTES_MAX });
    }
    out.push(SYMBOLS);
    out.extend_from_slice(&count(texts.len()).to_le_bytes());
    for text in texts {
        out.extend_from_slice(&count(text.len()).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.push(key_bytes(texts.len()));
    match key_bytes(texts.len()) {
        1 => append(out, keys, |key| [key as u8]),
        2 => append(out, keys, |key| (key as u16).to_le_bytes()),
        _ => append(out, keys, u32::to_le_bytes),
    }
    Ok(())
}

/// Bytes of a key of so many texts.
fn key_bytes(texts: usize) -> u8 {
    match texts {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// The different texts in the order in which they come, and the number of each row's.
pub(crate) fn distinct<'a>(cells: &[&'a str]) -> (Vec<&'a str>, Vec<u32>) {
    let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
    let (mut texts, mut keys) = (Vec::new(), Vec::with_capacity(cells.len()));
    for &cell in cells {
        let key = *numbers.entry(cell).or_insert_with(|| {
            texts.push(cell);
            count(texts.len() - 1)
        });
        keys.push(key);
    }
    (texts, keys)
}

impl Batch {
    /// Reads a batch as a log file of a version has it.
    ///
    /// # Errors
    /// What is wrong with the bytes. No length of theirs is believed before there are as many bytes.
    pub fn parse(bytes: &[u8], version: u32) -> Result<Self, &'static str> {
        let mut reader = Reader(bytes);
        let length = reader.u32()? as usize;
        if reader.0.len() != length {
            return Err("a batch of another length");
        }
        let change = match if version >= 2 { reader.byte()? } else { ROWS } {
            ROWS => Change::Rows,
            DELETE => Change::Delete,
            _ => return Err("a batch that does nothing known"),
        };
        let producer = reader.byte()?.into();
        let producer = reader.text(producer)?;
        let origin = match producer {
            "" => None,
            producer => Some((producer.to_owned(), reader.u64()?)),
        };
        let rows = reader.u32()? as usize;
        let columns = u16::from_le_bytes([reader.byte()?, reader.byte()?]);
        let columns = (0..columns).map(|_| reader.column(rows)).collect::<Result<Vec<_>, _>>()?;
        if !reader.0.is_empty() {
            return Err("bytes behind the last column");
        }
        Ok(Self { change, origin, rows, columns })
    }

    /// The bytes of a batch of an older version as they are written now.
    pub(crate) fn renew(bytes: &[u8], version: u32) -> Vec<u8> {
        if version >= 2 {
            return bytes.to_vec();
        }
        let length = u32_at(bytes, 0) + 1;
        [&length.to_le_bytes()[..], &[ROWS], &bytes[4..]].concat()
    }

    /// The batches of a frame's payload.
    ///
    /// # Errors
    /// When they do not fill it, but for zeros at its end.
    pub fn split(payload: &[u8], count: u32) -> Result<Vec<&[u8]>, &'static str> {
        let mut batches = Vec::new();
        let mut rest = payload;
        for _ in 0..count {
            let Some(length) = rest.get(..4) else { return Err("a frame with too few batches") };
            let end = 4 + u32_at(length, 0) as usize;
            if end == 4 {
                return Err("a frame with too few batches");
            }
            let (Some(batch), Some(behind)) = (rest.get(..end), rest.get(end..)) else {
                return Err("a batch is longer than its frame");
            };
            batches.push(batch);
            rest = behind;
        }
        if rest.len() >= 8 || rest.iter().any(|&byte| byte != 0) {
            return Err("bytes behind the last batch of a frame");
        }
        Ok(batches)
    }

    /// Gives the columns to a function, as a table takes them.
    pub(crate) fn with_cells<R>(&self, use_cells: impl FnOnce(&[Cells<'_>]) -> R) -> R {
        let texts: Vec<Vec<&str>> = self
            .columns
            .iter()
            .map(|column| match column {
                Owned::Symbols { texts, .. } => texts.iter().map(String::as_str).collect(),
                _ => Vec::new(),
            })
            .collect();
        let cells = self.columns.iter().zip(&texts).map(|(column, texts)| match column {
            Owned::Times(cells) => Cells::Times(cells),
            Owned::Ints(cells) => Cells::Ints(cells),
            Owned::Decimals(cells) => Cells::Decimals(cells),
            Owned::Floats(cells) => Cells::Floats(cells),
            Owned::Symbols { keys, .. } => Cells::Keyed { texts, keys },
        });
        use_cells(&cells.collect::<Vec<_>>())
    }
}

/// Bytes that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (Some(taken), Some(rest)) = (self.0.get(..count), self.0.get(count..)) else {
            return Err("a batch is cut short");
        };
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        Ok(u32_at(self.take(4)?, 0))
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        Ok(u64_at(self.take(8)?, 0))
    }

    fn text(&mut self, bytes: usize) -> Result<&'a str, &'static str> {
        std::str::from_utf8(self.take(bytes)?).map_err(|_| "a text is not UTF-8")
    }

    fn cells<T, const N: usize>(
        &mut self,
        rows: usize,
        cell: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, &'static str> {
        let bytes = self.take(rows.checked_mul(N).ok_or("too many rows")?)?;
        Ok(bytes.chunks_exact(N).map(|bytes| cell(bytes.try_into().expect("of this length"))).collect())
    }

    fn column(&mut self, rows: usize) -> Result<Owned, &'static str> {
        Ok(match self.byte()? {
            TIMES => Owned::Times(self.cells(rows, i64::from_le_bytes)?),
            INTS => Owned::Ints(self.cells(rows, i64::from_le_bytes)?),
            DECIMALS => Owned::Decimals(self.cells(rows, i64::from_le_bytes)?),
            FLOATS => Owned::Floats(self.cells(rows, f64::from_le_bytes)?),
            SYMBOLS => {
                let count = self.u32()?;
                let mut texts = Vec::new();
                for _ in 0..count {
                    let bytes = self.u32()? as usize;
                    texts.push(self.text(bytes)?.to_owned());
                }
                let keys = match self.byte()? {
                    1 => self.cells(rows, |[key]: [u8; 1]| u32::from(key))?,
                    2 => self.cells(rows, |key| u32::from(u16::from_le_bytes(key)))?,
                    4 => self.cells(rows, u32::from_le_bytes)?,
                    _ => return Err("keys of an unknown length"),
                };
                if keys.iter().any(|&key| key >= count) {
                    return Err("a key without a text");
                }
                Owned::Symbols { texts, keys }
            }
            _ => return Err("a column of an unknown kind"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LOG_VERSION;
    use proptest::prelude::*;

    fn texts() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("[a-c]{0,3}", 1..300)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            texts in texts(), producer in "[a-z]{0,9}", sequence in any::<u64>(), float in any::<f64>(),
            change in prop_oneof![Just(Change::Rows), Just(Change::Delete)],
        ) {
            let rows = texts.len();
            let symbols: Vec<&str> = texts.iter().map(String::as_str).collect();
            let wholes: Vec<i64> = (0..rows as i64).map(|row| row * 0x1234_5678_9abc - 7).collect();
            let floats = vec![float; rows];
            let cells = [
                Cells::Times(&wholes), Cells::Symbols(&symbols), Cells::Floats(&floats), Cells::Ints(&wholes),
                Cells::Decimals(&wholes),
            ];
            let origin = (!producer.is_empty()).then_some(Origin { producer: &producer, sequence });
            let bytes = encode(change, origin, &cells).unwrap();
            let batch = Batch::parse(&bytes, LOG_VERSION).unwrap();
            prop_assert_eq!((batch.rows, batch.change), (rows, change));
            // What version 1 has: the same without the byte of the change.
            let mut short = [&bytes[..4], &bytes[5..]].concat();
            short[..4].copy_from_slice(&(bytes.len() as u32 - 5).to_le_bytes());
            let old = Batch::parse(&short, 1).unwrap();
            prop_assert!(change == Change::Delete || Batch::renew(&short, 1) == bytes);
            prop_assert_eq!((old.change, &old.origin), (Change::Rows, &batch.origin));
            prop_assert_eq!(format!("{:?}", old.columns), format!("{:?}", batch.columns));
            prop_assert_eq!(batch.origin.clone(), origin.map(|it| (it.producer.to_owned(), it.sequence)));
            batch.with_cells(|read| {
                let Cells::Keyed { texts, keys } = &read[1] else { panic!("{read:?}") };
                let got: Vec<&str> = keys.iter().map(|&key| texts[key as usize]).collect();
                assert_eq!(got, symbols);
                let Cells::Floats(got) = &read[2] else { panic!("{read:?}") };
                assert!(got.iter().all(|got| got.to_bits() == float.to_bits()));
                assert!(matches!(read[0], Cells::Times(cells) if cells == wholes));
                assert!(matches!(read[3], Cells::Ints(cells) if cells == wholes));
                assert!(matches!(read[4], Cells::Decimals(cells) if cells == wholes));
            });
            let mut payload = [bytes.clone(), bytes.clone()].concat();
            payload.resize(payload.len().next_multiple_of(8), 0);
            prop_assert_eq!(Batch::split(&payload, 2).unwrap(), [&bytes[..]; 2]);
            prop_assert!(Batch::split(&payload, 1).is_err() && Batch::split(&payload, 3).is_err());
            prop_assert!(Batch::parse(&bytes[..bytes.len() - 1], LOG_VERSION).is_err());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 4..200)) {
            let length = (bytes.len() - 4) as u32;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            let _ = (Batch::parse(&bytes, 1), Batch::parse(&bytes, LOG_VERSION), Batch::split(&bytes, 1));
        }
    }

    #[test]
    fn keys_are_as_short_as_their_number_allows() {
        for (texts, bytes) in [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)] {
            let owned: Vec<String> = (0..texts).map(|number| number.to_string()).collect();
            let cells: Vec<&str> = owned.iter().map(String::as_str).collect();
            let times = vec![0; texts];
            let encoded =
                encode(Change::Rows, None, &[Cells::Times(&times), Cells::Symbols(&cells)]).unwrap();
            let read = Batch::parse(&encoded, LOG_VERSION).unwrap();
            read.with_cells(|read| {
                let Cells::Keyed { keys, .. } = read[1] else { panic!("{read:?}") };
                assert!(keys.iter().copied().eq(0..texts as u32));
            });
            assert_eq!(key_bytes(texts), bytes);
        }
    }
}
