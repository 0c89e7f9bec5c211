//! Machines that others have recorded, against what hwloc makes of them, and the live one against lscpu.

use std::path::{Path, PathBuf};
use std::process::Command;

use planish_host::Host;
use planish_sys::CpuSet;
use planish_topo::Topology;

use crate::check;

/// What it means when a helper of these tests fails.
const BROKEN: &str = "the test's own set-up or oracle is broken";

/// Folder of shared test data: `PLANISH_SHARED`, or beside the workspace.
fn shared() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared");
    std::env::var_os("PLANISH_SHARED").map_or_else(beside, PathBuf::from)
}

/// Archives of recorded machines; empty, and said aloud, where there are none.
fn archives(test: &str) -> Vec<PathBuf> {
    let folder = shared().join("machines");
    #[expect(clippy::disallowed_methods, reason = "test data, not the host")]
    let entries = std::fs::read_dir(&folder);
    let Ok(entries) = entries else {
        planish_skip::skip(test, format!("no machines in {}", folder.display()));
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "bz2"));
    paths.sort();
    paths
}

/// Unpacks an archive below `into` and opens the machine in it.
fn unpack(archive: &Path, into: &Path) -> Option<(Host, PathBuf)> {
    std::fs::create_dir(into).expect(BROKEN);
    let status = Command::new("tar").arg("xjf").arg(archive).arg("-C").arg(into).status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "test data, not the host")]
    let root = std::fs::read_dir(into).expect(BROKEN).next().expect(BROKEN).expect(BROKEN).path();
    Some((Host::open(&root).expect(BROKEN), root))
}

/// What `hwloc-calc` answers about the machine at `root`.
fn hwloc(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("hwloc-calc")
        .args(arguments)
        .env("HWLOC_FSROOT", root)
        .env("HWLOC_COMPONENTS", "linux,stop")
        .env("HWLOC_THISSYSTEM", "0")
        .output()
        .expect(BROKEN);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn recorded_machines_hang_together_and_agree_with_hwloc() {
    let test = "recorded_machines_hang_together_and_agree_with_hwloc";
    let has_oracle = Command::new("hwloc-calc").arg("--version").output().is_ok();
    if !has_oracle {
        planish_skip::skip(test, "hwloc-calc is not installed: machines are looked at without it");
    }
    let folder = tempfile::tempdir().expect(BROKEN);
    for (index, archive) in archives(test).iter().enumerate() {
        let Some((host, root)) = unpack(archive, &folder.path().join(index.to_string())) else {
            return planish_skip::skip(test, "tar with bzip2 is not installed");
        };
        let (topology, name) = (Topology::read(&host), archive.display().to_string());
        check(&topology, &name);
        if has_oracle {
            agree(&topology, &root, &name);
        }
    }
}

/// Compares with what hwloc makes of the machine at `root`.
fn agree(topology: &Topology, root: &Path, name: &str) {
    let count = |what: &str| hwloc(root, &["--disallowed", "--number-of", what, "machine:0"]);
    assert_eq!(topology.online().count().to_string(), count("pu"), "CPUs of {name}");
    assert_eq!(topology.core_count().to_string(), count("core"), "cores of {name}");
    assert_eq!(topology.nodes.len().to_string(), count("numanode"), "nodes of {name}");
    if topology.cpus.iter().any(|cpu| cpu.package.is_some()) {
        assert_eq!(topology.package_count().to_string(), count("package"), "packages of {name}");
    } else {
        // Old POWER machines tell none; hwloc then reads the device tree, which we do not.
        assert!(name.contains("ppc"), "no packages of {name}");
    }
    let set = |list: String| CpuSet::parse_list(&list).expect(BROKEN);
    let allowed = hwloc(root, &["--physical-output", "--intersect", "pu", "machine:0"]);
    assert_eq!(topology.allowed(), set(allowed), "allowed CPUs of {name}");
    // Each question starts hwloc anew, which is slow: the first and the last node stand for all. It gives a
    // node without CPUs those of its nearest neighbours.
    for node in topology.nodes.first().into_iter().chain(topology.nodes.last()) {
        if !node.cpus.is_empty() {
            let object = format!("numanode:{}", node.id);
            let question =
                ["--disallowed", "--physical-input", "--physical-output", "--intersect", "pu", &object];
            assert_eq!(node.cpus, set(hwloc(root, &question)), "node {} of {name}", node.id);
        }
    }
}

#[test]
fn the_live_machine_hangs_together_and_agrees_with_lscpu() {
    let topology = Topology::read(&Host::live());
    check(&topology, "live");
    assert_eq!(topology.allowed(), planish_sys::affinity::get(None).expect(BROKEN));
    let here = planish_sys::affinity::here().expect(BROKEN);
    assert_eq!(topology.cpus.iter().find(|cpu| cpu.id == here.cpu).expect(BROKEN).node, Some(here.node));

    let Ok(output) = Command::new("lscpu").args(["--online", "--parse=CPU,CORE,SOCKET,NODE"]).output() else {
        return planish_skip::skip("the_live_machine_agrees_with_lscpu", "lscpu is not installed");
    };
    let text = String::from_utf8(output.stdout).expect(BROKEN);
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    let distinct = |column: usize| {
        let mut values: Vec<&str> = rows.iter().map(|row| row[column]).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    assert_eq!(topology.online().count(), rows.len());
    assert_eq!(topology.core_count(), distinct(1));
    assert_eq!(topology.package_count(), distinct(2));
    assert_eq!(topology.cpu_nodes().count(), distinct(3));
}
