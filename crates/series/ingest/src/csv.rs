//! CSV: records out of pieces that end anywhere.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::Decoder;
use crate::cell::Form;
use crate::error::{Fault, IngestError, What};
use crate::intake::{Intake, Options, Outcome};
use crate::place::Place;
use crate::sink::Sink;
use crate::target::Target;

/// Where the names of columns come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// The first record of the input.
    First,
    /// Given here, in the order of the fields; the first record is a row.
    Named(Vec<String>),
}

/// What an input begins with that was saved by some programs: a mark of UTF-8, which is no part of its first name.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Decodes CSV as of RFC 4180: fields by the names of their columns, an empty field is none.
#[derive(Debug)]
pub struct CsvDecoder {
    intake: Intake,
    delimiter: u8,
    header: Header,
    reader: Reader,
    place: Place,
    /// The column of each field, once it is known; none where it is left out.
    columns: Option<Vec<Option<usize>>>,
    /// How much of the mark was seen, while nothing else was.
    marked: Option<usize>,
    record: Record,
}

/// The record that is being read.
#[derive(Debug, Default)]
struct Record {
    /// Where it begins.
    begin: Option<Place>,
    text: Vec<u8>,
    text_bytes: usize,
    ends: Vec<usize>,
    fields: usize,
    is_too_long: bool,
}

impl Record {
    fn clear(&mut self) {
        (self.begin, self.text_bytes, self.fields, self.is_too_long) = (None, 0, 0, false);
    }

    fn field(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

impl CsvDecoder {
    /// For a table, with the byte between fields: a comma, a tabulator, a semicolon.
    #[must_use]
    pub fn new(target: Target, header: Header, delimiter: u8, options: Options) -> Self {
        let intake = Intake::new(vec![target], options);
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        let (place, record) = (Place::default(), Record::default());
        let mut made =
            Self { intake, delimiter, header, reader, place, columns: None, marked: Some(0), record };
        made.begin_input();
        made
    }

    fn begin_input(&mut self) {
        self.reader = ReaderBuilder::new().delimiter(self.delimiter).build();
        // The reader goes over a mark too, if its first piece has all of it: an empty line takes that chance from it.
        let _ = self.reader.read_record(b"\n", &mut [0; 8], &mut [0; 8]);
        (self.place, self.columns, self.marked) = (Place::default(), None, Some(0));
        self.record.clear();
    }

    /// The columns that names mean.
    fn know_columns(&mut self, names: &[Vec<u8>], place: Place) -> Result<(), IngestError> {
        let mut columns = Vec::with_capacity(names.len());
        self.intake.begin(0);
        for (index, name) in names.iter().enumerate() {
            let column = self.intake.column(name.trim_ascii());
            let column = match column {
                Ok(Some(column)) if columns.contains(&Some(column)) => {
                    let name = self.intake.target().fields[column].name.as_str().into();
                    Err(What::Twice { name })
                }
                other => other,
            };
            match column {
                Ok(column) => columns.push(column),
                Err(what) => {
                    let fault = Fault { line: place.line, column: index as u64 + 1, what };
                    return self.intake.end(IngestError::Columns(fault));
                }
            }
        }
        self.columns = Some(columns);
        Ok(())
    }

    /// Takes what a record has so far; says how many bytes it used, and whether it is whole.
    fn read(&mut self, bytes: &[u8]) -> (usize, bool) {
        let limit = self.intake.options.line_bytes_max;
        let record = &mut self.record;
        if record.text.len() < record.text_bytes + 64 {
            record.text.resize((2 * record.text.len()).max(1024), 0);
        }
        if record.ends.len() < record.fields + 8 {
            record.ends.resize((2 * record.ends.len()).max(32), 0);
        }
        let (text, ends) = (&mut record.text[record.text_bytes..], &mut record.ends[record.fields..]);
        let (result, used, written, fields) = self.reader.read_record(bytes, text, ends);
        record.text_bytes += written;
        record.fields += fields;
        if record.text_bytes > limit || record.fields > limit {
            // The rest of it is read over the same bytes.
            (record.text_bytes, record.fields, record.is_too_long) = (0, 0, true);
        }
        (used, matches!(result, ReadRecordResult::Record | ReadRecordResult::End))
    }

    /// Takes in a record that is whole.
    fn take(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        let begin = self.record.begin.unwrap_or_default();
        let record = std::mem::take(&mut self.record);
        let done = self.row(&record, begin, sink);
        self.record = record;
        self.record.clear();
        done
    }

    fn row(&mut self, record: &Record, begin: Place, sink: &mut dyn Sink) -> Result<(), IngestError> {
        let limit = self.intake.options.line_bytes_max;
        let Some(columns) = &self.columns else {
            if record.is_too_long {
                let fault = begin.fault(&[], 0, What::TooLong { limit });
                return self.intake.end(IngestError::Columns(fault));
            }
            let names: Vec<Vec<u8>> = (0..record.fields).map(|index| record.field(index).to_vec()).collect();
            return self.know_columns(&names, begin);
        };
        self.intake.begin(0);
        let (want, got) = (columns.len(), record.fields);
        let done = if record.is_too_long {
            Err((0, What::TooLong { limit }))
        } else if want != got {
            Err((want.min(got), What::Fields { want, got }))
        } else {
            let mut fields = columns.iter().enumerate();
            fields.try_for_each(|(index, column)| match column {
                Some(column) if !record.field(index).is_empty() => {
                    self.intake.put(*column, Form::Field, record.field(index)).map_err(|what| (index, what))
                }
                _ => Ok(()),
            })
        };
        if done.is_err() {
            self.intake.cancel();
        }
        let done = done.and_then(|()| self.intake.commit(begin.line).map_err(|what| (0, what)));
        match done {
            Ok(()) => self.intake.cut(sink),
            Err((index, what)) => {
                self.intake.fault(Fault { line: begin.line, column: index as u64 + 1, what })
            }
        }
    }

    /// Goes over a mark of UTF-8 at the beginning, whole or in pieces; what is behind it. Bytes that only began like
    /// one are put into the reader.
    fn behind_mark<'b>(&mut self, bytes: &'b [u8], sink: &mut dyn Sink) -> Result<&'b [u8], IngestError> {
        let mut rest = bytes;
        while let (Some(seen), [byte, tail @ ..]) = (self.marked, rest) {
            if *byte == MARK[seen] {
                rest = tail;
                self.marked = (seen + 1 < MARK.len()).then_some(seen + 1);
            } else {
                self.marked = None;
                self.records(&MARK[..seen], sink)?;
            }
        }
        Ok(rest)
    }

    fn records(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.record.begin.is_none() {
                // The reader goes over empty lines too, and would not say how many.
                let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                self.place.pass(&rest[..blank]);
                rest = &rest[blank..];
                if rest.is_empty() {
                    break;
                }
                self.record.begin = Some(self.place);
            }
            let (used, is_whole) = self.read(rest);
            self.place.pass(&rest[..used]);
            rest = &rest[used..];
            if is_whole {
                self.take(sink)?;
            }
        }
        Ok(())
    }
}

impl Decoder for CsvDecoder {
    fn arrived(&mut self, ns: Option<i64>) {
        self.intake.arrived = ns;
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.is_open()?;
        if self.columns.is_none()
            && let Header::Named(names) = &self.header
        {
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            self.know_columns(&names, Place::default())?;
        }
        let rest = self.behind_mark(bytes, sink)?;
        self.records(rest, sink)
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.flush(sink)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Outcome, IngestError> {
        self.intake.is_open()?;
        if let Some(seen) = self.marked.take().filter(|seen| *seen > 0) {
            self.records(&MARK[..seen], sink)?;
        }
        while self.record.begin.is_some() {
            // No bytes mean the end: the last record may do without its line feed.
            let (_, is_whole) = self.read(&[]);
            if is_whole {
                self.take(sink)?;
            }
        }
        self.begin_input();
        self.intake.finish(sink)
    }
}
