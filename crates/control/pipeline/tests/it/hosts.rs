//! Every writable machine of `hosts/` with every profile: applied, checked, undone, and on the way killed and refused.

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_model::{Class, Entry, EntryStep, Exit, Knob, OutcomeKind, Profile};
use planish_pipeline::{ApplyOptions, PlanOptions, Service, Session, Source, Target, apply, plan, undo};
use rustix::io::Errno;

use crate::faults::{Fuse, Kind, MOMENTS, Moment, fused, until_killed};
use crate::tree::*;

/// What a kernel refuses a write with. Where there are many writes, each of them meets one of these by turns.
const ERRORS: [Errno; 5] = [Errno::PERM, Errno::IO, Errno::NOSPC, Errno::BUSY, Errno::INVAL];

/// With this in the environment nothing is left out, for as long as that takes: `./x soak` sets it.
const EVERY: &str = "PLANISH_EVERY_OPERATION";

/// Of the operations of an apply, every so manieth is killed, at one of the moments: each profile and each machine
/// begins at another one. Beside these each kind of operation is killed at each moment, wherever it comes first.
fn killed_of() -> usize {
    if is_whole() { 1 } else { 41 }
}

/// Each profile is refused its writes on every so manieth machine: on one of the five, and on each machine others.
fn refused_of() -> usize {
    if is_whole() { 1 } else { 5 }
}

/// Whether nothing is to be left out.
pub fn is_whole() -> bool {
    std::env::var_os(EVERY).is_some()
}

/// A machine that may be written, with what it was.
pub struct Machine {
    pub name: String,
    pub tree: Tree,
    pub start: BTreeMap<String, String>,
}

impl Machine {
    pub fn new(name: &str, tree: Tree) -> Self {
        let start = tree.snapshot();
        Self { name: name.to_owned(), tree, start }
    }

    /// Everything undone: nothing differs from the start.
    fn is_back(&self, when: &str) {
        let left = differences(&self.start, &self.tree.snapshot());
        assert_eq!(left, [""; 0], "{} {when}: {:#?}", self.name, self.tree.entries());
        self.forget();
    }

    /// The journal goes, so that the next one begins anew.
    pub fn forget(&self) {
        let state = self.tree.root().join("var/lib/planish");
        if state.exists() {
            std::fs::remove_dir_all(state).expect("ours");
        }
    }
}

/// The machines that may be written, and two of them somewhat changed: one whose values are not what profiles want
/// already, and one whose firmware takes every hint.
#[expect(clippy::disallowed_methods, reason = "lists the fixtures")]
pub fn machines() -> Vec<Machine> {
    let folders = std::fs::read_dir(hosts()).expect("the fixtures are there").filter_map(Result::ok);
    let mut names: Vec<String> = folders
        .filter(|folder| Host::open(&folder.path()).is_ok_and(|host| host.is_writable()))
        .map(|folder| folder.file_name().into_string().expect("text"))
        .collect();
    names.sort();
    let mut machines: Vec<Machine> =
        names.iter().map(|name| Machine::new(name, Tree::copy_of(name))).collect();
    machines.push(Machine::new("metal-2s set otherwise", set_otherwise()));
    machines.push(Machine::new("metal-1s-amd with willing firmware", with_willing_firmware()));
    machines
}

/// What profiles want and `metal-2s` has already, set to something else.
fn set_otherwise() -> Tree {
    let tree = Tree::copy_of("metal-2s");
    for (place, value) in [
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
        ("/proc/sys/net/core/somaxconn", "128"),
        ("/proc/sys/net/ipv4/tcp_max_syn_backlog", "128"),
        ("/proc/sys/kernel/pid_max", "32768"),
        ("/sys/block/nvme0n1/queue/scheduler", "none [mq-deadline] kyber"),
        ("/proc/sys/vm/zone_reclaim_mode", "1"),
        ("/proc/sys/vm/max_map_count", "65530"),
        ("/sys/kernel/mm/ksm/run", "1"),
    ] {
        assert!(!tree.get(place).is_empty(), "{place} is there");
        tree.put(place, &format!("{value}\n"));
    }
    // The unit that a profile names, whose settings no other one has.
    tree.put("/etc/systemd/system/zeptodb.service", "[Service]\nExecStart=/usr/bin/zeptodb\n");
    tree
}

/// `metal-1s-amd` without the core whose firmware refuses for ever: the hints of all are set there.
fn with_willing_firmware() -> Tree {
    let tree = Tree::copy_of("metal-1s-amd");
    let refuses = "[[answer]]\nplace = \
                   \"/sys/devices/system/cpu/cpu15/cpufreq/energy_performance_preference\"\nerrno = \"EBUSY\"\n";
    let meta = tree.get("/meta.toml");
    assert!(meta.contains(refuses), "{meta}");
    tree.put("/meta.toml", &meta.replace(refuses, ""));
    tree
}

pub fn profiles(session: &Session) -> Vec<String> {
    session.catalogue().profile_names().map(str::to_owned).collect()
}

/// Applies a profile with all that it may ask for but security; pools by the machine's own database, where it has one.
fn apply_profile(session: &Session, profile: &str, persist: bool) -> planish_pipeline::Applied {
    let mut options = PlanOptions {
        allow_classes: vec![Class::Availability, Class::Durability],
        service: Some(Service::Name("postgres".to_owned())),
        ..PlanOptions::default()
    };
    let source = Source::Profile(profile.to_owned());
    let made = plan(session, &source, &options).or_else(|_| {
        options.service = None;
        plan(session, &source, &options)
    });
    let options = ApplyOptions { persist, ..ApplyOptions::default() };
    apply(session, &made.expect("a plan"), &options).expect("a refusing kernel is no error")
}

/// The knobs that were set, and the value stayed: by their own step, or by another one of the same plan before it, as
/// `kernel.watchdog` sets `kernel.nmi_watchdog`.
fn set(entries: &[Entry]) -> impl Iterator<Item = String> {
    let stays = |step: &&EntryStep| {
        let kind = step.outcome.as_ref().map(|outcome| outcome.outcome);
        matches!(kind, Some(OutcomeKind::Done | OutcomeKind::Short | OutcomeKind::Satisfied))
    };
    entries.iter().flat_map(|entry| &entry.steps).filter(stays).map(|step| step.knob.to_string())
}

/// Those of the knobs that are boot parameters and stand in our file of the boot loader.
fn given_to_next_boot(tree: &Tree, session: &Session, profile: &Profile) -> Vec<String> {
    let text = tree.get("/etc/default/grub.d/90-planish.cfg");
    let is_given = |knob: &&Knob| {
        knob.boot_parameter().is_some_and(|(parameter, _)| text.contains(&format!("{parameter}=")))
    };
    let knobs = profile.want.keys().filter_map(|id| session.catalogue().knob(id).ok());
    knobs.filter(is_given).map(|knob| knob.id.to_string()).collect()
}

/// Applied, kept for the next boot and undone; and of all that the profiles want nothing is never really set.
#[test]
fn every_profile_comes_and_goes_on_every_machine() {
    let mut written = BTreeSet::new();
    let mut wanted = BTreeSet::new();
    for (shift, machine) in machines().into_iter().enumerate() {
        for (index, profile) in profiles(&machine.tree.session()).into_iter().enumerate() {
            let session = machine.tree.session();
            let resolved = session.catalogue().profile(&profile).expect("sound");
            wanted.extend(resolved.want.keys().map(ToString::to_string));
            let applied = apply_profile(&session, &profile, (index + shift / 2) % 2 == 0);
            let when = format!("{} {profile}", machine.name);
            assert_ne!(applied.exit, Exit::FailedNotRestored, "{when}: {:#?}", applied.outcomes);
            if applied.exit != Exit::FailedRestored {
                written.extend(set(&machine.tree.entries()));
                written.extend(given_to_next_boot(&machine.tree, &session, &resolved));
            }
            let undone = undo(&machine.tree.session(), Target::All, false).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{when}: {:#?}", undone.entries);
            machine.is_back(&profile);
        }
    }
    let never: Vec<&String> = wanted.difference(&written).collect();
    assert_eq!(never, [""; 0], "wanted by shipped profiles, and set on no machine");
}

/// Kinds of operations that profiles come to on the machines.
const KINDS: [Kind; 7] =
    [Kind::Line, Kind::Journal, Kind::Value, Kind::Pool, Kind::File, Kind::Unit, Kind::Boot];

/// What is killed of an apply, and when: every so manieth operation, and where a kind of operation was not killed at
/// each moment yet, one of that kind for each moment that is missing.
fn stops(
    kinds: &[Kind],
    first: usize,
    index: usize,
    done: &mut BTreeSet<(Kind, usize)>,
) -> Vec<(usize, Moment)> {
    let all = 0..MOMENTS.len();
    let mut stops = Vec::new();
    for at in (first..kinds.len()).step_by(killed_of()) {
        let one = all.clone().find(|moment| !done.contains(&(kinds[at], *moment)));
        let one = one.unwrap_or((at + index) % MOMENTS.len());
        let moments = if is_whole() { all.clone().collect() } else { vec![one] };
        done.extend(moments.iter().map(|moment| (kinds[at], *moment)));
        stops.extend(moments.into_iter().map(|moment| (at, MOMENTS[moment])));
    }
    for (at, moment) in (0..kinds.len()).flat_map(|at| all.clone().map(move |moment| (at, moment))) {
        if done.insert((kinds[at], moment)) {
            stops.push((at, MOMENTS[moment]));
        }
    }
    stops
}

#[test]
fn every_profile_survives_kills_on_every_machine() {
    let mut kills = 0;
    let mut done = BTreeSet::new();
    for (shift, machine) in machines().into_iter().enumerate() {
        for (index, profile) in profiles(&machine.tree.session()).into_iter().enumerate() {
            let counter = Fuse::counting();
            apply_profile(&fused(machine.tree.options(), &counter), &profile, true);
            undo(&machine.tree.session(), Target::All, false).expect("undone");
            machine.is_back(&profile);
            let first = (shift * 7 + index * 5) % killed_of();
            for (operation, moment) in stops(&counter.kinds(), first, index, &mut done) {
                let session = fused(machine.tree.options(), &Fuse::at(operation, moment));
                let ended = until_killed(|| apply_profile(&session, &profile, true));
                assert!(
                    ended.is_none(),
                    "{} {profile}: operation {operation} was never reached",
                    machine.name
                );
                drop(session);
                undo(&machine.tree.session(), Target::All, false).expect("undone");
                for entry in machine.tree.entries() {
                    undo(&machine.tree.session(), Target::Entry(entry.id), true).expect("forced");
                }
                machine.is_back(&format!("{profile} killed {moment:?} operation {operation}"));
                kills += 1;
            }
        }
    }
    assert!(kills > 100, "{kills} kills");
    let missing = KINDS.iter().flat_map(|kind| (0..MOMENTS.len()).map(move |moment| (*kind, moment)));
    let missing: Vec<_> = missing.filter(|pair| !done.contains(pair)).collect();
    assert_eq!(missing, [], "kinds of operations that were not killed at a moment");
}

/// The first and the last write of each kind: to a setting of 16 CPUs the kernel may say no at any of them, and what
/// was done before is taken back by the same code.
fn at_both_ends(places: &[String]) -> BTreeSet<usize> {
    let mut ends: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (index, place) in places.iter().enumerate() {
        let kind: String = place.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        ends.entry(kind).or_insert((index, index)).1 = index;
    }
    ends.into_values().flat_map(|(first, last)| [first, last]).collect()
}

#[test]
fn every_profile_bears_every_refusal_on_every_machine() {
    let mut refused = 0;
    for (shift, machine) in machines().into_iter().enumerate() {
        for (index, profile) in profiles(&machine.tree.session()).into_iter().enumerate() {
            if (index + shift) % refused_of() != 0 {
                continue;
            }
            let counter = Fuse::counting();
            let by_itself = apply_profile(&fused(machine.tree.options(), &counter), &profile, true).exit;
            undo(&machine.tree.session(), Target::All, false).expect("undone");
            machine.is_back(&profile);
            let one = |write: usize| vec![ERRORS[(write + index) % ERRORS.len()]];
            let errors = |write| if is_whole() { ERRORS.to_vec() } else { one(write) };
            let ends = at_both_ends(&counter.places()).into_iter();
            for (write, errno) in ends.flat_map(|at| errors(at).into_iter().map(move |errno| (at, errno))) {
                let when = format!("{profile} refused {errno:?} at {}", counter.places()[write]);
                let fuse = Fuse::refusing(write, errno);
                let session = fused(machine.tree.options(), &fuse);
                let applied = apply_profile(&session, &profile, true);
                // Where the machine refuses a write of its own, ours may be one of those that take back.
                if by_itself != Exit::FailedRestored {
                    assert_ne!(applied.exit, Exit::FailedNotRestored, "{when}: {:#?}", applied.outcomes);
                }
                assert!(fuse.places().len() > write, "{when}: never asked");
                drop(session);
                let undone = undo(&machine.tree.session(), Target::All, false).expect("undone");
                assert_eq!(undone.exit, Exit::Done, "{when}: {:#?}", undone.entries);
                machine.is_back(&when);
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} refusals");
}
