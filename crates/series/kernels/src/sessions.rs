//! Sessions: stretches of rows without a long pause.

use std::ops::Range;

use crate::{KernelError, Times};

/// Rows that follow each other with no more than a given pause between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its rows, counted over all chunks.
    pub rows: Range<u64>,
    /// Time of the first row.
    pub first: i64,
    /// Time of the last row.
    pub last: i64,
}

/// Cuts a time column where a pause is longer than `gap`. Feed chunks in time order, then
/// [`finish`](Self::finish).
#[derive(Debug, Clone)]
pub struct Sessions {
    gap: u64,
    rows: u64,
    open: Option<Session>,
}

impl Sessions {
    /// Pauses of up to `gap`, in the unit of the time column, stay inside a session.
    #[must_use]
    pub fn new(gap: u64) -> Self {
        Self { gap, rows: 0, open: None }
    }

    /// Takes one chunk and hands every session that is complete to `emit`.
    ///
    /// # Errors
    /// [`KernelError::ChunkOrder`] when the chunk begins before the last one ended; nothing is taken then.
    pub fn feed(&mut self, times: Times<'_>, mut emit: impl FnMut(Session)) -> Result<(), KernelError> {
        let times = times.as_slice();
        let Some(&first) = times.first() else { return Ok(()) };
        if let Some(before) = self.open.as_ref().map(|open| open.last).filter(|&last| last > first) {
            return Err(KernelError::ChunkOrder { before, time: first });
        }
        for &time in times {
            let row = self.rows;
            self.rows += 1;
            match &mut self.open {
                Some(open) if time.abs_diff(open.last) <= self.gap => {
                    (open.rows.end, open.last) = (row + 1, time);
                }
                open => {
                    let done = open.replace(Session { rows: row..row + 1, first: time, last: time });
                    done.into_iter().for_each(&mut emit);
                }
            }
        }
        Ok(())
    }

    /// The last session, if there was any row.
    #[must_use]
    pub fn finish(self) -> Option<Session> {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sorted_times;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_cutting_at_every_long_pause(times in sorted_times(50), gap in 0u64..40, cut in 0usize..50) {
            let mut sessions = Sessions::new(gap);
            let mut got = Vec::new();
            let cut = cut.min(times.len());
            for part in [&times[..cut], &times[cut..]] {
                sessions.feed(Times::new(part).unwrap(), |session| got.push(session)).unwrap();
            }
            got.extend(sessions.finish());
            let chunks = times.chunk_by(|before, after| after.abs_diff(*before) <= gap);
            let mut row = 0;
            let wanted: Vec<Session> = chunks
                .map(|times| {
                    let rows = row..row + times.len() as u64;
                    row = rows.end;
                    Session { rows, first: times[0], last: times[times.len() - 1] }
                })
                .collect();
            prop_assert_eq!(got, wanted);
        }
    }

    #[test]
    fn the_longest_pause_does_not_overflow() {
        let mut sessions = Sessions::new(u64::MAX);
        sessions.feed(Times::new(&[i64::MIN, i64::MAX]).unwrap(), |_| panic!("one session")).unwrap();
        assert_eq!(sessions.clone().finish().map(|session| session.rows), Some(0..2));
        let early = sessions.feed(Times::new(&[3]).unwrap(), |_| ());
        assert_eq!(early, Err(KernelError::ChunkOrder { before: i64::MAX, time: 3 }));
    }
}
