//! Shares over caches of every shape: what is given away is free, side by side, and leaves the others something.

use proptest::prelude::*;

use planish_model::{MemoryPolicy, OtherGroup, ServiceRequest};

use super::*;
use crate::testing::observation as plain;

fn cpus(list: &str) -> Cpus {
    Cpus::parse(list).expect("a list")
}

fn service(unit: &str, list: &str) -> PlacedService {
    let (nodes, far) = (vec![0], Vec::new());
    let (cpus, memory, isolated) = (cpus(list), MemoryPolicy::Bind, false);
    PlacedService { unit: unit.to_owned(), cpus, nodes, memory, isolated, far }
}

fn asks_for(unit: &str, percent: u32) -> ServiceRequest {
    ServiceRequest {
        unit: unit.to_owned(),
        node: None,
        cores: None,
        cpus: None,
        memory: MemoryPolicy::Bind,
        isolate: false,
        devices: Vec::new(),
        pools: BTreeMap::new(),
        cache: Some(percent),
    }
}

/// Two caches of eleven ways, the highest two of which devices fill too; CPU 0-3 have the first.
fn caches() -> CacheControl {
    let l3 =
        CacheResource { closids: 4, mask: 0x7ff, bits_min: 1, shareable: 0x600, ..CacheResource::default() };
    let mb = CacheResource { closids: 8, bandwidth_min: 10, bandwidth_step: 10, ..CacheResource::default() };
    CacheControl {
        hindered: None,
        resources: [("L3".to_owned(), l3), ("MB".to_owned(), mb)].into(),
        groups: BTreeMap::new(),
        default: "L3:0=7ff;1=7ff MB:0=100;1=100".to_owned(),
        l3_cpus: [(0, cpus("0-3")), (1, cpus("4-7"))].into(),
    }
}

fn one_cache() -> CacheControl {
    CacheControl { default: "L3:0=7ff MB:0=100".to_owned(), l3_cpus: [(0, cpus("0-7"))].into(), ..caches() }
}

fn other(cpus_of_it: &str, ways: &str, tasks: usize) -> OtherGroup {
    let (mode, schemata) = ("shareable".to_owned(), format!("L3:0={ways};1={ways} MB:0=100;1=100"));
    OtherGroup { cpus: cpus(cpus_of_it), mode, schemata, tasks }
}

type Shared = Result<(Vec<PlacedCache>, Vec<(String, String)>), PlacementError>;

fn shared(caches: &CacheControl, services: &[(&str, &str, u32)]) -> Shared {
    let observation = Observation { caches: Some(caches.clone()), ..plain() };
    let service_requests = services.iter().map(|(unit, _, percent)| asks_for(unit, *percent)).collect();
    let request = PlacementRequest { service: service_requests, ..PlacementRequest::default() };
    let placement = Placement {
        housekeeping: cpus("0"),
        services: services.iter().map(|(unit, list, _)| service(unit, list)).collect(),
        interrupts: Vec::new(),
        partition: None,
        cache: Vec::new(),
    };
    let (placed, asks) = shares(&observation, &request, &placement)?;
    let values = asks.into_iter().map(|ask| match ask.what {
        What::Value { place, value, required: true } => (place, value),
        other => panic!("{other:?}"),
    });
    Ok((placed, values.collect()))
}

fn refusal(caches: &CacheControl, services: &[(&str, &str, u32)]) -> String {
    let error = shared(caches, services).expect_err("refused");
    assert!(!error.cure().is_empty());
    error.to_string()
}

const DEFAULT: &str = "/planish/resctrl/default";

#[test]
fn a_service_has_ways_of_its_own_and_all_others_the_rest() {
    let (placed, values) = shared(&caches(), &[("a.service", "1,2", 30)]).expect("shared");
    let group = "/planish/resctrl/groups/planish-a";
    let wanted = [
        (DEFAULT, "L3:0=7f0;1=7ff MB:0=100;1=100"),
        (group, "cpus=1-2 mode=shareable L3:0=f;1=7ff MB:0=100;1=100"),
    ];
    assert_eq!(values, wanted.map(|(place, value)| (place.to_owned(), value.to_owned())));
    assert!(placed[0].shareable.as_deref().is_some_and(|why| why.contains("CPUs of some")));
}

#[test]
fn where_it_is_all_there_is_the_group_is_exclusive() {
    let (_, values) =
        shared(&one_cache(), &[("a.service", "1,2", 10), ("b@1.service", "5", 1)]).expect("shared");
    assert_eq!(values[0].1, "L3:0=7f8 MB:0=100");
    assert_eq!(values[1].1, "cpus=1-2 mode=exclusive L3:0=3 MB:0=100");
    assert_eq!(
        values[2],
        (
            "/planish/resctrl/groups/planish-b@1".to_owned(),
            "cpus=5 mode=exclusive L3:0=4 MB:0=100".to_owned()
        )
    );
    let l2 = CacheResource { closids: 4, mask: 0xff, ..CacheResource::default() };
    let mut with_l2 = one_cache();
    with_l2.resources.insert("L2".to_owned(), l2);
    with_l2.default = "L2:0=ff;1=ff L3:0=7ff MB:0=100".to_owned();
    let (placed, values) = shared(&with_l2, &[("a.service", "1", 30)]).expect("shared");
    assert!(placed[0].shareable.as_deref().is_some_and(|why| why.contains("L2, L3")), "{placed:?}");
    assert_eq!(values[1].1, "cpus=1 mode=shareable L2:0=ff;1=ff L3:0=f MB:0=100");
}

#[test]
fn code_and_data_are_given_away_together() {
    let mut split = one_cache();
    let l3 = split.resources.remove("L3").expect("a cache");
    split.resources.extend([("L3CODE".to_owned(), l3.clone()), ("L3DATA".to_owned(), l3)]);
    split.default = "L3CODE:0=7ff L3DATA:0=7ff".to_owned();
    let (_, values) = shared(&split, &[("a.service", "1", 30)]).expect("shared");
    assert_eq!(values[0].1, "L3CODE:0=7f0 L3DATA:0=7f0");
    assert_eq!(values[1].1, "cpus=1 mode=shareable L3CODE:0=f L3DATA:0=f");
    // Nobody is to get ways that he did not have.
    split.default = "L3CODE:0=7f0 L3DATA:0=f".to_owned();
    assert!(refusal(&split, &[("a.service", "1", 30)]).contains("code and data"));
}

#[test]
fn what_others_have_is_never_taken() {
    let mut used = caches();
    used.groups.insert("batch".to_owned(), other("6", "3", 2));
    let (placed, values) = shared(&used, &[("a.service", "1", 30)]).expect("shared");
    assert_eq!(values[1].1, "cpus=1 mode=shareable L3:0=3c;1=7ff MB:0=100;1=100");
    assert_eq!(placed[0].beside, ["batch"], "its tasks keep its ways on every CPU");
    // What lies below is the other group's alone now: this CPU takes no holes, and of 3 and 7c0 the default keeps more.
    assert_eq!(values[0].1, "L3:0=7c0;1=7ff MB:0=100;1=100");
    assert!(refusal(&used, &[("a.service", "6", 30)]).contains("CPU 6 is in the group batch"));
}

#[test]
fn what_cannot_be_given_is_refused_with_its_reason() {
    let gone = |why: &str| CacheControl {
        hindered: Some((why.to_owned(), "a cure".to_owned())),
        ..CacheControl::default()
    };
    assert!(refusal(&gone("not mounted"), &[("a.service", "1", 30)]).contains("not mounted"));
    for percent in [0, 100] {
        assert!(refusal(&caches(), &[("a.service", "1", percent)]).contains("no share"));
    }
    assert!(refusal(&caches(), &[("a.service", "1", 90)]).contains("10 of 11 ways of cache 0"));
    let mut full = caches();
    full.groups.extend(["x", "y", "z"].map(|name| (name.to_owned(), other("", "7ff", 0))));
    assert!(refusal(&full, &[("a.service", "1", 30)]).contains("1 more of 4 groups"));
    full.groups.remove("z");
    assert!(
        refusal(&full, &[("a.service", "1", 30)]).contains("cannot be given away"),
        "all ways are theirs"
    );
    let unknown = CacheControl { l3_cpus: BTreeMap::new(), ..caches() };
    assert!(refusal(&unknown, &[("a.service", "1", 30)]).contains("nothing tells"));
    let mut bandwidth = caches();
    bandwidth.resources.remove("L3");
    assert!(refusal(&bandwidth, &[("a.service", "1", 30)]).contains("no third-level cache"));
}

#[test]
fn a_group_of_ours_that_is_there_is_the_same_or_in_the_way() {
    let first = shared(&caches(), &[("a.service", "1,2", 30)]).expect("shared");
    let mut applied = caches();
    applied.default = "L3:0=7f0;1=7ff MB:0=100;1=100".to_owned();
    let mine = |list: &str, tasks| OtherGroup {
        schemata: "L3:0=f;1=7ff MB:0=100;1=100".to_owned(),
        ..other(list, "f", tasks)
    };
    applied.groups.insert("planish-a".to_owned(), mine("1-2", 0));
    assert_eq!(shared(&applied, &[("a.service", "1,2", 30)]).expect("the same"), first);
    // A kill had left it without CPUs.
    applied.groups.insert("planish-a".to_owned(), mine("", 0));
    assert_eq!(shared(&applied, &[("a.service", "1,2", 30)]).expect("finished"), first);
    applied.groups.insert("planish-a".to_owned(), mine("3", 0));
    assert!(refusal(&applied, &[("a.service", "1,2", 30)]).contains("has CPU 3 already"));
    applied.groups.insert("planish-a".to_owned(), mine("1-2", 0));
    for percent in [20, 40] {
        let told = refusal(&applied, &[("a.service", "1,2", percent)]);
        assert!(told.contains("no group that is made is changed"), "{told}");
    }
    // Of another service: whoever follows must not remove what the journal holds.
    let told = refusal(&applied, &[("b.service", "2", 30)]);
    assert!(told.contains("that of another service"), "{told}");
    applied.groups.insert("planish-a".to_owned(), mine("1-2", 1));
    assert!(refusal(&applied, &[("a.service", "1,2", 30)]).contains("1 tasks were put"));
}

proptest! {
    #[test]
    fn ways_are_free_legal_and_not_the_last(
        width in 2_u32..21, bits_min in 1_u32..3, sparse: bool, theirs: u64, shareable: u64, percent in 1_u32..100,
    ) {
        let mask = (1_u64 << width) - 1;
        let mut caches = one_cache();
        let shareable = shareable & mask & !1;
        let plain = CacheResource::default();
        let l3 = CacheResource { closids: 16, mask, bits_min, shareable, sparse, ..plain };
        caches.default = format!("L3:0={mask:x}");
        caches.resources = [("L3".to_owned(), l3.clone())].into();
        let theirs = theirs & mask & (theirs >> 7);
        if theirs != 0 {
            let schemata = format!("L3:0={theirs:x}");
            caches.groups.insert("x".to_owned(), OtherGroup { schemata, ..other("", "1", 0) });
        }
        if let Ok((placed, values)) = shared(&caches, &[("a.service", "1", percent)]) {
            let ways = placed[0].ways[&0];
            prop_assert_eq!(l3.refusal_of_ways(ways), None);
            prop_assert_eq!(ways & (theirs | l3.shareable), 0);
            prop_assert!(ways.count_ones() * 100 >= width * percent);
            let rest = Schemata::parse(&values[0].1).expect("schemata").0["L3"][&0];
            prop_assert_eq!(rest & (ways | !mask), 0);
            prop_assert!(rest == mask & !ways || !sparse);
            prop_assert_eq!(l3.refusal_of_ways(rest), None);
        }
    }
}
