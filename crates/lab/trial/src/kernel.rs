//! What the running kernel says of itself, in small files under `/proc` and `/sys`.

use planish_host::Host;
pub(crate) use planish_host::activity::{CpuTicks, cpu_ticks, stalled_us, waited_avg10, waited_us};
use planish_sys::cgroup;

/// The text of a file of the live machine; `None` when it is not there or may not be read.
///
/// A fresh `Host` for each file: one that stays would remember the paths of every process that it ever looked
/// at.
pub(crate) fn read(path: &str) -> Option<String> {
    Host::live().read(path).ok()
}

/// Every process that can be seen.
pub(crate) fn processes() -> Vec<u32> {
    let names = Host::live().list("/proc");
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Where the symbolic links of a folder lead, such as the open files of a process; none of what may not be read.
pub(crate) fn links(folder: &str) -> Vec<String> {
    let host = Host::live();
    let names = host.list(folder);
    names.iter().filter_map(|name| host.read_link(&format!("{folder}/{name}"))).collect()
}

/// The threads of a process; none when it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let names = Host::live().list(&format!("/proc/{pid}/task"));
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Bytes that can be had without swapping: `MemAvailable`, or what the control groups of this process leave, where that
/// is less.
pub(crate) fn memory_available_bytes() -> Option<u64> {
    let group = cgroup::memory_room().map(|room| room.bytes);
    machine_available_bytes().into_iter().chain(group).min()
}

/// What gives us more memory.
pub(crate) fn memory_cure() -> String {
    let machine = machine_available_bytes().unwrap_or(u64::MAX);
    match cgroup::memory_room().filter(|room| room.bytes < machine) {
        Some(room) => format!("raise the limit of the control group in {}", room.file.display()),
        None => "end something that holds memory".to_owned(),
    }
}

fn machine_available_bytes() -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_memory_on_the_running_machine() {
        assert!(memory_available_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
