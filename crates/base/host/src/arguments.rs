//! Arguments of a kernel whose values may be recorded.
//!
//! Anything can stand on a kernel command line: passwords of discs and targets, keys, names of servers, the address of
//! the card that it was booted from. So the value of an argument is kept only where its name is known to mean none of
//! these. The name always stays, so that a reader sees what was there.

/// Names whose values are numbers, sizes, CPUs or words of the kernel. Dashes are written as underscores.
const KNOWN: &[&str] = &[
    "BOOT_IMAGE",
    "acpi",
    "amd_iommu",
    "amd_pstate",
    "apparmor",
    "audit",
    "cgroup_disable",
    "cgroup_enable",
    "cgroup_no_v1",
    "clocksource",
    "cma",
    "console",
    "consoleblank",
    "crashkernel",
    "default_hugepagesz",
    "deferred_init",
    "earlyprintk",
    "elevator",
    "hugepages",
    "hugepagesz",
    "hugetlb_cma",
    "hugetlb_free_vmemmap",
    "idle",
    "init_on_alloc",
    "init_on_free",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "kernelcore",
    "kthread_cpus",
    "l1tf",
    "lockdown",
    "loglevel",
    "lsm",
    "maxcpus",
    "mce",
    "mds",
    "mem",
    "memmap",
    "mitigations",
    "modules",
    "movablecore",
    "nested_pvm",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "panic",
    "panic_on_oops",
    "pci",
    "pcie_aspm",
    "possible_cpus",
    "preempt",
    "psi",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "reboot",
    "retbleed",
    "rootfstype",
    "sched_vcpu_pack",
    "schedstats",
    "security",
    "selinux",
    "skew_tick",
    "slab_nomerge",
    "slub_debug",
    "softlockup_panic",
    "spec_store_bypass_disable",
    "spectre_v2",
    "swiotlb",
    "systemd.cpu_affinity",
    "systemd.legacy_systemd_cgroup_controller",
    "systemd.unified_cgroup_hierarchy",
    "thp_anon",
    "thp_shmem",
    "transparent_hugepage",
    "transparent_hugepage_shmem",
    "transparent_hugepage_tmpfs",
    "tsc",
    "tsx",
    "tsx_async_abort",
    "vsyscall",
    "watchdog",
    "x2apic",
];

/// Families of such names.
const FAMILIES: &[&str] = &[
    "cpufreq.",
    "cpuidle.",
    "cpuidle_haltpoll.",
    "haltpoll.",
    "intel_idle.",
    "iommu.",
    "kvm.",
    "kvm_amd.",
    "kvm_intel.",
    "nvme.",
    "nvme_core.",
    "nvproxy.",
    "page_alloc.",
    "page_reporting.",
    "pcie_aspm.",
    "planish.",
    "processor.",
    "random.",
    "rcupdate.",
    "rcutree.",
    "scsi_mod.",
    "sysctl.fs.",
    "sysctl.kernel.",
    "sysctl.net.",
    "sysctl.vm.",
    "workqueue.",
    "zswap.",
];

/// Where a root file system may be said to lie without telling whose it is; ids are replaced later.
const ROOTS: &[&str] = &[
    "UUID=",
    "PARTUUID=",
    "/dev/sd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/mmcblk",
    "/dev/md",
    "redacted",
];

/// Arguments up to the `--` behind which they are for process 1, with `redacted` for each value that is not known to
/// tell nothing. Spaces stay as they are; those inside double quotes separate nothing.
pub(crate) fn without_unknown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let separates = move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    for piece in text.split_inclusive(separates) {
        let word = piece.trim_end();
        if word == "--" {
            return out.trim_end().to_owned();
        }
        out.push_str(&kept(word));
        out.push_str(&piece[word.len()..]);
    }
    out
}

fn kept(word: &str) -> String {
    let Some((name, value)) = word.split_once('=') else {
        // A card's address without its colons.
        let is_address = word.len() == 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        return if is_address { "redacted".to_owned() } else { word.to_owned() };
    };
    let bare = name.trim_start_matches('"').replace('-', "_");
    let known = KNOWN.contains(&bare.as_str()) || FAMILIES.iter().any(|family| bare.starts_with(family));
    let is_root = bare == "root" && ROOTS.iter().any(|start| value.starts_with(start));
    if (known && !names_somebody(&bare, value)) || is_root {
        word.to_owned()
    } else {
        format!("{name}=redacted")
    }
}

/// Whether a value of a known argument may name a host or a person all the same: a kernel that came over a network, and
/// any sysctl that is no number (`kernel.hostname`, `kernel.core_pattern`).
fn names_somebody(bare: &str, value: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || " ,-\t\"".contains(c);
    let is_remote =
        value.contains("://") || ["(tftp", "(http", "(pxe"].iter().any(|start| value.starts_with(start));
    is_remote || (bare.starts_with("sysctl.") && !value.chars().all(is_number))
}

/// The part of a line of a boot loader's file that is arguments of a kernel: of GRUB's menu, defaults and environment,
/// of the Boot Loader Specification, of extlinux.
pub(crate) fn in_line(line: &str) -> Option<std::ops::Range<usize>> {
    let begin = line.len() - line.trim_start().len();
    let first = line[begin..].split_whitespace().next()?;
    if ["linux", "linux16", "linuxefi", "options", "append"].contains(&first.to_ascii_lowercase().as_str()) {
        return Some(begin + first.len()..line.len());
    }
    let names = ["GRUB_CMDLINE", "kernelopts"];
    let name = names.iter().find_map(|name| line.find(name))?;
    let value = name + line[name..].find('=')? + 1;
    let text = line[value..].trim_end();
    let quotes = |c: char| c == '"' || c == '\'';
    let start = value + text.len() - text.trim_start_matches(quotes).len();
    let end = value + text.trim_end_matches(quotes).len();
    Some(start..end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_and_values_only_where_they_are_known() {
        for text in [
            "BOOT_IMAGE=/boot/vmlinuz-6.1 root=UUID=1 ro quiet  nohz_full=1-7\tiommu.strict=0",
            "root=/dev/vda2 hugepages=4 isolcpus=managed_irq,4-7 sysctl.vm.swappiness=1 $tuned_params",
            "nvme-core.io-timeout=5",
            "",
        ] {
            assert_eq!(without_unknown(text), text);
        }
        assert_eq!(
            without_unknown(
                "root=/dev/mapper/orion-root dyndbg=\"file a b\" \"x=y z\" sysctl.kernel.hostname=orion a"
            ),
            "root=redacted dyndbg=redacted \"x=redacted sysctl.kernel.hostname=redacted a"
        );
        assert_eq!(
            without_unknown(
                "BOOT_IMAGE=tftp://orion/vmlinuz BOOT_IMAGE=(tftp,10.0.0.1)/v sysctl.kernel.core_pattern=|/x"
            ),
            "BOOT_IMAGE=redacted BOOT_IMAGE=redacted sysctl.kernel.core_pattern=redacted"
        );
        assert_eq!(without_unknown("quiet -- --key secret"), "quiet");
        assert_eq!(without_unknown("525400123456 525400123456x"), "redacted 525400123456x");
    }

    #[test]
    fn arguments_are_found_in_the_files_of_loaders() {
        let part = |line: &'static str| in_line(line).map(|range| &line[range]);
        assert_eq!(part("options root=x ro"), Some(" root=x ro"));
        assert_eq!(part("\tlinux\t/vmlinuz root=x"), Some("\t/vmlinuz root=x"));
        assert_eq!(part("GRUB_CMDLINE_LINUX_DEFAULT=\"a b=c\""), Some("a b=c"));
        assert_eq!(part("GRUB_CMDLINE_LINUX=\"\""), Some(""));
        assert_eq!(part("GRUB_CMDLINE_LINUX="), Some(""));
        assert_eq!(part("  set default_kernelopts='root=x ro'"), Some("root=x ro"));
        assert_eq!(part("kernelopts=root=x ro"), Some("root=x ro"));
        assert_eq!(part("set timeout=5"), None);
        assert_eq!(part("search --fs-uuid --set=root x"), None);
    }
}
