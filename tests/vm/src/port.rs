//! The exit device of QEMU (`-device isa-debug-exit,iobase=0xf4,iosize=4`).
//!
//! An exit status is the only word of a guest that a crashed or hung one cannot say by accident.

#![expect(unsafe_code, reason = "an x86 port write has no safe wrapper anywhere")]

/// Ends the machine; QEMU leaves with `(value << 1) | 1`. Returns only where there is no such device.
#[cfg(target_arch = "x86_64")]
pub fn exit(value: u32) {
    const SYS_IOPL: usize = 172;
    const PORT: u16 = 0xf4;
    let mut granted: isize = SYS_IOPL as isize;
    // SAFETY: iopl(3) takes one integer and touches no memory; `syscall` clobbers rcx and r11, which
    // are named below. The guest has no other process that the wider port rights could hurt.
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") granted, in("rdi") 3_usize,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if granted != 0 {
        eprintln!("init: iopl: {}", std::io::Error::from_raw_os_error(-granted as i32));
        return;
    }
    // SAFETY: iopl(3) was granted above, so the write does not fault; the device at this port only
    // ends the machine and touches no memory of ours.
    unsafe {
        core::arch::asm!("out dx, eax", in("dx") PORT, in("eax") value, options(nomem, nostack));
    }
}

/// Other machines have no such port; the host side does not boot them.
#[cfg(not(target_arch = "x86_64"))]
pub fn exit(_value: u32) {}
