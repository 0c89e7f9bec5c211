//! `/proc/PID/smaps`: one block per mapping.
//!
//! Source: `show_smap` in fs/proc/task_mmu.c. Numbers are in kB; a field that this kernel does not print
//! counts as 0.

use serde::Serialize;

use crate::maps::{self, Area, Kind};

/// On which pages memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backing {
    /// Base pages.
    Base,
    /// Pages that the kernel keeps together, larger than a base page and mapped by base-page entries (mTHP).
    Mthp,
    /// Transparent huge pages, mapped as such.
    Thp,
    /// Pages from a reserved pool.
    Hugetlb,
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What maps says of it. Its kind is told with the others in view, as by [`crate::parse_maps`].
    pub area: Area,
    /// Size in bytes of the pages that the kernel keeps it in; beyond a base page in hugetlb mappings only.
    pub page_bytes: u64,
    /// Resident bytes, hugetlb pages included (which the field Rss leaves out).
    pub resident_bytes: u64,
    /// This process's share of them, where pages of several processes count in parts; without hugetlb pages.
    pub proportional_bytes: u64,
    /// Of the resident ones, bytes on transparent huge pages that are mapped as such: anonymous ones.
    pub anon_huge_bytes: u64,
    /// The same of shared memory and tmpfs.
    pub shmem_huge_bytes: u64,
    /// The same of files (text on huge pages through the page cache).
    pub file_huge_bytes: u64,
    /// Resident bytes on hugetlb pages.
    pub hugetlb_bytes: u64,
    /// Of the resident ones, bytes on pages that no file keeps; without hugetlb pages.
    pub anonymous_bytes: u64,
    /// Bytes in swap.
    pub swap_bytes: u64,
    /// Whether the kernel would back it with transparent huge pages (Linux 5.0).
    pub thp_eligible: bool,
}

impl Region {
    /// Length of the mapping in bytes.
    pub fn bytes(&self) -> u64 {
        self.area.bytes()
    }

    /// Whether other processes may share it.
    pub fn is_shared(&self) -> bool {
        self.area.is_shared()
    }

    /// Whether it may be executed.
    pub fn is_executable(&self) -> bool {
        self.area.permissions[2] == b'x'
    }

    /// Resident bytes that are the process's own: written private memory, and pages of pools that it does not share.
    pub(crate) fn own_bytes(&self) -> u64 {
        let pool = if self.is_shared() { 0 } else { self.hugetlb_bytes };
        self.anonymous_bytes.saturating_add(pool).min(self.resident_bytes)
    }

    /// Whether it is of a pool of huge pages.
    pub fn is_hugetlb(&self) -> bool {
        self.hugetlb_bytes > 0 || self.page_bytes > BASE_PAGE_BYTES_MAX
    }

    /// Resident bytes on transparent huge pages.
    pub fn thp_bytes(&self) -> u64 {
        self.anon_huge_bytes + self.shmem_huge_bytes + self.file_huge_bytes
    }

    /// Resident bytes on base pages.
    pub fn base_bytes(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.thp_bytes() + self.hugetlb_bytes)
    }

    /// Resident bytes on pages of this backing.
    pub fn bytes_on(&self, backing: Backing) -> u64 {
        match backing {
            Backing::Base => self.base_bytes(),
            // smaps does not tell them from base pages.
            Backing::Mthp => 0,
            Backing::Thp => self.thp_bytes(),
            Backing::Hugetlb => self.hugetlb_bytes,
        }
    }
}

/// No architecture that Linux runs on has larger base pages.
const BASE_PAGE_BYTES_MAX: u64 = 64 << 10;

/// The sums of `/proc/PID/smaps_rollup`, which costs the kernel one walk and us one small text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rollup {
    /// Resident bytes, hugetlb pages included.
    pub resident_bytes: u64,
    /// The process's share of them, without hugetlb pages.
    pub proportional_bytes: u64,
    /// Of the resident ones, bytes on transparent huge pages that are mapped as such.
    pub thp_bytes: u64,
    /// Of the resident ones, bytes on hugetlb pages.
    pub hugetlb_bytes: u64,
    /// Bytes in swap.
    pub swap_bytes: u64,
}

/// The mappings in the text of smaps, by address; `Err` is the first line that cannot be understood.
pub fn parse_smaps(text: &str) -> Result<Vec<Region>, String> {
    let mut regions: Vec<Region> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match field_of(line) {
            Some((key, value)) => {
                let region = regions.last_mut().ok_or_else(|| line.to_owned())?;
                apply(region, key, value).ok_or_else(|| line.to_owned())?;
            }
            None => regions.push(parse_header(line).ok_or_else(|| line.to_owned())?),
        }
    }
    // A file of a hugetlbfs is memory of a pool, wherever its file system is mounted: QEMU, DPDK and Java map their
    // segments so.
    let files = regions.iter_mut().filter(|region| region.area.kind == Kind::File);
    for region in files.filter(|region| region.is_hugetlb()) {
        region.area.kind = region.area.pool_kind();
    }
    maps::classify_data(regions.iter_mut().map(|region| &mut region.area));
    Ok(regions)
}

/// The sums in the text of smaps_rollup; `Err` is the first line that cannot be understood.
pub fn parse_rollup(text: &str) -> Result<Rollup, String> {
    let region = parse_smaps(text)?.into_iter().next();
    let region = region.ok_or_else(|| text.chars().take(80).collect::<String>())?;
    Ok(Rollup {
        resident_bytes: region.resident_bytes,
        proportional_bytes: region.proportional_bytes,
        thp_bytes: region.thp_bytes(),
        hugetlb_bytes: region.hugetlb_bytes,
        swap_bytes: region.swap_bytes,
    })
}

/// `Rss:   12 kB` as key and value; `None` for the first line of a block, whose first word is a range of
/// addresses.
fn field_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_key.then_some((key, value))
}

/// A region of which only the first line is known.
fn parse_header(line: &str) -> Option<Region> {
    Some(Region {
        area: maps::parse_line(line)?,
        page_bytes: 0,
        resident_bytes: 0,
        proportional_bytes: 0,
        anon_huge_bytes: 0,
        shmem_huge_bytes: 0,
        file_huge_bytes: 0,
        hugetlb_bytes: 0,
        anonymous_bytes: 0,
        swap_bytes: 0,
        thp_eligible: false,
    })
}

/// Adds a field to a region; `None` when its number is none.
fn apply(region: &mut Region, key: &str, value: &str) -> Option<()> {
    let bytes = || value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024);
    match key {
        "KernelPageSize" => region.page_bytes = bytes()?,
        "Rss" => region.resident_bytes = region.resident_bytes.checked_add(bytes()?)?,
        "Pss" => region.proportional_bytes = bytes()?,
        "AnonHugePages" => region.anon_huge_bytes = bytes()?,
        "ShmemPmdMapped" => region.shmem_huge_bytes = bytes()?,
        "FilePmdMapped" => region.file_huge_bytes = bytes()?,
        "Shared_Hugetlb" | "Private_Hugetlb" => {
            let bytes = bytes()?;
            region.hugetlb_bytes = region.hugetlb_bytes.checked_add(bytes)?;
            // Rss leaves hugetlb pages out.
            region.resident_bytes = region.resident_bytes.checked_add(bytes)?;
        }
        "Anonymous" => region.anonymous_bytes = bytes()?,
        "Swap" => region.swap_bytes = bytes()?,
        "THPeligible" => region.thp_eligible = value.trim() == "1",
        _ => {}
    }
    // Sums of sizes that no machine has, which a corrupt text may name.
    region.anon_huge_bytes.checked_add(region.shmem_huge_bytes)?.checked_add(region.file_huge_bytes)?;
    region.thp_bytes().checked_add(region.hugetlb_bytes).map(drop)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
55d0-55e0 r-xp 00001000 fe:00 77                     /usr/bin/a program
KernelPageSize:        4 kB
Rss:                   8 kB
Pss:                   2 kB
FilePmdMapped:         4 kB
VmFlags: rd ex mr mw me
55e0-55f0 rw-p 00002000 fe:00 77                     /usr/bin/a program
Rss:                   4 kB
7000-9000 rw-s 00000000 00:0f 9                      /anon_hugepage (deleted)
KernelPageSize:     2048 kB
Rss:                   0 kB
Shared_Hugetlb:     2048 kB
Private_Hugetlb:    2048 kB
9000-a000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      2048 kB
Swap:                 12 kB
THPeligible:           1
a000-b000 r--p 00000000 fe:00 78                     /usr/share/zoneinfo
";

    #[test]
    fn blocks_are_read_field_by_field() {
        let regions = parse_smaps(TEXT).unwrap();
        let kinds: Vec<Kind> = regions.iter().map(|region| region.area.kind).collect();
        assert_eq!(kinds, [Kind::Text, Kind::Data, Kind::Shared, Kind::Anon, Kind::File]);
        let text = &regions[0];
        let area = &text.area;
        assert_eq!((area.name.as_str(), area.offset, area.inode), ("/usr/bin/a program", 0x1000, 77));
        assert_eq!((text.base_bytes(), text.thp_bytes(), text.bytes()), (4 << 10, 4 << 10, 0x10));
        let segment = &regions[2];
        assert!(segment.is_hugetlb() && segment.is_shared());
        assert_eq!(
            (segment.resident_bytes, segment.hugetlb_bytes, segment.base_bytes()),
            (4 << 20, 4 << 20, 0)
        );
        let anon = &regions[3];
        assert_eq!(
            (anon.base_bytes(), anon.bytes_on(Backing::Thp), anon.swap_bytes),
            (2 << 20, 2 << 20, 12 << 10)
        );
        assert!(anon.thp_eligible && !anon.is_hugetlb());
    }

    #[test]
    fn a_file_of_a_hugetlbfs_is_memory_of_a_pool() {
        let text = "\
1000-5000 rw-s 00000000 00:31 7 /mnt/huge/guest-ram (deleted)
KernelPageSize:     2048 kB
Shared_Hugetlb:     4096 kB
5000-7000 rw-p 00000000 00:31 8 /dev/hugepages/rtemap_0
KernelPageSize:  1048576 kB
7000-9000 r-xp 00000000 00:31 9 /dev/hugepages/remapped-text
KernelPageSize:     2048 kB
";
        let kinds: Vec<Kind> = parse_smaps(text).unwrap().iter().map(|region| region.area.kind).collect();
        assert_eq!(kinds, [Kind::Shared, Kind::Anon, Kind::Text]);
    }

    #[test]
    fn what_is_no_smaps_is_refused_with_its_line() {
        for odd in ["Rss: 4 kB", "zz-1 rw-p 0 0:0 0", "1-2 rw-p 0 0:0 0\nRss: x kB", "2-1 rw-p 0 0:0 0"] {
            assert!(parse_smaps(odd).is_err(), "{odd}");
        }
        assert_eq!(parse_smaps("").unwrap(), []);
        assert!(parse_rollup("").is_err());
    }

    /// Headers, fields and rubbish, in any order.
    const PIECES: &str = "([0-9a-f]{1,4}-[0-9a-f]{1,4} rw-p 0 0:0 0|Rss: +[0-9]{1,22} kB|\
                          Shared_Hugetlb: [0-9]{1,17} kB|.{0,8}|\n){0,12}";

    proptest! {
        #[test]
        fn no_text_panics(text in PIECES) {
            for region in parse_smaps(&text).unwrap_or_default() {
                let _ = (region.base_bytes(), region.thp_bytes(), region.bytes());
            }
        }
    }
}
