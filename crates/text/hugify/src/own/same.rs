//! Which of the text of this process may not be what its file says.
//!
//! A private mapping shows a page of the page cache until somebody writes to it here: a uprobe, a patch, a relocation.
//! What was written is anonymous memory from then on. A page that is still the file's is the very page that a read of
//! the file is answered from, so that nothing is gained by comparing the two; and a page that is not there yet would be
//! read from the file as well, when it is met.
//!
//! That holds where a file system keeps one copy of a file, and lets nobody write to a program that runs. Overlays do
//! neither (the file below goes on running while another one above it is written), nor do those of user space or of a
//! network have to: there everything may differ.

use std::fs::File;
use std::ops::Range;

use planish_residency::Region;
use planish_sys::pagemap::Pagemap;
use rustix::fs::fstatfs;

/// ext2 to ext4, xfs, btrfs and tmpfs, by their numbers (include/uapi/linux/magic.h).
const PLAIN: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

/// Whether a file is read from the pages that its mappings show.
fn is_read_as_mapped(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| PLAIN.contains(&(system.f_type as u64)))
}

/// The parts of `at` in which this process may have other bytes than its program `file`, of this name, has from
/// `offset` on: all of it where nobody tells more (before Linux 6.7).
pub(super) fn doubtful(
    regions: &[Region],
    (file, name): (&File, &str),
    at: &Range<u64>,
    offset: u64,
) -> Vec<Range<u64>> {
    let all = || vec![at.clone()];
    if !is_read_as_mapped(file) {
        return all();
    }
    let both = |range: &Range<u64>| range.start.max(at.start)..range.end.min(at.end);
    let mut mapped_bytes = 0;
    for region in regions {
        let part = both(&region.area.range);
        if part.is_empty() {
            continue;
        }
        let shown = region.area.offset + (part.start - region.area.range.start);
        if region.area.name != name || shown != offset + (part.start - at.start) {
            return all();
        }
        mapped_bytes += part.end - part.start;
    }
    if mapped_bytes != at.end - at.start {
        return all();
    }
    let (mut runs, mut of_file) = (Vec::new(), Vec::new());
    let scanned = Pagemap::open(None)
        .and_then(|mut pagemap| pagemap.scan_by_keeper(at.clone(), &mut runs, &mut of_file));
    if scanned.is_err() {
        return all();
    }
    let own = runs.iter().zip(of_file).filter(|(_, of_file)| !of_file);
    own.map(|(run, _)| both(&run.range)).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a file of this test")]
mod tests {
    use std::ptr::null_mut;
    use std::slice::from_ref;

    use planish_sys::pages;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use super::*;
    use crate::own::seen::regions;

    #[test]
    fn only_what_was_written_here_is_doubtful_and_all_of_what_is_no_part_of_the_file() {
        let test = "only_what_was_written_here_is_doubtful_and_all_of_what_is_no_part_of_the_file";
        let page = pages::base_bytes();
        let path = tempfile::tempdir().unwrap();
        let path = path.path().join("text");
        std::fs::write(&path, vec![7; 8 * page]).unwrap();
        let (file, name) = (File::open(&path).unwrap(), path.to_str().unwrap());
        // SAFETY: a new mapping of a file of this test, as long as the file.
        let start = unsafe {
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            mmap(null_mut(), 8 * page, rights, MapFlags::PRIVATE, &file, 0).unwrap().cast::<u8>()
        };
        // SAFETY: the mapping is ours, and five pages lie in it at least.
        let read = unsafe { (start.read_volatile(), start.add(5 * page).write_volatile(7)).0 };
        assert_eq!(read, 7);
        let base = start.addr() as u64;
        let place = |pages: Range<u64>| base + pages.start * page as u64..base + pages.end * page as u64;
        let (all, offset) = (place(0..8), 0);
        let regions = regions().unwrap();
        let told = doubtful(&regions, (&file, name), &all, offset);
        if told == [all.clone()] {
            planish_skip::skip(
                test,
                "no PAGEMAP_SCAN (Linux 6.7 has it), or a file system that is no plain one",
            );
        } else {
            assert_eq!(told, [place(5..6)], "written, though with what the file has");
            assert_eq!(doubtful(&regions, (&file, name), &place(6..8), 6 * page as u64), []);
        }
        assert_eq!(doubtful(&regions, (&file, "/bin/other"), &all, offset), from_ref(&all), "another file");
        assert_eq!(
            doubtful(&regions, (&file, name), &all, page as u64),
            from_ref(&all),
            "another place of it"
        );
        let beyond = all.start..all.end + (1 << 40);
        assert_eq!(
            doubtful(&regions, (&file, name), &beyond, offset),
            from_ref(&beyond),
            "more than is mapped"
        );
        // SAFETY: our own mapping, which nothing borrows.
        unsafe { munmap(start.cast(), 8 * page).unwrap() };
    }

    #[test]
    fn what_is_no_file_of_a_plain_file_system_is_not_read_as_mapped() {
        assert!(!is_read_as_mapped(&File::open("/proc/self/maps").unwrap()));
    }
}
