//! Values that ruin a host, against the rows that we ship.

use proptest::prelude::*;
use std::collections::BTreeSet;

use planish_model::{
    Case, Catalogue, Class, Conditions, Demand, PoolReading, Profile, Reading, VerdictKind, Want,
};

use super::*;
use crate::testing::{observation, pool, profile, reading};
use crate::{Options, plan};

mod kernel;
mod written;

const CPU: &str = "/sys/devices/system/cpu/cpu";
const POOL: &str = "hugepages.2m";

/// Eight CPUs, 16 GiB of which 12 are available, 5 GiB promised of 8, 600 threads, 2000 open files.
fn host() -> Observation {
    let mut observation = observation();
    observation.host.cpus_online = 8;
    observation.pools = vec![PoolReading { pages: 0, free: 0, surplus: 0, ..pool(0, 0) }];
    observation.demand = Demand {
        threads: Some(600),
        open_files: Some(2000),
        files_each: Some(1 << 20),
        file_limits: None,
        tracked: Some(3000),
        port_range: Some("32768\t60999".to_owned()),
        ports_reserved: Some(String::new()),
        ports_from: Some(1024),
        ipc_extended: Some(false),
        neighbours: Some([128, 512, 1024]),
        promised_bytes: Some(5 << 30),
        promises_bytes_max: Some(8 << 30),
        swap_bytes: 0,
        overcommit_mode: Some(0),
        overcommit_kib: Some(0),
    };
    let surplus = |kib: u32| format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_overcommit_hugepages");
    let mut add = |id: &str, place: String, value: &str| {
        let readings: &mut Vec<Reading> = observation.knobs.entry(KnobId::new(id)).or_default();
        readings.push(reading(&place, value));
    };
    for (id, name, value) in [
        ("vm.watermark_scale_factor", "vm/watermark_scale_factor", "10"),
        ("vm.overcommit_memory", "vm/overcommit_memory", "0"),
        ("vm.overcommit_ratio", "vm/overcommit_ratio", "50"),
        ("vm.overcommit_kbytes", "vm/overcommit_kbytes", "0"),
        ("kernel.threads-max", "kernel/threads-max", "127000"),
        ("kernel.pid_max", "kernel/pid_max", "32768"),
        ("fs.file-max", "fs/file-max", "1600000"),
        ("net.netfilter.nf_conntrack_max", "net/netfilter/nf_conntrack_max", "262144"),
        ("net.ipv4.ip_local_port_range", "net/ipv4/ip_local_port_range", "32768\t60999"),
        ("net.ipv4.ip_local_reserved_ports", "net/ipv4/ip_local_reserved_ports", ""),
    ] {
        add(id, format!("/proc/sys/{name}"), value);
    }
    add("hugepages.2m.overcommit", surplus(2048), "0");
    add("hugepages.1g.overcommit", surplus(1_048_576), "0");
    for cpu in 1..8 {
        add("cpu.online", format!("{CPU}{cpu}/online"), "1");
    }
    for (id, name, value) in [("cpu.min_freq_khz", "min", "800000"), ("cpu.max_freq_khz", "max", "3900000")] {
        let place = format!("{CPU}0/cpufreq/scaling_{name}_freq");
        add(id, place.clone(), value);
        observation.ranges.insert(place, [800_000, 3_900_000]);
    }
    observation
}

fn everything() -> Options {
    Options { allow_classes: vec![Class::Availability, Class::Durability], ..Options::default() }
}

/// The reasons why a profile is impossible; empty where all of it is planned.
fn told(want: &[(&str, i64)], options: &Options) -> Vec<String> {
    let want: Vec<(&str, Want)> = want.iter().map(|(id, value)| (*id, Want::Int(*value))).collect();
    let profile: Profile = profile(&want);
    let catalogue = Catalogue::embedded().expect("sound");
    let plan = plan(&catalogue, &host(), &profile, &[], options).expect("known knobs");
    for row in plan.skipped.iter().filter(|row| row.impossible) {
        assert_eq!(row.verdict.verdict, VerdictKind::Blocked);
        assert!(!plan.steps.iter().any(|step| step.place == row.place), "{}", row.place);
    }
    let reasons = plan.skipped.into_iter().filter(|row| row.impossible).map(|row| row.verdict.reason);
    reasons.collect()
}

#[test]
fn what_would_ruin_the_host_is_refused_row_by_row() {
    for (id, value, part) in [
        ("vm.min_free_kbytes", 12 << 20, "12 GiB of 16 GiB would be for nobody"),
        ("vm.watermark_scale_factor", 3000, "would keep up to 9.6 GiB free"),
        ("kernel.threads-max", 20, "20 are too few threads, and there are 600 now: at least 1200"),
        ("kernel.pid_max", 400, "400 are too few threads"),
        ("fs.file-max", 10, "10 are too few open files, and there are 2000 now: at least 4000"),
        (
            "net.netfilter.nf_conntrack_max",
            4000,
            "4000 are too few connections, and there are 3000 now: at least 6000",
        ),
        ("hugepages.2m.overcommit", 99_999_999, "programs could map what cannot be there"),
        ("hugepages.1g.overcommit", 12, "programs could map what cannot be there"),
        ("cpu.online", 0, "of 8 CPUs 1 would be left, and half of them have to stay"),
        ("cpu.min_freq_khz", 9_000_000, "9000000 is not among 800000 to 3900000"),
        ("cpu.max_freq_khz", 1, "1 is not among 800000 to 3900000"),
    ] {
        let reasons = told(&[(id, value)], &everything());
        assert!(!reasons.is_empty(), "{id} = {value} is planned");
        assert!(reasons.iter().all(|reason| reason.contains(part)), "{id}: {reasons:?}");
    }
}

#[test]
fn a_tmpfs_is_held_against_the_memory_that_pools_leave() {
    const SIZE: &str = "/planish/mounts/dev-shm/size";
    let catalogue = Catalogue::embedded().expect("sound");
    let refused = |gib: u64, now_gib: u64, pooled: u64| {
        let mut observation = host();
        // Pools of 2 MiB pages beside 16 GiB, of which a tenth is the host's.
        observation.pools[0].pages = pooled << 9;
        observation.ranges.insert(SIZE.to_owned(), [4096, 16 << 30]);
        let now = (now_gib << 30).to_string();
        observation.knobs.insert(KnobId::new("tmpfs.size"), vec![reading(SIZE, &now)]);
        let case = Case {
            value: (gib << 30).to_string(),
            only: Some("dev-shm".to_owned()),
            needs: Conditions::default(),
        };
        let profile: Profile = profile(&[("tmpfs.size", Want::Case(Box::new(case)))]);
        let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
        plan.skipped.into_iter().find(|row| row.impossible).map(|row| row.verdict.reason)
    };
    assert_eq!([refused(14, 8, 0), refused(6, 4, 8)], [None, None]);
    let told = refused(15, 8, 0).expect("no room for the host");
    assert!(
        told.starts_with("its files could take what cannot be there: 15 GiB would leave 1 GiB"),
        "{told}"
    );
    let told = refused(7, 4, 8).expect("no room beside the pools");
    assert!(told.contains("7 GiB would leave 1 GiB of the 8 GiB"), "{told}");
    assert_eq!(refused(12, 14, 8), None, "less than now only eases the host");
}

#[test]
fn what_a_host_of_this_size_can_have_is_planned() {
    for (id, value) in [
        ("vm.min_free_kbytes", 200 << 10),
        ("vm.min_free_kbytes", 1024),
        ("vm.watermark_scale_factor", 500),
        ("kernel.threads-max", 1200),
        ("kernel.pid_max", 4_194_304),
        ("fs.file-max", 4000),
        ("hugepages.2m.overcommit", 1000),
        ("cpu.min_freq_khz", 3_900_000),
        ("cpu.max_freq_khz", 800_001),
        ("vm.overcommit_ratio", 1),
        ("vm.overcommit_memory", 2),
    ] {
        assert_eq!(told(&[(id, value)], &everything()), [""; 0], "{id} = {value}");
    }
}

#[test]
fn promises_are_held_against_those_that_were_made_only_where_mode_2_holds_them() {
    let told = |want: &[(&str, i64)]| told(want, &everything());
    let mode = ("vm.overcommit_memory", 2);
    let few = "5.1 GiB could be promised to programs, and 5 GiB are already: a tenth more is needed";
    assert_eq!(told(&[mode, ("vm.overcommit_ratio", 32)]), [few, few], "both of them, since they are one");
    assert_eq!(told(&[mode, ("vm.overcommit_ratio", 90)]), [""; 0]);
    assert_eq!(told(&[mode, ("vm.overcommit_kbytes", 1 << 20)]).len(), 2);
    assert_eq!(told(&[("vm.overcommit_memory", 1), ("vm.overcommit_ratio", 1)]), [""; 0]);

    let catalogue = Catalogue::embedded().expect("sound");
    let alone = |change: &dyn Fn(&mut Observation)| {
        let (mut observation, profile) = (host(), profile(&[("vm.overcommit_ratio", Want::Int(1))]));
        change(&mut observation);
        let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
        plan.skipped.iter().filter(|row| row.impossible).count()
    };
    assert_eq!(alone(&|_| ()), 0);
    assert_eq!(alone(&|host| host.demand.overcommit_mode = Some(2)), 1, "the host is in that mode already");
    let silent = |host: &mut Observation| {
        host.demand = Demand { overcommit_mode: Some(2), ..Demand::default() };
    };
    assert_eq!(alone(&silent), 1, "what is in use is promised at least");
}

/// How many rows of a profile are impossible on a host of mode 2 that was changed so.
fn refused_in_mode_2(want: &[(&str, i64)], change: impl Fn(&mut Observation)) -> usize {
    let wish = |id: &str, value: i64| match id {
        POOL => Want::Needs { need_bytes: vec![u64::try_from(value).expect("pages") << 21], nodes: vec![0] },
        _ => Want::Int(value),
    };
    let want: Vec<(&str, Want)> = want.iter().map(|(id, value)| (*id, wish(id, *value))).collect();
    let mut observation = host();
    observation.demand.overcommit_mode = Some(2);
    change(&mut observation);
    let catalogue = Catalogue::embedded().expect("sound");
    let plan = plan(&catalogue, &observation, &profile(&want), &[], &everything()).expect("known knobs");
    let refused = plan.skipped.iter().filter(|row| row.impossible).count();
    assert_eq!(plan.steps.len() + refused, want.len(), "{:?}", plan.skipped);
    assert_eq!(ruinous(&catalogue, &observation, &plan.steps), []);
    refused
}

#[test]
fn pools_leave_room_for_what_is_promised_in_mode_2() {
    let same = |_: &mut Observation| ();
    // Half of memory may be promised, so that 4 GiB of pages take 2 of 8 GiB and 6 GiB take 3.
    assert_eq!(refused_in_mode_2(&[(POOL, 2048)], same), 0);
    assert_eq!(refused_in_mode_2(&[(POOL, 3072)], same), 1);
    assert_eq!(refused_in_mode_2(&[(POOL, 3072)], |host| host.demand.overcommit_mode = Some(0)), 0);
    assert_eq!(refused_in_mode_2(&[(POOL, 3072)], |host| host.demand.overcommit_mode = None), 0);
    // An amount is the same with pools and without.
    assert_eq!(refused_in_mode_2(&[(POOL, 3072)], |host| host.demand.overcommit_kib = Some(8 << 20)), 0);
    // No share is taken of swap space.
    let swap = |host: &mut Observation| host.demand.swap_bytes = 2 << 30;
    assert_eq!(refused_in_mode_2(&[(POOL, 3072)], swap), 0);
    assert_eq!(refused_in_mode_2(&[(POOL, 3072), ("vm.overcommit_ratio", 60)], same), 0);
    assert_eq!(refused_in_mode_2(&[(POOL, 3072), ("vm.overcommit_ratio", 52)], same), 2);
    let mode_0 = |host: &mut Observation| host.demand.overcommit_mode = Some(0);
    assert_eq!(refused_in_mode_2(&[(POOL, 3072), ("vm.overcommit_memory", 2)], mode_0), 2);
}

#[test]
fn a_limit_of_zero_leaves_swap_space_alone_to_be_promised() {
    let (kib, ratio) = ("vm.overcommit_kbytes", "vm.overcommit_ratio");
    let by_amount = |host: &mut Observation| {
        host.demand.overcommit_kib = Some(8 << 20);
        for (id, value) in [(kib, "8388608"), (ratio, "0")] {
            let readings = host.knobs.get_mut(&KnobId::new(id)).expect("is there");
            readings[0].value = Some(value.to_owned());
        }
    };
    let with_swap = |host: &mut Observation| {
        by_amount(host);
        host.demand.swap_bytes = 6 << 30;
        host.demand.promises_bytes_max = Some(14 << 30);
    };
    assert_eq!(refused_in_mode_2(&[(kib, 0)], by_amount), 1);
    assert_eq!(refused_in_mode_2(&[(kib, 0)], with_swap), 0, "swap space is enough for what is promised");
    assert_eq!(refused_in_mode_2(&[(ratio, 0)], |_| ()), 1);
    // The share that comes behind an amount of zero is what counts, and a share of zero clears the amount.
    assert_eq!(refused_in_mode_2(&[(kib, 0), (ratio, 60)], by_amount), 0);
    assert_eq!(refused_in_mode_2(&[(kib, 9 << 20), (ratio, 0)], |_| ()), 2);
}

#[test]
fn what_eases_a_host_that_is_short_already_is_planned() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    observation.host.available_bytes = 1 << 30;
    observation.demand.threads = Some(40_000);
    observation.demand.open_files = Some(900_000);
    observation.demand.overcommit_mode = Some(2);
    observation.demand.promised_bytes = Some(8 << 30);
    for (id, now, better, worse) in [
        ("vm.watermark_scale_factor", "900", 500, 950),
        ("vm.watermark_scale_factor", "3000", 2000, 3001),
        ("vm.min_free_kbytes", "2000000", 1_900_000, 2_600_000),
        ("kernel.threads-max", "50000", 70_000, 49_000),
        ("kernel.pid_max", "50000", 70_000, 49_000),
        ("fs.file-max", "1600000", 1_700_000, 1_500_000),
        ("vm.overcommit_ratio", "50", 51, 49),
        ("vm.overcommit_kbytes", "0", 9 << 20, 7 << 20),
    ] {
        observation.knobs.get_mut(&KnobId::new(id)).expect("is there")[0].value = Some(now.to_owned());
        for (value, refused) in [(better, 0), (worse, 1)] {
            let profile = profile(&[(id, Want::Int(value))]);
            let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
            let impossible = plan.skipped.iter().filter(|row| row.impossible).count();
            assert_eq!((plan.steps.len(), impossible), (1 - refused, refused), "{id} from {now} to {value}");
        }
    }
    // Of a host that is not in mode 2 yet nothing is held to the limit: it would be worse off.
    observation.demand.overcommit_mode = Some(0);
    let profile = profile(&[("vm.overcommit_memory", Want::Int(2)), ("vm.overcommit_ratio", Want::Int(51))]);
    let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
    assert_eq!(plan.skipped.iter().filter(|row| row.impossible).count(), 2);
}

#[test]
fn half_of_the_cpus_may_go() {
    let without = |cpus: std::ops::Range<u32>| {
        let case =
            |cpu| Case { value: "0".to_owned(), only: Some(format!("{cpu}")), needs: Conditions::default() };
        let profile = profile(&[("cpu.online", Want::Cases(cpus.map(case).collect()))]);
        let catalogue = Catalogue::embedded().expect("sound");
        let plan = plan(&catalogue, &host(), &profile, &[], &everything()).expect("known knobs");
        (plan.steps.len(), plan.skipped.iter().filter(|row| row.impossible).count())
    };
    assert_eq!(without(4..8), (4, 0));
    assert_eq!(without(3..8), (0, 5));
    assert_eq!(told(&[("cpu.online", 0)], &everything()).len(), 7);
}

#[test]
fn a_safe_limit_is_raised_freely_and_lowered_by_leave_alone() {
    let catalogue = Catalogue::embedded().expect("sound");
    let planned = |value: i64, options: &Options| {
        let profile = profile(&[("kernel.pid_max", Want::Int(value))]);
        let plan = plan(&catalogue, &host(), &profile, &[], options).expect("known knobs");
        let why = plan.skipped.first().map(|row| (row.impossible, row.verdict.reason.clone()));
        (plan.steps.len(), why)
    };
    assert_eq!(planned(65_536, &Options::default()), (1, None));
    let reason = "it is lowered from 32768 and may stall the host: --allow availability".to_owned();
    assert_eq!(planned(20_000, &Options::default()), (0, Some((false, reason))));
    assert_eq!(planned(20_000, &everything()), (1, None));
}

#[test]
fn no_row_takes_what_cuts_a_host_off() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (id, least, below) in [
        ("vm.max_map_count", "65530", "1"),
        ("vm.dirty_bytes", "1048576", "8192"),
        ("vm.dirty_background_bytes", "1048576", "10"),
        ("vm.dirty_ratio", "1", "0"),
        ("vm.vfs_cache_pressure", "1", "0"),
        ("fs.nr_open", "65536", "1024"),
        ("fs.inotify.max_user_watches", "8192", "0"),
        ("fs.inotify.max_user_instances", "128", "0"),
        ("fs.epoll.max_user_watches", "8192", "0"),
        ("net.core.rmem_default", "65536", "2048"),
        ("net.core.optmem_max", "20480", "0"),
        ("net.core.netdev_max_backlog", "1000", "1"),
        ("net.core.netdev_budget", "64", "1"),
        ("net.ipv4.tcp_notsent_lowat", "4096", "0"),
        ("net.ipv4.tcp_retries2", "3", "0"),
        ("net.ipv4.tcp_rmem", "4096 4096 4096", "1 1 1"),
        ("net.ipv4.tcp_wmem", "4096 4096 4096", "4096 1 4096"),
        ("net.ipv4.tcp_mem", "96 128 192", "1 1 1"),
        ("net.ipv4.udp_mem", "96 128 192", "1 1 1"),
        ("net.ipv4.neigh.default.gc_thresh3", "1024", "1"),
        ("net.netfilter.nf_conntrack_max", "1024", "1"),
        ("net.conntrack_hashsize", "1024", "1"),
        ("net.tx_queue_len", "16", "0"),
        ("net.gro_flush_timeout_ns", "100000000", "9000000000"),
        ("kernel.sem", "250 32000 32 128", "0 0 0 0"),
    ] {
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        assert!(knob.validate(least).is_ok(), "{id} = {least}");
        assert!(knob.validate(below).is_err(), "{id} = {below} is taken");
    }
}

#[test]
fn what_is_lowered_may_stop_who_needs_it() {
    let catalogue = Catalogue::embedded().expect("sound");
    let needs = |bound, now: &str, wanted: &str| unsafe_way(Some(bound), now, wanted).map(|(class, _)| class);
    let rows = [
        "vm.max_map_count",
        "kernel.shmmax",
        "fs.nr_open",
        "fs.epoll.max_user_watches",
        "net.core.netdev_max_backlog",
        "net.core.rmem_max",
        "net.core.rmem_default",
        "net.core.wmem_max",
        "net.core.wmem_default",
        "net.core.optmem_max",
        "net.ipv4.neigh.default.gc_thresh3",
        "nvme.max_retries",
    ];
    for id in rows {
        let bound = catalogue.knob(&KnobId::new(id)).expect("a row").bound;
        assert_eq!(bound, Some(Bound::Limit), "{id}");
    }
    assert_eq!(needs(Bound::Limit, "18446744073692774399", "1"), Some(Class::Availability));
    assert_eq!(needs(Bound::Limit, "5", "6"), None);
    let shmmax = catalogue.knob(&KnobId::new("kernel.shmmax")).expect("a row");
    assert_eq!(class_by_value(shmmax, "6", "5"), Class::Availability);
    assert_eq!(class_by_value(shmmax, "5", "6"), Class::Safe);
    assert_eq!(
        needs(Bound::Limit, "32000\t1024000000\t500\t32000", "250 32000 100 128"),
        Some(Class::Availability)
    );
    for (wanted, class) in [
        ("4096 131072 16777216", Some(Class::Availability)),
        ("4096 16384 268435456", None),
        ("8192 131072 536870912", None),
    ] {
        assert_eq!(needs(Bound::Largest, "4096\t131072\t268435456", wanted), class, "{wanted}");
    }
    assert_eq!(needs(Bound::Tracked, "262144", "100000"), Some(Class::Availability));
    assert_eq!(needs(Bound::Ports, "32768 60999", "9000 65500"), None);
    assert_eq!(needs(Bound::Ports, "32768 60999", "40000 60999"), Some(Class::Availability));
    assert_eq!(needs(Bound::Age, "3000", "360000"), Some(Class::Durability));
    assert_eq!(needs(Bound::Age, "3000", "500"), None);
    assert_eq!(needs(Bound::Watermarks, "20", "10"), None);
    for (now, wanted, class) in
        [("0", "1000", None), ("0", "1001", Some(Class::Availability)), ("2000", "1500", None)]
    {
        assert_eq!(needs(Bound::Turn(1000), now, wanted), class, "{now} {wanted}");
    }
}

#[test]
fn a_cpu_that_never_sleeps_can_be_wanted_and_is_not_put_to_sleep_unasked() {
    let catalogue = Catalogue::embedded().expect("sound");
    let knob = catalogue.knob(&KnobId::new("cpu.resume_latency_us")).expect("a row");
    for (value, is_legal) in
        [("n/a", true), ("0", true), ("2147483646", true), ("2147483647", false), ("na", false)]
    {
        assert_eq!(knob.validate(value).is_ok(), is_legal, "{value}");
    }
    assert!(knob.r#type.same("n/a\n", "n/a") && !knob.r#type.same("0", "n/a"));
    assert!(knob.r#type.describe().ends_with(", or n/a"), "{}", knob.r#type.describe());
    let profile = catalogue.profile("low-latency").expect("a profile");
    let told = |now: &str, options: &Options| {
        let mut observation = host();
        let place = format!("{CPU}0/power/pm_qos_resume_latency_us");
        observation.knobs.insert(knob.id.clone(), vec![reading(&place, now)]);
        let plan = plan(&catalogue, &observation, &profile, &[], options).expect("a plan");
        let row = plan.skipped.into_iter().find(|row| row.knob == knob.id);
        row.map(|row| (row.not_allowed, row.verdict.reason))
    };
    let longer = |now: &str| {
        format!(
            "it is {now} by somebody's word, and wake-ups would be allowed to take longer: --allow availability"
        )
    };
    let none = Options::default();
    assert_eq!(told("n/a", &none), Some((true, longer("n/a"))));
    assert_eq!(told("1", &none), Some((true, longer("1 us"))));
    for shorter in ["0", "70"] {
        assert_eq!(told(shorter, &none), None, "{shorter}");
    }
    assert_eq!(told("n/a", &everything()), None);
    let way = |wanted| unsafe_way(Some(Bound::WakeUp), "20", wanted).is_some();
    assert_eq!(["n/a", "1", "20", "21", "0"].map(way), [false, false, false, true, true]);
}

#[test]
fn no_profile_lowers_the_buffers_of_sockets_unasked() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    observation.host.kernel = "6.12.1-test".to_owned();
    let large = "4096\t131072\t268435456";
    for (id, now) in [
        ("net.core.rmem_max", "268435456"),
        ("net.core.wmem_max", "268435456"),
        ("net.core.rmem_default", "268435456"),
        ("net.core.wmem_default", "268435456"),
        ("net.ipv4.tcp_rmem", large),
        ("net.ipv4.tcp_wmem", large),
    ] {
        let place = catalogue.knob(&KnobId::new(id)).expect("a row").path.clone();
        observation.knobs.insert(KnobId::new(id), vec![reading(&place, now)]);
    }
    let is_buffer =
        |place: &str| place.contains("mem_") || place.contains("tcp_rmem") || place.contains("tcp_wmem");
    for (name, held) in [("throughput", 4), ("zepto", 4), ("oracle", 4)] {
        let profile = catalogue.profile(name).expect("a profile");
        let made =
            |options: &Options| plan(&catalogue, &observation, &profile, &[], options).expect("a plan");
        let plan = made(&Options::default());
        let lowered: Vec<_> = plan.steps.iter().filter(|step| is_buffer(&step.place)).collect();
        assert!(lowered.is_empty(), "{name}: {lowered:?}");
        let told = plan.skipped.iter().filter(|row| is_buffer(&row.place) && row.not_allowed);
        let told: Vec<_> = told.map(|row| row.verdict.reason.as_str()).collect();
        assert_eq!(told.len(), held, "{name}: {told:?}");
        assert!(told.iter().all(|why| why.starts_with("it is lowered from ")), "{name}: {told:?}");
        let asked = made(&everything());
        // The plan shows for what leave was given.
        let steps = asked.steps.iter().filter(|step| is_buffer(&step.place));
        let classes: Vec<Class> = steps.map(|step| step.class).collect();
        assert_eq!(classes, vec![Class::Availability; held], "{name}");
    }
}

#[test]
fn oracle_asks_for_less_than_new_kernels_give_by_themselves_of_none() {
    let catalogue = Catalogue::embedded().expect("sound");
    let profile = catalogue.profile("oracle").expect("a profile");
    let told = |kernel: &str, now: &str| {
        let mut observation = host();
        observation.host.kernel = kernel.to_owned();
        let id = KnobId::new("net.core.wmem_max");
        observation.knobs.insert(id.clone(), vec![reading("/proc/sys/net/core/wmem_max", now)]);
        let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("a plan");
        let row = plan.skipped.into_iter().find(|row| row.knob == id);
        row.map(|row| row.verdict.reason)
    };
    assert_eq!(told("6.17.0", "212992"), None, "raised");
    let reason = "advice for Linux before 6.18, this is 6.18.44".to_owned();
    assert_eq!(told("6.18.44", "4194304"), Some(reason));
}

#[test]
fn what_the_kernel_refuses_at_the_write_is_refused_by_the_plan() {
    let catalogue = Catalogue::embedded().expect("sound");
    let told = |id: &str, place: &str, now: &str, max: Option<i64>, wanted: i64| {
        let mut observation = host();
        observation.host.page_bytes = 4096;
        observation.host.thp_bytes = Some(2 << 20);
        let seen = Reading { max, ..reading(place, now) };
        observation.knobs.insert(KnobId::new(id), vec![seen]);
        let plan = plan(&catalogue, &observation, &profile(&[(id, Want::Int(wanted))]), &[], &everything());
        let plan = plan.expect("a plan");
        assert_eq!(plan.steps.len() + plan.skipped.len(), 1, "{id}");
        plan.skipped.into_iter().next().map(|row| row.verdict.reason)
    };
    let khugepaged = "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_";
    for name in ["none", "swap", "shared"] {
        let told = |wanted| {
            told(
                &format!("thp.khugepaged.max_ptes_{name}"),
                &format!("{khugepaged}{name}"),
                "64",
                None,
                wanted,
            )
        };
        assert_eq!(told(511), None);
        assert_eq!(told(512).as_deref(), Some("a huge page here is 512 small ones: at most 511"));
    }
    let ahead = |now: &str, wanted| {
        told("block.read_ahead_kb", "/sys/block/sda/queue/read_ahead_kb", now, None, wanted)
    };
    assert_eq!(ahead("128", 262_144), None);
    let refused = ahead("128", 262_148).expect("too much");
    assert!(
        refused.ends_with(" of 16 GiB would be read for each stream: at most a 64th of memory"),
        "{refused}"
    );
    assert_eq!(ahead("99999999", 300_000), None, "less than now");
    let sectors = |wanted| {
        told("block.max_sectors_kb", "/sys/block/sda/queue/max_sectors_kb", "128", Some(1280), wanted)
    };
    assert_eq!(sectors(1280), None);
    assert_eq!(sectors(1284).as_deref(), Some("this device takes 1280 at most"));
    let runtime = |wanted| {
        told(
            "kernel.sched_rt_runtime_us",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "950000",
            Some(1_000_000),
            wanted,
        )
    };
    let period = "it is 1000000 at most, which is what /proc/sys/kernel/sched_rt_period_us is set to";
    assert_eq!([runtime(-1), runtime(1_000_000)], [None, None]);
    assert_eq!(runtime(5_000_000).as_deref(), Some(period));
    for (id, file) in [
        ("block.max_sectors_kb", "/sys/block/{disk}/queue/max_hw_sectors_kb"),
        ("kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us"),
    ] {
        assert_eq!(catalogue.knob(&KnobId::new(id)).expect("a row").limit.as_deref(), Some(file));
    }
    for id in ["cpu.uncore_min_khz", "cpu.uncore_max_khz"] {
        assert!(catalogue.knob(&KnobId::new(id)).expect("a row").between.is_some(), "{id}");
    }
}

#[test]
fn thresholds_of_neighbours_are_held_against_those_that_stay() {
    let catalogue = Catalogue::embedded().expect("sound");
    let id = |index: u8| format!("net.ipv4.neigh.default.gc_thresh{index}");
    let told = |wanted: &[(u8, i64)]| {
        let mut observation = host();
        for (index, now) in [(1, "128"), (2, "512"), (3, "1024")] {
            let place = format!("/proc/sys/net/ipv4/neigh/default/gc_thresh{index}");
            observation.knobs.insert(KnobId::new(id(index)), vec![reading(&place, now)]);
        }
        let want: Vec<(String, Want)> =
            wanted.iter().map(|(index, value)| (id(*index), Want::Int(*value))).collect();
        let want: Vec<(&str, Want)> = want.iter().map(|(id, want)| (id.as_str(), want.clone())).collect();
        let plan = plan(&catalogue, &observation, &profile(&want), &[], &everything()).expect("a plan");
        plan.skipped.into_iter().map(|row| row.verdict.reason).collect::<Vec<_>>()
    };
    let why = "gc_thresh1 would be 9999 and gc_thresh2 512: none may be above the next";
    assert_eq!(told(&[(1, 9999)]), [why]);
    assert_eq!(told(&[(2, 100)]), ["gc_thresh1 would be 128 and gc_thresh2 100: none may be above the next"]);
    assert_eq!(
        told(&[(2, 2048)]),
        ["gc_thresh2 would be 2048 and gc_thresh3 1024: none may be above the next"]
    );
    assert_eq!(told(&[(1, 4096), (2, 8192), (3, 16384)]), [""; 0]);
    assert_eq!(told(&[(1, 512)]), [""; 0]);
}

#[test]
fn units_keep_no_more_than_there_is() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    let place = |unit: &str| format!("/etc/systemd/system/{unit}.service.d/zz-planish-memory-min.conf");
    let readings = ["a", "b"].map(|unit| reading(&place(unit), planish_model::NOT_GIVEN)).to_vec();
    observation.knobs.insert(KnobId::new("unit.memory_min"), readings);
    let told = |each: i64| {
        let needs = Conditions::default();
        let case = Case { value: each.to_string(), only: Some("*".to_owned()), needs };
        let profile = profile(&[("unit.memory_min", Want::Case(Box::new(case)))]);
        let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
        let reasons = plan.skipped.into_iter().filter(|row| row.impossible).map(|row| row.verdict.reason);
        (plan.steps.len(), reasons.collect::<Vec<_>>())
    };
    assert_eq!(told(7 << 30), (2, Vec::new()));
    let why = "units would keep what cannot be there: 16 GiB would leave 0 B of the 16 GiB available, and the host \
               keeps 1.6 GiB";
    assert_eq!(told(8 << 30), (0, vec![why.to_owned(), why.to_owned()]));
    assert_eq!(told(9 << 40).0, 0);
}

#[test]
fn no_partition_takes_the_cpu_that_keeps_house() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    let place = |group: &str| format!("/sys/fs/cgroup/{group}/cpuset.cpus.partition");
    let readings = ["system.slice", "system.slices"].map(|group| reading(&place(group), "member")).to_vec();
    observation.knobs.insert(KnobId::new("cpuset.partition"), readings);
    let with_boot_cpu = vec!["system.slice".to_owned()];
    let partitions = planish_model::Partitions { with_boot_cpu, ..planish_model::Partitions::default() };
    observation.machine = Some(planish_model::Machine { partitions, ..planish_model::Machine::default() });
    let case = |only: &str| {
        let (value, needs) = ("isolated".to_owned(), Conditions::default());
        Want::Case(Box::new(Case { value, only: Some(only.to_owned()), needs }))
    };
    let profile = profile(&[("cpuset.partition", case("system*"))]);
    let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
    let refused: Vec<&str> = plan.skipped.iter().map(|row| row.verdict.reason.as_str()).collect();
    assert_eq!(refused, ["`system.slice` has CPU 0, which starts this host and keeps house"]);
    assert_eq!(plan.steps.len(), 1, "the other group");
}

#[test]
fn connections_that_go_out_keep_ports() {
    let catalogue = Catalogue::embedded().expect("sound");
    let told = |want: &[(&str, &str)]| {
        let want: Vec<(&str, Want)> =
            want.iter().map(|(id, value)| (*id, Want::Text((*value).to_owned()))).collect();
        let plan = plan(&catalogue, &host(), &profile(&want), &[], &everything()).expect("known knobs");
        plan.skipped.into_iter().find(|row| row.impossible).map(|row| row.verdict.reason)
    };
    let (range, reserved) = ("net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports");
    let few = |left| {
        Some(format!("{left} ports would be left for connections that go out, and at least 1024 have to be"))
    };
    assert_eq!(told(&[(range, "60999 60999")]), few(1));
    assert_eq!(told(&[(reserved, "1-65535")]), few(0));
    assert_eq!(told(&[(range, "50000 52000"), (reserved, "8080,50000-51500")]), few(500));
    assert_eq!(told(&[(range, "50000 52000")]), None);
    assert_eq!(told(&[(range, "9000 65500"), (reserved, "8080,9148-9150")]), None);
}

#[test]
fn a_plan_is_judged_once_more_by_the_host_of_the_moment() {
    let catalogue = Catalogue::embedded().expect("sound");
    let profile = profile(&[("vm.min_free_kbytes", Want::Int(700 << 10))]);
    let mut observation = host();
    let plan = plan(&catalogue, &observation, &profile, &[], &everything()).expect("known knobs");
    assert_eq!(plan.steps.len(), 1);
    assert!(ruinous(&catalogue, &observation, &plan.steps).is_empty());
    observation.host.available_bytes = 1 << 30;
    let told = ruinous(&catalogue, &observation, &plan.steps);
    assert_eq!(told.len(), 1);
    assert!(told[0].1.ends_with("only 1 GiB are available"), "{}", told[0].1);
}

#[test]
fn every_bound_is_the_bound_of_a_row() {
    let catalogue = Catalogue::embedded().expect("sound");
    for bound in [
        Bound::FreeReserve,
        Bound::Watermarks,
        Bound::Threads,
        Bound::OpenFiles,
        Bound::Tracked,
        Bound::Limit,
        Bound::Largest,
        Bound::Ports,
        Bound::Age,
        Bound::Kept,
        Bound::BootCpu,
        Bound::Promises,
        Bound::Surplus,
        Bound::CpusLeft,
        Bound::WakeUp,
        Bound::ReadAhead,
        Bound::PagesOfHuge,
        Bound::Neighbours,
        Bound::Table(4),
        Bound::Table(12),
        Bound::Buckets,
        Bound::Rests,
        Bound::Turn(1_000),
        Bound::Turn(10_000_000),
        Bound::Turn(100_000_000),
        Bound::IpcIds,
        Bound::Requests,
    ] {
        assert!(catalogue.knobs().any(|knob| knob.bound == Some(bound)), "{bound:?}");
    }
    let surplus = |knob: &&Knob| knob.path.ends_with("/nr_overcommit_hugepages");
    assert!(catalogue.knobs().filter(surplus).all(|knob| knob.bound == Some(Bound::Surplus)));
}

#[test]
fn what_stays_beside_a_value_is_held_against_it() {
    let catalogue = Catalogue::embedded().expect("sound");
    let (background, dirty) = ("vm.dirty_background_bytes", "vm.dirty_bytes");
    let (background_share, share) = ("vm.dirty_background_ratio", "vm.dirty_ratio");
    let told = |now: &[(&str, &str)], want: &[(&str, i64)]| {
        let mut observation = host();
        for (id, value) in now {
            let place = catalogue.knob(&KnobId::new(*id)).expect("a row").path.replace("{cpu}", "0");
            observation.knobs.insert(KnobId::new(*id), vec![reading(&place, value)]);
        }
        let want: Vec<(&str, Want)> = want.iter().map(|(id, value)| (*id, Want::Int(*value))).collect();
        let plan = plan(&catalogue, &observation, &profile(&want), &[], &everything()).expect("known knobs");
        let refused = plan.skipped.into_iter().find(|row| row.impossible).map(|row| row.verdict.reason);
        assert_eq!(plan.steps.len(), if refused.is_some() { 0 } else { want.len() });
        refused
    };
    let in_bytes = [(background, "67108864"), (dirty, "268435456"), (background_share, "0"), (share, "0")];
    let why = "33554432 is below vm.dirty_background_bytes, the lowest, which stays at 67108864: want both";
    assert_eq!(told(&in_bytes, &[(dirty, 32 << 20)]).as_deref(), Some(why));
    assert!(
        told(&in_bytes, &[(background, 512 << 20)]).is_some_and(|why| why.contains("above vm.dirty_bytes"))
    );
    assert_eq!(told(&in_bytes, &[(dirty, 64 << 20)]), None, "both the same");
    assert_eq!(told(&in_bytes, &[(dirty, 32 << 20), (background, 16 << 20)]), None, "both are moved");
    // A share of memory is no number of bytes: the kernel says neither which memory, nor when.
    let by_share = [(background, "0"), (dirty, "0"), (background_share, "10"), (share, "20")];
    assert_eq!(told(&by_share, &[(dirty, 32 << 20)]), None);
    assert!(told(&by_share, &[(share, 5)]).is_some_and(|why| why.contains("which stays at 10")));
    assert_eq!(told(&by_share, &[(share, 5), (background, 1 << 20)]), None, "the share goes out of force");
    // What was the wrong way round before may come nearer.
    let turned = [(background, "0"), (dirty, "0"), (background_share, "30"), (share, "10")];
    assert_eq!(told(&turned, &[(share, 20)]), None);
    let speed = [("cpu.min_freq_khz", "800000"), ("cpu.max_freq_khz", "2000000")];
    assert!(told(&speed, &[("cpu.min_freq_khz", 3_000_000)]).is_some());
}

#[test]
fn what_never_could_be_is_told_before_a_class_is_asked_for() {
    let asked = |id: &str, value: i64| {
        let catalogue = Catalogue::embedded().expect("sound");
        let mut observation = host();
        observation.knobs.insert(
            KnobId::new("boot.hugepages.1g"),
            vec![reading("cmdline:hugepages@1G", planish_model::NOT_GIVEN)],
        );
        let profile = profile(&[(id, Want::Int(value))]);
        let plan = plan(&catalogue, &observation, &profile, &[], &Options::default()).expect("known knobs");
        plan.skipped.iter().map(|row| (row.impossible, row.not_allowed)).collect::<BTreeSet<_>>()
    };
    for (id, never, possible) in [
        ("boot.hugepages.1g", 999_999, 2),
        ("vm.min_free_kbytes", 60_000_000, 90_000),
        ("fs.file-max", 1000, 900_000),
        ("vm.watermark_scale_factor", 3000, 20),
    ] {
        assert_eq!(asked(id, never), BTreeSet::from([(true, false)]), "{id} = {never}");
        assert!(!asked(id, possible).contains(&(true, false)), "{id} = {possible}");
    }
    assert_eq!(asked("boot.hugepages.1g", 2), BTreeSet::from([(false, true)]));
}

#[test]
fn a_wide_step_of_a_safe_row_waits_for_its_class() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (id, place, now, safe, wide) in [
        ("net.ipv4.tcp_max_tw_buckets", "/proc/sys/net/ipv4/tcp_max_tw_buckets", "262144", 524_288, 1),
        ("block.max_sectors_kb", "/sys/block/sda/queue/max_sectors_kb", "512", 1280, 4),
        ("cpu.dma_latency_us", "/planish/held/cpu_dma_latency_us", "2000000000", 1, 0),
    ] {
        let mut observation = host();
        observation.knobs.insert(KnobId::new(id), vec![reading(place, now)]);
        for (value, options, count) in
            [(safe, Options::default(), 1), (wide, Options::default(), 0), (wide, everything(), 1)]
        {
            let profile = profile(&[(id, Want::Int(value))]);
            let plan = plan(&catalogue, &observation, &profile, &[], &options).expect("known knobs");
            assert_eq!(plan.steps.len(), count, "{id} = {value}: {:?}", plan.skipped);
            assert!(plan.skipped.iter().all(|row| row.not_allowed && !row.impossible), "{:?}", plan.skipped);
        }
    }
    let scan = catalogue.knob(&KnobId::new("thp.khugepaged.pages_to_scan")).expect("a row");
    assert!(scan.validate("4096").is_ok() && scan.validate("4294967295").is_err());
}

proptest! {
    #[test]
    fn ports_that_are_left_are_those_that_a_look_at_each_finds(
        first in 0..200_u16,
        last in 0..200_u16,
        reserved in prop::collection::vec((0..220_u16, 0..220_u16), 0..6),
    ) {
        let is_reserved = |port: u16| reserved.iter().any(|(from, to)| (*from..=*to).contains(&port));
        let left = (first..=last).filter(|port| !is_reserved(*port)).count();
        let list: Vec<String> = reserved.iter().map(|(from, to)| format!("{from}-{to}")).collect();
        prop_assert_eq!(ports_left(&format!("{first}\t{last}"), &list.join(",")), Some(left));
    }
}
