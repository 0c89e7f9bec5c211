//! Pages before their first use, by several threads that live for this only.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use crate::place::{self, MASK_BITS, Segment};
use crate::raw::{FROM_OTHERS, block, call, call6, errno, let_through_but, nr, pause, thread};
use crate::settings::{NODES_MAX, Settings};
use crate::wire::{self, Notice};

const MADV_POPULATE_WRITE: usize = 23;
const MADV_COLLAPSE: usize = 25;
const MPOL_PREFERRED: usize = 1;
const EINVAL: i32 = 22;
const EAGAIN: i32 = 11;
/// Tries of what is in the way for a moment only: a page that some CPU is just putting on a list.
const TRIES: u32 = 20;
/// Of moves, each of which takes long enough for that: the second one finds all but a few where they are to be.
const MOVES: u32 = 2;
/// Pauses between tries, of all threads together: what never moves must not keep a program for longer.
const PAUSES_MAX: u32 = 200;
/// What a thread takes at a time: long enough for the call not to count, short enough to share out evenly.
const CHUNK: usize = 16 << 20;
const THREADS_MAX: usize = 64;
const STACK: usize = 16 << 10;

/// What the threads share.
pub struct Job<'a> {
    settings: &'a Settings,
    /// Where the first chunk would begin: huge pages begin at multiples of their size, whatever begins in one.
    address: usize,
    bytes: usize,
    chunk: usize,
    /// Bytes of the first chunk that are before the segment.
    before: usize,
    /// Collapse each chunk into one transparent huge page.
    collapses: bool,
    /// Choose the node of each chunk by the weights.
    spreads: bool,
    /// The pages are there already: those that nobody else has mapped move to where they would have been made.
    moves: bool,
    /// Without the call that fills pages, they may be written: nothing can be missing behind them.
    may_touch: bool,
    /// Signals that the program has blocked; who waits for the threads looks at them.
    signals: &'a Cell<u64>,
    next: AtomicUsize,
    /// A signal waits: each thread ends with its chunk.
    is_stopped: AtomicBool,
    pauses: AtomicU32,
    prefault_errno: AtomicI32,
    huge_errno: AtomicI32,
    small_chunks: AtomicU32,
}

impl<'a> Job<'a> {
    /// `thp`: the size of a transparent huge page, where such are wanted, or 0.
    pub fn new(
        segment: &Segment<'a>,
        settings: &'a Settings,
        thp: usize,
        spreads: bool,
        moves: bool,
    ) -> Self {
        let page = place::page();
        let before = segment.address & thp.saturating_sub(1);
        Self {
            settings,
            address: segment.address - before,
            bytes: before + ((segment.filled_bytes + page - 1) & !(page - 1)),
            before,
            chunk: if thp > 0 { thp } else { CHUNK },
            collapses: thp > 0,
            spreads,
            moves,
            may_touch: segment.kind != wire::KIND_FILE,
            signals: segment.signals,
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            pauses: AtomicU32::new(0),
            prefault_errno: AtomicI32::new(0),
            huge_errno: AtomicI32::new(0),
            small_chunks: AtomicU32::new(0),
        }
    }

    /// Fills one chunk; gives the error number.
    fn fill(&self, address: usize, bytes: usize) -> i32 {
        // SAFETY: fills what is empty and changes no content.
        let failed = errno(unsafe { call(nr::MADVISE, address, bytes, MADV_POPULATE_WRITE) });
        if failed != EINVAL || !self.may_touch {
            return failed;
        }
        // Before Linux 5.14. Written as an atomic, since another process may be writing already.
        for at in (address..address + bytes).step_by(4096) {
            // SAFETY: mapped writable, and memory is promised to it.
            unsafe { &*(at as *const AtomicU8) }.fetch_or(0, Ordering::Relaxed);
        }
        0
    }

    /// Moves the pages of one chunk; those that cannot move stay, which the launcher will see.
    fn spread_existing(&self, number: usize, address: usize, bytes: usize) {
        const MPOL_MF_MOVE: usize = 2;
        const BATCH: usize = 256;
        let mut addresses = [0usize; BATCH];
        let mut nodes = [0i32; BATCH];
        let (mut at, end, step) = (address, address + bytes, place::page());
        while at < end {
            let mut count = 0;
            for (place, node) in addresses.iter_mut().zip(&mut nodes) {
                if at >= end {
                    break;
                }
                *place = at;
                // A page of a chunk that is to be one huge page goes with it.
                let page = if self.collapses { number } else { (at - self.address) >> step.trailing_zeros() };
                *node = self.settings.node_of(page) as i32;
                at += step;
                count += 1;
            }
            let mut done = 0;
            while done < count {
                let what = addresses.as_ptr() as usize + done * size_of::<usize>();
                // The kernel has read the node of a page when it writes what became of it.
                let nodes = nodes.as_mut_ptr() as usize + done * size_of::<i32>();
                // SAFETY: two arrays of at least `count`; where a page lies changes none of its content.
                let left =
                    unsafe { call6(nr::MOVE_PAGES, 0, count - done, what, nodes, nodes, MPOL_MF_MOVE) };
                if left <= 0 {
                    break;
                }
                // The kernel gives up at the first page that it cannot copy, one that a device writes to, and counts it
                // with those that it did not try. The next call begins there, and behind it where that fails again.
                done += (count - done).saturating_sub(left as usize).max(1);
            }
        }
    }

    /// Waits a millisecond before the next try, unless all threads have waited for long enough.
    fn pause(&self) {
        if self.pauses.fetch_add(1, Ordering::Relaxed) < PAUSES_MAX {
            pause();
        }
    }

    /// Waits until the kernel has cleared the word, which it does when the stack is free. A signal that the
    /// program has not blocked has the threads end early. What is blocked wakes nobody: it is asked for, now and then.
    fn wait(&self, ended: &AtomicU32) {
        const FUTEX_WAIT: usize = 0;
        let often = [0usize, 10_000_000];
        loop {
            let value = ended.load(Ordering::Acquire);
            if value == 0 {
                return;
            }
            let (word, how_long) = (ended.as_ptr() as usize, often.as_ptr() as usize);
            // SAFETY: the word and a `timespec` of two words outlive the call.
            unsafe { call6(nr::FUTEX, word, FUTEX_WAIT, value as usize, how_long, 0, 0) };
            if pending() & !self.signals.get() != 0 {
                self.is_stopped.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Prefers one node for the pages that this thread will make.
    fn prefer(&self, node: usize) {
        let mut mask = [0u64; NODES_MAX / 64];
        if let Some(word) = mask.get_mut(node / 64) {
            *word = 1 << (node % 64);
        }
        // SAFETY: the kernel reads the mask; the policy is this thread's, which ends soon.
        unsafe { call(nr::SET_MEMPOLICY, MPOL_PREFERRED, mask.as_ptr() as usize, MASK_BITS) };
    }
}

/// A thread: chunk after chunk, until there is none.
extern "C" fn work(job: usize) {
    // No handler may run here, where there is no storage of a thread.
    block(u64::MAX, &Cell::new(0));
    // SAFETY: `prefault` keeps the job until every thread has ended.
    let job = unsafe { &*(job as *const Job<'_>) };
    loop {
        let number = job.next.fetch_add(1, Ordering::Relaxed);
        let start = number.saturating_mul(job.chunk);
        if start >= job.bytes {
            return;
        }
        let before = if number == 0 { job.before } else { 0 };
        let (address, bytes) = (job.address + start + before, job.chunk.min(job.bytes - start) - before);
        if job.spreads {
            job.prefer(job.settings.node_of(number));
        }
        let failed = job.fill(address, bytes);
        if failed != 0 {
            job.prefault_errno.store(failed, Ordering::Relaxed);
            job.next.store(job.bytes, Ordering::Relaxed);
            return;
        }
        if job.moves {
            for _ in 0..MOVES {
                job.spread_existing(number, address, bytes);
            }
        }
        if job.collapses && bytes == job.chunk {
            let mut failed = EAGAIN;
            for _ in 0..TRIES {
                // SAFETY: moves content to a huge page, and changes none.
                failed = errno(unsafe { call(nr::MADVISE, address, bytes, MADV_COLLAPSE) });
                if failed != EAGAIN {
                    break;
                }
                job.pause();
            }
            if failed != 0 {
                job.huge_errno.store(failed, Ordering::Relaxed);
                job.small_chunks.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Not before the first one: signals without end must not keep a fill from its end.
        if job.is_stopped.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Fills a segment by up to `threads` threads, and waits for them.
///
/// No signal is delivered while a thread runs, as the kernel delivers none within mmap(2): the threads write to the
/// job, which lies on the stack of the caller, and a handler may leave that stack (siglongjmp, an asynchronous
/// pthread_cancel) or fork, whose child has no such thread to wait for. One that waits ends the round; it is
/// delivered when no thread is left, and then the fill goes on where it was, if the handler comes back.
#[inline(never)]
pub fn prefault(job: &Job<'_>, threads: usize, notice: &mut Notice) {
    while round(job, threads, notice) {
        // The handlers of what waits run within this call: all that is theirs to leave behind is the mapping, as after
        // mmap(2). They may change what is blocked.
        let_through_but(job.signals.get());
        block(FROM_OTHERS, job.signals);
    }
    notice.prefault_errno = job.prefault_errno.load(Ordering::Relaxed);
    notice.small_chunks = job.small_chunks.load(Ordering::Relaxed);
    if notice.small_chunks > 0 {
        notice.huge_errno = job.huge_errno.load(Ordering::Relaxed);
    }
}

/// Starts threads and waits until they have ended; true where a signal has ended them before there was nothing left.
fn round(job: &Job<'_>, threads: usize, notice: &mut Notice) -> bool {
    const READ_WRITE: usize = 3;
    const PRIVATE: usize = 0x22;
    // No division that could fail: what would tell of it has no room here.
    let chunks = job.bytes.wrapping_sub(1).checked_div(job.chunk).unwrap_or(0) + 1;
    let wanted = threads.min(THREADS_MAX).min(chunks);
    // SAFETY: a fresh mapping.
    let stacks = unsafe { call6(nr::MMAP, 0, wanted * STACK, READ_WRITE, PRIVATE, usize::MAX, 0) };
    let mut started = 0;
    if errno(stacks) == 0 {
        // The first word of each stack tells whether it is in use: far below what a thread takes of it.
        let stack = |number: usize| stacks as usize + number * STACK;
        job.is_stopped.store(false, Ordering::Relaxed);
        while started < wanted {
            let stack = stack(started);
            // SAFETY: a stack of its own each, and a job that outlives the wait below; signals are blocked.
            let is_started = unsafe {
                (stack as *mut u32).write(1);
                thread(stack + STACK, work, &raw const *job as usize, stack as *mut u32)
            };
            // More would be refused as well.
            if !is_started {
                break;
            }
            started += 1;
        }
        for number in 0..started {
            // SAFETY: mapped above; written by the kernel only from here on.
            job.wait(unsafe { &*(stack(number) as *const AtomicU32) });
        }
        // SAFETY: no thread runs on them any more.
        unsafe { call(nr::MUNMAP, stacks as usize, wanted * STACK, 0) };
    }
    notice.threads = notice.threads.max(started as u32);
    if started == 0 {
        notice.skipped = wire::SKIP_THREADS;
    }
    let done = job.next.load(Ordering::Relaxed).saturating_mul(job.chunk);
    started > 0 && job.is_stopped.load(Ordering::Relaxed) && done < job.bytes
}

/// Signals that wait for being let through: of this thread, and of the process.
#[inline(never)]
fn pending() -> u64 {
    let mut mask = 0u64;
    // SAFETY: the kernel writes a mask of 8 bytes; where a filter refuses the call, none waits.
    unsafe { call(nr::SIGPENDING, &raw mut mask as usize, size_of::<u64>(), 0) };
    mask
}
