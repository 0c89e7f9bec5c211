//! Shipped profiles over each other and in the place of each other, on every writable machine of `hosts/`: whatever
//! goes first, and however it was held, the host is then as it was.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::{Class, EntryId, Exit, Undo};
use planish_pipeline::{ApplyOptions, PipelineError, PlanOptions, Source, Target, apply, plan, undo};

use crate::hosts::{Machine, is_whole, machines, profiles};
use crate::tree::*;

/// What is done, in words: a letter applies a profile, `B/1` applies one in the place of what was applied first, `-2`
/// takes back what was applied as the second.
const SHAPES: [&str; 20] = [
    "A B -2 -1",
    "A B -1 -2",
    "A B/1 -2",
    "A B C -3 -2 -1",
    "A B C -3 -1 -2",
    "A B C -2 -3 -1",
    "A B C -2 -1 -3",
    "A B C -1 -3 -2",
    "A B C -1 -2 -3",
    "A B/1 C/2 -3",
    "A B/1 C -3 -2",
    "A B/1 C -2 -3",
    "A B C/1 -3 -2",
    "A B C/1 -2 -3",
    "A B C/2 -3 -1",
    "A B C/2 -1 -3",
    "A B -1 C -3 -2",
    "A B -1 C -2 -3",
    "A B -1 C/2 -3",
    "A B -2 C/1 -3",
];

/// What once left something behind, or was refused by the machine half way: two values over that of a twin, plain and
/// in the place of each other; a value that another one had brought about; a hint that the governor pins.
const FOUND: [(&str, &str, [&str; 3]); 5] = [
    ("metal-2s", "A B C -1 -2 -3", ["low-latency", "postgres", "realtime"]),
    ("metal-2s", "A B/1 C/2 -3", ["mysql", "postgres", "oracle"]),
    ("metal-2s", "A B/1 -2", ["zepto", "clickhouse", ""]),
    ("metal-2s", "A B/1 -2", ["realtime", "postgres", ""]),
    ("rhel9-guest", "A B/1 C/2 -3", ["realtime", "mysql", "oracle"]),
];

/// Profiles by their letters, and which of the applies write files for the next boot.
#[derive(Clone, Debug)]
struct Sequence {
    shape: &'static str,
    profiles: Vec<String>,
    persist: Vec<bool>,
}

/// What became of sequences.
#[derive(Debug, Default)]
struct Count {
    run: usize,
    refused: usize,
    failures: Vec<String>,
}

/// A run of one sequence on one machine.
struct Life<'a> {
    machine: &'a Machine,
    sequence: &'a Sequence,
    /// The entries by the order of the applies; `None` where there was nothing to write or the plan was refused.
    made: Vec<Option<EntryId>>,
    /// What the machine was with these entries open, and no others.
    seen: BTreeMap<BTreeSet<EntryId>, BTreeMap<String, String>>,
    refused: bool,
}

impl Life<'_> {
    fn open(&self) -> BTreeSet<EntryId> {
        self.machine
            .tree
            .entries()
            .into_iter()
            .filter(|entry| entry.is_open())
            .map(|entry| entry.id)
            .collect()
    }

    fn apply(&mut self, profile: &str, instead_of: Option<EntryId>) -> Result<(), String> {
        self.seen.entry(self.open()).or_insert_with(|| self.machine.tree.snapshot());
        let session = self.machine.tree.session();
        let options = PlanOptions {
            allow_classes: vec![Class::Availability, Class::Durability],
            instead_of,
            ..PlanOptions::default()
        };
        let persist = self.sequence.persist[self.made.len()];
        let made = plan(&session, &Source::Profile(profile.to_owned()), &options);
        let made =
            made.and_then(|made| apply(&session, &made, &ApplyOptions { persist, ..Default::default() }));
        match made {
            Ok(applied) if matches!(applied.exit, Exit::Done | Exit::Findings) => {
                self.made.push(applied.entry)
            }
            Ok(applied) => {
                return Err(format!("{profile} ended with {:?}: {:#?}", applied.exit, applied.hints));
            }
            Err(PipelineError::InsteadOf { .. }) if instead_of.is_some() => {
                self.refused = true;
                self.made.push(None);
            }
            Err(error) => return Err(format!("{profile}: {error}: {:?}", error.hints())),
        }
        Ok(())
    }

    /// The values that open entries hold.
    fn held(&self) -> BTreeMap<String, String> {
        let mut held = BTreeMap::new();
        for entry in self.machine.tree.entries().iter().filter(|entry| entry.is_open()) {
            for step in entry.steps.iter().filter(|step| step.undo == Undo::Restore && !step.is_undone()) {
                held.insert(step.place.clone(), (entry.id, step.ours().to_owned()));
            }
        }
        let shows = |place: &str, ours: &str| self.machine.tree.get(place).trim() == ours.trim();
        let held = held.into_iter().filter(|(place, (_, ours))| shows(place, ours));
        held.map(|(place, (id, ours))| (format!("{place} of entry {id}"), ours)).collect()
    }

    fn undo(&mut self, id: EntryId) -> Result<(), String> {
        let is_of = |place: &String| place.ends_with(&format!(" of entry {id}"));
        let before = self.held();
        let undone = undo(&self.machine.tree.session(), Target::Entry(id), false)
            .map_err(|error| error.to_string())?;
        let now = self.machine.tree.entries();
        // What went back may be what an entry that stays had found as it wants it: that is said.
        let is_told = undone.hints.iter().any(|hint| hint.contains("had found as wanted what went back"));
        let as_told = if is_told { Exit::Findings } else { Exit::Done };
        if undone.exit != as_told || now.iter().any(|entry| entry.id == id && entry.is_open()) {
            return Err(format!("undo {id} ended with {:?}: {:#?}", undone.exit, undone.hints));
        }
        let after = self.held();
        let lost: Vec<_> =
            before.iter().filter(|(place, ours)| !is_of(place) && after.get(*place) != Some(ours)).collect();
        if !lost.is_empty() {
            return Err(format!("undo {id} took from others: {lost:?}"));
        }
        let Some(seen) = self.seen.get(&self.open()) else { return Ok(()) };
        let left = differences(seen, &self.machine.tree.snapshot());
        let shown = left.iter().map(|place| format!("{place}: {:?}", self.machine.tree.get(place)));
        if left.is_empty() { Ok(()) } else { Err(format!("undo {id} left {:?}", shown.collect::<Vec<_>>())) }
    }

    fn act(&mut self, word: &str) -> Result<(), String> {
        if let Some(number) = word.strip_prefix('-') {
            let number: usize = number.parse().expect("a number");
            // What was refused has left its predecessor: that goes at the end.
            return self.made[number - 1]
                .filter(|id| self.open().contains(id))
                .map_or(Ok(()), |id| self.undo(id));
        }
        let (letter, old) = word.split_once('/').map_or((word, None), |(letter, old)| (letter, Some(old)));
        let profile = &self.sequence.profiles[usize::from(letter.as_bytes()[0] - b'A')];
        let old = old.map(|old| self.made[old.parse::<usize>().expect("a number") - 1]);
        if old == Some(None) {
            self.made.push(None);
            return Ok(());
        }
        self.apply(profile, old.flatten())
    }

    fn live(&mut self) -> Result<(), String> {
        for word in self.sequence.shape.split(' ') {
            self.act(word).map_err(|error| format!("at {word}: {error}"))?;
        }
        for id in self.open().into_iter().rev() {
            self.undo(id).map_err(|error| format!("at the end: {error}"))?;
        }
        let left = differences(&self.machine.start, &self.machine.tree.snapshot());
        if left.is_empty() { Ok(()) } else { Err(format!("left {left:?}")) }
    }
}

fn run(machine: &Machine, sequence: &Sequence) -> (bool, Result<(), String>) {
    let (made, seen) = (Vec::new(), BTreeMap::new());
    let mut life = Life { machine, sequence, made, seen, refused: false };
    let ended = life.live();
    machine.forget();
    (life.refused, ended.map_err(|error| format!("{} {sequence:?} {error}", machine.name)))
}

/// Numbers that look random, and are the same each time.
struct Draw(u64);

impl Draw {
    /// One below a limit (splitmix64).
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below a usize")
    }
}

/// Every pair of profiles in every shape of two, and every three of them, the first of which may be the last again, in
/// one shape of three: of those each machine has the share that falls to it.
fn all(names: &[String], (number, of): (usize, usize)) -> Vec<Sequence> {
    let (pairs, triples): (Vec<&str>, Vec<&str>) = SHAPES.iter().partition(|shape| !shape.contains('C'));
    let mut draw = Draw(0);
    let mut all = Vec::new();
    let mut add = |shape: &'static str, profiles: &[&String], draw: &mut Draw| {
        let persist = profiles.iter().map(|_| draw.below(3) == 0).collect();
        let profiles = profiles.iter().map(|profile| (*profile).clone()).collect();
        all.push(Sequence { shape, profiles, persist });
    };
    for (a, b) in names.iter().flat_map(|a| names.iter().map(move |b| (a, b))).filter(|(a, b)| a != b) {
        pairs.iter().for_each(|shape| add(shape, &[a, b], &mut draw));
        for c in names.iter().filter(|c| *c != b) {
            let shape = triples[draw.below(triples.len())];
            if draw.below(of) == number {
                add(shape, &[a, b, c], &mut draw);
            }
        }
    }
    all
}

fn found(machine: &str) -> impl Iterator<Item = Sequence> {
    FOUND.into_iter().filter(move |(name, ..)| *name == machine).map(|(_, shape, profiles)| Sequence {
        shape,
        profiles: profiles.map(str::to_owned).to_vec(),
        persist: vec![false, true, false],
    })
}

/// The sequences that a machine is given: all of them take hours, and one of each shape finds what is wrong of a kind.
/// Each machine has every other shape.
fn sample(all: Vec<Sequence>, number: usize, draw: &mut Draw) -> Vec<Sequence> {
    if is_whole() {
        return all;
    }
    let one_of = |shape: &str| {
        let of_shape: Vec<&Sequence> = all.iter().filter(|sequence| sequence.shape == shape).collect();
        of_shape[draw.below(of_shape.len())].clone()
    };
    SHAPES.into_iter().skip(number % 2).step_by(2).map(one_of).collect()
}

/// The machines on which no profile is refused by itself.
fn willing() -> Vec<Machine> {
    let mut machines = machines();
    machines.retain(|machine| machine.name != "metal-1s-amd");
    machines
}

/// Into how many parts the sequences of a machine go, each with a machine of its own.
const PARTS: usize = 2;

fn run_part(pristine: &Machine, sequences: &[Sequence], part: usize) -> Count {
    let fresh = || Machine::new(&pristine.name, pristine.tree.twin());
    let mut machine = fresh();
    let mut count = Count::default();
    for sequence in sequences.iter().skip(part).step_by(PARTS) {
        let (refused, ended) = run(&machine, sequence);
        count.run += 1;
        count.refused += usize::from(refused);
        if let Err(error) = ended {
            eprintln!("{error}");
            count.failures.push(error);
            machine = fresh();
        }
    }
    count
}

#[test]
fn profiles_come_and_go_in_any_order_on_every_machine() {
    let machines = willing();
    let names = profiles(&machines[0].tree.session());
    let given = |number: usize| {
        let all = all(&names, (number, machines.len()));
        let sample = sample(all, number, &mut Draw(number as u64));
        found(&machines[number].name).chain(sample).collect()
    };
    let sequences: Vec<Vec<Sequence>> = (0..machines.len()).map(given).collect();
    let counts: Vec<Count> = std::thread::scope(|scope| {
        let parts = machines.iter().zip(&sequences).flat_map(|pair| (0..PARTS).map(move |part| (pair, part)));
        let work =
            parts.map(|((machine, sequences), part)| scope.spawn(move || run_part(machine, sequences, part)));
        let work: Vec<_> = work.collect();
        work.into_iter().map(|work| work.join().expect("no panic")).collect()
    });
    let run: usize = counts.iter().map(|count| count.run).sum();
    let refused: usize = counts.iter().map(|count| count.refused).sum();
    let failures: Vec<&String> = counts.iter().flat_map(|count| &count.failures).collect();
    println!("{run} sequences, of which {refused} with a refusal");
    assert!(failures.is_empty(), "{} of {run} failed: {failures:#?}", failures.len());
    assert!(run >= 40 && refused < run / 2, "{run} sequences, of which {refused} with a refusal");
}
