//! Who may begin now, who waits, and who is told to come again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, Kind};

/// So many at once, so many that wait for them.
#[derive(Debug)]
pub(crate) struct Admission {
    what: &'static str,
    places: Arc<Semaphore>,
    running_max: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// One that waits, as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(what: &'static str, running_max: usize, waiting_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(running_max));
        Self { what, places, running_max, waiting: AtomicUsize::new(0), waiting_max }
    }

    /// A place, at once or by `until`.
    ///
    /// # Errors
    /// [`Kind::TooMany`] when there is none by then, or too many wait already.
    pub(crate) async fn enter(&self, until: Instant) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.waiting_max {
            return Err(self.too_many());
        }
        match timeout_at(until, Arc::clone(&self.places).acquire_owned()).await {
            Ok(place) => Ok(place.expect("places are never closed")),
            Err(_) => Err(self.too_many()),
        }
    }

    fn too_many(&self) -> Failure {
        let Self { what, running_max, waiting_max, .. } = self;
        let text = format!("{running_max} {what} run and {waiting_max} may wait: come again");
        Failure::new(Kind::TooMany, text)
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        self.running_max - self.places.available_permits()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn wait<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn who_finds_no_place_waits_and_who_finds_no_place_to_wait_is_told() {
        wait(async {
            let doors = Arc::new(Admission::new("queries", 1, 1));
            let soon = || Instant::now() + Duration::from_millis(20);
            let first = doors.enter(soon()).await.unwrap();
            assert_eq!((doors.running(), doors.waiting()), (1, 0));
            let long = Instant::now() + Duration::from_secs(60);
            let second = tokio::spawn({
                let doors = Arc::clone(&doors);
                async move { doors.enter(long).await.map(drop) }
            });
            tokio::task::yield_now().await;
            assert_eq!((doors.running(), doors.waiting()), (1, 1));
            let third = doors.enter(long).await.unwrap_err();
            assert_eq!((third.kind, doors.waiting()), (Kind::TooMany, 1));
            drop(first);
            second.await.unwrap().unwrap();
            assert_eq!((doors.running(), doors.waiting()), (0, 0));
        });
    }

    #[test]
    fn who_waits_does_not_wait_for_ever_and_may_leave() {
        wait(async {
            let doors = Admission::new("queries", 1, 1);
            let _first = doors.enter(Instant::now()).await.unwrap();
            let late = doors.enter(Instant::now() + Duration::from_millis(5)).await;
            assert_eq!(late.unwrap_err().kind, Kind::TooMany);
            let leaves = doors.enter(Instant::now() + Duration::from_secs(60));
            assert!(tokio::time::timeout(Duration::from_millis(5), leaves).await.is_err());
            assert_eq!(doors.waiting(), 0);
        });
    }
}
