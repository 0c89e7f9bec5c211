//! `planish_pin_*`: on which CPUs the calling thread runs.

use planish_host::Host;
use planish_sys::{CpuSet, affinity};
use planish_topo::isolated;

use crate::guard::{Fault, guard};
use crate::numa::cpus_of;
use crate::pointer::{List, numbers};
use crate::result::planish_result;

/// The CPUs that the calling thread can be given.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_pin_allowed(
    cpus: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let list = unsafe { List::new(cpus, capacity, count) }?;
        list.put(affinity::allowed()?.iter());
        Ok(())
    })
}

/// The CPUs that the calling thread has.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_pin_current(
    cpus: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let list = unsafe { List::new(cpus, capacity, count) }?;
        list.put(affinity::get(None)?.iter());
        Ok(())
    })
}

/// Keeps the calling thread on all of these CPUs and no others.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_pin_cpus(cpus: *const u32, count: usize) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let cpus: CpuSet = unsafe { numbers(cpus, count, "cpus") }?.into_iter().collect();
        if cpus.is_empty() {
            return Err(Fault::invalid("no CPU is named"));
        }
        Ok(affinity::pin(&cpus)?)
    })
}

/// Those of `cpus` that a thread is to have that names none of them. A thread that may run on isolated CPUs and on
/// others stays for good where it is at that moment, for no task is balanced away from an isolated one. So they are
/// left out, but where there are no others.
fn unnamed(cpus: CpuSet, isolated: Option<CpuSet>) -> CpuSet {
    let others = cpus.difference(&isolated.unwrap_or_default());
    if others.is_empty() { cpus } else { others }
}

/// Keeps the calling thread on the CPUs of a node that it can have.
#[unsafe(no_mangle)]
pub extern "C" fn planish_pin_node(node: u32) -> planish_result {
    guard(|| {
        let of_node = cpus_of(node)?;
        let cpus = of_node.intersection(&affinity::allowed()?);
        if cpus.is_empty() {
            let message = match of_node.is_empty() {
                true => format!("node {node} has no CPU"),
                false => format!("this process may use no CPU of node {node}, which has {of_node}"),
            };
            let cure = "choose another node, or widen the cpuset of the process";
            return Err(Fault::new(planish_result::PLANISH_ERROR_OUTSIDE, message, cure));
        }
        Ok(affinity::pin(&unnamed(cpus, isolated(&Host::live())))?)
    })
}

/// Lets the calling thread run on all CPUs that it can have.
#[unsafe(no_mangle)]
pub extern "C" fn planish_pin_clear() -> planish_result {
    guard(|| Ok(affinity::pin(&unnamed(affinity::allowed()?, isolated(&Host::live())))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_cpus_are_given_to_who_names_them_or_has_no_others() {
        let unnamed = |cpus: &str, isolated: Option<&str>| {
            let set = |list: &str| CpuSet::parse_list(list).unwrap();
            unnamed(set(cpus), isolated.map(set)).to_string()
        };
        assert_eq!(unnamed("0-7", Some("4-7")), "0-3");
        assert_eq!(unnamed("4-5", Some("4-7")), "4-5");
        assert_eq!(unnamed("0-7", Some("")), "0-7");
        assert_eq!(unnamed("0-7", None), "0-7");
    }
}
