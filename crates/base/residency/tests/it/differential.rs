//! Our parsers beside those of other people: procfs-core reads the same texts, numastat(8) the same process. Where
//! they are right all agree; where they are wrong it is shown.

use planish_host::Host;
use planish_residency::{Area, Map, Region, Who, parse_maps, parse_numa_maps, parse_smaps};
use procfs_core::FromRead;
use procfs_core::process::{MMapPath, MemoryMap, MemoryMaps};

use crate::actor::Actor;

fn theirs(text: &str) -> Vec<MemoryMap> {
    MemoryMaps::from_read(text.as_bytes()).expect("procfs-core reads what kernels write").0
}

/// Recorded files are kept without blanks at the end of a line, and procfs-core wants the one that the kernel writes
/// behind the inode of a mapping without a name.
fn with_blanks(text: &str) -> String {
    let is_nameless = |line: &str| line.split_whitespace().count() == 5 && !line.contains(": ");
    text.lines()
        .map(|line| if is_nameless(line) { format!("{line} \n") } else { format!("{line}\n") })
        .collect()
}

/// The same mappings, in every field that both tell.
fn assert_same_areas(what: &str, ours: &[Area], theirs: &[MemoryMap]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (our, their) in ours.iter().zip(theirs) {
        assert_eq!((our.range.start, our.range.end), their.address, "{what}");
        let permissions = String::from_utf8_lossy(&our.permissions).into_owned();
        assert_eq!(permissions, their.perms.as_str(), "{what}: {our:?}");
        assert_eq!((our.offset, our.inode), (their.offset, their.inode), "{what}: {our:?}");
        let device = (their.dev.0.cast_unsigned(), their.dev.1.cast_unsigned());
        assert_eq!(our.device, device, "{what}: {our:?}");
        let name = match &their.pathname {
            MMapPath::Path(path) => path.display().to_string(),
            MMapPath::Anonymous => String::new(),
            MMapPath::Heap => "[heap]".to_owned(),
            MMapPath::Stack => "[stack]".to_owned(),
            MMapPath::Vdso => "[vdso]".to_owned(),
            MMapPath::Vvar => "[vvar]".to_owned(),
            MMapPath::Vsyscall => "[vsyscall]".to_owned(),
            MMapPath::Other(name) => format!("[{name}]"),
            // They keep the key alone.
            MMapPath::Vsys(_) => our.name.clone(),
            other => panic!("{what}: {other:?}"),
        };
        assert_eq!(our.name, name, "{what}");
    }
}

/// The same bytes of each mapping.
fn assert_same_regions(what: &str, ours: &[Region], theirs: &[MemoryMap]) {
    let areas: Vec<Area> = ours.iter().map(|region| region.area.clone()).collect();
    assert_same_areas(what, &areas, theirs);
    for (our, their) in ours.iter().zip(theirs) {
        let bytes = |key: &str| their.extension.map.get(key).copied().unwrap_or(0);
        let hugetlb = bytes("Private_Hugetlb") + bytes("Shared_Hugetlb");
        assert_eq!(our.resident_bytes, bytes("Rss") + hugetlb, "{what}: {our:?}");
        assert_eq!(our.hugetlb_bytes, hugetlb, "{what}: {our:?}");
        assert_eq!(our.proportional_bytes, bytes("Pss"), "{what}: {our:?}");
        assert_eq!(our.anon_huge_bytes, bytes("AnonHugePages"), "{what}: {our:?}");
        assert_eq!(our.shmem_huge_bytes, bytes("ShmemPmdMapped"), "{what}: {our:?}");
        assert_eq!(our.file_huge_bytes, bytes("FilePmdMapped"), "{what}: {our:?}");
        assert_eq!(our.swap_bytes, bytes("Swap"), "{what}: {our:?}");
        assert_eq!(our.page_bytes, bytes("KernelPageSize"), "{what}: {our:?}");
    }
}

#[test]
fn procfs_reads_the_same_of_processes_of_this_kernel() {
    for role in ["shared 67108864 8388608", "splintered 300", "code"] {
        let actor = Actor::start(role);
        let maps = actor.file("maps");
        assert_same_areas(role, &parse_maps(&maps).expect("ours"), &theirs(&maps));
        let smaps = actor.file("smaps");
        assert_same_regions(role, &parse_smaps(&smaps).expect("ours"), &theirs(&smaps));
    }
}

/// Files of a process with memory on two nodes, as other kernels tell it: `./x vm --record` makes them (`writer/`).
#[expect(clippy::disallowed_methods, reason = "a test reads recorded files")]
fn recorded(kernel: &str, file: &str) -> String {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(kernel).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn procfs_reads_the_same_of_processes_of_other_kernels() {
    const MIB: u64 = 1 << 20;
    for kernel in ["linux-6.1", "linux-6.12"] {
        let (maps, smaps) = (recorded(kernel, "maps"), recorded(kernel, "smaps"));
        let (areas, regions) = (parse_maps(&maps).expect("ours"), parse_smaps(&smaps).expect("ours"));
        assert_same_areas(kernel, &areas, &theirs(&with_blanks(&maps)));
        assert_same_regions(kernel, &regions, &theirs(&with_blanks(&smaps)));
        // What the writer has written, by the sums of smaps and by the nodes of numa_maps.
        let placements = parse_numa_maps(&recorded(kernel, "numa_maps")).expect("ours");
        let of = |start: u64| placements.iter().find(|placement| placement.start == start);
        let mut seen = Vec::new();
        for region in &regions {
            let nodes = of(region.area.range.start).map_or(&[][..], |placement| &placement.nodes);
            let on_nodes: u64 = nodes.iter().map(|(_, bytes)| *bytes).sum();
            let resident = region.resident_bytes;
            // The vDSO and its data are nobody's memory there.
            let is_kernels = region.area.name.starts_with("[v");
            assert!(on_nodes == resident || is_kernels, "{kernel}: {on_nodes} of {resident}: {region:?}");
            seen.extend(nodes.iter().map(|(node, bytes)| (*node, bytes / MIB)));
        }
        for (node, written) in [(0, [12, 20, 8]), (1, [8, 12, 16])] {
            for mib in written {
                assert!(seen.contains(&(node, mib)), "{kernel}: no {mib} MiB on node {node}: {seen:?}");
            }
        }
    }
}

/// The parsers are fuzzed from what other kernels have written, by names that `./x fuzz --keep` leaves alone.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads the seeds as files")]
fn files_of_other_kernels_are_seeds_of_the_fuzzer() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/proc");
    for kernel in ["linux-6.1", "linux-6.12"] {
        for file in ["maps", "smaps", "numa_maps"] {
            let seed = seeds.join(format!("{kernel}-{file}"));
            let text = std::fs::read_to_string(&seed).unwrap_or_default();
            assert_eq!(text, recorded(kernel, file), "{}: copy the recorded file", seed.display());
        }
    }
}

/// Hosts that were laid out by hand have what real ones are not at hand for.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads the hosts as files")]
fn procfs_reads_the_same_of_processes_laid_out_by_hand() {
    let hosts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts");
    let mut seen = 0;
    for host in std::fs::read_dir(&hosts).expect("recorded hosts").flatten() {
        let Ok(processes) = std::fs::read_dir(host.path().join("proc")) else { continue };
        for process in processes.flatten() {
            let what = process.path().display().to_string();
            let Ok(smaps) = std::fs::read_to_string(process.path().join("smaps")) else { continue };
            assert_same_regions(&what, &parse_smaps(&smaps).expect("ours"), &theirs(&with_blanks(&smaps)));
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen} processes in {}", hosts.display());
}

/// One name that is no UTF-8 hides the whole process from them. Names are bytes, and anybody may map such a file.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test asks the kernel itself")]
fn procfs_reads_nothing_where_a_name_is_no_text() {
    let actor = Actor::start("odd");
    let bytes = std::fs::read(format!("/proc/{}/maps", actor.pid())).expect("it stands still");
    assert!(MemoryMaps::from_read(bytes.as_slice()).is_err(), "procfs-core reads it now: say so above");
    let map = Map::read(&Host::live(), &Who::Pid(actor.pid()), false).expect("our own child");
    assert!(map.members[0].areas.len() > 5);
}

/// A file in the root folder that only begins like a segment of System V ends their program.
#[test]
fn procfs_panics_at_a_short_name_that_begins_like_a_segment() {
    let text = "1000-2000 rw-s 00000000 fe:00 5                          /SYSV1\n";
    let areas = parse_maps(text).expect("a mapping like any other");
    assert_eq!((areas.len(), areas[0].name.as_str()), (1, "/SYSV1"));
    let theirs = std::panic::catch_unwind(|| MemoryMaps::from_read(text.as_bytes()).is_ok());
    assert!(theirs.is_err(), "procfs-core survives it now: say so above");
}

/// numastat(8) adds up numa_maps, so that it is right of what a process has mapped, and knows nothing of what others
/// have filled of a segment.
#[test]
fn numastat_adds_up_what_a_process_has_mapped() {
    let test = "numastat_adds_up_what_a_process_has_mapped";
    let actor = Actor::start("shared 67108864 8388608");
    let output = std::process::Command::new("numastat").args(["-p", &actor.pid().to_string()]).output();
    let output = match output {
        Ok(output) if output.status.success() => output,
        Ok(output) => return planish_skip::skip(test, String::from_utf8_lossy(&output.stderr)),
        Err(error) => return planish_skip::skip(test, format!("numastat (package numactl): {error}")),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = text.lines().find(|line| line.starts_with("Total")).expect("a row of sums");
    let told: f64 = row.split_whitespace().last().and_then(|word| word.parse().ok()).expect("megabytes");
    // What numa_maps counts is mapped here, in whichever kind.
    let smaps = parse_smaps(&actor.file("smaps")).expect("ours");
    let mapped: u64 = smaps.iter().map(|region| region.resident_bytes).sum();
    let ours = mapped as f64 / f64::from(1 << 20);
    assert!((told - ours).abs() < 0.3, "numastat {told} MB, smaps {ours} MB: {text}");
}
