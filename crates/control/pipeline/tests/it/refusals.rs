//! Why an apply is refused, reason by reason: a look at the same plan tells the same first, and so ends as it would.

use std::collections::BTreeSet;

use planish_model::{Class, Exit, Nodes, Plan, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Source, apply, plan, preview};

use crate::boot::{DEFAULTS, debian, more, persist, suse, wants};
use crate::tree::*;

/// The first reason that a look at the files of a plan tells, and how it ends by that.
pub fn told_by_a_look(tree: &Tree, plan: &Plan) -> Option<(String, Exit)> {
    let first = match preview(&tree.session(), plan) {
        Ok(preview) => preview.refusals.into_iter().next(),
        Err(error) => Some(error),
    };
    first.map(|error| (error.to_string(), error.exit()))
}

fn allowing(tree: &Tree, source: &Source) -> Plan {
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    plan(&tree.session(), source, &allowed).expect("planned")
}

/// Takes a reason: its name, a host, and what makes a plan for it.
type Add<'a> = &'a mut dyn FnMut(&'static str, Tree, &dyn Fn(&Tree) -> Plan);

/// Each reason: a host, and a plan for it that its apply refuses.
fn reasons() -> Vec<(&'static str, Tree, Plan)> {
    let mut all = Vec::new();
    let mut add = |name, tree: Tree, make: &dyn Fn(&Tree) -> Plan| {
        let plan = make(&tree);
        all.push((name, tree, plan));
    };
    files_refuse(&mut add);
    the_host_has_moved(&mut add);
    no_host_can(&mut add);
    all
}

fn of_wants(tree: &Tree) -> Plan {
    allowing(tree, &wants())
}

/// What files of the host say keeps the plan from being written.
fn files_refuse(add: Add) {
    add("BootLoader", debian(), &|tree| {
        tree.put("/boot/grub/grub.cfg", "");
        of_wants(tree)
    });
    add("BootLoader", debian(), &|tree| {
        tree.put("/etc/default/grub.d/99-site.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
        of_wants(tree)
    });
    add("BootFile", suse(), &|tree| {
        tree.put(DEFAULTS, "GRUB_CMDLINE_LINUX=\"qui");
        of_wants(tree)
    });
    add("ForeignFile", debian(), &|tree| {
        tree.put(SYSCTL_FILE, "vm.swappiness = 30\n");
        of_wants(tree)
    });
    add("Unconfirmed", debian(), &|tree| {
        let session = crate::watch::without_watcher(tree);
        let options = ApplyOptions { confirm_seconds: Some(3600), ..PERSIST };
        apply(&session, &plan_of(&session, &wants()), &options).expect("applied");
        of_wants(tree)
    });
}

/// The plan was made of another state.
fn the_host_has_moved(add: Add) {
    let swap = || profile("swap", &[("vm.swappiness", Want::Int(10)), ("vm.stat_interval", Want::Int(30))]);
    add("Moved", debian(), &|tree| {
        let plan = of_wants(tree);
        tree.edit(SWAPPINESS, "33");
        plan
    });
    add("Moved", debian(), &|tree| {
        // A part of a plan file is in force, and a part of it is not.
        let plan = allowing(tree, &swap());
        apply(&tree.session(), &plan, &PERSIST).expect("applied");
        tree.edit(SWAPPINESS, "33");
        plan
    });
    add("Moved", debian(), &|tree| {
        // What goes back with the entry whose place is taken is not what it was.
        persist(tree, &swap());
        let options = PlanOptions { instead_of: Some(planish_model::EntryId(1)), ..PlanOptions::default() };
        let plan = plan(&tree.session(), &wants(), &options).expect("planned");
        tree.edit(STAT_INTERVAL, "7");
        plan
    });
    add("Unshown", debian(), &|tree| {
        let mut plan = of_wants(tree);
        plan.persist = Some(preview(&tree.session(), &plan).expect("a look").persist);
        persist(tree, &profile("other", &[("vm.stat_interval", Want::Int(30))]));
        plan
    });
}

/// What is asked cannot be, or is not what was planned.
fn no_host_can(add: Add) {
    add("NoMemory", debian(), &|tree| {
        let need = Want::Need { need_bytes: 56 << 30, nodes: Nodes::Spread };
        allowing(tree, &profile("big", &[("hugepages.2m", need)]))
    });
    add("Impossible", debian(), &|tree| {
        allowing(tree, &profile("all", &[("boot.hugepages.2m", Want::Int(40_000_000))]))
    });
    add("NotWritable", debian(), &|tree| {
        let plan = of_wants(tree);
        let meta =
            tree.get("/meta.toml").replacen("writable = true", "writable = true\nread_only = [\"/proc\"]", 1);
        tree.put("/meta.toml", &meta);
        plan
    });
    add("Elsewhere", debian(), &|tree| {
        let plan = of_wants(tree);
        tree.put(BOOT_ID, "22222222-2222-3333-4444-555555555555\n");
        plan
    });
    add("Edited", debian(), &|tree| {
        let mut plan = of_wants(tree);
        plan.steps[0].wanted = "11".to_owned();
        plan
    });
    add("Forged", debian(), &|tree| {
        let plan = of_wants(tree);
        let mut steps = plan.steps.clone();
        steps[0].class = Class::Durability;
        Plan::new(plan.profile, plan.host_id, plan.boot_id, steps, plan.skipped).with_boot(plan.boot)
    });
}

#[test]
fn a_look_tells_first_what_the_apply_refuses_for_and_ends_as_it_does() {
    let mut seen = BTreeSet::new();
    for (name, tree, plan) in reasons() {
        let start = tree.snapshot();
        let told = told_by_a_look(&tree, &plan);
        let error = apply(&crate::watch::without_watcher(&tree), &plan, &PERSIST).expect_err(name);
        assert!(format!("{error:?}").starts_with(name), "{name}: {error:?}");
        assert_eq!(told, Some((error.to_string(), error.exit())), "{name}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}: nothing is written");
        seen.insert(name);
    }
    // Every kind of refusal that an apply of a plan ends with before it writes, save what only its moment decides.
    let all = [
        "BootFile",
        "BootLoader",
        "Edited",
        "Elsewhere",
        "ForeignFile",
        "Forged",
        "Impossible",
        "Moved",
        "NoMemory",
        "NotWritable",
        "Unconfirmed",
        "Unshown",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn a_plan_that_is_taken_is_told_to_be_refused_by_nothing() {
    for make in [debian, suse] {
        for source in [wants(), more(), everything()] {
            let tree = make();
            let plan = allowing(&tree, &source);
            assert_eq!(told_by_a_look(&tree, &plan), None);
            apply(&tree.session(), &plan, &PERSIST).expect("it is taken");
            // In force, it is nothing to be refused either.
            assert_eq!(told_by_a_look(&tree, &plan), None);
        }
    }
}
