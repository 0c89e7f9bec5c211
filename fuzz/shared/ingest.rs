//! What holds of every decoder, whatever its bytes: it does not panic, pieces do not matter, and what it hands on is a
//! batch that a table takes.

use planish_ingest::{Batch, Decoder, Faults, IngestError, Options, Outcome, Sink, Target, Unit, Unknown};
use planish_table::{Cells, Column, Kind, Partitioning, Schema};

/// A column of each kind.
pub fn target() -> Target {
    let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
    let columns = [
        ("t", Kind::Time),
        ("s", Kind::Symbol),
        ("x", Kind::Float),
        ("n", Kind::Int),
        ("d", Kind::Decimal { scale: 2 }),
    ];
    let schema = Schema::new(columns.map(column).to_vec(), Partitioning { span: 10, symbols: None });
    let target = Target::new("m", &schema.expect("a sound schema"), Unit::Milliseconds);
    target.fill("n", "7").expect("a whole number").kept_from(-1000)
}

/// Limits that short inputs meet, by the bits of a byte.
pub fn options(bits: u8) -> Options {
    Options {
        faults: if bits & 1 > 0 { Faults::Refuse } else { Faults::LeaveOut },
        unknown: if bits & 2 > 0 { Unknown::LeaveOut } else { Unknown::Refuse },
        unit: if bits & 4 > 0 { Unit::Seconds } else { Unit::Nanoseconds },
        rows_max: if bits & 8 > 0 { 2 } else { 1000 },
        line_bytes_max: if bits & 16 > 0 { 40 } else { 1 << 16 },
        batch_bytes_max: if bits & 32 > 0 { 100 } else { 1 << 20 },
        message_bytes_max: 1 << 16,
        told_max: 3,
    }
}

/// What came: batches as text, so that a null is equal to itself.
#[derive(Debug, Default, PartialEq)]
struct Came(Vec<String>);

impl Sink for Came {
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError> {
        assert!(batch.rows() > 0 && batch.first_line() <= batch.last_line());
        batch.with_cells(|cells| {
            let rows = |cells: &Cells<'_>| match cells {
                Cells::Times(cells) | Cells::Ints(cells) | Cells::Decimals(cells) => cells.len(),
                Cells::Floats(cells) => cells.len(),
                Cells::Symbols(cells) => cells.len(),
                Cells::Keyed { texts, keys } => {
                    assert!(keys.iter().all(|key| (*key as usize) < texts.len()));
                    keys.len()
                }
            };
            assert!(cells.len() == 5 && cells.iter().all(|cells| rows(cells) == batch.rows()));
            self.0.push(format!("{} {} {cells:?}", batch.first_line(), batch.last_line()));
        });
        Ok(())
    }
}

fn came(
    decoder: &mut dyn Decoder,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> (Came, Result<Outcome, String>) {
    let mut came = Came::default();
    decoder.arrived(Some(5_000_000));
    for piece in pieces {
        if let Err(error) = decoder.feed(piece, &mut came) {
            return (came, Err(error.to_string()));
        }
    }
    let outcome = decoder.finish(&mut came).map_err(|error| error.to_string());
    (came, outcome)
}

/// Holds a decoder to it. The first byte chooses options, the second the length of pieces; behind them is the input.
pub fn hold(data: &[u8], make: impl Fn(Options) -> Box<dyn Decoder>) {
    let [bits, length, input @ ..] = data else { return };
    let whole = came(&mut *make(options(*bits)), &mut std::iter::once(input));
    let pieces = came(&mut *make(options(*bits)), &mut input.chunks(usize::from(*length).max(1)));
    assert_eq!(whole, pieces);
    if let Ok(outcome) = &whole.1 {
        assert!(outcome.faults.len() as u64 <= outcome.faulty);
    }
}
