//! A process of our own with memory as a test wants it: this test program once more, told what to do by its
//! environment.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::ptr::null_mut;

use planish_sys::{Advice, MapOptions, Mapping, PageRequest, map_anonymous, pages};
use rustix::mm::{MapFlags, ProtFlags};

const ROLE: &str = "PLANISH_ACTOR";

/// A process that stands still until it is dropped.
pub struct Actor {
    child: Child,
    stdin: Option<ChildStdin>,
    /// What it said once it stood.
    pub line: String,
}

impl Actor {
    /// Starts one in `role`, with arguments after a blank; ready when this returns.
    pub fn start(role: &str) -> Self {
        let program = std::env::current_exe().expect("a test knows its own path");
        let mut child = Command::new(program)
            .args(["--exact", "actor::plays_a_role", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test program runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let ready = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, told) = line.split_once("ACTOR ")?;
            Some(told.to_owned())
        });
        let line = ready.unwrap_or_else(|| panic!("the actor `{role}` ended: {:?}", child.wait()));
        let actor = Self { stdin: child.stdin.take(), child, line };
        actor.settle();
        actor
    }

    /// Waits until it has taken its last fault: it speaks before it sleeps.
    fn settle(&self) {
        let faults = || self.file("stat").split(' ').nth(9).map(str::to_owned);
        let mut before = faults();
        loop {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let now = faults();
            if now == before && self.file("status").contains("State:\tS") {
                return;
            }
            before = now;
        }
    }

    /// Whether it has not ended.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("it is ours").is_none()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A file of its folder in /proc.
    #[expect(clippy::disallowed_methods, reason = "a test asks the kernel itself")]
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.pid())).expect("it stands still")
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some((_, name)) = self.line.split_once(" /dev/shm/planish-segment-") {
            let _ = std::fs::remove_file(format!("/dev/shm/planish-segment-{name}"));
        }
    }
}

/// Not a test of its own: the process that the others start.
#[test]
fn plays_a_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.split(' ');
    let (role, mut number) =
        (words.next().expect("a role"), || words.next().expect("a number").parse().unwrap());
    let mut held: Vec<Mapping> = Vec::new();
    let told = match role {
        "shared" => {
            let (bytes, filled): (usize, usize) = (number(), number());
            let mapping = map_anonymous(bytes, options(true)).unwrap();
            fill(&mapping, 0..filled);
            held.push(mapping);
            let private = map_anonymous(filled, options(false)).unwrap();
            fill(&private, 0..filled);
            held.push(private);
            address(&held[0]) + " " + &address(&held[1])
        }
        "pool" => {
            let (page_bytes, count, filled): (usize, usize, usize) = (number(), number(), number());
            let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::HugeTlb(page_bytes)) };
            let mapping = map_anonymous(page_bytes * count, options).unwrap();
            fill(&mapping, page_bytes * (count - filled)..page_bytes * count);
            held.push(mapping);
            address(&held[0])
        }
        "splintered" => {
            let (count, base) = (number(), pages::base_bytes());
            let mapping = map_anonymous(count * base, options(false)).unwrap();
            fill(&mapping, 0..count * base);
            for page in (0..count).step_by(2) {
                mapping.advise_range(page * base..(page + 1) * base, Advice::HugePage).unwrap();
            }
            held.push(mapping);
            address(&held[0])
        }
        "vforked" => vforked(number()),
        "ring" => ring(number()),
        "secret" => secret(number()),
        "namespaces" => namespaces(number(), number()),
        "scattered" => scattered(number(), number()),
        "corners" => corners(number()),
        "sparse" => sparse(number()),
        "headless" => headless(number()),
        "code" => code(),
        "odd" => oddly_named(),
        "sharing" => sharing(number(), number(), |_, bytes, _| 0..bytes),
        "slices" => sharing(number(), number(), |child, bytes, children| {
            let slice = bytes / (children + 1);
            child * slice..(child + 2) * slice
        }),
        "read" => read_only(number()),
        "forked" => forked(number(), number()),
        "named" => named_segment(number(), |_, _| {}),
        "allocated" => named_segment(number(), |file, bytes| {
            let all = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(file, all, 0, bytes as u64).expect("there is memory");
        }),
        "both" => both(number()),
        "written" => written(number()),
        "leased" => named_segment(number(), |file, _| lease(file)),
        other => panic!("no role `{other}`"),
    };
    println!("ACTOR {told}");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

fn lease(file: &impl AsRawFd) {
    // SAFETY: it takes a descriptor of ours and a number.
    let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    assert_eq!(taken, 0, "{}", std::io::Error::last_os_error());
}

/// Maps pages of a file in memory, each by itself and as many as `apart` from one to the next, and writes them; says
/// where the last one is.
fn scattered(count: usize, apart: usize) -> String {
    let base = pages::base_bytes();
    let file =
        rustix::fs::memfd_create("scattered", rustix::fs::MemfdFlags::CLOEXEC).expect("this kernel has it");
    rustix::fs::ftruncate(&file, (apart * count * base) as u64).expect("it may grow");
    let mut last = null_mut();
    for number in 0..count {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; its one page is written.
        unsafe {
            let offset = (apart * number * base) as u64;
            last = rustix::mm::mmap(null_mut(), base, access, MapFlags::SHARED, &file, offset).expect("room");
            last.cast::<u8>().write_volatile(1);
        }
    }
    format!("{:x}", last.addr())
}

/// Forks children that each write a segment of System V of `bytes` in an IPC namespace of their own, and share it with
/// a child; says that they stand, or that they may not.
fn namespaces(bytes: usize, children: usize) -> String {
    let (mut told, tell) = std::io::pipe().expect("two descriptors");
    for _ in 0..children {
        // SAFETY: the children call nothing but the kernel, and write to their own segment and nowhere else.
        unsafe {
            if libc::fork() > 0 {
                continue;
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let mut said = [1u8];
            if libc::unshare(libc::CLONE_NEWIPC) == 0 {
                let id = libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600);
                let start = libc::shmat(id, std::ptr::null(), 0);
                libc::shmctl(id, libc::IPC_RMID, null_mut());
                start.cast::<u8>().write_bytes(1, bytes);
                // Another process of the same namespace.
                if libc::fork() == 0 {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    start.cast::<u8>().write_bytes(2, bytes);
                    said = [2];
                }
            } else {
                said = [0];
            }
            libc::write(tell.as_raw_fd(), said.as_ptr().cast(), 1);
            loop {
                libc::pause();
            }
        }
    }
    let mut said = vec![0; children];
    told.read_exact(&mut said).expect("every child says so");
    if said.contains(&0) {
        return "may not".to_owned();
    }
    told.read_exact(&mut said).expect("each has a child");
    "stand".to_owned()
}

/// All that a child with our memory does.
extern "C" fn stand(_: *mut libc::c_void) -> i32 {
    // SAFETY: it calls nothing but the kernel.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        loop {
            libc::pause();
        }
    }
}

/// Fills and locks `bytes` of private memory, and makes a child that has the same memory, as `vfork(2)` does; says
/// where, who that is, and whether it is locked.
fn vforked(bytes: usize) -> String {
    let mapping = map_anonymous(bytes, options(false)).expect("there is memory");
    fill(&mapping, 0..bytes);
    let start = address(&mapping);
    // SAFETY: it locks a mapping of ours.
    let is_locked = unsafe { libc::mlock(mapping.as_ptr().cast(), bytes) } == 0;
    std::mem::forget(mapping);
    let mut stack = vec![0u128; 4096];
    // SAFETY: the child has a stack of its own, which lives as long as this process, and calls nothing but the kernel.
    let child =
        unsafe { libc::clone(stand, stack.as_mut_ptr_range().end.cast(), libc::CLONE_VM, null_mut()) };
    std::mem::forget(stack);
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    format!("{start} {child} {is_locked}")
}

/// Maps a ring of packets of `bytes`; says where, or why there is none.
fn ring(bytes: usize) -> String {
    let page = u32::try_from(pages::base_bytes()).expect("a page");
    let count = u32::try_from(bytes).expect("a few") / page;
    let ring = libc::tpacket_req {
        tp_block_size: page,
        tp_block_nr: count,
        tp_frame_size: page,
        tp_frame_nr: count,
    };
    // SAFETY: the kernel reads the request, and the fresh mapping is at an address of its choice.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        let size = u32::try_from(size_of_val(&ring)).expect("a few");
        let set =
            libc::setsockopt(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, (&raw const ring).cast(), size);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let start = libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, socket, 0);
        if set != 0 || start == libc::MAP_FAILED {
            return format!("none {}", std::io::Error::last_os_error());
        }
        format!("{:x}", start.addr())
    }
}

/// Maps and writes memory that the kernel itself does not map; says where, or why there is none.
fn secret(bytes: usize) -> String {
    // SAFETY: the fresh mapping is at an address of the kernel's choice, and is written where it begins.
    unsafe {
        let file = libc::syscall(libc::SYS_memfd_secret, libc::O_CLOEXEC);
        let Ok(file) = i32::try_from(file) else { return "none".to_owned() };
        if libc::ftruncate(file, bytes.try_into().expect("a few")) != 0 {
            return format!("none {}", std::io::Error::last_os_error());
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let start = libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
        if start == libc::MAP_FAILED {
            return format!("none {}", std::io::Error::last_os_error());
        }
        start.cast::<u8>().write_bytes(1, bytes);
        format!("{:x}", start.addr())
    }
}

/// Has all of a segment allocated and its second half written, maps its first page, and in a child the first one of the
/// second half; says where the first one is, which nobody writes or reads.
fn corners(bytes: usize) -> String {
    let base = pages::base_bytes();
    let file =
        rustix::fs::memfd_create("corners", rustix::fs::MemfdFlags::CLOEXEC).expect("this kernel has it");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64)
        .expect("there is memory");
    let half = vec![1; bytes / 2];
    rustix::io::pwrite(&file, &half, (bytes / 2) as u64).expect("there is memory");
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let map = |at: usize| unsafe {
        rustix::mm::mmap(null_mut(), base, access, MapFlags::SHARED, &file, at as u64).expect("it is mapped")
    };
    let first = map(0);
    let (mut told, tell) = std::io::pipe().expect("two descriptors");
    // SAFETY: the child calls nothing but the kernel.
    unsafe {
        if libc::fork() == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let second = map(bytes / 2);
            libc::write(tell.as_raw_fd(), second, 1);
            loop {
                libc::pause();
            }
        }
    }
    told.read_exact(&mut [0]).expect("the child says so");
    format!("{:x}", first.addr())
}

/// Maps memory that is shared and not promised, and writes its first page, its last and one in between; says where.
fn sparse(bytes: usize) -> String {
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let start =
        unsafe { rustix::mm::mmap_anonymous(null_mut(), bytes, access, flags) }.expect("addresses enough");
    for at in [0, bytes / 2, bytes - pages::base_bytes()] {
        // SAFETY: inside the mapping, which lives as long as this process.
        unsafe { start.cast::<u8>().add(at).write_volatile(1) };
    }
    format!("{:x}", start.addr())
}

/// Fills `bytes` of private memory and forks a child whose first thread ends, as `pthread_exit` in `main` has it, while
/// another one stands still; says where, and who. The child ends with this process.
fn headless(bytes: usize) -> String {
    let mapping = map_anonymous(bytes, options(false)).expect("there is memory");
    fill(&mapping, 0..bytes);
    let start = address(&mapping);
    std::mem::forget(mapping);
    // SAFETY: the child makes a thread, which the C library lets it; nothing that another thread held is asked for.
    // The thread that ends leaves all that it has to the process: nothing of it is dropped.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            std::thread::spawn(|| {
                loop {
                    libc::pause();
                }
            });
            libc::syscall(libc::SYS_exit, 0);
        }
        child
    };
    format!("{start} {child}")
}

/// Maps memory that may be run, and writes an instruction; says where.
fn code() -> String {
    let base = pages::base_bytes();
    let access = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let start = unsafe { rustix::mm::mmap_anonymous(null_mut(), 8 * base, access, MapFlags::PRIVATE) };
    let start = start.expect("there is memory");
    // SAFETY: inside the mapping, which lives as long as this process.
    unsafe { start.cast::<u8>().write_volatile(0xc3) };
    format!("{:x}", start.addr())
}

/// Maps a page of a file whose name is no UTF-8, and which is gone from its folder at once; says where.
fn oddly_named() -> String {
    let name = [b"planish-odd-\xff-", std::process::id().to_string().as_bytes()].concat();
    let path = std::env::temp_dir().join(OsStr::from_bytes(&name));
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let file = file.expect("a temporary file");
    std::fs::remove_file(&path).expect("it is ours");
    file.set_len(pages::base_bytes() as u64).expect("a page");
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let start = unsafe {
        let (length, access) = (pages::base_bytes(), ProtFlags::READ | ProtFlags::WRITE);
        rustix::mm::mmap(null_mut(), length, access, MapFlags::SHARED, &file, 0)
    };
    let start = start.expect("it is mapped");
    // SAFETY: inside the mapping, which lives as long as this process.
    unsafe { start.cast::<u8>().write_volatile(1) };
    format!("{:x}", start.addr())
}

/// Reads all of a private mapping, which is on the page of zeroes then, and writes its first page; says where.
fn read_only(bytes: usize) -> String {
    let mapping = map_anonymous(bytes, options(false)).expect("there is memory");
    for at in (0..bytes).step_by(pages::base_bytes()) {
        // SAFETY: inside the mapping, which nobody else uses.
        std::hint::black_box(unsafe { mapping.as_ptr().add(at).read_volatile() });
    }
    fill(&mapping, 0..pages::base_bytes());
    let start = address(&mapping);
    std::mem::forget(mapping);
    start
}

/// Forks children that write a shared segment, each the part that `part` tells it by its number, the bytes of all and
/// the number of children, and stand still with it.
fn sharing(bytes: usize, children: usize, part: fn(usize, usize, usize) -> std::ops::Range<usize>) -> String {
    let mapping = map_anonymous(bytes, options(true)).expect("there is memory");
    let start = mapping.as_ptr();
    std::mem::forget(mapping);
    let (mut told, tell) = std::io::pipe().expect("two descriptors");
    for child in 0..children {
        let part = part(child, bytes, children);
        // SAFETY: the child calls nothing but the kernel, and writes to the mapping and nowhere else.
        unsafe {
            if libc::fork() == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                start.add(part.start).write_bytes(1, part.len());
                libc::write(tell.as_raw_fd(), start.add(part.start).cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
    }
    told.read_exact(&mut vec![0; children]).expect("every child says so");
    format!("{:x}", start.addr())
}

/// Fills `bytes` of private memory and forks a child that stands still with it, and one that maps, fills and unmaps
/// `churned` bytes over and over. They end with this process.
fn forked(bytes: usize, churned: usize) -> String {
    let mapping = map_anonymous(bytes, options(false)).expect("there is memory");
    fill(&mapping, 0..bytes);
    let start = address(&mapping);
    std::mem::forget(mapping);
    for churns in [false, true] {
        // SAFETY: the child calls nothing but the kernel.
        if unsafe { libc::fork() } > 0 {
            continue;
        }
        // SAFETY: the same; its own fresh mapping is all that it writes to.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if !churns {
                loop {
                    libc::pause();
                }
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            loop {
                let own = libc::mmap(null_mut(), churned, access, flags, -1, 0);
                libc::munmap(own, churned);
            }
        }
    }
    start
}

/// A new segment of /dev/shm, which is gone from its folder when the actor is dropped, and its name.
fn new_segment(bytes: usize) -> (std::fs::File, String) {
    let name = format!("/dev/shm/planish-segment-{}", std::process::id());
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&name);
    let file = file.expect("a new segment");
    file.set_len(bytes as u64).expect("it may grow");
    (file, name)
}

/// Maps all of a file; it stays as long as this process.
fn whole_of(file: &std::fs::File, bytes: usize, kind: MapFlags) -> *mut u8 {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let start = unsafe { rustix::mm::mmap(null_mut(), bytes, access, kind, file, 0) };
    start.expect("it is mapped").cast()
}

/// Maps a segment whole, prepares it and writes the first half of it; says where, and its name.
fn named_segment(bytes: usize, prepare: impl FnOnce(&std::fs::File, usize)) -> String {
    let (file, name) = new_segment(bytes);
    let start = whole_of(&file, bytes, MapFlags::SHARED);
    // SAFETY: inside the mapping, which lives as long as this process.
    unsafe { start.write_bytes(1, bytes / 2) };
    prepare(&file, bytes);
    // A lease is its file's; it lives as long as this process.
    std::mem::forget(file);
    format!("{:x} {name}", start.addr())
}

/// Maps a file of a disk privately, reads all of it and writes the first half; says where. It is gone from its folder
/// at once.
fn written(bytes: usize) -> String {
    let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary file");
    (&file).write_all(&vec![1; bytes]).expect("there is room");
    let start = whole_of(&file, bytes, MapFlags::PRIVATE);
    for at in (0..bytes).step_by(pages::base_bytes()) {
        // SAFETY: inside the mapping, which lives as long as this process.
        unsafe { start.add(at).read_volatile() };
    }
    // SAFETY: the same.
    unsafe { start.write_bytes(2, bytes / 2) };
    format!("{:x}", start.addr())
}

/// Maps a segment privately, and in a child shared, which writes the first half of it. Then reads that half, and writes
/// its first page, which is then its own; says where, and the name.
fn both(bytes: usize) -> String {
    let (file, name) = new_segment(bytes);
    let private = whole_of(&file, bytes, MapFlags::PRIVATE);
    let (mut told, tell) = std::io::pipe().expect("two descriptors");
    // SAFETY: the child calls nothing but the kernel, and writes to its own mapping and nowhere else.
    unsafe {
        if libc::fork() == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let shared = whole_of(&file, bytes, MapFlags::SHARED);
            shared.write_bytes(1, bytes / 2);
            libc::write(tell.as_raw_fd(), shared.cast(), 1);
            loop {
                libc::pause();
            }
        }
    }
    told.read_exact(&mut [0]).expect("the child says so");
    for at in (0..bytes / 2).step_by(pages::base_bytes()) {
        // SAFETY: inside the mapping, which lives as long as this process.
        unsafe { private.add(at).read_volatile() };
    }
    // SAFETY: the same.
    unsafe { private.write_volatile(2) };
    format!("{:x} {name}", private.addr())
}

fn options(shared: bool) -> MapOptions {
    MapOptions { shared, ..MapOptions::new(PageRequest::Base) }
}

fn fill(mapping: &Mapping, range: std::ops::Range<usize>) {
    mapping.advise_range(range, Advice::PopulateWrite).expect("there is memory");
}

fn address(mapping: &Mapping) -> String {
    format!("{:x}", mapping.as_ptr().addr())
}
