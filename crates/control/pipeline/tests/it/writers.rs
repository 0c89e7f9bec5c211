//! Each second writer of the catalogue by name, on a machine where it runs: found, named in the plan, and what to type
//! so that one of the two owns each place.

use std::collections::BTreeSet;

use planish_model::{Case, Conditions, DriftState, Exit, Plan, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Session, Source, apply, check, doctor, plan};

use crate::tree::*;

/// A second writer as it shows itself.
struct Shown {
    id: &'static str,
    /// What it leaves lying about.
    files: &'static [(&'static str, &'static str)],
    /// A knob that it sets, and a value that `metal-2s` does not have yet.
    wanted: (&'static str, Want),
    /// A piece of the evidence, of what to type so that planish alone writes, and so that it leaves the places alone.
    told: [&'static str; 3],
}

fn word(text: &str) -> Want {
    Want::Text(text.to_owned())
}

/// What only texts tell of: it runs at a boot.
fn shown_by_texts() -> Vec<Shown> {
    vec![
        Shown {
            id: "rc.local",
            files: &[("/etc/rc.local", "#!/bin/sh\nsysctl -w vm.swappiness=60\n")],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/rc.local names knobs", "chmod a-x /etc/rc.local", ""],
        },
        Shown {
            id: "init-scripts",
            files: &[
                ("/usr/lib/systemd/system-generators/systemd-sysv-generator", ""),
                ("/etc/rc3.d/S01tune", "#!/bin/sh\nsysctl -w vm.swappiness=60\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/rc3.d/S01tune names knobs", "chkconfig NAME off", ""],
        },
        Shown {
            id: "units",
            files: &[
                ("/run/systemd/system/.keep", ""),
                (
                    "/etc/systemd/system/own.service",
                    "[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=60\n",
                ),
                ("/etc/systemd/system/multi-user.target.wants/own.service", ""),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/systemd/system/own.service names knobs", "systemctl disable --now", ""],
        },
        Shown {
            id: "cron",
            files: &[
                ("/proc/818/comm", "cron\n"),
                ("/etc/cron.d/own", "# vm.stat_interval\n@reboot root sysctl -w vm.swappiness=60\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/cron.d/own names knobs", "take the lines out of the table", ""],
        },
        Shown {
            id: "cron.daily",
            files: &[
                ("/proc/818/comm", "cron\n"),
                ("/etc/cron.daily/own", "#!/bin/sh\necho 60 > /proc/sys/vm/swappiness\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/cron.daily/own names knobs", "chmod a-x", ""],
        },
        Shown {
            id: "udev-programs",
            files: &[
                ("/etc/udev/rules.d/60-own.rules", "SUBSYSTEM==\"block\", RUN+=\"/usr/local/sbin/own %k\"\n"),
                ("/usr/local/sbin/own", "#!/bin/sh\necho 60 > /proc/sys/vm/swappiness\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/udev/rules.d/60-own.rules names knobs", "in /etc/udev/rules.d", ""],
        },
    ]
}

/// The same of packages that set frequencies and files of /sys at a boot.
fn shown_by_packages() -> Vec<Shown> {
    vec![
        Shown {
            id: "sysfsutils",
            files: &[("/etc/sysfs.conf", "devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave\n")],
            wanted: ("cpu.governor", word("performance")),
            told: ["/etc/sysfs.conf names knobs", "/etc/sysfs.conf", ""],
        },
        Shown {
            id: "cpufrequtils",
            files: &[("/etc/default/cpufrequtils", "ENABLE=\"true\"\nGOVERNOR=\"powersave\"\n")],
            wanted: ("cpu.governor", word("performance")),
            told: ["/etc/default/cpufrequtils names knobs", "ENABLE=\"false\"", ""],
        },
        Shown {
            id: "cpupower",
            files: &[
                ("/run/systemd/system/.keep", ""),
                ("/etc/systemd/system/multi-user.target.wants/cpupower.service", ""),
                ("/etc/sysconfig/cpupower", "CPUPOWER_START_OPTS=\"frequency-set -g powersave\"\n"),
            ],
            wanted: ("cpu.governor", word("performance")),
            told: ["enabled for the next boot", "systemctl disable --now cpupower", ""],
        },
    ]
}

/// What runs at a boot, and is gone afterwards.
const OF_BOOT: [&str; 7] =
    ["rc.local", "init-scripts", "units", "udev-programs", "sysfsutils", "cpufrequtils", "cpupower"];

fn shown() -> Vec<Shown> {
    let others = vec![
        Shown {
            id: "cloud-init",
            files: &[
                ("/run/cloud-init/enabled", ""),
                ("/etc/cloud/cloud.cfg.d/90-own.cfg", "bootcmd:\n  - sysctl -w vm.swappiness=60\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/etc/cloud/cloud.cfg.d/90-own.cfg", "cloud-init query userdata", ""],
        },
        Shown {
            id: "tuned",
            files: &[
                ("/proc/812/comm", "tuned\n"),
                ("/etc/tuned/active_profile", "mine\n"),
                ("/etc/tuned/profiles/mine/tuned.conf", "[sysctl]\nvm.swappiness=5\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["process 812 is tuned", "tuned-adm off", "[sysctl] drop=vm.swappiness"],
        },
        Shown {
            id: "saptune",
            files: &[
                ("/run/saptune/saved_state/2382421", "{}\n"),
                ("/run/saptune/parameter/vm.swappiness", "{}\n"),
            ],
            wanted: ("vm.swappiness", Want::Int(1)),
            told: ["/run/saptune/saved_state is there", "saptune service stop", "/etc/saptune/override/NOTE"],
        },
        Shown {
            id: "irqbalance",
            files: &[("/proc/813/comm", "irqbalance\n")],
            wanted: ("irq.default_affinity", word("0f")),
            told: ["process 813 is irqbalance", "systemctl disable --now irqbalance", ""],
        },
        Shown {
            id: "numad",
            files: &[("/proc/814/comm", "numad\n"), ("/run/numad.pid", "814\n")],
            wanted: ("thp.khugepaged.scan_sleep_ms", Want::Int(20_000)),
            told: ["process 814 is numad", "systemctl disable --now numad", "numad -x PID"],
        },
        Shown {
            id: "power-profiles-daemon",
            files: &[("/proc/815/comm", "power-profiles-\n")],
            wanted: ("cpu.energy_perf_bias", Want::Int(0)),
            told: ["process 815 is power-profiles-daemon", "systemctl mask --now power-profiles-daemon", ""],
        },
        Shown {
            id: "bpftune",
            files: &[("/proc/816/comm", "bpftune\n")],
            wanted: ("net.ipv4.tcp_rmem", word("4096 131072 16777216")),
            told: ["process 816 is bpftune", "systemctl disable --now bpftune", ""],
        },
        Shown {
            id: "kubelet",
            files: &[("/proc/817/comm", "kubelet\n")],
            wanted: ("vm.overcommit_memory", Want::Int(1)),
            told: ["process 817 is kubelet", "protectKernelDefaults: true", ""],
        },
    ];
    shown_by_texts().into_iter().chain(shown_by_packages()).chain(others).collect()
}

fn planned(session: &Session, source: &Source, exclude: &[&str]) -> Plan {
    let options = PlanOptions {
        allow_classes: vec![planish_model::Class::Availability],
        exclude: exclude.iter().map(ToString::to_string).collect(),
        ..PlanOptions::default()
    };
    plan(session, source, &options).expect("a plan")
}

#[test]
fn each_second_writer_is_found_named_and_told_how_to_part_from() {
    for Shown { id, files, wanted: (knob, value), told: [evidence, hand_over, exclude] } in shown() {
        // Where interrupts begin is wanted beside an isolation.
        let isolated = (knob == "irq.default_affinity").then(|| ("boot.isolcpus", word("4-7")));
        let wanted: Vec<_> = [(knob, value)].into_iter().chain(isolated).collect();
        let source = profile("own", &wanted);
        let tree = Tree::copy_of("metal-2s");
        let alone = planned(&tree.session(), &source, &[]);
        assert!(!alone.steps.is_empty(), "{id}: {:#?}", alone.skipped);
        assert!(alone.second_writers.iter().all(|writer| writer.id != id), "{id} before it is there");

        files.iter().for_each(|(path, text)| tree.put(path, text));
        files
            .iter()
            .filter(|(_, text)| text.starts_with("#!"))
            .for_each(|(path, _)| tree.make_executable(path));
        let plan = planned(&tree.session(), &source, &[]);
        assert_eq!(plan.hash, alone.hash, "{id} is no part of the hash");
        let Some(writer) = plan.second_writers.iter().find(|writer| writer.id == id) else {
            panic!("{id} is not found: {:#?}", plan.second_writers);
        };
        assert_eq!(writer.running, !OF_BOOT.contains(&id), "{id}");
        assert!(writer.evidence.iter().any(|line| line.contains(evidence)), "{id}: {:?}", writer.evidence);
        let places: BTreeSet<&String> = plan.steps.iter().map(|step| &step.place).collect();
        assert_eq!(writer.places.iter().collect::<BTreeSet<_>>(), places, "{id}");
        assert!(writer.hand_over.iter().any(|line| line.contains(hand_over)), "{id}: {:?}", writer.hand_over);
        let said = writer.exclude.iter().any(|line| line.contains(exclude));
        assert!(said || exclude.is_empty(), "{id}: {:?}", writer.exclude);
        assert!(writer.leave.contains(&format!("--exclude {id}")), "{id}: {}", writer.leave);

        let left = planned(&tree.session(), &source, &[id]);
        assert_eq!(left.steps, [], "{id}: what is left to it is not written");
    }
}

#[test]
fn no_second_writer_of_the_catalogue_is_left_out() {
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    // Three others are lines of files, which tests of the next boot have; one is beside a placement.
    let all: BTreeSet<&str> = catalogue.writers().iter().map(|writer| writer.id.as_str()).collect();
    let here: BTreeSet<&str> = shown()
        .iter()
        .map(|shown| shown.id)
        .chain(["sysctl.d", "tmpfiles.d", "udev", "kubelet-cpus"])
        .collect();
    assert_eq!(all, here);
}

/// What MongoDB and Redis advise, and a script for the end of the boot: a persisted value that either writes over is
/// not told as what the next boot brings. What is not enabled, or may not be executed, writes nothing.
#[test]
fn what_a_unit_or_rc_local_writes_over_is_never_green() {
    let thp = "[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo never > \
               /sys/kernel/mm/transparent_hugepage/enabled\"\n[Install]\nWantedBy=multi-user.target\n";
    let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
    let source = profile("own", &[("thp.enabled", word("always")), ("vm.stat_interval", Want::Int(10))]);
    let tree = Tree::copy_of("metal-2s");
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/etc/systemd/system/disable-thp.service", thp);
    tree.put("/etc/rc.local", "#!/bin/sh\nsysctl -w vm.stat_interval=1\n");
    apply(&tree.session(), &planned(&tree.session(), &source, &[]), &persist).expect("applied");
    let state = |id: &str| {
        let drift = check(&tree.session(), Some(&source)).expect("checked").drift;
        let row = drift.knobs.into_iter().find(|row| row.knob.as_str() == id).expect("a row");
        (row.state, row.because.unwrap_or_default())
    };
    assert_eq!(state("thp.enabled").0, DriftState::Ok, "it is not enabled");
    assert_eq!(state("vm.stat_interval").0, DriftState::Ok, "it may not be executed");
    tree.put("/etc/systemd/system/multi-user.target.wants/disable-thp.service", "");
    tree.make_executable("/etc/rc.local");
    let unit = "/etc/systemd/system/disable-thp.service";
    for (id, writer, file) in
        [("thp.enabled", "units", unit), ("vm.stat_interval", "rc.local", "/etc/rc.local")]
    {
        let (state, because) = state(id);
        assert_eq!(state, DriftState::OverwrittenAtBoot, "{id}: {because}");
        let told = format!("{writer} will set it at the next boot ({file}) by `");
        assert!(because.starts_with(&told) && because.contains("`, after /etc/"), "{because}");
    }
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Findings);
    let found = doctor(&tree.session(), None, None, &[]).expect("examined").findings;
    let named = |id: &str| found.iter().any(|finding| finding.id == format!("writer.{id}"));
    assert!(named("units") && named("rc.local"), "{found:?}");

    // A command that says the wanted value loses nothing, and a condition is no command.
    tree.put("/etc/systemd/system/disable-thp.service", &thp.replace("never", "always"));
    assert_eq!(state("thp.enabled").0, DriftState::Ok);
    let condition = "[Unit]\nConditionPathExists=/sys/kernel/mm/transparent_hugepage/enabled\n[Service]\n\
                     ExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
    tree.put("/etc/systemd/system/disable-thp.service", condition);
    assert_eq!(state("thp.enabled").0, DriftState::Ok);
    let found = doctor(&tree.session(), None, None, &[]).expect("examined").findings;
    assert!(!found.iter().any(|finding| finding.id == "writer.units"), "{found:?}");
}

/// A script as profiles of tuned have it.
const SCRIPT: &str = "#!/bin/sh\n. /usr/lib/tuned/functions\nsysctl -w vm.swappiness=60\n";

/// tuned is told to leave the files of the host alone.
const MAIN: (&str, &str) = ("/etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");

/// A second writer, the file that shows it, and all that lie about.
type Way = (&'static str, &'static str, Vec<(&'static str, &'static str)>);

/// What pulls a unit in by a drop-in, as planish itself does; a script that a profile of tuned runs; a profile of two,
/// of which one is not there; an init script.
fn other_ways() -> Vec<Way> {
    let unit = "/etc/systemd/system/t.service";
    let sysv = "/usr/lib/systemd/system-generators/systemd-sysv-generator";
    let run = ("/run/systemd/system/.keep", "");
    let tuned = ("/proc/812/comm", "tuned\n");
    let active = |text| ("/etc/tuned/active_profile", text);
    let by_script = "[main]\nsummary=x\n[script]\nscript=${i:PROFILE_DIR}/script.sh\n";
    let both = "[main]\ninclude=a,b\n";
    let sets = "[sysctl]\nvm.swappiness=60\n";
    vec![
        (
            "units",
            unit,
            vec![
                run,
                (unit, "[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=60\n"),
                ("/etc/systemd/system/multi-user.target.d/x.conf", "[Unit]\nWants=t.service\n"),
            ],
        ),
        (
            "tuned",
            "/etc/tuned/mine/script.sh",
            vec![
                tuned,
                active("mine\n"),
                ("/etc/tuned/mine/tuned.conf", by_script),
                ("/etc/tuned/mine/script.sh", SCRIPT),
            ],
        ),
        (
            "tuned",
            "/etc/tuned/b/tuned.conf",
            vec![
                tuned,
                active("mine\n"),
                MAIN,
                ("/etc/tuned/mine/tuned.conf", both),
                ("/etc/tuned/b/tuned.conf", sets),
            ],
        ),
        (
            "tuned",
            "/etc/tuned/b/tuned.conf",
            vec![tuned, MAIN, active("a b\n"), ("/etc/tuned/b/tuned.conf", sets)],
        ),
        ("init-scripts", "/etc/rc3.d/S01tune", vec![run, (sysv, ""), ("/etc/rc3.d/S01tune", SCRIPT)]),
    ]
}

#[test]
fn who_writes_by_another_way_is_no_green_either() {
    let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
    let source = profile("own", &[("vm.swappiness", Want::Int(5))]);
    for (id, file, files) in other_ways() {
        let tree = Tree::copy_of("metal-2s");
        tree.remove("/etc/sysctl.d/99-local.conf");
        files.iter().for_each(|(path, text)| tree.put(path, text));
        files
            .iter()
            .filter(|(_, text)| text.starts_with("#!"))
            .for_each(|(path, _)| tree.make_executable(path));
        let plan = planned(&tree.session(), &source, &[]);
        assert!(
            plan.second_writers.iter().any(|writer| writer.id == id),
            "{file}: {:?}",
            plan.second_writers
        );
        let applied = apply(&tree.session(), &plan, &persist).expect("applied");
        assert_eq!(applied.exit, Exit::Findings, "{file}: {:?}", applied.hints);
        let checked = check(&tree.session(), Some(&source)).expect("checked");
        let row = &checked.drift.knobs[0];
        assert_eq!(row.state, DriftState::OverwrittenAtBoot, "{file}: {row:?}");
        let told = format!("{id} will set it at the next boot ({file}) by `");
        let behind = "`, after /etc/sysctl.d/90-planish.conf";
        let is_told = |why: &String| why.starts_with(&told) && why.contains(behind);
        assert!(row.because.as_ref().is_some_and(is_told), "{row:?}");
    }
    // Where systemd runs no init scripts, one that is left over writes nothing.
    let tree = Tree::copy_of("metal-2s");
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/etc/rc3.d/S01tune", SCRIPT);
    tree.make_executable("/etc/rc3.d/S01tune");
    let plan = planned(&tree.session(), &source, &[]);
    assert!(plan.second_writers.iter().all(|writer| writer.id != "init-scripts"));
}

/// tuned writes `/etc/sysctl.d` and then `/etc/sysctl.conf` again behind its own keys: a line of ours there is the last
/// word, and one of `/etc/sysctl.conf` that no boot reads is the last word over ours.
#[test]
fn what_tuned_writes_again_is_the_last_word_and_its_profile_is_not() {
    let tuned = |sysctl: &str| {
        let profile = format!("[main]\nsummary=x\n[sysctl]\n{sysctl}\n");
        let tree = Tree::copy_of("metal-2s");
        tree.remove("/etc/sysctl.d/99-local.conf");
        tree.put("/run/systemd/system/.keep", "");
        tree.put("/proc/812/comm", "tuned\n");
        tree.put("/etc/tuned/active_profile", "mine\n");
        tree.put("/etc/tuned/mine/tuned.conf", &profile);
        tree
    };
    let tree = tuned("vm.swappiness=30");
    assert_eq!(persisted_on(&tree), (Exit::Done, DriftState::Ok, String::new()), "the file wins");
    // A file of a package that sorts behind ours loses, since tuned does not read it.
    tree.put("/usr/lib/sysctl.d/95-vendor.conf", "vm.swappiness = 60\n");
    assert_eq!(persisted_on(&tree), (Exit::Done, DriftState::Ok, String::new()));
    tree.put("/etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
    assert_eq!(persisted_on(&tree).1, DriftState::OverwrittenAtBoot, "as its main file says");

    let tree = tuned("vm.stat_interval=9");
    tree.put("/etc/sysctl.conf", "vm.swappiness = 60\n");
    let lost = "/etc/sysctl.conf:1 will set 60, which tuned writes again".to_owned();
    assert_eq!(persisted_on(&tree), (Exit::Findings, DriftState::LostAtBoot, lost));
    let tree = tuned("");
    tree.put("/etc/sysctl.conf", "vm.swappiness = 60\n");
    assert_eq!(persisted_on(&tree).1, DriftState::Ok, "nothing of it has keys of sysctl");
}

/// A host where texts are run at a boot, with these files.
fn with_texts(files: &[(&str, &str)]) -> Tree {
    let tree = Tree::copy_of("metal-2s");
    tree.remove("/etc/sysctl.d/99-local.conf");
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/proc/818/comm", "cron\n");
    tree.put("/etc/systemd/system/multi-user.target.wants/own.service", "");
    files.iter().for_each(|(path, text)| tree.put(path, text));
    let scripts = files.iter().filter(|(_, text)| text.starts_with("#!"));
    scripts.for_each(|(path, _)| tree.make_executable(path));
    tree
}

/// Applies `vm.swappiness` = 5 for good, and looks at it: how both leave, the state, and why.
fn persisted_on(tree: &Tree) -> (Exit, DriftState, String) {
    let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
    let source = profile("own", &[("vm.swappiness", Want::Int(5))]);
    let applied = apply(&tree.session(), &planned(&tree.session(), &source, &[]), &persist).expect("applied");
    let checked = check(&tree.session(), Some(&source)).expect("checked");
    assert_eq!(applied.exit, checked.exit, "{:?}", applied.hints);
    let row = checked.drift.knobs.into_iter().next().expect("a row");
    (checked.exit, row.state, row.because.unwrap_or_default())
}

const UNIT: &str = "/etc/systemd/system/own.service";
const RC_LOCAL: &str = "/etc/rc.local";

/// Whoever sets a volume or a disk that is not here by name is no sure writer of every disk: an installed check stayed
/// red, and the only cure was to give up the disks.
#[test]
fn a_name_in_dev_of_no_disk_here_turns_no_disk_red() {
    let only = Case { value: "16".into(), only: Some("nvme*".into()), needs: Conditions::default() };
    let source = profile("own", &[("block.read_ahead_kb", Want::Case(Box::new(only)))]);
    let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
    for (device, exit, told) in [
        ("/dev/mapper/vg-data", Exit::Done, None),
        ("/dev/vg/data", Exit::Done, None),
        ("/dev/md/data", Exit::Done, None),
        ("/dev/sdf", Exit::Done, Some("rc.local may set it at the next boot")),
        ("/dev/nvme0n1", Exit::Findings, Some("rc.local will set it at the next boot")),
    ] {
        let tree = with_texts(&[(RC_LOCAL, &format!("#!/bin/sh\nblockdev --setra 8192 {device}\n"))]);
        tree.put("/sys/block/dm-0/queue/read_ahead_kb", "128\n");
        apply(&tree.session(), &planned(&tree.session(), &source, &[]), &persist).expect("applied");
        let checked = check(&tree.session(), Some(&source)).expect("checked");
        let rows: Vec<String> = checked.drift.knobs.into_iter().filter_map(|row| row.because).collect();
        assert_eq!(checked.exit, exit, "{device}: {rows:?}");
        let is_told = told.is_none_or(|told| rows.iter().any(|row| row.contains(told)));
        assert!(is_told && rows.is_empty() == told.is_none(), "{device}: {rows:?}");
    }
}

/// What only reads a setting leaves it as it is: told as a write, apply and check would end with 1 for ever.
#[test]
fn what_only_reads_a_setting_is_no_second_writer() {
    let script = "[main]\nsummary=x\n[script]\nscript=${i:PROFILE_DIR}/script.sh\n";
    for files in [
        vec![(UNIT, "[Service]\nExecStart=/bin/cat /proc/sys/vm/swappiness\n")],
        vec![(UNIT, "[Service]\nExecStart=/bin/sh -c 'sysctl -n vm.swappiness > /run/saved'\n")],
        vec![(
            RC_LOCAL,
            "#!/bin/sh\ntest -e /proc/sys/vm/swappiness && grep -q 60 /proc/sys/vm/swappiness\n",
        )],
        vec![("/etc/cron.d/own", "@reboot root cat /proc/sys/vm/swappiness > /run/saved\n")],
        vec![
            ("/proc/812/comm", "tuned\n"),
            ("/etc/tuned/active_profile", "mine\n"),
            ("/etc/tuned/mine/tuned.conf", script),
            ("/etc/tuned/mine/script.sh", "#!/bin/sh\nx=$(sysctl -n vm.swappiness)\necho \"$x\"\n"),
        ],
    ] {
        let tree = with_texts(&files);
        let source = profile("own", &[("vm.swappiness", Want::Int(5))]);
        let plan = planned(&tree.session(), &source, &[]);
        assert_eq!(plan.second_writers, [], "{files:?}");
        assert_eq!(persisted_on(&tree), (Exit::Done, DriftState::Ok, String::new()), "{files:?}");
    }
}

/// What no shell comes by, or the last of several takes back, is none: told as a write, apply and check would end with
/// 1 for ever.
#[test]
fn what_a_boot_never_runs_is_no_second_writer() {
    for (text, may) in [
        ("(cd /proc/sys/vm; true)\necho 60 > swappiness\n", false),
        ("exit 0\necho 60 > /proc/sys/vm/swappiness\n", false),
        ("echo 60 > /proc/sys/vm/swappiness\nsysctl -w vm.swappiness=5\n", false),
        ("sysctl -w vm.swappiness=60 vm.swappiness=5\n", false),
        ("f() { echo 60 > /proc/sys/vm/swappiness; }\n", true),
        ("find /proc/sys/vm -name swappiness -exec sh -c \"echo 60 > {}\" \\;\n", true),
    ] {
        let (exit, state, because) = persisted_on(&with_texts(&[(RC_LOCAL, &format!("#!/bin/sh\n{text}"))]));
        assert_eq!((exit, state), (Exit::Done, DriftState::Ok), "{text}: {because}");
        assert_eq!(because.contains("rc.local may set it"), may, "{text}: {because}");
    }
}

/// A path by another way is the same file, and keys of a unit beside its commands decide what those write.
#[test]
fn who_writes_by_another_name_is_no_green_either() {
    let unit = |lines: &str| (UNIT, format!("[Service]\n{lines}\n"));
    let script = |text: &str| (RC_LOCAL, format!("#!/bin/sh\n{text}\n"));
    for (file, text) in [
        script("cd /proc/sys; cd vm; echo 60 > ./swappiness"),
        script("cd /proc/sys/vm/..; echo 60 > vm/swappiness"),
        script("echo 60 > /proc/sys/vm/../vm/swappiness"),
        script("echo 60 > /proc//sys/vm/swappiness"),
        unit("WorkingDirectory=/proc/sys/vm\nExecStart=/bin/sh -c 'echo 60 > swappiness'"),
        unit("ExecStart=/sbin/sysctl -w ${K}\nEnvironment=K=vm.swappiness=60"),
        unit("StandardOutput=file:/proc/sys/vm/swappiness\nExecStart=/bin/echo 60"),
    ] {
        let (exit, state, because) = persisted_on(&with_texts(&[(file, &text)]));
        assert_eq!((exit, state), (Exit::Findings, DriftState::OverwrittenAtBoot), "{text}: {because}");
        assert!(because.contains(&format!("will set it at the next boot ({file})")), "{because}");
    }
}

/// What is given to a program that nobody here knows may be set by it: that is told, and no more.
#[test]
fn what_nobody_can_decide_may_be_set() {
    let tree = with_texts(&[(RC_LOCAL, "#!/bin/sh\n/opt/tune /proc/sys/vm/swappiness 60\n")]);
    let source = profile("own", &[("vm.swappiness", Want::Int(5))]);
    let plan = planned(&tree.session(), &source, &[]);
    assert_eq!(plan.second_writers[0].maybe, ["/proc/sys/vm/swappiness"]);
    let found = doctor(&tree.session(), None, None, &[]).expect("examined").findings;
    let finding = found.iter().find(|finding| finding.id == "writer.rc.local").expect("told");
    assert!(finding.evidence.contains("may set vm.swappiness"), "{}", finding.evidence);
    let (exit, state, because) = persisted_on(&tree);
    assert_eq!((exit, state), (Exit::Done, DriftState::Ok));
    assert!(because.starts_with("rc.local may set it at the next boot, after the files"), "{because}");
    assert!(because.ends_with("(/etc/rc.local)"), "{because}");
}

/// A green check is to say where nobody looked.
#[test]
fn where_following_ended_is_told_by_plan_and_check() {
    let text =
        |lines: usize| format!("#!/bin/sh\nsysctl -w vm.stat_interval=9\n{}", "true a b c\n".repeat(lines));
    let source = profile("own", &[("vm.swappiness", Want::Int(5))]);
    for (lines, is_told) in [(100, false), (120_000, true)] {
        let tree = with_texts(&[(RC_LOCAL, &text(lines))]);
        let checked = check(&tree.session(), Some(&source)).expect("checked");
        let remarks = planned(&tree.session(), &source, &[]).remarks;
        assert_eq!(checked.not_followed.is_some(), is_told);
        assert_eq!(remarks, checked.not_followed.clone().into_iter().collect::<Vec<_>>());
        assert!(checked.not_followed.is_none_or(|told| told.contains("ended at /etc/rc.local,")));
    }
}

/// `sysctl -p` sets the lines of a file that no boot reads by itself.
#[test]
fn a_file_that_sysctl_is_told_to_load_sets_what_its_lines_say() {
    let conf = "vm.swappiness = 60\n";
    for (writer, file, text, loaded) in [
        ("rc.local", RC_LOCAL, "#!/bin/sh\nsysctl -p\n", "/etc/sysctl.conf"),
        ("rc.local", RC_LOCAL, "#!/bin/sh\n/sbin/sysctl -e -p /etc/my.conf\n", "/etc/my.conf"),
        ("rc.local", RC_LOCAL, "#!/bin/sh\nsysctl -q --load=/etc/my/*.conf\n", "/etc/my/a.conf"),
        ("units", UNIT, "[Service]\nExecStart=/usr/sbin/sysctl -p /etc/my.conf\n", "/etc/my.conf"),
    ] {
        let (exit, state, because) = persisted_on(&with_texts(&[(file, text), (loaded, conf)]));
        assert_eq!((exit, state), (Exit::Findings, DriftState::OverwrittenAtBoot), "{text}: {because}");
        let mut files = [file, loaded];
        files.sort_unstable();
        let told = format!("{writer} will set it at the next boot ({}) by `", files.join(", "));
        assert!(because.starts_with(&told) && because.contains("vm/swappiness = 60`, after"), "{because}");
        // The last line counts, and one that says the same loses nothing.
        let same =
            persisted_on(&with_texts(&[(file, text), (loaded, "vm.swappiness=60\nvm.swappiness=5\n")]));
        assert_eq!((same.0, same.1), (Exit::Done, DriftState::Ok), "{text}: {}", same.2);
        let none = persisted_on(&with_texts(&[(file, text)]));
        assert_eq!((none.0, none.1), (Exit::Done, DriftState::Ok), "{text}: there is no such file");
    }
}

/// The way of those who have a script at each boot: a line of rc.local, a unit or a table of cron that starts it.
#[test]
fn a_script_that_a_boot_starts_sets_what_its_lines_say() {
    const TUNE: &str = "/usr/local/sbin/tune.sh";
    let script = "#!/bin/sh\necho never > /sys/kernel/mm/transparent_hugepage/defrag\n\
                  echo 60 > /proc/sys/vm/swappiness\n";
    for (writer, file, text) in [
        ("rc.local", RC_LOCAL, format!("#!/bin/sh -e\n{TUNE}\nexit 0\n")),
        ("rc.local", RC_LOCAL, format!("#!/bin/sh\nsh {TUNE}\n")),
        ("rc.local", RC_LOCAL, format!("#!/bin/sh\n. {TUNE}\n")),
        ("units", UNIT, format!("[Service]\nExecStart={TUNE}\n")),
        ("units", UNIT, format!("[Service]\nExecStart=/bin/bash {TUNE} start\n")),
        ("cron", "/etc/cron.d/own", format!("@reboot root {TUNE}\n")),
    ] {
        let (exit, state, because) = persisted_on(&with_texts(&[(file, &text), (TUNE, script)]));
        assert_eq!((exit, state), (Exit::Findings, DriftState::OverwrittenAtBoot), "{text}: {because}");
        let told = format!("{writer} will set it at the next boot ({file}, {TUNE}:3)");
        assert!(because.starts_with(&told), "{text}: {because}");
        let same = persisted_on(&with_texts(&[(file, &text), (TUNE, &script.replace("60", "5"))]));
        assert_eq!((same.0, same.1), (Exit::Done, DriftState::Ok), "{text}: {}", same.2);
    }
    // What may not be run, what is too long and another language are no writers of everything.
    let rc_local = format!("#!/bin/sh\n{TUNE}\n");
    let long = format!("{script}{}", "# x\n".repeat(1 << 16));
    for text in [
        "echo 60 > /proc/sys/vm/swappiness\n",
        &long,
        "#!/usr/bin/perl\nprint 60;\n",
        "#!/bin/sh\n\0 vm.swappiness\n",
    ] {
        let (exit, state, because) = persisted_on(&with_texts(&[(RC_LOCAL, &rc_local), (TUNE, text)]));
        assert_eq!((exit, state, because.as_str()), (Exit::Done, DriftState::Ok, ""), "{text:.40}");
    }
    let perl = "#!/usr/bin/perl\n\nsystem('sysctl -w vm.swappiness=60');\n";
    let (exit, state, because) = persisted_on(&with_texts(&[(RC_LOCAL, &rc_local), (TUNE, perl)]));
    assert_eq!((exit, state), (Exit::Done, DriftState::Ok));
    assert!(
        because.starts_with("rc.local may set it") && because.ends_with(&format!("{TUNE}:3)")),
        "{because}"
    );
}

/// A program that only changes how, or where, another one is run, and one that runs what lies in a folder.
#[test]
fn what_another_program_starts_is_no_green_either() {
    const TUNE: &str = "/etc/own.d/10-tune";
    let script = "#!/bin/sh\necho 60 > /proc/sys/vm/swappiness\n";
    for (command, may) in [
        ("run-parts /etc/own.d", false),
        ("ip netns exec blue /etc/own.d/10-tune", false),
        ("chroot / /etc/own.d/10-tune", false),
        ("chroot /etc /own.d/10-tune", true),
        ("run-parts --regex '^1' /etc/own.d", true),
    ] {
        for (writer, file, text) in [
            ("rc.local", RC_LOCAL, format!("#!/bin/sh\n{command}\n")),
            ("units", UNIT, format!("[Service]\nExecStart={command}\n")),
        ] {
            let (exit, state, because) = persisted_on(&with_texts(&[(file, &text), (TUNE, script)]));
            let (expected, verb) = match may {
                true => ((Exit::Done, DriftState::Ok), "may"),
                false => ((Exit::Findings, DriftState::OverwrittenAtBoot), "will"),
            };
            assert_eq!((exit, state), expected, "{text}: {because}");
            let told = format!("{writer} {verb} set it at the next boot");
            assert!(
                because.starts_with(&told) && because.contains(&format!("{TUNE}:2")),
                "{text}: {because}"
            );
        }
    }
    let net = [(RC_LOCAL, "#!/bin/sh\nip netns exec blue sysctl -w vm.swappiness=60 net.core.somaxconn=9\n")];
    let source = profile("own", &[("net.core.somaxconn", Want::Int(9000))]);
    let plan = planned(&with_texts(&net).session(), &source, &[]);
    assert_eq!(plan.second_writers[0].maybe, ["/proc/sys/net/core/somaxconn"]);
}

/// A recording is a root of its own: a link of it leads to nothing of the machine that looks at it.
#[test]
fn a_script_is_looked_for_in_the_recording() {
    let tree = with_texts(&[
        (RC_LOCAL, "#!/bin/sh\n/opt/own/link.sh\n"),
        ("/srv/tune.sh", "#!/bin/sh\necho 60 > /proc/sys/vm/swappiness\n"),
    ]);
    tree.put("/opt/own/.keep", "");
    std::os::unix::fs::symlink("/srv/tune.sh", tree.root().join("opt/own/link.sh")).expect("a tree of ours");
    let (_, state, because) = persisted_on(&tree);
    assert_eq!(state, DriftState::OverwrittenAtBoot);
    assert!(because.contains("(/etc/rc.local, /opt/own/link.sh:2)"), "{because}");
}

/// Each CPU has a line of its own in our file, and who writes over all of them is told once.
#[test]
fn who_writes_over_many_places_is_told_once() {
    let tree = Tree::copy_of("metal-2s");
    let governor = "#!/bin/sh\nfor c in /sys/devices/system/cpu/cpu*/cpufreq; do\n\
                    echo powersave > $c/scaling_governor; done\n";
    tree.put(RC_LOCAL, governor);
    tree.make_executable(RC_LOCAL);
    let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
    let source = profile("own", &[("cpu.governor", word("performance"))]);
    let plan = planned(&tree.session(), &source, &[]);
    assert!(plan.steps.len() > 1, "{:?}", plan.skipped);
    let applied = apply(&tree.session(), &plan, &persist).expect("applied");
    let told: Vec<&String> =
        applied.hints.iter().filter(|hint| hint.contains("rc.local will set it")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let count = format!("cpu.governor x{}: ", plan.steps.len());
    assert!(told[0].starts_with(&count) && told[0].ends_with(".conf"), "{told:?}");
}

/// What planish advises counts once it is done: the profile that it has made leaves out what it was told to.
#[test]
fn a_profile_of_tuned_that_leaves_our_places_alone_is_no_second_writer() {
    let base =
        "[sysctl]\nvm.swappiness=60\nvm.dirty_bytes=1\n[cpu]\ngovernor=powersave\n[vm]\ndirty_ratio=9\n";
    let of = |own: &str| {
        let own = format!("[main]\ninclude=base\n{own}");
        let tree = with_texts(&[
            ("/proc/812/comm", "tuned\n"),
            ("/etc/tuned/active_profile", "planish\n"),
            MAIN,
            ("/usr/lib/tuned/base/tuned.conf", base),
        ]);
        tree.put("/etc/tuned/profiles/planish/tuned.conf", &own);
        tree
    };
    let tree = of("[sysctl]\ndrop=vm.swappiness,vm.dirty_bytes\n[cpu]\nenabled=false\n[vm]\nreplace=1\n");
    let source = profile("own", &[("vm.swappiness", Want::Int(5)), ("cpu.governor", word("performance"))]);
    assert_eq!(planned(&tree.session(), &source, &[]).second_writers, []);
    assert_eq!(persisted_on(&tree), (Exit::Done, DriftState::Ok, String::new()));

    let tree = of("[sysctl]\ndrop=vm.dirty_bytes\n");
    assert_eq!(persisted_on(&tree).1, DriftState::OverwrittenAtBoot);
    let writer =
        planned(&tree.session(), &profile("own", &[("vm.swappiness", Want::Int(6))]), &[]).second_writers;
    let [own] = writer[0].exclude.as_slice() else { panic!("{:?}", writer[0].exclude) };
    assert!(own.contains("add vm.swappiness to drop=") && !own.contains("include=planish"), "{own}");
    // Which options a pattern takes out is not known here.
    let (exit, state, because) = persisted_on(&of("[sysctl]\ndrop=vm\\.swap.*\n"));
    assert_eq!((exit, state), (Exit::Done, DriftState::Ok), "{because}");
    assert!(because.starts_with("tuned may set it at the next boot"), "{because}");
}

/// Files of /run go with this boot, and whoever wrote them may do so again.
#[test]
fn a_line_in_run_may_be_set_at_the_next_boot() {
    for (file, line) in [
        ("/run/sysctl.d/99-x.conf", "vm.swappiness = 60\n"),
        ("/run/tmpfiles.d/99-x.conf", "w /proc/sys/vm/swappiness - - - - 60\n"),
    ] {
        let (exit, state, because) = persisted_on(&with_texts(&[(file, line)]));
        let told = format!("may be set to 60 at a boot by {file}:1");
        assert_eq!((exit, state, because), (Exit::Done, DriftState::Ok, told));
    }
}

/// A bare key takes back what is said before it: to write our line once more would not help.
#[test]
fn a_line_of_ours_that_another_one_takes_back_is_lost_and_that_one_named() {
    const BY: &str = "/etc/sysctl.d/99-x.conf";
    let tree = with_texts(&[(BY, "# c\n-vm.swappiness\n")]);
    let source = profile("own", &[("vm.swappiness", Want::Int(5))]);
    let options = PlanOptions { persist: true, ..PlanOptions::default() };
    let plan = plan(&tree.session(), &source, &options).expect("a plan");
    let told = format!("{BY}:2 takes back what is said of vm.swappiness before it");
    let evidence: Vec<(String, Vec<String>)> =
        plan.second_writers.into_iter().map(|writer| (writer.id, writer.evidence)).collect();
    assert_eq!(evidence, [("sysctl.d".to_owned(), vec![told])]);
    let (exit, state, because) = persisted_on(&tree);
    assert_eq!((exit, state), (Exit::Findings, DriftState::LostAtBoot), "{because}");
    let begin = format!("{BY}:2 takes back what /etc/sysctl.d/90-planish.conf:");
    assert!(because.starts_with(&begin) && because.ends_with(" says, and no file sets it"), "{because}");
    // What stands before ours takes nothing of it.
    tree.remove(BY);
    tree.put("/etc/sysctl.d/10-x.conf", "-vm.swappiness\n");
    let row = check(&tree.session(), Some(&source)).expect("checked").drift.knobs.remove(0);
    assert_eq!((row.state, row.because), (DriftState::Ok, None));
}

/// Both move processes off the CPUs that a placement gives them.
#[test]
fn who_moves_processes_is_named_by_a_placement() {
    let text = "name = \"x\"\nsummary = \"x\"\n[placement]\n[[placement.service]]\nunit = \"realtime.service\"\n\
                cpus = \"1,5\"\n";
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    let source = Source::Inline(Box::new(catalogue.parse_profile("x.toml", text).expect("sound")));
    let tree = Tree::copy_of("metal-2s");
    let named = || {
        let writers = planned(&tree.session(), &source, &[]).second_writers;
        let of_units = |place: &String| place.ends_with("/zz-planish.conf");
        let writers = writers.into_iter().filter(|writer| writer.places.iter().any(of_units));
        writers.map(|writer| writer.id).collect::<Vec<_>>()
    };
    tree.put("/proc/817/comm", "kubelet\n");
    tree.put("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncpuManagerPolicy: none\n");
    assert_eq!(named(), [""; 0]);
    tree.put("/proc/814/comm", "numad\n");
    tree.put("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncpuManagerPolicy: \"static\"\n");
    assert_eq!(named(), ["numad", "kubelet-cpus"]);
    let file = "/var/lib/kubelet/config.yaml";
    for (config, command, is_static) in [
        ("{\"a\":{\"b\":1},\"cpuManagerPolicy\":\"static\"}\n", "kubelet\0", true),
        ("cpuManagerPolicy: static   # pinned\n", "kubelet\0", true),
        ("# cpuManagerPolicy: static\ncpuManagerPolicy: none\n", "kubelet\0", false),
        ("a: 1\n", "kubelet\0--cpu-manager-policy=static\0", true),
        ("a: 1\n", "kubelet\0--cpu-manager-policy\0static\0--v=2\0", true),
        // The option goes before the file.
        ("cpuManagerPolicy: static\n", "kubelet\0--cpu-manager-policy=none\0", false),
    ] {
        tree.put(file, config);
        tree.put("/proc/817/cmdline", command);
        assert_eq!(named().len(), 1 + usize::from(is_static), "{config} {command}");
    }
    tree.put(file, "kind: KubeletConfiguration\ncpuManagerPolicy: \"static\"\n");
    tree.put("/proc/817/cmdline", "kubelet\0");
    let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
    apply(&tree.session(), &planned(&tree.session(), &source, &[]), &persist).expect("applied");
    let rows = check(&tree.session(), Some(&source)).expect("checked").drift.knobs;
    let row = rows.iter().find(|row| row.knob.as_str() == "unit.placement").expect("a row");
    assert_eq!(row.state, DriftState::Ok, "{row:?}");
    assert_eq!(row.because.as_deref(), Some("numad may undo it while it is at work"));
}

/// What a file of ours is to keep is named with who takes it back, also where no step writes it: that is told before
/// the question, and not by the exit code of the apply.
#[test]
fn who_writes_over_what_is_only_kept_is_named_before_it_is_written() {
    let tree = Tree::copy_of("metal-2s");
    let unit = "[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo defer > \
                /sys/kernel/mm/transparent_hugepage/defrag\"\n[Install]\nWantedBy=multi-user.target\n";
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/etc/systemd/system/disable-thp.service", unit);
    tree.put("/etc/systemd/system/multi-user.target.wants/disable-thp.service", "");
    tree.put("/etc/sysctl.d/95-vendor.conf", "vm.zone_reclaim_mode = 1\n");
    let wanted = [("thp.defrag", word("madvise")), ("vm.zone_reclaim_mode", Want::Int(0))];
    let source = profile("own", &wanted);
    let named = |persist: bool| {
        let options = PlanOptions { persist, ..PlanOptions::default() };
        let plan = plan(&tree.session(), &source, &options).expect("a plan");
        assert_eq!(plan.steps, [], "all is as wanted");
        let writers = plan.second_writers.into_iter();
        writers.map(|writer| (writer.id, writer.places, writer.hand_over.is_empty())).collect::<Vec<_>>()
    };
    let defrag = "/sys/kernel/mm/transparent_hugepage/defrag".to_owned();
    let mut found = named(true);
    found.sort();
    let of = |id: &str, place: String| (id.to_owned(), vec![place], false);
    assert_eq!(found, [of("sysctl.d", ZONE_RECLAIM.to_owned()), of("units", defrag)]);
    assert_eq!(named(false), []);
    // Who says what is wanted takes nothing from the line.
    tree.put("/etc/systemd/system/disable-thp.service", &unit.replace("defer", "madvise"));
    assert_eq!(named(true), [of("sysctl.d", ZONE_RECLAIM.to_owned())]);
}

/// A line of others for the pools of all nodes is set before ours for each node, and takes those away where a boot sets
/// it once more.
#[test]
fn a_pool_is_overwritten_by_whoever_loads_the_lines_for_all_nodes_again() {
    let rc_local = &[(RC_LOCAL, "#!/bin/sh\nsysctl --system\n")][..];
    let tuned = &[
        ("/proc/812/comm", "tuned\n"),
        ("/etc/tuned/active_profile", "mine\n"),
        ("/etc/tuned/mine/tuned.conf", "[main]\nsummary=x\n[sysctl]\nvm.stat_interval=9\n"),
    ][..];
    let (all, pages) = ("/sys/kernel/mm/hugepages/hugepages-2048kB", "vm.nr_hugepages = 100\n");
    for (files, by, line) in [
        (rc_local, "rc.local", pages),
        (tuned, "tuned", pages),
        (&[], "", pages),
        (rc_local, "", "vm.stat_interval = 9\n"),
    ] {
        let tree = with_texts(files);
        tree.put("/etc/sysctl.d/50-db.conf", line);
        for folder in [pool(0), pool(1)].map(|place| place.replace("/nr_hugepages", "")) {
            ["nr", "free"]
                .into_iter()
                .for_each(|file| tree.put(&format!("{folder}/{file}_hugepages"), "50\n"));
        }
        ["nr", "free"].into_iter().for_each(|file| tree.put(&format!("{all}/{file}_hugepages"), "100\n"));
        let need = Want::Need { need_bytes: 128 << 20, nodes: planish_model::Nodes::Spread };
        let source = profile("own", &[("hugepages.2m", need)]);
        let persist = ApplyOptions { confirm_seconds: None, persist: true, reason: None };
        apply(&tree.session(), &planned(&tree.session(), &source, &[]), &persist).expect("applied");
        let rows = check(&tree.session(), Some(&source)).expect("checked").drift.knobs;
        let row = rows.iter().find(|row| row.place == pool(0)).expect("a row");
        let found = row.overwritten_by.as_ref().map_or("", |by| by.writer.as_str());
        let state = if by.is_empty() { DriftState::Ok } else { DriftState::OverwrittenAtBoot };
        assert_eq!((row.state, found), (state, by), "{row:?}");
    }
}
