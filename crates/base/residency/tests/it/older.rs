//! The map as older kernels and containers have it: a filter refuses the calls to a thread of ours.

use std::collections::BTreeMap;
use std::io::Error;
use std::time::{Duration, Instant};

use planish_host::Host;
use planish_residency::{Backing, Kind, Map, SeenBy, Who};
use planish_sys::pages;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::actor::Actor;

/// A call that is refused: its number, its request where it has one, and the answer.
#[derive(Clone, Copy)]
struct Refused(libc::c_long, Option<u32>, i32);

/// The kernel is one before Linux 6.7.
const NO_SCAN: Refused = Refused(libc::SYS_ioctl, Some(0xc060_6610), libc::ENOTTY);
/// The container may not ask for the nodes of pages.
const NO_NODES: Refused = Refused(libc::SYS_move_pages, None, libc::EPERM);

/// A filter that refuses these calls.
fn filter(refused: &[Refused]) -> Vec<libc::sock_filter> {
    let rule = |code: u32, yes, no, k| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let (load, is, end) =
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_RET);
    let mut rules = Vec::new();
    for Refused(call, request, errno) in refused {
        // Of `struct seccomp_data` the number of the call, and the lower half of its second argument.
        rules.push(rule(load, 0, 0, 0));
        rules.push(rule(is, 0, if request.is_some() { 3 } else { 1 }, *call as u32));
        if let Some(request) = request {
            rules.push(rule(load, 0, 0, 24));
            rules.push(rule(is, 0, 1, *request));
        }
        rules.push(rule(end, 0, 0, libc::SECCOMP_RET_ERRNO | *errno as u32));
    }
    rules.push(rule(end, 0, 0, libc::SECCOMP_RET_ALLOW));
    rules
}

/// The tree of a process as one sees it whose calls are refused, and who may see no frames and no segments without
/// `has_rights`; a word why that cannot be had here.
fn tree(pid: u32, has_rights: bool, refused: &[Refused]) -> Result<Map, Error> {
    let mut rules = filter(refused);
    // Filter and rights are of one thread and those that it starts.
    let looked = std::thread::spawn(move || {
        let program = libc::sock_fprog { len: rules.len() as u16, filter: rules.as_mut_ptr() };
        // SAFETY: numbers, and a program that lives as long as the call.
        let is_refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        if is_refused {
            return Err(Error::last_os_error());
        }
        if !has_rights {
            let left = CapabilitySet::SYS_PTRACE & capabilities(None)?.effective;
            let sets =
                CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
            set_capabilities(None, sets)?;
        }
        Ok(Map::read(&Host::live(), &Who::Pid(pid), true).expect("our own child"))
    });
    looked.join().expect("it does not panic")
}

/// Bytes by kind of the rows that are wanted.
fn kinds(map: &Map, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<Kind, u64> {
    let mut kinds = BTreeMap::new();
    for row in map.rows().iter().filter(|row| is_wanted(&row.name)) {
        *kinds.entry(row.kind).or_default() += row.resident_bytes;
    }
    kinds
}

fn sum(map: &Map, kind: Kind) -> u64 {
    kinds(map, |_| true).get(&kind).copied().unwrap_or(0)
}

fn all_seen_by(map: &Map, seen_by: SeenBy) -> bool {
    map.members.iter().all(|member| member.seen_by == seen_by)
}

/// What is said of pages that processes share; empty where each is told once.
fn said_of_shares(map: &Map) -> &str {
    let unseen = map.unseen.iter().find(|unseen| unseen.what.contains("since a fork"));
    unseen.map_or("", |unseen| unseen.what.as_str())
}

/// Children have mapped parts of a segment that reach into each other: it is their union, neither their sum nor the
/// largest of them.
#[test]
fn without_a_scan_a_segment_is_the_union_of_what_processes_map() {
    let test = "without_a_scan_a_segment_is_the_union_of_what_processes_map";
    let (bytes, children) = (8u64 << 20, 3);
    for role in ["sharing", "slices"] {
        let actor = Actor::start(&format!("{role} {bytes} {children}"));
        for has_rights in [true, false] {
            let map = match tree(actor.pid(), has_rights, &[NO_SCAN]) {
                Ok(map) => map,
                Err(error) => return planish_skip::skip(test, error),
            };
            assert_eq!(map.members.len(), 1 + children);
            assert!(all_seen_by(&map, SeenBy::Pagemap), "the filter is in force");
            assert_eq!(sum(&map, Kind::Shared), bytes, "{role}, {has_rights}: {:?}", map.rows());
            assert!(has_rights || map.objects.iter().all(|object| !object.looked));
            let mapped = if role == "sharing" { bytes } else { bytes / 2 };
            for member in &map.members[1..] {
                let shared = |pages: &&planish_residency::AreaPages| pages.area.kind == Kind::Shared;
                let segment = member.areas.iter().find(shared).expect("it maps it");
                assert_eq!((segment.mapped_bytes, segment.parts.len()), (mapped, 0));
            }
        }
    }
}

/// Kind, backing, size of a page, node, and whether it is an estimate.
type Place = (Kind, Backing, u64, Option<u32>, bool);

/// Bytes by kind, by place, and of each process those that are its own.
type Seen = (BTreeMap<Kind, u64>, BTreeMap<Place, u64>, BTreeMap<u32, u64>);

/// What a map says; without places where entries alone may have to guess which blocks are huge pages: where frames are
/// hidden, and where files have some.
fn seen(map: &Map) -> Seen {
    let rows = map.rows();
    let is_of_file = |kind: Kind| matches!(kind, Kind::Text | Kind::Data | Kind::File);
    let is_guess = rows.iter().any(|row| row.backing == Backing::Thp && is_of_file(row.kind));
    let mut places: BTreeMap<Place, u64> = BTreeMap::new();
    for row in rows.iter().filter(|_| map.tells_large_pages && !is_guess) {
        let place = (row.kind, row.backing, row.page_bytes, row.node, row.estimated);
        *places.entry(place).or_default() += row.resident_bytes;
    }
    let own = |member: &planish_residency::Member| -> (u32, u64) {
        let parts = member.areas.iter().flat_map(|pages| &pages.own);
        (member.pid, parts.map(|part| part.bytes).sum())
    };
    (kinds(map, |_| true), places, map.members.iter().map(own).collect())
}

/// Whether two say the same, but for 64 KiB of each: one of the actors maps and unmaps all the time.
fn are_alike<K: Ord>(one: &BTreeMap<K, u64>, other: &BTreeMap<K, u64>) -> bool {
    let of = |map: &BTreeMap<K, u64>, key: &K| map.get(key).copied().unwrap_or(0);
    one.keys().chain(other.keys()).all(|key| of(one, key).abs_diff(of(other, key)) <= 64 << 10)
}

/// What the entries tell is what the scan tells, where this kernel has it: of files, of private and of shared memory;
/// on which pages of which nodes, and what of that is an estimate.
#[test]
fn without_a_scan_the_map_is_the_same() {
    let test = "without_a_scan_the_map_is_the_same";
    for role in ["shared 67108864 8388608", "both 8388608", "written 8388608", "forked 16777216 4096"] {
        let actor = Actor::start(role);
        let scanned = Map::read(&Host::live(), &Who::Pid(actor.pid()), true).expect("our own child");
        if !all_seen_by(&scanned, SeenBy::PagemapScan) {
            return planish_skip::skip(test, "this kernel has no PAGEMAP_SCAN to compare with");
        }
        let map = match tree(actor.pid(), true, &[NO_SCAN]) {
            Ok(map) => map,
            Err(error) => return planish_skip::skip(test, error),
        };
        assert!(all_seen_by(&map, SeenBy::Pagemap), "the filter is in force");
        assert_eq!(map.unseen, scanned.unseen, "{role}");
        let (ours, theirs) = (seen(&map), seen(&scanned));
        let told = format!("{role}: {ours:?}, by the scan {theirs:?}");
        assert!(are_alike(&ours.0, &theirs.0), "kinds of {told}");
        assert!(are_alike(&ours.1, &theirs.1), "places of {told}");
        assert!(are_alike(&ours.2, &theirs.2), "what is its own of {told}");
    }
}

/// Pages that a fork left shared are told by their frames, where these are told; else they count in each process, and
/// that is said. Those of files count once either way.
#[test]
fn without_a_scan_pages_of_a_fork_count_once_by_their_frames() {
    let test = "without_a_scan_pages_of_a_fork_count_once_by_their_frames";
    let bytes = 16u64 << 20;
    let actor = Actor::start(&format!("forked {bytes} 4096"));
    let look = |has_rights| tree(actor.pid(), has_rights, &[NO_SCAN]);
    let (with, without) = match (look(true), look(false)) {
        (Ok(with), Ok(without)) => (with, without),
        (Err(error), _) | (_, Err(error)) => return planish_skip::skip(test, error),
    };
    assert!(all_seen_by(&with, SeenBy::Pagemap) && all_seen_by(&without, SeenBy::Pagemap));
    let said = said_of_shares(&without);
    assert!(said.starts_with("which pages of memory since a fork"), "{:?}", without.unseen);
    assert!(sum(&without, Kind::Anon) >= 2 * bytes, "{:?}", without.rows());
    let code = |map: &Map| kinds(map, |name| name.starts_with('/')).get(&Kind::Text).copied().unwrap_or(0);
    let areas = without.members.iter().flat_map(|member| &member.areas);
    let areas = areas.filter(|pages| pages.area.kind == Kind::Text && pages.area.name.starts_with('/'));
    let mapped: u64 = areas.map(|pages| pages.mapped_bytes).sum();
    assert!(code(&without) > 0 && code(&without) < mapped, "{} of {mapped}", code(&without));
    // Code counts once, so that it is exact where no huge pages of it are a guess.
    let rows = without.rows();
    let code_rows = || rows.iter().filter(|row| row.kind == Kind::Text && row.name.starts_with('/'));
    let is_huge = code_rows().any(|row| row.backing == Backing::Thp);
    assert!(is_huge || code_rows().all(|row| !row.estimated), "{rows:?}");
    assert!(rows.iter().all(|row| row.kind != Kind::Anon || row.estimated), "{rows:?}");
    if !said_of_shares(&with).is_empty() {
        return planish_skip::skip(test, said_of_shares(&with));
    }
    assert!(sum(&with, Kind::Anon) < 2 * bytes, "{:?}", with.rows());
    assert!(code(&with).abs_diff(code(&without)) <= 64 << 10, "{} and {}", code(&with), code(&without));
}

/// Where neither the pages nor their nodes are told, smaps is what is left, and it is said that all counts in each
/// process.
#[test]
fn without_a_scan_and_nodes_it_is_told_what_counts_in_each_process() {
    let test = "without_a_scan_and_nodes_it_is_told_what_counts_in_each_process";
    let bytes = 16u64 << 20;
    let actor = Actor::start(&format!("forked {bytes} 4096"));
    let map = match tree(actor.pid(), true, &[NO_SCAN, NO_NODES]) {
        Ok(map) => map,
        Err(error) => return planish_skip::skip(test, error),
    };
    assert!(all_seen_by(&map, SeenBy::Smaps), "the filter is in force");
    assert!(said_of_shares(&map).starts_with("which pages of files, and"), "{:?}", map.unseen);
    assert!(sum(&map, Kind::Anon) >= 2 * bytes, "{:?}", map.rows());
}

/// An entry does not tell the page of zeroes from any other: who asks for nodes finds it.
#[test]
fn without_a_scan_memory_that_was_only_read_is_nobodys() {
    let test = "without_a_scan_memory_that_was_only_read_is_nobodys";
    let actor = Actor::start("read 67108864");
    let map = match tree(actor.pid(), true, &[NO_SCAN]) {
        Ok(map) => map,
        Err(error) => return planish_skip::skip(test, error),
    };
    assert!(all_seen_by(&map, SeenBy::Pagemap), "the filter is in force");
    let start = u64::from_str_radix(&actor.line, 16).expect("an address");
    let area = map.members[0].areas.iter().find(|pages| pages.area.range.contains(&start));
    let area = area.expect("it was mapped");
    let bytes: u64 = area.parts.iter().map(|part| part.bytes).sum();
    let base = pages::base_bytes() as u64;
    // The kernel may have joined it with a mapping beside it.
    assert!((base..1 << 20).contains(&bytes) && area.mapped_bytes == bytes, "{area:?}");
}

/// Terabytes with next to nothing in them are not read entry by entry, and tens of thousands of mappings are.
#[test]
fn without_a_scan_a_look_is_bounded() {
    let test = "without_a_scan_a_look_is_bounded";
    let base = pages::base_bytes() as u64;
    for (role, kind, least, is_short) in [
        ("sparse 10995116277760", Kind::Shared, 3 * base, false),
        ("splintered 60000", Kind::Anon, 60_000 * base, true),
    ] {
        let actor = Actor::start(role);
        let begin = Instant::now();
        let map = match tree(actor.pid(), false, &[NO_SCAN]) {
            Ok(map) => map,
            Err(error) => return planish_skip::skip(test, error),
        };
        let took = begin.elapsed();
        assert!(all_seen_by(&map, SeenBy::Pagemap), "the filter is in force");
        assert!((least..least + (8 << 20)).contains(&sum(&map, kind)), "{role}: {:?}", kinds(&map, |_| true));
        let says = map.unseen.iter().any(|unseen| unseen.what.contains("too long"));
        assert_eq!(says, !is_short, "{role}: {:?}", map.unseen);
        // This limit is for a debug binary on a busy machine.
        assert!(took < Duration::from_secs(20), "{role}: {took:?}");
    }
}
