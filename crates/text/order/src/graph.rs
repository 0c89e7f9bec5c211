//! The graph that every algorithm takes, and how an order becomes addresses.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Size of its code; at least 1, and at most 1 GiB.
    pub bytes: u64,
    /// How much runs in it.
    pub weight: u64,
}

/// Calls from one function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// The caller.
    pub from: u32,
    /// The callee.
    pub to: u32,
    /// How many.
    pub weight: u64,
    /// Where in the caller they stand, in bytes from its start.
    pub offset: u64,
}

/// A weighted call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Node>,
    arcs: Vec<Arc>,
}

/// Why nodes and arcs are no graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// An arc names a node that is not there.
    #[error("call {arc} names function {node} of {count}")]
    NoSuchNode {
        /// Index of the arc.
        arc: usize,
        /// The node that it names.
        node: u32,
        /// How many there are.
        count: usize,
    },
    /// More nodes than an index of 32 bits can tell apart.
    #[error("{count} functions are more than 32 bits count")]
    TooMany {
        /// How many there are.
        count: usize,
    },
}

impl Graph {
    /// A graph of these functions and calls. Sizes are held to what a function can be, and places of calls to their
    /// function, so that no sum of them overflows.
    ///
    /// # Errors
    /// [`GraphError`] where an arc names no node.
    pub fn new(mut nodes: Vec<Node>, mut arcs: Vec<Arc>) -> Result<Self, GraphError> {
        nodes.iter_mut().for_each(|node| node.bytes = node.bytes.clamp(1, FUNCTION_BYTES_MAX));
        if u32::try_from(nodes.len()).is_err() || u32::try_from(arcs.len()).is_err() {
            return Err(GraphError::TooMany { count: nodes.len().max(arcs.len()) });
        }
        for (index, arc) in arcs.iter_mut().enumerate() {
            let node = arc.from.max(arc.to);
            if node as usize >= nodes.len() {
                return Err(GraphError::NoSuchNode { arc: index, node, count: nodes.len() });
            }
            arc.offset = arc.offset.min(nodes[arc.from as usize].bytes);
        }
        Ok(Self { nodes, arcs })
    }

    /// The functions.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The calls.
    #[must_use]
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// Indices of all nodes.
    pub(crate) fn indices(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.nodes.len()).expect("checked when it was made")
    }

    /// A node by its index.
    pub(crate) fn node(&self, index: u32) -> Node {
        self.nodes[index as usize]
    }
}

/// No function is larger; a size above it is damage.
const FUNCTION_BYTES_MAX: u64 = 1 << 30;
/// What every compiler aligns functions to.
const FUNCTION_ALIGN: u64 = 16;

/// Addresses of the functions when they are laid in an order from address 0, by index of the function.
#[must_use]
pub fn lay_out(graph: &Graph, order: &[u32]) -> Vec<u64> {
    let mut addresses = vec![0; graph.nodes().len()];
    let mut next = 0_u64;
    for &index in order {
        addresses[index as usize] = next;
        next = (next + graph.node(index).bytes).next_multiple_of(FUNCTION_ALIGN);
    }
    addresses
}

/// Graphs of up to `count` functions of up to `bytes`, some without weight, some calls of a function by itself.
#[cfg(test)]
pub(crate) fn any_graph(count: usize, bytes: u64) -> impl proptest::strategy::Strategy<Value = Graph> {
    use proptest::prelude::*;
    let nodes = prop::collection::vec((0..bytes, prop_oneof![Just(0_u64), 1_u64..10_000]), 1..count);
    let arcs = prop::collection::vec((any::<u32>(), any::<u32>(), 0_u64..5_000, 0_u64..4096), 0..count * 4);
    (nodes, arcs).prop_map(|(nodes, arcs)| {
        let count = nodes.len() as u32;
        let nodes = nodes.into_iter().map(|(bytes, weight)| Node { bytes, weight }).collect();
        let arc = |(from, to, weight, offset)| Arc { from: from % count, to: to % count, weight, offset };
        Graph::new(nodes, arcs.into_iter().map(arc).collect()).expect("ends are taken modulo the count")
    })
}
