//! A profile: named wanted values, and nothing else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, KnobId, PlacementRequest};

mod made_for;
mod name;
mod read;
mod write;

pub use made_for::version_numbers;
pub use name::NameError;
pub use write::toml_value;

/// Which nodes a pool is wanted on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Nodes {
    /// Spread evenly over the nodes that have memory and CPUs.
    #[default]
    Spread,
    /// These nodes, the whole need on each.
    Each(Vec<u32>),
}

/// A value that a profile cannot know and a named function of decide computes from the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Computation {
    /// A pool for the service named on the command line, sized from its real shared maps.
    ServicePool,
    /// `vm.min_free_kbytes`: 0.5 % of memory, at least the present value, at most 1 %.
    MinFreeHalfPercent,
}

/// A value that is wanted of some places, or under some conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The wanted value; a number may stand without quotes.
    #[serde(deserialize_with = "read::of_word")]
    pub value: String,
    /// A shell pattern for the first hole of the knob's path, or `hole=pattern` for another one. All places without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// What the host must be for the advice to hold.
    #[serde(default, skip_serializing_if = "is_unconditional")]
    pub needs: Conditions,
}

/// TOML has no word for nothing.
fn is_spread(nodes: &Nodes) -> bool {
    *nodes == Nodes::Spread
}

fn is_unconditional(needs: &Conditions) -> bool {
    *needs == Conditions::default()
}

/// What a profile wants of one knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Want {
    /// `"vm.stat_interval" = 10`.
    Int(i64),
    /// `"thp.enabled" = "madvise"`.
    Text(String),
    /// `"block.scheduler" = { value = "none", only = "nvme*" }`: the places that are meant, if the host is.
    Case(Box<Case>),
    /// `"thp.enabled" = [{ value = "madvise", needs = { os_min = "15.5" } }, { value = "never" }]`: for each place
    /// the first case that means it.
    Cases(Vec<Case>),
    /// `"hugepages.2m" = { need_bytes = 536870912 }`: a pool, raised by this much and no more.
    Need {
        /// Bytes that must fit in the pages we are granted: rounded up to whole pages, and no headroom is added.
        need_bytes: u64,
        /// On which nodes.
        #[serde(default, skip_serializing_if = "is_spread")]
        nodes: Nodes,
    },
    /// `"hugepages.2m" = { need_bytes = [536870912, 268435456], nodes = [0, 1] }`: the same, so much on
    /// each of the nodes.
    Needs {
        /// Bytes for each node, in the order of `nodes`.
        need_bytes: Vec<u64>,
        /// The nodes, each once.
        nodes: Vec<u32>,
    },
    /// `"hugepages.2m" = { total_bytes = 4294967296 }`: a pool that has so much in all, whoever reserved it. It is
    /// raised by what is missing, and lowered for nobody: what others have beyond it stays.
    Total {
        /// Bytes of the pool, or of the pools of the nodes together: rounded up to whole pages.
        total_bytes: u64,
        /// On which nodes.
        #[serde(default, skip_serializing_if = "is_spread")]
        nodes: Nodes,
    },
    /// `"hugepages.2m" = { total_bytes = [4294967296, 2147483648], nodes = [0, 1] }`: the same, so much on each of the
    /// nodes.
    Totals {
        /// Bytes for each node, in the order of `nodes`.
        total_bytes: Vec<u64>,
        /// The nodes, each once.
        nodes: Vec<u32>,
    },
    /// `"vm.min_free_kbytes" = { from = "min_free_half_percent" }`.
    From {
        /// The function of decide.
        from: Computation,
    },
}

/// Named wanted values: a file of `catalogue/profiles/`, of the user, or made by a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name; equals the file's stem. Letters, digits, dots, dashes and underscores, 64 at most, with neither dot
    /// nor dash in front.
    pub name: String,
    /// What it is for, in one sentence.
    pub summary: String,
    /// Profiles that it starts from, in order; own values win.
    #[serde(default)]
    pub inherits: Vec<String>,
    /// Programs that it is made for, as the kernel names them (at most 15 bytes) and with `*` and `?` as in a shell;
    /// of Java `java:` and the main class. Not inherited: another profile is for another program, or version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Packages of these programs, by whose version it is known which of several profiles is meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// First version of the program that it is for, such as `8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_min: Option<String>,
    /// Last version that it is for, with all that begin so: `7` is for 7.0.14 too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_max: Option<String>,
    /// Wanted values by knob.
    #[serde(default)]
    pub want: BTreeMap<KnobId, Want>,
    /// Where services, interrupts and memory are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRequest>,
    /// What became of each setting of the guide that the profile follows, where it follows one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guide: Vec<GuideLine>,
}

/// One setting of a guide, and what became of it here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuideLine {
    /// The setting, in the guide's own words.
    pub says: String,
    /// What became of it.
    pub answer: Answer,
    /// The knob that the guide means, or the one that the profile wants in its stead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<KnobId>,
    /// Why.
    pub why: String,
}

/// What became of a setting of a guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Wanted as the guide says it.
    Kept,
    /// Something else is wanted to the same end.
    Changed,
    /// Kernels of today ignore it.
    Expired,
    /// Not wanted.
    Refused,
    /// The kernel does it by itself.
    Needless,
    /// No setting of the host: a matter of the program, its build or its unit.
    Elsewhere,
}

impl Answer {
    /// Whether the profile wants the knob.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        matches!(self, Self::Kept | Self::Changed)
    }
}

impl Want {
    /// The wanted text, where the profile itself says one and only one.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        match self {
            Self::Int(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
            Self::Case(case) => Some(case.value.clone()),
            _ => None,
        }
    }

    /// Whether it is so much of a pool, by bytes.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        matches!(self, Self::Need { .. } | Self::Needs { .. } | Self::Total { .. } | Self::Totals { .. })
    }

    /// Every value that the profile itself says, whatever the host is.
    #[must_use]
    pub fn literals(&self) -> Vec<String> {
        match self {
            Self::Cases(cases) => cases.iter().map(|case| case.value.clone()).collect(),
            other => other.literal().into_iter().collect(),
        }
    }
}
