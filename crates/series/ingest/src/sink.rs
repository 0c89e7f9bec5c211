//! Where batches go: into a durable table, a few of them at a time on their way to the disk.

use std::collections::VecDeque;

use planish_table::{Ack, Durable, Origin, TableError, Ticket};

use crate::error::IngestError;
use crate::rows::Batch;

/// What takes batches.
pub trait Sink {
    /// Takes a batch, or waits until it can.
    ///
    /// # Errors
    /// What keeps it from taking this batch, or one before it. The input ends there.
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError>;
}

/// What became of the batches of a [`Commit`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Rows that are in the log, as the policy of the table says.
    pub rows: u64,
    /// Rows of batches that were known by their numbers: nothing was added.
    pub known: u64,
}

/// Hands batches of one table to its committer.
///
/// At most so many are in flight: handed in and not acknowledged. Who sends faster waits for the oldest of them, and
/// so does whoever reads the socket, which is what back-pressure is. With a group commit of 10 ms some tens of
/// batches fill the gap between two syncs.
#[derive(Debug)]
pub struct Commit<'d, 'a> {
    durable: &'d Durable<'a>,
    in_flight_max: usize,
    in_flight: VecDeque<InFlight<'d, 'a>>,
    /// Name and next number.
    producer: Option<(String, u64)>,
    taken: Taken,
}

/// A batch that was handed in.
#[derive(Debug)]
struct InFlight<'d, 'a> {
    ticket: Ticket<'d, 'a>,
    rows: u64,
    first_line: u64,
    last_line: u64,
}

impl<'d, 'a> Commit<'d, 'a> {
    /// For a table, with at most so many batches in flight; one at least.
    #[must_use]
    pub fn new(durable: &'d Durable<'a>, in_flight_max: usize) -> Self {
        let in_flight_max = in_flight_max.max(1);
        let in_flight = VecDeque::with_capacity(in_flight_max.min(1024));
        Self { durable, in_flight_max, in_flight, producer: None, taken: Taken::default() }
    }

    /// Numbers the batches from `first` on, as those of a producer, so that the same input may be sent again and is
    /// taken in once. Where batches are cut depends on the input and its options alone, unless they are flushed in
    /// between.
    #[must_use]
    pub fn of_producer(mut self, name: &str, first: u64) -> Self {
        self.producer = Some((name.to_owned(), first));
        self
    }

    /// Waits until every batch is acknowledged, and says how many rows were.
    ///
    /// # Errors
    /// [`IngestError::Table`] with the lines of the first batch that was refused. Others may be in the table: what
    /// [`taken`](Self::taken) says.
    pub fn finish(&mut self) -> Result<Taken, IngestError> {
        let mut first_error = None;
        while let Some(oldest) = self.in_flight.pop_front() {
            if let Err(error) = self.settle(oldest) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(self.taken), Err)
    }

    /// What was acknowledged so far.
    #[must_use]
    pub fn taken(&self) -> Taken {
        self.taken
    }

    /// The number of the next batch, where they are numbered.
    #[must_use]
    pub fn next_number(&self) -> Option<u64> {
        self.producer.as_ref().map(|(_, next)| *next)
    }

    fn settle(&mut self, batch: InFlight<'d, 'a>) -> Result<(), IngestError> {
        let InFlight { ticket, rows, first_line, last_line } = batch;
        match ticket.wait().map_err(|source| refused(first_line, last_line, source))? {
            Ack::New => self.taken.rows += rows,
            Ack::Known => self.taken.known += rows,
        }
        Ok(())
    }
}

impl Sink for Commit<'_, '_> {
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError> {
        if self.in_flight.len() >= self.in_flight_max
            && let Some(oldest) = self.in_flight.pop_front()
        {
            self.settle(oldest)?;
        }
        let (first_line, last_line) = (batch.first_line(), batch.last_line());
        let origin = self.producer.as_ref();
        let origin = origin.map(|(producer, sequence)| Origin { producer, sequence: *sequence });
        let durable = self.durable;
        let ticket = batch.with_cells(|cells| durable.submit(origin, cells));
        let ticket = ticket.map_err(|source| refused(first_line, last_line, source))?;
        if let Some((_, next)) = &mut self.producer {
            *next += 1;
        }
        self.in_flight.push_back(InFlight { ticket, rows: batch.rows() as u64, first_line, last_line });
        Ok(())
    }
}

fn refused(first: u64, last: u64, source: TableError) -> IngestError {
    IngestError::Table { first, last, source }
}
