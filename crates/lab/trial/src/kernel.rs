//! What the running kernel says of itself, in small files under `/proc` and `/sys`.

use planish_host::Host;
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

/// The threads of a process; none when it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let names = Host::live().list(&format!("/proc/{pid}/task"));
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Times of all processors together, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    /// Everything.
    pub(crate) total: u64,
    /// Idle, and idle while waiting for a device.
    pub(crate) idle: u64,
    /// Taken by the hypervisor.
    pub(crate) steal: u64,
}

/// The first line of `/proc/stat` (Documentation/filesystems/proc.rst). Guest time is part of user time there
/// and is not counted twice.
pub(crate) fn cpu_ticks(text: &str) -> Option<CpuTicks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    let steal = *fields.get(7)?;
    Some(CpuTicks { total: fields.iter().sum(), idle: fields[3] + fields[4], steal })
}

/// The running total of `some` in `/proc/pressure/*`, in microseconds.
pub(crate) fn waited_us(text: &str) -> Option<u64> {
    stalled_us(text, "some")
}

/// The running total of `some` or of `full` in `/proc/pressure/*`, in microseconds.
pub(crate) fn stalled_us(text: &str, share: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(share))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// The share of the last ten seconds in which some task waited, in percent, of a file of `/proc/pressure`.
pub(crate) fn waited_avg10(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
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
    fn the_kernel_s_lines_are_read() {
        let ticks = CpuTicks { total: 100, idle: 83, steal: 4 };
        assert_eq!(cpu_ticks("cpu  10 1 2 80 3 0 0 4 7 0\ncpu0 1 1\n"), Some(ticks));
        assert_eq!(cpu_ticks("cpu  10 1 5\n"), None);
        assert_eq!(cpu_ticks(""), None);
        assert_eq!(
            waited_us("some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n"),
            Some(1234)
        );
        assert_eq!((waited_us("full total=9"), stalled_us("full total=9\n", "full")), (None, Some(9)));
        assert_eq!(waited_avg10("some avg10=1.25 avg60=0.00 total=1\nfull avg10=9.00\n"), Some(1.25));
        assert_eq!(waited_avg10("full avg10=9.00"), None);
        assert!(memory_available_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
