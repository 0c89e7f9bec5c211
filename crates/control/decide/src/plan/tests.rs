//! What a plan writes, and what it leaves alone.

use planish_model::{Access, Coupling, Nodes, OutcomeKind, Skipped, VerdictKind};
use proptest::prelude::*;

use super::*;
use crate::testing::{catalogue, observation, profile};

fn made(observation: &Observation, want: &[(&str, Want)], options: &Options) -> Plan {
    plan(&catalogue(), observation, &profile(want), &[], options).expect("known knobs")
}

fn plan_of(want: &[(&str, Want)]) -> Plan {
    made(&observation(), want, &Options::default())
}

fn text(value: &str) -> Want {
    Want::Text(value.to_owned())
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.knob.as_str()).collect()
}

fn only_skip(plan: &Plan) -> &Skipped {
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert_eq!(plan.skipped.len(), 1);
    &plan.skipped[0]
}

#[test]
fn pools_come_first_and_derived_values_last() {
    let need = |bytes| Want::Need { need_bytes: bytes, nodes: Nodes::Spread };
    let plan = plan_of(&[
        ("cpu.epp", text("performance")),
        ("cpu.governor", text("performance")),
        ("hugepages.1g", need(1 << 30)),
        ("hugepages.2m", need(4 << 20)),
        ("thp.enabled", text("never")),
        ("vm.min_free_kbytes", Want::From { from: Computation::MinFreeHalfPercent }),
    ]);
    assert_eq!(
        ids(&plan),
        [
            "hugepages.1g",
            "hugepages.2m",
            "hugepages.2m",
            "cpu.epp",
            "cpu.epp",
            "thp.enabled",
            "cpu.governor",
            "cpu.governor",
            "vm.min_free_kbytes",
        ]
    );
}

#[test]
fn an_open_entry_that_the_plan_covers_is_named() {
    let place = "/proc/sys/vm/swappiness";
    let mut entry = crate::testing::entry_holding("throughput", place, 0);
    entry.steps[0].undo = Undo::Restore;
    let overlays = |want: &[(&str, Want)], entry: &Entry| {
        let open = std::slice::from_ref(entry);
        plan(&catalogue(), &observation(), &profile(want), open, &Options::default()).expect("known").overlays
    };
    let want = [("vm.swappiness", Want::Int(1)), ("vm.dirty_ratio", Want::Int(5))];
    let found = overlays(&want, &entry);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].entry, found[0].profile.as_str()), (EntryId(1), "throughput"));
    assert_eq!(found[0].knobs, [KnobId::new("vm.swappiness")]);
    let so = overlays(&[("vm.swappiness", Want::Int(60))], &entry);
    assert_eq!((so[0].knobs.len(), so[0].stays.len()), (0, 0), "it is so already");
    assert_eq!(so[0].shared, [entry.steps[0].knob.clone()], "and goes with the entry");
    assert_eq!((found[0].stays.len(), found[0].shared.len()), (0, 0), "the plan sets all of it");
    let other = overlays(&[("vm.dirty_ratio", Want::Int(5))], &entry);
    assert_eq!(
        (other[0].knobs.as_slice(), other[0].stays.as_slice()),
        (&[][..], &[entry.steps[0].knob.clone()][..])
    );
    assert_eq!(other[0].shared, [], "the plan wants nothing of it");
    let mut more = entry.clone();
    let other_place =
        crate::testing::entry_holding("throughput", "/proc/sys/vm/stat_interval", 0).steps.remove(0);
    more.steps.push(EntryStep {
        knob: KnobId::new("vm.stat_interval"),
        place: "/proc/sys/vm/stat_interval".to_owned(),
        undo: Undo::Restore,
        ..other_place
    });
    let shared = overlays(&[("vm.swappiness", Want::Int(60)), ("vm.dirty_ratio", Want::Int(5))], &more);
    assert_eq!(
        (shared[0].stays.as_slice(), shared[0].shared.as_slice()),
        (&[KnobId::new("vm.stat_interval")][..], &[entry.steps[0].knob.clone()][..]),
        "an undo takes what the plan found so already"
    );
    let again = Entry { profile: profile(&[]).name, ..entry.clone() };
    assert!(
        overlays(&[("vm.dirty_ratio", Want::Int(5))], &again).is_empty(),
        "the same profile again leaves nothing"
    );
    let elsewhere = Entry { boot_id: "another".to_owned(), ..entry };
    assert!(overlays(&want, &elsewhere).is_empty(), "it went with its boot");
}

#[test]
fn interrupts_are_not_moved_without_the_service_that_they_belong_to() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = observation();
    let reading = |irq: u32| crate::testing::reading(&format!("/proc/irq/{irq}/smp_affinity_list"), "0-1");
    observation.knobs.insert(KnobId::new("irq.affinity"), vec![reading(41), reading(53)]);
    let profile = profile(&[("irq.affinity", text("0"))]);
    let made = |options: &Options| plan(&catalogue, &observation, &profile, &[], options);
    let allowed = Options { allow_classes: vec![Class::Availability], ..Options::default() };
    // Nobody is sent to allow what is refused then.
    for options in [&allowed, &Options::default()] {
        let error = made(options).expect_err("half a plan");
        assert!(matches!(&error, DecideError::Placement(PlacementError::Unpinned { .. })), "{error:?}");
        assert!(error.cure().contains("[placement]"), "{}", error.cure());
    }
    assert!(
        made(&Options { exclude: vec!["irq.affinity".to_owned()], ..allowed })
            .expect("left")
            .steps
            .is_empty()
    );
}

#[test]
fn an_interrupt_that_the_kernel_places_is_moot() {
    let catalogue = Catalogue::embedded().expect("sound");
    let knob = catalogue.knob(&KnobId::new("irq.affinity")).expect("a row");
    let mut observation = observation();
    let irq = |id: u32, fixed: Option<&str>| planish_model::MachineIrq {
        id,
        users: vec!["nvme0q1".to_owned()],
        cpus: planish_model::Cpus::default(),
        node: None,
        fixed: fixed.map(str::to_owned),
    };
    let irqs = vec![irq(41, None), irq(53, Some("the kernel places it by itself (managed)"))];
    observation.machine = Some(planish_model::Machine { irqs, ..planish_model::Machine::default() });
    let fixed = |id: u32| placement::fixed(&observation, knob, &format!("/proc/irq/{id}/smp_affinity_list"));
    assert_eq!(fixed(53), Some("the kernel places it by itself (managed)"));
    assert_eq!((fixed(41), fixed(7)), (None, None));
}

#[test]
fn originals_of_coupled_places_are_in_the_step() {
    let coupled = |want: &[(&str, Want)]| -> Vec<(String, String, Coupling)> {
        let plan = plan_of(want);
        plan.steps[0].coupled.iter().map(|c| (c.place.clone(), c.now.clone(), c.coupling)).collect()
    };
    assert_eq!(
        coupled(&[("vm.dirty_bytes", Want::Int(1 << 20))]),
        [("/proc/sys/vm/dirty_ratio".to_owned(), "20".to_owned(), Coupling::Twin)]
    );
    assert_eq!(
        coupled(&[("thp.enabled", text("always"))]),
        [("/proc/sys/vm/min_free_kbytes".to_owned(), "67584".to_owned(), Coupling::Derived)]
    );
    let epp = "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference".to_owned();
    assert_eq!(
        coupled(&[("cpu.governor", text("performance"))]),
        [(epp, "balance_power".to_owned(), Coupling::Alias)],
        "only the same CPU's"
    );
    assert!(coupled(&[("hugepages.2m", Want::Need { need_bytes: 1, nodes: Nodes::Spread })]).is_empty());
}

#[test]
fn a_value_that_is_right_already_is_satisfied_in_normal_form() {
    let plan = plan_of(&[("thp.enabled", text("madvise"))]);
    let skipped = only_skip(&plan);
    assert!(skipped.satisfied);
    assert_eq!(skipped.verdict.verdict, VerdictKind::Settable);
}

fn only(value: &str, only: &str) -> Want {
    let (value, only) = (value.to_owned(), Some(only.to_owned()));
    Want::Case(Box::new(Case { value, only, needs: Conditions::default() }))
}

fn on(kernel_min: &str, value: &str) -> Case {
    let needs = Conditions { kernel_min: Some(kernel_min.to_owned()), ..Conditions::default() };
    Case { value: value.to_owned(), only: None, needs }
}

#[test]
fn what_only_a_boot_brings_names_the_parameter() {
    let want = |id: &str, value: &str| {
        let catalogue = Catalogue::embedded().expect("sound");
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        boot::cure(knob, value)
    };
    let with = |argument: &str| Some(format!("boot with `{argument}` on the kernel command line"));
    assert_eq!(want("boot.isolcpus", "domain,managed_irq,2-7"), with("isolcpus=domain,managed_irq,2-7"));
    assert_eq!(want("boot.hugepages.1g", "16"), with("hugepagesz=1G hugepages=16"));
    assert_eq!(want("boot.nosmt", "1"), with("nosmt"));
    assert_eq!(want("nvme.poll_queues", "4"), with("nvme.poll_queues=4"));
    assert_eq!(want("boot.nosmt", "0").as_deref(), Some("boot without `nosmt` on the kernel command line"));
}

#[test]
fn of_several_cases_the_first_that_holds_counts() {
    let plan = plan_of(&[("thp.enabled", Want::Cases(vec![on("6.13", "always"), on("5.0", "never")]))]);
    assert_eq!(plan.steps[0].wanted, "never", "the test host runs 6.12");
    let plan = plan_of(&[("thp.enabled", Want::Cases(vec![on("6.13", "always"), on("7.0", "never")]))]);
    assert_eq!(
        only_skip(&plan).verdict.reason,
        "advice since Linux 6.13, this is 6.12.1-test; since Linux 7.0, this is 6.12.1-test"
    );
}

#[test]
fn a_case_for_some_places_leaves_the_others_to_the_next() {
    let Want::Case(first) = only("none", "nvme*") else { unreachable!("made so") };
    let cases =
        vec![*first, Case { value: "mq-deadline".to_owned(), only: None, needs: Conditions::default() }];
    let plan = plan_of(&[("block.scheduler", Want::Cases(cases))]);
    let wanted = plan.steps.iter().map(|step| (step.place.as_str(), step.wanted.as_str()));
    let skipped =
        plan.skipped.iter().map(|skipped| (skipped.place.as_str(), skipped.wanted.as_deref().unwrap_or("")));
    let all: Vec<_> = wanted.chain(skipped).collect();
    assert!(all.contains(&("/sys/block/sda/queue/scheduler", "mq-deadline")), "{all:?}");
    assert!(all.contains(&("/sys/block/nvme0n1/queue/scheduler", "none")), "{all:?}");
}

#[test]
fn only_the_places_that_are_meant_are_written() {
    let want = only("mq-deadline", "nvme*");
    let plan = plan_of(&[("block.scheduler", want)]);
    let places: Vec<_> = plan.steps.iter().map(|step| step.place.as_str()).collect();
    assert_eq!(places, ["/sys/block/nvme0n1/queue/scheduler"]);
    let want = only("none", "vd*");
    let plan = plan_of(&[("block.scheduler", want)]);
    assert_eq!(only_skip(&plan).verdict.reason, "no place of it matches `vd*`: this host has nvme0n1, sda");
}

#[test]
fn a_word_that_the_host_does_not_offer_is_skipped_and_not_tried() {
    let want = only("bfq", "sda");
    let plan = plan_of(&[("block.scheduler", want)]);
    let verdict = &only_skip(&plan).verdict;
    assert_eq!(verdict.verdict, VerdictKind::Absent);
    assert_eq!(verdict.reason, "`bfq` is not offered here: none, mq-deadline");
}

#[test]
fn what_cannot_be_here_is_skipped_with_its_verdict() {
    let mut host = observation();
    host.knobs.get_mut(&KnobId::new("vm.swappiness")).expect("is there")[0].access =
        Access::ReadOnly("/proc/sys is mounted read-only".to_owned());
    let plan = made(&host, &[("vm.swappiness", Want::Int(10))], &Options::default());
    let skipped = only_skip(&plan);
    assert_eq!(skipped.verdict.verdict, VerdictKind::Blocked);
    assert!(!skipped.satisfied);
}

#[test]
fn classes_are_allowed_by_the_user_alone() {
    let step = |class: Class, options: &Options| {
        let mut catalogue = Catalogue::default();
        let rows = format!(
            "[[knob]]\nid = \"vm.swappiness\"\npath = \"/proc/sys/vm/swappiness\"\ntype = {{ text = true }}\n\
             class = \"{}\"\nwhy = \"w\"\ncost = \"c\"\nsource = \"s\"\nproof = \"p\"\n",
            format!("{class:?}").to_lowercase()
        );
        catalogue.add_knobs("test.toml", &rows).expect("a good row");
        let profile = profile(&[("vm.swappiness", Want::Int(1))]);
        !plan(&catalogue, &observation(), &profile, &[], options).expect("known").steps.is_empty()
    };
    let by_class =
        Options { allow_classes: vec![Class::Availability, Class::Security], ..Options::default() };
    let by_name = Options { allow_knobs: vec![KnobId::new("vm.swappiness")], ..Options::default() };
    for (class, plain, with_class, with_name) in [
        (Class::Safe, true, true, true),
        (Class::Availability, false, true, true),
        (Class::Durability, false, false, true),
        (Class::Security, false, false, true),
        (Class::Oneway, false, false, false),
        (Class::Action, false, false, false),
    ] {
        assert_eq!(step(class, &Options::default()), plain, "{class:?}");
        assert_eq!(step(class, &by_class), with_class, "{class:?} by class");
        assert_eq!(step(class, &by_name), with_name, "{class:?} by name");
    }
}

#[test]
fn a_pool_that_would_starve_the_host_is_refused_on_all_nodes() {
    let plan = plan_of(&[("hugepages.2m", Want::Need { need_bytes: 11 << 30, nodes: Nodes::Spread })]);
    assert!(plan.steps.is_empty());
    assert_eq!(plan.skipped.len(), 2);
    for skipped in &plan.skipped {
        assert_eq!(skipped.verdict.verdict, VerdictKind::Blocked);
        assert!(skipped.verdict.reason.contains("the host keeps 1.6 GiB"), "{}", skipped.verdict.reason);
    }
}

#[test]
fn a_service_pool_waits_for_its_service_and_follows_its_rows() {
    let want = [("hugepages.2m", Want::From { from: Computation::ServicePool })];
    let plan = plan_of(&want);
    assert!(only_skip(&plan).verdict.reason.contains("--service"));
    let request = crate::SizeRequest {
        private_bytes: 0,
        subject: "engine (pid 9)".to_owned(),
        service: Some("engine".to_owned()),
        regions: vec![crate::Region {
            name: "segment".to_owned(),
            count: 1,
            bytes: 10 << 21,
            pool_page_bytes: None,
        }],
        headroom_percent: 20,
    };
    let sizing = Some(crate::size(&observation(), &request));
    let plan = made(&observation(), &want, &Options { sizing, ..Options::default() });
    let raised: Vec<_> = plan.steps.iter().map(|step| (step.raise_pages, step.wanted.as_str())).collect();
    assert_eq!(raised, [(Some(6), "6"), (Some(6), "14")]);
    let because = plan.steps[0].because.as_deref().expect("arithmetic");
    assert_eq!(because, "engine (pid 9) maps 20 MiB; with 20 % headroom 12 pages of 2 MiB");
}

#[test]
fn a_service_that_runs_on_a_pool_already_is_not_given_a_second_one() {
    let want = [("hugepages.2m", Want::From { from: Computation::ServicePool })];
    let region = crate::Region {
        name: "segment".to_owned(),
        count: 1,
        bytes: 10 << 21,
        pool_page_bytes: Some(2 << 20),
    };
    let request = |headroom_percent| crate::SizeRequest {
        private_bytes: 0,
        subject: "engine (pid 9)".to_owned(),
        service: Some("engine".to_owned()),
        regions: vec![region.clone()],
        headroom_percent,
    };
    let planned = |headroom| {
        let sizing = Some(crate::size(&observation(), &request(headroom)));
        made(&observation(), &want, &Options { sizing, ..Options::default() })
    };
    assert!(planned(0).steps.is_empty());
    assert!(planned(0).skipped.iter().all(|skipped| skipped.satisfied));
    let raised: Vec<_> = planned(20).steps.iter().map(|step| step.raise_pages).collect();
    assert_eq!(raised, [Some(1), Some(1)], "the headroom is missing");
}

#[test]
fn a_value_that_the_host_made_something_else_of_is_not_written_again() {
    let place = "/proc/sys/vm/swappiness";
    let mut entry = crate::testing::entry_holding("series", place, 0);
    let step = &mut entry.steps[0];
    (step.knob, step.wanted, step.undo) = (KnobId::new("vm.swappiness"), "10".to_owned(), Undo::Restore);
    let outcome = step.outcome.as_mut().expect("it ran");
    (outcome.outcome, outcome.read_back) = (OutcomeKind::ReadsBack, Some("60".to_owned()));
    let planned = |want, entry: &Entry| {
        let profile = profile(&[("vm.swappiness", Want::Int(want))]);
        let open = [entry.clone()];
        plan(&catalogue(), &observation(), &profile, &open, &Options::default()).expect("known knobs")
    };
    let plan = planned(10, &entry);
    let left = only_skip(&plan);
    assert_eq!(left.verdict.reason, "entry 1 wrote it, and this host made `60` of it");
    assert!(left.hindered, "it is not what was wanted");
    assert_eq!(planned(20, &entry).steps.len(), 1, "another value may be tried");
    entry.boot_id = "another boot".to_owned();
    assert_eq!(planned(10, &entry).steps.len(), 1, "another boot may answer otherwise");
}

#[test]
fn min_free_is_half_a_percent_and_never_less_than_now() {
    let want = [("vm.min_free_kbytes", Want::From { from: Computation::MinFreeHalfPercent })];
    assert_eq!(plan_of(&want).steps[0].wanted, "83886");
    let mut host = observation();
    host.knobs.get_mut(&KnobId::new("vm.min_free_kbytes")).expect("is there")[0].value =
        Some("999999".to_owned());
    assert!(only_skip(&made(&host, &want, &Options::default())).satisfied);
}

#[test]
fn an_allowed_knob_that_does_not_exist_is_an_error_with_the_nearest_name() {
    let options = Options { allow_knobs: vec![KnobId::new("vm.swapiness")], ..Options::default() };
    let error = plan(&catalogue(), &observation(), &profile(&[]), &[], &options).expect_err("no such knob");
    let DecideError::Catalogue(source) = error else { panic!("{error:?}") };
    assert!(source.to_string().ends_with("did you mean `vm.swappiness`?"), "{source}");
}

/// What the kernel does with the steps of a plan: a small model of the couplings.
fn carry_out(plan: &Plan, host: &mut Observation) {
    for step in &plan.steps {
        let readings = host.knobs.get_mut(&step.knob).expect("a step's knob was seen");
        let reading = readings.iter_mut().find(|reading| reading.place == step.place).expect("seen");
        assert_eq!(reading.value.as_deref(), Some(step.now.as_str()), "the plan starts from what was seen");
        reading.value = Some(step.wanted.clone());
        for coupled in step.coupled.iter().filter(|coupled| coupled.coupling == Coupling::Twin) {
            let readings = host.knobs.get_mut(&coupled.knob).expect("seen");
            readings.iter_mut().for_each(|reading| reading.value = Some("0".to_owned()));
        }
    }
}

fn wants() -> impl Strategy<Value = Vec<(&'static str, Want)>> {
    let words = proptest::sample::select(vec!["always", "madvise", "never"]);
    let twin = proptest::sample::select(vec![
        ("vm.dirty_bytes", Want::Int(1 << 20)),
        ("vm.dirty_ratio", Want::Int(15)),
        ("vm.dirty_ratio", Want::Int(20)),
    ]);
    (words, twin, 0_i64..200, proptest::bool::ANY).prop_map(|(word, twin, swappiness, governor)| {
        let mut want = vec![("thp.enabled", text(word)), twin, ("vm.swappiness", Want::Int(swappiness))];
        if governor {
            want.push(("cpu.governor", text("performance")));
        }
        want
    })
}

proptest! {
    #[test]
    fn a_plan_that_was_carried_out_leaves_nothing_to_plan(want in wants()) {
        let mut host = observation();
        let first = made(&host, &want, &Options::default());
        carry_out(&first, &mut host);
        let second = made(&host, &want, &Options::default());
        prop_assert!(second.steps.is_empty(), "{:?}", second.steps);
        prop_assert!(second.skipped.iter().all(|skipped| skipped.satisfied));
    }

    #[test]
    fn pools_that_were_granted_are_not_planned_again(need in 1_u64..8 << 30) {
        let want = [("hugepages.2m", Want::Need { need_bytes: need, nodes: Nodes::Spread })];
        let mut host = observation();
        let first = made(&host, &want, &Options::default());
        let open: Vec<_> = first
            .steps
            .iter()
            .map(|step| crate::testing::entry_holding("series", &step.place, step.raise_pages.unwrap_or(0)))
            .collect();
        for step in &first.steps {
            let pool = host.pools.iter_mut().find(|pool| pool.place == step.place).expect("seen");
            pool.pages += step.raise_pages.unwrap_or(0);
        }
        let second = plan(&catalogue(), &host, &profile(&want), &open, &Options::default()).expect("known");
        prop_assert!(second.steps.is_empty(), "{:?}", second.steps);
    }
}
