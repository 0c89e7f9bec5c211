//! Where memory is placed: the kernel's memory policies, by raw calls with masks of any size.
//!
//! rustix has none of these calls, and libnuma would be a C dependency with fixed expectations. Containers
//! commonly forbid all of them without CAP_SYS_NICE: that is [`Error::Forbidden`], to be reported, not
//! hidden.
//!
//! Source: Documentation/admin-guide/mm/numa_memory_policy.rst and mm/mempolicy.c.

use std::ops::Range;

use linux_raw_sys::general as nr;
use linux_raw_sys::mempolicy as raw;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::mapping::Mapping;
use crate::raw::syscall;
use crate::set::NodeSet;

/// How the kernel chooses the node of a new page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// What applies without a policy: a thread's for a range, the local node for a thread.
    Default,
    /// The node of the CPU that touches the page first.
    Local,
    /// Only these nodes; failure rather than another node.
    Bind(NodeSet),
    /// Page by page round these nodes. Only a hint: a full node is passed over.
    Interleave(NodeSet),
    /// These nodes first, others when they are full (Linux 5.15).
    PreferredMany(NodeSet),
    /// Round these nodes by the weights in /sys/kernel/mm/mempolicy/weighted_interleave (Linux 6.9).
    WeightedInterleave(NodeSet),
}

impl Policy {
    /// The kernel's number of it, `MPOL_*`.
    pub fn mode(&self) -> u32 {
        let mode = match self {
            Self::Default => raw::MPOL_DEFAULT,
            Self::Local => raw::MPOL_LOCAL,
            Self::Bind(_) => raw::MPOL_BIND,
            Self::Interleave(_) => raw::MPOL_INTERLEAVE,
            Self::PreferredMany(_) => raw::MPOL_PREFERRED_MANY,
            Self::WeightedInterleave(_) => raw::MPOL_WEIGHTED_INTERLEAVE,
        };
        mode as u32
    }

    /// The nodes that the policy names, if it names any.
    pub fn nodes(&self) -> Option<&NodeSet> {
        match self {
            Self::Default | Self::Local => None,
            Self::Bind(nodes)
            | Self::Interleave(nodes)
            | Self::PreferredMany(nodes)
            | Self::WeightedInterleave(nodes) => Some(nodes),
        }
    }

    /// Its name, as systemd.exec(5) has it for `NUMAPolicy=`; weighted interleave has none there.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Local => "local",
            Self::Bind(_) => "bind",
            Self::Interleave(_) => "interleave",
            Self::PreferredMany(_) => "preferred",
            Self::WeightedInterleave(_) => "weighted",
        }
    }

    /// The policy that the kernel reports as `mode` with `nodes`; `None` for a mode newer than this code.
    fn from_kernel(mode: u32, nodes: NodeSet) -> Option<Self> {
        let is = |other: raw::_bindgen_ty_1| mode & !raw::MPOL_MODE_FLAGS == other as u32;
        Some(match () {
            () if is(raw::MPOL_DEFAULT) => Self::Default,
            () if is(raw::MPOL_LOCAL) => Self::Local,
            () if is(raw::MPOL_BIND) => Self::Bind(nodes),
            () if is(raw::MPOL_INTERLEAVE) => Self::Interleave(nodes),
            () if is(raw::MPOL_PREFERRED_MANY) => Self::PreferredMany(nodes),
            // MPOL_PREFERRED with one node is the older form of the same wish.
            () if is(raw::MPOL_PREFERRED) => Self::PreferredMany(nodes),
            () if is(raw::MPOL_WEIGHTED_INTERLEAVE) => Self::WeightedInterleave(nodes),
            () => return None,
        })
    }
}

/// Whether pages that already exist follow a new policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They stay where they are; only new pages obey.
    Stay,
    /// Those that only this process maps are moved; the ones that cannot be moved stay silently.
    Move,
}

/// Where one page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAt {
    /// On this node.
    Node(u32),
    /// No page is mapped at this address in that process, which says nothing about a shared segment.
    Absent,
    /// The kernel could not tell, or could not move the page.
    Failed(Errno),
}

impl Mapping {
    /// Sets the policy of the whole mapping; see [`Mapping::set_policy_range`].
    pub fn set_policy(&self, policy: &Policy, existing: Existing) -> Result<()> {
        self.set_policy_range(0..self.len(), policy, existing)
    }

    /// Sets the policy of `range` (bytes from the start, whole base pages).
    ///
    /// On a shared mapping the policy belongs to the memory object, so one call governs all processes.
    pub fn set_policy_range(&self, range: Range<usize>, policy: &Policy, existing: Existing) -> Result<()> {
        self.check_range(&range)?;
        bind(self.as_ptr().addr() + range.start, range.len(), policy, existing)
    }
}

/// Sets the policy of the pages at `address` in this process (mbind(2)).
///
/// `address` must lie on a base page. A policy never changes contents, so any range may be named; one that
/// is not mapped is an error.
pub fn bind(address: usize, bytes: usize, policy: &Policy, existing: Existing) -> Result<()> {
    let flags = match existing {
        Existing::Stay => 0,
        Existing::Move => raw::MPOL_MF_MOVE,
    };
    let (mask, bits) = mask_of(policy);
    // SAFETY: mbind reads `bits` bits at `mask`, which `mask_of` sized so and `policy` keeps alive; it
    // changes where pages lie, never what they hold, and checks `address` itself.
    let call = |mode: u32| unsafe { syscall!(nr::__NR_mbind, address, bytes, mode, mask, bits, flags) };
    let outcome = match (call(policy.mode()), policy) {
        // Before Linux 5.15 there is the older form of the same wish, for one node.
        (Err(Errno::INVAL), Policy::PreferredMany(nodes)) if nodes.count() == 1 => {
            call(raw::MPOL_PREFERRED as u32)
        }
        (outcome, _) => outcome,
    };
    outcome.map(drop).map_err(|errno| Error::of("mbind", errno))
}

/// Sets the policy of the calling thread, inherited by its children (set_mempolicy(2)).
pub fn set_thread_policy(policy: &Policy) -> Result<()> {
    let (mask, bits) = mask_of(policy);
    // SAFETY: set_mempolicy reads `bits` bits at `mask`, which `mask_of` sized so and `policy` keeps alive.
    let outcome = unsafe { syscall!(nr::__NR_set_mempolicy, policy.mode(), mask, bits) };
    outcome.map(drop).map_err(|errno| Error::of("set_mempolicy", errno))
}

/// The policy of the calling thread; `None` when the kernel names a mode that this code does not know.
pub fn thread_policy() -> Result<Option<Policy>> {
    let (mode, nodes) = get_mempolicy(0, 0)?;
    Ok(Policy::from_kernel(mode, nodes))
}

/// The policy that governs the page at `address` of this process; `None` for a mode unknown here.
pub fn policy_at(address: usize) -> Result<Option<Policy>> {
    let (mode, nodes) = get_mempolicy(address, raw::MPOL_F_ADDR)?;
    Ok(Policy::from_kernel(mode, nodes))
}

/// The nodes that this process may take memory from (its cpuset's `mems`). Where a container forbids the call, a file
/// has the same list.
#[expect(clippy::disallowed_methods, reason = "it is our own process, which no recorded host has")]
pub fn allowed_nodes() -> Result<NodeSet> {
    let asked = get_mempolicy(0, raw::MPOL_F_MEMS_ALLOWED).map(|(_, nodes)| nodes);
    asked.or_else(|error| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        nodes_of_status(&status).ok_or(error)
    })
}

fn nodes_of_status(status: &str) -> Option<NodeSet> {
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    NodeSet::parse_list(list.trim()).ok().filter(|nodes| !nodes.is_empty())
}

/// Where the pages at `addresses` lie in the process `pid` (`None`: this one), without moving any.
///
/// Another process needs ptrace rights. Only pages that process has mapped are seen.
pub fn pages_at(pid: Option<Pid>, addresses: &[usize]) -> Result<Vec<PageAt>> {
    call_move_pages(pid, addresses, None)
}

/// Moves the page at each address to the node at the same index of `nodes`; tells where each is now.
///
/// # Panics
/// When the two slices differ in length.
pub fn move_pages(pid: Option<Pid>, addresses: &[usize], nodes: &[u32]) -> Result<Vec<PageAt>> {
    assert_eq!(addresses.len(), nodes.len(), "one target node for each address");
    let nodes: Vec<i32> = nodes.iter().map(|node| i32::try_from(*node).unwrap_or(i32::MAX)).collect();
    call_move_pages(pid, addresses, Some(&nodes))
}

fn call_move_pages(pid: Option<Pid>, addresses: &[usize], nodes: Option<&[i32]>) -> Result<Vec<PageAt>> {
    let pid = pid.map_or(0, Pid::as_raw_pid);
    let nodes = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
    // A status that the kernel leaves alone means that it gave up before that page.
    let mut status = vec![-Errno::AGAIN.raw_os_error(); addresses.len()];
    // SAFETY: the kernel reads `addresses.len()` addresses and, unless null, as many nodes (`move_pages`
    // asserts equal lengths), and writes as many statuses, for which `status` was sized above.
    let outcome = unsafe {
        let (count, flags) = (addresses.len(), raw::MPOL_MF_MOVE);
        syscall!(nr::__NR_move_pages, pid, count, addresses.as_ptr(), nodes, status.as_mut_ptr(), flags)
    };
    // A positive return counts pages that did not move: their status says so one by one.
    outcome.map_err(|errno| Error::of("move_pages", errno))?;
    Ok(status.into_iter().map(page_at).collect())
}

fn page_at(status: i32) -> PageAt {
    match u32::try_from(status) {
        Ok(node) => PageAt::Node(node),
        Err(_) if status == -Errno::NOENT.raw_os_error() => PageAt::Absent,
        Err(_) => PageAt::Failed(Errno::from_raw_os_error(-status)),
    }
}

/// The mask of a policy as the kernel takes it: a pointer and one more than the number of its bits.
///
/// `get_nodes` in mm/mempolicy.c decrements the count first, an old quirk that libnuma lives with as well.
/// The pointer is valid as long as `policy` is.
fn mask_of(policy: &Policy) -> (*const u64, usize) {
    match policy.nodes() {
        Some(nodes) if !nodes.is_empty() => {
            (nodes.words().as_ptr(), nodes.words().len() * u64::BITS as usize + 1)
        }
        _ => (std::ptr::null(), 0),
    }
}

/// Mode and nodes; the mask grows until it holds every node that this kernel could have.
fn get_mempolicy(address: usize, flags: u32) -> Result<(u32, NodeSet)> {
    const WORDS_MAX: usize = 1024;
    let mut words = vec![0u64; 16];
    loop {
        let mut mode = 0i32;
        // SAFETY: the kernel writes one int to `mode` and at most the told number of bits to `words`, which
        // holds that many; `address` is only looked up, and only with MPOL_F_ADDR.
        let outcome = unsafe {
            let bits = words.len() * u64::BITS as usize;
            syscall!(nr::__NR_get_mempolicy, &raw mut mode, words.as_mut_ptr(), bits, address, flags)
        };
        match outcome {
            Ok(_) => return Ok((mode.unsigned_abs(), NodeSet::from_words(words))),
            Err(Errno::INVAL) if words.len() < WORDS_MAX => words.resize(words.len() * 2, 0),
            Err(errno) => return Err(Error::of("get_mempolicy", errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Advice, MapOptions, PageRequest, map_anonymous};
    use crate::pages;

    /// The allowed nodes, or `None` with a word where policies are forbidden or not built in.
    fn nodes_or_skip(test: &str) -> Option<NodeSet> {
        match thread_policy().and_then(|_| allowed_nodes()) {
            Ok(nodes) => Some(nodes),
            Err(error) => {
                planish_skip::skip(test, error);
                None
            }
        }
    }

    #[test]
    fn nodes_are_told_where_the_call_is_forbidden() {
        let status = "Mems_allowed:\t00000000,00000003\nMems_allowed_list:\t0-1\nNoNewPrivs:\t0\n";
        assert_eq!(nodes_of_status(status), Some([0, 1].into_iter().collect()));
        assert_eq!(nodes_of_status("Mems_allowed_list:\t\n"), None);
        assert_eq!(nodes_of_status("Name:\tsh\n"), None);
        let Some(asked) = nodes_or_skip("nodes_are_told_where_the_call_is_forbidden") else { return };
        assert_eq!(asked, allowed_nodes().unwrap());
    }

    #[test]
    fn a_bound_range_lies_where_it_was_bound() {
        let Some(nodes) = nodes_or_skip("a_bound_range_lies_where_it_was_bound") else { return };
        let node = nodes.first().unwrap();
        let policy = Policy::Bind([node].into_iter().collect());
        let base = pages::base_bytes();
        let mapping = map_anonymous(4 * base, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.set_policy(&policy, Existing::Stay).unwrap();
        assert_eq!(policy_at(mapping.as_ptr().addr()).unwrap(), Some(policy));

        mapping.advise_range(0..2 * base, Advice::PopulateWrite).unwrap();
        let addresses: Vec<usize> = (0..4).map(|page| mapping.as_ptr().addr() + page * base).collect();
        let on = PageAt::Node(node);
        assert_eq!(pages_at(None, &addresses).unwrap(), [on, on, PageAt::Absent, PageAt::Absent]);
        assert_eq!(move_pages(None, &addresses[..2], &[node, node]).unwrap(), [on, on]);
    }

    #[test]
    fn every_policy_with_nodes_is_read_back_as_set() {
        let Some(nodes) = nodes_or_skip("every_policy_with_nodes_is_read_back_as_set") else { return };
        let mapping = map_anonymous(1, MapOptions::new(PageRequest::Base)).unwrap();
        for make in [Policy::Bind, Policy::Interleave, Policy::PreferredMany, Policy::WeightedInterleave] {
            let policy = make(nodes.clone());
            match mapping.set_policy(&policy, Existing::Stay) {
                Ok(()) => assert_eq!(policy_at(mapping.as_ptr().addr()).unwrap(), Some(policy)),
                // 5.15 brought one, 6.9 the other.
                Err(error) => planish_skip::skip(&format!("read back {policy:?}"), error),
            }
        }
    }

    #[test]
    fn a_thread_policy_is_the_threads_own() {
        let Some(nodes) = nodes_or_skip("a_thread_policy_is_the_threads_own") else { return };
        let before = thread_policy().unwrap();
        std::thread::spawn(move || {
            set_thread_policy(&Policy::Interleave(nodes.clone())).unwrap();
            assert_eq!(thread_policy().unwrap(), Some(Policy::Interleave(nodes)));
            set_thread_policy(&Policy::Default).unwrap();
            assert_eq!(thread_policy().unwrap(), Some(Policy::Default));
        })
        .join()
        .unwrap();
        assert_eq!(thread_policy().unwrap(), before);
    }

    #[test]
    fn a_node_that_does_not_exist_is_an_error() {
        if nodes_or_skip("a_node_that_does_not_exist_is_an_error").is_none() {
            return;
        }
        let mapping = map_anonymous(1, MapOptions::new(PageRequest::Base)).unwrap();
        let beyond = Policy::Bind([5000].into_iter().collect());
        let error = mapping.set_policy(&beyond, Existing::Stay).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::INVAL));
        assert!(mapping.set_policy(&Policy::Bind(NodeSet::new()), Existing::Stay).is_err());
    }

    #[test]
    fn a_status_tells_absent_from_failed() {
        assert_eq!(page_at(3), PageAt::Node(3));
        assert_eq!(page_at(-Errno::NOENT.raw_os_error()), PageAt::Absent);
        assert_eq!(page_at(-Errno::FAULT.raw_os_error()), PageAt::Failed(Errno::FAULT));
    }
}
