//! The machines in `hosts/`: each opens, hangs together, and is made of what its golden file says.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use planish_host::{Host, Origin, Pattern};
use planish_topo::{Device, Topology};

use crate::check;

fn folders() -> Vec<PathBuf> {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts");
    #[expect(clippy::disallowed_methods, reason = "the folder of recorded machines, not one of them")]
    let entries = std::fs::read_dir(hosts).expect("the repository has recorded machines");
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

fn name_of(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).expect("names of machines are plain words")
}

/// The topology in few lines, as a person would note it.
fn summary(host: &Host, topology: &Topology) -> String {
    let mut text = String::new();
    let mut line =
        |arguments: std::fmt::Arguments| writeln!(text, "{arguments}").expect("a String takes any text");
    let page = host.page_bytes();
    line(format_args!("{} {} page {page} numa {}", host.arch(), host.kernel(), topology.numa));
    let counts = (topology.package_count(), topology.core_count(), topology.threads_per_core_max());
    line(format_args!("packages {} cores {} threads per core {}", counts.0, counts.1, counts.2));
    line(format_args!(
        "online {} allowed {} of {}",
        topology.online(),
        topology.allowed(),
        topology.cpus.len()
    ));
    for cpu in &topology.cpus {
        let told = (cpu.package, cpu.die, cpu.cluster, cpu.core);
        line(format_args!(
            "cpu {} node {:?} package, die, cluster, core {told:?} threads {}",
            cpu.id, cpu.node, cpu.threads
        ));
    }
    for node in &topology.nodes {
        line(format_args!(
            "node {} cpus {} MiB {} distances {:?}",
            node.id,
            node.cpus,
            node.memory_bytes >> 20,
            node.distances
        ));
        for pool in &node.pools {
            line(format_args!(
                "  pool of {} KiB: {} pages, {} free",
                pool.page_bytes >> 10,
                pool.total,
                pool.free
            ));
        }
    }
    for cache in &topology.caches {
        line(format_args!("L{} {:?} {} KiB cpus {}", cache.level, cache.kind, cache.bytes >> 10, cache.cpus));
    }
    for (kind, devices) in [("disk", &topology.disks), ("nic", &topology.nics)] {
        for Device { name, node, pci, is_virtual } in devices {
            line(format_args!("{kind} {name} node {node:?} pci {pci:?} virtual {is_virtual}"));
        }
    }
    for irq in &topology.irqs {
        let users = irq.users.join(" ");
        line(format_args!(
            "irq {} {users} cpus {} node {:?} managed {:?}",
            irq.id, irq.cpus, irq.node, irq.managed
        ));
    }
    text
}

#[test]
fn every_host_is_made_of_what_its_golden_file_says() {
    for folder in folders() {
        let host = Host::open(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let topology = Topology::read(&host);
        check(&topology, name_of(&folder));
        insta::assert_snapshot!(name_of(&folder), summary(&host, &topology));
    }
}

#[test]
fn descriptions_say_what_they_must() {
    let folders = folders();
    assert!(folders.len() >= 9, "only {} recorded machines", folders.len());
    let (mut writable, mut recorded) = (0, 0);
    for folder in &folders {
        let host = Host::open(folder).expect("opened by another test");
        let meta = host.meta().unwrap_or_else(|| panic!("{} has no description", folder.display()));
        assert_eq!(meta.name, name_of(folder));
        assert!(!meta.note.is_empty() && !meta.kernel.is_empty() && !meta.arch.is_empty(), "{}", meta.name);
        writable += usize::from(meta.writable);
        recorded += usize::from(meta.origin == Origin::Recorded);
        assert!(meta.writable || meta.answer.is_empty(), "{} answers writes that it refuses", meta.name);
    }
    assert!(writable >= 2 && recorded >= 4, "{writable} writable, {recorded} recorded");
}

/// A row whose place is misspelt would answer nothing, and every test that relies on it would pass.
#[test]
fn every_answer_and_every_mode_is_of_a_file_that_is_there() {
    for folder in folders() {
        let host = Host::open(&folder).expect("opened by another test");
        let meta = host.meta().expect("checked by another test");
        let places = meta.answer.iter().map(|row| &row.place);
        let derived = meta.answer.iter().flat_map(|row| row.derives.iter().map(|derived| &derived.place));
        for place in places.chain(derived) {
            let pattern = Pattern::parse(place).expect("checked when the description was read");
            assert!(!host.glob(&pattern).is_empty(), "{}: nothing is at {place}", meta.name);
        }
        if meta.origin == Origin::Recorded {
            for place in meta.modes.values().flatten() {
                assert!(host.exists(place), "{}: nothing is at {place}", meta.name);
            }
        }
    }
}
