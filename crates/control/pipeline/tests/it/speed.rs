//! What an apply costs, syncs to a real disk included; and what a plan reads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use planish_model::{Class, Exit, Plan, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Session, SessionOptions, Source, Target};
use planish_pipeline::{apply, check, plan, undo};

use crate::tree::*;

/// Fifteen values of a two-socket server, no pool.
fn fifteen() -> Source {
    let word = |text: &str| Want::Text(text.to_owned());
    profile(
        "fifteen",
        &[
            ("vm.swappiness", Want::Int(1)),
            ("vm.stat_interval", Want::Int(10)),
            ("vm.zone_reclaim_mode", Want::Int(0)),
            ("vm.dirty_bytes", Want::Int(268_435_456)),
            ("vm.dirty_background_bytes", Want::Int(67_108_864)),
            ("thp.enabled", word("madvise")),
            ("thp.defrag", word("never")),
            ("kernel.numa_balancing", Want::Int(0)),
            ("kernel.timer_migration", Want::Int(0)),
            ("cpu.governor", word("performance")),
        ],
    )
}

/// The target is 100 ms. An optimised build takes 12 to 15 ms for 16 steps on the disk of a two-CPU guest; the limit
/// here leaves room for an unoptimised one on a machine that runs everything else at once.
#[test]
fn an_apply_of_fifteen_values_is_quick() {
    let tree = Tree::copy_to_disk("metal-2s");
    let session = tree.session();
    let plan = plan_of(&session, &fifteen());
    assert!(plan.steps.len() >= 15, "{} steps", plan.steps.len());
    let started = Instant::now();
    let applied = apply(&session, &plan, &ApplyOptions::default()).expect("the host takes it");
    let took = started.elapsed();
    println!("apply of {} steps: {took:?}", applied.outcomes.len());
    assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.outcomes);
    let started = Instant::now();
    assert_eq!(undo(&session, Target::Newest, false).expect("undone").exit, Exit::Done);
    println!("undo of them: {:?}", started.elapsed());
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// A recorded machine as it is, with no journal.
fn recorded(name: &str) -> Session {
    let options = SessionOptions { root: Some(hosts().join(name)), ..SessionOptions::default() };
    Session::open(options).expect("a host")
}

/// Files that tell who and when it is, which more than one stage asks for by itself: a plan of which host it is, and
/// the journal whose it is. cpuinfo and meminfo do where there is no machine-id, and the last one tells whether this
/// is a trial boot.
const ASKED_BY_ALL: [&str; 6] = [
    "/etc/machine-id",
    "/var/lib/dbus/machine-id",
    "/proc/sys/kernel/random/boot_id",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/cmdline",
];

fn read_twice(read: &BTreeMap<String, u32>) -> Vec<&str> {
    let twice = read.iter().filter(|(_, times)| **times > 1).map(|(path, _)| path.as_str());
    twice.filter(|path| !ASKED_BY_ALL.contains(path)).collect()
}

#[test]
fn a_plan_reads_what_it_asks_for_and_no_file_twice() {
    let source = Source::Profile("low-latency".to_owned());
    let session = recorded("metal-2s");
    plan(&session, &source, &PlanOptions::default()).expect("a plan");
    let read = session.host().contents_read();
    assert_eq!(read_twice(&read), [""; 0]);
    let whole = recorded("metal-2s");
    drop(whole.observe());
    let all = whole.host().contents_read();
    // It wants a twelfth of all knobs; what the machine is and who else sets knobs is read for any of them.
    assert!(read.len() * 2 < all.len(), "{} of {} files", read.len(), all.len());
    assert!(
        read.contains_key("/proc/sys/vm/stat_interval")
            && !read.contains_key("/proc/sys/vm/vfs_cache_pressure")
    );
}

#[test]
fn a_check_of_a_profile_looks_once() {
    let session = recorded("metal-2s");
    check(&session, Some(&Source::Profile("low-latency".to_owned()))).expect("a check");
    // Files of the loader: for the arguments of the next boot, and for what a trial boot has left in them.
    let read = session.host().contents_read();
    let twice: Vec<&str> = read_twice(&read).into_iter().filter(|path| !path.contains("grub")).collect();
    assert_eq!(twice, [""; 0]);
}

/// A plan asks a host for few of the knobs. It is the plan that would be made of all of them.
#[test]
#[expect(clippy::disallowed_methods, reason = "lists the fixtures")]
fn a_plan_of_what_it_asks_for_is_the_plan_of_all() {
    let names = std::fs::read_dir(hosts()).expect("the fixtures are there").filter_map(Result::ok);
    let names = names.filter(|entry| entry.path().is_dir());
    let mut steps = 0;
    for name in names.map(|entry| entry.file_name().into_string().expect("text")) {
        let session = recorded(&name);
        let observation = session.observe();
        for profile in session.catalogue().profile_names() {
            let allow_classes = vec![Class::Availability, Class::Durability];
            let options = PlanOptions { allow_classes: allow_classes.clone(), ..PlanOptions::default() };
            let some = plan(&session, &Source::Profile(profile.to_owned()), &options).expect("a plan");
            let wanted = session.catalogue().profile(profile).expect("sound");
            let options = planish_decide::Options { allow_classes, ..planish_decide::Options::default() };
            // Units are looked at where a profile wants something of them.
            let of_units = wanted.want.keys().any(|id| id.as_str().starts_with("unit."));
            let more = of_units.then(|| session.observe_for(&wanted));
            let seen = more.as_ref().unwrap_or(&observation);
            let whole = planish_decide::plan(session.catalogue(), seen, &wanted, &[], &options);
            // What was allowed is said by who asks.
            let whole = Plan { allowed: some.allowed.clone(), ..whole.expect("a plan") };
            assert_eq!(some, whole, "{name} {profile}");
            steps += some.steps.len();
        }
    }
    assert!(steps > 500, "{steps} steps on all machines");
}
