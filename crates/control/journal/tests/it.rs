//! The journal from outside: what is written is read again, after any kill, by any later version.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use std::io::Read as _;

use planish_journal::{
    Author, FileStorage, Handed, HostLock, Intent, Journal, JournalError, Ledger, Storage, read,
};
use planish_model::{
    Class, Closure, EntryId, EntryState, EntryStep, KnobId, Original, Outcome, OutcomeKind, Part, Plan,
    PoolWrite, Undo, ValueType,
};
use tempfile::TempDir;

/// In memory where that is possible: these tests sync some thousand times.
fn new_folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder")
}

fn author() -> Author {
    Author { boot_id: "boot-1".to_owned(), who: "root".to_owned(), host: None, clock: Some(1_763_600_000) }
}

fn open(folder: &Path) -> Result<Journal, JournalError> {
    let lock = HostLock::acquire(&folder.join("lock"), Duration::ZERO).expect("nobody else");
    Journal::open(Box::new(FileStorage::create(folder).expect("made")), lock, author())
}

fn look(folder: &Path) -> Ledger {
    read(&FileStorage::look(folder).expect("readable")).expect("sound")
}

fn step(knob: &str, original: &str, wanted: &str) -> EntryStep {
    let place = format!("/proc/sys/{}", knob.replace('.', "/"));
    let own = Original {
        knob: KnobId::new(knob),
        place: place.clone(),
        r#type: ValueType::Int { int: "none".to_owned(), min: None, max: None, words: Vec::new() },
        value: original.to_owned(),
        coupling: None,
        over: None,
    };
    let (knob, wanted) = (KnobId::new(knob), wanted.to_owned());
    EntryStep { originals: vec![own], ..EntryStep::new(knob, place, wanted, Class::Safe, Undo::Restore) }
}

fn intent(confirm_by: Option<u64>) -> Intent {
    let plan = Plan::new("series".to_owned(), "host".to_owned(), "boot-1".to_owned(), vec![], vec![]);
    Intent {
        command: "planish apply series".to_owned(),
        reason: Some("ticket 12".to_owned()),
        profile: "series".to_owned(),
        plan: plan.hash,
        confirm_by,
        on_confirm: None,
        instead_of: None,
        allowed: planish_model::Allowed::default(),
        steps: vec![step("vm.swappiness", "60", "10"), step("vm.stat_interval", "1", "10")],
    }
}

fn outcome(step: &EntryStep, kind: OutcomeKind) -> Outcome {
    Outcome::new(step.knob.clone(), step.place.clone(), kind)
}

/// A life from intent to closure, as the tests below look at it.
fn live_and_end(journal: &mut Journal) -> EntryId {
    let entry = journal.begin(intent(Some(1_763_600_060))).expect("room");
    let steps = journal.ledger().entry(entry).expect("begun").steps.clone();
    journal.pool(entry, 0, PoolWrite { held: 0, from: 4, to: 8 }).expect("room");
    journal.outcome(entry, 0, outcome(&steps[0], OutcomeKind::Done)).expect("room");
    journal.outcome(entry, 1, outcome(&steps[1], OutcomeKind::ReadsBack)).expect("room");
    journal.applied(entry).expect("room");
    journal.confirmed(entry).expect("room");
    journal.begin_undo(entry, "planish undo", false).expect("room");
    journal.undone(entry, 1, outcome(&steps[1], OutcomeKind::Theirs)).expect("room");
    journal.undone(entry, 0, outcome(&steps[0], OutcomeKind::Done)).expect("room");
    journal.close(entry, Closure::Undone).expect("room");
    entry
}

#[test]
fn what_is_written_is_read_again() {
    let folder = new_folder();
    let mut journal = open(folder.path()).expect("new");
    live_and_end(&mut journal);
    let written = journal.ledger().entries.clone();
    drop(journal);
    assert_eq!(look(folder.path()).entries, written);
    let entry = &written[0];
    assert_eq!(entry.state, EntryState::Closed(Closure::Undone));
    assert_eq!(entry.reason.as_deref(), Some("ticket 12"));
    assert_eq!(entry.confirm_by, None);
    assert_eq!(entry.steps[1].undone.as_ref().map(|undone| undone.outcome), Some(OutcomeKind::Theirs));
}

/// An entry that takes the place of another: pages change hands with the step that is taken back, in one line.
#[test]
fn an_entry_that_is_replaced_says_by_which_and_its_pages_are_in_one_place_after_any_line() {
    let folder = new_folder();
    let mut journal = open(folder.path()).expect("new");
    let pool = |raise: u64, takes: Option<u64>| EntryStep {
        undo: Undo::Subtract,
        raise_pages: Some(raise),
        takes_pages: takes,
        originals: Vec::new(),
        ..step("vm.nr_hugepages", "0", "8")
    };
    let back = EntryStep { part: Some(Part::Back), ..step("vm.stat_interval", "10", "1") };
    let granted =
        |pages| Outcome { granted_pages: Some(pages), ..outcome(&pool(0, None), OutcomeKind::Done) };
    let old = journal.begin(Intent { steps: vec![pool(8, None)], ..intent(None) }).expect("room");
    journal.outcome(old, 0, granted(8)).expect("room");
    journal.applied(old).expect("room");
    let steps = vec![back, pool(2, Some(5))];
    let new = journal.begin(Intent { steps, instead_of: Some(old), ..intent(None) }).expect("room");
    journal.outcome(new, 1, granted(2)).expect("room");
    journal.applied(new).expect("room");
    journal.begin_undo(old, "planish apply", false).expect("room");
    let handed = Handed { to: new, step: 1, pages: 5, line: None };
    journal.undone_and_handed(old, 0, granted(3), handed).expect("room");
    journal.replaced(old, new).expect("room");
    let written = journal.ledger().entries.clone();
    drop(journal);
    assert_eq!(look(folder.path()).entries, written);
    assert_eq!(
        (written[0].state, written[0].replaced_by),
        (EntryState::Closed(Closure::Replaced), Some(new))
    );
    assert!(written[1].steps[0].is_undone(), "what went back is nobody's any more");
    assert_eq!((written[1].steps[1].raise_pages, written[1].steps[1].takes_pages), (Some(7), None));

    let bytes = FileStorage::look(folder.path()).expect("readable").read().expect("readable");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    for count in 5..=lines.len() {
        let part = new_folder();
        let storage = FileStorage::create(part.path()).expect("made");
        storage.append(&lines[..count].concat()).expect("room");
        let entries = read(&storage).expect("sound").entries;
        let held: u64 = entries.iter().flat_map(|entry| &entry.steps).map(EntryStep::pages_held).sum();
        assert_eq!(held, 10, "after line {count}");
    }
    let version = |line: &[u8]| String::from_utf8_lossy(line).contains("\"v\":2");
    let newer: Vec<usize> = (0..lines.len()).filter(|at| version(lines[*at])).collect();
    assert_eq!(newer, [3], "an older planish stops at the intent, and reads all before it");
}

/// Each state that a kill can leave behind, in the order in which a life passes through them.
#[test]
fn a_kill_after_any_line_leaves_the_state_of_the_lines_before() {
    let folder = new_folder();
    live_and_end(&mut open(folder.path()).expect("new"));
    let bytes = FileStorage::look(folder.path()).expect("readable").read().expect("readable");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let states: Vec<(EntryState, bool)> = (1..=lines.len())
        .map(|count| {
            let part = new_folder();
            let storage = FileStorage::create(part.path()).expect("made");
            storage.append(&lines[..count].concat()).expect("room");
            let entry = read(&storage).expect("sound").entries.remove(0);
            (entry.state, entry.undo_begun)
        })
        .collect();
    use EntryState::{Closed, Interrupted, Open, Unconfirmed};
    let applying = [&[Interrupted; 4][..], &[Unconfirmed, Open]].concat();
    let expected = applying.into_iter().map(|state| (state, false)).chain([(Interrupted, true); 3]);
    assert_eq!(states, expected.chain([(Closed(Closure::Undone), false)]).collect::<Vec<_>>());
}

#[test]
fn a_torn_tail_is_told_and_cut_by_the_next_writer() {
    let folder = new_folder();
    live_and_end(&mut open(folder.path()).expect("new"));
    let storage = FileStorage::create(folder.path()).expect("there");
    let sound = storage.read().expect("readable").len() as u64;
    storage.append(b"{\"crc\":\"0123").expect("room");
    assert_eq!(look(folder.path()).torn.map(|torn| torn.bytes), Some(12));
    assert_eq!(storage.read().expect("readable").len() as u64, sound + 12, "a reader cuts nothing");
    let journal = open(folder.path()).expect("a torn tail is no damage");
    assert_eq!(journal.ledger().torn.map(|torn| torn.at_byte), Some(sound));
    let note = journal.torn_note().expect("it is told");
    let kept = folder.path().join(format!("journal.torn-{sound}"));
    assert!(note.contains("12 bytes") && note.contains(&kept.display().to_string()), "{note}");
    let mut tail = String::new();
    std::fs::File::open(kept).expect("kept").read_to_string(&mut tail).expect("text");
    assert_eq!(tail, "{\"crc\":\"0123");
    drop(journal);

    // Torn once more at the same byte: neither is lost.
    storage.append(b"{\"crc\":\"4567").expect("room");
    let mut journal = open(folder.path()).expect("a torn tail is no damage");
    assert!(journal.torn_note().expect("told").ends_with(&format!("journal.torn-{sound}-2")));
    assert!(folder.path().join(format!("journal.torn-{sound}")).is_file());
    assert_eq!(journal.begin(intent(None)).expect("room"), EntryId(2));
    drop(journal);
    let after = look(folder.path());
    assert_eq!((after.torn, after.entries.len()), (None, 2));
}

#[test]
fn a_damaged_journal_is_refused_before_anything_is_written() {
    let folder = new_folder();
    live_and_end(&mut open(folder.path()).expect("new"));
    let storage = FileStorage::create(folder.path()).expect("there");
    let mut bytes = storage.read().expect("readable");
    bytes[300] ^= 4;
    storage.cut(0).expect("ours");
    storage.append(&bytes).expect("room");
    let Err(error) = open(folder.path()) else { panic!("a bit fell over") };
    assert!(matches!(error, JournalError::Damaged { line: 1, .. }), "{error}");
    assert_eq!(storage.read().expect("readable"), bytes);
}

#[test]
fn a_blank_last_line_is_nothing() {
    let folder = new_folder();
    live_and_end(&mut open(folder.path()).expect("new"));
    FileStorage::create(folder.path()).expect("there").append(b"\n\n").expect("room");
    assert_eq!(look(folder.path()).torn.map(|torn| torn.bytes), Some(2));
    assert_eq!(open(folder.path()).expect("sound").begin(intent(None)).expect("room"), EntryId(2));
    assert_eq!(look(folder.path()).entries.len(), 2);
}

/// Whatever a byte was turned into: what goes on is sound, and what was there is kept.
#[test]
fn a_journal_with_any_bad_byte_goes_on_by_force() {
    let folder = new_folder();
    live_and_end(&mut open(folder.path()).expect("new"));
    let sound = FileStorage::look(folder.path()).expect("readable").read().expect("readable");
    for (at, bad) in (0..sound.len()).step_by(23).zip([b'\n', 0, b'x', 0xff, b'"', b'1'].into_iter().cycle())
    {
        let folder = new_folder();
        let mut bytes = sound.clone();
        bytes[at] = if bytes[at] == bad { b'#' } else { bad };
        let storage = FileStorage::create(folder.path()).expect("made");
        storage.append(&bytes).expect("room");
        if read(&storage).is_ok() {
            continue; // The last line, torn.
        }
        let lock = HostLock::acquire(&folder.path().join("lock"), Duration::ZERO).expect("nobody else");
        let mut journal = Journal::open_or_salvage(Box::new(storage), lock, author(), &[]).expect("salvaged");
        assert!(journal.lost().len() > 1, "byte {at}: {:?}", journal.lost());
        let next = journal.begin(intent(None)).expect("room");
        assert!(next > EntryId(1), "byte {at}: no number is given twice");
        drop(journal);
        let entries = look(folder.path()).entries;
        assert_eq!(entries.last().map(|entry| entry.id), Some(next), "byte {at}");
        let name = format!("journal-damaged-{:08x}.jsonl", crc32fast::hash(&bytes));
        assert_eq!(std::fs::metadata(folder.path().join(name)).expect("kept").len(), bytes.len() as u64);
    }
}

#[test]
fn numbers_that_are_lost_are_told_as_many_as_they_are() {
    let folder = new_folder();
    live_and_end(&mut open(folder.path()).expect("new"));
    let sound = FileStorage::look(folder.path()).expect("readable").read().expect("readable");
    let sound = String::from_utf8(sound).expect("text");
    for (missing, unreadable, told) in [
        (&[3][..], None, "number 4 before it is not there"),
        (&[3, 4], None, "the numbers 4 to 5 before it are not there"),
        (&[3], Some(4), "one of the numbers 4 to 5 before it is not there"),
        (&[2, 3], Some(4), "of the numbers 3 to 5 before it, 2 are not there"),
    ] {
        let folder = new_folder();
        let lines = sound.lines().enumerate().filter(|(at, _)| !missing.contains(at));
        let bytes: String = lines
            .map(|(at, line)| if Some(at) == unreadable { "x\n".to_owned() } else { format!("{line}\n") })
            .collect();
        let storage = FileStorage::create(folder.path()).expect("made");
        storage.append(bytes.as_bytes()).expect("room");
        let lock = HostLock::acquire(&folder.path().join("lock"), Duration::ZERO).expect("nobody else");
        let journal = Journal::open_or_salvage(Box::new(storage), lock, author(), &[]).expect("salvaged");
        let lost = journal.lost();
        assert!(lost.iter().any(|line| line.ends_with(&format!(": {told}"))), "{told}: {lost:?}");
    }
}

/// A disk with room for a number of bytes.
struct SmallDisk {
    room: u64,
    bytes: Rc<RefCell<Vec<u8>>>,
}

impl Storage for SmallDisk {
    fn path(&self) -> &Path {
        Path::new("/var/lib/planish/journal.jsonl")
    }
    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(self.bytes.borrow().clone())
    }
    fn cut(&self, length: u64) -> io::Result<()> {
        self.bytes.borrow_mut().truncate(length as usize);
        Ok(())
    }
    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let enough = self.bytes.borrow().len() as u64 + bytes <= self.room;
        if enough { Ok(()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
    }
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.borrow().len() + bytes.len() > self.room as usize {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_was_reserved_is_enough_for_a_whole_life() {
    let folder = new_folder();
    let try_with = |room: u64| {
        let bytes = Rc::new(RefCell::new(Vec::new()));
        let lock = HostLock::acquire(&folder.path().join("lock"), Duration::ZERO).expect("nobody else");
        let disk = SmallDisk { room, bytes: Rc::clone(&bytes) };
        let mut journal = Journal::open(Box::new(disk), lock, author()).expect("empty");
        let begun = journal.begin(intent(Some(1)));
        if begun.is_err() {
            assert!(bytes.borrow().is_empty(), "a refused entry leaves nothing");
        }
        begun.map(|_| journal)
    };
    // The smallest disk that lets an entry begin lets it end too.
    let room = (0..200_000).step_by(512).find(|&room| try_with(room).is_ok()).expect("some disk is enough");
    let mut journal = try_with(room).expect("as before");
    let entry = EntryId(1);
    let steps = journal.ledger().entries[0].steps.clone();
    for (index, step) in steps.iter().enumerate() {
        journal.outcome(entry, index, outcome(step, OutcomeKind::Done)).expect("reserved");
    }
    journal.applied(entry).expect("reserved");
    journal.begin_undo(entry, "planish undo", false).expect("reserved");
    for (index, step) in steps.iter().enumerate() {
        journal.undone(entry, index, outcome(step, OutcomeKind::Done)).expect("reserved");
    }
    journal.close(entry, Closure::Undone).expect("reserved");
}

/// A folder with a journal of some hundred closed entries, and one open one among them.
fn long_journal(folder: &Path) -> EntryId {
    let mut journal = open(folder).expect("new");
    let mut open = EntryId(0);
    for count in 0..150 {
        let entry = live_and_end(&mut journal);
        if count == 70 {
            // Applied over the first entry, which is closed: undo will ask for that one.
            let mut over = intent(None);
            over.steps[0].originals[0].over = Some(EntryId(1));
            open = journal.begin(over).expect("room");
            let step = journal.ledger().entry(open).expect("begun").steps[0].clone();
            journal.outcome(open, 0, outcome(&step, OutcomeKind::Done)).expect("room");
            journal.applied(open).expect("room");
        }
        if count == 80 {
            let step = journal.ledger().entry(open).expect("begun").steps[1].clone();
            journal.outcome(open, 1, outcome(&step, OutcomeKind::Done)).expect("room");
        }
        assert!(entry != open);
    }
    open
}

fn journal_bytes(folder: &Path) -> usize {
    FileStorage::look(folder).expect("readable").read().expect("readable").len()
}

#[test]
fn a_long_journal_is_archived_and_goes_on_with_what_is_open() {
    let folder = new_folder();
    let open_entry = long_journal(folder.path());
    let before = look(folder.path());
    assert!(journal_bytes(folder.path()) > 256 * 1024);
    let mut journal = open(folder.path()).expect("archived");
    assert!(journal_bytes(folder.path()) < 8 * 1024);
    // The last one left a value to somebody else, as all did before it: that one can still be forced.
    let needed = [EntryId(1), open_entry, EntryId(151)].map(|id| before.entry(id).expect("there").clone());
    assert_eq!(journal.ledger().entries, needed);
    assert!(journal.ledger().is_archived(EntryId(2)) && !journal.ledger().is_archived(open_entry));
    // It goes on as if nothing had happened: numbers, order, undo, history.
    let steps = &journal.ledger().entry(open_entry).expect("there").steps;
    let behind = |step: usize, intent| steps[step].was_told_behind(open_entry, EntryId(intent));
    assert_eq!((behind(0, 73), behind(1, 82), behind(1, 83)), (false, true, false));
    assert_eq!(journal.begin(intent(None)).expect("room"), EntryId(152));
    journal.begin_undo(open_entry, "planish undo", false).expect("room");
    journal.close(open_entry, Closure::Undone).expect("room");
    drop(journal);
    let history = planish_journal::history(folder.path()).expect("sound");
    assert_eq!(history.len(), 152);
    assert_eq!(history[open_entry.0 as usize - 1].state, EntryState::Closed(Closure::Undone));
    assert_eq!(look(folder.path()).entries.len(), 4);
}

/// A kill between the second name of the old journal and the name of the new one.
#[test]
fn an_archiving_that_was_killed_is_done_again() {
    let folder = new_folder();
    long_journal(folder.path());
    let (journal, kept) = (folder.path().join("journal.jsonl"), folder.path().join("journal-000151.jsonl"));
    std::fs::hard_link(&journal, &kept).expect("ours");
    std::fs::copy(&journal, folder.path().join("journal.next")).expect("ours");
    let reopened = open(folder.path()).expect("archived");
    assert_eq!(reopened.ledger().entries.len(), 3);
    assert!(journal_bytes(folder.path()) < 8 * 1024);
    assert_eq!(planish_journal::history(folder.path()).expect("sound").len(), 151);
}

/// Another file has the archive's name: nothing is lost, and the journal goes on as it is.
#[test]
fn an_archive_is_never_written_over() {
    let folder = new_folder();
    long_journal(folder.path());
    let kept = folder.path().join("journal-000151.jsonl");
    std::fs::File::create(&kept).expect("ours");
    let length = journal_bytes(folder.path());
    let mut reopened = open(folder.path()).expect("as it is");
    assert_eq!(reopened.begin(intent(None)).expect("room"), EntryId(152));
    drop(reopened);
    assert!(journal_bytes(folder.path()) > length);
    assert_eq!(look(folder.path()).entries.len(), 152);
    assert_eq!(std::fs::metadata(&kept).expect("there").len(), 0);
}

/// A journal of format 1 that is kept in the repository: every later planish must read it.
/// Written by `what_is_written_is_read_again` with two more entries behind it.
#[test]
fn a_journal_of_format_1_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
    if std::env::var_os("PLANISH_WRITE_FIXTURES").is_some() {
        let mut journal = open(&fixture).expect("writable");
        live_and_end(&mut journal);
        let open = journal.begin(intent(None)).expect("room");
        journal.applied(open).expect("room");
        journal.begin(intent(Some(1_763_600_060))).expect("room");
    }
    let ledger = look(&fixture);
    let states: Vec<EntryState> = ledger.entries.iter().map(|entry| entry.state).collect();
    let closed = EntryState::Closed(Closure::Undone);
    assert_eq!(states, [closed, EntryState::Open, EntryState::Interrupted]);
    let step = &ledger.entries[1].steps[0];
    assert_eq!(step.place, "/proc/sys/vm/swappiness");
    assert_eq!(step.original().map(|original| original.value.as_str()), Some("60"));
    assert_eq!(step.wanted, "10");
    assert_eq!(ledger.entries[2].confirm_by, Some(1_763_600_060));
    assert_eq!(ledger.torn, None);
}

/// An older planish wrote the size of the whole pool into the line of an entry, with the pages of everybody.
#[test]
fn a_line_of_a_pool_from_an_older_planish_is_its_entrys_own_share() {
    let pool = |node| format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    let new = |knob: &str, place: &str, wanted: String, undo| {
        EntryStep::new(KnobId::new(knob), place.to_owned(), wanted, Class::Safe, undo)
    };
    let raise = new("hugepages.2m", &pool(0), "5010".to_owned(), Undo::Subtract);
    let thp = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n";
    let lines = format!("w {} - - - - 5010\n{thp}w {} - - - - 7\n", pool(0), pool(1));
    let file = new("persist.tmpfiles", "/etc/tmpfiles.d/90-planish.conf", lines, Undo::File);
    let steps = vec![EntryStep { raise_pages: Some(10), ..raise }, file];
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = open(folder.path()).expect("new");
    journal.begin(Intent { steps, ..intent(None) }).expect("room");
    let file = &journal.ledger().entries[0].steps[1];
    assert_eq!(file.wanted, thp);
    let line = |node, pages| planish_model::PoolLine { place: pool(node), pages, ..Default::default() };
    assert_eq!(
        file.pools,
        [line(0, 10), line(1, 7)],
        "without a step of its own the line is all that is known"
    );
}

/// An older planish noted of one of two twins alone what it lies over, where the entry below had found the other one
/// cleared: the original of that one, further below, was lost.
#[test]
fn twins_from_an_older_planish_lie_over_the_same_entry() {
    let (bytes, ratio) = ("vm.dirty_bytes", "vm.dirty_ratio");
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = open(folder.path()).expect("new");
    for (found, wanted, cleared, over) in [("0", "4096", "20", None), ("4096", "8192", "0", Some(EntryId(1)))]
    {
        let mut set = step(bytes, found, wanted);
        let twin = step(ratio, cleared, "").originals.remove(0);
        set.originals.push(Original { coupling: Some(planish_model::Coupling::Twin), ..twin });
        set.originals[0].over = over;
        journal.begin(Intent { steps: vec![set], ..intent(None) }).expect("room");
    }
    drop(journal);
    let overs = |entry: &planish_model::Entry| {
        entry.steps[0].originals.iter().map(|own| own.over).collect::<Vec<_>>()
    };
    let ledger = look(folder.path());
    assert_eq!(ledger.entries.iter().map(overs).collect::<Vec<_>>(), [[None; 2], [Some(EntryId(1)); 2]]);
}
