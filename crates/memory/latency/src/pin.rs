//! Threads that stay on their CPU.

use planish_sys::{CpuSet, affinity};

use crate::error::LatencyError;

/// Keeps the calling thread on one CPU, and reads back that it is kept there.
pub(crate) fn pin(cpu: u32) -> Result<(), LatencyError> {
    let wanted: CpuSet = [cpu].into_iter().collect();
    affinity::set(None, &wanted).map_err(|source| LatencyError::Pin { cpu, source })?;
    let kept = affinity::get(None).map_err(|source| LatencyError::Pin { cpu, source })?;
    let here = affinity::here().map_err(|source| LatencyError::Pin { cpu, source })?;
    if kept == wanted && here.cpu == cpu { Ok(()) } else { Err(LatencyError::Moved { cpu }) }
}

/// Does some work on a thread of its own that stays on one CPU. Results are those of the work.
pub(crate) fn on_cpu<T: Send>(
    cpu: u32,
    work: impl FnOnce() -> Result<T, LatencyError> + Send,
) -> Result<T, LatencyError> {
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, move || {
            pin(cpu)?;
            work()
        });
        let thread = started.map_err(LatencyError::Thread)?;
        thread.join().expect("the work does not panic")
    })
}
