//! Rows on their way from bytes into tables: a decoder of their format, and a committer of each table.

use std::io::Write;
use std::sync::Arc;

use flate2::write::MultiGzDecoder;
use planish_ingest::{
    ArrowDecoder, Batch, Commit, CsvDecoder, Decoder, Header, IngestError, JsonDecoder, LineDecoder, Options,
    Outcome, Sink, Taken, Target, Unit,
};

use crate::database::Open;
use crate::failure::{Failure, Kind};

/// Batches of one table that are handed in and not yet acknowledged.
const IN_FLIGHT: usize = 32;
/// Packed bytes that are unpacked at once: a thousand times as many at most.
const PACKED_BYTES: usize = 4 << 10;

/// A format that rows come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Of any table: each line names it.
    Line,
    Csv {
        header: Header,
        delimiter: u8,
    },
    Json,
    Arrow,
}

impl Input {
    /// By the name that ClickHouse has for it; `columns` are those that come, in their order.
    ///
    /// # Errors
    /// [`Kind::UnknownFormat`].
    pub(crate) fn named(name: &str, columns: Vec<String>) -> Result<Self, Failure> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "csv" => Self::Csv { header: Header::Named(columns), delimiter: b',' },
            "csvwithnames" => Self::Csv { header: Header::First, delimiter: b',' },
            "jsoneachrow" | "jsonlines" | "ndjson" => Self::Json,
            "arrowstream" => Self::Arrow,
            _ => {
                let text = format!(
                    "no format {name} to insert by; there are CSV, CSVWithNames, JSONEachRow, ArrowStream"
                );
                return Err(Failure::new(Kind::UnknownFormat, text));
            }
        })
    }

    fn decoder(&self, mut targets: Vec<Target>, options: Options) -> Box<dyn Decoder> {
        if *self == Self::Line {
            return Box::new(LineDecoder::new(targets, options));
        }
        let target = targets.swap_remove(0);
        match self {
            Self::Csv { header, delimiter } => {
                Box::new(CsvDecoder::new(target, header.clone(), *delimiter, options))
            }
            Self::Arrow => Box::new(ArrowDecoder::new(target, options)),
            Self::Json | Self::Line => Box::new(JsonDecoder::new(target, options)),
        }
    }
}

/// What the rows of an input became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) taken: Taken,
    pub(crate) outcome: Outcome,
}

/// An input that is being taken in.
pub(crate) struct Intake<'t> {
    decoder: Box<dyn Decoder>,
    commits: Commits<'t>,
    unpack: Option<MultiGzDecoder<Vec<u8>>>,
}

/// A committer for each table, in the order of the decoder's targets.
pub(crate) struct Commits<'t>(Vec<Commit<'t, 'static>>);

impl<'t> Commits<'t> {
    pub(crate) fn of(tables: &'t [Arc<Open>]) -> Self {
        Self(tables.iter().map(|table| Commit::new(&table.durable, IN_FLIGHT)).collect())
    }

    /// Waits until all batches are in the logs.
    ///
    /// # Errors
    /// The first one that was refused; those of other tables may be there.
    pub(crate) fn settle(&mut self) -> Result<(), IngestError> {
        let mut failed = None;
        for commit in &mut self.0 {
            if let Err(error) = commit.finish() {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What was acknowledged so far.
    pub(crate) fn taken(&self) -> Taken {
        let add = |all: Taken, one: Taken| Taken { rows: all.rows + one.rows, known: all.known + one.known };
        self.0.iter().map(Commit::taken).fold(Taken::default(), add)
    }
}

/// A table as decoders see it.
pub(crate) fn target(table: &Open) -> Target {
    let unit = table.unit.map_or(Unit::Nanoseconds, Unit::from);
    let durable = &table.durable;
    Target::new(&table.name, durable.schema(), unit).kept_from(durable.kept_from())
}

impl Sink for Commits<'_> {
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError> {
        self.0[batch.table()].take(batch)
    }
}

impl<'t> Intake<'t> {
    /// For some tables: one, but for lines, which may be of any.
    pub(crate) fn new(tables: &'t [Arc<Open>], input: &Input, options: Options, is_packed: bool) -> Self {
        let decoder = input.decoder(tables.iter().map(|table| target(table)).collect(), options);
        let unpack = is_packed.then(|| MultiGzDecoder::new(Vec::new()));
        Self { decoder, commits: Commits::of(tables), unpack }
    }

    /// Says when rows come that have no time.
    pub(crate) fn arrived(&mut self, ns: i64) {
        self.decoder.arrived(Some(ns));
    }

    /// Takes in the next bytes.
    ///
    /// # Errors
    /// What is wrong with them, or with the tables.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(unpack) = &mut self.unpack else {
            return Ok(self.decoder.feed(bytes, &mut self.commits)?);
        };
        for piece in bytes.chunks(PACKED_BYTES) {
            unpack.write_all(piece).map_err(broken)?;
            self.decoder.feed(unpack.get_ref(), &mut self.commits)?;
            unpack.get_mut().clear();
        }
        Ok(())
    }

    /// What is in the logs so far.
    pub(crate) fn taken(&self) -> Taken {
        self.commits.taken()
    }

    /// Ends the input and waits until its rows are in the logs.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub(crate) fn finish(mut self) -> Result<Done, Failure> {
        if let Some(unpack) = &mut self.unpack {
            unpack.try_finish().map_err(broken)?;
            self.decoder.feed(unpack.get_ref(), &mut self.commits)?;
        }
        let outcome = self.decoder.finish(&mut self.commits)?;
        let settled = self.commits.settle();
        let taken = self.commits.taken();
        match settled {
            Ok(()) => Ok(Done { taken, outcome }),
            Err(error) if taken.rows == 0 => Err(error.into()),
            Err(error) => {
                let Failure { kind, text } = error.into();
                Err(Failure { kind, text: format!("{text}; {} rows before them were taken in", taken.rows) })
            }
        }
    }
}

fn broken(error: std::io::Error) -> Failure {
    Failure::new(Kind::IncorrectData, format!("the input is no gzip: {error}"))
}
