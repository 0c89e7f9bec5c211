//! What the workload cannot do.

use planish_arena::ArenaError;
use planish_kernels::KernelError;

/// Why the workload did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A name that is no query.
    #[error("no query is named {name:?}; there are: xbar, ema, window, asof, vwap, lookup")]
    UnknownQuery {
        /// What was given.
        name: String,
    },
    /// A name that is no place for memory.
    #[error("no place is named {name:?}; there are: default, by-one, interleave-all, interleave-shared")]
    UnknownPlace {
        /// What was given.
        name: String,
    },
    /// Memory does not lie where it was wanted.
    #[error("memory is not where `{place}` wants it: {first}{}", and_more(*more))]
    Misplaced {
        /// What was wanted.
        place: &'static str,
        /// The first piece that lies elsewhere.
        first: String,
        /// Pieces besides it.
        more: usize,
    },
    /// A text that is no number of bytes.
    #[error("{text:?} is no number of bytes from 1 on, like 512M or 1G")]
    Bytes {
        /// What was given.
        text: String,
    },
    /// No query was chosen.
    #[error("no query was chosen")]
    NoQuery,
    /// More threads than any machine has CPUs for.
    #[error("{threads} threads are too many, at most {most} can be had")]
    Threads {
        /// What was given.
        threads: usize,
        /// The most that can be had.
        most: usize,
    },
    /// A number that no NUMA node can have.
    #[error("no NUMA node is numbered {node}")]
    NoNode {
        /// What was given.
        node: u32,
    },
    /// The working set is too small to measure anything.
    #[error("a working set of {bytes} bytes is too small, wanted {least_bytes}")]
    TooSmall {
        /// What was given.
        bytes: usize,
        /// The least that works with these queries and threads.
        least_bytes: usize,
    },
    /// The memory could not be had as asked for; [`ArenaError::cure`] says what to do.
    #[error("no memory for the working set")]
    Memory {
        /// What is missing.
        #[from]
        source: ArenaError,
    },
    /// A thread cannot run where it should.
    #[error("cannot run on CPU {cpus}")]
    Pin {
        /// The CPUs that were asked for.
        cpus: String,
        /// What the kernel said.
        #[source]
        source: planish_sys::Error,
    },
    /// A CPU that was asked for is offline or outside of what this process may use.
    #[error("CPU {cpus} is offline or not allowed here")]
    CpuAbsent {
        /// The CPUs that cannot be used.
        cpus: String,
    },
    /// The kernel does not tell what was used, or does not take a wish of the process.
    #[error("cannot {attempt}")]
    Process {
        /// What was tried.
        attempt: &'static str,
        /// What the kernel said.
        #[source]
        source: planish_sys::Error,
    },
    /// The kernel does not take the wish to end with the parent.
    #[error("cannot ask to end with the parent")]
    Parent {
        /// What the kernel said.
        #[source]
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The generated columns were refused by a kernel; a bug.
    #[error("the generated data are not sound")]
    Data {
        /// What was refused.
        #[from]
        source: KernelError,
    },
    /// The other end of standard input or output failed.
    #[error("cannot {attempt}")]
    Stream {
        /// What was tried.
        attempt: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more") }
}
