//! What we can see with on this machine, by its kernel and our rights, and what stays unseen.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::ops::Range;

use planish_host::Host;
use planish_sys::pagemap::{FrameFlags, Pagemap};
use planish_sys::peek::Peek;
use planish_sys::policy::PageAt;
use planish_sys::{Errno, NodeSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::leases::Lease;
use super::memory::MemoryDevices;
use super::object::{NodeOf, node_of};
use crate::folio::Folios;
use crate::maps::FileId;
use crate::process::{ResidencyError, more_files};
use crate::smaps::Backing;
use crate::status::Status;

/// What lets us see all page frames.
const AS_ROOT: &str = "run as root (CAP_SYS_ADMIN)";

/// Entries of page tables that are read one by one at most, of all processes of a look: 256 GiB of addresses on base
/// pages of 4 KiB, which cost a second or so where little lies in them.
const ENTRIES_MAX: u64 = 64 << 20;

/// What is told of private memory where nobody tells frames.
const COUNTED_IN_EACH: &str =
    "which pages of memory since a fork processes share: each process counts those that it has";

/// Something that could not be seen, why, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// What is missing or less exact.
    pub what: String,
    /// The reason, in the words of the system.
    pub why: String,
    /// What would help; empty where nothing does.
    pub cure: String,
}

/// One line for people: `what: why; cure`.
impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        if self.cure.is_empty() { Ok(()) } else { write!(f, "; {}", self.cure) }
    }
}

/// The means of one look at a machine.
#[derive(Debug)]
pub(crate) struct Eyes {
    /// For shared memory; `None` where the kernel or a filter refuses it.
    pub peek: Option<Peek>,
    /// Of what files something may be asked.
    pub devices: MemoryDevices,
    folios: Option<Folios>,
    /// The only node with memory: where it is the only one, nobody need be asked.
    sole_node: Option<u32>,
    pub base_bytes: u64,
    pub thp_bytes: u64,
    /// Frames that were counted already, when several processes are looked at; 512 a key.
    seen: Option<HashMap<u64, [u64; 8]>>,
    /// The same of pages of files, by their places there: where no frames are told.
    places: Option<HashMap<(FileId, u64), [u64; 8]>>,
    /// Whether the kernel has PAGEMAP_SCAN, as far as it was asked.
    pub has_scan: bool,
    /// Entries of page tables that may still be read where it has not.
    pub(super) entries_left: u64,
    /// Whether smaps told of some memory, which knows no large pages that base-page entries map.
    pub by_smaps: bool,
    unseen: BTreeMap<String, (String, String)>,
}

impl Eyes {
    /// Opens what this machine lets us see with. `several`: processes may share private pages since a fork.
    pub(crate) fn open(host: &Host, several: bool) -> Self {
        let base_bytes = host.page_bytes();
        let thp_bytes = crate::process::thp_bytes(host);
        let mut eyes = Self {
            peek: None,
            devices: MemoryDevices::default(),
            folios: None,
            sole_node: sole_node(host),
            base_bytes,
            thp_bytes,
            seen: several.then(HashMap::new),
            places: several.then(HashMap::new),
            has_scan: true,
            entries_left: ENTRIES_MAX,
            by_smaps: false,
            unseen: BTreeMap::new(),
        };
        if !host.is_live() {
            eyes.blind(
                "what of shared memory others have mapped, and large pages behind base-page entries",
                "a recorded host has no memory to look at",
                "",
            );
            eyes.blind_pages("what is recorded of memory, smaps, tells no pages", "");
            return eyes;
        }
        eyes.devices = MemoryDevices::of_kernel();
        match Peek::new() {
            Ok(peek) => eyes.peek = Some(peek),
            Err(error) => eyes.blind_shared(&error),
        }
        match FrameFlags::open() {
            // Decided here and now: of another process a frame may be missing because its page has just gone.
            Ok(_) if !frames_are_told() => {
                eyes.blind_folios("the kernel hides the numbers of page frames", AS_ROOT);
            }
            Ok(flags) => eyes.folios = Some(Folios::new(flags, thp_bytes.max(base_bytes) / base_bytes)),
            // Who may not read it is told so: it is missing.
            Err(error) if error.errno() == Some(Errno::NOENT) => {
                let cure = "a /proc that has /proc/kpageflags: mounted without subset=pid, on a kernel with \
                            CONFIG_PROC_PAGE_MONITOR";
                eyes.blind_folios(&told(&error), cure);
            }
            Err(error) => eyes.blind_folios(&told(&error), AS_ROOT),
        }
        eyes
    }

    /// Notes that something cannot be seen; the first reason counts.
    pub(crate) fn blind(&mut self, what: &str, why: &str, cure: &str) {
        self.unseen.entry(what.to_owned()).or_insert_with(|| (why.to_owned(), cure.to_owned()));
    }

    pub(crate) fn blind_shared(&mut self, error: &planish_sys::Error) {
        let cure = match error {
            planish_sys::Error::Missing { .. } => "Linux 5.14 or newer",
            planish_sys::Error::SwapCache => "another look once less of it is being swapped out or in",
            _ if error.errno() == Some(Errno::NOMEM) => {
                "allow this command more memory or address space (ulimit -v), by which a segment is looked at"
            }
            _ => error.errno().and_then(more_files).unwrap_or(
                "run as root (CAP_SYS_ADMIN, or CAP_CHECKPOINT_RESTORE); in a container from outside, where no filter \
                 forbids userfaultfd",
            ),
        };
        self.blind(
            "pages of shared memory that these processes have not mapped themselves",
            &told(error),
            cure,
        );
    }

    /// Notes shared memory on no file system that can be looked into.
    pub(crate) fn blind_elsewhere(&mut self, name: &str) {
        self.blind(
            "what these processes have not mapped of shared memory that is on no tmpfs and in no pool",
            &format!("{name}: the kernel shows it by a mapping alone"),
            "",
        );
    }

    /// Notes that a file was left alone for the sake of who holds a lease on it, or may hold one.
    pub(crate) fn blind_leased(&mut self, name: &str, lease: &Lease) {
        let what = "what these processes have not mapped of shared memory that is under a lease";
        match lease {
            Lease::Held => self.blind(
                what,
                &format!("{name}: to open it would break a lease on it, which may end its holder"),
                "look again when the lease is given back: /proc/locks lists those in force",
            ),
            Lease::Untold(error) => self.blind(
                &format!("{what}, or may be"),
                &format!("{name}: whether an open would break a lease on it is not told: {error}"),
                "a /proc that has /proc/locks: mounted without subset=pid",
            ),
        }
    }

    /// Notes mapped shared memory that is allocated and not written yet; `estimated`: it may be less.
    pub(crate) fn blind_unwritten(&mut self, bytes: u64, estimated: bool) {
        if bytes > 0 {
            let about = if estimated { "about " } else { "" };
            self.blind(
                &format!(
                    "where {about}{} KiB of shared memory lie that are allocated and not written yet",
                    bytes >> 10
                ),
                "the kernel shows such pages to nobody before they are written (posix_fallocate)",
                "look again when they have been used",
            );
        }
    }

    /// Notes shared memory that is there and broken.
    pub(crate) fn blind_poisoned(&mut self, bytes: u64) {
        if bytes > 0 {
            self.blind(
                "shared memory on pages with memory errors",
                &format!("the kernel maps them for nobody any more: {} KiB of one segment", bytes >> 10),
                "the log of the kernel tells the errors; what is on them is lost, and a program that reads it is ended",
            );
        }
    }

    /// Notes a process of several whose memory we may not see, with what any user may know of it.
    pub(crate) fn blind_process(&mut self, pid: u32, status: &Status, error: &ResidencyError) {
        let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
        let what = format!(
            "the memory of process {pid} ({}), which is in no sum: {} resident, {} of them on pages of pools, {} of \
             page tables, {} in swap, {} locked",
            status.name,
            kib(status.resident_bytes.saturating_add(status.hugetlb_bytes)),
            kib(status.hugetlb_bytes),
            kib(status.page_table_bytes),
            kib(status.swap_bytes),
            kib(status.locked_bytes)
        );
        let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})"));
        let why = format!("we may not see it{}", cause.unwrap_or_default());
        self.blind(&what, &why, &error.cure().unwrap_or_default());
    }

    fn blind_folios(&mut self, why: &str, cure: &str) {
        self.folios = None;
        self.blind("large pages that are mapped by base-page entries: they count as base pages", why, cure);
        self.blind_frames(why, cure);
    }

    /// Notes that nobody tells the frames of pages: private ones of one process count in the next one again. Those of
    /// files are still told apart by their places.
    fn blind_frames(&mut self, why: &str, cure: &str) {
        if self.seen.take().is_some() {
            self.blind(COUNTED_IN_EACH, why, cure);
        }
    }

    /// Notes that nobody tells the pages themselves: whatever one process counts the next one counts again.
    pub(crate) fn blind_pages(&mut self, why: &str, cure: &str) {
        (self.seen, self.by_smaps) = (None, true);
        if self.places.take().is_some() {
            self.unseen.remove(COUNTED_IN_EACH);
            self.blind(
                "which pages of files, and of memory since a fork, processes share: each process counts them",
                why,
                cure,
            );
        }
    }

    /// Whether so many entries of page tables may be read one by one. What may not is noted.
    pub(crate) fn may_read(&mut self, entries: u64) -> bool {
        let left = self.entries_left.checked_sub(entries);
        self.by_smaps |= left.is_none();
        match left {
            Some(left) => self.entries_left = left,
            None => self.blind(
                "the pages of mappings that are too long to be read page by page: they are told in proportion, and \
                 what processes share of them counts in each, or as an estimate",
                &format!("PAGEMAP_SCAN is not in this kernel, and {ENTRIES_MAX} pages are read without it"),
                "Linux 6.7 or newer",
            ),
        }
        left.is_some()
    }

    /// All that could not be seen.
    pub(crate) fn unseen(self) -> Vec<Unseen> {
        let unseen = self.unseen.into_iter();
        unseen.map(|(what, (why, cure))| Unseen { what, why, cure }).collect()
    }

    /// Whether the folio behind a frame can be told.
    pub(crate) fn sees_folios(&self) -> bool {
        self.folios.is_some()
    }

    #[cfg(test)]
    pub(crate) fn hide_frames(&mut self) {
        self.folios = None;
    }

    /// Whether frames are wanted at all. Where they are, a frame 0 is of a page that has gone.
    pub(crate) fn wants_frames(&self) -> bool {
        self.folios.is_some() || self.seen.is_some()
    }

    /// Whether pages that several processes share are told apart: by their frames, or those of files by their places.
    pub(crate) fn counts_pages(&self) -> bool {
        self.places.is_some()
    }

    /// Whether what is no file's counts in each of several processes, and nothing else does.
    pub(crate) fn counts_own_in_each(&self) -> bool {
        self.seen.is_none() && self.counts_pages()
    }

    /// Whether pages of several processes are told apart by their frames.
    pub(crate) fn counts_frames(&self) -> bool {
        self.seen.is_some()
    }

    /// Pages of the folio behind each frame; 1 where that cannot be told.
    pub(crate) fn folio_pages(&mut self, frames: &[u64]) -> Vec<u64> {
        match &mut self.folios {
            Some(folios) => folios.pages_of(frames),
            None => vec![1; frames.len()],
        }
    }

    /// The backing of a page that a base-page entry maps, by the pages of its folio; `shared`: of shared memory, so
    /// that nothing is known of how others map it.
    pub(crate) fn backing_of(&self, pages: u64, shared: bool) -> (Backing, u64) {
        let bytes = pages * self.base_bytes;
        match pages {
            1 => (Backing::Base, self.base_bytes),
            _ if shared && bytes >= self.thp_bytes => (Backing::Thp, self.thp_bytes),
            _ => (Backing::Mthp, bytes),
        }
    }

    /// How many of `count` frames from `frame` are counted for the first time.
    pub(crate) fn count_once(&mut self, frame: u64, count: u64) -> u64 {
        let Some(seen) = &mut self.seen else { return count };
        if frame == 0 {
            return count;
        }
        count_fresh(seen, frame..frame + count, |block| block)
    }

    /// The same of pages of a file, by their places in it: `first` and as many as `count`.
    pub(crate) fn count_place_once(&mut self, file: FileId, first: u64, count: u64) -> u64 {
        let Some(places) = &mut self.places else { return count };
        count_fresh(places, first..first.saturating_add(count), |block| (file, block))
    }

    /// The only node with memory: the kernel is not asked for the nodes of pages then.
    pub(crate) fn sole_node(&self) -> Option<u32> {
        self.sole_node
    }

    /// The nodes of `count` pages, by `ask`; where only one node has memory nobody is asked.
    ///
    /// # Errors
    /// The call fails, or is forbidden.
    pub(crate) fn nodes_of(
        &mut self,
        ask: impl FnOnce() -> planish_sys::Result<Vec<PageAt>>,
        count: usize,
    ) -> planish_sys::Result<Vec<NodeOf>> {
        match self.sole_node {
            Some(_) => Ok(vec![(self.sole_node, true); count]),
            None => Ok(ask()?.into_iter().map(node_of).collect()),
        }
    }
}

/// How many of `numbers` were not in `seen`, which has 512 a key; they are now.
fn count_fresh<K: Eq + Hash>(
    seen: &mut HashMap<K, [u64; 8]>,
    numbers: Range<u64>,
    key: impl Fn(u64) -> K,
) -> u64 {
    let fresh = numbers.filter(|number| {
        let block = seen.entry(key(number / 512)).or_default();
        let (word, bit) = ((number % 512 / 64) as usize, 1 << (number % 64));
        let is_fresh = block[word] & bit == 0;
        block[word] |= bit;
        is_fresh
    });
    fresh.count() as u64
}

/// Whether the kernel tells us the frame of a page, by one of our own that is surely there.
fn frames_are_told() -> bool {
    let mut page = vec![0u8; 2 * planish_sys::pages::base_bytes()];
    page.fill(1);
    let mut frames = [0];
    let told = Pagemap::open(None).and_then(|map| {
        // The second half begins in a page that was written whole.
        map.frames(std::hint::black_box(&page)[page.len() / 2..].as_ptr().addr() as u64, &mut frames)
    });
    told.is_ok() && frames[0] != 0
}

/// The only node with memory; `None` where there are several or none is told.
fn sole_node(host: &Host) -> Option<u32> {
    let nodes = host.read("/sys/devices/system/node/has_memory").ok();
    let nodes = nodes.and_then(|list| NodeSet::parse_list(&list).ok())?;
    if nodes.count() == 1 { nodes.first() } else { None }
}

/// An error of a call with its cause.
pub(crate) fn told(error: &planish_sys::Error) -> String {
    match error.errno() {
        Some(errno) => format!("{error} ({errno})"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_told_with_its_cure() {
        let told = |cure: &str| {
            let unseen =
                Unseen { what: "pages".to_owned(), why: "not permitted".to_owned(), cure: cure.to_owned() };
            unseen.to_string()
        };
        assert_eq!(told(AS_ROOT), "pages: not permitted; run as root (CAP_SYS_ADMIN)");
        assert_eq!(told(""), "pages: not permitted", "where nothing helps");
    }

    #[test]
    fn what_is_short_is_named_and_not_a_right() {
        let told = |error: &planish_sys::Error| {
            let mut eyes = Eyes::open(&Host::live(), false);
            eyes.unseen.clear();
            eyes.blind_shared(error);
            eyes.unseen().remove(0)
        };
        let cure = |errno: Errno| told(&planish_sys::Error::of_call("mmap", errno)).cure;
        assert!(cure(Errno::NOMEM).contains("ulimit -v") && cure(Errno::MFILE).contains("ulimit -n"));
        assert!(cure(Errno::NFILE).contains("fs.file-max"));
        assert!(cure(Errno::PERM).contains("CAP_SYS_ADMIN") && cure(Errno::NOSYS).contains("5.14"));
        let swapping = told(&planish_sys::Error::SwapCache);
        assert!(swapping.why.contains("from or to swap") && swapping.cure.contains("another look"));
    }

    #[test]
    fn a_frame_counts_once() {
        let mut eyes = Eyes::open(&Host::live(), true);
        eyes.seen = Some(HashMap::new());
        assert_eq!(eyes.count_once(1000, 4), 4);
        assert_eq!(eyes.count_once(1002, 512), 510);
        assert_eq!(eyes.count_once(1002, 512), 0);
        assert_eq!(eyes.count_once(0, 3), 3, "hidden frames are told apart by nobody");
    }

    #[test]
    fn a_place_in_a_file_counts_once() {
        let mut eyes = Eyes::open(&Host::live(), true);
        let file = |inode| FileId { device: (8, 1), inode, key: None, ipc_namespace: None };
        assert_eq!(eyes.count_place_once(file(5), 0, 4), 4);
        assert_eq!(eyes.count_place_once(file(5), 2, 512), 510);
        assert_eq!(eyes.count_place_once(file(6), 2, 512), 512, "another file");
        assert_eq!(eyes.count_place_once(file(5), 0, 514), 0);
        eyes.blind_pages("no pages", "");
        assert_eq!(eyes.count_place_once(file(5), 0, 514), 514, "nobody knows any more");
        let mut alone = Eyes::open(&Host::live(), false);
        assert_eq!([0; 2].map(|first| alone.count_place_once(file(5), first, 4)), [4, 4], "one process");
    }

    #[test]
    fn what_counts_in_each_process_is_told_once() {
        let told = |eyes: Eyes| -> Vec<String> {
            let unseen = eyes.unseen().into_iter().map(|unseen| unseen.what);
            unseen.filter(|what| what.contains("since a fork")).collect()
        };
        let new = || {
            let mut eyes = Eyes::open(&Host::live(), true);
            (eyes.seen, eyes.places) = (Some(HashMap::new()), Some(HashMap::new()));
            eyes.unseen.clear();
            eyes
        };
        let mut hidden = new();
        hidden.blind_frames("hidden", AS_ROOT);
        assert!(hidden.counts_own_in_each() && !new().counts_own_in_each());
        assert_eq!(told(hidden), [COUNTED_IN_EACH]);
        let mut worse = new();
        worse.blind_frames("hidden", AS_ROOT);
        worse.blind_pages("no pages", "");
        assert!(!worse.counts_pages() && !worse.counts_own_in_each());
        let both = told(worse);
        assert!(both.len() == 1 && both[0].starts_with("which pages of files"), "{both:?}");
        let mut alone = Eyes::open(&Host::live(), false);
        alone.blind_pages("no pages", "");
        assert!(told(alone).is_empty(), "one process counts nothing twice");
    }

    #[test]
    fn no_more_entries_are_read_than_are_allowed() {
        let mut eyes = Eyes::open(&Host::live(), true);
        let says = |eyes: &Eyes| eyes.unseen.keys().any(|what| what.contains("too long"));
        assert!(eyes.may_read(ENTRIES_MAX - 1) && !says(&eyes));
        assert!(!eyes.may_read(2) && says(&eyes));
        assert!(eyes.may_read(1), "a shorter one may");
        assert!(!eyes.may_read(1));
    }
}
