//! The one error of this crate: which call failed, and whether it was refused, missing or merely failed.

use rustix::io::Errno;

use crate::set::CpuSet;

/// What a call of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a kernel call did not do what was asked.
///
/// `Forbidden` and `Missing` are told apart from `Call` because they are properties of the place where we
/// run (a container's seccomp filter, an old kernel): callers report them as a verdict, not as a failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel, a security module or a seccomp filter refused the call (EPERM or EACCES).
    #[error("{call} is not permitted here{}", hint_for(call))]
    Forbidden {
        /// Name of the system call.
        call: &'static str,
        /// What the kernel answered.
        #[source]
        source: Errno,
    },
    /// This kernel does not have the call, or not this form of it (ENOSYS).
    #[error("{call} is not in this kernel")]
    Missing {
        /// Name of the system call.
        call: &'static str,
        /// What the kernel answered.
        #[source]
        source: Errno,
    },
    /// Any other failure of a call.
    #[error("{call} failed")]
    Call {
        /// Name of the system call.
        call: &'static str,
        /// What the kernel answered.
        #[source]
        source: Errno,
    },
    /// The pool of huge pages cannot give as many pages as the mapping needs.
    #[error("not enough free huge pages of {page_bytes} bytes for {bytes} bytes")]
    PoolShort {
        /// Size of one page that was asked for.
        page_bytes: usize,
        /// Length of the mapping that was asked for.
        bytes: usize,
        /// What the kernel answered (ENOMEM).
        #[source]
        source: Errno,
    },
    /// No pool of pages of this size exists on this machine.
    #[error("this kernel offers no huge pages of {page_bytes} bytes")]
    NoSuchPageSize {
        /// Size of one page that was asked for.
        page_bytes: usize,
    },
    /// The kernel was built without transparent huge pages.
    #[error("this kernel has no transparent huge pages")]
    NoThp,
    /// A range reaches beyond its mapping, or does not start on a page of it.
    #[error("range {start}..{end} is not whole pages inside a mapping of {bytes} bytes")]
    Range {
        /// First byte of the range.
        start: usize,
        /// Byte after the range.
        end: usize,
        /// Length of the mapping.
        bytes: usize,
    },
    /// CPUs that a thread was to be kept on are offline, or its cpuset does not have them.
    #[error("CPU {cpus} cannot be used: this process may run on {allowed}")]
    Outside {
        /// Those that it cannot have.
        cpus: CpuSet,
        /// Those that it can.
        allowed: CpuSet,
    },
    /// Other threads exist, whose locks would stay locked in a copy of this process.
    #[error("cannot copy a process of {threads} threads")]
    Threads {
        /// Number of threads, the caller's included.
        threads: usize,
    },
    /// So much of a shared object is in the cache of swap, here and there, that what of it is in memory alone would
    /// take too long to find.
    #[error("more of it is on its way from or to swap than can be told apart")]
    SwapCache,
    /// A length that is zero, or whose rounding up to whole pages overflows.
    #[error("cannot map {bytes} bytes")]
    Length {
        /// Length that was asked for.
        bytes: usize,
    },
}

impl Error {
    /// A failure of `call`, for callers that find one out before they call.
    pub fn of_call(call: &'static str, source: Errno) -> Self {
        Self::of(call, source)
    }

    /// Sorts a failed call into its variant.
    pub(crate) fn of(call: &'static str, source: Errno) -> Self {
        match source {
            Errno::PERM | Errno::ACCESS => Self::Forbidden { call, source },
            Errno::NOSYS => Self::Missing { call, source },
            _ => Self::Call { call, source },
        }
    }

    /// The same of a call that the standard library makes; one that tells no number is EIO.
    pub(crate) fn of_io(call: &'static str, source: &std::io::Error) -> Self {
        Self::of(call, Errno::from_io_error(source).unwrap_or(Errno::IO))
    }

    /// What the kernel answered, where it was asked at all.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Forbidden { source, .. }
            | Self::Missing { source, .. }
            | Self::Call { source, .. }
            | Self::PoolShort { source, .. } => Some(*source),
            Self::NoSuchPageSize { .. }
            | Self::NoThp
            | Self::SwapCache
            | Self::Range { .. }
            | Self::Outside { .. }
            | Self::Threads { .. }
            | Self::Length { .. } => None,
        }
    }
}

/// Docker's and Kubernetes' default seccomp profiles block the memory-policy calls without CAP_SYS_NICE.
fn hint_for(call: &str) -> &'static str {
    match call {
        "mbind" | "set_mempolicy" | "get_mempolicy" | "move_pages" => {
            " (a container's seccomp filter blocks it without CAP_SYS_NICE)"
        }
        _ => "",
    }
}
