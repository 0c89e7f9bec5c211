//! A link with the name of a file of ours: to /dev/null, by which whoever keeps a host forbids the file, to nothing,
//! and to a file with our own text. It is theirs whatever it leads to: nothing is written over it, and an undo leaves
//! it.

use std::fs;

use planish_model::{Class, EntryId, Exit, Plan, Undo, Want};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, apply_once, boot_alone, check,
    confirm, install_check, once_preview, plan, preview, undo,
};

use crate::boot::{all, debian, wants};
use crate::once::able;
use crate::rules;
use crate::tree::*;

/// Where the links lead: what forbids a file, what is not there (yet), and what may have our own text.
const TARGETS: [&str; 3] = ["/dev/null", "/srv/not/there.conf", "../kept-elsewhere"];

/// A placement with slices, drop-ins, parameters and a file that holds a limit.
const ALL_KINDS: &str = "
    name = 'kinds'
    summary = 's'
    [want]
    'vm.swappiness' = 7
    'thp.enabled' = 'never'
    'boot.skew_tick' = '1'
    'cpu.dma_latency_us' = 50
    'unit.nofile' = { value = '65536', only = 'redis*' }
    [placement]
    [[placement.service]]
    unit = 'realtime.service'
    node = 0
    isolate = true
";

fn all_kinds() -> Source {
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    Source::Inline(Box::new(catalogue.parse_profile("kinds.toml", ALL_KINDS).expect("a sound profile")))
}

fn placed() -> Tree {
    let tree = Tree::copy_of("metal-2s");
    let unit = "[Service]\nExecStart=/bin/x\nLimitNOFILE=1024\n";
    tree.put("/usr/lib/systemd/system/redis-server.service", unit);
    tree.put("/usr/bin/planish", "");
    tree
}

fn planned(session: &Session, source: &Source) -> Plan {
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    plan(session, source, &options).expect("a plan")
}

/// Writes all files of a kind of host, as the command does that brings them.
type Write = fn(&Session) -> Result<Exit, PipelineError>;

fn kinds(session: &Session) -> Result<Exit, PipelineError> {
    apply(session, &planned(session, &all_kinds()), &PERSIST).map(|applied| applied.exit)
}

fn cards(session: &Session) -> Result<Exit, PipelineError> {
    apply(session, &planned(session, &rules::cards()), &PERSIST).map(|applied| applied.exit)
}

fn parameters(session: &Session) -> Result<Exit, PipelineError> {
    apply(session, &planned(session, &wants()), &PERSIST).map(|applied| applied.exit)
}

fn timer(session: &Session) -> Result<Exit, PipelineError> {
    install_check(session, &hourly_check()).map(|installed| installed.exit)
}

const SCENES: [(fn() -> Tree, Write); 4] =
    [(placed, kinds), (rules::host, cards), (debian, parameters), (Tree::new, timer)];

/// The files of ours that a scene writes.
fn files(make: fn() -> Tree, write: Write) -> Vec<String> {
    let tree = make();
    let exit = write(&tree.session()).expect("written");
    assert!(matches!(exit, Exit::Done | Exit::Findings), "{exit:?}");
    let steps = tree.entries().into_iter().flat_map(|entry| entry.steps);
    steps.filter(|step| step.undo == Undo::File).map(|step| step.place).collect()
}

fn link(tree: &Tree, path: &str) -> Option<String> {
    let at = tree.root().join(path.trim_start_matches('/'));
    fs::read_link(at).ok().map(|target| target.display().to_string())
}

#[test]
fn a_link_with_the_name_of_our_file_is_refused_and_stays() {
    let mut seen = Vec::new();
    for (make, write) in SCENES {
        for path in files(make, write) {
            for target in TARGETS {
                let tree = make();
                put_link(&tree, &path, target);
                let start = tree.snapshot();
                let error = write(&tree.session()).expect_err(&path);
                assert!(matches!(error, PipelineError::ForeignFile { .. }), "{path}: {error:?}");
                assert_eq!(error.exit(), Exit::Refused, "{path}");
                let told = format!("{error}: {}", error.hints().join("; "));
                assert!(told.contains(&path) && told.contains(target), "{told}");
                assert_eq!(told.contains("is masked"), target == "/dev/null", "{told}");
                assert!(told.contains(&format!("mv {path} ")), "{told}");
                assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{path}");
                assert!(tree.entries().is_empty(), "{path}");
                assert_eq!(link(&tree, &path).as_deref(), Some(target), "{path}");
            }
            seen.push(path);
        }
    }
    let has = |part: &str| assert!(seen.iter().any(|path| path.contains(part)), "{part}: {seen:?}");
    for part in [
        "/sysctl.d/",
        "/tmpfiles.d/",
        "/udev/rules.d/",
        "/default/grub.d/",
        "/planish.slice",
        "redis-server.service.d/",
        "realtime.service.d/",
        "planish-hold",
        "planish-check.timer",
        "timers.target.d/",
    ] {
        has(part);
    }
}

#[test]
fn a_look_tells_of_the_link_as_the_apply_does() {
    let tree = Tree::new();
    put_link(&tree, SYSCTL_FILE, "/dev/null");
    let session = tree.session();
    let told = preview(&session, &plan_of(&session, &everything())).expect("a look").refusals;
    let [error] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        error.to_string(),
        format!("{SYSCTL_FILE} is masked: it is a link to /dev/null, and was not made by planish")
    );
}

/// Whoever masks a file of ours, or moves it to where other tools keep theirs, is not overruled by an undo.
#[test]
fn a_link_that_came_later_is_kept_told_and_goes_by_force_alone() {
    for (make, write) in SCENES {
        for path in files(make, write) {
            for target in TARGETS {
                let tree = make();
                let start = tree.snapshot();
                write(&tree.session()).expect("written");
                put_link(&tree, &path, target);
                let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
                assert_eq!(undone.exit, Exit::Findings, "{path} -> {target}: {:?}", undone.hints);
                let told = format!("{path}: someone put a link to {target} there: theirs was kept");
                assert!(undone.hints.iter().any(|hint| hint.starts_with(&told)), "{:?}", undone.hints);
                assert_eq!(link(&tree, &path).as_deref(), Some(target), "{path}");
                let left = differences(&start, &tree.snapshot());
                let folder = path.rsplit_once('/').expect("a folder").0;
                let is_kept = |left: &String| {
                    path.starts_with(left.as_str())
                        || left.starts_with(folder)
                        || left.ends_with("/kept-elsewhere")
                };
                assert!(left.iter().all(is_kept), "{path} -> {target}: {left:?}");
                // Force takes the link, and nothing of what it leads to.
                let forced = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("undone");
                assert_eq!((forced.exit, link(&tree, &path)), (Exit::Done, None), "{:?}", forced.hints);
                let left = differences(&start, &tree.snapshot());
                assert!(
                    left.iter().all(|left| left.ends_with("/kept-elsewhere") || left.ends_with('/')),
                    "{left:?}"
                );
            }
        }
    }
}

#[test]
fn an_apply_over_an_entry_whose_file_became_a_link_is_refused() {
    for target in TARGETS {
        let tree = Tree::new();
        apply(&tree.session(), &plan_of(&tree.session(), &everything()), &PERSIST).expect("applied");
        put_link(&tree, SYSCTL_FILE, target);
        let more = plan_of(&tree.session(), &profile("more", &[("vm.swappiness", Want::Int(33))]));
        let start = tree.snapshot();
        let error = apply(&tree.session(), &more, &PERSIST).expect_err("a link");
        let told = format!("{error}: {}", error.hints().join("; "));
        assert!(told.contains(target) && told.contains("planish undo 1"), "{told}");
        assert_eq!((error.exit(), differences(&start, &tree.snapshot())), (Exit::Refused, Vec::new()));
        // The cure leads out.
        assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Findings);
        tree.remove(SYSCTL_FILE);
        let more = plan_of(&tree.session(), &profile("more", &[("vm.swappiness", Want::Int(33))]));
        assert_eq!(apply(&tree.session(), &more, &PERSIST).expect("applied").exit, Exit::Done);
    }
}

#[test]
fn a_confirm_does_not_write_over_a_link_that_came_meanwhile() {
    let tree = Tree::new();
    let session = crate::watch::without_watcher(&tree);
    let options = ApplyOptions { confirm_seconds: Some(3600), ..PERSIST };
    apply(&session, &plan_of(&session, &everything()), &options).expect("applied");
    put_link(&tree, SYSCTL_FILE, "/dev/null");
    let error = confirm(&session).expect_err("a link");
    assert!(format!("{error:?}").contains("link: Some(\"/dev/null\")"), "{error:?}");
    assert_eq!(link(&tree, SYSCTL_FILE).as_deref(), Some("/dev/null"));
}

#[test]
fn an_installation_that_is_masked_is_never_green() {
    let timer_file = "/etc/systemd/system/planish-check.timer";
    for target in TARGETS {
        let tree = Tree::new();
        timer(&tree.session()).expect("installed");
        put_link(&tree, timer_file, target);
        let checked = check(&tree.session(), None).expect("checked");
        let told: Vec<String> = checked.changed_files.iter().map(ToString::to_string).collect();
        assert_eq!((checked.exit, told.len()), (Exit::Findings, 1));
        assert!(told[0].contains(&format!("replaced by a link to {target}")), "{told:?}");
        let error = timer(&tree.session()).expect_err("a link");
        assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error:?}");
        assert_eq!(link(&tree, timer_file).as_deref(), Some(target));
    }
}

/// The entry for once of a boot loader, and what GRUB reads behind its menu.
#[test]
fn a_trial_boot_writes_over_no_link_and_its_undo_takes_none() {
    for named in all() {
        let tree = able(named);
        let session = tree.session();
        let once = boot_alone(&plan_of(&session, &wants()));
        let files = once_preview(&session, &once).expect("a look").files;
        let is_own = |path: &String| path.ends_with(".conf") || path.ends_with("custom.cfg");
        let paths: Vec<String> = files.into_iter().map(|file| file.path).filter(is_own).collect();
        assert_eq!(paths.len(), 1, "{}: {paths:?}", named.0);
        let path = &paths[0];
        put_link(&tree, path, "/srv/not/there.conf");
        let start = tree.snapshot();
        for error in [
            once_preview(&session, &once).expect_err(named.0),
            apply_once(&session, &once, None).expect_err(named.0),
        ] {
            assert!(matches!(&error, PipelineError::Once { .. }), "{}: {error:?}", named.0);
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        assert_eq!(link(&tree, path).as_deref(), Some("/srv/not/there.conf"), "{}", named.0);
        tree.remove(path);
        apply_once(&session, &once, None).expect("applied");
        put_link(&tree, path, "/srv/not/there.conf");
        let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
        assert_eq!(undone.exit, Exit::Findings, "{}: {:?}", named.0, undone.hints);
        assert_eq!(link(&tree, path).as_deref(), Some("/srv/not/there.conf"), "{}", named.0);
    }
}
