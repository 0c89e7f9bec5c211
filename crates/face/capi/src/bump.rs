//! `planish_bump_*`: memory that one thread fills, behind a handle.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use ::planish_arena::{Arena, Bump, Growth};

use crate::arena::{ARENA, layout, planish_arena, too_large};
use crate::guard::guard;
use crate::pointer::{Home, Housed, Place, free, housed};
use crate::result::planish_result;

/// Blocks of an arena that one thread fills.
pub struct planish_bump {
    /// Borrows `arena`, and so is dropped before it: fields are, in this order.
    bump: UnsafeCell<Bump<'static>>,
    /// Kept, so that the memory of an arena that is freed first stays for what lies in it.
    _arena: Arc<Arena>,
    home: Home,
}

impl Housed for planish_bump {
    fn home(&self) -> &Home {
        &self.home
    }
}

const BUMP: &str = "bump";
/// What malloc aligns to, and `max_align_t` wants.
const ALIGN: usize = 16;

/// Makes one.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_bump_new(
    arena: *mut planish_arena,
    first_bytes: usize,
    cap_bytes: usize,
    bump: *mut *mut planish_bump,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, arena) = unsafe { (Place::new(bump, BUMP)?, housed(arena, ARENA)) };
        place.put(ptr::null_mut());
        let or = |given: usize, default: usize| if given == 0 { default } else { given };
        let first_bytes = or(first_bytes, Growth::BLOCKS.first_bytes);
        let blocks =
            Growth { first_bytes, cap_bytes: or(cap_bytes, Growth::BLOCKS.cap_bytes).max(first_bytes) };
        if blocks.cap_bytes > isize::MAX as usize / 2 {
            return Err(too_large(blocks.cap_bytes));
        }
        let arena = Arc::clone(&arena?.arena);
        // SAFETY: the arena does not move in its `Arc`, a share of which lives a little longer than the bump.
        let lent: &'static Arena = unsafe { &*Arc::as_ptr(&arena) };
        let made =
            planish_bump { bump: UnsafeCell::new(lent.bump(blocks)), _arena: arena, home: Home::here() };
        place.put(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Gives all of it back; a child of the process only forgets it.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_bump_free(bump: *mut planish_bump) {
    // SAFETY: the caller's promise: it came from `planish_bump_new`, was not freed, and nobody uses it any more.
    unsafe { free(bump) }
}

/// Zeroed memory until it is cleared.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_bump_alloc(
    bump: *mut planish_bump,
    bytes: usize,
    align: usize,
    memory: *mut *mut c_void,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, bump) = unsafe { (Place::new(memory, "memory")?, housed(bump, BUMP)) };
        place.put(ptr::null_mut());
        let bump = bump?;
        let layout = layout(bytes, align, ALIGN)?;
        // SAFETY: the caller's promise: no other thread is at work on it. What was given out before is none of ours.
        let bump = unsafe { &*bump.bump.get() };
        place.put(bump.alloc_bytes(layout)?.as_mut_ptr().cast());
        Ok(())
    })
}

/// Takes everything back.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_bump_clear(bump: *mut planish_bump) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let bump = unsafe { housed(bump, BUMP) }?;
        // SAFETY: the caller's promise: no other thread is at work on it, and nobody uses what it gave out any more.
        unsafe { &mut *bump.bump.get() }.clear();
        Ok(())
    })
}

/// Bytes that it has given out.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_bump_used_bytes(
    bump: *const planish_bump,
    bytes: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, bump) = unsafe { (Place::new(bytes, "bytes")?, housed(bump, BUMP)?) };
        // SAFETY: the caller's promise: no other thread is at work on it.
        place.put(unsafe { &*bump.bump.get() }.used_bytes());
        Ok(())
    })
}
