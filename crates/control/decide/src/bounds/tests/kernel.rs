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
