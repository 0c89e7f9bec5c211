//! A process that is moved: killed at every operation, undone, forced; its record damaged, or needed for longer.
#![expect(clippy::disallowed_methods, reason = "lists records, and damages them")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use planish_act::relocate::{Identity, Mapped, Process, Processes, RelocateError, Room, Spaces, Thread};
use planish_model::{Closure, EntryId, EntryState, Exit, OutcomeKind};
use planish_pipeline::{
    ApplyOptions, MoveRequest, PipelineError, Session, Target, apply, confirm, relocate, undo,
};
use planish_residency::{Area, Kind, Who, parse_maps};
use planish_sys::CpuSet;
use planish_sys::pagemap::{Filled, Run};
use planish_sys::policy::PageAt;

use crate::faults::{Fuse, Moment, WHOLE, moving, until_killed};
use crate::tree::{Tree, differences, everything, plan_of};
use crate::watch::without_watcher;

const BASE: u64 = 4096;
const START: u64 = 0x1000_0000;
const PID: u32 = 77;
const CHILD: u32 = 78;

/// A process that is a model.
pub struct Model {
    pages: RefCell<BTreeMap<u64, u32>>,
    hidden: Cell<bool>,
    cpus: RefCell<CpuSet>,
    start_ticks: Cell<u64>,
    spare: Cell<u64>,
    spaces: Cell<Spaces>,
    unreadable: Cell<bool>,
    /// Whether it is told that all its pages are small.
    tells_large: Cell<bool>,
    /// Everything is hidden as soon as something was moved.
    hides_what_moved: Cell<bool>,
    /// A child that has these CPUs.
    child: RefCell<Option<CpuSet>>,
}

/// The same behind a fuse.
pub struct View<'a> {
    pub pid: u32,
    pub model: &'a Model,
    pub fuse: &'a Fuse,
}

impl Model {
    /// Eleven hundred pages, a few of them on node 1.
    fn new() -> Rc<Self> {
        let pages = (0..1100).map(|page| (START + page * BASE, u32::from(page % 200 == 199))).collect();
        Rc::new(Self {
            pages: RefCell::new(pages),
            hidden: Cell::new(false),
            cpus: RefCell::new(cpus("0-1")),
            start_ticks: Cell::new(9),
            spare: Cell::new(1 << 30),
            spaces: Cell::new(Spaces { pids: 1, time: 2 }),
            unreadable: Cell::new(false),
            tells_large: Cell::new(true),
            hides_what_moved: Cell::new(false),
            child: RefCell::default(),
        })
    }

    fn shape(&self) -> (BTreeMap<u64, u32>, CpuSet) {
        (self.pages.borrow().clone(), self.cpus.borrow().clone())
    }
}

fn cpus(list: &str) -> CpuSet {
    list.parse().expect("a list")
}

impl Processes for View<'_> {
    fn open(&self, pid: u32) -> Result<Option<Box<dyn Process + '_>>, RelocateError> {
        let is_there = pid == PID || (pid == CHILD && self.model.child.borrow().is_some());
        Ok(is_there.then(|| Box::new(View { pid, ..*self }) as Box<dyn Process>))
    }
    fn spaces(&self) -> Result<Spaces, RelocateError> {
        Ok(self.model.spaces.get())
    }
    fn room(&self, node: u32) -> Option<Room> {
        (node < 2).then(|| Room { free: self.model.spare.get(), kept: 0 })
    }
    fn pause(&self, _: Duration) {}
    fn base_bytes(&self) -> u64 {
        BASE
    }
    fn chunk_bytes(&self) -> u64 {
        2 << 20
    }
}

impl Process for View<'_> {
    fn identity(&self) -> Result<Option<Identity>, RelocateError> {
        if self.model.unreadable.get() {
            return Err(RelocateError::Elsewhere { why: "too many open files" });
        }
        let (start_ticks, spaces) = (self.model.start_ticks.get(), self.model.spaces.get());
        Ok(Some(Identity { pid: PID, start_ticks, layout: (1, 2), mark: Some(3), spaces }))
    }
    fn areas(&self) -> Result<Vec<Area>, RelocateError> {
        Ok(parse_maps("10000000-20000000 rw-p 00000000 00:00 0 [heap]\n").expect("sound"))
    }
    fn mapped(&self) -> Result<Vec<Mapped>, RelocateError> {
        let areas = self.areas()?;
        let policy = Some("default".to_owned());
        let mapped = |area| Mapped { area, policy: policy.clone(), is_locked: false, is_pool: false };
        Ok(areas.into_iter().map(mapped).collect())
    }
    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, RelocateError> {
        let pages = self.model.pages.borrow();
        let run = |address: &u64| Run { range: *address..address + BASE, filled: Filled::Base };
        Ok(pages.range(range).map(|(address, _)| run(address)).collect())
    }
    fn folio(&self, address: u64, _: &Range<u64>) -> Option<Range<u64>> {
        self.model.tells_large.get().then_some(address..address + BASE)
    }
    fn pages_at(&self, addresses: &[u64]) -> Result<Vec<PageAt>, RelocateError> {
        let pages = self.model.pages.borrow();
        let at = |address: &u64| match pages.get(address) {
            Some(_) if self.model.hidden.get() && address.is_multiple_of(2 * BASE) => PageAt::Absent,
            Some(1) if self.model.hides_what_moved.get() => PageAt::Absent,
            Some(node) => PageAt::Node(*node),
            None => PageAt::Absent,
        };
        Ok(addresses.iter().map(at).collect())
    }
    fn move_pages(&self, addresses: &[u64], nodes: &[u32]) -> Result<Vec<PageAt>, RelocateError> {
        let go = |count: usize| {
            let mut pages = self.model.pages.borrow_mut();
            for (address, node) in addresses.iter().zip(nodes).take(count) {
                pages.insert(*address, *node);
            }
        };
        self.fuse.pass(|| go(addresses.len()), Some(|| go(addresses.len() / 2)));
        self.pages_at(addresses)
    }
    fn threads(&self) -> Result<Vec<Thread>, RelocateError> {
        if self.pid == CHILD {
            let cpus = self.model.child.borrow().clone().expect("there");
            return Ok(vec![Thread { tid: CHILD, start_ticks: 12, cpus }]);
        }
        Ok(vec![Thread { tid: PID, start_ticks: 9, cpus: self.model.cpus.borrow().clone() }])
    }
    fn pin(&self, _: u32, cpus: &CpuSet) -> Result<(), RelocateError> {
        self.fuse.pass(|| drop(self.model.cpus.replace(cpus.clone())), WHOLE);
        Ok(())
    }
}

/// The small host of two nodes, with a process.
fn host() -> Tree {
    let tree = Tree::new();
    let stat =
        "77 (db) S 1 77 77 0 -1 4194304 1 2 3 4 50 7 0 0 20 0 3 0 9 1 2 3 1 4 2 0 0 0 0 0 0 0 0 0 17 0\n";
    tree.put("/proc/77/stat", stat);
    tree.put("/proc/77/status", "Name:\tdb\nUid:\t0\t0\t0\t0\nMems_allowed_list:\t0-1\n");
    tree
}

fn request() -> MoveRequest {
    MoveRequest {
        who: vec![Who::Pid(PID)],
        to: Some([1].into_iter().collect()),
        kinds: vec![Kind::Heap],
        cpus: Some(cpus("1")),
        bytes_per_second: 1 << 40,
        ..MoveRequest::default()
    }
}

fn session(tree: &Tree, model: &Rc<Model>) -> Session {
    moving(tree.options(), &Fuse::counting(), model)
}

fn records(tree: &Tree) -> Vec<std::path::PathBuf> {
    let folder = fs::read_dir(tree.root().join("var/lib/planish/moved"));
    folder.map(|names| names.map(|name| name.expect("ours").path()).collect()).unwrap_or_default()
}

fn moved(tree: &Tree, model: &Rc<Model>) -> EntryId {
    let moved = relocate(&session(tree, model), &request(), &|| false).expect("moved");
    assert_eq!((moved.exit, moved.hints.len()), (Exit::Done, 0));
    let told = &moved.processes[0];
    assert_eq!(told.after.as_ref().map(|after| after.contains_key(&0)), Some(false), "{told:?}");
    moved.entry.expect("an entry")
}

#[test]
fn a_move_is_an_entry_and_undo_takes_it_back() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    let entry = moved(&tree, &model);
    assert!(model.pages.borrow().values().all(|node| *node == 1));
    assert_eq!((model.cpus.borrow().clone(), records(&tree).len()), (cpus("1"), 2));
    // A second time there is nothing to do, and no entry.
    let again = relocate(&session(&tree, &model), &request(), &|| false).expect("looked");
    assert_eq!((again.entry, again.exit), (None, Exit::Done));
    assert_eq!(records(&tree).len(), 2, "an open entry keeps its records");
    let undone = undo(&session(&tree, &model), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, undone.entries[0].0), (Exit::Done, entry), "{undone:?}");
    assert_eq!(model.shape(), start);
    assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::Undone));
    assert!(records(&tree).is_empty(), "nobody needs them any more");
}

fn of(parts: &[&str]) -> MoveRequest {
    let ranges = parts.iter().map(|part| part.parse().expect("a part")).collect();
    MoveRequest { ranges, cpus: None, ..request() }
}

#[test]
fn a_named_part_goes_alone_and_undo_takes_it_back() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    // Pages 10 to 19 and 30, by addresses that are no whole pages.
    let parts = of(&["1000a001-10013fff", "0x1001E000-0x1001F000"]);
    let moved = relocate(&session(&tree, &model), &parts, &|| false).expect("moved");
    assert_eq!(moved.exit, Exit::Done, "{moved:?}");
    let told = &moved.processes[0];
    let heap = |start: u64, end: u64| (start..end, "[heap]".to_owned());
    assert_eq!(told.ranges, [heap(0x1000_a000, 0x1001_4000), heap(0x1001_e000, 0x1001_f000)]);
    assert_eq!(told.before, BTreeMap::from([(0, 11 * BASE)]), "of the parts alone");
    assert_eq!(told.after, Some(BTreeMap::from([(1, 11 * BASE)])));
    assert_eq!(moved.hints, ["1000a001-10013fff is no whole pages: 1000a000-10014000 was taken for it"]);
    for (address, node) in model.pages.borrow().iter() {
        let page = (address - START) / BASE;
        assert_eq!(*node == 1, (10..20).contains(&page) || page == 30 || page % 200 == 199, "page {page}");
    }
    let entries = tree.entries();
    assert_eq!(entries[0].steps.len(), 1);
    assert_eq!(entries[0].steps[0].wanted, "node 1, of 1000a000-10014000, 1001e000-1001f000");
    let undone = undo(&session(&tree, &model), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, model.shape(), records(&tree).len()), (Exit::Done, start, 0));
    // By its name the whole heap goes.
    let whole = relocate(&session(&tree, &model), &of(&["[heap]"]), &|| false).expect("moved");
    assert_eq!((whole.exit, whole.hints.len()), (Exit::Done, 0));
    assert!(model.pages.borrow().values().all(|node| *node == 1));
}

#[test]
fn that_neighbours_may_stay_at_an_undo_is_said() {
    let (tree, model) = (host(), Model::new());
    model.tells_large.set(false);
    let part = MoveRequest { dry_run: true, ..of(&["1000a000-10014000"]) };
    let looked = relocate(&session(&tree, &model), &part, &|| false).expect("looked");
    assert_eq!((looked.exit, looked.hints.len()), (Exit::Done, 1));
    assert!(looked.hints[0].contains("may stay there at an undo"), "{:?}", looked.hints);
}

#[test]
fn parts_that_are_not_there_are_refused_by_name() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    let refused = |request: MoveRequest, word: &str| {
        let error = relocate(&session(&tree, &model), &request, &|| false).expect_err(word);
        assert_eq!((error.exit(), error.hints().is_empty()), (Exit::Refused, false));
        assert!(error.to_string().contains(word), "{error}");
    };
    refused(of(&["1fff0000-20010000"]), "nothing mapped at 20000000-20010000, of 1fff0000-20010000");
    refused(of(&["[heap]", "[stack]"]), "process 77 has no mapping [stack]");
    bear(&tree);
    model.child.replace(Some(cpus("1")));
    tree.put("/proc/78/status", "Name:\tdb\nUid:\t0\t0\t0\t0\nMems_allowed_list:\t0-1\n");
    let tree_of = |parts: &[&str]| MoveRequest { tree: true, ..of(parts) };
    refused(tree_of(&["10000000-10001000"]), "10000000-10001000 are of one process, and 2 are meant");
    refused(tree_of(&["[stack]"]), "none of 2 processes has a mapping [stack]");
    assert_eq!(model.shape(), start);
    assert!(tree.entries().is_empty() && records(&tree).is_empty());
}

#[test]
fn a_dry_run_writes_nothing() {
    let (tree, model) = (host(), Model::new());
    let (start, files) = (model.shape(), tree.snapshot());
    let request = MoveRequest { dry_run: true, ..request() };
    let looked = relocate(&session(&tree, &model), &request, &|| false).expect("looked");
    assert_eq!((looked.processes[0].wanted, looked.entry), (1095 * BASE, None));
    assert_eq!((model.shape(), tree.snapshot()), (start, files));
}

#[test]
fn killed_anywhere_undo_brings_every_page_back() {
    let kills = {
        let (tree, model, fuse) = (host(), Model::new(), Fuse::counting());
        relocate(&moving(tree.options(), &fuse, &model), &request(), &|| false).expect("moved");
        fuse.kills()
    };
    assert!(kills.len() > 12, "{} kills", kills.len());
    for (operation, moment) in kills {
        let (tree, model) = (host(), Model::new());
        let start = model.shape();
        let fuse = Fuse::at(operation, moment);
        let killed = moving(tree.options(), &fuse, &model);
        assert!(until_killed(|| relocate(&killed, &request(), &|| false)).is_none(), "{operation}");
        drop(killed);
        // Killed once more in the undo.
        let fuse = Fuse::at(operation / 2, Moment::Torn);
        let killed = moving(tree.options(), &fuse, &model);
        let _ = until_killed(|| undo(&killed, Target::All, false));
        drop(killed);
        let undone = undo(&session(&tree, &model), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{operation} {moment:?}: {undone:?}");
        assert_eq!(model.shape(), start, "{operation} {moment:?}");
        assert!(records(&tree).is_empty(), "{operation} {moment:?}");
    }
}

#[test]
fn what_undo_cannot_see_keeps_its_entry_and_its_record() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    moved(&tree, &model);
    model.hidden.set(true);
    let first = undo(&session(&tree, &model), Target::Newest, false).expect("undone");
    assert_eq!(first.exit, Exit::Findings);
    assert!(first.entries[0].1.iter().any(|outcome| outcome.outcome == OutcomeKind::InUse), "{first:?}");
    assert!(first.hints.iter().any(|hint| hint.contains("planish undo 1")), "{:?}", first.hints);
    assert!(tree.entries()[0].is_open() && !records(&tree).is_empty());
    // Another move sweeps what nobody needs, and these are needed.
    let none = MoveRequest { to: None, kinds: Vec::new(), cpus: Some(cpus("0")), ..request() };
    relocate(&session(&tree, &model), &none, &|| false).expect("pinned");
    model.hidden.set(false);
    for target in [Target::Newest, Target::Newest] {
        assert_eq!(undo(&session(&tree, &model), target, false).expect("undone").exit, Exit::Done);
    }
    assert_eq!(model.shape(), start);
    assert!(records(&tree).is_empty());
}

#[test]
fn what_others_moved_is_kept_unless_forced() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    let entry = {
        let both = MoveRequest { to: Some([0].into_iter().collect()), ..request() };
        relocate(&session(&tree, &model), &both, &|| false).expect("moved").entry.expect("an entry")
    };
    model.pages.borrow_mut().insert(START + 199 * BASE, 3);
    let undone = undo(&session(&tree, &model), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, model.pages.borrow()[&(START + 199 * BASE)]), (Exit::Findings, 3));
    assert!(!records(&tree).is_empty(), "force still needs it");
    let forced = undo(&session(&tree, &model), Target::Entry(entry), true).expect("forced");
    assert_eq!((forced.exit, model.shape()), (Exit::Done, start));
    assert!(records(&tree).is_empty());
}

#[test]
fn a_process_of_the_same_number_is_left_alone() {
    let (tree, model) = (host(), Model::new());
    moved(&tree, &model);
    let strangers = model.shape();
    model.start_ticks.set(10);
    let undone = undo(&session(&tree, &model), Target::Newest, true).expect("undone");
    assert_eq!((undone.exit, model.shape()), (Exit::Done, strangers));
    assert!(!tree.entries()[0].is_open());
}

#[test]
fn a_damaged_record_is_told_and_given_up_by_force_alone() {
    let (tree, model) = (host(), Model::new());
    moved(&tree, &model);
    for path in records(&tree) {
        let bytes = fs::read(&path).expect("ours");
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("ours");
    }
    let undone = undo(&session(&tree, &model), Target::Newest, false).expect("told");
    assert_eq!(undone.exit, Exit::FailedNotRestored);
    assert!(undone.hints.iter().any(|hint| hint.contains(".record is damaged")), "{:?}", undone.hints);
    assert!(tree.entries()[0].is_open());
    let forced = undo(&session(&tree, &model), Target::Newest, true).expect("given up");
    assert_eq!(forced.exit, Exit::Findings, "it is given up, and not back");
    assert!(forced.hints.iter().any(|hint| hint.contains("given up")), "{:?}", forced.hints);
    assert!(!tree.entries()[0].is_open());
}

#[test]
fn force_gives_up_what_is_hidden_and_never_what_passes() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    moved(&tree, &model);
    let forced = |word: &str, exit: Exit| {
        let forced = undo(&session(&tree, &model), Target::All, true).expect(word);
        assert_eq!(forced.exit, exit, "{forced:?}");
        assert!(forced.hints.iter().any(|hint| hint.contains(word)), "{:?}", forced.hints);
        assert!(tree.entries()[0].is_open() && !records(&tree).is_empty(), "{word}");
    };
    // A full node, a process that cannot be told, and one that is seen from another namespace.
    model.spare.set(0);
    forced("no free memory on the node", Exit::Findings);
    model.spare.set(1 << 30);
    model.unreadable.set(true);
    forced("too many open files", Exit::FailedNotRestored);
    model.unreadable.set(false);
    model.spaces.set(Spaces { pids: 8, time: 2 });
    forced("another PID or time namespace", Exit::FailedNotRestored);
    model.spaces.set(Spaces { pids: 1, time: 2 });
    model.hidden.set(true);
    let given_up = undo(&session(&tree, &model), Target::All, true).expect("given up");
    assert_eq!(given_up.exit, Exit::Findings);
    assert!(given_up.hints.iter().any(|hint| hint.contains("given up")), "{:?}", given_up.hints);
    assert!(!tree.entries()[0].is_open(), "what is hidden is given up");
    // Until the next boot force may be tried again.
    model.hidden.set(false);
    let again = undo(&session(&tree, &model), Target::Entry(EntryId(1)), true).expect("forced");
    assert_eq!((again.exit, model.shape(), records(&tree).len()), (Exit::Done, start, 0));
}

#[test]
fn a_process_in_another_namespace_has_not_ended() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    moved(&tree, &model);
    let there = model.shape();
    // There the number is that of somebody else, who began at another moment.
    for (spaces, start_ticks) in [(Spaces { pids: 8, time: 2 }, 10), (Spaces { pids: 1, time: 9 }, 9)] {
        model.spaces.set(spaces);
        model.start_ticks.set(start_ticks);
        let undone = undo(&session(&tree, &model), Target::All, false).expect("told");
        assert_eq!((undone.exit, model.shape()), (Exit::FailedNotRestored, there.clone()));
        assert!(tree.entries()[0].is_open() && records(&tree).len() == 2);
    }
    model.spaces.set(Spaces { pids: 1, time: 2 });
    assert_eq!(undo(&session(&tree, &model), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(model.shape(), start);
}

#[test]
fn of_two_moves_of_a_process_the_newer_is_undone_first() {
    for force in [false, true] {
        let (tree, model) = (host(), Model::new());
        let start = model.shape();
        let first = moved(&tree, &model);
        let back = MoveRequest { to: Some([0].into_iter().collect()), cpus: Some(cpus("0")), ..request() };
        let second = relocate(&session(&tree, &model), &back, &|| false).expect("moved").entry.expect("one");
        let there = model.shape();
        let older = undo(&session(&tree, &model), Target::Entry(first), force).expect("told");
        assert_eq!((older.exit, model.shape()), (Exit::Findings, there), "{older:?}");
        assert!(older.hints.iter().any(|hint| hint.contains(&format!("planish undo {second}"))), "{older:?}");
        assert_eq!(records(&tree).len(), 4, "nothing is forgotten");
        for entry in [second, first] {
            assert_eq!(
                undo(&session(&tree, &model), Target::Entry(entry), force).expect("undone").exit,
                Exit::Done
            );
        }
        assert_eq!((model.shape(), records(&tree).len()), (start, 0));
    }
}

#[test]
fn what_went_and_is_hidden_afterwards_keeps_its_entry() {
    let (tree, model) = (host(), Model::new());
    model.pages.borrow_mut().retain(|_, node| *node == 0);
    let start = model.shape();
    model.hides_what_moved.set(true);
    let memory = MoveRequest { cpus: None, ..request() };
    let moved = relocate(&session(&tree, &model), &memory, &|| false).expect("moved");
    assert_eq!(
        (moved.exit, moved.processes[0].carried.as_ref().map(|carried| carried.moved)),
        (Exit::Findings, Some(0))
    );
    assert!(moved.entry.is_some() && tree.entries()[0].is_open() && records(&tree).len() == 1);
    model.hides_what_moved.set(false);
    assert_eq!(undo(&session(&tree, &model), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!(model.shape(), start);
}

/// A stat file of the child.
fn bear(tree: &Tree) {
    let stat = tree.get("/proc/77/stat").replacen("77 (db) S 1 ", "78 (db) S 77 ", 1);
    tree.put("/proc/78/stat", &stat);
}

#[test]
fn a_child_that_was_given_our_cpus_by_its_parent_is_told() {
    let (tree, model) = (host(), Model::new());
    moved(&tree, &model);
    bear(&tree);
    model.child.replace(Some(cpus("1")));
    let undone = undo(&session(&tree, &model), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, model.cpus.borrow().clone()), (Exit::Findings, cpus("0-1")));
    assert!(undone.hints.iter().any(|hint| hint.contains("keep it: 78")), "{:?}", undone.hints);
    assert!(!tree.entries()[0].is_open());
    // All that was recorded is back, and force has nothing to write: to propose it would be a loop.
    assert_eq!((undone.entries[0].1[0].outcome, undone.kept), (OutcomeKind::Done, None));
    let again = undo(&session(&tree, &model), Target::Entry(tree.entries()[0].id), true).expect("told");
    assert_eq!((again.exit, again.entries.len(), again.kept), (Exit::Done, 0, None));
    model.child.replace(Some(cpus("0-1")));
    moved(&tree, &model);
    assert_eq!(undo(&session(&tree, &model), Target::Newest, false).expect("undone").exit, Exit::Done);
}

#[test]
fn what_is_started_while_a_tree_is_moved_is_told() {
    let (tree, model) = (host(), Model::new());
    let stop = || {
        bear(&tree);
        false
    };
    let all = MoveRequest { tree: true, ..request() };
    let moved = relocate(&session(&tree, &model), &all, &stop).expect("moved");
    assert_eq!((moved.exit, moved.processes.len()), (Exit::Findings, 1));
    assert!(moved.hints.iter().any(|hint| hint.contains("1 processes of the tree")), "{:?}", moved.hints);
}

#[test]
fn no_timer_waits_for_a_move() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    let first = moved(&tree, &model);
    let plain = without_watcher(&tree);
    let options = ApplyOptions { confirm_seconds: Some(600), ..ApplyOptions::default() };
    apply(&plain, &plan_of(&plain, &everything()), &options).expect("applied");
    let there = model.shape();
    let refused = relocate(&session(&tree, &model), &request(), &|| false).expect_err("refused");
    assert!(refused.to_string().contains("unless it is confirmed"), "{refused}");
    assert!(refused.hints().iter().any(|hint| hint.contains("planish confirm")), "{:?}", refused.hints());
    assert_eq!(refused.exit(), Exit::Refused);
    let refused = undo(&session(&tree, &model), Target::Entry(first), false).expect_err("refused");
    assert!(refused.to_string().contains("unless it is confirmed"), "{refused}");
    assert_eq!((model.shape(), records(&tree).len()), (there, 2));
    confirm(&plain).expect("confirmed");
    let undone = undo(&session(&tree, &model), Target::Entry(first), false).expect("undone");
    assert_eq!((undone.exit, model.shape()), (Exit::Done, start));
}

#[test]
fn a_signal_leaves_an_entry_of_what_was_moved() {
    let (tree, model) = (host(), Model::new());
    let start = model.shape();
    let moved = |model: &Model| model.pages.borrow().values().filter(|node| **node == 1).count();
    let before = moved(&model);
    let stop = || moved(&model) > before;
    let stopped = relocate(&session(&tree, &model), &request(), &stop).expect("stopped");
    assert_eq!(stopped.exit, Exit::Findings);
    assert!(stopped.entry.is_some() && moved(&model) < 1100 && moved(&model) > before);
    undo(&session(&tree, &model), Target::Newest, false).expect("undone");
    assert_eq!(model.shape(), start);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let (tree, model) = (host(), Model::new());
    let files = tree.snapshot();
    let nodes = |list: &str| Some(list.parse().expect("a list"));
    let refused = |request: MoveRequest, word: &str| {
        let error = relocate(&session(&tree, &model), &request, &|| false).expect_err(word);
        assert!(error.to_string().contains(word), "{error}");
        assert!(!error.hints().is_empty());
        error.exit()
    };
    assert_eq!(refused(MoveRequest { to: nodes("2"), ..request() }, "node 2 has no memory"), Exit::Refused);
    assert_eq!(
        refused(MoveRequest { cpus: Some(cpus("1-2")), ..request() }, "CPU 2 is not online"),
        Exit::Refused
    );
    assert_eq!(refused(MoveRequest { who: vec![Who::Pid(5)], ..request() }, "no process 5"), Exit::Usage);
    tree.put("/sys/devices/system/node/has_memory", "0\n");
    assert_eq!(refused(MoveRequest { to: nodes("0"), ..request() }, "nowhere to move"), Exit::Refused);
    tree.put("/sys/devices/system/node/has_memory", "0-1\n");
    tree.put("/proc/77/status", "Name:\tdb\nUid:\t0\t0\t0\t0\nMems_allowed_list:\t0\n");
    assert_eq!(refused(request(), "cpuset of process 77 has node 0"), Exit::Refused);
    tree.put("/proc/77/status", "Name:\tdb\nUid:\t0\t0\t0\t0\nMems_allowed_list:\t0-1\n");
    model.spare.set(1 << 20);
    assert_eq!(refused(request(), "node 1 has 1 MiB free"), Exit::Refused);
    let strange = Session::open(tree.options()).expect("a host");
    let error = relocate(&strange, &request(), &|| false).expect_err("recorded");
    assert!(matches!(error, PipelineError::Relocate { .. }), "{error}");
    let changed = differences(&files, &tree.snapshot());
    assert!(changed.iter().all(|path| path.contains("/var/") || path.contains("/proc/77/")), "{changed:?}");
    assert!(tree.entries().is_empty() && records(&tree).is_empty());
}
