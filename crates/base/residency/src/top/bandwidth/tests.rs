//! Counters on trees that are made up after what kernels export, and sums of readings that are.
#![expect(clippy::disallowed_methods, reason = "the test makes a recorded host")]

use super::*;

/// A host with these files below the folder of PMUs.
fn host(files: &[(String, &str)]) -> (tempfile::TempDir, Host) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(DEVICES.trim_start_matches('/')).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }
    let host = Host::open(folder.path()).unwrap();
    (folder, host)
}

/// A PMU with these events, each a line of the caches a count.
fn pmu(
    name: &str,
    kind: &'static str,
    cpumask: &'static str,
    events: &[(&str, &'static str)],
) -> Vec<(String, &'static str)> {
    let own = [
        ("type", kind),
        ("cpumask", cpumask),
        ("format/event", "config:0-7"),
        ("format/umask", "config:8-15"),
    ];
    let mut files: Vec<(String, &str)> = own.map(|(file, text)| (format!("{name}/{file}"), text)).into();
    for (event, text) in events {
        files.push((format!("{name}/events/{event}"), *text));
        files.push((format!("{name}/events/{event}.scale"), "6.103515625e-5"));
        files.push((format!("{name}/events/{event}.unit"), "MiB"));
    }
    files
}

const CAS: [(&str, &str); 2] =
    [("cas_count_read", "event=0x04,umask=0x03"), ("cas_count_write", "event=0x04,umask=0x0c")];

/// Two sockets of an Intel server, each with two controllers.
fn intel() -> Vec<(String, &'static str)> {
    let free = [("read", "event=0xff,umask=0x20"), ("write", "event=0xff,umask=0x21")];
    [
        vec![("cpu/type".to_owned(), "4")],
        pmu("uncore_imc_0", "14", "0,4", &CAS),
        pmu("uncore_imc_1", "15", "0,4", &[&CAS[..], &[("clockticks", "event=0x00")]].concat()),
        pmu("uncore_imc_free_running_0", "16", "0,4", &free),
    ]
    .concat()
}

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

fn two_nodes() -> Vec<(u32, CpuSet)> {
    vec![(0, cpus("0-3")), (1, cpus("4-7"))]
}

fn why_not(files: &[(String, &str)], nodes: &[(u32, CpuSet)]) -> String {
    find(&host(files).1, nodes).unwrap_err()
}

#[test]
fn intel_servers_count_each_controller_on_each_socket() {
    let (_folder, host) = host(&intel());
    let found = find(&host, &two_nodes()).unwrap();
    let read = |kind: u32, config: u64, cpu: u32| UncoreEvent { kind, config: [config, 0, 0], cpu };
    let events: Vec<UncoreEvent> = found.iter().map(|(event, _)| *event).collect();
    let of = |kind| [read(kind, 0x304, 0), read(kind, 0xc04, 0), read(kind, 0x304, 4), read(kind, 0xc04, 4)];
    assert_eq!(events, [of(14), of(15)].concat(), "and not the same again by what runs freely");
    let places: Vec<_> = found.iter().map(|(_, meter)| (meter.node, meter.is_write)).collect();
    let of_both = [(Some(0), false), (Some(0), true), (Some(1), false), (Some(1), true)];
    assert_eq!(places, [of_both, of_both].concat());
    assert!(found.iter().all(|(_, meter)| meter.bytes_per_count == 64.0));
}

#[test]
fn other_names_of_intel_are_taken_where_the_first_are_not_there() {
    let one = [(0, cpus("0-7"))];
    let names = |files: &[(String, &str)]| {
        let found = find(&host(files).1, &one).unwrap();
        found.iter().map(|(event, meter)| (event.kind, event.config[0], meter.is_write)).collect::<Vec<_>>()
    };
    let client = pmu("uncore_imc", "11", "0", &[("data_reads", "event=0x01"), ("data_writes", "event=0x02")]);
    assert_eq!(names(&client), [(11, 1, false), (11, 2, true)]);
    let free = pmu(
        "uncore_imc_free_running_0",
        "12",
        "0",
        &[("data_read", "event=0x20"), ("data_write", "event=0x21")],
    );
    // Controllers that count clocks alone are beside it.
    let clocks = pmu("uncore_imc_0", "13", "0", &[("clockticks", "event=0x01")]);
    assert_eq!(names(&[clocks, free].concat()), [(12, 0x20, false), (12, 0x21, true)]);
    let channels = [
        ("cas_count_read_sch0", "event=0x05,umask=0xcf"),
        ("cas_count_read_sch1", "event=0x06,umask=0xcf"),
        ("cas_count_write_sch0", "event=0x05,umask=0xf0"),
        ("cas_count_write_sch1", "event=0x06,umask=0xf0"),
    ];
    let told = names(&pmu("uncore_imc_0", "13", "0", &channels));
    assert_eq!(told, [(13, 0xcf05, false), (13, 0xcf06, false), (13, 0xf005, true), (13, 0xf006, true)]);
    assert!(
        why_not(&pmu("uncore_imc_0", "13", "0", &channels[..3]), &one).contains("for uncore_imc_0"),
        "a half"
    );
}

#[test]
fn amd_exports_no_events_and_none_is_guessed() {
    let umc = |number: u32| {
        let name = format!("amd_umc_{number}");
        let files = [
            ("type", "21"),
            ("cpumask", "0,4"),
            ("format/event", "config:0-7"),
            ("format/rdwrmask", "config:8-9"),
        ];
        files.map(|(file, text)| (format!("{name}/{file}"), text)).to_vec()
    };
    let df = vec![("amd_df/type".to_owned(), "20"), ("amd_df/cpumask".to_owned(), "0,4")];
    let cpu = vec![("cpu/type".to_owned(), "4")];
    let told = why_not(&[cpu.clone(), df.clone(), umc(0), umc(10)].concat(), &two_nodes());
    assert_eq!(
        told,
        "the kernel exports no events of reads and writes in bytes for any of amd_df to amd_umc_10"
    );
    assert!(why_not(&[cpu, df].concat(), &two_nodes()).ends_with("for amd_df"));
}

#[test]
fn what_is_not_there_or_only_half_there_is_said() {
    assert_eq!(why_not(&[("software/type".to_owned(), "1")], &two_nodes()), "no PMU in this machine");
    let guest = [("cpu/type".to_owned(), "4")];
    assert_eq!(
        why_not(&guest, &two_nodes()),
        "the kernel names no counters of memory controllers here that tell bytes"
    );
    // One of two controllers without its scale, without a format, or of another unit: a sum would be too small.
    for (file, text) in [("scale", None), ("unit", None), ("unit", Some("Joules")), ("scale", Some("x"))] {
        let mut files = intel();
        let name = format!("uncore_imc_1/events/cas_count_read.{file}");
        files.retain(|(path, _)| *path != name);
        files.extend(text.map(|text| (name, text)));
        assert!(why_not(&files, &two_nodes()).ends_with("in bytes for uncore_imc_1"), "{file} {text:?}");
    }
    let mut files = intel();
    files.retain(|(path, _)| path != "uncore_imc_0/format/umask");
    assert!(why_not(&files, &two_nodes()).ends_with("for uncore_imc_0"));
    assert!(why_not(&intel(), &[(0, cpus("0-3"))]).starts_with("CPU 4, by which"), "a CPU of no node");
}

#[test]
fn a_socket_that_is_cut_into_nodes_is_counted_by_its_first() {
    let nodes = [(0, cpus("0-1")), (1, cpus("2-3")), (2, cpus("4-5")), (3, cpus("6-7")), (4, CpuSet::new())];
    let (_folder, host) = host(&intel());
    let meters: Vec<Meter> = find(&host, &nodes).unwrap().into_iter().map(|(_, meter)| meter).collect();
    let why = uncounted(&host, &nodes, &meters).unwrap();
    assert!(why.contains("of node 1, 3 with another node"), "{why}");
    assert_eq!(uncounted(&host, &two_nodes(), &meters_of(&host)), None);
    // A kernel without nodes is one.
    assert!(find(&host, &[]).unwrap().iter().all(|(_, meter)| meter.node.is_none()));
}

#[test]
fn memory_on_the_processor_is_said_to_be_missing() {
    let (_folder, host) = host(&[intel(), vec![("uncore_hbm_3/type".to_owned(), "40")]].concat());
    let why = uncounted(&host, &two_nodes(), &meters_of(&host)).unwrap();
    assert!(why.contains("uncore_hbm"), "{why}");
}

fn meters_of(host: &Host) -> Vec<Meter> {
    find(host, &two_nodes()).unwrap().into_iter().map(|(_, meter)| meter).collect()
}

#[test]
fn readings_become_bytes_by_node() {
    let (_folder, host) = host(&intel());
    let mut meters = meters_of(&host);
    let count = |counted, ns| Some(Count { counted, enabled_ns: ns, running_ns: ns, user_only: false });
    let counted = |node, read_bytes, written_bytes| NodeBandwidthSample { node, read_bytes, written_bytes };
    let mut look = |counts: &[Option<Count>]| told(&mut meters, counts, None);
    // Whatever they had counted before, the first reading is where they begin.
    let first = look(&[count(7, 10); 8]);
    assert_eq!(first.nodes, [counted(Some(0), 0.0, 0.0), counted(Some(1), 0.0, 0.0)]);
    // Of each controller: reads and writes of node 0, reads and writes of node 1.
    let grown = [17, 12, 107, 7].map(|counts| count(counts, 20));
    let second = look(&[grown, grown].concat());
    assert_eq!(second.reason, None);
    assert_eq!(second.nodes, [counted(Some(0), 1280.0, 640.0), counted(Some(1), 12800.0, 0.0)]);
    // One that took turns is extrapolated; one that did not run at all is no zero, and takes its node's figure along.
    let mut third = [grown, grown]
        .concat()
        .iter()
        .map(|was| was.map(|was| Count { enabled_ns: 30, running_ns: 30, ..was }))
        .collect::<Vec<_>>();
    third[0] = Some(Count { counted: 27, enabled_ns: 40, running_ns: 30, user_only: false });
    third[6] = Some(Count { counted: 107, enabled_ns: 30, running_ns: 20, user_only: false });
    let turns = look(&third);
    assert_eq!(turns.nodes, [counted(Some(0), 1280.0 + 20.0 * 64.0, 640.0)]);
    assert!(turns.reason.is_some_and(|reason| reason.contains("did not run")));
    // One that cannot be read is none either.
    third[0] = None;
    third[6] = Some(Count { counted: 117, enabled_ns: 40, running_ns: 30, user_only: false });
    assert_eq!(look(&third).nodes.len(), 0, "nor did the others run between two equal readings");
    // What came meanwhile is in the sum as soon as they run: 10 that were not read, 10 and as many by extrapolation.
    let fifth = third.iter().map(|was| was.map(|was| Count { enabled_ns: 60, running_ns: 50, ..was }));
    let mut fifth = fifth.collect::<Vec<_>>();
    fifth[0] = Some(Count { counted: 37, enabled_ns: 60, running_ns: 50, user_only: false });
    let whole = [counted(Some(0), 1280.0 + 30.0 * 64.0, 640.0), counted(Some(1), 12800.0 + 20.0 * 64.0, 0.0)];
    assert_eq!(look(&fifth).nodes, whole);
}

#[test]
fn this_machine_counts_or_says_why_not() {
    let host = Host::live();
    let nodes = crate::map::threads::cpus_of_nodes(&host);
    match Controllers::open(&host, &nodes) {
        Ok(mut controllers) => {
            let first = controllers.read();
            assert!(first.nodes.iter().all(|node| node.read_bytes == 0.0), "{first:?}");
        }
        Err(reason) => {
            assert!(!reason.is_empty());
            planish_skip::skip("this_machine_counts_or_says_why_not", reason);
        }
    }
}
