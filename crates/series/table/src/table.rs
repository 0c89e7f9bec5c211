//! A table: its partitions, and how rows come and go.

use std::collections::BTreeMap;

use planish_arena::Arena;

use crate::dictionary::Dictionary;
use crate::error::TableError;
use crate::key::{Keys, keep_last};
use crate::partition::{Partition, Ready, Store};
use crate::scan::{Filter, Piece};
use crate::schema::{Column, Kind, Place, Schema};
use crate::segment::{Loose, Segment};

/// A column of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Cells<'a> {
    /// For a column of times.
    Times(&'a [i64]),
    /// For a column of symbols.
    Symbols(&'a [&'a str]),
    /// For a column of symbols too: different texts, and for each row the number of its text. The form of Arrow's
    /// dictionaries, and the quicker one.
    Keyed {
        /// The texts.
        texts: &'a [&'a str],
        /// For each row which of them.
        keys: &'a [u32],
    },
    /// For a column of whole numbers.
    Ints(&'a [i64]),
    /// For a column of floats.
    Floats(&'a [f64]),
    /// For a column of decimals, in units of the last digit of the column's scale.
    Decimals(&'a [i64]),
}

impl Cells<'_> {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Times(cells) | Self::Ints(cells) | Self::Decimals(cells) => cells.len(),
            Self::Symbols(cells) => cells.len(),
            Self::Keyed { keys, .. } => keys.len(),
            Self::Floats(cells) => cells.len(),
        }
    }

    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Times(_) => "time",
            Self::Symbols(_) | Self::Keyed { .. } => "symbol",
            Self::Ints(_) => "int",
            Self::Floats(_) => "float",
            Self::Decimals(_) => "decimal",
        }
    }
}

/// A table on an arena. See the head of the crate for what holds of it.
#[derive(Debug)]
pub struct Table<'a> {
    schema: Schema,
    store: Store<'a>,
    /// One for each column of symbols, in their order.
    dictionaries: Vec<Dictionary>,
    partitions: BTreeMap<Place, Partition<'a>>,
}

impl<'a> Table<'a> {
    /// An empty table; it takes memory when rows come.
    #[must_use]
    pub fn new(arena: &'a Arena, schema: Schema) -> Self {
        let symbols = schema.columns().iter().filter(|column| column.kind == Kind::Symbol).count();
        let dictionaries = vec![Dictionary::default(); symbols];
        Self::with_dictionaries(arena, schema, dictionaries)
    }

    /// An empty table that knows symbols, one dictionary for each column of symbols.
    pub(crate) fn with_dictionaries(arena: &'a Arena, schema: Schema, dictionaries: Vec<Dictionary>) -> Self {
        Self { schema, store: Store::new(arena), dictionaries, partitions: BTreeMap::new() }
    }

    /// One dictionary for each column of symbols, in their order.
    pub(crate) fn dictionaries(&self) -> &[Dictionary] {
        &self.dictionaries
    }

    /// The partitions that there are, in order.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.partitions.keys().copied()
    }

    /// The segments of a partition, in order.
    pub(crate) fn segments(&self, place: Place) -> &[Segment<'a>] {
        self.partitions.get(&place).map_or(&[], |partition| &partition.segments)
    }

    /// The rows of a partition, in order.
    pub(crate) fn rows_of(&self, place: Place) -> Vec<Loose> {
        let empty = Partition::default();
        self.partitions.get(&place).unwrap_or(&empty).all(&self.schema)
    }

    /// Drops a partition and keeps its memory for rows to come.
    pub(crate) fn remove(&mut self, place: Place) {
        if let Some(mut partition) = self.partitions.remove(&place) {
            self.store.give_back(partition.segments.drain(..));
        }
    }

    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Rows in all.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.partitions.values().map(Partition::rows).sum()
    }

    /// Partitions that have rows.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Rows that there is memory for without asking the arena.
    #[must_use]
    pub fn free_rows(&self) -> usize {
        let segments = self.partitions.values().flat_map(|partition| &partition.segments);
        self.store.free_rows() + segments.map(|segment| segment.room - segment.rows).sum::<usize>()
    }

    /// The symbols of a column.
    ///
    /// # Errors
    /// [`TableError::NoColumn`] when there is no column of symbols of this name.
    pub fn dictionary(&self, name: &str) -> Result<&Dictionary, TableError> {
        let column = self.schema.find(name)?;
        let no_column = || TableError::NoColumn { column: name.to_owned() };
        self.dictionary_of(column).map(|index| &self.dictionaries[index]).ok_or_else(no_column)
    }

    /// Adds the rows of a batch, one column a column of the table, in any order of time. With a key
    /// ([`Schema::with_key`]) each replaces the row that has its key, and of rows of one key in the batch the last
    /// counts.
    ///
    /// # Errors
    /// [`TableError::Columns`], [`TableError::Kind`] and [`TableError::Length`] when the batch does not fit the
    /// table, [`TableError::Symbols`] when there are too many, [`TableError::Memory`] when the arena has no more.
    /// No row was added then.
    pub fn append(&mut self, batch: &[Cells<'_>]) -> Result<(), TableError> {
        self.append_where(batch, |_| true).map(drop)
    }

    /// The same with the rows of those partitions only that are wanted; returns which ones got rows.
    pub(crate) fn append_where(
        &mut self,
        batch: &[Cells<'_>],
        is_wanted: impl Fn(Place) -> bool,
    ) -> Result<Vec<Place>, TableError> {
        let rows = self.schema.check(batch)?;
        let known: Vec<usize> = self.dictionaries.iter().map(Dictionary::len).collect();
        let done = self.take_in(batch).and_then(|columns| self.add(&columns, rows, is_wanted));
        if done.is_err() {
            // Symbols that came with these rows are forgotten with them: their numbers are not used.
            for (dictionary, known) in self.dictionaries.iter_mut().zip(known) {
                dictionary.forget_from(known);
            }
        }
        done
    }

    /// Takes out the rows that have one of some keys, one column a column of the key in the order in which it was
    /// declared; returns how many there were. Keys that no row has are none of its business.
    ///
    /// # Errors
    /// [`TableError::NoKey`]; [`TableError::Columns`], [`TableError::Kind`] and [`TableError::Length`] when the batch
    /// does not fit the key.
    pub fn delete(&mut self, keys: &[Cells<'_>]) -> Result<usize, TableError> {
        self.delete_where(keys, |_, _| true)
    }

    /// The same in those partitions only that are wanted, with the keys that lie in each of them: columns in order.
    pub(crate) fn delete_where(
        &mut self,
        keys: &[Cells<'_>],
        mut is_wanted: impl FnMut(Place, &[Loose]) -> bool,
    ) -> Result<usize, TableError> {
        self.schema.check_keys(keys)?;
        let columns = self.known_keys(keys);
        let order = self.schema.order();
        let (every, symbol) = ((0..order.len()).collect::<Vec<_>>(), self.schema.symbol());
        let symbols = order.iter().position(|&column| Some(column) == symbol);
        let places = Places {
            schema: &self.schema,
            times: columns[0].whole(),
            symbols: symbols.map(|column| columns[column].symbols()),
            keys: Keys::of_rows(&columns, &every),
        };
        let mut removed = 0;
        let sorted = places.sort();
        for rows in sorted.chunk_by(|&left, &right| places.of(left) == places.of(right)) {
            let place = places.of(rows[0]);
            let picked = pick(&columns, rows);
            if !is_wanted(place, &picked) {
                continue;
            }
            if let Some(partition) = self.partitions.get_mut(&place) {
                removed += partition.remove(&self.schema, &Keys::of_rows(&picked, &every));
                if partition.rows() == 0 {
                    self.store.give_back(partition.segments.drain(..));
                    self.partitions.remove(&place);
                }
            }
        }
        Ok(removed)
    }

    /// Keys as columns of numbers, in the order of rows. One with a text that is no symbol is no row's.
    fn known_keys(&self, batch: &[Cells<'_>]) -> Vec<Loose> {
        let (key, order) = (self.schema.key(), self.schema.order());
        let numbers = |(column, cells): (&usize, &Cells<'_>)| {
            let dictionary = self.dictionary_of(*column).map(|index| &self.dictionaries[index])?;
            let number = |text: &&str| dictionary.number(text);
            Some(match cells {
                Cells::Symbols(texts) => texts.iter().map(number).collect::<Vec<_>>(),
                Cells::Keyed { texts, keys } => {
                    let numbers: Vec<_> = texts.iter().map(number).collect();
                    keys.iter().map(|&key| numbers[key as usize]).collect()
                }
                _ => return None,
            })
        };
        let symbols: Vec<Option<Vec<Option<u32>>>> = key.iter().zip(batch).map(numbers).collect();
        let is_known = |row: &usize| symbols.iter().flatten().all(|column| column[*row].is_some());
        let known: Vec<usize> = (0..batch[0].rows()).filter(is_known).collect();
        let column = |column: &usize| {
            let index = key.iter().position(|other| other == column).expect("rows are in order of the key");
            match (&symbols[index], batch[index]) {
                (Some(numbers), _) => Loose::Symbol(known.iter().filter_map(|&row| numbers[row]).collect()),
                (None, Cells::Times(cells) | Cells::Ints(cells) | Cells::Decimals(cells)) => {
                    Loose::Whole(known.iter().map(|&row| cells[row]).collect())
                }
                (None, _) => unreachable!("a schema has no float in its key"),
            }
        };
        order.iter().map(column).collect()
    }

    /// Lets go of memory for rows to come but for so many bytes, and hands the kernel what nobody has of the arena;
    /// returns how many bytes it got.
    pub fn release(&mut self, spare_bytes: usize) -> usize {
        self.store.release(spare_bytes)
    }

    /// Drops the partitions that end before `time` and keeps their memory for rows to come; returns how many rows
    /// they had.
    pub fn drop_before(&mut self, time: i64) -> usize {
        let first = time.div_euclid(self.schema.partitioning().span);
        let rows_before = self.rows();
        let store = &mut self.store;
        self.partitions.retain(|&(_, span), partition| {
            let is_kept = span >= first;
            if !is_kept {
                store.give_back(partition.segments.drain(..));
            }
            is_kept
        });
        rows_before - self.rows()
    }

    /// The rows of a filter, as pieces in the order of partitions (group of symbols, then time), each in time
    /// order.
    pub fn scan(&self, filter: Filter) -> impl Iterator<Item = Piece<'_>> {
        let keys = self.dictionaries.iter().map(Dictionary::len).collect::<Vec<_>>();
        let group = filter.symbol.map(|symbol| self.schema.place(0, symbol).0);
        let spans = [filter.from, filter.to].map(|time| self.schema.place(time, 0).1);
        self.partitions
            .iter()
            .filter(move |((of, span), _)| {
                group.is_none_or(|group| group == *of) && (spans[0]..=spans[1]).contains(span)
            })
            .flat_map(move |(_, partition)| {
                let keys = keys.clone();
                let piece = move |segment| Piece::of(&self.schema, segment, &filter, &keys);
                partition.segments.iter().filter_map(piece)
            })
    }

    /// Which dictionary a column of symbols has.
    fn dictionary_of(&self, column: usize) -> Option<usize> {
        let columns = self.schema.columns();
        let is_symbol = |column: &&Column| column.kind == Kind::Symbol;
        (columns[column].kind == Kind::Symbol).then(|| columns[..column].iter().filter(is_symbol).count())
    }

    /// The batch as columns of numbers.
    fn take_in(&mut self, batch: &[Cells<'_>]) -> Result<Vec<Loose>, TableError> {
        let mut dictionaries = self.dictionaries.iter_mut();
        let column = |cells: &Cells<'_>| {
            Ok(match cells {
                Cells::Times(cells) | Cells::Ints(cells) | Cells::Decimals(cells) => {
                    Loose::Whole(cells.to_vec())
                }
                Cells::Floats(cells) => Loose::Float(cells.to_vec()),
                Cells::Symbols(cells) => {
                    let mut numbers = Vec::new();
                    let dictionary = dictionaries.next().expect("a dictionary for each column of symbols");
                    dictionary.take_in(cells, &mut numbers)?;
                    Loose::Symbol(numbers)
                }
                Cells::Keyed { texts, keys } => {
                    let mut numbers = Vec::new();
                    let dictionary = dictionaries.next().expect("a dictionary for each column of symbols");
                    dictionary.take_in(texts, &mut numbers)?;
                    Loose::Symbol(keys.iter().map(|&key| numbers[key as usize]).collect())
                }
            })
        };
        batch.iter().map(column).collect()
    }

    /// Sorts rows into their partitions; takes all memory, then writes all rows that are wanted.
    fn add(
        &mut self,
        columns: &[Loose],
        rows: usize,
        is_wanted: impl Fn(Place) -> bool,
    ) -> Result<Vec<Place>, TableError> {
        let schema = &self.schema;
        let places = Places {
            schema,
            times: columns[schema.time()].whole(),
            symbols: schema.symbol().map(|column| columns[column].symbols()),
            keys: Keys::of_rows(columns, schema.order()),
        };
        let sorted = places.sort();
        let mut ready = Vec::new();
        let wanted = |rows: &&[usize]| is_wanted(places.of(rows[0]));
        let same = |&left: &usize, &right: &usize| places.of(left) == places.of(right);
        for rows_of_one in sorted.chunk_by(same).filter(wanted) {
            let picked = pick(columns, rows_of_one);
            let (place, empty) = (places.of(rows_of_one[0]), Partition::default());
            let partition = self.partitions.get(&place).unwrap_or(&empty);
            match partition.prepare(&mut self.store, &self.schema, picked) {
                Ok(one) => ready.push((place, one)),
                Err(source) => {
                    ready.iter_mut().for_each(|(_, one): &mut (_, Ready<'a>)| one.undo(&mut self.store));
                    return Err(TableError::Memory { rows, source });
                }
            }
        }
        let places = ready.iter().map(|(place, _)| *place).collect();
        for (place, one) in ready {
            self.partitions.entry(place).or_default().commit(one, &self.schema);
        }
        Ok(places)
    }
}

/// Rows on their way into partitions.
struct Places<'s> {
    schema: &'s Schema,
    times: &'s [i64],
    symbols: Option<&'s [u32]>,
    keys: Keys<'s>,
}

impl Places<'_> {
    /// The partition of a row.
    fn of(&self, row: usize) -> Place {
        self.schema.place(self.times[row], self.symbols.map_or(0, |symbols| symbols[row]))
    }

    /// The rows by partition, then in their order; of those with one key the last.
    fn sort(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.times.len()).collect();
        // Stable: rows of one time, or one key, stay in the order in which they came.
        if self.schema.has_key() {
            let order = |&left: &usize, &right: &usize| {
                self.of(left).cmp(&self.of(right)).then_with(|| self.keys.compare(left, &self.keys, right))
            };
            rows.sort_by(order);
            keep_last(&mut rows, |left, right| order(&left, &right).is_eq());
        } else {
            rows.sort_by_key(|&row| (self.of(row), self.times[row]));
        }
        rows
    }
}

/// Some rows of columns.
fn pick(columns: &[Loose], rows: &[usize]) -> Vec<Loose> {
    let column = |column: &Loose| {
        let mut picked = column.empty_like();
        picked.extend_from(column, rows.iter().copied());
        picked
    };
    columns.iter().map(column).collect()
}
