//! What the test program does when it is started as a program with the preload: it maps through its libc in one role,
//! and tells what the kernel says of the mapping, a line `name value` each.

use std::ffi::CStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use crate::MIB;

/// Plays one role.
pub fn act(role: &str) {
    if role == "errors" {
        return errors();
    }
    if role == "locked-sysv" {
        return locked_sysv();
    }
    if let Some(size) = role.strip_prefix("tmpfs-") {
        let size = size.split('-').next().unwrap();
        // Of ten MiB an eighth is not a quarter, and eight fit; of nine they do not.
        if let Err(error) = own_tmpfs(size) {
            return println!("unmounted {error}");
        }
    }
    if let Err(error) = elsewhere(role) {
        return println!("unshared {error}");
    }
    if role == "again" {
        for _ in 0..5 {
            let address = mapped(role, 8 * MIB);
            // SAFETY: just mapped and never used.
            assert_eq!(unsafe { libc::munmap(address as *mut libc::c_void, 8 * MIB) }, 0);
        }
    }
    let bytes = match role {
        "small" => 4096,
        "large" => 64 * MIB,
        odd if odd.starts_with("odd-") => 8 * MIB + 1,
        _ => 8 * MIB,
    };
    let address = mapped(role, bytes);
    if role == "two" {
        mapped(role, 8 * MIB);
    }
    println!("address {address}");
    if role.starts_with("odd-") {
        println!("behind {}", behind(address));
    }
    if role != "root" {
        tell(address);
    }
    // SAFETY: mapped above and used no more.
    let unmapped = unsafe {
        if role.ends_with("sysv") {
            libc::shmdt(address as *const libc::c_void)
        } else {
            libc::munmap(address as *mut libc::c_void, bytes)
        }
    };
    assert_eq!(unmapped, 0);
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Makes the mapping of a role; its address.
fn mapped(role: &str, bytes: usize) -> usize {
    const ANONYMOUS: i32 = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let role = role.strip_prefix("odd-").unwrap_or(role);
    let anonymous = |flags: i32| map(bytes, READ_WRITE, flags | libc::MAP_ANONYMOUS, -1);
    let address = match role {
        "private" => anonymous(libc::MAP_PRIVATE),
        #[cfg(target_arch = "x86_64")]
        "low" => anonymous(libc::MAP_SHARED | libc::MAP_32BIT),
        "sparse" => anonymous(libc::MAP_SHARED | libc::MAP_NORESERVE),
        "read" => map(bytes, libc::PROT_READ, libc::MAP_SHARED, memfd(bytes, false)),
        "memfd" => map_at(bytes, memfd(bytes, false), 0),
        "heap" => map_at(bytes, memfd_of(c"java_heap", bytes, false), 0),
        "allocated" => map_at(bytes, memfd(bytes, true), 0),
        "offset" => map_at(bytes, memfd(bytes, false), MIB),
        "twice" => {
            let file = memfd(bytes, false);
            map_at(bytes, file, 0);
            map_at(bytes, file, 0)
        }
        "bound" => bound(bytes),
        "holes" => holes(bytes),
        role if role.starts_with("tmpfs-") => on_tmpfs(role, bytes),
        "file" => {
            let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            file.set_len(bytes as u64).unwrap();
            map_at(bytes, file.as_raw_fd(), 0)
        }
        // SAFETY: a segment of our own, gone with its last attachment.
        "sysv" => unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600);
            let address = libc::shmat(id, std::ptr::null(), 0);
            libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
            address
        },
        _ => map(bytes, READ_WRITE, ANONYMOUS, -1),
    };
    assert_ne!(address, libc::MAP_FAILED, "{role}: {}", std::io::Error::last_os_error());
    address.addr()
}

fn map(bytes: usize, rights: i32, flags: i32, file: i32) -> *mut libc::c_void {
    // SAFETY: a new mapping where the kernel likes.
    unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, file, 0) }
}

fn map_at(bytes: usize, file: i32, offset: usize) -> *mut libc::c_void {
    // SAFETY: the same of a part of a file.
    unsafe { libc::mmap(std::ptr::null_mut(), bytes, READ_WRITE, libc::MAP_SHARED, file, offset as i64) }
}

fn memfd(bytes: usize, allocated: bool) -> i32 {
    memfd_of(c"segment", bytes, allocated)
}

/// A memfd with so many allocated bytes, or with some more that are not.
fn memfd_of(name: &CStr, bytes: usize, allocated: bool) -> i32 {
    // SAFETY: a name that ends with a zero byte, and a file of our own.
    unsafe {
        let file = libc::memfd_create(name.as_ptr(), 0);
        let set = match allocated {
            true => libc::posix_fallocate(file, 0, bytes as i64),
            false => libc::ftruncate(file, (bytes + MIB) as i64),
        };
        assert_eq!(set, 0);
        file
    }
}

/// A segment that has a policy, as a start without the preload, by numactl, would leave it.
fn bound(bytes: usize) -> *mut libc::c_void {
    let (file, mask) = (memfd(bytes, true), 1u64);
    let (rights, shared) = (READ_WRITE as usize, libc::MAP_SHARED as usize);
    // SAFETY: a mapping of our own that the preload does not see; the mask has the bits that are told, less one.
    unsafe {
        let at = libc::syscall(libc::SYS_mmap, 0, bytes, rights, shared, file, 0);
        assert_eq!(libc::syscall(libc::SYS_mbind, at, bytes, libc::MPOL_BIND, &raw const mask, 65, 0), 0);
    }
    map_at(bytes, file, 0)
}

/// A segment of which its maker has written one page.
fn holes(bytes: usize) -> *mut libc::c_void {
    let file = memfd(bytes, false);
    // SAFETY: a page of a file of our own, and a `stat` that is all zeroes before.
    unsafe {
        assert_eq!(libc::pwrite(file, [1u8; 4096].as_ptr().cast(), 4096, 1 << 20), 4096);
        let address = map_at(bytes, file, 0);
        let mut stat: libc::stat = std::mem::zeroed();
        assert_eq!(libc::fstat(file, &raw mut stat), 0);
        println!("blocks {}", stat.st_blocks);
        address
    }
}

/// A file on the tmpfs of this process: from its begin on, or from where it has a header on; of a user that may not
/// write it by its name.
fn on_tmpfs(role: &str, bytes: usize) -> *mut libc::c_void {
    const PATH: &str = "/tmp/segment";
    let file = fs::File::options().read(true).write(true).create_new(true).open(PATH).unwrap();
    let begin = if role.ends_with("-begun") { bytes } else { 0 };
    file.set_len((begin + bytes) as u64).unwrap();
    if begin > 0 {
        file.write_all_at(b"header", begin as u64).unwrap();
    }
    if role.ends_with("-stranger") {
        fs::set_permissions(PATH, fs::Permissions::from_mode(0o600)).unwrap();
        // SAFETY: of this process, which has the file open.
        assert_eq!(unsafe { libc::setuid(65534) }, 0);
    }
    map_at(bytes, file.as_raw_fd(), begin)
}

/// Attaches a segment of an odd length over the begin of a private mapping, and tells the policy of what is left of it.
fn locked_sysv() {
    let bytes = 8 * MIB + planish_sys::pages::base_bytes();
    // SAFETY: mappings and a segment of our own; what is attached replaces what is private.
    let (address, attached) = unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let address = libc::mmap(std::ptr::null_mut(), 16 * MIB, rights, flags, -1, 0);
        assert_ne!(address, libc::MAP_FAILED);
        if libc::mlockall(libc::MCL_FUTURE) != 0 {
            return println!("unlocked {}", std::io::Error::last_os_error());
        }
        let id = libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600);
        let attached = libc::shmat(id, address, libc::SHM_REMAP);
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
        libc::munlockall();
        (address, attached)
    };
    if attached == libc::MAP_FAILED {
        return println!("unlocked {}", std::io::Error::last_os_error());
    }
    assert_eq!(attached, address);
    let maps = fs::read_to_string("/proc/self/numa_maps").unwrap();
    let behind = format!("{:x} ", address.addr() + bytes);
    let policy = maps.lines().find_map(|line| line.strip_prefix(&behind)?.split(' ').next());
    println!("behind {}", policy.unwrap());
}

/// Puts this process where the launcher is not.
fn elsewhere(role: &str) -> std::io::Result<()> {
    let done = |returned: i32| if returned == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    // SAFETY: of this process alone, and its strings end with a zero byte.
    unsafe {
        if role.starts_with("net") {
            done(libc::unshare(libc::CLONE_NEWNET))?;
        }
        if role.ends_with("user") {
            done(libc::setuid(65534))?;
        }
        if role == "root" {
            done(libc::chroot(c"/proc/self".as_ptr()))?;
        }
        if role == "closed" {
            // Above those that the test writes to.
            libc::close_range(3, u32::MAX, 0);
        }
    }
    Ok(())
}

/// A tmpfs of so many MiB on /tmp, in mounts of this process alone.
fn own_tmpfs(mib: &str) -> std::io::Result<()> {
    let options = std::ffi::CString::new(format!("size={mib}m")).unwrap();
    // SAFETY: strings that end with a zero byte; the first two calls keep the mounts of others out of it.
    let failed = unsafe {
        libc::unshare(libc::CLONE_NEWNS) != 0
            || libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) != 0
            || libc::mount(c"none".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, options.as_ptr().cast())
                != 0
    };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells what the kernel says of the mapping, and of a private one.
fn tell(address: usize) {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let begin = format!("{address:x}-");
    let block = smaps.lines().skip_while(|line| !line.starts_with(&begin)).skip(1);
    let block: Vec<&str> = block.take_while(|line| !line.contains('-')).collect();
    let of = |name: &str| -> usize {
        let line = block.iter().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10)
    };
    println!("resident {}", of("Rss:"));
    println!("huge {}", of("ShmemPmdMapped:"));
    let maps = fs::read_to_string("/proc/self/numa_maps").unwrap_or_default();
    let policy = maps.lines().find_map(|line| line.strip_prefix(&format!("{address:x} ")));
    println!("policy {}", policy.unwrap_or_default().split(' ').next().unwrap_or_default());
    let heap = maps.lines().find(|line| line.contains(" heap"));
    println!("private {}", heap.and_then(|line| line.split(' ').nth(1)).unwrap_or("default"));
}

/// What begins where the mapping ends, as the kernel tells it.
fn behind(address: usize) -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let end = maps.lines().find_map(|line| line.strip_prefix(&format!("{address:x}-"))?.split(' ').next());
    let next = format!("{}-", end.unwrap());
    let next = maps.lines().find(|line| line.starts_with(&next));
    next.unwrap_or("nothing").to_owned()
}

/// Calls that must fail, and with what.
fn errors() {
    const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let code = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    // SAFETY: none of these calls succeeds; nothing is used.
    unsafe {
        let map = |bytes: usize, flags: i32, file: i32, offset: i64| {
            let at = libc::mmap(std::ptr::null_mut(), bytes, READ_WRITE, flags, file, offset);
            assert_eq!(at, libc::MAP_FAILED);
        };
        map(1 << 60, shared, -1, 0);
        println!("huge-mapping {}", code());
        let file = libc::memfd_create(c"segment".as_ptr(), 0);
        libc::ftruncate(file, 8 << 20);
        map(4 << 20, libc::MAP_SHARED, file, 5);
        println!("odd-offset {}", code());
        map(4 << 20, libc::MAP_SHARED, 9999, 0);
        println!("bad-file {}", code());
        assert_eq!(libc::munmap(std::ptr::without_provenance_mut(1), 4096), -1);
        println!("bad-unmap {}", code());
        assert_eq!(libc::shmat(-1, std::ptr::null(), 0), libc::MAP_FAILED);
        println!("bad-segment {}", code());
    }
}
