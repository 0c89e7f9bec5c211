//! Runs of pages laid over mappings: which page belongs to which.

use std::ops::Range;

use planish_sys::pagemap::{Filled, Run};

/// Pages that are alike, in one mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the mapping.
    pub area: usize,
    /// Its addresses.
    pub range: Range<u64>,
    /// What the pages are.
    pub filled: Filled,
}

/// Cuts `runs` at the ends of `areas`, the addresses of mappings; both in rising order of addresses. What lies in no
/// mapping was mapped after the mappings were read, and is left out.
pub fn join<'a>(areas: &'a [Range<u64>], runs: &'a [Run]) -> impl Iterator<Item = Piece> + 'a {
    let mut first = 0;
    runs.iter().flat_map(move |run| {
        while areas.get(first).is_some_and(|area| area.end <= run.range.start) {
            first += 1;
        }
        let touched = areas.iter().enumerate().skip(first);
        let touched = touched.take_while(|(_, area)| area.start < run.range.end);
        touched.filter_map(|(index, area)| {
            let range = area.start.max(run.range.start)..area.end.min(run.range.end);
            (!range.is_empty()).then_some(Piece { area: index, range, filled: run.filled })
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ranges in rising order that do not overlap.
    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        proptest::collection::vec((0u64..4, 1u64..6), 0..24).prop_map(|steps| {
            let mut at = 1;
            let mut range = |(gap, length): (u64, u64)| {
                let start = at + gap;
                at = start + length;
                start..at
            };
            steps.into_iter().map(&mut range).collect()
        })
    }

    proptest! {
        #[test]
        fn every_address_that_both_have_is_in_one_piece(areas in ranges(), runs in ranges()) {
            let runs: Vec<Run> = runs.into_iter().map(|range| Run { range, filled: Filled::Base }).collect();
            let pieces: Vec<Piece> = join(&areas, &runs).collect();
            for address in 0..200u64 {
                let in_run = runs.iter().any(|run| run.range.contains(&address));
                let area = areas.iter().position(|area| area.contains(&address));
                let holding: Vec<usize> =
                    pieces.iter().filter(|piece| piece.range.contains(&address)).map(|piece| piece.area).collect();
                let expected: Vec<usize> = area.filter(|_| in_run).into_iter().collect();
                prop_assert_eq!(holding, expected, "at {}", address);
            }
        }
    }
}
