//! Kills at every operation: a fuse between the pipeline and its disk, and between it and its host. The same fuse can
//! have the host refuse one write instead.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use planish_act::program::{Mark, ProgramRefusal, Programs, Side};
use planish_act::relocate::Processes;
use planish_act::{Operation, Sink, SinkError};
use planish_host::Host;
use planish_journal::Storage;
use planish_model::{Generator, Holder};
use planish_pipeline::{Seams, Session, SessionOptions};
use rustix::io::Errno;

use crate::hosts::is_whole;
use crate::relocate::{Model, View};

/// At which side of an operation the kill comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before it.
    Before,
    /// In its middle: half of the bytes of an append are in the file, half of a new file lies beside the one that it is
    /// to replace, and of GRUB's environment block one sector is written. Any other operation has no half.
    Torn,
    /// After it.
    After,
}

pub const MOMENTS: [Moment; 3] = [Moment::Before, Moment::Torn, Moment::After];

/// What an operation does, as far as kills of it may leave something else behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A line of the journal.
    Line,
    /// What of the journal is brought to the disk, cut or archived.
    Journal,
    /// A value of the kernel.
    Value,
    /// The pages of a pool.
    Pool,
    /// A file of ours that a boot reads.
    File,
    /// A file of systemd.
    Unit,
    /// A file of a boot loader, or what its menu is made from.
    Boot,
    /// Anything else: a folder, a call of a trial.
    Other,
}

impl Kind {
    fn of_value(place: &str) -> Self {
        if place.ends_with("/nr_hugepages") { Self::Pool } else { Self::Value }
    }

    fn of_file(path: &str) -> Self {
        let is_boot =
            ["/boot/", "/efi/", "/etc/default/", "/etc/kernel/"].iter().any(|at| path.starts_with(at));
        match path.starts_with("/etc/systemd/") {
            true => Self::Unit,
            false if is_boot => Self::Boot,
            false => Self::File,
        }
    }
}

/// Counts operations and kills at one of them.
#[derive(Debug)]
pub struct Fuse {
    left: Cell<Option<usize>>,
    moment: Moment,
    operations: Cell<usize>,
    /// Which write to the host is refused, and with what error.
    refusal: Option<(usize, Errno)>,
    /// What was to be written on the host, in order.
    places: RefCell<Vec<String>>,
    /// What each operation was.
    kinds: RefCell<Vec<Kind>>,
    /// Whether each of them has a half.
    has_half: RefCell<Vec<bool>>,
    /// Operations before the moment that a test asked for.
    mark: Cell<Option<usize>>,
}

/// As many kills are all tried, each time.
const MANY: usize = 100;
/// Of more than that one of so many: by three a moment of an operation is met at one that is like it.
pub const FEWER: usize = 3;

/// The half of an operation that has none.
pub const WHOLE: Option<fn()> = None;

/// What a kill unwinds with. Nothing catches it but [`until_killed`]: no code of the pipeline runs after it.
struct Killed;

impl Fuse {
    pub fn at(operation: usize, moment: Moment) -> Rc<Self> {
        Rc::new(Self { left: Cell::new(Some(operation)), ..Self::whole(moment) })
    }

    /// One that has the host refuse a write, counted from 0, once.
    pub fn refusing(write: usize, errno: Errno) -> Rc<Self> {
        Rc::new(Self { refusal: Some((write, errno)), ..Self::whole(Moment::After) })
    }

    /// One that never blows, and counts.
    pub fn counting() -> Rc<Self> {
        Rc::new(Self::whole(Moment::After))
    }

    fn whole(moment: Moment) -> Self {
        Self {
            left: Cell::new(None),
            moment,
            operations: Cell::default(),
            refusal: None,
            places: RefCell::default(),
            kinds: RefCell::default(),
            has_half: RefCell::default(),
            mark: Cell::default(),
        }
    }

    /// What was to be written on the host so far, in order.
    pub fn places(&self) -> Vec<String> {
        self.places.borrow().clone()
    }

    /// Counts a write to the host, and says whether this is the one to refuse.
    fn refuses(&self, operation: Operation, place: &str) -> Result<(), SinkError> {
        let mut places = self.places.borrow_mut();
        places.push(place.to_owned());
        let refused = self.refusal.filter(|(write, _)| *write + 1 == places.len());
        refused.map_or(Ok(()), |(_, errno)| Err(SinkError::new(operation, place, errno.into())))
    }

    pub fn operations(&self) -> usize {
        self.operations.get()
    }

    /// Remembers how many operations there were by now, the first time.
    pub fn mark(&self) {
        self.mark.set(self.mark.get().or(Some(self.operations.get())));
    }

    /// What was remembered.
    pub fn marked(&self) -> Option<usize> {
        self.mark.get()
    }

    /// The kills of the operations so far that leave something else each: before one there is what the one before it
    /// left, and in its middle, where it has none, too. Of many, those of the first operation of each kind and one of
    /// [`FEWER`] besides, unless nothing is to be left out.
    pub fn kills(&self) -> Vec<(usize, Moment)> {
        let all = self.all_kills();
        if is_whole() || all.len() <= MANY {
            return all;
        }
        let kinds = self.kinds.borrow();
        let is_first = |at: usize| !kinds[..at].contains(&kinds[at]);
        let kept = all.into_iter().enumerate().filter(|(index, (at, _))| index % FEWER == 0 || is_first(*at));
        kept.map(|(_, kill)| kill).collect()
    }

    fn all_kills(&self) -> Vec<(usize, Moment)> {
        let halves = self.has_half.borrow();
        let first = halves.first().map(|_| (0, Moment::Before));
        let others = halves.iter().enumerate().flat_map(|(at, has_half)| {
            has_half.then_some((at, Moment::Torn)).into_iter().chain([(at, Moment::After)])
        });
        first.into_iter().chain(others).collect()
    }

    /// What each operation was so far, in order.
    pub fn kinds(&self) -> Vec<Kind> {
        self.kinds.borrow().clone()
    }

    /// Runs an operation, or as much of it as comes before the kill: nothing, where it has no half.
    pub fn pass<T>(&self, whole: impl FnOnce() -> T, half: Option<impl FnOnce()>) -> T {
        self.pass_as(Kind::Other, whole, half)
    }

    /// The same of an operation of a kind.
    fn pass_as<T>(&self, kind: Kind, whole: impl FnOnce() -> T, half: Option<impl FnOnce()>) -> T {
        self.kinds.borrow_mut().push(kind);
        self.has_half.borrow_mut().push(half.is_some());
        self.operations.set(self.operations.get() + 1);
        let left = self.left.get();
        self.left.set(left.and_then(|left| left.checked_sub(1)));
        if left != Some(0) {
            return whole();
        }
        match self.moment {
            Moment::Before => {}
            Moment::Torn => half.into_iter().for_each(|half| half()),
            Moment::After => drop(whole()),
        }
        resume_unwind(Box::new(Killed))
    }
}

/// Runs until it ends (`Some`) or is killed (`None`).
pub fn until_killed<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|cause: Box<dyn Any + Send>| {
            if !cause.is::<Killed>() {
                resume_unwind(cause);
            }
        })
        .ok()
}

/// A session whose every operation passes a fuse.
pub fn fused(options: SessionOptions, fuse: &Rc<Fuse>) -> Session {
    losing(options, fuse, &Rc::default())
}

/// The same on a disk that keeps only what was synced.
pub fn losing(options: SessionOptions, fuse: &Rc<Fuse>, synced: &Rc<Synced>) -> Session {
    let root = options.root.clone().expect("a host that may be harmed");
    let seams = FusedSeams { fuse: Rc::clone(fuse), synced: Rc::clone(synced), root, model: None };
    Session::with_seams(options, Box::new(seams)).expect("a host")
}

/// The same on a host where a process runs, whose every move passes the fuse.
pub fn moving(options: SessionOptions, fuse: &Rc<Fuse>, model: &Rc<Model>) -> Session {
    let root = options.root.clone().expect("a host that may be harmed");
    let model = Some(Rc::clone(model));
    let seams = FusedSeams { fuse: Rc::clone(fuse), synced: Rc::default(), root, model };
    Session::with_seams(options, Box::new(seams)).expect("a host")
}

/// How much of a journal survives a power cut.
#[derive(Debug, Default)]
pub struct Synced(Cell<u64>);

impl Synced {
    pub fn bytes(&self) -> u64 {
        self.0.get()
    }
}

struct FusedSeams {
    fuse: Rc<Fuse>,
    synced: Rc<Synced>,
    root: PathBuf,
    model: Option<Rc<Model>>,
}

impl Seams for FusedSeams {
    fn storage(&self, inner: Box<dyn Storage>) -> Box<dyn Storage> {
        Box::new(FusedStorage { inner, fuse: Rc::clone(&self.fuse), synced: Rc::clone(&self.synced) })
    }

    fn sink<'a>(&'a self, inner: Box<dyn Sink + 'a>) -> Box<dyn Sink + 'a> {
        Box::new(FusedSink { inner, fuse: &self.fuse, root: &self.root, model: self.model.as_deref() })
    }
}

struct FusedStorage {
    inner: Box<dyn Storage>,
    fuse: Rc<Fuse>,
    synced: Rc<Synced>,
}

impl Storage for FusedStorage {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn read(&self) -> io::Result<Vec<u8>> {
        self.inner.read()
    }
    fn cut(&self, length: u64) -> io::Result<()> {
        // Half way the tail is kept beside the journal, and still in it.
        let half = || {
            let bytes = self.inner.read().expect("readable");
            let beside = self.inner.path().with_file_name(format!("journal.torn-{length}"));
            put(&beside, &bytes[usize::try_from(length).expect("short")..]);
        };
        self.fuse.pass_as(Kind::Journal, || self.inner.cut(length), Some(half))
    }
    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.fuse.pass_as(Kind::Journal, || self.inner.reserve(bytes), WHOLE)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let half = || self.inner.append(&bytes[..bytes.len() / 2]).expect("room");
        self.fuse.pass_as(Kind::Line, || self.inner.append(bytes), Some(half))
    }
    fn sync(&self) -> io::Result<()> {
        let whole = || {
            self.inner.sync()?;
            self.synced.0.set(self.inner.read()?.len() as u64);
            Ok(())
        };
        self.fuse.pass_as(Kind::Journal, whole, WHOLE)
    }
    /// The steps that an archiving makes, each an operation of its own: the new journal beside the old one, a second
    /// name for the old one, and the change of names. The last one does all of it, over what the others left.
    fn archive(&self, name: &str, next: &[u8], reserve: u64) -> io::Result<()> {
        let (journal, beside) = (self.inner.path(), self.inner.path().with_file_name("journal.next"));
        self.fuse.pass_as(
            Kind::Journal,
            || put(&beside, next),
            Some(|| put(&beside, &next[..next.len() / 2])),
        );
        // A name that is taken stays: the archiving itself has to look whose it is.
        self.fuse.pass_as(
            Kind::Journal,
            || drop(std::fs::hard_link(journal, journal.with_file_name(name))),
            WHOLE,
        );
        self.fuse.pass_as(Kind::Journal, || self.inner.archive(name, next, reserve), WHOLE)
    }
}

#[expect(clippy::disallowed_methods, reason = "plays what a kill leaves")]
fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("ours");
}

struct FusedSink<'a> {
    inner: Box<dyn Sink + 'a>,
    fuse: &'a Fuse,
    root: &'a Path,
    model: Option<&'a Model>,
}

impl FusedSink<'_> {
    /// What lies beside a file of the host while it is being replaced.
    fn half_beside(&self, path: &str, ending: &str, content: &[u8]) {
        let (folder, name) = path.rsplit_once('/').expect("a file has a folder");
        let folder = self.root.join(folder.trim_start_matches('/'));
        if folder.is_dir() {
            put(&folder.join(format!(".{name}.{ending}")), &content[..content.len() / 2]);
        }
    }

    /// GRUB's environment block of which the first sector is new.
    fn half_of_block(&self, path: &str, content: &[u8]) {
        let old = self.inner.read_bytes(path).expect("readable").expect("it is there");
        assert_eq!(old.len(), content.len(), "GRUB cannot make it longer");
        put(&self.root.join(path.trim_start_matches('/')), &[&content[..512], &old[512..]].concat());
    }
}

impl Sink for FusedSink<'_> {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        self.inner.read(place)
    }
    fn write(&self, place: &str, value: &str) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Write, place)?;
        self.fuse.pass_as(Kind::of_value(place), || self.inner.write(place, value), WHOLE)
    }
    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        self.inner.read_bytes(path)
    }
    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        self.inner.link(path)
    }
    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Replace, path)?;
        let half = || content.into_iter().for_each(|content| self.half_beside(path, "new", content));
        self.fuse.pass_as(Kind::of_file(path), || self.inner.replace_file(path, content), Some(half))
    }
    fn remove_folder(&self, path: &str) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Replace, path)?;
        self.fuse.pass(|| self.inner.remove_folder(path), WHOLE)
    }
    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Replace, path)?;
        let half = || match path.ends_with("/grubenv") {
            true => self.half_of_block(path, content),
            false => self.half_beside(path, "planish-new", content),
        };
        self.fuse.pass_as(Kind::of_file(path), || self.inner.edit_file(path, content), Some(half))
    }
    fn sweep(&self, path: &str, is_edited: bool) -> Result<(), SinkError> {
        // No write that a kill could come between: what it removes, nobody reads.
        self.inner.sweep(path, is_edited)
    }
    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        self.inner.read_variable(path)
    }
    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Write, path)?;
        self.fuse.pass_as(Kind::Boot, || self.inner.set_variable(path, name), WHOLE)
    }
    fn generate(&self, generator: Generator) -> Result<bool, SinkError> {
        // The program writes beside the menu, and beside that.
        let half = || {
            for ending in ["planish-new", "planish-new.new"] {
                self.half_beside(generator.output(), ending, b"menuentry 'a' {");
            }
        };
        self.fuse.pass_as(Kind::Boot, || self.inner.generate(generator), Some(half))
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
    fn processes(&self) -> Option<Box<dyn Processes + '_>> {
        Some(Box::new(View { pid: 0, model: self.model?, fuse: self.fuse }))
    }
    fn programs<'a>(&'a self, host: &'a Host) -> Option<Box<dyn Programs + 'a>> {
        let inner = self.inner.programs(host)?;
        Some(Box::new(FusedPrograms { inner, fuse: self.fuse }))
    }
}

struct FusedPrograms<'a> {
    inner: Box<dyn Programs + 'a>,
    fuse: &'a Fuse,
}

impl Programs for FusedPrograms<'_> {
    fn guard(&self, path: &str, packaged: bool) -> Result<Mark, ProgramRefusal> {
        self.inner.guard(path, packaged)
    }
    fn sum(&self, path: &str, side: Side) -> Result<Option<String>, SinkError> {
        self.inner.sum(path, side)
    }
    fn mark(&self, path: &str) -> Result<Mark, SinkError> {
        self.inner.mark(path)
    }
    fn probed(&self, path: &str) -> Result<Option<u64>, SinkError> {
        self.inner.probed(path)
    }
    fn room(&self, path: &str, bytes: u64) -> Result<(), SinkError> {
        self.inner.room(path, bytes)
    }
    fn make(&self, path: &str, origin: &Mark, bytes: &[u8]) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Replace, path)?;
        let half = || put(&self.inner.real(path, Side::Beside), &bytes[..bytes.len() / 2]);
        self.fuse.pass(|| self.inner.make(path, origin, bytes), Some(half))
    }
    fn keep_rights(&self, path: &str) -> Result<bool, SinkError> {
        self.fuse.pass(|| self.inner.keep_rights(path), WHOLE)
    }
    fn exchange(&self, path: &str) -> Result<(), SinkError> {
        self.fuse.refuses(Operation::Replace, path)?;
        self.fuse.pass(|| self.inner.exchange(path), WHOLE)
    }
    fn give_name(&self, path: &str) -> Result<(), SinkError> {
        self.fuse.pass(|| self.inner.give_name(path), WHOLE)
    }
    fn remove(&self, path: &str) -> Result<(), SinkError> {
        self.fuse.pass(|| self.inner.remove(path), WHOLE)
    }
    fn real(&self, path: &str, side: Side) -> PathBuf {
        self.inner.real(path, side)
    }
}
