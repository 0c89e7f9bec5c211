//! `install check`: three files that come and go like everything else, and what systemd itself says of them.

use std::process::Command;

use planish_model::{EntryState, Exit};
use planish_pipeline::{
    InstallCheck, InstallWarm, PipelineError, ResumeUnit, Session, Target, check, check_units, install_check,
    install_warm, resume_units, undo, warm_units,
};

use crate::crash::kill_everywhere;
use crate::tree::*;

const SERVICE: &str = "/etc/systemd/system/planish-check.service";
const TARGET: &str = "/etc/systemd/system/timers.target.d/90-planish.conf";

fn install(session: &Session) {
    assert_eq!(install_check(session, &hourly_check()).expect("a host that takes files").exit, Exit::Done);
}

#[test]
fn files_come_once_and_go_with_their_folders() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = tree.session();
    let first = install_check(&session, &hourly_check()).expect("installed");
    assert_eq!((first.exit, first.outcomes.len()), (Exit::Done, 3));
    let text = tree.get(SERVICE);
    assert!(text.starts_with("# Written by planish"), "{text}");
    assert!(text.contains("\nExecStart=/usr/bin/planish check --monitor\n"), "{text}");
    // Without netlink it would be blind to network cards.
    assert!(text.contains("\nRestrictAddressFamilies=AF_UNIX AF_NETLINK\n"), "{text}");
    assert!(tree.get(TARGET).ends_with("[Unit]\nWants=planish-check.timer\n"));
    let again = install_check(&session, &hourly_check()).expect("nothing to do");
    assert_eq!((again.entry, again.exit), (None, Exit::Done));
    assert_eq!(undo(&session, Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    install(&session);
    assert_eq!(tree.entries().iter().filter(|entry| entry.state == EntryState::Open).count(), 1);
}

/// A timer that somebody edited, or a unit that is gone, may compare nothing any more.
#[test]
fn an_installation_that_was_changed_is_never_green() {
    const TIMER: &str = "/etc/systemd/system/planish-check.timer";
    let tree = Tree::new();
    install(&tree.session());
    let checked = || {
        let checked = check(&tree.session(), None).expect("checked");
        let paths: Vec<(String, bool)> =
            checked.changed_files.into_iter().map(|unit| (unit.path, unit.is_there)).collect();
        (checked.exit, paths)
    };
    assert_eq!(checked(), (Exit::Done, Vec::new()));
    let text = tree.get(TIMER);
    tree.put(TIMER, &text.replace("hourly", "yearly"));
    assert_eq!(checked(), (Exit::Findings, vec![(TIMER.to_owned(), true)]));
    tree.put(TIMER, &text);
    tree.remove(SERVICE);
    assert_eq!(checked(), (Exit::Findings, vec![(SERVICE.to_owned(), false)]));
    undo(&tree.session(), Target::Newest, true).expect("undone");
    assert_eq!(checked(), (Exit::Done, Vec::new()));
}

#[test]
fn a_reboot_does_not_close_the_entry() {
    let tree = Tree::new();
    let start = tree.snapshot();
    install(&tree.session());
    tree.put(BOOT_ID, "99999999-2222-3333-4444-555555555555\n");
    assert!(tree.entries()[0].is_open());
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    tree.put(BOOT_ID, &start[BOOT_ID]);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn another_time_or_an_edit_is_refused_until_the_first_is_undone() {
    let tree = Tree::new();
    let session = tree.session();
    install(&session);
    let daily = InstallCheck { every: "daily".to_owned(), ..hourly_check() };
    let error = install_check(&session, &daily).expect_err("another time");
    assert!(matches!(error, PipelineError::Installed { .. }), "{error}");
    assert_eq!(error.exit(), Exit::Refused);
    assert_eq!(error.hints(), ["take that one back first: planish undo 1"]);
    tree.put(SERVICE, "[Service]\nExecStart=/bin/true\n");
    assert!(matches!(install_check(&session, &hourly_check()), Err(PipelineError::Installed { .. })));
    assert_eq!(
        undo(&session, Target::Newest, false).expect("told").exit,
        Exit::Findings,
        "their edit is kept"
    );
    assert!(tree.get(SERVICE).contains("/bin/true"));
    let error = install_check(&session, &hourly_check()).expect_err("now it is theirs");
    assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error}");
}

#[test]
fn words_that_systemd_would_take_apart_are_refused_and_nothing_is_written() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = tree.session();
    let word = |text: &str| text.to_owned();
    for wrong in [
        InstallCheck { program: word("planish"), ..hourly_check() },
        InstallCheck { program: word("/opt/my tools/planish"), ..hourly_check() },
        InstallCheck { program: word("/usr/bin/%n"), ..hourly_check() },
        InstallCheck { every: word("daily\nOnBootSec=1"), ..hourly_check() },
        InstallCheck { every: word(" "), ..hourly_check() },
        InstallCheck { state: Some(word("relative")), ..hourly_check() },
        InstallCheck { profile: Some(word("no-such-profile")), ..hourly_check() },
    ] {
        let error = install_check(&session, &wrong).expect_err("refused");
        assert_eq!(error.exit(), Exit::Usage, "{error}");
    }
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    let profile =
        InstallCheck { profile: Some(word("series")), state: Some(word("/srv/p")), ..hourly_check() };
    let units = check_units(&session, &profile).expect("sound");
    assert!(units[0].text.contains("ExecStart=/usr/bin/planish --state /srv/p check series --monitor\n"));
}

fn warm(unit: Option<&str>) -> InstallWarm {
    InstallWarm {
        program: "/usr/bin/planish".to_owned(),
        binary: "/srv/engine-2".to_owned(),
        unit: unit.map(str::to_owned),
        every: "*:0/15".to_owned(),
    }
}

#[test]
fn text_is_warmed_before_a_service_starts_or_by_a_timer_until_that_is_undone() {
    const LINE: &str = "/usr/bin/planish text huge /srv/engine-2 --route warm\n";
    for unit in [Some("engine@.service"), None] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let session = tree.session();
        let first = install_warm(&session, &warm(unit)).expect("installed");
        assert_eq!((first.exit, first.outcomes.len()), (Exit::Done, if unit.is_some() { 1 } else { 3 }));
        if unit.is_some() {
            let text = tree.get("/etc/systemd/system/engine@.service.d/90-planish-warm-srv-engine_2d2.conf");
            assert!(text.ends_with(&format!("[Service]\nExecStartPre=-+{LINE}")), "{text}");
        } else {
            let text = tree.get("/etc/systemd/system/planish-warm-srv-engine_2d2.service");
            assert!(text.contains(&format!("\nExecStart={LINE}")), "{text}");
            let target = tree.get("/etc/systemd/system/timers.target.d/90-planish-warm-srv-engine_2d2.conf");
            assert!(target.ends_with("[Unit]\nWants=planish-warm-srv-engine_2d2.timer\n"), "{target}");
            let timer = tree.get("/etc/systemd/system/planish-warm-srv-engine_2d2.timer");
            assert!(timer.contains("\nOnBootSec=") && timer.contains("\nOnCalendar=*:0/15\n"), "{timer}");
        }
        assert_eq!(install_warm(&session, &warm(unit)).expect("nothing to do").entry, None);
        let checked = check(&session, None).expect("checked");
        assert_eq!((checked.exit, checked.texts.len()), (Exit::Done, 1));
        let text = &checked.texts[0];
        assert_eq!((text.program.as_str(), text.warmed, text.replaced), ("/srv/engine-2", first.entry, None));
        // Another program has an entry of its own.
        let other = InstallWarm { binary: "/srv/other".to_owned(), ..warm(unit) };
        assert!(install_warm(&session, &other).expect("installed").entry.is_some());
        assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        assert!(check(&session, None).expect("checked").texts.is_empty());
    }
}

#[test]
fn words_that_are_no_program_or_no_service_warm_nothing() {
    let word = |text: &str| text.to_owned();
    for wrong in [
        InstallWarm { program: word("planish"), ..warm(None) },
        InstallWarm { binary: word("engine"), ..warm(None) },
        InstallWarm { binary: word("/srv/my engine"), ..warm(None) },
        InstallWarm { binary: format!("/srv/{}", "a".repeat(250)), ..warm(None) },
        InstallWarm { every: word("never"), ..warm(None) },
        warm(Some("engine")),
        warm(Some("../engine.service")),
        warm(Some(".service")),
        warm(Some("a.service\nExecStart=b.service")),
    ] {
        assert_eq!(warm_units(&wrong).expect_err("refused").exit(), Exit::Usage, "{wrong:?}");
    }
}

#[test]
fn a_kill_while_warming_is_installed_is_undone() {
    let install = |session: &Session| {
        install_warm(session, &warm(None)).expect("installed");
    };
    kill_everywhere(&Tree::new, &|_| {}, &install);
    kill_everywhere(&Tree::without_folders, &install, &crate::crash::undo_everything);
}

#[test]
fn systemd_takes_what_warms_a_program() {
    const NAME: &str = "systemd_takes_what_warms_a_program";
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this test").to_str().expect("a path").to_owned();
    let units = warm_units(&InstallWarm { program: program.clone(), ..warm(None) }).expect("sound words");
    let name = |path: &str| path.rsplit('/').next().expect("a name").to_owned();
    let paths: Vec<_> = units[..2].iter().map(|unit| folder.path().join(name(&unit.path))).collect();
    units.iter().zip(&paths).for_each(|(unit, path)| put(path, &unit.text));
    let drop_in = warm_units(&InstallWarm { program, ..warm(Some("own.service")) }).expect("sound words");
    let own = folder.path().join("own.service");
    put(&own, &format!("{}Type=oneshot\nExecStart=/bin/true\n", drop_in[0].text));
    let verify = ["verify", "--man=no"];
    let mut analyze = Command::new("systemd-analyze");
    let Ok(told) = analyze.args(verify).args(&paths).arg(&own).current_dir(folder.path()).output() else {
        return planish_skip::skip(NAME, "no systemd-analyze here");
    };
    let said = String::from_utf8_lossy(&told.stderr);
    let is_ours = |line: &&str| line.contains("planish-warm") || line.contains("own.service");
    let of_ours: Vec<&str> = said.lines().filter(is_ours).collect();
    assert!(of_ours.is_empty(), "{of_ours:?}");
    let service = name(&units[0].path);
    let security = ["security", "--offline=true", "--threshold=35", &format!("./{service}")];
    let output =
        Command::new("systemd-analyze").args(security).current_dir(folder.path()).output().expect("it ran");
    let told = String::from_utf8_lossy(&output.stderr);
    if !told.contains("unrecognized option") {
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_kill_at_any_write_is_undone() {
    kill_everywhere(&Tree::new, &|_| {}, &install);
    kill_everywhere(&Tree::without_folders, &install, &crate::crash::undo_everything);
}

/// The units as systemd reads them: no unknown key, no wrong value, and little that the service could do.
#[test]
fn systemd_takes_the_units() {
    const NAME: &str = "systemd_takes_the_units";
    let tree = Tree::new();
    let program = std::env::current_exe().expect("this test");
    let program = program.to_str().expect("a path").to_owned();
    for every in ["hourly", "*:0/15", "Mon..Fri 06:30"] {
        let request = InstallCheck { every: every.to_owned(), program: program.clone(), ..hourly_check() };
        let session = tree.session();
        install_check(&session, &request).expect("installed");
        let folder = tree.root().join("etc/systemd/system");
        let analyze =
            |words: &[&str]| Command::new("systemd-analyze").args(words).current_dir(&folder).output();
        let verify = ["verify", "--man=no", "./planish-check.service", "./planish-check.timer"];
        let Ok(output) = analyze(&verify) else { return planish_skip::skip(NAME, "no systemd-analyze") };
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let of_ours: Vec<&str> = told.lines().filter(|line| line.contains("planish-check")).collect();
        assert!(of_ours.is_empty(), "{told}");
        let security = ["security", "--offline=true", "--threshold=35", "./planish-check.service"];
        let output = analyze(&security).expect("it ran just now");
        let told = String::from_utf8_lossy(&output.stderr);
        if !told.contains("unrecognized option") {
            assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stdout));
        }
        undo(&session, Target::All, false).expect("undone");
    }
}

/// The units of a trial whose arms are boots, of which the second starts the machine anew: in a boot on trial alone.
#[test]
fn systemd_takes_the_units_that_go_on_with_a_trial() {
    const NAME: &str = "systemd_takes_the_units_that_go_on_with_a_trial";
    let program = std::env::current_exe().expect("this test");
    let wanted = ResumeUnit {
        program: program.to_str().expect("a path").to_owned(),
        state: Some("/srv/p".to_owned()),
        folder: "/".to_owned(),
        path: "/usr/sbin:/usr/bin".to_owned(),
        seconds_max: 4000,
    };
    let units = resume_units(&wanted).expect("sound words");
    let [back, timer, early, service, target] = units.as_slice() else { panic!("{units:?}") };
    assert!(service.text.contains(" --state /srv/p trial resume\n"), "{}", service.text);
    assert!(service.text.contains("\nOnFailure=planish-trial-back.service\n"), "{}", service.text);
    assert!(service.text.contains("\nRequiresMountsFor=/srv/p / "), "{}", service.text);
    assert!(target.path.contains("/multi-user.target.d/"), "{target:?}");
    // A boot that never comes to that target is left too: by what is started at its very beginning and waits for
    // nothing, after the longest that a boot and its units may take.
    assert!(
        early.path.contains("/sysinit.target.d/") && early.text.contains("Wants=planish-trial-back.timer")
    );
    for unit in [back, timer] {
        assert!(unit.text.contains("\nConditionKernelCommandLine=planish.trial\n"), "{}", unit.text);
        assert!(unit.text.contains("\nDefaultDependencies=no\n"), "{}", unit.text);
        assert!(!unit.text.contains("\nAfter=") && !unit.text.contains("\nRequires="), "{}", unit.text);
    }
    assert!(timer.text.contains("\nOnBootSec=5200\n"), "{}", timer.text);
    // Once for each boot that the loader is told of: it takes its own file away, or does nothing.
    let first = format!("/bin/sh -c 'rm {} && (", back.path);
    assert!(back.text.contains(&first), "{}", back.text);
    for wrong in [
        ResumeUnit { folder: "/my folder".to_owned(), ..wanted.clone() },
        ResumeUnit { path: "/bin:/my tools".to_owned(), ..wanted.clone() },
        ResumeUnit { program: "planish".to_owned(), ..wanted.clone() },
    ] {
        assert_eq!(resume_units(&wrong).expect_err("refused").exit(), Exit::Usage);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let name = |path: &str| path.rsplit('/').next().expect("a name").to_owned();
    let verified = [back, timer, service];
    let paths = verified.map(|unit| folder.path().join(name(&unit.path)));
    for (path, unit) in paths.iter().zip(verified) {
        put(path, &unit.text);
    }
    let Ok(told) = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&paths).output() else {
        planish_skip::skip(NAME, "no systemd-analyze here");
        return;
    };
    let said = String::from_utf8_lossy(&told.stderr);
    let of_ours: Vec<&str> = said.lines().filter(|line| line.contains("planish-trial")).collect();
    assert!(of_ours.is_empty(), "{of_ours:?}");
}

#[expect(clippy::disallowed_methods, reason = "makes the fixture")]
fn put(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).expect("ours");
}
