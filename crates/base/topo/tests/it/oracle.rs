//! Machines that others have recorded, and those that we have, against what hwloc makes of them; the live one also
//! against lscpu.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use planish_host::Host;
use planish_sys::CpuSet;
use planish_topo::{Cache, Topology};
use serde_json::Value;

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

    let test = "the_live_machine_agrees_with_lscpu";
    let Some(told) = lscpu(&["--online", "-e=CPU,CORE,SOCKET,NODE"]) else {
        return planish_skip::skip(test, "lscpu is not installed");
    };
    let rows = told["cpus"].as_array().expect(BROKEN);
    let number = |row: &Value, name: &str| row[name].to_string().trim_matches('"').to_owned();
    let distinct = |name: &str| rows.iter().map(|row| number(row, name)).collect::<BTreeSet<String>>().len();
    assert_eq!(topology.online().count(), rows.len());
    assert_eq!(topology.core_count(), distinct("core"));
    assert_eq!(topology.package_count(), distinct("socket"));
    assert_eq!(topology.cpu_nodes().count(), distinct("node"));
    for row in rows {
        let (cpu, node) = (number(row, "cpu"), number(row, "node"));
        let ours = topology.cpus.iter().find(|own| own.id.to_string() == cpu).expect("it is there");
        // A kernel without nodes has none to tell.
        assert!(node == "null" || ours.node.map(|node| node.to_string()) == Some(node), "CPU {cpu}");
    }
    let told = lscpu(&["--bytes", "--caches"]).unwrap_or_default();
    for cache in told["caches"].as_array().into_iter().flatten() {
        let (level, kind) = (number(cache, "level"), number(cache, "type").to_lowercase());
        let same =
            |own: &&Cache| own.level.to_string() == level && format!("{:?}", own.kind).to_lowercase() == kind;
        let ours: Vec<&Cache> = topology.caches.iter().filter(same).collect();
        assert!(!ours.is_empty(), "{cache}");
        let all: u64 = ours.iter().map(|own| own.bytes).sum();
        assert_eq!(ours[0].bytes.to_string(), number(cache, "one-size"), "{cache}");
        assert_eq!(all.to_string(), number(cache, "all-size"), "{cache}");
    }
}

/// What `lscpu --json` says; `None` where it is not installed, or too old for a question.
fn lscpu(arguments: &[&str]) -> Option<Value> {
    let output = Command::new("lscpu").arg("--json").args(arguments).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// What `lstopo` draws of a machine, as rows that compare: of CPUs, cores, packages and nodes what they hold, of caches
/// also what they are. `None` where it is not installed, or cannot read that machine.
fn lstopo(root: Option<&Path>) -> Option<BTreeSet<String>> {
    let mut command = Command::new("lstopo-no-graphics");
    command.args(["--disallowed", "--no-io", "--of", "xml"]);
    if let Some(root) = root {
        command.env("HWLOC_FSROOT", root).env("HWLOC_THISSYSTEM", "0");
    }
    // What CPUID says is another machine's in a recording, and is not what we read on this one.
    command.env("HWLOC_COMPONENTS", "linux,stop");
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).expect(BROKEN);
    let rows = text.split("<object ").skip(1).filter_map(|object| {
        let object = object.split('>').next()?;
        let value = |name: &str| Some(object.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0);
        let kind = object.strip_prefix("type=\"")?.split_once('"')?.0;
        // Of words that are zero nothing is written but the comma.
        let words = value("cpuset")?.split(',').map(|word| format!("{:0>8}", word.trim_start_matches("0x")));
        let cpus: CpuSet = CpuSet::parse_mask(&words.collect::<Vec<_>>().join(",")).expect(BROKEN);
        match kind {
            "Core" | "Package" => Some(format!("{kind} {cpus}")),
            "PU" => Some(format!("PU {}", value("os_index")?)),
            "NUMANode" => Some(format!("NUMANode {}", value("os_index")?)),
            cache if cache.ends_with("Cache") => {
                let what =
                    ["unified", "data", "instruction"].get(value("cache_type")?.parse::<usize>().ok()?)?;
                Some(format!("L{} {what} {} bytes {cpus}", value("depth")?, value("cache_size")?))
            }
            _ => None,
        }
    });
    Some(rows.collect())
}

/// The same rows of what we read.
fn rows_of(topology: &Topology) -> BTreeSet<String> {
    let online = || topology.cpus.iter().filter(|cpu| cpu.online);
    let mut rows = BTreeSet::new();
    for cpu in online() {
        rows.insert(format!("PU {}", cpu.id));
        rows.insert(format!("Core {}", cpu.threads));
        if cpu.package.is_some() {
            let package: CpuSet =
                online().filter(|own| own.package == cpu.package).map(|own| own.id).collect();
            rows.insert(format!("Package {package}"));
        }
    }
    rows.extend(topology.nodes.iter().map(|node| format!("NUMANode {}", node.id)));
    rows.extend(topology.caches.iter().map(|cache| {
        let kind = format!("{:?}", cache.kind).to_lowercase();
        format!("L{} {kind} {} bytes {}", cache.level, cache.bytes, cache.cpus)
    }));
    rows
}

/// What only one of two sets of rows has.
fn unlike(ours: &BTreeSet<String>, theirs: &BTreeSet<String>) -> Vec<String> {
    let only = |whose: &str, a: &BTreeSet<String>, b: &BTreeSet<String>| {
        a.difference(b).map(|row| format!("{whose}: {row}")).collect::<Vec<_>>()
    };
    [only("planish", ours, theirs), only("lstopo", theirs, ours)].concat()
}

#[test]
fn the_live_machine_agrees_with_lstopo() {
    let Some(theirs) = lstopo(None) else {
        return planish_skip::skip("the_live_machine_agrees_with_lstopo", "lstopo is not installed");
    };
    assert_eq!(unlike(&rows_of(&Topology::read(&Host::live())), &theirs), [""; 0]);
}

/// A copy of what a recorded machine tells of its CPUs and nodes, with the masks that hwloc asks for beside our lists.
#[expect(clippy::disallowed_methods, reason = "makes the oracle's own tree")]
fn with_masks(machine: &Path, topology: &Topology, into: &Path) {
    const SYSTEM: &str = "sys/devices/system";
    std::fs::create_dir_all(into.join(SYSTEM)).expect(BROKEN);
    for folder in ["cpu", "node"].map(|name| format!("{SYSTEM}/{name}")) {
        if machine.join(&folder).exists() {
            let copied =
                Command::new("cp").arg("-a").arg(machine.join(&folder)).arg(into.join(SYSTEM)).status();
            assert!(copied.expect(BROKEN).success(), "{BROKEN}");
        }
    }
    let mask = |cpus: &CpuSet| -> String {
        let highest = cpus.iter().last().unwrap_or(0);
        let group = |at: u32| {
            cpus.iter().filter(|cpu| cpu / 32 == at).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32))
        };
        let groups: Vec<String> = (0..=highest / 32).rev().map(|at| format!("{:08x}", group(at))).collect();
        groups.join(",") + "\n"
    };
    let write = |path: String, cpus: &CpuSet| {
        let path = into.join(SYSTEM).join(path);
        std::fs::create_dir_all(path.parent().expect(BROKEN)).expect(BROKEN);
        std::fs::write(path, mask(cpus)).expect(BROKEN);
    };
    for cpu in topology.cpus.iter().filter(|cpu| cpu.online) {
        let folder = format!("cpu/cpu{}", cpu.id);
        let of_package = |own: &&planish_topo::Cpu| own.online && own.package == cpu.package;
        let package: CpuSet = topology.cpus.iter().filter(of_package).map(|own| own.id).collect();
        write(format!("{folder}/topology/core_cpus"), &cpu.threads);
        write(format!("{folder}/topology/package_cpus"), &package);
        let caches = std::fs::read_dir(into.join(SYSTEM).join(&folder).join("cache"));
        for index in caches.into_iter().flatten().flatten().map(|entry| entry.file_name()) {
            let index = format!("{folder}/cache/{}", index.to_string_lossy());
            let list = std::fs::read_to_string(into.join(SYSTEM).join(&index).join("shared_cpu_list"));
            let Ok(list) = list else { continue };
            write(format!("{index}/shared_cpu_map"), &CpuSet::parse_list(list.trim()).expect(BROKEN));
        }
    }
    for node in topology.nodes.iter().filter(|_| topology.numa) {
        write(format!("node/node{}/cpumap", node.id), &node.cpus);
    }
}

/// Real machines and guests, as planish recorded them. What a record leaves out for being large (caches of all CPUs but
/// some) hwloc does not have, either.
#[test]
#[expect(clippy::disallowed_methods, reason = "lists the fixtures")]
fn the_machines_that_we_recorded_agree_with_lstopo() {
    let test = "the_machines_that_we_recorded_agree_with_lstopo";
    if lstopo(None).is_none() {
        return planish_skip::skip(test, "lstopo is not installed");
    }
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts");
    let folder = tempfile::tempdir().expect(BROKEN);
    let mut agreed = Vec::new();
    for entry in std::fs::read_dir(machines).expect(BROKEN).flatten().filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let topology = Topology::read(&Host::open(&entry.path()).expect(BROKEN));
        let tree = folder.path().join(&name);
        with_masks(&entry.path(), &topology, &tree);
        let Some(theirs) = lstopo(Some(&tree)) else { continue };
        assert_eq!(unlike(&rows_of(&topology), &theirs), [""; 0], "{name}");
        agreed.push(name);
    }
    let guests = agreed.iter().filter(|name| name.starts_with("guest-")).count();
    assert!(agreed.len() >= 10 && guests >= 4, "{agreed:?}");
}
