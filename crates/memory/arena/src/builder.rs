//! What an arena is asked for.

use std::num::NonZeroUsize;

use planish_sys::{NodeSet, Policy};

use crate::arena::Arena;
use crate::error::{ArenaError, told};
use crate::facts::{self, NodesOffered};
use crate::growing::Growing;
use crate::page::{Page, Preference};
use crate::per_node::PerNode;
use crate::plain::Plain;

/// On which nodes the memory lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeChoice {
    /// As the policy of the thread that faults it in says; the local node when there is none.
    #[default]
    Inherit,
    /// On the node of the CPU that faults it in, whatever the thread's policy.
    Local,
    /// On these nodes only. One that does not exist, or that this process may not use, is an error.
    Bind(NodeSet),
    /// On these nodes first, and on others where they are full, do not exist or may not be used: then
    /// [`Arena::achieved`] says so. [`Fallback::Refuse`] makes that an error.
    Prefer(NodeSet),
    /// Page by page round these nodes.
    Interleave(NodeSet),
}

impl NodeChoice {
    /// Only on this node.
    ///
    /// # Panics
    /// When `node` is beyond [`ID_MAX`](planish_sys::set::ID_MAX), which no kernel's number of a node is.
    pub fn only(node: u32) -> Self {
        Self::Bind([node].into_iter().collect())
    }

    /// On this node first.
    ///
    /// # Panics
    /// As [`only`](Self::only).
    pub fn prefer(node: u32) -> Self {
        Self::Prefer([node].into_iter().collect())
    }

    pub(crate) fn policy(&self) -> Option<Policy> {
        match self {
            Self::Inherit => None,
            Self::Local => Some(Policy::Local),
            Self::Bind(nodes) => Some(Policy::Bind(nodes.clone())),
            Self::Prefer(nodes) => Some(Policy::PreferredMany(nodes.clone())),
            Self::Interleave(nodes) => Some(Policy::Interleave(nodes.clone())),
        }
    }

    /// The nodes that all of the memory must come from, if the choice binds.
    pub(crate) fn bound(&self) -> Option<&NodeSet> {
        match self {
            Self::Bind(nodes) => Some(nodes),
            Self::Inherit | Self::Local | Self::Prefer(_) | Self::Interleave(_) => None,
        }
    }

    /// The nodes that the choice names, if it names any.
    pub(crate) fn named(&self) -> Option<&NodeSet> {
        match self {
            Self::Bind(nodes) | Self::Prefer(nodes) | Self::Interleave(nodes) => Some(nodes),
            Self::Inherit | Self::Local => None,
        }
    }

    /// Looks at the nodes that are named before the kernel does, which leaves out those that a cpuset does not have
    /// without a word, and for others only says that an argument is invalid (mm/mempolicy.c, `mpol_set_nodemask`).
    pub(crate) fn check(&self, offered: &NodesOffered) -> Result<(), ArenaError> {
        let Some(named) = self.named() else { return Ok(()) };
        let list = NodeSet::to_string;
        let missing = offered.there.as_ref().map(|there| (named.difference(there), there));
        if let Some((missing, there)) = missing.filter(|(missing, _)| !missing.is_empty()) {
            return Err(ArenaError::NoSuchNode { nodes: list(&missing), there: list(there) });
        }
        let outside = offered.allowed.as_ref().map(|allowed| (named.difference(allowed), allowed));
        if let Some((outside, allowed)) = outside.filter(|(outside, _)| !outside.is_empty()) {
            return Err(ArenaError::OutsideNode { nodes: list(&outside), allowed: list(allowed) });
        }
        Ok(())
    }
}

/// What happens when the preferred pages cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// The next smaller page is taken, and [`Arena::achieved`] says why. Also fits the tail: a chunk that
    /// would leave more than half of its pages empty takes smaller ones.
    #[default]
    Allow,
    /// It is an error, and nothing stays mapped. Pages are then exactly as asked for, and on the nodes that were named,
    /// verified, whatever is left empty: what a trial needs.
    Refuse,
}

/// How chunks grow when a slice does not fit: each twice the one before, up to a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Bytes of the first chunk.
    pub first_bytes: usize,
    /// Bytes above which chunks no longer double. A single larger slice still gets its own chunk.
    pub cap_bytes: usize,
}

impl Default for Growth {
    /// 2 MB to 1 GB: at most half of what is mapped is not used yet, and never more than 1 GB.
    fn default() -> Self {
        Self { first_bytes: 2 << 20, cap_bytes: 1 << 30 }
    }
}

impl Growth {
    /// What a [`Bump`](crate::Bump) takes from its arena: 64 KB at first, and no more than 2 MB at once.
    pub const BLOCKS: Self = Self { first_bytes: 64 << 10, cap_bytes: 2 << 20 };

    /// Bytes of the chunk after one of `bytes`.
    pub(crate) fn after(&self, bytes: usize) -> usize {
        bytes.saturating_mul(2).max(self.first_bytes).min(self.cap_bytes)
    }
}

/// The nodes to ask the kernel for, after looking at those that are named; with it, why some that are only preferred
/// cannot be had, where that is allowed.
pub(crate) fn nodes_to_ask(asked: &Builder) -> Result<(NodeChoice, Option<String>), ArenaError> {
    let Some(named) = asked.nodes.named() else { return Ok((asked.nodes.clone(), None)) };
    let offered = facts::nodes_offered();
    match (asked.nodes.check(&offered), &asked.nodes, asked.fallback) {
        (Ok(()), choice, _) => Ok((choice.clone(), None)),
        (Err(error), NodeChoice::Prefer(_), Fallback::Allow) => {
            let known = [offered.there, offered.allowed];
            let left = known.iter().flatten().fold(named.clone(), |left, known| left.intersection(known));
            let choice = if left.is_empty() { NodeChoice::Inherit } else { NodeChoice::Prefer(left) };
            Ok((choice, Some(told(&error))))
        }
        (Err(error), ..) => Err(error),
    }
}

/// Collects what an arena is asked for.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) preference: Preference,
    pub(crate) nodes: NodeChoice,
    pub(crate) fallback: Fallback,
    pub(crate) growth: Growth,
    pub(crate) threads: NonZeroUsize,
    pub(crate) capacity_bytes: usize,
    pub(crate) shared: bool,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            preference: Preference::From(Page::Thp),
            nodes: NodeChoice::default(),
            fallback: Fallback::default(),
            growth: Growth::default(),
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            capacity_bytes: 0,
            shared: false,
        }
    }

    /// The page to begin with; transparent huge pages unless said otherwise, which need no reservation.
    #[must_use]
    pub fn page(mut self, preference: Preference) -> Self {
        self.preference = preference;
        self
    }

    /// Where the memory lies.
    #[must_use]
    pub fn node(mut self, nodes: NodeChoice) -> Self {
        self.nodes = nodes;
        self
    }

    /// What happens when the page cannot be had.
    #[must_use]
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// How chunks grow.
    #[must_use]
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = growth;
        self
    }

    /// Threads that fault a chunk in, the calling one included; as many as it may use CPUs unless said
    /// otherwise.
    #[must_use]
    pub fn prefault_threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Bytes that one first chunk is to hold. Each slice may add up to [`LINE_BYTES`](crate::LINE_BYTES) of
    /// alignment.
    #[must_use]
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity_bytes = bytes;
        self
    }

    /// Memory of the kind that processes share (MAP_SHARED), as the segments of databases are, instead of private
    /// memory: an object of tmpfs or of a pool. The kernel keeps the policy of a node choice with the object, gives it
    /// transparent huge pages by the rules of shared memory (`shmem_enabled`, else by the collapse that every chunk
    /// goes through), and counts it as such. No child of fork(2) has it: nobody else writes what slices are borrowed
    /// from.
    ///
    /// Of an [`Arena`] alone: memory that [grows](Self::growing) where it is stays private.
    #[must_use]
    pub fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// Makes the arena, and its first chunk if a [`capacity`](Self::capacity) was given.
    ///
    /// # Errors
    /// When the first chunk cannot be had; see [`Arena::alloc_slice`].
    pub fn build(self) -> Result<Arena, ArenaError> {
        let capacity_bytes = self.capacity_bytes;
        let arena = Arena::with(self);
        if capacity_bytes > 0 {
            arena.reserve(capacity_bytes)?;
        }
        Ok(arena)
    }

    /// Makes an arena on each node that this process may have memory from, whatever [`node`](Self::node) says; with a
    /// [`capacity`](Self::capacity), on each of them. Each prefers its node ([`Fallback::Allow`]) or is bound to it
    /// ([`Fallback::Refuse`]).
    ///
    /// # Errors
    /// [`ArenaError::OnNode`] with what failed, where an arena cannot be had; the others are given back.
    pub fn per_node(self) -> Result<PerNode, ArenaError> {
        PerNode::with(&self)
    }

    /// Makes memory for `most` items at the most, in one run of addresses, that grows where it is; and its first piece:
    /// of the [`capacity`](Self::capacity) if one was given, else of what [`growth`](Self::growth) begins with. Pieces
    /// double as chunks do.
    ///
    /// All of it lies on the kind of page that the first piece got, so that a pool that runs short later is an error.
    /// Before Linux 5.14 the pool must have pages for the most there can be.
    ///
    /// # Errors
    /// When the addresses or the first piece cannot be had; see [`Arena::alloc_slice`].
    pub fn growing<T: Plain>(self, most: usize) -> Result<Growing<T>, ArenaError> {
        Growing::with(self, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> NodeSet {
        NodeSet::parse_list(list).unwrap()
    }

    #[test]
    fn nodes_that_cannot_be_had_are_named() {
        let offered = NodesOffered { there: Some(set("0-1,4")), allowed: Some(set("0,4")) };
        let choices = |list: &str| {
            [NodeChoice::Bind(set(list)), NodeChoice::Prefer(set(list)), NodeChoice::Interleave(set(list))]
        };
        for (list, wanted) in [
            ("2-4", "node 2-3 does not exist or has no memory; there are: 0-1,4"),
            ("0-1", "node 1 may not be used by this process, but 0,4"),
            ("1,9", "node 9 does not exist or has no memory; there are: 0-1,4"),
        ] {
            for choice in choices(list) {
                assert_eq!(choice.check(&offered).unwrap_err().to_string(), wanted, "{choice:?}");
            }
        }
        for choice in choices("0,4").into_iter().chain([NodeChoice::Inherit, NodeChoice::Local]) {
            assert!(choice.check(&offered).is_ok(), "{choice:?}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_tell_refuses_nothing() {
        let unknown = NodesOffered { there: None, allowed: None };
        assert!(NodeChoice::only(7).check(&unknown).is_ok());
        let in_part = NodesOffered { there: None, allowed: Some(set("0")) };
        assert!(matches!(NodeChoice::only(7).check(&in_part), Err(ArenaError::OutsideNode { .. })));
    }
}
