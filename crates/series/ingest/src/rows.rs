//! Rows on their way into a batch.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use planish_table::{Cells, Kind};

use crate::cell::Cell;
use crate::target::{Field, Fill, Target};

/// Rows of one table, each with a cell of every column.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'r> {
    rows: &'r Rows,
    table: usize,
    name: &'r str,
}

impl<'r> Batch<'r> {
    pub(crate) fn of(table: usize, target: &'r Target, rows: &'r Rows) -> Self {
        Self { rows, table, name: &target.name }
    }

    /// Which of the targets that the decoder was made with, by number.
    #[must_use]
    pub fn table(&self) -> usize {
        self.table
    }

    /// The name of that target.
    #[must_use]
    pub fn name(&self) -> &'r str {
        self.name
    }

    /// How many rows; there is one at least.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.count
    }

    /// The line of its first row.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.rows.first_line
    }

    /// The line of its last row.
    #[must_use]
    pub fn last_line(&self) -> u64 {
        self.rows.last_line
    }

    /// Gives the columns to a function, as a table takes them.
    pub fn with_cells<R>(&self, use_cells: impl FnOnce(&[Cells<'_>]) -> R) -> R {
        let texts: Vec<Vec<&str>> = self.rows.columns.iter().map(Column::texts).collect();
        let cells = self.rows.columns.iter().zip(&texts).map(|(column, texts)| match column {
            Column::Times(cells) => Cells::Times(cells),
            Column::Ints(cells) => Cells::Ints(cells),
            Column::Decimals(cells) => Cells::Decimals(cells),
            Column::Floats(cells) => Cells::Floats(cells),
            Column::Symbols(symbols) => Cells::Keyed { texts, keys: &symbols.keys },
        });
        use_cells(&cells.collect::<Vec<_>>())
    }
}

/// A column that grows.
#[derive(Debug)]
pub(crate) enum Column {
    Times(Vec<i64>),
    Ints(Vec<i64>),
    Decimals(Vec<i64>),
    Floats(Vec<f64>),
    Symbols(Symbols),
}

impl Column {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Time => Self::Times(Vec::new()),
            Kind::Int => Self::Ints(Vec::new()),
            Kind::Decimal { .. } => Self::Decimals(Vec::new()),
            Kind::Float => Self::Floats(Vec::new()),
            Kind::Symbol => Self::Symbols(Symbols::default()),
        }
    }

    /// Takes out rows, given in order, counted from `base`.
    pub(crate) fn remove(&mut self, base: usize, rows: &[usize]) {
        match self {
            Self::Times(cells) | Self::Ints(cells) | Self::Decimals(cells) => remove(cells, base, rows),
            Self::Floats(cells) => remove(cells, base, rows),
            Self::Symbols(symbols) => remove(&mut symbols.keys, base, rows),
        }
    }

    /// Bytes of a cell.
    pub(crate) fn cell_bytes(&self) -> usize {
        if matches!(self, Self::Symbols(_)) { 4 } else { 8 }
    }

    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Symbols(symbols) => symbols.texts.iter().map(AsRef::as_ref).collect(),
            _ => Vec::new(),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Times(cells) | Self::Ints(cells) | Self::Decimals(cells) => cells.clear(),
            Self::Floats(cells) => cells.clear(),
            Self::Symbols(symbols) => *symbols = Symbols { keys: symbols.take_keys(), ..Symbols::default() },
        }
    }
}

fn remove<T: Copy>(cells: &mut Vec<T>, base: usize, rows: &[usize]) {
    let (mut kept, mut rows) = (base, rows.iter().peekable());
    for row in base..cells.len() {
        if rows.next_if(|removed| base + **removed == row).is_none() {
            cells[kept] = cells[row];
            kept += 1;
        }
    }
    cells.truncate(kept);
}

/// Texts of a column of symbols: each once, and for each row its number.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<[u8]>, u32, RandomState>,
    pub(crate) keys: Vec<u32>,
    /// The text that came last: in many feeds it comes again.
    last: u32,
}

impl Symbols {
    /// The number of a text; `None` when it is not UTF-8. The second says how many bytes the batch grew by.
    pub(crate) fn number(&mut self, text: &[u8]) -> Option<(u32, usize)> {
        if self.texts.get(self.last as usize).is_some_and(|last| last.as_bytes() == text) {
            return Some((self.last, 0));
        }
        if let Some(&number) = self.numbers.get(text) {
            self.last = number;
            return Some((number, 0));
        }
        let known: Box<str> = std::str::from_utf8(text).ok()?.into();
        let number = u32::try_from(self.texts.len()).expect("a batch has fewer rows");
        self.texts.push(known);
        self.numbers.insert(text.into(), number);
        self.last = number;
        Some((number, 2 * text.len() + TEXT_BYTES))
    }

    /// Forgets the texts from a number on: their row was not taken.
    fn forget_from(&mut self, number: usize) {
        for text in self.texts.drain(number.min(self.texts.len())..) {
            self.numbers.remove(text.as_bytes());
        }
    }

    fn take_keys(&mut self) -> Vec<u32> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys
    }
}

/// What a text costs beside its bytes, about.
const TEXT_BYTES: usize = 64;

/// The rows of a batch, and the row that is being put together.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    /// The row that is being put together.
    cells: Vec<Cell>,
    /// Bytes of the batch before it, and texts of each column.
    bytes_before: usize,
    texts_before: Vec<usize>,
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) first_line: u64,
    pub(crate) last_line: u64,
}

impl Rows {
    pub(crate) fn of(target: &Target) -> Self {
        let columns: Vec<Column> = target.fields.iter().map(|field| Column::of(field.kind)).collect();
        let (cells, texts_before) = (vec![Cell::Missing; columns.len()], vec![0; columns.len()]);
        Self {
            columns,
            cells,
            bytes_before: 0,
            texts_before,
            count: 0,
            bytes: 0,
            first_line: 0,
            last_line: 0,
        }
    }

    /// Begins a row.
    pub(crate) fn begin(&mut self) {
        self.cells.fill(Cell::Missing);
    }

    /// Whether a column of the row has a cell.
    pub(crate) fn has(&self, column: usize) -> bool {
        self.cells[column] != Cell::Missing
    }

    /// Gives a column of the row its cell.
    pub(crate) fn set(&mut self, column: usize, cell: Cell) {
        self.cells[column] = cell;
    }

    /// Gives a column of symbols its cell; `false` when the text is not UTF-8.
    pub(crate) fn set_text(&mut self, column: usize, text: &[u8]) -> bool {
        let Column::Symbols(symbols) = &mut self.columns[column] else { return false };
        let Some((number, bytes)) = symbols.number(text) else { return false };
        self.bytes += bytes;
        self.cells[column] = Cell::Key(number);
        true
    }

    /// The time of the row.
    pub(crate) fn time(&self, column: usize) -> Option<i64> {
        match self.cells[column] {
            Cell::Whole(time) => Some(time),
            _ => None,
        }
    }

    /// The first column that nothing came for and nothing stands in for; where something does, it is put there.
    pub(crate) fn complete(&mut self, fields: &[Field]) -> Option<usize> {
        for (column, field) in fields.iter().enumerate() {
            if self.cells[column] != Cell::Missing {
                continue;
            }
            match &field.fill {
                Fill::Refuse => return Some(column),
                Fill::Whole(whole) => self.cells[column] = Cell::Whole(*whole),
                Fill::Float(float) => self.cells[column] = Cell::Float(*float),
                Fill::Text(text) => assert!(self.set_text(column, text), "it came from a text"),
            }
        }
        None
    }

    /// Ends a complete row.
    pub(crate) fn commit(&mut self, line: u64) {
        for (column, cell) in self.columns.iter_mut().zip(&self.cells) {
            match (column, *cell) {
                (Column::Times(cells) | Column::Ints(cells) | Column::Decimals(cells), Cell::Whole(cell)) => {
                    cells.push(cell);
                    self.bytes += 8;
                }
                (Column::Floats(cells), Cell::Float(cell)) => {
                    cells.push(cell);
                    self.bytes += 8;
                }
                (Column::Symbols(symbols), Cell::Key(key)) => {
                    symbols.keys.push(key);
                    self.bytes += 4;
                }
                _ => unreachable!("a complete row has a cell of each column's kind"),
            }
        }
        self.told(1, line, line);
    }

    /// Rows were added, from one line to another.
    pub(crate) fn told(&mut self, rows: usize, first: u64, last: u64) {
        if self.count == 0 {
            self.first_line = first;
        }
        self.last_line = last;
        self.count += rows;
        self.mark();
    }

    /// Remembers what there is: what a row that is not taken goes back to.
    fn mark(&mut self) {
        self.bytes_before = self.bytes;
        for (before, column) in self.texts_before.iter_mut().zip(&self.columns) {
            if let Column::Symbols(symbols) = column {
                *before = symbols.texts.len();
            }
        }
    }

    /// Forgets the row that is being put together, if one is.
    pub(crate) fn cancel(&mut self) {
        self.bytes = self.bytes_before;
        for (before, column) in self.texts_before.iter().zip(&mut self.columns) {
            if let Column::Symbols(symbols) = column {
                symbols.forget_from(*before);
            }
        }
    }

    /// Forgets all rows, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
        (self.count, self.bytes) = (0, 0);
        self.mark();
    }
}
