//! A placement on a writable machine: applied whole, checked, persisted, undone to the byte, killed on the way.

use std::collections::BTreeSet;

use planish_model::{Class, DriftState, Exit, OutcomeKind, Plan, When};
use planish_pipeline::{
    Applied, ApplyOptions, Half, PipelineError, PlanOptions, Session, Source, Target, apply, check, confirm,
    outgoing, plan, undo,
};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

const REALTIME: &str = "/etc/systemd/system/realtime.service.d/zz-planish.conf";
const ANALYTICS: &str = "/etc/systemd/system/analytics.service.d/zz-planish.conf";

/// The example of the essay: what it says is what is tested.
fn example() -> String {
    let essay = include_str!("../../../../../docs/placement.md");
    let (_, rest) = essay.split_once("```toml\n").expect("the essay has an example");
    rest.split_once("```").expect("it ends").0.to_owned()
}

fn source(text: &str) -> Source {
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    Source::Inline(Box::new(catalogue.parse_profile("example.toml", text).expect("a sound profile")))
}

fn options() -> PlanOptions {
    PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() }
}

fn planned(session: &Session, text: &str) -> Plan {
    plan(session, &source(text), &options()).expect("a plan")
}

fn applied(session: &Session, persist: bool) -> Applied {
    let options = ApplyOptions { persist, ..ApplyOptions::default() };
    apply(session, &planned(session, &example()), &options).expect("applied")
}

/// Places that are not as the plan wants.
fn drifted(done: &Applied) -> Vec<&str> {
    let rows = done.drift.knobs.iter().filter(|row| row.state == DriftState::Drift);
    rows.map(|row| row.place.as_str()).collect()
}

/// What is refused, in words.
fn refused(text: &str) -> String {
    let tree = Tree::copy_of("metal-2s");
    let error = plan(&tree.session(), &source(text), &options()).expect_err("refused");
    assert_eq!(error.exit(), Exit::Refused, "{error:?}");
    let PipelineError::Decide(error) = error else { panic!("{error:?}") };
    std::error::Error::source(&error).expect("a reason").to_string()
}

#[test]
fn the_example_comes_and_goes_to_the_byte() {
    for persist in [false, true] {
        let tree = Tree::copy_of("metal-2s");
        let start = tree.snapshot();
        let done = applied(&tree.session(), persist);
        // Without --persist the boot parameters are still to be given by somebody: check tells that.
        let missing = drifted(&done);
        assert!(missing.iter().all(|place| !persist && place.starts_with("cmdline:")), "{missing:?}");
        assert!(
            done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done),
            "{:#?}",
            done.outcomes
        );
        let text = tree.get(REALTIME);
        assert!(
            text.contains("CPUAffinity=\nCPUAffinity = 1,5\n") && text.contains("NUMAMask = 0\n"),
            "{text}"
        );
        assert_eq!(tree.get("/proc/irq/80/smp_affinity_list").trim(), "0,4");
        assert!(
            done.hints
                .iter()
                .any(|hint| hint.contains("systemctl restart realtime.service analytics.service"))
        );
        let again = applied(&tree.session(), persist);
        assert_eq!(again.outcomes, [], "applied twice");
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
        assert!(undone.hints.iter().any(|hint| hint.contains("systemctl daemon-reload")));
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "persist {persist}");
    }
}

#[test]
fn everything_else_keeps_to_housekeeping_where_that_is_asked_for() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    let text = example().replace("[placement]\n", "[placement]\nothers = \"housekeeping\"\n");
    let plan = planned(&tree.session(), &text);
    let done = apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    let file = tree.get("/etc/systemd/system.conf.d/zz-planish.conf");
    assert!(file.ends_with("[Manager]\nCPUAffinity=\nCPUAffinity = 0,2,4,6\n"), "{file}");
    assert!(done.hints.iter().any(|hint| hint.contains("systemctl daemon-reexec")), "{:?}", done.hints);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert!(undone.hints.iter().any(|hint| hint.contains("systemctl daemon-reexec")));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn persisting_later_what_is_applied_already_writes_the_boot_parameters() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree.session(), false);
    let later = applied(&tree.session(), true);
    assert!(later.outcomes.iter().any(|outcome| outcome.knob.is_persistence()), "{:#?}", later.outcomes);
    assert!(tree.get("/etc/default/grub.d/90-planish.cfg").contains("isolcpus=domain,managed_irq,"));
}

#[test]
fn check_tells_a_placement_that_is_there_from_one_that_is_not() {
    let tree = Tree::copy_of("metal-2s");
    let rows = |tree: &Tree, plan: &Plan| {
        let session = tree.session();
        tree.put("/plan.json", &serde_json::to_string(plan).expect("plain data"));
        let checked = check(&session, Some(&Source::File(tree.root().join("plan.json")))).expect("checked");
        let units = checked.drift.knobs.into_iter().filter(|row| row.knob.as_str() == "unit.placement");
        units.map(|row| row.state).collect::<Vec<_>>()
    };
    let plan = planned(&tree.session(), &example());
    assert_eq!(rows(&tree, &plan), [DriftState::Drift, DriftState::Drift]);
    applied(&tree.session(), false);
    assert_eq!(rows(&tree, &plan), [DriftState::Ok, DriftState::Ok]);
    tree.put(ANALYTICS, "[Service]\nCPUAffinity = 0\n");
    assert_eq!(rows(&tree, &plan), [DriftState::Drift, DriftState::Ok]);
}

#[test]
fn a_drop_in_of_somebody_else_is_kept() {
    let tree = Tree::copy_of("metal-2s");
    tree.put(REALTIME, "[Service]\nNice=-5\n");
    let plan = planned(&tree.session(), &example());
    let error = apply(&tree.session(), &plan, &ApplyOptions::default()).expect_err("theirs");
    assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error:?}");
    assert_eq!(tree.get(REALTIME), "[Service]\nNice=-5\n");
}

#[test]
fn drop_ins_wait_for_the_confirm() {
    let tree = Tree::copy_of("metal-2s");
    let (session, options) =
        (tree.session(), ApplyOptions { confirm_seconds: Some(600), ..Default::default() });
    let done = apply(&session, &planned(&session, &example()), &options).expect("applied");
    assert_eq!(tree.get(REALTIME), "");
    assert!(drifted(&done).iter().all(|place| place.starts_with("cmdline:")), "{:?}", drifted(&done));
    assert!(
        done.hints.iter().any(|hint| hint.contains("planish confirm; then: systemctl")),
        "{:?}",
        done.hints
    );
    let confirmed = confirm(&tree.session()).expect("confirmed");
    assert_eq!(confirmed.exit, Exit::Done, "{:?}", confirmed.hints);
    assert!(tree.get(REALTIME).contains("CPUAffinity = 1,5"));
}

#[test]
fn a_placement_survives_kills() {
    let counter = Fuse::counting();
    applied(&fused(Tree::copy_of("metal-2s").options(), &counter), true);
    // Each operation of few: every eleventh, before and after by turns.
    for operation in (0..counter.operations()).step_by(11) {
        let tree = Tree::copy_of("metal-2s");
        let start = tree.snapshot();
        let moment = if operation % 2 == 0 { Moment::Before } else { Moment::After };
        let session = fused(tree.options(), &Fuse::at(operation, moment));
        until_killed(|| applied(&session, true));
        undo(&tree.session(), Target::All, false).expect("undone");
        for entry in tree.entries() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        let left = differences(&start, &tree.snapshot());
        assert_eq!(left, [""; 0], "killed {moment:?} operation {operation}");
    }
}

#[test]
fn an_interrupt_that_refuses_takes_all_of_it_back() {
    let tree = Tree::copy_of("metal-2s");
    let answer = "\n[[answer]]\nplace = \"/proc/irq/93/smp_affinity_list\"\nerrno = \"EIO\"\n";
    tree.put("/meta.toml", &(tree.get("/meta.toml") + answer));
    let start = tree.snapshot();
    let done = applied(&tree.session(), false);
    assert_eq!(done.exit, Exit::FailedRestored, "{:#?}", done.outcomes);
    assert!(done.outcomes.iter().any(|outcome| outcome.outcome == OutcomeKind::Failed));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn other_tools_get_no_half_of_a_placement() {
    let tree = Tree::copy_of("metal-2s");
    let plan = serde_json::to_string(&planned(&tree.session(), &example())).expect("plain data");
    tree.put("/plan.json", &plan);
    for source in [source(&example()), Source::File(tree.root().join("plan.json"))] {
        let out = outgoing(&tree.session(), &source, &options()).expect("it can be exported");
        let left: BTreeSet<&str> = out.left_out.iter().map(|row| row.knob.as_str()).collect();
        for part in
            ["unit.placement", "irq.affinity", "irq.default_affinity", "boot.irqaffinity", "boot.isolcpus"]
        {
            assert!(left.contains(part), "{part}: {left:?}");
        }
        let items: BTreeSet<&str> = out.items.iter().map(|item| item.knob.as_str()).collect();
        assert!(items.is_disjoint(&left), "{items:?}");
        // What the profile wants besides goes out.
        assert!(items.contains("vm.stat_interval"), "{items:?}");
    }
}

#[test]
fn a_plan_file_cannot_bring_other_directives() {
    let tree = Tree::copy_of("metal-2s");
    let made = planned(&tree.session(), &example());
    let mut steps = made.steps.clone();
    let unit = steps.iter_mut().find(|step| step.when == When::Process).expect("a drop-in");
    unit.wanted = "ExecStartPre=/bin/true".to_owned();
    let forged = Plan::new(made.profile, made.host_id, made.boot_id, steps, Vec::new());
    let error = apply(&tree.session(), &forged, &ApplyOptions::default()).expect_err("forged");
    assert!(matches!(error, PipelineError::Forged { .. }), "{error:?}");
}

#[test]
fn what_this_machine_cannot_give_is_refused() {
    let one = |rest: &str| {
        format!(
            "name = \"x\"\nsummary = \"x\"\n[placement]\n[[placement.service]]\nunit = \"realtime.service\"\n{rest}\n"
        )
    };
    assert!(refused("name = \"x\"\nsummary = \"x\"\n[placement]\n").starts_with("no service is placed"));
    assert!(refused(&one("node = 7")).contains("names node 7; this host has node 0-1"));
    assert!(refused(&one("cpus = \"0-7\"")).starts_with("CPU 0 keeps house"));
    assert!(refused(&one("cpus = \"1\"")).contains("takes CPU 1 and not 5"));
    assert!(
        refused(&one("node = 0\npools = { \"hugepages.2m\" = 1099511627776 }")).contains("1 TiB on node 0")
    );
    assert!(refused(&one("node = 0").replace("realtime", "postgres")).contains("no unit postgres.service"));
}

/// Half a placement is what a plan refuses: where a reboot makes one of a whole, nothing is green.
#[test]
fn a_placement_that_a_reboot_took_half_of_is_told() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    applied(&tree.session(), false);
    let told = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("a look");
        (
            checked.interrupted.iter().map(|cut| (cut.entry.0, cut.how.clone())).collect::<Vec<_>>(),
            checked.exit,
        )
    };
    assert_eq!(told(&tree).0, []);
    tree.reboot(&start);
    assert_eq!(told(&tree), (vec![(1, Half::Placed)], Exit::Findings));
    applied(&tree.session(), false);
    assert_eq!(told(&tree).0, []);
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// The same of a placement that is kept: `irqaffinity=` keeps interrupts off the CPUs of services, and brings none to
/// the service that it was to follow. What apply tells of the next boot, check tells, and the boot shows.
#[test]
fn interrupts_that_follow_a_service_are_lost_at_a_boot_and_those_that_keep_away_are_not() {
    for (follow, exit) in [(false, Exit::Done), (true, Exit::Findings)] {
        let tree = Tree::copy_of("metal-2s");
        // It takes back what the profile wants besides.
        tree.remove("/etc/sysctl.d/99-local.conf");
        let start = tree.snapshot();
        let more = if follow { "[placement]\ninterrupts = \"service\"\n" } else { "[placement]\n" };
        let text = example().replace("[placement]\n", more);
        let done = apply(&tree.session(), &planned(&tree.session(), &text), &PERSIST).expect("applied");
        assert_eq!(done.exit, exit, "{:?}", done.hints);
        // The second time the argument is in a file of ours, and no step of the plan.
        let again = apply(&tree.session(), &planned(&tree.session(), &text), &PERSIST).expect("applied");
        for done in [&done, &again] {
            let is_left = done.unpersisted.iter().any(|left| left.knob.as_str() == "irq.affinity");
            assert_eq!(is_left, follow, "{:?}", done.unpersisted);
        }
        let look = |tree: &Tree| {
            let checked = check(&tree.session(), None).expect("a look");
            let irqs = checked.drift.knobs.into_iter().filter(|row| row.knob.as_str() == "irq.affinity");
            let wanted = irqs.filter(|row| row.wanted.is_some());
            let states: BTreeSet<_> = wanted.map(|row| format!("{:?}", row.state)).collect();
            (states, checked.interrupted.into_iter().map(|cut| cut.how).collect::<Vec<_>>(), checked.exit)
        };
        let (states, cut, now) = look(&tree);
        assert_eq!(states.contains("LostAtBoot"), follow, "{states:?}");
        assert_eq!((cut, now), (Vec::new(), exit), "what the apply said of {states:?}");
        tree.reboot(&start);
        // What the kernel makes of the argument.
        for irq in [41, 52, 53, 54, 62, 63, 64, 80, 81, 90, 91, 92, 93] {
            tree.put(&format!("/proc/irq/{irq}/smp_affinity_list"), "0,2,4,6\n");
        }
        let half = if follow { vec![Half::Placed] } else { Vec::new() };
        assert_eq!(look(&tree).1, half);
    }
}

/// Somebody's line in a drop-in keeps all of it, and with it the service where it was placed: half a placement, until
/// either goes. Another profile that has the name of the placed one is no placement.
#[test]
fn a_drop_in_that_an_undo_left_is_half_a_placement() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree.session(), false);
    let ours = tree.get(REALTIME);
    tree.put(REALTIME, &(ours + "Nice=5\n"));
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Findings);
    let told = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("a look");
        checked.interrupted.into_iter().map(|cut| (cut.cure(), cut.how)).collect::<Vec<_>>()
    };
    let kept = vec![("undo 1 --force".to_owned(), Half::Kept(REALTIME.to_owned()))];
    assert_eq!(told(&tree), kept);
    assert_eq!(check(&tree.session(), None).expect("a look").exit, Exit::Findings);
    tree.put(REALTIME, "[Service]\nNice=5\n");
    assert_eq!(told(&tree), []);
}

#[test]
fn a_profile_of_the_name_alone_is_no_placement_again() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    applied(&tree.session(), false);
    tree.reboot(&start);
    let named = planned(&tree.session(), &example()).profile;
    let other = profile(&named, &[("vm.swappiness", planish_model::Want::Int(7))]);
    apply(&tree.session(), &plan_of(&tree.session(), &other), &ApplyOptions::default()).expect("applied");
    let checked = check(&tree.session(), None).expect("a look");
    assert_eq!(checked.interrupted.iter().map(|cut| &cut.how).collect::<Vec<_>>(), [&Half::Placed]);
}
