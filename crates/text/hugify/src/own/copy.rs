//! A copy of a part of a file on huge pages, made beside what it is to take the place of.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::slice::from_ref;

use planish_host::Host;
use planish_sys::{Advice, MapOptions, Mapping, PageRequest, cgroup, map_anonymous};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, MremapFlags, ProtFlags, mmap, mprotect, mremap_fixed};

use super::seen::huge_bytes_in;
use super::{OwnRoute, told};

/// Memory of ours at a multiple of a huge page, with the bytes of the file, read and executed and never written again.
pub(super) struct Stage {
    mapping: Mapping,
    bytes: usize,
}

impl Stage {
    /// Makes it, where the limits of our control groups leave room and the kernel has the pages.
    pub fn fill(
        file: &File,
        offset: u64,
        bytes: usize,
        (route, huge_bytes): (OwnRoute, u64),
    ) -> Result<Self, String> {
        let pool = usize::try_from(huge_bytes).expect("a page fits an address");
        let (room, page) = match route {
            OwnRoute::Hugetlb => (cgroup::hugetlb_room(pool), PageRequest::HugeTlb(pool)),
            _ => (cgroup::memory_room().map(half), PageRequest::Thp),
        };
        if let Some(room) = room.filter(|room| room.bytes < bytes as u64) {
            return Err(format!("{} leaves too little memory for {} MiB", room.file.display(), bytes >> 20));
        }
        if route != OwnRoute::Hugetlb {
            refuse_short(bytes as u64, available_bytes())?;
        }
        let mapping = map_anonymous(bytes, MapOptions::new(page)).map_err(|error| told(&error))?;
        let stage = Self { mapping, bytes };
        match route {
            OwnRoute::Memfd => stage.share(file, offset)?,
            _ => stage.read(file, offset)?,
        }
        let start = stage.mapping.as_ptr().addr() as u64;
        let on = || huge_bytes_in(from_ref(&(start..start + bytes as u64)), huge_bytes);
        // To be asked for what is there already, the kernel first empties the caches of every CPU.
        if on().is_some_and(|on| on >= bytes as u64) {
            return Ok(stage);
        }
        // Where the kernel had no huge page free at the first touch it makes one, by copying (Linux 6.1).
        let collapsed = stage.mapping.advise(Advice::Collapse).err().map(|error| told(&error));
        if let Some(on) = on().filter(|on| *on < bytes as u64) {
            let why = collapsed.map(|why| format!(" ({why})")).unwrap_or_default();
            return Err(format!("the kernel has huge pages for {} of {} MiB{why}", on >> 20, bytes >> 20));
        }
        Ok(stage)
    }

    /// Reads the file into memory of this process.
    fn read(&self, file: &File, offset: u64) -> Result<(), String> {
        // SAFETY: the mapping is ours alone, readable and writable, zeroed, and as long as that at least.
        let new = unsafe { std::slice::from_raw_parts_mut(self.mapping.as_ptr(), self.bytes) };
        file.read_exact_at(new, offset).map_err(|error| format!("read of the program: {error}"))?;
        // SAFETY: a mapping of ours; nobody writes to it any more.
        let executable = unsafe {
            mprotect(self.mapping.as_ptr().cast(), self.bytes, MprotectFlags::READ | MprotectFlags::EXEC)
        };
        executable.map_err(|errno| format!("mprotect: {errno}"))
    }

    /// Copies the file into memory that can be shared, seals it, and maps it here: no mapping of it was ever writable.
    fn share(&self, file: &File, offset: u64) -> Result<(), String> {
        let call = |name: &'static str| move |errno: Errno| format!("{name}: {errno}");
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Where vm.memfd_noexec wants it said; kernels before Linux 6.3 do not know the word.
        let memory = match memfd_create("planish-text", flags | MemfdFlags::EXEC) {
            Err(Errno::INVAL) => memfd_create("planish-text", flags),
            made => made,
        };
        let memory = memory.map_err(call("memfd_create"))?;
        let (mut from, mut left) = (offset, self.bytes);
        while left > 0 {
            match sendfile(&memory, file, Some(&mut from), left).map_err(call("sendfile"))? {
                0 => return Err("read of the program: it became shorter".to_owned()),
                sent => left = left.saturating_sub(sent),
            }
        }
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&memory, seals).map_err(call("fcntl"))?;
        // SAFETY: it takes the place of our own mapping, of the same length, which holds nothing yet and which nobody
        // else knows of.
        let mapped = unsafe {
            let (at, access) = (self.mapping.as_ptr().cast(), ProtFlags::READ | ProtFlags::EXEC);
            mmap(at, self.bytes, access, MapFlags::SHARED | MapFlags::FIXED, &memory, 0)
        };
        mapped.map(drop).map_err(call("mmap"))
    }

    /// What it holds.
    pub fn content(&self) -> &[u8] {
        // SAFETY: mapped as long as `self`, readable, filled by `fill`, and written by nobody since.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr(), self.bytes) }
    }

    /// Puts it over what lies at `at`, in one step.
    ///
    /// # Safety
    /// `at` is a multiple of a huge page, and as many bytes there are mapped, hold the same, and are neither written
    /// nor unmapped by anybody.
    pub unsafe fn put_over(self, at: u64) -> Result<(), String> {
        // SAFETY: both ranges are whole pages of the same length. The caller vouches for the new place; what lies at
        // the old one is ours, and forgotten below.
        let moved = unsafe {
            let (from, to) = (self.mapping.as_ptr().cast(), at as *mut std::ffi::c_void);
            mremap_fixed(from, self.bytes, self.bytes, MremapFlags::MAYMOVE, to)
        };
        moved.map_err(|errno| format!("mremap: {errno}"))?;
        // It has no addresses any more that could be unmapped.
        std::mem::forget(self.mapping);
        Ok(())
    }
}

/// Of what a limit leaves no more than half is ours to take.
fn half(room: cgroup::Room) -> cgroup::Room {
    cgroup::Room { bytes: room.bytes / 2, ..room }
}

/// Of the memory that a machine has left a copy takes no more than a part of this: each process makes its own.
const PARTS: u64 = 8;

fn refuse_short(bytes: u64, available_bytes: Option<u64>) -> Result<(), String> {
    match available_bytes {
        Some(available) if bytes > available / PARTS => Err(format!(
            "memory is short: {} MiB are available, and a copy of {} MiB is more than an eighth of that",
            available >> 20,
            bytes >> 20
        )),
        _ => Ok(()),
    }
}

/// What the machine can give without swapping.
fn available_bytes() -> Option<u64> {
    let text = Host::live().read_lossy("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use planish_sys::pages;

    use super::*;

    #[test]
    fn a_copy_takes_an_eighth_of_what_is_available_at_most() {
        assert_eq!(refuse_short(2 << 20, Some(16 << 20)), Ok(()));
        let refused = refuse_short((2 << 20) + 4096, Some(16 << 20)).unwrap_err();
        assert!(refused.contains("16 MiB are available"), "{refused}");
        assert_eq!(refuse_short(2 << 20, None), Ok(()), "a machine that does not tell");
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20), "this one does");
    }

    #[test]
    fn every_stage_holds_the_file_or_says_why_not() {
        let test = "every_stage_holds_the_file_or_says_why_not";
        let Some(huge) = pages::thp_bytes() else {
            return planish_skip::skip(test, "no transparent huge pages");
        };
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..2 * huge + 4096).map(|at| (at % 251) as u8).collect();
        file.write_all(&content).unwrap();
        for route in [OwnRoute::Memfd, OwnRoute::Anonymous, OwnRoute::Hugetlb] {
            match Stage::fill(&file, 4096, 2 * huge, (route, huge as u64)) {
                Ok(stage) => {
                    assert_eq!(stage.content(), &content[4096..], "{route:?}");
                    assert!((stage.mapping.as_ptr().addr()).is_multiple_of(huge), "{route:?}");
                }
                Err(why) => planish_skip::skip(test, format!("{route:?}: {why}")),
            }
            // More than there is.
            assert!(Stage::fill(&file, 8192, 2 * huge, (route, huge as u64)).is_err(), "{route:?}");
        }
    }
}
