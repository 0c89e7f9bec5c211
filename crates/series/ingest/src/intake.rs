//! What every decoder does with its rows: cells into batches, batches into the sink, faults into the outcome.

use crate::cell::{Cell, Form, cell, refused};
use crate::error::{Fault, IngestError, What, shown};
use crate::moment::{Clock, Unit};
use crate::rows::{Batch, Rows};
use crate::sink::Sink;
use crate::target::Target;
use planish_table::Kind;

/// What becomes of an input in which a row has a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// The row is left out and told; all others are taken in.
    LeaveOut,
    /// Nothing of the input is taken in. It has to fit into one batch of a table then, for a batch is what a table
    /// takes in as a whole or not at all.
    Refuse,
}

/// What becomes of values for columns that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// The row has a fault.
    Refuse,
    /// They are left out, unread.
    LeaveOut,
}

/// How an input is decoded, and what it may take of memory.
#[derive(Debug, Clone)]
pub struct Options {
    /// What becomes of an input in which a row has a fault.
    pub faults: Faults,
    /// What becomes of columns that the table does not have.
    pub unknown: Unknown,
    /// What times of the input count that are numbers and do not say it themselves.
    pub unit: Unit,
    /// Rows of a batch at most.
    pub rows_max: usize,
    /// Bytes of the cells and texts of a batch, after which it goes.
    pub batch_bytes_max: usize,
    /// Bytes of a line, of an object of JSON, or of a record of CSV, at most.
    pub line_bytes_max: usize,
    /// Bytes of a message of Arrow at most, and of its columns.
    pub message_bytes_max: usize,
    /// Faults that are told one by one; further ones are counted.
    pub told_max: usize,
}

impl Default for Options {
    /// Faults and unknown columns refuse the row and not the input; times are nanoseconds; 65,536 rows or 32 MiB a
    /// batch; lines of 1 MiB, messages of 256 MiB; 100 faults.
    fn default() -> Self {
        Self {
            faults: Faults::LeaveOut,
            unknown: Unknown::Refuse,
            unit: Unit::Nanoseconds,
            rows_max: 1 << 16,
            batch_bytes_max: 32 << 20,
            line_bytes_max: 1 << 20,
            message_bytes_max: 256 << 20,
            told_max: 100,
        }
    }
}

/// What became of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows that went to the sink.
    pub rows: u64,
    /// Rows that had a fault and were left out.
    pub faulty: u64,
    /// The first of their faults.
    pub faults: Vec<Fault>,
}

/// The rows of an input, by table.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) targets: Vec<Target>,
    pub(crate) options: Options,
    rows: Vec<Rows>,
    clocks: Vec<Clock>,
    /// The table of the row that is being put together.
    table: usize,
    /// The time of rows that come without one, in nanoseconds since 1970.
    pub(crate) arrived: Option<i64>,
    outcome: Outcome,
    is_ended: bool,
}

impl Intake {
    pub(crate) fn new(targets: Vec<Target>, options: Options) -> Self {
        let rows = targets.iter().map(Rows::of).collect();
        let clocks = targets.iter().map(|target| Clock::new(options.unit, target.unit)).collect();
        let options = Options { rows_max: options.rows_max.max(1), ..options };
        Self {
            targets,
            options,
            rows,
            clocks,
            table: 0,
            arrived: None,
            outcome: Outcome::default(),
            is_ended: false,
        }
    }

    /// One more table that rows may be of.
    pub(crate) fn add(&mut self, target: Target) {
        self.rows.push(Rows::of(&target));
        self.clocks.push(Clock::new(self.options.unit, target.unit));
        self.targets.push(target);
    }

    /// Whether bytes may come.
    pub(crate) fn is_open(&self) -> Result<(), IngestError> {
        if self.is_ended { Err(IngestError::Ended) } else { Ok(()) }
    }

    /// Hands an error on, behind which nothing is taken in.
    pub(crate) fn end<T>(&mut self, error: IngestError) -> Result<T, IngestError> {
        self.is_ended = true;
        self.rows.iter_mut().for_each(Rows::clear);
        Err(error)
    }

    /// Begins a row of a table.
    pub(crate) fn begin(&mut self, table: usize) {
        self.table = table;
        self.rows[table].begin();
    }

    /// The table of the row.
    pub(crate) fn target(&self) -> &Target {
        &self.targets[self.table]
    }

    /// The column of a name; none, where it is to be left out.
    pub(crate) fn column(&self, name: &[u8]) -> Result<Option<usize>, What> {
        match (self.target().column(name), self.options.unknown) {
            (Some(column), _) => Ok(Some(column)),
            (None, Unknown::LeaveOut) => Ok(None),
            (None, Unknown::Refuse) => Err(What::NoColumn { name: shown(name) }),
        }
    }

    /// Puts a value into the row.
    pub(crate) fn put(&mut self, column: usize, form: Form, text: &[u8]) -> Result<(), What> {
        let (target, rows) = (&self.targets[self.table], &mut self.rows[self.table]);
        let field = &target.fields[column];
        if rows.has(column) {
            return Err(What::Twice { name: field.name.as_str().into() });
        }
        if field.kind == Kind::Symbol {
            let is_text = matches!(form, Form::Tag | Form::Quoted | Form::Field);
            if !is_text || !rows.set_text(column, text) {
                return Err(refused(field, form, text));
            }
        } else {
            rows.set(column, cell(field, self.clocks[self.table], form, text)?);
        }
        Ok(())
    }

    /// Ends the row: what is missing is filled in, or is a fault; the row is then forgotten.
    pub(crate) fn commit(&mut self, line: u64) -> Result<(), What> {
        let done = self.complete();
        let rows = &mut self.rows[self.table];
        match done {
            Ok(()) => rows.commit(line),
            Err(_) => rows.cancel(),
        }
        done
    }

    fn complete(&mut self) -> Result<(), What> {
        let (target, rows) = (&self.targets[self.table], &mut self.rows[self.table]);
        if !rows.has(target.time)
            && let Some(ns) = self.arrived
        {
            let clock = self.clocks[self.table];
            let time = clock.of_ns(ns.into());
            let time = time.ok_or_else(|| What::Time { text: ns.to_string().into() })?;
            rows.set(target.time, Cell::Whole(time));
        }
        if let Some(column) = rows.complete(&target.fields) {
            return Err(What::Missing { name: target.fields[column].name.as_str().into() });
        }
        match rows.time(target.time) {
            Some(time) if time < target.kept_from => Err(What::TooOld { time, kept_from: target.kept_from }),
            _ => Ok(()),
        }
    }

    /// Forgets the row that is being put together.
    pub(crate) fn cancel(&mut self) {
        self.rows[self.table].cancel();
    }

    /// Notes the fault of a row, or ends the input by it.
    pub(crate) fn fault(&mut self, fault: Fault) -> Result<(), IngestError> {
        if self.options.faults == Faults::Refuse {
            return self.end(IngestError::Refused(fault));
        }
        self.outcome.faulty += 1;
        if self.outcome.faults.len() < self.options.told_max {
            self.outcome.faults.push(fault);
        }
        Ok(())
    }

    /// Hands on the rows of the table that the last row was of, if they are as many as a batch may be.
    pub(crate) fn cut(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        let Options { rows_max, batch_bytes_max, faults, .. } = self.options;
        let rows = &self.rows[self.table];
        if faults == Faults::Refuse {
            if rows.count <= rows_max && rows.bytes <= batch_bytes_max {
                return Ok(());
            }
            let (line, rows, limit_bytes) = (rows.last_line, rows_max, batch_bytes_max);
            return self.end(IngestError::TooMuch { line, rows, limit_bytes });
        }
        if rows.count < rows_max && rows.bytes < batch_bytes_max {
            return Ok(());
        }
        if rows.count == 0 {
            // All of it is texts of rows that were left out, and a batch has a row.
            self.rows[self.table].clear();
            return Ok(());
        }
        self.give(self.table, sink)
    }

    /// Rows that there is room for before a batch is full, one at least.
    pub(crate) fn room(&self) -> usize {
        self.options.rows_max.saturating_sub(self.rows[self.table].count).max(1)
    }

    /// What a decoder of columns fills by itself: the table, how its times are read, and its rows.
    pub(crate) fn parts(&mut self) -> (&Target, Clock, &mut Rows) {
        let table = self.table;
        (&self.targets[table], self.clocks[table], &mut self.rows[table])
    }

    /// Hands on what there is of all tables. In an input that is refused as a whole nothing goes before its end.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.is_open()?;
        if self.options.faults == Faults::Refuse {
            return Ok(());
        }
        self.hand_on_all(sink)
    }

    /// Hands on the rest, and says what became of the input. The next one may begin.
    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) -> Result<Outcome, IngestError> {
        self.is_open()?;
        self.hand_on_all(sink)?;
        Ok(std::mem::take(&mut self.outcome))
    }

    fn hand_on_all(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        for table in 0..self.rows.len() {
            if self.rows[table].count > 0 {
                self.give(table, sink)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, table: usize, sink: &mut dyn Sink) -> Result<(), IngestError> {
        let rows = &mut self.rows[table];
        let batch = Batch::of(table, &self.targets[table], rows);
        let (count, given) = (batch.rows() as u64, sink.take(&batch));
        rows.clear();
        match given {
            Ok(()) => {
                self.outcome.rows += count;
                Ok(())
            }
            Err(error) => self.end(error),
        }
    }
}
