//! Who maps huge pages: whom to stop before a pool can be given back.

use planish_host::Host;
use planish_model::Holder;
use planish_residency::{Process, status};
use planish_sorted::SortSmall as _;

/// Programs that map huge pages of a size, those with most first.
///
/// The cheap `HugetlbPages` of `/proc/PID/status` is read of all, the dear smaps only of those that have any.
pub(crate) fn of(host: &Host, page_bytes: u64) -> Vec<Holder> {
    let pids = host.list("/proc").into_iter().filter_map(|name| name.parse().ok());
    let mut holders: Vec<Holder> = pids.filter_map(|pid| holder(host, pid, page_bytes)).collect();
    holders.sort_small_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.pid));
    holders
}

fn holder(host: &Host, pid: u32, page_bytes: u64) -> Option<Holder> {
    let status = status(host, pid).ok()?;
    if status.hugetlb_bytes == 0 {
        return None;
    }
    let process = Process::read(host, pid).ok()?;
    let of_size = process.regions.iter().filter(|region| region.page_bytes == page_bytes);
    let bytes = of_size.map(|region| region.hugetlb_bytes).sum();
    (bytes > 0).then_some(Holder { pid, command: status.name, bytes })
}
