//! Mounts, swap devices and threads of the kernel, as far as advice about them is worth giving. planish makes no mount,
//! and starts and stops no unit of others: rules tell what to type. Options of mounts and schedules of some threads are
//! knobs besides.

use planish_host::Host;
use planish_sys::schedule::Schedule;

use super::Facts;
use crate::tables;

/// File systems that write the time of a read into their inodes.
const ON_DISK: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"];
/// Names that are told before the others are only counted.
const NAMED_MAX: usize = 4;
/// The thread of the first CPU that runs what interrupts leave for later.
const KSOFTIRQD: &str = "/planish/threads/ksoftirqd/0";

/// A line of `/proc/mounts`.
struct Mount<'a> {
    source: &'a str,
    at: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        let line = |line: &'a str| {
            let mut words = line.split(' ');
            let (source, at) = (words.next()?, words.next()?);
            Some(Self { source, at, kind: words.next()?, options: words.next()? })
        };
        text.lines().filter_map(line).collect()
    }

    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|own| own == option || own.split('=').next() == Some(option))
    }

    /// The value of an option, `size=64k` for one.
    fn value(&self, option: &str) -> Option<&'a str> {
        self.options.split(',').find_map(|own| own.strip_prefix(option)?.strip_prefix('='))
    }
}

/// Everything of this module.
pub(super) fn compute(facts: &mut Facts, host: &Host, memory_bytes: u64) {
    let text = host.read_lossy("/proc/mounts").unwrap_or_default();
    let mounts = Mount::all(&text);
    if !mounts.is_empty() {
        access_times(facts, &mounts);
        facts.number("mount.hugetlbfs_count", Some(count(&mounts, "hugetlbfs") as f64));
        shared_memory(facts, &mounts, memory_bytes);
        trim(facts, host, &mounts);
    }
    let swaps = host.read_lossy("/proc/swaps").unwrap_or_default();
    facts.text("swap.devices", named(&tables::swaps(&swaps)));
    realtime(facts, host);
    let msr = host.read("/sys/module/msr/parameters/allow_writes").ok();
    facts.text("msr.allow_writes", msr.map(|text| text.trim().to_owned()));
}

fn count(mounts: &[Mount<'_>], kind: &str) -> usize {
    mounts.iter().filter(|mount| mount.kind == kind).count()
}

/// A few names, and how many others there are.
fn named(names: &[&str]) -> Option<String> {
    let more = names.len().saturating_sub(NAMED_MAX);
    let told = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(told),
        (false, more) => Some(format!("{told} and {more} more")),
    }
}

/// Mounts on which every read of a file is a write of its inode. The kernel's own choice is `relatime`, which writes
/// once a day for each file (`mount(8)`).
fn access_times(facts: &mut Facts, mounts: &[Mount<'_>]) {
    let is_strict = |mount: &&Mount<'_>| {
        let spared = ["relatime", "noatime", "ro"].iter().any(|option| mount.has(option));
        ON_DISK.contains(&mount.kind) && !spared
    };
    let strict: Vec<&str> = mounts.iter().filter(is_strict).map(|mount| mount.at).collect();
    facts.number("mount.strictatime_count", Some(strict.len() as f64));
    facts.text("mount.strictatime", named(&strict));
}

/// The size of `/dev/shm`. Without the option it is half of memory (`Documentation/filesystems/tmpfs.rst`).
fn shared_memory(facts: &mut Facts, mounts: &[Mount<'_>], memory_bytes: u64) {
    let Some(mount) = mounts.iter().rfind(|mount| mount.at == "/dev/shm" && mount.kind == "tmpfs") else {
        return;
    };
    let bytes = match mount.value("size") {
        Some(size) => size_bytes(size),
        None => Some(memory_bytes / 2),
    };
    facts.bytes("shm.size_bytes", bytes);
}

/// `65536k`, as the kernel prints it.
fn size_bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit = match &size[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Mounts on disks that want to know what is free, and whom nobody tells: no `discard`, no timer, no line of cron.
fn trim(facts: &mut Facts, host: &Host, mounts: &[Mount<'_>]) {
    const TOLD_BY: [&str; 5] = [
        "/etc/systemd/system/timers.target.wants/fstrim.timer",
        "/usr/lib/systemd/system/timers.target.wants/fstrim.timer",
        "/etc/cron.weekly/fstrim",
        "/etc/cron.daily/fstrim",
        "/etc/cron.d/fstrim",
    ];
    let disks: Vec<String> = host
        .list("/sys/block")
        .into_iter()
        .filter(|disk| {
            let number = |file: &str| {
                let text = host.read(&format!("/sys/block/{disk}/queue/{file}")).ok()?;
                text.trim().parse::<u64>().ok()
            };
            number("discard_max_bytes").is_some_and(|bytes| bytes > 0) && number("rotational") == Some(0)
        })
        .collect();
    let is_on = |mount: &Mount<'_>, disk: &String| {
        let rest = mount.source.strip_prefix("/dev/").and_then(|device| device.strip_prefix(disk.as_str()));
        // Behind a name that ends with a digit a `p` stands before the number of a partition: nvme0n10 is a disk.
        let number = match disk.ends_with(|c: char| c.is_ascii_digit()) {
            true => rest.and_then(|rest| if rest.is_empty() { Some(rest) } else { rest.strip_prefix('p') }),
            false => rest,
        };
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let untold = |mount: &&Mount<'_>| {
        let is_told = mount.has("discard") || mount.has("ro");
        ON_DISK.contains(&mount.kind) && !is_told && disks.iter().any(|disk| is_on(mount, disk))
    };
    let untold: Vec<&str> = mounts.iter().filter(untold).map(|mount| mount.at).collect();
    let untold = if TOLD_BY.iter().any(|file| host.exists(file)) { Vec::new() } else { untold };
    facts.number("disk.untrimmed_count", (!disks.is_empty()).then_some(untold.len() as f64));
    facts.text("disk.untrimmed", named(&untold));
}

/// On a kernel with PREEMPT_RT, the priority of the thread that runs what interrupts leave for later: 0 for an ordinary
/// one. Other kernels are not asked: to find the thread costs a look at all of the kernel's.
fn realtime(facts: &mut Facts, host: &Host) {
    let is_realtime = host.read("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1");
    facts.number("kernel.realtime", Some(f64::from(u8::from(is_realtime))));
    if !is_realtime {
        return;
    }
    let schedule = host.read(KSOFTIRQD).ok().and_then(|text| Schedule::parse(&text));
    let priority = schedule.map(|schedule| f64::from(schedule.priority()));
    facts.number("kernel.ksoftirqd_priority", priority);
}

#[cfg(test)]
mod tests {
    use planish_model::FactValue;

    use super::*;

    fn facts(files: &[(&str, &str)]) -> Facts {
        let (_folder, host) = crate::testing::host(files);
        let mut facts = Facts::default();
        compute(&mut facts, &host, 8 << 30);
        facts
    }

    fn told(facts: &Facts, name: &str) -> String {
        match facts.0.get(name) {
            None => "-".to_owned(),
            Some(FactValue::Number(number)) => number.to_string(),
            Some(FactValue::Text(text)) => text.clone(),
        }
    }

    const SSD: [(&str, &str); 2] = [
        ("/sys/block/nvme0n1/queue/discard_max_bytes", "2147450880\n"),
        ("/sys/block/nvme0n1/queue/rotational", "0\n"),
    ];

    #[test]
    fn the_relative_time_is_spared_and_the_strict_one_told() {
        let mounts = "/dev/nvme0n1p2 / ext4 rw,relatime 0 0\n/dev/nvme0n1p3 /a xfs rw 0 0\n\
                      /dev/nvme0n1p4 /b xfs ro 0 0\n/dev/nvme0n1p5 /c btrfs rw,noatime 0 0\ntmpfs /t tmpfs rw 0 0\n";
        let seen = facts(&[("/proc/mounts", mounts)]);
        assert_eq!(
            (told(&seen, "mount.strictatime_count"), told(&seen, "mount.strictatime")),
            ("1".into(), "/a".into())
        );
        let none = facts(&[]);
        assert_eq!(told(&none, "mount.strictatime_count"), "-", "without a table nothing is known");
    }

    #[test]
    fn shared_memory_has_the_size_that_it_was_given_or_half() {
        for (options, bytes) in
            [("rw,size=65536k", "67108864"), ("rw,nosuid", "4294967296"), ("rw,size=1x", "-")]
        {
            let seen = facts(&[("/proc/mounts", &format!("shm /dev/shm tmpfs {options} 0 0\n"))]);
            assert_eq!(told(&seen, "shm.size_bytes"), bytes);
        }
    }

    #[test]
    fn a_disk_is_told_what_is_free_by_the_mount_the_timer_or_cron() {
        let seen = |options: &str, more: &[(&str, &str)]| {
            let mounts = format!(
                "/dev/nvme0n1p2 / ext4 rw,relatime{options} 0 0\n\
                 /dev/nvme0n1 /x ext4 rw 0 0\n\
                 /dev/nvme0n12 /y ext4 rw 0 0\n"
            );
            let files: Vec<(&str, &str)> = [("/proc/mounts", mounts.as_str())]
                .into_iter()
                .chain(SSD)
                .chain(more.iter().copied())
                .collect();
            told(&facts(&files), "disk.untrimmed")
        };
        assert_eq!(seen("", &[]), "/, /x");
        assert_eq!(seen(",discard", &[]), "/x");
        assert_eq!(seen("", &[("/etc/cron.weekly/fstrim", "#!/bin/sh\n")]), "-");
        let timer = "/etc/systemd/system/timers.target.wants/fstrim.timer";
        assert_eq!(seen("", &[(timer, "[Timer]\n")]), "-");
    }

    #[test]
    fn the_priority_of_the_thread_is_that_of_a_realtime_kernel() {
        let seen = |more: &[(&str, &str)]| told(&facts(more), "kernel.ksoftirqd_priority");
        let realtime = ("/sys/kernel/realtime", "1\n");
        assert_eq!(seen(&[(KSOFTIRQD, "fifo:7\n")]), "-");
        assert_eq!(seen(&[(KSOFTIRQD, "fifo:7\n"), realtime]), "7");
        assert_eq!(seen(&[(KSOFTIRQD, "other:-5\n"), realtime]), "0");
        assert_eq!(seen(&[realtime]), "-", "in a container none is seen");
    }
}
