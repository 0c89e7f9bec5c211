//! Pages and threads of processes that run: moved to other nodes and CPUs, and moved back.
//!
//! ```text
//! survey   what lies where, what is to go, and what stays for which reason      writes nothing
//! record   the same as bytes, on disk beside the journal before the first move
//! carry    batches of pages, asked for again afterwards; paced, and ended by a signal between two batches
//! back     the same pages to where the record saw them, if they still lie where carry put them
//! ```
//!
//! A page is known by its address in one life of one program. So whoever is moved is held by number, start time and a
//! mark of the program that it executes ([`Identity`]), looked at again before every batch: pages of a process that was
//! given the number later, or of a program that was executed since, are nobody's business here.
//!
//! What was not seen is not called gone. A page that the kernel hides for a moment (automatic balancing, swap, a lock
//! on it) keeps its place in the record, and an undo that cannot see it leaves its entry open.

mod back;
mod carry;
mod live;
mod named;
mod record;
mod sight;
mod survey;
mod threads;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use planish_residency::{Area, ResidencyError};
use planish_sys::pagemap::{Filled, Run};
use planish_sys::policy::PageAt;
use planish_sys::{CpuSet, Errno};

pub use back::{Back, take_back};
pub use carry::{Carried, End, Load, Pace, carry};
pub use live::LiveProcesses;
pub use named::{Found, Named, find, merged};
pub use record::{Extent, Pages, RECORD_BYTES_MAX, Record, RecordError, Threads};
pub use survey::{Survey, Wish, survey};
pub use threads::{Pinned, ThreadsBack, pin, release, to_pin};

/// Bytes by the reason why they stay.
pub type Reasons = BTreeMap<String, u64>;

/// One life of one program in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its PID.
    pub pid: u32,
    /// When it began, in clock ticks since boot.
    pub start_ticks: u64,
    /// Where its code and its stack begin.
    pub layout: (u64, u64),
    /// A number of the program that it executes; `None` where we may not know it.
    pub mark: Option<u32>,
    /// The namespaces of PIDs and of time in which the two numbers above mean this process.
    pub spaces: Spaces,
}

/// Namespaces by their numbers: in another one a PID names another process, and its beginning is counted from another
/// moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spaces {
    /// Of PIDs.
    pub pids: u64,
    /// Of time; 0 where the kernel has none.
    pub time: u64,
}

impl Identity {
    /// Whether `self` and `other` are one process.
    #[must_use]
    pub fn is_process(&self, other: &Self) -> bool {
        self.pid == other.pid && self.start_ticks == other.start_ticks
    }

    /// Whether they are one process that executes one program.
    #[must_use]
    pub fn is_program(&self, other: &Self) -> bool {
        let marks_agree = match (self.mark, other.mark) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        self.is_process(other) && self.layout == other.layout && marks_agree
    }
}

/// A mapping, with what decides whether its pages may be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// What maps says of it.
    pub area: Area,
    /// Its memory policy, in the kernel's words; `None` where the kernel told none.
    pub policy: Option<String>,
    /// Whether the program has locked it into memory.
    pub is_locked: bool,
    /// Whether it is of a pool of huge pages.
    pub is_pool: bool,
}

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// When it began.
    pub start_ticks: u64,
    /// The CPUs that it was given, those that are offline too.
    pub cpus: CpuSet,
}

/// Free memory of a node, and how much of it is not ours to fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Free bytes.
    pub free: u64,
    /// Bytes that must stay free.
    pub kept: u64,
}

impl Room {
    /// Bytes that may be moved there.
    #[must_use]
    pub fn spare(&self) -> u64 {
        self.free.saturating_sub(self.kept)
    }
}

/// Why a process was not moved, or not further.
#[derive(Debug, thiserror::Error)]
pub enum RelocateError {
    /// Its memory cannot be told.
    #[error(transparent)]
    Residency(#[from] ResidencyError),
    /// It has ended.
    #[error("process {pid} has ended")]
    Ended {
        /// Its PID.
        pid: u32,
    },
    /// The kernel refuses to tell or to move its pages.
    #[error("process {pid}")]
    Refused {
        /// Its PID.
        pid: u32,
        /// What the kernel answered.
        #[source]
        source: planish_sys::Error,
    },
    /// What its numbers mean cannot be told.
    #[error("{why}")]
    Elsewhere {
        /// Why.
        why: &'static str,
    },
    /// This kernel tells no nodes.
    #[error("this kernel was built without NUMA: there is no /proc/{pid}/numa_maps")]
    NoNuma {
        /// The PID that was asked for.
        pid: u32,
    },
}

impl RelocateError {
    /// What would help.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Residency(error) => error.cure().unwrap_or_else(|| "once more: planish ...".to_owned()),
            Self::Ended { .. } => "name a process that runs: ps -e lists them".to_owned(),
            Self::Refused { source: planish_sys::Error::Forbidden { call: "move_pages", .. }, .. } => {
                "in a container --cap-add SYS_NICE (CAP_SYS_NICE), for its filter; without that --cpus alone still \
                 pins threads, and planish map tells nodes in proportion"
                    .to_owned()
            }
            Self::Refused { source: planish_sys::Error::Forbidden { .. }, .. } => {
                "run as the owner of the process, or as root: CAP_SYS_PTRACE to move pages, CAP_SYS_NICE to pin \
                 threads, and both in a container (--cap-add SYS_PTRACE --cap-add SYS_NICE); planish top tells what \
                 anybody may know of it"
                    .to_owned()
            }
            Self::Refused { .. } => "planish map tells what can be seen of the process".to_owned(),
            Self::Elsewhere { .. } => {
                "run it where /proc belongs to it: on the host, or inside of the container".to_owned()
            }
            Self::NoNuma { .. } => "planish topo tells the nodes of this machine".to_owned(),
        }
    }
}

/// The processes of a machine, and the room of its nodes. A test puts a model in the place of the kernel here.
pub trait Processes {
    /// A process to look at and to move; `None` where there is none of that number.
    ///
    /// # Errors
    /// It may not be seen.
    fn open(&self, pid: u32) -> Result<Option<Box<dyn Process + '_>>, RelocateError>;

    /// The namespaces in which numbers of processes are meant here.
    ///
    /// # Errors
    /// They cannot be told, or `/proc` is that of others.
    fn spaces(&self) -> Result<Spaces, RelocateError>;

    /// The room of a node; `None` where it has no memory.
    fn room(&self, node: u32) -> Option<Room>;

    /// What the clock says.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Waits.
    fn pause(&self, time: Duration);

    /// Bytes of a base page.
    fn base_bytes(&self) -> u64;

    /// Bytes of a transparent huge page, or of what is moved together where there are none.
    fn chunk_bytes(&self) -> u64;
}

/// One process, held by a descriptor: after its end it is nobody, whoever has its number then.
pub trait Process {
    /// Who it is now; `None` when it has ended, and for no other reason.
    ///
    /// # Errors
    /// It cannot be told at this moment.
    fn identity(&self) -> Result<Option<Identity>, RelocateError>;

    /// Its mappings, by address, without what decides whether they may be moved: this costs little.
    ///
    /// # Errors
    /// It has ended, or may not be seen.
    fn areas(&self) -> Result<Vec<Area>, RelocateError>;

    /// Its mappings, by address.
    ///
    /// # Errors
    /// It has ended, or may not be seen.
    fn mapped(&self) -> Result<Vec<Mapped>, RelocateError>;

    /// Bytes of it that are in swap; `None` where that is not told.
    ///
    /// # Errors
    /// It has ended, or may not be seen.
    fn swapped_bytes(&self) -> Result<Option<u64>, RelocateError> {
        Ok(None)
    }

    /// Its pages that are there or in swap, by its page tables.
    ///
    /// # Errors
    /// As the kernel says.
    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, RelocateError>;

    /// The pages of `within` that the kernel moves together with the one at an address, from the first to the last of
    /// them, whatever the page tables tell; `None` where nobody tells.
    fn folio(&self, address: u64, within: &Range<u64>) -> Option<Range<u64>>;

    /// Where pages lie.
    ///
    /// # Errors
    /// As the kernel says.
    fn pages_at(&self, addresses: &[u64]) -> Result<Vec<PageAt>, RelocateError>;

    /// Moves each page to the node of the same index. The answer tells reasons, and is no proof.
    ///
    /// # Errors
    /// As the kernel says.
    fn move_pages(&self, addresses: &[u64], nodes: &[u32]) -> Result<Vec<PageAt>, RelocateError>;

    /// Its threads, by number.
    ///
    /// # Errors
    /// It has ended, or one of them cannot be told.
    fn threads(&self) -> Result<Vec<Thread>, RelocateError>;

    /// One of its threads; `None` when it has ended.
    ///
    /// # Errors
    /// It cannot be told at this moment.
    fn thread(&self, tid: u32) -> Result<Option<Thread>, RelocateError> {
        Ok(self.threads()?.into_iter().find(|thread| thread.tid == tid))
    }

    /// Gives a thread its CPUs.
    ///
    /// # Errors
    /// As the kernel says.
    fn pin(&self, thread: u32, cpus: &CpuSet) -> Result<(), RelocateError>;
}

/// The node that the page at an address is to lie on: what lies in one chunk goes to one node, so that huge pages stay
/// whole, and several nodes get equal shares.
#[must_use]
pub fn target(address: u64, nodes: &[u32], chunk_bytes: u64) -> u32 {
    let count = nodes.len().max(1) as u64;
    let index = usize::try_from(address / chunk_bytes.max(1) % count).unwrap_or(0);
    nodes.get(index).copied().unwrap_or(0)
}

/// Why a page did not go: it may another time.
const NO_MEMORY: &str = "no free memory on the node";

/// Why a page did not go, by the answer of move_pages(2).
fn reason_of(at: PageAt) -> &'static str {
    match at {
        PageAt::Node(_) => "the kernel put it elsewhere",
        PageAt::Absent | PageAt::Failed(Errno::FAULT) => {
            "not seen at that moment: hidden by balancing, swapped, or gone"
        }
        PageAt::Failed(Errno::ACCESS) => "shared with other processes since a fork",
        PageAt::Failed(Errno::BUSY | Errno::AGAIN) => {
            "in use by the kernel or a device: pinned, or under input or output"
        }
        PageAt::Failed(Errno::NOMEM) => NO_MEMORY,
        PageAt::Failed(_) => "the kernel cannot move it",
    }
}

/// What the page tables have at an address, by runs in rising order.
fn filled_at(runs: &[Run], address: u64) -> Option<Filled> {
    let after = runs.partition_point(|run| run.range.end <= address);
    runs.get(after).filter(|run| run.range.contains(&address)).map(|run| run.filled)
}

/// What a batch of moves came to: where each page lies now, and the answer of the last try.
struct Shifted {
    at: Vec<PageAt>,
    answers: Vec<PageAt>,
}

/// How often a page that is busy is tried.
const TRIES: usize = 3;
/// What a busy page is given before the next try.
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// Moves pages from where they lie and asks where they lie then: what the kernel answers to a move is not proof of it.
/// A page that lies elsewhere by now is left there: somebody else moved it.
fn shift(
    processes: &dyn Processes,
    process: &dyn Process,
    pages: &[(u64, u32)],
    from: &[PageAt],
    runs: &[Run],
) -> Result<Shifted, RelocateError> {
    let addresses: Vec<u64> = pages.iter().map(|(address, _)| *address).collect();
    let mut at = from.to_vec();
    let mut answers = at.clone();
    for attempt in 0..TRIES {
        // Of a huge page one address is enough, and a second one would be answered as busy.
        let (mut indices, mut last_chunk) = (Vec::new(), None);
        for (index, (address, node)) in pages.iter().enumerate() {
            if at[index] != from[index] || !matches!(at[index], PageAt::Node(now) if now != *node) {
                continue;
            }
            let is_huge = filled_at(runs, *address) == Some(Filled::Huge);
            let chunk = is_huge.then(|| address / processes.chunk_bytes());
            if chunk.is_none() || chunk != last_chunk {
                indices.push(index);
            }
            last_chunk = chunk;
        }
        if indices.is_empty() {
            break;
        }
        if attempt > 0 {
            processes.pause(BUSY_PAUSE);
        }
        let (some, nodes): (Vec<u64>, Vec<u32>) = indices.iter().map(|index| pages[*index]).unzip();
        for (index, answer) in indices.iter().zip(move_each(process, &some, &nodes)?) {
            answers[*index] = answer;
        }
        at = process.pages_at(&addresses)?;
    }
    Ok(Shifted { at, answers })
}

/// Moves each page that can be. The kernel gives a call up at the first page that it cannot copy, and leaves those
/// behind it untried (do_pages_move in mm/migrate.c): one that a device writes to would keep all of them.
fn move_each(process: &dyn Process, addresses: &[u64], nodes: &[u32]) -> Result<Vec<PageAt>, RelocateError> {
    let mut answers = Vec::with_capacity(addresses.len());
    while answers.len() < addresses.len() {
        let done = answers.len();
        let some = process.move_pages(&addresses[done..], &nodes[done..])?;
        let given_up = some.iter().position(|answer| *answer == PageAt::Failed(Errno::AGAIN));
        let told = given_up.map_or(addresses.len() - done, |at| at + 1);
        answers.extend(some.into_iter().take(told));
    }
    Ok(answers)
}
