//! A process that is a model: pages by address, each on a node, hidden, in swap, or kept where it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use planish_residency::{Area, parse_maps};
use planish_sys::pagemap::{Filled, Run};
use planish_sys::policy::PageAt;
use planish_sys::{CpuSet, Errno};

use super::named::whole;
use super::{Identity, Mapped, Process, Processes, RelocateError, Room, Spaces, Thread};

pub(super) const BASE: u64 = 4096;
pub(super) const CHUNK: u64 = 8 * BASE;
/// A large page that the page tables do not tell.
pub(super) const LARGE: u64 = 4 * BASE;

/// A page of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub node: u32,
    /// The page tables have it, and nobody tells its node: as a hinting fault of automatic balancing looks.
    pub hidden: bool,
    pub swapped: bool,
    /// Of zeroes that all share, which a kernel before 6.7 does not tell from another.
    pub zeroes: bool,
    /// What a move is answered with.
    pub stuck: Option<Errno>,
    /// Of a huge page: the first address of it moves all.
    pub huge: bool,
    /// Of a large page, likewise.
    pub large: bool,
}

pub(super) fn page(node: u32) -> Page {
    Page { node, hidden: false, swapped: false, zeroes: false, stuck: None, huge: false, large: false }
}

pub(super) struct Fake {
    pub pages: RefCell<BTreeMap<u64, Page>>,
    pub areas: RefCell<Vec<Mapped>>,
    pub threads: RefCell<Vec<Thread>>,
    pub identity: Cell<Option<Identity>>,
    pub spare: Cell<u64>,
    pub moves: Cell<usize>,
    /// What happens behind so many calls of a move.
    #[expect(clippy::type_complexity, reason = "of one test")]
    pub then: RefCell<Option<(usize, Box<dyn FnOnce(&Fake)>)>>,
    /// CPUs that the cpuset of the process has.
    pub cpuset: RefCell<Option<CpuSet>>,
    /// Whether its files cannot be read at this moment.
    pub unreadable: Cell<bool>,
    /// Bytes that its status has in swap.
    pub swap: Cell<Option<u64>>,
    /// Whether large pages are told.
    pub tells_large: Cell<bool>,
    /// A node without any room.
    pub full: Cell<Option<u32>>,
    /// A moment, and how long each move takes.
    pub begun: Instant,
    pub move_takes: Cell<Duration>,
}

pub(super) fn areas(text: &str) -> Vec<Area> {
    parse_maps(text).expect("sound lines")
}

impl Fake {
    pub fn new(pages: impl IntoIterator<Item = (u64, Page)>) -> Self {
        let area = areas("10000000-20000000 rw-p 00000000 00:00 0 \n").remove(0);
        let mapped = Mapped { area, policy: Some("default".to_owned()), is_locked: false, is_pool: false };
        Self {
            pages: RefCell::new(pages.into_iter().collect()),
            areas: RefCell::new(vec![mapped]),
            threads: RefCell::default(),
            swap: Cell::default(),
            identity: Cell::new(Some(Identity {
                pid: 77,
                start_ticks: 5,
                layout: (1, 2),
                mark: Some(3),
                spaces: Spaces { pids: 1, time: 2 },
            })),
            spare: Cell::new(u64::MAX / 2),
            moves: Cell::new(0),
            then: RefCell::default(),
            cpuset: RefCell::default(),
            unreadable: Cell::new(false),
            tells_large: Cell::new(true),
            full: Cell::new(None),
            begun: Instant::now(),
            move_takes: Cell::new(Duration::ZERO),
        }
    }

    pub fn me(&self) -> Identity {
        self.identity.get().expect("it lives")
    }

    pub fn nodes(&self) -> BTreeMap<u64, u32> {
        self.pages.borrow().iter().map(|(address, page)| (*address, page.node)).collect()
    }

    fn at(&self, address: u64) -> PageAt {
        match self.pages.borrow().get(&address) {
            Some(page) if page.zeroes => PageAt::Failed(Errno::FAULT),
            Some(page) if !page.hidden && !page.swapped => PageAt::Node(page.node),
            _ => PageAt::Absent,
        }
    }

    fn goes(&self, address: u64, to: u32) -> PageAt {
        let mut pages = self.pages.borrow_mut();
        let Some(page) = pages.get(&address).copied() else { return PageAt::Absent };
        if page.hidden || page.swapped {
            return PageAt::Absent;
        }
        if let Some(errno) = page.stuck {
            return PageAt::Failed(errno);
        }
        if self.spare.get() < BASE {
            return PageAt::Failed(Errno::NOMEM);
        }
        for (_, page) in pages.range_mut(moved_with(address, page)) {
            page.node = to;
            self.spare.set(self.spare.get() - BASE);
        }
        PageAt::Node(to)
    }
}

/// The addresses that go with a page.
fn moved_with(address: u64, page: Page) -> Range<u64> {
    let unit = match page {
        Page { huge: true, .. } => CHUNK,
        Page { large: true, .. } => LARGE,
        _ => BASE,
    };
    whole(&(address..address + BASE), unit)
}

impl Processes for Fake {
    fn open(&self, pid: u32) -> Result<Option<Box<dyn Process + '_>>, RelocateError> {
        let lives = self.identity.get().is_some_and(|identity| identity.pid == pid);
        Ok(lives.then(|| Box::new(Handle(self)) as Box<dyn Process + '_>))
    }

    fn spaces(&self) -> Result<Spaces, RelocateError> {
        Ok(self.me().spaces)
    }

    fn now(&self) -> Instant {
        self.begun + self.move_takes.get() * u32::try_from(self.moves.get()).expect("few")
    }

    fn room(&self, node: u32) -> Option<Room> {
        let free = if self.full.get() == Some(node) { 0 } else { self.spare.get() };
        (node < 4).then_some(Room { free, kept: 0 })
    }

    fn pause(&self, _: Duration) {}

    fn base_bytes(&self) -> u64 {
        BASE
    }

    fn chunk_bytes(&self) -> u64 {
        CHUNK
    }
}

/// What a table of files that is full comes to.
fn unreadable() -> RelocateError {
    RelocateError::Elsewhere { why: "too many open files" }
}

struct Handle<'a>(&'a Fake);

impl Process for Handle<'_> {
    fn identity(&self) -> Result<Option<Identity>, RelocateError> {
        if self.0.unreadable.get() {
            return Err(unreadable());
        }
        Ok(self.0.identity.get())
    }

    fn areas(&self) -> Result<Vec<Area>, RelocateError> {
        if self.0.unreadable.get() {
            return Err(unreadable());
        }
        Ok(self.0.areas.borrow().iter().map(|mapped| mapped.area.clone()).collect())
    }

    fn mapped(&self) -> Result<Vec<Mapped>, RelocateError> {
        if self.0.unreadable.get() {
            return Err(unreadable());
        }
        Ok(self.0.areas.borrow().clone())
    }

    fn swapped_bytes(&self) -> Result<Option<u64>, RelocateError> {
        Ok(self.0.swap.get())
    }

    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, RelocateError> {
        let pages = self.0.pages.borrow();
        let mut runs: Vec<Run> = Vec::new();
        for (address, page) in pages.range(range) {
            let filled = match page {
                Page { swapped: true, .. } => Filled::Swapped,
                Page { huge: true, .. } => Filled::Huge,
                _ => Filled::Base,
            };
            match runs.last_mut() {
                Some(last) if last.range.end == *address && last.filled == filled => last.range.end += BASE,
                _ => runs.push(Run { range: *address..address + BASE, filled }),
            }
        }
        Ok(runs)
    }

    fn folio(&self, address: u64, _: &Range<u64>) -> Option<Range<u64>> {
        let page = *self.0.pages.borrow().get(&address)?;
        self.0.tells_large.get().then(|| moved_with(address, page))
    }

    fn pages_at(&self, addresses: &[u64]) -> Result<Vec<PageAt>, RelocateError> {
        Ok(addresses.iter().map(|address| self.0.at(*address)).collect())
    }

    fn move_pages(&self, addresses: &[u64], nodes: &[u32]) -> Result<Vec<PageAt>, RelocateError> {
        let mut moved = vec![PageAt::Failed(Errno::AGAIN); addresses.len()];
        for ((address, node), answer) in addresses.iter().zip(nodes).zip(&mut moved) {
            *answer = self.0.goes(*address, *node);
            // As the kernel does it: what is behind such a page is not tried.
            if *answer == PageAt::Failed(Errno::AGAIN) {
                break;
            }
        }
        self.0.moves.set(self.0.moves.get() + 1);
        let due = self.0.then.borrow().as_ref().is_some_and(|(moves, _)| *moves == self.0.moves.get());
        if due {
            let (_, then) = self.0.then.borrow_mut().take().expect("looked just now");
            then(self.0);
        }
        Ok(moved)
    }

    fn threads(&self) -> Result<Vec<Thread>, RelocateError> {
        Ok(self.0.threads.borrow().clone())
    }

    fn pin(&self, thread: u32, cpus: &CpuSet) -> Result<(), RelocateError> {
        let mut threads = self.0.threads.borrow_mut();
        let found = threads.iter_mut().find(|one| one.tid == thread);
        let found = found.ok_or(RelocateError::Ended { pid: 77 })?;
        let cpuset = self.0.cpuset.borrow();
        found.cpus = cpuset.as_ref().map_or_else(|| cpus.clone(), |cpuset| cpuset.intersection(cpus));
        Ok(())
    }
}
