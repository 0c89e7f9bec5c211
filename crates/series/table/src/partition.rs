//! A partition: segments of rows in time order.

use std::mem;

use planish_arena::{Arena, ArenaError};

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

    /// Rows that fit into free segments.
    pub(crate) fn free_rows(&self) -> usize {
        self.free.iter().map(|segment| segment.room).sum()
    }
}

/// Rows of one group of symbols and one span of time, in time order; rows of one time in the order in which they
/// came.
#[derive(Debug, Default)]
pub(crate) struct Partition<'a> {
    pub(crate) segments: Vec<Segment<'a>>,
}

/// What an append to one partition will do; nothing is done yet.
pub(crate) struct Ready<'a> {
    /// Rows to write, in time order: those that came, merged with those that they come before.
    rows: Vec<Loose>,
    /// Where the first of them goes: the segment, and its rows that stay.
    at: Option<(usize, usize)>,
    /// Empty segments that will be needed.
    segments: Vec<Segment<'a>>,
}

impl<'a> Partition<'a> {
    pub(crate) fn rows(&self) -> usize {
        self.segments.iter().map(|segment| segment.rows).sum()
    }

    /// Prepares to add rows, which are in time order, and takes the memory for them.
    pub(crate) fn prepare(
        &self,
        store: &mut Store<'a>,
        schema: &Schema,
        new: Vec<Loose>,
    ) -> Result<Ready<'a>, ArenaError> {
        let time = schema.time();
        let Some(&first) = new[time].whole().first() else {
            return Ok(Ready { rows: new, at: None, segments: Vec::new() });
        };
        // Rows after the first new one move; rows of its very time came before it and stay.
        let at = self.segments.iter().position(|segment| segment.times(time).last() > Some(&first));
        let at = at.map(|segment| {
            (segment, self.segments[segment].times(time).partition_point(|&other| other <= first))
        });
        let rows = match at {
            Some(at) => merge(&self.tail(schema, at), &new, time),
            None => new,
        };
        let mut wanted = rows[time].whole().len();
        // The segment that is written to first, and those behind it, keep their memory.
        let (mut room, kept) = match at {
            Some((segment, stay)) => (
                self.segments[segment..].iter().map(|segment| segment.room).sum::<usize>() - stay,
                self.segments.len(),
            ),
            None => {
                (self.segments.last().map_or(0, |segment| segment.room - segment.rows), self.segments.len())
            }
        };
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
        Ok(Ready { rows, at, segments })
    }

    /// Does what was prepared.
    pub(crate) fn commit(&mut self, ready: Ready<'a>, schema: &Schema) {
        let Ready { rows, at, segments } = ready;
        let first = match at {
            Some((segment, stay)) => {
                self.segments[segment].cut(stay);
                self.segments[segment + 1..].iter_mut().for_each(Segment::clear);
                segment
            }
            None => self.segments.len().saturating_sub(1),
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

    /// The rows from a place on.
    fn tail(&self, schema: &Schema, (first, stay): (usize, usize)) -> Vec<Loose> {
        let mut rows: Vec<Loose> = schema.columns().iter().map(|column| Loose::empty(column.kind)).collect();
        for (index, segment) in self.segments[first..].iter().enumerate() {
            let from = if index == 0 { stay } else { 0 };
            for (loose, column) in rows.iter_mut().zip(&segment.columns) {
                loose.extend_from_slice(column, from..segment.rows);
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

/// Two tables in time order as one; of one time, the rows of `old` first.
fn merge(old: &[Loose], new: &[Loose], time: usize) -> Vec<Loose> {
    let (old_times, new_times) = (old[time].whole(), new[time].whole());
    // Runs of rows that come from one side: how many of the old, then how many of the new.
    let mut runs = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < old_times.len() || right < new_times.len() {
        let until = new_times.get(right).copied();
        let olds = until.map_or(old_times.len(), |until| {
            left + old_times[left..].partition_point(|&other| other <= until)
        });
        let until = old_times.get(olds).copied();
        let news = until.map_or(new_times.len(), |until| {
            right + new_times[right..].partition_point(|&other| other < until)
        });
        runs.push((left..olds, right..news));
        (left, right) = (olds, news);
    }
    let column = |(old, new): (&Loose, &Loose)| {
        let mut merged = match old {
            Loose::Whole(_) => Loose::Whole(Vec::new()),
            Loose::Symbol(_) => Loose::Symbol(Vec::new()),
            Loose::Float(_) => Loose::Float(Vec::new()),
        };
        for (olds, news) in &runs {
            merged.extend_from(old, olds.clone());
            merged.extend_from(new, news.clone());
        }
        merged
    };
    old.iter().zip(new).map(column).collect()
}
