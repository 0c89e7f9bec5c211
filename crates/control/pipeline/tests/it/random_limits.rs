//! Random lives of drop-ins of units: limits of several profiles over each other, while others edit, remove and mask
//! the files of ours, and write files of their own before and behind them. What a unit has of all its files is worked
//! out here by the rules of systemd, and by none of the code that is under test.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;

use planish_model::{Case, Class, Conditions, DriftState, EntryId, Exit, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Source, Target, apply, check, plan, undo};
use proptest::prelude::*;

use crate::tree::*;

const UNIT: &str = "/usr/lib/systemd/system/redis-server.service";
const FOLDER: &str = "/etc/systemd/system/redis-server.service.d";
/// Files of ours, and what they assign.
const OURS: [(&str, &str); 2] = [
    ("/etc/systemd/system/redis-server.service.d/zz-planish-nofile.conf", "LimitNOFILE"),
    ("/etc/systemd/system/redis-server.service.d/zz-planish-oom-score-adjust.conf", "OOMScoreAdjust"),
];
/// Where drop-ins of all services lie.
const OF_ALL: &str = "/etc/systemd/system/service.d";
/// Files of others for the same: read before ours and behind them, for this service and for all.
const THEIRS: [(&str, &str); 4] = [
    ("/etc/systemd/system/redis-server.service.d/10-own.conf", "LimitNOFILE=3000"),
    ("/etc/systemd/system/redis-server.service.d/zzz-own.conf", "LimitNOFILE=4096\nOOMScoreAdjust=0"),
    ("/etc/systemd/system/service.d/20-all.conf", "OOMScoreAdjust=100"),
    ("/etc/systemd/system/service.d/zzz-all.conf", "LimitNOFILE=5000"),
];

/// What others do to a file of ours.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Another value in its line.
    Value,
    /// An assignment behind ours.
    Behind,
    Comment,
    Empty,
    Remove,
    /// A link to /dev/null: systemd passes the file over.
    Mask,
}

/// One thing that happens to a host.
#[derive(Clone, Copy, Debug)]
enum Event {
    Apply(usize, bool),
    /// One in the place of an entry.
    Instead(usize, u64),
    Undo(u64),
    Change(usize, Change),
    /// Others write a file of their own, or remove it.
    Write(usize),
    Remove(usize),
    /// A package brings the unit with another limit.
    Package(u32),
}

fn source(number: usize) -> Source {
    let of_redis = |value: &str| {
        let (value, only) = (value.to_owned(), Some("redis*".to_owned()));
        Want::Case(Box::new(Case { value, only, needs: Conditions::default() }))
    };
    let wants: &[(&str, Want)] = match number {
        0 => &[("unit.nofile", of_redis("65536")), ("unit.oom_score_adjust", of_redis("-900"))],
        1 => &[("unit.nofile", of_redis("100000"))],
        2 => &[("unit.oom_score_adjust", of_redis("-500"))],
        _ => &[("unit.nofile", of_redis("2048")), ("unit.oom_score_adjust", of_redis("-900"))],
    };
    profile(&format!("profile-{number}"), wants)
}

fn unit(limit: u32) -> String {
    format!("[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/x\nLimitNOFILE={limit}\n")
}

fn host() -> Tree {
    let tree = Tree::copy_of("metal-2s");
    tree.put(UNIT, &unit(1024));
    tree
}

fn at(tree: &Tree, path: &str) -> std::path::PathBuf {
    tree.root().join(path.trim_start_matches('/'))
}

/// What the unit has: the last assignment of all its files, by their names in whichever folder. A link to /dev/null is
/// no file.
fn assigned(tree: &Tree, directive: &str) -> Option<String> {
    let files = tree.snapshot();
    let of_folder =
        |path: &str| [FOLDER, OF_ALL].contains(&path.rsplit_once('/').map_or("", |(folder, _)| folder));
    let drop_ins = files.iter().filter(|(path, _)| of_folder(path) && path.ends_with(".conf"));
    let by_name: BTreeMap<&str, &String> =
        drop_ins.map(|(path, text)| (path.rsplit('/').next().unwrap_or_default(), text)).collect();
    let texts = files.get(UNIT).into_iter().chain(by_name.into_values());
    let lines = texts.flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
    let mut values = lines.filter_map(|line| line.split_once('=').filter(|(key, _)| key.trim() == directive));
    values.next_back().map(|(_, value)| value.trim().to_owned())
}

/// What open entries want of the unit by a file of ours: the newest counts.
fn wanted(tree: &Tree, path: &str) -> Option<String> {
    let entries = tree.entries();
    let mut open = entries.iter().filter(|entry| entry.is_open()).flat_map(|entry| &entry.steps);
    open.rfind(|step| step.place == path && !step.is_undone()).map(|step| {
        let (_, value) = step.wanted.rsplit_once('=').expect("an assignment");
        value.trim().to_owned()
    })
}

fn change(tree: &Tree, (path, directive): (&str, &str), change: Change) {
    let text = tree.get(path);
    if text.is_empty() {
        return;
    }
    match change {
        Change::Value => {
            let is_it = |line: &str| line.starts_with(directive);
            let lines = text
                .lines()
                .map(|line| if is_it(line) { format!("{directive} = 512") } else { line.to_owned() });
            tree.put(path, &(lines.collect::<Vec<_>>().join("\n") + "\n"));
        }
        Change::Behind => tree.put(path, &format!("{text}{directive}=600\n")),
        Change::Comment => tree.put(path, &format!("{text}# of the site\n")),
        Change::Empty => tree.put(path, ""),
        Change::Remove => tree.remove(path),
        Change::Mask => {
            tree.remove(path);
            symlink("/dev/null", at(tree, path)).expect("ours");
        }
    }
}

/// Applies it; whether that was done. What is refused has changed nothing.
fn apply_in(
    tree: &Tree,
    number: usize,
    instead_of: Option<u64>,
    persist: bool,
) -> Result<bool, TestCaseError> {
    let session = tree.session();
    let options = PlanOptions {
        allow_classes: vec![Class::Availability],
        instead_of: instead_of.map(EntryId),
        ..PlanOptions::default()
    };
    let before = tree.snapshot();
    let Ok(plan) = plan(&session, &source(number), &options) else { return Ok(false) };
    match apply(&session, &plan, &ApplyOptions { persist, ..ApplyOptions::default() }) {
        Ok(_) => Ok(true),
        Err(error) => {
            prop_assert_eq!(error.exit(), Exit::Refused, "{:?}", error);
            prop_assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{:?}", error);
            Ok(false)
        }
    }
}

fn run(tree: &Tree, event: Event) -> Result<(), TestCaseError> {
    match event {
        Event::Apply(number, persist) => {
            if apply_in(tree, number, None, persist)? {
                let (once, entries) = (tree.snapshot(), tree.entries().len());
                apply_in(tree, number, None, persist)?;
                prop_assert_eq!(differences(&once, &tree.snapshot()), [""; 0], "applied twice");
                prop_assert_eq!(tree.entries().len(), entries, "applied twice");
            }
        }
        Event::Instead(number, old) => drop(apply_in(tree, number, Some(old), false)?),
        // An entry that was never made is an error, and changes nothing.
        Event::Undo(id) => drop(undo(&tree.session(), Target::Entry(EntryId(id)), false)),
        Event::Change(file, how) => change(tree, OURS[file], how),
        Event::Write(file) => tree.put(THEIRS[file].0, &format!("[Service]\n{}\n", THEIRS[file].1)),
        Event::Remove(file) => tree.remove_if_there(THEIRS[file].0),
        Event::Package(limit) => tree.put(UNIT, &unit(limit)),
    }
    Ok(())
}

/// A unit that has not what the newest entry wants of it is a finding, and without others there is none.
fn look(tree: &Tree, event: Event, is_alone: bool) -> Result<(), TestCaseError> {
    let checked = check(&tree.session(), None).expect("checked");
    for (path, directive) in OURS {
        let (wanted, has) = (wanted(tree, path), assigned(tree, directive));
        let is_lost = wanted.is_some() && wanted != has;
        let rows: Vec<_> = checked.drift.knobs.iter().filter(|row| row.place == path).collect();
        let told = format!("after {event:?}: {path} is to give {wanted:?}, the unit has {has:?}: {rows:#?}");
        let is_well = rows.iter().all(|row| row.state == DriftState::Ok);
        prop_assert!(!is_lost || (checked.exit != Exit::Done && !is_well), "{}", told);
        prop_assert!(!is_alone || (checked.exit == Exit::Done && is_well), "{}", told);
    }
    Ok(())
}

/// What a file of ours is, with the links.
fn content(tree: &Tree, path: &str) -> Option<String> {
    match std::fs::read_link(at(tree, path)) {
        Ok(target) => Some(format!("-> {}", target.display())),
        Err(_) => Some(tree.get(path)).filter(|text| !text.is_empty()),
    }
}

fn live(events: &[Event]) -> Result<(), TestCaseError> {
    let tree = host();
    let start = tree.snapshot();
    let mut written = BTreeSet::new();
    let is_ours = |event: &Event| matches!(event, Event::Apply(..) | Event::Instead(..) | Event::Undo(_));
    for (number, event) in events.iter().enumerate() {
        let before = OURS.map(|(path, _)| content(&tree, path));
        run(&tree, *event)?;
        let now = OURS.map(|(path, _)| content(&tree, path));
        if is_ours(event) {
            written.extend(
                now.into_iter().zip(before).filter(|(now, before)| now != before).map(|(now, _)| now),
            );
        }
        look(&tree, *event, events[..=number].iter().all(is_ours))?;
    }
    // An undo leaves what others made of a file of ours; force takes it, and nothing else of theirs.
    let before = OURS.map(|(path, _)| content(&tree, path));
    undo(&tree.session(), Target::All, false).expect("undone");
    for ((path, _), before) in OURS.into_iter().zip(before) {
        let is_theirs = before.is_some() && !written.contains(&before);
        prop_assert!(!is_theirs || content(&tree, path) == before, "{}: {:?} is kept", path, before);
    }
    for entry in tree.entries().iter().rev() {
        undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
    }
    let mut left = differences(&start, &tree.snapshot());
    let is_of_others = |path: &str| path == UNIT || THEIRS.iter().any(|(theirs, _)| path.starts_with(theirs));
    // Folders that others made stay with whoever made them.
    let has_made = events.iter().any(|event| matches!(event, Event::Write(_)));
    let is_folder =
        |path: &str| [FOLDER, OF_ALL].iter().any(|folder| folder.starts_with(path.trim_end_matches('/')));
    left.retain(|path| !(is_of_others(path) || has_made && is_folder(path)));
    prop_assert_eq!(left, [""; 0], "undone by force");
    Ok(())
}

fn event() -> impl Strategy<Value = Event> {
    let changes =
        [Change::Value, Change::Behind, Change::Comment, Change::Empty, Change::Remove, Change::Mask];
    let changed = (0..OURS.len(), proptest::sample::select(changes.to_vec()));
    prop_oneof![
        6 => (0usize..4, any::<bool>()).prop_map(|(number, persist)| Event::Apply(number, persist)),
        1 => (0usize..4, 1u64..5).prop_map(|(number, old)| Event::Instead(number, old)),
        2 => (1u64..5).prop_map(Event::Undo),
        4 => changed.prop_map(|(file, how)| Event::Change(file, how)),
        1 => (0..THEIRS.len()).prop_map(Event::Write),
        1 => (0..THEIRS.len()).prop_map(Event::Remove),
        1 => proptest::sample::select(vec![512u32, 80_000]).prop_map(Event::Package),
    ]
}

/// The lives below would be well if nothing were written, or nothing were lost.
#[test]
fn a_life_writes_files_and_others_take_values_away() {
    let tree = host();
    let (path, directive) = OURS[0];
    run(&tree, Event::Apply(0, true)).expect("applied");
    assert_eq!(
        (wanted(&tree, path), assigned(&tree, directive)),
        (Some("65536".into()), Some("65536".into()))
    );
    for (how, left) in [(Change::Value, "512"), (Change::Behind, "600"), (Change::Mask, "1024")] {
        run(&tree, Event::Change(0, how)).expect("changed");
        assert_eq!(assigned(&tree, directive).as_deref(), Some(left), "{how:?}");
        assert_eq!(wanted(&tree, path).as_deref(), Some("65536"), "{how:?}");
    }
}

/// How many cases are drawn: `./x soak` asks for more than the suite of every day has time for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok()).unwrap_or(16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_unit_has_what_was_asked_for_or_it_is_told(events in proptest::collection::vec(event(), 1..8)) {
        live(&events)?;
    }
}
