//! What sampling asks of an event, and on whom it is opened. Source: include/uapi/linux/perf_event.h.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::Source;
use super::access::{AccessEvent, AccessEvents};
use crate::perf_event::{
    self, Attr, FLAG_DISABLED, FLAG_EXCLUDE_KERNEL, FLAG_INHERIT, Place, TYPE_HARDWARE, TYPE_SOFTWARE,
};

const HARDWARE_CYCLES: u64 = 0;
const SOFTWARE_CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_DUMMY`: counts nothing and carries the records of mappings, names and forks.
const SOFTWARE_DUMMY: u64 = 9;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_PERIOD: u64 = 1 << 8;
const SAMPLE_BRANCH_STACK: u64 = 1 << 11;
const SAMPLE_WEIGHT: u64 = 1 << 14;
const SAMPLE_DATA_SRC: u64 = 1 << 15;
const SAMPLE_PHYS_ADDR: u64 = 1 << 19;

const BRANCH_USER: u64 = 1;
const BRANCH_ANY: u64 = 1 << 3;

const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_EXCLUDE_IDLE: u64 = 1 << 7;
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_WATERMARK: u64 = 1 << 14;
const FLAG_PRECISE_SHIFT: u32 = 15;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
const FLAG_MMAP2: u64 = 1 << 23;
const FLAG_COMM_EXEC: u64 = 1 << 24;
/// Linux 5.12; an older kernel answers EINVAL.
const FLAG_BUILD_ID: u64 = 1 << 34;

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
    /// What is opened for [`Source::Accesses`].
    pub accesses: AccessEvents,
    /// Of accesses: whether their physical address is told, which needs the right to see it.
    pub physical: bool,
}

impl Attr {
    /// The event whose samples are wanted; it starts disabled.
    pub(super) fn sampler(form: Form) -> Self {
        let Form { source, rate_hz, .. } = form;
        let (kind, config) = match source {
            Source::Accesses => return Self::accesses(form, form.accesses.loads),
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
            Source::CpuClockFlat | Source::Accesses => (0, 0),
        };
        let attr = Self { sample_period: rate_hz, branch_sample_type, ..Self::new(kind, config) };
        attr.common(form, flags, extra)
    }

    /// An event of accesses. All of one recording have the same fields, so that a reader knows one layout.
    pub(super) fn accesses(form: Form, event: AccessEvent) -> Self {
        let mut flags = FLAG_DISABLED | FLAG_FREQUENCY | event.precise << FLAG_PRECISE_SHIFT;
        if event.can_exclude {
            flags |= FLAG_EXCLUDE_HYPERVISOR;
        }
        if form.user_only {
            flags |= FLAG_EXCLUDE_KERNEL;
        }
        let physical = if form.physical { SAMPLE_PHYS_ADDR } else { 0 };
        let fields = SAMPLE_ADDR | SAMPLE_WEIGHT | SAMPLE_DATA_SRC | physical;
        let AccessEvent { kind, config, config1, .. } = event;
        Self { sample_period: form.rate_hz, config1, ..Self::new(kind, config) }.common(form, flags, fields)
    }

    /// The event whose group loads must be in on some CPUs: it samples nothing.
    pub(super) fn leader(event: AccessEvent) -> Self {
        Self { flags: FLAG_DISABLED, config1: event.config1, ..Self::new(event.kind, event.config) }
    }

    /// The event that carries mappings, names and forks: always on, so that a pause of the samples loses none.
    pub(super) fn side_band(form: Form, with_build_ids: bool) -> Self {
        let mut flags = FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HYPERVISOR;
        flags |= FLAG_MMAP | FLAG_MMAP2 | FLAG_COMM | FLAG_COMM_EXEC | FLAG_TASK;
        if with_build_ids {
            flags |= FLAG_BUILD_ID;
        }
        Self::new(TYPE_SOFTWARE, SOFTWARE_DUMMY).common(form, flags, 0)
    }

    /// What both have alike. Who, when and where must be the same bits in both, because a reader knows one layout.
    fn common(self, form: Form, flags: u64, sample_type: u64) -> Self {
        let inherit = if form.inherit { FLAG_INHERIT } else { 0 };
        Self {
            sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_PERIOD | sample_type,
            flags: flags | inherit | FLAG_SAMPLE_ID_ALL | FLAG_WATERMARK,
            wakeup_watermark: form.watermark_bytes,
            ..self
        }
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
    open_in(attr, whom, cpu, None)
}

/// Opens the events of a source on one CPU, those that give samples first.
pub(super) fn open_source(form: Form, whom: Whom, cpu: u32) -> Result<Vec<OwnedFd>, Errno> {
    if form.source != Source::Accesses {
        return open(&Attr::sampler(form), whom, cpu).map(|event| vec![event]);
    }
    let leader = form.accesses.leader.map(|event| open(&Attr::leader(event), whom, cpu)).transpose()?;
    let mut events = vec![open_in(&Attr::sampler(form), whom, cpu, leader.as_ref())?];
    if let Some(stores) = form.accesses.stores {
        events.push(open(&Attr::accesses(form, stores), whom, cpu)?);
    }
    events.extend(leader);
    Ok(events)
}

fn open_in(attr: &Attr, whom: Whom, cpu: u32, leader: Option<&OwnedFd>) -> Result<OwnedFd, Errno> {
    let (pid, flags) = match whom {
        Whom::Thread(tid) => (tid, 0),
        Whom::Cgroup(fd) => (fd, OPEN_PID_CGROUP),
        Whom::All => (-1, 0),
    };
    let cpu = i32::try_from(cpu).map_err(|_| Errno::INVAL)?;
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    perf_event::open(attr, Place { pid, cpu, group }, flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_event::ATTRIBUTE_BYTES;

    const NO_EVENT: AccessEvent =
        AccessEvent { kind: 0, config: 0, config1: 0, precise: 0, can_exclude: false };
    const FORM: Form = Form {
        source: Source::Branches,
        rate_hz: 997,
        user_only: false,
        inherit: true,
        watermark_bytes: 7,
        accesses: AccessEvents { loads: NO_EVENT, stores: None, leader: None },
        physical: false,
    };

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
    fn accesses_have_an_address_a_source_and_a_weight() {
        let loads = AccessEvent { kind: 4, config: 0x1cd, config1: 30, precise: 2, can_exclude: true };
        let form =
            Form { source: Source::Accesses, accesses: AccessEvents { loads, ..FORM.accesses }, ..FORM };
        let attr = Attr::sampler(form);
        assert_eq!((attr.kind, attr.config, attr.config1), (4, 0x1cd, 30));
        assert_eq!(attr.sample_type, 0xc18f, "ip tid time addr cpu period weight source");
        assert_eq!(attr.flags >> FLAG_PRECISE_SHIFT & 3, 2);
        let physical = Attr::sampler(Form { physical: true, ..form });
        assert_eq!(physical.sample_type, 0x8c18f);
        let ibs = Attr::accesses(form, AccessEvent { can_exclude: false, precise: 0, ..loads });
        assert_eq!(ibs.flags & (FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HYPERVISOR), 0, "IBS takes no such wish");
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
