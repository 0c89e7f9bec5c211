//! What a placement never does, on machines of any shape, and what it refuses.

use planish_model::{
    Catalogue, DeviceKind, HostFacts, Interrupts, MachineCpu, MachineDevice, MachineIrq, MachineNode,
    ServiceRequest,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::solve::nodes_of;
use super::*;
use crate::{DecideError, Options, plan};

const GIB: u64 = 1 << 30;

/// Nodes with so many cores each, of so many threads. Linux numbers the first threads of all cores before the second.
fn machine(cores: &[u32], threads: u32) -> Machine {
    let all: u32 = cores.iter().sum();
    let mut cpus = Vec::new();
    let mut core = 0;
    for (node, count) in cores.iter().enumerate() {
        for own in core..core + count {
            let siblings: Cpus = (0..threads).map(|thread| thread * all + own).collect();
            let node = u32::try_from(node).ok();
            cpus.extend(siblings.iter().map(|id| MachineCpu {
                id,
                node,
                online: true,
                threads: siblings.clone(),
            }));
        }
        core += count;
    }
    cpus.sort_by_key(|cpu| cpu.id);
    let nodes = (0..).zip(cores).map(|(id, _)| MachineNode { id, memory_bytes: 8 * GIB }).collect();
    let device = |name: &str, node| {
        let kind = if name.starts_with("nvme") { DeviceKind::Disk } else { DeviceKind::Nic };
        MachineDevice { name: name.to_owned(), kind, node, pci: None, irqs: Vec::new() }
    };
    let irq = |id: u32, user: &str, node: u32, fixed: bool| MachineIrq {
        id,
        users: vec![user.to_owned()],
        cpus: cpus.iter().map(|cpu| cpu.id).collect(),
        node: Some(node),
        fixed: fixed.then(|| "managed".to_owned()),
    };
    let irqs = vec![
        irq(10, "ahci[0000:00:17.0]", 0, false),
        irq(20, "nvme0q0", 0, false),
        irq(21, "nvme0q1", 0, true),
        irq(30, "eth0-TxRx-0", 1, false),
        irq(31, "eth0-TxRx-1", 1, false),
        irq(32, "eth0-TxRx-2", 1, false),
    ];
    let devices = vec![device("nvme0n1", Some(0)), device("eth0", Some(1))];
    Machine {
        cpus,
        nodes,
        devices,
        irqs,
        units: units(),
        systemd: true,
        partitions: no_partitions(),
        ..Machine::default()
    }
}

fn no_partitions() -> planish_model::Partitions {
    let hindered = Some("version 1".to_owned());
    planish_model::Partitions { hindered, ..planish_model::Partitions::default() }
}

fn units() -> Vec<String> {
    ["a.service", "b.service", "c.service"].map(str::to_owned).to_vec()
}

fn on_node(unit: &str, node: u32, cores: Option<u32>) -> ServiceRequest {
    ServiceRequest { unit: unit.to_owned(), node: Some(node), cores, ..on_cpus(unit, "") }
}

/// A service on CPUs that are named; on none where the list is empty.
fn on_cpus(unit: &str, cpus: &str) -> ServiceRequest {
    ServiceRequest {
        unit: unit.to_owned(),
        node: None,
        cores: None,
        cpus: Some(list(cpus)).filter(|cpus| !cpus.is_empty()),
        memory: MemoryPolicy::Bind,
        isolate: false,
        devices: Vec::new(),
        pools: BTreeMap::new(),
        cache: None,
    }
}

fn request(service: Vec<ServiceRequest>) -> PlacementRequest {
    PlacementRequest { service, ..PlacementRequest::default() }
}

fn list(text: &str) -> Cpus {
    Cpus::parse(text).expect("a list")
}

/// Where nobody else has any CPU.
fn solve(machine: &Machine, request: &PlacementRequest) -> Result<Placement, PlacementError> {
    solve::solve(machine, request, &Held::default())
}

fn refused(machine: &Machine, request: &PlacementRequest) -> String {
    let error = solve(machine, request).expect_err("refused");
    assert!(!error.cure().is_empty());
    error.to_string()
}

#[test]
fn one_instance_a_node() {
    let both = request(vec![on_node("a.service", 0, None), on_node("b.service", 1, None)]);
    let placed = solve(&machine(&[4, 4], 2), &both).expect("it fits");
    assert_eq!(placed.housekeeping, list("0,4,8,12"), "a core of each node");
    assert_eq!(placed.services[0].cpus, list("1-3,9-11"));
    assert_eq!(placed.services[1].cpus, list("5-7,13-15"));
    assert_eq!(placed.services[1].nodes, [1]);
}

#[test]
fn cores_that_nobody_wants_keep_house() {
    let small = request(vec![on_node("a.service", 1, Some(1))]);
    let placed = solve(&machine(&[4, 4], 1), &small).expect("it fits");
    assert_eq!((placed.services[0].cpus.clone(), placed.housekeeping), (list("5"), list("0-4,6-7")));
    let none_kept = PlacementRequest { housekeeping_cores: Some(0), ..small };
    let placed = solve(&machine(&[4, 4], 1), &none_kept).expect("it fits");
    assert_eq!(placed.services[0].cpus, list("4"), "CPU 0 keeps house on node 0 alone");
}

#[test]
fn interrupts_keep_to_housekeeping_near_their_device() {
    let near = request(vec![on_node("a.service", 0, None), on_node("b.service", 1, None)]);
    let placed = solve(&machine(&[4, 4], 1), &near).expect("it fits");
    let of = |id: u32| placed.interrupts.iter().find(|irq| irq.id == id).expect("known").clone();
    assert_eq!((of(10).cpus, of(20).cpus, of(30).cpus), (list("0"), list("0"), list("4")));
    assert_eq!((of(21).left.as_deref(), of(21).cpus), (Some("managed"), list("0-7")), "left where it is");
    // No housekeeping on the node of the card: all of it.
    let far = PlacementRequest { housekeeping_cores: Some(0), ..near.clone() };
    let placed = solve(&machine(&[4, 4], 1), &far).expect("it fits");
    assert_eq!(placed.interrupts[3].cpus, list("0"));
    let left = PlacementRequest { leave: vec!["ahci*".to_owned(), "31".to_owned()], ..near };
    let placed = solve(&machine(&[4, 4], 1), &left).expect("it fits");
    let names: Vec<u32> =
        placed.interrupts.iter().filter(|irq| irq.left.is_some()).map(|irq| irq.id).collect();
    assert_eq!(names, [10, 21, 31]);
}

#[test]
fn queues_go_to_the_cores_of_their_service_one_by_one_when_asked() {
    let mut service = on_node("a.service", 1, Some(2));
    service.devices = vec!["eth0".to_owned(), "nvme0n1".to_owned()];
    let asked = PlacementRequest { interrupts: Interrupts::Service, ..request(vec![service]) };
    let placed = solve(&machine(&[4, 4], 2), &asked).expect("it fits");
    let of = |id: u32| placed.interrupts.iter().find(|irq| irq.id == id).expect("known").cpus.clone();
    assert_eq!(placed.services[0].cpus, list("5-6,13-14"));
    assert_eq!([of(20), of(30), of(31), of(32)].map(|cpus| cpus.to_string()), ["5", "6", "5", "6"]);
    assert!(of(10).is_within(&placed.housekeeping), "no device of a service");
    let far: Vec<String> = placed.services[0].far.iter().map(planish_model::FarDevice::remark).collect();
    assert_eq!(far, ["nvme0n1 is on node 0: every byte of it crosses between the nodes"]);
}

#[test]
fn half_a_plan_is_refused() {
    let two = machine(&[4, 4], 2);
    assert!(refused(&two, &PlacementRequest::default()).starts_with("no service is placed"));
    let of_boot_cpu = request(vec![on_cpus("a.service", "0,8")]);
    assert!(refused(&two, &of_boot_cpu).starts_with("CPU 0 keeps house"));
    let without_it =
        PlacementRequest { housekeeping: Some(list("1,9")), ..request(vec![on_node("a.service", 1, None)]) };
    assert!(refused(&two, &without_it).starts_with("CPU 0 keeps house"));
    assert!(refused(&two, &request(vec![on_cpus("a.service", "0-15")])).starts_with("CPU 0 keeps house"));
}

#[test]
fn a_host_of_two_cpus_or_one_core_is_refused() {
    let any = request(vec![on_node("a.service", 0, None)]);
    assert!(refused(&machine(&[2], 1), &any).starts_with("2 CPUs on 2 cores cannot be shared out"));
    assert!(refused(&machine(&[1], 2), &any).starts_with("2 CPUs on 1 core cannot"));
    assert!(refused(&machine(&[1], 4), &any).starts_with("4 CPUs on 1 core cannot"));
    assert!(solve(&machine(&[3], 1), &any).is_ok());
}

#[test]
fn what_is_not_there_or_offline_is_refused() {
    let mut two = machine(&[4, 4], 2);
    let on = |service| request(vec![service]);
    assert!(
        refused(&two, &on(on_cpus("a.service", "1,9,16"))).contains("CPU 16, which this host does not have")
    );
    assert!(
        refused(&two, &on(on_node("a.service", 2, None))).contains("names node 2; this host has node 0-1")
    );
    two.nodes.push(MachineNode { id: 2, memory_bytes: GIB });
    assert!(
        refused(&two, &on(on_node("a.service", 2, None)))
            .contains("node 2, which has memory and no CPU online")
    );
    for id in [1, 9] {
        two.cpus[id].online = false;
    }
    assert!(refused(&two, &on(on_cpus("a.service", "1,9"))).contains("CPU 1,9, which is offline"));
    let device = ServiceRequest { devices: vec!["eth1".to_owned()], ..on_node("a.service", 0, None) };
    assert!(
        refused(&two, &on(device))
            .contains("eth1, which is no disk and no network card of this host; did you")
    );
    two.nodes[1].memory_bytes = 0;
    assert!(refused(&two, &on(on_node("a.service", 1, None))).contains("node 1, which has no memory"));
}

#[test]
fn cores_are_not_split_nor_given_twice() {
    let two = machine(&[4, 4], 2);
    let half = request(vec![on_cpus("a.service", "1-2,9")]);
    assert!(refused(&two, &half).contains("takes CPU 2 and not 10"));
    let twice = request(vec![on_cpus("a.service", "1,9"), on_cpus("b.service", "1-2,9-10")]);
    assert!(refused(&two, &twice).contains("CPU 1,9 is wanted by b.service and by a.service"));
    let kept = PlacementRequest {
        housekeeping: Some(list("0,8,1,9")),
        ..request(vec![on_cpus("a.service", "1,9")])
    };
    assert!(refused(&two, &kept).contains("CPU 1,9 is wanted by a.service and by housekeeping"));
    let both = request(vec![on_node("a.service", 0, None), on_node("b.service", 0, None)]);
    assert!(refused(&two, &both).contains("both want what is left of node 0"));
    let many = request(vec![on_node("a.service", 0, Some(4))]);
    assert!(refused(&two, &many).contains("wants 4 cores, and node 0 has 3 left"));
}

#[test]
fn a_pool_larger_than_its_node_is_refused() {
    let pool = |unit: &str, bytes: u64| {
        let pools = BTreeMap::from([(KnobId::new("hugepages.2m"), bytes)]);
        ServiceRequest { pools, cores: Some(1), ..on_node(unit, 0, None) }
    };
    let two = machine(&[4, 4], 1);
    assert!(solve(&two, &request(vec![pool("a.service", 4 * GIB), pool("b.service", 4 * GIB)])).is_ok());
    let both = request(vec![pool("a.service", 4 * GIB), pool("b.service", 5 * GIB)]);
    assert_eq!(refused(&two, &both), "pools of 9 GiB on node 0 are more than its memory of 8 GiB");
    let wide = ServiceRequest { node: None, cores: None, cpus: Some(list("1,5")), ..pool("a.service", GIB) };
    assert!(
        refused(&two, &request(vec![wide])).contains("has CPUs on several nodes, and a pool is of one node")
    );
}

/// An observation of a machine with the places that a placement writes.
fn observation(machine: Machine) -> Observation {
    let reading = |place: &str, value: &str| crate::testing::reading(place, value);
    let mut knobs: BTreeMap<KnobId, Vec<planish_model::Reading>> = BTreeMap::new();
    let mut add = |id: &str, place: &str, value: &str| {
        knobs.entry(KnobId::new(id)).or_default().push(reading(place, value));
    };
    for irq in &machine.irqs {
        add("irq.affinity", &format!("/proc/irq/{}/smp_affinity_list", irq.id), &irq.cpus.to_string());
    }
    add("irq.default_affinity", "/proc/irq/default_smp_affinity", &machine.online().mask());
    for name in ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"] {
        add(&format!("boot.{name}"), &format!("cmdline:{name}"), NOT_GIVEN);
    }
    let online = u32::try_from(machine.online().count()).expect("few");
    let host = HostFacts { cpus_online: online, root: true, ..crate::testing::observation().host };
    Observation { host, knobs, machine: Some(machine), ..Observation::default() }
}

fn planned(observation: &Observation, options: &Options) -> Result<Plan, DecideError> {
    let isolated = ServiceRequest { isolate: true, ..on_node("a.service", 0, None) };
    let both = request(vec![isolated, on_node("b.service", 1, None)]);
    let profile = planish_model::Profile { placement: Some(both), ..crate::testing::profile(&[]) };
    plan(&Catalogue::embedded().expect("sound"), observation, &profile, &[], options)
}

fn all_allowed() -> Options {
    Options { allow_classes: vec![planish_model::Class::Availability], ..Options::default() }
}

#[test]
fn services_are_pinned_before_interrupts_move() {
    let plan = planned(&observation(machine(&[4, 4], 2)), &all_allowed()).expect("a plan");
    let ids: Vec<&str> = plan.steps.iter().map(|step| step.knob.as_str()).collect();
    let last_unit = ids.iter().rposition(|id| *id == "unit.placement").expect("units are written");
    let first_irq = ids.iter().position(|id| id.starts_with("irq.")).expect("interrupts are moved");
    assert!(last_unit < first_irq, "{ids:?}");
    assert_eq!(plan.steps[0].wanted, "CPUAffinity=1-3,9-11 NUMAPolicy=bind NUMAMask=0");
    assert_eq!(plan.steps[0].place, "/etc/systemd/system/a.service.d/zz-planish.conf");
    let at_boot: Vec<String> =
        plan.boot.iter().map(|step| format!("{}={}", &step.place["cmdline:".len()..], step.wanted)).collect();
    assert_eq!(
        at_boot,
        [
            "irqaffinity=0,4,8,12",
            "isolcpus=domain,managed_irq,1-3,9-11",
            "nohz_full=1-3,9-11",
            "rcu_nocbs=1-3,9-11"
        ],
        "the other service balances its threads"
    );
    assert!(!plan.steps.iter().any(|step| step.place.contains("/21/")), "managed");
}

#[test]
fn a_device_on_another_node_is_a_finding_and_one_on_its_own_is_none() {
    let found_of = |name: &str, node: Option<u32>| {
        let mut seen = observation(machine(&[4, 4], 2));
        let devices = &mut seen.machine.as_mut().expect("seen").devices;
        devices.iter_mut().for_each(|device| device.node = node);
        let service = ServiceRequest { devices: vec![name.to_owned()], ..on_node("a.service", 0, None) };
        let placement = Some(request(vec![service]));
        let profile = planish_model::Profile { placement, ..crate::testing::profile(&[]) };
        let catalogue = Catalogue::embedded().expect("sound");
        let plan = plan(&catalogue, &seen, &profile, &[], &Options::default()).expect("a plan");
        let mut found = crate::findings(
            &catalogue,
            &seen,
            Some(crate::Against { plan: &plan, source: "p", service: None }),
        )
        .into_iter();
        found.find(|finding| finding.id == "placement.far_device")
    };
    let found = |node| found_of("eth0", node).map(|finding| finding.severity);
    assert_eq!(found(Some(1)), Some(planish_model::Severity::Warning));
    assert_eq!(found(None), Some(planish_model::Severity::Note));
    assert_eq!(found(Some(0)), None);
    // Somebody measured cards, and nobody disks.
    let costs = |name| found_of(name, Some(1)).map(|finding| (finding.may_cost, finding.costs)).expect("far");
    let (card, disk) = (costs("eth0"), costs("nvme0n1"));
    assert!(card.0.is_some_and(|cost| cost.of.contains("network card")) && card.1.is_none());
    assert!(disk.0.is_none() && disk.1.is_some_and(|why| why.starts_with("not known")), "of a card");
    let unknown = found_of("eth0", None).expect("told");
    assert_eq!((unknown.may_cost, unknown.costs), (None, None), "whether it is far is not known");
}

#[test]
fn a_placement_is_planned_whole_or_not_at_all() {
    let seen = observation(machine(&[4, 4], 2));
    // What is not allowed at all is no error: nothing of it is written.
    let plan = planned(&seen, &Options::default()).expect("a plan");
    assert!(plan.steps.is_empty() && plan.boot.is_empty(), "{:?}", plan.steps);
    assert!(plan.skipped.iter().all(|row| row.verdict.reason.contains("placed whole or not at all")));
    let some = Options { allow_knobs: vec![KnobId::new("irq.affinity")], ..Options::default() };
    assert!(planned(&seen, &some).expect("a plan").steps.is_empty());
    let without = Options { exclude: vec!["unit.placement".to_owned()], ..all_allowed() };
    let error = planned(&seen, &without).expect_err("interrupts without services");
    assert!(matches!(error, DecideError::Placement(PlacementError::Half { .. })), "{error:?}");
    let mut locked = seen.clone();
    for reading in locked.knobs.get_mut(&KnobId::new("irq.affinity")).expect("seen") {
        reading.access = planish_model::Access::ReadOnly("mounted read-only".to_owned());
    }
    let error = planned(&locked, &all_allowed()).expect_err("services without interrupts");
    assert!(matches!(error, DecideError::Placement(PlacementError::Half { .. })), "{error:?}");
}

#[test]
fn pools_are_a_part_of_their_placement() {
    let mut seen = observation(machine(&[4, 4], 2));
    let of_pools = crate::testing::observation();
    seen.pools = of_pools.pools.clone();
    let pools = KnobId::new("hugepages.2m");
    seen.knobs.insert(pools.clone(), of_pools.knobs[&pools].clone());
    let service = ServiceRequest {
        pools: BTreeMap::from([(pools.clone(), 64 << 20)]),
        ..on_node("a.service", 0, None)
    };
    let catalogue = Catalogue::embedded().expect("sound");
    let want = [(
        "hugepages.2m",
        planish_model::Want::Need { need_bytes: 1 << 30, nodes: planish_model::Nodes::Spread },
    )];
    let placement = Some(request(vec![service]));
    let profile = planish_model::Profile { placement, ..crate::testing::profile(&want) };
    let made = |seen: &Observation, options: &Options| plan(&catalogue, seen, &profile, &[], options);
    let whole = made(&seen, &all_allowed()).expect("a plan");
    let raised: Vec<&str> =
        whole.steps.iter().filter(|step| step.knob == pools).map(|step| step.place.as_str()).collect();
    assert_eq!(raised, [seen.pools[0].place.as_str()]);
    assert_eq!(whole.remarks.len(), 1, "{:?}", whole.remarks);
    assert!(
        whole.remarks[0].starts_with("hugepages.2m of [want] gives way to `pools`"),
        "{:?}",
        whole.remarks
    );
    let half = |seen: &Observation, options: &Options| {
        let error = made(seen, options).expect_err("a service without its memory");
        let DecideError::Placement(half @ PlacementError::Half { .. }) = error else { panic!("{error:?}") };
        half.to_string()
    };
    let without = Options { exclude: vec!["hugepages.2m".to_owned()], ..all_allowed() };
    assert!(half(&seen, &without).contains("hugepages.2m at"), "{}", half(&seen, &without));
    let mut locked = seen.clone();
    for reading in locked.knobs.get_mut(&pools).expect("seen") {
        reading.access = planish_model::Access::ReadOnly("mounted read-only".to_owned());
    }
    assert!(half(&locked, &all_allowed()).contains("mounted read-only"));
    locked.pools.clear();
    half(&locked, &all_allowed());
}

#[test]
fn what_the_kernel_lets_nobody_write_is_told_and_what_is_left_out_by_hand_is_refused() {
    let mut seen = observation(machine(&[4, 4], 2));
    let work = "/sys/devices/virtual/workqueue/cpumask";
    seen.knobs.insert(KnobId::new("workqueue.cpumask"), vec![crate::testing::reading(work, "ffff")]);
    assert_eq!(planned(&seen, &all_allowed()).expect("a plan").remarks, [""; 0]);
    for id in ["irq.default_affinity", "workqueue.cpumask"] {
        let mut locked = seen.clone();
        for reading in locked.knobs.get_mut(&KnobId::new(id)).expect("seen") {
            reading.access = planish_model::Access::ReadOnly("the kernel lets nobody write it".to_owned());
        }
        let plan = planned(&locked, &all_allowed()).expect("the rest");
        assert_eq!(plan.remarks.len(), 1, "{:?}", plan.remarks);
        assert!(plan.remarks[0].starts_with(&format!("{id} of the placement stays as it is (")), "{plan:?}");
        assert!(plan.remarks[0].contains(", until a boot with boot."), "{:?}", plan.remarks);
        let without = Options { exclude: vec![id.to_owned()], ..all_allowed() };
        let error = planned(&seen, &without).expect_err("half of it");
        let DecideError::Placement(PlacementError::Half { knob, .. }) = error else { panic!("{error:?}") };
        assert_eq!(knob.as_str(), id);
    }
}

#[test]
fn cores_that_a_list_by_hand_splits_are_told() {
    let seen = observation(machine(&[4, 4], 2));
    let told = |list: &str| {
        let profile =
            crate::testing::profile(&[("boot.isolcpus", planish_model::Want::Text(list.to_owned()))]);
        let catalogue = Catalogue::embedded().expect("sound");
        plan(&catalogue, &seen, &profile, &[], &all_allowed()).expect("a plan").remarks
    };
    let split = "boot.isolcpus = 1-3,9 takes CPU 2-3 and leaves 10-11, other threads of the same cores: each slows \
                 the other down";
    assert_eq!(told("1-3,9"), [split]);
    assert_eq!(told("managed_irq,1-3,9-11"), [""; 0]);
}

#[test]
fn what_takes_the_cpus_of_a_service_or_brings_others_to_them_is_refused_with_both() {
    let mut seen = observation(machine(&[4, 4], 2));
    let online = seen.machine.as_ref().expect("seen").online();
    seen.cpus_present = online.clone();
    for (id, place, now) in [
        ("boot.systemd_cpu_affinity", "cmdline:systemd.cpu_affinity".to_owned(), NOT_GIVEN),
        ("boot.nosmt", "cmdline:nosmt".to_owned(), NOT_GIVEN),
        ("boot.numa", "cmdline:numa".to_owned(), NOT_GIVEN),
        ("cpu.smt", "/sys/devices/system/cpu/smt/control".to_owned(), "on"),
        ("kernel.watchdog_cpumask", "/proc/sys/kernel/watchdog_cpumask".to_owned(), "0-15"),
        ("net.rps_cpus", "/sys/class/net/eth0/queues/rx-0/rps_cpus".to_owned(), "0000"),
        ("net.xps_cpus", "/sys/class/net/eth0/queues/tx-0/xps_cpus".to_owned(), "0000"),
    ] {
        seen.knobs.entry(KnobId::new(id)).or_default().push(crate::testing::reading(&place, now));
    }
    for cpu in online.iter().filter(|cpu| *cpu > 0) {
        let place = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        let reading = crate::testing::reading(&place, "1");
        seen.knobs.entry(KnobId::new("cpu.online")).or_default().push(reading);
    }
    let told = |wants: &[(&str, &str, Option<&str>)], isolate: bool| {
        let services = vec![ServiceRequest { isolate, ..on_cpus("a.service", "1-3,9-11") }];
        let case = |(id, value, only): &(&str, &str, Option<&str>)| {
            let (value, only) = ((*value).to_owned(), only.map(str::to_owned));
            let needs = planish_model::Conditions::default();
            let case = planish_model::Case { value, only, needs };
            (KnobId::new(*id), planish_model::Want::Case(Box::new(case)))
        };
        let want = wants.iter().map(case).collect();
        let placement = Some(request(services));
        let profile = planish_model::Profile { want, placement, ..crate::testing::profile(&[]) };
        let catalogue = Catalogue::embedded().expect("sound");
        let planned = plan(&catalogue, &seen, &profile, &[], &all_allowed());
        match planned {
            Ok(_) => None,
            Err(DecideError::Placement(
                error @ (PlacementError::Against { .. } | PlacementError::Away { .. }),
            )) => Some(error.to_string()),
            Err(error) => panic!("{error:?}"),
        }
    };
    for (id, value, only, what) in [
        ("cpu.online", "0", Some("cpu1"), "takes CPU 1 away, on which it is placed"),
        ("cpu.smt", "off", None, "takes CPU 9-11 away, on which it is placed"),
        ("boot.nosmt", "1", None, "takes CPU 9-11 away, on which it is placed"),
        ("boot.numa", "off", None, "leaves no nodes, and it is placed on one"),
        ("boot.systemd_cpu_affinity", "1,5", None, "brings others to CPU 1, which it has to itself"),
        ("kernel.watchdog_cpumask", "0-1", None, "brings others to CPU 1, which it has to itself"),
        ("net.rps_cpus", "22", None, "brings others to CPU 1, which it has to itself"),
    ] {
        let told = told(&[(id, value, only)], true);
        let expected = format!("{id} = {value} speaks against the placement of a.service: it {what}");
        assert_eq!(told, Some(expected), "{id}");
    }
    for isolate in [true, false] {
        let told = told(&[("cpu.online", "0", Some("cpu4"))], isolate).expect("its own housekeeping");
        let why = "and the placement would have it keep house, and name it in masks";
        assert_eq!(told, format!("cpu.online = 0 takes CPU 4 away, {why}"));
    }
    for (id, value, only) in [
        ("cpu.online", "1", Some("cpu4")),
        ("boot.systemd_cpu_affinity", "0,4", None),
        ("kernel.watchdog_cpumask", "0,4-8,12-15", None),
        ("net.rps_cpus", "30", None),
        ("net.xps_cpus", "22", None),
    ] {
        assert_eq!(told(&[(id, value, only)], true), None, "{id}");
    }
    assert_eq!(told(&[("net.rps_cpus", "22", None)], false), None, "they are shared");
}

#[test]
fn a_unit_that_nobody_could_pin_is_refused() {
    let mut seen = observation(machine(&[4, 4], 2));
    let refusal = |seen: &Observation| match planned(seen, &all_allowed()).expect_err("refused") {
        DecideError::Placement(error) => error,
        other => panic!("{other:?}"),
    };
    seen.machine.as_mut().expect("seen").units.retain(|unit| unit != "b.service");
    let unit = "b.service".to_owned();
    // One that is placed itself is not meant.
    seen.services = ["a".to_owned(), "cb".to_owned()].into();
    let nearest = Some("cb.service".to_owned());
    assert_eq!(refusal(&seen), PlacementError::NoUnit { unit, nearest });
    seen.machine.as_mut().expect("seen").units.clear();
    seen.services.clear();
    assert_eq!(refusal(&seen), PlacementError::NoUnit { unit: "a.service".to_owned(), nearest: None });
    seen.machine.as_mut().expect("seen").systemd = false;
    assert_eq!(refusal(&seen), PlacementError::NoSystemd);
    seen.machine = None;
    assert_eq!(refusal(&seen), PlacementError::Unseen);
}

/// A machine of any shape: some nodes without CPUs, some CPUs offline, interrupts anywhere.
fn machines() -> impl Strategy<Value = Machine> {
    let shape = (proptest::collection::vec(0_u32..6, 1..5), 1_u32..=4);
    let rest = (proptest::collection::vec(any::<Index>(), 0..4), proptest::collection::vec(any::<bool>(), 6));
    (shape, rest).prop_map(|((cores, threads), (offline, fixed))| {
        let mut machine = machine(&cores, threads);
        let count = machine.cpus.len();
        for index in offline.iter().filter(|_| count > 0) {
            let cpu = &mut machine.cpus[index.index(count)];
            (cpu.online, cpu.threads) = (false, Cpus::default());
        }
        let online = machine.online();
        for (irq, fixed) in machine.irqs.iter_mut().zip(fixed) {
            irq.fixed = fixed.then(|| "managed".to_owned());
            irq.cpus = irq.cpus.intersection(&online);
        }
        machine
    })
}

fn requests() -> impl Strategy<Value = PlacementRequest> {
    let service = (0_u32..5, proptest::option::of(1_u32..4), 0_usize..3);
    let services = proptest::collection::vec(service, 0..4);
    (services, proptest::option::of(0_u32..3), any::<bool>()).prop_map(|(services, kept, own)| {
        let devices = [vec![], vec!["eth0".to_owned()], vec!["nvme0n1".to_owned()]];
        let services =
            services.into_iter().zip(units()).map(|((node, cores, device), unit)| ServiceRequest {
                devices: devices[device].clone(),
                memory: MemoryPolicy::Any,
                ..on_node(&unit, node, cores)
            });
        let interrupts = if own { Interrupts::Service } else { Interrupts::Housekeeping };
        PlacementRequest { housekeeping_cores: kept, interrupts, ..request(services.collect()) }
    })
}

proptest! {
    #[test]
    fn sets_are_whole_and_disjoint(machine in machines(), request in requests()) {
        let Ok(placed) = solve(&machine, &request) else { return Ok(()) };
        let online = machine.online();
        let mut sets = vec![&placed.housekeeping];
        sets.extend(placed.services.iter().map(|service| &service.cpus));
        for cpu in online.iter() {
            prop_assert_eq!(sets.iter().filter(|set| set.contains(cpu)).count(), 1, "CPU {}", cpu);
            let siblings = machine.cpu(cpu).expect("online").threads.intersection(&online);
            let home = sets.iter().find(|set| set.contains(cpu)).expect("one");
            prop_assert!(siblings.is_within(home), "CPU {} is split from {}", cpu, siblings);
        }
        prop_assert_eq!(sets.iter().map(|set| set.count()).sum::<usize>(), online.count());
        prop_assert!(placed.housekeeping.contains(online.first().expect("some")));
        for (asked, got) in request.service.iter().zip(&placed.services) {
            prop_assert!(!got.cpus.is_empty());
            prop_assert_eq!(Some(&got.nodes[..]), asked.node.as_ref().map(std::slice::from_ref));
            prop_assert_eq!(&nodes_of(&machine, &got.cpus), &got.nodes);
        }
    }

    #[test]
    fn interrupts_are_in_housekeeping_or_with_their_service(machine in machines(), request in requests()) {
        let Ok(placed) = solve(&machine, &request) else { return Ok(()) };
        for irq in &placed.interrupts {
            let seen = machine.irqs.iter().find(|seen| seen.id == irq.id).expect("of the machine");
            if irq.left.is_some() {
                prop_assert_eq!(&irq.cpus, &seen.cpus, "left alone");
                continue;
            }
            prop_assert!(!irq.cpus.is_empty() && seen.fixed.is_none());
            let devices = [("eth0", "eth0-"), ("nvme0n1", "nvme0q")];
            let device = devices.iter().find(|(_, user)| irq.users[0].starts_with(user)).map(|(name, _)| *name);
            let owner = request.service.iter().position(|service| {
                device.is_some_and(|device| service.devices.iter().any(|own| own == device))
            });
            match owner.filter(|_| request.interrupts == Interrupts::Service) {
                Some(owner) => prop_assert!(irq.cpus.is_within(&placed.services[owner].cpus)),
                None => prop_assert!(irq.cpus.is_within(&placed.housekeeping)),
            }
        }
        prop_assert_eq!(placed.interrupts.len(), machine.irqs.len());
    }

    /// Whatever has a core to spare on each node is never refused.
    #[test]
    fn what_fits_is_placed(cores in proptest::collection::vec(2_u32..6, 1..4), threads in 1_u32..=4) {
        let machine = machine(&cores, threads);
        prop_assume!(machine.cpus.len() > 2);
        let services = (0..).zip(&cores).zip(units()).map(|((node, _), unit)| on_node(&unit, node, None));
        let placed = solve(&machine, &request(services.collect())).expect("a core keeps house on each node");
        prop_assert_eq!(placed.services.len(), cores.len().min(units().len()));
    }
}

/// As many CPUs as Linux can be built for (`NR_CPUS_RANGE_END` of arch/x86/Kconfig). Where each core was held against
/// all cores before it, a quarter of them took a minute.
#[test]
fn a_machine_of_8192_cpus_is_placed_at_once() {
    let machine = machine(&[2048, 2048], 2);
    let devices = vec!["eth0".to_owned()];
    let service = ServiceRequest { isolate: true, devices, ..on_node("db.service", 1, None) };
    let request = request(vec![service]);
    let begun = std::time::Instant::now();
    let placement = solve(&machine, &request).expect("there is room");
    let took = begun.elapsed();
    assert_eq!(placement.housekeeping.count(), 4096 + 2);
    assert_eq!(placement.services[0].cpus.to_string(), "2049-4095,6145-8191");
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
}
