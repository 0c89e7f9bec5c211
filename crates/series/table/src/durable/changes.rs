//! Which spans of time have changed, for who keeps something that was made of the rows: bars, above all.
//!
//! Invariant: a span of which some row came, was replaced or was deleted is noted before anybody can read the table
//! that way, and stays noted until it is [taken](Changes::take). What is noted beyond that (a batch of a key that
//! nobody had) costs a look, and no right answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::durable::{Durable, State};
use crate::error::TableError;
use crate::log::Change;
use crate::schema::Schema;
use crate::table::Cells;

/// Notes which spans of a width change: see [`Durable::watch`].
#[derive(Debug)]
pub struct Changes {
    width: i64,
    /// Start of a span, and the earliest time in it of a row that changed.
    found: Mutex<BTreeMap<i64, i64>>,
}

impl Changes {
    /// What changed since the last call: the start of each span, and the earliest time in it of a row that came, was
    /// replaced or was deleted. Starts are multiples of the width; one that would lie before the first of all times is
    /// that time. Who holds a [`Reading`](crate::Reading) meanwhile has all that changed up to it, and nothing else.
    #[must_use]
    pub fn take(&self) -> BTreeMap<i64, i64> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// First and last time of the span that a time lies in.
    #[must_use]
    pub fn span(&self, time: i64) -> (i64, i64) {
        let into = time.rem_euclid(self.width);
        (time.saturating_sub(into), time.saturating_add(self.width - 1 - into))
    }

    fn note(&self, times: &[i64]) {
        let Some(&first) = times.first() else { return };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut put = |start: i64, earliest: i64| {
            found.entry(start).and_modify(|known| *known = earliest.min(*known)).or_insert(earliest);
        };
        let (mut start, mut end) = self.span(first);
        let mut earliest = first;
        for &time in times {
            // Rows mostly come in order, a span after another.
            if !(start..=end).contains(&time) {
                put(start, earliest);
                (start, end) = self.span(time);
                earliest = time;
            }
            earliest = earliest.min(time);
        }
        put(start, earliest);
    }
}

impl Durable<'_> {
    /// Has the table note which spans of a width change from now on, for as long as somebody has what is returned. Rows
    /// that [`drop_before`](Self::drop_before) lets go of are told by [`kept_from`](Self::kept_from) alone.
    ///
    /// # Errors
    /// [`TableError::Memory`] when there is no room for an acknowledged batch, which nobody could note then.
    ///
    /// # Panics
    /// When the width is not above 0.
    pub fn watch(&self, width: i64) -> Result<Arc<Changes>, TableError> {
        assert!(width > 0, "a span of {width}");
        let changes = Arc::new(Changes { width, found: Mutex::default() });
        let mut state = self.write_state();
        self.apply_to(&mut state)?;
        state.watches.0.push(Arc::downgrade(&changes));
        Ok(changes)
    }
}

/// Those who asked.
#[derive(Debug, Default)]
pub(super) struct Watches(Vec<Weak<Changes>>);

impl State<'_> {
    /// Notes what a batch changes.
    pub(super) fn note(&mut self, change: Change, batch: &[Cells<'_>]) {
        if self.watches.0.is_empty() {
            return;
        }
        let times = times_of(self.table.schema(), change, batch);
        self.watches.0.retain(|watch| match watch.upgrade() {
            Some(changes) => {
                changes.note(times);
                true
            }
            None => false,
        });
    }
}

/// The times of rows, or of keys to delete.
fn times_of<'b>(schema: &Schema, change: Change, batch: &[Cells<'b>]) -> &'b [i64] {
    let time = schema.time();
    let column = match change {
        Change::Rows => Some(time),
        Change::Delete => schema.key().iter().position(|&column| column == time),
    };
    match column.and_then(|column| batch.get(column)) {
        Some(Cells::Times(times)) => times,
        _ => unreachable!("rows and keys have their time"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_are_noted_with_the_earliest_time_that_changed(
            batches in prop::collection::vec(prop::collection::vec(-60i64..60, 0..20), 0..6), width in 1i64..20,
        ) {
            let changes = Changes { width, found: Mutex::default() };
            let mut wanted: BTreeMap<i64, i64> = BTreeMap::new();
            for times in &batches {
                changes.note(times);
                for &time in times {
                    let known = wanted.entry(time.div_euclid(width) * width).or_insert(time);
                    *known = time.min(*known);
                }
            }
            prop_assert_eq!(changes.take(), wanted);
            prop_assert!(changes.take().is_empty());
        }
    }

    #[test]
    fn the_ends_of_time_have_spans() {
        let changes = Changes { width: 10, found: Mutex::default() };
        changes.note(&[i64::MIN, i64::MAX]);
        let last = i64::MAX - i64::MAX.rem_euclid(10);
        assert_eq!(changes.take(), BTreeMap::from([(i64::MIN, i64::MIN), (last, i64::MAX)]));
    }
}
