//! A read-only mount where files of ours belong: refused before the first write, and nothing that an undo fails on.

use std::process::Command;

use planish_model::{Class, Exit, Want};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, SessionOptions, Source, Target, apply, apply_once,
    boot_alone, can_persist, install_check, once_preview, plan, preview, undo,
};
use rustix::io::Errno;

use crate::boot::{all, debian, rocky, suse, wants};
use crate::faults::{Fuse, fused};
use crate::once::able;
use crate::tree::*;

/// Says which half of the test in a mount namespace is to run.
const IN_NAMESPACE: &str = "PLANISH_TEST_READ_ONLY_ETC";

/// The tree with a folder that was mounted read-only when it was recorded.
fn read_only(tree: &Tree, folder: &str) {
    let meta = tree.get("/meta.toml");
    let added = format!("writable = true\nread_only = [\"{folder}\"]");
    tree.put("/meta.toml", &meta.replacen("writable = true", &added, 1));
}

fn writable(tree: &Tree, folder: &str) {
    let meta = tree.get("/meta.toml");
    tree.put("/meta.toml", &meta.replacen(&format!("read_only = [\"{folder}\"]"), "", 1));
}

fn swap() -> Source {
    profile("swap", &[("vm.swappiness", Want::Int(10)), ("thp.enabled", Want::Text("madvise".to_owned()))])
}

/// Refused with nothing written, by a look as by the apply.
fn refused(tree: &Tree, source: &Source, folder: &str) {
    let start = tree.snapshot();
    let session = tree.session();
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let plan = plan(&session, source, &options).expect("a plan");
    let told = preview(&session, &plan).expect("a look").refusals;
    let error = apply(&session, &plan, &PERSIST).expect_err(folder);
    let PipelineError::ReadOnlyFolder { file, why } = &error else { panic!("{folder}: {error:?}") };
    assert!(file.starts_with(folder) && why.contains("is mounted read-only"), "{folder}: {error}");
    assert_eq!(told.first().map(ToString::to_string), Some(error.to_string()));
    assert_eq!(error.exit(), Exit::Refused);
    assert!(error.hints()[0].contains("findmnt"), "{:?}", error.hints());
    assert!(can_persist(&session, &plan).is_err(), "{folder}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{folder}");
    assert!(tree.entries().is_empty(), "{folder}");
    // Without files it is applied as ever.
    let exit = apply(&session, &plan, &ApplyOptions::default()).expect(folder).exit;
    // Parameters are no matter of the running host.
    assert!(matches!(exit, Exit::Done | Exit::Findings), "{folder}: {exit:?}");
    assert_eq!(undo(&session, Target::All, false).expect(folder).exit, Exit::Done, "{folder}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{folder}");
}

#[test]
fn an_apply_is_refused_where_its_files_cannot_be_written() {
    for folder in ["/etc", "/etc/sysctl.d", "/etc/tmpfiles.d"] {
        let tree = Tree::new();
        read_only(&tree, folder);
        refused(&tree, &swap(), folder);
    }
    for (make, folder) in [(debian as fn() -> Tree, "/etc/default"), (rocky, "/boot")] {
        let tree = make();
        read_only(&tree, folder);
        refused(&tree, &wants(), folder);
    }
}

/// A file of the loader that is a link lies where it leads.
#[test]
fn a_linked_file_of_the_loader_is_refused_by_the_folder_that_it_lies_in() {
    let tree = suse();
    let text = tree.get("/etc/default/grub");
    tree.put("/srv/grub", &text);
    let link = tree.root().join("etc/default/grub");
    std::fs::remove_file(&link).expect("ours");
    std::os::unix::fs::symlink("/srv/grub", &link).expect("room");
    let start = tree.snapshot();
    read_only(&tree, "/srv");
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let plan = plan(&tree.session(), &wants(), &options).expect("a plan");
    let error = apply(&tree.session(), &plan, &PERSIST).expect_err("it cannot be written");
    assert!(error.to_string().contains("/srv is mounted read-only"), "{error}");
    assert!(tree.entries().is_empty());
    writable(&tree, "/srv");
    apply(&tree.session(), &plan, &PERSIST).expect("applied");
    assert_ne!(tree.get("/srv/grub"), text);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_trial_boot_is_refused_where_its_loader_cannot_be_written() {
    for named in all() {
        let tree = able(named);
        let folder = if tree.root().join("efi").exists() { "/efi" } else { "/boot" };
        read_only(&tree, folder);
        let start = tree.snapshot();
        let session = tree.session();
        let plan = boot_alone(&plan_of(&session, &wants()));
        let shown = once_preview(&session, &plan).expect_err(named.0);
        let error = apply_once(&session, &plan, None).expect_err(named.0);
        let PipelineError::ReadOnlyFolder { why, .. } = &error else { panic!("{}: {error:?}", named.0) };
        assert!(why.contains("is mounted read-only"), "{}: {error}", named.0);
        assert_eq!(shown.to_string(), error.to_string());
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        assert!(tree.entries().is_empty());
    }
}

#[test]
fn an_installation_is_refused_where_units_cannot_be_written() {
    for folder in ["/etc", "/etc/systemd"] {
        let tree = Tree::new();
        read_only(&tree, folder);
        let error = install_check(&tree.session(), &hourly_check()).expect_err(folder);
        assert!(matches!(error, PipelineError::ReadOnlyFolder { .. }), "{error:?}");
        assert!(tree.entries().is_empty(), "{folder}");
    }
}

/// The mount became read-only between the look and the write, as a disk with an error does.
#[test]
fn an_apply_that_meets_a_read_only_folder_at_its_write_is_put_back_whole() {
    let counter = Fuse::counting();
    let apply_to = |session: &Session| {
        let plan = plan_of(session, &swap());
        apply(session, &plan, &PERSIST)
    };
    let tree = Tree::new();
    apply_to(&fused(tree.options(), &counter)).expect("applied");
    let mut failed = 0;
    for write in 0..counter.operations() {
        let tree = Tree::new();
        let start = tree.snapshot();
        let Ok(applied) = apply_to(&fused(tree.options(), &Fuse::refusing(write, Errno::ROFS))) else {
            continue;
        };
        failed += usize::from(applied.exit == Exit::FailedRestored);
        assert!(matches!(applied.exit, Exit::Done | Exit::FailedRestored), "{write}: {:?}", applied.exit);
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{write}");
    }
    assert!(failed > 2, "{failed}");
}

/// What is there cannot go, and says so; what is not there is back already.
#[test]
fn an_undo_on_a_read_only_mount_fails_for_what_is_there_alone() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply(&tree.session(), &plan_of(&tree.session(), &swap()), &PERSIST).expect("applied");
    tree.remove(TMPFILES_FILE);
    read_only(&tree, "/etc");
    let undone = undo(&tree.session(), Target::Newest, false).expect("tried");
    assert_eq!(undone.exit, Exit::FailedNotRestored);
    let failed: Vec<&String> = undone.hints.iter().filter(|hint| hint.contains("read-only")).collect();
    assert!(failed.len() == 1 && failed[0].contains(SYSCTL_FILE), "{:?}", undone.hints);
    writable(&tree, "/etc");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    let mut left = differences(&start, &tree.snapshot());
    left.retain(|path| path != "/meta.toml");
    assert_eq!(left, [""; 0]);
}

fn session_of(root: &str) -> Session {
    let options =
        SessionOptions { root: Some(root.into()), command: "test".to_owned(), ..SessionOptions::default() };
    Session::open(options).expect("a host")
}

/// Not a test of its own: what the next one starts in a mount namespace, where /etc of the tree is read-only.
#[test]
fn refuse_and_undo_in_a_read_only_etc() {
    let Ok(root) = std::env::var(IN_NAMESPACE) else { return };
    let session = session_of(&root);
    // An entry of which nothing is on the host any more is closed by an undo that need not write.
    let undone = undo(&session, Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{:?} {:?}", undone.entries, undone.hints);
    let error = apply(&session, &plan_of(&session, &swap()), &PERSIST).expect_err("read-only");
    assert!(matches!(error, PipelineError::ReadOnlyFolder { .. }), "{error:?}");
}

#[test]
fn a_real_read_only_mount_is_refused_and_undone_alike() {
    const NAME: &str = "a_real_read_only_mount_is_refused_and_undone_alike";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(NAME, "needs root for a read-only mount");
    }
    let tree = Tree::new();
    // Half of what there was is gone by other hands, and the folder that was made for it too.
    assert_eq!(install_check(&tree.session(), &hourly_check()).expect("installed").exit, Exit::Done);
    std::fs::remove_dir_all(tree.root().join("etc/systemd")).expect("ours");
    apply(&tree.session(), &plan_of(&tree.session(), &swap()), &PERSIST).expect("applied");
    tree.remove(SYSCTL_FILE);
    tree.remove(TMPFILES_FILE);
    let mount =
        r#"mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; exec "$0" --exact "$2""#;
    let child = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .arg(std::env::current_exe().expect("a test knows its program"))
        .arg(tree.root().join("etc"))
        .arg("read_only::refuse_and_undo_in_a_read_only_etc")
        .env(IN_NAMESPACE, tree.root())
        .output();
    let Ok(child) = child else { return planish_skip::skip(NAME, "there is no unshare(1)") };
    let (said, complaint) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    if child.status.code() == Some(77) || complaint.starts_with("unshare:") {
        return planish_skip::skip(NAME, "no read-only mount can be made here");
    }
    assert!(child.status.success() && said.contains("1 passed"), "{said}{complaint}");
    assert!(tree.entries().iter().all(|entry| !entry.is_open()));
}
