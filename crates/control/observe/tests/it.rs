//! Whole trees: a large machine, a container, odd text, nothing at all.

use std::path::Path;
use std::time::{Duration, Instant};

use planish_host::Host;
use planish_model::{Access, Catalogue, FactValue, KnobId, Observation};

const CPUS: u32 = 256;

#[expect(clippy::disallowed_methods, reason = "the test writes the tree that it reads")]
fn write(root: &Path, path: &str, text: &(impl AsRef<[u8]> + ?Sized)) {
    let path = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().expect("absolute")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

fn observe(root: &Path) -> Observation {
    let catalogue = Catalogue::embedded().expect("sound");
    planish_observe::observe(&Host::open(root).expect("a tree"), &catalogue)
}

fn places(observation: &Observation, id: &str) -> Vec<(String, Option<String>)> {
    let readings = &observation.knobs[&KnobId::new(id)];
    readings.iter().map(|reading| (reading.place.clone(), reading.value.clone())).collect()
}

/// A large machine as its kernel shows it: frequency, sleep states and limits of every CPU.
fn large(root: &Path) {
    write(root, "/proc/cpuinfo", "flags\t\t: fpu tsc\n");
    write(
        root,
        "/proc/meminfo",
        "MemTotal: 1056000000 kB\nMemAvailable: 1000000000 kB\nHugepagesize: 2048 kB\n",
    );
    write(root, "/sys/devices/system/cpu/online", &format!("0-{}\n", CPUS - 1));
    for cpu in 0..CPUS {
        let cpu = format!("/sys/devices/system/cpu/cpu{cpu}");
        write(root, &format!("{cpu}/cpufreq/scaling_governor"), "powersave\n");
        write(root, &format!("{cpu}/cpufreq/scaling_available_governors"), "performance powersave\n");
        write(root, &format!("{cpu}/cpufreq/energy_performance_preference"), "balance_performance\n");
        let hints = "default performance balance_performance balance_power power\n";
        write(root, &format!("{cpu}/cpufreq/energy_performance_available_preferences"), hints);
        write(root, &format!("{cpu}/power/pm_qos_resume_latency_us"), "0\n");
        for (state, latency) in [(0, 0), (1, 2), (2, 10), (3, 133)] {
            write(root, &format!("{cpu}/cpuidle/state{state}/disable"), "0\n");
            write(root, &format!("{cpu}/cpuidle/state{state}/latency"), &format!("{latency}\n"));
        }
    }
}

#[test]
fn a_large_machine_is_seen_whole_and_quickly() {
    let tree = tempfile::tempdir().expect("a folder");
    large(tree.path());
    let start = Instant::now();
    let observation = observe(tree.path());
    let took = start.elapsed();
    assert_eq!(observation.host.cpus_online, CPUS);
    assert_eq!(observation.host.guest, None);
    assert_eq!(places(&observation, "cpu.governor").len(), CPUS as usize);
    assert_eq!(places(&observation, "cpu.idle_state_disable").len(), 4 * CPUS as usize);
    let governor = &observation.knobs[&KnobId::new("cpu.governor")];
    assert_eq!(governor[2].place, "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor");
    assert_eq!(governor[0].offered, ["performance", "powersave"]);
    // A debug build on a loaded machine: the bound only catches work that grows with the square of the CPUs.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn an_empty_tree_is_a_host_of_which_nothing_is_known() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/version", "Linux\n");
    let observation = observe(tree.path());
    assert!(observation.pools.is_empty());
    assert_eq!(observation.host.nodes, [0]);
    for (id, readings) in &observation.knobs {
        assert_eq!(readings.len(), 1, "{id}");
        assert_eq!(readings[0].access, Access::Absent, "{id}");
    }
    assert!(!observation.facts.contains_key("memory.available_percent"));
}

#[test]
fn odd_text_is_kept_as_it_is_and_breaks_nothing() {
    let tree = tempfile::tempdir().expect("a folder");
    for file in ["meminfo", "vmstat", "stat", "buddyinfo", "cpuinfo", "cmdline", "swaps", "pressure/memory"] {
        write(tree.path(), &format!("/proc/{file}"), "\u{fffd} : = ][ 18446744073709551616 kB\n\n-1\n");
    }
    write(tree.path(), "/proc/sys/vm/swappiness", "many\n");
    write(tree.path(), "/proc/sys/vm/min_free_kbytes", "99999999999999999999\n");
    write(tree.path(), "/sys/kernel/mm/hugepages/hugepages-xkB/nr_hugepages", "no\n");
    write(tree.path(), "/sys/devices/system/node/online", "3-1,x\n");
    write(tree.path(), "/etc/sysctl.d/50-x.conf", "=\nvm.swappiness\n = 3\nvm.swappiness = = 4\n");
    let observation = observe(tree.path());
    assert_eq!(places(&observation, "vm.swappiness")[0].1.as_deref(), Some("many"));
    assert!(observation.host.huge_page_bytes.is_empty());
}

#[test]
fn without_sys_the_default_size_of_huge_pages_is_known_and_no_pool_is_seen() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/meminfo", "MemTotal: 1000000 kB\nHugepagesize: 2048 kB\n");
    let observation = observe(tree.path());
    assert_eq!(observation.host.huge_page_bytes, [2 << 20]);
    assert!(observation.pools.is_empty());
    write(tree.path(), "/proc/meminfo", "MemTotal: 1000000 kB\n");
    assert!(observe(tree.path()).host.huge_page_bytes.is_empty(), "a kernel without pools");
}

#[test]
fn a_container_is_told_by_its_mounts_and_not_by_a_file_of_its_image() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/version", "Linux\n");
    write(tree.path(), "/.dockerenv", "");
    assert_eq!(observe(tree.path()).host.container.as_deref(), Some("/.dockerenv is there"));
    write(tree.path(), "/proc/2/comm", "kthreadd\n");
    assert_eq!(observe(tree.path()).host.container, None, "a virtual machine made from an image");
}

#[test]
fn a_guest_is_told_by_its_cpu_and_a_cloud_vendor_alone_is_no_evidence() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/cpuinfo", "flags\t: fpu tsc\n");
    write(tree.path(), "/sys/class/dmi/id/product_name", "KVM\n");
    assert_eq!(observe(tree.path()).host.guest, None, "x86 without the flag is bare metal");
    write(tree.path(), "/proc/cpuinfo", "flags\t: fpu hypervisor tsc\n");
    assert_eq!(
        observe(tree.path()).host.guest.as_deref(),
        Some("hypervisor flag of the CPU, product_name KVM")
    );
    write(tree.path(), "/proc/cpuinfo", "Features\t: fp asimd\n");
    assert_eq!(observe(tree.path()).host.guest.as_deref(), Some("product_name KVM"));
}

#[test]
fn memory_without_cpus_is_told_with_what_the_firmware_rates_it_at() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/version", "Linux\n");
    let node = |path: &str, text: &str| {
        write(tree.path(), &format!("/sys/devices/system/node/{path}"), text);
    };
    node("has_memory", "0-3\n");
    node("has_cpu", "0-1\n");
    node("node2/access0/initiators/read_latency", "215\n");
    node("node2/access0/initiators/read_bandwidth", "24576\n");
    node("node3/access0/initiators/read_latency", "0\n");
    let facts = observe(tree.path()).facts;
    assert_eq!(facts["numa.memory_only_count"], FactValue::Number(2.0));
    let told = "node 2 (rated at 215 ns and 24 GiB a second), node 3 (the firmware rates nothing)";
    assert_eq!(facts["numa.memory_only"], FactValue::Text(told.to_owned()));
    node("has_cpu", "0-3\n");
    let facts = observe(tree.path()).facts;
    assert_eq!(facts["numa.memory_only_count"], FactValue::Number(0.0));
    assert!(!facts.contains_key("numa.memory_only"));
}

#[test]
fn the_live_machine_is_observed_within_its_time() {
    let catalogue = Catalogue::embedded().expect("sound");
    let host = Host::live();
    let start = Instant::now();
    let observation = planish_observe::observe(&host, &catalogue);
    let took = start.elapsed();
    assert!(observation.host.memory_bytes > 0);
    assert!(observation.knobs[&KnobId::new("vm.swappiness")][0].value.is_some());
    // 50 ms is the promise of a release build on a quiet machine; this one only catches a pass gone wrong.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn cpus_that_the_kernel_did_not_isolate_are_not_told_as_given() {
    let told = |cmdline: &str, taken: &str| {
        let tree = tempfile::tempdir().expect("a folder");
        write(tree.path(), "/proc/cmdline", &format!("root=/dev/vda1 {cmdline}\n"));
        write(tree.path(), "/sys/devices/system/cpu/possible", "0-7\n");
        let (file, id) = match cmdline.starts_with("nohz_full=") {
            true => ("nohz_full", "boot.nohz_full"),
            false => ("isolated", "boot.isolcpus"),
        };
        write(tree.path(), &format!("/sys/devices/system/cpu/{file}"), taken);
        places(&observe(tree.path()), id).remove(0).1.expect("a value")
    };
    let ignored = |given: &str| format!("(given as {given}, and not taken by the kernel)");
    for (cmdline, isolated) in [
        ("isolcpus=2-3", "2-3\n"),
        ("isolcpus=domain,managed_irq,6-N", "6-7\n\0"),
        ("isolcpus=0,5", "5\n"),
        ("isolcpus=managed_irq,2-3", "\n"),
        ("isolcpus=nohz,2-3", ""),
    ] {
        let given = cmdline.split_once('=').expect("a value").1;
        assert_eq!(told(cmdline, isolated), given, "{cmdline}");
    }
    for given in ["banana", "2-30", "1-N", "domain,2-3"] {
        assert_eq!(told(&format!("isolcpus={given}"), "\n"), ignored(given));
    }
    assert_eq!(told("isolcpus=2-5", "2-3\n"), ignored("2-5"));
    assert_eq!(told("quiet", "\n"), "(not given)");
    for (given, taken) in [("2-3", "2-3\n"), ("all", "1-7\n"), ("1-N:1/2", "1,3,5,7\n")] {
        assert_eq!(told(&format!("nohz_full={given}"), taken), given);
        for nothing in ["(null)\n", "\n"] {
            assert_eq!(told(&format!("nohz_full={given}"), nothing), ignored(given), "{nothing}");
        }
    }
}

/// systemd, udev and the kernel read bytes: a comment in another encoding is none of their business.
#[test]
fn a_byte_that_is_no_utf_8_hides_no_line_of_a_file() {
    let (swappiness, disk) = ("/proc/sys/vm/swappiness", "/sys/block/sda/queue/read_ahead_kb");
    let rule = format!("ACTION==\"add|change\", KERNEL==\"sda\", ATTR{{queue/read_ahead_kb}}=\"{}\"", 64);
    for (file, place, line, value) in [
        ("/etc/sysctl.d/95-x.conf", swappiness, "vm.swappiness = 61".to_owned(), "61"),
        ("/etc/sysctl.conf", swappiness, "vm.swappiness = 62".to_owned(), "62"),
        ("/etc/tmpfiles.d/x.conf", swappiness, format!("w {swappiness} - - - - 63"), "63"),
        ("/etc/udev/rules.d/60-x.rules", disk, rule, "64"),
    ] {
        let tree = tempfile::tempdir().expect("a folder");
        write(tree.path(), "/proc/version", "Linux\n");
        write(tree.path(), swappiness, "60\n");
        write(tree.path(), disk, "128\n");
        write(tree.path(), "/sys/block/sda/dev", "8:0\n");
        write(tree.path(), file, &[&b"# Gr\xfc\xdfe\n"[..], line.as_bytes(), b"\n"].concat());
        let observation = observe(tree.path());
        let found =
            observation.persisted.get(place).map(|found| (found.value.as_str(), found.source.as_str()));
        assert_eq!(found, Some((value, format!("{file}:2").as_str())), "{file}");
    }
    // What lies in /run may be there at the next boot.
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/version", "Linux\n");
    write(tree.path(), swappiness, "60\n");
    write(tree.path(), "/run/sysctl.d/x.conf", b"# \xfc\nvm.swappiness = 61\n");
    let observation = observe(tree.path());
    let may = observation.undecided.get(swappiness).and_then(|values| values.first());
    assert_eq!(may.map(|value| value.source.as_str()), Some("/run/sysctl.d/x.conf:2"));
}
