//! A placement beside what a host has already: CPUs of others, files that are read behind ours, limits of the unit.

use planish_model::{Class, Drift, DriftState, EntryId, Exit, Plan};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::tree::*;

const REALTIME: &str = "/etc/systemd/system/realtime.service.d/zz-planish.conf";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// A profile that places services, each with more of its table.
fn source(name: &str, services: &[(&str, &str)]) -> Source {
    let one =
        |(unit, rest): &(&str, &str)| format!("[[placement.service]]\nunit = \"{unit}.service\"\n{rest}\n");
    let services: String = services.iter().map(one).collect();
    let text = format!("name = \"{name}\"\nsummary = \"x\"\n[placement]\n{services}");
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    Source::Inline(Box::new(catalogue.parse_profile("x.toml", &text).expect("a sound profile")))
}

fn realtime(rest: &str) -> Source {
    source("pn", &[("realtime", rest)])
}

fn analytics(rest: &str) -> Source {
    source("pz", &[("analytics", rest)])
}

const ISOLATE: &str = "node = 0\nisolate = true";

fn options(instead_of: Option<u64>) -> PlanOptions {
    let instead_of = instead_of.map(EntryId);
    PlanOptions { allow_classes: vec![Class::Availability], instead_of, ..PlanOptions::default() }
}

fn planned(session: &Session, source: &Source) -> Plan {
    plan(session, source, &options(None)).expect("a plan")
}

fn applied(tree: &Tree, source: &Source) -> Applied {
    apply(&tree.session(), &planned(&tree.session(), source), &ApplyOptions::default()).expect("applied")
}

fn persisted(tree: &Tree, source: &Source) -> Applied {
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    apply(&tree.session(), &planned(&tree.session(), source), &options).expect("applied")
}

/// What is refused, in words, with what to do.
fn refused(tree: &Tree, source: &Source) -> String {
    let before = tree.snapshot();
    let error = plan(&tree.session(), source, &options(None)).expect_err("refused");
    assert_eq!(error.exit(), Exit::Refused, "{error:?}");
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    told(&error)
}

fn told(error: &PipelineError) -> String {
    let PipelineError::Decide(error) = error else { panic!("{error:?}") };
    let why = std::error::Error::source(error).expect("a reason").to_string();
    format!("{why}: {}", error.cure())
}

fn all_named(told: &str, words: &[&str]) {
    for word in words {
        assert!(told.contains(word), "{word}: {told}");
    }
}

fn row(drift: &Drift, place: &str) -> (DriftState, String) {
    let row = drift.knobs.iter().find(|row| row.place == place).expect("it is looked at");
    (row.state, format!("{:?} {:?} {:?}", row.persisted, row.next_boot, row.because))
}

#[test]
fn cpus_that_are_isolated_for_another_service_are_given_to_nobody_else() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree, &realtime(ISOLATE));
    for rest in ["node = 0", "cpus = \"1,5\"", ISOLATE] {
        let told = refused(&tree, &analytics(rest));
        all_named(&told, &["CPU 1,5", "realtime.service", "entry 1, pn", REALTIME, "--instead-of 1"]);
    }
    // The same once more, and one that takes its place.
    assert_eq!(applied(&tree, &realtime(ISOLATE)).outcomes, []);
    let both = source("both", &[("realtime", ISOLATE), ("analytics", "node = 1")]);
    let together = plan(&tree.session(), &both, &options(Some(1))).expect("one profile has both");
    assert!(together.placement.is_some_and(|placed| placed.housekeeping.to_string() == "0,2,4,6"));
    let other = plan(&tree.session(), &analytics("node = 0"), &options(Some(1))).expect("it goes");
    assert!(other.steps.iter().any(|step| step.wanted.contains("CPUAffinity=1,5")));
    // Without the parameters of the boot it may take its place; with them they go as a whole.
    persisted(&tree, &realtime(ISOLATE));
    let told = refused(&tree, &analytics("node = 0"));
    all_named(&told, &["CPU 1,5", "planish undo 2, then planish undo 1, then apply that with --persist"]);
    // After the boot the kernel has the list, and it is still that of this service.
    tree.put(ISOLATED, "1,5\n");
    planned(&tree.session(), &realtime(ISOLATE));
    all_named(&refused(&tree, &analytics("node = 0")), &["realtime.service", "entry 1, pn"]);
    undo(&tree.session(), Target::All, false).expect("undone");
    all_named(&refused(&tree, &analytics("node = 0")), &["CPU 1,5", ISOLATED, "isolate = true"]);
    tree.put(ISOLATED, "\n");
    planned(&tree.session(), &analytics("node = 0"));
}

#[test]
fn a_second_isolation_beside_one_of_others_would_take_its_cpus_from_the_slice() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree, &realtime(ISOLATE));
    let told = refused(&tree, &analytics("node = 1\nisolate = true"));
    all_named(&told, &["analytics.service would be isolated beside CPU 1,5", "--instead-of 1"]);
}

/// Systemd itself is no unit that a profile could place.
#[test]
fn cpus_that_an_entry_has_systemd_keep_to_are_refused_with_the_services_of_that_entry() {
    let tree = Tree::copy_of("metal-2s");
    let text = "name = \"pm\"\nsummary = \"x\"\n[placement]\nothers = \"housekeeping\"\n\
                [[placement.service]]\nunit = \"realtime.service\"\nnode = 1\n";
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    let profile = catalogue.parse_profile("x.toml", text).expect("a sound profile");
    applied(&tree, &Source::Inline(Box::new(profile)));
    let told = refused(&tree, &analytics(ISOLATE));
    all_named(&told, &["which systemd itself is pinned to (entry 1, pm", "for realtime.service, too"]);
    assert!(!told.contains("for systemd itself"), "{told}");
}

#[test]
fn cpus_that_others_have_keep_no_house() {
    for rest in [ISOLATE, "node = 0"] {
        let tree = Tree::copy_of("metal-2s");
        applied(&tree, &realtime(rest));
        let beside = planned(&tree.session(), &analytics("node = 1"));
        let placed = beside.placement.as_ref().expect("placed");
        assert_eq!(placed.housekeeping.to_string(), "0,2,4,6", "{rest}");
        assert!(
            placed
                .interrupts
                .iter()
                .all(|irq| irq.left.is_some() || irq.cpus.is_within(&placed.housekeeping))
        );
        assert!(
            beside
                .remarks
                .iter()
                .any(|remark| remark.starts_with("CPU 1,5 keep no house here: realtime.service")),
            "{:?}",
            beside.remarks
        );
    }
}

#[test]
fn cpus_may_be_shared_where_nobody_has_them_alone() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree, &realtime("node = 0"));
    let shared = planned(&tree.session(), &analytics("cpus = \"1,5\""));
    let remark = "analytics.service shares CPU 1,5, which realtime.service is pinned to (entry 1, pn";
    assert!(shared.remarks.iter().any(|told| told.starts_with(remark)), "{:?}", shared.remarks);
    all_named(&refused(&tree, &analytics(ISOLATE)), &["realtime.service is pinned to", "entry 1, pn"]);
}

#[test]
fn what_another_unit_is_pinned_to_is_no_place_for_isolation() {
    let tree = Tree::copy_of("metal-2s");
    let pin = "/etc/systemd/system/analytics.service.d/pin.conf";
    tree.put(pin, "[Service]\nCPUAffinity=1, 5\n");
    let told = refused(&tree, &realtime(ISOLATE));
    all_named(
        &told,
        &["CPU 1,5, which analytics.service is pinned to", &format!("{pin}:2"), "take CPUAffinity= out"],
    );
    let shared = planned(&tree.session(), &realtime("node = 0"));
    assert!(shared.remarks.iter().any(|told| told.contains("shares CPU 1,5")), "{:?}", shared.remarks);
    assert!(shared.placement.is_some_and(|placed| placed.housekeeping.to_string() == "0,2-4,6-7"));
    // An instance has no file of its own.
    tree.remove(pin);
    tree.put("/etc/systemd/system/w@.service", "[Service]\nExecStart=/opt/w\n");
    tree.put("/etc/systemd/system/w@1.service.d/pin.conf", "[Service]\nCPUAffinity=5\n");
    all_named(&refused(&tree, &realtime(ISOLATE)), &["CPU 5, which w@1.service is pinned to"]);
    // So is one that is pinned by what all services of a name have.
    tree.put("/etc/systemd/system/w@1.service.d/pin.conf", "[Service]\nCPUAffinity=\n");
    planned(&tree.session(), &realtime(ISOLATE));
    tree.put("/etc/systemd/system/w-x.service", "[Service]\nExecStart=/opt/w\n");
    tree.put("/etc/systemd/system/w-.service.d/pin.conf", "[Service]\nCPUAffinity=1\n");
    all_named(&refused(&tree, &realtime(ISOLATE)), &["CPU 1, which w-x.service is pinned to"]);
}

#[test]
fn partitions_and_lists_of_the_boot_are_no_place_for_others() {
    let tree = Tree::copy_of("metal-2s");
    let group = |file: &str| format!("/sys/fs/cgroup/dpdk.slice/{file}");
    tree.put(&group("cpuset.cpus"), "1,5\n");
    tree.put(&group("cpuset.cpus.partition"), "isolated\n");
    for rest in ["node = 0", ISOLATE] {
        all_named(&refused(&tree, &realtime(rest)), &["CPU 1,5, which the partition dpdk.slice"]);
    }
    tree.put(&group("cpuset.cpus.partition"), "member\n");
    planned(&tree.session(), &realtime("node = 0"));
    // On the other node they keep no house.
    tree.put(ISOLATED, "1,5\n");
    let beside = planned(&tree.session(), &analytics("node = 1"));
    assert!(beside.placement.is_some_and(|placed| placed.housekeeping.to_string() == "0,2,4,6"));
    all_named(&refused(&tree, &realtime("node = 0")), &["CPU 1,5, which the boot isolated"]);
    planned(&tree.session(), &realtime(ISOLATE));
}

#[test]
fn a_file_that_is_read_behind_ours_is_refused_and_told_when_it_came_later() {
    let later = [
        (
            "/etc/systemd/system/realtime.service.d/zzz-admin.conf",
            "[Service]\nCPUAffinity=\nCPUAffinity=2,3\n",
            ":3",
        ),
        ("/usr/lib/systemd/system/service.d/zzz.conf", "[Service]\nCPUAffinity=6\n", ":2"),
        ("/run/systemd/system/realtime.service.d/zzz.conf", "[Service]\nNUMAPolicy=interleave\n", ":2"),
        ("/etc/systemd/system/realtime.service.d/zzz.conf", "[Service]\nSlice=db.slice\n", ":2"),
        ("/etc/systemd/system/realtime.service.d/zzz.conf", "[Service]\nCPUAffinity=\n", ":2"),
        ("/etc/systemd/system/planish.slice.d/a.conf", "[Slice]\nAllowedCPUs=2,3\n", ":2"),
    ];
    for (file, text, line) in later {
        let source = realtime(ISOLATE);
        let tree = Tree::copy_of("metal-2s");
        tree.put(file, text);
        let told = refused(&tree, &source);
        all_named(&told, &[&format!("{file}{line} is read behind"), "take that line out"]);
        // A plan that was made before is not applied either.
        tree.remove(file);
        let made = planned(&tree.session(), &source);
        tree.put(file, text);
        let error = apply(&tree.session(), &made, &ApplyOptions::default()).expect_err("refused");
        assert_eq!(error.exit(), Exit::Refused, "{error:?}");
        tree.remove(file);
        applied(&tree, &source);
        let place = if file.contains("slice.d") { "/etc/systemd/system/planish.slice" } else { REALTIME };
        assert_eq!(row(&check(&tree.session(), None).expect("checked").drift, place).0, DriftState::Ok);
        tree.put(file, text);
        for asked in [None, Some(&source)] {
            let checked = check(&tree.session(), asked).expect("checked");
            let (state, why) = row(&checked.drift, place);
            assert!(!matches!(state, DriftState::Ok), "{file}: {why}");
            assert!(why.contains(&format!("{file}{line}")), "{why}");
            assert_eq!(checked.exit, Exit::Findings, "{asked:?} {state:?} {why}");
        }
    }
}

#[test]
fn a_later_file_that_takes_nothing_away_is_fine() {
    let tree = Tree::copy_of("metal-2s");
    for (file, text) in [
        ("realtime.service.d/zzz.conf", "[Service]\nCPUAffinity=\nCPUAffinity=5,1\nNice=-5\n"),
        ("realtime.service.d/a.conf", "[Service]\nCPUAffinity=2\n"),
        ("service.d/zz-planish.conf", "[Service]\nCPUAffinity=2\n"),
        ("realtime.service.d/zzzz.conf", "[Unit]\nCPUAffinity=2\n"),
    ] {
        tree.put(&format!("/etc/systemd/system/{file}"), text);
    }
    applied(&tree, &realtime("node = 0"));
    assert_eq!(row(&check(&tree.session(), None).expect("checked").drift, REALTIME).0, DriftState::Ok);
}

#[test]
fn a_unit_that_may_not_use_its_place_is_refused() {
    let cases = [
        (
            "realtime.service.d/a.conf",
            "[Service]\nAllowedCPUs=2,3\n",
            "lets it use CPU 2-3 alone (AllowedCPUs)",
        ),
        ("realtime.service.d/a.conf", "[Service]\nAllowedMemoryNodes=1\n", "would have node 0"),
        ("service.d/a.conf", "[Service]\nStartupAllowedCPUs=0\n", "(StartupAllowedCPUs)"),
    ];
    for (file, text, words) in cases {
        for rest in ["node = 0", ISOLATE] {
            let tree = Tree::copy_of("metal-2s");
            let file = format!("/etc/systemd/system/{file}");
            tree.put(&file, text);
            all_named(
                &refused(&tree, &realtime(rest)),
                &["realtime.service would have", words, &format!("{file}:2")],
            );
        }
    }
    let tree = Tree::copy_of("metal-2s");
    tree.put("/etc/systemd/system/realtime.service.d/a.conf", "[Service]\nSlice=db-fast.slice\n");
    tree.put("/etc/systemd/system/db.slice", "[Slice]\nAllowedCPUs=2,3\n");
    let told = refused(&tree, &realtime("node = 0"));
    all_named(&told, &["lets db.slice use CPU 2-3 alone", "/etc/systemd/system/db.slice:2"]);
    // It leaves that slice for the one of planish.
    planned(&tree.session(), &realtime(ISOLATE));
    // Memory from anywhere needs no node.
    let tree = Tree::copy_of("metal-2s");
    tree.put("/etc/systemd/system/realtime.service.d/a.conf", "[Service]\nAllowedMemoryNodes=1\n");
    planned(&tree.session(), &realtime("node = 0\nmemory = \"any\""));
}

#[test]
fn another_name_of_a_unit_is_no_second_service() {
    let tree = Tree::copy_of("metal-2s");
    let folder = tree.root().join("etc/systemd/system");
    std::os::unix::fs::symlink("realtime.service", folder.join("rt.service")).expect("a link");
    let two = source("two", &[("realtime", "node = 0"), ("rt", "node = 1")]);
    all_named(
        &refused(&tree, &two),
        &["rt.service is another name of realtime.service", "name realtime.service"],
    );
    refused(&tree, &source("one", &[("rt", "node = 1")]));
    // Drop-ins of the other name are read, too.
    tree.put("/etc/systemd/system/rt.service.d/zzz.conf", "[Service]\nCPUAffinity=2\n");
    all_named(&refused(&tree, &realtime("node = 0")), &["rt.service.d/zzz.conf:2 is read behind"]);
}

#[test]
fn a_unit_that_nobody_can_start_or_that_runs_nothing_is_refused() {
    let tree = Tree::copy_of("metal-2s");
    let folder = tree.root().join("etc/systemd/system");
    std::os::unix::fs::symlink("/dev/null", folder.join("off.service")).expect("a link");
    tree.put("/usr/lib/systemd/system/off.service", "[Service]\nExecStart=/opt/off\n");
    all_named(&refused(&tree, &source("x", &[("off", "node = 0")])), &["off.service is masked"]);
    tree.put("/usr/lib/systemd/system/m.service", "[Service]\nExecStart=/usr/bin/numactl -i all /opt/m\n");
    let told = refused(&tree, &source("x", &[("m", "node = 0")]));
    all_named(&told, &["m.service places itself by /usr/bin/numactl", "m.service:2"]);
    let postgres = "[Service]\nType=oneshot\nExecStart=/bin/true\nRemainAfterExit=on\n";
    tree.put("/usr/lib/systemd/system/postgresql.service", postgres);
    let told = refused(&tree, &source("x", &[("postgresql", "node = 0")]));
    all_named(&told, &["postgresql.service runs nothing", "postgresql.service:3", "'postgresql*'"]);
}
