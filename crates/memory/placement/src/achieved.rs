//! What was achieved, read back from the kernel and compared with what was wanted.

use std::collections::BTreeMap;

use planish_model::units::bytes;
use planish_residency::{Area, Backing, FileId, Kind, Map, Member, Part};
use planish_sorted::{CollectMap as _, SortSmall as _};
use planish_sys::NodeSet;
use rustix::io::Errno;

use crate::allocator::Allocator;
use crate::launch::Launch;
use crate::machine::Machine;
use crate::notices::{Notices, range};
use crate::preload::is_preload;
use crate::wire::{self, Notice};
use crate::wish::{HeapPages, SharedPages, Spread, Wish};

/// How far the share of a node may be from what was wanted.
const TOLERANCE: f64 = 0.02;
/// A heap of fewer huge pages than this says nothing of its allocator.
const HEAP_PAGES_MIN: u64 = 8;

/// Bytes on one kind of pages on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The node; `None` where nobody tells.
    pub node: Option<u32>,
    /// On which pages.
    pub backing: Backing,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Resident bytes.
    pub bytes: u64,
}

/// A shared segment that the preload placed.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentAt {
    /// The process that mapped it.
    pub pid: u32,
    /// Where, in this process.
    pub address: u64,
    /// Name of its mapping.
    pub name: String,
    /// `anonymous`, `file` or `sysv`.
    pub kind: &'static str,
    /// Its length.
    pub bytes: u64,
    /// Where it lies.
    pub shares: Vec<Share>,
    /// Time that placing and filling took in the program.
    pub seconds: f64,
    /// Threads that filled it.
    pub threads: u32,
    /// What differs from what was wanted, a sentence each; empty where all was achieved.
    pub short: Vec<String>,
}

/// Private memory of a process: heaps and anonymous mappings.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateAt {
    /// The process.
    pub pid: u32,
    /// Where it lies.
    pub shares: Vec<Share>,
    /// The nodes that its threads ran on last.
    pub ran_on: Vec<u32>,
    /// The share of bytes on those nodes; `None` where it has none, nodes are not told, or there is one node only, on
    /// which all memory is local.
    pub local_share: Option<f64>,
    /// What differs from what was wanted.
    pub short: Vec<String>,
}

/// What was achieved by one start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Achieved {
    /// Shared segments, in the order in which they were placed.
    pub segments: Vec<SegmentAt>,
    /// Private memory of each process.
    pub private: Vec<PrivateAt>,
    /// Resident bytes of all kinds on transparent huge pages.
    pub thp_bytes: u64,
    /// Processes that have a segment to be placed and not the preload: their loader ignored it, or somebody took it out
    /// of their environment.
    pub unreached: Vec<u32>,
    /// Processes that have a segment to be placed and the preload, which has told nothing of it.
    pub untold: Vec<u32>,
    /// What could not be seen, with what would help.
    pub unseen: Vec<String>,
}

impl Achieved {
    /// Compares a map with what was wanted. Notices of processes that are not in it are passed over.
    #[must_use]
    pub fn of(map: &Map, notices: &Notices, launch: &Launch, machine: &Machine) -> Self {
        let wish = &launch.wish;
        let member = |pid| map.members.iter().find(|member| member.pid == pid);
        let told = notices.list().iter().chain(placed_before(map, notices));
        let told = told.filter_map(|notice| Some((notice, member(notice.pid)?)));
        let rows = map.rows();
        let thp = rows.iter().filter(|row| row.backing == Backing::Thp);
        let is_noted = noted(map, notices);
        let wanting =
            map.members.iter().filter(|member| wish.wants_shared() && wants(member, wish, |_| true));
        let (reached, unreached): (Vec<&Member>, Vec<&Member>) =
            wanting.partition(|member| is_reached(member));
        let untold = reached.iter().filter(|member| wants(member, wish, |area| !is_noted(area)));
        Self {
            untold: untold.map(|member| member.pid).collect(),
            unreached: unreached.iter().map(|member| member.pid).collect(),
            segments: told.map(|(notice, member)| segment(map, member, notice, wish, machine)).collect(),
            private: map.members.iter().map(|member| private(member, launch, machine)).collect(),
            thp_bytes: thp.map(|row| row.resident_bytes).sum(),
            unseen: map.unseen.iter().map(ToString::to_string).collect(),
        }
    }

    /// What the preload has answered of segments whose memory nobody has looked at: the program ended before. Where
    /// they lay is not known, and neither is a name.
    #[must_use]
    pub fn answered<'a>(
        notices: impl Iterator<Item = &'a Notice>,
        launch: &Launch,
        machine: &Machine,
    ) -> Vec<SegmentAt> {
        notices
            .map(|notice| {
                let offset = (notice.kind != wire::KIND_FILE).then_some(0);
                let short = failures(notice, &launch.wish, machine.thp_bytes, offset);
                segment_of(notice, String::new(), Vec::new(), short)
            })
            .collect()
    }

    /// The processes that were looked at.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.private.iter().map(|private| private.pid)
    }
}

/// Whether a process maps a segment that the preload would place, and that `is_it`.
fn wants(member: &Member, wish: &Wish, is_it: impl Fn(&Area) -> bool) -> bool {
    member.areas.iter().map(|pages| &pages.area).any(|area| is_wanted(area, wish) && is_it(area))
}

/// Whether a mapping is of a segment that the preload would place.
pub(crate) fn is_wanted(area: &Area, wish: &Wish) -> bool {
    let is_writable = area.permissions[1] == b'w';
    let is_heap = area.name.as_bytes().starts_with(wire::HEAP_OF_JAVA);
    area.may_be_pooled() && area.is_shared() && is_writable && !is_heap && area.bytes() >= wish.bytes_min
}

/// Whether a process has loaded the preload.
fn is_reached(member: &Member) -> bool {
    member.areas.iter().any(|pages| is_preload(&pages.area))
}

/// Tells whether an area is of a segment that a notice is of, in whichever process.
fn noted(map: &Map, notices: &Notices) -> impl Fn(&Area) -> bool {
    let files = files_of(map, notices.seen());
    move |area| area.file().is_some_and(|file| files.contains(&file))
}

/// The objects that notices are of, in whichever process.
fn files_of<'a>(map: &Map, notices: impl Iterator<Item = &'a Notice>) -> Vec<FileId> {
    let all: Vec<&Notice> = notices.collect();
    let mut files = Vec::new();
    for member in &map.members {
        let of: Vec<_> =
            all.iter().filter(|notice| notice.pid == member.pid).map(|notice| range(notice)).collect();
        let areas = member.areas.iter().map(|pages| &pages.area);
        files.extend(
            areas.filter(|area| of.iter().any(|of| of.contains(&area.range.start))).filter_map(Area::file),
        );
    }
    files
}

/// Of segments that had their policy when they were mapped those that nobody of this start has placed, each once.
fn placed_before<'a>(map: &Map, notices: &'a Notices) -> impl Iterator<Item = &'a Notice> {
    let mut known = files_of(map, notices.list().iter());
    notices.placed_before().iter().filter(move |notice| {
        let files = files_of(map, std::iter::once(*notice));
        let is_new = files.iter().any(|file| !known.contains(file));
        known.extend(files);
        is_new
    })
}

fn segment(map: &Map, member: &Member, notice: &Notice, wish: &Wish, machine: &Machine) -> SegmentAt {
    let range = range(notice);
    let inside = member.areas.iter().filter(|pages| range.contains(&pages.area.range.start));
    let mut shares = Vec::new();
    let mut name = String::new();
    let mut offset = None;
    for pages in inside {
        name = pages.area.name.clone();
        offset = offset.or(Some(pages.area.offset));
        // What is in it, where we may see that; else what this process has mapped of it.
        match (pages.object, pages.area.extent()) {
            (Some(object), Some(extent)) => add(&mut shares, &map.objects[object].pages.parts(&extent)),
            _ => add(&mut shares, &pages.parts),
        }
    }
    let mut short = failures(notice, wish, machine.thp_bytes, offset);
    short.extend(uneven(&shares, wish.shared.as_ref(), machine));
    let other_pages = other_pages(&shares, wish.shared_pages);
    short.extend(other_pages.map(|what| match why_no_pool(notice, &shares, wish) {
        Some(why) => format!("{what}: {why}"),
        None => what,
    }));
    segment_of(notice, name, shares, short)
}

/// Why a segment has no page of a pool of which the preload was refused none: it has no say in what a file lies on.
fn why_no_pool(notice: &Notice, shares: &[Share], wish: &Wish) -> Option<&'static str> {
    let is_pool = matches!(wish.shared_pages, Some(SharedPages::Pool(_)));
    let has_some = shares.iter().any(|share| share.backing == Backing::Hugetlb);
    let is_it = is_pool && notice.kind == wire::KIND_FILE && notice.huge_errno == 0 && !has_some;
    is_it.then_some(
        "it is a memfd, or a file on tmpfs, which lie on none: MFD_HUGETLB of memfd_create and files on hugetlbfs do, \
         and --huge shm gives it transparent ones",
    )
}

/// A segment by what the preload has told of it, and what was seen.
fn segment_of(notice: &Notice, name: String, shares: Vec<Share>, short: Vec<String>) -> SegmentAt {
    SegmentAt {
        pid: notice.pid,
        address: notice.address,
        name,
        kind: match notice.kind {
            wire::KIND_ANONYMOUS => "anonymous",
            wire::KIND_SYSV => "sysv",
            wire::KIND_FILE => "file",
            _ => "unknown",
        },
        bytes: notice.bytes,
        shares,
        seconds: notice.nanoseconds as f64 / 1e9,
        threads: notice.threads,
        short,
    }
}

/// Adds parts up by node and pages.
fn add(shares: &mut Vec<Share>, parts: &[Part]) {
    for part in parts {
        let key = |share: &Share| (share.node, share.backing, share.page_bytes);
        match shares.iter_mut().find(|share| key(share) == (part.node, part.backing, part.page_bytes)) {
            Some(share) => share.bytes += part.bytes,
            None => shares.push(Share {
                node: part.node,
                backing: part.backing,
                page_bytes: part.page_bytes,
                bytes: part.bytes,
            }),
        }
    }
    shares.sort_small_by_key(|share| (share.node, share.page_bytes));
}

/// What the preload was refused; `thp_bytes` is the size of a transparent huge page, and `offset` the place in the file
/// that the segment begins at, where it is known.
fn failures(notice: &Notice, wish: &Wish, thp_bytes: Option<u64>, offset: Option<u64>) -> Vec<String> {
    let because = |what: &str, errno: i32| format!("{what}: {}", std::io::Error::from_raw_os_error(errno));
    let mut told = Vec::new();
    if notice.policy_errno != 0 {
        told.push(because("the kernel refused the policy", notice.policy_errno));
    }
    if notice.prefault_errno != 0 {
        told.push(because("it could not be filled", notice.prefault_errno));
    }
    let is_pool = matches!(wish.shared_pages, Some(SharedPages::Pool(_)));
    if is_pool && notice.huge_errno == Errno::PERM.raw_os_error() {
        told.push(
            "it may take no page from the pool, so it has ordinary ones: a System V segment needs CAP_IPC_LOCK for \
             that, or a group of its process in vm.hugetlb_shm_group"
                .to_owned(),
        );
    } else if is_pool && notice.huge_errno == Errno::NOSPC.raw_os_error() {
        told.push(
            "it has ordinary pages: it ends within a page of the pool, and the preload can keep the true lengths of \
             32 such segments at a time"
                .to_owned(),
        );
    } else if is_pool && notice.huge_errno == Errno::NOMEM.raw_os_error() {
        let pages = match wish.shared_pages {
            Some(SharedPages::Pool(Some(page_bytes))) => format!("pages of {}", bytes(page_bytes)),
            _ => "pages of the default size".to_owned(),
        };
        told.push(format!(
            "the pool of {pages} has fewer free pages than it takes, so it has ordinary ones: planish size --bytes {} \
             tells how to reserve them",
            notice.bytes
        ));
    } else if notice.huge_errno == Errno::INVAL.raw_os_error()
        && let (Some(huge), Some(offset)) = (thp_bytes, offset)
        && !notice.address.wrapping_sub(offset).is_multiple_of(huge)
    {
        // Source: thp_vma_suitable_order() in include/linux/huge_mm.h.
        told.push(format!(
            "it has no huge pages: the program has byte {offset:#x} of it at {:#x}, which are not equally far into \
             {}, and the kernel gives shared memory such pages only where they are",
            notice.address,
            bytes(huge)
        ));
    } else if notice.huge_errno != 0 {
        told.push(because("not all of it could have huge pages", notice.huge_errno));
    }
    told.extend(match notice.skipped {
        wire::SKIP_FILLED => {
            Some("it had pages before it was mapped here, so it stays as its maker left it".to_owned())
        }
        wire::SKIP_ROOM => Some(
            "it was not filled: less memory is available, or room in its file system, than it needs"
                .to_owned(),
        ),
        wire::SKIP_GROUP => Some(
            "it was not filled: its control group has less memory left than it needs, with what is to be left for the \
             heap (the page cache of the group counts as used)"
                .to_owned(),
        ),
        wire::SKIP_THREADS => Some("it was not filled: no thread could be started".to_owned()),
        // The program asked for it, or there is nothing to fill.
        _ => None,
    });
    told
}

/// Bytes of each node.
fn by_node(shares: &[Share]) -> BTreeMap<Option<u32>, u64> {
    let mut nodes = BTreeMap::new();
    for share in shares {
        *nodes.entry(share.node).or_insert(0) += share.bytes;
    }
    nodes
}

/// Whether memory lies otherwise than wanted.
fn uneven(shares: &[Share], spread: Option<&Spread>, machine: &Machine) -> Option<String> {
    let spread = spread.filter(|spread| **spread != Spread::Local)?;
    let nodes = by_node(shares);
    let total: u64 = nodes.values().sum();
    if total == 0 || nodes.contains_key(&None) {
        return None;
    }
    let wanted = spread.nodes().unwrap_or(&machine.nodes);
    let differs =
        || format!("it is to be {}, and lies {}", spread.describe(&machine.nodes), told(&nodes, total));
    let page_bytes = shares.iter().map(|share| share.page_bytes).max().unwrap_or(0);
    let is_as_wanted = match spread {
        Spread::Local | Spread::Prefer(_) => true,
        Spread::Bind(_) => nodes.keys().flatten().all(|node| wanted.contains(*node)),
        Spread::Interleave(_) | Spread::Weighted(_) => {
            is_spread(&nodes, &weights(wanted, spread, machine), total, page_bytes)
        }
    };
    (!is_as_wanted).then(differs)
}

/// The weight of each node.
fn weights(wanted: &NodeSet, spread: &Spread, machine: &Machine) -> BTreeMap<u32, u64> {
    let is_weighted = matches!(spread, Spread::Weighted(_));
    let known =
        |node: u32| machine.weights.iter().find(|(known, _)| *known == node).map(|(_, weight)| *weight);
    wanted.iter().map(|node| (node, known(node).filter(|_| is_weighted).unwrap_or(1))).collect_map()
}

/// Whether every node has its share, but for a round of pages at the end.
fn is_spread(
    nodes: &BTreeMap<Option<u32>, u64>,
    weights: &BTreeMap<u32, u64>,
    total: u64,
    page_bytes: u64,
) -> bool {
    let sum: u64 = weights.values().sum();
    let slack = TOLERANCE / 2.0 * total as f64 + page_bytes as f64;
    let has = |node: u32| nodes.get(&Some(node)).copied().unwrap_or(0) as f64;
    let is_near = |(node, weight): (&u32, &u64)| {
        let wanted = total as f64 * *weight as f64 / sum.max(1) as f64;
        (has(*node) - wanted).abs() <= slack.max(page_bytes as f64 * *weight as f64)
    };
    nodes.keys().flatten().all(|node| weights.contains_key(node)) && weights.iter().all(is_near)
}

/// `96.0 % on node 0, 4.0 % on node 1`
fn told(nodes: &BTreeMap<Option<u32>, u64>, total: u64) -> String {
    let share = |(node, bytes): (&Option<u32>, &u64)| {
        let node = node.map_or_else(|| "nobody knows where".to_owned(), |node| format!("on node {node}"));
        format!("{:.1} % {node}", *bytes as f64 * 100.0 / total.max(1) as f64)
    };
    nodes.iter().map(share).collect::<Vec<_>>().join(", ")
}

/// Whether memory lies on other pages than wanted; a part at the end that fills no huge page is none.
fn other_pages(shares: &[Share], wanted: Option<SharedPages>) -> Option<String> {
    let wanted = wanted?;
    let total: u64 = shares.iter().map(|share| share.bytes).sum();
    let is_it = |share: &&Share| match wanted {
        SharedPages::Thp => share.backing == Backing::Thp,
        SharedPages::Pool(size) => {
            share.backing == Backing::Hugetlb && size.is_none_or(|size| size == share.page_bytes)
        }
    };
    let on_it: u64 = shares.iter().filter(is_it).map(|share| share.bytes).sum();
    let page_bytes = shares.iter().filter(is_it).map(|share| share.page_bytes).max().unwrap_or(0);
    let word = match wanted {
        SharedPages::Thp => "transparent huge pages",
        SharedPages::Pool(_) => "pages from the pool",
    };
    let percent = on_it as f64 * 100.0 / total.max(1) as f64;
    (total > 0 && total - on_it >= page_bytes.max(1)).then(|| format!("{percent:.1} % of it lies on {word}"))
}

/// Whether a heap lies on other pages than wanted for the most part: the allocator has taken them otherwise, or was not
/// reached. What is small, and where huge pages begin and end, is no shortfall.
fn other_heap_pages(shares: &[Share], wanted: Option<HeapPages>, machine: &Machine) -> Option<String> {
    let (word, page_bytes) = match wanted? {
        HeapPages::Thp => ("huge pages", machine.thp_bytes?),
        HeapPages::Pool => ("pages from the pool", machine.pool_bytes),
    };
    let is_it = |share: &&Share| match share.backing {
        Backing::Hugetlb => true,
        Backing::Thp => wanted == Some(HeapPages::Thp),
        _ => false,
    };
    let total: u64 = shares.iter().map(|share| share.bytes).sum();
    let on_it: u64 = shares.iter().filter(is_it).map(|share| share.bytes).sum();
    let percent = on_it as f64 * 100.0 / total.max(1) as f64;
    (total >= page_bytes.saturating_mul(HEAP_PAGES_MIN) && on_it < total / 2)
        .then(|| format!("private memory: {percent:.1} % of {} MiB lies on {word}", total >> 20))
}

/// What is known of why.
fn why_other_pages(member: &Member, launch: &Launch, machine: &Machine, bytes: u64) -> String {
    let names = member.areas.iter().map(|pages| pages.area.name.as_str());
    let loaded: Vec<Allocator> = names.filter_map(Allocator::of).collect();
    let meant = launch.malloc();
    let (_, free) = machine.pools.iter().find(|(size, _)| *size == machine.pool_bytes).unwrap_or(&(0, 0));
    match (meant, loaded.first()) {
        (Some(meant), _) if !loaded.contains(&meant) => format!("{} is not loaded in it", meant.word()),
        (None, Some(other)) => {
            format!("its malloc is {0}, which was told nothing of it: --malloc {0}", other.word())
        }
        _ if launch.wish.heap_pages == Some(HeapPages::Pool) && free * machine.pool_bytes < bytes => format!(
            "the pool had {free} free pages at the start: planish size --bytes {bytes} tells how to reserve them"
        ),
        _ => "what a program maps without its malloc, or by one that is linked into it, is not reached"
            .to_owned(),
    }
}

fn private(member: &Member, launch: &Launch, machine: &Machine) -> PrivateAt {
    let wish = &launch.wish;
    let own = member.areas.iter().filter(|pages| matches!(pages.area.kind, Kind::Heap | Kind::Anon));
    let mut shares = Vec::new();
    own.for_each(|pages| add(&mut shares, &pages.parts));
    let nodes = by_node(&shares);
    let total: u64 = nodes.values().sum();
    let mut ran_on: Vec<u32> = member.threads.iter().filter_map(|on| on.node).collect();
    ran_on.sort_unstable();
    ran_on.dedup();
    let local: u64 = ran_on.iter().filter_map(|node| nodes.get(&Some(*node))).sum();
    let is_told = total > 0 && !nodes.contains_key(&None) && machine.known.count() > 1;
    let bound = wish.nodes.clone().map(Spread::Bind);
    let spread = bound.as_ref().or(wish.heap.as_ref());
    // Libraries and their pages were there before any policy counts: a heap of a few pages proves nothing.
    let is_large = total >= 4 << 20;
    let elsewhere = uneven(&shares, spread, machine).filter(|_| is_large);
    let pages = other_heap_pages(&shares, wish.heap_pages, machine);
    let pages = pages.map(|what| format!("{what}; {}", why_other_pages(member, launch, machine, total)));
    PrivateAt {
        pid: member.pid,
        local_share: is_told.then(|| local as f64 / total as f64),
        short: elsewhere.map(|why| format!("private memory: {why}")).into_iter().chain(pages).collect(),
        shares,
        ran_on,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(bytes: &[(u32, u64)]) -> BTreeMap<Option<u32>, u64> {
        bytes.iter().map(|(node, bytes)| (Some(*node), *bytes)).collect()
    }

    #[test]
    fn two_percent_apart_is_even_and_three_is_not() {
        let even: BTreeMap<u32, u64> = [(0, 1), (1, 1)].into();
        let is_spread = |first: u64| is_spread(&nodes(&[(0, first), (1, 1000 - first)]), &even, 1000, 1);
        assert!(is_spread(500) && is_spread(510) && is_spread(490));
        assert!(!is_spread(515) && !is_spread(960) && !is_spread(1000));
    }

    #[test]
    fn weights_and_strangers_count() {
        let three_to_one: BTreeMap<u32, u64> = [(0, 3), (1, 1)].into();
        assert!(is_spread(&nodes(&[(0, 7500), (1, 2500)]), &three_to_one, 10000, 1));
        assert!(!is_spread(&nodes(&[(0, 5000), (1, 5000)]), &three_to_one, 10000, 1));
        let even: BTreeMap<u32, u64> = [(0, 1), (1, 1)].into();
        assert!(!is_spread(&nodes(&[(0, 50), (1, 50), (2, 1)]), &even, 101, 1));
        // Three huge pages cannot be halved.
        assert!(is_spread(&nodes(&[(0, 4 << 20), (1, 2 << 20)]), &even, 6 << 20, 2 << 20));
    }

    #[test]
    fn a_tail_that_fills_no_huge_page_is_no_shortfall() {
        let share = |backing, page_bytes, bytes| Share { node: Some(0), backing, page_bytes, bytes };
        let huge = share(Backing::Thp, 2 << 20, 64 << 20);
        assert_eq!(other_pages(&[huge, share(Backing::Base, 4096, 8192)], Some(SharedPages::Thp)), None);
        let half = other_pages(&[huge, share(Backing::Base, 4096, 64 << 20)], Some(SharedPages::Thp));
        assert_eq!(half.as_deref(), Some("50.0 % of it lies on transparent huge pages"));
        assert!(other_pages(&[huge], Some(SharedPages::Pool(None))).is_some());
        assert_eq!(other_pages(&[], Some(SharedPages::Thp)), None);
    }

    #[test]
    fn a_heap_on_other_pages_than_wanted_is_told() {
        let host = planish_host::Host::live();
        let looked = Machine::look(&host).unwrap();
        let machine = Machine { thp_bytes: Some(2 << 20), pool_bytes: 2 << 20, ..looked };
        let share = |backing, page_bytes, bytes| Share { node: Some(0), backing, page_bytes, bytes };
        let (base, thp) = (share(Backing::Base, 4096, 60 << 20), share(Backing::Thp, 2 << 20, 40 << 20));
        let told = |shares: &[Share], pages| other_heap_pages(shares, pages, &machine);
        let few = told(&[base, thp], Some(HeapPages::Thp));
        assert_eq!(few.as_deref(), Some("private memory: 40.0 % of 100 MiB lies on huge pages"));
        assert_eq!(told(&[base, thp], None), None);
        assert_eq!(told(&[base, thp, thp], Some(HeapPages::Thp)), None);
        assert_eq!(told(&[share(Backing::Base, 4096, 15 << 20)], Some(HeapPages::Thp)), None, "small");
        let pool = share(Backing::Hugetlb, 2 << 20, 64 << 20);
        assert_eq!(told(&[base, pool], Some(HeapPages::Pool)), None);
        assert_eq!(told(&[base, pool], Some(HeapPages::Thp)), None, "mimalloc tries the pool first");
        assert!(told(&[thp, base, thp], Some(HeapPages::Pool)).is_some());
    }

    #[test]
    fn a_memfd_without_pages_of_the_pool_has_the_reason_beside_it() {
        let wish = |pages| Wish { shared_pages: Some(pages), ..Wish::default() };
        let pool = wish(SharedPages::Pool(Some(2 << 20)));
        let file = Notice { kind: wire::KIND_FILE, ..Notice::default() };
        let share = |backing| [Share { node: Some(0), backing, page_bytes: 4096, bytes: 8 << 20 }];
        let base = share(Backing::Base);
        assert!(why_no_pool(&file, &base, &pool).is_some_and(|why| why.contains("MFD_HUGETLB")));
        assert_eq!(why_no_pool(&file, &share(Backing::Hugetlb), &pool), None, "of another pool");
        assert_eq!(why_no_pool(&file, &base, &wish(SharedPages::Thp)), None);
        let anonymous = Notice { kind: wire::KIND_ANONYMOUS, ..file };
        assert_eq!(why_no_pool(&anonymous, &base, &pool), None);
        assert_eq!(why_no_pool(&Notice { huge_errno: 12, ..file }, &base, &pool), None, "told already");
    }

    #[test]
    fn an_address_at_which_no_huge_page_can_be_is_named() {
        let notice = Notice { huge_errno: 22, address: 0x7000_0000_1000, ..Notice::default() };
        let wish = Wish { shared_pages: Some(SharedPages::Thp), ..Wish::default() };
        let told = |notice: &Notice, offset| failures(notice, &wish, Some(2 << 20), offset)[0].clone();
        let odd = told(&notice, Some(0));
        assert!(
            odd.contains("byte 0x0 of it at 0x700000001000, which are not equally far into 2 MiB"),
            "{odd}"
        );
        let aligned = Notice { address: 0x7000_0000_0000, ..notice };
        assert!(told(&aligned, Some(0)).starts_with("not all of it"), "an older kernel");
        assert!(told(&notice, Some(0x1000)).starts_with("not all of it"), "as far into it as its place");
        assert!(told(&aligned, Some(0x1000)).contains("byte 0x1000 of it"), "not where its place is");
        assert!(told(&notice, None).starts_with("not all of it"), "nobody knows");
    }

    #[test]
    fn refusals_of_the_kernel_are_told_in_its_words() {
        let notice = Notice { policy_errno: 1, skipped: wire::SKIP_ROOM, ..Notice::default() };
        let told = failures(&notice, &Wish::default(), None, None);
        assert!(told[0].starts_with("the kernel refused the policy: Operation not permitted"), "{told:?}");
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn a_pool_that_is_short_is_named_with_what_helps() {
        let notice = Notice { huge_errno: 12, bytes: 48 << 20, ..Notice::default() };
        let wish = |pages| Wish { shared_pages: Some(pages), ..Wish::default() };
        let told = failures(&notice, &wish(SharedPages::Pool(None)), None, None);
        assert!(told[0].contains("default size has fewer free pages"), "{told:?}");
        assert!(told[0].contains("--bytes 50331648"), "{told:?}");
        let told = failures(&notice, &wish(SharedPages::Pool(Some(2 << 20))), None, None);
        assert!(told[0].contains("pages of 2 MiB has fewer free pages"), "{told:?}");
        let many = failures(&Notice { huge_errno: 28, ..notice }, &wish(SharedPages::Pool(None)), None, None);
        assert!(many[0].contains("32 such segments"), "{many:?}");
        let refused =
            failures(&Notice { huge_errno: 1, ..notice }, &wish(SharedPages::Pool(None)), None, None);
        assert!(refused[0].contains("vm.hugetlb_shm_group"), "{refused:?}");
        let told = failures(&notice, &wish(SharedPages::Thp), None, None);
        assert!(told[0].starts_with("not all of it could have huge pages: "), "{told:?}");
    }
}
