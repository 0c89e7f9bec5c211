//! Bounds that a number of the catalogue cannot express: what a host may be asked for follows from what it is and from
//! what runs on it. A row names its bound; the arithmetic is in `planish-decide`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Beyond which a wanted value would ruin its host, though the kernel takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// KiB that nobody may use: a small part of memory, and less than half of what is available.
    FreeReserve,
    /// Distance of the watermarks in 1/10000 of memory, of which reclaim keeps twice as much free.
    Watermarks,
    /// Threads of the whole host, or their numbers: more than run now, with room.
    Threads,
    /// Open files of the whole host: more than are open now, with room.
    OpenFiles,
    /// Tracked connections of the whole host: more than are tracked now, with room.
    Tracked,
    /// A limit that nothing tells the use of: it is raised freely, and to lower it may stop what runs.
    Limit,
    /// Such a limit of identifiers of System V, or several numbers of which the last is one: no more than the kernel
    /// has.
    IpcIds,
    /// Several numbers, of which the last is such a limit. Those before it say where the kernel begins, which moves by
    /// itself, and what it keeps when memory is short, which the least of the row bounds.
    Largest,
    /// Ports of connections that go out: enough of them are in the range and not reserved.
    Ports,
    /// How long written data may wait: more of it is lost at a power cut.
    Age,
    /// Bytes that may wait to be written: no more than the memory, and, where the twin in percent is in force, no more
    /// than that comes to now.
    Unwritten,
    /// The same in percent: above what distributions set, and above the twin in bytes where that is in force, more is
    /// lost at a power cut.
    UnwrittenShare,
    /// How much memory may be promised: more than is promised now, where promises are held to it.
    Promises,
    /// Bytes that units keep whatever the host needs: together no more than memory can give.
    Kept,
    /// Pages that programs may map and nobody has set aside: no more than memory can give.
    Surplus,
    /// How long a wake-up may take, `n/a` nothing at all and 0 without a limit: shorter freely, and to make it longer
    /// takes back what somebody asked for.
    WakeUp,
    /// How long a wake-up of any CPU may take, of which 0 lets none of them sleep.
    Polls,
    /// KiB that each reader has read for it: a small part of memory.
    ReadAhead,
    /// Entries of a table that the kernel makes at each place of the row, and the bytes of one: all of them together a
    /// small part of memory.
    Table(u64),
    /// Buckets of such a table, with a pointer each: as bounded, and fewer of them make the way to each entry longer.
    Buckets,
    /// How long a thread of the kernel rests, of which 0 lets it never.
    Rests,
    /// How long a turn on a CPU lasts, of a thread that works or of one that waits awake, in the unit of the row: so
    /// long freely, and longer all others wait for it.
    Turn(u64),
    /// Requests of a queue: no more than a scheduler takes, where the queue has one.
    Requests,
    /// Small pages of a huge one that may be missing, swapped out or shared: fewer than it has.
    PagesOfHuge,
    /// Thresholds of the neighbour table: none above the next one.
    Neighbours,
    /// A group of CPUs that leave all others: not CPU 0, which keeps house.
    BootCpu,
    /// CPUs that are taken offline: half of them stay.
    CpusLeft,
}

/// What is asked of a host now: a limit below it would stop what runs. What the kernel did not tell is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Demand {
    /// Threads that there are (`/proc/loadavg`, the number behind the slash).
    pub threads: Option<u64>,
    /// Files that are open (`/proc/sys/fs/file-nr`, the first number).
    pub open_files: Option<u64>,
    /// The highest limit of open files that a process may have (`/proc/sys/fs/nr_open`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_each: Option<u64>,
    /// What is given to programs of open files, where a plan asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_limits: Option<FileLimits>,
    /// Connections that are tracked (`/proc/sys/net/netfilter/nf_conntrack_count`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracked: Option<u64>,
    /// First and last port of connections that go out (`net.ipv4.ip_local_port_range`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range: Option<String>,
    /// Those of them that are reserved (`net.ipv4.ip_local_reserved_ports`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports_reserved: Option<String>,
    /// The first port that needs no privilege (`net.ipv4.ip_unprivileged_port_start`): none below it goes out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports_from: Option<u64>,
    /// Whether the kernel was told to have many identifiers of System V (`ipcmni_extend`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipc_extended: Option<bool>,
    /// The three thresholds of the neighbour table of IPv4, from the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<[u64; 3]>,
    /// Memory that is promised (`Committed_AS`).
    pub promised_bytes: Option<u64>,
    /// What may be promised in mode 2 of `vm.overcommit_memory`, as the host is set now (`CommitLimit`).
    pub promises_bytes_max: Option<u64>,
    /// Swap space in all.
    pub swap_bytes: u64,
    /// `vm.overcommit_memory`.
    pub overcommit_mode: Option<u64>,
    /// `vm.overcommit_kbytes`: zero where `vm.overcommit_ratio` makes the limit.
    pub overcommit_kib: Option<u64>,
}

/// Limits of open files that files of the host give: a program that is given more than the kernel lets any have does
/// not start, and a user is not let in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLimits {
    /// Whether process 1 is systemd, which gives its units a limit of its own where no file says one.
    pub systemd: bool,
    /// What systemd is told to give every unit that says nothing (`DefaultLimitNOFILE=`), and the file and line.
    pub default: Option<(String, String)>,
    /// The highest that a file gives a service, or a user at log-in, and the file and line.
    pub highest: Option<(String, String)>,
}
