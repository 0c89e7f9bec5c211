//! A limit that a process of ours holds: set, lost with its process, kept for the next boot, put back.

use planish_model::{BootValue, DriftState, EntryId, Exit, OutcomeKind, Plan, Want};
use planish_pipeline::{ApplyOptions, Session, Source, Target, apply, check, undo};

use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::tree::*;

const PLACE: &str = "/planish/held/cpu_dma_latency_us";
const UNIT: &str = "/etc/systemd/system/planish-hold.service";
const STARTS: &str = "/etc/systemd/system/multi-user.target.d/90-planish-hold.conf";

/// The small host, with systemd, where nothing is held.
fn host() -> Tree {
    let tree = Tree::new();
    let meta = tree.get("/meta.toml");
    tree.put(
        "/meta.toml",
        &meta.replace("\"/sys/kernel/mm/**\",", "\"/sys/kernel/mm/**\", \"/planish/held/*\","),
    );
    tree.put(PLACE, "2000000000\n");
    tree.put("/run/systemd/system/.keep", "");
    tree
}

fn limit(name: &str, limit_us: i64) -> Source {
    profile(name, &[("cpu.dma_latency_us", Want::Int(limit_us))])
}

fn planned(session: &Session, source: &Source) -> Plan {
    plan_of(session, source)
}

fn kept(tree: &Tree, source: &Source) {
    let session = tree.session();
    let applied = apply(&session, &planned(&session, source), &PERSIST).expect("applied");
    assert_eq!((applied.exit, applied.unpersisted.len()), (Exit::Done, 0), "{applied:#?}");
}

/// What the unit starts.
fn starts(tree: &Tree) -> Vec<String> {
    let unit = tree.get(UNIT);
    unit.lines().filter(|line| line.starts_with("ExecStart=")).map(str::to_owned).collect()
}

#[test]
fn a_limit_is_held_for_the_next_boot_too_and_goes_with_its_entry() {
    let tree = host();
    let start = tree.snapshot();
    kept(&tree, &limit("a", 20));
    assert_eq!(tree.get(PLACE), "20\n");
    assert_eq!(starts(&tree), ["ExecStart=/usr/bin/planish hold cpu-dma-latency 20"]);
    assert!(tree.get(STARTS).ends_with("[Unit]\nWants=planish-hold.service\n"));
    let after = "\nRequiresMountsFor=/usr/bin/planish\n";
    assert!(tree.get(UNIT).contains(after), "a program on a disk of its own would be looked for too soon");
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.place == PLACE).expect("a row");
    let brought = BootValue::new("20", "/etc/systemd/system/planish-hold.service:8");
    assert_eq!(row.persisted, Some(brought));
    assert_eq!(checked.exit, Exit::Done, "{:#?}", checked.drift);
    let whole = tree.get(UNIT);
    kept(&tree, &limit("b", 50));
    assert_eq!(starts(&tree), ["ExecStart=/usr/bin/planish hold cpu-dma-latency 50"], "one process, not two");
    assert_eq!(tree.get(UNIT).replace(" 50\n", " 20\n"), whole, "every line is where it was");
    // After a boot it is ours as if it had been set in it, and undo gives back what is below.
    tree.reboot(&start);
    assert_eq!(tree.get(PLACE), "50\n");
    assert_eq!(check(&tree.session(), Some(&limit("b", 50))).expect("checked").exit, Exit::Done);
    undo(&tree.session(), Target::Entry(EntryId(2)), false).expect("undone");
    assert_eq!((tree.get(PLACE).as_str(), tree.get(UNIT) == whole), ("20\n", true));
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn check_sees_that_the_process_is_gone_and_undo_keeps_what_others_made_of_it() {
    let tree = host();
    let session = tree.session();
    let source = limit("a", 20);
    let applied = apply(&session, &planned(&session, &source), &ApplyOptions::default()).expect("applied");
    assert_eq!(applied.exit, Exit::Done, "{applied:#?}");
    // Somebody killed the process.
    tree.put(PLACE, "2000000000\n");
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.place == PLACE).expect("a row");
    assert_eq!((row.state, checked.exit), (DriftState::Drift, Exit::Findings), "{row:#?}");
    assert_eq!(row.running.as_deref(), Some("2000000000"));
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    let kind = undone.entries[0].1[0].outcome;
    assert_eq!((undone.exit, kind), (Exit::Done, OutcomeKind::Satisfied), "nothing is left to be ended");
}

#[test]
fn a_unit_that_others_have_run_something_else_is_a_finding() {
    for (path, text) in [
        ("/etc/systemd/system/planish-hold.service.d/x.conf", "[Service]\nExecStart=\nExecStart=/bin/true\n"),
        ("/run/systemd/system/planish-hold.service.d/x.conf", "[Unit]\nConditionPathExists=/nowhere\n"),
        ("/usr/lib/systemd/system/service.d/x.conf", "[Unit]\nAssertHost=other\n"),
        ("/etc/systemd/system.control/planish-hold.service", ""),
        ("/run/systemd/generator.early/planish-hold.service", ""),
        ("/etc/systemd/system/service.d/50-hardening.conf", "[Service]\nPrivateDevices=yes\n"),
        ("/etc/systemd/system/planish-hold.service.d/x.conf", "[Service]\nExecStartPre=/bin/false\n"),
        ("/etc/systemd/system/planish-hold.service.d/x.conf", "[Service]\nType=oneshot\nUser=nobody\n"),
        ("/etc/systemd/system/planish-hold.service.d/x.conf", "[Service]\nMemoryDenyWriteExecute=yes\n"),
        (
            "/etc/systemd/system/planish-hold.service.d/x.conf",
            "[Service]\nInaccessiblePaths=/dev/cpu_dma_latency\n",
        ),
    ] {
        let tree = host();
        kept(&tree, &limit("a", 20));
        let harmless =
            "[Unit]\nDescription=x\n[Service]\nTimeoutStopSec=5\nMemoryMax=1G\nX-Note=x\nLimitNOFILE=9\n";
        tree.put("/usr/lib/systemd/system/service.d/time.conf", harmless);
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
        tree.put(path, text);
        let checked = check(&tree.session(), None).expect("checked");
        let told: Vec<String> = checked.changed_files.iter().map(ToString::to_string).collect();
        assert_eq!((checked.exit, told.len()), (Exit::Findings, 1), "{path}: {told:?}");
        assert!(told[0].starts_with(path) && told[0].contains(UNIT), "{told:?}");
        tree.remove(path);
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    }
}

#[test]
fn a_unit_that_is_no_text_or_no_file_any_more_is_a_finding() {
    for change in [
        &|tree: &Tree| tree.put(UNIT, [tree.get(UNIT).as_bytes(), b"# caf\xe9\n"].concat().as_slice()),
        &|tree: &Tree| {
            tree.remove(UNIT);
            tree.put(&format!("{UNIT}/x"), "");
        },
    ] as [&dyn Fn(&Tree); 2]
    {
        let tree = host();
        kept(&tree, &limit("a", 20));
        change(&tree);
        let checked = check(&tree.session(), None).expect("checked");
        let told: Vec<String> = checked.changed_files.iter().map(ToString::to_string).collect();
        assert_eq!((checked.exit, told.len()), (Exit::Findings, 1), "{told:?}");
        assert!(told[0].contains("was changed since entry 1"), "{told:?}");
    }
}

#[test]
fn where_nothing_starts_it_at_boot_that_is_said() {
    let tree = host();
    tree.remove("/run/systemd/system/.keep");
    std::fs::remove_dir(tree.root().join("run/systemd/system")).expect("ours");
    let session = tree.session();
    let applied = apply(&session, &planned(&session, &limit("a", 20)), &PERSIST).expect("applied");
    assert_eq!(applied.unpersisted.len(), 1, "{:#?}", applied.unpersisted);
    assert!(applied.unpersisted[0].reason.contains("no systemd"), "{:#?}", applied.unpersisted);
    let none = plan_of(&tree.session(), &limit("none", 2_000_000_000));
    assert_eq!(none.steps[0].wanted, "2000000000");
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_behind() {
    let scene = |session: &Session| {
        apply(session, &planned(session, &limit("a", 20)), &PERSIST).expect("applied");
    };
    assert_clean(&kill_everywhere(&host, &|_| {}, &scene));
    assert_clean(&kill_everywhere(&host, &scene, &undo_everything));
}
