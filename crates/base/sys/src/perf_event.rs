//! `struct perf_event_attr` and the call that takes it, for counting and for sampling.
//!
//! Source: perf_event_open(2), include/uapi/linux/perf_event.h; the bits of the flags are counted from the lowest, as
//! x86 and Arm lay them out.

use std::os::fd::{FromRawFd, OwnedFd};

use linux_raw_sys::general as nr;
use rustix::io::Errno;

use crate::raw::syscall;

/// PERF_ATTR_SIZE_VER5 (Linux 4.1): the last form that every kernel since 4.18 takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attr {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    /// The period, or with `PERF_FLAG_FREQ` samples a second.
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    /// With the flag for it: wake the reader when so many bytes lie in the ring.
    pub wakeup_watermark: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clock_id: i32,
    pub sample_regs_interrupt: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved: u16,
}

/// Length of the attribute of an event in bytes.
pub const ATTRIBUTE_BYTES: usize = 112;
const _: () = assert!(size_of::<Attr>() == ATTRIBUTE_BYTES, "PERF_ATTR_SIZE_VER5");

pub(crate) const TYPE_HARDWARE: u32 = 0;
pub(crate) const TYPE_SOFTWARE: u32 = 1;
pub(crate) const FLAG_DISABLED: u64 = 1;
pub(crate) const FLAG_INHERIT: u64 = 1 << 1;
pub(crate) const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const OPEN_CLOEXEC: u64 = 1 << 3;

impl Attr {
    /// An event that asks for nothing but its count.
    pub fn new(kind: u32, config: u64) -> Self {
        Self { kind, size: ATTRIBUTE_BYTES as u32, config, ..Self::default() }
    }

    /// The bytes as the kernel was given them.
    #[expect(clippy::host_endian_bytes, reason = "the kernel reads integers as this CPU stores them")]
    pub fn to_bytes(self) -> [u8; ATTRIBUTE_BYTES] {
        let mut bytes = [0; ATTRIBUTE_BYTES];
        let words = [self.config, self.sample_period, self.sample_type, self.read_format, self.flags];
        bytes[..4].copy_from_slice(&self.kind.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_ne_bytes());
        for (slot, word) in bytes[8..48].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_ne_bytes();
        }
        bytes[48..52].copy_from_slice(&self.wakeup_watermark.to_ne_bytes());
        bytes[56..64].copy_from_slice(&self.config1.to_ne_bytes());
        bytes[72..80].copy_from_slice(&self.branch_sample_type.to_ne_bytes());
        bytes
    }
}

/// Where an event is opened: on whom, on which CPU, and with whom it is counted together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// A thread, the descriptor of a control group with the flag for it, 0 for the calling thread, -1 for everybody.
    pub pid: i32,
    /// -1 is wherever the target runs.
    pub cpu: i32,
    /// The descriptor of the leader, -1 for none.
    pub group: i32,
}

impl Default for Place {
    fn default() -> Self {
        Self { pid: 0, cpu: -1, group: -1 }
    }
}

/// Opens an event; `flags` are those of the call beside close-on-exec.
pub(crate) fn open(attr: &Attr, place: Place, flags: u64) -> Result<OwnedFd, Errno> {
    let Place { pid, cpu, group } = place;
    let attr: *const Attr = attr;
    // SAFETY: the kernel reads `size` = ATTRIBUTE_BYTES bytes at `attr`, which is that long (asserted above) and
    // outlives the call.
    let fd = unsafe { syscall!(nr::__NR_perf_event_open, attr, pid, cpu, group, OPEN_CLOEXEC | flags)? };
    let fd = i32::try_from(fd).expect("a descriptor is an int");
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
