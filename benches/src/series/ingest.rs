//! Ingest formats: rows a second of CPU time, of decoding alone and all the way into a table whose every batch is
//! synced.
//!
//! CPU time is that of the whole process: decoder, committer and table, whichever thread they ran on. What others on
//! the machine take away is not in it, and waiting for the disk is not either.

use super::data::{self, DAY, SYMBOLS};
use super::{figure, table};
use crate::row::{Limit, Rows};
use anyhow::{Context, Result, ensure};
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt32Array,
};
use arrow_ipc::writer::StreamWriter;
use planish_ingest::{
    ArrowDecoder, Batch, Commit, CsvDecoder, Decoder, Header, IngestError, JsonDecoder, LineDecoder, Options,
    Sink, Target, Unit,
};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 2_000_000;
const RUNS: usize = 7;
/// What a server reads from a socket at once.
const PIECE_BYTES: usize = 64 << 10;
/// Batches on their way to the disk.
const IN_FLIGHT: usize = 64;
/// Rows of a message of Arrow.
const MESSAGE_ROWS: usize = 1 << 16;
/// time, symbol, price, size
const ROW_BYTES: usize = 8 + 4 + 8 + 8;

/// Adds the rows.
pub fn measure(rows: &mut Rows) -> Result<()> {
    let columns = data::arena(data::table_bytes(ROWS))?;
    let ticks = data::Table::generate(&columns, 37, ROWS, SYMBOLS, DAY)?;
    let formats: [(&str, Encode, Option<f64>); 4] = [
        ("line protocol", lines, Some(1.5)),
        ("Arrow", arrow, Some(5.0)),
        ("CSV", csv, None),
        ("JSON", json, None),
    ];
    for (name, encode, limit) in formats {
        let input = encode(&ticks)?;
        let bytes = input.len() / ROWS;
        let decoded = format!("{name}, decoded ({bytes} bytes a row)");
        rows.beside(&decoded, "Mrows/CPU s", || repeat(|| decode(name, &input)));
        let durable = format!("{name}, durable, group commit of 10 ms");
        match limit {
            Some(limit) => {
                let limit = (Limit::AtLeast, limit);
                rows.add_with_note(&durable, "Mrows/CPU s", limit, || commit_all(name, &input));
            }
            None => rows.beside(&durable, "Mrows/CPU s", || Ok(commit_all(name, &input)?.0)),
        }
    }
    Ok(())
}

type Encode = fn(&data::Table<'_>) -> Result<Vec<u8>>;

fn repeat(mut run: impl FnMut() -> Result<f64>) -> Result<crate::row::Figure> {
    let logs = (0..RUNS).map(|_| Ok(run()?.ln())).collect::<Result<Vec<_>>>()?;
    figure(&logs)
}

/// CPU time of this process in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn speed(seconds: f64) -> f64 {
    ROWS as f64 / 1e6 / seconds
}

fn decoder(format: &str) -> Result<Box<dyn Decoder>> {
    let target = Target::new("ticks", &table::schema()?, Unit::Nanoseconds);
    let options = Options::default();
    Ok(match format {
        "line protocol" => Box::new(LineDecoder::new(vec![target], options)),
        "Arrow" => Box::new(ArrowDecoder::new(target, options)),
        "CSV" => Box::new(CsvDecoder::new(target, Header::First, b',', options)),
        _ => Box::new(JsonDecoder::new(target, options)),
    })
}

/// Counts rows, so that decoding is all that is timed.
struct Count(usize);

impl Sink for Count {
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError> {
        self.0 += batch.rows();
        Ok(())
    }
}

fn feed(format: &str, input: &[u8], sink: &mut dyn Sink) -> Result<()> {
    let mut decoder = decoder(format)?;
    for piece in input.chunks(PIECE_BYTES) {
        decoder.feed(piece, sink)?;
    }
    let outcome = decoder.finish(sink)?;
    ensure!(outcome.rows == ROWS as u64 && outcome.faulty == 0, "{outcome:?}");
    Ok(())
}

fn decode(format: &str, input: &[u8]) -> Result<f64> {
    let (start, mut count) = (cpu(), Count(0));
    feed(format, input, &mut count)?;
    ensure!(count.0 == ROWS, "rows are missing");
    Ok(speed(cpu() - start))
}

/// Rows a second of CPU time; for the note, of wall time.
fn commit_all(format: &str, input: &[u8]) -> Result<(crate::row::Figure, String)> {
    let mut walls = Vec::new();
    let value = repeat(|| {
        let folder = tempfile::tempdir().context("a folder for the table")?;
        let arena = data::arena(ROWS * ROW_BYTES * 13 / 10)?;
        let durable = table::create(&arena, folder.path())?;
        let (start, wall) = (cpu(), Instant::now());
        let mut commit = Commit::new(&durable, IN_FLIGHT);
        feed(format, input, &mut commit)?;
        ensure!(commit.finish()?.rows == ROWS as u64, "rows are missing");
        ensure!(durable.read()?.rows() == ROWS, "rows are missing");
        walls.push(speed(wall.elapsed().as_secs_f64()).ln());
        Ok(speed(cpu() - start))
    })?;
    Ok((value, format!("{:.2} Mrows/s of wall time", figure(&walls)?.value)))
}

fn text(ticks: &data::Table<'_>, mut row: impl FnMut(&mut String, i64, u32, f64, i64)) -> Vec<u8> {
    let mut text = String::new();
    for (index, &time) in ticks.times.iter().enumerate() {
        row(&mut text, time, ticks.symbols[index], ticks.prices[index], ticks.sizes[index]);
    }
    text.into_bytes()
}

fn lines(ticks: &data::Table<'_>) -> Result<Vec<u8>> {
    Ok(text(ticks, |out, time, symbol, price, size| {
        let _ = writeln!(out, "ticks,symbol=SYM{symbol:03} price={price},size={size}i {time}");
    }))
}

fn csv(ticks: &data::Table<'_>) -> Result<Vec<u8>> {
    let rows = text(ticks, |out, time, symbol, price, size| {
        let _ = writeln!(out, "{time},SYM{symbol:03},{price},{size}");
    });
    Ok([&b"time,symbol,price,size\n"[..], &rows].concat())
}

fn json(ticks: &data::Table<'_>) -> Result<Vec<u8>> {
    Ok(text(ticks, |out, time, symbol, price, size| {
        let names = format!("\"symbol\":\"SYM{symbol:03}\",\"price\":{price}");
        let _ = writeln!(out, "{{\"time\":{time},{names},\"size\":{size}}}");
    }))
}

fn arrow(ticks: &data::Table<'_>) -> Result<Vec<u8>> {
    let names = (0..ticks.symbol_count).map(|symbol| format!("SYM{symbol:03}"));
    let names: ArrayRef = Arc::new(names.map(Some).collect::<StringArray>());
    let mut writer: Option<StreamWriter<Vec<u8>>> = None;
    for first in (0..ROWS).step_by(MESSAGE_ROWS) {
        let rows = first..(first + MESSAGE_ROWS).min(ROWS);
        let keys = UInt32Array::from(ticks.symbols[rows.clone()].to_vec());
        let columns: [(&str, ArrayRef); 4] = [
            ("time", Arc::new(TimestampNanosecondArray::from(ticks.times[rows.clone()].to_vec()))),
            ("symbol", Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(&names))?)),
            ("price", Arc::new(Float64Array::from(ticks.prices[rows.clone()].to_vec()))),
            ("size", Arc::new(Int64Array::from(ticks.sizes[rows].to_vec()))),
        ];
        let batch = RecordBatch::try_from_iter(columns)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(StreamWriter::try_new(Vec::new(), &batch.schema())?),
        };
        writer.write(&batch)?;
    }
    writer.context("there are rows")?.into_inner().context("a stream in memory")
}
