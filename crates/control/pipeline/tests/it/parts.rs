//! The CPUs of parts of the system: a file each, what the control group has beside it, and what is refused.

use planish_model::{
    Case, Class, Conditions, DriftState, Exit, KnobCheck, OutcomeKind, Plan, VerdictKind, Want,
};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::crash::{assert_clean, kill_everywhere};
use crate::faults::{Fuse, MOMENTS, fused, until_killed};
use crate::tree::*;

const SYSTEM: &str = "/etc/systemd/system/system.slice.d/zz-planish-allowed-cpus.conf";
const USER: &str = "/etc/systemd/system/user.slice.d/zz-planish-allowed-cpus.conf";
const GROUP: &str = "/sys/fs/cgroup/system.slice/cpuset.cpus";
const USERS: &str = "/sys/fs/cgroup/user.slice/cpuset.cpus";

/// What the kernel makes of a list: the group has it.
const TELLS: &str = r#"
[[answer]]
place = "/sys/fs/cgroup/system.slice/cpuset.cpus"
derives = [{ place = "/sys/fs/cgroup/system.slice/cpuset.cpus.effective", value = "0-7", when = "0-7" }]

[[answer]]
place = "/sys/fs/cgroup/user.slice/cpuset.cpus"
derives = [{ place = "/sys/fs/cgroup/user.slice/cpuset.cpus.effective", value = "0-7", when = "0-7" }]
"#;

fn case(only: &str, value: &str) -> Case {
    Case { value: value.to_owned(), only: Some(only.to_owned()), needs: Conditions::default() }
}

fn wanted(cases: &[(&str, &str)]) -> Source {
    let cases = cases.iter().map(|(only, value)| case(only, value)).collect();
    profile("parts", &[("unit.allowed_cpus", Want::Cases(cases))])
}

fn house() -> Source {
    wanted(&[("system.slice", "0-3"), ("user.slice", "0,2")])
}

/// A machine of eight CPUs with groups of version 2.
fn tree() -> Tree {
    let tree = Tree::copy_of("metal-2s");
    tree.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    tree.put(GROUP, "\n");
    tree.put("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/meta.toml", &(tree.get("/meta.toml") + TELLS));
    tree
}

/// systemd reads its files: what they give comes into the groups, and without them it is told that there is no space.
fn reload(tree: &Tree) {
    for (file, group) in [(SYSTEM, GROUP), (USER, USERS)] {
        let text = if tree.root().join(&file[1..]).exists() { tree.get(file) } else { continue };
        let cpus = text.rsplit("AllowedCPUs = ").next().expect("a list").to_owned();
        tree.put(group, &cpus);
        tree.put(&format!("{group}.effective"), &cpus);
    }
}

/// The CPUs that both groups were given.
fn groups(tree: &Tree) -> [String; 2] {
    [GROUP, USERS].map(|group| tree.get(group).trim().to_owned())
}

fn asked(session: &Session, source: &Source) -> Result<Plan, PipelineError> {
    plan(session, source, &PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() })
}

fn applied(session: &Session) -> Applied {
    apply(session, &asked(session, &house()).expect("a plan"), &ApplyOptions::default()).expect("applied")
}

fn row(tree: &Tree, source: Option<&Source>) -> KnobCheck {
    let drift = check(&tree.session(), source).expect("checked").drift;
    drift.knobs.into_iter().find(|row| row.place == SYSTEM).expect("it is looked at")
}

#[test]
fn limits_of_parts_come_and_go_to_the_byte() {
    let tree = tree();
    let start = tree.snapshot();
    let made = asked(&tree.session(), &house()).expect("a plan");
    let step = made.steps.iter().find(|step| step.place == SYSTEM).expect("a step");
    assert_eq!((step.now.as_str(), step.wanted.as_str()), ("(not given)", "0-3"));
    assert_eq!(step.because.as_deref(), Some("its files give nothing; its group has no limit"));
    let done = applied(&tree.session());
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
    assert!(tree.get(SYSTEM).ends_with("[Slice]\nAllowedCPUs=\nAllowedCPUs = 0-3\n"), "{}", tree.get(SYSTEM));
    assert!(tree.get(USER).ends_with("[Slice]\nAllowedCPUs=\nAllowedCPUs = 0,2\n"), "{}", tree.get(USER));
    let reload =
        |hints: &[String]| hints.iter().any(|hint| hint.ends_with("now by: systemctl daemon-reload"));
    assert!(reload(&done.hints), "{:?}", done.hints);
    assert_eq!(applied(&tree.session()).outcomes, [], "applied twice");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert!(undone.exit == Exit::Done && reload(&undone.hints), "{:?}", undone.hints);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn what_the_group_has_is_told_beside_what_the_file_gives() {
    let tree = tree();
    applied(&tree.session());
    for source in [None, Some(house())] {
        let seen = row(&tree, source.as_ref());
        assert_eq!(
            (seen.state, seen.running.as_deref()),
            (DriftState::Drift, Some("(not given)")),
            "{seen:?}"
        );
        let why = seen.because.expect("told");
        assert!(why.starts_with(&format!("{GROUP} has no limit: systemctl daemon-reload")), "{why}");
        let given = seen.persisted.expect("a file");
        assert_eq!((given.value.as_str(), given.file.as_deref()), ("0-3", Some(SYSTEM)));
    }
    // systemd reads its files.
    tree.put(GROUP, "0-3\n");
    assert_eq!(row(&tree, None).state, DriftState::Ok);
    assert_eq!(row(&tree, Some(&house())).state, DriftState::Ok);
    // systemctl set-property --runtime system.slice AllowedCPUs=5
    tree.put(GROUP, "5\n");
    let seen = row(&tree, None);
    assert_eq!((seen.state, seen.running.as_deref()), (DriftState::Drift, Some("5")));
    // What is read behind ours adds to it, and comes with the next reload.
    tree.put(GROUP, "0-3\n");
    let theirs = "/etc/systemd/system/system.slice.d/zzz-own.conf";
    tree.put(theirs, "[Slice]\nAllowedCPUs=6\n");
    let seen = row(&tree, None);
    assert_ne!(seen.state, DriftState::Ok);
    assert!(seen.because.as_deref().is_some_and(|why| why.contains(&format!("{theirs}:2"))), "{seen:?}");
}

#[test]
fn what_somebody_gave_already_is_left_to_them() {
    let tree = tree();
    let theirs = "/etc/systemd/system.control/system.slice.d/50-AllowedCPUs.conf";
    tree.put(theirs, "[Slice]\nAllowedCPUs=0-3\n");
    let asks = wanted(&[("system.slice", "0,1-3")]);
    let made = asked(&tree.session(), &asks).expect("a plan");
    assert_eq!(made.steps, []);
    assert_eq!(made.skipped[0].verdict.reason, format!("{theirs}:2 gives 0-3"));
    // The group tells whether it counts.
    let seen = row(&tree, Some(&asks));
    assert_eq!(seen.state, DriftState::Drift, "{seen:?}");
    tree.put(GROUP, "0-3\n");
    let seen = row(&tree, Some(&asks));
    assert_eq!((seen.state, seen.running.as_deref()), (DriftState::Ok, Some("0-3")), "{seen:?}");
    // What goes with this boot is not enough, wherever systemd keeps it.
    tree.remove(theirs);
    for folder in ["system.control", "transient"] {
        let theirs = format!("/run/systemd/{folder}/system.slice.d/50-AllowedCPUs.conf");
        tree.put(&theirs, "[Slice]\nAllowedCPUs=0-3\n");
        let made = asked(&tree.session(), &asks).expect("a plan");
        let because = made.steps[0].because.as_deref();
        assert_eq!(because, Some(format!("{theirs}:2 gives 0-3; {GROUP} has 0-3").as_str()));
        tree.remove(&theirs);
    }
}

#[test]
fn an_undo_gives_the_group_its_cpus_where_systemd_cannot() {
    let tree = tree();
    applied(&tree.session());
    reload(&tree);
    assert_eq!(groups(&tree), ["0-3", "0,2"]);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done);
    for part in ["system.slice", "user.slice"] {
        let told = format!("{part} has CPU 0-7 again");
        assert!(undone.hints.contains(&told), "{:?}", undone.hints);
    }
    reload(&tree);
    assert_eq!(groups(&tree), ["0-7", "0-7"]);
    assert!(
        !check(&tree.session(), None).expect("checked").drift.knobs.iter().any(|row| row.place == SYSTEM)
    );
}

#[test]
fn an_undo_that_is_killed_half_way_gives_them_back_when_it_is_run_again() {
    let limited = || {
        let tree = tree();
        applied(&tree.session());
        reload(&tree);
        tree
    };
    let counter = Fuse::counting();
    undo(&fused(limited().options(), &counter), Target::All, false).expect("undone");
    for operation in 0..counter.operations() {
        let tree = limited();
        let moment = MOMENTS[operation % MOMENTS.len()];
        until_killed(|| {
            undo(&fused(tree.options(), &Fuse::at(operation, moment)), Target::All, false).map(drop)
        });
        reload(&tree);
        undo(&tree.session(), Target::All, false).expect("undone");
        reload(&tree);
        assert_eq!(groups(&tree), ["0-7", "0-7"], "killed {moment:?} operation {operation}");
    }
}

#[test]
fn a_group_that_no_file_limits_any_more_is_told() {
    let tree = tree();
    applied(&tree.session());
    reload(&tree);
    // Somebody removed the file, and systemd was refused.
    tree.remove(SYSTEM);
    let told = |tree: &Tree, source: Option<&Source>| {
        let seen = row(tree, source);
        assert_eq!((seen.state, seen.running.as_deref()), (DriftState::Drift, Some("0-3")), "{seen:?}");
        let why = seen.because.expect("told");
        let cure =
            "which no file gives any more: systemctl set-property --runtime system.slice AllowedCPUs=0-7";
        assert!(why.starts_with(&format!("{GROUP} has 0-3, {cure}")), "{why}");
        assert_eq!(check(&tree.session(), source).expect("checked").exit, Exit::Findings);
    };
    for source in [None, Some(wanted(&[("user.slice", "0,2")]))] {
        told(&tree, source.as_ref());
    }
    // Of a closed entry as well: systemd had not read its files, and set the old list once more.
    undo(&tree.session(), Target::All, false).expect("undone");
    tree.put(GROUP, "0-3\n");
    told(&tree, None);
    let theirs = "/etc/systemd/system/system.slice.d/own.conf";
    tree.put(theirs, "[Slice]\nAllowedCPUs=0-3\n");
    let rows = check(&tree.session(), None).expect("checked").drift.knobs;
    assert!(!rows.iter().any(|row| row.place == SYSTEM), "it is theirs");
}

#[test]
fn a_limit_that_somebody_else_has_set_since_is_theirs() {
    let limited = |theirs: &str| {
        let tree = tree();
        applied(&tree.session());
        reload(&tree);
        if !theirs.is_empty() {
            tree.put(theirs, "[Slice]\nAllowedCPUs=0-3\n");
        }
        tree
    };
    let tree = limited("/run/systemd/system.control/system.slice.d/50-AllowedCPUs.conf");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert!(undone.exit == Exit::Done && groups(&tree) == ["0-3", "0-7"], "{:?}", undone.hints);
    let tree = limited("");
    tree.put(GROUP, "5\n");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert!(undone.exit == Exit::Findings && groups(&tree) == ["5", "0-7"], "{:?}", undone.hints);
    let line = "systemctl set-property --runtime system.slice AllowedCPUs=0-7";
    assert!(undone.hints.iter().any(|hint| hint.ends_with(line)), "{:?}", undone.hints);
}

#[test]
fn an_undo_that_cannot_give_them_back_stays_open_and_says_so() {
    let tree = tree();
    applied(&tree.session());
    reload(&tree);
    let meta = tree.get("/meta.toml");
    let refuses = TELLS.replacen("derives", "errno = \"EROFS\"\nderives", 1);
    tree.put("/meta.toml", &meta.replace(TELLS, &refuses));
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((undone.exit, groups(&tree)), (Exit::FailedNotRestored, ["0-3".to_owned(), "0-7".to_owned()]));
    let told = undone.hints.iter().any(|hint| hint.contains("system.slice still has CPU 0-3"));
    assert!(told, "{:?}", undone.hints);
    tree.put("/meta.toml", &meta);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((undone.exit, groups(&tree)), (Exit::Done, ["0-7".to_owned(), "0-7".to_owned()]));
}

#[test]
fn a_profile_without_a_part_gives_it_its_cpus_back() {
    let tree = tree();
    let first = applied(&tree.session()).entry.expect("an entry");
    reload(&tree);
    let options = PlanOptions {
        allow_classes: vec![Class::Availability],
        instead_of: Some(first),
        ..PlanOptions::default()
    };
    let made = plan(&tree.session(), &wanted(&[("system.slice", "0-3")]), &options).expect("a plan");
    apply(&tree.session(), &made, &ApplyOptions::default()).expect("applied");
    reload(&tree);
    assert_eq!(groups(&tree), ["0-3", "0-7"]);
    // Two entries for one part: the older one's list comes with the next reload.
    let narrow = asked(&tree.session(), &wanted(&[("system.slice", "0-1")])).expect("a plan");
    apply(&tree.session(), &narrow, &ApplyOptions::default()).expect("applied");
    reload(&tree);
    undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!(groups(&tree), ["0-1", "0-7"]);
    // Without one in between the list of the newer one is ours as well.
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(groups(&tree), ["0-7", "0-7"]);
}

#[test]
fn what_cannot_be_is_refused_before_a_write() {
    let refused = |tree: &Tree, cases: &[(&str, &str)], words: &str| {
        let error = asked(&tree.session(), &wanted(cases)).expect_err(words);
        let told = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let told: Vec<String> = told.map(ToString::to_string).collect();
        assert!(told.join(": ").contains(words), "{told:?}");
        assert_eq!(error.exit(), Exit::Refused, "{told:?}");
    };
    refused(&tree(), &[("system.slice", "0-9")], "this host has CPU 0-7 and no other");
    refused(&tree(), &[("redis.service", "0-3")], "here they are system.slice, user.slice");
    let pinned = tree();
    pinned.put(
        "/etc/systemd/system/redis-server.service.d/zz-planish.conf",
        "[Service]\nCPUAffinity=\nCPUAffinity = 4-5\n",
    );
    refused(&pinned, &[("system.slice", "0-3")], "redis-server.service is pinned to CPU 4-5");
    pinned.put("/usr/lib/systemd/system/redis-server.service", "[Service]\nSlice=planish.slice\n");
    assert_eq!(asked(&pinned.session(), &wanted(&[("system.slice", "0-3")])).expect("apart").steps.len(), 1);
    let isolated = tree();
    isolated.put("/sys/devices/system/cpu/isolated", "4-7\n");
    refused(&isolated, &[("user.slice", "5-6")], "CPU 4-7 are isolated");
    let session = tree();
    session.put("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n");
    session.put("/proc/self/status", "Name:\tplanish\nCpus_allowed_list:\t6-7\n");
    refused(&session, &[("user.slice", "0-3")], "this session runs in user.slice on CPU 6-7");
}

#[test]
fn before_linux_6_2_nothing_is_limited_beside_a_pinned_service() {
    let tree = tree();
    tree.put("/meta.toml", &tree.get("/meta.toml").replace("6.12.57+deb13-amd64", "6.1.0-13-amd64"));
    tree.put("/usr/lib/systemd/system/dnsmasq.service", "[Service]\nCPUAffinity=1 2\n");
    let asks = wanted(&[("user.slice", "0-3")]);
    let refused = || {
        let error = asked(&tree.session(), &asks).expect_err("refused");
        assert_eq!(error.exit(), Exit::Refused);
        let told = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        told.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    };
    assert!(refused().contains("dnsmasq.service is pinned to CPU 1-2: before Linux 6.2"), "{}", refused());
    tree.put("/usr/lib/systemd/system/dnsmasq.service", "[Service]\nCPUAffinity=numa\nNUMAMask=0\n");
    assert!(refused().contains("dnsmasq.service is pinned to the CPUs of its memory nodes"), "{}", refused());
    tree.remove("/usr/lib/systemd/system/dnsmasq.service");
    tree.put("/etc/systemd/system.conf.d/x.conf", "[Manager]\nCPUAffinity=0-5\n");
    assert!(refused().contains("systemd itself is pinned to CPU 0-5"), "{}", refused());
    // The groups have CPUs of their own already.
    tree.put("/sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu memory\n");
    assert_eq!(asked(&tree.session(), &asks).expect("a plan").steps.len(), 1);
}

#[test]
fn a_host_without_systemd_has_no_parts_and_a_wrong_name_is_told() {
    let tree = tree();
    tree.remove("/run/systemd/system/.keep");
    std::fs::remove_dir(tree.root().join("run/systemd/system")).expect("ours");
    let made = asked(&tree.session(), &house()).expect("a plan");
    assert_eq!(made.steps, []);
    for row in &made.skipped {
        assert_eq!(
            (row.verdict.verdict, row.verdict.reason.as_str()),
            (VerdictKind::Absent, "process 1 is no systemd")
        );
    }
    assert_eq!(
        asked(&tree.session(), &wanted(&[("sytem.slice", "0")])).expect_err("refused").exit(),
        Exit::Refused
    );
}

#[test]
fn a_host_without_the_groups_for_it_is_none_of_it() {
    for (controllers, why) in [(None, "of version 1"), (Some("cpu io memory\n"), "have no cpuset here")] {
        let tree = tree();
        tree.remove("/sys/fs/cgroup/cgroup.controllers");
        if let Some(names) = controllers {
            tree.put("/sys/fs/cgroup/cgroup.controllers", names);
        }
        let made = asked(&tree.session(), &house()).expect("a plan");
        assert_eq!(made.steps, []);
        for row in &made.skipped {
            assert_eq!(row.verdict.verdict, VerdictKind::Absent);
            assert!(row.verdict.reason.contains(why), "{row:?}");
        }
    }
}

#[test]
fn limits_of_parts_survive_kills() {
    assert_clean(&kill_everywhere(&tree, &|_| (), &|session| drop(applied(session))));
}
