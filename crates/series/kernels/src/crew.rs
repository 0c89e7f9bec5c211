//! Threads that work off the parts of one job.
//!
//! A kernel over a million rows takes a tenth of a millisecond; starting a thread takes half of that. So the
//! threads of a crew live as long as the crew, and for a moment after each job they watch for the next one
//! before they sleep. The caller works too, and never waits for a thread that has not begun: who comes late
//! finds the job gone.

use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// How often a thread looks for the next job before it sleeps: some tens of microseconds.
const LOOKS: u32 = 1000;

/// The calling thread and its helpers.
#[derive(Debug)]
pub struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    slot: Mutex<Slot>,
    /// Signals a job, or the end.
    begin: Condvar,
    /// Signals that the last helper has left a job.
    left: Condvar,
    /// Number of the newest job, to be watched without the lock.
    newest: AtomicU64,
    /// Helpers inside the job, to be watched without the lock.
    inside: AtomicUsize,
}

#[derive(Debug, Default)]
struct Slot {
    number: u64,
    job: Option<Job>,
    is_over: bool,
    panic: Option<Box<dyn Any + Send>>,
}

/// A job as its helpers see it.
#[derive(Clone, Copy)]
struct Job(&'static (dyn Fn() + Sync));

impl std::fmt::Debug for Job {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Job")
    }
}

impl Crew {
    /// A crew of `threads`, the caller among them.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(threads: NonZeroUsize) -> std::io::Result<Self> {
        Self::with_start(threads, |_| ())
    }

    /// A crew whose helpers, numbered from 1, each begin with `start`: the place to pin them.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn with_start(
        threads: NonZeroUsize,
        start: impl Fn(usize) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let mut crew = Self { shared: Arc::default(), helpers: Vec::new() };
        let start = Arc::new(start);
        for index in 1..threads.get() {
            let (shared, start) = (Arc::clone(&crew.shared), Arc::clone(&start));
            let help = move || {
                start(index);
                shared.help();
            };
            let named = std::thread::Builder::new().name(format!("crew-{index}"));
            crew.helpers.push(named.spawn(help)?);
        }
        Ok(crew)
    }

    /// Threads, the caller among them.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Applies `work` to every item, each on whichever thread is free, and returns the results in order.
    ///
    /// # Panics
    /// With what `work` panicked with, after every thread has left it.
    pub fn map<T: Send, R: Send>(&mut self, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        if self.helpers.is_empty() || items.len() < 2 {
            return items.into_iter().map(work).collect();
        }
        let places: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
        let next = AtomicUsize::new(0);
        self.run(&|| {
            while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                let item = lock(place).0.take().expect("each place is counted out once");
                let result = work(item);
                lock(place).1 = Some(result);
            }
        });
        let result = |place: Mutex<(Option<T>, Option<R>)>| {
            place.into_inner().expect("no one panics while holding it").1.expect("every place was worked off")
        };
        places.into_iter().map(result).collect()
    }

    /// Runs `work` on the caller and on every helper that comes before the caller is done.
    fn run(&mut self, work: &(dyn Fn() + Sync)) {
        // SAFETY: only the lifetime changes. Helpers reach the reference through the slot alone, count
        // themselves in under its lock and out when they are done with it. Below, the slot is emptied and the
        // count awaited before this function returns or unwinds; so nobody holds it longer than the borrow.
        let job = Job(unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) });
        let shared = &*self.shared;
        let mut slot = lock(&shared.slot);
        slot.number += 1;
        slot.job = Some(job);
        shared.newest.store(slot.number, Ordering::Release);
        drop(slot);
        shared.begin.notify_all();
        let mine = catch_unwind(AssertUnwindSafe(work));
        lock(&shared.slot).job = None;
        let mut looks = 0;
        while looks < LOOKS && shared.inside.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
            looks += 1;
        }
        let mut slot = lock(&shared.slot);
        while shared.inside.load(Ordering::Acquire) > 0 {
            slot = shared.left.wait(slot).expect("no one panics while holding it");
        }
        let theirs = slot.panic.take();
        drop(slot);
        if let Some(panic) = mine.err().or(theirs) {
            resume_unwind(panic);
        }
    }
}

impl Shared {
    /// The life of a helper.
    fn help(&self) {
        let mut seen = 0;
        loop {
            let mut looks = 0;
            while looks < LOOKS && self.newest.load(Ordering::Acquire) == seen {
                std::hint::spin_loop();
                looks += 1;
            }
            let mut slot = lock(&self.slot);
            while slot.number == seen && !slot.is_over {
                slot = self.begin.wait(slot).expect("no one panics while holding it");
            }
            if slot.is_over {
                return;
            }
            seen = slot.number;
            let Some(job) = slot.job else { continue };
            self.inside.fetch_add(1, Ordering::AcqRel);
            drop(slot);
            let panic = catch_unwind(AssertUnwindSafe(job.0)).err();
            let mut slot = lock(&self.slot);
            slot.panic = slot.panic.take().or(panic);
            self.inside.fetch_sub(1, Ordering::AcqRel);
            drop(slot);
            self.left.notify_one();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        lock(&self.shared.slot).is_over = true;
        self.shared.newest.store(u64::MAX, Ordering::Release);
        self.shared.begin.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper that panicked in `start` has said so already.
            let _ = helper.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no one panics while holding it")
}

/// Part `part` of `parts` nearly equal ones of `rows` rows.
#[must_use]
pub fn part_of(rows: usize, part: usize, parts: usize) -> Range<usize> {
    let cut = |part: usize| (rows as u128 * part as u128 / parts as u128) as usize;
    cut(part)..cut(part + 1)
}

/// All parts of `rows` rows, in order.
pub(crate) fn parts_of(rows: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    (0..parts).map(move |part| part_of(rows, part, parts))
}

/// Cuts a column that is written where the parts of its rows begin.
pub(crate) fn cut_mut<T>(mut column: &mut [T], parts: usize) -> Vec<&mut [T]> {
    let rows = column.len();
    let mut cut = Vec::with_capacity(parts);
    for range in parts_of(rows, parts) {
        let (part, rest) = column.split_at_mut(range.len());
        cut.push(part);
        column = rest;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crew(threads: usize) -> Crew {
        Crew::new(NonZeroUsize::new(threads).unwrap()).unwrap()
    }

    #[test]
    fn results_come_in_order_whoever_made_them() {
        for threads in 1..5 {
            let mut crew = crew(threads);
            assert_eq!(crew.threads(), threads);
            for items in [0, 1, 2, 7, 100] {
                let borrowed: Vec<usize> = (0..items).collect();
                let got = crew.map((0..items).collect(), |item: usize| borrowed[item] * 2);
                assert_eq!(got, (0..items).map(|item| item * 2).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_thread_can_work_at_once_and_again_after_sleeping() {
        let mut crew = crew(3);
        for _ in 0..3 {
            let barrier = std::sync::Barrier::new(3);
            crew.map(vec![(); 3], |()| {
                barrier.wait();
            });
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_have_left() {
        let mut crew = crew(2);
        let done = AtomicUsize::new(0);
        let wrong = catch_unwind(AssertUnwindSafe(|| {
            crew.map((0..20).collect(), |item: usize| {
                assert_ne!(item, 3, "three is wrong");
                done.fetch_add(1, Ordering::Relaxed);
            })
        }));
        let panic = wrong.unwrap_err();
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("three is wrong")));
        assert_eq!(crew.map(vec![1, 2], |item| item + 1), [2, 3]);
    }

    #[test]
    fn helpers_are_started_with_their_number() {
        let numbers = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&numbers);
        drop(Crew::with_start(NonZeroUsize::new(3).unwrap(), move |index| lock(&seen).push(index)).unwrap());
        let mut numbers = lock(&numbers).clone();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn parts_cover_all_rows_once() {
        for rows in [0, 1, 2, 3, 10, 101] {
            for parts in 1..6 {
                let mut column: Vec<usize> = (0..rows).collect();
                let ranges: Vec<_> = parts_of(rows, parts).collect();
                let cut = cut_mut(&mut column, parts);
                assert_eq!(ranges.iter().flat_map(Clone::clone).collect::<Vec<_>>(), cut.concat());
            }
        }
    }
}
