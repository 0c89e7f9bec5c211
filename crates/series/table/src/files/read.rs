//! Reading a flushed file back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::dictionary::Dictionary;
use crate::error::TableError;
use crate::files::{Runs, TableFile};
use crate::key::Keys;
use crate::scan::{Filter, Piece};
use crate::schema::Schema;
use crate::segment::Loose;
use crate::storage::Storage;

/// Rows of one file, in order, in memory of their own.
#[derive(Debug)]
pub struct FileRows {
    schema: Arc<Schema>,
    columns: Vec<Loose>,
    /// Symbols of each column of symbols.
    keys: Vec<usize>,
}

impl FileRows {
    /// The columns that order its rows.
    pub(crate) fn keys_of_rows(&self) -> Keys<'_> {
        Keys::of_rows(&self.columns, self.schema.order())
    }

    /// Takes rows out.
    pub(crate) fn hide(&mut self, gone: &Runs) {
        if gone.is_empty() {
            return;
        }
        let rest = gone.rest(self.columns[self.schema.time()].view().rows());
        for column in &mut self.columns {
            let mut kept = column.empty_like();
            kept.extend_from_ranges(column, &rest);
            *column = kept;
        }
    }

    pub(crate) fn into_columns(self) -> Vec<Loose> {
        self.columns
    }

    /// The rows that a filter asks for, if any. Its zones are those of these rows.
    #[must_use]
    pub fn piece(&self, filter: &Filter) -> Option<Piece<'_>> {
        Piece::of_loose(&self.schema, &self.columns, filter, &self.keys)
    }
}

/// Reads a file whole, rows that are gone among the others, and compares it with what the manifest says of it.
pub(crate) fn read(
    storage: &dyn Storage,
    file: &TableFile,
    schema: &Arc<Schema>,
    dictionaries: &[Dictionary],
) -> Result<FileRows, TableError> {
    let path = storage.path().join(&file.name);
    let damaged = |reason: String| TableError::Damaged { path: path.clone(), offset: 0, reason };
    let bytes = storage.read(&file.name);
    let bytes = bytes.map_err(|source| TableError::Io { action: "read", path: path.clone(), source })?;
    if bytes.len() as u64 != file.bytes || crc32c::crc32c(&bytes) != file.crc32c {
        return Err(damaged("its bytes are not those that the manifest tells".to_owned()));
    }
    // The reader of Parquet panics at pages that lie about their lengths. Nothing outlives this call but what it
    // returns, so that a half-read file leaves nothing behind.
    let columns = catch_unwind(AssertUnwindSafe(|| columns(bytes, schema, dictionaries)));
    let columns = columns.map_err(|_| damaged("its pages contradict themselves".to_owned()))?;
    let columns = columns.map_err(|error| damaged(error.to_string()))?;
    let times = columns[schema.time()].whole();
    let rows = times.len() as u64;
    // Who reads the rows goes by their order, and a page that lies may bring another one.
    if !times.is_sorted() {
        return Err(damaged("its rows are not in the order of time".to_owned()));
    }
    if rows != file.rows {
        return Err(damaged(format!("{rows} rows instead of {}", file.rows)));
    }
    if !file.gone.is_sound(rows) {
        return Err(damaged("the manifest marks rows that it does not have".to_owned()));
    }
    let keys = dictionaries.iter().map(Dictionary::len).collect();
    Ok(FileRows { schema: Arc::clone(schema), columns, keys })
}

fn columns(bytes: Vec<u8>, schema: &Schema, dictionaries: &[Dictionary]) -> Result<Vec<Loose>, ParquetError> {
    let length = bytes.len() as u64;
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes))?;
    let mut columns: Vec<Loose> = schema.columns().iter().map(|column| Loose::empty(column.kind)).collect();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut dictionaries = dictionaries.iter();
        for (index, column) in columns.iter_mut().enumerate() {
            if !group.metadata().columns().get(index).is_some_and(|chunk| lies_within(chunk, length)) {
                return Err(ParquetError::General("a column that does not lie in the file".into()));
            }
            match (column, group.get_column_reader(index)?) {
                (Loose::Whole(cells), ColumnReader::Int64ColumnReader(mut reader)) => {
                    whole::<parquet::data_type::Int64Type>(rows, cells, |cells| {
                        reader.read_records(rows, None, None, cells)
                    })?;
                }
                (Loose::Float(cells), ColumnReader::DoubleColumnReader(mut reader)) => {
                    let (mut known, mut values) = (Vec::new(), Vec::new());
                    whole::<parquet::data_type::DoubleType>(rows, &mut values, |values| {
                        reader.read_records(rows, Some(&mut known), None, values)
                    })?;
                    let mut values = values.into_iter();
                    cells.extend(known.iter().map(|&known| match known {
                        0 => f64::NAN,
                        _ => values.next().unwrap_or(f64::NAN),
                    }));
                }
                (Loose::Symbol(cells), ColumnReader::ByteArrayColumnReader(mut reader)) => {
                    let mut texts: Vec<ByteArray> = Vec::new();
                    whole::<parquet::data_type::ByteArrayType>(rows, &mut texts, |texts| {
                        reader.read_records(rows, None, None, texts)
                    })?;
                    let dictionary = dictionaries.next();
                    let number = |text: &ByteArray| {
                        let known = dictionary.zip(std::str::from_utf8(text.data()).ok());
                        let known = known.and_then(|(dictionary, text)| dictionary.number(text));
                        known.ok_or_else(|| {
                            ParquetError::General("a symbol that the table does not know".into())
                        })
                    };
                    for text in &texts {
                        cells.push(number(text)?);
                    }
                }
                _ => return Err(ParquetError::General("a column of another kind".into())),
            }
        }
    }
    Ok(columns)
}

/// Whether the pages of a column are within a file of some length: the reader panics at numbers below zero.
fn lies_within(chunk: &ColumnChunkMetaData, length: u64) -> bool {
    let data = chunk.data_page_offset();
    let start = chunk.dictionary_page_offset().unwrap_or(data);
    let end = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    let end = end.and_then(|(start, bytes)| start.checked_add(bytes));
    data >= 0 && end.is_some_and(|end| end <= length)
}

/// Fails unless all rows of a group are there.
fn whole<T: DataType>(
    rows: usize,
    values: &mut Vec<T::T>,
    mut read: impl FnMut(&mut Vec<T::T>) -> Result<(usize, usize, usize), ParquetError>,
) -> Result<(), ParquetError> {
    let (records, _, _) = read(values)?;
    if records == rows {
        return Ok(());
    }
    Err(ParquetError::General(format!("{records} rows of a group of {rows}")))
}

#[cfg(test)]
mod tests {
    use super::{Filter, Loose, TableError, TableFile, read};
    use crate::dictionary::Dictionary;
    use crate::files::{Block, Codec, Source, write};
    use crate::schema::{Column, Kind, Partitioning, Schema};
    use crate::storage::{Disk, Storage};
    use std::sync::Arc;

    /// A file of a few rows, and what it is read with.
    fn written(storage: &dyn Storage) -> (TableFile, Arc<Schema>, [Dictionary; 1]) {
        let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
        let columns = [("t", Kind::Time), ("s", Kind::Symbol), ("x", Kind::Float)].map(column);
        let partitioning = Partitioning { span: 10, symbols: None };
        let schema = Arc::new(Schema::new(columns.to_vec(), partitioning).unwrap());
        let dictionaries = [Dictionary::of(&["a".to_owned(), "b".to_owned()]).unwrap()];
        let rows =
            [Loose::Whole((0..9).collect()), Loose::Symbol([0, 1, 1].repeat(3)), Loose::Float(vec![1.5; 9])];
        let codecs: Vec<Codec> = schema.columns().iter().map(|column| Codec::of(column.kind)).collect();
        let source = Source {
            schema: &schema,
            place: (0, 0),
            blocks: Block::of_rows(&rows),
            dictionaries: &dictionaries,
            time_unit: None,
            codecs: &codecs,
        };
        (write(storage, "one.parquet", &source).unwrap(), Arc::clone(&schema), dictionaries)
    }

    #[test]
    fn a_file_that_lies_under_a_sound_checksum_is_damaged_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open_plain(folder.path()).unwrap();
        let (mut file, schema, dictionaries) = written(&disk);
        let sound = disk.read(&file.name).unwrap();
        assert!(read(&disk, &file, &schema, &dictionaries).is_ok());
        let (mut contradictions, mut disorders) = (0, 0);
        for at in 0..sound.len() {
            for change in [0x01, 0x04, 0x80, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= change;
                file.crc32c = crc32c::crc32c(&bytes);
                disk.create(&file.name).unwrap().write_at(0, &bytes).unwrap();
                match read(&disk, &file, &schema, &dictionaries) {
                    Ok(rows) => {
                        let times = rows.piece(&Filter::ALL).map(|piece| piece.times().as_slice().to_vec());
                        assert!(times.is_some_and(|times| times.is_sorted()), "byte {at}, {change:#x}");
                    }
                    Err(TableError::Damaged { reason, .. }) => {
                        contradictions += usize::from(reason.contains("contradict"));
                        disorders += usize::from(reason.contains("order of time"));
                    }
                    Err(error) => panic!("byte {at}, {change:#x}: {error}"),
                }
            }
        }
        // Where the reader panics at none of them any more, the boundary around it can go.
        assert!(contradictions > 0 && disorders > 0, "{contradictions} and {disorders} of {}", sound.len());
    }
}
