//! Slices and maps put in order by one sort for all types.
//!
//! A sort of the standard library is made anew for every type of element and every closure that compares, of 4 kB each
//! time, and `collect` into a `BTreeMap` holds one for every iterator. Here places are sorted instead of elements, by
//! one sort that is compiled once; what is left for each type is a comparison and a swap. A comparison is a call
//! through a pointer and a sort allocates a word an element, so what has an element a sample, or a row, sorts itself.
//!
//! Pure: nothing here knows what it sorts.
#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Where the elements of an order stand now: `0..count` by `compare`, which is given two places. Equal ones stay as
/// they stood.
#[inline(never)]
fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|one, other| compare(*one, *other));
    places
}

/// Brings each element to its place, by swaps along each circle of places.
#[inline(never)]
fn settle(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..places.len() {
        let mut at = start;
        while places[at] != start {
            let from = places[at];
            swap(at, from);
            places[at] = at;
            at = from;
        }
        places[at] = at;
    }
}

/// The sorts of slices under names of their own: each gives the order that its namesake of the standard library gives.
pub trait SortSmall<T> {
    /// [`slice::sort_by`].
    fn sort_small_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// [`slice::sort_by_key`].
    fn sort_small_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);

    /// [`slice::sort_by_cached_key`].
    fn sort_small_by_cached_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> SortSmall<T> for [T] {
    fn sort_small_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let places = places(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        settle(places, &mut |one, other| self.swap(one, other));
    }

    fn sort_small_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_small_by(|one, other| key(one).cmp(&key(other)));
    }

    fn sort_small_by_cached_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        let keys: Vec<K> = self.iter().map(key).collect();
        let places = places(keys.len(), &mut |one, other| keys[one].cmp(&keys[other]));
        settle(places, &mut |one, other| self.swap(one, other));
    }
}

/// Pairs that become a map.
pub trait CollectMap<K, V>: Iterator<Item = (K, V)> + Sized {
    /// What `collect` gives: of equal keys the last value, though the key that came first.
    fn collect_map(mut self) -> BTreeMap<K, V>
    where
        K: Ord,
    {
        map(&mut self)
    }
}

impl<K, V, I: Iterator<Item = (K, V)>> CollectMap<K, V> for I {}

/// One for all iterators over a pair of types.
#[inline(never)]
fn map<K: Ord, V>(pairs: &mut dyn Iterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orders_are_those_of_the_standard_library(given in prop::collection::vec(0_u8..8, 0..40)) {
            // The second field tells equal elements apart.
            let given: Vec<(u8, usize)> = given.into_iter().zip(0..).collect();
            let mut wanted = given.clone();
            wanted.sort_by_key(|pair| std::cmp::Reverse(pair.0));
            let mut found = given.clone();
            found.sort_small_by(|one, other| other.0.cmp(&one.0));
            prop_assert_eq!(&found, &wanted);
            wanted.clone_from(&given);
            wanted.sort_by_key(|pair| pair.0);
            found.clone_from(&given);
            found.sort_small_by_key(|pair| pair.0);
            prop_assert_eq!(&found, &wanted);
            found.clone_from(&given);
            found.sort_small_by_cached_key(|pair| pair.0.to_string());
            prop_assert_eq!(&found, &wanted);
            let order: Vec<_> = places(given.len(), &mut |one, other| given[one].0.cmp(&given[other].0))
                .into_iter().map(|at| given[at]).collect();
            prop_assert_eq!(&order, &wanted);
        }

        #[test]
        fn maps_are_those_of_collect(given in prop::collection::vec((0_u8..8, any::<u16>()), 0..40)) {
            let wanted: BTreeMap<u8, u16> = given.iter().copied().collect();
            prop_assert_eq!(given.iter().copied().collect_map(), wanted);
        }
    }

    #[test]
    fn a_key_is_asked_once_an_element_where_it_is_kept() {
        let (mut asked, mut given) = (0, [3, 1, 2, 1]);
        given.sort_small_by_cached_key(|number| {
            asked += 1;
            *number
        });
        assert_eq!((given, asked), ([1, 1, 2, 3], 4));
    }
}
