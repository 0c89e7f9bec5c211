//! Line protocol: lines out of pieces that end anywhere.

mod end;
mod parse;

use crate::Decoder;
use crate::error::{Fault, IngestError, What};
use crate::intake::{Faults, Intake, Options, Outcome};
use crate::place::Place;
use crate::sink::Sink;
use crate::target::Target;

use end::LineEnd;
use parse::{Guess, Line, Stop, parse};

/// Decodes line protocol, as InfluxDB and QuestDB take it: the measurement names the table.
///
/// Lines are read where they lie in a piece; only one that a piece ends in the middle of is copied.
#[derive(Debug)]
pub struct LineDecoder {
    intake: Intake,
    guess: Guess,
    place: Place,
    /// The beginning of a line whose end did not come yet, and what was seen of it.
    begun: Vec<u8>,
    end: LineEnd,
    /// The line was too long; what comes is left out up to a line feed.
    is_dropping: bool,
    /// The first fault ends the input.
    is_strict: bool,
    /// It did.
    is_stopped: bool,
}

impl LineDecoder {
    /// For tables with different names.
    #[must_use]
    pub fn new(targets: Vec<Target>, options: Options) -> Self {
        Self {
            intake: Intake::new(targets, options),
            guess: Guess::default(),
            place: Place::default(),
            begun: Vec::new(),
            end: LineEnd::default(),
            is_dropping: false,
            is_strict: false,
            is_stopped: false,
        }
    }

    /// Ends the input at the first line with a fault, by [`IngestError::Stopped`], whatever the options say of faults:
    /// the lines before it are taken in, and nothing behind it is. It is for a stream without an end, of which nothing
    /// can be refused as a whole, and whose sender is told of a fault by its end. [`flush`](Decoder::flush) hands on
    /// what came before the fault.
    #[must_use]
    pub fn until_a_fault(mut self) -> Self {
        self.is_strict = true;
        self.intake.options.faults = Faults::LeaveOut;
        self
    }

    /// Lines may be of this table too, from here on; its batches have the next number ([`Batch::table`]).
    ///
    /// [`Batch::table`]: crate::Batch::table
    pub fn add(&mut self, target: Target) {
        self.intake.add(target);
    }

    /// Bytes of the line that did not come to its end yet.
    #[must_use]
    pub fn begun_bytes(&self) -> usize {
        self.begun.len()
    }

    fn is_open(&self) -> Result<(), IngestError> {
        if self.is_stopped { Err(IngestError::Ended) } else { self.intake.is_open() }
    }

    fn fault(&mut self, fault: Fault) -> Result<(), IngestError> {
        if !self.is_strict {
            return self.intake.fault(fault);
        }
        self.is_stopped = true;
        Err(IngestError::Stopped(fault))
    }

    /// Takes in the line at the beginning of some bytes; says how many bytes it had, or nothing when it does not end
    /// there.
    fn line(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<Option<usize>, IngestError> {
        let limit = self.intake.options.line_bytes_max;
        let window = &bytes[..bytes.len().min(limit.saturating_add(1))];
        let line = self.place.line;
        match parse(window, &mut self.guess, &mut self.intake) {
            Ok(Line { bytes, feeds, is_row }) => {
                self.place.line += feeds;
                if is_row {
                    match self.intake.commit(line) {
                        Ok(()) => self.intake.cut(sink)?,
                        Err(what) => self.fault(Fault { line, column: 1, what })?,
                    }
                }
                return Ok(Some(bytes));
            }
            Err(Stop::Incomplete) => self.intake.cancel(),
            Err(Stop::Fault(at, what)) => {
                self.intake.cancel();
                if let Some(end) = LineEnd::default().find(window) {
                    let fault = self.place.fault(window, at, what);
                    self.place.pass(&window[..=end]);
                    self.fault(fault)?;
                    return Ok(Some(end + 1));
                }
            }
        }
        if window.len() <= limit {
            return Ok(None);
        }
        self.too_long(window)?;
        Ok(Some(window.len()))
    }

    /// A line that is too long begins so.
    fn too_long(&mut self, beginning: &[u8]) -> Result<(), IngestError> {
        let what = What::TooLong { limit: self.intake.options.line_bytes_max };
        let fault = self.place.fault(beginning, 0, what);
        self.place.pass(beginning);
        self.is_dropping = true;
        self.fault(fault)
    }

    /// Goes on with a line that was begun; the bytes behind its end.
    fn go_on<'b>(&mut self, bytes: &'b [u8], sink: &mut dyn Sink) -> Result<&'b [u8], IngestError> {
        if self.is_dropping {
            return Ok(self.drop_line(bytes));
        }
        let limit = self.intake.options.line_bytes_max;
        let room = limit.saturating_add(1).saturating_sub(self.begun.len());
        let window = &bytes[..bytes.len().min(room)];
        let end = self.end.find(window);
        let taken = end.map_or(window.len(), |end| end + 1);
        self.begun.extend_from_slice(&window[..taken]);
        if end.is_none() && self.begun.len() <= limit {
            return Ok(&bytes[taken..]);
        }
        let begun = std::mem::take(&mut self.begun);
        self.end = LineEnd::default();
        if end.is_some() {
            let used = self.line(&begun, sink)?;
            debug_assert_eq!(used, Some(begun.len()), "parser and scanner agree on the end of a line");
        } else {
            self.too_long(&begun)?;
        }
        self.begun = begun;
        self.begun.clear();
        let rest = &bytes[taken..];
        Ok(if self.is_dropping { self.drop_line(rest) } else { rest })
    }

    /// What is behind the next line feed.
    fn drop_line<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = memchr::memchr(b'\n', bytes);
        self.is_dropping = end.is_none();
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        self.place.pass(line);
        rest
    }
}

impl Decoder for LineDecoder {
    fn arrived(&mut self, ns: Option<i64>) {
        self.intake.arrived = ns;
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.is_open()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.is_dropping || !self.begun.is_empty() {
                rest = self.go_on(rest, sink)?;
                continue;
            }
            match self.line(rest, sink)? {
                Some(used) => rest = &rest[used..],
                None => {
                    let end = self.end.find(rest);
                    debug_assert_eq!(end, None, "parser and scanner agree on the end of a line");
                    self.begun.extend_from_slice(rest);
                    rest = &[];
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.flush(sink)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Outcome, IngestError> {
        self.is_open()?;
        if !self.begun.is_empty() {
            // The last line may do without its line feed.
            self.feed(b"\n", sink)?;
        }
        if !self.begun.is_empty() {
            let fault = self.place.fault(&self.begun, 0, What::Ended);
            self.begun.clear();
            self.fault(fault)?;
        }
        (self.end, self.is_dropping, self.place) = (LineEnd::default(), false, Place::default());
        self.intake.finish(sink)
    }
}
