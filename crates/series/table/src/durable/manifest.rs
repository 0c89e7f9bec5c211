//! The manifest: what a table consists of, which files hold rows of it, and where the log takes over.
//!
//! One file, replaced as a whole: written beside the old one, synced, renamed. Its first line names the format and the
//! checksum of the rest, which is JSON.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::error::TableError;
use crate::files::TableFile;
use crate::schema::{Column, Kind, Partitioning, Place, Schema};
use crate::storage::Storage;

/// Version of the format of the manifest, and of a table's folder as a whole. A newer one is refused by name.
///
/// Version 2 has keys, and marks rows of files that are gone. Version 1 is read; what is written next is version 2.
pub const FORMAT_VERSION: u32 = 2;
/// Its name.
pub(crate) const MANIFEST: &str = "manifest";
const NEXT: &str = "manifest.new";
const TITLE: &str = "planish-table";
/// Batches and files are numbered one by one: there never were so many.
const NUMBER_MAX: u64 = 1 << 62;
/// Batches that the log alone may have: more are in no log, and a salvage could not even count them.
const UNFLUSHED_MAX: u64 = u32::MAX as u64;

/// What the folder is at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Written into each log file: files of other tables are refused.
    pub(crate) table: u64,
    columns: Vec<ColumnEntry>,
    span: i64,
    symbols: Option<u32>,
    /// Names of the columns of the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key: Vec<String>,
    pub(crate) time_unit: Option<TimeUnit>,
    /// Number of the last batch that this manifest knows of.
    pub(crate) applied: u64,
    /// Number of the first batch whose rows are not all in files.
    pub(crate) replay_from: u64,
    /// Rows of earlier spans of time are not kept.
    pub(crate) first_span: Option<i64>,
    /// Number of the last batch of each producer.
    pub(crate) producers: BTreeMap<String, u64>,
    /// The symbols of each column of symbols, in the order of their numbers.
    pub(crate) dictionaries: Vec<Vec<String>>,
    /// Partitions of which files hold all rows up to a batch, in order.
    pub(crate) flushed: Vec<Flushed>,
    pub(crate) files: Vec<TableFile>,
    /// Number of the next file.
    pub(crate) next_file: u64,
}

/// Until which batch the rows of a partition are in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flushed {
    pub(crate) group: u32,
    pub(crate) span: i64,
    pub(crate) through: u64,
}

/// What a time counts. Kernels need not know; readers of files like to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Milliseconds since 1970, UTC.
    Milliseconds,
    /// Microseconds since 1970, UTC.
    Microseconds,
    /// Nanoseconds since 1970, UTC.
    Nanoseconds,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ColumnEntry {
    name: String,
    kind: KindEntry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindEntry {
    Time,
    Symbol,
    Int,
    Float,
    Decimal { scale: u8 },
}

impl Manifest {
    /// Of a new table without rows.
    pub(crate) fn new(table: u64, schema: &Schema, time_unit: Option<TimeUnit>) -> Self {
        let kind = |kind| match kind {
            Kind::Time => KindEntry::Time,
            Kind::Symbol => KindEntry::Symbol,
            Kind::Int => KindEntry::Int,
            Kind::Float => KindEntry::Float,
            Kind::Decimal { scale } => KindEntry::Decimal { scale },
        };
        let column = |column: &Column| ColumnEntry { name: column.name.clone(), kind: kind(column.kind) };
        let symbols = schema.columns().iter().filter(|column| column.kind == Kind::Symbol).count();
        Self {
            table,
            columns: schema.columns().iter().map(column).collect(),
            span: schema.partitioning().span,
            symbols: schema.partitioning().symbols,
            key: schema.key().iter().map(|&column| schema.columns()[column].name.clone()).collect(),
            time_unit,
            applied: 0,
            replay_from: 1,
            first_span: None,
            producers: BTreeMap::new(),
            dictionaries: vec![Vec::new(); symbols],
            flushed: Vec::new(),
            files: Vec::new(),
            next_file: 1,
        }
    }

    /// The columns that it tells.
    pub(crate) fn schema(&self) -> Result<Schema, TableError> {
        let kind = |kind| match kind {
            KindEntry::Time => Kind::Time,
            KindEntry::Symbol => Kind::Symbol,
            KindEntry::Int => Kind::Int,
            KindEntry::Float => Kind::Float,
            KindEntry::Decimal { scale } => Kind::Decimal { scale },
        };
        let column = |entry: &ColumnEntry| Column { name: entry.name.clone(), kind: kind(entry.kind) };
        let partitioning = Partitioning { span: self.span, symbols: self.symbols };
        let schema = Schema::new(self.columns.iter().map(column).collect(), partitioning)?;
        if self.key.is_empty() {
            return Ok(schema);
        }
        schema.with_key(&self.key.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The files of a partition, in the order in which they were written.
    pub(crate) fn files_of(&self, place: Place) -> impl Iterator<Item = &TableFile> {
        self.files.iter().filter(move |file| file.place() == place)
    }

    /// Whether the rows of a partition that a batch brought are to be kept in memory.
    pub(crate) fn is_wanted(&self, (group, span): Place, batch: u64) -> bool {
        let flushed = self.find((group, span)).ok().map(|index| &self.flushed[index]);
        self.first_span.is_none_or(|first| span >= first) && flushed.is_none_or(|it| batch > it.through)
    }

    /// Notes that files hold all rows of a partition up to a batch.
    pub(crate) fn note_flushed(&mut self, (group, span): Place, through: u64) {
        match self.find((group, span)) {
            Ok(index) => self.flushed[index].through = through,
            Err(index) => self.flushed.insert(index, Flushed { group, span, through }),
        }
    }

    /// Where a partition stands among the flushed ones, or would stand.
    fn find(&self, place: Place) -> Result<usize, usize> {
        self.flushed.binary_search_by_key(&place, |it| (it.group, it.span))
    }

    /// Reads it; `None` where there is none.
    pub(crate) fn read(storage: &dyn Storage) -> Result<Option<Self>, TableError> {
        let path = storage.path().join(MANIFEST);
        let bytes = match storage.read(MANIFEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(TableError::Io { action: "read", path, source }),
        };
        let damaged = |offset: usize, reason: &str| TableError::Damaged {
            path: path.clone(),
            offset: offset as u64,
            reason: reason.to_owned(),
        };
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| damaged(0, "no first line"))?;
        let title = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged(0, "not a manifest"))?;
        let words: Vec<&str> = title.split(' ').collect();
        let [TITLE, version, crc] = words[..] else { return Err(damaged(0, "not a manifest")) };
        let version: u32 = version.parse().map_err(|_| damaged(0, "not a manifest"))?;
        let body = &bytes[end + 1..];
        if crc != format!("{:08x}", crc32c::crc32c(body)) {
            return Err(damaged(end + 1, "the checksum is wrong"));
        }
        if version > FORMAT_VERSION {
            return Err(TableError::Newer { path, version, known: FORMAT_VERSION });
        }
        let manifest: Self =
            serde_json::from_slice(body).map_err(|error| damaged(end + 1, &error.to_string()))?;
        manifest.check().map_err(|reason| damaged(end + 1, &reason))?;
        Ok(Some(manifest))
    }

    /// Looks for what no table writes. The checksum tells that the manifest is as somebody wrote it, and not who that
    /// was; what it says is taken on trust from here on: as sizes, and as names of files that are copied and removed.
    fn check(&self) -> Result<(), String> {
        self.schema().map_err(|error| error.to_string())?;
        let symbols = self.columns.iter().filter(|column| column.kind == KindEntry::Symbol).count();
        if self.dictionaries.len() != symbols {
            return Err(format!(
                "{} columns of symbols have {} dictionaries",
                symbols,
                self.dictionaries.len()
            ));
        }
        let is_numbered = self.applied < NUMBER_MAX && self.next_file < NUMBER_MAX && self.replay_from > 0;
        if !is_numbered || self.replay_from > self.applied + 1 {
            return Err("its numbers of batches and files are none that a table comes to".to_owned());
        }
        if self.applied + 1 - self.replay_from > UNFLUSHED_MAX {
            return Err("more batches are in no file than a log can hold".to_owned());
        }
        let places = self.flushed.iter().map(|it| (it.group, it.span));
        let is_known = self.flushed.iter().all(|it| it.through <= self.applied);
        if !places.is_sorted_by(|one, next| one < next) || !is_known {
            return Err("its flushed partitions are not in order".to_owned());
        }
        let mut names = HashSet::new();
        let mut rows = 0_u64;
        for file in &self.files {
            let wrong = |what: &str| Err(format!("of the file {:?} {what}", file.name));
            if !self.is_own(file) || !names.insert(&file.name) {
                return wrong("the name is none that it gives, or is there twice");
            }
            if file.columns.len() != self.columns.len() || !file.gone.is_sound(file.rows) {
                return wrong("columns or rows that are gone are not those of the table");
            }
            let Some(sum) = rows.checked_add(file.rows) else { return wrong("there are too many rows") };
            rows = sum;
        }
        Ok(())
    }

    /// Reads one that has to be there.
    pub(crate) fn read_there(storage: &dyn Storage) -> Result<Self, TableError> {
        Self::read(storage)?.ok_or_else(|| TableError::Io {
            action: "read",
            path: storage.path().join(MANIFEST),
            source: std::io::ErrorKind::NotFound.into(),
        })
    }

    /// The name of a file: its number comes first, so that no two have one name.
    pub(crate) fn file_name(number: u64, (group, span): Place) -> String {
        format!("{number:012}-g{group}-s{span}.parquet")
    }

    /// Whether this table gave a file its name. Any other could lead out of the folder.
    fn is_own(&self, file: &TableFile) -> bool {
        let number = file.name.split('-').next().and_then(|number| number.parse().ok());
        number.is_some_and(|number: u64| {
            number < self.next_file && file.name == Self::file_name(number, file.place())
        })
    }

    /// Puts it in the place of the one before. After an error the old one, or the new one, is there.
    pub(crate) fn write(&self, storage: &dyn Storage) -> Result<(), TableError> {
        let body = serde_json::to_vec(self).expect("plain data without maps of odd keys");
        let mut bytes = format!("{TITLE} {FORMAT_VERSION} {:08x}\n", crc32c::crc32c(&body)).into_bytes();
        bytes.extend_from_slice(&body);
        let written = storage.create(NEXT).and_then(|mut output| {
            output.write_at(0, &bytes)?;
            output.sync()?;
            drop(output);
            storage.rename(NEXT, MANIFEST)?;
            storage.sync_folder()
        });
        let path = storage.path().join(MANIFEST);
        written.map_err(|source| TableError::Io { action: "write", path, source })
    }
}
