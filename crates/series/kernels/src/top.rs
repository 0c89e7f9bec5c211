//! The largest values of a column.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// One of the largest values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopRow {
    /// The value; never NaN.
    pub value: f64,
    /// Its row, counted as the feeder counts.
    pub row: u64,
}

/// Larger values first; of equal ones, the earlier row. Zeros are equal whatever their sign.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place(TopRow);

impl Eq for Place {}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = self.0.value.partial_cmp(&other.0.value).expect("no value is NaN");
        by_value.then(other.0.row.cmp(&self.0.row))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The `n` largest values so far, nulls left out. Parts may come and merge in any order.
#[derive(Debug, Clone)]
pub struct TopN {
    n: usize,
    /// The smallest of them is on top.
    heap: BinaryHeap<Reverse<Place>>,
}

impl TopN {
    /// Keeps `n` rows.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self { n, heap: BinaryHeap::new() }
    }

    /// Takes the rows of one chunk, the first of which has number `first_row`.
    pub fn feed(&mut self, first_row: u64, values: &[f64]) {
        // Most rows end at this comparison, which NaN fails too.
        let mut least = self.least();
        for (row, &value) in (first_row..).zip(values) {
            if value >= least {
                self.offer(Place(TopRow { value, row }));
                least = self.least();
            }
        }
    }

    /// Adds the rows of another part.
    pub fn merge(&mut self, other: Self) {
        for Reverse(place) in other.heap {
            self.offer(place);
        }
    }

    /// The rows, largest first.
    #[must_use]
    pub fn rows(self) -> Vec<TopRow> {
        let mut places = self.heap.into_vec();
        places.sort_unstable();
        places.into_iter().map(|Reverse(place)| place.0).collect()
    }

    /// A value below this one has no place.
    fn least(&self) -> f64 {
        match self.heap.peek() {
            Some(Reverse(place)) if self.heap.len() == self.n => place.0.value,
            _ => f64::NEG_INFINITY,
        }
    }

    fn offer(&mut self, place: Place) {
        if self.heap.len() < self.n {
            self.heap.push(Reverse(place));
        } else if let Some(mut least) = self.heap.peek_mut()
            && least.0 < place
        {
            *least = Reverse(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::null_or_value;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_sort_cut_anywhere_and_merged_either_way(
            values in prop::collection::vec(null_or_value(), 0..60), n in 0usize..12, cut in 0usize..60,
        ) {
            let mut wanted: Vec<usize> = (0..values.len()).filter(|&row| !values[row].is_nan()).collect();
            wanted.sort_by(|&left, &right| values[right].partial_cmp(&values[left]).unwrap());
            wanted.truncate(n);
            let cut = cut.min(values.len());
            let part = |range: std::ops::Range<usize>| {
                let mut top = TopN::new(n);
                top.feed(range.start as u64, &values[range]);
                top
            };
            let (mut forward, mut backward) = (part(0..cut), part(cut..values.len()));
            let (first, second) = (forward.clone(), backward.clone());
            forward.merge(second);
            backward.merge(first);
            let mut fed = part(0..cut);
            fed.feed(cut as u64, &values[cut..]);
            for top in [forward, backward, fed] {
                let got: Vec<usize> = top.rows().iter().map(|row| row.row as usize).collect();
                prop_assert_eq!(&got, &wanted);
            }
        }
    }

    #[test]
    fn infinities_are_values() {
        let mut top = TopN::new(2);
        top.feed(0, &[f64::NEG_INFINITY, f64::NAN, f64::INFINITY]);
        let values: Vec<f64> = top.rows().iter().map(|row| row.value).collect();
        assert_eq!(values, [f64::INFINITY, f64::NEG_INFINITY]);
    }
}
