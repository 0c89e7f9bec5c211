//! The threads that kernels share.

use std::num::NonZeroUsize;
use std::sync::{Mutex, TryLockError};

use planish_kernels::Crew;

use crate::SqlError;

/// One crew for all queries. A query that finds it at work does its own work alone: two crews would only take the CPUs
/// from each other.
#[derive(Debug)]
pub(crate) struct Threads {
    crew: Mutex<Crew>,
    count: usize,
}

impl Threads {
    pub(crate) fn new(threads: NonZeroUsize) -> Result<Self, SqlError> {
        let crew = Crew::new(threads).map_err(SqlError::Threads)?;
        Ok(Self { crew: Mutex::new(crew), count: threads.get() })
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Hands `work` the crew, or one of the calling thread alone.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Crew) -> R) -> Result<R, SqlError> {
        match self.crew.try_lock() {
            Ok(mut crew) => Ok(work(&mut crew)),
            // A crew is whole again when a panic leaves it.
            Err(TryLockError::Poisoned(crew)) => Ok(work(&mut crew.into_inner())),
            Err(TryLockError::WouldBlock) => {
                let mut alone = Crew::new(NonZeroUsize::MIN).map_err(SqlError::Threads)?;
                Ok(work(&mut alone))
            }
        }
    }
}
