//! Every read-only command against every recorded machine: `tests/golden/<host>/<command>.snap`, text and JSON,
//! and the JSON held against its schema.

use std::collections::BTreeSet;

use crate::planish::{self, Run};
use crate::recorded::{hosts, repository};

/// The commands and the names of their goldens. What needs a service or a second host is in `tests/scripts`.
const COMMANDS: [(&str, &[&str]); 9] = [
    ("doctor", &["doctor"]),
    ("knobs", &["knobs"]),
    ("topo", &["topo"]),
    ("plan-series", &["plan", "series"]),
    ("plan-postgres", &["plan", "postgres"]),
    ("plan-low-latency", &["plan", "low-latency"]),
    ("check-low-latency", &["check", "low-latency"]),
    ("plan-realtime", &["plan", "realtime"]),
    ("check-realtime", &["check", "realtime"]),
];

/// The machine whose golden keeps `knobs --json`.
const WITH_ALL_TEXTS: &str = "metal-2s";

/// The machine whose JSON is held to its schema and not kept.
const LARGE: &str = "metal-256c";

/// Rows of which no machine here has anything, and why none has.
const NOWHERE: [(&str, &str); 9] = [
    ("unit.*", "a file of ours: a profile writes it"),
    ("systemd.cpu_affinity", "a file of ours: a profile writes it"),
    ("cpu.platform_profile", "laptops and workstations have it"),
    ("hugepages.32m", "kernels for Arm with base pages of 16 KiB have it, or of 4 KiB"),
    ("kernel.sched_migration_cost_ns", "until Linux 5.13"),
    ("kernel.sched_min_granularity_ns", "until Linux 5.13"),
    ("kernel.sched_wakeup_granularity_ns", "until Linux 5.13"),
    ("sched.ktimers", "kernels with PREEMPT_RT have it, since Linux 6.6"),
    ("boot.*", "every kernel takes every argument: there is no file to have"),
];

/// One run as a golden: streams apart, since a pipe takes only one of them. The machine is named as from the
/// repository: a text with the place of this checkout would be broken into lines by the length of it.
fn golden(name: &str, args: &[&str]) -> String {
    let home = tempfile::tempdir().expect("a temporary folder");
    let root = format!("hosts/{name}");
    let run: Run =
        planish::command(home.path(), [&["--root", &root, "--clock", "1800000000"], args].concat())
            .current_dir(repository())
            .output()
            .expect("the binary starts")
            .into();
    if args.contains(&"--json") {
        let envelope = run.envelope();
        assert_eq!(envelope["exit"], run.exit, "{}", run.stdout);
        assert!(envelope["result"].is_object(), "{}", run.stdout);
    }
    let text = format!("{}--- stderr\n{}--- exit {}\n", run.stdout, run.stderr, run.exit);
    text.replace(&format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION")), "\"version\": \"[VERSION]\"")
}

#[test]
fn every_recorded_host_answers_as_recorded() {
    for (name, _) in hosts() {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(repository().join("tests/golden").join(&name));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let _bound = settings.bind_to_scope();
        for (golden_name, args) in COMMANDS {
            insta::assert_snapshot!(golden_name, golden(&name, args));
            let json = golden(&name, &[args, &["--json"]].concat());
            // The catalogue's texts are the same on every machine: one has them all. A row for each of 256 CPUs says
            // no more than a row for each of eight. What realtime has besides is boot parameters, in a line each.
            let told_elsewhere =
                golden_name == "knobs" || golden_name.ends_with("-realtime") || name == LARGE;
            if !told_elsewhere || name == WITH_ALL_TEXTS {
                insta::assert_snapshot!(format!("{golden_name}.json"), json);
            }
        }
    }
}

/// Why two machines differ, each beside the one that is larger than most: it is left without a row on no machine.
#[test]
fn each_host_differs_from_another_as_recorded() {
    let home = tempfile::tempdir().expect("a temporary folder");
    for (name, _) in hosts().into_iter().filter(|(name, _)| name != WITH_ALL_TEXTS) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(repository().join("tests/golden").join(&name));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let _bound = settings.bind_to_scope();
        let (left, right) = (format!("hosts/{WITH_ALL_TEXTS}"), format!("hosts/{name}"));
        let mut command = planish::command(home.path(), ["diff", &left, &right]);
        let run: Run = command.current_dir(repository()).output().expect("the binary starts").into();
        insta::assert_snapshot!(
            "diff",
            format!("{}--- stderr\n{}--- exit {}\n", run.stdout, run.stderr, run.exit)
        );
    }
}

#[test]
fn every_row_of_the_catalogue_has_a_verdict_on_every_machine() {
    let rows = planish_model::Catalogue::embedded().expect("sound").knobs().count();
    let hosts = hosts();
    assert!(hosts.len() >= 14, "{} machines", hosts.len());
    for (name, path) in hosts {
        let run = planish::run(["--root", path.to_str().expect("a path"), "--json", "knobs"]);
        let envelope = run.envelope();
        let knobs = envelope["result"]["knobs"].as_array().expect("rows");
        assert_eq!(knobs.len(), rows, "{name}");
        let missing: Vec<&str> = knobs
            .iter()
            .filter(|knob| knob["verdict"] == "not-recorded")
            .filter_map(|knob| knob["id"].as_str())
            .collect();
        // A verdict that is only "not recorded" says nothing of a machine.
        assert_eq!(missing, [""; 0], "{name}: rows are not recorded");
        for knob in knobs {
            let (verdict, reason) = (knob["verdict"].as_str(), knob["reason"].as_str());
            let plain = verdict == Some("settable");
            assert!(
                verdict.is_some() && (plain || reason.is_some_and(|why| !why.is_empty())),
                "{name}: {knob}"
            );
        }
    }
}

/// A test of a row on machines of which none has it says nothing. And a machine that somebody wrote by hand says which
/// rows it was left without on purpose: what is not among them and not there either is "not recorded".
#[test]
fn every_row_has_a_place_on_some_machine() {
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    let mut somewhere = BTreeSet::new();
    for (name, path) in hosts() {
        let host = planish_host::Host::open(&path).expect("a host");
        let seen = planish_observe::observe(&host, &catalogue);
        let listed = host.meta().and_then(|meta| meta.absent.clone());
        assert!(listed.is_some(), "{name} does not say which rows were looked for in vain");
        for (id, readings) in &seen.knobs {
            let is_listed = listed.iter().flatten().any(|listed| listed == id.as_str());
            if readings.iter().any(|reading| reading.access != planish_model::Access::Absent) {
                somewhere.insert(id.to_string());
                assert!(!is_listed, "{name} has {id}, and is said to have nothing of it");
            } else {
                assert_eq!(seen.not_recorded.contains(id), !is_listed, "{name} {id}");
            }
        }
        let unknown = |id: &&String| catalogue.knob(&planish_model::KnobId::new(id.as_str())).is_err();
        assert_eq!(listed.iter().flatten().find(unknown), None, "{name}: no row of the catalogue");
    }
    let is_named = |id: &str| {
        NOWHERE.iter().any(|(name, _)| match name.strip_suffix('*') {
            Some(family) => id.starts_with(family),
            None => id == *name,
        })
    };
    let nowhere: Vec<&str> = catalogue.knobs().map(|knob| knob.id.as_str()).collect();
    let nowhere = nowhere.into_iter().filter(|id| !somewhere.contains(*id) && !is_named(id));
    assert_eq!(nowhere.collect::<Vec<_>>(), [""; 0], "on no machine");
}

/// A record of a record answers like the original.
#[test]
fn a_recording_is_complete() {
    let home = tempfile::tempdir().expect("a temporary folder");
    for (name, path) in hosts() {
        let original = path.to_str().expect("a path");
        let copy = home.path().join(&name);
        let copy = copy.to_str().expect("a path");
        let recorded = planish::run(["--root", original, "host", "record", copy]);
        assert_eq!(recorded.exit, 0, "{name}: {}", recorded.stderr);
        let diff = planish::run(["--json", "host", "diff", original, copy]);
        assert_eq!(diff.exit, 0, "{name}: {}", diff.stdout);
        let topo = |root: &str| planish::run(["--json", "--root", root, "topo"]).envelope()["result"].clone();
        assert_eq!(topo(original), topo(copy), "{name}");
        // Cures name the machine that they are for.
        let doctor = |root: &str| {
            let run = planish::run(["--json", "--root", root, "--clock", "1800000000", "doctor"]);
            run.envelope()["result"]["findings"].to_string().replace(root, "ROOT")
        };
        assert_eq!(doctor(original), doctor(copy), "{name}");
    }
}

#[test]
fn two_machines_that_differ_are_findings() {
    let hosts = hosts();
    let [(_, left), (_, right), ..] = hosts.as_slice() else { panic!("two hosts") };
    let diff = planish::run([
        "--json",
        "host",
        "diff",
        left.to_str().expect("a path"),
        right.to_str().expect("a path"),
    ]);
    assert_eq!(diff.exit, 1);
    let differences = diff.envelope()["result"]["differences"].clone();
    let rows = differences.as_array().expect("rows");
    assert!(!rows.is_empty());
    // What one of them does not have is null, and never an empty text beside it.
    let empty = |row: &&serde_json::Value| row["left"] == "" || row["right"] == "";
    assert_eq!(rows.iter().find(empty), None);
    let (left, right) = (left.to_str().expect("a path"), right.to_str().expect("a path"));
    let short = planish::run(["--json", "diff", left, right]);
    assert_eq!((short.exit, short.stdout), (1, diff.stdout), "one command, by two names");
    let wrong = planish::run(["--json", "diff", left]).envelope();
    assert_eq!((&wrong["schema"], &wrong["exit"]), (&"planish.host-diff/1".into(), &2.into()));
}

#[test]
fn the_root_folder_is_this_machine_and_lacks_nothing() {
    for sides in [["live", "/"], ["/", "live"], ["live", "/proc/.."]] {
        let diff = planish::run(["--json", "diff", sides[0], sides[1]]).envelope();
        let rows = diff["result"]["differences"].as_array().expect("rows").clone();
        // What changes by itself may have changed between the two looks.
        let lacking = rows.iter().find(|row| row["left"].is_null() || row["right"].is_null());
        assert_eq!(lacking, None, "{sides:?}");
    }
}

#[test]
fn every_place_is_named_and_arguments_that_are_no_knob_differ_too() {
    let folder = |name: &str| repository().join("hosts").join(name).display().to_string();
    let (left, right) = (folder("metal-2s"), folder("al2023-lockdown"));
    let diff = planish::run(["--json", "diff", &left, &right]).envelope()["result"]["differences"].clone();
    let rows = diff.as_array().expect("rows").clone();
    let of = |what: &str| rows.iter().find(|row| row["what"] == what).cloned();
    let timeout = of("argument.nvme_core.io_timeout").expect("it has one");
    assert_eq!((&timeout["left"], &timeout["right"]), (&serde_json::Value::Null, &"4294967295".into()));
    assert_eq!(of("argument.quiet").expect("the other one has that")["left"], "given");
    for of_one_machine in ["argument.root", "argument.BOOT_IMAGE", "argument.isolcpus"] {
        assert_eq!(of(of_one_machine), None, "a name of one machine, or a knob");
    }
    let text = |more: &[&str]| planish::run([&["diff", &left, &right], more].concat()).stdout;
    let (brief, whole) = (text(&[]), text(&["--verbose"]));
    assert!(whole.lines().count() > brief.lines().count(), "{whole}");
    let is_group = |line: &str| line.split_whitespace().nth(1).is_some_and(|places| places == "cpu0-7");
    assert!(brief.lines().any(is_group) && !whole.lines().any(is_group), "{whole}");
}

#[test]
fn a_tag_of_planish_is_no_difference_and_one_of_no_entry_is_told() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let original = repository().join("hosts/rhel9-guest");
    let copy = home.path().join("copy");
    crate::recorded::copy_tree(&original, &copy);
    let cmdline = copy.join("proc/cmdline");
    let text = std::fs::read_to_string(&cmdline).expect("it is recorded");
    std::fs::write(&cmdline, format!("{} planish.entry=7\n", text.trim_end())).expect("ours");
    let (original, copy) = (original.to_str().expect("a path"), copy.to_str().expect("a path"));
    let diff = planish::run(["--json", "host", "diff", original, copy]);
    assert_eq!(diff.exit, 0, "{}", diff.stdout);

    let name = "00000000000000000000000000000001-5.14.0-570.12.1.el9_6.x86_64.conf";
    let entry = format!("{copy}/boot/loader/entries/{name}");
    let text = std::fs::read_to_string(&entry).expect("it is recorded");
    std::fs::write(&entry, text.replace("\noptions ", "\n# planish entry 7: nosmt\noptions ")).expect("ours");
    let before = planish::run(["--root", original, "check"]);
    let check = planish::run(["--root", copy, "check"]);
    assert_eq!(check.exit, before.exit, "{}", check.stderr);
    let line = format!(
        "/boot/loader/entries/{name}:5 has boot parameters of planish's entry 7, which this journal does"
    );
    assert!(check.stderr.contains(&line) && check.stderr.contains("--state"), "{}", check.stderr);
    assert!(!before.stderr.contains("planish's entry"), "{}", before.stderr);
}

#[test]
fn what_only_the_next_boot_brings_is_a_difference() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let hosts = hosts();
    let (_, original) = hosts.iter().find(|(name, _)| name == "metal-2s").expect("it is there");
    let copy = home.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(original).arg(&copy).status();
    assert!(copied.expect("cp").success());
    let folder = copy.join("etc/sysctl.d");
    std::fs::create_dir_all(&folder).expect("ours");
    std::fs::write(folder.join("90-own.conf"), "# why\nvm.stat_interval = 7\n").expect("ours");
    let (original, copy) = (original.to_str().expect("a path"), copy.to_str().expect("a path"));
    let diff = planish::run(["--json", "host", "diff", original, copy]);
    let differences = diff.envelope()["result"]["differences"].clone();
    let expected = serde_json::json!([{
        "what": "persisted.vm.stat_interval",
        "place": "/proc/sys/vm/stat_interval",
        "left": null,
        "right": "7 (/etc/sysctl.d/90-own.conf)",
    }]);
    assert_eq!(differences, expected);
    assert_eq!(diff.exit, 1);
}

#[test]
fn what_files_give_a_unit_that_both_have_is_a_difference() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let original = repository().join("hosts/metal-2s");
    let copy = home.path().join("copy");
    crate::recorded::copy_tree(&original, &copy);
    let system = copy.join("etc/systemd/system");
    for (unit, text) in [
        (
            "mongod.service.d/a.conf",
            "[Service]\nLimitNOFILE=9999\nCPUAffinity=0 1\nEnvironment=A=1 MALLOC_ARENA_MAX=2\n",
        ),
        ("of-this-one-alone.service", "[Service]\nLimitNOFILE=9999\n"),
    ] {
        let path = system.join(unit);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }
    let (original, copy) = (original.to_str().expect("a path"), copy.to_str().expect("a path"));
    let diff = planish::run(["--json", "diff", original, copy]);
    let rows = diff.envelope()["result"]["differences"].as_array().expect("rows").clone();
    let of = |what: &str, value: &str| {
        let value = format!("{value} (/etc/systemd/system/mongod.service.d/a.conf)");
        serde_json::json!({ "what": what, "place": "mongod.service", "left": null, "right": value })
    };
    let expected = [
        of("given.CPUAffinity", "0-1"),
        of("given.Environment=MALLOC_ARENA_MAX", "2"),
        of("given.LimitNOFILE", "9999"),
    ];
    assert_eq!((rows.as_slice(), diff.exit), (&expected[..], 1), "{rows:#?}");
    assert!(planish::run(["diff", original, copy]).stdout.contains("given.LimitNOFILE mongod.service"));
    // A record has the units of the shipped profiles.
    let record = home.path().join("record");
    let record = record.to_str().expect("a path");
    assert_eq!(planish::run(["--root", copy, "host", "record", record]).exit, 0);
    let kept = planish::run(["diff", copy, record]);
    let differ = kept.stdout.lines().filter(|line| line.starts_with("given.")).count();
    assert_eq!(differ, 0, "{}", kept.stdout);
    let beside = planish::run(["diff", original, record]).stdout;
    assert!(beside.contains("given.LimitNOFILE mongod.service"), "{beside}");
}

/// What a file gives is told under its name, and what an older menu has of it beside.
#[test]
fn a_boot_parameter_that_waits_for_its_menu_is_told_with_the_value_of_its_file() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let hosts = hosts();
    let (_, original) = hosts.iter().find(|(name, _)| name == "metal-2s").expect("it is there");
    let copy = home.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(original).arg(&copy).status();
    assert!(copied.expect("cp").success());
    let folder = copy.join("etc/default/grub.d");
    std::fs::create_dir_all(&folder).expect("ours");
    let line = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT skew_tick=1\"\n";
    std::fs::write(folder.join("90-planish.cfg"), line).expect("ours");
    let (original, copy) = (original.to_str().expect("a path"), copy.to_str().expect("a path"));
    let diff = planish::run(["--json", "host", "diff", original, copy]);
    let expected = serde_json::json!([{
        "what": "persisted.boot.skew_tick",
        "place": "cmdline:skew_tick",
        "left": null,
        "right": "1 (/etc/default/grub.d/90-planish.cfg; the menu was not made anew, and gives (not given))",
    }]);
    assert_eq!(diff.envelope()["result"]["differences"], expected);
}
