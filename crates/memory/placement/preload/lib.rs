//! The one preload of the product: places shared memory of an unmodified program before its first use.
//!
//! It stands in front of `mmap`, `shmat` and their companions (of `mlockall` to know of it) in programs of glibc and
//! musl alike, so it links neither: it speaks to the kernel itself, and takes two names of whichever libc is there,
//! `environ` and `__errno_location`. Private mappings, and with them every heap, go straight on to the kernel.
//!
//! ```text
//! mmap(MAP_SHARED, large) -> mapped without pages -> policy -> prefault by threads -> a datagram to the launcher
//! ```
//!
//! Invariants: what the kernel refuses is told, and the program gets its memory as if nobody had been here;
//! nothing is allocated but the stacks of the threads, while they run; no handler of a signal begins within a call
//! that is ours but between two rounds of filling (prefault.rs), when nothing is held that a handler which leaves would
//! leave behind; no call ends the program. One that has put itself under a seccomp filter may be ended by any call
//! that it does not make itself: its segments are left alone, after one prctl(2) that asks.
//!
//! What a libc does beyond the call is not needed here: musl's wait before MAP_FIXED guards private memory of its
//! own, and cancellation does not begin in any of these calls.
#![no_std]
#![no_builtins]

mod place;
mod prefault;
mod raw;
mod settings;
mod wire;

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use place::{Content, Segment, place};
use raw::{FROM_OTHERS, block, call, call_inline, call6, errno, let_through_but, nr};
use settings::Settings;

const PROT_WRITE: i32 = 2;
const MAP_SHARED: i32 = 0x1;
const MAP_FIXED: i32 = 0x10;
/// An address of 31 bits: x86-64 alone knows it.
const MAP_32BIT: i32 = if cfg!(target_arch = "x86_64") { 0x40 } else { 0 };
const MAP_ANONYMOUS: i32 = 0x20;
const MAP_LOCKED: i32 = 0x2000;
const MAP_NORESERVE: i32 = 0x4000;
const MAP_POPULATE: i32 = 0x8000;
const MAP_NONBLOCK: i32 = 0x1_0000;
const MAP_HUGETLB: i32 = 0x4_0000;
const MAP_FIXED_NOREPLACE: i32 = 0x10_0000;
/// Where log2 of the page size stands in the flags of mmap and shmget.
const SHIFT_AT: u32 = 26;
const IPC_CREAT: i32 = 0o1000;
const SHM_HUGETLB: i32 = 0o4000;
const SHM_RDONLY: i32 = 0o10000;
const SHM_REMAP: i32 = 0o40000;

unsafe extern "C" {
    static environ: *const *const u8;
    fn __errno_location() -> *mut i32;
}

/// Settings that are written once, before any thread that could read them.
struct Once(UnsafeCell<Settings>);
// SAFETY: written in `settings` by the first caller, which is the constructor, and then only read.
unsafe impl Sync for Once {}

static SETTINGS: Once = Once(UnsafeCell::new(Settings::NONE));
static IS_READ: AtomicBool = AtomicBool::new(false);
/// Shared mappings up to this length are not ours; 0 until the settings are read.
static BYTES_BELOW: AtomicUsize = AtomicUsize::new(0);

/// Why a System V segment got no pages from the pool, here or in who forked us: an error number, with the bits of
/// ENOMEM turned, which is what there is to say of segments that others made. So it begins as zeroes, which take no
/// room in the file.
static POOL_ERRNO: AtomicI32 = AtomicI32::new(0);
const ENOMEM: i32 = 12;
/// Of a segment whose true length there is no room to remember.
const ENOSPC: i32 = 28;

/// Seccomp filters that the program was started with; 0 also where nobody tells.
static FILTERS: AtomicUsize = AtomicUsize::new(0);

/// Whether the program lets calls be made that are not its own, as far as one call tells: where it was started under no
/// filter, whether it is under one now. Asked for large segments only, and before any other call of ours.
fn is_open() -> bool {
    FILTERS.load(Ordering::Relaxed) > 0 || !place::is_filtered()
}

/// The same where it was started under filters: whether it has put itself under more.
fn is_still_open() -> bool {
    let known = FILTERS.load(Ordering::Relaxed);
    known == 0 || (1..=known).contains(&place::filters())
}

/// Keeps signals away from here on, where calls of ours may be made at all; `signals` gets those that were blocked.
#[inline(never)]
fn enter(signals: &Cell<u64>) -> bool {
    is_open() && block(FROM_OTHERS, signals)
}

/// The settings; read by the first caller that finds an environment.
fn settings() -> &'static Settings {
    if !IS_READ.load(Ordering::Acquire) {
        // SAFETY: `environ` is a word of the libc. The first call comes from the constructor, where the program
        // has one thread; if the libc was not ready then, from the first large shared mapping.
        unsafe {
            let variables = environ;
            if !variables.is_null() {
                if let Some(text) = settings::find(variables) {
                    (*SETTINGS.0.get()).read(text);
                }
                if place::is_filtered() {
                    FILTERS.store(place::filters(), Ordering::Relaxed);
                }
                BYTES_BELOW.store((*SETTINGS.0.get()).bytes_min.wrapping_sub(1), Ordering::Relaxed);
                IS_READ.store(true, Ordering::Release);
            }
        }
    }
    // SAFETY: no longer written.
    unsafe { &*SETTINGS.0.get() }
}

extern "C" fn begin() {
    let _ = settings();
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// What a function of a libc returns for what the kernel returned.
#[inline(always)]
fn told(returned: isize) -> *mut c_void {
    if (-4095..0).contains(&returned) { failed(returned) } else { returned as *mut c_void }
}

#[cold]
#[inline(never)]
fn failed(returned: isize) -> *mut c_void {
    // SAFETY: the errno of this thread, by the libc that the caller will ask.
    unsafe { *__errno_location() = -(returned as i32) };
    usize::MAX as *mut c_void
}

/// mmap(2).
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    offset: usize,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { map(address, bytes, protection, flags, file, offset) }
}

/// The name of mmap(2) for files of 64-bit length, which they all have here.
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    offset: usize,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { map(address, bytes, protection, flags, file, offset) }
}

/// Both: the same function for each, whatever else is called `mmap` in the program.
///
/// # Safety
/// That of mmap(2).
#[inline(never)]
unsafe extern "C" fn map(
    address: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    offset: usize,
) -> *mut c_void {
    let wanted = [address, bytes, protection as usize, flags as usize, file as usize, offset];
    let is_ours = flags & MAP_SHARED != 0 && bytes > BYTES_BELOW.load(Ordering::Relaxed);
    if is_ours && protection & PROT_WRITE != 0 {
        // SAFETY: the caller's.
        return told(unsafe { large(wanted, flags) });
    }
    // SAFETY: the caller's.
    told(unsafe { call_inline(nr::MMAP, wanted) })
}

/// A large writable shared mapping: no handler begins meanwhile.
///
/// # Safety
/// That of mmap(2).
#[inline(never)]
unsafe fn large(wanted: [usize; 6], flags: i32) -> isize {
    let (settings, signals) = (settings(), Cell::new(0));
    if settings.takes(wanted[1]) && enter(&signals) {
        // SAFETY: the caller's.
        let mapped = unsafe { shared(wanted, flags, &signals, settings) };
        let_through_but(signals.get());
        if let Some(mapped) = mapped {
            return mapped;
        }
    }
    // SAFETY: the caller's.
    unsafe { call_inline(nr::MMAP, wanted) }
}

/// The same; `None` of one that is none of ours. `signals` are those that the program has blocked.
///
/// # Safety
/// That of mmap(2).
unsafe fn shared(wanted: [usize; 6], flags: i32, signals: &Cell<u64>, settings: &Settings) -> Option<isize> {
    let [address, bytes, protection, _, file, offset] = wanted;
    let is_anonymous = flags & MAP_ANONYMOUS != 0;
    let anonymous = Some(Content::anonymous(bytes, flags & MAP_HUGETLB != 0));
    let content = if is_anonymous { anonymous } else { place::of_memory(file) };
    let is_locked = flags & MAP_LOCKED != 0;
    // Where more is locked than may be, what lay at a fixed address stays: the kernel alone can see to that.
    let content = content.filter(|_| !(is_locked && flags & MAP_FIXED != 0) && is_still_open());
    let Content { length, had_bytes, room_bytes, is_pool } = content?;
    // Pages come after the policy, also where the program wants them at once.
    let is_wanted_now = is_locked || flags & (MAP_POPULATE | MAP_NONBLOCK) == MAP_POPULATE;
    let bare = flags & !(MAP_POPULATE | MAP_LOCKED);
    let is_free = address == 0 && flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT) == 0;
    let mut segment = Segment {
        address: 0,
        bytes,
        filled_bytes: if is_anonymous { bytes } else { length.saturating_sub(offset).min(bytes) },
        kind: if is_anonymous { wire::KIND_ANONYMOUS } else { wire::KIND_FILE },
        is_filled: had_bytes > offset,
        is_whole: had_bytes >= length,
        room_bytes,
        is_pool,
        is_sparse: flags & MAP_NORESERVE != 0,
        is_wanted_now,
        signals,
        huge_errno: 0,
        begun: raw::now(is_wanted_now || settings.threads > 0),
    };
    let mut mapped = -1;
    if is_anonymous && !is_pool && is_free && settings.pool_shift > 0 {
        let page = 1usize << settings.pool_shift;
        let rounded = bytes.saturating_add(page - 1) & !(page - 1);
        let huge = bare | MAP_HUGETLB | ((settings.pool_shift as i32) << SHIFT_AT);
        // SAFETY: the caller's; what it maps beyond `bytes` nobody knows of, and `munmap` takes it back.
        mapped = unsafe { call6(nr::MMAP, 0, rounded, protection, huge as usize, file, 0) };
        segment.huge_errno = errno(mapped);
        if segment.huge_errno == 0 && !rounding::note(mapped as usize, bytes, rounded) {
            // SAFETY: just mapped, and nobody knows of it.
            unsafe { call(nr::MUNMAP, mapped as usize, rounded, 0) };
            (mapped, segment.huge_errno) = (-1, ENOSPC);
        }
        if errno(mapped) == 0 {
            (segment.is_pool, segment.bytes, segment.filled_bytes) = (true, rounded, rounded);
        }
    }
    if errno(mapped) != 0 && is_free && !is_pool && settings.thp_bytes > 0 {
        mapped = aligned([0, bytes, protection, bare as usize, file, offset], settings.thp_bytes, at_address);
    }
    if errno(mapped) != 0 {
        // SAFETY: the caller's.
        mapped = unsafe { call6(nr::MMAP, address, bytes, protection, bare as usize, file, offset) };
    }
    if errno(mapped) != 0 {
        return Some(mapped);
    }
    segment.address = mapped as usize;
    let refused = if is_locked { may_be_locked(segment.address, bytes) } else { 0 };
    if refused != 0 {
        // SAFETY: just mapped, and nobody knows of it.
        unsafe { unmap(segment.address, bytes) };
        return Some(refused);
    }
    place(&segment, settings);
    if is_locked {
        // SAFETY: see above. That there is nothing behind a page is no failure of mmap.
        unsafe { call(nr::MLOCK, segment.address, bytes, 0) };
    }
    Some(mapped)
}

/// Has what comes to a fresh mapping locked; gives what mmap(2) says where that may not be, EPERM or EAGAIN.
fn may_be_locked(address: usize, bytes: usize) -> isize {
    const ON_FAULT: usize = 1;
    // SAFETY: changes no content.
    match errno(unsafe { call(nr::MLOCK2, address, bytes, ON_FAULT) }) {
        0 => 0,
        1 => -1,
        _ => -11,
    }
}

/// Maps what is wanted at an address that was reserved for it.
fn at_address(wanted: &[usize; 6], address: usize) -> isize {
    let [_, bytes, protection, flags, file, offset] = *wanted;
    // SAFETY: that of mmap(2), for the caller; what lay there was the reservation.
    unsafe { call6(nr::MMAP, address, bytes, protection, flags | MAP_FIXED as usize, file, offset) }
}

/// Attaches a segment at an address that was reserved for it: its id and its flags stand in the first words.
fn attach_at(wanted: &[usize; 6], address: usize) -> isize {
    let [id, _, _, flags, ..] = *wanted;
    // SAFETY: that of shmat(2), for the caller; what lay there was the reservation.
    unsafe { call(nr::SHMAT, id, address, flags | SHM_REMAP as usize) }
}

/// Maps at an address where huge pages can be mapped: one that has the remainder of the offset.
#[inline(never)]
fn aligned(wanted: [usize; 6], huge: usize, map: fn(&[usize; 6], usize) -> isize) -> isize {
    const PRIVATE_NORESERVE: usize = 0x2 | 0x20 | 0x4000;
    let [_, bytes, _, _, _, offset] = wanted;
    let whole = bytes.saturating_add(huge);
    // SAFETY: a fresh mapping without rights.
    let reserved = unsafe { call6(nr::MMAP, 0, whole, 0, PRIVATE_NORESERVE, usize::MAX, 0) };
    if errno(reserved) != 0 {
        return reserved;
    }
    let start = reserved as usize;
    let rest = offset & (huge - 1);
    let address = ((start - rest + huge - 1) & !(huge - 1)) + rest;
    let mapped = map(&wanted, address);
    // The pages of the mapping end on a base page: `bytes` may not.
    let page = place::page();
    let end = (address + bytes + page - 1) & !(page - 1);
    let (head, tail) = if errno(mapped) == 0 { (address, end) } else { (start + whole, start + whole) };
    // SAFETY: what is left of the reservation; of no bytes the kernel refuses it.
    unsafe {
        call(nr::MUNMAP, start, head - start, 0);
        call(nr::MUNMAP, tail, start + whole - tail, 0);
    }
    mapped
}

/// munmap(2): mappings that were rounded up to huge pages go whole.
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: usize, bytes: usize) -> i32 {
    // SAFETY: the caller's.
    told(unsafe { unmap(address, bytes) }) as usize as i32
}

/// The same as the kernel answers it, and whatever stands in front of our [`munmap`].
///
/// # Safety
/// That of munmap(2).
unsafe fn unmap(address: usize, bytes: usize) -> isize {
    let rounded = rounding::take(address, bytes);
    // SAFETY: the caller's.
    let unmapped = unsafe { call(nr::MUNMAP, address, bytes, 0) };
    // A part of a page from a pool is refused, so that what was mapped over it since goes alone, and nothing behind it.
    if unmapped != -22 {
        return unmapped;
    }
    // SAFETY: the caller's, who knows of nothing behind `bytes` in the page that these end in.
    unsafe { call(nr::MUNMAP, address, rounded, 0) }
}

/// shmget(2).
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmget(key: i32, bytes: usize, flags: i32) -> i32 {
    let settings = settings();
    let is_new = flags & IPC_CREAT != 0 && flags & SHM_HUGETLB == 0;
    if is_new && settings.pool_shift > 0 && settings.takes(bytes) {
        let huge = flags | SHM_HUGETLB | ((settings.pool_shift as i32) << SHIFT_AT);
        // SAFETY: the caller's.
        let id = unsafe { call(nr::SHMGET, key as usize, bytes, huge as usize) };
        if id >= 0 {
            return id as i32;
        }
        POOL_ERRNO.store(-(id as i32) ^ ENOMEM, Ordering::Relaxed);
    }
    // SAFETY: the caller's.
    told(unsafe { call(nr::SHMGET, key as usize, bytes, flags as usize) }) as usize as i32
}

/// shmat(2).
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmat(id: i32, address: usize, flags: i32) -> *mut c_void {
    let (settings, signals) = (settings(), Cell::new(0));
    if flags & SHM_RDONLY == 0
        && is_open()
        && let Some((bytes, is_filled)) = place::of_sysv(id)
        && settings.takes(bytes)
        && block(FROM_OTHERS, &signals)
    {
        let wanted = [id as usize, address, flags as usize];
        // SAFETY: the caller's.
        let attached = unsafe { attached(wanted, bytes, is_filled, &signals, settings) };
        let_through_but(signals.get());
        if let Some(attached) = attached {
            return told(attached);
        }
    }
    // SAFETY: the caller's.
    told(unsafe { call(nr::SHMAT, id as usize, address, flags as usize) })
}

/// The same of a segment of so many bytes, as the kernel answers it; `None` where it is left alone. See [`shared`].
///
/// # Safety
/// That of shmat(2).
unsafe fn attached(
    [id, address, flags]: [usize; 3],
    bytes: usize,
    is_filled: bool,
    signals: &Cell<u64>,
    settings: &Settings,
) -> Option<isize> {
    if !is_still_open() {
        return None;
    }
    let begun = raw::now(settings.threads > 0);
    let mut attached = -1;
    if address == 0 && settings.thp_bytes > 0 {
        attached = aligned([id, bytes, 0, flags, 0, 0], settings.thp_bytes, attach_at);
    }
    if errno(attached) != 0 {
        // SAFETY: the caller's.
        attached = unsafe { call(nr::SHMAT, id, address, flags) };
    }
    if errno(attached) == 0 {
        let page = place::sysv_page(attached as usize, settings);
        let whole = bytes.saturating_add(page - 1) & !(page - 1);
        let is_pool = page > place::page();
        let segment = Segment {
            address: attached as usize,
            bytes: whole,
            filled_bytes: whole,
            kind: wire::KIND_SYSV,
            is_filled,
            is_whole: false,
            room_bytes: usize::MAX,
            is_pool,
            is_sparse: false,
            is_wanted_now: false,
                signals,
            huge_errno: match settings.pool_shift > 0 && !is_pool {
                true => POOL_ERRNO.load(Ordering::Relaxed) ^ ENOMEM,
                false => 0,
            },
            begun,
        };
        place(&segment, settings);
    }
    Some(attached)
}

/// mlockall(2).
///
/// # Safety
/// That of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: i32) -> i32 {
    const MCL_FUTURE: i32 = 2;
    if flags & MCL_FUTURE != 0 {
        place::LOCKS_FUTURE.store(true, Ordering::Relaxed);
    }
    // SAFETY: the caller's.
    told(unsafe { call(nr::MLOCKALL, flags as usize, 0, 0) }) as usize as i32
}

/// Mappings that are longer than their program knows.
mod rounding {
    use core::sync::atomic::{AtomicUsize, Ordering};

    const COUNT: usize = 32;
    static ADDRESSES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
    static LENGTHS: [[AtomicUsize; 2]; COUNT] = [const { [const { AtomicUsize::new(0) }; 2] }; COUNT];
    static NOTED: AtomicUsize = AtomicUsize::new(0);

    /// Remembers that `bytes` at `address` are `rounded` in truth; false when there is no room to.
    pub fn note(address: usize, bytes: usize, rounded: usize) -> bool {
        if bytes == rounded {
            return true;
        }
        for (place, lengths) in ADDRESSES.iter().zip(&LENGTHS) {
            // 1 is no address: it keeps the place until its lengths stand.
            if place.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let [known, whole] = lengths;
                known.store(bytes, Ordering::Relaxed);
                whole.store(rounded, Ordering::Relaxed);
                place.store(address, Ordering::Release);
                NOTED.fetch_add(1, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// The true length of what is to be unmapped, which is then forgotten.
    #[inline(always)]
    pub fn take(address: usize, bytes: usize) -> usize {
        if NOTED.load(Ordering::Acquire) == 0 { bytes } else { find(address, bytes) }
    }

    #[inline(never)]
    fn find(address: usize, bytes: usize) -> usize {
        for (place, lengths) in ADDRESSES.iter().zip(&LENGTHS) {
            let [known, whole] = lengths;
            if place.load(Ordering::Acquire) == address && known.load(Ordering::Relaxed) == bytes {
                let rounded = whole.load(Ordering::Relaxed);
                place.store(0, Ordering::Release);
                NOTED.fetch_sub(1, Ordering::Release);
                return rounded;
            }
        }
        bytes
    }
}

/// Nothing here panics; were it to, the loop would be visible where an unwinding would not.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
