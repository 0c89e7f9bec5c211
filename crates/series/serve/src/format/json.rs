//! JSON with the columns in front of the rows and their number behind them; and an object, or a list of values, a line.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;

use crate::format::cells::{Cell, Column, Plain, type_names};
use crate::format::{Encoder, Heading};

/// One object for all.
pub(crate) struct Json {
    /// Rows are lists of values, and no objects.
    is_compact: bool,
    names: Vec<Vec<u8>>,
    rows: u64,
}

impl Json {
    pub(crate) fn new(is_compact: bool) -> Self {
        Self { is_compact, names: Vec::new(), rows: 0 }
    }
}

/// A list of values a row, a row a line.
pub(crate) struct Compact {
    pub(crate) heading: Heading,
}

/// An object a row, a row a line.
#[derive(Default)]
pub(crate) struct EachRow {
    names: Vec<Vec<u8>>,
}

/// A text in quotes.
fn quoted(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text is JSON, and memory takes it");
}

/// Between what comes one after another.
fn comma(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn names(schema: &SchemaRef) -> Vec<Vec<u8>> {
    let name = |text: &str| {
        let mut name = Vec::new();
        quoted(text, &mut name);
        name
    };
    schema.fields().iter().map(|field| name(field.name())).collect()
}

fn value(cell: Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        // JSON has no word for what is no number.
        Cell::Null | Cell::NoNumber(_) => out.extend_from_slice(b"null"),
        Cell::Number(number) => out.extend_from_slice(number.as_bytes()),
        Cell::Bool(is_true) => out.extend_from_slice(if is_true { b"true" } else { b"false" }),
        Cell::Text(text) => quoted(text, out),
    }
}

/// The values of a row.
fn list(columns: &[Column<'_>], row: usize, room: &mut String, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    out.push(b'[');
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        value(column.cell(row, room)?, out);
    }
    out.push(b']');
    Ok(())
}

impl Encoder for Json {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        self.names = names(schema);
        out.extend_from_slice(b"{\n\t\"meta\":\n\t[");
        for (index, (name, kind)) in self.names.iter().zip(type_names(schema)).enumerate() {
            comma(index, out);
            out.extend_from_slice(b"\n\t\t{\n\t\t\t\"name\": ");
            out.extend_from_slice(name);
            out.extend_from_slice(b",\n\t\t\t\"type\": ");
            quoted(&kind, out);
            out.extend_from_slice(b"\n\t\t}");
        }
        out.extend_from_slice(b"\n\t],\n\n\t\"data\":\n\t[\n");
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let plain = Plain::of(batch)?;
        let (columns, mut room) = (plain.columns()?, String::new());
        for row in 0..plain.rows() {
            if self.rows > 0 {
                out.extend_from_slice(b",\n");
            }
            self.rows += 1;
            out.extend_from_slice(b"\t\t");
            if self.is_compact {
                list(&columns, row, &mut room, out)?;
                continue;
            }
            out.push(b'{');
            for (index, (name, column)) in self.names.iter().zip(&columns).enumerate() {
                comma(index, out);
                out.extend_from_slice(b"\n\t\t\t");
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
                value(column.cell(row, &mut room)?, out);
            }
            out.extend_from_slice(b"\n\t\t}");
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        out.extend_from_slice(format!("\n\t],\n\n\t\"rows\": {}\n}}\n", self.rows).as_bytes());
        Ok(())
    }
}

impl Encoder for Compact {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        for line in self.heading.lines(schema) {
            out.push(b'[');
            for (index, word) in line.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                quoted(word, out);
            }
            out.extend_from_slice(b"]\n");
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let plain = Plain::of(batch)?;
        let (columns, mut room) = (plain.columns()?, String::new());
        for row in 0..plain.rows() {
            list(&columns, row, &mut room, out)?;
            out.push(b'\n');
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), ArrowError> {
        Ok(())
    }
}

impl Encoder for EachRow {
    fn begin(&mut self, schema: &SchemaRef, _: &mut Vec<u8>) -> Result<(), ArrowError> {
        self.names = names(schema);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let plain = Plain::of(batch)?;
        let (columns, mut room) = (plain.columns()?, String::new());
        for row in 0..plain.rows() {
            for (index, (name, column)) in self.names.iter().zip(&columns).enumerate() {
                out.push(if index == 0 { b'{' } else { b',' });
                out.extend_from_slice(name);
                out.push(b':');
                value(column.cell(row, &mut room)?, out);
            }
            if self.names.is_empty() {
                out.push(b'{');
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), ArrowError> {
        Ok(())
    }
}
