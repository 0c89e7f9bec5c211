//! What the kernel itself takes of memory and of time.

use super::*;

/// What becomes of wanted values: the refusal of each that is impossible, and of each that nobody allowed.
fn made(observation: &Observation, want: &[(&str, i64)], options: &Options) -> (usize, Vec<String>) {
    let catalogue = Catalogue::embedded().expect("sound");
    let want: Vec<(&str, Want)> = want.iter().map(|(id, value)| (*id, Want::Int(*value))).collect();
    let plan = plan(&catalogue, observation, &profile(&want), &[], options).expect("known knobs");
    let left = plan.skipped.iter().filter(|row| row.impossible || row.not_allowed);
    (plan.steps.len(), left.map(|row| row.verdict.reason.clone()).collect())
}

fn with(readings: &[(&str, &str, &str)]) -> Observation {
    let mut observation = host();
    for (id, place, value) in readings {
        observation.knobs.entry(KnobId::new(*id)).or_default().push(reading(place, value));
    }
    observation
}

#[test]
fn tables_of_the_kernel_take_a_small_part_of_memory_together() {
    const QUEUES: &str = "/sys/class/net/eth0/queues/rx-";
    let flows: Vec<String> = (0..4).map(|queue| format!("{QUEUES}{queue}/rps_flow_cnt")).collect();
    let mut observation = with(&[
        ("net.core.rps_sock_flow_entries", "/proc/sys/net/core/rps_sock_flow_entries", "0"),
        ("net.conntrack_hashsize", "/sys/module/nf_conntrack/parameters/hashsize", "65536"),
    ]);
    let readings = flows.iter().map(|place| reading(place, "0")).collect();
    observation.knobs.insert(KnobId::new("net.rps_flow_cnt"), readings);
    let none = Options::default();
    // A 64th of 16 GiB are 256 MiB.
    for (id, most, steps, part) in [
        ("net.core.rps_sock_flow_entries", 64 << 20, 1, "would take 512 MiB of the kernel's own memory"),
        ("net.conntrack_hashsize", 32 << 20, 1, "would take 256.0 MiB of the kernel's own memory"),
        ("net.rps_flow_cnt", 4 << 20, 4, "would take 384 MiB of the kernel's own memory"),
    ] {
        let (planned, left) = made(&observation, &[(id, most)], &none);
        assert_eq!((planned, left), (steps, Vec::new()), "{id}");
        let (planned, left) = made(&observation, &[(id, most + 1)], &none);
        assert_eq!((planned, left.len()), (0, steps), "{id}: {left:?}");
        assert!(
            left.iter().all(|why| why.contains(part) && why.contains("at most a 64th of 16 GiB")),
            "{left:?}"
        );
    }
    let less = made(&observation, &[("net.conntrack_hashsize", 32768)], &none);
    assert!(less.0 == 0 && less.1[0].starts_with("it is lowered from 65536"), "{less:?}");
    observation.host.available_bytes = 100 << 20;
    let tight = made(&observation, &[("net.conntrack_hashsize", 16 << 20)], &none);
    assert!(tight.1[0].ends_with("half of the 100 MiB available"), "{tight:?}");
    // One that is smaller than now gives memory back, however large it is.
    for row in observation.knobs.get_mut(&KnobId::new("net.rps_flow_cnt")).expect("is there") {
        row.value = Some("536870912".to_owned());
    }
    assert_eq!(made(&observation, &[("net.rps_flow_cnt", 256 << 20)], &none), (4, Vec::new()));
}

#[test]
fn a_thread_of_the_kernel_without_rest_is_asked_for_by_class() {
    const PLACE: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
    let at = |now: &str| with(&[("thp.khugepaged.scan_sleep_ms", PLACE, now)]);
    let want = [("thp.khugepaged.scan_sleep_ms", 0)];
    let (planned, left) = made(&at("10000"), &want, &Options::default());
    assert!(planned == 0 && left[0].contains("would never rest"), "{left:?}");
    assert!(left[0].ends_with("--allow availability"), "{left:?}");
    assert_eq!(made(&at("10000"), &want, &everything()), (1, Vec::new()));
    assert_eq!(made(&at("10000"), &[(want[0].0, 1)], &Options::default()), (1, Vec::new()));
    assert_eq!(made(&at("0"), &want, &Options::default()), (0, Vec::new()), "it is so already");
}

#[test]
fn no_boost_of_a_watermark_takes_all_memory() {
    let catalogue = Catalogue::embedded().expect("sound");
    let knob = catalogue.knob(&KnobId::new("vm.watermark_boost_factor")).expect("a row");
    assert!(knob.validate("15000").is_ok() && knob.validate("30000").is_ok());
    assert!(knob.validate("30001").is_err() && knob.validate("2147483647").is_err());
    let buckets = catalogue.knob(&KnobId::new("net.conntrack_hashsize")).expect("a row");
    assert!(buckets.validate("536870911").is_ok() && buckets.validate("536870912").is_err());
}

#[test]
fn what_the_kernel_has_no_number_for_is_no_value() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (id, most, beyond) in [
        ("net.ipv4.ip_local_port_range", "1024 65535", "1024 65536"),
        ("net.ipv4.tcp_rmem", "4096 131072 2147483647", "4096 131072 99999999999"),
        ("net.ipv4.tcp_wmem", "4096 131072 2147483647", "4096 131072 2147483648"),
        ("kernel.sem", "32000 1024000000 500 32000", "32000 99999999999 500 32000"),
        ("kernel.printk", "4 4 1 7", "4 4 1 2147483648"),
        ("block.nr_requests", "10240", "100000000"),
        ("cpu.uncore_elc_floor_khz", "12700000", "99999999"),
    ] {
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        assert!(knob.validate(most).is_ok(), "{id} = {most}");
        assert!(knob.validate(beyond).is_err(), "{id} = {beyond} is taken");
    }
}

/// The refusals of a wanted text.
fn refused(observation: &Observation, id: &str, value: &str) -> Vec<String> {
    let catalogue = Catalogue::embedded().expect("sound");
    let wanted = profile(&[(id, Want::Text(value.to_owned()))]);
    let plan = plan(&catalogue, observation, &wanted, &[], &everything()).expect("known knobs");
    let impossible = plan.skipped.into_iter().filter(|row| row.impossible);
    let told: Vec<String> = impossible.map(|row| row.verdict.reason).collect();
    assert_ne!(told.is_empty(), plan.steps.is_empty(), "{id} = {value}: {told:?}");
    told
}

#[test]
fn identifiers_of_system_v_are_those_that_the_kernel_has() {
    let mut observation = with(&[
        ("kernel.shmmni", "/proc/sys/kernel/shmmni", "4096"),
        ("kernel.msgmni", "/proc/sys/kernel/msgmni", "32000"),
        ("kernel.sem", "/proc/sys/kernel/sem", "32000\t1024000000\t500\t32000"),
    ]);
    let of = |ids: u64| format!("32000 1024000000 500 {ids}");
    let cure = "this kernel has 32768 at most: boot with `ipcmni_extend` to have more";
    for (id, most, beyond) in [
        ("kernel.shmmni", "32768".to_owned(), "1000000".to_owned()),
        ("kernel.msgmni", "32768".to_owned(), "32769".to_owned()),
        ("kernel.sem", of(32768), of(32769)),
    ] {
        assert_eq!(refused(&observation, id, &most), [""; 0], "{id}");
        let told = refused(&observation, id, &beyond);
        assert!(told.len() == 1 && told[0].ends_with(cure), "{id}: {told:?}");
    }
    observation.demand.ipc_extended = Some(true);
    assert_eq!(refused(&observation, "kernel.shmmni", "1000000"), [""; 0]);
    let told = refused(&observation, "kernel.sem", &of(99_999_999));
    assert!(told.len() == 1 && told[0].ends_with("this kernel has 16777216 at most"), "{told:?}");
}

#[test]
fn connections_go_out_by_ports_without_a_privilege() {
    const RANGE: &str = "net.ipv4.ip_local_port_range";
    let mut observation = host();
    let told = refused(&observation, RANGE, "1000 65535");
    assert!(told.len() == 1 && told[0].ends_with("says: 1024 is the lowest"), "{told:?}");
    assert_eq!(refused(&observation, RANGE, "1024 65535"), [""; 0]);
    observation.demand.ports_from = Some(80);
    assert_eq!(refused(&observation, RANGE, "1000 65535"), [""; 0]);
    observation.demand.ports_from = None;
    assert_eq!(refused(&observation, RANGE, "1000 65535").len(), 1, "as kernels begin");
}

#[test]
fn a_queue_with_a_scheduler_has_no_more_requests_than_that() {
    let observation = with(&[
        ("block.nr_requests", "/sys/block/sda/queue/nr_requests", "64"),
        ("block.nr_requests", "/sys/block/nvme0n1/queue/nr_requests", "1023"),
    ]);
    let catalogue = Catalogue::embedded().expect("sound");
    let planned = |want: &[(&str, Want)]| {
        let plan = plan(&catalogue, &observation, &profile(want), &[], &everything()).expect("known knobs");
        let impossible = plan.skipped.into_iter().filter(|row| row.impossible);
        impossible.map(|row| (row.place, row.verdict.reason)).collect::<Vec<_>>()
    };
    let of_sda = || {
        let reason = "a queue with a scheduler takes 2048 requests at most".to_owned();
        ("/sys/block/sda/queue/nr_requests".to_owned(), reason)
    };
    let requests = |count: i64| ("block.nr_requests", Want::Int(count));
    assert_eq!(planned(&[requests(2048)]), []);
    assert_eq!(planned(&[requests(2049)]), [of_sda()], "nvme0n1 has none");
    let none = ("block.scheduler", Want::Text("none".to_owned()));
    assert_eq!(planned(&[none, requests(2049)]), [], "and then sda has none");
    let deadline = ("block.scheduler", Want::Text("mq-deadline".to_owned()));
    assert_eq!(planned(&[deadline, requests(2049)]).len(), 2);
}
