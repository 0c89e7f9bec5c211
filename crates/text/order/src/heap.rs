//! A heap whose entries can be changed and removed by their index: of four below each, which lie side by side, so that
//! an entry that sinks waits for half as much memory as among two.

/// What stands higher comes first: more gain, then the lower of the two numbers of its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Key {
    pub gain: f64,
    pub ends: (u32, u32),
}

impl Key {
    /// Whether it comes before another.
    pub fn is_above(&self, other: &Self) -> bool {
        match self.gain.total_cmp(&other.gain) {
            std::cmp::Ordering::Equal => self.ends < other.ends,
            unequal => unequal.is_gt(),
        }
    }
}

const ABSENT: u32 = u32::MAX;
/// How many stand below each.
const BELOW: usize = 4;

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    index: u32,
    /// What it stands for, so that who takes it looks nowhere else for that.
    value: u32,
}

/// The heap.
pub(crate) struct Heap {
    entries: Vec<Entry>,
    /// Where each index stands, or [`ABSENT`].
    places: Vec<u32>,
}

impl Heap {
    /// An empty heap for indices below `count`.
    pub fn new(count: usize) -> Self {
        Self { entries: Vec::new(), places: vec![ABSENT; count] }
    }

    /// The index that comes first, and its value. It stays: what is set anew or removed moves the fewest entries from
    /// where it is.
    pub fn first(&self) -> Option<(u32, u32)> {
        self.entries.first().map(|entry| (entry.index, entry.value))
    }

    /// Adds an index, or changes its key and value.
    pub fn set(&mut self, index: u32, key: Key, value: u32) {
        let entry = Entry { key, index, value };
        let place = self.places[index as usize];
        let at = if place == ABSENT {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            self.entries[place as usize] = entry;
            place as usize
        };
        self.settle(at);
    }

    /// Takes out an index, if it is in.
    pub fn remove(&mut self, index: u32) {
        let place = std::mem::replace(&mut self.places[index as usize], ABSENT);
        if place == ABSENT {
            return;
        }
        let at = place as usize;
        self.entries.swap_remove(at);
        if at < self.entries.len() {
            self.settle(at);
        }
    }

    /// Moves the entry at a place up or down to where it belongs.
    fn settle(&mut self, mut at: usize) {
        let moved = self.entries[at];
        while at > 0 {
            let above = (at - 1) / BELOW;
            if !moved.key.is_above(&self.entries[above].key) {
                break;
            }
            self.put(at, self.entries[above]);
            at = above;
        }
        loop {
            let first = (BELOW * at + 1).min(self.entries.len());
            let below = &self.entries[first..(first + BELOW).min(self.entries.len())];
            let higher =
                |best: usize, at: usize| if below[at].key.is_above(&below[best].key) { at } else { best };
            let Some(highest) = (0..below.len()).reduce(higher) else { break };
            if !below[highest].key.is_above(&moved.key) {
                break;
            }
            let entry = below[highest];
            self.put(at, entry);
            at = first + highest;
        }
        self.put(at, moved);
    }

    fn put(&mut self, at: usize, entry: Entry) {
        self.entries[at] = entry;
        self.places[entry.index as usize] = u32::try_from(at).expect("fewer entries than indices");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_gives_back_what_is_in_it_in_order(
            sets in prop::collection::vec((0_u32..40, 0_u8..20), 1..120),
            removed in prop::collection::vec(0_u32..40, 0..10),
        ) {
            let mut heap = Heap::new(40);
            let mut wanted = std::collections::BTreeMap::new();
            for (index, gain) in sets {
                heap.set(index, Key { gain: f64::from(gain), ends: (index, 0) }, index + 1);
                wanted.insert(index, gain);
            }
            for index in removed {
                heap.remove(index);
                wanted.remove(&index);
            }
            let mut sorted: Vec<_> = wanted.into_iter().map(|(index, gain)| (std::cmp::Reverse(gain), index)).collect();
            sorted.sort();
            let mut found = Vec::new();
            while let Some((first, value)) = heap.first() {
                prop_assert_eq!(value, first + 1);
                heap.remove(first);
                found.push(first);
            }
            prop_assert_eq!(found, sorted.into_iter().map(|(_, index)| index).collect::<Vec<_>>());
        }
    }
}
