//! Pointers of callers: looked at as far as one can, before anything is done.

use std::mem;
use std::process;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use planish_sys::{Advice, MapOptions, Mapping, PageRequest, map_anonymous};

use crate::guard::{Fault, guard};
use crate::result::planish_result;

/// Refuses null and what is not aligned for its type.
fn checked<T>(pointer: *mut T, name: &str) -> Result<NonNull<T>, Fault> {
    let Some(pointer) = NonNull::new(pointer) else {
        let message = format!("{name} is null");
        return Err(Fault::new(planish_result::PLANISH_ERROR_NULL, message, "pass where it is"));
    };
    if pointer.is_aligned() { Ok(pointer) } else { Err(Fault::invalid(format!("{name} is not aligned"))) }
}

/// What a handle points to.
///
/// # Safety
/// Where the pointer is not null, it came from the function that makes such handles, and the handle is not freed before
/// `'a` ends.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Fault> {
    let pointer = checked(pointer.cast_mut(), name)?;
    // SAFETY: promised by the caller; handles are only ever read through shared references.
    Ok(unsafe { pointer.as_ref() })
}

/// The process that a handle was made in.
///
/// A child of fork(2) inherits the handle, and not all of the memory behind it: pages of a pool are left out, and the
/// next that the child maps may take their addresses. To unmap, zero or hand those out would destroy what is not ours.
pub(crate) struct Home(u32);

impl Home {
    pub(crate) fn here() -> Self {
        Self(this_process())
    }

    fn is_here(&self) -> bool {
        self.0 == this_process()
    }
}

/// The number of this process, without a call to the kernel: every call of a handle asks for it, also those that are to
/// cost nanoseconds.
///
/// It stands in a page that a child of fork(2) finds empty (MADV_WIPEONFORK). No lock is taken to make the page, for a
/// child that is forked meanwhile would wait for it for ever.
fn this_process() -> u32 {
    static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
    let mut mark = MARK.load(Ordering::Acquire);
    if mark.is_null() {
        let Some(page) = empty_in_children() else { return process::id() };
        let made = page.as_ptr().cast();
        match MARK.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // It stays as long as the process.
                mem::forget(page);
                mark = made;
            }
            Err(others) => mark = others,
        }
    }
    // SAFETY: the page of a mapping that stays, aligned for all, and zero or what is stored here.
    let mark = unsafe { &*mark };
    // Relaxed: whoever reads 0 stores the same number.
    match mark.load(Ordering::Relaxed) {
        0 => {
            let id = process::id();
            mark.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// Before Linux 4.14 there is none.
fn empty_in_children() -> Option<Mapping> {
    let page = map_anonymous(1, MapOptions::new(PageRequest::Base)).ok()?;
    page.advise(Advice::WipeOnFork).ok()?;
    Some(page)
}

/// A handle whose memory is that of one process.
pub(crate) trait Housed {
    fn home(&self) -> &Home;
}

/// What a handle of this process points to.
///
/// # Safety
/// As [`handle`].
pub(crate) unsafe fn housed<'a, T: Housed>(pointer: *const T, name: &str) -> Result<&'a T, Fault> {
    // SAFETY: promised by the caller.
    let found = unsafe { handle(pointer, name) }?;
    if found.home().is_here() {
        return Ok(found);
    }
    let message =
        format!("{name} was made by process {}, and this is its child {}", found.home().0, process::id());
    let cure = "make one in the child, or use it in the process that made it";
    Err(Fault::new(planish_result::PLANISH_ERROR_INVALID, message, cure))
}

/// Drops what a handle points to; in another process than its own, and for null, it does nothing.
///
/// # Safety
/// A pointer that is not null came from `Box::into_raw`, was not freed, and nobody uses it any more.
pub(crate) unsafe fn free<T: Housed>(pointer: *mut T) {
    if pointer.is_null() {
        return;
    }
    guard(|| {
        // SAFETY: promised by the caller.
        let owned = unsafe { Box::from_raw(pointer) };
        if !owned.home().is_here() {
            mem::forget(owned);
        }
        Ok(())
    });
}

/// Where a call leaves a value of the caller's.
pub(crate) struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// # Safety
    /// Where the pointer is not null, a `T` may be written to it until this is dropped.
    pub(crate) unsafe fn new(pointer: *mut T, name: &str) -> Result<Self, Fault> {
        checked(pointer, name).map(Self)
    }

    /// A place that may be null, where the caller does not ask for the value.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub(crate) unsafe fn if_wanted(pointer: *mut T, name: &str) -> Result<Option<Self>, Fault> {
        // SAFETY: promised by the caller.
        (!pointer.is_null()).then(|| unsafe { Self::new(pointer, name) }).transpose()
    }

    /// Writes; a raw pointer, because two places of one call may be the same.
    pub(crate) fn put(&self, value: T) {
        // SAFETY: promised to `new`, which has looked at null and alignment.
        unsafe { self.0.write(value) }
    }
}

/// Where a call leaves as many values as there is room for, and how many there are.
pub(crate) struct List<T> {
    items: Option<Place<T>>,
    capacity: usize,
    count: Place<usize>,
}

impl<T> List<T> {
    /// # Safety
    /// Where they are not null, `capacity` items may be written to `items`, and a number to `count`, until this is
    /// dropped.
    pub(crate) unsafe fn new(items: *mut T, capacity: usize, count: *mut usize) -> Result<Self, Fault> {
        // SAFETY: promised by the caller.
        let count = unsafe { Place::new(count, "count") }?;
        let items = match capacity {
            0 => None,
            // SAFETY: promised by the caller.
            _ => Some(unsafe { Place::new(items, "the list") }?),
        };
        Ok(Self { items, capacity, count })
    }

    /// Writes how many there are.
    pub(crate) fn count(&self, count: usize) {
        self.count.put(count);
    }

    /// Writes those that there is room for, and the number of all.
    pub(crate) fn put(&self, values: impl IntoIterator<Item = T>) {
        let mut count = 0;
        for value in values {
            if let Some(Place(first)) = &self.items
                && count < self.capacity
            {
                // SAFETY: `new` was promised room for `capacity` items.
                unsafe { first.add(count).write(value) };
            }
            count += 1;
        }
        self.count.put(count);
    }
}

/// The numbers of a list that a caller passes; none where it is null and empty.
///
/// # Safety
/// Where the pointer is not null, `count` numbers can be read from it.
pub(crate) unsafe fn numbers(items: *const u32, count: usize, name: &str) -> Result<Vec<u32>, Fault> {
    /// More than any set has: ids end below it.
    const COUNT_MAX: usize = planish_sys::set::ID_MAX as usize + 1;
    if count == 0 {
        return Ok(Vec::new());
    }
    let items = checked(items.cast_mut(), name)?;
    if count > COUNT_MAX {
        return Err(Fault::invalid(format!("{name}: {count} numbers, more than there can be")));
    }
    // SAFETY: promised by the caller; looked at for null, alignment and a length that fits an address space.
    let numbers = unsafe { std::slice::from_raw_parts(items.as_ptr(), count) };
    match numbers.iter().find(|number| **number > planish_sys::set::ID_MAX) {
        Some(number) => Err(Fault::invalid(format!("{name}: {number} is beyond any machine"))),
        None => Ok(numbers.to_vec()),
    }
}
