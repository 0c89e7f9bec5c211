//! Orders that look at functions alone.

use planish_sorted::SortSmall as _;

use crate::graph::{Graph, Node};

/// The heaviest functions first: what most tools call a symbol order.
#[must_use]
pub fn by_weight(graph: &Graph) -> Vec<u32> {
    let mut order: Vec<u32> = graph.indices().collect();
    order.sort_small_by_key(|index| std::cmp::Reverse(graph.node(*index).weight));
    order
}

/// The densest functions first, by weight for each byte: most of the weight on the fewest pages.
#[must_use]
pub fn by_density(graph: &Graph) -> Vec<u32> {
    let mut order: Vec<u32> = graph.indices().collect();
    order.sort_small_by(|left, right| density(graph.node(*right)).total_cmp(&density(graph.node(*left))));
    order
}

pub(crate) fn density(node: Node) -> f64 {
    node.weight as f64 / node.bytes as f64
}
