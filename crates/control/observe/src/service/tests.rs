//! Small trees with one service.

use std::path::Path;

use planish_model::Catalogue;

use super::*;
use crate::testing::write;

/// Two nodes of two CPUs each; CPU 3 is isolated. The service may run on 2 and 3 and has half its memory on node 0.
fn tree(root: &Path) {
    for (path, text) in [
        ("/proc/version", "Linux\n"),
        ("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("/sys/devices/system/cpu/online", "0-3\n"),
        ("/sys/devices/system/cpu/isolated", "3\n"),
        ("/sys/devices/system/node/online", "0-1\n"),
        ("/sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("/sys/devices/system/node/node1/cpulist", "2-3\n"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        (
            "/proc/77/status",
            "Name:\tdb\nThreads:\t2\nVmRSS:\t    8192 kB\nVmPTE:\t     64 kB\nVmSwap:\t  4 kB\nVmLck:\t 0 kB\n\
             Cpus_allowed_list:\t2-9\nMems_allowed_list:\t0-1\nTHP_enabled:\t0\n",
        ),
        ("/proc/77/stat", "77 (db) S 1 77 77 0 -1 4194560 500 0 12 0 30 20 0 0 20 0 2 0 9 0 0\n"),
        ("/proc/77/cgroup", "0::/system.slice/db.service\n"),
        ("/proc/77/schedstat", "3000000000 1000000000 9\n"),
        (
            "/proc/77/limits",
            "Limit   Soft Limit Hard Limit Units\nMax open files            1024                 524288   files\n",
        ),
        (
            "/proc/77/smaps",
            "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \nSize: 8192 kB\nKernelPageSize: 4 kB\nMMUPageSize: 4 kB\n\
             Rss: 8192 kB\nAnonymous: 8192 kB\nAnonHugePages: 2048 kB\nVmFlags: rd wr\n\
             7f0001000000-7f0001001000 r-xp 00000000 08:01 5   /usr/lib/libjemalloc.so.2\nSize: 4 kB\n\
             KernelPageSize: 4 kB\nMMUPageSize: 4 kB\nRss: 0 kB\nVmFlags: rd ex\n",
        ),
        (
            "/proc/77/numa_maps",
            "7f0000000000 default anon=2048 dirty=2048 N0=1024 N1=1024 kernelpagesize_kB=4\n",
        ),
        ("/sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"),
        ("/sys/fs/cgroup/system.slice/db.service/cpu.max", "150000 100000\n"),
        (
            "/sys/fs/cgroup/system.slice/db.service/cpu.stat",
            "usage_usec 9\nnr_periods 200\nnr_throttled 50\nthrottled_usec 7000\n",
        ),
        ("/sys/fs/cgroup/system.slice/db.service/memory.max", "10485760\n"),
        ("/sys/fs/cgroup/system.slice/db.service/memory.current", "10380902\n"),
        ("/sys/fs/cgroup/system.slice/db.service/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n"),
    ] {
        write(root, path, text);
    }
}

fn seen(root: &Path, name: ServiceName<'_>) -> Option<SeenService> {
    let host = Host::open(root).expect("a tree");
    let observation = crate::observe(&host, &Catalogue::embedded().expect("sound"));
    service(&host, &observation, name)
}

fn number(seen: &SeenService, name: &str) -> Option<f64> {
    seen.facts.iter().find(|(fact, _)| *fact == name).and_then(|(_, value)| match value {
        FactValue::Number(number) => Some(*number),
        FactValue::Text(_) => None,
    })
}

#[test]
fn a_service_is_seen_with_its_limits_nodes_pages_and_waits() {
    let tree_folder = tempfile::tempdir().expect("a folder");
    tree(tree_folder.path());
    for name in [ServiceName::Pid(77), ServiceName::Name("db")] {
        let seen = seen(tree_folder.path(), name).expect("it runs");
        let view = &seen.view;
        assert_eq!((view.name.as_str(), view.pid, view.processes, view.threads), ("db", 77, 1, 2));
        assert_eq!(
            (view.cpus.allowed.as_str(), view.cpus.isolated.as_str(), view.cpus.count),
            ("2-3", "3", 2)
        );
        assert_eq!((view.cpus.nodes.as_slice(), view.cpus.wait_percent), (&[1][..], Some(25.0)));
        assert_eq!(view.allocator.as_deref(), Some("jemalloc"));
        assert_eq!((view.thp_allowed, view.clock.as_deref()), (Some(false), Some("tsc")));
        assert_eq!((view.faults.minor, view.faults.major), (500, 12));
        let memory = view.memory.as_ref().expect("its smaps are there");
        assert_eq!((memory.base_bytes, memory.thp_bytes), (6 << 20, 2 << 20));
        let nodes: Vec<(u32, u64, bool)> = memory.nodes.iter().map(|n| (n.node, n.bytes, n.local)).collect();
        assert_eq!(nodes, [(0, 4 << 20, false), (1, 4 << 20, true)]);
        let told: Vec<&str> = view.groups.iter().map(|group| group.limit.as_str()).collect();
        assert_eq!(told, ["1.5 CPUs", "10 MiB", "out of memory"]);
        assert_eq!(view.groups[0].used, "throttled in 50 of 200 periods, 7 ms in all");
        for (fact, value) in [
            ("service.throttled_percent", 25.0),
            ("service.quota_cpus", 1.5),
            ("service.remote_percent", 50.0),
            ("service.huge_percent", 25.0),
            ("service.isolated_count", 1.0),
            ("service.shared_count", 1.0),
            ("service.nofile_count", 1024.0),
            ("service.oom_kills", 1.0),
            ("service.thp_disabled", 1.0),
            ("service.major_faults", 12.0),
        ] {
            assert_eq!(number(&seen, fact), Some(value), "{fact}");
        }
        assert_eq!(view.unread, [""; 0]);
    }
}

#[test]
fn a_group_that_may_not_use_the_pools_is_told_by_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    tree(root);
    let pools = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    for (file, pages) in [("nr_hugepages", "512"), ("free_hugepages", "512"), ("surplus_hugepages", "0")] {
        write(root, &format!("{pools}/{file}"), format!("{pages}\n"));
    }
    let group = "/sys/fs/cgroup/system.slice";
    let share = || number(&seen(root, ServiceName::Pid(77)).expect("it runs"), "service.huge_group_percent");
    assert_eq!(share(), None, "no file, no limit");
    write(root, &format!("{group}/hugetlb.2MB.max"), "max\n");
    assert_eq!(share(), None);
    // Half of the pool above it, a quarter in its own group: the least counts.
    write(root, &format!("{group}/hugetlb.2MB.rsvd.max"), "536870912\n");
    assert_eq!(share(), Some(50.0));
    write(root, &format!("{group}/db.service/hugetlb.2MB.max"), "268435456\n");
    assert_eq!(share(), Some(25.0));
    let seen = seen(root, ServiceName::Pid(77)).expect("it runs");
    assert!(seen.view.groups.iter().any(|limit| {
        limit.file.ends_with("db.service/hugetlb.2MB.max") && limit.limit == "256 MiB of 2 MiB pages"
    }));
}

#[test]
fn groups_of_version_1_are_read_in_each_hierarchy() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    tree(root);
    let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                  cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
    write(root, "/proc/mounts", mounts);
    write(root, "/proc/77/cgroup", "4:memory:/db\n1:cpu,cpuacct:/db\n0::/\n");
    write(root, "/sys/fs/cgroup/cpu,cpuacct/db/cpu.cfs_quota_us", "50000\n");
    write(root, "/sys/fs/cgroup/cpu,cpuacct/db/cpu.cfs_period_us", "100000\n");
    write(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write(
        root,
        "/sys/fs/cgroup/cpu,cpuacct/db/cpu.stat",
        "nr_periods 10\nnr_throttled 1\nthrottled_time 5000000\n",
    );
    write(root, "/sys/fs/cgroup/memory/db/memory.limit_in_bytes", "1048576\n");
    write(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    let seen = seen(root, ServiceName::Pid(77)).expect("it runs");
    let told: Vec<&str> = seen.view.groups.iter().map(|group| group.limit.as_str()).collect();
    assert_eq!(told, ["1 MiB", "0.5 CPUs"]);
    assert_eq!(number(&seen, "service.throttled_percent"), Some(10.0));
    assert_eq!(number(&seen, "service.memory_group_percent"), None, "nobody tells what is used");
}

#[test]
fn what_may_not_be_read_is_told_and_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    tree(root);
    write(
        root,
        "/meta.toml",
        [planish_skip::MACHINE, "name = \"box\"\n[unreadable]\n\"/proc/77/smaps\" = \"EACCES\"\n"].concat(),
    );
    let seen = seen(root, ServiceName::Pid(77)).expect("its status is for everybody");
    assert!(seen.view.memory.is_none() && seen.view.allocator.is_none() && seen.view.allocator_unread);
    assert_eq!(seen.view.unread.len(), 1, "{:?}", seen.view.unread);
    assert_eq!(number(&seen, "service.remote_percent"), None);
    assert_eq!(number(&seen, "service.throttled_percent"), Some(25.0));
}

#[test]
fn nobody_of_that_name_is_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    tree(folder.path());
    assert_eq!(seen(folder.path(), ServiceName::Name("none")), None);
    assert_eq!(seen(folder.path(), ServiceName::Pid(78)), None);
}

#[test]
fn every_fact_of_a_service_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    tree(folder.path());
    let seen = seen(folder.path(), ServiceName::Pid(77)).expect("it runs");
    assert!(seen.facts.len() > 15);
    for (name, _) in &seen.facts {
        assert!(crate::facts::FACTS.iter().any(|(listed, _)| listed == name), "`{name}` is not listed");
    }
}

/// The machine that the test runs on, and this test as a service of it.
#[test]
fn this_very_process_is_seen() {
    let host = Host::live();
    let observation = crate::observe(&host, &Catalogue::embedded().expect("sound"));
    let seen = service(&host, &observation, ServiceName::Pid(std::process::id())).expect("it runs");
    assert!(seen.view.cpus.count > 0 && seen.view.threads > 0 && seen.view.faults.minor > 0);
    assert!(seen.view.memory.is_some_and(|memory| memory.base_bytes > 0 && memory.page_table_bytes > 0));
    assert!(seen.view.limits.iter().any(|limit| limit.name == "nofile"));
}

/// `pthread_exit` in `main`: the kernel shows of the first thread that it has ended, and its memory below another one.
#[test]
fn a_service_whose_first_thread_has_ended_is_seen_by_another() {
    let tree_folder = tempfile::tempdir().expect("a folder");
    let root = tree_folder.path();
    tree(root);
    let whole = seen(root, ServiceName::Pid(77)).expect("it runs").view;
    for name in ["status", "smaps", "numa_maps", "cgroup", "limits"] {
        let path = format!("/proc/77/{name}");
        let text = Host::open(root).expect("a tree").read_lossy(&path).expect("it was written");
        write(
            root,
            &format!("/proc/78/{name}"),
            text.replace("Name:\tdb\n", "Name:\tworker\nState:\tS (sleeping)\n"),
        );
        write(root, &path, "");
    }
    write(root, "/proc/77/cgroup", "0::/\n");
    write(
        root,
        "/proc/77/status",
        "Name:\tdb\nState:\tZ (zombie)\nTgid:\t77\nThreads:\t2\nUid:\t0\t0\t0\t0\n",
    );
    write(root, "/proc/77/task/77/schedstat", "3000000000 1000000000 9\n");
    write(root, "/proc/77/task/78/schedstat", "0 0 0\n");
    for name in [ServiceName::Pid(77), ServiceName::Name("db")] {
        assert_eq!(seen(root, name).expect("it runs").view, whole);
    }
}
