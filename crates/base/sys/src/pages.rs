//! Page sizes of the running kernel.
//!
//! They differ by machine: 4 KB, 16 KB or 64 KB base pages on aarch64, and a huge page of 512 MB where
//! the base page is 64 KB. Nothing in planish may assume 2 MB.

#![expect(
    clippy::disallowed_methods,
    reason = "what we can map is a fact of the running kernel, never of a recorded machine"
)]

use std::fs;

/// Size of a base page in bytes (`sysconf(_SC_PAGESIZE)`).
///
/// Not by rustix, which has the kernel tell the auxiliary vector and follows it to the vDSO. Under valgrind that is not
/// where the vector says, so that a program which links us would end there (seen on Linux 6.18).
pub fn base_bytes() -> usize {
    // SAFETY: it takes a number, and reads nothing of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every Linux has a page size")
}

/// Size in bytes of a transparent huge page mapped by one page-middle entry; `None` without THP.
///
/// Source: `hpage_pmd_size` in Documentation/admin-guide/mm/transhuge.rst.
pub fn thp_bytes() -> Option<usize> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?;
    text.trim().parse().ok().filter(|bytes: &usize| bytes.is_power_of_two())
}

/// Bytes of memory that this machine keeps in swap, of all processes and files: what SwapTotal less SwapFree is in
/// /proc/meminfo; 0 where it has no swap.
pub fn swapped_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // As wide as a word of the machine.
    #[expect(clippy::useless_conversion, reason = "they are u32 on machines of 32 bits")]
    let [total, free, unit] = [info.totalswap.into(), info.freeswap.into(), u64::from(info.mem_unit)];
    u64::saturating_sub(total, free).saturating_mul(unit)
}

/// Sizes in bytes of the explicit huge pages that this kernel offers, smallest first; empty without hugetlb.
///
/// Source: `/sys/kernel/mm/hugepages/hugepages-<size>kB`, Documentation/admin-guide/mm/hugetlbpage.rst.
pub fn hugetlb_bytes() -> Vec<usize> {
    let Ok(entries) = fs::read_dir("/sys/kernel/mm/hugepages") else { return Vec::new() };
    let mut sizes: Vec<usize> =
        entries.flatten().filter_map(|entry| parse_pool_name(entry.file_name().to_str()?)).collect();
    sizes.sort_unstable();
    sizes
}

/// Size in bytes of the pages in a pool folder named `hugepages-2048kB`; `None` for any other name.
pub fn parse_pool_name(name: &str) -> Option<usize> {
    let kilobytes: usize = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    kilobytes.checked_mul(1024).filter(|bytes| bytes.is_power_of_two())
}

/// `bytes` rounded up to whole pages; `None` for no bytes at all or when it overflows.
pub(crate) fn round_up(bytes: usize, page_bytes: usize) -> Option<usize> {
    if bytes == 0 { None } else { bytes.checked_next_multiple_of(page_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_names_are_parsed_and_nothing_else_is() {
        assert_eq!(parse_pool_name("hugepages-2048kB"), Some(2 << 20));
        assert_eq!(parse_pool_name("hugepages-1048576kB"), Some(1 << 30));
        assert_eq!(parse_pool_name("hugepages-524288kB"), Some(512 << 20));
        for odd in ["hugepages-kB", "hugepages-3kB", "hugepages-2048", "2048kB", "hugepages--2048kB", ""] {
            assert_eq!(parse_pool_name(odd), None, "{odd}");
        }
        assert_eq!(parse_pool_name("hugepages-36028797018963968kB"), None, "overflow");
    }

    #[test]
    fn the_running_kernel_has_sane_pages() {
        let base = base_bytes();
        assert!(base.is_power_of_two() && base >= 4096);
        if let Some(thp) = thp_bytes() {
            assert!(thp > base && thp % base == 0);
        }
        assert!(hugetlb_bytes().iter().all(|bytes| bytes % base == 0));
    }

    #[test]
    fn rounding_refuses_nothing_and_overflow() {
        assert_eq!(round_up(0, 4096), None);
        assert_eq!(round_up(1, 4096), Some(4096));
        assert_eq!(round_up(4096, 4096), Some(4096));
        assert_eq!(round_up(usize::MAX, 4096), None);
    }
}
