//! A table with a column of each kind, rows of it, and a sink that shows what came.

use planish_ingest::{Batch, Decoder, IngestError, Options, Outcome, Sink, Target, Unit};
use planish_table::{Cells, Column, Kind, Partitioning, Schema};
use proptest::prelude::*;

/// Digits behind the point of the fee.
pub const SCALE: u8 = 4;

pub fn schema() -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [
        ("symbol", Kind::Symbol),
        ("time", Kind::Time),
        ("price", Kind::Float),
        ("size", Kind::Int),
        ("fee, net", Kind::Decimal { scale: SCALE }),
        ("note", Kind::Symbol),
    ];
    Schema::new(columns.map(column).to_vec(), Partitioning { span: 1 << 40, symbols: None }).unwrap()
}

pub fn target() -> Target {
    Target::new("ticks", &schema(), Unit::Nanoseconds).fill("note", "").unwrap()
}

/// A row; a price that is no number is null.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub symbol: String,
    pub time: i64,
    pub price: Option<f64>,
    pub size: i64,
    pub fee: i64,
    pub note: String,
}

impl Row {
    /// The fee as text.
    pub fn fee_text(&self) -> String {
        let power = 10_u64.pow(SCALE.into());
        let (sign, fee) = (if self.fee < 0 { "-" } else { "" }, self.fee.unsigned_abs());
        format!("{sign}{}.{:0width$}", fee / power, fee % power, width = usize::from(SCALE))
    }
}

/// Rows with all that a text may hold.
pub fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = "[ab,= \"\\\\\n\r\tµ{}#\\[]{0,6}";
    let price = prop_oneof![Just(None), any::<f64>().prop_map(|it| Some(it).filter(|it| it.is_finite()))];
    let fee = -999_999_999_999_999_999_i64..=999_999_999_999_999_999;
    let row = ("[a-c]{1,2}", any::<i64>(), price, any::<i64>(), fee, text);
    let row =
        row.prop_map(|(symbol, time, price, size, fee, note)| Row { symbol, time, price, size, fee, note });
    prop::collection::vec(row, 0..20)
}

/// What came: rows, and how many of them in each batch.
#[derive(Debug, Default, PartialEq)]
pub struct Shown {
    pub rows: Vec<Row>,
    pub batches: Vec<(usize, u64, u64)>,
}

impl Sink for Shown {
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError> {
        assert!(batch.rows() > 0 && batch.first_line() <= batch.last_line());
        self.batches.push((batch.rows(), batch.first_line(), batch.last_line()));
        batch.with_cells(|cells| {
            let [
                Cells::Keyed { texts, keys },
                Cells::Times(times),
                Cells::Floats(prices),
                Cells::Ints(sizes),
                Cells::Decimals(fees),
                Cells::Keyed { texts: notes, keys: note_keys },
            ] = *cells
            else {
                panic!("{cells:?}")
            };
            for row in 0..batch.rows() {
                self.rows.push(Row {
                    symbol: texts[keys[row] as usize].to_owned(),
                    time: times[row],
                    price: Some(prices[row]).filter(|price| !price.is_nan()),
                    size: sizes[row],
                    fee: fees[row],
                    note: notes[note_keys[row] as usize].to_owned(),
                });
            }
        });
        Ok(())
    }
}

/// What came of an input: rows and batches, and what is told of it.
pub type Came = (Shown, Result<Outcome, String>);

/// Feeds an input cut at some places.
pub fn feed(decoder: &mut dyn Decoder, input: &[u8], cuts: &[usize]) -> Came {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    cuts.sort_unstable();
    let (mut shown, mut start) = (Shown::default(), 0);
    for cut in cuts.into_iter().chain([input.len()]) {
        if let Err(error) = decoder.feed(&input[start..cut], &mut shown) {
            assert!(matches!(decoder.feed(b"x", &mut shown), Err(IngestError::Ended)));
            return (shown, Err(error.to_string()));
        }
        start = cut;
    }
    let outcome = decoder.finish(&mut shown).map_err(|error| error.to_string());
    (shown, outcome)
}

/// Feeds an input byte by byte.
pub fn drip(decoder: &mut dyn Decoder, input: &[u8]) -> Came {
    feed(decoder, input, &(0..input.len()).collect::<Vec<_>>())
}

/// The rows of an input without a fault, and the faults of others as text.
pub fn told(decoder: &mut dyn Decoder, input: &str) -> (Vec<Row>, Vec<String>) {
    let (shown, outcome) = feed(decoder, input.as_bytes(), &[]);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.rows as usize, shown.rows.len());
    assert_eq!(outcome.faulty as usize, outcome.faults.len());
    (shown.rows, outcome.faults.iter().map(ToString::to_string).collect())
}

/// Small, so that every limit is met.
pub fn small() -> Options {
    Options { rows_max: 3, line_bytes_max: 60, told_max: 5, message_bytes_max: 2000, ..Options::default() }
}

/// Bytes of a text, some of them changed, some of it missing.
pub fn broken(text: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = text;
    for (at, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at % bytes.len();
        match byte {
            0 => drop(bytes.remove(at)),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, b'"'),
            3 => bytes.insert(at, b'\n'),
            4 => bytes.insert(at, b'\\'),
            byte => bytes[at] = *byte,
        }
    }
    bytes
}
