//! How a call ended: one enumeration for all of them.

use std::ffi::{CStr, c_char};

use planish_arena::ArenaError;
use planish_latency::LatencyError;

use crate::guard::Fault;

/// How a call ended; `include/planish.h` says what each means.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum planish_result {
    /// It did what it says.
    PLANISH_OK = 0,
    /// A pointer was null that must not be.
    PLANISH_ERROR_NULL = 1,
    /// An argument makes no sense.
    PLANISH_ERROR_INVALID = 2,
    /// More bytes than an address space has.
    PLANISH_ERROR_TOO_LARGE = 3,
    /// The pool of huge pages is too small.
    PLANISH_ERROR_POOL_SHORT = 4,
    /// The kernel has no pages of this size.
    PLANISH_ERROR_NO_SUCH_PAGE = 5,
    /// The memory lay on other pages, and was given back.
    PLANISH_ERROR_NOT_BACKED = 6,
    /// There is less memory.
    PLANISH_ERROR_MEMORY = 7,
    /// The kernel refused the nodes, or gave others.
    PLANISH_ERROR_PLACEMENT = 8,
    /// The kernel refused the mapping.
    PLANISH_ERROR_MAP = 9,
    /// What the kernel gave cannot be read back.
    PLANISH_ERROR_READ_BACK = 10,
    /// A seccomp filter or a security module forbids the call.
    PLANISH_ERROR_FORBIDDEN = 11,
    /// The kernel does not have the call.
    PLANISH_ERROR_MISSING = 12,
    /// The cpuset of the process does not have the CPU or the node, or the CPU is offline.
    PLANISH_ERROR_OUTSIDE = 13,
    /// No page is there.
    PLANISH_ERROR_ABSENT = 14,
    /// There is no such node, or it has no memory.
    PLANISH_ERROR_NO_SUCH_NODE = 15,
    /// Another call of the kernel failed.
    PLANISH_ERROR_SYSTEM = 16,
    /// Memory that grows has no more addresses.
    PLANISH_ERROR_FULL = 17,
    /// A mistake of libplanish.
    PLANISH_ERROR_BUG = 18,
}

use planish_result::*;

const NAMES: &[(planish_result, &CStr)] = &[
    (PLANISH_OK, c"PLANISH_OK"),
    (PLANISH_ERROR_NULL, c"PLANISH_ERROR_NULL"),
    (PLANISH_ERROR_INVALID, c"PLANISH_ERROR_INVALID"),
    (PLANISH_ERROR_TOO_LARGE, c"PLANISH_ERROR_TOO_LARGE"),
    (PLANISH_ERROR_POOL_SHORT, c"PLANISH_ERROR_POOL_SHORT"),
    (PLANISH_ERROR_NO_SUCH_PAGE, c"PLANISH_ERROR_NO_SUCH_PAGE"),
    (PLANISH_ERROR_NOT_BACKED, c"PLANISH_ERROR_NOT_BACKED"),
    (PLANISH_ERROR_MEMORY, c"PLANISH_ERROR_MEMORY"),
    (PLANISH_ERROR_PLACEMENT, c"PLANISH_ERROR_PLACEMENT"),
    (PLANISH_ERROR_MAP, c"PLANISH_ERROR_MAP"),
    (PLANISH_ERROR_READ_BACK, c"PLANISH_ERROR_READ_BACK"),
    (PLANISH_ERROR_FORBIDDEN, c"PLANISH_ERROR_FORBIDDEN"),
    (PLANISH_ERROR_MISSING, c"PLANISH_ERROR_MISSING"),
    (PLANISH_ERROR_OUTSIDE, c"PLANISH_ERROR_OUTSIDE"),
    (PLANISH_ERROR_ABSENT, c"PLANISH_ERROR_ABSENT"),
    (PLANISH_ERROR_NO_SUCH_NODE, c"PLANISH_ERROR_NO_SUCH_NODE"),
    (PLANISH_ERROR_SYSTEM, c"PLANISH_ERROR_SYSTEM"),
    (PLANISH_ERROR_FULL, c"PLANISH_ERROR_FULL"),
    (PLANISH_ERROR_BUG, c"PLANISH_ERROR_BUG"),
];

/// The name of a result, and a word of its own for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn planish_result_name(result: u32) -> *const c_char {
    let name = NAMES.iter().find(|(known, _)| *known as u32 == result).map(|(_, name)| *name);
    name.unwrap_or(c"no result of libplanish").as_ptr()
}

impl From<ArenaError> for Fault {
    fn from(error: ArenaError) -> Self {
        let met = match &error {
            ArenaError::OnNode { source, .. } => &**source,
            error => error,
        };
        let result = match met {
            ArenaError::PoolShort { .. } => PLANISH_ERROR_POOL_SHORT,
            ArenaError::NoSuchPage { .. } => PLANISH_ERROR_NO_SUCH_PAGE,
            ArenaError::NotBacked { .. } => PLANISH_ERROR_NOT_BACKED,
            ArenaError::Memory { .. } => PLANISH_ERROR_MEMORY,
            ArenaError::Placement { .. } | ArenaError::Misplaced { .. } => PLANISH_ERROR_PLACEMENT,
            ArenaError::NoSuchNode { .. } => PLANISH_ERROR_NO_SUCH_NODE,
            ArenaError::OutsideNode { .. } => PLANISH_ERROR_OUTSIDE,
            ArenaError::Map { .. } => PLANISH_ERROR_MAP,
            ArenaError::ReadBack { .. } => PLANISH_ERROR_READ_BACK,
            ArenaError::TooLarge { .. } => PLANISH_ERROR_TOO_LARGE,
            ArenaError::Full { .. } => PLANISH_ERROR_FULL,
            _ => PLANISH_ERROR_SYSTEM,
        };
        Self::of(result, &error, error.cure())
    }
}

impl From<planish_sys::Error> for Fault {
    fn from(error: planish_sys::Error) -> Self {
        use planish_sys::Error;
        let (result, cure) = match &error {
            Error::Forbidden { .. } => {
                (PLANISH_ERROR_FORBIDDEN, "in a container, grant CAP_SYS_NICE or change the seccomp filter")
            }
            Error::Missing { .. } => (PLANISH_ERROR_MISSING, "run it on a kernel that has the call"),
            Error::Outside { .. } => (
                PLANISH_ERROR_OUTSIDE,
                "choose CPUs of planish_pin_allowed, or widen the cpuset of the process",
            ),
            _ => (PLANISH_ERROR_SYSTEM, "look at the limits of this process and its control group"),
        };
        Self::of(result, &error, cure.to_owned())
    }
}

impl From<LatencyError> for Fault {
    fn from(error: LatencyError) -> Self {
        match error {
            LatencyError::Memory(error) => error.into(),
            LatencyError::Asked(error) => error.into(),
            other => {
                let cure = other.cure();
                Self::of(PLANISH_ERROR_SYSTEM, &other, cure)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_its_own_name() {
        for (number, (result, name)) in NAMES.iter().enumerate() {
            assert_eq!((*result as usize, name.to_str().unwrap()), (number, format!("{result:?}").as_str()));
            assert_eq!(planish_result_name(number as u32), name.as_ptr());
        }
        // SAFETY: a static text.
        let none = unsafe { CStr::from_ptr(planish_result_name(u32::MAX)) };
        assert_eq!(none, c"no result of libplanish");
    }
}
