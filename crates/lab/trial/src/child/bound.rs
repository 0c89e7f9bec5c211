//! The CPUs and the node that an arm's program is started on: whether they are there, and what the kernel says of the
//! program once it runs. A list of CPUs is cut down to those that a control group allows, and nobody is told.

use std::collections::BTreeMap;

use planish_sys::{CpuSet, NodeSet, affinity};
use rustix::process::Pid;
use serde_json::json;

use super::Launch;
use crate::kernel;
use crate::outcome::Achieved;
use crate::sample::ArmError;

/// The lists of what there is.
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
const NODES_WITH_MEMORY: &str = "/sys/devices/system/node/has_memory";

impl Launch {
    /// Whether it is bound to CPUs or to a node.
    fn is_bound(&self) -> bool {
        self.cpus.is_some() || self.node.is_some()
    }

    /// Fails with the names of the CPUs and of the node that this machine does not have.
    pub(crate) fn check_bound(&self) -> Result<(), ArmError> {
        if let (Some(cpus), Some(online)) = (&self.cpus, list::<CpuSet>(CPUS_ONLINE)) {
            let missing = cpus.difference(&online);
            if !missing.is_empty() {
                let (word, are) = if missing.count() == 1 { ("CPU", "is") } else { ("CPUs", "are") };
                return Err(not_here(
                    &format!("{word} {missing} {are} not online: this machine has {online}"),
                    "cpus",
                ));
            }
        }
        if let (Some(node), Some(nodes)) = (self.node, list::<NodeSet>(NODES_WITH_MEMORY))
            && !nodes.contains(node)
        {
            return Err(not_here(
                &format!("node {node} has no memory: this machine has node {nodes}"),
                "node",
            ));
        }
        Ok(())
    }

    /// What the started program is bound to, read back from the kernel: the facts `cpus` and `node`, and whether they
    /// are those of the launch. `None` where it binds nothing; not verified where the program had ended before it was
    /// looked at.
    ///
    /// # Errors
    /// It is bound to something else: the arm cannot be had here.
    pub(crate) fn bound(&self, pid: u32) -> Result<Option<Achieved>, ArmError> {
        if !self.is_bound() {
            return Ok(None);
        }
        let mut facts = BTreeMap::new();
        let mut unread = false;
        if let Some(wanted) = &self.cpus {
            match cpus_of(pid) {
                Some(got) if got == *wanted => drop(facts.insert("cpus".to_owned(), json!(got.to_string()))),
                Some(got) => {
                    return Err(not_here(&format!("it may run on CPUs {got}, not on {wanted}"), "cpus"));
                }
                None => unread = true,
            }
        }
        if let Some(wanted) = self.node {
            match node_of(pid) {
                Some(got) if got == wanted.to_string() => {
                    drop(facts.insert("node".to_owned(), json!(wanted)))
                }
                Some(got) => {
                    let reason = format!("its memory comes from `{got}`, not from node {wanted}");
                    return Err(not_here(&reason, "node"));
                }
                None => unread = true,
            }
        }
        Ok(Some(Achieved { verified: (!unread).then_some(true), facts, ..Achieved::default() }))
    }
}

fn list<S: std::str::FromStr>(path: &str) -> Option<S> {
    kernel::read(path)?.trim().parse().ok()
}

fn not_here(reason: &str, key: &str) -> ArmError {
    let cure = format!("name others in `{key}`, or let the control group of planish have them");
    ArmError::Unavailable { reason: reason.to_owned(), cure }
}

/// The CPUs of a program's first thread; `None` once it is gone.
fn cpus_of(pid: u32) -> Option<CpuSet> {
    affinity::get(Some(Pid::from_raw(i32::try_from(pid).ok()?)?)).ok()
}

/// Where a program's first thread takes memory from, by the stack, which never has a policy of its own: the nodes that
/// it is bound to, or the policy in the kernel's words (numa(7)). `None` once it is gone.
fn node_of(pid: u32) -> Option<String> {
    policy(&kernel::read(&format!("/proc/{pid}/numa_maps"))?)
}

fn policy(numa_maps: &str) -> Option<String> {
    let stack = numa_maps.lines().find(|line| line.split(' ').any(|word| word == "stack"))?;
    let policy = stack.split(' ').nth(1)?;
    let bound = policy.strip_prefix("bind").and_then(|rest| rest.split_once(':'));
    Some(bound.map_or(policy, |(_, nodes)| nodes).to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::child::{Service, run_once};
    use crate::control::Stop;

    const LONG: Duration = Duration::from_secs(60);

    fn last_cpu() -> CpuSet {
        let ours = affinity::get(None).expect("our own mask");
        ours.last().into_iter().collect()
    }

    fn sleeping() -> Launch {
        Launch::of(["sleep", "600"].map(str::to_owned).to_vec())
    }

    #[test]
    fn what_a_program_is_bound_to_is_read_back_from_the_kernel() {
        let free = sleeping();
        let service = Service::start(&free, 0).expect("it starts");
        let pid = service.pid().expect("it runs");
        assert_eq!(free.bound(pid), Ok(None));
        let one = Launch { cpus: Some(last_cpu()), ..sleeping() };
        let ours = affinity::get(None).expect("our own mask");
        if ours.count() > 1 {
            // It was started without: what was asked for is not what it has.
            let error = one.bound(pid).expect_err("it runs everywhere");
            let told = format!("it may run on CPUs {ours}, not on {}", last_cpu());
            assert!(matches!(&error, ArmError::Unavailable { reason, .. } if *reason == told), "{error}");
        }
        let service = Service::start(&one, 0).expect("it starts");
        let got = one.bound(service.pid().expect("it runs")).expect("as asked").expect("it is bound");
        assert_eq!((got.verified, &got.facts["cpus"]), (Some(true), &json!(last_cpu().to_string())));
    }

    #[test]
    fn the_node_is_that_of_the_running_program() {
        let Some(node) = list::<NodeSet>(NODES_WITH_MEMORY).and_then(|nodes| nodes.first()) else {
            planish_skip::skip("the_node_is_that_of_the_running_program", "this kernel tells no nodes");
            return;
        };
        let bound = Launch { node: Some(node), ..sleeping() };
        let other = Service::start(&sleeping(), 0).expect("it starts");
        let error = bound.bound(other.pid().expect("it runs")).expect_err("it takes memory anywhere");
        assert!(error.to_string().contains(&format!("`default`, not from node {node}")), "{error}");
        let service = Service::start(&bound, 0).expect("it starts");
        let got = bound.bound(service.pid().expect("it runs")).expect("as asked").expect("it is bound");
        assert_eq!((got.verified, &got.facts["node"]), (Some(true), &json!(node)));
    }

    #[test]
    fn a_program_that_has_gone_is_not_called_verified() {
        let bound = Launch { cpus: Some(last_cpu()), node: Some(0), ..sleeping() };
        let gone = bound.bound(u32::MAX >> 1).expect("nothing differs").expect("it was to be bound");
        assert_eq!((gone.verified, gone.facts.len()), (None, 0));
    }

    #[test]
    fn cpus_and_nodes_that_are_not_here_are_named() {
        let told = |launch: Launch| match launch.check_bound() {
            Err(ArmError::Unavailable { reason, cure }) if !cure.is_empty() => reason,
            other => panic!("{other:?}"),
        };
        let cpus = |list: &str| Launch { cpus: list.parse().ok(), ..sleeping() };
        assert!(told(cpus("0,9000")).starts_with("CPU 9000 is not online: this machine has "));
        assert!(told(cpus("9000-9001")).starts_with("CPUs 9000-9001 are not online"));
        assert_eq!(cpus(&last_cpu().to_string()).check_bound(), Ok(()));
        assert_eq!(sleeping().check_bound(), Ok(()));
        if list::<NodeSet>(NODES_WITH_MEMORY).is_some() {
            let far = Launch { node: Some(77), ..sleeping() };
            assert!(told(far).starts_with("node 77 has no memory: this machine has node "));
        }
    }

    #[test]
    fn a_measured_program_brings_home_what_it_was_bound_to() {
        let bound = Launch { cpus: Some(last_cpu()), ..Launch::of(vec!["true".to_owned()]) };
        let done = run_once(&bound, 0, LONG, &Stop::default()).expect("it ends well");
        assert_eq!(done.bound.expect("it is bound").facts["cpus"], json!(last_cpu().to_string()));
    }

    #[test]
    fn the_policy_of_the_stack_is_that_of_the_thread() {
        let maps =
            "5581 default file=/bin/sh mapped=1\n7f00 interleave:0-1 anon=1\n7ffc bind:3 stack anon=4\n";
        assert_eq!(policy(maps).as_deref(), Some("3"));
        assert_eq!(policy("7ffc bind=static:0-1 stack anon=4\n").as_deref(), Some("0-1"));
        assert_eq!(policy("7ffc prefer:0 stack\n").as_deref(), Some("prefer:0"));
        assert_eq!(policy("5581 default file=/bin/stack-thing mapped=1\n"), None);
    }
}
