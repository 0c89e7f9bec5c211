//! The machines that QEMU builds for us.

/// One NUMA node.
#[derive(Clone, Copy)]
pub struct Node {
    /// CPUs on it; zero makes a node of memory only, as CXL memory appears.
    pub cpu_count: usize,
    /// Memory on it.
    pub memory_mib: usize,
}

/// A machine.
pub struct Shape {
    /// Name in results and of recorded guests.
    pub name: &'static str,
    /// Its nodes, in the order of their ids.
    pub nodes: &'static [Node],
}

const fn node(cpu_count: usize, memory_mib: usize) -> Node {
    Node { cpu_count, memory_mib }
}

// Memory is only taken where a guest touches it. planish leaves every host 1 GiB: less than 2 GiB here would
// prove nothing about pools.

/// Two ordinary nodes and one of memory only: the one shape that asks every question in one boot.
pub const USUAL: Shape = Shape { name: "2n-cxl", nodes: &[node(2, 1024), node(2, 1024), node(0, 512)] };

/// Two nodes with room for a server and its data, on which real servers are started and nothing else is looked at.
pub const SERVERS: Shape = Shape { name: "servers", nodes: &[node(2, 1280), node(2, 1280)] };

/// Shapes that only `--full` boots.
pub const OTHERS: &[Shape] = &[
    Shape { name: "1n", nodes: &[node(2, 2048)] },
    Shape { name: "2n", nodes: &[node(2, 1024), node(2, 1024)] },
    Shape { name: "4n", nodes: &[node(1, 512), node(1, 512), node(1, 512), node(1, 512)] },
];

impl Shape {
    /// CPUs over all nodes.
    pub fn cpu_count(&self) -> usize {
        self.nodes.iter().map(|node| node.cpu_count).sum()
    }

    /// Memory over all nodes.
    pub fn memory_mib(&self) -> usize {
        self.nodes.iter().map(|node| node.memory_mib).sum()
    }

    /// What the guest is told about itself, to compare planish with.
    pub fn kernel_words(&self) -> String {
        let cpuless_count = self.nodes.iter().filter(|node| node.cpu_count == 0).count();
        format!(
            "planish.nodes={} planish.cpuless={cpuless_count} planish.cpus={}",
            self.nodes.len(),
            self.cpu_count()
        )
    }

    /// The part of the QEMU command line that builds it.
    pub fn qemu_args(&self) -> Vec<String> {
        let (cpu_count, memory_mib) = (self.cpu_count(), self.memory_mib());
        let mut args = vec!["-smp".into(), cpu_count.to_string(), "-m".into(), format!("{memory_mib}M")];
        let mut cpu_next = 0;
        for (id, node) in self.nodes.iter().enumerate() {
            args.extend(["-object".into(), format!("memory-backend-ram,id=m{id},size={}M", node.memory_mib)]);
            let cpus = match node.cpu_count {
                0 => String::new(),
                count => format!(",cpus={cpu_next}-{}", cpu_next + count - 1),
            };
            cpu_next += node.cpu_count;
            args.extend(["-numa".into(), format!("node,nodeid={id}{cpus},memdev=m{id}")]);
        }
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                args.extend([
                    "-numa".into(),
                    format!("dist,src={from},dst={to},val={}", self.distance(from, to)),
                ]);
            }
        }
        args
    }

    /// As firmware tells it (ACPI SLIT): 10 to itself, further to memory behind a link.
    fn distance(&self, from: usize, to: usize) -> usize {
        const LOCAL: usize = 10;
        const REMOTE: usize = 21;
        const MEMORY_ONLY: usize = 28;
        if from == to {
            LOCAL
        } else if [from, to].iter().any(|id| self.nodes[*id].cpu_count == 0) {
            MEMORY_ONLY
        } else {
            REMOTE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OTHERS, USUAL};

    #[test]
    fn every_cpu_lies_on_one_node() {
        assert!(USUAL.qemu_args().contains(&"node,nodeid=1,cpus=2-3,memdev=m1".to_owned()));
        assert!(USUAL.qemu_args().contains(&"node,nodeid=2,memdev=m2".to_owned()));
        for shape in OTHERS {
            let nodes = shape.qemu_args().iter().filter(|arg| arg.starts_with("node,")).count();
            assert_eq!(nodes, shape.nodes.len());
        }
    }
}
