//! `planish_growing_*`: memory that grows where it is, behind a handle.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard};

use planish_arena::Growing;

use crate::achieved::planish_achieved;
use crate::arena::planish_arena_options;
use crate::guard::{Fault, guard};
use crate::pointer::{Home, Housed, Place, free, housed};
use crate::result::planish_result;

/// Bytes in one run of addresses.
pub struct planish_growing {
    memory: Mutex<Growing<u8>>,
    home: Home,
}

impl Housed for planish_growing {
    fn home(&self) -> &Home {
        &self.home
    }
}

impl planish_growing {
    fn memory(&self) -> MutexGuard<'_, Growing<u8>> {
        self.memory.lock().expect("nothing panics while memory is half grown")
    }
}

const GROWING: &str = "growing";

/// Takes addresses, and memory for the first piece.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_growing_new(
    options: *const planish_arena_options,
    most_bytes: usize,
    growing: *mut *mut planish_growing,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise: a pointer may be written to it.
        let place = unsafe { Place::new(growing, GROWING) }?;
        place.put(ptr::null_mut());
        // SAFETY: the caller's promise: options that are not null can be read, and the nodes that they name.
        let builder = unsafe { planish_arena_options::wanted(options) }?;
        if most_bytes == 0 {
            return Err(Fault::invalid("most_bytes is 0, which leaves nothing to grow"));
        }
        let memory = Mutex::new(builder.growing(most_bytes)?);
        place.put(Box::into_raw(Box::new(planish_growing { memory, home: Home::here() })));
        Ok(())
    })
}

/// Unmaps it; a child of the process only forgets it.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_growing_free(growing: *mut planish_growing) {
    // SAFETY: the caller's promise: it came from `planish_growing_new`, was not freed, and nobody uses it any more.
    unsafe { free(growing) }
}

/// Has as many bytes from now on.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_growing_resize(
    growing: *mut planish_growing,
    bytes: usize,
    memory: *mut *mut c_void,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, growing) = unsafe { (Place::new(memory, "memory")?, housed(growing, GROWING)?) };
        // What is there may hold all that the caller has, and where it is does not change: it must not be lost.
        let mut growing = growing.memory();
        growing.resize(bytes)?;
        place.put(growing.as_mut_ptr().cast());
        Ok(())
    })
}

/// Hands memory above its end to the kernel.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_growing_trim(
    growing: *mut planish_growing,
    handed_bytes: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let growing = unsafe { housed(growing, GROWING) }?;
        // SAFETY: the caller's promise: one that is not null may be written to.
        let place = unsafe { Place::if_wanted(handed_bytes, "handed_bytes") }?;
        let handed = growing.memory().trim();
        if let Some(place) = place {
            place.put(handed);
        }
        Ok(())
    })
}

/// Puts what fell apart onto huge pages again, and tells what it has.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_growing_collapse(
    growing: *mut planish_growing,
    achieved: *mut *mut planish_achieved,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, growing) = unsafe { (Place::new(achieved, "achieved")?, housed(growing, GROWING)) };
        place.put(ptr::null_mut());
        place.put(planish_achieved::boxed(growing?.memory().collapse()?));
        Ok(())
    })
}

/// What it has.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_growing_achieved(
    growing: *const planish_growing,
    achieved: *mut *mut planish_achieved,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, growing) = unsafe { (Place::new(achieved, "achieved")?, housed(growing, GROWING)) };
        place.put(ptr::null_mut());
        place.put(planish_achieved::boxed(growing?.memory().achieved()?));
        Ok(())
    })
}
