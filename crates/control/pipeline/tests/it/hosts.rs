//! Every writable machine of `hosts/` with every profile: applied, checked, undone, killed on the way.

use planish_host::Host;
use planish_model::{Exit, OutcomeKind};
use planish_pipeline::{ApplyOptions, Session, Source, Target, apply, undo};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

/// Names of the machines that may be written.
#[expect(clippy::disallowed_methods, reason = "lists the fixtures")]
fn writable_hosts() -> Vec<String> {
    let folders = std::fs::read_dir(hosts()).expect("the fixtures are there").filter_map(Result::ok);
    let mut names: Vec<String> = folders
        .filter(|folder| Host::open(&folder.path()).is_ok_and(|host| host.is_writable()))
        .map(|folder| folder.file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn profiles(session: &Session) -> Vec<String> {
    session.catalogue().profile_names().map(str::to_owned).collect()
}

fn apply_profile(session: &Session, profile: &str) -> planish_pipeline::Applied {
    let plan = plan_of(session, &Source::Profile(profile.to_owned()));
    apply(session, &plan, &ApplyOptions::default()).expect("a refusing kernel is no error")
}

#[test]
fn every_profile_comes_and_goes_on_every_machine() {
    let mut written = 0;
    for name in writable_hosts() {
        for profile in profiles(&Tree::copy_of(&name).session()) {
            let tree = Tree::copy_of(&name);
            let start = tree.snapshot();
            let applied = apply_profile(&tree.session(), &profile);
            let kinds: Vec<OutcomeKind> = applied.outcomes.iter().map(|outcome| outcome.outcome).collect();
            assert_ne!(applied.exit, Exit::FailedNotRestored, "{name} {profile}: {:#?}", applied.outcomes);
            let undone = undo(&tree.session(), Target::All, false).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{name} {profile}: {:#?}", undone.entries);
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name} {profile} {kinds:?}");
            written += kinds.len();
        }
    }
    assert!(written > 40, "{written} steps on all machines");
}

#[test]
fn every_machine_survives_kills() {
    for name in writable_hosts() {
        let counter = Fuse::counting();
        apply_profile(&fused(Tree::copy_of(&name).options(), &counter), "low-latency");
        // Each operation of few: every seventh, before and after by turns.
        for operation in (0..counter.operations()).step_by(7) {
            let tree = Tree::copy_of(&name);
            let start = tree.snapshot();
            let moment = if operation % 2 == 0 { Moment::Before } else { Moment::After };
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            until_killed(|| apply_profile(&session, "low-latency"));
            undo(&tree.session(), Target::All, false).expect("undone");
            for entry in tree.entries() {
                undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
            }
            let left = differences(&start, &tree.snapshot());
            assert_eq!(left, [""; 0], "{name} killed {moment:?} operation {operation}");
        }
    }
}
