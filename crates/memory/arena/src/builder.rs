//! What an arena is asked for.

use std::num::NonZeroUsize;

use planish_sys::{NodeSet, Policy};

use crate::arena::Arena;
use crate::error::ArenaError;
use crate::growing::Growing;
use crate::page::{Page, Preference};
use crate::plain::Plain;

/// On which nodes the memory lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeChoice {
    /// As the policy of the thread that faults it in says; the local node when there is none.
    #[default]
    Inherit,
    /// On the node of the CPU that faults it in, whatever the thread's policy.
    Local,
    /// On these nodes only.
    Bind(NodeSet),
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

    pub(crate) fn policy(&self) -> Option<Policy> {
        match self {
            Self::Inherit => None,
            Self::Local => Some(Policy::Local),
            Self::Bind(nodes) => Some(Policy::Bind(nodes.clone())),
            Self::Interleave(nodes) => Some(Policy::Interleave(nodes.clone())),
        }
    }

    /// The nodes that all of the memory must come from, if the choice binds.
    pub(crate) fn bound(&self) -> Option<&NodeSet> {
        match self {
            Self::Bind(nodes) => Some(nodes),
            Self::Inherit | Self::Local | Self::Interleave(_) => None,
        }
    }
}

/// What happens when the preferred pages cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// The next smaller page is taken, and [`Arena::achieved`] says why. Also fits the tail: a chunk that
    /// would leave more than half of its pages empty takes smaller ones.
    #[default]
    Allow,
    /// It is an error, and nothing stays mapped. Pages are then exactly as asked for, verified, whatever is
    /// left empty: what a trial needs.
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
    /// Bytes of the chunk after one of `bytes`.
    pub(crate) fn after(&self, bytes: usize) -> usize {
        bytes.saturating_mul(2).max(self.first_bytes).min(self.cap_bytes)
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
