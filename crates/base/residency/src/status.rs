//! `/proc/PID/status`: the cheap facts, among them what page tables cost.

/// What /proc/PID/status says of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// Number of threads.
    pub threads: u32,
    /// Resident bytes, without hugetlb pages.
    pub resident_bytes: u64,
    /// Bytes of page tables. Of the last level mainly: what 2 MB pages save.
    pub page_table_bytes: u64,
    /// Resident bytes of shared memory that no disk keeps, without hugetlb pages.
    pub shared_bytes: u64,
    /// Resident bytes on hugetlb pages.
    pub hugetlb_bytes: u64,
    /// Bytes in swap.
    pub swap_bytes: u64,
    /// Bytes that mlock(2) keeps in memory.
    pub locked_bytes: u64,
    /// The CPUs that its main thread may run on, in the kernel's list form; empty where untold.
    pub allowed_cpus: String,
    /// The nodes that it may take memory from.
    pub allowed_nodes: String,
    /// Owner of the process (its effective user).
    pub user: Option<u32>,
}

/// Reads the text of status; fields that are missing (a kernel thread has no memory) are 0.
pub fn parse_status(text: &str) -> Status {
    let mut status = Status::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        let bytes = || {
            let kilobytes = value.strip_suffix("kB").and_then(|digits| digits.trim_end().parse::<u64>().ok());
            kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024)).unwrap_or(0)
        };
        match key {
            "Name" => value.clone_into(&mut status.name),
            "Threads" => status.threads = value.parse().unwrap_or(0),
            "VmRSS" => status.resident_bytes = bytes(),
            "RssShmem" => status.shared_bytes = bytes(),
            "VmPTE" => status.page_table_bytes = bytes(),
            "HugetlbPages" => status.hugetlb_bytes = bytes(),
            "VmLck" => status.locked_bytes = bytes(),
            "Cpus_allowed_list" => value.clone_into(&mut status.allowed_cpus),
            "Mems_allowed_list" => value.clone_into(&mut status.allowed_nodes),
            "VmSwap" => status.swap_bytes = bytes(),
            // Real, effective, saved, file system.
            "Uid" => status.user = value.split_whitespace().nth(1).and_then(|id| id.parse().ok()),
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheap_facts() {
        let text = "Name:\tpostgres\nUid:\t100\t101\t102\t103\nVmRSS:\t    1784 kB\nVmPTE:\t      44 kB\n\
                    RssShmem:\t     512 kB\nThreads:\t3\nHugetlbPages:\t    2048 kB\n";
        let status = parse_status(text);
        assert_eq!((status.name.as_str(), status.threads, status.user), ("postgres", 3, Some(101)));
        assert_eq!((status.page_table_bytes, status.hugetlb_bytes), (44 << 10, 2 << 20));
        assert_eq!(status.shared_bytes, 512 << 10);
        assert_eq!(parse_status("Name:\tkthreadd\n").resident_bytes, 0);
    }
}
