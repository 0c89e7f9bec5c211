//! Sets of CPUs and of NUMA nodes, as large as the kernel makes them.
//!
//! The kernel speaks two text forms, both read and written here: lists (`0-3,8`, Documentation/admin-guide/
//! cputopology.rst) and hex masks in comma-separated groups of 32 bits (`ff,ffffffff`). Nothing is limited
//! to 1024 CPUs, which is where glibc's and rustix's fixed sets end.

use std::fmt;
use std::iter::successors;
use std::marker::PhantomData;
use std::str::FromStr;

/// Highest id that a text may name, so that a corrupt file cannot ask for gigabytes of bits.
///
/// Far above what Linux can be built for (8192 CPUs, 1024 nodes).
pub const ID_MAX: u32 = (1 << 20) - 1;

const WORD_BITS: u32 = u64::BITS;

/// Marks a set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cpu {}

/// Marks a set of NUMA nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {}

/// A set of logical CPUs.
pub type CpuSet = Set<Cpu>;

/// A set of NUMA nodes.
pub type NodeSet = Set<Node>;

/// A set of small ids of one kind, iterated in rising order.
///
/// The kind keeps CPUs and nodes apart at compile time. Two sets with the same ids are equal, whatever
/// the number of words behind them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Set<K> {
    /// Bit `id % 64` of word `id / 64`; the last word is never zero.
    words: Vec<u64>,
    kind: PhantomData<K>,
}

/// Why a text is not a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSetError {
    /// A part is neither a number nor a range of numbers.
    #[error("{part:?} is neither an id nor a range of ids")]
    Part {
        /// The offending part of the text.
        part: String,
    },
    /// A range runs backwards.
    #[error("range {part:?} runs backwards")]
    Backwards {
        /// The offending part of the text.
        part: String,
    },
    /// An id is beyond [`ID_MAX`].
    #[error("id {id} is beyond {ID_MAX}")]
    TooLarge {
        /// The id.
        id: u64,
    },
    /// A group of a mask is not one to eight hex digits.
    #[error("{group:?} is not a group of a hex mask")]
    Group {
        /// The offending group.
        group: String,
    },
}

impl<K> Set<K> {
    /// The empty set.
    pub const fn new() -> Self {
        Self { words: Vec::new(), kind: PhantomData }
    }

    /// Adds `id`; true when it was not there.
    ///
    /// # Panics
    /// When `id` is beyond [`ID_MAX`]: ids come from the kernel or from a parser that has checked them.
    pub fn insert(&mut self, id: u32) -> bool {
        assert!(id <= ID_MAX, "id {id} is beyond {ID_MAX}");
        let (word, bit) = place_of(id);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let was = self.words[word];
        self.words[word] |= bit;
        self.words[word] != was
    }

    /// Takes `id` out; true when it was there.
    pub fn remove(&mut self, id: u32) -> bool {
        let found = self.contains(id);
        if found {
            let (word, bit) = place_of(id);
            self.words[word] &= !bit;
            self.trim();
        }
        found
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: u32) -> bool {
        let (word, bit) = place_of(id);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Number of ids in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set has no id.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Smallest id.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// Largest id.
    pub fn last(&self) -> Option<u32> {
        let word = self.words.last()?;
        Some(self.words.len() as u32 * WORD_BITS - 1 - word.leading_zeros())
    }

    /// Ids in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let base = index as u32 * WORD_BITS;
            // From bit to bit: of a thousand CPUs each core is a set of its own, nearly all of it words without any.
            let rest = |bits: u64| Some(bits).filter(|bits| *bits != 0);
            let bits = successors(rest(*word), move |bits| rest(bits & (bits - 1)));
            bits.map(move |bits| base + bits.trailing_zeros())
        })
    }

    /// Ids that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::from_words(self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect())
    }

    /// Ids that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        let count = self.words.len().max(other.words.len());
        let word = |set: &Self, index: usize| set.words.get(index).copied().unwrap_or(0);
        Self::from_words((0..count).map(|index| word(self, index) | word(other, index)).collect())
    }

    /// Ids that are in this set and not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        let theirs = other.words.iter().copied().chain(std::iter::repeat(0));
        Self::from_words(self.words.iter().zip(theirs).map(|(a, b)| a & !b).collect())
    }

    /// Whether every id of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Reads the kernel's list form: `0-3,8`; white space at the ends and an empty text are the empty set.
    ///
    /// The stride form of boot parameters (`0-31:2/4`: of every 4, the first 2) is understood as well.
    pub fn parse_list(text: &str) -> Result<Self, ParseSetError> {
        let mut set = Self::new();
        let text = text.trim();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (first, last, used, group) = parse_part(part.trim())?;
            let ids = first..=last;
            ids.filter(|id| (id - first) % group < used).for_each(|id| _ = set.insert(id));
        }
        Ok(set)
    }

    /// Reads the kernel's mask form: hex groups of 32 bits, most significant first (`ff,ffffffff`).
    ///
    /// A leading `0x` is accepted; a group may be shorter than eight digits.
    pub fn parse_mask(text: &str) -> Result<Self, ParseSetError> {
        let text = text.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let groups: Vec<&str> = digits.split(',').collect();
        let highest = groups.len() as u64 * 32;
        if highest > u64::from(ID_MAX) + 1 {
            return Err(ParseSetError::TooLarge { id: highest - 1 });
        }
        let mut words = vec![0u64; groups.len().div_ceil(2)];
        for (index, group) in groups.iter().rev().enumerate() {
            let bits = parse_group(group)?;
            words[index / 2] |= u64::from(bits) << (32 * (index % 2));
        }
        Ok(Self::from_words(words))
    }

    /// The mask form, in groups of eight hex digits, most significant first; `00000000` for the empty set.
    pub fn to_mask(&self) -> String {
        let mut groups: Vec<u32> =
            self.words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
        while groups.len() > 1 && groups.last() == Some(&0) {
            groups.pop();
        }
        if groups.is_empty() {
            groups.push(0);
        }
        let texts: Vec<String> = groups.iter().rev().map(|group| format!("{group:08x}")).collect();
        texts.join(",")
    }

    /// The bits as the kernel's calls take them: word 0 holds ids 0 to 63.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// A set from the bits of a kernel call.
    pub fn from_words(words: Vec<u64>) -> Self {
        let mut set = Self { words, kind: PhantomData };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

/// Index of the word that holds `id`, and its bit there.
fn place_of(id: u32) -> (usize, u64) {
    ((id / WORD_BITS) as usize, 1 << (id % WORD_BITS))
}

/// `8`, `0-3` or `0-31:2/4` as (first, last, used of each group, group size).
fn parse_part(part: &str) -> Result<(u32, u32, u32, u32), ParseSetError> {
    let odd = || ParseSetError::Part { part: part.to_owned() };
    let (range, stride) = match part.split_once(':') {
        Some((range, stride)) => (range, Some(stride.split_once('/').ok_or_else(odd)?)),
        None => (part, None),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (parse_id(first, part)?, parse_id(last, part)?),
        None => (parse_id(range, part)?, parse_id(range, part)?),
    };
    if last < first {
        return Err(ParseSetError::Backwards { part: part.to_owned() });
    }
    match stride {
        None => Ok((first, last, 1, 1)),
        Some((used, group)) => {
            let (used, group) = (parse_id(used, part)?, parse_id(group, part)?);
            if used == 0 || used > group { Err(odd()) } else { Ok((first, last, used, group)) }
        }
    }
}

fn parse_id(digits: &str, part: &str) -> Result<u32, ParseSetError> {
    // `parse` alone would accept a leading plus sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseSetError::Part { part: part.to_owned() });
    }
    let id: u64 = digits.parse().map_err(|_| ParseSetError::Part { part: part.to_owned() })?;
    u32::try_from(id).ok().filter(|id| *id <= ID_MAX).ok_or(ParseSetError::TooLarge { id })
}

fn parse_group(group: &str) -> Result<u32, ParseSetError> {
    let hex = !group.is_empty() && group.len() <= 8 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = if hex { u32::from_str_radix(group, 16).ok() } else { None };
    parsed.ok_or_else(|| ParseSetError::Group { group: group.to_owned() })
}

/// The list form: `0-3,8`; nothing for the empty set.
impl<K> fmt::Display for Set<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ids = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = ids.next() {
            let mut last = first;
            while let Some(next) = ids.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<K> fmt::Debug for Set<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> FromStr for Set<K> {
    type Err = ParseSetError;

    /// Reads the list form.
    fn from_str(text: &str) -> Result<Self, ParseSetError> {
        Self::parse_list(text)
    }
}

impl<K> FromIterator<u32> for Set<K> {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut set = Self::new();
        ids.into_iter().for_each(|id| _ = set.insert(id));
        set
    }
}

impl<K> Extend<u32> for Set<K> {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| _ = self.insert(id));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn list(text: &str) -> Vec<u32> {
        CpuSet::parse_list(text).unwrap().iter().collect()
    }

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(list("\n"), [0u32; 0]);
        assert_eq!(list("0-7:2/4"), [0, 1, 4, 5]);
        assert_eq!(list("2047"), [2047]);
        assert_eq!(CpuSet::parse_list("0,1,2,5,7,8").unwrap().to_string(), "0-2,5,7-8");
    }

    #[test]
    fn masks_as_the_kernel_writes_them() {
        assert_eq!(CpuSet::parse_mask("ff,ffffffff").unwrap().to_string(), "0-39");
        assert_eq!(CpuSet::parse_mask("00000000,00000003\n").unwrap().to_string(), "0-1");
        assert_eq!(CpuSet::parse_mask("0x5").unwrap().to_string(), "0,2");
        assert_eq!(CpuSet::parse_list("0,32,64").unwrap().to_mask(), "00000001,00000001,00000001");
        assert_eq!(CpuSet::new().to_mask(), "00000000");
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for odd in
            ["a", "1-", "-1", "3-1", "0,,1", "+1", "0-7:0/4", "0-7:5/4", "0-7:2", "99999999", "0-4294967296"]
        {
            assert!(CpuSet::parse_list(odd).is_err(), "{odd}");
        }
        for odd in ["", "xyz", "123456789", "ff,,ff", "+f"] {
            assert!(CpuSet::parse_mask(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn equality_ignores_how_much_was_allocated() {
        let mut set: CpuSet = [1, 5000].into_iter().collect();
        assert!(set.remove(5000) && !set.remove(5000));
        assert_eq!(set, CpuSet::parse_list("1").unwrap());
        assert_eq!((set.first(), set.last(), set.count()), (Some(1), Some(1), 1));
    }

    proptest! {
        #[test]
        fn both_text_forms_round_trip(ids in proptest::collection::btree_set(0u32..9000, 0..200)) {
            let set: CpuSet = ids.iter().copied().collect();
            prop_assert_eq!(&CpuSet::parse_list(&set.to_string()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::from_words(set.words().to_vec()), &set);
            prop_assert_eq!(set.count(), ids.len());
            prop_assert_eq!(set.last(), ids.last().copied());
            prop_assert!(set.iter().eq(ids.iter().copied()));
        }

        #[test]
        fn algebra_agrees_with_btree_sets(
            a in proptest::collection::btree_set(0u32..300, 0..60),
            b in proptest::collection::btree_set(0u32..300, 0..60),
        ) {
            let (x, y): (CpuSet, CpuSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let of = |ids: BTreeSet<u32>| ids.into_iter().collect::<CpuSet>();
            prop_assert_eq!(x.intersection(&y), of(&a & &b));
            prop_assert_eq!(x.union(&y), of(&a | &b));
            prop_assert_eq!(x.difference(&y), of(&a - &b));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        }

        #[test]
        fn no_text_panics(text in "[-0-9a-fx,:/ \n]{0,40}") {
            let _ = CpuSet::parse_list(&text);
            let _ = CpuSet::parse_mask(&text);
        }
    }
}
