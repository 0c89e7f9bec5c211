//! Limits of units: one file each, never lower than what the unit has, and found where somebody's file wins over them.

use planish_model::{
    BootValue, Case, Class, Conditions, DriftState, EntryId, Exit, KnobCheck, OutcomeKind, Plan, VerdictKind,
    Want,
};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;
use crate::watch::{take_late, without_watcher};

const UNIT: &str = "/usr/lib/systemd/system/redis-server.service";
const NOFILE: &str = "/etc/systemd/system/redis-server.service.d/zz-planish-nofile.conf";
const OOM: &str = "/etc/systemd/system/redis-server.service.d/zz-planish-oom-score-adjust.conf";

fn of_redis(value: &str) -> Want {
    let (value, only) = (value.to_owned(), Some("redis*".to_owned()));
    Want::Case(Box::new(Case { value, only, needs: Conditions::default() }))
}

fn wanted() -> Source {
    profile("limits", &[("unit.nofile", of_redis("65536")), ("unit.oom_score_adjust", of_redis("-900"))])
}

/// A machine with a unit that gives so many files.
fn tree(limit: &str) -> Tree {
    let tree = Tree::copy_of("metal-2s");
    tree.put(UNIT, &format!("[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/x\nLimitNOFILE={limit}\n"));
    tree
}

fn planned(session: &Session) -> Plan {
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    plan(session, &wanted(), &options).expect("a plan")
}

fn applied(session: &Session) -> Applied {
    apply(session, &planned(session), &ApplyOptions::default()).expect("applied")
}

#[test]
fn limits_come_and_go_to_the_byte() {
    let tree = tree("1024:524288");
    let start = tree.snapshot();
    let plan = planned(&tree.session());
    let step = plan.steps.iter().find(|step| step.place == NOFILE).expect("a step");
    assert_eq!((step.now.as_str(), step.wanted.as_str()), ("(not given)", "65536:524288"));
    assert_eq!(step.because.as_deref(), Some(format!("{UNIT}:6 gives 1024:524288").as_str()));
    let done = applied(&tree.session());
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
    assert!(tree.get(NOFILE).ends_with("[Service]\nLimitNOFILE = 65536:524288\n"), "{}", tree.get(NOFILE));
    assert!(tree.get(OOM).ends_with("[Service]\nOOMScoreAdjust = -900\n"), "{}", tree.get(OOM));
    let told = "systemctl daemon-reload; systemctl restart redis-server.service";
    assert!(done.hints.iter().any(|hint| hint.ends_with(told)), "one unit once: {:?}", done.hints);
    assert_eq!(applied(&tree.session()).outcomes, [], "applied twice");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A drop-in of ours that somebody took away, emptied, or made another one of gives the unit what nobody asked for: to
/// be told, it needs no profile that wants it.
#[test]
fn a_drop_in_that_is_not_as_it_was_written_is_a_finding() {
    type Way<'a> = (&'static str, &'a dyn Fn(&Tree));
    let ways: [Way<'_>; 5] = [
        ("gone", &|tree| tree.remove(NOFILE)),
        ("empty", &|tree| tree.put(NOFILE, "")),
        ("without its line", &|tree| tree.put(NOFILE, "[Service]\n")),
        ("edited", &|tree| tree.put(NOFILE, &tree.get(NOFILE).replace("65536", "2048"))),
        ("assigned anew", &|tree| tree.put(NOFILE, &(tree.get(NOFILE) + "LimitNOFILE=2048\n"))),
    ];
    for (name, change) in ways {
        let tree = tree("1024:524288");
        let start = tree.snapshot();
        applied(&tree.session());
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{name}");
        change(&tree);
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.place == NOFILE).expect("a row");
        let why = row.because.as_deref().unwrap_or_default();
        assert_eq!((row.state, checked.exit), (DriftState::Drift, Exit::Findings), "{name}: {row:#?}");
        // In a file that is gone there is nothing of others.
        assert!(
            why.contains(if name == "gone" { "undo 1, then" } else { "undo 1 --force" }),
            "{name}: {why}"
        );
        assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
        applied(&tree.session());
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{name}");
    }
}

/// Whatever somebody did to it, and whether or not the value is the same by the words: undo takes it for theirs.
#[test]
fn a_drop_in_that_differs_by_one_byte_is_named() {
    for change in [
        &|text: &str| format!("{text}LimitNOFILE=\n"),
        &|text| format!("{text}# ours\n"),
        &|text| text.replace("[Service]", "[service]"),
        &|text| text.replace("[Service]\n", ""),
        &|text| text.replace("[Service]", "[Unit]"),
        &|text| text.replace(" = ", "="),
        &|text| format!("{text}[Unit]\nConditionPathExists=/x\n"),
    ] as [&dyn Fn(&str) -> String; 7]
    {
        let tree = tree("1024:524288");
        let start = tree.snapshot();
        applied(&tree.session());
        let text = change(&tree.get(NOFILE));
        tree.put(NOFILE, &text);
        let checked = check(&tree.session(), None).expect("checked");
        let told: Vec<String> = checked.changed_files.iter().map(ToString::to_string).collect();
        let wanted = format!(
            "{NOFILE} was changed since entry 1 wrote it: planish undo 1 --force, then apply it again"
        );
        assert_eq!((checked.exit, told), (Exit::Findings, vec![wanted]), "{text}");
        assert_eq!(
            undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone").exit,
            Exit::Findings
        );
        assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{text}");
    }
}

/// A unit that a generator makes, of a SysV script or a container, is a unit.
#[test]
fn a_drop_in_of_a_unit_that_a_generator_makes_is_read() {
    for folder in ["generator", "generator.late", "generator.early", "transient"] {
        let tree = tree("1024:524288");
        applied(&tree.session());
        let text = tree.get(UNIT);
        tree.remove(UNIT);
        tree.put(&format!("/run/systemd/{folder}/redis-server.service"), &text);
        let checked = check(&tree.session(), None).expect("checked");
        assert_eq!((checked.exit, checked.unread_drop_ins.len()), (Exit::Done, 0), "{folder}");
    }
}

/// The file is as it was written, and nobody has what it gives.
#[test]
fn a_drop_in_whose_service_nobody_can_start_is_a_finding() {
    const MASK: &str = "/etc/systemd/system/redis-server.service";
    for (change, told) in [
        (&|tree: &Tree| tree.put(MASK, ""), format!("redis-server.service is masked by {MASK}")),
        (&|tree| put_link(tree, MASK, "/dev/null"), format!("redis-server.service is masked by {MASK}")),
        (
            &|tree| put_link(tree, "/etc/systemd/system.control/redis-server.service", "/dev/null"),
            "redis-server.service is masked by /etc/systemd/system.control/redis-server.service".to_owned(),
        ),
        (&|tree| tree.remove(UNIT), "there is no redis-server.service any more".to_owned()),
    ] as [(&dyn Fn(&Tree), String); 4]
    {
        let tree = tree("1024:524288");
        applied(&tree.session());
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
        change(&tree);
        let checked = check(&tree.session(), None).expect("checked");
        let unread: Vec<String> = checked.unread_drop_ins.iter().map(ToString::to_string).collect();
        assert_eq!((checked.exit, unread.len()), (Exit::Findings, 2), "{unread:?}");
        for path in [NOFILE, OOM] {
            let wanted = format!(
                "{told}: nothing reads {path} of entry 1; to take back what that set for it: planish undo 1"
            );
            assert!(unread.contains(&wanted), "{wanted}: {unread:?}");
        }
        assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    }
}

/// From one profile to another that wants the same of a unit: its file stays, and goes with the second. One that wants
/// fewer than the first had given does not count on the file of that.
#[test]
fn a_drop_in_that_both_want_is_taken_over() {
    let tree = tree("1024:524288");
    let start = tree.snapshot();
    let session = tree.session();
    applied(&session);
    let (nofile, oom) = (tree.get(NOFILE), tree.get(OOM));
    let instead = |wants: &[(&str, Want)]| {
        let options = PlanOptions {
            allow_classes: vec![Class::Availability],
            instead_of: Some(EntryId(1)),
            ..PlanOptions::default()
        };
        plan(&session, &profile("second", wants), &options)
    };
    let fewer = instead(&[("unit.nofile", of_redis("2048"))]).expect("a plan");
    let step = fewer.steps.iter().find(|step| step.place == NOFILE).expect("what the first gave goes");
    assert_eq!((step.wanted.as_str(), step.part), ("2048:524288", None));
    let wants = [("unit.nofile", of_redis("65536")), ("vm.swappiness", Want::Int(10))];
    let plan = instead(&wants).expect("a plan");
    let done = apply(&session, &plan, &ApplyOptions::default()).expect("applied");
    assert_eq!(done.exit, Exit::Done, "{:#?}", done.hints);
    assert_eq!((tree.get(NOFILE), tree.get(OOM)), (nofile, String::new()));
    assert!(!oom.is_empty());
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// Two profiles that want the same of a unit: its file goes with the last of the two entries.
#[test]
fn a_drop_in_that_both_want_goes_with_the_last() {
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    for (first, last) in [(1, 2), (2, 1)] {
        let tree = tree("1024:524288");
        let start = tree.snapshot();
        applied(&tree.session());
        let text = tree.get(NOFILE);
        let source = profile("second", &[("unit.nofile", of_redis("65536"))]);
        let second = plan(&tree.session(), &source, &options).expect("a plan");
        let beside: Vec<_> = second.steps.iter().map(|step| step.beside).collect();
        assert_eq!(beside, [Some(EntryId(1))], "{second:#?}");
        let done = apply(&tree.session(), &second, &ApplyOptions::default()).expect("applied");
        assert_eq!((done.exit, tree.get(NOFILE)), (Exit::Done, text.clone()), "{:#?}", done.hints);
        let undone =
            |entry| undo(&tree.session(), Target::Entry(EntryId(entry)), false).expect("undone").exit;
        assert_eq!((undone(first), tree.get(NOFILE)), (Exit::Done, text), "{first}");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{first}");
        assert_eq!(undone(last), Exit::Done, "{last}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{first}");
    }
}

#[test]
fn a_unit_that_has_enough_is_left_alone() {
    let tree = tree("infinity");
    let plan = planned(&tree.session());
    assert!(!plan.steps.iter().any(|step| step.place == NOFILE), "{:?}", plan.steps);
    let row = plan.skipped.iter().find(|row| row.place == NOFILE).expect("told");
    assert_eq!(row.verdict.verdict, VerdictKind::Moot);
    assert_eq!(row.verdict.reason, format!("{UNIT}:6 gives infinity"));
}

/// What a process runs with is of its last start, and what an undo took away was a part of that.
#[test]
fn an_apply_behind_an_undo_writes_the_same_again_before_the_unit_is_restarted() {
    let tree = tree("1024:524288");
    tree.put(UNIT, "[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/x\n");
    let group = "/sys/fs/cgroup/system.slice/redis-server.service";
    tree.put(&format!("{group}/cgroup.procs"), "77\n");
    applied(&tree.session());
    let first = tree.get(NOFILE);
    assert!(first.ends_with("[Service]\nLimitNOFILE = 65536:524288\n"), "{first}");
    // It is restarted with it, and not when the file goes.
    let row = "Max open files            65536                524288               files\n";
    tree.put("/proc/77/limits", row);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(tree.get(NOFILE), "");
    applied(&tree.session());
    assert_eq!(tree.get(NOFILE), first);
}

#[test]
fn a_hard_limit_is_kept_by_every_profile_over_another_and_back() {
    let tree = tree("1024:524288");
    let start = tree.snapshot();
    applied(&tree.session());
    let row = |tree: &Tree, source: &Source| {
        let drift = check(&tree.session(), Some(source)).expect("checked").drift;
        drift.knobs.into_iter().find(|row| row.place == NOFILE).expect("it is looked at")
    };
    assert_eq!(row(&tree, &wanted()).state, DriftState::Ok, "a number alone is meant by it");
    let more = profile("more", &[("unit.nofile", of_redis("100000"))]);
    let plan = plan(&tree.session(), &more, &PlanOptions::default()).expect("a plan");
    assert_eq!(plan.steps[0].wanted, "100000:524288");
    apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn no_limit_is_called_safe_that_may_be_a_lower_one() {
    let endless = profile("endless", &[("unit.nofile", of_redis("infinity"))]);
    let share = profile("share", &[("unit.tasks_max", of_redis("32768"))]);
    for (source, why) in [(&endless, "close all of them"), (&share, "cannot be told")] {
        let tree = tree("1024:524288");
        let safe = plan(&tree.session(), source, &PlanOptions::default()).expect("a plan");
        assert_eq!(safe.steps, []);
        let reason = &safe.skipped[0].verdict.reason;
        assert!(reason.contains(why) && reason.ends_with(": --allow availability"), "{reason}");
        let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
        assert_eq!(plan(&tree.session(), source, &options).expect("a plan").steps.len(), 1);
    }
    let tree = tree("1024:524288");
    let group = "/sys/fs/cgroup/system.slice/redis-server.service";
    tree.put(&format!("{group}/cgroup.procs"), "77\n");
    tree.put(&format!("{group}/pids.max"), "4915\n");
    let safe = plan(&tree.session(), &share, &PlanOptions::default()).expect("a plan");
    assert_eq!(safe.steps.len(), 1, "more than what runs: {:?}", safe.skipped);
    tree.put(&format!("{group}/pids.max"), "99999\n");
    assert_eq!(plan(&tree.session(), &share, &PlanOptions::default()).expect("a plan").steps, []);
}

#[test]
fn a_unit_of_another_name_is_none_of_it() {
    let tree = Tree::copy_of("metal-2s");
    tree.remove("/usr/lib/systemd/system/redis-server.service");
    let plan = planned(&tree.session());
    assert_eq!(plan.steps, []);
    assert!(plan.skipped.iter().all(|row| row.verdict.verdict == VerdictKind::Absent), "{:?}", plan.skipped);
}

/// Debian's PostgreSQL is an instance, which no file of its own tells of.
#[test]
fn an_instance_and_its_template_are_meant_by_their_names() {
    let template = ("/usr/lib/systemd/system/pg@.service", "[Service]\nLimitNOFILE=1024\n");
    let link = "/run/systemd/generator/pg.service.wants/pg@15-main.service";
    for (only, files, unit) in [
        ("pg@15-main", vec![template], Some("pg@15-main")),
        ("pg@", vec![template], Some("pg@")),
        ("pg@*", vec![template, (link, template.1)], Some("pg@15-main")),
        ("pg@*", vec![template], None),
        ("pg@15-main", vec![], None),
    ] {
        let tree = Tree::copy_of("metal-2s");
        files.iter().for_each(|(path, text)| tree.put(path, text));
        let start = tree.snapshot();
        let (value, only_one) = ("65536:65536".to_owned(), Some(only.to_owned()));
        let case = Case { value, only: only_one, needs: Conditions::default() };
        let source = profile("limits", &[("unit.nofile", Want::Case(Box::new(case)))]);
        let plan = plan(&tree.session(), &source, &PlanOptions::default()).expect("a plan");
        let places: Vec<&str> = plan.steps.iter().map(|step| step.place.as_str()).collect();
        let place = unit.map(|unit| format!("/etc/systemd/system/{unit}.service.d/zz-planish-nofile.conf"));
        assert_eq!(places, place.iter().map(String::as_str).collect::<Vec<_>>(), "{only}");
        let done = apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
        let restart = match only {
            "pg@" => "systemctl restart 'pg@*.service'",
            _ => "systemctl restart pg@15-main.service",
        };
        assert_eq!(done.hints.iter().any(|hint| hint.ends_with(restart)), unit.is_some(), "{:?}", done.hints);
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{only}");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

#[test]
fn a_file_that_is_read_later_is_named_with_its_line() {
    let tree = tree("1024");
    applied(&tree.session());
    let row = |tree: &Tree| -> KnobCheck {
        let drift = check(&tree.session(), None).expect("checked").drift;
        drift.knobs.into_iter().find(|row| row.place == NOFILE).expect("it is looked at")
    };
    assert_eq!(row(&tree).state, DriftState::Ok);
    let theirs = "/etc/systemd/system/redis-server.service.d/zzz-own.conf";
    tree.put(theirs, "[Service]\nLimitNOFILE=4096\n");
    let seen = row(&tree);
    assert_ne!(seen.state, DriftState::Ok, "{seen:?}");
    assert!(seen.because.as_deref().is_some_and(|why| why.contains(&format!("{theirs}:2"))), "{seen:?}");
}

/// What lies in /run counts at the next start of the service, and no more after a boot.
#[test]
fn a_drop_in_of_this_boot_that_is_read_later_is_not_what_the_next_one_gives() {
    let tree = tree("1024");
    applied(&tree.session());
    let row = || -> KnobCheck {
        let drift = check(&tree.session(), None).expect("checked").drift;
        drift.knobs.into_iter().find(|row| row.place == NOFILE).expect("it is looked at")
    };
    let columns = |seen: &KnobCheck| {
        let one = |value: &Option<BootValue>| {
            value.as_ref().map(|found| format!("{} {}", found.value, found.source)).unwrap_or_default()
        };
        (one(&seen.persisted), one(&seen.next_boot))
    };
    let theirs = "/run/systemd/system/redis-server.service.d/zzz-own.conf";
    tree.put(theirs, "[Service]\nLimitNOFILE=4096\n");
    let seen = row();
    let ours = format!("65536 {NOFILE}");
    assert_eq!(seen.state, DriftState::LostAtBoot, "{seen:?}");
    assert_eq!(columns(&seen), (format!("4096 {theirs}:2"), ours));
    let why = format!("{theirs}:2 is read after it and will set 4096 until a boot: take out {theirs}:2");
    assert!(seen.because.as_deref().is_some_and(|because| because.starts_with(&why)), "{seen:?}");
    // Behind it is one that stays.
    let stays = "/etc/systemd/system/redis-server.service.d/zzy-own.conf";
    tree.put(stays, "[Service]\nLimitNOFILE=8192\n");
    assert_eq!(columns(&row()), (format!("4096 {theirs}:2"), format!("8192 {stays}:2")));
    tree.remove(theirs);
    assert_eq!(columns(&row()), (format!("8192 {stays}:2"), format!("8192 {stays}:2")));
    // What it hid by its name comes back with the boot.
    tree.remove(stays);
    tree.put("/usr/lib/systemd/system/redis-server.service.d/zzz-own.conf", "[Service]\nLimitNOFILE=2048\n");
    tree.put(theirs, "[Service]\nLimitNOFILE=4096\n");
    let hidden = "2048 /usr/lib/systemd/system/redis-server.service.d/zzz-own.conf:2";
    assert_eq!(columns(&row()), (format!("4096 {theirs}:2"), hidden.to_owned()));
    tree.remove(theirs);
    tree.remove("/usr/lib/systemd/system/redis-server.service.d/zzz-own.conf");
    // What a generator makes it makes again.
    let made = "/run/systemd/generator/redis-server.service.d/zzz-made.conf";
    tree.put(made, "[Service]\nLimitNOFILE=4096\n");
    assert_eq!(columns(&row()), (format!("4096 {made}:2"), format!("4096 {made}:2")));
    let why = row().because.unwrap_or_default();
    assert!(why.contains(&format!("a generator makes {made} at each boot")), "{why}");
}

/// Variables of a service: one of several in a line of its unit, lists of which nothing is lost, and a file that has
/// the last word.
#[test]
fn a_variable_of_a_service_comes_and_goes_and_what_wins_over_it_is_named() {
    const TUNABLES: &str = "/etc/systemd/system/redis-server.service.d/zz-planish-glibc-tunables.conf";
    const VARIABLES: &str = "/etc/default/redis-server";
    let planned = |tree: &Tree, value: &str| {
        let source = profile("variables", &[("unit.glibc_tunables", of_redis(value))]);
        plan(&tree.session(), &source, &PlanOptions::default()).expect("a plan")
    };
    let tree = tree("1024");
    let lines = "EnvironmentFile=-/etc/default/redis-server\n\
                 Environment=\"A=b c\" \"GLIBC_TUNABLES=glibc.pthread.rseq=0\"\n";
    tree.put(UNIT, &(tree.get(UNIT) + lines));
    let start = tree.snapshot();
    let enough = planned(&tree, "glibc.pthread.rseq=0");
    let why = &enough.skipped[0].verdict.reason;
    assert!(enough.steps.is_empty() && why == &format!("{UNIT}:8 gives glibc.pthread.rseq=0"), "{enough:#?}");
    let lossy = planned(&tree, "glibc.malloc.hugetlb=1");
    assert_eq!(lossy.steps, [], "rseq=0 would be lost");
    let why = format!("{:?}", lossy.skipped);
    assert!(why.contains(&format!("takes away glibc.pthread.rseq=0, which {UNIT}:8 gives")), "{why}");
    let both = planned(&tree, "glibc.malloc.hugetlb=1:glibc.pthread.rseq=0");
    let done = apply(&tree.session(), &both, &ApplyOptions::default()).expect("applied");
    assert!(
        done.hints.iter().any(|hint| hint.contains("systemctl restart redis-server")),
        "{:?}",
        done.hints
    );
    let text = "[Service]\nEnvironment = GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.pthread.rseq=0\n";
    assert!(tree.get(TUNABLES).ends_with(text), "{}", tree.get(TUNABLES));
    let row = |tree: &Tree| -> KnobCheck {
        let drift = check(&tree.session(), None).expect("checked").drift;
        drift.knobs.into_iter().find(|row| row.place == TUNABLES).expect("it is looked at")
    };
    assert_eq!(row(&tree).state, DriftState::Ok);
    let theirs = "/etc/systemd/system/redis-server.service.d/zzz-own.conf";
    for (file, text) in [
        (VARIABLES, "# of ours\n  GLIBC_TUNABLES = glibc.malloc.hugetlb=2\n"),
        (theirs, "[Service]\nEnvironment=\n"),
        (theirs, "[Service]\nUnsetEnvironment=A GLIBC_TUNABLES\n"),
    ] {
        tree.put(file, text);
        let seen = row(&tree);
        assert_ne!(seen.state, DriftState::Ok, "{text}: {seen:?}");
        assert!(
            seen.because.as_deref().is_some_and(|why| why.contains(&format!("{file}:2"))),
            "{text}: {seen:?}"
        );
        tree.remove(file);
    }
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_file_of_somebody_else_and_a_plan_with_other_lines_are_refused() {
    let tree = tree("1024");
    tree.put(NOFILE, "[Service]\nLimitNOFILE=2048\n");
    let plan = planned(&tree.session());
    let error = apply(&tree.session(), &plan, &ApplyOptions::default()).expect_err("theirs");
    assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error:?}");
    tree.remove(NOFILE);
    let made = planned(&tree.session());
    let mut steps = made.steps.clone();
    steps[0].wanted = "1\nExecStartPre=/bin/true".to_owned();
    let forged = Plan::new(made.profile, made.host_id, made.boot_id, steps, Vec::new());
    let error = apply(&tree.session(), &forged, &ApplyOptions::default()).expect_err("forged");
    assert!(matches!(error, PipelineError::Forged { .. }), "{error:?}");
}

#[test]
fn limits_survive_kills() {
    let counter = Fuse::counting();
    applied(&fused(tree("1024").options(), &counter));
    for operation in (0..counter.operations()).step_by(5) {
        let tree = tree("1024");
        let start = tree.snapshot();
        let moment = if operation % 2 == 0 { Moment::Before } else { Moment::After };
        until_killed(|| applied(&fused(tree.options(), &Fuse::at(operation, moment))));
        undo(&tree.session(), Target::All, false).expect("undone");
        for entry in tree.entries() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "killed {moment:?} operation {operation}");
    }
}

/// Limits of log-ins are raised because the highest was: who has one of them could log in no more.
#[test]
fn neither_undo_nor_timer_shuts_out_who_was_given_more_files_since() {
    const MOST: &str = "/proc/sys/fs/nr_open";
    const GIVEN: &str = "/etc/security/limits.d/90-db.conf";
    let source = profile("most", &[("fs.nr_open", Want::Int(2_000_000))]);
    for (given, stays) in [("1048577", true), ("2000000", true), ("1048576", false), ("2000001", false)] {
        let tree = Tree::copy_of("metal-2s");
        tree.put(MOST, "1048576\n");
        let plan = plan_of(&tree.session(), &source);
        let options = ApplyOptions { confirm_seconds: Some(600), ..ApplyOptions::default() };
        apply(&without_watcher(&tree), &plan, &options).expect("applied");
        tree.put(GIVEN, &format!("@dba - nofile 1024\n# dba\n@dba hard nofile {given}\n"));
        let undone = take_late(&tree, 601);
        let (exit, most) = if stays { (Exit::Findings, "2000000") } else { (Exit::Done, "1048576") };
        assert_eq!((undone.exit, tree.get(MOST).trim()), (exit, most), "{given}: {:?}", undone.hints);
        let told = format!("{GIVEN}:3 gives {given}, and with no more than 1048576 for a process nobody");
        assert_eq!(undone.hints.concat().contains(&told), stays, "{:?}", undone.hints);
        if stays {
            let again = undo(&tree.session(), Target::All, false).expect("it has begun");
            assert_eq!((again.exit, tree.get(MOST).trim()), (Exit::Findings, "2000000"));
            assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Findings, "it is told");
            tree.put(GIVEN, "@dba hard nofile 65536\n");
            assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
            assert_eq!(tree.get(MOST).trim(), "1048576");
        }
    }
}
