//! How much memory the pools of a plan may take: the host keeps a reserve, whatever a profile wants, and so does each
//! of its nodes.

use std::collections::BTreeMap;

use planish_model::{HostFacts, NodeMemory, Observation, units::bytes};
use planish_sorted::CollectMap as _;

/// The reserve is never less than this.
const RESERVE_BYTES_MIN: u64 = 1 << 30;

/// Memory that pools may still take, spent step by step.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    available: u64,
    reserve: u64,
}

impl Budget {
    /// What the host has available, with a tenth of its memory and at least 1 GiB kept back.
    pub(crate) fn of(host: &HostFacts) -> Self {
        Self { available: host.available_bytes, reserve: (host.memory_bytes / 10).max(RESERVE_BYTES_MIN) }
    }

    /// The same of a host that has just been started: all of its memory is there.
    pub(crate) fn at_boot(host: &HostFacts) -> Self {
        Self { available: host.memory_bytes, ..Self::of(host) }
    }

    /// The same of a host whose pools of huge pages leave so much of its memory.
    pub(crate) fn beside_pools(host: &HostFacts, left: u64) -> Self {
        Self { available: left, ..Self::of(host) }
    }

    /// Takes the bytes, or says why the host cannot give them.
    pub(crate) fn take(&mut self, wanted: u64) -> Result<(), String> {
        self.refusal(wanted).map_or_else(
            || {
                self.available -= wanted;
                Ok(())
            },
            Err,
        )
    }

    /// Why the host cannot give that much; `None` when it can.
    pub(crate) fn refusal(&self, wanted: u64) -> Option<String> {
        let [asked, available, reserve] = [wanted, self.available, self.reserve].map(bytes);
        match self.available.checked_sub(wanted) {
            None => Some(format!(
                "{asked} is more than the {available} available, of which the host keeps {reserve}"
            )),
            Some(left) if left < self.reserve => {
                let left = bytes(left);
                Some(format!(
                    "{asked} would leave {left} of the {available} available, and the host keeps {reserve}"
                ))
            }
            Some(_) => None,
        }
    }
}

/// What pools may still take of the whole host and of each of its nodes: a node that is full ruins who is bound to it,
/// however much the others have.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    whole: Budget,
    nodes: BTreeMap<u32, Budget>,
}

/// Bytes by node; those of no node are of a host without nodes.
pub(crate) type ByNode = BTreeMap<Option<u32>, u64>;

impl Budgets {
    /// What is available now.
    pub(crate) fn of(observation: &Observation) -> Self {
        let nodes = by_node(observation, |node| node.available_bytes);
        Self { whole: Budget::of(&observation.host), nodes }
    }

    /// The same of a host that has just been started.
    pub(crate) fn at_boot(observation: &Observation) -> Self {
        let nodes = by_node(observation, |node| node.memory_bytes);
        Self { whole: Budget::at_boot(&observation.host), nodes }
    }

    /// Takes the bytes on all of these nodes, or on none and says why.
    pub(crate) fn take(&mut self, wanted: &ByNode) -> Result<(), String> {
        if let Some(reason) = self.refusal(wanted) {
            return Err(reason);
        }
        for (node, bytes) in wanted {
            if let Some(budget) = node.and_then(|node| self.nodes.get_mut(&node)) {
                budget.available -= bytes;
            }
        }
        self.whole.take(wanted.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)))
    }

    /// Why the host, or one of the nodes, cannot give that much; `None` when all can.
    pub(crate) fn refusal(&self, wanted: &ByNode) -> Option<String> {
        let together = wanted.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let of_nodes = || {
            wanted.iter().filter(|(_, bytes)| **bytes > 0).find_map(|(node, bytes)| {
                let node = (*node)?;
                let why = self.nodes.get(&node)?.refusal(*bytes)?;
                Some(format!("node {node}: {why}").replace("the host keeps", "the node keeps"))
            })
        };
        self.whole.refusal(together).or_else(of_nodes)
    }
}

/// A tenth of each node is kept back. The one node of a host is the host.
fn by_node(observation: &Observation, available: impl Fn(&NodeMemory) -> u64) -> BTreeMap<u32, Budget> {
    let budget = |node: &NodeMemory| Budget { available: available(node), reserve: node.memory_bytes / 10 };
    let nodes = observation.node_memory.iter().filter(|_| observation.node_memory.len() > 1);
    nodes.map(|node| (node.node, budget(node))).collect_map()
}

/// Why the pools of a plan, so many bytes by node, are more than the host can give as it is now; `None` when they are
/// not. A plan that was made when there was room is judged by this once more before it is written.
#[must_use]
pub fn beyond_memory(observation: &Observation, by_node: &BTreeMap<Option<u32>, u64>) -> Option<String> {
    let is_any = by_node.values().any(|bytes| *bytes > 0);
    if is_any { Budgets::of(observation).refusal(by_node) } else { None }
}

/// The same of pools that a boot gives, when nothing else has taken memory yet.
#[must_use]
pub fn beyond_memory_at_boot(
    observation: &Observation,
    by_node: &BTreeMap<Option<u32>, u64>,
) -> Option<String> {
    let is_any = by_node.values().any(|bytes| *bytes > 0);
    if is_any { Budgets::at_boot(observation).refusal(by_node) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_a_tenth_and_at_least_a_gibibyte() {
        let host = |memory: u64, available: u64| HostFacts {
            memory_bytes: memory << 30,
            available_bytes: available << 30,
            ..HostFacts::default()
        };
        assert!(Budget::of(&host(4, 3)).take(2 << 30).is_ok());
        assert!(Budget::of(&host(4, 3)).take((2 << 30) + 1).is_err());
        assert!(Budget::of(&host(100, 50)).take(40 << 30).is_ok());
        let error = Budget::of(&host(100, 50)).take(41 << 30).expect_err("too much");
        assert_eq!(error, "41 GiB would leave 9 GiB of the 50 GiB available, and the host keeps 10 GiB");
        let error = Budget::of(&host(100, 50)).take(60 << 30).expect_err("more than there is");
        assert_eq!(error, "60 GiB is more than the 50 GiB available, of which the host keeps 10 GiB");
    }

    #[test]
    fn a_node_that_cannot_give_it_is_named_though_the_host_could() {
        let host = HostFacts { memory_bytes: 32 << 30, available_bytes: 28 << 30, ..HostFacts::default() };
        let node = |node, available: u64| NodeMemory {
            node,
            memory_bytes: 16 << 30,
            available_bytes: available << 30,
        };
        let node_memory = vec![node(0, 14), node(1, 14)];
        let observation = Observation { host, node_memory, ..Observation::default() };
        let wanted = |gib: [u64; 2]| ByNode::from([(Some(0), gib[0] << 30), (Some(1), gib[1] << 30)]);
        let mut budgets = Budgets::of(&observation);
        let why = budgets.take(&wanted([0, 15])).expect_err("more than the node has");
        assert_eq!(why, "node 1: 15 GiB is more than the 14 GiB available, of which the node keeps 1.6 GiB");
        assert_eq!(budgets.take(&wanted([8, 8])), Ok(()));
        let why = budgets.take(&wanted([5, 0])).expect_err("the first took it");
        assert!(why.starts_with("node 0: 5 GiB would leave 1 GiB of the 6 GiB available"), "{why}");
        assert_eq!(budgets.take(&wanted([4, 4])), Ok(()));
        assert!(Budgets::at_boot(&observation).refusal(&wanted([15, 0])).is_some(), "for good");
        assert_eq!(Budgets::at_boot(&observation).refusal(&wanted([14, 0])), None);
        assert_eq!(beyond_memory(&observation, &wanted([0, 0])), None);
        assert!(beyond_memory(&observation, &wanted([13, 0])).is_some());
        let one = Observation { node_memory: vec![node(0, 14)], ..observation };
        assert_eq!(beyond_memory(&one, &wanted([15, 0])), None, "the host alone counts where it is the node");
    }

    #[test]
    fn what_one_pool_took_another_cannot_have() {
        let host = HostFacts { memory_bytes: 8 << 30, available_bytes: 4 << 30, ..HostFacts::default() };
        let mut budget = Budget::of(&host);
        assert!(budget.take(2 << 30).is_ok());
        assert!(budget.take(2 << 30).is_err());
        assert!(budget.take(1 << 30).is_ok());
        assert!(budget.take(u64::MAX).is_err());
    }
}
