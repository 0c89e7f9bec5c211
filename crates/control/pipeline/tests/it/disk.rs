//! A journal that cannot be written: at first, and at any moment after that.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use planish_act::{Sink, SinkError};
use planish_journal::Storage;
use planish_model::{Exit, Generator, Holder, Want};
use planish_pipeline::{Applied, ApplyOptions, PipelineError, Seams, Session, Target, apply, undo};

use crate::tree::*;

/// A disk that is full from an operation on. Nothing of a write that fails is left, as [`Storage`] promises.
struct FullFrom {
    operation: Rc<Cell<usize>>,
}

struct FullDisk {
    inner: Box<dyn Storage>,
    left: Rc<Cell<usize>>,
}

impl FullDisk {
    fn room(&self) -> io::Result<()> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if left == 0 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

impl Storage for FullDisk {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn read(&self) -> io::Result<Vec<u8>> {
        self.inner.read()
    }
    fn cut(&self, length: u64) -> io::Result<()> {
        self.inner.cut(length)
    }
    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.room().and_then(|()| self.inner.reserve(bytes))
    }
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.room().and_then(|()| self.inner.append(bytes))
    }
    fn sync(&self) -> io::Result<()> {
        self.room().and_then(|()| self.inner.sync())
    }
}

impl Seams for FullFrom {
    fn storage(&self, inner: Box<dyn Storage>) -> Box<dyn Storage> {
        Box::new(FullDisk { inner, left: Rc::clone(&self.operation) })
    }
}

/// A session whose disk is full after so many operations.
fn full_after(tree: &Tree, operations: usize) -> Session {
    let seams = FullFrom { operation: Rc::new(Cell::new(operations)) };
    Session::with_seams(tree.options(), Box::new(seams)).expect("a host")
}

fn try_apply(session: &Session) -> Result<Applied, PipelineError> {
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    apply(session, &plan_of(session, &everything()), &options)
}

#[test]
fn a_full_disk_refuses_before_the_first_write() {
    // Room, intent, sync: whichever fails.
    for operations in 0..3 {
        let tree = Tree::new();
        let start = tree.snapshot();
        let error = try_apply(&full_after(&tree, operations)).expect_err("full");
        assert_eq!(error.exit(), Exit::Refused, "{error}");
        assert!(error.hints()[0].contains("give it room"), "{:?}", error.hints());
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        undo(&tree.session(), Target::All, false).expect("nothing to undo");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

#[test]
fn a_disk_that_fills_up_half_way_puts_the_host_back() {
    for operations in 3..60 {
        let tree = Tree::new();
        let start = tree.snapshot();
        let error = match try_apply(&full_after(&tree, operations)) {
            Ok(applied) => {
                assert_eq!(applied.exit, Exit::Done);
                assert!(operations > 15, "there was room for everything");
                break;
            }
            Err(error) => error,
        };
        let left = differences(&start, &tree.snapshot());
        match error.exit() {
            Exit::FailedRestored => assert_eq!(left, [""; 0], "full after {operations}: {error}"),
            Exit::FailedNotRestored => {
                // A pool is not written without a record of it, also not to give it back.
                assert!(left.iter().all(|place| place.contains("/hugepages-")), "{left:?}");
            }
            exit => panic!("full after {operations}: {error} {exit:?}"),
        }
        // With room again, nothing stays.
        undo(&tree.session(), Target::All, false).expect("undone");
        for entry in tree.entries().iter().rev() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "full after {operations}");
    }
}

/// A full disk, and someone who sets a place of ours as soon as something else is written.
struct FullAndBusy {
    disk: FullFrom,
}

struct Busy<'a> {
    inner: Box<dyn Sink + 'a>,
}

impl Seams for FullAndBusy {
    fn storage(&self, inner: Box<dyn Storage>) -> Box<dyn Storage> {
        self.disk.storage(inner)
    }
    fn sink<'a>(&'a self, inner: Box<dyn Sink + 'a>) -> Box<dyn Sink + 'a> {
        Box::new(Busy { inner })
    }
}

impl Sink for Busy<'_> {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        self.inner.read(place)
    }
    fn write(&self, place: &str, value: &str) -> Result<(), SinkError> {
        self.inner.write(place, value)?;
        if place != SWAPPINESS && self.inner.read(SWAPPINESS)?.trim() == "10" {
            self.inner.write(SWAPPINESS, "33")?;
        }
        Ok(())
    }
    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        self.inner.read_bytes(path)
    }
    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        self.inner.link(path)
    }
    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
        self.inner.replace_file(path, content)
    }
    fn remove_folder(&self, path: &str) -> Result<(), SinkError> {
        self.inner.remove_folder(path)
    }
    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError> {
        self.inner.edit_file(path, content)
    }
    fn sweep(&self, path: &str, is_edited: bool) -> Result<(), SinkError> {
        self.inner.sweep(path, is_edited)
    }
    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        self.inner.read_variable(path)
    }
    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError> {
        self.inner.set_variable(path, name)
    }
    fn generate(&self, generator: Generator) -> Result<bool, SinkError> {
        self.inner.generate(generator)
    }
    fn pause(&self, time: Duration) {
        self.inner.pause(time);
    }
    fn page_bytes(&self) -> u64 {
        self.inner.page_bytes()
    }
    fn holders(&self, page_bytes: u64) -> Vec<Holder> {
        self.inner.holders(page_bytes)
    }
}

#[test]
fn a_host_that_keeps_the_value_of_another_is_not_called_put_back() {
    let mut kept = 0;
    for operations in 3..30 {
        let tree = Tree::new();
        let disk = FullFrom { operation: Rc::new(Cell::new(operations)) };
        let seams = Box::new(FullAndBusy { disk });
        let session = Session::with_seams(tree.options(), seams).expect("a host");
        let Err(error) = try_apply(&session) else { break };
        if tree.get(SWAPPINESS) == "33\n" {
            kept += 1;
            assert_eq!(error.exit(), Exit::FailedNotRestored, "full after {operations}: {error}");
        }
    }
    assert!(kept > 2, "{kept}");
    let tree = Tree::new();
    try_apply(&tree.session()).expect("applied");
    tree.edit(SWAPPINESS, "33");
    let error = undo(&full_after(&tree, 60), Target::All, false).map(|undone| undone.exit);
    assert_eq!(error.expect("room for all"), Exit::Findings);
    let tree = Tree::new();
    let values = plan_of(&tree.session(), &profile("one", &[("vm.swappiness", Want::Int(10))]));
    apply(&tree.session(), &values, &ApplyOptions::default()).expect("applied");
    tree.edit(SWAPPINESS, "33");
    let error = undo(&full_after(&tree, 0), Target::All, false).expect_err("full");
    assert_eq!((error.exit(), tree.get(SWAPPINESS).as_str()), (Exit::FailedNotRestored, "33\n"));
}

#[test]
fn an_undo_on_a_full_disk_gives_back_what_it_can() {
    for operations in 0..20 {
        let tree = Tree::new();
        let start = tree.snapshot();
        try_apply(&tree.session()).expect("applied");
        let undone = undo(&full_after(&tree, operations), Target::All, false);
        assert_ne!(undone.map_or_else(|error| error.exit(), |undone| undone.exit), Exit::Bug);
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "full after {operations}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

#[test]
fn a_state_folder_that_cannot_be_made_refuses_before_the_first_write() {
    let tree = Tree::new();
    tree.put("/blocked", "a file, not a folder");
    let start = tree.snapshot();
    let plan = plan_of(&tree.session(), &everything());
    let options =
        planish_pipeline::SessionOptions { state: Some(tree.root().join("blocked/state")), ..tree.options() };
    let session = Session::open(options).expect("a host");
    let error = apply(&session, &plan, &ApplyOptions::default()).expect_err("no state");
    assert_eq!(error.exit(), Exit::Refused);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}
