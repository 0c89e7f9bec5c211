//! A disk that loses, at a moment of its own choosing, what was not synced.
//!
//! Bytes that were written and not synced may be there after a crash, or not, or in part, each write for itself: a disk
//! writes in the order that it likes. Names are there in the order in which they were made, up to some point.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use planish_table::{Output, Storage};

/// A sector is written whole or not at all.
const SECTOR_BYTES: usize = 16;

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

#[derive(Debug, Clone, Default)]
struct SimFile {
    synced: Vec<u8>,
    changes: Vec<Change>,
    now: Vec<u8>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(String, usize),
    Remove(String),
}

/// What goes wrong, and when: each call that changes something is one operation, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// From this operation on nothing works; of this one half may be done.
    Crash(usize),
    /// This operation fails; a write leaves half of its bytes.
    Fail(usize, ErrorKind),
    /// The first sync of a file at or after this operation fails, and loses what it was to sync.
    FailSync(usize),
    /// There is room for so many bytes in all.
    Room(usize),
}

#[derive(Debug, Clone, Default)]
struct State {
    files: Vec<SimFile>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    name_changes: Vec<NameChange>,
    operations: usize,
    syncs: usize,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

/// Small, seeded, good enough to choose what a crash takes.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

impl State {
    /// Counts an operation; fails it when its time has come.
    fn step(&mut self) -> io::Result<()> {
        let operation = self.operations;
        self.operations += 1;
        match self.fault {
            Some(Fault::Crash(at)) if operation >= at => Err(io::Error::other("the machine has stopped")),
            Some(Fault::Fail(at, kind)) if operation == at => Err(kind.into()),
            _ => Ok(()),
        }
    }

    fn room(&self) -> usize {
        match self.fault {
            Some(Fault::Room(bytes)) => bytes.saturating_sub(self.used_bytes()),
            _ => usize::MAX,
        }
    }

    fn used_bytes(&self) -> usize {
        self.names.values().map(|&file| self.files[file].now.len()).sum()
    }
}

impl SimFile {
    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.changes.push(change);
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, written) => {
            let end = offset + written.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(written);
        }
        Change::Cut(length) => bytes.resize(*length, 0),
    }
}

impl SimDisk {
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    pub fn operations(&self) -> usize {
        self.lock().operations
    }

    /// Bytes of all files.
    pub fn used_bytes(&self) -> usize {
        self.lock().used_bytes()
    }

    pub fn syncs(&self) -> usize {
        self.lock().syncs
    }

    /// The bytes of a file, to be changed behind the table's back.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let file = state.names[name];
        let file = &mut state.files[file];
        change(&mut file.now);
        (file.synced, file.changes) = (file.now.clone(), Vec::new());
    }

    /// The disk as it is after a loss of power; `seed` chooses among all that may be.
    pub fn after_crash(&self, seed: u64) -> Self {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let before = self.lock().clone();
        let mut state = State { files: before.files, names: before.synced_names, ..State::default() };
        for change in before.name_changes.iter().take(rng.below(before.name_changes.len() + 1)) {
            match change {
                NameChange::Set(name, file) => drop(state.names.insert(name.clone(), *file)),
                NameChange::Remove(name) => drop(state.names.remove(name)),
            }
        }
        for file in &mut state.files {
            for change in std::mem::take(&mut file.changes) {
                match (rng.below(3), change) {
                    (0, _) => {}
                    (1, Change::Write(offset, bytes)) => {
                        for (sector, bytes) in bytes.chunks(SECTOR_BYTES).enumerate() {
                            if rng.below(2) == 0 {
                                apply(
                                    &mut file.synced,
                                    &Change::Write(offset + sector * SECTOR_BYTES, bytes.to_vec()),
                                );
                            }
                        }
                    }
                    (_, change) => apply(&mut file.synced, &change),
                }
            }
            file.now = file.synced.clone();
        }
        state.synced_names = state.names.clone();
        Self(Arc::new(Mutex::new(state)))
    }

    /// The disk as it is after a kill of the process: nothing is lost.
    pub fn after_kill(&self) -> Self {
        let mut state = self.lock().clone();
        (state.fault, state.operations) = (None, 0);
        Self(Arc::new(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl Storage for SimDisk {
    fn path(&self) -> &Path {
        Path::new("/simulated")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let state = self.lock();
        let file = *state.names.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(state.files[file].now.clone())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Output>> {
        let mut state = self.lock();
        state.step()?;
        let file = match state.names.get(name) {
            Some(&file) => {
                state.files[file].change(Change::Cut(0));
                file
            }
            None => {
                state.files.push(SimFile::default());
                let file = state.files.len() - 1;
                state.names.insert(name.to_owned(), file);
                state.name_changes.push(NameChange::Set(name.to_owned(), file));
                file
            }
        };
        Ok(Box::new(SimOutput { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Output>> {
        let file = *self.lock().names.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(Box::new(SimOutput { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let file = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        // One change: never neither name. It is replayed as two, the new name first.
        state.name_changes.push(NameChange::Set(to.to_owned(), file));
        state.name_changes.push(NameChange::Remove(from.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        state.names.remove(name).ok_or(ErrorKind::NotFound)?;
        state.name_changes.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        state.synced_names = state.names.clone();
        state.name_changes.clear();
        Ok(())
    }
}

#[derive(Debug)]
struct SimOutput {
    disk: SimDisk,
    file: usize,
}

impl Output for SimOutput {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        let half = || Change::Write(offset as usize, bytes[..bytes.len() / 2].to_vec());
        if let Err(error) = state.step() {
            let is_last = state.fault.is_none_or(|fault| fault == Fault::Crash(state.operations - 1));
            if is_last || matches!(state.fault, Some(Fault::Fail(..))) {
                state.files[self.file].change(half());
            }
            return Err(error);
        }
        let end = offset as usize + bytes.len();
        if end.saturating_sub(state.files[self.file].now.len()) > state.room() {
            let room = state.room().min(bytes.len());
            state.files[self.file].change(Change::Write(offset as usize, bytes[..room].to_vec()));
            return Err(ErrorKind::StorageFull.into());
        }
        state.files[self.file].change(Change::Write(offset as usize, bytes.to_vec()));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.step()?;
        state.syncs += 1;
        if matches!(state.fault, Some(Fault::FailSync(at)) if state.operations > at) {
            // As Linux does it: the pages are clean again, what they held never reaches the disk, the next sync
            // succeeds.
            state.fault = None;
            state.files[self.file].changes.clear();
            return Err(io::Error::from_raw_os_error(5));
        }
        let file = &mut state.files[self.file];
        let changes = std::mem::take(&mut file.changes);
        changes.iter().for_each(|change| apply(&mut file.synced, change));
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.step()?;
        state.files[self.file].change(Change::Cut(length as usize));
        Ok(())
    }
}
