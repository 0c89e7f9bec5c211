//! The ext-TSP score: Newell and Pupyrev, "Improved Basic Block Reordering", IEEE Transactions on Computers 2020.

use crate::graph::Graph;

const FORWARD_BYTES: f64 = 1024.0;
const BACKWARD_BYTES: f64 = 640.0;
const JUMP_WEIGHT: f64 = 0.1;

/// The score of addresses, each the address of the function of that index: more is better.
///
/// A call to what follows right after it counts in full, one within 1024 bytes forward or 640 backward a tenth,
/// less with the distance. It was made for blocks and here says how many calls stay within a few lines.
#[must_use]
pub fn ext_tsp(graph: &Graph, addresses: &[u64]) -> f64 {
    let of_arc = |arc: &crate::graph::Arc| {
        let call = addresses[arc.from as usize].saturating_add(arc.offset);
        let target = addresses[arc.to as usize];
        let distance = call.abs_diff(target) as f64;
        let reach = if target >= call { FORWARD_BYTES } else { BACKWARD_BYTES };
        let share = if distance == 0.0 { 1.0 } else { JUMP_WEIGHT * (1.0 - distance / reach).max(0.0) };
        arc.weight as f64 * share
    };
    graph.arcs().iter().filter(|arc| arc.from != arc.to).map(of_arc).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Arc, Node};

    #[test]
    fn near_calls_count_and_far_ones_do_not() {
        let nodes = vec![Node { bytes: 512, weight: 1 }; 2];
        let graph = Graph::new(nodes, vec![Arc { from: 0, to: 1, weight: 10, offset: 512 }]).unwrap();
        assert_eq!(ext_tsp(&graph, &[0, 512]), 10.0);
        assert_eq!(ext_tsp(&graph, &[0, 1024]), 10.0 * 0.1 * 0.5);
        assert_eq!(ext_tsp(&graph, &[4096, 4096 + 512 - 320]), 10.0 * 0.1 * 0.5);
        assert_eq!(ext_tsp(&graph, &[0, 4096]), 0.0);
    }
}
