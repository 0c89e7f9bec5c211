//! Streams of Arrow: messages out of pieces that end anywhere, and their columns into batches.
//!
//! The reader of arrow-ipc believes lengths, and panics at messages that contradict themselves. So every message is
//! gathered here first, up to a limit, and only read when it is whole; what the reader panics at is a broken input.

mod columns;
mod message;

use arrow_array::RecordBatch;

use crate::Decoder;
use crate::error::{Fault, IngestError, What, shown};
use crate::intake::{Intake, Options, Outcome};
use crate::sink::Sink;
use crate::target::{Fill, Target};

use columns::{Source, accepts, append};
use message::{Messages, Read};

/// Decodes an IPC stream of Arrow, without compression: columns by their names, a dictionary's texts once.
#[derive(Debug)]
pub struct ArrowDecoder {
    intake: Intake,
    messages: Messages,
    /// For each column of the table which one of the stream; none where there is none.
    sources: Option<Vec<Option<Source>>>,
    /// Rows before the next one.
    rows: u64,
}

impl ArrowDecoder {
    /// For a table.
    #[must_use]
    pub fn new(target: Target, options: Options) -> Self {
        let messages = Messages::new(options.message_bytes_max);
        Self { intake: Intake::new(vec![target], options), messages, sources: None, rows: 0 }
    }

    fn take(&mut self, read: Read, sink: &mut dyn Sink) -> Result<(), IngestError> {
        match read {
            Read::Schema(schema) => match self.sources(&schema) {
                Ok(sources) => {
                    self.sources = Some(sources);
                    Ok(())
                }
                Err((column, what)) => {
                    let fault = Fault { line: 1, column: column as u64 + 1, what };
                    self.intake.end(IngestError::Columns(fault))
                }
            },
            Read::Rows(batch) => self.batch(&batch, sink),
            Read::Broken(reason) => {
                let what = What::Parser { reason: reason.into() };
                let fault = Fault { line: self.rows + 1, column: 1, what };
                self.intake.end(IngestError::Broken(fault))
            }
        }
    }

    /// Where the columns of the table come from; else what does not fit, and in which column of the stream.
    fn sources(&self, schema: &arrow_schema::Schema) -> Result<Vec<Option<Source>>, (usize, What)> {
        let target = self.intake.target();
        let mut sources = vec![None; target.fields.len()];
        for (index, theirs) in schema.fields().iter().enumerate() {
            let (name, kind) = (theirs.name(), theirs.data_type());
            if kind.is_nested() {
                let reason = format!("column {name} is of {kind}, which no table has").into();
                return Err((index, What::Parser { reason }));
            }
            let Some(column) = self.intake.column(name.as_bytes()).map_err(|what| (index, what))? else {
                continue;
            };
            let field = &target.fields[column];
            if sources[column].is_some() {
                return Err((index, What::Twice { name: field.name.as_str().into() }));
            }
            if !accepts(field.kind, kind) {
                let text = shown(kind.to_string().as_bytes());
                let cure = "cast the column before it is sent";
                let name = field.name.as_str().into();
                return Err((index, What::Value { name, kind: field.kind.name(), text, cure }));
            }
            sources[column] = Some(Source { column: index });
        }
        for (column, field) in target.fields.iter().enumerate() {
            let has_time = column == target.time && self.intake.arrived.is_some();
            if sources[column].is_none() && field.fill == Fill::Refuse && !has_time {
                return Err((schema.fields().len(), What::Missing { name: field.name.as_str().into() }));
            }
        }
        Ok(sources)
    }

    fn batch(&mut self, batch: &RecordBatch, sink: &mut dyn Sink) -> Result<(), IngestError> {
        let Some(sources) = self.sources.take() else { return Ok(()) };
        let mut offset = 0;
        while offset < batch.num_rows() {
            let rows = self.intake.room().min(batch.num_rows() - offset);
            let (first, arrived) = (self.rows + 1, self.intake.arrived);
            let faults = append(&batch.slice(offset, rows), &sources, first, arrived, &mut self.intake);
            self.rows += rows as u64;
            offset += rows;
            for fault in faults {
                self.intake.fault(fault)?;
            }
            self.intake.cut(sink)?;
        }
        self.sources = Some(sources);
        Ok(())
    }
}

impl Decoder for ArrowDecoder {
    fn arrived(&mut self, ns: Option<i64>) {
        self.intake.arrived = ns;
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.is_open()?;
        let mut rest = bytes;
        while let Some(read) = self.messages.read(&mut rest) {
            self.take(read, sink)?;
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.flush(sink)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Outcome, IngestError> {
        self.intake.is_open()?;
        if !self.messages.is_between() {
            let fault = Fault { line: self.rows + 1, column: 1, what: What::Ended };
            return self.intake.end(IngestError::Broken(fault));
        }
        self.messages = Messages::new(self.intake.options.message_bytes_max);
        (self.sources, self.rows) = (None, 0);
        self.intake.finish(sink)
    }
}
