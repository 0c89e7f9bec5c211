//! What a machine offers of resctrl, and who uses it: what shares of the caches are checked against.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpus, is_cache};

/// Control of the caches by ways, and of the memory's bandwidth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheControl {
    /// Why there is none, and what to do about it; `None` where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindered: Option<(String, String)>,
    /// What can be shared out, by its name: `L3`, `L3CODE`, `MB`.
    pub resources: BTreeMap<String, CacheResource>,
    /// Groups besides the default one, by name: ours, too.
    pub groups: BTreeMap<String, OtherGroup>,
    /// The schemata of the default group.
    pub default: String,
    /// CPUs of each third-level cache, by the number that its domain has.
    pub l3_cpus: BTreeMap<u32, Cpus>,
}

/// One resource of it, as its folder in `info` tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheResource {
    /// Groups that it can tell apart, the default one among them.
    pub closids: usize,
    /// Of a cache: all its ways.
    pub mask: u64,
    /// Of a cache: the fewest ways of a group.
    pub bits_min: u32,
    /// Of a cache: ways that devices fill, too.
    pub shareable: u64,
    /// Of a cache: whether the ways of a group may have holes.
    pub sparse: bool,
    /// Of bandwidth: the lowest, and the step. 0 where it is not told.
    pub bandwidth_min: u64,
    /// See there.
    pub bandwidth_step: u64,
}

/// A group that there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherGroup {
    /// Its CPUs.
    pub cpus: Cpus,
    /// Shareable, exclusive, pseudo-locked.
    pub mode: String,
    /// Its schemata, on one line. Empty where it has none that can be read.
    pub schemata: String,
    /// Tasks that were put into it one by one.
    pub tasks: usize,
}

impl CacheControl {
    /// How many groups there can be, the default one among them: the fewest that any resource can tell apart.
    #[must_use]
    pub fn closids(&self) -> usize {
        self.resources.values().map(|resource| resource.closids).min().unwrap_or(0)
    }

    /// The caches among its resources.
    pub fn caches(&self) -> impl Iterator<Item = (&String, &CacheResource)> {
        self.resources.iter().filter(|(name, _)| is_cache(name))
    }
}

impl CacheResource {
    /// Why ways are none that the kernel takes (fs/resctrl/ctrlmondata.c, `cbm_validate`).
    #[must_use]
    pub fn refusal_of_ways(&self, ways: u64) -> Option<String> {
        if ways == 0 {
            return Some("a group needs ways".to_owned());
        }
        if ways & !self.mask != 0 {
            return Some(format!("{ways:x} has ways that the cache has not: its mask is {:x}", self.mask));
        }
        let first_run = (ways >> ways.trailing_zeros()).trailing_ones();
        if !self.sparse && first_run != ways.count_ones() {
            return Some(format!("the ways of {ways:x} do not lie side by side, as this CPU needs them"));
        }
        (first_run < self.bits_min)
            .then(|| format!("{ways:x} has fewer than {} ways side by side", self.bits_min))
    }

    /// Why a bandwidth is none that the kernel keeps: it refuses what is too low, and rounds what is no step.
    #[must_use]
    pub fn refusal_of_bandwidth(&self, value: u64) -> Option<String> {
        if value < self.bandwidth_min {
            return Some(format!("{value} is less than {}, the lowest that there is", self.bandwidth_min));
        }
        let step = self.bandwidth_step.max(1);
        (!value.is_multiple_of(step))
            .then(|| format!("{value} is no multiple of {step}, the step of this machine"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_those_that_the_kernel_takes() {
        let dense = CacheResource { mask: 0x7ff, bits_min: 2, ..CacheResource::default() };
        let sparse = CacheResource { sparse: true, ..dense.clone() };
        for (ways, dense_takes, sparse_takes) in [
            (0x3, true, true),
            (0x7f0, true, true),
            (0x1, false, false),
            (0x0, false, false),
            (0x800, false, false),
        ] {
            assert_eq!(dense.refusal_of_ways(ways).is_none(), dense_takes, "{ways:x}");
            assert_eq!(sparse.refusal_of_ways(ways).is_none(), sparse_takes, "{ways:x}");
        }
        assert!(dense.refusal_of_ways(0x303).expect("a hole").contains("side by side"));
        assert_eq!(sparse.refusal_of_ways(0x303), None);
        assert!(sparse.refusal_of_ways(0x301).is_some(), "the first run decides");
    }

    #[test]
    fn bandwidth_is_a_step_that_there_is() {
        let percent = CacheResource { bandwidth_min: 10, bandwidth_step: 10, ..CacheResource::default() };
        assert_eq!(
            [5, 10, 55, 60].map(|value| percent.refusal_of_bandwidth(value).is_none()),
            [false, true, false, true]
        );
        let eighths = CacheResource { bandwidth_step: 1, ..CacheResource::default() };
        assert_eq!(eighths.refusal_of_bandwidth(16), None);
    }
}
