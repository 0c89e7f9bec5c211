//! What we can see with on this machine, by its kernel and our rights, and what stays unseen.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

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
use crate::smaps::Backing;

/// What lets us see all page frames.
const AS_ROOT: &str = "run as root (CAP_SYS_ADMIN)";

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
            unseen: BTreeMap::new(),
        };
        if !host.is_live() {
            eyes.blind(
                "what of shared memory others have mapped, and large pages behind base-page entries",
                "a recorded host has no memory to look at",
                "",
            );
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
            _ => {
                "run as root (CAP_SYS_ADMIN, or CAP_CHECKPOINT_RESTORE); in a container from outside, where no filter \
                 forbids userfaultfd"
            }
        };
        self.blind(
            "pages of shared memory that these processes have not mapped themselves",
            &told(error),
            cure,
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

    /// Notes shared memory that is allocated and not written yet.
    pub(crate) fn blind_unwritten(&mut self, bytes: u64) {
        if bytes > 0 {
            self.blind(
                &format!(
                    "where {} KiB of shared memory lie that are allocated and not written yet",
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

    fn blind_folios(&mut self, why: &str, cure: &str) {
        self.folios = None;
        self.blind("large pages that are mapped by base-page entries: they count as base pages", why, cure);
        self.blind_frames(why, cure);
    }

    /// Notes that nobody tells which pages processes share: what one counts the next one counts again.
    pub(crate) fn blind_frames(&mut self, why: &str, cure: &str) {
        if self.seen.take().is_some() {
            self.blind(
                "which pages of files, and of memory since a fork, processes share: each process counts them",
                why,
                cure,
            );
        }
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

    /// Whether frames are wanted at all. Where they are, a frame 0 is of a page that has gone.
    pub(crate) fn wants_frames(&self) -> bool {
        self.folios.is_some() || self.seen.is_some()
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

    /// The backing of a page that a base-page entry maps, by the pages of its folio; `shared`: by an entry of our
    /// own, so that nothing is known of how others map it.
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
        let fresh = (frame..frame + count).filter(|frame| {
            let block = seen.entry(frame / 512).or_default();
            let (word, bit) = ((frame % 512 / 64) as usize, 1 << (frame % 64));
            let is_fresh = block[word] & bit == 0;
            block[word] |= bit;
            is_fresh
        });
        fresh.count() as u64
    }

    /// Whether the kernel is asked for the nodes of pages.
    pub(crate) fn asks_for_nodes(&self) -> bool {
        self.sole_node.is_none()
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
    fn a_frame_counts_once() {
        let mut eyes = Eyes::open(&Host::live(), true);
        eyes.seen = Some(HashMap::new());
        assert_eq!(eyes.count_once(1000, 4), 4);
        assert_eq!(eyes.count_once(1002, 512), 510);
        assert_eq!(eyes.count_once(1002, 512), 0);
        assert_eq!(eyes.count_once(0, 3), 3, "hidden frames are told apart by nobody");
    }
}
