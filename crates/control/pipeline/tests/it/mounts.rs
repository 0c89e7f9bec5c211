//! Options of mounts: set, looked at, lost with the boot, put back; killed and refused on every machine that has them.

use planish_model::{Class, Conditions, DriftState, Exit, KnobCheck, OutcomeKind, Plan, VerdictKind, Want};
use planish_pipeline::{
    Applied, ApplyOptions, PlanOptions, Session, Source, Target, apply, check, outgoing, plan, undo,
};
use rustix::io::Errno;

use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::faults::{Fuse, MOMENTS, fused, until_killed};
use crate::tree::*;

const ATIME: &str = "/planish/mounts/-/atime";
const SIZE: &str = "/planish/mounts/dev-shm/size";
const USED: &str = "/planish/mounts/dev-shm/size_min";
const HUGE: &str = "/planish/mounts/dev-shm/huge";
/// Machines of `hosts/` that may be written and have mounts.
const MACHINES: [&str; 3] = ["metal-1s-amd", "metal-2s", "rhel9-guest"];

fn of(value: &str, only: &str) -> Want {
    let (value, only) = (value.to_owned(), Some(only.to_owned()));
    Want::Case(Box::new(planish_model::Case { value, only, needs: Conditions::default() }))
}

fn source(size: &str) -> Source {
    profile(
        "mounts",
        &[
            ("mount.atime", of("noatime", "/")),
            ("tmpfs.size", of(size, "/dev/shm")),
            ("tmpfs.huge", of("advise", "dev-shm")),
        ],
    )
}

fn options() -> PlanOptions {
    PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() }
}

fn planned(session: &Session, size: &str) -> Plan {
    plan(session, &source(size), &options()).expect("a plan")
}

fn applied(session: &Session, persist: bool) -> Applied {
    let options = ApplyOptions { persist, ..ApplyOptions::default() };
    apply(session, &planned(session, "25%"), &options).expect("applied")
}

fn row(tree: &Tree, place: &str) -> KnobCheck {
    let drift = check(&tree.session(), None).expect("checked").drift;
    drift.knobs.into_iter().find(|row| row.place == place).expect("it is looked at")
}

fn memory(tree: &Tree) -> u64 {
    tree.get("/planish/mounts/dev-shm/size_max").trim().parse().expect("a number")
}

#[test]
fn options_come_and_go_and_are_lost_at_a_boot() {
    for machine in MACHINES {
        let tree = Tree::copy_of(machine);
        let start = tree.snapshot();
        let done = applied(&tree.session(), true);
        let is_done = done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done);
        assert!(is_done && done.outcomes.len() == 3, "{machine}: {:#?}", done.outcomes);
        let set = [ATIME, SIZE, HUGE].map(|place| tree.get(place));
        assert_eq!(set, ["noatime\n".to_owned(), format!("{}\n", memory(&tree) / 4), "advise\n".to_owned()]);
        let told: Vec<&str> = done.unpersisted.iter().map(|left| left.place.as_str()).collect();
        assert_eq!(told, [ATIME, HUGE, SIZE], "{machine}: no file brings them back");
        assert!(done.unpersisted[0].cure.contains("/etc/fstab"), "{:?}", done.unpersisted[0]);
        assert_eq!(applied(&tree.session(), false).outcomes, [], "applied twice");
        assert_eq!(row(&tree, ATIME).state, DriftState::LostAtBoot);
        tree.put(ATIME, "strictatime\n");
        assert_eq!(row(&tree, ATIME).state, DriftState::Drift);
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Findings, "somebody else's value stays");
        assert_eq!(differences(&start, &tree.snapshot()), [ATIME], "{machine}");
    }
}

#[test]
fn a_time_that_is_written_at_each_read_comes_back_as_it_was() {
    let tree = Tree::copy_of("metal-2s");
    tree.put(ATIME, "strictatime\n");
    let start = tree.snapshot();
    applied(&tree.session(), false);
    assert_eq!(tree.get(ATIME), "noatime\n");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn kills_and_refusals_leave_every_option_as_it_was() {
    for machine in MACHINES {
        let counter = Fuse::counting();
        applied(&fused(Tree::copy_of(machine).options(), &counter), false);
        let back = |tree: &Tree, when: &str| {
            undo(&tree.session(), Target::All, false).expect("undone");
            let left: Vec<String> = differences(&Tree::copy_of(machine).snapshot(), &tree.snapshot());
            let left = left.iter().filter(|place| place.starts_with("/planish/"));
            assert_eq!(left.count(), 0, "{machine}: {when}");
        };
        for operation in 0..counter.operations() {
            let moment = MOMENTS[operation % MOMENTS.len()];
            let tree = Tree::copy_of(machine);
            let ended = until_killed(|| applied(&fused(tree.options(), &Fuse::at(operation, moment)), false));
            assert!(ended.is_none(), "{machine}: operation {operation} was never reached");
            back(&tree, &format!("killed {moment:?} operation {operation}"));
        }
        let errors = [Errno::PERM, Errno::INVAL, Errno::BUSY];
        assert_eq!(counter.places().len(), 3);
        for (write, errno) in errors.into_iter().enumerate() {
            let tree = Tree::copy_of(machine);
            let done = applied(&fused(tree.options(), &Fuse::refusing(write, errno)), false);
            assert_ne!(done.exit, Exit::FailedNotRestored, "{:#?}", done.outcomes);
            back(&tree, &format!("refused {errno:?} at {write}"));
        }
    }
}

#[test]
fn an_undo_of_a_time_that_is_killed_anywhere_puts_it_back() {
    let scene = |session: &Session| {
        let wanted = profile(
            "times",
            &[("mount.atime", Want::Text("noatime".to_owned())), ("vm.swappiness", Want::Int(10))],
        );
        let made = plan(session, &wanted, &options()).expect("a plan");
        assert_eq!(made.steps.len(), 2, "{:?}", made.skipped);
        apply(session, &made, &ApplyOptions::default()).expect("applied");
    };
    assert_clean(&kill_everywhere(&Tree::new, &|_| (), &scene));
    assert_clean(&kill_everywhere(&Tree::new, &scene, &undo_everything));
}

#[test]
fn a_size_that_cannot_be_is_refused_before_a_write() {
    let tree = Tree::copy_of("metal-2s");
    tree.put(USED, &format!("{}\n", 1_u64 << 30));
    let start = tree.snapshot();
    for (size, why) in [("512M", "files in it take 1 GiB"), ("1T", "more than the memory of this machine")] {
        let made = planned(&tree.session(), size);
        assert!(made.steps.iter().all(|step| step.place != SIZE), "{size}");
        let skipped = made.skipped.iter().find(|row| row.place == SIZE).expect("told");
        assert!(skipped.impossible && skipped.verdict.reason.contains(why), "{size}: {skipped:?}");
    }
    assert!(planned(&tree.session(), "2G").steps.iter().any(|step| step.place == SIZE));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_unit_with_mounts_of_its_own_sets_what_all_copies_share_and_no_time_of_a_copy() {
    let tree = Tree::copy_of("metal-2s");
    tree.put("/planish/mounts_apart", "yes\n");
    let made = planned(&tree.session(), "25%");
    let told = made.skipped.iter().find(|row| row.place == ATIME).expect("told");
    assert_eq!(told.verdict.verdict, VerdictKind::Blocked, "{told:?}");
    assert!(told.verdict.reason.contains("cannot be set from here"), "{told:?}");
    let places: Vec<&str> = made.steps.iter().map(|step| step.place.as_str()).collect();
    assert_eq!(places, [HUGE, SIZE]);
    apply(&tree.session(), &made, &ApplyOptions::default()).expect("applied");
    assert_eq!([tree.get(ATIME), tree.get(HUGE)], ["relatime\n", "advise\n"]);
}

#[test]
fn a_container_has_all_of_its_mounts_from_its_runtime() {
    let tree = Tree::copy_of("container-ro");
    for (place, text) in [(ATIME, "relatime\n"), (SIZE, "67108864\n"), (USED, "4096\n"), (HUGE, "never\n")] {
        tree.put(place, text);
    }
    tree.put("/planish/mounts/dev-shm/size_max", "8589934592\n");
    let modes = "[modes]\n\"0664\" = [\"/planish/mounts/{mount}/atime\", \"/planish/mounts/{mount}/size\", \
                 \"/planish/mounts/{mount}/huge\"]\n";
    tree.put("/meta.toml", &tree.get("/meta.toml").replace("[modes]\n", modes));
    let made = planned(&tree.session(), "16M");
    assert_eq!(made.steps, []);
    for place in [ATIME, SIZE, HUGE] {
        let told = made.skipped.iter().find(|row| row.place == place).expect("told");
        assert_eq!(told.verdict.verdict, VerdictKind::Host, "{told:?}");
        assert!(told.verdict.reason.contains("made where it is started"), "{told:?}");
    }
}

#[test]
fn what_fstab_says_is_what_the_next_boot_brings() {
    let tree = Tree::copy_of("metal-2s");
    tree.put(
        "/etc/fstab",
        "UUID=1 / ext4 noatime,errors=remount-ro 0 1\ntmpfs /dev/shm tmpfs size=25%,huge=always 0 0\n",
    );
    applied(&tree.session(), true);
    let boot = |place: &str| {
        let row = row(&tree, place);
        let told = row.next_boot.map(|value| (value.value, value.source));
        (row.state, told)
    };
    let line = |value: String, line: u32| Some((value, format!("/etc/fstab:{line}")));
    assert_eq!(boot(ATIME), (DriftState::Ok, line("noatime".to_owned(), 1)));
    assert_eq!(boot(SIZE), (DriftState::Ok, line((memory(&tree) / 4).to_string(), 2)));
    let (state, told) = boot(HUGE);
    assert_ne!(state, DriftState::Ok, "another value comes at the boot");
    assert_eq!(told, line("always".to_owned(), 2));
}

#[test]
fn a_mount_that_nobody_may_write_is_told() {
    let tree = Tree::copy_of("metal-2s");
    let meta = tree.get("/meta.toml").replace("  \"/planish/mounts/{mount}/size\",\n", "");
    tree.put("/meta.toml", &meta);
    let made = planned(&tree.session(), "25%");
    let told = made.skipped.iter().find(|row| row.place == SIZE).expect("told");
    assert_eq!(told.verdict.verdict, VerdictKind::Blocked, "{told:?}");
}

#[test]
fn a_script_takes_options_of_one_mount_and_no_other_format_any() {
    let tree = Tree::copy_of("metal-2s");
    let session = tree.session();
    let given = outgoing(&session, &source("25%"), &options()).expect("a profile");
    assert_eq!(given.items.len(), 3, "{:?}", given.left_out);
}
