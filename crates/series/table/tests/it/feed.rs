//! A feed of batches of which every row is known beforehand, and the look whether a table holds exactly these.

use std::collections::BTreeMap;
use std::path::Path;

use planish_arena::{Arena, Growth, Page, Preference};
use planish_table::{
    Ack, Cells, Column, Durable, Filter, Kind, Origin, Partitioning, Piece, Reading, Schema, TableError,
};

/// Rows of a batch.
pub const ROWS: u64 = 7;
/// Time of a partition. A batch covers more than it, so that every flush leaves rows of old batches in memory.
pub const SPAN: i64 = 40;
pub const PRODUCER: &str = "feed";
const SYMBOLS: [&str; 5] = ["alpha", "beta", "gamma", "", "Δ"];

pub fn arena() -> Arena {
    let growth = Growth { first_bytes: 256 << 10, cap_bytes: 1 << 20 };
    Arena::builder().page(Preference::From(Page::Base)).growth(growth).build().unwrap()
}

pub fn schema() -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [
        ("symbol", Kind::Symbol),
        ("time", Kind::Time),
        ("price", Kind::Float),
        ("number", Kind::Int),
        ("fee", Kind::Decimal { scale: 4 }),
    ];
    let partitioning = Partitioning { span: SPAN, symbols: Some(2) };
    Schema::new(columns.map(column).to_vec(), partitioning).unwrap()
}

/// The columns of batch `sequence`.
pub struct Rows {
    symbols: Vec<&'static str>,
    times: Vec<i64>,
    prices: Vec<f64>,
    numbers: Vec<i64>,
    fees: Vec<i64>,
}

impl Rows {
    pub fn of(sequence: u64) -> Self {
        let numbers: Vec<i64> = (0..ROWS).map(|row| (sequence * ROWS + row) as i64).collect();
        let price = |number: &i64| if number % 5 == 0 { f64::NAN } else { *number as f64 / 8.0 };
        Self {
            symbols: numbers.iter().map(|number| symbol(*number)).collect(),
            times: numbers.iter().map(|number| time(*number)).collect(),
            prices: numbers.iter().map(price).collect(),
            fees: numbers.iter().map(|number| number * 3 - 50).collect(),
            numbers,
        }
    }

    pub fn cells(&self) -> [Cells<'_>; 5] {
        [
            Cells::Symbols(&self.symbols),
            Cells::Times(&self.times),
            Cells::Floats(&self.prices),
            Cells::Ints(&self.numbers),
            Cells::Decimals(&self.fees),
        ]
    }
}

fn symbol(number: i64) -> &'static str {
    SYMBOLS[(number * 3 % 5) as usize]
}

/// Times rise, and jump back every now and then.
pub fn time(number: i64) -> i64 {
    number * 4 - number % 6 * 5 - 40
}

pub fn append(durable: &Durable<'_>, sequence: u64) -> Result<Ack, TableError> {
    durable.append(Some(Origin { producer: PRODUCER, sequence }), &Rows::of(sequence).cells())
}

/// The end of the partition in which the rows of a batch begin.
pub fn through_newest(sequence: u64) -> i64 {
    (time((sequence * ROWS) as i64).div_euclid(SPAN) + 1) * SPAN
}

/// Appends batches that nobody has seen yet.
pub fn append_all(durable: &Durable<'_>, mut sequences: impl Iterator<Item = u64>) {
    assert!(sequences.all(|sequence| append(durable, sequence).unwrap() == Ack::New));
}

/// How often each number is there; every cell of a row must be that of its number.
fn count(table: &Reading<'_, '_>, piece: &Piece<'_>, counts: &mut BTreeMap<i64, usize>) {
    let dictionary = table.dictionary("symbol").unwrap();
    let keys = piece.keys(0).unwrap().unwrap().as_slice();
    let (prices, numbers, fees) =
        (piece.floats(2).unwrap(), piece.whole(3).unwrap(), piece.whole(4).unwrap());
    assert!(piece.times().as_slice().is_sorted());
    for (row, &number) in numbers.iter().enumerate() {
        assert_eq!(dictionary.text(keys[row]), Some(symbol(number)), "symbol of {number}");
        assert_eq!(piece.times().as_slice()[row], time(number), "time of {number}");
        assert_eq!(fees[row], number * 3 - 50, "fee of {number}");
        let price = prices[row];
        assert!(
            if number % 5 == 0 { price.is_nan() } else { price == number as f64 / 8.0 },
            "{number}: {price}"
        );
        *counts.entry(number).or_default() += 1;
    }
}

/// The last batch of the feed that is in the table, in memory and files together; fails unless exactly the rows of it
/// and all before it are there, once each.
pub fn check(durable: &Durable<'_>) -> u64 {
    let last = check_from(durable, i64::MIN);
    assert_eq!(durable.read().unwrap().sequence(PRODUCER).unwrap_or(0), last);
    last
}

/// How often each number is in memory and files together.
pub fn counts(durable: &Durable<'_>) -> BTreeMap<i64, usize> {
    counts_of(&durable.read().unwrap()).unwrap()
}

/// The same of a reading, of which files may go meanwhile.
pub fn counts_of(table: &Reading<'_, '_>) -> Result<BTreeMap<i64, usize>, TableError> {
    let mut counts = BTreeMap::new();
    table.scan(Filter::ALL).for_each(|piece| count(table, &piece, &mut counts));
    for file in table.files() {
        let rows = table.read_file(file)?;
        count(table, &rows.piece(&Filter::ALL).expect("no file is empty"), &mut counts);
    }
    Ok(counts)
}

/// The same for rows from a time on.
pub fn check_from(durable: &Durable<'_>, from: i64) -> u64 {
    check_counts(&counts(durable), from)
}

/// The same of what was counted.
pub fn check_counts(counts: &BTreeMap<i64, usize>, from: i64) -> u64 {
    let last = counts.keys().next_back().map_or(0, |number| *number as u64 / ROWS);
    let wanted: BTreeMap<i64, usize> = (ROWS..(last + 1) * ROWS)
        .map(|number| (number as i64, 1))
        .filter(|(number, _)| time(*number) >= from)
        .collect();
    let wanted = if last == 0 { BTreeMap::new() } else { wanted };
    assert!(*counts == wanted, "up to batch {last}: {counts:?} is not {wanted:?}");
    last
}

/// Copies the files of a fixture; returns their names.
pub fn copy(from: &Path, to: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        names.push(entry.file_name().into_string().unwrap());
    }
    names
}
