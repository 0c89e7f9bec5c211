//! Values that the kernel takes and that ruin their host: a reserve of all its memory, a limit of threads below those
//! that run. The rows of the catalogue name their bound; here is what it comes to on a host.
//!
//! All steps of a plan are looked at together, since the mode of one row decides what the number of another means.

use planish_model::mounts::is_option;
use planish_model::{
    Bound, Catalogue, Class, Entry, Knob, KnobId, Observation, Part, Step, place, units::bytes,
};

use crate::budget::Budget;
use crate::{against, back, files, mounts};

/// `vm.min_free_kbytes` above this part of memory is refused. The kernel's own choice is below one percent on all but
/// the smallest machines (`mm/page_alloc.c`, `calculate_min_free_kbytes`), and huge pages on them want a few.
const FREE_PERCENT_MAX: u64 = 5;
/// Largest `vm.watermark_scale_factor`: a tenth of memory, all that kernels before 5.19 took.
const WATERMARK_MAX: u64 = 1000;
/// A limit of threads or files is never lower than this: a kernel of the smallest machine starts with more.
const ROOM_MIN: u64 = 1024;
/// No reader has more than this part of memory read ahead for it: 128 MiB of 8 GiB, a thousand times the default.
const READ_AHEAD_PART: u64 = 64;
/// The tables of one row take no more than this part of memory: a million flows of each of 16 queues on 16 GiB, more
/// than any guide of a card asks for.
const TABLE_PART: u64 = 64;
/// Bytes of a bucket of connections (`struct hlist_nulls_head`).
const BUCKET_BYTES: u64 = 8;
/// The first port without a privilege, where the kernel does not tell it (`PROT_SOCK` of include/net/sock.h).
const PORTS_FROM: u64 = 1024;
/// Identifiers of System V that there can be, and those with `ipcmni_extend` (`IPCMNI` of include/linux/ipc.h and
/// `IPCMNI_EXTEND` of ipc/util.h).
const IPC_IDS: [u64; 2] = [1 << 15, 1 << 24];
/// Requests that a scheduler has room for (`MAX_SCHED_RQ` of block/blk-mq-sched.h).
const SCHEDULED_MAX: u64 = 2048;
/// As many ports stay for connections that go out.
const PORTS_MIN: usize = 1024;
/// Percent of memory that may wait to be written where nobody allows more: the most that distributions set themselves
/// (tuned, `throughput-performance`).
const UNWRITTEN_PERCENT_MAX: u64 = 40;

/// How the ids of the three thresholds of the neighbour table begin.
const THRESHOLDS: &str = "net.ipv4.neigh.default.gc_thresh";

/// Whether a row is one of those.
pub(crate) fn is_threshold(id: &KnobId) -> bool {
    id.as_str().starts_with(THRESHOLDS)
}

/// Why these steps, as they stand on this host, must not be written; `None` for each that may.
#[must_use]
pub fn refusals(catalogue: &Catalogue, observation: &Observation, steps: &[Step]) -> Vec<Option<String>> {
    let after = After { observation, steps };
    let refusal = |step: &Step| {
        let knob = catalogue.knob(&step.knob).ok()?;
        let of_pool = || step.raise_pages.filter(|pages| *pages > 0).and_then(|_| after.promises());
        let of_mount = || after.room(step);
        beyond_range(observation, step)
            .or_else(of_mount)
            .or_else(|| after.neighbours(step))
            .or_else(|| files::refusal(observation, steps, step))
            .or_else(|| after.turned(catalogue, knob, step))
            .or_else(of_pool)
            .or_else(|| after.refusal(knob.bound?, step))
    };
    steps.iter().map(refusal).collect()
}

/// Why a host would hold its programs to less than they were promised already, once it has what these steps write: no
/// program could be started any more. Nothing where it holds them to no more now. Of a limit that is in force and that
/// no step writes the value of now must be among them: see [`holds`].
#[must_use]
pub fn starves(observation: &Observation, steps: &[Step]) -> Option<String> {
    let [most, promised] =
        After { observation, steps }.promised().filter(|[most, promised]| most < promised)?.map(bytes);
    Some(format!("in mode 2 {most} could be promised to programs, and {promised} are already"))
}

/// The mode that enforces a limit, or that a knob is itself, with the limits that it enforces; nothing for all others.
#[must_use]
pub fn holds<'a>(catalogue: &'a Catalogue, id: &KnobId) -> Option<(&'a Knob, &'a [KnobId])> {
    let mut modes = catalogue.modes().map(|(mode, enforces)| (mode, enforces.limits.as_slice()));
    modes.find(|(mode, limits)| mode.id == *id || limits.contains(id))
}

/// Steps that would ruin this host as it is now, with the reason. A plan that was made for another moment of it is
/// judged by this once more before it is written.
#[must_use]
pub fn ruinous(catalogue: &Catalogue, observation: &Observation, steps: &[Step]) -> Vec<(KnobId, String)> {
    let refusals = refusals(catalogue, observation, steps);
    let refused = steps.iter().zip(refusals).filter_map(|(step, why)| Some((step.knob.clone(), why?)));
    refused.collect()
}

/// The class of a value by itself, whatever else there is on the host.
#[must_use]
pub fn class_by_value(knob: &Knob, now: &str, wanted: &str) -> Class {
    match unsafe_way(knob.bound, now, wanted) {
        Some((class, _)) if knob.may_need_leave() => class,
        _ => knob.class,
    }
}

/// Why a limit needs more than its class says, and which class: it is safe to move it one way, and not the other.
pub(crate) fn unsafe_way(bound: Option<Bound>, now: &str, wanted: &str) -> Option<(Class, String)> {
    let restless = match bound {
        Some(Bound::Polls) => Some("no CPU would sleep any more, and all of them poll at full power"),
        Some(Bound::Rests) => Some("this thread of the kernel would never rest, and keep a CPU to itself"),
        _ => None,
    };
    if let Some(what) = restless {
        let is_new = wanted.trim() == "0" && now.trim() != "0";
        return is_new.then(|| (Class::Availability, format!("{what}: --allow availability")));
    }
    if bound == Some(Bound::WakeUp) {
        return longer_wake_up(now.trim(), wanted.trim());
    }
    let (now, wanted) = (numbers(now)?, numbers(wanted)?);
    let is_lower = now.iter().zip(&wanted).any(|(now, wanted)| wanted < now);
    let shown = || now.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let lowered = || {
        let reason = format!("it is lowered from {} and may stall the host: --allow availability", shown());
        (Class::Availability, reason)
    };
    match bound? {
        Bound::Threads
        | Bound::OpenFiles
        | Bound::Tracked
        | Bound::Limit
        | Bound::IpcIds
        | Bound::Buckets => is_lower.then(lowered),
        Bound::Largest => (wanted.last() < now.last()).then(lowered),
        Bound::Ports => (is_lower_count(&now, &wanted)).then(lowered),
        Bound::Age => (wanted > now).then(|| {
            let reason =
                format!("it is raised from {}, so that a power cut loses more: --allow durability", shown());
            (Class::Durability, reason)
        }),
        Bound::UnwrittenShare => (wanted > now && wanted[0] > UNWRITTEN_PERCENT_MAX).then(|| {
            let reason = format!(
                "more than {UNWRITTEN_PERCENT_MAX} % of memory could wait to be written, to be lost at a power cut and \
                 to stall every writer until the disk has it: --allow durability"
            );
            (Class::Durability, reason)
        }),
        Bound::Turn(most) => (wanted > now && wanted[0] > most).then(|| {
            let reason = format!(
                "above {most} one thread has a CPU, or one that waits turns round on it, for so long that all others \
                 stand still: --allow availability"
            );
            (Class::Availability, reason)
        }),
        Bound::WakeUp
        | Bound::Polls
        | Bound::Rests
        | Bound::Table(_)
        | Bound::Requests
        | Bound::FreeReserve
        | Bound::Watermarks
        | Bound::Promises
        | Bound::Unwritten
        | Bound::Kept
        | Bound::Surplus
        | Bound::ReadAhead
        | Bound::PagesOfHuge
        | Bound::Neighbours
        | Bound::BootCpu
        | Bound::CpusLeft => None,
    }
}

/// Of a limit of wake-ups that somebody set, and that would be longer or gone.
fn longer_wake_up(now: &str, wanted: &str) -> Option<(Class, String)> {
    let longest = |text: &str| match (text, number(text)) {
        ("n/a", _) => Some(0),
        (_, Some(0)) => Some(u64::MAX),
        (_, limit) => limit,
    };
    (longest(wanted)? > longest(now)?).then(|| {
        let unit = if now == "n/a" { "" } else { " us" };
        let reason = format!(
            "it is {now}{unit} by somebody's word, and wake-ups would be allowed to take longer: --allow availability"
        );
        (Class::Availability, reason)
    })
}

/// Why an amount of what may wait to be written is not needed: a share of memory is in force, which comes to less now,
/// and the amount would raise what it is to bound. Profiles name one amount for machines of all sizes. One that is
/// beyond all memory is no such case, and is refused.
///
/// The kernel takes the share of what is free or in the page cache (`global_dirtyable_memory` of
/// `mm/page-writeback.c`), which is about what it calls available. The other way round: [`ends_amount`].
pub(crate) fn is_less_now(knob: &Knob, observation: &Observation, now: &str, wanted: &str) -> Option<String> {
    let twin =
        knob.twin.as_ref().filter(|_| knob.bound == Some(Bound::Unwritten) && number(now) == Some(0))?;
    let share = number(observation.knobs.get(twin)?.first()?.value.as_deref()?).filter(|share| *share > 0)?;
    let (host, wanted) = (&observation.host, number(wanted)?);
    let most = part(host.available_bytes, share, 100);
    let is_raised = host.available_bytes > 0 && wanted > most && wanted <= host.memory_bytes;
    is_raised.then(|| {
        let [available, most, wanted] = [host.available_bytes, most, wanted].map(bytes);
        let id = &knob.id;
        format!(
            "not needed: {twin} is {share} %, which is {most} of the {available} available, and {wanted} would raise \
             that: --allow-knob {id} to have it so"
        )
    })
}

/// Why a share of memory needs more than its class says: an amount is in force, which nobody's default is, and what may
/// wait to be written would come to more than somebody wanted. The kernel drops the amount with the write. One that
/// open entries set counts as what was there before them.
pub(crate) fn ends_amount(
    knob: &Knob,
    observation: &Observation,
    open: &[Entry],
    wanted: &str,
) -> Option<(Class, String)> {
    let twin = knob.twin.as_ref().filter(|_| knob.bound == Some(Bound::UnwrittenShare))?;
    let there = observation.knobs.get(twin)?.first()?;
    let now = there.value.as_deref()?;
    let amount = number(back::before_ours(open, &there.place, now)).filter(|amount| *amount > 0)?;
    let (available, wanted) = (observation.host.available_bytes, number(wanted)?);
    // Of memory that nobody knows it may be more as well.
    let most = (available > 0).then(|| part(available, wanted, 100));
    most.is_none_or(|most| most > amount).then(|| {
        let comes_to = most
            .map_or_else(String::new, |most| format!(", {} of the {} available", bytes(most), bytes(available)));
        let reason = format!(
            "{twin} is {} by somebody's word, and would go for {wanted} %{comes_to}, so that a power cut loses more: \
             --allow durability",
            bytes(amount)
        );
        (Class::Durability, reason)
    })
}

/// Whether a range, from its first number to its last, holds fewer than another one.
fn is_lower_count(now: &[u64], wanted: &[u64]) -> bool {
    let count = |range: &[u64]| match range {
        [first, last] => last.saturating_sub(*first),
        _ => 0,
    };
    count(wanted) < count(now)
}

/// What the machine itself allows at a place.
fn beyond_range(observation: &Observation, step: &Step) -> Option<String> {
    let [least, most] = *observation.ranges.get(&step.place)?;
    let wanted = number(&step.wanted)?;
    if is_option(&step.place) {
        return None;
    }
    (!(least..=most).contains(&wanted))
        .then(|| format!("{wanted} is not among {least} to {most}, all that this machine has there"))
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(number).collect()
}

/// The host as it would be after all steps.
struct After<'a> {
    observation: &'a Observation,
    steps: &'a [Step],
}

impl After<'_> {
    fn refusal(&self, bound: Bound, step: &Step) -> Option<String> {
        match bound {
            Bound::Ports => return self.privileged(step).or_else(|| self.ports()),
            Bound::IpcIds => return self.ipc_ids(step),
            Bound::BootCpu => return self.boot_cpu(step),
            Bound::Kept => return self.kept(step),
            // Rounded up to a power of two: store_rps_dev_flow_table_cnt of net/core/net-sysfs.c, and
            // rps_sock_flow_sysctl of net/core/sysctl_net_core.c.
            Bound::Table(entry) => {
                let bytes_of =
                    |wanted: u64| wanted.checked_next_power_of_two().unwrap_or(wanted).saturating_mul(entry);
                return self.table(step, bytes_of);
            }
            Bound::Buckets => return self.table(step, |wanted| wanted.saturating_mul(BUCKET_BYTES)),
            _ => {}
        }
        let (wanted, now) = (number(&step.wanted)?, number(&step.now));
        let demand = &self.observation.demand;
        // However tight the host is: more threads or files than now, and less kept free, only ease it.
        let is_raised = now.is_some_and(|now| wanted >= now);
        let is_lowered = now.is_some_and(|now| wanted <= now);
        match bound {
            Bound::Threads | Bound::OpenFiles | Bound::Tracked if is_raised => None,
            Bound::FreeReserve | Bound::Watermarks if is_lowered => None,
            Bound::FreeReserve => self.free_reserve(wanted, now.unwrap_or(0)),
            Bound::Watermarks => self.watermarks(wanted),
            Bound::Threads => too_few(wanted, demand.threads, "threads"),
            Bound::OpenFiles => too_few(wanted, demand.open_files, "open files"),
            Bound::Tracked => too_few(wanted, demand.tracked, "connections"),
            Bound::Promises => self.promises(),
            Bound::Unwritten => self.unwritten(wanted).filter(|_| !is_lowered),
            Bound::Surplus => self.surplus(step),
            Bound::CpusLeft => self.cpus_left(step, wanted),
            Bound::ReadAhead => self.read_ahead(wanted).filter(|_| !is_lowered),
            Bound::PagesOfHuge => self.pages_of_huge(wanted),
            Bound::Requests => self.requests(step, wanted),
            Bound::Limit
            | Bound::IpcIds
            | Bound::Largest
            | Bound::Age
            | Bound::UnwrittenShare
            | Bound::Ports
            | Bound::BootCpu
            | Bound::Neighbours
            | Bound::WakeUp
            | Bound::Polls
            | Bound::Rests
            | Bound::Turn(_)
            | Bound::Table(_)
            | Bound::Buckets
            | Bound::Kept => None,
        }
    }

    /// The step of the plan for a knob of one place.
    fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.knob.as_str() == id)
    }

    /// What it sets that knob to.
    fn value(&self, id: &str) -> Option<u64> {
        number(&self.step(id)?.wanted)
    }

    fn free_reserve(&self, wanted_kib: u64, now_kib: u64) -> Option<String> {
        let (memory, available) = (self.observation.host.memory_bytes, self.observation.host.available_bytes);
        let [wanted, now] = [wanted_kib, now_kib].map(|kib| kib.saturating_mul(1024));
        let more = wanted.saturating_sub(now);
        if wanted > memory / 100 * FREE_PERCENT_MAX {
            let [wanted, memory] = [wanted, memory].map(bytes);
            return Some(format!(
                "{wanted} of {memory} would be for nobody, and more than {FREE_PERCENT_MAX} % runs a machine out of \
                 memory"
            ));
        }
        (more > available / 2).then(|| {
            let [more, available] = [more, available].map(bytes);
            format!("{more} more would be kept free, and only {available} are available")
        })
    }

    fn watermarks(&self, wanted: u64) -> Option<String> {
        let host = &self.observation.host;
        // The high watermark lies two distances above the low reserve (`__setup_per_zone_wmarks`).
        let kept = (host.memory_bytes / 10_000).saturating_mul(wanted.saturating_mul(2));
        (wanted > WATERMARK_MAX || kept > host.available_bytes / 2).then(|| {
            let [kept, available] = [kept, host.available_bytes].map(bytes);
            format!("reclaim would keep up to {kept} free, and {available} are available")
        })
    }

    /// What may wait to be written. Beyond what memory can hold it is no limit at all. What memory can hold in part is
    /// refused to nobody: where it would raise the share that is in force, it is not needed ([`is_less_now`]).
    fn unwritten(&self, wanted: u64) -> Option<String> {
        let memory = self.observation.host.memory_bytes;
        (memory > 0 && wanted > memory).then(|| {
            let [wanted, memory] = [wanted, memory].map(bytes);
            format!("{wanted} could wait to be written, and the memory is {memory}")
        })
    }

    /// Mode 2 alone holds promises to a limit (`mm/util.c`, `__vm_enough_memory`): below what is promised already, no
    /// program can be started any more, nor one that would set it back.
    fn promises(&self) -> Option<String> {
        let [most, promised] = self.promised()?;
        (most < promised.saturating_add(promised / 10)).then(|| {
            let [most, promised] = [most, promised].map(bytes);
            format!(
                "{most} could be promised to programs, and {promised} are already: a tenth more is needed"
            )
        })
    }

    /// What could be promised in bytes, and what is; nothing where no limit holds, or one that is no lower than now.
    fn promised(&self) -> Option<[u64; 2]> {
        let (host, demand) = (&self.observation.host, &self.observation.demand);
        if self.value("vm.overcommit_memory").or(demand.overcommit_mode)? != 2 {
            return None;
        }
        // What is in use is promised at least.
        let in_use = host.memory_bytes.saturating_sub(host.available_bytes);
        let promised = demand.promised_bytes.unwrap_or(in_use);
        let most = self.promises_max()?;
        // A host of this mode that could promise less until now is not worse off.
        if demand.overcommit_mode == Some(2) && demand.promises_bytes_max.is_some_and(|now| most >= now) {
            return None;
        }
        Some([most, promised])
    }

    /// What mode 2 would let be promised (`mm/util.c`, `vm_commit_limit`): an amount, or a share of the memory that is
    /// in no pool, and all swap space besides.
    fn promises_max(&self) -> Option<u64> {
        let demand = &self.observation.demand;
        let unpooled = self.unpooled();
        let left = unpooled.saturating_sub(self.raised());
        // Who writes one of the two clears the other, also with a zero, and the ratio is written behind the amount. Of
        // two that go back the one that is in force is written alone.
        let amount = self.value("vm.overcommit_kbytes");
        let is_cleared = |ratio: &&Step| {
            let is_zero = number(&ratio.wanted) == Some(0) && amount.is_some_and(|kib| kib > 0);
            is_zero && ratio.part == Some(Part::Back)
        };
        let ratio = self.step("vm.overcommit_ratio").filter(|ratio| !is_cleared(ratio));
        let own = match (amount, ratio.and_then(|ratio| number(&ratio.wanted))) {
            (_, Some(percent)) => part(left, percent, 100),
            (Some(kib), None) => kib.saturating_mul(1024),
            (None, None) => {
                let now = demand.promises_bytes_max?.saturating_sub(demand.swap_bytes);
                let is_amount = demand.overcommit_kib.is_some_and(|kib| kib > 0);
                // A pool takes its share of the limit, and nothing of an amount.
                if is_amount { now } else { part(now, left, unpooled) }
            }
        };
        Some(own.saturating_add(demand.swap_bytes))
    }

    /// Memory that is in no pool of huge pages now.
    fn unpooled(&self) -> u64 {
        let pools = self.observation.pools.iter().map(|pool| pool.pages.saturating_mul(pool.page_bytes));
        self.observation.host.memory_bytes.saturating_sub(pools.fold(0, u64::saturating_add))
    }

    /// What a tmpfs may hold: no less than its files take, and no more than there can be beside the pools.
    fn room(&self, step: &Step) -> Option<String> {
        let range = *self.observation.ranges.get(&step.place).filter(|_| is_option(&step.place))?;
        let wanted = number(&step.wanted)?;
        let is_raised = number(&step.now).is_none_or(|now| wanted > now);
        let left = self.unpooled().saturating_sub(self.raised());
        let pooled = || Budget::beside_pools(&self.observation.host, left).refusal(wanted);
        mounts::beyond_room(wanted, range).or_else(|| {
            let why = pooled().filter(|_| is_raised)?;
            Some(format!("its files could take what cannot be there: {why}"))
        })
    }

    /// Bytes that the pools of the plan take besides.
    fn raised(&self) -> u64 {
        let page_bytes = |place: &str| {
            let pool = self.observation.pools.iter().find(|pool| pool.place == place);
            pool.map_or(0, |pool| pool.page_bytes)
        };
        let raise = |step: &Step| Some(step.raise_pages?.saturating_mul(page_bytes(&step.place)));
        self.steps.iter().filter_map(raise).fold(0, u64::saturating_add)
    }

    /// The kernel refuses a range that begins with ports which need a privilege (`ipv4_local_port_range` of
    /// `net/ipv4/sysctl_net_ipv4.c`).
    fn privileged(&self, step: &Step) -> Option<String> {
        let [first, _] = *numbers(&step.wanted)? else { return None };
        let from = self.observation.demand.ports_from.unwrap_or(PORTS_FROM);
        (first < from).then(|| {
            format!(
                "port {first} needs a privilege, which net.ipv4.ip_unprivileged_port_start says: {from} is the lowest"
            )
        })
    }

    /// A kernel has no more identifiers than it has bits for (`ipc_mni` of `ipc/ipc_sysctl.c`).
    fn ipc_ids(&self, step: &Step) -> Option<String> {
        let wanted = *numbers(&step.wanted)?.last()?;
        let [few, many] = IPC_IDS;
        let is_few = self.observation.demand.ipc_extended == Some(false);
        let most = if is_few { few } else { many };
        let cure = if is_few && wanted <= many { ": boot with `ipcmni_extend` to have more" } else { "" };
        (wanted > most).then(|| format!("{wanted} are wanted, and this kernel has {most} at most{cure}"))
    }

    /// With a scheduler a queue has at most so many requests, and without one as many as its device, which no file
    /// tells (`queue_requests_store` of `block/blk-sysfs.c`).
    fn requests(&self, step: &Step, wanted: u64) -> Option<String> {
        let place = format!("{}scheduler", step.place.strip_suffix("nr_requests")?);
        let planned = self.steps.iter().find(|other| other.place == place).map(|other| other.wanted.as_str());
        let now = || self.observation.reading(&KnobId::new(against::SCHEDULER), &place)?.value.as_deref();
        let shown = planned.or_else(now)?;
        let is_none = shown.trim() == "none" || shown.contains("[none]");
        (!is_none && wanted > SCHEDULED_MAX)
            .then(|| format!("a queue with a scheduler takes {SCHEDULED_MAX} requests at most"))
    }

    /// Ports of connections that go out: without any, this host reaches nobody, its name server least of all.
    fn ports(&self) -> Option<String> {
        const RANGE: &str = "net.ipv4.ip_local_port_range";
        const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";
        let demand = &self.observation.demand;
        let (range, reserved) =
            (demand.port_range.as_deref()?, demand.ports_reserved.as_deref().unwrap_or_default());
        let planned =
            |id: &str| Some(self.steps.iter().find(|step| step.knob.as_str() == id)?.wanted.as_str());
        let now = ports_left(range, reserved)?;
        let left = ports_left(planned(RANGE).unwrap_or(range), planned(RESERVED).unwrap_or(reserved))?;
        // A host that has few as it is may lose a few of them.
        (left < PORTS_MIN.min(now / 2 + 1) && left < now).then(|| {
            format!(
                "{left} ports would be left for connections that go out, and at least {PORTS_MIN} have to be"
            )
        })
    }

    /// A partition has its CPUs to itself, and all that runs elsewhere loses them.
    fn boot_cpu(&self, step: &Step) -> Option<String> {
        let groups = &self.observation.machine.as_ref()?.partitions.with_boot_cpu;
        let is_own =
            |group: &&String| step.place.strip_prefix("/sys/fs/cgroup/")?.strip_prefix(group.as_str());
        let group = groups.iter().find(|group| is_own(group).is_some_and(|rest| rest.starts_with('/')))?;
        let is_member = step.wanted.trim() == "member";
        (!is_member).then(|| format!("`{group}` has CPU 0, which starts this host and keeps house"))
    }

    /// What units keep together: reclaim passes over it, and with nothing left to take somebody is killed.
    fn kept(&self, step: &Step) -> Option<String> {
        let kept = |text: &str| if text.trim() == "infinity" { Some(u64::MAX) } else { number(text) };
        // A smaller promise than now only eases the host.
        if kept(&step.wanted)? <= kept(&step.now).unwrap_or(0) {
            return None;
        }
        let of_row = self.steps.iter().filter(|other| other.knob == step.knob);
        let together = of_row.filter_map(|other| kept(&other.wanted)).fold(0, u64::saturating_add);
        let why = Budget::at_boot(&self.observation.host).refusal(together)?;
        Some(format!("units would keep what cannot be there: {why}"))
    }

    fn surplus(&self, step: &Step) -> Option<String> {
        // A smaller allowance is none that anybody could come to harm by.
        if number(&step.wanted)? <= number(&step.now).unwrap_or(0) {
            return None;
        }
        let allowed = |step: &Step| Some(number(&step.wanted)?.saturating_mul(page_bytes(&step.place)?));
        let surplus = self.steps.iter().filter(|other| is_surplus(other)).filter_map(allowed);
        let together = surplus.fold(self.raised(), u64::saturating_add);
        let why = Budget::of(&self.observation.host).refusal(together)?;
        Some(format!("programs could map what cannot be there: {why}"))
    }

    /// Every stream has so much read for it before it asks: the cache of all others makes room.
    fn read_ahead(&self, wanted_kib: u64) -> Option<String> {
        let memory = self.observation.host.memory_bytes;
        let wanted = wanted_kib.saturating_mul(1024);
        (memory > 0 && wanted > memory / READ_AHEAD_PART).then(|| {
            let [wanted, memory] = [wanted, memory].map(bytes);
            format!(
                "{wanted} of {memory} would be read for each stream: at most a {READ_AHEAD_PART}th of memory"
            )
        })
    }

    /// What the tables of all places of a row take. The kernel makes each of them whole before it gives back the one
    /// that was there, and has programs killed where memory is short (`vmalloc` and `kvmalloc` with `GFP_KERNEL`).
    fn table(&self, step: &Step, bytes_of: impl Fn(u64) -> u64) -> Option<String> {
        let takes = |step: &Step| {
            let wanted = number(&step.wanted)?;
            number(&step.now).is_none_or(|now| wanted > now).then(|| bytes_of(wanted))
        };
        takes(step)?;
        let of_row = self.steps.iter().filter(|other| other.knob == step.knob);
        let together = of_row.filter_map(takes).fold(0, u64::saturating_add);
        let (memory, available) = (self.observation.host.memory_bytes, self.observation.host.available_bytes);
        let available = available.saturating_sub(self.raised());
        (memory > 0 && together > (memory / TABLE_PART).min(available / 2)).then(|| {
            let [together, memory, available] = [together, memory, available].map(bytes);
            format!(
                "its tables would take {together} of the kernel's own memory: at most a {TABLE_PART}th of {memory}, \
                 and half of the {available} available"
            )
        })
    }

    /// `mm/khugepaged.c` refuses a number of small pages that no huge page has (`max_ptes_none_store` and its like).
    fn pages_of_huge(&self, wanted: u64) -> Option<String> {
        let host = &self.observation.host;
        let pages = host.thp_bytes?.checked_div(host.page_bytes)?;
        (wanted >= pages).then(|| format!("a huge page here is {pages} small ones: at most {}", pages - 1))
    }

    /// Whoever is between two thresholds that are the wrong way round is never forgotten, and beyond the third nobody
    /// new is spoken to. One that is moved is held against those that stay, too.
    fn neighbours(&self, step: &Step) -> Option<String> {
        let own = step.knob.as_str().strip_prefix(THRESHOLDS)?;
        let now = self.observation.demand.neighbours?;
        let after = [1, 2, 3]
            .map(|index: usize| self.value(&format!("{THRESHOLDS}{index}")).unwrap_or(now[index - 1]));
        let is_turned = |low: usize| after[low] > after[low + 1] && now[low] <= now[low + 1];
        let low = [0, 1]
            .into_iter()
            .find(|low| is_turned(*low) && [low + 1, low + 2].iter().any(|index| own == index.to_string()))?;
        let (first, second) = (low + 1, low + 2);
        Some(format!(
            "gc_thresh{first} would be {} and gc_thresh{second} {}: none may be above the next",
            after[low],
            after[low + 1]
        ))
    }

    /// A lowest above its highest, of which a plan moves one and the other one stays: of what waits to be written the
    /// kernel takes half of the highest then (`domain_dirty_limits` of `mm/page-writeback.c`), and of the speed of a
    /// CPU it takes the highest for both.
    fn turned(&self, catalogue: &Catalogue, knob: &Knob, step: &Step) -> Option<String> {
        let id = step.knob.as_str();
        let holes = place::captures(&knob.path, &step.place)?;
        let of_pair = |[low, high]: [&'static str; 2]| match id {
            _ if id == low => Some((high, true)),
            _ if id == high => Some((low, false)),
            _ => None,
        };
        against::lowest_and_highest().filter_map(of_pair).find_map(|(other, is_lowest)| {
            let beside = catalogue.knob(&KnobId::new(other)).ok()?;
            let at = place::fill(&beside.path, &holes);
            let is_moved = |step: &&Step| step.place == at || beside.twin.as_ref() == Some(&step.knob);
            let moved: Vec<&Step> = self.steps.iter().filter(is_moved).collect();
            if !against::is_one_unit(knob, beside) || moved.iter().any(|step| step.part != Some(Part::Back)) {
                return None;
            }
            // A twin that is not in force shows zero.
            let in_force = |text: &str| number(text).filter(|value| *value > 0 || beside.twin.is_none());
            let back = moved.iter().find(|step| step.place == at);
            let there = match (back, moved.is_empty()) {
                (Some(step), _) => in_force(&step.wanted)?,
                (None, true) => in_force(self.observation.reading(&beside.id, &at)?.value.as_deref()?)?,
                // Its twin comes into force.
                (None, false) => return None,
            };
            let wanted = in_force(&step.wanted)?;
            let is_above = |own: u64| if is_lowest { own > there } else { own < there };
            let was_above = in_force(&step.now).is_some_and(is_above);
            (is_above(wanted) && !was_above).then(|| {
                let (side, end) = if is_lowest { ("above", "highest") } else { ("below", "lowest") };
                let stays = if back.is_some() { "goes back to" } else { "stays at" };
                format!("{wanted} is {side} {other}, the {end}, which {stays} {there}: want both")
            })
        })
    }

    fn cpus_left(&self, step: &Step, wanted: u64) -> Option<String> {
        let switched = |to: &str| {
            let of_row = self.steps.iter().filter(|other| other.knob == step.knob);
            u32::try_from(of_row.filter(|other| other.wanted.trim() == to).count()).unwrap_or(u32::MAX)
        };
        let online = self.observation.host.cpus_online;
        let left = online.saturating_add(switched("1")).saturating_sub(switched("0"));
        (wanted == 0 && left.saturating_mul(2) < online)
            .then(|| format!("of {online} CPUs {left} would be left, and half of them have to stay"))
    }
}

/// So many parts of a number of which `all` are the whole.
fn part(of: u64, parts: u64, all: u64) -> u64 {
    let product = u128::from(of) * u128::from(parts);
    u64::try_from(product / u128::from(all.max(1))).unwrap_or(u64::MAX)
}

fn is_surplus(step: &Step) -> bool {
    step.place.ends_with("/nr_overcommit_hugepages")
}

/// The size of the pages of a pool, by the name of its folder: `hugepages-2048kB`.
fn page_bytes(place: &str) -> Option<u64> {
    let folder = place.rsplit('/').nth(1)?;
    let kib: u64 = folder.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// How many ports of a range are not reserved: `32768 60999` without `8080,9148-9150`.
fn ports_left(range: &str, reserved: &str) -> Option<usize> {
    let port = |text: &str| text.trim().parse::<u16>().ok().map(usize::from);
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    let (first, last) = (port(first)?, port(last)?);
    let reserved = reserved.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((port(first)?, port(last)?))
    });
    let mut reserved: Vec<(usize, usize)> = reserved.collect();
    reserved.sort_unstable();
    let (mut left, mut next) = ((last + 1).saturating_sub(first), first);
    for (from, to) in reserved {
        let (from, end) = (from.max(next), to.min(last) + 1);
        if from < end {
            left -= end - from;
            next = end;
        }
    }
    Some(left)
}

/// Why a limit of the whole host is too low for what runs on it, and for half of it once more at a restart.
fn too_few(wanted: u64, now: Option<u64>, what: &str) -> Option<String> {
    let least = now.unwrap_or(0).saturating_mul(2).max(ROOM_MIN);
    let here = now.map(|now| format!(", and there are {now} now")).unwrap_or_default();
    (wanted < least).then(|| format!("{wanted} are too few {what}{here}: at least {least}"))
}

#[cfg(test)]
mod tests;
