//! `planish_arena_*`: an arena behind a handle.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard};

use ::planish_arena::{Arena, Builder, Fallback, Growth, LINE_BYTES, Lease, NodeChoice, Page, Preference};
use planish_host::Host;

use crate::achieved::planish_achieved;
use crate::guard::{Fault, guard};
use crate::numa::nodes;
use crate::pointer::{Home, Housed, List, Place, free, handle, housed, numbers};
use crate::result::planish_result;

/// The kind of page that an arena begins with.
#[repr(C)]
pub enum planish_page {
    /// Transparent huge pages.
    PLANISH_PAGE_THP = 0,
    /// Base pages.
    PLANISH_PAGE_BASE = 1,
    /// Pages of a pool.
    PLANISH_PAGE_HUGETLB = 2,
    /// The largest that a chunk can fill.
    PLANISH_PAGE_LARGEST = 3,
}

/// On which nodes memory lies.
#[repr(C)]
pub enum planish_nodes {
    /// As the thread's policy says.
    PLANISH_NODES_INHERIT = 0,
    /// On the node of the thread.
    PLANISH_NODES_LOCAL = 1,
    /// On these only.
    PLANISH_NODES_BIND = 2,
    /// Page by page round these.
    PLANISH_NODES_INTERLEAVE = 3,
    /// On these first.
    PLANISH_NODES_PREFER = 4,
}

/// What an arena is asked for; all zero is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct planish_arena_options {
    /// A `planish_page`.
    pub page: u32,
    /// 1: these pages or an error.
    pub exact: u32,
    /// A `planish_nodes`.
    pub node_choice: u32,
    /// Threads that fault in; 0: one for each CPU.
    pub threads: u32,
    /// Size of a page of the pool.
    pub page_bytes: usize,
    /// The nodes, where the choice has any.
    pub nodes: *const u32,
    /// How many.
    pub nodes_count: usize,
    /// Bytes of the first chunk, made at once.
    pub capacity_bytes: usize,
    /// Bytes of the first chunk, where no capacity is given.
    pub first_bytes: usize,
    /// Bytes above which chunks no longer double.
    pub cap_bytes: usize,
}

impl planish_arena_options {
    /// What options ask for; the default where they are null.
    ///
    /// # Safety
    /// Options that are not null can be read, and the nodes that they name.
    pub(crate) unsafe fn wanted(options: *const Self) -> Result<Builder, Fault> {
        if options.is_null() {
            return Ok(Arena::builder());
        }
        // SAFETY: promised by the caller.
        unsafe { handle(options, "options")?.builder() }
    }

    /// # Safety
    /// Where `nodes` is not null, `nodes_count` numbers can be read from it.
    unsafe fn builder(&self) -> Result<Builder, Fault> {
        // SAFETY: promised by the caller.
        let nodes = unsafe { numbers(self.nodes, self.nodes_count, "nodes") }?;
        let fallback = match self.exact {
            0 => Fallback::Allow,
            1 => Fallback::Refuse,
            other => return Err(Fault::invalid(format!("exact is {other}, and may be 0 or 1"))),
        };
        let default = Growth::default();
        let or = |given: usize, default: usize| if given == 0 { default } else { given };
        let growth = Growth {
            first_bytes: or(self.first_bytes, default.first_bytes),
            cap_bytes: or(self.cap_bytes, default.cap_bytes),
        };
        let builder = Arena::builder()
            .page(self.preference()?)
            .node(self.choice(nodes)?)
            .fallback(fallback)
            .growth(growth)
            .capacity(self.capacity_bytes);
        Ok(match NonZeroUsize::new(self.threads as usize) {
            Some(threads) => builder.prefault_threads(threads),
            None => builder,
        })
    }

    fn preference(&self) -> Result<Preference, Fault> {
        use planish_page::*;
        let is = |page: planish_page| self.page == page as u32;
        if self.page_bytes != 0 && !is(PLANISH_PAGE_HUGETLB) {
            return Err(Fault::invalid("page_bytes is given, and only PLANISH_PAGE_HUGETLB has a size"));
        }
        Ok(match () {
            () if is(PLANISH_PAGE_THP) => Preference::From(Page::Thp),
            () if is(PLANISH_PAGE_BASE) => Preference::From(Page::Base),
            () if is(PLANISH_PAGE_LARGEST) => Preference::Largest,
            () if is(PLANISH_PAGE_HUGETLB) && self.page_bytes.is_power_of_two() => {
                Preference::From(Page::HugeTlb(self.page_bytes))
            }
            () if is(PLANISH_PAGE_HUGETLB) => {
                return Err(Fault::invalid(format!("page_bytes is {}, no power of two", self.page_bytes)));
            }
            () => return Err(Fault::invalid(format!("page is {}, no planish_page", self.page))),
        })
    }

    fn choice(&self, nodes: Vec<u32>) -> Result<NodeChoice, Fault> {
        use planish_nodes::*;
        let is = |choice: planish_nodes| self.node_choice == choice as u32;
        let wants_nodes = is(PLANISH_NODES_BIND) || is(PLANISH_NODES_INTERLEAVE) || is(PLANISH_NODES_PREFER);
        if wants_nodes == nodes.is_empty() {
            let message = if wants_nodes {
                "no nodes are named"
            } else {
                "nodes are named that the choice has no use for"
            };
            return Err(Fault::invalid(message));
        }
        let nodes = nodes.into_iter().collect();
        Ok(match () {
            () if is(PLANISH_NODES_INHERIT) => NodeChoice::Inherit,
            () if is(PLANISH_NODES_LOCAL) => NodeChoice::Local,
            () if is(PLANISH_NODES_BIND) => NodeChoice::Bind(nodes),
            () if is(PLANISH_NODES_INTERLEAVE) => NodeChoice::Interleave(nodes),
            () if is(PLANISH_NODES_PREFER) => NodeChoice::Prefer(nodes),
            () => {
                return Err(Fault::invalid(format!("node_choice is {}, no planish_nodes", self.node_choice)));
            }
        })
    }
}

/// An arena, and what of it is leased.
pub struct planish_arena {
    /// What C leases, by address: what comes back is then known to be a lease, and how long it is.
    leases: Mutex<BTreeMap<usize, NonNull<[u8]>>>,
    /// Shared with the bumps that have blocks of it.
    pub(crate) arena: Arc<Arena>,
    home: Home,
}

impl Housed for planish_arena {
    fn home(&self) -> &Home {
        &self.home
    }
}

/// Threads of a C program share an arena through its handle, which no compiler checks.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Arena>();
};

impl planish_arena {
    fn boxed(arena: Arena) -> *mut Self {
        let (leases, arena) = (Mutex::default(), Arc::new(arena));
        Box::into_raw(Box::new(Self { leases, arena, home: Home::here() }))
    }

    fn leases(&self) -> MutexGuard<'_, BTreeMap<usize, NonNull<[u8]>>> {
        self.leases.lock().expect("nothing panics while a lease is noted")
    }
}

pub(crate) const ARENA: &str = "arena";

/// Makes an arena.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_new(
    options: *const planish_arena_options,
    arena: *mut *mut planish_arena,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise: a pointer may be written to it.
        let place = unsafe { Place::new(arena, ARENA) }?;
        place.put(ptr::null_mut());
        // SAFETY: the caller's promise: options that are not null can be read, and the nodes that they name.
        let builder = unsafe { planish_arena_options::wanted(options) }?;
        place.put(planish_arena::boxed(builder.build()?));
        Ok(())
    })
}

/// Makes an arena on each node.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_new_per_node(
    options: *const planish_arena_options,
    arenas: *mut *mut planish_arena,
    capacity: usize,
    count: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let list = unsafe { List::new(arenas, capacity, count) }?;
        // SAFETY: the caller's promise: options that are not null can be read, and the nodes that they name.
        let (choice, builder) = unsafe {
            (options.as_ref().map_or(0, |it| it.node_choice), planish_arena_options::wanted(options)?)
        };
        if choice != planish_nodes::PLANISH_NODES_INHERIT as u32 {
            return Err(Fault::invalid("node_choice is given, and each arena has a node of its own"));
        }
        if capacity == 0 {
            list.count(nodes(&Host::live())?.count());
            return Ok(());
        }
        let made = builder.per_node()?.into_arenas();
        if made.len() > capacity {
            let message = format!("capacity is {capacity}, and {} nodes have memory", made.len());
            return Err(Fault::invalid(message));
        }
        list.put(made.into_iter().map(|(_, arena)| planish_arena::boxed(arena)));
        Ok(())
    })
}

/// Unmaps an arena with all that it gave out; a child of the process only forgets it.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_free(arena: *mut planish_arena) {
    // SAFETY: the caller's promise: it came from `planish_arena_new`, was not freed, and nobody uses it any more.
    unsafe { free(arena) }
}

/// Zeroed memory for good.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_alloc(
    arena: *mut planish_arena,
    bytes: usize,
    align: usize,
    memory: *mut *mut c_void,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, arena) = unsafe { (Place::new(memory, "memory")?, housed(arena, ARENA)) };
        place.put(ptr::null_mut());
        let arena = arena?;
        let layout = layout(bytes, align, LINE_BYTES)?;
        place.put(arena.arena.alloc_bytes(layout)?.as_mut_ptr().cast());
        Ok(())
    })
}

/// Memory as it is asked for: `usual` is the alignment of whoever names none.
pub(crate) fn layout(bytes: usize, align: usize, usual: usize) -> Result<Layout, Fault> {
    some(bytes)?;
    let align = if align == 0 { usual } else { align };
    if !align.is_power_of_two() {
        return Err(Fault::invalid(format!("align is {align}, no power of two")));
    }
    Layout::from_size_align(bytes, align).map_err(|_| too_large(bytes))
}

pub(crate) fn some(bytes: usize) -> Result<(), Fault> {
    if bytes == 0 { Err(Fault::invalid("0 bytes are no memory")) } else { Ok(()) }
}

pub(crate) fn too_large(bytes: usize) -> Fault {
    let message = format!("{bytes} bytes with their alignment are more than an address space has");
    Fault::new(planish_result::PLANISH_ERROR_TOO_LARGE, message, "ask for less")
}

/// Zeroed memory that comes back.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_lease(
    arena: *mut planish_arena,
    bytes: usize,
    memory: *mut *mut c_void,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, arena) = unsafe { (Place::new(memory, "memory")?, housed(arena, ARENA)) };
        place.put(ptr::null_mut());
        let arena = arena?;
        some(bytes)?;
        let items = arena.arena.lease::<u8>(bytes)?.into_raw();
        arena.leases().insert(items.addr().get(), items);
        place.put(items.as_ptr().cast());
        Ok(())
    })
}

/// Takes back what was leased.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_give_back(
    arena: *mut planish_arena,
    memory: *mut c_void,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let arena = unsafe { housed(arena, ARENA) }?;
        if memory.is_null() {
            return Ok(());
        }
        let Some(items) = arena.leases().remove(&memory.addr()) else {
            return Err(Fault::invalid(format!("{memory:?} is not leased from this arena (any more)")));
        };
        // SAFETY: it was noted when `into_raw` gave it up, and is out of the list now, so that nobody makes a second
        // lease of it; the caller's promise: nobody uses the memory any more.
        drop(unsafe { Lease::from_raw(&arena.arena, items) });
        Ok(())
    })
}

/// Makes room.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_reserve(arena: *mut planish_arena, bytes: usize) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let arena = unsafe { housed(arena, ARENA) }?;
        if bytes > isize::MAX as usize {
            return Err(too_large(bytes));
        }
        Ok(arena.arena.reserve(bytes)?)
    })
}

/// Hands memory that nobody leases to the kernel.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_trim(
    arena: *mut planish_arena,
    keep_bytes: usize,
    handed_bytes: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let arena = unsafe { housed(arena, ARENA) }?;
        // SAFETY: the caller's promise: one that is not null may be written to.
        let place = unsafe { Place::if_wanted(handed_bytes, "handed_bytes") }?;
        let handed = arena.arena.trim(keep_bytes);
        if let Some(place) = place {
            place.put(handed);
        }
        Ok(())
    })
}

/// Puts memory onto transparent huge pages now.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_collapse(
    arena: *mut planish_arena,
    achieved: *mut *mut planish_achieved,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, arena) = unsafe { (Place::new(achieved, "achieved")?, housed(arena, ARENA)) };
        place.put(ptr::null_mut());
        place.put(planish_achieved::boxed(arena?.arena.collapse()?));
        Ok(())
    })
}

/// Bytes that are handed out.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_used_bytes(
    arena: *const planish_arena,
    bytes: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, arena) = unsafe { (Place::new(bytes, "bytes")?, housed(arena, ARENA)?) };
        place.put(arena.arena.used_bytes());
        Ok(())
    })
}

/// What the arena has.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_arena_achieved(
    arena: *const planish_arena,
    achieved: *mut *mut planish_achieved,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (place, arena) = unsafe { (Place::new(achieved, "achieved")?, housed(arena, ARENA)) };
        place.put(ptr::null_mut());
        place.put(planish_achieved::boxed(arena?.arena.achieved()?));
        Ok(())
    })
}
