//! Every recorded machine with every profile: what is planned, what is skipped, what is found.
//!
//! Goldens are texts that people can review: `INSTA_UPDATE=always cargo test -p planish-decide --test it`
//! rewrites them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use planish_decide::{DEFAULT_HEADROOM_PERCENT, Options, Region, SizeRequest, findings, plan, size};
use planish_host::Host;
use planish_model::{
    Catalogue, Class, MemoryPolicy, Observation, PlacementRequest, Plan, Profile, ServiceRequest, Skipped,
    Step,
};

/// Recorded machines, by name.
#[expect(clippy::disallowed_methods, reason = "the test lists its own fixtures")]
fn machines() -> Vec<(String, PathBuf)> {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts");
    let mut machines: Vec<_> = std::fs::read_dir(&hosts)
        .expect("the repository has recorded machines")
        .map(|entry| entry.expect("the folder can be listed"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    machines.sort();
    assert!(machines.len() >= 9, "only {} recorded machines", machines.len());
    machines
}

fn observed(folder: &Path, catalogue: &Catalogue) -> Observation {
    planish_observe::observe(&Host::open(folder).expect("a recorded machine"), catalogue)
}

/// A plan for a service that maps one region of 512 MiB.
fn planned(catalogue: &Catalogue, observation: &Observation, profile: &Profile) -> Plan {
    let region = Region { name: "segment".to_owned(), count: 1, bytes: 512 << 20, pool_page_bytes: None };
    let request = SizeRequest {
        private_bytes: 0,
        subject: "engine".to_owned(),
        service: Some("engine".to_owned()),
        regions: vec![region],
        headroom_percent: DEFAULT_HEADROOM_PERCENT,
    };
    let options = Options { sizing: Some(size(observation, &request)), ..Options::default() };
    plan(catalogue, observation, profile, &[], &options).expect("embedded profiles name known knobs")
}

fn profiles(catalogue: &Catalogue) -> Vec<Profile> {
    catalogue
        .profile_names()
        .map(|name| catalogue.profile(name).expect("embedded profiles resolve"))
        .collect()
}

/// One line for places of a knob that fare alike.
fn step_line(steps: &[Step]) -> String {
    let first = &steps[0];
    let mut line = format!("  {:28} {} -> {}", first.knob.to_string(), first.now.trim(), first.wanted);
    match steps.len() {
        1 => write!(line, "  {}", first.place),
        count => write!(line, "  {count} places from {}", first.place),
    }
    .expect("a String takes any text");
    for coupled in &first.coupled {
        let coupling = format!("{:?}", coupled.coupling).to_lowercase();
        write!(line, "  ({coupling} {} {})", coupled.knob, coupled.now).expect("a String takes any text");
    }
    for text in
        first.because.iter().chain((!first.verdict.reason.is_empty()).then_some(&first.verdict.reason))
    {
        write!(line, "  [{text}]").expect("a String takes any text");
    }
    line
}

fn skip_line(skipped: &[Skipped]) -> String {
    let first = &skipped[0];
    let word = if first.satisfied { "satisfied".to_owned() } else { format!("{:?}", first.verdict.verdict) };
    let places = if skipped.len() > 1 { format!(" ({} places)", skipped.len()) } else { String::new() };
    format!("  {:28} {}{places}  {}", first.knob.to_string(), word.to_lowercase(), first.verdict.reason)
}

fn text_of(catalogue: &Catalogue, observation: &Observation) -> String {
    let host = &observation.host;
    let mut text = format!(
        "{} {}, {} CPUs, nodes {:?} (with CPUs {:?}), {} MiB, base page {} B, huge pages {:?}\n\
         guest: {}\ncontainer: {}\n",
        host.kernel,
        host.arch,
        host.cpus_online,
        host.nodes,
        host.cpu_nodes,
        host.memory_bytes >> 20,
        host.page_bytes,
        host.huge_page_bytes,
        host.guest.as_deref().unwrap_or("no"),
        host.container.as_deref().unwrap_or("no"),
    );
    for (place, persisted) in &observation.persisted {
        text += &format!("persisted: {place} = {} ({})\n", persisted.value, persisted.source);
    }
    text += "findings\n";
    for finding in findings(catalogue, observation, None) {
        text += &format!("  {:28} {:?}: {}\n", finding.id, finding.severity, finding.evidence);
    }
    for profile in profiles(catalogue) {
        let plan = planned(catalogue, observation, &profile);
        text += &format!("plan {}\n", profile.name);
        let alike = |a: &Step, b: &Step| (&a.knob, &a.now, &a.wanted) == (&b.knob, &b.now, &b.wanted);
        for steps in plan.steps.chunk_by(alike) {
            text += &(step_line(steps) + "\n");
        }
        text += "  skipped\n";
        let alike = |a: &Skipped, b: &Skipped| {
            (&a.knob, &a.verdict, a.satisfied) == (&b.knob, &b.verdict, b.satisfied)
        };
        for skipped in plan.skipped.chunk_by(alike) {
            text += &(skip_line(skipped) + "\n");
        }
    }
    text
}

#[test]
fn plans_and_findings_of_every_recorded_machine() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (name, folder) in machines() {
        insta::assert_snapshot!(name, text_of(&catalogue, &observed(&folder, &catalogue)));
    }
}

#[test]
fn plans_are_stable_and_intact() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (name, folder) in machines() {
        for profile in profiles(&catalogue) {
            let first = planned(&catalogue, &observed(&folder, &catalogue), &profile);
            let second = planned(&catalogue, &observed(&folder, &catalogue), &profile);
            assert_eq!(first, second, "{name} {}", profile.name);
            assert!(first.is_intact());
        }
    }
}

/// A service on each node that has CPUs, each with all that it can have.
fn one_a_node(observation: &Observation) -> PlacementRequest {
    let service = |node: &u32| ServiceRequest {
        unit: format!("engine@{node}.service"),
        node: Some(*node),
        cores: None,
        cpus: None,
        memory: MemoryPolicy::Bind,
        isolate: *node == 0,
        devices: Vec::new(),
        pools: [(planish_model::KnobId::new("hugepages.2m"), 64 << 20)].into(),
        cache: None,
    };
    let service = observation.host.cpu_nodes.iter().map(service).collect();
    PlacementRequest { service, ..PlacementRequest::default() }
}

/// The sets, the interrupts and the steps of a placement, or why there is none.
fn placed(catalogue: &Catalogue, folder: &Path) -> String {
    let mut observation = observed(folder, catalogue);
    let request = one_a_node(&observation);
    let units: Vec<String> = request.service.iter().map(|service| service.unit.clone()).collect();
    let mut machine = planish_observe::machine(&Host::open(folder).expect("a recorded machine"), &[]);
    // No recording holds the units of services that nobody has installed.
    (machine.units, machine.systemd) = (units, true);
    observation.machine = Some(machine);
    let profile = Profile {
        name: "one-a-node".to_owned(),
        summary: "a test".to_owned(),
        inherits: Vec::new(),
        want: Default::default(),
        placement: Some(request),
        ..Profile::default()
    };
    let options = Options { allow_classes: vec![Class::Availability], ..Options::default() };
    let plan = match plan(catalogue, &observation, &profile, &[], &options) {
        Ok(plan) => plan,
        Err(error) => {
            let reason = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            return format!("{error}: {reason}\n");
        }
    };
    let placement = plan.placement.as_ref().expect("a placement");
    let mut text = format!("  {:28} {}\n", "housekeeping", placement.housekeeping);
    for service in &placement.services {
        text += &format!("  {:28} {} of {:?}\n", service.unit, service.cpus, service.nodes);
    }
    for irq in placement.interrupts.iter().filter(|irq| irq.left.is_some()) {
        let reason = irq.left.as_deref().unwrap_or_default();
        text += &format!("  left alone: {} {}: {reason}\n", irq.id, irq.users.join(", "));
    }
    let alike = |a: &Step, b: &Step| (&a.knob, &a.now, &a.wanted) == (&b.knob, &b.now, &b.wanted);
    for steps in plan.steps.chunk_by(alike).chain(plan.boot.chunk_by(alike)) {
        text += &(step_line(steps) + "\n");
    }
    for skipped in plan.skipped.chunk_by(|a, b| (&a.knob, a.satisfied) == (&b.knob, b.satisfied)) {
        text += &(skip_line(skipped) + "\n");
    }
    text
}

#[test]
fn one_instance_a_node_on_every_recorded_machine() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut text = String::new();
    for (name, folder) in machines() {
        text += &format!("{name}\n{}", placed(&catalogue, &folder));
    }
    insta::assert_snapshot!("placement", text);
}

/// What a plan leaves behind when every write goes through: the pools grew, the values are there.
fn carried_out(observation: &Observation, plan: &Plan) -> Observation {
    let mut after = observation.clone();
    for step in &plan.steps {
        let readings = after.knobs.get_mut(&step.knob).expect("a step's knob was seen");
        let reading = readings.iter_mut().find(|reading| reading.place == step.place);
        reading.expect("a step's place was seen").value = Some(step.wanted.clone());
    }
    after
}

#[test]
fn a_plan_that_was_carried_out_is_clean_and_leaves_only_pools_to_plan() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (name, folder) in machines() {
        let observation = observed(&folder, &catalogue);
        for profile in profiles(&catalogue) {
            let plan = planned(&catalogue, &observation, &profile);
            let after = carried_out(&observation, &plan);
            let drift = planish_verify::verify(&catalogue, Some(&plan), &[], &after);
            // What only a boot brings is still to be done by whoever gives the kernel its command line.
            let at_boot = |row: &&planish_model::KnobCheck| row.place.starts_with("cmdline:");
            let drifted = |row: &&planish_model::KnobCheck| row.state == planish_model::DriftState::Drift;
            // Nor was a pool written that memory cannot give: an apply of that plan is refused.
            // Nor a place that is mounted read-only: it is here and is not as wanted.
            let left = |row: &planish_model::KnobCheck| {
                let mut rows = plan.skipped.iter().filter(|skipped| skipped.place == row.place);
                rows.any(|skipped| skipped.short_of_memory || skipped.hindered)
            };
            let red: Vec<_> =
                drift.knobs.iter().filter(drifted).filter(|row| !at_boot(row) && !left(row)).collect();
            assert!(red.is_empty(), "{name} {}: {red:?}", profile.name);
            // Pools are asked for again until a journal says that they were granted.
            let again = planned(&catalogue, &after, &profile);
            let values: Vec<_> = again.steps.iter().filter(|step| step.raise_pages.is_none()).collect();
            assert!(values.is_empty(), "{name} {}: {values:?}", profile.name);
        }
    }
}
