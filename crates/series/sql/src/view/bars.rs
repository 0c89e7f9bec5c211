//! The bars that a view holds: by bucket of time, in each by number of the symbol.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::view::sums::{Part, Size, Sums};

/// Bytes that a bucket takes besides its bars: its entry of the map, and the heads of two pieces of memory.
const BUCKET_BYTES: usize = 8 + size_of::<Bucket>() + 32;
/// Of a bucket that rows still come into, what lies further back than one part in so many of its width is summed up
/// once; what came since is added to that with every look.
const OPEN_SHARE: i64 = 16;

/// The bars of a bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Numbers of symbols, in order; one 0 where bars are not by symbol.
    pub(super) keys: Box<[u32]>,
    /// Parts of the first bar, then of the next.
    pub(super) words: Box<[u64]>,
}

/// Bars of one bucket in the making: symbols and their sums, in any order.
#[derive(Debug, Clone, Default)]
struct Making {
    bars: Vec<(u32, Sums)>,
    /// Where each symbol stands among them; [`NOWHERE`] for none.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Making {
    fn at(&mut self, key: u32) -> &mut Sums {
        let key_index = key as usize;
        if key_index >= self.places.len() {
            self.places.resize(key_index + 1, NOWHERE);
        }
        if self.places[key_index] == NOWHERE {
            self.places[key_index] = u32::try_from(self.bars.len()).expect("symbols are counted in 32 bits");
            self.bars.push((key, Sums::EMPTY));
        }
        let place = self.places[key_index] as usize;
        &mut self.bars[place].1
    }

    fn clear(&mut self) {
        self.bars.drain(..).for_each(|(key, _)| self.places[key as usize] = NOWHERE);
    }

    /// Adds the rows of some times; returns how many.
    fn add<S: Size>(&mut self, pieces: &[Piece<'_, S>], times: RangeInclusive<i64>) -> u64 {
        let mut rows = 0;
        for piece in pieces {
            let range = piece.rank(*times.start(), false)..piece.rank(*times.end(), true);
            if range.is_empty() {
                continue;
            }
            rows += range.len() as u64;
            let cells = piece.prices[range.clone()].iter().zip(&piece.sizes[range.clone()]);
            match piece.keys.get(range) {
                Some(keys) if !keys.is_empty() => {
                    keys.iter().zip(cells).for_each(|(&key, (&price, &size))| self.at(key).add(price, size));
                }
                _ => {
                    let sums = self.at(0);
                    cells.for_each(|(&price, &size)| sums.add(price, size));
                }
            }
        }
        rows
    }

    /// The bars as they are held.
    fn bucket(&mut self, parts: &[Part]) -> Bucket {
        self.bars.sort_unstable_by_key(|(key, _)| *key);
        for (place, (key, _)) in (0..).zip(&self.bars) {
            self.places[*key as usize] = place;
        }
        let words = self.bars.iter().flat_map(|(_, sums)| parts.iter().map(|&part| sums.word(part)));
        Bucket { keys: self.bars.iter().map(|(key, _)| *key).collect(), words: words.collect() }
    }
}

impl<S> Piece<'_, S> {
    /// The first row of a time or a later one; with `behind` the first of a later one.
    fn rank(&self, time: i64, behind: bool) -> usize {
        self.times.partition_point(|&row| row < time || (behind && row == time))
    }
}

/// The newest bucket, as far as no more rows are to be expected there.
#[derive(Debug)]
struct Open {
    start: i64,
    /// Rows up to here are summed up.
    through: i64,
    making: Making,
}

/// A bucket that is to be read: whole, or behind what of it is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) start: i64,
    pub(super) end: i64,
    /// The first time to be read.
    pub(super) from: i64,
}

/// Rows in order of time, with what bars are made of; not empty.
pub(super) struct Piece<'t, S> {
    pub(super) times: &'t [i64],
    /// Empty where bars are not by symbol.
    pub(super) keys: &'t [u32],
    pub(super) prices: &'t [f64],
    pub(super) sizes: &'t [S],
}

/// All of a view.
#[derive(Debug, Default)]
pub(super) struct Bars {
    parts: Vec<Part>,
    buckets: BTreeMap<i64, Bucket>,
    open: Option<Open>,
    /// Memory for the next bucket.
    spare: Making,
    bars: usize,
}

impl Bars {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        Self { parts, ..Self::default() }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Bars.
    pub(super) fn count(&self) -> usize {
        self.bars
    }

    /// Bytes of memory, about.
    pub(super) fn bytes(&self) -> usize {
        let bar_bytes = size_of::<u32>() + self.parts.len() * size_of::<u64>();
        let open = self.open.iter().map(|open| &open.making).chain([&self.spare]);
        let making = |it: &Making| it.bars.capacity() * size_of::<(u32, Sums)>() + it.places.capacity() * 4;
        self.bars * bar_bytes + self.buckets.len() * BUCKET_BYTES + open.map(making).sum::<usize>()
    }

    /// Buckets by their starts.
    pub(super) fn range(&self, starts: RangeInclusive<i64>) -> impl Iterator<Item = (i64, &Bucket)> {
        // Of an empty range the map would panic.
        let is_empty = starts.is_empty();
        let starts = if is_empty { 0..=0 } else { starts };
        self.buckets.range(starts).filter(move |_| !is_empty).map(|(start, bucket)| (*start, bucket))
    }

    /// What is to be read of a bucket of which rows from a time on have changed.
    pub(super) fn spot(&self, (start, end): (i64, i64), changed_from: i64) -> Spot {
        match &self.open {
            Some(open) if open.start == start && changed_from > open.through => {
                Spot { start, end, from: open.through.saturating_add(1) }
            }
            _ => Spot { start, end, from: start },
        }
    }

    /// Makes the bars of buckets anew, of the rows of each; returns how many those were. Both are in order, and pieces
    /// may have rows of other buckets.
    pub(super) fn put<S: Size>(&mut self, spots: &[Spot], pieces: &[Piece<'_, S>]) -> u64 {
        let (mut rows, mut first) = (0, 0);
        for &spot in spots {
            while pieces.get(first).is_some_and(|piece| piece.times.last() < Some(&spot.from)) {
                first += 1;
            }
            let end = first + pieces[first..].partition_point(|piece| piece.times.first() <= Some(&spot.end));
            rows += self.put_bucket(spot, &pieces[first..end]);
        }
        rows
    }

    fn put_bucket<S: Size>(&mut self, spot: Spot, pieces: &[Piece<'_, S>]) -> u64 {
        let Spot { start, end, from } = spot;
        let mut sealed = match self.open.take_if(|open| open.start == start) {
            Some(open) if from > start => open.making,
            _ => {
                debug_assert_eq!(from, start, "what is summed up is there until it is read on from");
                std::mem::take(&mut self.spare)
            }
        };
        if from == start {
            sealed.clear();
        }
        let is_newest = self.buckets.last_key_value().is_none_or(|(newest, _)| *newest <= start);
        if !is_newest {
            let rows = sealed.add(pieces, from..=end);
            self.write(start, &mut sealed);
            self.spare = sealed;
            return rows;
        }
        let last = pieces.iter().filter_map(|piece| piece.times[..piece.rank(end, true)].last()).max();
        let margin = ((end - start) / OPEN_SHARE).max(1);
        let through = last.map_or(i64::MIN, |last| last.saturating_sub(margin)).max(from.saturating_sub(1));
        let mut rows = sealed.add(pieces, from..=through);
        let mut all = sealed.clone();
        if through < end {
            rows += all.add(pieces, through + 1..=end);
        }
        self.write(start, &mut all);
        // One without rows says nothing of the newest that has some.
        if !all.bars.is_empty() {
            let before = self.open.replace(Open { start, through, making: sealed });
            self.spare = before.map(|open| open.making).unwrap_or_default();
        }
        rows
    }

    /// Puts bars in the place of what a bucket had.
    fn write(&mut self, start: i64, making: &mut Making) {
        let before = match making.bars.is_empty() {
            true => self.buckets.remove(&start),
            false => {
                let bucket = making.bucket(&self.parts);
                self.bars += bucket.keys.len();
                self.buckets.insert(start, bucket)
            }
        };
        self.bars -= before.map_or(0, |bucket| bucket.keys.len());
    }

    /// Lets go of the buckets that begin before a time.
    pub(super) fn drop_before(&mut self, start: i64) {
        let kept = self.buckets.split_off(&start);
        let gone = std::mem::replace(&mut self.buckets, kept);
        self.bars -= gone.values().map(|bucket| bucket.keys.len()).sum::<usize>();
        self.open.take_if(|open| open.start < start);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTH: i64 = 32;
    const PARTS: [Part; 4] = [Part::Rows, Part::First, Part::Last, Part::VolumeWhole];

    type Row = (i64, u32, i64);

    /// What a loop over all rows, in order, makes of them.
    fn wanted(rows: &[Row]) -> BTreeMap<(i64, u32), [u64; 4]> {
        let mut all: BTreeMap<(i64, u32), Sums> = BTreeMap::new();
        for &(time, key, size) in rows {
            let place = (time.div_euclid(WIDTH) * WIDTH, key);
            all.entry(place).or_insert(Sums::EMPTY).add(size as f64 / 2.0, size);
        }
        all.into_iter().map(|(place, sums)| (place, PARTS.map(|part| sums.word(part)))).collect()
    }

    fn held(bars: &Bars) -> BTreeMap<(i64, u32), [u64; 4]> {
        let bucket = |(start, bucket): (i64, &Bucket)| {
            let words = bucket.words.chunks(4).map(|words| words.try_into().unwrap());
            let keys = bucket.keys.iter().map(|key| (start, *key)).collect::<Vec<_>>();
            keys.into_iter().zip(words).collect::<Vec<_>>()
        };
        bars.range(i64::MIN..=i64::MAX).flat_map(bucket).collect()
    }

    proptest! {
        #[test]
        fn bars_are_those_of_all_rows_whatever_comes_and_goes(
            steps in prop::collection::vec(
                (prop::collection::vec((-100i64..200, 0u32..4, -5i64..50), 0..12), any::<bool>(), 0i64..300, 1usize..9),
                1..8,
            ),
        ) {
            let mut bars = Bars::new(PARTS.to_vec());
            let mut rows: Vec<Row> = Vec::new();
            for (new, is_late, base, piece_rows) in steps {
                let mut changed: BTreeMap<i64, i64> = BTreeMap::new();
                let mut note = |time: i64| {
                    let first = changed.entry(time.div_euclid(WIDTH) * WIDTH).or_insert(time);
                    *first = time.min(*first);
                };
                for (time, key, size) in new {
                    let time = if is_late { time } else { base + time.div_euclid(8) };
                    note(time);
                    // Some take rows out instead.
                    match size < 0 {
                        true => rows.retain(|row| row.0 != time),
                        false => rows.push((time, key, size)),
                    }
                }
                rows.sort_by_key(|row| row.0);
                let spots: Vec<Spot> =
                    changed.iter().map(|(start, from)| bars.spot((*start, start + WIDTH - 1), *from)).collect();
                let columns: Vec<_> = rows.chunks(piece_rows).map(|rows| {
                    let column = |of: fn(&Row) -> i64| rows.iter().map(of).collect::<Vec<_>>();
                    let keys: Vec<u32> = rows.iter().map(|row| row.1).collect();
                    let prices: Vec<f64> = rows.iter().map(|row| row.2 as f64 / 2.0).collect();
                    (column(|row| row.0), keys, prices, column(|row| row.2))
                }).collect();
                let pieces: Vec<_> = columns.iter()
                    .map(|(times, keys, prices, sizes)| Piece { times, keys, prices, sizes }).collect();
                bars.put(&spots, &pieces);
                prop_assert_eq!(held(&bars), wanted(&rows));
                prop_assert_eq!(bars.count(), held(&bars).len());
            }
            bars.drop_before(WIDTH);
            rows.retain(|row| row.0 >= WIDTH);
            prop_assert_eq!(held(&bars), wanted(&rows));
        }
    }

    #[test]
    fn rows_behind_all_others_are_added_and_not_read_anew() {
        const WIDE: i64 = 100_000;
        let mut bars = Bars::new(vec![Part::Rows]);
        let times: Vec<i64> = (0..90_000).collect();
        let (prices, sizes) = (vec![1.0; times.len()], vec![1_i64; times.len()]);
        let mut put = |from: i64, until: usize| {
            let spot = bars.spot((0, WIDE - 1), from);
            let piece =
                Piece { times: &times[..until], keys: &[], prices: &prices[..until], sizes: &sizes[..until] };
            bars.put(&[spot], &[piece])
        };
        assert_eq!(put(0, 50_000), 50_000);
        // What lies within a sixteenth of the width is read again.
        assert_eq!(put(50_000, 50_010), WIDE as u64 / 16 + 9);
        // A late row has all of it read.
        assert_eq!(put(3, 50_010), 50_010);
        assert_eq!(bars.buckets[&0].words[0], 50_010);
    }
}
