//! A slice that its owner gives back.

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, size_of};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use crate::arena::{Arena, LINE_BYTES};

/// Items in an arena that are memory for the next when this is dropped.
///
/// It is an owner, not a reference: a reference could be lent on and outlive what was given back.
pub struct Lease<'a, T> {
    arena: &'a Arena,
    start: NonNull<T>,
    count: usize,
    /// What the arena counts it as.
    bytes: usize,
    items: PhantomData<&'a mut [T]>,
}

// SAFETY: a lease is the only owner of its items, as a boxed slice is; the arena it goes back to is `Sync`.
unsafe impl<T: Send> Send for Lease<'_, T> {}
// SAFETY: as for a boxed slice: a shared lease gives shared references only.
unsafe impl<T: Sync> Sync for Lease<'_, T> {}

impl<'a, T> Lease<'a, T> {
    /// Of memory that the arena gave to nobody else: `count` items, valid ones, in `bytes` from `start` on.
    pub(crate) fn new(arena: &'a Arena, start: *mut T, count: usize, bytes: usize) -> Self {
        let start = NonNull::new(start).expect("no chunk begins at address 0");
        Self { arena, start, count, bytes, items: PhantomData }
    }

    /// Gives the items up as a pointer, for owners that no lifetime can be written for: those behind a C interface.
    /// They stay leased, and valid as long as the arena lives, until [`from_raw`](Self::from_raw) makes a lease of them
    /// again.
    pub fn into_raw(self) -> NonNull<[T]> {
        let lease = ManuallyDrop::new(self);
        NonNull::slice_from_raw_parts(lease.start, lease.count)
    }

    /// The lease that [`into_raw`](Lease::into_raw) gave up.
    ///
    /// # Safety
    /// `items` came from `into_raw` of a lease of `arena`, no lease was made of it since, and nothing else refers to
    /// the items as long as the lease lives.
    pub unsafe fn from_raw(arena: &'a Arena, items: NonNull<[T]>) -> Self {
        // The arena counted it so when it made the lease, which was no overflow then.
        let bytes = (items.len() * size_of::<T>()).next_multiple_of(LINE_BYTES);
        Self { arena, start: items.cast(), count: items.len(), bytes, items: PhantomData }
    }
}

impl<T> Deref for Lease<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` was given `count` valid items at `start` that nobody else has; chunks stay mapped as long as
        // something of them is leased, and `arena` outlives `self`. The mutable one is borrowed from `self` alone.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl<T> DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.count) }
    }
}

impl<T> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.arena.give_back([(self.start.as_ptr().addr(), self.bytes)]);
        }
    }
}

impl<T: Debug> Debug for Lease<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&**self, f)
    }
}
