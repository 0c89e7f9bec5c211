//! One host with every writer that matters, and what is said to its plans.

use planish_model::{Want, WriterArguments};

use super::*;
use crate::testing::{catalogue, observation, profile};
use crate::{Options, plan};

const SWAP: &str = "/proc/sys/vm/swappiness";

const ROWS: &str = r#"
[[writer]]
id = "tuned"
programs = ["tuned"]
writes = ["vm.*", "cpu.*"]
why = "it writes them again"
hand_over = ["tuned-adm off"]
exclude = ["include={profile} drop={sysctls}"]
source = "s"
[[writer]]
id = "sysctl.d"
lines_of = ["/etc/sysctl.d/", "/usr/lib/sysctl.d/", "/etc/sysctl.conf"]
writes = ["*"]
why = "a boot writes them"
hand_over = ["take out {lines}"]
source = "s"
"#;

fn rows() -> Catalogue {
    let mut catalogue = catalogue();
    catalogue.add_writers("test.toml", ROWS).expect("good rows");
    catalogue.check().expect("sound");
    catalogue
}

fn tuned(knobs: Option<&[&str]>) -> SeenWriter {
    SeenWriter {
        id: "tuned".to_owned(),
        running: true,
        evidence: vec!["process 7 is tuned".to_owned()],
        knobs: knobs.map(|knobs| knobs.iter().map(|id| KnobId::new(*id)).collect()),
        profile: Some("base".to_owned()),
        arguments: None,
        commands: std::collections::BTreeMap::new(),
        sources: std::collections::BTreeMap::new(),
        maybe: std::collections::BTreeMap::new(),
        again: planish_model::Again::default(),
    }
}

fn wanted() -> planish_model::Profile {
    profile(&[("vm.swappiness", Want::Int(10)), ("thp.enabled", Want::Text("never".to_owned()))])
}

fn planned(observation: &Observation, exclude: &[&str]) -> Plan {
    let exclude = exclude.iter().map(|name| (*name).to_owned()).collect();
    plan(&rows(), observation, &wanted(), &[], &Options { exclude, ..Options::default() })
        .expect("known names")
}

#[test]
fn a_plan_names_who_writes_its_places_too() {
    let mut observation = observation();
    observation.writers = vec![tuned(None)];
    let plan = planned(&observation, &[]);
    let [writer] = plan.second_writers.as_slice() else { panic!("{:?}", plan.second_writers) };
    assert_eq!((writer.id.as_str(), writer.running), ("tuned", true));
    assert_eq!(writer.places, [SWAP], "and thp.enabled is none of its knobs");
    assert_eq!(writer.hand_over, ["tuned-adm off"]);
    assert_eq!(writer.exclude, ["include=base drop=vm.swappiness"]);
    assert_eq!(writer.leave, "planish plan series --exclude tuned");
    observation.writers = vec![tuned(Some(&["cpu.governor"]))];
    assert!(planned(&observation, &[]).second_writers.is_empty(), "its profile does not touch them");
}

#[test]
fn who_starts_a_second_writer_does_not_change_the_hash() {
    let alone = observation();
    let mut beside = observation();
    beside.writers = vec![tuned(None)];
    let (alone, beside) = (planned(&alone, &[]), planned(&beside, &[]));
    assert_eq!(alone.hash, beside.hash);
    assert!(beside.is_intact());
}

#[test]
fn whoever_writes_a_twin_writes_ours() {
    let catalogue = rows();
    let seen = tuned(Some(&["vm.dirty_ratio"]));
    assert!(catalogue.writes(&seen, &KnobId::new("vm.dirty_bytes"), Some("/proc/sys/vm/dirty_bytes")));
    assert!(!catalogue.writes(&seen, &KnobId::new("vm.swappiness"), None));
}

#[test]
fn places_are_left_to_a_writer_or_out_by_name() {
    let mut observation = observation();
    observation.writers = vec![tuned(None)];
    let plan = planned(&observation, &["tuned"]);
    assert!(plan.second_writers.is_empty() && plan.steps.iter().all(|step| step.place != SWAP));
    let left = plan.skipped.iter().find(|skipped| skipped.place == SWAP).expect("it is told");
    assert_eq!((left.verdict.reason.as_str(), left.satisfied), ("left to tuned: --exclude tuned", false));
    let plan = planned(&observation, &["thp.enabled"]);
    assert!(plan.steps.iter().all(|step| step.knob.as_str() != "thp.enabled"));
    let options = Options { exclude: vec!["tunde".to_owned()], ..Options::default() };
    let error = plan_error(&observation, &options);
    assert!(error.contains("did you mean `tuned`?"), "{error}");
}

fn plan_error(observation: &Observation, options: &Options) -> String {
    let error = plan(&rows(), observation, &wanted(), &[], options).expect_err("no such name");
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

#[test]
fn a_pool_that_is_left_out_takes_no_memory_from_others() {
    let want = || Want::Need { need_bytes: 6 << 30, nodes: planish_model::Nodes::Spread };
    let profile = profile(&[("hugepages.2m", want())]);
    let observation = observation();
    let options = Options { exclude: vec!["hugepages.2m".to_owned()], ..Options::default() };
    let plan = plan(&rows(), &observation, &profile, &[], &options).expect("known names");
    assert!(plan.steps.is_empty());
    let told =
        plan.skipped.iter().all(|skipped| skipped.verdict.reason == "left out: --exclude hugepages.2m");
    assert!(told && !plan.skipped.is_empty(), "{:?}", plan.skipped);
}

#[test]
fn a_line_that_a_boot_applies_is_a_second_writer_where_it_says_something_else() {
    let mut observation = observation();
    let line = |value: &str, source: &str| Persisted {
        value: value.to_owned(),
        source: source.to_owned(),
        at_boot: None,
        overridden: Vec::new(),
    };
    observation.persisted.insert(SWAP.to_owned(), line("60", "/etc/sysctl.d/99-local.conf:3"));
    let plan = planned(&observation, &[]);
    let [writer] = plan.second_writers.as_slice() else { panic!("{:?}", plan.second_writers) };
    assert_eq!(writer.evidence, ["/etc/sysctl.d/99-local.conf:3 sets vm.swappiness to 60"]);
    assert_eq!(writer.hand_over, ["take out /etc/sysctl.d/99-local.conf:3"]);
    assert!(!writer.running);
    assert!(planned(&observation, &["sysctl.d"]).steps.iter().all(|step| step.place != SWAP));
    for same in [line("10", "/etc/sysctl.d/99-local.conf:3"), line("60", "/etc/sysctl.d/90-planish.conf:3")] {
        observation.persisted.insert(SWAP.to_owned(), same);
        assert!(planned(&observation, &[]).second_writers.is_empty());
    }
}

/// The cure must never be to edit a file that loses anyway, nor one that its package writes anew.
#[test]
fn with_files_of_its_own_a_plan_names_only_lines_that_come_behind_them() {
    let mut observation = observation();
    let told = |source: &str, place: &str, observation: &mut Observation, persist: bool| {
        observation.persisted.clear();
        let (at_boot, overridden) = (None, Vec::new());
        let line = Persisted { value: "never".to_owned(), source: source.to_owned(), at_boot, overridden };
        observation.persisted.insert(place.to_owned(), line);
        let options = Options { persist, ..Options::default() };
        let plan = plan(&rows(), observation, &wanted(), &[], &options).expect("known knobs");
        plan.second_writers.into_iter().flat_map(|writer| writer.hand_over).collect::<Vec<_>>()
    };
    let vendor = "/usr/lib/sysctl.d/50-default.conf:2";
    let copied = format!(
        "take out {vendor} (in a copy of the file that counts instead: /etc/sysctl.d/50-default.conf)"
    );
    for (source, persist, cures) in [
        (vendor, false, vec![copied.as_str()]),
        (vendor, true, vec![]),
        ("/etc/sysctl.d/99-local.conf:2", false, vec!["take out /etc/sysctl.d/99-local.conf:2"]),
        ("/etc/sysctl.d/99-local.conf:2", true, vec!["take out /etc/sysctl.d/99-local.conf:2"]),
        ("/etc/sysctl.d/90-planisg.conf:2", true, vec![]),
        // Read by no rule of names, after all others.
        ("/etc/sysctl.conf:2", true, vec!["take out /etc/sysctl.conf:2"]),
    ] {
        assert_eq!(told(source, SWAP, &mut observation, persist), cures, "{source} {persist}");
    }
    // Whoever writes the files of /etc again writes none of packages: ours is the last word.
    let behind = "/usr/lib/sysctl.d/95-vendor.conf:2";
    assert!(!is_outranked(&observation, SWAP, &line(behind)));
    let again = planish_model::Again { is_sure: true, ..planish_model::Again::default() };
    observation.writers = vec![SeenWriter { again, ..tuned(Some(&[])) }];
    assert!(is_outranked(&observation, SWAP, &line(behind)));
    assert!(!is_outranked(&observation, SWAP, &line("/etc/sysctl.d/95-own.conf:2")));
    observation.writers.clear();
    assert!(
        is_outranked(&observation, "/sys/x", &line("/etc/tmpfiles.d/99-x.conf:1")),
        "there the first one counts"
    );
    assert!(!is_outranked(&observation, "/sys/x", &line("/etc/tmpfiles.d/10-x.conf:1")));
    assert!(
        !is_outranked(&observation, SWAP, &line("/etc/tmpfiles.d/99-x.conf:1")),
        "two programs, in no order"
    );
    assert!(!is_outranked(&observation, "/sys/x", &line("/usr/lib/udev/rules.d/60-x.rules:1")));
    let rule = to_take_out("/usr/lib/udev/rules.d/60-x.rules:1");
    assert!(rule.ends_with("instead: /etc/udev/rules.d/60-x.rules)"), "{rule}");
}

fn line(source: &str) -> Persisted {
    Persisted { value: "60".to_owned(), source: source.to_owned(), at_boot: None, overridden: Vec::new() }
}

#[test]
fn a_finding_names_the_program_its_evidence_and_both_cures() {
    let mut observation = observation();
    observation.writers = vec![tuned(Some(&["vm.swappiness"]))];
    let found = findings(&rows(), &observation);
    assert_eq!(found[0].id, "writer.tuned");
    assert_eq!(found[0].evidence, "tuned is at work and sets vm.swappiness: process 7 is tuned");
    assert!(
        found[0].cure.contains("tuned-adm off") && found[0].cure.ends_with("--exclude tuned"),
        "{}",
        found[0].cure
    );
}

#[test]
fn irqbalance_is_told_the_very_line() {
    let catalogue = Catalogue::embedded().expect("sound");
    let place = |irq: u32| format!("/proc/irq/{irq}/smp_affinity_list");
    let mut observation = Observation::default();
    observation.host.cpus_online = 8;
    let readings = [24, 25].map(|irq| crate::testing::reading(&place(irq), "0-7")).to_vec();
    observation.knobs.insert(KnobId::new("irq.affinity"), readings);
    let default = crate::testing::reading("/proc/irq/default_smp_affinity", "ff");
    observation.knobs.insert(KnobId::new("irq.default_affinity"), vec![default]);
    let arguments = WriterArguments {
        file: "/etc/default/irqbalance".to_owned(),
        variable: "IRQBALANCE_ARGS".to_owned(),
        value: "--deepestcache=2".to_owned(),
    };
    observation.writers =
        vec![SeenWriter { id: "irqbalance".to_owned(), arguments: Some(arguments), ..tuned(None) }];
    let want = [("irq.default_affinity", Want::Text("3".to_owned()))];
    let options = Options { allow_classes: vec![Class::Availability], ..Options::default() };
    // Interrupts are moved by a placement alone: their steps are made by hand here.
    let mut plan = plan(&catalogue, &observation, &profile(&want), &[], &options).expect("known knobs");
    let by_hand = |irq: u32| Step {
        knob: KnobId::new("irq.affinity"),
        place: place(irq),
        wanted: "0-1".to_owned(),
        ..plan.steps[0].clone()
    };
    plan.steps = [24, 25].map(by_hand).into_iter().chain(plan.steps.clone()).collect();
    plan.second_writers = second_writers(&catalogue, &observation, &plan, None);
    let [writer] = plan.second_writers.as_slice() else { panic!("{:?}", plan.second_writers) };
    let line =
        "in /etc/default/irqbalance: IRQBALANCE_ARGS=\"--deepestcache=2 --banirq=24 --banirq=25\"; then: ";
    assert!(writer.exclude[0].starts_with(line), "{:?}", writer.exclude);
    assert!(writer.exclude[1].contains(": IRQBALANCE_BANNED_CPULIST=2-7 "), "{:?}", writer.exclude);
}

#[test]
fn a_text_with_an_unfilled_hole_is_not_said() {
    let holes = Holes(vec![("file", "/etc/x".to_owned()), ("value", String::new())]);
    assert_eq!(holes.fill("in {file}: A=\"{value} b\"").as_deref(), Some("in /etc/x: A=\"b\""));
    assert_eq!(holes.fill("in {file}: {irqs}"), None);
    assert_eq!(holes.fill("odd {"), None);
}

/// After --persist our own lines lie in the folders of that writer: a place is left to it where others have one.
#[test]
fn a_line_of_ours_leaves_no_place_to_its_folder() {
    let line = |source: &str, overridden: &[&str]| Persisted {
        value: "60".to_owned(),
        source: source.to_owned(),
        at_boot: None,
        overridden: overridden.iter().map(|source| planish_model::BootValue::new("60", *source)).collect(),
    };
    for (line, is_left) in [
        (line("/etc/sysctl.d/90-planish.conf:2", &[]), false),
        (line("/etc/sysctl.d/90-planish.conf:2", &["/etc/sysctl.d/10-local.conf:1"]), true),
        (line("/etc/sysctl.d/90-planish.conf:2", &["kernel command line: sysctl.vm.swappiness=60"]), false),
        (line("/etc/sysctl.d/99-local.conf:1", &["/etc/sysctl.d/90-planish.conf:2"]), true),
    ] {
        let mut observation = observation();
        let told = line.source.clone();
        observation.persisted.insert(SWAP.to_owned(), line);
        let plan = planned(&observation, &["sysctl.d"]);
        assert_eq!(plan.steps.iter().all(|step| step.place != SWAP), is_left, "{told}");
    }
}

/// It says so of the file of all nodes, which is no place of the plan, and each `sysctl --system` writes it over.
#[test]
fn a_line_for_the_pools_of_all_nodes_is_a_second_writer_of_each() {
    let total = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let profile =
        profile(&[("hugepages.2m", Want::Need { need_bytes: 6 << 21, nodes: planish_model::Nodes::Spread })]);
    let mut observation = observation();
    let made = |observation: &Observation, exclude: &[&str]| {
        let exclude = exclude.iter().map(|name| (*name).to_owned()).collect();
        plan(&rows(), observation, &profile, &[], &Options { exclude, ..Options::default() }).expect("a plan")
    };
    assert!(made(&observation, &[]).second_writers.is_empty());
    let line = |value: &str, source: &str| Persisted {
        value: value.to_owned(),
        source: source.to_owned(),
        at_boot: None,
        overridden: Vec::new(),
    };
    observation.persisted.insert(total.to_owned(), line("1024", "/etc/sysctl.d/99-huge.conf:1"));
    let told = made(&observation, &[]);
    let [writer] = told.second_writers.as_slice() else { panic!("{:?}", told.second_writers) };
    assert_eq!(writer.evidence, ["/etc/sysctl.d/99-huge.conf:1 sets hugepages.2m to 1024 over all nodes"]);
    assert_eq!((writer.id.as_str(), writer.places.len()), ("sysctl.d", 2));
    assert_eq!(writer.hand_over, ["take out /etc/sysctl.d/99-huge.conf:1"]);
    // A line of ours for one node takes nothing from that.
    let place = writer.places[0].clone();
    observation.persisted.insert(place.clone(), line("345", "/etc/tmpfiles.d/90-planish.conf:3"));
    let beside = second_writers(&rows(), &observation, &told, Some(&[]));
    assert_eq!(beside.len(), 1, "{beside:?}");
    assert!(beside[0].places.contains(&place));
    let left = made(&observation, &["sysctl.d"]);
    assert!(left.steps.is_empty() && left.second_writers.is_empty(), "{:?}", left.steps);
    // Of ours nobody is told.
    observation.persisted.insert(total.to_owned(), line("1024", "/etc/sysctl.d/90-planish.conf:1"));
    assert!(made(&observation, &[]).second_writers.is_empty());
}
