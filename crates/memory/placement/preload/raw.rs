//! System calls without a libc, and a thread that lives on nothing but a stack.
//!
//! Sources: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h (aarch64), clone(2).

use core::arch::asm;
#[cfg(target_arch = "aarch64")]
use core::arch::global_asm;
use core::cell::Cell;

#[cfg(target_arch = "x86_64")]
pub mod nr {
    pub const READ: usize = 0;
    pub const CLOSE: usize = 3;
    pub const FSTAT: usize = 5;
    pub const MMAP: usize = 9;
    pub const MUNMAP: usize = 11;
    pub const SIGPROCMASK: usize = 14;
    pub const MINCORE: usize = 27;
    pub const MADVISE: usize = 28;
    pub const SHMGET: usize = 29;
    pub const SHMAT: usize = 30;
    pub const SHMCTL: usize = 31;
    pub const NANOSLEEP: usize = 35;
    pub const SOCKET: usize = 41;
    pub const SENDTO: usize = 44;
    pub const CLONE: usize = 56;
    pub const SIGPENDING: usize = 127;
    pub const FSTATFS: usize = 138;
    pub const MLOCK: usize = 149;
    pub const MLOCKALL: usize = 151;
    pub const MLOCK2: usize = 325;
    pub const PRCTL: usize = 157;
    pub const FUTEX: usize = 202;
    pub const CLOCK_GETTIME: usize = 228;
    pub const MBIND: usize = 237;
    pub const SET_MEMPOLICY: usize = 238;
    pub const GET_MEMPOLICY: usize = 239;
    pub const OPENAT: usize = 257;
    pub const READLINKAT: usize = 267;
    pub const MOVE_PAGES: usize = 279;
}

#[cfg(target_arch = "aarch64")]
pub mod nr {
    pub const FSTATFS: usize = 44;
    pub const OPENAT: usize = 56;
    pub const READLINKAT: usize = 78;
    pub const CLOSE: usize = 57;
    pub const READ: usize = 63;
    pub const FSTAT: usize = 80;
    pub const FUTEX: usize = 98;
    pub const NANOSLEEP: usize = 101;
    pub const CLOCK_GETTIME: usize = 113;
    pub const SIGPROCMASK: usize = 135;
    pub const SIGPENDING: usize = 136;
    pub const PRCTL: usize = 167;
    pub const SHMGET: usize = 194;
    pub const SHMCTL: usize = 195;
    pub const SHMAT: usize = 196;
    pub const SOCKET: usize = 198;
    pub const SENDTO: usize = 206;
    pub const MUNMAP: usize = 215;
    pub const CLONE: usize = 220;
    pub const MMAP: usize = 222;
    pub const MLOCK: usize = 228;
    pub const MLOCKALL: usize = 230;
    pub const MLOCK2: usize = 284;
    pub const MINCORE: usize = 232;
    pub const MADVISE: usize = 233;
    pub const MBIND: usize = 235;
    pub const GET_MEMPOLICY: usize = 236;
    pub const SET_MEMPOLICY: usize = 237;
    pub const MOVE_PAGES: usize = 239;
}

// What the compiler calls for a large value, which on x86-64 is an instruction. That of a libc would be bound at its
// first call, and that by a thread that the libc does not know.
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".hidden memcpy",
    ".globl memcpy",
    "memcpy: mov x3, x0",
    "2: cbz x2, 3f",
    "ldrb w4, [x1], #1",
    "strb w4, [x3], #1",
    "sub x2, x2, #1",
    "b 2b",
    ".hidden memset",
    ".globl memset",
    "memset: mov x3, x0",
    "2: cbz x2, 3f",
    "strb w1, [x3], #1",
    "sub x2, x2, #1",
    "b 2b",
    "3: ret",
);

/// The call `number`; a value from -4095 to -1 is the negated error number.
///
/// # Safety
/// That of the call.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn call_inline(number: usize, a: [usize; 6]) -> isize {
    let returned: isize;
    // SAFETY: the calling convention of the kernel; rcx and r11 are what the instruction overwrites.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => returned, in("rdi") a[0], in("rsi") a[1],
            in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _,
            options(nostack));
    }
    returned
}

/// The call `number`; a value from -4095 to -1 is the negated error number.
///
/// # Safety
/// That of the call.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub unsafe fn call_inline(number: usize, a: [usize; 6]) -> isize {
    let returned: isize;
    // SAFETY: the calling convention of the kernel, which keeps all other registers.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a[0] => returned, in("x1") a[1], in("x2") a[2],
            in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack));
    }
    returned
}

/// A call of three arguments; out of line, for all calls that need not be fast.
///
/// # Safety
/// That of the call.
#[inline(never)]
pub unsafe extern "C" fn call(number: usize, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller's; the kernel does not look at the rest.
    unsafe { call_inline(number, [a, b, c, 0, 0, 0]) }
}

/// A call of six arguments; out of line.
///
/// # Safety
/// That of the call.
#[inline(never)]
pub unsafe extern "C" fn call6(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    // SAFETY: the caller's.
    unsafe { call_inline(number, [a, b, c, d, e, f]) }
}

/// The error number of a failed call.
pub fn errno(returned: isize) -> i32 {
    if (-4095..0).contains(&returned) { -(returned as i32) } else { 0 }
}

/// Memory, open files, file system and signal handlers are shared; the kernel clears a word when it has ended.
const FLAGS: usize = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000 | 0x20_0000;

/// Starts a thread that runs `work(argument)` and ends. `ended` becomes 0 when its stack is no longer in use.
///
/// # Safety
/// `top` ends a stack of its own, 16-byte aligned, which stays mapped until `ended` is 0, as do `argument` and
/// `ended`. All signals are blocked. The thread has no storage of its own: `work` uses system calls only.
pub unsafe fn thread(top: usize, work: extern "C" fn(usize), argument: usize, ended: *mut u32) -> bool {
    let stack = (top - 16) as *mut usize;
    // SAFETY: two words below the end of the stack, which is ours.
    unsafe {
        stack.write(argument);
        stack.add(1).write(work as usize);
    }
    let returned: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the new thread comes back on its own stack, takes both words, and never leaves this block.
    unsafe {
        asm!("syscall", "test rax, rax", "jnz 2f",
            "xor ebp, ebp", "pop rdi", "pop rax", "call rax",
            "xor edi, edi", "mov eax, 60", "syscall", "ud2", "2:",
            inlateout("rax") nr::CLONE as isize => returned, in("rdi") FLAGS, in("rsi") stack, in("rdx") 0,
            in("r10") ended, in("r8") 0, lateout("rcx") _, lateout("r11") _);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the same.
    unsafe {
        asm!("svc 0", "cbnz x0, 2f",
            "mov x29, xzr", "ldp x0, x1, [sp], #16", "blr x1",
            "mov x0, xzr", "mov x8, #93", "svc 0", "brk #1", "2:",
            in("x8") nr::CLONE, inlateout("x0") FLAGS => returned, in("x1") stack, in("x2") 0, in("x3") 0,
            in("x4") ended);
    }
    returned > 0
}

/// All signals but those that a fault, or a filter, sends to who causes it: blocked, these end the program.
pub const FROM_OTHERS: u64 = !(1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 30);

/// Blocks these signals of this thread, too; `before` gets those that were blocked. False where a filter refuses that.
#[inline(never)]
pub fn block(signals: u64, before: &Cell<u64>) -> bool {
    mask(0, &raw const signals, before.as_ptr())
}

/// Blocks these signals of this thread and no others.
#[inline(never)]
pub fn let_through_but(signals: u64) {
    mask(2, &raw const signals, core::ptr::null_mut());
}

fn mask(how: usize, signals: *const u64, before: *mut u64) -> bool {
    // SAFETY: two masks of 8 bytes, or none.
    unsafe { call6(nr::SIGPROCMASK, how, signals as usize, before as usize, size_of::<u64>(), 0, 0) == 0 }
}

/// Waits for a millisecond.
#[inline(never)]
pub fn pause() {
    let millisecond = [0usize, 1_000_000];
    // SAFETY: the kernel reads a `timespec` of two words.
    unsafe { call(nr::NANOSLEEP, millisecond.as_ptr() as usize, 0, 0) };
}

/// The moment, in nanoseconds, where somebody wants to know it: without vDSO it is a system call.
#[inline(never)]
pub fn now(is_wanted: bool) -> u64 {
    if !is_wanted {
        return 0;
    }
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes one timespec of two 64-bit words.
    unsafe { call(nr::CLOCK_GETTIME, 1, time.as_mut_ptr() as usize, 0) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}
