//! Processes of recorded machines.

use std::path::Path;

use planish_host::Host;
use planish_residency::{Backing, Kind, Process};

fn host(name: &str) -> Host {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts").join(name);
    Host::open(&folder).expect("the repository has this machine")
}

#[test]
fn a_segment_is_as_long_as_its_mapping_however_little_is_seen() {
    let process = Process::read(&host("metal-2s"), 2201).expect("the server is recorded");
    let segment = &process.segments()[0];
    assert_eq!(segment.bytes, (32 << 30) + (700 << 20));
    assert!(!segment.is_hugetlb && segment.resident_bytes < segment.bytes / 20);

    let rows = process.rows();
    let on = |node| {
        let shared = rows.iter().filter(|row| row.kind == Kind::Shared && row.node == Some(node));
        shared.map(|row| row.resident_bytes).sum::<u64>()
    };
    assert_eq!((on(0), on(1)), ((290_112 + 1) << 12, 11_243 << 12));
    let kinds: Vec<Kind> = rows.iter().map(|row| row.kind).collect();
    for kind in [Kind::Text, Kind::Data, Kind::Heap, Kind::Anon, Kind::Stack, Kind::Shared] {
        assert!(kinds.contains(&kind), "{kind:?} is missing");
    }
}

#[test]
fn a_segment_on_a_pool_is_told_by_node() {
    let process = Process::read(&host("metal-1s-amd"), 3301).expect("the server is recorded");
    let segment = &process.segments()[0];
    assert!(segment.is_hugetlb);
    assert_eq!((segment.bytes, segment.page_bytes), (1200 << 21, 2 << 20));
    let on_pool = process.rows().into_iter().filter(|row| row.backing == Backing::Hugetlb);
    let by_node: Vec<_> = on_pool.map(|row| (row.node, row.resident_bytes, row.estimated)).collect();
    let share = |node| (Some(node), 300 << 21, false);
    assert_eq!(by_node, [share(0), share(1), share(2), share(3)]);
    assert_eq!(process.status.hugetlb_bytes, 1200 << 21);
    assert_eq!(process.total().hugetlb_bytes, 1200 << 21);
}
