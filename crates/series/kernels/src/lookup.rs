//! Lookup join: each key finds its one row in a table that is larger than any cache.
//!
//! Scans are kind to small pages: the hardware runs ahead of them. This join is what is not: each probe lands
//! on an unrelated page, so with 4 KB pages nearly each one walks the page table, and with huge pages nearly
//! none does. It is the part of a database (hash joins, indexes, symbol and order books) that page size is
//! for.
//!
//! The table is one open-addressed array in memory that the caller chose. A probe begins at a hash of the key
//! and goes on slot by slot; at a load of one half that is 1.5 slots, nearly always in one cache line.

use crate::KernelError;

/// One entry of the table: two words, never across a cache line when the array is aligned to one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(16))]
pub struct Slot {
    key: u64,
    value: f64,
}

impl Slot {
    /// An entry without a key; fill the array with it.
    pub const EMPTY: Self = Self { key: EMPTY_KEY, value: 0.0 };
}

/// Marks a free slot; not usable as a key.
const EMPTY_KEY: u64 = u64::MAX;

/// A lookup table over slots that somebody else owns.
#[derive(Debug, Clone, Copy)]
pub struct LookupTable<'a> {
    slots: &'a [Slot],
}

impl<'a> LookupTable<'a> {
    /// Fills `slots` with the rows `(keys[i], values[i])`, forgetting what was there. At least one slot stays
    /// free, so that a probe for an absent key ends.
    ///
    /// # Errors
    /// [`KernelError::Length`] when the columns differ, [`KernelError::Parameter`] when there are not more
    /// slots than rows or a key is `u64::MAX`, [`KernelError::DuplicateKey`] when a key comes twice.
    pub fn build(slots: &'a mut [Slot], keys: &[u64], values: &[f64]) -> Result<Self, KernelError> {
        KernelError::check_length("value", keys.len(), values.len())?;
        if slots.len() <= keys.len() {
            let (name, wanted) = ("slots", "more than rows");
            return Err(KernelError::Parameter { name, value: slots.len().to_string(), wanted });
        }
        if keys.contains(&EMPTY_KEY) {
            let (name, wanted) = ("key", "below 18446744073709551615");
            return Err(KernelError::Parameter { name, value: EMPTY_KEY.to_string(), wanted });
        }
        slots.fill(Slot::EMPTY);
        for (row, (&key, &value)) in keys.iter().zip(values).enumerate() {
            let mut at = home(key, slots.len());
            while slots[at].key != EMPTY_KEY {
                if slots[at].key == key {
                    return Err(KernelError::DuplicateKey { row, key });
                }
                at = next(at, slots.len());
            }
            slots[at] = Slot { key, value };
        }
        Ok(Self { slots })
    }

    /// The value of `key`. `None` is an absent key; a null value is `Some(NaN)`.
    #[inline]
    pub fn get(&self, key: u64) -> Option<f64> {
        let mut at = home(key, self.slots.len());
        loop {
            let slot = &self.slots[at];
            if slot.key == EMPTY_KEY {
                return None;
            }
            if slot.key == key {
                return Some(slot.value);
            }
            at = next(at, self.slots.len());
        }
    }

    /// Left join: writes the value of each key to `out`, NaN where it is absent, and returns how many were
    /// found. The probes do not depend on each other, so the processor overlaps them.
    ///
    /// # Errors
    /// [`KernelError::Length`] when `out` differs in length from `keys`.
    pub fn join(&self, keys: &[u64], out: &mut [f64]) -> Result<u64, KernelError> {
        KernelError::check_length("out", keys.len(), out.len())?;
        let mut found = 0;
        for (&key, out) in keys.iter().zip(out) {
            let value = self.get(key);
            found += u64::from(value.is_some());
            *out = value.unwrap_or(f64::NAN);
        }
        Ok(found)
    }
}

/// Where the probe for a key begins: the key well mixed (the finaliser of splitmix64), scaled to the table by
/// a multiplication, so that a table may have any length.
#[inline]
fn home(key: u64, slots: usize) -> usize {
    let mut hash = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    ((u128::from(hash) * slots as u128) >> 64) as usize
}

#[inline]
fn next(at: usize, slots: usize) -> usize {
    if at + 1 == slots { 0 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::null_or_value;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn equals_a_hash_map_at_any_load(
            rows in prop::collection::hash_map(prop_oneof![0u64..50, any::<u64>()], null_or_value(), 0..60),
            probes in prop::collection::vec(prop_oneof![0u64..50, any::<u64>()], 0..80), spare in 1usize..70,
        ) {
            let rows: HashMap<u64, f64> = rows.into_iter().filter(|row| row.0 != u64::MAX).collect();
            let (keys, values): (Vec<u64>, Vec<f64>) = rows.iter().unzip();
            let mut slots = vec![Slot { key: 3, value: 9.0 }; keys.len() + spare];
            let table = LookupTable::build(&mut slots, &keys, &values).unwrap();
            let mut out = vec![0.0; probes.len()];
            let found = table.join(&probes, &mut out).unwrap();
            prop_assert_eq!(found, probes.iter().filter(|probe| rows.contains_key(probe)).count() as u64);
            for (probe, got) in probes.iter().zip(out) {
                let wanted = rows.get(probe).copied().unwrap_or(f64::NAN);
                prop_assert_eq!(got.to_bits(), wanted.to_bits());
            }
        }
    }

    #[test]
    fn refuses_what_it_cannot_hold() {
        let mut slots = [Slot::EMPTY; 3];
        let twice = LookupTable::build(&mut slots, &[5, 5], &[1.0, 2.0]).map(|_| ());
        assert_eq!(twice, Err(KernelError::DuplicateKey { row: 1, key: 5 }));
        let full = LookupTable::build(&mut slots, &[1, 2, 3], &[0.0; 3]).map(|_| ());
        assert!(matches!(full, Err(KernelError::Parameter { name: "slots", .. })));
        let reserved = LookupTable::build(&mut slots, &[u64::MAX], &[0.0]).map(|_| ());
        assert!(matches!(reserved, Err(KernelError::Parameter { name: "key", .. })));
        assert_eq!(LookupTable::build(&mut slots, &[7], &[1.5]).unwrap().get(u64::MAX), None);
    }

    #[test]
    fn neighbours_land_far_apart() {
        let slots = 1 << 20;
        let near = (0..1000u64).filter(|&key| home(key, slots).abs_diff(home(key + 1, slots)) < 256).count();
        assert!(near < 10, "{near} of 1000 neighbours share a page");
    }
}
