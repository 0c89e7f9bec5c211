//! `planish_achieved_*`: what an arena has, read back from the kernel once.

use std::ffi::{CString, c_char};
use std::ptr;

use planish_arena::{Achieved, Page};

use crate::guard::{Fault, guard};
use crate::pointer::{List, Place, handle};
use crate::result::planish_result;

/// What an arena had when it was asked.
pub struct planish_achieved {
    achieved: Achieved,
    why_not: Vec<CString>,
}

impl planish_achieved {
    pub(crate) fn boxed(achieved: Achieved) -> *mut Self {
        let text = |why: &String| CString::new(why.replace('\0', " ")).expect("it has no zero byte any more");
        let why_not = achieved.why_not.iter().map(text).collect();
        Box::into_raw(Box::new(Self { achieved, why_not }))
    }
}

/// Bytes by the kind of page.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct planish_backing {
    /// All that is mapped.
    pub mapped_bytes: usize,
    /// On base pages.
    pub base_bytes: usize,
    /// On transparent huge pages.
    pub thp_bytes: usize,
    /// On pages of pools.
    pub hugetlb_bytes: usize,
    /// On no page now.
    pub absent_bytes: usize,
    /// 1: all that is there lies on the pages that were asked for.
    pub as_requested: u32,
}

impl planish_backing {
    pub(crate) fn of(achieved: &Achieved) -> Self {
        let on = |is: fn(&Page) -> bool| {
            let backing = achieved.backing.iter().filter(|backing| is(&backing.page));
            backing.map(|backing| backing.bytes).sum()
        };
        Self {
            mapped_bytes: achieved.mapped_bytes,
            base_bytes: achieved.bytes_on(Page::Base),
            thp_bytes: achieved.bytes_on(Page::Thp),
            hugetlb_bytes: on(|page| matches!(page, Page::HugeTlb(_))),
            absent_bytes: achieved.absent_bytes,
            as_requested: u32::from(achieved.is_as_requested()),
        }
    }
}

/// Bytes on a node.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct planish_node_bytes {
    /// The node.
    pub node: u32,
    /// Bytes on it.
    pub bytes: usize,
}

const ACHIEVED: &str = "achieved";

/// Frees it.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_achieved_free(achieved: *mut planish_achieved) {
    if achieved.is_null() {
        return;
    }
    guard(|| {
        // SAFETY: the caller's promise: it came from this library, was not freed, and nobody uses it any more.
        drop(unsafe { Box::from_raw(achieved) });
        Ok(())
    });
}

/// Bytes by the kind of page.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_achieved_backing(
    achieved: *const planish_achieved,
    backing: *mut planish_backing,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, achieved) = unsafe { (Place::new(backing, "backing")?, handle(achieved, ACHIEVED)?) };
        place.put(planish_backing::of(&achieved.achieved));
        Ok(())
    })
}

/// Bytes on each node.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_achieved_nodes(
    achieved: *const planish_achieved,
    nodes: *mut planish_node_bytes,
    capacity: usize,
    count: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (list, achieved) = unsafe { (List::new(nodes, capacity, count)?, handle(achieved, ACHIEVED)?) };
        let Some(node_bytes) = &achieved.achieved.node_bytes else {
            let message = achieved.achieved.why_not.iter().find(|why| why.starts_with("nodes unknown"));
            let message = message.map_or("nodes unknown", String::as_str);
            let cure = "in a container, grant CAP_SYS_NICE or change the seccomp filter";
            return Err(Fault::new(planish_result::PLANISH_ERROR_FORBIDDEN, message, cure));
        };
        list.put(node_bytes.iter().map(|(node, bytes)| planish_node_bytes { node: *node, bytes: *bytes }));
        Ok(())
    })
}

/// A reason why something is not as asked for.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_achieved_why_not(
    achieved: *const planish_achieved,
    index: usize,
) -> *const c_char {
    let mut text = ptr::null();
    guard(|| {
        // SAFETY: the caller's promise.
        let achieved = unsafe { handle(achieved, ACHIEVED) }?;
        text = achieved.why_not.get(index).map_or(ptr::null(), |why| why.as_ptr());
        Ok(())
    });
    text
}
