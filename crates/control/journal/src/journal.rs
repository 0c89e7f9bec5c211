//! Reading and writing the journal.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use planish_model::{Closure, Entry, EntryId, EntryStep, Outcome, PoolWrite, Undo};

use crate::line::{Line, encode, scan};
use crate::records::{self, RecordFault};
use crate::salvage::{Salvage, salvage};
use crate::storage::torn_paths;
use crate::{Event, FileStorage, Handed, HostLock, Intent, JournalError, Ledger, Storage};

/// Room reserved with an intent for each step: outcomes of apply and undo, with holders and reasons.
const RESERVED_STEP_BYTES: u64 = 4096;
/// Room reserved with an intent for the rest: the ends of apply and undo.
const RESERVED_ENTRY_BYTES: u64 = 16 * 1024;

/// A journal that is longer than this is archived by the next writer, and continued with its open entries.
/// Every command reads the journal: this much takes a few milliseconds.
const ARCHIVE_BYTES: u64 = 256 * 1024;

/// Who writes the lines of this process, and when.
#[derive(Clone, Debug)]
pub struct Author {
    /// The boot of the host.
    pub boot_id: String,
    /// User name and, under sudo, who called it.
    pub who: String,
    /// The host, where it has an id that lasts longer than a boot.
    pub host: Option<String>,
    /// A fixed time in seconds since 1970, for tests; the clock of the machine otherwise.
    pub clock: Option<u64>,
}

/// The journal of a host, open for writing. Owning it means owning the host-wide lock.
pub struct Journal {
    storage: Box<dyn Storage>,
    ledger: Ledger,
    author: Author,
    /// What could not be read of a damaged journal that this one goes on for, by line; the first line says so.
    lost: Vec<String>,
    /// Nothing reaches the file: see [`Self::open_unrecorded`].
    unrecorded: bool,
    _lock: HostLock,
}

/// What a journal that was damaged goes on with.
struct Salvaged {
    /// The name under which the damaged file is kept.
    name: String,
    ledger: Ledger,
    /// The new file, and the room that it needs.
    bytes: Vec<u8>,
    room: u64,
    /// What could not be read, by line.
    lost: Vec<String>,
}

/// Reads a journal without the lock. A line that is being written looks like a torn tail, and is left out.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn read(storage: &dyn Storage) -> Result<Ledger, JournalError> {
    let path = storage.path();
    let bytes = storage.read().map_err(|source| failed(storage, "read", source))?;
    let scan = scan(path, &bytes)?;
    let mut ledger = Ledger { torn: scan.torn, bytes: bytes.len() as u64, ..Ledger::default() };
    for (index, line) in scan.lines.into_iter().enumerate() {
        ledger.take(line).map_err(|why| JournalError::Damaged {
            path: path.to_owned(),
            line: index + 1,
            why,
        })?;
    }
    Ok(ledger)
}

/// The entries of a journal that is damaged, as far as its sound lines tell. Without the lock, and for looking only.
///
/// # Errors
/// The file cannot be read, or was written by a newer planish.
pub fn sound_entries(storage: &dyn Storage) -> Result<Vec<Entry>, JournalError> {
    Ok(sound_lines(storage, &[])?.1.entries)
}

/// The bytes of a damaged journal, and what its sound lines say.
fn sound_lines(storage: &dyn Storage, known: &[Entry]) -> Result<(Vec<u8>, Salvage), JournalError> {
    let bytes = storage.read().map_err(|source| failed(storage, "read", source))?;
    match salvage(&bytes, known) {
        Ok(found) => Ok((bytes, found)),
        Err((line, why)) => Err(JournalError::Newer { path: storage.path().to_owned(), line, why }),
    }
}

/// All entries of a folder, archived ones too, oldest first.
///
/// # Errors
/// A file cannot be read, or is damaged.
pub fn history(folder: &Path) -> Result<Vec<Entry>, JournalError> {
    let unreadable = |(path, source)| JournalError::Storage { what: "read", path, source };
    let mut entries = BTreeMap::new();
    let archives = FileStorage::archives(folder).map_err(unreadable)?;
    for storage in archives.into_iter().chain([FileStorage::look(folder).map_err(unreadable)?]) {
        // An entry that was carried over is told again, as it is by then.
        entries.extend(read(&storage)?.entries.into_iter().map(|entry| (entry.id, entry)));
    }
    Ok(entries.into_values().collect())
}

impl Journal {
    /// Opens a journal for writing and cuts off a torn tail, which [`Self::torn_note`] goes on to tell.
    ///
    /// # Errors
    /// The file cannot be read or cut, or is damaged.
    pub fn open(storage: Box<dyn Storage>, lock: HostLock, author: Author) -> Result<Self, JournalError> {
        let ledger = read(&*storage)?;
        if let Some(torn) = ledger.torn {
            storage.cut(torn.at_byte).map_err(|source| failed(&*storage, "cut", source))?;
        }
        let mut journal = Self::new(storage, ledger, author, lock);
        journal.archive();
        Ok(journal)
    }

    fn new(storage: Box<dyn Storage>, ledger: Ledger, author: Author, lock: HostLock) -> Self {
        Self { storage, ledger, author, lost: Vec::new(), unrecorded: false, _lock: lock }
    }

    /// Opens a journal that can be read and not written: above all on a disk that was remounted read-only after an
    /// error.
    /// What is recorded is known to this process only. That is enough to take values back, whose owner is found out by
    /// comparing texts; pools cannot be recorded, and so are not written. An error of the disk that makes it read-only
    /// often harms the file as well: then this goes on with what can still be read, as [`Self::open_or_salvage`] does.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open_unrecorded(
        storage: Box<dyn Storage>,
        lock: HostLock,
        author: Author,
        known: &[Entry],
    ) -> Result<Self, JournalError> {
        let journal = match read(&*storage) {
            Err(JournalError::Damaged { .. }) => {
                let (journal, next) = Self::salvaged(storage, lock, author, known)?;
                let lost = "the journal is damaged".to_owned();
                Self { ledger: next.ledger, ..journal }.having_lost(lost, next.lost)
            }
            ledger => Self::new(storage, ledger?, author, lock),
        };
        Ok(Self { unrecorded: true, ..journal })
    }

    /// Whether nothing reaches the file.
    #[must_use]
    pub fn is_unrecorded(&self) -> bool {
        self.unrecorded
    }

    /// Archives a journal that has become long, unless its open entries make most of it. A journal that cannot
    /// be archived goes on as it is.
    fn archive(&mut self) {
        if self.ledger.bytes < ARCHIVE_BYTES {
            return;
        }
        let last = EntryId(self.ledger.next_id().0 - 1);
        let name = format!("journal-{:06}.jsonl", last.0);
        let (next, bytes, room) =
            self.continued(name.clone(), last, self.ledger.needed(&self.author.boot_id));
        if next.bytes < self.ledger.bytes / 4 && self.storage.archive(&name, &bytes, room).is_ok() {
            self.ledger = next;
        }
    }

    /// A journal that goes on with these entries after one that is kept as `name`: what it says, its bytes, and the
    /// room for what is still to be said of them.
    fn continued(&self, name: String, last: EntryId, entries: Vec<Entry>) -> (Ledger, Vec<u8>, u64) {
        let first = Event::Continued { archive: name, last };
        let carried = entries.into_iter().map(|entry| Event::Carried { whole: Box::new(entry) });
        let mut next = Ledger { torn: self.ledger.torn, ..Ledger::default() };
        let mut bytes = Vec::new();
        for (seq, event) in (1..).zip(std::iter::once(first).chain(carried)) {
            let line = Line { seq, ..self.line(event) };
            bytes.extend(encode(&line));
            next.take(line).expect("entries are carried in their order");
        }
        next.bytes = bytes.len() as u64;
        let room = next.entries.iter().map(|entry| room_for(entry.steps.len())).sum();
        (next, bytes, room)
    }

    /// Opens a journal for writing also where it is damaged: it goes on with what can still be read, and the damaged
    /// file is kept beside it, whole. [`Self::lost`] tells what could not be read. An entry that is `known` to whoever
    /// opens it stands for the one of that number whose intent is lost, also where the whole journal is: somebody
    /// deleted it, or put another one in its place.
    ///
    /// # Errors
    /// As [`Self::open`], and a folder in which the damaged file cannot be kept: then nothing was changed.
    pub fn open_or_salvage(
        storage: Box<dyn Storage>,
        lock: HostLock,
        author: Author,
        known: &[Entry],
    ) -> Result<Self, JournalError> {
        let lacks = |ledger: &Ledger, id| !ledger.is_archived(id) && ledger.entry(id).is_none();
        let missing = match read(&*storage) {
            Err(JournalError::Damaged { .. }) => None,
            Ok(ledger) => match known.iter().find(|entry| lacks(&ledger, entry.id)) {
                Some(entry) => Some(entry.id),
                None => return Self::open(storage, lock, author),
            },
            Err(_) => return Self::open(storage, lock, author),
        };
        let (journal, Salvaged { name, ledger, bytes, room, lost }) =
            Self::salvaged(storage, lock, author, known)?;
        let kept = journal.storage.archive(&name, &bytes, room);
        kept.map_err(|source| journal.failed("keep aside", source))?;
        let where_kept = match missing {
            None => format!("the journal was damaged: what could not be read is kept in {name}"),
            Some(id) => format!(
                "the journal knew nothing of entry {id} any more: it was deleted, or another one put in its place; it \
                 goes on with what was known of that entry, and what was there is kept in {name}"
            ),
        };
        Ok(Self { ledger, ..journal }.having_lost(where_kept, lost))
    }

    /// A journal that says nothing yet, and what it can go on with.
    fn salvaged(
        storage: Box<dyn Storage>,
        lock: HostLock,
        author: Author,
        known: &[Entry],
    ) -> Result<(Self, Salvaged), JournalError> {
        let (bytes, found) = sound_lines(&*storage, known)?;
        let journal = Self::new(storage, Ledger::default(), author, lock);
        // By its content: a kill between the two names leaves it to be kept once more under the same one.
        let name = format!("journal-damaged-{:08x}.jsonl", crc32fast::hash(&bytes));
        let (ledger, bytes, room) = journal.continued(name.clone(), found.last, found.entries);
        Ok((journal, Salvaged { name, ledger, bytes, room, lost: found.lost }))
    }

    fn having_lost(mut self, what: String, lines: Vec<String>) -> Self {
        self.lost = vec![what];
        self.lost.extend(lines);
        self
    }

    /// What a damaged journal has lost, by line; nothing where it was sound.
    #[must_use]
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// What to tell of a torn tail that was cut off: how much, and where it is kept.
    #[must_use]
    pub fn torn_note(&self) -> Option<String> {
        let torn = self.ledger.torn?;
        let kept = torn_paths(self.storage.path(), torn.at_byte).take_while(|path| path.is_file()).last();
        let place = kept.map(|path| format!(" and kept in {}", path.display())).unwrap_or_default();
        let bytes = torn.bytes;
        Some(format!(
            "the journal ended in {bytes} bytes that a kill or a power cut had torn: cut off{place}"
        ))
    }

    /// What it says.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The present time in seconds since 1970, by the clock of the author.
    #[must_use]
    pub fn now(&self) -> u64 {
        let machine = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.author.clock.unwrap_or_else(machine)
    }

    /// Begins an entry. When this returns, the intent is on disk and there is room for the rest of the entry.
    ///
    /// # Errors
    /// No room, no permission. Nothing of the entry stays in the journal, save after a failed sync: then it is
    /// an interrupted entry that wrote nothing, and undo closes it.
    pub fn begin(&mut self, intent: Intent) -> Result<EntryId, JournalError> {
        self.refuse_unrecorded()?;
        let entry = self.ledger.next_id();
        let room = room_for(intent.steps.len());
        let line = self.line(Event::Intent { entry, intent });
        let reserve = encode(&line).len() as u64 * 2 + room;
        self.storage.reserve(reserve).map_err(|source| self.failed("reserve room in", source))?;
        self.put(line)?;
        Ok(entry)
    }

    /// Records that a pool is about to be written.
    ///
    /// # Errors
    /// The line could not be appended: the pool must not be written.
    pub fn pool(&mut self, entry: EntryId, step: usize, write: PoolWrite) -> Result<(), JournalError> {
        self.refuse_unrecorded()?;
        self.record(Event::Pool { entry, step, write })
    }

    /// Records how a step of an apply ended.
    ///
    /// # Errors
    /// The line could not be appended.
    pub fn outcome(&mut self, entry: EntryId, step: usize, outcome: Outcome) -> Result<(), JournalError> {
        self.record(Event::Outcome { entry, step, outcome })
    }

    /// Records that every step was tried.
    ///
    /// # Errors
    /// The line could not be appended or synced.
    pub fn applied(&mut self, entry: EntryId) -> Result<(), JournalError> {
        self.record(Event::Applied { entry })
    }

    /// Records that the user confirmed an entry.
    ///
    /// # Errors
    /// The line could not be appended or synced.
    pub fn confirmed(&mut self, entry: EntryId) -> Result<(), JournalError> {
        self.record(Event::Confirmed { entry })
    }

    /// Records that an entry is about to be undone.
    ///
    /// # Errors
    /// No such entry; the line could not be appended or synced.
    pub fn begin_undo(&mut self, entry: EntryId, command: &str, force: bool) -> Result<(), JournalError> {
        if self.ledger.entry(entry).is_none() {
            return Err(JournalError::NoEntry { id: entry });
        }
        self.record(Event::Undo { entry, command: command.to_owned(), force })
    }

    /// Records how taking back a step ended.
    ///
    /// # Errors
    /// The line could not be appended.
    pub fn undone(&mut self, entry: EntryId, step: usize, outcome: Outcome) -> Result<(), JournalError> {
        self.record(Event::Undone { entry, step, outcome, handed: None })
    }

    /// Records how taking back a step ended whose entry goes for another one, and the pages that went to that.
    ///
    /// # Errors
    /// The line could not be appended.
    pub fn undone_and_handed(
        &mut self,
        entry: EntryId,
        step: usize,
        outcome: Outcome,
        handed: Handed,
    ) -> Result<(), JournalError> {
        self.record(Event::Undone { entry, step, outcome, handed: Some(handed) })
    }

    /// Records that an undo ended and left something on the host.
    ///
    /// # Errors
    /// The line could not be appended or synced.
    pub fn left_open(&mut self, entry: EntryId) -> Result<(), JournalError> {
        self.record(Event::LeftOpen { entry })
    }

    /// Records that nothing of an entry is on the host any more.
    ///
    /// # Errors
    /// The line could not be appended or synced.
    pub fn close(&mut self, entry: EntryId, closure: Closure) -> Result<(), JournalError> {
        self.record(Event::Closed { entry, closure, by: None })
    }

    /// Records that another entry has taken the place of one: it holds what is left of it on the host.
    ///
    /// # Errors
    /// The line could not be appended or synced.
    pub fn replaced(&mut self, entry: EntryId, by: EntryId) -> Result<(), JournalError> {
        self.record(Event::Closed { entry, closure: Closure::Replaced, by: Some(by) })
    }

    /// Keeps what a step must remember and no line can hold: on the disk when this returns, before its intent is. The
    /// answer is its name, which the step's original holds.
    ///
    /// # Errors
    /// No room, no permission: nothing is left of it.
    pub fn keep_record(&self, bytes: &[u8]) -> Result<String, RecordFault> {
        records::keep(self.storage.path(), bytes)
    }

    /// What a step remembers by this name.
    ///
    /// # Errors
    /// It is not there, or not what was written.
    pub fn record_of(&self, name: &str) -> Result<Vec<u8>, RecordFault> {
        records::fetch(self.storage.path(), name)
    }

    /// Removes the records of entries of which nothing can be undone any more. Never where a part of the journal is
    /// lost, or cannot be written: an entry that nobody knows of may need them.
    pub fn sweep_records(&self) {
        if self.unrecorded || !self.lost.is_empty() {
            return;
        }
        let is_needed = |name: &str| {
            let may_be_forced = |entry: &Entry| {
                entry.boot_id == self.author.boot_id && entry.steps.iter().any(EntryStep::left_theirs)
            };
            let may_be_undone = |entry: &Entry| entry.is_open() || may_be_forced(entry);
            let names_it = |step: &EntryStep| {
                step.undo == Undo::Moved && step.original().is_some_and(|original| original.value == name)
            };
            let entries = self.ledger.entries.iter();
            entries.filter(|entry| may_be_undone(entry)).flat_map(|entry| &entry.steps).any(names_it)
        };
        records::sweep(self.storage.path(), &is_needed);
    }

    fn record(&mut self, event: Event) -> Result<(), JournalError> {
        let line = self.line(event);
        self.put(line)
    }

    fn line(&self, event: Event) -> Line {
        Line {
            v: event.version(),
            seq: self.ledger.lines + 1,
            at: self.now(),
            boot: self.author.boot_id.clone(),
            who: self.author.who.clone(),
            host: self.author.host.clone().filter(|_| matches!(event, Event::Intent { .. })),
            event,
        }
    }

    /// Refuses what must be on disk before the host is written.
    fn refuse_unrecorded(&self) -> Result<(), JournalError> {
        let read_only = || self.failed("append to", io::Error::from(io::ErrorKind::ReadOnlyFilesystem));
        if self.unrecorded { Err(read_only()) } else { Ok(()) }
    }

    fn put(&mut self, line: Line) -> Result<(), JournalError> {
        if self.unrecorded {
            self.ledger.take(line).expect("events of this process follow what the ledger says");
            return Ok(());
        }
        self.storage.append(&encode(&line)).map_err(|source| self.failed("append to", source))?;
        let synced = if line.event.is_synced() { self.storage.sync() } else { Ok(()) };
        // The line is in the file whether or not it has reached the disk: seq goes on after it.
        self.ledger.take(line).expect("events of this process follow what the ledger says");
        synced.map_err(|source| self.failed("sync", source))
    }

    fn failed(&self, what: &'static str, source: io::Error) -> JournalError {
        failed(&*self.storage, what, source)
    }
}

/// Room for what is still to be said of an entry with so many steps.
fn room_for(steps: usize) -> u64 {
    steps as u64 * RESERVED_STEP_BYTES + RESERVED_ENTRY_BYTES
}

fn failed(storage: &dyn Storage, what: &'static str, source: io::Error) -> JournalError {
    JournalError::Storage { what, path: PathBuf::from(storage.path()), source }
}
