//! A set of CPUs as a noun: what the kernel numbers, in both of its text forms.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CpuForm;

/// CPUs by number. Serialised as the kernel's list: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Cpus(BTreeSet<u32>);

/// Highest number that a list may name: far above what Linux can be built for (8192 CPUs), so that a typing error
/// cannot ask for gigabytes.
const NUMBER_MAX: u32 = 65_535;
/// The digits of a mask of so many CPUs, and a comma behind each eight of them.
const MASK_BYTES_MAX: usize = (NUMBER_MAX as usize + 1) / 4 * 9 / 8;

impl Cpus {
    /// The CPUs of a list such as `0-3,8`; `None` for a text that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let normal = CpuForm::List.normal(text.trim())?;
        let mut cpus = BTreeSet::new();
        for part in normal.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            (last <= NUMBER_MAX).then(|| cpus.extend(first..=last))?;
        }
        Some(Self(cpus))
    }

    /// The CPUs of a mask of hexadecimal digits such as `ff,00000001`; `None` for a text that is none.
    #[must_use]
    pub fn parse_mask(text: &str) -> Option<Self> {
        let normal = CpuForm::Mask.normal(text.trim()).filter(|digits| digits.len() <= MASK_BYTES_MAX)?;
        let digits = normal.chars().rev().filter_map(|digit| digit.to_digit(16));
        let four = |(place, bits): (u32, u32)| {
            (0..4).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| 4 * place + bit)
        };
        Some(Self((0..).zip(digits).flat_map(four).collect()))
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is among them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The one with the lowest number.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// By rising number.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Those of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// Those of any of several sets. It takes the time of all their CPUs together, where a `union` of one after the
    /// other copies what was had before each time: with a core for each of 2048 CPUs that is a second and more.
    pub fn of_all<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        sets.into_iter().flat_map(Self::iter).collect()
    }

    /// Adds those of another set.
    pub fn add(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Those of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Those that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// Whether every one of them is in the other set.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// As a mask of hexadecimal digits in groups of eight, the way the kernel shows one: `ff,ffffffff`.
    #[must_use]
    pub fn mask(&self) -> String {
        let groups = self.0.last().map_or(1, |last| last / 32 + 1);
        let group = |index: u32| {
            let bit = |cpu: &u32| 1_u32 << (cpu % 32);
            self.0.range(index * 32..=index * 32 + 31).map(bit).fold(0, |bits, bit| bits | bit)
        };
        let (highest, rest) = (format!("{:x}", group(groups - 1)), (0..groups - 1).rev().map(group));
        rest.fold(highest, |text, bits| format!("{text},{bits:08x}"))
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.pad(&CpuForm::List.normal(&numbers.join(",")).unwrap_or_default())
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> Self {
        cpus.to_string()
    }
}

impl TryFrom<String> for Cpus {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a {}", CpuForm::List.describe()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ValueType;

    #[test]
    fn both_forms_of_the_kernel() {
        let cpus = Cpus::parse("8, 0-3".replace(' ', "").as_str()).expect("a list");
        assert_eq!((cpus.to_string().as_str(), cpus.mask().as_str()), ("0-3,8", "10f"));
        let far: Cpus = [0, 32, 71].into_iter().collect();
        assert_eq!(far.mask(), "80,00000001,00000001");
        assert_eq!((Cpus::default().to_string().as_str(), Cpus::default().mask().as_str()), ("", "0"));
        let held = Cpus::parse_mask("1,00000000,0000000c\n").expect("a mask");
        assert_eq!(held.to_string(), "2-3,64");
        for wrong in ["", "x", "-1"] {
            assert_eq!(Cpus::parse_mask(wrong), None, "{wrong}");
        }
        assert_eq!(Cpus::parse_mask(&"f".repeat(20_000)), None, "no machine has so many");
        for wrong in ["3-1", "a", "1,,2", "0-4294967295", "999999"] {
            assert_eq!(Cpus::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn all_of_several_sets_are_those_of_either_one_after_the_other(
            sets in proptest::collection::vec(proptest::collection::btree_set(0_u32..300, 0..40), 0..6),
        ) {
            let sets: Vec<Cpus> = sets.into_iter().map(Cpus).collect();
            let either = sets.iter().fold(Cpus::default(), |all, cpus| all.union(cpus));
            let mut added = Cpus::default();
            sets.iter().for_each(|cpus| added.add(cpus));
            prop_assert_eq!(&Cpus::of_all(&sets), &either);
            prop_assert_eq!(added, either);
        }

        #[test]
        fn what_is_written_is_read_again(numbers in proptest::collection::btree_set(0_u32..300, 0..40)) {
            let cpus: Cpus = numbers.iter().copied().collect();
            prop_assert_eq!(Cpus::parse(&cpus.to_string()), Some(cpus.clone()));
            let mask = ValueType::Cpus { cpus: CpuForm::Mask, empty: true };
            prop_assert!(mask.validate(&cpus.mask()).is_ok());
            prop_assert_eq!(Cpus::parse_mask(&cpus.mask()), Some(cpus.clone()));
            let bits: u32 = mask.normal(&cpus.mask()).chars().filter_map(|digit| digit.to_digit(16))
                .map(u32::count_ones).sum();
            prop_assert_eq!(bits as usize, numbers.len());
        }
    }
}
