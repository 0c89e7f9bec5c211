//! Writing rows of a partition as one Parquet file.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use parquet::basic::{self, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::dictionary::Dictionary;
use crate::durable::TimeUnit;
use crate::error::TableError;
use crate::files::{Codec, Compression, Encoding, FileColumn, FileZone, Runs, TableFile};
use crate::schema::{Kind, Place, Schema};
use crate::segment::{Data, Loose, ROWS_LAST, Segment, View, Zone, zone_of};
use crate::storage::{Output, Storage};

/// Blocks of a row group: about a million rows, whose columns are in memory once more while they are written.
const BLOCKS_OF_GROUP: usize = 16;
/// Bytes of one write to the file.
const WRITE_BYTES: usize = 1 << 20;

/// Rows of a file, as many as a segment may have.
pub(crate) struct Block<'s> {
    columns: Vec<View<'s>>,
    zones: Vec<Zone>,
    rows: usize,
}

impl<'s> Block<'s> {
    /// The rows of segments.
    pub(crate) fn of_segments(segments: &'s [Segment<'_>]) -> Vec<Self> {
        let block = |segment: &'s Segment<'_>| {
            let columns = 0..segment.columns.len();
            Self {
                columns: columns.clone().map(|column| segment.view(column)).collect(),
                zones: columns.map(|column| segment.zone(column)).collect(),
                rows: segment.rows,
            }
        };
        segments.iter().map(block).collect()
    }

    /// Rows outside of segments.
    pub(crate) fn of_rows(columns: &'s [Loose]) -> Vec<Self> {
        let rows = columns.first().map_or(0, |column| column.view().rows());
        let block = |start: usize| {
            let end = rows.min(start + ROWS_LAST);
            let columns: Vec<_> = columns.iter().map(|column| column.view().cut(start..end)).collect();
            let zones = columns.iter().map(|column| zone_of(*column)).collect();
            Self { columns, zones, rows: end - start }
        };
        (0..rows).step_by(ROWS_LAST).map(block).collect()
    }
}

/// What a file is made of.
pub(crate) struct Source<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) place: Place,
    pub(crate) blocks: Vec<Block<'s>>,
    pub(crate) dictionaries: &'s [Dictionary],
    pub(crate) time_unit: Option<TimeUnit>,
    /// One for each column.
    pub(crate) codecs: &'s [Codec],
}

/// Writes a file under a name for the time being, syncs it, and gives it its name. The folder is not synced.
pub(crate) fn write(storage: &dyn Storage, name: &str, source: &Source<'_>) -> Result<TableFile, TableError> {
    let unfinished = format!("{name}.new");
    let path = storage.path().join(name);
    let io = |source| TableError::Io { action: "write", path: path.clone(), source };
    let parquet = |error| io(io_error(error));
    let sink = Sink { output: storage.create(&unfinished).map_err(io)?, offset: 0, crc32c: 0 };
    let mut sink = BufWriter::with_capacity(WRITE_BYTES, sink);
    let file_bytes = source.write(&mut sink).map_err(parquet)?;
    let mut sink = sink.into_inner().map_err(|error| io(error.into_error()))?;
    sink.output.sync().map_err(io)?;
    let (bytes, crc32c) = (sink.offset, sink.crc32c);
    drop(sink);
    storage.rename(&unfinished, name).map_err(io)?;
    Ok(TableFile {
        name: name.to_owned(),
        group: source.place.0,
        span: source.place.1,
        rows: source.rows(),
        bytes,
        crc32c,
        columns: source.columns(&file_bytes),
        gone: Runs::default(),
    })
}

/// The kernel's error where there is one behind an error of the writer: a full disk must be told as that.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

/// The file's end, with the checksum of what went through.
struct Sink {
    output: Box<dyn Output>,
    offset: u64,
    crc32c: u32,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write_at(self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source<'_> {
    /// Writes everything; returns the bytes of each column.
    fn write(&self, sink: &mut (impl Write + Send)) -> Result<Vec<u64>, ParquetError> {
        let mut writer = SerializedFileWriter::new(sink, Arc::new(self.columns_type()?), self.properties())?;
        for blocks in self.blocks.chunks(BLOCKS_OF_GROUP) {
            let mut group = writer.next_row_group()?;
            for column in 0..self.schema.columns().len() {
                self.write_column(&mut group, blocks, column)?;
            }
            group.close()?;
        }
        let metadata = writer.close()?;
        let mut bytes = vec![0; self.schema.columns().len()];
        for group in metadata.row_groups() {
            for (bytes, column) in bytes.iter_mut().zip(group.columns()) {
                *bytes += u64::try_from(column.compressed_size()).unwrap_or(0);
            }
        }
        Ok(bytes)
    }

    fn write_column<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        blocks: &[Block<'_>],
        column: usize,
    ) -> Result<(), ParquetError> {
        let mut writer =
            group.next_column()?.ok_or_else(|| ParquetError::General("a column too few".into()))?;
        let texts: Vec<ByteArray> = match self.dictionary(column) {
            Some(dictionary) => {
                dictionary.texts().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect()
            }
            None => Vec::new(),
        };
        for block in blocks {
            match block.columns[column] {
                Data::Whole(cells) => {
                    writer.typed::<Int64Type>().write_batch(cells, None, None)?;
                }
                Data::Symbol(cells) => {
                    let cells: Vec<ByteArray> =
                        cells.iter().map(|&key| texts[key as usize].clone()).collect();
                    writer.typed::<ByteArrayType>().write_batch(&cells, None, None)?;
                }
                Data::Float(cells) => {
                    let known: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_nan())).collect();
                    let values: Vec<f64> = cells.iter().copied().filter(|cell| !cell.is_nan()).collect();
                    writer.typed::<DoubleType>().write_batch(&values, Some(&known), None)?;
                }
            }
        }
        writer.close()
    }

    /// The dictionary of a column of symbols.
    fn dictionary(&self, column: usize) -> Option<&Dictionary> {
        let columns = self.schema.columns();
        let before = columns[..column].iter().filter(|column| column.kind == Kind::Symbol).count();
        (columns[column].kind == Kind::Symbol).then(|| &self.dictionaries[before])
    }

    fn columns_type(&self) -> Result<Type, ParquetError> {
        let unit = |unit| match unit {
            TimeUnit::Milliseconds => basic::TimeUnit::MILLIS,
            TimeUnit::Microseconds => basic::TimeUnit::MICROS,
            TimeUnit::Nanoseconds => basic::TimeUnit::NANOS,
        };
        let time = self.time_unit.map(|it| LogicalType::timestamp(true, unit(it)));
        let mut fields = Vec::new();
        for column in self.schema.columns() {
            let (physical, logical, repetition) = match column.kind {
                Kind::Time => (Physical::INT64, time.clone(), Repetition::REQUIRED),
                Kind::Int => (Physical::INT64, None, Repetition::REQUIRED),
                Kind::Symbol => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
                Kind::Float => (Physical::DOUBLE, None, Repetition::OPTIONAL),
                Kind::Decimal { scale } => {
                    let logical = LogicalType::decimal(scale.into(), 18);
                    (Physical::INT64, Some(logical), Repetition::REQUIRED)
                }
            };
            let mut field = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
            if let Kind::Decimal { scale } = column.kind {
                field = field.with_precision(18).with_scale(scale.into());
            }
            fields.push(Arc::new(field.with_logical_type(logical).build()?));
        }
        Type::group_type_builder("table").with_fields(fields).build()
    }

    fn properties(&self) -> Arc<WriterProperties> {
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("planish {}", env!("CARGO_PKG_VERSION")))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_max_row_group_row_count(None);
        for (column, codec) in self.schema.columns().iter().zip(self.codecs) {
            let path = || ColumnPath::new(vec![column.name.clone()]);
            let (is_dictionary, encoding) = match codec.encoding {
                Encoding::Dictionary => (true, basic::Encoding::PLAIN),
                Encoding::Plain => (false, basic::Encoding::PLAIN),
                Encoding::Delta => (false, basic::Encoding::DELTA_BINARY_PACKED),
                Encoding::Split => (false, basic::Encoding::BYTE_STREAM_SPLIT),
            };
            let compression = match codec.compression {
                Compression::None => basic::Compression::UNCOMPRESSED,
                Compression::Lz4 => basic::Compression::LZ4_RAW,
                Compression::Snappy => basic::Compression::SNAPPY,
            };
            properties = properties
                .set_column_dictionary_enabled(path(), is_dictionary)
                .set_column_encoding(path(), encoding)
                .set_column_compression(path(), compression);
        }
        Arc::new(properties.build())
    }

    fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.rows as u64).sum()
    }

    /// What the manifest tells of each column.
    fn columns(&self, file_bytes: &[u64]) -> Vec<FileColumn> {
        let rows = self.rows();
        let column = |(index, &file_bytes): (usize, &u64)| {
            let column = &self.schema.columns()[index];
            let cell_bytes = if column.kind == Kind::Symbol { 4 } else { 8 };
            FileColumn {
                name: column.name.clone(),
                codec: self.codecs[index],
                memory_bytes: rows * cell_bytes,
                file_bytes,
                zone: self.zone(index),
            }
        };
        file_bytes.iter().enumerate().map(column).collect()
    }

    fn zone(&self, column: usize) -> FileZone {
        let zone = self.blocks.iter().map(|block| block.zones[column]).reduce(Zone::merge);
        match zone {
            Some(Zone::Whole(Some((low, high)))) if self.dictionary(column).is_some() => {
                let number = |number| u32::try_from(number).expect("a symbol has a number of 32 bits");
                FileZone::Symbol(number(low), number(high))
            }
            Some(Zone::Whole(Some((low, high)))) => FileZone::Whole(low, high),
            Some(Zone::Float(Some((low, high)))) => FileZone::Float(format!("{low:?}"), format!("{high:?}")),
            Some(Zone::Whole(None) | Zone::Float(None)) | None => FileZone::Null,
        }
    }
}
