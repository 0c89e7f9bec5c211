//! `--persist`: nothing that somebody wants to keep is left out in silence, and nothing of it stays behind.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_model::{
    Class, Drift, DriftState, EntryId, Exit, KnobCheck, NOT_GIVEN, Observation, Plan, Skipped, Verdict,
    VerdictKind, Want, When,
};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, confirm, plan, undo,
};

use crate::tree::*;

/// Names of all recorded machines.
#[expect(clippy::disallowed_methods, reason = "lists the fixtures")]
fn all_hosts() -> Vec<String> {
    let folders = std::fs::read_dir(hosts()).expect("the fixtures are there").filter_map(Result::ok);
    let folders = folders.filter(|folder| Host::open(&folder.path()).is_ok() && folder.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|folder| folder.file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

/// A plan that wants every place of every row to stay as it is: nothing to write now, everything to keep.
fn keep_all(session: &Session, observation: &Observation) -> Plan {
    let mut kept = Vec::new();
    for knob in session.catalogue().knobs() {
        if matches!(knob.class, Class::Oneway | Class::Action) {
            continue;
        }
        for reading in observation.knobs.get(&knob.id).into_iter().flatten() {
            let Some(value) = &reading.value else { continue };
            let value = knob.r#type.normal(value);
            let given = value != NOT_GIVEN && knob.boot_parameter().is_none_or(|_| value != "0");
            if given && knob.validate(&value).is_ok() {
                let verdict = Verdict::new(VerdictKind::Settable, "");
                kept.push(Skipped::satisfied(knob.id.clone(), reading.place.clone(), value, verdict));
            }
        }
    }
    let host = &observation.host;
    Plan::new("all".to_owned(), host.host_id.clone(), host.boot_id.clone(), Vec::new(), kept)
}

#[test]
fn every_place_of_every_row_is_written_or_named_on_every_machine() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut without_loader = Vec::new();
    let names = all_hosts();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let tree = Tree::writable_copy_of(&name);
        let start = tree.snapshot();
        let session = tree.session();
        let mut plan = keep_all(&session, &session.observe());
        assert!(plan.skipped.len() > 20, "{name} shows {} places", plan.skipped.len());
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        let mut applied = apply(&session, &plan, &options);
        // Its sign is on the command line, and its files are not in the record: of such a loader nothing is written.
        if let Err(PipelineError::BootLoader { .. }) = applied {
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
            let of_boot = |row: &Skipped| {
                session.catalogue().knob(&row.knob).is_ok_and(|knob| knob.boot_parameter().is_some())
            };
            plan.skipped.retain(|row| !of_boot(row));
            without_loader.push(name.clone());
            applied = apply(&session, &plan, &options);
        }
        let applied = applied.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        // Read back as the next boot reads it, by another reader than the one that wrote it.
        let after = tree.session().observe();
        for kept in &plan.skipped {
            let knob = session.catalogue().knob(&kept.knob).expect("of the catalogue");
            let wanted = kept.wanted.as_deref().expect("a value");
            let named = applied.unpersisted.iter().find(|left| left.place == kept.place);
            let found = after.persisted.get(&kept.place);
            match (named, found) {
                (Some(left), _) => {
                    assert!(!left.reason.is_empty() && !left.cure.is_empty(), "{name} {}", kept.place);
                    *seen.entry("named").or_default() += 1;
                }
                (None, Some(found)) => {
                    let same = knob.r#type.same(&found.value, wanted);
                    // What the boot loader gives already is not given once more.
                    let ours = found.is_ours() || knob.when == When::Boot && found.at_boot.is_none();
                    // Somebody else's file may be read after ours: then check tells so, as apply does.
                    let loses = found.overridden.iter().any(|lost| {
                        lost.value == wanted
                            && lost.file.as_deref().is_some_and(|file| file.contains("/90-planish."))
                    });
                    assert!(same && ours || loses, "{name} {}: {wanted} became {found:?}", kept.place);
                    *seen.entry("written").or_default() += 1;
                }
                // Nothing gives the module another value at its start.
                (None, None) if knob.when == When::Boot && knob.boot_parameter().is_none() => {}
                (None, None) => panic!("{name}: {} was left out in silence", kept.place),
            }
        }
        drop(session);
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done, "{name}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
    }
    assert!(seen["written"] > 2000 && seen["named"] > 20, "{seen:?}");
    assert!(
        without_loader.contains(&"al2023-lockdown".to_owned()) && without_loader.len() < 4,
        "{without_loader:?}"
    );
}

/// A line that planish wrote for the next boot and somebody took away is a finding, as an argument of the boot loader
/// is, with the entry to undo: what has no file by intent is none.
/// A value for /proc/sys, and one for /sys.
fn own_two() -> Source {
    profile("own", &[("vm.swappiness", Want::Int(1)), ("thp.enabled", Want::Text("never".into()))])
}

/// What somebody wrote otherwise sets the place at the next boot all the same: an undo that leaves it is not done.
#[test]
fn an_undo_that_leaves_a_line_of_ours_in_another_spelling_says_so() {
    let source = own_two();
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let (sysctl, tmpfiles) = ("/etc/sysctl.d/90-planish.conf", "/etc/tmpfiles.d/90-planish.conf");
    for (file, own, other) in [
        (sysctl, "vm.swappiness = 1", "vm.swappiness=1"),
        (sysctl, "vm.swappiness = 1", "-vm.swappiness = 1"),
        (sysctl, "vm.swappiness = 1", "vm/swappiness = 1"),
        (sysctl, "vm.swappiness = 1", "vm.swapp* = 1"),
        (sysctl, "vm.swappiness = 1", "  vm.swappiness  =  1"),
        (tmpfiles, "w /", "w  /"),
        (tmpfiles, "w /", "w+ /"),
        (tmpfiles, " - - - - ", "  - - -  - "),
        (sysctl, "vm.swappiness = 1", "- vm.swappiness = 1"),
        (sysctl, "vm.swappiness = 1", "vm//swappiness = 1"),
        (
            tmpfiles,
            "w /sys/kernel/mm/transparent_hugepage/enabled",
            "w \"/sys/kernel/mm/transparent_hugepage/enabled\"",
        ),
        (
            tmpfiles,
            "w /sys/kernel/mm/transparent_hugepage/enabled",
            "F! /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    ] {
        let tree = Tree::new();
        apply(&tree.session(), &plan_of(&tree.session(), &source), &persist).expect("applied");
        let text = tree.get(file).replace(own, other);
        assert_ne!(text, tree.get(file), "{file} has no `{own}`");
        tree.put(file, &text);
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Findings, "{other}: {:?}", undone.hints);
        assert!(tree.get(file).contains(other), "{other}");
        let forced = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone");
        assert_eq!(forced.exit, Exit::Done, "{other}: {:?}", forced.hints);
    }
}

#[test]
fn a_line_of_ours_that_somebody_took_away_is_a_finding() {
    type Way<'a> = (&'static str, &'a dyn Fn(&Tree));
    let source = own_two();
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let (sysctl, tmpfiles) = ("/etc/sysctl.d/90-planish.conf", "/etc/tmpfiles.d/90-planish.conf");
    let ways: [Way<'_>; 4] = [
        (sysctl, &|tree| tree.remove(sysctl)),
        (sysctl, &|tree| tree.put(sysctl, "")),
        (sysctl, &|tree| tree.put(sysctl, &tree.get(sysctl).replace("vm.swappiness", "# vm.swappiness"))),
        (tmpfiles, &|tree| tree.remove(tmpfiles)),
    ];
    for (file, take_away) in ways {
        let tree = Tree::new();
        apply(&tree.session(), &plan_of(&tree.session(), &source), &persist).expect("applied");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{file}");
        take_away(&tree);
        let checked = check(&tree.session(), None).expect("checked");
        let why = checked.drift.knobs.iter().filter_map(|row| row.because.as_deref());
        let told = format!("the line of entry 1 for it is gone from {file}: planish undo 1");
        assert!(why.clone().any(|why| why.starts_with(&told)), "{:?}", why.collect::<Vec<_>>());
        assert_eq!(checked.exit, Exit::Findings, "{file}");
    }
    // So is one for a value that was there as it was wanted.
    let tree = Tree::new();
    let there = tree.get("/proc/sys/vm/swappiness").trim().parse().expect("a number");
    let same = profile("own", &[("vm.swappiness", Want::Int(there))]);
    apply(&tree.session(), &plan_of(&tree.session(), &same), &persist).expect("applied");
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    tree.remove(sysctl);
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Findings);
    // Nor does an apply write over what somebody made of one.
    let tree = Tree::new();
    apply(&tree.session(), &plan_of(&tree.session(), &source), &persist).expect("applied");
    tree.put(sysctl, &tree.get(sysctl).replace("vm.swappiness = 1", "vm.swappiness = 9"));
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.knob.as_str() == "vm.swappiness");
    let why = row.and_then(|row| row.because.as_deref()).unwrap_or_default();
    assert!(why.contains("someone made 9 of the line of entry 1") && why.contains("undo 1 --force"), "{why}");
    assert_eq!(checked.exit, Exit::Findings);
    undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone");
    apply(&tree.session(), &plan_of(&tree.session(), &source), &persist).expect("applied");
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    // Nobody asked for a file.
    let tree = Tree::new();
    apply(&tree.session(), &plan_of(&tree.session(), &source), &ApplyOptions::default()).expect("applied");
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
}

/// A word for the boot loader of which no menu was made sets nothing at the next boot.
#[test]
fn a_line_of_ours_that_is_gone_is_a_finding_whatever_waits_for_a_menu() {
    for word in ["sysctl.vm.swappiness=77", "sysctl.vm.swappiness=012"] {
        let tree = Tree::copy_of("metal-2s");
        tree.remove_if_there("/etc/sysctl.d/99-local.conf");
        let source = profile("own", &[("vm.swappiness", Want::Int(10))]);
        apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
        let grub = tree.get("/etc/default/grub");
        tree.put("/etc/default/grub", &format!("{grub}\nGRUB_CMDLINE_LINUX_DEFAULT=\"{word}\"\n"));
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "ours wins");
        tree.remove("/etc/sysctl.d/90-planish.conf");
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.iter().find(|row| row.knob.as_str() == "vm.swappiness").expect("a row");
        assert_eq!((row.state, checked.exit), (DriftState::Drift, Exit::Findings), "{word}: {row:#?}");
    }
}

/// No boot reads them where systemd is told to leave out what would.
#[test]
fn files_that_no_boot_reads_are_a_finding() {
    let source = own_two();
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let (sysctl, tmpfiles) = ("/etc/sysctl.d/90-planish.conf", "/etc/tmpfiles.d/90-planish.conf");
    let units = [(sysctl, "systemd-sysctl.service"), (tmpfiles, "systemd-tmpfiles-setup.service")];
    for (index, (file, unit)) in units.into_iter().enumerate() {
        let tree = Tree::new();
        tree.put("/run/systemd/system/.keep", "");
        // A line that loses to ours does not come to count where nothing reads either.
        let behind_ours = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - always\n";
        tree.put("/etc/tmpfiles.d/99-theirs.conf", behind_ours);
        apply(&tree.session(), &plan_of(&tree.session(), &source), &persist).expect("applied");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{unit}");
        let mask = format!("/etc/systemd/system/{unit}");
        tree.put("/etc/systemd/system/.keep", "");
        let of_this_boot = format!("/run/systemd/system/{unit}");
        let mask_at = |path: &str, target: &str| {
            let link = tree.session().host().folder().expect("a tree").join(&path[1..]);
            std::os::unix::fs::symlink(target, link).expect("a link");
        };
        mask_at(&of_this_boot, "/dev/null");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "it goes with this boot");
        let target = ["../../../dev/null", "/dev/null"][index];
        mask_at(&mask, target);
        let checked = check(&tree.session(), None).expect("checked");
        let why = checked.drift.knobs.iter().filter_map(|row| row.because.as_deref());
        let told = format!("{mask} takes back what {file}");
        assert!(why.clone().any(|why| why.starts_with(&told)), "{:?}", why.collect::<Vec<_>>());
        assert_eq!(checked.exit, Exit::Findings, "{unit}");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done, "{unit}");
    }
}

/// A later line counts for what the kernel makes of it: `0` begins an octal number, and what follows one is not read.
#[test]
fn numbers_of_others_are_what_the_kernel_reads() {
    let source = profile("own", &[("vm.swappiness", Want::Int(10))]);
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    for (text, exit) in [
        ("010", Exit::Findings),
        ("012", Exit::Done),
        ("0xa", Exit::Done),
        ("10 # of the database", Exit::Done),
        ("11", Exit::Findings),
        ("+10", Exit::Findings),
    ] {
        let tree = Tree::new();
        apply(&tree.session(), &plan_of(&tree.session(), &source), &persist).expect("applied");
        tree.put("/etc/sysctl.d/99-theirs.conf", &format!("vm.swappiness = {text}\n"));
        let checked = check(&tree.session(), None).expect("checked");
        assert_eq!(checked.exit, exit, "{text}: {:#?}", checked.drift.knobs);
    }
}

#[test]
fn folders_that_were_made_for_our_files_go_with_the_last_of_them() {
    let tree = Tree::without_folders();
    let start = tree.snapshot();
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let session = tree.session();
    apply(&session, &plan_of(&session, &everything()), &options).expect("applied");
    let second = profile("second", &[("vm.swappiness", Want::Int(1))]);
    apply(&session, &plan_of(&session, &second), &options).expect("applied");
    let entries = tree.entries();
    let made = |entry: usize| entries[entry].steps.last().expect("a file").folders.clone();
    assert_eq!(made(0), ["/etc", "/etc/tmpfiles.d"]);
    assert_eq!(made(1), ["/etc", "/etc/sysctl.d"], "the second takes the folders of the first over");
    // The older one first: its file stays for the lines of the newer.
    undo(&session, Target::Entry(entries[0].id), false).expect("undone");
    assert!(tree.get("/etc/sysctl.d/90-planish.conf").contains("vm.swappiness = 1"));
    assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A module takes such a value up when it starts: the boot loader gives it, and no line of a file is told to.
#[test]
fn a_value_of_a_modules_start_is_kept_by_the_boot_loader() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    let (place, name) = ("/sys/module/nvme_core/parameters/io_timeout", "nvme_core.io_timeout");
    let given = tree.get("/etc/default/grub");
    tree.put("/etc/default/grub", &format!("{given}GRUB_CMDLINE_LINUX=\"{name}=99\"\n"));
    let source = profile("io", &[("nvme.io_timeout_s", Want::Int(30))]);
    assert_eq!(tree.get(place).trim(), "30", "it runs as wanted");
    let row = |tree: &Tree| {
        let rows = check(&tree.session(), Some(&source)).expect("checked").drift.knobs;
        rows.into_iter().find(|row| row.place == place).expect("it is looked at")
    };
    assert_eq!(row(&tree).state, DriftState::LostAtBoot);
    tree.put("/etc/tmpfiles.d/theirs.conf", &format!("w {place} - - - - 30\n"));
    assert_eq!(row(&tree).state, DriftState::LostAtBoot, "a line comes too late for it");
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let planned = plan(&tree.session(), &source, &allowed).expect("a plan");
    apply(&tree.session(), &planned, &PERSIST).expect("applied");
    assert_eq!(tree.get(TMPFILES_FILE), "");
    assert!(tree.get("/etc/default/grub.d/90-planish.cfg").contains(&format!("{name}=30")));
    let told = row(&tree).because.expect("a recorded host makes no menu");
    assert!(told.starts_with("in /etc/default/grub.d/90-planish.cfg:2; "), "{told}");
    undo(&tree.session(), Target::All, false).expect("undone");
    tree.remove("/etc/tmpfiles.d/theirs.conf");
    tree.remove_folder("/etc/tmpfiles.d");
    tree.put("/etc/default/grub", &given);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// Options of a module may come behind a line for its parameter: that is told.
#[test]
fn options_of_a_module_are_told_beside_the_line_of_its_parameter() {
    let tree = Tree::copy_of("metal-2s");
    tree.put("/etc/modprobe.d/nf.conf", "options nf_conntrack hashsize=1024\n");
    let place = "/sys/module/nf_conntrack/parameters/hashsize";
    tree.put(place, "65536\n");
    let source = profile("table", &[("net.conntrack_hashsize", Want::Int(65536))]);
    let because = |tree: &Tree| {
        let rows = check(&tree.session(), Some(&source)).expect("checked").drift.knobs;
        let row = rows.into_iter().find(|row| row.place == place).expect("it is looked at");
        (row.state, row.because.unwrap_or_default())
    };
    apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    let (_, told) = because(&tree);
    assert!(told.contains("/etc/modprobe.d/nf.conf:1") && told.contains("1024"), "{told}");
}

#[test]
fn a_folder_in_the_place_of_a_file_of_ours_is_told_with_what_to_type_then() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let source = profile("own", &[("vm.swappiness", Want::Int(10))]);
    apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    tree.remove(SYSCTL_FILE);
    tree.put(&format!("{SYSCTL_FILE}/theirs"), "");
    let undone = undo(&tree.session(), Target::Newest, false).expect("looked at");
    assert_eq!(undone.exit, Exit::FailedNotRestored);
    let told = format!(
        "{SYSCTL_FILE} was not put back: cannot read {SYSCTL_FILE}: it failed (it is a folder, not a file); when \
         that is mended: planish undo 1"
    );
    assert_eq!(undone.hints, [told], "and nothing of its own values, which went back with it");
    tree.remove(&format!("{SYSCTL_FILE}/theirs"));
    tree.remove_folder(SYSCTL_FILE);
    assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_folder_of_ours_that_somebody_uses_stays() {
    let tree = Tree::without_folders();
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let session = tree.session();
    apply(&session, &plan_of(&session, &everything()), &options).expect("applied");
    tree.put("/etc/sysctl.d/50-theirs.conf", "vm.overcommit_ratio = 50\n");
    assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(tree.get("/etc/sysctl.d/50-theirs.conf"), "vm.overcommit_ratio = 50\n");
    assert!(!tree.root().join("etc/tmpfiles.d").exists(), "nobody uses that one");
}

/// What `planish check` finds amiss, of all that is applied.
fn rows_that_are_not_well(session: &Session) -> Vec<String> {
    let checked = check(session, None).expect("checked");
    let is_well = |row: &&KnobCheck| Drift { knobs: vec![(*row).clone()] }.is_clean();
    checked
        .drift
        .knobs
        .iter()
        .filter(|row| !is_well(row))
        .map(|row| format!("{} {:?} {:?}", row.place, row.state, row.because))
        .collect()
}

#[test]
fn from_one_profile_to_one_with_its_twins_and_back_nothing_is_called_drift() {
    for order in [["throughput", "low-latency"], ["low-latency", "throughput"]] {
        let tree = Tree::copy_of("metal-2s");
        // It takes back what a file that is read later would: that is for other tests.
        tree.remove("/etc/sysctl.d/99-local.conf");
        let start = tree.snapshot();
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        for name in order {
            let plan = plan_of(&tree.session(), &Source::Profile(name.to_owned()));
            apply(&tree.session(), &plan, &options).expect("applied");
            assert_eq!(rows_that_are_not_well(&tree.session()), [""; 0], "{order:?} {name}");
        }
        undo(&tree.session(), Target::Newest, false).expect("undone");
        assert_eq!(rows_that_are_not_well(&tree.session()), [""; 0], "{order:?} undone");
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

#[test]
fn of_two_twins_the_one_that_was_wanted_last_is_set_last_at_boot() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let session = tree.session();
    let ratio = profile("ratio", &[("vm.dirty_ratio", Want::Int(30))]);
    let bytes = profile("bytes", &[("vm.dirty_bytes", Want::Int(1 << 29))]);
    let lines = || -> Vec<String> {
        let text = tree.get(SYSCTL_FILE);
        text.lines().filter(|line| line.starts_with("vm.dirty")).map(str::to_owned).collect()
    };
    let (ratio_line, bytes_line) = ("vm.dirty_ratio = 30", "vm.dirty_bytes = 536870912");
    for (profile, expected) in [
        (&ratio, &[ratio_line][..]),
        (&bytes, &[ratio_line, bytes_line]),
        (&ratio, &[bytes_line, ratio_line]),
    ] {
        let applied = apply(&session, &plan_of(&session, profile), &options).expect("applied");
        assert_eq!(applied.exit, Exit::Done, "{:?}", applied.hints);
        assert_eq!(lines(), expected);
        assert_eq!(rows_that_are_not_well(&session), [""; 0]);
    }
    let again = apply(&session, &plan_of(&session, &ratio), &options).expect("as it is");
    assert_eq!(again.entry, None, "the file has its line where it counts");
    undo(&session, Target::Newest, false).expect("undone");
    assert_eq!(lines(), [ratio_line, bytes_line]);
    assert_eq!(rows_that_are_not_well(&session), [""; 0]);
    assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn what_a_later_file_takes_back_at_boot_is_a_finding_each_time_that_the_next_boot_is_asked_for() {
    let tree = Tree::new();
    tree.put("/etc/sysctl.d/99-local.conf", "vm.swappiness = 60\n");
    let session = tree.session();
    let five = profile("five", &[("vm.swappiness", Want::Int(5))]);
    let now = apply(&session, &plan_of(&session, &five), &ApplyOptions::default()).expect("applied");
    assert_eq!((now.exit, now.hints.len()), (Exit::Done, 0), "{:?}", now.hints);
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    for is_first in [true, false] {
        let applied = apply(&session, &plan_of(&session, &five), &options).expect("applied");
        assert_eq!((applied.exit, applied.entry.is_some()), (Exit::Findings, is_first));
        let told = "vm.swappiness: /etc/sysctl.d/99-local.conf:1 will set 60";
        assert!(applied.hints.iter().any(|hint| hint == told), "{:?}", applied.hints);
    }
    assert_eq!(check(&session, Some(&five)).expect("checked").exit, Exit::Findings);
}

#[test]
fn what_a_later_file_takes_back_at_boot_is_a_finding_of_the_confirm() {
    let tree = Tree::new();
    tree.put("/etc/sysctl.d/99-local.conf", "vm.swappiness = 60\n");
    let session = crate::watch::without_watcher(&tree);
    // One value is to be written, and one is as wanted already.
    let two = [("vm.swappiness", Want::Int(5)), ("vm.stat_interval", Want::Int(1))];
    let (options, two) =
        (ApplyOptions { confirm_seconds: Some(3600), persist: true, reason: None }, profile("two", &two));
    let applied = apply(&session, &plan_of(&session, &two), &options).expect("applied");
    assert_eq!(applied.exit, Exit::Done, "the confirm writes the files: {:?}", applied.hints);
    tree.put("/etc/sysctl.d/98-more.conf", "vm.stat_interval = 7\n");
    let confirmed = confirm(&session).expect("confirmed");
    assert_eq!((confirmed.exit, confirmed.entries.len()), (Exit::Findings, 1));
    let told = [
        "vm.stat_interval: /etc/sysctl.d/98-more.conf:1 will set 7",
        "vm.swappiness: /etc/sysctl.d/99-local.conf:1 will set 60",
    ];
    assert_eq!(confirmed.hints, told);

    // Again, with nothing to write: no confirm will say it.
    let again = apply(&session, &plan_of(&session, &two), &options).expect("as it is");
    assert_eq!((again.entry, again.exit), (None, Exit::Findings));
    assert_eq!(again.hints, told);
    undo(&session, Target::All, false).expect("undone");

    // The other program ran meanwhile.
    apply(&session, &plan_of(&session, &two), &options).expect("applied");
    tree.edit(SWAPPINESS, "60");
    let confirmed = confirm(&session).expect("confirmed");
    assert_eq!(confirmed.exit, Exit::Findings);
    let told = "vm.swappiness: as /etc/sysctl.d/99-local.conf:1 says; the next boot brings 60";
    assert!(confirmed.hints.iter().any(|hint| hint == told), "{:?}", confirmed.hints);
    undo(&session, Target::All, false).expect("undone");

    // And a file that is read before ours takes nothing.
    tree.remove("/etc/sysctl.d/99-local.conf");
    tree.remove("/etc/sysctl.d/98-more.conf");
    tree.put("/etc/sysctl.d/50-local.conf", "vm.swappiness = 60\n");
    apply(&session, &plan_of(&session, &two), &options).expect("applied");
    let confirmed = confirm(&session).expect("confirmed");
    assert_eq!((confirmed.exit, confirmed.hints), (Exit::Done, Vec::new()));
}

/// A line of ours for what was as wanted already is the entry's from then on: who takes it back is told before the boot
/// and after it, with no profile named, as an installed check asks.
#[test]
fn what_was_as_wanted_when_it_was_persisted_is_held_against_now_and_the_next_boot() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let two = [("vm.zone_reclaim_mode", Want::Int(1)), ("vm.stat_interval", Want::Int(10))];
    let session = tree.session();
    apply(&session, &plan_of(&session, &profile("two", &two)), &PERSIST).expect("applied");
    let row = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("checked");
        let row = checked.drift.knobs.into_iter().find(|row| row.place == ZONE_RECLAIM).expect("a row");
        (row.state, row.wanted, row.because.unwrap_or_default(), checked.exit)
    };
    let one = Some("1".to_owned());
    assert_eq!(row(&tree), (DriftState::Ok, one.clone(), String::new(), Exit::Done));
    tree.put("/etc/sysctl.d/95-vendor.conf", "vm.zone_reclaim_mode = 0\n");
    let lost = "/etc/sysctl.d/95-vendor.conf:1 will set 0".to_owned();
    assert_eq!(row(&tree), (DriftState::LostAtBoot, one.clone(), lost, Exit::Findings));
    tree.reboot(&start);
    let drift = "as /etc/sysctl.d/95-vendor.conf:1 says".to_owned();
    assert_eq!(row(&tree), (DriftState::Drift, one.clone(), drift, Exit::Findings));
    tree.remove("/etc/sysctl.d/95-vendor.conf");
    assert_eq!(row(&tree), (DriftState::Drift, one, "changed since entry 1".to_owned(), Exit::Findings));
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(row(&tree), (DriftState::Ok, None, String::new(), Exit::Done));
}

/// The same where a later unit takes it back.
#[test]
fn who_writes_over_what_was_as_wanted_is_laid_over_its_line() {
    let tree = Tree::copy_of("metal-2s");
    let unit = "[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo defer > \
                /sys/kernel/mm/transparent_hugepage/defrag\"\n[Install]\nWantedBy=multi-user.target\n";
    let source = profile(
        "own",
        &[("thp.defrag", Want::Text("madvise".to_owned())), ("vm.stat_interval", Want::Int(10))],
    );
    let session = tree.session();
    apply(&session, &plan_of(&session, &source), &PERSIST).expect("applied");
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/etc/systemd/system/disable-thp.service", unit);
    tree.put("/etc/systemd/system/multi-user.target.wants/disable-thp.service", "");
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.knob.as_str() == "thp.defrag").expect("a row");
    assert_eq!((row.state, checked.exit), (DriftState::OverwrittenAtBoot, Exit::Findings), "{row:?}");
}

/// What means nothing here is as wanted by chance alone: a line for it would come with the second apply, once a write
/// beside it has changed it, and not with the first.
#[test]
fn a_second_apply_has_nothing_to_keep_that_the_first_had_not() {
    let options =
        PlanOptions { allow_classes: vec![Class::Availability], persist: true, ..Default::default() };
    for host in ["rhel9-guest", "metal-2s"] {
        let session = Tree::copy_of(host).session();
        let names: Vec<String> = session.catalogue().profile_names().map(ToString::to_string).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            let tree = Tree::copy_of(host);
            let source = Source::named(&name);
            let apply = || {
                let session = tree.session();
                let plan = plan(&session, &source, &options).expect("a plan");
                apply(&session, &plan, &PERSIST).map(|done| (done.entry, done.exit))
            };
            // A profile that this host cannot have is written neither time.
            if let Ok((Some(_), Exit::Done | Exit::Findings)) = apply() {
                let again = apply().unwrap_or_else(|error| panic!("{host} {name}: {error:?}"));
                assert_eq!(again.0, None, "{host} {name}: {:#?}", tree.entries().last());
            }
        }
    }
}
