//! `planish_isolation_check`: whether the calling thread has its CPU to itself, and its memory where it should be.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::time::Duration;

use planish_latency::{Isolation, Problem, check_isolation};

use crate::achieved::planish_backing;
use crate::arena::planish_arena;
use crate::guard::{Fault, guard};
use crate::pointer::{Place, housed};
use crate::result::planish_result;

/// What may be amiss, each a bit.
#[repr(C)]
pub enum planish_problem {
    /// The thread may be moved to other CPUs.
    PLANISH_PROBLEM_NOT_PINNED = 1,
    /// The scheduler puts other tasks on the CPU.
    PLANISH_PROBLEM_NOT_ISOLATED = 2,
    /// Another hardware thread of the core takes ordinary tasks.
    PLANISH_PROBLEM_SHARED_CORE = 4,
    /// The timer interrupts the thread.
    PLANISH_PROBLEM_TICKS = 8,
    /// Interrupts of devices are delivered to the CPU.
    PLANISH_PROBLEM_IRQS = 16,
    /// Memory lies on other pages than asked for.
    PLANISH_PROBLEM_BACKING = 32,
    /// Memory lies on other nodes.
    PLANISH_PROBLEM_REMOTE = 64,
}

/// What was found.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct planish_isolation {
    /// Bits of `planish_problem`: these there are.
    pub problems: u32,
    /// Bits of `planish_problem`: these cannot be judged here.
    pub unknown: u32,
    /// Where the thread runs.
    pub cpu: u32,
    /// The node of that CPU.
    pub node: u32,
    /// CPUs that the thread may run on.
    pub cpus_count: u32,
    /// Interrupts of devices that are delivered to the CPU; 0 where they are unknown, too.
    pub irqs_count: u32,
    /// Timer interrupts in a second; below 0 where they are unknown.
    pub ticks_per_s: f64,
    /// Other interrupts in a second; below 0 where they are unknown.
    pub irqs_per_s: f64,
    /// The pages of the arena; all 0 without one.
    pub backing: planish_backing,
}

/// The watch is spun by the caller's thread, so that a slip of a unit must not hang it.
const WATCH_MS_MAX: u32 = 60_000;

fn bit(problem: Problem) -> u32 {
    use planish_problem::*;
    (match problem {
        Problem::NotPinned => PLANISH_PROBLEM_NOT_PINNED,
        Problem::NotIsolated => PLANISH_PROBLEM_NOT_ISOLATED,
        Problem::SharedCore => PLANISH_PROBLEM_SHARED_CORE,
        Problem::Ticks => PLANISH_PROBLEM_TICKS,
        Problem::Irqs => PLANISH_PROBLEM_IRQS,
        Problem::Backing => PLANISH_PROBLEM_BACKING,
        Problem::Remote => PLANISH_PROBLEM_REMOTE,
    }) as u32
}

fn text(problem: Problem) -> &'static CStr {
    match problem {
        Problem::NotPinned => c"the thread may be moved to other CPUs: planish_pin_cpus with one CPU",
        Problem::NotIsolated => c"the scheduler puts other tasks on the CPU: isolate it (planish, docs/placement.md)",
        Problem::SharedCore => {
            c"another hardware thread of the core takes ordinary tasks: isolate all threads of the core together"
        }
        Problem::Ticks => c"the timer interrupts the thread while it is busy: add the CPU to nohz_full=",
        Problem::Irqs => c"interrupts of devices are delivered to the CPU: move them (planish, docs/placement.md)",
        Problem::Backing => {
            c"memory does not lie on the pages that were asked for: planish_achieved_why_not, planish_arena_collapse"
        }
        Problem::Remote => c"memory lies on other nodes than that of the CPU: bind the arena to the node of the thread",
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl planish_isolation {
    fn of(found: &Isolation) -> Self {
        let bits = |wanted: Option<bool>| {
            let problems = Problem::ALL.into_iter().filter(|problem| found.has(*problem) == wanted);
            problems.map(bit).fold(0, |bits, bit| bits | bit)
        };
        Self {
            problems: bits(Some(true)),
            unknown: bits(None),
            cpu: found.cpu,
            node: found.node,
            cpus_count: count(found.affinity.count()),
            irqs_count: found.irqs.as_ref().map_or(0, |irqs| count(irqs.len())),
            ticks_per_s: found.ticks_per_s.unwrap_or(-1.0),
            irqs_per_s: found.irqs_per_s.unwrap_or(-1.0),
            backing: found.memory.as_ref().map(planish_backing::of).unwrap_or_default(),
        }
    }
}

/// Looks at the calling thread, its CPU and an arena.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_isolation_check(
    arena: *const planish_arena,
    watch_ms: u32,
    isolation: *mut planish_isolation,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(isolation, "isolation") }?;
        let arena = match arena.is_null() {
            true => None,
            // SAFETY: the caller's promise: an arena that is not null is one.
            false => Some(&unsafe { housed(arena, "arena") }?.arena),
        };
        if watch_ms > WATCH_MS_MAX {
            return Err(Fault::invalid(format!("watch_ms is {watch_ms}, more than {WATCH_MS_MAX}")));
        }
        place.put(planish_isolation::of(&check_isolation(
            Duration::from_millis(watch_ms.into()),
            arena.map(|it| &**it),
        )?));
        Ok(())
    })
}

/// A problem in words, with what to do about it; null for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn planish_problem_text(problem: u32) -> *const c_char {
    let known = Problem::ALL.into_iter().find(|known| bit(*known) == problem);
    known.map_or(ptr::null(), |known| text(known).as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_has_a_bit_and_the_words_of_the_rust_side() {
        let mut all = 0;
        for problem in Problem::ALL {
            assert_eq!(bit(problem).count_ones(), 1);
            assert_eq!(all & bit(problem), 0);
            all |= bit(problem);
            // SAFETY: a static text.
            let text = unsafe { CStr::from_ptr(planish_problem_text(bit(problem))) }.to_str().unwrap();
            assert!(text.starts_with(&format!("{problem}: ")), "{text}");
        }
        for none in [0, 3, all + 1] {
            assert!(planish_problem_text(none).is_null());
        }
    }
}
