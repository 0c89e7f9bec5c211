//! Who maps huge pages: whom to stop before a pool can be given back.

use planish_host::Host;
use planish_model::Holder;

/// Programs that map huge pages of a size, those with most first.
///
/// `HugetlbPages` of `/proc/PID/status` is read of all, and the much dearer smaps only of those that have any.
pub(crate) fn of(host: &Host, page_bytes: u64) -> Vec<Holder> {
    let mut holders: Vec<Holder> = host
        .list("/proc")
        .into_iter()
        .filter_map(|name| holder(host, name.parse().ok()?, page_bytes))
        .collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.pid));
    holders
}

fn holder(host: &Host, pid: u32, page_bytes: u64) -> Option<Holder> {
    let status = host.read(&format!("/proc/{pid}/status")).ok()?;
    field_bytes(&status, "HugetlbPages:").filter(|bytes| *bytes > 0)?;
    let smaps = host.read(&format!("/proc/{pid}/smaps")).ok()?;
    let bytes = mapped(&smaps, page_bytes);
    let command = status.lines().find_map(|line| line.strip_prefix("Name:"))?.trim().to_owned();
    (bytes > 0).then_some(Holder { pid, command, bytes })
}

/// `HugetlbPages:     4096 kB`
fn field_bytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    kilobytes(line)
}

fn kilobytes(value: &str) -> Option<u64> {
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes of huge pages of one size in the maps of a process.
fn mapped(smaps: &str, page_bytes: u64) -> u64 {
    let mut size_of_map = 0;
    let mut bytes = 0;
    for line in smaps.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        match field {
            "KernelPageSize" => size_of_map = kilobytes(value).unwrap_or(0),
            "Shared_Hugetlb" | "Private_Hugetlb" if size_of_map == page_bytes => {
                bytes += kilobytes(value).unwrap_or(0);
            }
            _ => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-s 00000000 00:10 7 /dev/hugepages/pool: with a colon
Size:               4096 kB
KernelPageSize:     2048 kB
MMUPageSize:        2048 kB
Shared_Hugetlb:     2048 kB
Private_Hugetlb:    2048 kB
7f0040000000-7f0080000000 rw-p 00000000 00:00 0
KernelPageSize:  1048576 kB
Private_Hugetlb: 1048576 kB
7f0090000000-7f0090001000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
Private_Hugetlb:       0 kB
";

    #[test]
    fn maps_are_counted_by_page_size() {
        assert_eq!(mapped(SMAPS, 2 << 20), 4 << 20);
        assert_eq!(mapped(SMAPS, 1 << 30), 1 << 30);
        assert_eq!(mapped("odd", 2 << 20), 0);
    }

    #[test]
    fn a_field_of_status_is_in_kilobytes() {
        assert_eq!(field_bytes("Name:\tx\nHugetlbPages:\t    4096 kB\n", "HugetlbPages:"), Some(4 << 20));
        assert_eq!(field_bytes("Name:\tx\n", "HugetlbPages:"), None);
    }
}
