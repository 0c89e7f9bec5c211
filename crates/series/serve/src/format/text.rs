//! TabSeparated and CSV.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;

use crate::format::cells::{Cell, Plain};
use crate::format::{Encoder, Heading};

/// `\N` stands for null in both.
const NULL: &[u8] = b"\\N";

/// Tabulators between fields; what would be taken for one, or for the end of a line, behind a backslash.
pub(crate) struct Tabs {
    pub(crate) heading: Heading,
}

/// Commas between fields, texts in quotes.
pub(crate) struct Csv {
    pub(crate) heading: Heading,
}

impl Encoder for Tabs {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        head(self.heading, schema, b'\t', out, escaped);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        rows(batch, b'\t', out, escaped)
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), ArrowError> {
        Ok(())
    }
}

impl Encoder for Csv {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        head(self.heading, schema, b',', out, quoted);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        rows(batch, b',', out, quoted)
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), ArrowError> {
        Ok(())
    }
}

fn head(heading: Heading, schema: &SchemaRef, between: u8, out: &mut Vec<u8>, text: fn(&str, &mut Vec<u8>)) {
    for line in heading.lines(schema) {
        for (index, word) in line.iter().enumerate() {
            if index > 0 {
                out.push(between);
            }
            text(word, out);
        }
        out.push(b'\n');
    }
}

fn rows(
    batch: &RecordBatch,
    between: u8,
    out: &mut Vec<u8>,
    text: fn(&str, &mut Vec<u8>),
) -> Result<(), ArrowError> {
    let plain = Plain::of(batch)?;
    let (columns, mut room) = (plain.columns()?, String::new());
    for row in 0..plain.rows() {
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                out.push(between);
            }
            match column.cell(row, &mut room)? {
                Cell::Null => out.extend_from_slice(NULL),
                Cell::Number(number) | Cell::NoNumber(number) => out.extend_from_slice(number.as_bytes()),
                Cell::Bool(is_true) => out.extend_from_slice(if is_true { b"true" } else { b"false" }),
                Cell::Text(cell) => text(cell, out),
            }
        }
        out.push(b'\n');
    }
    Ok(())
}

fn escaped(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        let letter = match byte {
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0 => b'0',
            b'\'' | b'\\' => byte,
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
