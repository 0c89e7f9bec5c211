//! Lookup join: each key finds its one row in a table that is larger than any cache.
//!
//! Scans are kind to small pages: the hardware runs ahead of them. This join is what is not: each probe lands
//! on an unrelated page, so with 4 KB pages nearly each one walks the page table, and with huge pages nearly
//! none does. It is the part of a database (hash joins, indexes, symbol and order books) that page size is
//! for.
//!
//! The table is one open-addressed array of buckets in memory that the caller chose; a bucket is four rows in
//! one cache line. A probe reads the bucket that the hash names and compares all four keys, without a branch
//! that the data could make unpredictable: at half load, 19 of 20 probes end there, and many probes are under
//! way at once.

use crate::KernelError;

/// Rows of a bucket: keys and values fill one cache line of 64 bytes.
const BUCKET_ROWS: usize = 4;

/// Marks a free row; not usable as a key.
const EMPTY_KEY: u64 = u64::MAX;

/// Up to four rows of the table, in one cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub struct Bucket {
    keys: [u64; BUCKET_ROWS],
    values: [f64; BUCKET_ROWS],
}

impl Bucket {
    /// Rows that a bucket holds.
    pub const ROWS: usize = BUCKET_ROWS;

    /// A bucket without rows; fill the array with it.
    pub const EMPTY: Self = Self { keys: [EMPTY_KEY; BUCKET_ROWS], values: [0.0; BUCKET_ROWS] };

    /// The row of `key` here. Compares all of them: a loop that may end early ends where no processor can
    /// foresee.
    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let bit = |row: usize| u32::from(self.keys[row] == key) << row;
        let hits = (0..BUCKET_ROWS).fold(0, |hits, row| hits | bit(row));
        (hits != 0).then(|| hits.trailing_zeros() as usize)
    }

    /// Whether a row is free, so that no row of this bucket went on to the next. Rows are filled in order.
    #[inline]
    fn has_room(&self) -> bool {
        self.keys[BUCKET_ROWS - 1] == EMPTY_KEY
    }
}

/// A lookup table over buckets that somebody else owns.
#[derive(Debug, Clone, Copy)]
pub struct LookupTable<'a> {
    buckets: &'a [Bucket],
}

impl<'a> LookupTable<'a> {
    /// Fills `buckets` with `rows` of key and value, forgetting what was there. Rows come one by one, so that
    /// a table of gigabytes needs no second copy of itself. At least one row stays free, so that a probe for
    /// an absent key ends; for speed, leave half of them free.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] when there is not room for more than the rows or a key is `u64::MAX`,
    /// [`KernelError::DuplicateKey`] when a key comes twice. The table then holds the rows before that one.
    pub fn build(
        buckets: &'a mut [Bucket],
        rows: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<Self, KernelError> {
        buckets.fill(Bucket::EMPTY);
        let room = buckets.len() * BUCKET_ROWS;
        let parameter = |name, value: String, wanted| KernelError::Parameter { name, value, wanted };
        if room == 0 {
            return Err(parameter("buckets", "0".into(), "at least 1"));
        }
        for (row, (key, value)) in rows.into_iter().enumerate() {
            if key == EMPTY_KEY {
                return Err(parameter("key", key.to_string(), "below 18446744073709551615"));
            }
            if row + 1 == room {
                return Err(parameter("rows", format!("{room} or more"), "fewer than the buckets hold"));
            }
            let mut at = home(key, buckets.len());
            while buckets[at].find(key).is_none() && !buckets[at].has_room() {
                at = next(at, buckets.len());
            }
            let bucket = &mut buckets[at];
            if bucket.find(key).is_some() {
                return Err(KernelError::DuplicateKey { row, key });
            }
            let free = bucket.keys.iter().position(|&key| key == EMPTY_KEY);
            let free = free.expect("the search ended at a bucket with room");
            (bucket.keys[free], bucket.values[free]) = (key, value);
        }
        Ok(Self { buckets })
    }

    /// The value of `key`. `None` is an absent key; a null value is `Some(NaN)`.
    #[inline]
    pub fn get(&self, key: u64) -> Option<f64> {
        if key == EMPTY_KEY {
            return None;
        }
        let mut at = home(key, self.buckets.len());
        loop {
            let bucket = &self.buckets[at];
            if let Some(row) = bucket.find(key) {
                return Some(bucket.values[row]);
            }
            if bucket.has_room() {
                return None;
            }
            at = next(at, self.buckets.len());
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

/// The bucket at which the probe for a key begins: the key well mixed (the finaliser of splitmix64), scaled
/// to the table by a multiplication, so that a table may have any length.
#[inline]
fn home(key: u64, buckets: usize) -> usize {
    let mut hash = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

#[inline]
fn next(at: usize, buckets: usize) -> usize {
    if at + 1 == buckets { 0 } else { at + 1 }
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
            let stale = Bucket { keys: [3; BUCKET_ROWS], values: [9.0; BUCKET_ROWS] };
            let mut buckets = vec![stale; (rows.len() + spare).div_ceil(BUCKET_ROWS)];
            let table = LookupTable::build(&mut buckets, rows.clone()).unwrap();
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
        let mut buckets = [Bucket::EMPTY; 1];
        let mut refuse =
            |rows: &[(u64, f64)]| LookupTable::build(&mut buckets, rows.iter().copied()).map(|_| ());
        assert_eq!(refuse(&[(5, 1.0), (5, 2.0)]), Err(KernelError::DuplicateKey { row: 1, key: 5 }));
        let full = refuse(&[(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)]);
        assert!(matches!(full, Err(KernelError::Parameter { name: "rows", .. })));
        let reserved = refuse(&[(u64::MAX, 0.0)]);
        assert!(matches!(reserved, Err(KernelError::Parameter { name: "key", .. })));
        assert!(LookupTable::build(&mut [], []).is_err());
        assert_eq!(LookupTable::build(&mut buckets, [(7, 1.5)]).unwrap().get(u64::MAX), None);
    }

    #[test]
    fn neighbours_land_far_apart() {
        let buckets = 1 << 20;
        let near = |&key: &u64| home(key, buckets).abs_diff(home(key + 1, buckets)) < 64;
        let near = (0..1000).filter(near).count();
        assert!(near < 10, "{near} of 1000 neighbours share a page");
    }
}
