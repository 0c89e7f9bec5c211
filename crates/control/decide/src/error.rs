//! Why no plan can be made. What a host cannot do is no error: it is skipped, with a verdict.

use planish_model::{CatalogueError, Cpus, KnobId};
use thiserror::Error;

use crate::parts::PartError;
use crate::placement::PlacementError;

/// Why no plan can be made from what was asked.
#[derive(Debug, Error)]
pub enum DecideError {
    /// A profile or an option names a knob that does not exist.
    #[error("the plan names what the catalogue does not have")]
    Catalogue(#[from] CatalogueError),
    /// A word that no host has for a knob, as far as planish knows, and near one that some have.
    #[error("`{word}` is no word of {knob}; did you mean `{near}`?")]
    Word {
        /// The knob.
        knob: KnobId,
        /// As it is wanted.
        word: String,
        /// What is meant most likely.
        near: String,
    },
    /// A word that no kernel has for a knob, as far as planish knows, and near none that some have.
    #[error("`{word}` is no word of {knob}, which may be {}", words.join(", "))]
    NoWord {
        /// The knob.
        knob: KnobId,
        /// As it is wanted.
        word: String,
        /// Those that some kernel has, and those that this host offers.
        words: Vec<String>,
    },
    /// A pattern that no place of a knob matches, and near to the names of some.
    #[error("no place of {knob} matches `{only}`; did you mean `{near}`? this host has {}", places.join(", "))]
    Pattern {
        /// The knob.
        knob: KnobId,
        /// As it is wanted.
        only: String,
        /// What is meant most likely.
        near: String,
        /// What there is on this host.
        places: Vec<String>,
    },
    /// A pattern that is none.
    #[error("`{only}` of {knob} means nothing: {why}")]
    NoPattern {
        /// The knob.
        knob: KnobId,
        /// As it is wanted.
        only: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A pool on a node that this host does not have.
    #[error("{knob} is wanted on node {node}, and this host has {}", listed(nodes))]
    NoNode {
        /// The pool.
        knob: KnobId,
        /// As it is wanted.
        node: u32,
        /// The nodes that have such a pool.
        nodes: Vec<u32>,
    },
    /// CPUs that this host does not have.
    #[error("{knob} names CPU {cpus}, and this host has CPU {here} and no other")]
    NoCpu {
        /// The knob.
        knob: KnobId,
        /// Those that it names and that are not there.
        cpus: Cpus,
        /// Those that are.
        here: Cpus,
    },
    /// Interrupts that this host does not have.
    #[error("{knob} names interrupt {irqs}, and this host has {here} and no other")]
    NoIrq {
        /// The knob.
        knob: KnobId,
        /// Those that it names and that are not there.
        irqs: Cpus,
        /// Those that are.
        here: Cpus,
    },
    /// Ways of a cache, or a bandwidth, that this machine does not have.
    #[error("{knob}: {resource} of cache {domain}: {reason}")]
    NoShare {
        /// The knob.
        knob: KnobId,
        /// `L3`, `MB`.
        resource: String,
        /// The number of the cache.
        domain: u32,
        /// Why not.
        reason: String,
    },
    /// Two rows that set one place, both of them wanted.
    #[error("{place} is wanted twice, as {} and as {}", knobs[0], knobs[1])]
    OnePlace {
        /// The place.
        place: String,
        /// The two knobs.
        knobs: [KnobId; 2],
    },
    /// Parts of the system cannot have the CPUs that are asked for.
    #[error("parts of the system cannot have these CPUs")]
    Part(#[from] PartError),
    /// Two values that cannot both be meant.
    #[error(
        "{} = {} and {} = {} speak against each other: {why}", values[0].0, values[0].1, values[1].0, values[1].1
    )]
    Against {
        /// The knobs, as they are wanted.
        values: Box<[(KnobId, String); 2]>,
        /// Those of the two that the profile wants by itself: the others are of its placement.
        own: Vec<KnobId>,
        /// What they say of each other.
        why: String,
    },
    /// Services and interrupts cannot be placed as asked.
    #[error("services and interrupts cannot be placed so")]
    Placement(#[from] PlacementError),
}

/// Nodes as they are told.
fn listed(nodes: &[u32]) -> String {
    let numbers: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    match nodes {
        [] => "no nodes".to_owned(),
        [_] => format!("node {}", numbers[0]),
        _ => format!("nodes {}", numbers.join(", ")),
    }
}

impl DecideError {
    /// The knobs that are wanted as no host of this kind takes them: by a word or pattern that is a typing error, or
    /// against each other. None of an error that is of this host alone: a node or CPU that it has not.
    #[must_use]
    pub fn mistaken(&self) -> Vec<&KnobId> {
        match self {
            Self::Word { knob, .. }
            | Self::NoWord { knob, .. }
            | Self::Pattern { knob, .. }
            | Self::NoPattern { knob, .. } => vec![knob],
            Self::OnePlace { knobs, .. } => knobs.iter().collect(),
            Self::Placement(PlacementError::Unpinned { knob }) => vec![knob],
            Self::Against { values, .. } => values.iter().map(|(knob, _)| knob).collect(),
            _ => Vec::new(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Catalogue(error) => error.cure(),
            Self::Pattern { .. } | Self::NoPattern { .. } => {
                "mend `only` in the profile, or leave it out, and all places are meant".to_owned()
            }
            Self::Word { knob, .. } => format!("see what it may be: planish knobs {knob}"),
            Self::NoWord { knob, .. } => format!(
                "see what it may be: planish knobs {knob}; a word that a module of your own brings is known once \
                 that is loaded"
            ),
            Self::NoNode { nodes, .. } if nodes.is_empty() => {
                "leave `nodes` out: the pool of the whole machine is meant then".to_owned()
            }
            Self::NoNode { .. } => {
                "name nodes that `planish topo` shows, or leave `nodes` out, and all with CPUs are meant"
                    .to_owned()
            }
            Self::NoCpu { knob, .. } => {
                format!("name CPUs that `planish topo` shows, or leave it out: --exclude {knob}")
            }
            Self::NoIrq { knob, .. } => format!(
                "see what asks for them in /proc/interrupts: their numbers change with a boot; or leave it out: \
                 --exclude {knob}"
            ),
            Self::NoShare { knob, resource, .. } => {
                format!(
                    "see what it may be: ls /sys/fs/resctrl/info/{resource}; or leave it out: --exclude {knob}"
                )
            }
            Self::OnePlace { knobs, .. } => {
                format!(
                    "take one of the two out of the profile, or leave it: --exclude {} or --exclude {}",
                    knobs[0], knobs[1]
                )
            }
            Self::Part(error) => error.cure(),
            Self::Against { own, .. } => match own.as_slice() {
                [] => "change the table [placement] of the profile (docs/placement.md)".to_owned(),
                [one] => format!("change {one} in the profile, or leave it as it is: --exclude {one}"),
                several => {
                    let leave: Vec<String> = several.iter().map(|knob| format!("--exclude {knob}")).collect();
                    let leave = leave.join(" or ");
                    format!("change one of the two in the profile, or leave it as it is: {leave}")
                }
            },
            Self::Placement(error) => error.cure(),
        }
    }
}
