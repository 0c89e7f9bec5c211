//! A journal of one host and another host: one state folder for two copies, one on a share, one in a cloned image.

use planish_model::{EntryId, Exit, Want};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, SessionOptions, Source, Target, apply, check, confirm,
    doctor, install_check, log, plan, undo,
};

use crate::tree::*;

fn source() -> Source {
    profile("swap", &[("vm.swappiness", Want::Int(10)), ("thp.enabled", Want::Text("always".to_owned()))])
}

/// A session of a tree with a state folder that others have, too.
fn shared(tree: &Tree, state: &std::path::Path) -> Session {
    let options = SessionOptions { state: Some(state.to_owned()), ..tree.options() };
    Session::open(options).expect("a host")
}

fn is_refused<T: std::fmt::Debug>(what: &str, answer: Result<T, PipelineError>) {
    let error = answer.expect_err(what);
    assert!(matches!(error, PipelineError::OtherHost { .. }), "{what}: {error:?}");
    assert_eq!(error.exit(), Exit::Refused, "{what}");
    let told = format!("{error}: {}", error.hints().join("; "));
    assert!(told.contains("is of another host") && told.contains("--state"), "{told}");
}

fn installed(session: &Session) -> Result<(), PipelineError> {
    install_check(session, &hourly_check()).map(drop)
}

#[test]
fn a_journal_of_another_host_is_refused_by_whatever_uses_it() {
    let state = tempfile::tempdir().expect("a folder");
    let (own, other) = (Tree::copy_of("metal-2s"), Tree::copy_of("rhel9-guest"));
    let session = shared(&own, state.path());
    apply(&session, &plan_of(&session, &source()), &PERSIST).expect("applied");
    let start = other.snapshot();
    let elsewhere = shared(&other, state.path());
    is_refused("plan", plan(&elsewhere, &source(), &PlanOptions::default()));
    is_refused("check", check(&elsewhere, None));
    is_refused("confirm", confirm(&elsewhere));
    is_refused("install check", installed(&elsewhere));
    // Force writes over what others set here: not what a journal of another host says.
    for force in [false, true] {
        for target in [Target::Newest, Target::All, Target::Entry(EntryId(1))] {
            is_refused("undo", undo(&elsewhere, target, force));
        }
    }
    let unused = SessionOptions { state: None, ..other.options() };
    let own_plan = plan_of(&Session::open(unused).expect("a host"), &source());
    is_refused("apply", apply(&elsewhere, &own_plan, &PERSIST));
    assert_eq!(differences(&start, &other.snapshot()), [""; 0]);
    // It can be read, and a look at the machine says so.
    assert_eq!(log(&elsewhere).expect("readable").len(), 1);
    let found = doctor(&elsewhere, None, None, &[]).expect("a look").findings;
    assert_eq!(found.first().map(|finding| finding.id.as_str()), Some("planish.journal"), "{found:?}");
    assert!(found[0].evidence.contains("is of another host"), "{:?}", found[0]);

    // On its own host it is undone, and is then anybody's.
    assert_eq!(undo(&shared(&own, state.path()), Target::All, false).expect("undone").exit, Exit::Done);
    let elsewhere = shared(&other, state.path());
    apply(&elsewhere, &plan_of(&elsewhere, &source()), &PERSIST).expect("applied");
    is_refused("undo", undo(&shared(&own, state.path()), Target::All, false));
    assert_eq!(undo(&elsewhere, Target::All, false).expect("undone").exit, Exit::Done);
    // A closed entry that left theirs is opened by force: on its own host alone.
    assert_eq!(differences(&start, &other.snapshot()), [""; 0]);
}

#[test]
fn what_force_would_open_once_more_is_refused_elsewhere_as_well() {
    let state = tempfile::tempdir().expect("a folder");
    let (own, other) = (Tree::copy_of("metal-2s"), Tree::copy_of("rhel9-guest"));
    let session = shared(&own, state.path());
    apply(&session, &plan_of(&session, &source()), &PERSIST).expect("applied");
    own.put(SYSCTL_FILE, "# edited\n");
    assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Findings);
    let start = other.snapshot();
    is_refused("undo", undo(&shared(&other, state.path()), Target::Entry(EntryId(1)), true));
    assert_eq!(differences(&start, &other.snapshot()), [""; 0]);
    assert_eq!(undo(&session, Target::Entry(EntryId(1)), true).expect("forced").exit, Exit::Done);
}

/// The tree as a bare one, which has the id that its machine-id gives it, as a live host does.
fn with_machine_id(tree: &Tree, id: &str) {
    let meta = tree.get("/meta.toml");
    let line = format!("host_id = \"{id}\"\n");
    let rest: Vec<&str> = meta.lines().filter(|line| !line.starts_with("host_id")).collect();
    tree.put("/meta.toml", &format!("{line}{}\n", rest.join("\n")));
}

#[test]
fn a_reboot_another_kernel_and_a_new_id_within_a_boot_change_no_host() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = tree.session();
    apply(&session, &plan_of(&session, &source()), &PERSIST).expect("applied");
    // More memory, another release: facts that a kernel brings.
    tree.put("/proc/meminfo", &tree.get("/proc/meminfo").replace("67108864", "66000000"));
    tree.put("/proc/sys/kernel/osrelease", "9.9.9\n");
    check(&tree.session(), None).expect("the same host");
    // Whoever makes the machine-id anew does it on a running machine.
    with_machine_id(&tree, "00000000000000aa");
    check(&tree.session(), None).expect("the same boot is of the same machine");
    let before = tree.get(BOOT_ID);
    tree.put(BOOT_ID, "99999999-2222-3333-4444-555555555555\n");
    is_refused("undo", undo(&tree.session(), Target::All, false));
    // The cure: the old id.
    tree.put("/meta.toml", &start["/meta.toml"]);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    tree.put(BOOT_ID, &before);
    assert_eq!(tree.get(SYSCTL_FILE), "");
}

/// Recordings have one boot, whatever machines they are of.
#[test]
fn the_boot_of_recordings_makes_no_two_hosts_one() {
    let state = tempfile::tempdir().expect("a folder");
    let (own, other) = (Tree::copy_of("metal-2s"), Tree::copy_of("metal-1s-amd"));
    assert_eq!(own.get(BOOT_ID), other.get(BOOT_ID), "as `host record` writes it");
    let session = shared(&own, state.path());
    apply(&session, &plan_of(&session, &source()), &ApplyOptions::default()).expect("applied");
    let start = other.snapshot();
    let elsewhere = shared(&other, state.path());
    is_refused("plan", plan(&elsewhere, &source(), &PlanOptions::default()));
    is_refused("undo", undo(&elsewhere, Target::All, false));
    assert_eq!(differences(&start, &other.snapshot()), [""; 0]);
    assert_eq!(undo(&shared(&own, state.path()), Target::All, false).expect("undone").exit, Exit::Done);
}

/// Values alone are on the other host as well: whether a reboot took them there cannot be told from here.
#[test]
fn values_alone_are_refused_elsewhere_and_stay_undone_on_their_own_host() {
    let state = tempfile::tempdir().expect("a folder");
    let (own, other) = (Tree::copy_of("metal-2s"), Tree::copy_of("rhel9-guest"));
    let start = own.snapshot();
    let session = shared(&own, state.path());
    apply(&session, &plan_of(&session, &source()), &Default::default()).expect("applied");
    let elsewhere = shared(&other, state.path());
    is_refused("undo", undo(&elsewhere, Target::All, false));
    is_refused("check", check(&elsewhere, None));
    assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &own.snapshot()), [""; 0]);
}

/// A journal of an older planish says nothing of a host, and goes on working.
#[test]
fn a_journal_that_tells_no_host_is_taken_as_ever() {
    let tree = Tree::new();
    tree.put("/var/lib/planish/x", "");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../journal/tests/fixtures/v1/journal.jsonl");
    std::fs::copy(fixture, tree.root().join("var/lib/planish/journal.jsonl")).expect("of an older planish");
    let session = tree.session();
    let entries = log(&session).expect("readable");
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry.host.is_none()), "{entries:?}");
    check(&session, None).expect("looked at");
    apply(&session, &plan_of(&session, &source()), &PERSIST).expect("applied");
    let newest = log(&session).expect("readable").pop().expect("begun");
    assert!(newest.host.is_some_and(|host| host.len() == 16));
    assert_eq!(undo(&session, Target::Newest, false).expect("undone").exit, Exit::Done);
}

/// What planish makes on the way to its state in an image is everybody's; the state is its owner's.
#[test]
fn folders_on_the_way_to_the_state_are_for_everybody() {
    let tree = Tree::new();
    let session = tree.session();
    apply(&session, &plan_of(&session, &source()), &PERSIST).expect("applied");
    let modes = ["/var", "/var/lib", "/var/lib/planish"].map(|path| tree.mode(path));
    assert_eq!(modes, [0o755, 0o755, 0o700]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "plays a disk with an error")]
fn a_journal_that_is_damaged_is_the_first_that_a_doctor_says() {
    let tree = Tree::new();
    let session = tree.session();
    apply(&session, &plan_of(&session, &source()), &PERSIST).expect("applied");
    assert!(
        doctor(&session, None, None, &[])
            .expect("a look")
            .findings
            .iter()
            .all(|f| f.knob.is_some() || f.id != "planish.journal")
    );
    let path = tree.root().join("var/lib/planish/journal.jsonl");
    let text = std::fs::read_to_string(&path).expect("ours");
    std::fs::write(&path, text.replacen("outcome", "outcomf", 1)).expect("ours");
    let found = doctor(&tree.session(), None, None, &[]).expect("a look").findings;
    assert_eq!(found[0].id, "planish.journal", "{found:?}");
    assert_eq!(found[0].severity, planish_model::Severity::Danger);
    assert!(found[0].cure.contains("planish undo --all --force"), "{:?}", found[0]);
}
