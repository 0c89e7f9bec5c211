//! A partition: segments of rows in order.

use std::mem;

use planish_arena::{Arena, ArenaError};

use crate::key::{Keys, merge};
use crate::schema::Schema;
use crate::segment::{Loose, ROWS_FIRST, ROWS_LAST, Segment};

/// Segments by their room, and the arena behind them.
#[derive(Debug)]
pub(crate) struct Store<'a> {
    arena: &'a Arena,
    free: Vec<Segment<'a>>,
}

impl<'a> Store<'a> {
    pub(crate) fn new(arena: &'a Arena) -> Self {
        Self { arena, free: Vec::new() }
    }

    /// An empty segment with room for `room` rows.
    fn take(&mut self, schema: &Schema, room: usize) -> Result<Segment<'a>, ArenaError> {
        match self.free.iter().position(|segment| segment.room == room) {
            Some(place) => Ok(self.free.swap_remove(place)),
            None => Segment::new(self.arena, schema, room),
        }
    }

    pub(crate) fn give_back(&mut self, segments: impl IntoIterator<Item = Segment<'a>>) {
        for mut segment in segments {
            segment.clear();
            self.free.push(segment);
        }
    }

    /// Lets go of free segments, the largest first, until no more than `bytes` of them are left; then hands to the
    /// kernel what nobody has of the arena, but for that much. Returns how many bytes the kernel got.
    pub(crate) fn release(&mut self, bytes: usize) -> usize {
        self.free.sort_by_key(|segment| segment.room);
        let mut left: usize = self.free.iter().map(Segment::bytes).sum();
        while left > bytes {
            left -= self.free.pop().map_or(left, |segment| segment.bytes());
        }
        self.arena.trim(bytes - left)
    }

    /// Rows that fit into free segments.
    pub(crate) fn free_rows(&self) -> usize {
        self.free.iter().map(|segment| segment.room).sum()
    }
}

/// Rows of one group of symbols and one span of time, in order; see [`crate::key`]. A segment may have fewer rows than
/// there is room for, also none, wherever it stands.
#[derive(Debug, Default)]
pub(crate) struct Partition<'a> {
    pub(crate) segments: Vec<Segment<'a>>,
}

/// What an append to one partition will do; nothing is done yet.
pub(crate) struct Ready<'a> {
    /// Rows to write, in order: those that came, merged with those that they come before.
    rows: Vec<Loose>,
    way: Way,
    /// Empty segments that will be needed.
    segments: Vec<Segment<'a>>,
}

/// Where rows go.
enum Way {
    /// Behind all others.
    Append,
    /// From a segment on, of which so many rows stay.
    Merge(usize, usize),
    /// In the place of rows with their keys: for each segment pairs of its row and the new one.
    Replace(Vec<(usize, Vec<(usize, usize)>)>),
}

impl<'a> Partition<'a> {
    pub(crate) fn rows(&self) -> usize {
        self.segments.iter().map(|segment| segment.rows).sum()
    }

    /// Prepares to add rows, which are in order and with a key all different, and takes the memory for them.
    pub(crate) fn prepare(
        &self,
        store: &mut Store<'a>,
        schema: &Schema,
        new: Vec<Loose>,
    ) -> Result<Ready<'a>, ArenaError> {
        let keys = Keys::of_rows(&new, schema.order());
        let way = if keys.rows() == 0 { Way::Append } else { self.way(schema, &keys) };
        let (rows, mut room) = match way {
            Way::Replace(_) => return Ok(Ready { rows: new, way, segments: Vec::new() }),
            Way::Append => (new, self.segments.last().map_or(0, |segment| segment.room - segment.rows)),
            // The segment that is written to first, and those behind it, keep their memory.
            Way::Merge(segment, stay) => {
                let rows = merge(&self.tail(schema, (segment, stay)), &new, schema.order(), schema.has_key());
                (rows, self.segments[segment..].iter().map(|segment| segment.room).sum::<usize>() - stay)
            }
        };
        let (mut wanted, kept) = (rows[schema.time()].whole().len(), self.segments.len());
        let mut segments = Vec::new();
        while wanted > room {
            wanted -= room;
            room = (ROWS_FIRST << (kept + segments.len()).min(16)).min(ROWS_LAST);
            match store.take(schema, room) {
                Ok(segment) => segments.push(segment),
                Err(error) => {
                    store.give_back(segments);
                    return Err(error);
                }
            }
        }
        Ok(Ready { rows, way, segments })
    }

    /// Where rows go whose keys these are.
    fn way(&self, schema: &Schema, new: &Keys<'_>) -> Way {
        let (order, has_key) = (schema.order(), schema.has_key());
        // Rows behind the first new one move. One with its key is replaced; rows of its very time, where there is no
        // key, came before it and stay.
        let is_before = |segment: &Segment<'_>| {
            let before = segment.keys(order).compare(segment.rows - 1, new, 0);
            before.is_lt() || (before.is_eq() && !has_key)
        };
        let before = self.segments.iter().rposition(|segment| segment.rows > 0 && is_before(segment));
        let behind = before.map_or(0, |before| before + 1);
        let Some(first) = self.segments[behind..].iter().position(|segment| segment.rows > 0) else {
            return Way::Append;
        };
        if has_key {
            let pairs = self.find(behind + first, order, new);
            if pairs.iter().map(|(_, pairs)| pairs.len()).sum::<usize>() == new.rows() {
                return Way::Replace(pairs);
            }
        }
        let first = behind + first;
        Way::Merge(first, self.segments[first].keys(order).rank(0, new, 0, !has_key))
    }

    /// Rows of segments from `first` on that have one of some keys: for each segment pairs of its row and the key's.
    fn find(&self, first: usize, order: &[usize], keys: &Keys<'_>) -> Vec<(usize, Vec<(usize, usize)>)> {
        let (mut found, mut key) = (Vec::new(), 0);
        for (index, segment) in self.segments.iter().enumerate().skip(first) {
            let mine = segment.keys(order);
            let (mut pairs, mut row) = (Vec::new(), 0);
            while key < keys.rows() {
                row = mine.rank(row, keys, key, false);
                if row == mine.rows() {
                    break;
                }
                if mine.compare(row, keys, key).is_eq() {
                    pairs.push((row, key));
                }
                key += 1;
            }
            if !pairs.is_empty() {
                found.push((index, pairs));
            }
        }
        found
    }

    /// Takes out the rows that have one of some keys, which are in order; returns how many.
    pub(crate) fn remove(&mut self, schema: &Schema, keys: &Keys<'_>) -> usize {
        let mut removed = 0;
        for (segment, pairs) in self.find(0, schema.order(), keys) {
            let rows: Vec<usize> = pairs.into_iter().map(|(row, _)| row).collect();
            self.segments[segment].remove(&rows);
            removed += rows.len();
        }
        removed
    }

    /// Does what was prepared.
    pub(crate) fn commit(&mut self, ready: Ready<'a>, schema: &Schema) {
        let Ready { rows, way, segments } = ready;
        let first = match way {
            Way::Append => self.segments.len().saturating_sub(1),
            Way::Merge(segment, stay) => {
                self.segments[segment].cut(stay);
                self.segments[segment + 1..].iter_mut().for_each(Segment::clear);
                segment
            }
            Way::Replace(places) => {
                for (segment, pairs) in places {
                    self.segments[segment].replace(&rows, &pairs);
                }
                return;
            }
        };
        self.segments.extend(segments);
        let (mut row, count) = (0, rows[schema.time()].whole().len());
        for segment in &mut self.segments[first..] {
            let end = count.min(row + segment.room - segment.rows);
            segment.push(&rows, row..end);
            row = end;
        }
        debug_assert_eq!(row, count, "memory was taken for every row");
    }

    /// Its rows.
    pub(crate) fn all(&self, schema: &Schema) -> Vec<Loose> {
        self.tail(schema, (0, 0))
    }

    /// The rows from a place on.
    fn tail(&self, schema: &Schema, (first, stay): (usize, usize)) -> Vec<Loose> {
        let mut rows: Vec<Loose> = schema.columns().iter().map(|column| Loose::empty(column.kind)).collect();
        for (index, segment) in self.segments[first..].iter().enumerate() {
            let from = if index == 0 { stay } else { 0 };
            for (column, loose) in rows.iter_mut().enumerate() {
                loose.extend_from_view(segment.view(column).cut(from..segment.rows));
            }
        }
        rows
    }
}

impl<'a> Ready<'a> {
    /// Gives the memory back that was taken.
    pub(crate) fn undo(&mut self, store: &mut Store<'a>) {
        store.give_back(mem::take(&mut self.segments));
    }
}
