//! What launcher and preload tell each other: settings in one environment variable, results in datagrams.
//!
//! Included by both sides, so it needs nothing but `core`.

/// The variable that holds the settings: pairs of a key, of which the first letter counts, and a value:
/// `bytes=16777216:mode=3:nodes=0+1:weights=0x1+1x1:huge=2097152:threads=2:limit=...:group=...:spare=...:answer=...`.
pub const VARIABLE: &[u8] = b"PLANISH_SHM";
/// First word of a datagram; its last byte is the version of the layout.
pub const MAGIC: u64 = u64::from_be_bytes(*b"planish\x01");

/// What the preload did with one segment, or what it was kept from; sent once for each, and before that for one whose
/// filling takes long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Notice {
    /// [`MAGIC`].
    pub magic: u64,
    /// First address in the process that mapped it.
    pub address: u64,
    /// Length of the mapping in bytes.
    pub bytes: u64,
    /// Time that placing and prefaulting took; 0 where nothing is prefaulted.
    pub nanoseconds: u64,
    /// The process by its number where the launcher is: 0 as it is sent, since who sends it may know another one. The
    /// kernel names it to who receives it.
    pub pid: u32,
    /// One of the `KIND_*`.
    pub kind: u32,
    /// Threads that prefaulted; 0 where nothing was.
    pub threads: u32,
    /// Why nothing was prefaulted: one of the `SKIP_*`.
    pub skipped: u32,
    /// Error number of mbind(2); 0 where it was done or not asked for.
    pub policy_errno: i32,
    /// Error number of the prefault; 0 where it was done or not asked for.
    pub prefault_errno: i32,
    /// Error number of the huge pages; 0 where they were had or not asked for.
    pub huge_errno: i32,
    /// Chunks that could not be collapsed into a transparent huge page.
    pub small_chunks: u32,
}

/// How the kernel names the memfd that ZGC, a collector of the JVM, has its heap in: mapped as shared memory, since
/// more than one address is of each page. It is no segment.
pub const HEAP_OF_JAVA: &[u8] = b"/memfd:java_heap";

/// `mmap` of MAP_SHARED|MAP_ANONYMOUS.
pub const KIND_ANONYMOUS: u32 = 1;
/// `mmap` of a memfd or of a file on tmpfs or hugetlbfs.
pub const KIND_FILE: u32 = 2;
/// `shmat`.
pub const KIND_SYSV: u32 = 3;

/// It was prefaulted, or nobody asked for it.
pub const SKIP_NOT: u32 = 0;
/// Another process has filled it.
pub const SKIP_FILLED: u32 = 1;
/// It is more than the memory that is available.
pub const SKIP_ROOM: u32 = 2;
/// The program wants it sparse (MAP_NORESERVE).
pub const SKIP_SPARSE: u32 = 3;
/// No thread could be started.
pub const SKIP_THREADS: u32 = 4;
/// It is more than its control group has left.
pub const SKIP_GROUP: u32 = 5;
/// Not yet: it is being filled, and a second notice of it follows.
pub const SKIP_YET: u32 = 6;
/// It has this policy already, by another process or by a former start.
pub const SKIP_PLACED: u32 = 7;

const _: () = assert!(size_of::<Notice>() == 64, "the layout of a datagram is fixed");
