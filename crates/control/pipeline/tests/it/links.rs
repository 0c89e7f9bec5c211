//! Files of a recorded host that are no files: links that lead out of it, behind which nothing is read or written, and
//! FIFOs, for which nobody waits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use planish_model::Exit;
use planish_pipeline::{ApplyOptions, PipelineError, Session, Target, apply, check, log, undo};

use crate::tree::*;

/// A host with a link at `path` to a folder outside.
fn with_link(path: &str) -> (Tree, tempfile::TempDir) {
    let (tree, outside) = (Tree::new(), tempfile::tempdir().expect("a folder"));
    let at = tree.root().join(path);
    fs::create_dir_all(at.parent().expect("below the root")).expect("ours");
    let _ = fs::remove_dir_all(&at);
    symlink(outside.path(), at).expect("ours");
    (tree, outside)
}

#[expect(clippy::disallowed_methods, reason = "looks at the folder from outside")]
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("ours").next().is_none()
}

#[test]
fn what_is_written_stays_in_the_host() {
    for path in ["etc/sysctl.d", "etc/tmpfiles.d", "etc", "var", "var/lib", "var/lib/planish"] {
        let (tree, outside) = with_link(path);
        let session = tree.session();
        let plan = plan_of(&session, &everything());
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        let applied = apply(&session, &plan, &options).expect("applied");
        assert_eq!(applied.exit, Exit::Done, "{path}: {:#?}", applied.outcomes);
        assert!(is_empty(outside.path()), "{path}");
        let inside = tree.root().join(outside.path().strip_prefix("/").expect("absolute"));
        assert!(!is_empty(&inside), "{path}: an absolute link is one of the host");
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{path}");
        assert!(is_empty(outside.path()), "{path}");
    }
}

#[test]
fn a_journal_or_lock_that_is_a_link_is_refused() {
    for name in ["journal.jsonl", "journal-1.jsonl", "lock", "trial.lock", "model.stage"] {
        let (tree, outside) = (Tree::new(), tempfile::tempdir().expect("a folder"));
        tree.put("/var/lib/planish/x", "");
        let session = tree.session();
        let plan = plan_of(&session, &everything());
        let link = tree.root().join("var/lib/planish").join(name);
        symlink(outside.path().join("precious"), &link).expect("ours");
        let before = tree.snapshot();
        let error = apply(&session, &plan, &ApplyOptions::default()).expect_err(name);
        assert!(matches!(&error, PipelineError::Linked { path } if *path == link), "{name}: {error}");
        assert_eq!(error.exit(), Exit::Refused);
        assert!(undo(&session, Target::All, false).is_err() && log(&session).is_err(), "{name}");
        assert!(is_empty(outside.path()) && tree.snapshot() == before, "{name}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "makes the rows outside")]
fn rows_of_others_are_not_read_through_links() {
    let row = "name = \"stranger\"\nsummary = \"a row of another machine\"\n";
    let (tree, outside) = with_link("etc/planish");
    fs::create_dir(outside.path().join("profiles")).expect("ours");
    fs::write(outside.path().join("profiles/stranger.toml"), row).expect("ours");
    let session = tree.session();
    assert!(session.catalogue().profile("stranger").is_err());

    let (tree, outside) = (Tree::new(), tempfile::tempdir().expect("a folder"));
    fs::write(outside.path().join("stranger.toml"), row).expect("ours");
    tree.put("/etc/planish/profiles/own.toml", &row.replace("stranger", "own"));
    let link = tree.root().join("etc/planish/profiles/stranger.toml");
    symlink(outside.path().join("stranger.toml"), &link).expect("ours");
    // A file that cannot be read is told, as ever; what it holds elsewhere is not.
    let session = Session::open(tree.options()).expect("a host");
    let error = session.catalogue().profile("stranger").expect_err("it leads nowhere").to_string();
    assert!(!error.contains("summary"), "{error}");
    fs::remove_file(link).expect("ours");
    symlink("/etc/planish/profiles/own.toml", tree.root().join("etc/planish/profiles/z.link")).expect("ours");
    assert!(tree.session().catalogue().profile("own").is_ok(), "links inside are followed");
}

#[test]
fn nobody_waits_for_a_fifo() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let tree = Tree::new();
    let plan = plan_of(&tree.session(), &everything());
    let paths = [
        "proc/uptime",
        "etc/sysctl.d/50-fifo.conf",
        "etc/tmpfiles.d/fifo.conf",
        "etc/sysctl.conf",
        "etc/os-release",
    ];
    for path in paths {
        mknodat(CWD, tree.root().join(path), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect(path);
    }
    let session = tree.session();
    check(&session, None).expect("settings that cannot be read are none");
    plan_of(&session, &everything());
    mknodat(CWD, tree.root().join("etc/sysctl.d/90-planish.conf"), FileType::Fifo, Mode::RUSR, 0)
        .expect("ours");
    let before = tree.get(SWAPPINESS);
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let ended = apply(&session, &plan, &options).map_or_else(|error| error.exit(), |applied| applied.exit);
    assert!(matches!(ended, Exit::Refused | Exit::FailedRestored), "{ended:?}");
    assert_eq!(tree.get(SWAPPINESS), before);
    fs::remove_dir_all(tree.root().join("var/lib/planish")).expect("ours");
    tree.put("/var/lib/planish/x", "");
    mknodat(CWD, tree.root().join("var/lib/planish/journal.jsonl"), FileType::Fifo, Mode::RUSR, 0)
        .expect("ours");
    let error = undo(&session, Target::All, false).expect_err("no journal");
    assert_eq!(error.exit(), Exit::Refused);
    assert!(error.hints()[0].contains("move it away"), "{:?}", error.hints());
}
