//! What steers a running trial from outside: a stop flag and a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time that a trial may be given or may wait for, in seconds: 30 days. What is longer is a slip of the
/// finger, and beyond 2^64 seconds there is no such [`Duration`].
pub const SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

/// Whether a number of seconds is a time that a trial may be given: from zero to [`SECONDS_MAX`].
pub(crate) fn is_time(seconds: f64) -> bool {
    (0.0..=SECONDS_MAX as f64).contains(&seconds)
}

/// Set from a signal handler or another thread; the trial ends its children, undoes its host arms and returns
/// what it knows. Looked at between slices and while waiting, at least ten times a second.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// When it is set by itself.
    end: Option<Instant>,
}

impl Stop {
    /// A flag that the caller shares, such as one that a signal sets.
    #[must_use]
    pub fn watching(flag: Arc<AtomicBool>) -> Self {
        Self { flag, end: None }
    }

    /// The same flag, which is also set from a moment on: for work that must not outlast the time for everything.
    #[must_use]
    pub(crate) fn until(&self, end: Instant) -> Self {
        Self { flag: Arc::clone(&self.flag), end: Some(end) }
    }

    /// Asks the trial to end.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Release);
    }

    /// Whether the trial shall end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire) || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Sleeps, unless it is told to stop first; false when it was.
    #[must_use]
    pub fn sleep(&self, time: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(50);
        let end = Instant::now() + time;
        while !self.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
        false
    }
}

/// Time since a trial began: the machine's own, or that of a test.
pub(crate) struct Clock(Box<dyn Fn() -> Duration>);

impl Clock {
    /// Begins now.
    pub(crate) fn start() -> Self {
        let begun = Instant::now();
        Self(Box::new(move || begun.elapsed()))
    }

    /// One that a test turns.
    #[cfg(test)]
    pub(crate) fn of(elapsed: impl Fn() -> Duration + 'static) -> Self {
        Self(Box::new(elapsed))
    }

    /// Since the trial began.
    pub(crate) fn elapsed(&self) -> Duration {
        (self.0)()
    }
}

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Builds variants, raises pools, starts what stays resident.
    Prepare,
    /// Measures the noise with pairs of the same arm.
    SelfCheck,
    /// Runs the ladder. Which of its arms is the placebo is not told.
    Ladder,
    /// Runs what was kept again, from fresh starts.
    Confirm,
    /// Ends children and gives the host back.
    CleanUp,
}

impl Phase {
    /// The phase in a few words, for a progress line.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Prepare => "preparing",
            Self::SelfCheck => "A/A self-check",
            Self::Ladder => "ladder",
            Self::Confirm => "confirming",
            Self::CleanUp => "cleaning up",
        }
    }
}

/// How far a trial is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// The phase.
    pub phase: Phase,
    /// Units of the phase that are done: pairs, blocks, arms.
    pub done: usize,
    /// Units of the phase at most; it often ends earlier.
    pub of: usize,
    /// Seconds until the end of the whole trial, at most.
    pub left_seconds: f64,
}

/// Listens to a trial. Called between units, never while one is timed.
pub trait Progress {
    /// The trial came this far.
    fn tick(&mut self, tick: &Tick);
}

/// Listens and says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn tick(&mut self, _tick: &Tick) {}
}

impl<F: FnMut(&Tick)> Progress for F {
    fn tick(&mut self, tick: &Tick) {
        self(tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_a_sleep() {
        let stop = Stop::default();
        assert!(stop.sleep(Duration::from_millis(1)));
        let other = stop.clone();
        let waker = std::thread::spawn(move || other.set());
        assert!(!stop.sleep(Duration::from_secs(60)));
        waker.join().expect("the waker only sets a flag");
    }

    #[test]
    fn a_stop_with_an_end_is_set_by_it_and_by_the_flag_and_sets_no_other() {
        let stop = Stop::default();
        let late = stop.until(Instant::now());
        assert!(late.is_set() && !late.sleep(Duration::from_secs(60)));
        let early = stop.until(Instant::now() + Duration::from_secs(3600));
        assert!(!stop.is_set() && !early.is_set());
        stop.set();
        assert!(early.is_set());
    }
}
