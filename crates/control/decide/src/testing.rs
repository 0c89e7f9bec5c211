//! A small catalogue and a hand-made host for the tests of this crate.

use std::collections::BTreeMap;

use planish_model::{
    Access, Catalogue, Class, Conditions, Entry, EntryId, EntryState, EntryStep, HostFacts, Knob, KnobId,
    Observation, Outcome, OutcomeKind, Plan, PoolReading, Profile, Reading, Undo, ValueType, Want, When,
};

/// A knob with one place and nothing special.
pub(crate) fn knob(id: &str, path: &str) -> Knob {
    Knob {
        id: KnobId::new(id),
        path: path.to_owned(),
        r#type: ValueType::Text { text: true },
        offered: None,
        limit: None,
        between: None,
        bound: None,
        pinned: None,
        words: Vec::new(),
        modules: Vec::new(),
        twin: None,
        alias: Vec::new(),
        derives: Vec::new(),
        after: Vec::new(),
        enforces: None,
        when: When::Now,
        class: Class::Safe,
        undo: Undo::Restore,
        needs: Conditions::default(),
        boot_arg: None,
        why: "why".to_owned(),
        cost: "cost".to_owned(),
        source: "source".to_owned(),
        proof: "none yet".to_owned(),
    }
}

pub(crate) fn reading(place: &str, value: &str) -> Reading {
    Reading {
        place: place.to_owned(),
        value: Some(value.to_owned()),
        unread: None,
        offered: Vec::new(),
        max: None,
        access: Access::Writable,
    }
}

const ROWS: &[(&str, &str, &str)] = &[
    (
        "hugepages.2m",
        "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages",
        r#"type = { int = "pages", min = 0 }
undo = "subtract"
alias = ["hugepages.2m.total"]"#,
    ),
    (
        "hugepages.1g",
        "/sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages",
        r#"type = { int = "pages", min = 0 }
undo = "subtract""#,
    ),
    (
        "hugepages.2m.total",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        r#"type = { int = "pages", min = 0 }
undo = "subtract""#,
    ),
    (
        "thp.enabled",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        r#"type = { choice = ["always", "madvise", "never"] }
derives = ["vm.min_free_kbytes"]"#,
    ),
    ("vm.min_free_kbytes", "/proc/sys/vm/min_free_kbytes", r#"type = { int = "KiB", min = 1024 }"#),
    ("vm.swappiness", "/proc/sys/vm/swappiness", r#"type = { int = "weight", min = 0, max = 200 }"#),
    (
        "vm.dirty_bytes",
        "/proc/sys/vm/dirty_bytes",
        r#"type = { int = "bytes", min = 8192 }
twin = "vm.dirty_ratio""#,
    ),
    (
        "vm.dirty_ratio",
        "/proc/sys/vm/dirty_ratio",
        r#"type = { int = "percent", min = 0, max = 100 }
twin = "vm.dirty_bytes""#,
    ),
    (
        "cpu.governor",
        "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor",
        r#"type = { text = true }
alias = ["cpu.epp"]"#,
    ),
    (
        "cpu.epp",
        "/sys/devices/system/cpu/cpu{cpu}/cpufreq/energy_performance_preference",
        "type = { text = true }",
    ),
    (
        "block.scheduler",
        "/sys/block/{disk}/queue/scheduler",
        r#"type = { choice = ["none", "mq-deadline", "bfq", "kyber"] }"#,
    ),
];

/// Rows of every kind of coupling.
pub(crate) fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    for (id, path, rest) in ROWS {
        let text = format!(
            "[[knob]]\nid = \"{id}\"\npath = \"{path}\"\nclass = \"safe\"\nwhy = \"w\"\ncost = \"c\"\n\
             source = \"s\"\nproof = \"none yet\"\n{rest}\n"
        );
        catalogue.add_knobs("test.toml", &text).expect("a good row");
    }
    catalogue.check().expect("sound");
    catalogue
}

/// A pool of 2 MiB pages on a node.
pub(crate) fn pool(node: u32, pages: u64) -> PoolReading {
    PoolReading {
        node: Some(node),
        page_bytes: 2 << 20,
        place: format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"),
        pages,
        free: pages,
        surplus: 0,
    }
}

fn pool_1g(node: u32) -> PoolReading {
    PoolReading {
        page_bytes: 1 << 30,
        place: format!("/sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages"),
        ..pool(node, 0)
    }
}

/// Two CPUs, three nodes (the third has memory only), 16 GiB. Node 1 has ten huge pages, two of them surplus.
pub(crate) fn observation() -> Observation {
    let values = [
        ("thp.enabled", "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("vm.min_free_kbytes", "/proc/sys/vm/min_free_kbytes", "67584"),
        ("vm.swappiness", "/proc/sys/vm/swappiness", "60"),
        ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes", "0"),
        ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio", "20"),
        ("cpu.governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
        ("cpu.governor", "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
        ("cpu.epp", "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "balance_power"),
        ("cpu.epp", "/sys/devices/system/cpu/cpu1/cpufreq/energy_performance_preference", "balance_power"),
        ("block.scheduler", "/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline"),
        ("block.scheduler", "/sys/block/sda/queue/scheduler", "none [mq-deadline]"),
    ];
    let pools =
        vec![pool(0, 0), PoolReading { surplus: 2, ..pool(1, 10) }, pool(2, 0), pool_1g(0), pool_1g(1)];
    let mut knobs: BTreeMap<KnobId, Vec<Reading>> = BTreeMap::new();
    for (id, place, value) in values {
        let mut reading = reading(place, value);
        if id == "block.scheduler" {
            reading.offered = vec!["none".to_owned(), "mq-deadline".to_owned()];
        }
        knobs.entry(KnobId::new(id)).or_default().push(reading);
    }
    for pool in &pools {
        let id = if pool.page_bytes == 2 << 20 { "hugepages.2m" } else { "hugepages.1g" };
        knobs.entry(KnobId::new(id)).or_default().push(reading(&pool.place, &pool.pages.to_string()));
    }
    let host = HostFacts {
        host_id: "host".to_owned(),
        boot_id: "boot".to_owned(),
        kernel: "6.12.1-test".to_owned(),
        arch: "x86_64".to_owned(),
        cpus_online: 2,
        nodes: vec![0, 1, 2],
        cpu_nodes: vec![0, 1],
        page_bytes: 4096,
        huge_page_bytes: vec![2 << 20, 1 << 30],
        memory_bytes: 16 << 30,
        available_bytes: 12 << 30,
        root: true,
        ..HostFacts::default()
    };
    Observation { host, knobs, pools, ..Observation::default() }
}

/// A profile named `series`.
pub(crate) fn profile(want: &[(&str, Want)]) -> Profile {
    Profile {
        name: "series".to_owned(),
        summary: "a test".to_owned(),
        inherits: Vec::new(),
        want: want.iter().map(|(id, want)| (KnobId::new(*id), want.clone())).collect(),
        placement: None,
        ..Profile::default()
    }
}

/// An open entry of this boot that holds pages of one pool.
pub(crate) fn entry_holding(profile: &str, place: &str, pages: u64) -> Entry {
    let mut outcome = Outcome::new(KnobId::new("hugepages.2m"), place.to_owned(), OutcomeKind::Done);
    outcome.granted_pages = Some(pages);
    Entry {
        id: EntryId(1),
        at: 0,
        boot_id: "boot".to_owned(),
        who: "root".to_owned(),
        command: "apply".to_owned(),
        reason: None,
        profile: profile.to_owned(),
        plan: Plan::new(String::new(), String::new(), String::new(), Vec::new(), Vec::new()).hash,
        steps: vec![EntryStep {
            knob: KnobId::new("hugepages.2m"),
            place: place.to_owned(),
            wanted: pages.to_string(),
            class: Class::Safe,
            undo: Undo::Subtract,
            raise_pages: Some(pages),
            takes_pages: None,
            in_all: None,
            others: Default::default(),
            line: None,
            there: None,
            lowered_behind: None,
            part: None,
            service: None,
            originals: Vec::new(),
            folders: Vec::new(),
            pools: Vec::new(),
            rules: Vec::new(),
            device: None,
            generator: None,
            outcome: Some(outcome),
            begun: None,
            last_boot: None,
            last_entry: None,
            undone: None,
        }],
        confirm_by: None,
        wait_end: None,
        on_confirm: None,
        state: EntryState::Open,
        undo_begun: false,
        instead_of: None,
        replaced_by: None,
        host: None,
        allowed: planish_model::Allowed::default(),
    }
}
