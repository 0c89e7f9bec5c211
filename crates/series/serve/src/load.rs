//! `planish-series load`: files into a table.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use planish_ingest::{Faults, Header, Options, Unit};

use crate::database::{Database, OpenError};
use crate::ddl::table_of;
use crate::failure::{Failure, Kind, chain};
use crate::intake::{Done, Input, Intake};
use crate::progress::Progress;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;
/// Memory of rows after which they go to files.
const MEMORY_BYTES: usize = 512 << 20;
/// Faults of a file that are told.
const FAULTS_TOLD: usize = 10;
/// What a file of Arrow begins with; a stream does not.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FileFormat {
    /// Comma-separated, with names in the first line
    Csv,
    /// Tab-separated, with names in the first line
    Tsv,
    /// An object of JSON a line
    Jsonl,
    /// Line protocol; the measurement is the table
    Line,
    /// A stream of Arrow (IPC)
    Arrow,
}

impl FileFormat {
    /// That of a name, `.gz` aside.
    fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        Some(match name.rsplit_once('.')?.1 {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "json" | "jsonl" | "ndjson" => Self::Jsonl,
            "line" | "lp" | "influx" => Self::Line,
            "arrow" | "arrows" => Self::Arrow,
            _ => return None,
        })
    }

    fn input(self) -> Input {
        match self {
            Self::Csv => Input::Csv { header: Header::First, delimiter: b',' },
            Self::Tsv => Input::Csv { header: Header::First, delimiter: b'\t' },
            Self::Jsonl => Input::Json,
            Self::Line => Input::Line,
            Self::Arrow => Input::Arrow,
        }
    }
}

/// What is to be loaded.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) table: Option<&'a str>,
    /// Of a table that is to be made if it is not there.
    pub(crate) columns: Option<&'a str>,
    pub(crate) format: Option<FileFormat>,
    pub(crate) unit: Unit,
    pub(crate) faults: Faults,
}

/// Why not all was loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0}")]
    Usage(String),
    #[error("cannot read {path}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {failure}", path = .path.display())]
    Rows { path: PathBuf, failure: Failure },
}

/// What was loaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) rows: u64,
    /// Rows that had a fault and were left out.
    pub(crate) left_out: u64,
}

impl Load<'_> {
    /// Loads file by file; `tell` hears of each, and of faults.
    pub(crate) fn run(&self, database: &Database, mut tell: impl FnMut(&str)) -> Result<Loaded, LoadError> {
        let formats = self.files.iter().map(|path| self.format_of(path)).collect::<Result<Vec<_>, _>>()?;
        self.make_table(database)?;
        let mut loaded = Loaded::default();
        for (path, format) in self.files.iter().zip(formats) {
            let done = self.file(database, path, format)?;
            let (rows, faulty) = (done.taken.rows, done.outcome.faulty);
            tell(&format!("{}: {rows} rows, {faulty} left out", path.display()));
            for fault in done.outcome.faults.iter().take(FAULTS_TOLD) {
                tell(&format!("{}: {fault}", path.display()));
            }
            loaded.rows += rows;
            loaded.left_out += faulty;
        }
        Ok(loaded)
    }

    fn format_of(&self, path: &Path) -> Result<FileFormat, LoadError> {
        let format = self.format.or_else(|| FileFormat::of_name(path)).ok_or_else(|| {
            LoadError::Usage(format!("{}: no format by this name; say --format", path.display()))
        })?;
        match (format, self.table) {
            (FileFormat::Line, _) | (_, Some(_)) => Ok(format),
            (_, None) => Err(LoadError::Usage(format!("{}: into which --table?", path.display()))),
        }
    }

    fn make_table(&self, database: &Database) -> Result<(), LoadError> {
        let Some(name) = self.table else { return Ok(()) };
        match (database.table(name), self.columns) {
            (Ok(_), _) => Ok(()),
            (Err(_), Some(columns)) => {
                let table = table_of(name, columns).map_err(LoadError::Usage)?;
                database.create(table).map_err(|failure| LoadError::Usage(failure.text))?;
                Ok(())
            }
            (Err(failure), None) => Err(LoadError::Usage(format!(
                "{failure}; to make it say --columns, as 'ts TIMESTAMP, sym SYMBOL, price DOUBLE, size BIGINT'"
            ))),
        }
    }

    fn file(&self, database: &Database, path: &Path, format: FileFormat) -> Result<Done, LoadError> {
        let failed = |failure| LoadError::Rows { path: path.to_owned(), failure };
        let read_failed = |source| LoadError::File { path: path.to_owned(), source };
        let tables = match self.table {
            Some(name) => vec![database.table(name).map_err(failed)?],
            None => database.tables(),
        };
        let mut file = File::open(path).map_err(read_failed)?;
        let is_packed = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz"));
        let options = match self.faults {
            Faults::Refuse => crate::http::options(Faults::Refuse, self.unit),
            Faults::LeaveOut => Options { unit: self.unit, ..Options::default() },
        };
        let mut intake = Intake::new(&tables, &format.input(), options, is_packed);
        let mut piece = vec![0; PIECE_BYTES];
        let mut is_first = true;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let mut progress = Progress::on_terminal(&path.display().to_string(), length);
        let mut bytes = 0;
        loop {
            let count = file.read(&mut piece).map_err(read_failed)?;
            if count == 0 {
                break;
            }
            if std::mem::take(&mut is_first)
                && format == FileFormat::Arrow
                && piece[..count].starts_with(FILE_MAGIC)
            {
                let text = "a file of Arrow, not a stream of it; write it by RecordBatchStreamWriter";
                return Err(failed(Failure::new(Kind::IncorrectData, text)));
            }
            intake.feed(&piece[..count]).map_err(failed)?;
            bytes += count as u64;
            progress.show(bytes, intake.taken().rows);
            flush_if_full(database).map_err(failed)?;
        }
        intake.finish().map_err(failed)
    }
}

/// Writes rows to files where they take more memory than a load may have.
pub(crate) fn flush_if_full(database: &Database) -> Result<(), Failure> {
    if database.used_bytes() <= MEMORY_BYTES {
        return Ok(());
    }
    match database.flush().into_iter().next() {
        Some(text) => Err(Failure::new(Kind::Internal, text)),
        None => Ok(()),
    }
}

impl LoadError {
    /// With its causes.
    pub(crate) fn text(&self) -> String {
        chain(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_names() {
        for (name, format) in [
            ("a.csv", Some(FileFormat::Csv)),
            ("b/a.TSV.gz", Some(FileFormat::Tsv)),
            ("a.ndjson", Some(FileFormat::Jsonl)),
            ("a.lp", Some(FileFormat::Line)),
            ("a.arrows", Some(FileFormat::Arrow)),
            ("a.parquet", None),
            ("csv", None),
            ("a.gz", None),
        ] {
            assert_eq!(FileFormat::of_name(Path::new(name)), format, "{name}");
        }
    }
}
