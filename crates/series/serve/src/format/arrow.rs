//! Streams of Arrow: what pyarrow, Polars and DuckDB read without a copy.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;

use crate::format::Encoder;

/// Messages, without compression.
#[derive(Default)]
pub(crate) struct Stream {
    writer: Option<StreamWriter<Vec<u8>>>,
}

impl Stream {
    /// What the writer has written since it was asked last.
    fn hand_on(&mut self, out: &mut Vec<u8>) {
        if let Some(writer) = &mut self.writer {
            out.append(writer.get_mut());
        }
    }
}

impl Encoder for Stream {
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        self.writer = Some(StreamWriter::try_new(Vec::new(), schema)?);
        self.hand_on(out);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if let Some(writer) = &mut self.writer {
            writer.write(batch)?;
        }
        self.hand_on(out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if let Some(writer) = &mut self.writer {
            writer.finish()?;
        }
        self.hand_on(out);
        Ok(())
    }
}
