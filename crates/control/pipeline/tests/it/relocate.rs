//! A process that is moved: killed at every operation, undone, forced; its record damaged, or needed for longer.
#![expect(clippy::disallowed_methods, reason = "lists records, and damages them")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use planish_act::relocate::{Identity, Mapped, Process, Processes, RelocateError, Room, Thread};
use planish_model::{Closure, EntryId, EntryState, Exit, OutcomeKind};
use planish_pipeline::{MoveRequest, PipelineError, Session, Target, relocate, undo};
use planish_residency::{Kind, Who, parse_maps};
use planish_sys::CpuSet;
use planish_sys::pagemap::{Filled, Run};
use planish_sys::policy::PageAt;

use crate::faults::{Fuse, MOMENTS, Moment, moving, until_killed};
use crate::tree::{Tree, differences};

const BASE: u64 = 4096;
const START: u64 = 0x1000_0000;
const PID: u32 = 77;

/// A process that is a model.
pub struct Model {
    pages: RefCell<BTreeMap<u64, u32>>,
    hidden: Cell<bool>,
    cpus: RefCell<CpuSet>,
    start_ticks: Cell<u64>,
    spare: Cell<u64>,
}

/// The same behind a fuse.
pub struct View<'a> {
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
        Ok((pid == PID).then(|| Box::new(View { model: self.model, fuse: self.fuse }) as Box<dyn Process>))
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
    fn identity(&self) -> Option<Identity> {
        Some(Identity { pid: PID, start_ticks: self.model.start_ticks.get(), layout: (1, 2), mark: Some(3) })
    }
    fn mapped(&self) -> Result<Vec<Mapped>, RelocateError> {
        let areas = parse_maps("10000000-20000000 rw-p 00000000 00:00 0 [heap]\n").expect("sound");
        let policy = Some("default".to_owned());
        let mapped = |area| Mapped { area, policy: policy.clone(), is_locked: false, is_pool: false };
        Ok(areas.into_iter().map(mapped).collect())
    }
    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, RelocateError> {
        let pages = self.model.pages.borrow();
        let run = |address: &u64| Run { range: *address..address + BASE, filled: Filled::Base };
        Ok(pages.range(range).map(|(address, _)| run(address)).collect())
    }
    fn pages_at(&self, addresses: &[u64]) -> Result<Vec<PageAt>, RelocateError> {
        let pages = self.model.pages.borrow();
        let at = |address: &u64| match pages.get(address) {
            Some(_) if self.model.hidden.get() && address.is_multiple_of(2 * BASE) => PageAt::Absent,
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
        self.fuse.pass(|| go(addresses.len()), || go(addresses.len() / 2));
        self.pages_at(addresses)
    }
    fn threads(&self) -> Result<Vec<Thread>, RelocateError> {
        Ok(vec![Thread { tid: PID, start_ticks: 9, cpus: self.model.cpus.borrow().clone() }])
    }
    fn pin(&self, _: u32, cpus: &CpuSet) -> Result<(), RelocateError> {
        self.fuse.pass(|| drop(self.model.cpus.replace(cpus.clone())), || ());
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
    let count = {
        let (tree, model, fuse) = (host(), Model::new(), Fuse::counting());
        relocate(&moving(tree.options(), &fuse, &model), &request(), &|| false).expect("moved");
        fuse.operations()
    };
    assert!(count > 10, "{count} operations");
    for operation in 0..count {
        for moment in MOMENTS {
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
    assert_eq!(forced.exit, Exit::Done);
    assert!(!tree.entries()[0].is_open() && records(&tree).is_empty());
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
