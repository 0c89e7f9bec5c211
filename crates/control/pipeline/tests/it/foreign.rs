//! A file for the next boot that somebody else wrote, edited or removed: nothing of theirs is lost, and the cures lead
//! out.

use planish_model::{EntryId, Exit, Want};
use planish_pipeline::{ApplyOptions, PipelineError, Target, apply, undo};

use crate::tree::*;

#[test]
fn a_file_of_someone_else_is_refused_or_kept() {
    let tree = Tree::new();
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    tree.put(SYSCTL_FILE, "vm.swappiness = 99\n");
    let plan = plan_of(&tree.session(), &everything());
    let error = apply(&tree.session(), &plan, &options).expect_err("theirs");
    assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error}");
    assert_eq!(tree.get(SWAPPINESS), "60\n");
    tree.remove(SYSCTL_FILE);
    apply(&tree.session(), &plan, &options).expect("applied");
    tree.put(SYSCTL_FILE, "# edited\n");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings);
    assert_eq!(tree.get(SYSCTL_FILE), "# edited\n");
}

/// The cures are typed as they are told, and lead out.
#[test]
fn a_file_of_ours_that_someone_edited_or_removed_is_refused_with_a_way_out() {
    for theirs in [Some("# edited\n"), None] {
        let tree = Tree::new();
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        apply(&tree.session(), &plan_of(&tree.session(), &everything()), &options).expect("applied");
        match theirs {
            Some(text) => tree.put(SYSCTL_FILE, text),
            None => tree.remove(SYSCTL_FILE),
        }
        let more = plan_of(&tree.session(), &profile("more", &[("vm.swappiness", Want::Int(33))]));
        let error = apply(&tree.session(), &more, &options).expect_err("not as planish left it");
        assert_eq!(
            error.to_string(),
            format!("{SYSCTL_FILE} is not as planish left it: someone edited or removed it")
        );
        assert_eq!(error.hints(), ["it holds lines of entry 1: take them back first: planish undo 1"]);
        undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("told");
        let again = plan_of(&tree.session(), &profile("more", &[("vm.swappiness", Want::Int(33))]));
        if theirs.is_some() {
            let error = apply(&tree.session(), &again, &options).expect_err("it is theirs");
            assert_eq!(error.hints(), [format!("move it away first: mv {SYSCTL_FILE} {SYSCTL_FILE}.mine")]);
            tree.remove(SYSCTL_FILE);
        }
        apply(&tree.session(), &again, &options).expect("applied");
        assert!(tree.get(SYSCTL_FILE).contains("vm.swappiness = 33\n"));
    }
}
