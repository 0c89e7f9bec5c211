//! `struct perf_event_attr` as sampling needs it, and the call that takes it.
//!
//! Source: include/uapi/linux/perf_event.h; the bits of the flags are counted from the lowest, as x86 and Arm lay
//! them out.

use std::os::fd::{FromRawFd, OwnedFd};

use linux_raw_sys::general as nr;
use rustix::io::Errno;

use super::Source;
use crate::raw::syscall;

/// PERF_ATTR_SIZE_VER5 (Linux 4.1): the last form that every kernel since 4.18 takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    /// The period, or with `FLAG_FREQUENCY` samples a second.
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    /// With `FLAG_WATERMARK`: wake the reader when so many bytes lie in the ring.
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
    sample_regs_interrupt: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// Length of [`Attr`] in bytes.
pub const ATTRIBUTE_BYTES: usize = 112;
const _: () = assert!(size_of::<Attr>() == ATTRIBUTE_BYTES, "PERF_ATTR_SIZE_VER5");

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const HARDWARE_CYCLES: u64 = 0;
const SOFTWARE_CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_DUMMY`: counts nothing and carries the records of mappings, names and forks.
const SOFTWARE_DUMMY: u64 = 9;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_PERIOD: u64 = 1 << 8;
const SAMPLE_BRANCH_STACK: u64 = 1 << 11;

const BRANCH_USER: u64 = 1;
const BRANCH_ANY: u64 = 1 << 3;

const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_EXCLUDE_IDLE: u64 = 1 << 7;
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_WATERMARK: u64 = 1 << 14;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
const FLAG_MMAP2: u64 = 1 << 23;
const FLAG_COMM_EXEC: u64 = 1 << 24;
/// Linux 5.12; an older kernel answers EINVAL.
const FLAG_BUILD_ID: u64 = 1 << 34;

const OPEN_CLOEXEC: u64 = 1 << 3;
const OPEN_PID_CGROUP: u64 = 1 << 2;

/// How the events of one recording are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub source: Source,
    pub rate_hz: u64,
    pub user_only: bool,
    /// Threads and children made later are sampled with their maker. Events of a whole CPU cannot be inherited.
    pub inherit: bool,
    pub watermark_bytes: u32,
}

impl Attr {
    /// The event whose samples are wanted; it starts disabled.
    pub fn sampler(form: Form) -> Self {
        let Form { source, rate_hz, .. } = form;
        let (kind, config) = match source {
            Source::Branches | Source::Cycles => (TYPE_HARDWARE, HARDWARE_CYCLES),
            Source::CpuClock | Source::CpuClockFlat => (TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK),
        };
        let mut flags = FLAG_DISABLED | FLAG_FREQUENCY | FLAG_EXCLUDE_HYPERVISOR;
        if source.is_branches() || form.user_only {
            flags |= FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_CALLCHAIN_KERNEL;
        }
        if kind == TYPE_SOFTWARE {
            // An idle CPU would fill a recording of the host with samples of nothing. Cycles stand still there,
            // and not every PMU takes the wish.
            flags |= FLAG_EXCLUDE_IDLE;
        }
        let (extra, branch_sample_type) = match source {
            Source::Branches => (SAMPLE_BRANCH_STACK, BRANCH_USER | BRANCH_ANY),
            Source::Cycles | Source::CpuClock => (SAMPLE_CALLCHAIN, 0),
            Source::CpuClockFlat => (0, 0),
        };
        let attr = Self { kind, config, sample_period: rate_hz, branch_sample_type, ..Self::default() };
        attr.common(form, flags, extra)
    }

    /// The event that carries mappings, names and forks: always on, so that a pause of the samples loses none.
    pub fn side_band(form: Form, with_build_ids: bool) -> Self {
        let mut flags = FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HYPERVISOR;
        flags |= FLAG_MMAP | FLAG_MMAP2 | FLAG_COMM | FLAG_COMM_EXEC | FLAG_TASK;
        if with_build_ids {
            flags |= FLAG_BUILD_ID;
        }
        let attr = Self { kind: TYPE_SOFTWARE, config: SOFTWARE_DUMMY, ..Self::default() };
        attr.common(form, flags, 0)
    }

    /// What both have alike. Who, when and where must be the same bits in both, because a reader knows one layout.
    fn common(self, form: Form, flags: u64, sample_type: u64) -> Self {
        let inherit = if form.inherit { FLAG_INHERIT } else { 0 };
        Self {
            size: ATTRIBUTE_BYTES as u32,
            sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_PERIOD | sample_type,
            flags: flags | inherit | FLAG_SAMPLE_ID_ALL | FLAG_WATERMARK,
            wakeup_watermark: form.watermark_bytes,
            ..self
        }
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
        bytes[72..80].copy_from_slice(&self.branch_sample_type.to_ne_bytes());
        bytes
    }
}

/// Whom an event is opened on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whom {
    /// The thread with this id.
    Thread(i32),
    /// The control group of this descriptor.
    Cgroup(i32),
    /// Everybody.
    All,
}

/// Opens an event on one CPU.
pub(super) fn open(attr: &Attr, whom: Whom, cpu: u32) -> Result<OwnedFd, Errno> {
    let (pid, flags) = match whom {
        Whom::Thread(tid) => (tid, OPEN_CLOEXEC),
        Whom::Cgroup(fd) => (fd, OPEN_CLOEXEC | OPEN_PID_CGROUP),
        Whom::All => (-1, OPEN_CLOEXEC),
    };
    let attr: *const Attr = attr;
    // SAFETY: the kernel reads `size` = ATTRIBUTE_BYTES bytes at `attr`, which is that long (asserted above) and
    // outlives the call; no group leader is named.
    let fd = unsafe { syscall!(nr::__NR_perf_event_open, attr, pid, cpu, -1, flags)? };
    let fd = i32::try_from(fd).expect("a descriptor is an int");
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form =
        Form { source: Source::Branches, rate_hz: 997, user_only: false, inherit: true, watermark_bytes: 7 };

    fn word(attr: Attr, at: usize) -> u64 {
        u64::from_le_bytes(*attr.to_bytes()[at..].first_chunk().unwrap())
    }

    /// Offsets of include/uapi/linux/perf_event.h.
    #[test]
    fn the_bytes_are_where_the_kernel_looks() {
        let attr = Attr::sampler(FORM);
        assert_eq!(word(attr, 0), u64::from(ATTRIBUTE_BYTES as u32) << 32, "hardware, and the size");
        assert_eq!((word(attr, 16), word(attr, 48), word(attr, 72)), (997, 7, 0b1001));
        assert_eq!(word(attr, 24), 0x987, "ip tid time cpu period branches");
        assert_ne!(word(attr, 40) & FLAG_EXCLUDE_KERNEL, 0, "branches of user code only");
        let clock = Attr::sampler(Form { source: Source::CpuClock, ..FORM });
        assert_eq!(word(clock, 24), 0x1a7, "a call chain instead");
        assert_eq!(word(clock, 40) & FLAG_EXCLUDE_KERNEL, 0);
        let flat = Attr::sampler(Form { source: Source::CpuClockFlat, user_only: true, ..FORM });
        assert_eq!(word(flat, 24), 0x187);
        assert_ne!(word(flat, 40) & FLAG_EXCLUDE_KERNEL, 0);
    }

    #[test]
    fn the_side_band_is_never_off_and_its_records_end_alike() {
        let side = Attr::side_band(FORM, true);
        assert_eq!(word(side, 40) & FLAG_DISABLED, 0);
        assert_ne!(word(side, 40) & FLAG_BUILD_ID, 0);
        assert_eq!(word(Attr::side_band(FORM, false), 40) & FLAG_BUILD_ID, 0);
        let tail = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU;
        assert_eq!(word(side, 24) & tail, word(Attr::sampler(FORM), 24) & tail);
    }
}
