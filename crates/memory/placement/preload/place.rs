//! One segment: its policy, its pages, and what became of them.

use crate::prefault::{Job, prefault};
use crate::raw::{call, call6, errno, now, nr, pause};
use crate::settings::{NODES_MAX, Settings, Text};
use crate::wire::{self, MAGIC, Notice};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The size of a base page. Kernels of aarch64 come with three: advice on no bytes is refused where none begins.
#[cfg_attr(target_arch = "aarch64", inline(never))]
#[cfg_attr(not(target_arch = "aarch64"), inline(always))]
pub fn page() -> usize {
    const MOST: usize = 64 << 10;
    let is_known = cfg!(not(target_arch = "aarch64"));
    let mut page = 4 << 10;
    // SAFETY: of no bytes nothing changes.
    while !is_known && page < MOST && unsafe { call(nr::MADVISE, page, 0, 0) } != 0 {
        page *= 4;
    }
    page
}

const AT_FDCWD: usize = -100isize as usize;
const TMPFS: usize = 0x0102_1994;
const HUGETLBFS: usize = 0x9584_58f6;
const MADV_HUGEPAGE: usize = 14;
const MPOL_MF_MOVE: usize = 2;
const MPOL_F_ADDR: usize = 2;
/// Bits of a mask, and the one that the kernel takes away (get_nodes in mm/mempolicy.c).
pub const MASK_BITS: usize = NODES_MAX + 1;

/// Of so many bytes the launcher is told before they are filled, so that it waits with its look: some tenths of a
/// second.
const LONG: usize = 64 << 20;

/// Whether the program has asked for what it maps from then on to be locked: the kernel fills it, and what it has
/// filled is asked for then. It may have taken that back.
pub static LOCKS_FUTURE: AtomicBool = AtomicBool::new(false);

/// What was mapped.
pub struct Segment<'a> {
    pub address: usize,
    /// Whole pages.
    pub bytes: usize,
    /// Of these, bytes that have something behind them: a file may be shorter.
    pub filled_bytes: usize,
    pub kind: u32,
    /// Some of it was there before it was mapped, or may have been. Of a file that grows, all that it has may be before
    /// this piece.
    pub is_filled: bool,
    /// None of it is missing: to fill it takes no memory. Where it is not sure, it is false.
    pub is_whole: bool,
    /// Bytes that its file system has for it.
    pub room_bytes: usize,
    /// From a pool of huge pages.
    pub is_pool: bool,
    pub is_sparse: bool,
    /// The program asks for its pages itself.
    pub is_wanted_now: bool,
    /// Signals that the program has blocked.
    pub signals: &'a Cell<u64>,
    pub huge_errno: i32,
    pub begun: u64,
}

/// What is known of a file in memory.
pub struct Content {
    pub length: usize,
    /// Bytes that it has pages for.
    pub had_bytes: usize,
    /// See [`Segment`].
    pub room_bytes: usize,
    pub is_pool: bool,
}

impl Content {
    /// That of a mapping without a file.
    pub fn anonymous(length: usize, is_pool: bool) -> Self {
        Self { length, had_bytes: 0, room_bytes: usize::MAX, is_pool }
    }
}

/// What the file `file` is; `None` for one that some disk keeps, and for the heap of a JVM.
pub fn of_memory(file: usize) -> Option<Content> {
    let mut system = [0usize; 32];
    let mut stat = [0usize; 32];
    // SAFETY: the kernel writes 120 and 144 bytes, for which both have room.
    let failed = unsafe {
        call(nr::FSTATFS, file, system.as_mut_ptr() as usize, 0) < 0
            || call(nr::FSTAT, file, stat.as_mut_ptr() as usize, 0) < 0
    };
    let [kind, block, blocks, _, free, ..] = system;
    // st_size and st_blocks are the same words of struct stat on both architectures.
    let [_, _, _, _, _, _, length, _, had, ..] = stat;
    let had_bytes = had.wrapping_mul(512);
    // One without a size has no blocks. Others write to it too: an eighth is theirs.
    let room_bytes = match blocks {
        0 => usize::MAX,
        _ => free.saturating_sub(blocks / 8).wrapping_mul(block).wrapping_add(had_bytes),
    };
    let is_pool = kind == HUGETLBFS;
    let is_memory = !failed && (kind == TMPFS || is_pool) && !is_heap(file);
    is_memory.then_some(Content { length, had_bytes, room_bytes, is_pool })
}

/// Whether a file is the heap of a JVM: what manages its own memory has it where it uses it.
#[inline(never)]
fn is_heap(file: usize) -> bool {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    let (mut path, mut name) = ([0u8; FOLDER.len() + 11], [0u8; wire::HEAP_OF_JAVA.len()]);
    // By its last digit first, and put where it belongs at the end: no number has more than ten.
    let (mut digits, mut left) = ([0u8; 10], file as usize);
    let mut count = 0;
    for digit in &mut digits {
        *digit = b'0' + (left % 10) as u8;
        (left, count) = (left / 10, count + 1);
        if left == 0 {
            break;
        }
    }
    let number = digits.iter().take(count).rev();
    for (place, byte) in path.iter_mut().zip(FOLDER.iter().chain(number)) {
        *place = *byte;
    }
    let (to, bytes) = (name.as_mut_ptr() as usize, name.len());
    // SAFETY: a path that ends with a zero byte; the kernel writes as many bytes as there is room for.
    unsafe { call6(nr::READLINKAT, AT_FDCWD, path.as_ptr() as usize, to, bytes, 0, 0) };
    name.iter().eq(wire::HEAP_OF_JAVA)
}

/// The length of a System V segment, and whether somebody has had it attached.
pub fn of_sysv(id: i32) -> Option<(usize, bool)> {
    const IPC_STAT: usize = 2;
    let mut stat = [0usize; 32];
    // SAFETY: the kernel writes a `shmid64_ds` of 112 bytes.
    let failed = unsafe { call(nr::SHMCTL, id as usize, IPC_STAT, stat.as_mut_ptr() as usize) } < 0;
    // After `ipc64_perm`, which has 48 bytes on both architectures.
    // Beside the process that made it stands the one that attached it last, in the upper half.
    let [_, _, _, _, _, _, length, _, _, _, pids, ..] = stat;
    (!failed).then_some((length, pids >> 32 != 0))
}

/// The size of the pages behind a fresh attachment of a System V segment: of the pool that we ask for, or base pages.
///
/// Whoever made the segment may have had no page from the pool. Only of pages from a pool a part cannot be let go of;
/// of a shared mapping the call takes entries out of our own page table, and no content. What is locked it takes out
/// since Linux 5.18: before that, what is there already may be locked, and counts as base pages. A policy for part of a
/// page is refused, and one for more than the segment is that of what lies behind it.
pub fn sysv_page(address: usize, settings: &Settings) -> usize {
    const MADV_DONTNEED: usize = 4;
    const MADV_DONTNEED_LOCKED: usize = 24;
    let page = page();
    if settings.pool_shift == 0 {
        return page;
    }
    let advise = |address: usize, bytes: usize, advice: usize| {
        // SAFETY: see above.
        errno(unsafe { call(nr::MADVISE, address, bytes, advice) })
    };
    let is_old = advise(page, 0, MADV_DONTNEED_LOCKED) != 0;
    let advice = if is_old { MADV_DONTNEED } else { MADV_DONTNEED_LOCKED };
    let is_pool = advise(address + page, page, advice) == 22 && !(is_old && is_there(address));
    if is_pool { 1 << settings.pool_shift } else { page }
}

/// Places a segment, prefaults it, and tells the launcher.
pub fn place(segment: &Segment<'_>, settings: &Settings) {
    let mut notice = Notice {
        magic: MAGIC,
        address: segment.address as u64,
        bytes: segment.bytes as u64,
        kind: segment.kind,
        huge_errno: segment.huge_errno,
        ..Notice::default()
    };
    // After mlockall(MCL_FUTURE) the kernel fills what it maps, before there was a policy. It says the same of a page
    // that somebody has written, and of all pages of what this process may not write by its name: a segment of which it
    // is true may be as good as empty, and to fill it takes memory.
    let is_filled = segment.is_filled
        || settings.has_policy && LOCKS_FUTURE.load(Ordering::Relaxed) && is_there(segment.address);
    if is_filled && settings.has_policy && is_placed(segment.address, settings) {
        // Another process of this service was here first, or a former start of it: the policy is of the segment, not of
        // the mapping.
        notice.skipped = wire::SKIP_PLACED;
        return tell(&raw const notice, settings);
    }
    let thp = if segment.is_pool { 0 } else { settings.thp_bytes };
    if thp > 0 {
        notice.huge_errno = advise(segment, MADV_HUGEPAGE);
    }
    let threads = if segment.is_wanted_now { settings.threads.max(1) } else { settings.threads };
    notice.skipped = match () {
        () if threads == 0 => wire::SKIP_NOT,
        () if segment.filled_bytes == 0 => wire::SKIP_SPARSE,
        // The program asks for all of it, and would be given it.
        () if segment.is_wanted_now => wire::SKIP_NOT,
        () if segment.is_sparse => wire::SKIP_SPARSE,
        // What whoever made it has left out is not ours to add.
        () if segment.is_filled && !(settings.has_policy && segment.is_whole) => wire::SKIP_FILLED,
        () if segment.is_pool || segment.is_whole => wire::SKIP_NOT,
        () => room(segment, settings),
    };
    let prefaults = threads > 0 && notice.skipped == wire::SKIP_NOT;
    // Pages of a huge page's size are spread by the thread that makes them: a collapse takes them from one node.
    let spreads = prefaults && thp > 0 && settings.weights_count > 1 && !is_filled;
    if settings.has_policy && !is_filled && !spreads {
        notice.policy_errno = bind(segment, settings, 0);
    }
    if prefaults {
        let moves = is_filled && !segment.is_pool && settings.weights_count > 1;
        // Pages that somebody else has mapped do not move, and a look at shared memory maps it.
        if is_filled || segment.filled_bytes >= LONG {
            notice.skipped = wire::SKIP_YET;
            tell(&raw const notice, settings);
            notice.skipped = wire::SKIP_NOT;
        }
        let job = Job::new(segment, settings, thp, spreads, moves);
        prefault(&job, threads, &mut notice);
    }
    if settings.has_policy && (is_filled || spreads) {
        notice.policy_errno = bind(segment, settings, if is_filled { MPOL_MF_MOVE } else { 0 });
    }
    notice.nanoseconds = now(threads > 0).wrapping_sub(segment.begun);
    tell(&raw const notice, settings);
}

/// Sets the policy of a segment; gives the error number.
fn bind(segment: &Segment<'_>, settings: &Settings, flags: usize) -> i32 {
    let mask = settings.mask.as_ptr() as usize;
    // Nodes of a policy without any must be none at all.
    let bits = if settings.mask.iter().all(|word| *word == 0) { 0 } else { MASK_BITS };
    // SAFETY: a policy changes where pages lie, never what they hold; the mask has as many bits.
    errno(unsafe { call6(nr::MBIND, segment.address, segment.bytes, settings.mode, mask, bits, flags) })
}

/// Whether there is a page behind an address.
fn is_there(address: usize) -> bool {
    let mut page = 0u8;
    // SAFETY: the kernel writes one byte for the one page that is asked for.
    unsafe { call(nr::MINCORE, address, 1, &raw mut page as usize) };
    page & 1 != 0
}

fn advise(segment: &Segment<'_>, advice: usize) -> i32 {
    // SAFETY: advice on the size of pages changes no content.
    errno(unsafe { call(nr::MADVISE, segment.address, segment.bytes, advice) })
}

/// Whether the policy at an address is ours, of the same nodes.
fn is_placed(address: usize, settings: &Settings) -> bool {
    let (mut mode, mut mask) = (0u32, [0u64; NODES_MAX / 64]);
    let (to, nodes) = (&raw mut mode as usize, mask.as_mut_ptr() as usize);
    // SAFETY: the kernel writes one int, and the words of the mask.
    let asked = unsafe { call6(nr::GET_MEMPOLICY, to, nodes, MASK_BITS, address, MPOL_F_ADDR, 0) };
    // Not as arrays, which a libc would compare.
    asked == 0 && mode as usize == settings.mode && mask.iter().eq(&settings.mask)
}

/// Bytes that this process has filled before: the limit of the launcher is for all of them.
static FILLED: AtomicUsize = AtomicUsize::new(0);

/// What keeps a segment from being filled, so that no other has to give way: one of the `SKIP_*`.
fn room(segment: &Segment<'_>, settings: &Settings) -> u32 {
    let mut text = [0u8; 256];
    let is_told = read(c"/proc/meminfo".as_ptr().cast(), &mut text);
    // Where /proc is not mounted, the limit of the launcher must do.
    let available = if is_told { available_bytes(&text) } else { usize::MAX };
    let bytes = segment.filled_bytes;
    if bytes.saturating_add(settings.spare_bytes) > available || bytes > segment.room_bytes {
        return wire::SKIP_ROOM;
    }
    let mut filled = FILLED.load(Ordering::Relaxed);
    if filled.wrapping_add(bytes) > settings.bytes_max {
        // What was unmapped since may be free, or may be a child's still: the group itself knows.
        let left = if read(settings.group.as_ptr(), &mut text) {
            // SAFETY: the last byte was not read into and is zero.
            let used = unsafe { Text::new(text.as_ptr()) }.until(b'\n').number();
            settings.group_bytes.saturating_sub(used)
        } else {
            0
        };
        if bytes > left {
            return wire::SKIP_GROUP;
        }
        filled = settings.bytes_max.saturating_sub(left);
    }
    FILLED.store(filled.wrapping_add(bytes), Ordering::Relaxed);
    wire::SKIP_NOT
}

/// Whether this thread is under a seccomp filter: most are under none, which costs a hundredth of reading how many.
pub fn is_filtered() -> bool {
    const GET_SECCOMP: usize = 21;
    // SAFETY: tells, and changes nothing.
    unsafe { call(nr::PRCTL, GET_SECCOMP, 0, 0) != 0 }
}

/// How many seccomp filters this thread is under: those that it was started with, and those that it has put itself
/// under. 0 where nobody tells.
#[inline(never)]
pub fn filters() -> usize {
    let mut text = [0u8; 2048];
    read(c"/proc/thread-self/status".as_ptr().cast(), &mut text);
    // SAFETY: the last byte was not read into and is zero.
    let mut lines = unsafe { Text::new(text.as_ptr()) };
    while lines.first().is_some() {
        let mut line = lines.until(b'\n');
        if line.until(b':').is(b"Seccomp_filters") {
            return line.number();
        }
    }
    0
}

/// Reads the begin of the file at `path`, which ends with a zero byte; false where there is none. The last byte of
/// `text` is left as it is.
fn read(path: *const u8, text: &mut [u8]) -> bool {
    const CLOEXEC: usize = 0o2000000;
    // SAFETY: a path that ends with a zero byte, and a buffer of the length that is told.
    let length = unsafe {
        let file = call(nr::OPENAT, AT_FDCWD, path as usize, CLOEXEC);
        let length = call(nr::READ, file as usize, text.as_mut_ptr() as usize, text.len() - 1);
        call(nr::CLOSE, file as usize, 0, 0);
        length
    };
    length > 0
}

/// `MemAvailable:   12345 kB`: the first line with an `A`.
fn available_bytes(text: &[u8; 256]) -> usize {
    // SAFETY: the last byte was not read into and is zero.
    let mut text = unsafe { Text::new(text.as_ptr()) };
    text.until(b'A');
    text.until(b':');
    text.until(b'k').number().saturating_mul(1024)
}

/// Sends what became of a segment, if anybody listens: by the abstract name, which needs no path and no right, and
/// where this network namespace has none of that name by the path.
fn tell(notice: *const Notice, settings: &Settings) {
    const DATAGRAM: usize = 2 | 0o2000000 | 0o4000;
    const NO_SIGNAL: usize = 0x4000;
    const UNIX: u8 = 1;
    const TRIES: u32 = 5;
    if settings.name_bytes == 0 {
        return;
    }
    let mut to = settings.answer;
    let (to, length) = (&raw mut to, 3 + settings.name_bytes);
    // SAFETY: both values outlive the calls and have the lengths that are told.
    unsafe {
        (*to).family = UNIX;
        let socket = call(nr::SOCKET, UNIX.into(), DATAGRAM, 0);
        let send = |to: usize, length: usize| {
            let what = notice as usize;
            call6(nr::SENDTO, socket as usize, what, size_of::<Notice>(), NO_SIGNAL, to, length)
        };
        let mut sent = send(to as usize, length);
        // A queue is short. Where it stays full (EAGAIN), answers by two ways would come in another order.
        for _ in 0..TRIES {
            if sent != -11 {
                break;
            }
            pause();
            sent = send(to as usize, length);
        }
        if sent < 0 && sent != -11 {
            (*to).skip = [UNIX, 0];
            send(to as usize + 1, length - 1);
        }
        call(nr::CLOSE, socket as usize, 0, 0);
    }
}
